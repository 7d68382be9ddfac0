//! Brokers are filled and emptied again at once, under paused time: one run takes everything away, whatever brokers
//! still show of the run before it.

mod lives;
mod stage;

use std::{collections::BTreeSet, time::Duration};

use evenkeel_rest::{Answer, body::state::Phase, request::RemoveBroker};
use evenkeel_sim::{Cluster, Options, cluster::BrokerSpec};
use lives::{Life, PATIENCE, adding, removing, spread};
use stage::{Stage, moves};

const GUESTS: [i32; 2] = [3, 4];

/// Asks for it as soon as nobody else is at work, and by the plan that was made before, if so wanted.
async fn drained_at_once(life: &Life, approved: bool) {
    let pause = Duration::from_millis(if approved { 200 } else { 20 });
    loop {
        let mut asked = RemoveBroker { brokerid: GUESTS.into(), ..removing(3) };
        if approved {
            asked.execution.run.dryrun = true;
            let reply = life.client.ask_and_wait(&asked, PATIENCE, Duration::from_millis(20)).await;
            let Answer::Ready(seen) = reply.answer else { panic!("{:?}", reply.answer) };
            asked.execution.run.dryrun = false;
            asked.execution.run.proposal_id = seen.summary.proposal_id;
        }
        match life.client.ask_and_wait(&asked, PATIENCE, Duration::from_millis(20)).await.answer {
            Answer::Ready(_) => return,
            Answer::Busy(_) | Answer::ProposalOutdated(_) => tokio::time::sleep(pause).await,
            other => panic!("{other:?}"),
        }
    }
}

fn left_on_guests(stage: &Stage) -> BTreeSet<evenkeel_sim::TopicPartition> {
    let held = |cluster: &Cluster| GUESTS.map(|id| cluster.replicas_on(evenkeel_sim::BrokerId(id))).concat();
    stage.world.look(|cluster| held(cluster).into_iter().collect())
}

async fn one_drain_suffices(seed: u64) {
    let options = Options { seed, session_timeout: 2_000, ..Options::default() };
    let stage = Stage::with(options, (0..5).map(BrokerSpec::new), moves());
    let life = stage.engine_with("default.replication.throttle=50000000\n");
    life.proposed(&spread()).await;
    let reply = life.client.ask_and_wait(&adding(&GUESTS), PATIENCE, Duration::from_secs(1)).await;
    assert!(matches!(reply.answer, Answer::Ready(_)), "{seed}: {:?}", reply.answer);
    // Somewhere in its course the drain is asked for, until it is let in.
    tokio::time::sleep(Duration::from_millis(seed * 37 % 1_000)).await;
    drained_at_once(&life, seed % 2 == 1).await;
    life.until("it is over", |phase| *phase == Phase::Idle).await;
    assert_eq!(left_on_guests(&stage), BTreeSet::new(), "seed {seed}");
    stage.assert_at_rest("afterwards");
}

/// More seeds by `EVENKEEL_SEEDS`, which a soak sets.
#[tokio::test(start_paused = true)]
async fn brokers_that_were_just_filled_are_emptied_by_one_run() {
    let seeds = std::env::var("EVENKEEL_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(4);
    for seed in 0..seeds {
        one_drain_suffices(seed).await;
    }
}
