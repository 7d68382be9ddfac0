//! The decision: first what holds in every state, then state by state.

mod begin;
mod paused;
mod pending;
mod proposal_ready;
mod rebalancing;
mod resting;

use std::collections::BTreeMap;
use std::time::Duration;

use evenkeel_api::annotations::{self, Ask};
use evenkeel_api::rebalance::{RebalanceMode, RebalanceState};
use evenkeel_api::{Condition, Reason};
use evenkeel_rest::body::UserTask;
use evenkeel_rest::parameter::TaskStatus;
use jiff::Timestamp;

use super::config_map::FoundConfigMap;
use super::decision::{Decision, Finalizer};
use super::observe::{FoundKafka, Observation};
use super::state::Standing;
use super::{finalizer, messages};

/// How often an operation is looked at at least: progress is to be no older than five seconds.
const FOLLOW: Duration = Duration::from_secs(3);
/// How often one is looked at that may be over any moment: somebody waits for its end.
const CLOSELY: Duration = Duration::from_millis(500);
/// How long after a proposal was found outdated a new one is asked for. Kafka's brokers hear of a change one after another,
/// within half a second; one that is made at once may rest on what was before, and be outdated again.
const SETTLES: Duration = Duration::from_secs(2);
/// How often to ask again for what takes minutes to change.
const RETRY: Duration = Duration::from_secs(15);

/// What an observation says to everybody who decides.
pub(super) struct Round<'a> {
    pub seen: &'a Observation,
    pub standing: Standing,
    pub ask: Option<Ask>,
    pub auto_approved: bool,
    /// Deletion was asked for: nothing new is begun.
    pub deleting: bool,
    /// Automatic rebalancing made it, and waits for its end.
    pub generated: bool,
    /// The spec is not the one that the status speaks of.
    pub edited: bool,
}

impl Round<'_> {
    /// Whether there is a plan, and what the ConfigMap should say of it is missing there, or is perhaps that of the plan
    /// before. What was refused a moment ago is not tried again at once.
    pub(super) fn lacks_loads(&self) -> bool {
        let found = &self.seen.config_map;
        let has_plan = self.standing.status.optimization_result.is_some();
        let stale = matches!(found, FoundConfigMap::Ours(_)) && self.was_refused();
        has_plan && (found.is_lost() || (self.tells_loads() && (found.has_no_loads() || stale)))
    }

    /// Whether the ConfigMap could not be written when it was last tried: what is in it may be of another plan.
    pub(super) fn was_refused(&self) -> bool {
        self.standing.warning(Reason::KubernetesClientException).is_some()
    }

    /// Whether the engine says of such a plan what the brokers hold: Cruise Control does not when disks are removed.
    pub(super) fn tells_loads(&self) -> bool {
        let is_ours = self.seen.engine().is_some_and(|engine| engine.is_ours);
        is_ours || self.seen.resource.spec.mode != RebalanceMode::RemoveDisks
    }
}

/// What to do next about a KafkaRebalance.
pub fn decide(seen: &Observation) -> Decision {
    let resource = &seen.resource;
    let none = BTreeMap::new();
    let notes = resource.metadata.annotations.as_ref().unwrap_or(&none);
    let deleting = resource.metadata.deletion_timestamp.is_some();
    if seen.kafka == FoundKafka::NotSelected {
        // Whatever is on the resource, finalizers included, may be another operator's; but where everything goes nobody
        // is left to wait for.
        return if deleting && seen.namespace_terminating { release(seen) } else { Decision::nothing() };
    }
    // Automatic rebalancing waits for the end of what it made: a mark that somebody puts on it counts for nothing.
    let is_template = annotations::is_template(notes) && !finalizer::is_generated(resource);
    if is_template || (deleting && seen.is_hopeless()) {
        return release(seen);
    }
    let standing = Standing::of(resource);
    let edited =
        standing.status.observed_generation.is_some_and(|observed| Some(observed) != resource.metadata.generation);
    let round = Round {
        seen,
        ask: annotations::ask(notes),
        auto_approved: annotations::is_auto_approved(notes),
        deleting,
        generated: finalizer::is_generated(resource),
        // Asking for deletion raises the generation too.
        edited: edited && !deleting,
        standing,
    };
    // A deletion is followed to its end even so, or it would wait for ever.
    if annotations::is_paused(notes) && !deleting {
        return paused::pause(&round);
    }
    match round.standing.state {
        RebalanceState::New | RebalanceState::ReconciliationPaused => resting::fresh(&round),
        RebalanceState::PendingProposal => pending::pending(&round),
        RebalanceState::ProposalReady => proposal_ready::proposal_ready(&round),
        RebalanceState::Rebalancing => rebalancing::rebalancing(&round),
        RebalanceState::Stopped | RebalanceState::NotReady | RebalanceState::Ready => resting::resting(&round),
    }
}

/// Whether a task should have been planned long ago: by when it came, whatever was waited for before; and by our own clock,
/// with which the engine's need not agree.
fn is_slow(round: &Round<'_>, task: &UserTask) -> bool {
    let came = Timestamp::from_millisecond(task.start_ms).ok();
    let since = round.standing.condition().and_then(Condition::since);
    let is_old = |it: Timestamp| round.seen.now.duration_since(it) > messages::SLOW;
    task.status == TaskStatus::Active && came.is_some_and(is_old) && since.is_some_and(is_old)
}

/// Lets go, and does nothing else: it only holds settings, or nothing is left that could end what it holds.
fn release(seen: &Observation) -> Decision {
    let finalizer = if finalizer::is_on(&seen.resource) { Finalizer::Remove } else { Finalizer::Leave };
    Decision { finalizer, ..Decision::nothing() }
}
