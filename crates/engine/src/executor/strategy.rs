//! Which of the waiting moves goes first.

use serde::{Deserialize, Serialize};

use super::{
    order::{Move, Order},
    sight::Sight,
};

/// One rule of a chain; the next one decides between what this one does not tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Strategy {
    /// In the order of the plan.
    Base,
    /// What copies least.
    PrioritizeSmallReplicaMovement,
    /// What copies most.
    PrioritizeLargeReplicaMovement,
    /// Partitions that lack replicas in sync go last.
    PostponeUrpReplicaMovement,
    /// Among partitions with replicas that are down: below the minimum in sync first, then at it.
    PrioritizeMinIsrWithOfflineReplicas,
    /// As the former, then those that are one above the minimum.
    PrioritizeOneAboveMinIsrWithOfflineReplicas,
}

impl Strategy {
    /// All there are, by the names that requests and settings use.
    pub const NAMES: [(&'static str, Strategy); 6] = [
        ("BaseReplicaMovementStrategy", Strategy::Base),
        ("PostponeUrpReplicaMovementStrategy", Strategy::PostponeUrpReplicaMovement),
        ("PrioritizeLargeReplicaMovementStrategy", Strategy::PrioritizeLargeReplicaMovement),
        ("PrioritizeMinIsrWithOfflineReplicasStrategy", Strategy::PrioritizeMinIsrWithOfflineReplicas),
        ("PrioritizeOneAboveMinIsrWithOfflineReplicasStrategy", Strategy::PrioritizeOneAboveMinIsrWithOfflineReplicas),
        ("PrioritizeSmallReplicaMovementStrategy", Strategy::PrioritizeSmallReplicaMovement),
    ];

    /// By name, with or without the package.
    pub fn from_name(name: &str) -> Option<Strategy> {
        let short = name.rsplit('.').next().unwrap_or(name);
        Self::NAMES.iter().find(|(known, _)| *known == short).map(|(_, strategy)| *strategy)
    }

    /// The smaller, the sooner.
    fn rank(self, mv: &Move, sight: &Sight) -> u64 {
        match self {
            Strategy::Base => 0,
            Strategy::PrioritizeSmallReplicaMovement => mv.bytes_between_brokers(),
            Strategy::PrioritizeLargeReplicaMovement => u64::MAX - mv.bytes_between_brokers(),
            Strategy::PostponeUrpReplicaMovement => u64::from(lacking(mv, sight) > 0),
            Strategy::PrioritizeMinIsrWithOfflineReplicas => by_need(mv, sight, 0),
            Strategy::PrioritizeOneAboveMinIsrWithOfflineReplicas => by_need(mv, sight, 1),
        }
    }
}

/// The waiting moves, soonest first: those together, in the order of the plan, that no strategy tells apart.
pub(super) fn ranked(order: &Order, waiting: impl Iterator<Item = usize>, sight: &Sight) -> Vec<Vec<usize>> {
    let rank = |at: usize| -> Vec<u64> {
        order.strategies.iter().map(|strategy| strategy.rank(&order.moves[at], sight)).collect()
    };
    let mut ranked: Vec<(Vec<u64>, usize)> = waiting.map(|at| (rank(at), at)).collect();
    ranked.sort_unstable();
    let equal = ranked.chunk_by(|(one, _), (other, _)| one == other);
    equal.map(|equal| equal.iter().map(|(_, at)| *at).collect()).collect()
}

/// How many replicas are not in sync.
fn lacking(mv: &Move, sight: &Sight) -> usize {
    sight
        .partitions
        .get(&mv.partition)
        .map_or(0, |seen| seen.replicas.iter().filter(|broker| !seen.in_sync.contains(broker)).count())
}

/// How badly it needs help: below the minimum in sync, at it, and up to `spare` above it. Only
/// partitions with replicas that are down are in need.
fn by_need(mv: &Move, sight: &Sight, spare: usize) -> u64 {
    let Some(seen) = sight.partitions.get(&mv.partition) else { return u64::MAX };
    if seen.replicas.iter().all(|broker| sight.up.contains(broker)) {
        return u64::MAX;
    }
    match seen.in_sync.len().checked_sub(seen.min_in_sync) {
        None => 0,
        Some(above) if above <= spare => 1 + above as u64,
        Some(_) => u64::MAX,
    }
}
