//! Which goals a cluster violates, and which of those moves can mend.
//!
//! All goals are judged on one model of the cluster. If some are not met, all of them are planned for together, on that
//! same model: what was not met and is met after the plan is fixable. If one of them cannot be met at all there is no
//! such plan; then each is tried by itself, to tell those that moves can mend from those that they cannot. A soft goal
//! that is not met and that no move serves is not reported: whoever rebalanced for it would do so for ever and in vain.

use crate::aims::Aims;
use crate::cluster::{Cluster, Slot};
use crate::goal::Goal;
use crate::inspect::inspect;
use crate::options::Request;
use crate::planner::{Outcome, Refused, Status, plan_on};
use crate::provision::{Provision, ProvisionStatus, provision};
use crate::rules::{BadRequest, Rules};
use crate::score::balancedness;
use crate::settings::Settings;
use crate::state::State;

/// What is wrong with a cluster, going by some goals.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Violations {
    /// Goals that are not met and that a rebalance mends, or at least serves.
    pub fixable: Vec<Goal>,
    /// Hard goals that are not met and that no plan mends.
    pub unfixable: Vec<Goal>,
    /// Why not, in words and numbers.
    pub reasons: Vec<String>,
    /// Whether the cluster has the right size.
    pub provision: Provision,
}

impl Violations {
    /// Whether all is well.
    pub fn is_empty(&self) -> bool {
        self.fixable.is_empty() && self.unfixable.is_empty()
    }

    /// How balanced the cluster is by `goals`: 100 if none of them is violated, fixable or not.
    pub fn score(&self, goals: &[Goal], settings: &Settings) -> f64 {
        balancedness(goals, settings, |goal| self.fixable.contains(&goal) || self.unfixable.contains(&goal))
    }
}

/// Whether the goal can be judged: goals inside brokers need another model, and others what somebody measured.
pub fn judges(goal: Goal, cluster: &Cluster) -> bool {
    !goal.is_intra_broker() && goal.is_measurable(cluster.unknown())
}

/// Whether replicas are offline. That is an anomaly of its own that comes first: brokers then carry what they will not
/// carry for long, and no goal is judged.
pub fn has_offline_replicas(cluster: &Cluster) -> bool {
    (0..cluster.replica_count() as Slot).any(|slot| cluster.is_offline(slot))
}

/// The violated ones among the request's goals that can be judged; nothing while replicas are offline.
///
/// The request says who and what is left alone. Bands are the detector's: wider than those of people's requests by
/// [`Settings::distribution_threshold_multiplier`].
pub fn detect(cluster: &Cluster, request: &Request, settings: &Settings) -> Violations {
    let goals: Vec<Goal> = request.goals.iter().copied().filter(|goal| judges(*goal, cluster)).collect();
    if goals.is_empty() || cluster.partition_count() == 0 || has_offline_replicas(cluster) {
        return Violations::default();
    }
    let request = Request { goals, triggered_by_violation: true, ..request.clone() };
    let rules = match Rules::compile(cluster, &request) {
        Ok(rules) => rules,
        // There is nobody who could take anything: nothing can be said about the goals.
        Err(refused) => return Violations { reasons: told(&refused).into_iter().collect(), ..Violations::default() },
    };
    let state = State::for_goals(cluster, &request.goals, settings);
    let aims = Aims::compile(&state, &request.goals, settings, &rules);
    let mut found = Violations::default();
    if (0..request.goals.len()).all(|goal| aims.miss(goal, &state, &rules) == 0.0) {
        found.provision = provision(&state, &aims, &rules, settings);
        return found;
    }
    if !found.tries(&state, &request, settings) {
        let together = std::mem::take(&mut found).provision;
        for goal in &request.goals {
            found.tries(&state, &Request { goals: vec![*goal], ..request.clone() }, settings);
        }
        // Each can be met, but not all of them: what is too small was said when they were tried together.
        if found.unfixable.is_empty() {
            found.provision = together;
        }
    }
    found
}

impl Violations {
    /// Plans for the request's goals; false if one of them cannot be met.
    fn tries(&mut self, state: &State<'_>, request: &Request, settings: &Settings) -> bool {
        match plan_on(state.clone(), request, settings) {
            Ok(outcome) => {
                // What nobody may carry out mends nothing.
                if let Some(finding) = inspect(state.cluster, request, &outcome.plan).first() {
                    self.reasons.push(format!("the plan is wrong: {finding}"));
                    return true;
                }
                let mendable = outcome.verdicts.iter().filter(|verdict| match verdict.status {
                    Status::NoAction => false,
                    Status::Fixed => true,
                    Status::Violated => is_served(verdict.goal, &outcome),
                });
                self.fixable.extend(mendable.map(|verdict| verdict.goal));
                // That something is too small was said by a goal that cannot be met: it outweighs the rest.
                if self.unfixable.is_empty() {
                    self.provision = outcome.provision;
                }
                true
            }
            Err(Refused::Infeasible(infeasible)) => {
                let advice = &infeasible.provision;
                let is_under = |it: &&Provision| it.status == ProvisionStatus::UnderProvisioned;
                let told: Vec<&Provision> = [&self.provision, advice].into_iter().filter(is_under).collect();
                let texts = told.iter().map(|it| it.recommendation.as_str()).filter(|text| !text.is_empty());
                let recommendation = texts.collect::<Vec<_>>().join(" ");
                let status = told.first().map_or_else(ProvisionStatus::default, |it| it.status);
                self.provision = Provision { status, recommendation };
                self.unfixable.push(infeasible.goal);
                self.reasons.push(infeasible.to_string());
                false
            }
            Err(Refused::BadRequest(refused)) => {
                self.reasons.extend(told(&refused));
                true
            }
        }
    }
}

/// A pattern that cannot be used stays so until somebody mends it, who has to know.
fn told(refused: &BadRequest) -> Option<String> {
    matches!(refused, BadRequest::Pattern(_)).then(|| refused.to_string())
}

fn is_served(goal: Goal, outcome: &Outcome) -> bool {
    let mut reasons = outcome.plan.changes.iter().flat_map(|change| &change.reasons);
    reasons.any(|reason| reason.goal() == Some(goal))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{BrokerId, BrokerState, Resource};
    use crate::fixture::Small;
    use crate::options::TopicPattern;

    fn found(small: Small, goals: &[Goal]) -> Violations {
        detect(&small.cluster(), &Request::rebalance(goals), &Settings::default())
    }

    #[test]
    fn what_is_well_is_not_mentioned() {
        let mut small = Small::in_racks("ab");
        small.partition("t", 0, &[0, 1], 100.0);
        let found = found(small, &[Goal::RackAware, Goal::DiskCapacity, Goal::DiskUsageDistribution]);
        assert!(found.is_empty() && found.reasons.is_empty());
        assert_eq!(found.provision.status, ProvisionStatus::RightSized);
    }

    #[test]
    fn what_moves_mend_is_fixable() {
        let mut small = Small::in_racks("aab");
        small.partition("t", 0, &[0, 1], 100.0);
        small.partition("t", 1, &[0], 400.0);
        small.partition("t", 2, &[0], 400.0);
        let found = found(small, &[Goal::RackAware, Goal::DiskCapacity]);
        assert_eq!((found.fixable, found.unfixable), (vec![Goal::RackAware, Goal::DiskCapacity], vec![]));
    }

    #[test]
    fn a_hard_goal_that_no_plan_satisfies_is_told_from_those_that_one_does() {
        let mut small = Small::in_racks("aab");
        small.partition("t", 0, &[0, 1, 2], 100.0);
        small.partition("u", 0, &[0], 450.0);
        small.partition("u", 1, &[0], 450.0);
        let (goals, settings) = ([Goal::RackAware, Goal::DiskCapacity], Settings::default());
        let found = found(small, &goals);
        assert_eq!((&found.fixable[..], &found.unfixable[..]), (&goals[1..], &goals[..1]));
        let racks = "[RackAwareGoal] Insufficient number of racks to distribute each replica (Current: 2, Needed: 3). \
                     Add at least 1 rack with brokers.";
        assert_eq!(found.reasons, [racks]);
        assert_eq!(found.provision.recommendation, "[RackAwareGoal] Add at least 1 rack with brokers.");
        assert_eq!(found.score(&goals, &settings), 0.0);
        // Weights: 1.1 · 1.5 = 1.65 for the first and 1 for a soft one, together 2.65.
        let half = found.score(&[Goal::RackAware, Goal::ReplicaDistribution], &settings);
        assert!((half - 100.0 / 2.65).abs() < 1e-9, "{half}");
    }

    #[test]
    fn a_pattern_that_takes_too_long_is_told() {
        let topic = "a".repeat(249);
        let slow = || TopicPattern::new("(?!b)((a*)*)*\\2c").ok();
        let cluster = || {
            let mut small = Small::in_racks("aab");
            small.partition(&topic, 0, &[0, 1], 100.0);
            small.cluster()
        };
        let wanted = [BadRequest::Pattern(topic.clone()).to_string()];
        let request = Request { excluded_topics: slow(), ..Request::rebalance(&[Goal::RackAware]) };
        assert_eq!(detect(&cluster(), &request, &Settings::default()).reasons, wanted);
        let settings = Settings { topics_with_min_leaders_per_broker: slow(), ..Settings::default() };
        assert_eq!(detect(&cluster(), &Request::rebalance(&[Goal::RackAware]), &settings).reasons, wanted);
    }

    /// One partition on three brokers: disks cannot be even, wherever it lies.
    #[test]
    fn a_soft_goal_that_no_move_serves_is_not_reported() {
        let mut alone = Small::in_racks("abc");
        alone.partition("t", 0, &[0], 100.0);
        assert!(found(alone, &[Goal::DiskUsageDistribution]).is_empty());
        let mut uneven = Small::in_racks("abc");
        (0..3).for_each(|number| uneven.partition("t", number, &[0], 100.0));
        assert_eq!(found(uneven, &[Goal::DiskUsageDistribution]).fixable, [Goal::DiskUsageDistribution]);
    }

    /// Broker 0 is too full; broker 1 could take from it, if it may.
    #[test]
    fn who_is_left_alone_is_no_help() {
        let mut small = Small::in_racks("aa");
        (0..2).for_each(|number| small.partition("t", number, &[0], 450.0));
        let (cluster, settings) = (small.cluster(), Settings::default());
        let request = Request::rebalance(&[Goal::DiskCapacity]);
        assert_eq!(detect(&cluster, &request, &settings).fixable, [Goal::DiskCapacity]);
        let excluded = Request { excluded_for_replica_moves: [BrokerId(1)].into(), ..request };
        assert_eq!(detect(&cluster, &excluded, &settings).unfixable, [Goal::DiskCapacity]);
    }

    #[test]
    fn offline_replicas_come_first() {
        let mut small = Small::in_racks("aa");
        small.broker(2, 'b', "host2", BrokerState::Dead, [0.0; Resource::COUNT]);
        small.partition("t", 0, &[0, 1], 100.0);
        small.partition("t", 1, &[2], 100.0);
        let cluster = small.cluster();
        assert!(has_offline_replicas(&cluster));
        let request = Request::rebalance(&[Goal::RackAware]);
        assert_eq!(detect(&cluster, &request, &Settings::default()), Violations::default());
    }
}
