//! What automatic rebalancing sees of a cluster.

use std::collections::BTreeMap;

use evenkeel_api::{annotations, kafka::AutoRebalanceStatus, labels};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::Pod};

use super::{super::seen::Seen, plan::Plan, status::away_since};
use crate::{
    auto_rebalance::{
        Brake, BrokersSeen, Cluster, Configured, Engine, Generated, Manual, Observation, imbalance::map_name,
        strangers, tracker::tracker_name,
    },
    pod_set::decide::{has_ended, is_ready, ready_since},
};

/// How long a broker may be away before nobody waits for it any more.
const STARTS_WITHIN: SignedDuration = SignedDuration::from_mins(5);

/// How much later than Kubernetes the engine may hear of a broker.
const HEARD_OF_WITHIN: SignedDuration = SignedDuration::from_secs(10);

/// Everything that it may depend on.
pub(super) fn observe(
    seen: &Seen,
    plan: &Plan,
    engine: Engine,
    configured: Configured,
    recorded: Option<AutoRebalanceStatus>,
    generated: Vec<Generated>,
    manual: Vec<Manual>,
) -> Observation {
    let metadata = &seen.kafka.metadata;
    let none = BTreeMap::new();
    let alive = seen.metadata.alive();
    let brokers: Vec<_> = plan.model.brokers().collect();
    let is_there = |pod: &str, id: i32| seen.is_ready(pod) && alive.contains(&id);
    let named = configured.modes.values().flatten();
    let templates: BTreeMap<_, _> = seen
        .rebalances
        .iter()
        .filter_map(|rebalance| Some((rebalance.metadata.name.clone()?, rebalance.clone())))
        .filter(|(name, _)| named.clone().any(|template| template == name))
        .collect();
    Observation {
        now: seen.now,
        cluster: Cluster {
            name: seen.cluster().to_owned(),
            namespace: metadata.namespace.clone().unwrap_or_default(),
            uid: metadata.uid.clone().unwrap_or_default(),
        },
        brake: Brake::read(metadata.annotations.as_ref().unwrap_or(&none)),
        spec_version: spec_version(seen, &templates),
        brokers: BrokersSeen {
            present: brokers.iter().map(|node| node.id).collect(),
            ready: brokers.iter().filter(|node| is_there(&node.pod, node.id)).map(|node| node.id).collect(),
            starting: starting(seen, plan),
            added: plan.added.clone(),
            leaving: plan.leaving.clone(),
            check: plan.check,
            left: plan.left.clone(),
        },
        polled: seen.engine.violated.clone(),
        violations: seen.live.data(&map_name(seen.cluster())),
        tracker: seen.live.data(&tracker_name(seen.cluster())),
        strangers: strangers(&seen.rebalances, seen.cluster()),
        configured,
        templates,
        recorded,
        engine,
        generated,
        manual,
    }
}

/// Brokers that are on their way, and until when they are waited for: until they take too long, or until the engine has heard
/// of them, too.
fn starting(seen: &Seen, plan: &Plan) -> BTreeMap<i32, Timestamp> {
    let alive = seen.metadata.alive();
    let until = plan.model.brokers().filter_map(|node| {
        let ready = seen.pod(&node.pod).filter(|pod| is_ready(pod) && alive.contains(&node.id));
        let until = match ready {
            Some(pod) => ready_since(pod)?.checked_add(HEARD_OF_WITHIN),
            None => away_since(seen, node)?.checked_add(STARTS_WITHIN),
        };
        Some((node.id, until.ok()?))
    });
    until.filter(|(_, until)| *until > seen.now).collect()
}

/// Changes with the specs that matter, and with nothing else.
fn spec_version(seen: &Seen, templates: &BTreeMap<String, evenkeel_api::KafkaRebalance>) -> String {
    let mut parts = vec![format!("kafka:{}", seen.kafka.metadata.generation.unwrap_or_default())];
    let mut pools: Vec<_> = seen.node_pools.iter().map(|pool| &pool.metadata).collect();
    pools.sort_by(|a, b| a.name.cmp(&b.name));
    let removal = |pool: &kube::core::ObjectMeta| {
        pool.annotations.as_ref().and_then(|notes| notes.get(annotations::REMOVE_NODE_IDS)).cloned().unwrap_or_default()
    };
    parts.extend(pools.into_iter().map(|pool| {
        let name = pool.name.as_deref().unwrap_or_default();
        format!("{name}:{}{}", pool.generation.unwrap_or_default(), removal(pool))
    }));
    let generation = |of: &evenkeel_api::KafkaRebalance| of.metadata.generation.unwrap_or_default();
    parts.extend(templates.iter().map(|(name, template)| format!("{name}:{}", generation(template))));
    parts.join(",")
}

/// How the engine stands. `as_wanted`: its deployment is as the present configuration asks for.
pub(super) fn engine(seen: &Seen, name: &str, as_wanted: bool) -> Engine {
    // One that was evicted stays as a record until somebody deletes it; another has long taken its place.
    let pods: Vec<&Pod> = seen
        .pods
        .iter()
        .filter(|pod| !has_ended(pod))
        .filter(|pod| pod.metadata.labels.as_ref().and_then(|all| all.get(labels::NAME)).is_some_and(|of| of == name))
        .collect();
    let deployment: Option<Deployment> = seen.live.read("Deployment", name);
    let Some(deployment) = deployment.filter(|_| as_wanted) else { return Engine::Rolling };
    let status = deployment.status.clone().unwrap_or_default();
    let is_observed = status.observed_generation >= deployment.metadata.generation;
    let all = [status.replicas, status.updated_replicas, status.available_replicas];
    match pods[..] {
        [pod] if is_observed && all == [Some(1); 3] && is_ready(pod) => {
            Engine::Current { id: which(pod), executing: seen.engine.executing }
        }
        // One that is not ready, or an older one that is still there.
        _ => Engine::Rolling,
    }
}

/// Which engine is in a pod: it is another one after each start.
fn which(pod: &Pod) -> String {
    let containers = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
    let starts: i32 = containers.map(|container| container.restart_count).sum();
    format!("{}/{starts}", pod.metadata.uid.as_deref().unwrap_or_default())
}
