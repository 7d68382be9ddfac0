//! What is served, told to clients: one list per group version, or all at once (aggregated).

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::path::GroupVersion;
use crate::resource::builtin::verbs;
use crate::resource::{Origin, Registry, Resource, Version};

/// The groups whose kinds are compiled in come in this order, so that short names and plurals that occur twice
/// (`events`) mean what they mean on a real server; custom groups follow by name.
const FIRST_GROUPS: [&str; 11] = [
    "",
    "apps",
    "events.k8s.io",
    "authorization.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "apiextensions.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
];

/// One group with its served versions, the preferred first.
struct Group<'a> {
    name: &'a str,
    versions: Vec<(&'a str, Vec<&'a Resource>)>,
}

fn groups(registry: &Registry) -> Vec<Group<'_>> {
    let mut found: BTreeMap<&str, BTreeMap<&str, Vec<&Resource>>> = BTreeMap::new();
    for resource in registry.iter() {
        for version in resource.versions.iter().filter(|v| v.served) {
            found.entry(&resource.group).or_default().entry(&version.name).or_default().push(resource);
        }
    }
    let mut groups: Vec<Group<'_>> = found
        .into_iter()
        .map(|(name, versions)| {
            let mut versions: Vec<_> = versions.into_iter().collect();
            versions.sort_by(|(a, _), (b, _)| version_rank(b).cmp(&version_rank(a)).then(a.cmp(b)));
            Group { name, versions }
        })
        .collect();
    let place = |name: &str| FIRST_GROUPS.iter().position(|first| *first == name).unwrap_or(FIRST_GROUPS.len());
    groups.sort_by_key(|group| place(group.name));
    groups
}

/// Kubernetes' order of versions: stable before beta before alpha before anything else, then the higher number.
fn version_rank(version: &str) -> (u8, u64, u64) {
    let ranked = || {
        let rest = version.strip_prefix('v')?;
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let major = rest[..digits].parse().ok()?;
        match &rest[digits..] {
            "" => Some((3, major, 0)),
            stage => {
                let (rank, minor) = match (stage.strip_prefix("beta"), stage.strip_prefix("alpha")) {
                    (Some(minor), _) => (2, minor),
                    (_, Some(minor)) => (1, minor),
                    _ => return None,
                };
                Some((rank, major, minor.parse().ok()?))
            }
        }
    };
    ranked().unwrap_or((0, 0, 0))
}

/// Group versions that are served, in discovery's order, with their resources.
pub(super) fn group_versions(registry: &Registry) -> Vec<(GroupVersion, Vec<Arc<Resource>>)> {
    let shared = |resource: &Resource| registry.get(&resource.id()).map(Arc::clone);
    groups(registry)
        .into_iter()
        .flat_map(|group| {
            group.versions.into_iter().map(move |(version, resources)| {
                let resources = resources.into_iter().filter_map(shared).collect();
                (GroupVersion::new(group.name, version), resources)
            })
        })
        .collect()
}

/// `GET /api`. `host` is where the client reached us.
pub(super) fn core_versions(host: &str) -> Value {
    json!({
        "kind": "APIVersions", "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": host}],
    })
}

/// `GET /apis`.
pub(super) fn group_list(registry: &Registry) -> Value {
    let groups: Vec<Value> = groups(registry).iter().filter(|g| !g.name.is_empty()).map(legacy_group).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// `GET /apis/<group>`.
pub(super) fn group(registry: &Registry, name: &str) -> Option<Value> {
    let groups = groups(registry);
    let mut group = groups.iter().find(|g| g.name == name && !name.is_empty()).map(legacy_group)?;
    group["kind"] = json!("APIGroup");
    group["apiVersion"] = json!("v1");
    Some(group)
}

fn legacy_group(group: &Group<'_>) -> Value {
    let named = |version: &str| json!({"groupVersion": format!("{}/{version}", group.name), "version": version});
    let versions: Vec<Value> = group.versions.iter().map(|(version, _)| named(version)).collect();
    json!({"name": group.name, "preferredVersion": versions.first(), "versions": versions})
}

/// `GET /api/v1`, `GET /apis/<group>/<version>`.
pub(super) fn resource_list(registry: &Registry, at: &GroupVersion) -> Option<Value> {
    let groups = groups(registry);
    let group = groups.iter().find(|group| group.name == at.group)?;
    let (version, resources) = group.versions.iter().find(|(version, _)| *version == at.version)?;
    let listed: Vec<Value> = resources
        .iter()
        .filter_map(|resource| Some((resource, resource.served(version)?)))
        .flat_map(|(resource, version)| legacy_resources(resource, version))
        .collect();
    let mut list = json!({"kind": "APIResourceList", "groupVersion": at.api_version(), "resources": listed});
    if !at.group.is_empty() {
        list["apiVersion"] = json!("v1");
    }
    Some(list)
}

fn legacy_resources(resource: &Resource, version: &Version) -> Vec<Value> {
    let mut main = json!({
        "name": resource.plural, "singularName": resource.singular, "namespaced": resource.namespaced,
        "kind": resource.kind, "verbs": verbs(resource),
    });
    for (key, list) in [("shortNames", &resource.short_names), ("categories", &resource.categories)] {
        if !list.is_empty() {
            main[key] = json!(list);
        }
    }
    let subresources = subresources(resource, version).into_iter().map(|sub| {
        let mut entry = json!({
            "name": format!("{}/{}", resource.plural, sub.name), "singularName": "",
            "namespaced": resource.namespaced, "kind": sub.kind, "verbs": sub.verbs,
        });
        if let Some((group, version)) = sub.foreign {
            entry["group"] = json!(group);
            entry["version"] = json!(version);
        }
        entry
    });
    std::iter::once(main).chain(subresources).collect()
}

struct Subresource<'a> {
    name: &'static str,
    kind: &'a str,
    /// Group and version of the kind, where they are not the resource's own.
    foreign: Option<(&'static str, &'static str)>,
    verbs: &'static [&'static str],
}

fn subresources<'a>(resource: &'a Resource, version: &Version) -> Vec<Subresource<'a>> {
    let read_write: &[&str] = &["get", "patch", "update"];
    let mut found = Vec::new();
    if resource.group.is_empty() && resource.plural == "namespaces" {
        found.push(Subresource { name: "finalize", kind: &resource.kind, foreign: None, verbs: &["update"] });
    }
    let status = Subresource { name: "status", kind: &resource.kind, foreign: None, verbs: read_write };
    let foreign = Some(("autoscaling", "v1"));
    let scale = Subresource { name: "scale", kind: "Scale", foreign, verbs: read_write };
    let status = version.status.then_some(status);
    let scale = version.scale.is_some().then_some(scale);
    // The original sorts those of built-in kinds by name and writes the others down as they come.
    match resource.origin {
        Origin::Builtin => found.extend(scale.into_iter().chain(status)),
        Origin::Custom => found.extend(status.into_iter().chain(scale)),
    }
    found
}

/// Aggregated discovery: of the core group for `/api`, of all others for `/apis`.
pub(super) fn aggregated(registry: &Registry, core: bool, api_version: &str) -> Value {
    let items: Vec<Value> =
        groups(registry).iter().filter(|group| group.name.is_empty() == core).map(aggregated_group).collect();
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": api_version, "metadata": {}, "items": items})
}

fn aggregated_group(group: &Group<'_>) -> Value {
    let versions: Vec<Value> = group
        .versions
        .iter()
        .map(|(name, resources)| {
            let at = GroupVersion::new(group.name, name);
            let resources: Vec<Value> = resources
                .iter()
                .filter_map(|resource| Some(aggregated_resource(&at, resource, resource.served(name)?)))
                .collect();
            json!({"version": name, "resources": resources, "freshness": "Current"})
        })
        .collect();
    let metadata = if group.name.is_empty() { json!({}) } else { json!({"name": group.name}) };
    json!({"metadata": metadata, "versions": versions})
}

fn aggregated_resource(at: &GroupVersion, resource: &Resource, version: &Version) -> Value {
    let own = |kind: &str| json!({"group": at.group, "version": at.version, "kind": kind});
    let mut entry = json!({
        "resource": resource.plural, "responseKind": own(&resource.kind),
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": resource.singular, "verbs": verbs(resource),
    });
    for (key, list) in [("shortNames", &resource.short_names), ("categories", &resource.categories)] {
        if !list.is_empty() {
            entry[key] = json!(list);
        }
    }
    let subresources: Vec<Value> = subresources(resource, version)
        .into_iter()
        .map(|sub| {
            let kind = match sub.foreign {
                Some((group, version)) => json!({"group": group, "version": version, "kind": sub.kind}),
                None => own(sub.kind),
            };
            json!({"subresource": sub.name, "responseKind": kind, "verbs": sub.verbs})
        })
        .collect();
    if !subresources.is_empty() {
        entry["subresources"] = json!(subresources);
    }
    entry
}

#[cfg(test)]
mod tests;
