//! `Kafka.spec.cruiseControl`.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    FreeForm, UnknownFields, admission, numbers, schema,
    workload::{JvmOptions, Resources},
};

/// Cruise Control, which plans and carries out rebalances.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct CruiseControlSpec {
    /// Container image. Default: Evenkeel's own engine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,

    /// Cruise Control's own settings, such as `anomaly.detection.goals`. Keys that begin with
    /// `evenkeel.` are for the operator. Settings that the operator needs for itself are refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::free_form")]
    pub config: Option<FreeForm>,

    /// What the brokers can take. Disks are known already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub broker_capacity: Option<BrokerCapacity>,

    /// When the cluster is rebalanced without being asked: one entry for each mode. A mode that is
    /// not listed is off.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = admission::MAX_AUTO_REBALANCE_ENTRIES),
        extend("x-kubernetes-validations" = admission::auto_rebalance())
    )]
    pub auto_rebalance: Option<Vec<AutoRebalance>>,

    /// CPU and memory of Cruise Control.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,

    /// Options of the Java virtual machine, if the image has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jvm_options: Option<JvmOptions>,

    /// Labels, annotations and pod settings for the objects that the operator makes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::free_form")]
    pub template: Option<FreeForm>,

    /// Further users of the REST API.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_users: Option<ApiUsers>,

    /// Fields that this type does not know.
    #[serde(flatten)]
    pub unknown: UnknownFields,
}

/// One mode of automatic rebalancing.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct AutoRebalance {
    /// What sets the rebalance off: `add-brokers` after brokers were added, `remove-brokers` before
    /// brokers are removed, `imbalance` when goals are violated.
    pub mode: AutoRebalanceMode,

    /// The KafkaRebalance whose goals and options are used. It must be marked as a template. Left
    /// out, Cruise Control's default goals are used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template: Option<TemplateRef>,

    /// Deprecated: write `template.name` instead. If both are there, `template.name` counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config: Option<String>,

    /// Fields that this type does not know.
    #[serde(flatten)]
    pub unknown: UnknownFields,
}

impl AutoRebalance {
    /// The name of the template, in whichever form it is written.
    pub fn template_name(&self) -> Option<&str> {
        let successor = self.template.as_ref().and_then(|template| template.name.as_deref());
        successor.or(self.config.as_deref())
    }
}

/// What sets an automatic rebalance off.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[serde(rename_all = "kebab-case")]
pub enum AutoRebalanceMode {
    /// Brokers were added.
    AddBrokers,
    /// Brokers are to be removed.
    RemoveBrokers,
    /// Goals are violated.
    Imbalance,
}

impl AutoRebalanceMode {
    /// The mode as it is written in resources and in the names of generated ones.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AddBrokers => "add-brokers",
            Self::RemoveBrokers => "remove-brokers",
            Self::Imbalance => "imbalance",
        }
    }
}

impl fmt::Display for AutoRebalanceMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A KafkaRebalance in the same namespace that is marked as a template.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
pub struct TemplateRef {
    /// Name of the KafkaRebalance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,

    /// Fields that this type does not know.
    #[serde(flatten)]
    pub unknown: UnknownFields,
}

/// What the brokers can take.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct BrokerCapacity {
    /// CPU cores, such as `1.500` or `1500m`. Default: what the pool's `resources` say.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[0-9]+([.][0-9]{0,3}|[m]?)$"))]
    pub cpu: Option<String>,

    /// Bytes that a broker can receive in a second, such as `10000KiB/s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[0-9]+([KMG]i?)?B/s$"))]
    pub inbound_network: Option<String>,

    /// Bytes that a broker can send in a second, such as `10000KiB/s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[0-9]+([KMG]i?)?B/s$"))]
    pub outbound_network: Option<String>,

    /// Brokers that differ from the others. If a broker is listed twice, the first entry counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overrides: Option<Vec<BrokerCapacityOverride>>,

    /// Fields that this type does not know.
    #[serde(flatten)]
    pub unknown: UnknownFields,
}

/// What particular brokers can take.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct BrokerCapacityOverride {
    /// Ids of the brokers.
    #[serde(default, deserialize_with = "numbers::optional_valid_list", skip_serializing_if = "Option::is_none")]
    pub brokers: Option<Vec<i32>>,

    /// CPU cores, such as `1.500` or `1500m`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[0-9]+([.][0-9]{0,3}|[m]?)$"))]
    pub cpu: Option<String>,

    /// Bytes that a broker can receive in a second, such as `10000KiB/s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[0-9]+([KMG]i?)?B/s$"))]
    pub inbound_network: Option<String>,

    /// Bytes that a broker can send in a second, such as `10000KiB/s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[0-9]+([KMG]i?)?B/s$"))]
    pub outbound_network: Option<String>,

    /// Fields that this type does not know.
    #[serde(flatten)]
    pub unknown: UnknownFields,
}

/// Further users of Cruise Control's REST API.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ApiUsers {
    /// Format of the list of users: `hashLoginService`.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<String>,

    /// Where the list of users is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value_from: Option<ApiUsersSource>,

    /// Fields that this type does not know.
    #[serde(flatten)]
    pub unknown: UnknownFields,
}

/// Where a list of users is.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ApiUsersSource {
    /// A key of a Secret in the same namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_key_ref: Option<SecretKeyRef>,

    /// Fields that this type does not know.
    #[serde(flatten)]
    pub unknown: UnknownFields,
}

/// A key of a Secret in the same namespace.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
pub struct SecretKeyRef {
    /// Name of the Secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,

    /// Key in the Secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,

    /// Fields that this type does not know.
    #[serde(flatten)]
    pub unknown: UnknownFields,
}
