//! What is asked of the engine, and what was heard from it.
//!
//! Each answer is reduced to what decisions depend on: here it is, or why not. The one distinction that
//! matters everywhere is whether a request was *refused* (nothing has begun) or nobody knows
//! ([`Sort::is_unclear`]).

use std::error::Error;

use evenkeel_api::Reason;
use evenkeel_rest::body::state::ExecutorState;
use evenkeel_rest::body::{Message, OptimizationResult, State, UserTask, UserTasks};
use evenkeel_rest::client::{self, Answer, Reply};
use uuid::Uuid;

use super::messages;
use super::request::Planning;

/// One call to the engine.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, reason = "one call at a time, and boxed where it is kept")]
pub enum Call {
    /// Ask for a proposal: nothing moves. The reply goes to [`Heard::proposed`].
    Propose(Planning),
    /// Ask again for the answer of a request that failed: the same one with the task's id, which begins
    /// nothing. The reply goes to [`Heard::explained`].
    Explain {
        /// The request that made the task.
        request: Planning,
        /// The task.
        task: Uuid,
    },
    /// Carry the proposal out. The reply goes to [`Heard::submitted`].
    Submit(Planning),
    /// Ask how a task stands. The reply goes to [`Heard::followed`].
    Follow {
        /// The task.
        task: Uuid,
        /// Also what was answered to it, which may be large.
        in_full: bool,
    },
    /// Ask for all tasks, without what was answered to them. The reply goes to [`Heard::listed`].
    ListTasks,
    /// Ask what the executor does. The reply goes to [`Heard::looked`].
    LookAtExecutor,
    /// Stop what is being carried out. The reply goes to [`Heard::stopped`].
    Stop,
}

/// What the engine said in this round.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Heard {
    pub(super) proposal: Option<Said<Plan>>,
    pub(super) explanation: Option<Said<Plan>>,
    pub(super) submission: Option<Said<Plan>>,
    pub(super) task: Option<Said<Vec<UserTask>>>,
    /// Whether the task was asked for with what was answered to it.
    pub(super) in_full: bool,
    pub(super) tasks: Option<Said<Vec<UserTask>>>,
    pub(super) executor: Option<Said<ExecutorState>>,
    pub(super) stop: Option<Said<()>>,
}

/// An answer, or why there is none.
pub type Said<T> = Result<T, Trouble>;

/// A plan, or the task that makes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The task, if the engine named it.
    pub task: Option<Uuid>,
    /// The plan. None: it is being computed.
    pub result: Option<OptimizationResult>,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// What follows from it.
    pub sort: Sort,
    /// For people.
    pub text: String,
}

/// What follows from trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sort {
    /// Refused until more is measured.
    NotEnoughData,
    /// Refused until another run is over.
    Busy,
    /// Refused until other tasks are over.
    TasksExhausted,
    /// Refused until the engine has come up, or reaches Kafka again.
    NotYet,
    /// Refused: the approved proposal no longer fits.
    Outdated,
    /// Refused for good.
    Refused,
    /// Refused: brokers that it names are not there, or are down.
    NoSuchBroker,
    /// Refused: the credentials are wrong.
    Denied,
    /// No answer. The request may have arrived.
    Unreachable,
    /// An answer that nobody understands. The request may have been carried out.
    Garbled,
}

impl Sort {
    /// Whether the request may have been carried out all the same.
    pub fn is_unclear(self) -> bool {
        matches!(self, Self::Unreachable | Self::Garbled)
    }

    /// Whether asking again later may help without anybody doing anything here.
    pub(super) fn passes(self) -> bool {
        !matches!(self, Self::Refused | Self::NoSuchBroker | Self::Garbled | Self::Outdated)
    }

    /// What a KafkaRebalance that fails of it gives as its reason: for programs, which are not to read the text.
    pub(super) fn reason(self) -> Reason {
        match self {
            Self::NoSuchBroker => Reason::NoSuchBroker,
            _ => Reason::CruiseControlRestException,
        }
    }
}

impl Trouble {
    /// Whether the engine was asked about a task by another request than the one that made it: a template or a limit is not
    /// what it was, or the task is forgotten. Then the answer says nothing about the task.
    pub(super) fn is_about_another_request(&self, task: &str) -> bool {
        self.text.contains(&format!("Unexpected header {task}"))
    }
}

impl Heard {
    /// Takes in the reply to [`Call::Propose`].
    pub fn proposed(&mut self, reply: Reply<OptimizationResult>) {
        self.proposal = Some(plan(reply));
    }

    /// Takes in the reply to [`Call::Explain`].
    pub fn explained(&mut self, reply: Reply<OptimizationResult>) {
        self.explanation = Some(plan(reply));
    }

    /// Takes in the reply to [`Call::Submit`].
    pub fn submitted(&mut self, reply: Reply<OptimizationResult>) {
        self.submission = Some(plan(reply));
    }

    /// Takes in the reply to [`Call::Follow`].
    pub fn followed(&mut self, in_full: bool, reply: Reply<UserTasks>) {
        self.task = Some(said(reply.answer).map(|body| body.user_tasks));
        self.in_full = in_full;
    }

    /// Takes in the reply to [`Call::ListTasks`].
    pub fn listed(&mut self, reply: Reply<UserTasks>) {
        self.tasks = Some(said(reply.answer).map(|body| body.user_tasks));
    }

    /// Takes in the reply to [`Call::LookAtExecutor`].
    pub fn looked(&mut self, reply: Reply<State>) {
        let missing = || Trouble { sort: Sort::Garbled, text: messages::NO_EXECUTOR_STATE.to_owned() };
        self.executor = Some(said(reply.answer).and_then(|body| body.executor_state.ok_or_else(missing)));
    }

    /// Takes in the reply to [`Call::Stop`].
    pub fn stopped(&mut self, reply: Reply<Message>) {
        self.stop = Some(said(reply.answer).map(|_| ()));
    }
}

fn plan(reply: Reply<OptimizationResult>) -> Said<Plan> {
    let task = reply.task;
    match reply.answer {
        Answer::Computing(_) => Ok(Plan { task, result: None }),
        answer => said(answer).map(|result| Plan { task, result: Some(result) }),
    }
}

fn said<T>(answer: Answer<T>) -> Said<T> {
    let (sort, text) = match answer {
        Answer::Ready(body) => return Ok(body),
        Answer::Computing(_) => (Sort::Unreachable, messages::STILL_THINKING.to_owned()),
        Answer::NotEnoughData(text) => (Sort::NotEnoughData, text),
        Answer::Busy(text) => (Sort::Busy, text),
        Answer::TasksExhausted(text) => (Sort::TasksExhausted, text),
        Answer::ProposalOutdated(text) => (Sort::Outdated, text),
        Answer::MissingBroker(text) => (Sort::NoSuchBroker, format!("{}: {text}", messages::MISSING_BROKER)),
        // Whoever says so itself has not begun anything.
        Answer::NotYet(text) if text.is_empty() => (Sort::NotYet, messages::bare_status(503)),
        Answer::NotYet(text) => (Sort::NotYet, text),
        Answer::Refused { message, .. } if !message.is_empty() => (Sort::Refused, message),
        Answer::Refused { status, .. } => (Sort::Refused, messages::bare_status(status)),
        Answer::Unauthorised { status } => (Sort::Denied, messages::denied(status)),
        Answer::Unreachable(error) => (Sort::Unreachable, messages::unreachable(chain(&error))),
        Answer::Unintelligible(client::Error::TooLarge { limit }) => (Sort::Garbled, messages::too_large(limit)),
        Answer::Unintelligible(error) => (Sort::Garbled, messages::garbled(&chain(&error))),
    };
    Err(Trouble { sort, text: messages::trimmed(&text) })
}

/// An error with its causes, in one line.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
