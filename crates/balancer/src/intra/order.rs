//! The order of moves between disks, and which of them a budget affords.
//!
//! Moves are taken in their own order: the hard goal's first, then the brokers take turns, so that every beginning helps
//! all of them. As between brokers a beginning must be safe and useful by itself: a move waits as long as it would fill a
//! disk beyond its capacity, and as long as it does no good to the first goal that it makes a difference to. The moves of
//! one partition are one change, and changes that were made in exchange for each other happen together; so do those that
//! only together do any good, because a replica passed through a disk on its way. What no waiting helps comes last, or is
//! left undone if there is a budget.

use std::collections::{BTreeMap, BTreeSet};

use super::arrange::Moved;
use super::shelf::{Band, NOISE, NOWHERE};
use super::{Arranged, DiskPlan, bands, miss_of};
use crate::cluster::{Cluster, Part, Seat, Slot};
use crate::goal::Goal;
use crate::plan::Undone;
use crate::settings::Settings;

/// What of a budget is left.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Allowance {
    /// In MB.
    pub(crate) megabytes: f64,
    /// Partitions that may still change.
    pub(crate) changes: usize,
    /// Partitions that change already: their disks cost bytes only.
    pub(crate) changed: BTreeSet<Part>,
    /// Partitions whose change between brokers was not afforded.
    pub(crate) left_out: BTreeSet<Part>,
}

/// One broker's disks: what is to become of them, what the goals ask, how they were arranged.
#[derive(Debug)]
pub(super) struct Desktop {
    pub(super) seat: Seat,
    pub(super) plans: Vec<DiskPlan>,
    pub(super) arranged: Arranged,
    /// The hard goal first.
    wishes: Vec<(Goal, Vec<Band>)>,
}

impl Desktop {
    pub(super) fn new(
        seat: Seat,
        plans: Vec<DiskPlan>,
        arranged: Arranged,
        goals: &[Goal],
        settings: &Settings,
    ) -> Self {
        // What all disks hold together stays the same, whichever of the moves happen.
        let levels = arranged.levels();
        let wishes = goals.iter().map(|goal| (*goal, bands(*goal, &plans, &levels, settings))).collect();
        Desktop { seat, plans, arranged, wishes }
    }

    fn miss(&self, (goal, bands): &(Goal, Vec<Band>), disk: usize) -> f64 {
        let (level, count) = (self.arranged.shelves[disk].level, self.arranged.counts[disk]);
        miss_of(*goal, self.plans[disk].state, &bands[disk], level, count)
    }

    /// How far the disk is beyond its capacity, if that is what is asked for.
    fn overflow(&self, disk: usize) -> f64 {
        let hard = self.wishes.iter().find(|(goal, _)| goal.is_hard());
        hard.map_or(0.0, |wish| self.miss(wish, disk))
    }
}

/// A replica that goes from one disk of its broker to another, or is new on it and gets one.
#[derive(Debug, Clone, Copy)]
pub(super) struct DiskMove {
    /// The place of its broker among the desktops.
    desktop: usize,
    pub(super) seat: Seat,
    pub(super) slot: Slot,
    pub(super) moved: Moved,
    /// The partition without which it is of no use.
    pub(super) exchange: Option<Part>,
}

impl DiskMove {
    /// The disks it goes from and to.
    fn ends(&self) -> [(usize, usize); 2] {
        [(self.desktop, self.moved.home), (self.desktop, self.moved.now)]
    }
}

/// The moves that happen.
#[derive(Debug)]
pub(super) struct Ordered {
    pub(super) moves: Vec<DiskMove>,
    /// What a budget left out: MB between disks, and partitions, of which it may be between brokers.
    pub(super) undone: Undone,
    /// How many changes there are from the first on that fills a disk beyond its capacity for a while.
    pub(super) unsafe_changes: usize,
}

/// Puts the moves in their order and takes back what the budget, if there is one, does not afford.
pub(super) fn ordered(cluster: &Cluster, desktops: &mut [Desktop], budget: Option<Allowance>) -> Ordered {
    let (arrivals, settled) = moves(cluster, desktops);
    let (mut changed, left_out) =
        budget.as_ref().map(|left| (left.changed.clone(), left.left_out.clone())).unwrap_or_default();
    // All of it is as good as without a budget.
    let left = budget.filter(|left| !affords_all(cluster, &settled, left));
    let demands = if left.is_some() { &[Demand::Good][..] } else { &[Demand::Good, Demand::Safe, Demand::Nothing] };
    let mut waiting = units(cluster, &settled);
    // What is new on a broker must lie somewhere; that costs nothing more.
    let mut table = Table { cluster, desktops, left, moves: arrivals, unsafe_changes: 0 };
    settled.iter().for_each(|it| table.shift_back(it));
    for demand in demands {
        table.settle(&mut waiting, *demand);
        while *demand == Demand::Good && table.join(&mut waiting) {
            table.settle(&mut waiting, *demand);
        }
    }
    let part = |it: &DiskMove| cluster.part_of(it.slot);
    let Undone { megabytes, .. } = table.cost(waiting.iter().flatten().flatten());
    // A partition may be left out between brokers and between disks, and count once; one that changes does not count.
    changed.extend(table.moves.iter().map(part));
    let left_out: BTreeSet<Part> = left_out.into_iter().chain(waiting.iter().flatten().flatten().map(part)).collect();
    let undone = Undone { changes: left_out.difference(&changed).count(), megabytes };
    Ordered { moves: table.moves, undone, unsafe_changes: table.unsafe_changes }
}

/// What replicas that are new on a broker get, and what those do that were there, by importance.
fn moves(cluster: &Cluster, desktops: &mut [Desktop]) -> (Vec<DiskMove>, Vec<DiskMove>) {
    let mut all: Vec<DiskMove> = Vec::new();
    for (index, Desktop { seat, arranged, .. }) in desktops.iter_mut().enumerate() {
        let moved = std::mem::take(&mut arranged.moved);
        let of = |(slot, moved)| DiskMove { desktop: index, seat: *seat, slot, moved, exchange: None };
        all.extend(moved.into_iter().map(of));
    }
    let (arrivals, mut settled): (Vec<_>, Vec<_>) = all.into_iter().partition(|it| it.moved.home == NOWHERE);
    settled.sort_by_key(|it| (it.moved.cause, it.moved.step, it.desktop, it.slot));
    let mut parts: BTreeMap<(usize, usize), BTreeSet<Part>> = BTreeMap::new();
    for it in &settled {
        parts.entry((it.desktop, it.moved.step)).or_default().insert(cluster.part_of(it.slot));
    }
    for it in &mut settled {
        let part = cluster.part_of(it.slot);
        it.exchange = parts[&(it.desktop, it.moved.step)].iter().copied().find(|other| *other != part);
    }
    (arrivals, settled)
}

/// Changes that happen together, each of them the moves of one partition.
type Unit = Vec<Vec<DiskMove>>;

/// The changes, those together that were made in exchange for each other; by their most important moves.
fn units(cluster: &Cluster, moves: &[DiskMove]) -> Vec<Unit> {
    let part = |it: &DiskMove| cluster.part_of(it.slot);
    // Each is linked to an earlier one that it belongs together with, or to itself.
    let mut links: Vec<usize> = (0..moves.len()).collect();
    let first = |links: &[usize], mut at: usize| {
        while links[at] != at {
            at = links[at];
        }
        at
    };
    let (mut parts, mut actions) = (BTreeMap::new(), BTreeMap::new());
    for (index, it) in moves.iter().enumerate() {
        let same_part = *parts.entry(part(it)).or_insert(index);
        let same_action = *actions.entry((it.desktop, it.moved.step)).or_insert(index);
        for earlier in [same_part, same_action] {
            let (one, other) = (first(&links, index), first(&links, earlier));
            links[one.max(other)] = one.min(other);
        }
    }
    let mut units: BTreeMap<usize, Unit> = BTreeMap::new();
    for (index, it) in moves.iter().enumerate() {
        let unit = units.entry(first(&links, index)).or_default();
        match unit.iter_mut().find(|change| part(&change[0]) == part(it)) {
            Some(change) => change.push(*it),
            None => unit.push(vec![*it]),
        }
    }
    units.into_values().collect()
}

fn share_a_disk(one: &Unit, other: &Unit) -> bool {
    let disks = |unit: &Unit| -> BTreeSet<(usize, usize)> { unit.iter().flatten().flat_map(DiskMove::ends).collect() };
    !disks(one).is_disjoint(&disks(other))
}

fn affords_all(cluster: &Cluster, settled: &[DiskMove], left: &Allowance) -> bool {
    let parts: BTreeSet<Part> = settled.iter().map(|it| cluster.part_of(it.slot)).collect();
    let megabytes = settled.iter().fold(0.0, |sum, it| sum + cluster.megabytes(it.slot));
    megabytes <= left.megabytes && parts.difference(&left.changed).count() <= left.changes
}

/// What changes must do to happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Demand {
    /// Some good, and nothing that is not safe.
    Good,
    /// Nothing that is not safe.
    Safe,
    /// Nothing at all.
    Nothing,
}

/// The disks of all brokers while moves are tried on them, one unit after the other.
struct Table<'a> {
    cluster: &'a Cluster,
    desktops: &'a mut [Desktop],
    left: Option<Allowance>,
    moves: Vec<DiskMove>,
    unsafe_changes: usize,
}

impl Table<'_> {
    /// Makes happen what can. What one is refused another may make room for: again, until nothing more happens.
    fn settle(&mut self, waiting: &mut Vec<Unit>, demand: Demand) {
        loop {
            let before = waiting.len();
            waiting.retain(|unit| !self.happens(unit, demand));
            if waiting.len() == before {
                return;
            }
        }
    }

    /// Makes two happen that do good together and not alone, or else all that is left on a broker.
    fn join(&mut self, waiting: &mut Vec<Unit>) -> bool {
        /// There are hardly ever more than a few that wait; each would be tried with each.
        const TRIED: usize = 64;
        let most = waiting.len().min(TRIED);
        let pairs = (0..most).flat_map(|one| (one + 1..most).map(move |other| vec![one, other]));
        let pairs = pairs.filter(|pair| share_a_disk(&waiting[pair[0]], &waiting[pair[1]]));
        let mut groups: Vec<Vec<usize>> = pairs.collect();
        for desktop in 0..self.desktops.len() {
            let is_there = |at: &usize| waiting[*at].iter().flatten().any(|it| it.desktop == desktop);
            groups.push((0..waiting.len()).filter(is_there).collect());
        }
        for group in groups.into_iter().filter(|group| group.len() > 1) {
            let mut together: Unit = group.iter().flat_map(|at| waiting[*at].clone()).collect();
            let part = |it: &DiskMove| self.cluster.part_of(it.slot);
            let mut parts: Vec<Part> = together.iter().flatten().map(part).collect();
            parts.dedup();
            for it in together.iter_mut().flatten() {
                it.exchange = parts.iter().copied().find(|other| *other != part(it)).or(it.exchange);
            }
            if self.happens(&together, Demand::Good) {
                let mut at = 0..;
                waiting.retain(|_| at.next().is_some_and(|at| !group.contains(&at)));
                return true;
            }
        }
        false
    }

    /// Makes the changes happen, in an order in which none of them fills a disk beyond its capacity if there is one,
    /// unless they cannot be afforded or are not what is demanded.
    fn happens(&mut self, unit: &Unit, demand: Demand) -> bool {
        if !self.affords(unit) {
            return false;
        }
        let before = self.misses(unit);
        let (mut order, mut waiting): (Vec<&Vec<DiskMove>>, Vec<_>) = (Vec::new(), unit.iter().collect());
        let mut stuck: Option<usize> = None;
        while !waiting.is_empty() {
            let excesses: Vec<f64> = waiting.iter().map(|change| self.excess(change)).collect();
            let fits = excesses.iter().position(|excess| *excess <= NOISE);
            // Where none does, only an exchange at one moment could help: nobody can carry that out.
            if fits.is_none() {
                stuck.get_or_insert(order.len());
            }
            let least = || (0..excesses.len()).min_by(|one, other| excesses[*one].total_cmp(&excesses[*other]));
            let change = waiting.remove(fits.or_else(least).unwrap_or(0));
            change.iter().for_each(|it| self.shift(it));
            order.push(change);
        }
        let mut gains = before.iter().zip(self.misses(unit)).map(|(before, after)| before - after);
        let does_good = gains.find(|gain| gain.abs() > NOISE).is_some_and(|gain| gain > 0.0);
        let is_enough = match demand {
            Demand::Good => stuck.is_none() && does_good,
            Demand::Safe => stuck.is_none(),
            Demand::Nothing => true,
        };
        if is_enough {
            self.spend(unit);
            let safe = if self.unsafe_changes > 0 { 0 } else { stuck.unwrap_or(order.len()) };
            self.unsafe_changes += order.len() - safe;
            self.moves.extend(order.into_iter().flatten());
        } else {
            order.into_iter().flatten().for_each(|it| self.shift_back(it));
        }
        is_enough
    }

    /// By how much more the disks that the change's replicas go to are beyond their capacity afterwards, at worst.
    fn excess(&mut self, change: &[DiskMove]) -> f64 {
        let overflows = |table: &Self| -> Vec<f64> {
            change.iter().map(|it| table.desktops[it.desktop].overflow(it.moved.now)).collect()
        };
        let before = overflows(self);
        change.iter().for_each(|it| self.shift(it));
        let more = before.iter().zip(overflows(self)).map(|(before, after)| after - before).fold(0.0, f64::max);
        change.iter().for_each(|it| self.shift_back(it));
        more
    }

    /// By how much each goal is missed by the disks that the changes touch.
    fn misses(&self, unit: &Unit) -> Vec<f64> {
        let touched: BTreeSet<(usize, usize)> = unit.iter().flatten().flat_map(DiskMove::ends).collect();
        let goals = self.desktops.first().map_or(0, |desktop| desktop.wishes.len());
        let miss = |goal: usize, (at, disk): &(usize, usize)| {
            let desktop = &self.desktops[*at];
            desktop.miss(&desktop.wishes[goal], *disk)
        };
        (0..goals).map(|goal| touched.iter().map(|place| miss(goal, place)).sum()).collect()
    }

    fn shift(&mut self, it: &DiskMove) {
        let megabytes = self.cluster.megabytes(it.slot);
        self.desktops[it.desktop].arranged.shift(it.moved.home, it.moved.now, megabytes);
    }

    fn shift_back(&mut self, it: &DiskMove) {
        let megabytes = self.cluster.megabytes(it.slot);
        self.desktops[it.desktop].arranged.shift(it.moved.now, it.moved.home, megabytes);
    }

    /// What the moves cost: MB, and partitions that would not change otherwise.
    fn cost<'m>(&self, moves: impl Iterator<Item = &'m DiskMove>) -> Undone {
        let (mut parts, mut megabytes) = (BTreeSet::new(), 0.0);
        for it in moves {
            parts.insert(self.cluster.part_of(it.slot));
            megabytes += self.cluster.megabytes(it.slot);
        }
        let known = |part: &Part| self.left.as_ref().is_some_and(|left| left.changed.contains(part));
        Undone { changes: parts.into_iter().filter(|part| !known(part)).count(), megabytes }
    }

    fn affords(&self, unit: &Unit) -> bool {
        let cost = self.cost(unit.iter().flatten());
        self.left.as_ref().is_none_or(|left| cost.megabytes <= left.megabytes && cost.changes <= left.changes)
    }

    fn spend(&mut self, unit: &Unit) {
        let cost = self.cost(unit.iter().flatten());
        if let Some(left) = &mut self.left {
            left.megabytes -= cost.megabytes;
            left.changes -= cost.changes;
            left.changed.extend(unit.iter().flatten().map(|it| self.cluster.part_of(it.slot)));
        }
    }
}
