//! Bodies that a real Cruise Control sent (shortened lists), read and written again: nothing may be lost, nothing added,
//! no type changed.

use std::path::PathBuf;

use evenkeel_rest::body::{self, Body};
use evenkeel_rest::json;
use evenkeel_rest::request::{self, Request};
use serde::de::DeserializeOwned;
use serde_json::Value;

fn fixture(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(format!("{name}.json"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())).trim_end().to_owned()
}

fn read<T: DeserializeOwned>(name: &str) -> T {
    json::from_slice(fixture(name).as_bytes()).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn value(text: &str) -> Value {
    json::from_slice(text.as_bytes()).expect("JSON")
}

/// The same value, of which serde_json also compares whether numbers are whole.
fn comes_back<T: DeserializeOwned + Body>(names: &[&str]) {
    for name in names {
        let written = read::<T>(name).json();
        assert_eq!(value(&written), value(&fixture(name)), "{name}");
    }
}

/// Byte for byte: escapes too. Most bodies cannot be held to this: the order of keys changes from one start of the
/// original to the next, and of two shortest spellings of a number Java may choose the other one.
fn comes_back_exactly<T: DeserializeOwned + Body>(names: &[&str]) {
    for name in names {
        assert_eq!(read::<T>(name).json(), fixture(name), "{name}");
    }
}

#[test]
fn results_of_optimisations() {
    comes_back::<body::OptimizationResult>(&[
        "rebalance-dryrun-verbose",
        "rebalance-dryrun",
        "demote_broker-dryrun",
        "add_broker-dryrun",
        "remove_broker-dryrun",
        "fix_offline_replicas-dryrun",
        "rebalance-dryrun-goals-case",
        "proposals-kafka_assigner",
        "rebalance-dryrun-exclude-demoted",
    ]);
    comes_back::<body::OptimizationResult>(&["rebalance-dryrun-rebalance_disk", "remove_disks-dryrun"]);
}

#[test]
fn loads() {
    comes_back::<body::Load>(&["load", "load-broker-failure"]);
    comes_back::<body::Load>(&["load-disk-info"]);
    comes_back::<body::PartitionLoad>(&["partition_load"]);
}

#[test]
fn what_kafka_says() {
    comes_back::<body::ClusterState>(&[
        "kafka_cluster_state",
        "kafka_cluster_state-verbose",
        "kafka_cluster_state-broker-failure",
        "kafka_cluster_state-starting",
    ]);
}

#[test]
fn user_tasks() {
    comes_back_exactly::<body::UserTasks>(&[
        "user_tasks",
        "user_tasks-completed",
        "user_tasks-unknown-id",
        "user_tasks-after-stop",
    ]);
    let tasks: body::UserTasks = read("user_tasks-completed");
    let plan = tasks.user_tasks[0].optimization_result().expect("a plan");
    assert_eq!(plan.summary.num_replica_movements, 10);
}

#[test]
fn states() {
    comes_back::<body::State>(&[
        "state-idle",
        "state-idle-verbose",
        "state-starting-verbose",
        "state-paused-monitor",
        "state-inter-broker-monitor",
        "state-broker-failure",
        "state-recently-demoted-executor",
        "state-recently-removed-executor",
        "state-inter-broker-executor",
        "state-inter-broker-moving-executor-verbose",
        "state-intra-broker-executor",
        "state-intra-broker-executor-verbose",
        "state-leader-movement-executor",
        "state-leader-movement-executor-verbose",
        "state-stopping-executor",
        "state-stopping-executor-verbose",
    ]);
}

#[test]
fn states_that_were_not_seen() {
    for text in [
        r#"{"ExecutorState":{"state":"GENERATING_PROPOSALS_FOR_EXECUTION","triggeredTaskReason":"r","triggeredSelfHealingTaskId":"","triggeredUserTaskId":"u"},"version":1}"#,
        r#"{"ExecutorState":{"state":"INITIALIZING_PROPOSAL_EXECUTION","triggeredTaskReason":"r","triggeredSelfHealingTaskId":"a","triggeredUserTaskId":""},"version":1}"#,
        r#"{"ExecutorState":{"state":"STARTING_EXECUTION","triggeredTaskReason":"r","triggeredSelfHealingTaskId":"","triggeredUserTaskId":"u"},"version":1}"#,
        r#"{"MonitorState":{"state":"NOT_STARTED","error":"ILLEGAL_STATE_EXCEPTION"},"version":1}"#,
        r#"{"AnomalyDetectorState":{"recentBrokerFailures":[],"recentGoalViolations":[],"selfHealingDisabled":[],"balancednessScore":-1.0,"selfHealingEnabled":["DISK_FAILURE"],"recentDiskFailures":[{"anomalyId":"i","failedDisksByTimeMs":{"2":{"/d":5}},"detectionMs":1,"statusUpdateMs":2,"status":"FIX_STARTED","optimizationResult":"o"}],"metrics":{"meanTimeBetweenAnomaliesMs":{},"ongoingAnomalyDurationMs":0,"numSelfHealingStarted":1,"numSelfHealingFailedToStart":0,"meanTimeToStartFixMs":NaN},"recentMetricAnomalies":[],"recentTopicAnomalies":[{"anomalyId":"i","description":"d","detectionMs":1,"statusUpdateMs":2,"status":"IGNORED"}],"selfHealingEnabledRatio":{"DISK_FAILURE":1.0},"recentMaintenanceEvents":[],"ongoingSelfHealingAnomaly":"i"},"version":1}"#,
    ] {
        let state: body::State = json::from_slice(text.as_bytes()).expect("a state");
        assert_eq!(value(&state.json()), value(text));
    }
}

#[test]
fn a_state_from_the_future_does_not_hurt() {
    let text = r#"{"ExecutorState":{"state":"RESTING","since":5},"NewState":{},"version":2}"#;
    let state: body::State = json::from_slice(text.as_bytes()).expect("a state");
    assert_eq!(state.executor_state.expect("an executor").phase, body::state::Phase::Unknown);
}

#[test]
fn progress() {
    comes_back::<body::Progress>(&[
        "202-rebalance-last",
        "202-partition_load-first",
        "202-stop_ongoing_execution-last",
    ]);
    let progress: body::Progress = read("202-rebalance-last");
    let steps = [
        body::Step::Pending,
        body::Step::WaitingForClusterModel,
        body::Step::AggregatingMetrics,
        body::Step::GeneratingClusterModel,
        body::Step::Optimizing("RackAwareGoal".to_owned()),
    ];
    for (seen, step) in progress.progress[0].operation_progress.iter().zip(steps) {
        assert_eq!(*seen, step.progress(seen.time_in_ms, 100.0));
    }
    assert_eq!(progress.progress[0].operation, Request::from(request::Rebalance::default()).operation(0));
    let progress: body::Progress = read("202-partition_load-first");
    let asked = Request::from(request::PartitionLoad::default());
    assert_eq!(progress.progress[0].operation, asked.operation(1_794_774_154_204));
}

#[test]
fn short_answers() {
    comes_back::<body::AdminAnswer>(&[
        "admin-self-healing-many",
        "admin-concurrency-idle",
        "admin-adjuster-on",
        "admin-min-isr",
        "admin-drop-recent",
    ]);
    comes_back::<body::Permissions>(&["permissions-admin"]);
    comes_back::<body::Message>(&["pause_sampling", "stop_proposal_execution-idle"]);
    assert_eq!(body::Message::sampling_paused(), read("pause_sampling"));
    assert_eq!(body::Message::execution_stopped(), read("stop_proposal_execution-idle"));
}

#[test]
fn what_admin_says_is_what_the_original_says() {
    let seen: body::AdminAnswer = read("admin-concurrency-idle");
    let lines = [
        ("concurrent_partition_movements_per_broker", 7),
        ("concurrent_intra_broker_partition_movements", 3),
        ("concurrent_leader_movements", 50),
        ("execution_progress_check_interval_ms", 1500),
    ]
    .map(|(name, value)| body::AdminAnswer::concurrency_line(name, value));
    assert_eq!(seen.ongoing_concurrency_change_request, Some(lines.concat()));
    let seen: body::AdminAnswer = read("admin-drop-recent");
    let lines = [("removed", [1, 2].as_slice()), ("demoted", &[0])]
        .map(|(history, asked)| body::AdminAnswer::dropped_line(history, asked, &[], &[]));
    assert_eq!(seen.drop_recent_brokers_request, Some(lines.concat()));
    let seen: body::AdminAnswer = read("admin-min-isr");
    assert_eq!(seen.min_isr_based_concurrency_adjustment_request, Some(body::AdminAnswer::min_isr_line(false, true)));
}

#[test]
fn errors() {
    comes_back::<body::ErrorBody>(&[
        "error-unknown-parameter",
        "error-not-enough-windows-rebalance",
        "error-unknown-broker-remove_broker",
        "error-ongoing-execution-rebalance",
        "error-too-many-user-tasks",
        "error-unknown-goal",
        "error-permissions-no-security",
    ]);
}

#[test]
fn hosts_are_the_sums_of_their_brokers() {
    let load: body::Load = read("load");
    assert_eq!(body::HostLoad::of(&load.brokers), load.hosts);
    let mut one_host = load.brokers.clone();
    one_host[1].host = one_host[0].host.clone();
    let hosts = body::HostLoad::of(&one_host);
    assert_eq!(hosts.len(), 1);
    assert_eq!(hosts[0].replicas, one_host[0].replicas + one_host[1].replicas);
    assert_eq!(hosts[0].disk_mb.0, one_host[0].disk_mb.0 + one_host[1].disk_mb.0);
}

#[test]
fn what_is_ours_is_absent_unless_said() {
    let mut result: body::OptimizationResult = read("rebalance-dryrun");
    assert_eq!(result.summary.proposal_id, None);
    result.summary.proposal_id = Some("ab12".to_owned());
    result.summary.estimated_minutes = Some(2.5.into());
    result.summary.left_undone = Some(body::LeftUndone { num_changes: 3, data_to_move_mb: 40 });
    result.summary.unmeasured_goals = vec!["CpuCapacityGoal".to_owned()];
    let written = value(&result.json());
    assert_eq!(written["summary"]["proposalId"], "ab12");
    assert_eq!(written["summary"]["estimatedMinutes"], 2.5);
    assert_eq!(written["summary"]["leftUndone"]["dataToMoveMB"], 40);
    assert_eq!(written["summary"]["unmeasuredGoals"][0], "CpuCapacityGoal");
    assert_eq!(json::from_slice::<body::OptimizationResult>(result.json().as_bytes()).expect("readable"), result);
}
