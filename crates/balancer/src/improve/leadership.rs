//! Handing leadership over: free of bytes, so tried before anything that moves data.

use std::collections::BinaryHeap;

use super::band::Outside;
use super::greedy::Entry;
use super::{Judges, Search, Why, by_worth};
use crate::cluster::{Part, Seat, Slot};
use crate::gauges::Gauge;
use crate::state::Action;
use crate::threads;

/// Refusals in a row after which a broker's leaders are left alone for this round.
const PATIENCE: usize = 256;

impl Search<'_, '_> {
    /// Takes leadership from brokers above their band and gives it to brokers below theirs.
    pub(super) fn shift_leadership(&mut self, goal: usize, gauge: Gauge, band: usize, outside: &Outside) {
        let work: Vec<(Seat, bool)> = outside.each().collect();
        let ranked = threads::map(self.threads, &work, |(seat, over)| self.worth_leading(gauge, *seat, *over));
        for ((seat, over), candidates) in work.into_iter().zip(ranked) {
            let mut refused = 0;
            let mut candidates = candidates;
            loop {
                let (level, limit) = self.aims.standing(band, gauge, &self.state, seat);
                let done = if over { level <= limit.high } else { level >= limit.low };
                if done || refused >= PATIENCE {
                    break;
                }
                let Some(Entry(_, slot)) = candidates.pop() else { break };
                let part = self.state.cluster.part_of(slot);
                if !self.rules.may_lead(&self.state, slot) {
                    continue;
                }
                refused = if self.attempt(goal, Judges::Before, Action::Lead { part, slot }).is_ok() {
                    0
                } else {
                    refused + 1
                };
            }
        }
    }

    /// Hand-overs from the broker (or to it), those first that ease both brokers most.
    fn worth_leading(&self, gauge: Gauge, seat: Seat, from: bool) -> BinaryHeap<Entry> {
        let mut candidates: Vec<Entry> = Vec::new();
        let mut offer = |slot: Slot| {
            if !self.rules.may_lead(&self.state, slot) {
                return;
            }
            let part = self.state.cluster.part_of(slot);
            let effect = self.state.effect(Action::Lead { part, slot });
            let change = if from { effect.on_from } else { effect.on_to }[gauge as usize];
            if (from && change >= 0.0) || (!from && change <= 0.0) {
                return;
            }
            candidates.push(Entry(-self.strain_of(&effect), slot));
        };
        for &slot in self.state.held(seat) {
            let part = self.state.cluster.part_of(slot);
            if from && self.state.leader(part) == slot {
                self.state.cluster.slots(part).filter(|other| *other != slot).for_each(&mut offer);
            } else if !from && self.state.leader(part) != slot {
                offer(slot);
            }
        }
        // Few of them will be asked: a full sort would mostly be wasted.
        BinaryHeap::from(candidates)
    }

    /// Lets two partitions hand leadership over in opposite directions, where one hand-over alone is
    /// refused.
    pub(super) fn exchange_leadership(&mut self, goal: usize, gauge: Gauge, seat: Seat, over: bool) {
        /// Hand-overs considered in each direction between two brokers.
        const EACH_WAY: usize = 16;
        for (away, back) in self.hand_overs(gauge, seat, over, EACH_WAY) {
            for &one in &away {
                let exchange = |other: &Slot| Action::LeadSwap { one, other: *other };
                let fits = |other: &&Slot| self.may_exchange(one, **other);
                let partners: Vec<Action> = back.iter().filter(fits).map(exchange).collect();
                let _ = partners.into_iter().any(|action| self.attempt(goal, Judges::Before, action).is_ok());
            }
        }
    }

    /// Whether the two hand-overs are still what they were when they were listed: of two partitions, in
    /// opposite directions between the same two brokers.
    fn may_exchange(&self, one: Slot, other: Slot) -> bool {
        let state = &self.state;
        let part = |slot| state.cluster.part_of(slot);
        let led_at = |slot| state.seat(state.leader(part(slot)));
        part(one) != part(other)
            && led_at(other) == state.seat(one)
            && led_at(one) == state.seat(other)
            && self.rules.may_lead(state, one)
            && self.rules.may_lead(state, other)
    }

    /// Lets the broker hand two leaderships over for one that carries as much, or take two for one: the
    /// way to change how many partitions it leads where traffic and CPU leave no room for one alone.
    pub(super) fn trade_leadership(&mut self, goal: usize, gauge: Gauge, band: usize, seat: Seat, over: bool) {
        /// Hand-overs considered in each direction between two brokers.
        const EACH_WAY: usize = 12;
        let all = self.hand_overs(Gauge::NwOut, seat, !over, usize::MAX);
        for (away, back) in all {
            // The two that go together are small, the one that pays for both is not.
            let (pairs, singles) = if over { (away, back) } else { (back, away) };
            let pairs: Vec<Slot> = pairs.into_iter().take(EACH_WAY).collect();
            for single in spread(&singles, EACH_WAY) {
                if !self.misses(gauge, band, seat) {
                    return;
                }
                if let Some(action) = self.best_trade(goal, &pairs, single) {
                    let _ = self.attempt(goal, Judges::Before, action);
                }
            }
        }
    }

    /// The two of `pairs` that go best against `single`.
    fn best_trade(&mut self, goal: usize, pairs: &[Slot], single: Slot) -> Option<Action> {
        let mut best: Option<(f64, Action)> = None;
        for (index, &one) in pairs.iter().enumerate() {
            for &two in &pairs[index + 1..] {
                if !self.may_trade(one, two, single) {
                    continue;
                }
                let action = Action::LeadTrade { one, two, back: single };
                let effect = self.state.effect(action);
                let strain = self.strain_of(&effect);
                if best.is_none_or(|(known, _)| strain < known) && self.judge(goal, Judges::Before, action).is_ok() {
                    best = Some((strain, action));
                }
            }
        }
        best.map(|(_, action)| action)
    }

    /// Whether the three hand-overs are still what they were when they were listed: two one way, one the
    /// other way, of three partitions, between the same two brokers.
    fn may_trade(&self, one: Slot, two: Slot, back: Slot) -> bool {
        let state = &self.state;
        let part = |slot| state.cluster.part_of(slot);
        let led_at = |slot| state.seat(state.leader(part(slot)));
        part(one) != part(two)
            && part(one) != part(back)
            && part(two) != part(back)
            && state.seat(one) == state.seat(two)
            && led_at(one) == state.seat(back)
            && led_at(two) == state.seat(back)
            && led_at(back) == state.seat(one)
            && [one, two, back].into_iter().all(|slot| self.rules.may_lead(state, slot))
    }

    /// Per other broker: hand-overs that move the gauge the right way, and those that pay it back.
    fn hand_overs(&self, gauge: Gauge, seat: Seat, over: bool, most: usize) -> Vec<(Vec<Slot>, Vec<Slot>)> {
        let mut away: Vec<Vec<(f64, Slot)>> = vec![Vec::new(); self.seats().len()];
        let mut back: Vec<Vec<(f64, Slot)>> = vec![Vec::new(); self.seats().len()];
        for &slot in self.state.held(seat) {
            let part = self.state.cluster.part_of(slot);
            let leader = self.state.leader(part);
            if leader == slot {
                for other in self.state.cluster.slots(part).filter(|other| *other != slot) {
                    if self.rules.may_lead(&self.state, other) {
                        let value = self.state.leadership(slot)[gauge as usize];
                        away[usize::from(self.state.seat(other))].push((value, other));
                    }
                }
            } else if self.rules.may_lead(&self.state, slot) {
                let value = self.state.leadership(slot)[gauge as usize];
                back[usize::from(self.state.seat(leader))].push((value, slot));
            }
        }
        // Over-full brokers hand over much and take back little; under-full ones the other way round.
        let pick = |mut list: Vec<(f64, Slot)>, largest: bool| -> Vec<Slot> {
            if !largest {
                list.iter_mut().for_each(|entry| entry.0 = -entry.0);
            }
            by_worth(&mut list);
            list.into_iter().take(most).map(|(_, slot)| slot).collect()
        };
        away.into_iter().zip(back).map(|(away, back)| (pick(away, over), pick(back, !over))).collect()
    }

    /// Gives brokers that lead too few partitions of a topic more of them.
    pub(super) fn improve_topic_leaders(&mut self, goal: usize) {
        for topic in 0..self.state.cluster.topics().len() as u32 {
            let least = self.aims.min_leaders(topic);
            if least == 0 {
                continue;
            }
            for seat in self.seats() {
                let mut before = None;
                // What one gives up may let the next: again, until nobody gives anything.
                while self.needs_leaders(topic, seat, least) && before != Some(self.age) {
                    before = Some(self.age);
                    self.lead_more(goal, topic, seat, least);
                }
            }
        }
    }

    /// Whether the broker must lead more of the topic than it does.
    pub(crate) fn needs_leaders(&self, topic: u32, seat: Seat, least: u32) -> bool {
        let must_lead = self.rules.counted[usize::from(seat)] && self.rules.takes_leaders(seat);
        must_lead && self.state.led(topic, seat) < least
    }

    /// Once over the topic: the broker takes leadership over where it follows, and if that is not enough gets leaders
    /// from elsewhere, the smallest first.
    fn lead_more(&mut self, goal: usize, topic: u32, seat: Seat, least: u32) {
        for part in self.state.cluster.topic_parts(topic) {
            if !self.needs_leaders(topic, seat, least) {
                return;
            }
            let follower = self.state.cluster.slots(part).find(|slot| self.state.seat(*slot) == seat);
            if let Some(slot) = follower.filter(|slot| self.rules.may_lead(&self.state, *slot)) {
                let _ = self.attempt(goal, Judges::Before, Action::Lead { part, slot });
            }
        }
        let leaders = self.state.cluster.topic_parts(topic).map(|part| self.state.leader(part));
        let movable = leaders.filter(|slot| self.may_move(*slot, goal));
        let mut leaders: Vec<(f64, Slot)> = movable.map(|slot| (-self.state.cluster.megabytes(slot), slot)).collect();
        by_worth(&mut leaders);
        for (_, slot) in leaders {
            if !self.needs_leaders(topic, seat, least) {
                return;
            }
            let _ = self.place(goal, Judges::Before, slot, std::iter::once(seat));
        }
    }

    /// Lets the first replica in the list that can lead do so.
    pub(super) fn improve_preferred(&mut self, goal: usize) {
        for part in 0..self.state.cluster.partition_count() as Part {
            let (state, aims) = (&self.state, &self.aims);
            let Some(heir) = aims.heir(part).filter(|_| aims.is_passed_over(state, part)) else { continue };
            // Replicas of the partition may have changed places.
            let stands_there = state.cluster.slots(part).find(|slot| state.seat(*slot) == state.home(heir));
            if let Some(slot) = stands_there.filter(|slot| self.rules.may_lead(state, *slot)) {
                let _ = self.attempt(goal, Judges::Before, Action::Lead { part, slot });
            }
        }
    }

    /// Chooses who leads partitions whose leader is offline, before their replicas are moved.
    pub(super) fn replace_offline_leaders(&mut self) {
        for part in 0..self.state.cluster.partition_count() as Part {
            let leader = self.state.leader(part);
            if !self.rules.must_move(&self.state, leader) {
                continue;
            }
            let heirs = self.state.cluster.slots(part).filter(|slot| self.rules.may_lead(&self.state, *slot));
            let strain = |slot: Slot| self.strain(self.state.seat(slot), &self.state.leadership(slot));
            let heir = heirs.map(|slot| (strain(slot), slot)).min_by(|a, b| a.0.total_cmp(&b.0));
            if let Some((_, slot)) = heir {
                self.take(Why::MustLeave, Action::Lead { part, slot });
            }
        }
    }
}

/// At most so many of the list, from all over it.
fn spread(list: &[Slot], most: usize) -> Vec<Slot> {
    let step = list.len().div_ceil(most.max(1)).max(1);
    list.iter().copied().step_by(step).collect()
}
