//! `Kafka.spec.kafka`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    FreeForm, UnknownFields, numbers, schema,
    storage::Storage,
    workload::{JvmOptions, Resources},
};

/// Kafka itself.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct KafkaClusterSpec {
    /// Version of Kafka, such as `4.1.0`. Default: the newest that the operator knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,

    /// KRaft metadata version, such as `4.1-IV1`. Default: the one that belongs to `version`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata_version: Option<String>,

    /// Number of brokers of a cluster without node pools. Such a cluster also gets three
    /// controllers. A cluster with node pools ignores it: each pool has its own `replicas`.
    #[serde(default, deserialize_with = "numbers::optional_nearest", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub replicas: Option<i32>,

    /// Container image of the nodes. Default: the operator's image for `version`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,

    /// Where clients reach the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listeners: Option<Vec<Listener>>,

    /// Kafka's own settings, such as `min.insync.replicas: 2`. Settings that the operator needs for
    /// itself are refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::free_form")]
    pub config: Option<FreeForm>,

    /// Disks of the brokers of a cluster without node pools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage: Option<Storage>,

    /// How brokers learn which rack they are in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rack: Option<Rack>,

    /// CPU and memory of the nodes. A node pool may have its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,

    /// Options of the nodes' Java virtual machine. A node pool may have its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jvm_options: Option<JvmOptions>,

    /// Labels, annotations and pod settings for the objects that the operator makes. A node pool may
    /// have its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::free_form")]
    pub template: Option<FreeForm>,

    /// Fields that this type does not know.
    #[serde(flatten)]
    pub unknown: UnknownFields,
}

/// One way into the cluster.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Listener {
    /// Name of the listener, unique in the cluster: up to 11 lowercase letters and digits.
    #[schemars(regex(pattern = "^[a-z0-9]{1,11}$"))]
    pub name: String,

    /// Port of the listener inside the pod, unique in the cluster.
    #[serde(deserialize_with = "numbers::nearest")]
    #[schemars(range(min = 9092))]
    pub port: i32,

    /// How the listener is reached: `internal`, `cluster-ip`, `nodeport`, `loadbalancer`, `ingress`
    /// or `route`.
    #[serde(rename = "type")]
    pub type_: String,

    /// Whether the listener is encrypted.
    pub tls: bool,

    /// How clients prove who they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::free_form")]
    pub authentication: Option<FreeForm>,

    /// Further settings of the listener, such as its own certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::free_form")]
    pub configuration: Option<FreeForm>,

    /// Peers that may connect, as in a NetworkPolicy. Default: everyone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::free_form_list")]
    pub network_policy_peers: Option<Vec<FreeForm>>,

    /// Fields that this type does not know.
    #[serde(flatten)]
    pub unknown: UnknownFields,
}

/// How brokers learn which rack they are in.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Rack {
    /// Label of the Kubernetes nodes whose value is the rack, such as `topology.kubernetes.io/zone`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topology_key: Option<String>,

    /// Fields that this type does not know.
    #[serde(flatten)]
    pub unknown: UnknownFields,
}
