//! Status conditions: exactly one state, and it stands first; warnings come after it.
//!
//! `kubectl get` prints the first condition only, and several warnings share one type, so the list
//! is ordered and atomic.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Reason;

/// Type of the condition of a resource that is as it should be.
pub const READY: &str = "Ready";
/// Type of the condition of a resource that is not as it should be.
pub const NOT_READY: &str = "NotReady";
/// Type of a condition that points at something without being a state.
pub const WARNING: &str = "Warning";

const TRUE: &str = "True";

/// One thing that is to be said about a resource.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// The state of the resource, or `Warning`.
    // Required by our schema, not by Strimzi's: a resource without it must be readable all the same.
    #[serde(rename = "type", default)]
    #[schemars(!default)]
    pub type_: String,

    /// `True`, `False` or `Unknown`.
    #[serde(default)]
    #[schemars(!default)]
    pub status: String,

    /// Since when this is so, in UTC.
    // A string, as in Strimzi: a time that does not parse must not make the resource unreadable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<String>,

    /// Why, in one word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,

    /// Why, and what to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl Condition {
    /// The condition that says: the resource is in this state.
    pub fn state(type_: impl Into<String>) -> Self {
        Self { type_: type_.into(), status: TRUE.into(), ..Self::default() }
    }

    /// A warning.
    pub fn warning(reason: Reason, message: impl Into<String>) -> Self {
        Self::state(WARNING).because(reason, message)
    }

    /// The same condition with its reason.
    #[must_use]
    pub fn because(mut self, reason: Reason, message: impl Into<String>) -> Self {
        self.reason = Some(reason.as_str().into());
        self.message = Some(message.into());
        self
    }

    /// Whether this is a warning and not a state.
    pub fn is_warning(&self) -> bool {
        self.type_ == WARNING
    }

    /// Whether this has the given reason.
    pub fn has_reason(&self, reason: Reason) -> bool {
        self.reason.as_deref() == Some(reason.as_str())
    }

    /// Since when this is so. None if nobody knows, or the time is malformed.
    pub fn since(&self) -> Option<Timestamp> {
        self.last_transition_time.as_ref()?.parse().ok()
    }

    /// Whether both say the same, though perhaps in other words or since another time.
    fn continues(&self, earlier: &Self) -> bool {
        (&self.type_, &self.status, &self.reason) == (&earlier.type_, &earlier.status, &earlier.reason)
    }
}

/// The conditions to write, given those that hold now and those that were written before.
///
/// The state comes first, the warnings after it in the order given. What held already keeps the time
/// since when it holds, also if its message has changed since: the queue of waiting rebalances is
/// ordered by that time, and a new wording must not cost anyone their place. So a status in which
/// nothing has changed is equal to the one before, and need not be written.
pub fn settle(now_true: impl IntoIterator<Item = Condition>, before: &[Condition], now: Timestamp) -> Vec<Condition> {
    let (states, warnings): (Vec<_>, Vec<_>) = now_true.into_iter().partition(|condition| !condition.is_warning());
    let mut conditions: Vec<Condition> = states.into_iter().chain(warnings).collect();

    // Several warnings may have the same reason. Each takes the time of at most one earlier
    // condition, and those with unchanged words choose first.
    let mut earlier: Vec<&Condition> = before.iter().collect();
    for condition in &mut conditions {
        condition.last_transition_time = None;
        let same = |old: &&Condition| condition.continues(old) && condition.message == old.message;
        if let Some(n) = earlier.iter().position(same) {
            condition.last_transition_time = earlier.remove(n).last_transition_time.clone();
        }
    }
    for condition in conditions.iter_mut().filter(|condition| condition.last_transition_time.is_none()) {
        if let Some(n) = earlier.iter().position(|old| condition.continues(old)) {
            condition.last_transition_time = earlier.remove(n).last_transition_time.clone();
        }
    }
    for condition in &mut conditions {
        condition.last_transition_time.get_or_insert_with(|| now.to_string());
    }
    conditions
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    fn times(conditions: &[Condition]) -> Vec<i64> {
        conditions.iter().map(|condition| condition.since().unwrap().as_second()).collect()
    }

    fn waiting(message: &str) -> Condition {
        Condition::warning(Reason::WaitingForOtherRebalance, message)
    }

    #[test]
    fn the_state_stands_first_and_warnings_keep_their_order() {
        let given = [waiting("a"), Condition::warning(Reason::UnknownFields, "b"), Condition::state(READY)];
        let types: Vec<_> = settle(given, &[], at(1)).into_iter().map(|c| (c.type_, c.message)).collect();
        let message = |text: &str| Some(text.to_string());
        assert_eq!(types, [(READY.into(), None), (WARNING.into(), message("a")), (WARNING.into(), message("b"))]);
    }

    #[test]
    fn nothing_changes_when_only_time_has_passed() {
        let given = || [Condition::state(READY), waiting("a"), waiting("b")];
        let first = settle(given(), &[], at(1));
        assert_eq!(settle(given(), &first, at(2)), first);
    }

    #[test]
    fn a_new_state_has_a_new_time_and_old_warnings_keep_theirs() {
        let first = settle([Condition::state("ProposalReady"), waiting("a")], &[], at(1));
        let second = settle([Condition::state("Rebalancing"), waiting("a")], &first, at(2));
        assert_eq!(times(&second), [2, 1]);
    }

    #[test]
    fn a_new_reason_is_a_change() {
        let failed = |reason| [Condition::state(NOT_READY).because(reason, "why")];
        let first = settle(failed(Reason::NoSuchResourceException), &[], at(1));
        assert_eq!(times(&settle(failed(Reason::CruiseControlRestException), &first, at(2))), [2]);
    }

    #[test]
    fn a_new_wording_is_not_a_change() {
        let first = settle([waiting("for a")], &[], at(1));
        let second = settle([waiting("for b")], &first, at(2));
        assert_eq!((times(&second), second[0].message.as_deref()), (vec![1], Some("for b")));
    }

    #[test]
    fn of_two_warnings_with_one_reason_the_unchanged_one_keeps_its_time() {
        let first = settle([waiting("a")], &[], at(1));
        let second = settle([waiting("new"), waiting("a")], &first, at(2));
        assert_eq!(times(&second), [2, 1]);
    }

    #[test]
    fn a_time_that_does_not_parse_is_kept_and_means_nothing() {
        let odd = Condition { last_transition_time: Some("yesterday".into()), ..Condition::state(READY) };
        let settled = settle([Condition::state(READY)], std::slice::from_ref(&odd), at(1));
        assert_eq!((settled[0].since(), &settled[0]), (None, &odd));
    }

    #[test]
    fn a_condition_without_a_time_gets_one() {
        let settled = settle([Condition::state(READY)], &[Condition::state(READY)], at(1));
        assert_eq!(times(&settled), [1]);
    }

    #[test]
    fn strimzis_times_with_nanoseconds_are_read() {
        let condition = Condition {
            last_transition_time: Some("2024-11-05T15:28:23.995129903Z".into()),
            ..Condition::state(READY)
        };
        assert_eq!(condition.since().unwrap().subsec_nanosecond(), 995_129_903);
    }
}
