//! One cluster that grows and shrinks with its data, and how soon each step of that comes.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use evenkeel_api::{Kafka, KafkaRebalance};
use evenkeel_sim::{BrokerId, cluster::NewTopic, traffic::Load};
use evenkeel_testkit::measure::{Measurement, Numbers, Spread, Unit};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use serde_json::json;

use crate::{
    manifests::{GOALS, Watched, pool_name, rebalance},
    sizes::Sizes,
    stand::Stand,
    step,
};

const CLUSTER: &str = "tidal";
const ASKED: &str = "asked-for";
const PARTITIONS: i32 = 60;
/// How long its topic has been written to, in milliseconds, and how many bytes a second.
const HISTORY: i64 = 300_000;
const RATE: f64 = 400_000.0;

#[derive(Default)]
struct Times {
    ready: Vec<Duration>,
    moving: Vec<Duration>,
    removed: Vec<Duration>,
}

pub(crate) async fn measure(sizes: &Sizes, numbers: &mut Numbers) -> Result<()> {
    step("scaling: a cluster");
    let stand = Stand::start().await?;
    let began = Instant::now();
    stand.make(CLUSTER, Watched::Closely).await?;
    stand.until("the cluster is up", async || stand.is_up(CLUSTER, 3).await).await?;
    numbers.add(Measurement::time("a cluster of six nodes until ready", Unit::Milliseconds, began.elapsed()));
    let world = stand.world(CLUSTER).context("a world")?;
    let topic = NewTopic::new("cargo", PARTITIONS, 3).loaded(Load::steady(RATE), HISTORY);
    world.with(|cluster| cluster.create_topic(&topic, false)).map_err(|refusal| anyhow::anyhow!("{refusal:?}"))?;

    // So that the engine has seen enough before anything is timed.
    stand.create::<KafkaRebalance>(rebalance(ASKED, Some(CLUSTER))).await?;
    proposed(&stand).await?;
    step("scaling: proposals");
    let mut answers = Vec::new();
    for _ in 0..sizes.wishes {
        answers.push(refreshed(&stand).await?);
    }
    let spread = Spread::of(answers).context("no proposal was asked for")?;
    let what = format!("annotation until the engine has the request, p99 of {}", spread.count());
    numbers.aimed(Measurement::time(what, Unit::Milliseconds, spread.percentile(99)), 200.0);

    let mut times = Times::default();
    for tide in 0..sizes.tides {
        step(&format!("scaling: tide {}", tide + 1));
        rise_and_fall(&stand, &mut times).await?;
    }
    let mut worst = |what: &str, times: Vec<Duration>, aim: f64| -> Result<()> {
        let spread = Spread::of(times).context("nothing was timed")?;
        let what = format!("{what}, the longest of {}", spread.count());
        numbers.aimed(Measurement::time(what, Unit::Milliseconds, spread.percentile(100)), aim);
        Ok(())
    };
    worst("3 to 5 brokers, until both are in", times.ready, 5_000.0)?;
    worst("3 to 5 brokers, until data moves", times.moving, 10_000.0)?;
    worst("brokers emptied, until their pods are gone", times.removed, 3_000.0)?;

    step("scaling: an anomaly");
    let noticed = anomaly(&stand).await?;
    let what = "anomaly in the ConfigMap until a proposal is asked for";
    numbers.aimed(Measurement::time(what, Unit::Milliseconds, noticed), 2_000.0);
    Ok(())
}

async fn proposed(stand: &Stand) -> Result<()> {
    let ready = async || Ok(stand.state_of(ASKED).await?.as_deref() == Some("ProposalReady"));
    stand.until("there is a proposal", ready).await?;
    Ok(())
}

/// From the annotation until the engine's task is in the status, which is after the engine has answered.
async fn refreshed(stand: &Stand) -> Result<Duration> {
    let session = async || {
        let status = stand.api::<KafkaRebalance>().get(ASKED).await?.status;
        anyhow::Ok(status.and_then(|it| it.session_id))
    };
    let before = session().await?;
    let began = Instant::now();
    let wish = json!({"metadata": {"annotations": {"strimzi.io/rebalance": "refresh"}}});
    stand.patch::<KafkaRebalance>(ASKED, wish).await?;
    stand
        .until("the engine is asked again", async || {
            let now = session().await?;
            Ok(now.is_some() && now != before)
        })
        .await?;
    let took = began.elapsed();
    proposed(stand).await?;
    Ok(took)
}

async fn rise_and_fall(stand: &Stand, times: &mut Times) -> Result<()> {
    let world = stand.world(CLUSTER).context("a world")?;
    let began = Instant::now();
    stand.scale(CLUSTER, 5).await?;
    stand.until("five brokers are in", async || Ok(stand.running(CLUSTER) == 5)).await?;
    times.ready.push(began.elapsed());
    stand.until("data moves", async || Ok(!world.look(|it| it.list_reassignments(None)).is_empty())).await?;
    times.moving.push(began.elapsed());
    stand.until("the operator rests", async || is_idle(stand).await).await?;

    stand.scale(CLUSTER, 3).await?;
    // The moment in which Kafka knows nothing more of the data on them.
    let holds = |id: i32| world.look(|it| it.broker_status().iter().any(|b| b.id == BrokerId(id) && b.replicas > 0));
    let at_rest = || world.look(|it| it.list_reassignments(None)).is_empty();
    stand.until("they are empty", async || Ok(!holds(3) && !holds(4) && at_rest())).await?;
    let gone = async || {
        let pods = [3, 4].map(|id| format!("{CLUSTER}-{}-{id}", pool_name(CLUSTER, "broker")));
        for pod in pods {
            if stand.api::<Pod>().get_opt(&pod).await?.is_some_and(|it| it.metadata.deletion_timestamp.is_none()) {
                return Ok(false);
            }
        }
        Ok(true)
    };
    times.removed.push(stand.until("their pods are gone", gone).await?);
    stand.until("the operator rests", async || Ok(is_idle(stand).await? && stand.is_up(CLUSTER, 3).await?)).await?;
    Ok(())
}

async fn is_idle(stand: &Stand) -> Result<bool> {
    let status = serde_json::to_value(stand.api::<Kafka>().get(CLUSTER).await?.status)?;
    Ok(status.pointer("/autoRebalance/state").is_some_and(|state| state == "Idle"))
}

/// From what the notifier writes until a rebalance for it has asked for its proposal.
async fn anomaly(stand: &Stand) -> Result<Duration> {
    let goal = GOALS.rsplit(',').next().unwrap_or_default();
    let found = format!("- 3f2c0000-0000-4000-8000-000000000001:\n    - {goal}\n");
    let began = Instant::now();
    let map = format!("{CLUSTER}-goal-violation-map");
    stand.patch::<ConfigMap>(&map, json!({"data": {"fixableAnomalies": found}})).await?;
    stand
        .until("a rebalance is made for it", async || {
            let all = stand.api::<KafkaRebalance>().list(&Default::default()).await?;
            let asked = |it: &KafkaRebalance| {
                let name = it.metadata.name.as_deref().unwrap_or_default();
                name.contains("-imbalance") && it.status.as_ref().is_some_and(|status| status.session_id.is_some())
            };
            // A proposal that comes at once is there before its session was seen.
            let over = |it: &KafkaRebalance| {
                let status = it.status.as_ref();
                let name = it.metadata.name.as_deref().unwrap_or_default();
                name.contains("-imbalance") && status.is_some_and(|it| it.optimization_result.is_some())
            };
            Ok(all.items.iter().any(|it| asked(it) || over(it)))
        })
        .await?;
    Ok(began.elapsed())
}
