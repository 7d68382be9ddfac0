//! Names of others, fit for a terminal. A topic, a rack or a path may hold bytes that move the cursor, change colours or
//! end the line; people are shown what they are instead.

use std::borrow::Cow;

/// One line: everything that a terminal would obey is spelled out, line ends too.
pub(crate) fn line(text: &str) -> Cow<'_, str> {
    escaped(text, is_obeyed)
}

/// Several lines: the same, and line ends stay what they are.
pub(crate) fn lines(text: &str) -> Cow<'_, str> {
    escaped(text, |c| c != '\n' && is_obeyed(c))
}

/// What failed, and why, each cause once: many errors repeat in their own words what caused them.
pub(crate) fn causes(error: &anyhow::Error) -> String {
    let mut said = String::new();
    for cause in error.chain().map(ToString::to_string).filter(|cause| !cause.is_empty()) {
        if !said.contains(&cause) {
            let between = if said.is_empty() { "" } else { ": " };
            said = said + between + &cause;
        }
    }
    said
}

/// Control characters, and those that turn the direction of what follows or end a line in other ways.
fn is_obeyed(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

fn escaped(text: &str, is_obeyed: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_obeyed) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_obeyed(c) { shown.extend(c.escape_default()) } else { shown.push(c) }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn whatever_others_write_is_one_line_that_a_terminal_only_shows(text in any::<String>()) {
            let shown = line(&text);
            prop_assert!(!shown.contains(is_obeyed), "{shown:?}");
            prop_assert_eq!(shown.lines().count(), usize::from(!text.is_empty()));
        }
    }

    #[test]
    fn a_cause_is_said_once() {
        let error = anyhow!("no such file").context("could not read k: no such file").context("could not begin");
        assert_eq!(causes(&error), "could not begin: could not read k: no such file");
        let error = anyhow!("refused").context("could not ask");
        assert_eq!(causes(&error), "could not ask: refused");
    }

    #[test]
    fn what_a_terminal_obeys_is_spelled_out_and_the_rest_is_as_it_was() {
        assert_eq!(line("\u{1b}[31mred\0\n"), r"\u{1b}[31mred\u{0}\n");
        assert_eq!(lines("one\ntwo\r\u{9b}x"), "one\ntwo\\r\\u{9b}x");
        assert_eq!(line("a\u{202e}b"), r"a\u{202e}b");
        for plain in ["zürich \\ \"quoted\"", "40 → 27 %", ""] {
            assert!(matches!(line(plain), Cow::Borrowed(same) if same == plain));
        }
    }
}
