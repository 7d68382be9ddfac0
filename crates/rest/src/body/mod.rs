//! Bodies of answers, key for key. Keys come in the order in which the original was seen to write them where that costs
//! nothing; it promises no order, and no client may rely on one.
//!
//! Reading is as lenient as the keys allow: what is not known is skipped.

mod cluster;
mod control;
mod load;
mod optimization;
mod partition_load;
mod progress;
pub mod state;
mod tasks;

pub use cluster::{BrokersState, ClusterState, ClusterSummary, PartitionEntry, PartitionsState};
pub use control::{AdminAnswer, ErrorBody, Message, Permissions};
pub use load::{BrokerLoad, BrokerState, ClusterLoad, DiskFigure, DiskLoad, HostLoad, Load};
pub use optimization::{
    ClusterModelStats, GoalStatus, GoalSummary, KEPT, LeftUndone, ModelMetadata, OptimizationResult, Proposal,
    ProvisionStatus, Statistic, Statistics, Summary, TopicPartition,
};
pub use partition_load::{PartitionLoad, PartitionRecord};
pub use progress::{OperationProgress, Progress, Step, StepProgress};
pub use state::State;
pub use tasks::{UserTask, UserTasks};

use crate::json;

/// A body that can be sent.
pub trait Body: serde::Serialize {
    /// As it is sent with `json=true`.
    fn json(&self) -> String {
        json::to_string(self)
    }
}

impl<T: serde::Serialize> Body for T {}
