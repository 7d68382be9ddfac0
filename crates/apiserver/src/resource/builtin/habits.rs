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
