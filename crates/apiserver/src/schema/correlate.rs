//! Which old value a new one goes back to, for transition rules and for leaving unchanged values in peace.

use serde_json::{Map, Value};

use crate::schema::{ListKind, Schema};

/// The old value of a field of an object.
pub(crate) fn field<'a>(old: Option<&'a Value>, name: &str) -> Option<&'a Value> {
    old?.as_object()?.get(name)
}

/// Finds the old items of a list whose items have keys; items of other lists have no past.
pub(crate) struct OldItems<'a> {
    keys: &'a [String],
    /// Sorted by key, and among equal keys in the order of the list, so that the first one is found.
    items: Vec<(String, &'a Value)>,
}

impl<'a> OldItems<'a> {
    /// Reads the old list.
    pub(crate) fn new(schema: &'a Schema, old: Option<&'a Value>) -> Self {
        let ListKind::Map(keys) = &schema.list else { return Self { keys: &[], items: Vec::new() } };
        let old = old.and_then(Value::as_array).into_iter().flatten();
        let mut items: Vec<_> = old.filter_map(|item| Some((key_of(keys, item.as_object()?)?, item))).collect();
        items.sort_by(|(a, _), (b, _)| a.cmp(b));
        Self { keys, items }
    }

    /// The old item with the same keys.
    pub(crate) fn get(&self, item: &Value) -> Option<&'a Value> {
        if self.items.is_empty() {
            return None;
        }
        let key = key_of(self.keys, item.as_object()?)?;
        let first = self.items.partition_point(|(other, _)| *other < key);
        self.items.get(first).filter(|(other, _)| *other == key).map(|(_, item)| *item)
    }
}

/// All key fields as one text; `None` when one is absent or not a scalar.
fn key_of(keys: &[String], item: &Map<String, Value>) -> Option<String> {
    let mut text = String::new();
    for key in keys {
        let value = item.get(key)?;
        if value.is_object() || value.is_array() || value.is_null() {
            return None;
        }
        text.push_str(&value.to_string());
        text.push('\0');
    }
    Some(text)
}

/// Whether a value is what it was. Lists with keys may have changed their order; fields that the schema does not
/// describe count as changed, because nothing is known about them.
pub(crate) fn unchanged(schema: &Schema, new: &Value, old: &Value) -> bool {
    match (new, old) {
        (Value::Array(new), Value::Array(list)) => {
            if new.len() != list.len() {
                return false;
            }
            match (&schema.list, &schema.items) {
                (ListKind::Map(_), Some(items)) => {
                    let old_items = OldItems::new(schema, Some(old));
                    new.iter().all(|item| old_items.get(item).is_some_and(|old| unchanged(items, item, old)))
                }
                _ => new == list,
            }
        }
        (Value::Object(new), Value::Object(old)) => {
            new.len() == old.len()
                && new.iter().all(|(name, value)| {
                    let child = schema.properties.get(name).or(schema.additional.as_ref());
                    child.zip(old.get(name)).is_some_and(|(schema, old)| unchanged(schema, value, old))
                })
        }
        _ => new == old,
    }
}
