//! Which of the waiting tasks begin now: as many as limits and health allow, the moment there is room.

use std::collections::{BTreeMap, BTreeSet};

use evenkeel_kafka::BrokerId;

use super::{ASK_AGAIN_AFTER, Asks, Execution, Step, Throttling, settle::ask_for_dir};
use crate::executor::{
    order::{Limits, Move},
    sight::Sight,
    strategy,
    task::{End, Kind, Stage, Why},
    throttle::Throttle,
};

impl Execution {
    /// Begins what may begin. While health holds it up, only what needs no beginning ends.
    pub(super) fn begin(&mut self, sight: &Sight, step: &mut Step, asks: &mut Asks) {
        match self.phase() {
            Some(Kind::Replicas) => self.begin_replicas(sight, step, asks),
            Some(Kind::Dir(_)) => self.begin_dirs(sight, step, asks),
            Some(Kind::Leader) => self.begin_leaders(sight, step, asks),
            None => {}
        }
    }

    fn begin_replicas(&mut self, sight: &Sight, step: &mut Step, asks: &mut Asks) {
        let held = step.hold.is_some();
        // Nothing moves before everything that is to be held back is.
        match (&self.throttle, self.throttling) {
            (Some(_), Throttling::Wanted | Throttling::Setting) if held => return,
            (Some(throttle), Throttling::Wanted) => {
                asks.look_for_rates = throttle.brokers.clone();
                return;
            }
            (Some(throttle), Throttling::Setting) => {
                // Who is down copies nothing.
                let brokers = throttle.brokers.intersection(&sight.up).copied().collect();
                asks.throttle = Some(Throttle { brokers, ..throttle.clone() });
                return;
            }
            _ => {}
        }
        let mut slots = Slots::of_moves(&self.limits);
        for task in self.tasks.iter().filter(|task| task.kind == Kind::Replicas && task.stage.is_in_flight()) {
            slots.occupy(&involved(&self.order.moves[task.of], sight));
        }
        let waiting = self.tasks.iter().filter(|task| task.kind == Kind::Replicas && task.stage == Stage::Pending);
        for of in strategy::sorted(&self.order, waiting.map(|task| task.of), sight) {
            let mv = &self.order.moves[of];
            let Some(stage) = self.first_stage(mv, sight, held, &mut slots, asks) else { continue };
            if stage.is_in_flight() {
                asks.reassign.insert(mv.partition.clone(), mv.new.clone());
                asks.prefer_dirs_of(mv, sight);
            }
            self.enter(self.by_move[&(of, Kind::Replicas)], stage, step);
        }
        for partition in &asks.cancel {
            self.cleared.entry(partition.clone()).or_insert(sight.now);
        }
    }

    /// The stage that a waiting move enters; `None` if it goes on waiting.
    fn first_stage(&self, mv: &Move, sight: &Sight, held: bool, slots: &mut Slots, asks: &mut Asks) -> Option<Stage> {
        let Some(seen) = sight.partitions.get(&mv.partition) else {
            return self.is_gone(&mv.partition, sight).then_some(Stage::Ended(End::Aborted(Why::Gone)));
        };
        if sight.shows_done(mv, seen) {
            return Some(Stage::Ended(End::Completed));
        }
        if mv.added().any(|broker| self.care.has_given_up(&self.order, sight, broker)) {
            return Some(Stage::Ended(End::Aborted(Why::TargetDown)));
        }
        // A life before this one may have asked for it and died before the answer.
        if sight.is_moving_to(mv) || seen.replicas == mv.new {
            slots.occupy(&involved(mv, sight));
            return Some(Stage::InProgress { since: sight.now, asked: sight.now });
        }
        if sight.under_way.contains_key(&mv.partition) {
            if self.order.stops_others {
                asks.cancel.insert(mv.partition.clone());
            }
            return None;
        }
        if !mv.is_at_old(&seen.replicas) {
            let fresh = self.cleared.get(&mv.partition).is_some_and(|at| sight.now - at < ASK_AGAIN_AFTER);
            return (!fresh).then_some(Stage::Ended(End::Aborted(Why::Changed)));
        }
        if held || mv.added().any(|broker| !sight.up.contains(&broker)) || !slots.take(&involved(mv, sight)) {
            return None;
        }
        Some(Stage::InProgress { since: sight.now, asked: sight.now })
    }

    fn begin_dirs(&mut self, sight: &Sight, step: &mut Step, asks: &mut Asks) {
        let mut slots = Slots::of_dirs(&self.limits);
        for index in 0..self.tasks.len() {
            let task = &self.tasks[index];
            let Kind::Dir(dir) = task.kind else { continue };
            let mv = &self.order.moves[task.of];
            let dir = &mv.dirs[dir];
            if task.stage.is_in_flight() {
                slots.occupy(&[dir.broker]);
            }
            if task.stage != Stage::Pending {
                continue;
            }
            let stage = if self.care.has_given_up(&self.order, sight, dir.broker) {
                Stage::Ended(End::Aborted(Why::TargetDown))
            } else if step.hold.is_none() && sight.up.contains(&dir.broker) && slots.take(&[dir.broker]) {
                ask_for_dir(mv, dir, Some(&dir.to), asks);
                Stage::InProgress { since: sight.now, asked: sight.now }
            } else {
                continue;
            };
            self.enter(index, stage, step);
        }
    }

    fn begin_leaders(&mut self, sight: &Sight, step: &mut Step, asks: &mut Asks) {
        let mut slots = Slots::of_leaders(&self.limits);
        for index in 0..self.tasks.len() {
            let task = &self.tasks[index];
            if task.kind != Kind::Leader {
                continue;
            }
            let mv = &self.order.moves[task.of];
            let Some(wanted) = mv.new.first().copied() else { continue };
            let seen = sight.partitions.get(&mv.partition);
            let pair: Vec<BrokerId> = seen.and_then(|seen| seen.leader).into_iter().chain([wanted]).collect();
            if task.stage.is_in_flight() {
                slots.occupy(&pair);
            }
            if task.stage != Stage::Pending {
                continue;
            }
            let stage = match seen {
                None if self.is_gone(&mv.partition, sight) => Stage::Ended(End::Aborted(Why::Gone)),
                None => continue,
                Some(seen) if seen.leader == Some(wanted) => Stage::Ended(End::Completed),
                // Its replicas never came to be as planned.
                Some(seen) if seen.replicas.first() != Some(&wanted) => Stage::Ended(End::Aborted(Why::Changed)),
                Some(_) if self.care.has_given_up(&self.order, sight, wanted) => {
                    Stage::Ended(End::Aborted(Why::TargetDown))
                }
                Some(_) if step.hold.is_none() && sight.up.contains(&wanted) && slots.take(&pair) => {
                    asks.elect.insert(mv.partition.clone());
                    Stage::InProgress { since: sight.now, asked: sight.now }
                }
                Some(_) => continue,
            };
            self.enter(index, stage, step);
        }
    }
}

/// Who is busy with a move: the leader, who sends it, and those who receive it. A mere change of
/// order keeps nobody busy.
fn involved(mv: &Move, sight: &Sight) -> Vec<BrokerId> {
    let mut busy: Vec<BrokerId> = mv.added().collect();
    if !busy.is_empty() {
        let leader = sight.partitions.get(&mv.partition).and_then(|seen| seen.leader).unwrap_or(mv.old_leader);
        busy.push(leader);
    }
    busy
}

/// Room for what may be under way at once.
struct Slots {
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

    fn of_moves(limits: &Limits) -> Self {
        Slots {
            spared: limits.spared.clone(),
            per_spared: limits.per_spared(),
            ..Slots::new(limits.per_broker, limits.in_cluster)
        }
    }

    fn of_dirs(limits: &Limits) -> Self {
        Slots::new(limits.dirs_per_broker, usize::MAX)
    }

    fn of_leaders(limits: &Limits) -> Self {
        Slots::new(limits.leaders_per_broker, limits.leaders_in_cluster)
    }

    /// What is under way already is, whether there is room or not.
    fn occupy(&mut self, brokers: &[BrokerId]) {
        self.left_in_cluster = self.left_in_cluster.saturating_sub(1);
        for broker in brokers {
            *self.taken.entry(*broker).or_default() += 1;
        }
    }

    fn take(&mut self, brokers: &[BrokerId]) -> bool {
        let room = |broker: &BrokerId| if self.spared.contains(broker) { self.per_spared } else { self.per_broker };
        let full = |broker: &BrokerId| self.taken.get(broker).copied().unwrap_or(0) >= room(broker);
        if self.left_in_cluster == 0 || brokers.iter().any(full) {
            return false;
        }
        self.occupy(brokers);
        true
    }
}
