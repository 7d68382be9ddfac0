//! RebalanceOnScaleUp: data moves to brokers that were added.

use evenkeel_api::kafka::AutoRebalanceMode;

use super::{
    draft::Draft,
    on_scale_down::{may_repeat, wait_for_approval, wait_for_executor},
    outcome::{ASKED_AGAIN_AFTER, Meaning, cause, meaning},
};
use crate::auto_rebalance::{
    generated::{Generated, Phase, StopReason},
    observe::{Brake, Engine},
    state::{Brokers, listed},
    tracker::{Attempts, Sight},
};

const MODE: AutoRebalanceMode = AutoRebalanceMode::AddBrokers;

pub(super) fn step(draft: &mut Draft<'_>, own: &Generated) {
    match own.phase() {
        Phase::Paused => draft.waiting(format!("KafkaRebalance {} is paused", own.name)),
        Phase::Underway => underway(draft, own),
        Phase::Done => done(draft, own),
        Phase::Stopped => {
            let text =
                format!("the rebalance to brokers {} was stopped: they keep what they have", listed(&own.brokers));
            draft.failed(MODE, true, text);
            give_up(draft, own);
            draft.end(own);
        }
        // They stay queued.
        Phase::Abandoned => draft.end(own),
        Phase::Failed => failed(draft, own),
    }
}

fn underway(draft: &mut Draft<'_>, own: &Generated) {
    if draft.brake(own) || draft.is_stopped_by_others(own) {
        return;
    }
    if draft.removal_is_urgent() {
        draft.waiting("the rebalance after scaling up gives way to brokers that are to be removed");
        draft.stop(own, StopReason::Preempted);
        return;
    }
    if let Some(why) = own.is_stuck() {
        // Ours are not capped: somebody has annotated it.
        let text = format!("the rebalance to brokers {} was not carried out: {why}", listed(&own.brokers));
        draft.failed(MODE, false, text);
        give_up(draft, own);
        draft.stop(own, StopReason::Withheld);
        return;
    }
    let wanted = reachable(draft, own);
    if wanted.is_empty() || own.stopped_for.is_some() {
        // Either there is nothing left of what it was for, or it was stopped for a reason that is
        // gone: it comes to its end, and what is queued begins again.
        draft.stop(own, StopReason::Cancelled);
    } else if own.brokers != wanted && !own.deleting {
        draft.update(own, wanted);
    } else if own.waits_for_approval() {
        wait_for_approval(draft, own);
    }
}

/// The brokers that a running rebalance should be about: those that came later join it once they are
/// ready and the engine knows them.
fn reachable(draft: &mut Draft<'_>, own: &Generated) -> Brokers {
    let targets = draft.targets();
    let later = &targets - &own.brokers;
    let known = matches!(draft.seen.engine, Engine::Current { .. });
    if later.is_empty() || (later.is_subset(&draft.seen.brokers.ready) && known) {
        return targets;
    }
    draft.waiting(format!("brokers {} join the rebalance once they are ready", listed(&later)));
    &targets & &own.brokers
}

fn done(draft: &mut Draft<'_>, own: &Generated) {
    draft.tracker.failures.remove(&MODE);
    draft.tracker.addition = Attempts::under(&draft.seen.spec_version);
    give_up(draft, own);
    let rest = draft.targets();
    let free = !draft.removal_is_urgent() && draft.obstacle().is_none() && !own.deleting;
    if free && !rest.is_empty() && draft.addition_is_due() {
        draft.update(own, rest);
    } else {
        draft.end(own);
    }
}

fn failed(draft: &mut Draft<'_>, own: &Generated) {
    let brokers = listed(&own.brokers);
    let held = draft.seen.brake != Brake::Released;
    // Nothing runs that would be stopped, so this is for one more attempt at what has failed as well.
    let gives_way = held || draft.targets().is_empty() || own.deleting || draft.removal_may_begin();
    match meaning(own, draft.seen) {
        // They stay queued.
        Meaning::Passing | Meaning::Passed | Meaning::Unsettled | Meaning::Unheard if gives_way => draft.end(own),
        Meaning::Unheard => ask_in_a_while(draft, own),
        Meaning::Passing => draft.waiting(format!("the rebalance to brokers {brokers} waits: {}", cause(own))),
        Meaning::Passed => ask_again(draft, own),
        Meaning::Unsettled => {
            wait_for_executor(draft, &format!("the outcome of the rebalance to brokers {brokers} is unknown"));
        }
        Meaning::Unknown if may_repeat(&draft.tracker.addition, own) => {
            draft.tracker.addition.count_unknown(&own.uid);
            draft.failed(
                MODE,
                false,
                format!("the outcome of the rebalance to brokers {brokers} is unknown; it begins again"),
            );
            draft.end(own);
        }
        Meaning::Unknown | Meaning::Final => {
            draft.tracker.addition.count_failure(&own.uid, draft.seen.now, draft.seen.engine.id());
            let why = cause(own);
            if draft.tracker.addition.failed <= draft.configured().scale_up_retries {
                draft.failed(
                    MODE,
                    false,
                    format!("the rebalance to brokers {brokers} failed and is tried again: {why}"),
                );
            } else {
                let advice = "Make a KafkaRebalance in mode add-brokers once the cause is gone";
                draft.failed(MODE, false, format!("the rebalance to brokers {brokers} failed: {why}. {advice}"));
                give_up(draft, own);
                // Others that are queued did not fail.
                draft.tracker.addition.not_before = None;
            }
            draft.end(own);
        }
    }
}

fn ask_again(draft: &mut Draft<'_>, own: &Generated) {
    let wanted = reachable(draft, own);
    if wanted.is_empty() {
        draft.end(own);
    } else if wanted != own.brokers {
        draft.update(own, wanted);
    } else {
        draft.refresh(own);
    }
}

/// The engine had not heard of the brokers. It will, once all of them are there.
fn ask_in_a_while(draft: &mut Draft<'_>, own: &Generated) {
    let now = draft.seen.now;
    let due = own.since.and_then(|since| since.checked_add(ASKED_AGAIN_AFTER).ok()).filter(|due| *due > now);
    let all_are_there = draft.targets().is_subset(&draft.seen.brokers.ready);
    if due.is_none() && all_are_there {
        ask_again(draft, own);
        return;
    }
    draft.waiting(format!("the rebalance to brokers {} waits: {}", listed(&own.brokers), cause(own)));
    // Nothing calls when Kafka has heard of one.
    draft.look_again_at(due.or_else(|| now.checked_add(ASKED_AGAIN_AFTER).ok()));
}

/// What this rebalance was about is over, whichever way; what came later is not.
fn give_up(draft: &mut Draft<'_>, own: &Generated) {
    draft.queue.additions = &draft.queue.additions - &own.brokers;
}

/// The generated rebalance is not there any more, and not by our doing.
pub(super) fn vanished(draft: &mut Draft<'_>) {
    let Sight { name, brokers } = draft.tracker.in_sight.clone().unwrap_or_default();
    draft.queue.additions = &draft.queue.additions - &brokers;
    let text = format!("the rebalance to brokers {} failed: somebody removed KafkaRebalance {name}", listed(&brokers));
    draft.failed(MODE, false, text);
    draft.miss();
    draft.turn_to_next();
}
