//! The operator taken off a cluster, in an order in which nothing waits for somebody who is gone: the operator's pods
//! first, so that it puts no new finalizer on anything; then its finalizers; then everything that it was installed with.
//! Its Deployment goes with that: until then it is on record what the operator looked after, should this end halfway.

use std::time::Duration;

use evenkeel_api::{Kafka, annotations, labels};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::Pod};
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PropagationPolicy},
    core::PartialObjectMeta,
};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::{Done, Error, Manifests, Outcome, kinds::Kind, marks, scope::Scope};

/// How long the operator's pod may take to end, and how long anything may take to go.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks whether it is gone.
const PAUSE: Duration = Duration::from_millis(200);
/// How often a resource is looked at again that somebody else writes all the time.
const MOST_CONFLICTS: usize = 50;
/// The finalizers that are taken off, where they are our operator's.
const FINALIZERS: [&str; 2] = [annotations::REBALANCE_FINALIZER, annotations::AUTO_REBALANCING_FINALIZER];

/// How much is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// The operator. Clusters go on running, and their resources stay.
    Operator,
    /// The CRDs too, provided that nothing would go with them.
    Crds,
    /// The CRDs, and every cluster with them.
    Clusters,
}

/// Removes what [`super::put()`] has put. `force`: also if the operator cannot be seen to have ended.
pub async fn remove(client: &Client, manifests: &Manifests, extent: Extent, force: bool) -> Result<Vec<Done>, Error> {
    let kinds = Kind::all(client).await?;
    let mut removal = Removal { client, kinds, done: Vec::new() };
    if extent == Extent::Crds {
        removal.refuse_if_something_would_go().await?;
    }
    let scope = removal.end_the_operator(manifests.namespace(), force).await?;
    removal.release(scope).await?;
    let mut objects = manifests.objects()?;
    // Those that are needed first go last.
    objects.reverse();
    let mut going = Vec::new();
    for (kind, object) in objects {
        let stays = match kind.kind.as_str() {
            "CustomResourceDefinition" if extent == Extent::Operator => Some("the clusters stay, and need it"),
            // Whatever else somebody keeps there would go with it.
            "Namespace" if removal.is_lived_in(&object.name_any(), extent).await? => Some("there are clusters in it"),
            _ => None,
        };
        match stays {
            Some(why) => removal.note(marks::name(&kind, &object), Outcome::Left(why.to_owned())),
            None if removal.delete(&kind, &object).await? => going.push((kind, object)),
            None => {}
        }
    }
    removal.until_gone(&going).await?;
    Ok(removal.done)
}

struct Removal<'a> {
    client: &'a Client,
    kinds: Vec<Kind>,
    done: Vec<Done>,
}

impl Removal<'_> {
    fn note(&mut self, what: String, outcome: Outcome) {
        self.done.push(Done { what, outcome });
    }

    /// Node pools outlive their Kafka with their data, so every kind counts, and not clusters alone.
    async fn refuse_if_something_would_go(&self) -> Result<(), Error> {
        let mut there = Vec::new();
        for kind in self.kinds.iter().filter(|kind| kind.is_ours) {
            let found = kind.list(self.client).await?;
            let named: Vec<String> = found.iter().map(|it| format!("{}/{}", namespace(it), it.name_any())).collect();
            if !named.is_empty() {
                there.push(format!("the {} {}", kind.resource.kind, named.join(", ")));
            }
        }
        if there.is_empty() { Ok(()) } else { Err(Error::Clusters(there.join("; "))) }
    }

    /// Deletes an object that is ours; whether it is on its way.
    async fn delete(&mut self, kind: &ApiResource, object: &DynamicObject) -> Result<bool, Error> {
        let (api, what) = (marks::api(self.client, kind, object), marks::name(kind, object));
        let Some(found) = api.get_metadata_opt(&object.name_any()).await.map_err(Error::reading(&what))? else {
            return Ok(false);
        };
        if !marks::is_ours(&found.metadata) {
            self.note(what, Outcome::Left("somebody else has installed it".to_owned()));
            return Ok(false);
        }
        let how = DeleteParams { propagation_policy: Some(PropagationPolicy::Background), ..DeleteParams::default() };
        match api.delete(&object.name_any(), &how).await {
            Ok(_) => Ok(true),
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(false),
            Err(source) => Err(Error::Write { what, source }),
        }
    }

    /// Ends the operator, and waits until no pod of it runs, for it would put its finalizers back. What it looked after is
    /// what its Deployment says.
    async fn end_the_operator(&mut self, namespace: &str, force: bool) -> Result<Scope, Error> {
        let what = format!("deployment/{}", crate::seams::NAME);
        let deployments = Api::<Deployment>::namespaced(self.client.clone(), namespace);
        let found = deployments.get_opt(crate::seams::NAME).await.map_err(Error::reading(&what))?;
        if let Some(found) = &found {
            if marks::is_ours(&found.metadata) {
                let none = Patch::Merge(json!({"spec": {"replicas": 0}}));
                let scaled = deployments.patch(crate::seams::NAME, &PatchParams::default(), &none).await;
                scaled.map_err(Error::writing(&what))?;
            } else if !force {
                return Err(Error::Foreign(format!("{what} in {namespace}")));
            }
        }
        let pods = Api::<Pod>::namespaced(self.client.clone(), namespace);
        let of_operator = ListParams::default().labels(&format!("app.kubernetes.io/name={}", crate::seams::NAME));
        let begun = Instant::now();
        loop {
            let left = pods.list_metadata(&of_operator).await.map_err(Error::reading("the operator's pods"))?;
            let Some(pod) = left.items.first() else { break };
            // One on a node that is lost never goes, and runs perhaps: somebody has to know that it does not.
            if begun.elapsed() > PATIENCE {
                if force {
                    break;
                }
                return Err(Error::Running(format!("pod/{} in {namespace}", pod.name_any())));
            }
            sleep(PAUSE).await;
        }
        Ok(Scope::of(found.as_ref()))
    }

    /// Takes our finalizers off everything. A run goes on in the engine that carries it out; nobody follows it.
    async fn release(&mut self, mut scope: Scope) -> Result<(), Error> {
        let kinds = self.kinds.clone();
        let find = |name: &str| kinds.iter().find(|kind| kind.is(name));
        if let Some(sets) = find("StrimziPodSet") {
            scope.note_pod_sets(&sets.list(self.client).await?);
        }
        let Some(kind) = find("KafkaRebalance") else { return Ok(()) };
        for rebalance in kind.list(self.client).await? {
            if held_by_us(&rebalance).0.is_empty() {
                continue;
            }
            let what = format!("kafkarebalance/{} in {}", rebalance.name_any(), namespace(&rebalance));
            let kafka = match (find("Kafka"), rebalance.labels().get(labels::CLUSTER)) {
                (Some(kafkas), Some(cluster)) => self.kafka(kafkas, &namespace(&rebalance), cluster).await?,
                _ => None,
            };
            if scope.is_ours(&rebalance, kafka.as_ref()) {
                self.release_one(kind, &rebalance, what).await?;
            } else {
                self.note(what, Outcome::Left("another operator looks after its cluster".to_owned()));
            }
        }
        Ok(())
    }

    async fn release_one(
        &mut self,
        kind: &Kind,
        rebalance: &PartialObjectMeta<DynamicObject>,
        what: String,
    ) -> Result<(), Error> {
        let api = Api::<DynamicObject>::namespaced_with(self.client.clone(), &namespace(rebalance), &kind.resource);
        let name = rebalance.name_any();
        // Somebody may write it between the two; then it is looked at again.
        for _ in 0..MOST_CONFLICTS {
            let found = api.get_metadata_opt(&name).await.map_err(Error::reading(&what))?;
            let Some(found) = found else { return Ok(()) };
            let (ours, others) = held_by_us(&found);
            if ours.is_empty() {
                return Ok(());
            }
            let patch = json!({"metadata": {"finalizers": others, "resourceVersion": found.resource_version()}});
            match api.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await {
                Ok(_) => {
                    self.note(what, Outcome::Released);
                    return Ok(());
                }
                Err(kube::Error::Api(status)) if status.is_conflict() => sleep(PAUSE).await,
                Err(kube::Error::Api(status)) if status.is_not_found() => return Ok(()),
                Err(source) => return Err(Error::Write { what, source }),
            }
        }
        Err(Error::Contested(what))
    }

    /// A Kafka, of which only the metadata matters.
    async fn kafka(&self, kind: &Kind, namespace: &str, name: &str) -> Result<Option<Kafka>, Error> {
        let api = Api::<DynamicObject>::namespaced_with(self.client.clone(), namespace, &kind.resource);
        let found =
            api.get_metadata_opt(name).await.map_err(Error::reading(&format!("kafka/{name} in {namespace}")))?;
        Ok(found.map(|found| Kafka { metadata: found.metadata, ..Kafka::new(name, Default::default()) }))
    }

    /// Whether clusters live in a namespace that are to stay: all of them, or those whose definitions stay.
    async fn is_lived_in(&self, lived_in: &str, extent: Extent) -> Result<bool, Error> {
        for kind in self.kinds.iter().filter(|kind| extent != Extent::Clusters || !kind.is_ours) {
            if kind.list(self.client).await?.iter().any(|it| namespace(it) == lived_in) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Waits until these are gone.
    async fn until_gone(&mut self, going: &[(ApiResource, DynamicObject)]) -> Result<(), Error> {
        let begun = Instant::now();
        for (kind, object) in going {
            let (api, what) = (marks::api(self.client, kind, object), marks::name(kind, object));
            let is_gone = loop {
                if api.get_metadata_opt(&object.name_any()).await.map_err(Error::reading(&what))?.is_none() {
                    break true;
                }
                if begun.elapsed() > PATIENCE {
                    break false;
                }
                sleep(PAUSE).await;
            };
            self.note(what, if is_gone { Outcome::Removed } else { Outcome::Going });
        }
        Ok(())
    }
}

/// The finalizers that have names of ours, and the others.
fn held_by_us(object: &PartialObjectMeta<DynamicObject>) -> (Vec<String>, Vec<String>) {
    object.finalizers().iter().cloned().partition(|it| FINALIZERS.contains(&it.as_str()))
}

fn namespace(object: &PartialObjectMeta<DynamicObject>) -> String {
    object.namespace().unwrap_or_default()
}
