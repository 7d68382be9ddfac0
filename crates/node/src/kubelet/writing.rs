//! What the kubelet writes about a pod: its status, its real ports, and its removal.
//!
//! Every write names the pod's uid, so that the next pod of the same name is never meant.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Pod, PodStatus};
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::status::OWN_CONDITIONS;
use super::worker::Inputs;
use crate::patience::Doubling;
use crate::pods;

/// Writes about one pod.
#[derive(Debug, Clone)]
pub(super) struct Desk {
    api: Api<Pod>,
    name: String,
    uid: String,
}

impl Desk {
    /// How long the last word about a pod may take: its end does not wait for a server that is not there.
    pub(super) const LAST_WORD: Duration = Duration::from_secs(5);

    pub(super) fn of(client: &Client, pod: &Pod) -> Self {
        let api = Api::namespaced(client.clone(), &pod.namespace().unwrap_or_default());
        Self { api, name: pod.name_any(), uid: pod.uid().unwrap_or_default() }
    }

    /// The annotation with the real ports, if the pod has another one.
    pub(super) fn ports_to_write(&self, pod: &Pod, ports: &BTreeMap<u16, u16>) -> Option<String> {
        let before = pods::ports(pod);
        let same = before.as_ref().map_or(ports.is_empty(), |before| before == ports);
        if same { None } else { serde_json::to_string(ports).ok() }
    }

    /// Ports first: who sees the pod ready finds them.
    pub(super) async fn write(self, ports: Option<String>, status: Option<PodStatus>) -> kube::Result<Option<Pod>> {
        let mut written = None;
        if let Some(ports) = ports {
            let metadata = json!({"uid": self.uid, "annotations": {pods::PORTS: ports}});
            let patch = Patch::Merge(json!({"metadata": metadata}));
            written = unless_gone(self.api.patch(&self.name, &PatchParams::default(), &patch).await)?;
        }
        if let Some(status) = status {
            let status = own_words(&status).map_err(kube::Error::SerdeError)?;
            let patch = Patch::Strategic(json!({"metadata": {"uid": self.uid}, "status": status}));
            written = unless_gone(self.api.patch_status(&self.name, &PatchParams::default(), &patch).await)?;
        }
        Ok(written)
    }

    /// One try, and not for long.
    pub(super) async fn last_word(&self, ports: Option<String>, status: PodStatus) {
        let writing = self.clone().write(ports, Some(status));
        match tokio::time::timeout(Self::LAST_WORD, writing).await {
            Ok(Err(error)) => tracing::debug!(pod = self.name, %error, "could not write the last status of a pod"),
            Err(_) => tracing::debug!(pod = self.name, "the last status of a pod took too long"),
            Ok(Ok(_)) => (),
        }
    }

    /// Takes the pod out of the API; tries again until it is out, or somebody else has done it.
    pub(super) async fn remove(&self, inputs: &mut watch::Receiver<Inputs>) {
        let mut waits = Doubling::default();
        while inputs.borrow_and_update().pod.is_some() {
            match self.remove_once().await {
                Ok(()) => return,
                Err(error) => tracing::debug!(pod = self.name, %error, "could not remove a pod; trying again"),
            }
            tokio::time::sleep(waits.next().unwrap_or_default()).await;
        }
    }

    pub(super) async fn remove_once(&self) -> kube::Result<()> {
        let preconditions = Some(Preconditions { uid: Some(self.uid.clone()), resource_version: None });
        let now = DeleteParams { grace_period_seconds: Some(0), preconditions, ..DeleteParams::default() };
        unless_gone(self.api.delete(&self.name, &now).await).map(drop)
    }
}

/// A status as the kubelet writes it: conditions of others, such as readiness gates, are theirs, and may have changed
/// since we read them. Lists of conditions are merged by type; what one of ours says no more has to be taken out.
fn own_words(status: &PodStatus) -> serde_json::Result<Value> {
    let mut written = serde_json::to_value(status)?;
    if let Some(conditions) = written.get_mut("conditions").and_then(Value::as_array_mut) {
        let own = |condition: &Value| {
            condition.get("type").and_then(Value::as_str).is_some_and(|kind| OWN_CONDITIONS.contains(&kind))
        };
        conditions.retain(own);
        for condition in conditions.iter_mut().filter_map(Value::as_object_mut) {
            for field in ["reason", "message"] {
                condition.entry(field).or_insert(Value::Null);
            }
        }
    }
    Ok(written)
}

/// A pod that is gone needs no more words. A conflict is something else: another pod of the name, which the watch is
/// about to tell, or a race that was lost, after which the same is tried again.
fn unless_gone<T>(outcome: kube::Result<T>) -> kube::Result<Option<T>> {
    match outcome {
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(None),
        other => other.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_of_others_are_left_to_them() {
        let status: PodStatus = serde_json::from_value(json!({"phase": "Running", "conditions": [
            {"type": "example.com/gate", "status": "True"},
            {"type": "Ready", "status": "True"},
            {"type": "ContainersReady", "status": "False", "reason": "ContainersNotReady"},
        ]}))
        .unwrap();
        let written = own_words(&status).unwrap();
        assert_eq!(written["phase"], "Running");
        let conditions = json!([
            {"type": "Ready", "status": "True", "reason": null, "message": null},
            {"type": "ContainersReady", "status": "False", "reason": "ContainersNotReady", "message": null},
        ]);
        assert_eq!(written["conditions"], conditions);
        assert_eq!(own_words(&PodStatus::default()).unwrap(), json!({}));
    }
}
