//! Persistent volume claims.

use std::collections::BTreeMap;

use evenkeel_api::{annotations, labels};
use k8s_openapi::{
    api::core::v1::{PersistentVolumeClaim, PersistentVolumeClaimSpec, VolumeResourceRequirements},
    apimachinery::pkg::{api::resource::Quantity, apis::meta::v1::LabelSelector},
};

use super::{Component, marked};
use crate::kafka::{
    model::{Model, Node},
    quantity,
    storage::{Disk, DiskKind},
};

/// The claims of all nodes, by node and disk. A claim with `deleteClaim` goes with its pool, all others stay when
/// everything else is gone; one of a node that went is deleted by whoever removes the node, if its annotation
/// `strimzi.io/delete-claim` says so.
pub fn claims(model: &Model) -> Vec<PersistentVolumeClaim> {
    let mut claims = Vec::new();
    for node in model.nodes.values() {
        let disks = &model.pools[&node.pool].disks.disks;
        claims.extend(disks.iter().filter_map(|disk| claim(model, node, disk)));
    }
    claims
}

fn claim(model: &Model, node: &Node, disk: &Disk) -> Option<PersistentVolumeClaim> {
    let DiskKind::Claim { size, class, selector, delete } = &disk.kind else { return None };
    let pool = &model.pools[&node.pool];
    let name = pool.disks.claim(disk, &node.pod);
    let mut metadata = marked(model, &name, Component::Kafka, pool.owner.clone());
    if !delete {
        metadata.owner_references = None;
    }
    let own = metadata.labels.get_or_insert_default();
    own.insert(labels::POOL_NAME.to_owned(), node.pool.clone());
    own.insert(labels::POD_NAME.to_owned(), node.pod.clone());
    metadata.annotations = Some(BTreeMap::from([(annotations::DELETE_CLAIM.to_owned(), delete.to_string())]));
    model.templates[&node.pool].persistent_volume_claim.metadata.add_to(&mut metadata);
    Some(PersistentVolumeClaim {
        metadata,
        spec: Some(PersistentVolumeClaimSpec {
            access_modes: Some(vec!["ReadWriteOnce".to_owned()]),
            resources: Some(VolumeResourceRequirements {
                requests: Some(BTreeMap::from([("storage".to_owned(), Quantity(quantity::canonical(size)))])),
                limits: None,
            }),
            storage_class_name: class.clone(),
            selector: (!selector.is_empty())
                .then(|| LabelSelector { match_labels: Some(selector.clone()), match_expressions: None }),
            ..PersistentVolumeClaimSpec::default()
        }),
        status: None,
    })
}
