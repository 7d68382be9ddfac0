//! Claims and volumes that go are held while somebody uses them, and let go when nobody does.
//!
//! The server puts a finalizer on every new claim and every new volume; whoever deletes one waits until it is taken off
//! again. [`unused_claims`] and [`unused_volumes`] decide of which. A claim is used by pods that have a node, even by
//! those that have ended: one without a node would not be started with a claim that goes. A volume is used by the claim
//! that it names, or, if it names none, by those that name it.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use serde_json::json;

use crate::patience::{Again, Troubles};
use crate::watched::{Key, Watchable, Watched, key};

/// Holds a claim that goes while pods use it.
const OF_CLAIMS: &str = "kubernetes.io/pvc-protection";

/// Holds a volume that goes while it is claimed.
const OF_VOLUMES: &str = "kubernetes.io/pv-protection";

/// One that loses its protection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    /// Its namespace, empty for volumes, and its name.
    pub of: (String, String),
    /// The version that was looked at.
    pub version: Option<String>,
    /// The finalizers of others, which stay.
    pub left: Vec<String>,
}

/// Lets go what nobody uses, until dropped.
pub async fn run(client: Client) {
    let mut claims = Watched::<PersistentVolumeClaim>::all(&client);
    let mut volumes = Watched::<PersistentVolume>::all(&client);
    // Pods are many, so they are watched only while a claim goes. A watch that began after its deletion tells of every
    // pod that had a node by then.
    let mut pods: Option<Watched<Pod>> = None;
    let mut going = BTreeSet::new();
    let (mut again, mut troubles) = (Again::default(), Troubles::default());
    loop {
        tokio::select! {
            () = claims.news() => (),
            () = volumes.news() => (),
            () = news(&mut pods) => (),
            () = again.due() => (),
        }
        if !claims.is_complete() || !volumes.is_complete() {
            continue;
        }
        let held = claims.iter().filter(|claim| release(&***claim, OF_CLAIMS).is_some());
        let now_going: BTreeSet<String> = held.filter_map(|claim| claim.uid()).collect();
        if now_going.is_empty() {
            pods = None;
        } else if !now_going.is_subset(&going) {
            pods = Some(Watched::all(&client));
        }
        going = now_going;
        if let Some(pods) = pods.as_ref().filter(|pods| pods.is_complete()) {
            let unused = unused_claims(claims.iter().map(AsRef::as_ref), pods.iter().map(AsRef::as_ref));
            perform(unused, &mut claims, &mut troubles, |namespace| Api::namespaced(client.clone(), namespace)).await;
        }
        let unused = unused_volumes(volumes.iter().map(AsRef::as_ref), claims.iter().map(AsRef::as_ref));
        perform(unused, &mut volumes, &mut troubles, |_| Api::all(client.clone())).await;
        again.at(troubles.next());
    }
}

async fn news(pods: &mut Option<Watched<Pod>>) {
    match pods {
        Some(pods) => pods.news().await,
        None => std::future::pending().await,
    }
}

async fn perform<K: Watchable>(
    releases: Vec<Release>,
    watched: &mut Watched<K>,
    troubles: &mut Troubles,
    api: impl Fn(&str) -> Api<K>,
) {
    for Release { of, version, left } in releases {
        if troubles.hold(&of) {
            continue;
        }
        // With its version: finalizers that others have put there since must not be lost.
        let patch = Patch::Merge(json!({"metadata": {"resourceVersion": version, "finalizers": left}}));
        let patched = match api(&of.0).patch(&of.1, &PatchParams::default(), &patch).await {
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(None),
            other => other.map(Some),
        };
        if let Some(Some(object)) = troubles.after("protection", &of, patched) {
            watched.wrote(object);
        }
    }
}

/// The claims that go and that no pod uses.
pub fn unused_claims<'a>(
    claims: impl Iterator<Item = &'a PersistentVolumeClaim>,
    pods: impl Iterator<Item = &'a Pod>,
) -> Vec<Release> {
    let used: BTreeSet<Key> = pods.flat_map(used_by).collect();
    claims.filter_map(|claim| release(claim, OF_CLAIMS)).filter(|release| !used.contains(&release.of)).collect()
}

/// The volumes that go and that no claim uses.
pub fn unused_volumes<'a>(
    volumes: impl Iterator<Item = &'a PersistentVolume>,
    claims: impl Iterator<Item = &'a PersistentVolumeClaim>,
) -> Vec<Release> {
    let claims: Vec<_> = claims.collect();
    let held = volumes.filter_map(|volume| Some((volume, release(volume, OF_VOLUMES)?)));
    let unused = held.filter(|(volume, _)| !claims.iter().any(|claim| uses(claim, volume)));
    unused.map(|(_, release)| release).collect()
}

/// What it is let go with, if it goes and is held by this finalizer.
fn release(object: &impl ResourceExt, finalizer: &str) -> Option<Release> {
    object.meta().deletion_timestamp.as_ref()?;
    let left: Vec<String> = object.finalizers().iter().filter(|name| *name != finalizer).cloned().collect();
    let held = left.len() < object.finalizers().len();
    held.then(|| Release { of: key(object), version: object.resource_version(), left })
}

/// The claims that a pod uses.
fn used_by(pod: &Pod) -> Vec<Key> {
    let has_node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).is_some_and(|node| !node.is_empty());
    let volumes = pod.spec.iter().filter(|_| has_node).flat_map(|spec| spec.volumes.iter().flatten());
    let names = volumes.filter_map(|volume| {
        let own = volume.ephemeral.as_ref().map(|_| format!("{}-{}", pod.name_any(), volume.name));
        volume.persistent_volume_claim.as_ref().map(|source| source.claim_name.clone()).or(own)
    });
    names.map(|name| (pod.namespace().unwrap_or_default(), name)).collect()
}

fn uses(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> bool {
    match volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref()) {
        Some(named) => {
            claim.metadata.name == named.name
                && claim.metadata.namespace == named.namespace
                && (named.uid.is_none() || claim.metadata.uid == named.uid)
        }
        None => claim.spec.as_ref().and_then(|spec| spec.volume_name.as_ref()) == volume.metadata.name.as_ref(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn claim(metadata: Value, volume: Option<&str>) -> PersistentVolumeClaim {
        let mut claim = json!({
            "metadata": {"name": "data-0", "namespace": "ns", "uid": "u1", "resourceVersion": "7"},
            "spec": {"volumeName": volume},
        });
        claim["metadata"].as_object_mut().unwrap().extend(metadata.as_object().unwrap().clone());
        serde_json::from_value(claim).unwrap()
    }

    fn going(finalizers: &[&str]) -> Value {
        json!({"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": finalizers})
    }

    fn volume(metadata: Value, claim: Value) -> PersistentVolume {
        let mut volume = json!({"metadata": {"name": "v"}, "spec": {"claimRef": claim}});
        volume["metadata"].as_object_mut().unwrap().extend(metadata.as_object().unwrap().clone());
        serde_json::from_value(volume).unwrap()
    }

    fn pod(namespace: &str, node: Option<&str>, volume: Value, phase: &str) -> Pod {
        let pod = json!({
            "metadata": {"name": "p", "namespace": namespace},
            "spec": {"containers": [], "nodeName": node, "volumes": [volume]}, "status": {"phase": phase},
        });
        serde_json::from_value(pod).unwrap()
    }

    #[test]
    fn a_claim_that_goes_is_let_go_when_no_pod_with_a_node_uses_it() {
        let claim_of = |name: &str| json!({"name": "data", "persistentVolumeClaim": {"claimName": name}});
        let held = claim(going(&[OF_CLAIMS, "other"]), None);
        let let_go = |pods: &[Pod]| unused_claims([&held].into_iter(), pods.iter());
        let of = ("ns".to_owned(), "data-0".to_owned());
        let released = vec![Release { of, version: Some("7".into()), left: vec!["other".into()] }];
        assert_eq!(let_go(&[]), released);
        assert_eq!(let_go(&[pod("ns", None, claim_of("data-0"), "Pending")]), released, "no node");
        assert_eq!(let_go(&[pod("other", Some("n"), claim_of("data-0"), "Running")]), released, "elsewhere");
        assert_eq!(let_go(&[pod("ns", Some("n"), claim_of("data-1"), "Running")]), released, "another claim");
        assert_eq!(let_go(&[pod("ns", Some("n"), claim_of("data-0"), "Running")]), []);
        assert_eq!(let_go(&[pod("ns", Some("n"), claim_of("data-0"), "Succeeded")]), [], "ended, but there");

        let own = claim(
            json!({"name": "p-data", "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": [OF_CLAIMS]}),
            None,
        );
        let ephemeral = pod("ns", Some("n"), json!({"name": "data", "ephemeral": {}}), "Running");
        assert_eq!(unused_claims([&own].into_iter(), [&ephemeral].into_iter()), []);
    }

    #[test]
    fn what_stays_or_is_held_by_others_is_left_alone() {
        let stays = claim(json!({"finalizers": [OF_CLAIMS]}), None);
        let theirs = claim(going(&["other"]), None);
        assert_eq!(unused_claims([&stays, &theirs].into_iter(), std::iter::empty()), []);
        let stays = volume(json!({"finalizers": [OF_VOLUMES]}), Value::Null);
        assert_eq!(unused_volumes([&stays].into_iter(), std::iter::empty()), []);
    }

    #[test]
    fn a_volume_that_goes_is_let_go_when_its_claim_is_gone() {
        let released = |volume: &PersistentVolume, claims: &[PersistentVolumeClaim]| {
            !unused_volumes([volume].into_iter(), claims.iter()).is_empty()
        };
        let named = volume(going(&[OF_VOLUMES]), json!({"namespace": "ns", "name": "data-0", "uid": "u1"}));
        assert!(released(&named, &[]));
        assert!(!released(&named, &[claim(json!({}), Some("v"))]));
        assert!(!released(&named, &[claim(going(&[OF_CLAIMS]), None)]), "it goes, and is not gone");
        assert!(released(&named, &[claim(json!({"uid": "u2"}), Some("v"))]), "the next claim of that name");
        let nameless = volume(going(&[OF_VOLUMES]), Value::Null);
        assert!(!released(&nameless, &[claim(json!({}), Some("v"))]));
        assert!(released(&nameless, &[claim(json!({}), Some("w")), claim(json!({}), None)]));
    }
}
