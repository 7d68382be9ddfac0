//! `AnomalyDetectorState`: what the detectors know, as the API tells it.

use evenkeel_balancer::goal::Goal;
use evenkeel_rest::{
    body::state::{self, AnomalyDetectorState, BrokerFailure, DiskFailure, GoalViolation},
    json::Key,
    parameter::AnomalyType,
};

use super::{Anomaly, Finding, Kind, Ledger, Millis, switches::Switches, tally::Tally};

/// The body.
pub fn state(ledger: &Ledger, switches: &Switches, tally: &Tally, score: f64, now: Millis) -> AnomalyDetectorState {
    let (enabled, disabled) = AnomalyType::ALL.iter().copied().partition(|kind| switches.is_on(*kind));
    AnomalyDetectorState {
        recent_broker_failures: recent(ledger, Kind::BrokerFailure, |finding| match finding {
            Finding::BrokerFailure { since, .. } => Some(BrokerFailure {
                failed_brokers_by_time_ms: since.iter().map(|(broker, at)| (Key(*broker), *at)).collect(),
            }),
            _ => None,
        }),
        recent_goal_violations: recent(ledger, Kind::GoalViolation, |finding| match finding {
            Finding::GoalViolation { fixable, unfixable } => Some(GoalViolation {
                fixable_violated_goals: names(fixable),
                unfixable_violated_goals: names(unfixable),
            }),
            _ => None,
        }),
        recent_disk_failures: recent(ledger, Kind::DiskFailure, |finding| match finding {
            Finding::DiskFailure { since } => Some(DiskFailure {
                failed_disks_by_time_ms: since.iter().map(|(broker, dirs)| (Key(*broker), dirs.clone())).collect(),
            }),
            _ => None,
        }),
        self_healing_enabled: enabled,
        self_healing_disabled: disabled,
        self_healing_enabled_ratio: AnomalyType::ALL
            .iter()
            .map(|kind| (*kind, switches.ratio(*kind, now).into()))
            .collect(),
        balancedness_score: score.into(),
        metrics: tally.metrics(now),
        ongoing_self_healing_anomaly: ledger.mending().map(|id| id.to_string()),
        ..AnomalyDetectorState::default()
    }
}

fn recent<What>(ledger: &Ledger, kind: Kind, what: impl Fn(&Finding) -> Option<What>) -> Vec<state::Anomaly<What>> {
    let entry = |anomaly: &Anomaly| {
        Some(state::Anomaly {
            anomaly_id: anomaly.id.to_string(),
            what: what(&anomaly.finding)?,
            detection_ms: anomaly.detected,
            status_update_ms: anomaly.status.1,
            status: anomaly.status.0,
            optimization_result: anomaly.plan.clone(),
        })
    };
    ledger.recent(kind).filter_map(entry).collect()
}

fn names(goals: &[Goal]) -> Vec<String> {
    goals.iter().map(|goal| goal.name().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use evenkeel_rest::{body::State, json::Version};
    use serde_json::{Value, json};
    use uuid::Uuid;

    use super::*;
    use crate::detect::Status;

    #[test]
    fn everything_is_told_under_the_original_s_keys() {
        let mut ledger = Ledger::new(10);
        let [violation, failure, disk] = [1, 2, 3].map(Uuid::from_u128);
        let goals = Finding::GoalViolation { fixable: vec![Goal::RackAware], unfixable: vec![Goal::CpuCapacity] };
        ledger.found(violation, goals, 1_000);
        ledger.found(failure, Finding::BrokerFailure { since: [(3, 900)].into(), fixable: true }, 1_100);
        ledger.found(disk, Finding::DiskFailure { since: [(1, [("/a".to_owned(), 950)].into())].into() }, 1_200);
        ledger.settle(violation, Status::Ignored, 1_001);
        ledger.mends(failure, "the plan".to_owned(), 1_101);
        let switches = Switches::new([AnomalyType::BrokerFailure], 0);
        let mut tally = Tally::new(0);
        tally.handled(AnomalyType::GoalViolation, 1_000);
        let body = State {
            anomaly_detector_state: Some(state(&ledger, &switches, &tally, 79.5, 2_000)),
            version: Version,
            ..State::default()
        };
        let told: Value = serde_json::to_value(&body).unwrap();
        let told = &told["AnomalyDetectorState"];
        let (id, zero) = ("00000000-0000-0000-0000-00000000000", 0.0);
        assert_eq!(
            told["recentGoalViolations"],
            json!([{"anomalyId": format!("{id}1"), "detectionMs": 1_000, "statusUpdateMs": 1_001, "status": "IGNORED",
                "fixableViolatedGoals": ["RackAwareGoal"], "unfixableViolatedGoals": ["CpuCapacityGoal"]}])
        );
        assert_eq!(
            told["recentBrokerFailures"],
            json!([{"anomalyId": format!("{id}2"), "detectionMs": 1_100, "statusUpdateMs": 1_101,
                "status": "FIX_STARTED", "failedBrokersByTimeMs": {"3": 900}, "optimizationResult": "the plan"}])
        );
        assert_eq!(told["recentDiskFailures"][0]["failedDisksByTimeMs"], json!({"1": {"/a": 950}}));
        assert_eq!(told["ongoingSelfHealingAnomaly"], json!(format!("{id}2")));
        assert_eq!(told["selfHealingEnabled"], json!(["BROKER_FAILURE"]));
        assert_eq!(told["selfHealingDisabled"].as_array().map(Vec::len), Some(5));
        assert_eq!(told["selfHealingEnabledRatio"]["BROKER_FAILURE"], json!(1.0));
        assert_eq!(told["selfHealingEnabledRatio"]["TOPIC_ANOMALY"], json!(zero));
        assert_eq!(told["balancednessScore"], json!(79.5));
        assert_eq!(told["metrics"]["ongoingAnomalyDurationMs"], json!(1_000));
        assert_eq!(told["metrics"]["meanTimeBetweenAnomaliesMs"]["GOAL_VIOLATION"], json!(2_000.0));
        for key in ["recentMetricAnomalies", "recentTopicAnomalies", "recentMaintenanceEvents"] {
            assert_eq!(told[key], json!([]), "{key}");
        }
    }
}
