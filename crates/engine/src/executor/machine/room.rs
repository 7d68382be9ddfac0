//! Room for what may be under way at once, and which of the moves that strategies do not tell apart get it.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, VecDeque},
};

use evenkeel_kafka::BrokerId;

use crate::executor::order::{Limits, Move};

/// Room for what may be under way at once.
pub(super) struct Slots {
    per_broker: usize,
    spared: BTreeSet<BrokerId>,
    per_spared: usize,
    left_in_cluster: usize,
    taken: BTreeMap<BrokerId, usize>,
}

impl Slots {
    fn new(per_broker: usize, in_cluster: usize) -> Self {
        let (spared, taken) = (BTreeSet::new(), BTreeMap::new());
        Slots { per_broker, spared, per_spared: per_broker, left_in_cluster: in_cluster, taken }
    }

    pub(super) fn of_moves(limits: &Limits) -> Self {
        Slots {
            spared: limits.spared.clone(),
            per_spared: limits.per_spared(),
            ..Slots::new(limits.per_broker, limits.in_cluster)
        }
    }

    pub(super) fn of_dirs(limits: &Limits) -> Self {
        Slots::new(limits.dirs_per_broker, usize::MAX)
    }

    pub(super) fn of_leaders(limits: &Limits) -> Self {
        Slots::new(limits.leaders_per_broker, limits.leaders_in_cluster)
    }

    /// What is under way already is, whether there is room or not.
    pub(super) fn occupy(&mut self, brokers: &[BrokerId]) {
        self.left_in_cluster = self.left_in_cluster.saturating_sub(1);
        for broker in brokers {
            *self.taken.entry(*broker).or_default() += 1;
        }
    }

    pub(super) fn take(&mut self, brokers: &[BrokerId]) -> bool {
        let free = self.has_room_for(brokers);
        if free {
            self.occupy(brokers);
        }
        free
    }

    fn has_room_for(&self, brokers: &[BrokerId]) -> bool {
        let room = |broker: &BrokerId| if self.spared.contains(broker) { self.per_spared } else { self.per_broker };
        let has_room = |broker: &BrokerId| self.taken.get(broker).copied().unwrap_or(0) < room(broker);
        self.left_in_cluster > 0 && brokers.iter().all(has_room)
    }
}

/// One way out of a broker or into it.
#[derive(Debug, Default, Clone, Copy)]
struct Pipe {
    /// What is still to go through it.
    left: u128,
    /// How many copies go through it now.
    flows: u128,
}

impl Pipe {
    /// What each would have left if one more went through it.
    fn share(self) -> u128 {
        self.left / (self.flows + 1)
    }
}

/// The pipes of all brokers that take part.
#[derive(Debug, Default)]
pub(super) struct Pipes {
    out: BTreeMap<BrokerId, Pipe>,
    into: BTreeMap<BrokerId, Pipe>,
}

impl Pipes {
    /// Counts a move that is not over and keeps these brokers busy: those who receive it, and last who sends it.
    pub(super) fn add(&mut self, mv: &Move, involved: &[BrokerId]) {
        // Also what nobody knows the size of is something. The factor is for shares of little.
        let bytes = u128::from(mv.bytes.max(1)) << 16;
        self.each(involved, |pipe| pipe.left += bytes);
    }

    /// Counts one that is on its way.
    pub(super) fn flow(&mut self, involved: &[BrokerId]) {
        self.each(involved, |pipe| pipe.flows += 1);
    }

    fn each(&mut self, involved: &[BrokerId], change: impl Fn(&mut Pipe)) {
        let Some((sender, receivers)) = involved.split_last() else { return };
        for receiver in receivers {
            change(self.into.entry(*receiver).or_default());
            change(self.out.entry(*sender).or_default());
        }
    }

    /// Which of the moves that are ready begin, each with whom it keeps busy.
    ///
    /// A run takes as long as its fullest pipe, so that one must never stand idle, and a pipe that is shared gives less to
    /// each. So that move is next whose pipes have the most left for each who uses them, and of equal ones the first of
    /// the plan.
    pub(super) fn chosen(&mut self, ready: Vec<(usize, Vec<BrokerId>)>, slots: &mut Slots) -> Vec<usize> {
        // All that keep the same brokers busy are alike.
        let mut alike: BTreeMap<Vec<BrokerId>, VecDeque<usize>> = BTreeMap::new();
        let mut chosen = Vec::new();
        for (of, busy) in ready {
            match busy.is_empty() {
                // What copies nothing is in nobody's way.
                true if slots.take(&busy) => chosen.push(of),
                true => {}
                false => alike.entry(busy).or_default().push_back(of),
            }
        }
        loop {
            alike.retain(|busy, waiting| !waiting.is_empty() && slots.has_room_for(busy));
            let worth = |(busy, waiting): &(&Vec<BrokerId>, &VecDeque<usize>)| (self.worth(busy), Reverse(waiting[0]));
            let Some(busy) = alike.iter().max_by_key(worth).map(|(busy, _)| busy.clone()) else { return chosen };
            slots.occupy(&busy);
            self.flow(&busy);
            chosen.extend(alike.get_mut(&busy).and_then(VecDeque::pop_front));
        }
    }

    fn worth(&self, involved: &[BrokerId]) -> u128 {
        let share = |pipes: &BTreeMap<BrokerId, Pipe>, broker| pipes.get(broker).copied().unwrap_or_default().share();
        let Some((sender, receivers)) = involved.split_last() else { return 0 };
        let into: u128 = receivers.iter().map(|broker| share(&self.into, broker)).sum();
        share(&self.out, sender) + into / receivers.len().max(1) as u128
    }
}

#[cfg(test)]
mod tests {
    use evenkeel_kafka::TopicPartition;

    use super::*;

    /// Moves of so many bytes from one broker to others, and how many may be under way at once on one and in all.
    fn chosen(moves: &[(i32, &[i32], u64)], per_broker: usize, in_cluster: usize) -> Vec<usize> {
        let mut pipes = Pipes::default();
        let mut ready = Vec::new();
        for (at, (from, to, bytes)) in moves.iter().enumerate() {
            let new: Vec<BrokerId> = to.iter().copied().map(BrokerId).collect();
            let (partition, old_leader) = (TopicPartition::new("t", at as i32), BrokerId(*from));
            let busy: Vec<BrokerId> = new.iter().copied().chain([old_leader]).collect();
            let mv = Move { partition, old: vec![old_leader], new, old_leader, dirs: Vec::new(), bytes: *bytes };
            pipes.add(&mv, &busy);
            ready.push((at, busy));
        }
        pipes.chosen(ready, &mut Slots::new(per_broker, in_cluster))
    }

    #[test]
    fn what_uses_the_fullest_pipe_goes_first() {
        assert_eq!(chosen(&[(0, &[2], 20), (1, &[3], 30), (1, &[4], 5)], 1, 1), [1]);
        // Out of 1 there is most to go, though no single move is large; and then into 3.
        assert_eq!(chosen(&[(0, &[2], 20), (1, &[3], 15), (1, &[4], 15)], 1, 1), [1]);
        assert_eq!(chosen(&[(0, &[4], 20), (1, &[3], 15), (2, &[3], 15)], 1, 1), [1]);
    }

    #[test]
    fn no_pipe_is_shared_while_an_equal_one_is_idle() {
        let moves: [(i32, &[i32], u64); 4] = [(0, &[3], 9), (0, &[3], 9), (1, &[4], 9), (1, &[4], 9)];
        assert_eq!(chosen(&moves, 5, 2), [0, 2]);
        // What is left over is taken all the same, as far as there is room.
        assert_eq!(chosen(&moves, 5, 100), [0, 2, 1, 3]);
        assert_eq!(chosen(&moves, 1, 100), [0, 2]);
        // One sender must not take all the room of those whom others send to as well.
        let moves: [(i32, &[i32], u64); 4] = [(0, &[3, 5], 9), (0, &[3, 5], 9), (1, &[3, 5], 9), (1, &[3, 5], 9)];
        assert_eq!(chosen(&moves, 2, 100), [0, 2]);
    }

    #[test]
    fn equals_go_in_the_order_of_the_plan_also_where_no_size_is_known() {
        let moves: [(i32, &[i32], u64); 4] = [(0, &[2], 0), (1, &[3], 0), (0, &[2], 0), (1, &[3], 0)];
        assert_eq!(chosen(&moves, 2, 3), [0, 1, 2]);
        assert!(chosen(&[], 2, 3).is_empty());
    }
}
