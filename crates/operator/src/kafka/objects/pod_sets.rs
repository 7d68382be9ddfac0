//! StrimziPodSets: one for each pool, with its pods by id.

use std::collections::BTreeMap;

use evenkeel_api::{FreeForm, StrimziPodSet, StrimziPodSetSpec, annotations, labels};
use k8s_openapi::api::core::v1::Pod;
use serde_json::Value;

use super::{Component, marked, pod, policies::matching, selector};
use crate::kafka::{hash, model::Model, names::Names, pools::Pool};

/// What the pods depend on besides the model: what is in the files that they are given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// By node.
    pub nodes: BTreeMap<i32, NodeFacts>,
    /// Generations of the cluster authority's certificate and key.
    pub cluster_ca: (String, String),
    /// Generation of the clients authority's certificate.
    pub clients_ca: String,
}

/// What one pod depends on besides the model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeFacts {
    /// [`ServerConfig::hash`](crate::kafka::config::ServerConfig::hash).
    pub configuration: String,
    /// [`certificate_hash`](crate::kafka::certificates::certificate_hash) of its Secret.
    pub certificate: String,
}

/// The pod sets of all pools. Pods carry `strimzi.io/revision`, which changes exactly when something else in them does.
pub fn pod_sets(model: &Model, facts: &Facts) -> Vec<StrimziPodSet> {
    model.pools.values().map(|pool| pod_set(model, pool, facts)).collect()
}

/// Labels by which the pods of a pool are found; also the selector in the pool's status.
pub fn pod_set_selector(names: &Names, pool: &str) -> BTreeMap<String, String> {
    let mut all = selector(names, Component::Kafka);
    all.insert(labels::POOL_NAME.to_owned(), pool.to_owned());
    all
}

fn pod_set(model: &Model, pool: &Pool, facts: &Facts) -> StrimziPodSet {
    let pods = model.nodes_of(&pool.name).map(|node| revised(&pod::pod(model, node, facts)));
    let spec =
        StrimziPodSetSpec { selector: matching(pod_set_selector(&model.names, &pool.name)), pods: pods.collect() };
    let name = model.names.pod_set(&pool.name);
    let mut metadata = marked(model, &name, Component::Kafka, pool.owner.clone());
    metadata.labels.get_or_insert_default().insert(labels::POOL_NAME.to_owned(), pool.name.clone());
    // A storage always serialises.
    let storage = serde_json::to_value(&pool.storage).unwrap_or_default().to_string();
    metadata.annotations = Some(BTreeMap::from([(annotations::STORAGE.to_owned(), storage)]));
    model.templates[&pool.name].pod_set.metadata.add_to(&mut metadata);
    let mut set = StrimziPodSet::new(&name, spec);
    set.metadata = metadata;
    set
}

/// The pod as JSON, with the hash of all the rest in it.
fn revised(pod: &Pod) -> FreeForm {
    // A pod always serialises, and to an object.
    let mut value = serde_json::to_value(pod).unwrap_or_default();
    let revision = hash::of_value(&value);
    value["metadata"]["annotations"][annotations::REVISION] = revision.into();
    match value {
        Value::Object(fields) => fields.into_iter().collect(),
        _ => FreeForm::new(),
    }
}
