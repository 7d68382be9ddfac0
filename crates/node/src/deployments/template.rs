//! Which replica set a pod template belongs to.

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use kube::ResourceExt;
use serde_json::{Value, json};

/// The label by which the pods of one replica set are told from those of another.
pub(super) const HASH: &str = "pod-template-hash";

/// The annotation that numbers the states a deployment has had.
pub(super) const REVISION: &str = "deployment.kubernetes.io/revision";

/// Letters and digits that spell no word by accident.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// Whether a set runs the template that its deployment has now.
pub(super) fn is_current(deployment: &Deployment, set: &ReplicaSet) -> bool {
    let wanted = deployment.spec.as_ref().map(|spec| bare(&spec.template));
    let found = set.spec.as_ref().and_then(|spec| spec.template.as_ref()).map(bare);
    wanted == found
}

/// The template without the label that only the set's has.
fn bare(template: &PodTemplateSpec) -> PodTemplateSpec {
    let mut bare = template.clone();
    let metadata = bare.metadata.get_or_insert_default();
    if let Some(labels) = &mut metadata.labels {
        labels.remove(HASH);
    }
    metadata.labels = metadata.labels.take().filter(|labels| !labels.is_empty());
    bare
}

/// A short name for a template. `collisions`: so many other templates have turned out to have the same name.
pub(super) fn hash(template: &PodTemplateSpec, collisions: i32) -> String {
    let text = serde_json::to_vec(template).unwrap_or_default();
    // FNV-1a: small, and the same on every machine and in every version of ours.
    let bytes = text.into_iter().chain(collisions.to_le_bytes());
    let mut number =
        bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let letters = (0..10).map(|_| {
        let letter = ALPHABET[usize::try_from(number % ALPHABET.len() as u64).unwrap_or_default()];
        number /= ALPHABET.len() as u64;
        char::from(letter)
    });
    letters.collect()
}

/// The number of a set's state; 0 if it has none.
pub(super) fn revision(set: &ReplicaSet) -> u64 {
    set.annotations().get(REVISION).and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// A replica set for the template that the deployment has now.
pub(super) fn new_set(deployment: &Deployment, hash: &str, replicas: i32, revision: u64) -> Value {
    let spec = deployment.spec.clone().unwrap_or_default();
    let mut template = spec.template;
    template.metadata.get_or_insert_default().labels.get_or_insert_default().insert(HASH.into(), hash.into());
    let mut selector = spec.selector;
    selector.match_labels.get_or_insert_default().insert(HASH.into(), hash.into());
    let owner = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "name": deployment.name_any(), "uid": deployment.uid(),
        "controller": true, "blockOwnerDeletion": true,
    });
    json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {
            "name": format!("{}-{hash}", deployment.name_any()), "namespace": deployment.namespace(),
            "labels": template.metadata.as_ref().and_then(|metadata| metadata.labels.clone()),
            "annotations": {REVISION: revision.to_string()}, "ownerReferences": [owner],
        },
        "spec": {
            "replicas": replicas, "minReadySeconds": spec.min_ready_seconds, "selector": selector, "template": template,
        },
    })
}
