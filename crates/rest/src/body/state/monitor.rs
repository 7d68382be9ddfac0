//! `MonitorState`: what is known of the loads.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use crate::json::{Double, Key};
use crate::parameter::choice;

choice! {
    /// What the monitor does.
    pub enum MonitorPhase {
        /// It was never started.
        NotStarted = "NOT_STARTED",
        /// It waits for its next round.
        Running = "RUNNING",
        /// It was told to wait.
        Paused = "PAUSED",
        /// It takes samples.
        Sampling = "SAMPLING",
        /// It reads old metrics anew.
        Bootstrapping = "BOOTSTRAPPING",
        /// It trains a model of processor use.
        Training = "TRAINING",
        /// It reads stored samples.
        Loading = "LOADING",
    }
}

/// What is known of the loads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MonitorState {
    /// What the monitor does.
    pub state: MonitorPhase,
    /// What is known; not if it was never started.
    #[serde(flatten, default, skip_serializing_if = "Option::is_none")]
    pub figures: Option<MonitorFigures>,
    /// Why it was last told to wait or to go on, or `N/A`; while running or paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason_of_latest_pause_or_resume: Option<String>,
    /// While bootstrapping.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bootstrap_progress_pct: Option<Double>,
    /// While loading.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loading_progress_pct: Option<Double>,
    /// `ILLEGAL_STATE_EXCEPTION` if it was never started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What is known.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MonitorFigures {
    /// How far the model of processor use is.
    pub training_pct: Double,
    /// Whether it is there.
    pub trained: bool,
    /// Partitions of which some windows are guessed.
    pub num_flawed_partitions: u64,
    /// How much of the cluster is known, by the end of the window in ms; only if asked for (`verbose`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub monitored_windows: Option<BTreeMap<Key<i64>, Double>>,
    /// Partitions that there are.
    pub num_total_partitions: u64,
    /// Windows that can be used.
    pub num_monitored_windows: u64,
    /// How much of the cluster is known, in percent.
    pub monitoring_coverage_pct: Double,
    /// Partitions that are known.
    pub num_valid_partitions: u64,
    /// Windows that there are; only in the text form.
    #[serde(skip)]
    pub num_total_windows: u64,
}
