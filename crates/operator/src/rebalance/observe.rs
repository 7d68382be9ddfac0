//! Everything that a decision may depend on, read once.

use std::time::Duration;

use evenkeel_api::rebalance::RebalanceState;
use evenkeel_api::{KafkaRebalance, Reason, annotations, labels};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;

use super::config_map::FoundConfigMap;
use super::finalizer;
use super::hear::Heard;
use super::queue::Other;
use super::state::{Standing, before_any_pause};
use super::template::Template;

/// What is known about a KafkaRebalance and what is around it.
#[derive(Clone, Debug)]
pub struct Observation {
    /// The resource, as it is stored now.
    pub resource: KafkaRebalance,
    /// Whether its namespace is being deleted.
    pub namespace_terminating: bool,
    /// The Kafka that it belongs to: that of its label, or, while data moves, that in which it moves.
    pub kafka: FoundKafka,
    /// The template that its spec names.
    pub template: Template,
    /// The ConfigMap of its name.
    pub config_map: FoundConfigMap,
    /// The Kafka that its own ConfigMap is labelled with.
    pub recorded_cluster: Option<String>,
    /// The other KafkaRebalances of the same Kafka, without templates.
    pub others: Vec<Other>,
    /// What the engine said in this round.
    pub heard: Heard,
    /// The present moment.
    pub now: Timestamp,
}

/// The Kafka that a KafkaRebalance belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum FoundKafka {
    /// The label `strimzi.io/cluster` is missing.
    Unnamed,
    /// There is no Kafka of this name in the namespace.
    Missing {
        /// The name.
        name: String,
    },
    /// It belongs to another operator.
    NotSelected,
    /// Here it is.
    There(Cluster),
}

/// What matters about a Kafka.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cluster {
    /// Its name.
    pub name: String,
    /// Whether its first condition is `Ready`.
    pub ready: bool,
    /// Its Cruise Control. None: it declares none.
    pub engine: Option<Engine>,
}

/// What matters about a Cruise Control.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Engine {
    /// Whether it is ours, and so understands parameters that are not in the original.
    pub is_ours: bool,
    /// A Secret without which it cannot be asked, if one is missing or has not what it should have.
    pub missing_secret: Option<String>,
    /// How long it measures before it first plans. None: only a few seconds, from outside.
    pub first_window: Option<Duration>,
    /// Nobody declares it any more: it stays until what it carries out has ended, and begins nothing.
    pub is_leaving: bool,
}

/// Why something cannot be done now, though nothing is wrong with the resource's spec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// In one word.
    pub reason: Reason,
    /// In a sentence, with what to do about it.
    pub message: String,
}

impl Blocked {
    pub(super) fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into() }
    }
}

/// Whether data moves for a rebalance, paused or not, or may: its execution was perhaps submitted.
pub(super) fn perhaps_runs(resource: &KafkaRebalance) -> bool {
    match before_any_pause(resource).0 {
        RebalanceState::Rebalancing => true,
        RebalanceState::ProposalReady => finalizer::is_on(resource),
        _ => false,
    }
}

/// The Kafka whose data a rebalance moves, or may, if its label says another by now, or is gone. What was begun in one Kafka is
/// not known in another: it is followed, and searched for, where it is. `recorded`: what its own ConfigMap is labelled with,
/// which is written before anything moves.
pub(super) fn runs_in<'a>(resource: &KafkaRebalance, recorded: Option<&'a str>) -> Option<&'a str> {
    let standing = Standing::of(resource);
    // If it could not be written it may tell of an earlier run.
    let is_current = standing.warning(Reason::KubernetesClientException).is_none();
    recorded.filter(|recorded| perhaps_runs(resource) && is_current && label(resource) != Some(*recorded))
}

/// The Kafka in which a rebalance runs, paused or not, with the ConfigMap of its name: None if it does not run, and
/// `Some(None)` if nothing says where.
pub(crate) fn runs_in_kafka(resource: &KafkaRebalance, config_map: Option<&ConfigMap>) -> Option<Option<String>> {
    let is_template = resource.metadata.annotations.as_ref().is_some_and(annotations::is_template);
    if before_any_pause(resource).0 != RebalanceState::Rebalancing
        || (is_template && !finalizer::is_generated(resource))
    {
        return None;
    }
    let recorded = FoundConfigMap::cluster(resource, config_map);
    Some(runs_in(resource, recorded.as_deref()).or_else(|| label(resource)).map(str::to_owned))
}

fn undeclared() -> Blocked {
    let what = "Kafka resource lacks 'cruiseControl' declaration: add spec.cruiseControl to it";
    Blocked::new(Reason::InvalidResourceException, what)
}

/// The Kafka that the label of a rebalance names.
pub(super) fn label(resource: &KafkaRebalance) -> Option<&str> {
    let label = resource.metadata.labels.as_ref()?.get(labels::CLUSTER)?;
    Some(label.as_str()).filter(|label| !label.is_empty())
}

impl Observation {
    /// The Kafka that was looked at, if its label does not say that one: data moves there.
    pub(super) fn runs_elsewhere(&self) -> Option<&str> {
        self.cluster().filter(|cluster| label(&self.resource) != Some(*cluster))
    }

    /// The name of the Kafka, if it is there.
    pub(super) fn cluster(&self) -> Option<&str> {
        match &self.kafka {
            FoundKafka::There(cluster) => Some(cluster.name.as_str()),
            _ => None,
        }
    }

    /// Whether its own ConfigMap is labelled with another Kafka.
    pub(super) fn is_mislabelled(&self) -> bool {
        self.recorded_cluster.is_some()
            && self.cluster().is_some()
            && self.recorded_cluster.as_deref() != self.cluster()
    }

    /// The engine, if there is one to ask.
    pub(super) fn engine(&self) -> Option<&Engine> {
        match &self.kafka {
            FoundKafka::There(cluster) => cluster.engine.as_ref(),
            _ => None,
        }
    }

    /// How long the engine measures before it first plans. None: only a few seconds.
    pub(super) fn first_window(&self) -> Option<Duration> {
        self.engine().and_then(|engine| engine.first_window)
    }

    /// Why the engine cannot be asked how something stands.
    pub(super) fn cannot_ask(&self) -> Option<Blocked> {
        let cluster = match &self.kafka {
            FoundKafka::There(cluster) => cluster,
            FoundKafka::Unnamed => {
                let what = "The label strimzi.io/cluster is missing: set it to the name of the Kafka";
                return Some(Blocked::new(Reason::InvalidResourceException, what));
            }
            FoundKafka::Missing { name } => {
                let what = format!(
                    "There is no Kafka {name} in this namespace: correct the label strimzi.io/cluster, or create it"
                );
                return Some(Blocked::new(Reason::NoSuchResourceException, what));
            }
            FoundKafka::NotSelected => {
                return Some(Blocked::new(Reason::InvalidResourceException, "The Kafka belongs to another operator"));
            }
        };
        let Some(engine) = &cluster.engine else { return Some(undeclared()) };
        let secret = engine.missing_secret.as_ref()?;
        let what =
            format!("Secret {secret} is missing or incomplete; the operator makes it once the Kafka is reconciled");
        Some(Blocked::new(Reason::NoSuchResourceException, what))
    }

    /// Why nothing can be begun.
    pub(super) fn cannot_start(&self) -> Option<Blocked> {
        // Whether the Kafka is ready comes before the Secrets: a Kafka that is being made has none yet.
        let leaving = || self.engine().filter(|engine| engine.is_leaving).map(|_| undeclared());
        self.not_ready().or_else(|| self.cannot_ask()).or_else(leaving).or_else(|| self.template.blocked())
    }

    /// That the Kafka is not ready: no obstacle to what has begun.
    pub(super) fn not_ready(&self) -> Option<Blocked> {
        match &self.kafka {
            FoundKafka::There(cluster) if !cluster.ready => {
                let what = format!("Kafka cluster is not Ready: see the conditions of Kafka {}", cluster.name);
                Some(Blocked::new(Reason::InvalidResourceException, what))
            }
            _ => None,
        }
    }

    /// Whether there is nothing left that could ever bring an operation to its end.
    pub(super) fn is_hopeless(&self) -> bool {
        match &self.kafka {
            FoundKafka::Unnamed | FoundKafka::Missing { .. } => true,
            FoundKafka::There(cluster) => cluster.engine.is_none() || self.namespace_terminating,
            FoundKafka::NotSelected => false,
        }
    }

    /// Whether settings come from a template.
    pub(super) fn names_a_template(&self) -> bool {
        self.template != Template::None
    }

    pub(super) fn uid(&self) -> &str {
        self.resource.metadata.uid.as_deref().unwrap_or_default()
    }

    pub(super) fn name(&self) -> &str {
        self.resource.metadata.name.as_deref().unwrap_or_default()
    }
}
