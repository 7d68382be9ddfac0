//! Replica sets: as many pods of a template as are wanted.
//!
//! [`decide`] says what to do about one set. Pods are known by their controller reference; orphans that match a selector
//! are not adopted.

use std::cmp::Reverse;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::apps::v1::{ReplicaSet, ReplicaSetCondition, ReplicaSetStatus};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::clock::Clock;
use crate::patience::{Again, Troubles};
use crate::pods;
use crate::watched::{Watched, key};

/// The condition of a set whose pods cannot be made.
const REPLICA_FAILURE: &str = "ReplicaFailure";

/// What to do about a set.
#[derive(Debug, Default, PartialEq)]
pub struct Decision {
    /// So many pods are missing.
    pub create: usize,
    /// These are too many, by name.
    pub delete: Vec<String>,
    /// The status that it should have.
    pub status: ReplicaSetStatus,
    /// When pods become available without anything happening.
    pub look_again_in: Option<Duration>,
}

/// Keeps sets at their sizes, until dropped.
pub async fn run(client: Client, clock: Clock) {
    let (mut sets, mut pods) = (Watched::<ReplicaSet>::all(&client), Watched::<Pod>::all(&client));
    let (mut again, mut troubles) = (Again::default(), Troubles::default());
    loop {
        tokio::select! {
            () = sets.news() => (),
            () = pods.news() => (),
            () = again.due() => (),
        }
        if sets.is_complete() && pods.is_complete() {
            let mut wake = None;
            for set in sets.iter().cloned().collect::<Vec<_>>() {
                let of = key(set.as_ref());
                if troubles.hold(&of) {
                    continue;
                }
                let done = act(&client, &set, &mut sets, &mut pods, &clock).await;
                let next = troubles.after("replica sets", &of, done).flatten();
                wake = wake.into_iter().chain(next).min();
            }
            again.at(wake.into_iter().chain(troubles.next()).min());
        }
    }
}

/// Does for one set what is to be done; says when to look again although nothing happened.
async fn act(
    client: &Client,
    set: &ReplicaSet,
    sets: &mut Watched<ReplicaSet>,
    pods: &mut Watched<Pod>,
    clock: &Clock,
) -> kube::Result<Option<Instant>> {
    let namespace = set.namespace().unwrap_or_default();
    let uid = set.uid().unwrap_or_default();
    let decided = |pods: &Watched<Pod>| {
        let owned = pods.within(&namespace).filter(|pod| pods::controller(pod) == Some(&uid));
        decide(set, &owned.map(AsRef::as_ref).collect::<Vec<_>>(), clock.now())
    };
    let failed = populate(client, set, &decided(pods), pods).await.err();
    // After pods were made or deleted: what is counted then is what is there then.
    let Decision { mut status, look_again_in, .. } = decided(pods);
    status.conditions = conditions(status.conditions, failed.as_ref(), clock.stamp());
    if set.status.as_ref() != Some(&status) {
        let api = Api::<ReplicaSet>::namespaced(client.clone(), &namespace);
        let patch = Patch::Merge(json!({"metadata": {"uid": uid}, "status": status}));
        match api.patch_status(&set.name_any(), &PatchParams::default(), &patch).await {
            Ok(written) => sets.wrote(written),
            Err(kube::Error::Api(status)) if status.is_not_found() => (),
            Err(error) => return Err(error),
        }
    }
    match failed {
        Some(error) => Err(error),
        None => Ok(look_again_in.map(|wait| Instant::now() + wait)),
    }
}

/// Makes the pods that are missing, and deletes those that are too many.
async fn populate(client: &Client, set: &ReplicaSet, decided: &Decision, pods: &mut Watched<Pod>) -> kube::Result<()> {
    let namespace = set.namespace().unwrap_or_default();
    let api = Api::<Pod>::namespaced(client.clone(), &namespace);
    for _ in 0..decided.create {
        let pod = serde_json::from_value(new_pod(set)).map_err(kube::Error::SerdeError)?;
        pods.wrote(api.create(&PostParams::default(), &pod).await?);
    }
    for name in &decided.delete {
        let Some(pod) = pods.get(&namespace, name).cloned() else { continue };
        let preconditions = Some(Preconditions { uid: pod.uid(), resource_version: None });
        match api.delete(name, &DeleteParams { preconditions, ..DeleteParams::default() }).await {
            Err(kube::Error::Api(status)) if status.is_not_found() || status.is_conflict() => (),
            other => drop(other?),
        }
        pods.deleted(&pod);
    }
    Ok(())
}

/// The conditions with a word on whether pods could be made, since when.
fn conditions(
    before: Option<Vec<ReplicaSetCondition>>,
    failed: Option<&kube::Error>,
    now: Time,
) -> Option<Vec<ReplicaSetCondition>> {
    let (old, mut conditions): (Vec<_>, Vec<_>) =
        before.unwrap_or_default().into_iter().partition(|it| it.type_ == REPLICA_FAILURE);
    if let Some(error) = failed {
        let since = old.into_iter().find(|it| it.status == "True").and_then(|it| it.last_transition_time);
        conditions.push(ReplicaSetCondition {
            type_: REPLICA_FAILURE.to_owned(),
            status: "True".to_owned(),
            reason: Some("FailedCreate".to_owned()),
            message: Some(error.to_string()),
            last_transition_time: Some(since.unwrap_or(now)),
        });
    }
    (!conditions.is_empty()).then_some(conditions)
}

/// What to do about one set and its pods.
pub fn decide(set: &ReplicaSet, owned: &[&Pod], now: Timestamp) -> Decision {
    let spec = set.spec.as_ref();
    let wanted = usize::try_from(spec.and_then(|spec| spec.replicas).unwrap_or(1)).unwrap_or(0);
    let patience = spec.and_then(|spec| spec.min_ready_seconds).unwrap_or(0);
    let mut active: Vec<&Pod> = owned.iter().copied().filter(|pod| pods::is_active(pod)).collect();
    let until_available = |pod: &&&Pod| available_in(pod, patience, now);
    let ready = active.iter().filter(|pod| pods::is_ready(pod)).count();
    let available = active.iter().filter_map(|pod| until_available(&pod)).filter(Duration::is_zero).count();
    let look_again_in = active.iter().filter_map(|pod| until_available(&pod)).filter(|wait| !wait.is_zero()).min();
    let template = spec.and_then(|spec| spec.template.as_ref()?.metadata.as_ref()?.labels.clone()).unwrap_or_default();
    let labeled = |pod: &&&Pod| template.iter().all(|(label, value)| pod.labels().get(label) == Some(value));
    let terminating = owned.iter().filter(|pod| pod.metadata.deletion_timestamp.is_some() && !pods::has_ended(pod));
    let count = |number: usize| i32::try_from(number).unwrap_or(i32::MAX);
    let status = ReplicaSetStatus {
        replicas: count(active.len()),
        fully_labeled_replicas: Some(count(active.iter().filter(labeled).count())),
        ready_replicas: Some(count(ready)),
        available_replicas: Some(count(available)),
        terminating_replicas: Some(count(terminating.count())),
        observed_generation: set.metadata.generation,
        conditions: set.status.as_ref().and_then(|status| status.conditions.clone()),
    };
    // A set that goes makes nothing more; the garbage collector takes its pods.
    if set.metadata.deletion_timestamp.is_some() {
        return Decision { status, look_again_in, ..Decision::default() };
    }
    active.sort_by_key(|pod| worth(pod));
    let surplus = active.len().saturating_sub(wanted);
    let delete = active.iter().take(surplus).map(|pod| pod.name_any()).collect();
    Decision { create: wanted.saturating_sub(active.len()), delete, status, look_again_in }
}

/// The less it is worth the sooner it goes: unbound, not running, not ready, and then the youngest.
fn worth(pod: &Pod) -> (bool, bool, bool, Reverse<Option<Timestamp>>, String) {
    let bound = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).is_some_and(|node| !node.is_empty());
    let runs = pods::phase(pod) == "Running";
    let born = pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
    (bound, runs, pods::is_ready(pod), Reverse(born), pod.name_any())
}

/// How long until a pod that is ready counts as available; nothing if it is not ready.
fn available_in(pod: &Pod, patience: i32, now: Timestamp) -> Option<Duration> {
    if !pods::is_ready(pod) {
        return None;
    }
    let since = pods::condition(pod, "Ready")?.last_transition_time.as_ref().map_or(now, |time| time.0);
    let left = SignedDuration::from_secs(patience.into()) - now.duration_since(since);
    Some(Duration::try_from(left).unwrap_or(Duration::ZERO))
}

fn new_pod(set: &ReplicaSet) -> Value {
    let template = set.spec.as_ref().and_then(|spec| spec.template.as_ref());
    let metadata = template.and_then(|template| template.metadata.clone()).unwrap_or_default();
    let owner = json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": set.name_any(), "uid": set.uid(),
        "controller": true, "blockOwnerDeletion": true,
    });
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "generateName": format!("{}-", set.name_any()), "namespace": set.namespace(), "ownerReferences": [owner],
            "labels": metadata.labels, "annotations": metadata.annotations, "finalizers": metadata.finalizers,
        },
        "spec": template.and_then(|template| template.spec.clone()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(replicas: u32, min_ready: u32) -> ReplicaSet {
        let template = json!({"metadata": {"labels": {"app": "x"}}, "spec": {"containers": []}});
        serde_json::from_value(json!({
            "metadata": {"name": "set", "namespace": "ns", "uid": "s1", "generation": 3},
            "spec": {"replicas": replicas, "minReadySeconds": min_ready, "selector": {}, "template": template},
        }))
        .unwrap()
    }

    /// A pod in one letter: `u` unbound, `p` pending, `r` running, `R` ready, `d` deleted, `f` failed.
    fn pod(number: usize, letter: char) -> Pod {
        let node = if letter == 'u' { "" } else { "node" };
        let phase = match letter {
            'u' | 'p' => "Pending",
            'f' => "Failed",
            _ => "Running",
        };
        let ready = if letter == 'R' { "True" } else { "False" };
        let deleted = (letter == 'd').then_some("2026-01-01T00:00:00Z");
        let conditions = json!([{"type": "Ready", "status": ready, "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
        let metadata = json!({"name": format!("{letter}{number}"), "labels": {"app": "x"},
            "creationTimestamp": format!("2026-01-01T00:00:{number:02}Z"), "deletionTimestamp": deleted});
        serde_json::from_value(json!({
            "metadata": metadata, "spec": {"nodeName": node, "containers": []},
            "status": {"phase": phase, "conditions": conditions},
        }))
        .unwrap()
    }

    fn decided(replicas: u32, letters: &str) -> (usize, String, [i32; 4]) {
        let pods: Vec<_> = letters.chars().enumerate().map(|(number, letter)| pod(number, letter)).collect();
        let now = "2026-01-01T00:01:00Z".parse().unwrap();
        let decision = decide(&set(replicas, 0), &pods.iter().collect::<Vec<_>>(), now);
        let status = decision.status;
        let or_none = |count: Option<i32>| count.unwrap_or_default();
        let counts = [
            status.replicas,
            or_none(status.ready_replicas),
            or_none(status.available_replicas),
            or_none(status.terminating_replicas),
        ];
        (decision.create, decision.delete.join(" "), counts)
    }

    #[test]
    fn what_is_missing_is_made_and_the_least_worth_goes() {
        assert_eq!(decided(3, ""), (3, String::new(), [0, 0, 0, 0]));
        assert_eq!(decided(3, "RRR"), (0, String::new(), [3, 3, 3, 0]));
        assert_eq!(decided(3, "RRdf"), (1, String::new(), [2, 2, 2, 1]), "who goes or has ended does not count");
        assert_eq!(decided(1, "RrpuR"), (0, "u3 p2 r1 R4".into(), [5, 2, 2, 0]), "the youngest of equals goes first");
        assert_eq!(decided(0, "RR"), (0, "R1 R0".into(), [2, 2, 2, 0]));
    }

    #[test]
    fn a_pod_is_available_after_it_was_ready_for_long_enough() {
        let pods = [pod(0, 'R')];
        let pods: Vec<_> = pods.iter().collect();
        let at = |time: &str| decide(&set(1, 30), &pods, time.parse().unwrap());
        let early = at("2026-01-01T00:00:10Z");
        assert_eq!(early.status.available_replicas, Some(0));
        assert_eq!(early.look_again_in, Some(Duration::from_secs(20)));
        let late = at("2026-01-01T00:00:30Z");
        assert_eq!((late.status.available_replicas, late.look_again_in), (Some(1), None));
    }

    #[test]
    fn a_set_that_is_settled_or_goes_has_nothing_done() {
        let mut set = set(1, 0);
        let pods = [pod(0, 'R')];
        let now = "2026-01-01T00:01:00Z".parse().unwrap();
        set.status = Some(decide(&set, &[&pods[0]], now).status);
        let settled = Decision { status: set.status.clone().unwrap(), ..Decision::default() };
        assert_eq!(decide(&set, &[&pods[0]], now), settled);
        set.metadata.deletion_timestamp = pod(0, 'd').metadata.deletion_timestamp;
        assert_eq!(decide(&set, &[], now).create, 0);
    }

    #[test]
    fn pods_that_cannot_be_made_are_complained_of_until_they_can() {
        let at = |second: u32| Time(format!("2026-01-01T00:00:0{second}Z").parse().unwrap());
        let error = kube::Error::LinesCodecMaxLineLengthExceeded;
        let other = ReplicaSetCondition { type_: "Other".into(), ..ReplicaSetCondition::default() };
        let first = conditions(Some(vec![other.clone()]), Some(&error), at(1));
        let again = conditions(first.clone(), Some(&error), at(2));
        assert_eq!(again, first, "since when it is so stays");
        assert_eq!(again.as_ref().map(|all| all[1].type_.as_str()), Some("ReplicaFailure"));
        assert_eq!(conditions(again, None, at(3)), Some(vec![other]));
        assert_eq!(conditions(None, None, at(3)), None);
    }

    #[test]
    fn a_new_pod_is_the_templates_and_the_sets() {
        let pod: Pod = serde_json::from_value(new_pod(&set(1, 0))).unwrap();
        assert_eq!(pod.metadata.generate_name.as_deref(), Some("set-"));
        assert_eq!((pods::controller(&pod), pod.labels()["app"].as_str()), (Some("s1"), "x"));
    }
}
