//! What a failure means: whether it passes by itself, whether anybody knows how it ended, or
//! whether it is final.

use evenkeel_api::{Reason, annotations, rebalance::RebalanceState};
use jiff::SignedDuration;

use crate::auto_rebalance::{
    generated::Generated,
    observe::{Engine, Observation},
};

/// When to ask again whether the engine is still at something.
pub(super) const ASKED_AGAIN_AFTER: SignedDuration = SignedDuration::from_secs(10);
/// How often a rebalance of which nobody knows how it ended is made again.
pub(super) const MOST_UNKNOWN: u32 = 3;

/// What a failure means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// It goes on by itself once its cause is gone.
    Passing,
    /// Its cause is gone, but somebody has to tell it.
    Passed,
    /// Nobody knows how it ended, and the engine may still be at it.
    Unsettled,
    /// Nobody knows how it ended, but the engine is no longer at it.
    Unknown,
    /// The engine does not know the brokers. Kafka's brokers hear of new ones one after another, and the engine may have asked
    /// one that had not yet.
    Unheard,
    /// It will not work.
    Final,
}

pub(super) fn meaning(own: &Generated, seen: &Observation) -> Meaning {
    let reason = own.because.as_ref().and_then(|(reason, _)| reason.parse().ok());
    let Engine::Current { id, executing } = &seen.engine else {
        // Whatever it was, the engine is about to be another one.
        return Meaning::Passing;
    };
    match reason {
        Some(Reason::ExecutionOutcomeUnknown) if *executing == Some(false) => Meaning::Unknown,
        Some(Reason::ExecutionOutcomeUnknown) => Meaning::Unsettled,
        // Kafka or a Secret is not there yet, or there are too few windows.
        Some(Reason::NoSuchResourceException | Reason::NotEnoughData) => Meaning::Passing,
        // The Kafka was not ready when it was to begin: it is tried again until it is. Without its label it is not, and the
        // reason is the same.
        Some(Reason::InvalidResourceException) if own.labelled => Meaning::Passing,
        // The engine that is there now was not asked yet. What failed after data had begun to move has another reason.
        Some(Reason::CruiseControlRestException | Reason::NoSuchBroker) if own.asked_of.as_ref() != Some(id) => {
            Meaning::Passed
        }
        Some(Reason::NoSuchBroker) => Meaning::Unheard,
        _ => Meaning::Final,
    }
}

/// Whether it matters what the engine is at: somewhere there is a rebalance of which nobody knows how it ended.
pub(crate) fn executor_matters(generated: &[Generated]) -> bool {
    let unknown = Reason::ExecutionOutcomeUnknown.as_str();
    let is_unknown = |own: &Generated| {
        own.state == RebalanceState::NotReady && own.because.as_ref().is_some_and(|(reason, _)| reason == unknown)
    };
    generated.iter().any(is_unknown)
}

/// Why a proposal is not carried out by itself.
pub(super) fn approval_lacks(own: &Generated) -> String {
    let annotation = annotations::REBALANCE_AUTO_APPROVAL;
    format!("somebody took the annotation {annotation}: \"true\" off KafkaRebalance {}", own.name)
}

/// Why it failed, in its own words.
pub(super) fn cause(own: &Generated) -> String {
    match &own.because {
        Some((reason, message)) if message.is_empty() => reason.clone(),
        Some((reason, message)) => format!("{reason}: {message}"),
        None => "it gave no reason".to_owned(),
    }
}
