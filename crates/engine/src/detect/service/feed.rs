//! What the loop is fed with, and what it hands out.

use std::{collections::BTreeMap, sync::Arc};

use evenkeel_balancer::cluster::Cluster;
use evenkeel_rest::Request;
use tokio::sync::{mpsc, oneshot, watch};
use uuid::Uuid;

use crate::{
    clock::WallClock,
    detect::{Millis, failures::Sight},
    journal::History,
    notify::Courier,
};

/// Why there is no model to judge.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unready {
    /// Stored samples are still being loaded.
    #[error("stored samples are still being loaded")]
    Loading,
    /// Too little is known.
    #[error("{0}")]
    Incomplete(String),
    /// The cluster cannot be modelled.
    #[error("{0}")]
    Impossible(String),
}

/// Something to be mended. Whoever gets it answers.
#[derive(Debug)]
pub struct Repair {
    /// The anomaly that it mends: the id under which the executor shows it (`triggeredSelfHealingTaskId`).
    pub anomaly: Uuid,
    /// What to do.
    pub request: Request,
    /// What came of it.
    pub reply: oneshot::Sender<Outcome>,
}

/// What came of a repair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Moves are being made by this plan; [`Inputs::executing`] was set before this was said.
    Started(String),
    /// There is nothing that could be moved.
    NothingToDo,
    /// Too little is known to plan.
    NotReady(Unready),
    /// It was refused.
    Refused(String),
}

/// A question that can be asked any time.
type Ask<T> = Box<dyn Fn() -> T + Send + Sync>;

/// What the loop is fed with.
pub struct Inputs {
    /// Changes when what is known changes.
    pub generations: watch::Receiver<u64>,
    /// Whether moves are being made.
    pub executing: watch::Receiver<bool>,
    /// The latest look, if there was one.
    pub sight: Ask<Option<Sight>>,
    /// The cluster as it is, for judging. May take long; is asked on a thread of its own.
    pub model: Arc<dyn Fn() -> Result<Cluster, Unready> + Send + Sync>,
    /// Brokers removed and demoted of late.
    pub history: Ask<History>,
    /// Names for anomalies.
    pub ids: Box<dyn FnMut() -> Uuid + Send>,
    /// Brokers that were missed before this process began.
    pub missed: BTreeMap<i32, Millis>,
    /// Where repairs go.
    pub repairs: mpsc::Sender<Repair>,
    /// Who tells people.
    pub courier: Courier,
    /// The time of day.
    pub clock: WallClock,
}
