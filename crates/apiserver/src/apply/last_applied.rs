//! The way from client-side to server-side apply.
//!
//! `kubectl apply` without `--server-side` keeps its last configuration in an annotation. When the same user comes back
//! with `--server-side`, what that configuration set is theirs: they meet no conflict over it, and the annotation is
//! kept up to date so that they can go back.

use serde_json::Value;

use super::check::check;
use super::conflict::Conflict;
use super::path::html_safe;
use super::{FieldSet, compare, set_of};
use crate::object::Object;
use crate::schema::Schema;

/// Only this manager is meant; any other name opts out.
pub(super) const MANAGER: &str = "kubectl";

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// All annotations of an object together, keys and values.
const MAX_ANNOTATIONS: usize = 256 * 1024;

/// The conflicts that remain when fields set by the last client-side apply, and not changed since, are not counted.
pub(super) fn open_conflicts(
    live: &Value,
    schema: &Schema,
    api_version: &str,
    conflicts: Vec<Conflict>,
) -> Vec<Conflict> {
    let Some(own) = last_applied_fields(live, schema, api_version) else { return conflicts };
    let open = conflicts.into_iter().map(|conflict| Conflict { fields: conflict.fields.difference(&own), ..conflict });
    open.filter(|conflict| !conflict.fields.is_empty()).collect()
}

fn last_applied_fields(live: &Value, schema: &Schema, api_version: &str) -> Option<FieldSet> {
    let last: Value = serde_json::from_str(annotation(live)?).ok()?;
    if last.api_version() != api_version || check(&last, schema).is_err() {
        return None;
    }
    let changed = compare(&last, live, schema);
    let unchanged = set_of(&last, schema).difference(&changed.modified).difference(&changed.added);
    Some(unchanged.difference(&changed.removed))
}

/// Brings the annotation up to date, if there is one.
pub(super) fn refresh(object: &mut Value, config: &Value) {
    if annotation(object).is_none() {
        return;
    }
    let mut config = config.clone();
    if let Some(own) = config.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        own.remove(ANNOTATION);
    }
    let text = format!("{}\n", html_safe(&config.to_string()));
    let Some(annotations) = object.metadata_mut().get_mut("annotations").and_then(Value::as_object_mut) else { return };
    annotations.insert(ANNOTATION.into(), text.into());
    let size: usize = annotations.iter().map(|(key, value)| key.len() + value.as_str().unwrap_or_default().len()).sum();
    if size > MAX_ANNOTATIONS {
        annotations.remove(ANNOTATION);
    }
}

fn annotation(object: &Value) -> Option<&str> {
    let text = object.at(&["metadata", "annotations", ANNOTATION])?.as_str()?;
    Some(text).filter(|text| !text.is_empty())
}
