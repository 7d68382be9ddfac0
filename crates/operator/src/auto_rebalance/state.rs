//! Where automatic rebalancing stands, as `Kafka.status.autoRebalance` records it.
//!
//! The status is the queue and the intent in one: it is written before anything is done, so that
//! whoever comes after a crash knows what was wanted. Brokers are sets here; lists are only a form.

use std::collections::BTreeSet;

use evenkeel_api::kafka::{AutoRebalanceMode, AutoRebalanceModeStatus, AutoRebalanceState, AutoRebalanceStatus};
use jiff::Timestamp;

use super::generated::Generated;

/// Ids of brokers.
pub type Brokers = BTreeSet<i32>;

/// The state in which a rebalance of this mode runs.
pub fn state_of(mode: AutoRebalanceMode) -> AutoRebalanceState {
    match mode {
        AutoRebalanceMode::RemoveBrokers => AutoRebalanceState::RebalanceOnScaleDown,
        AutoRebalanceMode::AddBrokers => AutoRebalanceState::RebalanceOnScaleUp,
        AutoRebalanceMode::Imbalance => AutoRebalanceState::RebalanceOnImbalance,
    }
}

/// The mode that runs in this state.
pub fn mode_of(state: AutoRebalanceState) -> Option<AutoRebalanceMode> {
    match state {
        AutoRebalanceState::Idle => None,
        AutoRebalanceState::RebalanceOnScaleDown => Some(AutoRebalanceMode::RemoveBrokers),
        AutoRebalanceState::RebalanceOnScaleUp => Some(AutoRebalanceMode::AddBrokers),
        AutoRebalanceState::RebalanceOnImbalance => Some(AutoRebalanceMode::Imbalance),
    }
}

/// The state as it is written in the status.
pub fn state_name(state: AutoRebalanceState) -> &'static str {
    match state {
        AutoRebalanceState::Idle => "Idle",
        AutoRebalanceState::RebalanceOnScaleDown => "RebalanceOnScaleDown",
        AutoRebalanceState::RebalanceOnScaleUp => "RebalanceOnScaleUp",
        AutoRebalanceState::RebalanceOnImbalance => "RebalanceOnImbalance",
    }
}

/// State and queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// What is being done.
    pub state: AutoRebalanceState,
    /// R: brokers to empty, running or queued.
    pub removals: Brokers,
    /// A: brokers that were added and have not got their data yet, running or queued.
    pub additions: Brokers,
    /// Whether the mode `imbalance` is listed.
    pub imbalance: bool,
}

impl Recorded {
    /// What a status says. None says that nothing was ever done.
    pub fn read(status: Option<&AutoRebalanceStatus>) -> Self {
        let Some(status) = status else { return Self::default() };
        let brokers = |mode| -> Brokers {
            status.modes.iter().filter(|entry| entry.mode == mode).flat_map(|entry| &entry.brokers).copied().collect()
        };
        Self {
            state: status.state,
            removals: brokers(AutoRebalanceMode::RemoveBrokers),
            additions: brokers(AutoRebalanceMode::AddBrokers),
            imbalance: status.modes.iter().any(|entry| entry.mode == AutoRebalanceMode::Imbalance),
        }
    }

    /// The status to write. If nothing has changed it is equal to the one before, also in its time.
    pub fn written(&self, before: Option<&AutoRebalanceStatus>, now: Timestamp) -> AutoRebalanceStatus {
        let unchanged = before.filter(|before| Self::read(Some(before)) == *self);
        let since = unchanged.and_then(|before| before.last_transition_time.clone());
        let entry =
            |mode, brokers: &Brokers| AutoRebalanceModeStatus { mode, brokers: brokers.iter().copied().collect() };
        let listed = [
            (AutoRebalanceMode::RemoveBrokers, &self.removals, !self.removals.is_empty()),
            (AutoRebalanceMode::AddBrokers, &self.additions, !self.additions.is_empty()),
            (AutoRebalanceMode::Imbalance, &Brokers::new(), self.imbalance),
        ];
        AutoRebalanceStatus {
            state: self.state,
            last_transition_time: Some(since.unwrap_or_else(|| now.to_string())),
            modes: listed.iter().filter(|(.., there)| *there).map(|(mode, brokers, _)| entry(*mode, brokers)).collect(),
        }
    }
}

/// The status with these brokers remembered as added, to be written before anything else of a
/// scale-up is: once the node pool's status lists them, nothing else knows that they are new.
/// None if there is nothing to remember.
pub fn remember_added(
    before: Option<&AutoRebalanceStatus>,
    added: &Brokers,
    generated: &[Generated],
    now: Timestamp,
) -> Option<AutoRebalanceStatus> {
    let before_it = Recorded::read(before);
    let mut recorded = before_it.clone();
    recorded.additions.extend(added);
    // A rebalance that names a broker which only now comes was for an earlier one of the same id, and
    // so may one be that is no longer there. Neither its end nor its lack says anything about this one.
    let mut runs = generated.iter().filter(|own| own.mode == AutoRebalanceMode::AddBrokers).peekable();
    let is_reborn = runs.peek().is_none() || runs.any(|run| !run.brokers.is_disjoint(added));
    if is_reborn && !added.is_empty() && recorded.state == AutoRebalanceState::RebalanceOnScaleUp {
        recorded.state = AutoRebalanceState::Idle;
    }
    (recorded != before_it).then(|| recorded.written(before, now))
}

/// Broker ids as they stand in a sentence.
pub(super) fn listed(brokers: &Brokers) -> String {
    let ids: Vec<String> = brokers.iter().map(i32::to_string).collect();
    format!("[{}]", ids.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    #[test]
    fn what_is_written_is_read_back() {
        for (state, imbalance) in [
            (AutoRebalanceState::Idle, false),
            (AutoRebalanceState::RebalanceOnScaleDown, true),
            (AutoRebalanceState::RebalanceOnScaleUp, false),
            (AutoRebalanceState::RebalanceOnImbalance, true),
        ] {
            let recorded = Recorded { state, removals: [4, 3].into(), additions: [5].into(), imbalance };
            assert_eq!(Recorded::read(Some(&recorded.written(None, at(0)))), recorded);
            let json = serde_json::to_value(state).unwrap();
            assert_eq!(json, state_name(state));
            assert_eq!(mode_of(state).map_or(AutoRebalanceState::Idle, state_of), state);
        }
    }

    #[test]
    fn an_idle_status_without_work_has_no_modes() {
        let status = Recorded::default().written(None, at(0));
        assert_eq!(
            serde_json::to_value(status).unwrap(),
            serde_json::json!({"state": "Idle", "lastTransitionTime": "1970-01-01T00:00:00Z"})
        );
    }

    #[test]
    fn the_time_changes_only_with_what_is_said() {
        let recorded = Recorded { additions: [3].into(), ..Recorded::default() };
        let first = recorded.written(None, at(1));
        assert_eq!(recorded.written(Some(&first), at(2)), first);
        let more = Recorded { additions: [3, 4].into(), ..Recorded::default() };
        assert_eq!(more.written(Some(&first), at(2)).last_transition_time.unwrap(), at(2).to_string());
    }

    #[test]
    fn added_brokers_are_remembered_once() {
        let status = remember_added(None, &[3, 4].into(), &[], at(1)).unwrap();
        assert_eq!(Recorded::read(Some(&status)).additions, [3, 4].into());
        assert_eq!(remember_added(Some(&status), &[4].into(), &[], at(2)), None);
        assert_eq!(remember_added(Some(&status), &[].into(), &[], at(2)), None);
    }

    #[test]
    fn what_is_on_record_of_an_earlier_broker_of_the_same_id_does_not_count() {
        let up = AutoRebalanceState::RebalanceOnScaleUp;
        let running = Recorded { state: up, additions: [3].into(), ..Recorded::default() }.written(None, at(2));
        let run = Generated { brokers: [3].into(), ..Generated::default() };
        for (added, generated, state) in [
            (4, std::slice::from_ref(&run), up),
            (3, std::slice::from_ref(&run), AutoRebalanceState::Idle),
            (3, &[], AutoRebalanceState::Idle),
        ] {
            let status = remember_added(Some(&running), &[added].into(), generated, at(3));
            assert_eq!(Recorded::read(status.as_ref()).state, state, "{added}");
        }
        assert_eq!(remember_added(Some(&running), &[].into(), &[], at(3)), None);
    }
}
