//! What lies in which log directory, as bodies tell it.

use std::collections::BTreeMap;

use evenkeel_balancer::cluster::{Cluster, DiskState};
use evenkeel_rest::body::{DiskFigure, DiskLoad};

/// By broker and directory; brokers whose directories are not told apart are missing.
pub(super) type Disks = BTreeMap<i32, BTreeMap<String, DiskLoad>>;

/// What is being counted of one directory.
#[derive(Clone, Copy, Default)]
struct Tally {
    megabytes: f64,
    replicas: u64,
    leaders: u64,
}

/// The directories of a cluster.
pub(super) fn disks(cluster: &Cluster) -> Disks {
    let mut tallies: BTreeMap<i32, Vec<Tally>> = cluster
        .brokers()
        .iter()
        .filter(|broker| broker.is_alive() && !broker.disks.is_empty())
        .map(|broker| (broker.id.0, vec![Tally::default(); broker.disks.len()]))
        .collect();
    for partition in cluster.partitions() {
        for (position, replica) in partition.replicas().enumerate() {
            let tally = replica.disk.and_then(|disk| tallies.get_mut(&replica.broker.0)?.get_mut(disk));
            if let Some(tally) = tally {
                tally.megabytes += f64::from(replica.load.disk);
                tally.replicas += 1;
                tally.leaders += u64::from(position == partition.leader());
            }
        }
    }
    let told = |(id, tallies): (i32, Vec<Tally>)| {
        let specs = cluster.brokers().iter().find(|broker| broker.id.0 == id).map_or(&[][..], |broker| &broker.disks);
        let load = |tally: Tally, state: DiskState, capacity: f64| {
            let figure = |number: f64| match state {
                DiskState::Alive => DiskFigure::Of(number.into()),
                DiskState::Dead | DiskState::Removed => DiskFigure::DEAD,
            };
            DiskLoad {
                num_replicas: tally.replicas,
                disk_mb: figure(tally.megabytes),
                num_leader_replicas: tally.leaders,
                disk_pct: figure(100.0 * tally.megabytes / capacity),
            }
        };
        let dirs = specs.iter().zip(tallies);
        (id, dirs.map(|(disk, tally)| (disk.name.clone(), load(tally, disk.state, disk.capacity))).collect())
    };
    tallies.into_iter().map(told).collect()
}
