//! A partition of which no replica is left gets new ones, but nobody copies what nobody has.

use evenkeel_balancer::cluster::{BrokerId, Cluster};
use evenkeel_balancer::estimate::Pace;
use evenkeel_balancer::goal::Goal;
use evenkeel_balancer::inspect::inspect;
use evenkeel_balancer::options::{Budget, Operation, Request};
use evenkeel_balancer::planner::Outcome;
use evenkeel_balancer::settings::Settings;

use crate::check::{changes, looked_over};
use crate::picture::Picture;

/// `t0` was on b0 alone; b1 has another replica of `u0`.
const RACK_LOST: &str = "rack a: b0[t0* u0*] dead
                         rack b: b1[u0 v0*]
                         rack c: b2[]
                         load *: 1 10 10 1000";

fn planned(cluster: &Cluster, request: &Request) -> Outcome {
    looked_over(cluster, request, &Settings::default()).unwrap()
}

fn megabytes(outcome: &Outcome, topic: &str) -> f64 {
    outcome.plan.changes.iter().find(|change| change.topic == topic).unwrap().megabytes
}

#[test]
fn what_nobody_has_is_placed_anew_and_copied_by_nobody() {
    let cluster = Picture::parse(RACK_LOST).build();
    let lost = |operation: &Operation| -> Vec<&str> {
        let lost = cluster.partitions().filter(|partition| operation.finds_lost(*partition));
        lost.map(|partition| partition.topic()).collect()
    };
    assert_eq!(lost(&Operation::Rebalance), ["t"]);
    for operation in [Operation::Rebalance, Operation::FixOfflineReplicas] {
        let request = Request { operation, ..Request::rebalance(&[Goal::RackAware, Goal::DiskUsageDistribution]) };
        let outcome = planned(&cluster, &request);
        assert_eq!((megabytes(&outcome, "t"), megabytes(&outcome, "u")), (0.0, 1000.0), "{}", changes(&outcome.plan));
        assert_eq!((outcome.plan.megabytes(), outcome.least_megabytes), (1000.0, 1000.0));
        let of_one = |megabytes: f64| megabytes * 1024.0 / 200_000.0 / 60.0;
        assert_eq!(outcome.estimate(&cluster, &Pace::default()).one_by_one, of_one(1000.0));
    }
}

#[test]
fn what_is_lost_costs_no_budget() {
    let cluster = Picture::parse(RACK_LOST).build();
    let budget = Budget { megabytes: Some(0.0), moves: None };
    let outcome = planned(&cluster, &Request { budget, ..Request::rebalance(&[Goal::RackAware]) });
    let topics: Vec<&str> = outcome.plan.changes.iter().map(|change| change.topic.as_str()).collect();
    assert_eq!((topics, outcome.plan.undone.megabytes), (vec!["t"], 1000.0));
}

/// Who is removed still has the data, whether the model calls it dead already, as the engine's does, or not.
#[test]
fn what_is_on_a_broker_to_be_removed_is_not_lost() {
    for text in [RACK_LOST, &RACK_LOST.replace(" dead", "")] {
        let cluster = Picture::parse(text).build();
        let operation = Operation::RemoveBrokers([BrokerId(0)].into());
        let outcome = planned(&cluster, &Request { operation, ..Request::rebalance(&[Goal::RackAware]) });
        assert_eq!((megabytes(&outcome, "t"), megabytes(&outcome, "u")), (1000.0, 1000.0));
        assert_eq!(outcome.least_megabytes, 2000.0);
    }
}

/// It is up, and says itself that the disk is gone under `t0`.
#[test]
fn what_was_on_a_dead_disk_of_a_broker_to_be_removed_is_lost() {
    let cluster = Picture::parse(
        "rack a: b0[t0* u0*] bad
         rack b: b1[v0*]
         rack c: b2[]
         disks b0: 150000! 150000
         on t0@b0: 0
         on u0@b0: 1
         load *: 1 10 10 1000",
    )
    .build();
    let operation = Operation::RemoveBrokers([BrokerId(0)].into());
    let outcome = planned(&cluster, &Request { operation, ..Request::rebalance(&[Goal::RackAware]) });
    assert_eq!((megabytes(&outcome, "t"), megabytes(&outcome, "u")), (0.0, 1000.0));
    assert_eq!(outcome.least_megabytes, 1000.0);
}

#[test]
fn a_plan_that_pretends_to_copy_what_is_lost_is_found_out() {
    let cluster = Picture::parse(RACK_LOST).build();
    let request = Request::rebalance(&[Goal::RackAware]);
    let mut plan = planned(&cluster, &request).plan;
    plan.changes.iter_mut().find(|change| change.topic == "t").unwrap().megabytes = 1000.0;
    let findings = inspect(&cluster, &request, &plan);
    assert_eq!(findings[0].to_string(), "t-0: 1000 MB between brokers are told, 0 MB are counted");
}
