//! What can go wrong between looking at a resource and having done what was decided about it. Trouble with an engine is
//! none of it: that is heard, and decided about.

use std::time::Duration;

use crate::{kafka::seen::Refusals, seams::Unreachable};

/// After so many failures in a row it is no coincidence.
const PERSISTS: u32 = 3;

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
    /// Kafka refused changes of settings. Whoever remembers them does the rest without them.
    #[error("Kafka refused {} changes of settings", .0.len())]
    Refused(Refusals),
    /// A broker that is gone could not be struck off Kafka's list.
    #[error("could not unregister broker {broker}")]
    Unregister {
        /// Which.
        broker: i32,
        /// Why.
        source: evenkeel_kafka::Error,
    },
    /// One decision led to another, and there was no end of it.
    #[error("no end of decisions after {rounds} rounds")]
    Endless {
        /// How many there were.
        rounds: usize,
    },
    /// What was seen is too old for a deed that cannot be taken back.
    #[error("{what} was decided {age:?} ago, and is decided anew")]
    Outlived {
        /// The deed.
        what: String,
        /// How long ago it was seen what it rests on.
        age: Duration,
    },
    /// Something of somebody else's stands where an object of the cluster should be.
    #[error(
        "could not write {what}: there is one that does not carry the label strimzi.io/cluster: {cluster}. Remove it, or \
         give it that label if it is this cluster's"
    )]
    Foreign {
        /// What.
        what: String,
        /// Whose it should be.
        cluster: String,
    },
    /// What automatic rebalancing remembers could not be written, so nothing of it is done.
    #[error(
        "automatic rebalancing stands still, because its memory cannot be written. If it cannot be changed, delete it: it is \
         made anew"
    )]
    Memory(#[source] Box<Self>),
    /// What automatic rebalancing wanted to do could not be done.
    #[error(transparent)]
    Act(Box<Self>),
    /// It took so long that somebody must have stopped answering.
    #[error("not done within {0:?}")]
    Late(Duration),
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
            Self::Reconfigure(_) | Self::Unregister { .. } | Self::Late(_) => return Remedy::Retry,
            Self::Act(error) | Self::Memory(error) => return error.remedy(),
            Self::Refused(_) | Self::Outlived { .. } => return Remedy::LookAgain,
            Self::Foreign { .. } | Self::Reach(_) | Self::Endless { .. } => return Remedy::AskUser,
        };
        match source {
            kube::Error::Api(status) if status.is_conflict() || status.is_already_exists() || status.is_not_found() => {
                Remedy::LookAgain
            }
            kube::Error::Api(status) if status.is_forbidden() || status.is_invalid() => Remedy::AskUser,
            _ => Remedy::Retry,
        }
    }

    /// Whether to do all the same what does not need it, after so many failures in a row. Who was overtaken looks again
    /// first: what was seen is old. But what is refused again and again must not keep up everything else.
    pub(crate) fn lets_others_pass(&self, failures: u32) -> bool {
        !matches!(self, Self::Refused(_)) && (self.remedy() != Remedy::LookAgain || failures >= PERSISTS)
    }

    /// Whether a person has to know, after so many failures in a row.
    pub(crate) fn is_to_be_told(&self, failures: u32) -> bool {
        self.remedy() == Remedy::AskUser || failures >= PERSISTS
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

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: u16) -> Error {
        let status = kube::core::Status::failure("why", "").with_code(code);
        let reason = if code == 409 { "Conflict" } else { "Forbidden" };
        Error::writing("it")(kube::Error::Api(Box::new(kube::core::Status { reason: reason.into(), ..status })))
    }

    #[test]
    fn who_is_overtaken_looks_again_and_who_is_refused_is_passed_by_and_told() {
        let (conflict, forbidden) = (refused(409), refused(403));
        assert!(!conflict.lets_others_pass(0) && !conflict.is_to_be_told(0));
        assert!(conflict.lets_others_pass(PERSISTS) && conflict.is_to_be_told(PERSISTS), "again and again");
        assert!(forbidden.lets_others_pass(0) && forbidden.is_to_be_told(0));
        assert!(!Error::Refused(Refusals::new()).lets_others_pass(9), "it is remembered first");
        assert!(Error::Late(Duration::ZERO).lets_others_pass(0) && !Error::Late(Duration::ZERO).is_to_be_told(0));
    }
}
