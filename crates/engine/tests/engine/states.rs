//! Every endpoint in every state that an engine can be in: with which code it answers, and with which kind of error.

use std::{collections::BTreeMap, fmt::Write as _, time::Duration};

use evenkeel_engine::journal::topic::TOPIC;
use evenkeel_rest::{Answer, body::state::Phase, parameter::TaskStatus};
use evenkeel_sim::{
    BrokerId,
    cluster::{Fault, NewTopic},
};
use expect_test::expect;
use serde_json::{Value, json};

use crate::lives::{Life, PATIENCE, between_disks, crowded, executing, spread, task};
use crate::stage::{MB, Stage, mv};

const COUNTING: &str = "goals=ReplicaDistributionGoal&skip_hard_goal_check=true";
/// The original's way to measure, which knows nothing before brokers report: and these never do.
const BLIND: &str = "metric.sampler.class=CruiseControlMetricsReporterSampler\n";

/// What is asked, in this order; what would end a state comes last, and nothing else is carried out.
fn questions() -> Vec<(&'static str, String)> {
    let counted = |endpoint: &str, more: &str| format!("{endpoint}?json=true&{COUNTING}{more}");
    vec![
        ("GET", "state?json=true".to_owned()),
        ("GET", "state?json=true&substates=executor".to_owned()),
        ("GET", "load?json=true".to_owned()),
        ("GET", "load?json=true&capacity_only=true".to_owned()),
        ("GET", "partition_load?json=true".to_owned()),
        ("GET", "proposals?json=true&goals=ReplicaDistributionGoal".to_owned()),
        ("GET", "kafka_cluster_state?json=true".to_owned()),
        ("GET", "user_tasks?json=true".to_owned()),
        ("GET", "permissions?json=true".to_owned()),
        ("GET", "review_board?json=true".to_owned()),
        ("GET", "bootstrap?json=true".to_owned()),
        ("GET", "train?json=true".to_owned()),
        ("POST", counted("rebalance", "")),
        ("POST", counted("add_broker", "&brokerid=2")),
        ("POST", counted("remove_broker", "&brokerid=1")),
        ("POST", counted("fix_offline_replicas", "")),
        ("POST", "demote_broker?json=true&brokerid=0".to_owned()),
        ("POST", "remove_disks?json=true&brokerid_and_logdirs=0-/d0".to_owned()),
        ("POST", "admin?json=true&concurrent_leader_movements=3".to_owned()),
        ("POST", "admin?json=true&drop_recently_removed_brokers=3".to_owned()),
        ("POST", "review?json=true".to_owned()),
        ("POST", "rightsize?json=true".to_owned()),
        ("POST", "topic_configuration?json=true".to_owned()),
        ("POST", "resume_sampling?json=true".to_owned()),
        ("POST", "pause_sampling?json=true".to_owned()),
        ("POST", "stop_proposal_execution?json=true".to_owned()),
    ]
}

/// A code, and of an error what kind it is: the last exception named.
async fn heard(life: &Life, method: &str, path: &str) -> String {
    let (status, body) = life.answered(method, path).await;
    let body: Value = evenkeel_rest::json::from_slice(body.as_bytes()).unwrap();
    assert_eq!(body["version"], 1, "{path}");
    let message = body["errorMessage"].as_str().unwrap_or_default();
    let mut classes = message.split([' ', ':', '\'']).filter(|word| word.ends_with("Exception"));
    match classes.next_back().and_then(|class| class.rsplit('.').next()) {
        Some(class) => format!("{status} {}", class.trim_end_matches("Exception")),
        None => status.to_string(),
    }
}

/// Answers by question: how they are in this state.
type Answers = BTreeMap<usize, String>;

async fn all(life: &Life) -> Answers {
    all_while(life, async || {}).await
}

/// The same; before the last question, which may end the state, it is looked whether it is still there.
async fn all_while(life: &Life, is_so: impl AsyncFnOnce()) -> Answers {
    let (mut answers, questions) = (Answers::new(), questions());
    let (last, first) = questions.split_last().unwrap();
    for (number, (method, path)) in first.iter().enumerate() {
        answers.insert(number, heard(life, method, path).await);
    }
    is_so().await;
    answers.insert(first.len(), heard(life, last.0, &last.1).await);
    answers
}

#[tokio::test(start_paused = true)]
async fn every_endpoint_answers_in_every_state() {
    let mut states: Vec<(&str, Answers)> = Vec::new();

    let stage = Stage::new();
    stage.cut(true);
    let life = stage.engine();
    tokio::time::sleep(Duration::from_secs(30)).await;
    states.push(("Kafka never seen", all(&life).await));
    drop(life);
    stage.cut(false);

    states.push(("loading", loading().await));

    let life = stage.engine_with(BLIND);
    life.until("the journal is open", |phase| *phase == Phase::Idle).await;
    states.push(("nothing measured", all(&life).await));
    // It was paused by the last but one, and would be in its next life too.
    life.answered("POST", "resume_sampling").await;
    drop(life);

    let life = stage.engine();
    life.proposed(&spread()).await;
    states.push(("idle", all(&life).await));
    // It was paused by the last but one.
    states.push(("paused", all(&life).await));
    life.answered("POST", "resume_sampling").await;

    life.begun().await;
    states.push(("moving", all(&life).await));
    life.until("it is stopped", |phase| *phase == Phase::Idle).await;
    life.answered("POST", "resume_sampling").await;

    stage.world.with(|cluster| cluster.suffer(&Fault::Crash(BrokerId(3))));
    tokio::time::sleep(Duration::from_secs(30)).await;
    states.push(("broker 3 down", all(&life).await));
    life.answered("POST", "resume_sampling").await;
    stage.world.with(|cluster| cluster.suffer(&Fault::Return(BrokerId(3))));
    tokio::time::sleep(Duration::from_secs(30)).await;

    stage.cut(true);
    tokio::time::sleep(Duration::from_secs(30)).await;
    states.push(("Kafka lost", all(&life).await));
    stage.cut(false);
    tokio::time::sleep(Duration::from_secs(60)).await;
    // It was paused by the last but one, which is on record as soon as it can be.
    life.answered("POST", "resume_sampling").await;

    let newer = stage.engine();
    newer.proposed(&spread()).await;
    tokio::time::sleep(Duration::from_secs(15)).await;
    states.push(("replaced", all(&life).await));

    states.push(("generating", generating().await));
    states.push(("between disks", between_directories().await));
    states.push(("leading", leading().await));
    states.push(("stopping", stopping().await));

    expect![[r#"
        GET state
            200: always
        GET state?substates=executor
            503 IllegalState: Kafka never seen, replaced
            200: loading, nothing measured, idle, paused, moving, broker 3 down, Kafka lost, generating, between disks, leading, stopping
        GET load
            503 IllegalState: Kafka never seen, replaced
            500 NotEnoughValidWindows: loading, nothing measured
            200: idle, paused, moving, broker 3 down, Kafka lost, generating, between disks, leading, stopping
        GET load?capacity_only=true
            503 IllegalState: Kafka never seen, Kafka lost, replaced
            200: loading, nothing measured, idle, paused, moving, broker 3 down, generating, between disks, leading, stopping
        GET partition_load
            503 IllegalState: Kafka never seen, replaced
            500 NotEnoughValidWindows: loading, nothing measured
            200: idle, paused, moving, broker 3 down, Kafka lost, generating, between disks, leading, stopping
        GET proposals?goals=ReplicaDistributionGoal
            503 IllegalState: Kafka never seen, Kafka lost, replaced
            500 NotEnoughValidWindows: loading, nothing measured
            200: idle, paused, moving, broker 3 down, generating, between disks, leading, stopping
        GET kafka_cluster_state
            503 IllegalState: Kafka never seen, Kafka lost, replaced
            200: loading, nothing measured, idle, paused, moving, broker 3 down, generating, between disks, leading, stopping
        GET user_tasks
            503 IllegalState: Kafka never seen, replaced
            200: loading, nothing measured, idle, paused, moving, broker 3 down, Kafka lost, generating, between disks, leading, stopping
        GET permissions
            503 IllegalState: Kafka never seen, replaced
            400: loading, nothing measured, idle, paused, moving, broker 3 down, Kafka lost, generating, between disks, leading, stopping
        GET review_board
            403: always
        GET bootstrap
            501: always
        GET train
            501: always
        POST rebalance
            503 IllegalState: Kafka never seen, Kafka lost, replaced
            500 NotEnoughValidWindows: loading, nothing measured
            200: idle, paused, moving, broker 3 down, generating, between disks, leading, stopping
        POST add_broker?&brokerid=2
            503 IllegalState: Kafka never seen, Kafka lost, replaced
            500 NotEnoughValidWindows: loading, nothing measured
            200: idle, paused, moving, generating, between disks, leading, stopping
            500 OptimizationFailure: broker 3 down
        POST remove_broker?&brokerid=1
            503 IllegalState: Kafka never seen, Kafka lost, replaced
            500 NotEnoughValidWindows: loading, nothing measured
            200: idle, paused, moving, between disks, leading, stopping
            500 OptimizationFailure: broker 3 down, generating
        POST fix_offline_replicas
            503 IllegalState: Kafka never seen, Kafka lost, replaced
            500 NotEnoughValidWindows: loading, nothing measured
            500 IllegalState: idle, paused, moving, generating, between disks, leading, stopping
            200: broker 3 down
        POST demote_broker?brokerid=0
            503 IllegalState: Kafka never seen, Kafka lost, replaced
            500 NotEnoughValidWindows: loading, nothing measured
            200: idle, paused, moving, broker 3 down, generating, between disks, leading, stopping
        POST remove_disks?brokerid_and_logdirs=0-/d0
            503 IllegalState: Kafka never seen, Kafka lost, replaced
            500 NotEnoughValidWindows: loading, nothing measured
            500 IllegalArgument: idle, paused, moving, broker 3 down, generating, leading, stopping
            200: between disks
        POST admin?concurrent_leader_movements=3
            503 IllegalState: Kafka never seen, replaced
            200: loading, nothing measured, idle, paused, moving, broker 3 down, Kafka lost, generating, between disks, leading, stopping
        POST admin?drop_recently_removed_brokers=3
            503 IllegalState: Kafka never seen, replaced
            200: loading, nothing measured, idle, paused, moving, broker 3 down, Kafka lost, generating, between disks, leading, stopping
        POST review
            403: always
        POST rightsize
            501: always
        POST topic_configuration
            501: always
        POST resume_sampling
            503 IllegalState: Kafka never seen, replaced
            200: loading, nothing measured, idle, paused, moving, broker 3 down, Kafka lost, generating, between disks, leading, stopping
        POST pause_sampling
            503 IllegalState: Kafka never seen, replaced
            200: loading, nothing measured, idle, paused, moving, broker 3 down, Kafka lost, generating, between disks, leading, stopping
        POST stop_proposal_execution
            503 IllegalState: Kafka never seen, Kafka lost, replaced
            200: loading, nothing measured, idle, paused, moving, broker 3 down, generating, between disks, leading, stopping
    "#]]
    .assert_eq(&table(&states));
}

/// While samples of the past are being read: the broker that has them says nothing for now.
async fn loading() -> Answers {
    let stage = Stage::with_session_timeout(24 * 3_600_000);
    let (kept, silent) =
        (["__KafkaCruiseControlPartitionMetricSamples", "__KafkaCruiseControlModelTrainingSamples"], 3);
    stage.world.with(|cluster| {
        for topic in kept {
            cluster.create_topic(&NewTopic::manual(topic, &[&[silent]]), false).unwrap();
        }
        let journal = NewTopic::manual(TOPIC, &[&[0, 1]]).config("cleanup.policy", "compact");
        cluster.create_topic(&journal, false).unwrap();
        cluster.suffer(&Fault::CutLink(BrokerId(silent)));
    });
    let life = stage.engine();
    life.until("the journal is open", |phase| *phase == Phase::Idle).await;
    let answers = all_while(&life, async || {
        let (_, body) = life.answered("GET", "state?json=true&substates=monitor").await;
        let body: Value = evenkeel_rest::json::from_slice(body.as_bytes()).unwrap();
        assert_eq!(body["MonitorState"]["state"], "LOADING");
        assert_eq!(body["MonitorState"]["loadingProgressPct"], 0.0);
        let (_, text) = life.answered("GET", "state?substates=monitor").await;
        assert!(text.contains("LOADING"), "{text}");
        let (status, why) = life.got("/readyz").await;
        assert_eq!(status, 503, "{why}");
    })
    .await;
    stage.world.with(|cluster| cluster.suffer(&Fault::MendedLink(BrokerId(silent))));
    life.answered("POST", "resume_sampling").await;
    life.proposed(&spread()).await;
    answers
}

/// While a plan is being made to be carried out: moves of another tool are taken back before it, and brokers show them for
/// a while longer.
async fn generating() -> Answers {
    let stage = Stage::new();
    stage.crawl();
    let life = stage.engine_with("webserver.request.maxBlockTimeMs=100\n");
    life.proposed(&spread()).await;
    stage.another_tool_moves();
    tokio::time::sleep(Duration::from_secs(5)).await;
    let late = (0..4).map(|id| Fault::StaleMetadata(BrokerId(id), 3_600_000));
    stage.world.with(|cluster| late.for_each(|fault| cluster.suffer(&fault)));
    let reply = life.client.ask(&executing(None)).await;
    assert!(matches!(reply.answer, Answer::Computing(_)), "{:?}", reply.answer);
    let id = task(&reply);
    let answers = all_while(&life, async || {
        let (_, body) = life.answered("GET", "state?json=true&substates=executor").await;
        let body: Value = evenkeel_rest::json::from_slice(body.as_bytes()).unwrap();
        let mut state = body["ExecutorState"].clone();
        let reason = state.as_object_mut().unwrap().remove("triggeredTaskReason").unwrap();
        assert!(reason.as_str().is_some_and(|reason| reason.starts_with("a test (Client: ")), "{reason}");
        let name = "GENERATING_PROPOSALS_FOR_EXECUTION";
        let whole = json!({"state": name, "triggeredUserTaskId": id, "triggeredSelfHealingTaskId": ""});
        assert_eq!(state, whole);
        let (_, text) = life.answered("GET", "state?substates=executor").await;
        let line = format!("ExecutorState: {{state: {name}, triggeredUserTaskId: {id}, triggeredTaskReason: a test (");
        assert!(text.starts_with(&line), "{text}");
        let (status, second) = life.answered("POST", &format!("rebalance?json=true&dryrun=false&{COUNTING}")).await;
        assert!(status == 500 && second.contains("Cannot start a new execution"), "{second}");
        assert_eq!(life.status_of(id).await, Some(TaskStatus::Active));
    })
    .await;
    // It was stopped by the last question, before anything had begun.
    life.until("it is given up", |phase| *phase == Phase::Idle).await;
    assert_eq!(life.status_of(id).await, Some(TaskStatus::CompletedWithError));
    assert_eq!(stage.world.look(|cluster| cluster.list_reassignments(None)), []);
    answers
}

/// While replicas go to other directories, which takes hours.
async fn between_directories() -> Answers {
    let stage = crowded();
    let life = stage.engine_with_dirs("");
    life.proposed(&spread()).await;
    life.client.ask_and_wait(&between_disks(), PATIENCE, Duration::from_secs(1)).await;
    (0..4).for_each(|id| stage.world.with(|cluster| cluster.suffer(&Fault::SlowDisk(BrokerId(id), 1, 0.001))));
    life.until("directories change", |phase| matches!(phase, Phase::IntraBroker(_))).await;
    let answers = all(&life).await;
    life.until("it is over", |phase| *phase == Phase::Idle).await;
    answers
}

/// While leaders change, one at a time.
async fn leading() -> Answers {
    let led = |number: i32| mv(number, [0, 1], [0, 1], MB);
    let stage = Stage::of((0..400).map(led).collect(), 2_000);
    let life = stage.engine();
    life.proposed(&spread()).await;
    life.answered("POST", "demote_broker?json=true&brokerid=0&dryrun=false&concurrent_leader_movements=1").await;
    life.until("leaders change", |phase| matches!(phase, Phase::Leadership(_))).await;
    let answers = all(&life).await;
    life.until("it is over", |phase| *phase == Phase::Idle).await;
    answers
}

/// While a run is being stopped and cannot end, for its throttle cannot be lifted from a broker that says nothing.
async fn stopping() -> Answers {
    let stage = Stage::with_session_timeout(24 * 3_600_000);
    let life = stage.engine();
    life.begun().await;
    // Whether rounds of samples come through then is chance.
    life.answered("POST", "pause_sampling?json=true").await;
    let keeper = stage.world.look(|cluster| cluster.registration(TOPIC, 0).unwrap().leader.unwrap());
    let silent = (0..4).map(BrokerId).find(|id| *id != keeper).unwrap();
    stage.world.with(|cluster| cluster.suffer(&Fault::CutLink(silent)));
    life.answered("POST", "stop_proposal_execution?json=true").await;
    life.until("it is being stopped", |phase| matches!(phase, Phase::Stopping(_))).await;
    let answers = all(&life).await;
    assert!(matches!(life.phase().await, Some(Phase::Stopping(_))), "it was over too soon");
    answers
}

/// A line for each question, with those states together that it is answered alike in.
fn table(states: &[(&str, Answers)]) -> String {
    let mut text = String::new();
    for (number, (method, path)) in questions().iter().enumerate() {
        let mut told: Vec<(String, Vec<&str>)> = Vec::new();
        for (state, answers) in states {
            let answer = answers.get(&number).cloned().unwrap_or_default();
            match told.iter_mut().find(|(earlier, _)| *earlier == answer) {
                Some((_, alike)) => alike.push(state),
                None => told.push((answer, vec![state])),
            }
        }
        let path = path.replace("json=true", "").replace(COUNTING, "").replace("?&", "?");
        let _ = writeln!(text, "{method} {}", path.trim_end_matches(['&', '?']));
        for (answer, alike) in &told {
            let states_told = if told.len() == 1 { "always".to_owned() } else { alike.join(", ") };
            let _ = writeln!(text, "    {answer}: {states_told}");
        }
    }
    text
}
