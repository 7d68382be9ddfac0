//! The objects of the nodes, what they are told while they run, and who is restarted next.

use std::collections::{BTreeMap, BTreeSet};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use evenkeel_api::{Reason, StrimziPodSet, annotations::MANUAL_ROLLING_UPDATE};
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::{Resource, ResourceExt, core::ApiResource};

use super::{
    super::{
        config::{CORDONED, DynamicChange, SERVER_CONFIG, Scope, ServerConfig, changes, may_inherit_a_cordon},
        desired::Desired,
        model::{Model, Node},
        objects::{self, CLUSTER_ID, Facts, NodeFacts},
        pools::pods_of_pod_set,
        problem::Remark,
        roll::{self, Candidate, Roll},
        seen::{Metadata, Seen},
    },
    Deed, Given, Step,
    certificates::Issued,
    engine::absent,
    gone::{self, Gone},
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
    pub(super) gone: Gone,
    /// What is worth saying.
    pub(super) remarks: Vec<Remark>,
    /// Objects that are not as they should be: before the pools' statuses, and after them.
    around: Vec<Deed>,
    reconfigured: Vec<(Option<i32>, DynamicChange)>,
    config_maps: Vec<Desired>,
    pod_sets: Vec<Desired>,
    /// How many may be evicted at a time. Nobody waits for it, and whoever scales waits for pods.
    budget: Option<Deed>,
    left_behind: Vec<Deed>,
    asked: Vec<Deed>,
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
    let mut refused: BTreeSet<String> = BTreeSet::new();
    for node in model.nodes.values() {
        let found = configured(seen, model, node, cordoned.contains(&node.id));
        reconfigured.extend(found.told.into_iter().map(|change| (whom(&change, node), change)));
        refused.extend(found.refused);
        let certificate = issued.nodes.get(&node.id).cloned().unwrap_or_default();
        facts.nodes.insert(node.id, NodeFacts { configuration: found.config.hash(), certificate });
        config_maps.push(Desired::new(&objects::config_map(model, node, &found.config, &cluster_id)));
    }
    let sets = objects::pod_sets(model, &facts);
    let gone = gone::gone(seen, plan);
    let refused = refused.into_iter().map(|text| Remark::of_kafka(Reason::InvalidResourceException, text));
    Nodes {
        roll: rolled(seen, model, &sets),
        remarks: refused.chain(gone.remark.clone()).collect(),
        gone,
        left_behind: gone::left_behind(seen, model),
        config_maps: config_maps.into_iter().filter(|desired| desired.is_missing(&seen.live)).collect(),
        pod_sets: sets.iter().map(Desired::new).filter(|desired| desired.is_missing(&seen.live)).collect(),
        reconfigured: reconfigured.into_iter().collect(),
        around: around(seen, model),
        budget: unless_there(seen, Desired::new(&objects::disruption_budget(model))),
        asked: asked(seen),
        cluster_id,
    }
}

impl Nodes {
    /// All of it, in the order in which it is safe: who the nodes are is on record before any of them is made, and what
    /// a running broker is told is done before the file that remembers it is written.
    pub(super) fn steps(&self, seen: &Seen, plan: &Plan) -> Vec<Step> {
        let mut deeds = self.around.clone();
        // Who comes is remembered before its pod is made. Who goes is forgotten before its pod is taken off the list, which
        // remembers it until then: once it is off, nothing on record brings it back, whether Kafka can be asked or not.
        deeds.extend(status::pools(seen, plan, &self.cluster_id));
        if !self.reconfigured.is_empty() {
            deeds.push(Deed::Reconfigure(self.reconfigured.clone()));
        }
        deeds.extend(self.config_maps.iter().cloned().map(Deed::applying));
        let mut steps: Vec<Step> = deeds.into_iter().map(Step::from).collect();
        steps.extend(self.pod_sets.iter().map(|set| {
            let told = status::nodes_told(seen, plan, &set.name);
            Step { deed: Deed::applying(set.clone()), told }
        }));
        steps.extend(self.budget.iter().chain(&self.left_behind).cloned().map(Step::from));
        steps.extend(self.asked.iter().cloned().map(Step::from));
        // A pod whose description was only now written is restarted when that is seen.
        if let (Roll::Restart { pod, uid, why }, true) = (&self.roll, self.pod_sets.is_empty() && self.asked.is_empty())
        {
            let deed = Deed::Restart { pod: pod.clone(), uid: uid.clone() };
            steps.push(Step { deed, told: vec![status::restart_told(pod, why)] });
        }
        steps.extend(self.gone.unregistered.iter().map(|id| {
            let deed = Deed::Unregister(*id);
            Step { deed, told: vec![status::unregistration_told(*id)] }
        }));
        steps
    }
}

/// Whoever asks a pod set for restarts asks all of its pods: first each of them is told, then the set is not asked any more, and
/// only then the first one goes. So each is restarted once, whatever comes in between.
fn asked(seen: &Seen) -> Vec<Deed> {
    let sets = seen.pod_sets.iter().filter(|set| roll::is_asked_for(set.annotations()));
    let deeds = sets.flat_map(|set| {
        let listed: BTreeSet<&str> = pods_of_pod_set(set).collect();
        let pods = seen.pods.iter().filter(|pod| listed.contains(pod.name_any().as_str()));
        let untold =
            pods.filter(|pod| pod.metadata.deletion_timestamp.is_none() && !roll::is_asked_for(pod.annotations()));
        let told: Vec<Deed> = untold.map(|pod| annotate(pod, Some("true"))).collect();
        if told.is_empty() { vec![annotate(set, None)] } else { told }
    });
    deeds.collect()
}

fn annotate<K: Resource<DynamicType = ()>>(object: &K, value: Option<&'static str>) -> Deed {
    Deed::Annotate {
        resource: ApiResource::erase::<K>(&()),
        name: object.name_any(),
        uid: object.uid(),
        key: MANUAL_ROLLING_UPDATE,
        value,
    }
}

fn around(seen: &Seen, model: &Model) -> Vec<Deed> {
    let mut all = vec![
        Desired::new(&objects::service_account(model)),
        Desired::new(&objects::network_policy(model)),
        Desired::new(&objects::bootstrap_service(model)),
        Desired::new(&objects::brokers_service(model)),
    ];
    let binding = objects::rack_binding(model);
    all.extend(binding.as_ref().map(Desired::new));
    all.extend(objects::claims(model).iter().map(Desired::new));
    let mut deeds: Vec<Deed> = all.into_iter().filter_map(|desired| unless_there(seen, desired)).collect();
    if binding.is_none() {
        // Before the pod sets, which remember it, are written without racks.
        deeds.extend(absent::<ClusterRoleBinding>(seen, &model.names.rack_binding()));
    }
    deeds
}

fn unless_there(seen: &Seen, desired: Desired) -> Option<Deed> {
    desired.is_missing(&seen.live).then(|| Deed::applying(desired))
}

/// The configuration of a node.
struct Configured {
    config: ServerConfig,
    /// What a running Kafka has to be told for it.
    told: Vec<DynamicChange>,
    /// What it would not be told, in words.
    refused: Vec<String>,
}

/// The configuration of a node, and what a running Kafka has to be told for it. What it cannot be told now, or would not
/// take, stays in the file as it was: the file is the memory of what it was told.
fn configured(seen: &Seen, model: &Model, node: &Node, cordoned: bool) -> Configured {
    let mut config = ServerConfig::of(model, node, cordoned);
    let unsettled = may_inherit_a_cordon(model, node);
    let refusal = |change: &DynamicChange| seen.refused.get(&(whom(change, node), change.clone()));
    let Some(mut before) = file(seen, node) else {
        // It would not start with what the others refused.
        let peer = model.nodes.values().find_map(|peer| file(seen, peer)).unwrap_or_default();
        let unusable = changes(&peer, &config).dynamic.into_iter().filter(|change| refusal(change).is_some());
        unusable.for_each(|change| put_back(&mut config, &change.key, &peer));
        return Configured { config: ServerConfig { unsettled, ..config }, told: Vec::new(), refused: Vec::new() };
    };
    before.unsettled &= unsettled;
    let answers = matches!(seen.metadata, Metadata::Known(_));
    let can_be_told = |change: &DynamicChange| match change.scope {
        Scope::Cluster => answers,
        Scope::Broker => seen.is_ready(&node.pod) && seen.metadata.alive().contains(&node.id),
    };
    let (told, untold): (Vec<_>, Vec<_>) = changes(&before, &config)
        .dynamic
        .into_iter()
        .partition(|change| can_be_told(change) && refusal(change).is_none());
    config.unsettled = before.unsettled && !told.iter().any(|change| change.key == CORDONED);
    let refused = untold.iter().filter_map(|change| Some(refused(whom(change, node), change, refusal(change)?)));
    let refused = refused.collect();
    untold.iter().for_each(|change| put_back(&mut config, &change.key, &before));
    Configured { config: config.following(Some(&before)), told, refused }
}

/// Whom a change is for; None is for all.
fn whom(change: &DynamicChange, node: &Node) -> Option<i32> {
    (change.scope == Scope::Broker).then_some(node.id)
}

/// What was last written for a node.
fn file(seen: &Seen, node: &Node) -> Option<ServerConfig> {
    seen.live.data(&node.pod).and_then(|data| Some(ServerConfig::read(data.get(SERVER_CONFIG)?)))
}

fn put_back(config: &mut ServerConfig, key: &str, before: &ServerConfig) {
    match before.entries.get(key) {
        Some(value) => drop(config.entries.insert(key.to_owned(), value.clone())),
        None => drop(config.entries.remove(key)),
    }
}

fn refused(whom: Option<i32>, change: &DynamicChange, why: &str) -> String {
    let what = match whom {
        None => format!("spec.kafka.config.{}", change.key),
        Some(id) => format!("{} of broker {id}", change.key),
    };
    format!("{what}: Kafka refuses it: {why}. What was set before holds")
}

/// Kafka's id of the cluster: made once, and found again wherever it was written first.
fn cluster_id(seen: &Seen, model: &Model, random: fn() -> [u8; 16]) -> String {
    let recorded = seen.kafka.status.as_ref().and_then(|status| status.cluster_id.clone());
    let written = || {
        let of = |node: &Node| seen.live.data(&node.pod)?.remove(CLUSTER_ID);
        model.nodes.values().find_map(of).filter(|id| !id.is_empty())
    };
    // A Kafka that was deleted and made again over the same node pools finds the same disks.
    let of_pools = || {
        let mut pools = seen.node_pools.iter().filter(|pool| model.pools.contains_key(&pool.name_any()));
        pools.find_map(|pool| pool.status.as_ref()?.cluster_id.clone()).filter(|id| !id.is_empty())
    };
    let told = || seen.metadata.known().map(|known| known.cluster_id.clone()).filter(|id| !id.is_empty());
    recorded.or_else(written).or_else(of_pools).or_else(told).unwrap_or_else(|| {
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
    roll::next(&candidates, &seen.metadata, seen.now)
}
