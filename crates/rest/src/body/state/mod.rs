//! `state`: the engine's parts, each only if asked for.

mod analyzer;
mod anomaly_detector;
mod executor;
mod monitor;

pub use analyzer::{AnalyzerState, Completeness, GoalReadiness, Readiness};
pub use anomaly_detector::{
    Anomaly, AnomalyDetectorState, AnomalyMetrics, AnomalyStatus, BrokerFailure, Described, DiskFailure, GoalViolation,
};
pub use executor::{
    BrokerProgress, ExecutionTask, ExecutorState, InterBroker, InterBrokerTasks, IntraBroker, IntraBrokerTasks,
    Leadership, Phase, Stopping, StoppingTasks, TaskState, TaskType, Trigger,
};
pub use monitor::{MonitorFigures, MonitorPhase, MonitorState};

use serde::{Deserialize, Serialize};

use crate::json::Version;

/// The answer of `state`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct State {
    /// What can be planned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub analyzer_state: Option<AnalyzerState>,
    /// What is known of the loads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub monitor_state: Option<MonitorState>,
    /// What is being carried out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executor_state: Option<ExecutorState>,
    /// What is wrong with the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anomaly_detector_state: Option<AnomalyDetectorState>,
    /// Always 1.
    #[serde(rename = "version")]
    pub version: Version,
}
