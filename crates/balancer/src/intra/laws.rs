//! What holds for any disks whatever.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::tests::{broker, disks, remove};
use crate::cluster::{BrokerId, Cluster, ClusterBuilder, DiskSpec, DiskState, Load, ReplicaSpec};
use crate::goal::Goal;
use crate::options::{Budget, Operation, Request};
use crate::plan::Plan;
use crate::planner::{Outcome, Refused};
use crate::settings::Settings;

/// Per broker: capacities of its disks, and its replicas as (disk, MB); beyond the last disk comes the first.
type Shape = Vec<(Vec<u32>, Vec<(usize, u32)>)>;

fn shapes() -> impl Strategy<Value = Shape> {
    let disks = prop::collection::vec(prop_oneof![Just(1000u32), Just(2000), 300..3000u32], 1..6);
    // As often on each of the disks, however many there are.
    let replicas = prop::collection::vec((0..60usize, 0..250u32), 0..24);
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
            let disk = moved.get(&number).copied().unwrap_or(disk % capacities.len());
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

/// A goal misses by more only if one of higher priority gained.
fn assert_nothing_is_worse(outcome: &Outcome) {
    let mut gained = false;
    for verdict in &outcome.verdicts {
        assert!(gained || verdict.miss.1 <= verdict.miss.0 + 1e-9, "{verdict:?}");
        gained |= verdict.miss.1 < verdict.miss.0;
    }
}

fn planned(cluster: &Cluster, request: &Request) -> Result<Outcome, Refused> {
    crate::fixture::planned(cluster, request, &Settings::default())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_gets_worse_and_nothing_gets_lost(shape in shapes(), soft in any::<bool>()) {
        let goals = if soft { vec![Goal::IntraBrokerDiskUsageDistribution] } else { Goal::INTRA_BROKER.to_vec() };
        let request = Request { goals, ..disks() };
        let cluster = build(&shape, &BTreeMap::new());
        let Ok(outcome) = planned(&cluster, &request) else { return Ok(()) };
        assert_nothing_is_worse(&outcome);
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

    /// Whatever of the moves between disks has happened, no disk is filled beyond its capacity, up to those exchanges that
    /// the plan says cannot be carried out otherwise. The first of them does.
    #[test]
    fn no_beginning_of_a_plan_fills_a_disk(shape in shapes()) {
        let cluster = build(&shape, &BTreeMap::new());
        let Ok(outcome) = planned(&cluster, &disks()) else { return Ok(()) };
        let mut levels: BTreeMap<(BrokerId, &str), f64> =
            outcome.disks.iter().map(|load| ((load.broker, load.disk.as_str()), load.megabytes.0)).collect();
        let mut breaks = Vec::new();
        for change in &outcome.plan.changes {
            let disk = &change.disks[0];
            let load = outcome.disks.iter().find(|load| load.broker == disk.broker && load.disk == disk.to).unwrap();
            *levels.get_mut(&(disk.broker, disk.from.as_str())).unwrap() -= change.disk_megabytes;
            let level = levels.get_mut(&(disk.broker, disk.to.as_str())).unwrap();
            *level += change.disk_megabytes;
            breaks.push(change.disk_megabytes > 0.0 && *level > load.capacity * 0.8 + 1e-6);
        }
        let first = breaks.iter().position(|breaks| *breaks).unwrap_or(breaks.len());
        prop_assert_eq!(breaks.len() - first, outcome.unsafe_changes);
    }

    /// The same where replicas come from other brokers: they need the room when they come, not only in the end.
    #[test]
    fn no_beginning_of_a_plan_between_brokers_fills_a_disk(shape in shapes(), moves in 0..12usize, by_count in any::<bool>()) {
        let cluster = build(&shape, &BTreeMap::new());
        let first = if by_count { Goal::ReplicaDistribution } else { Goal::DiskUsageDistribution };
        let goals = [&[Goal::DiskCapacity, first], &Goal::INTRA_BROKER[..]].concat();
        // From six on there is no budget.
        let budget = Budget { moves: (moves < 6).then_some(moves), megabytes: None };
        let Ok(outcome) = planned(&cluster, &Request { goals, budget, ..Request::default() }) else { return Ok(()) };
        let mut levels: BTreeMap<(BrokerId, &str), f64> =
            outcome.disks.iter().map(|load| ((load.broker, load.disk.as_str()), load.megabytes.0)).collect();
        let safe = outcome.plan.changes.len() - outcome.unsafe_changes;
        for change in &outcome.plan.changes[..safe] {
            let found = cluster.partition(change.partition as usize).replicas().next().unwrap();
            let (size, to) = (f64::from(found.load.disk), &change.disks[0]);
            let from = &cluster.broker(found.broker).unwrap().disks[found.disk.unwrap()].name;
            *levels.get_mut(&(found.broker, from.as_str())).unwrap() -= size;
            let level = levels.get_mut(&(to.broker, to.to.as_str())).unwrap();
            *level += size;
            let load = outcome.disks.iter().find(|load| load.broker == to.broker && load.disk == to.to).unwrap();
            prop_assert!(size == 0.0 || *level <= load.capacity * 0.8 + 1e-6, "{change:?} fills {load:?} to {level}");
        }
    }

    /// However far a plan without a budget is carried out, but for halves of exchanges: the first goal that it makes a
    /// difference to is missed by less.
    #[test]
    fn every_beginning_of_a_plan_is_useful(shape in shapes(), soft in any::<bool>()) {
        let goals = if soft { vec![Goal::IntraBrokerDiskUsageDistribution] } else { Goal::INTRA_BROKER.to_vec() };
        let request = Request { goals, ..disks() };
        let Ok(outcome) = planned(&build(&shape, &BTreeMap::new()), &request) else { return Ok(()) };
        let changes = &outcome.plan.changes;
        let is_exchange = |change: &crate::plan::Change| change.reasons.iter().any(|why| why.exchange.is_some());
        for most in 1..changes.len() - outcome.unsafe_changes.min(changes.len()) {
            if is_exchange(&changes[most - 1]) {
                continue;
            }
            let part = Plan { changes: changes[..most].to_vec(), ..outcome.plan.clone() };
            let then = build(&shape, &after(&Outcome { plan: part, ..outcome.clone() }));
            let Ok(left) = planned(&then, &request) else { continue };
            let mut gains = outcome.verdicts.iter().zip(&left.verdicts).map(|(one, then)| one.miss.0 - then.miss.0);
            let first = gains.find(|gain| gain.abs() > 1e-6);
            prop_assert!(first.is_none_or(|gain| gain > 0.0), "{most} of {}: {first:?}", changes.len());
        }
    }

    /// What a budget leaves of it does good by itself, halves of exchanges included.
    #[test]
    fn a_part_of_a_plan_makes_no_goal_worse(shape in shapes(), soft in any::<bool>(), moves in 0..5usize) {
        let goals = if soft { vec![Goal::IntraBrokerDiskUsageDistribution] } else { Goal::INTRA_BROKER.to_vec() };
        let budget = Budget { moves: Some(moves), megabytes: None };
        let request = Request { goals, budget, ..disks() };
        let Ok(outcome) = planned(&build(&shape, &BTreeMap::new()), &request) else { return Ok(()) };
        assert_nothing_is_worse(&outcome);
    }

    /// Be it left out between brokers, between disks, or both.
    #[test]
    fn a_partition_is_done_or_left_undone_once(shape in shapes(), moves in 0..4usize) {
        let goals = vec![Goal::ReplicaDistribution, Goal::IntraBrokerDiskUsageDistribution];
        let budget = Budget { moves: Some(moves), megabytes: None };
        let cluster = build(&shape, &BTreeMap::new());
        let outcome = planned(&cluster, &Request { goals, budget, ..Request::default() }).unwrap();
        let Plan { changes, undone } = &outcome.plan;
        prop_assert!(changes.len() + undone.changes <= cluster.partition_count(), "{} and {undone:?}", changes.len());
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

/// Found by the property above: 81 MB go by way of the third disk to the second, in whose place 40 MB go to the third. None
/// of the two does any good alone.
#[test]
fn what_does_good_only_together_happens_together() {
    let shape: Shape = vec![(vec![2000, 1000, 2000, 1000], vec![(0, 120), (2, 119), (3, 60), (1, 40), (0, 81)])];
    let outcome = planned(&build(&shape, &BTreeMap::new()), &disks()).unwrap();
    assert_eq!(after(&outcome), [(3, 2), (4, 1)].into());
    assert!(
        outcome.plan.changes.iter().all(|change| change.reasons[0].exchange.is_some()),
        "{:?}",
        outcome.plan.changes
    );
}

/// Found by a property above: neither disk has room for what it gets before what it gives has left.
#[test]
fn both_halves_of_an_exchange_that_fills_a_disk_are_counted() {
    let sizes = [76, 213, 141, 13, 18, 122, 220, 163, 101, 201, 190, 116, 162, 196, 135, 180, 206];
    let on_large = [0, 2, 5, 7, 12, 14];
    let replicas = sizes.into_iter().enumerate().map(|(at, size)| (usize::from(on_large.contains(&at)), size));
    let shape: Shape = vec![(vec![354, 2832], replicas.collect())];
    let outcome = planned(&build(&shape, &BTreeMap::new()), &disks()).unwrap();
    let exchanges = outcome.plan.changes.iter().map(|change| change.reasons[0].exchange.is_some());
    assert_eq!((outcome.unsafe_changes, exchanges.rev().take_while(|exchange| *exchange).count()), (2, 2));
}
