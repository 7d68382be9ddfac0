//! The objects of the nodes, those that are no longer needed, and who is restarted next.

use std::collections::{BTreeMap, BTreeSet};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use evenkeel_api::{StrimziPodSet, labels};
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Secret};
use kube::ResourceExt;

use super::{
    super::{
        config::{CORDONED, DynamicChange, SERVER_CONFIG, Scope, ServerConfig, changes, may_inherit_a_cordon},
        desired::{Desired, goes_with_its_node},
        model::{Model, Node},
        nodes::Ids,
        objects::{self, CLUSTER_ID, Facts, NodeFacts},
        roll::{self, Candidate, Roll},
        seen::{Metadata, Seen},
    },
    Deed, Given,
    certificates::Issued,
    engine::absent,
    plan::Plan,
    status,
};
use crate::auto_rebalance::Brokers;

/// What is to be done for the nodes.
#[derive(Debug)]
pub(super) struct Nodes {
    /// Kafka's id of the cluster.
    pub(super) cluster_id: String,
    /// Who is restarted.
    pub(super) roll: Roll,
    /// Brokers that are gone and still on Kafka's list.
    pub(super) unregistered: Ids,
    /// Objects that are not as they should be: before the pools' statuses, and after them.
    around: Vec<Desired>,
    reconfigured: Vec<(Option<i32>, DynamicChange)>,
    config_maps: Vec<Desired>,
    pod_sets: Vec<Desired>,
    obsolete: Vec<Deed>,
}

/// What is to be done for the nodes; `cordoned` are those that take nothing new.
pub(super) fn nodes(seen: &Seen, plan: &Plan, issued: &Issued, given: Given<'_>, cordoned: &Brokers) -> Nodes {
    let model = &plan.model;
    let cluster_id = cluster_id(seen, model, given.random);
    let mut facts = Facts {
        nodes: BTreeMap::new(),
        cluster_ca: (issued.cluster.cert_generation.clone(), issued.cluster.key_generation.clone()),
        clients_ca: issued.clients.cert_generation.clone(),
    };
    let mut config_maps = Vec::new();
    let mut reconfigured: BTreeSet<(Option<i32>, DynamicChange)> = BTreeSet::new();
    for node in model.nodes.values() {
        let (config, dynamic) = configured(seen, model, node, cordoned.contains(&node.id));
        reconfigured.extend(dynamic.into_iter().map(|change| {
            let whom = (change.scope == Scope::Broker).then_some(node.id);
            (whom, change)
        }));
        let certificate = issued.nodes.get(&node.id).cloned().unwrap_or_default();
        facts.nodes.insert(node.id, NodeFacts { configuration: config.hash(), certificate });
        config_maps.push(Desired::new(&objects::config_map(model, node, &config, &cluster_id)));
    }
    let sets = objects::pod_sets(model, &facts);
    let around = around(model).into_iter().filter(|desired| desired.is_missing(&seen.live)).collect();
    Nodes {
        roll: rolled(seen, model, &sets),
        unregistered: unregistered(seen, plan),
        obsolete: obsolete(seen, model),
        config_maps: config_maps.into_iter().filter(|desired| desired.is_missing(&seen.live)).collect(),
        pod_sets: sets.iter().map(Desired::new).filter(|desired| desired.is_missing(&seen.live)).collect(),
        reconfigured: reconfigured.into_iter().collect(),
        around,
        cluster_id,
    }
}

impl Nodes {
    /// All of it, in the order in which it is safe: who the nodes are is on record before any of them is made, and what
    /// a running broker is told is done before the file that remembers it is written.
    pub(super) fn deeds(&self, seen: &Seen, plan: &Plan) -> Vec<Deed> {
        let mut deeds: Vec<Deed> = self.around.iter().cloned().map(Deed::applying).collect();
        // Who comes is remembered before its pod is made, and who goes until its pod is taken off the list: the pool's
        // status is what tells the next round about whom Kafka has to be asked.
        let (later, now): (Vec<_>, Vec<_>) =
            status::pools(seen, plan, &self.cluster_id).into_iter().partition(|deed| loses_nodes(plan, deed));
        deeds.extend(now);
        if !self.reconfigured.is_empty() {
            deeds.push(Deed::Reconfigure(self.reconfigured.clone()));
        }
        deeds.extend(self.config_maps.iter().chain(&self.pod_sets).cloned().map(Deed::applying));
        deeds.extend(later);
        deeds.extend(self.obsolete.iter().cloned());
        // A pod whose description was only now written is restarted when that is seen.
        if let (Roll::Restart { pod, uid, .. }, true) = (&self.roll, self.pod_sets.is_empty()) {
            deeds.push(Deed::Restart { pod: pod.clone(), uid: uid.clone() });
        }
        deeds.extend(self.unregistered.iter().map(|id| Deed::Unregister(*id)));
        deeds
    }

    /// Whom a restart concerns, and why, if there is one now.
    pub(super) fn restarted(&self) -> Option<(&str, &str)> {
        match &self.roll {
            Roll::Restart { pod, why, .. } if self.pod_sets.is_empty() => Some((pod, why)),
            _ => None,
        }
    }
}

/// Whether this is the status of a pool that has nodes to lose.
fn loses_nodes(plan: &Plan, deed: &Deed) -> bool {
    let Deed::PoolStatus { pool, .. } = deed else { return false };
    plan.assignment.pools.get(pool).is_some_and(|nodes| !nodes.removed.is_empty())
}

fn around(model: &Model) -> Vec<Desired> {
    let mut all = vec![
        Desired::new(&objects::service_account(model)),
        Desired::new(&objects::network_policy(model)),
        Desired::new(&objects::bootstrap_service(model)),
        Desired::new(&objects::brokers_service(model)),
        Desired::new(&objects::disruption_budget(model)),
    ];
    all.extend(objects::rack_binding(model).as_ref().map(Desired::new));
    all.extend(objects::claims(model).iter().map(Desired::new));
    all
}

/// The configuration of a node, and what a running Kafka has to be told for it. What it cannot be told now stays in the
/// file as it was: the file is the memory of what it was told.
fn configured(seen: &Seen, model: &Model, node: &Node, cordoned: bool) -> (ServerConfig, Vec<DynamicChange>) {
    let before = seen.live.data(&node.pod).and_then(|data| Some(ServerConfig::read(data.get(SERVER_CONFIG)?)));
    let mut config = ServerConfig::of(model, node, cordoned);
    let unsettled = may_inherit_a_cordon(model, node);
    let Some(mut before) = before else { return (ServerConfig { unsettled, ..config }, Vec::new()) };
    before.unsettled &= unsettled;
    let answers = matches!(seen.metadata, Metadata::Known(_));
    let is_told = |change: &DynamicChange| match change.scope {
        Scope::Cluster => answers,
        Scope::Broker => seen.is_ready(&node.pod) && seen.metadata.alive().contains(&node.id),
    };
    let (told, untold): (Vec<_>, Vec<_>) = changes(&before, &config).dynamic.into_iter().partition(is_told);
    config.unsettled = before.unsettled && !told.iter().any(|change| change.key == CORDONED);
    for change in untold {
        match before.entries.get(&change.key) {
            Some(value) => drop(config.entries.insert(change.key, value.clone())),
            None => drop(config.entries.remove(&change.key)),
        }
    }
    (config.following(Some(&before)), told)
}

/// Kafka's id of the cluster: made once, and found again wherever it was written first.
fn cluster_id(seen: &Seen, model: &Model, random: fn() -> [u8; 16]) -> String {
    let recorded = seen.kafka.status.as_ref().and_then(|status| status.cluster_id.clone());
    let written = || {
        let of = |node: &Node| seen.live.data(&node.pod)?.remove(CLUSTER_ID);
        model.nodes.values().find_map(of).filter(|id| !id.is_empty())
    };
    let told = || seen.metadata.known().map(|known| known.cluster_id.clone()).filter(|id| !id.is_empty());
    recorded.or_else(written).or_else(told).unwrap_or_else(|| {
        let mut bytes = random();
        // A command line would take an id that begins with a dash for an option.
        bytes[0] &= 0x7f;
        URL_SAFE_NO_PAD.encode(bytes)
    })
}

fn rolled(seen: &Seen, model: &Model, sets: &[StrimziPodSet]) -> Roll {
    let described = sets.iter().flat_map(|set| &set.spec.pods);
    let notes: BTreeMap<String, BTreeMap<String, String>> = described
        .filter_map(|pod| {
            let metadata = pod.get("metadata")?;
            let notes = serde_json::from_value(metadata.get("annotations")?.clone()).ok()?;
            Some((metadata.get("name")?.as_str()?.to_owned(), notes))
        })
        .collect();
    let none = BTreeMap::new();
    let candidates: Vec<Candidate<'_>> = model
        .nodes
        .values()
        .map(|node| Candidate {
            id: node.id,
            broker: node.roles.broker,
            controller: node.roles.controller,
            pod: seen.pod(&node.pod),
            wanted: notes.get(&node.pod).unwrap_or(&none),
        })
        .collect();
    roll::next(&candidates, seen.metadata.partitions())
}

/// Brokers on Kafka's list that should not be there, do not live, and have no pod left that could come back.
fn unregistered(seen: &Seen, plan: &Plan) -> Ids {
    let wanted = plan.assignment.desired_brokers();
    let registered = seen.metadata.known().into_iter().flat_map(|known| &known.registered);
    let has_pod = |id: i32| {
        // The engine's pods may end in any number.
        let nodes = seen.pods.iter().filter(|pod| pod.labels().contains_key(labels::POOL_NAME));
        let names = nodes.filter_map(|pod| pod.metadata.name.as_deref());
        names.filter_map(|name| name.rsplit_once('-')).any(|(_, number)| number.parse() == Ok(id))
    };
    let mixed = |id: i32| plan.model.nodes.contains_key(&id);
    let gone = registered.filter(|(id, fenced)| !wanted.contains(id) && **fenced && (mixed(**id) || !has_pod(**id)));
    gone.map(|(id, _)| *id).collect()
}

/// What nodes that went have left. Their ConfigMap goes last: it is what remembers the rest.
fn obsolete(seen: &Seen, model: &Model) -> Vec<Deed> {
    let mut deeds = Vec::new();
    for (name, map) in seen.live.of_kind("ConfigMap") {
        let labelled = |key: &str| map.pointer("/metadata/labels").and_then(|labels| labels.get(key)?.as_str());
        let is_of_node = labelled(labels::POD_NAME) == Some(name);
        if !is_of_node || model.nodes.values().any(|node| node.pod == name) || seen.pod(name).is_some() {
            continue;
        }
        let claims = seen.live.of_kind("PersistentVolumeClaim").filter(|(_, claim)| {
            let of = claim.pointer("/metadata/labels").and_then(|labels| labels.get(labels::POD_NAME)?.as_str());
            of == Some(name) && goes_with_its_node(claim)
        });
        deeds.extend(claims.filter_map(|(claim, _)| absent::<PersistentVolumeClaim>(seen, claim)));
        deeds.extend(absent::<Secret>(seen, name));
        deeds.extend(absent::<ConfigMap>(seen, name));
    }
    deeds
}
