//! The executor as the rest of the engine knows it: at most one run at a time, begun, watched, stopped.
//!
//! ```text
//!   Idle --reserve--> Reserved --begin: on record first--> Running --over: on record first--> Idle
//!    ^                    |                                    |
//!    +---- given up ------+                                    +--- a newer engine acts ---> Fenced
//! ```
//!
//! A run that a life before this one has begun is found in the journal and carried on at once. Who
//! was told that a run began will find it, its user task and what it did to the history of brokers,
//! for all of it is one record. Dropping the last handle ends this process's part and nothing else.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use evenkeel_kafka::{BrokerId, Client, Error, TopicPartition, calls::reassignments::Target};
use evenkeel_rest::{
    Failure,
    body::state::{ExecutorState, Trigger},
};
use tokio::{
    sync::{broadcast, watch},
    task::AbortHandle,
};
use uuid::Uuid;

use super::{Adjustment, Ending, Execution, Millis, Report, Runner, Standing, state as bodies};
use crate::{
    clock::WallClock,
    config::settings,
    journal::{self, History, Journal, Recovered, Run},
    said::chain,
    tasks::{Status, UserTask},
};

/// The first and the longest pause while the journal cannot be opened.
const PAUSES: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(10)];
/// Endings that a slow listener may be behind.
const ENDINGS: usize = 64;

/// The executor. Clones are the same one.
#[derive(Debug, Clone)]
pub struct Executor {
    shared: Arc<Shared>,
}

/// All that has to be there for a run to begin.
#[derive(Debug, Clone)]
pub struct Start {
    /// The run.
    pub run: Run,
    /// The user task that asked for it, with its answer, as it is from now on; of the run's `task`.
    pub task: Option<UserTask>,
    /// What it means for the history of brokers.
    pub change: HistoryChange,
}

/// What a run means for the history of brokers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HistoryChange {
    /// Brokers that it empties.
    pub removed: BTreeSet<BrokerId>,
    /// Brokers that it takes the lead from.
    pub demoted: BTreeSet<BrokerId>,
    /// Brokers that it fills again: they are no longer removed ones.
    pub added: BTreeSet<BrokerId>,
}

/// That a run is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// Which.
    pub run: Uuid,
    /// The user task that asked for it.
    pub task: Option<Uuid>,
    /// How.
    pub ending: Ending,
}

/// Runs since the process began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Begun, or taken up again.
    pub started: u64,
    /// Ended before all was done that could be.
    pub stopped: u64,
    /// Ended with something undone.
    pub incomplete: u64,
}

/// Why a run has not begun.
#[derive(Debug, thiserror::Error)]
pub enum NotBegun {
    /// Another one is under way, or about to be.
    #[error("another execution is under way")]
    Busy,
    /// Somebody asked for a stop before it began.
    #[error("a stop was asked for before the execution began")]
    Stopped,
    /// A newer engine acts.
    #[error("another engine has taken over: this one no longer changes anything")]
    Fenced,
    /// It could not be put on record.
    #[error("the execution could not be recorded")]
    Record(#[from] Error),
}

impl From<NotBegun> for Failure {
    fn from(error: NotBegun) -> Failure {
        match error {
            NotBegun::Busy => Failure::ongoing_execution(),
            other => Failure::illegal_state(chain(&other)),
        }
    }
}

#[derive(Debug)]
struct Shared {
    client: Client,
    journal: Journal,
    clock: WallClock,
    removal_memory: Millis,
    demotion_memory: Millis,
    state: Mutex<State>,
    /// Held while the history is being changed and recorded.
    changing_history: tokio::sync::Mutex<()>,
    ended: broadcast::Sender<Ended>,
    /// Counts changes of where it stands.
    changes: watch::Sender<u64>,
    /// Whether a run is under way.
    running: watch::Sender<bool>,
}

#[derive(Debug)]
struct State {
    at: At,
    history: History,
    tally: Tally,
    reservations: u64,
    /// The last runs that ended.
    endings: VecDeque<Ended>,
}

#[derive(Debug)]
enum At {
    Idle,
    Reserved { number: u64, trigger: Trigger, stopped: bool },
    Running(Running),
    Fenced,
}

#[derive(Debug)]
struct Running {
    run: Arc<Run>,
    report: watch::Receiver<Report>,
    stop: watch::Sender<bool>,
    adjust: watch::Sender<Adjustment>,
    life: AbortHandle,
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
        let Recovered { run, tasks, history, strange } = recovered;
        if !strange.is_empty() {
            tracing::warn!(keys = ?strange, "the journal holds what this engine does not understand");
        }
        let executor = Executor {
            shared: Arc::new(Shared {
                client,
                journal,
                clock,
                removal_memory: settings.removal_memory,
                demotion_memory: settings.demotion_memory,
                state: Mutex::new(State {
                    at: At::Idle,
                    history,
                    tally: Tally::default(),
                    reservations: 0,
                    endings: VecDeque::new(),
                }),
                changing_history: tokio::sync::Mutex::new(()),
                ended: broadcast::Sender::new(ENDINGS),
                changes: watch::Sender::new(0),
                running: watch::Sender::new(false),
            }),
        };
        let under_way = run.as_ref().and_then(|(run, _)| run.task);
        let tasks = settled(tasks, under_way);
        if let Some((run, execution)) = run {
            tracing::info!(run = %run.id, reason = run.reason, "an execution is carried on");
            let task = run.task.and_then(|id| tasks.get(&id)).cloned();
            executor.shared.launch(run, execution, task);
        }
        (executor, tasks)
    }

    /// Keeps the executor free for a plan that is being made to be carried out.
    pub fn reserve(&self, trigger: Trigger) -> Result<Reservation, NotBegun> {
        let mut state = self.shared.state();
        match state.at {
            At::Idle => {}
            At::Fenced => return Err(NotBegun::Fenced),
            At::Reserved { .. } | At::Running(_) => return Err(NotBegun::Busy),
        }
        state.reservations += 1;
        let number = state.reservations;
        state.at = At::Reserved { number, trigger, stopped: false };
        drop(state);
        self.shared.changed();
        Ok(Reservation { shared: Arc::clone(&self.shared), number })
    }

    /// Begins a run, if none is under way.
    pub async fn begin(&self, start: Start) -> Result<(), NotBegun> {
        self.reserve(bodies::trigger(&start.run))?.begin(start).await
    }

    /// Asks for a stop: nothing new begins, and what is in flight is taken back. With `others`, moves
    /// that other tools began are taken back as well.
    pub async fn stop(&self, others: bool) -> Result<(), Error> {
        let ours = {
            let mut state = self.shared.state();
            match &mut state.at {
                At::Running(running) => {
                    running.stop.send_replace(true);
                    Some(Arc::clone(&running.run))
                }
                At::Reserved { stopped, .. } => {
                    *stopped = true;
                    None
                }
                At::Idle => None,
                // What another engine does is no longer ours to stop.
                At::Fenced => return Ok(()),
            }
        };
        if others { self.shared.stop_others(ours.as_deref()).await } else { Ok(()) }
    }

    /// Waits until nothing is under way.
    pub async fn idle(&self) {
        let mut changes = self.shared.changes.subscribe();
        loop {
            if !matches!(self.shared.state().at, At::Running(_) | At::Reserved { .. }) {
                return;
            }
            // The sender lives as long as `self`.
            let _ = changes.changed().await;
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
        if let Some((run, report)) = self.running() {
            return bodies::state(Standing::Running(&run, &report), &history, verbose);
        }
        let reserved = match &self.shared.state().at {
            At::Reserved { trigger, .. } => Some(trigger.clone()),
            _ => None,
        };
        bodies::state(reserved.as_ref().map_or(Standing::Idle, Standing::Generating), &history, verbose)
    }

    /// The run that is under way, and how it stands.
    pub fn running(&self) -> Option<(Arc<Run>, Report)> {
        match &self.shared.state().at {
            At::Running(running) => Some((Arc::clone(&running.run), running.report.borrow().clone())),
            _ => None,
        }
    }

    /// Whether a run is under way, each time that changes.
    pub fn is_running(&self) -> watch::Receiver<bool> {
        self.shared.running.subscribe()
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
        let _alone = self.shared.changing_history.lock().await;
        let before = self.history();
        let mut after = before.clone();
        after.removed.retain(|broker, _| !removed.contains(broker));
        after.demoted.retain(|broker, _| !demoted.contains(broker));
        if after != before {
            self.shared.journal.append(vec![after.entry()]).await?;
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

    /// Puts a user task on record.
    pub async fn record_task(&self, id: Uuid, task: &UserTask) -> Result<(), Error> {
        self.shared.journal.append(journal::task(id, task)).await
    }

    /// Takes user tasks off the record.
    pub async fn forget_tasks(&self, tasks: &[(Uuid, UserTask)]) -> Result<(), Error> {
        let entries = tasks.iter().flat_map(|(id, task)| journal::task_forgotten(*id, task)).collect();
        self.shared.journal.append(entries).await
    }

    /// The last runs that ended, for whoever may have missed one.
    pub fn endings(&self) -> Vec<Ended> {
        self.shared.state().endings.iter().copied().collect()
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
    /// Begins a run: on record first.
    pub async fn begin(self, start: Start) -> Result<(), NotBegun> {
        let Start { run, task, change } = start;
        let execution = Execution::new(run.order.clone());
        let _alone = self.shared.changing_history.lock().await;
        self.check()?;
        let mut entries = run.begun();
        if let (Some(id), Some(task)) = (run.task, &task) {
            entries.extend(journal::task(id, task));
        }
        let history = self.shared.recent(&self.shared.state().history);
        let changed = change.applied_to(&history, self.shared.clock.now());
        if changed != history {
            entries.push(changed.entry());
        }
        if let Err(error) = self.shared.journal.append(entries).await {
            // Nobody knows whether it is on record. Whoever asked is told that it is not: so it shall be.
            let gone = self.shared.journal.append(run.over(&execution)).await;
            if let Err(error) = gone {
                tracing::warn!(error = chain(&error), run = %run.id, "a run that failed to begin may be on record");
            }
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
        if matches!(state.at, At::Reserved { number, .. } if number == self.number) {
            state.at = At::Idle;
            drop(state);
            self.shared.changed();
        }
    }
}

impl HistoryChange {
    fn applied_to(&self, history: &History, now: Millis) -> History {
        let mut after = history.clone();
        after.removed.retain(|broker, _| !self.added.contains(broker));
        after.removed.extend(self.removed.iter().map(|broker| (*broker, now)));
        after.demoted.extend(self.demoted.iter().map(|broker| (*broker, now)));
        after
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn changed(&self) {
        self.changes.send_modify(|changes| *changes += 1);
        let running = matches!(self.state().at, At::Running(_));
        self.running.send_if_modified(|was| std::mem::replace(was, running) != running);
    }

    fn recent(&self, history: &History) -> History {
        let now = self.clock.now();
        let within = |brokers: &BTreeMap<BrokerId, i64>, memory: Millis| {
            brokers.iter().filter(|(_, at)| now - **at < memory).map(|(broker, at)| (*broker, *at)).collect()
        };
        History {
            removed: within(&history.removed, self.removal_memory),
            demoted: within(&history.demoted, self.demotion_memory),
            missing: history.missing.clone(),
        }
    }

    /// Carries a run on, in a task of its own.
    fn launch(self: &Arc<Self>, run: Run, execution: Execution, task: Option<UserTask>) {
        let (stop, stopped) = watch::channel(false);
        let (adjust, adjusted) = watch::channel(Adjustment::default());
        let (reporter, report) = watch::channel(Report::default());
        let run = Arc::new(run);
        let runner = Runner {
            client: self.client.clone(),
            journal: self.journal.clone(),
            clock: self.clock,
            stop: stopped,
            adjust: adjusted,
            task,
            report: reporter,
        };
        let mut state = self.state();
        let (weak, its_run): (Weak<Shared>, _) = (Arc::downgrade(self), Arc::clone(&run));
        let life = tokio::spawn(async move {
            let ending = runner.carry_out(&its_run, execution).await;
            if let Some(shared) = weak.upgrade() {
                shared.over(&its_run, ending);
            }
        })
        .abort_handle();
        state.tally.started += 1;
        state.at = At::Running(Running { run, report, stop, adjust, life });
        drop(state);
        self.changed();
    }

    fn over(&self, run: &Run, ending: Result<Ending, Error>) {
        let mut state = self.state();
        match ending {
            Ok(ending) => {
                state.at = At::Idle;
                match ending {
                    Ending::Completed => {}
                    Ending::Incomplete => state.tally.incomplete += 1,
                    Ending::Stopped => state.tally.stopped += 1,
                }
                let ended = Ended { run: run.id, task: run.task, ending };
                state.endings.push_back(ended);
                if state.endings.len() > ENDINGS {
                    state.endings.pop_front();
                }
                drop(state);
                tracing::info!(run = %run.id, ?ending, "an execution is over");
                // Nobody may be listening.
                let _ = self.ended.send(ended);
            }
            Err(error) => {
                state.at = At::Fenced;
                drop(state);
                tracing::error!(error = chain(&error), "another engine carries the execution on");
            }
        }
        self.changed();
    }

    /// Takes back moves that are not of this run.
    async fn stop_others(&self, run: Option<&Run>) -> Result<(), Error> {
        let ours: BTreeMap<&TopicPartition, &[BrokerId]> =
            run.iter().flat_map(|run| &run.order.moves).map(|mv| (&mv.partition, mv.new.as_slice())).collect();
        let listed = self.client.list_reassignments(None).await?;
        let others: BTreeMap<TopicPartition, Target> = listed
            .into_iter()
            .filter(|(partition, seen)| !ours.get(partition).is_some_and(|new| seen.replicas.starts_with(new)))
            .map(|(partition, _)| (partition, Target::Cancel))
            .collect();
        if others.is_empty() {
            return Ok(());
        }
        tracing::info!(partitions = others.len(), "moves of others are taken back");
        self.client.alter_reassignments(&others, true).await.interrupted.map_or(Ok(()), Err)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let At::Running(running) = &self.state().at {
            running.life.abort();
        }
    }
}

/// The tasks on record as they are now. What says to be in execution while its run is not there is over, and
/// nobody knows how it ended.
fn settled(tasks: BTreeMap<Uuid, UserTask>, under_way: Option<Uuid>) -> BTreeMap<Uuid, UserTask> {
    let settle = |id: Uuid, task: UserTask| match task.status {
        Status::InExecution(_) if under_way != Some(id) => task.executed(false),
        _ => task,
    };
    tasks.into_iter().map(|(id, task)| (id, settle(id, task))).collect()
}
