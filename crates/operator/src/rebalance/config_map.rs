//! The ConfigMap of a rebalance: name and owner, labels, and which data it gets.

use std::collections::BTreeMap;

use evenkeel_api::rebalance::RebalanceState;
use evenkeel_api::{KafkaRebalance, labels};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use super::progress::{self, Progress};

const LOAD: &str = "brokerLoad.json";
const MOVES: &str = "biggestMoves.json";
const COMPONENT: &str = "kafka-rebalance";
const KIND: &str = "KafkaRebalance";

/// The ConfigMap of a rebalance's name, as it was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum FoundConfigMap {
    /// There is none.
    #[default]
    Absent,
    /// It belongs to somebody else, and is not touched.
    Foreign,
    /// It belonged to a rebalance of the same name that is gone. It is taken over, and everything in it replaced: waiting
    /// for the garbage collector, whoever has a result in the meantime would have nowhere to write it.
    Inherited(BTreeMap<String, String>),
    /// It belongs to the rebalance.
    Ours(BTreeMap<String, String>),
    /// It was to be written a moment ago, and the API server refused. It tells and decides nothing, so that everything
    /// else is done without it.
    Refused {
        /// What the server said.
        why: String,
        /// What the rebalance wrote there before.
        found: Option<BTreeMap<String, String>>,
    },
}

impl FoundConfigMap {
    /// What the ConfigMap of a rebalance's name is to it: its own, if it owns it.
    pub fn of(resource: &KafkaRebalance, found: Option<&ConfigMap>) -> Self {
        let Some(found) = found else { return Self::Absent };
        let uid = resource.metadata.uid.as_deref();
        let owners = found.metadata.owner_references.as_deref().unwrap_or_default();
        let data = || found.data.clone().unwrap_or_default();
        let namesake = |owner: &OwnerReference| {
            owner.kind == KIND && Some(owner.name.as_str()) == resource.metadata.name.as_deref()
        };
        if owners.iter().any(|owner| Some(owner.uid.as_str()) == uid) {
            return Self::Ours(data());
        }
        match !owners.is_empty() && owners.iter().all(namesake) {
            true => Self::Inherited(data()),
            false => Self::Foreign,
        }
    }

    /// The Kafka that a rebalance's own ConfigMap is labelled with.
    pub fn cluster(resource: &KafkaRebalance, found: Option<&ConfigMap>) -> Option<String> {
        let own = found.filter(|_| matches!(Self::of(resource, found), Self::Ours(_)))?;
        own.metadata.labels.as_ref()?.get(labels::CLUSTER).cloned()
    }

    /// The same, after it could not be written.
    pub(super) fn refused(self, why: String) -> Self {
        let found = match self {
            Self::Ours(data) => Some(data),
            Self::Refused { found, .. } => found,
            Self::Absent | Self::Foreign | Self::Inherited(_) => None,
        };
        Self::Refused { why, found }
    }

    /// Whether what a proposal left there is gone with the whole ConfigMap.
    pub(super) fn is_lost(&self) -> bool {
        matches!(self, Self::Absent | Self::Inherited(_))
    }

    /// Whether it can be written, and says nothing of what the brokers hold before and after.
    pub(super) fn has_no_loads(&self) -> bool {
        self.is_lost() || matches!(self, Self::Ours(data) if !data.contains_key(LOAD))
    }

    pub(super) fn data(&self) -> Option<&BTreeMap<String, String>> {
        match self {
            Self::Ours(data) => Some(data),
            Self::Refused { found, .. } => found.as_ref(),
            Self::Absent | Self::Foreign | Self::Inherited(_) => None,
        }
    }
}

/// News for the ConfigMap.
#[derive(Clone, Debug, Default)]
pub(super) struct News {
    /// A new proposal, and its loads if it has any. It replaces the loads of the one before.
    pub load: Option<Option<String>>,
    /// The same for its biggest moves.
    pub moves: Option<Option<String>>,
    /// From the executor.
    pub progress: Option<Progress>,
}

/// The data that the ConfigMap should have. None: there is nothing to write, or nowhere to write it.
pub(super) fn data(found: &FoundConfigMap, state: RebalanceState, news: &News) -> Option<BTreeMap<String, String>> {
    let before = match found {
        FoundConfigMap::Foreign | FoundConfigMap::Refused { .. } => return None,
        FoundConfigMap::Ours(data) => data.clone(),
        // Only states with something to tell make one.
        FoundConfigMap::Absent | FoundConfigMap::Inherited(_) if makes_one(state) => BTreeMap::new(),
        FoundConfigMap::Absent | FoundConfigMap::Inherited(_) => return None,
    };
    let mut data = before;
    for (key, news) in [(LOAD, &news.load), (MOVES, &news.moves)] {
        match news {
            Some(Some(text)) => drop(data.insert(key.to_owned(), text.clone())),
            Some(None) => drop(data.remove(key)),
            None => {}
        }
    }
    progress::write(&mut data, state, news.progress.as_ref());
    (found.data() != Some(&data)).then_some(data)
}

fn makes_one(state: RebalanceState) -> bool {
    matches!(state, RebalanceState::ProposalReady | RebalanceState::Rebalancing | RebalanceState::Ready)
}

/// The ConfigMap with this data, made from scratch: nothing of a stored one is sent back.
pub(super) fn build(resource: &KafkaRebalance, cluster: Option<&str>, data: BTreeMap<String, String>) -> ConfigMap {
    let name = resource.metadata.name.clone().unwrap_or_default();
    let mut tags: BTreeMap<String, String> = resource.metadata.labels.clone().unwrap_or_default();
    let part_of = format!("strimzi-{}", cluster.unwrap_or(&name));
    // Where data moves, whatever the label of the resource says meanwhile.
    tags.extend(cluster.map(|cluster| (labels::CLUSTER.to_owned(), cluster.to_owned())));
    for (label, value) in [
        (labels::KIND, KIND),
        (labels::NAME, &name),
        (labels::COMPONENT_TYPE, COMPONENT),
        (labels::APP_NAME, COMPONENT),
        (labels::APP_INSTANCE, &name),
        (labels::APP_PART_OF, &part_of),
        (labels::APP_MANAGED_BY, labels::MANAGED_BY_OPERATOR),
    ] {
        tags.insert(label.to_owned(), label_value(value));
    }
    let owner = OwnerReference {
        api_version: "kafka.strimzi.io/v1".to_owned(),
        kind: KIND.to_owned(),
        name: name.clone(),
        uid: resource.metadata.uid.clone().unwrap_or_default(),
        controller: Some(false),
        // More than that is a right that the operator would need, where rights are taken exactly.
        block_owner_deletion: Some(false),
    };
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(name),
            namespace: resource.metadata.namespace.clone(),
            labels: Some(tags),
            owner_references: Some(vec![owner]),
            ..ObjectMeta::default()
        },
        data: Some(data),
        ..ConfigMap::default()
    }
}

/// As much of a name as a label takes. One on imbalance is longer: an anomaly's id is in it.
fn label_value(name: &str) -> String {
    const LONGEST: usize = 63;
    let cut: String = name.chars().take(LONGEST).collect();
    cut.trim_end_matches(|c: char| !c.is_ascii_alphanumeric()).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner() -> KafkaRebalance {
        let mut resource = KafkaRebalance::new("r", Default::default());
        resource.metadata.uid = Some("u".into());
        resource.metadata.namespace = Some("n".into());
        resource.metadata.labels =
            Some([("strimzi.io/cluster".to_owned(), "c".to_owned()), ("team".to_owned(), "x".to_owned())].into());
        resource
    }

    #[test]
    fn a_config_map_of_ours_is_recognised_by_its_owner() {
        let made = build(&owner(), Some("c"), BTreeMap::from([("a".to_owned(), "b".to_owned())]));
        assert!(matches!(FoundConfigMap::of(&owner(), Some(&made)), FoundConfigMap::Ours(data) if data["a"] == "b"));
        let labels = made.metadata.labels.as_ref().unwrap();
        assert_eq!((labels["strimzi.io/cluster"].as_str(), labels["team"].as_str()), ("c", "x"));
        assert_eq!(labels["app.kubernetes.io/part-of"], "strimzi-c");
        let mut foreign = made.clone();
        foreign.metadata.owner_references = None;
        assert_eq!(FoundConfigMap::of(&owner(), Some(&foreign)), FoundConfigMap::Foreign);
        let mut former = made.clone();
        former.metadata.owner_references.as_mut().unwrap()[0].uid = "before".into();
        let found = FoundConfigMap::of(&owner(), Some(&former));
        assert!(matches!(&found, FoundConfigMap::Inherited(data) if data["a"] == "b"), "of one of the same name");
        let written = data(&found, RebalanceState::ProposalReady, &News::default()).unwrap();
        assert!(!written.contains_key("a"), "nothing of what it said is kept");
        assert_eq!(data(&found, RebalanceState::PendingProposal, &News::default()), None);
        assert_eq!(FoundConfigMap::of(&owner(), None), FoundConfigMap::Absent);
    }

    #[test]
    fn labels_are_no_longer_than_they_may_be() {
        assert_eq!(label_value("my-rebalance"), "my-rebalance");
        let long = format!("{}-{}", "c".repeat(62), "d12eaa96");
        assert_eq!(label_value(&long), "c".repeat(62), "and end as they must");
        let mut resource = owner();
        resource.metadata.name =
            Some("my-cluster-auto-rebalancing-imbalance-d12eaa96-58d7-495b-a4ee-842f62f26bce".into());
        let made = build(&resource, Some(&"k".repeat(63)), BTreeMap::new());
        assert!(made.metadata.labels.unwrap().values().all(|value| value.len() <= 63));
        assert_eq!(made.metadata.name, resource.metadata.name, "its name is whole");
    }

    #[test]
    fn a_foreign_one_is_never_written_and_one_that_was_refused_not_at_once() {
        let before = BTreeMap::from([("a".to_owned(), "b".to_owned())]);
        let refused = FoundConfigMap::Ours(before.clone()).refused("no".into());
        assert_eq!((refused.data(), refused.is_lost()), (Some(&before), false), "what it said it still says");
        for state in RebalanceState::ALL {
            let news = News { load: Some(Some("{}".into())), ..News::default() };
            assert_eq!(data(&FoundConfigMap::Foreign, state, &news), None);
            assert_eq!(data(&refused, state, &news), None);
        }
    }

    #[test]
    fn a_new_proposal_replaces_the_loads_and_progress_leaves_them() {
        let found = FoundConfigMap::Ours([(LOAD.to_owned(), "old".to_owned())].into());
        let load = |news: News| data(&found, RebalanceState::ProposalReady, &news).unwrap().get(LOAD).cloned();
        assert_eq!(load(News { load: Some(Some("new".into())), ..News::default() }).as_deref(), Some("new"));
        assert_eq!(load(News { load: Some(None), ..News::default() }), None);
        assert_eq!(load(News::default()).as_deref(), Some("old"));
    }

    #[test]
    fn what_is_as_it_should_be_is_not_written_again() {
        let written = data(&FoundConfigMap::Absent, RebalanceState::Ready, &News::default()).unwrap();
        assert_eq!(data(&FoundConfigMap::Ours(written), RebalanceState::Ready, &News::default()), None);
        assert_eq!(data(&FoundConfigMap::Absent, RebalanceState::NotReady, &News::default()), None);
    }
}
