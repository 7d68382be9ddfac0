//! `application/strategic-merge-patch+json`: a merge patch that knows which lists are sets or maps.
//!
//! Besides the changes themselves a patch may carry directives:
//! `$patch: replace|delete` in an object or an item of a list, `$retainKeys` with all the keys that may stay,
//! `$deleteFromPrimitiveList/<field>` with scalars to remove, and `$setElementOrder/<field>` with the order of a list.

mod order;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use self::order::{Identity, arranged};
pub(crate) use self::order::{as_go_prints, go_type};
use super::not_applicable;
use crate::decode::json_type;
use crate::refusal::Refusal;
use crate::schema::Schema;

const PATCH: &str = "$patch";
const RETAIN: &str = "$retainKeys";
const DELETE: &str = "$deleteFromPrimitiveList";
const ORDER: &str = "$setElementOrder";

type Fields = Map<String, Value>;

/// `target`, which has that schema, with `patch` merged into it. Fields that the schema does not know are merged as
/// objects, and replaced as lists.
pub fn strategic_merge_patch(target: &Value, patch: &Value, schema: &Schema) -> Result<Value, Refusal> {
    let patch = match patch {
        Value::Object(fields) => fields.clone(),
        Value::Null => return Ok(target.clone()),
        other => {
            let found = json_type(other);
            return Err(Refusal::bad_request(format!(
                "json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
            )));
        }
    };
    let target = target.as_object().cloned().unwrap_or_default();
    merge_objects(target, patch, Some(schema)).map(Value::Object)
}

fn merge_objects(mut target: Fields, mut patch: Fields, schema: Option<&Schema>) -> Result<Fields, Refusal> {
    if let Some(directive) = patch.get(PATCH) {
        return match directive.as_str() {
            Some("replace") => {
                patch.remove(PATCH);
                Ok(plain_fields(patch))
            }
            Some("delete") => Ok(Fields::new()),
            _ => Err(unknown_directive(&patch)),
        };
    }
    retain_keys(&mut target, &mut patch)?;
    reorder_lists(&mut target, &mut patch, schema)?;
    for (key, change) in patch {
        let (key, deletes) = match directive_field(&key, DELETE) {
            None => (key, false),
            Some(Some(field)) => (field.to_owned(), true),
            Some(None) => return Err(Refusal::bad_request("invalid patch format of primitive list")),
        };
        let merged = match (target.remove(&key), change) {
            (_, Value::Null) => None,
            (Some(Value::Object(old)), Value::Object(new)) if !deletes => {
                Some(Value::Object(merge_objects(old, new, child(schema, &key))?))
            }
            (Some(Value::Array(old)), Value::Array(gone)) if deletes => {
                let kept = delete_scalars(old, &gone)?;
                Some(Value::Array(kept))
            }
            (Some(Value::Array(old)), Value::Array(new)) => {
                Some(Value::Array(merge_lists(old, new, child(schema, &key))?))
            }
            // Only a list can lose items.
            (old, _) if deletes => old,
            (_, new) => plain(new),
        };
        if let Some(value) = merged {
            target.insert(key, value);
        }
    }
    Ok(target)
}

/// `$retainKeys`: what is not listed goes, and the patch must not contradict it.
fn retain_keys(target: &mut Fields, patch: &mut Fields) -> Result<(), Refusal> {
    let wrong = || Refusal::bad_request("invalid patch format of retainKeys");
    let Some(listed) = patch.remove(RETAIN) else { return Ok(()) };
    let listed: BTreeSet<&str> = listed.as_array().ok_or_else(wrong)?.iter().filter_map(Value::as_str).collect();
    let contradicts = patch.iter().any(|(key, change)| {
        !change.is_null() && !key.starts_with(DELETE) && !key.starts_with(ORDER) && !listed.contains(key.as_str())
    });
    if contradicts {
        return Err(wrong());
    }
    target.retain(|key, _| listed.contains(key.as_str()));
    Ok(())
}

/// `$setElementOrder/<field>`: merges the list of that field, if the patch has it, and puts it in order.
fn reorder_lists(target: &mut Fields, patch: &mut Fields, schema: Option<&Schema>) -> Result<(), Refusal> {
    let directives: Vec<String> = patch.keys().filter(|key| key.starts_with(ORDER)).cloned().collect();
    for directive in directives {
        let order = as_list(patch.remove(&directive).unwrap_or_default())?;
        let Some(field) = directive_field(&directive, ORDER).flatten() else {
            return Err(Refusal::bad_request("invalid patch format of setElementOrder list"));
        };
        let old = target.get(field).cloned().map(as_list).transpose()?;
        let new = patch.remove(field).map(as_list).transpose()?;
        let Some(list_schema) = child(schema, field) else {
            return Err(unworkable(format!("unable to find api field in struct for the json field {field:?}")));
        };
        let identity = Identity::of(list_schema);
        if let Some(new) = &new {
            order::check_patch_follows(new, &order, &identity)?;
        }
        let before = old.clone().unwrap_or_default();
        let element_kinds = order::element_kind(&[&before, new.as_deref().unwrap_or_default()]);
        let merged = match (old, new) {
            (None, None) => continue,
            (Some(old), None) => old,
            (None, Some(new)) => plain_items(new),
            (Some(old), Some(new)) => merge_lists(old, new, Some(list_schema))?,
        };
        if element_kinds?.is_none() {
            return Err(unworkable("no elements in any of the given slices"));
        }
        target.insert(field.to_owned(), Value::Array(arranged(merged, &order, &before, &identity)?));
    }
    Ok(())
}

/// Merges two lists as the schema of the list says: replaced unless it says otherwise.
fn merge_lists(old: Vec<Value>, new: Vec<Value>, schema: Option<&Schema>) -> Result<Vec<Value>, Refusal> {
    let Some(schema) = schema.filter(|schema| schema.patch.merge) else { return Ok(plain_items(new)) };
    let objects = match order::element_kind(&[&old, &new])? {
        None => return Ok(old),
        Some(kind) => kind == "object",
    };
    let identity = Identity::of(schema);
    if !objects {
        let merged = order::without_repetitions(old.iter().chain(&new).cloned());
        return arranged(merged, &new, &old, &Identity::Scalar);
    }
    let Identity::Key(key) = &identity else {
        return Err(unworkable("cannot merge lists without merge key"));
    };
    let (old, new) = apply_item_directives(old, new, key)?;
    let mut merged = old.clone();
    let mut places = BTreeMap::new();
    for (n, item) in merged.iter().enumerate() {
        if let Some(value) = item.get(key) {
            places.entry(value.to_string()).or_insert(n);
        }
    }
    for item in &new {
        let place = identity.of_item(item)?;
        match places.get(&place) {
            Some(n) => {
                let fields = |value: &Value| value.as_object().cloned().unwrap_or_default();
                let item_schema = schema.items.as_deref();
                merged[*n] = Value::Object(merge_objects(fields(&merged[*n]), fields(item), item_schema)?);
            }
            None => {
                places.insert(place, merged.len());
                merged.extend(plain(item.clone()));
            }
        }
    }
    arranged(merged, &new, &old, &identity)
}

/// Carries out the `$patch` directives among the items: returns what is left of the old list, and the items to merge.
fn apply_item_directives(mut old: Vec<Value>, new: Vec<Value>, key: &str) -> Result<(Vec<Value>, Vec<Value>), Refusal> {
    let mut items = Vec::with_capacity(new.len());
    let mut gone = BTreeSet::new();
    let mut replaces = false;
    for item in new {
        let Some(directive) = item.get(PATCH) else {
            items.push(item);
            continue;
        };
        match directive.as_str() {
            Some("delete") => {
                gone.insert(Identity::Key(key.to_owned()).of_item(&item)?);
            }
            Some("replace") => replaces = true,
            Some("merge") => return Err(unworkable("merging lists cannot yet be specified in the patch")),
            _ => return Err(unknown_directive(item.as_object().unwrap_or(&Fields::new()))),
        }
    }
    if replaces {
        return Ok((plain_items(items), Vec::new()));
    }
    old.retain(|item| item.get(key).is_none_or(|value| !gone.contains(&value.to_string())));
    Ok((old, items))
}

/// `$deleteFromPrimitiveList/<field>`.
fn delete_scalars(old: Vec<Value>, gone: &[Value]) -> Result<Vec<Value>, Refusal> {
    order::element_kind(&[&old, gone])?;
    let gone: BTreeSet<String> = gone.iter().map(Value::to_string).collect();
    Ok(old.into_iter().filter(|item| !gone.contains(&item.to_string())).collect())
}

/// A value that is new to the target: without nulls, which have nothing to delete, and without directives, which have
/// nothing to direct. An object with a `$patch` of its own vanishes.
fn plain(value: Value) -> Option<Value> {
    match value {
        Value::Object(fields) if fields.contains_key(PATCH) => None,
        Value::Object(fields) => Some(Value::Object(plain_fields(fields))),
        Value::Array(items) => Some(Value::Array(plain_items(items))),
        scalar => Some(scalar),
    }
}

fn plain_fields(fields: Fields) -> Fields {
    let is_directive = |key: &str| key == RETAIN || key.starts_with(DELETE) || key.starts_with(ORDER);
    let kept = fields.into_iter().filter(|(key, value)| !value.is_null() && !is_directive(key));
    kept.filter_map(|(key, value)| Some((key, plain(value)?))).collect()
}

fn plain_items(items: Vec<Value>) -> Vec<Value> {
    items.into_iter().filter_map(plain).collect()
}

/// `Some(field)` of `directive/field`; `Some(None)` for a directive that names no field; `None` for anything else.
fn directive_field<'a>(key: &'a str, directive: &str) -> Option<Option<&'a str>> {
    key.strip_prefix(directive).map(|rest| rest.strip_prefix('/'))
}

fn child<'a>(schema: Option<&'a Schema>, field: &str) -> Option<&'a Schema> {
    let schema = schema?;
    schema.properties.get(field).or(schema.additional.as_ref()).map(AsRef::as_ref)
}

fn as_list(value: Value) -> Result<Vec<Value>, Refusal> {
    match value {
        Value::Array(items) => Ok(items),
        other => Err(unworkable(format!("expected a []interface {{}}, but received a {}", order::go_type(&other)))),
    }
}

fn unknown_directive(patch: &Fields) -> Refusal {
    let directive = patch.get(PATCH).map(order::as_go_prints).unwrap_or_default();
    let shown = order::as_go_prints(&Value::Object(patch.clone()));
    unworkable(format!("unknown patch type: {directive} in map: {shown}"))
}

/// What the original did not expect to fail, and answers as its own fault: a bare 500.
fn unworkable(message: impl Into<String>) -> Refusal {
    Refusal::new(500, "", message)
}

#[cfg(test)]
mod tests;
