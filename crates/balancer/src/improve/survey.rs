//! Looking over all replicas of some brokers at once.
//!
//! Replicas are visited in the order they lie in memory, never broker by broker: on a cluster of
//! millions that is the difference between milliseconds and seconds. Most of them are not worth a second look, and that
//! is seen from a bound that is cheaper than the worth itself. The answer does not depend on how the work is split.

use super::strain::Slope;
use super::{Search, best_first, keep_best};
use crate::cluster::{Part, Seat, Slot};
use crate::threads;

/// Partitions that are worth a thread of their own.
const PIECE: Part = 2_048;

impl Search<'_, '_> {
    /// Per broker in `seats`, its replicas by falling worth, at most `most` of them, of which there may be fewer for the
    /// brokers after the first. `worth` says `None` for those that are not to be considered; it is how much more at ease the
    /// brokers are that `ends` names, once the replica has gone from one to the other, for its price, or less.
    pub(super) fn survey(
        &self,
        seats: &[Seat],
        (most, of_others): (usize, usize),
        ends: impl Fn(Seat) -> (Option<Seat>, Option<Seat>),
        worth: impl Fn(Slot, Seat) -> Option<f64> + Sync,
    ) -> Vec<Vec<(f64, Slot)>> {
        let mut index = vec![usize::MAX; self.seats().len()];
        for (at, seat) in seats.iter().enumerate() {
            index[usize::from(*seat)] = at;
        }
        let slopes: Vec<Slope> = seats.iter().map(|seat| self.slope(ends(*seat))).collect();
        let most_of = |at: usize| if at == 0 { most } else { of_others };
        let cluster = self.state.cluster;
        let pieces = threads::split(self.threads, cluster.partition_count() as Part, PIECE);
        let found = threads::map(self.threads, &pieces, |parts| {
            let mut found: Vec<Best> = (0..seats.len()).map(|at| Best::of(most_of(at))).collect();
            for part in parts.clone() {
                let (leader, lead) = (self.state.leader(part), cluster.lead_load(part));
                for slot in cluster.slots(part) {
                    let seat = self.state.seat(slot);
                    let at = index[usize::from(seat)];
                    if at == usize::MAX {
                        continue;
                    }
                    let best = &mut found[at];
                    let ease = slopes[at].ease_at_most(cluster.slot_load(slot), lead, slot == leader);
                    // Strictly less than so many others: it is none of the best.
                    let bound = ease / self.price_beside(slot, leader);
                    if bound < best.least {
                        continue;
                    }
                    if let Some(worth) = worth(slot, seat) {
                        debug_assert!(worth <= bound, "{worth} is more than {bound}");
                        best.offer(worth, slot);
                    }
                }
            }
            found
        });
        let mut merged: Vec<Vec<(f64, Slot)>> = vec![Vec::new(); seats.len()];
        for piece in found {
            for (whole, part) in merged.iter_mut().zip(piece) {
                whole.extend(part.known);
            }
        }
        for (at, candidates) in merged.iter_mut().enumerate() {
            keep_best(candidates, most_of(at));
        }
        merged
    }
}

/// The worthiest of those offered so far, and perhaps as many again.
struct Best {
    most: usize,
    known: Vec<(f64, Slot)>,
    /// So many are worth at least this.
    least: f64,
}

impl Best {
    fn of(most: usize) -> Best {
        Best { most, known: Vec::new(), least: f64::NEG_INFINITY }
    }

    fn offer(&mut self, worth: f64, slot: Slot) {
        self.known.push((worth, slot));
        // Looked through only once it has doubled: that is a few steps for each one offered.
        if self.known.len() >= self.most.saturating_mul(2) && self.most > 0 {
            let (_, last, _) = self.known.select_nth_unstable_by(self.most - 1, best_first);
            self.least = last.0;
            self.known.truncate(self.most);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Dice;

    #[test]
    fn the_best_of_the_best_of_each_part_are_the_best_of_all() {
        let mut dice = Dice(5);
        for most in [1, 3, 16] {
            let all: Vec<(f64, Slot)> = (0..200).map(|slot| (f64::from(dice.below(30)), slot)).collect();
            let mut expected = all.clone();
            keep_best(&mut expected, most);
            let mut merged = Vec::new();
            for part in all.chunks(70) {
                let mut best = Best::of(most);
                for (worth, slot) in part.iter().filter(|(worth, _)| *worth > 2.0) {
                    if *worth >= best.least {
                        best.offer(*worth, *slot);
                    }
                }
                merged.extend(best.known);
            }
            keep_best(&mut merged, most);
            assert_eq!(merged, expected);
        }
    }
}
