//! Where the nodes of a cluster keep their data.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{UnknownFields, admission, numbers};

/// The disks of a Kafka node.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Storage {
    /// `persistent-claim` for one volume that outlives the pod, `ephemeral` for one that does not,
    /// `jbod` for several, listed under `volumes`.
    #[serde(rename = "type")]
    pub type_: StorageType,

    /// The disks of a storage of type `jbod`. An id, once given, belongs to that disk for good.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = admission::MAX_JBOD_VOLUMES),
        extend("x-kubernetes-validations" = admission::jbod_volumes())
    )]
    pub volumes: Option<Vec<Volume>>,

    /// Size of the persistent volume claim, such as `100Gi`. Needed for `persistent-claim`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<String>,

    /// Storage class of the persistent volume claim. Default: the cluster's default class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,

    /// Labels that select the persistent volume to claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<BTreeMap<String, String>>,

    /// Whether the claim is deleted together with its node or cluster. Default: `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delete_claim: Option<bool>,

    /// Upper limit of an `ephemeral` volume, such as `5Gi`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size_limit: Option<String>,

    /// `shared` puts the KRaft metadata log on this volume, beside partition data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kraft_metadata: Option<KraftMetadata>,

    /// Fields that this type does not know.
    #[serde(flatten)]
    pub unknown: UnknownFields,
}

/// One disk of a storage of type `jbod`.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Volume {
    /// The number of this disk. Brokers name its directory after it, and a rebalance in mode
    /// `remove-disks` asks for it.
    #[serde(default, deserialize_with = "numbers::optional_valid", skip_serializing_if = "Option::is_none")]
    pub id: Option<i32>,

    /// `persistent-claim` or `ephemeral`.
    #[serde(rename = "type")]
    pub type_: VolumeType,

    /// Size of the persistent volume claim, such as `100Gi`. Needed for `persistent-claim`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<String>,

    /// Storage class of the persistent volume claim. Default: the cluster's default class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,

    /// Labels that select the persistent volume to claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<BTreeMap<String, String>>,

    /// Whether the claim is deleted together with its node or cluster. Default: `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delete_claim: Option<bool>,

    /// Upper limit of an `ephemeral` volume, such as `5Gi`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size_limit: Option<String>,

    /// `shared` puts the KRaft metadata log on this volume, beside partition data. At most one
    /// volume may say so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kraft_metadata: Option<KraftMetadata>,

    /// Fields that this type does not know.
    #[serde(flatten)]
    pub unknown: UnknownFields,
}

/// What kind of storage a node has.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum StorageType {
    /// One volume that is lost with its pod.
    Ephemeral,
    /// One volume that outlives its pod.
    PersistentClaim,
    /// Several volumes.
    Jbod,
}

/// What kind of volume a disk of a `jbod` storage is.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum VolumeType {
    /// Lost with its pod.
    Ephemeral,
    /// Outlives its pod.
    PersistentClaim,
}

/// How a volume takes part in keeping KRaft's metadata log.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum KraftMetadata {
    /// The log shares this volume with partition data.
    Shared,
}
