//! Nodes that are gone: what they left in Kubernetes, and their entries on Kafka's list.
//!
//! Whoever stands in a pod set is not gone, however long its pod is away: its pool may have lost a label for a moment. And
//! a broker that took data with it stays on Kafka's list, and is spoken of, until that data is elsewhere.

use std::collections::{BTreeMap, BTreeSet};

use evenkeel_api::{Reason, annotations, labels};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Secret};

use super::{
    super::{
        desired::goes_with_its_node,
        model::Model,
        nodes::Ids,
        pools::{ids_of_pod_set, pods_of_pod_set, pool_of_pod},
        problem::Remark,
        scale_down,
        seen::Seen,
    },
    Deed,
    engine::absent,
    plan::Plan,
};

/// How long brokers may take to hear that one of them was struck off their list.
const HEARD_WITHIN: SignedDuration = SignedDuration::from_secs(10);

/// What is to be done about brokers that are gone.
#[derive(Debug, Default)]
pub(super) struct Gone {
    /// Those that are struck off Kafka's list.
    pub(super) unregistered: Ids,
    /// Those that are not, because they took data with them.
    pub(super) lingering: Ids,
    /// The same in words.
    pub(super) remark: Option<Remark>,
    /// Whether it has to be asked first what they had.
    pub(super) is_unread: bool,
    /// All that were struck off lately, with those that now are.
    pub(super) struck_off: BTreeMap<i32, Timestamp>,
}

/// What is to be done about brokers that are gone.
pub(super) fn gone(seen: &Seen, plan: &Plan) -> Gone {
    let lately = seen.struck_off.iter().filter(|(_, at)| seen.now.duration_since(**at) < HEARD_WITHIN);
    let mut struck_off: BTreeMap<i32, Timestamp> = lately.map(|(id, at)| (*id, *at)).collect();
    let mut all = missed(seen, plan);
    all.retain(|id| !struck_off.contains_key(id));
    let found = judged(seen, all);
    struck_off.extend(found.unregistered.iter().map(|id| (*id, seen.now)));
    Gone { struck_off, ..found }
}

/// Which of these may be struck off.
fn judged(seen: &Seen, all: Ids) -> Gone {
    let unchecked = seen.kafka.metadata.annotations.as_ref().is_some_and(annotations::skips_scale_down_check);
    if all.is_empty() || unchecked {
        return Gone { unregistered: all, ..Gone::default() };
    }
    let Some(partitions) = seen.metadata.partitions() else {
        return Gone { is_unread: seen.metadata.is_unasked(), ..Gone::default() };
    };
    let holds = |id: &i32| partitions.iter().any(|partition| partition.replicas.contains(id));
    let (holding, empty): (Ids, Ids) = all.into_iter().partition(holds);
    let remark = scale_down::data_on(&holding, partitions).map(|what| {
        let text = format!(
            "brokers that are gone, with their node pool or by force, were not empty: {what}. They stay on Kafka's list until \
             that data is elsewhere: rebalance in mode remove-brokers, or delete what is lost"
        );
        Remark::of_kafka(Reason::ScaleDownPreventionCheck, text)
    });
    Gone { unregistered: empty, lingering: holding, remark, ..Gone::default() }
}

/// Brokers on Kafka's list that should not be there, do not live, and have no pod that could come back.
fn missed(seen: &Seen, plan: &Plan) -> Ids {
    let wanted = plan.assignment.desired_brokers();
    let registered = seen.metadata.known().into_iter().flat_map(|known| &known.registered);
    let listed: Ids = seen.pod_sets.iter().flat_map(ids_of_pod_set).collect();
    let may_return = |id: i32| {
        let has_pod = seen.pods.iter().filter_map(pool_of_pod).any(|(of, _)| of == id);
        has_pod || listed.contains(&id)
    };
    // One that only lost its role runs on, without a broker in it.
    let runs_on = |id: i32| plan.model.nodes.contains_key(&id);
    let gone =
        registered.filter(|(id, fenced)| !wanted.contains(id) && **fenced && (runs_on(**id) || !may_return(**id)));
    gone.map(|(id, _)| *id).collect()
}

/// What nodes that went have left. Their ConfigMap goes last: it is what remembers the rest.
pub(super) fn left_behind(seen: &Seen, model: &Model) -> Vec<Deed> {
    let listed: BTreeSet<&str> = seen.pod_sets.iter().flat_map(pods_of_pod_set).collect();
    let mut deeds = Vec::new();
    for (name, map) in seen.live.of_kind("ConfigMap") {
        let labelled = |key: &str| map.pointer("/metadata/labels").and_then(|labels| labels.get(key)?.as_str());
        let is_of_node = labelled(labels::POD_NAME) == Some(name);
        let may_return = listed.contains(name) || seen.pod(name).is_some();
        if !is_of_node || may_return || model.nodes.values().any(|node| node.pod == name) {
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
    deeds.extend(unused_claims(seen, model));
    deeds
}

/// Claims of nodes that stay, for volumes that were taken away from them: those that are to be deleted with the volume, once
/// neither a pod nor a description of one mentions them.
fn unused_claims(seen: &Seen, model: &Model) -> Vec<Deed> {
    let wanted: BTreeSet<String> = model
        .nodes
        .values()
        .flat_map(|node| {
            let disks = &model.pools[&node.pool].disks;
            disks.disks.iter().map(|disk| disks.claim(disk, &node.pod))
        })
        .collect();
    let stays = |pod: &str| model.nodes.values().any(|node| node.pod == pod);
    let unused = seen.live.of_kind("PersistentVolumeClaim").filter(|(name, claim)| {
        let of = claim.pointer("/metadata/labels").and_then(|labels| labels.get(labels::POD_NAME)?.as_str());
        of.is_some_and(stays) && goes_with_its_node(claim) && !wanted.contains(*name) && !is_mounted(seen, name)
    });
    unused.filter_map(|(claim, _)| absent::<PersistentVolumeClaim>(seen, claim)).collect()
}

fn is_mounted(seen: &Seen, claim: &str) -> bool {
    let runs = seen.pods.iter().filter_map(|pod| pod.spec.as_ref()?.volumes.as_ref()).flatten();
    let mut runs = runs.filter_map(|volume| volume.persistent_volume_claim.as_ref());
    let described = seen.live.of_kind("StrimziPodSet").filter_map(|(_, set)| set.pointer("/spec/pods")?.as_array());
    let described = described.flatten().filter_map(|pod| pod.pointer("/spec/volumes")?.as_array()).flatten();
    let mut described = described.filter_map(|volume| volume.pointer("/persistentVolumeClaim/claimName")?.as_str());
    runs.any(|source| source.claim_name == claim) || described.any(|name| name == claim)
}
