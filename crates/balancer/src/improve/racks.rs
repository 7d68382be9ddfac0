//! Replicas of one partition that crowd a rack: one of them goes where the partition has none.

use super::{Judges, Refusal, Search};
use crate::cluster::{Part, Slot};
use crate::threads;

impl Search<'_, '_> {
    pub(super) fn improve_racks(&mut self, goal: usize) {
        /// Partitions looked at by one piece of work.
        const PIECE: Part = 16_384;
        let parts = self.state.cluster.partition_count() as Part;
        let pieces: Vec<Part> = (0..parts).step_by(PIECE as usize).collect();
        let crowded = threads::map(self.threads, &pieces, |first| {
            (*first..(first + PIECE).min(parts)).filter(|part| self.crowds_a_rack(*part)).collect::<Vec<Part>>()
        });
        for part in crowded.into_iter().flatten() {
            while self.crowds_a_rack(part) && self.spread(goal, part) {}
        }
    }

    fn crowds_a_rack(&self, part: Part) -> bool {
        let slots = self.state.cluster.slots(part);
        let factor = slots.len();
        slots.clone().any(|slot| self.rack_mates(slot) > usize::from(factor > self.aims.live_racks()) * factor)
            || (factor > self.aims.live_racks() && self.is_uneven(part))
    }

    /// Other replicas of the partition in the same rack.
    fn rack_mates(&self, slot: Slot) -> usize {
        let rack = self.aims.rack(self.state.seat(slot));
        let slots = self.state.cluster.slots(self.state.cluster.part_of(slot));
        slots.into_iter().filter(|other| *other != slot && self.aims.rack(self.state.seat(*other)) == rack).count()
    }

    /// Whether some rack holds at least two more replicas of the partition than another live one.
    pub(crate) fn is_uneven(&self, part: Part) -> bool {
        let mut counts = vec![0usize; self.state.cluster.racks().len()];
        for slot in self.state.cluster.slots(part) {
            counts[usize::from(self.aims.rack(self.state.seat(slot)))] += 1;
        }
        let live = self.seats().filter(|seat| self.rules.counted[usize::from(*seat)]).map(|seat| self.aims.rack(seat));
        let least = live.map(|rack| counts[usize::from(rack)]).min().unwrap_or(0);
        counts.iter().any(|count| *count > least + 1)
    }

    /// Moves one of the crowded replicas: the one that costs least and eases most.
    fn spread(&mut self, goal: usize, part: Part) -> bool {
        let mut candidates: Vec<(f64, Slot)> = Vec::new();
        for slot in self.state.cluster.slots(part) {
            if self.rack_mates(slot) == 0 || !self.may_move(slot, goal) {
                continue;
            }
            let weight = self.state.weight(slot);
            let seat = self.state.seat(slot);
            let cost = self.price(slot) / self.a_move * BYTES_AGAINST_STRAIN;
            candidates.push((self.relief(seat, &weight) - cost, slot));
        }
        super::by_worth(&mut candidates);
        candidates.into_iter().any(|(_, slot)| match self.place(goal, Judges::Before, slot, self.seats()) {
            Ok(()) => true,
            Err(Refusal::NoGain | Refusal::Veto(_)) => false,
        })
    }
}

/// How much relief fifty times fewer bytes than usual are worth when one of two replicas must go.
const BYTES_AGAINST_STRAIN: f64 = 1e-3;
