//! What an engine holds in memory when it knows many partitions in all their windows, has sampled and has planned.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use evenkeel_rest::request::{self, Rebalance};
use evenkeel_testkit::measure::{Measurement, Numbers, Unit, grouped};
use tokio::time::sleep;

use crate::{sizes::Sizes, stand::Stand, step};

/// Samples of half an hour: five windows, and the one that is being filled.
const EVERY: i64 = 100_000;
const SPAN: i64 = 1_800_000;
/// How often brokers report and the engine samples, in milliseconds. Three times as often as usual, so that the rounds that
/// matter are over soon: what one of them needs does not depend on that.
const ROUND: i64 = 20_000;
const LOOK_AGAIN: Duration = Duration::from_millis(50);
const MIB: f64 = 1_048_576.0;

pub(crate) async fn measure(sizes: &Sizes, numbers: &mut Numbers) -> Result<()> {
    let [_, partitions] = sizes.remembered;
    step("memory: a cluster");
    let stand = Stand::built(sizes.remembered, ROUND).await?;
    step("memory: samples");
    stand.remember(partitions, EVERY, SPAN).await?;
    step("memory: an engine");
    let engine = stand.engine(&format!("metric.sampling.interval.ms={ROUND}\n")).await?;
    let mut peak = 0;
    let work = async {
        engine.ready().await?;
        step("memory: a plan");
        engine.first_answer(&Rebalance::default()).await?;
        step("memory: rounds of samples");
        sleep(Duration::from_millis(ROUND.unsigned_abs() * sizes.rounds)).await;
        // On what has been sampled since.
        engine.answer(&Rebalance::default()).await
    };
    tokio::pin!(work);
    loop {
        tokio::select! {
            done = &mut work => {
                done?;
                break;
            }
            () = sleep(LOOK_AGAIN) => peak = engine.resident()?.max(peak),
        }
    }
    step("memory: at rest");
    let at_rest = rest(&engine, Duration::from_secs(sizes.watched)).await?;
    let figures = engine.answer(&request::State::default()).await?.monitor_state.and_then(|it| it.figures);
    let (windows, known) = figures.map_or((0, 0), |it| (it.num_monitored_windows, it.num_valid_partitions));
    ensure!(windows >= 5 && known >= u64::try_from(partitions)?, "{known} partitions in {windows} windows are known");
    let what = format!("resident memory, {} partitions, {windows} windows", grouped(partitions));
    numbers.aimed(Measurement::new(&what, Unit::Mebibytes, at_rest as f64 / MIB), 300.0);
    numbers.add(Measurement::new(format!("{what}, at its highest"), Unit::Mebibytes, peak as f64 / MIB));
    Ok(())
}

/// The highest that is seen for a while without requests: sampling goes on.
async fn rest(engine: &crate::stand::Served, watched: Duration) -> Result<u64> {
    let (began, mut highest) = (Instant::now(), 0);
    while began.elapsed() < watched {
        highest = engine.resident()?.max(highest);
        sleep(LOOK_AGAIN).await;
    }
    Ok(highest)
}
