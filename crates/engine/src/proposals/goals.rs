//! The goals of a request: which they are, whether they may stand alone, what they need to be known.

use evenkeel_balancer::{
    cluster::{Resource, Resources},
    goal::Goal,
};
use evenkeel_rest::{
    Endpoint, Failure, Request,
    parameter::DataFrom,
    request::{Execution, GoalOptions},
};

use crate::{config::settings, monitor::windows::Requirement};

/// The two goals of the Kafka assigner tool, which are not built.
const ASSIGNER: [&str; 2] = ["KafkaAssignerEvenRackAwareGoal", "KafkaAssignerDiskUsageDistributionGoal"];

/// The goals that a request is about, whatever is measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Most important first.
    pub goals: Vec<Goal>,
    /// Whether the caller named them.
    pub named: bool,
    /// Whether the hard ones must be among them.
    needs_hard: bool,
    /// Which loads they are to be judged by, where the caller may choose.
    data_from: Option<DataFrom>,
}

/// The goals of a request for a plan.
pub fn wanted(request: &Request, settings: &settings::Goals) -> Result<Wanted, Failure> {
    let endpoint = request.endpoint();
    let by = |options, run, assigner| by_options(endpoint, options, run, assigner, settings);
    let alone = |goals| Wanted { goals, named: false, needs_hard: false, data_from: None };
    match request {
        Request::Proposals(it) if it.scope.rebalance_disk => Ok(inside(&it.goal_options, settings)),
        Request::Rebalance(it) if it.scope.rebalance_disk => Ok(inside(&it.goal_options, settings)),
        // `proposals` changes nothing, so it may leave out whatever it likes.
        Request::Proposals(it) => by(&it.goal_options, None, it.scope.kafka_assigner),
        Request::Rebalance(it) => by(&it.goal_options, Some(&it.execution), it.scope.kafka_assigner),
        Request::AddBroker(it) => by(&it.goal_options, Some(&it.execution), it.kafka_assigner),
        Request::RemoveBroker(it) => by(&it.goal_options, Some(&it.execution), it.kafka_assigner),
        Request::FixOfflineReplicas(it) => by(&it.goal_options, Some(&it.execution), false),
        Request::DemoteBroker(_) => Ok(alone(vec![Goal::PreferredLeaderElection])),
        Request::RemoveDisks(_) => Ok(alone(vec![Goal::IntraBrokerDiskCapacity])),
        _ => Err(Failure::illegal_argument(format_args!("{endpoint} makes no plan."))),
    }
}

/// The goals between the disks of each broker.
fn inside(options: &GoalOptions, settings: &settings::Goals) -> Wanted {
    let goals = settings.intra_broker.clone();
    Wanted { goals, named: false, needs_hard: false, data_from: Some(options.data_from) }
}

fn by_options(
    endpoint: Endpoint,
    options: &GoalOptions,
    run: Option<&Execution>,
    assigner: bool,
    settings: &settings::Goals,
) -> Result<Wanted, Failure> {
    let known = || settings.supported.iter().chain(&settings.intra_broker).copied();
    let find = |name: &str| Goal::from_name(name).ok().filter(|goal| known().any(|known| known == *goal));
    let mut unknown: Vec<&str> = if assigner { ASSIGNER.to_vec() } else { Vec::new() };
    unknown.extend(options.goals.iter().map(String::as_str).filter(|name| find(name).is_none()));
    if !unknown.is_empty() {
        let mut supported: Vec<&str> = known().map(Goal::name).collect();
        supported.sort_unstable();
        supported.dedup();
        return Err(Failure::unknown_goals(endpoint, &unknown, &supported));
    }
    let mut goals: Vec<Goal> = Vec::new();
    for goal in options.goals.iter().filter_map(|name| find(name)) {
        if !goals.contains(&goal) {
            goals.push(goal);
        }
    }
    let named = !goals.is_empty();
    let elects_only = goals == [Goal::PreferredLeaderElection];
    Ok(Wanted {
        needs_hard: named && !elects_only && run.is_some_and(|run| !run.skip_hard_goal_check),
        goals: if named { goals } else { settings.default.clone() },
        named,
        data_from: Some(options.data_from),
    })
}

impl Wanted {
    /// What of it can be judged, and what the caller named in vain. Hard goals that cannot be judged
    /// are not missed.
    pub(super) fn measurable(
        &self,
        unknown: Resources,
        settings: &settings::Goals,
    ) -> Result<(Vec<Goal>, Vec<Goal>), Failure> {
        if self.needs_hard {
            let missing = settings.hard.iter().filter(|goal| goal.is_measurable(unknown) && !self.goals.contains(goal));
            let missing: Vec<&str> = missing.map(|goal| goal.name()).collect();
            if !missing.is_empty() {
                return Err(Failure::missing_hard_goals(&missing, &names(&self.goals)));
            }
        }
        let (goals, dropped): (Vec<Goal>, Vec<Goal>) =
            self.goals.iter().copied().partition(|goal| goal.is_measurable(unknown));
        if goals.is_empty() {
            let lacking: Vec<&str> = unknown.iter().map(Resource::name).collect();
            return Err(Failure::illegal_argument(format_args!(
                "None of the goals [{}] can be pursued: nobody measures [{}].",
                names(&self.goals).join(", "),
                lacking.join(", ")
            )));
        }
        Ok((goals, if self.named { dropped } else { Vec::new() }))
    }

    /// What has to be known for `goals`, which are those of it that can be judged.
    pub(super) fn requirement(&self, goals: &[Goal], settings: &settings::Monitor) -> Requirement {
        let whole = requirement(goals, settings);
        let weakened = match self.data_from {
            Some(DataFrom::ValidWindows) => Requirement { windows: 1, ratio: 1.0 },
            Some(DataFrom::ValidPartitions) => Requirement { windows: settings.windows.kept, ratio: 0.0 },
            None => whole,
        };
        Requirement { windows: whole.windows.min(weakened.windows), ratio: whole.ratio.min(weakened.ratio) }
    }
}

/// What has to be known for all of these goals.
pub fn requirement(goals: &[Goal], settings: &settings::Monitor) -> Requirement {
    goals.iter().fold(Requirement::LEAST, |whole, goal| {
        let own = need(*goal, settings);
        Requirement { windows: whole.windows.max(own.windows), ratio: whole.ratio.max(own.ratio) }
    })
}

/// What one goal has to know.
fn need(goal: Goal, settings: &settings::Monitor) -> Requirement {
    let windows = settings.windows.kept;
    let some = |windows: usize| Requirement { windows: windows.max(1), ratio: settings.valid_ratio };
    match goal {
        Goal::DiskCapacity
        | Goal::NetworkInboundCapacity
        | Goal::NetworkOutboundCapacity
        | Goal::CpuCapacity
        | Goal::DiskUsageDistribution
        | Goal::IntraBrokerDiskCapacity => some(1),
        Goal::PotentialNwOut
        | Goal::NetworkInboundUsageDistribution
        | Goal::NetworkOutboundUsageDistribution
        | Goal::CpuUsageDistribution
        | Goal::LeaderBytesInDistribution => some(windows / 14),
        Goal::IntraBrokerDiskUsageDistribution => some(windows),
        // These only count: whatever is known will do.
        Goal::RackAware
        | Goal::RackAwareDistribution
        | Goal::MinTopicLeadersPerBroker
        | Goal::ReplicaCapacity
        | Goal::ReplicaDistribution
        | Goal::TopicReplicaDistribution
        | Goal::LeaderReplicaDistribution
        | Goal::PreferredLeaderElection => Requirement::LEAST,
    }
}

fn names(goals: &[Goal]) -> Vec<&'static str> {
    goals.iter().map(|goal| goal.name()).collect()
}
