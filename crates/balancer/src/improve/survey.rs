//! Looking over all replicas of some brokers at once.
//!
//! Replicas are visited in the order they lie in memory, never broker by broker: on a cluster of
//! millions that is the difference between milliseconds and seconds. The answer does not depend on how
//! the work is split.

use super::{Search, keep_best};
use crate::cluster::{Part, Seat, Slot};
use crate::threads;

/// Partitions looked at by one piece of work.
const PIECE: Part = 32_768;

impl Search<'_, '_> {
    /// Per broker in `seats`, its replicas by falling worth, at most `most` of them. `worth` says
    /// `None` for those that are not to be considered.
    pub(super) fn survey(
        &self,
        seats: &[Seat],
        most: usize,
        worth: impl Fn(Slot, Seat) -> Option<f64> + Sync,
    ) -> Vec<Vec<(f64, Slot)>> {
        let mut index = vec![usize::MAX; self.seats().len()];
        for (at, seat) in seats.iter().enumerate() {
            index[usize::from(*seat)] = at;
        }
        let parts = self.state.cluster.partition_count() as Part;
        let pieces: Vec<Part> = (0..parts).step_by(PIECE as usize).collect();
        let found = threads::map(self.threads, &pieces, |first| {
            let mut found: Vec<Vec<(f64, Slot)>> = vec![Vec::new(); seats.len()];
            let slots =
                self.state.cluster.slots(*first).start..self.state.cluster.slots((first + PIECE).min(parts) - 1).end;
            for slot in slots {
                let seat = self.state.seat(slot);
                let at = index[usize::from(seat)];
                if at != usize::MAX
                    && let Some(worth) = worth(slot, seat)
                {
                    found[at].push((worth, slot));
                }
            }
            found
        });
        let mut merged: Vec<Vec<(f64, Slot)>> = vec![Vec::new(); seats.len()];
        for piece in found {
            for (whole, part) in merged.iter_mut().zip(piece) {
                whole.extend(part);
            }
        }
        for candidates in &mut merged {
            keep_best(candidates, most);
        }
        merged
    }
}
