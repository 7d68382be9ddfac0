//! `AnomalyDetectorState`: what is wrong with the cluster.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use crate::json::{Double, Key};
use crate::parameter::{AnomalyType, choice};

/// What is wrong with the cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AnomalyDetectorState {
    /// Brokers that failed.
    pub recent_broker_failures: Vec<Anomaly<BrokerFailure>>,
    /// Goals that did not hold.
    pub recent_goal_violations: Vec<Anomaly<GoalViolation>>,
    /// What is not mended unasked.
    pub self_healing_disabled: Vec<AnomalyType>,
    /// How balanced the cluster is, from 0 to 100; -1 while replicas are offline.
    pub balancedness_score: Double,
    /// What is mended unasked.
    pub self_healing_enabled: Vec<AnomalyType>,
    /// Disks that failed.
    pub recent_disk_failures: Vec<Anomaly<DiskFailure>>,
    /// How often, how long.
    pub metrics: AnomalyMetrics,
    /// Brokers that behaved unlike themselves.
    pub recent_metric_anomalies: Vec<Anomaly<Described>>,
    /// Topics that were not as wanted.
    pub recent_topic_anomalies: Vec<Anomaly<Described>>,
    /// How much of the time each was mended unasked, from 0 to 1.
    pub self_healing_enabled_ratio: BTreeMap<AnomalyType, Double>,
    /// Maintenance that was announced.
    pub recent_maintenance_events: Vec<Anomaly<Described>>,
    /// What is being mended right now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ongoing_self_healing_anomaly: Option<String>,
}

/// How often, how long.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "they say what they are")]
pub struct AnomalyMetrics {
    pub mean_time_between_anomalies_ms: BTreeMap<AnomalyType, Double>,
    pub ongoing_anomaly_duration_ms: u64,
    pub num_self_healing_started: u64,
    pub num_self_healing_failed_to_start: u64,
    pub mean_time_to_start_fix_ms: Double,
}

/// Something that was wrong.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", from = "Told<What>", bound(deserialize = "What: Deserialize<'de>"))]
pub struct Anomaly<What> {
    /// Its id.
    pub anomaly_id: String,
    /// What it was.
    #[serde(flatten)]
    pub what: What,
    /// When it was found, in ms.
    pub detection_ms: i64,
    /// When the status was last set, in ms.
    pub status_update_ms: i64,
    /// What became of it.
    pub status: AnomalyStatus,
    /// The plan to mend it, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub optimization_result: Option<String>,
}

/// The same as engines tell it: some give dates instead of milliseconds.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Told<What> {
    anomaly_id: String,
    #[serde(flatten)]
    what: What,
    detection_ms: Option<i64>,
    detection_date: Option<String>,
    status_update_ms: Option<i64>,
    status_update_date: Option<String>,
    status: AnomalyStatus,
    optimization_result: Option<String>,
}

impl<What> From<Told<What>> for Anomaly<What> {
    fn from(told: Told<What>) -> Self {
        // What nobody can read was long ago, and is no reason not to read the rest.
        let moment = |ms: Option<i64>, date: Option<String>| {
            let date = || date?.parse().ok().map(|date: Timestamp| date.as_millisecond());
            ms.or_else(date).unwrap_or_default()
        };
        Self {
            anomaly_id: told.anomaly_id,
            what: told.what,
            detection_ms: moment(told.detection_ms, told.detection_date),
            status_update_ms: moment(told.status_update_ms, told.status_update_date),
            status: told.status,
            optimization_result: told.optimization_result,
        }
    }
}

choice! {
    /// What became of an anomaly.
    pub enum AnomalyStatus {
        /// It was found.
        Detected = "DETECTED",
        /// Nothing is done about it.
        Ignored = "IGNORED",
        /// It is being mended.
        FixStarted = "FIX_STARTED",
        /// It could not be mended.
        FixFailedToStart = "FIX_FAILED_TO_START",
        /// It is looked at again later.
        CheckWithDelay = "CHECK_WITH_DELAY",
        /// The monitor is still loading.
        LoadMonitorNotReady = "LOAD_MONITOR_NOT_READY",
        /// Not enough is known yet.
        CompletenessNotReady = "COMPLETENESS_NOT_READY",
    }
}

/// Goals that do not hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GoalViolation {
    /// Those that can be made to.
    pub fixable_violated_goals: Vec<String>,
    /// Those that cannot.
    pub unfixable_violated_goals: Vec<String>,
}

/// Brokers that are gone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BrokerFailure {
    /// Since when, in ms.
    pub failed_brokers_by_time_ms: BTreeMap<Key<i32>, i64>,
}

/// Disks that are gone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DiskFailure {
    /// Since when, in ms, by broker and log directory.
    pub failed_disks_by_time_ms: BTreeMap<Key<i32>, BTreeMap<String, i64>>,
}

/// Anything else, in words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Described {
    /// What it was.
    pub description: String,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_moment_is_told_in_milliseconds_or_as_a_date() {
        for (told, found) in [
            (json!({"detectionMs": 5_000, "detectionDate": "2026-01-01T00:00:00Z"}), 5_000),
            (json!({"detectionDate": "1970-01-01T00:00:07Z"}), 7_000),
            (json!({"detectionDate": "yesterday"}), 0),
            (json!({}), 0),
        ] {
            let mut anomaly = json!({
                "anomalyId": "a1", "status": "IGNORED", "fixableViolatedGoals": ["A"], "unfixableViolatedGoals": [],
            });
            anomaly.as_object_mut().unwrap().extend(told.as_object().unwrap().clone());
            let read: Anomaly<GoalViolation> = serde_json::from_value(anomaly.clone()).unwrap();
            assert_eq!((read.detection_ms, read.what.fixable_violated_goals.len()), (found, 1), "{anomaly}");
        }
    }
}
