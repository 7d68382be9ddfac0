//! Capacities that some placement keeps are kept, however little room there is.
//!
//! Clusters are made from a placement that keeps them, of which then nothing is left: every replica is dealt out anew.

use evenkeel_balancer::cluster::{Load, Resource};
use evenkeel_balancer::goal::Goal;
use evenkeel_balancer::options::Request;
use evenkeel_balancer::planner::Refused;
use evenkeel_balancer::settings::Settings;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use crate::check::inspected;
use crate::picture::{Partition, Picture};

/// So much of every disk, of which 80 % may be used.
const CAPACITY: u32 = 10_000;

/// A cluster to be: how many racks there are, of how many brokers each, and on which of these every partition is.
#[derive(Debug, Clone)]
struct Dealt {
    racks: usize,
    brokers: usize,
    /// Partitions with one replica in each rack.
    partitions: Vec<(u32, Vec<usize>)>,
}

impl Dealt {
    fn picture(&self) -> Picture {
        let rack = |rack: usize| {
            let brokers = (0..self.brokers).map(|broker| format!("b{}[]", rack * self.brokers + broker));
            format!("rack {}: {}", ["a", "b", "c"][rack], brokers.collect::<Vec<_>>().join(" "))
        };
        let mut picture = Picture::parse(&(0..self.racks).map(rack).collect::<Vec<_>>().join("\n"));
        for broker in picture.brokers.values_mut() {
            broker.capacity[Resource::Disk as usize] = f64::from(CAPACITY);
        }
        for (number, (size, places)) in (0..).zip(&self.partitions) {
            let load = Some(Load { cpu: 0.0, nw_in: 0.0, nw_out: 0.0, disk: *size as f32 });
            let brokers: Vec<i32> =
                places.iter().enumerate().map(|(rack, at)| (rack * self.brokers + at) as i32).collect();
            let partition = Partition { leader: brokers[0], brokers, load, ..Partition::default() };
            picture.partitions.insert(("t".to_owned(), number), partition);
        }
        picture
    }
}

/// Brokers that are all filled to so much of a hundred, with what is on them dealt out anew in every rack.
fn dealt(racks: usize, percent: std::ops::RangeInclusive<u32>) -> impl Strategy<Value = Dealt> {
    let broker = (percent, prop::collection::vec(200..=2_000u32, 40));
    prop::collection::vec(broker, 2..=6).prop_flat_map(move |brokers| {
        let mut sizes: Vec<u32> = Vec::new();
        for (percent, offered) in &brokers {
            let mut room = CAPACITY * percent / 100;
            for size in offered {
                let size = if room < 400 { room } else { (*size).min(room) };
                room -= size;
                sizes.extend((size > 0).then_some(size));
            }
        }
        let count = brokers.len();
        let places = prop::collection::vec(prop::collection::vec(0..count, racks), sizes.len());
        places.prop_map(move |places| {
            let partitions = sizes.iter().copied().zip(places).collect();
            Dealt { racks, brokers: count, partitions }
        })
    })
}

/// How many of so many are planned for.
fn kept(cases: usize, dealt: impl Strategy<Value = Dealt>) -> usize {
    let mut runner = TestRunner::deterministic();
    let request = Request::rebalance(&[Goal::RackAware, Goal::DiskCapacity]);
    let is_kept = |dealt: Dealt| match inspected(&dealt.picture(), &request, &Settings::default()) {
        Ok(outcome) => {
            assert!(outcome.verdicts.iter().all(|verdict| verdict.miss.1 == 0.0), "{:?}", outcome.verdicts);
            true
        }
        Err(Refused::Infeasible(_)) => false,
        Err(refused) => panic!("{refused}"),
    };
    (0..cases).filter(|_| is_kept(dealt.new_tree(&mut runner).unwrap().current())).count()
}

#[test]
fn replicas_that_fit_in_are_fitted_in() {
    let kept = kept(1_000, dealt(1, 70..=79));
    assert!(kept >= 999, "{kept} of 1,000");
}

#[test]
fn replicas_in_every_rack_are_fitted_in_rack_by_rack() {
    let kept = kept(100, dealt(3, 70..=79));
    assert_eq!(kept, 100);
}

/// One or two replicas of each partition, on three brokers whose disks are not of one size.
fn tiny() -> impl Strategy<Value = (Vec<u16>, Vec<(Vec<i32>, u16)>)> {
    let lists = prop::sample::select(vec![vec![0], vec![1], vec![2], vec![0, 1], vec![1, 2], vec![2, 0]]);
    (prop::collection::vec(500..=1_000u16, 3), prop::collection::vec((lists, 90..=350u16), 3..=5))
}

/// Whether some placement leaves every disk below its limit, replicas of a partition on different brokers.
fn can_be_packed(limits: &[f64], partitions: &[(Vec<i32>, u16)]) -> bool {
    let Some(((list, size), rest)) = partitions.split_first() else { return true };
    let lists: &[&[usize]] = if list.len() == 1 { &[&[0], &[1], &[2]] } else { &[&[0, 1], &[1, 2], &[0, 2]] };
    lists.iter().any(|list| {
        let mut left = limits.to_vec();
        list.iter().for_each(|at| left[*at] -= f64::from(*size));
        list.iter().all(|at| left[*at] > 0.0) && can_be_packed(&left, rest)
    })
}

#[test]
fn tiny_clusters_are_refused_exactly_where_no_placement_will_do() {
    let mut runner = TestRunner::deterministic();
    let (mut kept, mut refused) = (0, 0);
    for _ in 0..1_200 {
        let (capacities, partitions) = tiny().new_tree(&mut runner).unwrap().current();
        let mut picture = Picture::parse("rack a: b0[]\nrack b: b1[]\nrack c: b2[]");
        for (broker, capacity) in picture.brokers.values_mut().zip(&capacities) {
            broker.capacity[Resource::Disk as usize] = f64::from(*capacity);
        }
        for (number, (brokers, size)) in (0..).zip(&partitions) {
            let load = Some(Load { cpu: 0.0, nw_in: 0.0, nw_out: 0.0, disk: f32::from(*size) });
            let partition = Partition { leader: brokers[0], brokers: brokers.clone(), load, ..Partition::default() };
            picture.partitions.insert(("t".to_owned(), number), partition);
        }
        let settings = Settings::default();
        let threshold = settings.capacity_thresholds[Resource::Disk as usize];
        let limits: Vec<f64> = capacities.iter().map(|capacity| f64::from(*capacity) * threshold).collect();
        let request = Request::rebalance(&[Goal::RackAware, Goal::DiskCapacity]);
        let planned = inspected(&picture, &request, &settings);
        let can_be = can_be_packed(&limits, &partitions);
        // What is at its limit and stays there is no violation, yet nobody could be brought there.
        if planned.as_ref().is_ok_and(|outcome| outcome.plan.changes.is_empty()) {
            continue;
        }
        assert_eq!(planned.is_ok(), can_be, "{capacities:?} {partitions:?}: {:?}", planned.err());
        if can_be { kept += 1 } else { refused += 1 }
    }
    assert!(kept > 100 && refused > 100, "{kept} kept, {refused} refused");
}

/// 6 + 6, 4 + 5 and 5 + 4 of ten, and what may move is the second of each: nothing fits anywhere else, nor do two that
/// are exchanged.
#[test]
fn three_replicas_change_places_at_once_and_say_what_for() {
    let picture = "rack a: b0[x0* t0*] b1[x1* t1*] b2[x2* t2*]
        capacity b0: 100 300000 200000 1262
        capacity b1: 100 300000 200000 1262
        capacity b2: 100 300000 200000 1262
        load x0: 0 0 0 600
        load x1: 0 0 0 400
        load x2: 0 0 0 500
        load t0: 0 0 0 600
        load t1: 0 0 0 500
        load t2: 0 0 0 400";
    let request = Request {
        excluded_topics: Some(evenkeel_balancer::options::TopicPattern::new("x").unwrap()),
        ..Request::rebalance(&[Goal::DiskCapacity])
    };
    crate::check::check_request(
        picture,
        &request,
        expect_test::expect![[r#"
            t0: b0 -> b1: leader b0 -> b1
            t1: b1 -> b2: leader b1 -> b2
            t2: b2 -> b0: leader b2 -> b0
            DiskCapacityGoal fixed
        "#]],
    );
}
