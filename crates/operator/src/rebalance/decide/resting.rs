//! States in which nothing goes on: new, stopped, failed, done.

use evenkeel_api::annotations::Ask;
use evenkeel_api::rebalance::RebalanceState;

use super::super::decision::Decision;
use super::super::draft::Draft;
use super::super::messages;
use super::Round;
use super::begin::begin;

/// Seen for the first time.
pub(super) fn fresh(round: &Round<'_>) -> Decision {
    if round.deleting {
        return stop_for_deletion(round);
    }
    begin(round)
}

/// Stopped, failed or done. It begins anew only if asked to, if its spec was edited, or if it had failed
/// before anything was asked of the engine and the cause is gone: one around it, or one in its template.
pub(super) fn resting(round: &Round<'_>) -> Decision {
    let asked = round.ask == Some(Ask::Refresh);
    let by_template = round.standing.failed_as_impossible() && round.seen.names_a_template();
    if !round.deleting && (asked || round.edited || by_template || round.standing.failed_before_any_request()) {
        return begin(round);
    }
    // A stop that is fulfilled: the process may have died before it could take the annotation away.
    if round.standing.state == RebalanceState::Stopped && round.ask == Some(Ask::Stop) {
        return Draft::stay(round).forget().rest();
    }
    Draft::stay_and_mind_the_ask(round).rest()
}

/// Deletion was asked for before anything was carried out, so nothing will be. Automatic rebalancing waits
/// for this state to let go of what it made.
pub(super) fn stop_for_deletion(round: &Round<'_>) -> Decision {
    Draft::go(round, RebalanceState::Stopped, messages::STOPPED_BY_DELETION).forget_if(Ask::Stop).rest()
}
