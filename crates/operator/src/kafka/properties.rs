//! Java's properties files, written so that every reader takes them for what they are, and read back.

use std::{collections::BTreeMap, fmt::Write};

/// Settings by key: the order of the file.
pub type Properties = BTreeMap<String, String>;

/// The lines of a file.
pub fn text(properties: &Properties) -> String {
    let mut text = String::new();
    for (key, value) in properties {
        escape(key, &mut text, true);
        text.push('=');
        escape(value, &mut text, false);
        text.push('\n');
    }
    text
}

/// Java reads such files byte by byte, so anything beyond ASCII is spelt out.
fn escape(part: &str, text: &mut String, is_key: bool) {
    for (n, character) in part.chars().enumerate() {
        match character {
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            ' ' if is_key || n == 0 => text.push_str("\\ "),
            '=' | ':' if is_key => {
                text.push('\\');
                text.push(character);
            }
            '#' | '!' if is_key && n == 0 => {
                text.push('\\');
                text.push(character);
            }
            ' '..='~' => text.push(character),
            other => {
                for unit in other.encode_utf16(&mut [0; 2]) {
                    // Writing to a string cannot fail.
                    let _ = write!(text, "\\u{unit:04x}");
                }
            }
        }
    }
}

/// Reads what [`text`] wrote. Comments and lines that it would not write are passed over.
pub fn read(text: &str) -> Properties {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(split).map(|(key, value)| (unescape(key), unescape(value))).collect()
}

fn split(line: &str) -> Option<(&str, &str)> {
    let mut escaped = false;
    for (at, character) in line.char_indices() {
        if character == '=' && !escaped {
            return Some((&line[..at], &line[at + 1..]));
        }
        escaped = character == '\\' && !escaped;
    }
    None
}

fn unescape(part: &str) -> String {
    let mut units: Vec<u16> = Vec::with_capacity(part.len());
    let mut rest = part.chars();
    while let Some(character) = rest.next() {
        let plain = match character {
            '\\' => match rest.next() {
                Some('n') => '\n',
                Some('r') => '\r',
                Some('t') => '\t',
                Some('u') => {
                    let digits: String = rest.by_ref().take(4).collect();
                    units.push(u16::from_str_radix(&digits, 16).unwrap_or_default());
                    continue;
                }
                Some(other) => other,
                None => break,
            },
            other => other,
        };
        units.extend_from_slice(plain.encode_utf16(&mut [0; 2]));
    }
    String::from_utf16_lossy(&units)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let all = [
            ("plain", "value with blanks"),
            ("odd =:key", " leading"),
            ("#no comment", "a=b:c#d"),
            ("path", "C:\\data\\"),
            ("lines", "one\ntwo\tthree"),
            ("empty", ""),
            ("letters", "é 𝄞"),
        ];
        let properties: Properties = all.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        let written = text(&properties);
        assert!(written.is_ascii());
        assert_eq!(written.lines().count(), all.len());
        assert_eq!(read(&format!("# a comment\n{written}")), properties);
    }
}
