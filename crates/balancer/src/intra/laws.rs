//! What holds for any disks whatever.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::tests::{broker, disks, remove};
use crate::cluster::{BrokerId, Cluster, ClusterBuilder, DiskSpec, DiskState, Load, ReplicaSpec};
use crate::goal::Goal;
use crate::options::{Operation, Request};
use crate::planner::{Outcome, Refused};
use crate::settings::Settings;

/// Per broker: capacities of its disks, and its replicas as (disk, MB).
type Shape = Vec<(Vec<u32>, Vec<(prop::sample::Index, u32)>)>;

fn shapes() -> impl Strategy<Value = Shape> {
    let disks = prop::collection::vec(prop_oneof![Just(1000u32), Just(2000), 300..3000u32], 1..6);
    let replicas = prop::collection::vec((any::<prop::sample::Index>(), 0..250u32), 0..24);
    prop::collection::vec((disks, replicas), 1..4)
}

/// The cluster, with disks of replicas as `moved` says where it says anything.
fn build(shape: &Shape, moved: &BTreeMap<i32, usize>) -> Cluster {
    let mut builder = ClusterBuilder::new();
    for (id, (capacities, _)) in shape.iter().enumerate() {
        let disk = |(index, capacity): (usize, &u32)| DiskSpec {
            name: index.to_string(),
            capacity: f64::from(*capacity),
            state: DiskState::Alive,
        };
        let disks: Vec<DiskSpec> = capacities.iter().enumerate().map(disk).collect();
        builder.broker(broker(id as i32, 1e6, disks)).unwrap();
    }
    let mut number = 0;
    for (id, (capacities, replicas)) in shape.iter().enumerate() {
        for (disk, size) in replicas {
            let disk = moved.get(&number).copied().unwrap_or(disk.index(capacities.len()));
            let load = Load { disk: *size as f32, ..Load::default() };
            let replica = ReplicaSpec { broker: BrokerId(id as i32), disk: Some(disk), load, offline: false };
            builder.partition("t", number, 0, &[replica]).unwrap();
            number += 1;
        }
    }
    builder.build().unwrap()
}

fn after(outcome: &Outcome) -> BTreeMap<i32, usize> {
    let target = |change: &crate::plan::Change| (change.partition, change.disks[0].to.parse().unwrap());
    outcome.plan.changes.iter().map(target).collect()
}

fn planned(cluster: &Cluster, request: &Request) -> Result<Outcome, Refused> {
    crate::fixture::planned(cluster, request, &Settings::default())
}

proptest! {
    #[test]
    fn nothing_gets_worse_and_nothing_gets_lost(shape in shapes(), soft in any::<bool>()) {
        let goals = if soft { vec![Goal::IntraBrokerDiskUsageDistribution] } else { Goal::INTRA_BROKER.to_vec() };
        let request = Request { goals, ..disks() };
        let cluster = build(&shape, &BTreeMap::new());
        let Ok(outcome) = planned(&cluster, &request) else { return Ok(()) };
        // A goal misses by more only if one of higher priority gained.
        let mut gained = false;
        for verdict in &outcome.verdicts {
            prop_assert!(gained || verdict.miss.1 <= verdict.miss.0, "{verdict:?}");
            gained |= verdict.miss.1 < verdict.miss.0;
        }
        let sums = outcome.disks.iter().fold((0.0, 0.0, 0, 0), |sum, load| {
            let ((mb, mb_after), (count, count_after)) = (load.megabytes, load.replicas);
            (sum.0 + mb, sum.1 + mb_after, sum.2 + count, sum.3 + count_after)
        });
        prop_assert_eq!((sums.0, sums.2), (sums.1, sums.3));
        // What the plan says it does leads to what it says comes of it.
        let again = planned(&build(&shape, &after(&outcome)), &request).unwrap();
        for (told, found) in outcome.disks.iter().zip(&again.disks) {
            prop_assert_eq!((told.megabytes.1, told.replicas.1), (found.megabytes.0, found.replicas.0));
        }
        for change in &outcome.plan.changes {
            prop_assert_eq!(&change.old_replicas, &change.new_replicas);
            prop_assert_eq!(change.disks.len(), 1);
            prop_assert_ne!(&change.disks[0].from, &change.disks[0].to);
        }
        // Steady: there is nothing left to do.
        prop_assert_eq!(&again.plan.changes, &vec![]);
    }

    #[test]
    fn threads_do_not_show(shape in shapes()) {
        let cluster = build(&shape, &BTreeMap::new());
        let with = |threads| planned(&cluster, &Request { threads, ..disks() });
        prop_assert_eq!(with(1), with(2));
        prop_assert_eq!(with(1), with(5));
    }

    #[test]
    fn a_removed_disk_ends_empty_or_the_request_is_refused(shape in shapes()) {
        let cluster = build(&shape, &BTreeMap::new());
        if let Ok(outcome) = planned(&cluster, &remove(&[(0, "0")])) {
            prop_assert_eq!(outcome.disks[0].replicas.1, 0);
            prop_assert!(outcome.disks.iter().all(|load| load.megabytes.1 <= load.capacity * 0.8 + 1e-6));
        }
    }

    #[test]
    fn arrivals_get_a_disk_of_their_new_broker(shape in shapes()) {
        let cluster = build(&shape, &BTreeMap::new());
        let goals = vec![Goal::ReplicaDistribution, Goal::IntraBrokerDiskUsageDistribution];
        let request = Request { operation: Operation::Rebalance, goals, ..Request::default() };
        let outcome = planned(&cluster, &request).unwrap();
        for change in &outcome.plan.changes {
            for broker in change.added() {
                let arrives = change.disks.iter().filter(|disk| disk.broker == broker && disk.from.is_empty());
                prop_assert_eq!(arrives.count(), 1);
            }
        }
    }
}
