//! What an answer means. Pure: from a status and a body to one of the few things that a caller has to tell apart.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::error::Error;
use crate::body;
use crate::failure::{Failure, Sort};
use crate::json;
use crate::request::{self, Request};

/// What the server said. The texts are its own.
#[derive(Debug)]
pub enum Answer<T> {
    /// Here it is.
    Ready(T),
    /// It is being computed; follow the task.
    Computing(body::Progress),
    /// Loads are not known well enough yet. They will be.
    NotEnoughData(String),
    /// Something else is being carried out.
    Busy(String),
    /// A broker that was named is not there.
    MissingBroker(String),
    /// As many tasks as there may be at a time.
    TasksExhausted(String),
    /// The approved proposal is unknown, or the cluster has changed too much for it.
    ProposalOutdated(String),
    /// The server has begun nothing, and says that it may be asked again later (503): Kafka is out of its reach, or it
    /// is not up yet.
    NotYet(String),
    /// No, for another reason.
    Refused {
        /// The status.
        status: u16,
        /// The reason.
        message: String,
    },
    /// The credentials are missing, wrong, or not enough.
    Unauthorised {
        /// 401 or 403.
        status: u16,
    },
    /// Nobody answered, or not to the end.
    Unreachable(Error),
    /// Somebody answered, but nothing that this endpoint answers.
    Unintelligible(Error),
}

impl<T> Answer<T> {
    /// A fixed word for metrics.
    pub fn label(&self) -> &'static str {
        match self {
            Self::Ready(_) => "ready",
            Self::Computing(_) => "computing",
            Self::NotEnoughData(_) => "not_enough_data",
            Self::Busy(_) => "busy",
            Self::MissingBroker(_) => "missing_broker",
            Self::TasksExhausted(_) => "tasks_exhausted",
            Self::ProposalOutdated(_) => "proposal_outdated",
            Self::NotYet(_) => "not_yet",
            Self::Refused { .. } => "refused",
            Self::Unauthorised { .. } => "unauthorised",
            Self::Unreachable(_) => "unreachable",
            Self::Unintelligible(_) => "unintelligible",
        }
    }

    fn failed(status: u16, message: String) -> Self {
        match Failure::sort(&message) {
            Sort::NotEnoughData => Self::NotEnoughData(message),
            Sort::Busy => Self::Busy(message),
            Sort::MissingBroker => Self::MissingBroker(message),
            Sort::TasksExhausted => Self::TasksExhausted(message),
            Sort::ProposalOutdated => Self::ProposalOutdated(message),
            Sort::Other if status == 503 => Self::NotYet(message),
            Sort::Other => Self::Refused { status, message },
        }
    }
}

impl<T> From<Error> for Answer<T> {
    fn from(error: Error) -> Self {
        match error {
            Error::Connect { .. } | Error::TimedOut { .. } | Error::ReadBody { .. } | Error::Gateway { .. } => {
                Self::Unreachable(error)
            }
            Error::BuildRequest { .. } | Error::TooLarge { .. } | Error::Unreadable { .. } => {
                Self::Unintelligible(error)
            }
        }
    }
}

/// A request, and what its answer looks like.
pub trait Asks: Clone + Into<Request> {
    /// The body of a 200.
    type Answer: DeserializeOwned + Send + 'static;
}

macro_rules! asks {
    ($($request:ident => $answer:ty),+ $(,)?) => {
        $(impl Asks for request::$request {
            type Answer = $answer;
        })+
    };
}

asks! {
    Load => body::Load,
    PartitionLoad => body::PartitionLoad,
    Proposals => body::OptimizationResult,
    State => body::State,
    KafkaClusterState => body::ClusterState,
    UserTasks => body::UserTasks,
    Permissions => body::Permissions,
    AddBroker => body::OptimizationResult,
    RemoveBroker => body::OptimizationResult,
    FixOfflineReplicas => body::OptimizationResult,
    Rebalance => body::OptimizationResult,
    DemoteBroker => body::OptimizationResult,
    RemoveDisks => body::OptimizationResult,
    StopProposalExecution => body::Message,
    PauseSampling => body::Message,
    ResumeSampling => body::Message,
    Admin => body::AdminAnswer,
}

/// An error body, however it comes: the original also sends them with a 200.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WithMessage {
    error_message: String,
}

/// Says what an answer means. The content type is only mentioned when the body cannot be read: servers and what stands
/// before them get it wrong too often to believe it.
pub fn classify<T: DeserializeOwned>(status: u16, content_type: &str, body: &[u8]) -> Answer<T> {
    let no_message = match json::from_slice::<WithMessage>(body) {
        Ok(error) => return Answer::failed(status, error.error_message),
        Err(why) => why,
    };
    let unreadable =
        |source| Answer::Unintelligible(Error::Unreadable { status, content_type: content_type.to_owned(), source });
    match status {
        200 | 201 => json::from_slice(body).map_or_else(unreadable, Answer::Ready),
        202 => json::from_slice(body).map_or_else(unreadable, Answer::Computing),
        // Without an error body it is the web server that speaks, not the application.
        401 | 403 => Answer::Unauthorised { status },
        502..=504 => Answer::Unreachable(Error::Gateway { status }),
        _ => match Answer::failed(status, beginning(body)) {
            // Nor does anybody know whether the application did what it was asked before something failed.
            Answer::Refused { status: 500.., .. } => unreadable(no_message),
            answer => answer,
        },
    }
}

/// As much of a foreign body as fits into a message.
fn beginning(body: &[u8]) -> String {
    const LONGEST: usize = 500;
    let text = String::from_utf8_lossy(&body[..body.len().min(4 * LONGEST)]);
    text.trim().chars().take(LONGEST).collect()
}
