//! PATCH, in its four kinds.

use serde_json::Value;

use super::admit::{Incoming, Writer, doubled, is_crd, replace};
use super::create::Ownership;
use super::envelope::Source;
use super::update::{check_name, check_uid, check_version};
use super::{Api, Moment, Part, Patch, Target, WriteOptions, Written, scale};
use crate::apply;
use crate::object::Object;
use crate::patch::{json_patch, merge_patch, strategic_merge_patch};
use crate::refusal::{MAX_FOUND, Refusal};
use crate::resource::{Origin, builtin};

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
        let noticed = noticed(&patch, duplicates);
        let (key, stored) = self.find(target, name)?;
        let old = target.shown(&stored);
        if part == Part::Scale {
            let scale = scale::target(target);
            let new = patched(&scale, &scale::to_change(target, &old)?, &patch)?;
            let mut incoming = Incoming::new(&scale, new, Source::Patch)?;
            check_name(&incoming.object, name)?;
            incoming.drop_unknown(noticed, options)?;
            let said = incoming.warnings.clone();
            return self.scale_to(target, name, incoming, options, moment).map_err(|refusal| refusal.beside(said));
        }
        let mut new = patched(target, &old, &patch)?;
        if part == Part::Status && target.resource.origin == Origin::Custom {
            // Nothing but the status is taken over, not even what it calls itself.
            keep_identity(&mut new, &old);
        }
        let mut incoming = Incoming::new(target, new, Source::Patch)?;
        check_name(&incoming.object, name)?;
        incoming.drop_unknown(noticed, options)?;
        // An unmentioned version is the current one, which the patched object still carries.
        check_version(target, &old, &incoming.object)?;
        let said = incoming.warnings.clone();
        let changed = self.change(incoming, &key, &old, part, Ownership::Update, options, moment);
        changed.map_err(|refusal| refusal.beside(said))
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
        check_applied(&target.resource.kind, &target.api_version(), &config)?;
        let mut incoming = Incoming::new(target, config, Source::Apply)?;
        incoming.complain(doubled(duplicates), options)?;
        let found = self.find(target, name);
        // An object that is there has a name already.
        if found.is_err() || !incoming.object.name().is_empty() {
            check_name(&incoming.object, name)?;
        }
        let old = found.as_ref().ok().map(|(_, stored)| target.shown(stored));
        match &old {
            Some(old) => check_applied_version(target, old, &incoming.object)?,
            None => check_nothing_expected(target, &incoming.object)?,
        }
        if is_crd(&target.resource) {
            let unknown = builtin::drop_unknown_of_definitions(&mut incoming.object.clone());
            apply::refuse_undeclared(&incoming.object, &unknown)?;
        }
        let writer = Writer::new(target, part);
        let write = writer.write(&options.manager, moment);
        let schema = &target.version().schema;
        incoming.object = apply::apply(old.as_ref(), &incoming.object, schema, &write, options.force)?;
        if target.resource.origin == Origin::Builtin {
            let read = builtin::decode::decode_check(&incoming.object);
            read.map_err(|why| apply::unreadable_result(&incoming.object, &why))?;
        }
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
        check_applied("Scale", "autoscaling/v1", config)?;
        check_name(config, name)?;
        let (key, stored) = self.find(target, name)?;
        let old = target.shown(&stored);
        check_applied_version(target, &old, config)?;
        let writer = Writer::new(target, Part::Scale);
        let write = writer.write(&options.manager, moment);
        let shown = scale::to_change(target, &old)?;
        let replicas = scale::replicas(target)?;
        let (wanted, record) = apply::apply_scale(&old, shown, config, &replicas, &write, options.force)?;
        let mut object = scale::write(target, &old, &wanted)?;
        replace(Some(object.metadata_mut()), "managedFields", record);
        let mut incoming = Incoming::trusted(target, object);
        incoming.complain(doubled(duplicates), options)?;
        let mut written = self.change(incoming, &key, &old, Part::Scale, Ownership::Applied, options, moment)?;
        written.object = scale::read(target, &written.object)?;
        Ok(written)
    }
}

/// What is odd about the text of a patch. Operations have fields too, and of those it is said which patch they are of.
fn noticed(patch: &Patch, duplicates: &[String]) -> Vec<String> {
    const OPERATION: [&str; 4] = ["from", "op", "path", "value"];
    let Patch::Json(operations) = patch else { return doubled(duplicates) };
    let operations = operations.as_array().into_iter().flatten().enumerate();
    let unknown = operations.flat_map(|(n, operation)| {
        let fields = operation.as_object().into_iter().flat_map(|map| map.keys());
        let unknown = fields.filter(|field| !OPERATION.contains(&field.as_str()));
        unknown.map(move |field| format!("unknown field {:?}", format!("[{n}].{field}")))
    });
    // No more than are told of a body.
    doubled(duplicates).into_iter().chain(unknown).take(MAX_FOUND).map(|what| format!("json patch {what}")).collect()
}

/// An applied configuration must say what it is.
fn check_applied(kind: &str, api_version: &str, config: &Value) -> Result<(), Refusal> {
    if config.kind() != kind || config.api_version() != api_version {
        let (group, version) = config.api_version().split_once('/').unwrap_or(("", config.api_version()));
        return Err(Refusal::bad_request(format!("invalid object type: {group}/{version}, Kind={}", config.kind())));
    }
    Ok(())
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
        Patch::Strategic(patch) => {
            let mut new = strategic_merge_patch(old, patch, &target.version().schema)?;
            // It is read into what the object is, whatever the patch calls it.
            keep_identity(&mut new, old);
            Ok(new)
        }
        Patch::Apply(_) => unreachable!("apply has a path of its own"),
    }
}

/// Kind and version stay what they were.
fn keep_identity(new: &mut Value, old: &Value) {
    for field in ["apiVersion", "kind"] {
        replace(new.as_object_mut(), field, old.get(field).cloned());
    }
}
