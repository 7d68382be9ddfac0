//! The keys of a running engine's answers beside those that a real Cruise Control sent in the same situation: all that
//! differs is written down here.

use std::{collections::BTreeSet, fmt::Write as _, path::Path, time::Duration};

use evenkeel_engine::journal::topic::TOPIC;
use evenkeel_rest::{body::state::Phase, json};
use evenkeel_sim::{BrokerId, cluster::Fault};
use expect_test::expect;
use serde_json::Value;

use crate::lives::{self, Life, between_disks, crowded, removing, spread};
use crate::stage::Stage;

const EXECUTOR: &str = "state?json=true&substates=executor";
const EXECUTOR_VERBOSE: &str = "state?json=true&substates=executor&verbose=true";

/// What is answered in the end.
async fn answer(life: &Life, method: &str, path: &str) -> Value {
    let (status, body) = life.answered(method, path).await;
    assert_eq!(status, 200, "{path}: {body}");
    json::from_slice(body.as_bytes()).unwrap()
}

/// What a real one sent.
fn captured(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../rest/tests/fixtures").join(format!("{name}.json"));
    json::from_slice(&std::fs::read(&path).unwrap()).unwrap()
}

/// What a real one wrote where text was asked for.
fn written(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../rest/tests/fixtures/text").join(format!("{name}.txt"));
    std::fs::read_to_string(&path).unwrap()
}

/// A text without what is different in each cluster: numbers, names of tasks, reasons, and how wide columns are.
fn form(text: &str) -> Vec<String> {
    let plain = |word: &str| {
        let is_task = word.trim_end_matches(',').parse::<uuid::Uuid>().is_ok();
        let mut form = String::new();
        for letter in if is_task { "#".chars() } else { word.chars() } {
            let is_figure = letter.is_ascii_digit() || letter == '.' && form.ends_with('#');
            match is_figure {
                true if form.ends_with('#') => {}
                true => form.push('#'),
                false => form.push(letter),
            }
        }
        form.trim_end_matches(',').to_owned()
    };
    let line = |line: &str| {
        let (said, rest) = line.split_once("eason: ").or(line.split_once("eOrResume: ")).unwrap_or((line, ""));
        let rest = rest.split_once("Z)").map_or(rest, |(_, rest)| rest);
        [said, rest].concat().split_whitespace().map(plain).collect::<Vec<_>>().join(" ")
    };
    text.lines().map(line).collect()
}

/// The lines that have no figures: headings of tables, and names of lists.
fn headings(text: &str) -> Vec<String> {
    form(text).into_iter().filter(|line| !line.is_empty() && !line.contains(['#', '['])).collect()
}

/// What is answered in the end where text is asked for.
async fn said(life: &Life, method: &str, path: &str) -> String {
    let (status, text) = life.answered(method, path).await;
    assert_eq!(status, 200, "{path}: {text}");
    text
}

/// Whether the line of the executor is as a real one's.
async fn says(life: &Life, fixture: &str) {
    let text = said(life, "GET", "state?substates=executor").await;
    assert_eq!(form(&text), form(&written(fixture)), "{fixture}: {text}");
}

/// All ways to a value, with `#` for ids and times among the keys and `/` for directories; lists that are empty are noted, for of what is in them
/// nothing is known.
fn ways(value: &Value, way: &str, all: &mut BTreeSet<String>, empty: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            if members.is_empty() {
                empty.insert(way.to_owned());
            }
            for (key, value) in members {
                let is_number = key.trim_start_matches('-').bytes().all(|byte| byte.is_ascii_digit());
                let name = match key.as_str() {
                    _ if is_number => "#",
                    path if path.starts_with('/') => "/",
                    name => name,
                };
                let way = format!("{way}.{name}");
                ways(value, &way, all, empty);
                all.insert(way);
            }
        }
        Value::Array(list) => {
            if list.is_empty() {
                empty.insert(way.to_owned());
            }
            list.iter().for_each(|value| ways(value, &format!("{way}[]"), all, empty));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// One line for each way that only one of them has.
fn differences(ours: &Value, theirs: &Value) -> String {
    let seen = |value: &Value| {
        let (mut all, mut empty) = (BTreeSet::new(), BTreeSet::new());
        ways(value, "", &mut all, &mut empty);
        (all, empty)
    };
    let ((ours, empty_here), (theirs, empty_there)) = (seen(ours), seen(theirs));
    let mut text = String::new();
    let mut told = |sign: char, here: &BTreeSet<String>, there: &BTreeSet<String>, unknown: &BTreeSet<String>| {
        for way in here.difference(there) {
            // A way is told once, and not all that lies behind it.
            let parent = way.rsplit_once(['.']).map_or("", |(parent, _)| parent.trim_end_matches("[]"));
            let known = there.contains(parent) || parent.is_empty();
            if known && !unknown.iter().any(|empty| way.starts_with(empty.as_str())) {
                let _ = writeln!(text, "  {sign} {}", way.trim_start_matches('.'));
            }
        }
    };
    told('+', &ours, &theirs, &empty_there);
    told('-', &theirs, &ours, &empty_here);
    text
}

async fn compared(life: &Life, situations: &[(&str, &str, &str)]) -> String {
    let mut text = String::new();
    for (fixture, method, path) in situations {
        let found = differences(&answer(life, method, path).await, &captured(fixture));
        let _ = writeln!(text, "{fixture}");
        text.push_str(&found);
    }
    text
}

#[tokio::test(start_paused = true)]
async fn an_idle_engine_answers_as_a_real_one_does() {
    let stage = Stage::new();
    let life = stage.engine();
    life.proposed(&spread()).await;
    for (fixture, path) in [("load", "load"), ("kafka_cluster_state", "kafka_cluster_state")] {
        let text = said(&life, "GET", path).await;
        assert_eq!(headings(&text), headings(&written(fixture)), "{text}");
    }
    let limits = "concurrent_partition_movements_per_broker=7&concurrent_intra_broker_partition_movements=3\
                  &concurrent_leader_movements=50&execution_progress_check_interval_ms=1500";
    assert_eq!(said(&life, "POST", &format!("admin?{limits}")).await, written("admin-concurrency-idle"));
    let goals = "goals=ReplicaDistributionGoal&skip_hard_goal_check=true";
    let found = compared(
        &life,
        &[
            ("state-idle", "GET", "state?json=true"),
            ("state-idle-verbose", "GET", "state?json=true&verbose=true"),
            ("load", "GET", "load?json=true"),
            ("partition_load", "GET", "partition_load?json=true"),
            ("kafka_cluster_state", "GET", "kafka_cluster_state?json=true"),
            ("kafka_cluster_state-verbose", "GET", "kafka_cluster_state?json=true&verbose=true"),
            ("rebalance-dryrun", "POST", &format!("rebalance?json=true&{goals}")),
            ("rebalance-dryrun-verbose", "POST", &format!("rebalance?json=true&verbose=true&{goals}")),
            ("add_broker-dryrun", "POST", &format!("add_broker?json=true&verbose=true&brokerid=3&{goals}")),
            ("remove_broker-dryrun", "POST", &format!("remove_broker?json=true&verbose=true&brokerid=3&{goals}")),
            ("demote_broker-dryrun", "POST", "demote_broker?json=true&verbose=true&brokerid=0"),
            ("admin-concurrency-idle", "POST", "admin?json=true&concurrent_partition_movements_per_broker=7"),
            ("stop_proposal_execution-idle", "POST", "stop_proposal_execution?json=true"),
            ("user_tasks", "GET", "user_tasks?json=true"),
            (
                "admin-self-healing-many",
                "POST",
                "admin?json=true&disable_self_healing_for=goal_violation,broker_failure",
            ),
            (
                "admin-drop-recent",
                "POST",
                "admin?json=true&drop_recently_removed_brokers=1,2&drop_recently_demoted_brokers=0",
            ),
            ("pause_sampling", "POST", "pause_sampling?json=true"),
            ("state-paused-monitor", "GET", "state?json=true&verbose=true&substates=monitor"),
        ],
    )
    .await;
    expect![[r#"
        state-idle
        state-idle-verbose
        load
        partition_load
        kafka_cluster_state
        kafka_cluster_state-verbose
        rebalance-dryrun
          + summary.estimatedMinutes
          + summary.proposalId
        rebalance-dryrun-verbose
          + proposals[].bytes
          + proposals[].goal
          + summary.estimatedMinutes
          + summary.proposalId
        add_broker-dryrun
          + proposals[].bytes
          + proposals[].goal
          + summary.estimatedMinutes
          + summary.proposalId
        remove_broker-dryrun
          + proposals[].bytes
          + proposals[].goal
          + summary.estimatedMinutes
          + summary.proposalId
        demote_broker-dryrun
          + proposals[].bytes
          + proposals[].goal
          + summary.estimatedMinutes
          + summary.proposalId
        admin-concurrency-idle
        stop_proposal_execution-idle
        user_tasks
        admin-self-healing-many
        admin-drop-recent
        pause_sampling
        state-paused-monitor
    "#]]
    .assert_eq(&found);
    let text = said(&life, "GET", "state?substates=monitor&verbose=true").await;
    // All windows are one line, and there are more or fewer of them.
    let all_but_windows = |text: &str| form(text).into_iter().take(4).collect::<Vec<_>>();
    assert_eq!(all_but_windows(&text), all_but_windows(&written("state-paused-monitor")), "{text}");
    said(&life, "POST", "resume_sampling").await;
    // It samples at once, and says why when it waits again.
    let text = loop {
        let text = said(&life, "GET", "state?substates=monitor").await;
        if text.contains("RUNNING(") {
            break text;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    };
    assert_eq!(form(&text), form(&written("state-inter-broker-monitor")), "{text}");
}

#[tokio::test(start_paused = true)]
async fn an_engine_at_work_answers_as_a_real_one_does() {
    let stage = Stage::with_session_timeout(24 * 3_600_000);
    // Slow enough to be still at work when all has been asked.
    let life = stage.engine_with("default.replication.throttle=1000000\n");
    life.begun().await;
    let goals = "goals=ReplicaDistributionGoal&skip_hard_goal_check=true";
    let moving = compared(
        &life,
        &[
            ("state-inter-broker-executor", "GET", EXECUTOR),
            ("state-inter-broker-moving-executor-verbose", "GET", EXECUTOR_VERBOSE),
            ("load", "GET", "load?json=true"),
            ("partition_load", "GET", "partition_load?json=true"),
            ("kafka_cluster_state", "GET", "kafka_cluster_state?json=true"),
            ("rebalance-dryrun", "POST", &format!("rebalance?json=true&{goals}")),
            ("user_tasks", "GET", "user_tasks?json=true"),
        ],
    )
    .await;
    expect![[r#"
        state-inter-broker-executor
        state-inter-broker-moving-executor-verbose
        load
        partition_load
        kafka_cluster_state
        rebalance-dryrun
          + summary.estimatedMinutes
          + summary.proposalId
        user_tasks
    "#]]
    .assert_eq(&moving);
    says(&life, "state-inter-broker-executor").await;
    let text = said(&life, "GET", "state?substates=executor&verbose=true").await;
    assert_eq!(headings(&text), headings(&written("state-inter-broker-moving-executor-verbose")), "{text}");

    // It lasts as long as its throttle cannot be lifted from a broker that says nothing.
    let keeper = stage.world.look(|cluster| cluster.registration(TOPIC, 0).unwrap().leader.unwrap());
    let silent = (0..4).map(BrokerId).find(|id| *id != keeper).unwrap();
    stage.world.with(|cluster| cluster.suffer(&Fault::CutLink(silent)));
    life.answered("POST", "stop_proposal_execution?json=true").await;
    life.until("it is being stopped", |phase| matches!(phase, Phase::Stopping(_))).await;
    let stopping = answer(&life, "GET", EXECUTOR_VERBOSE).await;
    says(&life, "state-stopping-executor").await;
    // Whoever wants another one begun instead waits for it.
    let another = "rebalance?json=true&dryrun=false&stop_ongoing_execution=true";
    let waiting = life.answered_first("POST", &format!("{another}&{goals}")).await;
    assert_eq!(waiting.0, 202, "{}", waiting.1);
    let waiting: Value = json::from_slice(waiting.1.as_bytes()).unwrap();
    let captured_waiting = captured("202-stop_ongoing_execution-last");
    assert_eq!(differences(&waiting, &captured_waiting), "");
    assert_eq!(steps(&waiting), steps(&captured_waiting));
    stage.world.with(|cluster| cluster.suffer(&Fault::MendedLink(silent)));
    assert_eq!(differences(&stopping, &captured("state-stopping-executor-verbose")), "");
    life.until("it is over", |phase| *phase == Phase::Idle).await;
    let stopped = compared(
        &life,
        &[(
            "user_tasks-after-stop",
            "GET",
            "user_tasks?json=true&types=COMPLETED_WITH_ERROR&fetch_completed_task=true",
        )],
    )
    .await;
    expect![[r#"
        user_tasks-after-stop
    "#]]
    .assert_eq(&stopped);
}

#[tokio::test(start_paused = true)]
async fn what_was_done_to_brokers_is_told_as_a_real_one_does() {
    let stage = Stage::new();
    let life = stage.engine();
    life.proposed(&spread()).await;
    life.client.ask_and_wait(&removing(3), lives::PATIENCE, Duration::from_secs(1)).await;
    life.until("it is over", |phase| *phase == Phase::Idle).await;
    life.answered("POST", "demote_broker?json=true&brokerid=0&dryrun=false").await;
    life.until("leaders move", |phase| matches!(phase, Phase::Leadership(_))).await;
    let text = said(&life, "GET", "state?substates=executor").await;
    let of_demotion = text.replace(", recentlyRemovedBrokers: [3]", "");
    assert_eq!(form(&of_demotion), form(&written("state-leader-movement-executor")), "{text}");
    let leading = compared(
        &life,
        &[
            ("state-leader-movement-executor", "GET", EXECUTOR),
            ("state-leader-movement-executor-verbose", "GET", EXECUTOR_VERBOSE),
        ],
    )
    .await;
    life.until("it is over", |phase| *phase == Phase::Idle).await;
    let text = said(&life, "GET", "state?substates=executor").await;
    assert_eq!(
        text,
        "ExecutorState: {state: NO_TASK_IN_PROGRESS, recentlyDemotedBrokers: [0], recentlyRemovedBrokers: [3]}\n"
    );
    let remembered = compared(
        &life,
        &[
            ("state-recently-removed-executor", "GET", EXECUTOR),
            ("state-recently-demoted-executor", "GET", EXECUTOR),
            ("user_tasks-completed", "GET", "user_tasks?json=true&types=COMPLETED&fetch_completed_task=true"),
        ],
    )
    .await;
    expect![[r#"
        state-leader-movement-executor
          + ExecutorState.recentlyRemovedBrokers
        state-leader-movement-executor-verbose
          + ExecutorState.recentlyRemovedBrokers
        state-recently-removed-executor
          + ExecutorState.recentlyDemotedBrokers
        state-recently-demoted-executor
          + ExecutorState.recentlyRemovedBrokers
        user_tasks-completed
    "#]]
    .assert_eq(&format!("{leading}{remembered}"));
}

#[tokio::test(start_paused = true)]
async fn a_broker_that_is_gone_is_told_of_as_a_real_one_does() {
    let stage = Stage::new();
    let life = stage.engine_with("broker.failure.detection.interval.ms=10000\n");
    life.proposed(&spread()).await;
    stage.world.with(|cluster| cluster.suffer(&Fault::Crash(BrokerId(1))));
    tokio::time::sleep(Duration::from_secs(60)).await;
    let goals = "goals=ReplicaDistributionGoal&skip_hard_goal_check=true";
    let found = compared(
        &life,
        &[
            ("state-broker-failure", "GET", "state?json=true"),
            ("kafka_cluster_state-broker-failure", "GET", "kafka_cluster_state?json=true&verbose=true"),
            ("load-broker-failure", "GET", "load?json=true"),
            ("fix_offline_replicas-dryrun", "POST", &format!("fix_offline_replicas?json=true&verbose=true&{goals}")),
        ],
    )
    .await;
    expect![[r#"
        state-broker-failure
        kafka_cluster_state-broker-failure
        load-broker-failure
        fix_offline_replicas-dryrun
          + proposals[].bytes
          + proposals[].goal
          + summary.estimatedMinutes
          + summary.proposalId
    "#]]
    .assert_eq(&found);
}

#[tokio::test(start_paused = true)]
async fn directories_are_told_of_as_a_real_one_does() {
    let stage = crowded();
    let life = stage.engine_with_dirs("");
    life.proposed(&spread()).await;
    let planned = compared(
        &life,
        &[
            ("load-disk-info", "GET", "load?json=true&populate_disk_info=true"),
            ("rebalance-dryrun-rebalance_disk", "POST", "rebalance?json=true&verbose=true&rebalance_disk=true"),
            ("remove_disks-dryrun", "POST", "remove_disks?json=true&brokerid_and_logdirs=1-/d0"),
        ],
    )
    .await;
    life.client.ask_and_wait(&between_disks(), lives::PATIENCE, Duration::from_secs(1)).await;
    life.until("directories change", |phase| matches!(phase, Phase::IntraBroker(_))).await;
    says(&life, "state-intra-broker-executor").await;
    let moving = compared(
        &life,
        &[
            ("state-intra-broker-executor", "GET", EXECUTOR),
            ("state-intra-broker-executor-verbose", "GET", EXECUTOR_VERBOSE),
        ],
    )
    .await;
    expect![[r#"
        load-disk-info
        rebalance-dryrun-rebalance_disk
          + summary.proposalId
        remove_disks-dryrun
          + summary.proposalId
        state-intra-broker-executor
        state-intra-broker-executor-verbose
    "#]]
    .assert_eq(&format!("{planned}{moving}"));
}

/// What a 202 is about, and the steps that it tells of.
fn steps(progress: &Value) -> (String, Vec<String>) {
    let one = &progress["progress"][0];
    let names = one["operationProgress"].as_array().unwrap().iter();
    (one["operation"].to_string(), names.map(|step| step["step"].to_string()).collect())
}

/// The same for answers that are no results: they come at once, with this code.
async fn refused(life: &Life, situations: &[(&str, u16, &str, &str)]) {
    for (fixture, code, method, path) in situations {
        let (status, body) = life.answered_first(method, path).await;
        assert_eq!(status, *code, "{fixture}: {body}");
        let (ours, theirs) = (json::from_slice(body.as_bytes()).unwrap(), captured(fixture));
        assert_eq!(differences(&ours, &theirs), "", "{fixture}");
        if *code == 202 {
            let ((what, so_far), (their_what, all)) = (steps(&ours), steps(&theirs));
            assert_eq!(form(&what), form(&their_what), "{fixture}");
            assert!(all.starts_with(&so_far), "{fixture}: {so_far:?}");
        }
        // What clients match on, up to what is different in each cluster.
        let said = |value: &Value| {
            let text = value["errorMessage"].as_str().unwrap_or_default();
            let text = text.split("Supported: [").next().unwrap_or_default();
            text.split(|letter: char| letter.is_ascii_digit()).next().unwrap_or_default().to_owned()
        };
        assert_eq!(said(&ours), said(&theirs), "{fixture}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_no_result_is_told_as_a_real_one_does() {
    let stage = Stage::with_session_timeout(24 * 3_600_000);
    let blind = stage.engine_with("metric.sampler.class=CruiseControlMetricsReporterSampler\n");
    blind.until("the journal is open", |phase| *phase == Phase::Idle).await;
    refused(
        &blind,
        &[
            ("error-not-enough-windows-rebalance", 500, "POST", "rebalance?json=true"),
            ("error-permissions-no-security", 400, "GET", "permissions?json=true"),
            ("error-unknown-parameter", 400, "GET", "state?json=true&nosuch=1"),
        ],
    )
    .await;
    drop(blind);

    let life = stage.engine_with("webserver.request.maxBlockTimeMs=300\nmax.active.user.tasks=1\n");
    life.proposed(&spread()).await;
    let goals = "goals=ReplicaDistributionGoal&skip_hard_goal_check=true";
    refused(
        &life,
        &[
            ("error-unknown-goal", 500, "POST", "rebalance?json=true&goals=NoSuchGoal&skip_hard_goal_check=true"),
            (
                "error-unknown-broker-remove_broker",
                500,
                "POST",
                &format!("remove_broker?json=true&brokerid=99&{goals}"),
            ),
        ],
    )
    .await;
    // It cannot be answered now, so it is told how far it is; and no second one is let in.
    stage.cut(true);
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    refused(
        &life,
        &[
            ("202-rebalance-last", 202, "POST", &format!("rebalance?json=true&{goals}")),
            ("error-too-many-user-tasks", 500, "GET", "load?json=true&capacity_only=true"),
        ],
    )
    .await;
    stage.cut(false);
    tokio::time::sleep(Duration::from_secs(60)).await;
    life.begun().await;
    refused(
        &life,
        &[("error-ongoing-execution-rebalance", 500, "POST", &format!("rebalance?json=true&dryrun=false&{goals}"))],
    )
    .await;
}

/// There is one thread for what takes a moment, and it is taken: a question comes no further than to where loads are put
/// together.
#[test]
fn how_far_a_question_is_is_told_as_a_real_one_does() {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().start_paused(true).max_blocking_threads(1).build().unwrap();
    runtime.block_on(async {
        let stage = Stage::new();
        let life = stage.engine_with("webserver.request.maxBlockTimeMs=300\n");
        life.proposed(&spread()).await;
        let (release, released) = std::sync::mpsc::channel::<()>();
        let taken = tokio::task::spawn_blocking(move || released.recv());
        let asked = refused(&life, &[("202-partition_load-first", 202, "GET", "partition_load?json=true")]);
        // Meanwhile time does not pass by itself.
        let passing = async {
            tokio::task::yield_now().await;
            tokio::time::advance(Duration::from_millis(300)).await;
        };
        tokio::join!(asked, passing);
        release.send(()).unwrap();
        taken.await.unwrap().unwrap();
    });
}
