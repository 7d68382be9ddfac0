//! `user_tasks`: who asked for what.

use std::collections::BTreeSet;

use evenkeel_rest::{
    Endpoint,
    body::{UserTask as TaskBody, UserTasks as TasksBody},
    json::Version,
    parameter::TaskStatus,
    request,
};
use uuid::Uuid;

use crate::tasks::{Answer, Status, UserTask};

/// The answer, from tasks with the latest first.
pub fn user_tasks<'t>(asked: &request::UserTasks, tasks: impl IntoIterator<Item = (Uuid, &'t UserTask)>) -> TasksBody {
    let endpoints: BTreeSet<&str> = asked.endpoints.iter().map(|endpoint: &Endpoint| endpoint.name()).collect();
    let wanted = |id: Uuid, task: &UserTask| {
        (asked.user_task_ids.is_empty() || asked.user_task_ids.contains(&id))
            && (asked.client_ids.is_empty() || asked.client_ids.contains(&task.client))
            && (endpoints.is_empty() || endpoints.contains(task.question.endpoint.as_str()))
            && (asked.types.is_empty() || asked.types.contains(&status(&task.status)))
    };
    let shown = tasks
        .into_iter()
        .filter(|(id, task)| wanted(*id, task))
        .take(usize::try_from(asked.entries).unwrap_or(usize::MAX))
        .map(|(id, task)| TaskBody {
            status: status(&task.status),
            client_identity: task.client.clone(),
            request_url: task.written.clone(),
            user_task_id: id.to_string(),
            start_ms: task.started,
            original_response: if asked.fetch_completed_task { response(&task.status) } else { None },
        });
    TasksBody { user_tasks: shown.collect(), version: Version }
}

fn status(status: &Status) -> TaskStatus {
    match status {
        Status::Active => TaskStatus::Active,
        Status::InExecution(_) => TaskStatus::InExecution,
        Status::Completed(_) => TaskStatus::Completed,
        Status::CompletedWithError(_) => TaskStatus::CompletedWithError,
    }
}

/// What was answered. Of a task that failed before it had a plan, the name of its status: that is what
/// the original has there, and clients tell the two apart by it.
fn response(status: &Status) -> Option<String> {
    match status {
        Status::Active => None,
        Status::CompletedWithError(Answer { code, .. }) if !(200..300).contains(code) => {
            Some(TaskStatus::CompletedWithError.name().to_owned())
        }
        Status::InExecution(answer) | Status::Completed(answer) | Status::CompletedWithError(answer) => {
            Some(answer.body.clone())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks::{Class, Question};

    fn tasks() -> Vec<(Uuid, UserTask)> {
        let answer = |code| Answer { code, body: format!("body {code}") };
        let all = [
            ("rebalance", "10.0.0.1", Status::Active),
            ("rebalance", "10.0.0.2", Status::InExecution(answer(200))),
            ("load", "10.0.0.1", Status::Completed(answer(200))),
            ("add_broker", "10.0.0.1", Status::CompletedWithError(answer(500))),
            ("remove_broker", "10.0.0.1", Status::CompletedWithError(answer(200))),
        ];
        let task = |(number, (endpoint, client, status)): (usize, (&str, &str, Status))| {
            let task = UserTask {
                question: Question { method: "POST".into(), endpoint: endpoint.into(), parameters: BTreeSet::new() },
                written: format!("POST /kafkacruisecontrol/{endpoint}"),
                client: client.into(),
                class: Class::KafkaAdmin,
                started: 100 - number as i64,
                status,
                ended: None,
            };
            (Uuid::from_u128(number as u128), task)
        };
        all.into_iter().enumerate().map(task).collect()
    }

    fn numbers(asked: &request::UserTasks) -> Vec<u128> {
        let tasks = tasks();
        let body = user_tasks(asked, tasks.iter().map(|(id, task)| (*id, task)));
        body.user_tasks.iter().map(|task| Uuid::parse_str(&task.user_task_id).unwrap().as_u128()).collect()
    }

    #[test]
    fn every_filter_narrows() {
        let all = request::UserTasks::default;
        assert_eq!(numbers(&all()), [0, 1, 2, 3, 4]);
        assert_eq!(numbers(&request::UserTasks { entries: 2, ..all() }), [0, 1]);
        assert_eq!(numbers(&request::UserTasks { client_ids: vec!["10.0.0.2".into()], ..all() }), [1]);
        assert_eq!(numbers(&request::UserTasks { endpoints: [Endpoint::Load].into(), ..all() }), [2]);
        assert_eq!(numbers(&request::UserTasks { types: [TaskStatus::CompletedWithError].into(), ..all() }), [3, 4]);
        let by_id = request::UserTasks { user_task_ids: [Uuid::from_u128(3)].into(), ..all() };
        assert_eq!(numbers(&by_id), [3]);
        assert_eq!(numbers(&request::UserTasks { client_ids: vec!["10.0.0.2".into()], ..by_id }), [0_u128; 0]);
    }

    #[test]
    fn answers_come_if_asked_for() {
        let tasks = tasks();
        let asked = request::UserTasks { fetch_completed_task: true, ..Default::default() };
        let body = user_tasks(&asked, tasks.iter().map(|(id, task)| (*id, task)));
        let responses: Vec<Option<&str>> = body.user_tasks.iter().map(|it| it.original_response.as_deref()).collect();
        let wanted = [None, Some("body 200"), Some("body 200"), Some("CompletedWithError"), Some("body 200")];
        assert_eq!(responses, wanted);
        let plain = user_tasks(&request::UserTasks::default(), tasks.iter().map(|(id, task)| (*id, task)));
        assert!(plain.user_tasks.iter().all(|task| task.original_response.is_none()));
    }
}
