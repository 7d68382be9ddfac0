//! What a request asks of disks, and whether it can be asked at all.

use std::collections::BTreeSet;

use super::disk_of;
use crate::cluster::{Broker, BrokerId, Cluster, DiskState, Resource, Seat, Slot};
use crate::goal::Goal;
use crate::options::{Operation, Request};
use crate::rules::BadRequest;
use crate::settings::Settings;

/// What is asked inside the brokers.
#[derive(Debug, Default)]
pub(crate) struct Inside {
    /// The goals inside brokers, the hard one first: nothing is ever balanced beyond a disk's capacity.
    pub(crate) goals: Vec<Goal>,
    /// Whether there are no other goals.
    pub(super) alone: bool,
    /// Disks that are to be emptied, apart from those that the cluster says are.
    pub(super) removed: BTreeSet<(Seat, usize)>,
    /// If not empty, only these brokers' disks are touched.
    destinations: BTreeSet<Seat>,
}

impl Inside {
    pub(super) fn asks(&self, goal: Goal) -> bool {
        self.goals.contains(&goal)
    }

    pub(super) fn takes_part(&self, seat: Seat) -> bool {
        self.destinations.is_empty() || self.destinations.contains(&seat)
    }
}

/// Splits the goals in force into those between brokers and those inside them.
pub(crate) fn split(
    cluster: &Cluster,
    request: &Request,
    goals: Vec<Goal>,
    settings: &Settings,
) -> Result<(Vec<Goal>, Inside), BadRequest> {
    let (mut inside, between): (Vec<Goal>, Vec<Goal>) = goals.into_iter().partition(|goal| goal.is_intra_broker());
    inside.sort_unstable();
    inside.dedup();
    check_goals(&request.operation, &inside, &between)?;
    if !inside.is_empty() && !cluster.has_disks() {
        return Err(BadRequest::NoDisks);
    }
    let removed = match &request.operation {
        Operation::RemoveDisks(named) => removed(cluster, named, settings)?,
        _ => BTreeSet::new(),
    };
    if inside.contains(&Goal::IntraBrokerDiskCapacity) {
        check_known(cluster, &removed)?;
    }
    let destinations = request.destinations.iter().filter_map(|id| cluster.seat_of(*id)).collect();
    Ok((between.clone(), Inside { goals: inside, alone: between.is_empty(), removed, destinations }))
}

/// Whether the goals have a place in the operation.
fn check_goals(operation: &Operation, inside: &[Goal], between: &[Goal]) -> Result<(), BadRequest> {
    let misplaced = |text: String| Err(BadRequest::Misplaced(text));
    match operation {
        Operation::RebalanceDisks | Operation::RemoveDisks(_) => {
            if let Some(goal) = between.first() {
                return misplaced(format!("{goal} does not move replicas between the disks of a broker"));
            }
            if matches!(operation, Operation::RemoveDisks(_)) && !inside.contains(&Goal::IntraBrokerDiskCapacity) {
                return misplaced(format!("disks are removed by {}, which is missing", Goal::IntraBrokerDiskCapacity));
            }
        }
        Operation::DemoteBrokers(_) => {
            let other = inside.iter().chain(between).find(|goal| **goal != Goal::PreferredLeaderElection);
            if let Some(goal) = other {
                return misplaced(format!("{goal} has no part in demotion, only {}", Goal::PreferredLeaderElection));
            }
        }
        Operation::AddBrokers(_) | Operation::RemoveBrokers(_) | Operation::FixOfflineReplicas => {
            if let (Some(goal), true) = (inside.first(), between.is_empty()) {
                return misplaced(format!("{goal} alone moves nothing between brokers"));
            }
        }
        Operation::Rebalance => {}
    }
    Ok(())
}

/// The disks to be emptied, once it is sure that the rest of each broker can take what is on them.
fn removed(
    cluster: &Cluster,
    named: &BTreeSet<(BrokerId, String)>,
    settings: &Settings,
) -> Result<BTreeSet<(Seat, usize)>, BadRequest> {
    let mut removed = BTreeSet::new();
    for (id, name) in named {
        let seat = cluster.seat_of(*id).ok_or(BadRequest::UnknownBroker(*id))?;
        let broker = &cluster.brokers()[usize::from(seat)];
        if !broker.is_alive() {
            return Err(BadRequest::DeadBroker(*id));
        }
        let disk = broker.disks.iter().position(|disk| disk.name == *name && disk.state != DiskState::Dead);
        removed.insert((seat, disk.ok_or(BadRequest::InvalidLogDirs(*id))?));
    }
    let mut seats: Vec<Seat> = removed.iter().map(|(seat, _)| *seat).collect();
    seats.dedup();
    let found = super::report::found(cluster);
    for seat in seats {
        let broker = &cluster.brokers()[usize::from(seat)];
        check_rest(broker, &found[usize::from(seat)], |disk| removed.contains(&(seat, disk)), settings)?;
    }
    Ok(removed)
}

/// Whether it is known of all replicas that serve which disk they are on, where disks are to be emptied: one that seems
/// empty is taken out of its machine next.
fn check_known(cluster: &Cluster, removed: &BTreeSet<(Seat, usize)>) -> Result<(), BadRequest> {
    let is_emptied = |(seat, broker): (Seat, &Broker)| {
        let marked = || broker.disks.iter().any(|disk| disk.state == DiskState::Removed);
        broker.is_alive() && (removed.iter().any(|(of, _)| *of == seat) || marked())
    };
    let emptied: Vec<bool> = (0..).zip(cluster.brokers()).map(is_emptied).collect();
    if !emptied.contains(&true) {
        return Ok(());
    }
    let mut unknown = vec![0; emptied.len()];
    for slot in 0..cluster.replica_count() as Slot {
        let seat = usize::from(cluster.seats()[slot as usize]);
        let is_unknown = emptied[seat] && disk_of(cluster, slot).is_none() && !cluster.is_offline(slot);
        unknown[seat] += usize::from(is_unknown);
    }
    match unknown.iter().position(|count| *count > 0) {
        Some(seat) => Err(BadRequest::UnknownLogDirs(cluster.brokers()[seat].id, unknown[seat])),
        None => Ok(()),
    }
}

fn check_rest(
    broker: &Broker,
    found: &[(f64, u64)],
    leaves: impl Fn(usize) -> bool,
    settings: &Settings,
) -> Result<(), BadRequest> {
    let mut usage = 0.0;
    let mut remaining = 0.0;
    for (index, disk) in broker.disks.iter().enumerate() {
        if disk.state != DiskState::Dead {
            usage += found[index].0;
        }
        if disk.state == DiskState::Alive && !leaves(index) {
            remaining += disk.capacity;
        }
    }
    if remaining <= 0.0 {
        Err(BadRequest::NoLogDirLeft(broker.id))
    } else if usage / remaining > settings.capacity_thresholds[Resource::Disk as usize] {
        Err(BadRequest::NotEnoughCapacity(broker.id))
    } else {
        Ok(())
    }
}
