//! PUT, and what every change of an existing object has in common.

use serde_json::{Value, json};

use super::admit::{Incoming, doubled, is_crd, is_namespace, replace, tracks_generation};
use super::create::Ownership;
use super::envelope::Source;
use super::{Api, Body, Moment, Part, Target, WriteOptions, Written, revision, scale};
use crate::object::Object;
use crate::refusal::{Fault, FieldError, Refusal};
use crate::resource::builtin::habits;
use crate::store::Key;

impl Api {
    /// Replaces an object, or one part of it.
    pub fn update(
        &mut self,
        target: &Target,
        name: &str,
        part: Part,
        body: Body,
        options: &WriteOptions,
        moment: Moment,
    ) -> Result<Written, Refusal> {
        let scale = scale::target(target);
        let into = if part == Part::Scale { &scale } else { target };
        let mut incoming = Incoming::new(into, body.value, Source::Body)?;
        check_name(&incoming.object, name)?;
        incoming.drop_unknown(doubled(&body.duplicates), options)?;
        let said = incoming.warnings.clone();
        let updated = match part {
            Part::Scale => self.scale_to(target, name, incoming, options, moment),
            _ => self.update_checked(incoming, name, part, options, moment),
        };
        updated.map_err(|refusal| refusal.beside(said))
    }

    fn update_checked(
        &mut self,
        mut incoming: Incoming<'_>,
        name: &str,
        part: Part,
        options: &WriteOptions,
        moment: Moment,
    ) -> Result<Written, Refusal> {
        let target = incoming.target;
        let found = self.find(target, name);
        if found.is_err() && part == Part::Main && habits::is_created_by_update(&target.resource) {
            check_uid(target, &json!({"metadata": {"name": name}}), &incoming.object)?;
            // The version of something that is gone tells nothing about what comes now.
            incoming.object.metadata_mut().remove("resourceVersion");
            return self.create_checked(incoming, options, moment);
        }
        let (key, stored) = found?;
        let old = target.shown(&stored);
        check_uid(target, &old, &incoming.object)?;
        check_version(target, &old, &incoming.object)?;
        self.change(incoming, &key, &old, part, Ownership::Update, options, moment)
    }

    /// Gives an object the replicas that a Scale asks for.
    pub(super) fn scale_to(
        &mut self,
        target: &Target,
        name: &str,
        wanted: Incoming<'_>,
        options: &WriteOptions,
        moment: Moment,
    ) -> Result<Written, Refusal> {
        let (key, stored) = self.find(target, name)?;
        let old = target.shown(&stored);
        check_uid(target, &old, &wanted.object)?;
        if !wanted.object.meta("resourceVersion").is_empty() {
            check_version(target, &old, &wanted.object)?;
        }
        let mut incoming = Incoming::trusted(target, scale::write(target, &old, &wanted.object)?);
        incoming.warnings = wanted.warnings;
        let mut written = self.change(incoming, &key, &old, Part::Scale, Ownership::Update, options, moment)?;
        written.object = scale::read(target, &written.object)?;
        Ok(written)
    }

    /// Turns `old` into what came in: carries over, fills in, validates, records ownership, and keeps the result if it
    /// differs at all.
    #[expect(clippy::too_many_arguments, reason = "one private step shared by update, patch and apply")]
    pub(super) fn change(
        &mut self,
        mut incoming: Incoming<'_>,
        key: &Key,
        old: &Value,
        part: Part,
        ownership: Ownership,
        options: &WriteOptions,
        moment: Moment,
    ) -> Result<Written, Refusal> {
        let target = incoming.target;
        if part == Part::Finalize {
            incoming.object = finalized(old, &incoming.object);
        } else {
            incoming.carry_over(old, part);
            incoming.fill_in(Some(old), self, moment);
        }
        incoming.validate(Some(old), part, self).map_err(|refusal| refusal.beside(incoming.warnings.clone()))?;
        incoming.remark(Some(old));
        count_generation(target, old, &mut incoming.object, part);
        if ownership == Ownership::Update {
            incoming.track(Some(old), part, options, moment);
        }
        let version = old.metadata().and_then(|m| m.get("resourceVersion")).cloned();
        replace(Some(incoming.object.metadata_mut()), "resourceVersion", version);
        let Incoming { mut object, warnings, .. } = incoming;
        if object != *old && !options.dry_run {
            object = self.keep_changed(target, key, object, moment)?;
        }
        Ok(Written { object, created: false, warnings })
    }

    fn keep_changed(
        &mut self,
        target: &Target,
        key: &Key,
        mut object: Value,
        moment: Moment,
    ) -> Result<Value, Refusal> {
        target.to_stored(&mut object);
        if may_go(target, &object) {
            let last = self.remove(target, key, object.clone());
            self.after_removal(target, &object, moment);
            return Ok(target.shown(&last));
        }
        let stored = self.put(target, key.clone(), &mut object)?;
        if is_crd(&target.resource) {
            self.serve_definition(&object, moment);
        }
        Ok(target.shown_as(&stored, object))
    }
}

/// Deletion was asked for, and nobody holds the object back any more.
pub(super) fn may_go(target: &Target, object: &Value) -> bool {
    let held_by_spec = is_namespace(&target.resource)
        && object.at(&["spec", "finalizers"]).and_then(Value::as_array).is_some_and(|list| !list.is_empty());
    // A pod that still has its grace period belongs to its node until the node deletes it for good.
    let grace = object.at(&["metadata", "deletionGracePeriodSeconds"]).and_then(Value::as_i64).unwrap_or(0);
    object.is_terminating() && object.finalizers().is_empty() && !held_by_spec && grace == 0
}

pub(super) fn check_name(object: &Value, name: &str) -> Result<(), Refusal> {
    match object.name() {
        "" => Err(Refusal::bad_request(format!(
            "the name of the object ({name} based on URL) was undeterminable: name must be provided"
        ))),
        given if given != name => Err(Refusal::bad_request(format!(
            "the name of the object ({given}) does not match the name on the URL ({name})"
        ))),
        _ => Ok(()),
    }
}

/// Who names a uid means that very object, not another one of the same name.
pub(super) fn check_uid(target: &Target, old: &Value, new: &Value) -> Result<(), Refusal> {
    let (given, current) = (new.meta("uid"), old.meta("uid"));
    if given.is_empty() || given == current {
        return Ok(());
    }
    let resource = &target.resource;
    let why = format!("Precondition failed: UID in precondition: {given}, UID in object meta: {current}");
    Err(Refusal::conflict(&resource.group, &resource.plural, old.name(), why))
}

/// Optimistic locking: who names a version must name the current one.
pub(super) fn check_version(target: &Target, old: &Value, new: &Value) -> Result<(), Refusal> {
    let resource = &target.resource;
    let number = |object: &Value| revision::parse(object.meta("resourceVersion"));
    let given = number(new).map_err(|why| Refusal::new(500, "", why))?;
    if Ok(given) == number(old) {
        return Ok(());
    }
    if given != 0 {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        return Err(Refusal::conflict(&resource.group, &resource.plural, old.name(), why));
    }
    if !habits::needs_version(resource) {
        return Ok(());
    }
    let error = FieldError::with_value(
        "metadata.resourceVersion",
        Fault::Invalid,
        &Value::from(0),
        "must be specified for an update",
    );
    Err(Refusal::invalid(&resource.group, &resource.plural, old.name(), &[error]))
}

/// `generation` counts what the user wants, not what is reported; nor, of most kinds, how the object is labelled.
fn count_generation(target: &Target, old: &Value, new: &mut Value, part: Part) {
    if !tracks_generation(&target.resource) || part == Part::Status {
        return;
    }
    let ignored = |key: &str| key == "metadata" || (key == "status" && target.version().status);
    let wanted = |object: &Value| -> Vec<(String, Value)> {
        let fields = object.as_object().into_iter().flatten();
        fields.filter(|(key, _)| !ignored(key)).map(|(k, v)| (k.clone(), v.clone())).collect()
    };
    let counted = |object: &Value| {
        let field = habits::counted_in_metadata(&target.resource)?;
        object.at(&["metadata", field]).and_then(Value::as_object).filter(|map| !map.is_empty()).cloned()
    };
    if wanted(old) != wanted(new) || counted(old) != counted(new) {
        let before = old.at(&["metadata", "generation"]).and_then(Value::as_i64).unwrap_or(0);
        new.metadata_mut().insert("generation".into(), (before + 1).into());
    }
}

/// The old namespace with the finalizers of the new one: all that `/finalize` may change.
fn finalized(old: &Value, new: &Value) -> Value {
    let mut object = old.clone();
    let finalizers = new.at(&["spec", "finalizers"]).cloned();
    replace(Some(crate::object::child_map(&mut object, "spec")), "finalizers", finalizers);
    object
}
