//! A proposal waits for approval; once it is approved, for its turn.
//!
//! Data moves only from here. The finalizer goes on before the execution is submitted, and comes off when it
//! was refused. Found here without knowing, it says *perhaps submitted*: then the engine is searched for the
//! run before anything else.

use evenkeel_api::annotations::{self, Ask};
use evenkeel_api::rebalance::RebalanceState;
use evenkeel_api::{Condition, Reason};
use evenkeel_rest::body::state::{ExecutorState, Phase};
use evenkeel_rest::body::{OptimizationResult, UserTask};
use evenkeel_rest::parameter::TaskStatus;
use uuid::Uuid;

use super::super::decision::Decision;
use super::super::draft::Draft;
use super::super::hear::{Call, Plan, Said, Sort, Trouble};
use super::super::{finalizer, load, messages, queue, request, result, tag};
use super::begin::begin;
use super::resting::stop_for_deletion;
use super::{CLOSELY, FOLLOW, RETRY, Round, SETTLES};

pub(super) fn proposal_ready(round: &Round<'_>) -> Decision {
    if let Some(said) = &round.seen.heard.submission {
        return submitted(round, said);
    }
    if finalizer::is_on(&round.seen.resource)
        && let Some(decision) = search(round)
    {
        return decision;
    }
    // From here on it is as certain as can be that nothing was submitted. What an engine finds in its mail after it was
    // asked is met again where the executor is looked at before a submission.
    if round.deleting {
        return match round.generated {
            true => stop_for_deletion(round),
            false => stay(round).rest(),
        };
    }
    if round.seen.runs_elsewhere().is_some() {
        // It was searched for where it may have been submitted. From here on the label counts.
        return stay(round).again();
    }
    if round.edited || round.ask == Some(Ask::Refresh) {
        return begin(round);
    }
    if round.ask == Some(Ask::Stop) && round.auto_approved {
        // It would go on by itself, so there is something to stop.
        return Draft::go(round, RebalanceState::Stopped, messages::STOPPED).forget().rest();
    }
    let loads = match missing_loads(round) {
        Ok(loads) => loads,
        Err(call) => return Decision::ask(*call),
    };
    let draft = match approval(round) {
        Approval::Given => return execute(round, loads.as_ref()),
        Approval::Missing => stay(round),
        Approval::Withheld(reason, message) => stay(round).warn(reason, message),
    };
    with_loads(draft, loads.as_ref()).rest()
}

/// What the ConfigMap lacks of the proposal, because it was removed or could not be written, is with the engine for a while.
fn missing_loads(round: &Round<'_>) -> Result<Option<OptimizationResult>, Box<Call>> {
    let Some(task) = round.standing.session else { return Ok(None) };
    if !round.lacks_loads() || round.seen.cannot_ask().is_some() {
        return Ok(None);
    }
    match &round.seen.heard.task {
        None => Err(Box::new(Call::Follow { task, in_full: true })),
        Some(Err(_)) => Ok(None),
        Some(Ok(tasks)) => {
            let found = tasks.iter().find(|found| found.user_task_id == task.to_string());
            Ok(found.and_then(UserTask::optimization_result).filter(|plan| load::json(plan).is_some()))
        }
    }
}

fn with_loads<'a>(draft: Draft<'a>, plan: Option<&OptimizationResult>) -> Draft<'a> {
    match plan {
        Some(plan) => draft.loads(plan),
        None => draft,
    }
}

enum Approval {
    Given,
    Missing,
    /// It was given for all proposals, but not for this one.
    Withheld(Reason, String),
}

fn approval(round: &Round<'_>) -> Approval {
    if round.ask == Some(Ask::Approve) {
        return Approval::Given;
    }
    if !round.auto_approved {
        return Approval::Missing;
    }
    let cap = round.seen.resource.metadata.annotations.as_ref().map_or(Ok(None), annotations::max_data_mb);
    let moved = result::megabytes(round.standing.status.optimization_result.as_ref());
    match cap {
        Ok(Some(cap)) if moved > cap => Approval::Withheld(Reason::AutoRebalanceHeld, messages::above_cap(moved, cap)),
        Ok(_) => Approval::Given,
        // A limit that nobody can read is not taken for none.
        Err(invalid) => Approval::Withheld(Reason::InvalidAnnotation, invalid.to_string()),
    }
}

/// Approved: submit it, as soon as nothing else runs. `loads`: what the ConfigMap lacks, and gets before.
fn execute(round: &Round<'_>, loads: Option<&OptimizationResult>) -> Decision {
    let seen = round.seen;
    if let Some(blocked) = seen.cannot_start() {
        // What only this one lacks is no reason to hold up those behind it: it gives up its place.
        let draft = match seen.template.blocked() {
            Some(_) => stay(round),
            None => stay_in_line(round),
        };
        return with_loads(draft, loads).warn_blocked(blocked).back_off();
    }
    if let Some(message) = queue::wait(seen, &round.standing) {
        return with_loads(wait(round, message), loads).after(FOLLOW);
    }
    let reason = tag_of(round);
    let proposal_id = result::proposal_id(round.standing.status.optimization_result.as_ref());
    let request = match request::execution(seen, reason, proposal_id) {
        Ok(request) => request,
        Err(why) => {
            // The approval goes first. It is begun anew by itself as soon as its template is mended, and then nobody has
            // seen what would be carried out.
            return Draft::fail(round, Reason::IllegalArgumentException, why)
                .current_spec()
                .forget_if(Ask::Approve)
                .rest();
        }
    };
    match &seen.heard.executor {
        None => Decision::ask(Call::LookAtExecutor),
        Some(Err(trouble)) => with_loads(stay_in_line(round), loads).warn_trouble(trouble).back_off(),
        // It arrived after all.
        Some(Ok(executor)) if tag::runs(executor, seen.uid(), None) => running(round, None).again(),
        Some(Ok(executor)) if executor.phase != Phase::Idle => {
            with_loads(wait(round, messages::waiting_for_executor(&what(executor))), loads).after(FOLLOW)
        }
        Some(Ok(_)) => with_loads(stay_in_line(round), loads).submitting().call(Call::Submit(request)),
    }
}

/// What this execution is recognised by.
fn tag_of(round: &Round<'_>) -> String {
    let (uid, standing) = (round.seen.uid(), &round.standing);
    let ready = || standing.condition().and_then(Condition::since);
    standing.session.map_or_else(|| tag::of_nameless_execution(uid, ready()), |id| tag::of_execution(uid, id))
}

fn wait<'a>(round: &'a Round<'a>, message: String) -> Draft<'a> {
    stay(round).warn(Reason::WaitingForOtherRebalance, message)
}

/// What the engine made of the submission.
fn submitted(round: &Round<'_>, said: &Said<Plan>) -> Decision {
    let trouble = match said {
        Ok(Plan { task, result }) => {
            let draft = running(round, *task);
            return match result {
                Some(result) => draft.plan(result).after(CLOSELY),
                None => draft.after(CLOSELY),
            };
        }
        Err(trouble) => trouble,
    };
    match trouble.sort {
        // It may have arrived: the finalizer stays, and the next round searches.
        sort if sort.is_unclear() => stay_in_line(round).submitting().warn_trouble(trouble).back_off(),
        // Perhaps with this very run, which was submitted before and has arrived since: the next round searches.
        Sort::Busy => wait(round, messages::waiting_for_executor(&trouble.text)).submitting().after(FOLLOW),
        Sort::TasksExhausted | Sort::NotYet | Sort::Denied => stay_in_line(round).warn_trouble(trouble).back_off(),
        // An engine that finds every proposal outdated is not driven round and round.
        Sort::Outdated if round.standing.warning(Reason::ProposalOutdated).is_some() => {
            void(round, trouble).after(RETRY)
        }
        Sort::Outdated => void(round, trouble).after(SETTLES),
        Sort::NotEnoughData => {
            let text = messages::not_enough_data(&trouble.text, round.seen.first_window());
            void(round, trouble).warn(Reason::NotEnoughData, text).after(RETRY)
        }
        sort => Draft::fail(round, sort.reason(), messages::nothing_moved(&trouble.text)).forget_vain_approval().rest(),
    }
}

/// The approved proposal cannot be had any more, so there has to be a new one, and a new approval.
pub(super) fn void<'a>(round: &'a Round<'a>, trouble: &Trouble) -> Draft<'a> {
    Draft::go(round, RebalanceState::PendingProposal, messages::PENDING)
        .session(None)
        .without_result()
        .without_loads()
        .forget_vain_approval()
        .warn(Reason::ProposalOutdated, messages::outdated(&trouble.text))
}

/// Perhaps submitted: looks for the run. None: it was never submitted.
fn search(round: &Round<'_>) -> Option<Decision> {
    let seen = round.seen;
    let Some(tasks) = &seen.heard.tasks else {
        return Some(match seen.cannot_ask() {
            Some(blocked) => stay_in_line(round).submitting().warn_blocked_on_the_way_out(blocked).back_off(),
            None => Decision::ask(Call::ListTasks),
        });
    };
    let tasks = match tasks {
        Ok(tasks) => tasks,
        Err(trouble) => return Some(stay_in_line(round).submitting().warn_trouble_on_the_way_out(trouble).back_off()),
    };
    let reason = tag_of(round);
    let task = tag::find(tasks, &reason);
    if let Some(decision) = task.and_then(|task| found(round, task)) {
        return Some(decision);
    }
    // Its task is forgotten, or came after the list was made; it may run all the same.
    match &seen.heard.executor {
        None => Some(Decision::ask(Call::LookAtExecutor)),
        Some(Err(trouble)) => Some(stay_in_line(round).submitting().warn_trouble_on_the_way_out(trouble).back_off()),
        Some(Ok(executor)) if tag::runs(executor, seen.uid(), None) => Some(running(round, None).again()),
        Some(Ok(_)) if task.is_some() || would_be_known(round, tasks) => None,
        Some(Ok(_)) => Some(
            Draft::fail(round, Reason::ExecutionOutcomeUnknown, messages::PERHAPS_SUBMITTED)
                .forget_if(Ask::Approve)
                .rest(),
        ),
    }
}

/// A task with the tag of this execution. One that failed before it moved anything was a refusal.
fn found(round: &Round<'_>, task: &UserTask) -> Option<Decision> {
    let id = Uuid::try_parse(&task.user_task_id).ok();
    if task.status != TaskStatus::CompletedWithError {
        return Some(running(round, id).again());
    }
    let Some(id) = id else { return Some(running(round, None).again()) };
    match &round.seen.heard.task {
        None => Some(Decision::ask(Call::Follow { task: id, in_full: true })),
        Some(Err(trouble)) => Some(stay_in_line(round).submitting().warn_trouble_on_the_way_out(trouble).back_off()),
        Some(Ok(tasks)) => {
            let found = tasks.iter().find(|task| task.user_task_id == id.to_string());
            let refused = found.is_some_and(|task| task.optimization_result().is_none());
            (!refused).then(|| running(round, Some(id)).again())
        }
    }
}

/// Whether an engine that does not know the execution would know it if it had been submitted: it remembers
/// what came before it, or it is one that never forgets an execution.
fn would_be_known(round: &Round<'_>, tasks: &[UserTask]) -> bool {
    let has_id = result::proposal_id(round.standing.status.optimization_result.as_ref()).is_some();
    let session = round.standing.session.map(|id| id.to_string());
    has_id
        || tasks.iter().any(|task| Some(&task.user_task_id) == session.as_ref())
        || tag::find(tasks, &tag::of_resource(round.seen.uid())).is_some()
}

fn running<'a>(round: &'a Round<'a>, task: Option<Uuid>) -> Draft<'a> {
    let draft =
        Draft::go(round, RebalanceState::Rebalancing, messages::REBALANCING).session(task).forget_if(Ask::Approve);
    match result::proposal_id(round.standing.status.optimization_result.as_ref()) {
        Some(_) => draft,
        // Such an engine plans anew, and what it carries out is not what was shown: it is shown once it says what.
        None => draft.without_result().without_loads(),
    }
}

fn stay<'a>(round: &'a Round<'a>) -> Draft<'a> {
    Draft::stay_and_mind_the_ask(round).keep_warning(Reason::ProposalOutdated)
}

/// With the place in the queue that it has: it is no fault of its own that it does not move on.
fn stay_in_line<'a>(round: &'a Round<'a>) -> Draft<'a> {
    stay(round).keep_warning(Reason::WaitingForOtherRebalance)
}

fn what(executor: &ExecutorState) -> String {
    let reason = executor.trigger.as_ref().map(|trigger| trigger.triggered_task_reason.as_str()).unwrap_or_default();
    format!("{} {reason}", executor.phase.name()).trim_end().to_owned()
}
