//! Applying to the scale of an object.
//!
//! A `Scale` is no object of its own: its number of replicas is a field of the object, and whoever owns that field owns
//! the number. So the record of the object is shown to the scale as far as it speaks of the replicas, the scale is
//! applied to like any object, and what came of the record there is carried back.

use std::sync::{Arc, LazyLock};

use serde_json::Value;

use super::managers::{self, Entry, Manager, Managers, Operation};
use super::path::{Path, PathElement};
use super::{ApplyError, BEFORE_FIRST_APPLY, FieldSet, Write, apply, recorded, set_record};
use crate::schema::{Schema, Type};

const API_VERSION: &str = "autoscaling/v1";

/// Where a Scale has its number.
const NUMBER: [&str; 2] = ["spec", "replicas"];

/// Applies a configuration to the Scale of an object, which is given as it is shown, and whose number stands in the
/// object at `replicas`. Returns the Scale afterwards, and the object's new `metadata.managedFields`.
pub fn apply_scale(
    object: &Value,
    mut scale: Value,
    config: &Value,
    replicas: &[&str],
    write: &Write<'_>,
    force: bool,
) -> Result<(Value, Option<Value>), ApplyError> {
    let mut record = recorded(object);
    let path: Path = replicas.iter().map(|name| PathElement::field(*name)).collect();
    set_record(&mut scale, &owners_of_number(&record, &path, write));
    let through = Write { api_version: API_VERSION, blank: None, ..*write };
    let scale = apply(Some(&scale), config, &SCHEMA, &through, force)?;

    let number: Path = NUMBER.map(PathElement::field).into();
    let owners = recorded(&scale);
    let owners: Vec<&Entry> = owners.iter().filter(|entry| entry.set.contains(&number)).collect();
    let own = FieldSet::of_fields(&[replicas]);
    for entry in record.iter_mut() {
        if !owners.iter().any(|owner| is_same(&owner.manager, &entry.manager)) {
            entry.set = entry.set.difference(&own);
        }
    }
    record.forget_idle();
    for owner in owners {
        if record.iter().any(|entry| is_same(&owner.manager, &entry.manager) && entry.set.contains(&path)) {
            continue;
        }
        let manager = Manager { api_version: write.api_version.to_owned(), ..owner.manager.clone() };
        let (time, set) = match record.take(&manager) {
            Some(last) => (last.time, last.set.union(&own)),
            // The original loses the time on the way back from the scale.
            None => (None, own.clone()),
        };
        record.put(Entry { manager, time, set });
    }
    Ok((scale, (!record.is_empty()).then(|| record.to_value())))
}

/// The record of a Scale: who owns the replicas of the object. Those that nobody owns were there before anybody applied.
fn owners_of_number(record: &Managers, path: &[PathElement], write: &Write<'_>) -> Managers {
    let mut owners = Managers::default();
    for entry in record.iter().filter(|entry| entry.set.contains(path)) {
        let manager = Manager { api_version: API_VERSION.to_owned(), ..entry.manager.clone() };
        owners.put(Entry { manager, time: entry.time, set: FieldSet::of_fields(&[&NUMBER]) });
    }
    if owners.is_empty() {
        let manager = Manager {
            name: BEFORE_FIRST_APPLY.to_owned(),
            operation: Operation::Update,
            api_version: API_VERSION.to_owned(),
            subresource: write.subresource.to_owned(),
        };
        owners.put(Entry { manager, time: Some(managers::seconds(write.now)), set: FieldSet::of_fields(&[&NUMBER]) });
    }
    owners
}

/// Versions differ between an object and its scale, and mean nothing here.
fn is_same(a: &Manager, b: &Manager) -> bool {
    (&a.name, a.operation, &a.subresource) == (&b.name, b.operation, &b.subresource)
}

/// The schema of a Scale.
static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    let of = |ty| Arc::new(Schema { ty, ..Schema::default() });
    let structure = |fields: &[(&str, Type)]| {
        let properties = fields.iter().map(|(name, ty)| ((*name).to_owned(), of(*ty)));
        Arc::new(Schema { ty: Type::Object, properties: properties.collect(), ..Schema::default() })
    };
    let spec = structure(&[("replicas", Type::Integer)]);
    let status = structure(&[("replicas", Type::Integer), ("selector", Type::String)]);
    let properties = [("spec".to_owned(), spec), ("status".to_owned(), status)];
    Schema { ty: Type::Object, properties: properties.into(), ..Schema::default() }
});
