//! What an object says it is: kind and version must be those that the path leads to.

use serde_json::Value;

use super::Target;
use crate::object::Object;
use crate::refusal::{Fault, FieldError, Refusal};
use crate::resource::Origin;

/// How an object came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// It was sent.
    Body,
    /// It is what a patch made of the stored one.
    Patch,
    /// It is a part of one that is to be applied. What of it cannot be read is found when it is.
    Apply,
}

/// An object cannot be read: how that is said depends on where it comes from.
pub(super) fn unreadable(target: &Target, source: Source, object: &Value, why: &str) -> Refusal {
    let kind = &target.resource.kind;
    if source == Source::Patch {
        let mut shown = object.clone();
        if shown.metadata().is_some() {
            shown.metadata_mut().remove("managedFields");
        }
        let shown = Value::String(shown.to_string());
        return Refusal::invalid("", "", "", &[FieldError::with_value("patch", Fault::Invalid, &shown, why)]);
    }
    Refusal::bad_request(format!("{kind} in version {:?} cannot be handled as a {kind}: {why}", target.version().name))
}

/// The object must be of the kind and version that the URL names. Built-in kinds may leave both out.
pub(super) fn check_envelope(target: &Target, source: Source, object: &mut Value) -> Result<(), Refusal> {
    let (kind, api_version) = (object.kind().to_owned(), object.api_version().to_owned());
    match target.resource.origin {
        Origin::Custom => check_custom_envelope(target, source, object)?,
        Origin::Builtin if !object.is_object() => return Err(missing(target, source, object, "Kind")),
        Origin::Builtin => {
            let is = |given: &str, expected: &str| given.is_empty() || given == expected;
            if !is(&kind, &target.resource.kind) || !is(&api_version, &target.api_version()) {
                return Err(another_kind(target, source, object));
            }
        }
    }
    if let Value::Object(map) = object {
        map.insert("apiVersion".into(), target.api_version().into());
        map.insert("kind".into(), target.resource.kind.as_str().into());
    }
    Ok(())
}

fn check_custom_envelope(target: &Target, source: Source, object: &Value) -> Result<(), Refusal> {
    let resource = &target.resource;
    let (kind, api_version, expected) = (object.kind(), object.api_version(), target.api_version());
    let must_be = |field: &str, given: &str, expected: &str| {
        vec![FieldError::with_value(field, Fault::Invalid, &given.into(), format!("must be {expected}"))]
    };
    if kind.is_empty() {
        return Err(missing(target, source, object, "Kind"));
    }
    if api_version.is_empty() {
        return Err(match source {
            Source::Patch => {
                let why = "Object 'apiVersion' is missing in 'object has no apiVersion field'";
                Refusal::new(500, "InternalError", format!("Internal error occurred: {why}"))
            }
            Source::Body | Source::Apply => missing(target, source, object, "apiVersion"),
        });
    }
    if kind != resource.kind {
        return Err(Refusal::invalid(&resource.group, kind, object.name(), &must_be("kind", kind, &resource.kind)));
    }
    if api_version != expected {
        return Err(match source {
            Source::Patch => {
                let group = api_version.split_once('/').map_or("", |(group, _)| group);
                let errors = must_be("apiVersion", api_version, &expected);
                Refusal::invalid(group, kind, object.name(), &errors)
            }
            Source::Body | Source::Apply => Refusal::bad_request(format!(
                "the API version in the data ({api_version}) does not match the expected API version ({expected})"
            )),
        });
    }
    Ok(())
}

/// The object does not say what it is.
fn missing(target: &Target, source: Source, object: &Value, what: &str) -> Refusal {
    let text = object.to_string();
    let why = format!("Object '{what}' is missing in '{text}'");
    match source {
        Source::Patch => unreadable(target, source, object, &why),
        Source::Body | Source::Apply => Refusal::bad_request(format!(
            "the object provided is unrecognized (must be of type {}): {why} ({text})",
            target.resource.kind
        )),
    }
}

/// The object says that it is something else than what a built-in kind's path leads to.
fn another_kind(target: &Target, source: Source, object: &Value) -> Refusal {
    let given = |given: &str, expected: &str| if given.is_empty() { expected.to_owned() } else { given.to_owned() };
    let kind = given(object.kind(), &target.resource.kind);
    let api_version = given(object.api_version(), &target.api_version());
    let why = format!("no kind {kind:?} is registered for version {api_version:?}");
    if source == Source::Patch {
        return unreadable(target, source, object, &why);
    }
    let version = api_version.rsplit('/').next().unwrap_or_default();
    Refusal::bad_request(format!(
        "{kind} in version {version:?} cannot be handled as a {}: {why}",
        target.resource.kind
    ))
}
