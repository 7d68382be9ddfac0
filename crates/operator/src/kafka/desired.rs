//! Objects that should exist, and whether those that do are as they should be.
//!
//! Objects are written by server-side apply, and only when it would change something: the object that exists must hold
//! every value that is wanted, and carry the hash of all of them, which changes when one is no longer wanted.

use std::fmt;

use evenkeel_api::annotations;
use kube::{Resource, core::ApiResource};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{hash, seen::Live};

/// Hash of what was last applied.
pub const APPLIED: &str = "evenkeel.io/applied";

/// An object that should exist.
#[derive(Clone, PartialEq)]
pub struct Desired {
    /// What kind of object.
    pub resource: ApiResource,
    /// Its name.
    pub name: String,
    /// Its values.
    pub value: Value,
    /// Whether it is only created: what it holds afterwards is not ours alone.
    pub only_created: bool,
}

impl fmt::Debug for Desired {
    /// Not the values: private keys and passwords are among them.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", self.resource.kind, self.name)
    }
}

impl Desired {
    /// This object, kept as it is here.
    pub fn new<K: Resource<DynamicType = ()> + Serialize>(object: &K) -> Self {
        let mut desired = Self { only_created: false, ..Self::once(object) };
        let hash = hash::of_value(&desired.value);
        note(&mut desired.value, APPLIED, &hash);
        desired
    }

    /// This object, created if it is not there, and somebody else's afterwards.
    pub fn once<K: Resource<DynamicType = ()> + Serialize>(object: &K) -> Self {
        Self {
            resource: ApiResource::erase::<K>(&()),
            name: object.meta().name.clone().unwrap_or_default(),
            value: bare(object),
            only_created: true,
        }
    }

    /// Whether this is what was applied last. Unlike [`Desired::is_missing`] it does not look at what became of it.
    pub fn was_applied(&self, live: &Live) -> bool {
        let found = live.value(&self.resource.kind, &self.name).and_then(notes);
        found.is_some_and(|found| found.get(APPLIED) == notes(&self.value).and_then(|wanted| wanted.get(APPLIED)))
    }

    /// Whether what exists is not as it should be.
    pub fn is_missing(&self, live: &Live) -> bool {
        match live.value(&self.resource.kind, &self.name) {
            None => true,
            Some(_) if self.only_created => false,
            Some(found) => !holds(&self.value, found),
        }
    }
}

fn bare<K: Resource<DynamicType = ()> + Serialize>(object: &K) -> Value {
    // Objects always serialise.
    let mut value = serde_json::to_value(object).unwrap_or_default();
    if let Some(fields) = value.as_object_mut() {
        fields.insert("apiVersion".to_owned(), json!(K::api_version(&())));
        fields.insert("kind".to_owned(), json!(K::kind(&())));
        fields.remove("status");
    }
    value
}

fn note(value: &mut Value, key: &str, text: &str) {
    let notes = value.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
    match notes {
        Some(notes) => drop(notes.insert(key.to_owned(), text.into())),
        None => value["metadata"]["annotations"] = json!({key: text}),
    }
}

/// Whether `found` has all that is wanted. What else it has was put there by the API server or by others.
fn holds(wanted: &Value, found: &Value) -> bool {
    match (wanted, found) {
        (Value::Object(wanted), Value::Object(found)) => wanted.iter().all(|(key, value)| match found.get(key) {
            Some(found) => holds(value, found),
            None => is_empty(value),
        }),
        (Value::Array(wanted), Value::Array(found)) => {
            wanted.len() == found.len() && wanted.iter().zip(found).all(|(wanted, found)| holds(wanted, found))
        }
        (wanted, found) => wanted == found,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(all) => all.is_empty(),
        Value::Object(all) => all.values().all(is_empty),
        _ => false,
    }
}

/// The annotations of an object as JSON.
pub fn notes(value: &Value) -> Option<&Map<String, Value>> {
    value.pointer("/metadata/annotations")?.as_object()
}

/// Whether a claim is to be deleted with its node.
pub fn goes_with_its_node(claim: &Value) -> bool {
    notes(claim).and_then(|notes| notes.get(annotations::DELETE_CLAIM)).is_some_and(|value| value == "true")
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    fn map(data: Value) -> ConfigMap {
        serde_json::from_value(json!({"metadata": {"name": "m", "labels": {"a": "b"}}, "data": data})).unwrap()
    }

    fn live(value: Value) -> Live {
        Live { objects: [(("ConfigMap".to_owned(), "m".to_owned()), value)].into() }
    }

    #[test]
    fn what_others_add_does_not_matter_and_what_is_no_longer_wanted_does() {
        let desired = Desired::new(&map(json!({"k": "v"})));
        assert!(desired.is_missing(&Live::default()));
        let mut there = desired.value.clone();
        there["metadata"]["uid"] = json!("1");
        there["metadata"]["labels"]["other"] = json!("c");
        assert!(!desired.is_missing(&live(there.clone())));
        assert!(Desired::new(&map(json!({}))).is_missing(&live(there.clone())), "a key is gone");
        assert!(Desired::new(&map(json!({"k": "w"}))).is_missing(&live(there.clone())));
        there["data"]["k"] = json!("edited by hand");
        assert!(desired.is_missing(&live(there.clone())));
        assert!(!Desired::once(&map(json!({}))).is_missing(&live(there)), "only created");
    }
}
