//! Deployments: replica sets for the states of a pod template, and the way from one to the next.
//!
//! `rollout` decides, `status` says how it goes; this file watches and writes.

mod rollout;
mod status;
mod template;

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, DeploymentStatus, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use crate::clock::Clock;
use crate::patience::{Again, Troubles};
use crate::pods;
use crate::watched::{Watched, key};
use rollout::{Act, Observed};
use template::{REVISION, is_current};

/// More steps than any state needs: one that takes more is looked at again later.
const STEPS: usize = 16;

/// Keeps deployments rolled out, until dropped.
pub async fn run(client: Client, clock: Clock) {
    let mut controller = Controller {
        deployments: Watched::all(&client),
        sets: Watched::all(&client),
        pods: Watched::all(&client),
        client,
        clock,
        troubles: Troubles::default(),
    };
    let mut again = Again::default();
    loop {
        tokio::select! {
            () = controller.deployments.news() => (),
            () = controller.sets.news() => (),
            () = controller.pods.news() => (),
            () = again.due() => (),
        }
        let complete = controller.deployments.is_complete() && controller.sets.is_complete();
        if complete && controller.pods.is_complete() {
            again.at(controller.round().await);
        }
    }
}

struct Controller {
    client: Client,
    clock: Clock,
    deployments: Watched<Deployment>,
    sets: Watched<ReplicaSet>,
    pods: Watched<Pod>,
    troubles: Troubles,
}

impl Controller {
    /// Brings all of them forward; says when to look again although nothing happened.
    async fn round(&mut self) -> Option<Instant> {
        let mut wake: Option<Instant> = None;
        let all: Vec<_> = self.deployments.iter().cloned().collect();
        for deployment in all {
            let of = key(deployment.as_ref());
            if self.troubles.hold(&of) {
                continue;
            }
            let done = self.bring_forward(deployment).await;
            let next = self.troubles.after("deployments", &of, done).flatten();
            wake = wake.into_iter().chain(next).min();
        }
        wake.into_iter().chain(self.troubles.next()).min()
    }

    /// Does what can be done for one deployment now, and says how it stands.
    async fn bring_forward(&mut self, mut deployment: Arc<Deployment>) -> kube::Result<Option<Instant>> {
        let (namespace, name) = (deployment.namespace().unwrap_or_default(), deployment.name_any());
        for _ in 0..STEPS {
            let acts = self.observed(&deployment, |sets| rollout::decide(&deployment, sets));
            if acts.is_empty() {
                break;
            }
            for act in acts {
                self.perform(&deployment, act).await?;
            }
            match self.deployments.get(&namespace, &name) {
                Some(newer) => deployment = newer.clone(),
                None => return Ok(None),
            }
        }
        let now = self.clock.stamp();
        let (status, look_again) = self.observed(&deployment, |sets| status::status(&deployment, sets, &now));
        if deployment.status.as_ref() != Some(&status) {
            self.write_status(&deployment, &status).await?;
        }
        Ok(look_again.map(|wait| Instant::now() + wait))
    }

    /// With the sets of a deployment.
    fn observed<T>(&self, deployment: &Deployment, look: impl FnOnce(&[Observed<'_>]) -> T) -> T {
        let namespace = deployment.namespace().unwrap_or_default();
        let owned = self.sets.within(&namespace).filter(|set| {
            let owner = pods::managing(set.owner_references());
            owner.is_some_and(|owner| Some(&owner.uid) == deployment.metadata.uid.as_ref())
        });
        let observed: Vec<_> = owned
            .map(|set| {
                let uid = set.uid().unwrap_or_default();
                let pods = self.pods.within(&namespace).filter(|pod| pods::controller(pod) == Some(&uid));
                Observed { set, alive: pods.filter(|pod| !pods::has_ended(pod)).count() }
            })
            .collect();
        look(&observed)
    }

    async fn perform(&mut self, deployment: &Deployment, act: Act) -> kube::Result<()> {
        let namespace = deployment.namespace().unwrap_or_default();
        let sets = Api::<ReplicaSet>::namespaced(self.client.clone(), &namespace);
        let none = PatchParams::default();
        let annotated = |revision: u64| json!({"metadata": {"annotations": {REVISION: revision.to_string()}}});
        match act {
            Act::Create { replicas, revision } => self.create(deployment, &sets, replicas, revision).await?,
            Act::Scale(name, replicas) => {
                let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
                self.sets.wrote(sets.patch(&name, &none, &patch).await?);
            }
            Act::Patience(name, seconds) => {
                let patch = Patch::Merge(json!({"spec": {"minReadySeconds": seconds}}));
                self.sets.wrote(sets.patch(&name, &none, &patch).await?);
            }
            Act::Number(name, revision) => {
                self.sets.wrote(sets.patch(&name, &none, &Patch::Merge(annotated(revision))).await?);
            }
            Act::NumberDeployment(revision) => {
                let api = Api::<Deployment>::namespaced(self.client.clone(), &namespace);
                let patch = Patch::Merge(annotated(revision));
                // Written with the status, it is none of what users want, and the generation stays what it is.
                self.deployments.wrote(api.patch_status(&deployment.name_any(), &none, &patch).await?);
            }
            Act::Delete(name) => {
                let set = self.sets.get(&namespace, &name).cloned();
                match sets.delete(&name, &DeleteParams::background()).await {
                    Err(kube::Error::Api(status)) if status.is_not_found() => (),
                    other => drop(other?),
                }
                set.iter().for_each(|set| self.sets.deleted(set));
            }
        }
        Ok(())
    }

    async fn create(
        &mut self,
        deployment: &Deployment,
        sets: &Api<ReplicaSet>,
        replicas: i32,
        revision: u64,
    ) -> kube::Result<()> {
        let collisions = deployment.status.as_ref().and_then(|status| status.collision_count).unwrap_or(0);
        let template = deployment.spec.as_ref().map(|spec| spec.template.clone()).unwrap_or_default();
        let hash = template::hash(&template, collisions);
        let new = template::new_set(deployment, &hash, replicas, revision);
        let new: ReplicaSet = serde_json::from_value(new).map_err(kube::Error::SerdeError)?;
        match sets.create(&PostParams::default(), &new).await {
            Ok(made) => self.sets.wrote(made),
            Err(kube::Error::Api(status)) if status.is_already_exists() => {
                let there = sets.get(&new.name_any()).await?;
                let owner = pods::managing(there.owner_references()).map(|owner| &owner.uid);
                if owner == deployment.metadata.uid.as_ref() && is_current(deployment, &there) {
                    self.sets.wrote(there);
                } else {
                    // Another template of the same name: this one gets the next.
                    let status = DeploymentStatus {
                        collision_count: Some(collisions + 1),
                        ..deployment.status.clone().unwrap_or_default()
                    };
                    self.write_status(deployment, &status).await?;
                }
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    async fn write_status(&mut self, deployment: &Deployment, status: &DeploymentStatus) -> kube::Result<()> {
        let api = Api::<Deployment>::namespaced(self.client.clone(), &deployment.namespace().unwrap_or_default());
        let status = serde_json::to_value(status).map_err(kube::Error::SerdeError)?;
        // Counts of none are left out by the API, so what was there before must be taken out.
        let before = serde_json::to_value(&deployment.status).map_err(kube::Error::SerdeError)?;
        let mut patch: Map<String, Value> =
            before.as_object().into_iter().flatten().map(|(field, _)| (field.clone(), Value::Null)).collect();
        patch.extend(status.as_object().cloned().unwrap_or_default());
        let patch = Patch::Merge(json!({"metadata": {"uid": deployment.uid()}, "status": patch}));
        match api.patch_status(&deployment.name_any(), &PatchParams::default(), &patch).await {
            Ok(written) => self.deployments.wrote(written),
            Err(kube::Error::Api(status)) if status.is_not_found() => (),
            Err(error) => return Err(error),
        }
        Ok(())
    }
}
