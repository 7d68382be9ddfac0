//! Moves that take longer than they should: told once in a while, together.

use super::{
    machine::Execution,
    order::Millis,
    task::{Kind, Stage},
};

/// What counts as slow, and how often it is told.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slowness {
    /// Nothing is slow before this.
    pub after: Millis,
    /// A move between brokers should copy so many bytes a second.
    pub between_brokers: f64,
    /// A move between directories should.
    pub between_dirs: f64,
    /// Time between two alerts.
    pub backoff: Millis,
}

const MB: f64 = 1024.0 * 1024.0;

/// The original's.
impl Default for Slowness {
    fn default() -> Slowness {
        Slowness { after: 90_000, between_brokers: 0.1 * MB, between_dirs: 0.2 * MB, backoff: 60_000 }
    }
}

/// Remembers when somebody was told.
#[derive(Debug, Clone, Default)]
pub(super) struct SlowTasks {
    told: Option<Millis>,
}

impl SlowTasks {
    /// Which tasks are slow, by their numbers, and whether it is time to tell.
    pub(super) fn look(&mut self, execution: &Execution, slowness: &Slowness, now: Millis) -> (Vec<usize>, bool) {
        let is_slow = |index: &usize| {
            let task = &execution.tasks()[*index];
            let Stage::InProgress { since, .. } = task.stage else { return false };
            let mv = &execution.order().moves[task.of];
            let fair = match task.kind {
                Kind::Replicas => mv.bytes_between_brokers() as f64 / slowness.between_brokers,
                Kind::Dir(_) => mv.bytes as f64 / slowness.between_dirs,
                Kind::Leader => 0.0,
            };
            now - since > slowness.after.max((fair * 1_000.0) as Millis)
        };
        let slow: Vec<usize> = (0..execution.tasks().len()).filter(is_slow).collect();
        let due = !slow.is_empty() && self.told.is_none_or(|told| now - told >= slowness.backoff);
        if due {
            self.told = Some(now);
        }
        (slow, due)
    }
}

#[cfg(test)]
mod tests {
    use evenkeel_kafka::{BrokerId, TopicPartition};

    use super::*;
    use crate::executor::{Move, Order, Rates};

    /// Two moves of the same time, one of 1 MB and one of 100 MB; the third has not begun.
    fn execution(since: Millis) -> Execution {
        let mv = |number: i32, bytes: u64| Move {
            partition: TopicPartition::new("t", number),
            old: vec![BrokerId(0)],
            new: vec![BrokerId(1)],
            old_leader: BrokerId(0),
            dirs: Vec::new(),
            bytes,
        };
        let order = Order::of(vec![mv(0, 1 << 20), mv(1, 100 << 20), mv(2, 1)], [0, 1].map(BrokerId).into());
        let tasks = Execution::new(order.clone()).tasks().to_vec();
        let begun = tasks.iter().enumerate().filter(|(_, task)| task.kind == Kind::Replicas && task.of < 2);
        let stages = begun.map(|(index, _)| (index, Stage::InProgress { since, asked: since })).collect::<Vec<_>>();
        let throttling = crate::executor::Throttling::Off;
        Execution::resume(order, stages, throttling, Rates::default(), false, None)
    }

    #[test]
    fn slow_is_what_takes_longer_than_its_size_allows_and_it_is_told_now_and_then() {
        let (execution, slowness) = (execution(1_000), Slowness::default());
        let mut slow = SlowTasks::default();
        let of = |indices: &[usize]| indices.iter().map(|index| execution.tasks()[*index].of).collect::<Vec<_>>();
        assert_eq!(slow.look(&execution, &slowness, 91_000), (vec![], false));
        let (found, told) = slow.look(&execution, &slowness, 91_001);
        assert_eq!((of(&found), told), (vec![0], true));
        assert!(!slow.look(&execution, &slowness, 151_000).1);
        assert!(slow.look(&execution, &slowness, 151_001).1);
        // 100 MB at 0.1 MB/s.
        assert_eq!(of(&slow.look(&execution, &slowness, 1_001_001).0), [0, 1]);
    }
}
