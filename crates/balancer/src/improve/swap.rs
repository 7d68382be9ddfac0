//! Exchanges: where a single move is refused, two that pay for each other may not be.

use super::{Judges, Search, by_worth};
use crate::aims::{Aim, NOISE};
use crate::cluster::{Seat, Slot};
use crate::gauges::{Gauge, Levels};
use crate::goal::Goal;
use crate::state::Action;

/// Replicas of the broker in need that are tried with each partner, out of so many that were looked up.
const OFFERED: usize = 48;
const KEPT: usize = 256;
/// Replicas of each partner.
const ANSWERS: usize = 24;
/// Partners asked for each replica.
const PARTNERS: usize = 16;

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
                self.exchange_replicas(goal, gauge, band, seat, over);
            }
        }
    }

    /// Whether the broker is outside the band.
    pub(super) fn misses(&self, gauge: Gauge, band: usize, seat: Seat) -> bool {
        let (level, limit) = self.aims.standing(band, gauge, &self.state, seat);
        limit.miss(level) > 0.0
    }

    /// Exchanges that leave no broker with too many or too few of a topic come first; others only if there are none.
    fn exchange_replicas(&mut self, goal: usize, gauge: Gauge, band: usize, seat: Seat, over: bool) {
        let before = self.steps.len();
        for crowds in [false, true] {
            self.exchange_with_partners(goal, gauge, band, (seat, over), crowds);
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
        crowds: bool,
    ) {
        let mut seats = self.partners(gauge, seat, over);
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
        let mut lists = self.survey(&seats, (KEPT, ANSWERS), ends, worth).into_iter();
        let mut gives = lists.next().unwrap_or_default();
        for takes in lists {
            let takes: Vec<Slot> = takes.into_iter().map(|(_, slot)| slot).collect();
            gives.retain(|(_, slot)| self.state.seat(*slot) == seat);
            for (worth, slot) in &mut gives {
                *worth = self.relief(seat, &self.state.weight(*slot)) / self.price(*slot);
            }
            by_worth(&mut gives);
            for &(_, one) in gives.iter().take(OFFERED) {
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
    fn partners(&self, gauge: Gauge, seat: Seat, over: bool) -> Vec<Seat> {
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
        others.into_iter().take(PARTNERS).map(|(_, other)| other as Seat).collect()
    }
}
