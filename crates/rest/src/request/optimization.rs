//! Requests for plans, and for carrying them out.

use std::collections::BTreeSet;

use super::Consistent;
use super::groups::{Detail, Execution, GoalOptions, Optimization, Pace, Run, with_goals};
use crate::endpoint::Endpoint;
use crate::parameter::{BrokerIds, Concurrency, Flag, LogDirs, LogDirsOfBrokers, Text, parameters};

parameters! {
    /// `proposals`: what a rebalance would do.
    pub struct Proposals {
        groups {
            /// What everything takes that plans by goals.
            goal_options: GoalOptions,
            /// What kind of rebalance it is.
            scope: Scope,
        }
        optional {
            /// Why.
            reason: Text,
        }
    }
}

parameters! {
    /// `rebalance`: make the goals hold, or say how.
    pub struct Rebalance {
        groups {
            /// What everything takes that plans by goals.
            goal_options: GoalOptions,
            /// What kind of rebalance it is.
            scope: Scope,
            /// What everything takes that moves replicas.
            execution: Execution,
        }
        optional {
            /// Moves between disks at a time for each broker.
            concurrent_intra_broker_partition_movements: Concurrency,
        }
    }
}

parameters! {
    /// What kind of rebalance it is.
    pub struct Scope {
        defaults {
            /// Refused if true: its goals are not built.
            kafka_assigner: Flag = false,
            /// Between the disks of each broker instead of between brokers.
            rebalance_disk: Flag = false,
            /// The only brokers that may get replicas; none means all.
            destination_broker_ids: BrokerIds = BTreeSet::new(),
            /// Plan anew even if there is a fresh plan.
            ignore_proposal_cache: Flag = false,
        }
    }
}

parameters! {
    /// `add_broker`: give replicas to brokers that are new.
    pub struct AddBroker {
        groups {
            /// What everything takes that plans by goals.
            goal_options: GoalOptions,
            /// What everything takes that moves replicas.
            execution: Execution,
        }
        defaults {
            /// The brokers; at least one.
            brokerid: BrokerIds = BTreeSet::new(),
            /// Refused if true: its goals are not built.
            kafka_assigner: Flag = false,
            /// Whether limits per broker also hold for the new ones.
            throttle_added_broker: Flag = true,
        }
    }
}

parameters! {
    /// `remove_broker`: take every replica from brokers that go, or are gone.
    pub struct RemoveBroker {
        groups {
            /// What everything takes that plans by goals.
            goal_options: GoalOptions,
            /// What everything takes that moves replicas.
            execution: Execution,
        }
        defaults {
            /// The brokers; at least one.
            brokerid: BrokerIds = BTreeSet::new(),
            /// Refused if true: its goals are not built.
            kafka_assigner: Flag = false,
            /// Whether limits per broker also hold for those that go.
            throttle_removed_broker: Flag = true,
            /// The only brokers that may get replicas; none means all that stay.
            destination_broker_ids: BrokerIds = BTreeSet::new(),
        }
    }
}

parameters! {
    /// `fix_offline_replicas`: move what lies on dead brokers and disks.
    pub struct FixOfflineReplicas {
        groups {
            /// What everything takes that plans by goals.
            goal_options: GoalOptions,
            /// What everything takes that moves replicas.
            execution: Execution,
        }
    }
}

parameters! {
    /// `demote_broker`: let others lead.
    pub struct DemoteBroker {
        groups {
            /// What everything takes that plans.
            optimization: Optimization,
            /// What everything takes that can be carried out.
            run: Run,
            /// How fast and in which order changes are made.
            pace: Pace,
        }
        defaults {
            /// The brokers that shall lead nothing.
            brokerid: BrokerIds = BTreeSet::new(),
            /// The disks whose replicas shall lead nothing.
            brokerid_and_logdirs: LogDirsOfBrokers = LogDirs::new(),
            /// Whether partitions that are under-replicated are left alone.
            skip_urp_demotion: Flag = true,
            /// Whether followers keep their place in the order of replicas.
            exclude_follower_demotion: Flag = true,
        }
    }
}

parameters! {
    /// `remove_disks`: move what lies on disks that go to others of the same broker.
    pub struct RemoveDisks {
        groups {
            /// How much is told of the plan. The original has nothing of it here.
            detail: Detail,
            /// What everything takes that can be carried out.
            run: Run,
        }
        defaults {
            /// The disks; none means that there is nothing to do.
            brokerid_and_logdirs: LogDirsOfBrokers = LogDirs::new(),
        }
    }
}

impl Consistent for Proposals {
    fn contradiction(&self) -> Option<String> {
        self.scope.contradiction(&self.goal_options)
    }
}

impl Consistent for Rebalance {
    fn contradiction(&self) -> Option<String> {
        self.scope.contradiction(&self.goal_options).or_else(|| self.execution.contradiction())
    }
}

impl Consistent for AddBroker {
    fn contradiction(&self) -> Option<String> {
        no_target(Endpoint::AddBroker, &self.brokerid)
            .or_else(|| of_goals(&self.goal_options, self.kafka_assigner))
            .or_else(|| self.execution.contradiction())
    }
}

impl Consistent for RemoveBroker {
    fn contradiction(&self) -> Option<String> {
        let overlap: Vec<String> =
            self.brokerid.intersection(&self.destination_broker_ids).map(i32::to_string).collect();
        let overlap = (!overlap.is_empty()).then(|| {
            let ids = overlap.join(", ");
            format!(
                "No overlap is allowed between the specified destination broker ids and broker ids. Intersection: [{ids}]."
            )
        });
        no_target(Endpoint::RemoveBroker, &self.brokerid)
            .or(overlap)
            .or_else(|| of_goals(&self.goal_options, self.kafka_assigner))
            .or_else(|| self.execution.contradiction())
    }
}

impl Consistent for FixOfflineReplicas {
    fn contradiction(&self) -> Option<String> {
        self.goal_options.contradiction().or_else(|| self.execution.contradiction())
    }
}

impl Consistent for DemoteBroker {
    fn contradiction(&self) -> Option<String> {
        (self.brokerid.is_empty() && self.brokerid_and_logdirs.is_empty())
            .then(|| "No target broker ID or target disk logdir is specified to demote.".to_owned())
            .or_else(|| self.run.contradiction())
            .or_else(|| self.pace.contradiction(&self.run))
    }
}

impl Consistent for RemoveDisks {
    fn contradiction(&self) -> Option<String> {
        self.run.contradiction()
    }
}

impl Scope {
    fn contradiction(&self, options: &GoalOptions) -> Option<String> {
        let refused = |what: &str| Some(what.to_owned());
        if self.kafka_assigner && self.rebalance_disk {
            return refused("Kafka assigner mode and rebalance disk mode cannot be set the same time.");
        }
        let mode = if self.rebalance_disk { "Rebalance disk mode" } else { "Kafka assigner mode" };
        if self.kafka_assigner || self.rebalance_disk {
            if !options.goals.is_empty() {
                return Some(format!("{mode} does not support explicitly specifying goals in request."));
            }
            if !self.destination_broker_ids.is_empty() {
                return Some(format!("{mode} does not support explicitly specifying destination broker ids."));
            }
        }
        if self.ignore_proposal_cache && !options.goals.is_empty() {
            return Some(with_goals("ignore_proposal_cache"));
        }
        of_goals(options, self.kafka_assigner)
    }
}

fn no_target(endpoint: Endpoint, brokers: &BTreeSet<i32>) -> Option<String> {
    brokers.is_empty().then(|| format!("Target broker ID is not provided for {endpoint} request"))
}

/// Note that excluding removed brokers is the default: whoever wants the assigner's goals has to say no.
fn of_goals(options: &GoalOptions, kafka_assigner: bool) -> Option<String> {
    if kafka_assigner && !options.goals.is_empty() {
        return Some("Kafka assigner mode does not support explicitly specifying goals in request.".to_owned());
    }
    let excludes = options.exclude_recently_removed_brokers || options.optimization.exclude_recently_demoted_brokers;
    if kafka_assigner && excludes {
        return Some("Kafka assigner mode does not support excluding brokers.".to_owned());
    }
    options.contradiction()
}
