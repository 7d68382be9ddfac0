//! The text form beside what a real Cruise Control wrote at the same moment.

use std::path::PathBuf;

use evenkeel_rest::body::state::{MonitorPhase, Phase};
use evenkeel_rest::body::{self, Body};
use evenkeel_rest::request::{self, Request};
use evenkeel_rest::{json, text};
use serde::de::DeserializeOwned;

fn file(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn read<T: DeserializeOwned>(name: &str) -> T {
    json::from_slice(file(&format!("{name}.json")).as_bytes()).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn written(name: &str) -> String {
    file(&format!("text/{name}.txt"))
}

#[test]
fn the_executors_line_is_the_originals() {
    for name in [
        "state-inter-broker-executor",
        "state-intra-broker-executor",
        "state-leader-movement-executor",
        "state-leader-movement-executor-verbose",
        "state-recently-removed-executor",
        "state-recently-demoted-executor",
    ] {
        assert_eq!(read::<body::State>(name).text(), written(name), "{name}");
    }
}

#[test]
fn a_stop_is_told_with_totals_that_json_does_not_have() {
    let mut state: body::State = read("state-stopping-executor");
    let executor = state.executor_state.as_mut().expect("an executor");
    let Phase::Stopping(stopping) = &mut executor.phase else { panic!("stopping") };
    stopping.total_partition_movements = 5;
    stopping.total_leadership_movements = 1;
    assert_eq!(state.text(), written("state-stopping-executor"));
}

#[test]
fn moves_are_listed_by_how_they_stand() {
    let state: body::State = read("state-inter-broker-moving-executor-verbose");
    let (ours, theirs) = (state.text(), written("state-inter-broker-moving-executor-verbose"));
    // The body in the fixtures is shortened, so the original lists more.
    for line in ours.lines() {
        assert!(theirs.contains(line), "{line}");
    }
    assert!(ours.contains("\n\n\nIn progress inter-broker partition movements:\n{EXE_ID: "), "{ours}");
}

#[test]
fn the_monitors_line_is_the_originals() {
    // The second was resumed.
    for name in ["state-paused-monitor", "state-inter-broker-monitor"] {
        let mut state: body::State = read(name);
        state.monitor_state.as_mut().and_then(|it| it.figures.as_mut()).expect("figures").num_total_windows = 3;
        assert_eq!(state.text(), written(name), "{name}");
    }
}

#[test]
fn who_was_never_paused_gives_no_reason_and_who_loads_says_how_far_it_is() {
    let mut state: body::State = read("state-idle");
    assert!(!state.text().contains("reasonOfPauseOrResume"), "{}", state.text());
    let monitor = state.monitor_state.as_mut().expect("a monitor");
    (monitor.state, monitor.loading_progress_pct) = (MonitorPhase::Loading, Some(42.5.into()));
    assert!(state.text().contains(", flawedPartitions: 0, loadingProgress: 42.500%"), "{}", state.text());
}

#[test]
fn the_detectors_line_has_every_part() {
    let state: body::State = read("state-broker-failure");
    let text = state.text();
    for part in [
        "AnomalyDetectorState: {selfHealingEnabled:[], selfHealingDisabled:[",
        "selfHealingEnabledRatio:{BROKER_FAILURE=0.0, ",
        "recentMetricAnomalies:[], recentDiskFailures:[], recentTopicAnomalies:[], recentMaintenanceEvents:[], metrics:{",
        "meanTimeToStartFix:0.00 milliseconds, numSelfHealingStarted:0, numSelfHealingFailedToStart:0, ongoing",
        "ongoingSelfHealingAnomaly:None, balancednessScore:",
        "AnalyzerState: {isProposalReady: ",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn loads_are_tables() {
    assert_eq!(read::<body::Load>("load").text(), written("load"));
    let mut disks: Vec<String> = read::<body::Load>("load-disk-info").text().lines().map(str::to_owned).collect();
    let mut expected: Vec<String> = written("load-disk-info").lines().map(str::to_owned).collect();
    // The order of log directories is arbitrary in the original.
    disks.sort();
    expected.sort();
    assert_eq!(disks, expected);
}

#[test]
fn the_cluster_is_several_tables() {
    assert_eq!(read::<body::ClusterState>("kafka_cluster_state").text(), written("kafka_cluster_state"));
}

#[test]
fn progress_is_a_line_for_each_step() {
    let progress: body::Progress = read("202-rebalance-last");
    let first_of = |text: &str| text.lines().take(6).map(without_times).collect::<Vec<_>>();
    assert_eq!(first_of(&progress.text()), first_of(&written("202-rebalance-last")));
}

/// Two requests do not take equally long.
fn without_times(line: &str) -> String {
    line.chars().filter(|c| !c.is_ascii_digit() && *c != ' ').collect()
}

#[test]
fn short_answers_are_short() {
    assert_eq!(read::<body::AdminAnswer>("admin-concurrency-idle").text(), written("admin-concurrency-idle"));
    assert_eq!(read::<body::Permissions>("permissions-admin").text(), "ADMIN");
    assert_eq!(body::Message::sampling_resumed().text(), "Metric sampling resumed.");
    let error: body::ErrorBody = read("error-unknown-parameter");
    assert_eq!(error.text(), "Unrecognized endpoint parameters in STATE GET request: [nosuch].");
}

#[test]
fn tasks_are_a_table() {
    let tasks: body::UserTasks = read("user_tasks-completed");
    let text = tasks.text();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some(""));
    assert!(lines.next().is_some_and(|line| line.starts_with(
        "USER TASK ID                          CLIENT ADDRESS        START TIME            STATUS      REQUEST URL"
    )));
    assert!(lines.next().is_some_and(|line| line.starts_with(
        "42073e05-9187-4b24-90d4-86325710a10f  127.0.0.1             2026-11-15T20:19:04Z  Completed   POST /kafkacruise"
    )));
    assert_eq!(lines.next(), Some("Original response for task 42073e05-9187-4b24-90d4-86325710a10f:"));
}

#[test]
fn whatever_somebody_gives_as_a_reason_stays_on_its_line() {
    let mut tasks: body::UserTasks = read("user_tasks-completed");
    let lines = tasks.text().lines().count();
    tasks.user_tasks[0].request_url.push_str("&reason=a\nb\u{1b}[2J");
    assert_eq!(tasks.text().lines().count(), lines);
    assert!(tasks.text().contains("&reason=a b [2J"), "{}", tasks.text());
    let mut state: body::State = read("state-inter-broker-executor");
    let trigger = state.executor_state.as_mut().and_then(|it| it.trigger.as_mut()).expect("a reason");
    trigger.triggered_task_reason = "a\nb".to_owned();
    assert!(state.text().ends_with("triggeredTaskReason: a b}\n"), "{}", state.text());
}

#[test]
fn a_plan_is_told_with_its_numbers() {
    let result: body::OptimizationResult = read("rebalance-dryrun-verbose");
    let text = result.text(&text::load_heading(&request::Rebalance::default().into()));
    for line in [
        "Optimization has 9 inter-broker replica(34 MB) moves, 0 intra-broker replica(0 MB) moves and 2 leadership moves \
         with a cluster model of 3 recent windows and 100.000% of the partitions covered.",
        "Excluded Topics: [].",
        "Excluded Brokers For Leadership: [].",
        "Excluded Brokers For Replica Move: [].",
        "Counts: 4 brokers 50 replicas 7 topics.",
        "On-demand Balancedness Score Before (60.564) After(88.022).",
        "Provision Status: RIGHT_SIZED.",
        "Current load:",
        "Cluster load after rebalance:",
        "AVG:{cpu:       2.990 networkInbound:       0.651 networkOutbound:       0.591 disk:      29.210 potentialNwOut:       \
         1.181 replicas:12.5 leaderReplicas:6.5 topicReplicas:1.7857142857142858}",
    ] {
        assert!(text.lines().any(|it| it == line), "{line}\n{text}");
    }
    assert!(
        text.starts_with("[{__KafkaCruiseControlModelTrainingSamples-1, oldLeader: 2, [2, 1] -> [2, 3]}, "),
        "{text}"
    );
    assert!(text.contains(" ms] Stats for RackAwareGoal(FIXED):\n"));
    assert!(!text.contains("Proposal: "));
}

#[test]
fn what_is_ours_is_told_too() {
    let mut result: body::OptimizationResult = read("rebalance-dryrun");
    result.summary.proposal_id = Some("ab12".to_owned());
    result.summary.estimated_minutes = Some(2.5.into());
    result.summary.left_undone = Some(body::LeftUndone { num_changes: 3, data_to_move_mb: 40 });
    result.summary.unmeasured_goals = vec!["CpuCapacityGoal".to_owned()];
    let expected = "Proposal: ab12.\nEstimated Time: 2.5 minutes.\nLeft Undone: 3 changes (40 MB).\n\
                    Goals Left Out (not measured): [CpuCapacityGoal].\n";
    assert!(result.text("x").contains(expected));
    assert!(!result.json().contains("\"goal\":null"));
}

#[test]
fn headings_name_what_was_asked_for() {
    let brokers = || [2, 3].into_iter().collect();
    let disks = [(0, ["/d".to_owned()].into_iter().collect())].into_iter().collect();
    let cases: [(Request, &str); 6] = [
        (request::Proposals::default().into(), "Optimized load:"),
        (
            request::AddBroker { brokerid: brokers(), ..Default::default() }.into(),
            "Cluster load after adding broker [2, 3]:",
        ),
        (
            request::RemoveBroker { brokerid: brokers(), ..Default::default() }.into(),
            "Cluster load after removing broker [2, 3]:",
        ),
        (
            request::DemoteBroker { brokerid: brokers(), ..Default::default() }.into(),
            "Cluster load after demoting broker [2, 3]:",
        ),
        (request::FixOfflineReplicas::default().into(), "Cluster load after fixing offline replicas:"),
        (
            request::RemoveDisks { brokerid_and_logdirs: disks, ..Default::default() }.into(),
            "Cluster load after removing disks {0=[/d]}:",
        ),
    ];
    for (request, heading) in cases {
        assert_eq!(text::load_heading(&request), heading);
    }
}
