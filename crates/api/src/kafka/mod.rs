//! `Kafka`: one cluster, its settings, and the Cruise Control beside it.

mod cluster;
mod cruise_control;
mod status;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use cluster::{KafkaClusterSpec, Listener, Rack};
pub use cruise_control::{
    ApiUsers, ApiUsersSource, AutoRebalance, AutoRebalanceMode, BrokerCapacity, BrokerCapacityOverride,
    CruiseControlSpec, SecretKeyRef, TemplateRef,
};
pub use status::{
    AutoRebalanceModeStatus, AutoRebalanceState, AutoRebalanceStatus, KafkaStatus, ListenerAddress, ListenerStatus,
    NodePoolName,
};

use crate::{UnknownFields, numbers, schema};

/// What a Kafka cluster should be.
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "kafka.strimzi.io",
    version = "v1",
    kind = "Kafka",
    plural = "kafkas",
    singular = "kafka",
    shortname = "k",
    category = "strimzi",
    namespaced,
    status = "KafkaStatus",
    derive = "PartialEq",
    doc = "A Kafka cluster. Its nodes are described by KafkaNodePools that carry the label strimzi.io/cluster.",
    printcolumn(
        name = "Ready",
        type_ = "string",
        description = "Whether the cluster is as described",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#
    ),
    printcolumn(
        name = "Warnings",
        type_ = "string",
        description = "Whether there are warnings: see the conditions",
        json_path = r#".status.conditions[?(@.type=="Warning")].status"#
    ),
    printcolumn(
        name = "Kafka Version",
        type_ = "string",
        description = "The version of Kafka in use",
        json_path = ".status.kafkaVersion"
    ),
    printcolumn(
        name = "Metadata Version",
        type_ = "string",
        description = "The metadata version in use",
        json_path = ".status.kafkaMetadataVersion"
    )
)]
#[serde(rename_all = "camelCase", remote = "Self")]
#[schemars(rename = "KafkaSpec")]
pub struct KafkaSpec {
    /// Kafka itself: version, listeners, settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kafka: Option<KafkaClusterSpec>,

    /// Cruise Control, which plans and carries out rebalances. `{}` deploys it with its defaults;
    /// left out, there is none, and no rebalance is possible.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cruise_control: Option<CruiseControlSpec>,

    /// The certificate authority of the cluster itself: nodes, operator, Cruise Control.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_ca: Option<CertificateAuthority>,

    /// The certificate authority of Kafka's clients.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clients_ca: Option<CertificateAuthority>,

    /// When maintenance may begin, such as certificate renewal or a rebalance on imbalance: cron
    /// expressions with seconds, in UTC, such as `* * 0-1 ? * SUN,MON,TUE,WED,THU *`. Left out, at
    /// any time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maintenance_time_windows: Option<Vec<String>>,

    /// Fields that this type does not know.
    #[serde(flatten)]
    pub unknown: UnknownFields,
}

schema::may_be_left_out!(KafkaSpec);

impl KafkaSpec {
    /// The configured entry of a mode. None: that mode is switched off.
    pub fn auto_rebalance(&self, mode: AutoRebalanceMode) -> Option<&AutoRebalance> {
        self.auto_rebalances().iter().find(|entry| entry.mode == mode)
    }

    /// All modes of automatic rebalancing that are switched on.
    pub fn auto_rebalances(&self) -> &[AutoRebalance] {
        self.cruise_control.as_ref().and_then(|engine| engine.auto_rebalance.as_deref()).unwrap_or_default()
    }

    /// Paths of the fields in use that have a successor, each with that successor: the material of a
    /// Warning `DeprecatedFields`.
    pub fn deprecated_fields(&self) -> Vec<(String, &'static str)> {
        self.auto_rebalances()
            .iter()
            .enumerate()
            .filter(|(_, entry)| entry.config.is_some())
            .map(|(n, _)| (format!("spec.cruiseControl.autoRebalance[{n}].config"), "template.name"))
            .collect()
    }
}

/// How a certificate authority is kept.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct CertificateAuthority {
    /// Whether the operator makes and renews it. `false`: you put your own into the Secrets.
    /// Default: `true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generate_certificate_authority: Option<bool>,

    /// Whether the Secrets of a generated authority go when the Kafka goes. Default: `true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generate_secret_owner_reference: Option<bool>,

    /// For how many days a generated certificate is valid. Default: 365.
    #[serde(default, deserialize_with = "numbers::optional_nearest", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub validity_days: Option<i32>,

    /// How many days before it expires a generated certificate is renewed. Default: 30.
    #[serde(default, deserialize_with = "numbers::optional_nearest", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub renewal_days: Option<i32>,

    /// What happens when a generated authority is due: `renew-certificate` keeps its key,
    /// `replace-key` makes a new one. Default: `renew-certificate`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate_expiration_policy: Option<ExpirationPolicy>,

    /// Fields that this type does not know.
    #[serde(flatten)]
    pub unknown: UnknownFields,
}

/// What happens when a generated certificate authority is due for renewal.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum ExpirationPolicy {
    /// The certificate is renewed, its key stays.
    #[default]
    RenewCertificate,
    /// Key and certificate are replaced.
    ReplaceKey,
}
