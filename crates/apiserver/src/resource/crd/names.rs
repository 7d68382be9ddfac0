//! Names in a definition: DNS labels, mostly.

use serde_json::Value;

use crate::refusal::{Fault, FieldError};

const LABEL: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an \
                     alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', \
                     regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or \
                         '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used \
                         for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

/// What keeps a text from being a DNS label that starts with a letter.
pub(super) fn label(text: &str) -> Vec<String> {
    let mut why = Vec::new();
    if text.len() > 63 {
        why.push("must be no more than 63 characters".into());
    }
    if !is_label(text) || !text.starts_with(|c: char| c.is_ascii_lowercase()) {
        why.push(LABEL.into());
    }
    why
}

/// What keeps a text from being a DNS name.
pub(super) fn subdomain(text: &str) -> Vec<String> {
    let mut why = Vec::new();
    if text.len() > 253 {
        why.push("must be no more than 253 characters".into());
    }
    if !text.split('.').all(is_label) {
        why.push(SUBDOMAIN.into());
    }
    why
}

fn is_label(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    !text.is_empty() && !text.starts_with('-') && !text.ends_with('-') && text.bytes().all(inner)
}

/// Checks `spec.names`, where the main names are required, or the accepted ones, which come later.
pub(super) fn check(names: Option<&Value>, path: &str, required: bool, errors: &mut Vec<FieldError>) {
    let text = |key: &str| names.and_then(|n| n.get(key)).and_then(Value::as_str).unwrap_or_default();
    let main = ["plural", "singular", "kind", "listKind"];
    if required {
        for key in main.iter().filter(|key| text(key).is_empty()) {
            errors.push(FieldError::new(format!("{path}.{key}"), Fault::Required, ""));
        }
    }
    for key in main {
        let value = text(key);
        let (mixed_case, words) = match key {
            "kind" | "listKind" => (value.to_lowercase(), "may have mixed case, but should otherwise match: "),
            _ => (value.to_owned(), ""),
        };
        let why = label(&mixed_case).join(",");
        if !value.is_empty() && !why.is_empty() {
            let at = format!("{path}.{key}");
            errors.push(FieldError::with_value(at, Fault::Invalid, &value.into(), format!("{words}{why}")));
        }
    }
    list(names, path, "shortNames", errors);
    if !text("kind").is_empty() && text("kind") == text("listKind") {
        let detail = "kind and listKind may not be the same";
        let at = format!("{path}.listKind");
        errors.push(FieldError::with_value(at, Fault::Invalid, &text("listKind").into(), detail));
    }
    list(names, path, "categories", errors);
}

fn list(names: Option<&Value>, path: &str, key: &str, errors: &mut Vec<FieldError>) {
    let values = names.and_then(|n| n.get(key)).and_then(Value::as_array).into_iter().flatten();
    for (index, value) in values.enumerate() {
        let why = label(value.as_str().unwrap_or_default()).join(",");
        if !why.is_empty() {
            errors.push(FieldError::with_value(format!("{path}.{key}[{index}]"), Fault::Invalid, value, why));
        }
    }
}
