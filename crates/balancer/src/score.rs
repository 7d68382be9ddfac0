//! One number for how balanced a cluster is: 100 if no goal is violated, 0 if all are.
//!
//! A goal weighs more the higher its priority, and more again if it is hard.

use crate::goal::Goal;
use crate::planner::{Status, Verdict};
use crate::settings::Settings;

/// A goal that weighs so many times as much as the next is all that counts; more would add up to no number at all.
const MOST_WEIGHT: f64 = 1e6;

/// The score of a cluster on which the `violated` ones among `goals`, most important first, are not
/// satisfied.
pub fn balancedness(goals: &[Goal], settings: &Settings, violated: impl Fn(Goal) -> bool) -> f64 {
    let [by_priority, by_strictness] =
        [settings.priority_weight, settings.strictness_weight].map(|weight| weight.min(MOST_WEIGHT));
    let (mut whole, mut lost, mut priority) = (0.0, 0.0, 1.0);
    for goal in goals.iter().rev() {
        let weight = if goal.is_hard() { priority * by_strictness } else { priority };
        whole += weight;
        if violated(*goal) {
            lost += weight;
        }
        priority *= by_priority;
    }
    // All of it lost is exactly nothing left, whatever the rounding.
    if whole > 0.0 { 100.0 * (whole - lost) / whole } else { 100.0 }
}

/// The score of the cluster as it was found and after a plan. Neither depends on what else the plan could have done, so
/// that a plan begins where the one before it ended. Whatever must leave its broker has to be placed by the first goal,
/// as in Cruise Control: as long as something is `stranded`, that goal counts as violated before.
pub(crate) fn score(verdicts: &[Verdict], stranded: bool, settings: &Settings) -> (f64, f64) {
    let goals: Vec<Goal> = verdicts.iter().map(|verdict| verdict.goal).collect();
    let of = |goal: Goal| verdicts.iter().find(|verdict| verdict.goal == goal);
    let missed_before = |goal: Goal| of(goal).is_some_and(|verdict| verdict.miss.0 > 0.0);
    let is_left = |goal: Goal| of(goal).is_some_and(|verdict| verdict.status == Status::Violated);
    (
        balancedness(&goals, settings, |goal| missed_before(goal) || (stranded && goals.first() == Some(&goal))),
        balancedness(&goals, settings, is_left),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Small, planned};
    use crate::options::{Budget, Request};

    const THREE: [Goal; 3] = [Goal::RackAware, Goal::ReplicaDistribution, Goal::DiskUsageDistribution];

    #[test]
    fn goals_weigh_by_priority_and_hardness() {
        let score = |violated: &[Goal]| balancedness(&THREE, &Settings::default(), |goal| violated.contains(&goal));
        // Weights: 1.1² · 1.5 = 1.815, 1.1, 1; together 3.915.
        assert!((score(&[]) - 100.0).abs() < 1e-9);
        assert!((score(&[Goal::RackAware]) - 100.0 * 2.1 / 3.915).abs() < 1e-9);
        assert!((score(&[Goal::ReplicaDistribution]) - 100.0 * 2.815 / 3.915).abs() < 1e-9);
        assert!((score(&[Goal::DiskUsageDistribution]) - 100.0 * 2.915 / 3.915).abs() < 1e-9);
        assert_eq!(score(&THREE), 0.0);
        assert_eq!(balancedness(&[], &Settings::default(), |_| true), 100.0);
    }

    #[test]
    fn weights_beyond_all_measure_still_make_a_score() {
        for (priority_weight, strictness_weight) in [(f64::MAX, 1.5), (1.1, f64::MAX), (f64::MAX, f64::MAX)] {
            let settings = Settings { priority_weight, strictness_weight, ..Settings::default() };
            let score = |violated: Goal| balancedness(&Goal::ALL, &settings, |goal| goal == violated);
            let (first, last) = (score(Goal::RackAware), score(Goal::LeaderBytesInDistribution));
            assert!((0.0..100.0).contains(&first) && first < last && last <= 100.0, "{first} {last}");
        }
    }

    #[test]
    fn a_goal_that_a_plan_fixes_costs_before_and_not_after() {
        // Two racks, and t-0 with both replicas in rack a: broker 1's or 0's goes to 2.
        let mut small = Small::in_racks("aab");
        small.partition("t", 0, &[0, 1], 10.0);
        let request = Request::rebalance(&[Goal::RackAware, Goal::LeaderReplicaDistribution]);
        let outcome = planned(&small.cluster(), &request, &Settings::default()).unwrap();
        // One leader on three brokers: 1/3 each, allowed floor(0.3) = 0 to ceil(0.36) = 1, so it is
        // satisfied. Weights: 1.1 · 1.5 = 1.65 and 1, together 2.65.
        assert!((outcome.score.0 - 100.0 / 2.65).abs() < 1e-9, "{:?}", outcome.score);
        assert!((outcome.score.1 - 100.0).abs() < 1e-9);
    }
    /// Six replicas on one of two brokers: a plan of none, one and all of the moves begins with the same cluster, and the
    /// next one where it ended.
    #[test]
    fn what_a_plan_begins_with_depends_on_the_cluster_alone() {
        let mut small = Small::in_racks("ab");
        (0..6).for_each(|number| small.partition("t", number, &[0], 10.0));
        let cluster = small.cluster();
        let score = |cluster: &crate::cluster::Cluster, moves: usize| {
            let budget = Budget { moves: Some(moves), megabytes: None };
            let goals = vec![Goal::ReplicaDistribution, Goal::DiskUsageDistribution, Goal::LeaderReplicaDistribution];
            let request = Request { goals, budget, ..Request::default() };
            planned(cluster, &request, &Settings::default()).unwrap()
        };
        let begins: Vec<f64> = [0, 1, 2, 9].map(|moves| score(&cluster, moves).score.0).to_vec();
        assert!(begins.iter().all(|begin| *begin == begins[0]), "{begins:?}");
        for moves in [1, 9] {
            let first = score(&cluster, moves);
            let after = crate::after::after(&cluster, &first.plan).unwrap();
            assert_eq!(score(&after, 9).score.0, first.score.1);
        }
    }
}
