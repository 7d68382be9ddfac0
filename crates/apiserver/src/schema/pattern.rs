//! Regular expressions as the original reads them.
//!
//! Both engines come from RE2 and run in linear time, but the original's `\d`, `\w`, `\s` and `\b` know only ASCII, and
//! inside brackets it knows no set operations. The text is rewritten so that both match the same strings.

mod syntax;

use regex::{Error, Regex, RegexBuilder};
use serde_json::Value;

/// Compiled programs larger than this are refused: a pattern such as `(a{1000}){1000}` is a way to eat memory.
pub(crate) const SIZE_LIMIT: usize = 1 << 20;

/// What a pattern is taken to need: the first of these that its program fits in.
const SIZES: [usize; 5] = [4 << 10, 16 << 10, 64 << 10, 256 << 10, SIZE_LIMIT];

/// What all patterns of one definition may need. A few hundred ordinary ones take a tenth of it.
const TOTAL_LIMIT: usize = 64 << 20;

/// How much a pattern that is in use may remember of the texts it has seen.
const MEMORY_LIMIT: usize = 256 << 10;

/// A pattern, ready to match, and how large it is.
pub(crate) struct Pattern {
    regex: Regex,
    size: usize,
}

impl Pattern {
    /// `None` if it cannot be read.
    pub(crate) fn new(source: &str) -> Option<Self> {
        Some(Self { regex: compile(source).ok()?, size: size(source) })
    }

    /// Whether a text matches somewhere.
    pub(crate) fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }

    /// What it takes to find that out.
    pub(crate) fn steps(&self, text: &str) -> u64 {
        matching(self.size, text.len() as u64)
    }
}

/// What it takes to compile a pattern of that size, in steps such as looking at a value.
pub(crate) fn compiling(size: usize) -> u64 {
    size as u64 / 32
}

/// What it may take to match a text of that length with a pattern of that size. Mostly it is far less; but when there are
/// more states than can be remembered, all those that are possible are visited for every character.
pub(crate) fn matching(size: usize, length: u64) -> u64 {
    length.saturating_mul(size as u64 / 2048).saturating_add(1)
}

/// Compiles a pattern; the error is for people, and the original's own wherever it is about the syntax.
pub(crate) fn compile(source: &str) -> Result<Regex, String> {
    let text = syntax::translated(source)?;
    let built = RegexBuilder::new(&text).size_limit(SIZE_LIMIT).dfa_size_limit(MEMORY_LIMIT).build();
    built.map_err(|error| {
        // The engine's own text draws the pattern over several lines; its last line says what is wrong.
        let text = error.to_string();
        text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
    })
}

/// Whether all patterns below a value are no more together than one definition may have. Everything called `pattern` is
/// taken for one: where it is none, too much is counted, and only a little.
pub(crate) fn are_affordable(value: &Value) -> bool {
    let mut room = TOTAL_LIMIT;
    let mut pending = vec![value];
    while let Some(value) = pending.pop() {
        match value {
            Value::Object(map) => {
                if let Some(Value::String(source)) = map.get("pattern") {
                    let Some(rest) = room.checked_sub(size(source)) else { return false };
                    room = rest;
                }
                pending.extend(map.values());
            }
            Value::Array(items) => pending.extend(items),
            _ => {}
        }
    }
    true
}

/// The least of [`SIZES`] that will do. One that cannot be read needs next to nothing, and is refused elsewhere.
pub(crate) fn size(source: &str) -> usize {
    let Ok(text) = syntax::translated(source) else { return SIZES[0] };
    let fits = |limit: &usize| {
        let built = RegexBuilder::new(&text).size_limit(*limit).build();
        !matches!(built, Err(Error::CompiledTooBig(_)))
    };
    SIZES.into_iter().find(fits).unwrap_or(SIZE_LIMIT)
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
    fn dashes_make_ranges_of_characters_and_of_nothing_else() {
        check(r"^[\w-.]+$", &["a-."], &["a/"]);
        check(r"^[\w-\.]+@$", &["a-.@"], &["a/@"]);
        check(r"^[\s-x]+$", &[" -x"], &["a"]);
        check(r"^[+--]$", &["+", ",", "-"], &["."]);
        check(r"^[--/]$", &["-", ".", "/"], &[","]);
        check(r"^[\p{L}-.]+$", &["ä-."], &["1"]);
        check(r"^[\pL-.]+$", &["ä-."], &["1"]);
        check(r"^[^\D-]+$", &["12"], &["-", "a"]);
        check(r"^[[:digit:]-z]+$", &["1-z"], &["a"]);
        check(r"^[\x41-\x43-z]+$", &["AC-z"], &["a", "D"]);
        check(r"^[a-c-z]+$", &["ac-z"], &["d"]);
        check(r"^[]-a]+$", &["]", "^", "a"], &["b", "-"]);
    }

    #[test]
    fn bad_patterns_are_errors() {
        for bad in ["(", "[a", "a{2,1}", "(?=a)", "(((a{1000}){1000}){1000})", "\\"] {
            assert!(compile(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn ordinary_patterns_are_affordable_and_bombs_are_not() {
        let schema = |pattern: &str, count: usize| {
            let strings =
                (0..count).map(|n| (format!("p{n}"), serde_json::json!({"type": "string", "pattern": pattern})));
            serde_json::json!([{"schema": {"properties": strings.collect::<serde_json::Map<_, _>>()}}])
        };
        let quantity = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?[0-9]+))?$";
        for (pattern, count) in [("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", 2000), (quantity, 1000), ("^.{1,253}$", 20)] {
            assert!(are_affordable(&schema(pattern, count)), "{pattern}");
        }
        for (pattern, count) in [(".{1000}", 1000), ("a", 50_000)] {
            assert!(!are_affordable(&schema(pattern, count)), "{pattern}");
        }
        assert!(are_affordable(&schema("(", 1000)), "what is wrong with them is said elsewhere");
    }
}
