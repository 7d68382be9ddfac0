//! Taking the best first, although what is best changes with everything taken.
//!
//! Worth falls as brokers are relieved and filled, and hardly ever rises. So a candidate's last known worth is taken for a
//! bound, and mostly only the one on top is looked at again before it is taken. That is a heuristic: what rose in the
//! meantime, or lies within the slack, may come later than it should.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::cluster::Slot;

/// What is this close to the best known bound, relatively, is taken without looking at the rest.
const SLACK: f64 = 0.03;

/// Candidates looked at again before the best of them is taken: where everything's worth falls together, looking at all
/// of them each time would cost more than it gains.
const LOOKS: usize = 32;

/// Candidates with the worth they had when last looked at.
#[derive(Debug)]
pub(super) struct Greedy {
    heap: BinaryHeap<Entry>,
    /// Looked at again in search of the next.
    seen: Vec<Entry>,
}

/// A candidate and what it is worth.
#[derive(Debug, PartialEq)]
pub(super) struct Entry(pub(super) f64, pub(super) Slot);

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    /// The worthiest is greatest; of equals the one with the lower slot, so that no history shows.
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0).then(other.1.cmp(&self.1))
    }
}

impl Greedy {
    pub(super) fn new(candidates: impl IntoIterator<Item = (f64, Slot)>) -> Greedy {
        Greedy { heap: candidates.into_iter().map(|(worth, slot)| Entry(worth, slot)).collect(), seen: Vec::new() }
    }

    /// The candidate that is worth most now, as far as a few looks tell. `worth` looks at one anew; `None` drops it.
    pub(super) fn next(&mut self, mut worth: impl FnMut(Slot) -> Option<f64>) -> Option<Slot> {
        self.seen.clear();
        while self.seen.len() < LOOKS {
            let Some(Entry(_, slot)) = self.heap.pop() else { break };
            let Some(now) = worth(slot) else { continue };
            self.seen.push(Entry(now, slot));
            match self.heap.peek() {
                Some(next) if next.0 - SLACK * next.0.abs() > now => {}
                _ => break,
            }
        }
        let best = (0..self.seen.len()).max_by(|one, other| self.seen[*one].cmp(&self.seen[*other]))?;
        let Entry(_, slot) = self.seen.swap_remove(best);
        self.heap.extend(self.seen.drain(..));
        Some(slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_now_comes_first_whatever_was_best_before() {
        let mut greedy = Greedy::new([(9.0, 1), (8.0, 2), (7.0, 3)]);
        let now = |slot| Some(if slot == 1 { 5.0 } else { [0.0, 0.0, 8.0, 7.0][slot as usize] });
        assert_eq!(greedy.next(now), Some(2));
        assert_eq!(greedy.next(now), Some(3));
        assert_eq!(greedy.next(now), Some(1));
        assert_eq!(greedy.next(|_| None), None);
    }
}
