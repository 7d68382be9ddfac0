//! The chapters, in order. Each stands on what those before it left behind.

mod automatic;
mod cluster;
mod deletion;
mod failure;
mod imbalance;
mod manifests;
mod rebalance;
mod replacement;
mod scale_down;
mod scale_up;

use std::io::Write;

use super::brokers::Placement;
use super::guide::{Guide, Standing};

/// The pool that the tour scales.
const POOL: &str = "quay";
/// The template of rebalances after scaling.
const TEMPLATE: &str = "even-out";

/// What the chapters are called.
pub(crate) const TITLES: &[&str] = &[
    "A cluster comes up, grows, and does not shrink over its data",
    "Ask, look, approve, follow",
    "A rebalance is deleted in the middle, and a broker leaves",
    "Two brokers come, and get their share",
    "Two brokers go, emptied first",
    "One comes and one goes at the same time",
    "Load shifts, is seen, and is evened out",
    "The operator and the engine are killed in the middle",
];

/// Plays one of them; the first has the number 1.
pub(crate) async fn play<W: Write>(number: usize, guide: &mut Guide<W>) -> anyhow::Result<()> {
    match number {
        1 => cluster::play(guide).await,
        2 => rebalance::play(guide).await,
        3 => deletion::play(guide).await,
        4 => scale_up::play(guide).await,
        5 => scale_down::play(guide).await,
        6 => replacement::play(guide).await,
        7 => imbalance::play(guide).await,
        8 => failure::play(guide).await,
        _ => unreachable!("there are only {} chapters", TITLES.len()),
    }
}

/// The name of the pod of a broker.
fn pod_of<W>(guide: &Guide<W>, id: i32) -> String {
    format!("{}-{POOL}-{id}", guide.cluster)
}

/// Waits until brokers are gone, and Kafka has forgotten them. None may go before it is empty.
async fn gone<W: Write>(guide: &mut Guide<W>, ids: &[i32]) -> anyhow::Result<()> {
    let promise = match ids {
        [one] => format!("broker {one} is gone, with nothing on it, and Kafka has forgotten it"),
        _ => format!("the brokers {ids:?} are gone, with nothing on them, and Kafka has forgotten them"),
    };
    guide
        .until(&promise, async |guide| {
            let mut pods = 0;
            for id in ids {
                pods += usize::from(guide.pod(&pod_of(guide, *id)).await?.is_some());
            }
            // Asked after the pods: what one of them held when it was gone is held now.
            let held = Placement::look(&guide.kafka).await?.held_by(ids);
            if pods < ids.len() && held > 0 {
                return Ok(Standing::Never(format!("one has gone while {held} replicas were left on them")));
            }
            let known = guide.kafka.describe_cluster().await?;
            let known = known.brokers.iter().filter(|it| ids.contains(&it.id.0)).count();
            Ok(Standing::reached_if(pods + known == 0, format!("{pods} pods left, {known} registered")))
        })
        .await
}
