//! Which pod is restarted next, if any: one at a time, brokers before controllers, the controller that leads last, and never one
//! whose absence would leave a partition with fewer replicas in sync than writers ask for, or the controllers without a
//! majority that knows everything.
//!
//! Who was restarted has to be back before the next one goes, whether the next one serves or not: one that is not ready may
//! be reading its logs after a power cut, and would have to begin again. Only one that cannot start at all is not spared:
//! it may be waiting for just this change.

use std::collections::BTreeMap;

use evenkeel_api::annotations::{
    CLUSTER_CA_CERT_GENERATION, CLUSTER_CA_KEY_GENERATION, CONFIGURATION_HASH, MANUAL_ROLLING_UPDATE, REVISION,
    SERVER_CERT_HASH,
};
use evenkeel_kafka::{
    BrokerId,
    calls::quorum::{Quorum, Voter},
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

/// How long a broker has to be back before the next one may go: whoever is asked who is in sync hears of what the controllers
/// know a moment later, and would still count one that was away for as short as that. Times in Kubernetes are whole seconds.
const HEARD_WITHIN: SignedDuration = SignedDuration::from_secs(2);

/// How long a controller has to be back before the next one may go, where nobody can be asked how far it is: its port is open
/// long before it has caught up.
const CATCHES_UP_IN: SignedDuration = SignedDuration::from_secs(10);

/// A controller has caught up if it had everything so many milliseconds ago. It asks for more twice a second, and after this long
/// without an answer it looks for another leader (`controller.quorum.fetch.timeout.ms`, as Kafka has it).
const CAUGHT_UP_WITHIN_MS: i64 = 2_000;

/// What to do next.
pub fn next(candidates: &[Candidate<'_>], metadata: &Metadata, now: Timestamp) -> Roll {
    let mut outdated: Vec<(&Candidate<'_>, &Pod, String)> = candidates
        .iter()
        .filter_map(|candidate| {
            let pod = candidate.pod.filter(|pod| pod.metadata.deletion_timestamp.is_none())?;
            Some((candidate, pod, difference(pod, candidate.wanted)?))
        })
        .collect();
    // While the one that leads is away the others elect another: once is enough.
    let quorum = metadata.known().and_then(|known| known.quorum.as_ref()?.as_ref().ok());
    let leads = |id: i32| quorum.and_then(|quorum| quorum.leader) == Some(BrokerId(id));
    outdated.sort_by_key(|(it, pod, _)| (!cannot_start(pod), is_ready(pod), it.controller, leads(it.id), it.id));
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
    let is_ready_for = |it: &Candidate<'_>, least: SignedDuration| {
        let since = it.pod.filter(|pod| is_ready(pod)).and_then(ready_since);
        since.is_none_or(|since| now.duration_since(since) >= least)
    };
    if candidate.broker {
        if let Some(back) = candidates.iter().find(|it| it.broker && !is_ready_for(it, HEARD_WITHIN)) {
            let until = format!("all have heard that node {} was away", back.id);
            return Roll::Wait { whose, until, is_usual: true };
        }
        match obstacle(candidate, pod, metadata) {
            Ok(()) => {}
            Err(Obstacle::Unasked) => return Roll::LookCloser,
            // It serves nobody, and there is nobody who could be asked: it may be waiting for just this change.
            Err(Obstacle::Until(_)) if !is_ready(pod) && metadata.known().is_none() => {}
            Err(Obstacle::Until(until)) => return wait(until),
        }
    }
    if candidate.controller {
        match metadata {
            Metadata::Known(Known { quorum: None, .. }) => return Roll::LookCloser,
            Metadata::Known(Known { quorum: Some(Ok(quorum)), .. }) => {
                return needed(quorum, candidate.id).map_or(restart, wait);
            }
            Metadata::Known(Known { quorum: Some(Err(why)), .. }) | Metadata::Unreachable(why) if is_ready(pod) => {
                return wait(format!("Kafka says how its controllers are: {why}"));
            }
            // There is nobody who could be asked, or it may be the very one for whom nobody answers.
            Metadata::Known(_) | Metadata::Unreachable(_) | Metadata::Mistrusted(_) | Metadata::Nobody => {}
        }
        if let Some(settling) = candidates.iter().find(|it| it.controller && !is_ready_for(it, CATCHES_UP_IN)) {
            let until = format!("controller {} has had time to catch up", settling.id);
            return Roll::Wait { whose, until, is_usual: true };
        }
    }
    restart
}

/// What has to come before this controller may go: a majority of all must have everything without it, or, of one or two
/// controllers, the other one.
fn needed(quorum: &Quorum, without: i32) -> Option<String> {
    let leader = quorum.voters.iter().find(|voter| Some(voter.id) == quorum.leader);
    let has_caught_up = |voter: &&Voter| match (leader.map(|it| it.caught_up_at), voter.caught_up_at) {
        (Some(Some(now)), Some(then)) => now.saturating_sub(then) <= CAUGHT_UP_WITHIN_MS,
        _ => false,
    };
    let others = quorum.voters.iter().filter(|voter| voter.id != BrokerId(without));
    let (ahead, behind): (Vec<&Voter>, Vec<&Voter>) = others.partition(has_caught_up);
    let majority = quorum.voters.len() / 2 + 1;
    if ahead.len() >= majority.min(ahead.len() + behind.len()) {
        return None;
    }
    let behind: Vec<String> = behind.iter().map(|voter| voter.id.0.to_string()).collect();
    Some(format!("controllers have caught up with the one that leads: {}", behind.join(", ")))
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
        Metadata::Known(Known { closely: false, .. }) => return Err(Obstacle::Unasked),
        Metadata::Known(Known { partitions: Some(partitions), .. }) => partitions,
        Metadata::Known(Known { unread: Some(why), .. }) => {
            return Err(Obstacle::Until(format!("Kafka says who has what: {why}")));
        }
        Metadata::Known(_) => return Err(Obstacle::Unasked),
        // Under another authority nobody can speak with it, nor it with the others, before it is restarted. A new certificate
        // alone is no sign of that.
        Metadata::Mistrusted(_) if note(pod, SERVER_CERT_HASH) != candidate.wanted.get(SERVER_CERT_HASH) => {
            return Ok(());
        }
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
        Some(partition @ Partition { name, least_in_sync: Some(least), .. }) => {
            let enough = if partition.wanted().len() > *least {
                "more replicas in sync than it must have"
            } else {
                "all of its replicas in sync"
            };
            Err(Obstacle::Until(format!("{name} has {enough}")))
        }
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
/// than it must have in sync cannot be spared that, whenever its brokers are restarted; but not while one of them is missing
/// already, so that never more than one is.
fn would_fall_short(partition: &Partition, broker: i32) -> bool {
    let others = partition.replicas.len().saturating_sub(1);
    let shows = |least: usize| partition.in_sync.len() <= least.min(others);
    partition.in_sync.contains(&broker) && partition.least_in_sync.map_or(others > 0, shows)
}

fn note<'a>(pod: &'a Pod, key: &str) -> Option<&'a String> {
    pod.metadata.annotations.as_ref()?.get(key)
}

/// Whether somebody wants a pod, or all pods of a set, to be restarted.
pub fn is_asked_for(notes: &BTreeMap<String, String>) -> bool {
    notes.get(MANUAL_ROLLING_UPDATE).is_some_and(|value| value == "true")
}

/// Why a pod is to be restarted; None if it is as it should be.
fn difference(pod: &Pod, wanted: &BTreeMap<String, String>) -> Option<String> {
    let none = BTreeMap::new();
    let notes = pod.metadata.annotations.as_ref().unwrap_or(&none);
    if notes.get(REVISION) == wanted.get(REVISION) {
        return is_asked_for(notes).then(|| "it was asked for".to_owned());
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
        let (replicas, in_sync) = (set(replicas), set(in_sync));
        Partition { name: "t-0".into(), replicas, in_sync, least_in_sync: least, ..Partition::default() }
    }

    fn known(partitions: &[Partition]) -> Metadata {
        let registered = (0..3).map(|id| (id, false)).collect();
        let quorum = Some(Ok(quorum(3, &[(3, Some(0)), (4, Some(0))])));
        let partitions = Some(partitions.to_vec());
        Metadata::Known(Known { partitions, registered, quorum, closely: true, ..Known::default() })
    }

    /// Controllers, and how many milliseconds ago they had everything.
    fn quorum(leader: i32, voters: &[(i32, Option<i64>)]) -> Quorum {
        let voter = |(id, ago): &(i32, Option<i64>)| Voter {
            id: BrokerId(*id),
            log_end: Some(9),
            caught_up_at: ago.map(|ago| 1_000_000 - ago),
        };
        Quorum { leader: Some(BrokerId(leader)), voters: voters.iter().map(voter).collect() }
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
        // Controller 3 leads.
        for id in [0, 1, 2, 4, 3] {
            let expected = format!("c-a-{id}");
            assert_eq!(restarted(&rolled(&pods, &calm())), Some(expected.as_str()));
            let at = pods.iter().position(|pod| pod.metadata.name.as_ref() == Some(&expected)).unwrap();
            let away = format!("node {id} is ready");
            let waits = (id != 3).then_some(away.as_str());
            pods.remove(at);
            assert_eq!(until(&rolled(&pods, &calm())), waits, "somebody is away");
            pods.insert(at, pod(id, "y", false));
            assert_eq!(until(&rolled(&pods, &calm())), waits, "it is not ready yet");
            pods[at] = pod(id, "y", true);
        }
        assert_eq!(rolled(&pods, &calm()), Roll::Nothing);
    }

    #[test]
    fn a_controller_goes_when_a_majority_without_it_has_everything() {
        let late = Some(CAUGHT_UP_WITHIN_MS + 1);
        let table: [(&str, Quorum, Option<&str>); 9] = [
            ("all are well", quorum(3, &[(3, Some(0)), (4, Some(0)), (5, Some(CAUGHT_UP_WITHIN_MS))]), None),
            ("one of three is late", quorum(3, &[(3, Some(0)), (4, Some(0)), (5, late)]), Some("5")),
            ("one of three is new", quorum(3, &[(3, Some(0)), (4, Some(0)), (5, None)]), Some("5")),
            ("it is late itself", quorum(3, &[(3, Some(0)), (4, late), (5, Some(0))]), None),
            (
                "one of five is late",
                quorum(3, &[(3, Some(0)), (4, Some(0)), (5, late), (6, Some(0)), (7, Some(0))]),
                None,
            ),
            (
                "two of five are",
                quorum(3, &[(3, Some(0)), (4, Some(0)), (5, late), (6, None), (7, Some(0))]),
                Some("5, 6"),
            ),
            ("the other of two is", quorum(4, &[(3, late), (4, Some(0))]), Some("3")),
            ("there is no other", quorum(4, &[(4, Some(0))]), None),
            ("nobody leads", Quorum { leader: None, ..quorum(3, &[(3, Some(0)), (4, Some(0))]) }, Some("3")),
        ];
        for (what, quorum, behind) in table {
            let said = behind.map(|ids| format!("controllers have caught up with the one that leads: {ids}"));
            assert_eq!(needed(&quorum, 4), said, "{what}");
        }
    }

    #[test]
    fn controllers_are_asked_for_before_one_of_them_goes() {
        let pods: Vec<_> = (0..5).map(|id| pod(id, if id < 4 { "y" } else { "x" }, true)).collect();
        let with = |quorum| {
            let Metadata::Known(known) = calm() else { unreachable!() };
            Metadata::Known(Known { quorum, ..known })
        };
        assert_eq!(rolled(&pods, &with(None)), Roll::LookCloser);
        let late = quorum(4, &[(3, Some(CAUGHT_UP_WITHIN_MS + 1)), (4, Some(0))]);
        assert!(until(&rolled(&pods, &with(Some(Ok(late))))).is_some_and(|it| it.ends_with("leads: 3")));
        let silent = with(Some(Err("why".to_owned())));
        assert_eq!(until(&rolled(&pods, &silent)), Some("Kafka says how its controllers are: why"));
        // One that does not serve may be the reason.
        let mut stuck = pods.clone();
        stuck[4] = pod(4, "x", false);
        assert_eq!(restarted(&rolled(&stuck, &silent)), Some("c-a-4"));
    }

    #[test]
    fn where_nobody_can_be_asked_a_controller_that_is_back_gets_time_to_catch_up() {
        let pods: Vec<_> = (0..5).map(|id| pod(id, if id < 4 { "y" } else { "x" }, true)).collect();
        let nobody = Metadata::Nobody;
        assert_eq!(until(&rolled_at(&pods, &nobody, 9)), Some("controller 3 has had time to catch up"));
        assert_eq!(restarted(&rolled_at(&pods, &nobody, 10)), Some("c-a-4"));
        let silent = Metadata::Unreachable("why".into());
        assert_eq!(
            until(&rolled(&pods, &silent)),
            Some("Kafka says how its controllers are: why"),
            "it may yet answer"
        );
        let brokers: Vec<_> = (0..5).map(|id| pod(id, "x", true)).collect();
        assert_eq!(restarted(&rolled_at(&brokers, &calm(), 2)), Some("c-a-0"), "that is no concern of brokers");
        assert_eq!(until(&rolled_at(&brokers, &calm(), 1)), Some("all have heard that node 0 was away"));
    }

    #[test]
    fn whoever_asks_for_a_restart_gets_one_when_it_may_be() {
        let mut pods: Vec<_> = (0..5).map(|id| pod(id, "y", true)).collect();
        let mut ask = |id: usize, value: &str| {
            let notes = pods[id].metadata.annotations.as_mut().unwrap();
            notes.insert(MANUAL_ROLLING_UPDATE.to_owned(), value.to_owned());
            rolled(&pods, &calm())
        };
        assert_eq!(ask(2, "false"), Roll::Nothing);
        assert_eq!(restarted(&ask(4, "true")), Some("c-a-4"));
        let Roll::Restart { pod, why, .. } = ask(1, "true") else { panic!("a restart") };
        assert_eq!((pod.as_str(), why.as_str()), ("c-a-1", "it was asked for"));
        assert!(until(&rolled(&pods, &known(&[partition(&[0, 1, 2], &[0, 1], Some(2))]))).is_some());
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
        // Of as many replicas as must be in sync one may go at a time.
        for (replicas, some) in [(&[0, 1][..], &[0][..]), (&[0, 1, 2], &[0, 1])] {
            let least = Some(replicas.len());
            assert_eq!(
                restarted(&with(replicas, replicas, least)),
                Some("c-a-0"),
                "this could never be avoided either"
            );
            assert_eq!(until(&with(replicas, some, least)), Some("t-0 has all of its replicas in sync"));
        }
    }

    #[test]
    fn what_is_not_known_is_not_taken_for_good() {
        let pods: Vec<_> = (0..5).map(|id| pod(id, "x", true)).collect();
        let unknown = known(&[partition(&[0, 1, 2], &[0, 1, 2], None)]);
        assert_eq!(until(&rolled(&pods, &unknown)), Some("it is known how many replicas of t-0 must be in sync"));
        let elsewhere = known(&[partition(&[1, 2], &[1, 2], None), partition(&[0], &[0], None)]);
        assert_eq!(restarted(&rolled(&pods, &elsewhere)), Some("c-a-0"));
        let unread = Metadata::Known(Known { unread: Some("why".into()), closely: true, ..Known::default() });
        assert_eq!(until(&rolled(&pods, &unread)), Some("Kafka says who has what: why"));
        let silent = Metadata::Unreachable("why".into());
        assert_eq!(until(&rolled(&pods, &silent)), Some("Kafka can be asked who has what: why"));
        // With a certificate of another authority it can never be asked.
        let mut alien = pods.clone();
        alien[0].metadata.annotations.as_mut().unwrap().insert(SERVER_CERT_HASH.to_owned(), "old".to_owned());
        let mistrusted = Metadata::Mistrusted("why".into());
        assert_eq!(restarted(&rolled(&alien, &mistrusted)), Some("c-a-0"));
        assert!(until(&rolled(&pods, &mistrusted)).is_some(), "its certificate is as it should be");
        assert!(until(&rolled(&alien, &silent)).is_some(), "it has another of the same authority, perhaps");
    }

    #[test]
    fn of_those_that_do_not_serve_one_is_restarted_until_it_is_back() {
        let mut pods: Vec<_> = (0..5).map(|id| pod(id, if id < 3 { "x" } else { "y" }, id > 2)).collect();
        assert_eq!(restarted(&rolled(&pods, &Metadata::Nobody)), Some("c-a-0"), "nobody is there to be asked");
        pods[0] = pod(0, "y", false);
        assert_eq!(until(&rolled(&pods, &Metadata::Nobody)), Some("node 0 is ready"));
        pods[0] = pod(0, "y", true);
        assert_eq!(restarted(&rolled(&pods, &calm())), Some("c-a-1"));
        // Not even one that does not serve, if it would be missed, or might be.
        let needed = known(&[partition(&[0, 1, 2], &[0, 1], Some(2))]);
        assert!(until(&rolled(&pods, &needed)).is_some());
        let Metadata::Known(mut first) = needed else { unreachable!() };
        first.closely = false;
        assert_eq!(rolled(&pods, &Metadata::Known(first.clone())), Roll::LookCloser, "minima were not asked for");
        first.partitions = None;
        assert_eq!(rolled(&pods, &Metadata::Known(first.clone())), Roll::LookCloser, "nobody was asked yet");
        first.closely = true;
        first.unread = Some("why".into());
        assert_eq!(until(&rolled(&pods, &Metadata::Known(first))), Some("Kafka says who has what: why"));
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
