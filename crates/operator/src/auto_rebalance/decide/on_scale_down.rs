//! RebalanceOnScaleDown: brokers that are to be removed are being emptied.

use evenkeel_api::{annotations::REBALANCE, kafka::AutoRebalanceMode};

use super::{
    draft::Draft,
    outcome::{ASKED_AGAIN_AFTER, MOST_UNKNOWN, Meaning, approval_lacks, cause, meaning},
};
use crate::auto_rebalance::{
    brokers::Check,
    generated::{Generated, Phase, StopReason},
    observe::Brake,
    state::listed,
    tracker::{Attempts, Sight},
};

const MODE: AutoRebalanceMode = AutoRebalanceMode::RemoveBrokers;

pub(super) fn step(draft: &mut Draft<'_>, own: &Generated) {
    match own.phase() {
        Phase::Paused => draft.waiting(format!("KafkaRebalance {} is paused", own.name)),
        Phase::Underway => underway(draft, own),
        Phase::Done => done(draft, own),
        // The user, not a failure: what is asked of us is still to remove the brokers.
        Phase::Stopped => {
            let text = format!(
                "the rebalance that empties brokers {} was stopped. It begins again while the brokers are to be \
                 removed: set the replicas back, or annotate the Kafka with evenkeel.io/auto-rebalance: \"off\"",
                listed(&own.brokers)
            );
            draft.failed(MODE, true, text);
            draft.count_failed_removal(&own.uid);
            draft.end(own);
        }
        Phase::Abandoned => draft.end(own),
        Phase::Failed => failed(draft, own),
    }
}

fn underway(draft: &mut Draft<'_>, own: &Generated) {
    if draft.brake(own) || draft.is_stopped_by_others(own) {
        return;
    }
    let removals = draft.queue.removals.clone();
    if removals.is_empty() {
        // Nobody wants these brokers removed any more.
        draft.stop(own, StopReason::Cancelled);
    } else if own.stopped_for.is_some() {
        // Stopped for a reason that is gone. It comes to its end, and another one begins.
        draft.stop(own, StopReason::Cancelled);
    } else if own.brokers != removals && !own.deleting {
        draft.update(own, removals);
    } else if let Some(why) = own.is_stuck() {
        // Ours are not capped: somebody has annotated it.
        draft.count_failed_removal(&own.uid);
        draft.failed(MODE, false, format!("brokers {} were not emptied: {why}", listed(&own.brokers)));
        draft.stop(own, StopReason::Withheld);
    } else if own.waits_for_approval() {
        wait_for_approval(draft, own);
    }
}

/// It may be just what somebody wants, to see what is going to be moved first.
pub(super) fn wait_for_approval(draft: &mut Draft<'_>, own: &Generated) {
    draft.waiting(format!("{}: put it back, or annotate it with {REBALANCE}: approve", approval_lacks(own)));
}

fn done(draft: &mut Draft<'_>, own: &Generated) {
    draft.tracker.failures.remove(&MODE);
    let removals = draft.queue.removals.clone();
    if removals.is_empty() {
        draft.tracker.removal = Attempts::under(&draft.seen.spec_version);
    } else if draft.seen.brokers.check != Check::HasData {
        // Nobody knows whether anything is left: they stay, and nothing failed.
    } else if removals == own.brokers {
        // It is done, and yet there is data: topics it was told to leave alone, or new ones. Perhaps
        // the check is only older than the end of it. Either way not again at once.
        draft.count_failed_removal(&own.uid);
        let left = draft.seen.brokers.left.as_deref().unwrap_or("nobody could say what");
        let text =
            format!("the rebalance that empties brokers {} has ended, and data is left: {left}", listed(&own.brokers));
        draft.failed(MODE, false, text);
    } else if !own.deleting && draft.obstacle().is_none() {
        draft.tracker.removal = Attempts::under(&draft.seen.spec_version);
        draft.update(own, removals);
        return;
    }
    draft.end(own);
}

fn failed(draft: &mut Draft<'_>, own: &Generated) {
    let removals = draft.queue.removals.clone();
    let brokers = listed(&own.brokers);
    match meaning(own, draft.seen) {
        // Nobody waits for what is no longer wanted.
        _ if removals.is_empty() || own.deleting => draft.end(own),
        Meaning::Passing | Meaning::Passed | Meaning::Unsettled if draft.seen.brake != Brake::Released => {
            draft.end(own)
        }
        Meaning::Passing => {
            draft.waiting(format!("the rebalance that empties brokers {brokers} waits: {}", cause(own)));
        }
        Meaning::Passed if own.brokers != removals => {
            draft.update(own, removals);
        }
        Meaning::Passed => draft.refresh(own),
        Meaning::Unsettled => {
            let what = format!("the outcome of the rebalance that empties brokers {brokers} is unknown");
            wait_for_executor(draft, &what);
        }
        Meaning::Unknown if may_repeat(&draft.tracker.removal, own) => {
            draft.tracker.removal.count_unknown(&own.uid);
            let text =
                format!("the outcome of the rebalance that empties brokers {brokers} is unknown; it begins again");
            draft.failed(MODE, false, text);
            draft.end(own);
        }
        // Brokers to empty that nobody knows: new ones they are not.
        Meaning::Unknown | Meaning::Unheard | Meaning::Final => {
            draft.count_failed_removal(&own.uid);
            draft.failed(MODE, false, format!("emptying brokers {brokers} failed: {}", cause(own)));
            draft.end(own);
        }
    }
}

/// Until the engine is idle nobody knows whether it is still at it.
pub(super) fn wait_for_executor(draft: &mut Draft<'_>, what: &str) {
    draft.waiting(format!("{what}; waiting until Cruise Control is idle"));
    draft.look_again_at(draft.seen.now.checked_add(ASKED_AGAIN_AFTER).ok());
}

/// Whether one of which nobody knows how it ended may be made once more.
pub(super) fn may_repeat(attempts: &Attempts, own: &Generated) -> bool {
    attempts.unknown < MOST_UNKNOWN
        || (attempts.counted.as_deref() == Some(&own.uid) && attempts.unknown == MOST_UNKNOWN)
}

/// The generated rebalance is not there any more, and not by our doing.
pub(super) fn vanished(draft: &mut Draft<'_>) {
    if !draft.queue.removals.is_empty() {
        let Sight { name, brokers } = draft.tracker.in_sight.clone().unwrap_or_default();
        // Its uid is not known any more, but it is counted only this once: it is out of sight then.
        draft.tracker.removal.counted = None;
        draft.count_failed_removal(&name);
        let text = format!("emptying brokers {} failed: somebody removed KafkaRebalance {name}", listed(&brokers));
        draft.failed(MODE, false, text);
    }
    draft.turn_to_next();
}
