//! The request that mends what is wrong, as a caller would make it.

use evenkeel_balancer::goal::Goal;
use evenkeel_rest::{
    Request,
    request::{Execution, FixOfflineReplicas, GoalOptions, Optimization, Rebalance, RemoveBroker, Run},
};

use super::{Finding, goals::Spared, words::words};

/// What a repair keeps to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terms {
    /// Goals to heal by; none means the default ones.
    pub goals: Vec<Goal>,
    /// Brokers that are left alone.
    pub spared: Spared,
    /// Whether capacities may be estimates.
    pub may_estimate: bool,
}

/// Why the engine acts on its own.
pub fn reason(finding: &Finding, spared: Spared) -> String {
    format!("Self healing for {}: {}", finding.kind().name(), words(finding, spared))
}

/// The request.
pub fn request(finding: &Finding, terms: &Terms) -> Request {
    let goal_options = GoalOptions {
        optimization: Optimization {
            allow_capacity_estimation: terms.may_estimate,
            exclude_recently_demoted_brokers: terms.spared.demoted,
            ..Optimization::default()
        },
        goals: terms.goals.iter().map(|goal| goal.name().to_owned()).collect(),
        exclude_recently_removed_brokers: terms.spared.removed,
        ..GoalOptions::default()
    };
    let run = Run { reason: Some(reason(finding, terms.spared)), dryrun: false, ..Run::default() };
    let execution = Execution { run, ..Execution::default() };
    match finding {
        Finding::GoalViolation { .. } => Rebalance { goal_options, execution, ..Rebalance::default() }.into(),
        Finding::DiskFailure { .. } => FixOfflineReplicas { goal_options, execution }.into(),
        Finding::BrokerFailure { since, .. } => {
            let brokerid = since.keys().copied().collect();
            RemoveBroker { goal_options, execution, brokerid, ..RemoveBroker::default() }.into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(finding: &Finding, goals: &[Goal]) -> String {
        let spared = Spared { removed: true, demoted: true };
        let request = request(finding, &Terms { goals: goals.to_vec(), spared, may_estimate: true });
        assert_eq!(request.contradiction(), None);
        assert!(request.executes() && request.reason().is_some_and(|reason| reason.starts_with("Self healing for ")));
        let query = request.query().encoded();
        let shown = query.split('&').filter(|pair| !pair.starts_with("reason=")).collect::<Vec<_>>().join("&");
        format!("{} {shown}", request.endpoint().name())
    }

    #[test]
    fn each_kind_has_its_remedy() {
        let common = "exclude_recently_demoted_brokers=true";
        let violation = Finding::GoalViolation { fixable: vec![Goal::RackAware], unfixable: Vec::new() };
        assert_eq!(asked(&violation, &[]), format!("rebalance {common}&dryrun=false"));
        assert_eq!(
            asked(&violation, &[Goal::RackAware, Goal::DiskCapacity]),
            format!("rebalance {common}&goals=RackAwareGoal%2CDiskCapacityGoal&dryrun=false")
        );
        let failure = Finding::BrokerFailure { since: [(1, 0), (4, 0)].into(), fixable: true };
        assert_eq!(asked(&failure, &[]), format!("remove_broker {common}&dryrun=false&brokerid=1%2C4"));
        let disk = Finding::DiskFailure { since: [(1, [("/a".to_owned(), 0)].into())].into() };
        assert_eq!(asked(&disk, &[]), format!("fix_offline_replicas {common}&dryrun=false"));
    }
}
