//! Paused: everything is kept, nothing is done, and what is held comes back when it is over.

use evenkeel_api::rebalance::RebalanceState;
use evenkeel_api::{Condition, KafkaRebalanceStatus, conditions};

use super::super::decision::{Decision, Event, EventKind};
use super::super::messages;
use super::Round;

pub(super) fn pause(round: &Round<'_>) -> Decision {
    let standing = &round.standing;
    let state = RebalanceState::ReconciliationPaused;
    let paused = Condition { message: Some(messages::PAUSED.to_owned()), ..Condition::state(state.as_str()) };
    // Only the pause itself is new: what is held keeps its times, and so its place in the queue.
    let mut now_true = conditions::settle([paused], &standing.status.conditions, round.seen.now);
    now_true.extend(standing.held());
    let status = KafkaRebalanceStatus { conditions: now_true, ..standing.status.clone() };
    let events = match standing.paused {
        true => Vec::new(),
        false => vec![Event { kind: EventKind::Normal, reason: state.to_string(), note: messages::PAUSED.to_owned() }],
    };
    Decision {
        status: (round.seen.resource.status.as_ref() != Some(&status)).then_some(status),
        events,
        ..Decision::nothing()
    }
}
