//! The machine by example. `rows` has every row of the two tables that define it; the other files
//! have what the tables leave open.

mod failures;
mod imbalance;
mod interference;
mod rows;

use std::collections::{BTreeMap, BTreeSet};

use evenkeel_api::{
    KafkaRebalance, Reason,
    kafka::{AutoRebalanceMode, AutoRebalanceState},
    rebalance::RebalanceState,
};
use jiff::Timestamp;

use super::{Act, Decision, TrackerWrite, decide};
use crate::auto_rebalance::{
    brokers::{BrokersSeen, Check},
    generated::Generated,
    imbalance::{FIXABLE, UNFIXABLE},
    observe::{Brake, Engine, Manual, Observation},
    recipe::{Cluster, name_for},
    settings::{Configured, DEFAULT_DETECTION_GOALS},
    state::{Brokers, Recorded, listed, state_name},
    tracker::{Sight, Tracker},
};

pub(in crate::auto_rebalance) const ADD: AutoRebalanceMode = AutoRebalanceMode::AddBrokers;
pub(in crate::auto_rebalance) const REMOVE: AutoRebalanceMode = AutoRebalanceMode::RemoveBrokers;
pub(in crate::auto_rebalance) const IMBALANCE: AutoRebalanceMode = AutoRebalanceMode::Imbalance;

use AutoRebalanceState::{
    Idle, RebalanceOnImbalance as Imbalance, RebalanceOnScaleDown as ScaleDown, RebalanceOnScaleUp as ScaleUp,
};
use RebalanceState::{
    New, NotReady, PendingProposal, ProposalReady, Ready, Rebalancing, ReconciliationPaused as Paused, Stopped,
};

const SOME: &str = "- a1:\n    - RackAwareGoal\n";

pub(in crate::auto_rebalance) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + seconds).unwrap()
}

/// A healthy cluster of six brokers with all modes switched on, in which there is nothing to do.
pub(in crate::auto_rebalance) fn calm() -> Observation {
    let brokers: Brokers = (0..6).collect();
    Observation {
        now: at(0),
        cluster: Cluster { name: "c".into(), namespace: "ns".into(), uid: "u".into() },
        brake: Brake::Released,
        configured: Configured {
            modes: [(ADD, None), (REMOVE, None), (IMBALANCE, None)].into(),
            detection_goals: DEFAULT_DETECTION_GOALS.map(str::to_owned).to_vec(),
            ..Configured::default()
        },
        spec_version: "v1".into(),
        templates: BTreeMap::new(),
        recorded: None,
        brokers: BrokersSeen { present: brokers.clone(), ready: brokers, ..BrokersSeen::default() },
        engine: engine("e1"),
        generated: Vec::new(),
        manual: Vec::new(),
        strangers: BTreeSet::new(),
        polled: None,
        violations: Some([(FIXABLE.to_owned(), String::new())].into()),
        tracker: None,
    }
}

/// An engine that is there and does nothing.
pub(in crate::auto_rebalance) fn engine(id: &str) -> Engine {
    Engine::Current { id: id.to_owned(), executing: Some(false) }
}

pub(in crate::auto_rebalance) fn own(mode: AutoRebalanceMode, state: RebalanceState, brokers: &[i32]) -> Generated {
    Generated {
        name: name_for("c", mode, "a1"),
        mode,
        state,
        brokers: set(brokers),
        since: Some(at(-5)),
        asked_of: Some("e1".to_owned()),
        ..Generated::default()
    }
}

fn set(brokers: &[i32]) -> Brokers {
    brokers.iter().copied().collect()
}

impl Observation {
    fn recorded(mut self, state: AutoRebalanceState, additions: &[i32]) -> Self {
        let recorded = Recorded { state, additions: set(additions), ..Recorded::default() };
        self.recorded = Some(recorded.written(None, at(-100)));
        self
    }

    /// With brokers on record that are to be emptied.
    fn emptying(mut self, removals: &[i32]) -> Self {
        let recorded = Recorded { removals: set(removals), ..Recorded::read(self.recorded.as_ref()) };
        self.recorded = Some(recorded.written(None, at(-100)));
        self
    }

    fn leaving(mut self, leaving: &[i32]) -> Self {
        self.brokers.leaving = set(leaving);
        self.brokers.check = if leaving.is_empty() { Check::Clear } else { Check::HasData };
        self
    }

    /// With a generated rebalance that was seen before.
    fn with(mut self, own: Generated) -> Self {
        let in_sight = Some(Sight { name: own.name.clone(), brokers: own.brokers.clone() });
        self.generated.push(own);
        self.remembering(|tracker| tracker.in_sight = in_sight)
    }

    fn remembering(mut self, change: impl FnOnce(&mut Tracker)) -> Self {
        let (mut tracker, _) = Tracker::read(self.tracker.as_ref(), self.now);
        tracker.refresh(&self.spec_version, self.now);
        change(&mut tracker);
        self.tracker = Some(tracker.written());
        self
    }

    fn violated(mut self, fixable: &str, unfixable: &str) -> Self {
        let both = [(FIXABLE, fixable), (UNFIXABLE, unfixable)];
        let data = both.iter().filter(|(_, text)| !text.is_empty());
        self.violations = Some(data.map(|(key, text)| ((*key).to_owned(), (*text).to_owned())).collect());
        self
    }

    fn manual(mut self, state: RebalanceState) -> Self {
        self.manual.push(Manual { name: "mine".into(), state, since: Some(at(-5)) });
        self
    }

    fn change(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }
}

/// A decision in one line: the state, what is queued, what is done.
fn told(decision: &Decision) -> String {
    let Some(status) = &decision.status else { return format!("off{}", acts(decision)) };
    let recorded = Recorded::read(Some(status));
    let mut text = state_name(recorded.state).to_owned();
    for (letter, brokers) in [("R", &recorded.removals), ("A", &recorded.additions)] {
        if !brokers.is_empty() {
            text.push_str(&format!(" {letter}{}", listed(brokers)));
        }
    }
    if recorded.imbalance {
        text.push_str(" I");
    }
    text + &acts(decision)
}

fn acts(decision: &Decision) -> String {
    let short = |name: &str| name.trim_start_matches("c-auto-rebalancing-").trim_end_matches("-brokers").to_owned();
    let words = decision.acts.iter().map(|act| match act {
        Act::Create(made) => {
            let brokers = made.spec.brokers.iter().flatten().copied().collect();
            format!("create {}{}", short(made.metadata.name.as_deref().unwrap_or_default()), listed(&brokers))
        }
        Act::Update { name, brokers, .. } => format!("update {}{}", short(name), listed(brokers)),
        Act::Refresh { name, .. } => format!("refresh {}", short(name)),
        Act::Stop { name, why } => format!("stop {} ({})", short(name), why.as_str()),
        Act::Withdraw { name, why } => format!("withdraw {} ({})", short(name), why.as_str()),
        Act::Remove { name, .. } => format!("remove {}", short(name)),
        Act::NoteViolations(_) => "note".to_owned(),
        Act::EmptyViolations { unfixable_too: false } => "empty fixable".to_owned(),
        Act::EmptyViolations { unfixable_too: true } => "empty all".to_owned(),
        Act::DeleteViolations => "delete map".to_owned(),
    });
    words.map(|word| format!("; {word}")).collect()
}

fn check(what: &str, seen: &Observation, expected: &str) -> Decision {
    let decision = decide(seen);
    assert_eq!(told(&decision), expected, "{what}");
    decision
}

fn warned(decision: &Decision) -> Vec<&str> {
    decision.warnings.iter().filter_map(|warning| warning.reason.as_deref()).collect()
}

/// The decision's memory, as it would be read next time.
fn memory(decision: &Decision, seen: &Observation) -> Tracker {
    match &decision.tracker {
        TrackerWrite::Write(data) => Tracker::read(Some(data), seen.now).0,
        TrackerWrite::Keep => Tracker::read(seen.tracker.as_ref(), seen.now).0,
        TrackerWrite::Delete => Tracker::default(),
    }
}

/// A KafkaRebalance with this spec, marked as a template or not.
pub(in crate::auto_rebalance) fn template(spec: serde_json::Value, marked: bool) -> BTreeMap<String, KafkaRebalance> {
    let mut rebalance = KafkaRebalance::new("t", serde_json::from_value(spec).unwrap());
    let mark = evenkeel_api::annotations::REBALANCE_TEMPLATE.to_owned();
    rebalance.metadata.annotations = marked.then(|| [(mark, "true".to_owned())].into());
    [("t".to_owned(), rebalance)].into()
}

fn because(reason: Reason) -> Option<(String, String)> {
    Some((reason.to_string(), "why".to_owned()))
}
