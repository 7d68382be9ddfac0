//! The custom resources that Evenkeel speaks, which are Strimzi's: [`Kafka`], [`KafkaNodePool`],
//! [`KafkaRebalance`] and [`StrimziPodSet`], with everything that is said about them in metadata
//! and status.
//!
//! | module | what it holds |
//! |---|---|
//! | [`kafka`], [`node_pool`], [`rebalance`], [`pod_set`] | one resource each |
//! | [`storage`], [`workload`] | parts that several resources share |
//! | [`crd`] | the CustomResourceDefinitions, as objects and as YAML |
//! | [`admission`] | the CEL rules in them |
//! | [`mod@unknown_fields`] | names what a user wrote and no type of ours knows |
//! | [`conditions`], [`reasons`] | status conditions: their order, their times, their reasons |
//! | [`annotations`], [`labels`] | names in metadata, and what their values mean |
//! | [`names`] | what can be the name of an object |
//! | [`node_ids`] | lists of node ids such as `[0, 5, 10-20]` |
//!
//! Nothing here talks to a cluster, reads a clock or fails at run time for want of either.
//!
//! The doc comments of the types are the descriptions in the CRDs: `kubectl explain` shows them.

#![expect(clippy::duplicated_attributes, reason = "printer columns of one type are not duplicates")]

pub mod admission;
pub mod annotations;
pub mod conditions;
pub mod crd;
pub mod kafka;
pub mod labels;
pub mod names;
pub mod node_ids;
pub mod node_pool;
mod numbers;
pub mod pod_set;
pub mod reasons;
pub mod rebalance;
mod schema;
pub mod storage;
pub mod unknown_fields;
pub mod workload;

pub use conditions::Condition;
pub use crd::{crds, crds_yaml};
pub use kafka::{Kafka, KafkaSpec, KafkaStatus};
pub use node_ids::NodeIdRanges;
pub use node_pool::{KafkaNodePool, KafkaNodePoolSpec, KafkaNodePoolStatus};
pub use pod_set::{StrimziPodSet, StrimziPodSetSpec, StrimziPodSetStatus};
pub use reasons::Reason;
pub use rebalance::{KafkaRebalance, KafkaRebalanceSpec, KafkaRebalanceStatus};
pub use schema::{FreeForm, UnknownFields};
pub use unknown_fields::unknown_fields;
