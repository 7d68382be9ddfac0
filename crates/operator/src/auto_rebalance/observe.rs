//! Everything that the decision may depend on, read once.

use std::collections::{BTreeMap, BTreeSet};

use evenkeel_api::{
    Kafka, KafkaRebalance,
    annotations::{self, InvalidAnnotation},
    kafka::{AutoRebalanceMode, AutoRebalanceStatus},
    labels,
    names::is_name,
    rebalance::RebalanceState,
};
use jiff::Timestamp;

use super::{
    brokers::BrokersSeen,
    generated::Generated,
    imbalance::Violations,
    poll::Polled,
    recipe::{Cluster, is_named_like_ours, name_for},
    settings::Configured,
    tracker::Tracker,
};

/// What was seen of a cluster.
#[derive(Clone, Debug)]
pub struct Observation {
    /// The present moment.
    pub now: Timestamp,
    /// The cluster.
    pub cluster: Cluster,
    /// The brake.
    pub brake: Brake,
    /// What the Kafka says about automatic rebalancing.
    pub configured: Configured,
    /// Changes with the specs of the Kafka, its node pools and its templates, and with nothing else:
    /// their generations, for example. What failed under one version is tried under the next.
    pub spec_version: String,
    /// The KafkaRebalances of the namespace that are named as templates, by name.
    pub templates: BTreeMap<String, KafkaRebalance>,
    /// `Kafka.status.autoRebalance`.
    pub recorded: Option<AutoRebalanceStatus>,
    /// The brokers.
    pub brokers: BrokersSeen,
    /// The engine.
    pub engine: Engine,
    /// The rebalances that were generated for this cluster.
    pub generated: Vec<Generated>,
    /// Those that users made for it.
    pub manual: Vec<Manual>,
    /// KafkaRebalances of others that stand under names of ours: where one of them is, none can be made.
    pub strangers: BTreeSet<String>,
    /// The violated goals that the engine tells of, if it was asked, or why it did not tell.
    pub polled: Option<Polled>,
    /// Data of the ConfigMap with violated goals, if it is there.
    pub violations: Option<BTreeMap<String, String>>,
    /// Data of the ConfigMap with our memory, if it is there.
    pub tracker: Option<BTreeMap<String, String>>,
}

/// The brake: annotation `evenkeel.io/auto-rebalance` on the Kafka.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Brake {
    /// Go on.
    #[default]
    Released,
    /// Stop what runs and hold what is queued.
    Pulled,
    /// Nobody knows. What runs goes on, and nothing begins.
    Unreadable(InvalidAnnotation),
}

impl Brake {
    /// The brake as these annotations of a Kafka set it.
    pub fn read(of_kafka: &BTreeMap<String, String>) -> Self {
        match annotations::is_auto_rebalance_off(of_kafka) {
            Ok(true) => Self::Pulled,
            Ok(false) => Self::Released,
            Err(invalid) => Self::Unreadable(invalid),
        }
    }
}

/// What was seen of the engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Engine {
    /// There is none, and none is wanted.
    Absent,
    /// It is not ready, its pod is not the one that the present configuration asks for, or an older
    /// pod is still there.
    Rolling,
    /// It is ready, and knows all brokers.
    Current {
        /// Which one it is. One that is started again is another: no two clocks have to agree on when that was.
        id: String,
        /// Whether it is executing a plan. None: it was not asked, or did not say.
        executing: Option<bool>,
    },
}

impl Engine {
    /// Which one is there, if one is that can be asked.
    pub(super) fn id(&self) -> Option<&str> {
        match self {
            Self::Current { id, .. } => Some(id),
            Self::Absent | Self::Rolling => None,
        }
    }
}

/// A rebalance that a user made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manual {
    /// Its name.
    pub name: String,
    /// Where it stands.
    pub state: RebalanceState,
    /// Since when.
    pub since: Option<Timestamp>,
}

impl Manual {
    /// Whether it clears away what was found: it is planned, or moves data.
    pub(crate) fn is_asked_for(&self) -> bool {
        self.is_awaited() || self.state == RebalanceState::Rebalancing
    }

    /// Whether it has no proposal yet.
    pub(super) fn is_awaited(&self) -> bool {
        matches!(self.state, RebalanceState::New | RebalanceState::PendingProposal)
    }
}

/// The rebalances of a namespace, sorted: those that were generated for this cluster, and those that
/// users made for it. Templates are neither.
pub fn sort_rebalances<'a>(
    rebalances: impl IntoIterator<Item = &'a KafkaRebalance>,
    cluster: &str,
) -> (Vec<Generated>, Vec<Manual>) {
    let (mut generated, mut manual) = (Vec::new(), Vec::new());
    for rebalance in rebalances {
        let metadata = &rebalance.metadata;
        let of_cluster =
            metadata.labels.as_ref().and_then(|all| all.get(labels::CLUSTER)).is_some_and(|name| name == cluster);
        let is_template = metadata.annotations.as_ref().is_some_and(annotations::is_template);
        if let Some(own) = Generated::read(rebalance, cluster) {
            generated.push(own);
        } else if of_cluster && !is_template {
            let state = rebalance.state();
            let conditions = rebalance.status.iter().flat_map(|status| &status.conditions);
            let since = conditions.filter(|condition| condition.type_.parse() == Ok(state)).find_map(|it| it.since());
            let since = since.or_else(|| Some(metadata.creation_timestamp.as_ref()?.0));
            manual.push(Manual { name: metadata.name.clone().unwrap_or_default(), state, since });
        }
    }
    generated.sort_by(|a, b| a.name.cmp(&b.name));
    manual.sort_by(|a, b| a.name.cmp(&b.name));
    (generated, manual)
}

/// Whether automatic rebalancing is on for a Kafka, or was until a moment ago.
pub(crate) fn remembers(kafka: &Kafka) -> bool {
    let has_status = kafka.status.as_ref().is_some_and(|status| status.auto_rebalance.is_some());
    has_status || !Configured::of(&kafka.spec).modes.is_empty()
}

/// Names of KafkaRebalances that matter to a Kafka whatever labels they have: its templates, and whatever automatic rebalancing
/// has made, follows, or would make next. Only such as can be names: nobody can ask for any other.
pub(crate) fn spoken_of(
    kafka: &Kafka,
    tracker: Option<&BTreeMap<String, String>>,
    violations: Option<&BTreeMap<String, String>>,
) -> BTreeSet<String> {
    let cluster = kafka.metadata.name.as_deref().unwrap_or_default();
    let configured = Configured::of(&kafka.spec);
    let mut names: BTreeSet<String> = configured.modes.values().flatten().cloned().collect();
    if remembers(kafka) {
        let scaling = [AutoRebalanceMode::AddBrokers, AutoRebalanceMode::RemoveBrokers];
        names.extend(scaling.map(|mode| name_for(cluster, mode, "")));
        // Of these only the name is read, for which it does not matter what time it is.
        names.extend(Tracker::read(tracker, Timestamp::UNIX_EPOCH).0.in_sight.map(|sight| sight.name));
        let found = violations.map(Violations::read).unwrap_or_default().fixable;
        names.extend(found.first().map(|anomaly| name_for(cluster, AutoRebalanceMode::Imbalance, &anomaly.id)));
    }
    names.retain(|name| is_name(name));
    names
}

/// Those of a namespace that are named like ones of this cluster and are not: a user's, or a template.
pub fn strangers<'a>(rebalances: impl IntoIterator<Item = &'a KafkaRebalance>, cluster: &str) -> BTreeSet<String> {
    let foreign = rebalances.into_iter().filter(|it| Generated::read(it, cluster).is_none());
    let names = foreign.filter_map(|it| it.metadata.name.clone());
    names.filter(|name| is_named_like_ours(name, cluster)).collect()
}

#[cfg(test)]
mod tests {
    use evenkeel_api::KafkaRebalanceSpec;

    use super::*;

    fn rebalance(name: &str, cluster: Option<&str>, annotation: Option<(&str, &str)>) -> KafkaRebalance {
        let mut rebalance = KafkaRebalance::new(name, KafkaRebalanceSpec::default());
        let one = |(key, value): (&str, &str)| BTreeMap::from([(key.to_owned(), value.to_owned())]);
        rebalance.metadata.labels = cluster.map(|cluster| one((labels::CLUSTER, cluster)));
        rebalance.metadata.annotations = annotation.map(one);
        rebalance
    }

    fn ours(name: &str, cluster: Option<&str>) -> KafkaRebalance {
        let mut rebalance = rebalance(name, cluster, None);
        rebalance.metadata.finalizers = Some(vec![annotations::AUTO_REBALANCING_FINALIZER.to_owned()]);
        rebalance
    }

    #[test]
    fn rebalances_are_sorted_by_whose_they_are() {
        let all = [
            rebalance("mine", Some("c"), None),
            rebalance("other", Some("d"), None),
            rebalance("template", Some("c"), Some(("strimzi.io/rebalance", "template"))),
            ours("c-auto-rebalancing-remove-brokers", None),
            ours("c-auto-rebalancing-add-brokers", Some("c")),
            rebalance("c-auto-rebalancing-imbalance-x", Some("d"), None),
        ];
        let (generated, manual) = sort_rebalances(&all, "c");
        let names: Vec<_> = generated.iter().map(|own| own.name.as_str()).collect();
        assert_eq!(names, ["c-auto-rebalancing-add-brokers", "c-auto-rebalancing-remove-brokers"]);
        assert_eq!(manual, [Manual { name: "mine".into(), state: RebalanceState::New, since: None }]);
        assert_eq!(strangers(&all, "c"), ["c-auto-rebalancing-imbalance-x".to_owned()].into());
    }

    #[test]
    fn a_brake_is_pulled_released_or_unreadable() {
        let read = |value: &str| Brake::read(&[(annotations::AUTO_REBALANCE.to_owned(), value.to_owned())].into());
        assert_eq!(
            (read("off"), read("on"), Brake::read(&BTreeMap::new())),
            (Brake::Pulled, Brake::Released, Brake::Released)
        );
        assert!(matches!(read("of"), Brake::Unreadable(_)));
    }

    #[test]
    fn what_matters_whatever_its_labels_are_is_known_by_name() {
        let kafka = |modes: serde_json::Value, status: serde_json::Value| -> Kafka {
            let engine = serde_json::json!({"autoRebalance": modes});
            serde_json::from_value(serde_json::json!({
                "apiVersion": "kafka.strimzi.io/v1", "kind": "Kafka", "metadata": {"name": "c"},
                "spec": {"cruiseControl": engine}, "status": status,
            }))
            .unwrap()
        };
        let off = || serde_json::json!(null);
        let idle = || serde_json::json!({"autoRebalance": {"state": "Idle"}});
        assert!(spoken_of(&kafka(off(), off()), None, None).is_empty());
        let scaling = ["c-auto-rebalancing-add-brokers", "c-auto-rebalancing-remove-brokers"];
        assert!(spoken_of(&kafka(off(), idle()), None, None).iter().eq(scaling.iter()), "just switched off");
        let modes = serde_json::json!([{"mode": "imbalance", "template": {"name": "even"}}, {"mode": "add-brokers"}]);
        let mut tracker = Tracker::default();
        tracker.in_sight =
            Some(super::super::tracker::Sight { name: "c-auto-rebalancing-imbalance-a0".into(), brokers: [].into() });
        let map = BTreeMap::from([("fixableAnomalies".to_owned(), "- a1: [X]\n- a2: [Y]\n".to_owned())]);
        let found = spoken_of(&kafka(modes, idle()), Some(&tracker.written()), Some(&map));
        let made = ["c-auto-rebalancing-imbalance-a0", "c-auto-rebalancing-imbalance-a1"];
        let expected: BTreeSet<String> =
            scaling.iter().chain(&made).chain(&["even"]).map(|it| (*it).to_owned()).collect();
        assert_eq!(found, expected);
        let unset = serde_json::json!([{"mode": "imbalance", "template": {"name": ""}}, {"mode": "add-brokers", "config": "a b"}]);
        let found = spoken_of(&kafka(unset, off()), None, None);
        assert!(found.iter().eq(scaling.iter()), "nobody can ask for what is no name: {found:?}");
    }
}
