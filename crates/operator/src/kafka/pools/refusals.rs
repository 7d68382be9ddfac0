//! What pools cannot be, together and compared with what they were.

use std::collections::{BTreeMap, BTreeSet};

use evenkeel_api::{Kafka, KafkaNodePool, StrimziPodSet, annotations};
use kube::ResourceExt;

use super::{Pool, Pools, memory};
use crate::kafka::{names::Names, problem::Problem};

/// More nodes than this in one pool are a slip of the finger.
const MOST_REPLICAS: usize = 2_000;
/// On a Kafka: it has node pools. Strimzi asked for it once, so it stands in many manifests.
const NODE_POOLS: &str = "strimzi.io/node-pools";
const STATIC_QUORUM: &str = "the quorum of controllers is fixed when the cluster is made";

/// Node pools beside the nodes of a Kafka that ran without: those would be thrown away, with their data.
pub(super) fn of_mixture(pod_sets: &[&StrimziPodSet], pools: &[&KafkaNodePool], problems: &mut Vec<Problem>) {
    let own = |set: &&&StrimziPodSet| {
        !set.spec.pods.is_empty() && set.owner_references().iter().any(|owner| owner.kind == "Kafka")
    };
    if let Some(set) = pod_sets.iter().find(own) {
        let pools: Vec<String> = pools.iter().map(|pool| pool.name_any()).collect();
        let text = format!(
            "the cluster runs without node pools (StrimziPodSet {}), and its brokers would go if it took {} instead: remove \
             the node pools, or make a new cluster with them",
            set.name_any(),
            pools.join(", ")
        );
        problems.push(Problem::of_kafka("spec.kafka.replicas", text));
    }
}

/// A Kafka that had node pools a moment ago, or will have, gets no pools of its own: they would be a second cluster
/// beside the first, and the node pools could never come back.
pub(super) fn of_pools_that_are_away(
    kafka: &Kafka,
    pod_sets: &[&StrimziPodSet],
    going: &[&KafkaNodePool],
) -> Option<Problem> {
    let of_pool = |set: &&&StrimziPodSet| set.owner_references().iter().any(|owner| owner.kind == "KafkaNodePool");
    let away = going.first().map(|pool| format!("node pool {} is being deleted", pool.name_any()));
    let away = away.or_else(|| {
        let set = pod_sets.iter().find(of_pool)?;
        Some(format!("StrimziPodSet {} is still there, and its node pool is not", set.name_any()))
    });
    let away = away.or_else(|| {
        let known = kafka.status.as_ref()?.kafka_node_pools.first()?;
        Some(format!("it has had node pools ({})", known.name))
    });
    let expected = kafka.annotations().get(NODE_POOLS).is_some_and(|value| value == "enabled");
    let away =
        away.or_else(|| expected.then(|| format!("the annotation {NODE_POOLS} says that there are node pools")))?;
    let text = format!(
        "no KafkaNodePool carries the label strimzi.io/cluster: {}, and {away}: nothing is made of spec.kafka.replicas \
         beside them",
        kafka.name_any()
    );
    Some(Problem::of_kafka("spec.kafka", text))
}

/// A pool of controllers that lost its label, or is being deleted: the others would be told of a quorum without it, while
/// its own nodes run on with the quorum that they know.
pub(super) fn of_controllers_that_are_away(
    names: &Names,
    pod_sets: &[&StrimziPodSet],
    pools: &[&KafkaNodePool],
    problems: &mut Vec<Problem>,
) {
    let there: BTreeSet<String> = pools.iter().map(|pool| names.pod_set(&pool.name_any())).collect();
    // Those of a Kafka without node pools are another matter.
    let own = |set: &&&StrimziPodSet| set.owner_references().iter().any(|owner| owner.kind == "Kafka");
    let away = pod_sets.iter().filter(|set| !there.contains(&set.name_any()) && !own(set));
    for set in away.filter(|set| memory::has_controllers(set)) {
        let ids: Vec<String> = memory::ids_of_pod_set(set).iter().map(i32::to_string).collect();
        let text = format!(
            "StrimziPodSet {} is still there with controllers ({}), and its node pool is not: {STATIC_QUORUM}. Give the \
             KafkaNodePool its label strimzi.io/cluster: {} again, or make it again as it was",
            set.name_any(),
            ids.join(", "),
            names.cluster
        );
        problems.push(Problem::of_kafka("spec.kafka", text));
    }
}

pub(super) fn of_pools(kafka: &Kafka, pools: &Pools, problems: &mut Vec<Problem>) {
    // With unreadable pools the sum would say nothing.
    if problems.is_empty() {
        of_sum(kafka, pools, problems);
    }
    let mut owners: BTreeMap<i32, &str> = BTreeMap::new();
    for pool in pools.all.values() {
        for id in &pool.current {
            if let Some(other) = owners.insert(*id, &pool.name) {
                let text = format!("node id {id} is also in node pool {other}: an id belongs to one pool");
                problems.push(Problem::of_pool(&pool.name, "status.nodeIds", text));
            }
        }
        if pool.replicas > MOST_REPLICAS {
            let text = format!("{} nodes are more than {MOST_REPLICAS}", pool.replicas);
            problems.push(pool.problem("replicas", text));
        }
        if pools.quorum_runs {
            of_quorum(pool, problems);
        }
    }
}

fn of_sum(kafka: &Kafka, pools: &Pools, problems: &mut Vec<Problem>) {
    let has = |role: fn(&Pool) -> bool| pools.all.values().any(|pool| role(pool) && pool.replicas > 0);
    for (there, role) in [(has(|pool| pool.roles.broker), "broker"), (has(|pool| pool.roles.controller), "controller")]
    {
        if !there {
            let mut text = format!("no node pool with at least one replica has the role {role}");
            if role == "broker" && !pools.unlabelled.is_empty() {
                let label = format!("strimzi.io/cluster: {}", kafka.name_any());
                text = format!("{text}: give the one whose brokers run its label {label} again");
            }
            problems.push(Problem::of_kafka("spec.kafka", text));
        }
    }
    let brokers = pools.brokers();
    if kafka.spec.cruise_control.is_some() && brokers < 2 {
        let text = format!("Cruise Control needs two brokers at least, and there would be {brokers}");
        problems.push(Problem::of_kafka("spec.cruiseControl", text));
    }
}

fn of_quorum(pool: &Pool, problems: &mut Vec<Problem>) {
    let was = pool.roles_before.is_some_and(|roles| roles.controller);
    let there = pool.current.len();
    if was != pool.roles.controller && (pool.replicas > 0 || there > 0) {
        let text = if was {
            format!("nodes cannot cease to be controllers: {STATIC_QUORUM}")
        } else if there > 0 {
            format!("nodes cannot become controllers: {STATIC_QUORUM}")
        } else {
            format!("a pool of controllers cannot be added: {STATIC_QUORUM}")
        };
        problems.push(pool.problem("roles", text));
    } else if was && pool.replicas != there {
        let text = format!("{there} controllers cannot become {}: {STATIC_QUORUM}", pool.replicas);
        problems.push(pool.problem("replicas", text));
    }
}

pub(super) fn of_storage(kafka: &Kafka, pool: &Pool, set: Option<&StrimziPodSet>, problems: &mut Vec<Problem>) {
    let Some(before) = set.and_then(memory::disks_of_pod_set) else { return };
    // What was written is compared, not what a pool takes of it.
    if pool.origin == super::Origin::Kafka && !pool.roles.broker {
        return;
    }
    let unchecked = annotations::skips_scale_down_check(kafka.annotations());
    let wrong = pool.disks.refused_after(&before, unchecked);
    problems.extend(wrong.into_iter().map(|(field, text)| pool.problem(&format!("storage.{field}"), text)));
}
