//! Where a rebalance stands, as its status says.
//!
//! A paused resource keeps its conditions: `ReconciliationPaused` comes before them, and the state that was
//! has the status `Unknown` for as long as nobody looks. So unpausing goes on where pausing left off.

use evenkeel_api::rebalance::RebalanceState;
use evenkeel_api::{Condition, KafkaRebalance, KafkaRebalanceStatus, Reason};
use jiff::Timestamp;
use uuid::Uuid;

const TRUE: &str = "True";
const UNKNOWN: &str = "Unknown";

/// The state of a resource, that before the pause if it is paused, and since when.
pub(crate) fn before_any_pause(resource: &KafkaRebalance) -> (RebalanceState, Option<Timestamp>) {
    let standing = Standing::of(resource);
    let since = standing.condition().and_then(Condition::since);
    (standing.state, since)
}

/// Where a rebalance stands.
#[derive(Clone, Debug)]
pub(super) struct Standing {
    /// The state, that before the pause if it is paused: so never `ReconciliationPaused`.
    pub state: RebalanceState,
    /// Whether the status says that it is paused.
    pub paused: bool,
    /// The conditions as they would be without a pause, the state first.
    pub conditions: Vec<Condition>,
    /// The task that was asked for last. Ids that no engine gives out count as none.
    pub session: Option<Uuid>,
    /// The rest.
    pub status: KafkaRebalanceStatus,
}

impl Standing {
    pub(super) fn of(resource: &KafkaRebalance) -> Self {
        let status = resource.status.clone().unwrap_or_default();
        let parsed = |condition: &Condition| condition.type_.parse::<RebalanceState>().ok();
        let paused = status.conditions.iter().find_map(parsed) == Some(RebalanceState::ReconciliationPaused);
        let (states, warnings): (Vec<Condition>, Vec<Condition>) =
            status.conditions.iter().cloned().partition(|condition| !condition.is_warning());
        // Of several states, which are not ours, the first counts.
        let state = states
            .into_iter()
            .find(|condition| parsed(condition).is_some_and(|state| state != RebalanceState::ReconciliationPaused));
        let state = state.map(|condition| Condition { status: TRUE.to_owned(), ..condition });
        Self {
            state: state.as_ref().and_then(parsed).unwrap_or_default(),
            paused,
            conditions: state.into_iter().chain(warnings).collect(),
            session: status.session_id.as_deref().and_then(|id| Uuid::try_parse(id).ok()),
            status,
        }
    }

    /// The condition that says the state. None for a new resource.
    pub(super) fn condition(&self) -> Option<&Condition> {
        self.conditions.first().filter(|condition| !condition.is_warning())
    }

    /// A warning that was there.
    pub(super) fn warning(&self, reason: Reason) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.is_warning() && condition.has_reason(reason))
    }

    /// Whether it failed before anything was asked of the engine: such a failure goes away with its cause.
    /// These two reasons are given to no other failure.
    pub(super) fn failed_before_any_request(&self) -> bool {
        let harmless = [Reason::InvalidResourceException, Reason::NoSuchResourceException];
        self.state == RebalanceState::NotReady
            && self.condition().is_some_and(|condition| harmless.iter().any(|reason| condition.has_reason(*reason)))
    }

    /// Whether it failed because nothing could be asked of the engine: its spec, with its template, asks for something
    /// impossible.
    pub(super) fn failed_as_impossible(&self) -> bool {
        self.state == RebalanceState::NotReady
            && self.condition().is_some_and(|condition| condition.has_reason(Reason::IllegalArgumentException))
    }

    /// The conditions of the resource while it is paused.
    pub(super) fn held(&self) -> Vec<Condition> {
        let hold = |condition: &Condition| match condition.is_warning() {
            true => condition.clone(),
            false => Condition { status: UNKNOWN.to_owned(), ..condition.clone() },
        };
        self.conditions.iter().map(hold).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(conditions: Vec<Condition>) -> KafkaRebalance {
        let mut resource = KafkaRebalance::new("r", Default::default());
        resource.status = Some(KafkaRebalanceStatus { conditions, ..Default::default() });
        resource
    }

    #[test]
    fn no_status_no_state_and_no_condition_are_all_new() {
        let mut bare = KafkaRebalance::new("r", Default::default());
        assert_eq!(Standing::of(&bare).state, RebalanceState::New);
        bare.status = Some(KafkaRebalanceStatus::default());
        assert_eq!(Standing::of(&bare).state, RebalanceState::New);
        let odd = with(vec![Condition::state("Sideways"), Condition::warning(Reason::UnknownFields, "x")]);
        assert_eq!(Standing::of(&odd).state, RebalanceState::New);
    }

    #[test]
    fn of_several_states_the_first_counts() {
        let two = with(vec![Condition::state("Stopped"), Condition::state("Ready")]);
        let standing = Standing::of(&two);
        assert_eq!((standing.state, standing.conditions.len()), (RebalanceState::Stopped, 1));
    }

    #[test]
    fn what_is_held_comes_back() {
        let mut running = Condition::state("Rebalancing");
        running.last_transition_time = Some("2026-01-01T00:00:00Z".to_owned());
        let before = vec![running, Condition::warning(Reason::ProposalOutdated, "x")];
        let standing = Standing::of(&with(before.clone()));
        let mut conditions = vec![Condition::state("ReconciliationPaused")];
        conditions.extend(standing.held());
        assert_eq!(conditions[1].status, "Unknown");
        let again = Standing::of(&with(conditions));
        assert_eq!((again.state, again.paused, again.conditions), (RebalanceState::Rebalancing, true, before));
    }

    #[test]
    fn an_id_that_is_none_counts_as_none() {
        let mut resource = with(vec![Condition::state("Rebalancing")]);
        resource.status.as_mut().unwrap().session_id = Some("what".to_owned());
        assert_eq!(Standing::of(&resource).session, None);
    }
}
