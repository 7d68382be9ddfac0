//! How much of everything.

use serde::Serialize;

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Sizes {
    /// Brokers and partitions, three replicas each, of the cluster that plans are made for.
    pub(crate) planned: [i32; 2],
    /// How many proposals are asked for.
    pub(crate) proposals: usize,
    /// How many proposals are approved.
    pub(crate) approvals: usize,
    /// How many brokers are emptied while the state is asked for, and how many moves that makes at least.
    pub(crate) emptied: i32,
    pub(crate) moves: u64,
    /// How often the state is asked for.
    pub(crate) states: usize,
    /// Brokers and partitions of the cluster whose engine's memory is read.
    pub(crate) remembered: [i32; 2],
    /// Sampling intervals that pass before it is.
    pub(crate) rounds: u64,
    /// For how many seconds it is looked at without requests: longer than one of those.
    pub(crate) watched: u64,
    /// Brokers and partitions of the cluster of which there is a day of samples.
    pub(crate) sampled: [i32; 2],
    /// Partitions, two replicas of 100 MB each, of which half are moved under a throttle.
    pub(crate) throttled: i32,
}

impl Sizes {
    pub(crate) const FULL: Self = Self {
        planned: [40, 16_700],
        proposals: 15,
        approvals: 5,
        emptied: 10,
        moves: 10_000,
        states: 3_000,
        remembered: [60, 100_000],
        rounds: 2,
        watched: 25,
        sampled: [12, 5_000],
        throttled: 600,
    };

    pub(crate) const QUICK: Self = Self {
        planned: [6, 600],
        proposals: 2,
        approvals: 1,
        emptied: 1,
        moves: 200,
        states: 50,
        remembered: [6, 1_000],
        rounds: 0,
        watched: 5,
        sampled: [4, 100],
        throttled: 60,
    };
}
