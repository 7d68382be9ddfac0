//! What must outlive the process, as records of a compacted topic: the last one of each key counts.
//!
//! ```text
//! run/<id>            who asked for it and how it is to be done       written once, before anything is
//! run/<id>/moves/<n>  what moves, in chunks                           written once, with the former
//! run/<id>/short/<n>  what was short of replicas in sync, in chunks   written once, with the former
//! run/<id>/stages/<n> where tasks stand, in blocks of a thousand      before each deed
//! run/<id>/state      throttle, stopping                              before each deed
//! run/<id>/stop       that somebody wants it stopped                  before anybody is told so
//! task/<uuid>         a user task with its answer                     when it changes
//! task/<uuid>/<n>     pieces of one that is long                      with the former
//! history             brokers removed and demoted of late             when it changes
//! switches            what people have switched by requests           when it changes
//! throttle            what is left of throttles of runs that are over when it changes
//! throttle/<n>        pieces of it, if it is long                     with the former
//! owner               the engine that acts                            when it takes over, and now and then
//! ```
//!
//! All of one step goes into one transaction, so that a reader sees it whole or not at all, and a
//! newer engine's transactions shut an older one out. When a run is over its keys are deleted.

use std::collections::{BTreeMap, BTreeSet};

use evenkeel_kafka::{BrokerId, TopicPartition};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use uuid::Uuid;

use crate::{
    executor::{Baseline, Execution, Limits, Move, Order, Rates, Stage, Throttle, Throttling},
    tasks::UserTask,
};

#[cfg(test)]
mod forms;
mod keeping;
mod owner;
mod shared;
mod switches;
#[cfg(test)]
mod tests;
pub mod topic;

pub use shared::Journal;
pub use switches::Switches;

/// What a record of the topic may weigh at most.
const CHUNK: usize = 512 * 1024;
/// What comes after the name of a run that somebody wants stopped.
const STOP: &str = "/stop";
/// What is left of throttles.
const LEFTOVER: &str = "throttle";
/// Tasks whose stages share a record.
const BLOCK: usize = 1_000;

/// One record: a value, or none to delete the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its key.
    pub key: String,
    /// Its value.
    pub value: Option<Vec<u8>>,
}

/// A run: an order, and whose it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Its name.
    pub id: Uuid,
    /// The user task that asked for it; `None` if the engine itself did.
    pub task: Option<Uuid>,
    /// Why, as people see it.
    pub reason: String,
    /// The plan's name.
    pub proposal: String,
    /// What is to be done.
    pub order: Order,
}

/// Brokers that were taken out or demoted of late, and when: plans leave them alone for a while. And
/// those that are missed: the time until what they had goes elsewhere does not begin anew with each start.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct History {
    /// Removed.
    pub removed: BTreeMap<BrokerId, i64>,
    /// Demoted.
    pub demoted: BTreeMap<BrokerId, i64>,
    /// Missed.
    #[serde(default)]
    pub missing: BTreeMap<BrokerId, i64>,
}

/// What a life before this one has left.
#[derive(Debug, Clone, Default)]
pub struct Recovered {
    /// The run that was under way, and where it stood.
    pub run: Option<(Run, Execution)>,
    /// User tasks.
    pub tasks: BTreeMap<Uuid, UserTask>,
    /// Brokers removed and demoted.
    pub history: History,
    /// What people have switched.
    pub switches: Switches,
    /// What nobody could lift of throttles yet.
    pub leftover: Throttle,
    /// Keys that nobody could make sense of. They are left alone: a newer engine may know them.
    pub strange: BTreeSet<String>,
}

impl Recovered {
    /// A beginning that failed is taken back before another run is on record, so there is one at most. Should there be
    /// two all the same, `None` says so: neither hides the other.
    fn carry_on(&mut self, run: (Run, Execution)) -> Option<()> {
        let alone = self.run.is_none();
        self.run.get_or_insert(run);
        alone.then_some(())
    }
}

#[derive(Serialize, Deserialize)]
struct Head {
    task: Option<Uuid>,
    reason: String,
    proposal: String,
    chunks: usize,
    /// In how many records those are that were short of replicas in sync: of a large cluster in trouble there are many.
    #[serde(default)]
    short: usize,
    /// The order without its moves, and without those.
    order: Order,
}

#[derive(Serialize, Deserialize)]
struct State {
    throttling: Throttling,
    rates_of_others: BTreeSet<BrokerId>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    unasked: BTreeSet<BrokerId>,
    stopping: bool,
    /// Those of the order as they were adjusted since, if they were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    limits: Option<Limits>,
}

/// Stands for a user task whose record would be too large: its pieces are records of their own.
#[derive(Serialize, Deserialize)]
struct InPieces {
    pieces: usize,
}

impl Run {
    /// The records that have to be there before the first deed.
    pub fn begun(&self) -> Vec<Entry> {
        let (moves, short) = (chunks(&self.order.moves), chunks(&self.order.baseline.short));
        let baseline = Baseline { short: BTreeSet::new(), ..self.order.baseline.clone() };
        let head = Head {
            task: self.task,
            reason: self.reason.clone(),
            proposal: self.proposal.clone(),
            chunks: moves.len(),
            short: short.len(),
            order: Order { moves: Vec::new(), baseline, ..self.order.clone() },
        };
        let numbered = |what: &'static str, chunks: Vec<Vec<u8>>| {
            let entry =
                move |(number, value)| Entry { key: self.key(&format!("/{what}/{number}")), value: Some(value) };
            chunks.into_iter().enumerate().map(entry)
        };
        numbered("moves", moves).chain(numbered("short", short)).chain([entry(self.key(""), &head)]).collect()
    }

    /// The records that undo [`Run::begun`]'s, given those.
    pub fn unbegun(begun: &[Entry]) -> Vec<Entry> {
        begun.iter().map(|entry| Entry { key: entry.key.clone(), value: None }).collect()
    }

    /// The records of a step: where the tasks in `changed` stand now, with all of their blocks.
    pub fn stepped(&self, execution: &Execution, changed: &BTreeSet<usize>) -> Vec<Entry> {
        let blocks: BTreeSet<usize> = changed.iter().map(|task| task / BLOCK).collect();
        let Rates { of_others, unasked } = execution.rates();
        let state = State {
            throttling: execution.throttling(),
            rates_of_others: of_others,
            unasked,
            stopping: execution.is_stopping(),
            limits: (*execution.limits() != self.order.limits).then(|| execution.limits().clone()),
        };
        blocks
            .into_iter()
            .map(|block| {
                let stages: Vec<Stage> =
                    execution.tasks().iter().skip(block * BLOCK).take(BLOCK).map(|task| task.stage).collect();
                entry(self.key(&format!("/stages/{block}")), &stages)
            })
            .chain([entry(self.key("/state"), &state)])
            .collect()
    }

    /// The record that somebody wants it stopped. One of its own, because a run's steps are written by another hand.
    pub fn stop_wanted(&self) -> Entry {
        entry(self.key(STOP), &true)
    }

    /// Takes that off the record.
    pub fn stop_forgotten(&self) -> Entry {
        Entry { key: self.key(STOP), value: None }
    }

    /// The records that end it: none of its keys is left.
    pub fn over(&self, execution: &Execution) -> Vec<Entry> {
        let moves = (0..chunks(&self.order.moves).len()).map(|number| format!("/moves/{number}"));
        let short = (0..chunks(&self.order.baseline.short).len()).map(|number| format!("/short/{number}"));
        let stages = (0..execution.tasks().len().div_ceil(BLOCK)).map(|block| format!("/stages/{block}"));
        // The head last: without it the rest means nothing.
        let keys =
            stages.chain(["/state".to_owned(), STOP.to_owned()]).chain(moves).chain(short).chain([String::new()]);
        keys.map(|rest| Entry { key: self.key(&rest), value: None }).collect()
    }

    fn key(&self, rest: &str) -> String {
        format!("run/{}{rest}", self.id)
    }
}

/// The records of a user task: one, unless its answer is long.
pub fn task(id: Uuid, task: &UserTask) -> Vec<Entry> {
    let whole = written(task);
    if whole.len() <= CHUNK {
        return vec![Entry { key: task_key(id, None), value: Some(whole) }];
    }
    let pieces = whole.chunks(CHUNK).enumerate();
    let head = entry(task_key(id, None), &InPieces { pieces: pieces.len() });
    pieces
        .map(|(number, piece)| Entry { key: task_key(id, Some(number)), value: Some(piece.to_vec()) })
        .chain([head])
        .collect()
}

/// The records that forget a user task.
pub fn task_forgotten(id: Uuid, task: &UserTask) -> Vec<Entry> {
    // It may have been a little longer before its status changed.
    let most = written(task).len() / CHUNK + 2;
    let pieces = (0..most).filter(|_| most > 2).map(|number| task_key(id, Some(number)));
    pieces.chain([task_key(id, None)]).map(|key| Entry { key, value: None }).collect()
}

fn task_key(id: Uuid, piece: Option<usize>) -> String {
    piece.map_or_else(|| format!("task/{id}"), |number| format!("task/{id}/{number}"))
}

/// A user task, from one record or from several.
fn whole_task(id: Uuid, value: &[u8], last: &BTreeMap<String, Vec<u8>>) -> Option<UserTask> {
    if let Some(task) = read(value) {
        return Some(task);
    }
    let InPieces { pieces } = read(value)?;
    let mut whole = Vec::new();
    for number in 0..pieces {
        whole.extend(last.get(&task_key(id, Some(number)))?);
    }
    read(&whole)
}

/// The records of what is left of throttles: one, unless it is long. `before` is what was on record.
pub fn leftover(before: &Throttle, left: &Throttle) -> Vec<Entry> {
    let in_pieces = |left: &Throttle| {
        let whole = written(left);
        let pieces: Vec<Vec<u8>> = whole.chunks(CHUNK).map(<[u8]>::to_vec).collect();
        if left.is_empty() || pieces.len() == 1 { Vec::new() } else { pieces }
    };
    let (old, new) = (in_pieces(before).len(), in_pieces(left));
    let head = match new.len() {
        _ if left.is_empty() => Entry { key: LEFTOVER.to_owned(), value: None },
        0 => entry(LEFTOVER.to_owned(), left),
        pieces => entry(LEFTOVER.to_owned(), &InPieces { pieces }),
    };
    let forgotten = (new.len()..old).map(|_| None);
    let pieces = new.into_iter().map(Some).chain(forgotten).enumerate();
    pieces.map(|(number, value)| Entry { key: format!("{LEFTOVER}/{number}"), value }).chain([head]).collect()
}

/// The same, from one record or from several.
fn whole_leftover(value: &[u8], last: &BTreeMap<String, Vec<u8>>) -> Option<Throttle> {
    if let Some(InPieces { pieces }) = read(value) {
        let mut whole = Vec::new();
        for number in 0..pieces {
            whole.extend(last.get(&format!("{LEFTOVER}/{number}"))?);
        }
        return read(&whole);
    }
    read(value)
}

impl History {
    /// Its record.
    pub fn entry(&self) -> Entry {
        entry("history".to_owned(), self)
    }
}

/// Whether a key is the head of a run.
pub fn is_run(key: &str) -> bool {
    key.strip_prefix("run/").is_some_and(|id| !id.contains('/'))
}

/// What all records of the topic come to, in the order in which they were written.
pub fn recover(entries: impl IntoIterator<Item = Entry>) -> Recovered {
    let mut fold = Fold::default();
    entries.into_iter().for_each(|entry| fold.take(entry));
    fold.recovered()
}

/// The last value of each key so far: of a log that is still being read no more than that is held.
#[derive(Debug, Default)]
struct Fold {
    last: BTreeMap<String, Vec<u8>>,
}

impl Fold {
    fn take(&mut self, entry: Entry) {
        match entry.value {
            Some(value) => self.last.insert(entry.key, value),
            None => self.last.remove(&entry.key),
        };
    }

    fn recovered(self) -> Recovered {
        recovered(&self.last)
    }
}

fn recovered(last: &BTreeMap<String, Vec<u8>>) -> Recovered {
    let mut recovered = Recovered::default();
    for (key, value) in last {
        let known = match key.split_once('/') {
            None if key == owner::KEY => Some(()),
            None if key == LEFTOVER => whole_leftover(value, last).map(|left| recovered.leftover = left),
            None if key == switches::KEY => read(value).map(|switches| recovered.switches = switches),
            None if key == "history" => read(value).map(|history| recovered.history = history),
            Some(("task", id)) if !id.contains('/') => Uuid::parse_str(id)
                .ok()
                .and_then(|id| Some((id, whole_task(id, value, last)?)))
                .map(|(id, task)| drop(recovered.tasks.insert(id, task))),
            Some(("run", id)) if !id.contains('/') => {
                Uuid::parse_str(id).ok().and_then(|id| resume(id, last)).and_then(|run| recovered.carry_on(run))
            }
            Some(("run" | "task" | LEFTOVER, _)) => Some(()),
            _ => None,
        };
        if known.is_none() {
            recovered.strange.insert(key.clone());
        }
    }
    recovered
}

/// A run with everything that belongs to it; `None` if something is missing.
fn resume(id: Uuid, last: &BTreeMap<String, Vec<u8>>) -> Option<(Run, Execution)> {
    let get = |rest: &str| last.get(&format!("run/{id}{rest}"));
    let head: Head = read(get("")?)?;
    let mut order = head.order;
    for number in 0..head.chunks {
        order.moves.extend(read::<Vec<Move>>(get(&format!("/moves/{number}"))?)?);
    }
    for number in 0..head.short {
        order.baseline.short.extend(read::<Vec<TopicPartition>>(get(&format!("/short/{number}"))?)?);
    }
    let run = Run { id, task: head.task, reason: head.reason, proposal: head.proposal, order };
    let mut fresh = Execution::new(run.order.clone());
    let stop_wanted = get(STOP).is_some();
    if stop_wanted {
        fresh.stop();
    }
    let state = get("/state").and_then(|value| read::<State>(value));
    let Some(state) = state else { return Some((run, fresh)) };
    let stages = (0..fresh.tasks().len().div_ceil(BLOCK)).flat_map(|block| {
        let stages: Vec<Stage> = get(&format!("/stages/{block}")).and_then(|value| read(value)).unwrap_or_default();
        stages.into_iter().enumerate().map(move |(at, stage)| (block * BLOCK + at, stage))
    });
    let execution = Execution::resume(
        run.order.clone(),
        stages,
        state.throttling,
        Rates { of_others: state.rates_of_others, unasked: state.unasked },
        state.stopping || stop_wanted,
        state.limits,
    );
    Some((run, execution))
}

/// A list in records of the topic's size.
fn chunks<'a, T: Serialize + 'a>(list: impl IntoIterator<Item = &'a T>) -> Vec<Vec<u8>> {
    let mut chunks: Vec<Vec<u8>> = Vec::new();
    let mut open: Vec<u8> = Vec::new();
    for item in list {
        let written = written(item);
        if !open.is_empty() && open.len() + written.len() + 2 > CHUNK {
            chunks.push(closed(std::mem::take(&mut open)));
        }
        open.push(if open.is_empty() { b'[' } else { b',' });
        open.extend(written);
    }
    if !open.is_empty() {
        chunks.push(closed(open));
    }
    chunks
}

fn closed(mut list: Vec<u8>) -> Vec<u8> {
    list.push(b']');
    list
}

fn entry(key: String, value: &impl Serialize) -> Entry {
    Entry { key, value: Some(written(value)) }
}

fn written(value: &impl Serialize) -> Vec<u8> {
    // Our own types have only names for keys and only finite numbers.
    serde_json::to_vec(value).expect("what is journalled has a JSON form")
}

fn read<T: DeserializeOwned>(value: &[u8]) -> Option<T> {
    serde_json::from_slice(value).ok()
}
