//! Exchanges: where a single move is refused, two that pay for each other may not be.

use super::{Judges, Search, by_worth};
use crate::aims::{Aim, NOISE};
use crate::cluster::{Seat, Slot};
use crate::gauges::{Gauge, Levels};
use crate::goal::Goal;
use crate::state::Action;

/// How far exchanges of replicas are looked for.
#[derive(Debug, Clone, Copy)]
struct Reach {
    /// Brokers asked.
    partners: usize,
    /// Replicas of the broker in need that are looked up ...
    kept: usize,
    /// ... and of which so many are tried with each partner.
    offered: usize,
    /// Replicas of each partner.
    answers: usize,
}

impl Reach {
    const USUAL: Reach = Reach { partners: 16, kept: 256, offered: 48, answers: 24 };
    /// Before a hard goal counts as infeasible.
    const LAST_RESORT: Reach = Reach { partners: 64, kept: 256, offered: 256, answers: 256 };
}

/// Brokers that may find no exchange in vain before none are looked for any more, as the last resort: where the worst ones
/// cannot be helped, that others can would not save the goal.
const IN_VAIN: usize = 4;

impl Search<'_, '_> {
    /// Exchanges leadership between brokers outside their band and others; that costs no bytes.
    pub(super) fn exchange_leaders(&mut self, goal: usize, gauge: Gauge, band: usize) {
        for (seat, over) in self.outside(gauge, band).each() {
            if gauge == Gauge::Leaders {
                // One for one leaves the number of leaders as it is; two for one does not.
                self.trade_leadership(goal, gauge, band, seat, over);
            } else {
                self.exchange_leadership(goal, gauge, seat, over);
            }
        }
    }

    /// Exchanges replicas between brokers outside their band and others.
    pub(super) fn exchange(&mut self, goal: usize, gauge: Gauge, band: usize) {
        let swaps_replicas = matches!(
            self.aims.goals[goal],
            Goal::DiskUsageDistribution
                | Goal::NetworkInboundUsageDistribution
                | Goal::NetworkOutboundUsageDistribution
                | Goal::CpuUsageDistribution
        );
        if !swaps_replicas {
            return;
        }
        for (seat, over) in self.outside(gauge, band).each() {
            if self.misses(gauge, band, seat) {
                self.exchange_replicas(goal, gauge, band, (seat, over), Reach::USUAL);
            }
        }
    }

    /// Exchanges replicas for a capacity that no single move can keep: the last resort before it counts as infeasible.
    pub(super) fn exchange_for_room(&mut self, goal: usize, gauge: Gauge, band: usize) {
        let mut in_vain = 0;
        for seat in self.outside(gauge, band).over {
            if !self.misses(gauge, band, seat) {
                continue;
            }
            let before = self.steps.len();
            self.exchange_replicas(goal, gauge, band, (seat, true), Reach::LAST_RESORT);
            in_vain += usize::from(self.steps.len() == before);
            if in_vain == IN_VAIN {
                return;
            }
        }
    }

    /// Whether the broker is outside the band.
    pub(super) fn misses(&self, gauge: Gauge, band: usize, seat: Seat) -> bool {
        let (level, limit) = self.aims.standing(band, gauge, &self.state, seat);
        limit.miss(level) > 0.0
    }

    /// Exchanges that leave no broker with too many or too few of a topic come first; others only if there are none.
    fn exchange_replicas(&mut self, goal: usize, gauge: Gauge, band: usize, outside: (Seat, bool), reach: Reach) {
        let before = self.steps.len();
        for crowds in [false, true] {
            self.exchange_with_partners(goal, gauge, band, outside, (crowds, reach));
            if self.steps.len() > before {
                return;
            }
        }
    }

    fn exchange_with_partners(
        &mut self,
        goal: usize,
        gauge: Gauge,
        band: usize,
        (seat, over): (Seat, bool),
        (crowds, reach): (bool, Reach),
    ) {
        let mut seats = self.partners(gauge, seat, over, reach.partners);
        seats.insert(0, seat);
        // What it gives is what relieves it most, what it takes is what does it most good, both for the fewest bytes.
        let worth = |slot: Slot, here: Seat| {
            let good = |weight: &Levels| {
                if here == seat { self.relief(seat, weight) } else { -self.strain(seat, weight) }
            };
            let may_come = || {
                (crowds || !self.is_crowded(slot, seat))
                    && self.rules.may_receive(&self.state, slot, self.state.leads(slot), seat)
            };
            ((here == seat || may_come()) && self.may_move(slot, goal))
                .then(|| good(&self.state.weight(slot)) / self.price(slot))
        };
        let ends = |here: Seat| if here == seat { (Some(seat), None) } else { (None, Some(seat)) };
        let mut lists = self.survey(&seats, (reach.kept, reach.answers), ends, worth).into_iter();
        let mut gives = lists.next().unwrap_or_default();
        for takes in lists {
            let takes: Vec<Slot> = takes.into_iter().map(|(_, slot)| slot).collect();
            gives.retain(|(_, slot)| self.state.seat(*slot) == seat);
            for (worth, slot) in &mut gives {
                *worth = self.relief(seat, &self.state.weight(*slot)) / self.price(*slot);
            }
            by_worth(&mut gives);
            for &(_, one) in gives.iter().take(reach.offered) {
                if !self.misses(gauge, band, seat) {
                    return;
                }
                if let Some(action) = self.best_swap(goal, one, &takes, crowds) {
                    let _ = self.attempt(goal, Judges::Before, action);
                }
            }
        }
    }

    /// The swap of `one` with one of `others` that eases both brokers most per byte.
    fn best_swap(&self, goal: usize, one: Slot, others: &[Slot], crowds: bool) -> Option<Action> {
        let topics = self.aims.aims.iter().position(|aim| *aim == Aim::TopicReplicas).filter(|_| !crowds);
        let mut best: Option<(f64, Action)> = None;
        for &other in others {
            if self.state.seat(other) == self.state.seat(one) || !self.may_change_places(one, other) {
                continue;
            }
            let action = Action::Swap { one, other };
            let effect = self.state.effect(action);
            let worth = -self.strain_of(&effect) / (self.price(one) + self.price(other));
            if best.is_none_or(|(known, _)| worth > known)
                && topics.is_none_or(|topics| self.aims.change(topics, &self.state, action, &effect) <= NOISE)
                && self.weigh(goal, Judges::Before, action, &effect).is_ok()
            {
                best = Some((worth, action));
            }
        }
        best.map(|(_, action)| action)
    }

    /// Whether each of the two replicas may live where the other does.
    pub(super) fn may_change_places(&self, one: Slot, other: Slot) -> bool {
        let state = &self.state;
        let (here, there) = (state.seat(one), state.seat(other));
        let (part, partner) = (state.cluster.part_of(one), state.cluster.part_of(other));
        let both_new = self.rules.is_new(here) && self.rules.is_new(there);
        (!self.rules.only_new() || both_new || state.home(one) == there || state.home(other) == here)
            && self.rules.may_receive(state, one, state.leads(one), there)
            && self.rules.may_receive(state, other, state.leads(other), here)
            && !state.holds(there, part)
            && !state.holds(here, partner)
    }

    /// Brokers at the other end of the scale.
    fn partners(&self, gauge: Gauge, seat: Seat, over: bool, most: usize) -> Vec<Seat> {
        let mut others: Vec<(f64, Slot)> = self
            .seats()
            // Old brokers give to new ones and take back from them, but do not exchange with each other.
            .filter(|other| !self.rules.only_new() || self.rules.is_new(seat) || self.rules.is_new(*other))
            .filter(|other| *other != seat && self.rules.is_alive(*other))
            .map(|other| {
                let target = self.aims.target(other)[gauge as usize].max(f64::MIN_POSITIVE);
                let fullness = self.state.levels(other)[gauge as usize] / target;
                (if over { -fullness } else { fullness }, Slot::from(other))
            })
            .collect();
        by_worth(&mut others);
        others.into_iter().take(most).map(|(_, other)| other as Seat).collect()
    }
}
