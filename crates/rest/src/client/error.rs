//! What can go wrong between a question and an answer that can be read.

use std::time::Duration;

use tower::BoxError;

/// No answer, or none that can be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It cannot be asked: the server's address or the credentials cannot stand in a request.
    #[error("could not build the request")]
    BuildRequest {
        /// Why.
        source: http::Error,
    },
    /// Nobody answered.
    #[error("could not reach the server")]
    Connect {
        /// Why.
        source: BoxError,
    },
    /// Nobody answered in time.
    #[error("no complete answer within {after:?}")]
    TimedOut {
        /// How long was waited.
        after: Duration,
    },
    /// The answer broke off.
    #[error("could not read the answer to its end")]
    ReadBody {
        /// Why.
        source: BoxError,
    },
    /// Somebody between here and the server answered that it cannot reach it.
    #[error("a gateway could not reach the server (status {status})")]
    Gateway {
        /// What it answered.
        status: u16,
    },
    /// The answer is larger than anybody would send.
    #[error("the answer is larger than {limit} bytes")]
    TooLarge {
        /// What would have been read.
        limit: usize,
    },
    /// The answer is none of those that the endpoint gives.
    #[error("the answer cannot be understood (status {status}, content type '{content_type}')")]
    Unreadable {
        /// Its status.
        status: u16,
        /// Its content type.
        content_type: String,
        /// Why.
        source: serde_json::Error,
    },
}

/// What to do about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Ask again later: it may be over by then.
    Retry,
    /// Tell somebody: it will not go away by itself.
    AskUser,
}

impl Error {
    /// What to do about it.
    pub fn remedy(&self) -> Remedy {
        match self {
            Self::Connect { .. } | Self::TimedOut { .. } | Self::ReadBody { .. } | Self::Gateway { .. } => {
                Remedy::Retry
            }
            Self::BuildRequest { .. } | Self::TooLarge { .. } | Self::Unreadable { .. } => Remedy::AskUser,
        }
    }

    /// A fixed word for metrics.
    pub fn label(&self) -> &'static str {
        match self {
            Self::BuildRequest { .. } => "build_request",
            Self::Connect { .. } => "connect",
            Self::TimedOut { .. } => "timed_out",
            Self::ReadBody { .. } => "read_body",
            Self::Gateway { .. } => "gateway",
            Self::TooLarge { .. } => "too_large",
            Self::Unreadable { .. } => "unreadable",
        }
    }
}
