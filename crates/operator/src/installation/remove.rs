//! The operator taken off a cluster, in an order in which nothing waits for somebody who is gone: the operator first, so
//! that it puts no new finalizer on anything; then its finalizers; then everything that it was installed with.

use std::time::Duration;

use evenkeel_api::{Kafka, KafkaNodePool, KafkaRebalance, StrimziPodSet, annotations};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::Pod};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PropagationPolicy},
    core::PartialObjectMeta,
};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::{Done, Error, Manifests, Outcome, marks};

/// How long the operator's pod may take to end, and how long anything may take to go.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks whether it is gone.
const PAUSE: Duration = Duration::from_millis(200);
/// The finalizers that nobody but our operator takes off.
const FINALIZERS: [&str; 2] = [annotations::REBALANCE_FINALIZER, annotations::AUTO_REBALANCING_FINALIZER];

/// How much is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// The operator. Clusters go on running, and their resources stay.
    Operator,
    /// The CRDs too, provided that no cluster would go with them.
    Crds,
    /// The CRDs, and every cluster with them.
    Clusters,
}

/// Removes what [`super::put()`] has put.
pub async fn remove(client: &Client, manifests: &Manifests, extent: Extent) -> Result<Vec<Done>, Error> {
    let clusters = names::<Kafka>(client).await?;
    if extent == Extent::Crds && !clusters.is_empty() {
        let named: Vec<String> = clusters.iter().map(|(namespace, name)| format!("{namespace}/{name}")).collect();
        return Err(Error::Clusters(format!("the Kafka {}", named.join(", "))));
    }
    let mut removal = Removal { client, done: Vec::new() };
    let mut objects = manifests.objects()?;
    // Those that are needed first go last.
    objects.reverse();
    let (operator, rest): (Vec<_>, Vec<_>) = objects.into_iter().partition(|(kind, _)| kind.kind == "Deployment");
    for (kind, object) in &operator {
        removal.delete(kind, object).await?;
    }
    removal.until_the_operator_is_gone(manifests.namespace()).await?;
    removal.release().await?;
    let mut going = Vec::new();
    for (kind, object) in rest {
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
    done: Vec<Done>,
}

impl Removal<'_> {
    fn note(&mut self, what: String, outcome: Outcome) {
        self.done.push(Done { what, outcome });
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

    /// Waits until no pod of the operator runs, for it would put its finalizers back. One that does not go, on a node
    /// that is lost for example, is not waited for for ever.
    async fn until_the_operator_is_gone(&mut self, namespace: &str) -> Result<(), Error> {
        let what = format!("deployment/{}", crate::seams::NAME);
        let deployments = Api::<Deployment>::namespaced(self.client.clone(), namespace);
        let pods = Api::<Pod>::namespaced(self.client.clone(), namespace);
        let of_operator = ListParams::default().labels(&format!("app.kubernetes.io/name={}", crate::seams::NAME));
        let begun = Instant::now();
        loop {
            let there = deployments.get_metadata_opt(crate::seams::NAME).await.map_err(Error::reading(&what))?;
            let left = pods.list_metadata(&of_operator).await.map_err(Error::reading("the operator's pods"))?;
            let outcome = match (there.is_none() && left.items.is_empty(), begun.elapsed() > PATIENCE) {
                (true, _) => Outcome::Removed,
                (false, true) => Outcome::Going,
                (false, false) => {
                    sleep(PAUSE).await;
                    continue;
                }
            };
            self.note(what, outcome);
            return Ok(());
        }
    }

    /// Takes our finalizers off everything. A run goes on in the engine that carries it out; nobody follows it.
    async fn release(&mut self) -> Result<(), Error> {
        for (namespace, name) in names::<KafkaRebalance>(self.client).await? {
            let api = Api::<KafkaRebalance>::namespaced(self.client.clone(), &namespace);
            let what = format!("kafkarebalance/{name} in {namespace}");
            // Somebody may write it between the two; then it is looked at again.
            loop {
                let found = api.get_metadata_opt(&name).await.map_err(Error::reading(&what))?;
                let Some(found) = found else { break };
                let (ours, others): (Vec<String>, Vec<String>) =
                    found.finalizers().iter().cloned().partition(|it| FINALIZERS.contains(&it.as_str()));
                if ours.is_empty() {
                    break;
                }
                let patch = json!({"metadata": {"finalizers": others, "resourceVersion": found.resource_version()}});
                match api.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await {
                    Ok(_) => {
                        self.note(what, Outcome::Released);
                        break;
                    }
                    Err(kube::Error::Api(status)) if status.is_conflict() => sleep(PAUSE).await,
                    Err(kube::Error::Api(status)) if status.is_not_found() => break,
                    Err(source) => return Err(Error::Write { what, source }),
                }
            }
        }
        Ok(())
    }

    /// Whether clusters live in a namespace that are to stay.
    async fn is_lived_in(&self, namespace: &str, extent: Extent) -> Result<bool, Error> {
        if extent == Extent::Clusters {
            return Ok(false);
        }
        let mut all = names::<Kafka>(self.client).await?;
        all.extend(names::<KafkaNodePool>(self.client).await?);
        all.extend(names::<KafkaRebalance>(self.client).await?);
        all.extend(names::<StrimziPodSet>(self.client).await?);
        Ok(all.iter().any(|(lives_in, _)| lives_in == namespace))
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

/// Namespaces and names of all resources of a kind; none where the kind is not known.
async fn names<K>(client: &Client) -> Result<Vec<(String, String)>, Error>
where
    K: Resource<DynamicType = ()> + Clone + serde::de::DeserializeOwned + std::fmt::Debug,
{
    let found = match Api::<K>::all(client.clone()).list_metadata(&ListParams::default()).await {
        Ok(found) => found.items,
        Err(kube::Error::Api(status)) if status.is_not_found() => Vec::new(),
        Err(source) => return Err(Error::Read { what: K::plural(&()).into_owned(), source }),
    };
    let key = |object: &PartialObjectMeta<K>| (object.namespace().unwrap_or_default(), object.name_any());
    Ok(found.iter().map(key).collect())
}
