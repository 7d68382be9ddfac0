//! What Cruise Control's reporter plug-in would tell of a broker: records for its metrics topic.
//!
//! Layout, big-endian: class (0 broker, 1 topic, 2 partition), version 0, type, time in
//! milliseconds, broker id; then a topic's length and name, a partition's number, and the value.
//! The plug-in takes topics' names from JMX tags, where a dot has become an underscore.

use bytes::{BufMut, Bytes, BytesMut};

use crate::cluster::{BrokerLoad, Cluster};
use crate::ids::BrokerId;

/// One record for the metrics topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricRecord {
    /// Wall-clock time in milliseconds.
    pub timestamp: i64,
    /// The topic's name, or the broker's id in decimal.
    pub key: String,
    /// The metric.
    pub value: Bytes,
}

/// What is measured of a topic on a broker: type id and value. What is replicated (11 and 12) brokers count for all topics
/// together only, so the plug-in has nothing to tell of it.
fn topic_metrics(load: &BrokerLoad) -> [(u8, f64); 5] {
    [
        (2, load.bytes_in),
        (3, load.bytes_out),
        (13, load.produce_requests),
        (14, load.fetch_requests),
        (15, load.messages_in),
    ]
}

/// What is measured of a broker as a whole.
fn broker_metrics(load: &BrokerLoad, cores: f64) -> Vec<(u8, f64)> {
    // A core is worth 100 MB/s in from producers, or so; the rest costs less.
    let work = load.bytes_in / 100e6 + load.bytes_out / 200e6 + (load.replication_in + load.replication_out) / 200e6;
    let cpu = (0.02 + work / cores.max(1.0)).min(1.0);
    // Waiting grows as the broker nears its limit.
    let wait = 0.2 / (1.02 - cpu);
    let mut metrics = vec![
        (0, load.bytes_in),
        (1, load.bytes_out),
        (5, cpu),
        (6, load.replication_in),
        (7, load.replication_out),
        (8, load.produce_requests),
        (9, load.fetch_requests),
        (10, load.messages_in),
        (16, load.produce_requests),
        (17, load.fetch_requests),
        (18, load.replication_out / 1e6),
        (19, 1.0 - cpu),
        (20, 0.0),
        (21, 0.0),
    ];
    // Queue, total and local times of the three kinds of requests, then the log's flushes: maximum
    // and mean first (22 to 42), the 50th and the 999th permille after (43 to 62).
    for (first, factors) in [(22, [10.0, 1.0]), (28, [20.0, 4.0]), (34, [15.0, 3.0])] {
        metrics.extend((0..6).map(|n| (first + n, wait * factors[usize::from(n % 2)])));
    }
    metrics.extend([(40, 0.1), (41, wait * 20.0), (42, wait * 4.0)]);
    for (first, factors) in [(43, [0.8, 8.0]), (49, [3.0, 16.0]), (55, [2.0, 12.0])] {
        metrics.extend((0..6).map(|n| (first + n, wait * factors[usize::from(n % 2)])));
    }
    metrics.extend([(61, wait * 3.0), (62, wait * 18.0)]);
    metrics
}

/// A topic's name as a JMX tag has it.
fn tag(topic: &str) -> String {
    topic.replace('.', "_")
}

impl Cluster {
    /// The records that a broker's reporter sends at this moment. A broker that is down sends none.
    pub fn metrics(&mut self, broker: BrokerId) -> Vec<MetricRecord> {
        let timestamp = self.wall_clock();
        let Some(cores) = self.cores(broker).filter(|_| self.is_reachable(broker)) else { return Vec::new() };
        let mut records = Vec::new();
        let mut total = BrokerLoad::default();
        let write = |class: u8, kind: u8, topic: Option<&str>, partition: Option<i32>, value: f64| {
            let mut bytes = BytesMut::with_capacity(40);
            bytes.put_slice(&[class, 0, kind]);
            bytes.put_i64(timestamp);
            bytes.put_i32(broker.0);
            if let Some(topic) = topic {
                bytes.put_i32(topic.len() as i32);
                bytes.put_slice(topic.as_bytes());
            }
            if let Some(partition) = partition {
                bytes.put_i32(partition);
            }
            bytes.put_f64(value);
            let key = topic.map_or_else(|| broker.to_string(), str::to_owned);
            MetricRecord { timestamp, key, value: bytes.freeze() }
        };
        for (name, load) in self.topic_loads(broker) {
            total.add(&load);
            let name = tag(&name);
            records.extend(topic_metrics(&load).map(|(kind, value)| write(1, kind, Some(&name), None, value)));
        }
        for (tp, size) in self.log_sizes(broker) {
            records.push(write(2, 4, Some(&tag(&tp.topic)), Some(tp.partition), size));
        }
        records
            .extend(broker_metrics(&total, cores).into_iter().map(|(kind, value)| write(0, kind, None, None, value)));
        records
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_of_a_broker_is_told_once() {
        let mut kinds: Vec<u8> = broker_metrics(&BrokerLoad::default(), 8.0).iter().map(|(kind, _)| *kind).collect();
        kinds.extend(topic_metrics(&BrokerLoad::default()).map(|(kind, _)| kind));
        kinds.push(4);
        kinds.sort_unstable();
        // What is replicated of a topic is not known to anybody.
        assert_eq!(kinds, (0..=62).filter(|kind| ![11, 12].contains(kind)).collect::<Vec<u8>>());
    }
}
