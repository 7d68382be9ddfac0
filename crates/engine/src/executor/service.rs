//! The executor as the rest of the engine knows it: at most one run at a time, begun, watched, stopped.
//!
//! ```text
//!   Idle --reserve--> Reserved --begin: on record first--> Running --over: on record first--> Idle, or who took it over
//!    ^                    |                                    |
//!    +---- given up ------+                                    +--- a newer engine acts ---> Fenced
//! ```
//!
//! A run that a life before this one has begun is found in the journal and carried on at once. Who
//! was told that a run began will find it, its user task and what it did to the history of brokers,
//! for all of it is one record. Dropping the last handle ends this process's part and nothing else.

mod shared;
mod terms;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, Weak},
    time::Duration,
};

use evenkeel_kafka::{BrokerId, Client, Error};
use evenkeel_rest::{
    body::state::{BrokerProgress, ExecutorState, Trigger},
    json::Key,
};
use tokio::{
    sync::{broadcast, watch},
    time::timeout,
};
use uuid::Uuid;

use self::shared::{At, Current, Heir, Shared, State};
pub use self::terms::{Ended, HistoryChange, NotBegun, Start, Tally};
use super::{Adjustment, Execution, Leftover, Millis, Report, Standing, state as bodies};
use crate::{
    aside::aside,
    clock::WallClock,
    config::settings,
    journal::{self, History, Journal, Recovered, Run, Switches},
    said::chain,
    tasks::{Status, UserTask},
};

/// The first and the longest pause while the journal cannot be opened.
const PAUSES: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(10)];
/// How often it is tried to lift what is left of throttles, and for how long: nothing begins meanwhile.
const TIDY_UP_EVERY: Duration = Duration::from_secs(10);
const TIDY_UP_WITHIN: Duration = Duration::from_secs(10);
/// How long it is tried to take back moves of others beside a run that stops anyway.
const OTHERS_WITHIN: Duration = Duration::from_secs(5);
/// How long somebody waits for a turn, or for moves of others to be taken back.
const TURN_WITHIN: Duration = Duration::from_secs(10);
/// Endings that a slow listener may be behind, and how many are kept for one that was behind further.
const ENDINGS: usize = 64;
const ENDINGS_KEPT: usize = 1_024;
const _: () = assert!(ENDINGS_KEPT > ENDINGS, "what is not kept longer is missed");

/// The executor. Clones are the same one.
#[derive(Debug, Clone)]
pub struct Executor {
    shared: Arc<Shared>,
}

impl Executor {
    /// Opens the journal, shutting out whoever had it open, and carries on what was under way. While
    /// Kafka cannot be reached it waits, and tells `waits` why. The user tasks are those on record.
    pub async fn open(
        client: Client,
        settings: &settings::Executor,
        clock: WallClock,
        mut waits: impl FnMut(&str),
    ) -> (Executor, BTreeMap<Uuid, UserTask>) {
        let [mut pause, longest] = PAUSES;
        let (journal, recovered) = loop {
            match Journal::open(client.clone()).await {
                Ok(opened) => break opened,
                Err(error) => {
                    let said = chain(&error);
                    tracing::warn!(error = said, "the journal cannot be opened yet");
                    waits(&said);
                }
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(longest);
        };
        let Recovered { run, tasks, history, switches, leftover, strange } = recovered;
        if !strange.is_empty() {
            tracing::warn!(keys = ?strange, "the journal holds what this engine does not understand");
        }
        let leftover = Leftover::new(client.clone(), journal.clone(), leftover);
        let executor = Executor {
            shared: Arc::new(Shared {
                client,
                journal,
                clock,
                slowness: settings.slowness,
                removal_memory: settings.removal_memory,
                demotion_memory: settings.demotion_memory,
                state: Mutex::new(State {
                    at: At::Idle,
                    heir: None,
                    history,
                    switches,
                    unreadable: strange.into_iter().find(|key| journal::is_run(key)),
                    tally: Tally::default(),
                    reservations: 0,
                    endings: VecDeque::new(),
                    ended_at: None,
                }),
                leftover: Arc::new(leftover),
                changing_history: tokio::sync::Mutex::new(()),
                ended: broadcast::Sender::new(ENDINGS),
                changes: watch::Sender::new(0),
                running: watch::Sender::new(false),
            }),
        };
        tokio::spawn(tidy_up(Arc::downgrade(&executor.shared)));
        let under_way = run.as_ref().and_then(|(run, _)| run.task);
        let tasks = settled(tasks, under_way, clock.now());
        if let Some((run, execution)) = run {
            tracing::info!(run = %run.id, reason = run.reason, "an execution is carried on");
            let task = run.task.and_then(|id| tasks.get(&id)).cloned();
            executor.shared.launch(run, execution, task);
        }
        (executor, tasks)
    }

    /// Keeps the executor free for a plan that is being made to be carried out.
    pub fn reserve(&self, trigger: Trigger) -> Result<Reservation, NotBegun> {
        self.reserve_if(trigger, |state| matches!(state.at, At::Idle))
    }

    /// The same for one that may stop what is under way: its turn comes when that is over, and in between nobody sees that
    /// there is nothing to do. See [`Reservation::take_over`].
    pub fn reserve_next(&self, trigger: Trigger) -> Result<Reservation, NotBegun> {
        self.reserve_if(trigger, |state| matches!(state.at, At::Idle) || state.heir.is_none())
    }

    fn reserve_if(&self, trigger: Trigger, may: impl Fn(&State) -> bool) -> Result<Reservation, NotBegun> {
        let mut state = self.may_begin()?;
        if !may(&state) {
            return Err(NotBegun::Busy);
        }
        state.reservations += 1;
        let number = state.reservations;
        match state.at {
            At::Idle => state.at = At::Reserved { number, trigger, stopped: false },
            _ => state.heir = Some(Heir { number, trigger, stopped: false }),
        }
        drop(state);
        self.shared.changed();
        Ok(Reservation { shared: Arc::clone(&self.shared), number })
    }

    /// Where it stands, unless nothing may ever begin here.
    fn may_begin(&self) -> Result<MutexGuard<'_, State>, NotBegun> {
        let state = self.shared.state();
        if let Some(key) = &state.unreadable {
            return Err(NotBegun::Unreadable(key.clone()));
        }
        match state.at {
            At::Idle if self.shared.journal.is_fenced() => Err(NotBegun::Fenced),
            At::Fenced => Err(NotBegun::Fenced),
            At::Idle | At::Reserved { .. } | At::Running(_) => Ok(state),
        }
    }

    /// Begins a run, if none is under way.
    pub async fn begin(&self, start: Start) -> Result<(), NotBegun> {
        self.reserve(bodies::trigger(&start.run))?.begin(start).await
    }

    /// Asks for a stop: nothing new begins, and what is in flight is taken back. With `others`, moves
    /// that other tools began are taken back as well. A run that has heard of it stops, whatever fails after that.
    pub async fn stop(&self, others: bool) -> Result<(), Error> {
        if let Some(heir) = &mut self.shared.state().heir {
            heir.stopped = true;
        }
        let stopped = self.shared.stop_current(None).await?;
        if !others {
            return Ok(());
        }
        let take_back = |run: Option<Arc<Run>>| async move {
            // Those may be a newer engine's, which this one has not heard of yet.
            self.shared.journal.confirm().await?;
            self.shared.stop_others(run.as_deref()).await
        };
        match stopped {
            // What another engine does is no longer ours to stop.
            Current::Fenced => Ok(()),
            Current::Nothing => match timeout(TURN_WITHIN, take_back(None)).await {
                Ok(done) => done,
                Err(_) => Err(self.shared.journal.is_late()),
            },
            Current::Run(run) => match timeout(OTHERS_WITHIN, take_back(Some(run))).await {
                Ok(Err(error @ Error::Fenced { .. })) => Err(error),
                Ok(Err(error)) => {
                    tracing::warn!(error = chain(&error), "the run stops; moves of others are not taken back");
                    Ok(())
                }
                Err(_) => {
                    tracing::warn!("the run stops; moves of others are not taken back, for that takes too long");
                    Ok(())
                }
                Ok(Ok(())) => Ok(()),
            },
        }
    }

    /// Changes what may be under way at once, for the run that is; without one it changes nothing, for
    /// a run has its limits from the request that wants it.
    pub fn adjust(&self, adjustment: Adjustment) {
        if let At::Running(running) = &self.shared.state().at {
            running.adjust.send_modify(|earlier| *earlier = adjustment.after(*earlier));
        }
    }

    /// The body of `state`.
    pub fn state(&self, verbose: bool) -> ExecutorState {
        let history = self.history();
        // Where it stands is looked at once: in between two looks what was reserved could have begun.
        let (reserved, running) = match &self.shared.state().at {
            At::Running(running) => (None, Some((Arc::clone(&running.run), running.report.borrow().clone()))),
            At::Reserved { trigger, .. } => (Some(trigger.clone()), None),
            At::Idle | At::Fenced => (None, None),
        };
        let standing = match (&reserved, &running) {
            (_, Some((run, report))) => Standing::Running(run, report),
            (Some(trigger), None) => Standing::Generating(trigger),
            (None, None) => Standing::Idle,
        };
        bodies::state(standing, &history, verbose)
    }

    /// How far each broker is that receives something in the run that is under way, for the body of `state`.
    pub fn by_broker(&self) -> BTreeMap<Key<i32>, BrokerProgress> {
        self.running().map(|(_, report)| bodies::by_broker(&report)).unwrap_or_default()
    }

    /// The run that is under way, and how it stands.
    pub fn running(&self) -> Option<(Arc<Run>, Report)> {
        match &self.shared.state().at {
            At::Running(running) => Some((Arc::clone(&running.run), running.report.borrow().clone())),
            _ => None,
        }
    }

    /// Whether the run that is under way is being worked on, and the journal looked after: only a fault of ours ends that.
    pub fn is_at_work(&self) -> bool {
        let runs = match &self.shared.state().at {
            At::Running(running) => !running.life.is_finished(),
            _ => true,
        };
        runs && self.shared.journal.is_at_work()
    }

    /// Whether a run is under way, each time that changes.
    pub fn is_running(&self) -> watch::Receiver<bool> {
        self.shared.running.subscribe()
    }

    /// Brokers and topics that are still held back by runs that are over: nobody could lift it yet.
    pub fn throttles_left(&self) -> usize {
        let left = self.shared.leftover.known();
        left.brokers.len() + left.topics.len()
    }

    /// Runs so far.
    pub fn tally(&self) -> Tally {
        self.shared.state().tally
    }

    /// Brokers removed and demoted not too long ago.
    pub fn history(&self) -> History {
        self.shared.recent(&self.shared.state().history)
    }

    /// Forgets that brokers were removed or demoted; tells what was remembered before, and what is now.
    pub async fn forget_brokers(
        &self,
        removed: &BTreeSet<BrokerId>,
        demoted: &BTreeSet<BrokerId>,
    ) -> Result<(History, History), Error> {
        let Ok(_alone) = timeout(TURN_WITHIN, self.shared.changing_history.lock()).await else {
            return Err(self.shared.journal.is_late());
        };
        let before = self.history();
        let mut after = before.clone();
        after.removed.retain(|broker, _| !removed.contains(broker));
        after.demoted.retain(|broker, _| !demoted.contains(broker));
        if after != before {
            self.shared.journal.append_soon_or_take_back(vec![after.entry()], vec![before.entry()]).await?;
            self.shared.state().history = after.clone();
        }
        Ok((before, after))
    }

    /// Puts on record which brokers are missed, and since when. Should that fail, the next change brings it along.
    pub async fn remember_missing(&self, missing: BTreeMap<BrokerId, Millis>) {
        let _alone = self.shared.changing_history.lock().await;
        let after = History { missing, ..self.history() };
        self.shared.state().history = after.clone();
        if let Err(error) = self.shared.journal.append(vec![after.entry()]).await {
            tracing::warn!(error = chain(&error), "which brokers are missed is not on record");
        }
    }

    /// What people have switched by requests.
    pub fn switches(&self) -> Switches {
        self.shared.state().switches.clone()
    }

    /// Remembers that somebody has switched something, for the next life too: on record now, or as soon as that can be.
    pub async fn switch(&self, change: impl FnOnce(&mut Switches)) -> Result<(), Error> {
        let switched = {
            let mut state = self.shared.state();
            change(&mut state.switches);
            state.switches.entry()
        };
        self.shared.journal.append_or_owe(vec![switched]).await
    }

    /// Why nothing can be recorded now, if so.
    pub fn journal_trouble(&self) -> Option<String> {
        self.shared.journal.trouble()
    }

    /// Puts a user task on record.
    pub async fn record_task(&self, id: Uuid, task: &UserTask) -> Result<(), Error> {
        self.shared.journal.append(journal::task(id, task)).await
    }

    /// Takes user tasks off the record.
    pub async fn forget_tasks(&self, tasks: &[(Uuid, Arc<UserTask>)]) -> Result<(), Error> {
        let entries = tasks.iter().flat_map(|(id, task)| journal::task_forgotten(*id, task)).collect();
        self.shared.journal.append(entries).await
    }

    /// The last runs that ended, for whoever may have missed one.
    pub fn endings(&self) -> Vec<Ended> {
        self.shared.state().endings.iter().copied().collect()
    }

    /// When the last run ended that this process has seen, in milliseconds since 1970.
    pub fn ended_at(&self) -> Option<Millis> {
        self.shared.state().ended_at
    }

    /// Tells of every run that ends from now on.
    pub fn ended(&self) -> broadcast::Receiver<Ended> {
        self.shared.ended.subscribe()
    }

    /// Turns true when a newer engine has taken over.
    pub fn fenced(&self) -> watch::Receiver<bool> {
        self.shared.journal.fenced()
    }
}

/// The executor, kept free. Dropping it gives it back.
#[derive(Debug)]
pub struct Reservation {
    shared: Arc<Shared>,
    number: u64,
}

impl Reservation {
    /// Stops what is under way, if anything is, and waits until that is over.
    pub async fn take_over(&self) -> Result<(), NotBegun> {
        let mut changes = self.shared.changes.subscribe();
        let is_its_turn = || match &self.shared.state().at {
            At::Reserved { number, .. } => Ok(*number == self.number),
            At::Fenced => Err(NotBegun::Fenced),
            At::Idle | At::Running(_) => Ok(false),
        };
        if !is_its_turn()? {
            self.shared.stop_current(Some(self.number)).await.map_err(NotBegun::NotStopped)?;
        }
        while !is_its_turn()? {
            // The sender lives as long as `self`.
            let _ = changes.changed().await;
        }
        Ok(())
    }

    /// How many partitions others move, apart from what this engine carries out now; an error if they are not to be stopped
    /// for it.
    pub async fn others(&self, stops_others: bool) -> Result<usize, NotBegun> {
        let run = match &self.shared.state().at {
            At::Running(running) => Some(Arc::clone(&running.run)),
            _ => None,
        };
        let others = self.shared.others(run.as_deref()).await?.len();
        if others == 0 || stops_others { Ok(others) } else { Err(NotBegun::OthersMove(others)) }
    }

    /// Makes sure that nobody else moves anything, before a plan is made that is to be carried out. What others move is
    /// taken back, if they may be stopped; this returns when the brokers no longer show it.
    pub async fn clear_the_way(&self, stops_others: bool) -> Result<(), NotBegun> {
        self.check()?;
        self.shared.clear_the_way(stops_others).await
    }

    /// Begins a run: on record first.
    pub async fn begin(self, start: Start) -> Result<(), NotBegun> {
        let Start { run, task, change } = start;
        // Of many moves the records take a moment.
        let (run, execution, mut entries) = aside(move || {
            let (execution, entries) = (Execution::new(run.order.clone()), run.begun());
            (run, execution, entries)
        })
        .await;
        let _alone = self.shared.changing_history.lock().await;
        self.check()?;
        let mut back = Run::unbegun(&entries);
        if let (Some(id), Some(task)) = (run.task, &task) {
            entries.extend(journal::task(id, task));
        }
        let history = self.shared.recent(&self.shared.state().history);
        let changed = change.applied_to(&history, self.shared.clock.now());
        if changed != history {
            entries.push(changed.entry());
            back.push(history.entry());
        }
        // If this fails nobody knows whether it is on record. Whoever asked is told that it is not: so it shall be.
        if let Err(error) = self.shared.journal.append_or_take_back(entries, back).await {
            return Err(if matches!(error, Error::Fenced { .. }) { NotBegun::Fenced } else { error.into() });
        }
        self.shared.state().history = changed;
        tracing::info!(run = %run.id, reason = run.reason, moves = run.order.moves.len(), "an execution begins");
        self.shared.launch(run, execution, task);
        Ok(())
    }

    /// Whether a stop was asked for meanwhile.
    fn check(&self) -> Result<(), NotBegun> {
        match &self.shared.state().at {
            At::Reserved { number, stopped: false, .. } if *number == self.number => Ok(()),
            At::Reserved { .. } => Err(NotBegun::Stopped),
            _ => Err(NotBegun::Fenced),
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        state.heir.take_if(|heir| heir.number == self.number);
        if matches!(state.at, At::Reserved { number, .. } if number == self.number) {
            state.vacate();
            drop(state);
            self.shared.changed();
        }
    }
}

/// Lifts what is left of throttles, as long as anybody needs the executor.
async fn tidy_up(shared: Weak<Shared>) {
    loop {
        tokio::time::sleep(TIDY_UP_EVERY).await;
        let Some(shared) = shared.upgrade() else { return };
        match timeout(TIDY_UP_WITHIN, shared.lift_leftover()).await {
            Ok(Ok(())) => {}
            Ok(Err(Error::Fenced { .. })) => return,
            Ok(Err(error)) => tracing::debug!(error = chain(&error), "what is left of a throttle is still there"),
            Err(_) => tracing::debug!("what is left of a throttle is still there: Kafka takes too long"),
        }
    }
}

/// The tasks on record as they are now. What says to be in execution while its run is not there is over, and
/// nobody knows how it ended.
fn settled(tasks: BTreeMap<Uuid, UserTask>, under_way: Option<Uuid>, now: Millis) -> BTreeMap<Uuid, UserTask> {
    let settle = |id: Uuid, task: UserTask| match task.status {
        Status::InExecution(_) if under_way != Some(id) => task.executed(false, now),
        _ => task,
    };
    tasks.into_iter().map(|(id, task)| (id, settle(id, task))).collect()
}
