//! Why a goal stays violated, as far as rules and not goals are the reason.
//!
//! What goals of higher priority refuse is counted while it is tried. What the rules of eligibility forbid is never tried;
//! so it is counted here, once the search is over and only for goals that are left violated: the replicas, leaders and
//! brokers that could have been of use but for a rule.

use std::collections::BTreeMap;
use std::ops::Range;

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
    /// Replicas that another one of their partition made room for, which weighs differently: a list of brokers could not
    /// tell which of the two it means. The next plan may use that room.
    UnlikeReplicas,
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
            Rule::UnlikeReplicas => "unlikeReplicas",
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

    /// Replicas that could go from one broker to another if it were not for an unlike one that was there before.
    fn unlike(&mut self, parts: Range<Part>, helps: impl Fn(Seat, Seat) -> bool) {
        let (state, rules) = (self.state, self.rules);
        for slot in parts.flat_map(|part| state.cluster.slots(part)) {
            let could_go = rules.closed_until_then(state, slot).any(|to| helps(state.seat(slot), to));
            self.count(could_go.then_some(Rule::UnlikeReplicas));
        }
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
            let parts = 0..state.cluster.partition_count() as Part;
            self.unlike(parts, |from, to| standing(from).0 || standing(to).0);
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
            let is_missing = |seat: Seat| missing.iter().any(|(other, _)| *other == seat);
            self.unlike(state.cluster.topic_parts(topic), |from, to| is_missing(from) || is_missing(to));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{BrokerId, BrokerSpec, BrokerState, ClusterBuilder, Load, ReplicaSpec};
    use crate::goal::Goal;
    use crate::options::Request;
    use crate::settings::Settings;
    use crate::state::Action;

    /// What keeps disks unevenly used once the first of two replicas of these sizes, on brokers 0 and 1, went to broker 2.
    fn kept(sizes: [f32; 2], request: &Request) -> Vec<(Rule, u64)> {
        let mut builder = ClusterBuilder::new();
        for id in 0..3 {
            let (rack, host, state) = (format!("r{id}"), format!("h{id}"), BrokerState::Alive);
            let (capacity, disks) = ([1_000.0; 4], Vec::new());
            builder.broker(BrokerSpec { id: BrokerId(id), rack, host, state, capacity, disks }).unwrap();
        }
        let replica = |id: usize| {
            let load = Load { disk: sizes[id], ..Load::default() };
            ReplicaSpec { broker: BrokerId(id as i32), disk: None, load, offline: false }
        };
        builder.partition("t", 0, 0, &[replica(0), replica(1)]).unwrap();
        let cluster = builder.build().unwrap();
        let rules = Rules::compile(&cluster, request).unwrap();
        let mut state = State::found(&cluster);
        let aims = Aims::compile(&state, &[Goal::DiskUsageDistribution], &Settings::default(), &rules);
        state.apply(Action::Move { slot: 0, to: 2 });
        held_back(&state, &aims, &rules, 0)
    }

    #[test]
    fn a_replica_does_not_take_the_place_of_an_unlike_one_until_the_next_plan() {
        // The one of 300 MB could go to broker 0, which has nothing; but 10 MB of the partition were there.
        assert_eq!(kept([10.0, 300.0], &Request::default()), [(Rule::UnlikeReplicas, 1)]);
        // Where both are of one size nobody could tell the difference.
        assert_eq!(kept([300.0, 300.0], &Request::default()), [(Rule::NothingHelps, 1)]);
    }

    #[test]
    fn what_the_next_plan_may_not_do_either_is_not_put_down_to_unlike_replicas() {
        let excluded = Request { excluded_for_replica_moves: [BrokerId(0)].into(), ..Request::default() };
        let others = Request { destinations: [BrokerId(2)].into(), ..Request::default() };
        let immigrants = Request { only_immigrants: true, ..Request::default() };
        for request in [excluded, others, immigrants] {
            let named = kept([10.0, 300.0], &request);
            assert!(named.iter().all(|(rule, _)| *rule != Rule::UnlikeReplicas), "{named:?} for {request:?}");
        }
    }
}
