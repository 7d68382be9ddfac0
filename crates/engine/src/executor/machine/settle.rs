//! What has become of the tasks in flight, and how they are taken back.

use evenkeel_kafka::BrokerId;

use super::{ASK_AGAIN_AFTER, Asks, Execution, Step};
use crate::executor::{
    order::{DirMove, Move},
    sight::{PartitionSight, Sight},
    task::{End, Kind, Stage, Why},
};

impl Execution {
    /// Brings every task in flight to where the cluster shows it to be.
    pub(super) fn settle(&mut self, sight: &Sight, step: &mut Step, asks: &mut Asks) {
        for index in 0..self.tasks.len() {
            let task = &self.tasks[index];
            if !task.stage.is_in_flight() {
                continue;
            }
            let (of, stage) = (task.of, task.stage);
            let now = match task.kind {
                Kind::Replicas => self.settle_replicas(of, stage, sight, asks),
                Kind::Dir(dir) => self.settle_dir(of, dir, stage, sight, asks),
                Kind::Leader => self.settle_leader(of, stage, sight, asks),
            };
            self.enter(index, now, step);
        }
    }

    /// Takes everything back that is in flight, and forgets what has not begun.
    pub(super) fn halt(&mut self, why: Why, sight: &Sight, step: &mut Step, asks: &mut Asks) {
        let aborting = Stage::Aborting { since: sight.now, asked: sight.now, why };
        for index in 0..self.tasks.len() {
            let task = &self.tasks[index];
            let mv = &self.order.moves[task.of];
            let now = match (task.kind, task.stage) {
                (_, Stage::Pending) | (Kind::Leader, Stage::InProgress { .. }) => {
                    asks.forget(&mv.partition);
                    Stage::Ended(End::Aborted(why))
                }
                (Kind::Replicas, Stage::InProgress { .. }) => {
                    asks.forget(&mv.partition);
                    asks.cancel.insert(mv.partition.clone());
                    aborting
                }
                (Kind::Dir(dir), Stage::InProgress { .. }) => {
                    ask_for_dir(mv, &mv.dirs[dir], mv.dirs[dir].from.as_ref(), asks);
                    aborting
                }
                (_, unmoved) => unmoved,
            };
            self.enter(index, now, step);
        }
    }

    pub(super) fn enter(&mut self, index: usize, stage: Stage, step: &mut Step) {
        let task = &mut self.tasks[index];
        if task.stage != stage {
            task.stage = stage;
            step.changed.insert(index);
        }
    }

    fn settle_replicas(&mut self, of: usize, stage: Stage, sight: &Sight, asks: &mut Asks) -> Stage {
        let mv = &self.order.moves[of];
        let Some(seen) = sight.partitions.get(&mv.partition) else {
            return self.unseen(&mv.partition, sight, stage);
        };
        if sight.shows_done(mv, seen) {
            return Stage::Ended(End::Completed);
        }
        let ours = sight.is_moving_to(mv);
        let listed = sight.under_way.contains_key(&mv.partition);
        match stage {
            Stage::InProgress { since, asked } => {
                if listed && !ours {
                    // Somebody has sent it elsewhere meanwhile.
                    return Stage::Ended(End::Aborted(Why::Changed));
                }
                let is_lost = |broker| self.care.is_lost(sight, broker, &mv.partition);
                let why = if mv.added().any(|broker| self.care.is_down(sight, broker) || is_lost(broker)) {
                    Some(Why::TargetDown)
                } else {
                    self.has_no_source(mv, seen, sight).then_some(Why::TooSlow)
                };
                if let Some(why) = why.filter(|_| ours) {
                    asks.cancel.insert(mv.partition.clone());
                    return Stage::Aborting { since: sight.now, asked: sight.now, why };
                }
                let given_up = |broker: &BrokerId| self.care.has_given_up(&self.order, sight, *broker);
                if seen.replicas == mv.new && (mv.new.iter().any(given_up) || mv.added().any(is_lost)) {
                    return Stage::Ended(End::Dead(Why::TargetDown));
                }
                if listed || seen.replicas == mv.new {
                    self.vanished.remove(&mv.partition);
                    return stage;
                }
                // Over, and metadata trails; or lost. Only time tells.
                let vanished = *self.vanished.entry(mv.partition.clone()).or_insert(sight.now);
                if sight.now - vanished.max(asked) < ASK_AGAIN_AFTER {
                    return stage;
                }
                if !mv.is_at_old(&seen.replicas) {
                    return Stage::Ended(End::Aborted(Why::Changed));
                }
                // The wish was lost on its way, or a new controller has not heard of it.
                asks.reassign.insert(mv.partition.clone(), mv.new.clone());
                asks.prefer_dirs_of(mv, sight);
                Stage::InProgress { since, asked: sight.now }
            }
            Stage::Aborting { since, asked, why } => {
                if listed && !ours || !listed && seen.replicas == mv.old {
                    return Stage::Ended(End::Dead(why));
                }
                if !listed && !is_trailing(mv, &seen.replicas) && !mv.is_at_old(&seen.replicas) {
                    // Somebody has moved it since.
                    return Stage::Ended(End::Dead(Why::Changed));
                }
                let given_up = |broker| {
                    self.care.has_given_up(&self.order, sight, broker)
                        || self.care.is_lost(sight, broker, &mv.partition)
                };
                let hopeless = || mv.added().any(given_up) || self.has_no_source(mv, seen, sight);
                if self.irrevocable.contains(&mv.partition) && hopeless() {
                    return Stage::Ended(End::Dead(why));
                }
                let at_once = !listed && mv.is_at_old(&seen.replicas) && asked == since;
                if !at_once && sight.now - asked < ASK_AGAIN_AFTER {
                    return stage;
                }
                if listed {
                    asks.cancel.insert(mv.partition.clone());
                } else {
                    // A cancel forgets the order that the replicas had.
                    asks.reassign.insert(mv.partition.clone(), mv.old.clone());
                }
                // Later than `since` also where the clock stands still: the old order is asked for once.
                Stage::Aborting { since, asked: sight.now.max(since + 1), why }
            }
            other => other,
        }
    }

    /// Whether a copy will never begin or go on: nobody leads the partition, and whoever could is given up.
    pub(super) fn has_no_source(&self, mv: &Move, seen: &PartitionSight, sight: &Sight) -> bool {
        let could_lead = if seen.in_sync.is_empty() { &mv.old } else { &seen.in_sync };
        let given_up = |id: &BrokerId| self.care.has_given_up_on(&self.order, sight, *id, &mv.partition);
        seen.leader.is_none() && could_lead.iter().all(given_up)
    }

    fn settle_dir(&self, of: usize, dir: usize, stage: Stage, sight: &Sight, asks: &mut Asks) -> Stage {
        let mv = &self.order.moves[of];
        let dir = &mv.dirs[dir];
        let Some(seen) = sight.partitions.get(&mv.partition) else {
            return self.unseen(&mv.partition, sight, stage);
        };
        if !seen.replicas.contains(&dir.broker) {
            return Stage::Ended(End::Aborted(Why::Changed));
        }
        if self.care.has_given_up(&self.order, sight, dir.broker) {
            return Stage::Ended(End::Dead(Why::TargetDown));
        }
        // The disk that it comes from has failed: there is nothing to copy any more, nor to call off.
        if self.care.is_lost(sight, dir.broker, &mv.partition) {
            let why = if let Stage::Aborting { why, .. } = stage { why } else { Why::TargetDown };
            return Stage::Ended(End::Dead(why));
        }
        let Some(held) = sight.dirs.get(&(dir.broker, mv.partition.clone())) else { return stage };
        if held.future.is_none() && held.dir == dir.to {
            return Stage::Ended(End::Completed);
        }
        match stage {
            Stage::InProgress { since, asked } => {
                if held.future.is_some() || sight.now - asked < ASK_AGAIN_AFTER {
                    return stage;
                }
                ask_for_dir(mv, dir, Some(&dir.to), asks);
                Stage::InProgress { since, asked: sight.now }
            }
            Stage::Aborting { since, asked, why } => {
                if held.future.is_none() {
                    return Stage::Ended(End::Dead(why));
                }
                if sight.now - asked < ASK_AGAIN_AFTER {
                    return stage;
                }
                ask_for_dir(mv, dir, dir.from.as_ref(), asks);
                Stage::Aborting { since, asked: sight.now, why }
            }
            other => other,
        }
    }

    fn settle_leader(&self, of: usize, stage: Stage, sight: &Sight, asks: &mut Asks) -> Stage {
        let mv = &self.order.moves[of];
        let Some(seen) = sight.partitions.get(&mv.partition) else {
            return self.unseen(&mv.partition, sight, stage);
        };
        if seen.leader.as_ref() == mv.new.first() {
            return Stage::Ended(End::Completed);
        }
        if seen.replicas.first() != mv.new.first() {
            return Stage::Ended(End::Aborted(Why::Changed));
        }
        let Stage::InProgress { since, asked } = stage else { return stage };
        if sight.now - since >= self.order.leader_patience {
            return Stage::Ended(End::Dead(Why::TooSlow));
        }
        if sight.now - asked < ASK_AGAIN_AFTER {
            return stage;
        }
        asks.elect.insert(mv.partition.clone());
        Stage::InProgress { since, asked: sight.now }
    }
}

/// Whether metadata still shows a move that is over: old and new replicas together.
fn is_trailing(mv: &Move, replicas: &[BrokerId]) -> bool {
    mv.everybody().iter().all(|broker| replicas.contains(broker))
}

pub(super) fn ask_for_dir(mv: &Move, dir: &DirMove, to: Option<&String>, asks: &mut Asks) {
    if let Some(to) = to {
        asks.move_dirs.entry(dir.broker).or_default().insert(mv.partition.clone(), to.clone());
    }
}
