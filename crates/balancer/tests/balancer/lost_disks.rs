//! A disk that failed is no room: neither for goals between brokers nor for what is moved off it.

use evenkeel_balancer::cluster::{BrokerId, Resource};
use evenkeel_balancer::goal::Goal;
use evenkeel_balancer::options::{Operation, Request};
use evenkeel_balancer::settings::Settings;
use expect_test::expect;

use crate::check::{check, check_request, inspected};
use crate::picture::Picture;

/// Two disks of 150,000 MB on each broker, of which b0 has lost one; on the other it has 140,000 of the 120,000 MB allowed.
const HALF_DEAD: &str = "rack a: b0[t0* t1*] bad
                         rack b: b1[u0*]
                         rack c: b2[v0*]
                         disks b0: 150000 150000!
                         disks b1: 150000 150000
                         disks b2: 150000 150000
                         on t0@b0: 0
                         on t1@b0: 0
                         on u0@b1: 0
                         on v0@b2: 0
                         load *: 1 10 10 70000";

#[test]
fn what_a_broker_can_carry_is_what_serves_and_is_told_again_as_it_was_told() {
    let text =
        "rack a: b0[] b1[] b2[] b3[]\ndisks b0: 100000 200000!\ndisks b1: 200000- 100000\ndisks b2: 200000 200000";
    let cluster = Picture::parse(text).build();
    let room = |id: i32| cluster.broker(BrokerId(id)).unwrap().capacity[Resource::Disk as usize];
    assert_eq!([0, 1, 2, 3].map(room), [100_000.0, 100_000.0, 300_000.0, 300_000.0]);
    let told = |id: i32| cluster.broker(BrokerId(id)).unwrap().spec(&cluster).capacity[Resource::Disk as usize];
    assert_eq!([0, 1, 2, 3].map(told), [300_000.0; 4]);
}

/// It is as good as dead, for the plan and for the checker alike.
#[test]
fn a_new_broker_that_has_lost_all_its_disks_keeps_nobody_from_getting_replicas() {
    check(
        "rack a: b0[t0* t1* t2* t3*] b1[] b2[] new\ndisks b2: 100!",
        &[Goal::ReplicaDistribution],
        expect![[r#"
            t0: b0 -> b1: leader b0 -> b1
            ReplicaDistributionGoal fixed
        "#]],
    );
}

#[test]
fn the_disks_that_are_left_are_not_overfilled() {
    check(
        HALF_DEAD,
        &[Goal::DiskCapacity],
        expect![[r#"
        t0: b0 -> b1: leader b0 -> b1
        DiskCapacityGoal fixed
    "#]],
    );
}

#[test]
fn the_fair_share_of_a_broker_is_that_of_its_disks_that_serve() {
    // 280,000 of 750,000 MB are 37 %: between 51,000 and 61,000 on b0 and twice that on the others.
    check(
        &HALF_DEAD
            .replace("load *: 1 10 10 70000", "load *: 1 10 10 70000\nload t0: 1 10 10 55000\nload u0: 1 10 10 56000"),
        &[Goal::DiskUsageDistribution],
        expect![[r#"
            t1: b0 -> b1: leader b0 -> b1
            DiskUsageDistributionGoal violated
        "#]],
    );
}

#[test]
fn a_plain_rebalance_knows_it_too() {
    check(
        HALF_DEAD,
        &Goal::DEFAULT,
        expect![[r#"
        t0: b0 -> b1: leader b0 -> b1
        DiskCapacityGoal fixed
        DiskUsageDistributionGoal violated
        NetworkInboundUsageDistributionGoal violated
        NetworkOutboundUsageDistributionGoal violated
        CpuUsageDistributionGoal violated
        LeaderBytesInDistributionGoal violated
    "#]],
    );
}

/// b2 has room for t0 by its name, but not on the disk that is left to it.
#[test]
fn what_left_a_failed_disk_does_not_overfill_another_broker_that_lost_one() {
    let text = "rack a: b0[t0* w0*] bad
                rack b: b1[u0* u1*]
                rack c: b2[v0*] bad
                disks b0: 150000 150000!
                disks b2: 150000 150000!
                on t0@b0: 1
                on w0@b0: 0
                on v0@b2: 0
                load *: 1 10 10 70000";
    let request = Request { operation: Operation::FixOfflineReplicas, ..Request::rebalance(&[Goal::DiskCapacity]) };
    check_request(
        text,
        &request,
        expect![[r#"
        t0: b0 -> b1: leader b0 -> b1
        DiskCapacityGoal fixed
    "#]],
    );
}

#[test]
fn a_broker_that_lost_all_its_disks_is_emptied_and_gets_nothing() {
    let text = "rack a: b0[t0* t1*] bad
                rack b: b1[u0* u1* u2*]
                rack c: b2[v0*]
                disks b0: 150000! 150000!
                on t0@b0: 1
                load *: 1 10 10 10000";
    let outcome = inspected(&Picture::parse(text), &Request::rebalance(&Goal::DEFAULT), &Settings::default()).unwrap();
    assert_eq!(outcome.after[0].replicas, 0);
    assert_eq!(outcome.before[0].replicas, 2);
    assert!(outcome.statistics.1.resources.iter().all(|spread| spread.mean.is_finite() && spread.max.is_finite()));
}
