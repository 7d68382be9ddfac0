//! Regular expressions that name topics. They are Java's, so nothing here compiles them: whoever matches with them knows
//! which expressions it can. Here only what Java would refuse outright is refused, in Java's words.

use std::fmt;

use super::Unfit;

/// A regular expression over topic names, as the client wrote it. It has to match whole names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TopicPattern(String);

impl TopicPattern {
    /// Takes a pattern whose brackets match and whose operators have something to repeat.
    pub fn new(text: &str) -> Result<Self, Unfit> {
        match complaint(text) {
            Some((what, index)) => Err(Self::refused(text, what, index)),
            None => Ok(Self(text.to_owned())),
        }
    }

    /// The expression.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The text of the 400 for an expression that cannot be used, for whoever finds out only when compiling it.
    pub fn refusal(&self, what: &str) -> Unfit {
        Self::refused(&self.0, what, None)
    }

    /// Java points at the place: the message, the pattern, and a caret below it.
    fn refused(pattern: &str, what: &str, index: Option<usize>) -> Unfit {
        let Some(index) = index else { return Unfit(format!("{what}\n{pattern}")) };
        let mut text = format!("{what} near index {index}\n{pattern}");
        if index < pattern.chars().count() {
            text.push('\n');
            text.push_str(&" ".repeat(index));
            text.push('^');
        }
        Unfit(text)
    }
}

impl fmt::Display for TopicPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What Java would complain about first, and the index it would name.
fn complaint(pattern: &str) -> Option<(&'static str, Option<usize>)> {
    let chars: Vec<char> = pattern.chars().collect();
    let mut groups = 0_usize;
    let mut at = 0;
    // Whether there is something before that a repetition could repeat.
    let mut repeatable = false;
    while at < chars.len() {
        match chars[at] {
            '\\' if at + 1 == chars.len() => return Some(("Unexpected internal error", Some(chars.len()))),
            '\\' if chars[at + 1] == 'Q' => {
                at = quoted_end(&chars, at + 2);
                repeatable = true;
                continue;
            }
            '\\' => {
                at += 1;
                repeatable = true;
            }
            '[' => {
                let Some(end) = class_end(&chars, at) else {
                    return Some(("Unclosed character class", Some(chars.len() - 1)));
                };
                at = end;
                repeatable = true;
            }
            '(' => {
                groups += 1;
                repeatable = false;
                // The mark of a special group, such as `(?!`, repeats nothing.
                if chars.get(at + 1) == Some(&'?') {
                    at += 1;
                }
            }
            ')' if groups == 0 => return Some(("Unmatched closing ')'", at.checked_sub(1))),
            ')' => {
                groups -= 1;
                repeatable = true;
            }
            '|' => repeatable = false,
            '*' if !repeatable => return Some(("Dangling meta character '*'", Some(at))),
            '+' if !repeatable => return Some(("Dangling meta character '+'", Some(at))),
            '?' if !repeatable => return Some(("Dangling meta character '?'", Some(at))),
            _ => repeatable = true,
        }
        at += 1;
    }
    (groups > 0).then_some(("Unclosed group", Some(chars.len())))
}

/// The index of the bracket that closes the class at `start`; classes nest in Java.
fn class_end(chars: &[char], start: usize) -> Option<usize> {
    let mut depth = 0_usize;
    let mut at = start;
    while at < chars.len() {
        match chars[at] {
            '\\' => at += 1,
            '[' => {
                depth += 1;
                if chars.get(at + 1) == Some(&'^') {
                    at += 1;
                }
                // A bracket that comes first is one of the characters.
                if chars.get(at + 1) == Some(&']') {
                    at += 1;
                }
            }
            ']' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// The index after a quotation, which ends with `\E` or with the pattern.
fn quoted_end(chars: &[char], start: usize) -> usize {
    (start..chars.len()).find(|&at| chars[at..].starts_with(&['\\', 'E'])).map_or(chars.len(), |at| at + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(pattern: &str) -> String {
        TopicPattern::new(pattern).expect_err(pattern).to_string()
    }

    #[test]
    fn what_java_accepts_is_accepted() {
        for pattern in [
            "",
            "orders",
            "__.*",
            "(?!payments).*",
            "a|b",
            "[a-z&&[^bc]]+",
            "[]a]",
            "a{2}",
            "\\Q[(\\E",
            "a*?",
            "(a)+",
            "\\[",
        ] {
            assert_eq!(TopicPattern::new(pattern).map(|it| it.to_string()), Ok(pattern.to_owned()), "{pattern}");
        }
    }

    #[test]
    fn what_java_refuses_is_refused_in_its_words() {
        assert_eq!(refused("["), "Unclosed character class near index 0\n[\n^");
        assert_eq!(refused("ab[c"), "Unclosed character class near index 3\nab[c\n   ^");
        assert_eq!(refused("("), "Unclosed group near index 1\n(");
        assert_eq!(refused("a)"), "Unmatched closing ')' near index 0\na)\n^");
        assert_eq!(refused(")"), "Unmatched closing ')'\n)");
        assert_eq!(refused("*"), "Dangling meta character '*' near index 0\n*\n^");
        assert_eq!(refused("a|+"), "Dangling meta character '+' near index 2\na|+\n  ^");
        assert_eq!(refused("a\\"), "Unexpected internal error near index 2\na\\");
    }
}
