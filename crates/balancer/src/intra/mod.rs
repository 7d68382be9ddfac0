//! Goals inside brokers: how each broker's replicas lie on its own disks.
//!
//! Brokers do not concern each other here, so each is arranged by itself and all at once. Where a
//! request also has goals between brokers, those come first, and the disks are arranged for what the
//! brokers hold then: replicas that are new on a broker get the disk that they fill least.

mod arrange;
mod filling;
#[cfg(test)]
mod laws;
mod order;
mod report;
mod request;
mod shelf;
#[cfg(test)]
mod tests;

use arrange::{Arrangement, Cause, Moved, Wishes};
pub(crate) use filling::Filling;
pub(crate) use order::Allowance;
use order::{Desktop, DiskMove, Ordered};
pub use report::DiskLoad;
pub(crate) use request::{Inside, split};
use shelf::{Band, Item, NOWHERE, SETTLED, Shelf, Side};

use crate::cluster::{Broker, Cluster, DiskState, NO_DISK, Resource, Seat, Slot};
use crate::goal::Goal;
use crate::held::Rule;
use crate::plan::{Change, Undone};
use crate::planner::{Infeasible, Status, Verdict};
use crate::provision::{Advice, Provision, Thing};
use crate::rules::Rules;
use crate::settings::Settings;
use crate::state::State;
use crate::threads;

/// What was done to all disks.
#[derive(Debug, Default)]
pub(crate) struct Tidied {
    pub(crate) verdicts: Vec<Verdict>,
    /// What a budget left out: MB between disks, and partitions, be it between brokers or disks; `None` if there are no goals
    /// inside brokers.
    pub(crate) undone: Option<Undone>,
    /// How many changes there are from the first on that fills a disk beyond its capacity for a while, whatever the order.
    pub(crate) unsafe_changes: usize,
    /// Replicas that stay on their broker, on a disk that nobody knows.
    pub(crate) unplaced: u64,
    disks: Vec<DiskLoad>,
    moves: Vec<DiskMove>,
}

impl Tidied {
    /// Adds the disks to `changes`, what changes nothing but disks at the end, and tells what each holds.
    pub(crate) fn add_to(self, state: &State<'_>, changes: &mut Vec<Change>) -> Vec<DiskLoad> {
        report::add_to(state, &self.moves, changes);
        self.disks
    }
}

/// Arranges the disks of every broker for what it holds in `state`, as far as the budget goes if there is one.
pub(crate) fn tidy(
    state: &State<'_>,
    rules: &Rules,
    inside: &Inside,
    settings: &Settings,
    (workers, budget): (usize, Option<Allowance>),
) -> Result<Tidied, Infeasible> {
    if inside.goals.is_empty() {
        return Ok(Tidied::default());
    }
    let cluster = state.cluster;
    let seats: Vec<Seat> = (0..cluster.brokers().len() as Seat)
        .filter(|seat| rules.is_alive(*seat) && !cluster.brokers()[usize::from(*seat)].disks.is_empty())
        .collect();
    let found = report::found(cluster);
    let arranged = threads::map(workers, &seats, |seat| Desk { state, rules, inside, settings, seat: *seat }.arrange());
    let mut desktops: Vec<Desktop> = Vec::with_capacity(seats.len());
    for (seat, arranged) in seats.into_iter().zip(arranged) {
        let plans = plans(&cluster.brokers()[usize::from(seat)], seat, inside);
        desktops.push(Desktop::new(seat, plans, arranged?, &inside.goals, settings));
    }
    let Ordered { moves, undone, unsafe_changes } = order::ordered(cluster, &mut desktops, budget);
    let mut tidied = Tidied { moves, undone: Some(undone), unsafe_changes, ..Tidied::default() };
    let mut misses: [(f64, f64); 2] = [(0.0, 0.0); 2];
    let mut vetoes = 0;
    for Desktop { seat, plans, arranged, .. } in desktops {
        let broker = &cluster.brokers()[usize::from(seat)];
        let before = &found[usize::from(seat)];
        let levels: Vec<f64> = before.iter().map(|(megabytes, _)| *megabytes).collect();
        let counts: Vec<u64> = before.iter().map(|(_, replicas)| *replicas).collect();
        let after = arranged.levels();
        for (at, (levels, counts)) in [(&levels, &counts), (&after, &arranged.counts)].into_iter().enumerate() {
            for (goal, sum) in inside.goals.iter().zip(&mut misses) {
                let miss = miss(*goal, &plans, levels, counts, settings);
                if at == 0 { sum.0 += miss } else { sum.1 += miss }
            }
        }
        vetoes += arranged.vetoes;
        tidied.unplaced += arranged.unplaced;
        tidied.disks.extend(report::loads(broker, &plans, before, &after, &arranged.counts));
    }
    let verdict = |(goal, miss): (&Goal, (f64, f64))| verdict(*goal, miss, vetoes, undone);
    tidied.verdicts = inside.goals.iter().zip(misses).map(verdict).collect();
    Ok(tidied)
}

fn verdict(goal: Goal, miss: (f64, f64), vetoes: u64, undone: Undone) -> Verdict {
    let status = Status::of(miss);
    let (mut refused_by, mut held_back_by) = (Vec::new(), Vec::new());
    if status == Status::Violated {
        if undone != Undone::default() {
            // Of partitions that change anyway a move between disks may be left out as well.
            held_back_by.push((Rule::Budget, undone.changes.max(1) as u64));
        }
        if goal == Goal::IntraBrokerDiskUsageDistribution && vetoes > 0 {
            refused_by.push((Goal::IntraBrokerDiskCapacity, vetoes));
        } else if held_back_by.is_empty() {
            held_back_by.push((Rule::NothingHelps, 1));
        }
    }
    Verdict { goal, status, miss, refused_by, held_back_by }
}

/// What is to become of one disk.
#[derive(Debug, Clone, Copy, PartialEq)]
struct DiskPlan {
    state: DiskState,
    /// In MB; 0 unless it serves and is to go on serving.
    capacity: f64,
    /// As it is, in MB.
    size: f64,
}

fn plans(broker: &Broker, seat: Seat, inside: &Inside) -> Vec<DiskPlan> {
    let plan = |(index, disk): (usize, &crate::cluster::DiskSpec)| {
        let leaves = disk.state == DiskState::Alive && inside.removed.contains(&(seat, index));
        let state = if leaves { DiskState::Removed } else { disk.state };
        let capacity = if state == DiskState::Alive { disk.capacity } else { 0.0 };
        DiskPlan { state, capacity, size: disk.capacity }
    };
    broker.disks.iter().enumerate().map(plan).collect()
}

/// What the capacity goal asks: room on every disk that serves, nothing on those to be taken out.
fn capacity_bands(plans: &[DiskPlan], settings: &Settings) -> Vec<Band> {
    let band = |plan: &DiskPlan| match plan.state {
        DiskState::Alive => {
            let limit = plan.capacity * settings.capacity_thresholds[Resource::Disk as usize];
            Band::new(0.0, limit, limit)
        }
        DiskState::Removed => Band::new(0.0, 0.0, plan.size),
        DiskState::Dead => Band::FREE,
    };
    plans.iter().map(band).collect()
}

/// What the distribution goal asks: every disk about as full as the broker is.
fn distribution_bands(plans: &[DiskPlan], total: f64, settings: &Settings) -> Vec<Band> {
    let mean = total / plans.iter().map(|plan| plan.capacity).sum::<f64>();
    let width = settings.half_width(settings.balance_thresholds[Resource::Disk as usize]);
    let band = |plan: &DiskPlan| match plan.state {
        DiskState::Alive => {
            let share = mean * plan.capacity;
            Band::new(share * (1.0 - width), share * (1.0 + width), share)
        }
        DiskState::Removed | DiskState::Dead => Band::FREE,
    };
    plans.iter().map(band).collect()
}

/// What the broker's disks hold together, dead ones aside.
fn total(plans: &[DiskPlan], levels: &[f64]) -> f64 {
    plans.iter().zip(levels).filter(|(plan, _)| plan.state != DiskState::Dead).map(|(_, level)| level).sum()
}

/// What the goal asks of disks that hold so much.
fn bands(goal: Goal, plans: &[DiskPlan], levels: &[f64], settings: &Settings) -> Vec<Band> {
    match goal {
        Goal::IntraBrokerDiskCapacity => capacity_bands(plans, settings),
        _ => distribution_bands(plans, total(plans, levels), settings),
    }
}

/// How far the goal is from being satisfied on one broker.
fn miss(goal: Goal, plans: &[DiskPlan], levels: &[f64], counts: &[u64], settings: &Settings) -> f64 {
    let bands = bands(goal, plans, levels, settings);
    (0..plans.len()).map(|disk| miss_of(goal, plans[disk].state, &bands[disk], levels[disk], counts[disk])).sum()
}

/// The same of one disk. One that is to be taken out misses by every replica on it, however small.
fn miss_of(goal: Goal, state: DiskState, band: &Band, level: f64, count: u64) -> f64 {
    match (goal, state) {
        (Goal::IntraBrokerDiskCapacity, DiskState::Removed) => count as f64,
        _ => band.miss(level),
    }
}

/// One broker's disks as they were left.
#[derive(Debug)]
struct Arranged {
    shelves: Vec<Shelf>,
    counts: Vec<u64>,
    moved: Vec<(Slot, Moved)>,
    vetoes: u64,
    /// Replicas that are on one of the disks, nobody knows on which.
    unplaced: u64,
}

impl Arranged {
    /// What each disk holds, in MB.
    fn levels(&self) -> Vec<f64> {
        self.shelves.iter().map(|shelf| shelf.level).collect()
    }

    /// Moves so many MB in one replica from one disk to another.
    fn shift(&mut self, from: usize, to: usize, megabytes: f64) {
        self.shelves[from].level -= megabytes;
        self.shelves[to].level += megabytes;
        self.counts[from] -= 1;
        self.counts[to] += 1;
    }
}

/// One broker and what is asked of it.
#[derive(Debug)]
struct Desk<'a, 'c> {
    state: &'a State<'c>,
    rules: &'a Rules,
    inside: &'a Inside,
    settings: &'a Settings,
    seat: Seat,
}

impl Desk<'_, '_> {
    fn arrange(&self) -> Result<Arranged, Infeasible> {
        let cluster = self.state.cluster;
        let broker = &cluster.brokers()[usize::from(self.seat)];
        let plans = plans(broker, self.seat, self.inside);
        let empties = self.inside.asks(Goal::IntraBrokerDiskCapacity);
        let mut shelves: Vec<Shelf> = plans
            .iter()
            .map(|plan| Shelf { capacity: plan.capacity, open: plan.state == DiskState::Alive, ..Shelf::default() })
            .collect();
        let mut counts = vec![0; plans.len()];
        let (mut arrivals, mut unplaced) = (Vec::new(), 0);
        let mut held = self.state.held(self.seat).to_vec();
        held.sort_unstable();
        for slot in held {
            let item = Item { size: cluster.megabytes(slot), slot };
            let disk = usize::from(cluster.disks()[slot as usize]);
            if self.state.home(slot) != self.seat {
                arrivals.push(item);
            } else if disk != usize::from(NO_DISK) {
                shelves[disk].level += item.size;
                counts[disk] += 1;
                let may = match plans[disk].state {
                    DiskState::Alive => self.may_move(slot),
                    // A disk that is to be taken out is emptied whatever else was asked.
                    DiskState::Removed => empties,
                    DiskState::Dead => false,
                };
                if may {
                    shelves[disk].lists[SETTLED].push(item);
                }
            } else if !cluster.is_offline(slot) {
                unplaced += 1;
            }
        }
        for shelf in &mut shelves {
            shelf.lists[SETTLED].sort_by(Item::order);
        }
        let replicas = counts.iter().sum::<u64>() + arrivals.len() as u64;
        let levels: Vec<f64> = shelves.iter().map(|shelf| shelf.level).collect();
        let total = total(&plans, &levels) + arrivals.iter().map(|item| item.size).sum::<f64>();
        if empties {
            self.check_room(broker, &plans, total)?;
        }
        let wishes = Wishes {
            capacity: empties.then(|| capacity_bands(&plans, self.settings)),
            distribution: self
                .inside
                .asks(Goal::IntraBrokerDiskUsageDistribution)
                .then(|| distribution_bands(&plans, total, self.settings)),
            only_loose: if self.inside.alone { has_dead_disk(broker) } else { self.heals_or_grows() },
        };
        let mut arrangement = Arrangement::new(shelves, wishes, total / replicas.max(1) as f64);
        arrangement.run(arrivals);
        let Arrangement { shelves, moved, vetoes, .. } = arrangement;
        for moved in moved.values() {
            if moved.home != NOWHERE {
                counts[moved.home] -= 1;
            }
            counts[moved.now] += 1;
        }
        if empties {
            self.check_result(broker, &plans, &shelves, &counts)?;
        }
        Ok(Arranged { shelves, counts, moved: moved.into_iter().collect(), vetoes, unplaced })
    }

    fn may_move(&self, slot: Slot) -> bool {
        self.inside.takes_part(self.seat)
            && self.rules.may_move(self.state, slot, true)
            && !self.state.cluster.is_offline(slot)
    }

    /// Whether the cluster is being healed, or other brokers are being added: as between brokers, a soft
    /// goal then moves only what is on its way anyway.
    fn heals_or_grows(&self) -> bool {
        self.rules.healing || (self.rules.only_new() && !self.rules.is_new(self.seat))
    }

    /// Whether what the broker holds can fit at all.
    fn check_room(&self, broker: &Broker, plans: &[DiskPlan], total: f64) -> Result<(), Infeasible> {
        let threshold = self.settings.capacity_thresholds[Resource::Disk as usize];
        let allowed = plans.iter().map(|plan| plan.capacity).sum::<f64>() * threshold;
        if total <= allowed {
            return Ok(());
        }
        let goal = Goal::IntraBrokerDiskCapacity;
        let mut reason = format!(
            "[{goal}] Insufficient disk capacity at broker {} (Utilization {total:.2}, Allowed Capacity {allowed:.2}).",
            broker.id
        );
        // Where nothing of a disk may be used no disk helps, however large.
        let missing = Some((total - allowed) / threshold).filter(|missing| missing.is_finite());
        let advice = missing.map(|missing| Advice::Add(Thing::Disks(1, missing)));
        advice.iter().for_each(|advice| reason.push_str(&format!(" {advice}")));
        Err(Infeasible { goal, reason, tips: Vec::new(), provision: Provision::under(goal, advice.as_ref()) })
    }

    /// Whether it fits as it lies now.
    fn check_result(
        &self,
        broker: &Broker,
        plans: &[DiskPlan],
        shelves: &[Shelf],
        counts: &[u64],
    ) -> Result<(), Infeasible> {
        let goal = Goal::IntraBrokerDiskCapacity;
        for (index, band) in capacity_bands(plans, self.settings).into_iter().enumerate() {
            let level = shelves[index].level;
            let left = plans[index].state == DiskState::Removed && counts[index] > 0;
            if !left && band.side(level) != Side::Over {
                continue;
            }
            let reason = format!(
                "[{goal}] Utilization ({level:.2}) of disk {} on broker {} violated capacity limit ({:.2}): \
                 no replica on it that may move fits on another disk, alone or in exchange for a smaller one.",
                broker.disks[index].name, broker.id, band.high
            );
            return Err(Infeasible { goal, reason, tips: Vec::new(), provision: Provision::under(goal, None) });
        }
        Ok(())
    }
}

/// Whether some disk of the broker failed: then nothing but what must move does.
fn has_dead_disk(broker: &Broker) -> bool {
    broker.disks.iter().any(|disk| disk.state == DiskState::Dead)
}

/// The goal a step was taken for.
fn goal_of(cause: Cause) -> Goal {
    match cause {
        Cause::Capacity => Goal::IntraBrokerDiskCapacity,
        Cause::Distribution => Goal::IntraBrokerDiskUsageDistribution,
    }
}

/// What every disk of every broker holds as the cluster is found: MB and replicas.
type Found = Vec<Vec<(f64, u64)>>;

fn disk_of(cluster: &Cluster, slot: Slot) -> Option<usize> {
    let disk = cluster.disks()[slot as usize];
    (disk != NO_DISK).then_some(usize::from(disk))
}
