//! Why a condition is what it is. One list, used by every controller.

use std::{fmt, str::FromStr};

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident,)+) => {
        /// The `reason` of a condition. It is written as the variant is named.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Reason {
            $($(#[$doc])* $name,)+
        }

        impl Reason {
            /// All reasons.
            pub const ALL: &[Self] = &[$(Self::$name,)+];

            /// The reason as it is written in a condition.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)+
                }
            }
        }
    };
}

reasons! {
    /// The spec of a KafkaRebalance asks for something impossible.
    IllegalArgumentException,
    /// A resource lacks something it must have, such as the label that names its Kafka.
    InvalidResourceException,
    /// A resource that is needed does not exist.
    NoSuchResourceException,
    /// Cruise Control could not be asked, or refused.
    CruiseControlRestException,
    /// Cruise Control does not know brokers that a KafkaRebalance names.
    NoSuchBroker,
    /// An annotation has a value that means nothing here and now.
    InvalidAnnotation,
    /// An execution ended before it had done all of its work. What was moved stays moved.
    ExecutionFailed,
    /// An execution was lost sight of: nobody can say how it ended.
    ExecutionOutcomeUnknown,
    /// The approved proposal no longer fits the cluster.
    ProposalOutdated,
    /// Another rebalance of the cluster has to end first.
    WaitingForOtherRebalance,
    /// Cruise Control has not measured enough yet.
    NotEnoughData,
    /// There are fields in a KafkaRebalance that nobody knows.
    UnknownFields,
    /// There are fields with a successor.
    DeprecatedFields,
    /// Brokers that still hold data are not removed.
    ScaleDownPreventionCheck,
    /// An automatic rebalance failed.
    AutoRebalanceFailed,
    /// An automatic rebalance was stopped.
    AutoRebalanceStopped,
    /// An automatic rebalance waits for something that passes by itself.
    AutoRebalanceWaiting,
    /// An automatic rebalance is held back by the brake, a guard or the maintenance window.
    AutoRebalanceHeld,
    /// A template is missing, or not marked as one.
    InvalidRebalanceTemplate,
    /// The goals of a template do not fit those that are watched.
    InvalidRebalanceTemplateGoals,
    /// Goals are violated that no rebalance can mend.
    UnfixableViolatedGoal,
    /// A setting is overridden that must not be.
    UnsupportedOperationException,
    /// Something that was to be written was refused by the API server.
    KubernetesClientException,
    /// There are fields that the operator does not act on.
    FieldNotHonoured,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The text is no reason of ours.
#[derive(thiserror::Error, Clone, Copy, Debug, PartialEq, Eq)]
#[error("no such condition reason")]
pub struct NoSuchReason;

impl FromStr for Reason {
    type Err = NoSuchReason;

    fn from_str(text: &str) -> Result<Self, NoSuchReason> {
        Self::ALL.iter().copied().find(|reason| reason.as_str() == text).ok_or(NoSuchReason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_reason_is_read_back() {
        for &reason in Reason::ALL {
            assert_eq!(reason.to_string().parse(), Ok(reason));
        }
        assert_eq!("CompletionException".parse::<Reason>(), Err(NoSuchReason));
    }
}
