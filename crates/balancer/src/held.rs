//! Why a goal stays violated, as far as rules and not goals are the reason.
//!
//! What goals of higher priority refuse is counted while it is tried. What the rules of eligibility forbid is never tried;
//! so it is counted here, once the search is over and only for goals that are left violated: the replicas, leaders and
//! brokers that could have been of use but for a rule.

use std::collections::BTreeMap;

use crate::aims::{Aim, Aims};
use crate::cluster::{Part, Seat, Slot};
use crate::gauges::Gauge;
use crate::rules::Rules;
use crate::state::State;

/// What stands in a goal's way besides other goals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// The budget is spent.
    Budget,
    /// While replicas are offline or brokers removed, soft goals move nothing else.
    Healing,
    /// While there are new brokers, only those gain anything.
    OnlyNewBrokers,
    /// Replicas move only to the brokers named.
    Destinations,
    /// Brokers that get no replicas.
    ExcludedForReplicaMoves,
    /// Brokers that get no leaders, demoted ones included.
    ExcludedForLeadership,
    /// Topics that stay where they are.
    ExcludedTopics,
    /// Only replicas that are out of place move.
    OnlyImmigrants,
    /// Partitions that are being reassigned already.
    Moving,
    /// The partition's other replicas do not serve.
    Offline,
    /// None: of all that the search tried nothing helps. Replicas may be too few or too large, or what would help takes
    /// more steps at once than are tried.
    NothingHelps,
}

impl Rule {
    /// A short name for machines.
    pub fn name(self) -> &'static str {
        match self {
            Rule::Budget => "budget",
            Rule::Healing => "healing",
            Rule::OnlyNewBrokers => "onlyNewBrokers",
            Rule::Destinations => "destinations",
            Rule::ExcludedForReplicaMoves => "excludedForReplicaMoves",
            Rule::ExcludedForLeadership => "excludedForLeadership",
            Rule::ExcludedTopics => "excludedTopics",
            Rule::OnlyImmigrants => "onlyImmigrants",
            Rule::Moving => "moving",
            Rule::Offline => "offline",
            Rule::NothingHelps => "nothingHelps",
        }
    }
}

/// How often each rule stands in the way of the goal, the most frequent first; never nothing.
pub(crate) fn held_back(state: &State<'_>, aims: &Aims, rules: &Rules, goal: usize) -> Vec<(Rule, u64)> {
    let mut tally = Tally { state, rules, hard: aims.goals[goal].is_hard(), times: BTreeMap::new() };
    match aims.aims[goal] {
        Aim::Band { gauge, band, .. } => tally.band(aims, gauge, band),
        Aim::TopicReplicas => tally.topics(aims),
        Aim::PreferredLeaders => {
            let parts = (0..state.cluster.partition_count() as Part).filter(|part| aims.is_passed_over(state, *part));
            parts.filter_map(|part| aims.heir(part)).for_each(|slot| tally.leads(slot));
        }
        // Hard ones: a plan that leaves them violated is refused, with a reason of its own.
        Aim::Racks | Aim::EvenRacks | Aim::TopicLeaders => {}
    }
    let mut times: Vec<(Rule, u64)> = tally.times.into_iter().collect();
    times.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
    if times.is_empty() {
        times.push((Rule::NothingHelps, 1));
    }
    times
}

struct Tally<'a, 'c> {
    state: &'a State<'c>,
    rules: &'a Rules,
    hard: bool,
    times: BTreeMap<Rule, u64>,
}

impl Tally<'_, '_> {
    fn count(&mut self, rule: Option<Rule>) {
        if let Some(rule) = rule {
            *self.times.entry(rule).or_default() += 1;
        }
    }

    fn moves(&mut self, slot: Slot) {
        self.count(self.rules.bar_to_move(self.state, slot, self.hard));
    }

    fn leads(&mut self, slot: Slot) {
        self.count(self.rules.bar_to_lead(self.state, slot));
    }

    /// Whoever has too much could give to those who have not, and whoever has too little get from those who do not.
    fn band(&mut self, aims: &Aims, gauge: Gauge, band: usize) {
        let state = self.state;
        let seats = || (0..state.cluster.brokers().len() as Seat).filter(|seat| self.rules.is_alive(*seat));
        let standing = |seat: Seat| {
            let (level, limit) = aims.standing(band, gauge, state, seat);
            (limit.miss(level) > 0.0, level > limit.high)
        };
        let over: Vec<Seat> = seats().filter(|seat| standing(*seat) == (true, true)).collect();
        let under: Vec<Seat> = seats().filter(|seat| standing(*seat) == (true, false)).collect();
        let others: Vec<Seat> = seats().filter(|seat| !standing(*seat).0).collect();
        let (givers, takers) =
            if under.is_empty() { (over.clone(), others) } else { ([&over[..], &others].concat(), under) };
        if gauge.follows_leadership() {
            for slot in over.iter().flat_map(|seat| state.held(*seat)).filter(|slot| state.leads(**slot)) {
                state.cluster.slots(state.cluster.part_of(*slot)).for_each(|other| self.leads(other));
            }
            takers.iter().flat_map(|seat| state.held(*seat)).for_each(|slot| self.leads(*slot));
        }
        if gauge != Gauge::LeaderIn {
            givers.iter().flat_map(|seat| state.held(*seat)).for_each(|slot| self.moves(*slot));
            takers.iter().for_each(|seat| self.count(self.rules.bar_to_gain(*seat)));
        }
    }

    fn topics(&mut self, aims: &Aims) {
        let state = self.state;
        for topic in 0..state.cluster.topics().len() as u32 {
            let seats = || (0..).zip(state.topics().row(topic));
            let missing: Vec<(Seat, u32)> = seats()
                .filter(|(seat, count)| aims.topic_miss(topic, **count, *seat) > 0.0)
                .map(|(seat, count)| (seat, *count))
                .collect();
            if missing.is_empty() {
                continue;
            }
            let (_, high) = aims.topic_band(topic);
            missing
                .iter()
                .filter(|(_, count)| *count <= high)
                .for_each(|(seat, _)| self.count(self.rules.bar_to_gain(*seat)));
            let only_over = missing.iter().all(|(_, count)| *count > high);
            for slot in state.cluster.topic_parts(topic).flat_map(|part| state.cluster.slots(part)) {
                let gives = !only_over || missing.iter().any(|(seat, _)| *seat == state.seat(slot));
                if gives {
                    self.moves(slot);
                }
            }
        }
    }
}
