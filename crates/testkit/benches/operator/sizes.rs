//! How much of everything.

use serde::Serialize;

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Sizes {
    /// Clusters of three controllers and three brokers.
    pub(crate) clusters: usize,
    /// KafkaRebalances of each of them.
    pub(crate) rebalances: usize,
    /// How often a wish is made whose answer is timed.
    pub(crate) wishes: usize,
    /// For how many seconds nobody does anything while it is read what the operator costs.
    pub(crate) rest: u64,
    /// How often a cluster grows, is filled, is emptied and shrinks.
    pub(crate) tides: usize,
}

impl Sizes {
    pub(crate) const FULL: Self = Self { clusters: 100, rebalances: 10, wishes: 100, rest: 60, tides: 5 };

    pub(crate) const QUICK: Self = Self { clusters: 3, rebalances: 2, wishes: 3, rest: 5, tides: 1 };
}
