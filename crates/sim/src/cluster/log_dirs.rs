//! Log directories: what they show, and replicas on their way between them.

use std::collections::{BTreeMap, BTreeSet};

use super::Cluster;
use super::topic::Future;
use crate::code::{Code, Refusal};
use crate::ids::{BrokerId, TopicPartition};

/// A log directory as its broker shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirView {
    /// Its path.
    pub path: String,
    /// Set if it has failed; then nothing else is shown.
    pub error: Option<Code>,
    /// Bytes it holds, or -1.
    pub total_bytes: i64,
    /// Bytes left, or -1.
    pub usable_bytes: i64,
    /// Whether new replicas stay away from it.
    pub cordoned: bool,
    /// The replicas in it, by topic and partition.
    pub replicas: Vec<ReplicaView>,
}

/// A replica as its directory shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaView {
    /// Of which partition.
    pub partition: TopicPartition,
    /// Bytes there.
    pub size: u64,
    /// Records missing; only ever not 0 for a future replica.
    pub offset_lag: i64,
    /// Whether it replaces the present one once it has caught up.
    pub is_future: bool,
}

impl Cluster {
    /// The directories of a broker: all replicas, or those of `among`.
    pub fn describe_log_dirs(&self, broker: BrokerId, among: Option<&[TopicPartition]>) -> Vec<DirView> {
        let Some(it) = self.brokers.get(&broker) else { return Vec::new() };
        let among = among.map(|among| {
            let mut by_topic: BTreeMap<&str, BTreeSet<i32>> = BTreeMap::new();
            for tp in among {
                by_topic.entry(&tp.topic).or_default().insert(tp.partition);
            }
            by_topic
        });
        let mut dirs: Vec<DirView> = it
            .dirs
            .iter()
            .map(|dir| DirView {
                path: dir.spec.path.clone(),
                error: dir.failed.then_some(Code::KafkaStorageError),
                total_bytes: if dir.failed { -1 } else { dir.spec.capacity as i64 },
                usable_bytes: if dir.failed { -1 } else { dir.spec.capacity as i64 },
                cordoned: dir.cordoned && !dir.failed,
                replicas: Vec::new(),
            })
            .collect();
        for (name, topic) in &self.topics {
            let numbers = among.as_ref().map(|among| among.get(&**name));
            for (number, partition) in (0..).zip(&topic.partitions) {
                let Some(replica) = partition.replica(broker).filter(|replica| replica.appears_at <= self.now) else {
                    continue;
                };
                let extent = topic.extent(number, self.now);
                let position = replica.position(&extent);
                // All of them fill the disk, whichever are asked for.
                let wanted = numbers.is_none_or(|these| these.is_some_and(|these| these.contains(&number)));
                let mut show = |dir: usize, position: f64, future: bool| {
                    let Some(dir) = dirs.get_mut(dir).filter(|dir| dir.error.is_none()) else { return };
                    let size = extent.size_up_to(position).round() as u64;
                    dir.usable_bytes = (dir.usable_bytes - size as i64).max(0);
                    if wanted {
                        let missing = (extent.end - position.max(extent.start)).max(0.0);
                        let lag = (missing / topic.load().record_bytes.max(1.0)).ceil() as i64;
                        let offset_lag = if future { lag } else { 0 };
                        let partition = TopicPartition { topic: name.clone(), partition: number };
                        dir.replicas.push(ReplicaView { partition, size, offset_lag, is_future: future });
                    }
                };
                show(replica.dir, position, false);
                if let Some(future) = replica.future {
                    show(future.dir, future.position, true);
                }
            }
        }
        let listed = dirs.into_iter().zip(&it.dirs).filter(|(_, dir)| !dir.retired);
        listed.map(|(view, _)| view).collect()
    }

    /// Sends a replica of `broker` to another of its directories; its present one calls that off.
    /// For a replica that is not there yet the choice is remembered, although the answer is an error.
    pub fn alter_replica_log_dir(&mut self, broker: BrokerId, tp: &TopicPartition, path: &str) -> Result<(), Refusal> {
        let now = self.now;
        let Some(it) = self.brokers.get_mut(&broker) else { return Err(Code::ReplicaNotAvailable.plain()) };
        let Some(dir) = it.dir_at(path) else {
            return Err(
                Code::LogDirNotFound.because(format!("The log directory {path} is not found in the broker config."))
            );
        };
        if it.dirs[dir].failed {
            return Err(Code::KafkaStorageError.because(format!("Log directory {path} is offline")));
        }
        if it.dirs[dir].cordoned {
            return Err(Code::InvalidReplicaAssignment.because(format!("Log directory {path} is cordoned")));
        }
        let Some(topic) = self.topics.get_mut(&tp.topic) else { return Err(Code::UnknownTopicOrPartition.plain()) };
        let start = topic.extent(tp.partition, now).start;
        let Some(partition) = topic.partition_mut(tp.partition) else {
            return Err(Code::UnknownTopicOrPartition.plain());
        };
        let Some(replica) = partition.replica_mut(broker).filter(|replica| replica.appears_at <= now) else {
            it.remembered.insert(tp.clone(), dir);
            return Err(Code::ReplicaNotAvailable.because(format!("Partition {tp} is not available")));
        };
        if it.dirs[replica.dir].failed {
            return Err(Code::KafkaStorageError.because(format!("Partition {tp} is offline")));
        }
        if replica.future.is_some_and(|future| future.dir == dir) {
            return Ok(());
        }
        if let Some(called_off) = replica.future.take() {
            it.dirs[called_off.dir].logs -= 1;
            it.dir_moves.remove(tp);
        }
        if replica.dir != dir {
            replica.future = Some(Future { dir, position: start });
            it.dirs[dir].logs += 1;
            it.dir_moves.insert(tp.clone());
            it.dir_moves_begun += 1;
        }
        Ok(())
    }

    /// How often a replica of a broker was sent to another of its directories: one that is sent there once more while it
    /// is on its way does not set out again.
    pub fn dir_moves_begun(&self, broker: BrokerId) -> u64 {
        self.brokers.get(&broker).map_or(0, |it| it.dir_moves_begun)
    }

    /// Bytes used in every directory that holds a log, in one walk over all partitions.
    pub(super) fn used_bytes(&self) -> BTreeMap<(BrokerId, usize), f64> {
        let mut used: BTreeMap<(BrokerId, usize), f64> = BTreeMap::new();
        for topic in self.topics.values() {
            for (number, partition) in (0..).zip(&topic.partitions) {
                let extent = topic.extent(number, self.now);
                for replica in &partition.replicas {
                    let position = replica.position(&extent);
                    *used.entry((replica.broker, replica.dir)).or_default() += extent.size_up_to(position);
                    if let Some(future) = replica.future {
                        *used.entry((replica.broker, future.dir)).or_default() += extent.size_up_to(future.position);
                    }
                }
            }
        }
        used
    }
}
