//! The goals of one request, compiled for one cluster: bands per broker, and who vetoes what.
//!
//! Thirteen of the goals say the same kind of thing: "this gauge of each broker lies between these
//! two numbers". They are compiled into bands; judging an action by one is two subtractions. The
//! others (racks, topics, preferred leaders) look at the one or two partitions an action touches.
//!
//! Each goal has a *miss*: 0 when it is satisfied, and growing with the distance from that. An action
//! is allowed if no goal of higher priority misses by more than before.

use crate::cluster::{Cluster, Part, Resource, Seat, Slot};
use crate::gauges::{GAUGES, Gauge, Levels};
use crate::goal::Goal;
use crate::rules::Rules;
use crate::settings::Settings;
use crate::state::{Action, Effect, State};

/// Misses smaller than this are rounding, not reality. They are relative to a broker's fair share.
pub(crate) const NOISE: f64 = 1e-9;

/// What a goal is, once it is compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Aim {
    /// A gauge stays between two numbers on every broker.
    Band { gauge: Gauge, band: usize, strict: bool },
    /// At most one replica of a partition in a rack.
    Racks,
    /// Replicas of a partition spread over the racks as evenly as they can.
    EvenRacks,
    /// Replicas of each topic stay between two numbers on every broker.
    TopicReplicas,
    /// Each broker leads so many partitions of certain topics.
    TopicLeaders,
    /// The first replica that can lead does.
    PreferredLeaders,
}

/// Between what a gauge should stay on one broker.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Limit {
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// Turns a distance into a share of what the broker ought to carry.
    unit: f64,
}

impl Limit {
    fn new(low: f64, high: f64, share: f64) -> Limit {
        // A share of nothing would make every distance infinite: then distances count as they are.
        Limit { low, high, unit: if share > 0.0 { 1.0 / share } else { 1.0 } }
    }

    const FREE: Limit = Limit { low: 0.0, high: f64::INFINITY, unit: 1.0 };

    pub(crate) fn miss(&self, level: f64) -> f64 {
        let miss = ((level - self.high).max(0.0) + (self.low - level).max(0.0)) * self.unit;
        if miss > NOISE { miss } else { 0.0 }
    }
}

/// The compiled goals.
#[derive(Debug)]
pub(crate) struct Aims {
    pub(crate) goals: Vec<Goal>,
    pub(crate) aims: Vec<Aim>,
    bands: usize,
    /// `bands` limits for each broker.
    limits: Vec<Limit>,
    /// What each broker ought to carry, per gauge.
    targets: Vec<Levels>,
    /// One over half the width of the band around the target; 0 where no goal asks.
    pulls: Vec<Levels>,
    topic_bands: Vec<(u32, u32)>,
    watch_topics: bool,
    /// Per topic, how many leaders each broker must have; 0 where nothing is asked.
    min_leaders: Vec<u32>,
    racks: Vec<u16>,
    live_racks: usize,
    /// Which brokers may lead more than they do.
    may_lead: Vec<bool>,
}

impl Aims {
    pub(crate) fn compile(state: &State<'_>, goals: &[Goal], settings: &Settings, rules: &Rules) -> Aims {
        let cluster = state.cluster;
        let seats = cluster.brokers().len();
        let counted = rules.counted.iter().filter(|counted| **counted).count() as f64;
        let totals = totals(state);
        let bands = goals.iter().filter(|goal| band_of(**goal).is_some()).count();
        let mut live: Vec<usize> = (0..seats as Seat)
            .filter(|seat| rules.is_alive(*seat) && rules.counted[usize::from(*seat)])
            .map(|seat| cluster.brokers()[usize::from(seat)].rack)
            .collect();
        live.sort_unstable();
        live.dedup();
        let mut aims = Aims {
            goals: goals.to_vec(),
            aims: Vec::with_capacity(goals.len()),
            bands,
            limits: vec![Limit::FREE; bands * seats],
            targets: vec![[0.0; GAUGES]; seats],
            pulls: vec![[0.0; GAUGES]; seats],
            topic_bands: topic_bands(cluster, settings, counted, rules),
            watch_topics: goals.contains(&Goal::TopicReplicaDistribution),
            min_leaders: min_leaders(cluster, settings, rules),
            racks: cluster.brokers().iter().map(|broker| broker.rack as u16).collect(),
            live_racks: live.len(),
            may_lead: (0..seats as Seat).map(|seat| rules.may_lead_more(seat)).collect(),
        };
        for goal in goals {
            let aim = match goal {
                Goal::RackAware => Aim::Racks,
                Goal::RackAwareDistribution => Aim::EvenRacks,
                Goal::TopicReplicaDistribution => Aim::TopicReplicas,
                Goal::MinTopicLeadersPerBroker => Aim::TopicLeaders,
                Goal::PreferredLeaderElection => Aim::PreferredLeaders,
                Goal::IntraBrokerDiskCapacity | Goal::IntraBrokerDiskUsageDistribution => {
                    unreachable!("goals inside brokers are not compiled here")
                }
                _ => aims.add_band(*goal, cluster, settings, rules, &totals, counted),
            };
            aims.aims.push(aim);
        }
        aims
    }

    fn add_band(
        &mut self,
        goal: Goal,
        cluster: &Cluster,
        settings: &Settings,
        rules: &Rules,
        totals: &Levels,
        counted: f64,
    ) -> Aim {
        let (gauge, kind) = band_of(goal).unwrap_or((Gauge::Replicas, Kind::Count));
        let band = self.aims.iter().filter(|aim| matches!(aim, Aim::Band { .. })).count();
        let total = totals[gauge as usize];
        let capacity_of = |seat: usize, resource: Resource| cluster.brokers()[seat].capacity[resource as usize];
        let whole = |resource: Resource| -> f64 {
            (0..rules.counted.len()).filter(|seat| rules.counted[*seat]).map(|seat| capacity_of(seat, resource)).sum()
        };
        for seat in 0..rules.counted.len() {
            if !rules.is_alive(seat as Seat) {
                continue;
            }
            let (limit, share, half) = match kind {
                Kind::Count => {
                    let threshold = match gauge {
                        Gauge::Leaders => settings.leader_replica_count_balance_threshold,
                        _ => settings.replica_count_balance_threshold,
                    };
                    let (mean, width) = (total / counted, settings.half_width(threshold));
                    let (low, high) = ((mean * (1.0 - width)).floor(), (mean * (1.0 + width)).ceil());
                    (Limit::new(low, high, mean), mean, mean * width)
                }
                Kind::MostReplicas => {
                    let most = settings.max_replicas_per_broker as f64;
                    (Limit::new(0.0, most, most), total / counted, most)
                }
                Kind::Capacity(resource) => {
                    let capacity = capacity_of(seat, resource);
                    let high = capacity * settings.capacity_thresholds[resource as usize];
                    (Limit::new(0.0, high, high), total / whole(resource) * capacity, high)
                }
                Kind::Usage(resource) => {
                    let capacity = capacity_of(seat, resource);
                    let mean = total / whole(resource);
                    let width = settings.half_width(settings.balance_thresholds[resource as usize]);
                    let idle = settings.low_utilization_thresholds[resource as usize];
                    let (low, high) = if mean <= idle {
                        (0.0, (mean * (1.0 + width)).max(idle * IDLE_MARGIN))
                    } else {
                        (mean * (1.0 - width), mean * (1.0 + width))
                    };
                    let share = mean * capacity;
                    (Limit::new(low * capacity, high * capacity, share), share, share * width)
                }
                Kind::LeaderIn => {
                    let mean = total / counted;
                    let idle = settings.low_utilization_thresholds[Resource::NwIn as usize];
                    let threshold = settings.balance_thresholds[Resource::NwIn as usize];
                    let high = (mean * threshold).max(idle * capacity_of(seat, Resource::NwIn));
                    (Limit::new(0.0, high, mean), mean, mean * (threshold - 1.0))
                }
            };
            // Brokers that get no replicas are free to lose what they have.
            let limit = if rules.counted[seat] { limit } else { Limit { low: 0.0, ..limit } };
            self.limits[seat * self.bands + band] = limit;
            self.pull(seat, gauge, share, half, matches!(kind, Kind::Count | Kind::Usage(_) | Kind::LeaderIn));
        }
        Aim::Band { gauge, band, strict: matches!(kind, Kind::Capacity(_)) }
    }

    /// Lets deviations of the gauge strain the broker, as much as `half` of the share is wide.
    fn pull(&mut self, seat: usize, gauge: Gauge, share: f64, half: f64, is_distribution: bool) {
        let gauge = gauge as usize;
        self.targets[seat][gauge] = share;
        let half = half.max(share * 0.01);
        let pull = if half > 0.0 { 1.0 / half } else { 0.0 };
        // Goals that only ask for room pull a little, so that the emptier broker is preferred.
        let pull = if is_distribution { pull } else { pull * 0.1 };
        self.pulls[seat][gauge] = self.pulls[seat][gauge].max(pull);
    }

    pub(crate) fn limit(&self, band: usize, seat: Seat) -> &Limit {
        &self.limits[usize::from(seat) * self.bands + band]
    }

    pub(crate) fn topic_band(&self, topic: u32) -> (u32, u32) {
        self.topic_bands[topic as usize]
    }

    pub(crate) fn min_leaders(&self, topic: u32) -> u32 {
        self.min_leaders[topic as usize]
    }

    pub(crate) fn rack(&self, seat: Seat) -> u16 {
        self.racks[usize::from(seat)]
    }

    pub(crate) fn live_racks(&self) -> usize {
        self.live_racks
    }

    pub(crate) fn watches_topics(&self) -> bool {
        self.watch_topics
    }

    pub(crate) fn target(&self, seat: Seat) -> &Levels {
        &self.targets[usize::from(seat)]
    }

    pub(crate) fn pulls(&self, seat: Seat) -> &Levels {
        &self.pulls[usize::from(seat)]
    }

    /// How much less at ease the broker would be after `change`. Each gauge strains with the square of
    /// its deviation from the target, lightly well inside the band and heavily from near its edge on.
    /// Strain guides the search; it never decides what is allowed.
    pub(crate) fn strain(&self, state: &State<'_>, seat: Seat, change: &Levels) -> f64 {
        let (levels, targets, pulls) = (state.levels(seat), self.target(seat), self.pulls(seat));
        let mut strain = 0.0;
        for gauge in 0..GAUGES {
            let before = (levels[gauge] - targets[gauge]) * pulls[gauge];
            let after = before + change[gauge] * pulls[gauge];
            strain += unease(after) - unease(before);
        }
        strain
    }

    /// How different two loads are that a broker would get one of for the other.
    pub(crate) fn unlikeness(&self, seat: Seat, difference: &Levels) -> f64 {
        let pulls = self.pulls(seat);
        (0..GAUGES).map(|gauge| (pulls[gauge] * difference[gauge]).powi(2)).sum()
    }

    /// How much more goal `index` misses after the action; negative if it gets better.
    pub(crate) fn change(&self, index: usize, state: &State<'_>, action: Action, effect: &Effect) -> f64 {
        match self.aims[index] {
            Aim::Band { gauge, band, strict } => {
                let gauge = gauge as usize;
                let mut sum = 0.0;
                for (seat, change) in [(effect.from, effect.on_from[gauge]), (effect.to, effect.on_to[gauge])] {
                    let (limit, before) = (self.limit(band, seat), state.levels(seat)[gauge]);
                    if strict && change > 0.0 && before + change >= limit.high {
                        return f64::INFINITY;
                    }
                    sum += limit.miss(before + change) - limit.miss(before);
                }
                sum
            }
            Aim::Racks => self.rack_change(state, action),
            Aim::EvenRacks => self.even_rack_change(state, action),
            Aim::TopicReplicas => self.topic_change(state, action),
            Aim::TopicLeaders => self.topic_leader_change(state, action),
            Aim::PreferredLeaders => self.preferred_change(state, action),
        }
    }

    /// How far the goal is from being satisfied; 0 if it is.
    pub(crate) fn miss(&self, index: usize, state: &State<'_>, rules: &Rules) -> f64 {
        let seats = 0..state.cluster.brokers().len() as Seat;
        let parts = 0..state.cluster.partition_count() as Part;
        let topics = 0..state.cluster.topics().len() as u32;
        match self.aims[index] {
            Aim::Band { gauge, band, .. } => {
                seats.map(|seat| self.limit(band, seat).miss(state.levels(seat)[gauge as usize])).sum()
            }
            Aim::Racks => parts.map(|part| self.rack_mates(state, rules, part)).sum(),
            Aim::EvenRacks => parts.map(|part| self.rack_unevenness(state, rules, part)).sum(),
            Aim::TopicReplicas => topics
                .map(|topic| {
                    let row = state.topics().row(topic).iter().zip(seats.clone());
                    let alive = row.filter(|(_, seat)| rules.is_alive(*seat));
                    alive
                        .map(|(count, seat)| self.topic_miss(topic, *count, rules.counted[usize::from(seat)]))
                        .sum::<f64>()
                })
                .sum(),
            Aim::TopicLeaders => topics
                .filter(|topic| self.min_leaders(*topic) > 0)
                .map(|topic| {
                    let eligible =
                        seats.clone().filter(|seat| rules.counted[usize::from(*seat)] && rules.takes_leaders(*seat));
                    eligible
                        .map(|seat| f64::from(self.min_leaders(topic).saturating_sub(led(state, topic, seat))))
                        .sum::<f64>()
                })
                .sum(),
            Aim::PreferredLeaders => parts
                .filter(|part| {
                    let leader = state.leader(*part);
                    state
                        .cluster
                        .slots(*part)
                        .take_while(|slot| *slot != leader)
                        .any(|slot| rules.may_lead(state, slot))
                })
                .count() as f64,
        }
    }

    fn topic_miss(&self, topic: u32, count: u32, counted: bool) -> f64 {
        let (low, high) = self.topic_band(topic);
        f64::from(count.saturating_sub(high)) + if counted { f64::from(low.saturating_sub(count)) } else { 0.0 }
    }

    /// Replicas of the partition beyond the first in each rack; 0 if nobody may move them.
    fn rack_mates(&self, state: &State<'_>, rules: &Rules, part: Part) -> f64 {
        if rules.is_excluded(state.cluster.topic_of(part)) {
            return 0.0;
        }
        let slots = state.cluster.slots(part);
        let rack = |slot: Slot| self.rack(state.seat(slot));
        slots.clone().filter(|slot| (slots.start..*slot).any(|other| rack(other) == rack(*slot))).count() as f64
    }

    fn rack_unevenness(&self, state: &State<'_>, rules: &Rules, part: Part) -> f64 {
        if rules.is_excluded(state.cluster.topic_of(part)) {
            return 0.0;
        }
        let slots = state.cluster.slots(part);
        let most = slots.len().div_ceil(self.live_racks.max(1));
        let rack = |slot: Slot| self.rack(state.seat(slot));
        slots
            .clone()
            .filter(|slot| (slots.start..*slot).filter(|other| rack(*other) == rack(*slot)).count() >= most)
            .count() as f64
    }

    /// The first goal before `upto` that the action would make worse.
    pub(crate) fn veto(&self, upto: usize, state: &State<'_>, action: Action, effect: &Effect) -> Option<usize> {
        (0..upto).find(|index| self.change(*index, state, action, effect) > NOISE)
    }

    /// The same for an action that is known to harm no band.
    pub(crate) fn veto_but_bands(
        &self,
        upto: usize,
        state: &State<'_>,
        action: Action,
        effect: &Effect,
    ) -> Option<usize> {
        (0..upto).find(|index| {
            !matches!(self.aims[*index], Aim::Band { .. }) && self.change(*index, state, action, effect) > NOISE
        })
    }

    /// The first goal of all that the action would make worse on either broker it touches, even if the
    /// other gains as much.
    pub(crate) fn harm(&self, state: &State<'_>, action: Action, effect: &Effect) -> Option<usize> {
        (0..self.aims.len()).find(|index| match self.aims[*index] {
            Aim::Band { gauge, band, strict: false } => {
                let gauge = gauge as usize;
                let mut sum = 0.0;
                let mut leaves = false;
                for (seat, change) in [(effect.from, effect.on_from[gauge]), (effect.to, effect.on_to[gauge])] {
                    let (limit, level) = (self.limit(band, seat), state.levels(seat)[gauge]);
                    let (before, after) = (limit.miss(level), limit.miss(level + change));
                    sum += after - before;
                    leaves |= before == 0.0 && after > 0.0;
                }
                leaves || sum > NOISE
            }
            _ => self.change(*index, state, action, effect) > NOISE,
        })
    }

    fn rack_change(&self, state: &State<'_>, action: Action) -> f64 {
        let moved = |slot: Slot, to: Seat| {
            let rack = self.rack(to);
            let taken = |rack: u16| {
                let part = state.cluster.part_of(slot);
                state.cluster.slots(part).any(|other| other != slot && self.rack(state.seat(other)) == rack)
            };
            if taken(rack) {
                f64::INFINITY
            } else if taken(self.rack(state.seat(slot))) {
                -1.0
            } else {
                0.0
            }
        };
        each_move(state, action).map(|(slot, to)| moved(slot, to)).sum()
    }

    fn even_rack_change(&self, state: &State<'_>, action: Action) -> f64 {
        each_move(state, action)
            .map(|(slot, to)| {
                let part = state.cluster.part_of(slot);
                let count =
                    |rack: u16| state.cluster.slots(part).filter(|other| self.rack(state.seat(*other)) == rack).count();
                let (from, to) = (self.rack(state.seat(slot)), self.rack(to));
                if from == to {
                    0.0
                } else if count(to) < count(from) {
                    // Evens out if the racks were more than one apart, else only changes which has more.
                    if count(to) + 1 < count(from) { -1.0 } else { 0.0 }
                } else {
                    f64::INFINITY
                }
            })
            .sum()
    }

    fn topic_change(&self, state: &State<'_>, action: Action) -> f64 {
        // Two replicas of one topic that change places change no count.
        if let Action::Swap { one, other } = action {
            let topic = |slot| state.cluster.topic_of(state.cluster.part_of(slot));
            if topic(one) == topic(other) {
                return 0.0;
            }
        }
        let miss = |topic: u32, count: u32| {
            let (low, high) = self.topic_band(topic);
            f64::from(count.saturating_sub(high)) + f64::from(low.saturating_sub(count))
        };
        each_move(state, action)
            .map(|(slot, to)| (state.cluster.topic_of(state.cluster.part_of(slot)), state.seat(slot), to))
            .filter(|(topic, ..)| !self.topic_is_free(*topic))
            .map(|(topic, from, to)| {
                let (here, there) = (state.topics().of(topic, from), state.topics().of(topic, to));
                miss(topic, here - 1) - miss(topic, here) + miss(topic, there + 1) - miss(topic, there)
            })
            .sum()
    }

    fn topic_is_free(&self, topic: u32) -> bool {
        self.topic_bands[topic as usize].1 == u32::MAX
    }

    fn topic_leader_change(&self, state: &State<'_>, action: Action) -> f64 {
        let mut sum = 0.0;
        let mut passes = |slot: Slot, from: Seat, to: Seat| {
            let part = state.cluster.part_of(slot);
            let topic = state.cluster.topic_of(part);
            let least = self.min_leaders(topic);
            if least > 0 && from != to {
                let short = |leaders: u32| f64::from(least.saturating_sub(leaders));
                let (here, there) = (led(state, topic, from), led(state, topic, to));
                sum += short(here - 1) - short(here) + short(there + 1) - short(there);
            }
        };
        for slot in crowned(action).iter() {
            passes(slot, state.seat(state.leader(state.cluster.part_of(slot))), state.seat(slot));
        }
        for (slot, to) in each_move(state, action) {
            if state.leads(slot) {
                passes(slot, state.seat(slot), to);
            }
        }
        sum
    }

    fn preferred_change(&self, state: &State<'_>, action: Action) -> f64 {
        let carried = |slot: Slot| each_move(state, action).find(|(moved, _)| *moved == slot).map(|(_, to)| to);
        touched(state, action)
            .map(|part| {
                let slots = state.cluster.slots(part);
                let leader = crowned(action).iter().find(|slot| slots.contains(slot)).unwrap_or(state.leader(part));
                let passed_over = |leader: Slot, seat: &dyn Fn(Slot) -> Seat| {
                    f64::from(u8::from((slots.start..leader).any(|slot| self.may_lead[usize::from(seat(slot))])))
                };
                passed_over(leader, &|slot| carried(slot).unwrap_or(state.seat(slot)))
                    - passed_over(state.leader(part), &|slot| state.seat(slot))
            })
            .sum()
    }
}

/// How a deviation, in half widths of the band, strains.
fn unease(deviation: f64) -> f64 {
    /// Where the edge begins to be felt: moves take a gauge a little way inside, not to the middle.
    const EDGE: f64 = 0.8;
    const INSIDE: f64 = 0.05;
    let beyond = (deviation.abs() - EDGE).max(0.0);
    INSIDE * deviation * deviation + beyond * beyond
}

/// A fraction of the idle threshold that an idle cluster's brokers may reach.
const IDLE_MARGIN: f64 = 0.9;

/// Which shape of band a goal is.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Count,
    MostReplicas,
    Capacity(Resource),
    Usage(Resource),
    LeaderIn,
}

fn band_of(goal: Goal) -> Option<(Gauge, Kind)> {
    let capacity = |resource| (Gauge::of(resource), Kind::Capacity(resource));
    let usage = |resource| (Gauge::of(resource), Kind::Usage(resource));
    Some(match goal {
        Goal::ReplicaCapacity => (Gauge::Replicas, Kind::MostReplicas),
        Goal::DiskCapacity => capacity(Resource::Disk),
        Goal::NetworkInboundCapacity => capacity(Resource::NwIn),
        Goal::NetworkOutboundCapacity => capacity(Resource::NwOut),
        Goal::CpuCapacity => capacity(Resource::Cpu),
        Goal::ReplicaDistribution => (Gauge::Replicas, Kind::Count),
        Goal::PotentialNwOut => (Gauge::PotentialOut, Kind::Capacity(Resource::NwOut)),
        Goal::DiskUsageDistribution => usage(Resource::Disk),
        Goal::NetworkInboundUsageDistribution => usage(Resource::NwIn),
        Goal::NetworkOutboundUsageDistribution => usage(Resource::NwOut),
        Goal::CpuUsageDistribution => usage(Resource::Cpu),
        Goal::LeaderReplicaDistribution => (Gauge::Leaders, Kind::Count),
        Goal::LeaderBytesInDistribution => (Gauge::LeaderIn, Kind::LeaderIn),
        _ => return None,
    })
}

/// The whole cluster's gauges, brokers that are to be emptied included.
fn totals(state: &State<'_>) -> Levels {
    let mut totals = [0.0; GAUGES];
    for levels in state.all_levels() {
        for (total, level) in totals.iter_mut().zip(levels) {
            *total += level;
        }
    }
    totals
}

fn topic_bands(cluster: &Cluster, settings: &Settings, counted: f64, rules: &Rules) -> Vec<(u32, u32)> {
    (0..cluster.topics().len() as u32)
        .map(|topic| {
            if rules.is_excluded(topic) {
                return (0, u32::MAX);
            }
            let parts = cluster.topic_parts(topic);
            let replicas: usize = if parts.is_empty() {
                0
            } else {
                (cluster.slots(parts.end - 1).end - cluster.slots(parts.start).start) as usize
            };
            settings.topic_band(replicas as f64 / counted)
        })
        .collect()
}

fn min_leaders(cluster: &Cluster, settings: &Settings, rules: &Rules) -> Vec<u32> {
    let brokers = (0..rules.counted.len() as Seat)
        .filter(|seat| rules.counted[usize::from(*seat)] && rules.takes_leaders(*seat))
        .count();
    let wanted = settings.topics_with_min_leaders_per_broker.as_ref();
    cluster
        .topics()
        .iter()
        .enumerate()
        .map(|(topic, name)| match wanted {
            Some(wanted) if wanted.matches(name) => match settings.min_topic_leaders_per_broker {
                0 => (cluster.topic_parts(topic as u32).len() / brokers.max(1)) as u32,
                least => least,
            },
            _ => 0,
        })
        .collect()
}

/// How many partitions of the topic the broker leads.
pub(crate) fn led(state: &State<'_>, topic: u32, seat: Seat) -> u32 {
    state.cluster.topic_parts(topic).filter(|part| state.seat(state.leader(*part)) == seat).count() as u32
}

/// The replicas that the action carries, and where to.
fn each_move(state: &State<'_>, action: Action) -> impl Iterator<Item = (Slot, Seat)> + use<> {
    match action {
        Action::Move { slot, to } => Few::one((slot, to)),
        Action::Swap { one, other } => Few::two((one, state.seat(other)), (other, state.seat(one))),
        Action::Lead { .. } | Action::LeadSwap { .. } | Action::LeadTrade { .. } => Few::NONE,
    }
    .iter()
}

/// At most three of something, without a heap.
#[derive(Debug, Clone, Copy)]
struct Few<T>([Option<T>; 3]);

impl<T: Copy> Few<T> {
    const NONE: Few<T> = Few([None; 3]);

    fn one(item: T) -> Few<T> {
        Few([Some(item), None, None])
    }

    fn two(one: T, other: T) -> Few<T> {
        Few([Some(one), Some(other), None])
    }

    fn three(one: T, two: T, three: T) -> Few<T> {
        Few([Some(one), Some(two), Some(three)])
    }

    fn iter(self) -> impl Iterator<Item = T> {
        self.0.into_iter().flatten()
    }
}

/// The replicas that an action makes leaders without moving them.
fn crowned(action: Action) -> Few<Slot> {
    match action {
        Action::Lead { slot, .. } => Few::one(slot),
        Action::LeadSwap { one, other } => Few::two(one, other),
        Action::LeadTrade { one, two, back } => Few::three(one, two, back),
        Action::Move { .. } | Action::Swap { .. } => Few::NONE,
    }
}

/// The partitions an action touches, for whoever wants to look at them.
pub(crate) fn touched(state: &State<'_>, action: Action) -> impl Iterator<Item = Part> + use<> {
    let part = |slot| state.cluster.part_of(slot);
    match action {
        Action::Move { slot, .. } => Few::one(part(slot)),
        Action::Lead { part, .. } => Few::one(part),
        Action::Swap { one, other } | Action::LeadSwap { one, other } => Few::two(part(one), part(other)),
        Action::LeadTrade { one, two, back } => Few::three(part(one), part(two), part(back)),
    }
    .iter()
}
