//! Short answers: messages, errors, `admin`, `permissions`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::json::Version;
use crate::parameter::{AdjusterType, AnomalyType};
use crate::refusal::Refusal;

/// An answer that only says that it was done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// What was done.
    pub message: String,
    /// Always 1.
    pub version: Version,
}

impl Message {
    fn of(message: &str) -> Self {
        Self { message: message.to_owned(), version: Version }
    }

    /// The answer of `pause_sampling`.
    pub fn sampling_paused() -> Self {
        Self::of("Metric sampling paused.")
    }

    /// The answer of `resume_sampling`.
    pub fn sampling_resumed() -> Self {
        Self::of("Metric sampling resumed.")
    }

    /// The answer of `stop_proposal_execution`, also when nothing runs: it is accepted, not over.
    pub fn execution_stopped() -> Self {
        Self::of("Proposal execution stopped.")
    }
}

/// An answer that is no result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ErrorBody {
    /// Where it happened in the original; this engine leaves it empty.
    #[serde(default)]
    pub stack_trace: String,
    /// Always 1.
    #[serde(default)]
    pub version: Version,
    /// What happened.
    pub error_message: String,
}

impl From<&Refusal> for ErrorBody {
    fn from(refusal: &Refusal) -> Self {
        Self { stack_trace: String::new(), version: Version, error_message: refusal.message.clone() }
    }
}

/// The answer of `permissions`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Permissions {
    /// The caller's roles.
    pub roles: Vec<String>,
    /// Always 1.
    pub version: Version,
}

/// The answer of `admin`: what was asked for and how it was.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AdminAnswer {
    /// Whether anomalies were mended unasked before.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub self_healing_enabled_before: BTreeMap<AnomalyType, bool>,
    /// Whether they are now.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub self_healing_enabled_after: BTreeMap<AnomalyType, bool>,
    /// Whether limits were adjusted before.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub concurrency_adjuster_enabled_before: BTreeMap<AdjusterType, bool>,
    /// Whether they are now.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub concurrency_adjuster_enabled_after: BTreeMap<AdjusterType, bool>,
    /// A line for each limit that was set; see [`Self::concurrency_line`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ongoing_concurrency_change_request: Option<String>,
    /// A line for each history that was to be forgotten; see [`Self::dropped_line`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drop_recent_brokers_request: Option<String>,
    /// What became of `min_isr_based_concurrency_adjustment`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_isr_based_concurrency_adjustment_request: Option<String>,
    /// Always 1.
    pub version: Version,
}

impl AdminAnswer {
    /// That a limit was set, by the name of its parameter.
    pub fn concurrency_line(parameter: &str, value: u64) -> String {
        let what = match parameter {
            "concurrent_partition_movements_per_broker" => "Inter-broker partition movement concurrency",
            "concurrent_intra_broker_partition_movements" => "Intra-broker partition movement concurrency",
            "concurrent_leader_movements" => "Cluster Leadership movement concurrency",
            "broker_concurrent_leader_movements" => "Broker Leadership movement concurrency",
            "max_partition_movements_in_cluster" => "Max inter-broker partition movements",
            "execution_progress_check_interval_ms" => {
                return format!("Execution progress check interval is set to {value}Ms\n");
            }
            other => other,
        };
        format!("{what} is set to {value}\n")
    }

    /// What became of brokers to forget: `history` is `removed` or `demoted`, the lists are before and after.
    pub fn dropped_line(history: &str, asked: &[i32], before: &[i32], after: &[i32]) -> String {
        if asked.iter().any(|broker| before.contains(broker)) {
            format!("Dropped recently {history} brokers (requested: {asked:?} after-dropping: {after:?}).\n")
        } else {
            format!("None of the brokers to drop ({asked:?}) are in the recently {history} broker set ({before:?}).\n")
        }
    }

    /// What became of `min_isr_based_concurrency_adjustment`.
    pub fn min_isr_line(before: bool, after: bool) -> String {
        format!("MinISR-based concurrency adjustment is modified (before: {before} after: {after}).")
    }
}
