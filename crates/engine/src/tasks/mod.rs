//! User tasks: what was asked for, by whom, and what came of it.
//!
//! A request without a task id makes a task; the same request with the id, or from the same
//! session, asks about it. Answered tasks are kept for a while, by class, and those whose proposals
//! are being executed are kept as long as that takes. Pure: ids, sessions and times are handed in.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use evenkeel_rest::{
    Endpoint, Refusal, TaskClass,
    body::{Body as _, ErrorBody},
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

#[cfg(test)]
mod tests;

/// Milliseconds since 1970.
pub type Millis = i64;

/// What answers of tasks that are over may weigh together: one about a large cluster has some ten megabytes, and hundreds of
/// them may be kept by number.
const KEPT_BYTES: usize = 64 * 1024 * 1024;

/// What was asked, in a form in which the same question is equal.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Question {
    /// The method.
    pub method: String,
    /// The endpoint.
    pub endpoint: String,
    /// The parameters; their order means nothing.
    pub parameters: BTreeSet<(String, String)>,
}

impl Question {
    /// Whether whoever asks it reads the answer as JSON.
    fn wants_json(&self) -> bool {
        let is_json = |(name, value): &(String, String)| {
            name.eq_ignore_ascii_case("json") && value.trim().eq_ignore_ascii_case("true")
        };
        self.parameters.iter().any(is_json)
    }
}

/// How long answered tasks are kept depends on what they were about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Class {
    /// Looks at Kafka.
    KafkaMonitor,
    /// Looks at the engine.
    EngineMonitor,
    /// Changes Kafka.
    KafkaAdmin,
    /// Changes the engine.
    EngineAdmin,
}

impl From<TaskClass> for Class {
    fn from(class: TaskClass) -> Class {
        match class {
            TaskClass::KafkaMonitor => Class::KafkaMonitor,
            TaskClass::CruiseControlMonitor => Class::EngineMonitor,
            TaskClass::KafkaAdmin => Class::KafkaAdmin,
            TaskClass::CruiseControlAdmin => Class::EngineAdmin,
        }
    }
}

/// Where a task stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Status {
    /// No answer yet.
    Active,
    /// Answered, and what it proposed is being carried out.
    InExecution(Answer),
    /// Answered, and over.
    Completed(Answer),
    /// Answered with an error, or what it proposed did not come to its good end.
    CompletedWithError(Answer),
}

impl Status {
    /// What was answered, if it was.
    pub fn answer(&self) -> Option<&Answer> {
        match self {
            Status::Active => None,
            Status::InExecution(answer) | Status::Completed(answer) | Status::CompletedWithError(answer) => {
                Some(answer)
            }
        }
    }
}

/// What was answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// The HTTP status.
    pub code: u16,
    /// The body, whole.
    pub body: String,
}

/// One task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserTask {
    /// What was asked.
    pub question: Question,
    /// The question as it was written, decoded, for people.
    pub written: String,
    /// Who asked.
    pub client: String,
    /// What kind of thing was asked.
    pub class: Class,
    /// When.
    pub started: Millis,
    /// Where it stands.
    pub status: Status,
    /// When it was over, if it is; engines before this one did not note it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Millis>,
}

impl UserTask {
    /// As it is once what it proposed is over.
    #[must_use]
    pub fn executed(&self, well: bool, now: Millis) -> UserTask {
        let status = match self.status.clone() {
            Status::InExecution(answer) if well => Status::Completed(answer),
            Status::InExecution(answer) => Status::CompletedWithError(answer),
            _ => return self.clone(),
        };
        UserTask { status, ended: Some(now), ..self.clone() }
    }

    /// Since when it is over, if it is. What ran for hours is as new as what was answered when it ended.
    fn over_since(&self) -> Option<Millis> {
        match self.status {
            Status::Completed(_) | Status::CompletedWithError(_) => Some(self.ended.unwrap_or(self.started)),
            Status::Active | Status::InExecution(_) => None,
        }
    }

    /// Whether it is one of those of which only so many may be worked on. Looking at the engine and
    /// stopping it is always possible, however much it has to do.
    fn weighs(&self) -> bool {
        Endpoint::named(&self.question.endpoint)
            .is_none_or(|endpoint| endpoint.facts().is_async && endpoint != Endpoint::State)
    }
}

/// What bounds the tasks that are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Tasks without an answer at once.
    pub active: usize,
    /// For how long a session stands for its question.
    pub session: Millis,
    /// For how long, from their end, and how many answered ones of each class are kept: those that ended last.
    pub kept: BTreeMap<Class, (Millis, usize)>,
}

/// What a request turns out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// A new task, to be worked on.
    New,
    /// One that is known.
    Known(Uuid),
}

/// Why a request is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The id is not known, or was given to another question.
    #[error("Unexpected header {0} (value: User-Task-ID) in the request.")]
    UnexpectedId(Uuid),
    /// Too many wait for an answer.
    #[error("There are already {0} active user tasks, which has reached the servlet capacity.")]
    TooMany(usize),
}

/// All tasks that are remembered.
#[derive(Debug, Clone)]
pub struct UserTasks {
    limits: Limits,
    /// Shared with whoever looks at them: answers may be long.
    tasks: BTreeMap<Uuid, Arc<UserTask>>,
    /// Questions of sessions whose answer has not been taken yet, and when they were last asked.
    sessions: BTreeMap<(String, Question), (Uuid, Millis)>,
    /// What was over before its answer was noted here, whether it ended well, and when.
    over_early: BTreeMap<Uuid, (bool, Millis)>,
}

impl UserTasks {
    /// None yet.
    pub fn new(limits: Limits) -> UserTasks {
        UserTasks { limits, tasks: BTreeMap::new(), sessions: BTreeMap::new(), over_early: BTreeMap::new() }
    }

    /// Takes back what a life before this one has left on record. What was never answered is lost
    /// with the process that worked on it, and says so.
    pub fn restore(&mut self, id: Uuid, mut task: UserTask) {
        if task.status == Status::Active {
            let said = "The engine was restarted before it had an answer. Ask again.".to_owned();
            let refusal = Refusal { status: 503, message: said.clone() };
            let body = if task.question.wants_json() { ErrorBody::from(&refusal).json() } else { said };
            task.status = Status::CompletedWithError(Answer { code: 503, body });
        }
        self.tasks.insert(id, Arc::new(task));
    }

    /// Finds or makes the task of a request. `fresh` is the id that a new one gets.
    pub fn admit(
        &mut self,
        task: UserTask,
        asked_id: Option<Uuid>,
        session: &str,
        fresh: Uuid,
    ) -> Result<Admission, Refused> {
        let now = task.started;
        if let Some(id) = asked_id {
            return match self.tasks.get(&id) {
                Some(known) if known.question == task.question => Ok(Admission::Known(id)),
                _ => Err(Refused::UnexpectedId(id)),
            };
        }
        let key = (session.to_owned(), task.question.clone());
        let in_time = |last: Millis| now - last <= self.limits.session;
        if let Some((id, last)) = self.sessions.get_mut(&key).filter(|(_, last)| in_time(*last))
            && self.tasks.contains_key(id)
        {
            *last = now;
            return Ok(Admission::Known(*id));
        }
        let active = self.active();
        if active >= self.limits.active && task.weighs() {
            return Err(Refused::TooMany(active));
        }
        self.sessions.insert(key, (fresh, now));
        self.tasks.insert(fresh, Arc::new(task));
        Ok(Admission::New)
    }

    /// How many are worked on, of those that are counted.
    pub fn active(&self) -> usize {
        self.tasks.values().filter(|known| known.status == Status::Active && known.weighs()).count()
    }

    /// How many sessions wait for an answer.
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// The answer has been taken: from now on the same question of the same session is a new one.
    pub fn taken(&mut self, session: &str, question: &Question) {
        self.sessions.remove(&(session.to_owned(), question.clone()));
    }

    /// The answer is there; `executes` says whether what it proposes is now being carried out.
    pub fn answered(&mut self, id: Uuid, answer: Answer, executes: bool, now: Millis) {
        let Some(task) = self.tasks.get_mut(&id) else { return };
        let (status, ended) = match answer.code {
            200..=299 if executes => (Status::InExecution(answer), None),
            200..=299 => (Status::Completed(answer), Some(now)),
            _ => (Status::CompletedWithError(answer), Some(now)),
        };
        *task = Arc::new(UserTask { status, ended, ..(**task).clone() });
        if let Some((well, at)) = self.over_early.remove(&id) {
            self.executed(id, well, at);
        }
    }

    /// What it proposed is over.
    pub fn executed(&mut self, id: Uuid, well: bool, now: Millis) {
        let Some(task) = self.tasks.get_mut(&id) else { return };
        if task.status == Status::Active {
            self.over_early.insert(id, (well, now));
        } else {
            *task = Arc::new(task.executed(well, now));
        }
    }

    /// One of them, as it is now.
    pub fn get(&self, id: Uuid) -> Option<Arc<UserTask>> {
        self.tasks.get(&id).cloned()
    }

    /// All of them as they are now, the latest first. Costs little, however long their answers are.
    pub fn latest_first(&self) -> Vec<(Uuid, Arc<UserTask>)> {
        let mut tasks: Vec<(Uuid, Arc<UserTask>)> =
            self.tasks.iter().map(|(id, task)| (*id, Arc::clone(task))).collect();
        tasks.sort_by_key(|(id, task)| (std::cmp::Reverse(task.started), *id));
        tasks
    }

    /// Tasks that are over and for whose answers there is no room; the latest answer always has some.
    fn too_heavy(&self) -> Vec<Uuid> {
        let mut weight = 0;
        let mut over: Vec<(Millis, Uuid, usize)> = self
            .tasks
            .iter()
            .filter_map(|(id, task)| Some((task.over_since()?, *id, task.status.answer()?.body.len())))
            .collect();
        over.sort_unstable_by_key(|(since, id, _)| std::cmp::Reverse((*since, *id)));
        let heavy = over.into_iter().skip_while(|(_, _, bytes)| {
            let fits = weight == 0 || weight + bytes <= KEPT_BYTES;
            weight += bytes;
            fits
        });
        heavy.map(|(_, id, _)| id).collect()
    }

    /// Forgets what has been kept long enough; says what, for whoever keeps a record of it.
    pub fn forget(&mut self, now: Millis) -> Vec<(Uuid, Arc<UserTask>)> {
        let mut gone = Vec::new();
        for (class, (retention, most)) in &self.limits.kept {
            let of_class = self.tasks.iter().filter(|(_, task)| task.class == *class);
            let mut kept: Vec<(Millis, Uuid)> =
                of_class.filter_map(|(id, task)| Some((task.over_since()?, *id))).collect();
            kept.sort_unstable();
            let too_many = kept.len().saturating_sub(*most);
            gone.extend(
                kept.iter()
                    .enumerate()
                    .filter(|(rank, (since, _))| *rank < too_many || now - since > *retention)
                    .map(|(_, (_, id))| *id),
            );
        }
        let mut gone: Vec<(Uuid, Arc<UserTask>)> =
            gone.into_iter().filter_map(|id| Some((id, self.tasks.remove(&id)?))).collect();
        let too_heavy = self.too_heavy();
        gone.extend(too_heavy.into_iter().filter_map(|id| Some((id, self.tasks.remove(&id)?))));
        let (tasks, session) = (&self.tasks, self.limits.session);
        self.sessions.retain(|_, (id, last)| now - *last <= session && tasks.contains_key(id));
        gone
    }
}
