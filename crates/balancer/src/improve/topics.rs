//! Topics whose replicas crowd a broker: some go elsewhere, or change places with other topics'.

use super::{Judges, Search};
use crate::cluster::{Seat, Slot};
use crate::gauges::minus;
use crate::state::Action;

/// Places tried by exchanging, after a plain move was refused everywhere.
const PARTNERS: usize = 6;
/// Replicas of a partner that are looked at for an exchange.
const LOOKED_AT: usize = 2_000;

impl Search<'_, '_> {
    pub(super) fn improve_topics(&mut self, goal: usize) {
        for topic in 0..self.state.cluster.topics().len() as u32 {
            let (low, high) = self.aims.topic_band(topic);
            let row = self.state.topics().row(topic);
            if row.iter().all(|count| (low..=high).contains(count)) || self.rules.is_excluded(topic) {
                continue;
            }
            self.thin_out(goal, topic, high);
            self.thicken(goal, topic, low);
        }
    }

    /// Moves replicas off brokers that hold too many of the topic.
    fn thin_out(&mut self, goal: usize, topic: u32, high: u32) {
        for seat in self.seats() {
            if self.state.topics().of(topic, seat) <= high || !self.rules.is_alive(seat) {
                continue;
            }
            for (_, slot) in self.of_topic(goal, topic, seat) {
                if self.state.topics().of(topic, seat) <= high {
                    break;
                }
                if self.place(goal, Judges::Before, slot, self.seats()).is_err() {
                    let mut roomy: Vec<Seat> =
                        self.seats().filter(|other| self.state.topics().of(topic, *other) < high).collect();
                    // Where it came from, an exchange costs least, and among new brokers it may be the only place.
                    roomy.sort_by_key(|other| *other != self.state.home(slot));
                    self.change_places(goal, slot, &roomy);
                }
            }
        }
    }

    /// Moves replicas onto brokers that hold too few of the topic.
    fn thicken(&mut self, goal: usize, topic: u32, low: u32) {
        for seat in self.seats() {
            if !self.rules.counted[usize::from(seat)] {
                continue;
            }
            let mut givers: Vec<Seat> = self.seats().collect();
            givers.sort_by_key(|giver| std::cmp::Reverse(self.state.topics().of(topic, *giver)));
            for giver in givers {
                if self.state.topics().of(topic, seat) >= low {
                    break;
                }
                for (_, slot) in self.of_topic(goal, topic, giver) {
                    let lacking = self.state.topics().of(topic, seat) < low;
                    if !lacking || self.state.topics().of(topic, giver) <= low {
                        break;
                    }
                    if self.place(goal, Judges::Before, slot, std::iter::once(seat)).is_err() {
                        self.change_places(goal, slot, &[seat]);
                    }
                }
            }
        }
    }

    /// The topic's replicas on the broker, the smallest first.
    fn of_topic(&self, goal: usize, topic: u32, seat: Seat) -> Vec<(f64, Slot)> {
        let parts = self.state.cluster.topic_parts(topic);
        let slots = parts.flat_map(|part| self.state.cluster.slots(part));
        let mut here: Vec<(f64, Slot)> = slots
            .filter(|slot| self.state.seat(*slot) == seat && self.may_move(*slot, goal))
            .map(|slot| (-self.state.cluster.megabytes(slot), slot))
            .collect();
        super::by_worth(&mut here);
        here
    }

    /// Exchanges the replica for one that weighs about the same on one of the brokers.
    fn change_places(&mut self, goal: usize, slot: Slot, seats: &[Seat]) -> bool {
        let weight = self.state.weight(slot);
        let here = self.state.seat(slot);
        let mut tried = 0;
        for &there in seats {
            if there == here || self.state.holds(there, self.state.cluster.part_of(slot)) {
                continue;
            }
            tried += 1;
            if tried > PARTNERS {
                break;
            }
            let mut best: Option<(f64, Action)> = None;
            for &other in self.state.held(there).iter().take(LOOKED_AT) {
                let strange = self.aims.unlikeness(there, &minus(self.state.weight(other), weight))
                    + self.state.cluster.megabytes(other) / self.a_move * 1e-4;
                if best.is_some_and(|(known, _)| known <= strange)
                    || !self.may_move(other, goal)
                    || !self.may_change_places(slot, other)
                {
                    continue;
                }
                let action = Action::Swap { one: slot, other };
                let effect = self.state.effect(action);
                if self.aims.change(goal, &self.state, action, &effect) < -crate::aims::NOISE
                    && self.aims.veto(goal, &self.state, action, &effect).is_none()
                {
                    best = Some((strange, action));
                }
            }
            if let Some((_, action)) = best
                && self.attempt(goal, Judges::Before, action).is_ok()
            {
                return true;
            }
        }
        false
    }
}
