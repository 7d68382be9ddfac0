//! Forms of names. Each check answers what is wrong, in the original's words; nothing is fine.

use std::net::IpAddr;

const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const LABEL_1035: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const QUALIFIED: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const CONFIG_KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
const ENV_NAME: &str =
    "a valid environment variable name must consist only of printable ASCII characters other than '='";
const IP: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";

fn too_long(longest: usize) -> String {
    format!("must be no more than {longest} characters")
}

fn lower(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

fn is_label(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.first().is_some_and(|&b| lower(b))
        && bytes.last().is_some_and(|&b| lower(b))
        && bytes.iter().all(|&b| lower(b) || b == b'-')
}

/// Characters of label keys and values: alphanumeric at both ends, `-_.` within.
fn is_name(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(b))
}

/// A DNS label, as containers and volumes are named.
pub(super) fn label(text: &str) -> Vec<String> {
    let mut why = Vec::new();
    if text.len() > 63 {
        why.push(too_long(63));
    }
    if !is_label(text) {
        let only_dots = text.split('.').all(is_label);
        why.push(if only_dots { "must not contain dots".to_owned() } else { LABEL.to_owned() });
    }
    why
}

/// A DNS label that starts with a letter, as services are named.
pub(super) fn label_1035(text: &str) -> Vec<String> {
    let mut why = Vec::new();
    if text.len() > 63 {
        why.push(too_long(63));
    }
    if !is_label(text) || !text.as_bytes()[0].is_ascii_lowercase() {
        why.push(LABEL_1035.to_owned());
    }
    why
}

/// A DNS name, as most objects are named.
pub(super) fn subdomain(text: &str) -> Vec<String> {
    let mut why = Vec::new();
    if text.len() > 253 {
        why.push(too_long(253));
    }
    if !text.split('.').all(is_label) {
        why.push(SUBDOMAIN.to_owned());
    }
    why
}

/// `name` or `example.com/name`.
pub(super) fn qualified(text: &str) -> Vec<String> {
    let mut why = Vec::new();
    let name = match text.split_once('/') {
        None => text,
        Some((prefix, name)) => {
            if prefix.is_empty() {
                why.push("prefix part must be non-empty".to_owned());
            } else {
                why.extend(subdomain(prefix).into_iter().map(|w| format!("prefix part {w}")));
            }
            name
        }
    };
    if name.is_empty() {
        why.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        why.push(format!("name part {}", too_long(63)));
    }
    if !is_name(name) {
        why.push(QUALIFIED.to_owned());
    }
    why
}

/// The value of a label.
pub(super) fn label_value(text: &str) -> Vec<String> {
    let mut why = Vec::new();
    if text.len() > 63 {
        why.push(too_long(63));
    }
    if !text.is_empty() && !is_name(text) {
        why.push(LABEL_VALUE.to_owned());
    }
    why
}

/// A key of a config map or secret, which becomes a file name.
pub(super) fn config_key(text: &str) -> Vec<String> {
    let mut why = Vec::new();
    if text.len() > 253 {
        why.push(too_long(253));
    }
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b)) {
        why.push(CONFIG_KEY.to_owned());
    }
    match text {
        "." => why.push("must not be '.'".to_owned()),
        ".." => why.push("must not be '..'".to_owned()),
        _ if text.starts_with("..") => why.push("must not start with '..'".to_owned()),
        _ => {}
    }
    why
}

/// The name of a port.
pub(super) fn port(text: &str) -> Vec<String> {
    let mut why = Vec::new();
    if text.len() > 15 {
        why.push(too_long(15));
    }
    if !text.bytes().all(|b| lower(b) || b == b'-') {
        why.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned());
    }
    if !text.bytes().any(|b| b.is_ascii_lowercase()) {
        why.push("must contain at least one letter (a-z)".to_owned());
    }
    if text.contains("--") {
        why.push("must not contain consecutive hyphens".to_owned());
    }
    if text.starts_with('-') || text.ends_with('-') {
        why.push("must not begin or end with a hyphen".to_owned());
    }
    why
}

/// The name of an environment variable.
pub(super) fn environment(text: &str) -> Option<&'static str> {
    let printable = text.bytes().all(|b| (0x20..0x7f).contains(&b) && b != b'=');
    (!printable || text.is_empty()).then_some(ENV_NAME)
}

/// An IP address.
pub(super) fn ip(text: &str) -> Option<&'static str> {
    text.parse::<IpAddr>().is_err().then_some(IP)
}

/// An IP address in a field that is older than the rule that no number in it begins with a zero.
pub(super) fn legacy_ip(text: &str) -> Option<&'static str> {
    let Some(dot) = text.find('.') else { return ip(text) };
    // The last part of an IPv6 address may be written as an IPv4 one.
    let (before, numbers) = text.split_at(text[..dot].rfind(':').map_or(0, |colon| colon + 1));
    let plain = |number: &str| match number.trim_start_matches('0') {
        "" if !number.is_empty() => "0".to_owned(),
        rest => rest.to_owned(),
    };
    ip(&format!("{before}{}", numbers.split('.').map(plain).collect::<Vec<_>>().join(".")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_fields_take_numbers_that_begin_with_zeros() {
        for text in ["10.0.0.1", "010.000.000.001", "::ffff:010.0.0.01", "2001:db8::1", "0.0.0.0"] {
            assert_eq!(legacy_ip(text), None, "{text}");
        }
        for text in ["", "...", "10.0.0", "256.0.0.1", "010.0.0.0.1", "2001:db8::00001", "a.b.c.d"] {
            assert_eq!(legacy_ip(text), Some(IP), "{text}");
        }
        assert_eq!(ip("010.0.0.1"), Some(IP), "others do not");
    }
}
