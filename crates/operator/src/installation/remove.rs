//! The operator taken off a cluster, in an order in which nothing waits for somebody who is gone: the operator's pods
//! first, so that it puts no new finalizer on anything; then its finalizers; then everything that it was installed with.
//! Its Deployment goes with that: until then it is on record what the operator looked after, should this end halfway.

use std::time::Duration;

use evenkeel_api::{annotations, labels};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::Pod, rbac::v1::ClusterRoleBinding};
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PropagationPolicy},
    core::PartialObjectMeta,
};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::{
    Done, Error, Manifests, Outcome,
    kinds::Kind,
    marks,
    residence::{self, Residence},
    scope::Scope,
};
use crate::kafka::objects::RACK_ROLE;

/// How long the operator's pod may take to end, and how long anything may take to go.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks whether it is gone.
const PAUSE: Duration = Duration::from_millis(200);
/// How often a resource is looked at again that somebody else writes all the time.
const MOST_CONFLICTS: usize = 50;
/// What runs the operator, as kubectl says it.
const DEPLOYMENT: &str = "deployment/evenkeel-operator";
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
    let (deployment, scope) = removal.look(manifests.namespace(), force).await?;
    match extent {
        Extent::Operator => {}
        Extent::Crds => removal.refuse_if_something_would_go().await?,
        Extent::Clusters => removal.refuse_if_others_would_lose_theirs(&scope).await?,
    }
    removal.end_the_operator(manifests.namespace(), deployment.as_ref(), force).await?;
    removal.release(&scope).await?;
    if extent == Extent::Clusters {
        removal.unbind_racks(&scope).await?;
    }
    let mut objects = manifests.objects()?;
    // Those that are needed first go last.
    objects.reverse();
    let mut going = Vec::new();
    for (kind, object) in objects {
        let stays = match kind.kind.as_str() {
            "CustomResourceDefinition" if extent == Extent::Operator => Some("the clusters stay, and need it"),
            "ClusterRole" if object.name_any() == RACK_ROLE && removal.is_bound(RACK_ROLE).await? => {
                Some("brokers of clusters with racks read their zones by it")
            }
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

    /// What the operator's Deployment says, if there is one, and what the operator looked after therefore.
    async fn look(&self, namespace: &str, force: bool) -> Result<(Option<Deployment>, Scope), Error> {
        let residence = residence::look(self.client, namespace).await?;
        let deployments = Api::<Deployment>::namespaced(self.client.clone(), namespace);
        let found = deployments.get_opt(crate::seams::NAME).await.map_err(Error::reading(DEPLOYMENT))?;
        let mut scope = match &found {
            Some(found) => Scope::of(found).or_else(|unclear| if force { Ok(Scope::all()) } else { Err(unclear) })?,
            None if force || residence == Residence::Here => Scope::all(),
            None => Scope::nothing(),
        };
        if let Some(sets) = self.kind("StrimziPodSet") {
            scope.note_pod_sets(&sets.list(self.client).await?);
        }
        Ok((found, scope))
    }

    fn kind(&self, name: &str) -> Option<&Kind> {
        self.kinds.iter().find(|kind| kind.is(name))
    }

    /// Whether our operator looked after the cluster that an object is, or is part of.
    async fn is_ours(
        &self,
        scope: &Scope,
        kind: &Kind,
        object: &PartialObjectMeta<DynamicObject>,
    ) -> Result<bool, Error> {
        let cluster = cluster(kind, object);
        let kafka = match (self.kind("Kafka"), &cluster) {
            (Some(kafkas), Some(cluster)) => kafkas.kafka(self.client, &namespace(object), cluster).await?,
            _ => None,
        };
        Ok(scope.is_ours(&namespace(object), &cluster.unwrap_or_default(), kafka.as_ref()))
    }

    /// Definitions of ours may serve another operator's clusters, too: Strimzi's, where ours took the place of its own.
    async fn refuse_if_others_would_lose_theirs(&self, scope: &Scope) -> Result<(), Error> {
        let mut theirs = Vec::new();
        for kind in self.kinds.iter().filter(|kind| kind.is_ours) {
            for found in kind.list(self.client).await? {
                if !self.is_ours(scope, kind, &found).await? {
                    theirs.push(format!("the {} {}/{}", kind.resource.kind, namespace(&found), found.name_any()));
                }
            }
        }
        if theirs.is_empty() { Ok(()) } else { Err(Error::Others(theirs.join(", "))) }
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

    /// Ends the operator, and waits until no pod of it runs, for it would put its finalizers back.
    async fn end_the_operator(
        &self,
        namespace: &str,
        deployment: Option<&Deployment>,
        force: bool,
    ) -> Result<(), Error> {
        if let Some(found) = deployment {
            if marks::is_ours(&found.metadata) {
                let deployments = Api::<Deployment>::namespaced(self.client.clone(), namespace);
                let none = Patch::Merge(json!({"spec": {"replicas": 0}}));
                let scaled = deployments.patch(crate::seams::NAME, &PatchParams::default(), &none).await;
                scaled.map_err(Error::writing(DEPLOYMENT))?;
            } else if !force {
                return Err(Error::Foreign(format!("{DEPLOYMENT} in {namespace}")));
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
        Ok(())
    }

    /// Takes our finalizers off everything. A run goes on in the engine that carries it out; nobody follows it.
    async fn release(&mut self, scope: &Scope) -> Result<(), Error> {
        let Some(kind) = self.kind("KafkaRebalance").cloned() else { return Ok(()) };
        for rebalance in kind.list(self.client).await? {
            if held_by_us(&rebalance).0.is_empty() {
                continue;
            }
            let what = format!("kafkarebalance/{} in {}", rebalance.name_any(), namespace(&rebalance));
            if self.is_ours(scope, &kind, &rebalance).await? {
                self.release_one(&kind, &rebalance, what).await?;
            } else {
                self.note(what, Outcome::Left("our operator did not look after its cluster".to_owned()));
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

    /// Whether anything lives in a namespace that is to stay: all of it, or that whose definitions stay.
    async fn is_lived_in(&self, lived_in: &str, extent: Extent) -> Result<bool, Error> {
        for kind in self.kinds.iter().filter(|kind| extent == Extent::Operator || !kind.is_ours) {
            if kind.list(self.client).await?.iter().any(|it| namespace(it) == lived_in) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Those that give a role to somebody.
    async fn bindings(&self, role: &str) -> Result<Vec<ClusterRoleBinding>, Error> {
        let found = Api::<ClusterRoleBinding>::all(self.client.clone()).list(&ListParams::default()).await;
        let found = found.map_err(Error::reading("the cluster role bindings"))?;
        Ok(found.items.into_iter().filter(|binding| binding.role_ref.name == role).collect())
    }

    async fn is_bound(&self, role: &str) -> Result<bool, Error> {
        Ok(!self.bindings(role).await?.is_empty())
    }

    /// What lets brokers with racks look at their nodes is in no namespace, so that it goes with nothing.
    async fn unbind_racks(&mut self, scope: &Scope) -> Result<(), Error> {
        let api = Api::<ClusterRoleBinding>::all(self.client.clone());
        for binding in self.bindings(RACK_ROLE).await? {
            let namespace = binding.subjects.iter().flatten().find_map(|subject| subject.namespace.clone());
            let names = namespace.zip(binding.labels().get(labels::CLUSTER).cloned());
            let is_ours = |(namespace, cluster): &(String, String)| scope.is_ours(namespace, cluster, None);
            if names.as_ref().is_some_and(is_ours) {
                let what = format!("clusterrolebinding/{}", binding.name_any());
                match api.delete(&binding.name_any(), &DeleteParams::default()).await {
                    Ok(_) => self.note(what, Outcome::Removed),
                    Err(kube::Error::Api(status)) if status.is_not_found() => {}
                    Err(source) => return Err(Error::Write { what, source }),
                }
            }
        }
        Ok(())
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

/// The cluster that an object is, or is part of.
fn cluster(kind: &Kind, object: &PartialObjectMeta<DynamicObject>) -> Option<String> {
    if kind.is("Kafka") { Some(object.name_any()) } else { object.labels().get(labels::CLUSTER).cloned() }
}

fn namespace(object: &PartialObjectMeta<DynamicObject>) -> String {
    object.namespace().unwrap_or_default()
}
