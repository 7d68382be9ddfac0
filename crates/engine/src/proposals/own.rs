//! What a plan does with topics of our own that have more replicas than there will be brokers.

use std::collections::BTreeSet;

use evenkeel_balancer::{
    cluster::BrokerId,
    plan::{Cause, Change, Reason},
};

use crate::model::{Narrowed, View};

/// The plan was made as if they had fewer replicas. On brokers that are to be `removed` they lose those that are too many;
/// on others, which are only down and may return, they keep them.
pub(super) fn widened(changes: &mut Vec<Change>, narrowed: &Narrowed, view: &View, removed: &BTreeSet<i32>) {
    for (partition, seen) in narrowed {
        let Some(narrow) = view.partitions.get(partition) else { continue };
        let ids = |ids: &[i32]| ids.iter().copied().map(BrokerId).collect::<Vec<_>>();
        let left_out = || seen.replicas.iter().copied().filter(|id| !narrow.replicas.contains(id));
        let kept: Vec<i32> = left_out().filter(|id| !removed.contains(id)).collect();
        let is_its = |change: &&mut Change| change.topic == *partition.topic && change.partition == partition.partition;
        if let Some(change) = changes.iter_mut().find(is_its) {
            change.old_replicas = ids(&seen.replicas);
            change.old_leader = seen.leader.map_or(change.old_leader, BrokerId);
            change.new_replicas.extend(ids(&kept));
            continue;
        }
        let Some(gone) = left_out().find(|id| removed.contains(id)) else { continue };
        let new_replicas = ids(&[&narrow.replicas[..], &kept].concat());
        let Some(first) = new_replicas.first().copied() else { continue };
        changes.push(Change {
            topic: partition.topic.to_string(),
            partition: partition.partition,
            old_replicas: ids(&seen.replicas),
            new_replicas,
            moves: Vec::new(),
            old_leader: seen.leader.map_or(first, BrokerId),
            new_leader: first,
            disks: Vec::new(),
            megabytes: 0.0,
            disk_megabytes: 0.0,
            reasons: vec![Reason {
                cause: Cause::Removed,
                from: BrokerId(gone),
                to: first,
                exchange: None,
                levels: None,
            }],
        });
    }
}
