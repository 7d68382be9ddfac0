//! What the tour reads of the resources, in the words that it tells.

use std::io::Write;

use anyhow::Context;
use evenkeel_api::conditions::{NOT_READY, READY};
use evenkeel_api::rebalance::RebalanceState;
use evenkeel_api::{Condition, Kafka, KafkaNodePool, KafkaRebalance, Reason};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use k8s_openapi::api::events::v1::Event;
use kube::ResourceExt;

use super::brokers::Placement;
use super::guide::{Guide, Standing};

/// The key of the ConfigMap beside a KafkaRebalance that says how much was moved.
const PERCENT_DONE: &str = "completedByteMovementPercentage";

impl<W: Write> Guide<W> {
    pub(crate) async fn kafka_resource(&self) -> anyhow::Result<Kafka> {
        self.api::<Kafka>().get(&self.cluster).await.context("could not read the Kafka")
    }

    pub(crate) async fn pool(&self, name: &str) -> anyhow::Result<KafkaNodePool> {
        self.api::<KafkaNodePool>().get(name).await.with_context(|| format!("could not read the node pool {name}"))
    }

    pub(crate) async fn rebalance(&self, name: &str) -> anyhow::Result<Option<KafkaRebalance>> {
        self.api::<KafkaRebalance>().get_opt(name).await.with_context(|| format!("could not read {name}"))
    }

    pub(crate) async fn pod(&self, name: &str) -> anyhow::Result<Option<Pod>> {
        self.api::<Pod>().get_opt(name).await.with_context(|| format!("could not read the pod {name}"))
    }

    /// Whether the Kafka is Ready, as it and its pools were last asked for, and where it stands if not.
    pub(crate) async fn readiness(&self) -> anyhow::Result<Standing> {
        let kafka = self.kafka_resource().await?;
        let pools = self.api::<KafkaNodePool>().list(&self.of_cluster()).await.context("could not list node pools")?;
        let pods = self.api::<Pod>().list(&self.of_cluster()).await.context("could not list pods")?;
        let ready = pods.iter().filter(|pod| is_ready(pod)).count();
        let why = conditions(&kafka).iter().find(|it| it.type_ == NOT_READY).and_then(|it| it.message.clone());
        let text =
            format!("pods ready: {ready} of {}{}", pods.items.len(), why.map_or(String::new(), |it| format!("; {it}")));
        let observed = kafka.status.as_ref().and_then(|status| status.observed_generation);
        let current = observed == kafka.metadata.generation && pools.iter().all(is_observed);
        Ok(Standing::reached_if(current && conditions(&kafka).iter().any(|it| it.type_ == READY), text))
    }

    /// Waits until the Kafka is Ready.
    pub(crate) async fn until_ready(&mut self) -> anyhow::Result<()> {
        self.until("the Kafka is Ready", async |guide| guide.readiness().await).await
    }

    /// Waits until the engine of the cluster serves.
    pub(crate) async fn until_engine(&mut self) -> anyhow::Result<()> {
        let name = format!("{}-cruise-control", self.cluster);
        self.until("its engine is up", async |guide| {
            let found = guide.api::<Deployment>().get(&name).await.context("could not read the engine's deployment")?;
            let status = found.status.unwrap_or_default();
            let current = status.observed_generation >= found.metadata.generation;
            let up = current && status.available_replicas == Some(1) && status.updated_replicas == Some(1);
            Ok(Standing::reached_if(up, format!("{name} is starting")))
        })
        .await
    }

    /// Waits until no partition lacks a replica, so that nothing was lost on the way.
    pub(crate) async fn until_whole(&mut self) -> anyhow::Result<()> {
        self.until("no partition lacks a replica", async |guide| {
            let short = Placement::look(&guide.kafka).await?.short();
            Ok(Standing::reached_if(short == 0, format!("{short} partitions lack a replica")))
        })
        .await
    }

    /// What the warning of this reason on the Kafka says.
    pub(crate) async fn warning(&self, reason: Reason) -> anyhow::Result<Option<String>> {
        let kafka = self.kafka_resource().await?;
        let found = conditions(&kafka).iter().find(|it| it.is_warning() && it.has_reason(reason));
        Ok(found.map(|it| it.message.clone().unwrap_or_default()))
    }

    /// How far a rebalance has come, in its own words and in percent of the data.
    pub(crate) async fn progress(&self, name: &str) -> anyhow::Result<Option<u8>> {
        Ok(self.told_beside(name, PERCENT_DONE).await?.and_then(|text| text.parse().ok()))
    }

    /// What the ConfigMap beside a rebalance says under a key.
    pub(crate) async fn told_beside(&self, name: &str, key: &str) -> anyhow::Result<Option<String>> {
        let map = self.api::<ConfigMap>().get_opt(name).await.context("could not read the ConfigMap of a rebalance")?;
        Ok(map.and_then(|map| map.data?.remove(key)))
    }

    /// From which state to which automatic rebalancing went, in order, as the events of the Kafka tell it.
    pub(crate) async fn transitions(&self) -> anyhow::Result<Vec<String>> {
        let listed =
            self.api::<Event>().list(&kube::api::ListParams::default()).await.context("could not list events")?;
        let mut events: Vec<Event> =
            listed.into_iter().filter(|it| it.reason.as_deref() == Some("AutoRebalance")).collect();
        events.sort_by_key(|event| event.event_time.as_ref().map(|time| time.0));
        Ok(events.into_iter().filter_map(|event| event.note).collect())
    }

    fn of_cluster(&self) -> kube::api::ListParams {
        kube::api::ListParams::default().labels(&format!("{}={}", evenkeel_api::labels::CLUSTER, self.cluster))
    }
}

/// Where a rebalance stands, and what troubles it.
pub(crate) fn told(rebalance: &KafkaRebalance) -> String {
    let all = rebalance.status.iter().flat_map(|status| &status.conditions);
    let failed = rebalance.state() == RebalanceState::NotReady;
    let troubles = all.filter(|it| failed || it.is_warning()).filter_map(|it| it.message.clone());
    let parts = [format!("{} is {}", rebalance.name_any(), rebalance.state())].into_iter().chain(troubles);
    parts.collect::<Vec<_>>().join("; ")
}

/// Whether the operator has looked at what a pool asks for now.
fn is_observed(pool: &KafkaNodePool) -> bool {
    pool.status.as_ref().and_then(|status| status.observed_generation) == pool.metadata.generation
}

pub(crate) fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.filter(|it| it.type_ == "Ready").any(|it| it.status == "True")
}

fn conditions(kafka: &Kafka) -> &[Condition] {
    kafka.status.as_ref().map_or(&[], |status| &status.conditions)
}
