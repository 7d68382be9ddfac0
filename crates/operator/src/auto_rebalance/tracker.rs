//! What automatic rebalancing must remember beyond the status: ConfigMap
//! `<cluster>-rebalancing-tracker`.
//!
//! It is written before the status is, so what it counts may be counted for a step that a crash then
//! prevented, never the other way round; whatever is counted is counted once for each resource.

use std::collections::{BTreeMap, BTreeSet};

use evenkeel_api::kafka::AutoRebalanceMode;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::{guards, state::Brokers};

/// Key of the time when a rebalance, of whatever kind, last came to its end.
pub const LAST_COMPLETION: &str = "lastRebalanceCompletionTime";
/// Key of everything else.
pub const MEMORY: &str = "memory.json";

/// How long starts of rebalances on imbalance are remembered: as long as they limit others.
const STARTS_COUNT_FOR: SignedDuration = SignedDuration::from_hours(1);

/// Name of the ConfigMap.
pub fn tracker_name(cluster: &str) -> String {
    format!("{cluster}-rebalancing-tracker")
}

/// What is remembered.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
pub struct Tracker {
    /// When a rebalance last came to its end.
    #[serde(skip)]
    pub last_completion: Option<Timestamp>,
    /// The generated rebalance that was last seen in the present state. Without it, one that is not
    /// there was never made; with it, somebody has removed it.
    pub in_sight: Option<Sight>,
    /// Attempts to empty brokers.
    pub removal: Attempts,
    /// Attempts to move data to added brokers.
    pub addition: Attempts,
    /// Rebalances on imbalance.
    pub imbalance: History,
    /// The last failure of each mode since its last success.
    pub failures: BTreeMap<AutoRebalanceMode, LastFailure>,
}

/// A generated rebalance that was seen.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct Sight {
    /// Its name.
    pub name: String,
    /// Its brokers.
    pub brokers: Brokers,
}

/// Attempts that failed in a row.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
pub struct Attempts {
    /// How many failed.
    pub failed: u32,
    /// Of how many nobody knows how they ended.
    pub unknown: u32,
    /// The engine that the last one failed under, if one was there.
    pub engine: Option<String>,
    /// Not to be tried again before.
    pub not_before: Option<Timestamp>,
    /// Uid of the resource that was counted last.
    pub counted: Option<String>,
    /// What the spec was then. Another spec is another chance.
    pub spec_version: String,
}

/// Rebalances on imbalance.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
pub struct History {
    /// The anomaly that the last one was for.
    pub anomaly: Option<String>,
    /// The goals that it was for.
    pub goals: BTreeSet<String>,
    /// How many in a row had a goal in common with the one before.
    pub repeats: u32,
    /// When those of the last hour began.
    pub starts: Vec<Timestamp>,
    /// When the last one came to its end.
    pub ended: Option<Timestamp>,
}

/// Why a rebalance failed or was stopped.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct LastFailure {
    /// Whether a user stopped it.
    pub stopped: bool,
    /// What to tell about it.
    pub message: String,
    /// What the spec was then.
    pub spec_version: String,
}

impl Tracker {
    /// What this data says, and whether it could be read. What was made unreadable, or taken out, is forgotten, but
    /// for one thing: as many rebalances on imbalance count as begun as may be in an hour, and the pause after the last one
    /// begins anew, so that nobody lifts the guards by damaging their memory.
    pub fn read(data: Option<&BTreeMap<String, String>>, now: Timestamp) -> (Self, bool) {
        let Some(data) = data else { return (Self::default(), true) };
        let memory = data.get(MEMORY).map(|text| serde_json::from_str::<Self>(text));
        let completion = data.get(LAST_COMPLETION).map(|text| text.parse::<Timestamp>());
        let readable = matches!(memory, Some(Ok(_))) && !matches!(completion, Some(Err(_)));
        let mut tracker = match memory {
            Some(Ok(tracker)) => tracker,
            None | Some(Err(_)) => Self { imbalance: History::lost(now), ..Self::default() },
        };
        tracker.last_completion = completion.and_then(Result::ok);
        (tracker, readable)
    }

    /// The data to write.
    pub fn written(&self) -> BTreeMap<String, String> {
        let memory = serde_json::to_string(self).unwrap_or_default();
        let completion = self.last_completion.map(|time| (LAST_COMPLETION.to_owned(), time.to_string()));
        completion.into_iter().chain([(MEMORY.to_owned(), memory)]).collect()
    }

    /// Forgets what another spec has made meaningless, and what is too old to matter.
    pub(super) fn refresh(&mut self, spec_version: &str, now: Timestamp) {
        for attempts in [&mut self.removal, &mut self.addition] {
            if attempts.spec_version != spec_version {
                *attempts = Attempts::under(spec_version);
            }
            // A time that has not come yet was written by a clock that was wrong, or by a user.
            let latest = now.saturating_add(guards::LONGEST_BACKOFF).unwrap_or(Timestamp::MAX);
            attempts.not_before = attempts.not_before.map(|time| time.min(latest));
        }
        self.failures.retain(|_, failure| failure.spec_version == spec_version);
        self.imbalance.starts.retain(|start| now.duration_since(*start).abs() < STARTS_COUNT_FOR);
        self.imbalance.ended = self.imbalance.ended.map(|ended| ended.min(now));
        self.last_completion = self.last_completion.map(|completion| completion.min(now));
    }
}

impl Attempts {
    /// None yet, under this version of the spec.
    pub(super) fn under(spec_version: &str) -> Self {
        Self { spec_version: spec_version.to_owned(), ..Self::default() }
    }

    /// Counts a failure of this resource, once, and sets the time of the next attempt.
    pub(super) fn count_failure(&mut self, uid: &str, now: Timestamp, engine: Option<&str>) {
        if self.counted.as_deref() != Some(uid) {
            self.counted = Some(uid.to_owned());
            self.failed = self.failed.saturating_add(1);
            self.engine = engine.map(str::to_owned);
            self.not_before = Some(now.saturating_add(guards::backoff(self.failed)).unwrap_or(Timestamp::MAX));
        }
    }

    /// Counts an attempt of which nobody knows how it ended, once.
    pub(super) fn count_unknown(&mut self, uid: &str) {
        if self.counted.as_deref() != Some(uid) {
            self.counted = Some(uid.to_owned());
            self.unknown = self.unknown.saturating_add(1);
        }
    }

    /// This engine is there now. If it is another one than it failed under, it may be tried at once. How often it failed still
    /// counts, or one that dies of it would be asked again and again without a pause.
    pub(super) fn renew(&mut self, engine: &str) {
        if self.engine.as_deref() != Some(engine) {
            self.not_before = None;
        }
    }

    /// Whether it is time for an attempt.
    pub(super) fn is_due(&self, now: Timestamp) -> bool {
        self.not_before.is_none_or(|time| time <= now)
    }
}

impl History {
    /// Nobody knows what it was, so it counts as whatever holds back most.
    fn lost(now: Timestamp) -> Self {
        Self { starts: vec![now; guards::STARTS_PER_HOUR], ended: Some(now), ..Self::default() }
    }

    /// Remembers that a rebalance for this anomaly begins. Counted once for each anomaly.
    pub(super) fn begin(&mut self, anomaly: &str, goals: BTreeSet<String>, now: Timestamp) {
        if self.anomaly.as_deref() == Some(anomaly) && self.ended.is_none() {
            return;
        }
        let again = !self.goals.is_disjoint(&goals) && self.remembers(now);
        self.repeats = if again { self.repeats.saturating_add(1) } else { 1 };
        self.anomaly = Some(anomaly.to_owned());
        self.goals = goals;
        self.starts.push(now);
        self.ended = None;
    }

    /// One that was counted and never made, and for which it is too late, has ended when it was to begin: what it was for is not
    /// the first on record any more.
    pub(super) fn give_up_unless_first_is(&mut self, first: Option<&str>, now: Timestamp) {
        if self.ended.is_none() && self.anomaly.is_some() && self.anomaly.as_deref() != first {
            self.ended = Some(self.starts.last().copied().unwrap_or(now));
        }
    }

    /// Whether the last rebalance is recent enough for its goals to count as coming back.
    pub(super) fn remembers(&self, now: Timestamp) -> bool {
        self.ended.is_some_and(|ended| now.duration_since(ended) < guards::GOALS_REMEMBERED_FOR)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    fn goals(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn what_is_written_is_read_back() {
        let mut tracker = Tracker {
            last_completion: Some(at(5)),
            in_sight: Some(Sight { name: "x".into(), brokers: [3].into() }),
            ..Tracker::default()
        };
        tracker.refresh("v1", at(6));
        tracker.removal.count_failure("u1", at(6), Some("e1"));
        tracker.imbalance.begin("a1", goals(&["A"]), at(6));
        let failure = LastFailure { stopped: true, message: "m".into(), spec_version: "v1".into() };
        tracker.failures.insert(AutoRebalanceMode::RemoveBrokers, failure);
        assert_eq!(Tracker::read(Some(&tracker.written()), at(7)), (tracker, true));
        assert_eq!(Tracker::read(None, at(7)), (Tracker::default(), true));
    }

    #[test]
    fn a_damaged_memory_is_forgotten_and_the_pause_begins_anew() {
        let damaged = ["", "{", "3", "{\"removal\": 3}", "{\"imbalance\": {\"starts\": [\"x\"]}}"];
        let mut all: Vec<BTreeMap<String, String>> =
            damaged.iter().map(|text| BTreeMap::from([(MEMORY.to_owned(), (*text).to_owned())])).collect();
        all.push(BTreeMap::new());
        all.push(BTreeMap::from([(LAST_COMPLETION.to_owned(), "yesterday".to_owned())]));
        for data in all {
            let (tracker, readable) = Tracker::read(Some(&data), at(7));
            assert!(!readable, "{data:?}");
            assert_eq!((tracker.imbalance.ended, tracker.imbalance.starts.len()), (Some(at(7)), 2), "{data:?}");
            let closed = guards::closed(&tracker.imbalance, &goals(&["A"]), &[], at(8));
            assert!(closed.iter().any(|guard| guard.opens.is_some_and(|opens| opens >= at(3_600))), "{data:?}");
        }
        let mut data = Tracker::default().written();
        data.insert(LAST_COMPLETION.to_owned(), "yesterday".to_owned());
        assert_eq!(Tracker::read(Some(&data), at(7)), (Tracker::default(), false));
    }

    #[test]
    fn a_resource_is_counted_once_and_pauses_grow() {
        let mut attempts = Attempts::default();
        attempts.count_failure("u1", at(0), None);
        let first = attempts.clone();
        attempts.count_failure("u1", at(100), None);
        assert_eq!(attempts, first);
        assert!(!attempts.is_due(at(29)) && attempts.is_due(at(30)));
        attempts.count_failure("u2", at(100), None);
        assert_eq!((attempts.failed, attempts.not_before), (2, Some(at(160))));
        attempts.count_unknown("u2");
        assert_eq!(attempts.unknown, 0);
        attempts.count_unknown("u3");
        assert_eq!(attempts.unknown, 1);
    }

    #[test]
    fn a_time_that_has_not_come_yet_holds_nothing_up_for_long() {
        let wrong = Some("2099-01-01T00:00:00Z".parse().unwrap());
        let mut tracker = Tracker { last_completion: wrong, ..Tracker::default() };
        tracker.removal.not_before = wrong;
        tracker.addition.not_before = wrong;
        tracker.refresh("", at(0));
        let latest = Some(at(600));
        assert_eq!((tracker.removal.not_before, tracker.addition.not_before), (latest, latest));
        assert_eq!(tracker.last_completion, Some(at(0)));
        let before = tracker.clone();
        tracker.refresh("", at(60));
        assert_eq!(tracker, before, "once is enough");
    }

    #[test]
    fn another_engine_is_another_chance() {
        let mut attempts = Attempts::default();
        attempts.count_failure("u1", at(10), Some("e1"));
        attempts.renew("e1");
        assert!(!attempts.is_due(at(11)), "it is the one that failed");
        attempts.renew("e2");
        assert!(attempts.is_due(at(11)));
        attempts.count_failure("u2", at(12), Some("e2"));
        attempts.renew("e2");
        assert_eq!((attempts.failed, attempts.not_before), (2, Some(at(72))), "pauses grow all the same");
    }

    #[test]
    fn another_spec_is_another_chance() {
        let mut tracker = Tracker::default();
        tracker.refresh("v1", at(0));
        tracker.removal.count_failure("u1", at(0), None);
        let failure = LastFailure { spec_version: "v1".into(), ..LastFailure::default() };
        tracker.failures.insert(AutoRebalanceMode::RemoveBrokers, failure);
        let before = tracker.clone();
        tracker.refresh("v1", at(1));
        assert_eq!(tracker, before);
        tracker.refresh("v2", at(1));
        assert!(tracker.removal.is_due(at(1)) && tracker.failures.is_empty());
    }

    #[test]
    fn goals_that_come_back_are_counted() {
        let mut history = History::default();
        history.begin("a1", goals(&["A", "B"]), at(0));
        history.begin("a1", goals(&["A", "B"]), at(1));
        assert_eq!((history.repeats, history.starts.len()), (1, 1), "a crash came between record and deed");
        for (anomaly, names, repeats) in [("a2", &["B"][..], 2), ("a3", &["B", "C"], 3), ("a4", &["D"], 1)] {
            history.ended = Some(at(10));
            history.begin(anomaly, goals(names), at(20));
            assert_eq!(history.repeats, repeats, "{anomaly}");
        }
        history.give_up_unless_first_is(Some("a4"), at(21));
        assert_eq!(history.ended, None, "it can still be made");
        history.give_up_unless_first_is(None, at(21));
        assert_eq!(history.ended, Some(at(20)), "it was counted, and is not made any more");
        history.ended = Some(at(30));
        let next_day = 30 + guards::GOALS_REMEMBERED_FOR.as_secs();
        history.begin("a5", goals(&["D"]), at(next_day));
        assert_eq!(history.repeats, 1, "long ago");
    }
}
