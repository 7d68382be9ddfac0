//! Lays an applied value over a live one.
//!
//! Nothing is removed: what the applied value does not mention stays. In lists the applied order wins among the items
//! that both have, and what only the live list has keeps its place as well as it can.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::path::PathElement;
use super::shape::{self, Form, field, fields_of, form, item_names, items_of};
use crate::schema::Schema;

/// The live value with the applied one laid over it.
pub fn merge(live: &Value, applied: &Value, schema: &Schema) -> Value {
    merged(Some(live), applied, schema, 0)
}

fn merged(live: Option<&Value>, applied: &Value, schema: &Schema, depth: usize) -> Value {
    let Some(live) = live else { return applied.clone() };
    match form(schema, applied, depth) {
        Form::Fields => match (fields_of(Some(live)), fields_of(Some(applied))) {
            (Some(live), Some(applied)) => Value::Object(merge_fields(live, applied, schema, depth)),
            // An empty map or a null says nothing about the fields that are there.
            (Some(_), None) => live.clone(),
            _ => applied.clone(),
        },
        Form::Items => match (items_of(Some(live)), items_of(Some(applied))) {
            (Some(live), Some(applied)) => merge_items(live, applied, schema, depth),
            (Some(_), None) => live.clone(),
            _ => applied.clone(),
        },
        Form::Leaf => applied.clone(),
    }
}

fn merge_fields(
    live: &Map<String, Value>,
    applied: &Map<String, Value>,
    schema: &Schema,
    depth: usize,
) -> Map<String, Value> {
    let mut out = live.clone();
    for (name, value) in applied {
        let value = merged(live.get(name), value, field(schema, name, depth).schema, depth + 1);
        out.insert(name.clone(), value);
    }
    out
}

fn merge_items(live: &[Value], applied: &[Value], schema: &Schema, depth: usize) -> Value {
    let (Ok(live_names), Ok(applied_names)) = (item_names(schema, live), item_names(schema, applied)) else {
        return Value::Array(applied.to_vec());
    };
    // Live items that share a name are not merged with, because nobody can say with which of them.
    let mut live_items: BTreeMap<&PathElement, Option<&Value>> = BTreeMap::new();
    for (name, item) in live_names.iter().zip(live) {
        live_items.entry(name).and_modify(|item| *item = None).or_insert(Some(item));
    }
    let ours: BTreeSet<&PathElement> = applied_names.iter().collect();
    let over_live = |n: usize| {
        let live = live_items.get(&applied_names[n]).copied().flatten();
        merged(live, &applied[n], shape::items(schema), depth + 1)
    };

    let mut out = Vec::with_capacity(live.len().max(applied.len()));
    let (mut l, mut a, mut next_shared) = (0, 0, 0);
    while l < live_names.len() || a < applied_names.len() {
        let at_live = live_names.get(l);
        if at_live.is_some_and(|name| !ours.contains(name)) {
            out.push(live[l].clone());
            l += 1;
            continue;
        }
        // The first item, among the applied ones still to come, that the live list has too: the one to wait for.
        next_shared = next_shared.max(a);
        while applied_names.get(next_shared).is_some_and(|name| !live_items.contains_key(name)) {
            next_shared += 1;
        }
        match (at_live, applied_names.get(a), applied_names.get(next_shared)) {
            (_, None, _) => l += 1,
            (None, Some(_), _) => {
                out.push(over_live(a));
                a += 1;
            }
            (Some(name), Some(first), _) if name == first => {
                out.push(over_live(a));
                l += 1;
                a += 1;
            }
            // Its turn comes elsewhere, or has come already.
            (Some(name), Some(_), Some(shared)) if name != shared => l += 1,
            (Some(_), Some(_), shared) => {
                out.push(over_live(a));
                a += 1;
                if shared.is_none() {
                    l += 1;
                }
            }
        }
    }
    Value::Array(out)
}
