//! Exchanges: where a single move is refused, two that pay for each other may not be.

use super::{Judges, Search, by_worth, keep_best};
use crate::cluster::{Seat, Slot};
use crate::gauges::{Gauge, Levels, minus, negated};
use crate::goal::Goal;
use crate::state::Action;

/// Replicas of the broker in need that are tried, and of each partner.
const OFFERED: usize = 48;
const ANSWERS: usize = 24;
/// Partners asked for each replica.
const PARTNERS: usize = 16;

impl Search<'_, '_> {
    /// Exchanges leadership or replicas between brokers outside their band and others.
    pub(super) fn exchange(&mut self, goal: usize, gauge: Gauge, band: usize) {
        let swaps_replicas = matches!(
            self.aims.goals[goal],
            Goal::DiskUsageDistribution
                | Goal::NetworkInboundUsageDistribution
                | Goal::NetworkOutboundUsageDistribution
                | Goal::CpuUsageDistribution
        );
        let outside = self.outside(gauge, band);
        let work = outside.over.iter().map(|seat| (*seat, true)).chain(outside.under.iter().map(|seat| (*seat, false)));
        for (seat, over) in work {
            if gauge == Gauge::Leaders {
                // One for one leaves the number of leaders as it is; two for one does not.
                self.trade_leadership(goal, gauge, band, seat, over);
            } else if gauge.follows_leadership() {
                self.exchange_leadership(goal, gauge, seat, over);
            }
            if swaps_replicas && self.misses(gauge, band, seat) {
                self.exchange_replicas(goal, gauge, band, seat, over);
            }
        }
    }

    /// Whether the broker is outside the band.
    pub(super) fn misses(&self, gauge: Gauge, band: usize, seat: Seat) -> bool {
        let (level, limit) = self.aims.standing(band, gauge, &self.state, seat);
        limit.miss(level) > 0.0
    }

    fn exchange_replicas(&mut self, goal: usize, gauge: Gauge, band: usize, seat: Seat, over: bool) {
        for partner in self.partners(gauge, seat, over) {
            let gives = self.worth_giving(goal, seat, OFFERED);
            let takes = self.worth_taking(goal, partner, seat, ANSWERS);
            for one in gives {
                if !self.misses(gauge, band, seat) {
                    return;
                }
                if let Some(action) = self.best_swap(goal, one, &takes) {
                    let _ = self.attempt(goal, Judges::Before, action);
                }
            }
        }
    }

    /// The swap of `one` with one of `others` that eases both brokers most per byte.
    fn best_swap(&self, goal: usize, one: Slot, others: &[Slot]) -> Option<Action> {
        let here = self.state.seat(one);
        let weight = self.state.weight(one);
        let mut best: Option<(f64, Action)> = None;
        for &other in others {
            let there = self.state.seat(other);
            if self.state.seat(one) != here || there == here || !self.may_change_places(one, other) {
                continue;
            }
            let action = Action::Swap { one, other };
            let gain = minus(self.state.weight(other), weight);
            let ease =
                -self.aims.strain(&self.state, here, &gain) - self.aims.strain(&self.state, there, &negated(gain));
            let worth = ease / (self.price(one) + self.price(other));
            if best.is_some_and(|(known, _)| known >= worth) {
                continue;
            }
            let effect = self.state.effect(action);
            if self.aims.change(goal, &self.state, action, &effect) < -crate::aims::NOISE
                && self.aims.veto(goal, &self.state, action, &effect).is_none()
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
        (!self.rules.has_new() || both_new || state.home(one) == there || state.home(other) == here)
            && self.rules.may_receive(state, one, state.leads(one), there)
            && self.rules.may_receive(state, other, state.leads(other), here)
            && !state.holds(there, part)
            && !state.holds(here, partner)
    }

    /// The broker's replicas whose going relieves it most for the fewest bytes.
    fn worth_giving(&self, goal: usize, seat: Seat, most: usize) -> Vec<Slot> {
        self.best_held(goal, seat, most, |weight| self.relief(seat, weight))
    }

    /// The partner's replicas whose coming does the broker most good for the fewest bytes.
    fn worth_taking(&self, goal: usize, partner: Seat, seat: Seat, most: usize) -> Vec<Slot> {
        self.best_held(goal, partner, most, |weight| -self.aims.strain(&self.state, seat, weight))
    }

    fn best_held(&self, goal: usize, seat: Seat, most: usize, worth: impl Fn(&Levels) -> f64) -> Vec<Slot> {
        let mut candidates: Vec<(f64, Slot)> = Vec::new();
        for &slot in self.state.held(seat) {
            if self.may_move(slot, goal) {
                let weight = self.state.weight(slot);
                candidates.push((worth(&weight) / self.price(slot), slot));
            }
        }
        keep_best(&mut candidates, most);
        candidates.into_iter().map(|(_, slot)| slot).collect()
    }

    /// Brokers at the other end of the scale.
    fn partners(&self, gauge: Gauge, seat: Seat, over: bool) -> Vec<Seat> {
        let mut others: Vec<(f64, Slot)> = self
            .seats()
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
