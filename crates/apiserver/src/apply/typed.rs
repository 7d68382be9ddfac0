//! Values and field sets, brought together by a schema: which fields a value has, and a value without some of them.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::fields::{FieldSet, Node};
use super::path::PathElement;
use super::shape::{self, Form, behind, field, form, item_name, item_names};
use crate::schema::{ListKind, Schema, Type};

/// Every field and item that a value has. Fields of structs are in it only as far as they hold something themselves;
/// entries of maps and items of lists are in it for their own sake.
pub fn set_of(value: &Value, schema: &Schema) -> FieldSet {
    node_of(value, schema, 0).below
}

fn node_of(value: &Value, schema: &Schema, depth: usize) -> Node {
    match (form(schema, value, depth), value) {
        (Form::Fields, Value::Object(map)) => {
            let fields = map.iter().map(|(name, value)| {
                let child = field(schema, name, depth);
                let mut below = node_of(value, child.schema, depth + 1);
                let holds_nothing = value.is_null() || value.as_object().is_some_and(Map::is_empty);
                below.member |= holds_nothing || !child.named;
                (PathElement::field(name), below)
            });
            Node { member: false, below: FieldSet::of_nodes(fields.collect()) }
        }
        (Form::Items, Value::Array(list)) => match item_names(schema, list) {
            Ok(names) => items_node(names, list, schema, depth),
            Err(_) => Node::leaf(),
        },
        (Form::Leaf, _) => Node::leaf(),
        _ => Node::default(),
    }
}

/// Items that share a name are in the set by that name only: nobody can say whose fields are whose.
fn items_node(names: Vec<PathElement>, list: &[Value], schema: &Schema, depth: usize) -> Node {
    let mut unique: BTreeMap<PathElement, Option<&Value>> = BTreeMap::new();
    for (name, item) in names.into_iter().zip(list) {
        unique.entry(name).and_modify(|item| *item = None).or_insert(Some(item));
    }
    let nodes = unique.into_iter().map(|(name, item)| {
        let below = item.map(|item| node_of(item, shape::items(schema), depth + 1).below).unwrap_or_default();
        (name, Node { member: true, below })
    });
    Node { member: false, below: FieldSet::of_nodes(nodes.collect()) }
}

/// The value without the fields of a set. A map or list that loses all it has leaves `null` behind, as in the original,
/// where that is the absence of a value for every field but those of custom resources.
pub fn remove(value: Value, set: &FieldSet, schema: &Schema) -> Value {
    without(value, set, schema, 0)
}

fn without(value: Value, set: &FieldSet, schema: &Schema, depth: usize) -> Value {
    match (form(schema, &value, depth), value) {
        (Form::Fields, Value::Object(map)) if !map.is_empty() => {
            let keep = |(name, value): (String, Value)| {
                let kept = match set.get_field(&name) {
                    None => value,
                    Some(node) if node.member => return None,
                    Some(node) => without(value, &node.below, field(schema, &name, depth).schema, depth + 1),
                };
                Some((name, kept))
            };
            let left: Map<String, Value> = map.into_iter().filter_map(keep).collect();
            if left.is_empty() { Value::Null } else { Value::Object(left) }
        }
        (Form::Items, Value::Array(list)) if !list.is_empty() => {
            let keep = |item: Value| {
                let Ok(name) = item_name(schema, &item) else { return Some(item) };
                match set.get(&name) {
                    None => Some(item),
                    Some(node) if node.member => None,
                    Some(node) => Some(without(item, &node.below, shape::items(schema), depth + 1)),
                }
            };
            let left: Vec<Value> = list.into_iter().filter_map(keep).collect();
            if left.is_empty() { Value::Null } else { Value::Array(left) }
        }
        // Fields below a leaf are from before it was one: they cannot be taken out of it one by one.
        (Form::Leaf, Value::Object(_) | Value::Array(_)) => Value::Null,
        (_, value) => value,
    }
}

/// The part of a value that a set covers: what its manager said, read back from the object. Items keep their keys.
pub fn extract(value: &Value, set: &FieldSet, schema: &Schema) -> Value {
    part(value, set, schema, 0)
}

fn part(value: &Value, set: &FieldSet, schema: &Schema, depth: usize) -> Value {
    match (form(schema, value, depth), value) {
        (Form::Fields, Value::Object(map)) => {
            let covered = map.iter().filter_map(|(name, value)| {
                let node = set.get_field(name)?;
                let child = field(schema, name, depth).schema;
                let value =
                    if node.below.is_empty() { value.clone() } else { part(value, &node.below, child, depth + 1) };
                Some((name.clone(), value))
            });
            Value::Object(covered.collect())
        }
        (Form::Items, Value::Array(list)) => {
            let covered = list.iter().filter_map(|item| {
                let name = item_name(schema, item).ok()?;
                let node = set.get(&name)?;
                let mut covered = part(item, &node.below, shape::items(schema), depth + 1);
                if let (PathElement::Key(keys), Value::Object(map)) = (name, &mut covered) {
                    map.extend(keys.into_iter().map(|(key, value)| (key, value.0)));
                }
                Some(covered)
            });
            Value::Array(covered.collect())
        }
        _ => value.clone(),
    }
}

/// The set, and with it every struct field that has members below it. Whoever set all that is in a struct is taken to
/// have set the struct; entries of maps always speak for themselves.
pub(super) fn with_named_parents(set: &FieldSet, schema: &Schema, depth: usize) -> FieldSet {
    set.map(|element, node| {
        let child = behind(schema, element, depth);
        let member = node.member || (child.named && !node.below.is_empty());
        Node { member, below: with_named_parents(&node.below, child.schema, depth + 1) }
    })
}

/// The set after the schema has changed: where something is a leaf now, its parts are no longer owned one by one.
/// `None` when nothing is to be done, which is nearly always.
pub(super) fn coarsened(set: &FieldSet, schema: &Schema) -> Option<FieldSet> {
    is_too_fine(set, schema, 0).then(|| coarsen(set, schema, 0))
}

fn is_too_fine(set: &FieldSet, schema: &Schema, depth: usize) -> bool {
    set.nodes().filter(|(_, node)| !node.below.is_empty()).any(|(element, node)| {
        let child = behind(schema, element, depth).schema;
        is_leaf(child) || is_too_fine(&node.below, child, depth + 1)
    })
}

fn coarsen(set: &FieldSet, schema: &Schema, depth: usize) -> FieldSet {
    set.map(|element, node| {
        let child = behind(schema, element, depth).schema;
        match is_leaf(child) {
            true => Node::leaf(),
            false => Node { member: node.member, below: coarsen(&node.below, child, depth + 1) },
        }
    })
}

/// The schema itself says that this is a leaf although it has parts.
fn is_leaf(schema: &Schema) -> bool {
    match schema.ty {
        Type::Object => schema.atomic_map,
        Type::Array => schema.list == ListKind::Atomic,
        _ => false,
    }
}
