//! KafkaRebalances that automatic rebalancing makes: what they are called, and what goes into them.

use evenkeel_api::{
    KafkaRebalance, KafkaRebalanceSpec,
    annotations::{self, ASKED_OF},
    kafka::AutoRebalanceMode,
    labels,
    rebalance::RebalanceMode,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use super::state::Brokers;

/// The longest name that Kubernetes takes.
const LONGEST_NAME: usize = 253;

/// What stands in a name between the cluster and the mode.
const MIDDLE: &str = "-auto-rebalancing-";

/// The cluster that a rebalance is for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cluster {
    /// Name of the Kafka.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// Its uid.
    pub uid: String,
}

/// What a generated rebalance is made from.
#[derive(Clone, Debug)]
pub(super) struct Recipe<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) mode: AutoRebalanceMode,
    pub(super) brokers: &'a Brokers,
    /// The first anomaly, for `imbalance`.
    pub(super) anomaly: &'a str,
    /// The template's spec. None: Cruise Control's defaults.
    pub(super) template: Option<&'a KafkaRebalanceSpec>,
    /// Bytes per second for a template that names no throttle.
    pub(super) throttle: Option<i64>,
    /// How many megabytes it may move at most.
    pub(super) most_data_mb: Option<u64>,
    /// The engine that is asked for it.
    pub(super) engine: Option<String>,
}

/// The KafkaRebalance of a recipe.
pub(super) fn make(recipe: &Recipe<'_>) -> KafkaRebalance {
    let template = recipe.template.cloned().unwrap_or_default();
    let (mode, brokers) = match recipe.mode {
        AutoRebalanceMode::AddBrokers => (RebalanceMode::AddBrokers, Some(recipe.brokers)),
        AutoRebalanceMode::RemoveBrokers => (RebalanceMode::RemoveBrokers, Some(recipe.brokers)),
        AutoRebalanceMode::Imbalance => (RebalanceMode::Full, None),
    };
    let spec = KafkaRebalanceSpec {
        mode,
        brokers: brokers.map(|brokers| brokers.iter().copied().collect()),
        // A throttle of 0 is a choice too: none at all.
        replication_throttle: template.replication_throttle.or(recipe.throttle),
        // These would turn it into something else than what it is generated for.
        rebalance_disk: None,
        move_replicas_off_volumes: None,
        template: None,
        ..template
    };
    let cluster = recipe.cluster;
    let cap = recipe.most_data_mb.map(|megabytes| (annotations::MAX_DATA_MB.to_owned(), megabytes.to_string()));
    let approved = (annotations::REBALANCE_AUTO_APPROVAL.to_owned(), "true".to_owned());
    let asked_of = recipe.engine.clone().map(|engine| (ASKED_OF.to_owned(), engine));
    let mut rebalance = KafkaRebalance::new(&name_for(&cluster.name, recipe.mode, recipe.anomaly), spec);
    rebalance.metadata = ObjectMeta {
        namespace: Some(cluster.namespace.clone()),
        labels: Some([(labels::CLUSTER.to_owned(), cluster.name.clone())].into()),
        annotations: Some([approved].into_iter().chain(cap).chain(asked_of).collect()),
        finalizers: Some(vec![annotations::AUTO_REBALANCING_FINALIZER.to_owned()]),
        owner_references: Some(vec![OwnerReference {
            api_version: "kafka.strimzi.io/v1".to_owned(),
            kind: "Kafka".to_owned(),
            name: cluster.name.clone(),
            uid: cluster.uid.clone(),
            // Not the controller of it: that is the KafkaRebalance's own.
            controller: Some(false),
            block_owner_deletion: Some(false),
        }]),
        ..rebalance.metadata
    };
    rebalance
}

fn prefix(cluster: &str) -> String {
    format!("{cluster}{MIDDLE}")
}

/// The name of a generated rebalance.
pub(super) fn name_for(cluster: &str, mode: AutoRebalanceMode, anomaly: &str) -> String {
    let name = format!("{}{mode}", prefix(cluster));
    if mode != AutoRebalanceMode::Imbalance {
        return name;
    }
    // Ids are Cruise Control's; a name takes lowercase letters, digits, dots and dashes only.
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let id: String = anomaly.chars().map(plain).take(LONGEST_NAME.saturating_sub(name.len() + 1)).collect();
    let id = id.trim_matches('-');
    if id.is_empty() { name } else { format!("{name}-{id}") }
}

/// Whether a KafkaRebalance of this name would stand in the way of one that is generated for this cluster.
pub(crate) fn is_named_like_ours(name: &str, cluster: &str) -> bool {
    mode_of_name(name, cluster).is_some()
}

/// The mode that a name of ours tells.
pub(super) fn mode_of_name(name: &str, cluster: &str) -> Option<AutoRebalanceMode> {
    let rest = name.strip_prefix(&prefix(cluster))?;
    match rest {
        "add-brokers" => Some(AutoRebalanceMode::AddBrokers),
        "remove-brokers" => Some(AutoRebalanceMode::RemoveBrokers),
        "imbalance" => Some(AutoRebalanceMode::Imbalance),
        _ => rest.strip_prefix("imbalance-").map(|_| AutoRebalanceMode::Imbalance),
    }
}

/// The cluster that a name of ours tells.
pub(super) fn cluster_of_name(name: &str) -> Option<&str> {
    let mut clusters = name.match_indices(MIDDLE).map(|(end, _)| &name[..end]);
    clusters.find(|cluster| mode_of_name(name, cluster).is_some())
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use super::*;

    pub(in crate::auto_rebalance) fn cluster() -> Cluster {
        Cluster { name: "c".into(), namespace: "ns".into(), uid: "u".into() }
    }

    pub(in crate::auto_rebalance) fn recipe<'a>(
        cluster: &'a Cluster,
        mode: AutoRebalanceMode,
        brokers: &'a Brokers,
    ) -> Recipe<'a> {
        Recipe {
            cluster,
            mode,
            brokers,
            anomaly: "3F2C_a",
            template: None,
            throttle: None,
            most_data_mb: None,
            engine: None,
        }
    }

    #[test]
    fn a_template_gives_goals_and_options_and_nothing_else() {
        let template: KafkaRebalanceSpec = serde_json::from_value(json!({
            "mode": "remove-disks", "brokers": [7], "rebalanceDisk": true,
            "moveReplicasOffVolumes": [{"brokerId": 1, "volumeIds": [2]}], "template": {"name": "other"},
            "goals": ["RackAwareGoal"], "skipHardGoalCheck": true, "excludedTopics": "x.*",
            "concurrentPartitionMovementsPerBroker": 3, "replicationThrottle": 9, "futureOption": 1,
        }))
        .unwrap();
        let (cluster, brokers) = (cluster(), Brokers::from([4, 3]));
        let made = make(&Recipe {
            template: Some(&template),
            throttle: Some(5),
            most_data_mb: Some(70),
            engine: Some("pod/0".into()),
            ..recipe(&cluster, AutoRebalanceMode::AddBrokers, &brokers)
        });
        assert_eq!(
            serde_json::to_value(&made).unwrap(),
            json!({
                "apiVersion": "kafka.strimzi.io/v1", "kind": "KafkaRebalance",
                "metadata": {
                    "name": "c-auto-rebalancing-add-brokers", "namespace": "ns",
                    "labels": {"strimzi.io/cluster": "c"},
                    "annotations": {
                        "strimzi.io/rebalance-auto-approval": "true", "evenkeel.io/max-data-mb": "70",
                        "evenkeel.io/asked-of": "pod/0",
                    },
                    "finalizers": ["strimzi.io/auto-rebalancing"],
                    "ownerReferences": [{
                        "apiVersion": "kafka.strimzi.io/v1", "kind": "Kafka", "name": "c", "uid": "u",
                        "controller": false, "blockOwnerDeletion": false,
                    }],
                },
                "spec": {
                    "mode": "add-brokers", "brokers": [3, 4], "goals": ["RackAwareGoal"], "skipHardGoalCheck": true,
                    "excludedTopics": "x.*", "concurrentPartitionMovementsPerBroker": 3, "replicationThrottle": 9,
                    "futureOption": 1,
                },
            })
        );
    }

    #[test]
    fn without_a_template_there_is_a_mode_and_perhaps_a_throttle() {
        let (cluster, none) = (cluster(), Brokers::new());
        let made = make(&Recipe { throttle: Some(5), ..recipe(&cluster, AutoRebalanceMode::Imbalance, &none) });
        assert_eq!(made.metadata.name.as_deref(), Some("c-auto-rebalancing-imbalance-3f2c-a"));
        assert_eq!(serde_json::to_value(&made.spec).unwrap(), json!({"mode": "full", "replicationThrottle": 5}));
        let unlimited = KafkaRebalanceSpec { replication_throttle: Some(0), ..KafkaRebalanceSpec::default() };
        let made = make(&Recipe {
            template: Some(&unlimited),
            throttle: Some(5),
            ..recipe(&cluster, AutoRebalanceMode::Imbalance, &none)
        });
        assert_eq!(made.spec.replication_throttle, Some(0), "no throttle is a choice as well");
    }

    #[test]
    fn names_are_names_whatever_the_anomaly_is_called() {
        for (anomaly, expected) in [
            ("3f2c", "c-auto-rebalancing-imbalance-3f2c"),
            ("", "c-auto-rebalancing-imbalance"),
            ("--Ä/", "c-auto-rebalancing-imbalance"),
            ("../../x", "c-auto-rebalancing-imbalance-x"),
        ] {
            assert_eq!(name_for("c", AutoRebalanceMode::Imbalance, anomaly), expected);
        }
        assert_eq!(name_for("c", AutoRebalanceMode::Imbalance, &"a".repeat(1_000)).len(), LONGEST_NAME);
    }

    #[test]
    fn ours_are_known_by_their_names() {
        let ours = |name: &str| mode_of_name(name, "c");
        for mode in [AutoRebalanceMode::AddBrokers, AutoRebalanceMode::RemoveBrokers, AutoRebalanceMode::Imbalance] {
            assert_eq!(ours(&name_for("c", mode, "x")), Some(mode));
        }
        assert_eq!(ours("c-auto-rebalancing-imbalance"), Some(AutoRebalanceMode::Imbalance));
        for foreign in ["c-auto-rebalancing-other", "my-rebalance", "d-auto-rebalancing-add-brokers", "c"] {
            assert_eq!(ours(foreign), None, "{foreign}");
        }
    }
}
