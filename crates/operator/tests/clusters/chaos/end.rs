//! How every story ends: what users want at last is there, whole and at rest, and nothing else is left.

use std::collections::BTreeSet;
use std::time::Duration;

use evenkeel_api::kafka::AutoRebalanceState;
use evenkeel_api::{Kafka, KafkaRebalance, StrimziPodSet};
use evenkeel_sim::cluster::{ConfigEntry, Resource};
use evenkeel_sim::{BrokerId, Cluster};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use tokio::time::{Instant, sleep};

use super::deeds::Chaos;
use super::story::Modes;
use crate::play::MAP;
use crate::stage::CLUSTER;

/// A drain that failed again and again is tried again after ten minutes, and what Kafka refused after five.
const PATIENCE: Duration = Duration::from_secs(1_800);
const GLANCE: Duration = Duration::from_secs(2);
/// Who would do something more has time for it.
const AFTERWARDS: Duration = Duration::from_secs(30);

impl Chaos {
    /// Waits until all is at rest, and sees that it stays so. What is missing if it never is.
    pub(crate) async fn come_to_rest(&self) -> Result<(), String> {
        let begun = Instant::now();
        loop {
            if let Some(wrong) = &self.history.lock().unwrap().wrong {
                return Err(wrong.clone());
            }
            match self.unrest().await {
                None => break,
                Some(unrest) if begun.elapsed() > PATIENCE => return Err(format!("no rest: {unrest}")),
                Some(_) => sleep(GLANCE).await,
            }
        }
        sleep(AFTERWARDS).await;
        let wrong = self.history.lock().unwrap().wrong.clone();
        let unrest = async || self.unrest().await.map(|unrest| format!("rest did not last: {unrest}"));
        match wrong {
            Some(wrong) => Err(wrong),
            None => unrest().await.or_else(|| self.neglect()).map_or(Ok(()), Err),
        }
    }

    /// What is not at rest yet.
    async fn unrest(&self) -> Option<String> {
        let stage = &self.play.stage;
        let kafka = stage.api::<Kafka>().get(CLUSTER).await.unwrap();
        let status = kafka.status.clone().unwrap_or_default();
        if status.conditions.first().is_none_or(|state| state.type_ != "Ready") {
            return Some(format!("the Kafka is not ready: {:?}", status.conditions));
        }
        if status.observed_generation != kafka.metadata.generation {
            return Some("the Kafka has not been looked at".to_owned());
        }
        let auto = status.auto_rebalance.unwrap_or_default();
        if auto.state != AutoRebalanceState::Idle || !auto.modes.is_empty() {
            return Some(format!("automatic rebalancing is at something: {auto:?}"));
        }
        let rebalances = stage.api::<KafkaRebalance>().list(&Default::default()).await.unwrap().items;
        if let Some(left) = rebalances.iter().find(|it| it.name_any() != "even") {
            return Some(format!("a rebalance is left: {:?} {:?}", left.metadata, left.status));
        }
        let maps = stage.api::<ConfigMap>().list(&Default::default()).await.unwrap().items;
        let watches = self.modes == Modes::All;
        let left = maps.iter().map(ResourceExt::name_any).find(|name| {
            let of_rebalance = name.contains("-auto-rebalancing-") || name.starts_with("mine-");
            of_rebalance || (name == MAP && !watches)
        });
        if let Some(left) = left {
            return Some(format!("a ConfigMap is left: {left}"));
        }
        let mut brokers = BTreeSet::new();
        for (pool, wanted) in &self.wanted {
            let found = stage.api::<StrimziPodSet>().get_opt(&format!("{CLUSTER}-{}", pool.name())).await.unwrap();
            let listed: Vec<i32> = found.iter().flat_map(|set| &set.spec.pods).filter_map(id).collect();
            if listed.len() != *wanted as usize {
                return Some(format!("pool {} wants {wanted} and has {listed:?}", pool.name()));
            }
            brokers.extend(listed);
        }
        let pods: BTreeSet<i32> =
            self.play.brokers().await.iter().filter_map(|pod| pod.rsplit('-').next()?.parse().ok()).collect();
        if pods != brokers {
            return Some(format!("there are pods {pods:?} for brokers {brokers:?}"));
        }
        self.play.machines.world().look(|cluster| unrest_of(cluster, &brokers))
    }

    /// Brokers that were added, should have got data, and have none.
    fn neglect(&self) -> Option<String> {
        let excused = {
            let history = self.history.lock().unwrap();
            &history.excused | &(&history.filled & &history.shaken)
        };
        let registered = self.play.machines.world().look(|cluster| registered(cluster));
        let empty =
            |id: &&i32| self.play.machines.world().look(|cluster| cluster.replicas_on(BrokerId(**id)).is_empty());
        let neglected: Vec<&i32> = registered.difference(&excused).filter(empty).collect();
        (!neglected.is_empty()).then(|| format!("brokers {neglected:?} were added and have got no data"))
    }
}

fn registered(cluster: &Cluster) -> BTreeSet<i32> {
    cluster.describe_brokers(BrokerId(0), true).iter().map(|broker| broker.id.0).collect()
}

/// What of Kafka is not at rest.
pub(crate) fn unrest_of(cluster: &Cluster, brokers: &BTreeSet<i32>) -> Option<String> {
    let registered = registered(cluster);
    if registered != *brokers {
        return Some(format!("Kafka knows brokers {registered:?}, and there are {brokers:?}"));
    }
    if let Some(moved) = cluster.list_reassignments(None).first() {
        return Some(format!("still moving: {moved:?}"));
    }
    for topic in cluster.describe_topics(BrokerId(0)) {
        for partition in topic.partitions {
            let record = partition.registration;
            let whole = record.isr.len() == record.replicas.len() && record.leader.is_some();
            let factor = if topic.name.starts_with("orders") || topic.name.starts_with("t-") { 2 } else { 1 };
            if !whole || record.replicas.len() < factor {
                return Some(format!("{}-{} is not whole: {record:?}", topic.name, partition.partition));
            }
        }
        let entries = cluster.describe_configs(BrokerId(0), &Resource::Topic(topic.name.to_string()));
        if let Some(left) = entries.unwrap_or_default().iter().find(|it| is_left(it)) {
            return Some(format!("{} is still throttled: {left:?}", topic.name));
        }
    }
    brokers.iter().find_map(|id| {
        let entries = cluster.describe_configs(BrokerId(*id), &Resource::Broker(BrokerId(*id)));
        let left = entries.unwrap_or_default().into_iter().find(is_left)?;
        Some(format!("broker {id} is still throttled or cordoned: {left:?}"))
    })
}

/// A setting that somebody made for the time of a rebalance only.
fn is_left(it: &ConfigEntry) -> bool {
    let temporary = it.name.contains("throttled.") || it.name == "cordoned.log.dirs";
    temporary && it.value.as_deref().is_some_and(|value| !value.is_empty())
}

fn id(pod: &evenkeel_api::FreeForm) -> Option<i32> {
    pod.get("metadata")?.get("name")?.as_str()?.rsplit('-').next()?.parse().ok()
}
