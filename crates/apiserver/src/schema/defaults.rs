//! Filling in what a schema says stands where nothing was written.

use serde_json::{Map, Value};

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
                match &schema.compiled.defaulted {
                    _ if self.room == 0 => {}
                    // Only those that have one: there may be many others, and many objects that have none of them.
                    Some(names) => names.iter().for_each(|name| self.fill_field(schema, name, map)),
                    // Schemas that were not parsed from a CRD come without compiled parts.
                    None => schema.properties.keys().for_each(|name| self.fill_field(schema, name, map)),
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

    fn fill_field(&mut self, schema: &Schema, name: &String, map: &mut Map<String, Value>) {
        if let Some(default) = schema.properties.get(name).and_then(|property| property.default.as_ref())
            && !map.contains_key(name)
            && let Some(default) = self.copy(default, name)
        {
            map.insert(name.clone(), default);
        }
    }

    fn replace_null(&mut self, schema: &Schema, value: &mut Value) {
        if let Some(default) = schema.default.as_ref().filter(|_| value.is_null() && !schema.nullable)
            && let Some(default) = self.copy(default, "")
        {
            *value = default;
        }
    }

    /// A copy, if there is room for it. Where there is none there is none for any other: what has been filled in by then
    /// is more than can be stored, and to go on weighing would take as long as there are items.
    fn copy(&mut self, default: &Value, name: &str) -> Option<Value> {
        match self.take(name.len()).and_then(|()| self.weigh(default)) {
            Some(()) => Some(default.clone()),
            None => {
                self.room = 0;
                None
            }
        }
    }

    /// Takes the room that a value needs as text, or a little less.
    fn weigh(&mut self, value: &Value) -> Option<()> {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => self.take(1),
            Value::String(text) => self.take(text.len() + 2),
            Value::Array(items) => {
                self.take(2)?;
                items.iter().try_for_each(|item| self.weigh(item))
            }
            Value::Object(map) => {
                self.take(2)?;
                map.iter().try_for_each(|(name, value)| self.take(name.len()).and_then(|()| self.weigh(value)))
            }
        }
    }

    fn take(&mut self, bytes: usize) -> Option<()> {
        self.room = self.room.checked_sub(bytes)?;
        Some(())
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

    #[test]
    fn where_there_is_no_room_left_nothing_is_weighed_any_more() {
        let item = json!({"type": "object", "properties": {
            "a": {"type": "array", "items": {"type": "integer"}, "default": vec![0; 700_000]}, "b": {"type": "string"}}});
        let schema = json!({"type": "object", "properties": {"spec": {"type": "array", "items": item}}});
        let schema = Schema::parse(&schema, "s").expect("valid");
        let mut object = json!({"spec": vec![json!({}); 1000]});
        let mut filling = Filling { room: MAX_FILLED };
        filling.fill(&schema, &mut object);
        let filled = object["spec"].as_array().unwrap().iter().filter(|item| item["a"].is_array()).count();
        assert_eq!((filled, filling.room), (4, 0), "the fifth does not fit, and nobody looks at the sixth");
    }
}
