//! Engines that stand still, as when their machine is stopped for a while, and are replaced meanwhile. On simulated
//! brokers, under paused time.

use std::{pin::pin, time::Duration};

use evenkeel_engine::{
    executor::{Ending, Move},
    journal::Journal,
};
use evenkeel_kafka::Error;

use crate::{
    execution::{Mortal, nobody},
    stage::{MB, Stage, idle, moves, run_of},
};

/// Four moves, between brokers and between directories, one of which only changes who leads.
fn few() -> Vec<Move> {
    moves().into_iter().take(4).map(|mv| Move { bytes: MB, ..mv }).collect()
}

/// It stands still once after each of its wakes, until another engine has stopped what it was doing. Then it wakes up.
#[tokio::test(start_paused = true)]
async fn an_engine_that_stood_still_does_nothing_late() {
    let mut shut_out = 0;
    for wakes in 1.. {
        let what = format!("stood still after {wakes} wakes");
        let stage = Stage::of(few(), 2_000);
        let (stop, report) = nobody();
        let (runner, run, execution) = stage.begun(Some(run_of(few())), stop, report).await.unwrap().unwrap();
        let mut life = pin!(runner.carry_out(&run, execution));
        if let Some(ended) = (Mortal { wakes_left: wakes, life: life.as_mut() }).await {
            assert_eq!(ended.unwrap(), Ending::Completed);
            break;
        }
        let newer = stage.executor().await;
        newer.stop(false).await.unwrap();
        idle(&newer).await;
        let (lay, dirs) = (stage.registrations(), stage.dirs());
        stage.assert_at_rest(&what);
        match tokio::time::timeout(Duration::from_secs(600), life).await.expect("it ends") {
            Err(Error::Fenced { .. }) => shut_out += 1,
            // It was over, and had only not said so.
            ended => assert_eq!(ended.unwrap(), Ending::Completed, "{what}"),
        }
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!((stage.registrations(), stage.dirs()), (lay, dirs), "{what}");
        stage.assert_at_rest(&what);
    }
    assert!(shut_out > 50, "only {shut_out}");
}

#[tokio::test(start_paused = true)]
async fn whoever_takes_over_does_nothing_as_long_as_the_other_may_act() {
    let stage = Stage::of(few(), 2_000);
    let (older, _) = Journal::open(stage.client(), stage.clock()).await.unwrap();
    older.append(run_of(few()).begun()).await.unwrap();
    let before = stage.registrations();
    let newer = stage.executor().await;
    assert!(newer.running().is_some());
    // What the older one begins now is still its own.
    older.under_leave(async {}).await.unwrap();
    tokio::time::sleep(Duration::from_millis(5_500)).await;
    assert_eq!(stage.registrations(), before);
    stage.assert_at_rest("nothing is done yet");
    let late: Result<(), Error> = older.under_leave(async { unreachable!("another engine acts") }).await;
    assert!(matches!(late, Err(Error::Fenced { .. })), "{late:?}");
    idle(&newer).await;
    stage.assert_done("six seconds later");
}

#[tokio::test(start_paused = true)]
async fn what_takes_long_gets_leave_for_as_long_as_nobody_takes_over() {
    let stage = Stage::new();
    let (journal, _) = Journal::open(stage.client(), stage.clock()).await.unwrap();
    let deed = async {
        tokio::time::sleep(Duration::from_secs(60)).await;
        "done"
    };
    assert_eq!(journal.under_leave(deed).await.unwrap(), "done");
    let interrupted = journal.under_leave(async {
        tokio::time::sleep(Duration::from_secs(60)).await;
        unreachable!("another engine acts");
    });
    let replaced = async {
        tokio::time::sleep(Duration::from_secs(20)).await;
        stage.executor().await
    };
    let (late, _newer): (Result<(), Error>, _) = tokio::join!(interrupted, replaced);
    assert!(matches!(late, Err(Error::Fenced { .. })), "{late:?}");
}
