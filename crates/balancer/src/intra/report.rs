//! What happened to disks, told partition by partition and disk by disk.

use std::collections::BTreeMap;

use super::order::DiskMove;
use super::shelf::NOWHERE;
use super::{DiskPlan, Found, disk_of, goal_of};
use crate::cluster::{Broker, BrokerId, Cluster, Part, Slot};
use crate::plan::{Cause, Change, DiskChange, Reason, unmoved};
use crate::state::State;

/// What one disk holds.
#[derive(Debug, Clone, PartialEq)]
pub struct DiskLoad {
    /// On which broker.
    pub broker: BrokerId,
    /// The log directory.
    pub disk: String,
    /// In MB; 0 if it is dead or to be taken out.
    pub capacity: f64,
    /// MB on it before and after.
    pub megabytes: (f64, f64),
    /// Replicas on it before and after.
    pub replicas: (u64, u64),
}

pub(super) fn found(cluster: &Cluster) -> Found {
    let mut found: Found = cluster.brokers().iter().map(|broker| vec![(0.0, 0); broker.disks.len()]).collect();
    for slot in 0..cluster.replica_count() as Slot {
        if let Some(disk) = disk_of(cluster, slot) {
            let (megabytes, replicas) = &mut found[usize::from(cluster.seats()[slot as usize])][disk];
            *megabytes += cluster.megabytes(slot);
            *replicas += 1;
        }
    }
    found
}

pub(super) fn loads(
    broker: &Broker,
    plans: &[DiskPlan],
    before: &[(f64, u64)],
    after: &[f64],
    counts: &[u64],
) -> Vec<DiskLoad> {
    let load = |(index, disk): (usize, &crate::cluster::DiskSpec)| DiskLoad {
        broker: broker.id,
        disk: disk.name.clone(),
        capacity: plans[index].capacity,
        megabytes: (before[index].0, after[index]),
        replicas: (before[index].1, counts[index]),
    };
    broker.disks.iter().enumerate().map(load).collect()
}

/// Adds the moves to the changes, in their order: to that of their partition if there is one, else to the end.
pub(super) fn add_to(state: &State<'_>, moves: &[DiskMove], changes: &mut Vec<Change>) {
    let cluster = state.cluster;
    let mut known: BTreeMap<Part, usize> = changes
        .iter()
        .enumerate()
        .filter_map(|(index, change)| Some((cluster.find(&change.topic, change.partition)?, index)))
        .collect();
    for &DiskMove { seat, slot, moved, exchange, .. } in moves {
        let part = cluster.part_of(slot);
        let index = *known.entry(part).or_insert_with(|| {
            changes.push(unmoved(cluster, part));
            changes.len() - 1
        });
        let change = &mut changes[index];
        let broker = &cluster.brokers()[usize::from(seat)];
        let arrives = moved.home == NOWHERE;
        change.disks.push(DiskChange {
            broker: broker.id,
            from: if arrives { String::new() } else { broker.disks[moved.home].name.clone() },
            to: broker.disks[moved.now].name.clone(),
        });
        let goal = goal_of(moved.cause);
        if !arrives {
            change.disk_megabytes += cluster.megabytes(slot);
            let known = |reason: &Reason| reason.goal() == Some(goal) && reason.to == broker.id;
            if !change.reasons.iter().any(known) {
                let cause = Cause::Goal { goal, gain: moved.gain };
                change.reasons.push(Reason { cause, from: broker.id, to: broker.id, exchange, levels: None });
            }
        }
    }
    changes.iter_mut().for_each(|change| change.disks.sort_by_key(|disk| disk.broker));
}
