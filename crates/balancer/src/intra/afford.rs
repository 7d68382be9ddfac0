//! Disk moves within a budget: what changes between brokers leave of it.
//!
//! Moves are taken in their own order, the hard goal's first; one that does not fit is passed over. A part must be safe
//! by itself, so none is taken that would fill a disk beyond its capacity because what makes room for it is left out.

use std::collections::BTreeSet;

use super::arrange::Moved;
use super::shelf::NOWHERE;
use super::{Arranged, DiskPlan, capacity_bands};
use crate::cluster::{Cluster, Part, Seat, Slot};
use crate::plan::Undone;
use crate::settings::Settings;

/// What of a budget is left.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Allowance {
    /// In MB.
    pub(crate) megabytes: f64,
    /// Partitions that may still change.
    pub(crate) changes: usize,
    /// Partitions that change already: their disks cost bytes only.
    pub(crate) changed: BTreeSet<Part>,
}

/// One broker's disks: who, what is to become of them, how they were arranged.
pub(super) type Desktop = (Seat, Vec<DiskPlan>, Arranged);

/// Takes back what cannot be afforded, and says how much that is.
pub(super) fn cut(
    cluster: &Cluster,
    desktops: &mut [Desktop],
    settings: &Settings,
    keeps_capacity: bool,
    mut left: Allowance,
) -> Undone {
    if is_affordable(cluster, desktops, &left) {
        return Undone::default();
    }
    let mut waiting: Vec<(usize, Slot, Moved)> = Vec::new();
    for (index, (_, _, arranged)) in desktops.iter_mut().enumerate() {
        // What is new on a broker must lie somewhere; that costs nothing more.
        let settled = |moved: &Moved| moved.home != NOWHERE;
        waiting.extend(
            arranged.moved.iter().filter(|(_, moved)| settled(moved)).map(|(slot, moved)| (index, *slot, *moved)),
        );
        arranged.moved.retain(|(_, moved)| !settled(moved));
    }
    waiting.sort_by_key(|(index, slot, moved)| (moved.cause, moved.step, *index, *slot));
    for (index, slot, moved) in &waiting {
        desktops[*index].2.shift(moved.now, moved.home, cluster.megabytes(*slot));
    }
    loop {
        let before = waiting.len();
        waiting.retain(|&(index, slot, moved)| {
            let (_, plans, arranged) = &mut desktops[index];
            let (part, size) = (cluster.part_of(slot), cluster.megabytes(slot));
            let fits = !keeps_capacity
                || arranged.shelves[moved.now].level + size <= capacity_bands(plans, settings)[moved.now].high;
            let known = left.changed.contains(&part);
            if !fits || size > left.megabytes || (!known && left.changes == 0) {
                return true;
            }
            left.megabytes -= size;
            left.changes -= usize::from(!known);
            left.changed.insert(part);
            arranged.shift(moved.home, moved.now, size);
            arranged.moved.push((slot, moved));
            false
        });
        if waiting.len() == before {
            break;
        }
    }
    let parts: BTreeSet<Part> = waiting.iter().map(|(_, slot, _)| cluster.part_of(*slot)).collect();
    Undone {
        changes: parts.difference(&left.changed).count(),
        megabytes: waiting.iter().fold(0.0, |sum, (_, slot, _)| sum + cluster.megabytes(*slot)),
    }
}

/// Whether all of it can be had: then it is safe as a whole, exchanges included.
fn is_affordable(cluster: &Cluster, desktops: &[Desktop], left: &Allowance) -> bool {
    let settled = || {
        let moved = desktops.iter().flat_map(|(_, _, arranged)| &arranged.moved);
        moved.filter(|(_, moved)| moved.home != NOWHERE).map(|(slot, _)| *slot)
    };
    let parts: BTreeSet<Part> = settled().map(|slot| cluster.part_of(slot)).collect();
    let megabytes = settled().fold(0.0, |sum, slot| sum + cluster.megabytes(slot));
    megabytes <= left.megabytes && parts.difference(&left.changed).count() <= left.changes
}
