//! One number for how balanced a cluster is: 100 if no goal is violated, 0 if all are.
//!
//! A goal weighs more the higher its priority, and more again if it is hard.

use crate::goal::Goal;
use crate::plan::{Cause, Plan, Reason};
use crate::planner::{Status, Verdict};
use crate::settings::Settings;

/// The score of a cluster on which the `violated` ones among `goals`, most important first, are not
/// satisfied.
pub fn balancedness(goals: &[Goal], settings: &Settings, violated: impl Fn(Goal) -> bool) -> f64 {
    let (mut whole, mut lost, mut priority) = (0.0, 0.0, 1.0);
    for goal in goals.iter().rev() {
        let weight = if goal.is_hard() { priority * settings.strictness_weight } else { priority };
        whole += weight;
        if violated(*goal) {
            lost += weight;
        }
        priority *= settings.priority_weight;
    }
    // All of it lost is exactly nothing left, whatever the rounding.
    if whole > 0.0 { 100.0 * (whole - lost) / whole } else { 100.0 }
}

/// The score before and after a plan. Before, a goal counts as violated if it failed or had to
/// change anything; after, only if it failed.
pub(crate) fn score(verdicts: &[Verdict], plan: &Plan, settings: &Settings) -> (f64, f64) {
    let goals: Vec<Goal> = verdicts.iter().map(|verdict| verdict.goal).collect();
    let status = |goal: Goal| verdicts.iter().find(|verdict| verdict.goal == goal).map(|verdict| verdict.status);
    // Whatever must leave its broker has to be placed by the first goal, as in Cruise Control.
    let serves = |why: &Reason, goal: Goal| match why.cause {
        Cause::Goal { goal: served, .. } => served == goal,
        Cause::Offline | Cause::Removed | Cause::Demoted => goals.first() == Some(&goal),
    };
    let busy = |goal: Goal| plan.changes.iter().any(|change| change.reasons.iter().any(|why| serves(why, goal)));
    (
        balancedness(&goals, settings, |goal| status(goal) != Some(Status::NoAction) || busy(goal)),
        balancedness(&goals, settings, |goal| status(goal) == Some(Status::Violated)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Small, planned};
    use crate::options::Request;

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
}
