//! Plans for generated clusters, measured by what Cruise Control made of the same ones. `cargo xtask bench balancer` does the
//! same for all of them, with times and memory.

use std::collections::BTreeMap;

use evenkeel_balancer::after::after;
use evenkeel_balancer::cluster::{Cluster, ReplicaSpec};
use evenkeel_balancer::goal::Goal;
use evenkeel_balancer::inspect::inspect;
use evenkeel_balancer::options::Request;
use evenkeel_balancer::plan::{Change, Plan};
use evenkeel_balancer::planner::{Outcome, Status, plan};
use evenkeel_balancer::settings::Settings;
use evenkeel_snapshot::generate::{generate, preset};

/// What Cruise Control made of a cluster, and what is asked of ours beyond that.
struct Original {
    preset: &'static str,
    /// MB moved, by the size of the replicas that moved ...
    own: f64,
    /// ... and by the size of the partitions' leaders, in whole MB.
    by_leader: f64,
    violated: &'static [Goal],
    /// The part of its MB, by the replicas' size, that ours may move at most.
    share: f64,
    /// What ours may leave violated.
    left: &'static [Goal],
}

const LEADERS: Goal = Goal::LeaderReplicaDistribution;
const LEADER_IN: Goal = Goal::LeaderBytesInDistribution;
const TOPICS: Goal = Goal::TopicReplicaDistribution;

const A: Original = Original {
    preset: "a",
    own: 336_521.0,
    by_leader: 310_479.0,
    violated: &[LEADERS, LEADER_IN],
    share: 0.6,
    left: &[],
};
const AR: Original = Original {
    preset: "ar",
    own: 140_514.0,
    by_leader: 118_032.0,
    violated: &[LEADERS, LEADER_IN],
    share: 0.78,
    left: &[],
};
const B: Original = Original {
    preset: "b",
    own: 570_858.0,
    by_leader: 537_597.0,
    violated: &[TOPICS, LEADERS, LEADER_IN],
    share: 0.52,
    left: &[],
};
/// Five of forty brokers are dead. What lay on them has to be copied, by anybody.
const F: Original = Original {
    preset: "f",
    own: 599_650.0,
    by_leader: 605_609.0,
    violated: &[TOPICS, LEADERS, LEADER_IN],
    share: 1.0,
    left: &[TOPICS],
};

fn planned(cluster: &Cluster) -> Outcome {
    let request = Request { threads: 2, ..Request::rebalance(&Goal::DEFAULT) };
    let outcome = plan(cluster, &request, &Settings::default()).unwrap();
    assert_eq!(inspect(cluster, &request, &outcome.plan), []);
    outcome
}

/// MB as Cruise Control counts them: for every replica that moves, the whole MB of the partition's leader to be.
fn by_leader(cluster: &Cluster, plan: &Plan) -> f64 {
    let named: BTreeMap<(&str, i32), &Change> =
        plan.changes.iter().map(|change| ((change.topic.as_str(), change.partition), change)).collect();
    let counted = cluster.partitions().filter_map(|partition| {
        let change = named.get(&(partition.topic(), partition.number()))?;
        // It brings along what it has where it is found.
        let came = change.moves.iter().find(|(_, to)| *to == change.new_leader);
        let found_on = came.map_or(change.new_leader, |(from, _)| *from);
        let leader: ReplicaSpec = partition.replicas().find(|replica| replica.broker == found_on)?;
        Some(change.moves.len() as f64 * f64::from(leader.load.disk).trunc())
    });
    counted.sum()
}

/// The cluster and the plan for it, which is in nothing worse than Cruise Control's.
fn compared(original: &Original) -> (Cluster, Outcome) {
    let cluster = generate(&preset(original.preset).unwrap(), |_| {}).unwrap();
    let outcome = planned(&cluster);
    let violated: Vec<Goal> =
        outcome.verdicts.iter().filter(|line| line.status == Status::Violated).map(|line| line.goal).collect();
    assert_eq!(violated, original.left);
    assert!(violated.iter().all(|goal| original.violated.contains(goal)));
    // Theirs is told in whole MB.
    let (own, leaders) = (outcome.plan.megabytes(), by_leader(&cluster, &outcome.plan));
    assert!(own <= original.share * original.own + 0.5, "{own} MB of {}", original.own);
    assert!(leaders <= original.by_leader, "{leaders} MB by leaders' size of {}", original.by_leader);
    // No plan that gets as far moves less than the bound.
    assert!(own >= outcome.least_megabytes - 0.5, "{own} MB, and {} are the least", outcome.least_megabytes);
    (cluster, outcome)
}

fn leaves_nothing_to_plan(original: &Original) {
    let (cluster, outcome) = compared(original);
    let again = planned(&after(&cluster, &outcome.plan).unwrap());
    assert_eq!(again.plan.changes, []);
}

#[test]
fn forty_brokers_are_balanced_with_two_fifths_less_data_than_by_cruise_control() {
    leaves_nothing_to_plan(&A);
}

#[test]
fn a_cluster_that_begins_rack_aware_is_balanced_with_a_quarter_less_data_than_by_cruise_control() {
    leaves_nothing_to_plan(&AR);
    let (_, outcome) = compared(&AR);
    let megabytes = outcome.plan.megabytes();
    assert!(megabytes < 1.12 * outcome.least_megabytes, "{megabytes} of {}", outcome.least_megabytes);
}

#[test]
fn a_hundred_and_forty_brokers_are_balanced_with_half_the_data() {
    leaves_nothing_to_plan(&B);
}

/// Of some topics a broker that lives holds too many from the start, and while replicas are offline soft goals move nothing
/// else: the plan says so, and the next one moves those few and no more.
#[test]
fn dead_brokers_are_emptied_with_no_byte_too_many_and_what_is_held_back_comes_next() {
    let (cluster, outcome) = compared(&F);
    assert!(outcome.heals);
    let healed = after(&cluster, &outcome.plan).unwrap();
    let again = planned(&healed);
    let goals = again.plan.changes.iter().flat_map(|change| &change.reasons).map(|reason| reason.goal());
    assert!(goals.into_iter().all(|goal| goal.is_some_and(|goal| [TOPICS, LEADERS, LEADER_IN].contains(&goal))));
    assert!(again.plan.megabytes() < 100.0, "{} MB", again.plan.megabytes());
    assert_eq!(planned(&after(&healed, &again.plan).unwrap()).plan.changes, []);
}
