//! The simulated load as brokers feel it.

use std::collections::BTreeMap;

use super::Cluster;
use super::topic::{Replica, Topic, Weight};
use crate::ids::{BrokerId, TopicPartition};
use crate::traffic::{Load, Tape};

/// Bytes per second that a broker handles.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BrokerLoad {
    /// From producers.
    pub bytes_in: f64,
    /// To consumers.
    pub bytes_out: f64,
    /// From leaders elsewhere.
    pub replication_in: f64,
    /// To followers elsewhere.
    pub replication_out: f64,
    /// Of `replication_in`, what counts against the broker's quota as a follower.
    pub throttled_in: f64,
    /// Of `replication_out`, what counts against its quota as a leader.
    pub throttled_out: f64,
    /// Records per second from producers.
    pub messages_in: f64,
    /// Produce requests per second.
    pub produce_requests: f64,
    /// Fetch requests per second of consumers.
    pub fetch_requests: f64,
}

impl BrokerLoad {
    pub(crate) fn of(weight: &Weight, load: &Load, rate: f64) -> Self {
        let bytes_in = weight.leads * rate;
        let bytes_out = bytes_in * load.fan_out;
        let messages_in = bytes_in / load.record_bytes.max(1.0);
        let produce_requests = messages_in / load.records_per_request.max(1.0);
        Self {
            bytes_in,
            bytes_out,
            replication_in: weight.follows * rate,
            replication_out: weight.feeds * rate,
            throttled_in: weight.follows_throttled * rate,
            throttled_out: weight.feeds_throttled * rate,
            messages_in,
            produce_requests,
            fetch_requests: produce_requests * load.fan_out,
        }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.bytes_in += other.bytes_in;
        self.bytes_out += other.bytes_out;
        self.replication_in += other.replication_in;
        self.replication_out += other.replication_out;
        self.throttled_in += other.throttled_in;
        self.throttled_out += other.throttled_out;
        self.messages_in += other.messages_in;
        self.produce_requests += other.produce_requests;
        self.fetch_requests += other.fetch_requests;
    }
}

impl Cluster {
    /// What every broker handles at this moment.
    pub fn loads(&mut self) -> BTreeMap<BrokerId, BrokerLoad> {
        self.weigh_topics();
        let mut loads: BTreeMap<BrokerId, BrokerLoad> =
            self.brokers.keys().map(|id| (*id, BrokerLoad::default())).collect();
        for topic in self.topics.values() {
            let rate = topic.load().rate(self.now);
            if rate <= 0.0 {
                continue;
            }
            for (broker, weight) in topic.weights.iter().flatten() {
                loads.entry(*broker).or_default().add(&BrokerLoad::of(weight, topic.load(), rate));
            }
        }
        loads
    }

    /// What is written to a topic and read from it, if there is such a topic.
    pub fn load_of(&self, topic: &str) -> Option<&Load> {
        self.topics.get(topic).map(|topic| topic.load())
    }

    /// Changes a topic's load from now on.
    pub fn set_load(&mut self, topic: &str, load: Load) {
        let now = self.now;
        self.changing_shares(topic, |topic| topic.history.change(now, load));
        self.look_at_disks_soon();
    }

    /// Puts simulated bytes into a partition at once.
    pub fn fill(&mut self, partition: &TopicPartition, bytes: u64) {
        let now = self.now;
        let found = self.topics.get_mut(&partition.topic).and_then(|topic| topic.with_history(partition.partition));
        if let Some((history, it)) = found {
            it.tape.add(bytes as f64, history, now);
        }
        self.look_at_disks_soon();
    }

    /// Bytes in a partition's log, as its leader has it.
    pub fn partition_size(&self, topic: &str, partition: i32) -> u64 {
        self.topics.get(topic).map_or(0, |topic| {
            let extent = topic.extent(partition, self.now);
            extent.size_up_to(extent.end).round() as u64
        })
    }

    pub(super) fn weigh_topics(&mut self) {
        for topic in self.topics.values_mut().filter(|topic| topic.weights.is_none()) {
            topic.weights = Some(topic.weigh());
        }
    }

    /// Changes what sizes are computed from, and keeps the sizes as they are.
    pub(super) fn changing_shares(&mut self, name: &str, change: impl FnOnce(&mut Topic)) {
        let now = self.now;
        // Copies feel it at once.
        self.felt_loads.0 = now;
        let Some(topic) = self.topics.get_mut(name) else { return };
        let starts: Vec<f64> =
            topic.partitions.iter().map(|it| it.tape.start(&topic.history, topic.rules.keep, now)).collect();
        change(topic);
        topic.weights = None;
        let shares: Vec<f64> = (0..topic.partitions.len() as i32).map(|number| topic.share(number)).collect();
        for (n, (partition, share)) in topic.partitions.iter_mut().zip(shares).enumerate() {
            match starts.get(n) {
                Some(start) => partition.tape.set_share(share, &topic.history, now, *start),
                None => partition.tape = Tape::begin(now, share, &topic.history),
            }
        }
    }
}

/// What a reporter measures on one broker.
impl Cluster {
    pub(crate) fn cores(&self, broker: BrokerId) -> Option<f64> {
        self.brokers.get(&broker).map(|it| it.spec.cores)
    }

    /// The load of each topic that `broker` has a part of.
    pub(crate) fn topic_loads(&mut self, broker: BrokerId) -> Vec<(std::sync::Arc<str>, BrokerLoad)> {
        self.weigh_topics();
        let now = self.now;
        let weighed = self.topics.values().filter_map(|topic| {
            let weight = topic.weights.as_ref()?.get(&broker)?;
            Some((topic.name.clone(), BrokerLoad::of(weight, topic.load(), topic.load().rate(now))))
        });
        weighed.collect()
    }

    /// The sizes of the logs that `broker` has, led or followed; not those on a failed disk.
    pub(crate) fn log_sizes(&self, broker: BrokerId) -> Vec<(TopicPartition, f64)> {
        let Some(it) = self.brokers.get(&broker) else { return Vec::new() };
        let mut sizes = Vec::new();
        for (name, topic) in &self.topics {
            for (number, partition) in (0..).zip(&topic.partitions) {
                let there = |replica: &&Replica| replica.appears_at <= self.now && !it.dirs[replica.dir].failed;
                if let Some(replica) = partition.replica(broker).filter(there) {
                    let extent = topic.extent(number, self.now);
                    let tp = TopicPartition { topic: name.clone(), partition: number };
                    sizes.push((tp, extent.size_up_to(replica.position(&extent)).round()));
                }
            }
        }
        sizes
    }
}
