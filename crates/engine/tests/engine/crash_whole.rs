//! The crash harness over whole engines: from a request at the door, with samples and detectors at work, to the end.
//!
//! An engine dies at a call to Kafka, and so does the next one, at another call; the third comes to its end. Whoever
//! wanted something asks for it again where it is not known to be under way or done, as an operator would.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use evenkeel_engine::executor::Move;
use evenkeel_kafka::Client;
use evenkeel_rest::{Answer, body::state::Phase, parameter::TaskStatus, request::StopProposalExecution};
use evenkeel_testkit::mortal::{Death, Fate, Mortal};
use uuid::Uuid;

use crate::lives::{Life, PATIENCE, executing, spread};
use crate::stage::{MB, Stage, moves};

/// So many places to die at, all over a life.
const DEATHS: usize = 24;

fn stage() -> Stage {
    Stage::of(moves().into_iter().map(|mv| Move { bytes: 2 * MB, dirs: Vec::new(), ..mv }).collect(), 2_000)
}

fn born(stage: &Stage, fate: &Arc<Fate>) -> Life {
    let mortal = Mortal { memory: stage.pipes.connector(), fate: Arc::clone(fate) };
    stage.engine_over(Client::new(Arc::new(mortal), stage.client().settings().clone()), "")
}

/// Wants data on all brokers. `begun` is the task of whoever was told that it is being done.
async fn wants_it_spread(stage: &Stage, fate: &Arc<Fate>, begun: &mut Option<Uuid>) {
    let life = born(stage, fate);
    life.until("it is known what is under way", |_| true).await;
    life.until("what is under way is over", |phase| *phase == Phase::Idle).await;
    while life.proposed(&spread()).await.0.summary.num_replica_movements > 0 {
        let reply = life.client.ask_and_wait(&executing(None), PATIENCE, Duration::from_secs(1)).await;
        if matches!(reply.answer, Answer::Ready(_)) {
            *begun = reply.task;
        }
        life.until("it is over", |phase| *phase == Phase::Idle).await;
    }
    if let Some(task) = *begun {
        assert_eq!(life.status_of(task).await, Some(TaskStatus::Completed));
    }
}

/// The same, and changes their mind at once. `stopped` is whether they were told that it stops.
async fn wants_it_stopped(stage: &Stage, fate: &Arc<Fate>, stopped: &mut bool) {
    let life = born(stage, fate);
    life.until("it is known what is under way", |_| true).await;
    if !*stopped && life.phase().await == Some(Phase::Idle) {
        life.begun().await;
    }
    while !*stopped {
        let reply = life.client.ask(&StopProposalExecution::default()).await;
        *stopped = matches!(reply.answer, Answer::Ready(_));
    }
    life.until("it is over", |phase| *phase == Phase::Idle).await;
}

/// One life; tells whether it came to its end.
async fn lived(fate: &Arc<Fate>, life: impl Future<Output = ()>) -> bool {
    let done = tokio::select! {
        biased;
        () = fate.died() => false,
        () = life => true,
    };
    // Brokers do what they were asked last.
    tokio::time::sleep(Duration::from_millis(1)).await;
    done
}

/// Places to die at, spread over so many calls: the first life at one, the second at another.
fn deaths(calls: usize) -> impl Iterator<Item = [Death; 3]> {
    (0..DEATHS).map(move |number| {
        let at = 1 + number * calls / DEATHS;
        let first = if number.is_multiple_of(2) { Death::Before(at) } else { Death::After(at) };
        [first, Death::After(1 + (number * 7) % DEATHS * calls / DEATHS), Death::Never]
    })
}

#[tokio::test(start_paused = true)]
async fn what_was_asked_for_at_the_door_is_done_however_often_the_engine_dies() {
    let quiet = Fate::of(Death::Never);
    wants_it_spread(&stage(), &quiet, &mut None).await;
    let calls = quiet.made().len();
    for story in deaths(calls) {
        let (stage, mut begun, mut done) = (stage(), None, false);
        for death in story {
            let fate = Fate::of(death);
            done = done || lived(&fate, wants_it_spread(&stage, &fate, &mut begun)).await;
        }
        assert!(done, "{story:?}");
        assert_eq!(stage.holders(), BTreeSet::from([0, 1, 2, 3]), "{story:?}");
        stage.assert_at_rest(&format!("{story:?}"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_stop_that_was_answered_is_one_however_often_the_engine_dies() {
    let quiet = Fate::of(Death::Never);
    wants_it_stopped(&stage(), &quiet, &mut false).await;
    let calls = quiet.made().len();
    for story in deaths(calls) {
        let (stage, mut stopped, mut done) = (stage(), false, false);
        for death in story {
            let fate = Fate::of(death);
            done = done || lived(&fate, wants_it_stopped(&stage, &fate, &mut stopped)).await;
        }
        assert!(done && stopped, "{story:?}");
        stage.assert_at_rest(&format!("{story:?}"));
        assert!(stage.registrations().iter().all(|record| record.replicas.len() == 2), "{story:?}");
    }
}
