//! The result of everything that plans.

use std::fmt;

use serde::de::{Deserializer, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};

use super::load::ClusterLoad;
use crate::json::{Double, Version};
use crate::parameter::choice;

/// The answer of `proposals`, `rebalance`, `add_broker` and the like.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OptimizationResult {
    /// The plan in numbers.
    pub summary: Summary,
    /// The plan; only if asked for (`verbose`). Of one that is read only the biggest are kept.
    #[serde(default, deserialize_with = "biggest", skip_serializing_if = "Option::is_none")]
    pub proposals: Option<Vec<Proposal>>,
    /// The loads as they are; only if asked for (`verbose`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_before_optimization: Option<ClusterLoad>,
    /// Each goal, in the order in which they were pursued.
    #[serde(default)]
    pub goal_summary: Vec<GoalSummary>,
    /// The loads as they will be. A summary without loads is still a result.
    #[serde(default)]
    pub load_after_optimization: ClusterLoad,
    /// Always 1.
    #[serde(default)]
    pub version: Version,
}

/// The plan in numbers. Those at the end are not in the original, and absent when it answered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// Replicas that change the disk but not the broker.
    #[serde(default)]
    pub num_intra_broker_replica_movements: u64,
    /// Partitions of which a replica changes the broker.
    #[serde(default)]
    pub num_replica_movements: u64,
    /// How balanced the cluster will be, from 0 to 100.
    #[serde(default)]
    pub on_demand_balancedness_score_after: Double,
    /// MB that change the disk but not the broker.
    #[serde(rename = "intraBrokerDataToMoveMB", default)]
    pub intra_broker_data_to_move_mb: u64,
    /// How much of the cluster is known.
    #[serde(default)]
    pub monitored_partitions_percentage: Double,
    /// What should be added or taken away.
    #[serde(default)]
    pub provision_recommendation: String,
    /// Brokers that get no replicas.
    #[serde(default)]
    pub excluded_brokers_for_replica_move: Vec<i32>,
    /// Brokers that get no leaders.
    #[serde(default)]
    pub excluded_brokers_for_leadership: Vec<i32>,
    /// Whether the cluster has the right size.
    #[serde(default)]
    pub provision_status: ProvisionStatus,
    /// How balanced the cluster is, from 0 to 100.
    #[serde(default)]
    pub on_demand_balancedness_score_before: Double,
    /// Windows that the loads come from.
    #[serde(default)]
    pub recent_windows: u64,
    /// MB that change the broker.
    #[serde(rename = "dataToMoveMB", default)]
    pub data_to_move_mb: u64,
    /// Topics that stay.
    #[serde(default)]
    pub excluded_topics: Vec<String>,
    /// Partitions of which only the leader changes.
    #[serde(default)]
    pub num_leader_movements: u64,
    /// What to send as `proposal_id` to carry out exactly this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proposal_id: Option<String>,
    /// How long carrying it out should take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_minutes: Option<Double>,
    /// What would be better still, but costs more than was allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_undone: Option<LeftUndone>,
    /// Goals that were asked for and left out, since what they need is not measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unmeasured_goals: Vec<String>,
}

/// What did not fit into `max_data_to_move_mb`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LeftUndone {
    /// Partitions that would have changed.
    pub num_changes: u64,
    /// MB that would have moved.
    #[serde(rename = "dataToMoveMB")]
    pub data_to_move_mb: u64,
}

choice! {
    /// Whether the cluster has the right size.
    #[derive(Default)]
    pub enum ProvisionStatus {
        /// It has.
        RightSized = "RIGHT_SIZED",
        /// It is too small.
        UnderProvisioned = "UNDER_PROVISIONED",
        /// It is larger than it has to be.
        OverProvisioned = "OVER_PROVISIONED",
        /// No goal said anything about it.
        #[default]
        Undecided = "UNDECIDED",
    }
}

/// How one partition changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Proposal {
    /// Who leads.
    pub old_leader: i32,
    /// Where its replicas are.
    pub old_replicas: Vec<i32>,
    /// Which one.
    pub topic_partition: TopicPartition,
    /// Where they will be; the first one leads.
    pub new_replicas: Vec<i32>,
    /// Not in the original: the goal that it serves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
    /// Not in the original: how much is copied for it, between brokers and between disks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

/// How many proposals are kept of a plan that is read: a large cluster's has hundreds of thousands, and clients show a few.
pub const KEPT: usize = 100;

/// Reads proposals. Of more than are kept, those that copy the most, the biggest first; those that do not say how much
/// come last.
fn biggest<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<Proposal>>, D::Error> {
    Option::<Biggest>::deserialize(deserializer).map(|read| read.map(|Biggest(proposals)| proposals))
}

struct Biggest(Vec<Proposal>);

impl<'de> Deserialize<'de> for Biggest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneByOne;

        impl<'de> Visitor<'de> for OneByOne {
            type Value = Biggest;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("proposals")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut proposals: A) -> Result<Biggest, A::Error> {
                let mut kept: Vec<Proposal> = Vec::new();
                while let Some(proposal) = proposals.next_element()? {
                    kept.push(proposal);
                    if kept.len() == 2 * KEPT {
                        keep_the_biggest(&mut kept);
                    }
                }
                if kept.len() > KEPT {
                    keep_the_biggest(&mut kept);
                }
                Ok(Biggest(kept))
            }
        }

        deserializer.deserialize_seq(OneByOne)
    }
}

fn keep_the_biggest(proposals: &mut Vec<Proposal>) {
    let name = |proposal: &Proposal| (proposal.topic_partition.topic.clone(), proposal.topic_partition.partition);
    proposals.sort_by_cached_key(|proposal| (std::cmp::Reverse(proposal.bytes), name(proposal)));
    proposals.truncate(KEPT);
}

/// A partition, with the hash that Java would have cached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopicPartition {
    hash: i32,
    /// Its number.
    pub partition: i32,
    /// Its topic.
    pub topic: String,
}

impl TopicPartition {
    /// The partition of this number.
    pub fn new(topic: impl Into<String>, partition: i32) -> Self {
        let topic = topic.into();
        let of_topic =
            topic.encode_utf16().fold(0_i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)));
        let hash = 31_i32.wrapping_add(partition).wrapping_mul(31).wrapping_add(of_topic);
        Self { hash, partition, topic }
    }
}

impl fmt::Display for TopicPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.topic, self.partition)
    }
}

/// What became of one goal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GoalSummary {
    /// The cluster after it was pursued.
    pub cluster_model_stats: ClusterModelStats,
    /// How long that took.
    #[serde(default)]
    pub optimization_time_ms: u64,
    /// Whether it holds.
    pub status: GoalStatus,
    /// Its short name.
    pub goal: String,
}

choice! {
    /// What became of a goal.
    pub enum GoalStatus {
        /// It does not hold.
        Violated = "VIOLATED",
        /// It holds, since something is moved for it.
        Fixed = "FIXED",
        /// It holds as it is.
        NoAction = "NO-ACTION",
    }
}

/// A cluster in numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClusterModelStats {
    /// Over brokers.
    pub statistics: Statistics,
    /// How much of everything there is.
    pub metadata: ModelMetadata,
}

/// How much of everything there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "they say what they are")]
pub struct ModelMetadata {
    pub topics: u64,
    pub replicas: u64,
    pub brokers: u64,
}

/// Over brokers. Averages and deviations of counts are fractions, the extremes are not.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
#[allow(missing_docs, reason = "they say what they are")]
pub struct Statistics {
    pub avg: Statistic<Double>,
    pub std: Statistic<Double>,
    pub min: Statistic<u64>,
    pub max: Statistic<u64>,
}

/// One figure for each thing that is measured or counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "they say what they are")]
pub struct Statistic<Count> {
    pub disk: Double,
    pub replicas: Count,
    pub leader_replicas: Count,
    pub cpu: Double,
    pub network_outbound: Double,
    pub network_inbound: Double,
    pub topic_replicas: Count,
    pub potential_nw_out: Double,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_has_the_hash_that_java_gives_it() {
        assert_eq!(TopicPartition::new("orders", 1).hash, -1008769339);
        assert_eq!(TopicPartition::new("orders", 2).hash, -1008769308);
        assert_eq!(TopicPartition::new("__CruiseControlMetrics", 0).hash, 1366322332);
    }
}
