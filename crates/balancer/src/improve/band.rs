//! Goals that keep a gauge of every broker between two numbers: by leadership where that helps, by
//! moves off the over-full and onto the under-full, and by swaps where nothing else is allowed.

use super::greedy::Greedy;
use super::{CROWDED_TOPIC, Judges, Search};
use crate::cluster::{Seat, Slot};
use crate::gauges::Gauge;
use crate::goal::Goal;

/// Rounds of one goal in one pass.
const MAX_ROUNDS: usize = 24;
/// Actions in a round that are not worth another round by themselves.
const FEW: usize = 4;
/// Refusals in a row after which a broker has nothing more to give in this round.
const PATIENCE: usize = 64;
/// Replicas of one broker that are considered in a round.
const CONSIDERED: usize = 1_024;

/// The brokers outside their band, the worst first.
pub(super) struct Outside {
    pub(super) over: Vec<Seat>,
    pub(super) under: Vec<Seat>,
}

impl Outside {
    /// Each of them, and whether it is above.
    pub(super) fn each(&self) -> impl Iterator<Item = (Seat, bool)> + use<> {
        let over: Vec<(Seat, bool)> = self.over.iter().map(|seat| (*seat, true)).collect();
        over.into_iter().chain(self.under.iter().map(|seat| (*seat, false)).collect::<Vec<_>>())
    }
}

impl Search<'_, '_> {
    pub(super) fn improve_band(&mut self, goal: usize, gauge: Gauge, band: usize) {
        for round in 0..MAX_ROUNDS {
            let outside = self.outside(gauge, band);
            if outside.over.is_empty() && outside.under.is_empty() {
                return;
            }
            let before = self.steps.len();
            if gauge.follows_leadership() {
                self.shift_leadership(goal, gauge, band, &outside);
                // Where handing over hardly helps any more, handing over in both directions may: still without a byte.
                if self.steps.len() < before + FEW {
                    self.exchange_leaders(goal, gauge, band);
                }
                if self.steps.len() >= before + FEW {
                    continue;
                }
            }
            if self.aims.goals[goal] != Goal::LeaderBytesInDistribution {
                self.shed(goal, gauge, band);
                self.fill(goal, gauge, band, round);
            }
            // Where single actions hardly help any more, exchanges may.
            if self.steps.len() < before + FEW {
                self.exchange(goal, gauge, band);
            }
            if self.steps.len() == before && self.is_hard(goal) {
                self.asking_all(|search| search.shed(goal, gauge, band));
            }
            if self.steps.len() == before {
                return;
            }
        }
    }

    pub(super) fn outside(&self, gauge: Gauge, band: usize) -> Outside {
        let mut over = Vec::new();
        let mut under = Vec::new();
        for seat in self.seats() {
            let (level, limit) = self.aims.standing(band, gauge, &self.state, seat);
            let miss = limit.miss(level);
            if miss > 0.0 {
                if level > limit.high { over.push((miss, seat)) } else { under.push((miss, seat)) }
            }
        }
        let worst_first = |mut list: Vec<(f64, Seat)>| {
            list.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            list.into_iter().map(|(_, seat)| seat).collect()
        };
        Outside { over: worst_first(over), under: worst_first(under) }
    }

    /// Moves replicas off brokers above their band.
    fn shed(&mut self, goal: usize, gauge: Gauge, band: usize) {
        let over = self.outside(gauge, band).over;
        if over.is_empty() {
            return;
        }
        let (considered, patience) = if self.asks_all { (usize::MAX, usize::MAX) } else { (CONSIDERED, PATIENCE) };
        let ranked = self.survey(
            &over,
            (considered, considered),
            |seat| (Some(seat), None),
            |slot, seat| self.worth_shedding(goal, gauge, slot, seat),
        );
        for (seat, candidates) in over.into_iter().zip(ranked) {
            // First what harms nobody and does not overshoot; then whatever is needed.
            for (judges, margin) in [(Judges::All, 1.05), (Judges::Before, 1.05), (Judges::Before, f64::INFINITY)] {
                let mut greedy = Greedy::new(candidates.iter().copied());
                let mut refused = 0;
                while refused < patience {
                    let (level, limit) = self.aims.standing(band, gauge, &self.state, seat);
                    let excess = level - limit.high;
                    if excess <= 0.0 {
                        break;
                    }
                    let next = greedy.next(|slot| {
                        let fits =
                            self.state.seat(slot) == seat && self.state.weight(slot)[gauge as usize] <= excess * margin;
                        if fits { self.worth_shedding(goal, gauge, slot, seat) } else { None }
                    });
                    let Some(slot) = next else { break };
                    refused = if self.place(goal, judges, slot, self.seats()).is_ok() { 0 } else { refused + 1 };
                }
            }
        }
    }

    /// How much the replica's going relieves the broker, for its bytes.
    fn worth_shedding(&self, goal: usize, gauge: Gauge, slot: Slot, seat: Seat) -> Option<f64> {
        let weight = self.state.weight(slot);
        let value = weight[gauge as usize];
        if value <= 0.0 || !self.may_move(slot, goal) {
            return None;
        }
        Some(self.worth(slot, &weight, seat, None))
    }

    /// Moves replicas onto brokers below their band.
    fn fill(&mut self, goal: usize, gauge: Gauge, band: usize, round: usize) {
        /// Candidates each giving broker offers in a round.
        const OFFERS: usize = 128;
        /// Refusals in a row after which the rest of the offers would fare no better.
        const PATIENCE: usize = 512;
        /// What is worth offering changes as brokers fill: so a part of what they lack is left open in the first
        /// rounds, to look again. Each look goes over all replicas, so there are not many.
        const LEFT_OPEN: [f64; 2] = [0.5, 0.25];
        let under = self.outside(gauge, band).under;
        let gains = |seat: &&Seat| self.rules.may_gain(**seat);
        let Some(&neediest) = under.iter().find(gains).or(under.first()) else { return };
        let standing = |search: &Self, seat: Seat| {
            let (level, limit) = search.aims.standing(band, gauge, &search.state, seat);
            (level, *limit)
        };
        let lack = |search: &Self, seat: Seat| {
            let (level, limit) = standing(search, seat);
            limit.low - level
        };
        let room = |search: &Self, seat: Seat| {
            let (level, limit) = standing(search, seat);
            limit.high - level
        };
        let givers = self.givers(gauge, neediest);
        let most = room(self, neediest);
        let offers = self.survey(
            &givers,
            (OFFERS, OFFERS),
            |giver| (Some(giver), Some(neediest)),
            |slot, giver| self.worth_pulling(goal, (gauge, most), slot, giver, neediest),
        );
        let offers: Vec<(f64, Slot)> = offers.into_iter().flatten().collect();
        let open = LEFT_OPEN.get(round).copied().unwrap_or(0.0);
        let enough: Vec<f64> = under.iter().map(|seat| (lack(self, *seat) * open).max(0.0)).collect();
        let before = self.steps.len();
        for (judges, crowds) in [(Judges::All, false), (Judges::Before, false), (Judges::Before, true)] {
            let mut greedy = Greedy::new(offers.iter().copied());
            let mut refused = 0;
            while refused < PATIENCE {
                let open = |(seat, enough): (&Seat, &f64)| (lack(self, *seat) > *enough).then_some(*seat);
                let open: Vec<Seat> = under.iter().zip(&enough).filter_map(open).collect();
                let Some(&seat) = open.first() else { break };
                let most = room(self, seat);
                let next = greedy.next(|slot| {
                    let fits = crowds || !self.is_crowded(slot, seat);
                    if fits { self.worth_pulling(goal, (gauge, most), slot, self.state.seat(slot), seat) } else { None }
                });
                let Some(slot) = next else { break };
                let open = open.into_iter().filter(|seat| crowds || !self.is_crowded(slot, *seat));
                let open: Vec<Seat> = open.collect();
                refused = if self.place(goal, judges, slot, open.into_iter()).is_ok() { 0 } else { refused + 1 };
            }
            // Whatever crowds a topic is left for when nothing else helps.
            if !crowds && judges == Judges::Before && self.steps.len() > before {
                break;
            }
        }
    }

    /// The brokers that could give something to `seat`: those with more than their share first of all.
    fn givers(&self, gauge: Gauge, seat: Seat) -> Vec<Seat> {
        let fullness = |seat: Seat| {
            self.state.levels(seat)[gauge as usize] / self.aims.target(seat)[gauge as usize].max(f64::MIN_POSITIVE)
        };
        let fuller = |than: f64| self.seats().filter(|giver| *giver != seat && fullness(*giver) > than).collect();
        let above: Vec<Seat> = fuller(1.0);
        if above.is_empty() { fuller(fullness(seat)) } else { above }
    }

    /// How much good the replica's going from `giver` to `seat` does, for its bytes.
    fn worth_pulling(
        &self,
        goal: usize,
        (gauge, room): (Gauge, f64),
        slot: Slot,
        giver: Seat,
        seat: Seat,
    ) -> Option<f64> {
        let weight = self.state.weight(slot);
        let value = weight[gauge as usize];
        let may_come = || self.rules.may_receive(&self.state, slot, self.state.leads(slot), seat);
        if value <= 0.0 || value > room || !self.may_move(slot, goal) || !may_come() {
            return None;
        }
        let worth = self.worth(slot, &weight, giver, Some(seat));
        let worth = if self.is_crowded(slot, seat) { worth / CROWDED_TOPIC } else { worth };
        (worth > 0.0).then_some(worth)
    }
}
