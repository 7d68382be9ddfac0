//! Filling in what a schema says stands where nothing was written.

use serde_json::Value;

use crate::schema::Schema;

/// How many bytes of defaults are filled in at most. A default below a list is there once for every item, so a small
/// definition and a small object could make a huge one; what is cut short here is too large to be stored.
const MAX_FILLED: usize = 3 << 20;

/// Fills in defaults, everywhere in the object. A `null` in a field that is not nullable counts as nothing: it is
/// replaced by the default, or dropped where there is none.
pub fn apply(schema: &Schema, value: &mut Value) {
    drop_nulls(schema, value);
    Filling { room: MAX_FILLED }.fill(schema, value);
}

fn child<'a>(schema: &'a Schema, name: &str) -> Option<&'a Schema> {
    schema.properties.get(name).or(schema.additional.as_ref()).map(AsRef::as_ref)
}

fn drop_nulls(schema: &Schema, value: &mut Value) {
    match value {
        Value::Object(map) => map.retain(|name, value| {
            let Some(schema) = child(schema, name) else { return true };
            if value.is_null() {
                return schema.nullable || schema.default.is_some();
            }
            drop_nulls(schema, value);
            true
        }),
        Value::Array(items) => {
            if let Some(schema) = &schema.items {
                items.iter_mut().for_each(|item| drop_nulls(schema, item));
            }
        }
        _ => {}
    }
}

/// Defaults on their way into an object.
struct Filling {
    /// Bytes for which there is still room.
    room: usize,
}

impl Filling {
    fn fill(&mut self, schema: &Schema, value: &mut Value) {
        match value {
            Value::Object(map) => {
                for (name, property) in &schema.properties {
                    let Some(default) = &property.default else { continue };
                    match map.get_mut(name) {
                        Some(value) => self.replace_null(property, value),
                        None => {
                            if let Some(default) = self.copy(default, name) {
                                map.insert(name.clone(), default);
                            }
                        }
                    }
                }
                for (name, value) in map.iter_mut() {
                    if let Some(schema) = child(schema, name) {
                        self.replace_null(schema, value);
                        self.fill(schema, value);
                    }
                }
            }
            Value::Array(items) => {
                if let Some(schema) = &schema.items {
                    for item in items {
                        self.replace_null(schema, item);
                        self.fill(schema, item);
                    }
                }
            }
            _ => {}
        }
    }

    fn replace_null(&mut self, schema: &Schema, value: &mut Value) {
        if let Some(default) = schema.default.as_ref().filter(|_| value.is_null() && !schema.nullable)
            && let Some(default) = self.copy(default, "")
        {
            *value = default;
        }
    }

    fn copy(&mut self, default: &Value, name: &str) -> Option<Value> {
        self.room = self.room.checked_sub(name.len() + weight(default))?;
        Some(default.clone())
    }
}

/// About how many bytes a value is as text, and never more than it is.
fn weight(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 1,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => 2 + items.iter().map(weight).sum::<usize>(),
        Value::Object(map) => 2 + map.iter().map(|(name, value)| name.len() + weight(value)).sum::<usize>(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(spec: Value, before: Value, after: Value) {
        let schema = Schema::parse(&json!({"type": "object", "properties": {"spec": spec}}), "s").expect("valid");
        let mut object = json!({"spec": before});
        apply(&schema, &mut object);
        assert_eq!(object, json!({"spec": after}));
    }

    #[test]
    fn absent_fields_are_filled_and_defaults_bring_defaults() {
        check(
            json!({"type": "object", "properties": {
                "a": {"type": "integer", "default": 1},
                "o": {"type": "object", "default": {}, "properties": {"b": {"type": "string", "default": "x"}}}}}),
            json!({}),
            json!({"a": 1, "o": {"b": "x"}}),
        );
    }

    #[test]
    fn defaults_reach_into_lists_and_maps() {
        let item = json!({"type": "object", "properties": {"a": {"type": "integer", "default": 1}}});
        check(
            json!({"type": "object", "properties": {
                "l": {"type": "array", "items": item}, "m": {"type": "object", "additionalProperties": item}}}),
            json!({"l": [{}, {"a": 2}], "m": {"k": {}}}),
            json!({"l": [{"a": 1}, {"a": 2}], "m": {"k": {"a": 1}}}),
        );
    }

    #[test]
    fn nulls_count_as_nothing_unless_nullable() {
        check(
            json!({"type": "object", "properties": {
                "filled": {"type": "integer", "default": 1},
                "dropped": {"type": "integer"},
                "kept": {"type": "integer", "nullable": true, "default": 1}}}),
            json!({"filled": null, "dropped": null, "kept": null}),
            json!({"filled": 1, "kept": null}),
        );
    }

    #[test]
    fn a_default_that_would_be_there_a_million_times_is_not() {
        let text = "x".repeat(1 << 20);
        let item = json!({"type": "object", "properties": {"a": {"type": "string", "default": text}}});
        let spec = json!({"type": "object", "properties": {"spec": {"type": "array", "items": item}}});
        let schema = Schema::parse(&spec, "s").expect("valid");
        let mut object = json!({"spec": vec![json!({}); 100_000]});
        apply(&schema, &mut object);
        let filled = object["spec"].as_array().unwrap().iter().filter(|item| item["a"].is_string()).count();
        assert_eq!(filled, 2, "more than can be stored, and not much more");
    }
}
