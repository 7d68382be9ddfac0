//! Where requests are worked on, as far as the door knows: whoever sits there gets a request that is
//! well formed and allowed, says how far it is, and hands an answer back.

use std::{
    future::Future,
    sync::{Arc, Mutex, PoisonError},
};

use evenkeel_kafka::Error;
use evenkeel_rest::{
    Failure, Presentation, Request,
    body::{OperationProgress, Progress, Step, StepProgress},
    json::Version,
};
use tokio::time::Instant;
use uuid::Uuid;

use crate::{
    metrics::Page,
    tasks::{Answer, Status, UserTask},
};

/// Whoever works on requests. `user_tasks` and `permissions` are the door's own and never reach it.
pub trait Desk: Send + Sync + 'static {
    /// Works a request out.
    fn answer(&self, asked: Asked, steps: Steps) -> impl Future<Output = Result<Answered, Failure>> + Send;

    /// Puts a user task on record, so that a next life knows it.
    fn record(&self, id: Uuid, task: &UserTask) -> impl Future<Output = Result<(), Error>> + Send;

    /// Takes user tasks off the record.
    fn forget(&self, tasks: &[(Uuid, Arc<UserTask>)]) -> impl Future<Output = Result<(), Error>> + Send;

    /// Adds figures to the page of metrics.
    fn measure(&self, page: &mut Page);
}

/// A request as it reaches the desk.
#[derive(Debug, Clone)]
pub struct Asked {
    /// What is asked.
    pub request: Request,
    /// How the answer shall look.
    pub presentation: Presentation,
    /// The user task's name.
    pub id: Uuid,
    /// Why, from where and when, as it is shown.
    pub reason: String,
    /// The user task, without an answer.
    pub task: UserTask,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    /// The body, as it is sent.
    pub body: String,
    /// Whether what it proposes is being carried out now.
    pub executes: bool,
}

impl Asked {
    /// An answer in the form that was asked for.
    pub fn answered(&self, json: impl FnOnce() -> String, text: impl FnOnce() -> String) -> Answered {
        Answered { body: if self.presentation.json { json() } else { text() }, executes: false }
    }

    /// The user task as it goes on record together with the run that it begins.
    pub fn in_execution(&self, answered: &Answered) -> UserTask {
        let answer = Answer { code: 200, body: answered.body.clone() };
        UserTask { status: Status::InExecution(answer), ..self.task.clone() }
    }
}

/// How far a request is. Clones are the same.
#[derive(Debug, Clone, Default)]
pub struct Steps {
    taken: Arc<Mutex<Vec<Taken>>>,
}

#[derive(Debug)]
struct Taken {
    step: Step,
    began: Instant,
    ended: Option<Instant>,
    percent: f64,
}

impl Steps {
    /// The next step begins, and with it the former ends.
    pub fn begin(&self, step: Step) {
        let (now, mut taken) = (Instant::now(), self.taken.lock().unwrap_or_else(PoisonError::into_inner));
        if let Some(last) = taken.last_mut() {
            (last.ended, last.percent) = (Some(now), 100.0);
        }
        taken.push(Taken { step, began: now, ended: None, percent: 0.0 });
    }

    /// The body of a 202.
    pub fn body(&self, operation: String) -> Progress {
        let now = Instant::now();
        let shown = |taken: &Taken| -> StepProgress {
            let spent = taken.ended.unwrap_or(now) - taken.began;
            taken.step.progress(i64::try_from(spent.as_millis()).unwrap_or(i64::MAX), taken.percent)
        };
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let operation_progress = taken.iter().map(shown).collect();
        Progress { progress: vec![OperationProgress { operation_progress, operation }], version: Version }
    }
}
