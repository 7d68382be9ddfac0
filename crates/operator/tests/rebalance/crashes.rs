//! The operator dies between any two of its calls, and the next one brings the story to the same end. So does one that
//! is refused, not answered, or not told of what happens.

use std::collections::BTreeSet;
use std::time::Duration;

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
async fn play(story: Story, fate: Fate) -> (Ending, Vec<String>) {
    let stage = Stage::new().await;
    let operator = stage.operator_with(fate.clone());
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
    tokio::time::sleep(Duration::from_secs(60)).await;
    let now = stage.get(NAME).await;
    let data = stage.api::<ConfigMap>().get(NAME).await.unwrap().data.unwrap();
    let mut result = now.status.as_ref().unwrap().optimization_result.clone().unwrap();
    // The name of a proposal is its own, and its estimate rests on what was measured until that very moment.
    assert!(matches!(result.remove("proposalId"), Some(Value::String(_))));
    assert!(matches!(result.remove("estimatedMinutes"), Some(Value::Number(_))));
    assert!(matches!(result.remove("recentWindows"), Some(Value::Number(_))));
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
    let (expected, made) = play(story, Fate::default()).await;
    assert_eq!(expected.executions, if matches!(story, Story::Renew) { 2 } else { 1 });
    let points = points(&made);
    assert!(points.len() > 8, "{made:#?}");
    // To die before a call leaves the same behind as to die after the one before it.
    let deaths = std::iter::once(Death::Before(0)).chain(points.into_iter().map(Death::After));
    for death in deaths {
        let (ending, _) = play(story, Fate::dying(death)).await;
        assert_eq!(ending, expected, "{death:?} of {made:#?}");
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

/// How many seeds are tried: more of them by `EVENKEEL_SEEDS`, which a soak sets.
fn seeds() -> u64 {
    std::env::var("EVENKEEL_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(8)
}

#[tokio::test(start_paused = true)]
async fn in_bad_weather_every_story_comes_to_its_end() {
    // The others depend on a run being seen while it moves, and in bad weather it may be over before.
    let stories = [Story::Approve, Story::Automatic];
    let mut expected = Vec::new();
    for story in stories {
        expected.push(play(story, Fate::default()).await.0);
    }
    for seed in 0..seeds() {
        let which = (seed % 2) as usize;
        let (ending, made) = play(stories[which], Fate::in_bad_weather(seed)).await;
        assert_eq!(ending, expected[which], "seed {seed}, {:?}: {made:#?}", stories[which]);
    }
}
