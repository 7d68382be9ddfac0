//! The tracker of the tiny world, without what does not matter here: texts, and how long pauses are.

use evenkeel_api::kafka::AutoRebalanceMode;

use super::{
    run::UID,
    world::{Set, bits, set},
};
use crate::auto_rebalance::{
    decide::tests::{ADD, IMBALANCE, REMOVE, at},
    guards::STARTS_PER_HOUR,
    recipe::name_for,
    tracker::{Attempts, History, Sight, Tracker},
};

/// The two ids that anomalies have, one after the other.
pub(super) const ANOMALIES: [&str; 2] = ["a0", "a1"];

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Memory {
    in_sight: Option<(AutoRebalanceMode, usize, Set)>,
    removal: Tries,
    addition: Tries,
    /// The anomaly for which a rebalance has begun and has not ended.
    pub(super) begun: Option<usize>,
    /// The last rebalance on imbalance has just ended.
    pub(super) paused: bool,
    /// How many of them have begun within an hour.
    pub(super) starts: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Tries {
    failed: bool,
    unknown: u8,
    waits: bool,
    /// Whether the present run was counted.
    counted: bool,
}

impl Memory {
    pub(super) fn of(tracker: &Tracker) -> Self {
        let sight = |sight: &Sight| {
            let all = [ADD, REMOVE, IMBALANCE].into_iter().flat_map(|mode| [(mode, 0), (mode, 1)]);
            let (mode, anomaly) =
                all.into_iter().find(|(mode, anomaly)| sight.name == name_of(*mode, *anomaly)).expect("a name of ours");
            (mode, anomaly, bits(&sight.brokers))
        };
        let history = &tracker.imbalance;
        let begun = history.anomaly.as_deref().filter(|_| history.ended.is_none());
        Self {
            in_sight: tracker.in_sight.as_ref().map(sight),
            removal: Tries::of(&tracker.removal),
            addition: Tries::of(&tracker.addition),
            begun: begun.and_then(|id| ANOMALIES.iter().position(|known| *known == id)),
            paused: history.ended.is_some(),
            starts: history.starts.len(),
        }
    }

    pub(super) fn tracker(&self) -> Tracker {
        let sight = |(mode, anomaly, brokers)| Sight { name: name_of(mode, anomaly), brokers: set(brokers) };
        let imbalance = History {
            anomaly: self.begun.map(|anomaly| ANOMALIES[anomaly].to_owned()),
            ended: self.paused.then(|| at(0)),
            starts: vec![at(0); self.starts],
            ..History::default()
        };
        Tracker {
            in_sight: self.in_sight.map(sight),
            removal: self.removal.attempts(),
            addition: self.addition.attempts(),
            imbalance,
            ..Tracker::default()
        }
    }

    /// The added brokers whose rebalance was seen.
    pub(super) fn seen_filled(&self) -> Set {
        self.in_sight.filter(|(mode, ..)| *mode == ADD).map_or(0, |(.., brokers)| brokers)
    }

    /// What is read where somebody has written nonsense.
    pub(super) fn damaged() -> Self {
        Self { paused: true, starts: STARTS_PER_HOUR, ..Self::default() }
    }

    /// The run that was counted is not there any more.
    pub(super) fn without_run(mut self) -> Self {
        self.removal.counted = false;
        self.addition.counted = false;
        self
    }

    /// Another spec is another chance.
    pub(super) fn under_another_spec(mut self) -> Self {
        (self.removal, self.addition) = (Tries::default(), Tries::default());
        self
    }

    /// Pauses are over; so is the hour, if that long has passed.
    pub(super) fn aged(mut self, by_an_hour: bool) -> Self {
        self.with_another_engine();
        self.paused = false;
        if by_an_hour {
            self.starts = 0;
        }
        self
    }

    /// What failed may be tried at once.
    pub(super) fn with_another_engine(&mut self) {
        self.removal.waits = false;
        self.addition.waits = false;
    }

    /// Whether one more rebalance to added brokers of which nobody knows how it ended is not made again.
    pub(super) fn is_last_attempt(&self) -> bool {
        self.addition.unknown >= 3
    }

    pub(super) fn sketch(&self) -> String {
        format!("{:?} removal {:?} addition {:?}", self.in_sight, self.removal, self.addition)
    }
}

pub(super) fn name_of(mode: AutoRebalanceMode, anomaly: usize) -> String {
    name_for("c", mode, ANOMALIES[anomaly])
}

impl Tries {
    fn of(attempts: &Attempts) -> Self {
        Self {
            failed: attempts.failed > 0,
            unknown: attempts.unknown as u8,
            waits: !attempts.is_due(at(0)),
            counted: attempts.counted.as_deref() == Some(UID),
        }
    }

    fn attempts(self) -> Attempts {
        Attempts {
            failed: self.failed.into(),
            unknown: self.unknown.into(),
            not_before: self.waits.then(|| at(30)),
            counted: self.counted.then(|| UID.to_owned()),
            engine: Some("e1".to_owned()),
            ..Attempts::under("v1")
        }
    }
}
