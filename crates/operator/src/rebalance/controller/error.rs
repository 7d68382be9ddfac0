//! What can go wrong between looking at a KafkaRebalance and having done what was decided about it. Trouble with
//! the engine is none of it: that is heard, and decided about.

/// A reconciliation was not brought to its end.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Something around the resource could not be read.
    #[error("could not read {what}")]
    Read {
        /// What.
        what: &'static str,
        /// Why.
        source: kube::Error,
    },
    /// Something that was decided could not be written.
    #[error("could not write {what}")]
    Write {
        /// What.
        what: &'static str,
        /// Why.
        source: kube::Error,
    },
    /// One decision led to another, and there was no end of it.
    #[error("no end of decisions after {rounds} rounds")]
    Endless {
        /// How many there were.
        rounds: usize,
    },
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
    pub(super) fn reading(what: &'static str) -> impl Fn(kube::Error) -> Self {
        move |source| Self::Read { what, source }
    }

    pub(super) fn writing(what: &'static str) -> impl Fn(kube::Error) -> Self {
        move |source| Self::Write { what, source }
    }

    /// What to do about it.
    pub fn remedy(&self) -> Remedy {
        match self {
            // What was decided rests on something that is no longer so, or on a resource that is gone.
            Self::Write { source: kube::Error::Api(status), .. }
                if status.is_conflict() || status.is_already_exists() || status.is_not_found() =>
            {
                Remedy::LookAgain
            }
            Self::Read { source, .. } | Self::Write { source, .. } => match source {
                kube::Error::Api(status) if status.is_forbidden() || status.is_invalid() => Remedy::AskUser,
                _ => Remedy::Retry,
            },
            Self::Endless { .. } => Remedy::AskUser,
        }
    }
}
