//! What a 202 says: how far the computation is.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::json::{Double, Version};

/// The body of a 202.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// One entry for each operation of the request; there is one.
    pub progress: Vec<OperationProgress>,
    /// Always 1.
    #[serde(default)]
    pub version: Version,
}

/// How far an operation is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OperationProgress {
    /// Steps that are done, and the one that is not.
    pub operation_progress: Vec<StepProgress>,
    /// Its name, such as `Rebalance`.
    pub operation: String,
}

/// How far a step is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepProgress {
    /// Its name.
    pub step: String,
    /// 100 if it is done.
    #[serde(rename = "completionPercentage")]
    pub completion_percentage: Double,
    /// How long it has taken.
    #[serde(rename = "time-in-ms")]
    pub time_in_ms: i64,
    /// What it is for.
    pub description: String,
}

/// The steps that there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// It waits for its turn.
    Pending,
    /// It waits for another execution to end.
    StoppingOngoingExecution,
    /// It waits for others to finish their models.
    WaitingForClusterModel,
    /// Loads are put together.
    AggregatingMetrics,
    /// A model is made of them.
    GeneratingClusterModel,
    /// A goal is pursued.
    Optimizing(String),
}

impl Step {
    /// Its description.
    pub fn description(&self) -> String {
        match self {
            Self::Pending => "Operation enqueued, waiting to be executed.".to_owned(),
            Self::StoppingOngoingExecution => "Waiting for ongoing execution to stop.".to_owned(),
            Self::WaitingForClusterModel => {
                "The job requires a cluster model and it is waiting to get the cluster model lock.".to_owned()
            }
            Self::AggregatingMetrics => {
                "Retrieve the metrics of all the partitions from the aggregated metrics.".to_owned()
            }
            Self::GeneratingClusterModel => "Generating the cluster model for the cluster.".to_owned(),
            Self::Optimizing(goal) => format!("Optimizing goal {goal}"),
        }
    }

    /// As it stands in a body.
    pub fn progress(&self, time_in_ms: i64, percent: f64) -> StepProgress {
        StepProgress {
            step: self.to_string(),
            completion_percentage: percent.into(),
            time_in_ms,
            description: self.description(),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pending => f.write_str("PENDING"),
            Self::StoppingOngoingExecution => f.write_str("STOPPING_ONGOING_EXECUTION"),
            Self::WaitingForClusterModel => f.write_str("WAITING_FOR_CLUSTER_MODEL"),
            Self::AggregatingMetrics => f.write_str("AGGREGATING_METRICS"),
            Self::GeneratingClusterModel => f.write_str("GENERATING_CLUSTER_MODEL"),
            Self::Optimizing(goal) => write!(f, "OPTIMIZING {goal}"),
        }
    }
}
