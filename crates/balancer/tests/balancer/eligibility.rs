//! Who may go where, rule by rule.

use evenkeel_balancer::goal::Goal;
use evenkeel_balancer::options::{Operation, Request, TopicPattern};
use expect_test::expect;

use crate::check::{check_request, ids};

fn counting_replicas() -> Request {
    Request::rebalance(&[Goal::ReplicaDistribution])
}

/// b0 holds everything; an even share is two replicas each.
const CROWDED: &str = "rack a: b0[t0* t1* t2* t3* t4* t5*] b1[]
                       rack b: b2[]";

#[test]
fn without_restrictions_every_broker_gets_its_share() {
    check_request(
        CROWDED,
        &counting_replicas(),
        expect![[r#"
        t0: b0 -> b1: leader b0 -> b1
        t1: b0 -> b2: leader b0 -> b2
        t2: b0 -> b1: leader b0 -> b1
        ReplicaDistributionGoal fixed
    "#]],
    );
}

#[test]
fn replicas_move_only_to_the_destinations() {
    let request = Request { destinations: ids(&[2]), ..counting_replicas() };
    check_request(
        CROWDED,
        &request,
        expect![[r#"
        t0: b0 -> b2: leader b0 -> b2
        t1: b0 -> b2: leader b0 -> b2
        t2: b0 -> b2: leader b0 -> b2
        ReplicaDistributionGoal violated
    "#]],
    );
}

#[test]
fn destinations_override_exclusions_and_new_brokers() {
    let request = Request {
        destinations: ids(&[2]),
        excluded_for_replica_moves: ids(&[2]),
        operation: Operation::AddBrokers(ids(&[1])),
        ..counting_replicas()
    };
    check_request(
        CROWDED,
        &request,
        expect![[r#"
        t0: b0 -> b2: leader b0 -> b2
        t1: b0 -> b2: leader b0 -> b2
        ReplicaDistributionGoal violated
    "#]],
    );
}

#[test]
fn leadership_moves_anywhere_though_destinations_are_named() {
    let request = Request { destinations: ids(&[2]), ..Request::rebalance(&[Goal::LeaderReplicaDistribution]) };
    // Four leaders on three brokers: two at most on each.
    let crowded = "rack a: b0[t0* t1* t2* t3*] b1[t0 t1 t2 t3]\nrack b: b2[]";
    check_request(
        crowded,
        &request,
        expect![[r#"
        t0: b1 -> b2: leader b0 -> b2
        t1: leader b0 -> b1
        LeaderReplicaDistributionGoal fixed
    "#]],
    );
    // Except to brokers that are to lead nothing.
    let request = Request { excluded_for_leadership: ids(&[1]), ..request };
    check_request(
        crowded,
        &request,
        expect![[r#"
        t0: b0 -> b2: leader b0 -> b2
        t1: b0 -> b2: leader b0 -> b2
        LeaderReplicaDistributionGoal violated
    "#]],
    );
}

#[test]
fn brokers_excluded_for_replica_moves_get_nothing_and_do_not_count_in_the_mean() {
    let request = Request { excluded_for_replica_moves: ids(&[1]), ..counting_replicas() };
    check_request(
        CROWDED,
        &request,
        expect![[r#"
        t0: b0 -> b2: leader b0 -> b2
        t1: b0 -> b2: leader b0 -> b2
        ReplicaDistributionGoal fixed
    "#]],
    );
    // Not even what is offline.
    let dead = "rack a: b0[t0*] b1[]\nrack b: b2[t0 t1*] dead b3[]";
    check_request(
        dead,
        &request,
        expect![[r#"
        t0: b2 -> b3
        t1: b2 -> b0: leader b2 -> b0
        ReplicaDistributionGoal fixed
    "#]],
    );
}

#[test]
fn a_cluster_that_is_all_excluded_is_refused() {
    let request = Request { excluded_for_replica_moves: ids(&[0, 1, 2]), ..counting_replicas() };
    check_request(
        CROWDED,
        &request,
        expect![[r#"
        refused: All alive brokers are excluded from replica moves.
    "#]],
    );
}

#[test]
fn brokers_excluded_for_leadership_get_neither_leadership_nor_leaders() {
    let request = Request {
        excluded_for_leadership: ids(&[1]),
        ..Request::rebalance(&[Goal::ReplicaDistribution, Goal::LeaderReplicaDistribution])
    };
    check_request(
        "rack a: b0[t0* t1* t2* t3*] b1[]\nrack b: b2[t0]",
        &request,
        expect![[r#"
        t0: b0 -> b1: leader b0 -> b2
        t1: b0 -> b2: leader b0 -> b2
        ReplicaDistributionGoal fixed
        LeaderReplicaDistributionGoal violated
    "#]],
    );
}

#[test]
fn while_brokers_are_new_only_they_get_replicas() {
    let new = CROWDED.replace("b2[]", "b2[] new");
    check_request(
        &new,
        &counting_replicas(),
        expect![[r#"
        t0: b0 -> b2: leader b0 -> b2
        t1: b0 -> b2: leader b0 -> b2
        t2: b0 -> b2: leader b0 -> b2
        ReplicaDistributionGoal violated
    "#]],
    );
    // Asking for it is the same.
    let added = Request { operation: Operation::AddBrokers(ids(&[2])), ..counting_replicas() };
    check_request(
        CROWDED,
        &added,
        expect![[r#"
        t0: b0 -> b2: leader b0 -> b2
        t1: b0 -> b2: leader b0 -> b2
        t2: b0 -> b2: leader b0 -> b2
        ReplicaDistributionGoal violated
    "#]],
    );
}

#[test]
fn while_brokers_are_new_leadership_goes_only_to_them() {
    let request = Request::rebalance(&[Goal::LeaderReplicaDistribution]);
    let new = "rack a: b0[t0* t1* t2* t3*] b1[t0 t1]\nrack b: b2[t2 t3] new";
    check_request(
        new,
        &request,
        expect![[r#"
        t2: leader b0 -> b2
        t3: leader b0 -> b2
        LeaderReplicaDistributionGoal violated
    "#]],
    );
}

#[test]
fn old_brokers_do_not_swap_while_others_are_new() {
    // b0 is full of large ones, b1 of small ones; without the new broker they would change places.
    let old = "rack a: b0[t0* t1*] b1[u0* u1*]\nload t0: 1 10 10 100\nload t1: 1 10 10 100\nrack b: b2[]";
    let request = Request::rebalance(&[Goal::ReplicaDistribution, Goal::DiskUsageDistribution]);
    check_request(
        &old.replace("\nrack b: b2[]", ""),
        &request,
        expect![[r#"
        t0: b0 -> b1: leader b0 -> b1
        u0: b1 -> b0: leader b1 -> b0
        DiskUsageDistributionGoal fixed
    "#]],
    );
    check_request(
        &old.replace("b2[]", "b2[] new"),
        &request,
        expect![[r#"
        t0: b0 -> b2: leader b0 -> b2
        ReplicaDistributionGoal fixed
        DiskUsageDistributionGoal violated
    "#]],
    );
}

#[test]
fn two_replicas_of_a_partition_never_share_a_broker() {
    // 900 MB of 1000; b1 has room, but holds a replica of each already.
    let full = "rack a: b0[t0* t1*] b1[t0 t1]\nload *: 1 10 10 450\ncapacity b0: 100 1000 1000 1000";
    check_request(
        full,
        &Request::rebalance(&[Goal::DiskCapacity]),
        expect![[r#"
        infeasible: DiskCapacityGoal
    "#]],
    );
}

#[test]
fn the_broker_whose_disk_failed_under_a_replica_does_not_get_it_back() {
    let request = Request { operation: Operation::FixOfflineReplicas, ..counting_replicas() };
    check_request(
        "rack a: b0[t0*! t1*] bad b1[t2* t3*]",
        &request,
        expect![[r#"
        t0: b0 -> b1: leader b0 -> b1
    "#]],
    );
    // The one with room is the one that failed.
    check_request(
        "rack a: b0[t0*!] bad b1[t0] b2[t2* t3* t4* t5*]",
        &request,
        expect![[r#"
            t0: b0 -> b2: leader b0 -> b1
            ReplicaDistributionGoal violated
        "#]],
    );
}

#[test]
fn offline_replicas_move_even_of_excluded_topics() {
    let excluded = Request { excluded_topics: Some(TopicPattern::new("t").unwrap()), ..counting_replicas() };
    let dead = "rack a: b0[t0* u0*] dead b1[t1*]\nrack b: b2[]";
    check_request(
        dead,
        &excluded,
        expect![[r#"
        t0: b0 -> b2: leader b0 -> b2
        u0: b0 -> b1: leader b0 -> b1
        ReplicaDistributionGoal fixed
    "#]],
    );
}

#[test]
fn excluded_topics_stay_and_still_count() {
    let excluded = Request { excluded_topics: Some(TopicPattern::new("t").unwrap()), ..counting_replicas() };
    let mixed = "rack a: b0[t0* t1* u0* u1* u2* u3*] b1[]\nrack b: b2[]";
    check_request(
        mixed,
        &excluded,
        expect![[r#"
        u0: b0 -> b1: leader b0 -> b1
        u1: b0 -> b2: leader b0 -> b2
        u2: b0 -> b1: leader b0 -> b1
        ReplicaDistributionGoal fixed
    "#]],
    );
    let leaders = Request { goals: vec![Goal::LeaderReplicaDistribution], ..excluded };
    check_request(
        "rack a: b0[t0* t1* t2* t3*] b1[t0 t1 t2 t3]",
        &leaders,
        expect![[r#"
        LeaderReplicaDistributionGoal violated
    "#]],
    );
    // A pattern means whole names.
    let part = Request { excluded_topics: Some(TopicPattern::new("opi").unwrap()), ..counting_replicas() };
    check_request(
        "rack a: b0[topic0* topic1* topic2* topic3*] b1[]",
        &part,
        expect![[r#"
        topic0: b0 -> b1: leader b0 -> b1
        ReplicaDistributionGoal fixed
    "#]],
    );
}

#[test]
fn removed_brokers_are_emptied_and_their_leaders_replaced_by_followers() {
    let operation = Operation::RemoveBrokers(ids(&[0]));
    let request = Request { operation, ..Request::rebalance(&[Goal::RackAware]) };
    check_request(
        "rack a: b0[t0* t1] b3[]\nrack b: b1[t0 t1*]",
        &request,
        expect![[r#"
        t0: b0 -> b3: leader b0 -> b1
        t1: b0 -> b3
    "#]],
    );
}

#[test]
fn soft_goals_move_only_what_is_offline_while_a_cluster_is_healed() {
    // b1 is crowded, but only t0 has to move; it goes to the emptier broker.
    let dead = "rack a: b0[t0*] dead b1[t1* t2* t3* t4* t5*]\nrack b: b2[t6*] b3[]";
    check_request(
        dead,
        &counting_replicas(),
        expect![[r#"
        t0: b0 -> b3: leader b0 -> b3
        ReplicaDistributionGoal violated
    "#]],
    );
    // Hard goals move whatever they need.
    let hard = Request::rebalance(&[Goal::RackAware]);
    check_request(
        "rack a: b0[t0*] dead b1[t1*] b3[t1]\nrack b: b2[]",
        &hard,
        expect![[r#"
        t0: b0 -> b1: leader b0 -> b1
        t1: b1 -> b2: leader b1 -> b2
        RackAwareGoal fixed
    "#]],
    );
}

#[test]
fn an_offline_replica_goes_beyond_the_band_if_it_must() {
    // Mean 4, so 5 at most, but b1 has the other replica of t0, and nothing that serves may make room.
    let dead = "rack a: b0[t0*] dead b1[t0] b2[t2* t3* t4* t5* t6* t7*]";
    check_request(
        dead,
        &counting_replicas(),
        expect![[r#"
            t0: b0 -> b2: leader b0 -> b1
            ReplicaDistributionGoal violated
        "#]],
    );
}

#[test]
fn fixing_offline_replicas_needs_some() {
    let request = Request { operation: Operation::FixOfflineReplicas, ..Request::default() };
    check_request(
        CROWDED,
        &request,
        expect![[r#"
        refused: there is no offline replica to fix
    "#]],
    );
}

#[test]
fn a_follower_that_is_offline_does_not_lead_though_it_comes_first() {
    let request = Request::rebalance(&[Goal::PreferredLeaderElection]);
    let with = |mark: &str| format!("rack a: b0[t0*] b1[t0{mark}] b2[t0]\norder t0: b1 b2 b0");
    check_request(
        &with("!"),
        &request,
        expect![[r#"
        t0: leader b0 -> b2
        PreferredLeaderElectionGoal fixed
    "#]],
    );
    check_request(
        &with(""),
        &request,
        expect![[r#"
        t0: leader b0 -> b1
        PreferredLeaderElectionGoal fixed
    "#]],
    );
}

#[test]
fn demoted_brokers_lead_nothing_that_another_could() {
    let request = Request { operation: Operation::DemoteBrokers(ids(&[0])), ..Request::default() };
    check_request(
        "rack a: b0[t0* t1] b1[t0 t1*]",
        &request,
        expect![[r#"
        t0: leader b0 -> b1
        PreferredLeaderElectionGoal fixed
    "#]],
    );
    // Nobody else could lead u0.
    check_request(
        "rack a: b0[t0* u0*] b1[t0]",
        &request,
        expect![[r#"
        t0: leader b0 -> b1
        PreferredLeaderElectionGoal violated
    "#]],
    );
}

#[test]
fn unknown_and_dead_brokers_are_refused() {
    let of = |operation| Request { operation, ..Request::default() };
    check_request(
        CROWDED,
        &of(Operation::RemoveBrokers(ids(&[7]))),
        expect![[r#"
        refused: broker 7 is not part of the cluster
    "#]],
    );
    let dead = CROWDED.replace("b2[]", "b2[] dead");
    check_request(
        &dead,
        &of(Operation::AddBrokers(ids(&[2]))),
        expect![[r#"
        refused: broker 2 is dead
    "#]],
    );
    let nowhere = Request { destinations: ids(&[9]), ..Request::default() };
    check_request(
        CROWDED,
        &nowhere,
        expect![[r#"
        refused: broker 9 is not part of the cluster
    "#]],
    );
}

#[test]
fn only_immigrants_leaves_everything_that_serves() {
    let request = Request { only_immigrants: true, ..counting_replicas() };
    check_request(
        CROWDED,
        &request,
        expect![[r#"
        ReplicaDistributionGoal violated
    "#]],
    );
    check_request(
        &CROWDED.replace("t0*", "t0*!"),
        &request,
        expect![[r#"
        t0: b0 -> b1: leader b0 -> b1
        ReplicaDistributionGoal violated
    "#]],
    );
}

#[test]
fn only_immigrants_leaves_leaders_where_they_serve() {
    let request = Request { only_immigrants: true, ..Request::rebalance(&[Goal::LeaderReplicaDistribution]) };
    let found = "rack a: b0[t0* t1* t2* t3*] b1[t0 t1 t2 t3]";
    check_request(
        found,
        &request,
        expect![[r#"
        LeaderReplicaDistributionGoal violated
    "#]],
    );
    check_request(
        found,
        &Request::rebalance(&[Goal::LeaderReplicaDistribution]),
        expect![[r#"
        t0: leader b0 -> b1
        LeaderReplicaDistributionGoal fixed
    "#]],
    );
}

#[test]
fn an_offline_replica_does_not_go_where_a_copy_of_its_partition_is_on_its_way_to() {
    // b2 has room, and is to get t0 anyway: then t0 would have one replica less than it should. One copy does not make up
    // for two that are lost.
    check_request(
        "rack a: b0[t0! u0* u1*] b1[t0* u2* u3*] b2[] b3[u4* u5* u6* u7*] b4[t0! u8* u9*] b5[u10* u11* u12*]\nmoving t0 -> b2",
        &counting_replicas(),
        expect![[r#"
        t0: b0 b4 -> b5 b3
        ReplicaDistributionGoal violated
    "#]],
    );
}

/// A broker is being removed, and somebody asks again when half of it is done.
#[test]
fn what_is_on_its_way_already_is_not_copied_once_more() {
    let request = |removed: &[i32], goals: &[Goal]| Request {
        operation: Operation::RemoveBrokers(ids(removed)),
        ..Request::rebalance(goals)
    };
    let goals = [Goal::RackAware, Goal::ReplicaDistribution];
    // Nobody but b2 is left, who is being filled.
    let four = "rack a: b0[t0*]\nrack b: b1[t0]\nrack c: b2[]\nrack d: b3[t0]\nmoving t0 -> b2";
    check_request(
        four,
        &request(&[3], &goals),
        expect![[r#"
            nothing to do
        "#]],
    );
    // Others could take it, and the copy would be thrown away; whoever leads leads on until it is there.
    let six = "rack a: b0[t0]\nrack b: b1[t0]\nrack c: b2[]\nrack d: b3[t0*]\nrack e: b4[] b5[]\nmoving t0 -> b2";
    check_request(
        six,
        &request(&[3], &goals),
        expect![[r#"
            nothing to do
        "#]],
    );
    // Where the copy goes to a broker that is removed as well it is of no use.
    check_request(
        six,
        &request(&[2, 3], &goals),
        expect![[r#"
            t0: b3 -> b4: leader b3 -> b0
        "#]],
    );
    // 750 of 800 MB on each in the end, which is enough: what is on its way counts once.
    check_request(
        "rack a: b0[u0*] b1[v0*] b2[w0*] b3[t0*]
         moving t0 -> b2
         capacity b0: 100 1000 1000 1000
         capacity b1: 100 1000 1000 1000
         capacity b2: 100 1000 1000 1000
         load u0: 1 1 1 750
         load v0: 1 1 1 750
         load w0: 1 1 1 350
         load t0: 1 1 1 400",
        &request(&[3], &[Goal::DiskCapacity]),
        expect![[r#"
            nothing to do
        "#]],
    );
}

#[test]
fn new_brokers_exchange_replicas_with_each_other() {
    // Two to four replicas each, so b0 can give none away for nothing. u1 has fewer bytes than u0, and is enough.
    let request = Request::rebalance(&[Goal::ReplicaDistribution, Goal::DiskUsageDistribution]);
    check_request(
        "rack a: b0[t0* t1*] new b1[u0* u1* u2* u3*] new
         load t0: 1 10 10 38
         load t1: 1 10 10 42
         load u0: 1 10 10 8
         load *: 1 10 10 4",
        &request,
        expect![[r#"
        t0: b0 -> b1: leader b0 -> b1
        u1: b1 -> b0: leader b1 -> b0
        DiskUsageDistributionGoal fixed
    "#]],
    );
}

#[test]
fn a_broker_that_is_removed_is_no_destination_and_one_that_is_added_is_not_excluded() {
    let operation = Operation::RemoveBrokers(ids(&[1]));
    check_request(
        CROWDED,
        &Request { operation, destinations: ids(&[1, 2]), ..counting_replicas() },
        expect![[r#"
        refused: broker 1 is to be removed, and yet a destination
    "#]],
    );
    let operation = Operation::AddBrokers(ids(&[1, 2]));
    check_request(
        CROWDED,
        &Request { operation, excluded_for_replica_moves: ids(&[2]), ..counting_replicas() },
        expect![[r#"
        refused: broker 2 is to be added, and yet excluded from replica moves
    "#]],
    );
}

#[test]
fn what_is_being_moved_already_stays_and_its_load_counts_where_it_goes() {
    // With the two copies on their way b1 has its share.
    let moving = "rack a: b0[t0* t1* t2* t3*] b1[]\nmoving t0 -> b1\nmoving t1 -> b1";
    check_request(
        moving,
        &counting_replicas(),
        expect![[r#"
        nothing to do
    "#]],
    );
}

#[test]
fn a_dead_broker_that_holds_nothing_keeps_nobody_from_moving() {
    check_request(
        "rack a: b0[t0* t1* t2* t3*] b1[] b2[] dead",
        &counting_replicas(),
        expect![[r#"
        t0: b0 -> b1: leader b0 -> b1
        ReplicaDistributionGoal fixed
    "#]],
    );
    // Removing it is still no more than emptying it.
    let operation = Operation::RemoveBrokers(ids(&[2]));
    check_request(
        "rack a: b0[t0* t1* t2* t3*] b1[] b2[]",
        &Request { operation, ..counting_replicas() },
        expect![[r#"
        ReplicaDistributionGoal violated
    "#]],
    );
}

#[test]
fn a_live_follower_takes_over_from_an_offline_leader_though_a_move_is_under_way() {
    check_request(
        "rack a: b0[t0*!] b1[t0] b2[] b3[] b4[t0!] b5[]\nmoving t0 -> b2",
        &counting_replicas(),
        expect![[r#"
        t0: b0 b4 -> b3 b5: leader b0 -> b1
    "#]],
    );
}

#[test]
fn a_replica_that_is_being_copied_to_the_only_broker_that_is_left_waits_for_that() {
    let operation = Operation::RemoveBrokers(ids(&[0]));
    check_request(
        "rack a: b0[t0*] b1[]\nmoving t0 -> b1",
        &Request { operation: operation.clone(), ..Request::rebalance(&[Goal::PreferredLeaderElection]) },
        expect![[r#"
        nothing to do
    "#]],
    );
    check_request(
        "rack a: b0[t0*] b1[]\nmoving t0 -> b1",
        &Request { operation, ..counting_replicas() },
        expect![[r#"
        nothing to do
    "#]],
    );
}

#[test]
fn racks_that_a_move_under_way_is_about_to_mend_are_no_reason_to_refuse_a_plan() {
    // t0 crowds rack a until its copy arrives, u0 has nobody to mend it but the plan.
    let goals = [Goal::RackAware, Goal::ReplicaDistribution];
    check_request(
        "rack a: b0[t0* u0*] b1[t0 u0]\nrack b: b2[]\nmoving t0 -> b2",
        &Request::rebalance(&goals),
        expect![[r#"
            u0: b0 -> b2: leader b0 -> b2
            RackAwareGoal fixed
        "#]],
    );
    check_request(
        "rack a: b0[t0* u0*] b1[t0 u0]\nrack b: b2[]\nmoving t0 -> b2",
        &Request::rebalance(&[Goal::RackAwareDistribution]),
        expect![[r#"
            u0: b0 -> b2: leader b0 -> b2
            RackAwareDistributionGoal fixed
        "#]],
    );
}
