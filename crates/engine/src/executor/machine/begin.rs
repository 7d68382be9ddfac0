//! Which of the waiting tasks begin now: as many as limits and health allow, the moment there is room.

use evenkeel_kafka::BrokerId;

use super::{
    ASK_AGAIN_AFTER, Asks, Execution, Step, Throttling,
    room::{Pipes, Slots},
    settle::ask_for_dir,
};
use crate::executor::{
    order::Move,
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
        // Who was down when rates were set, and has returned, gets its own before anything else begins.
        if self.throttling == Throttling::On && !self.unset.is_disjoint(&sight.up) {
            self.throttling = Throttling::Setting;
        }
        // Nothing moves before everything that is to be held back is.
        match (&self.throttle, self.throttling) {
            (Some(_), Throttling::Wanted) if held => return,
            (Some(throttle), Throttling::Wanted) => {
                asks.look_for_rates = throttle.brokers.intersection(&sight.up).copied().collect();
                return;
            }
            (Some(throttle), Throttling::Setting) => {
                // Who is down copies nothing.
                let (brokers, unset) =
                    throttle.brokers.difference(&self.unasked).copied().partition(|id| sight.up.contains(id));
                self.unset = unset;
                asks.throttle = Some(Throttle { rate: throttle.rate, brokers, ..Throttle::default() });
                return;
            }
            // Who has returned gets its rate before anything else begins.
            (Some(_), Throttling::On) if !self.unasked.is_disjoint(&sight.up) => {
                asks.look_for_rates = self.unasked.intersection(&sight.up).copied().collect();
                return;
            }
            _ => {}
        }
        let mut slots = Slots::of_moves(&self.limits);
        let mut pipes = Pipes::default();
        let open = self.tasks.iter().filter(|task| task.kind == Kind::Replicas && !task.stage.is_over());
        for (task, mv) in open.map(|task| (task, &self.order.moves[task.of])) {
            let busy = involved(mv, sight);
            pipes.add(mv, &busy);
            if task.stage.is_in_flight() {
                slots.occupy(&busy);
                pipes.flow(&busy);
            }
        }
        let waiting = self.tasks.iter().filter(|task| task.kind == Kind::Replicas && task.stage == Stage::Pending);
        let mut groups = strategy::ranked(&self.order, waiting.map(|task| task.of), sight);
        for group in &mut groups {
            group.retain(|of| match self.first(&self.order.moves[*of], sight, asks) {
                First::Begins => !held,
                First::Waits => false,
                First::Is(stage) => {
                    if stage.is_in_flight() {
                        let busy = involved(&self.order.moves[*of], sight);
                        slots.occupy(&busy);
                        pipes.flow(&busy);
                    }
                    self.enter(self.by_move[&(*of, Kind::Replicas)], stage, step);
                    false
                }
            });
        }
        for group in groups {
            let ready = group.into_iter().map(|of| (of, involved(&self.order.moves[of], sight))).collect();
            for of in pipes.chosen(ready, &mut slots) {
                let mv = &self.order.moves[of];
                asks.reassign.insert(mv.partition.clone(), mv.new.clone());
                asks.prefer_dirs_of(mv, sight);
                let begins = Stage::InProgress { since: sight.now, asked: sight.now };
                self.enter(self.by_move[&(of, Kind::Replicas)], begins, step);
            }
        }
        for partition in &asks.cancel {
            self.cleared.entry(partition.clone()).or_insert(sight.now);
        }
    }

    /// What becomes of a waiting move.
    fn first(&self, mv: &Move, sight: &Sight, asks: &mut Asks) -> First {
        let Some(seen) = sight.partitions.get(&mv.partition) else {
            let gone = self.is_gone(&mv.partition, sight);
            return if gone { First::Is(Stage::Ended(End::Aborted(Why::Gone))) } else { First::Waits };
        };
        if sight.shows_done(mv, seen) {
            return First::Is(Stage::Ended(End::Completed));
        }
        if mv.added().any(|broker| self.care.has_given_up(&self.order, sight, broker)) {
            return First::Is(Stage::Ended(End::Aborted(Why::TargetDown)));
        }
        if !sight.under_way.contains_key(&mv.partition) && self.has_no_source(mv, seen, sight) {
            return First::Is(Stage::Ended(End::Aborted(Why::TooSlow)));
        }
        // A life before this one may have asked for it and died before the answer.
        if sight.is_moving_to(mv) || seen.replicas == mv.new {
            return First::Is(Stage::InProgress { since: sight.now, asked: sight.now });
        }
        if sight.under_way.contains_key(&mv.partition) {
            // What cannot be taken back ends elsewhere, or never.
            if self.irrevocable.contains(&mv.partition) {
                return First::Is(Stage::Ended(End::Aborted(Why::Changed)));
            }
            if self.order.stops_others {
                asks.cancel.insert(mv.partition.clone());
            }
            return First::Waits;
        }
        if !mv.is_at_old(&seen.replicas) {
            let fresh = self.cleared.get(&mv.partition).is_some_and(|at| sight.now - at < ASK_AGAIN_AFTER);
            return if fresh { First::Waits } else { First::Is(Stage::Ended(End::Aborted(Why::Changed))) };
        }
        if mv.added().all(|broker| sight.up.contains(&broker)) { First::Begins } else { First::Waits }
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

/// Who is busy with a move: those who receive it, and last the leader, who sends it. A mere change of
/// order keeps nobody busy.
fn involved(mv: &Move, sight: &Sight) -> Vec<BrokerId> {
    let mut busy: Vec<BrokerId> = mv.added().collect();
    if !busy.is_empty() {
        let leader = sight.partitions.get(&mv.partition).and_then(|seen| seen.leader).unwrap_or(mv.old_leader);
        busy.push(leader);
    }
    busy
}

/// What becomes of a waiting move.
enum First {
    /// It may begin if there is room.
    Begins,
    /// It goes on waiting.
    Waits,
    /// It is there already, or on its way, or cannot be made.
    Is(Stage),
}
