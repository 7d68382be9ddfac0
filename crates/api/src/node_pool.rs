//! `KafkaNodePool`: nodes of one Kafka cluster that are alike.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Condition, FreeForm, UnknownFields, numbers, schema,
    storage::Storage,
    workload::{JvmOptions, Resources},
};

/// What the nodes of a pool should be.
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[kube(
    group = "kafka.strimzi.io",
    version = "v1",
    kind = "KafkaNodePool",
    plural = "kafkanodepools",
    singular = "kafkanodepool",
    shortname = "knp",
    category = "strimzi",
    namespaced,
    status = "KafkaNodePoolStatus",
    derive = "PartialEq",
    doc = "Nodes of one Kafka cluster that are alike. The label strimzi.io/cluster names the Kafka.",
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.replicas",
        label_selector_path = ".status.labelSelector"
    ),
    printcolumn(
        name = "Desired replicas",
        type_ = "integer",
        description = "How many nodes are asked for",
        json_path = ".spec.replicas"
    ),
    printcolumn(name = "Roles", type_ = "string", description = "What the nodes do", json_path = ".status.roles"),
    printcolumn(name = "NodeIds", type_ = "string", description = "Ids of the nodes", json_path = ".status.nodeIds")
)]
#[serde(rename_all = "camelCase")]
pub struct KafkaNodePoolSpec {
    /// How many nodes there should be. `kubectl scale` changes it.
    #[serde(deserialize_with = "numbers::nearest")]
    #[schemars(range(min = 0))]
    pub replicas: i32,

    /// What the nodes do: `broker`, `controller`, or both.
    pub roles: Vec<ProcessRole>,

    /// Disks of each node.
    pub storage: Storage,

    /// CPU and memory of each node. Default: as in the Kafka.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,

    /// Options of the nodes' Java virtual machine. Default: as in the Kafka.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jvm_options: Option<JvmOptions>,

    /// Labels, annotations and pod settings for the objects that the operator makes. Default: as in
    /// the Kafka.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::free_form")]
    pub template: Option<FreeForm>,

    /// Fields that this type does not know.
    #[serde(flatten)]
    pub unknown: UnknownFields,
}

/// What a node of Kafka does.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[serde(rename_all = "lowercase")]
pub enum ProcessRole {
    /// It takes part in the metadata quorum.
    Controller,
    /// It keeps partitions.
    Broker,
}

/// What the nodes of a pool are.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct KafkaNodePoolStatus {
    /// Warnings and errors of this pool.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub conditions: Vec<Condition>,

    /// The generation of the resource that the rest of the status speaks of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// Ids of the nodes. This is the memory of which id belongs to which pool.
    #[serde(default, deserialize_with = "numbers::recorded_ids", skip_serializing_if = "Vec::is_empty")]
    pub node_ids: Vec<i32>,

    /// What the nodes do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<ProcessRole>,

    /// Kafka's own id of the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<String>,

    /// How many nodes there are.
    #[serde(default, deserialize_with = "numbers::optional_nearest", skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,

    /// Selector of the pool's pods, for autoscalers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<String>,
}
