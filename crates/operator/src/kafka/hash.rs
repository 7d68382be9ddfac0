//! Short names for long texts: annotations that change exactly when something does.

use std::fmt::Write;

use serde_json::Value;
use sha2::{Digest, Sha256};

/// Sixteen hexadecimal digits of the SHA-256 of these parts, in this order.
pub(super) fn of<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        // With its length, so that no part can be mistaken for two.
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part);
    }
    hasher.finalize().iter().take(8).fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The same for a text.
pub(super) fn of_text(text: &str) -> String {
    of([text.as_bytes()])
}

/// The same for an object, by its JSON with sorted keys, as a `Value` has them.
pub(super) fn of_value(value: &Value) -> String {
    of_text(&value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_kept_apart() {
        assert_eq!(of_text("a"), of([&b"a"[..]]));
        assert_ne!(of([&b"ab"[..], b"c"]), of([&b"a"[..], b"bc"]));
        assert_eq!(of_text("").len(), 16);
    }

    /// These are written on objects: were they to change, all brokers would be restarted by the next version.
    #[test]
    fn an_object_is_known_by_its_sorted_text() {
        let value = serde_json::json!({"b": [1, {"d": null, "c": "x"}], "a": "y"});
        assert_eq!(of_value(&value), of_text(r#"{"a":"y","b":[1,{"c":"x","d":null}]}"#));
    }
}
