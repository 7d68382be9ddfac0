//! Packing a few brokers anew: which of their replicas lies where, so that the first of them has no more than it may.
//!
//! A search that goes step by step ends where no move and no exchange helps by itself. Whether a capacity can be kept at
//! all is a matter of packing, though: three replicas may have to change places at once. So before a hard goal is called
//! infeasible, placements of the replicas of a few brokers are gone through, one after the other, until one of them will
//! do. That is exact for whatever is small, and bounded in steps, which are counted, for whatever is not.
//!
//! Nothing here knows a cluster: there are bins with room, and items that may lie in some of them.

use crate::cluster::Part;
use crate::gauges::Levels;

/// So many bins at most: which of them may take an item fits into a byte.
pub(crate) const MOST_BINS: usize = 8;

/// A broker, apart from the items.
#[derive(Debug, Clone)]
pub(crate) struct Bin {
    /// What it carries besides the items.
    pub(crate) base: Levels,
    /// The most that it may carry with them.
    pub(crate) most: Levels,
    /// Items of one partition do not meet in a rack, if racks count.
    pub(crate) rack: u16,
}

/// A replica that may lie elsewhere.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    pub(crate) weight: Levels,
    pub(crate) part: Part,
    /// The bin that it lies in.
    pub(crate) here: usize,
    /// The bins that may take it, a bit for each; other items aside.
    pub(crate) may: u8,
}

/// What is to be packed anew. The first bin is the one that carries too much.
#[derive(Debug)]
pub(crate) struct Packing {
    /// What counts of levels.
    pub(crate) gauges: Vec<usize>,
    /// What the first bin carries too much of.
    pub(crate) focus: usize,
    /// The most of it that is not too much.
    pub(crate) target: f64,
    pub(crate) bins: Vec<Bin>,
    pub(crate) items: Vec<Item>,
    /// Whether items of one partition must be in different racks, and not only in different bins.
    pub(crate) racks_apart: bool,
}

/// Which bin is tried first for an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Prefer {
    /// The one that it lies in: the less is moved the better.
    Here,
    /// The one that it leaves least room in: what is full to the brim leaves more room elsewhere.
    Tight,
}

/// The bin of an item that has none yet.
const NONE: u8 = u8::MAX;

impl Packing {
    /// A bin for each item, such that none has more than it may and the first carries less of what it has too much of: the
    /// first such arrangement that reaches the target, else the best of those seen. Takes from `steps` one for each bin that
    /// is tried for an item, and ends when there are none left.
    pub(crate) fn solve(&self, prefer: Prefer, steps: &mut u32) -> Option<Vec<usize>> {
        let focus = self.focus;
        let mut order: Vec<usize> = (0..self.items.len()).collect();
        // Whatever is large is placed first: the small then fill the gaps.
        let bulk = |item: &Item| self.gauges.iter().map(|gauge| self.share(item, *gauge)).fold(0.0, f64::max);
        let bulks: Vec<f64> = self.items.iter().map(bulk).collect();
        order.sort_by(|one, other| bulks[*other].total_cmp(&bulks[*one]).then(one.cmp(other)));
        let now = self.items.iter().filter(|item| item.here == 0).map(|item| item.weight[focus]).sum::<f64>();
        let mut least = vec![f64::INFINITY; order.len() + 1];
        for depth in (0..order.len()).rev() {
            least[depth] = least[depth + 1].min(self.items[order[depth]].weight[focus]);
        }
        let room: f64 = self.bins.iter().map(|bin| bin.most[focus] - bin.base[focus]).sum();
        let mut attempt = Attempt {
            packing: self,
            prefer,
            mates: self.mates(),
            levels: self.bins.iter().map(|bin| bin.base).collect(),
            at: vec![NONE; self.items.len()],
            spare: room - self.items.iter().map(|item| item.weight[focus]).sum::<f64>(),
            best: self.bins[0].base[focus] + now,
            found: None,
            order,
            least,
            steps: *steps,
        };
        attempt.place(0);
        *steps = attempt.steps;
        let found = attempt.found?;
        Some(found.into_iter().map(usize::from).collect())
    }

    /// How much of the room of the largest bin the item takes.
    fn share(&self, item: &Item, gauge: usize) -> f64 {
        let most = self.bins.iter().map(|bin| bin.most[gauge]).fold(0.0, f64::max);
        if most > 0.0 && most.is_finite() { item.weight[gauge] / most } else { 0.0 }
    }

    /// For each item, the others of its partition.
    fn mates(&self) -> Vec<Vec<usize>> {
        let of = |(at, item): (usize, &Item)| {
            let same = |(other, mate): &(usize, &Item)| *other != at && mate.part == item.part;
            self.items.iter().enumerate().filter(same).map(|(other, _)| other).collect()
        };
        self.items.iter().enumerate().map(of).collect()
    }
}

/// An arrangement in the making.
struct Attempt<'p> {
    packing: &'p Packing,
    prefer: Prefer,
    mates: Vec<Vec<usize>>,
    /// The items in the order in which they are placed.
    order: Vec<usize>,
    /// The least of what is in focus that an item from there on has.
    least: Vec<f64>,
    levels: Vec<Levels>,
    at: Vec<u8>,
    /// Room that may be wasted.
    spare: f64,
    /// What the first bin carries in the best arrangement so far.
    best: f64,
    found: Option<Vec<u8>>,
    steps: u32,
}

impl Attempt<'_> {
    /// Places the items from there on; says whether the end is reached: a good arrangement, or that of the steps.
    fn place(&mut self, depth: usize) -> bool {
        let packing = self.packing;
        let Some(&item) = self.order.get(depth) else {
            self.best = self.levels[0][packing.focus];
            self.found = Some(self.at.clone());
            return self.best <= packing.target;
        };
        let (bins, count) = self.choices(item);
        for &bin in &bins[..count] {
            if self.steps == 0 {
                return true;
            }
            self.steps -= 1;
            let before = self.levels[bin];
            if !self.takes(bin, item) {
                continue;
            }
            self.at[item] = bin as u8;
            let ends = !self.is_vain(depth + 1) && self.place(depth + 1);
            // As it was, and not what subtraction would make of it.
            self.levels[bin] = before;
            self.at[item] = NONE;
            if ends {
                return true;
            }
        }
        false
    }

    /// The bins to try for the item, the best first.
    fn choices(&self, item: usize) -> ([usize; MOST_BINS], usize) {
        let (packing, focus) = (self.packing, self.packing.focus);
        let it = &packing.items[item];
        let mut bins = [0; MOST_BINS];
        let mut count = 0;
        for bin in (0..packing.bins.len().min(MOST_BINS)).filter(|bin| it.may & (1 << bin) != 0) {
            bins[count] = bin;
            count += 1;
        }
        let room = |bin: usize| packing.bins[bin].most[focus] - self.levels[bin][focus];
        bins[..count].sort_by(|one, other| match self.prefer {
            Prefer::Here => (*other == it.here).cmp(&(*one == it.here)).then(room(*other).total_cmp(&room(*one))),
            Prefer::Tight => room(*one).total_cmp(&room(*other)),
        });
        (bins, count)
    }

    /// Puts the item into the bin, if there is room and none of its mates is in the way.
    fn takes(&mut self, bin: usize, item: usize) -> bool {
        let packing = self.packing;
        let (it, into) = (&packing.items[item], &packing.bins[bin]);
        let meets = |mate: &usize| match self.at[*mate] {
            NONE => false,
            at => {
                let at = usize::from(at);
                at == bin || (packing.racks_apart && packing.bins[at].rack == into.rack)
            }
        };
        let fits = |gauge: &usize| self.levels[bin][*gauge] + it.weight[*gauge] <= into.most[*gauge];
        if self.mates[item].iter().any(meets) || !packing.gauges.iter().all(fits) {
            return false;
        }
        for gauge in &packing.gauges {
            self.levels[bin][*gauge] += it.weight[*gauge];
        }
        true
    }

    /// Whether nothing good can come of what is placed so far.
    fn is_vain(&self, depth: usize) -> bool {
        let (packing, focus) = (self.packing, self.packing.focus);
        if self.levels[0][focus] >= self.best * (1.0 - ROUNDING) {
            return true;
        }
        // Room that not even the smallest of the rest fits into is lost, and there is only so much to lose.
        let wasted = packing.bins.iter().zip(&self.levels).map(|(bin, levels)| bin.most[focus] - levels[focus]);
        let wasted: f64 = wasted.map(|room| room.max(0.0)).filter(|room| *room < self.least[depth]).sum();
        depth < self.order.len() && wasted > self.spare * (1.0 + ROUNDING) + ROUNDING
    }
}

/// What sums may differ by, relatively, that are added up in another order.
const ROUNDING: f64 = 1e-12;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Dice;
    use crate::gauges::{GAUGES, Gauge};

    const DISK: usize = Gauge::Disk as usize;

    fn disk(size: f64) -> Levels {
        let mut levels = [0.0; GAUGES];
        levels[DISK] = size;
        levels
    }

    /// Bins of these sizes, and items as size and bin.
    fn packing(bins: &[f64], items: &[(u32, usize)]) -> Packing {
        let bin = |(rack, most): (u16, &f64)| Bin { base: [0.0; GAUGES], most: disk(*most), rack };
        let item = |(part, (size, here)): (Part, &(u32, usize))| Item {
            weight: disk(f64::from(*size)),
            part,
            here: *here,
            may: u8::MAX,
        };
        Packing {
            gauges: vec![DISK],
            focus: DISK,
            target: bins[0],
            bins: (0..).zip(bins).map(bin).collect(),
            items: (0..).zip(items).map(item).collect(),
            racks_apart: false,
        }
    }

    fn solved(packing: &Packing, prefer: Prefer) -> Option<Vec<usize>> {
        packing.solve(prefer, &mut 1_000_000)
    }

    /// Whether there is an arrangement, by trying all of them.
    fn can_be(packing: &Packing, at: &mut Vec<usize>) -> bool {
        let fits = |bin: usize| {
            let inside = at.iter().zip(&packing.items).filter(|(at, _)| **at == bin);
            inside.map(|(_, item)| item.weight[DISK]).sum::<f64>() <= packing.bins[bin].most[DISK]
        };
        if at.len() == packing.items.len() {
            return (0..packing.bins.len()).all(fits);
        }
        (0..packing.bins.len()).any(|bin| {
            at.push(bin);
            let can = can_be(packing, at);
            at.pop();
            can
        })
    }

    #[test]
    fn what_three_bins_can_hold_only_if_three_items_change_places_is_found() {
        // 6 + 6, 4 + 5 and 5 + 4 of ten each. Nothing fits anywhere else, nor do two that are exchanged.
        let mut packing = packing(&[10.0, 10.0, 10.0], &[(6, 0), (5, 1), (4, 2)]);
        packing.bins.iter_mut().zip([6.0, 4.0, 5.0]).for_each(|(bin, base)| bin.base = disk(base));
        for prefer in [Prefer::Here, Prefer::Tight] {
            assert_eq!(solved(&packing, prefer), Some(vec![1, 2, 0]));
        }
    }

    #[test]
    fn whatever_can_stay_does() {
        let packing = packing(&[10.0, 10.0], &[(6, 0), (3, 0), (2, 0), (7, 1)]);
        assert_eq!(solved(&packing, Prefer::Here), Some(vec![0, 0, 1, 1]));
    }

    #[test]
    fn there_is_an_arrangement_exactly_where_trying_all_finds_one() {
        let (mut found, mut none) = (0, 0);
        for seed in 0..3_000 {
            let mut dice = Dice(seed);
            let bins: Vec<f64> = (0..2 + dice.below(2)).map(|_| f64::from(20 + dice.below(20))).collect();
            let items: Vec<(u32, usize)> =
                (0..3 + dice.below(4)).map(|_| (3 + dice.below(15), dice.below(bins.len() as u32) as usize)).collect();
            let packing = packing(&bins, &items);
            let level =
                |bin: usize| items.iter().filter(|item| item.1 == bin).map(|item| f64::from(item.0)).sum::<f64>();
            // Else there is nothing to mend, or what the first gives is not all that there is to do.
            if level(0) <= bins[0] {
                continue;
            }
            let expected = can_be(&packing, &mut Vec::new());
            for prefer in [Prefer::Here, Prefer::Tight] {
                let solved = solved(&packing, prefer);
                assert_eq!(solved.is_some(), expected, "seed {seed}: {bins:?} {items:?}");
                for (bin, most) in bins.iter().enumerate() {
                    let inside = solved.iter().flatten().zip(&items).filter(|(at, _)| **at == bin);
                    assert!(inside.map(|(_, item)| f64::from(item.0)).sum::<f64>() <= *most, "seed {seed}");
                }
            }
            if expected { found += 1 } else { none += 1 }
        }
        assert!(found > 200 && none > 200, "{found} found, {none} not");
    }

    #[test]
    fn replicas_of_one_partition_never_meet() {
        let mut packing = packing(&[10.0, 20.0, 20.0], &[(6, 0), (6, 0), (6, 1)]);
        packing.items[2].part = packing.items[0].part;
        (packing.items[1].may, packing.items[2].may) = (1 << 0, 1 << 1);
        // The first has to leave; only the third bin has none of its partition.
        assert_eq!(solved(&packing, Prefer::Here), Some(vec![2, 0, 1]));
        packing.racks_apart = true;
        packing.bins[2].rack = packing.bins[1].rack;
        assert_eq!(solved(&packing, Prefer::Here), None);
    }

    #[test]
    fn where_all_is_not_possible_the_most_relief_is_found() {
        let mut packing = packing(&[10.0, 10.0], &[(9, 0), (8, 0), (7, 1)]);
        // It may keep what it has: 17.
        packing.bins[0].most = disk(17.0);
        let found = solved(&packing, Prefer::Here).unwrap();
        assert_eq!(found, [1, 0, 0], "15 are left, and 9 go for 7");
    }

    #[test]
    fn it_ends_when_there_are_no_steps_left() {
        let items: Vec<(u32, usize)> = (0..40).map(|_| (7, 0)).collect();
        // 280 in all, which is what both may hold; but they hold 19 and 20 of them.
        let packing = packing(&[139.0, 141.0], &items);
        for given in [0, 5_000] {
            let mut steps = given;
            assert_eq!((packing.solve(Prefer::Here, &mut steps), steps), (None, 0));
        }
    }
}
