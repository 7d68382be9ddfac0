//! Data moves. The run is followed by its task and by the executor, and is over only when both say so.
//!
//! Moved data is not like a proposal: what is lost is reported, never repeated unasked. A stop is sent only
//! to a run of ours, and is over when the executor does something else or nothing.

use std::time::Duration;

use evenkeel_api::annotations::Ask;
use evenkeel_api::rebalance::RebalanceState;
use evenkeel_api::{Condition, Reason};
use evenkeel_rest::body::UserTask;
use evenkeel_rest::body::state::{ExecutorState, Phase};
use evenkeel_rest::parameter::TaskStatus;
use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

use super::super::decision::Decision;
use super::super::draft::Draft;
use super::super::hear::{Call, Said, Sort, Trouble};
use super::super::observe::{Blocked, label};
use super::super::progress::{self, Progress};
use super::super::{messages, request, result, tag};
use super::begin::begin;
use super::proposal_ready::void;
use super::{CLOSELY, FOLLOW, RETRY, Round, is_slow};

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
        return stay(round).warn_blocked_on_the_way_out(blocked).back_off();
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
    let task = match (round.standing.session, &heard.tasks) {
        (Some(task), _) => task,
        (None, None) => return Err(Box::new(Call::ListTasks)),
        (None, Some(Err(trouble))) => return Ok(News::Unanswered(trouble)),
        // Of which only the tag is known. It may be over already; why it failed is said to who asks for it by its id.
        (None, Some(Ok(tasks))) => match tag::find_run(tasks, round.seen.uid(), not_before(round)) {
            None => return Ok(News::Lost),
            Some(found) => match Uuid::try_parse(&found.user_task_id) {
                Ok(id) if found.status == TaskStatus::CompletedWithError => id,
                _ => return Ok(News::Task(found)),
            },
        },
    };
    // The whole answer may be large, so only if something of it is missing.
    let in_full = round.standing.status.optimization_result.is_none() || lacks_loads(round);
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

/// Whether the ConfigMap lacks what the plan says. What only may be wrong is asked for again only of those whose answers are
/// short: it may be in vain each time.
fn lacks_loads(round: &Round<'_>) -> bool {
    let is_short = round.seen.engine().is_some_and(|engine| engine.is_ours);
    round.lacks_loads() && (is_short || round.seen.config_map.is_lost())
}

/// What a task says of its plan, as far as it is missing.
fn with_plan<'a>(round: &'a Round<'a>, draft: Draft<'a>, task: &UserTask) -> Draft<'a> {
    match task.optimization_result() {
        Some(plan) if !draft.has_result() => draft.plan(&plan),
        Some(plan) if lacks_loads(round) => draft.loads(&plan),
        _ => draft,
    }
}

/// When a run that was submitted when the state says so may have begun at the earliest, as its engine sees it.
fn not_before(round: &Round<'_>) -> Timestamp {
    /// As long as an answer is waited for.
    const BEFORE: SignedDuration = SignedDuration::from_secs(30);
    let since = round.standing.condition().and_then(Condition::since);
    since.map_or(Timestamp::UNIX_EPOCH, |since| since.saturating_sub(BEFORE).unwrap_or(since))
}

fn ending(round: &Round<'_>) -> Option<Ending> {
    match round.ask {
        Some(Ask::Stop) => Some(Ending::Stop),
        _ if round.deleting => None,
        Some(Ask::Refresh) => Some(Ending::Renew),
        // A spec that cannot be carried out is no reason to stop what was approved.
        _ if round.edited && impossible(round).is_none() => Some(Ending::Renew),
        _ => None,
    }
}

/// Why the spec as it is now could not be carried out.
fn impossible(round: &Round<'_>) -> Option<Blocked> {
    let wrong = |why| Blocked::new(Reason::IllegalArgumentException, why);
    round.seen.template.blocked().or_else(|| request::proposal(round.seen).err().map(wrong))
}

fn end(round: &Round<'_>, ending: Ending, news: &News<'_>, executor: &Said<ExecutorState>) -> Decision {
    let executor = match executor {
        Ok(executor) => executor,
        // Without knowing whose run it is, none is stopped.
        Err(trouble) => return in_trouble(on_its_way_out(round), trouble),
    };
    if is_ours(round, executor) {
        return stop(round, executor, news);
    }
    match (news, ending) {
        (News::Unanswered(trouble), _) => in_trouble(on_its_way_out(round), trouble),
        // Not begun, or just ending. A stop would be lost on it, or hit somebody else.
        (News::Task(task), _) if task.status == TaskStatus::Active => wait_for_its_beginning(round, task),
        (News::Task(task), _) if task.status == TaskStatus::InExecution => {
            with_session(on_its_way_out(round), task).after(FOLLOW)
        }
        (_, Ending::Renew) => begin(round),
        // It had come to its end before: the stop has nothing left to do, and stays to say so.
        (News::Task(task), Ending::Stop) if task.status == TaskStatus::Completed => done(round, task),
        (news, Ending::Stop) => {
            let draft = Draft::go(round, RebalanceState::Stopped, messages::STOPPED).current_spec().forget();
            match news {
                News::Task(task) => with_plan(round, draft, task).rest(),
                _ => draft.rest(),
            }
        }
    }
}

/// What is being planned is stopped as soon as it begins.
fn wait_for_its_beginning(round: &Round<'_>, task: &UserTask) -> Decision {
    let mut draft = with_session(stay(round), task).saying(messages::STOPS_LATER);
    if said(round) != Some(messages::STOPS_LATER) {
        draft = draft.tell("Stopping", messages::STOPS_LATER);
    }
    if is_slow(round, task) {
        draft = draft.warn(Reason::CruiseControlRestException, messages::SLOW_EXECUTION);
    }
    draft.after(FOLLOW)
}

fn stop(round: &Round<'_>, executor: &ExecutorState, news: &News<'_>) -> Decision {
    let draft = stay(round).saying(messages::STOPPING).progress(report(round, Ok(executor), news));
    if matches!(executor.phase, Phase::Stopping(_)) {
        return draft.after(FOLLOW);
    }
    match &round.seen.heard.stop {
        // One that came too early is sent again and again, and told of once.
        None if said(round) == Some(messages::STOPPING) => draft.call(Call::Stop),
        None => draft.tell("Stopping", messages::STOPPING).call(Call::Stop),
        // Accepted, not over; and one that came too early is sent again next time.
        Some(Ok(())) => draft.after(FOLLOW),
        Some(Err(trouble)) => in_trouble(draft, trouble),
    }
}

fn follow(round: &Round<'_>, news: &News<'_>, executor: &Said<ExecutorState>) -> Decision {
    let ours = executor.as_ref().map(|executor| is_ours(round, executor));
    match (news, ours) {
        (News::Task(task), Ok(false)) if task.status == TaskStatus::Completed => done(round, task),
        (News::Task(task), Ok(false)) if task.status == TaskStatus::CompletedWithError => failed(round, task),
        (News::Lost, Ok(false)) => {
            let last = round.seen.config_map.data().and_then(progress::last_percent);
            Draft::fail(round, Reason::ExecutionOutcomeUnknown, messages::outcome_unknown(last)).rest()
        }
        _ => go_on(round, news, executor),
    }
}

fn go_on(round: &Round<'_>, news: &News<'_>, executor: &Said<ExecutorState>) -> Decision {
    let mut draft = stay(round).progress(report(round, executor.as_ref(), news));
    if let News::Task(task) = news {
        draft = with_plan(round, with_session(draft, task), task);
    }
    if round.edited
        && let Some(Blocked { reason, message }) = impossible(round)
    {
        draft = draft.warn(reason, messages::invalid_while_running(&message));
    }
    match (news, executor) {
        (News::Unanswered(trouble), _) => in_trouble(draft, trouble),
        (_, Err(trouble)) => in_trouble(draft, trouble),
        (News::Task(task), _) if is_slow(round, task) => {
            draft.warn(Reason::CruiseControlRestException, messages::SLOW_EXECUTION).after(FOLLOW)
        }
        (_, Ok(executor)) => draft.after(pace(round, news, executor)),
    }
}

/// When to look again at a run that goes on. Its end is not called out, and brokers that it empties wait for it: so it is
/// looked at more closely while it is young, and when little is left. The longer it has taken, the less a second matters.
fn pace(round: &Round<'_>, news: &News<'_>, executor: &ExecutorState) -> Duration {
    let ran = began(news).map(|began| round.seen.now.duration_since(began));
    // Where clocks disagree nobody knows, either.
    let Some(ran) = ran.and_then(|ran| Duration::try_from(ran).ok()) else { return FOLLOW };
    let left = match is_ours(round, executor) {
        true => progress::left(executor, ran),
        // The executor is done with it, and its task is just being ended; or it is not begun yet.
        false => matches!(news, News::Task(task) if task.status == TaskStatus::InExecution).then_some(Duration::ZERO),
    };
    let wished = left.map_or(FOLLOW, |left| left / 2).min(ran / 10);
    wished.clamp(CLOSELY.max(ran / 600).min(FOLLOW), FOLLOW)
}

fn done(round: &Round<'_>, task: &UserTask) -> Decision {
    let draft = Draft::go(round, RebalanceState::Ready, messages::READY).session(None);
    with_plan(round, draft, task).rest()
}

fn failed(round: &Round<'_>, task: &UserTask) -> Decision {
    let text = match (task.optimization_result(), &task.original_response) {
        (Some(_), _) => messages::FAILED_WHILE_MOVING.to_owned(),
        (None, Some(text)) if text == TaskStatus::CompletedWithError.name() => return refused(round, task),
        (None, Some(text)) => format!("{}: {}", messages::FAILED, messages::trimmed(text)),
        (None, None) => messages::FAILED.to_owned(),
    };
    // A reason of its own: whoever asked for it can tell this from a refusal, after which nothing was moved.
    with_plan(round, Draft::fail(round, Reason::ExecutionFailed, text), task).rest()
}

/// It was taken on, and refused later: nothing was moved. The task does not say why; its own request, with its id, does.
/// From there on it is as if it had been refused at once, but for the approval: that is used up.
fn refused(round: &Round<'_>, task: &UserTask) -> Decision {
    let fail = |text: String| Draft::fail(round, Reason::CruiseControlRestException, text).rest();
    let mute = || fail(messages::FAILED_WHILE_PLANNING.to_owned());
    let trouble = match &round.seen.heard.explanation {
        None => return explain(round, task).map_or_else(mute, Decision::ask),
        Some(Ok(_)) => return mute(),
        Some(Err(trouble)) => trouble,
    };
    match trouble.sort {
        Sort::Unreachable | Sort::Denied => in_trouble(stay(round), trouble),
        Sort::Garbled => mute(),
        // A template or a limit is another than it was, so that it is not the same request.
        _ if trouble.is_about_another_request(&task.user_task_id) => mute(),
        // Nothing new is begun for what is to go.
        sort if (sort.passes() || sort == Sort::Outdated) && !round.deleting => void(round, trouble).after(RETRY),
        sort => Draft::fail(round, sort.reason(), messages::nothing_moved(&trouble.text)).rest(),
    }
}

/// The request that made a task, word for word. None: it cannot be made any more.
fn explain(round: &Round<'_>, task: &UserTask) -> Option<Call> {
    let reason = tag::reason_in(&task.request_url)?.to_owned();
    let proposal_id = result::proposal_id(round.standing.status.optimization_result.as_ref());
    let request = request::execution(round.seen, reason, proposal_id).ok()?;
    Some(Call::Explain { request, task: Uuid::try_parse(&task.user_task_id).ok()? })
}

fn report(round: &Round<'_>, executor: Result<&ExecutorState, &Trouble>, news: &News<'_>) -> Option<Progress> {
    let executor = executor.ok().filter(|executor| is_ours(round, executor))?;
    let is_asked_of_brokers = round.seen.engine().is_some_and(|engine| engine.is_ours);
    Some(Progress::of(executor, began(news), is_asked_of_brokers, round.seen.now))
}

/// When its task came.
fn began(news: &News<'_>) -> Option<Timestamp> {
    match news {
        News::Task(task) => Timestamp::from_millisecond(task.start_ms).ok(),
        _ => None,
    }
}

fn is_ours(round: &Round<'_>, executor: &ExecutorState) -> bool {
    tag::runs(executor, round.seen.uid(), round.standing.session)
}

/// Asked again as if nothing were wrong: these are small questions, which make no work, and as soon as there are answers
/// again progress is to be no older than ever.
fn in_trouble(draft: Draft<'_>, trouble: &Trouble) -> Decision {
    draft.warn_trouble_on_the_way_out(trouble).after(FOLLOW)
}

/// A task that was found by its tag is followed by its id from now on.
fn with_session<'a>(draft: Draft<'a>, task: &UserTask) -> Draft<'a> {
    draft.session(Uuid::try_parse(&task.user_task_id).ok())
}

/// Somebody wants it to end. What was said about that stays said.
fn on_its_way_out<'a>(round: &'a Round<'a>) -> Draft<'a> {
    match said(round) {
        Some(text) if [messages::STOPPING, messages::STOPS_LATER].contains(&text) => stay(round).saying(text),
        _ => stay(round),
    }
}

fn said<'a>(round: &'a Round<'a>) -> Option<&'a str> {
    round.standing.condition().and_then(|it| it.message.as_deref())
}

fn stay<'a>(round: &'a Round<'a>) -> Draft<'a> {
    let mut draft = Draft::stay_and_mind_the_ask(round).saying(messages::REBALANCING);
    if let Some(cluster) = round.seen.runs_elsewhere() {
        let text = messages::relabelled(label(&round.seen.resource), cluster);
        draft = draft.warn(Reason::InvalidResourceException, text);
    }
    match round.seen.not_ready() {
        Some(blocked) => draft.warn_blocked(blocked),
        None => draft,
    }
}
