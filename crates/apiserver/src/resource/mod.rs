//! What is served: resources, their versions, and the registry that the URL paths are looked up in.
//!
//! Built-in kinds and custom resources end up as the same [`Resource`]; nothing after the registry asks which it was,
//! except where the original treats them differently.

pub mod builtin;
pub(crate) mod coerce;
pub mod crd;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::schema::Schema;

/// One resource of one API group, in all its versions.
#[derive(Debug, Clone, PartialEq)]
pub struct Resource {
    /// API group; empty for the core group.
    pub group: String,
    /// Lower-case plural, the name in URLs.
    pub plural: String,
    /// Lower-case singular.
    pub singular: String,
    /// Kind of one object.
    pub kind: String,
    /// Kind of a list of them.
    pub list_kind: String,
    /// Short names that `kubectl` takes.
    pub short_names: Vec<String>,
    /// Categories such as `all`.
    pub categories: Vec<String>,
    /// Whether objects live in a namespace.
    pub namespaced: bool,
    /// All versions, the most preferred first (Kubernetes' version order).
    pub versions: Vec<Version>,
    /// Where the definition comes from.
    pub origin: Origin,
}

/// Where a resource's definition comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Compiled in.
    Builtin,
    /// From a `CustomResourceDefinition` in the store.
    Custom,
}

/// One version of a resource.
#[derive(Debug, Clone, PartialEq)]
pub struct Version {
    /// E.g. `v1beta2`.
    pub name: String,
    /// Reachable over HTTP.
    pub served: bool,
    /// The version in which objects are kept. Exactly one per resource.
    pub storage: bool,
    /// Text of the `Warning:` header for a deprecated version.
    pub deprecation: Option<String>,
    /// Schema of the objects.
    pub schema: Arc<Schema>,
    /// The same as an OpenAPI v3 object schema, for `/openapi/v3` (with descriptions; may hold `$ref`s into
    /// `#/components/schemas/` for built-in kinds).
    pub openapi: Arc<Value>,
    /// Columns of the table form, after `Name`.
    pub columns: Vec<Column>,
    /// JSON paths (`.spec.mode`) allowed in field selectors, besides name and namespace.
    pub selectable: Vec<String>,
    /// The `status` subresource is on.
    pub status: bool,
    /// The `scale` subresource, if it is on.
    pub scale: Option<ScalePaths>,
}

/// Where `scale` reads and writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScalePaths {
    /// E.g. `.spec.replicas`.
    pub spec_replicas: String,
    /// E.g. `.status.replicas`.
    pub status_replicas: String,
    /// E.g. `.status.labelSelector`; text form of a selector.
    pub label_selector: Option<String>,
}

/// One column of the table form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Heading.
    pub name: String,
    /// `string`, `integer`, `date`, ...
    pub ty: String,
    /// OpenAPI format, mostly empty.
    pub format: String,
    /// For `kubectl explain`-like tools.
    pub description: String,
    /// 0 = always shown, more = only in wide output.
    pub priority: i32,
    /// JSON path of the cell's value.
    pub json_path: String,
}

/// Identifies a resource regardless of version: (group, plural).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceId {
    /// API group; empty for the core group.
    pub group: Arc<str>,
    /// Lower-case plural.
    pub plural: Arc<str>,
}

impl ResourceId {
    /// From its two parts.
    pub fn new(group: &str, plural: &str) -> Self {
        Self { group: group.into(), plural: plural.into() }
    }
}

/// Everything that is served right now.
#[derive(Debug, Clone, Default)]
pub struct Registry {
    resources: BTreeMap<ResourceId, Arc<Resource>>,
}

impl Registry {
    /// Adds or replaces a resource.
    pub fn insert(&mut self, resource: Resource) {
        self.resources.insert(resource.id(), Arc::new(resource));
    }

    /// Stops serving a resource.
    pub fn remove(&mut self, id: &ResourceId) {
        self.resources.remove(id);
    }

    /// The resource of that group and plural.
    pub fn get(&self, id: &ResourceId) -> Option<&Arc<Resource>> {
        self.resources.get(id)
    }

    /// All resources, ordered by group and plural.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.resources.values()
    }
}

impl Resource {
    /// Its identity.
    pub fn id(&self) -> ResourceId {
        ResourceId::new(&self.group, &self.plural)
    }

    /// The version of that name, if it is served.
    pub fn served(&self, version: &str) -> Option<&Version> {
        self.versions.iter().find(|v| v.served && v.name == version)
    }

    /// The version in which objects are kept.
    pub fn storage(&self) -> &Version {
        self.versions.iter().find(|v| v.storage).expect("every resource has one storage version, checked at admission")
    }

    /// `group/version`, or just the version in the core group.
    pub fn api_version(&self, version: &str) -> String {
        if self.group.is_empty() { version.to_owned() } else { format!("{}/{version}", self.group) }
    }
}
