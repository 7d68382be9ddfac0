//! PATCH, in its four kinds.

use serde_json::Value;

use super::admit::{Incoming, Source, Writer, replace};
use super::create::Ownership;
use super::update::{check_name, check_uid, check_version};
use super::{Api, Moment, Part, Patch, Target, WriteOptions, Written, scale};
use crate::apply;
use crate::object::Object;
use crate::patch::{json_patch, merge_patch, strategic_merge_patch};
use crate::refusal::Refusal;
use crate::resource::Origin;

impl Api {
    /// Changes an object by a patch. `duplicates` are the fields that stood twice in the patch's text.
    #[expect(clippy::too_many_arguments, reason = "mirrors the request: what, which part, how, and when")]
    pub fn patch(
        &mut self,
        target: &Target,
        name: &str,
        part: Part,
        patch: Patch,
        duplicates: &[String],
        options: &WriteOptions,
        moment: Moment,
    ) -> Result<Written, Refusal> {
        if let Patch::Apply(config) = patch {
            if part == Part::Scale {
                return self.apply_scale(target, name, &config, duplicates, options, moment);
            }
            return self.apply(target, name, part, config, duplicates, options, moment);
        }
        let (key, stored) = self.find(target, name)?;
        let old = target.shown(&stored);
        if part == Part::Scale {
            let scaled = patched(target, &scale::read(target, &old)?, &patch)?;
            return self.update(target, name, part, super::Body { value: scaled, duplicates: vec![] }, options, moment);
        }
        let new = patched(target, &old, &patch)?;
        let mut incoming = Incoming::new(target, new, Source::Patch)?;
        check_name(&incoming.object, name)?;
        incoming.drop_unknown(duplicates, options)?;
        // An unmentioned version is the current one, which the patched object still carries.
        check_version(target, &old, &incoming.object)?;
        self.change(incoming, &key, &old, part, Ownership::Update, options, moment)
    }

    #[expect(clippy::too_many_arguments, reason = "the request of `patch`, passed on")]
    fn apply(
        &mut self,
        target: &Target,
        name: &str,
        part: Part,
        config: Value,
        duplicates: &[String],
        options: &WriteOptions,
        moment: Moment,
    ) -> Result<Written, Refusal> {
        check_applied(&target.resource.kind, &target.api_version(), name, &config)?;
        let mut incoming = Incoming::new(target, config, Source::Body)?;
        incoming.report_duplicates(duplicates, options)?;
        let found = self.find(target, name);
        let old = found.as_ref().ok().map(|(_, stored)| target.shown(stored));
        match &old {
            Some(old) => check_applied_version(target, old, &incoming.object)?,
            None => check_nothing_expected(target, &incoming.object)?,
        }
        let writer = Writer::new(target, part);
        let write = writer.write(&options.manager, moment);
        let schema = &target.version().schema;
        incoming.object = apply::apply(old.as_ref(), &incoming.object, schema, &write, options.force)?;
        match (found, old) {
            (Ok((key, _)), Some(old)) => self.change(incoming, &key, &old, part, Ownership::Applied, options, moment),
            (Err(not_found), _) if part != Part::Main => Err(not_found),
            _ => {
                self.namespace_accepts(target, name)?;
                self.definition_accepts(target, name)?;
                self.add_new(incoming, Ownership::Applied, options, moment)
            }
        }
    }

    /// Applies a Scale: the object gets its number of replicas, and the manager owns that.
    fn apply_scale(
        &mut self,
        target: &Target,
        name: &str,
        config: &Value,
        duplicates: &[String],
        options: &WriteOptions,
        moment: Moment,
    ) -> Result<Written, Refusal> {
        check_applied("Scale", "autoscaling/v1", name, config)?;
        let (key, stored) = self.find(target, name)?;
        let old = target.shown(&stored);
        check_applied_version(target, &old, config)?;
        let writer = Writer::new(target, Part::Scale);
        let write = writer.write(&options.manager, moment);
        let shown = scale::read(target, &old)?;
        let replicas = scale::replicas(target)?;
        let (wanted, record) = apply::apply_scale(&old, shown, config, &replicas, &write, options.force)?;
        let mut object = scale::write(target, &old, &wanted)?;
        replace(Some(object.metadata_mut()), "managedFields", record);
        let mut incoming = Incoming::trusted(target, object);
        incoming.report_duplicates(duplicates, options)?;
        let mut written = self.change(incoming, &key, &old, Part::Scale, Ownership::Applied, options, moment)?;
        written.object = scale::read(target, &written.object)?;
        Ok(written)
    }
}

/// An applied configuration must say which object it is for, in full.
fn check_applied(kind: &str, api_version: &str, name: &str, config: &Value) -> Result<(), Refusal> {
    if config.kind() != kind || config.api_version() != api_version {
        let (group, version) = config.api_version().split_once('/').unwrap_or(("", config.api_version()));
        return Err(Refusal::bad_request(format!("invalid object type: {group}/{version}, Kind={}", config.kind())));
    }
    if config.name().is_empty() {
        let why = "name must be provided";
        return Err(Refusal::bad_request(format!(
            "the name of the object ({name} based on URL) was undeterminable: {why}"
        )));
    }
    check_name(config, name)
}

/// It may leave the object's version and uid out, but not name others.
fn check_applied_version(target: &Target, old: &Value, config: &Value) -> Result<(), Refusal> {
    check_uid(target, old, config)?;
    if config.meta("resourceVersion").is_empty() { Ok(()) } else { check_version(target, old, config) }
}

/// Nothing is created for somebody who believes that it exists.
fn check_nothing_expected(target: &Target, config: &Value) -> Result<(), Refusal> {
    let uid = config.meta("uid");
    if uid.is_empty() {
        return Ok(());
    }
    let resource = &target.resource;
    let why = format!("uid mismatch: the provided object specified uid {uid}, and no existing object was found");
    Err(Refusal::conflict(&resource.group, &resource.plural, config.name(), why))
}

fn patched(target: &Target, old: &Value, patch: &Patch) -> Result<Value, Refusal> {
    match patch {
        Patch::Json(operations) => json_patch(old, operations),
        Patch::Merge(patch) => merge_patch(old, patch),
        Patch::Strategic(_) if target.resource.origin == Origin::Custom => Err(Refusal::unsupported_media_type(
            "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
        )),
        Patch::Strategic(patch) => strategic_merge_patch(old, patch, &target.version().schema),
        Patch::Apply(_) => unreachable!("apply has a path of its own"),
    }
}
