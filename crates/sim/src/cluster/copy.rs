//! Time passes for copies: replicas that are behind fetch from their leaders, future replicas from
//! their own broker, and all of them share links, disks and quotas.

use std::collections::BTreeMap;

use super::Cluster;
use super::broker::Broker;
use super::configs::{DIR_RATE, FOLLOWER_RATE, LEADER_RATE};
use super::quota::COUNTED;
use super::share::{Flow, share};
use super::topic::{Lag, Progress};
use crate::ids::{BrokerId, Millis, TopicPartition};

/// The longest step while something is copied; also the time from one look at a quota to the next.
const STEP: Millis = 100;
/// What passes a quota before it is looked at again: a few large fetches, and in any case more than the rate allows.
const BURST: f64 = 4e6;
const BURST_PARTS: f64 = 2.0;
/// Copies get at least this part of a link or disk, however busy clients keep it.
const LEAST_PART: f64 = 0.05;
/// How long copies go by the same picture of clients' load.
const FELT_FOR: Millis = 5_000;

/// Sums of fractions are not exact.
const LESS_THAN_A_BYTE: f64 = 0.5;

/// One running copy.
struct Copy {
    partition: TopicPartition,
    to: BrokerId,
    /// Nothing for a copy between two directories of `to`.
    from: Option<BrokerId>,
    position: f64,
    leader_throttled: bool,
    follower_throttled: bool,
}

/// What copies use of the brokers, as indices into one list of capacities.
struct Resources {
    first: BTreeMap<BrokerId, usize>,
    capacity: Vec<f64>,
}

const LINK_OUT: usize = 0;
const LINK_IN: usize = 1;
const LEADER_QUOTA: usize = 2;
const FOLLOWER_QUOTA: usize = 3;
const DIR_QUOTA: usize = 4;
const DISKS: usize = 5;

impl Cluster {
    /// Moves the clock to `until`, in small steps while anything is copied.
    pub(super) fn copy_until(&mut self, until: Millis) {
        while self.now < until {
            let busy = self
                .brokers
                .values()
                .any(|broker| broker.is_running() && (!broker.behind.is_empty() || !broker.dir_moves.is_empty()));
            let step = if busy { STEP.min(until - self.now) } else { until - self.now };
            if busy {
                self.copy_for(step);
            } else {
                self.now += step;
            }
        }
    }

    fn copy_for(&mut self, step: Millis) {
        let seconds = step as f64 / 1_000.0;
        let copies = self.running_copies();
        if copies.is_empty() {
            self.now += step;
            return;
        }
        self.count_followers_in_sync();
        let resources = self.resources(seconds);
        let flows: Vec<Flow> = copies.iter().map(|copy| self.flow(copy, &resources, step)).collect();
        let given = share(resources.capacity, &flows);
        self.now += step;
        for (copy, bytes) in copies.iter().zip(given) {
            self.advance(copy, bytes);
        }
    }

    /// Who copies at this moment: source and target are reachable, and the disks are well.
    fn running_copies(&self) -> Vec<Copy> {
        let mut copies = Vec::new();
        for (to, broker) in self.brokers.iter().filter(|(_, broker)| broker.is_running()) {
            for tp in &broker.behind {
                let Some((topic, partition)) = self.lookup(tp) else { continue };
                let Some(replica) = partition.replica(*to) else { continue };
                let Progress::Behind(Lag { position, .. }) = replica.progress else { continue };
                let Some(from) = partition.registration.leader.filter(|leader| leader != to) else { continue };
                let source_is_well = self.brokers.get(&from).is_some_and(Broker::is_running);
                if !source_is_well || broker.dirs[replica.dir].failed || replica.appears_at > self.now {
                    continue;
                }
                copies.push(Copy {
                    partition: tp.clone(),
                    to: *to,
                    from: Some(from),
                    position,
                    leader_throttled: topic.rules.leader_throttled.has(tp.partition, from),
                    follower_throttled: topic.rules.follower_throttled.has(tp.partition, *to),
                });
            }
            for tp in &broker.dir_moves {
                let Some((_, partition)) = self.lookup(tp) else { continue };
                let Some(future) = partition.replica(*to).and_then(|replica| replica.future) else { continue };
                copies.push(Copy {
                    partition: tp.clone(),
                    to: *to,
                    from: None,
                    position: future.position,
                    leader_throttled: false,
                    follower_throttled: false,
                });
            }
        }
        copies
    }

    /// Followers in sync fetch throttled partitions as before, and that counts. While nothing is copied nobody looks at
    /// the quotas, so what flowed meanwhile is counted when a copy begins.
    fn count_followers_in_sync(&mut self) {
        self.feel_loads();
        let (until, from) = (self.now, self.followers_counted.max(self.now - COUNTED));
        self.followers_counted = until;
        for (id, broker) in &mut self.brokers {
            if let Some(load) = self.felt_loads.1.get(id) {
                broker.leader_traffic.record_steady(from, until, load.throttled_out);
                broker.follower_traffic.record_steady(from, until, load.throttled_in);
            }
        }
    }

    /// The same for records that a producer has sent.
    pub(super) fn count_written(&mut self, tp: &TopicPartition, bytes: usize) {
        let (now, bytes) = (self.now, bytes as f64);
        let Some(topic) = self.topics.get(&tp.topic) else { return };
        let Some((partition, leader)) =
            topic.partition(tp.partition).and_then(|it| Some((it, it.registration.leader?)))
        else {
            return;
        };
        let followers = partition.replicas.iter().filter(|it| it.progress == Progress::Following);
        for follower in followers.map(|it| it.broker).filter(|it| *it != leader) {
            if topic.rules.leader_throttled.has(tp.partition, leader)
                && let Some(broker) = self.brokers.get_mut(&leader)
            {
                broker.leader_traffic.record(now, bytes);
            }
            if topic.rules.follower_throttled.has(tp.partition, follower)
                && let Some(broker) = self.brokers.get_mut(&follower)
            {
                broker.follower_traffic.record(now, bytes);
            }
        }
    }

    fn resources(&self, seconds: f64) -> Resources {
        let loads = &self.felt_loads.1;
        let mut resources = Resources { first: BTreeMap::new(), capacity: Vec::new() };
        for (id, broker) in &self.brokers {
            let load = loads.get(id).copied().unwrap_or_default();
            let left = |whole: f64, used: f64| (whole - used).max(whole * LEAST_PART) * seconds;
            let link = broker.spec.link_bytes * broker.pace;
            let quota = |key: &str, traffic: &super::quota::Windows| match self.broker_rate(*id, key) {
                Some(rate) if traffic.exceeds(rate, self.now) => 0.0,
                // Brokers look before each fetch, far more often than here: no rate is too high to be reached.
                Some(rate) => BURST.max(rate * seconds * BURST_PARTS),
                None => f64::INFINITY,
            };
            resources.first.insert(*id, resources.capacity.len());
            resources.capacity.extend([
                left(link, load.bytes_out + load.replication_out),
                left(link, load.bytes_in + load.replication_in),
                quota(LEADER_RATE, &broker.leader_traffic),
                quota(FOLLOWER_RATE, &broker.follower_traffic),
                quota(DIR_RATE, &broker.dir_traffic),
            ]);
            let written = (load.bytes_in + load.replication_in) / broker.dirs.len().max(1) as f64;
            resources.capacity.extend(broker.dirs.iter().map(|dir| left(dir.spec.disk_bytes * dir.pace, written)));
        }
        resources
    }

    /// Clients' load changes over hours; copies need not look at every topic in every step.
    fn feel_loads(&mut self) {
        if self.now >= self.felt_loads.0 {
            self.felt_loads = (self.now + FELT_FOR, self.loads());
        }
    }

    fn flow(&self, copy: &Copy, resources: &Resources, step: Millis) -> Flow {
        let at = |broker: BrokerId, what: usize| resources.first.get(&broker).map(|first| first + what);
        let mut uses: Vec<Option<usize>> = Vec::with_capacity(6);
        let mut want = 0.0;
        if let Some((topic, partition)) = self.lookup(&copy.partition) {
            // What comes in during the step is wanted too: who gets all of it keeps up from then on.
            let extent = topic.extent(copy.partition.partition, self.now + step);
            want = extent.end - copy.position.max(extent.start);
            let disk = |broker: BrokerId| partition.replica(broker).and_then(|it| at(broker, DISKS + it.dir));
            match copy.from {
                Some(from) => {
                    uses.extend([at(from, LINK_OUT), at(copy.to, LINK_IN), disk(from), disk(copy.to)]);
                    uses.push(at(from, LEADER_QUOTA).filter(|_| copy.leader_throttled));
                    uses.push(at(copy.to, FOLLOWER_QUOTA).filter(|_| copy.follower_throttled));
                }
                None => {
                    let future = partition.replica(copy.to).and_then(|replica| replica.future);
                    uses.extend([
                        disk(copy.to),
                        future.and_then(|it| at(copy.to, DISKS + it.dir)),
                        at(copy.to, DIR_QUOTA),
                    ]);
                }
            }
        }
        Flow { uses: uses.into_iter().flatten().collect(), want: want.max(0.0) }
    }

    /// Gives a copy its bytes; a copy that is complete takes its place.
    fn advance(&mut self, copy: &Copy, bytes: f64) {
        let now = self.now;
        let tp = &copy.partition;
        if let Some(from) = copy.from.and_then(|from| self.brokers.get_mut(&from)).filter(|_| copy.leader_throttled) {
            from.leader_traffic.record(now, bytes);
        }
        let Some(to) = self.brokers.get_mut(&copy.to) else { return };
        match copy.from {
            Some(_) if copy.follower_throttled => to.follower_traffic.record(now, bytes),
            Some(_) => {}
            None => to.dir_traffic.record(now, bytes),
        }
        let Some(topic) = self.topics.get_mut(&tp.topic) else { return };
        let extent = topic.extent(tp.partition, now);
        let position = copy.position.max(extent.start) + bytes;
        let complete = position + LESS_THAN_A_BYTE >= extent.end;
        let end = (extent.end, topic.end_offset(tp.partition, now));
        topic.weights = topic.weights.take().filter(|_| !complete);
        let Some(partition) = topic.partition_mut(tp.partition) else { return };
        let Some(replica) = partition.replica_mut(copy.to) else { return };
        match (copy.from, complete) {
            (None, false) => {
                if let Some(future) = &mut replica.future {
                    future.position = position;
                }
            }
            (None, true) => {
                if let Some(future) = replica.future.take() {
                    to.dirs[replica.dir].logs -= 1;
                    replica.dir = future.dir;
                }
                to.dir_moves.remove(tp);
            }
            (Some(_), false) => {
                if let Progress::Behind(lag) = &mut replica.progress {
                    lag.fetch(position, end, now);
                }
            }
            (Some(_), true) => {
                replica.progress = Progress::Following;
                to.behind.remove(tp);
                if to.is_active() {
                    self.join_isr(tp, copy.to);
                } else {
                    // It waits for the controller, and is looked at again in the next step.
                    to.behind.insert(tp.clone());
                    if let Some(replica) = partition.replica_mut(copy.to) {
                        replica.progress = Progress::Behind(Lag::at(end.0, end.1, now));
                    }
                }
            }
        }
    }

    /// The leader puts a replica that has caught up into the ISR, which is ascending from then on.
    fn join_isr(&mut self, tp: &TopicPartition, broker: BrokerId) {
        self.alter(&tp.topic, tp.partition, |change| {
            let mut isr = change.present_isr().to_vec();
            if !isr.contains(&broker) {
                isr.push(broker);
                isr.sort_unstable();
            }
            Some(change.isr(isr))
        });
    }

    pub(super) fn lookup(&self, tp: &TopicPartition) -> Option<(&super::topic::Topic, &super::topic::Partition)> {
        let topic = self.topics.get(&tp.topic)?;
        Some((topic, topic.partition(tp.partition)?))
    }
}
