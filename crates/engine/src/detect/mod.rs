//! Anomalies: what is wrong with the cluster, who hears of it, and what is done about it. Pure.
//!
//! Detectors find; [`Ledger`] remembers the last ones of each kind and which waits for an answer;
//! [`notifier`] answers: fix it, look again later, or let it be. [`violation_map`] is what an
//! operator reads who wants to rebalance by itself.

use std::collections::{BTreeMap, VecDeque};

use evenkeel_balancer::goal::Goal;
use uuid::Uuid;

pub mod notifier;
pub mod violation_map;

/// Milliseconds since 1970.
pub type Millis = i64;

/// How many of each kind are remembered.
const REMEMBERED: usize = 10;

/// The kinds that are looked for, the most urgent first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A broker is gone.
    BrokerFailure,
    /// A disk is gone.
    DiskFailure,
    /// A goal is not met.
    GoalViolation,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 3] = [Kind::BrokerFailure, Kind::DiskFailure, Kind::GoalViolation];

    /// The original's name.
    pub fn name(self) -> &'static str {
        match self {
            Kind::BrokerFailure => "BROKER_FAILURE",
            Kind::DiskFailure => "DISK_FAILURE",
            Kind::GoalViolation => "GOAL_VIOLATION",
        }
    }

    /// By the original's name, in any case.
    pub fn from_name(name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.name().eq_ignore_ascii_case(name))
    }
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// Goals that are not met: those that moves can mend, and those that they cannot.
    GoalViolation {
        /// Mendable.
        fixable: Vec<Goal>,
        /// Not mendable.
        unfixable: Vec<Goal>,
    },
    /// Brokers that are gone, and since when.
    BrokerFailure {
        /// By broker.
        since: BTreeMap<i32, Millis>,
        /// Whether so few are gone that their load can go elsewhere.
        fixable: bool,
    },
    /// Log directories that are gone, and since when.
    DiskFailure {
        /// By broker and directory.
        since: BTreeMap<i32, BTreeMap<String, Millis>>,
    },
}

impl Finding {
    /// Of which kind it is.
    pub fn kind(&self) -> Kind {
        match self {
            Finding::GoalViolation { .. } => Kind::GoalViolation,
            Finding::BrokerFailure { .. } => Kind::BrokerFailure,
            Finding::DiskFailure { .. } => Kind::DiskFailure,
        }
    }
}

/// What has become of an anomaly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Found, and nothing else yet.
    Detected,
    /// Left alone.
    Ignored,
    /// Being mended.
    FixStarted,
    /// Could not be begun to be mended.
    FixFailedToStart,
    /// To be looked at again.
    CheckWithDelay,
    /// The loads are not known yet.
    LoadMonitorNotReady,
    /// Too few loads are known.
    CompletenessNotReady,
}

impl Status {
    /// The original's name.
    pub fn name(self) -> &'static str {
        match self {
            Status::Detected => "DETECTED",
            Status::Ignored => "IGNORED",
            Status::FixStarted => "FIX_STARTED",
            Status::FixFailedToStart => "FIX_FAILED_TO_START",
            Status::CheckWithDelay => "CHECK_WITH_DELAY",
            Status::LoadMonitorNotReady => "LOAD_MONITOR_NOT_READY",
            Status::CompletenessNotReady => "COMPLETENESS_NOT_READY",
        }
    }
}

/// One anomaly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Anomaly {
    /// Its name.
    pub id: Uuid,
    /// When it was found.
    pub detected: Millis,
    /// What is wrong.
    pub finding: Finding,
    /// What has become of it, and when.
    pub status: (Status, Millis),
}

/// The last anomalies of each kind, and those that wait.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    recent: BTreeMap<Kind, VecDeque<Anomaly>>,
    /// When to handle, by urgency: kind, then time.
    waiting: BTreeMap<(Kind, Millis, Uuid), ()>,
}

impl Ledger {
    /// Takes a finding in; it waits to be handled.
    pub fn found(&mut self, id: Uuid, finding: Finding, now: Millis) {
        let kind = finding.kind();
        let recent = self.recent.entry(kind).or_default();
        if recent.len() == REMEMBERED {
            recent.pop_front();
        }
        recent.push_back(Anomaly { id, detected: now, finding, status: (Status::Detected, now) });
        self.waiting.insert((kind, now, id), ());
    }

    /// The most urgent one that is due.
    pub fn due(&self, now: Millis) -> Option<&Anomaly> {
        let (kind, _, id) = self.waiting.keys().find(|(_, at, _)| *at <= now)?;
        self.find(*kind, *id)
    }

    /// What has become of one. `again` says when it is to be looked at once more.
    pub fn settle(&mut self, id: Uuid, status: Status, now: Millis, again: Option<Millis>) {
        self.waiting.retain(|(_, _, waiting), ()| *waiting != id);
        let Some(anomaly) = self.recent.values_mut().flatten().find(|anomaly| anomaly.id == id) else { return };
        anomaly.status = (status, now);
        if let Some(at) = again {
            self.waiting.insert((anomaly.finding.kind(), at, id), ());
        }
    }

    /// Forgets what waits: something is being mended, and what is still wrong afterwards is found anew.
    pub fn clear_waiting(&mut self) {
        self.waiting.clear();
    }

    /// The last ones of a kind, the oldest first.
    pub fn recent(&self, kind: Kind) -> impl Iterator<Item = &Anomaly> {
        self.recent.get(&kind).into_iter().flatten()
    }

    fn find(&self, kind: Kind, id: Uuid) -> Option<&Anomaly> {
        self.recent(kind).find(|anomaly| anomaly.id == id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn violation() -> Finding {
        Finding::GoalViolation { fixable: vec![Goal::RackAware], unfixable: Vec::new() }
    }

    fn failure() -> Finding {
        Finding::BrokerFailure { since: [(3, 5)].into(), fixable: true }
    }

    fn id(number: u128) -> Uuid {
        Uuid::from_u128(number)
    }

    #[test]
    fn the_most_urgent_comes_first_and_none_before_its_time() {
        let mut ledger = Ledger::default();
        ledger.found(id(1), violation(), 10);
        ledger.found(id(2), failure(), 20);
        assert_eq!(ledger.due(15).unwrap().id, id(1));
        assert_eq!(ledger.due(20).unwrap().id, id(2));
        ledger.settle(id(2), Status::CheckWithDelay, 21, Some(100));
        assert_eq!(ledger.due(50).unwrap().id, id(1));
        ledger.settle(id(1), Status::Ignored, 22, None);
        assert_eq!(ledger.due(50), None);
        assert_eq!(ledger.due(100).unwrap().status, (Status::CheckWithDelay, 21));
        ledger.clear_waiting();
        assert_eq!(ledger.due(1_000), None);
    }

    #[test]
    fn ten_of_each_kind_are_remembered() {
        let mut ledger = Ledger::default();
        (0..13).for_each(|number| ledger.found(id(number), violation(), number as Millis));
        ledger.found(id(99), failure(), 1);
        let ids: Vec<Uuid> = ledger.recent(Kind::GoalViolation).map(|anomaly| anomaly.id).collect();
        assert_eq!(ids, (3..13).map(id).collect::<Vec<_>>());
        assert_eq!(ledger.recent(Kind::BrokerFailure).count(), 1);
        // What is no longer remembered is not handled either.
        assert_eq!(ledger.due(0), None);
    }

    #[test]
    fn kinds_are_known_by_the_original_s_names() {
        for kind in Kind::ALL {
            assert_eq!(Kind::from_name(&kind.name().to_lowercase()), Some(kind));
        }
        assert_eq!(Kind::from_name("METRIC_ANOMALY"), None);
    }
}
