//! RebalanceOnImbalance: violated goals are being mended.

use evenkeel_api::kafka::AutoRebalanceMode;
use jiff::Timestamp;

use super::{
    Act,
    draft::Draft,
    outcome::{Meaning, approval_lacks, cause, meaning},
};
use crate::auto_rebalance::{
    generated::{Generated, Phase, StopReason},
    imbalance,
    observe::Brake,
};

const MODE: AutoRebalanceMode = AutoRebalanceMode::Imbalance;

pub(super) fn step(draft: &mut Draft<'_>, own: &Generated) {
    match own.phase() {
        Phase::Paused => draft.waiting(format!("KafkaRebalance {} is paused", own.name)),
        Phase::Underway => underway(draft, own),
        Phase::Done => {
            draft.tracker.failures.remove(&MODE);
            ended(draft, own.since);
            empty_violations(draft);
            draft.end(own);
        }
        Phase::Stopped => {
            let text = "a rebalance on imbalance was stopped. The next one begins when the imbalance is found again: \
                        remove mode imbalance from autoRebalance, or annotate the Kafka with evenkeel.io/auto-rebalance: \"off\"";
            draft.failed(MODE, true, text.to_owned());
            ended(draft, own.since);
            draft.end(own);
        }
        Phase::Abandoned => {
            ended(draft, own.since);
            draft.end(own);
        }
        Phase::Failed => match meaning(own, draft.seen) {
            Meaning::Passing | Meaning::Passed
                if own.deleting || draft.seen.brake != Brake::Released || is_in_the_way(draft) =>
            {
                ended(draft, own.since);
                draft.end(own);
            }
            Meaning::Passing => draft.waiting(format!("the rebalance on imbalance waits: {}", cause(own))),
            Meaning::Passed => draft.refresh(own),
            Meaning::Unsettled | Meaning::Unknown | Meaning::Unheard | Meaning::Final => {
                draft.failed(MODE, false, format!("a rebalance on imbalance failed: {}", cause(own)));
                ended(draft, own.since);
                empty_violations(draft);
                draft.end(own);
            }
        },
    }
}

fn underway(draft: &mut Draft<'_>, own: &Generated) {
    if draft.brake(own) || draft.is_stopped_by_others(own) {
        return;
    }
    if own.stopped_for.is_some() {
        draft.stop(own, StopReason::Cancelled);
    } else if let Some(why) = own.is_stuck() {
        // There is nobody to approve it, and everything else would wait for it.
        draft.failed(MODE, false, format!("a rebalance on imbalance was not carried out: {why}"));
        draft.stop(own, StopReason::Withheld);
    } else if own.waits_for_approval() {
        // As above: nobody asked for this one, and everything else would wait until somebody approves it.
        let text = format!("a rebalance on imbalance was not carried out: {}", approval_lacks(own));
        draft.failed(MODE, false, text);
        draft.stop(own, StopReason::Withheld);
    } else if is_in_the_way(draft) {
        if draft.configured().preempt {
            draft.waiting("the rebalance on imbalance gives way to brokers that come or go");
            draft.stop(own, StopReason::Preempted);
        } else {
            draft.waiting(format!("brokers that come or go wait for the end of KafkaRebalance {}", own.name));
        }
    }
}

/// Whether something for brokers that come or go could begin now.
fn is_in_the_way(draft: &mut Draft<'_>) -> bool {
    draft.next(false).is_some()
}

/// The pause counts from the end of it, however it ended.
fn ended(draft: &mut Draft<'_>, since: Option<Timestamp>) {
    let now = draft.seen.now;
    draft.tracker.imbalance.ended = Some(since.map_or(now, |since| since.min(now)));
}

/// Whatever is still wrong will be found again.
fn empty_violations(draft: &mut Draft<'_>) {
    let data = draft.seen.violations.as_ref();
    if data.is_some_and(|data| imbalance::emptied(data, true).is_some()) {
        draft.acts.push(Act::EmptyViolations { unfixable_too: true });
    }
}

/// The generated rebalance is not there any more, and not by our doing.
pub(super) fn vanished(draft: &mut Draft<'_>) {
    let name = draft.tracker.in_sight.clone().unwrap_or_default().name;
    draft.failed(MODE, false, format!("a rebalance on imbalance failed: somebody removed KafkaRebalance {name}"));
    ended(draft, None);
    empty_violations(draft);
    draft.miss();
    draft.turn_to_next();
}
