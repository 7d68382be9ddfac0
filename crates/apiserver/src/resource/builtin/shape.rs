//! The canonical form of a built-in object: what is left of it after the original has read it into its own structures
//! and written it out again.
//!
//! Nulls and empty optional values are gone, required values that were missing are there as zeros. Without this,
//! `{"status": {}}` and its absence, or `"labels": {}` and no labels, would be two different objects, and every
//! comparison of old and new would have to know better.

use serde_json::{Map, Value, json};

use super::{quantity, wire};
use crate::object::Object;
use wire::{Kind, Message, Presence, Shape};

/// Brings an object of a built-in kind into its canonical form. Objects of other kinds stay as they are.
pub fn shape(object: &mut Value) {
    let Some(message) = wire::of_kind(object.api_version(), object.kind()) else { return };
    if let Value::Object(map) = object {
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
        (Shape::List(kind), Value::Array(items)) => items.iter_mut().for_each(|item| shape_one(kind, item)),
        (Shape::Map(kind), Value::Object(map)) => map.values_mut().for_each(|item| shape_one(kind, item)),
        _ => {}
    }
}

fn shape_one(kind: Kind, value: &mut Value) {
    match kind {
        Kind::Message(name) => {
            if let (Some(message), Value::Object(map)) = (wire::find(name), value) {
                shape_message(message, map);
            }
        }
        Kind::Quantity => {
            if let Some(canonical) = quantity::canonical(value) {
                *value = Value::String(canonical);
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
            Kind::Bytes | Kind::Time | Kind::MicroTime | Kind::Raw => Value::Null,
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
