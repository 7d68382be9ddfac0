//! HTTP answers: status, headers, body.

use axum::body::Body;
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue, WARNING};
use http::{HeaderMap, Response, StatusCode};
use serde_json::Value;

use super::negotiate::{Accepted, Encoding, is_person};
use super::render::encoded;
use crate::refusal::Refusal;

/// Name of the header that ties an answer to the server's log.
const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");
const NOSNIFF: HeaderName = HeaderName::from_static("x-content-type-options");
/// Warnings beyond this are dropped, as the original does: headers are limited in size.
const WARNINGS_MAX: usize = 4 * 1024;

/// JSON or YAML that is already text.
pub(super) fn text(code: u16, encoding: Encoding, body: Bytes) -> Response<Body> {
    let content_type = match encoding {
        Encoding::Json => "application/json",
        Encoding::Yaml => "application/yaml",
    };
    with_type(code, HeaderValue::from_static(content_type), body)
}

/// A value.
pub(super) fn value(code: u16, accepted: Accepted, value: &Value) -> Result<Response<Body>, Refusal> {
    Ok(text(code, accepted.encoding, encoded(value, accepted)?))
}

/// A body of any type.
pub(super) fn with_type(code: u16, content_type: HeaderValue, body: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(body.into());
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

/// Plain text, as `/healthz` and unknown paths answer.
pub(super) fn plain(code: u16, body: impl Into<Body>) -> Response<Body> {
    let mut response = with_type(code, HeaderValue::from_static("text/plain; charset=utf-8"), body);
    response.headers_mut().insert(NOSNIFF, HeaderValue::from_static("nosniff"));
    response
}

/// The answer for a path behind which there is nothing.
pub(super) fn page_not_found() -> Response<Body> {
    plain(404, "404 page not found\n")
}

/// A refusal, in YAML if that is what the client reads.
pub(super) fn refused(refusal: &Refusal, accepted: Accepted) -> Response<Body> {
    let status = refusal.to_status();
    let body = encoded(&status, accepted).unwrap_or_else(|_| Bytes::from(status.to_string()));
    let mut response = text(refusal.code, accepted.encoding, body);
    let seconds = refusal.details.as_ref().map_or(0, |details| details.retry_after_seconds);
    if seconds > 0 {
        response.headers_mut().insert(http::header::RETRY_AFTER, seconds.into());
    }
    warn(&mut response, refusal.warnings.iter().map(String::as_str));
    response
}

/// Adds `Warning:` headers.
pub(super) fn warn<'a>(response: &mut Response<Body>, warnings: impl IntoIterator<Item = &'a str>) {
    let mut room = WARNINGS_MAX;
    let mut said: Vec<&str> = Vec::new();
    for warning in warnings {
        if said.contains(&warning) || warning.len() > room {
            continue;
        }
        room -= warning.len();
        said.push(warning);
        if let Ok(header) = HeaderValue::from_str(&format!("299 - {}", quoted(warning))) {
            response.headers_mut().append(WARNING, header);
        }
    }
}

/// A quoted string in the sense of HTTP; control characters have no place in a header.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted.push(' '),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// The headers that every answer has.
pub(super) fn finish(response: &mut Response<Body>, audit_id: &str) {
    let headers = response.headers_mut();
    if let Ok(id) = HeaderValue::from_str(audit_id) {
        headers.insert(AUDIT_ID, id);
    }
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-cache, private"));
}

/// The client's own audit id, or one made from the request's number.
pub(super) fn audit_id(headers: &HeaderMap, number: u128) -> String {
    let given = headers.get(AUDIT_ID).and_then(|id| id.to_str().ok());
    match given {
        Some(id) if !id.is_empty() => id.to_owned(),
        _ => {
            let hex = format!("{number:032x}");
            format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
        }
    }
}

/// A header's text, if it is readable.
pub(super) fn header(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// Whether the answer shall be indented.
pub(super) fn wants_pretty(pretty: Option<&str>, user_agent: &str) -> bool {
    match pretty {
        Some(text) if !text.is_empty() => matches!(text, "1" | "t" | "T" | "true" | "TRUE" | "True"),
        _ => is_person(user_agent),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_quoted_said_once_and_bounded() {
        let mut response = Response::new(Body::empty());
        let long = "x".repeat(WARNINGS_MAX);
        warn(&mut response, ["unknown field \"spec.a\"", "unknown field \"spec.a\"", "two\nlines", &long]);
        let said: Vec<&[u8]> = response.headers().get_all(WARNING).iter().map(HeaderValue::as_bytes).collect();
        assert_eq!(said, [br#"299 - "unknown field \"spec.a\"""#.as_slice(), b"299 - \"two lines\""]);
    }

    #[test]
    fn people_get_indented_answers_unless_they_say_otherwise() {
        assert!(wants_pretty(None, "curl/8.0"));
        assert!(!wants_pretty(Some("false"), "curl/8.0"));
        assert!(wants_pretty(Some("true"), "kubectl/v1.35.0"));
        assert!(!wants_pretty(None, "kubectl/v1.35.0"));
    }

    #[test]
    fn an_audit_id_looks_like_a_uid_and_a_given_one_is_kept() {
        let mut headers = HeaderMap::new();
        assert_eq!(audit_id(&headers, 1), "00000000-0000-0000-0000-000000000001");
        headers.insert(AUDIT_ID, HeaderValue::from_static("mine"));
        assert_eq!(audit_id(&headers, 1), "mine");
        let long = "x".repeat(1000);
        headers.insert(AUDIT_ID, HeaderValue::from_str(&long).expect("a header"));
        assert_eq!(audit_id(&headers, 1), long, "however long it is");
    }
}
