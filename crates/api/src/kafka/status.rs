//! `Kafka.status`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::AutoRebalanceMode;
use crate::{Condition, FreeForm, numbers, schema};

/// What a Kafka cluster is.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct KafkaStatus {
    /// The state first (`Ready` or `NotReady`), warnings after it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub conditions: Vec<Condition>,

    /// The generation of the resource that the rest of the status speaks of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// Addresses of the listeners.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub listeners: Vec<ListenerStatus>,

    /// The node pools that belong to this cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kafka_node_pools: Vec<NodePoolName>,

    /// Kafka's own id of the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<String>,

    /// Version of the operator that last brought the cluster to what was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operator_last_successful_version: Option<String>,

    /// The version of Kafka in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kafka_version: Option<String>,

    /// The metadata version in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kafka_metadata_version: Option<String>,

    /// How the cluster is secured, as another operator may have written it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::free_form")]
    pub cluster_security: Option<FreeForm>,

    /// Automatic rebalancing. Here only while it is configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_rebalance: Option<AutoRebalanceStatus>,
}

/// What automatic rebalancing is doing, and what is queued.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct AutoRebalanceStatus {
    /// What is being done.
    #[serde(default)]
    pub state: AutoRebalanceState,

    /// When this last changed, in UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<String>,

    /// Running and queued work.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modes: Vec<AutoRebalanceModeStatus>,
}

/// What automatic rebalancing is doing.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AutoRebalanceState {
    /// Nothing.
    #[default]
    Idle,
    /// It empties brokers that are to be removed.
    RebalanceOnScaleDown,
    /// It moves data to brokers that were added.
    RebalanceOnScaleUp,
    /// It mends violated goals.
    RebalanceOnImbalance,
}

/// Running or queued work of one mode.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
pub struct AutoRebalanceModeStatus {
    /// The mode.
    pub mode: AutoRebalanceMode,

    /// The brokers that were added or are to be removed. Not there for `imbalance`.
    #[serde(default, deserialize_with = "numbers::recorded_ids", skip_serializing_if = "Vec::is_empty")]
    pub brokers: Vec<i32>,
}

/// Where one listener can be reached.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ListenerStatus {
    /// Name of the listener.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,

    /// Addresses of the listener.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<ListenerAddress>,

    /// The same as one line, for a client's `bootstrap.servers`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bootstrap_servers: Option<String>,

    /// PEM certificates that a client must trust. Not there if the listener is not encrypted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub certificates: Vec<String>,
}

/// Host and port of a listener.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
pub struct ListenerAddress {
    /// Name or IP address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,

    /// Port.
    #[serde(default, deserialize_with = "numbers::optional_nearest", skip_serializing_if = "Option::is_none")]
    pub port: Option<i32>,
}

/// A node pool of the cluster.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
pub struct NodePoolName {
    /// Name of the KafkaNodePool.
    // Required by our schema, not by Strimzi's.
    #[serde(default)]
    #[schemars(!default)]
    pub name: String,
}
