//! The cluster as it was seen a moment ago: all that a step may depend on.
//!
//! Brokers trail the controller by some hundred milliseconds, in both directions: a move that has
//! just begun is listed before metadata shows it, and one that has just ended is listed no longer
//! while metadata still shows the long list. So neither alone proves anything.

use std::collections::{BTreeMap, BTreeSet};

use evenkeel_kafka::{BrokerId, TopicPartition};

use super::order::{Millis, Move};

/// What was seen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sight {
    /// When.
    pub now: Millis,
    /// Brokers that are up.
    pub up: BTreeSet<BrokerId>,
    /// Brokers that the cluster knows, up or not.
    pub registered: BTreeSet<BrokerId>,
    /// Whether those are all that the cluster knows: brokers before Kafka 4.0 do not name those that are down.
    pub names_all: bool,
    /// The partitions of the order, as far as they could be seen.
    pub partitions: BTreeMap<TopicPartition, PartitionSight>,
    /// Partitions of the order that are not there, as far as whoever was asked knows.
    pub unknown: BTreeSet<TopicPartition>,
    /// Moves under way, whoever started them: the target, then what it will lose.
    pub under_way: BTreeMap<TopicPartition, Vec<BrokerId>>,
    /// Replicas of the order on their brokers' disks.
    pub dirs: BTreeMap<(BrokerId, TopicPartition), DirSight>,
    /// Partitions with fewer replicas in sync than they should have.
    pub short: BTreeSet<TopicPartition>,
    /// Those of them whose missing members cannot come by themselves: their brokers or their disks are lost.
    pub bereft: BTreeSet<TopicPartition>,
}

/// One partition, as metadata shows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PartitionSight {
    /// Who holds it.
    pub replicas: Vec<BrokerId>,
    /// Who has all of it.
    pub in_sync: Vec<BrokerId>,
    /// Who should hold it and cannot: the broker is down, or the disk has failed.
    pub offline: Vec<BrokerId>,
    /// Who leads it, if anybody.
    pub leader: Option<BrokerId>,
    /// How many should be in sync at least.
    pub min_in_sync: usize,
}

/// One replica on its broker.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DirSight {
    /// The directory it is in.
    pub dir: String,
    /// Its size there.
    pub bytes: u64,
    /// The directory it is being copied to, and how much is there.
    pub future: Option<(String, u64)>,
}

impl PartitionSight {
    /// Whether it has fewer replicas in sync than it should have.
    pub(super) fn is_short(&self) -> bool {
        self.in_sync.len() < self.min_in_sync.min(self.replicas.len())
    }

    /// Whether nobody is just catching up: everybody who is not in sync is lost, or nobody leads whom they could follow.
    pub(super) fn is_bereft(&self) -> bool {
        let lags = |broker: &&BrokerId| !self.in_sync.contains(broker);
        self.leader.is_none() || self.replicas.iter().filter(lags).all(|broker| self.offline.contains(broker))
    }
}

impl Sight {
    /// Whether a move of this partition is under way towards `mv`'s target.
    pub(super) fn is_moving_to(&self, mv: &Move) -> bool {
        self.under_way.get(&mv.partition).is_some_and(|listed| listed.starts_with(&mv.new))
    }

    /// Whether the move is seen to be over and done: metadata shows the target, nothing is under
    /// way, and everybody who was added is in sync. A member that was one before is not waited for: that it is
    /// down, or has fallen behind since, is no part of the move.
    pub(super) fn shows_done(&self, mv: &Move, seen: &PartitionSight) -> bool {
        seen.replicas == mv.new
            && !self.under_way.contains_key(&mv.partition)
            && mv.added().all(|broker| seen.in_sync.contains(&broker))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bereft_is_who_has_nobody_to_catch_up() {
        let is_bereft = |leader: Option<i32>, in_sync: &[i32], offline: &[i32]| {
            let ids = |ids: &[i32]| ids.iter().copied().map(BrokerId).collect::<Vec<_>>();
            let replicas = ids(&[0, 1]);
            let (in_sync, offline) = (ids(in_sync), ids(offline));
            let leader = leader.map(BrokerId);
            PartitionSight { replicas, in_sync, offline, leader, min_in_sync: 2 }.is_bereft()
        };
        assert!(!is_bereft(Some(0), &[0], &[]), "1 catches up");
        assert!(is_bereft(Some(0), &[0], &[1]), "1 is lost");
        assert!(is_bereft(None, &[0], &[0]), "1 is there, and has nobody to follow");
    }
}
