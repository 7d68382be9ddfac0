//! The plan: what moves, in which order, and why.

use sha2::{Digest, Sha256};

use crate::aims::Aims;
use crate::cluster::{BrokerId, Cluster, Part, Seat, Slot};
use crate::goal::Goal;
use crate::improve::Step;
use crate::options::Operation;
use crate::reasons::{Move, Order, Reasons, Ways};
use crate::state::State;

/// A plan: nothing in it is left to choose.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// What happens, in an order of which every beginning is already useful.
    pub changes: Vec<Change>,
    /// What a budget left out.
    pub undone: Undone,
}

/// What a budget left out of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Undone {
    /// Partitions that would have changed.
    pub changes: usize,
    /// Data that would have been copied between brokers or disks, in MB.
    pub megabytes: f64,
}

impl Plan {
    /// Names the plan by what it does: equal plans have equal names, on any machine. Whatever has no fixed length is told
    /// with its length first, so that no two plans look the same.
    pub fn id(&self) -> String {
        let mut hash = Sha256::new();
        for change in &self.changes {
            add_name(&mut hash, &change.topic);
            hash.update(change.partition.to_be_bytes());
            for list in [&change.old_replicas, &change.new_replicas] {
                hash.update((list.len() as u32).to_be_bytes());
                list.iter().for_each(|broker| hash.update(broker.0.to_be_bytes()));
            }
            hash.update((change.moves.len() as u32).to_be_bytes());
            for broker in change.moves.iter().flat_map(|(from, to)| [from, to]) {
                hash.update(broker.0.to_be_bytes());
            }
            hash.update(change.old_leader.0.to_be_bytes());
            hash.update(change.new_leader.0.to_be_bytes());
            hash.update((change.disks.len() as u32).to_be_bytes());
            for disk in &change.disks {
                hash.update(disk.broker.0.to_be_bytes());
                add_name(&mut hash, &disk.from);
                add_name(&mut hash, &disk.to);
            }
        }
        hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
    }

    /// Data copied between brokers, in MB.
    pub fn megabytes(&self) -> f64 {
        // Not `sum`: nothing at all would be minus zero, and be printed so.
        self.changes.iter().fold(0.0, |sum, change| sum + change.megabytes)
    }
}

fn add_name(hash: &mut Sha256, name: &str) {
    hash.update((name.len() as u32).to_be_bytes());
    hash.update(name.as_bytes());
}

/// On which disk of a broker a replica is to lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskChange {
    /// On which broker.
    pub broker: BrokerId,
    /// The log directory it is in; empty if the replica is new on the broker.
    pub from: String,
    /// The log directory it goes to.
    pub to: String,
}

/// Why a partition changes, and between whom.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reason {
    /// What asked for it.
    pub cause: Cause,
    /// The broker that is relieved: the replica leaves it, or leadership does.
    pub from: BrokerId,
    /// The broker that takes over.
    pub to: BrokerId,
    /// The partition of the plan that this was chosen together with, in exchange, and that goes the other way: its place in
    /// [`Cluster::partitions`]. None if it was chosen by itself.
    pub exchange: Option<u32>,
    /// What the two brokers carried of what the goal compares when this was chosen, after other changes of the plan: of a
    /// resource in its own unit, replicas, leaders, or replicas of the topic. Not known where a goal compares nothing, or
    /// where the search took a longer way.
    pub levels: Option<(f64, f64)>,
}

/// What asks for a change.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cause {
    /// A goal.
    Goal {
        /// Which.
        goal: Goal,
        /// By how much less it misses since, relative to what a broker ought to carry.
        gain: f64,
    },
    /// The replica is offline: its broker is dead, or its disk.
    Offline,
    /// The broker is to be removed.
    Removed,
    /// The broker is to lead nothing.
    Demoted,
}

impl Reason {
    /// The goal that is served, if it is one.
    pub fn goal(&self) -> Option<Goal> {
        match self.cause {
            Cause::Goal { goal, .. } => Some(goal),
            Cause::Offline | Cause::Removed | Cause::Demoted => None,
        }
    }

    /// The goal's name, or a word for what else it is.
    pub fn name(&self) -> &'static str {
        match self.cause {
            Cause::Goal { goal, .. } => goal.name(),
            Cause::Offline => "offline",
            Cause::Removed => "removed",
            Cause::Demoted => "demoted",
        }
    }
}

/// What happens to one partition.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Its topic.
    pub topic: String,
    /// Its number.
    pub partition: i32,
    /// The replica list as found.
    pub old_replicas: Vec<BrokerId>,
    /// The replica list to be; the leader comes first, unless nothing but disks changes.
    pub new_replicas: Vec<BrokerId>,
    /// Which of the old replicas goes where: from, to. The lists alone do not tell when several move.
    pub moves: Vec<(BrokerId, BrokerId)>,
    /// Who led it.
    pub old_leader: BrokerId,
    /// Who is to lead it.
    pub new_leader: BrokerId,
    /// Replicas that change disks within their broker, and disks for replicas that are new on theirs.
    pub disks: Vec<DiskChange>,
    /// Data copied between brokers, in MB; none of a partition that has lost all its replicas.
    pub megabytes: f64,
    /// Data copied between disks of one broker, in MB.
    pub disk_megabytes: f64,
    /// Why, the most important reason first.
    pub reasons: Vec<Reason>,
}

impl Change {
    /// Brokers that get a replica they did not have.
    pub fn added(&self) -> impl Iterator<Item = BrokerId> + '_ {
        self.new_replicas.iter().copied().filter(|broker| !self.old_replicas.contains(broker))
    }

    /// The way back: from where it ends to where it begins. Why is not told.
    pub(crate) fn reversed(&self) -> Change {
        Change {
            topic: self.topic.clone(),
            partition: self.partition,
            old_replicas: self.new_replicas.clone(),
            new_replicas: self.old_replicas.clone(),
            moves: self.moves.iter().rev().map(|(from, to)| (*to, *from)).collect(),
            old_leader: self.new_leader,
            new_leader: self.old_leader,
            disks: Vec::new(),
            megabytes: self.megabytes,
            disk_megabytes: 0.0,
            reasons: Vec::new(),
        }
    }

    /// Whether only the leader changes.
    pub fn is_leadership_only(&self) -> bool {
        self.added().next().is_none() && self.disks.is_empty()
    }
}

/// The changes between the placement as found and as it is in `state`, in the order in which they
/// became necessary: what must leave first, then what serves the most important goal. Those that were made together,
/// in exchange for each other, have the same place in that order.
pub(crate) fn changes(state: &State<'_>, aims: &Aims, operation: &Operation, steps: &[Step]) -> Vec<(Order, Change)> {
    let reasons = Reasons::of(state, aims, operation, steps);
    let mut changes: Vec<(Order, Change)> = Vec::new();
    for part in reasons.partitions() {
        // Replicas may have passed each other's brokers on: only brokers that keep none lose anything.
        let left: Vec<Slot> = state.cluster.slots(part).filter(|slot| !state.holds(state.home(*slot), part)).collect();
        let ways = Ways::of(state, aims, part);
        if left.is_empty() && ways.leads.is_none() {
            continue;
        }
        let (order, reasons) = reasons.why(part, &ways);
        // What nobody has nobody copies.
        let copied = if operation.finds_lost(state.cluster.partition(part as usize)) { &[] } else { &left[..] };
        changes.push((order, change(state, part, copied, &ways.moves, reasons)));
    }
    changes.sort_by_key(|(order, _)| *order);
    changes
}

fn change(state: &State<'_>, part: Part, copied: &[Slot], moves: &[Move], reasons: Vec<Reason>) -> Change {
    let cluster = state.cluster;
    let id = |seat: Seat| cluster.brokers()[usize::from(seat)].id;
    let slots = cluster.slots(part);
    let mut new_replicas: Vec<BrokerId> = slots.clone().map(|slot| id(state.seat(slot))).collect();
    new_replicas.swap(0, (state.leader(part) - slots.start) as usize);
    Change {
        topic: cluster.topics()[cluster.topic_of(part) as usize].clone(),
        partition: cluster.number_of(part),
        old_replicas: slots.map(|slot| id(state.home(slot))).collect(),
        moves: moves.iter().map(|way| (id(way.from), id(way.to))).collect(),
        old_leader: id(state.home(state.first_leader(part))),
        new_leader: new_replicas[0],
        new_replicas,
        disks: Vec::new(),
        disk_megabytes: 0.0,
        megabytes: copied.iter().map(|slot| cluster.megabytes(*slot)).fold(0.0, |sum, part| sum + part),
        reasons,
    }
}

/// A change that is none yet: the partition as it is found.
pub(crate) fn unmoved(cluster: &Cluster, part: Part) -> Change {
    let id = |slot: Slot| cluster.brokers()[usize::from(cluster.seats()[slot as usize])].id;
    let replicas: Vec<BrokerId> = cluster.slots(part).map(id).collect();
    let leader = replicas[usize::from(cluster.leaders()[part as usize])];
    Change {
        topic: cluster.topics()[cluster.topic_of(part) as usize].clone(),
        partition: cluster.number_of(part),
        old_replicas: replicas.clone(),
        new_replicas: replicas,
        moves: Vec::new(),
        old_leader: leader,
        new_leader: leader,
        disks: Vec::new(),
        megabytes: 0.0,
        disk_megabytes: 0.0,
        reasons: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Small;

    #[test]
    fn a_plan_is_named_by_all_that_it_does_in_its_order_and_by_nothing_else() {
        let mut small = Small::in_racks("abc");
        small.partition("t", 0, &[0, 1], 10.0);
        small.partition("t", 1, &[1, 0], 10.0);
        let cluster = small.cluster();
        let name = |changes: &[&Change]| {
            let changes = changes.iter().map(|change| (*change).clone()).collect();
            Plan { changes, undone: Undone::default() }.id()
        };
        let (one, other) = (unmoved(&cluster, 0), unmoved(&cluster, 1));
        let known = name(&[&one, &other]);
        assert_eq!(known, name(&[&one, &other]));
        let leader = Change { new_leader: BrokerId(1), ..one.clone() };
        let list = Change { new_replicas: vec![BrokerId(1), BrokerId(0)], ..one.clone() };
        let disk = DiskChange { broker: BrokerId(0), from: "a".into(), to: "b".into() };
        let disks = Change { disks: vec![disk], ..one.clone() };
        // Replicas of one partition may differ, so that it matters which of them goes where.
        let moves = |ways: [(i32, i32); 2]| {
            let moves = ways.map(|(from, to)| (BrokerId(from), BrokerId(to))).to_vec();
            Change { moves, ..one.clone() }
        };
        let (straight, crosswise) = (moves([(0, 2), (1, 3)]), moves([(0, 3), (1, 2)]));
        assert_ne!(name(&[&straight]), name(&[&crosswise]));
        for changed in [&leader, &list, &disks, &straight] {
            assert_ne!(known, name(&[changed, &other]));
        }
        assert_ne!(known, name(&[&other, &one]));
        assert_ne!(known, name(&[&one]));
        let reason = Reason { cause: Cause::Offline, from: BrokerId(0), to: BrokerId(1), exchange: None, levels: None };
        assert_eq!(known, name(&[&Change { reasons: vec![reason], ..one }, &other]), "why is not what");
    }

    /// Of two plans one has two changes and the other a single one, of a topic whose name looks like the first of the
    /// two written down: one number after the other, and all of them zero but the lengths of the lists.
    #[test]
    fn no_name_of_a_topic_makes_one_plan_look_like_another() {
        let mut small = Small::in_racks("a");
        small.partition("t", 0, &[0], 10.0);
        let cluster = small.cluster();
        let change = |topic: &str| Change { topic: topic.to_owned(), ..unmoved(&cluster, 0) };
        let name = |changes: Vec<Change>| Plan { changes, undone: Undone::default() }.id();
        let (none, one) = ("\0\0\0\0", "\0\0\0\x01");
        let (partition, list, moves, leaders, disks) = (none, [one, none].concat(), none, [none, none].concat(), none);
        for end in ["", "\0"] {
            let written = ["t", end, partition, &list, &list, moves, &leaders, disks, "u"].concat();
            assert_ne!(name(vec![change("t"), change("u")]), name(vec![change(&written)]), "{end:?}");
        }
    }
}
