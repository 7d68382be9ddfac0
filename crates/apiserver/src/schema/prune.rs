//! Dropping fields that no schema speaks of.

use serde_json::{Map, Value};

use crate::refusal::Findings;
use crate::schema::Schema;

const RESOURCE_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

const METADATA_FIELDS: &[&str] = &[
    "annotations",
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "labels",
    "managedFields",
    "name",
    "namespace",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];

const OWNER_FIELDS: &[&str] = &["apiVersion", "blockOwnerDeletion", "controller", "kind", "name", "uid"];

const MANAGED_FIELDS: &[&str] =
    &["apiVersion", "fieldsType", "fieldsV1", "manager", "operation", "subresource", "time"];

/// Drops what the schema of a whole object does not know, and returns the paths of it (`spec.foo`,
/// `spec.list[0].bar`), sorted, of as many as are told. The object keeps its `apiVersion`, `kind` and `metadata`; metadata, here and in
/// embedded resources, keeps the fields that every Kubernetes object has.
pub fn prune(schema: &Schema, object: &mut Value) -> Vec<String> {
    let mut pruner = Pruner::default();
    pruner.value(Some(schema), true, object);
    let mut dropped = pruner.dropped.into_told();
    dropped.sort();
    dropped
}

/// [`prune`] for a value that is not a whole object, such as a default.
pub(crate) fn prune_part(schema: &Schema, value: &mut Value) -> Vec<String> {
    let mut pruner = Pruner::default();
    pruner.value(Some(schema), schema.embedded_resource, value);
    pruner.dropped.into_told()
}

#[derive(Default)]
struct Pruner {
    /// The path of the value at hand.
    path: String,
    dropped: Findings<String>,
}

impl Pruner {
    fn value(&mut self, schema: Option<&Schema>, is_resource: bool, value: &mut Value) {
        match value {
            Value::Object(map) => self.object(schema, is_resource, map),
            Value::Array(items) => {
                let item_schema = schema.and_then(|s| s.items.as_deref());
                // Below a list that keeps everything, what is not described stays; below any other it goes.
                if item_schema.is_none() && schema.is_some_and(|s| s.preserve_unknown) {
                    return;
                }
                for (index, item) in items.iter_mut().enumerate() {
                    let embedded = item_schema.is_some_and(|s| s.embedded_resource);
                    self.at(&format!("[{index}]"), |p| p.value(item_schema, embedded, item));
                }
            }
            _ => {}
        }
    }

    fn object(&mut self, schema: Option<&Schema>, is_resource: bool, map: &mut Map<String, Value>) {
        map.retain(|name, value| {
            if is_resource && RESOURCE_FIELDS.contains(&name.as_str()) {
                if name == "metadata" {
                    self.at_field(name, |p| p.metadata(value));
                }
                return true;
            }
            let child = schema.and_then(|s| s.properties.get(name).or(s.additional.as_ref()));
            if let Some(child) = child {
                self.at_field(name, |p| p.value(Some(child), child.embedded_resource, value));
                return true;
            }
            let keep = schema.is_some_and(|s| s.preserve_unknown || s.closed);
            if !keep {
                self.at_field(name, |p| p.drop_here());
            }
            keep
        });
    }

    fn metadata(&mut self, metadata: &mut Value) {
        self.known_fields(METADATA_FIELDS, metadata);
        for (list, fields) in [("ownerReferences", OWNER_FIELDS), ("managedFields", MANAGED_FIELDS)] {
            let items = metadata.get_mut(list).and_then(Value::as_array_mut);
            for (index, item) in items.into_iter().flatten().enumerate() {
                self.at_field(list, |p| p.at(&format!("[{index}]"), |p| p.known_fields(fields, item)));
            }
        }
    }

    fn known_fields(&mut self, known: &[&str], value: &mut Value) {
        let Some(map) = value.as_object_mut() else { return };
        map.retain(|name, _| {
            let keep = known.contains(&name.as_str());
            if !keep {
                self.at_field(name, |p| p.drop_here());
            }
            keep
        });
    }

    fn drop_here(&mut self) {
        let path = &self.path;
        self.dropped.tell(|| path.clone());
    }

    fn at_field(&mut self, name: &str, visit: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        if length > 0 {
            self.path.push('.');
        }
        self.path.push_str(name);
        visit(self);
        self.path.truncate(length);
    }

    fn at(&mut self, step: &str, visit: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        self.path.push_str(step);
        visit(self);
        self.path.truncate(length);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Schema {
        Schema::parse(
            &json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
                "known": {"type": "object", "properties": {"a": {"type": "string"}}},
                "list": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}},
                "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {
                    "a": {"type": "string"}}}},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
                    "properties": {"strict": {"type": "object", "properties": {"a": {"type": "string"}}}}},
                "template": {"type": "object", "x-kubernetes-embedded-resource": true,
                    "x-kubernetes-preserve-unknown-fields": true},
            }}}}),
            "s",
        )
        .expect("a valid schema")
    }

    #[test]
    fn unknown_fields_go_and_are_named() {
        let mut object = json!({
            "apiVersion": "v1", "kind": "K", "bogus": 1,
            "metadata": {"name": "n", "bogus": 1, "ownerReferences": [{"uid": "u", "bogus": 1}]},
            "spec": {"bogus": {"x": 1}, "known": {"a": "1", "b": 2}, "list": [{"a": "1"}, {"b": 1}],
                "map": {"k": {"a": "1", "b": 1}}, "free": {"x": {"y": 1}, "strict": {"b": 1}},
                "template": {"apiVersion": "v1", "metadata": {"name": "t", "bogus": 1}, "x": 1}},
        });
        let dropped = prune(&schema(), &mut object);
        assert_eq!(
            dropped,
            [
                "bogus",
                "metadata.bogus",
                "metadata.ownerReferences[0].bogus",
                "spec.bogus",
                "spec.free.strict.b",
                "spec.known.b",
                "spec.list[1].b",
                "spec.map.k.b",
                "spec.template.metadata.bogus",
            ]
        );
        let rest = json!({
            "apiVersion": "v1", "kind": "K", "metadata": {"name": "n", "ownerReferences": [{"uid": "u"}]},
            "spec": {"known": {"a": "1"}, "list": [{"a": "1"}, {}], "map": {"k": {"a": "1"}},
                "free": {"x": {"y": 1}, "strict": {}},
                "template": {"apiVersion": "v1", "metadata": {"name": "t"}, "x": 1}},
        });
        assert_eq!(object, rest);
    }
}
