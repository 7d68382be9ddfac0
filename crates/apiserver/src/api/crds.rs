//! The life of a CustomResourceDefinition: its names are accepted, its resource is served, and when it is deleted its
//! instances go first.
//!
//! The original does this in controllers, a moment later. Here each step is part of the write that causes it, so a
//! definition is established as soon as its creation is answered.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Api, DeleteOptions, Moment, Target};
use crate::object::{Object, child_map};
use crate::refusal::Refusal;
use crate::resource::{Origin, Registry, Resource, ResourceId, crd};
use crate::schema;
use crate::store::Key;

/// Holds a definition until its instances are gone.
const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Brings `status` and the cleanup finalizer up to date with the spec.
pub(super) fn settle(object: &mut Value, registry: &Registry, now: &str) {
    if object.is_terminating() {
        return;
    }
    if !object.finalizers().contains(&CLEANUP) {
        let mut finalizers: Vec<String> = object.finalizers().iter().map(|f| (*f).to_owned()).collect();
        finalizers.push(CLEANUP.into());
        object.metadata_mut().insert("finalizers".into(), finalizers.into());
    }
    let clash = name_clash(object, registry);
    let stored = stored_versions(object);
    let names = object.at(&["spec", "names"]).cloned().unwrap_or_default();
    let (accepted, established) = match &clash {
        None => (
            ("True", "NoConflicts", "no conflicts found".to_owned()),
            ("True", "InitialNamesAccepted", "the initial names have been accepted".to_owned()),
        ),
        Some((reason, name)) => (
            ("False", *reason, format!("{name:?} is already in use")),
            ("False", "NotAccepted", "not all names are accepted".to_owned()),
        ),
    };
    let status = child_map(object, "status");
    let old = status.get("conditions").cloned().unwrap_or_default();
    let conditions =
        json!([condition("NamesAccepted", accepted, &old, now), condition("Established", established, &old, now)]);
    status.insert("conditions".into(), conditions);
    if clash.is_none() {
        status.insert("acceptedNames".into(), names);
    }
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

/// The first of these names that another resource of the group already answers to, and what kind of name it is.
fn name_clash(object: &Value, registry: &Registry) -> Option<(&'static str, String)> {
    let spec = object.get("spec")?;
    let (group, plural) = (spec["group"].as_str()?, spec["names"]["plural"].as_str()?);
    let others: Vec<_> = registry.iter().filter(|r| r.group == group && r.plural != plural).collect();
    let is_resource = |name: &&str| {
        others.iter().any(|r| r.plural == *name || r.singular == *name || r.short_names.iter().any(|s| s == name))
    };
    let is_kind = |name: &&str| others.iter().any(|r| r.kind == *name || r.list_kind == *name);
    let names = &spec["names"];
    let mut short = names["shortNames"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let found = None
        .or_else(|| Some("PluralConflict").zip(names["plural"].as_str().filter(is_resource)))
        .or_else(|| Some("SingularConflict").zip(names["singular"].as_str().filter(is_resource)))
        .or_else(|| Some("ShortNamesConflict").zip(short.find(is_resource)))
        .or_else(|| Some("KindConflict").zip(names["kind"].as_str().filter(is_kind)))
        .or_else(|| Some("ListKindConflict").zip(names["listKind"].as_str().filter(is_kind)));
    found.map(|(reason, name)| (reason, name.to_owned()))
}

fn is_established(object: &Value) -> bool {
    let conditions = object.at(&["status", "conditions"]).and_then(Value::as_array).into_iter().flatten();
    conditions.into_iter().any(|c| c["type"] == "Established" && c["status"] == "True")
}

impl Api {
    /// Serves the resource of a definition, if its names were accepted.
    pub(super) fn serve_definition(&mut self, definition: &Value) {
        if !is_established(definition) {
            return;
        }
        let Ok(resource) = crd::resource_of(definition) else { return };
        let id = resource.id();
        self.store.begin(&id);
        // What is stored was written under the schema of its time, and is read under the schema of today.
        let schema = resource.storage().schema.clone();
        let before = self.registry.get(&id).map(|r| r.storage().schema.clone());
        if before.is_some_and(|before| before != schema) {
            self.store.reinterpret(&id, |object| {
                schema::prune::prune(&schema, object);
                schema::defaults::apply(&schema, object);
            });
        }
        Arc::make_mut(&mut self.registry).insert(resource);
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
        if let Some(id) = served_id(definition) {
            Arc::make_mut(&mut self.registry).remove(&id);
            self.closing.remove(&id);
        }
    }

    /// Deletes all instances of a definition that is being deleted, and the definition itself once none is left.
    pub(super) fn clear_instances(&mut self, definition: &Value, moment: Moment) {
        let Some(resource) = served_id(definition).and_then(|id| self.registry.get(&id).cloned()) else {
            self.drop_definition(definition);
            return;
        };
        self.closing.insert(resource.id());
        let keys: Vec<Key> = self.store.iter(&resource.id(), None).map(|(key, _)| key.clone()).collect();
        for key in keys {
            let target = storage_target(&resource, &key);
            // An instance that is held by a finalizer stays, and so does the definition.
            let _ = self.delete(&target, key.name(), &DeleteOptions::default(), moment);
        }
        if self.store.count(&resource.id()) == 0 {
            self.drop_definition(definition);
        }
    }

    /// After an instance has gone: was it the last one that a dying definition waited for?
    pub(super) fn finish_definition(&mut self, target: &Target) {
        let resource = &target.resource;
        if resource.origin != Origin::Custom || self.store.count(&resource.id()) > 0 {
            return;
        }
        let name = format!("{}.{}", resource.plural, resource.group);
        let definitions = ResourceId::new("apiextensions.k8s.io", "customresourcedefinitions");
        let Some(stored) = self.store.get(&definitions, &Key::new(None, &name)) else { return };
        let definition = stored.parse();
        if definition.is_terminating() {
            self.drop_definition(&definition);
        }
    }

    fn drop_definition(&mut self, definition: &Value) {
        let target = self.target("apiextensions.k8s.io", "v1", "customresourcedefinitions", None);
        let target = target.expect("definitions are built in");
        let others: Vec<String> =
            definition.finalizers().iter().filter(|f| **f != CLEANUP).map(|f| (*f).to_owned()).collect();
        let key = Key::new(None, definition.name());
        let mut last = definition.clone();
        last.metadata_mut().insert("finalizers".into(), others.clone().into());
        if others.is_empty() {
            last.metadata_mut().remove("finalizers");
            self.remove(&target, &key, last);
            self.stop_serving(definition);
        } else {
            self.put(&target, key, last);
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
