//! How far an execution is, in numbers: counted from what is seen, as it is copied.

use std::collections::BTreeMap;

use evenkeel_kafka::BrokerId;

use super::{
    machine::Execution,
    sight::Sight,
    task::{End, Kind, Stage},
};

/// Tasks of one kind, by where they stand.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Not begun.
    pub pending: usize,
    /// Asked for.
    pub in_progress: usize,
    /// Being taken back.
    pub aborting: usize,
    /// Ended without having been done.
    pub aborted: usize,
    /// Begun and given up.
    pub dead: usize,
    /// Done.
    pub completed: usize,
}

impl Counts {
    /// All that are over.
    pub fn finished(&self) -> usize {
        self.completed + self.aborted + self.dead
    }

    /// All there are.
    pub fn total(&self) -> usize {
        self.finished() + self.pending + self.in_progress + self.aborting
    }

    fn count(&mut self, stage: Stage) {
        let counter = match stage {
            Stage::Pending => &mut self.pending,
            Stage::InProgress { .. } => &mut self.in_progress,
            Stage::Aborting { .. } => &mut self.aborting,
            Stage::Ended(End::Completed) => &mut self.completed,
            Stage::Ended(End::Aborted(_)) => &mut self.aborted,
            Stage::Ended(End::Dead(_)) => &mut self.dead,
        };
        *counter += 1;
    }
}

/// How far it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Moves between brokers.
    pub replicas: Counts,
    /// Moves between directories.
    pub dirs: Counts,
    /// Elections.
    pub leaders: Counts,
    /// Copied between brokers so far, in bytes.
    pub bytes_done: u64,
    /// To be copied between brokers, in bytes.
    pub bytes_total: u64,
    /// Copied between directories so far, in bytes.
    pub dir_bytes_done: u64,
    /// To be copied between directories, in bytes.
    pub dir_bytes_total: u64,
}

/// What one broker receives, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Share {
    /// So far.
    pub done: u64,
    /// In all.
    pub total: u64,
}

impl Execution {
    /// How far each broker is that receives something, by what was seen last.
    pub fn by_broker(&self, sight: &Sight) -> BTreeMap<BrokerId, Share> {
        let mut brokers: BTreeMap<BrokerId, Share> = BTreeMap::new();
        for task in self.tasks() {
            let mv = &self.order().moves[task.of];
            let mut receives = |broker: BrokerId, copied: Option<u64>| {
                let share = brokers.entry(broker).or_default();
                share.total += mv.bytes;
                share.done += match task.stage {
                    Stage::Ended(End::Completed) => mv.bytes,
                    Stage::InProgress { .. } => copied.unwrap_or_default().min(mv.bytes),
                    _ => 0,
                };
            };
            let seen = |broker| sight.dirs.get(&(broker, mv.partition.clone()));
            match task.kind {
                Kind::Replicas => mv.added().for_each(|broker| receives(broker, seen(broker).map(|it| it.bytes))),
                Kind::Dir(index) => {
                    let broker = mv.dirs[index].broker;
                    receives(broker, seen(broker).and_then(|it| it.future.as_ref()).map(|(_, bytes)| *bytes));
                }
                Kind::Leader => {}
            }
        }
        brokers
    }

    /// How far it is, by what was seen last.
    pub fn progress(&self, sight: &Sight) -> Progress {
        let mut progress = Progress::default();
        for task in self.tasks() {
            let mv = &self.order().moves[task.of];
            let size = |broker| sight.dirs.get(&(broker, mv.partition.clone()));
            match task.kind {
                Kind::Replicas => {
                    progress.replicas.count(task.stage);
                    progress.bytes_total += mv.bytes_between_brokers();
                    progress.bytes_done += match task.stage {
                        Stage::Ended(End::Completed) => mv.bytes_between_brokers(),
                        Stage::InProgress { .. } => {
                            mv.added().filter_map(size).map(|seen| seen.bytes.min(mv.bytes)).sum()
                        }
                        _ => 0,
                    };
                }
                Kind::Dir(index) => {
                    progress.dirs.count(task.stage);
                    progress.dir_bytes_total += mv.bytes;
                    progress.dir_bytes_done += match task.stage {
                        Stage::Ended(End::Completed) => mv.bytes,
                        Stage::InProgress { .. } => size(mv.dirs[index].broker)
                            .and_then(|seen| seen.future.as_ref())
                            .map_or(0, |(_, bytes)| *bytes.min(&mv.bytes)),
                        _ => 0,
                    };
                }
                Kind::Leader => progress.leaders.count(task.stage),
            }
        }
        progress
    }
}
