//! Which pod is restarted next, if any: one at a time, brokers before controllers, and never one whose absence would
//! leave a partition with fewer replicas in sync than writers ask for.
//!
//! Who was restarted has to be back before the next one goes, whether the next one serves or not: one that is not ready may
//! be reading its logs after a power cut, and would have to begin again. Only one that cannot start at all is not spared:
//! it may be waiting for just this change.

use std::collections::BTreeMap;

use evenkeel_api::annotations::{
    CLUSTER_CA_CERT_GENERATION, CLUSTER_CA_KEY_GENERATION, CONFIGURATION_HASH, REVISION, SERVER_CERT_HASH,
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;

use super::seen::{Known, Metadata, Partition};
use crate::pod_set::decide::{is_ready, ready_since};

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
    /// Not now.
    Wait {
        /// The pod that would be next.
        whose: String,
        /// What is waited for, in words.
        until: String,
        /// Whether this is just the one before, which is not back yet.
        is_usual: bool,
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

/// How long a controller has to be back before the next one may go: its port is open long before it has caught up.
const CATCHES_UP_IN: SignedDuration = SignedDuration::from_secs(10);

/// What to do next.
pub fn next(candidates: &[Candidate<'_>], metadata: &Metadata, now: Timestamp) -> Roll {
    let mut outdated: Vec<(&Candidate<'_>, &Pod, String)> = candidates
        .iter()
        .filter_map(|candidate| {
            let pod = candidate.pod.filter(|pod| pod.metadata.deletion_timestamp.is_none())?;
            Some((candidate, pod, difference(pod, candidate.wanted)?))
        })
        .collect();
    outdated.sort_by_key(|(candidate, pod, _)| (!cannot_start(pod), is_ready(pod), candidate.controller, candidate.id));
    let Some((candidate, pod, why)) = outdated.first() else { return Roll::Nothing };
    let whose = pod.metadata.name.clone().unwrap_or_default();
    let uid = pod.metadata.uid.clone().unwrap_or_default();
    let restart = Roll::Restart { pod: whose.clone(), uid, why: why.clone() };
    if cannot_start(pod) {
        return restart;
    }
    let is_outdated = |id: i32| outdated.iter().any(|(candidate, ..)| candidate.id == id);
    // A broker that Kafka has never heard of holds nothing that others would have to hold meanwhile.
    let is_new = |it: &Candidate<'_>| match metadata {
        Metadata::Known(known) => it.broker && !it.controller && !known.registered.contains_key(&it.id),
        _ => false,
    };
    let returning = |it: &&Candidate<'_>| !it.pod.is_some_and(is_ready) && !is_outdated(it.id) && !is_new(it);
    if let Some(returning) = candidates.iter().find(returning) {
        return Roll::Wait { whose, until: format!("node {} is ready", returning.id), is_usual: true };
    }
    let wait = |until: String| Roll::Wait { whose: whose.clone(), until, is_usual: false };
    if candidate.broker {
        match obstacle(candidate, pod, metadata) {
            Ok(()) => {}
            // It serves nobody, so there is nobody to ask for it.
            Err(_) if !is_ready(pod) && metadata.partitions().is_none() => {}
            Err(Obstacle::Unasked) => return Roll::LookCloser,
            Err(Obstacle::Until(until)) => return wait(until),
        }
    }
    let settling = |it: &&Candidate<'_>| {
        let since = it.pod.filter(|pod| is_ready(pod)).and_then(ready_since);
        it.controller && since.is_some_and(|since| now.duration_since(since) < CATCHES_UP_IN)
    };
    if let Some(settling) = candidates.iter().filter(|_| candidate.controller).find(settling) {
        let until = format!("controller {} has had time to catch up", settling.id);
        return Roll::Wait { whose, until, is_usual: true };
    }
    restart
}

enum Obstacle {
    /// Kafka can be asked, and was not.
    Unasked,
    /// Something has to come first.
    Until(String),
}

/// What stands in the way of restarting a broker.
fn obstacle(candidate: &Candidate<'_>, pod: &Pod, metadata: &Metadata) -> Result<(), Obstacle> {
    let partitions = match metadata {
        Metadata::Known(Known { partitions: Some(partitions), .. }) => partitions,
        Metadata::Known(Known { unread: Some(why), .. }) => {
            return Err(Obstacle::Until(format!("Kafka says who has what: {why}")));
        }
        Metadata::Known(_) => return Err(Obstacle::Unasked),
        // Under another authority nobody can speak with it, nor it with the others, before it is restarted.
        _ if note(pod, SERVER_CERT_HASH) != candidate.wanted.get(SERVER_CERT_HASH) => return Ok(()),
        Metadata::Unreachable(why) | Metadata::Mistrusted(why) => {
            return Err(Obstacle::Until(format!("Kafka can be asked who has what: {why}")));
        }
        Metadata::Nobody => return Err(Obstacle::Until("Kafka can be asked who has what".to_owned())),
    };
    match partitions.iter().find(|partition| would_fall_short(partition, candidate.id)) {
        None => Ok(()),
        Some(Partition { name, least_in_sync: None, .. }) => {
            Err(Obstacle::Until(format!("it is known how many replicas of {name} must be in sync")))
        }
        Some(short) => Err(Obstacle::Until(format!("{} has more replicas in sync than it must have", short.name))),
    }
}

/// Whether a pod will not come up as it is: it waits for a machine, an image or a Secret, or ends as often as it begins.
fn cannot_start(pod: &Pod) -> bool {
    let Some(status) = pod.status.as_ref().filter(|_| !is_ready(pod)) else { return false };
    let containers = status.init_container_statuses.iter().chain(&status.container_statuses).flatten();
    let waits = containers.filter_map(|container| container.state.as_ref()?.waiting.as_ref()?.reason.as_deref());
    let stuck =
        ["CrashLoopBackOff", "ImagePullBackOff", "ErrImagePull", "InvalidImageName", "CreateContainerConfigError"];
    matches!(status.phase.as_deref(), Some("Pending" | "Failed")) || waits.into_iter().any(|why| stuck.contains(&why))
}

/// Whether a partition would have too few replicas in sync without this broker, or might. One that has no more replicas
/// than it must have in sync cannot be spared that, whenever its brokers are restarted.
fn would_fall_short(partition: &Partition, broker: i32) -> bool {
    let shows = |least: usize| partition.replicas.len() > least && partition.in_sync.len() <= least;
    partition.in_sync.contains(&broker) && partition.least_in_sync.map_or(partition.replicas.len() > 1, shows)
}

fn note<'a>(pod: &'a Pod, key: &str) -> Option<&'a String> {
    pod.metadata.annotations.as_ref()?.get(key)
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
            "status": {"phase": "Running", "conditions": [
                {"type": "Ready", "status": ready, "lastTransitionTime": "1970-01-01T00:00:00Z"}]},
        }))
        .unwrap()
    }

    fn partition(replicas: &[i32], in_sync: &[i32], least: Option<usize>) -> Partition {
        let set = |ids: &[i32]| ids.iter().copied().collect();
        Partition { name: "t-0".into(), replicas: set(replicas), in_sync: set(in_sync), least_in_sync: least }
    }

    fn known(partitions: &[Partition]) -> Metadata {
        let registered = (0..3).map(|id| (id, false)).collect();
        Metadata::Known(Known { partitions: Some(partitions.to_vec()), registered, ..Known::default() })
    }

    fn calm() -> Metadata {
        known(&[partition(&[0, 1, 2], &[0, 1, 2], Some(2))])
    }

    /// Nodes 0 to 2 are brokers, 3 and 4 are controllers; the new revision is `y`.
    fn rolled_at(pods: &[Pod], metadata: &Metadata, seconds: i64) -> Roll {
        let wanted = BTreeMap::from([(REVISION.to_owned(), "y".to_owned())]);
        let candidates: Vec<_> = (0..5)
            .map(|id| Candidate {
                id,
                broker: id < 3,
                controller: id > 2,
                pod: pods.iter().find(|pod| pod.metadata.name.as_deref() == Some(&format!("c-a-{id}"))),
                wanted: &wanted,
            })
            .collect();
        next(&candidates, metadata, Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds))
    }

    fn rolled(pods: &[Pod], metadata: &Metadata) -> Roll {
        rolled_at(pods, metadata, 60)
    }

    fn restarted(roll: &Roll) -> Option<&str> {
        match roll {
            Roll::Restart { pod, .. } => Some(pod),
            _ => None,
        }
    }

    /// What is waited for, if it is.
    fn until(roll: &Roll) -> Option<&str> {
        match roll {
            Roll::Wait { until, .. } => Some(until),
            _ => None,
        }
    }

    #[test]
    fn brokers_first_one_at_a_time_and_controllers_last() {
        let mut pods: Vec<_> = (0..5).map(|id| pod(id, "x", true)).collect();
        for id in 0..5 {
            let expected = format!("c-a-{id}");
            assert_eq!(restarted(&rolled(&pods, &calm())), Some(expected.as_str()));
            let at = pods.iter().position(|pod| pod.metadata.name.as_ref() == Some(&expected)).unwrap();
            let away = format!("node {id} is ready");
            let waits = (id < 4).then_some(away.as_str());
            pods.remove(at);
            assert_eq!(until(&rolled(&pods, &calm())), waits, "somebody is away");
            pods.insert(at, pod(id, "y", false));
            assert_eq!(until(&rolled(&pods, &calm())), waits, "it is not ready yet");
            pods[at] = pod(id, "y", true);
        }
        assert_eq!(rolled(&pods, &calm()), Roll::Nothing);
    }

    #[test]
    fn a_controller_that_is_back_gets_time_to_catch_up() {
        let pods: Vec<_> = (0..5).map(|id| pod(id, if id < 4 { "y" } else { "x" }, true)).collect();
        assert_eq!(until(&rolled_at(&pods, &calm(), 9)), Some("controller 3 has had time to catch up"));
        assert_eq!(restarted(&rolled_at(&pods, &calm(), 10)), Some("c-a-4"));
        let brokers: Vec<_> = (0..5).map(|id| pod(id, "x", true)).collect();
        assert_eq!(restarted(&rolled_at(&brokers, &calm(), 0)), Some("c-a-0"), "that is no concern of brokers");
    }

    #[test]
    fn nothing_falls_below_what_writers_ask_for() {
        let pods: Vec<_> = (0..5).map(|id| pod(id, "x", true)).collect();
        assert_eq!(rolled(&pods, &Metadata::Known(Known::default())), Roll::LookCloser);
        let with =
            |replicas: &[i32], in_sync: &[i32], least| rolled(&pods, &known(&[partition(replicas, in_sync, least)]));
        let short = with(&[0, 1, 2], &[0, 1], Some(2));
        assert_eq!(until(&short), Some("t-0 has more replicas in sync than it must have"));
        assert_eq!(restarted(&with(&[0, 1, 2], &[1, 2], Some(2))), Some("c-a-0"), "0 is not in sync anyway");
        assert_eq!(restarted(&with(&[0], &[0], Some(1))), Some("c-a-0"), "this could never be avoided");
    }

    #[test]
    fn what_is_not_known_is_not_taken_for_good() {
        let pods: Vec<_> = (0..5).map(|id| pod(id, "x", true)).collect();
        let unknown = known(&[partition(&[0, 1, 2], &[0, 1, 2], None)]);
        assert_eq!(until(&rolled(&pods, &unknown)), Some("it is known how many replicas of t-0 must be in sync"));
        let elsewhere = known(&[partition(&[1, 2], &[1, 2], None), partition(&[0], &[0], None)]);
        assert_eq!(restarted(&rolled(&pods, &elsewhere)), Some("c-a-0"));
        let unread = Metadata::Known(Known { unread: Some("why".into()), ..Known::default() });
        assert_eq!(until(&rolled(&pods, &unread)), Some("Kafka says who has what: why"));
        let silent = Metadata::Unreachable("why".into());
        assert_eq!(until(&rolled(&pods, &silent)), Some("Kafka can be asked who has what: why"));
        // With a certificate of another authority it can never be asked.
        let mut alien = pods.clone();
        alien[0].metadata.annotations.as_mut().unwrap().insert(SERVER_CERT_HASH.to_owned(), "old".to_owned());
        assert_eq!(restarted(&rolled(&alien, &silent)), Some("c-a-0"));
    }

    #[test]
    fn of_those_that_do_not_serve_one_is_restarted_until_it_is_back() {
        let mut pods: Vec<_> = (0..5).map(|id| pod(id, if id < 3 { "x" } else { "y" }, id > 2)).collect();
        assert_eq!(restarted(&rolled(&pods, &Metadata::Nobody)), Some("c-a-0"), "nobody is there to be asked");
        pods[0] = pod(0, "y", false);
        assert_eq!(until(&rolled(&pods, &Metadata::Nobody)), Some("node 0 is ready"));
        pods[0] = pod(0, "y", true);
        assert_eq!(restarted(&rolled(&pods, &calm())), Some("c-a-1"));
        // Not even one that does not serve, if it would be missed.
        let needed = known(&[partition(&[0, 1, 2], &[0, 1], Some(2))]);
        assert!(until(&rolled(&pods, &needed)).is_some());
    }

    #[test]
    fn a_broker_that_kafka_has_never_heard_of_is_not_waited_for() {
        let pods: Vec<_> = (0..5).map(|id| pod(id, if id == 2 { "y" } else { "x" }, id != 2)).collect();
        assert_eq!(until(&rolled(&pods, &calm())), Some("node 2 is ready"));
        let Metadata::Known(mut known) = calm() else { unreachable!() };
        known.registered.remove(&2);
        assert_eq!(restarted(&rolled(&pods, &Metadata::Known(known))), Some("c-a-0"));
    }

    #[test]
    fn who_cannot_start_is_not_spared() {
        let mut pods: Vec<_> = (0..5).map(|id| pod(id, if id == 2 { "x" } else { "y" }, id != 1)).collect();
        assert_eq!(until(&rolled(&pods, &calm())), Some("node 1 is ready"));
        pods[2] = pod(2, "x", false);
        assert_eq!(until(&rolled(&pods, &calm())), Some("node 1 is ready"));
        let status = pods[2].status.as_mut().unwrap();
        status.container_statuses = serde_json::from_value(json!([{"name": "kafka", "image": "k", "imageID": "",
            "ready": false, "restartCount": 5, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]))
        .unwrap();
        assert_eq!(restarted(&rolled(&pods, &calm())), Some("c-a-2"));
    }
}
