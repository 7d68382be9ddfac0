//! `KafkaRebalance`: one request to rebalance a cluster, from the proposal to its end.

use std::{fmt, str::FromStr};

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Condition, FreeForm, UnknownFields, admission, conditions, kafka::TemplateRef, numbers, schema};

/// What to move, and how.
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "kafka.strimzi.io",
    version = "v1",
    kind = "KafkaRebalance",
    plural = "kafkarebalances",
    singular = "kafkarebalance",
    shortname = "kr",
    category = "strimzi",
    namespaced,
    status = "KafkaRebalanceStatus",
    derive = "PartialEq",
    doc = "A request to rebalance a Kafka cluster. The label strimzi.io/cluster names the Kafka; the annotation strimzi.io/rebalance approves (approve), stops (stop) or renews (refresh) it.",
    printcolumn(
        name = "Cluster",
        type_ = "string",
        description = "The Kafka cluster",
        json_path = r".metadata.labels.strimzi\.io/cluster"
    ),
    printcolumn(
        name = "Template",
        type_ = "string",
        description = "Whether this only holds settings for other rebalances",
        json_path = r".metadata.annotations.strimzi\.io/rebalance-template"
    ),
    // The API server prints the first match only: the state must stand first in the conditions.
    printcolumn(
        name = "Status",
        type_ = "string",
        description = "Where the rebalance stands",
        json_path = ".status.conditions[*].type"
    )
)]
#[serde(rename_all = "camelCase", remote = "Self")]
#[schemars(rename = "KafkaRebalanceSpec")]
pub struct KafkaRebalanceSpec {
    /// What is asked for: `full` evens out the whole cluster, `add-brokers` moves data to the
    /// brokers listed, `remove-brokers` moves all data off them, `remove-disks` moves all data off
    /// the volumes listed.
    #[serde(default)]
    pub mode: RebalanceMode,

    /// Ids of the brokers, for `add-brokers` and `remove-brokers`.
    #[serde(default, deserialize_with = "numbers::optional_valid_list", skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = admission::MAX_BROKER_IDS),
        extend("x-kubernetes-validations" = admission::broker_ids())
    )]
    pub brokers: Option<Vec<i32>>,

    /// Goals by name, the most important first. Default: Cruise Control's `default.goals`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goals: Option<Vec<String>>,

    /// Whether `goals` may leave out hard goals. Default: `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skip_hard_goal_check: Option<bool>,

    /// Whether to even out the disks within each broker instead of the brokers. For mode `full`,
    /// JBOD storage, and without `goals`. Default: `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rebalance_disk: Option<bool>,

    /// Regular expression of the topics to leave alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub excluded_topics: Option<String>,

    /// How many replicas may move into and out of one broker at a time. 0 or left out: Cruise
    /// Control's own setting, 5.
    #[serde(default, deserialize_with = "numbers::optional_valid", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub concurrent_partition_movements_per_broker: Option<i32>,

    /// How many replicas may move between the disks of one broker at a time. 0 or left out: Cruise
    /// Control's own setting, 2.
    #[serde(default, deserialize_with = "numbers::optional_valid", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub concurrent_intra_broker_partition_movements: Option<i32>,

    /// How many leaderships may move at a time. 0 or left out: Cruise Control's own setting, 1000.
    #[serde(default, deserialize_with = "numbers::optional_valid", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub concurrent_leader_movements: Option<i32>,

    /// Bytes per second that moving replicas may use of a broker's network. 0 or left out: Cruise
    /// Control's own setting, no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub replication_throttle: Option<i64>,

    /// Class names of the strategies that order the moves, the most important first. Default: the
    /// order in which they were planned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replica_movement_strategies: Option<Vec<String>>,

    /// Volumes to empty, for `remove-disks`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = admission::MAX_BROKERS_WITH_VOLUMES),
        extend(
            "x-kubernetes-list-type" = "map",
            "x-kubernetes-list-map-keys" = ["brokerId"],
            "x-kubernetes-validations" = admission::brokers_with_volumes()
        )
    )]
    pub move_replicas_off_volumes: Option<Vec<BrokerVolumes>>,

    /// A KafkaRebalance that is marked as a template: goals and options that are not set here are
    /// taken from there. Mode and brokers never are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template: Option<TemplateRef>,

    /// Fields that this type does not know.
    #[serde(flatten)]
    pub unknown: UnknownFields,
}

schema::may_be_left_out!(KafkaRebalanceSpec);

/// What a rebalance is asked to do.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[serde(rename_all = "kebab-case")]
pub enum RebalanceMode {
    /// Even out the whole cluster.
    #[default]
    Full,
    /// Move data to brokers that were added.
    AddBrokers,
    /// Move all data off brokers that are to be removed.
    RemoveBrokers,
    /// Move all data off volumes that are to be removed.
    RemoveDisks,
}

impl RebalanceMode {
    /// The mode as it is written in resources.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::AddBrokers => "add-brokers",
            Self::RemoveBrokers => "remove-brokers",
            Self::RemoveDisks => "remove-disks",
        }
    }
}

impl fmt::Display for RebalanceMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Volumes of one broker.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct BrokerVolumes {
    /// Id of the broker.
    // Required by our schema, not by Strimzi's: what is admitted there must not make the resource unreadable, and with it
    // every list that it is in.
    #[serde(default = "nobody", deserialize_with = "numbers::valid")]
    #[schemars(!default)]
    pub broker_id: i32,

    /// Ids of its volumes.
    #[schemars(
        length(max = admission::MAX_VOLUME_IDS),
        extend("x-kubernetes-validations" = admission::volume_ids())
    )]
    #[serde(default, deserialize_with = "numbers::valid_list")]
    #[schemars(!default)]
    pub volume_ids: Vec<i32>,

    /// Fields that this type does not know.
    #[serde(flatten)]
    pub unknown: UnknownFields,
}

/// The id of a broker that is not named: no broker has it.
fn nobody() -> i32 {
    numbers::NONE_SUCH
}

/// How far a rebalance has come.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct KafkaRebalanceStatus {
    /// The state first (`PendingProposal`, `ProposalReady`, `Rebalancing`, `Stopped`, `Ready`,
    /// `NotReady` or `ReconciliationPaused`), warnings after it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub conditions: Vec<Condition>,

    /// The generation of the resource that the rest of the status speaks of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// Cruise Control's id of the task that was asked for last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,

    /// Where to follow the rebalance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<RebalanceProgress>,

    /// What the proposal would do, or did: Cruise Control's own summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::free_form")]
    pub optimization_result: Option<FreeForm>,
}

/// Where to follow a rebalance.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct RebalanceProgress {
    /// Name of the ConfigMap with the progress and the load of each broker.
    // Required by our schema, not by Strimzi's.
    #[serde(default)]
    #[schemars(!default)]
    pub rebalance_progress_config_map: String,
}

/// Where a rebalance stands. `New` is never written: it is what a resource without a state is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RebalanceState {
    /// Nothing was done yet.
    #[default]
    New,
    /// A proposal is being made.
    PendingProposal,
    /// A proposal waits for approval.
    ProposalReady,
    /// Data moves.
    Rebalancing,
    /// It was stopped.
    Stopped,
    /// It failed, or cannot begin.
    NotReady,
    /// It is done.
    Ready,
    /// The operator was told to leave it alone.
    ReconciliationPaused,
}

impl RebalanceState {
    /// All states.
    pub const ALL: [Self; 8] = [
        Self::New,
        Self::PendingProposal,
        Self::ProposalReady,
        Self::Rebalancing,
        Self::Stopped,
        Self::NotReady,
        Self::Ready,
        Self::ReconciliationPaused,
    ];

    /// The `type` of the condition that says so.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::New => "New",
            Self::PendingProposal => "PendingProposal",
            Self::ProposalReady => "ProposalReady",
            Self::Rebalancing => "Rebalancing",
            Self::Stopped => "Stopped",
            Self::NotReady => conditions::NOT_READY,
            Self::Ready => conditions::READY,
            Self::ReconciliationPaused => "ReconciliationPaused",
        }
    }
}

impl fmt::Display for RebalanceState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The text is no state of a rebalance.
#[derive(thiserror::Error, Clone, Copy, Debug, PartialEq, Eq)]
#[error("no such state of a KafkaRebalance")]
pub struct NoSuchState;

impl FromStr for RebalanceState {
    type Err = NoSuchState;

    fn from_str(text: &str) -> Result<Self, NoSuchState> {
        Self::ALL.into_iter().find(|state| state.as_str() == text).ok_or(NoSuchState)
    }
}

impl KafkaRebalance {
    /// Where this rebalance stands. If several conditions are states, which ours never are, the first
    /// counts.
    pub fn state(&self) -> RebalanceState {
        let conditions = self.status.iter().flat_map(|status| &status.conditions);
        conditions.filter_map(|condition| condition.type_.parse().ok()).next().unwrap_or_default()
    }
}
