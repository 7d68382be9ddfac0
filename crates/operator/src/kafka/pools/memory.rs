//! What a StrimziPodSet tells of the nodes that it was made for, and a pod of its own.

use std::collections::BTreeSet;

use evenkeel_api::{FreeForm, StrimziPodSet, annotations, labels, storage::Storage};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use serde_json::Value;

use super::Roles;
use crate::kafka::{objects::RACK_CONTAINER, storage::Disks};

/// Names of the pods that it lists.
pub fn pods_of_pod_set(set: &StrimziPodSet) -> impl Iterator<Item = &str> {
    set.spec.pods.iter().filter_map(|pod: &FreeForm| pod.get("metadata")?.get("name")?.as_str())
}

/// Ids of the nodes that it lists. A pod whose name does not end in a number is none of ours.
pub fn ids_of_pod_set(set: &StrimziPodSet) -> BTreeSet<i32> {
    pods_of_pod_set(set).filter_map(|name| name.rsplit_once('-')?.1.parse().ok()).collect()
}

/// The id of a node by its pod, and its pool. The engine's pods may end in any number, but belong to no pool.
pub fn pool_of_pod(pod: &Pod) -> Option<(i32, String)> {
    let pool = pod.labels().get(labels::POOL_NAME)?;
    let id = pod.metadata.name.as_deref()?.rsplit_once('-')?.1.parse().ok()?;
    Some((id, pool.clone()))
}

/// Whether it looks for the rack of its nodes, and so needs a right that stands in no namespace.
pub fn finds_racks(set: &StrimziPodSet) -> bool {
    let inits = |pod: &FreeForm| pod.get("spec")?.get("initContainers")?.as_array().cloned();
    let mut all = set.spec.pods.iter().filter_map(inits).flatten();
    all.any(|container| container.get("name").and_then(Value::as_str) == Some(RACK_CONTAINER))
}

/// What its nodes do, as its first pod says. None if it has no pods.
pub(super) fn roles_of_pod_set(set: &StrimziPodSet) -> Option<Roles> {
    let all = set.spec.pods.first()?.get("metadata")?.get("labels")?;
    let is_true = |label: &str| all.get(label).and_then(Value::as_str) == Some("true");
    Some(Roles { controller: is_true(labels::CONTROLLER_ROLE), broker: is_true(labels::BROKER_ROLE) })
}

/// Whether its nodes take part in the quorum.
pub(super) fn has_controllers(set: &StrimziPodSet) -> bool {
    roles_of_pod_set(set).is_some_and(|roles| roles.controller)
}

/// The disks that its nodes were given. None if it does not say, or has no pods that could lose something.
pub(super) fn disks_of_pod_set(set: &StrimziPodSet) -> Option<Disks> {
    if set.spec.pods.is_empty() {
        return None;
    }
    let storage: Storage = serde_json::from_str(set.annotations().get(annotations::STORAGE)?).ok()?;
    Disks::read(&storage).ok()
}
