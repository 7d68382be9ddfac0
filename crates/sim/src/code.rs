//! Kafka's error codes, as far as the simulated brokers use them.

use std::fmt;

macro_rules! codes {
    ($($name:ident = $number:literal, $text:literal;)+) => {
        /// A Kafka error code.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Code { $(#[doc = $text] $name,)+ }

        impl Code {
            /// The number on the wire.
            pub fn number(self) -> i16 {
                match self { $(Self::$name => $number,)+ }
            }

            /// What Kafka says when it has nothing more precise to say.
            pub fn text(self) -> &'static str {
                match self { $(Self::$name => $text,)+ }
            }
        }
    };
}

codes! {
    UnknownServerError = -1, "The server experienced an unexpected error when processing the request.";
    OffsetOutOfRange = 1, "The requested offset is not within the range of offsets maintained by the server.";
    CorruptMessage = 2, "This message has failed its CRC checksum, exceeds the valid size, has a null key for a compacted topic, or is otherwise corrupt.";
    UnknownTopicOrPartition = 3, "This server does not host this topic-partition.";
    LeaderNotAvailable = 5, "There is no leader for this topic-partition as we are in the middle of a leadership election.";
    NotLeaderOrFollower = 6, "For requests intended only for the leader, this error indicates that the broker is not the current leader.";
    RequestTimedOut = 7, "The request timed out.";
    ReplicaNotAvailable = 9, "The replica is not available for the requested topic-partition.";
    MessageTooLarge = 10, "The request included a message larger than the max message size the server will accept.";
    CoordinatorNotAvailable = 15, "The coordinator is not available.";
    NotCoordinator = 16, "This is not the correct coordinator.";
    InvalidTopic = 17, "The request attempted to perform an operation on an invalid topic.";
    NotEnoughReplicas = 19, "Messages are rejected since there are fewer in-sync replicas than required.";
    InvalidRequiredAcks = 21, "Produce request specified an invalid value for required acks.";
    UnsupportedSaslMechanism = 33, "The broker does not support the requested SASL mechanism.";
    IllegalSaslState = 34, "Request is not valid given the current SASL state.";
    UnsupportedVersion = 35, "The version of API is not supported.";
    TopicAlreadyExists = 36, "Topic with this name already exists.";
    InvalidPartitions = 37, "Number of partitions is below 1.";
    InvalidReplicationFactor = 38, "Replication factor is below 1 or larger than the number of available brokers.";
    InvalidReplicaAssignment = 39, "Replica assignment is invalid.";
    InvalidConfig = 40, "Configuration is invalid.";
    InvalidRequest = 42, "This most likely occurs because of a request being malformed by the client library or the message was sent to an incompatible broker.";
    PolicyViolation = 44, "Request parameters do not satisfy the configured policy.";
    OutOfOrderSequenceNumber = 45, "The broker received an out of order sequence number.";
    DuplicateSequenceNumber = 46, "The broker received a duplicate sequence number.";
    InvalidProducerEpoch = 47, "Producer attempted to produce with an old epoch.";
    InvalidTxnState = 48, "The producer attempted a transactional operation in an invalid state.";
    InvalidProducerIdMapping = 49, "The producer attempted to use a producer id which is not currently assigned to its transactional id.";
    InvalidTransactionTimeout = 50, "The transaction timeout is larger than the maximum value allowed by the broker.";
    TransactionCoordinatorFenced = 52, "Indicates that the transaction coordinator sending a WriteTxnMarker is no longer the current coordinator for a given producer.";
    OperationNotAttempted = 55, "The broker did not attempt to execute this operation.";
    KafkaStorageError = 56, "Disk error when trying to access log file on the disk.";
    LogDirNotFound = 57, "The user-specified log directory is not found in the broker config.";
    SaslAuthenticationFailed = 58, "SASL Authentication failed.";
    UnknownProducerId = 59, "This exception is raised by the broker if it could not locate the producer metadata associated with the producerId in question.";
    DelegationTokenAuthDisabled = 61, "Delegation Token feature is not enabled.";
    FencedLeaderEpoch = 74, "The leader epoch in the request is older than the epoch on the broker.";
    UnknownLeaderEpoch = 75, "The leader epoch in the request is newer than the epoch on the broker.";
    PreferredLeaderNotAvailable = 80, "The preferred leader was not available.";
    EligibleLeadersNotAvailable = 83, "Eligible topic partition leaders are not available.";
    ElectionNotNeeded = 84, "Leader election not needed for topic partition.";
    NoReassignmentInProgress = 85, "No partition reassignment is in progress.";
    InvalidRecord = 87, "This record has failed the validation on broker and hence will be rejected.";
    ProducerFenced = 90, "There is a newer producer with the same transactionalId which fences the current one.";
    ResourceNotFound = 91, "A request illegally referred to a resource that does not exist.";
    DuplicateResource = 92, "A request illegally referred to the same resource twice.";
    UnacceptableCredential = 93, "Requested credential would not meet criteria for acceptability.";
    InvalidUpdateVersion = 95, "The given update version was invalid.";
    UnknownTopicId = 100, "This server does not host this topic ID.";
    InconsistentTopicId = 103, "The log's topic ID did not match the topic ID in the request.";
    BrokerIdNotRegistered = 102, "The given broker ID was not registered.";
    TransactionalIdNotFound = 105, "The transactionalId could not be found.";
    MismatchedEndpointType = 114, "The request was sent to an endpoint of the wrong type.";
    InvalidRegularExpression = 128, "The regular expression is not valid.";
}

impl Code {
    /// A refusal with Kafka's own standard text.
    pub fn plain(self) -> Refusal {
        Refusal { code: self, message: self.text().to_owned() }
    }

    /// A refusal that says more.
    pub fn because(self, message: impl Into<String>) -> Refusal {
        Refusal { code: self, message: message.into() }
    }
}

/// Why a broker did not do it: the code for the client's program, the message for its user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Refusal {
    /// The error code.
    pub code: Code,
    /// The error message.
    pub message: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({:?}, {})", self.message, self.code, self.code.number())
    }
}
