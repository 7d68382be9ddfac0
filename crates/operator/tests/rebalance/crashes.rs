//! The operator dies between any two of its calls, and the next one brings the story to the same end. So does one that
//! is refused, not answered, or not told of what happens.

use std::collections::BTreeSet;

use evenkeel_api::rebalance::RebalanceState;
use evenkeel_api::{FreeForm, Reason, annotations};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};

use crate::seams::{Death, Fate};
use crate::stage::{Stage, asked, finalizers, warning};

const NAME: &str = "my-rebalance";
/// Whoever comes second.
const OTHER: &str = "another-rebalance";

/// How a story ended, as far as it must not depend on who died when.
#[derive(Debug, PartialEq)]
struct Ending {
    /// None: it is gone.
    state: Option<RebalanceState>,
    asked: Option<String>,
    finalizers: Vec<String>,
    result: FreeForm,
    keys: BTreeSet<String>,
    percent: Option<String>,
    executions: usize,
    holders: BTreeSet<i32>,
}

/// What a user does.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Story {
    /// Asks, approves, waits.
    Approve,
    /// Approves beforehand.
    Automatic,
    /// Asks, approves, and stops when data moves.
    Stop,
    /// Asks, approves, and has it renewed when data moves, which is approved again.
    Renew,
    /// Asks, approves, and deletes it when data moves.
    Delete,
    /// Asks, and deletes it before there is an answer.
    Forsake,
    /// Asks, and approves when somebody else has moved everything; looks at the new proposal, and approves that.
    Outdated,
    /// Asks, approves, and pauses it while data moves, until that is over.
    Pause,
    /// Asks, approves, and asks for another, approved beforehand, when data moves.
    Two,
}

const STORIES: [Story; 9] = [
    Story::Approve,
    Story::Automatic,
    Story::Stop,
    Story::Renew,
    Story::Delete,
    Story::Forsake,
    Story::Outdated,
    Story::Pause,
    Story::Two,
];

impl Story {
    fn deletes(self) -> bool {
        matches!(self, Self::Delete | Self::Forsake)
    }

    /// How often something is carried out in it.
    fn executions(self) -> usize {
        match self {
            Self::Renew | Self::Two => 2,
            Self::Forsake => 0,
            _ => 1,
        }
    }
}

/// Plays a story with an operator that dies once at most. Also what that one sent.
async fn play(story: Story, fate: Fate) -> (Ending, Vec<String>) {
    let stage = Stage::embedded().await;
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
    // What is forsaken would be carried out, if anybody forgot that it is to go.
    let automatic = matches!(story, Story::Automatic | Story::Forsake);
    stage.create(NAME, |it| it["metadata"]["annotations"] = if automatic { approved } else { json!({}) }).await;
    if !automatic {
        stage.until_state(NAME, RebalanceState::ProposalReady).await;
        if story == Story::Outdated {
            stage.brokers.reassign([0, 2]);
            stage.until("somebody has moved everything", || async { stage.brokers.are_at_rest() }).await;
            // And all brokers have heard of it: whoever plans before that is outdated at once.
            stage.linger(5).await;
        }
        stage.ask(NAME, "approve").await;
    }
    match story {
        Story::Approve | Story::Automatic => drop(stage.until_state(NAME, RebalanceState::Ready).await),
        Story::Stop => {
            until_moving_or_over(stage).await;
            stage.ask(NAME, "stop").await;
            stage
                .until("it is stopped, or was over", || is(stage, &[RebalanceState::Stopped, RebalanceState::Ready]))
                .await;
        }
        Story::Renew => {
            until_moving_or_over(stage).await;
            stage.ask(NAME, "refresh").await;
            stage.until("the refresh is heard", || async { asked(&stage.get(NAME).await).is_none() }).await;
            stage.until_state(NAME, RebalanceState::ProposalReady).await;
            stage.ask(NAME, "approve").await;
            stage.until_state(NAME, RebalanceState::Ready).await;
        }
        Story::Outdated => {
            let warned = stage.until_warned(NAME, Reason::ProposalOutdated).await;
            assert!(warning(&warned, Reason::ProposalOutdated).unwrap().contains("approve it"));
            stage.until("the approval is taken away", || async { asked(&stage.get(NAME).await).is_none() }).await;
            stage.until_state(NAME, RebalanceState::ProposalReady).await;
            // Nobody has approved this one.
            stage.linger(60).await;
            assert_eq!(stage.brokers.holders(), BTreeSet::from([0, 2]));
            stage.ask(NAME, "approve").await;
            stage.until_state(NAME, RebalanceState::Ready).await;
        }
        Story::Pause => {
            until_moving_or_over(stage).await;
            stage.annotate(NAME, annotations::PAUSE_RECONCILIATION, "true").await;
            stage.until_state(NAME, RebalanceState::ReconciliationPaused).await;
            stage.linger(300).await;
            assert!(is(stage, &[RebalanceState::ReconciliationPaused]).await, "nobody has said that it may go on");
            stage.annotate(NAME, annotations::PAUSE_RECONCILIATION, "false").await;
            stage.until_state(NAME, RebalanceState::Ready).await;
        }
        Story::Two => {
            until_moving_or_over(stage).await;
            let approved = json!({annotations::REBALANCE_AUTO_APPROVAL: "true"});
            stage.create(OTHER, |it| it["metadata"]["annotations"] = approved).await;
            stage.until_state(NAME, RebalanceState::Ready).await;
            stage.until_state(OTHER, RebalanceState::Ready).await;
            stage.until("the other is let go", || async { finalizers(&stage.get(OTHER).await).is_empty() }).await;
        }
        Story::Forsake => {
            let is_pending = || async { !finalizers(&stage.get(NAME).await).is_empty() };
            stage.until("somebody has seen it", is_pending).await;
            stage.delete(NAME).await;
            stage.until("it is gone", || stage.is_gone(NAME)).await;
        }
        Story::Delete => {
            until_moving_or_over(stage).await;
            stage.delete(NAME).await;
            stage.until("it is gone", || stage.is_gone(NAME)).await;
        }
    }
    if !story.deletes() {
        let settled = || async {
            let now = stage.get(NAME).await;
            // A stop that came too late stays, with a Warning.
            let heard = asked(&now).is_none() || (story == Story::Stop && now.state() == RebalanceState::Ready);
            finalizers(&now).is_empty() && heard
        };
        stage.until("everything is let go", settled).await;
    }
    // Whoever would do something more has time for it.
    stage.linger(60).await;
    let executions = stage.executions().await.len();
    if story.deletes() {
        assert!(stage.is_gone(NAME).await);
        let (asked, finalizers, result, percent) = (None, Vec::new(), FreeForm::new(), None);
        let holders = stage.brokers.holders();
        return Ending { state: None, asked, finalizers, result, keys: BTreeSet::new(), percent, executions, holders };
    }
    let now = stage.get(NAME).await;
    let data = stage.api::<ConfigMap>().get(NAME).await.unwrap().data.unwrap();
    let mut result = now.status.as_ref().unwrap().optimization_result.clone().unwrap();
    // The name of a proposal is its own, and its estimate rests on what was measured until that very moment.
    assert!(matches!(result.remove("proposalId"), Some(Value::String(_))));
    assert!(matches!(result.remove("estimatedMinutes"), Some(Value::Number(_))));
    assert!(matches!(result.remove("recentWindows"), Some(Value::Number(_))));
    let stopped = story == Story::Stop;
    Ending {
        state: Some(now.state()),
        asked: asked(&now),
        finalizers: finalizers(&now),
        result: if story == Story::Renew { FreeForm::new() } else { result },
        keys: data.keys().cloned().collect(),
        // How far a run came before it was stopped depends on how long it took to be stopped.
        percent: data.get("completedByteMovementPercentage").filter(|_| !stopped).cloned(),
        executions,
        holders: if stopped { BTreeSet::new() } else { stage.brokers.holders() },
    }
}

async fn is(stage: &Stage, states: &[RebalanceState]) -> bool {
    states.contains(&stage.get(NAME).await.state())
}

/// Some data has moved. In bad weather nobody may have seen it before all had.
async fn until_moving_or_over(stage: &Stage) {
    let moves = || async {
        let percent = stage.data(NAME, "completedByteMovementPercentage").await.and_then(|it| it.parse::<u32>().ok());
        let state = stage.get(NAME).await.state();
        state == RebalanceState::Ready || (state == RebalanceState::Rebalancing && percent.is_some_and(|it| it > 0))
    };
    stage.until("data moves, or has moved", moves).await;
}

/// Numbers of the calls to die at: of those that are the same, after the same call, in the same state of the resource,
/// the first.
fn points(made: &[String]) -> Vec<usize> {
    let mut seen = BTreeSet::new();
    let (mut state, mut before) = (None, None);
    let mut points = Vec::new();
    for (number, call) in made.iter().enumerate() {
        if call.starts_with("PUT") {
            state = Some(call);
        }
        if seen.insert((state, before, call)) {
            points.push(number);
        }
        before = Some(call);
    }
    points
}

async fn dies_everywhere(story: Story) {
    let (expected, made) = play(story, Fate::default()).await;
    assert_eq!(expected.executions, story.executions());
    let points = points(&made);
    assert!(points.len() > if story == Story::Forsake { 4 } else { 8 }, "{made:#?}");
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

#[tokio::test(start_paused = true)]
async fn a_deleted_run_comes_to_the_same_end() {
    dies_everywhere(Story::Delete).await;
}

#[tokio::test(start_paused = true)]
async fn a_forsaken_proposal_comes_to_the_same_end() {
    dies_everywhere(Story::Forsake).await;
}

#[tokio::test(start_paused = true)]
async fn an_outdated_proposal_comes_to_the_same_end() {
    dies_everywhere(Story::Outdated).await;
}

#[tokio::test(start_paused = true)]
async fn a_paused_run_comes_to_the_same_end() {
    dies_everywhere(Story::Pause).await;
}

#[tokio::test(start_paused = true)]
async fn two_runs_come_to_the_same_end() {
    dies_everywhere(Story::Two).await;
}

/// How many seeds are tried: more of them by `EVENKEEL_SEEDS`, which a soak sets.
fn seeds() -> u64 {
    std::env::var("EVENKEEL_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(50)
}

/// Every story has its own share of the seeds, and its own test, so that they are told side by side.
async fn bad_weather(story: Story) {
    let share = STORIES.iter().position(|it| *it == story).unwrap() as u64;
    let expected = play(story, Fate::default()).await.0;
    for seed in (0..seeds()).filter(|seed| seed % STORIES.len() as u64 == share) {
        let (ending, made) = play(story, Fate::in_bad_weather(seed)).await;
        // A stop may come when there is nothing left to stop. All else ends as it does in good weather.
        let too_late = story == Story::Stop && ending.state == Some(RebalanceState::Ready);
        match too_late {
            true => assert_eq!((ending.executions, ending.finalizers.len()), (1, 0), "seed {seed}: {made:#?}"),
            false => assert_eq!(ending, expected, "seed {seed}, {story:?}: {made:#?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn in_bad_weather_an_approved_run_comes_to_its_end() {
    bad_weather(Story::Approve).await;
}

#[tokio::test(start_paused = true)]
async fn in_bad_weather_an_automatic_run_comes_to_its_end() {
    bad_weather(Story::Automatic).await;
}

#[tokio::test(start_paused = true)]
async fn in_bad_weather_a_stopped_run_comes_to_its_end() {
    bad_weather(Story::Stop).await;
}

#[tokio::test(start_paused = true)]
async fn in_bad_weather_a_renewed_run_comes_to_its_end() {
    bad_weather(Story::Renew).await;
}

#[tokio::test(start_paused = true)]
async fn in_bad_weather_a_deleted_run_comes_to_its_end() {
    bad_weather(Story::Delete).await;
}

#[tokio::test(start_paused = true)]
async fn in_bad_weather_a_forsaken_proposal_comes_to_its_end() {
    bad_weather(Story::Forsake).await;
}

#[tokio::test(start_paused = true)]
async fn in_bad_weather_an_outdated_proposal_comes_to_its_end() {
    bad_weather(Story::Outdated).await;
}

#[tokio::test(start_paused = true)]
async fn in_bad_weather_a_paused_run_comes_to_its_end() {
    bad_weather(Story::Pause).await;
}

#[tokio::test(start_paused = true)]
async fn in_bad_weather_two_runs_come_to_their_end() {
    bad_weather(Story::Two).await;
}
