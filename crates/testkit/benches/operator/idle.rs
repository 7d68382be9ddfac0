//! Many clusters of which nothing is wanted: what that costs; and then something of all of them at once.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use evenkeel_api::KafkaRebalance;
use evenkeel_testkit::measure::{Measurement, Numbers, Spread, Unit, grouped};
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use tokio::time::sleep;

use crate::{
    manifests::{pool_name, rebalance},
    sizes::Sizes,
    stand::Stand,
    step,
};

const MIB: f64 = 1_048_576.0;
/// Until whatever was begun has come to its end.
const SETTLE: Duration = Duration::from_secs(10);

pub(crate) async fn measure(sizes: &Sizes, numbers: &mut Numbers) -> Result<()> {
    let stand = Stand::start().await?;
    let names: Vec<String> = (0..sizes.clusters).map(|n| format!("cluster-{n}")).collect();
    step(&format!("idle: {} clusters", names.len()));
    let began = Instant::now();
    for name in &names {
        stand.make(name).await?;
    }
    all_up(&stand, &names, 3).await?;
    let what = format!("{} clusters of six nodes made at once, until all are ready", grouped(names.len()));
    numbers.add(Measurement::time(what, Unit::Milliseconds, began.elapsed()));
    rest(&stand, sizes, &format!("{} clusters", grouped(names.len())), numbers).await?;

    step("idle: rebalances");
    for name in &names {
        for n in 0..sizes.rebalances {
            stand.create::<KafkaRebalance>(rebalance(&format!("{name}-{n}"), Some(name))).await?;
        }
    }
    stand.until("every rebalance has its proposal", async || all_proposed(&stand, &names, sizes).await).await?;
    let many = grouped(names.len() * sizes.rebalances);
    rest(&stand, sizes, &format!("{many} KafkaRebalances over them"), numbers).await?;

    step("idle: pods that are wished for");
    let mut times = Vec::new();
    for (n, name) in names.iter().cycle().take(sizes.wishes).enumerate() {
        times.push(first_pod(&stand, name, 4 + i32::try_from(n / names.len())?).await?);
    }
    let spread = Spread::of(times).context("no pod was wished for")?;
    let what = format!("scaled until the first pod is created, p99 of {}", spread.count());
    numbers.aimed(Measurement::time(what, Unit::Milliseconds, spread.percentile(99)), 300.0);

    step("idle: all at once");
    let brokers = 4 + (sizes.wishes - 1) / names.len();
    all_up(&stand, &names, brokers).await?;
    let began = Instant::now();
    for name in &names {
        stand.scale(name, i32::try_from(brokers + 1)?).await?;
    }
    all_up(&stand, &names, brokers + 1).await?;
    let what = format!("{} clusters scaled at once, until all are ready", grouped(names.len()));
    numbers.add(Measurement::time(what, Unit::Milliseconds, began.elapsed()));
    let memory = stand.operator.cost()?.memory.resident;
    numbers.aimed(Measurement::new("memory after all that", Unit::Mebibytes, memory as f64 / MIB), 64.0);
    Ok(())
}

async fn all_up(stand: &Stand, names: &[String], brokers: usize) -> Result<()> {
    for name in names {
        stand.until("every cluster is up", async || stand.is_up(name, brokers).await).await?;
    }
    Ok(())
}

async fn all_proposed(stand: &Stand, names: &[String], sizes: &Sizes) -> Result<bool> {
    // Seldom looked at: to look at a thousand is work, too.
    sleep(Duration::from_millis(500)).await;
    let all = stand.api::<KafkaRebalance>().list(&ListParams::default()).await?;
    let ready = all.items.iter().filter(|it| {
        let state = it.status.as_ref().and_then(|status| status.conditions.first());
        state.is_some_and(|state| state.type_ == "ProposalReady")
    });
    Ok(ready.count() == names.len() * sizes.rebalances)
}

/// What the operator holds, and does, while nobody wants anything.
async fn rest(stand: &Stand, sizes: &Sizes, of: &str, numbers: &mut Numbers) -> Result<()> {
    step(&format!("idle: at rest with {of}"));
    sleep(SETTLE.min(Duration::from_secs(sizes.rest))).await;
    let (before, version, began) = (stand.operator.cost()?, stand.version().await?, Instant::now());
    sleep(Duration::from_secs(sizes.rest)).await;
    let (after, elapsed) = (stand.operator.cost()?, began.elapsed());
    let written = stand.version().await? - version;
    let share = (after.cpu - before.cpu).as_secs_f64() / elapsed.as_secs_f64() * 100.0;
    let memory = after.memory.resident as f64 / MIB;
    numbers.aimed(Measurement::new(format!("{of}, memory"), Unit::Mebibytes, memory), 64.0);
    numbers.aimed(Measurement::new(format!("{of}, processor"), Unit::PercentOfCore, share), 1.0);
    step(&format!("idle: {written} writes by anybody in {:.0} s", elapsed.as_secs_f64()));
    Ok(())
}

async fn first_pod(stand: &Stand, cluster: &str, replicas: i32) -> Result<Duration> {
    let pod = format!("{cluster}-{}-{}", pool_name(cluster, "broker"), replicas - 1);
    let began = Instant::now();
    stand.scale(cluster, replicas).await?;
    stand.until("there is a pod", async || Ok(stand.api::<Pod>().get_opt(&pod).await?.is_some())).await?;
    Ok(began.elapsed())
}
