//! What may be asked of disks: removal, exclusions, goals of both kinds, and what is refused.

use expect_test::expect;

use super::{broker, check, cluster, disks, remove};
use crate::cluster::{BrokerId, ClusterBuilder, Resource};
use crate::fixture::planned;
use crate::goal::Goal;
use crate::options::{Operation, Request, TopicPattern};
use crate::planner::Status;
use crate::settings::Settings;

#[test]
fn removed_disks_are_emptied_largest_first_even_of_empty_and_excluded_replicas() {
    let request = Request { excluded_topics: Some(TopicPattern::new("t").unwrap()), ..remove(&[(0, "c")]) };
    check(
        &["a/100: 20 | b/100: 30 | c/100: 10 5 25 0", "a/100: 70 | b/100: 1"],
        &request,
        expect![[r#"
        t-4 on 0: c -> a, 25 MB, IntraBrokerDiskCapacityGoal
        t-2 on 0: c -> b, 10 MB, IntraBrokerDiskCapacityGoal
        t-3 on 0: c -> b, 5 MB, IntraBrokerDiskCapacityGoal
        t-5 on 0: c -> a, 0 MB, IntraBrokerDiskCapacityGoal
        0 a: 20 MB in 1 -> 45 MB in 3
        0 b: 30 MB in 1 -> 45 MB in 3
        0 c: 40 MB in 4 -> 0 MB in 0
        1 a: 70 MB in 1 -> 70 MB in 1
        1 b: 1 MB in 1 -> 1 MB in 1
        IntraBrokerDiskCapacityGoal Fixed
    "#]],
    );
}

#[test]
fn a_disk_that_the_cluster_says_is_to_go_is_emptied_too() {
    check(
        &["a/100: 20 | b/100: 20 | c/100!: 10"],
        &disks(),
        expect![[r#"
        t-2 on 0: c -> a, 10 MB, IntraBrokerDiskCapacityGoal
        0 a: 20 MB in 1 -> 30 MB in 2
        0 b: 20 MB in 1 -> 20 MB in 1
        0 c: 10 MB in 1 -> 0 MB in 0
        IntraBrokerDiskCapacityGoal Fixed
        IntraBrokerDiskUsageDistributionGoal Violated
    "#]],
    );
}

#[test]
fn room_is_made_for_what_leaves_a_removed_disk() {
    // 45 fits nowhere (limit 80, 40 and 50 are taken); 10 goes from a to b, then a has room.
    check(
        &["a/100: 30 10 | b/100: 50 | c/100: 45"],
        &remove(&[(0, "c")]),
        expect![[r#"
        t-1 on 0: a -> b, 10 MB, IntraBrokerDiskCapacityGoal
        t-3 on 0: c -> a, 45 MB, IntraBrokerDiskCapacityGoal
        0 a: 40 MB in 2 -> 75 MB in 2
        0 b: 50 MB in 1 -> 60 MB in 2
        0 c: 45 MB in 1 -> 0 MB in 0
        IntraBrokerDiskCapacityGoal Fixed
    "#]],
    );
}

#[test]
fn removal_is_refused_in_cruise_controls_words() {
    let picture = ["a/100: 50 | b/100: 40 | c/100†: 3"];
    for (disks, words) in [
        (vec![(0, "x")], "Invalid log dirs provided for broker 0."),
        (vec![(0, "c")], "Invalid log dirs provided for broker 0."),
        (vec![(0, "a"), (0, "b")], "No log dir remaining to move replicas to for broker 0."),
        (vec![(0, "a")], "Not enough remaining capacity to move replicas to for broker 0."),
        (vec![(7, "a")], "broker 7 is not part of the cluster"),
    ] {
        let refused = planned(&cluster(&picture), &remove(&disks), &Settings::default()).unwrap_err();
        assert_eq!(refused.to_string(), words);
    }
}

#[test]
fn goals_have_their_place() {
    let cluster = cluster(&["a/100: 10 | b/100: "]);
    let refusal = |operation: Operation, goals: &[Goal]| {
        let request = Request { operation, goals: goals.to_vec(), ..Request::default() };
        planned(&cluster, &request, &Settings::default()).unwrap_err().to_string()
    };
    let [capacity, distribution] = Goal::INTRA_BROKER;
    let removal = || Operation::RemoveDisks([(BrokerId(0), "a".to_owned())].into());
    assert_eq!(
        refusal(Operation::RebalanceDisks, &[capacity, Goal::RackAware]),
        "RackAwareGoal does not move replicas between the disks of a broker"
    );
    assert_eq!(
        refusal(removal(), &[distribution]),
        "disks are removed by IntraBrokerDiskCapacityGoal, which is missing"
    );
    assert_eq!(
        refusal(Operation::AddBrokers([BrokerId(0)].into()), &[distribution]),
        "IntraBrokerDiskUsageDistributionGoal alone moves nothing between brokers"
    );
    assert_eq!(
        refusal(Operation::DemoteBrokers([BrokerId(0)].into()), &[Goal::RackAware]),
        "RackAwareGoal has no part in demotion, only PreferredLeaderElectionGoal"
    );
    let mut plain = ClusterBuilder::new();
    plain.broker(broker(0, 100.0, Vec::new())).unwrap();
    let refused = planned(&plain.build().unwrap(), &disks(), &Settings::default()).unwrap_err();
    assert_eq!(refused.to_string(), "the log directories of the brokers are not known one by one");
}

#[test]
fn excluded_topics_and_other_brokers_than_those_named_stay() {
    let picture = ["a/100: 30 30 | b/100: ", "a/100: 30 30 | b/100: "];
    let excluded = Request { excluded_topics: Some(TopicPattern::new("t").unwrap()), ..disks() };
    check(
        &picture,
        &excluded,
        expect![[r#"
        0 a: 60 MB in 2 -> 60 MB in 2
        0 b: 0 MB in 0 -> 0 MB in 0
        1 a: 60 MB in 2 -> 60 MB in 2
        1 b: 0 MB in 0 -> 0 MB in 0
        IntraBrokerDiskCapacityGoal NoAction
        IntraBrokerDiskUsageDistributionGoal Violated
    "#]],
    );
    let named = Request { destinations: [BrokerId(1)].into(), ..disks() };
    check(
        &picture,
        &named,
        expect![[r#"
        t-2 on 1: a -> b, 30 MB, IntraBrokerDiskUsageDistributionGoal
        0 a: 60 MB in 2 -> 60 MB in 2
        0 b: 0 MB in 0 -> 0 MB in 0
        1 a: 60 MB in 2 -> 30 MB in 1
        1 b: 0 MB in 0 -> 30 MB in 1
        IntraBrokerDiskCapacityGoal NoAction
        IntraBrokerDiskUsageDistributionGoal Violated
    "#]],
    );
}

#[test]
fn between_brokers_first_and_then_inside_them() {
    // Broker 1 is empty: some replicas go there, and each is told its disk; what stays on broker 0 is
    // spread over its two disks.
    let cluster = cluster(&["a/200: 20 20 20 20 20 20 20 20 | b/200: ", "a/200: | b/200: "]);
    let goals = [Goal::DiskCapacity, Goal::DiskUsageDistribution, Goal::IntraBrokerDiskUsageDistribution];
    let outcome = planned(&cluster, &Request::rebalance(&goals), &Settings::default()).unwrap();
    assert_eq!(outcome.after.iter().map(|load| load.resources[Resource::Disk as usize]).collect::<Vec<_>>(), [80.0; 2]);
    let disks: Vec<f64> = outcome.disks.iter().map(|load| load.megabytes.1).collect();
    assert_eq!(disks, [40.0; 4]);
    assert!(outcome.verdicts.iter().all(|verdict| verdict.status != Status::Violated));
    for change in &outcome.plan.changes {
        let [disk] = change.disks.as_slice() else { panic!("one disk each: {change:?}") };
        let arrives = change.new_replicas == [BrokerId(1)];
        assert_eq!((disk.broker.0, disk.from.is_empty()), (i32::from(arrives), arrives), "{change:?}");
        assert_eq!((change.megabytes, change.disk_megabytes), if arrives { (20.0, 0.0) } else { (0.0, 20.0) });
    }
    assert_eq!(outcome.plan.changes.len(), 6, "four cross, two change disks");
}
