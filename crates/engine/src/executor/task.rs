//! One task: a move, or a part of one, and where it stands.

use serde::{Deserialize, Serialize};

use super::order::Millis;

/// One task of an execution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// Which move of the order.
    pub of: usize,
    /// What of it.
    pub kind: Kind,
    /// Where it stands.
    pub stage: Stage,
}

/// What a task changes, in the order in which kinds are worked off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Kind {
    /// The replica list.
    Replicas,
    /// The directory of one replica: the one with this index among the move's.
    Dir(usize),
    /// The leader.
    Leader,
}

/// Where a task stands. What is known about it is kept in its stage, so nothing stands for "not yet".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stage {
    /// Not begun.
    Pending,
    /// Asked for.
    InProgress {
        /// When it began.
        since: Millis,
        /// When it was last asked for.
        asked: Millis,
    },
    /// Being taken back.
    Aborting {
        /// When that began.
        since: Millis,
        /// When it was last asked for.
        asked: Millis,
        /// Why.
        why: Why,
    },
    /// Over.
    Ended(End),
}

/// How a task ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum End {
    /// As wanted.
    Completed,
    /// Without having been begun, or because there is nothing left to move.
    Aborted(Why),
    /// Begun, and taken back or given up.
    Dead(Why),
}

/// Why a task did not come to its good end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Why {
    /// Somebody asked for it.
    Stopped,
    /// The topic or the partition is gone.
    Gone,
    /// Somebody else has given the partition other replicas.
    Changed,
    /// A broker it was to go to is down, or a disk there has failed.
    TargetDown,
    /// The cluster refused it.
    Refused,
    /// It did not come true in time: nobody was elected, or there was nobody to copy from.
    TooSlow,
}

impl Stage {
    /// Whether it is over.
    pub fn is_over(self) -> bool {
        matches!(self, Stage::Ended(_))
    }

    /// Whether the cluster works on it, one way or the other.
    pub fn is_in_flight(self) -> bool {
        matches!(self, Stage::InProgress { .. } | Stage::Aborting { .. })
    }
}
