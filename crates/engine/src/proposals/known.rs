//! What a plan is made from: who is there, and what it carries.

use std::{collections::BTreeMap, sync::Arc};

use evenkeel_kafka::{BrokerId, TopicPartition};
use evenkeel_rest::Failure;

use crate::{
    executor::Baseline,
    model::View,
    monitor::windows::{Aggregate, NotEnough},
};

/// One look at the cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sighting {
    /// Who is there and what lies where.
    pub view: View,
    /// Replicas that are not in sync, of partitions that have such.
    pub lagging: BTreeMap<TopicPartition, Vec<i32>>,
    /// How many replicas must be in sync, by topic.
    pub min_in_sync: BTreeMap<String, usize>,
    /// When, in milliseconds since 1970.
    pub at: i64,
}

impl Sighting {
    /// Partitions that fall short of what must be in sync.
    pub fn short(&self) -> impl Iterator<Item = &TopicPartition> {
        self.lagging.iter().filter_map(|(partition, lagging)| {
            let replicas = self.view.partitions.get(partition)?.replicas.len();
            let wanted = self.min_in_sync.get(&partition.topic).copied().unwrap_or(1).min(replicas);
            (replicas.saturating_sub(lagging.len()) < wanted).then_some(partition)
        })
    }

    /// Brokers that are up.
    pub fn up(&self) -> impl Iterator<Item = i32> {
        self.view.brokers.iter().filter(|(_, broker)| broker.up).map(|(id, _)| *id)
    }
}

/// What is known at one moment.
#[derive(Debug, Clone)]
pub struct Known {
    /// Who is there.
    pub sighting: Arc<Sighting>,
    /// What it carries.
    pub loads: Aggregate,
    /// Changes when what is known changes.
    pub generation: u64,
}

/// What is wrong already, and so holds nothing up.
pub(super) fn baseline(seen: &Sighting) -> Baseline {
    Baseline { up: seen.up().map(BrokerId).collect(), short: seen.short().cloned().collect() }
}

/// That too little is known, in the words that clients wait on.
pub fn not_enough(why: &NotEnough) -> Failure {
    match why {
        // The window being filled is not asked for.
        NotEnough::NoWindow { now, newest, oldest } => Failure::no_window(-1, *now, (1, newest - 1), *newest, *oldest),
        NotEnough::TooFew { valid, wanted, ratio, now } => {
            let options = format!("(minValidEntityRatio={ratio:.2}, minValidWindows={wanted})");
            Failure::too_few_windows(*valid, -1, *now, options)
        }
    }
}
