//! Reads what is asked about, and has it painted. Nothing is changed, and nothing is decided.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;
use evenkeel_api::annotations::{self, Ask};
use evenkeel_api::rebalance::RebalanceState;
use evenkeel_api::{Kafka, KafkaRebalance};
use evenkeel_operator::auto_rebalance::{explain, imbalance::map_name, tracker::tracker_name};
use jiff::Timestamp;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ListParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config, Resource, ResourceExt};
use serde::de::DeserializeOwned;

use super::target::Target;
use super::{cluster, overview, rebalance};
use crate::misuse::Misuse;

/// A way to look at one namespace.
pub(super) struct Eyes {
    client: Client,
    namespace: String,
}

/// What was seen.
pub(super) struct Seen {
    /// For a person.
    pub(super) text: String,
    /// Whether there is nothing more to come.
    pub(super) is_over: bool,
}

impl Eyes {
    /// By this kubeconfig, or by the one that kubectl would take.
    pub(super) async fn open(kubeconfig: Option<&Path>, namespace: Option<&str>) -> anyhow::Result<Self> {
        let config = match kubeconfig {
            Some(path) => {
                let wrong = |error: &dyn std::fmt::Display| Misuse::Status {
                    what: format!("--kubeconfig {}: {error}", path.display()),
                };
                let read = Kubeconfig::read_from(path).map_err(|error| wrong(&error))?;
                let options = KubeConfigOptions::default();
                Config::from_custom_kubeconfig(read, &options).await.map_err(|error| wrong(&error))?
            }
            None => Config::infer().await.context("could not find the Kubernetes API; name a --kubeconfig")?,
        };
        let namespace = namespace.map_or_else(|| config.default_namespace.clone(), str::to_owned);
        Ok(Self { client: Client::try_from(config).context("could not reach the Kubernetes API")?, namespace })
    }

    /// Where it looks.
    pub(super) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// What there is to see now. None: what is asked about is not there.
    pub(super) async fn look(&self, target: &Target) -> anyhow::Result<Option<Seen>> {
        let now = Timestamp::now();
        Ok(Some(match target {
            Target::Everything => {
                let (kafkas, rebalances) = futures::try_join!(self.all::<Kafka>(), self.all::<KafkaRebalance>())?;
                Seen { text: overview::paint(&self.namespace, &kafkas, &rebalances, now), is_over: false }
            }
            Target::Rebalance(name) => {
                let Some(found) = self.one::<KafkaRebalance>(name).await? else { return Ok(None) };
                let map = self.config_map(name).await?;
                // One of the same name may be somebody else's, and tell of something else.
                let owned = map.filter(|map| {
                    map.owner_references().iter().any(|owner| Some(&owner.uid) == found.metadata.uid.as_ref())
                });
                let data = owned.map(|map| map.data.unwrap_or_default());
                Seen { text: rebalance::paint(&found, data.as_ref(), now), is_over: is_over(&found) }
            }
            Target::Cluster(name) => {
                let Some(kafka) = self.one::<Kafka>(name).await? else { return Ok(None) };
                let (map, tracker) = (map_name(name), tracker_name(name));
                let (rebalances, violations, tracker) =
                    futures::try_join!(self.all::<KafkaRebalance>(), self.data(&map), self.data(&tracker))?;
                let explained = explain(&kafka, &rebalances, violations.as_ref(), tracker.as_ref(), now);
                Seen { text: cluster::paint(&kafka, &explained, now), is_over: false }
            }
        }))
    }

    fn api<K: Resource<DynamicType = (), Scope = NamespaceResourceScope>>(&self) -> Api<K> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    async fn one<K>(&self, name: &str) -> anyhow::Result<Option<K>>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + std::fmt::Debug + DeserializeOwned,
    {
        let kind = K::kind(&());
        self.api::<K>().get_opt(name).await.with_context(|| format!("could not read {kind} {name}"))
    }

    async fn all<K>(&self) -> anyhow::Result<Vec<K>>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + std::fmt::Debug + DeserializeOwned,
    {
        let found = self.api::<K>().list(&ListParams::default()).await;
        Ok(found.with_context(|| format!("could not read {}", K::plural(&())))?.items)
    }

    /// The data of a ConfigMap, if it is there.
    async fn data(&self, name: &str) -> anyhow::Result<Option<BTreeMap<String, String>>> {
        Ok(self.config_map(name).await?.map(|map| map.data.unwrap_or_default()))
    }

    async fn config_map(&self, name: &str) -> anyhow::Result<Option<ConfigMap>> {
        let found = self.api::<ConfigMap>().get_opt(name).await;
        found.with_context(|| format!("could not read ConfigMap {name}"))
    }
}

/// Whether nothing more is to come: it rests, and nobody has asked it to begin anew.
fn is_over(found: &KafkaRebalance) -> bool {
    let rests = matches!(found.state(), RebalanceState::Ready | RebalanceState::NotReady | RebalanceState::Stopped);
    let renewed = annotations::ask(found.annotations()) == Some(Ask::Refresh);
    let observed = found.status.as_ref().and_then(|status| status.observed_generation);
    let edited = observed.is_some() && observed != found.metadata.generation;
    rests && !renewed && !edited && found.metadata.deletion_timestamp.is_none()
}
