//! Which pod is restarted next, if any: one at a time, brokers before controllers, and never one whose absence would
//! leave a partition with fewer replicas in sync than writers ask for.

use std::collections::BTreeMap;

use evenkeel_api::annotations::{
    CLUSTER_CA_CERT_GENERATION, CLUSTER_CA_KEY_GENERATION, CONFIGURATION_HASH, REVISION, SERVER_CERT_HASH,
};
use k8s_openapi::api::core::v1::Pod;

use super::seen::Partition;
use crate::pod_set::decide::is_ready;

/// A node as its restart is concerned.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    /// Its id.
    pub id: i32,
    /// Whether it is a broker.
    pub broker: bool,
    /// Whether it is a controller.
    pub controller: bool,
    /// Its pod; None while there is none.
    pub pod: Option<&'a Pod>,
    /// Annotations of the pod as it should be.
    pub wanted: &'a BTreeMap<String, String>,
}

/// What to do about pods that are not as they should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Roll {
    /// All are as they should be.
    Nothing,
    /// Somebody is away: wait for them.
    Wait {
        /// For what, in words.
        until: String,
    },
    /// It is not known who has what: ask Kafka.
    LookCloser,
    /// Delete this pod; it comes back as it should be.
    Restart {
        /// Its name.
        pod: String,
        /// Its uid.
        uid: String,
        /// Why.
        why: String,
    },
}

/// What to do next. `partitions`: what is known of them.
pub fn next(candidates: &[Candidate<'_>], partitions: Option<&[Partition]>) -> Roll {
    let mut outdated: Vec<(&Candidate<'_>, &Pod, String)> = candidates
        .iter()
        .filter_map(|candidate| {
            let pod = candidate.pod.filter(|pod| pod.metadata.deletion_timestamp.is_none())?;
            Some((candidate, pod, difference(pod, candidate.wanted)?))
        })
        .collect();
    if outdated.is_empty() {
        return Roll::Nothing;
    }
    // Who is not ready serves nobody, and may be waiting for just this change.
    outdated.sort_by_key(|(candidate, pod, _)| (is_ready(pod), candidate.controller, candidate.id));
    let away = candidates.iter().find(|candidate| !candidate.pod.is_some_and(is_ready));
    let (candidate, pod, why) = &outdated[0];
    if let Some(away) = away.filter(|_| is_ready(pod)) {
        return Roll::Wait { until: format!("node {} is ready", away.id) };
    }
    if candidate.broker && is_ready(pod) {
        let Some(partitions) = partitions else { return Roll::LookCloser };
        if let Some(short) = partitions.iter().find(|partition| would_fall_short(partition, candidate.id)) {
            return Roll::Wait { until: format!("{} has more replicas in sync than it must have", short.name) };
        }
    }
    Roll::Restart {
        pod: pod.metadata.name.clone().unwrap_or_default(),
        uid: pod.metadata.uid.clone().unwrap_or_default(),
        why: why.clone(),
    }
}

/// Whether a partition would have too few replicas in sync without this broker. One that has no more replicas than it
/// must have in sync cannot be spared that, whenever its brokers are restarted.
fn would_fall_short(partition: &Partition, broker: i32) -> bool {
    partition.in_sync.contains(&broker)
        && partition.replicas.len() > partition.least_in_sync
        && partition.in_sync.len() <= partition.least_in_sync
}

/// Why a pod is not as it should be; None if it is.
fn difference(pod: &Pod, wanted: &BTreeMap<String, String>) -> Option<String> {
    let none = BTreeMap::new();
    let notes = pod.metadata.annotations.as_ref().unwrap_or(&none);
    if notes.get(REVISION) == wanted.get(REVISION) {
        return None;
    }
    let reasons = [
        (CONFIGURATION_HASH, "its configuration has changed"),
        (SERVER_CERT_HASH, "its certificate has changed"),
        (CLUSTER_CA_CERT_GENERATION, "the cluster's authority has a new certificate"),
        (CLUSTER_CA_KEY_GENERATION, "the cluster's authority has a new key"),
    ];
    let known: Vec<&str> =
        reasons.iter().filter(|(key, _)| notes.get(*key) != wanted.get(*key)).map(|(_, text)| *text).collect();
    Some(if known.is_empty() { "its description has changed".to_owned() } else { known.join(", ") })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(id: i32, revision: &str, ready: bool) -> Pod {
        let ready = if ready { "True" } else { "False" };
        serde_json::from_value(json!({
            "metadata": {"name": format!("c-a-{id}"), "uid": id.to_string(), "annotations": {REVISION: revision}},
            "status": {"conditions": [{"type": "Ready", "status": ready}]},
        }))
        .unwrap()
    }

    fn partition(replicas: &[i32], in_sync: &[i32], least: usize) -> Partition {
        let set = |ids: &[i32]| ids.iter().copied().collect();
        Partition { name: "t-0".into(), replicas: set(replicas), in_sync: set(in_sync), least_in_sync: least }
    }

    /// Nodes 0 to 2 are brokers, 3 is a controller; the new revision is `y`.
    fn rolled(pods: &[Pod], partitions: Option<&[Partition]>) -> Roll {
        let wanted = BTreeMap::from([(REVISION.to_owned(), "y".to_owned())]);
        let candidates: Vec<_> = (0..4)
            .map(|id| Candidate {
                id,
                broker: id < 3,
                controller: id == 3,
                pod: pods.iter().find(|pod| pod.metadata.name.as_deref() == Some(&format!("c-a-{id}"))),
                wanted: &wanted,
            })
            .collect();
        next(&candidates, partitions)
    }

    fn restarted(roll: &Roll) -> Option<&str> {
        match roll {
            Roll::Restart { pod, .. } => Some(pod),
            _ => None,
        }
    }

    #[test]
    fn brokers_first_one_at_a_time_and_controllers_last() {
        let mut pods: Vec<_> = (0..4).map(|id| pod(id, "x", true)).collect();
        let calm = [partition(&[0, 1, 2], &[0, 1, 2], 2)];
        for expected in ["c-a-0", "c-a-1", "c-a-2", "c-a-3"] {
            let roll = rolled(&pods, Some(&calm));
            assert_eq!(restarted(&roll), Some(expected));
            let at = pods.iter().position(|pod| pod.metadata.name.as_deref() == Some(expected)).unwrap();
            let id = at as i32;
            pods.remove(at);
            if id < 3 {
                assert!(matches!(rolled(&pods, Some(&calm)), Roll::Wait { .. }), "somebody is away");
            }
            pods.insert(at, pod(id, "y", false));
            if id < 3 {
                assert!(matches!(rolled(&pods, Some(&calm)), Roll::Wait { .. }), "it is not ready yet");
            }
            pods[at] = pod(id, "y", true);
        }
        assert_eq!(rolled(&pods, Some(&calm)), Roll::Nothing);
    }

    #[test]
    fn nothing_falls_below_what_writers_ask_for() {
        let pods: Vec<_> = (0..4).map(|id| pod(id, "x", true)).collect();
        assert_eq!(rolled(&pods, None), Roll::LookCloser);
        let short = [partition(&[0, 1, 2], &[0, 1], 2)];
        assert!(matches!(rolled(&pods, Some(&short)), Roll::Wait { .. }));
        let elsewhere = [partition(&[0, 1, 2], &[1, 2], 2)];
        assert_eq!(restarted(&rolled(&pods, Some(&elsewhere))), Some("c-a-0"), "0 is not in sync anyway");
        let single = [partition(&[0], &[0], 1)];
        assert_eq!(restarted(&rolled(&pods, Some(&single))), Some("c-a-0"), "this could never be avoided");
    }

    #[test]
    fn who_does_not_serve_is_restarted_first_and_unasked() {
        let pods = [pod(0, "x", true), pod(1, "x", true), pod(2, "x", false), pod(3, "y", true)];
        assert_eq!(restarted(&rolled(&pods, None)), Some("c-a-2"));
    }
}
