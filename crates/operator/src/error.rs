//! What can go wrong between looking at a resource and having done what was decided about it. Trouble with an engine is
//! none of it: that is heard, and decided about.

use std::time::Duration;

use crate::seams::Unreachable;

/// A reconciliation was not brought to its end.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Something could not be read.
    #[error("could not read {what}")]
    Read {
        /// What.
        what: String,
        /// Why.
        source: kube::Error,
    },
    /// Something that was decided could not be written.
    #[error("could not write {what}")]
    Write {
        /// What.
        what: String,
        /// Why.
        source: kube::Error,
    },
    /// Settings of running brokers could not be changed.
    #[error("could not change settings of running brokers")]
    Reconfigure(#[source] evenkeel_kafka::Error),
    /// Kafka refused a change of settings.
    #[error("could not change settings of {what}: {why}")]
    Refused {
        /// Whose.
        what: String,
        /// What Kafka said.
        why: String,
    },
    /// One decision led to another, and there was no end of it.
    #[error("no end of decisions after {rounds} rounds")]
    Endless {
        /// How many there were.
        rounds: usize,
    },
    /// There is no way to a cluster.
    #[error("could not prepare to speak with the cluster")]
    Reach(#[from] Unreachable),
}

/// What to do about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Somebody else wrote meanwhile: look again at once.
    LookAgain,
    /// Try again later.
    Retry,
    /// Tell somebody: it will not go away by itself.
    AskUser,
}

impl Error {
    pub(crate) fn reading(what: impl Into<String>) -> impl FnOnce(kube::Error) -> Self {
        let what = what.into();
        move |source| Self::Read { what, source }
    }

    pub(crate) fn writing(what: impl Into<String>) -> impl FnOnce(kube::Error) -> Self {
        let what = what.into();
        move |source| Self::Write { what, source }
    }

    /// What to do about it.
    pub fn remedy(&self) -> Remedy {
        let source = match self {
            Self::Read { source, .. } | Self::Write { source, .. } => source,
            Self::Reconfigure(_) => return Remedy::Retry,
            Self::Refused { .. } | Self::Reach(_) | Self::Endless { .. } => return Remedy::AskUser,
        };
        match source {
            kube::Error::Api(status) if status.is_conflict() || status.is_already_exists() || status.is_not_found() => {
                Remedy::LookAgain
            }
            kube::Error::Api(status) if status.is_forbidden() || status.is_invalid() => Remedy::AskUser,
            _ => Remedy::Retry,
        }
    }

    /// How long to wait before all is looked at anew, after so many failures in a row.
    pub fn pause(&self, failures: u32) -> Duration {
        let longest = Duration::from_secs(60);
        match self.remedy() {
            Remedy::LookAgain if failures < 5 => Duration::from_millis(200),
            _ => Duration::from_secs(1).saturating_mul(1 << failures.min(6)).min(longest),
        }
    }
}

/// The whole chain of causes, for a person.
pub(crate) fn told(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
