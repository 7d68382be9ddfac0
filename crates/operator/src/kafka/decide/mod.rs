//! From what was seen of a cluster to what is recorded, written, done and told. Nobody is asked here and nothing waits;
//! the only dice are keys, passwords and the id of a new cluster.
//!
//! | file | what |
//! |---|---|
//! | `deeds` | things to do, and which rest on which |
//! | `plan` | which nodes there should be, and who must stay |
//! | `certificates` | authorities and certificates, made where they lack |
//! | `objects` | all objects of the nodes, what they are told, and who is restarted |
//! | `gone` | what nodes that went have left |
//! | `engine` | all objects of the engine, and how it stands |
//! | `automatic` | what automatic rebalancing sees |
//! | `status` | what the Kafka and its pools say |
//! | `again` | when to look again |
//! | `at_rest` | whether nothing is wanted, and all that could change it is heard of |

mod again;
mod at_rest;
mod automatic;
mod certificates;
mod deeds;
mod engine;
mod gone;
mod objects;
mod plan;
mod status;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use evenkeel_api::{Kafka, KafkaStatus, annotations, kafka::AutoRebalanceMode};
use k8s_openapi::api::core::v1::Secret;

use super::{
    certificates::CertificateError,
    nodes::Ids,
    problem::{Problem, Remark},
    roll::Roll,
    seen::{Missing, Seen},
    settings::Settings,
};
use crate::{
    another,
    auto_rebalance::{self, Brake, Engine, TrackerWrite, remember_added, sort_rebalances, while_refused},
    seams::Happening,
};

pub use deeds::{Deed, Step};
pub use status::{confess, standing_still, unnameable, unseen};

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

/// What to do, in this order. Who fails at a deed leaves out those that rest on it; who fails at anything else leaves out
/// the rest. All is decided anew from what is then seen.
#[derive(Clone, Debug, Default)]
pub struct Decision {
    /// Why all of it is to be left alone, down to the status. Then there is nothing else in a decision.
    pub left_alone: Option<Happening>,
    /// To be recorded before anything else is done.
    pub first: Option<KafkaStatus>,
    /// To be done.
    pub deeds: Vec<Step>,
    /// What becomes of the memory of automatic rebalancing.
    pub tracker: TrackerWrite,
    /// What the Kafka says at the end.
    pub status: KafkaStatus,
    /// What automatic rebalancing does.
    pub acts: Vec<auto_rebalance::Act>,
    /// What to tell once that is recorded.
    pub told: Vec<Happening>,
    /// What to tell of automatic rebalancing, if its memory could be written too.
    pub told_of_rebalancing: Vec<Happening>,
    /// Whether Kafka has to be asked who has what, before this is decided.
    pub look_closer: bool,
    /// When to look again if nothing happens before.
    pub look_again: Option<jiff::Timestamp>,
    /// Whether it is at rest once this is done: until something is heard of it, it is enough to ask Kafka.
    pub is_at_rest: bool,
    /// To be shown to the next decision as [`Seen::empty_since`].
    pub found_empty: BTreeMap<i32, jiff::Timestamp>,
    /// To be shown to the next decision as [`Seen::missing_since`].
    pub found_missing: BTreeMap<Missing, jiff::Timestamp>,
    /// To be shown to the next decision as [`Seen::quiet_since`].
    pub found_quiet: Option<jiff::Timestamp>,
    /// To be shown to the next decision as [`Seen::struck_off`], if all was done.
    pub struck_off: BTreeMap<i32, jiff::Timestamp>,
}

/// What to do about a cluster.
pub fn decide(seen: &Seen, given: Given<'_>) -> Decision {
    let left_alone = another::runs_it(seen.pod_sets.iter().map(|set| &set.metadata));
    if left_alone.is_some() {
        return Decision { left_alone, ..Decision::default() };
    }
    try_to_decide(seen, given).unwrap_or_else(|trouble| refuse(seen, &trouble))
}

/// Why nothing can be made of a Kafka.
#[derive(Debug)]
enum Trouble {
    Spec(Vec<Problem>),
    Certificates(CertificateError),
}

/// The running cluster is left as it is, and what is wrong is said. What rebalances by itself can still be ended.
fn refuse(seen: &Seen, trouble: &Trouble) -> Decision {
    let status = status::refused(seen, trouble);
    let told = status::news(seen, &status);
    let deeds = status::refused_pools(seen, trouble);
    let (generated, _) = sort_rebalances(&seen.rebalances, seen.cluster());
    let brake = Brake::read(seen.kafka.metadata.annotations.as_ref().unwrap_or(&BTreeMap::new()));
    let acts = while_refused(&generated, &brake, &auto_rebalance::Configured::of(&seen.kafka.spec));
    // It is refused until it is written differently, and then a watch calls.
    Decision { status, told, deeds, acts, ..Decision::default() }
}

fn try_to_decide(seen: &Seen, given: Given<'_>) -> Result<Decision, Trouble> {
    let plan = plan::plan(seen, given.settings).map_err(Trouble::Spec)?;
    let issued = certificates::issue(seen, &plan.model).map_err(Trouble::Certificates)?;
    let engine = engine::engine(seen, &plan.model, &issued, given).map_err(Trouble::Spec)?;
    let (generated, manual) = sort_rebalances(&seen.rebalances, seen.cluster());
    let drains = generated.iter().any(|own| own.mode == AutoRebalanceMode::RemoveBrokers);
    let mut configured = auto_rebalance::Configured::of(&seen.kafka.spec);
    if let Some(watched) = &engine.watched {
        // What the engine really watches: with few capacities stated, or goals that are none of its defaults, that is
        // something else than what the user named.
        configured.detection_goals = watched.clone();
    }
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

    let is_rolling = engine.state == Engine::Rolling;
    let observed = automatic::observe(seen, &plan, engine.state, configured, recorded, generated, manual);
    let auto = auto_rebalance::decide(&observed);
    let nodes = objects::nodes(seen, &plan, &issued, given, &auto.cordoned);
    decision.look_closer = nodes.roll == Roll::LookCloser || nodes.gone.is_unread;
    let late = engine::late(seen, given, &plan.model, is_rolling);
    let remarks = engine.remarks.iter().chain(&nodes.remarks).cloned().chain(issued.remark()).chain(late);
    let remarks: Vec<Remark> = remarks.collect();
    decision.status = status::status(seen, given, &plan, &issued, &remarks, &nodes, &auto);
    decision.told = status::news(seen, &decision.status);
    let happening = |event: auto_rebalance::Event| Happening {
        is_warning: event.is_warning,
        reason: event.reason.into(),
        note: event.note,
    };
    decision.told_of_rebalancing = auto.events.into_iter().map(happening).collect();
    decision.deeds = issued.deeds().into_iter().map(Step::from).collect();
    decision.deeds.extend(nodes.steps(seen, &plan));
    decision.deeds.extend(engine.deeds.into_iter().map(Step::from));
    decision.tracker = auto.tracker;
    decision.acts = auto.acts;
    let is_quiet = decision.deeds.is_empty() && decision.acts.is_empty() && decision.tracker == TrackerWrite::Keep;
    let is_quiet = is_quiet && seen.kafka.status.as_ref() == Some(&decision.status);
    decision.found_quiet = is_quiet.then(|| seen.quiet_since.unwrap_or(seen.now));
    let own = again::look_again(seen, &plan, &nodes, &decision, drains);
    decision.look_again = auto.look_again.into_iter().chain(own).min();
    decision.found_missing = status::missing(seen, &plan.model, is_rolling);
    decision.found_empty = plan.found_empty;
    decision.struck_off = nodes.gone.struck_off;
    let rebalancing = at_rest::Rebalancing {
        configured: &observed.configured,
        generated: &observed.generated,
        warns: !auto.warnings.is_empty(),
    };
    decision.is_at_rest = at_rest::is_at_rest(seen, &plan.model, &decision, &rebalancing);
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
