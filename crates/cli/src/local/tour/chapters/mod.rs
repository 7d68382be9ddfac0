//! The chapters, in order. Each stands on what those before it left behind.

mod cluster;
mod rebalance;
mod scaling;

use std::io::Write;

use anyhow::Context;
use evenkeel_api::KafkaNodePool;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::guide::Guide;

/// The pool that the tour scales.
const POOL: &str = "quay";

/// What the chapters are called.
pub(crate) const TITLES: &[&str] = &[
    "A cluster comes up, grows, and does not shrink over its data",
    "Ask, look, approve, follow: a broker is emptied and removed",
    "Brokers come and go, and their data with them",
];

/// Plays one of them; the first has the number 1.
pub(crate) async fn play<W: Write>(number: usize, guide: &mut Guide<W>) -> anyhow::Result<()> {
    match number {
        1 => cluster::play(guide).await,
        2 => rebalance::play(guide).await,
        3 => scaling::play(guide).await,
        _ => unreachable!("there are only {} chapters", TITLES.len()),
    }
}

/// Scales the brokers, as `kubectl scale` does.
async fn scale<W: Write>(guide: &mut Guide<W>, replicas: i32) -> anyhow::Result<()> {
    guide.command(&format!("kubectl scale kafkanodepool/{POOL} --replicas={replicas}"))?;
    let patch = json!({"spec": {"replicas": replicas}});
    let api = guide.api::<KafkaNodePool>();
    api.patch_scale(POOL, &PatchParams::default(), &Patch::Merge(&patch)).await.context("could not scale the pool")?;
    Ok(())
}

/// The name of the pod of a broker.
fn pod_of<W>(guide: &Guide<W>, id: i32) -> String {
    format!("{}-{POOL}-{id}", guide.cluster)
}
