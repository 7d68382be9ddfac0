//! What can be the name of an object.

/// Whether Kubernetes would take it for the name of an object. Whoever asks for one by any other name is not even
/// answered that there is none: the request cannot be made.
pub fn is_name(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
    !text.is_empty() && text.len() <= 253 && text.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_asked_for_is_no_name() {
        for name in ["t", "my-template", "1.2"] {
            assert!(is_name(name), "{name}");
        }
        for other in ["", " ", "my template", "My", "a/b", "a_b", "ä", &"a".repeat(254)] {
            assert!(!is_name(other), "{other}");
        }
    }
}
