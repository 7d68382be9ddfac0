//! Rearranging the replicas of one broker among its disks.
//!
//! First whatever must lie elsewhere is put where it fills least; then each goal takes the move that
//! gains most for its bytes until none gains, and swaps where no move is left; last, whatever turned
//! out needless goes back. What is done depends on what lies where, never on the number of threads.

use std::collections::BTreeMap;

use super::shelf::{Band, Item, LOOSE, NOISE, NOWHERE, SETTLED, Shelf, Side, Way};
use crate::cluster::Slot;

/// Rounds of improving and looking back; two nearly always do.
const MAX_ROUNDS: usize = 8;

/// What a step is taken for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cause {
    Capacity,
    Distribution,
}

/// What the goals ask of one broker's disks.
#[derive(Debug, Clone, Default)]
pub(super) struct Wishes {
    /// Per disk, if the capacity goal is in force.
    pub(super) capacity: Option<Vec<Band>>,
    /// Per disk, if the distribution goal is in force.
    pub(super) distribution: Option<Vec<Band>>,
    /// Whether the distribution goal moves only what is on its way anyway.
    pub(super) only_loose: bool,
}

/// A replica that changed disks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Moved {
    /// Where it was found; [`NOWHERE`] if it is new on the broker.
    pub(super) home: usize,
    pub(super) now: usize,
    size: f64,
    /// The first goal that moved it, and by how much less that missed since.
    pub(super) cause: Cause,
    pub(super) gain: f64,
    /// Its place in the order of things: that of the step that moved it first. An exchange is one step.
    pub(super) step: usize,
}

/// One broker's disks on their way to a better order.
#[derive(Debug)]
pub(super) struct Arrangement {
    pub(super) shelves: Vec<Shelf>,
    pub(super) moved: BTreeMap<Slot, Moved>,
    /// How often a disk's capacity refused what the distribution goal wanted.
    pub(super) vetoes: u64,
    wishes: Wishes,
    /// What a move costs apart from its bytes, in MB.
    a_move: f64,
    steps: usize,
}

/// A replica in one list of one disk.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Pick {
    item: Item,
    list: usize,
}

impl Pick {
    fn bytes(self) -> f64 {
        if self.list == SETTLED { self.item.size } else { 0.0 }
    }
}

/// Something that could be done: a replica goes from one disk to another, and maybe one comes back.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Candidate {
    worth: f64,
    gain: f64,
    /// How full the disk that gets more would be.
    fullness: f64,
    from: usize,
    to: usize,
    pick: Pick,
    back: Option<Pick>,
}

/// A replica goes to a disk without room for it, whose own goes on to a third.
#[derive(Debug, Clone, Copy)]
struct Passage {
    bytes: f64,
    from: usize,
    pick: Pick,
    via: usize,
    next: Pick,
    to: usize,
}

impl Candidate {
    fn beats(&self, other: &Option<Candidate>) -> bool {
        let Some(other) = other else { return true };
        let slots = |it: &Candidate| (it.pick.item.slot, it.back.map(|pick| pick.item.slot));
        other
            .worth
            .total_cmp(&self.worth)
            .then(self.fullness.total_cmp(&other.fullness))
            .then_with(|| slots(self).cmp(&slots(other)))
            .then(self.to.cmp(&other.to))
            .is_lt()
    }
}

impl Arrangement {
    pub(super) fn new(shelves: Vec<Shelf>, wishes: Wishes, mean_size: f64) -> Arrangement {
        Arrangement { shelves, moved: BTreeMap::new(), vetoes: 0, wishes, a_move: mean_size.max(1e-6), steps: 0 }
    }

    /// Brings every goal as far as it goes. `arrivals` are new on the broker and lie nowhere yet.
    pub(super) fn run(&mut self, mut arrivals: Vec<Item>) {
        arrivals.sort_by(|one, other| other.size.total_cmp(&one.size).then(one.slot.cmp(&other.slot)));
        for item in arrivals {
            if let Some(to) = self.emptiest(item.size, true).or_else(|| self.emptiest(item.size, false)) {
                self.put(Pick { item, list: LOOSE }, NOWHERE, to, Cause::Distribution, 0.0);
            }
        }
        self.evacuate();
        for _ in 0..MAX_ROUNDS {
            let before = self.steps;
            self.improve(Cause::Capacity);
            self.improve(Cause::Distribution);
            self.undo_needless();
            if self.steps == before {
                break;
            }
        }
    }

    /// Empties the disks that are to be taken out, largest replica first. What fits nowhere is left to
    /// the capacity goal, which may make room.
    fn evacuate(&mut self) {
        let Some(bands) = &self.wishes.capacity else { return };
        let closed = |disk: &usize| !self.shelves[*disk].open && bands[*disk].unit > 0.0;
        let mut leaving: Vec<(usize, Item)> = (0..self.shelves.len())
            .filter(closed)
            .flat_map(|disk| self.shelves[disk].lists[SETTLED].iter().map(move |item| (disk, *item)))
            .collect();
        leaving.sort_by(|(_, one), (_, other)| other.size.total_cmp(&one.size).then(one.slot.cmp(&other.slot)));
        for (from, item) in leaving {
            if let Some(to) = self.emptiest(item.size, true) {
                self.put(Pick { item, list: SETTLED }, from, to, Cause::Capacity, 1.0);
            }
        }
    }

    /// The disk that is least full once it holds `size` more.
    fn emptiest(&self, size: f64, within_capacity: bool) -> Option<usize> {
        let fits = |disk: &usize| self.shelves[*disk].open && (!within_capacity || size < self.room(*disk));
        let fullness = |disk: usize| self.shelves[disk].utilisation(size);
        (0..self.shelves.len()).filter(fits).min_by(|a, b| fullness(*a).total_cmp(&fullness(*b)))
    }

    /// Less than this may be added to the disk.
    fn room(&self, disk: usize) -> f64 {
        let limit = self.wishes.capacity.as_ref().map_or(f64::INFINITY, |bands| bands[disk].high);
        limit - self.shelves[disk].level
    }

    fn improve(&mut self, cause: Cause) {
        let bands = match cause {
            Cause::Capacity => self.wishes.capacity.clone(),
            Cause::Distribution => self.wishes.distribution.clone(),
        };
        let Some(bands) = bands else { return };
        let first = if cause == Cause::Distribution && self.wishes.only_loose { LOOSE } else { SETTLED };
        // Each step leaves less to be done, so this ends by itself; the bound is against rounding.
        let bound: usize = 64 + 4 * self.shelves.iter().flat_map(|shelf| &shelf.lists).map(Vec::len).sum::<usize>();
        // The best move from each disk to each other one; a step changes only those of its two disks.
        let disks = self.shelves.len();
        let mut moves: Vec<Option<Candidate>> = vec![None; disks * disks];
        let mut stale = vec![true; disks];
        for _ in 0..bound {
            for (index, best) in moves.iter_mut().enumerate() {
                let (from, to) = (index / disks, index % disks);
                if stale[from] || stale[to] {
                    *best = self.way(&bands, from, to).and_then(|way| self.best_move(&way, from, to, first));
                }
            }
            stale.fill(false);
            let better = |best: Option<Candidate>, next: &Candidate| if next.beats(&best) { Some(*next) } else { best };
            let best = moves.iter().flatten().fold(None, better);
            let Some(best) = best.or_else(|| self.best_swap(&bands, first)) else {
                if cause == Cause::Capacity && self.make_room(&bands) {
                    stale.fill(true);
                    continue;
                }
                return;
            };
            self.put(best.pick, best.from, best.to, cause, best.gain);
            if let Some(back) = best.back {
                self.put_too(back, best.to, best.from, cause, best.gain);
            }
            (stale[best.from], stale[best.to]) = (true, true);
        }
    }

    /// The way from one disk to another, if going it can help.
    fn way(&self, bands: &[Band], from: usize, to: usize) -> Option<Way> {
        let side = |disk: usize| bands[disk].side(self.shelves[disk].level);
        let helps = side(from) == Side::Over || (side(to) == Side::Under && self.shelves[from].open);
        (from != to && self.shelves[to].open && helps).then(|| Way {
            from: (self.shelves[from].level, bands[from]),
            to: (self.shelves[to].level, bands[to]),
            room: self.room(to),
        })
    }

    /// The move from one disk to another that gains most for its bytes. What a size is worth rises up to
    /// one of the bends and falls from there on, so only the sizes next to that one come into question.
    fn best_move(&mut self, way: &Way, from: usize, to: usize, first: usize) -> Option<Candidate> {
        let mut best = None;
        let mut refused = false;
        for list in first..=LOOSE {
            let price = |size: f64| self.a_move + if list == SETTLED { size } else { 0.0 };
            let bends = way.bends().into_iter().filter(|bend| *bend > 0.0 && bend.is_finite());
            let worths = bends.map(|bend| (way.gain(bend) / price(bend), bend));
            // Of bends that are worth the same the smallest: what lies between them is just behind it.
            let best_bend = worths.max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.total_cmp(&a.1)));
            let Some((_, bend)) = best_bend else { continue };
            let items = &self.shelves[from].lists[list];
            let at = items.partition_point(|item| item.size < bend.min(way.room));
            for item in items[at.saturating_sub(1)..items.len().min(at + 1)].iter().copied() {
                let gain = way.gain(item.size);
                if gain <= NOISE {
                    continue;
                }
                if item.size >= way.room {
                    refused = true;
                    continue;
                }
                let worth = gain / price(item.size);
                let fullness = self.shelves[to].utilisation(item.size);
                let candidate = Candidate { worth, gain, fullness, from, to, pick: Pick { item, list }, back: None };
                if candidate.beats(&best) {
                    best = Some(candidate);
                }
            }
        }
        self.vetoes += u64::from(refused);
        best
    }

    /// The swap that gains most for its bytes.
    fn best_swap(&self, bands: &[Band], first: usize) -> Option<Candidate> {
        let mut best = None;
        for from in (0..self.shelves.len()).filter(|from| self.shelves[*from].open) {
            for to in 0..self.shelves.len() {
                if let Some(way) = self.way(bands, from, to) {
                    self.swaps(&way, from, to, first, &mut best);
                }
            }
        }
        best
    }

    /// Pairs whose difference is near one of the sizes that would be best: both lists ascend, so the
    /// partner of the next larger replica is never before the partner of this one.
    fn swaps(&self, way: &Way, from: usize, to: usize, first: usize, best: &mut Option<Candidate>) {
        for (list, back) in (first..=LOOSE).flat_map(|list| (first..=LOOSE).map(move |back| (list, back))) {
            let (here, there) = (&self.shelves[from].lists[list], &self.shelves[to].lists[back]);
            for bend in way.bends().into_iter().chain([way.room]).filter(|bend| *bend > 0.0 && bend.is_finite()) {
                let mut at = 0;
                for item in here.iter().copied() {
                    while at < there.len() && there[at].size < item.size - bend {
                        at += 1;
                    }
                    for other in there[at.saturating_sub(1)..there.len().min(at + 2)].iter().copied() {
                        let size = item.size - other.size;
                        let gain = if size > 0.0 && size < way.room { way.gain(size) } else { 0.0 };
                        if gain <= NOISE {
                            continue;
                        }
                        let (pick, other) = (Pick { item, list }, Pick { item: other, list: back });
                        let worth = gain / (2.0 * self.a_move + pick.bytes() + other.bytes());
                        let fullness = self.shelves[to].utilisation(size);
                        let candidate = Candidate { worth, gain, fullness, from, to, pick, back: Some(other) };
                        if candidate.beats(best) {
                            *best = Some(candidate);
                        }
                    }
                }
            }
        }
    }

    /// Relieves a disk above its capacity although no other has room for any of its replicas: one of
    /// them takes the place of a replica that goes on to a third disk. The fewest bytes win.
    fn make_room(&mut self, bands: &[Band]) -> bool {
        let mut best: Option<Passage> = None;
        let over = |disk: &usize| bands[*disk].side(self.shelves[*disk].level) == Side::Over;
        for from in (0..self.shelves.len()).filter(over) {
            for pick in self.picks(from) {
                for via in (0..self.shelves.len()).filter(|via| *via != from && self.shelves[*via].open) {
                    let enough = pick.item.size - self.room(via);
                    let mut onward = self.picks(via).filter(|next| next.item.size > enough);
                    let third = |next: &Pick| {
                        (0..self.shelves.len()).find(|to| {
                            let other = *to != from && *to != via && self.shelves[*to].open;
                            other && next.item.size < self.room(*to)
                        })
                    };
                    let Some((next, to)) = onward.find_map(|next| Some((next, third(&next)?))) else { continue };
                    let bytes = pick.bytes() + next.bytes();
                    if pick.item.size > 0.0 && best.is_none_or(|best| bytes < best.bytes) {
                        best = Some(Passage { bytes, from, pick, via, next, to });
                    }
                }
            }
        }
        let Some(Passage { from, pick, via, next, to, .. }) = best else { return false };
        let excess = self.shelves[from].level - bands[from].high;
        let gain = pick.item.size.min(excess) * bands[from].unit;
        self.put(next, via, to, Cause::Capacity, gain);
        self.put_too(pick, from, via, Cause::Capacity, gain);
        gain > NOISE
    }

    /// The replicas of a disk that may move, each list ascending.
    fn picks(&self, disk: usize) -> impl Iterator<Item = Pick> + '_ {
        let list = move |list: usize| self.shelves[disk].lists[list].iter().map(move |item| Pick { item: *item, list });
        list(LOOSE).chain(list(SETTLED))
    }

    /// Takes back moves without which no goal would be worse off, the largest first.
    fn undo_needless(&mut self) {
        /// Rounding that is not worth a move.
        const SAME: f64 = 1e-12;
        let mut moved: Vec<(Slot, Moved)> = self.moved.iter().map(|(slot, moved)| (*slot, *moved)).collect();
        moved.sort_by(|(a, one), (b, other)| other.size.total_cmp(&one.size).then(a.cmp(b)));
        for (slot, Moved { home, now, size, cause, .. }) in moved {
            if home == NOWHERE || !self.shelves[home].open || size >= self.room(home) {
                continue;
            }
            let harms = [&self.wishes.capacity, &self.wishes.distribution].into_iter().flatten().any(|bands| {
                let (from, to) = ((self.shelves[now].level, bands[now]), (self.shelves[home].level, bands[home]));
                Way { from, to, room: f64::INFINITY }.gain(size) < -SAME
            });
            if !harms {
                self.put(Pick { item: Item { size, slot }, list: LOOSE }, now, home, cause, 0.0);
            }
        }
    }

    /// Puts the replica onto another disk.
    fn put(&mut self, pick: Pick, from: usize, to: usize, cause: Cause, gain: f64) {
        self.steps += 1;
        self.put_too(pick, from, to, cause, gain);
    }

    /// The same in one step with the one before, in exchange for it.
    fn put_too(&mut self, pick: Pick, from: usize, to: usize, cause: Cause, gain: f64) {
        let item = pick.item;
        if from != NOWHERE {
            self.shelves[from].remove(pick.list, item);
            self.shelves[from].level -= item.size;
        }
        self.shelves[to].level += item.size;
        let step = self.steps;
        let moved =
            self.moved.entry(item.slot).or_insert(Moved { home: from, now: to, size: item.size, cause, gain, step });
        moved.now = to;
        if moved.home == to {
            self.moved.remove(&item.slot);
            self.shelves[to].insert(SETTLED, item);
        } else {
            self.shelves[to].insert(LOOSE, item);
        }
    }
}
