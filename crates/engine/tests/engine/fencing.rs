//! Whose the journal is: engines that are out of reach for a while, and engines that are replaced.

use std::{
    future::Future,
    pin::{Pin, pin},
    time::Duration,
};

use evenkeel_engine::journal::{
    History, Journal, Run,
    topic::{TOPIC, TRANSACTIONAL_ID},
};
use evenkeel_kafka::{BrokerId, Error};
use evenkeel_sim::cluster::{Fault, Isolation, NewTopic, OffsetQuery, Reassignment, Resource};

use crate::stage::{Stage, run};

const MINUTE: Duration = Duration::from_secs(60);

impl Stage {
    async fn journal(&self) -> Journal {
        Journal::open(self.client()).await.unwrap().0
    }

    /// What a new life would find, without beginning one for good.
    async fn found(&self) -> evenkeel_engine::journal::Recovered {
        Journal::open(self.client()).await.unwrap().1
    }

    /// Nobody is reached for two minutes: longer than a transaction may be open.
    async fn two_minutes_of_night(&self) {
        let all = || (0..4).map(evenkeel_sim::BrokerId);
        self.world.with(|cluster| all().for_each(|id| cluster.suffer(&Fault::CutLink(id))));
        tokio::time::sleep(2 * MINUTE).await;
        self.world.with(|cluster| all().for_each(|id| cluster.suffer(&Fault::MendedLink(id))));
    }

    /// Whether something was written to the journal, and neither committed nor aborted.
    fn has_open_transaction(&self) -> bool {
        let partition = evenkeel_sim::TopicPartition::new(TOPIC, 0);
        self.world.look(|cluster| {
            let leader = cluster.registration(TOPIC, 0).and_then(|it| it.leader).unwrap();
            let end =
                |isolation| cluster.list_offset(leader, &partition, OffsetQuery::Latest, isolation, None).unwrap().1;
            end(Isolation::ReadCommitted) < end(Isolation::ReadUncommitted)
        })
    }
}

fn removed(broker: i32) -> History {
    History { removed: [(BrokerId(broker), 17)].into(), ..History::default() }
}

/// Wakes a future so many times, and tells what came of it if it came to its end.
async fn woken<T>(wakes: usize, life: &mut Pin<&mut impl Future<Output = T>>) -> Option<T> {
    let mut left = wakes;
    std::future::poll_fn(|context| {
        if left == 0 {
            return std::task::Poll::Ready(None);
        }
        left -= 1;
        life.as_mut().poll(context).map(Some)
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_was_out_of_reach_in_the_middle_of_a_step_goes_on() {
    let mut between_write_and_commit = 0;
    for wakes in 1.. {
        let stage = Stage::new();
        let journal = stage.journal().await;
        let mut append = pin!(journal.append(vec![removed(3).entry()]));
        if let Some(done) = woken(wakes, &mut append).await {
            done.unwrap();
            break;
        }
        between_write_and_commit += usize::from(stage.has_open_transaction());
        let (mut done, ()) = tokio::join!(append, stage.two_minutes_of_night());
        for _ in 0..60 {
            match done {
                Ok(()) => break,
                Err(Error::Fenced { .. }) => panic!("stepped down for nobody, cut off after {wakes} wakes"),
                Err(_) => tokio::time::sleep(Duration::from_secs(1)).await,
            }
            done = journal.append(vec![removed(3).entry()]).await;
        }
        done.unwrap();
        assert!(!journal.is_fenced());
        assert_eq!(stage.found().await.history, removed(3), "cut off after {wakes} wakes");
    }
    assert!(between_write_and_commit > 0);
}

#[tokio::test(start_paused = true)]
async fn a_writer_that_nobody_replaced_goes_on_however_often_it_is_shut_out() {
    let stage = Stage::new();
    let journal = stage.journal().await;
    for broker in 0..4 {
        stage.client().init_transactional(TRANSACTIONAL_ID, MINUTE).await.unwrap();
        journal.append(vec![removed(broker).entry()]).await.unwrap();
    }
    assert_eq!(stage.found().await.history, removed(3));
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_was_replaced_steps_down_and_the_newer_one_goes_on() {
    let stage = Stage::new();
    let older = stage.journal().await;
    older.append(vec![removed(1).entry()]).await.unwrap();
    let (newer, found) = Journal::open(stage.client()).await.unwrap();
    assert_eq!(found.history, removed(1));
    for broker in 2..4 {
        // To look whose the journal is shuts the newer one out, once: that one looks too, and stays.
        let refused = older.append(vec![removed(0).entry()]).await;
        assert!(matches!(refused, Err(Error::Fenced { .. })), "{refused:?}");
        newer.append(vec![removed(broker).entry()]).await.unwrap();
    }
    assert_eq!((older.is_fenced(), newer.is_fenced()), (true, false));
    assert_eq!(stage.found().await.history, removed(3));
}

#[tokio::test(start_paused = true)]
async fn of_engines_that_begin_together_one_is_left() {
    let stage = Stage::new();
    let both = tokio::join!(stage.journal(), stage.journal());
    let both = [both.0, both.1];
    for round in 0..3 {
        let (one, other) =
            tokio::join!(both[0].append(vec![removed(round).entry()]), both[1].append(vec![removed(round).entry()]));
        // Right after the beginning both may still be sorting themselves out.
        assert!(one.is_ok() || other.is_ok() || round == 0, "{one:?} {other:?}");
    }
    assert_eq!(both.iter().filter(|journal| journal.is_fenced()).count(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_idle_engine_learns_that_it_was_replaced() {
    let stage = Stage::new();
    let (older, newer) = (stage.journal().await, stage.journal().await);
    older.fenced().wait_for(|fenced| *fenced).await.unwrap();
    tokio::time::sleep(60 * MINUTE).await;
    assert!(!newer.is_fenced());
}

#[tokio::test(start_paused = true)]
async fn a_run_that_failed_to_begin_does_not_rise() {
    let begin = |journal: Journal| async move {
        let begun = run().begun();
        let back = Run::unbegun(&begun);
        journal.append_or_take_back(begun, back).await
    };
    for (given_up, wakes) in (1..).flat_map(|wakes| [(false, wakes), (true, wakes)]) {
        let stage = Stage::new();
        let journal = stage.journal().await;
        let done = {
            let mut beginning = pin!(begin(journal.clone()));
            match woken(wakes, &mut beginning).await {
                Some(done) => {
                    done.unwrap();
                    assert!(stage.found().await.run.is_some());
                    return;
                }
                None if given_up => None,
                None => Some(tokio::join!(beginning, stage.two_minutes_of_night()).0),
            }
        };
        for _ in 0..60 {
            // Whatever is next brings it along.
            if journal.append(vec![removed(3).entry()]).await.is_ok() {
                break;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        let found = stage.found().await;
        assert_eq!(found.history, removed(3));
        assert_eq!(found.run.is_some(), matches!(done, Some(Ok(()))), "{wakes} wakes, given up: {given_up}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_was_replaced_takes_back_no_moves() {
    let stage = Stage::new();
    let older = stage.executor().await;
    let newer = stage.executor().await;
    let ids = [2, 3].map(evenkeel_sim::BrokerId).to_vec();
    let line = Reassignment { partition: evenkeel_sim::TopicPartition::new("orders", 0), target: Some(ids) };
    stage.world.with(|cluster| cluster.suffer(&Fault::ForeignReassignment(line)));
    let moving = || stage.world.look(|cluster| cluster.list_reassignments(None).len());
    let refused = older.stop(true).await;
    assert!(matches!(refused, Err(Error::Fenced { .. })), "{refused:?}");
    assert_eq!(moving(), 1);
    newer.stop(true).await.unwrap();
    assert_eq!(moving(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_journal_that_could_be_lost_is_mended() {
    let stage = Stage::new();
    let frail = NewTopic::manual(TOPIC, &[&[0]]).config("cleanup.policy", "delete");
    stage.world.with(|cluster| cluster.create_topic(&frail, false)).unwrap();
    // Every broker has heard of it by then, and of what becomes of it.
    tokio::time::sleep(MINUTE).await;
    let journal = stage.journal().await;
    tokio::time::sleep(MINUTE).await;
    let setting = |name: &str| {
        let topic = Resource::Topic(TOPIC.to_owned());
        let all = stage.world.look(|cluster| cluster.describe_configs(evenkeel_sim::BrokerId(0), &topic)).unwrap();
        all.into_iter().find(|it| it.name == name).and_then(|it| it.value)
    };
    assert_eq!(setting("cleanup.policy").as_deref(), Some("compact"));
    // The replicas come at once, and that two of them must have a record with the next look.
    tokio::time::sleep(30 * MINUTE).await;
    let replicas = stage.world.look(|cluster| cluster.registration(TOPIC, 0).unwrap().replicas.len());
    assert_eq!((replicas, setting("min.insync.replicas").as_deref()), (3, Some("2")));
    journal.confirm().await.unwrap();
}
