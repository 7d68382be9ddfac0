//! From the start of the process until it says that it is ready, when a day of samples waits to be read.

use anyhow::{Result, ensure};
use evenkeel_rest::request;
use evenkeel_testkit::measure::{Measurement, Numbers, Spread, Unit, grouped};

use crate::{
    sizes::Sizes,
    stand::{Stand, USUAL},
    step,
};

const DAY: i64 = 86_400_000;
/// Samples every other minute.
const EVERY: i64 = 120_000;
/// All of it is used.
const WINDOWS: &str = "partition.metrics.window.ms=3600000\nnum.partition.metrics.windows=24\n";
const STARTS: usize = 3;

pub(crate) async fn measure(sizes: &Sizes, numbers: &mut Numbers) -> Result<()> {
    let [_, partitions] = sizes.sampled;
    step("start: a cluster with a day of samples");
    let stand = Stand::built(sizes.sampled, USUAL).await?;
    let count = stand.remember(partitions, EVERY, DAY).await?;
    step("start: engines");
    let mut times = Vec::new();
    for _ in 0..STARTS {
        let engine = stand.engine(WINDOWS).await?;
        times.push(engine.ready().await?);
        let monitor = engine.answer(&request::State::default()).await?.monitor_state;
        let windows = monitor.and_then(|it| it.figures).map_or(0, |it| it.num_monitored_windows);
        ensure!(windows >= 23, "only {windows} windows were loaded");
    }
    let what = format!("start to ready, {} samples of a day, {} partitions", grouped(count), grouped(partitions));
    let longest = Spread::of(times).map(|spread| spread.percentile(100)).unwrap_or_default();
    numbers.aimed(Measurement::time(what, Unit::Milliseconds, longest), 10_000.0);
    Ok(())
}
