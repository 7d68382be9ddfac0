//! A new proposal, wherever it is asked for from.

use evenkeel_api::Reason;
use evenkeel_api::rebalance::RebalanceState;

use super::super::decision::Decision;
use super::super::draft::Draft;
use super::super::hear::Call;
use super::super::{messages, request};
use super::{RETRY, Round};

/// Begins anew with the spec as it is now: records `PendingProposal`, and then asks for a proposal.
///
/// What cannot begin yet waits where it is, with a Warning, and goes on by itself. What could never begin is
/// `NotReady` until the spec is mended.
pub(super) fn begin(round: &Round<'_>) -> Decision {
    if round.seen.runs_elsewhere().is_some() {
        // What ran in another Kafka is over. From here on it is about that of the label, which is to be looked at first.
        return pending_anew(round).again();
    }
    if let Some(blocked) = round.seen.cannot_start() {
        return match round.standing.state {
            RebalanceState::New => Draft::fail(round, blocked.reason, blocked.message).current_spec().after(RETRY),
            RebalanceState::NotReady if round.standing.failed_before_any_request() => {
                Draft::fail(round, blocked.reason, blocked.message).minding_the_ask().current_spec().after(RETRY)
            }
            // What was going on before is over or given up, so only the wait is left to show.
            RebalanceState::PendingProposal | RebalanceState::Rebalancing => {
                pending_anew(round).warn_blocked(blocked).back_off()
            }
            _ => Draft::stay_and_mind_the_ask(round)
                .keep_warning(Reason::ProposalOutdated)
                .warn_blocked(blocked)
                .after(RETRY),
        };
    }
    match request::proposal(round.seen) {
        Ok(request) => pending_anew(round).call(Call::Propose(request)),
        Err(why) => {
            let mut draft =
                Draft::fail(round, Reason::IllegalArgumentException, why).current_spec().forget_what_led_here();
            if round.standing.state == RebalanceState::NotReady {
                draft = draft.minding_the_ask();
            }
            // It may be mended in the template, of which nothing here is told.
            if round.seen.names_a_template() { draft.after(RETRY) } else { draft.rest() }
        }
    }
}

fn pending_anew<'a>(round: &'a Round<'a>) -> Draft<'a> {
    Draft::go(round, RebalanceState::PendingProposal, messages::PENDING)
        .current_spec()
        .session(None)
        .without_result()
        .without_loads()
        .forget_what_led_here()
}
