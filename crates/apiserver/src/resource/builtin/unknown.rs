//! Fields of definitions' schemas that nobody knows. The schema of a schema would contain itself, so the table of messages
//! is walked instead.

use serde_json::{Map, Value};

use super::wire::{self, Kind, Message, Shape};
use crate::refusal::Findings;

/// Drops what is unknown in the schemas of a definition, and returns the paths of it.
pub fn drop_unknown_of_definitions(definition: &mut Value) -> Vec<String> {
    let mut walk = Walk { path: String::new(), found: Findings::default() };
    let versions = definition.get_mut("spec").and_then(|spec| spec.get_mut("versions")).and_then(Value::as_array_mut);
    for (n, version) in versions.into_iter().flatten().enumerate() {
        let schema = version.get_mut("schema").and_then(|schema| schema.get_mut("openAPIV3Schema"));
        if let Some(schema) = schema {
            walk.at(&format!("spec.versions[{n}].schema.openAPIV3Schema"), |walk| walk.schema(schema));
        }
    }
    walk.found.into_told()
}

struct Walk {
    /// The path of the value at hand.
    path: String,
    found: Findings<String>,
}

impl Walk {
    fn schema(&mut self, value: &mut Value) {
        self.one(Kind::Message(wire::SCHEMA), value);
    }

    fn message(&mut self, message: &Message, map: &mut Map<String, Value>) {
        map.retain(|name, value| match message.fields.iter().find(|field| field.name == name) {
            Some(field) => {
                self.at(&format!(".{name}"), |walk| walk.value(field.shape, value));
                true
            }
            None => {
                self.at(&format!(".{name}"), |walk| {
                    let path = &walk.path;
                    walk.found.tell(|| path.clone());
                });
                false
            }
        });
    }

    fn value(&mut self, shape: Shape, value: &mut Value) {
        match (shape, value) {
            (Shape::One(kind), value) => self.one(kind, value),
            (Shape::List(kind), Value::Array(items)) => self.items(kind, items),
            (Shape::Map(kind), Value::Object(map)) => {
                map.iter_mut().for_each(|(name, value)| self.at(&format!(".{name}"), |walk| walk.one(kind, value)));
            }
            _ => {}
        }
    }

    fn items(&mut self, kind: Kind, items: &mut [Value]) {
        items.iter_mut().enumerate().for_each(|(n, item)| self.at(&format!("[{n}]"), |walk| walk.one(kind, item)));
    }

    fn one(&mut self, kind: Kind, value: &mut Value) {
        match (kind, value) {
            (Kind::Message(name), Value::Object(map)) => {
                if let Some(message) = wire::find(name) {
                    self.message(message, map);
                }
            }
            (Kind::SchemaOrList | Kind::SchemaOrBool | Kind::SchemaOrStrings, value @ Value::Object(_)) => {
                self.schema(value);
            }
            (Kind::SchemaOrList, Value::Array(items)) => self.items(Kind::Message(wire::SCHEMA), items),
            _ => {}
        }
    }

    fn at(&mut self, step: &str, look: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        self.path.push_str(step);
        look(self);
        self.path.truncate(length);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_nobody_knows_is_dropped_and_told_wherever_it_stands() {
        let schema = json!({"type": "object", "requird": ["a"], "default": {"any": {"thing": 1}}, "properties": {
            "a": {"typ": "string", "items": {"x": 1, "type": "string"}},
            "requird": {"additionalProperties": {"y": 1}, "allOf": [{}, {"z": 1}], "enum": [{"free": 1}]},
        }, "x-kubernetes-validations": [{"rule": "true", "rul": ""}]});
        let mut definition = json!({"spec": {"versions": [{"name": "v1"}, {"schema": {"openAPIV3Schema": schema}}]}});
        let mut unknown = drop_unknown_of_definitions(&mut definition);
        unknown.sort();
        let at = "spec.versions[1].schema.openAPIV3Schema";
        let expected = [
            ".properties.a.items.x",
            ".properties.a.typ",
            ".properties.requird.additionalProperties.y",
            ".properties.requird.allOf[1].z",
            ".requird",
            ".x-kubernetes-validations[0].rul",
        ];
        assert_eq!(unknown, expected.map(|path| format!("{at}{path}")));
        let kept = json!({"type": "object", "default": {"any": {"thing": 1}}, "properties": {
            "a": {"items": {"type": "string"}},
            "requird": {"additionalProperties": {}, "allOf": [{}, {}], "enum": [{"free": 1}]},
        }, "x-kubernetes-validations": [{"rule": "true"}]});
        assert_eq!(definition["spec"]["versions"][1]["schema"]["openAPIV3Schema"], kept);
    }
}
