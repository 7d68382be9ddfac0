//! What all handles of the executor share: where it stands, and the task that carries a run on.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use evenkeel_kafka::{
    BrokerId, Client, Error, ErrorCode, TopicPartition,
    calls::{
        reassignments::{Reassignment, Target},
        topics::Which,
    },
};
use evenkeel_rest::body::state::Trigger;
use tokio::{
    sync::{broadcast, watch},
    task::AbortHandle,
    time::Instant,
};

use super::{ENDINGS_KEPT, Ended, NotBegun, Tally};
use crate::{
    clock::WallClock,
    executor::{Adjustment, Ending, Execution, Leftover, Millis, Report, Runner, Slowness, Throttle},
    journal::{History, Journal, Run, Switches, topic::TOPIC},
    said::chain,
    tasks::UserTask,
};

/// How long moves of others may take to be gone once they are taken back, and how often that is looked at.
const CLEARED_WITHIN: Duration = Duration::from_secs(60);
const LOOK_AGAIN: Duration = Duration::from_millis(200);

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) client: Client,
    pub(super) journal: Journal,
    pub(super) clock: WallClock,
    pub(super) slowness: Slowness,
    pub(super) removal_memory: Millis,
    pub(super) demotion_memory: Millis,
    pub(super) state: Mutex<State>,
    /// What nobody could lift of throttles yet.
    pub(super) leftover: Arc<Leftover>,
    /// Held while the history is being changed and recorded.
    pub(super) changing_history: tokio::sync::Mutex<()>,
    pub(super) ended: broadcast::Sender<Ended>,
    /// Counts changes of where it stands.
    pub(super) changes: watch::Sender<u64>,
    /// Whether a run is under way.
    pub(super) running: watch::Sender<bool>,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) at: At,
    /// Who is next: what is under way is being stopped for it.
    pub(super) heir: Option<Heir>,
    pub(super) history: History,
    pub(super) switches: Switches,
    /// A run on record that this engine cannot read: it may have left a throttle and moves.
    pub(super) unreadable: Option<String>,
    pub(super) tally: Tally,
    pub(super) reservations: u64,
    /// The last runs that ended.
    pub(super) endings: VecDeque<Ended>,
    /// When the last of them did.
    pub(super) ended_at: Option<Millis>,
}

#[derive(Debug)]
pub(super) enum At {
    Idle,
    Reserved { number: u64, trigger: Trigger, stopped: bool },
    Running(Running),
    Fenced,
}

/// What is under way.
#[derive(Debug, PartialEq)]
pub(super) enum Current {
    Nothing,
    Run(Arc<Run>),
    /// Whatever it is, another engine does it.
    Fenced,
}

/// A reservation that waits for what is under way to be over.
#[derive(Debug)]
pub(super) struct Heir {
    pub(super) number: u64,
    pub(super) trigger: Trigger,
    /// Whether somebody has asked for a stop meanwhile: that is meant for it as well.
    pub(super) stopped: bool,
}

impl State {
    /// Nothing is under way any more: whoever waited for that is next, and nobody sees it idle in between.
    pub(super) fn vacate(&mut self) {
        self.at = match self.heir.take() {
            Some(Heir { number, trigger, stopped }) => At::Reserved { number, trigger, stopped },
            None => At::Idle,
        };
    }
}

#[derive(Debug)]
pub(super) struct Running {
    pub(super) run: Arc<Run>,
    pub(super) report: watch::Receiver<Report>,
    pub(super) stop: watch::Sender<bool>,
    pub(super) adjust: watch::Sender<Adjustment>,
    pub(super) life: AbortHandle,
    pub(super) since: Instant,
}

impl Shared {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn changed(&self) {
        self.changes.send_modify(|changes| *changes += 1);
        // Looked at while nobody else can send: or the last to send would not be the last to have looked.
        self.running.send_if_modified(|was| {
            let running = matches!(self.state().at, At::Running(_));
            std::mem::replace(was, running) != running
        });
    }

    pub(super) fn recent(&self, history: &History) -> History {
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
    pub(super) fn launch(self: &Arc<Self>, run: Run, execution: Execution, task: Option<UserTask>) {
        let mut state = self.state();
        // Who asked for a stop while the beginning went on record was told that it stops.
        let (stop, stopped) = watch::channel(matches!(state.at, At::Reserved { stopped: true, .. }));
        let (adjust, adjusted) = watch::channel(Adjustment::default());
        let (reporter, report) = watch::channel(Report::default());
        let run = Arc::new(run);
        let runner = Runner {
            client: self.client.clone(),
            journal: self.journal.clone(),
            clock: self.clock,
            slowness: self.slowness,
            leftover: Arc::clone(&self.leftover),
            stop: stopped,
            adjust: adjusted,
            task,
            report: reporter,
        };
        let (weak, its_run): (Weak<Shared>, _) = (Arc::downgrade(self), Arc::clone(&run));
        let life = tokio::spawn(async move {
            let ending = runner.carry_out(&its_run, execution).await;
            if let Some(shared) = weak.upgrade() {
                shared.over(&its_run, ending);
            }
        })
        .abort_handle();
        state.tally.started += 1;
        state.at = At::Running(Running { run, report, stop, adjust, life, since: Instant::now() });
        drop(state);
        self.changed();
    }

    fn over(&self, run: &Run, ending: Result<Ending, Error>) {
        let mut state = self.state();
        match ending {
            Ok(ending) => {
                if let At::Running(running) = &state.at {
                    let took = running.since.elapsed();
                    state.tally.runs.took(took);
                }
                state.vacate();
                let at = self.clock.now();
                state.ended_at = Some(at);
                match ending {
                    Ending::Completed => {}
                    Ending::Incomplete => state.tally.incomplete += 1,
                    Ending::Stopped => state.tally.stopped += 1,
                }
                let ended = Ended { run: run.id, task: run.task, ending, at };
                state.endings.push_back(ended);
                if state.endings.len() > ENDINGS_KEPT {
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

    /// Stops what is under way, and tells what that is; but not who asks for it, whose turn may just have come.
    pub(super) async fn stop_current(&self, asking: Option<u64>) -> Result<Current, Error> {
        let current = match &mut self.state().at {
            At::Running(running) => Current::Run(Arc::clone(&running.run)),
            At::Reserved { number, stopped, .. } => {
                *stopped |= asking != Some(*number);
                Current::Nothing
            }
            At::Idle => Current::Nothing,
            At::Fenced => Current::Fenced,
        };
        if let Current::Run(run) = &current {
            self.stop_run(run).await?;
        }
        Ok(current)
    }

    /// Stops a run. It stops from the moment it has heard of that; so that a next life does not go on with it, it is on record
    /// before this returns, unless the journal cannot be written: then it will be as soon as it can.
    pub(super) async fn stop_run(&self, run: &Run) -> Result<(), Error> {
        let is_under_way = || {
            let state = self.state();
            let At::Running(running) = &state.at else { return false };
            let ours = running.run.id == run.id;
            if ours {
                running.stop.send_replace(true);
            }
            ours
        };
        if !is_under_way() {
            return Ok(());
        }
        self.journal.append_or_owe(vec![run.stop_wanted()]).await?;
        // It may have ended meanwhile, and taken all other keys of it off the record.
        if is_under_way() { Ok(()) } else { self.journal.append_or_owe(vec![run.stop_forgotten()]).await }
    }

    /// Lifts what is left of throttles of runs that are over, as brokers return.
    pub(super) async fn lift_leftover(&self) -> Result<(), Error> {
        if self.leftover.known().is_empty() {
            return Ok(());
        }
        // Nothing begins meanwhile.
        let _alone = self.changing_history.lock().await;
        let held = match &self.state().at {
            At::Fenced => return Ok(()),
            At::Running(running) => Throttle::of(&running.run.order).unwrap_or_default(),
            At::Idle | At::Reserved { .. } => Throttle::default(),
        };
        self.leftover.lift(&held).await
    }

    /// Takes back all moves there are, and waits until nobody shows them any more. What the cluster would not take back,
    /// for nobody else could lead then, is not waited for: it may never end, and plans leave alone what is on its way. The
    /// journal's own topic does not count: this engine gives it replicas by itself.
    pub(super) async fn clear_the_way(&self, stops_others: bool) -> Result<(), NotBegun> {
        let deadline = Instant::now() + CLEARED_WITHIN;
        let mut cleared: BTreeMap<TopicPartition, Vec<BrokerId>> = BTreeMap::new();
        let mut irrevocable: BTreeSet<TopicPartition> = BTreeSet::new();
        loop {
            let mut listed = self.client.list_reassignments(None).await?;
            listed.retain(|partition, _| partition.topic != TOPIC && !irrevocable.contains(partition));
            if listed.is_empty() && !self.shows_any(&cleared).await? {
                return Ok(());
            }
            if !stops_others {
                return Err(NotBegun::OthersMove(listed.len()));
            }
            if Instant::now() >= deadline {
                return Err(NotBegun::OthersPersist(listed.len()));
            }
            if !listed.is_empty() {
                tracing::info!(partitions = listed.len(), "moves of others are taken back before an execution");
                // A newer engine may have begun them, which this one has not heard of yet.
                self.journal.confirm().await?;
                let targets = listed.keys().map(|partition| (partition.clone(), Target::Cancel)).collect();
                let answers = self.client.alter_reassignments(&targets, true).await.whole()?;
                for (partition, it) in listed {
                    match answers.get(&partition) {
                        Some(Err(refusal)) if refusal.code == ErrorCode::INVALID_REPLICA_ASSIGNMENT => {
                            tracing::warn!(%partition, %refusal, "a move cannot be taken back, and is left alone");
                            irrevocable.insert(partition);
                        }
                        _ => drop(cleared.insert(partition, it.adding)),
                    }
                }
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Whether metadata still shows somebody who was to be added.
    async fn shows_any(&self, cleared: &BTreeMap<TopicPartition, Vec<BrokerId>>) -> Result<bool, Error> {
        let topics: BTreeSet<String> = cleared.keys().map(|partition| partition.topic.to_string()).collect();
        if topics.is_empty() {
            return Ok(false);
        }
        let topics: Vec<String> = topics.into_iter().collect();
        let found = self.client.topics(Which::Named(&topics)).await?;
        let mut shown = found.values().flatten().flat_map(|topic| {
            topic.partitions.iter().map(|it| (TopicPartition::new(&topic.name, it.index), &it.replicas))
        });
        Ok(shown.any(|(partition, replicas)| {
            cleared.get(&partition).is_some_and(|adding| adding.iter().any(|id| replicas.contains(id)))
        }))
    }

    /// Takes back moves that are not of this run.
    pub(super) async fn stop_others(&self, run: Option<&Run>) -> Result<(), Error> {
        let others: BTreeMap<TopicPartition, Target> =
            self.others(run).await?.into_iter().map(|partition| (partition, Target::Cancel)).collect();
        if others.is_empty() {
            return Ok(());
        }
        tracing::info!(partitions = others.len(), "moves of others are taken back");
        self.client.alter_reassignments(&others, true).await.interrupted.map_or(Ok(()), Err)
    }

    /// Partitions that are moved, and not by this run.
    pub(super) async fn others(&self, run: Option<&Run>) -> Result<BTreeSet<TopicPartition>, Error> {
        let ours: BTreeMap<&TopicPartition, &[BrokerId]> =
            run.iter().flat_map(|run| &run.order.moves).map(|mv| (&mv.partition, mv.new.as_slice())).collect();
        let mut listed = self.client.list_reassignments(None).await?;
        // This engine gives the journal its replicas by itself.
        listed.retain(|partition, _| partition.topic != TOPIC);
        let is_ours = |partition: &TopicPartition, seen: &Reassignment| {
            ours.get(partition).is_some_and(|new| seen.replicas.starts_with(new))
        };
        let others = listed.into_iter().filter(|(partition, seen)| !is_ours(partition, seen));
        Ok(others.map(|(partition, _)| partition).collect())
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let At::Running(running) = &self.state().at {
            running.life.abort();
        }
    }
}
