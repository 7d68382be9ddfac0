//! The machine: from what was seen to what is recorded, done and told.
//!
//! One file for each state. All of them work on one `Draft`, which knows the queue, the memory and
//! the rules that hold in every state.

mod draft;
pub(super) mod idle;
mod on_imbalance;
mod on_scale_down;
mod on_scale_up;
mod outcome;
mod refused;
mod switched_off;
#[cfg(test)]
pub(super) mod tests;

use std::collections::BTreeMap;

use evenkeel_api::{
    Condition, KafkaRebalance,
    kafka::{AutoRebalanceMode, AutoRebalanceState, AutoRebalanceStatus},
};
use jiff::Timestamp;

use self::draft::Draft;
pub(crate) use self::outcome::executor_matters;
pub(crate) use self::refused::while_refused;
use super::{
    generated::StopReason,
    observe::Observation,
    state::{Brokers, mode_of},
};

/// What to do, in this order: write the tracker, write the status with the warnings, then act, one
/// after another. Whoever fails at one leaves out the rest, and decides anew from what is then seen.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decision {
    /// What becomes of the memory.
    pub tracker: TrackerWrite,
    /// `Kafka.status.autoRebalance`. None: it is not to be there.
    pub status: Option<AutoRebalanceStatus>,
    /// Warnings for the Kafka, those that are carried over included.
    pub warnings: Vec<Condition>,
    /// What to do.
    pub acts: Vec<Act>,
    /// What to tell as Events of the Kafka.
    pub events: Vec<Event>,
    /// Brokers that are to take no new data, because they are being emptied.
    pub cordoned: Brokers,
    /// When to look again if no watch calls before. None: time alone changes nothing.
    pub look_again: Option<Timestamp>,
}

/// What becomes of the memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TrackerWrite {
    /// It stays as it is.
    #[default]
    Keep,
    /// It gets this data, and is made if it is not there.
    Write(BTreeMap<String, String>),
    /// It goes.
    Delete,
}

/// Something to do. None of them chooses anything; all of them may be done twice.
#[derive(Clone, Debug, PartialEq)]
pub enum Act {
    /// Make this KafkaRebalance.
    Create(Box<KafkaRebalance>),
    /// Set `spec.brokers` and the annotation `strimzi.io/rebalance: refresh`, in one patch.
    Update {
        /// Name of the KafkaRebalance.
        name: String,
        /// Its brokers.
        brokers: Brokers,
        /// The engine that is asked, to be noted in the same patch as [`ASKED_OF`](evenkeel_api::annotations::ASKED_OF).
        engine: Option<String>,
    },
    /// Annotate with `strimzi.io/rebalance: refresh`.
    Refresh {
        /// Name of the KafkaRebalance.
        name: String,
        /// As for an update.
        engine: Option<String>,
    },
    /// Annotate with `strimzi.io/rebalance: stop` and [`STOPPED_FOR`](evenkeel_api::annotations::STOPPED_FOR),
    /// in one patch.
    Stop {
        /// Name of the KafkaRebalance.
        name: String,
        /// The value of the second annotation.
        why: StopReason,
    },
    /// The same, and then delete, with the finalizer left on: the resource begins nothing new, goes to
    /// `Stopped`, and waits there to be removed. For states in which it cannot be told to stop; should
    /// it have begun in the meantime, the annotation stops it.
    Withdraw {
        /// Name of the KafkaRebalance.
        name: String,
        /// The value of the second annotation.
        why: StopReason,
    },
    /// Take our finalizer off, and only ours, and delete, with everything that belongs to it.
    Remove {
        /// Name of the KafkaRebalance.
        name: String,
        /// Exactly this one: the next one has the same name.
        uid: String,
    },
    /// Give the ConfigMap of violated goals this data.
    NoteViolations(BTreeMap<String, String>),
    /// Empty the ConfigMap of violated goals.
    EmptyViolations {
        /// Also of those that cannot be mended.
        unfixable_too: bool,
    },
    /// Delete the ConfigMap of violated goals.
    DeleteViolations,
}

/// Something to tell as an Event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Whether it is a warning.
    pub is_warning: bool,
    /// What, in one word.
    pub reason: &'static str,
    /// What, in a sentence.
    pub note: String,
}

/// What to record, do and tell, given what was seen.
pub fn decide(seen: &Observation) -> Decision {
    if seen.configured.modes.is_empty() {
        return switched_off::wind_down(seen);
    }
    let mut draft = Draft::begin(seen);
    let own = draft.find_own();
    match (draft.state, own) {
        (AutoRebalanceState::RebalanceOnScaleDown, Some(own)) => on_scale_down::step(&mut draft, own),
        (AutoRebalanceState::RebalanceOnScaleUp, Some(own)) => on_scale_up::step(&mut draft, own),
        (AutoRebalanceState::RebalanceOnImbalance, Some(own)) => on_imbalance::step(&mut draft, own),
        (state, None) if draft.tracker.in_sight.is_some() => match mode_of(state) {
            Some(AutoRebalanceMode::RemoveBrokers) => on_scale_down::vanished(&mut draft),
            Some(AutoRebalanceMode::AddBrokers) => on_scale_up::vanished(&mut draft),
            Some(AutoRebalanceMode::Imbalance) => on_imbalance::vanished(&mut draft),
            None => idle::step(&mut draft),
        },
        // What is recorded but was never made begins where it was before: as something queued.
        _ => idle::step(&mut draft),
    }
    draft.clear_away_others(own);
    draft.tend_violations();
    draft.note_violations();
    draft.note_manual();
    draft.finish(own)
}
