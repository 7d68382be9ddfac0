//! The hard goals but those about racks, definition by definition.

use evenkeel_balancer::anomaly::Violations;
use evenkeel_balancer::goal::Goal;
use evenkeel_balancer::options::{Request, TopicPattern};
use evenkeel_balancer::planner::Verdict;
use evenkeel_balancer::settings::Settings;
use expect_test::expect;

use crate::check::{at_most, changes, check, check_request, check_with, inspected};
use crate::picture::Picture;

/// One to two replicas on each broker: once b2 has given one away, it may get none of `t0`.
#[test]
fn a_hard_goal_comes_first_wherever_it_is_listed() {
    let picture = Picture::parse("rack a: b0[t0*] b1[t0]\nrack b: b2[u0* u1* u2*]");
    let with = |goals: &[Goal]| inspected(&picture, &Request::rebalance(goals), &Settings::default()).unwrap();
    let (usual, turned) =
        (with(&[Goal::RackAware, Goal::ReplicaDistribution]), with(&[Goal::ReplicaDistribution, Goal::RackAware]));
    expect![[r#"
        t0: b0 -> b2: leader b0 -> b2
        u0: b2 -> b0: leader b2 -> b0
        u1: b2 -> b0: leader b2 -> b0
    "#]]
    .assert_eq(&changes(&usual.plan));
    assert_eq!(turned.plan, usual.plan);
}

/// Disks before racks is what the racks would be barred by, so these are served in another order than they are told in.
#[test]
fn goals_are_told_and_weighed_as_they_are_listed() {
    let picture = Picture::parse(
        "rack a: b0[t0*] b1[t0]
         rack b: b2[u0* u1*]
         load *: 1 10 10 4
         capacity b2: 100 300000 200000 12",
    );
    let settings = Settings::default();
    for goals in [
        [Goal::ReplicaDistribution, Goal::RackAware, Goal::DiskCapacity],
        [Goal::ReplicaDistribution, Goal::DiskCapacity, Goal::RackAware],
        [Goal::RackAware, Goal::ReplicaDistribution, Goal::DiskCapacity],
    ] {
        let outcome = inspected(&picture, &Request::rebalance(&goals), &settings).unwrap();
        let told: Vec<Goal> = outcome.verdicts.iter().map(|verdict| verdict.goal).collect();
        assert_eq!(told, goals);
        let missed = |verdict: &&Verdict| verdict.miss.0 > 0.0;
        let fixable: Vec<Goal> = outcome.verdicts.iter().filter(missed).map(|verdict| verdict.goal).collect();
        assert!(fixable.contains(&Goal::RackAware));
        let found = Violations { fixable, ..Violations::default() };
        assert_eq!(outcome.score.0, found.score(&goals, &settings));
    }
}

/// Counts ask for four to six on each, and the small disk for less than 8 MB.
#[test]
fn a_soft_goal_that_comes_first_breaks_no_hard_one() {
    let picture = "rack a: b0[t0* t1* t2* t3* t4* t5* t6* t7* t8* t9*] b1[]
         load *: 1 10 10 4
         capacity b1: 100 300000 200000 10";
    let goals = [Goal::ReplicaDistribution, Goal::DiskCapacity];
    check(
        picture,
        &goals,
        expect![[r#"
            t0: b0 -> b1: leader b0 -> b1
            ReplicaDistributionGoal violated
        "#]],
    );
    let outcome = inspected(&Picture::parse(picture), &Request::rebalance(&goals), &Settings::default()).unwrap();
    let counts = outcome.verdicts.iter().find(|verdict| verdict.goal == goals[0]).unwrap();
    let refused_by: Vec<Goal> = counts.refused_by.iter().map(|(goal, _)| *goal).collect();
    assert_eq!(refused_by, [Goal::DiskCapacity], "whoever is in the way is told, though it is listed later");
}

/// What the racks need comes first, and capacities make room for it. Served the other way round they would bar it.
#[test]
fn the_order_of_hard_goals_refuses_nothing() {
    for goals in [[Goal::RackAware, Goal::DiskCapacity], [Goal::DiskCapacity, Goal::RackAware]] {
        check(
            "rack a: b0[t0*] b1[t0]
             rack b: b2[u0* u1*]
             load *: 1 10 10 4
             capacity b2: 100 300000 200000 12",
            &goals,
            expect![[r#"
                t0: b0 -> b2: leader b0 -> b2
                u0: b2 -> b0: leader b2 -> b0
                RackAwareGoal fixed
            "#]],
        );
    }
}

#[test]
fn a_leader_moves_to_a_broker_that_holds_none_of_the_topic() {
    // b2 holds nothing of t, so no hand-over helps: the smallest leader that can be spared moves to it.
    check_with(
        "rack a: b0[t0* t1* t2*] b1[t3*] b2[]\nload t1: 1 10 10 5",
        &Request::rebalance(&[Goal::MinTopicLeadersPerBroker]),
        &leading_topics(1),
        expect![[r#"
            t1: b0 -> b2: leader b0 -> b2
            MinTopicLeadersPerBrokerGoal fixed
        "#]],
    );
}

#[test]
fn every_broker_is_asked_before_a_hard_goal_counts_as_infeasible() {
    // Fourteen brokers with little on their disks have no room left for traffic; only the one with the fuller disk has.
    let mut text = String::from("rack a: b0[t0* t1*]\nload t0: 1 10000 10 150000\nload t1: 1 10000 10 150000\n");
    for broker in 1..=14 {
        text += &format!("rack a: b{broker}[u{broker}*]\nload u{broker}: 1 235000 10 10\n");
    }
    text += "rack a: b15[v0*]\nload v0: 1 10 10 50000\n";
    check(
        &text,
        &[Goal::NetworkInboundCapacity, Goal::DiskCapacity],
        expect![[r#"
        t0: b0 -> b15: leader b0 -> b15
        DiskCapacityGoal fixed
    "#]],
    );
}

fn leading_topics(n: u32) -> Settings {
    Settings {
        topics_with_min_leaders_per_broker: Some(TopicPattern::new("t").unwrap()),
        min_topic_leaders_per_broker: n,
        ..Settings::default()
    }
}

#[test]
fn each_broker_leads_a_partition_of_certain_topics() {
    let request = Request::rebalance(&[Goal::MinTopicLeadersPerBroker]);
    // Other topics are free, and so is this one without configuration.
    check_request(
        "rack a: b0[t0* t1*] b1[t0 t1]",
        &request,
        expect![[r#"
        nothing to do
    "#]],
    );
    check_with(
        "rack a: b0[t0* t1* u0*] b1[t0 t1]",
        &request,
        &leading_topics(1),
        expect![[r#"
        t0: leader b0 -> b1
        MinTopicLeadersPerBrokerGoal fixed
    "#]],
    );
    check_with(
        "rack a: b0[u0* u1*] b1[u0 u1]",
        &request,
        &leading_topics(1),
        expect![[r#"
        nothing to do
    "#]],
    );
    // Too few partitions.
    check_with(
        "rack a: b0[t0*] b1[t0]",
        &request,
        &leading_topics(1),
        expect![[r#"
        infeasible: MinTopicLeadersPerBrokerGoal
    "#]],
    );
}

#[test]
fn brokers_that_lead_nothing_need_no_leaders() {
    let excluded = [evenkeel_balancer::cluster::BrokerId(1)].into();
    let request =
        Request { excluded_for_leadership: excluded, ..Request::rebalance(&[Goal::MinTopicLeadersPerBroker]) };
    check_with(
        "rack a: b0[t0*] b1[t0]",
        &request,
        &leading_topics(1),
        expect![[r#"
        nothing to do
    "#]],
    );
}

#[test]
fn brokers_that_lead_nothing_have_no_leaders_to_lose() {
    // b1 can only get what b2, which must not lead, has.
    let excluded = [evenkeel_balancer::cluster::BrokerId(2)].into();
    let request =
        Request { excluded_for_leadership: excluded, ..Request::rebalance(&[Goal::MinTopicLeadersPerBroker]) };
    check_with(
        "rack a: b0[t0* t1] b1[t0 t1] b2[t1*]",
        &request,
        &leading_topics(1),
        expect![[r#"
        t1: leader b2 -> b1
        MinTopicLeadersPerBrokerGoal fixed
    "#]],
    );
}

#[test]
fn excluded_topics_cannot_give_leaders() {
    let request = Request {
        excluded_topics: Some(TopicPattern::new("t").unwrap()),
        ..Request::rebalance(&[Goal::MinTopicLeadersPerBroker])
    };
    check_with(
        "rack a: b0[t0* t1*] b1[t0 t1]",
        &request,
        &leading_topics(1),
        expect![[r#"
        infeasible: MinTopicLeadersPerBrokerGoal
    "#]],
    );
}

#[test]
fn later_goals_leave_each_broker_its_leaders() {
    // By count of leaders b0 gives one away, but not the only one of t.
    let goals = [Goal::MinTopicLeadersPerBroker, Goal::LeaderReplicaDistribution];
    let crowded = "rack a: b0[t0* u0* u1* u2*] b1[t0 t1*]\norder t0: b0 b1";
    check_with(
        crowded,
        &Request::rebalance(&goals),
        &leading_topics(1),
        expect![[r#"
        u0: b0 -> b1: leader b0 -> b1
        LeaderReplicaDistributionGoal fixed
    "#]],
    );
}

#[test]
fn a_broker_holds_so_many_replicas_at_most() {
    let request = Request::rebalance(&[Goal::ReplicaCapacity]);
    let crowded = "rack a: b0[t0* t1* t2*] b1[]";
    // Exactly the maximum is allowed.
    check_with(
        crowded,
        &request,
        &at_most(3),
        expect![[r#"
        nothing to do
    "#]],
    );
    check_with(
        crowded,
        &request,
        &at_most(2),
        expect![[r#"
        t0: b0 -> b1: leader b0 -> b1
        ReplicaCapacityGoal fixed
    "#]],
    );
    // Three do not fit on two brokers that hold one.
    check_with(
        crowded,
        &request,
        &at_most(1),
        expect![[r#"
        infeasible: ReplicaCapacityGoal
    "#]],
    );
}

#[test]
fn replicas_of_excluded_topics_may_be_too_many() {
    let request = Request {
        excluded_topics: Some(TopicPattern::new("t").unwrap()),
        ..Request::rebalance(&[Goal::ReplicaCapacity])
    };
    check_with(
        "rack a: b0[t0* t1* t2*] b1[]",
        &request,
        &at_most(2),
        expect![[r#"
        infeasible: ReplicaCapacityGoal
    "#]],
    );
}

#[test]
fn later_goals_fill_no_broker_beyond_its_maximum() {
    // b1 has room for bytes, but not for a third replica; swaps are always allowed.
    let goals = [Goal::ReplicaCapacity, Goal::DiskUsageDistribution];
    let crowded = "rack a: b0[t0* t1*] b1[u0* u1*]\nload t0: 1 10 10 100\nload t1: 1 10 10 100";
    check_with(
        crowded,
        &Request::rebalance(&goals),
        &at_most(2),
        expect![[r#"
        t0: b0 -> b1: leader b0 -> b1
        u0: b1 -> b0: leader b1 -> b0
        DiskUsageDistributionGoal fixed
    "#]],
    );
}

/// Brokers of 1000 everywhere but CPU.
const TIGHT: &str = "capacity b0: 100 1000 1000 1000\ncapacity b1: 100 1000 1000 1000\n";

#[test]
fn disks_stay_below_their_threshold() {
    // 900 of 1000 is too much, 600 is not, and the smallest sufficient replica moves.
    let full =
        format!("rack a: b0[t0* t1* t2*] b1[]\n{TIGHT}load t0: 1 1 1 600\nload t1: 1 1 1 200\nload t2: 1 1 1 100");
    check(
        &full,
        &[Goal::DiskCapacity],
        expect![[r#"
        t2: b0 -> b1: leader b0 -> b1
        DiskCapacityGoal fixed
    "#]],
    );
    // 1700 do not fit into 80 % of 2000.
    let over = format!("rack a: b0[t0* t1*] b1[]\n{TIGHT}load t0: 1 1 1 900\nload t1: 1 1 1 800");
    check(
        &over,
        &[Goal::DiskCapacity],
        expect![[r#"
        infeasible: DiskCapacityGoal
    "#]],
    );
}

#[test]
fn where_no_single_move_keeps_a_capacity_an_exchange_does() {
    // Neither 500 nor 400 fit beside 630 of 800. Each pair that changes places would do, and one has fewer bytes.
    let brokers = format!("rack a: b0[t0* t1*] b1[u0* u1*]\n{TIGHT}");
    let sizes = "load t0: 1 1 1 500\nload t1: 1 1 1 400\nload u0: 1 1 1 350\nload u1: 1 1 1 280";
    check(
        &format!("{brokers}{sizes}"),
        &[Goal::DiskCapacity],
        expect![[r#"
            t1: b0 -> b1: leader b0 -> b1
            u1: b1 -> b0: leader b1 -> b0
            DiskCapacityGoal fixed
        "#]],
    );
    let traffic = "load t0: 1 500 1 1\nload t1: 1 400 1 1\nload u0: 1 350 1 1\nload u1: 1 280 1 1";
    check(
        &format!("{brokers}{traffic}"),
        &[Goal::DiskCapacity, Goal::NetworkInboundCapacity],
        expect![[r#"
            t1: b0 -> b1: leader b0 -> b1
            u1: b1 -> b0: leader b1 -> b0
            NetworkInboundCapacityGoal fixed
        "#]],
    );
    // Racks come first: neither u0 nor u1 may come beside the replica that is there.
    let racks = "rack a: b0[t0* t1*] b2[u0 u1]\nrack b: b1[u0* u1*]\ncapacity b2: 100 1000 1000 800\n";
    check(
        &format!("{racks}{TIGHT}{sizes}"),
        &[Goal::RackAware, Goal::DiskCapacity],
        expect![[r#"
            infeasible: DiskCapacityGoal
        "#]],
    );
}

#[test]
fn what_is_exactly_at_the_threshold_is_satisfied_but_takes_no_more() {
    let exact = format!("rack a: b0[t0* t1*] b1[]\n{TIGHT}load t0: 1 1 1 400\nload t1: 1 1 1 400");
    check(
        &exact,
        &[Goal::DiskCapacity],
        expect![[r#"
        nothing to do
    "#]],
    );
    // A move must end strictly below: 400 + 400 is not below 800.
    let tight = format!("rack a: b0[t0* t1* t2*] b1[u0*]\n{TIGHT}load *: 1 1 1 400");
    check(
        &tight,
        &[Goal::DiskCapacity],
        expect![[r#"
        infeasible: DiskCapacityGoal
    "#]],
    );
}

#[test]
fn inbound_traffic_moves_with_replicas_only() {
    let full = format!("rack a: b0[t0* t1*] b1[t0] b2[]\n{TIGHT}capacity b2: 100 1000 1000 1000\nload *: 1 450 10 10");
    check(
        &full,
        &[Goal::NetworkInboundCapacity],
        expect![[r#"
        t0: b0 -> b2: leader b0 -> b2
        NetworkInboundCapacityGoal fixed
    "#]],
    );
}

#[test]
fn outbound_traffic_moves_with_leadership_first() {
    let full = format!("rack a: b0[t0* t1*] b1[t0] b2[]\n{TIGHT}capacity b2: 100 1000 1000 1000\nload *: 1 10 450 10");
    check(
        &full,
        &[Goal::NetworkOutboundCapacity],
        expect![[r#"
        t0: leader b0 -> b1
        NetworkOutboundCapacityGoal fixed
    "#]],
    );
    let alone = format!("rack a: b0[t0* t1*] b1[]\n{TIGHT}load *: 1 10 450 10");
    check(
        &alone,
        &[Goal::NetworkOutboundCapacity],
        expect![[r#"
        t0: b0 -> b1: leader b0 -> b1
        NetworkOutboundCapacityGoal fixed
    "#]],
    );
}

#[test]
fn cpu_has_a_threshold_of_its_own() {
    // 72 of 100 is above 70 %; a follower of t0 costs half.
    let full = format!("rack a: b0[t0* t1*] b1[t0]\n{TIGHT}load *: 36 10 10 10");
    check(
        &full,
        &[Goal::CpuCapacity],
        expect![[r#"
        t0: leader b0 -> b1
        CpuCapacityGoal fixed
    "#]],
    );
    let fits = format!("rack a: b0[t0* t1*] b1[t0]\n{TIGHT}load *: 34 10 10 10");
    check(
        &fits,
        &[Goal::CpuCapacity],
        expect![[r#"
        nothing to do
    "#]],
    );
}

#[test]
fn leadership_is_judged_with_all_that_the_leader_carries() {
    // b1 carries 18 for its follower and 36. Leading t0 would cost it 18 more, but it is asked for 36: 90 of 70.
    let busy = format!("rack a: b0[t0* t1*] b1[t0 u0*]\n{TIGHT}load *: 36 10 10 10");
    check(
        &busy,
        &[Goal::CpuCapacity],
        expect![[r#"
        infeasible: CpuCapacityGoal
    "#]],
    );
    // With 15 instead of 36 it is asked for 69.
    let calm = format!("rack a: b0[t0* t1*] b1[t0 u0*]\n{TIGHT}load *: 36 10 10 10\nload u0: 15 10 10 10");
    check(
        &calm,
        &[Goal::CpuCapacity],
        expect![[r#"
        t0: leader b0 -> b1
        CpuCapacityGoal fixed
    "#]],
    );
    // All capacities judge so, even those that leadership leaves as they are: b1 has 780 of 800 MB.
    let full = "rack a: b0[t0* t1* t2* t3*] b1[t0 t1 t2 t3 u0*]";
    let full = |u0: u16| format!("{full}\n{TIGHT}load *: 1 1 1 100\nload u0: 1 1 1 {u0}");
    let goals = [Goal::DiskCapacity, Goal::LeaderReplicaDistribution];
    check(
        &full(380),
        &goals,
        expect![[r#"
        LeaderReplicaDistributionGoal violated
    "#]],
    );
    check(
        &full(280),
        &goals,
        expect![[r#"
        t0: leader b0 -> b1
        LeaderReplicaDistributionGoal fixed
    "#]],
    );
}

#[test]
fn later_goals_keep_to_capacities() {
    // Mean 3, so b0 should give two away, but b1 has only room for one.
    let goals = [Goal::DiskCapacity, Goal::ReplicaDistribution];
    let six = "rack a: b0[t0* t1* t2* t3* t4* t5*] b1[]";
    let tight = format!("{six}\n{TIGHT}capacity b1: 100 1000 1000 200\nload *: 1 1 1 100");
    check(
        &tight,
        &goals,
        expect![[r#"
        t0: b0 -> b1: leader b0 -> b1
        ReplicaDistributionGoal violated
    "#]],
    );
}
