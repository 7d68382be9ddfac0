//! Whether the cluster has the right size for what it carries, and what to add or remove if not.
//!
//! Some goals notice on the way that there is too much of something; a hard goal that cannot be
//! satisfied notices that there is too little. What they say is put together in order of priority:
//! "too little" outweighs all else, and "right" outweighs "too much". Wording is Cruise Control's.

use std::fmt;

use crate::aims::{Aim, Aims};
use crate::cluster::{BrokerId, Cluster, Part, Resource, Seat};
use crate::gauges::Gauge;
use crate::goal::Goal;
use crate::rules::Rules;
use crate::settings::Settings;
use crate::state::State;

/// How the cluster's size fits its load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ProvisionStatus {
    /// A hard goal cannot be satisfied with what there is.
    UnderProvisioned,
    /// Some goal looked, and found it right.
    RightSized,
    /// The same would work with less.
    OverProvisioned,
    /// No goal had an opinion.
    #[default]
    Undecided,
}

impl ProvisionStatus {
    /// The name Cruise Control's answers give it.
    pub fn name(self) -> &'static str {
        match self {
            ProvisionStatus::UnderProvisioned => "UNDER_PROVISIONED",
            ProvisionStatus::RightSized => "RIGHT_SIZED",
            ProvisionStatus::OverProvisioned => "OVER_PROVISIONED",
            ProvisionStatus::Undecided => "UNDECIDED",
        }
    }
}

/// The size in words: the status, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Provision {
    /// How the size fits.
    pub status: ProvisionStatus,
    /// What to add or remove; empty if nothing.
    pub recommendation: String,
}

impl Provision {
    /// What a hard goal that fails says.
    pub(crate) fn under(goal: Goal, advice: Option<&Advice>) -> Provision {
        let recommendation = advice.map(|advice| format!("[{goal}] {advice}")).unwrap_or_default();
        Provision { status: ProvisionStatus::UnderProvisioned, recommendation }
    }

    /// Takes in what a goal of lower priority says.
    fn and(&mut self, next: Provision) {
        use ProvisionStatus::{OverProvisioned, RightSized, Undecided, UnderProvisioned};
        match (self.status, next.status) {
            (_, Undecided) | (UnderProvisioned, RightSized | OverProvisioned) | (RightSized, OverProvisioned) => {}
            (UnderProvisioned, UnderProvisioned) | (OverProvisioned, OverProvisioned) => {
                if !self.recommendation.is_empty() && !next.recommendation.is_empty() {
                    self.recommendation.push(' ');
                }
                self.recommendation.push_str(&next.recommendation);
            }
            (_, UnderProvisioned | RightSized) | (Undecided, OverProvisioned) => *self = next,
        }
    }
}

/// What there is too little or too much of.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Thing {
    Brokers(usize),
    /// Brokers like this one: with so much of the resource.
    BrokersLike(usize, Resource, f64, BrokerId),
    /// Brokers, for want of the resource.
    BrokersFor(usize, Resource),
    /// Brokers in any rack but these.
    BrokersOutside(usize, Vec<String>),
    Racks(usize),
    /// Disks that hold so many MB together.
    Disks(usize, f64),
    /// So many partitions in all, of topics called so.
    Partitions(usize, String),
}

/// A recommendation.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Advice {
    Add(Thing),
    /// While brokers are being added, which are no help: others.
    AddMore(Thing),
    Remove(Thing),
}

impl Advice {
    /// The same for whoever is adding brokers already.
    pub(crate) fn beside_new_ones(self) -> Advice {
        use Thing::{Brokers, BrokersFor, BrokersLike, BrokersOutside};
        match self {
            Advice::Add(thing @ (Brokers(_) | BrokersLike(..) | BrokersFor(..) | BrokersOutside(..))) => {
                Advice::AddMore(thing)
            }
            other => other,
        }
    }
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (verb, thing, side) = match self {
            Advice::Add(thing) | Advice::AddMore(thing) => ("Add", thing, "to"),
            Advice::Remove(thing) => ("Remove", thing, "from"),
        };
        write!(f, "{verb} at least ")?;
        let s = |count: &usize| if *count > 1 { "s" } else { "" };
        match thing {
            Thing::Brokers(n) => write!(f, "{n} broker{}", s(n))?,
            Thing::BrokersLike(n, resource, capacity, id) => {
                let name = resource.name();
                write!(f, "{n} broker{} with the same {name} capacity ({capacity:.2}) as broker-{id}", s(n))?;
            }
            Thing::BrokersFor(n, resource) => write!(f, "{n} broker{} for {}", s(n), resource.name())?,
            Thing::BrokersOutside(n, racks) => {
                write!(f, "{n} broker{} {side} a rack other than [{}]", s(n), racks.join(", "))?;
            }
            Thing::Racks(n) => write!(f, "{n} rack{} with brokers", s(n))?,
            Thing::Disks(n, capacity) => write!(f, "{n} disk{} with a total capacity of {capacity:.2}", s(n))?,
            Thing::Partitions(n, topics) => {
                let minimum = "the minimum number of partitions so that the topic regex";
                write!(f, "{minimum} {topics} has {n} partition{}", s(n))?;
            }
        }
        // Or it would read as if those did not count that are being added.
        let beside = if matches!(self, Advice::AddMore(_)) { ", besides those that are new" } else { "" };
        write!(f, "{beside}.")
    }
}

/// How many racks have a broker among the `wanted`.
pub(crate) fn racks(cluster: &Cluster, wanted: impl Fn(Seat) -> bool) -> usize {
    let mut racks: Vec<usize> =
        (0..).zip(cluster.brokers()).filter(|(seat, _)| wanted(*seat)).map(|(_, broker)| broker.rack).collect();
    racks.sort_unstable();
    racks.dedup();
    racks.len()
}

/// The most replicas that a partition of a `wanted` topic has.
pub(crate) fn largest_factor(cluster: &Cluster, wanted: impl Fn(u32) -> bool) -> usize {
    let parts = 0..cluster.partition_count() as Part;
    let wanted = parts.filter(|part| wanted(cluster.topic_of(*part)));
    wanted.map(|part| cluster.slots(part).len()).max().unwrap_or(0)
}

/// What the goals say about the cluster's size, given the placement that a plan ends with.
pub(crate) fn provision(state: &State<'_>, aims: &Aims, rules: &Rules, settings: &Settings) -> Provision {
    let size = Size::of(state, rules, settings);
    let mut whole = Provision::default();
    for (index, goal) in aims.goals.iter().enumerate() {
        whole.and(size.checked(*goal, size.opinion(*goal, index, aims)));
    }
    whole
}

/// What a goal thinks of the size.
#[derive(Debug)]
enum Opinion {
    None,
    Right,
    TooMuch(Thing),
}

/// The cluster's size in numbers, and what it is judged by.
struct Size<'a, 'c> {
    state: &'a State<'c>,
    rules: &'a Rules,
    settings: &'a Settings,
    alive: usize,
    counted: usize,
    largest_factor: usize,
}

impl<'a, 'c> Size<'a, 'c> {
    fn of(state: &'a State<'c>, rules: &'a Rules, settings: &'a Settings) -> Self {
        Size {
            state,
            rules,
            settings,
            alive: (0..rules.counted.len() as Seat).filter(|seat| rules.is_alive(*seat)).count(),
            counted: rules.counted.iter().filter(|counted| **counted).count(),
            largest_factor: largest_factor(state.cluster, |_| true),
        }
    }

    fn opinion(&self, goal: Goal, index: usize, aims: &Aims) -> Opinion {
        match goal {
            Goal::RackAware => self.of_racks(|seat| self.rules.is_alive(seat)),
            Goal::RackAwareDistribution => self.of_racks(|seat| self.rules.counted[usize::from(seat)]),
            Goal::ReplicaDistribution => self.of_replicas(aims.miss(index, self.state, self.rules) == 0.0),
            Goal::DiskUsageDistribution
            | Goal::NetworkInboundUsageDistribution
            | Goal::NetworkOutboundUsageDistribution
            | Goal::CpuUsageDistribution => {
                goal.resource().map_or(Opinion::None, |resource| self.of_load(resource, index, aims))
            }
            _ => Opinion::None,
        }
    }

    /// Racks beyond one for each replica are too many only from some number on.
    fn of_racks(&self, wanted: impl Fn(Seat) -> bool) -> Opinion {
        let extra = racks(self.state.cluster, wanted).saturating_sub(self.largest_factor);
        let kept = self.settings.overprovisioned_min_extra_racks.max(1);
        if extra >= kept { Opinion::TooMuch(Thing::Racks(extra - kept + 1)) } else { Opinion::Right }
    }

    fn of_replicas(&self, balanced: bool) -> Opinion {
        let most = self.settings.overprovisioned_max_replicas_per_broker.max(1);
        let needed = (self.state.cluster.replica_count() as u64 / most) as usize;
        let full = |seat: Seat| self.state.held(seat).len() as u64 > most;
        let any_full = (0..self.rules.counted.len() as Seat).any(|seat| self.rules.is_alive(seat) && full(seat));
        match self.counted.saturating_sub(needed) {
            extra if extra > 0 && !any_full => Opinion::TooMuch(Thing::Brokers(extra)),
            _ if balanced => Opinion::Right,
            _ => Opinion::None,
        }
    }

    fn of_load(&self, resource: Resource, index: usize, aims: &Aims) -> Opinion {
        let (gauge, brokers) = (Gauge::of(resource) as usize, self.state.cluster.brokers());
        let load: f64 = self.state.all_levels().iter().map(|levels| levels[gauge]).sum();
        let counted = || brokers.iter().zip(&self.rules.counted).filter(|(_, counted)| **counted).map(|(b, _)| b);
        let capacity = |broker: &crate::cluster::Broker| broker.capacity[resource as usize];
        let idle = self.settings.low_utilization_thresholds[resource as usize];
        if load / counted().map(capacity).sum::<f64>() > idle {
            let balanced = aims.miss(index, self.state, self.rules) == 0.0;
            return if balanced { Opinion::Right } else { Opinion::None };
        }
        let Aim::Band { band, gauge, .. } = aims.aims[index] else { return Opinion::None };
        let above = |seat: Seat| {
            let (level, limit) = aims.standing(band, gauge, self.state, seat);
            level > limit.high
        };
        if (0..brokers.len() as Seat).any(|seat| self.rules.is_alive(seat) && above(seat)) {
            return Opinion::None;
        }
        // The largest broker is the measure; of equal ones the first.
        let Some(typical) = counted().rev().max_by(|a, b| capacity(a).total_cmp(&capacity(b))) else {
            return Opinion::None;
        };
        // A cluster that does nothing at all needs nobody: 0/0 counts as 0.
        let needed = (load / idle / capacity(typical)) as usize;
        let extra = self.counted.saturating_sub(needed).max(1);
        Opinion::TooMuch(Thing::BrokersLike(extra, resource, capacity(typical), typical.id))
    }

    /// Lets "too much" stand only if the cluster is not small, and never below what replicas need.
    fn checked(&self, goal: Goal, opinion: Opinion) -> Provision {
        let right = Provision { status: ProvisionStatus::RightSized, recommendation: String::new() };
        let thing = match opinion {
            Opinion::None => return Provision::default(),
            Opinion::Right => return right,
            Opinion::TooMuch(thing) => thing,
        };
        let spare = self.alive.saturating_sub(self.largest_factor);
        if self.alive < self.settings.overprovisioned_min_brokers || spare == 0 {
            return right;
        }
        let thing = match thing {
            Thing::Brokers(extra) => Thing::Brokers(extra.min(spare)),
            Thing::BrokersLike(extra, resource, capacity, id) => {
                Thing::BrokersLike(extra.min(spare), resource, capacity, id)
            }
            other => other,
        };
        let recommendation = format!("[{goal}] {}", Advice::Remove(thing));
        Provision { status: ProvisionStatus::OverProvisioned, recommendation }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Load;
    use crate::fixture::{Small, planned};
    use crate::options::Request;

    fn judged(small: Small, goals: &[Goal], settings: &Settings) -> (ProvisionStatus, String) {
        let outcome = planned(&small.cluster(), &Request::rebalance(goals), settings).unwrap();
        (outcome.provision.status, outcome.provision.recommendation)
    }

    #[test]
    fn advice_is_worded_as_cruise_control_words_it() {
        let cpu = Thing::BrokersLike(4, Resource::Cpu, 1600.0, BrokerId(1));
        let racks = vec!["a".to_owned(), "b".to_owned()];
        let cases = [
            (Advice::Add(Thing::Brokers(1)), "Add at least 1 broker."),
            (Advice::Remove(cpu), "Remove at least 4 brokers with the same cpu capacity (1600.00) as broker-1."),
            (Advice::Add(Thing::BrokersFor(1, Resource::Disk)), "Add at least 1 broker for disk."),
            (
                Advice::Add(Thing::BrokersFor(1, Resource::Disk)).beside_new_ones(),
                "Add at least 1 broker for disk, besides those that are new.",
            ),
            (Advice::Add(Thing::Racks(1)).beside_new_ones(), "Add at least 1 rack with brokers."),
            (Advice::Add(Thing::BrokersOutside(1, racks)), "Add at least 1 broker to a rack other than [a, b]."),
            (Advice::Remove(Thing::Racks(2)), "Remove at least 2 racks with brokers."),
            (Advice::Add(Thing::Disks(1, 12.5)), "Add at least 1 disk with a total capacity of 12.50."),
            (
                Advice::Add(Thing::Partitions(6, "t".to_owned())),
                "Add at least the minimum number of partitions so that the topic regex t has 6 partitions.",
            ),
        ];
        for (advice, words) in cases {
            assert_eq!(advice.to_string(), words);
        }
    }

    #[test]
    fn too_little_outweighs_all_and_right_outweighs_too_much() {
        use ProvisionStatus::{OverProvisioned, RightSized, Undecided, UnderProvisioned};
        let say = |status, text: &str| Provision { status, recommendation: text.to_owned() };
        let cases = [
            (vec![say(Undecided, ""), say(OverProvisioned, "o")], say(OverProvisioned, "o")),
            (vec![say(OverProvisioned, "o"), say(OverProvisioned, "p")], say(OverProvisioned, "o p")),
            (vec![say(OverProvisioned, "o"), say(RightSized, "")], say(RightSized, "")),
            (vec![say(RightSized, ""), say(OverProvisioned, "o")], say(RightSized, "")),
            (vec![say(OverProvisioned, "o"), say(UnderProvisioned, "u")], say(UnderProvisioned, "u")),
            (vec![say(UnderProvisioned, "u"), say(RightSized, "")], say(UnderProvisioned, "u")),
            (vec![say(UnderProvisioned, "u"), say(UnderProvisioned, "v")], say(UnderProvisioned, "u v")),
            (vec![say(RightSized, ""), say(Undecided, "")], say(RightSized, "")),
        ];
        for (said, whole) in cases {
            let mut sum = Provision::default();
            said.into_iter().for_each(|next| sum.and(next));
            assert_eq!(sum, whole);
        }
    }

    #[test]
    fn racks_are_too_many_from_two_beyond_the_factor_on() {
        let racks = |racks: &str| {
            let mut small = Small::in_racks(racks);
            small.partition("t", 0, &[0, 1], 10.0);
            judged(small, &[Goal::RackAware], &Settings::default())
        };
        // Factor 2: three racks are one extra; five are three extra, of which 3 - 2 + 1 = 2 may go.
        assert_eq!(racks("abc"), (ProvisionStatus::RightSized, String::new()));
        let words = "[RackAwareGoal] Remove at least 2 racks with brokers.";
        assert_eq!(racks("abcde"), (ProvisionStatus::OverProvisioned, words.to_owned()));
    }

    #[test]
    fn brokers_with_few_replicas_are_too_many_but_never_fewer_than_the_factor_or_three() {
        let settings = Settings { overprovisioned_max_replicas_per_broker: 5, ..Settings::default() };
        let brokers = |racks: &str| {
            let mut small = Small::in_racks(racks);
            small.partition("t", 0, &[0, 1], 10.0);
            small.partition("t", 1, &[1, 0], 10.0);
            judged(small, &[Goal::ReplicaDistribution], &settings)
        };
        // Four replicas, five to a broker: floor(4/5) = 0 brokers are needed. Of four, with factor 2,
        // 4 - 2 = 2 may go; two are fewer than `overprovisioned.min.brokers`, so they are right.
        let words = "[ReplicaDistributionGoal] Remove at least 2 brokers.";
        assert_eq!(brokers("abcd"), (ProvisionStatus::OverProvisioned, words.to_owned()));
        assert_eq!(brokers("ab"), (ProvisionStatus::RightSized, String::new()));
    }

    #[test]
    fn an_idle_cluster_needs_as_many_of_its_largest_brokers_as_would_not_idle() {
        let mut small = Small::in_racks("abcd");
        for number in 0..4 {
            small.loaded("t", number, &[number], Load { cpu: 5.0, ..Load::default() });
        }
        let mut settings = Settings::default();
        settings.low_utilization_thresholds[Resource::Cpu as usize] = 0.1;
        // 20 of 400 is 5 %, at most 10 %: 20 / 0.1 = 200 would not idle, 2 brokers of 100; 4 - 2 = 2 go.
        let words = "[CpuUsageDistributionGoal] Remove at least 2 brokers with the same cpu capacity (100.00) as \
                     broker-0.";
        let found = judged(small, &[Goal::CpuUsageDistribution], &settings);
        assert_eq!(found, (ProvisionStatus::OverProvisioned, words.to_owned()));
    }

    /// Two replicas share a rack: a budget of less than one of them leaves them there.
    #[test]
    fn the_size_is_that_of_the_whole_plan_and_withheld_while_a_hard_goal_is_missed() {
        let found = |megabytes: Option<f64>, goals: &[Goal]| {
            let mut small = Small::in_racks("aabcde");
            small.partition("t", 0, &[0, 1], 10.0);
            let budget = crate::options::Budget { megabytes, moves: None };
            let request = Request { budget, ..Request::rebalance(goals) };
            let outcome = planned(&small.cluster(), &request, &Settings::default()).unwrap();
            (outcome.plan.changes.len(), outcome.provision.status)
        };
        let too_many = ProvisionStatus::OverProvisioned;
        assert_eq!(found(None, &[Goal::RackAware]), (1, too_many));
        assert_eq!(found(Some(10.0), &[Goal::RackAware]), (1, too_many));
        assert_eq!(found(Some(5.0), &[Goal::RackAware]), (0, ProvisionStatus::Undecided));
    }

    #[test]
    fn goals_without_an_opinion_leave_it_undecided() {
        let mut small = Small::in_racks("ab");
        small.partition("t", 0, &[0], 10.0);
        let found = judged(small, &[Goal::DiskCapacity, Goal::LeaderReplicaDistribution], &Settings::default());
        assert_eq!(found, (ProvisionStatus::Undecided, String::new()));
    }
}
