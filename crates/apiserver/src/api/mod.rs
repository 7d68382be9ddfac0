//! The Kubernetes API as a pure value: state in, request in, answer out.
//!
//! Every verb is a method of [`Api`]. The clock and chance come in with each write as a [`Moment`], so the same
//! requests at the same moments give the same bytes. HTTP, streams and locks are somebody else's.

mod admit;
mod bind;
mod claims;
mod crds;
mod create;
mod delete;
mod envelope;
mod examinations;
mod list;
mod patch;
mod read;
mod request;
mod revision;
mod scale;
#[cfg(test)]
mod tests;
mod update;
mod watch;

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

pub(crate) use self::admit::is_crd;
use self::claims::{Claims, is_service};
pub(crate) use self::delete::DELETED_AT_ONCE;
use self::examinations::Examinations;
pub use self::list::Page;
pub use self::request::{
    Body, DeleteOptions, Deleted, FieldValidation, Listed, Moment, Part, Patch, Propagation, Query, Target,
    WatchOptions, WriteOptions, Written,
};
pub use self::watch::{EventKind, Identity, Standing, Watch, WatchEvent};
use crate::refusal::Refusal;
use crate::resource::{Registry, Resource, ResourceId, builtin};
use crate::store::{Key, Store, Stored, TooLarge};

/// The whole state of the API, and its rules.
#[derive(Debug)]
pub struct Api {
    store: Store,
    registry: Arc<Registry>,
    touched: BTreeSet<ResourceId>,
    /// Custom resources whose definition is being deleted.
    closing: BTreeSet<ResourceId>,
    /// Addresses and ports that services have.
    claims: Claims,
    /// What was found out about the schemas of definitions.
    examinations: Examinations,
}

/// Namespaces that exist from the start and cannot be deleted.
const INITIAL_NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

impl Api {
    /// An API with the built-in kinds and the namespaces that every cluster has.
    pub fn new(moment: Moment) -> Self {
        let mut registry = Registry::default();
        for resource in builtin::resources() {
            registry.insert(resource);
        }
        let mut api = Self {
            store: Store::default(),
            registry: Arc::new(registry),
            touched: BTreeSet::new(),
            closing: BTreeSet::new(),
            claims: Claims::default(),
            examinations: Examinations::default(),
        };
        let target = api.target("", "v1", "namespaces", None).expect("namespaces are built in");
        for (n, name) in (1u128..).zip(INITIAL_NAMESPACES) {
            let value = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            let moment = Moment { entropy: moment.entropy.wrapping_add(n), ..moment };
            let options = WriteOptions { manager: "evenkeel".into(), ..WriteOptions::default() };
            api.create(&target, Body { value, duplicates: Vec::new() }, &options, moment)
                .expect("an empty store accepts the initial namespaces");
        }
        api
    }

    /// What is served right now.
    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// The revision of the latest write.
    pub fn revision(&self) -> u64 {
        self.store.revision()
    }

    /// Looks up what a URL path names.
    pub fn target(&self, group: &str, version: &str, plural: &str, namespace: Option<&str>) -> Option<Target> {
        let resource = self.registry.get(&ResourceId::new(group, plural))?.clone();
        let version = resource.versions.iter().position(|v| v.served && v.name == version)?;
        Some(Target { resource, version, namespace: namespace.map(str::to_owned) })
    }

    /// Resources that were written since the last call: whoever watches them has something to read.
    pub fn take_touched(&mut self) -> BTreeSet<ResourceId> {
        std::mem::take(&mut self.touched)
    }

    /// The object that a request names, or the 404 that says it is not there.
    fn find(&self, target: &Target, name: &str) -> Result<(Key, Arc<Stored>), Refusal> {
        let key = Key::new(target.namespace.as_deref(), name);
        let stored = self.store.get(&target.storage_id(), &key).cloned();
        let resource = &target.resource;
        stored.map(|stored| (key, stored)).ok_or_else(|| Refusal::not_found(&resource.group, &resource.plural, name))
    }

    /// The one way to write an object. It is stamped on the way, so that afterwards it is what is stored.
    fn put(&mut self, target: &Target, key: Key, object: &mut Value) -> Result<Arc<Stored>, Refusal> {
        let id = target.storage_id();
        let stored = self.store.put(&id, key.clone(), object, &target.resource.storage().schema)?;
        if is_service(&target.resource) {
            self.claims.hold(&key, object);
        }
        self.touched.insert(id);
        Ok(stored)
    }

    /// The one way to remove an object.
    fn remove(&mut self, target: &Target, key: &Key, last: Value) -> Arc<Stored> {
        let id = target.storage_id();
        let stored = self.store.remove(&id, key, last, &target.resource.storage().schema);
        if is_service(&target.resource) {
            self.claims.release(key);
        }
        self.touched.insert(id);
        stored
    }
}

impl Target {
    /// Where the objects are kept: `events.k8s.io` and the core group show the same events.
    fn storage_id(&self) -> ResourceId {
        if self.is_event_view() { ResourceId::new("", "events") } else { self.resource.id() }
    }

    fn is_event_view(&self) -> bool {
        is_event_view(&self.resource)
    }

    fn api_version(&self) -> String {
        self.resource.api_version(&self.version().name)
    }
}

impl From<TooLarge> for Refusal {
    fn from(_: TooLarge) -> Self {
        // Word for word what the original passes on from its store.
        Self::new(500, "", "etcdserver: request is too large")
    }
}

fn is_event_view(resource: &Resource) -> bool {
    resource.group == "events.k8s.io" && resource.plural == "events"
}
