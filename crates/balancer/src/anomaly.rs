//! Which goals a cluster violates, and which of those could be mended.
//!
//! All goals are judged on one model. Only for hard goals that are violated a plan is tried, each by
//! itself, because one that cannot be satisfied is a different message: no rebalance will help. A soft
//! goal can always be tried for, so it counts as fixable.

use crate::aims::{Aim, Aims};
use crate::cluster::{Cluster, Seat, Slot};
use crate::feasible::Feasibility;
use crate::goal::Goal;
use crate::improve::Search;
use crate::options::Request;
use crate::planner::Infeasible;
use crate::rules::Rules;
use crate::score::balancedness;
use crate::settings::Settings;
use crate::state::State;

/// A goal that is not satisfied.
#[derive(Debug, Clone, PartialEq)]
pub struct Violation {
    /// Which.
    pub goal: Goal,
    /// Whether a rebalance can mend it.
    pub fixable: bool,
    /// What is wrong; if it is not fixable, why not and what would help.
    pub why: String,
}

/// The violated ones among `goals`, in their order. Goals that need what nobody measured, and goals
/// inside brokers, are passed over.
///
/// Offline replicas are an anomaly of their own that comes first: with any, brokers carry what they
/// will not carry for long, and nothing is judged. Bands are the detector's: wider than those of people's requests by
/// [`Settings::distribution_threshold_multiplier`].
pub fn detect(cluster: &Cluster, goals: &[Goal], settings: &Settings) -> Vec<Violation> {
    let judged = |goal: &Goal| !goal.is_intra_broker() && goal.is_measurable(cluster.unknown());
    let goals: Vec<Goal> = goals.iter().copied().filter(judged).collect();
    let request = Request { triggered_by_violation: true, ..Request::rebalance(&goals) };
    // A rebalance that names no broker is never refused: every cluster has one that is alive.
    let Ok(rules) = Rules::compile(cluster, &request) else { return Vec::new() };
    if rules.offline().next().is_some() {
        return Vec::new();
    }
    let state = State::found(cluster);
    let aims = Aims::compile(&state, &goals, settings, &rules);
    let judge = |(index, goal): (usize, &Goal)| {
        let miss = aims.miss(index, &state, &rules);
        let refused = || if goal.is_hard() { mend(&state, *goal, settings, &rules, &request).err() } else { None };
        (miss > 0.0).then(|| match refused() {
            Some(infeasible) => Violation { goal: *goal, fixable: false, why: infeasible.to_string() },
            None => Violation { goal: *goal, fixable: true, why: why(&aims, index, miss, &state, &rules) },
        })
    };
    goals.iter().enumerate().filter_map(judge).collect()
}

/// How balanced the cluster is by the detector's `goals`: 100 if `violations` has none of them, and -1 if replicas are
/// offline, because then nothing was judged.
pub fn score(cluster: &Cluster, goals: &[Goal], violations: &[Violation], settings: &Settings) -> f64 {
    if (0..cluster.replica_count() as Slot).any(|slot| cluster.is_offline(slot)) {
        return -1.0;
    }
    balancedness(goals, settings, |goal| violations.iter().any(|violation| violation.goal == goal))
}

/// Tries to satisfy the one goal, with no other in the way.
fn mend(
    state: &State<'_>,
    goal: Goal,
    settings: &Settings,
    rules: &Rules,
    request: &Request,
) -> Result<(), Infeasible> {
    let aims = Aims::compile(state, &[goal], settings, rules);
    Feasibility { aims: &aims, rules, settings, request }.before(state)?;
    let mut search = Search::new(state.clone(), rules, aims, request.threads.max(1));
    search.run(true);
    Feasibility { aims: &search.aims, rules, settings, request }.after(&search.state)
}

/// What is wrong, with the worst broker where it is about brokers.
fn why(aims: &Aims, index: usize, miss: f64, state: &State<'_>, rules: &Rules) -> String {
    let count = miss as u64;
    match aims.aims[index] {
        Aim::Band { gauge, band, .. } => {
            let standing = |seat: Seat| aims.standing(band, gauge, state, seat);
            let miss = |seat: Seat| {
                let (level, limit) = standing(seat);
                limit.miss(level)
            };
            let alive = (0..state.cluster.brokers().len() as Seat).filter(|seat| rules.is_alive(*seat));
            let outside: Vec<Seat> = alive.filter(|seat| miss(*seat) > 0.0).collect();
            // Of equally bad ones the first.
            let worst = outside.iter().copied().rev().max_by(|a, b| miss(*a).total_cmp(&miss(*b))).unwrap_or(0);
            let (has, limit) = standing(worst);
            let who = match aims.host_judged(band, state.cluster, worst) {
                Some(host) => format!("host {host}"),
                None => format!("broker {}", state.cluster.brokers()[usize::from(worst)].id),
            };
            let bound = if has > limit.high {
                format!("at most {:.2}", limit.high)
            } else {
                format!("at least {:.2}", limit.low)
            };
            let (number, s) = (outside.len(), if outside.len() == 1 { "" } else { "s" });
            format!("{number} broker{s} out of bounds, the worst is {who}: {has:.2}, {bound} allowed")
        }
        Aim::Racks => format!("replicas that share a rack with another of their partition: {count}"),
        Aim::EvenRacks => format!("replicas that are one too many of their partition in a rack: {count}"),
        Aim::TopicReplicas => format!("replicas that brokers hold too many or too few of, over all topics: {count}"),
        Aim::TopicLeaders => format!("leaders that brokers lack, over all topics that need a minimum: {count}"),
        Aim::PreferredLeaders => format!("partitions not led by their preferred leader: {count}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{BrokerState, Resource};
    use crate::fixture::Small;

    fn found(small: Small, goals: &[Goal]) -> Vec<(Goal, bool, String)> {
        let violations = detect(&small.cluster(), goals, &Settings::default());
        violations.into_iter().map(|violation| (violation.goal, violation.fixable, violation.why)).collect()
    }

    #[test]
    fn what_is_well_is_not_mentioned() {
        let mut small = Small::in_racks("ab");
        small.partition("t", 0, &[0, 1], 100.0);
        assert_eq!(found(small, &[Goal::RackAware, Goal::DiskCapacity, Goal::DiskUsageDistribution]), vec![]);
    }

    #[test]
    fn all_goals_are_judged_on_the_cluster_as_it_is() {
        let mut small = Small::in_racks("aab");
        small.partition("t", 0, &[0, 1], 100.0);
        small.partition("t", 1, &[0], 800.0);
        let found = found(small, &[Goal::RackAware, Goal::DiskCapacity, Goal::DiskUsageDistribution]);
        // 900, 100 and 0 MB of 1,000 each. Capacity allows 800. The mean is 1,000 / 3 = 333.33; the band
        // around it is 9 % wide on each side, 303.33 to 363.33; broker 0 is 536.67 over, broker 2 303.33
        // under.
        let racks = "replicas that share a rack with another of their partition: 1";
        let disk = "1 broker out of bounds, the worst is broker 0: 900.00, at most 800.00 allowed";
        let usage = "3 brokers out of bounds, the worst is broker 0: 900.00, at most 363.33 allowed";
        assert_eq!(
            found,
            vec![
                (Goal::RackAware, true, racks.to_owned()),
                (Goal::DiskCapacity, true, disk.to_owned()),
                (Goal::DiskUsageDistribution, true, usage.to_owned()),
            ]
        );
    }

    #[test]
    fn a_hard_goal_that_no_plan_satisfies_is_not_fixable() {
        let mut small = Small::in_racks("aab");
        small.partition("t", 0, &[0, 1, 2], 100.0);
        small.partition("u", 0, &[0], 850.0);
        let found = found(small, &[Goal::RackAware, Goal::DiskCapacity]);
        // Three replicas in two racks. One replica of 850 MB fits no broker below 800.
        let racks = "[RackAwareGoal] Insufficient number of racks to distribute each replica (Current: 2, Needed: 3). \
                     Add at least 1 rack with brokers.";
        assert_eq!(found[0], (Goal::RackAware, false, racks.to_owned()));
        assert_eq!((found[1].0, found[1].1), (Goal::DiskCapacity, false));
        let disk = " of broker 0 violated capacity limit (800.00) for resource disk. Add at least 1 broker for disk.";
        assert!(found[1].2.starts_with("[DiskCapacityGoal] Utilization (") && found[1].2.ends_with(disk), "{found:?}");
    }

    #[test]
    fn offline_replicas_come_first() {
        let mut small = Small::in_racks("aa");
        small.broker(2, 'b', "host2", BrokerState::Dead, [0.0; Resource::COUNT]);
        small.partition("t", 0, &[0, 1], 100.0);
        small.partition("t", 1, &[2], 100.0);
        let cluster = small.cluster();
        assert_eq!(detect(&cluster, &[Goal::RackAware], &Settings::default()), vec![]);
        assert_eq!(score(&cluster, &[Goal::RackAware], &[], &Settings::default()), -1.0);
    }

    #[test]
    fn the_score_counts_what_is_violated_fixable_or_not() {
        let mut small = Small::in_racks("aab");
        small.partition("t", 0, &[0, 1, 2], 100.0);
        let (cluster, settings) = (small.cluster(), Settings::default());
        let goals = [Goal::RackAware, Goal::ReplicaDistribution];
        let violations = detect(&cluster, &goals, &settings);
        // Three replicas in two racks. Weights: 1.1 · 1.5 = 1.65 and 1, together 2.65.
        assert_eq!(violations.iter().map(|found| (found.goal, found.fixable)).collect::<Vec<_>>(), [(goals[0], false)]);
        assert!((score(&cluster, &goals, &violations, &settings) - 100.0 / 2.65).abs() < 1e-9);
    }
}
