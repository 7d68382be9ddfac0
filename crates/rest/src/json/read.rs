//! Reading what Gson wrote.

use std::io::{self, BufReader, Read};

use serde::de::DeserializeOwned;

/// What is larger is not copied for the sake of a bare word. Reading it in pieces takes longer.
const SMALL: usize = 1 << 20;

/// Reads a body. Nesting is limited by serde_json (128 levels), size by whoever collected the bytes.
pub fn from_slice<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, serde_json::Error> {
    let mut pieces = Pieces { bytes, at: 0, in_string: false, word: None };
    let first = pieces.next().unwrap_or_default();
    if first.len() == bytes.len() {
        return serde_json::from_slice(bytes);
    }
    if bytes.len() > SMALL {
        return serde_json::from_reader(BufReader::new(InPieces { piece: first, pieces }));
    }
    let mut whole = Vec::with_capacity(bytes.len() + 64);
    whole.extend_from_slice(first);
    pieces.for_each(|piece| whole.extend_from_slice(piece));
    serde_json::from_slice(&whole)
}

/// A text in pieces, with quotes around the words that are numbers to Java and nothing to JSON. What stands in strings
/// stays.
struct Pieces<'a> {
    bytes: &'a [u8],
    /// What was given out ends here.
    at: usize,
    in_string: bool,
    /// A word, quoted, that comes next.
    word: Option<&'static [u8]>,
}

impl<'a> Iterator for Pieces<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        const WORDS: [(&[u8], &[u8]); 3] =
            [(b"NaN", b"\"NaN\""), (b"-Infinity", b"\"-Infinity\""), (b"Infinity", b"\"Infinity\"")];
        if let Some(word) = self.word.take() {
            return Some(word);
        }
        let began = self.at;
        while self.at < self.bytes.len() {
            match self.bytes[self.at] {
                b'\\' if self.in_string => self.at += 1,
                b'"' => self.in_string = !self.in_string,
                b'N' | b'I' | b'-' if !self.in_string => {
                    let rest = &self.bytes[self.at..];
                    if let Some(&(word, quoted)) = WORDS.iter().find(|(word, _)| rest.starts_with(word)) {
                        let before = &self.bytes[began..self.at];
                        self.at += word.len();
                        self.word = Some(quoted);
                        return Some(before);
                    }
                }
                _ => {}
            }
            self.at += 1;
        }
        self.bytes.get(began..).filter(|rest| !rest.is_empty())
    }
}

/// The pieces one after the other.
struct InPieces<'a> {
    piece: &'a [u8],
    pieces: Pieces<'a>,
}

impl Read for InPieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.piece.is_empty() {
            match self.pieces.next() {
                Some(piece) => self.piece = piece,
                None => return Ok(0),
            }
        }
        self.piece.read(buffer)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::json::{Double, to_string};

    #[test]
    fn bare_words_are_numbers_and_texts_stay() {
        let read: Vec<Double> = from_slice(b"[NaN,Infinity,-Infinity,-1.5,null,3]").expect("readable");
        let expected = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.5, f64::NAN, 3.0].map(Double);
        assert_eq!(read, expected);
        let texts: Vec<String> = from_slice(br#"["NaN","a\"NaN","-Infinity\\"]"#).expect("readable");
        assert_eq!(texts, ["NaN", "a\"NaN", "-Infinity\\"]);
    }

    #[test]
    fn a_large_text_is_read_as_a_small_one_is() {
        let times = SMALL / 8;
        let text = format!("[{}-Infinity]", "NaN,1.5,Infinity,".repeat(times));
        let read: Vec<Double> = from_slice(text.as_bytes()).expect("readable");
        assert_eq!(read.len(), 3 * times + 1);
        assert_eq!(read[..3], [f64::NAN, 1.5, f64::INFINITY].map(Double));
        assert_eq!(read[3 * times], Double(f64::NEG_INFINITY));
        assert!(from_slice::<Vec<Double>>(&text.as_bytes()[..text.len() - 1]).is_err());
    }

    #[test]
    fn what_is_cut_or_nested_too_deep_is_an_error() {
        for bytes in [b"".as_slice(), b"[NaN", b"\"", b"{\"a\":", b"\xff", b"Na", b"[\"a\\"] {
            assert!(from_slice::<Vec<Double>>(bytes).is_err(), "{bytes:?}");
        }
        assert!(from_slice::<serde_json::Value>("[".repeat(1_000_000).as_bytes()).is_err());
    }

    proptest! {
        #[test]
        fn every_number_comes_back(values in prop::collection::vec(any::<f64>(), 0..20)) {
            let values: Vec<Double> = values.into_iter().map(Double).collect();
            let text = to_string(&values);
            prop_assert_eq!(from_slice::<Vec<Double>>(text.as_bytes()).expect("readable"), values);
        }

        #[test]
        fn every_text_comes_back(values in prop::collection::vec(any::<String>(), 0..20)) {
            let text = to_string(&values);
            prop_assert_eq!(from_slice::<Vec<String>>(text.as_bytes()).expect("readable"), values);
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = from_slice::<serde_json::Value>(&bytes);
        }
    }
}
