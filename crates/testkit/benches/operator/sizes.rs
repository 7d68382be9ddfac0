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
    /// For how many of the operator's intervals, after which it looks at everything again, nobody does anything while it is
    /// read what it costs. 0: for a few seconds.
    pub(crate) rests: u32,
    /// How often a cluster grows, is filled, is emptied and shrinks.
    pub(crate) tides: usize,
}

impl Sizes {
    pub(crate) const FULL: Self = Self { clusters: 100, rebalances: 10, wishes: 100, rests: 2, tides: 5 };

    pub(crate) const QUICK: Self = Self { clusters: 3, rebalances: 2, wishes: 3, rests: 0, tides: 1 };
}
