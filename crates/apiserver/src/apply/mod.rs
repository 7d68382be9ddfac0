//! Server-side apply and field ownership.
//!
//! Every field of an object is owned by those who set it, recorded in `metadata.managedFields`. [`apply`] merges a
//! configuration into an object by that record; [`track_update`] keeps the record up to date after all other writes.
//! Both are pure, and neither looks at anything but its arguments.
//!
//! Entries carry the version through which they were written. All versions of a kind share one schema here, so a set
//! means the same in each of them and is never converted.

mod check;
mod compare;
mod conflict;
mod fields;
mod last_applied;
mod managers;
mod merge;
mod path;
mod scale;
mod shape;
mod typed;

#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use jiff::Timestamp;
use serde_json::{Map, Value};

pub use compare::{Comparison, compare};
pub use conflict::{ApplyError, Conflict};
pub use fields::FieldSet;
pub use managers::{Entry, Manager, Managers, Operation};
pub use merge::merge;
pub use path::{ElementError, Literal, Path, PathElement, show};
pub use scale::apply_scale;
pub use typed::{extract, remove, set_of};

use crate::api::Part;
use crate::object::Object;
use crate::schema::Schema;

/// The manager of everything that was there before an object without a record was first applied to.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// Who writes, through what, and when.
#[derive(Debug, Clone, Copy)]
pub struct Write<'a> {
    /// Name of the field manager; empty means `unknown`.
    pub manager: &'a str,
    /// Version in the URL, e.g. `apps/v1`.
    pub api_version: &'a str,
    /// Subresource in the URL, e.g. `status`; empty for the object itself.
    pub subresource: &'a str,
    /// Wall-clock time.
    pub now: Timestamp,
    /// Fields that this write cannot touch, see [`reset_fields`].
    pub reset: &'a FieldSet,
    /// For built-in kinds, an object of the kind that nothing was written to: its Go structure has fields all the same,
    /// and nobody comes to own those. `None` for custom resources, which start with nothing.
    pub blank: Option<&'a Value>,
}

impl Write<'_> {
    fn by(&self, operation: Operation) -> Manager {
        let name = if self.manager.is_empty() { "unknown" } else { self.manager };
        Manager {
            name: name.to_owned(),
            operation,
            api_version: self.api_version.to_owned(),
            subresource: self.subresource.to_owned(),
        }
    }
}

/// The fields that a write to one part of an object leaves as they are, where `status` is a subresource.
pub fn reset_fields(part: Part) -> FieldSet {
    match part {
        Part::Main => FieldSet::of_fields(&[&["status"]]),
        Part::Status => FieldSet::of_fields(&[&["spec"]]),
        Part::Scale | Part::Finalize => FieldSet::default(),
    }
}

/// The object after a configuration was applied to it, with its new `metadata.managedFields`. The live object comes
/// back unchanged if it already is what the configuration asks for, and its manager owns all of it.
///
/// Identity, defaults and validation are the caller's; so is the canonical form of built-in kinds, in whose maps and
/// lists `null` stands where the last item was removed.
pub fn apply(
    live: Option<&Value>,
    config: &Value,
    schema: &Schema,
    write: &Write<'_>,
    force: bool,
) -> Result<Value, ApplyError> {
    if config.metadata().and_then(|m| m.get("managedFields")).is_some_and(|fields| !fields.is_null()) {
        return Err(ApplyError::ManagedFieldsGiven);
    }
    check::check(config, schema).map_err(ApplyError::Unreadable)?;

    let nothing = Value::Object(Map::new());
    let mut managers = live.map(recorded).unwrap_or_default();
    let live = live.unwrap_or(&nothing);
    if managers.is_empty() {
        let first = Write { manager: BEFORE_FIRST_APPLY, ..*write };
        record_update(&mut managers, write.blank.unwrap_or(&nothing), live, schema, &first);
    }
    refine(&mut managers, schema);

    let request = Applied { live, config, schema, write };
    let mut object = match request.carry_out(managers.clone(), force) {
        Err(ApplyError::Conflicts(conflicts)) if write.manager == last_applied::MANAGER => {
            let open = last_applied::open_conflicts(live, schema, write.api_version, conflicts);
            if !open.is_empty() {
                return Err(ApplyError::Conflicts(open));
            }
            request.carry_out(managers, true)?
        }
        done => done?,
    };
    if write.manager == last_applied::MANAGER {
        last_applied::refresh(&mut object, config);
    }
    Ok(object)
}

/// Refuses a configuration with fields that its schema cannot tell to be unknown, by their paths.
pub fn refuse_undeclared(config: &Value, paths: &[String]) -> Result<(), ApplyError> {
    check::undeclared(config, paths).map_err(ApplyError::Unreadable)
}

/// What is said of an object that came out of an apply and cannot be read.
pub fn unreadable_result(object: &Value, why: &str) -> ApplyError {
    let identity = check::identity(object);
    let (_, kind) = identity.split_once("; ").unwrap_or_default();
    ApplyError::Unreadable(format!(
        "failed to convert new object ({identity}) to proper version: unable to convert unstructured object to {kind}: \
         error decoding from json: {why}"
    ))
}

/// Brings `metadata.managedFields` of `new` up to date after a create, replace or patch. `old` is the object before;
/// it counts as not there if it has no uid.
///
/// What changed belongs to the writer, what is gone belongs to nobody, and what stayed the same to whom it did before.
/// Nothing at all happens if nothing changed. A client that sends `[{}]` as `managedFields` clears the record.
pub fn track_update(old: Option<&Value>, new: &mut Value, schema: &Schema, write: &Write<'_>) {
    let given = new.metadata_mut().remove("managedFields").filter(|given| !given.is_null());
    let before = old.and_then(record_of);
    if given.as_ref().is_none_or(|given| Some(given) == before) && old.is_some_and(|old| is_unchanged(old, new)) {
        if let Some(before) = before {
            new.metadata_mut().insert("managedFields".into(), before.clone());
        }
        return;
    }

    let live = || old.map(recorded).unwrap_or_default();
    let mut managers = match given {
        // Through a subresource the record is not to be edited.
        Some(given) if write.subresource.is_empty() => match Managers::parse(&given) {
            _ if is_clearing(&given, write) => Managers::default(),
            Ok(managers) if !managers.is_empty() => managers,
            // Clients that know nothing of the record do not erase it by accident.
            _ => live(),
        },
        _ => live(),
    };
    let exists = old.is_some_and(|old| !old.meta("uid").is_empty());
    if managers.is_empty() && exists {
        // A cleared record starts again with the next apply, which then accounts for everything at once.
        return;
    }
    refine(&mut managers, schema);
    let nothing = Value::Object(Map::new());
    let old = old.or(write.blank).unwrap_or(&nothing);
    record_update(&mut managers, old, new, schema, write);
    set_record(new, &managers);
}

/// One apply request.
struct Applied<'a> {
    live: &'a Value,
    config: &'a Value,
    schema: &'a Schema,
    write: &'a Write<'a>,
}

impl Applied<'_> {
    fn carry_out(&self, mut managers: Managers, force: bool) -> Result<Value, ApplyError> {
        let Self { live, schema, write, .. } = *self;
        let config = remove(self.config.clone(), write.reset, schema);
        let merged = merge(live, &config, schema);
        let set = set_of(&config, schema);
        let manager = write.by(Operation::Apply);
        let last = managers.take(&manager);
        let mut object = match &last {
            Some(last) if !last.set.difference(&set).is_empty() => prune(merged, &last.set, &set, &managers, schema),
            // The manager applies all that it did before, and perhaps more.
            _ => merged,
        };

        let changes = compare(live, &object, schema).ignoring(write.reset);
        let taken = changes.modified.union(&changes.added);
        let conflicts = conflict::between(&managers, &taken);
        if !force && !conflicts.is_empty() {
            return Err(ApplyError::Conflicts(conflicts));
        }
        disown(&mut managers, &taken.union(&changes.removed));

        let unchanged = path::same(live, &object);
        let time = if unchanged { last.and_then(|e| e.time) } else { Some(managers::seconds(write.now)) };
        managers.put(Entry { manager, time, set: set.difference(&NEVER_OWNED) });

        // Metadata is a Go structure in every kind, in which what is empty is not there.
        object.metadata_mut().retain(|key, value| key == "managedFields" || !is_hollow(value));
        set_record(&mut object, &managers);
        Ok(object)
    }
}

/// Removes what the manager applied last time and no longer does, unless somebody else owns it.
fn prune(merged: Value, last: &FieldSet, now: &FieldSet, others: &Managers, schema: &Schema) -> Value {
    let whole = |set: &FieldSet| typed::with_named_parents(set, schema, 0);
    let last = whole(last);
    let all = whole(&set_of(&merged, schema));
    let without_last = whole(&set_of(&remove(merged.clone(), &last, schema), schema));
    let owned = FieldSet::union_of(others.iter().map(|entry| entry.set.clone()).chain([now.clone()]).collect());
    let kept = without_last.union(&whole(&owned));
    let gone = all.difference(&kept);
    let pruned = whole(&set_of(&remove(merged.clone(), &gone, schema), schema));
    // Removing a map or list takes with it what nobody owns. Only what was really this manager's may go.
    remove(merged, &all.difference(&pruned).intersection(&last), schema)
}

/// Records the differences between two objects as an update.
fn record_update(managers: &mut Managers, old: &Value, new: &Value, schema: &Schema, write: &Write<'_>) {
    let changes = compare(old, new, schema).ignoring(write.reset);
    let taken = changes.modified.union(&changes.added);
    // To its scale, an object shows only those who own the replicas, and a record of nobody is not begun there.
    let through_scale = write.subresource == "scale";
    if through_scale && managers.iter().all(|entry| entry.set.intersection(&taken).is_empty()) {
        return;
    }
    disown(managers, &taken.union(&changes.removed));
    let taken = taken.difference(&NEVER_OWNED);
    if !taken.is_empty() {
        let manager = write.by(Operation::Update);
        let last = managers.take(&manager);
        let now = Some(managers::seconds(write.now));
        // The original loses the time on the way back from the scale.
        let time = if through_scale { last.as_ref().and_then(|e| e.time) } else { now };
        let set = last.map_or_else(|| taken.clone(), |last| last.set.union(&taken));
        managers.put(Entry { manager, time, set });
    }
    managers.fold_ancient();
}

fn disown(managers: &mut Managers, fields: &FieldSet) {
    for entry in managers.iter_mut() {
        entry.set = entry.set.difference(fields);
    }
    managers.forget_idle();
}

/// Adapts sets that were recorded under an older schema.
fn refine(managers: &mut Managers, schema: &Schema) {
    for entry in managers.iter_mut() {
        if let Some(coarsened) = typed::coarsened(&entry.set, schema) {
            entry.set = coarsened;
        }
    }
}

fn record_of(object: &Value) -> Option<&Value> {
    object.metadata()?.get("managedFields")
}

/// The record of an object. One that cannot be read is as good as none.
fn recorded(object: &Value) -> Managers {
    record_of(object).and_then(|record| Managers::parse(record).ok()).unwrap_or_default()
}

fn set_record(object: &mut Value, managers: &Managers) {
    let metadata = object.metadata_mut();
    if managers.is_empty() {
        metadata.remove("managedFields");
    } else {
        metadata.insert("managedFields".into(), managers.to_value());
    }
}

fn is_hollow(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

/// The client asks for the record to be cleared. An empty list does so for built-in kinds only; in custom resources it
/// is lost on the way.
fn is_clearing(given: &Value, write: &Write<'_>) -> bool {
    match given.as_array().map(Vec::as_slice) {
        Some([]) => write.blank.is_some(),
        Some([one]) => one.as_object().is_some_and(Map::is_empty),
        _ => false,
    }
}

/// Whether nothing changed but the record, which `new` does not carry at this point.
fn is_unchanged(old: &Value, new: &Value) -> bool {
    let (Some(old), Some(new)) = (old.as_object(), new.as_object()) else { return false };
    let same_metadata = |old: &Value, new: &Value| match (old.as_object(), new.as_object()) {
        (Some(old), Some(new)) => {
            let recorded = usize::from(old.contains_key("managedFields"));
            old.len() - recorded == new.len() && new.iter().all(|(key, value)| old.get(key) == Some(value))
        }
        _ => old == new,
    };
    let same = |(key, new): (&String, &Value)| match (key.as_str(), old.get(key)) {
        ("metadata", Some(old)) => same_metadata(old, new),
        (_, old) => old == Some(new),
    };
    old.len() == new.len() && new.iter().all(same)
}

/// Who an object is and what the server keeps about it: owned by nobody.
static NEVER_OWNED: LazyLock<FieldSet> = LazyLock::new(|| {
    const SERVERS: [&str; 9] = [
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "clusterName",
        "generation",
        "managedFields",
        "resourceVersion",
    ];
    let identity = FieldSet::of_fields(&[&["apiVersion"], &["kind"], &["metadata"]]);
    SERVERS.iter().fold(identity, |set, name| set.union(&FieldSet::of_fields(&[&["metadata", name]])))
});
