//! Regular expressions as the original reads them.
//!
//! Both engines come from RE2 and run in linear time, but the original's `\d`, `\w`, `\s` and `\b` know only ASCII, and
//! inside brackets it knows no set operations. The text is rewritten so that both match the same strings.

use regex::{Regex, RegexBuilder};

/// Compiled programs larger than this are refused: a pattern such as `(a{1000}){1000}` is a way to eat memory.
const SIZE_LIMIT: usize = 1 << 20;

/// Compiles a pattern; the error is for people.
pub(crate) fn compile(source: &str) -> Result<Regex, String> {
    RegexBuilder::new(&translated(source)).size_limit(SIZE_LIMIT).build().map_err(|error| {
        // The engine's own text draws the pattern over several lines; its last line says what is wrong.
        let text = error.to_string();
        text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
    })
}

fn translated(source: &str) -> String {
    let mut out = String::with_capacity(source.len() + 16);
    let mut chars = source.chars().peekable();
    let mut in_class = false;
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(escaped) => out.push_str(&escape(escaped, in_class)),
                None => out.push('\\'),
            },
            '[' if !in_class => {
                in_class = true;
                out.push('[');
                if chars.peek() == Some(&'^') {
                    chars.next();
                    out.push('^');
                }
                // A closing bracket that comes first is an ordinary character.
                if chars.peek() == Some(&']') {
                    chars.next();
                    out.push_str("\\]");
                }
            }
            '[' if chars.peek() == Some(&':') => {
                // `[:alpha:]` reads the same in both.
                out.push('[');
                for c in chars.by_ref() {
                    out.push(c);
                    if c == ']' {
                        break;
                    }
                }
            }
            '[' => out.push_str("\\["),
            ']' if in_class => {
                in_class = false;
                out.push(']');
            }
            '&' | '~' if in_class => {
                out.push('\\');
                out.push(c);
            }
            // `--` would be a difference of sets; the second dash is an ordinary character.
            '-' if in_class && chars.peek() == Some(&'-') => {
                chars.next();
                out.push_str("\\--");
            }
            c => out.push(c),
        }
    }
    out
}

fn escape(escaped: char, in_class: bool) -> String {
    match (escaped, in_class) {
        ('d', false) => "[0-9]".into(),
        ('D', _) => "[^0-9]".into(),
        ('w', false) => "[0-9A-Za-z_]".into(),
        ('W', _) => "[^0-9A-Za-z_]".into(),
        ('s', false) => "[\\t\\n\\f\\r ]".into(),
        ('S', _) => "[^\\t\\n\\f\\r ]".into(),
        ('d', true) => "0-9".into(),
        ('w', true) => "0-9A-Za-z_".into(),
        ('s', true) => "\\t\\n\\f\\r ".into(),
        ('b', false) => "(?-u:\\b)".into(),
        (other, _) => format!("\\{other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, matches: &[&str], refuses: &[&str]) {
        let regex = compile(pattern).expect("a valid pattern");
        for text in matches {
            assert!(regex.is_match(text), "{pattern} should match {text}");
        }
        for text in refuses {
            assert!(!regex.is_match(text), "{pattern} should not match {text}");
        }
    }

    #[test]
    fn classes_are_ascii() {
        check(r"^\d+$", &["123"], &["١٢٣"]);
        check(r"^[\w.]+$", &["a_1."], &["ä"]);
        check(r"^\s$", &[" "], &["\u{a0}"]);
    }

    #[test]
    fn brackets_hold_no_set_operations() {
        check(r"^[a&&b]+$", &["a&b"], &["c"]);
        check(r"^[[a]+$", &["[a["], &["b"]);
        check(r"^[]a]+$", &["]a"], &["b"]);
        check(r"^[[:alpha:]-]+$", &["ab-"], &["1"]);
        check(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", &["a-b"], &["-a"]);
    }

    #[test]
    fn bad_patterns_are_errors() {
        for bad in ["(", "[a", "a{2,1}", "(?=a)", "(((a{1000}){1000}){1000})", "\\"] {
            assert!(compile(bad).is_err(), "{bad}");
        }
    }
}
