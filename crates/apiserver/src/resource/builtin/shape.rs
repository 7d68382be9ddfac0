//! The canonical form of a built-in object: what is left of it after the original has read it into its own structures
//! and written it out again.
//!
//! Nulls and empty optional values are gone, required values that were missing are there as zeros. Without this,
//! `{"status": {}}` and its absence, or `"labels": {}` and no labels, would be two different objects, and every
//! comparison of old and new would have to know better.

use serde_json::{Map, Value, json};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::{decode, quantity, time, wire};
use crate::object::Object;
use wire::{Kind, Message, Presence, Shape};

/// Brings an object of a built-in kind into its canonical form. Objects of other kinds stay as they are.
pub fn shape(object: &mut Value) {
    let Some(message) = wire::of_kind(object.api_version(), object.kind()) else { return };
    if let Value::Object(map) = object {
        shape_message(message, map);
    }
}

/// The same for the metadata of an object of any kind.
pub fn shape_metadata(metadata: &mut Value) {
    if let (Some(message), Value::Object(map)) = (wire::find(decode::METADATA), metadata) {
        shape_message(message, map);
    }
}

fn shape_message(message: &Message, map: &mut Map<String, Value>) {
    for field in &message.fields {
        if field.presence == Presence::Embedded {
            if let Shape::One(Kind::Message(inner)) = field.shape
                && let Some(inner) = wire::find(inner)
            {
                shape_message(inner, map);
            }
            continue;
        }
        if let Some(value) = map.get_mut(field.name) {
            shape_value(field.shape, value);
            let gone = match (field.presence, field.shape) {
                // An empty list that is always written is written as a missing one.
                (Presence::UnlessZero, _) | (Presence::Always, Shape::List(_)) => is_zero(field.shape, value),
                _ => value.is_null(),
            };
            if gone {
                map.remove(field.name);
            }
        }
        if field.presence == Presence::Always && !map.contains_key(field.name) {
            map.insert(field.name.to_owned(), zero(field.shape));
        }
    }
}

fn shape_value(shape: Shape, value: &mut Value) {
    match (shape, value) {
        (Shape::One(kind), value) => shape_one(kind, value),
        (Shape::List(kind), Value::Array(items)) => items.iter_mut().for_each(|item| shape_entry(kind, item)),
        (Shape::Map(kind), Value::Object(map)) => map.values_mut().for_each(|item| shape_entry(kind, item)),
        _ => {}
    }
}

/// An item or entry cannot be absent: where nothing is given, it is zero.
fn shape_entry(kind: Kind, value: &mut Value) {
    if value.is_null() {
        // Missing bytes are none, but an entry of a map that has none is an empty text.
        *value = if kind == Kind::Bytes { json!("") } else { zero(Shape::One(kind)) };
    }
    shape_one(kind, value);
}

fn shape_one(kind: Kind, value: &mut Value) {
    match kind {
        Kind::Message(name) => {
            if let (Some(message), Value::Object(map)) = (wire::find(name), value) {
                shape_message(message, map);
            }
        }
        Kind::SchemaOrList | Kind::SchemaOrBool | Kind::SchemaOrStrings => match (kind, &mut *value) {
            (_, Value::Object(_)) => shape_one(Kind::Message(wire::SCHEMA), value),
            (Kind::SchemaOrList, Value::Array(items)) => {
                items.iter_mut().for_each(|item| shape_entry(Kind::Message(wire::SCHEMA), item));
            }
            (Kind::SchemaOrBool, Value::Bool(_)) | (Kind::SchemaOrStrings, Value::Array(_)) => {}
            // Read as nothing.
            (_, other) => *other = Value::Null,
        },
        Kind::Bytes => {
            // Only line breaks and the last four letters can be written in more than one way.
            let loose = value.as_str().filter(|text| {
                let end = text.len().saturating_sub(4);
                text.contains(['\r', '\n']) || STANDARD.decode(&text.as_bytes()[end..]).is_err()
            });
            if let Some(Ok(bytes)) = loose.map(decode::bytes) {
                *value = Value::String(STANDARD.encode(bytes));
            }
        }
        Kind::Quantity => {
            if let Some(canonical) = quantity::canonical(value) {
                *value = Value::String(canonical);
            }
        }
        Kind::Time | Kind::MicroTime => {
            let layout = if kind == Kind::Time { time::SECONDS } else { time::MICROSECONDS };
            if let Some(canonical) = value.as_str().and_then(|text| time::canonical(text, layout)) {
                *value = canonical;
            }
        }
        _ => {}
    }
}

/// Zero in the sense of the original: what a fresh structure holds. A structure itself is never zero.
fn is_zero(shape: Shape, value: &Value) -> bool {
    match (shape, value) {
        (_, Value::Null) => true,
        (Shape::List(_), Value::Array(items)) => items.is_empty(),
        (Shape::Map(_), Value::Object(map)) => map.is_empty(),
        (Shape::One(_), Value::String(text)) => text.is_empty(),
        (Shape::One(_), Value::Bool(flag)) => !flag,
        (Shape::One(_), Value::Number(number)) => number.as_i64() == Some(0),
        _ => false,
    }
}

fn zero(shape: Shape) -> Value {
    match shape {
        // A missing list is written as such.
        Shape::List(_) | Shape::Map(_) => Value::Null,
        Shape::One(kind) => match kind {
            Kind::String(_) => json!(""),
            Kind::Bool => json!(false),
            Kind::Int32 | Kind::Int64 | Kind::IntOrString => json!(0),
            Kind::Quantity => json!("0"),
            Kind::Float => json!(0),
            Kind::Bytes | Kind::Time | Kind::MicroTime | Kind::Raw => Value::Null,
            Kind::SchemaOrList | Kind::SchemaOrBool | Kind::SchemaOrStrings => Value::Null,
            Kind::Message(name) => {
                let mut map = Map::new();
                if let Some(message) = wire::find(name) {
                    shape_message(message, &mut map);
                }
                Value::Object(map)
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_that_are_null_are_zero_and_bytes_are_on_one_line() {
        let mut map = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": null},
            "binaryData": {"b": "YWFh\r\nYQ==", "c": null, "d": "YR==", "e": ""}, "metadata": {"labels": {"l": null}, "finalizers": [null], "ownerReferences": [null]}});
        shape(&mut map);
        let bytes = json!({"b": "YWFhYQ==", "c": "", "d": "YQ==", "e": ""});
        assert_eq!((&map["data"], &map["binaryData"]), (&json!({"a": ""}), &bytes));
        let owner = json!({"apiVersion": "", "kind": "", "name": "", "uid": ""});
        let metadata = json!({"labels": {"l": ""}, "finalizers": [""], "ownerReferences": [owner]});
        assert_eq!(map["metadata"], metadata);
        let mut alone = json!({"labels": {"l": null}, "annotations": {}, "name": "a", "creationTimestamp": null});
        shape_metadata(&mut alone);
        assert_eq!(alone, json!({"labels": {"l": ""}, "name": "a"}));
    }

    #[test]
    fn times_are_told_in_utc_and_amounts_that_are_null_are_none() {
        let mut lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {},
            "spec": {"renewTime": "2026-01-01T00:00:00.123456+02:00", "acquireTime": null}});
        shape(&mut lease);
        assert_eq!(lease["spec"], json!({"renewTime": "2025-12-31T22:00:00.123456Z"}));
        let mut event = json!({"apiVersion": "v1", "kind": "Event", "metadata": {}, "involvedObject": {},
            "firstTimestamp": "2026-01-01T00:00:00.9+02:00", "lastTimestamp": "0001-01-01T00:00:00Z"});
        shape(&mut event);
        assert_eq!(
            (&event["firstTimestamp"], event["lastTimestamp"].is_null()),
            (&json!("2025-12-31T22:00:00Z"), true)
        );
        let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": {"nodeSelector": {"a": null},
            "containers": [{"name": "a", "resources": {"limits": {"cpu": null}}}]}});
        shape(&mut pod);
        assert_eq!(pod["spec"]["containers"][0]["resources"], json!({"limits": {"cpu": "0"}}));
        assert_eq!(pod["spec"]["nodeSelector"], json!({"a": ""}));
    }

    #[test]
    fn schemas_of_definitions_have_a_canonical_form_too() {
        let mut definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "spec": {
            "versions": [{"schema": {"openAPIV3Schema": {"type": null, "nullable": false, "minimum": 0, "properties": {
                "a": null, "b": {"items": "x", "default": false}, "c": {"items": {"description": ""}}}}}}]}});
        shape(&mut definition);
        let schema = json!({"minimum": 0, "properties": {"a": {}, "b": {"default": false}, "c": {"items": {}}}});
        assert_eq!(definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"], schema);
    }

    #[test]
    fn what_is_empty_goes_and_what_is_always_written_comes() {
        let mut service = json!({"apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "a", "labels": {}, "creationTimestamp": null},
            "spec": {"ports": [{"port": 80, "name": ""}], "publishNotReadyAddresses": false}});
        shape(&mut service);
        assert_eq!(
            service,
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"},
                "spec": {"ports": [{"port": 80, "targetPort": 0}]}, "status": {"loadBalancer": {}}})
        );
    }

    #[test]
    fn what_was_given_on_purpose_stays_even_if_it_is_zero() {
        let mut claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "a"},
            "spec": {"storageClassName": "", "volumeName": "", "resources": {"requests": {"storage": "0.5Gi"}}}});
        shape(&mut claim);
        assert_eq!(claim["spec"], json!({"storageClassName": "", "resources": {"requests": {"storage": "512Mi"}}}));
    }

    #[test]
    fn embedded_messages_stand_in_their_place() {
        let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": {
            "volumes": [{"name": "scratch", "emptyDir": {}, "secret": null}], "containers": []}});
        shape(&mut pod);
        assert_eq!(pod["spec"]["volumes"], json!([{"name": "scratch", "emptyDir": {}}]));
    }
}
