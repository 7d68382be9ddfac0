//! The one way a partition's record changes, and what follows from it on the brokers.

use std::sync::Arc;

use super::Cluster;
use super::registration::{Change, Registration};
use super::topic::{Lag, Progress, Replica};
use crate::ids::{BrokerId, Millis, TopicPartition};

/// A new replica shows up on its broker this much later.
const APPEARS_AFTER: Millis = 50;

impl Cluster {
    /// Changes one partition as `how` says; false if that changes nothing.
    pub(super) fn alter(
        &mut self,
        topic: &str,
        partition: i32,
        how: impl for<'c> FnOnce(Change<'c>) -> Option<Change<'c>>,
    ) -> bool {
        let Some((name, it)) = self.topics.get_key_value(topic) else { return false };
        let Some(part) = it.partition(partition) else { return false };
        let tp = TopicPartition { topic: name.clone(), partition };
        let min_isr = it.least_in_sync(part);
        let change = Change::of(&part.registration, min_isr, self.options.eligible_leader_replicas);
        let next = how(change).and_then(|change| change.build(|broker| part.may_lead(broker, &self.brokers)));
        match next {
            Some(next) => {
                self.install(&tp, next);
                true
            }
            None => false,
        }
    }

    /// Every partition with a replica on `broker`.
    pub(super) fn partitions_on(&self, broker: BrokerId) -> Vec<TopicPartition> {
        let all =
            self.topics.iter().flat_map(|(name, topic)| topic.partitions.iter().enumerate().map(move |p| (name, p)));
        all.filter(|(_, (_, partition))| partition.registration.replicas.contains(&broker))
            .map(|(name, (number, _))| TopicPartition { topic: Arc::clone(name), partition: number as i32 })
            .collect()
    }

    /// Makes `next` the partition's record, and the brokers follow it.
    pub(super) fn install(&mut self, tp: &TopicPartition, next: Registration) {
        self.next_metadata_offset();
        let oldest = self.oldest_view();
        let now = self.now;
        let Some(topic) = self.topics.get_mut(&tp.topic) else { return };
        topic.weights = None;
        let extent = topic.extent(tp.partition, now);
        let (start_offset, end_offset) = (topic.start_offset(tp.partition, now), topic.end_offset(tp.partition, now));
        let mark = topic.high_watermark(tp.partition, now);
        let Some((history, partition)) = topic.with_history(tp.partition) else { return };

        let before = std::mem::replace(&mut partition.registration, next);
        partition.past.retain(|(until, _)| *until >= oldest);
        partition.past.push((now, before.clone()));
        let after = partition.registration.clone();
        if after.leader != before.leader {
            partition.led_since = after.leader_epoch;
        }

        for gone in before.replicas.iter().filter(|broker| !after.replicas.contains(broker)) {
            if let Some(at) = partition.replicas.iter().position(|replica| replica.broker == *gone) {
                let replica = partition.replicas.remove(at);
                if let Some(broker) = self.brokers.get_mut(gone) {
                    broker.dirs[replica.dir].logs -= 1;
                    if let Some(future) = replica.future {
                        broker.dirs[future.dir].logs -= 1;
                    }
                    broker.behind.remove(tp);
                    broker.dir_moves.remove(tp);
                }
            }
        }
        for new in after.replicas.iter().filter(|broker| !before.replicas.contains(broker)) {
            let Some(broker) = self.brokers.get_mut(new) else { continue };
            let dir = broker.dir_for(tp);
            broker.dirs[dir].logs += 1;
            broker.behind.insert(tp.clone());
            let progress = Progress::Behind(Lag::at(extent.start, start_offset, now));
            let appears_at = now + APPEARS_AFTER;
            partition.replicas.push(Replica { broker: *new, dir, progress, appears_at, future: None });
        }

        // Whoever was chosen while nobody could reach it has led nothing. Now that another leads it is behind, as it was.
        if let Some(former) = before.leader.filter(|former| after.leader != Some(*former))
            && let Some(broker) = self.brokers.get_mut(&former).filter(|broker| !broker.is_running())
            && let Some(replica) = partition.replica_mut(former)
            && replica.progress == Progress::Following
        {
            replica.progress = Progress::Behind(Lag::at(extent.end, end_offset, now));
            broker.behind.insert(tp.clone());
        }
        if let Some(leader) = after.leader
            && let Some(replica) = partition.replica_mut(leader)
            && let Progress::Behind(lag) = replica.progress
        {
            // A leader is never behind: what it does not have is lost.
            replica.progress = Progress::Following;
            let real_lost = partition.log.appended_bytes();
            partition.log.truncate(lag.offset);
            let real_lost = (real_lost - partition.log.appended_bytes()) as f64;
            let simulated_lost = (extent.end - lag.position - real_lost).max(0.0);
            partition.tape.cut(simulated_lost, lag.offset - partition.log.records(), history, now);
            let end = partition.tape.end(history, now) + partition.log.appended_bytes() as f64;
            let records = partition.tape.records(history, now) + partition.log.records();
            let end_offset = records.max(partition.log.end_offset());
            for replica in &mut partition.replicas {
                if let Progress::Behind(lag) = &mut replica.progress {
                    lag.position = lag.position.min(end);
                    lag.offset = lag.offset.min(end_offset);
                }
            }
            if let Some(broker) = self.brokers.get_mut(&leader) {
                broker.behind.remove(tp);
            }
        }
        let led = after.leader.and_then(|leader| self.brokers.get(&leader)).is_some_and(|leader| leader.is_running());
        partition.tape.set_silent(!led, history, now);
        topic.hold_mark(tp.partition, mark, now);
    }

    /// The replica on `broker` stops following: its process, link or disk is gone.
    pub(super) fn stop_following(&mut self, tp: &TopicPartition, broker: BrokerId) {
        let now = self.now;
        let Some(topic) = self.topics.get_mut(&tp.topic) else { return };
        let position = topic.extent(tp.partition, now).end;
        let offset = topic.end_offset(tp.partition, now);
        topic.weights = None;
        self.felt_loads.0 = now;
        let Some((history, partition)) = topic.with_history(tp.partition) else { return };
        if partition.registration.leader == Some(broker) {
            partition.tape.set_silent(true, history, now);
        }
        if let Some(replica) = partition.replica_mut(broker)
            && replica.progress == Progress::Following
        {
            replica.progress = Progress::Behind(Lag::at(position, offset, now));
            if let Some(broker) = self.brokers.get_mut(&broker) {
                broker.behind.insert(tp.clone());
            }
        }
    }
}
