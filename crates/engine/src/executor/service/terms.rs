//! What is said to the executor and by it.

use std::collections::BTreeSet;

use evenkeel_kafka::{BrokerId, Error};
use evenkeel_rest::Failure;
use uuid::Uuid;

use crate::{
    executor::{Ending, Millis},
    journal::{History, Run},
    metrics::Timer,
    said::{chain, failure_of},
    tasks::UserTask,
};

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
    /// When.
    pub at: Millis,
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
    /// Those that are over.
    pub runs: Timer,
}

/// Why a run has not begun.
#[derive(Debug, thiserror::Error)]
pub enum NotBegun {
    /// Another one is under way, or about to be.
    #[error("another execution is under way")]
    Busy,
    /// Other tools move partitions, and are not to be stopped.
    #[error("other tools move {0} partitions")]
    OthersMove(usize),
    /// Moves of other tools were taken back, and are under way all the same.
    #[error("moves of other tools were taken back and are still under way: {0} of them")]
    OthersPersist(usize),
    /// Somebody asked for a stop before it began.
    #[error("a stop was asked for before the execution began")]
    Stopped,
    /// A newer engine acts.
    #[error("another engine has taken over: this one no longer changes anything")]
    Fenced,
    /// There is a run on record that this engine cannot read. What it left is unknown, so nothing is begun on top of it.
    #[error(
        "the journal holds an execution, {0}, that this engine cannot read: the engine that began it has to end it"
    )]
    Unreadable(String),
    /// It could not be put on record, or nobody could see whether the way is clear: Kafka is out of reach.
    #[error("the execution could not be recorded")]
    Record(#[from] Error),
    /// What is under way could not be stopped for it.
    #[error("what is under way could not be stopped")]
    NotStopped(#[source] Error),
}

impl From<NotBegun> for Failure {
    fn from(error: NotBegun) -> Failure {
        match &error {
            NotBegun::Busy => Failure::ongoing_execution(),
            NotBegun::OthersMove(_) => Failure::foreign_moves(),
            // Nothing was begun here, and whoever asks again is answered by the other engine.
            NotBegun::Fenced => Failure::not_now(chain(&error)),
            NotBegun::Record(cause) | NotBegun::NotStopped(cause) => failure_of(cause, &error),
            NotBegun::OthersPersist(_) | NotBegun::Stopped | NotBegun::Unreadable(_) => {
                Failure::illegal_state(chain(&error))
            }
        }
    }
}

impl HistoryChange {
    pub(super) fn applied_to(&self, history: &History, now: Millis) -> History {
        let mut after = history.clone();
        after.removed.retain(|broker, _| !self.added.contains(broker));
        after.removed.extend(self.removed.iter().map(|broker| (*broker, now)));
        after.demoted.extend(self.demoted.iter().map(|broker| (*broker, now)));
        after
    }
}
