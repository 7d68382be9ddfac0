//! Brokers are filled, under paused time. Emptied again at once, one run takes everything away, whatever brokers still show
//! of the run before it; and one that dies meanwhile is not told as filled.

use std::{collections::BTreeSet, time::Duration};

use evenkeel_rest::{
    Answer,
    body::state::Phase,
    parameter::TaskStatus,
    request::{RemoveBroker, UserTasks},
};
use evenkeel_sim::{
    Cluster, Options,
    cluster::{BrokerSpec, Fault},
};

use crate::lives::{Life, PATIENCE, adding, removing, spread, task};
use crate::stage::{Stage, moves};

const GUESTS: [i32; 2] = [3, 4];
/// A broker that is down for half an hour is not waited for any longer.
const GIVEN_UP_AFTER: Duration = Duration::from_secs(1_800);

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

#[tokio::test(start_paused = true)]
async fn an_addition_whose_broker_dies_is_told_as_failed_and_succeeds_once_it_is_back() {
    let stage = Stage::new();
    let life = stage.engine();
    life.proposed(&spread()).await;
    let reply = life.client.ask_and_wait(&adding(&[2, 3]), PATIENCE, Duration::from_secs(1)).await;
    let Answer::Ready(planned) = &reply.answer else { panic!("{:?}", reply.answer) };
    let lost = evenkeel_sim::BrokerId(3);
    let fills = |cluster: &mut Cluster| cluster.list_reassignments(None).iter().any(|it| it.adding.contains(&lost));
    stage.world.until(fills).await;
    stage.world.with(|cluster| cluster.suffer(&Fault::Crash(lost)));
    // It is waited for, and given up in the end.
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(life.status_of(task(&reply)).await, Some(TaskStatus::InExecution));
    tokio::time::sleep(GIVEN_UP_AFTER).await;
    life.until("it is over", |phase| *phase == Phase::Idle).await;
    assert_eq!(stage.holders(), BTreeSet::from([0, 1, 2]), "only the moves of the dead one were given up");
    drop(life);

    // Nor does the next life take it for done. What was planned is still told: only so can it be seen what is missing.
    let life = stage.engine();
    life.until("the next life answers", |phase| *phase == Phase::Idle).await;
    assert_eq!(life.status_of(task(&reply)).await, Some(TaskStatus::CompletedWithError));
    let asked = UserTasks { user_task_ids: [task(&reply)].into(), fetch_completed_task: true, ..UserTasks::default() };
    let Answer::Ready(tasks) = life.client.ask(&asked).await.answer else { panic!("tasks are told") };
    let told = tasks.user_tasks[0].optimization_result().expect("the plan");
    assert_eq!(told.summary.proposal_id, planned.summary.proposal_id);

    stage.world.with(|cluster| cluster.suffer(&Fault::Return(lost)));
    tokio::time::sleep(Duration::from_secs(60)).await;
    let reply = life.client.ask_and_wait(&adding(&[3]), PATIENCE, Duration::from_secs(1)).await;
    assert!(matches!(reply.answer, Answer::Ready(_)), "{:?}", reply.answer);
    life.until("it is over", |phase| *phase == Phase::Idle).await;
    assert_eq!(life.status_of(task(&reply)).await, Some(TaskStatus::Completed));
    assert_eq!(stage.holders(), BTreeSet::from([0, 1, 2, 3]));
    stage.assert_at_rest("afterwards");
}
