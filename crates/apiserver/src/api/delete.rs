//! DELETE: marking, waiting for finalizers, and going.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::admit::{is_crd, is_namespace, whole_seconds};
use super::update::may_go;
use super::{Api, DeleteOptions, Deleted, INITIAL_NAMESPACES, Moment, Propagation, Target, crds};
use crate::names::{FOREGROUND, ORPHAN};
use crate::object::{Object, child_map};
use crate::refusal::Refusal;
use crate::resource::Resource;
use crate::store::Key;

/// How many objects are deleted before others have their turn: a few milliseconds' worth.
pub(crate) const DELETED_AT_ONCE: usize = 256;

impl Api {
    /// Deletes an object, or marks it for deletion while somebody still holds it.
    pub fn delete(
        &mut self,
        target: &Target,
        name: &str,
        options: &DeleteOptions,
        moment: Moment,
    ) -> Result<Deleted, Refusal> {
        let (key, stored) = self.find(target, name)?;
        let mut object = stored.parse();
        check_preconditions(target, &object, options)?;
        if is_namespace(&target.resource) && INITIAL_NAMESPACES[..].contains(&name) && name != "kube-node-lease" {
            return Err(Refusal::forbidden("", "namespaces", name, "this namespace may not be deleted"));
        }
        let mut marked = mark(target, &object, options, moment);
        let goes = may_go(target, &marked);
        // Only of pods the original writes down that they are deleted before they go.
        let leaves_word = is_pod(target) && marked != object;
        let mut shown = if goes && !leaves_word { object.clone() } else { marked.clone() };
        target.to_shown(&mut shown);
        if options.dry_run {
            return Ok(if goes { Deleted::Gone(shown) } else { Deleted::Pending(shown) });
        }
        if goes {
            let last = if leaves_word { &mut marked } else { &mut object };
            if leaves_word {
                let stored = self.put(target, key.clone(), last)?;
                shown = target.shown_as(&stored, last.clone());
            }
            self.remove(target, &key, last.clone());
            self.after_removal(target, last, moment);
            return Ok(Deleted::Gone(shown));
        }
        if marked != object {
            let stored = self.put(target, key, &mut marked)?;
            shown = target.shown_as(&stored, marked);
        }
        if is_crd(&target.resource) {
            self.begin_clearing(&shown, moment);
        }
        Ok(Deleted::Pending(shown))
    }

    /// Deletes some objects of a collection. Those that are gone already are what was asked for.
    pub fn delete_each(
        &mut self,
        target: &Target,
        keys: &[Key],
        options: &DeleteOptions,
        moment: Moment,
    ) -> Result<(), Refusal> {
        for key in keys {
            let namespace = target.resource.namespaced.then(|| key.namespace().to_owned());
            let one = Target { namespace, ..target.clone() };
            match self.delete(&one, key.name(), options, moment) {
                Err(refusal) if refusal.code != 404 => return Err(refusal),
                _ => {}
            }
        }
        Ok(())
    }

    /// What follows from a removal elsewhere: a definition takes its resource out of service, and the last instance of
    /// a definition that is being deleted takes the definition along.
    pub(super) fn after_removal(&mut self, target: &Target, object: &Value, moment: Moment) {
        if is_crd(&target.resource) {
            self.stop_serving(object);
            self.reconsider_names(object, moment);
        } else {
            self.finish_definition(target, moment);
        }
    }
}

fn check_preconditions(target: &Target, object: &Value, options: &DeleteOptions) -> Result<(), Refusal> {
    let Resource { group, kind, .. } = &*target.resource;
    if is_namespace(&target.resource) {
        return check_preconditions_of_namespace(object, options);
    }
    if let Some(uid) = options.uid.as_deref().filter(|uid| *uid != object.meta("uid")) {
        let why = format!(
            "the UID in the precondition ({uid}) does not match the UID in record ({}). The object might have been \
             deleted and then recreated",
            object.meta("uid")
        );
        return Err(Refusal::conflict(group, kind, object.name(), why));
    }
    let current = object.meta("resourceVersion");
    if let Some(version) = options.resource_version.as_deref().filter(|version| *version != current) {
        let why = format!(
            "the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record \
             ({current}). The object might have been modified"
        );
        return Err(Refusal::conflict(group, kind, object.name(), why));
    }
    Ok(())
}

/// Namespaces are deleted by rules of their own, and say so in other words.
fn check_preconditions_of_namespace(namespace: &Value, options: &DeleteOptions) -> Result<(), Refusal> {
    for (name, field, wanted) in
        [("UID", "uid", &options.uid), ("ResourceVersion", "resourceVersion", &options.resource_version)]
    {
        let current = namespace.meta(field);
        if let Some(wanted) = wanted.as_deref().filter(|wanted| *wanted != current) {
            let why =
                format!("Precondition failed: {name} in precondition: {wanted}, {name} in object meta: {current}");
            return Err(Refusal::conflict("", "namespaces", namespace.name(), why));
        }
    }
    Ok(())
}

/// The object with the mark of deletion and the finalizers that the propagation policy asks for.
fn mark(target: &Target, object: &Value, options: &DeleteOptions, moment: Moment) -> Value {
    let mut marked = object.clone();
    let mut finalizers = finalizers_after(object, options.propagation);
    // Definitions and namespaces are marked by their own rules: no count of it, no grace, and what is in them goes first.
    let is_definition = is_crd(&target.resource);
    let is_container = is_definition || is_namespace(&target.resource);
    if is_definition && !object.is_terminating() {
        finalizers.push(crds::CLEANUP.to_owned());
    }
    let metadata = marked.metadata_mut();
    if finalizers.is_empty() {
        metadata.remove("finalizers");
    } else {
        metadata.insert("finalizers".into(), finalizers.into());
    }
    let grace = grace_seconds(target, object, options);
    let before = object.at(&["metadata", "deletionGracePeriodSeconds"]).and_then(Value::as_i64);
    let generation = metadata.get("generation").and_then(Value::as_i64);
    if let Some(generation) = generation.filter(|_| !object.is_terminating() && !is_container) {
        metadata.insert("generation".into(), (generation + 1).into());
    }
    let is_earlier = if is_container { !object.is_terminating() } else { before.is_none_or(|before| grace < before) };
    if is_earlier {
        // Grace counts from the first request, but nothing ends in the past.
        let since = begun(object, before).unwrap_or(moment.now);
        let deadline = since.checked_add(SignedDuration::from_secs(grace)).unwrap_or(Timestamp::MAX).max(moment.now);
        let stamp = whole_seconds(Moment { now: deadline, ..moment });
        metadata.insert("deletionTimestamp".into(), stamp.into());
        if !is_container {
            metadata.insert("deletionGracePeriodSeconds".into(), grace.into());
        }
    }
    if is_definition && !object.is_terminating() {
        crds::terminating(&mut marked, &whole_seconds(moment));
    }
    if is_namespace(&target.resource) {
        child_map(&mut marked, "status").insert("phase".into(), "Terminating".into());
    }
    marked
}

/// When the deletion of an object began that has that much time to end.
fn begun(object: &Value, grace: Option<i64>) -> Option<Timestamp> {
    let deadline: Timestamp = object.meta("deletionTimestamp").parse().ok()?;
    deadline.checked_sub(SignedDuration::from_secs(grace?)).ok()
}

/// Only pods that run somewhere get time to end; everything else goes at once. What is given once is only ever cut
/// short, and only by who says so.
fn grace_seconds(target: &Target, object: &Value, options: &DeleteOptions) -> i64 {
    // Less than nothing is taken for as little as possible, not for at once.
    let sensible = |seconds: i64| if seconds < 0 { 1 } else { seconds };
    if object.is_terminating() {
        let before = object.at(&["metadata", "deletionGracePeriodSeconds"]).and_then(Value::as_i64).unwrap_or(0);
        return options.grace_seconds.map_or(before, |seconds| sensible(seconds).min(before));
    }
    let text = |path: &[&str]| object.at(path).and_then(Value::as_str).unwrap_or_default().to_owned();
    let runs = !text(&["spec", "nodeName"]).is_empty()
        && !matches!(text(&["status", "phase"]).as_str(), "Succeeded" | "Failed");
    if !is_pod(target) || !runs {
        return 0;
    }
    let own = object.at(&["spec", "terminationGracePeriodSeconds"]).and_then(Value::as_i64);
    sensible(options.grace_seconds.or(own).unwrap_or(0))
}

fn is_pod(target: &Target) -> bool {
    target.resource.group.is_empty() && target.resource.plural == "pods"
}

/// Finalizers after a delete: the garbage collector's two are added or taken away by policy; without one, what an
/// earlier delete decided stays.
fn finalizers_after(object: &Value, policy: Option<Propagation>) -> Vec<String> {
    let existing = object.finalizers();
    let orphan = match policy {
        Some(policy) => policy == Propagation::Orphan,
        None => existing.contains(&ORPHAN),
    };
    let foreground = match policy {
        Some(policy) => policy == Propagation::Foreground,
        None => existing.contains(&FOREGROUND),
    };
    let mut after: Vec<String> =
        existing.iter().filter(|f| **f != ORPHAN && **f != FOREGROUND).map(|f| (*f).to_owned()).collect();
    after.extend(orphan.then(|| ORPHAN.to_owned()));
    after.extend(foreground.then(|| FOREGROUND.to_owned()));
    after
}
