//! Where several restrictions meet, and where one of them meets what is there already.

use evenkeel_balancer::goal::Goal;
use evenkeel_balancer::options::{Operation, Request};
use evenkeel_balancer::planner::Status;
use evenkeel_balancer::settings::Settings;
use expect_test::expect;

use crate::check::{check, check_request, check_with, ids, inspected, strict_about_topics};
use crate::picture::Picture;

/// 0 → 2 is allowed and enough, though rack c takes nothing.
#[test]
fn rack_mates_part_though_fewer_racks_take_replicas_than_there_are_replicas() {
    let request = Request { excluded_for_replica_moves: ids(&[3]), ..Request::rebalance(&[Goal::RackAware]) };
    check_request(
        "rack a: b0[t0*] b1[t0]\nrack b: b2[]\nrack c: b3[t0]",
        &request,
        expect![[r#"
        t0: b0 -> b2: leader b0 -> b2
        RackAwareGoal fixed
    "#]],
    );
}

#[test]
fn electing_preferred_leaders_copies_nothing_though_a_broker_is_dead() {
    check(
        "rack a: b0[t0*] b1[t0] dead\nrack b: b2[]",
        &[Goal::PreferredLeaderElection],
        expect![[r#"
        nothing to do
    "#]],
    );
    // Somebody leads, of course.
    check(
        "rack a: b0[t0*] dead b1[t0]\nrack b: b2[]",
        &[Goal::PreferredLeaderElection],
        expect![[r#"
        t0: leader b0 -> b1
        PreferredLeaderElectionGoal fixed
    "#]],
    );
    // Unless that is what the operation is for.
    let operation = Operation::FixOfflineReplicas;
    let request = Request { operation, ..Request::rebalance(&[Goal::PreferredLeaderElection]) };
    check_request(
        "rack a: b0[t0*] b1[t0] dead\nrack b: b2[]",
        &request,
        expect![[r#"
        t0: b1 -> b2
    "#]],
    );
}

/// Four brokers with fifteen partitions each, the last of which gets nothing: others should carry a third each.
fn four_even_brokers() -> Picture {
    let held = |broker: i32| (0..15).map(|number| format!("t{}*", 15 * broker + number)).collect::<Vec<_>>().join(" ");
    let racks: Vec<String> = (0..4).map(|broker| format!("rack r{broker}: b{broker}[{}]", held(broker))).collect();
    Picture::parse(&racks.join("\n"))
}

#[test]
fn a_broker_that_gets_nothing_gives_what_the_others_lack() {
    let request = Request { excluded_for_replica_moves: ids(&[3]), ..Request::default() };
    let outcome = inspected(&four_even_brokers(), &request, &Settings::default()).unwrap();
    let left: Vec<&str> = outcome
        .verdicts
        .iter()
        .filter(|verdict| verdict.status == Status::Violated)
        .map(|verdict| verdict.goal.name())
        .collect();
    assert_eq!(left, [""; 0]);
    let replicas: Vec<u64> = outcome.after.iter().map(|load| load.replicas).collect();
    // A third of 60 is 20; the bands are 9 % wide on each side, and nothing moves that nobody needs.
    assert_eq!(replicas, [19, 19, 19, 3]);
}

/// Three of a topic on each broker; a third of the twelve is four, give or take none.
#[test]
fn a_broker_that_gets_nothing_gives_of_each_topic_what_the_others_lack() {
    let request =
        Request { excluded_for_replica_moves: ids(&[3]), ..Request::rebalance(&[Goal::TopicReplicaDistribution]) };
    check_with(
        "rack a: b0[t0* t1* t2*] b1[t3* t4* t5*] b2[t6* t7* t8*] b3[t9* t10* t11*]",
        &request,
        &strict_about_topics(1.0),
        expect![[r#"
            t10: b3 -> b1: leader b3 -> b1
            t11: b3 -> b2: leader b3 -> b2
            t9: b3 -> b0: leader b3 -> b0
            TopicReplicaDistributionGoal fixed
        "#]],
    );
}

#[test]
fn named_destinations_exchange_though_others_are_new() {
    let picture = "rack a: b0[t0* t1*] b1[u0* u1*]\nload t0: 1 10 10 100\nload t1: 1 10 10 100\nrack b: b2[] new";
    let request = Request {
        destinations: ids(&[0, 1]),
        ..Request::rebalance(&[Goal::ReplicaDistribution, Goal::DiskUsageDistribution])
    };
    check_request(
        picture,
        &request,
        expect![[r#"
        t0: b0 -> b1: leader b0 -> b1
        u0: b1 -> b0: leader b1 -> b0
        ReplicaDistributionGoal violated
        DiskUsageDistributionGoal violated
    "#]],
    );
}

/// Three copies of `t` are on their way to b1: with those it has its share of the topic.
#[test]
fn copies_on_their_way_count_for_their_topic_where_they_go() {
    let moving = "rack a: b0[t0* t1* t2* t3* t4* t5*] b1[]\nmoving t0 -> b1\nmoving t1 -> b1\nmoving t2 -> b1";
    check_with(
        moving,
        &Request::rebalance(&[Goal::TopicReplicaDistribution]),
        &strict_about_topics(1.0),
        expect![[r#"
        TopicReplicaDistributionGoal violated
    "#]],
    );
}

/// A copy of `t0` is on its way into rack b, so the two that are offline go to racks c and d.
#[test]
fn an_offline_replica_stays_out_of_a_rack_that_a_copy_is_on_its_way_into() {
    let picture =
        "rack a: b0[t0*] b1[t0!] b5[t0!]\nrack b: b2[] b3[]\nrack c: b4[u0* u1* u2*]\nrack d: b6[]\nmoving t0 -> b2";
    check(
        picture,
        &[Goal::RackAware],
        expect![[r#"
            t0: b1 b5 -> b4 b6
        "#]],
    );
    // Unless there is no other.
    check(
        &picture.replace("\nrack c: b4[u0* u1* u2*]", ""),
        &[Goal::RackAware],
        expect![[r#"
            t0: b1 b5 -> b6 b3
        "#]],
    );
}

/// Two departures from Cruise Control, which would leave both goals as they are; see docs/decisions/0010.
#[test]
fn leadership_goes_from_any_replica_to_any_other_while_a_cluster_is_healed() {
    let picture = "rack a: b0[t0* t1* t2* t3*] b1[t0 t1 t2 t3] b2[u0] b3[u0*] dead";
    check(
        picture,
        &[Goal::LeaderReplicaDistribution],
        expect![[r#"
        t0: leader b0 -> b1
        t1: leader b0 -> b1
        u0: b3 -> b0: leader b3 -> b2
        LeaderReplicaDistributionGoal fixed
    "#]],
    );
}

/// b2 has its share already, and b0 too much.
#[test]
fn old_brokers_give_to_new_ones_what_they_have_too_much() {
    let picture = "rack a: b0[t0* t1* t2* t3* s0*] b1[u0* u1*] b2[v0* v1* v2*] new\nload s0: 1 10 10 2";
    check(
        picture,
        &[Goal::DiskUsageDistribution],
        expect![[r#"
        s0: b0 -> b2: leader b0 -> b2
        DiskUsageDistributionGoal violated
    "#]],
    );
}
