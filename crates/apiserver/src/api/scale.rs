//! The `scale` subresource: a small view of an object through three paths.

use serde_json::{Value, json};

use super::{Part, Target};
use crate::object::Object;
use crate::patch::{as_go_prints, go_type};
use crate::refusal::{Fault, FieldError, Refusal};
use crate::resource::{ScalePaths, builtin};

/// The `autoscaling/v1` Scale of an object.
pub(super) fn read(target: &Target, object: &Value) -> Result<Value, Refusal> {
    let paths = paths(target)?;
    let number = |path: &str| object.at(&steps(path)).and_then(Value::as_i64).unwrap_or(0);
    let meta = |field: &str| object.metadata().and_then(|m| m.get(field)).cloned().unwrap_or_default();
    let mut status = json!({"replicas": number(&paths.status_replicas)});
    let selector = paths.label_selector.as_deref().and_then(|path| object.at(&steps(path)));
    if let Some(text) = selector.and_then(selector_text) {
        status["selector"] = text.into();
    }
    let mut scale = json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1",
        "metadata": {"name": meta("name"), "uid": meta("uid"), "resourceVersion": meta("resourceVersion"),
            "creationTimestamp": meta("creationTimestamp")},
        "spec": {"replicas": number(&paths.spec_replicas)},
        "status": status,
    });
    if !object.namespace().is_empty() {
        scale["metadata"]["namespace"] = object.namespace().into();
    }
    Ok(scale)
}

/// The object with the replicas that a Scale asks for.
pub(super) fn write(target: &Target, object: &Value, wanted: &Value) -> Result<Value, Refusal> {
    let paths = paths(target)?;
    let resource = &target.resource;
    if wanted.kind() != "Scale" && !wanted.kind().is_empty() {
        return Err(Refusal::bad_request(format!("expected a Scale, got a {}", wanted.kind())));
    }
    super::update::check_name(wanted, object.name())?;
    if !wanted.meta("resourceVersion").is_empty() {
        super::update::check_version(target, object, wanted)?;
    }
    let replicas = match wanted.at(&["spec", "replicas"]) {
        None | Some(Value::Null) => 0,
        Some(value) => value.as_i64().filter(|n| i32::try_from(*n).is_ok()).ok_or_else(|| {
            Refusal::bad_request(format!("spec.replicas of a Scale must be a 32-bit integer, got {value}"))
        })?,
    };
    if replicas < 0 {
        let detail = "should be a non-negative integer";
        let error = FieldError::with_value(&paths.spec_replicas, Fault::Invalid, &replicas.into(), detail);
        return Err(Refusal::invalid(&resource.group, &resource.kind, object.name(), &[error]));
    }
    let mut scaled = object.clone();
    set(&mut scaled, &steps(&paths.spec_replicas), replicas.into());
    Ok(scaled)
}

/// Where an object has the replicas that its scale is about.
pub(super) fn replicas(target: &Target) -> Result<Vec<&str>, Refusal> {
    paths(target).map(|paths| steps(&paths.spec_replicas))
}

/// What keeps an object from being seen as a scale. A write to its status answers for that part only.
pub(super) fn check(target: &Target, object: &Value, part: Part) -> Vec<FieldError> {
    let Some(paths) = &target.version().scale else { return Vec::new() };
    let wanted = (part != Part::Status).then(|| check_count(&paths.spec_replicas, object)).flatten();
    let selector = paths.label_selector.as_deref().filter(|path| !path.is_empty());
    let selector = selector.and_then(|path| {
        let why = match found(object, path) {
            Ok(Some(value)) if !value.is_string() => accessor(path, value, "string"),
            Ok(_) => return None,
            Err(why) => why,
        };
        Some(FieldError::with_value(path, Fault::Invalid, &"".into(), why))
    });
    wanted.into_iter().chain(check_count(&paths.status_replicas, object)).chain(selector).collect()
}

fn check_count(path: &str, object: &Value) -> Option<FieldError> {
    let (shown, why) = match found(object, path) {
        Ok(None) => return None,
        Ok(Some(value)) => match value.as_i64() {
            Some(count) if count < 0 => (count, "should be a non-negative integer".to_owned()),
            Some(count) if count > i64::from(i32::MAX) => {
                (count, format!("should be less than or equal to {}", i32::MAX))
            }
            Some(_) => return None,
            None => (0, accessor(path, value, "int64")),
        },
        Err(why) => (0, why),
    };
    Some(FieldError::with_value(path, Fault::Invalid, &shown.into(), why))
}

/// The value at a path, nothing if it or something above it is absent, or why there can be none.
fn found<'a>(object: &'a Value, path: &str) -> Result<Option<&'a Value>, String> {
    let (mut value, mut walked) = (object, String::new());
    for step in steps(path) {
        walked = format!("{walked}.{step}");
        value = match value {
            Value::Null => return Ok(None),
            Value::Object(map) => match map.get(step) {
                Some(value) => value,
                None => return Ok(None),
            },
            other => return Err(accessor(&walked, other, "map[string]interface{}")),
        };
    }
    Ok(Some(value))
}

fn accessor(path: &str, found: &Value, wanted: &str) -> String {
    let ty = if found.is_null() { "<nil>" } else { go_type(found) };
    let dot = if path.starts_with('.') { "" } else { "." };
    format!("{dot}{path} accessor error: {} is of the type {ty}, expected {wanted}", as_go_prints(found))
}

fn set(object: &mut Value, steps: &[&str], value: Value) {
    match steps {
        [] => *object = value,
        [last] => {
            if let Value::Object(map) = object {
                map.insert((*last).into(), value);
            }
        }
        [first, rest @ ..] => {
            crate::object::child_map(object, first);
            set(&mut object[*first], rest, value);
        }
    }
}

fn paths(target: &Target) -> Result<&ScalePaths, Refusal> {
    target.version().scale.as_ref().ok_or_else(Refusal::unknown_path)
}

fn steps(path: &str) -> Vec<&str> {
    path.split('.').filter(|step| !step.is_empty()).collect()
}

/// Custom resources keep the selector as text; deployments keep it as an object.
fn selector_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Object(_) => Some(builtin::selector_text(value)),
        _ => None,
    }
}
