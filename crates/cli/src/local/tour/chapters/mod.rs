//! The chapters, in order. Each stands on what those before it left behind.

mod cluster;
mod deletion;
mod failure;
mod rebalance;
mod scaling;

use std::io::Write;

use super::guide::{Guide, Standing};

/// The pool that the tour scales.
const POOL: &str = "quay";

/// What the chapters are called.
pub(crate) const TITLES: &[&str] = &[
    "A cluster comes up, grows, and does not shrink over its data",
    "Ask, look, approve, follow",
    "A rebalance is deleted in the middle, and a broker leaves",
    "Brokers come and go, and their data with them",
    "The engine is killed in the middle",
];

/// Plays one of them; the first has the number 1.
pub(crate) async fn play<W: Write>(number: usize, guide: &mut Guide<W>) -> anyhow::Result<()> {
    match number {
        1 => cluster::play(guide).await,
        2 => rebalance::play(guide).await,
        3 => deletion::play(guide).await,
        4 => scaling::play(guide).await,
        5 => failure::play(guide).await,
        _ => unreachable!("there are only {} chapters", TITLES.len()),
    }
}

/// The name of the pod of a broker.
fn pod_of<W>(guide: &Guide<W>, id: i32) -> String {
    format!("{}-{POOL}-{id}", guide.cluster)
}

/// Waits until brokers are gone, and Kafka has forgotten them.
async fn gone<W: Write>(guide: &mut Guide<W>, ids: &[i32]) -> anyhow::Result<()> {
    let promise = match ids {
        [one] => format!("broker {one} is gone, and Kafka has forgotten it"),
        _ => format!("the brokers {ids:?} are gone, and Kafka has forgotten them"),
    };
    guide
        .until(&promise, async |guide| {
            let mut pods = 0;
            for id in ids {
                pods += usize::from(guide.pod(&pod_of(guide, *id)).await?.is_some());
            }
            let known = guide.kafka.describe_cluster().await?;
            let known = known.brokers.iter().filter(|it| ids.contains(&it.id.0)).count();
            Ok(Standing::reached_if(pods + known == 0, format!("{pods} pods left, {known} registered")))
        })
        .await
}
