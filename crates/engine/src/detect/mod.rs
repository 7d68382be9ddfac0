//! Anomalies: what is wrong with the cluster, who hears of it, and what is done about it.
//!
//! Rounds find: [`goals`] judges the model, [`failures`] misses brokers and disks. [`Ledger`] remembers
//! the last ones of each kind and which waits for an answer; [`notifier`] answers: fix it, look again
//! later, or let it be; [`repair`] is the request that fixes it. [`tally`] and [`switches`] count, and
//! [`state`] tells all of it. [`violation_map`] is what an operator reads who wants to rebalance by
//! itself. All of that is pure; [`service`] is the loop around it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use evenkeel_balancer::goal::Goal;
use evenkeel_rest::parameter::AnomalyType;
use uuid::Uuid;

pub mod failures;
pub mod goals;
pub mod notifier;
pub mod repair;
pub mod service;
pub mod state;
pub mod switches;
pub mod tally;
pub mod timetable;
pub mod violation_map;
pub mod words;

pub use evenkeel_rest::body::state::AnomalyStatus as Status;

/// Milliseconds since 1970.
pub type Millis = i64;

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

impl From<Kind> for AnomalyType {
    fn from(kind: Kind) -> AnomalyType {
        match kind {
            Kind::BrokerFailure => AnomalyType::BrokerFailure,
            Kind::DiskFailure => AnomalyType::DiskFailure,
            Kind::GoalViolation => AnomalyType::GoalViolation,
        }
    }
}

impl Kind {
    /// The original's name.
    pub fn name(self) -> &'static str {
        AnomalyType::from(self).name()
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
    /// The plan that mends it, in words.
    pub plan: Option<String>,
}

/// The last anomalies of each kind, and those that wait for an answer.
#[derive(Debug, Clone)]
pub struct Ledger {
    /// How many of each kind are remembered.
    kept: usize,
    recent: BTreeMap<Kind, VecDeque<Anomaly>>,
    /// By urgency: kind, then time.
    waiting: BTreeSet<(Kind, Millis, Uuid)>,
    /// The one that is being mended.
    mending: Option<Uuid>,
}

impl Ledger {
    /// An empty one that keeps so many of each kind.
    pub fn new(kept: usize) -> Ledger {
        Ledger { kept: kept.max(1), recent: BTreeMap::new(), waiting: BTreeSet::new(), mending: None }
    }

    /// Takes a finding in; it waits to be handled.
    pub fn found(&mut self, id: Uuid, finding: Finding, now: Millis) {
        let kind = finding.kind();
        let recent = self.recent.entry(kind).or_default();
        if recent.len() == self.kept {
            recent.pop_front();
        }
        recent.push_back(Anomaly { id, detected: now, finding, status: (Status::Detected, now), plan: None });
        self.waiting.insert((kind, now, id));
    }

    /// The most urgent one that waits; it waits no longer.
    pub fn take(&mut self) -> Option<Anomaly> {
        while let Some((kind, _, id)) = self.waiting.pop_first() {
            // What is no longer remembered was found anew since.
            if let Some(anomaly) = self.recent(kind).find(|anomaly| anomaly.id == id) {
                return Some(anomaly.clone());
            }
        }
        None
    }

    /// What has become of one.
    pub fn settle(&mut self, id: Uuid, status: Status, now: Millis) {
        if let Some(anomaly) = self.get_mut(id) {
            anomaly.status = (status, now);
        }
    }

    /// One is being mended by this plan, and forgets what waits: what is still wrong afterwards is found anew.
    pub fn mends(&mut self, id: Uuid, plan: String, now: Millis) {
        if let Some(anomaly) = self.get_mut(id) {
            anomaly.status = (Status::FixStarted, now);
            anomaly.plan = Some(plan);
        }
        self.mending = Some(id);
        self.clear_waiting();
    }

    /// Nothing is being mended any more.
    pub fn mended(&mut self) {
        self.mending = None;
    }

    /// The one that is being mended.
    pub fn mending(&self) -> Option<Uuid> {
        self.mending
    }

    /// Forgets what waits.
    pub fn clear_waiting(&mut self) {
        self.waiting.clear();
    }

    /// The last ones of a kind, the oldest first.
    pub fn recent(&self, kind: Kind) -> impl Iterator<Item = &Anomaly> {
        self.recent.get(&kind).into_iter().flatten()
    }

    fn get_mut(&mut self, id: Uuid) -> Option<&mut Anomaly> {
        self.recent.values_mut().flatten().find(|anomaly| anomaly.id == id)
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

    fn taken(ledger: &mut Ledger) -> Option<Uuid> {
        ledger.take().map(|anomaly| anomaly.id)
    }

    #[test]
    fn the_most_urgent_comes_first_and_of_one_kind_the_oldest() {
        let mut ledger = Ledger::new(10);
        ledger.found(id(1), violation(), 10);
        ledger.found(id(2), failure(), 30);
        ledger.found(id(3), failure(), 20);
        assert_eq!([(); 4].map(|()| taken(&mut ledger)), [Some(id(3)), Some(id(2)), Some(id(1)), None]);
        ledger.settle(id(1), Status::Ignored, 22);
        assert_eq!(ledger.recent(Kind::GoalViolation).next().unwrap().status, (Status::Ignored, 22));
    }

    #[test]
    fn mending_one_forgets_what_waits() {
        let mut ledger = Ledger::new(10);
        ledger.found(id(1), violation(), 10);
        ledger.found(id(2), failure(), 20);
        let first = ledger.take().unwrap();
        ledger.mends(first.id, "moves".to_owned(), 21);
        assert_eq!((ledger.take(), ledger.mending()), (None, Some(id(2))));
        let mending = ledger.recent(Kind::BrokerFailure).next().unwrap();
        assert_eq!((mending.status, mending.plan.as_deref()), ((Status::FixStarted, 21), Some("moves")));
        ledger.mended();
        assert_eq!(ledger.mending(), None);
    }

    #[test]
    fn so_many_of_each_kind_are_remembered() {
        let mut ledger = Ledger::new(10);
        (0..13).for_each(|number| ledger.found(id(number), violation(), number as Millis));
        ledger.found(id(99), failure(), 1);
        let ids: Vec<Uuid> = ledger.recent(Kind::GoalViolation).map(|anomaly| anomaly.id).collect();
        assert_eq!(ids, (3..13).map(id).collect::<Vec<_>>());
        assert_eq!(ledger.recent(Kind::BrokerFailure).count(), 1);
        // What is no longer remembered is not handled either.
        assert_eq!([(); 2].map(|()| taken(&mut ledger)), [Some(id(99)), Some(id(3))]);
    }

    #[test]
    fn kinds_have_the_original_s_names_and_urgency() {
        let kinds = [Kind::BrokerFailure, Kind::DiskFailure, Kind::GoalViolation];
        assert_eq!(kinds.map(Kind::name), ["BROKER_FAILURE", "DISK_FAILURE", "GOAL_VIOLATION"]);
        assert!(kinds.map(AnomalyType::from).is_sorted());
    }
}
