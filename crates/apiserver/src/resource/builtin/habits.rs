//! What the original does differently from kind to kind, for no reason that the schema tells.

use crate::resource::{Origin, Resource};

/// An update must name the version it was made from. Custom resources all do.
pub fn needs_version(resource: &Resource) -> bool {
    resource.origin == Origin::Custom
        || matches!(resource.plural.as_str(), "customresourcedefinitions" | "leases" | "poddisruptionbudgets")
}

/// An update of an object that is not there creates it.
pub fn is_created_by_update(resource: &Resource) -> bool {
    resource.origin == Origin::Builtin
        && (matches!(resource.plural.as_str(), "events" | "leases" | "services")
            || resource.group == "rbac.authorization.k8s.io")
}

/// A delete is answered with the object instead of a `Status`.
pub fn is_shown_when_deleted(resource: &Resource) -> bool {
    const SHOWN: [&str; 6] =
        ["persistentvolumeclaims", "persistentvolumes", "pods", "serviceaccounts", "services", "storageclasses"];
    resource.origin == Origin::Builtin && SHOWN.contains(&resource.plural.as_str())
}

/// A write to `status` also writes the metadata. That of custom resources does not.
pub fn status_writes_metadata(resource: &Resource) -> bool {
    resource.origin == Origin::Builtin
}

/// Metadata that a write to `status` leaves alone all the same.
pub fn kept_by_status_writes(resource: &Resource) -> &'static [&'static str] {
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("apps", "deployments") => &["labels"],
        // Old kubelets sent them back spoilt, and whatever belonged to their pods was lost.
        ("", "pods") => &["ownerReferences"],
        _ => &[],
    }
}

/// A new object may bring its status along: a kubelet reports with the node that it makes.
pub fn is_born_with_status(resource: &Resource) -> bool {
    resource.group.is_empty() && resource.plural == "nodes"
}

/// Metadata that counts as what the user wants: it is copied to others.
pub fn counted_in_metadata(resource: &Resource) -> Option<&'static str> {
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("apps", "deployments") => Some("annotations"),
        ("discovery.k8s.io", "endpointslices") => Some("labels"),
        _ => None,
    }
}
