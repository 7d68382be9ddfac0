//! Reading a CRD's schema as it was written, field by field, without believing that any field has the right type.

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

/// The JSON type that a keyword's value must have.
#[derive(Clone, Copy)]
enum Shape {
    Text,
    Flag,
    Number,
    Count,
    Texts,
    Values,
    Schema,
    SchemaList,
    SchemaMap,
    SchemaOrFlag,
    SchemaOrList,
    Rules,
}

fn shape_of(key: &str) -> Option<Shape> {
    Some(match key {
        "type"
        | "format"
        | "pattern"
        | "title"
        | "description"
        | "id"
        | "$schema"
        | "$ref"
        | "x-kubernetes-list-type"
        | "x-kubernetes-map-type" => Shape::Text,
        "nullable"
        | "uniqueItems"
        | "exclusiveMinimum"
        | "exclusiveMaximum"
        | "x-kubernetes-int-or-string"
        | "x-kubernetes-embedded-resource"
        | "x-kubernetes-preserve-unknown-fields" => Shape::Flag,
        "minimum" | "maximum" | "multipleOf" => Shape::Number,
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties" => Shape::Count,
        "required" | "x-kubernetes-list-map-keys" => Shape::Texts,
        "enum" => Shape::Values,
        "not" => Shape::Schema,
        "allOf" | "anyOf" | "oneOf" => Shape::SchemaList,
        "properties" | "patternProperties" | "definitions" => Shape::SchemaMap,
        "additionalProperties" | "additionalItems" => Shape::SchemaOrFlag,
        "items" => Shape::SchemaOrList,
        "x-kubernetes-validations" => Shape::Rules,
        _ => return None,
    })
}

/// Everything in a schema that is of the wrong JSON type or nested too deeply. Later steps rely on there being nothing.
pub(crate) fn misshapen(value: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    check_node(value, path, 0, &mut errors);
    errors
}

fn check_node(value: &Value, path: &str, depth: usize, errors: &mut Vec<FieldError>) {
    if errors.len() >= MAX_FOUND {
        return;
    }
    let Value::Object(map) = value else {
        errors.push(wrong(path, value, "a schema object"));
        return;
    };
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
    for (key, value) in map.iter().filter(|(_, value)| !value.is_null()) {
        if let Some(shape) = shape_of(key) {
            check_shape(shape, value, &format!("{path}.{key}"), depth, errors);
        }
    }
}

fn check_shape(shape: Shape, value: &Value, path: &str, depth: usize, errors: &mut Vec<FieldError>) {
    match (shape, value) {
        (Shape::Text, Value::String(_)) | (Shape::Flag, Value::Bool(_)) | (Shape::Number, Value::Number(_)) => {}
        (Shape::Values, Value::Array(_)) | (Shape::SchemaOrFlag, Value::Bool(_)) => {}
        (Shape::Count, Value::Number(number)) if number.is_i64() => {}
        (Shape::Texts, Value::Array(list)) if list.iter().all(Value::is_string) => {}
        (Shape::SchemaList | Shape::SchemaOrList, Value::Array(list)) => {
            for (index, node) in list.iter().enumerate() {
                check_node(node, &format!("{path}[{index}]"), depth + 1, errors);
            }
        }
        (Shape::SchemaMap, Value::Object(map)) => {
            for (name, node) in map {
                check_node(node, &format!("{path}[{name}]"), depth + 1, errors);
            }
        }
        (Shape::Schema | Shape::SchemaOrFlag | Shape::SchemaOrList, Value::Object(_)) => {
            check_node(value, path, depth + 1, errors);
        }
        (Shape::Rules, Value::Array(rules)) => {
            for (index, rule) in rules.iter().enumerate() {
                check_rule(rule, &format!("{path}[{index}]"), errors);
            }
        }
        (shape, value) => errors.push(wrong(path, value, expected(shape))),
    }
}

fn check_rule(rule: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let Value::Object(fields) = rule else {
        errors.push(wrong(path, rule, "an object"));
        return;
    };
    for (key, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
        let fits = match key.as_str() {
            "optionalOldSelf" => value.is_boolean(),
            "rule" | "message" | "messageExpression" | "reason" | "fieldPath" => value.is_string(),
            _ => true,
        };
        if !fits {
            errors.push(wrong(&format!("{path}.{key}"), value, "of another type"));
        }
    }
}

fn expected(shape: Shape) -> &'static str {
    match shape {
        Shape::Text => "a string",
        Shape::Flag => "a boolean",
        Shape::Number => "a number",
        Shape::Count => "an integer",
        Shape::Texts => "a list of strings",
        Shape::Values | Shape::Rules => "a list",
        Shape::Schema => "a schema",
        Shape::SchemaList => "a list of schemas",
        Shape::SchemaMap => "a map of schemas",
        Shape::SchemaOrFlag => "a schema or a boolean",
        Shape::SchemaOrList => "a schema",
    }
}

fn wrong(path: &str, value: &Value, expected: &str) -> FieldError {
    FieldError::with_value(path, Fault::TypeInvalid, value, format!("must be {expected}"))
}
