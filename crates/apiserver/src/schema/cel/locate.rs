//! Where in an expression something stands. The parser keeps no places in its tree, so names and operators are looked
//! up in the text again: exact where they occur once, and else the first place.

/// Longer lines are not shown beside an error.
const LONGEST_LINE: usize = 16_384;

/// An error with the line it is about and a mark under the place, as the original draws it. `column` counts from 1.
pub(super) fn located_at(source: &str, line: usize, column: usize, message: &str) -> String {
    let text = source.lines().nth(line.saturating_sub(1)).unwrap_or_default();
    if text.len() > LONGEST_LINE {
        return format!("ERROR: <input>:{line}:{column}: {message}");
    }
    let dots = ".".repeat(column.saturating_sub(1).min(text.chars().count()));
    format!("ERROR: <input>:{line}:{column}: {message}\n | {text}\n | {dots}^")
}

/// The same for a place given as an offset.
pub(super) fn located(source: &str, offset: usize, message: &str) -> String {
    let before = source.get(..offset).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    located_at(source, line, column, message)
}

/// The dot before a selected field.
pub(super) fn of_field(source: &str, name: &str) -> usize {
    words(source, name)
        .find(|at| source[..*at].trim_end().ends_with(['.', '?']))
        .map_or(0, |at| source[..at].rfind('.').unwrap_or_default())
}

/// The start of a variable.
pub(super) fn of_name(source: &str, name: &str) -> usize {
    words(source, name).find(|at| !source[..*at].trim_end().ends_with('.')).unwrap_or_default()
}

/// The parenthesis of a call.
pub(super) fn of_call(source: &str, name: &str) -> usize {
    let call = words(source, name).find(|at| source[*at + name.len()..].trim_start().starts_with('('));
    call.map_or(0, |at| at + name.len())
}

/// A quoted text.
pub(super) fn of_text(source: &str, text: &str) -> usize {
    ['\'', '"'].iter().filter_map(|quote| source.find(&format!("{quote}{text}{quote}"))).min().unwrap_or_default()
}

/// An operator, given as the tree names it (`_>=_`).
pub(super) fn of_operator(source: &str, name: &str) -> usize {
    let text = name.trim_matches(['_', '@']).split('_').next().unwrap_or_default();
    outside_of_texts(source).find(|(at, _)| source[*at..].starts_with(text)).map_or(0, |(at, _)| at)
}

/// Places where `name` stands as a whole word.
fn words<'a>(source: &'a str, name: &'a str) -> impl Iterator<Item = usize> + 'a {
    let part_of_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    outside_of_texts(source).map(|(at, _)| at).filter(move |at| {
        source[*at..].starts_with(name)
            && !source[..*at].ends_with(part_of_word)
            && !source[*at + name.len()..].starts_with(part_of_word)
    })
}

/// All characters that are not inside of a quoted text.
fn outside_of_texts(source: &str) -> impl Iterator<Item = (usize, char)> {
    let mut quote = None;
    let mut escaped = false;
    source.char_indices().filter(move |(_, c)| match quote {
        Some(open) => {
            if escaped {
                escaped = false;
            } else if *c == '\\' {
                escaped = true;
            } else if *c == open {
                quote = None;
            }
            false
        }
        None => {
            if matches!(c, '"' | '\'') {
                quote = Some(*c);
            }
            quote.is_none()
        }
    })
}

/// An upper bound of how deep the tree of an expression is: every operator in a row may nest one deeper, and so does
/// every bracket. `&&`, `||` and `,` start over, because the parser balances the first two and lists are flat.
pub(super) fn nesting(source: &str) -> usize {
    let (mut outer, mut here, mut deepest) = (Vec::new(), 0_usize, 0);
    let mut below: usize = 0;
    let mut previous = ' ';
    // Quoted texts are not skipped: where one ends depends on prefixes (`r'\'`), and counting too much is safe.
    for c in source.chars() {
        match c {
            '(' | '[' | '{' => {
                outer.push(here + 1);
                below += here + 1;
                here = 0;
            }
            ')' | ']' | '}' => {
                let before = outer.pop().unwrap_or_default();
                below -= before;
                here = before;
            }
            ',' => here = 0,
            '&' | '|' if previous == c => here = 0,
            '.' | '?' | ':' | '+' | '-' | '*' | '/' | '%' | '!' | '<' | '>' | '=' => here += 1,
            _ => {}
        }
        previous = c;
        deepest = deepest.max(below + here);
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_found_outside_of_texts() {
        let source = "'y' == 'y' && self.y > 1";
        assert_eq!(of_field(source, "y"), 18);
        assert_eq!(of_operator(source, "_>_"), 21);
        assert_eq!(of_name("foo > 1", "foo"), 0);
        assert_eq!(of_call("self.s.foo()", "foo"), 10);
    }

    #[test]
    fn nesting_counts_what_nests() {
        assert!(nesting("self.a.b == 'x' && self.c.d == 'y'") < 10);
        let long = vec!["self.a == 'b'"; 500].join(" || ");
        assert!(nesting(&long) < 10);
        assert!(nesting(&"(".repeat(500)) >= 500);
        assert!(nesting(&"!".repeat(500)) >= 500);
        assert!(nesting(&"a.".repeat(500)) >= 500);
        assert!(nesting(&"a[".repeat(500)) >= 500);
        assert!(nesting(&"a?b:".repeat(500)) >= 500);
    }
}
