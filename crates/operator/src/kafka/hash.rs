//! Short names for long texts: annotations that change exactly when something does.

use std::fmt::Write;

use serde::Serialize;
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

/// The same for an object, by its JSON with sorted keys.
pub(super) fn of_object(object: &impl Serialize) -> String {
    // Objects of Kubernetes always serialise; and a `Value` sorts its keys.
    let value = serde_json::to_value(object).unwrap_or_default();
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
}
