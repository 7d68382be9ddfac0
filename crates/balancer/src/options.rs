//! What a caller asks for: the operation, the goals, and what must be left alone.

use std::collections::BTreeSet;

use crate::cluster::{Broker, BrokerId, PartitionView};
use crate::goal::Goal;
pub use crate::pattern::{BadPattern, TopicPattern};

/// What is to be done to the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Operation {
    /// Bring every goal as far as it goes.
    #[default]
    Rebalance,
    /// Move data onto these brokers, and only onto them.
    AddBrokers(BTreeSet<BrokerId>),
    /// Empty these brokers.
    RemoveBrokers(BTreeSet<BrokerId>),
    /// Take leadership away from these brokers.
    DemoteBrokers(BTreeSet<BrokerId>),
    /// Move replicas off dead brokers and dead disks.
    FixOfflineReplicas,
    /// Empty these log directories within their brokers.
    RemoveDisks(BTreeSet<(BrokerId, String)>),
    /// Balance the disks of each broker among themselves.
    RebalanceDisks,
}

impl Operation {
    /// Whether nobody has the partition's data: no replica of it is on a broker and a disk that live. It is gone unless one
    /// of them comes back, and nobody can copy it. Brokers that are removed by name and dead still have theirs: the engine
    /// calls those dead that it is asked to remove. Those that live say themselves what of theirs is offline.
    pub fn finds_lost(&self, partition: PartitionView<'_>) -> bool {
        let is_alive = |id: BrokerId| partition.cluster.broker(id).is_some_and(Broker::is_alive);
        let is_removed =
            |id: BrokerId| !is_alive(id) && matches!(self, Operation::RemoveBrokers(ids) if ids.contains(&id));
        partition.replicas().all(|replica| replica.offline && !is_removed(replica.broker))
    }
}

/// At most so much may a plan move.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Budget {
    /// Data copied between brokers and between disks, in MB.
    pub megabytes: Option<f64>,
    /// Partitions changed.
    pub moves: Option<usize>,
}

/// How demotion treats the partitions it finds; unless told otherwise it leaves both kinds alone, as Cruise Control does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Demotion {
    /// Leaves partitions with offline replicas alone (`skip_urp_demotion`).
    pub skip_under_replicated: bool,
    /// Leaves partitions alone where the broker only follows (`exclude_follower_demotion`).
    pub exclude_followers: bool,
}

impl Default for Demotion {
    fn default() -> Self {
        Demotion { skip_under_replicated: true, exclude_followers: true }
    }
}

/// A whole request.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// What is to be done.
    pub operation: Operation,
    /// Most important first, but that hard ones come before soft ones; empty means the operation's own list.
    pub goals: Vec<Goal>,
    /// If not empty, replicas move only onto these brokers.
    pub destinations: BTreeSet<BrokerId>,
    /// Topics whose replicas and leaders stay where they are.
    pub excluded_topics: Option<TopicPattern>,
    /// Brokers that get no new leaders.
    pub excluded_for_leadership: BTreeSet<BrokerId>,
    /// Brokers that get no replicas, unless they are named as destinations.
    pub excluded_for_replica_moves: BTreeSet<BrokerId>,
    /// Moves only replicas that are not where they belong already (offline ones).
    pub only_immigrants: bool,
    /// Whether the goal violation detector asks: bands are then as wide as those it watches, wider than for people by
    /// [`Settings::distribution_threshold_multiplier`](crate::settings::Settings::distribution_threshold_multiplier).
    pub triggered_by_violation: bool,
    /// At most so much.
    pub budget: Budget,
    /// How demotion treats what it finds.
    pub demotion: Demotion,
    /// How many threads may work; the answer does not depend on it.
    pub threads: usize,
}

impl Request {
    /// A rebalance by `goals` with nothing excluded.
    pub fn rebalance(goals: &[Goal]) -> Self {
        Request { goals: goals.to_vec(), ..Request::default() }
    }

    /// The goals in force as they are listed: by the caller, or else by the operation itself. That is the order in which
    /// they are told and weighed.
    pub(crate) fn goals_listed(&self) -> Vec<Goal> {
        match self.operation {
            _ if !self.goals.is_empty() => self.goals.clone(),
            Operation::DemoteBrokers(_) => vec![Goal::PreferredLeaderElection],
            Operation::RemoveDisks(_) => vec![Goal::IntraBrokerDiskCapacity],
            Operation::RebalanceDisks => Goal::INTRA_BROKER.to_vec(),
            _ => Goal::DEFAULT.to_vec(),
        }
    }

    /// The goals in force as they are served. Hard ones come first wherever they are listed: a plan without them is none,
    /// so what soft goals want must not be what they fail at.
    pub(crate) fn goals_in_force(&self) -> Vec<Goal> {
        let mut goals = self.goals_listed();
        // Stable: hard ones among themselves, and soft ones, are in the caller's order.
        goals.sort_by_key(|goal| !goal.is_hard());
        goals
    }

    /// Whether what is offline moves, if these goals are in force: electing leaders and tidying disks copies nothing from
    /// broker to broker, unless that is what the operation is for.
    pub(crate) fn evacuates(&self, goals: &[Goal]) -> bool {
        match self.operation {
            Operation::DemoteBrokers(_) | Operation::RemoveDisks(_) | Operation::RebalanceDisks => false,
            Operation::RemoveBrokers(_) | Operation::FixOfflineReplicas => true,
            Operation::Rebalance | Operation::AddBrokers(_) => goals.iter().any(|goal| goal.moves_replicas()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Demotion;

    #[test]
    fn demotion_leaves_followers_and_partitions_in_trouble_alone_unless_told_otherwise() {
        assert_eq!(Demotion::default(), Demotion { skip_under_replicated: true, exclude_followers: true });
    }
}
