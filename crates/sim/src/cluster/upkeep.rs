//! What brokers do now and then by themselves: retention, compaction, failing full disks, and
//! leaving slow followers behind.

use std::collections::BTreeSet;

use super::life::leave_isr;
use super::topic::{Progress, Replica};
use super::{Cluster, Event, Process};
use crate::ids::{BrokerId, Millis, TopicPartition};

/// replica.lag.time.max.ms
const LONGEST_LAG: Millis = 30_000;
/// How often full disks are looked for while none can be full before the next look: it means looking at every log.
pub(super) const DISKS_WITH_ROOM: Millis = 60_000;
/// How often while one can be.
const DISKS_NEARLY_FULL: Millis = 1_000;

/// Links and disks that cannot carry what clients and followers in step want of them.
#[derive(Debug, Default)]
struct Overloaded {
    links_in: BTreeSet<BrokerId>,
    links_out: BTreeSet<BrokerId>,
    disks: BTreeSet<(BrokerId, usize)>,
}

impl Overloaded {
    fn slows(&self, follower: &Replica, leader: BrokerId) -> bool {
        self.links_in.contains(&follower.broker)
            || self.links_out.contains(&leader)
            || self.disks.contains(&(follower.broker, follower.dir))
    }

    fn is_empty(&self) -> bool {
        self.links_in.is_empty() && self.links_out.is_empty() && self.disks.is_empty()
    }
}

impl Cluster {
    /// Retention and compaction.
    pub(super) fn look_at_logs(&mut self) {
        let (now, wall_clock) = (self.now, self.wall_clock());
        for topic in self.topics.values_mut() {
            let (keep, cleaning) = (topic.rules.keep, topic.rules.cleaning);
            let oldest = keep.millis.map_or(i64::MIN, |millis| wall_clock.saturating_sub(millis));
            let bytes = keep.bytes.map_or(u64::MAX, |bytes| bytes as u64);
            for number in 0..topic.partitions.len() as i32 {
                if topic.partition(number).is_none_or(|it| it.log.records() == 0) {
                    continue;
                }
                let high_watermark = topic.high_watermark(number, now);
                let Some(partition) = topic.partition_mut(number) else { continue };
                partition.log.trim(oldest, bytes, high_watermark);
                if keep.compact {
                    let stable = partition.log.last_stable_offset(high_watermark);
                    partition.log.clean(&cleaning, wall_clock, stable);
                }
            }
        }
        self.count_held();
        // What no broker shows any more need not be kept.
        let oldest = self.oldest_view();
        self.gone.retain(|(when, _)| *when >= oldest);
    }

    /// A directory that is full fails, as it does in Kafka. The next look comes before another one can be full, unless
    /// the load changes, which asks for a look of its own.
    pub(super) fn look_at_disks(&mut self) {
        let loads = self.loads();
        let mut again = DISKS_WITH_ROOM;
        self.room = f64::INFINITY;
        for ((id, dir), used) in self.used_bytes() {
            let Some(broker) = self.brokers.get(&id).filter(|broker| broker.process != Process::Down) else { continue };
            let it = &broker.dirs[dir];
            if it.failed {
                continue;
            }
            let room = it.spec.capacity as f64 - used;
            if room <= 0.0 {
                self.fail_dir(id, dir);
                continue;
            }
            self.room = self.room.min(room);
            // What is simulated has its rate, and copies come as fast as the disk writes.
            let produced = loads.get(&id).map_or(0.0, |load| load.bytes_in + load.replication_in);
            if room < (produced + it.spec.disk_bytes) * DISKS_WITH_ROOM as f64 / 1_000.0 {
                again = DISKS_NEARLY_FULL;
            }
        }
        self.look_at_disks_in(again);
    }

    pub(super) fn look_at_disks_in(&mut self, millis: Millis) {
        self.disks_due = self.now + millis;
        self.at(self.disks_due, Event::LookAtDisks);
    }

    /// So much was written for real. It may all be on the fullest disk.
    pub(super) fn look_at_disks_before(&mut self, bytes: usize) {
        self.room -= bytes as f64;
        if self.room <= 0.0 {
            self.look_at_disks_soon();
        }
    }

    /// More may be written from now on than when disks were looked at last.
    pub(super) fn look_at_disks_soon(&mut self) {
        if self.disks_due > self.now + DISKS_NEARLY_FULL {
            self.look_at_disks_in(DISKS_NEARLY_FULL);
        }
    }

    /// Followers whose link or disk, or whose leader's link, cannot carry the load fall behind. From
    /// then on they copy what is left of the bandwidth, and the small ones are soon back in step.
    pub(super) fn slow_followers_fall_behind(&mut self) {
        let overloaded = self.overloaded();
        if overloaded.is_empty() {
            return;
        }
        let mut late: Vec<(TopicPartition, BrokerId)> = Vec::new();
        for (name, topic) in &self.topics {
            for (number, partition) in (0..).zip(&topic.partitions) {
                let Some(leader) = partition.registration.leader else { continue };
                let followers = partition.replicas.iter().filter(|replica| replica.broker != leader);
                let slowed = followers
                    .filter(|replica| replica.progress == Progress::Following && overloaded.slows(replica, leader));
                let tp = || TopicPartition { topic: name.clone(), partition: number };
                late.extend(slowed.map(|replica| (tp(), replica.broker)));
            }
        }
        for (tp, broker) in late {
            self.stop_following(&tp, broker);
        }
    }

    fn overloaded(&mut self) -> Overloaded {
        let loads = self.loads();
        let mut overloaded = Overloaded::default();
        for (id, broker) in self.brokers.iter().filter(|(_, broker)| broker.is_running()) {
            let load = loads.get(id).copied().unwrap_or_default();
            let over = |capacity: f64, wanted: f64| capacity <= 0.0 || wanted > capacity;
            let link = broker.spec.link_bytes * broker.pace;
            let written = load.bytes_in + load.replication_in;
            if over(link, written) {
                overloaded.links_in.insert(*id);
            }
            if over(link, load.bytes_out + load.replication_out) {
                overloaded.links_out.insert(*id);
            }
            let of_a_dir = written / broker.dirs.len().max(1) as f64;
            let slow = (0..).zip(&broker.dirs).filter(|(_, dir)| over(dir.spec.disk_bytes * dir.pace, of_a_dir));
            overloaded.disks.extend(slow.map(|(dir, _)| (*id, dir)));
        }
        overloaded
    }

    /// Leaders take out of the ISR who has not caught up for too long.
    pub(super) fn shrink_isrs(&mut self) {
        let too_old = self.now - LONGEST_LAG;
        let mut out: Vec<(TopicPartition, BrokerId)> = Vec::new();
        for (id, broker) in &self.brokers {
            for tp in &broker.behind {
                let Some((_, partition)) = self.lookup(tp) else { continue };
                let in_sync = partition.registration.isr.contains(id);
                let Some(leader) = partition.registration.leader.filter(|leader| in_sync && leader != id) else {
                    continue;
                };
                let leader_is_well = self.brokers.get(&leader).is_some_and(|leader| leader.is_running());
                let Some(Progress::Behind(lag)) = partition.replica(*id).map(|it| it.progress) else { continue };
                if leader_is_well && lag.caught_up_at < too_old {
                    out.push((tp.clone(), *id));
                }
            }
        }
        for (tp, id) in out {
            self.alter(&tp.topic, tp.partition, |change| Some(leave_isr(change, id)));
        }
    }
}
