//! Reading and writing the parts that every Kubernetes object has, on plain JSON.
//!
//! Objects are handled as [`Value`]s, because the server learns its kinds at run time. These accessors never panic on
//! odd input: a field of the wrong type reads as absent, and validation says so elsewhere.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// Accessors for the common parts of an object.
pub trait Object {
    /// `apiVersion`.
    fn api_version(&self) -> &str;
    /// `kind`.
    fn kind(&self) -> &str;
    /// A text field of `metadata`, empty when absent.
    fn meta(&self, field: &str) -> &str;
    /// `metadata`, if it is there.
    fn metadata(&self) -> Option<&Map<String, Value>>;
    /// `metadata`, made if it is not there.
    fn metadata_mut(&mut self) -> &mut Map<String, Value>;
    /// `metadata.labels`.
    fn labels(&self) -> BTreeMap<String, String>;
    /// `metadata.finalizers`.
    fn finalizers(&self) -> Vec<&str>;
    /// The value at a path of field names.
    fn at(&self, path: &[&str]) -> Option<&Value>;
    /// `metadata.name`.
    fn name(&self) -> &str {
        self.meta("name")
    }
    /// `metadata.namespace`, empty for cluster-scoped objects.
    fn namespace(&self) -> &str {
        self.meta("namespace")
    }
    /// Deletion was asked for.
    fn is_terminating(&self) -> bool {
        self.metadata().is_some_and(|m| m.get("deletionTimestamp").is_some_and(|t| !t.is_null()))
    }
}

impl Object for Value {
    fn api_version(&self) -> &str {
        self.get("apiVersion").and_then(Value::as_str).unwrap_or_default()
    }

    fn kind(&self) -> &str {
        self.get("kind").and_then(Value::as_str).unwrap_or_default()
    }

    fn meta(&self, field: &str) -> &str {
        self.metadata().and_then(|m| m.get(field)).and_then(Value::as_str).unwrap_or_default()
    }

    fn metadata(&self) -> Option<&Map<String, Value>> {
        self.get("metadata").and_then(Value::as_object)
    }

    fn metadata_mut(&mut self) -> &mut Map<String, Value> {
        child_map(self, "metadata")
    }

    fn labels(&self) -> BTreeMap<String, String> {
        let labels = self.metadata().and_then(|m| m.get("labels")).and_then(Value::as_object);
        let pairs = labels.into_iter().flatten();
        pairs.filter_map(|(k, v)| Some((k.clone(), v.as_str()?.to_owned()))).collect()
    }

    fn finalizers(&self) -> Vec<&str> {
        let list = self.metadata().and_then(|m| m.get("finalizers")).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    fn at(&self, path: &[&str]) -> Option<&Value> {
        path.iter().try_fold(self, |value, key| value.get(key))
    }
}

/// The object under `key`, made if it is absent or not an object. A parent that is no object becomes one: callers have
/// checked the parent, so this only spares them an unwrap.
pub fn child_map<'a>(parent: &'a mut Value, key: &str) -> &'a mut Map<String, Value> {
    let map = as_map(parent);
    as_map(map.entry(key).or_insert_with(|| Value::Object(Map::new())))
}

fn as_map(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(map) => map,
        _ => unreachable!("made an object just above"),
    }
}
