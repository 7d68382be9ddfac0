//! The requests behind the graph's actions.

use kube::api::{DeleteParams, Patch, PatchParams, Preconditions, PropagationPolicy};
use kube::core::{DynamicObject, PartialObjectMeta};
use kube::{Api, Client};
use serde_json::{Value, json};

use super::words::{Action, Claim, Coordinates, Finding, Object, Propagation, Uid};
use crate::kinds::{Kind, Kinds};

/// How an action ended that did not fail.
pub(super) enum Outcome {
    /// Carried out.
    Done,
    /// The object is not what was judged any longer, or not there. Not being there may also mean that its kind is not
    /// served for a moment, so this is no reason to think that the watch will say more.
    Outdated,
}

/// The object that an action is about.
pub(super) fn subject(action: &Action) -> Uid {
    match action {
        Action::Verify(claim) => claim.uid.clone(),
        Action::Delete(object, _)
        | Action::RemoveOwners(object, _)
        | Action::StopBlocking(object)
        | Action::RemoveFinalizer(object, _) => object.uid.clone(),
    }
}

/// Asks the server whether an owner exists as a dependant claims it.
pub(super) async fn verify(client: &Client, kinds: &Kinds, claim: &Claim) -> kube::Result<Finding> {
    let Some(kind) = kinds.find(&claim.at.group, &claim.at.kind) else { return Ok(Finding::Unresolvable) };
    if kind.namespaced && claim.at.namespace.is_none() {
        // Which namespace the owner of a cluster-scoped object would be in, nobody can say.
        return Ok(Finding::Unresolvable);
    }
    let found = api(client, kind, &claim.at).get_metadata_opt(&claim.at.name).await?;
    let same = found.is_some_and(|found| found.metadata.uid.as_ref() == Some(&claim.uid));
    Ok(if same { Finding::Present } else { Finding::Absent })
}

/// Carries out everything but [`Action::Verify`], which [`verify`] does.
pub(super) async fn perform(client: &Client, kinds: &Kinds, action: &Action) -> kube::Result<Outcome> {
    let done = match action {
        Action::Verify(_) => Ok(Outcome::Done),
        Action::Delete(object, propagation) => delete(client, kinds, object, *propagation).await,
        Action::RemoveOwners(object, owners) => {
            edit(client, kinds, object, |found| {
                let mut left = found.metadata.owner_references.clone().unwrap_or_default();
                left.retain(|owner| !owners.contains(&owner.uid));
                json!({"ownerReferences": left})
            })
            .await
        }
        Action::StopBlocking(object) => {
            edit(client, kinds, object, |found| {
                let mut owners = found.metadata.owner_references.clone().unwrap_or_default();
                owners.iter_mut().for_each(|owner| owner.block_owner_deletion = Some(false));
                json!({"ownerReferences": owners})
            })
            .await
        }
        Action::RemoveFinalizer(object, finalizer) => {
            edit(client, kinds, object, |found| {
                let mut left = found.metadata.finalizers.clone().unwrap_or_default();
                left.retain(|name| name != finalizer);
                json!({"finalizers": left})
            })
            .await
        }
    };
    match done {
        Err(kube::Error::Api(status)) if status.is_not_found() || status.is_conflict() => Ok(Outcome::Outdated),
        other => other,
    }
}

async fn delete(client: &Client, kinds: &Kinds, object: &Object, propagation: Propagation) -> kube::Result<Outcome> {
    let Some(kind) = kinds.find(&object.at.group, &object.at.kind) else { return Ok(Outcome::Outdated) };
    let options = DeleteParams {
        propagation_policy: Some(match propagation {
            Propagation::Background => PropagationPolicy::Background,
            Propagation::Foreground => PropagationPolicy::Foreground,
            Propagation::Orphan => PropagationPolicy::Orphan,
        }),
        preconditions: Some(Preconditions {
            uid: Some(object.uid.clone()),
            resource_version: Some(object.version.clone()),
        }),
        ..DeleteParams::default()
    };
    api(client, kind, &object.at).delete(&object.at.name, &options).await.map(|_| Outcome::Done)
}

/// Changes metadata of the object as it is now, if it still is the same object.
async fn edit(
    client: &Client,
    kinds: &Kinds,
    object: &Object,
    change: impl Fn(&PartialObjectMeta<DynamicObject>) -> Value,
) -> kube::Result<Outcome> {
    let Some(kind) = kinds.find(&object.at.group, &object.at.kind) else { return Ok(Outcome::Outdated) };
    let api = api(client, kind, &object.at);
    let Some(found) = api.get_metadata_opt(&object.at.name).await? else { return Ok(Outcome::Outdated) };
    if found.metadata.uid.as_ref() != Some(&object.uid) {
        return Ok(Outcome::Outdated);
    }
    let mut metadata = change(&found);
    metadata["resourceVersion"] = json!(found.metadata.resource_version);
    let patch = Patch::Merge(json!({"metadata": metadata}));
    api.patch_metadata(&object.at.name, &PatchParams::default(), &patch).await.map(|_| Outcome::Done)
}

fn api(client: &Client, kind: &Kind, at: &Coordinates) -> Api<DynamicObject> {
    match &at.namespace {
        Some(namespace) if kind.namespaced => Api::namespaced_with(client.clone(), namespace, &kind.resource),
        _ => Api::all_with(client.clone(), &kind.resource),
    }
}
