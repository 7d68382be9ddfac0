//! Helpers that let a case be read in a few lines, and the cases.

mod cases;
mod large;
mod laws;
mod observed;

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::schema::{ListKind, Schema, Type};

/// A schema from the part of OpenAPI that says how values are merged.
fn schema(openapi: &Value) -> Schema {
    let flag = |key: &str| openapi.get(key).and_then(Value::as_bool).unwrap_or_default();
    let child = |key: &str| openapi.get(key).map(|child| Arc::new(schema(child)));
    let ty = match openapi.get("type").and_then(Value::as_str) {
        Some("object") => Type::Object,
        Some("array") => Type::Array,
        Some("string") => Type::String,
        Some("integer") => Type::Integer,
        Some("boolean") => Type::Boolean,
        _ if flag("x-kubernetes-int-or-string") => Type::IntOrString,
        _ => Type::Any,
    };
    let keys = || openapi["x-kubernetes-list-map-keys"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let list = match openapi.get("x-kubernetes-list-type").and_then(Value::as_str) {
        Some("set") => ListKind::Set,
        Some("map") => ListKind::Map(keys().map(str::to_owned).collect()),
        _ => ListKind::Atomic,
    };
    let properties = openapi.get("properties").and_then(Value::as_object).into_iter().flatten();
    Schema {
        ty,
        list,
        properties: properties.map(|(name, child)| (name.clone(), Arc::new(schema(child)))).collect(),
        additional: child("additionalProperties"),
        items: child("items"),
        default: openapi.get("default").cloned(),
        preserve_unknown: flag("x-kubernetes-preserve-unknown-fields"),
        atomic_map: openapi.get("x-kubernetes-map-type") == Some(&json!("atomic")),
        ..Schema::default()
    }
}

/// The moment in which the n-th step of a story happens.
fn at(step: usize) -> Timestamp {
    Timestamp::from_second(1_767_225_600 + step as i64).expect("a small number of seconds")
}
