//! Reading a CRD's schema as it was written, field by field. A field of the wrong type reads as absent: whoever decodes
//! definitions refuses it.

use serde_json::{Map, Value};

use crate::refusal::{Fault, FieldError, MAX_FOUND};

/// How deep a schema may nest. Ours to choose: the original only has the limit of its JSON reader, but recursion over
/// a schema must fit a small stack here.
pub(crate) const MAX_DEPTH: usize = 64;

/// How long the path to a node may be. Every step that looks at a schema writes it out for every node.
const MAX_PATH: usize = 4 << 10;

/// One node of a schema as written.
#[derive(Clone, Copy)]
pub(crate) struct Raw<'a>(pub(crate) &'a Map<String, Value>);

impl<'a> Raw<'a> {
    /// The field, unless it is `null`.
    pub(crate) fn get(self, key: &str) -> Option<&'a Value> {
        self.0.get(key).filter(|value| !value.is_null())
    }

    /// A text field; empty when absent.
    pub(crate) fn text(self, key: &str) -> &'a str {
        self.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    /// A text field that may be empty without being absent.
    pub(crate) fn text_option(self, key: &str) -> Option<&'a str> {
        self.get(key).and_then(Value::as_str)
    }

    /// A flag; false when absent.
    pub(crate) fn flag(self, key: &str) -> bool {
        self.get(key).and_then(Value::as_bool).unwrap_or_default()
    }

    /// A schema field.
    pub(crate) fn schema(self, key: &str) -> Option<Raw<'a>> {
        self.get(key).and_then(Value::as_object).map(Raw)
    }

    /// A field that maps names to schemas, in the order of the names.
    pub(crate) fn schemas(self, key: &str) -> impl Iterator<Item = (&'a str, Raw<'a>)> {
        let map = self.get(key).and_then(Value::as_object);
        map.into_iter().flatten().filter_map(|(name, value)| Some((name.as_str(), Raw(value.as_object()?))))
    }

    /// A field that lists schemas.
    pub(crate) fn list(self, key: &str) -> impl Iterator<Item = (usize, Raw<'a>)> {
        let list = self.get(key).and_then(Value::as_array);
        let nodes = list.into_iter().flatten().enumerate();
        nodes.filter_map(|(index, value)| Some((index, Raw(value.as_object()?))))
    }

    /// A field that lists texts.
    pub(crate) fn texts(self, key: &str) -> Vec<&'a str> {
        let list = self.get(key).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// One property's schema.
    pub(crate) fn property(self, name: &str) -> Option<Raw<'a>> {
        self.schema("properties").and_then(|properties| properties.schema(name))
    }

    /// Whether an object or list field is there and has something in it.
    pub(crate) fn has_entries(self, key: &str) -> bool {
        match self.get(key) {
            Some(Value::Object(map)) => !map.is_empty(),
            Some(Value::Array(list)) => !list.is_empty(),
            _ => false,
        }
    }

    /// The items' schema; `items` may also be a list of schemas, which is refused elsewhere.
    pub(crate) fn items(self) -> Option<Raw<'a>> {
        self.schema("items")
    }

    /// `additionalProperties`, which is a schema or a flag.
    pub(crate) fn additional(self) -> Option<Additional<'a>> {
        match self.get("additionalProperties")? {
            Value::Object(map) => Some(Additional::Schema(Raw(map))),
            Value::Bool(allowed) => Some(Additional::Allowed(*allowed)),
            _ => None,
        }
    }
}

/// The two forms of `additionalProperties`.
#[derive(Clone, Copy)]
pub(crate) enum Additional<'a> {
    /// Other fields are of this schema.
    Schema(Raw<'a>),
    /// Other fields are allowed or not.
    Allowed(bool),
}

/// What holds schemas in a schema.
const SINGLE: [&str; 4] = ["items", "not", "additionalProperties", "additionalItems"];
const LISTS: [&str; 4] = ["items", "allOf", "anyOf", "oneOf"];
const MAPS: [&str; 3] = ["properties", "patternProperties", "definitions"];

/// Where a schema is nested too deeply, or lies too far down. Later steps rely on there being no such place.
pub(crate) fn out_of_bounds(schema: Raw<'_>, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    check_node(schema, path, 0, &mut errors);
    errors
}

fn check_node(schema: Raw<'_>, path: &str, depth: usize, errors: &mut Vec<FieldError>) {
    if errors.len() >= MAX_FOUND {
        return;
    }
    if depth > MAX_DEPTH {
        let detail = format!("must not be nested deeper than {MAX_DEPTH} levels");
        errors.push(FieldError::new(path, Fault::Forbidden, detail));
        return;
    }
    if path.len() > MAX_PATH {
        let detail = format!("must not have a path longer than {MAX_PATH} bytes");
        errors.push(FieldError::new(path, Fault::Forbidden, detail));
        return;
    }
    for key in SINGLE {
        if let Some(node) = schema.schema(key) {
            check_node(node, &format!("{path}.{key}"), depth + 1, errors);
        }
    }
    for key in LISTS {
        schema.list(key).for_each(|(n, node)| check_node(node, &format!("{path}.{key}[{n}]"), depth + 1, errors));
    }
    for key in MAPS {
        schema
            .schemas(key)
            .for_each(|(name, node)| check_node(node, &format!("{path}.{key}[{name}]"), depth + 1, errors));
    }
}
