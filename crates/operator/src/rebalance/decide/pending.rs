//! A proposal is being made. Asking for one changes nothing, so whatever is lost is simply asked for again.

use evenkeel_api::Reason;
use evenkeel_api::annotations::Ask;
use evenkeel_api::rebalance::RebalanceState;
use evenkeel_rest::body::{OptimizationResult, UserTask};
use evenkeel_rest::parameter::TaskStatus;
use uuid::Uuid;

use super::super::decision::Decision;
use super::super::draft::Draft;
use super::super::hear::{Call, Plan, Said, Sort, Trouble};
use super::super::{messages, request};
use super::begin::begin;
use super::resting::stop_for_deletion;
use super::{FOLLOW, RETRY, Round, is_slow};

pub(super) fn pending(round: &Round<'_>) -> Decision {
    let session = round.standing.session;
    if round.ask == Some(Ask::Stop) {
        // The engine goes on computing, and nobody looks at what comes of it. What was edited before the stop
        // does not begin anew after it.
        return Draft::go(round, RebalanceState::Stopped, messages::STOPPED).current_spec().forget().rest();
    }
    if round.deleting && (round.generated || session.is_none()) {
        return stop_for_deletion(round);
    }
    if !round.deleting && (round.edited || round.ask == Some(Ask::Refresh)) {
        return begin(round);
    }
    if round.ask == Some(Ask::Approve) && round.standing.warning(Reason::ProposalOutdated).is_some() && !round.deleting
    {
        // It was given to the proposal that was outdated, and the process died before it could take it away; or to the
        // new one before there is any. Left where it is, it would have something carried out that nobody has seen.
        let kept = [Reason::ProposalOutdated, Reason::NotEnoughData];
        return kept.into_iter().fold(Draft::stay(round), Draft::keep_warning).forget().again();
    }
    match session {
        Some(task) => follow(round, task),
        None => propose(round),
    }
}

/// Nothing is under way, or nobody knows what.
fn propose(round: &Round<'_>) -> Decision {
    if let Some(said) = &round.seen.heard.proposal {
        return proposed(round, said);
    }
    if let Some(blocked) = round.seen.cannot_start() {
        return stay(round).warn_blocked(blocked).back_off();
    }
    match request::proposal(round.seen) {
        Ok(request) => Decision::ask(Call::Propose(request)),
        Err(why) => Draft::fail(round, Reason::IllegalArgumentException, why).current_spec().rest(),
    }
}

fn proposed(round: &Round<'_>, said: &Said<Plan>) -> Decision {
    match said {
        Ok(Plan { task, result: Some(result) }) => ready(round, *task, result),
        Ok(Plan { task: Some(task), result: None }) => stay(round).session(Some(*task)).after(FOLLOW),
        // Without an id nobody can follow it: it is asked for again, but each time is a task more for the engine.
        Ok(Plan { task: None, result: None }) => {
            stay(round).session(None).warn(Reason::CruiseControlRestException, messages::NAMELESS_TASK).back_off()
        }
        Err(trouble) => not_proposed(round, trouble),
    }
}

fn not_proposed(round: &Round<'_>, trouble: &Trouble) -> Decision {
    match trouble.sort {
        Sort::NotEnoughData => {
            let text = messages::not_enough_data(&trouble.text, round.seen.first_window());
            stay(round).session(None).warn(Reason::NotEnoughData, text).after(RETRY)
        }
        sort if sort.passes() => stay(round).session(None).warn_trouble(trouble).back_off(),
        sort @ (Sort::Refused | Sort::NoSuchBroker) => {
            Draft::fail(round, sort.reason(), messages::refused(&trouble.text)).rest()
        }
        _ => Draft::fail(round, Reason::CruiseControlRestException, trouble.text.clone()).rest(),
    }
}

fn follow(round: &Round<'_>, task: Uuid) -> Decision {
    match &round.seen.heard.task {
        None => match round.seen.cannot_ask() {
            // A deletion waits for a proposal to be kind, not because anything moves: so for nobody who does not answer.
            Some(_) if round.deleting => stop_for_deletion(round),
            Some(blocked) => stay(round).warn_blocked(blocked).back_off(),
            None => Decision::ask(Call::Follow { task, in_full: true }),
        },
        Some(Err(_)) if round.deleting => stop_for_deletion(round),
        Some(Err(trouble)) => stay(round).warn_trouble(trouble).back_off(),
        Some(Ok(tasks)) => match tasks.iter().find(|found| found.user_task_id == task.to_string()) {
            Some(found) => followed(round, task, found),
            None if round.deleting => stop_for_deletion(round),
            None => match round.seen.cannot_start() {
                Some(blocked) => stay(round).session(None).warn_blocked(blocked).back_off(),
                None => stay(round).session(None).again(),
            },
        },
    }
}

fn followed(round: &Round<'_>, id: Uuid, task: &UserTask) -> Decision {
    match task.status {
        TaskStatus::Active if is_slow(round, task) && round.deleting => stop_for_deletion(round),
        TaskStatus::Active if is_slow(round, task) => {
            stay(round).warn(Reason::CruiseControlRestException, messages::SLOW_PROPOSAL).after(RETRY)
        }
        TaskStatus::Active => stay(round).after(FOLLOW),
        TaskStatus::Completed | TaskStatus::InExecution => match task.optimization_result() {
            Some(result) => ready(round, Some(id), &result),
            None => Draft::fail(round, Reason::CruiseControlRestException, messages::UNREADABLE_PLAN).rest(),
        },
        TaskStatus::CompletedWithError => failed(round, id),
    }
}

/// The list of tasks does not say why one failed. Its own request, with its id, does.
fn failed(round: &Round<'_>, task: Uuid) -> Decision {
    let mute = || Draft::fail(round, Reason::CruiseControlRestException, messages::MUTE_PROPOSAL).rest();
    match &round.seen.heard.explanation {
        None => match request::proposal(round.seen) {
            Ok(request) => Decision::ask(Call::Explain { request, task }),
            Err(_) => mute(),
        },
        Some(Ok(Plan { result: Some(result), .. })) => ready(round, Some(task), result),
        Some(Ok(_)) => mute(),
        Some(Err(trouble)) if trouble.sort.is_unclear() && round.deleting => stop_for_deletion(round),
        Some(Err(trouble)) if trouble.sort.is_unclear() || trouble.sort == Sort::Denied => {
            stay(round).warn_trouble(trouble).back_off()
        }
        Some(Err(trouble)) if trouble.is_about_another_request(&task.to_string()) => match round.deleting {
            true => stop_for_deletion(round),
            // The settings are others now, so what they lead to is asked for.
            false => stay(round).session(None).after(RETRY),
        },
        // Nothing new is begun for what is to go.
        Some(Err(trouble)) if round.deleting => {
            Draft::fail(round, trouble.sort.reason(), messages::refused(&trouble.text)).rest()
        }
        Some(Err(trouble)) => not_proposed(round, trouble),
    }
}

/// Here is the proposal. One that needs no further approval goes on at once, still holding the finalizer.
fn ready(round: &Round<'_>, task: Option<Uuid>, result: &OptimizationResult) -> Decision {
    let draft = Draft::go(round, RebalanceState::ProposalReady, messages::proposal(&result.summary))
        .session(task)
        .plan(result)
        .keep_warning(Reason::ProposalOutdated);
    match round.deleting {
        true => draft.rest(),
        false if round.auto_approved || round.ask == Some(Ask::Approve) => draft.submitting().again(),
        false => draft.again(),
    }
}

fn stay<'a>(round: &'a Round<'a>) -> Draft<'a> {
    let approved = round.ask == Some(Ask::Approve) && !round.deleting;
    let message = if approved { messages::PENDING_APPROVED } else { messages::PENDING };
    let draft = Draft::stay_and_mind_the_ask(round).saying(message).keep_warning(Reason::ProposalOutdated);
    match round.seen.not_ready().filter(|_| round.standing.session.is_some()) {
        Some(blocked) => draft.warn_blocked(blocked),
        None => draft,
    }
}
