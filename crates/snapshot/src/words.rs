//! Words: how names are spelled so that a space always separates two fields.
//!
//! Kafka's topics need none of it. Racks, hosts and directories are free text, so bytes that would
//! break a line are written as `%` and two hexadecimal digits, and a name of no characters as `-`.

use std::borrow::Cow;

const NOTHING: &str = "-";

/// The fields of a line.
pub(crate) struct Words<'l> {
    rest: Option<&'l str>,
}

impl<'l> Words<'l> {
    pub(crate) fn of(line: &'l str) -> Self {
        Words { rest: Some(line) }
    }
}

impl<'l> Iterator for Words<'l> {
    type Item = &'l str;

    // Fields are short: looking at each byte is faster than any cleverer search.
    fn next(&mut self) -> Option<&'l str> {
        let (word, rest) = cut(self.rest?, b' ');
        self.rest = rest;
        Some(word)
    }
}

/// What stands before the first `separator`, and what stands after it if there is one.
pub(crate) fn cut(text: &str, separator: u8) -> (&str, Option<&str>) {
    debug_assert!(separator.is_ascii());
    match text.bytes().position(|byte| byte == separator) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    }
}

/// The name that `word` spells, unless it spells none.
pub(crate) fn decode(word: &str) -> Option<Cow<'_, str>> {
    if word == NOTHING {
        return Some(Cow::Borrowed(""));
    }
    if word.is_empty() {
        return None;
    }
    if !word.contains('%') {
        return Some(Cow::Borrowed(word));
    }
    let mut bytes = Vec::with_capacity(word.len());
    let mut rest = word.bytes();
    while let Some(byte) = rest.next() {
        let byte = match byte {
            b'%' => hex(rest.next()?)? << 4 | hex(rest.next()?)?,
            plain => plain,
        };
        bytes.push(byte);
    }
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}

/// How `name` is spelled.
pub(crate) fn encode(name: &str) -> Cow<'_, str> {
    if name.is_empty() {
        return Cow::Borrowed(NOTHING);
    }
    let breaks = |byte: u8| byte <= b' ' || byte == b'%' || byte == 0x7f;
    if name != NOTHING && !name.bytes().any(breaks) {
        return Cow::Borrowed(name);
    }
    let mut word = String::with_capacity(name.len() + 8);
    for c in name.chars() {
        match u8::try_from(c) {
            Ok(byte) if byte.is_ascii() && (breaks(byte) || name == NOTHING) => {
                word.push_str(&format!("%{byte:02X}"));
            }
            _ => word.push(c),
        }
    }
    Cow::Owned(word)
}

/// Whether the name is spelled as it is, which is all that the key of a note may be.
pub(crate) fn is_plain(name: &str) -> bool {
    encode(name) == name
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_are_spelled_plainly_where_they_can_be() {
        assert_eq!(encode("eu-west-1a"), "eu-west-1a");
        assert_eq!(encode("zürich"), "zürich");
        assert_eq!(encode("/var/lib/kafka data/0"), "/var/lib/kafka%20data/0");
        assert_eq!(encode("100%"), "100%25");
        assert_eq!(encode(""), "-");
        assert_eq!(encode("-"), "%2D");
        assert!(is_plain("eu-west-1a") && is_plain("zürich"));
        for name in ["", "-", "100%", "a b", "a\tb", "a\u{7f}"] {
            assert!(!is_plain(name), "{name:?}");
        }
    }

    #[test]
    fn what_spells_nothing_is_refused() {
        for word in ["", "%", "%2", "%zz", "%FF", "%+1"] {
            assert_eq!(decode(word), None, "{word}");
        }
    }

    proptest! {
        #[test]
        fn every_name_survives(name in ".*") {
            let word = encode(&name).into_owned();
            prop_assert!(!word.contains([' ', '\n']));
            prop_assert_eq!(decode(&word), Some(Cow::from(name.as_str())));
        }
    }
}
