//! Claims get a volume each, of the size they ask for, and the volume goes with its claim.
//!
//! [`settle`] decides. There are no classes to look at: every volume is a place on this machine, or only in memory. A
//! claim that asks for more than it did gets more. Both are held while they are used, which [`crate::protection`] ends.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};

use crate::patience::{Again, Troubles};
use crate::watched::{Key, Watched};

/// Says that a volume was made for its claim, and by whom.
const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";

/// Us, as who provisions.
const US: &str = "evenkeel.io/node";

/// Something to write.
#[derive(Debug, Clone, PartialEq)]
pub enum Act {
    /// A new volume.
    CreateVolume(Value),
    /// A volume's new size.
    ResizeVolume(String, Quantity),
    /// A volume's phase.
    VolumeBound(String),
    /// A claim's volume: namespace, claim, volume.
    Bind(String, String, String),
    /// A claim's new status: namespace, claim, status.
    ClaimStatus(String, String, Value),
    /// A volume that nobody claims any more.
    DeleteVolume(String),
}

/// Settles claims until dropped.
pub async fn run(client: Client) {
    let mut claims = Watched::<PersistentVolumeClaim>::all(&client);
    let mut volumes = Watched::<PersistentVolume>::all(&client);
    let (mut again, mut troubles) = (Again::default(), Troubles::default());
    loop {
        tokio::select! {
            () = claims.news() => (),
            () = volumes.news() => (),
            () = again.due() => (),
        }
        if claims.is_complete() && volumes.is_complete() {
            // One thing leads to the next: a volume, then the claim's binding, then both their states.
            loop {
                let acts = settle(claims.iter().map(AsRef::as_ref), volumes.iter().map(AsRef::as_ref));
                let acts: Vec<Act> = acts.into_iter().filter(|act| !troubles.hold(&act.subject())).collect();
                if acts.is_empty() {
                    break;
                }
                for act in acts {
                    let of = act.subject();
                    let done = perform(&client, act, &mut claims, &mut volumes).await;
                    troubles.after("claims", &of, done);
                }
            }
            again.at(troubles.next());
        }
    }
}

impl Act {
    /// What is written.
    fn subject(&self) -> Key {
        match self {
            Self::Bind(namespace, name, _) | Self::ClaimStatus(namespace, name, _) => (namespace.clone(), name.clone()),
            Self::ResizeVolume(name, _) | Self::VolumeBound(name) | Self::DeleteVolume(name) => {
                (String::new(), name.clone())
            }
            Self::CreateVolume(made) => {
                let name = made.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
                (String::new(), name.to_owned())
            }
        }
    }
}

async fn perform(
    client: &Client,
    act: Act,
    claims: &mut Watched<PersistentVolumeClaim>,
    volumes: &mut Watched<PersistentVolume>,
) -> kube::Result<()> {
    let of_volumes = Api::<PersistentVolume>::all(client.clone());
    let of_claims = |namespace: &str| Api::<PersistentVolumeClaim>::namespaced(client.clone(), namespace);
    let none = PatchParams::default();
    match act {
        Act::CreateVolume(volume) => {
            let volume = serde_json::from_value(volume).map_err(kube::Error::SerdeError)?;
            volumes.wrote(of_volumes.create(&PostParams::default(), &volume).await?);
        }
        Act::ResizeVolume(name, size) => {
            let patch = Patch::Merge(json!({"spec": {"capacity": {"storage": size}}}));
            volumes.wrote(of_volumes.patch(&name, &none, &patch).await?);
        }
        Act::VolumeBound(name) => {
            let patch = Patch::Merge(json!({"status": {"phase": "Bound"}}));
            volumes.wrote(of_volumes.patch_status(&name, &none, &patch).await?);
        }
        Act::Bind(namespace, name, volume) => {
            let annotations =
                json!({"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes"});
            let patch = Patch::Merge(json!({"metadata": {"annotations": annotations}, "spec": {"volumeName": volume}}));
            claims.wrote(of_claims(&namespace).patch(&name, &none, &patch).await?);
        }
        Act::ClaimStatus(namespace, name, status) => {
            let patch = Patch::Merge(json!({"status": status}));
            claims.wrote(of_claims(&namespace).patch_status(&name, &none, &patch).await?);
        }
        Act::DeleteVolume(name) => {
            let volume = volumes.get("", &name).cloned();
            match of_volumes.delete(&name, &DeleteParams::default()).await {
                Err(kube::Error::Api(status)) if status.is_not_found() => (),
                other => drop(other?),
            }
            volume.iter().for_each(|volume| volumes.deleted(volume));
        }
    }
    Ok(())
}

/// What to write next, for all claims and volumes; nothing when all is settled.
pub fn settle<'a>(
    claims: impl Iterator<Item = &'a PersistentVolumeClaim>,
    volumes: impl Iterator<Item = &'a PersistentVolume>,
) -> Vec<Act> {
    let volumes: BTreeMap<String, &PersistentVolume> = volumes.map(|volume| (volume.name_any(), volume)).collect();
    let mut there = BTreeSet::new();
    let mut acts = Vec::new();
    for claim in claims {
        there.extend(claim.uid());
        if claim.metadata.deletion_timestamp.is_none() {
            acts.extend(next(claim, &volumes));
        }
    }
    let unclaimed = volumes.values().filter(|volume| {
        let ours = volume.annotations().get(PROVISIONED_BY).is_some_and(|by| by == US);
        let claim = volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref()?.uid.clone());
        let stays = volume.metadata.deletion_timestamp.is_none();
        ours && stays && claim.is_none_or(|uid| !there.contains(&uid))
    });
    acts.extend(unclaimed.map(|volume| Act::DeleteVolume(volume.name_any())));
    acts
}

/// The next thing to write for a claim.
fn next(claim: &PersistentVolumeClaim, volumes: &BTreeMap<String, &PersistentVolume>) -> Option<Act> {
    let (namespace, name) = (claim.namespace().unwrap_or_default(), claim.name_any());
    let spec = claim.spec.as_ref()?;
    let asked = spec.resources.as_ref()?.requests.as_ref()?.get("storage")?;
    let bound_to = spec.volume_name.as_deref().filter(|volume| !volume.is_empty());
    let own = format!("pvc-{}", claim.uid().unwrap_or_default());
    // One that names a volume of somebody else's is left to them.
    if bound_to.is_some_and(|volume| volume != own) {
        return None;
    }
    let Some(volume) = volumes.get(&own) else { return Some(Act::CreateVolume(new_volume(claim, &own, asked))) };
    let size = volume.spec.as_ref().and_then(|spec| spec.capacity.as_ref()?.get("storage"));
    if size != Some(asked) {
        return Some(Act::ResizeVolume(own, asked.clone()));
    }
    if bound_to.is_none() {
        return Some(Act::Bind(namespace, name, own));
    }
    if volume.status.as_ref().and_then(|status| status.phase.as_deref()) != Some("Bound") {
        return Some(Act::VolumeBound(own));
    }
    let status = claim.status.as_ref();
    let has = status.and_then(|status| status.capacity.as_ref()?.get("storage"));
    if status.and_then(|status| status.phase.as_deref()) != Some("Bound") || has != Some(asked) {
        let status = json!({"phase": "Bound", "accessModes": spec.access_modes, "capacity": {"storage": asked}});
        return Some(Act::ClaimStatus(namespace, name, status));
    }
    None
}

fn new_volume(claim: &PersistentVolumeClaim, name: &str, size: &Quantity) -> Value {
    let spec = claim.spec.as_ref();
    let reference = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": claim.namespace(), "name": claim.name_any(),
        "uid": claim.uid(),
    });
    json!({
        "apiVersion": "v1", "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": {PROVISIONED_BY: US}},
        "spec": {
            "capacity": {"storage": size}, "accessModes": spec.and_then(|spec| spec.access_modes.clone()),
            "persistentVolumeReclaimPolicy": "Delete", "claimRef": reference,
            "storageClassName": spec.and_then(|spec| spec.storage_class_name.clone()).unwrap_or_default(),
            "volumeMode": spec.and_then(|spec| spec.volume_mode.clone()).unwrap_or_else(|| "Filesystem".into()),
            // Where it really is, if anywhere, is the kubelet's business.
            "hostPath": {"path": format!("/var/lib/evenkeel/volumes/{}", claim.uid().unwrap_or_default())},
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(value: Value) -> PersistentVolumeClaim {
        let mut claim = json!({"metadata": {"name": "data-0", "namespace": "ns", "uid": "u1"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "10Gi"}}}});
        for (field, value) in value.as_object().unwrap() {
            claim.pointer_mut(&field[..field.rfind('/').unwrap()]).unwrap()[&field[field.rfind('/').unwrap() + 1..]] =
                value.clone();
        }
        serde_json::from_value(claim).unwrap()
    }

    /// Carries out what is settled as a server would; returns what was done.
    fn play(claims: &mut [PersistentVolumeClaim], volumes: &mut Vec<PersistentVolume>) -> Vec<&'static str> {
        let mut done = Vec::new();
        for _ in 0..20 {
            let acts = settle(claims.iter(), volumes.iter());
            if acts.is_empty() {
                return done;
            }
            for act in acts {
                let volume = |volumes: &mut Vec<PersistentVolume>, name: &str| {
                    volumes.iter().position(|volume| volume.name_any() == name).unwrap()
                };
                match act {
                    Act::CreateVolume(made) => {
                        volumes.push(serde_json::from_value(made).unwrap());
                        done.push("create");
                    }
                    Act::ResizeVolume(name, size) => {
                        let at = volume(volumes, &name);
                        volumes[at].spec.as_mut().unwrap().capacity = Some([("storage".to_owned(), size)].into());
                        done.push("resize");
                    }
                    Act::VolumeBound(name) => {
                        let at = volume(volumes, &name);
                        volumes[at].status.get_or_insert_default().phase = Some("Bound".into());
                        done.push("bound");
                    }
                    Act::Bind(_, name, to) => {
                        let claim = claims.iter_mut().find(|claim| claim.name_any() == name).unwrap();
                        claim.spec.as_mut().unwrap().volume_name = Some(to);
                        done.push("bind");
                    }
                    Act::ClaimStatus(_, name, status) => {
                        let claim = claims.iter_mut().find(|claim| claim.name_any() == name).unwrap();
                        claim.status = Some(serde_json::from_value(status).unwrap());
                        done.push("status");
                    }
                    Act::DeleteVolume(name) => {
                        let at = volume(volumes, &name);
                        volumes.remove(at);
                        done.push("delete");
                    }
                }
            }
        }
        panic!("never settled: {done:?}");
    }

    #[test]
    fn a_claim_gets_a_volume_grows_and_takes_it_along() {
        let mut claims = vec![claim(json!({}))];
        let mut volumes = Vec::new();
        assert_eq!(play(&mut claims, &mut volumes), ["create", "bind", "bound", "status"]);
        assert_eq!(claims[0].status.as_ref().unwrap().phase.as_deref(), Some("Bound"));
        let more = [("storage".to_owned(), Quantity("20Gi".into()))].into();
        claims[0].spec.as_mut().unwrap().resources.as_mut().unwrap().requests = Some(more);
        assert_eq!(play(&mut claims, &mut volumes), ["resize", "status"]);
        claims.clear();
        assert_eq!(play(&mut claims, &mut volumes), ["delete"]);
        assert!(volumes.is_empty());
    }

    #[test]
    fn what_belongs_to_others_is_left_alone() {
        let elsewhere = claim(json!({"/spec/volumeName": "nfs"}));
        let theirs: PersistentVolume = serde_json::from_value(json!({"metadata": {"name": "nfs"}})).unwrap();
        assert_eq!(settle([&elsewhere].into_iter(), [&theirs].into_iter()), []);
        let going = claim(json!({"/metadata/deletionTimestamp": "2026-01-01T00:00:00Z"}));
        assert_eq!(settle([&going].into_iter(), std::iter::empty()), []);
    }

    #[test]
    fn a_claim_of_the_same_name_gets_its_own_volume() {
        let mut claims = vec![claim(json!({}))];
        let mut volumes = Vec::new();
        play(&mut claims, &mut volumes);
        claims = vec![claim(json!({"/metadata/uid": "u2"}))];
        play(&mut claims, &mut volumes);
        assert_eq!(volumes.iter().map(|volume| volume.name_any()).collect::<Vec<_>>(), ["pvc-u2"]);
    }
}
