//! What lies on each disk while a plan is carried out, change by change.
//!
//! Replicas that come from other brokers are told a disk for what it holds in the end, when others have left it. So where a
//! plan moves replicas between brokers and between disks, one order has to serve both: see [`crate::order`].

use super::request::Inside;
use super::{capacity_bands, disk_of, plans, report};
use crate::cluster::{Broker, BrokerId, Cluster, Seat, Slot};
use crate::goal::Goal;
use crate::plan::Change;
use crate::settings::Settings;

/// More than a limit by rounding alone is not more.
const ROUNDING: f64 = 1e-9;

/// The disks of all brokers, by seat and by place.
#[derive(Debug)]
pub(crate) struct Filling<'c> {
    cluster: &'c Cluster,
    /// In MB.
    levels: Vec<Vec<f64>>,
    /// What they may hold.
    limits: Vec<Vec<f64>>,
}

/// So many MB more on a disk, or less.
struct Flow {
    seat: usize,
    disk: usize,
    megabytes: f64,
}

impl<'c> Filling<'c> {
    /// The disks as they are found, if their capacities are to be kept to.
    pub(crate) fn found(cluster: &'c Cluster, inside: &Inside, settings: &Settings) -> Option<Filling<'c>> {
        let limits = |(seat, broker): (Seat, &Broker)| {
            let bands = capacity_bands(&plans(broker, seat, inside), settings);
            bands.into_iter().map(|band| band.high * (1.0 + ROUNDING)).collect()
        };
        let levels = |disks: Vec<(f64, u64)>| disks.into_iter().map(|(megabytes, _)| megabytes).collect();
        inside.asks(Goal::IntraBrokerDiskCapacity).then(|| Filling {
            cluster,
            levels: report::found(cluster).into_iter().map(levels).collect(),
            limits: (0..).zip(cluster.brokers()).map(limits).collect(),
        })
    }

    /// Whether there is room for what the change brings, as things are.
    pub(crate) fn has_room_for(&self, change: &Change) -> bool {
        let fits = |Flow { seat, disk, megabytes }: Flow| {
            megabytes <= 0.0 || self.levels[seat][disk] + megabytes <= self.limits[seat][disk]
        };
        self.flows(change).into_iter().all(fits)
    }

    /// Makes the change happen.
    pub(crate) fn apply(&mut self, change: &Change) {
        for Flow { seat, disk, megabytes } in self.flows(change) {
            self.levels[seat][disk] += megabytes;
        }
    }

    /// What the change does to disks. A broker has one replica of a partition at most, so no disk is in it twice.
    fn flows(&self, change: &Change) -> Vec<Flow> {
        let cluster = self.cluster;
        let Some(part) = cluster.find(&change.topic, change.partition) else { return Vec::new() };
        let found = || cluster.slots(part).zip(&change.old_replicas);
        let slot_on = |id: BrokerId| found().find(|(_, broker)| **broker == id).map(|(slot, _)| slot);
        let leaves = |slot: Slot, disk: usize, seat: Seat| Flow {
            seat: usize::from(seat),
            disk,
            megabytes: -cluster.megabytes(slot),
        };
        let gone = found().filter(|(_, broker)| !change.new_replicas.contains(broker));
        let mut flows: Vec<Flow> = gone
            .filter_map(|(slot, _)| Some(leaves(slot, disk_of(cluster, slot)?, cluster.seats()[slot as usize])))
            .collect();
        for told in &change.disks {
            let came_from = || change.moves.iter().find(|(_, to)| *to == told.broker).map(|(from, _)| *from);
            let origin = if told.from.is_empty() { came_from() } else { Some(told.broker) };
            let (Some(slot), Some(seat)) = (origin.and_then(slot_on), cluster.seat_of(told.broker)) else { continue };
            let disks = &cluster.brokers()[usize::from(seat)].disks;
            let place = |name: &str| disks.iter().position(|disk| disk.name == name);
            flows.extend(place(&told.from).map(|disk| leaves(slot, disk, seat)));
            let arrives = |disk| Flow { seat: usize::from(seat), disk, megabytes: cluster.megabytes(slot) };
            flows.extend(place(&told.to).map(arrives));
        }
        flows
    }
}
