//! The `scale` subresource: a small view of an object through three paths.

use serde_json::{Value, json};

use super::Target;
use crate::object::Object;
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
