//! Lists that are sets or maps: no value, and no combination of keys, may stand twice.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::refusal::{Fault, FieldError, Findings};
use crate::schema::path::Path;
use crate::schema::{ListKind, Schema};

/// All duplicates in a value and below it.
pub(crate) fn check(schema: &Schema, value: &Value, path: &Path<'_>, errors: &mut Findings<FieldError>) {
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                if let Some(property) = schema.properties.get(name) {
                    check(property, value, &path.field(name), errors);
                } else if let Some(additional) = &schema.additional {
                    check(additional, value, &path.key(name), errors);
                }
            }
        }
        Value::Array(items) => {
            match &schema.list {
                ListKind::Atomic => {}
                ListKind::Set => duplicates(items.iter().map(Value::to_string), path, errors),
                ListKind::Map(keys) => keyed(keys, items, path, errors),
            }
            if let Some(schema) = &schema.items {
                for (index, item) in items.iter().enumerate() {
                    check(schema, item, &path.index(index), errors);
                }
            }
        }
        _ => {}
    }
}

fn keyed(keys: &[String], items: &[Value], path: &Path<'_>, errors: &mut Findings<FieldError>) {
    if let Some((index, item)) = items.iter().enumerate().find(|(_, item)| !item.is_null() && !item.is_object()) {
        let detail = "must be an object for an array of list-type map";
        errors.tell(|| FieldError::with_value(path.index(index).bracketed(), Fault::Invalid, item, detail));
        return;
    }
    let key_of = |item: &Value| {
        let key: Map<String, Value> =
            keys.iter().filter_map(|name| Some((name.clone(), item.get(name)?.clone()))).collect();
        Value::Object(key).to_string()
    };
    duplicates(items.iter().map(key_of), path, errors);
}

/// Reports each repeated value once, where it stands for the second time.
fn duplicates(values: impl Iterator<Item = String>, path: &Path<'_>, errors: &mut Findings<FieldError>) {
    let mut seen: BTreeMap<String, bool> = BTreeMap::new();
    for (index, text) in values.enumerate() {
        match seen.get_mut(&text) {
            None => _ = seen.insert(text, false),
            Some(reported) => {
                if !std::mem::replace(reported, true) {
                    errors.tell(|| {
                        let mut error = FieldError::new(path.index(index).bracketed(), Fault::Duplicate, "");
                        error.value = text;
                        error
                    });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn duplicates_are_told_once_each() {
        let schema = Schema::parse(
            &json!({"type": "object", "properties": {
                "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                "map": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a", "b"],
                    "items": {"type": "object", "required": ["a", "b"], "properties": {
                        "a": {"type": "string"}, "b": {"type": "integer"}}}}}}),
            "s",
        )
        .expect("valid");
        let object = json!({"set": ["x", "y", "x", "x"],
            "map": [{"a": "1", "b": 1}, {"a": "1", "b": 2}, {"a": "1", "b": 1, "c": 1}]});
        let mut errors = Findings::default();
        check(&schema, &object, &Path::root(""), &mut errors);
        let texts: Vec<String> = errors.told().iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["map[2]: Duplicate value: {\"a\":\"1\",\"b\":1}", "set[2]: Duplicate value: \"x\""]);
    }
}
