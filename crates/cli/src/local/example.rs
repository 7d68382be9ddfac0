//! The cluster that a local run begins with: manifests as anybody might apply them, and topics with data in them.

use std::time::Duration;

use anyhow::Context;
use evenkeel_api::{Kafka, KafkaNodePool};
use evenkeel_kafka::Client;
use evenkeel_sim::cluster::{BrokerState, NewTopic};
use evenkeel_sim::serve::World;
use evenkeel_sim::traffic::Load;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde::Deserialize;
use serde_json::Value;

use super::data;
use super::stack::Stack;

/// Where it lives.
pub(super) const NAMESPACE: &str = "default";
/// What it is called.
pub(super) const CLUSTER: &str = "lagoon";
const MANIFESTS: &str = include_str!("example.yaml");
/// Who has applied the manifests, in the words of server-side apply.
const MANAGER: &str = "evenkeel-local";
/// What the reporter's settings begin with.
const REPORTER: [&str; 2] = ["evenkeel.metrics.reporter", "cruise.control.metrics.reporter"];
/// What is written to each partition of real brokers.
const BYTES: usize = 256 * 1024;
/// How often it is looked whether the brokers are up.
const GLANCE: Duration = Duration::from_millis(100);
/// How long its topics have been written to before it began, as far as their sizes tell.
const HISTORY: i64 = 300_000;

/// How large it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Scale {
    /// 3 brokers, some hundred partitions.
    Small,
    /// 30 brokers, 20,000 partitions.
    Medium,
}

impl Scale {
    fn brokers(self) -> i32 {
        match self {
            Self::Small => 3,
            Self::Medium => 30,
        }
    }

    /// Topics: name, partitions, and bytes written to each second.
    fn topics(self) -> Vec<(String, i32, f64)> {
        let named = |name: &str, partitions, rate| (name.to_owned(), partitions, rate);
        match self {
            Self::Small => vec![
                named("arrivals", 60, 400_000.0),
                named("berths", 30, 50_000.0),
                named("cargo", 120, 900_000.0),
                named("tides", 12, 5_000.0),
            ],
            Self::Medium => {
                (0..200).map(|n| named(&format!("berth-{n}"), 100, 20_000.0 * f64::from(n % 7 + 1))).collect()
            }
        }
    }
}

/// Applies the manifests, as `kubectl apply --server-side` does.
pub(super) async fn apply(stack: &Stack, scale: Scale) -> anyhow::Result<()> {
    for mut document in serde_saphyr::from_multiple::<Value>(MANIFESTS).context("the example is no YAML")? {
        let kind = document.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
        match kind.as_str() {
            "Kafka" => {
                // Apache Kafka as it is unpacked has no such reporter; the engine does without.
                let config = document.pointer_mut("/spec/cruiseControl/config").and_then(Value::as_object_mut);
                if let Some(config) = config.filter(|_| !stack.is_simulated()) {
                    config.retain(|key, _| !REPORTER.iter().any(|prefix| key.starts_with(prefix)));
                }
                apply_one(Api::<Kafka>::namespaced(stack.client(), NAMESPACE), document).await?;
            }
            "KafkaNodePool" => {
                let mut pool = KafkaNodePool::deserialize(document)?;
                if pool.metadata.name.as_deref() == Some("quay") {
                    pool.spec.replicas = scale.brokers();
                }
                apply_one(Api::<KafkaNodePool>::namespaced(stack.client(), NAMESPACE), serde_json::to_value(pool)?)
                    .await?;
            }
            other => anyhow::bail!("the example has a {other}, which nobody applies"),
        }
    }
    Ok(())
}

async fn apply_one<K>(api: Api<K>, document: Value) -> anyhow::Result<()>
where
    K: kube::Resource + Clone + serde::de::DeserializeOwned + std::fmt::Debug,
{
    let name = document.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let applied = api.patch(&name, &PatchParams::apply(MANAGER), &Patch::Apply(&document)).await;
    applied.with_context(|| format!("could not apply the example's {name}"))?;
    Ok(())
}

/// Makes the topics, and says how many partitions each has. Simulated ones have sizes and rates; those of real brokers
/// are fewer, and get some real data.
pub(super) async fn fill(stack: &Stack, scale: Scale, kafka: &Client) -> anyhow::Result<Vec<(String, i32)>> {
    if !stack.is_simulated() {
        let topics: Vec<_> =
            scale.topics().into_iter().map(|(name, partitions, _)| (name, partitions / 10 + 1)).collect();
        for (name, partitions) in &topics {
            data::make_topic(kafka, name, *partitions).await?;
            data::write(kafka, name, *partitions, BYTES).await?;
        }
        return Ok(topics);
    }
    let world = until_up(stack, scale).await;
    for (name, partitions, rate) in scale.topics() {
        let topic = NewTopic::new(&name, partitions, 3).loaded(Load::steady(rate), HISTORY);
        world.with(|cluster| cluster.create_topic(&topic, false)).with_context(|| format!("could not make {name}"))?;
    }
    Ok(scale.topics().into_iter().map(|(name, partitions, _)| (name, partitions)).collect())
}

/// The simulated cluster, when its brokers are there to hold topics.
async fn until_up(stack: &Stack, scale: Scale) -> World {
    let wanted = usize::try_from(scale.brokers()).unwrap_or(0);
    loop {
        if let Some(world) = stack.world(NAMESPACE, CLUSTER)
            && running(&world) >= wanted
        {
            return world;
        }
        tokio::time::sleep(GLANCE).await;
    }
}

/// How many brokers are up and let in.
fn running(world: &World) -> usize {
    world.look(|cluster| cluster.broker_status().iter().filter(|broker| broker.state == BrokerState::Running).count())
}
