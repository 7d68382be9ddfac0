//! What cannot be a cluster, and why.

use super::{BrokerId, Resource, Seat, Slot};

/// Brokers times topics: ten times what the largest clusters have. Each pair takes four bytes or eight.
pub(crate) const MOST_PAIRS: usize = 1 << 30;

/// Why a record cannot be part of a cluster.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Invalid {
    /// Two brokers with one id.
    #[error("broker {0} is listed twice")]
    BrokerTwice(BrokerId),
    /// More brokers than the model can number.
    #[error("more than {max} brokers", max = Seat::MAX)]
    TooManyBrokers,
    /// A host in two racks.
    #[error("host `{host}` is in rack `{one}` and in rack `{other}`")]
    HostInTwoRacks {
        /// The host.
        host: String,
        /// The rack it was in first.
        one: String,
        /// The rack it is in now.
        other: String,
    },
    /// A capacity that nothing can be divided by. Only a dead broker may have 0: nobody asks it any more.
    #[error("broker {broker}: {resource} capacity is {value}, it must be a positive number", resource = resource.name())]
    Capacity {
        /// Whose.
        broker: BrokerId,
        /// Of what.
        resource: Resource,
        /// As given.
        value: f64,
    },
    /// A capacity that nobody can mean, and that would be lost in rounding beside others.
    #[error(
        "broker {broker}: {resource} capacity is {value:e}, it must be at least 0.000001",
        resource = resource.name()
    )]
    TinyCapacity {
        /// Whose.
        broker: BrokerId,
        /// Of what.
        resource: Resource,
        /// As given.
        value: f64,
    },
    /// A disk without room, or two of one name.
    #[error("broker {broker}: disk `{disk}` {problem}")]
    Disk {
        /// Whose.
        broker: BrokerId,
        /// Its name.
        disk: String,
        /// What is wrong.
        problem: &'static str,
    },
    /// A replica on a broker that is not listed.
    #[error("{topic}-{partition}: broker {broker} is not listed")]
    UnknownBroker {
        /// The partition's topic.
        topic: String,
        /// The partition's number.
        partition: i32,
        /// The broker nobody knows.
        broker: BrokerId,
    },
    /// Anything else about one partition.
    #[error("{topic}-{partition}: {problem}")]
    Partition {
        /// Its topic.
        topic: String,
        /// Its number.
        partition: i32,
        /// What is wrong.
        problem: String,
    },
    /// One partition in two records.
    #[error("{topic}-{partition}: is listed twice")]
    PartitionTwice {
        /// Its topic.
        topic: String,
        /// Its number.
        partition: i32,
        /// Which of the partitions told repeats an earlier one, counted from 0 as they came.
        record: usize,
    },
    /// More replicas or partitions than the model can number.
    #[error("more than {max} replicas", max = Slot::MAX)]
    TooManyReplicas,
    /// More pairs of a broker and a topic than anybody has memory for: replicas are counted for each.
    #[error("{brokers} brokers with {topics} topics: more than {max} pairs of the two", max = MOST_PAIRS)]
    TooManyPairs {
        /// Brokers.
        brokers: usize,
        /// Topics.
        topics: usize,
    },
    /// No broker, or none that lives.
    #[error("there is no broker that is alive")]
    NoBroker,
}
