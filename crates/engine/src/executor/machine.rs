//! The machine: what to do next, from where it stands and what is seen. No clock, no client.

use std::collections::{BTreeMap, BTreeSet};

use evenkeel_kafka::{BrokerId, ErrorCode, TopicPartition};
use serde::{Deserialize, Serialize};

use super::{
    care::{Care, Hold},
    order::{Adjustment, Limits, Millis, Move, Order},
    sight::Sight,
    task::{End, Kind, Stage, Task, Why},
    throttle::{Relisting, Throttle},
};

mod begin;
mod lists;
mod room;
mod settle;

/// After this, what was asked for and is not seen is asked for again. Longer than brokers trail.
const ASK_AGAIN_AFTER: Millis = 5_000;
/// So often a throttle is lifted where that fails; then a run that has nothing else to do does not wait for it any longer.
const LIFTS: usize = 20;
/// The pause between later ones, while a run has something else to do: whoever is down takes long not to answer.
const LIFT_AGAIN_AFTER: Millis = 30_000;

/// Directories of replicas, by broker.
pub type Dirs = BTreeMap<BrokerId, BTreeMap<TopicPartition, String>>;

/// A wish. Each may be carried out twice without harm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Look which brokers have a rate already. Answer with [`Execution::rates_were_found`].
    LookForRates(BTreeSet<BrokerId>),
    /// Set the rates. Answer with [`Execution::throttle_is_set`] or [`Execution::throttle_refused`].
    Throttle(Throttle),
    /// Change what is held back. Comes before whatever is asked for of it, and what cannot be held back must not be moved:
    /// answer with [`Execution::not_listed`] then.
    Relist(Relisting),
    /// Say in which directory a replica is to be made that its broker does not have yet.
    PreferDirs(Dirs),
    /// Take back whatever moves these.
    Cancel(BTreeSet<TopicPartition>),
    /// Give these partitions these replicas.
    Reassign(BTreeMap<TopicPartition, Vec<BrokerId>>),
    /// Move these replicas to these directories of their brokers.
    MoveDirs(Dirs),
    /// Let the first replica of these lead.
    Elect(BTreeSet<TopicPartition>),
    /// Lift what holds replication back. Answer with [`Execution::throttle_is_lifted`] or, as long as some is left, with
    /// [`Execution::throttle_remains`].
    Unthrottle(Throttle),
}

/// What a step comes to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Step {
    /// What to do, in this order, once the changes are on record.
    pub actions: Vec<Action>,
    /// The tasks whose stages have changed.
    pub changed: BTreeSet<usize>,
    /// Why nothing new begins, if so.
    pub hold: Option<Hold>,
    /// What nobody could lift, and is left. Each step says so again: the record of one may fail.
    pub left: Option<Throttle>,
    /// That it is over, if it is.
    pub ending: Option<Ending>,
}

/// How an execution ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ending {
    /// Everything was done that there was to do.
    Completed,
    /// Some of it could not be done.
    Incomplete,
    /// Somebody stopped it.
    Stopped,
}

/// How far throttling is. Recorded before each deed, so that a throttle is never forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Throttling {
    /// Nothing is, or is to be, throttled.
    Off,
    /// To be set before the first move; nobody has looked yet what is set already.
    Wanted,
    /// Being set: some of it may be.
    Setting,
    /// Set.
    On,
}

/// What is known of the rates of brokers that take part.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rates {
    /// Theirs is somebody else's.
    pub of_others: BTreeSet<BrokerId>,
    /// They were down when it was looked, and nobody knows.
    pub unasked: BTreeSet<BrokerId>,
}

/// Where an execution stands.
#[derive(Debug, Clone)]
pub struct Execution {
    order: Order,
    /// Those of the order, as they were adjusted since.
    limits: Limits,
    tasks: Vec<Task>,
    by_move: BTreeMap<(usize, Kind), usize>,
    by_partition: BTreeMap<TopicPartition, usize>,
    stopping: bool,
    throttle: Option<Throttle>,
    throttling: Throttling,
    rates_of_others: BTreeSet<BrokerId>,
    /// Moves that are in the lists of what is held back.
    listed: BTreeSet<usize>,
    /// Brokers that were down when it was looked who has a rate: they get theirs when they return.
    unasked: BTreeSet<BrokerId>,
    /// Brokers that were asked, and down when rates were set: they get theirs when they return, too.
    unset: BTreeSet<BrokerId>,
    /// Why nothing can be held back, and so nothing may move.
    refusal: Option<String>,
    /// How often the throttle could not be lifted, and when that was last asked for.
    lifts_failed: usize,
    lift_asked: Millis,
    /// Whether what is left of the throttle was given up.
    gave_up_lifting: bool,
    care: Care,
    /// When moves of others were taken back: metadata shows them for a moment longer.
    cleared: BTreeMap<TopicPartition, Millis>,
    /// Partitions of ours whose moves the cluster would not take back, whoever began them.
    irrevocable: BTreeSet<TopicPartition>,
    /// Since when moves of ours are no longer listed without being seen to be done.
    vanished: BTreeMap<TopicPartition, Millis>,
    /// Since when partitions are not there, look by look.
    unknown: BTreeMap<TopicPartition, Millis>,
}

impl Execution {
    /// One that has not begun.
    pub fn new(order: Order) -> Execution {
        let mut tasks = Vec::new();
        let mut add = |of, kind| tasks.push(Task { of, kind, stage: Stage::Pending });
        for (of, mv) in order.moves.iter().enumerate() {
            if mv.old != mv.new {
                add(of, Kind::Replicas);
            }
            for (index, dir) in mv.dirs.iter().enumerate() {
                if dir.from.as_ref().is_some_and(|from| *from != dir.to) {
                    add(of, Kind::Dir(index));
                }
            }
            if mv.new.first() != Some(&mv.old_leader) {
                add(of, Kind::Leader);
            }
        }
        let throttle = Throttle::of(&order);
        let care = Care::of(&order);
        let throttling = if throttle.is_some() { Throttling::Wanted } else { Throttling::Off };
        Execution {
            limits: order.limits.clone(),
            by_move: tasks.iter().enumerate().map(|(index, task)| ((task.of, task.kind), index)).collect(),
            by_partition: order.moves.iter().enumerate().map(|(of, mv)| (mv.partition.clone(), of)).collect(),
            order,
            tasks,
            stopping: false,
            throttle,
            throttling,
            rates_of_others: BTreeSet::new(),
            listed: BTreeSet::new(),
            unasked: BTreeSet::new(),
            unset: BTreeSet::new(),
            refusal: None,
            lifts_failed: 0,
            lift_asked: 0,
            gave_up_lifting: false,
            care,
            cleared: BTreeMap::new(),
            irrevocable: BTreeSet::new(),
            vanished: BTreeMap::new(),
            unknown: BTreeMap::new(),
        }
    }

    /// One that a process of the past has begun: the stages are those it recorded last, by task.
    pub fn resume(
        order: Order,
        stages: impl IntoIterator<Item = (usize, Stage)>,
        throttling: Throttling,
        rates: Rates,
        stopping: bool,
        limits: Option<Limits>,
    ) -> Execution {
        let mut execution = Execution::new(order);
        for (index, stage) in stages {
            if let Some(task) = execution.tasks.get_mut(index) {
                task.stage = stage;
            }
        }
        if let Some(throttle) = &mut execution.throttle {
            throttle.brokers.retain(|broker| !rates.of_others.contains(broker));
            execution.throttling = throttling;
            // Who was down when rates were set is not on record. To set one again does no harm.
            execution.unset = throttle.brokers.difference(&rates.unasked).copied().collect();
        }
        (execution.rates_of_others, execution.unasked) = (rates.of_others, rates.unasked);
        execution.stopping = stopping;
        execution.limits = limits.unwrap_or(execution.limits);
        // What was asked for was listed before.
        execution.listed = execution.copied();
        execution
    }

    /// What it is to do.
    pub fn order(&self) -> &Order {
        &self.order
    }

    /// What may be under way at once: as ordered, or as adjusted since.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Changes what may be under way at once. What is, goes on.
    pub fn adjust(&mut self, adjustment: &Adjustment) {
        adjustment.apply(&mut self.limits);
    }

    /// Its tasks.
    pub fn tasks(&self) -> &[Task] {
        &self.tasks
    }

    /// How far throttling is.
    pub fn throttling(&self) -> Throttling {
        self.throttling
    }

    /// Whether somebody has asked it to stop.
    pub fn is_stopping(&self) -> bool {
        self.stopping
    }

    /// The kind of task that is worked on, any `Dir` standing for all; `None` once all are over.
    pub fn phase(&self) -> Option<Kind> {
        let class = |kind| if let Kind::Dir(_) = kind { Kind::Dir(0) } else { kind };
        self.tasks.iter().filter(|task| !task.stage.is_over()).map(|task| class(task.kind)).min()
    }

    /// Asks it to stop: nothing new begins, and what is in flight is taken back.
    pub fn stop(&mut self) {
        self.stopping = true;
    }

    /// Of those that were asked these have a rate that somebody else has set: theirs is left alone, now and at the end.
    pub fn rates_were_found(&mut self, asked: &BTreeSet<BrokerId>, on: &BTreeSet<BrokerId>) {
        let Some(throttle) = self.throttle.as_mut() else { return };
        match self.throttling {
            Throttling::Off => return,
            Throttling::Wanted => self.unasked = throttle.brokers.difference(asked).copied().collect(),
            Throttling::Setting | Throttling::On => self.unasked.retain(|broker| !asked.contains(broker)),
        }
        throttle.brokers.retain(|broker| !on.contains(broker));
        self.rates_of_others.extend(on);
        self.throttling = Throttling::Setting;
    }

    /// What is known of the rates of brokers.
    pub fn rates(&self) -> Rates {
        Rates { of_others: self.rates_of_others.clone(), unasked: self.unasked.clone() }
    }

    /// The throttle is in force.
    pub fn throttle_is_set(&mut self) {
        if self.throttling == Throttling::Setting {
            self.throttling = Throttling::On;
        }
    }

    /// The cluster would not have the throttle. Nothing moves without the one that was asked for: this ends it.
    pub fn throttle_refused(&mut self, said: String) {
        self.refusal = Some(said);
    }

    /// Why nothing may move, if so.
    pub fn refusal(&self) -> Option<&str> {
        self.refusal.as_deref()
    }

    /// Nothing of the throttle is left.
    pub fn throttle_is_lifted(&mut self) {
        self.throttling = Throttling::Off;
    }

    /// Of the throttle these rates and lists are left: somebody is down, or would not have it.
    pub fn throttle_remains(&mut self, brokers: &BTreeSet<BrokerId>, topics: &BTreeSet<String>) {
        // The last one is kept for the end of the run: whoever was down may be back by then.
        let most = if self.phase().is_none() { LIFTS } else { LIFTS - 1 };
        self.lifts_failed = (self.lifts_failed + 1).min(most);
        self.throttle = self.throttle.as_ref().map(|throttle| throttle.of_those(brokers, topics));
    }

    /// The next step.
    pub fn step(&mut self, sight: &Sight) -> Step {
        let mut step = Step::default();
        let mut asks = Asks::default();
        self.care.look(sight);
        self.note_unknown(sight);
        self.settle(sight, &mut step, &mut asks);
        if self.stopping {
            self.halt(Why::Stopped, sight, &mut step, &mut asks);
        } else if self.refusal.is_some() {
            self.halt(Why::Refused, sight, &mut step, &mut asks);
        } else {
            step.hold = self.care.hold(&self.order, sight);
            self.begin(sight, &mut step, &mut asks);
        }
        let lists = self.relist(&asks);
        if !lists.is_empty() {
            step.actions.push(Action::Relist(lists));
        }
        asks.into_actions(&mut step.actions);
        self.lift_throttle(sight.now, &mut step);
        if self.phase().is_none() && self.throttling == Throttling::Off {
            step.ending = Some(self.ending());
        }
        step
    }

    fn note_unknown(&mut self, sight: &Sight) {
        self.unknown.retain(|partition, _| !sight.partitions.contains_key(partition));
        for partition in &sight.unknown {
            self.unknown.entry(partition.clone()).or_insert(sight.now);
        }
    }

    /// Whether a partition is gone, and not only unknown to somebody who trails, or refused.
    fn is_gone(&self, partition: &TopicPartition, sight: &Sight) -> bool {
        let lasting = |since: &Millis| sight.now - since >= ASK_AGAIN_AFTER;
        sight.unknown.contains(partition) && self.unknown.get(partition).is_some_and(lasting)
    }

    /// Where a task stands whose partition was not seen.
    fn unseen(&self, partition: &TopicPartition, sight: &Sight, stage: Stage) -> Stage {
        if self.is_gone(partition, sight) { Stage::Ended(End::Aborted(Why::Gone)) } else { stage }
    }

    /// The cluster would not have a reassignment.
    pub fn reassignment_refused(&mut self, partition: &TopicPartition, code: ErrorCode) -> Option<usize> {
        let of = *self.by_partition.get(partition)?;
        let index = *self.by_move.get(&(of, Kind::Replicas))?;
        let end = match (code, self.tasks[index].stage) {
            (ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, _) => End::Aborted(Why::Gone),
            // Of one being taken back it is the old order that was refused: then that is how it stays.
            (ErrorCode::INVALID_REPLICA_ASSIGNMENT | ErrorCode::INVALID_REPLICATION_FACTOR, stage) => match stage {
                Stage::Aborting { why, .. } => End::Dead(why),
                _ => End::Dead(Why::Refused),
            },
            // Whatever passes by itself is asked for again.
            _ => return None,
        };
        self.end_in_flight(index, end)
    }

    /// The cluster would not take a move back: whoever has all of it now must lead, and none of those who had it can.
    /// It is asked for again; but when who was to have it is given up, so is the wish.
    pub fn cancel_refused(&mut self, partition: &TopicPartition, code: ErrorCode) {
        if code == ErrorCode::INVALID_REPLICA_ASSIGNMENT && self.by_partition.contains_key(partition) {
            self.irrevocable.insert(partition.clone());
        }
    }

    /// A broker would not move a replica to a directory.
    pub fn dir_move_refused(&mut self, broker: BrokerId, partition: &TopicPartition, code: ErrorCode) -> Option<usize> {
        let of = *self.by_partition.get(partition)?;
        let dir = self.order.moves[of].dirs.iter().position(|dir| dir.broker == broker)?;
        let index = *self.by_move.get(&(of, Kind::Dir(dir)))?;
        // What is being taken back ends for the reason that it is.
        let or = |why| if let Stage::Aborting { why, .. } = self.tasks[index].stage { why } else { why };
        let end = match code {
            ErrorCode::REPLICA_NOT_AVAILABLE => End::Aborted(or(Why::Changed)),
            ErrorCode::LOG_DIR_NOT_FOUND | ErrorCode::INVALID_REPLICA_ASSIGNMENT => End::Dead(or(Why::Refused)),
            ErrorCode::STORAGE_ERROR => End::Dead(or(Why::TargetDown)),
            // One that does not know the partition may trail: looks tell whether it is gone.
            _ => return None,
        };
        self.end_in_flight(index, end)
    }

    fn end_in_flight(&mut self, index: usize, end: End) -> Option<usize> {
        let task = &mut self.tasks[index];
        task.stage.is_in_flight().then(|| task.stage = Stage::Ended(end))?;
        Some(index)
    }

    /// Once nothing is to be copied any more, nothing need be held back. What could not be lifted is given up with the
    /// last task and no sooner: as long as a run goes on anyway it can try.
    fn lift_throttle(&mut self, now: Millis, step: &mut Step) {
        let copying = self.tasks.iter().any(|task| task.kind == Kind::Replicas && !task.stage.is_over());
        let Some(throttle) = self.throttle.as_ref().filter(|_| !copying) else { return };
        match self.throttling {
            Throttling::Off => {}
            // Never touched.
            Throttling::Wanted => self.throttling = Throttling::Off,
            // Whoever is down may return. A run that waits for that much longer keeps others from beginning.
            Throttling::Setting | Throttling::On if self.lifts_failed >= LIFTS => {
                self.throttling = Throttling::Off;
                self.gave_up_lifting = true;
            }
            Throttling::Setting | Throttling::On => {
                let often = self.lifts_failed < LIFTS - 1 || self.phase().is_none();
                if often || now - self.lift_asked >= LIFT_AGAIN_AFTER {
                    // Who never got a rate of ours may have one of somebody else's.
                    let brokers = throttle.brokers.difference(&self.unasked).copied().collect();
                    step.actions.push(Action::Unthrottle(Throttle { brokers, ..throttle.clone() }));
                    self.lift_asked = now;
                }
            }
        }
        step.left = self.throttle.clone().filter(|_| self.gave_up_lifting);
    }

    fn ending(&self) -> Ending {
        let ended = |wanted: fn(End) -> bool| {
            self.tasks.iter().any(|task| matches!(task.stage, Stage::Ended(end) if wanted(end)))
        };
        let stopped = |end| matches!(end, End::Aborted(Why::Stopped) | End::Dead(Why::Stopped));
        if ended(stopped) {
            Ending::Stopped
        // A partition that is gone leaves nothing to do.
        } else if ended(|end| !matches!(end, End::Completed | End::Aborted(Why::Gone))) {
            Ending::Incomplete
        } else {
            Ending::Completed
        }
    }
}

/// What a step asks the cluster for, gathered so that each call is made once.
#[derive(Default)]
struct Asks {
    look_for_rates: BTreeSet<BrokerId>,
    throttle: Option<Throttle>,
    prefer_dirs: Dirs,
    cancel: BTreeSet<TopicPartition>,
    reassign: BTreeMap<TopicPartition, Vec<BrokerId>>,
    move_dirs: Dirs,
    elect: BTreeSet<TopicPartition>,
}

impl Asks {
    /// Replicas that are to be made are to be made where the plan wants them. A broker forgets that when it restarts, so
    /// it is told with every wish, until it has the replica: from then on it would move it.
    fn prefer_dirs_of(&mut self, mv: &Move, sight: &Sight) {
        let has = |broker: BrokerId| sight.dirs.contains_key(&(broker, mv.partition.clone()));
        for dir in mv.dirs.iter().filter(|dir| dir.from.is_none() && !has(dir.broker)) {
            self.prefer_dirs.entry(dir.broker).or_default().insert(mv.partition.clone(), dir.to.clone());
        }
    }

    /// Forgets what was asked for a partition's move or its leader.
    fn forget(&mut self, partition: &TopicPartition) {
        self.reassign.remove(partition);
        self.elect.remove(partition);
        self.prefer_dirs.values_mut().for_each(|dirs| drop(dirs.remove(partition)));
        self.prefer_dirs.retain(|_, dirs| !dirs.is_empty());
    }

    fn into_actions(self, actions: &mut Vec<Action>) {
        actions.extend(self.throttle.map(Action::Throttle));
        let mut some = |empty: bool, action: Action| {
            if !empty {
                actions.push(action);
            }
        };
        some(self.look_for_rates.is_empty(), Action::LookForRates(self.look_for_rates));
        some(self.cancel.is_empty(), Action::Cancel(self.cancel));
        some(self.prefer_dirs.is_empty(), Action::PreferDirs(self.prefer_dirs));
        some(self.reassign.is_empty(), Action::Reassign(self.reassign));
        some(self.move_dirs.is_empty(), Action::MoveDirs(self.move_dirs));
        some(self.elect.is_empty(), Action::Elect(self.elect));
    }
}
