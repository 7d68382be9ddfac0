//! Answers on the wire: codes, headers, and the forms of errors.

use axum::body::Body;
use evenkeel_rest::{
    Presentation, Refusal,
    body::{Body as _, ErrorBody},
    headers, json,
};
use http::{
    HeaderName, HeaderValue, Response, StatusCode,
    header::{CONTENT_TYPE, EXPIRES, SET_COOKIE, WWW_AUTHENTICATE},
};
use uuid::Uuid;

use crate::config::webserver::Cors;

/// Which commit this was built from, if whoever built it said so.
const COMMIT: &str = match option_env!("EVENKEEL_COMMIT") {
    Some(commit) => commit,
    None => "unknown",
};
/// When what passes by itself may be over, in seconds: that is how soon the loss of Kafka, and its return, are noticed.
const RETRY_AFTER: &str = "5";
const HTML: &str = "text/html;charset=iso-8859-1";

/// An answer of the API.
pub(super) fn of_api(code: u16, body: String, form: &Presentation, task: Option<Uuid>) -> Response<Body> {
    let schema = (form.json && form.schema).then(|| json::schema(&body));
    let mut response = plain(code, headers::content_type(form.json), body);
    set(&mut response, headers::VERSION, headers::VERSION_VALUE);
    set(&mut response, headers::COMMIT_ID, COMMIT);
    if let Some(task) = task {
        set(&mut response, headers::USER_TASK_ID, &task.to_string());
    }
    if let Some(schema) = schema {
        set(&mut response, headers::JSON_SCHEMA, &schema);
    }
    response
}

/// An answer of the API that is no result.
pub(super) fn refused(refusal: &Refusal, form: &Presentation, task: Option<Uuid>) -> Response<Body> {
    let mut response = of_api(refusal.status, error_body(refusal, form), form, task);
    come_again(&mut response);
    response
}

/// Says when to come again, if it was refused for what passes by itself. Not to whoever names a task that is over: that
/// has its answer, and the same request would only ever bring the same.
pub(super) fn come_again(response: &mut Response<Body>) {
    if response.status() == StatusCode::SERVICE_UNAVAILABLE {
        set(response, "retry-after", RETRY_AFTER);
    }
}

/// The body of a refusal.
pub(super) fn error_body(refusal: &Refusal, form: &Presentation) -> String {
    let body = ErrorBody::from(refusal);
    if form.json { body.json() } else { body.text() }
}

/// Begins a session.
pub(super) fn begin_session(response: &mut Response<Body>, session: &str, path: &str) {
    let cookie = headers::set_cookie(session).replace("Path=/", &format!("Path={path}"));
    append(response, SET_COOKIE, &cookie);
    append(response, EXPIRES, headers::EXPIRES_VALUE);
}

/// Nobody we know: 401, as Jetty says it.
pub(super) fn unknown_visitor() -> Response<Body> {
    let mut response = plain(401, HTML, page(401, "Unauthorized"));
    append(&mut response, WWW_AUTHENTICATE, headers::CHALLENGE);
    response
}

/// Somebody who may not: 403, as Jetty says it.
pub(super) fn not_allowed() -> Response<Body> {
    plain(403, HTML, page(403, "!role"))
}

/// A path outside of the API.
pub(super) fn nothing_here() -> Response<Body> {
    plain(404, HTML, page(404, "Not Found"))
}

/// A code and nothing else.
pub(super) fn empty(code: u16) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status(code);
    response
}

/// A text.
pub(super) fn plain(code: u16, content_type: &str, body: String) -> Response<Body> {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status(code);
    append(&mut response, CONTENT_TYPE, content_type);
    response
}

/// What pages of other origins need to see; `asks` for the answer to a request about what is allowed.
pub(super) fn allow_others(response: &mut Response<Body>, cors: &Cors, asks: bool) {
    set(response, "access-control-allow-origin", &cors.origin);
    set(response, "access-control-expose-headers", &cors.headers);
    set(response, "access-control-allow-credentials", "true");
    if asks {
        set(response, "access-control-allow-methods", &cors.methods);
        set(response, "access-control-allow-headers", &cors.headers);
        set(response, "access-control-max-age", "1728000");
    }
}

/// Sets a header; a value that cannot be one is left out.
pub(super) fn set(response: &mut Response<Body>, name: &str, value: &str) {
    if let Ok(name) = HeaderName::from_bytes(name.as_bytes()) {
        append(response, name, value);
    }
}

fn append(response: &mut Response<Body>, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}

fn status(code: u16) -> StatusCode {
    StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

fn page(code: u16, what: &str) -> String {
    format!(
        "<html>\n<head>\n<title>Error {code} {what}</title>\n</head>\n<body><h2>HTTP ERROR {code} {what}</h2>\n</body>\n</html>\n"
    )
}
