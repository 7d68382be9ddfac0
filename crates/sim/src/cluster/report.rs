//! The metrics reporter plug-in of each broker: it makes the metrics topic if that is absent, and
//! produces its records there once an interval, as any producer would.

use bytes::Bytes;
use evenkeel_kafka::records::{BatchOptions, Compression, Producer, Record, encode_batch};

use super::topics::NewTopic;
use super::{Cluster, Event, Process};
use crate::ids::{BrokerId, Millis, TopicPartition};
use crate::metrics::MetricRecord;

/// How the brokers' reporters are set up; the defaults are those of the plug-in with
/// `cruise.control.metrics.topic.auto.create` on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reporter {
    /// cruise.control.metrics.topic
    pub topic: String,
    /// cruise.control.metrics.reporter.metrics.reporting.interval.ms
    pub interval: Millis,
    /// cruise.control.metrics.topic.num.partitions; -1 is the cluster's default.
    pub partitions: i32,
    /// cruise.control.metrics.topic.replication.factor; -1 is the cluster's default.
    pub factor: i16,
    /// cruise.control.metrics.topic.retention.ms
    pub retention: Millis,
}

impl Default for Reporter {
    fn default() -> Self {
        let topic = "__CruiseControlMetrics".to_owned();
        Self { topic, interval: 60_000, partitions: -1, factor: -1, retention: 5 * 3_600_000 }
    }
}

/// The plug-in's batch.size.
const BATCH_BYTES: usize = 800_000;

impl Cluster {
    /// The broker's next report is one interval away.
    pub(super) fn schedule_report(&mut self, id: BrokerId) {
        let epoch = self.broker_epoch(id);
        if let (Some(reporter), Some(epoch)) = (self.reporter_of(id), epoch) {
            let when = self.now + reporter.interval.max(1);
            self.at(when, Event::Report(id, epoch));
        }
    }

    /// One broker reports, if it is the process that meant to, and can be heard.
    pub(super) fn report(&mut self, id: BrokerId, epoch: i64) {
        let lives = |it: &super::Broker| it.epoch == epoch && it.process != Process::Down;
        let Some(reporter) = self.reporter_of(id).cloned() else { return };
        if !self.brokers.get(&id).is_some_and(lives) {
            return;
        }
        self.schedule_report(id);
        let records = self.metrics(id);
        if records.is_empty() {
            return;
        }
        if !self.topics.contains_key(reporter.topic.as_str()) {
            let topic = NewTopic::new(&reporter.topic, reporter.partitions, reporter.factor)
                .config("cleanup.policy", "delete")
                .config("retention.ms", &reporter.retention.to_string());
            // Where it cannot be made, the records of this interval are lost, as they are in life.
            drop(self.create_topic(&topic, false));
        }
        self.send_reports(&reporter.topic, &records);
    }

    fn reporter_of(&self, id: BrokerId) -> Option<&Reporter> {
        let own = self.brokers.get(&id).and_then(|broker| broker.spec.reporter.as_ref());
        own.or(self.options.reporter.as_ref())
    }

    fn send_reports(&mut self, topic: &str, records: &[MetricRecord]) {
        let Some((name, it)) = self.topics.get_key_value(topic) else { return };
        let (name, count) = (name.clone(), it.partitions.len());
        let mut by_partition: Vec<Vec<Record>> = vec![Vec::new(); count];
        for record in records {
            let key = Bytes::copy_from_slice(record.key.as_bytes());
            let at = partition_of(&key, count);
            let (value, timestamp) = (Some(record.value.clone()), record.timestamp);
            by_partition[at].push(Record { key: Some(key), value, headers: Vec::new(), timestamp });
        }
        let producer = Producer { id: -1, epoch: -1, sequence: -1 };
        let options = BatchOptions { compression: Compression::Gzip, producer, transactional: false };
        for (partition, records) in (0..).zip(by_partition) {
            let tp = TopicPartition { topic: name.clone(), partition };
            let Some(leader) = self.registration(topic, partition).and_then(|it| it.leader) else { continue };
            for batch in batches(&records) {
                if let Some(bytes) = encode_batch(batch, &options).ok().filter(|_| self.is_reachable(leader)) {
                    drop(self.produce_own(leader, &tp, bytes));
                }
            }
        }
    }
}

/// Runs of records that fit a batch each.
fn batches(records: &[Record]) -> impl Iterator<Item = &[Record]> {
    // Class, version, type, time, broker, lengths and value, and what frames a record.
    const FRAME: usize = 64;
    let size = |record: &Record| FRAME + 2 * record.key.as_ref().map_or(0, Bytes::len);
    let largest = records.iter().map(size).max().unwrap_or(FRAME);
    records.chunks((BATCH_BYTES / largest).max(1))
}

/// The partition of a key, as Java's producer chooses it.
fn partition_of(key: &[u8], count: usize) -> usize {
    let positive = murmur2(key) & 0x7fff_ffff;
    positive as usize % count.max(1)
}

fn murmur2(data: &[u8]) -> u32 {
    const M: u32 = 0x5bd1_e995;
    let mut hash = 0x9747_b28c ^ data.len() as u32;
    let mut words = data.chunks_exact(4);
    for word in &mut words {
        let word = word.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes)).wrapping_mul(M);
        hash = hash.wrapping_mul(M) ^ (word ^ (word >> 24)).wrapping_mul(M);
    }
    let rest = words.remainder();
    if !rest.is_empty() {
        let tail = rest.iter().rev().fold(0, |tail: u32, byte| (tail << 8) | u32::from(*byte));
        hash = (hash ^ tail).wrapping_mul(M);
    }
    hash = (hash ^ (hash >> 13)).wrapping_mul(M);
    hash ^ (hash >> 15)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_hashed_as_javas_producer_does() {
        let known = [
            ("21", -973_932_308),
            ("foobar", -790_332_482),
            ("a-little-bit-long-string", -985_981_536),
            ("a-little-bit-longer-string", -1_486_304_829),
            ("abc", 479_470_107),
        ];
        for (key, hash) in known {
            assert_eq!(murmur2(key.as_bytes()) as i32, hash, "{key}");
        }
    }
}
