//! The operator dies between any two of its calls, and the next one brings the story to the same end.

use std::collections::BTreeSet;

use evenkeel_api::rebalance::RebalanceState;
use evenkeel_api::{FreeForm, annotations};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};

use crate::seams::{Death, Fate};
use crate::stage::{Stage, asked, finalizers};

const NAME: &str = "my-rebalance";

/// How a story ended, as far as it must not depend on who died when.
#[derive(Debug, PartialEq)]
struct Ending {
    state: RebalanceState,
    asked: Option<String>,
    finalizers: Vec<String>,
    result: FreeForm,
    keys: BTreeSet<String>,
    percent: Option<String>,
    executions: usize,
    holders: BTreeSet<i32>,
}

/// What a user does.
#[derive(Clone, Copy, Debug)]
enum Story {
    /// Asks, approves, waits.
    Approve,
    /// Approves beforehand.
    Automatic,
    /// Asks, approves, and stops when data moves.
    Stop,
    /// Asks, approves, and has it renewed when data moves, which is approved again.
    Renew,
}

/// Plays a story with an operator that dies once at most. Also what that one sent.
async fn play(story: Story, death: Option<Death>) -> (Ending, Vec<String>) {
    let stage = Stage::new().await;
    let operator = stage.operator_with(Fate::dying(death));
    let fate = operator.fate.clone();
    let watch = async {
        fate.died.notified().await;
        operator.end().await;
        let _next = stage.operator();
        std::future::pending::<()>().await;
    };
    let ending = tokio::select! {
        ending = tell(&stage, story) => ending,
        () = watch => unreachable!("the next operator lives on"),
    };
    (ending, fate.made())
}

async fn tell(stage: &Stage, story: Story) -> Ending {
    let approved = json!({annotations::REBALANCE_AUTO_APPROVAL: "true"});
    let automatic = matches!(story, Story::Automatic);
    stage.create(NAME, |it| it["metadata"]["annotations"] = if automatic { approved } else { json!({}) }).await;
    if !automatic {
        stage.until_state(NAME, RebalanceState::ProposalReady).await;
        stage.ask(NAME, "approve").await;
    }
    match story {
        Story::Approve | Story::Automatic => drop(stage.until_state(NAME, RebalanceState::Ready).await),
        Story::Stop => {
            stage.until_moving(NAME).await;
            stage.ask(NAME, "stop").await;
            stage.until_state(NAME, RebalanceState::Stopped).await;
        }
        Story::Renew => {
            stage.until_moving(NAME).await;
            stage.ask(NAME, "refresh").await;
            stage.until_state(NAME, RebalanceState::ProposalReady).await;
            stage.until("the refresh is heard", || async { asked(&stage.get(NAME).await).is_none() }).await;
            stage.ask(NAME, "approve").await;
            stage.until_state(NAME, RebalanceState::Ready).await;
        }
    }
    let settled = || async {
        let now = stage.get(NAME).await;
        finalizers(&now).is_empty() && asked(&now).is_none()
    };
    stage.until("everything is let go", settled).await;
    // Whoever would do something more has time for it.
    tokio::time::sleep(std::time::Duration::from_secs(300)).await;
    let now = stage.get(NAME).await;
    let data = stage.api::<ConfigMap>().get(NAME).await.unwrap().data.unwrap();
    let mut result = now.status.as_ref().unwrap().optimization_result.clone().unwrap();
    // The name of a proposal is its own.
    assert!(matches!(result.remove("proposalId"), Some(Value::String(_))));
    let stopped = matches!(story, Story::Stop);
    Ending {
        state: now.state(),
        asked: asked(&now),
        finalizers: finalizers(&now),
        result: if matches!(story, Story::Renew) { FreeForm::new() } else { result },
        keys: data.keys().cloned().collect(),
        // How far a run came before it was stopped depends on how long it took to be stopped.
        percent: data.get("completedByteMovementPercentage").filter(|_| !stopped).cloned(),
        executions: stage.executions().await.len(),
        holders: if stopped { BTreeSet::new() } else { stage.brokers.holders() },
    }
}

/// Numbers of the calls to die at: the first of each sort in a row of equal ones.
fn points(made: &[String]) -> Vec<usize> {
    let mut seen = BTreeSet::new();
    let pairs = made.iter().enumerate().map(|(number, call)| (number, call, number.checked_sub(1).map(|it| &made[it])));
    pairs.filter(|(_, call, before)| seen.insert((*call, *before))).map(|(number, ..)| number).collect()
}

async fn dies_everywhere(story: Story) {
    let (expected, made) = play(story, None).await;
    assert_eq!(expected.executions, if matches!(story, Story::Renew) { 2 } else { 1 });
    let points = points(&made);
    assert!(points.len() > 8, "{made:#?}");
    for number in points {
        for death in [Death::Before(number), Death::After(number)] {
            let (ending, _) = play(story, Some(death)).await;
            assert_eq!(ending, expected, "{death:?}: {}", made[number]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_approved_run_comes_to_the_same_end() {
    dies_everywhere(Story::Approve).await;
}

#[tokio::test(start_paused = true)]
async fn an_automatic_run_comes_to_the_same_end() {
    dies_everywhere(Story::Automatic).await;
}

#[tokio::test(start_paused = true)]
async fn a_stopped_run_comes_to_the_same_end() {
    dies_everywhere(Story::Stop).await;
}

#[tokio::test(start_paused = true)]
async fn a_renewed_run_comes_to_the_same_end() {
    dies_everywhere(Story::Renew).await;
}
