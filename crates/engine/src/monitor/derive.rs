//! From what brokers told during one interval to one sample for each partition and broker.
//!
//! Brokers tell rates by topic, so the partitions of a topic that one broker leads are taken to be
//! alike. Only sizes are told by partition. The processor's time is shared out by bytes, each kind
//! with a weight of its own.

use std::collections::{BTreeMap, BTreeSet};

use evenkeel_balancer::cluster::CpuWeights;
use evenkeel_kafka::TopicPartition;

use super::{
    raw::kind,
    sample::{Metric, PartitionSample},
    told::{Rates, Told},
};

/// Who led what when the interval ended, and on how many cores.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Leaders<'a> {
    /// The leader of each partition that has one.
    pub of: BTreeMap<&'a TopicPartition, i32>,
    /// Cores of each broker.
    pub cores: BTreeMap<i32, f64>,
}

/// What came of an interval.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Derived {
    /// One for each partition whose leader told enough.
    pub partitions: Vec<PartitionSample>,
    /// What each broker told of itself: the mean of each kind.
    pub brokers: BTreeMap<i32, BTreeMap<u8, f64>>,
    /// Bytes that each broker holds, by what it told.
    pub held: BTreeMap<i32, f64>,
    /// Brokers that lead something and told too little to be believed.
    pub silent: BTreeSet<i32>,
}

/// Of a broker's topics and partitions, this share may be missing.
const MAY_BE_MISSING: f64 = 0.01;
/// A partition with this much more than its broker as a whole is mistaken, if the broker has more
/// than [`WORTH_JUDGING`] bytes per second.
const MISTAKEN: f64 = 1.05;
const WORTH_JUDGING: f64 = 10.0;

/// Samples of the interval that ended at `time`.
pub fn derive(mut told: Told, leaders: &Leaders<'_>, weights: CpuWeights, time: i64) -> Derived {
    told.settle();
    let mut derived = Derived { brokers: told.of_brokers(), held: told.held(), ..Derived::default() };
    derived.partitions.reserve_exact(leaders.of.len());
    let mut led: BTreeMap<i32, BTreeMap<&str, Vec<&TopicPartition>>> = BTreeMap::new();
    for (partition, leader) in &leaders.of {
        led.entry(*leader).or_default().entry(&partition.topic).or_default().push(partition);
    }
    for (broker, topics) in led {
        let partitions: usize = topics.values().map(Vec::len).sum();
        let topics: Vec<(String, Vec<&TopicPartition>)> =
            topics.into_iter().map(|(topic, partitions)| (as_told(topic), partitions)).collect();
        let untold = topics.iter().filter(|(topic, _)| told.topic(broker, topic).is_none()).count();
        let unsized_: usize = topics
            .iter()
            .map(|(topic, of)| of.iter().filter(|it| told.size(broker, topic, it.partition).is_none()).count())
            .sum();
        let too_many = |missing: usize, of: usize| missing as f64 > MAY_BE_MISSING * of as f64;
        if too_many(untold, topics.len()) || too_many(unsized_, partitions) {
            derived.silent.insert(broker);
            continue;
        }
        let total = told.total(broker);
        let cpu = derived.brokers.get(&broker).and_then(|kinds| kinds.get(&kind::BROKER_CPU_UTIL)).copied();
        let core_percent = cpu.zip(leaders.cores.get(&broker)).map(|(cpu, cores)| cpu * cores * 100.0);
        for (topic, partitions) in topics {
            let Some(rates) = told.topic(broker, &topic) else { continue };
            let each = rates.divided_by(partitions.len() as f64);
            if each.is_mistaken(&total) {
                continue;
            }
            for partition in partitions {
                let Some(size) = told.size(broker, &topic, partition.partition) else { continue };
                let mut values = each.values().with(Metric::Disk, size);
                if let Some(core_percent) = core_percent {
                    values = values.with(Metric::Cpu, core_percent * each.share_of(&total, weights));
                }
                derived.partitions.push(PartitionSample { partition: partition.clone(), leader: broker, time, values });
            }
        }
    }
    derived
}

/// The reporter's names of topics: dots mean something else where it takes them from.
fn as_told(topic: &str) -> String {
    topic.replace('.', "_")
}

impl Rates {
    fn bytes_in(&self) -> f64 {
        self.get(kind::TOPIC_BYTES_IN)
    }

    /// To consumers and to followers.
    fn bytes_out(&self) -> f64 {
        self.get(kind::TOPIC_BYTES_OUT) + self.get(kind::TOPIC_REPLICATION_BYTES_OUT)
    }

    /// Whether one partition has more than all of its broker.
    fn is_mistaken(&self, broker: &Rates) -> bool {
        let more = |own: f64, all: f64| all > WORTH_JUDGING && own > MISTAKEN * all;
        more(self.bytes_in(), broker.bytes_in()) || more(self.bytes_out(), broker.bytes_out())
    }

    /// A partition's share of its broker's processor.
    fn share_of(&self, broker: &Rates, weights: CpuWeights) -> f64 {
        let (all_in, all_out) = (broker.bytes_in(), broker.bytes_out());
        let cost_in = f64::from(weights.leader_in);
        let cost_out = f64::from(weights.leader_out);
        let following = f64::from(weights.follower_in) * broker.get(kind::TOPIC_REPLICATION_BYTES_IN);
        let work = cost_in * all_in + cost_out * all_out + following;
        if work <= 0.0 {
            return 0.0;
        }
        (cost_in * self.bytes_in().min(all_in) + cost_out * self.bytes_out().min(all_out)) / work
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monitor::raw::{RawMetric, Scope};

    fn derive(metrics: &[RawMetric], leaders: &[TopicPartition], weights: CpuWeights, time: i64) -> Derived {
        let leaders = Leaders { of: leaders.iter().map(|it| (it, 0)).collect(), cores: [(0, 4.0)].into() };
        let mut told = Told::default();
        metrics.iter().for_each(|metric| told.hear(metric));
        super::derive(told, &leaders, weights, time)
    }

    fn metric(kind: u8, scope: Scope, value: f64) -> RawMetric {
        RawMetric { kind, time: 0, broker: 0, scope, value }
    }

    fn topic(name: &str) -> Scope {
        Scope::Topic(name.to_owned())
    }

    /// What broker 0 leads.
    fn leaders(partitions: &[(&str, i32)]) -> Vec<TopicPartition> {
        partitions.iter().map(|(topic, partition)| TopicPartition::new(*topic, *partition)).collect()
    }

    fn sized(name: &str, partition: i32) -> RawMetric {
        metric(kind::PARTITION_SIZE, Scope::Partition(name.to_owned(), partition), 5e6)
    }

    #[test]
    fn a_topic_is_shared_out_evenly_and_the_processor_by_weighed_bytes() {
        let told = [
            // Told twice: the mean counts.
            metric(kind::TOPIC_BYTES_IN, topic("my_orders"), 150.0),
            metric(kind::TOPIC_BYTES_IN, topic("my_orders"), 250.0),
            metric(kind::TOPIC_BYTES_OUT, topic("my_orders"), 300.0),
            metric(kind::TOPIC_REPLICATION_BYTES_OUT, topic("my_orders"), 100.0),
            // Only followed.
            metric(kind::TOPIC_REPLICATION_BYTES_IN, topic("elsewhere"), 400.0),
            metric(kind::BROKER_CPU_UTIL, Scope::Broker, 0.5),
            sized("my_orders", 0),
            sized("my_orders", 1),
        ];
        let derived = derive(&told, &leaders(&[("my.orders", 0), ("my.orders", 1)]), CpuWeights::default(), 60_000);
        assert_eq!(derived.partitions.len(), 2);
        let values = derived.partitions[0].values;
        assert_eq!(values.get(Metric::LeaderBytesIn), Some(100.0));
        assert_eq!(values.get(Metric::LeaderBytesOut), Some(150.0));
        assert_eq!(values.get(Metric::ReplicationBytesOut), Some(50.0));
        assert_eq!(values.get(Metric::Disk), Some(5e6));
        // Half of four cores; of 0.7 x 200 + 0.15 x 400 + 0.15 x 400 weighed bytes a half of the first two.
        let cpu = values.get(Metric::Cpu).unwrap();
        assert!((cpu - 200.0 * (70.0 + 30.0) / 260.0).abs() < 1e-4, "{cpu}");
        assert_eq!(derived.partitions[1].partition, TopicPartition::new("my.orders", 1));
        assert_eq!(derived.held, [(0, 1e7)].into());
    }

    #[test]
    fn a_broker_that_told_too_little_is_not_believed() {
        let told = [metric(kind::TOPIC_BYTES_IN, topic("a"), 1.0), sized("a", 0)];
        let derived = derive(&told, &leaders(&[("a", 0), ("b", 0)]), CpuWeights::default(), 0);
        assert_eq!((derived.partitions, derived.silent), (vec![], [0].into()));
        // One partition in a hundred may be without a size.
        let partitions: Vec<(&str, i32)> = (0..100).map(|partition| ("a", partition)).collect();
        let mut told = vec![metric(kind::TOPIC_BYTES_IN, topic("a"), 1.0)];
        told.extend((1..100).map(|partition| sized("a", partition)));
        let derived = derive(&told, &leaders(&partitions), CpuWeights::default(), 0);
        assert_eq!((derived.partitions.len(), derived.silent.len()), (99, 0));
    }

    #[test]
    fn an_unmeasured_processor_stays_unknown() {
        let told = [metric(kind::TOPIC_BYTES_IN, topic("a"), 1.0), sized("a", 0)];
        let derived = derive(&told, &leaders(&[("a", 0)]), CpuWeights::default(), 0);
        assert_eq!(derived.partitions[0].values.get(Metric::Cpu), None);
    }
}
