//! What a plan is made from: who is there, and what it carries.

use std::{collections::BTreeSet, sync::Arc};

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
    /// Partitions with fewer replicas in sync than they should have.
    pub short: BTreeSet<TopicPartition>,
    /// When, in milliseconds since 1970.
    pub at: i64,
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

impl Known {
    /// What is wrong already, and so holds nothing up.
    pub(super) fn baseline(&self) -> Baseline {
        let up = self.sighting.view.brokers.iter().filter(|(_, broker)| broker.up);
        Baseline { up: up.map(|(id, _)| BrokerId(*id)).collect(), short: self.sighting.short.clone() }
    }
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
