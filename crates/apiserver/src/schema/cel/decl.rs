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

/// What is taken for the size of each item of a list, where all of them are measured.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Items {
    /// That of the largest: nothing costs more.
    Largest,
    /// The mean: what a look at every item costs.
    Mean,
}

/// A type with the sizes of its values.
#[derive(Debug, Clone)]
pub(crate) struct Decl {
    pub(crate) kind: Kind,
    /// Most elements of a list or map, most bytes of a text; 0 for what has no size.
    pub(crate) max: u64,
    /// Fewest bytes of a value as JSON.
    pub(crate) min_bytes: u64,
    /// Keys of a map; of nothing else it says anything.
    pub(crate) key: Kind,
    /// Items of a list, values of a map, what is inside an optional.
    element: Option<Arc<Decl>>,
    /// Fields of an object, by the names that CEL has for them.
    fields: BTreeMap<String, Arc<Decl>>,
    /// Of a type that was measured: what it was declared as. Parts that are declared and not among the above are not in
    /// the value. They are made when somebody asks for them: to have them ready would cost a small value as much as its
    /// declaration is large.
    declared: Option<Arc<Decl>>,
}

impl Decl {
    /// A type without parts.
    pub(crate) fn simple(kind: Kind, max: u64, min_bytes: u64) -> Arc<Self> {
        Arc::new(Self { kind, max, min_bytes, ..Self::default() })
    }

    /// A type that an expression yields: of any size.
    pub(crate) fn of_kind(kind: Kind) -> Arc<Self> {
        Self::simple(kind, 0, 1)
    }

    /// A list or optional of something, or a map of it by text.
    pub(crate) fn containing(kind: Kind, element: Arc<Decl>, max: u64) -> Arc<Self> {
        Arc::new(Self { kind, max, min_bytes: 2, element: Some(element), ..Self::default() })
    }

    /// A map that an expression writes out.
    pub(crate) fn map(key: Kind, element: Arc<Decl>, max: u64) -> Arc<Self> {
        Arc::new(Self { kind: Kind::Map, max, min_bytes: 2, key, element: Some(element), ..Self::default() })
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
        Arc::new(Self { kind: Kind::Object, min_bytes, fields, ..Self::default() })
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

    /// Items of a list, values of a map, what is inside an optional.
    pub(crate) fn element(&self) -> Option<Arc<Self>> {
        let absent = || Some(self.declared.as_ref()?.element.as_ref()?.absent());
        self.element.clone().or_else(absent)
    }

    /// A field of an object, by the name that CEL has for it.
    pub(crate) fn field(&self, name: &str) -> Option<Arc<Self>> {
        let absent = || Some(self.declared.as_ref()?.fields.get(name)?.absent());
        self.fields.get(name).cloned().or_else(absent)
    }

    /// The type of a value that is not there; what an expression says about its parts must still have types.
    fn absent(self: &Arc<Self>) -> Arc<Self> {
        Arc::new(self.empty())
    }

    fn empty(self: &Arc<Self>) -> Self {
        let Self { kind, min_bytes, key, .. } = **self;
        Self { kind, min_bytes, key, declared: Some(self.clone()), ..Self::default() }
    }

    /// The same type with the sizes that one value really has. It has no more parts than the value.
    pub(crate) fn measured(self: &Arc<Self>, value: &Value, items: Items) -> Arc<Self> {
        let mut decl = self.empty();
        match value {
            Value::String(text) => decl.max = text.len() as u64,
            Value::Array(list) => {
                decl.max = list.len() as u64;
                decl.element = self.element.as_ref().and_then(|e| e.measured_all(list.iter(), items));
            }
            Value::Object(map) if self.kind == Kind::Map => {
                decl.max = map.len() as u64;
                decl.element = self.element.as_ref().and_then(|e| e.measured_all(map.values(), items));
            }
            Value::Object(map) => {
                for (name, value) in map {
                    let Some(name) = escaped(name) else { continue };
                    if let Some(field) = self.fields.get(name.as_ref()) {
                        decl.fields.insert(name.into_owned(), field.measured(value, items));
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
        Arc::new(decl)
    }

    /// One for all of them; `None` where there are none.
    fn measured_all<'a>(
        self: &Arc<Self>,
        values: impl ExactSizeIterator<Item = &'a Value>,
        items: Items,
    ) -> Option<Arc<Self>> {
        let count = values.len() as u64;
        let sizes = match items {
            Items::Largest => u64::max,
            Items::Mean => u64::saturating_add,
        };
        let mut each = values.map(|value| self.measured(value, items));
        let mut all = each.next()?;
        // Taken in one by one, each costs what it has, and not what all before it had together.
        each.for_each(|one| Arc::make_mut(&mut all).take_in(&one, sizes));
        Some(match items {
            Items::Largest => all,
            Items::Mean => all.divided(count),
        })
    }

    /// The same type with another size.
    pub(crate) fn resized(&self, max: u64) -> Self {
        Self { max, ..self.clone() }
    }

    /// The larger of two in every part.
    pub(crate) fn larger(&self, other: &Self) -> Arc<Self> {
        let mut larger = self.clone();
        larger.take_in(other, u64::max);
        Arc::new(larger)
    }

    fn take_in(&mut self, other: &Self, sizes: fn(u64, u64) -> u64) {
        self.max = sizes(self.max, other.max);
        if self.key != other.key {
            self.key = Kind::Dyn;
        }
        match (&mut self.element, &other.element) {
            (Some(own), Some(theirs)) => Arc::make_mut(own).take_in(theirs, sizes),
            (own @ None, Some(theirs)) => *own = Some(theirs.clone()),
            (_, None) => {}
        }
        for (name, theirs) in &other.fields {
            if let Some(own) = self.fields.get_mut(name) {
                Arc::make_mut(own).take_in(theirs, sizes);
            } else if self.declared.is_some() {
                self.fields.insert(name.clone(), theirs.clone());
            }
        }
    }

    fn divided(&self, by: u64) -> Arc<Self> {
        let element = self.element.as_ref().map(|element| element.divided(by));
        let fields = self.fields.iter().map(|(name, field)| (name.clone(), field.divided(by))).collect();
        let Self { kind, max, min_bytes, key, .. } = *self;
        Arc::new(Self { kind, max: max.div_ceil(by), min_bytes, key, element, fields, declared: self.declared.clone() })
    }

    /// How many values a copy of this one touches.
    pub(crate) fn deep_size(&self) -> u64 {
        let elements = self.element.as_ref().map_or(0, |e| self.max.saturating_mul(e.deep_size().saturating_add(1)));
        let fields = self.fields.values().map(|f| f.deep_size()).fold(0, u64::saturating_add);
        let text = if matches!(self.kind, Kind::String | Kind::Bytes) { self.max / 64 } else { 0 };
        elements.saturating_add(fields).saturating_add(text).saturating_add(1)
    }

    /// Of how many parts the type is made: what it takes to go through it.
    pub(crate) fn parts(&self) -> u64 {
        self.element.iter().chain(self.fields.values()).map(|part| part.parts()).sum::<u64>() + 1
    }
}

impl Default for Decl {
    fn default() -> Self {
        let (element, fields, declared) = (None, BTreeMap::new(), None);
        Self { kind: Kind::Dyn, max: 0, min_bytes: 0, key: Kind::String, element, fields, declared }
    }
}

/// `apiVersion`, `kind` and the names are there in every resource, whatever its schema says.
fn add_resource_fields(fields: &mut BTreeMap<String, Arc<Decl>>) {
    static TEXT: LazyLock<Arc<Decl>> = LazyLock::new(|| Decl::simple(Kind::String, MAX_REQUEST_BYTES - 2, 2));
    for name in ["apiVersion", "kind"] {
        fields.entry(name.into()).or_insert_with(|| TEXT.clone());
    }
    let metadata = fields.entry("metadata".into()).or_insert_with(|| Decl::simple(Kind::Object, 0, 2));
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

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;

    #[test]
    fn names_are_written_so_that_cel_can_read_them() {
        for (name, cel) in [
            ("plain", "plain"),
            ("namespace", "__namespace__"),
            ("a-b", "a__dash__b"),
            ("a.b/c", "a__dot__b__slash__c"),
            ("a__b", "a__underscores__b"),
            ("a_b", "a_b"),
        ] {
            assert_eq!(escaped(name).as_deref(), Some(cel));
        }
        assert_eq!(escaped("1a"), None);
        assert_eq!(escaped("a b"), None);
    }

    /// A list of objects of 1,000 fields, each of which has 20 of its own.
    fn large() -> Arc<Decl> {
        let inner: Map<String, Value> = (0..20).map(|n| (format!("i{n}"), json!({"type": "string"}))).collect();
        let field = json!({"type": "object", "properties": inner});
        let fields: Map<String, Value> = (0..1000).map(|n| (format!("f{n}"), field.clone())).collect();
        let list = json!({"type": "array", "items": {"type": "object", "properties": fields}});
        let schema = Schema::parse(&json!({"type": "object", "properties": {"list": list}}), "").expect("a schema");
        Decl::of_schema(&schema, false).expect("a type")
    }

    #[test]
    fn what_is_measured_has_no_more_parts_than_the_value() {
        let declared = large();
        assert!(declared.parts() > 20_000, "{}", declared.parts());
        for items in [Items::Largest, Items::Mean] {
            let measured = declared.measured(&json!({"list": vec![json!({}); 10_000]}), items);
            assert_eq!(measured.parts(), 3, "the object, the list and its items");
            let one = measured.field("list").and_then(|list| list.element()).expect("an item");
            // What is not there has a type all the same, and all of its parts have.
            let absent = one.field("f7").expect("a field");
            assert!(absent.kind == Kind::Object && absent.parts() == 1);
            let text = absent.field("i3").expect("a field of it");
            assert!(text.kind == Kind::String && text.max == 0);
            assert!(one.field("other").is_none());
        }
        let nothing = declared.measured(&json!({}), Items::Largest);
        let item = nothing.field("list").and_then(|list| list.element()).expect("an item of no list");
        assert!(item.field("f0").is_some_and(|field| field.kind == Kind::Object));
    }

    #[test]
    fn of_many_items_the_largest_counts_or_the_mean() {
        let declared = large();
        let value = json!({"list": [{"f1": {"i1": "a"}}, {"f2": {"i1": "abc"}}, {"f1": {"i1": "abcde"}}, {}]});
        let size = |items: Items, field: &str| {
            let item = declared.measured(&value, items).field("list").and_then(|list| list.element()).expect("an item");
            item.field(field).and_then(|field| field.field("i1")).expect("a text").max
        };
        assert_eq!((size(Items::Largest, "f1"), size(Items::Largest, "f2"), size(Items::Largest, "f3")), (5, 3, 0));
        assert_eq!((size(Items::Mean, "f1"), size(Items::Mean, "f2"), size(Items::Mean, "f3")), (2, 1, 0));
    }
}
