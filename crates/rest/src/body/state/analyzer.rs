//! `AnalyzerState`: what can be planned.

use serde::{Deserialize, Serialize};

use crate::json::Double;
use crate::parameter::choice;

/// What can be planned.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AnalyzerState {
    /// Whether there is a fresh plan for the default goals.
    pub is_proposal_ready: bool,
    /// Goals for which enough is known.
    pub ready_goals: Vec<String>,
    /// Each goal and what it needs; only if asked for (`verbose`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal_readiness: Option<Vec<GoalReadiness>>,
}

/// A goal and what it needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GoalReadiness {
    /// Whether it is known.
    pub status: Readiness,
    /// The goal's short name.
    pub name: String,
    /// What has to be known.
    pub model_complete_requirement: Completeness,
}

choice! {
    /// Whether what a goal needs is known.
    pub enum Readiness {
        /// It is.
        Ready = "ready",
        /// It is not.
        NotReady = "notReady",
    }
}

/// What has to be known.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Completeness {
    /// Whether topics count of which not enough is known.
    pub include_all_topics: bool,
    /// How many of the partitions.
    pub min_monitored_partitions_percentage: Double,
    /// In how many windows.
    pub required_num_snapshots: u64,
}
