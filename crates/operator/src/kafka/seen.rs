//! What was seen of a cluster, read once: what Kubernetes has of it, and what Kafka says of itself.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use evenkeel_api::{Kafka, KafkaNodePool, KafkaRebalance, StrimziPodSet};
use evenkeel_kafka::calls::quorum::Quorum;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::api::DynamicObject;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{config::DynamicChange, nodes::Ids};
use crate::{auto_rebalance::poll::Polled, pod_set::decide::is_ready};

/// All that a decision about a cluster may depend on.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The present moment: when the look began.
    pub now: Timestamp,
    /// When the last of it was read. A large cluster is read for longer than a look may be old.
    pub read_at: Timestamp,
    /// The Kafka.
    pub kafka: Kafka,
    /// Its node pools, and those of its pod sets that do not carry its label any more.
    pub node_pools: Vec<KafkaNodePool>,
    /// Its pod sets, with little of their pods: names, labels and names of init containers.
    pub pod_sets: Vec<StrimziPodSet>,
    /// Its pods, the engine's too.
    pub pods: Vec<Pod>,
    /// All other objects of it.
    pub live: Live,
    /// The namespace's KafkaRebalances.
    pub rebalances: Vec<KafkaRebalance>,
    /// Users of the engine's API that a Secret of the user names.
    pub further_users: FurtherUsers,
    /// What Kafka says.
    pub metadata: Metadata,
    /// What the engine says, as far as it was asked.
    pub engine: EngineSaid,
    /// Brokers that somebody wants gone and that hold nothing: since when that is known.
    pub empty_since: BTreeMap<i32, Timestamp>,
    /// What is missing: since when that is known.
    pub missing_since: BTreeMap<Missing, Timestamp>,
    /// Since when looks have found nothing to do. None: the last one did something.
    pub quiet_since: Option<Timestamp>,
    /// Settings that Kafka would not take, and why.
    pub refused: Refusals,
    /// Brokers that were struck off Kafka's list, and when: whoever is asked for it may not have heard of that yet.
    pub struck_off: BTreeMap<i32, Timestamp>,
}

/// Users of the engine's API that a Secret of the user names.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum FurtherUsers {
    /// There are none.
    #[default]
    Unasked,
    /// There is no such Secret, or no such key in it.
    Missing {
        /// The Secret.
        secret: String,
        /// The key.
        key: String,
    },
    /// What the Secret holds.
    Listed(String),
}

impl fmt::Debug for FurtherUsers {
    /// Not the list: passwords are in it.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Unasked => "Unasked",
            Self::Missing { .. } => "Missing",
            Self::Listed(_) => "Listed",
        })
    }
}

/// What may be missing from a cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Missing {
    /// The pod of this name.
    Pod(String),
    /// The broker in the pod of this name: Kafka does not count on it, though the pod is ready.
    Broker(String),
    /// Kafka's answers.
    Answers,
    /// The engine.
    Engine,
}

/// What the engine says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EngineSaid {
    /// Whether it is carrying out a plan. None: it was not asked, or did not say.
    pub executing: Option<bool>,
    /// What it told of violated goals when it was last asked for them.
    pub violated: Option<Polled>,
}

/// Settings that Kafka would not take, for whom, and what it said. None is for all brokers.
pub type Refusals = BTreeMap<(Option<i32>, DynamicChange), String>;

/// Objects as they are, by kind and name.
#[derive(Clone, Default)]
pub struct Live {
    /// As JSON: that is how they are compared.
    pub objects: BTreeMap<(String, String), Value>,
}

impl fmt::Debug for Live {
    /// Not the contents: private keys and passwords are among them.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_set().entries(self.objects.keys()).finish()
    }
}

impl Live {
    /// Takes an object that says what kind it is. Who wrote which of its fields is left out: often that is the most of it.
    pub fn take(&mut self, object: DynamicObject) {
        let DynamicObject { types, mut metadata, data } = object;
        metadata.managed_fields = None;
        let name = metadata.name.clone().unwrap_or_default();
        let types = types.unwrap_or_default();
        // All else is JSON already, and large: it is not made anew.
        let mut fields = if let Value::Object(fields) = data { fields } else { serde_json::Map::new() };
        fields.insert("apiVersion".to_owned(), types.api_version.into());
        fields.insert("kind".to_owned(), types.kind.clone().into());
        fields.insert("metadata".to_owned(), serde_json::to_value(metadata).unwrap_or_default());
        self.objects.insert((types.kind, name), Value::Object(fields));
    }

    /// An object as JSON.
    pub fn value(&self, kind: &str, name: &str) -> Option<&Value> {
        self.objects.get(&(kind.to_owned(), name.to_owned()))
    }

    /// An object as what it is.
    pub fn read<K: DeserializeOwned>(&self, kind: &str, name: &str) -> Option<K> {
        serde_json::from_value(self.value(kind, name)?.clone()).ok()
    }

    /// The data of a ConfigMap.
    pub fn data(&self, config_map: &str) -> Option<BTreeMap<String, String>> {
        let found = self.value("ConfigMap", config_map)?;
        Some(found.get("data").and_then(|data| serde_json::from_value(data.clone()).ok()).unwrap_or_default())
    }

    /// Those of one kind, by name.
    pub fn of_kind<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = (&'a str, &'a Value)> {
        self.objects.iter().filter(move |((of, _), _)| of == kind).map(|((_, name), value)| (name.as_str(), value))
    }
}

/// What Kafka says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Metadata {
    /// There is nobody to ask: no broker is ready.
    #[default]
    Nobody,
    /// It did not answer.
    Unreachable(String),
    /// It cannot even be asked: the operator's own certificates for it are of no use, or one side does not take the other's.
    Mistrusted(String),
    /// It answered.
    Known(Known),
}

/// What Kafka knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// Its own id of the cluster.
    pub cluster_id: String,
    /// Registered brokers, and whether they are fenced.
    pub registered: BTreeMap<i32, bool>,
    /// Its partitions, all of them. None: they were not asked for, or not all could be read.
    pub partitions: Option<Vec<Partition>>,
    /// Why partitions that were asked for are not known.
    pub unread: Option<String>,
    /// Whether it was asked closely: also how many replicas must be in sync, and how its controllers are.
    pub closely: bool,
    /// How its controllers are, or why it does not tell. None: it was not asked.
    pub quorum: Option<Result<Quorum, String>>,
    /// The metadata version in force, as it is written. None: it did not say, or it is newer than this operator.
    pub metadata_version: Option<String>,
}

/// One partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Partition {
    /// Whose it is, such as `topic-3`.
    pub name: String,
    /// The brokers that have it, or some of it. While it moves: those that get it, and those that lose it.
    pub replicas: BTreeSet<i32>,
    /// Those of them that lose it when the move has ended.
    pub going: BTreeSet<i32>,
    /// Those that have all of it.
    pub in_sync: BTreeSet<i32>,
    /// How many must, for writers that want to be sure. None: nobody could say.
    pub least_in_sync: Option<usize>,
}

impl Partition {
    /// The brokers that should have it: while it moves it has more replicas than anybody asked for.
    pub fn wanted(&self) -> BTreeSet<i32> {
        &self.replicas - &self.going
    }
}

impl Metadata {
    /// What is known, if anything.
    pub fn known(&self) -> Option<&Known> {
        match self {
            Self::Known(known) => Some(known),
            Self::Nobody | Self::Unreachable(_) | Self::Mistrusted(_) => None,
        }
    }

    /// Registered brokers that live.
    pub fn alive(&self) -> Ids {
        let registered = self.known().into_iter().flat_map(|known| &known.registered);
        registered.filter(|(_, fenced)| !**fenced).map(|(id, _)| *id).collect()
    }

    /// Whether Kafka answers, and was not asked for its partitions.
    pub fn is_unasked(&self) -> bool {
        self.known().is_some_and(|known| known.partitions.is_none() && known.unread.is_none())
    }

    /// The partitions, if they were asked for and could be read.
    pub fn partitions(&self) -> Option<&[Partition]> {
        self.known()?.partitions.as_deref()
    }
}

impl Seen {
    /// A pod by its name.
    pub fn pod(&self, name: &str) -> Option<&Pod> {
        self.pods.iter().find(|pod| pod.metadata.name.as_deref() == Some(name))
    }

    /// Whether a pod is there and ready.
    pub fn is_ready(&self, pod: &str) -> bool {
        self.pod(pod).is_some_and(is_ready)
    }

    /// The Kafka's name.
    pub fn cluster(&self) -> &str {
        self.kafka.metadata.name.as_deref().unwrap_or_default()
    }
}
