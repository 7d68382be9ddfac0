//! Topics whose replicas crowd a broker: some go elsewhere, or change places with other topics'.
//!
//! A topic may have tens of thousands of partitions, so its replicas are listed once, by size. Where one finds no
//! place, the next ones, which are about as large, hardly will: with every refusal in a row more of them are skipped.

use std::collections::BTreeMap;

use super::{Judges, Search};
use crate::cluster::{Seat, Slot};
use crate::state::Action;

/// Places tried by exchanging, after a plain move was refused everywhere.
const PARTNERS: usize = 6;
/// Replicas of a partner that are looked at for an exchange.
const LOOKED_AT: usize = 2_048;

/// Exchanges looked for in vain in one pass, after which none are looked for any more.
const IN_VAIN: usize = 2_048;
/// How much less alike a replica may be for sparing the bytes of one of mean size.
const A_MOVE_AGAINST_UNLIKENESS: f64 = 1e-4;

/// A topic's replicas that may move, by broker, the smallest first.
type Listed = BTreeMap<Seat, Vec<Slot>>;

/// What exchanges are looked for in.
#[derive(Default)]
struct Partners {
    /// Of some brokers, replicas from all over them.
    samples: BTreeMap<Seat, Vec<Slot>>,
    /// Exchanges looked for in vain.
    in_vain: usize,
}

impl Search<'_, '_> {
    pub(super) fn improve_topics(&mut self, goal: usize) {
        let mut partners = Partners::default();
        for topic in 0..self.state.cluster.topics().len() as u32 {
            let (low, high) = self.aims.topic_band(topic);
            let mut row = self.state.topics().row(topic).iter().zip(self.seats());
            if row.all(|(count, seat)| self.aims.topic_miss(topic, *count, seat) == 0.0) {
                continue;
            }
            let listed = self.list(goal, topic);
            self.thin_out(goal, topic, high, &listed, &mut partners);
            self.thicken(goal, topic, low, &listed, &mut partners);
        }
    }

    /// Moves replicas off brokers that hold too many of the topic.
    fn thin_out(&mut self, goal: usize, topic: u32, high: u32, listed: &Listed, partners: &mut Partners) {
        for (&seat, slots) in listed {
            if !self.rules.is_alive(seat) {
                continue;
            }
            let (mut at, mut refused) = (0, 0);
            while let Some(&slot) = slots.get(at) {
                if self.state.topics().of(topic, seat) <= high {
                    break;
                }
                let placed = self.place(goal, Judges::Before, slot, self.seats()).is_ok() || {
                    let mut roomy: Vec<Seat> =
                        self.seats().filter(|other| self.state.topics().of(topic, *other) < high).collect();
                    // Where it came from, an exchange costs least, and among new brokers it may be the only place.
                    roomy.sort_by_key(|other| *other != self.state.home(slot));
                    self.change_places(goal, slot, &roomy, partners)
                };
                refused = if placed { 0 } else { refused + 1 };
                at += 1 + refused;
            }
        }
    }

    /// Moves replicas onto brokers that hold too few of the topic.
    fn thicken(&mut self, goal: usize, topic: u32, low: u32, listed: &Listed, partners: &mut Partners) {
        for seat in self.seats() {
            if !self.rules.counted[usize::from(seat)] || self.state.topics().of(topic, seat) >= low {
                continue;
            }
            let mut givers: Vec<(&Seat, &Vec<Slot>)> = listed.iter().collect();
            let keeps = |giver: Seat| self.aims.least_of_topic(topic, giver);
            givers
                .sort_by_key(|(giver, _)| (keeps(**giver), std::cmp::Reverse(self.state.topics().of(topic, **giver))));
            let mut refused = 0;
            for (&giver, slots) in givers {
                let mut at = 0;
                while let Some(&slot) = slots.get(at) {
                    let lacking = self.state.topics().of(topic, seat) < low;
                    if !lacking || self.state.topics().of(topic, giver) <= self.aims.least_of_topic(topic, giver) {
                        break;
                    }
                    if self.state.seat(slot) != giver {
                        at += 1;
                        continue;
                    }
                    let placed = self.place(goal, Judges::Before, slot, std::iter::once(seat)).is_ok()
                        || self.change_places(goal, slot, &[seat], partners);
                    refused = if placed { 0 } else { refused + 1 };
                    at += 1 + refused;
                }
            }
        }
    }

    fn list(&self, goal: usize, topic: u32) -> Listed {
        let mut listed = Listed::new();
        for slot in self.state.cluster.topic_parts(topic).flat_map(|part| self.state.cluster.slots(part)) {
            if self.may_move(slot, goal) {
                listed.entry(self.state.seat(slot)).or_default().push(slot);
            }
        }
        let size = |slot: &Slot| self.state.cluster.megabytes(*slot);
        for slots in listed.values_mut() {
            // Stable, so that of equals the lower slot stays first.
            slots.sort_by(|one, other| size(one).total_cmp(&size(other)));
        }
        listed
    }

    /// Exchanges the replica for one that weighs about the same on one of the brokers.
    fn change_places(&mut self, goal: usize, slot: Slot, seats: &[Seat], partners: &mut Partners) -> bool {
        if partners.in_vain == IN_VAIN {
            return false;
        }
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
            let sample = partners.samples.entry(there).or_default();
            // What has left since is of no use: where that is half of them, others are looked up.
            if sample.iter().filter(|other| self.state.seat(**other) == there).count() * 2 <= sample.len() {
                *sample = self.sample(there);
            }
            let mut best: Option<(f64, Action)> = None;
            for &other in sample.iter() {
                if self.state.seat(other) != there
                    || !self.may_move(other, goal)
                    || !self.may_change_places(slot, other)
                {
                    continue;
                }
                let action = Action::Swap { one: slot, other };
                let effect = self.state.effect(action);
                let cost = self.unlikeness(&effect) + self.price(other) / self.a_move * A_MOVE_AGAINST_UNLIKENESS;
                if best.is_none_or(|(known, _)| cost < known)
                    && self.weigh(goal, Judges::Before, action, &effect).is_ok()
                {
                    best = Some((cost, action));
                }
            }
            if let Some((_, action)) = best
                && self.attempt(goal, Judges::Before, action).is_ok()
            {
                return true;
            }
        }
        partners.in_vain += 1;
        false
    }

    /// Replicas of the broker from all over it, whatever the order they came in.
    fn sample(&self, seat: Seat) -> Vec<Slot> {
        let mut slots = self.state.held(seat).to_vec();
        slots.sort_unstable();
        let step = slots.len().div_ceil(LOOKED_AT).max(1);
        slots.into_iter().step_by(step).collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::aims::Aims;
    use crate::fixture::Small;
    use crate::goal::Goal;
    use crate::improve::Search;
    use crate::options::Request;
    use crate::rules::Rules;
    use crate::settings::Settings;
    use crate::state::State;

    /// Four topics of 600 partitions, each on three of twelve brokers, whose disks are so full that nothing may move
    /// and, as no two brokers' replicas are of one size, nothing change places.
    #[test]
    fn large_topics_that_cannot_be_spread_cost_a_few_attempts_per_broker_not_per_partition() {
        const BROKERS: i32 = 12;
        const EACH: i32 = 200;
        let mut small = Small::in_racks("");
        for id in 0..BROKERS {
            let full = f64::from(EACH * (id + 1)) / 0.8;
            let state = crate::cluster::BrokerState::Alive;
            small.broker(id, 'a', &format!("host{id}"), state, [100.0, 1000.0, 1000.0, full]);
        }
        for number in 0..BROKERS * EACH {
            let broker = number / EACH;
            small.partition(&format!("t{}", broker % 4), number, &[broker], (broker + 1) as f32);
        }
        let cluster = small.cluster();
        let goals = [Goal::DiskCapacity, Goal::TopicReplicaDistribution];
        let (settings, request) = (Settings::default(), Request::default());
        let rules = Rules::compile(&cluster, &request).unwrap();
        let state = State::found(&cluster);
        let aims = Aims::compile(&state, &goals, &settings, &rules);
        let mut search = Search::new(state, &rules, aims, 1);
        search.run(true);
        assert!(search.steps.is_empty());
        let refused = search.vetoes[1][0];
        // Of each topic three brokers have too many, from which each replica would ask twelve, and nine too few.
        let of_all = 4 * (3 * EACH * 12 + 9 * 3 * EACH);
        assert!((1..of_all as u64 / 5).contains(&refused), "{refused} attempts were refused");
    }
}
