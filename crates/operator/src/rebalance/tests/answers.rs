//! What engines say that is not quite what they should say, and what they say too late.

use evenkeel_api::rebalance::RebalanceState::{PendingProposal, ProposalReady, Rebalancing};
use evenkeel_rest::body::state::ExecutorState;
use evenkeel_rest::parameter::TaskStatus;

use super::super::{Heard, Next, Sort, Trouble};
use super::scene::{Engineer, NOW, Scene, execution, task, trouble};

#[test]
fn an_engine_that_speaks_no_tls_is_explained() {
    let source: Box<dyn std::error::Error + Send + Sync> = "received corrupt message of type InvalidContentType".into();
    let mut heard = Heard::default();
    let answer = evenkeel_rest::client::Answer::Unreachable(evenkeel_rest::client::Error::Connect { source });
    heard.looked(evenkeel_rest::client::Reply { task: None, answer });
    let trouble = heard.executor.unwrap().unwrap_err();
    assert!(trouble.sort == Sort::Unreachable && trouble.text.contains("webserver.ssl.enable"), "{}", trouble.text);
}

#[test]
fn a_certificate_of_another_authority_is_explained() {
    let source: Box<dyn std::error::Error + Send + Sync> = "invalid peer certificate: UnknownIssuer".into();
    let mut heard = Heard::default();
    let answer = evenkeel_rest::client::Answer::Unreachable(evenkeel_rest::client::Error::Connect { source });
    heard.looked(evenkeel_rest::client::Reply { task: None, answer });
    let trouble = heard.executor.unwrap().unwrap_err();
    assert_eq!(trouble.sort, Sort::Unreachable);
    assert!(trouble.text.contains("<cluster>-cluster-ca-cert"), "{}", trouble.text);
}

#[test]
fn the_answers_of_the_client_are_understood() {
    use evenkeel_rest::body::{Message, OptimizationResult, State};
    use evenkeel_rest::client::{Answer, Error, Reply};

    use super::super::Plan;

    fn heard(answer: Answer<OptimizationResult>) -> Result<Plan, Trouble> {
        let mut heard = Heard::default();
        heard.submitted(Reply { task: Some(super::scene::id(1)), answer });
        heard.submission.unwrap()
    }
    let plan = super::scene::plan();
    assert_eq!(heard(Answer::Ready(plan.clone())), Ok(Plan { task: Some(super::scene::id(1)), result: Some(plan) }));
    assert_eq!(heard(Answer::Computing(Default::default())).map(|plan| plan.result), Ok(None));
    let sort = |answer| heard(answer).unwrap_err().sort;
    assert_eq!(sort(Answer::NotEnoughData("x".into())), Sort::NotEnoughData);
    assert_eq!(sort(Answer::Busy("x".into())), Sort::Busy);
    assert_eq!(sort(Answer::MissingBroker("x".into())), Sort::NoSuchBroker);
    assert_eq!(sort(Answer::TasksExhausted("x".into())), Sort::TasksExhausted);
    assert_eq!(sort(Answer::ProposalOutdated("x".into())), Sort::Outdated);
    assert_eq!(sort(Answer::NotYet("x".into())), Sort::NotYet);
    assert_eq!(sort(Answer::NotYet(String::new())), Sort::NotYet);
    assert_eq!(sort(Answer::Unauthorised { status: 401 }), Sort::Denied);
    assert_eq!(sort(Answer::Unreachable(Error::Gateway { status: 502 })), Sort::Unreachable);
    assert_eq!(sort(Answer::Unintelligible(Error::TooLarge { limit: 1 })), Sort::Garbled);
    let bare = heard(Answer::Refused { status: 404, message: String::new() }).unwrap_err();
    assert!(bare.text.contains("404"), "{}", bare.text);
    let mut all = Heard::default();
    all.looked(Reply { task: None, answer: Answer::Ready(State::default()) });
    assert_eq!(all.executor.as_ref().unwrap().as_ref().unwrap_err().sort, Sort::Garbled);
    let state = State { executor_state: Some(ExecutorState::default()), ..State::default() };
    all.looked(Reply { task: None, answer: Answer::Ready(state) });
    assert_eq!(all.executor, Some(Ok(ExecutorState::default())));
    all.stopped(Reply { task: None, answer: Answer::Ready(Message::execution_stopped()) });
    assert_eq!(all.stop, Some(Ok(())));
}

/// What an engine may say of its executor that is not quite what it should be.
#[test]
fn a_state_that_lacks_something_is_a_warning_or_counts_for_nothing() {
    use evenkeel_rest::body::State;
    use evenkeel_rest::client::{Reply, classify};

    let looked = |executor: &str| {
        let mut heard = Heard::default();
        let body = format!(r#"{{"ExecutorState": {executor}, "version": 1}}"#);
        heard.looked(Reply { task: None, answer: classify::<State>(200, "application/json", body.as_bytes()) });
        heard.executor.unwrap()
    };
    let moving = "INTER_BROKER_REPLICA_MOVEMENT_TASK_IN_PROGRESS";
    let ours = format!(r#""triggeredUserTaskId": "{}""#, super::scene::id(2));
    let of = |more: &str| format!(r#"{{"state": "{moving}", {ours}, {more}}}"#);
    let rest = r#""numInProgressPartitionMovements": 1, "abortingPartitions": 0, "numFinishedPartitionMovements": 5,
        "numPendingPartitionMovements": 4, "numTotalPartitionMovements": 10, "finishedDataMovement": 500,
        "maximumConcurrentPartitionMovementsPerBroker": 5, "minimumConcurrentPartitionMovementsPerBroker": 5,
        "averageConcurrentPartitionMovementsPerBroker": 5.0"#;
    let because = |reason: &str| of(&format!(r#"{rest}, "totalDataToMove": 1000, "triggeredTaskReason": "{reason}""#));
    // The body, whether it is a Warning, and what the ConfigMap says then of percentage and minutes.
    for (executor, warned, percent, minutes) in [
        (because("x (Client: a, Date: 2025-12-31T23:59:00Z)"), false, "50", Some("1")),
        (because("x (Client: a, Date: 2026-01-01T01:59:00+02:00)"), false, "50", Some("1")),
        // Without a time that can be read it is the task's, which has just come.
        (because("x (Client: a, Date: 2025-12-31T2"), false, "50", None),
        (because("x"), false, "50", None),
        (of(&format!(r#"{rest}, "triggeredTaskReason": "x""#)), true, "0", None),
        (r#"{"error": "Error while retrieving executor state"}"#.to_owned(), true, "0", None),
        (r#"{"state": 7}"#.to_owned(), true, "0", None),
        ("null".to_owned(), true, "0", None),
    ] {
        let mut scene = Scene::rebalancing();
        let before = scene.seen.config_map.clone();
        let said = looked(&executor);
        scene.run(&Engineer { executor: Some(said), ..Engineer::with(&[execution(TaskStatus::InExecution)]) });
        assert_eq!(scene.state(), Rebalancing, "{executor}");
        let warnings = if warned { vec!["CruiseControlRestException"] } else { vec![] };
        assert_eq!(scene.warnings(), warnings, "{executor}");
        assert_eq!(scene.data("completedByteMovementPercentage"), Some(percent), "{executor}");
        assert_eq!(scene.data("estimatedTimeToCompletionInMinutes"), minutes, "{executor}");
        assert_eq!(scene.seen.config_map == before, warned, "as it was: {executor}");
    }
}

#[test]
fn a_proposal_that_takes_too_long_is_warned_of_and_may_be_renewed() {
    let mut scene = Scene::pending();
    let active = Engineer::with(&[task(1, TaskStatus::Active, "x")]);
    scene.run(&active);
    assert_eq!(scene.warnings().len(), 0);
    scene.seen.now = jiff::Timestamp::from_second(NOW + 601).unwrap();
    scene.run(&active);
    assert_eq!((scene.state(), scene.warnings()), (PendingProposal, vec!["CruiseControlRestException"]));
    assert_eq!(scene.run(&active).status, None, "said once");
    assert_eq!(scene.called().iter().filter(|call| **call == "propose").count(), 0);
    scene.run(&Engineer::with(&[task(1, TaskStatus::Completed, "x")]));
    assert_eq!((scene.state(), scene.warnings().len()), (ProposalReady, 0));
}

/// What was waited for before is not its fault.
#[test]
fn a_proposal_is_slow_by_its_own_task() {
    let task_of = |scene: &Scene| {
        let mut active = task(2, TaskStatus::Active, "x");
        active.start_ms = scene.seen.now.as_millisecond();
        active
    };
    let mut waited = Scene::new();
    waited.run(&Engineer::proposes(trouble(Sort::NotEnoughData, "windows")));
    waited.seen.now += jiff::SignedDuration::from_secs(1200);
    waited.run(&Engineer::proposes(Engineer::computing(2)));
    let mut renewed = Scene::pending();
    renewed.seen.now += jiff::SignedDuration::from_secs(1200);
    renewed.ask("refresh");
    renewed.run(&Engineer::proposes(Engineer::computing(2)));
    for mut scene in [waited, renewed] {
        let active = Engineer::with(&[task_of(&scene)]);
        let next = scene.run(&active).next;
        assert_eq!((scene.state(), scene.warnings().len()), (PendingProposal, 0));
        assert_eq!(next, Next::After(std::time::Duration::from_secs(3)));
        let mut deleted = scene.clone();
        deleted.delete();
        deleted.run(&active);
        assert_eq!(deleted.state(), PendingProposal, "it is waited for");
        scene.seen.now += jiff::SignedDuration::from_secs(601);
        scene.run(&active);
        assert_eq!(scene.warnings(), ["CruiseControlRestException"]);
    }
    // An engine whose clock is wrong is not slow.
    let mut scene = Scene::pending();
    for start_ms in [0, NOW * 1000 + 3_600_000] {
        let mut active = task(1, TaskStatus::Active, "x");
        active.start_ms = start_ms;
        scene.run(&Engineer::with(&[active]));
        assert_eq!(scene.warnings().len(), 0, "{start_ms}");
    }
}

#[test]
fn an_execution_that_is_planned_for_too_long_is_warned_of() {
    let mut scene = Scene::rebalancing();
    scene.seen.now = jiff::Timestamp::from_second(NOW + 700).unwrap();
    scene.run(&Engineer::with(&[execution(TaskStatus::Active)]));
    assert_eq!((scene.state(), scene.warnings()), (Rebalancing, vec!["CruiseControlRestException"]));
}
