//! What CEL knows about the values of a schema: their types, and how large they can get.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use serde_json::Value;

use crate::schema::{Schema, Type};

/// The largest request, which bounds everything that no schema bounds.
pub(crate) const MAX_REQUEST_BYTES: u64 = 3 * 1024 * 1024;

/// A CEL type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Anything; checked when the rule runs.
    Dyn,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    Timestamp,
    Duration,
    List,
    Map,
    Object,
    Optional,
    /// A type of Kubernetes' own, such as a quantity.
    Opaque(&'static str),
}

/// A type with the sizes of its values.
#[derive(Debug, Clone)]
pub(crate) struct Decl {
    pub(crate) kind: Kind,
    /// Most elements of a list or map, most bytes of a text; 0 for what has no size.
    pub(crate) max: u64,
    /// Fewest bytes of a value as JSON.
    pub(crate) min_bytes: u64,
    /// Items of a list, values of a map, what is inside an optional.
    pub(crate) element: Option<Arc<Decl>>,
    /// Fields of an object, by the names that CEL has for them.
    pub(crate) fields: BTreeMap<String, Arc<Decl>>,
}

impl Decl {
    /// A type without parts.
    pub(crate) fn simple(kind: Kind, max: u64, min_bytes: u64) -> Arc<Self> {
        Arc::new(Self { kind, max, min_bytes, element: None, fields: BTreeMap::new() })
    }

    /// A type that an expression yields: of any size.
    pub(crate) fn of_kind(kind: Kind) -> Arc<Self> {
        Self::simple(kind, 0, 1)
    }

    /// A list or optional of something.
    pub(crate) fn containing(kind: Kind, element: Arc<Decl>, max: u64) -> Arc<Self> {
        Arc::new(Self { kind, max, min_bytes: 2, element: Some(element), fields: BTreeMap::new() })
    }

    /// The type of a schema's values; `None` where CEL cannot see them.
    pub(crate) fn of_schema(schema: &Schema, is_resource: bool) -> Option<Arc<Self>> {
        let checks = &schema.checks;
        let length = || checks.max_length.map(|max| max.saturating_mul(4));
        match schema.ty {
            Type::IntOrString => Some(Self::simple(Kind::Dyn, length().unwrap_or(MAX_REQUEST_BYTES - 2), 1)),
            Type::Array => {
                let item = schema.items.as_deref()?;
                let element = Self::of_schema(item, item.embedded_resource)?;
                let max = checks.max_items.unwrap_or((MAX_REQUEST_BYTES - 2) / (element.min_bytes + 1));
                Some(Self::containing(Kind::List, element, max))
            }
            Type::Object => match &schema.additional {
                Some(values) if values.ty != Type::Any => {
                    let element = Self::of_schema(values, values.embedded_resource)?;
                    let max = checks.max_properties.unwrap_or((MAX_REQUEST_BYTES - 2) / (element.min_bytes + 6));
                    Some(Self::containing(Kind::Map, element, max))
                }
                _ => Some(Self::of_fields(schema, is_resource)),
            },
            Type::String => Some(Self::of_text(schema)),
            Type::Boolean => Some(Self::simple(Kind::Bool, 0, 4)),
            Type::Number => Some(Self::simple(Kind::Double, 0, 1)),
            Type::Integer => Some(Self::simple(Kind::Int, 0, 1)),
            Type::Any => None,
        }
    }

    fn of_fields(schema: &Schema, is_resource: bool) -> Arc<Self> {
        let mut fields = BTreeMap::new();
        let mut min_bytes = 2;
        for (name, property) in &schema.properties {
            let Some(decl) = Self::of_schema(property, property.embedded_resource) else { continue };
            if schema.checks.required.contains(name) && property.default.is_none() {
                min_bytes += name.len() as u64 + decl.min_bytes + 4;
            }
            if let Some(escaped) = escaped(name) {
                fields.insert(escaped.into_owned(), decl);
            }
        }
        if is_resource {
            add_resource_fields(&mut fields);
        }
        Arc::new(Self { kind: Kind::Object, max: 0, min_bytes, element: None, fields })
    }

    fn of_text(schema: &Schema) -> Arc<Self> {
        let checks = &schema.checks;
        match checks.format.as_deref() {
            Some("byte") => Self::simple(Kind::Bytes, checks.max_length.unwrap_or(MAX_REQUEST_BYTES - 2), 2),
            Some("duration") => Self::simple(Kind::Duration, 32, 3),
            Some("date") => Self::simple(Kind::Timestamp, 12, 12),
            Some("date-time") => Self::simple(Kind::Timestamp, 32, 21),
            _ => {
                let longest = |values: &Vec<Value>| {
                    values.iter().filter_map(Value::as_str).map(|text| text.len() as u64).max().unwrap_or_default()
                };
                let values = checks.one_of_values.as_ref().filter(|values| !values.is_empty());
                let bound = checks.max_length.map(|max| max.saturating_mul(4)).or(values.map(longest));
                Self::simple(Kind::String, bound.unwrap_or(MAX_REQUEST_BYTES - 2), 2)
            }
        }
    }

    /// The same type with the sizes that one value really has.
    pub(crate) fn measured(&self, schema: Option<&Schema>, value: &Value) -> Arc<Self> {
        let mut decl = Self { max: 0, element: None, fields: BTreeMap::new(), ..*self };
        match value {
            Value::String(text) => decl.max = text.len() as u64,
            Value::Array(items) => {
                decl.max = items.len() as u64;
                let schema = schema.and_then(|s| s.items.as_deref());
                decl.element = self.element.as_ref().map(|e| e.measured_all(schema, items.iter()));
            }
            Value::Object(map) if self.kind == Kind::Map => {
                decl.max = map.len() as u64;
                let schema = schema.and_then(|s| s.additional.as_deref());
                decl.element = self.element.as_ref().map(|e| e.measured_all(schema, map.values()));
            }
            Value::Object(map) => {
                decl.fields = self.fields.clone();
                for (name, field) in &mut decl.fields {
                    let original = unescaped(name);
                    let schema = schema.and_then(|s| s.properties.get(original.as_ref()).map(AsRef::as_ref));
                    *field = field.measured(schema, map.get(original.as_ref()).unwrap_or(&Value::Null));
                }
            }
            _ => {
                // Nothing is there; what the expression says about its parts must still have types.
                decl.element = self.element.as_ref().map(|element| element.measured(None, &Value::Null));
                decl.fields = self.fields.iter().map(|(k, f)| (k.clone(), f.measured(None, &Value::Null))).collect();
            }
        }
        Arc::new(decl)
    }

    fn measured_all<'a>(&self, schema: Option<&Schema>, values: impl Iterator<Item = &'a Value>) -> Arc<Self> {
        let each = values.map(|value| self.measured(schema, value));
        each.reduce(|a, b| a.larger(&b)).unwrap_or_else(|| self.measured(schema, &Value::Null))
    }

    /// The larger of two in every part.
    pub(crate) fn larger(&self, other: &Self) -> Arc<Self> {
        let element = match (&self.element, &other.element) {
            (Some(a), Some(b)) => Some(a.larger(b)),
            (a, b) => a.clone().or_else(|| b.clone()),
        };
        let mut fields = self.fields.clone();
        for (name, field) in &mut fields {
            if let Some(theirs) = other.fields.get(name) {
                *field = field.larger(theirs);
            }
        }
        Arc::new(Self { max: self.max.max(other.max), element, fields, ..*self })
    }

    /// How many values a copy of this one touches.
    pub(crate) fn deep_size(&self) -> u64 {
        let elements = self.element.as_ref().map_or(0, |e| self.max.saturating_mul(1 + e.deep_size()));
        let fields = self.fields.values().map(|f| f.deep_size()).fold(0, u64::saturating_add);
        let text = if matches!(self.kind, Kind::String | Kind::Bytes) { self.max / 64 } else { 0 };
        elements.saturating_add(fields).saturating_add(text).saturating_add(1)
    }
}

/// `apiVersion`, `kind` and the names are there in every resource, whatever its schema says.
fn add_resource_fields(fields: &mut BTreeMap<String, Arc<Decl>>) {
    static TEXT: LazyLock<Arc<Decl>> = LazyLock::new(|| Decl::simple(Kind::String, MAX_REQUEST_BYTES - 2, 2));
    for name in ["apiVersion", "kind"] {
        fields.entry(name.into()).or_insert_with(|| TEXT.clone());
    }
    let metadata = fields.entry("metadata".into()).or_insert_with(|| {
        Arc::new(Decl { kind: Kind::Object, max: 0, min_bytes: 2, element: None, fields: BTreeMap::new() })
    });
    let metadata = Arc::make_mut(metadata);
    for name in ["name", "generateName"] {
        metadata.fields.entry(name.into()).or_insert_with(|| TEXT.clone());
    }
}

const RESERVED: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// A field's name as CEL writes it; `None` for names that CEL cannot write at all.
pub(crate) fn escaped(name: &str) -> Option<Cow<'_, str>> {
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if RESERVED.contains(&name) {
        return Some(format!("__{name}__").into());
    }
    if !name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-./".contains(&b)) {
        return None;
    }
    if !name.contains(['-', '.', '/']) && !name.contains("__") {
        return Some(name.into());
    }
    let underscores = name.replace("__", "__underscores__");
    Some(underscores.replace('.', "__dot__").replace('-', "__dash__").replace('/', "__slash__").into())
}

/// The field's name that an escaped one stands for.
pub(crate) fn unescaped(name: &str) -> Cow<'_, str> {
    if !name.contains("__") {
        return name.into();
    }
    if let Some(word) = name.strip_prefix("__").and_then(|n| n.strip_suffix("__")).filter(|n| RESERVED.contains(n)) {
        return word.to_owned().into();
    }
    let plain = name.replace("__dot__", ".").replace("__dash__", "-").replace("__slash__", "/");
    plain.replace("__underscores__", "__").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_survive_escaping() {
        for (name, cel) in [
            ("plain", "plain"),
            ("namespace", "__namespace__"),
            ("a-b", "a__dash__b"),
            ("a.b/c", "a__dot__b__slash__c"),
            ("a__b", "a__underscores__b"),
            ("a_b", "a_b"),
        ] {
            assert_eq!(escaped(name).as_deref(), Some(cel));
            assert_eq!(unescaped(cel), name);
        }
        assert_eq!(escaped("1a"), None);
        assert_eq!(escaped("a b"), None);
    }
}
