//! What requests and answers look like once HTTP is taken off them.

use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::Value;

use crate::resource::{Resource, Version};
use crate::select::{FieldSelector, LabelSelector};

/// What the outside world contributes to a write: the clock, and chance for uids and generated names.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    /// Wall-clock time.
    pub now: Timestamp,
    /// Fresh random bits, never used twice.
    pub entropy: u128,
}

/// Which resource, version and namespace a request is about. Made from a URL path by the registry.
#[derive(Debug, Clone)]
pub struct Target {
    /// The resource.
    pub resource: Arc<Resource>,
    /// Index into `resource.versions` of the version in the URL.
    pub version: usize,
    /// Namespace in the URL; `None` = cluster scope, or all namespaces for list and watch.
    pub namespace: Option<String>,
}

impl Target {
    /// The version in the URL.
    pub fn version(&self) -> &Version {
        &self.resource.versions[self.version]
    }
}

/// The part of an object that a write addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The object without its status (where `status` is a subresource).
    Main,
    /// `/status`.
    Status,
    /// `/scale`.
    Scale,
    /// `/finalize` of a namespace.
    Finalize,
}

/// Query parameters of writes.
#[derive(Debug, Clone, Default)]
pub struct WriteOptions {
    /// Nothing is kept (`dryRun=All`).
    pub dry_run: bool,
    /// Who owns the written fields (`fieldManager`); when absent, derived from the user agent by the caller.
    pub manager: String,
    /// What happens to unknown and duplicate fields.
    pub validation: FieldValidation,
    /// `force=true` of server-side apply.
    pub force: bool,
}

/// `fieldValidation=`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FieldValidation {
    /// Drop silently.
    Ignore,
    /// Drop, and say so in `Warning:` headers.
    #[default]
    Warn,
    /// Refuse.
    Strict,
}

/// A patch body, already decoded.
#[derive(Debug, Clone)]
pub enum Patch {
    /// `application/json-patch+json`: the list of operations.
    Json(Value),
    /// `application/merge-patch+json`.
    Merge(Value),
    /// `application/strategic-merge-patch+json`.
    Strategic(Value),
    /// `application/apply-patch+yaml`.
    Apply(Value),
}

/// A decoded body, with what was wrong about its text but could be read all the same.
#[derive(Debug, Clone)]
pub struct Body {
    /// The value.
    pub value: Value,
    /// Fields that stood twice in one object, as paths (`spec.replicas`).
    pub duplicates: Vec<String>,
}

/// The answer to a write.
#[derive(Debug, Clone)]
pub struct Written {
    /// The object afterwards, in the version asked for; for a delete that removed it, its last state.
    pub object: Value,
    /// It did not exist before (201 instead of 200).
    pub created: bool,
    /// Texts for `Warning:` headers.
    pub warnings: Vec<String>,
}

/// Options of a delete, from the body or the query.
#[derive(Debug, Clone, Default)]
pub struct DeleteOptions {
    /// Nothing is kept.
    pub dry_run: bool,
    /// What happens to dependants. `None` = the resource's default (background).
    pub propagation: Option<Propagation>,
    /// Only if the object has this uid.
    pub uid: Option<String>,
    /// Only if the object has this resource version.
    pub resource_version: Option<String>,
    /// `gracePeriodSeconds`; only pods care.
    pub grace_seconds: Option<i64>,
}

/// `propagationPolicy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Propagation {
    /// Dependants go after the owner.
    Background,
    /// The owner goes after its dependants.
    Foreground,
    /// Dependants stay.
    Orphan,
}

/// What a list or watch asks for.
#[derive(Debug, Clone, Default)]
pub struct Query {
    /// Label selector; the default selects everything.
    pub labels: LabelSelector,
    /// Field selector; the default selects everything.
    pub fields: FieldSelector,
    /// `resourceVersion`, as given.
    pub resource_version: Option<String>,
    /// `resourceVersionMatch`, as given.
    pub version_match: Option<String>,
    /// Page size; 0 = everything.
    pub limit: usize,
    /// Token of the next page.
    pub page: Option<String>,
}

/// One page of a list.
#[derive(Debug, Clone)]
pub struct Listed {
    /// Objects, as JSON text in the version asked for, ordered by `namespace/name`.
    pub items: Vec<Bytes>,
    /// The revision that the list shows.
    pub revision: u64,
    /// Token of the next page, if there is one.
    pub next: Option<String>,
    /// How many objects are left after this page; `None` when a selector makes that unknown.
    pub remaining: Option<usize>,
}

/// How a watch is wanted.
#[derive(Debug, Clone, Copy, Default)]
pub struct WatchOptions {
    /// `allowWatchBookmarks`.
    pub bookmarks: bool,
    /// `sendInitialEvents`, if given.
    pub send_initial: Option<bool>,
}

/// What became of a delete.
#[derive(Debug, Clone)]
pub enum Deleted {
    /// The object is gone; this was its last state.
    Gone(Value),
    /// The object is marked, and goes when its finalizers have.
    Pending(Value),
}
