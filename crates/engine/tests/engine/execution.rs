//! Runs carried out over the wire on simulated brokers, under paused time, by processes that die.

use std::{
    future::Future,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use evenkeel_engine::{
    clock::WallClock,
    executor::{
        Adjustment, Ending, Execution, Executor, Kind, Leftover, Move, Report, Runner, Slowness,
        service::{HistoryChange, NotBegun, Start},
    },
    journal::{Entry, Journal, Run, topic::TOPIC},
};
use evenkeel_kafka::{BrokerId, Error};
use evenkeel_rest::body::state::{Phase, Trigger};
use evenkeel_sim::cluster::{Fault, Resource};
use tokio::sync::watch;
use uuid::Uuid;

use crate::stage::{MB, Stage, idle, moves, mv, run, run_of};

impl Stage {
    /// One life of the engine: what the journal holds is carried on, or else `fresh` is begun.
    async fn live(
        &self,
        fresh: Option<Run>,
        stop: watch::Receiver<bool>,
        report: watch::Sender<Report>,
    ) -> Result<Option<Ending>, Error> {
        let client = self.client();
        let (journal, recovered) = Journal::open(client.clone()).await?;
        let (run, execution) = match (recovered.run, fresh) {
            (Some(found), _) => found,
            (None, Some(run)) => {
                journal.append(run.begun()).await?;
                let execution = Execution::new(run.order.clone());
                (run, execution)
            }
            (None, None) => return Ok(None),
        };
        let clock = WallClock::starting_at(self.world.look(|cluster| cluster.wall_clock()));
        let adjust = watch::channel(Adjustment::default()).1;
        let slowness = Slowness::default();
        let leftover = Arc::new(Leftover::new(client.clone(), journal.clone(), recovered.leftover));
        let runner = Runner { client, journal, clock, slowness, leftover, stop, adjust, task: None, report };
        runner.carry_out(&run, execution).await.map(Some)
    }
}

fn nobody() -> (watch::Receiver<bool>, watch::Sender<Report>) {
    (watch::channel(false).1, watch::channel(Report::default()).0)
}

/// A process that dies in the middle of something: after so many times of being woken.
struct Mortal<'a, T> {
    wakes_left: usize,
    life: Pin<&'a mut dyn Future<Output = T>>,
}

impl<T> Future for Mortal<'_, T> {
    type Output = Option<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        if self.wakes_left == 0 {
            return Poll::Ready(None);
        }
        self.wakes_left -= 1;
        self.life.as_mut().poll(context).map(Some)
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_comes_to_its_end_and_leaves_nothing_behind() {
    let stage = Stage::new();
    let (stop, report) = nobody();
    let mut seen = report.subscribe();
    let ending = stage.live(Some(run()), stop, report).await.unwrap();
    assert_eq!(ending, Some(Ending::Completed));
    stage.assert_done("a quiet life");
    let last = seen.borrow_and_update().clone();
    assert_eq!((last.phase, last.progress.replicas.completed), (None, 12));
    assert_eq!((last.progress.bytes_done, last.progress.bytes_total), (12 * 20 * MB, 12 * 20 * MB));
    assert_eq!((last.progress.dirs.completed, last.progress.dir_bytes_done), (6, 6 * 20 * MB));
    // The next life finds nothing to do.
    let (stop, report) = nobody();
    assert_eq!(stage.live(None, stop, report).await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn a_process_may_die_in_the_middle_of_anything() {
    let mut deaths = 0;
    for wakes in 1.. {
        let stage = Stage::new();
        let (stop, report) = nobody();
        let outcome = {
            let life = pin!(stage.live(Some(run()), stop, report));
            Mortal { wakes_left: wakes, life }.await
        };
        let Some(ended) = outcome else {
            let (stop, report) = nobody();
            // It may have died before anything was on record; then whoever asked asks again.
            let ending = stage.live(Some(run()), stop, report).await.unwrap();
            assert_eq!(ending, Some(Ending::Completed), "died after {wakes} wakes");
            stage.assert_done(&format!("died after {wakes} wakes"));
            deaths += 1;
            continue;
        };
        assert_eq!(ended.unwrap(), Some(Ending::Completed));
        break;
    }
    assert!(deaths > 100, "only {deaths} deaths");
}

#[tokio::test(start_paused = true)]
async fn a_stop_brings_everything_back() {
    let stage = Stage::new();
    let (ask, stop) = watch::channel(false);
    let before = stage.registrations();
    let life = stage.live(Some(run()), stop, watch::channel(Report::default()).0);
    let asking = async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_ne!(stage.world.look(|cluster| cluster.list_reassignments(None)), []);
        ask.send(true).unwrap();
    };
    let (ending, ()) = tokio::join!(life, asking);
    assert_eq!(ending.unwrap(), Some(Ending::Stopped));
    for (mv, (before, after)) in moves().iter().zip(before.iter().zip(stage.registrations())) {
        let replicas: Vec<BrokerId> = after.replicas.iter().map(|id| BrokerId(id.0)).collect();
        assert!(after.replicas == before.replicas || replicas == mv.new, "{}: {replicas:?}", mv.partition);
    }
    stage.assert_at_rest("stopped");
}

#[tokio::test(start_paused = true)]
async fn a_newer_engine_shuts_the_older_one_out() {
    let stage = Stage::new();
    let (stop, report) = nobody();
    let older = stage.live(Some(run()), stop, report);
    let newer = async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        let (stop, report) = nobody();
        stage.live(None, stop, report).await
    };
    let (older, newer) = tokio::join!(older, newer);
    assert!(matches!(older, Err(Error::Fenced { .. })), "{older:?}");
    assert_eq!(newer.unwrap(), Some(Ending::Completed));
    stage.assert_done("taken over");
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_cannot_be_reached_is_waited_for() {
    let stage = Stage::new();
    let (stop, report) = nobody();
    let mut seen = report.subscribe();
    let life = stage.live(Some(run()), stop, report);
    let night = async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        let all = || (0..4).map(evenkeel_sim::BrokerId);
        stage.world.with(|cluster| all().for_each(|id| cluster.suffer(&Fault::CutLink(id))));
        seen.wait_for(|report| report.trouble.is_some()).await.unwrap();
        tokio::time::sleep(Duration::from_secs(600)).await;
        stage.world.with(|cluster| all().for_each(|id| cluster.suffer(&Fault::MendedLink(id))));
        seen.wait_for(|report| report.trouble.is_none()).await.unwrap();
    };
    let (ending, ()) = tokio::join!(life, night);
    // Brokers that were only out of reach are given up by nobody.
    assert_eq!(ending.unwrap(), Some(Ending::Completed));
    stage.assert_done("after the night");
}

/// A run that is stopped after two seconds, when broker 2 is no longer heard of.
async fn stopped_without_broker_2(stage: &Stage, fault: Fault, then: impl Future<Output = ()>) -> Option<Ending> {
    let (ask, stop) = watch::channel(false);
    let life = stage.live(Some(run()), stop, watch::channel(Report::default()).0);
    let asking = async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_ne!(stage.world.look(|cluster| cluster.list_reassignments(None)), []);
        stage.world.with(|cluster| cluster.suffer(&fault));
        ask.send(true).unwrap();
        then.await;
        // Who asks is there until the end.
        ask.closed().await;
    };
    let (ending, ()) = tokio::join!(tokio::time::timeout(Duration::from_secs(1_800), life), asking);
    ending.expect("it comes to an end").unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_rate_of_a_broker_that_is_down_at_the_end_is_lifted_when_it_returns() {
    let stage = Stage::new();
    let two = evenkeel_sim::BrokerId(2);
    let returning = async {
        tokio::time::sleep(Duration::from_secs(20)).await;
        stage.world.with(|cluster| cluster.suffer(&Fault::Return(two)));
    };
    let ending = stopped_without_broker_2(&stage, Fault::Crash(two), returning).await;
    assert_eq!(ending, Some(Ending::Stopped));
    stage.assert_at_rest("stopped while a broker was down");
}

#[tokio::test(start_paused = true)]
async fn a_broker_that_says_nothing_keeps_no_stop_from_its_end() {
    // Everybody takes it to be up all the while.
    let stage = Stage::with_session_timeout(24 * 3_600_000);
    let fault = Fault::CutLink(evenkeel_sim::BrokerId(2));
    assert_eq!(stopped_without_broker_2(&stage, fault, async {}).await, Some(Ending::Stopped));
    assert_eq!(stage.world.look(|cluster| cluster.list_reassignments(None)), []);
}

#[tokio::test(start_paused = true)]
async fn what_is_left_of_a_throttle_is_lifted_when_its_broker_returns_in_whatever_life() {
    let stage = Stage::new();
    let two = evenkeel_sim::BrokerId(2);
    let executor = stage.executor().await;
    executor.begin(Start { run: run(), task: None, change: HistoryChange::default() }).await.unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    stage.world.with(|cluster| cluster.suffer(&Fault::Crash(two)));
    executor.stop(false).await.unwrap();
    idle(&executor).await;
    assert!(is_held_back(&stage, two), "nobody could reach it");
    assert_eq!(executor.throttles_left(), 1, "and that can be seen");
    drop(executor);
    let next = stage.executor().await;
    assert_eq!(next.throttles_left(), 1);
    tokio::time::sleep(Duration::from_secs(600)).await;
    stage.world.with(|cluster| cluster.suffer(&Fault::Return(two)));
    tokio::time::sleep(Duration::from_secs(120)).await;
    stage.assert_at_rest("once it is back");
    assert_eq!(next.throttles_left(), 0);
    drop(next);
    assert!(Journal::open(stage.client()).await.unwrap().1.leftover.is_empty());
}

/// Whether the broker's settings hold copies back.
fn is_held_back(stage: &Stage, broker: evenkeel_sim::BrokerId) -> bool {
    let settings = stage.world.look(|cluster| cluster.describe_configs(broker, &Resource::Broker(broker))).unwrap();
    settings.iter().any(|it| it.name.ends_with("replication.throttled.rate") && it.value.is_some())
}

/// A broker crashes amid a run and is struck off; then the run is stopped, and leaves what it cannot reach.
async fn stop_without(stage: &Stage, executor: &Executor, broker: evenkeel_sim::BrokerId) {
    tokio::time::sleep(Duration::from_secs(2)).await;
    stage.world.with(|cluster| cluster.suffer(&Fault::Crash(broker)));
    tokio::time::sleep(Duration::from_secs(5)).await;
    stage.world.with(|cluster| cluster.unregister_broker(broker)).unwrap();
    executor.stop(false).await.unwrap();
    idle(executor).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_left_of_a_throttle_is_lifted_also_from_a_broker_that_was_unregistered() {
    let stage = Stage::new();
    let two = evenkeel_sim::BrokerId(2);
    let executor = stage.executor().await;
    executor.begin(Start { run: run(), task: None, change: HistoryChange::default() }).await.unwrap();
    stop_without(&stage, &executor, two).await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    stage.world.with(|cluster| cluster.suffer(&Fault::Return(two)));
    assert!(is_held_back(&stage, two), "nobody could reach it");
    tokio::time::sleep(Duration::from_secs(120)).await;
    stage.assert_at_rest("once it is back");
}

#[tokio::test(start_paused = true)]
async fn what_is_left_of_a_throttle_is_lifted_while_the_next_run_is_under_way() {
    let moves = vec![mv(0, [0, 1], [0, 2], 100 * MB), mv(1, [0, 1], [0, 3], 2_000 * MB)];
    let stage = Stage::of(moves.clone(), 2_000);
    let two = evenkeel_sim::BrokerId(2);
    let begin = |executor: Executor, n: u128, mv: Move| async move {
        let run = Run { id: Uuid::from_u128(n), ..run_of(vec![mv]) };
        executor.begin(Start { run, task: None, change: HistoryChange::default() }).await.unwrap();
    };
    let executor = stage.executor().await;
    begin(executor.clone(), 1, moves[0].clone()).await;
    stop_without(&stage, &executor, two).await;
    assert_eq!(executor.throttles_left(), 1);
    // Held back as well, and it takes two minutes; but broker 2 has no part in it.
    begin(executor.clone(), 2, moves[1].clone()).await;
    stage.world.with(|cluster| cluster.suffer(&Fault::Return(two)));
    assert!(is_held_back(&stage, two), "it comes back with what it had");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(executor.running().is_some(), "the other run is not over");
    assert!(!is_held_back(&stage, two));
    assert_eq!(executor.throttles_left(), 0);
    idle(&executor).await;
    assert_eq!(executor.throttles_left(), 0, "nor does its end bring back what was lifted");
    stage.assert_at_rest("after both");
    drop(executor);
    assert!(Journal::open(stage.client()).await.unwrap().1.leftover.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_stop_is_heeded_though_nobody_can_record_it() {
    let stage = Stage::new();
    let executor = stage.executor().await;
    executor.begin(Start { run: run(), task: None, change: HistoryChange::default() }).await.unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    stage.cut(true);
    executor.stop(true).await.expect("the run has heard of it");
    assert!(executor.running().is_some(), "nobody can take back what is in flight");
    stage.cut(false);
    idle(&executor).await;
    assert_eq!(executor.endings().pop().map(|it| it.ending), Some(Ending::Stopped));
    stage.assert_at_rest("stopped while Kafka was out of reach");
    drop(executor);
    assert!(Journal::open(stage.client()).await.unwrap().1.run.is_none());
}

#[tokio::test(start_paused = true)]
async fn what_holds_before_it_is_on_record_is_on_record_once_that_can_be() {
    let stage = Stage::with_session_timeout(24 * 3_600_000);
    let executor = stage.executor().await;
    stage.cut(true);
    executor.switch(|switches| switches.paused = Some("a test".to_owned())).await.unwrap();
    assert!(executor.journal_trouble().is_some());
    stage.cut(false);
    // Nobody asks for anything else.
    tokio::time::sleep(Duration::from_secs(180)).await;
    assert_eq!(executor.journal_trouble(), None);
    drop(executor);
    assert_eq!(stage.executor().await.switches().paused.as_deref(), Some("a test"));
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_recorded_is_refused_in_time_and_does_not_come_to_be_later() {
    let moves = vec![mv(0, [0, 1], [0, 2], MB)];
    let stage = Stage::of(moves.clone(), 24 * 3_600_000);
    let executor = stage.executor().await;
    let removed = std::collections::BTreeSet::from([BrokerId(1)]);
    let change = HistoryChange { removed: removed.clone(), ..HistoryChange::default() };
    executor.begin(Start { run: run_of(moves), task: None, change }).await.unwrap();
    idle(&executor).await;
    stage.cut(true);
    let none = std::collections::BTreeSet::new();
    let asked = tokio::time::timeout(Duration::from_secs(31), executor.forget_brokers(&removed, &none)).await;
    asked.expect("who asks is not to wait for long").unwrap_err();
    stage.cut(false);
    tokio::time::sleep(Duration::from_secs(180)).await;
    assert_eq!(executor.journal_trouble(), None);
    assert!(executor.history().removed.contains_key(&BrokerId(1)));
    drop(executor);
    assert!(stage.executor().await.history().removed.contains_key(&BrokerId(1)));
}

#[tokio::test(start_paused = true)]
async fn a_throttle_is_lifted_from_a_broker_that_is_down_between_the_copying_and_the_end() {
    let moves = vec![mv(0, [0, 1], [0, 2], 200 * MB), mv(1, [0, 3], [3, 0], MB)];
    let stage = Stage::of(moves.clone(), 2_000);
    let executor = stage.executor().await;
    let start = Start { run: run_of(moves), task: None, change: HistoryChange::default() };
    executor.begin(start).await.unwrap();
    tokio::time::sleep(Duration::from_secs(4)).await;
    // It has nothing to do with what is still being copied, and holds up the lead.
    let one = evenkeel_sim::BrokerId(1);
    stage.world.with(|cluster| cluster.suffer(&Fault::Crash(one)));
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(executor.running().unwrap().1.phase, Some(Kind::Leader));
    stage.world.with(|cluster| cluster.suffer(&Fault::Return(one)));
    idle(&executor).await;
    stage.assert_done("after ten minutes without broker 1");
}

#[tokio::test(start_paused = true)]
async fn a_live_broker_that_says_nothing_does_not_escape_the_throttle() {
    let stage = Stage::with_session_timeout(24 * 3_600_000);
    let executor = stage.executor().await;
    let keeper = stage.world.look(|cluster| cluster.registration(TOPIC, 0).unwrap().leader.unwrap());
    let silent = [2, 3].map(evenkeel_sim::BrokerId).into_iter().find(|id| *id != keeper).unwrap();
    stage.world.with(|cluster| cluster.suffer(&Fault::CutLink(silent)));
    executor.begin(Start { run: run(), task: None, change: HistoryChange::default() }).await.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(executor.running().unwrap().1.trouble.is_some());
    assert_eq!(stage.world.look(|cluster| cluster.list_reassignments(None)), [], "nothing moves yet");
    stage.world.with(|cluster| cluster.suffer(&Fault::MendedLink(silent)));
    stage.world.until(|cluster| !cluster.list_reassignments(None).is_empty()).await;
    assert!(is_held_back(&stage, silent));
    idle(&executor).await;
    stage.assert_done("once it answered");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_begun_on_top_of_a_run_that_cannot_be_read() {
    let stage = Stage::new();
    let (journal, _) = Journal::open(stage.client()).await.unwrap();
    let key = "run/00000000-0000-0000-0000-000000000009".to_owned();
    journal.append(vec![Entry { key: key.clone(), value: Some(b"of a newer engine".to_vec()) }]).await.unwrap();
    drop(journal);
    let executor = stage.executor().await;
    let refused = executor.begin(Start { run: run(), task: None, change: HistoryChange::default() }).await;
    assert!(matches!(&refused, Err(NotBegun::Unreadable(named)) if *named == key), "{refused:?}");
}

#[tokio::test(start_paused = true)]
async fn whoever_stops_what_is_under_way_is_next_and_it_is_never_idle_in_between() {
    let stage = Stage::new();
    let executor = stage.executor().await;
    executor.begin(Start { run: run(), task: None, change: HistoryChange::default() }).await.unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    let next = Trigger { triggered_task_reason: "the next".to_owned(), ..Trigger::default() };
    let reservation = executor.reserve_next(next.clone()).unwrap();
    assert!(matches!(executor.reserve_next(next), Err(NotBegun::Busy)), "one is next, and not two");
    let mut ended = executor.ended();
    // Whoever hears of the end looks at once.
    let looking = async {
        ended.recv().await.unwrap();
        executor.state(false)
    };
    let (taken, state) = tokio::join!(reservation.take_over(), looking);
    taken.unwrap();
    assert_eq!(state.phase, Phase::Generating);
    assert_eq!(state.trigger.unwrap().triggered_task_reason, "the next");
    assert_eq!(executor.endings().pop().map(|it| it.ending), Some(Ending::Stopped));
    drop(reservation);
    assert_eq!(executor.state(false).phase, Phase::Idle);
    stage.assert_at_rest("what was under way is over");
}

#[tokio::test(start_paused = true)]
async fn a_stop_is_meant_for_who_is_next_as_well() {
    let stage = Stage::new();
    let executor = stage.executor().await;
    executor.begin(Start { run: run(), task: None, change: HistoryChange::default() }).await.unwrap();
    let reservation = executor.reserve_next(Trigger::default()).unwrap();
    executor.stop(false).await.unwrap();
    reservation.take_over().await.unwrap();
    assert!(matches!(reservation.clear_the_way(true).await, Err(NotBegun::Stopped)));
}
