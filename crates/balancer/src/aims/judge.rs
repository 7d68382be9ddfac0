//! Judging by the compiled goals: by how much one misses, what an action changes about that, and
//! which goal forbids the action.

use super::touch::{crowned, each_move, led, touched};
use super::{Aim, Aims, NOISE, Rise};
use crate::cluster::{Part, Seat, Slot};
use crate::gauges::Gauge;
use crate::rules::Rules;
use crate::state::{Action, Effect, State};

impl Aims {
    /// How much more goal `index` misses after the action; negative if it gets better.
    pub(crate) fn change(&self, index: usize, state: &State<'_>, action: Action, effect: &Effect) -> f64 {
        match self.aims[index] {
            Aim::Band { gauge, band, rise } => {
                let asked = asked(gauge, rise, state, action, effect);
                if self.is_shared(band, effect.from) || self.is_shared(band, effect.to) {
                    return self.change_on_hosts((gauge, band, rise), state, effect, asked);
                }
                let gauge = gauge as usize;
                let on_from = effect.on_from[gauge];
                let mut sum = 0.0;
                for (seat, change, asked) in [(effect.from, on_from, on_from), (effect.to, effect.on_to[gauge], asked)]
                {
                    let (limit, before) = (self.limit(band, seat), state.levels(seat)[gauge]);
                    if rise != Rise::Traded && asked > 0.0 && before + asked > limit.ceiling {
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
                seats.map(|seat| self.miss_of(band, seat, &|seat| state.levels(seat)[gauge as usize])).sum()
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

    /// The same for an action that is known to take no broker out of a band.
    pub(crate) fn veto_but_bands(
        &self,
        upto: usize,
        state: &State<'_>,
        action: Action,
        effect: &Effect,
    ) -> Option<usize> {
        // Capacities ask for more of those who take leadership over than what it brings.
        let leads = matches!(action, Action::Lead { .. });
        let asks = |aim: Aim| match aim {
            Aim::Band { rise, .. } => leads && rise == Rise::BarredToLeaders,
            _ => true,
        };
        (0..upto).find(|index| asks(self.aims[*index]) && self.change(*index, state, action, effect) > NOISE)
    }

    /// The first goal of all that the action would make worse on either broker it touches, even if the
    /// other gains as much.
    pub(crate) fn harm(&self, state: &State<'_>, action: Action, effect: &Effect) -> Option<usize> {
        (0..self.aims.len()).find(|index| match self.aims[*index] {
            Aim::Band { gauge, band, rise: Rise::Traded } => {
                let mut sum = 0.0;
                let mut leaves = false;
                let mut count = |(before, after): (f64, f64)| {
                    sum += after - before;
                    leaves |= before == 0.0 && after > 0.0;
                };
                if self.is_shared(band, effect.from) || self.is_shared(band, effect.to) {
                    self.misses_on_hosts(band, gauge, state, effect).for_each(count);
                } else {
                    let gauge = gauge as usize;
                    for (seat, change) in [(effect.from, effect.on_from[gauge]), (effect.to, effect.on_to[gauge])] {
                        let (limit, level) = (self.limit(band, seat), state.levels(seat)[gauge]);
                        count((limit.miss(level), limit.miss(level + change)));
                    }
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

/// How much more the action asks the broker it goes to for: all that the leader carries where leadership
/// is judged so, else what it brings.
fn asked(gauge: Gauge, rise: Rise, state: &State<'_>, action: Action, effect: &Effect) -> f64 {
    match (rise, action) {
        (Rise::BarredToLeaders, Action::Lead { part, .. }) => state.weight(state.leader(part))[gauge as usize],
        _ => effect.on_to[gauge as usize],
    }
}
