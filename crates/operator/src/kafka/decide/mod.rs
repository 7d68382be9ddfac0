//! From what was seen of a cluster to what is recorded, written, done and told. Nobody is asked here and nothing waits;
//! the only dice are keys, passwords and the id of a new cluster.
//!
//! | file | what |
//! |---|---|
//! | `plan` | which nodes there should be, and who must stay |
//! | `certificates` | authorities and certificates, made where they lack |
//! | `objects` | all objects of the nodes, those that are no longer needed, and who is restarted |
//! | `engine` | all objects of the engine, and how it stands |
//! | `automatic` | what automatic rebalancing sees |
//! | `status` | what the Kafka and its pools say |

mod automatic;
mod certificates;
mod engine;
mod objects;
mod plan;
mod status;

use std::collections::BTreeMap;

use evenkeel_api::{Kafka, KafkaNodePoolStatus, KafkaStatus, annotations, kafka::AutoRebalanceMode};
use k8s_openapi::api::core::v1::Secret;
use kube::core::ApiResource;

use super::{
    certificates::CertificateError, config::DynamicChange, desired::Desired, nodes::Ids, problem::Problem, roll::Roll,
    scale_down::LOOKS_APART, seen::Seen, settings::Settings,
};
use crate::{
    auto_rebalance::{self, TrackerWrite, remember_added, sort_rebalances},
    seams::Happening,
};

/// What a decision depends on besides what was seen.
#[derive(Clone, Copy, Debug)]
pub struct Given<'a> {
    /// Images and the like.
    pub settings: &'a Settings,
    /// How long a node may be away before the Kafka counts as not ready.
    pub operation_timeout: std::time::Duration,
    /// Random bytes.
    pub random: fn() -> [u8; 16],
}

/// What to do, in this order. Who fails at one thing leaves out the rest, and decides anew from what is then seen.
#[derive(Clone, Debug, Default)]
pub struct Decision {
    /// To be recorded before anything else is done.
    pub first: Option<KafkaStatus>,
    /// To be done.
    pub deeds: Vec<Deed>,
    /// What becomes of the memory of automatic rebalancing.
    pub tracker: TrackerWrite,
    /// What the Kafka says at the end.
    pub status: KafkaStatus,
    /// What automatic rebalancing does.
    pub acts: Vec<auto_rebalance::Act>,
    /// What to tell.
    pub told: Vec<Happening>,
    /// Whether Kafka has to be asked who has what, before this is decided.
    pub look_closer: bool,
    /// When to look again if nothing happens before.
    pub look_again: Option<jiff::Timestamp>,
    /// Whether nothing can be made of what was written.
    pub is_refused: bool,
    /// To be shown to the next decision as [`Seen::empty_since`].
    pub found_empty: BTreeMap<i32, jiff::Timestamp>,
}

/// Something to do. None of them chooses anything; all of them may be done twice.
#[derive(Clone, Debug, PartialEq)]
pub enum Deed {
    /// Make an object what it should be.
    Apply(Desired),
    /// Make an object if it is not there.
    Create(Desired),
    /// Delete an object.
    Delete {
        /// What kind of object.
        resource: ApiResource,
        /// Its name.
        name: String,
    },
    /// Write the status of a pool.
    PoolStatus {
        /// Which.
        pool: String,
        /// What it says.
        status: Box<KafkaNodePoolStatus>,
    },
    /// Change settings of running brokers. `None` is for all of them.
    Reconfigure(Vec<(Option<i32>, DynamicChange)>),
    /// Restart a pod.
    Restart {
        /// Which.
        pod: String,
        /// Exactly this one.
        uid: String,
    },
    /// Strike a broker that is gone off Kafka's list.
    Unregister(i32),
}

impl Deed {
    fn applying(desired: Desired) -> Self {
        if desired.only_created { Self::Create(desired) } else { Self::Apply(desired) }
    }
}

/// What to do about a cluster.
pub fn decide(seen: &Seen, given: Given<'_>) -> Decision {
    try_to_decide(seen, given).unwrap_or_else(|trouble| refuse(seen, &trouble))
}

/// Why nothing can be made of a Kafka.
#[derive(Debug)]
enum Trouble {
    Spec(Vec<Problem>),
    Certificates(CertificateError),
}

/// The running cluster is left as it is, and what is wrong is said.
fn refuse(seen: &Seen, trouble: &Trouble) -> Decision {
    let status = status::refused(seen, trouble);
    let told = status::news(seen, &status);
    let deeds = status::refused_pools(seen, trouble);
    Decision { status, told, deeds, is_refused: true, ..Decision::default() }
}

fn try_to_decide(seen: &Seen, given: Given<'_>) -> Result<Decision, Trouble> {
    let plan = plan::plan(seen, given.settings).map_err(Trouble::Spec)?;
    let issued = certificates::issue(seen, &plan.model).map_err(Trouble::Certificates)?;
    let engine = engine::engine(seen, &plan.model, &issued, given).map_err(Trouble::Spec)?;
    let (generated, manual) = sort_rebalances(&seen.rebalances, seen.cluster());
    let configured = auto_rebalance::Configured::of(&seen.kafka.spec);
    let mut decision = Decision::default();

    // Added brokers are remembered before anything else is written: later nothing tells that they are new.
    let before = seen.kafka.status.clone().unwrap_or_default();
    let mut recorded = before.auto_rebalance.clone();
    let adds = configured.has(AutoRebalanceMode::AddBrokers);
    let remembered = remember_added(recorded.as_ref(), &plan.added, &generated, seen.now).filter(|_| adds);
    if remembered.is_some() || before.conditions.is_empty() {
        recorded = remembered.or(recorded);
        decision.first = Some(KafkaStatus { auto_rebalance: recorded.clone(), ..status::begun(seen, &before) });
    }

    let auto = automatic::observe(seen, &plan, engine.state, configured, recorded, generated, manual);
    let auto = auto_rebalance::decide(&auto);
    let nodes = objects::nodes(seen, &plan, &issued, given, &auto.cordoned);
    decision.look_closer = nodes.roll == Roll::LookCloser;
    decision.told = status::deeds_told(&plan, &nodes);
    decision.status = status::status(seen, given, &plan, &issued, &engine.remarks, &nodes, &auto);
    decision.told.extend(status::news(seen, &decision.status));
    decision.told.extend(auto.events.into_iter().map(|event| Happening {
        is_warning: event.is_warning,
        reason: event.reason.into(),
        note: event.note,
    }));
    decision.deeds = issued.deeds();
    decision.deeds.extend(nodes.deeds(seen, &plan));
    decision.deeds.extend(engine.deeds);
    decision.tracker = auto.tracker;
    decision.acts = auto.acts;
    let second_look = plan.found_empty.values().map(|since| since.saturating_add(LOOKS_APART).unwrap_or(seen.now));
    decision.look_again = auto.look_again.into_iter().chain(second_look.filter(|due| *due > seen.now)).min();
    decision.found_empty = plan.found_empty;
    Ok(decision)
}

/// Whether the operator is to leave a Kafka alone.
pub fn is_paused(kafka: &Kafka) -> bool {
    kafka.metadata.annotations.as_ref().is_some_and(annotations::is_paused)
}

/// Which brokers the user wants gone, if Kafka has to be asked about them.
pub fn questioned(seen: &Seen) -> Ids {
    plan::questioned(seen)
}

fn secret(seen: &Seen, name: &str) -> Option<Secret> {
    seen.live.read("Secret", name)
}
