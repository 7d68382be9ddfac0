//! Data moves. The run is followed by its task and by the executor, and is over only when both say so.
//!
//! Moved data is not like a proposal: what is lost is reported, never repeated unasked. A stop is sent only
//! to a run of ours, and is over when the executor does something else or nothing.

use evenkeel_api::Reason;
use evenkeel_api::annotations::Ask;
use evenkeel_api::rebalance::RebalanceState;
use evenkeel_rest::body::UserTask;
use evenkeel_rest::body::state::{ExecutorState, Phase};
use evenkeel_rest::parameter::TaskStatus;
use jiff::Timestamp;
use uuid::Uuid;

use super::super::decision::Decision;
use super::super::draft::Draft;
use super::super::hear::{Call, Said, Trouble};
use super::super::progress::{self, Progress};
use super::super::{messages, request, tag};
use super::begin::begin;
use super::{FOLLOW, Round};

/// What is known about the task.
enum News<'a> {
    Task(&'a UserTask),
    /// The engine does not know it.
    Lost,
    Unanswered(&'a Trouble),
}

/// Why the run is to end early.
#[derive(Clone, Copy, PartialEq)]
enum Ending {
    Stop,
    /// For a new proposal.
    Renew,
}

pub(super) fn rebalancing(round: &Round<'_>) -> Decision {
    let seen = round.seen;
    if let Some(blocked) = seen.cannot_ask() {
        return stay(round).warn_blocked(blocked).back_off();
    }
    // The task before the executor: when the task is over and the executor, asked after that, does
    // something else, then the run is over.
    let news = match news(round) {
        Ok(news) => news,
        Err(call) => return Decision::ask(*call),
    };
    let Some(executor) = &seen.heard.executor else { return Decision::ask(Call::LookAtExecutor) };
    match ending(round) {
        Some(ending) => end(round, ending, &news, executor),
        None => follow(round, &news, executor),
    }
}

fn news<'a>(round: &Round<'a>) -> Result<News<'a>, Box<Call>> {
    let heard = &round.seen.heard;
    let Some(task) = round.standing.session else {
        return match &heard.tasks {
            None => Err(Box::new(Call::ListTasks)),
            Some(Err(trouble)) => Ok(News::Unanswered(trouble)),
            Some(Ok(tasks)) => Ok(tag::find_unfinished(tasks, round.seen.uid()).map_or(News::Lost, News::Task)),
        };
    };
    // The whole answer may be large, so only if something of it is missing.
    let in_full = round.standing.status.optimization_result.is_none() || round.seen.config_map.is_lost();
    match &heard.task {
        None => Err(Box::new(Call::Follow { task, in_full })),
        Some(Err(trouble)) => Ok(News::Unanswered(trouble)),
        Some(Ok(tasks)) => match tasks.iter().find(|found| found.user_task_id == task.to_string()) {
            Some(found) if found.status == TaskStatus::CompletedWithError && !heard.in_full => {
                Err(Box::new(Call::Follow { task, in_full: true }))
            }
            Some(found) => Ok(News::Task(found)),
            None => Ok(News::Lost),
        },
    }
}

fn ending(round: &Round<'_>) -> Option<Ending> {
    match round.ask {
        Some(Ask::Stop) => Some(Ending::Stop),
        _ if round.deleting => None,
        Some(Ask::Refresh) => Some(Ending::Renew),
        // A spec that cannot be carried out is no reason to stop what was approved.
        _ if round.edited && request::proposal(round.seen).is_ok() => Some(Ending::Renew),
        _ => None,
    }
}

fn end(round: &Round<'_>, ending: Ending, news: &News<'_>, executor: &Said<ExecutorState>) -> Decision {
    let executor = match executor {
        Ok(executor) => executor,
        // Without knowing whose run it is, none is stopped.
        Err(trouble) => return stay(round).warn_trouble(trouble).back_off(),
    };
    if is_ours(round, executor) {
        return stop(round, executor, news);
    }
    match (news, ending) {
        (News::Unanswered(trouble), _) => stay(round).warn_trouble(trouble).back_off(),
        // Not begun, or just ending. A stop would be lost on it, or hit somebody else.
        (News::Task(task), _) if is_unfinished(task) => with_session(stay(round), task).after(FOLLOW),
        (_, Ending::Renew) => begin(round),
        // It had come to its end before: the stop has nothing left to do, and stays to say so.
        (News::Task(task), Ending::Stop) if task.status == TaskStatus::Completed => done(round, task),
        (_, Ending::Stop) => {
            Draft::go(round, RebalanceState::Stopped, messages::STOPPED).session(None).current_spec().forget().rest()
        }
    }
}

fn stop(round: &Round<'_>, executor: &ExecutorState, news: &News<'_>) -> Decision {
    let draft = stay(round).progress(report(round, Ok(executor), news));
    if matches!(executor.phase, Phase::Stopping(_)) {
        return draft.after(FOLLOW);
    }
    match &round.seen.heard.stop {
        None => draft.tell("Stopping", messages::STOPPING).call(Call::Stop),
        // Accepted, not over; and one that came too early is sent again next time.
        Some(Ok(())) => draft.after(FOLLOW),
        Some(Err(trouble)) => draft.warn_trouble(trouble).back_off(),
    }
}

fn follow(round: &Round<'_>, news: &News<'_>, executor: &Said<ExecutorState>) -> Decision {
    let ours = executor.as_ref().map(|executor| is_ours(round, executor));
    match (news, ours) {
        (News::Task(task), Ok(false)) if task.status == TaskStatus::Completed => done(round, task),
        (News::Task(task), Ok(false)) if task.status == TaskStatus::CompletedWithError => failed(round, task),
        (News::Lost, Ok(false)) => {
            let last = round.seen.config_map.data().and_then(progress::last_percent);
            Draft::fail(round, Reason::ExecutionOutcomeUnknown, messages::outcome_unknown(last)).session(None).rest()
        }
        _ => go_on(round, news, executor),
    }
}

fn go_on(round: &Round<'_>, news: &News<'_>, executor: &Said<ExecutorState>) -> Decision {
    let mut draft = stay(round).progress(report(round, executor.as_ref(), news));
    if let News::Task(task) = news {
        draft = with_session(draft, task);
        if !draft.has_result()
            && let Some(plan) = task.optimization_result()
        {
            draft = draft.plan(&plan);
        } else if round.seen.config_map.is_lost()
            && let Some(plan) = task.optimization_result()
        {
            draft = draft.loads(&plan);
        }
    }
    if round.edited
        && let Err(why) = request::proposal(round.seen)
    {
        draft = draft.warn(Reason::IllegalArgumentException, messages::invalid_while_running(&why));
    }
    match (news, executor) {
        (News::Unanswered(trouble), _) => draft.warn_trouble(trouble).back_off(),
        (_, Err(trouble)) => draft.warn_trouble(trouble).back_off(),
        (News::Task(task), _) if is_slow(round, task) => {
            draft.warn(Reason::CruiseControlRestException, messages::SLOW_EXECUTION).after(FOLLOW)
        }
        _ => draft.after(FOLLOW),
    }
}

fn done(round: &Round<'_>, task: &UserTask) -> Decision {
    let draft = Draft::go(round, RebalanceState::Ready, messages::READY).session(None);
    match task.optimization_result() {
        Some(plan) if !draft.has_result() => draft.plan(&plan).rest(),
        _ => draft.rest(),
    }
}

fn failed(round: &Round<'_>, task: &UserTask) -> Decision {
    let text = match (task.optimization_result(), &task.original_response) {
        (Some(_), _) => messages::FAILED_WHILE_MOVING.to_owned(),
        (None, Some(text)) if text == TaskStatus::CompletedWithError.name() => {
            messages::FAILED_WHILE_PLANNING.to_owned()
        }
        (None, Some(text)) => format!("{}: {}", messages::FAILED, messages::trimmed(text)),
        (None, None) => messages::FAILED.to_owned(),
    };
    Draft::fail(round, Reason::CruiseControlRestException, text).rest()
}

fn report(round: &Round<'_>, executor: Result<&ExecutorState, &Trouble>, news: &News<'_>) -> Option<Progress> {
    let executor = executor.ok().filter(|executor| is_ours(round, executor))?;
    let began = match news {
        News::Task(task) => Timestamp::from_millisecond(task.start_ms).ok(),
        _ => None,
    };
    Some(Progress::of(executor, began, round.seen.now))
}

fn is_ours(round: &Round<'_>, executor: &ExecutorState) -> bool {
    tag::runs(executor, round.seen.uid(), round.standing.session)
}

/// Whether the execution should have been planned long ago.
fn is_slow(round: &Round<'_>, task: &UserTask) -> bool {
    let began = Timestamp::from_millisecond(task.start_ms).unwrap_or(round.seen.now);
    task.status == TaskStatus::Active && round.seen.now.duration_since(began).unsigned_abs() > messages::SLOW
}

fn is_unfinished(task: &UserTask) -> bool {
    matches!(task.status, TaskStatus::Active | TaskStatus::InExecution)
}

/// A task that was found by its tag is followed by its id from now on.
fn with_session<'a>(draft: Draft<'a>, task: &UserTask) -> Draft<'a> {
    draft.session(Uuid::try_parse(&task.user_task_id).ok())
}

fn stay<'a>(round: &'a Round<'a>) -> Draft<'a> {
    let draft = Draft::stay_and_mind_the_ask(round);
    match round.seen.not_ready() {
        Some(blocked) => draft.warn_blocked(blocked),
        None => draft,
    }
}
