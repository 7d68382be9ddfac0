//! From a request to its proposal, from an approval to the first reassignment, and what the state costs meanwhile.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use evenkeel_rest::{
    body::state::Phase,
    request::{self, Rebalance, RemoveBroker, StopProposalExecution},
};
use evenkeel_testkit::measure::{Measurement, Numbers, Spread, Unit, grouped};
use tokio::time::{sleep, timeout};

use crate::{
    sizes::Sizes,
    stand::{PATIENCE, Served, Stand, USUAL},
    step,
};

/// Between two proposals: what was seen is too old then, so each includes a look at the whole cluster.
const APART: Duration = Duration::from_millis(1_500);
/// Between two questions for the state.
const STATES_APART: Duration = Duration::from_millis(10);
/// Bytes per second that moves may use on each broker while the state is asked for, so that they last.
const THROTTLE: u64 = 20_000_000;
/// Samples of half an hour: all windows, and the one that is being filled.
const EVERY: i64 = 100_000;
const SPAN: i64 = 1_800_000;

pub(crate) async fn measure(sizes: &Sizes, numbers: &mut Numbers) -> Result<()> {
    let [brokers, partitions] = sizes.planned;
    step("plans: a cluster");
    let stand = Stand::built(sizes.planned, USUAL).await?;
    stand.remember(partitions, EVERY, SPAN).await?;
    let engine = stand.engine("").await?;
    engine.ready().await?;
    engine.first_answer(&anew()).await?;

    step("plans: proposals");
    let replicas = grouped(partitions * 3);
    let mut times = Vec::new();
    for _ in 0..sizes.proposals {
        sleep(APART).await;
        let began = Instant::now();
        let proposal = engine.answer(&anew()).await?;
        times.push(began.elapsed());
        ensure!(proposal.summary.num_replica_movements > 0, "nothing is proposed: {:?}", proposal.summary);
    }
    let what = format!("request to proposal, {brokers} brokers, {replicas} replicas");
    add(numbers, &what, times, 50, Some(300.0))?;

    step("plans: approvals");
    let mut times = Vec::new();
    for _ in 0..sizes.approvals {
        times.push(approval(&stand, &engine).await?);
    }
    add(numbers, &format!("approval to first reassignment, {replicas} replicas"), times, 100, Some(2_000.0))?;

    step("plans: the state");
    let summary = engine.answer(&emptying(sizes.emptied)).await?.summary;
    let moves = summary.num_replica_movements;
    ensure!(moves >= sizes.moves, "only {moves} moves are made");
    engine.until("it moves", async || Ok(matches!(engine.phase().await?, Phase::InterBroker(_)))).await?;
    let what = format!("state during an execution of {} moves", grouped(moves));
    for (verbose, form, aim) in [(false, "", Some(20.0)), (true, ", verbose", None)] {
        let asked = request::State { verbose, ..request::State::default() };
        let mut times = Vec::new();
        for _ in 0..if verbose { sizes.states.div_ceil(10) } else { sizes.states } {
            let began = Instant::now();
            let state = engine.answer(&asked).await?;
            times.push(began.elapsed());
            let phase = state.executor_state.context("the executor tells nothing")?.phase;
            ensure!(matches!(phase, Phase::InterBroker(_)), "it is over: {phase:?}");
            sleep(STATES_APART).await;
        }
        add(numbers, &format!("{what}{form}"), times.clone(), 50, None)?;
        add(numbers, &format!("{what}{form}"), times, 99, aim)?;
    }
    Ok(())
}

/// How long it takes until Kafka has the first reassignment of a proposal that was seen before.
async fn approval(stand: &Stand, engine: &Served) -> Result<Duration> {
    let seen = engine.answer(&anew()).await?;
    let mut approved = anew();
    approved.scope.ignore_proposal_cache = false;
    approved.execution.run.dryrun = false;
    approved.execution.run.proposal_id = seen.summary.proposal_id;
    let began = Instant::now();
    let moved = async {
        let moves = stand.world.until(|cluster| !cluster.list_reassignments(None).is_empty());
        timeout(PATIENCE, moves).await.context("nothing was ever moved")?;
        anyhow::Ok(began.elapsed())
    };
    // Where the approval is refused nothing will ever move.
    let (_, took) = tokio::try_join!(engine.answer(&approved), moved)?;
    engine.answer(&StopProposalExecution::default()).await?;
    engine.until("it is stopped", async || Ok(engine.phase().await? == Phase::Idle)).await?;
    Ok(took)
}

fn add(numbers: &mut Numbers, what: &str, times: Vec<Duration>, percent: usize, aim: Option<f64>) -> Result<()> {
    let time = Spread::of(times).context("nothing was timed")?.percentile(percent);
    let told = if percent == 100 { "the longest".to_owned() } else { format!("p{percent}") };
    let measured = Measurement::time(format!("{what}, {told}"), Unit::Milliseconds, time);
    match aim {
        Some(aim) => numbers.aimed(measured, aim),
        None => numbers.add(measured),
    }
    Ok(())
}

/// A plan by the default goals that nobody has made yet.
fn anew() -> Rebalance {
    let mut asked = Rebalance::default();
    asked.scope.ignore_proposal_cache = true;
    asked
}

fn emptying(brokers: i32) -> RemoveBroker {
    let mut asked = RemoveBroker { brokerid: (0..brokers).collect(), ..RemoveBroker::default() };
    asked.execution.run.dryrun = false;
    asked.execution.pace.replication_throttle = Some(THROTTLE);
    asked
}
