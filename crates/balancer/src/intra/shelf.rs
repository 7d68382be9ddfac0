//! The disks of one broker while its replicas are being rearranged, and what a goal makes of them.
//!
//! Everything a goal inside a broker asks is a band per disk, so what moving `size` MB from one disk
//! to another gains is concave in `size`: it rises to the point where one of the two disks is served,
//! and falls once one is overdone. That is why the best replica to move is always a neighbour of one
//! of four sizes, and is found by a search in a sorted list instead of by trying all.

use crate::cluster::Slot;

/// What stands for "on none of the broker's disks": a replica that is yet to be put somewhere.
pub(super) const NOWHERE: usize = usize::MAX;

/// Misses smaller than this are rounding, not reality. They are relative to a disk's fair share.
pub(super) const NOISE: f64 = 1e-9;

/// One disk.
#[derive(Debug, Clone, Default)]
pub(super) struct Shelf {
    /// What it holds now, in MB; replicas that may not move included.
    pub(super) level: f64,
    /// In MB; 0 if the disk is to be taken out.
    pub(super) capacity: f64,
    /// Whether it takes replicas.
    pub(super) open: bool,
    /// Replicas that may move: first those that lie where they were found, then those that are on
    /// their way anyway, so that putting them here costs no more than anywhere else. Each ascends.
    pub(super) lists: [Vec<Item>; 2],
}

/// A replica that may move, by size and then by slot.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Item {
    pub(super) size: f64,
    pub(super) slot: Slot,
}

impl Item {
    pub(super) fn order(&self, other: &Item) -> std::cmp::Ordering {
        self.size.total_cmp(&other.size).then(self.slot.cmp(&other.slot))
    }
}

/// Index into [`Shelf::lists`]: where it was found.
pub(super) const SETTLED: usize = 0;
/// Index into [`Shelf::lists`]: on its way.
pub(super) const LOOSE: usize = 1;

impl Shelf {
    /// How full it is; a disk that is to be taken out is over-full with anything.
    pub(super) fn utilisation(&self, more: f64) -> f64 {
        (self.level + more) / self.capacity
    }

    pub(super) fn insert(&mut self, list: usize, item: Item) {
        let list = &mut self.lists[list];
        let at = list.partition_point(|other| other.order(&item).is_lt());
        list.insert(at, item);
    }

    pub(super) fn remove(&mut self, list: usize, item: Item) {
        let list = &mut self.lists[list];
        if let Ok(at) = list.binary_search_by(|other| other.order(&item)) {
            list.remove(at);
        }
    }
}

/// Between what a disk's level should stay.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Band {
    pub(super) low: f64,
    pub(super) high: f64,
    /// Turns MB into a share of what the disk ought to hold.
    pub(super) unit: f64,
}

impl Band {
    /// No wish at all.
    pub(super) const FREE: Band = Band { low: 0.0, high: f64::INFINITY, unit: 0.0 };

    pub(super) fn new(low: f64, high: f64, share: f64) -> Band {
        Band { low, high, unit: if share > 0.0 { 1.0 / share } else { 1.0 } }
    }

    pub(super) fn miss(&self, level: f64) -> f64 {
        let miss = self.distance(level);
        if miss > NOISE { miss } else { 0.0 }
    }

    fn distance(&self, level: f64) -> f64 {
        if self.unit == 0.0 {
            return 0.0;
        }
        ((level - self.high).max(0.0) + (self.low - level).max(0.0)) * self.unit
    }

    /// Whether the level is over, under, or neither.
    pub(super) fn side(&self, level: f64) -> Side {
        if self.miss(level) == 0.0 {
            Side::Inside
        } else if level > self.high {
            Side::Over
        } else {
            Side::Under
        }
    }
}

/// On which side of its band a disk is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Over,
    Inside,
    Under,
}

/// A way from one disk to another, under one goal.
#[derive(Debug, Clone, Copy)]
pub(super) struct Way {
    pub(super) from: (f64, Band),
    pub(super) to: (f64, Band),
    /// Less than this may go over it, by the goals of higher priority.
    pub(super) room: f64,
}

impl Way {
    /// By how much less the goal misses once `size` MB went this way.
    pub(super) fn gain(&self, size: f64) -> f64 {
        let ((here, from), (there, to)) = (self.from, self.to);
        from.distance(here) - from.distance(here - size) + to.distance(there) - to.distance(there + size)
    }

    /// The sizes at which the gain bends; the best of all sizes is one of them.
    pub(super) fn bends(&self) -> [f64; 4] {
        let ((here, from), (there, to)) = (self.from, self.to);
        [here - from.high, here - from.low, to.low - there, to.high - there]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gain_is_largest_at_a_bend() {
        // 40 over 100, and 30 under 80; both bands are 20 wide and both disks ought to hold 100.
        let way = Way {
            from: (140.0, Band::new(80.0, 100.0, 100.0)),
            to: (50.0, Band::new(80.0, 100.0, 100.0)),
            room: f64::INFINITY,
        };
        assert_eq!(way.bends(), [40.0, 60.0, 30.0, 50.0]);
        assert!((way.gain(30.0) - 0.6).abs() < 1e-12); // 0.3 on either disk.
        assert!((way.gain(40.0) - 0.7).abs() < 1e-12); // 0.4 and 0.3: both are inside.
        assert!((way.gain(55.0) - 0.65).abs() < 1e-12); // The second is 5 too full.
        assert!((way.gain(70.0) - 0.4).abs() < 1e-12); // 10 too few here, 20 too many there.
        let best = (0..200).map(|size| way.gain(f64::from(size))).fold(0.0, f64::max);
        let at_bends = way.bends().into_iter().map(|size| way.gain(size)).fold(0.0, f64::max);
        assert!((best - at_bends).abs() < 1e-12);
    }

    #[test]
    fn a_list_keeps_its_order() {
        let mut shelf = Shelf::default();
        let items = [(3.0, 7), (1.0, 9), (3.0, 2), (2.0, 4)].map(|(size, slot)| Item { size, slot });
        items.into_iter().for_each(|item| shelf.insert(SETTLED, item));
        let slots = |shelf: &Shelf| shelf.lists[SETTLED].iter().map(|item| item.slot).collect::<Vec<_>>();
        assert_eq!(slots(&shelf), [9, 4, 2, 7]);
        shelf.remove(SETTLED, items[2]);
        assert_eq!(slots(&shelf), [9, 4, 7]);
    }
}
