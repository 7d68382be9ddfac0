//! How server-side apply sees a value through its schema: as a leaf, as fields, or as named items.
//!
//! A leaf is owned as a whole. Where the schema says nothing (`Type::Any`, undeclared fields) the shape is deduced from
//! the value: maps field by field, lists as a whole.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value};

use super::fields::MAX_DEPTH;
use super::path::{Literal, PathElement};
use crate::schema::{ListKind, Schema, Type};

/// The form of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Owned as a whole: scalars, atomic maps and lists.
    Leaf,
    /// A struct or map, owned field by field.
    Fields,
    /// A set or a list with keys, owned item by item.
    Items,
}

/// The form in which the schema sees the value.
pub(super) fn form(schema: &Schema, value: &Value, depth: usize) -> Form {
    let fields = if schema.atomic_map || depth > MAX_DEPTH { Form::Leaf } else { Form::Fields };
    let items = if schema.list == ListKind::Atomic || depth > MAX_DEPTH { Form::Leaf } else { Form::Items };
    match (schema.ty, value) {
        (Type::Object, _) | (Type::Any, Value::Object(_) | Value::Null) => fields,
        (Type::Array, _) | (Type::Any, Value::Array(_)) => items,
        _ => Form::Leaf,
    }
}

/// A child of a value: its schema, and whether the schema knows it by name (a field of a struct, not a map's entry).
#[derive(Debug, Clone, Copy)]
pub(super) struct Child<'s> {
    pub(super) schema: &'s Schema,
    pub(super) named: bool,
}

/// The field of that name. Undeclared fields are deduced; only [`super::check`] minds them.
pub(super) fn field<'s>(schema: &'s Schema, name: &str, depth: usize) -> Child<'s> {
    declared(schema, name, depth).unwrap_or(Child { schema: &DEDUCED, named: false })
}

/// The field of that name, if the schema has a place for it.
pub(super) fn declared<'s>(schema: &'s Schema, name: &str, depth: usize) -> Option<Child<'s>> {
    if let Some(common) = common(schema, name, depth) {
        return Some(Child { schema: common, named: true });
    }
    if let Some(property) = schema.properties.get(name) {
        return Some(Child { schema: property, named: true });
    }
    if let Some(additional) = &schema.additional {
        return Some(Child { schema: additional, named: false });
    }
    let free = schema.preserve_unknown || schema.properties.is_empty();
    free.then_some(Child { schema: &DEDUCED, named: false })
}

/// The field of that name, if it is one that every object has.
pub(super) fn common(schema: &Schema, name: &str, depth: usize) -> Option<&'static Schema> {
    let whole_object = depth == 0 || schema.embedded_resource;
    COMMON.get(name).filter(|_| whole_object)
}

/// The schema of a list's items.
pub(super) fn items(schema: &Schema) -> &Schema {
    schema.items.as_deref().unwrap_or(&DEDUCED)
}

/// The schema behind a path element.
pub(super) fn behind<'s>(schema: &'s Schema, element: &PathElement, depth: usize) -> Child<'s> {
    match element {
        PathElement::Field(name) => field(schema, name, depth),
        _ => Child { schema: items(schema), named: false },
    }
}

/// The names of all items of a set or list with keys, or what is wrong with the first one that has none.
pub(super) fn item_names(schema: &Schema, list: &[Value]) -> Result<Vec<PathElement>, String> {
    let named = list.iter().enumerate();
    named.map(|(n, item)| item_name(schema, item).map_err(|why| format!("element {n}: {why}"))).collect()
}

/// How an item is told apart from its siblings.
pub(super) fn item_name(schema: &Schema, item: &Value) -> Result<PathElement, String> {
    match &schema.list {
        ListKind::Atomic => Err("invalid indexing of non-associative list".to_owned()),
        ListKind::Set => match item {
            Value::Object(_) => Err("associative list without keys has an element that's a map type".to_owned()),
            Value::Array(_) => Err("not supported: associative list with lists as elements".to_owned()),
            Value::Null => Err("associative list without keys has an element that's an explicit null".to_owned()),
            scalar => Ok(PathElement::Value(Literal(scalar.clone()))),
        },
        ListKind::Map(keys) => match item {
            Value::Object(map) => key_of(keys, items(schema), map),
            Value::Null => Err("associative list with keys may not have a null element".to_owned()),
            _ => Err("associative list with keys may not have non-map elements".to_owned()),
        },
    }
}

/// The key fields of an item. An absent one takes its default; without a default it is left out of the name.
fn key_of(keys: &[String], item: &Schema, map: &Map<String, Value>) -> Result<PathElement, String> {
    let value_of = |key: &String| map.get(key).or_else(|| item.properties.get(key)?.default.as_ref());
    let mut named: Vec<(String, Literal)> =
        keys.iter().filter_map(|key| Some((key.clone(), Literal(value_of(key)?.clone())))).collect();
    if named.is_empty() {
        let keys: Vec<String> = keys.iter().map(|key| format!("{key:?}")).collect();
        return Err(format!(
            "associative list with keys has an element that omits all key fields [{}] (and doesn't have default \
             values for any key fields)",
            keys.join(" ")
        ));
    }
    named.sort();
    Ok(PathElement::Key(named))
}

/// The fields of a value that has any.
pub(super) fn fields_of(value: Option<&Value>) -> Option<&Map<String, Value>> {
    value.and_then(Value::as_object).filter(|map| !map.is_empty())
}

/// The items of a value that has any.
pub(super) fn items_of(value: Option<&Value>) -> Option<&[Value]> {
    value.and_then(Value::as_array).map(Vec::as_slice).filter(|list| !list.is_empty())
}

static DEDUCED: LazyLock<Schema> = LazyLock::new(Schema::default);

/// The fields that every object has. A custom resource's own schema may not say how to merge them.
static COMMON: LazyLock<BTreeMap<&'static str, Schema>> = LazyLock::new(|| {
    BTreeMap::from([("apiVersion", of(Type::String)), ("kind", of(Type::String)), ("metadata", metadata())])
});

fn metadata() -> Schema {
    let texts = Schema { additional: Some(Arc::new(of(Type::String))), ..of(Type::Object) };
    let owner =
        |name| (name, if matches!(name, "controller" | "blockOwnerDeletion") { Type::Boolean } else { Type::String });
    let owner_fields = ["apiVersion", "blockOwnerDeletion", "controller", "kind", "name", "uid"].map(owner);
    // An owner that is not named is for validation to refuse.
    let default = |name| (name == "uid").then(|| Value::from(""));
    let owner_field = |(name, ty)| (String::from(name), Arc::new(Schema { default: default(name), ..of(ty) }));
    let owner = Schema { properties: owner_fields.map(owner_field).into(), atomic_map: true, ..of(Type::Object) };
    let list = |list, item| Schema { list, items: Some(Arc::new(item)), ..of(Type::Array) };
    let fields = [
        ("annotations", texts.clone()),
        ("creationTimestamp", of(Type::String)),
        ("deletionGracePeriodSeconds", of(Type::Integer)),
        ("deletionTimestamp", of(Type::String)),
        ("finalizers", list(ListKind::Set, of(Type::String))),
        ("generateName", of(Type::String)),
        ("generation", of(Type::Integer)),
        ("labels", texts),
        ("managedFields", list(ListKind::Atomic, of(Type::Any))),
        ("name", of(Type::String)),
        ("namespace", of(Type::String)),
        ("ownerReferences", list(ListKind::Map(vec!["uid".to_owned()]), owner)),
        ("resourceVersion", of(Type::String)),
        ("selfLink", of(Type::String)),
        ("uid", of(Type::String)),
    ];
    Schema { properties: fields.map(|(name, schema)| (name.to_owned(), Arc::new(schema))).into(), ..of(Type::Object) }
}

fn of(ty: Type) -> Schema {
    Schema { ty, ..Schema::default() }
}
