//! `status.optimizationResult`: the engine's summary, key for key, with the name of the ConfigMap beside it.

use evenkeel_api::FreeForm;
use evenkeel_rest::body::Summary;
use evenkeel_rest::json;
use serde_json::Value;

const LOAD_CONFIG_MAP: &str = "afterBeforeLoadConfigMap";

/// The summary as it stands in the status. Numbers that JSON does not have are words there.
pub(super) fn of(summary: &Summary) -> FreeForm {
    json::from_slice(json::to_string(summary).as_bytes()).unwrap_or_default()
}

/// The same with the name of the ConfigMap, if there is one.
pub(super) fn beside(mut result: FreeForm, config_map: Option<&str>) -> FreeForm {
    match config_map {
        Some(name) => drop(result.insert(LOAD_CONFIG_MAP.to_owned(), Value::from(name))),
        None => drop(result.remove(LOAD_CONFIG_MAP)),
    }
    result
}

/// The proposal that was shown, if the engine names its proposals.
pub(super) fn proposal_id(result: Option<&FreeForm>) -> Option<String> {
    result?.get("proposalId")?.as_str().map(str::to_owned)
}

/// The megabytes that the proposal moves, between brokers and between disks.
pub(crate) fn megabytes(result: Option<&FreeForm>) -> u64 {
    let figure = |key: &str| result.and_then(|result| result.get(key)?.as_u64()).unwrap_or_default();
    figure("dataToMoveMB").saturating_add(figure("intraBrokerDataToMoveMB"))
}

#[cfg(test)]
mod tests {
    use evenkeel_rest::body::LeftUndone;

    use super::*;

    #[test]
    fn every_key_of_the_summary_is_there_and_the_config_map_too() {
        let summary = Summary {
            data_to_move_mb: 7,
            intra_broker_data_to_move_mb: 3,
            on_demand_balancedness_score_after: 95.5.into(),
            proposal_id: Some("ab12".into()),
            estimated_minutes: Some(4.0.into()),
            left_undone: Some(LeftUndone::default()),
            unmeasured_goals: vec!["CpuUsageDistributionGoal".into()],
            ..Summary::default()
        };
        let result = beside(of(&summary), Some("r"));
        let keys: Vec<&str> = result.keys().map(String::as_str).collect();
        assert_eq!(
            keys,
            [
                "afterBeforeLoadConfigMap",
                "dataToMoveMB",
                "estimatedMinutes",
                "excludedBrokersForLeadership",
                "excludedBrokersForReplicaMove",
                "excludedTopics",
                "intraBrokerDataToMoveMB",
                "leftUndone",
                "monitoredPartitionsPercentage",
                "numIntraBrokerReplicaMovements",
                "numLeaderMovements",
                "numReplicaMovements",
                "onDemandBalancednessScoreAfter",
                "onDemandBalancednessScoreBefore",
                "proposalId",
                "provisionRecommendation",
                "provisionStatus",
                "recentWindows",
                "unmeasuredGoals",
            ]
        );
        assert_eq!(result["onDemandBalancednessScoreAfter"], 95.5);
        assert_eq!((proposal_id(Some(&result)).as_deref(), megabytes(Some(&result))), (Some("ab12"), 10));
        assert_eq!((proposal_id(None), megabytes(None)), (None, 0));
    }

    #[test]
    fn an_engine_without_ids_has_none_and_no_number_is_no_obstacle() {
        let summary = Summary { monitored_partitions_percentage: f64::NAN.into(), ..Summary::default() };
        let result = beside(of(&summary), None);
        assert_eq!((proposal_id(Some(&result)), result.get(LOAD_CONFIG_MAP)), (None, None));
        assert_eq!(result["monitoredPartitionsPercentage"], "NaN");
    }
}
