//! Replicas of one partition that crowd a rack: one of them goes where the partition has none.

use super::{Judges, Search};
use crate::aims::Aim;
use crate::cluster::{Part, Seat, Slot};
use crate::threads;

impl Search<'_, '_> {
    pub(super) fn improve_racks(&mut self, goal: usize) {
        /// Partitions that are worth a thread of their own.
        const PIECE: Part = 2_048;
        let parts = self.state.cluster.partition_count() as Part;
        let pieces = threads::split(self.threads, parts, PIECE);
        let crowded = threads::map(self.threads, &pieces, |parts| {
            parts.clone().filter(|part| self.crowds_a_rack(goal, *part)).collect::<Vec<Part>>()
        });
        for part in crowded.into_iter().flatten() {
            while self.crowds_a_rack(goal, part) && self.spread(goal, part) {}
        }
    }

    /// Whether one of the partition's replicas should be in another rack. Racks whose brokers get nothing are no place to
    /// go to, but no reason to leave either: so the strict goal asks for rack mates, however few racks take replicas.
    fn crowds_a_rack(&self, goal: usize, part: Part) -> bool {
        match self.aims.aims[goal] {
            Aim::EvenRacks => self.aims.beyond_rack_quotas(&self.state, part) > 0,
            _ => self.state.cluster.slots(part).any(|slot| self.rack_mates(slot) > 0),
        }
    }

    /// Other replicas of the partition in the same rack.
    fn rack_mates(&self, slot: Slot) -> usize {
        let rack = self.aims.rack(self.state.seat(slot));
        let slots = self.state.cluster.slots(self.state.cluster.part_of(slot));
        slots.into_iter().filter(|other| *other != slot && self.aims.rack(self.state.seat(*other)) == rack).count()
    }

    /// Moves one of the crowded replicas: the one that costs least and eases most.
    fn spread(&mut self, goal: usize, part: Part) -> bool {
        // The more replicas a broker holds, the less one of them strains it.
        let held = self.state.cluster.replica_count() as f64 / self.seats().len() as f64;
        let bytes_against_strain = BYTES_AGAINST_STRAIN / held;
        let mut candidates: Vec<(f64, Slot)> = Vec::new();
        for slot in self.state.cluster.slots(part) {
            if self.rack_mates(slot) == 0 || !self.may_move(slot, goal) {
                continue;
            }
            // Leadership can go by itself and costs no byte: it is no reason to move the replica that has it.
            let weight = self.state.following(slot);
            let seat = self.state.seat(slot);
            let cost = self.price(slot) / self.a_move * bytes_against_strain;
            candidates.push((self.relief(seat, &weight) - cost, slot));
        }
        super::by_worth(&mut candidates);
        candidates.into_iter().any(|(_, slot)| {
            self.place(goal, Judges::Before, slot, self.some_seats(slot)).is_ok()
                || self.asking_all(|search| search.place(goal, Judges::Before, slot, search.seats())).is_ok()
        })
    }

    /// At most [`ASKED`] brokers, others for each replica, so that all of them get their part.
    fn some_seats(&self, slot: Slot) -> impl Iterator<Item = Seat> + use<> {
        let all = self.seats().len();
        // Knuth's multiplicative hash: neighbouring partitions begin far apart.
        let first = (slot.wrapping_mul(2_654_435_761) >> 8) as usize % all.max(1);
        (0..all.min(ASKED)).map(move |step| ((first + step) % all) as Seat)
    }
}

/// Brokers considered for each replica. Repairing the racks of a large cluster moves a tenth of all replicas, and the
/// best of so many is as good a place as the best of all.
const ASKED: usize = 64;

/// How much relief the bytes of a replica of mean size are worth when one of two replicas must go, on brokers that hold
/// but one. Where replicas of a partition are of one size, relief alone decides.
const BYTES_AGAINST_STRAIN: f64 = 50.0;
