//! What can go wrong, said by the operation that failed, with what to do about it.
//!
//! An [`Error`] is a call that failed as a whole; a [`Refusal`] is a broker's answer about one
//! thing (a topic, a partition, a directory) inside a call that worked.

use std::{fmt, time::Duration};

use kafka_protocol::error::ResponseError;

use crate::{
    connect::{Address, ConnectError, tls_fault},
    connection::CallError,
    records::RecordsError,
};

/// What the caller should do about a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remedy {
    /// The same again may work at once.
    Retry,
    /// The same again may work after a while.
    Wait(Duration),
    /// The picture of the cluster is old: look again, then decide again.
    RefreshMetadata,
    /// Nothing here will help: the request, the settings or the permissions are wrong.
    AskUser,
}

/// Time for a coordinator to load, a transaction to end, a quota to recover.
const A_WHILE: Duration = Duration::from_millis(500);

/// A call that failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No connection to a broker, or none that it accepted.
    #[error("could not connect to {address}")]
    Connect {
        /// Which broker.
        address: Address,
        /// What failed on the way.
        #[source]
        source: ConnectError,
    },
    /// A broker that the cluster does not name, or no longer.
    #[error("the cluster knows no live broker {broker}")]
    UnknownBroker {
        /// Its id.
        broker: i32,
    },
    /// The request or its answer was lost, late or unreadable.
    #[error("could not {operation} at {address}")]
    Call {
        /// What was asked for.
        operation: &'static str,
        /// Whom.
        address: Address,
        /// What happened.
        #[source]
        source: CallError,
    },
    /// The broker answered, and refused the call as a whole.
    #[error("could not {operation}")]
    Refused {
        /// What was asked for.
        operation: &'static str,
        /// What it answered.
        #[source]
        refusal: Refusal,
    },
    /// A newer producer has taken the transactional id, or it has expired: whoever sees this must stop
    /// writing, and may begin anew only as whoever owns the id then.
    #[error("the transactional id {transactional_id} is not this writer's any more")]
    Fenced {
        /// The id that both use.
        transactional_id: String,
    },
    /// A log is shorter than what has been read of it: records that were there are lost (a leader without all of them
    /// was elected, or the topic was made anew).
    #[error("{topic}-{partition} was to be read from {position} on, and ends at {end}: it has lost records")]
    Shortened {
        /// Its topic.
        topic: String,
        /// Its index.
        partition: i32,
        /// Where reading would go on.
        position: i64,
        /// Where the log ends now.
        end: i64,
    },
    /// Records that could not be read or written.
    #[error("could not {operation} of {topic}-{partition}")]
    Records {
        /// What was being done.
        operation: &'static str,
        /// Where.
        topic: String,
        /// Where.
        partition: i32,
        /// What was wrong with them.
        #[source]
        source: RecordsError,
    },
}

impl Error {
    /// What the caller should do about it.
    pub fn remedy(&self) -> Remedy {
        match self {
            Self::Connect { source, .. } => source.remedy(),
            Self::UnknownBroker { .. } => Remedy::RefreshMetadata,
            Self::Call { source, .. } => source.remedy(),
            Self::Refused { refusal, .. } => refusal.code.remedy(),
            Self::Fenced { .. } | Self::Shortened { .. } | Self::Records { .. } => Remedy::AskUser,
        }
    }

    /// Whether there is no session for a reason of TLS's own: usually one side does not take the other's certificate.
    pub fn is_of_tls(&self) -> bool {
        let mut cause = std::error::Error::source(self);
        while let Some(this) = cause {
            if this.downcast_ref().is_some_and(|error| tls_fault(error).is_some()) {
                return true;
            }
            cause = this.source();
        }
        false
    }

    /// What a broker answered, if one did.
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused { refusal, .. } => Some(refusal),
            _ => None,
        }
    }
}

/// A broker's no, with its reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{code}{}{}", if message.is_some() { ": " } else { "" }, message.as_deref().unwrap_or_default())]
pub struct Refusal {
    /// Kafka's number for it.
    pub code: ErrorCode,
    /// The broker's own words, where it has any.
    pub message: Option<String>,
}

impl Refusal {
    /// `Ok` for code 0, a refusal for every other.
    pub(crate) fn check(code: i16, message: Option<String>) -> Result<(), Self> {
        match code {
            0 => Ok(()),
            code => Err(Self { code: ErrorCode(code), message }),
        }
    }
}

/// Kafka's number for what went wrong. Numbers of later versions pass through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ErrorCode(pub i16);

/// The codes that callers decide by.
impl ErrorCode {
    /// The offset is not, or no longer, in the log.
    pub const OFFSET_OUT_OF_RANGE: Self = Self(1);
    /// No such topic or partition, or not on this broker.
    pub const UNKNOWN_TOPIC_OR_PARTITION: Self = Self(3);
    /// The partition has no leader now.
    pub const LEADER_NOT_AVAILABLE: Self = Self(5);
    /// Another broker leads the partition.
    pub const NOT_LEADER_OR_FOLLOWER: Self = Self(6);
    /// No answer in time: nobody knows whether it was done.
    pub const REQUEST_TIMED_OUT: Self = Self(7);
    /// The broker holds no such replica.
    pub const REPLICA_NOT_AVAILABLE: Self = Self(9);
    /// Another broker coordinates this id.
    pub const NOT_COORDINATOR: Self = Self(16);
    /// A version that the broker does not speak.
    pub const UNSUPPORTED_VERSION: Self = Self(35);
    /// The topic is there already.
    pub const TOPIC_ALREADY_EXISTS: Self = Self(36);
    /// The replication factor is impossible, or would change.
    pub const INVALID_REPLICATION_FACTOR: Self = Self(38);
    /// A replica list with unknown or repeated brokers.
    pub const INVALID_REPLICA_ASSIGNMENT: Self = Self(39);
    /// Another node is the controller.
    pub const NOT_CONTROLLER: Self = Self(41);
    /// The request contradicts itself, or the configuration.
    pub const INVALID_REQUEST: Self = Self(42);
    /// The batch was written before.
    pub const DUPLICATE_SEQUENCE_NUMBER: Self = Self(46);
    /// The producer has been replaced by a newer one.
    pub const INVALID_PRODUCER_EPOCH: Self = Self(47);
    /// The transaction is not in a state for this.
    pub const INVALID_TXN_STATE: Self = Self(48);
    /// The id is not that producer's any more.
    pub const INVALID_PRODUCER_ID_MAPPING: Self = Self(49);
    /// The last transaction of this id is still being ended.
    pub const CONCURRENT_TRANSACTIONS: Self = Self(51);
    /// The log directory cannot be used.
    pub const STORAGE_ERROR: Self = Self(56);
    /// No such log directory.
    pub const LOG_DIR_NOT_FOUND: Self = Self(57);
    /// The login failed.
    pub const SASL_AUTHENTICATION_FAILED: Self = Self(58);
    /// The partition is being reassigned.
    pub const REASSIGNMENT_IN_PROGRESS: Self = Self(60);
    /// The first replica is not there to lead.
    pub const PREFERRED_LEADER_NOT_AVAILABLE: Self = Self(80);
    /// The right replica leads already.
    pub const ELECTION_NOT_NEEDED: Self = Self(84);
    /// Nothing to cancel.
    pub const NO_REASSIGNMENT_IN_PROGRESS: Self = Self(85);
    /// The producer has been replaced by a newer one.
    pub const PRODUCER_FENCED: Self = Self(90);
    /// No such broker is registered.
    pub const BROKER_ID_NOT_REGISTERED: Self = Self(102);

    /// What the caller should do about it.
    pub fn remedy(self) -> Remedy {
        match self.0 {
            // Corrupt on the way, timed out, lost, too few in sync for now.
            2 | 7 | 13 | 19 | 20 => Remedy::Retry,
            // Loading, electing, ending, throttled, moving, unstable, the replica that is to lead not in sync yet: the
            // broker asks for patience.
            14 | 15 | 27 | 51 | 60 | 78 | 80 | 83 | 88 | 89 => Remedy::Wait(A_WHILE),
            3 | 5 | 6 | 8 | 9 | 16 | 41 | 56 | 72 | 74 | 75 | 77 | 100 | 103 => Remedy::RefreshMetadata,
            _ => Remedy::AskUser,
        }
    }

    /// Whether it says that the producer is not the living one of its transactional id: a newer one
    /// has taken over (epochs that ran out and ids that expired give the third).
    pub fn is_fenced(self) -> bool {
        matches!(self, Self::INVALID_PRODUCER_EPOCH | Self::PRODUCER_FENCED | Self::INVALID_PRODUCER_ID_MAPPING)
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match ResponseError::try_from_code(self.0) {
            Some(ResponseError::Unknown(_)) | None => write!(out, "error {}", self.0),
            // The codec's variants are Kafka's names in another case.
            Some(known) => {
                for (position, letter) in format!("{known:?}").chars().enumerate() {
                    if position > 0 && letter.is_ascii_uppercase() {
                        out.write_str("_")?;
                    }
                    write!(out, "{}", letter.to_ascii_uppercase())?;
                }
                write!(out, " ({})", self.0)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_carry_kafkas_names() {
        assert_eq!(ErrorCode::NOT_LEADER_OR_FOLLOWER.to_string(), "NOT_LEADER_OR_FOLLOWER (6)");
        assert_eq!(ErrorCode(-1).to_string(), "UNKNOWN_SERVER_ERROR (-1)");
        assert_eq!(ErrorCode(9999).to_string(), "error 9999");
        let refusal = Refusal { code: ErrorCode::INVALID_REQUEST, message: Some("no".into()) };
        assert_eq!(refusal.to_string(), "INVALID_REQUEST (42): no");
    }

    /// What Kafka's own client repeats, this one does, but for these.
    #[test]
    fn remedies_agree_with_kafka() {
        use ResponseError as R;
        let patient = [
            // The broker is coming or going, or registers anew.
            R::BrokerNotAvailable,
            R::StaleBrokerEpoch,
            // A group, a transaction, a move: each is over some time. Kafka's client knows these cases one by one.
            R::RebalanceInProgress,
            R::ConcurrentTransactions,
            R::ReassignmentInProgress,
        ];
        let final_ones = [
            // Sessions that this client never opens.
            R::FetchSessionIdNotFound,
            R::InvalidFetchSessionEpoch,
            R::FetchSessionTopicIdError,
            R::ShareSessionNotFound,
            R::InvalidShareSessionEpoch,
            R::ShareSessionLimitReached,
            // It is as it should be.
            R::ElectionNotNeeded,
        ];
        for known in (-1..200).filter(|code| *code != 0).filter_map(ResponseError::try_from_code) {
            let repeated = ErrorCode(known.code()).remedy() != Remedy::AskUser;
            let expected = (known.is_retriable() || patient.contains(&known)) && !final_ones.contains(&known);
            assert_eq!(repeated, expected, "{known:?}");
        }
    }

    #[test]
    fn the_named_codes_are_those_of_the_protocol() {
        use ResponseError as R;
        for (ours, theirs) in [
            (ErrorCode::OFFSET_OUT_OF_RANGE, R::OffsetOutOfRange),
            (ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, R::UnknownTopicOrPartition),
            (ErrorCode::LEADER_NOT_AVAILABLE, R::LeaderNotAvailable),
            (ErrorCode::NOT_LEADER_OR_FOLLOWER, R::NotLeaderOrFollower),
            (ErrorCode::REQUEST_TIMED_OUT, R::RequestTimedOut),
            (ErrorCode::REPLICA_NOT_AVAILABLE, R::ReplicaNotAvailable),
            (ErrorCode::NOT_COORDINATOR, R::NotCoordinator),
            (ErrorCode::UNSUPPORTED_VERSION, R::UnsupportedVersion),
            (ErrorCode::TOPIC_ALREADY_EXISTS, R::TopicAlreadyExists),
            (ErrorCode::INVALID_REPLICATION_FACTOR, R::InvalidReplicationFactor),
            (ErrorCode::INVALID_REPLICA_ASSIGNMENT, R::InvalidReplicaAssignment),
            (ErrorCode::NOT_CONTROLLER, R::NotController),
            (ErrorCode::INVALID_REQUEST, R::InvalidRequest),
            (ErrorCode::DUPLICATE_SEQUENCE_NUMBER, R::DuplicateSequenceNumber),
            (ErrorCode::INVALID_PRODUCER_EPOCH, R::InvalidProducerEpoch),
            (ErrorCode::INVALID_TXN_STATE, R::InvalidTxnState),
            (ErrorCode::INVALID_PRODUCER_ID_MAPPING, R::InvalidProducerIdMapping),
            (ErrorCode::CONCURRENT_TRANSACTIONS, R::ConcurrentTransactions),
            (ErrorCode::STORAGE_ERROR, R::KafkaStorageError),
            (ErrorCode::LOG_DIR_NOT_FOUND, R::LogDirNotFound),
            (ErrorCode::SASL_AUTHENTICATION_FAILED, R::SaslAuthenticationFailed),
            (ErrorCode::REASSIGNMENT_IN_PROGRESS, R::ReassignmentInProgress),
            (ErrorCode::PREFERRED_LEADER_NOT_AVAILABLE, R::PreferredLeaderNotAvailable),
            (ErrorCode::ELECTION_NOT_NEEDED, R::ElectionNotNeeded),
            (ErrorCode::NO_REASSIGNMENT_IN_PROGRESS, R::NoReassignmentInProgress),
            (ErrorCode::PRODUCER_FENCED, R::ProducerFenced),
            (ErrorCode::BROKER_ID_NOT_REGISTERED, R::BrokerIdNotRegistered),
        ] {
            assert_eq!(ours.0, theirs.code());
        }
    }
}
