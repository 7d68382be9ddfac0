//! Engines that answer later: with a task at first (202), which is followed until there is more to say. For so small a
//! cluster nobody computes for long, so these have something to wait for: a copy on its way to a broker that is to be
//! emptied, over a slow link; or brokers that are far away.

use std::collections::BTreeSet;

use evenkeel_api::rebalance::RebalanceState;
use evenkeel_api::{KafkaRebalance, Reason, annotations};
use serde_json::json;

use crate::cluster::Brokers;
use crate::stage::{Operator, Stage, asked, condition, finalizers, number, warning};

const NAME: &str = "my-rebalance";

/// How often a proposal or an execution was asked for.
fn asked_for_plans(operator: &Operator) -> usize {
    operator.fate.made().iter().filter(|call| call.starts_with("engine POST")).count()
}

fn session(resource: &KafkaRebalance) -> Option<String> {
    resource.status.as_ref()?.session_id.clone()
}

/// Broker 2 is to be emptied while so many partitions are on their way to it, for twenty seconds each. Returns when the
/// engine has said that it is at it, with what was said until then.
async fn emptying(stage: &Stage, on_their_way: i32) -> KafkaRebalance {
    // An engine that has measured too little refuses at once.
    stage.create("first", |_| {}).await;
    stage.until_state("first", RebalanceState::ProposalReady).await;
    stage.brokers.reassign_first(on_their_way, [0, 2]);
    // What was seen before is old by then.
    stage.linger(2).await;
    stage
        .create(NAME, |it| {
            it["spec"]["mode"] = json!("remove-brokers");
            it["spec"]["brokers"] = json!([2]);
        })
        .await;
    stage.until("it has a task", || async { session(&stage.get(NAME).await).is_some() }).await;
    let pending = stage.get(NAME).await;
    assert_eq!(pending.state(), RebalanceState::PendingProposal, "there is a task and no proposal");
    assert!(!stage.brokers.are_at_rest() && !finalizers(&pending).is_empty());
    pending
}

fn slow(stage: Stage) -> Stage {
    stage.on_brokers(Brokers::over_slow_links())
}

pub async fn a_proposal_that_takes_its_time_is_followed_to_its_end(stage: Stage) {
    let stage = slow(stage);
    let operator = stage.operator();
    let pending = emptying(&stage, 1).await;
    let before = asked_for_plans(&operator);
    let ready = stage.until_state(NAME, RebalanceState::ProposalReady).await;
    assert_eq!(session(&ready), session(&pending), "the task that it had all the time");
    assert_eq!(asked_for_plans(&operator), before, "and nobody asked a second time");
    assert!(number(&ready, "numReplicaMovements") >= Some(1));
    assert_eq!(warning(&ready, Reason::CruiseControlRestException), None);
    stage.ask(NAME, "approve").await;
    stage.until_state(NAME, RebalanceState::Ready).await;
    assert!(!stage.brokers.holders().contains(&2), "what had come meanwhile has gone, too");
    assert_eq!(stage.executions().await.len(), 1);
}

pub async fn a_proposal_that_is_refused_in_the_end_says_why(stage: Stage) {
    let stage = slow(stage);
    let _operator = stage.operator();
    emptying(&stage, 4).await;
    let failed = stage.until_state(NAME, RebalanceState::NotReady).await;
    let why = condition(&failed);
    assert!(why.has_reason(Reason::CruiseControlRestException), "{why:?}");
    assert!(why.message.as_ref().is_some_and(|it| it.contains("still being copied to broker 2")), "{why:?}");
    assert!(session(&failed).is_some(), "who looks for it in the engine's log finds it");
    stage.until("it is let go", || async { finalizers(&stage.get(NAME).await).is_empty() }).await;
    stage.until("it has come", || async { stage.brokers.are_at_rest() }).await;
    stage.ask(NAME, "refresh").await;
    stage.until_state(NAME, RebalanceState::ProposalReady).await;
}

pub async fn what_an_engine_was_at_when_it_went_is_asked_for_again(stage: Stage) {
    let mut stage = slow(stage);
    let operator = stage.operator();
    let pending = emptying(&stage, 3).await;
    let before = asked_for_plans(&operator);
    stage.restart_engine();
    let ready = stage.until_state(NAME, RebalanceState::ProposalReady).await;
    assert_ne!(session(&ready), session(&pending), "the next engine has never heard of that one");
    assert!(asked_for_plans(&operator) > before);
    assert!(number(&ready, "numReplicaMovements") >= Some(3), "all that has come meanwhile");
    assert_eq!(stage.executions().await.len(), 0);
}

pub async fn an_operator_that_comes_later_follows_what_was_begun(stage: Stage) {
    let stage = slow(stage);
    let operator = stage.operator();
    let pending = emptying(&stage, 1).await;
    operator.end().await;
    let next = stage.operator();
    let ready = stage.until_state(NAME, RebalanceState::ProposalReady).await;
    assert_eq!(session(&ready), session(&pending));
    assert_eq!(asked_for_plans(&next), 0, "it is in the status which task it is");
}

pub async fn who_stops_does_not_wait_for_a_slow_proposal(stage: Stage) {
    let stage = slow(stage);
    let _operator = stage.operator();
    emptying(&stage, 1).await;
    stage.ask(NAME, "stop").await;
    stage.until_state(NAME, RebalanceState::Stopped).await;
    assert!(!stage.brokers.are_at_rest(), "the engine is still at it");
    // And nobody looks at what comes of it.
    stage.linger(120).await;
    let now = stage.get(NAME).await;
    assert_eq!((now.state(), finalizers(&now)), (RebalanceState::Stopped, vec![]));
    assert_eq!(number(&now, "numReplicaMovements"), None);
}

pub async fn a_deletion_waits_for_a_slow_proposal_and_begins_nothing(stage: Stage) {
    let stage = slow(stage);
    let _operator = stage.operator();
    emptying(&stage, 1).await;
    stage.annotate(NAME, annotations::REBALANCE_AUTO_APPROVAL, "true").await;
    stage.delete(NAME).await;
    stage.until("it is gone", || stage.is_gone(NAME)).await;
    stage.linger(60).await;
    assert_eq!(stage.executions().await.len(), 0);
    assert!(stage.brokers.holders().contains(&2), "nothing was moved off it");
}

/// Asked, looked at, approved and followed; and not one answer is there when it is asked for.
pub async fn an_engine_that_never_answers_at_once_is_as_good_as_another(stage: Stage) {
    let stage = stage.on_brokers(Brokers::new().whose_engine_is_far());
    let operator = stage.operator();
    stage.create(NAME, |_| {}).await;
    let ready = stage.until_state(NAME, RebalanceState::ProposalReady).await;
    assert!(number(&ready, "numReplicaMovements") > Some(0));
    stage.ask(NAME, "approve").await;
    let done = stage.until_state(NAME, RebalanceState::Ready).await;
    stage.until("it is let go", || async { finalizers(&stage.get(NAME).await).is_empty() }).await;
    assert_eq!((asked(&done), stage.executions().await.len()), (None, 1));
    assert_eq!(stage.brokers.holders(), BTreeSet::from([0, 1, 2, 3]));
    let counted = operator.figures.render();
    for call in ["propose", "submit"] {
        assert!(counted.contains(&format!("answer=\"computing\",call=\"{call}\"")), "{call}: {counted}");
    }
}

/// The cluster has changed since the proposal, which the engine says only after it has taken the execution on.
pub async fn an_execution_that_is_refused_in_the_end_has_moved_nothing(stage: Stage) {
    let stage = stage.on_brokers(Brokers::new().whose_engine_is_far());
    let _operator = stage.operator();
    stage.create(NAME, |_| {}).await;
    stage.until_state(NAME, RebalanceState::ProposalReady).await;
    stage.brokers.reassign([0, 2]);
    stage.until("somebody has moved everything", || async { stage.brokers.are_at_rest() }).await;
    stage.ask(NAME, "approve").await;
    stage.until_warned(NAME, Reason::ProposalOutdated).await;
    let renewed = stage.until_state(NAME, RebalanceState::ProposalReady).await;
    assert_eq!(asked(&renewed), None, "the approval was for another one");
    stage.linger(60).await;
    assert_eq!(stage.brokers.holders(), BTreeSet::from([0, 2]));
    assert_eq!(stage.executions().await.len(), 0);
    stage.ask(NAME, "approve").await;
    stage.until_state(NAME, RebalanceState::Ready).await;
    assert_eq!(stage.executions().await.len(), 1);
}

/// The engine goes as soon as it has taken an execution on. Whether it had put the run on record by then is its own affair:
/// it is carried on, or nobody knows what came of it. It is never submitted a second time.
pub async fn an_execution_whose_engine_goes_is_found_again_or_given_up(stage: Stage) {
    let mut stage = stage.on_brokers(Brokers::new().whose_engine_is_far());
    let operator = stage.operator();
    stage.create(NAME, |_| {}).await;
    stage.until_state(NAME, RebalanceState::ProposalReady).await;
    stage.ask(NAME, "approve").await;
    let submitted = || async { operator.fate.made().iter().any(|call| call.ends_with(" executes")) };
    stage.until("it is submitted", submitted).await;
    stage.restart_engine();
    let is_over = || async {
        let state = stage.get(NAME).await.state();
        matches!(state, RebalanceState::Ready | RebalanceState::NotReady)
    };
    stage.until("it is over", is_over).await;
    stage.linger(60).await;
    let submissions = operator.fate.made().iter().filter(|call| call.ends_with(" executes")).count();
    assert_eq!(submissions, 1, "one approval, one submission");
    let over = stage.get(NAME).await;
    assert_eq!(finalizers(&over), Vec::<String>::new());
    match over.state() {
        RebalanceState::Ready => assert_eq!(stage.brokers.holders(), BTreeSet::from([0, 1, 2, 3])),
        _ => {
            assert!(condition(&over).has_reason(Reason::ExecutionOutcomeUnknown), "{:?}", condition(&over));
            assert_eq!(stage.brokers.holders(), BTreeSet::from([0, 1]), "nothing was moved");
        }
    }
}
