//! The goals about racks, definition by definition.

use evenkeel_balancer::goal::Goal;
use evenkeel_balancer::options::{Request, TopicPattern};
use expect_test::expect;

use crate::check::{at_most, check, check_request, check_with, ids};

#[test]
fn a_rack_holds_one_replica_of_a_partition() {
    check(
        "rack a: b0[t0* t1 ] b1[t0]\nrack b: b2[t1*]",
        &[Goal::RackAware],
        expect![[r#"
        t0: b0 -> b2: leader b0 -> b2
        RackAwareGoal fixed
    "#]],
    );
}

#[test]
fn more_replicas_than_racks_are_infeasible() {
    check(
        "rack a: b0[t0*] b1[t0]\nrack b: b2[t0]",
        &[Goal::RackAware],
        expect![[r#"
        infeasible: RackAwareGoal
    "#]],
    );
    // A rack of which every broker is dead is none.
    check(
        "rack a: b0[t0*] b1[t0]\nrack b: b2[] dead",
        &[Goal::RackAware],
        expect![[r#"
        infeasible: RackAwareGoal
    "#]],
    );
}

#[test]
fn excluded_topics_may_crowd_a_rack() {
    let request =
        Request { excluded_topics: Some(TopicPattern::new("t").unwrap()), ..Request::rebalance(&[Goal::RackAware]) };
    check_request(
        "rack a: b0[t0*] b1[t0]\nrack b: b2[]",
        &request,
        expect![[r#"
        nothing to do
    "#]],
    );
}

#[test]
fn a_later_goal_does_not_put_replicas_into_one_rack() {
    // By count t0 or t1 would go to b1, but that is in the rack of their other replicas.
    let crowded = "rack a: b0[t0* t1*] b1[]\nrack b: b2[t0 t1 u0* u1* u2* u3*]";
    check(
        crowded,
        &[Goal::RackAware, Goal::ReplicaDistribution],
        expect![[r#"
        u0: b2 -> b1: leader b2 -> b1
        u1: b2 -> b1: leader b2 -> b1
        u2: b2 -> b0: leader b2 -> b0
        ReplicaDistributionGoal fixed
    "#]],
    );
    // Leadership is no matter of racks.
    check(
        "rack a: b0[t0* t1* t2* t3*]\nrack b: b1[t0 t1 t2 t3]",
        &[Goal::RackAware, Goal::LeaderReplicaDistribution],
        expect![[r#"
            t0: leader b0 -> b1
            LeaderReplicaDistributionGoal fixed
        "#]],
    );
}

/// Two each at most, so that t0 or v0 can only change places with u0 or u1; with t0 on b2, two of it were in rack b.
#[test]
fn a_later_goal_does_not_swap_replicas_into_one_rack() {
    let picture = "rack a: b0[t0* v0*]
                   rack b: b1[t0 w0*] b2[u0* u1*]
                   load t0: 1 10 10 30
                   load v0: 1 10 10 30
                   load *: 1 10 10 10";
    let goals = |first: Goal| Request::rebalance(&[first, Goal::ReplicaCapacity, Goal::DiskUsageDistribution]);
    check_with(
        picture,
        &goals(Goal::RackAware),
        &at_most(2),
        expect![[r#"
        u0: b2 -> b0: leader b2 -> b0
        v0: b0 -> b2: leader b0 -> b2
        DiskUsageDistributionGoal fixed
    "#]],
    );
    // Where racks do not count the one that comes first goes.
    check_with(
        picture,
        &goals(Goal::CpuCapacity),
        &at_most(2),
        expect![[r#"
        t0: b0 -> b2: leader b0 -> b2
        u0: b2 -> b0: leader b2 -> b0
        DiskUsageDistributionGoal fixed
    "#]],
    );
}

#[test]
fn racks_share_replicas_evenly() {
    let even = [Goal::RackAwareDistribution];
    // Three replicas in two racks: two and one, whichever has two.
    check(
        "rack a: b0[t0*] b1[t0]\nrack b: b2[t0] b3[]",
        &even,
        expect![[r#"
        nothing to do
    "#]],
    );
    check(
        "rack a: b0[t0*] b1[t0] b4[t0]\nrack b: b2[] b3[]",
        &even,
        expect![[r#"
        t0: b0 -> b2: leader b0 -> b2
        RackAwareDistributionGoal fixed
    "#]],
    );
    // Four in two racks: two and two.
    check(
        "rack a: b0[t0*] b1[t0] b4[t0]\nrack b: b2[t0] b3[]",
        &even,
        expect![[r#"
        t0: b0 -> b3: leader b0 -> b3
        RackAwareDistributionGoal fixed
    "#]],
    );
    // Two in three racks: one and one, as by the strict goal.
    check(
        "rack a: b0[t0*] b1[t0]\nrack b: b2[]\nrack c: b3[]",
        &even,
        expect![[r#"
        t0: b0 -> b2: leader b0 -> b2
        RackAwareDistributionGoal fixed
    "#]],
    );
}

#[test]
fn four_replicas_in_three_racks_are_two_and_one_and_one() {
    let goal = [Goal::RackAwareDistribution];
    // Three in a, one in b: one of them goes to c, which has none. Two, one and one is even.
    check(
        "rack a: b0[t0*] b1[t0] b2[t0]\nrack b: b3[t0] b4[]\nrack c: b5[]",
        &goal,
        expect![[r#"
            t0: b0 -> b5: leader b0 -> b5
            RackAwareDistributionGoal fixed
        "#]],
    );
    // Two and two leave c without any.
    check(
        "rack a: b0[t0*] b1[t0]\nrack b: b3[t0] b4[t0]\nrack c: b5[]",
        &goal,
        expect![[r#"
            t0: b0 -> b5: leader b0 -> b5
            RackAwareDistributionGoal fixed
        "#]],
    );
    check(
        "rack a: b0[t0*] b1[t0]\nrack b: b3[t0] b4[]\nrack c: b5[t0]",
        &goal,
        expect![[r#"
        nothing to do
    "#]],
    );
}

#[test]
fn no_rack_goes_without_where_others_have_two() {
    // Four in three racks: two, one and one.
    let none_in_c = "rack a: b0[t0*] b1[t0]\nrack b: b2[t0] b3[t0]\nrack c: b4[]";
    check(
        none_in_c,
        &[Goal::RackAwareDistribution],
        expect![[r#"
        t0: b0 -> b4: leader b0 -> b4
        RackAwareDistributionGoal fixed
    "#]],
    );
    // With no room in the third it cannot be, unless what is there may leave.
    let full = none_in_c.replace("b4[]", "b4[u0*]");
    let request = Request::rebalance(&[Goal::ReplicaCapacity, Goal::RackAwareDistribution]);
    check_with(
        &full,
        &request,
        &at_most(1),
        expect![[r#"
            t0: b0 -> b4: leader b0 -> b4
            u0: b4 -> b0: leader b4 -> b0
            RackAwareDistributionGoal fixed
        "#]],
    );
    check_with(
        &full,
        &Request { excluded_topics: Some(TopicPattern::new("u").unwrap()), ..request },
        &at_most(1),
        expect![[r#"
            infeasible: RackAwareDistributionGoal
        "#]],
    );
}

#[test]
fn a_rack_with_too_few_brokers_makes_evenness_infeasible() {
    // Four replicas in two racks need two brokers in each.
    check(
        "rack a: b0[t0*] b1[t0] b4[t0]\nrack b: b2[t0]",
        &[Goal::RackAwareDistribution],
        expect![[r#"
        infeasible: RackAwareDistributionGoal
    "#]],
    );
}

/// What is excluded gets nothing, but gives what evenness needs.
#[test]
fn brokers_that_get_nothing_give_what_racks_lack() {
    let request =
        Request { excluded_for_replica_moves: ids(&[0, 1]), ..Request::rebalance(&[Goal::RackAwareDistribution]) };
    check_request(
        "rack a: b0[t0*] b1[t0]\nrack b: b2[]\nrack c: b3[]",
        &request,
        expect![[r#"
        t0: b0 -> b2: leader b0 -> b2
        RackAwareDistributionGoal fixed
    "#]],
    );
}

#[test]
fn later_goals_keep_racks_even() {
    // b2 is crowded; t0 may go to b3 in its own rack, not to rack a, which has two of it.
    let crowded = "rack a: b0[t0*] b1[t0]\nrack b: b2[t0 u0* u1* u2*] b3[]";
    check(
        crowded,
        &[Goal::RackAwareDistribution, Goal::ReplicaDistribution],
        expect![[r#"
        t0: b2 -> b3
        u0: b2 -> b0: leader b2 -> b0
        ReplicaDistributionGoal fixed
    "#]],
    );
}
