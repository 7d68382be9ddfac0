//! How much of the bandwidth that is allowed a throttled execution uses, in simulated time.

use std::{collections::BTreeMap, time::Duration};

use evenkeel_rest::{Answer, body::state::Phase, parameter::TopicPattern};
use evenkeel_sim::{
    cluster::{BrokerSpec, NewTopic, Registration},
    traffic::Load,
};
use tokio::time::Instant;

use crate::lives::{PATIENCE, executing, spread};
use crate::stage::{MB, Stage, mv};

/// Bytes per second on each broker, in and out.
const ALLOWED: u64 = 50 * MB;
const SIZE: u64 = 100 * MB;
const BROKERS: i32 = 6;
const PARTITIONS: i32 = 600;

/// Two replicas of everything, on the first half of the brokers.
fn stage() -> Stage {
    let half = BROKERS / 2;
    let lies = |number: i32| {
        let pair = [number % half, (number + 1) % half];
        mv(number, pair, pair, SIZE)
    };
    Stage::on((0..BROKERS).map(BrokerSpec::new), (0..PARTITIONS).map(lies).collect(), 2_000)
}

/// The most bytes that any broker had to send, or to receive.
fn fullest(before: &[Registration], after: &[Registration]) -> u64 {
    let mut pipes: BTreeMap<(i32, &str), u64> = BTreeMap::new();
    for (before, after) in before.iter().zip(after) {
        for added in after.replicas.iter().filter(|id| !before.replicas.contains(id)) {
            *pipes.entry((added.0, "in")).or_default() += SIZE;
            *pipes.entry((before.leader.expect("a leader").0, "out")).or_default() += SIZE;
        }
    }
    pipes.into_values().max().unwrap_or_default()
}

/// How much of what is allowed is used from the first copy to the last.
async fn used(stage: &Stage) -> f64 {
    let before = stage.registrations();
    let life = stage.engine_with(&format!("default.replication.throttle={ALLOWED}\n"));
    life.proposed(&spread()).await;
    let mut asked = executing(None);
    asked.goal_options.excluded_topics = Some(TopicPattern::new("busy").unwrap());
    let reply = life.client.ask_and_wait(&asked, PATIENCE, Duration::from_secs(1)).await;
    assert!(matches!(reply.answer, Answer::Ready(_)), "{:?}", reply.answer);
    stage.world.until(|cluster| !cluster.list_reassignments(None).is_empty()).await;
    let began = Instant::now();
    life.until("it is over", |phase| !matches!(phase, Phase::InterBroker(_))).await;
    let took = began.elapsed();
    life.until("nothing is under way", |phase| *phase == Phase::Idle).await;
    stage.assert_at_rest("afterwards");
    fullest(&before, &stage.registrations()) as f64 / ALLOWED as f64 / took.as_secs_f64()
}

#[tokio::test(start_paused = true)]
async fn a_throttled_execution_uses_what_it_may() {
    let share = used(&stage()).await;
    assert!(share >= 0.95, "only {share:.3} of what is allowed was used");
}

#[tokio::test(start_paused = true)]
async fn it_does_so_beside_what_brokers_replicate_anyhow() {
    let stage = stage();
    // Each broker takes in 20 MB/s, and as much again from others; its link carries 125 MB/s each way.
    let lists: Vec<[i32; 2]> = (0..60).map(|number| [number % BROKERS, (number + 1) % BROKERS]).collect();
    let lists: Vec<&[i32]> = lists.iter().map(<[i32; 2]>::as_slice).collect();
    let busy = NewTopic::manual("busy", &lists).loaded(Load::steady(120e6), 0);
    stage.world.with(|cluster| cluster.create_topic(&busy, false)).unwrap();
    let share = used(&stage).await;
    assert!(share >= 0.95, "only {share:.3} of what is allowed was used");
}
