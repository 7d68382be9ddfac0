//! Config maps and secrets: keys, size, and what never changes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{Errors, entries, names, text};
use crate::object::Object;
use crate::refusal::Fault;

/// All values of one object together.
const LARGEST: usize = 1 << 20;
const FROZEN: &str = "field is immutable when `immutable` is set";

pub(super) fn config_map(errors: &mut Errors, map: &Value, old: Option<&Value>) {
    let mut size = 0;
    for (key, value) in entries(map.get("data")) {
        check_key(errors, key);
        if map.at(&["binaryData", key]).is_some() {
            errors.invalid(&format!("data[{key}]"), &json!(key), "duplicate of key present in binaryData");
        }
        size += value.as_str().map_or(0, str::len);
    }
    for (key, value) in entries(map.get("binaryData")) {
        for why in names::config_key(key) {
            errors.invalid(&format!("binaryData[{key}]"), &json!(key), &why);
        }
        size += value.as_str().map_or(0, decoded_length);
    }
    if size > LARGEST {
        // The original points at the object as a whole, and this is how that looks.
        errors.add("[]", Fault::TooLong, &format!("may not be more than {LARGEST} bytes"));
    }
    if let Some(old) = old {
        frozen(errors, map, old, &["data", "binaryData"]);
    }
}

pub(super) fn secret(errors: &mut Errors, secret: &Value, old: Option<&Value>) {
    let mut size = 0;
    for (key, value) in entries(secret.get("data")) {
        check_key(errors, key);
        size += value.as_str().map_or(0, decoded_length);
    }
    if size > LARGEST {
        errors.add("data", Fault::TooLong, &format!("may not be more than {LARGEST} bytes"));
    }
    contents_by_type(errors, secret);
    if let Some(old) = old {
        errors.unchanged(secret, old, "type");
        frozen(errors, secret, old, &["data"]);
    }
}

fn check_key(errors: &mut Errors, key: &str) {
    for why in names::config_key(key) {
        errors.invalid(&format!("data[{key}]"), &json!(key), &why);
    }
}

/// What a secret of a known type holds.
fn contents_by_type(errors: &mut Errors, secret: &Value) {
    let data = |key: &str| secret.at(&["data", key]).and_then(Value::as_str);
    let ty = text(secret, "type");
    let keys: &[&str] = match ty {
        "kubernetes.io/tls" => &["tls.crt", "tls.key"],
        "kubernetes.io/dockerconfigjson" => &[".dockerconfigjson"],
        "kubernetes.io/dockercfg" => &[".dockercfg"],
        "kubernetes.io/ssh-auth" => &["ssh-privatekey"],
        // One of the two is enough.
        "kubernetes.io/basic-auth" if data("username").is_none() && data("password").is_none() => {
            &["username", "password"]
        }
        "kubernetes.io/service-account-token" => {
            const ACCOUNT: &str = "kubernetes.io/service-account.name";
            let account = secret.at(&["metadata", "annotations", ACCOUNT]).and_then(Value::as_str);
            if account.is_none_or(str::is_empty) {
                errors.required(&format!("metadata.annotations[{ACCOUNT}]"), "");
            }
            return;
        }
        _ => return,
    };
    for key in keys {
        if data(key).is_none() {
            errors.required(&format!("data[{key}]"), "");
        }
    }
    if let ("kubernetes.io/dockerconfigjson" | "kubernetes.io/dockercfg", [key]) = (ty, keys)
        && let Some(content) = data(key).and_then(|content| STANDARD.decode(content).ok())
        && let Err(error) = serde_json::from_slice::<serde_json::Map<String, Value>>(&content)
    {
        errors.invalid(&format!("data[{key}]"), &json!("<secret contents redacted>"), &error.to_string());
    }
}

/// Whoever froze an object meant it: neither the contents nor the freezing can be changed.
fn frozen(errors: &mut Errors, new: &Value, old: &Value, fields: &[&str]) {
    if old.get("immutable") != Some(&Value::Bool(true)) {
        return;
    }
    if new.get("immutable") != Some(&Value::Bool(true)) {
        errors.forbidden("immutable", FROZEN);
    }
    for field in fields {
        if new.get(field) != old.get(field) {
            errors.forbidden(field, FROZEN);
        }
    }
}

/// The length of what base64 text stands for; decoding has checked that it is base64.
fn decoded_length(text: &str) -> usize {
    text.len() / 4 * 3 - text.bytes().rev().take_while(|&b| b == b'=').count().min(text.len() / 4 * 3)
}
