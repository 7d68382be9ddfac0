//! Goals that keep a gauge of every broker between two numbers: by leadership where that helps, by
//! moves off the over-full and onto the under-full, and by swaps where nothing else is allowed.

use super::greedy::Greedy;
use super::{CROWDED_TOPIC, Judges, Search};
use crate::aims::Aim;
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
                // An exchange leaves the number of replicas as it is; whatever else is too much, two that go both ways may
                // mend.
                if self.steps.len() == before && gauge != Gauge::Replicas {
                    self.exchange_for_room(goal, gauge, band);
                }
            }
            if self.steps.len() == before && self.aims.goals[goal] != Goal::LeaderBytesInDistribution {
                self.fill_from_anybody(goal, gauge, band);
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
        /// What is worth offering changes as brokers fill: so a part of what they lack is left open in the first
        /// rounds, to look again. Each look goes over all replicas, so there are not many.
        const LEFT_OPEN: [f64; 2] = [0.5, 0.25];
        let under = self.outside(gauge, band).under;
        let gains = |seat: &&Seat| self.rules.may_gain(**seat);
        let Some(&neediest) = under.iter().find(gains).or(under.first()) else { return };
        let left_open = LEFT_OPEN.get(round).copied().unwrap_or(0.0);
        let need = Need { gauge, band, neediest, givers: self.givers(gauge, neediest), left_open, eases: true };
        self.fill_with(goal, &under, &need);
    }

    /// The last resort for brokers below their band. Those with more than their share may all be in racks that can give
    /// nothing, or what they could give may be of no use to the goals that come later: so whoever has more than the broker
    /// in need is asked for whatever this goal gains by. Racks decide who can give to whom, so one broker of each will do.
    fn fill_from_anybody(&mut self, goal: usize, gauge: Gauge, band: usize) {
        /// Brokers that are looked at: each look goes over all replicas.
        const LOOKS: usize = 8;
        let under = self.outside(gauge, band).under;
        let mut racks: Vec<u16> = Vec::new();
        let before = self.steps.len();
        for &neediest in under.iter().filter(|seat| self.rules.may_gain(**seat)) {
            let rack = self.aims.rack(neediest);
            if racks.len() == LOOKS || self.steps.len() > before {
                return;
            }
            if !racks.contains(&rack) {
                racks.push(rack);
                let givers = self.fuller(gauge, neediest, self.fullness(gauge, neediest));
                let need = Need { gauge, band, neediest, givers, left_open: 0.0, eases: false };
                self.fill_with(goal, &[neediest], &need);
            }
        }
    }

    /// Moves replicas of the givers onto brokers of `under`, as many as they need.
    fn fill_with(&mut self, goal: usize, under: &[Seat], need: &Need) {
        /// Candidates each giving broker offers in a round.
        const OFFERS: usize = 128;
        /// Refusals in a row after which the rest of the offers would fare no better.
        const PATIENCE: usize = 512;
        let Need { gauge, band, neediest, left_open, .. } = *need;
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
        let most = room(self, neediest);
        let offers = self.survey(
            &need.givers,
            (OFFERS, OFFERS),
            |giver| (Some(giver), Some(neediest)),
            |slot, giver| self.worth_pulling(goal, need, most, (slot, giver), neediest),
        );
        let offers: Vec<(f64, Slot)> = offers.into_iter().flatten().collect();
        let enough: Vec<f64> = under.iter().map(|seat| (lack(self, *seat) * left_open).max(0.0)).collect();
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
                    if fits { self.worth_pulling(goal, need, most, (slot, self.state.seat(slot)), seat) } else { None }
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
        let above = self.fuller(gauge, seat, 1.0);
        if above.is_empty() { self.fuller(gauge, seat, self.fullness(gauge, seat)) } else { above }
    }

    /// The brokers other than `seat` that are fuller than that.
    fn fuller(&self, gauge: Gauge, seat: Seat, than: f64) -> Vec<Seat> {
        self.seats().filter(|giver| *giver != seat && self.fullness(gauge, *giver) > than).collect()
    }

    /// What the broker carries, relative to its share.
    fn fullness(&self, gauge: Gauge, seat: Seat) -> f64 {
        self.state.levels(seat)[gauge as usize] / self.aims.target(seat)[gauge as usize].max(f64::MIN_POSITIVE)
    }

    /// How much good the replica's going from `giver` to `seat`, which has so much room, does for its bytes.
    fn worth_pulling(
        &self,
        goal: usize,
        need: &Need,
        room: f64,
        (slot, giver): (Slot, Seat),
        seat: Seat,
    ) -> Option<f64> {
        let weight = self.state.weight(slot);
        let value = weight[need.gauge as usize];
        let may_come = || {
            self.rules.may_receive(&self.state, slot, self.state.leads(slot), seat)
                && (need.eases || !self.is_barred_by_racks(goal, slot, seat))
        };
        if value <= 0.0 || value > room || !self.may_move(slot, goal) || !may_come() {
            return None;
        }
        let worth = self.worth(slot, &weight, giver, Some(seat));
        // Less either way: what does harm does more of it.
        let crowded = if worth > 0.0 { worth / CROWDED_TOPIC } else { worth * CROWDED_TOPIC };
        let worth = if self.is_crowded(slot, seat) { crowded } else { worth };
        (worth > 0.0 || !need.eases).then_some(worth)
    }

    /// Whether the rack has another replica of the partition, if that is what counts: such an offer would be refused, and
    /// take the place of one that would not.
    fn is_barred_by_racks(&self, goal: usize, slot: Slot, seat: Seat) -> bool {
        let (state, rack) = (&self.state, |seat: Seat| self.aims.rack(seat));
        let mut others = state.cluster.slots(state.cluster.part_of(slot)).filter(|other| *other != slot);
        self.aims.aims[..=goal].contains(&Aim::Racks) && others.any(|other| rack(state.seat(other)) == rack(seat))
    }
}

/// What brokers below their band are to be filled with.
struct Need {
    gauge: Gauge,
    band: usize,
    /// Whom offers are made to.
    neediest: Seat,
    givers: Vec<Seat>,
    /// The part of what brokers lack that is left open.
    left_open: f64,
    /// Whether only what eases the two brokers, by all goals, is taken.
    eases: bool,
}
