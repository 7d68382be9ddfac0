//! Parameters that several endpoints share.

use super::Consistent;
use crate::parameter::{
    Concurrency, DataFrom, Entries, Flag, Megabytes, Millis, Names, Pattern, ReviewId, Sources, Text, Throttle,
    parameters,
};

/// The orders in which moves can be made, by name.
pub const STRATEGIES: [&str; 6] = [
    "BaseReplicaMovementStrategy",
    "PostponeUrpReplicaMovementStrategy",
    "PrioritizeLargeReplicaMovementStrategy",
    "PrioritizeMinIsrWithOfflineReplicasStrategy",
    "PrioritizeOneAboveMinIsrWithOfflineReplicasStrategy",
    "PrioritizeSmallReplicaMovementStrategy",
];

parameters! {
    /// How much is told of a plan.
    pub struct Detail {
        optional {
            /// Not in the original: of the proposals only so many, those that copy the most.
            max_proposals: Entries,
        }
        defaults {
            /// Whether the answer also has the proposals and the load before them.
            verbose: Flag = false,
        }
    }
}

parameters! {
    /// What everything takes that plans.
    pub struct Optimization {
        groups {
            /// How much is told of the plan.
            detail: Detail,
        }
        defaults {
            /// Whether brokers without a capacity of their own may have the default one.
            allow_capacity_estimation: Flag = true,
            /// Whether brokers that were demoted lately stay without leaders.
            exclude_recently_demoted_brokers: Flag = false,
        }
    }
}

parameters! {
    /// What everything takes that plans by goals.
    pub struct GoalOptions {
        groups {
            /// What everything takes that plans.
            optimization: Optimization,
        }
        optional {
            /// Topics that are left alone, but for replicas that must leave their broker or disk.
            excluded_topics: Pattern,
            /// Not in the original: how much data the plan may move.
            max_data_to_move_mb: Megabytes,
        }
        defaults {
            /// Which loads the plan is made from.
            data_from: Sources = DataFrom::ValidWindows,
            /// The goals by name, short or with their package, in order; none means the default ones.
            goals: Names = Vec::new(),
            /// Accepted, without effect, as in the original.
            use_ready_default_goals: Flag = false,
            /// Whether brokers that were removed lately stay empty.
            exclude_recently_removed_brokers: Flag = true,
            /// Accepted, without effect: planning is fast either way.
            fast_mode: Flag = true,
        }
    }
}

parameters! {
    /// What everything takes that can be carried out.
    pub struct Run {
        optional {
            /// Why; it comes back in the state of the executor.
            reason: Text,
            /// Refused: there is no two-step verification.
            review_id: ReviewId,
            /// Not in the original: carry out exactly this proposal of an earlier dry run, or refuse.
            proposal_id: Text,
        }
        defaults {
            /// Only plan.
            dryrun: Flag = true,
            /// Stop what is being carried out, and take its place.
            stop_ongoing_execution: Flag = false,
        }
    }
}

parameters! {
    /// How fast and in which order changes are made.
    pub struct Pace {
        optional {
            /// Leadership moves at a time in the cluster.
            concurrent_leader_movements: Concurrency,
            /// Leadership moves at a time for each broker.
            broker_concurrent_leader_movements: Concurrency,
            /// Accepted, without effect: progress is looked at as often as needed.
            execution_progress_check_interval_ms: Millis,
            /// Bytes per second that moves may use on each broker; 0 means no throttle, also where one is configured.
            replication_throttle: Throttle,
        }
        defaults {
            /// The order of moves: names of strategies, the first decides first.
            replica_movement_strategies: Names = Vec::new(),
        }
    }
}

parameters! {
    /// What everything takes that moves replicas.
    pub struct Execution {
        groups {
            /// What everything takes that can be carried out.
            run: Run,
            /// How fast and in which order changes are made.
            pace: Pace,
        }
        optional {
            /// Moves between brokers at a time for each broker.
            concurrent_partition_movements_per_broker: Concurrency,
            /// Moves between brokers at a time in the cluster.
            max_partition_movements_in_cluster: Concurrency,
        }
        defaults {
            /// Whether goals that must hold may be missing from `goals`.
            skip_hard_goal_check: Flag = false,
        }
    }
}

impl Consistent for GoalOptions {
    fn contradiction(&self) -> Option<String> {
        (self.use_ready_default_goals && !self.goals.is_empty()).then(|| with_goals("use_ready_default_goals"))
    }
}

/// A flag that makes no sense when the goals are given.
pub(super) fn with_goals(flag: &str) -> String {
    format!("Cannot set {flag} parameter to true when explicitly specifying goals in the request.")
}

impl Consistent for Run {
    fn contradiction(&self) -> Option<String> {
        if self.dryrun && self.stop_ongoing_execution {
            return Some("stop_ongoing_execution and dryrun cannot both be set to true.".to_owned());
        }
        (self.dryrun && self.proposal_id.is_some())
            .then(|| "proposal_id says which proposal to carry out: it needs dryrun=false.".to_owned())
    }
}

impl Pace {
    /// A dry run may name anything: the original looks at strategies only when it needs them.
    pub(super) fn contradiction(&self, run: &Run) -> Option<String> {
        if run.dryrun {
            return None;
        }
        let unknown = self.replica_movement_strategies.iter().find(|name| !STRATEGIES.contains(&name.as_str()))?;
        Some(format!("Strategy {unknown} is not supported. Supported: [{}]", STRATEGIES.join(", ")))
    }
}

impl Consistent for Execution {
    fn contradiction(&self) -> Option<String> {
        self.run.contradiction().or_else(|| self.pace.contradiction(&self.run))
    }
}
