//! The finalizer `strimzi.io/rebalance`: there while an operation runs, and only then.
//!
//! It makes a deletion wait, and it records what may have begun: on a resource in `ProposalReady` it says
//! that the execution was perhaps submitted.

use evenkeel_api::rebalance::RebalanceState;
use evenkeel_api::{KafkaRebalance, annotations};

use super::decision::Finalizer;

/// Whether it is on the resource.
pub(super) fn is_on(resource: &KafkaRebalance) -> bool {
    has(resource, annotations::REBALANCE_FINALIZER)
}

/// Whether automatic rebalancing made the resource and has not let go of it.
pub(super) fn is_generated(resource: &KafkaRebalance) -> bool {
    has(resource, annotations::AUTO_REBALANCING_FINALIZER)
}

/// What to do with it when the resource comes to a state. `submitting`: an execution is about to be
/// submitted, or may have been.
pub(super) fn on_the_way_to(state: RebalanceState, submitting: bool, resource: &KafkaRebalance) -> Finalizer {
    let wanted = match state {
        RebalanceState::PendingProposal | RebalanceState::Rebalancing => true,
        RebalanceState::ProposalReady => submitting,
        _ => false,
    };
    // The API server refuses new finalizers once deletion was asked for.
    let may_add = resource.metadata.deletion_timestamp.is_none();
    match (wanted, is_on(resource)) {
        (true, false) if may_add => Finalizer::Add,
        (false, true) => Finalizer::Remove,
        _ => Finalizer::Leave,
    }
}

fn has(resource: &KafkaRebalance, name: &str) -> bool {
    resource.metadata.finalizers.iter().flatten().any(|finalizer| finalizer == name)
}
