//! The life of a CustomResourceDefinition: its names are accepted, its resource is served, and when it is deleted its
//! instances go first.
//!
//! The original does this in controllers, a moment later. Here each step is part of the write that causes it, so a
//! definition is established as soon as its creation is answered.

use std::sync::Arc;

use serde_json::{Value, json};

use super::admit::{replace, whole_seconds};
use super::delete::DELETED_AT_ONCE;
use super::{Api, DeleteOptions, Moment, Target};
use crate::object::{Object, child_map};
use crate::refusal::Refusal;
use crate::resource::{Registry, Resource, ResourceId, crd};
use crate::schema::Schema;
use crate::store::Key;

/// Holds a definition that is being deleted until its instances are gone.
pub(super) const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Brings `status` up to date with the spec.
pub(super) fn settle(object: &mut Value, registry: &Registry, now: &str) {
    if object.is_terminating() {
        return;
    }
    let (names, clash) = accepted_names(object, registry);
    let stored = stored_versions(object);
    let was_established = is_established(object);
    let accepted = match clash {
        None => ("True", "NoConflicts", "no conflicts found".to_owned()),
        Some((reason, message)) => ("False", reason, message),
    };
    // What was established once goes on being served, under the names that it was accepted with.
    let established = if accepted.0 == "True" || was_established {
        ("True", "InitialNamesAccepted", "the initial names have been accepted".to_owned())
    } else {
        ("False", "NotAccepted", "not all names are accepted".to_owned())
    };
    let status = child_map(object, "status");
    let old = status.get("conditions").cloned().unwrap_or_default();
    let conditions =
        json!([condition("NamesAccepted", accepted, &old, now), condition("Established", established, &old, now)]);
    status.insert("conditions".into(), conditions);
    status.insert("acceptedNames".into(), names);
    status.insert("storedVersions".into(), stored);
}

fn condition(kind: &str, (state, reason, message): (&str, &str, String), old: &Value, now: &str) -> Value {
    let before = old.as_array().into_iter().flatten().find(|c| c["type"] == kind && c["status"] == state);
    let since = before.and_then(|c| c["lastTransitionTime"].as_str()).unwrap_or(now);
    json!({"type": kind, "status": state, "lastTransitionTime": since, "reason": reason, "message": message})
}

/// Marks a definition whose instances are on their way out.
pub(super) fn terminating(object: &mut Value, now: &str) {
    let status = child_map(object, "status");
    let mut conditions = status.get("conditions").and_then(Value::as_array).cloned().unwrap_or_default();
    conditions.retain(|c| c["type"] != "Terminating");
    let state = ("True", "InstanceDeletionInProgress", "CustomResource deletion is in progress".to_owned());
    conditions.push(condition("Terminating", state, &Value::Null, now));
    status.insert("conditions".into(), conditions.into());
}

/// Versions in which objects may have been stored: whatever was, and the current storage version.
fn stored_versions(object: &Value) -> Value {
    let before = object.at(&["status", "storedVersions"]).and_then(Value::as_array).cloned().unwrap_or_default();
    let versions = object.at(&["spec", "versions"]).and_then(Value::as_array).into_iter().flatten();
    let storage = versions.filter(|v| v["storage"] == true).map(|v| v["name"].clone());
    let mut all = before;
    for name in storage {
        if !all.contains(&name) {
            all.push(name);
        }
    }
    Value::Array(all)
}

/// The names that a definition gets: of those that it asks for, the ones that no other resource of its group answers to,
/// and for each of the others the one that it had. Of the latter the last is told, with what kind of name it is.
fn accepted_names(object: &Value, registry: &Registry) -> (Value, Option<(&'static str, String)>) {
    let wanted = object.at(&["spec", "names"]).cloned().unwrap_or_default();
    let before = object.at(&["status", "acceptedNames"]).cloned().unwrap_or_else(|| json!({}));
    let group = object.at(&["spec", "group"]).and_then(Value::as_str).unwrap_or_default();
    let plural = wanted["plural"].as_str().unwrap_or_default().to_owned();
    let others: Vec<_> = registry.iter().filter(|r| r.group == group && r.plural != plural).collect();
    let is_resource = |name: &str| {
        others.iter().any(|r| r.plural == name || r.singular == name || r.short_names.iter().any(|s| s == name))
    };
    let is_kind = |name: &str| others.iter().any(|r| r.kind == name || r.list_kind == name);
    let (mut names, mut clash) = (wanted.clone(), None);
    let mut keep = |field: &str, reason, message| {
        // The two that are always told are empty where there never was one.
        let none = matches!(field, "plural" | "kind").then(|| Value::from(""));
        replace(names.as_object_mut(), field, before.get(field).cloned().or(none));
        clash = Some((reason, message));
    };
    let taken = |name: &str| format!("{name:?} is already in use");
    let one = |field: &str, is_taken: &dyn Fn(&str) -> bool| {
        let name = wanted[field].as_str().filter(|name| before[field] != **name && is_taken(name))?;
        Some(taken(name))
    };
    if let Some(message) = one("plural", &is_resource) {
        keep("plural", "PluralConflict", message);
    }
    if let Some(message) = one("singular", &is_resource) {
        keep("singular", "SingularConflict", message);
    }
    let had: Vec<&Value> = before["shortNames"].as_array().into_iter().flatten().collect();
    let short = wanted["shortNames"].as_array().into_iter().flatten().filter(|name| !had.contains(name));
    let short: Vec<String> = short.filter_map(Value::as_str).filter(|name| is_resource(name)).map(taken).collect();
    match short.as_slice() {
        [] => {}
        [one] => keep("shortNames", "ShortNamesConflict", one.clone()),
        many => keep("shortNames", "ShortNamesConflict", format!("[{}]", many.join(", "))),
    }
    if let Some(message) = one("kind", &is_kind) {
        keep("kind", "KindConflict", message);
    }
    if let Some(message) = one("listKind", &is_kind) {
        keep("listKind", "ListKindConflict", message);
    }
    (names, clash)
}

fn is_established(object: &Value) -> bool {
    is_true(object, "Established")
}

fn is_true(object: &Value, condition: &str) -> bool {
    let conditions = object.at(&["status", "conditions"]).and_then(Value::as_array).into_iter().flatten();
    conditions.into_iter().any(|c| c["type"] == condition && c["status"] == "True")
}

/// Whether a resource still answers to every name that it had before.
fn has_names_of(resource: &Resource, before: &Resource) -> bool {
    let same = (&resource.singular, &resource.kind, &resource.list_kind);
    same == (&before.singular, &before.kind, &before.list_kind)
        && before.short_names.iter().all(|name| resource.short_names.contains(name))
}

impl Api {
    /// Serves the resource of a definition, if its names were accepted. A write that changed nothing of the resource, such
    /// as one of labels or conditions, leaves it the very same: watches end when it is another.
    pub(super) fn serve_definition(&mut self, definition: &Value, moment: Moment) {
        let Some(examined) = self.examinations.keep(definition) else { return };
        if !is_established(definition) {
            return;
        }
        let Some(mut resource) = crd::resource_of(definition, &examined) else { return };
        let id = resource.id();
        let before = self.registry.get(&id).cloned();
        if before.as_deref() == Some(&resource) {
            return;
        }
        self.store.begin(&id);
        share_schemas(&mut resource, before.as_deref());
        let gave_up_names = before.is_some_and(|before| !has_names_of(&resource, &before));
        Arc::make_mut(&mut self.registry).insert(resource);
        if gave_up_names {
            self.reconsider_names(definition, moment);
        }
    }

    /// A definition that is being deleted takes no new instances.
    pub(super) fn definition_accepts(&self, target: &Target, name: &str) -> Result<(), Refusal> {
        let resource = &target.resource;
        if self.closing.contains(&resource.id()) {
            let why = "create not allowed while custom resource definition is terminating";
            return Err(Refusal::forbidden(&resource.group, &resource.plural, name, why));
        }
        Ok(())
    }

    pub(super) fn stop_serving(&mut self, definition: &Value) {
        self.examinations.forget(definition.name());
        if let Some(id) = served_id(definition) {
            Arc::make_mut(&mut self.registry).remove(&id);
            self.closing.remove(&id);
            self.store.end(&id);
        }
    }

    /// Begins to delete the instances of a definition that is being deleted; it goes with the last of them.
    pub(super) fn begin_clearing(&mut self, definition: &Value, moment: Moment) {
        if let Some(id) = served_id(definition).filter(|id| self.registry.get(id).is_some()) {
            self.closing.insert(id.clone());
            if self.store.count(&id) > 0 {
                self.clear_instances(definition.name(), None, moment);
                return;
            }
        }
        self.let_go(definition.name(), moment);
    }

    /// Deletes some instances of a definition that is being deleted, the next ones after a key; returns the last of them
    /// if there are more. Not all in one write: nobody else is answered meanwhile.
    pub fn clear_instances(&mut self, definition: &str, after: Option<&Key>, moment: Moment) -> Option<Key> {
        let (plural, group) = definition.split_once('.')?;
        let id = ResourceId::new(group, plural);
        let resource = self.registry.get(&id).filter(|_| self.closing.contains(&id)).cloned()?;
        let behind = self.store.iter(&id, None).map(|(key, _)| key).skip_while(|key| after.is_some_and(|a| *key <= a));
        let keys: Vec<Key> = behind.take(DELETED_AT_ONCE).cloned().collect();
        for key in &keys {
            let target = storage_target(&resource, key);
            // An instance that is held by a finalizer stays, and so does the definition.
            let _ = self.delete(&target, key.name(), &DeleteOptions::default(), moment);
        }
        keys.last().filter(|_| keys.len() == DELETED_AT_ONCE).cloned()
    }

    /// After an instance has gone: was it the last one that a dying definition waited for?
    pub(super) fn finish_definition(&mut self, target: &Target, moment: Moment) {
        let resource = &target.resource;
        let waiting = self.closing.contains(&resource.id());
        if waiting && self.store.count(&resource.id()) == 0 {
            self.let_go(&format!("{}.{}", resource.plural, resource.group), moment);
        }
    }

    /// Takes our finalizer off a definition that is being deleted; without another one it goes.
    fn let_go(&mut self, name: &str, moment: Moment) {
        let target = self.target("apiextensions.k8s.io", "v1", "customresourcedefinitions", None);
        let target = target.expect("definitions are built in");
        let Ok((key, stored)) = self.find(&target, name) else { return };
        let mut last = stored.parse();
        let (ours, others): (Vec<&str>, Vec<&str>) = last.finalizers().into_iter().partition(|f| *f == CLEANUP);
        if ours.is_empty() {
            return;
        }
        if !others.is_empty() {
            let others: Vec<String> = others.into_iter().map(str::to_owned).collect();
            last.metadata_mut().insert("finalizers".into(), others.into());
            // Smaller than before, so it fits.
            let _ = self.put(&target, key, &mut last);
            return;
        }
        last.metadata_mut().remove("finalizers");
        self.remove(&target, &key, last.clone());
        self.after_removal(&target, &last, moment);
    }

    /// Names that a definition was refused may be free now that another one is gone, or has given them up.
    pub(super) fn reconsider_names(&mut self, gone: &Value, moment: Moment) {
        let target = self.target("apiextensions.k8s.io", "v1", "customresourcedefinitions", None);
        let target = target.expect("definitions are built in");
        let group = gone.at(&["spec", "group"]).cloned();
        let rows: Vec<_> = self.store.iter(&target.storage_id(), None).map(|(k, s)| (k.clone(), s.parse())).collect();
        for (key, before) in rows {
            if before.at(&["spec", "group"]) != group.as_ref() || is_true(&before, "NamesAccepted") {
                continue;
            }
            let mut after = before.clone();
            settle(&mut after, &self.registry, &whole_seconds(moment));
            if after != before {
                // One that no longer fits stays as it was.
                if self.put(&target, key, &mut after).is_ok() {
                    self.serve_definition(&after, moment);
                }
            }
        }
    }
}

/// Lets equal schemas be one: those of two versions, and those of the resource before and after its definition was
/// written. Objects know by that whether they are read as they were written.
fn share_schemas(resource: &mut Resource, before: Option<&Resource>) {
    let mut known: Vec<Arc<Schema>> = before.into_iter().flat_map(|r| &r.versions).map(|v| v.schema.clone()).collect();
    for version in &mut resource.versions {
        match known.iter().find(|schema| **schema == version.schema) {
            Some(schema) => version.schema = schema.clone(),
            None => known.push(version.schema.clone()),
        }
    }
}

fn served_id(definition: &Value) -> Option<ResourceId> {
    let spec = definition.get("spec")?;
    Some(ResourceId::new(spec["group"].as_str()?, spec["names"]["plural"].as_str()?))
}

fn storage_target(resource: &Arc<Resource>, key: &Key) -> Target {
    let version = resource.versions.iter().position(|v| v.storage).unwrap_or_default();
    let namespace = resource.namespaced.then(|| key.namespace().to_owned());
    Target { resource: resource.clone(), version, namespace }
}
