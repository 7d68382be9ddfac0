//! Annotations and finalizers: their names, and what their values mean.
//!
//! A user types these by hand, so whatever can be mistyped comes back as an [`InvalidAnnotation`]
//! that says what to write, ready for a Warning condition.

use std::collections::BTreeMap;

use crate::NodeIdRanges;

/// What a user asks of a KafkaRebalance: see [`Ask`].
pub const REBALANCE: &str = "strimzi.io/rebalance";
/// Whether a proposal is carried out without waiting for approval.
pub const REBALANCE_AUTO_APPROVAL: &str = "strimzi.io/rebalance-auto-approval";
/// Marks a KafkaRebalance that only holds settings for others.
pub const REBALANCE_TEMPLATE: &str = "strimzi.io/rebalance-template";
/// Tells the operator to leave a resource alone.
pub const PAUSE_RECONCILIATION: &str = "strimzi.io/pause-reconciliation";
/// On a node pool: the ids for the next new nodes, such as `[10-20]`.
pub const NEXT_NODE_IDS: &str = "strimzi.io/next-node-ids";
/// On a node pool: the nodes to remove first, such as `[5, 3]`.
pub const REMOVE_NODE_IDS: &str = "strimzi.io/remove-node-ids";
/// On a Kafka: remove brokers even if they hold data.
pub const SKIP_BROKER_SCALE_DOWN_CHECK: &str = "strimzi.io/skip-broker-scaledown-check";
/// On a pod or a StrimziPodSet: `true` asks for a restart, of all its pods if it is a set.
pub const MANUAL_ROLLING_UPDATE: &str = "strimzi.io/manual-rolling-update";
/// On a Kafka: `off` stops the current automatic rebalance and holds those that are queued.
pub const AUTO_REBALANCE: &str = "evenkeel.io/auto-rebalance";
/// On a KafkaRebalance: how many megabytes it may move at most.
pub const MAX_DATA_MB: &str = "evenkeel.io/max-data-mb";
/// On a generated KafkaRebalance that automatic rebalancing itself stopped: why. It is written in the
/// same step as the stop, so that the end of it is never taken for a user's wish.
pub const STOPPED_FOR: &str = "evenkeel.io/stopped-for";
/// On a generated KafkaRebalance: the engine that automatic rebalancing has last asked for it. It is written in the same step
/// as what asks, so that each further engine is asked once.
pub const ASKED_OF: &str = "evenkeel.io/asked-of";

/// On a pod: hash of its description in the StrimziPodSet.
pub const REVISION: &str = "strimzi.io/revision";
/// On a pod: hash of its resources, which may change without a restart.
pub const RESOURCE_REVISION: &str = "strimzi.io/resource-revision";
/// On a pod: hash of its configuration.
pub const CONFIGURATION_HASH: &str = "strimzi.io/configuration-hash";
/// On Cruise Control's pod: hash of the brokers' capacities.
pub const CAPACITY_CONFIGURATION_HASH: &str = "strimzi.io/capacity-configuration-hash";
/// On Cruise Control's pod: hash of the users of its REST API.
pub const AUTH_HASH: &str = "strimzi.io/auth-hash";
/// On a pod: hash of its certificate.
pub const SERVER_CERT_HASH: &str = "strimzi.io/server-cert-hash";
/// On a pod: which certificate of the cluster's authority it trusts.
pub const CLUSTER_CA_CERT_GENERATION: &str = "strimzi.io/cluster-ca-cert-generation";
/// On a pod: which key of the cluster's authority has signed its certificate.
pub const CLUSTER_CA_KEY_GENERATION: &str = "strimzi.io/cluster-ca-key-generation";

/// On a pod: which certificate of the clients' authority it trusts.
pub const CLIENTS_CA_CERT_GENERATION: &str = "strimzi.io/clients-ca-cert-generation";
/// On the Secret of an authority's certificate: how often it was renewed.
pub const CA_CERT_GENERATION: &str = "strimzi.io/ca-cert-generation";
/// On the Secret of an authority's key: how often it was replaced.
pub const CA_KEY_GENERATION: &str = "strimzi.io/ca-key-generation";
/// On a StrimziPodSet: the storage of its nodes, as JSON. A change is compared with it.
pub const STORAGE: &str = "strimzi.io/storage";
/// On a persistent volume claim: whether it goes with its node.
pub const DELETE_CLAIM: &str = "strimzi.io/delete-claim";

/// Keeps a KafkaRebalance while an operation of it runs.
pub const REBALANCE_FINALIZER: &str = "strimzi.io/rebalance";
/// Keeps a generated KafkaRebalance until automatic rebalancing has seen its end.
pub const AUTO_REBALANCING_FINALIZER: &str = "strimzi.io/auto-rebalancing";

/// The value of [`REBALANCE`] that marked templates before [`REBALANCE_TEMPLATE`] existed.
const TEMPLATE: &str = "template";

type Annotations = BTreeMap<String, String>;

/// What a user asks of a KafkaRebalance.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Ask {
    /// Carry the proposal out.
    Approve,
    /// Stop.
    Stop,
    /// Make a new proposal.
    Refresh,
    /// Something that nobody understands.
    Unknown(String),
}

/// An annotation has a value that means nothing.
#[derive(thiserror::Error, Clone, Debug, PartialEq, Eq)]
#[error("annotation {annotation} is `{value}`: {advice}")]
pub struct InvalidAnnotation {
    /// Name of the annotation.
    pub annotation: &'static str,
    /// What is written there.
    pub value: String,
    /// What is wrong with it, or what to write instead.
    pub advice: String,
}

/// What is asked of a KafkaRebalance. The mark of a template asks for nothing.
pub fn ask(annotations: &Annotations) -> Option<Ask> {
    // Values are compared as they are: `Approve` has never moved data, so it does not now.
    match annotations.get(REBALANCE)?.as_str() {
        "approve" => Some(Ask::Approve),
        "stop" => Some(Ask::Stop),
        "refresh" => Some(Ask::Refresh),
        TEMPLATE => None,
        other => Some(Ask::Unknown(other.into())),
    }
}

/// Whether a KafkaRebalance only holds settings for others, in the new form
/// (`strimzi.io/rebalance-template: "true"`) or the old one (`strimzi.io/rebalance: template`).
pub fn is_template(annotations: &Annotations) -> bool {
    is_true(annotations, REBALANCE_TEMPLATE) || annotations.get(REBALANCE).is_some_and(|value| value == TEMPLATE)
}

/// Whether proposals are carried out without waiting for approval.
pub fn is_auto_approved(annotations: &Annotations) -> bool {
    is_true(annotations, REBALANCE_AUTO_APPROVAL)
}

/// Whether the operator is to leave the resource alone.
pub fn is_paused(annotations: &Annotations) -> bool {
    is_true(annotations, PAUSE_RECONCILIATION)
}

/// Whether brokers are removed even if they hold data.
pub fn skips_scale_down_check(annotations: &Annotations) -> bool {
    is_true(annotations, SKIP_BROKER_SCALE_DOWN_CHECK)
}

/// The ids for the next new nodes of a pool.
pub fn next_node_ids(annotations: &Annotations) -> Result<Option<NodeIdRanges>, InvalidAnnotation> {
    node_ids(annotations, NEXT_NODE_IDS)
}

/// The nodes of a pool to remove first.
pub fn remove_node_ids(annotations: &Annotations) -> Result<Option<NodeIdRanges>, InvalidAnnotation> {
    node_ids(annotations, REMOVE_NODE_IDS)
}

/// Whether the brake on automatic rebalancing is pulled. A brake with an unreadable value is neither
/// pulled nor released: the caller has to say so.
pub fn is_auto_rebalance_off(annotations: &Annotations) -> Result<bool, InvalidAnnotation> {
    match annotations.get(AUTO_REBALANCE).map(|value| value.trim()) {
        None => Ok(false),
        Some(value) if value.eq_ignore_ascii_case("off") => Ok(true),
        Some(value) if value.eq_ignore_ascii_case("on") => Ok(false),
        Some(value) => Err(invalid(AUTO_REBALANCE, value, "write `off` to stop automatic rebalancing, or `on`")),
    }
}

/// How many megabytes a rebalance may move at most. None: as many as it takes.
pub fn max_data_mb(annotations: &Annotations) -> Result<Option<u64>, InvalidAnnotation> {
    let Some(value) = annotations.get(MAX_DATA_MB) else { return Ok(None) };
    match value.trim().parse() {
        Ok(megabytes) => Ok(Some(megabytes)),
        Err(_) => Err(invalid(MAX_DATA_MB, value, "write a whole number of megabytes, such as `50000`")),
    }
}

fn node_ids(annotations: &Annotations, name: &'static str) -> Result<Option<NodeIdRanges>, InvalidAnnotation> {
    let Some(value) = annotations.get(name) else { return Ok(None) };
    value.parse().map(Some).map_err(|error| invalid(name, value, error))
}

fn is_true(annotations: &Annotations, name: &str) -> bool {
    annotations.get(name).is_some_and(|value| value.eq_ignore_ascii_case("true"))
}

fn invalid(annotation: &'static str, value: &str, advice: impl ToString) -> InvalidAnnotation {
    InvalidAnnotation { annotation, value: value.into(), advice: advice.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: &str, value: &str) -> Annotations {
        Annotations::from([(name.to_string(), value.to_string())])
    }

    #[test]
    fn asks_are_case_sensitive_and_mistakes_are_kept() {
        assert_eq!(ask(&with(REBALANCE, "approve")), Some(Ask::Approve));
        assert_eq!(ask(&with(REBALANCE, "stop")), Some(Ask::Stop));
        assert_eq!(ask(&with(REBALANCE, "refresh")), Some(Ask::Refresh));
        assert_eq!(ask(&with(REBALANCE, "Approve")), Some(Ask::Unknown("Approve".into())));
        assert_eq!(ask(&with(REBALANCE, "none")), Some(Ask::Unknown("none".into())));
        assert_eq!(ask(&Annotations::new()), None);
    }

    #[test]
    fn both_marks_make_a_template_and_neither_is_an_ask() {
        for marked in [with(REBALANCE, "template"), with(REBALANCE_TEMPLATE, "true"), with(REBALANCE_TEMPLATE, "True")]
        {
            assert!(is_template(&marked), "{marked:?}");
            assert_eq!(ask(&marked), None);
        }
        for unmarked in [with(REBALANCE_TEMPLATE, "false"), with(REBALANCE_TEMPLATE, "yes"), with(REBALANCE, "approve")]
        {
            assert!(!is_template(&unmarked), "{unmarked:?}");
        }
    }

    #[test]
    fn only_true_is_true() {
        for (read, name) in [
            (is_auto_approved as fn(&Annotations) -> bool, REBALANCE_AUTO_APPROVAL),
            (is_paused, PAUSE_RECONCILIATION),
            (skips_scale_down_check, SKIP_BROKER_SCALE_DOWN_CHECK),
        ] {
            assert!(read(&with(name, "true")) && read(&with(name, "TRUE")), "{name}");
            assert!(!read(&with(name, "yes")) && !read(&with(name, "")) && !read(&Annotations::new()), "{name}");
        }
    }

    #[test]
    fn node_ids_are_read_or_explained() {
        let ids = next_node_ids(&with(NEXT_NODE_IDS, "[3-4]")).unwrap().unwrap();
        assert_eq!(ids.iter().collect::<Vec<_>>(), [3, 4]);
        assert_eq!(remove_node_ids(&Annotations::new()), Ok(None));
        let error = remove_node_ids(&with(REMOVE_NODE_IDS, "[x]")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "annotation strimzi.io/remove-node-ids is `[x]`: `x` is neither a node id nor a range such as 10-20"
        );
    }

    #[test]
    fn a_mistyped_brake_is_not_taken_for_a_released_one() {
        assert_eq!(is_auto_rebalance_off(&Annotations::new()), Ok(false));
        assert_eq!(is_auto_rebalance_off(&with(AUTO_REBALANCE, "off")), Ok(true));
        assert_eq!(is_auto_rebalance_off(&with(AUTO_REBALANCE, " Off ")), Ok(true));
        assert_eq!(is_auto_rebalance_off(&with(AUTO_REBALANCE, "on")), Ok(false));
        assert!(is_auto_rebalance_off(&with(AUTO_REBALANCE, "of")).is_err());
    }

    #[test]
    fn the_data_cap_is_a_whole_number() {
        assert_eq!(max_data_mb(&with(MAX_DATA_MB, "50000")), Ok(Some(50_000)));
        assert_eq!(max_data_mb(&Annotations::new()), Ok(None));
        for wrong in ["-1", "5Gi", "1.5", ""] {
            assert!(max_data_mb(&with(MAX_DATA_MB, wrong)).is_err(), "{wrong}");
        }
    }
}
