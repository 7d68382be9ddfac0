//! The `scale` subresource: a small view of an object through three paths.

use serde_json::{Value, json};

use super::{Part, Target};
use crate::object::Object;
use crate::patch::{as_go_prints, go_type};
use crate::refusal::{Fault, FieldError, Refusal};
use crate::resource::{Origin, ScalePaths, builtin};

/// What a Scale is read as: a built-in kind that is never stored, in the namespace of the object that it is of.
pub(super) fn target(of: &Target) -> Target {
    Target { resource: builtin::scale(), version: 0, namespace: of.namespace.clone() }
}

/// Stands for the replicas of a custom object that has none, in the scale that a patch changes.
const NONE: i64 = i32::MIN as i64;

/// The `autoscaling/v1` Scale of an object. A custom object without replicas has none.
pub(super) fn read(target: &Target, object: &Value) -> Result<Value, Refusal> {
    let scale = to_change(target, object)?;
    if asked_for(&scale) == NONE {
        let field = &paths(target)?.spec_replicas;
        return Err(Refusal::internal(format!("the spec replicas field {field:?} does not exist")));
    }
    Ok(scale)
}

/// The same for a patch, which may give an object the replicas that it does not have yet.
pub(super) fn to_change(target: &Target, object: &Value) -> Result<Value, Refusal> {
    let paths = paths(target)?;
    let count = |path: &str| object.at(&steps(path)).and_then(Value::as_i64);
    let meta = |field: &str| object.metadata().and_then(|m| m.get(field)).cloned().unwrap_or_default();
    let mut status = json!({"replicas": count(&paths.status_replicas).unwrap_or(0)});
    let selector = paths.label_selector.as_deref().and_then(|path| object.at(&steps(path)));
    if let Some(text) = selector.and_then(selector_text) {
        status["selector"] = text.into();
    }
    let mut scale = json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1",
        "metadata": {"name": meta("name"), "uid": meta("uid"), "resourceVersion": meta("resourceVersion"),
            "creationTimestamp": meta("creationTimestamp")},
        "spec": {},
        "status": status,
    });
    let none = if target.resource.origin == Origin::Custom { NONE } else { 0 };
    let replicas = count(&paths.spec_replicas).unwrap_or(none);
    if replicas != 0 {
        scale["spec"]["replicas"] = replicas.into();
    }
    if !object.namespace().is_empty() {
        scale["metadata"]["namespace"] = object.namespace().into();
    }
    Ok(scale)
}

/// The object with the replicas that a Scale asks for.
pub(super) fn write(target: &Target, object: &Value, wanted: &Value) -> Result<Value, Refusal> {
    let paths = paths(target)?;
    let resource = &target.resource;
    let replicas = asked_for(wanted);
    if replicas == NONE && resource.origin == Origin::Custom {
        let field = &paths.spec_replicas;
        return Err(Refusal::bad_request(format!("the spec replicas field {field:?} cannot be empty")));
    }
    if replicas < 0 {
        let error = |field: &str, why: &str| FieldError::with_value(field, Fault::Invalid, &replicas.into(), why);
        return Err(match resource.origin {
            Origin::Custom => {
                let error = error(&paths.spec_replicas, "should be a non-negative integer");
                Refusal::invalid(&resource.group, &resource.kind, object.name(), &[error])
            }
            Origin::Builtin => {
                let error = error("spec.replicas", "must be greater than or equal to 0");
                Refusal::invalid("autoscaling", "Scale", object.name(), &[error])
            }
        });
    }
    let mut scaled = object.clone();
    set(&mut scaled, &steps(&paths.spec_replicas), replicas.into());
    Ok(scaled)
}

fn asked_for(scale: &Value) -> i64 {
    scale.at(&["spec", "replicas"]).and_then(Value::as_i64).unwrap_or(0)
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
