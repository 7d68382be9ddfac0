//! `ExecutorState`: what is being carried out. Each phase has its own keys.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::body::Proposal;
use crate::json::{Double, Key};
use crate::parameter::choice;

/// What is being carried out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecutorState {
    /// How far it is.
    #[serde(flatten)]
    pub phase: Phase,
    /// Who wanted it; always while something is being carried out.
    #[serde(flatten, default, skip_serializing_if = "Option::is_none")]
    pub trigger: Option<Trigger>,
    /// Brokers that were demoted lately.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recently_demoted_brokers: Vec<i32>,
    /// Brokers that were removed lately.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recently_removed_brokers: Vec<i32>,
    /// Not in the original: what each broker receives; only if asked for (`broker_progress`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub broker_progress: BTreeMap<Key<i32>, BrokerProgress>,
}

/// What one broker receives, from others and between its own disks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BrokerProgress {
    /// MB copied so far.
    pub finished_data_movement: u64,
    /// MB in all.
    pub total_data_to_move: u64,
}

/// Who wanted what is being carried out. Of the two ids one is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Trigger {
    /// Why, from where and when; see [`crate::reason`].
    pub triggered_task_reason: String,
    /// The anomaly that is being mended unasked.
    #[serde(default)]
    pub triggered_self_healing_task_id: String,
    /// The user task.
    #[serde(default)]
    pub triggered_user_task_id: String,
}

/// How far it is, with what is known then.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state")]
pub enum Phase {
    /// Nothing is being carried out.
    #[default]
    #[serde(rename = "NO_TASK_IN_PROGRESS")]
    Idle,
    /// The executor is taken, the plan is being made.
    #[serde(rename = "GENERATING_PROPOSALS_FOR_EXECUTION")]
    Generating,
    /// The plan is made.
    #[serde(rename = "INITIALIZING_PROPOSAL_EXECUTION")]
    Initializing,
    /// The first moves are about to be made.
    #[serde(rename = "STARTING_EXECUTION")]
    Starting,
    /// Replicas move between brokers.
    #[serde(rename = "INTER_BROKER_REPLICA_MOVEMENT_TASK_IN_PROGRESS")]
    InterBroker(InterBroker),
    /// Replicas move between disks.
    #[serde(rename = "INTRA_BROKER_REPLICA_MOVEMENT_TASK_IN_PROGRESS")]
    IntraBroker(IntraBroker),
    /// Leadership moves.
    #[serde(rename = "LEADER_MOVEMENT_TASK_IN_PROGRESS")]
    Leadership(Leadership),
    /// What was begun is taken back.
    #[serde(rename = "STOPPING_EXECUTION")]
    Stopping(Stopping),
    /// A state that this client does not know. No server sends this name.
    #[serde(other, rename = "UNKNOWN")]
    Unknown,
}

impl Phase {
    /// Its name at the border.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Idle => "NO_TASK_IN_PROGRESS",
            Self::Generating => "GENERATING_PROPOSALS_FOR_EXECUTION",
            Self::Initializing => "INITIALIZING_PROPOSAL_EXECUTION",
            Self::Starting => "STARTING_EXECUTION",
            Self::InterBroker(_) => "INTER_BROKER_REPLICA_MOVEMENT_TASK_IN_PROGRESS",
            Self::IntraBroker(_) => "INTRA_BROKER_REPLICA_MOVEMENT_TASK_IN_PROGRESS",
            Self::Leadership(_) => "LEADER_MOVEMENT_TASK_IN_PROGRESS",
            Self::Stopping(_) => "STOPPING_EXECUTION",
            Self::Unknown => "UNKNOWN",
        }
    }
}

/// Replicas move between brokers. Finished are those that ended, however they did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "they say what they are")]
pub struct InterBroker {
    /// MB copied so far.
    pub finished_data_movement: u64,
    pub num_in_progress_partition_movements: u64,
    pub aborting_partitions: u64,
    pub num_finished_partition_movements: u64,
    pub maximum_concurrent_partition_movements_per_broker: u64,
    pub num_pending_partition_movements: u64,
    /// MB in all.
    pub total_data_to_move: u64,
    pub minimum_concurrent_partition_movements_per_broker: u64,
    pub average_concurrent_partition_movements_per_broker: Double,
    pub num_total_partition_movements: u64,
    /// Only if asked for (`verbose`).
    #[serde(flatten, default, skip_serializing_if = "Option::is_none")]
    pub tasks: Option<InterBrokerTasks>,
}

/// Moves between brokers, by how they stand.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "they say what they are")]
pub struct InterBrokerTasks {
    pub completed_partition_movement: Vec<ExecutionTask>,
    pub pending_partition_movement: Vec<ExecutionTask>,
    pub in_progress_partition_movement: Vec<ExecutionTask>,
    pub aborting_partition_movement: Vec<ExecutionTask>,
    pub aborted_partition_movement: Vec<ExecutionTask>,
    pub dead_partition_movement: Vec<ExecutionTask>,
}

/// Replicas move between disks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "they say what they are")]
pub struct IntraBroker {
    pub minimum_concurrent_intra_broker_partition_movements_per_broker: u64,
    pub num_in_progress_intra_broker_partition_movements: u64,
    pub maximum_concurrent_intra_broker_partition_movements_per_broker: u64,
    pub num_pending_intra_broker_partition_movements: u64,
    pub num_total_intra_broker_partition_movements: u64,
    /// MB copied so far.
    pub finished_intra_broker_data_movement: u64,
    pub average_concurrent_intra_broker_partition_movements_per_broker: Double,
    /// MB in all.
    pub total_intra_broker_data_to_move: u64,
    pub num_finished_intra_broker_partition_movements: u64,
    pub num_aborting_intra_broker_partition_movements: u64,
    /// Only if asked for (`verbose`).
    #[serde(flatten, default, skip_serializing_if = "Option::is_none")]
    pub tasks: Option<IntraBrokerTasks>,
}

/// Moves between disks, by how they stand.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "they say what they are")]
pub struct IntraBrokerTasks {
    pub pending_intra_broker_partition_movement: Vec<ExecutionTask>,
    pub aborting_intra_broker_partition_movement: Vec<ExecutionTask>,
    pub completed_intra_broker_partition_movement: Vec<ExecutionTask>,
    pub dead_intra_broker_partition_movement: Vec<ExecutionTask>,
    pub in_progress_intra_broker_partition_movement: Vec<ExecutionTask>,
    pub aborted_intra_broker_partition_movement: Vec<ExecutionTask>,
}

/// Leadership moves.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "they say what they are")]
pub struct Leadership {
    pub maximum_broker_leader_movement_concurrency: u64,
    pub cluster_leader_movement_concurrency: u64,
    pub average_broker_leader_movement_concurrency: Double,
    pub num_pending_leadership_movements: u64,
    pub num_total_leadership_movements: u64,
    pub minimum_broker_leader_movement_concurrency: u64,
    pub num_finished_leadership_movements: u64,
    /// Those that are not over; only if asked for (`verbose`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending_leadership_movement: Option<Vec<ExecutionTask>>,
}

/// What was begun is taken back. The totals are only in the text form.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "they say what they are")]
pub struct Stopping {
    pub maximum_broker_leader_movement_concurrency: u64,
    pub num_in_progress_intra_broker_partition_movements: u64,
    pub num_in_progress_partition_movements: u64,
    pub maximum_concurrent_intra_broker_partition_movements_per_broker: u64,
    pub cluster_leader_movement_concurrency: u64,
    pub aborting_partitions: u64,
    pub num_cancelled_partition_movements: u64,
    pub num_cancelled_leadership_movements: u64,
    pub maximum_concurrent_partition_movements_per_broker: u64,
    pub num_aborting_intra_broker_partition_movements: u64,
    pub num_cancelled_intra_broker_partition_movements: u64,
    #[serde(skip)]
    pub total_partition_movements: u64,
    #[serde(skip)]
    pub total_intra_broker_partition_movements: u64,
    #[serde(skip)]
    pub total_leadership_movements: u64,
    /// Only if asked for (`verbose`).
    #[serde(flatten, default, skip_serializing_if = "Option::is_none")]
    pub tasks: Option<StoppingTasks>,
}

/// What is taken back, by how it stands.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "they say what they are")]
pub struct StoppingTasks {
    pub aborting_intra_broker_partition_movement: Vec<ExecutionTask>,
    pub in_progress_partition_movement: Vec<ExecutionTask>,
    pub in_progress_intra_broker_partition_movement: Vec<ExecutionTask>,
    pub cancelled_partition_movement: Vec<ExecutionTask>,
    pub aborting_partition_movement: Vec<ExecutionTask>,
    pub cancelled_leadership_movement: Vec<ExecutionTask>,
    pub cancelled_intra_broker_partition_movement: Vec<ExecutionTask>,
}

/// One change that is to be made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecutionTask {
    /// How the partition changes.
    pub proposal: Proposal,
    /// Its number.
    pub execution_id: u64,
    /// On which broker, if it is between disks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broker_id: Option<i32>,
    /// How it stands.
    pub state: TaskState,
    /// What it changes.
    #[serde(rename = "type")]
    pub task_type: TaskType,
}

choice! {
    /// How a change stands.
    pub enum TaskState {
        /// Not begun.
        Pending = "PENDING",
        /// Begun.
        InProgress = "IN_PROGRESS",
        /// Being taken back.
        Aborting = "ABORTING",
        /// Taken back.
        Aborted = "ABORTED",
        /// Failed.
        Dead = "DEAD",
        /// Done.
        Completed = "COMPLETED",
    }
}

choice! {
    /// What a change changes.
    pub enum TaskType {
        /// The broker of a replica.
        InterBroker = "INTER_BROKER_REPLICA_ACTION",
        /// The disk of a replica.
        IntraBroker = "INTRA_BROKER_REPLICA_ACTION",
        /// The leader.
        Leader = "LEADER_ACTION",
    }
}
