//! Many clusters of which all want something at once.

use std::time::Instant;

use anyhow::Result;
use evenkeel_api::{Kafka, kafka::AutoRebalanceState};
use evenkeel_testkit::measure::{Measurement, Numbers, Unit, grouped};
use kube::api::ListParams;

use crate::{manifests::Watched, sizes::Sizes, stand::Stand, step};

const MIB: f64 = 1_048_576.0;

pub(crate) async fn measure(sizes: &Sizes, numbers: &mut Numbers) -> Result<()> {
    let stand = Stand::start().await?;
    let names = made_at_once("crowd", &stand, sizes, numbers).await?;
    step("crowd: all of them grow");
    let began = Instant::now();
    stand.each(&names, async |name: &String| stand.scale(name, 4).await).await?;
    stand.all_up(&names, 4).await?;
    let many = grouped(names.len());
    let what = format!("{many} clusters scaled at once, until all new brokers are in");
    numbers.add(Measurement::time(what, Unit::Milliseconds, began.elapsed()));
    step("crowd: data moves");
    stand.until_at_last("every cluster has moved its data", async || all_idle(&stand).await).await?;
    let what = format!("{many} clusters scaled at once, until all data is moved");
    numbers.add(Measurement::time(what, Unit::Milliseconds, began.elapsed()));
    memory(&stand, &format!("{many} clusters after all that"), numbers)
}

/// Makes many clusters, and waits until they are ready.
pub(crate) async fn made_at_once(
    part: &str,
    stand: &Stand,
    sizes: &Sizes,
    numbers: &mut Numbers,
) -> Result<Vec<String>> {
    let names: Vec<String> = (0..sizes.clusters).map(|n| format!("cluster-{n}")).collect();
    step(&format!("{part}: {} clusters", names.len()));
    let began = Instant::now();
    stand.each(&names, async |name: &String| stand.make(name, Watched::Seldom).await).await?;
    stand.all_up(&names, 3).await?;
    let what = format!("{} clusters of six nodes made at once, until all are ready", grouped(names.len()));
    numbers.add(Measurement::time(what, Unit::Milliseconds, began.elapsed()));
    Ok(names)
}

/// Tells what the operator holds now.
pub(crate) fn memory(stand: &Stand, of: &str, numbers: &mut Numbers) -> Result<()> {
    let held = stand.operator.cost()?.memory;
    let measured =
        |what: &str, bytes: u64| Measurement::new(format!("{of}, {what}"), Unit::Mebibytes, bytes as f64 / MIB);
    numbers.aimed(measured("memory", held.resident), 64.0);
    numbers.add(measured("memory without the program's own file", held.anonymous));
    Ok(())
}

/// Whether automatic rebalancing is at nothing anywhere, and nothing is queued.
async fn all_idle(stand: &Stand) -> Result<bool> {
    let all = stand.api::<Kafka>().list(&ListParams::default()).await?;
    Ok(all.items.iter().all(|kafka| {
        let auto = kafka.status.as_ref().and_then(|status| status.auto_rebalance.as_ref());
        auto.is_some_and(|auto| auto.state == AutoRebalanceState::Idle && auto.modes.is_empty())
    }))
}
