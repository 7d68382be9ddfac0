//! Clusters whose verdicts are known because they follow from the goals' definitions. The first ones
//! are those every balancer of Kafka is tried on.

use evenkeel_balancer::cluster::CpuWeights;
use evenkeel_balancer::goal::Goal;
use evenkeel_balancer::options::{Request, TopicPattern};
use evenkeel_balancer::planner::{Outcome, Status};
use evenkeel_balancer::settings::Settings;
use expect_test::{Expect, expect};

use crate::check::{inspected, told};
use crate::picture::Picture;

/// Plans by the goals, with capacities of 100, 300000, 200000 and 300000 and the usual split of CPU.
fn check(picture: &str, goals: &[Goal], expected: Expect) {
    check_with(picture, goals, &Settings::default(), expected);
}

/// The same with other thresholds.
fn check_with(picture: &str, goals: &[Goal], settings: &Settings, expected: Expect) {
    expected.assert_eq(&verdict(picture, goals, settings));
}

fn verdict(picture: &str, goals: &[Goal], settings: &Settings) -> String {
    let picture = Picture { weights: CpuWeights::default(), ..Picture::parse(picture) };
    told(&picture, &Request::rebalance(goals), settings)
}

const CAPACITIES: [Goal; 4] =
    [Goal::DiskCapacity, Goal::NetworkInboundCapacity, Goal::NetworkOutboundCapacity, Goal::CpuCapacity];

const SMALL: &str = "rack 0: b0[T1-0* T1-1 T2-1* T2-2*] b1[T1-1* T2-0* T2-2]
                     rack 1: b2[T1-0 T2-0 T2-1]
                     load T1-0@b0: 20 100 130 75
                     load T1-0@b2: 5 100 0 75
                     load T1-1@b1: 15 90 110 55
                     load T1-1@b0: 4.5 90 0 55
                     load T2-0@b1: 5 5 6 5
                     load T2-0@b2: 4 5 0 5
                     load T2-1@b0: 25 25 45 55
                     load T2-1@b2: 10.5 25 0 55
                     load T2-2@b0: 20 45 120 95
                     load T2-2@b1: 8 45 0 95";

const MEDIUM: &str = "rack 0: b0[A0 A1* A2*] b1[B0* C0 D0* A0*]
                      rack 1: b2[B0 C0* D0 A1 A2]
                      load A0@b0: 5 5 0 4
                      load A1@b0: 5 3 10 8
                      load A2@b0: 5 2 10 6
                      load B0@b1: 5 4 10 7
                      load C0@b1: 5 6 0 4
                      load D0@b1: 5 5 10 6
                      load A0@b1: 5 4 10 10
                      load B0@b2: 2 2 0 5
                      load C0@b2: 1 8 10 4
                      load D0@b2: 2 8 0 7
                      load A1@b2: 3 4 0 6
                      load A2@b2: 4 5 0 3";

/// Half of everything on one broker, twice.
const UNBALANCED: &str = "rack 0: b0[T1-0* T2-0*] b1[]
                          rack 1: b2[]
                          load *: 50 150000 100000 150000";

const UNBALANCED2: &str = "rack 0: b0[T1-0* T2-0* T2-1* T1-2* T2-2*] b1[T1-1*]
                           rack 1: b2[]
                           load *: 50 150000 100000 150000";

/// The followers come first in the lists, and carry as much as the leaders, outbound traffic too.
const UNBALANCED3: &str = "rack 0: b0[T1-0* T2-0*] b1[T1-0 T2-0]
                           rack 1: b2[]
                           order T1-0: b1 b0
                           order T2-0: b1 b0
                           load *: 50 150000 100000 150000
                           load T1-0@b1: 50 150000 100000 150000
                           load T2-0@b1: 50 150000 100000 150000";

#[test]
fn the_small_cluster_by_each_hard_goal() {
    // T1-1 and T2-2 have both replicas in rack 0; the loads are far below every threshold, except
    // CPU: b0 has 20 + 4.5 + 25 + 20 = 69.5 of 70.
    check(
        SMALL,
        &[Goal::RackAware],
        expect![[r#"
        T1-1: b1 -> b2: leader b1 -> b2
        T2-2: b0 -> b2: leader b0 -> b2
        RackAwareGoal fixed
    "#]],
    );
    check(
        SMALL,
        &[Goal::CpuCapacity],
        expect![[r#"
        nothing to do
    "#]],
    );
    // Ten replicas do not fit on three brokers that hold three each.
    let at_most_three = Settings { max_replicas_per_broker: 3, ..Settings::default() };
    check_with(
        SMALL,
        &[Goal::ReplicaCapacity],
        &at_most_three,
        expect![[r#"
        infeasible: ReplicaCapacityGoal
    "#]],
    );
    check_with(
        SMALL,
        &Goal::DEFAULT,
        &at_most_three,
        expect![[r#"
        infeasible: ReplicaCapacityGoal
    "#]],
    );
}

#[test]
fn the_small_cluster_by_the_default_goals() {
    // b2 is alone in its rack, so it holds a replica of all five partitions: more than ceil(3.33 · 1.09) = 4, and more
    // than its share of whatever replicas bring along. Leaders can still be even.
    check(
        SMALL,
        &Goal::DEFAULT,
        expect![[r#"
        T1-1: b0 -> b2: leader b1 -> b2
        T2-1: leader b0 -> b2
        T2-2: b0 -> b2: leader b0 -> b1
        RackAwareGoal fixed
        ReplicaDistributionGoal violated
        DiskUsageDistributionGoal violated
        NetworkInboundUsageDistributionGoal violated
        NetworkOutboundUsageDistributionGoal violated
        CpuUsageDistributionGoal violated
        LeaderReplicaDistributionGoal fixed
        LeaderBytesInDistributionGoal violated
    "#]],
    );
}

#[test]
fn the_medium_cluster() {
    // A0 has both replicas in rack 0; 12 replicas on 3 brokers: between floor(4 · 0.91) = 3 and ceil(4 · 1.09) = 5.
    check(
        MEDIUM,
        &[Goal::RackAware],
        expect![[r#"
        A0: b0 -> b2
        RackAwareGoal fixed
    "#]],
    );
    check(
        MEDIUM,
        &[Goal::ReplicaDistribution],
        expect![[r#"
        nothing to do
    "#]],
    );
    // One of each partition must be on b2: six of twelve.
    check(
        MEDIUM,
        &Goal::DEFAULT,
        expect![[r#"
        A0: b1 -> b2: leader b1 -> b2
        RackAwareGoal fixed
        ReplicaDistributionGoal violated
        DiskUsageDistributionGoal violated
        NetworkInboundUsageDistributionGoal violated
        NetworkOutboundUsageDistributionGoal fixed
        CpuUsageDistributionGoal fixed
        LeaderBytesInDistributionGoal violated
    "#]],
    );
}

#[test]
fn the_unbalanced_cluster() {
    // Each replica is half of a broker; both on one is all of it, one on each of two is below every threshold.
    for goal in CAPACITIES {
        let mended = format!("T1-0: b0 -> b1: leader b0 -> b1\n{goal} fixed\n");
        assert_eq!(verdict(UNBALANCED, &[goal], &Settings::default()), mended);
    }
    // Three brokers cannot share two halves: whoever has none is below the band around a third.
    check(
        UNBALANCED,
        &[Goal::DiskUsageDistribution],
        expect![[r#"
        T1-0: b0 -> b1: leader b0 -> b1
        DiskUsageDistributionGoal violated
    "#]],
    );
    check(
        UNBALANCED,
        &Goal::DEFAULT,
        expect![[r#"
        T1-0: b0 -> b1: leader b0 -> b1
        DiskCapacityGoal fixed
        NetworkInboundCapacityGoal fixed
        NetworkOutboundCapacityGoal fixed
        CpuCapacityGoal fixed
        ReplicaDistributionGoal fixed
        PotentialNwOutGoal fixed
        DiskUsageDistributionGoal violated
        NetworkInboundUsageDistributionGoal violated
        NetworkOutboundUsageDistributionGoal violated
        CpuUsageDistributionGoal violated
        LeaderReplicaDistributionGoal fixed
        LeaderBytesInDistributionGoal violated
    "#]],
    );
}

#[test]
fn the_second_unbalanced_cluster() {
    // Six halves on three brokers fill them: nothing is left of the 20 % (30 % for CPU) that must stay free.
    check(
        UNBALANCED2,
        &[Goal::DiskCapacity],
        expect![[r#"
        infeasible: DiskCapacityGoal
    "#]],
    );
    check(
        UNBALANCED2,
        &[Goal::CpuCapacity],
        expect![[r#"
        infeasible: CpuCapacityGoal
    "#]],
    );
    // But they can be spread evenly.
    check(
        UNBALANCED2,
        &[Goal::DiskUsageDistribution],
        expect![[r#"
        T1-0: b0 -> b2: leader b0 -> b2
        T1-2: b0 -> b1: leader b0 -> b1
        T2-0: b0 -> b2: leader b0 -> b2
        DiskUsageDistributionGoal fixed
    "#]],
    );
    check(
        UNBALANCED2,
        &[Goal::ReplicaDistribution],
        expect![[r#"
        T1-0: b0 -> b2: leader b0 -> b2
        T1-2: b0 -> b1: leader b0 -> b1
        ReplicaDistributionGoal fixed
    "#]],
    );
}

#[test]
fn the_third_unbalanced_cluster() {
    // b0 and b1 carry all they can, each both replicas; four halves fill two of three brokers: two thirds of the whole
    // are less than the 80 % allowed (70 % of CPU).
    for goal in CAPACITIES {
        // But a broker has room for one half and not for two, and three brokers have four to share.
        assert_eq!(verdict(UNBALANCED3, &[goal], &Settings::default()), format!("infeasible: {goal}\n"));
    }
    // What a follower sends it sends wherever it goes; what a leader sends goes with leadership.
    check(
        UNBALANCED3,
        &[Goal::PreferredLeaderElection],
        expect![[r#"
        T1-0: leader b0 -> b1
        T2-0: leader b0 -> b1
        PreferredLeaderElectionGoal fixed
    "#]],
    );
    check(
        UNBALANCED3,
        &[Goal::RackAware],
        expect![[r#"
        T1-0: b1 -> b2
        T2-0: b1 -> b2
        RackAwareGoal fixed
    "#]],
    );
    check(
        UNBALANCED3,
        &[Goal::ReplicaDistribution],
        expect![[r#"
        T1-0: b1 -> b2
        ReplicaDistributionGoal fixed
    "#]],
    );
}

/// Eight partitions of 17, 18, … 24 % of a broker; the first four on b0, the others on b1.
#[test]
fn the_fourth_unbalanced_cluster() {
    let mut uneven = "rack 0: b0[T0* T1* T2* T3*]\nrack 1: b1[T4* T5* T6* T7*]\n".to_owned();
    for partition in 0..8 {
        let [cpu, nw_in, nw_out, disk] =
            crate::picture::CAPACITY.map(|capacity| capacity / 100.0 * (17.0 + f64::from(partition)));
        uneven += &format!("load T{partition}: {cpu} {nw_in} {nw_out} {disk}\n");
    }
    // 74 and 90 are 82 % of everything: more than may be used of anything.
    for goal in CAPACITIES {
        assert_eq!(verdict(&uneven, &[goal], &Settings::default()), format!("infeasible: {goal}\n"));
    }
    // The band is 82 · 0.91 = 74.62 to 89.38: one for a larger one is enough, and nothing less.
    let text = verdict(&uneven, &[Goal::DiskUsageDistribution], &Settings::default());
    assert!(text.lines().count() == 3 && text.ends_with("DiskUsageDistributionGoal fixed\n"), "{text}");
}

#[test]
fn the_rack_clusters() {
    let load = "load T1-0@b0: 40 100 130 75\n";
    let satisfiable = format!("rack 0: b0[T1-0*] b1[T1-0]\nrack 1: b2[]\n{load}load T1-0@b1: 5 100 0 75");
    check(
        &satisfiable,
        &[Goal::RackAware],
        expect![[r#"
        T1-0: b0 -> b2: leader b0 -> b2
        RackAwareGoal fixed
    "#]],
    );
    let satisfied = format!("rack 0: b0[T1-0*]\nrack 1: b1[] b2[T1-0]\n{load}load T1-0@b2: 5 100 0 75");
    check(
        &satisfied,
        &[Goal::RackAware],
        expect![[r#"
        nothing to do
    "#]],
    );
    let three = format!(
        "rack 0: b0[T1-0*]\nrack 1: b1[T1-0] b2[T1-0]\n{load}load T1-0@b1: 5 100 0 75\nload T1-0@b2: 5 100 0 75"
    );
    check(
        &three,
        &[Goal::RackAware],
        expect![[r#"
        infeasible: RackAwareGoal
    "#]],
    );
    // Two of three in one of two racks is as even as it gets.
    check(
        &three,
        &[Goal::RackAwareDistribution],
        expect![[r#"
        nothing to do
    "#]],
    );
}

/// One leader of the topic on each broker, if there are enough partitions.
#[test]
fn the_clusters_with_a_leader_on_each_broker() {
    let settings =
        Settings { topics_with_min_leaders_per_broker: Some(TopicPattern::new("t").unwrap()), ..Settings::default() };
    // Two partitions cannot have leaders on three brokers.
    let unsatisfiable = "rack 0: b0[t0* t1*]\nrack 1: b1[t0] b2[t1]";
    check_with(
        unsatisfiable,
        &[Goal::MinTopicLeadersPerBroker],
        &settings,
        expect![[r#"
        infeasible: MinTopicLeadersPerBrokerGoal
    "#]],
    );
    // Three can, by leadership alone ...
    let by_leadership = "rack 0: b0[t0* t1* t2*]\nrack 1: b1[t0] b2[t1]";
    check_with(
        by_leadership,
        &[Goal::MinTopicLeadersPerBroker],
        &settings,
        expect![[r#"
        t0: leader b0 -> b1
        t1: leader b0 -> b2
        MinTopicLeadersPerBrokerGoal fixed
    "#]],
    );
    // ... or, without followers, by moving leaders.
    let by_moves = "rack 0: b0[t0* t1* t2*]\nrack 1: b1[] b2[]";
    check_with(
        by_moves,
        &[Goal::MinTopicLeadersPerBroker],
        &settings,
        expect![[r#"
        t0: b0 -> b1: leader b0 -> b1
        t1: b0 -> b2: leader b0 -> b2
        MinTopicLeadersPerBrokerGoal fixed
    "#]],
    );
    // Two on each of three brokers, found as 4, 1 and 1.
    let two_each = Settings { min_topic_leaders_per_broker: 2, ..settings.clone() };
    let crowded = "rack 0: b0[t0* t1* t2* t3*]\nrack 1: b1[t0 t4*] b2[t1 t5*]";
    check_with(
        crowded,
        &[Goal::MinTopicLeadersPerBroker],
        &two_each,
        expect![[r#"
        t0: leader b0 -> b1
        t1: leader b0 -> b2
        MinTopicLeadersPerBrokerGoal fixed
    "#]],
    );
    // An even share of six leaders on three brokers is two as well.
    let even = Settings { min_topic_leaders_per_broker: 0, ..settings };
    check_with(
        crowded,
        &[Goal::MinTopicLeadersPerBroker],
        &even,
        expect![[r#"
        t0: leader b0 -> b1
        t1: leader b0 -> b2
        MinTopicLeadersPerBrokerGoal fixed
    "#]],
    );
}

#[test]
fn the_cluster_with_a_dead_broker() {
    let dead = "rack 0: b0[t0* t1] b1[t0 t1*] dead\nrack 1: b2[]";
    check(
        dead,
        &Goal::DEFAULT,
        expect![[r#"
        t0: b1 -> b2: leader b0 -> b2
        t1: b1 -> b2: leader b1 -> b0
        RackAwareGoal fixed
        ReplicaDistributionGoal fixed
        DiskUsageDistributionGoal fixed
        NetworkInboundUsageDistributionGoal fixed
        NetworkOutboundUsageDistributionGoal fixed
        CpuUsageDistributionGoal fixed
    "#]],
    );
}

const WITH_A_FOLLOWER: &str = "rack 0: b0[T1-0* T2-0*] b1[]
                               rack 1: b2[T1-0]
                               load *: 50 150000 100000 150000
                               load T1-0@b2: 12.5 150000 0 150000";

/// Half of everything is led by b1, which has no CPU left; two followers are offline.
const DEAD: &str = "rack 0: b0[T1-3 T2-3] dead
                    rack 1: b1[T1-0* T1-1* T1-2* T2-0* T2-1* T2-2*]
                    rack 2: b2[T1-0 T1-3* T2-0]
                    rack 3: b3[T1-1 T2-1 T2-3*]
                    rack 4: b4[T1-2 T2-2]
                    load T1-0: 20 100 200 100
                    load T1-0@b2: 15 100 0 100
                    load T1-1: 20 90 180 100
                    load T1-1@b3: 15 90 0 100
                    load T1-2: 15 75 150 100
                    load T1-2@b4: 12 75 0 100
                    load T1-3: 15 60 120 100
                    load T1-3@b0: 12.5 60 0 100
                    load T2-0: 18 100 200 100
                    load T2-0@b2: 14 100 0 100
                    load T2-1: 18 90 180 100
                    load T2-1@b3: 14 90 0 100
                    load T2-2: 12 75 150 100
                    load T2-2@b4: 10 75 0 100
                    load T2-3: 12 60 120 100
                    load T2-3@b0: 10.5 60 0 100";

const RACK_AWARE_SATISFIABLE: &str = "rack 0: b0[T1-0*] b1[T1-0]
                                      rack 1: b2[]
                                      load T1-0@b0: 40 100 130 75
                                      load T1-0@b1: 5 100 0 75";

/// What Cruise Control made of a cluster by its 16 default goals, in its default mode.
struct Original {
    name: &'static str,
    cluster: &'static str,
    /// The goals that it left violated. All others were satisfied in the end.
    violated: &'static [Goal],
    /// What it moved, by the moved replicas' own size and by that of the partitions' leaders alike.
    megabytes: f64,
}

const ORIGINALS: [Original; 6] = [
    Original {
        name: "small",
        cluster: SMALL,
        violated: &[
            Goal::ReplicaDistribution,
            Goal::DiskUsageDistribution,
            Goal::NetworkInboundUsageDistribution,
            Goal::NetworkOutboundUsageDistribution,
            Goal::CpuUsageDistribution,
            Goal::LeaderBytesInDistribution,
        ],
        megabytes: 150.0,
    },
    Original {
        name: "medium",
        cluster: MEDIUM,
        violated: &[
            Goal::ReplicaDistribution,
            Goal::DiskUsageDistribution,
            Goal::NetworkInboundUsageDistribution,
            Goal::CpuUsageDistribution,
            Goal::LeaderBytesInDistribution,
        ],
        megabytes: 8.0,
    },
    Original {
        name: "unbalanced",
        cluster: UNBALANCED,
        violated: &[
            Goal::DiskUsageDistribution,
            Goal::NetworkInboundUsageDistribution,
            Goal::NetworkOutboundUsageDistribution,
            Goal::CpuUsageDistribution,
            Goal::LeaderBytesInDistribution,
        ],
        megabytes: 150_000.0,
    },
    Original {
        name: "unbalancedWithAFollower",
        cluster: WITH_A_FOLLOWER,
        violated: &[
            Goal::NetworkOutboundUsageDistribution,
            Goal::CpuUsageDistribution,
            Goal::LeaderBytesInDistribution,
        ],
        megabytes: 150_000.0,
    },
    Original {
        name: "deadBroker",
        cluster: DEAD,
        violated: &[
            Goal::ReplicaDistribution,
            Goal::DiskUsageDistribution,
            Goal::NetworkInboundUsageDistribution,
            Goal::NetworkOutboundUsageDistribution,
            Goal::CpuUsageDistribution,
            Goal::LeaderBytesInDistribution,
        ],
        megabytes: 200.0,
    },
    Original {
        name: "rackAwareSatisfiable",
        cluster: RACK_AWARE_SATISFIABLE,
        violated: &[
            Goal::DiskUsageDistribution,
            Goal::NetworkInboundUsageDistribution,
            Goal::NetworkOutboundUsageDistribution,
            Goal::CpuUsageDistribution,
            Goal::LeaderBytesInDistribution,
        ],
        megabytes: 75.0,
    },
];

fn planned(cluster: &str, goals: &[Goal]) -> Outcome {
    let picture = Picture { weights: CpuWeights::default(), ..Picture::parse(cluster) };
    inspected(&picture, &Request::rebalance(goals), &Settings::default()).unwrap()
}

#[test]
fn no_goal_is_worse_off_than_with_cruise_control() {
    for Original { name, cluster, violated, .. } in ORIGINALS {
        for verdict in planned(cluster, &Goal::DEFAULT).verdicts {
            let stays = verdict.status == Status::Violated && !violated.contains(&verdict.goal);
            assert!(!stays, "{name}: {} stays violated", verdict.goal);
        }
    }
}

/// At the goals that it satisfied. By all goals `medium` takes 10 MB, which mends CPU too.
#[test]
fn no_more_data_moves_than_with_cruise_control() {
    let mut seen = String::new();
    for Original { name, cluster, violated, megabytes } in ORIGINALS {
        let satisfied: Vec<Goal> = Goal::DEFAULT.into_iter().filter(|goal| !violated.contains(goal)).collect();
        let least = planned(cluster, &satisfied);
        assert!(least.verdicts.iter().all(|verdict| verdict.status != Status::Violated), "{name}");
        let (ours, by_all) = (least.plan.megabytes(), planned(cluster, &Goal::DEFAULT).plan.megabytes());
        assert!(ours <= megabytes, "{name}: {ours} MB, Cruise Control {megabytes}");
        seen += &format!(
            "{name}: {ours} MB at the goals that Cruise Control satisfies with {megabytes}, {by_all} by all\n"
        );
    }
    expect![[r#"
        small: 150 MB at the goals that Cruise Control satisfies with 150, 150 by all
        medium: 4 MB at the goals that Cruise Control satisfies with 8, 10 by all
        unbalanced: 150000 MB at the goals that Cruise Control satisfies with 150000, 150000 by all
        unbalancedWithAFollower: 150000 MB at the goals that Cruise Control satisfies with 150000, 150000 by all
        deadBroker: 200 MB at the goals that Cruise Control satisfies with 200, 200 by all
        rackAwareSatisfiable: 75 MB at the goals that Cruise Control satisfies with 75, 75 by all
    "#]]
    .assert_eq(&seen);
}

/// Cruise Control refuses the other two with the same goal and the same numbers.
#[test]
fn what_cruise_control_refuses_is_refused_for_the_same_reason() {
    let reason = |cluster: &str| {
        let picture = Picture { weights: CpuWeights::default(), ..Picture::parse(cluster) };
        inspected(&picture, &Request::rebalance(&Goal::DEFAULT), &Settings::default()).unwrap_err().to_string()
    };
    expect!["[DiskCapacityGoal] Insufficient capacity for disk (Utilization 900000.00, Allowed Capacity 720000.00, Threshold: 0.80). Add at least 1 broker with the same disk capacity (300000.00) as broker-0."].assert_eq(&reason(UNBALANCED2));
    expect!["[DiskCapacityGoal] Utilization (300000.00) of broker 2 violated capacity limit (240000.00) for resource disk. Add at least 1 broker for disk. A broker in a rack other than [0] with a disk capacity of more than 187500.00 could take T1-0 (150000.00)."].assert_eq(&reason(UNBALANCED3));
}

#[test]
fn the_cluster_with_a_dead_broker_and_too_little_cpu_on_another() {
    check(
        DEAD,
        &Goal::DEFAULT,
        expect![[r#"
        T1-2: leader b1 -> b4
        T1-3: b0 -> b4
        T2-0: leader b1 -> b2
        T2-1: leader b1 -> b3
        T2-2: leader b1 -> b4
        T2-3: b0 -> b4
        CpuCapacityGoal fixed
        ReplicaDistributionGoal violated
        DiskUsageDistributionGoal violated
        NetworkInboundUsageDistributionGoal violated
        NetworkOutboundUsageDistributionGoal violated
        CpuUsageDistributionGoal violated
        LeaderReplicaDistributionGoal fixed
        LeaderBytesInDistributionGoal violated
    "#]],
    );
}

#[test]
fn the_unbalanced_cluster_with_a_follower() {
    check(
        WITH_A_FOLLOWER,
        &Goal::DEFAULT,
        expect![[r#"
        T1-0: b0 -> b1: leader b0 -> b1
        DiskCapacityGoal fixed
        NetworkInboundCapacityGoal fixed
        NetworkOutboundCapacityGoal fixed
        CpuCapacityGoal fixed
        PotentialNwOutGoal fixed
        DiskUsageDistributionGoal fixed
        NetworkInboundUsageDistributionGoal fixed
        NetworkOutboundUsageDistributionGoal violated
        CpuUsageDistributionGoal violated
        LeaderReplicaDistributionGoal fixed
        LeaderBytesInDistributionGoal violated
    "#]],
    );
}
