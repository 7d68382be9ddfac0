//! A JSON reader that keeps an explicit stack, notices doubled fields, and complains in the words of Go's
//! `encoding/json`, which are the ones that clients of Kubernetes know.

use serde_json::{Map, Number, Value};

use super::{MAX_DEPTH, MAX_DUPLICATES};
use crate::api::Body;
use crate::refusal::Findings;

/// Reads one JSON value and nothing after it. Of doubled fields the last counts.
pub(super) fn read(bytes: &[u8]) -> Result<Body, String> {
    let mut reader = Reader { bytes, at: 0, open: Vec::new(), duplicates: Findings::default() };
    let value = reader.document()?;
    Ok(Body { value, duplicates: reader.duplicates.into_told() })
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Objects and lists that are not closed yet, the outermost first.
    open: Vec<Open>,
    duplicates: Findings<String>,
}

enum Open {
    /// The fields so far, and the name of the one being read.
    Object(Map<String, Value>, String),
    Array(Vec<Value>),
}

const END: &str = "unexpected end of JSON input";

impl Reader<'_> {
    fn document(&mut self) -> Result<Value, String> {
        loop {
            // Either a whole value, or the start of an object or list that has content.
            let Some(mut value) = self.begin_value()? else { continue };
            loop {
                value = match self.open.pop() {
                    None => return self.end_of_input().map(|()| value),
                    Some(Open::Array(mut items)) => {
                        items.push(value);
                        match self.significant()? {
                            b',' => {
                                self.open.push(Open::Array(items));
                                break;
                            }
                            b']' => Value::Array(items),
                            other => return Err(unexpected(other, "after array element")),
                        }
                    }
                    Some(Open::Object(mut map, key)) => {
                        map.insert(key, value);
                        match self.significant()? {
                            b',' => {
                                let quote = self.significant()?;
                                self.begin_field(map, quote)?;
                                break;
                            }
                            b'}' => Value::Object(map),
                            other => return Err(unexpected(other, "after object key:value pair")),
                        }
                    }
                };
            }
        }
    }

    fn begin_value(&mut self) -> Result<Option<Value>, String> {
        let first = self.significant()?;
        if matches!(first, b'{' | b'[') && self.open.len() >= MAX_DEPTH {
            return Err(unexpected(first, "exceeded max depth"));
        }
        match first {
            b'{' => match self.significant()? {
                b'}' => Ok(Some(Value::Object(Map::new()))),
                quote => self.begin_field(Map::new(), quote).map(|()| None),
            },
            b'[' => {
                let next = self.significant()?;
                if next == b']' {
                    return Ok(Some(Value::Array(Vec::new())));
                }
                self.at -= 1;
                self.open.push(Open::Array(Vec::new()));
                Ok(None)
            }
            b'"' => self.string().map(|text| Some(Value::String(text))),
            b'-' | b'0'..=b'9' => self.number(first).map(Some),
            b't' => self.literal("true").map(|()| Some(Value::Bool(true))),
            b'f' => self.literal("false").map(|()| Some(Value::Bool(false))),
            b'n' => self.literal("null").map(|()| Some(Value::Null)),
            other => Err(unexpected(other, "looking for beginning of value")),
        }
    }

    /// Reads `"key":` and opens the object for its value.
    fn begin_field(&mut self, map: Map<String, Value>, quote: u8) -> Result<(), String> {
        if quote != b'"' {
            return Err(unexpected(quote, "looking for beginning of object key string"));
        }
        let key = self.string()?;
        match self.significant()? {
            b':' => {}
            other => return Err(unexpected(other, "after object key")),
        }
        if map.contains_key(&key) && self.duplicates.told().len() < MAX_DUPLICATES {
            let open = &self.open;
            self.duplicates.tell_once(|| path(open, &key));
        }
        self.open.push(Open::Object(map, key));
        Ok(())
    }

    /// The next byte that is not white space.
    fn significant(&mut self) -> Result<u8, String> {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.bytes.get(self.at) {
            self.at += 1;
        }
        self.next()
    }

    fn next(&mut self) -> Result<u8, String> {
        let byte = self.bytes.get(self.at).copied().ok_or(END)?;
        self.at += 1;
        Ok(byte)
    }

    fn end_of_input(&mut self) -> Result<(), String> {
        self.significant().map_or(Ok(()), |byte| Err(unexpected(byte, "after top-level value")))
    }

    /// The rest of a word whose first letter has been read.
    fn literal(&mut self, word: &str) -> Result<(), String> {
        for expected in word.bytes().skip(1) {
            let found = self.next()?;
            if found != expected {
                let expected = char::from(expected);
                return Err(unexpected(found, &format!("in literal {word} (expecting '{expected}')")));
            }
        }
        Ok(())
    }

    fn number(&mut self, first: u8) -> Result<Value, String> {
        let start = self.at - 1;
        let mut digit = first;
        if first == b'-' {
            digit = self.next()?;
            if !digit.is_ascii_digit() {
                return Err(unexpected(digit, "in numeric literal"));
            }
        }
        // Nothing follows a leading zero; a digit there is somebody else's surprise.
        if digit != b'0' {
            self.digits();
        }
        let mut whole = true;
        if self.bytes.get(self.at) == Some(&b'.') {
            whole = false;
            self.at += 1;
            self.at_least_one_digit("after decimal point in numeric literal")?;
        }
        if let Some(b'e' | b'E') = self.bytes.get(self.at) {
            whole = false;
            self.at += 1;
            if let Some(b'+' | b'-') = self.bytes.get(self.at) {
                self.at += 1;
            }
            self.at_least_one_digit("in exponent of numeric literal")?;
        }
        let text = str::from_utf8(&self.bytes[start..self.at]).unwrap_or_default();
        if whole && let Ok(integer) = text.parse::<i64>() {
            return Ok(integer.into());
        }
        let too_large = || format!("json: cannot unmarshal number {text} into Go value of type float64");
        text.parse().ok().and_then(number).ok_or_else(too_large)
    }

    fn digits(&mut self) {
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
    }

    fn at_least_one_digit(&mut self, place: &str) -> Result<(), String> {
        let found = self.next()?;
        if !found.is_ascii_digit() {
            return Err(unexpected(found, place));
        }
        self.digits();
        Ok(())
    }

    /// The rest of a text whose opening quote has been read.
    fn string(&mut self) -> Result<String, String> {
        let mut text = String::new();
        loop {
            let start = self.at;
            while self.bytes.get(self.at).is_some_and(|byte| !matches!(byte, b'"' | b'\\' | ..0x20)) {
                self.at += 1;
            }
            push_utf8(&mut text, &self.bytes[start..self.at]);
            match self.next()? {
                b'"' => return Ok(text),
                b'\\' => text.push(self.escape()?),
                control => return Err(unexpected(control, "in string literal")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, String> {
        Ok(match self.next()? {
            same @ (b'"' | b'\\' | b'/') => char::from(same),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let high = self.hex()?;
                self.surrogates(high)?
            }
            other => return Err(unexpected(other, "in string escape code")),
        })
    }

    /// The character that `\uXXXX`, and perhaps a second one behind it, stand for. Half a pair is replaced.
    fn surrogates(&mut self, high: u32) -> Result<char, String> {
        let after_high = self.at;
        if (0xD800..0xDC00).contains(&high) && self.bytes[self.at..].starts_with(b"\\u") {
            self.at += 2;
            let low = self.hex()?;
            if (0xDC00..0xE000).contains(&low) {
                let code = 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
                return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            // Not its other half: read it again as a character of its own.
            self.at = after_high;
        }
        Ok(char::from_u32(high).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    fn hex(&mut self) -> Result<u32, String> {
        let mut code = 0;
        for _ in 0..4 {
            let found = self.next()?;
            let digit = char::from(found).to_digit(16);
            code = code * 16 + digit.ok_or_else(|| unexpected(found, "in \\u hexadecimal character escape"))?;
        }
        Ok(code)
    }
}

/// The path of a field of the object that is about to be opened again.
fn path(open: &[Open], key: &str) -> String {
    let mut path = String::new();
    for open in open {
        match open {
            Open::Object(_, key) if path.is_empty() => path.push_str(key),
            Open::Object(_, key) => path.extend([".", key]),
            Open::Array(items) => path.push_str(&format!("[{}]", items.len())),
        }
    }
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// A float as the original shows it: without a fraction it is a whole number. `None` if it is no number.
pub(super) fn number(float: f64) -> Option<Value> {
    // Up to here every whole number has a float of its own.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if float.fract() == 0.0 && float.abs() <= EXACT {
        return Some(Value::from(float as i64));
    }
    Number::from_f64(float).map(Value::Number)
}

/// Appends bytes, replacing each that is not part of a character.
fn push_utf8(text: &mut String, bytes: &[u8]) {
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
}

fn unexpected(byte: u8, place: &str) -> String {
    // The original takes the byte for a character, even in the middle of one.
    let shown = match char::from(byte) {
        '\'' => "\\'".to_owned(),
        '"' => "\"".to_owned(),
        '\\' => "\\\\".to_owned(),
        '\n' => "\\n".to_owned(),
        '\r' => "\\r".to_owned(),
        '\t' => "\\t".to_owned(),
        '\u{7}' => "\\a".to_owned(),
        '\u{8}' => "\\b".to_owned(),
        '\u{b}' => "\\v".to_owned(),
        '\u{c}' => "\\f".to_owned(),
        c @ ('\0'..' ' | '\u{7f}') => format!("\\x{:02x}", u32::from(c)),
        c @ ('\u{80}'..='\u{a0}' | '\u{ad}') => format!("\\u{:04x}", u32::from(c)),
        c => c.to_string(),
    };
    format!("invalid character '{shown}' {place}")
}
