//! The cluster that a local run begins with: manifests as anybody might apply them, and topics with data in them.

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
use super::patience::until_seen;
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
    pub(super) fn brokers(self) -> i32 {
        match self {
            Self::Small => 3,
            Self::Medium => 30,
        }
    }

    /// How much slower than in the manifests everything that happens again and again does: the metrics of 60,000 replicas
    /// every second would keep a laptop from anything else.
    fn pace(self) -> i64 {
        match self {
            Self::Small => 1,
            Self::Medium => 10,
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
    apply_to(&stack.client(), scale, stack.is_simulated()).await
}

async fn apply_to(client: &kube::Client, scale: Scale, simulated: bool) -> anyhow::Result<()> {
    for mut document in serde_saphyr::from_multiple::<Value>(MANIFESTS).context("the example is no YAML")? {
        let kind = document.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
        match kind.as_str() {
            "Kafka" => {
                for settings in ["/spec/kafka/config", "/spec/cruiseControl/config"] {
                    slow_down(document.pointer_mut(settings), scale.pace());
                }
                // Apache Kafka as it is unpacked has no such reporter; the engine does without.
                let config = document.pointer_mut("/spec/cruiseControl/config").and_then(Value::as_object_mut);
                if let Some(config) = config.filter(|_| !simulated) {
                    config.retain(|key, _| !REPORTER.iter().any(|prefix| key.starts_with(prefix)));
                }
                apply_one(Api::<Kafka>::namespaced(client.clone(), NAMESPACE), document).await?;
            }
            "KafkaNodePool" => {
                let mut pool = KafkaNodePool::deserialize(document)?;
                if pool.metadata.name.as_deref() == Some("quay") {
                    pool.spec.replicas = scale.brokers();
                }
                apply_one(Api::<KafkaNodePool>::namespaced(client.clone(), NAMESPACE), serde_json::to_value(pool)?)
                    .await?;
            }
            other => anyhow::bail!("the example has a {other}, which nobody applies"),
        }
    }
    Ok(())
}

/// Makes every span of time among these settings longer.
fn slow_down(settings: Option<&mut Value>, pace: i64) {
    let settings = settings.and_then(Value::as_object_mut).into_iter().flatten();
    for (_, span) in settings.filter(|(key, _)| key.ends_with(".ms")) {
        if let Some(milliseconds) = span.as_i64() {
            *span = (milliseconds * pace).into();
        }
    }
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
    let world = until_up(stack, scale).await?;
    make_topics(&world, scale)?;
    Ok(scale.topics().into_iter().map(|(name, partitions, _)| (name, partitions)).collect())
}

/// The topics of simulated brokers.
fn make_topics(world: &World, scale: Scale) -> anyhow::Result<()> {
    for (name, partitions, rate) in scale.topics() {
        let topic = NewTopic::new(&name, partitions, 3).loaded(Load::steady(rate), HISTORY);
        world.with(|cluster| cluster.create_topic(&topic, false)).with_context(|| format!("could not make {name}"))?;
    }
    Ok(())
}

/// The simulated cluster, when its brokers are there to hold topics.
async fn until_up(stack: &Stack, scale: Scale) -> anyhow::Result<World> {
    let wanted = usize::try_from(scale.brokers()).unwrap_or(0);
    until_seen("all brokers are up", || stack.world(NAMESPACE, CLUSTER).filter(|world| running(world) >= wanted)).await
}

/// How many brokers are up and let in.
fn running(world: &World) -> usize {
    world.look(|cluster| cluster.broker_status().iter().filter(|broker| broker.state == BrokerState::Running).count())
}

#[cfg(test)]
mod tests {
    use evenkeel_api::crds;
    use evenkeel_apiserver::http::{Options, Shared, router};
    use evenkeel_sim::Cluster;
    use evenkeel_sim::cluster::BrokerSpec;
    use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
    use kube::api::PostParams;

    use super::*;

    /// Of all node pools: the name and how many nodes it has.
    async fn applied(scale: Scale, simulated: bool) -> (Vec<(String, i32)>, Value) {
        let client = kube::Client::new(router(Shared::new(Options::default())), NAMESPACE);
        for crd in crds() {
            let api = Api::<CustomResourceDefinition>::all(client.clone());
            api.create(&PostParams::default(), &crd).await.unwrap();
        }
        apply_to(&client, scale, simulated).await.unwrap();
        let pools =
            Api::<KafkaNodePool>::namespaced(client.clone(), NAMESPACE).list(&Default::default()).await.unwrap();
        let pools = pools.items.into_iter().map(|pool| (pool.metadata.name.unwrap(), pool.spec.replicas)).collect();
        let kafka = Api::<Kafka>::namespaced(client, NAMESPACE).get(CLUSTER).await.unwrap();
        (pools, serde_json::to_value(kafka.spec).unwrap()["cruiseControl"]["config"].clone())
    }

    /// The server has our definitions, so what it takes is valid.
    #[tokio::test]
    async fn the_manifests_of_every_scale_are_taken_by_a_server() {
        for (scale, brokers) in [(Scale::Small, 3), (Scale::Medium, 30)] {
            let (pools, config) = applied(scale, true).await;
            assert_eq!(pools, [("pilots".to_owned(), 3), ("quay".to_owned(), brokers)]);
            assert_eq!(config["evenkeel.metrics.reporter"], true);
            assert_eq!(config["metric.sampling.interval.ms"], 1_000 * scale.pace());
            assert_eq!(config["num.partition.metrics.windows"], 3, "no span of time");
        }
        let (_, config) = applied(Scale::Small, false).await;
        assert_eq!(config["evenkeel.metrics.reporter"], Value::Null, "real brokers are unpacked without a reporter");
        assert!(config["metric.sampling.interval.ms"].is_number(), "{config}");
    }

    #[tokio::test(start_paused = true)]
    async fn the_medium_example_holds_twenty_thousand_partitions_and_has_room_for_them() {
        let scale = Scale::Medium;
        let world =
            World::new(Cluster::new(evenkeel_sim::Options::default(), (0..scale.brokers()).map(BrokerSpec::new)));
        make_topics(&world, scale).unwrap();
        let topics = scale.topics();
        assert_eq!((topics.len(), topics.iter().map(|(_, partitions, _)| partitions).sum::<i32>()), (200, 20_000));
        world.look(|cluster| {
            let held: Vec<usize> = cluster.broker_ids().into_iter().map(|id| cluster.replicas_on(id).len()).collect();
            assert_eq!((held.len(), held.iter().sum::<usize>()), (30, 60_000));
            assert!(held.iter().all(|replicas| *replicas > 1_000), "everybody holds some of them: {held:?}");
            let sizes = topics.iter().flat_map(|(name, partitions, _)| (0..*partitions).map(move |n| (name, n)));
            let bytes: u64 = sizes.map(|(name, number)| 3 * cluster.partition_size(name, number)).sum();
            // A claim of the example holds 100 GiB.
            assert!(bytes > 0 && bytes / 30 < (100 << 30) / 10, "{bytes} bytes on 30 brokers");
        });
    }
}
