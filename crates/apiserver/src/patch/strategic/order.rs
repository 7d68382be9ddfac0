//! Telling the items of a list apart, and putting merged lists in order.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{PATCH, not_applicable, unworkable};
use crate::refusal::Refusal;
use crate::schema::Schema;

/// What makes two items of a list the same.
pub(super) enum Identity {
    /// The item itself.
    Scalar,
    /// The value of this field.
    Key(String),
}

impl Identity {
    pub(super) fn of(list: &Schema) -> Self {
        list.patch.key.clone().map_or(Self::Scalar, Self::Key)
    }

    /// A text that is equal for equal items. Texts instead of values, because values have no order.
    pub(super) fn of_item(&self, item: &Value) -> Result<String, Refusal> {
        match self {
            Self::Scalar => Ok(item.to_string()),
            Self::Key(key) => item.get(key).map(Value::to_string).ok_or_else(|| match item {
                Value::Object(_) => {
                    let shown = as_go_prints(item);
                    unworkable(format!("map: {shown} does not contain declared merge key: {key}"))
                }
                other => {
                    let found = go_type(other);
                    unworkable(format!("expected a map[string]interface {{}}, but received a {found}"))
                }
            }),
        }
    }

    /// The first place of each item.
    fn places(&self, items: &[Value]) -> Result<BTreeMap<String, usize>, Refusal> {
        let mut places = BTreeMap::new();
        for (n, item) in items.iter().enumerate() {
            places.entry(self.of_item(item)?).or_insert(n);
        }
        Ok(places)
    }
}

/// Puts `merged` in order: what is in `wanted` follows that order, what is not follows the old one, and where both
/// can be had the two are woven together by their places in `old`.
pub(super) fn arranged(
    merged: Vec<Value>,
    wanted: &[Value],
    old: &[Value],
    identity: &Identity,
) -> Result<Vec<Value>, Refusal> {
    if let (Identity::Key(_), Some(n)) = (identity, wanted.iter().position(|item| !item.is_object())) {
        return Err(unworkable(format!("value for key {n} is not a map")));
    }
    let (wanted, old) = (identity.places(wanted)?, identity.places(old)?);
    let mut listed = Vec::new();
    let mut others = Vec::new();
    for item in merged {
        let name = identity.of_item(&item)?;
        let before = old.get(&name).copied();
        match wanted.get(&name) {
            Some(place) => listed.push((*place, before, item)),
            None => others.push((before, item)),
        }
    }
    listed.sort_by_key(|(place, _, _)| *place);
    others.sort_by_key(|(before, _)| before.unwrap_or(usize::MAX));
    let mut result = Vec::with_capacity(listed.len() + others.len());
    let mut others = others.into_iter().peekable();
    for (_, before, item) in listed {
        let stood_before =
            |other: &(Option<usize>, Value)| matches!((other.0, before), (Some(other), Some(this)) if other < this);
        while let Some((_, other)) = others.next_if(stood_before) {
            result.push(other);
        }
        result.push(item);
    }
    result.extend(others.map(|(_, item)| item));
    Ok(result)
}

/// The items that a patch brings must stand in the order that it asks for, and all of them in it.
pub(super) fn check_patch_follows(items: &[Value], order: &[Value], identity: &Identity) -> Result<(), Refusal> {
    if items.is_empty() || order.is_empty() {
        return Ok(());
    }
    let mut steps = order.iter();
    for item in items.iter().filter(|item| item.get(PATCH).is_none()) {
        let name = identity.of_item(item)?;
        let mut found = false;
        for step in steps.by_ref() {
            if identity.of_item(step)? == name {
                found = true;
                break;
            }
        }
        if !found {
            let shown = |list: &[Value]| as_go_prints(&Value::Array(list.to_vec()));
            return Err(unworkable(format!(
                "The order in patch list:\n{}\n doesn't match $setElementOrder list:\n{}\n",
                shown(items),
                shown(order)
            )));
        }
    }
    Ok(())
}

/// The JSON type that all items of all lists have; `None` if there is no item.
pub(super) fn element_kind(lists: &[&[Value]]) -> Result<Option<&'static str>, Refusal> {
    let mut kinds = lists.iter().flat_map(|list| list.iter().map(go_type));
    let Some(first) = kinds.next() else { return Ok(None) };
    if first == "[]interface {}" {
        return Err(not_applicable());
    }
    if first == NOTHING || kinds.any(|kind| kind != first) {
        let shown: Vec<Value> = lists.iter().map(|list| Value::Array(list.to_vec())).collect();
        let shown = as_go_prints(&Value::Array(shown));
        return Err(unworkable(format!("list element types are not identical: {shown}")));
    }
    Ok(Some(if first == "map[string]interface {}" { "object" } else { "scalar" }))
}

/// Each scalar once, at its first place.
pub(super) fn without_repetitions(items: impl Iterator<Item = Value>) -> Vec<Value> {
    let mut seen = BTreeSet::new();
    items.filter(|item| seen.insert(item.to_string())).collect()
}

const NOTHING: &str = "%!s(<nil>)";

/// The type of a value in the language that the original's complaints speak.
pub(crate) fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => NOTHING,
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// A value as that language prints it.
pub(crate) fn as_go_prints(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(as_go_prints).collect::<Vec<_>>().join(" "))
        }
        Value::Object(map) => {
            let fields: Vec<String> = map.iter().map(|(key, value)| format!("{key}:{}", as_go_prints(value))).collect();
            format!("map[{}]", fields.join(" "))
        }
        other => other.to_string(),
    }
}
