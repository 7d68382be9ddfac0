//! How a run is recognised as ours: by the `reason` that it was asked for with.
//!
//! The engine gives the reason back with the task and with the executor's state, so a run can be found
//! whose id was never written down. The text survives any URL encoding, and is short enough that the
//! original keeps all of it (50 characters).

use evenkeel_rest::body::UserTask;
use evenkeel_rest::body::state::{ExecutorState, Phase};
use evenkeel_rest::parameter::TaskStatus;
use evenkeel_rest::reason::words_of;
use jiff::Timestamp;
use uuid::Uuid;

/// What everything begins with that a resource asks for. Proposals carry just this.
pub fn of_resource(uid: &str) -> String {
    // 64 bits of a random id: nothing else in a cluster has them.
    let digits: String = uid.chars().filter(char::is_ascii_alphanumeric).take(16).collect();
    format!("evenkeel-{digits}")
}

/// What the execution of one proposal carries. A proposal is named by the task that made it, so each has a
/// tag of its own, and what was approved once cannot be taken for what was approved before.
pub fn of_execution(uid: &str, proposal: Uuid) -> String {
    format!("{}-{}", of_resource(uid), &proposal.simple().to_string()[..8])
}

/// The same where nobody named the task: then it is named by when it was ready.
pub(super) fn of_nameless_execution(uid: &str, ready: Option<Timestamp>) -> String {
    format!("{}-{:x}", of_resource(uid), ready.unwrap_or_default().as_microsecond())
}

/// The task that a request with this very reason made. If there are several, the latest that did not fail: whoever asks
/// again for what runs is refused.
pub(super) fn find<'a>(tasks: &'a [UserTask], reason: &str) -> Option<&'a UserTask> {
    let ours = tasks.iter().filter(|task| reason_in(&task.request_url) == Some(reason));
    ours.max_by_key(|task| (task.status != TaskStatus::CompletedWithError, task.start_ms))
}

/// The latest execution of this resource that is not over; if there is none, the latest that came not before this.
pub(super) fn find_run<'a>(tasks: &'a [UserTask], uid: &str, not_before: Timestamp) -> Option<&'a UserTask> {
    let ours = format!("{}-", of_resource(uid));
    let is_over = |task: &UserTask| !matches!(task.status, TaskStatus::Active | TaskStatus::InExecution);
    tasks
        .iter()
        .filter(|task| !is_over(task) || task.start_ms >= not_before.as_millisecond())
        .filter(|task| reason_in(&task.request_url).is_some_and(|reason| reason.starts_with(&ours)))
        .max_by_key(|task| (!is_over(task), task.start_ms))
}

/// Whether the executor is busy with a run of this resource.
pub(super) fn runs(executor: &ExecutorState, uid: &str, session: Option<Uuid>) -> bool {
    let Some(trigger) = executor.trigger.as_ref().filter(|_| executor.phase != Phase::Idle) else { return false };
    let by_id = session.is_some_and(|id| trigger.triggered_user_task_id == id.to_string());
    by_id || words_of(&trigger.triggered_task_reason).starts_with(&format!("{}-", of_resource(uid)))
}

/// The `reason` in a task's URL, in which nothing is escaped.
pub(super) fn reason_in(url: &str) -> Option<&str> {
    let (_, query) = url.split_once('?')?;
    query.split('&').find_map(|pair| pair.strip_prefix("reason="))
}

#[cfg(test)]
mod tests {
    use evenkeel_rest::body::state::Trigger;

    use super::*;

    const UID: &str = "0b7e4b4a-5f39-4a0e-9f7a-0c8f2f0f3a11";

    fn task(url: &str, status: TaskStatus, start_ms: i64) -> UserTask {
        UserTask {
            status,
            client_identity: "10.0.0.1".into(),
            request_url: format!("POST /kafkacruisecontrol/rebalance?{url}"),
            user_task_id: Uuid::from_u128(start_ms as u128).to_string(),
            start_ms,
            original_response: None,
        }
    }

    #[test]
    fn tags_fit_into_what_the_original_keeps_and_into_a_url() {
        let tag = of_execution(UID, Uuid::from_u128(u128::MAX));
        assert_eq!(tag, "evenkeel-0b7e4b4a5f394a0e-ffffffff");
        assert!(tag.len() <= 50 && tag.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'));
        assert_eq!(of_resource(UID), "evenkeel-0b7e4b4a5f394a0e");
        let nameless = |text: &str| of_nameless_execution(UID, Some(text.parse().unwrap()));
        let first = nameless("2026-01-01T00:00:00Z");
        assert!(first.len() <= 50 && first.starts_with("evenkeel-0b7e4b4a5f394a0e-"), "{first}");
        assert_ne!(first, nameless("2026-01-01T00:00:01Z"));
    }

    #[test]
    fn a_task_is_found_by_its_whole_reason() {
        let tasks = [
            task("dryrun=false&reason=evenkeel-0b7e4b4a5f394a0e-00000001&json=true", TaskStatus::Completed, 1),
            task("reason=evenkeel-0b7e4b4a5f394a0e", TaskStatus::Completed, 2),
            task("dryrun=false&reason=evenkeel-0b7e4b4a5f394a0e-00000001", TaskStatus::InExecution, 3),
            task("json=true", TaskStatus::Active, 4),
        ];
        let found = |reason: &str| find(&tasks, reason).map(|task| task.start_ms);
        assert_eq!(found("evenkeel-0b7e4b4a5f394a0e-00000001"), Some(3));
        assert_eq!(found("evenkeel-0b7e4b4a5f394a0e"), Some(2));
        assert_eq!(found("evenkeel-0b7e4b4a5f394a0e-0000000"), None);
        let again = task("dryrun=false&reason=evenkeel-0b7e4b4a5f394a0e-00000001", TaskStatus::CompletedWithError, 9);
        let repeated = [tasks[2].clone(), again];
        let latest = find(&repeated, "evenkeel-0b7e4b4a5f394a0e-00000001").map(|task| task.start_ms);
        assert_eq!(latest, Some(3), "what runs, not what was refused because it runs");
        let run = |tasks: &[UserTask], not_before| {
            find_run(tasks, UID, Timestamp::from_millisecond(not_before).unwrap()).map(|task| task.start_ms)
        };
        assert_eq!(run(&tasks, 4), Some(3), "what is not over");
        assert_eq!((run(&tasks[..2], 1), run(&tasks[..2], 2)), (Some(1), None), "what is over may be another");
    }

    #[test]
    fn the_executor_is_busy_with_ours_by_id_or_by_tag() {
        let trigger = |id: &str, reason: &str| Trigger {
            triggered_task_reason: format!("{reason} (Client: 10.0.0.1, Date: 2026-11-15T20:12:33Z)"),
            triggered_user_task_id: id.into(),
            ..Trigger::default()
        };
        let busy = |trigger| ExecutorState { phase: Phase::Starting, trigger: Some(trigger), ..Default::default() };
        let id = Uuid::from_u128(7);
        assert!(runs(&busy(trigger(&id.to_string(), "by hand")), UID, Some(id)));
        assert!(runs(&busy(trigger("other", "evenkeel-0b7e4b4a5f394a0e-12345678")), UID, None));
        assert!(!runs(&busy(trigger("other", "evenkeel-ffffffffffffffff-12345678")), UID, Some(id)));
        assert!(!runs(&ExecutorState::default(), UID, Some(id)));
        let idle = ExecutorState { phase: Phase::Idle, ..busy(trigger(&id.to_string(), "x")) };
        assert!(!runs(&idle, UID, Some(id)));
    }
}
