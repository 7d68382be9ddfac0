//! A simulated Kafka cluster: rules instead of canned answers.
//!
//! [`Cluster`] is the heart: brokers, topics, replicas, copies, throttles, load and faults, moved
//! on by [`Cluster::tick`] and by typed calls that answer as Apache Kafka 4.3 does, quirks
//! included. It is pure: no waiting, no clock, no files, one thread, ordered maps, and all chance
//! from one seed, so that the same story gives the same bytes. Everything but `serve` stays so.

pub mod broker;
pub mod cluster;
mod code;
mod dice;
mod ids;
pub mod log;
pub mod metrics;
pub mod serve;
pub mod traffic;

pub use cluster::{Cluster, Options};
pub use code::{Code, Refusal};
pub use ids::{BrokerId, Millis, TopicId, TopicPartition};
