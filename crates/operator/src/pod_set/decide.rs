//! From a pod set and the pods there are to what has to be made and what has to go.

use std::collections::{BTreeMap, BTreeSet};

use evenkeel_api::{
    Condition, StrimziPodSet, StrimziPodSetStatus,
    annotations::{RESOURCE_REVISION, REVISION},
    conditions, labels,
};
use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::Pod,
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
};
use kube::Resource;

/// What was seen of a pod set.
#[derive(Clone, Copy, Debug)]
pub struct Observation<'a> {
    /// The set.
    pub set: &'a StrimziPodSet,
    /// The pods that its selector finds.
    pub pods: &'a [Pod],
    /// The present moment.
    pub now: Timestamp,
}

/// What to do.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decision {
    /// Pods to make.
    pub create: Vec<Pod>,
    /// Pods to take over, with all their owners.
    pub adopt: Vec<Adoption>,
    /// Pods to delete: name and uid.
    pub delete: Vec<(String, String)>,
    /// The status that the set should have.
    pub status: StrimziPodSetStatus,
}

/// A pod that gets an owner.
#[derive(Clone, Debug, PartialEq)]
pub struct Adoption {
    /// Its name.
    pub pod: String,
    /// The version that this was decided for.
    pub version: Option<String>,
    /// Its owners, ours with them.
    pub owners: Vec<OwnerReference>,
}

/// Why nothing can be done for a set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// Its selector would find every pod of the namespace.
    #[error("spec.selector.matchLabels is empty, so every pod of the namespace would belong to the set")]
    NoSelector,
    /// A description is no pod.
    #[error("spec.pods[{index}] is no pod: {why}")]
    NoPod {
        /// Which.
        index: usize,
        /// What is wrong.
        why: String,
    },
}

/// Whether a set is one to look after: it says whose it is, and is not on its way out. What is being deleted is left to
/// the garbage collector; whoever deletes without cascade wants the pods to stay as they are.
pub fn concerns(set: &ObjectMeta) -> Option<&str> {
    let found = set.labels.as_ref()?;
    let is_ours = found.get(labels::KIND).is_some_and(|kind| kind == "Kafka");
    found.get(labels::CLUSTER).map(String::as_str).filter(|_| is_ours && set.deletion_timestamp.is_none())
}

/// The labels by which a set finds its pods.
pub fn selector(set: &StrimziPodSet) -> Result<String, Unusable> {
    let wanted = set.spec.selector.match_labels.iter().flatten();
    let text = wanted.map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(",");
    if text.is_empty() { Err(Unusable::NoSelector) } else { Ok(text) }
}

/// What to do for a set.
pub fn decide(seen: Observation<'_>) -> Result<Decision, Unusable> {
    selector(seen.set)?;
    let listed = listed(seen.set)?;
    let mut there: BTreeMap<&str, &Pod> =
        seen.pods.iter().filter_map(|pod| Some((pod.metadata.name.as_deref()?, pod))).collect();
    let owner = seen.set.controller_owner_ref(&()).map(|owner| OwnerReference {
        // Nothing has to wait for a pod, so nobody needs the right to hold others up.
        block_owner_deletion: None,
        ..owner
    });
    let mut decision = Decision::default();
    let (mut ready, mut current) = (0, 0);
    for pod in &listed {
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        let Some(found) = there.remove(name) else {
            decision.create.push(made(pod, seen.set, owner.as_ref()));
            continue;
        };
        ready += i32::from(is_ready(found));
        current += i32::from([REVISION, RESOURCE_REVISION].iter().all(|key| note(found, key) == note(pod, key)));
        if found.metadata.deletion_timestamp.is_some() {
            continue;
        }
        if has_ended(found) {
            // The event of its end makes the next one.
            decision.delete.push(identity(found));
        } else if let Some(adoption) = adoption(found, owner.as_ref()) {
            decision.adopt.push(adoption);
        }
    }
    let leaving: Vec<&Pod> = there.into_values().filter(|pod| !is_controlled_by_another(pod, owner.as_ref())).collect();
    let live = leaving.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
    decision.delete.extend(live.map(|pod| identity(pod)));
    decision.status = StrimziPodSetStatus {
        conditions: Vec::new(),
        observed_generation: seen.set.metadata.generation,
        pods: count(listed.len() + leaving.len()),
        ready_pods: ready,
        current_pods: current,
    };
    Ok(decision)
}

/// The status of a set for which something went wrong.
pub fn failed(set: &StrimziPodSet, why: &str, now: Timestamp) -> StrimziPodSetStatus {
    let error = Condition {
        type_: "Error".to_owned(),
        status: "true".to_owned(),
        reason: Some("PodSetError".to_owned()),
        message: Some(why.to_owned()),
        last_transition_time: None,
    };
    let before = set.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    StrimziPodSetStatus {
        conditions: conditions::settle([error], before, now),
        observed_generation: set.metadata.generation,
        ..StrimziPodSetStatus::default()
    }
}

fn listed(set: &StrimziPodSet) -> Result<Vec<Pod>, Unusable> {
    let mut names = BTreeSet::new();
    let read = |(index, described): (usize, &evenkeel_api::FreeForm)| {
        let value = serde_json::to_value(described).and_then(serde_json::from_value::<Pod>);
        let pod = value.map_err(|error| Unusable::NoPod { index, why: error.to_string() })?;
        let name = pod.metadata.name.clone().unwrap_or_default();
        if name.is_empty() {
            return Err(Unusable::NoPod { index, why: "it has no name".to_owned() });
        }
        if !names.insert(name.clone()) {
            return Err(Unusable::NoPod { index, why: format!("another one is called {name} too") });
        }
        Ok(pod)
    };
    set.spec.pods.iter().enumerate().map(read).collect()
}

fn made(pod: &Pod, set: &StrimziPodSet, owner: Option<&OwnerReference>) -> Pod {
    let mut pod = pod.clone();
    pod.metadata.namespace = set.metadata.namespace.clone();
    pod.metadata.owner_references = owner.map(|owner| vec![owner.clone()]);
    pod.status = None;
    pod
}

fn adoption(pod: &Pod, owner: Option<&OwnerReference>) -> Option<Adoption> {
    let owner = owner?;
    let mut owners = pod.metadata.owner_references.clone().unwrap_or_default();
    // One that another controller holds is not taken away from it.
    if owners.iter().any(|known| known.uid == owner.uid || known.controller == Some(true)) {
        return None;
    }
    owners.push(owner.clone());
    let pod_name = pod.metadata.name.clone().unwrap_or_default();
    Some(Adoption { pod: pod_name, version: pod.metadata.resource_version.clone(), owners })
}

fn is_controlled_by_another(pod: &Pod, owner: Option<&OwnerReference>) -> bool {
    let owners = pod.metadata.owner_references.iter().flatten();
    owners.into_iter().any(|known| known.controller == Some(true) && Some(&known.uid) != owner.map(|own| &own.uid))
}

fn identity(pod: &Pod) -> (String, String) {
    (pod.metadata.name.clone().unwrap_or_default(), pod.metadata.uid.clone().unwrap_or_default())
}

pub(crate) fn has_ended(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Failed" | "Succeeded"))
}

/// Whether a pod is Ready and not on its way out.
pub fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let says_so = conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True");
    says_so && pod.metadata.deletion_timestamp.is_none()
}

/// Since when a pod is, or is not, ready.
pub fn ready_since(pod: &Pod) -> Option<Timestamp> {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let changed = conditions.into_iter().find(|condition| condition.type_ == "Ready")?.last_transition_time.as_ref()?;
    Some(changed.0)
}

fn note<'a>(pod: &'a Pod, key: &str) -> Option<&'a String> {
    pod.metadata.annotations.as_ref().and_then(|notes| notes.get(key))
}

fn count(many: usize) -> i32 {
    i32::try_from(many).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn set(pods: Value) -> StrimziPodSet {
        serde_json::from_value(json!({
            "apiVersion": "core.strimzi.io/v1", "kind": "StrimziPodSet",
            "metadata": {"name": "c-a", "namespace": "ns", "uid": "set", "generation": 3,
                "labels": {"strimzi.io/kind": "Kafka", "strimzi.io/cluster": "c"}},
            "spec": {"selector": {"matchLabels": {"strimzi.io/cluster": "c"}}, "pods": pods},
        }))
        .unwrap()
    }

    fn described(name: &str, revision: &str) -> Value {
        json!({"metadata": {"name": name, "annotations": {"strimzi.io/revision": revision}}, "spec": {"containers": []}})
    }

    fn pod(name: &str, revision: &str, phase: &str, ready: bool) -> Pod {
        serde_json::from_value(json!({
            "metadata": {"name": name, "uid": format!("uid-{name}"), "resourceVersion": "7",
                "annotations": {"strimzi.io/revision": revision},
                "ownerReferences": [{"apiVersion": "core.strimzi.io/v1", "kind": "StrimziPodSet", "name": "c-a",
                    "uid": "set", "controller": true}]},
            "status": {"phase": phase, "conditions": [{"type": "Ready", "status": if ready { "True" } else { "False" }}]},
        }))
        .unwrap()
    }

    fn decided(set: &StrimziPodSet, pods: &[Pod]) -> Decision {
        decide(Observation { set, pods, now: Timestamp::UNIX_EPOCH }).unwrap()
    }

    fn counters(decision: &Decision) -> [i32; 3] {
        [decision.status.pods, decision.status.ready_pods, decision.status.current_pods]
    }

    #[test]
    fn missing_pods_are_made_with_their_owner() {
        let set = set(json!([described("c-a-0", "x"), described("c-a-1", "x")]));
        let found = decided(&set, &[pod("c-a-1", "x", "Running", true)]);
        let [made] = &found.create[..] else { panic!("{found:?}") };
        assert_eq!((made.metadata.name.as_deref(), made.metadata.namespace.as_deref()), (Some("c-a-0"), Some("ns")));
        let owner = &made.metadata.owner_references.as_ref().unwrap()[0];
        assert_eq!((owner.uid.as_str(), owner.controller), ("set", Some(true)));
        assert!(found.delete.is_empty() && found.adopt.is_empty());
        assert_eq!(counters(&found), [2, 1, 1]);
        assert_eq!(found.status.observed_generation, Some(3));
    }

    #[test]
    fn pods_that_ended_go_and_those_that_differ_stay() {
        let set = set(json!([described("f", "x"), described("s", "x"), described("old", "x")]));
        let pods =
            [pod("f", "x", "Failed", false), pod("s", "x", "Succeeded", false), pod("old", "w", "Running", true)];
        let found = decided(&set, &pods);
        let gone: Vec<_> = found.delete.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(gone, ["f", "s"]);
        assert!(found.create.is_empty(), "the event of their end makes the next ones");
        assert_eq!(counters(&found), [3, 1, 2]);
    }

    #[test]
    fn pods_that_are_not_listed_go_once() {
        let mut going = pod("c-a-2", "x", "Running", true);
        going.metadata.deletion_timestamp =
            Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(Timestamp::UNIX_EPOCH));
        let mut foreign = pod("c-a-3", "x", "Running", true);
        foreign.metadata.owner_references.as_mut().unwrap()[0].uid = "another".into();
        let pods = [pod("c-a-1", "x", "Running", true), going, foreign];
        let found = decided(&set(json!([])), &pods);
        assert_eq!(found.delete, [("c-a-1".to_owned(), "uid-c-a-1".to_owned())]);
        assert_eq!(counters(&found), [2, 0, 0], "those on their way out count until they are gone");
    }

    #[test]
    fn orphans_are_taken_over_and_others_pods_are_not() {
        let mut orphan = pod("c-a-0", "x", "Running", true);
        orphan.metadata.owner_references = None;
        let mut foreign = pod("c-a-1", "x", "Running", true);
        foreign.metadata.owner_references.as_mut().unwrap()[0].uid = "another".into();
        let found = decided(&set(json!([described("c-a-0", "x"), described("c-a-1", "x")])), &[orphan, foreign]);
        let [adoption] = &found.adopt[..] else { panic!("{found:?}") };
        assert_eq!((adoption.pod.as_str(), adoption.version.as_deref()), ("c-a-0", Some("7")));
    }

    #[test]
    fn what_is_no_list_of_pods_is_refused() {
        for (pods, says) in [
            (json!([{"metadata": {"name": 3}}]), "spec.pods[0] is no pod"),
            (json!([described("a", "x"), described("", "x")]), "spec.pods[1] is no pod: it has no name"),
            (json!([described("a", "x"), described("a", "x")]), "another one is called a too"),
        ] {
            let error = decide(Observation { set: &set(pods), pods: &[], now: Timestamp::UNIX_EPOCH }).unwrap_err();
            assert!(error.to_string().contains(says), "{error}");
        }
        let mut all = set(json!([]));
        all.spec.selector.match_labels = None;
        assert_eq!(selector(&all), Err(Unusable::NoSelector), "else everything in the namespace would go");
        let status = failed(&all, "why", Timestamp::UNIX_EPOCH);
        assert_eq!((status.conditions[0].type_.as_str(), status.conditions[0].status.as_str()), ("Error", "true"));
    }

    #[test]
    fn sets_of_others_and_those_on_their_way_out_are_left_alone() {
        let ours = set(json!([]));
        assert_eq!(concerns(&ours.metadata), Some("c"));
        let mut unlabelled = ours.clone();
        unlabelled.metadata.labels = None;
        assert_eq!(concerns(&unlabelled.metadata), None);
        let mut connect = ours.clone();
        connect.metadata.labels.as_mut().unwrap().insert("strimzi.io/kind".into(), "KafkaConnect".into());
        assert_eq!(concerns(&connect.metadata), None);
        let mut going = ours;
        going.metadata.deletion_timestamp =
            Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(Timestamp::UNIX_EPOCH));
        assert_eq!(concerns(&going.metadata), None);
    }
}
