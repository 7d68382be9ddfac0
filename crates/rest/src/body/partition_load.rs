//! `partition_load`.

use serde::{Deserialize, Serialize};

use crate::json::{Double, Version};

/// The answer of `partition_load`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PartitionLoad {
    /// The heaviest first.
    pub records: Vec<PartitionRecord>,
    /// Always 1.
    pub version: Version,
}

/// What one partition makes its leader do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PartitionRecord {
    /// KB/s in.
    pub network_inbound: Double,
    /// Messages per second in.
    #[serde(rename = "msg_in")]
    pub msg_in: Double,
    /// The broker that leads.
    pub leader: i32,
    /// The others.
    pub followers: Vec<i32>,
    /// Its number.
    pub partition: i32,
    /// MB.
    pub disk: Double,
    /// KB/s out.
    pub network_outbound: Double,
    /// Its topic.
    pub topic: String,
    /// Percent of a core.
    pub cpu: Double,
}
