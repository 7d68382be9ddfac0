//! Moves between the directories of brokers, asked for over the door, on simulated brokers, under paused time.

use std::{collections::BTreeMap, time::Duration};

use evenkeel_rest::{
    Answer,
    body::state::Phase,
    client::Asks,
    parameter::TaskStatus,
    request::{RemoveDisks, StopProposalExecution},
};
use evenkeel_sim::{BrokerId, cluster::Fault};
use uuid::Uuid;

use crate::lives::{Life, PATIENCE, between_disks, crowded, spread, task};
use crate::stage::Stage;

/// How many replicas of `orders` lie in each directory, by broker.
fn crowd(stage: &Stage) -> BTreeMap<i32, BTreeMap<String, usize>> {
    let mut crowd: BTreeMap<i32, BTreeMap<String, usize>> = BTreeMap::new();
    for ((broker, _), dir) in stage.dirs() {
        *crowd.entry(broker).or_default().entry(dir).or_default() += 1;
    }
    crowd
}

/// Begins it, once it can be planned.
async fn begun(life: &Life, asked: &impl Asks) -> Uuid {
    life.proposed(&spread()).await;
    let reply = life.client.ask_and_wait(asked, PATIENCE, Duration::from_secs(1)).await;
    assert!(matches!(reply.answer, Answer::Ready(_)), "not begun");
    life.until("directories change", |phase| matches!(phase, Phase::IntraBroker(_))).await;
    task(&reply)
}

#[tokio::test(start_paused = true)]
async fn the_directories_of_each_broker_are_evened_out_though_the_engine_dies() {
    let stage = crowded();
    let replicas = stage.registrations();
    assert!(crowd(&stage).values().all(|dirs| dirs.len() == 1));
    let life = stage.engine_with_dirs("");
    let task = begun(&life, &between_disks()).await;
    drop(life);

    let life = stage.engine_with_dirs("");
    life.until("it still runs", |phase| matches!(phase, Phase::IntraBroker(_))).await;
    life.until("it is over", |phase| *phase == Phase::Idle).await;
    assert_eq!(life.status_of(task).await, Some(TaskStatus::Completed));
    for (broker, dirs) in crowd(&stage) {
        assert_eq!(dirs.into_values().collect::<Vec<_>>(), [3, 3], "broker {broker}");
    }
    let after = stage.registrations();
    assert!(replicas.iter().zip(&after).all(|(before, after)| before.replicas == after.replicas), "{after:?}");
    stage.assert_at_rest("afterwards");
}

#[tokio::test(start_paused = true)]
async fn a_stop_calls_off_what_is_on_its_way_to_another_directory() {
    let stage = crowded();
    let life = stage.engine_with_dirs("");
    let task = begun(&life, &between_disks()).await;
    life.client.ask(&StopProposalExecution::default()).await;
    life.until("it is over", |phase| *phase == Phase::Idle).await;
    assert_eq!(life.status_of(task).await, Some(TaskStatus::CompletedWithError));
    // This looks that none is on its way.
    let moved: usize = crowd(&stage).values().filter_map(|dirs| dirs.get("/d1")).sum();
    assert!(moved < 12, "{moved}");
}

#[tokio::test(start_paused = true)]
async fn a_directory_is_emptied() {
    let stage = crowded();
    let life = stage.engine_with_dirs("");
    let mut asked =
        RemoveDisks { brokerid_and_logdirs: [(1, ["/d0".to_owned()].into())].into(), ..RemoveDisks::default() };
    asked.run.dryrun = false;
    let task = begun(&life, &asked).await;
    life.until("it is over", |phase| *phase == Phase::Idle).await;
    assert_eq!(life.status_of(task).await, Some(TaskStatus::Completed));
    let crowd = crowd(&stage);
    assert_eq!(crowd[&1], BTreeMap::from([("/d1".to_owned(), 6)]));
    assert!([0, 2, 3].iter().all(|id| crowd[id] == BTreeMap::from([("/d0".to_owned(), 6)])), "{crowd:?}");
    stage.assert_at_rest("afterwards");
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_fails_for_good_ends_what_was_to_leave_it_and_its_task_says_so() {
    let stage = crowded();
    let life = stage.engine_with_dirs("");
    let task = begun(&life, &between_disks()).await;
    stage.world.with(|cluster| cluster.suffer(&Fault::FailedDir(BrokerId(1), 0)));
    life.until("it is over", |phase| *phase == Phase::Idle).await;
    assert_eq!(life.status_of(task).await, Some(TaskStatus::CompletedWithError));
    let crowd = crowd(&stage);
    assert!([0, 2, 3].iter().all(|id| crowd[id].values().eq([&3, &3])), "{crowd:?}");
    stage.assert_at_rest("afterwards");
}
