//! Why a request was not carried out, in the shape Kubernetes clients expect: a `Status`.
//!
//! Clients decide by `code` and `reason`, people read `message`, and tools point at `details.causes[].field`;
//! so all three are part of the contract and are worded as the original words them.

mod findings;

use serde_json::{Map, Value, json};

pub(crate) use self::findings::{Findings, MAX_FOUND, Told};

/// A refused request. Becomes the body (`kind: Status`) and the HTTP code of the answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// HTTP status code.
    pub code: u16,
    /// Machine-readable reason, e.g. `NotFound`.
    pub reason: &'static str,
    /// For people.
    pub message: String,
    /// What the refusal is about. Boxed because most refusals carry none or few of it.
    pub details: Option<Box<Details>>,
    /// Texts for `Warning:` headers beside it.
    pub warnings: Vec<String>,
}

/// The object and the fields that a refusal is about.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Details {
    /// Name of the object.
    pub name: String,
    /// API group of the object.
    pub group: String,
    /// Resource (plural) or kind, as the original fills it for this reason.
    pub kind: String,
    /// uid, where preconditions are about one.
    pub uid: String,
    /// One entry per wrong field.
    pub causes: Vec<Cause>,
    /// Seconds to wait before trying again; 0 = not given.
    pub retry_after_seconds: u32,
}

/// One wrong field.
#[derive(Debug, Clone, PartialEq)]
pub struct Cause {
    /// E.g. `FieldValueInvalid`, `FieldManagerConflict`.
    pub reason: String,
    /// For people.
    pub message: String,
    /// Path such as `spec.replicas` or `.spec.replicas` (field manager conflicts).
    pub field: String,
}

/// What is wrong with one field. The words are the original's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// A required value is missing.
    Required,
    /// The value is not acceptable.
    Invalid,
    /// The value has the wrong type.
    TypeInvalid,
    /// Not one of the supported values.
    NotSupported,
    /// The field may not be set here.
    Forbidden,
    /// The value occurs twice.
    Duplicate,
    /// The value is too long.
    TooLong,
    /// Too many items.
    TooMany,
    /// The value refers to something that is not there.
    NotFound,
    /// A fault of ours.
    Internal,
}

impl Fault {
    /// The cause's machine-readable reason.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Invalid => "FieldValueInvalid",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::Duplicate => "FieldValueDuplicate",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::NotFound => "FieldValueNotFound",
            Self::Internal => "InternalError",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Required => "Required value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Forbidden => "Forbidden",
            Self::Duplicate => "Duplicate value",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
            Self::NotFound => "Not found",
            Self::Internal => "Internal error",
        }
    }
}

/// One violated expectation about one field.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldError {
    /// Path of the field, e.g. `spec.brokers[1]`; empty for the whole object.
    pub field: String,
    /// What is wrong.
    pub fault: Fault,
    /// The offending value, already rendered for the message (strings quoted, objects as JSON); shown for the
    /// faults that show a value.
    pub value: String,
    /// What would be right.
    pub detail: String,
}

impl FieldError {
    /// A fault without a value to show.
    pub fn new(field: impl Into<String>, fault: Fault, detail: impl Into<String>) -> Self {
        Self { field: field.into(), fault, value: String::new(), detail: detail.into() }
    }

    /// A fault that shows the offending value.
    pub fn with_value(field: impl Into<String>, fault: Fault, value: &Value, detail: impl Into<String>) -> Self {
        Self { field: field.into(), fault, value: shown(value), detail: detail.into() }
    }

    /// `Invalid value: "x": why`, without the path: what a cause carries.
    pub fn body(&self) -> String {
        let words = self.fault.words();
        let head = match self.fault {
            Fault::Required | Fault::Forbidden | Fault::TooLong | Fault::Internal => words.to_owned(),
            // Values that are long or say nothing (whole objects and lists) are left out.
            _ if self.value.is_empty() => words.to_owned(),
            _ => format!("{words}: {}", self.value),
        };
        if self.detail.is_empty() { head } else { format!("{head}: {}", self.detail) }
    }
}

impl std::fmt::Display for FieldError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The original writes `<nil>` for an error about the whole object.
        let field = if self.field.is_empty() { "<nil>" } else { &self.field };
        write!(f, "{field}: {}", self.body())
    }
}

/// A value as the original's messages show it.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        other => other.to_string(),
    }
}

impl Refusal {
    /// Any refusal without details.
    pub fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), details: None, warnings: Vec::new() }
    }

    /// 400: the request itself makes no sense.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// The same with warnings beside it, unless it has its own: those include all that came before them.
    #[must_use]
    pub fn beside(mut self, warnings: Vec<String>) -> Self {
        if self.warnings.is_empty() {
            self.warnings = warnings;
        }
        self
    }

    /// 404 for one object.
    pub fn not_found(group: &str, plural: &str, name: &str) -> Self {
        Self::new(404, "NotFound", format!("{} {name:?} not found", qualified(plural, group)))
            .about(group, plural, name)
    }

    /// 404 for a path that is not served at all.
    pub fn unknown_path() -> Self {
        let mut refusal = Self::new(404, "NotFound", "the server could not find the requested resource");
        refusal.details = Some(Box::default());
        refusal
    }

    /// 409: an object of that name exists.
    pub fn already_exists(group: &str, plural: &str, name: &str) -> Self {
        Self::new(409, "AlreadyExists", format!("{} {name:?} already exists", qualified(plural, group)))
            .about(group, plural, name)
    }

    /// 409: the object changed in the meantime, or a precondition does not hold.
    pub fn conflict(group: &str, plural: &str, name: &str, why: impl std::fmt::Display) -> Self {
        let message = format!("Operation cannot be fulfilled on {} {name:?}: {why}", qualified(plural, group));
        Self::new(409, "Conflict", message).about(group, plural, name)
    }

    /// 422: the object is wrong; one cause per field.
    pub fn invalid(group: &str, kind: &str, name: &str, errors: &[FieldError]) -> Self {
        let mut listed = Findings::default();
        errors.iter().for_each(|error| listed.tell(|| error.to_string()));
        let errors = &errors[..listed.told().len()];
        let listed = match listed.told() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let message = format!("{} {name:?} is invalid: {listed}", qualified(kind, group));
        let mut refusal = Self::new(422, "Invalid", message).about(group, kind, name);
        if let Some(details) = refusal.details.as_mut() {
            details.causes = errors
                .iter()
                .map(|e| Cause { reason: e.fault.reason().into(), message: e.body(), field: e.to_string_field() })
                .collect();
        }
        refusal
    }

    /// 403: known, understood, and not allowed.
    pub fn forbidden(group: &str, plural: &str, name: &str, why: impl std::fmt::Display) -> Self {
        Self::new(403, "Forbidden", format!("{} {name:?} is forbidden: {why}", qualified(plural, group)))
            .about(group, plural, name)
    }

    /// 410: the asked-for revision is no longer remembered.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    /// 405: this resource does not know the verb.
    pub fn method_not_allowed() -> Self {
        Self::new(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
    }

    /// 415: a body in a form that is not understood here.
    pub fn unsupported_media_type(accepted: &str) -> Self {
        let message =
            format!("the body of the request was in an unknown format - accepted media types include: {accepted}");
        Self::new(415, "UnsupportedMediaType", message)
    }

    /// 406: no form of answer that the client accepts.
    pub fn not_acceptable(accepted: &str) -> Self {
        Self::new(406, "NotAcceptable", format!("only the following media types are accepted: {accepted}"))
    }

    /// 413: the body is larger than this server reads.
    pub fn too_large(message: impl Into<String>) -> Self {
        Self::new(413, "RequestEntityTooLarge", message)
    }

    /// 500: a fault of ours, or what the original takes for one of its own.
    pub fn internal(message: impl std::fmt::Display) -> Self {
        let cause = Cause { reason: String::new(), message: message.to_string(), field: String::new() };
        Self::new(500, "InternalError", format!("Internal error occurred: {message}")).because(vec![cause])
    }

    /// Adds what the refusal is about.
    pub fn about(mut self, group: &str, kind: &str, name: &str) -> Self {
        let details = self.details.get_or_insert_default();
        details.name = name.into();
        details.group = group.into();
        details.kind = kind.into();
        self
    }

    /// Adds causes.
    pub fn because(mut self, causes: Vec<Cause>) -> Self {
        self.details.get_or_insert_default().causes = causes;
        self
    }

    /// The body of the answer.
    pub fn to_status(&self) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "code": self.code,
        });
        // The original leaves the reason out where its storage layer failed without one.
        if !self.reason.is_empty() {
            status["reason"] = self.reason.into();
        }
        if let Some(details) = &self.details {
            status["details"] = details.to_value();
        }
        status
    }
}

impl FieldError {
    fn to_string_field(&self) -> String {
        if self.field.is_empty() { "<nil>".into() } else { self.field.clone() }
    }
}

impl Details {
    fn to_value(&self) -> Value {
        let mut map = Map::new();
        for (key, text) in [("name", &self.name), ("group", &self.group), ("kind", &self.kind), ("uid", &self.uid)] {
            if !text.is_empty() {
                map.insert(key.into(), Value::String(text.clone()));
            }
        }
        if !self.causes.is_empty() {
            let causes = self.causes.iter().map(|c| {
                let mut cause = json!({"message": c.message});
                for (key, text) in [("reason", &c.reason), ("field", &c.field)] {
                    if !text.is_empty() {
                        cause[key] = Value::String(text.clone());
                    }
                }
                cause
            });
            map.insert("causes".into(), causes.collect());
        }
        if self.retry_after_seconds > 0 {
            map.insert("retryAfterSeconds".into(), self.retry_after_seconds.into());
        }
        Value::Object(map)
    }
}

/// `kafkas.kafka.strimzi.io`, or just `pods` in the core group.
fn qualified(resource: &str, group: &str) -> String {
    if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") }
}
