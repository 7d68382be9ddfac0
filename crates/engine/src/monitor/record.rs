//! One recording of a cluster, for whoever has no engine at hand: nothing is written, nothing is kept.

use std::{sync::Arc, time::Duration};

use evenkeel_balancer::cluster::CpuWeights;
use evenkeel_kafka::{Client, Error};

use super::{
    sources::{self, Scene, Source},
    windows::{Aggregate, Layout, NotEnough, Requirement, Windows},
};
use crate::{
    clock::WallClock,
    config::capacity::Capacities,
    watch::{Dirs, Sighting, Watcher},
};

/// One window, which counts while it is being filled.
const LAYOUT: Layout = Layout { length: 3_600_000, kept: 1, enough: 1, may_be_stretched: 0, early: true };

/// Why there is no recording.
#[derive(Debug, thiserror::Error)]
pub enum NoRecording {
    /// Kafka cannot be reached, or does not answer.
    #[error("the cluster cannot be looked at")]
    Look(#[from] Error),
    /// Not one partition has a leader that tells of it.
    #[error("nothing is known of what the cluster carries")]
    Nothing(#[from] NotEnough),
}

/// The cluster and what it carries: by the reporter's topic if brokers write to it, else by two looks
/// that are so far apart.
pub async fn record(
    client: Client,
    clock: WallClock,
    capacities: Arc<Capacities>,
    reporter_topic: &str,
    apart: Duration,
) -> Result<(Sighting, Aggregate), NoRecording> {
    let mut watcher = Watcher::new(client.clone(), clock, Arc::clone(&capacities));
    let mut source = sources::automatic(sources::Ground {
        client,
        clock,
        capacities,
        topic: reporter_topic.to_owned(),
        interval: i64::try_from(apart.as_millis()).unwrap_or(i64::MAX / 4),
        weights: CpuWeights::default(),
    });
    let (mut sighting, mut sizes) = watcher.look(Dirs::All, None).await?;
    let mut sampled = source.sample(Scene { sighting: &sighting, sizes: &sizes }).await?;
    if sampled.half {
        tokio::time::sleep(apart).await;
        (sighting, sizes) = watcher.look(Dirs::All, Some(&sighting)).await?;
        sampled = source.sample(Scene { sighting: &sighting, sizes: &sizes }).await?;
    }
    let mut windows = Windows::new(LAYOUT);
    for sample in &sampled.partitions {
        windows.add(sample);
    }
    let loads = windows.aggregate(sighting.view.partitions.keys(), Requirement::LEAST, clock.now())?;
    Ok((sighting, loads))
}
