//! Reading what Gson wrote.

use std::borrow::Cow;

use serde::de::DeserializeOwned;

/// Reads a body. Nesting is limited by serde_json (128 levels), size by whoever collected the bytes.
pub fn from_slice<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, serde_json::Error> {
    serde_json::from_slice(&quote_bare_words(bytes))
}

/// Puts quotes around the words that are numbers to Java and nothing to JSON. What stands in strings stays.
fn quote_bare_words(bytes: &[u8]) -> Cow<'_, [u8]> {
    const WORDS: [&[u8]; 3] = [b"NaN", b"-Infinity", b"Infinity"];
    let mut out: Option<Vec<u8>> = None;
    let mut copied = 0;
    let mut in_string = false;
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if in_string => at += 1,
            b'"' => in_string = !in_string,
            b'N' | b'I' | b'-' if !in_string => {
                if let Some(word) = WORDS.iter().find(|word| bytes[at..].starts_with(word)) {
                    let out = out.get_or_insert_with(|| Vec::with_capacity(bytes.len() + 64));
                    out.extend_from_slice(&bytes[copied..at]);
                    out.push(b'"');
                    out.extend_from_slice(word);
                    out.push(b'"');
                    at += word.len();
                    copied = at;
                    continue;
                }
            }
            _ => {}
        }
        at += 1;
    }
    match out {
        None => Cow::Borrowed(bytes),
        Some(mut out) => {
            out.extend_from_slice(&bytes[copied..]);
            Cow::Owned(out)
        }
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
