//! `kafka_cluster_state`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::json::{Double, Version};

/// The answer of `kafka_cluster_state`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClusterState {
    /// By partition.
    #[serde(rename = "KafkaPartitionState")]
    pub partitions: PartitionsState,
    /// By broker.
    #[serde(rename = "KafkaBrokerState")]
    pub brokers: BrokersState,
    /// Always 1.
    pub version: Version,
}

/// Partitions that something is wrong with. One can be in several lists.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct PartitionsState {
    /// Nobody leads them.
    pub offline: Vec<PartitionEntry>,
    /// A replica is not in sync.
    pub urp: Vec<PartitionEntry>,
    /// Nothing is wrong with them; only if asked for (`verbose`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other: Option<Vec<PartitionEntry>>,
    /// A replica lies where nobody can read it.
    pub with_offline_replicas: Vec<PartitionEntry>,
    /// Fewer are in sync than must be.
    pub under_min_isr: Vec<PartitionEntry>,
}

/// One partition as Kafka sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct PartitionEntry {
    /// Brokers in sync.
    pub in_sync: Vec<i32>,
    /// Who leads; -1 if nobody does.
    pub leader: i32,
    /// Brokers that are not in sync.
    pub out_of_sync: Vec<i32>,
    /// Brokers of which the replica cannot be read.
    pub offline: Vec<i32>,
    /// Its number.
    pub partition: i32,
    /// How many must be in sync.
    pub min_isr: i32,
    /// Brokers that have it, the preferred leader first.
    pub replicas: Vec<i32>,
    /// Its topic.
    pub topic: String,
    /// Whether old segments lie elsewhere; not every server says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote_storage_enabled: Option<bool>,
}

/// By broker. Maps that count trouble are empty when there is none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct BrokersState {
    /// Replicas that cannot be read.
    pub offline_replica_count_by_broker_id: BTreeMap<i32, u64>,
    /// Replicas.
    pub replica_count_by_broker_id: BTreeMap<i32, u64>,
    /// Log directories that cannot be read, or `broker_dead`, or `timed_out`.
    pub offline_log_dirs_by_broker_id: BTreeMap<i32, Vec<String>>,
    /// Names of broker sets.
    pub broker_set_by_broker_id: BTreeMap<i32, String>,
    /// Log directories that can be read, or `broker_dead`, or `timed_out`.
    pub online_log_dirs_by_broker_id: BTreeMap<i32, Vec<String>>,
    /// Replicas that lead.
    pub leader_count_by_broker_id: BTreeMap<i32, u64>,
    /// Replicas that are not in sync.
    pub out_of_sync_count_by_broker_id: BTreeMap<i32, u64>,
    /// Over all of them.
    pub summary: ClusterSummary,
    /// Whether it is the controller.
    pub is_controller: BTreeMap<i32, bool>,
}

/// A cluster in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[allow(missing_docs, reason = "they say what they are")]
pub struct ClusterSummary {
    pub std_leaders_per_broker: Double,
    pub leaders: u64,
    pub max_leaders_per_broker: u64,
    pub topics: u64,
    pub max_replicas_per_broker: u64,
    pub std_replicas_per_broker: Double,
    pub brokers: u64,
    pub avg_replication_factor: Double,
    pub avg_leaders_per_broker: Double,
    pub replicas: u64,
    pub avg_replicas_per_broker: Double,
}
