//! The goals of one request, compiled for one cluster: bands per broker, and who vetoes what.
//!
//! Thirteen of the goals say the same kind of thing: "this gauge of each broker lies between these
//! two numbers". They are compiled into bands; judging an action by one is two subtractions. The
//! others (racks, topics, preferred leaders) look at the one or two partitions an action touches.
//!
//! Each goal has a *miss*: 0 when it is satisfied, and growing with the distance from that. An action
//! is allowed if no goal of higher priority misses by more than before.

mod compile;
mod hosts;
mod judge;
mod leader_in;
mod touch;

use crate::cluster::{Part, Seat, Slot};
use crate::gauges::{Gauge, Levels};
use crate::goal::Goal;

pub(crate) use touch::touched;

/// Misses smaller than this are rounding, not reality. They are relative to a broker's fair share.
pub(crate) const NOISE: f64 = 1e-9;

/// What a goal is, once it is compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Aim {
    /// A gauge stays between two numbers on every broker, or on its host.
    Band { gauge: Gauge, band: usize, rise: Rise },
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

/// What a band says of a broker that would rise above it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rise {
    /// It may, if the other broker comes nearer to its band by as much.
    Traded,
    /// It must not, whatever others gain.
    Barred,
    /// It must not even reach the limit. Who takes leadership over is judged as if all came along that
    /// the leader carries.
    BarredToLeaders,
}

/// Between what a gauge should stay on one broker.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Limit {
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// The most that a broker may rise to, where rising is barred.
    pub(crate) ceiling: f64,
    /// Turns a distance into a share of what the broker ought to carry.
    unit: f64,
}

impl Limit {
    fn new(low: f64, high: f64, share: f64) -> Limit {
        // A share of nothing would make every distance infinite: then distances count as they are.
        Limit { low, high, ceiling: high, unit: if share > 0.0 { 1.0 / share } else { 1.0 } }
    }

    /// A limit that must not be reached.
    fn below(high: f64) -> Limit {
        Limit { ceiling: high.next_down(), ..Limit::new(0.0, high, high) }
    }

    const FREE: Limit = Limit { low: 0.0, high: f64::INFINITY, ceiling: f64::INFINITY, unit: 1.0 };

    /// What several brokers may carry together.
    fn sum(limits: &[Limit]) -> Limit {
        let over = |part: &dyn Fn(&Limit) -> f64| limits.iter().map(part).sum::<f64>();
        let whole = Limit::new(over(&|limit| limit.low), over(&|limit| limit.high), over(&|limit| 1.0 / limit.unit));
        let strict = limits.iter().any(|limit| limit.ceiling < limit.high);
        Limit { ceiling: if strict { whole.high.next_down() } else { whole.high }, ..whole }
    }

    pub(crate) fn miss(&self, level: f64) -> f64 {
        let (over, under) = self.beyond(level);
        let miss = over + under;
        if miss > NOISE { miss } else { 0.0 }
    }

    /// How far the level is above and below.
    fn beyond(&self, level: f64) -> (f64, f64) {
        ((level - self.high).max(0.0) * self.unit, (self.low - level).max(0.0) * self.unit)
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
    /// The hosts that several brokers share; usually there are none.
    hosts: Option<hosts::Hosts>,
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
    roles: Vec<Role>,
    /// The partitions, ascending, that somebody should lead who comes before the leader in the list as found, and who.
    passed_over: Vec<(Part, Slot)>,
    leader_in: Option<leader_in::LeaderIn>,
}

/// What goals that count replicas and leaders expect of a broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// Nothing: it is dead, or treated so.
    Emptied,
    /// No more than its share: it gets no replicas, and gives what others lack.
    Keeper,
    /// Its share of replicas and, if it `leads`, of leaders.
    Taker { leads: bool },
}

impl Aims {
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

    /// How many of the topic a broker may hold, if anybody asks.
    pub(crate) fn most_of_topic(&self, topic: u32) -> u32 {
        if self.watch_topics { self.topic_bands[topic as usize].1 } else { u32::MAX }
    }

    /// How many of the topic a broker must keep when another lacks some.
    pub(crate) fn least_of_topic(&self, topic: u32, seat: Seat) -> u32 {
        match self.roles[usize::from(seat)] {
            Role::Emptied | Role::Keeper => 0,
            Role::Taker { .. } => self.topic_bands[topic as usize].0,
        }
    }

    pub(crate) fn target(&self, seat: Seat) -> &Levels {
        &self.targets[usize::from(seat)]
    }

    pub(crate) fn pulls(&self, seat: Seat) -> &Levels {
        &self.pulls[usize::from(seat)]
    }
}
