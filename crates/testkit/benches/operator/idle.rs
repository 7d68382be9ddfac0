//! Many clusters and rebalances of which nothing is wanted, and what that costs; then how soon something is done that is.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use evenkeel_api::KafkaRebalance;
use evenkeel_operator::settings::Settings;
use evenkeel_testkit::measure::{Cost, Measurement, Numbers, Spread, Unit, grouped};
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use tokio::time::sleep;

use crate::{
    crowd::{made_at_once, memory},
    manifests::{pool_name, rebalance},
    sizes::Sizes,
    stand::Stand,
    step,
};

/// Until whatever was begun has come to its end.
const SETTLE: Duration = Duration::from_secs(10);
/// How long a rest is of which nothing is to be learnt.
const GLIMPSE: Duration = Duration::from_secs(5);

pub(crate) async fn measure(sizes: &Sizes, numbers: &mut Numbers) -> Result<()> {
    let stand = Stand::start().await?;
    let names = made_at_once("idle", &stand, sizes, numbers).await?;

    let many = grouped(names.len() * sizes.rebalances);
    step(&format!("idle: {many} rebalances"));
    let began = Instant::now();
    let wanted = names.iter().flat_map(|name| (0..sizes.rebalances).map(move |n| (name, n)));
    let ask = async |(name, n): (&String, usize)| {
        stand.create::<KafkaRebalance>(rebalance(&format!("{name}-{n}"), Some(name))).await
    };
    stand.each(wanted, ask).await?;
    let proposed = async || all_proposed(&stand, names.len() * sizes.rebalances).await;
    stand.until_at_last("every rebalance has its proposal", proposed).await?;
    let what = format!("{many} KafkaRebalances made at once, until all have their proposal");
    numbers.add(Measurement::time(what, Unit::Milliseconds, began.elapsed()));

    rest(&stand, sizes, &format!("{} clusters, {many} KafkaRebalances", grouped(names.len())), numbers).await?;

    step("idle: pods that are wished for");
    let mut times = Vec::new();
    for (n, name) in names.iter().cycle().take(sizes.wishes).enumerate() {
        times.push(first_pod(&stand, name, 4 + i32::try_from(n / names.len())?).await?);
    }
    let spread = Spread::of(times).context("no pod was wished for")?;
    let what = format!("scaled until the first pod is created, p99 of {}", spread.count());
    numbers.aimed(Measurement::time(what, Unit::Milliseconds, spread.percentile(99)), 300.0);
    Ok(())
}

async fn all_proposed(stand: &Stand, wanted: usize) -> Result<bool> {
    let all = stand.api::<KafkaRebalance>().list(&ListParams::default()).await?;
    let ready = all.items.iter().filter(|it| {
        let state = it.status.as_ref().and_then(|status| status.conditions.first());
        state.is_some_and(|state| state.type_ == "ProposalReady")
    });
    Ok(ready.count() == wanted)
}

/// What the operator holds, and does, while nobody wants anything. It looks at everything again meanwhile.
async fn rest(stand: &Stand, sizes: &Sizes, of: &str, numbers: &mut Numbers) -> Result<()> {
    let whole = Settings::default().reconciliation_interval * sizes.rests;
    step(&format!("idle: at rest with {of}"));
    sleep(SETTLE.min(whole)).await;
    let own = || Cost::of(std::process::id());
    let (before, others, version, began) = (stand.operator.cost()?, own()?, stand.version().await?, Instant::now());
    let looked_before = stand.operator.reconciliations()?;
    sleep(whole.max(GLIMPSE)).await;
    let (after, elapsed) = (stand.operator.cost()?, began.elapsed());
    let share = |used: Duration| used.as_secs_f64() / elapsed.as_secs_f64() * 100.0;
    let (used, used_by_others) = (share(after.cpu - before.cpu), share(own()?.cpu - others.cpu));
    let written = stand.version().await? - version;
    step(&format!("idle: brokers, engines and the API have used {used_by_others:.0} % of a core meanwhile"));
    let looked = stand.operator.reconciliations()?;
    let looked =
        looked.iter().map(|(kind, count)| (kind, count - looked_before.get(kind).copied().unwrap_or_default()));
    let each: Vec<String> = looked.clone().map(|(kind, count)| format!("{kind} {}", grouped(count))).collect();
    let all = grouped(looked.map(|(_, count)| count).sum::<u64>());
    step(&format!("idle: {all} reconciliations fell into it: {}", each.join(", ")));
    memory(stand, of, numbers)?;
    let meanwhile = format!("in {:.0} s with {all} reconciliations", elapsed.as_secs_f64());
    numbers.aimed(Measurement::new(format!("{of}, processor {meanwhile}"), Unit::PercentOfCore, used), 1.0);
    let what = format!("{of}, written by anybody {meanwhile}");
    numbers.aimed(Measurement::new(what, Unit::Writes, written as f64), 0.0);
    Ok(())
}

async fn first_pod(stand: &Stand, cluster: &str, replicas: i32) -> Result<Duration> {
    let pod = format!("{cluster}-{}-{}", pool_name(cluster, "broker"), replicas - 1);
    let began = Instant::now();
    stand.scale(cluster, replicas).await?;
    stand.until("there is a pod", async || Ok(stand.api::<Pod>().get_opt(&pod).await?.is_some())).await?;
    Ok(began.elapsed())
}
