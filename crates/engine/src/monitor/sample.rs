//! What one partition's leader carried during one interval, and its stored form.
//!
//! Stored: version, broker, nine numbers, time, partition, topic to the end. Version 0 had the
//! first four numbers only. The original stores cores, MB and KB per second, and so do we. A number
//! that was not measured is stored as NaN, which older readers take for a bad sample and skip rather
//! than for nothing.

use evenkeel_kafka::TopicPartition;

/// What is known of a partition, in the order in which it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(usize)]
pub enum Metric {
    /// Percent of one core.
    Cpu,
    /// Bytes on disk; the latest counts, all others are averaged.
    Disk,
    /// Bytes per second from producers.
    LeaderBytesIn,
    /// Bytes per second to consumers.
    LeaderBytesOut,
    /// Produce requests per second.
    ProduceRate,
    /// Fetch requests per second.
    FetchRate,
    /// Records per second from producers.
    MessagesIn,
    /// Bytes per second from a leader elsewhere.
    ReplicationBytesIn,
    /// Bytes per second to followers.
    ReplicationBytesOut,
}

/// How many there are.
pub const METRICS: usize = 9;

/// How much of ours one of the stored form is: a core is a hundred percent of one.
const STORED_UNITS: [f64; METRICS] = [100.0, 1024.0 * 1024.0, 1024.0, 1024.0, 1.0, 1.0, 1.0, 1024.0, 1024.0];

/// One number for each [`Metric`]; NaN stands for unknown.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Values(pub [f64; METRICS]);

impl Values {
    /// Nothing is known.
    pub const UNKNOWN: Values = Values([f64::NAN; METRICS]);

    /// The same with one more known.
    pub fn with(mut self, metric: Metric, value: f64) -> Self {
        self.0[metric as usize] = value;
        self
    }

    /// One of them, if it is known.
    pub fn get(&self, metric: Metric) -> Option<f64> {
        Some(self.0[metric as usize]).filter(|value| !value.is_nan())
    }
}

/// What one partition's leader carried.
#[derive(Debug, Clone, PartialEq)]
pub struct PartitionSample {
    /// Which partition.
    pub partition: TopicPartition,
    /// Who led it then.
    pub leader: i32,
    /// When, in milliseconds since 1970.
    pub time: i64,
    /// What it carried.
    pub values: Values,
}

impl PartitionSample {
    /// The stored form.
    pub fn write(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(89 + self.partition.topic.len());
        bytes.push(1);
        bytes.extend(self.leader.to_be_bytes());
        let stored = self.values.0.iter().zip(STORED_UNITS).map(|(value, unit)| value / unit);
        bytes.extend(stored.flat_map(f64::to_be_bytes));
        bytes.extend(self.time.to_be_bytes());
        bytes.extend(self.partition.partition.to_be_bytes());
        bytes.extend(self.partition.topic.as_bytes());
        bytes
    }

    /// From the stored form; `None` if it is none.
    pub fn read(bytes: &[u8]) -> Option<PartitionSample> {
        let (version, rest) = bytes.split_first()?;
        let known = match version {
            0 => 4,
            1 => METRICS,
            _ => return None,
        };
        let (leader, mut rest) = rest.split_first_chunk()?;
        let mut values = Values::UNKNOWN;
        for (value, unit) in values.0[..known].iter_mut().zip(STORED_UNITS) {
            let (bytes, after) = rest.split_first_chunk()?;
            (*value, rest) = (f64::from_be_bytes(*bytes) * unit, after);
        }
        let (time, rest) = rest.split_first_chunk()?;
        let (partition, topic) = rest.split_first_chunk()?;
        let topic = std::str::from_utf8(topic).ok().filter(|topic| !topic.is_empty())?;
        let sound = |value: &f64| value.is_nan() || value.is_finite() && *value >= 0.0;
        values.0.iter().all(sound).then(|| PartitionSample {
            partition: TopicPartition::new(topic, i32::from_be_bytes(*partition)),
            leader: i32::from_be_bytes(*leader),
            time: i64::from_be_bytes(*time),
            values,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> PartitionSample {
        PartitionSample {
            partition: TopicPartition::new("orders", 7),
            leader: 3,
            time: 1_767_225_600_123,
            values: Values([12.5, 3.0 * 1_048_576.0, 1024.0, 2048.0, 10.0, 20.0, 1e3, 0.0, 4096.0]),
        }
    }

    #[test]
    fn the_layout_is_the_original_s() {
        let bytes = sample().write();
        assert_eq!(bytes.len(), 89 + 6);
        assert_eq!(bytes[0], 1);
        assert_eq!(bytes[1..5], 3i32.to_be_bytes());
        assert_eq!(bytes[5..13], 0.125f64.to_be_bytes());
        assert_eq!(bytes[13..21], 3f64.to_be_bytes());
        assert_eq!(bytes[69..77], 4f64.to_be_bytes());
        assert_eq!(bytes[77..85], 1_767_225_600_123i64.to_be_bytes());
        assert_eq!(bytes[85..89], 7i32.to_be_bytes());
        assert_eq!(&bytes[89..], b"orders");
        assert_eq!(PartitionSample::read(&bytes), Some(sample()));
    }

    #[test]
    fn version_0_knows_four_numbers() {
        let new = sample().write();
        let old = [&[0], &new[1..37], &new[77..]].concat();
        let read = PartitionSample::read(&old).unwrap();
        assert_eq!(read.values.get(Metric::LeaderBytesOut), Some(2048.0));
        assert_eq!(read.values.get(Metric::ProduceRate), None);
        assert_eq!((read.partition, read.time), (sample().partition, sample().time));
    }

    #[test]
    fn what_is_unknown_stays_unknown_and_what_cannot_be_is_refused() {
        let partly = PartitionSample { values: Values::UNKNOWN.with(Metric::Disk, 5.0), ..sample() };
        let read = PartitionSample::read(&partly.write()).unwrap();
        assert_eq!((read.values.get(Metric::Disk), read.values.get(Metric::Cpu)), (Some(5.0), None));

        let bytes = sample().write();
        for length in 0..=89 {
            assert_eq!(PartitionSample::read(&bytes[..length]), None);
        }
        for value in [-1.0, f64::INFINITY] {
            let impossible = PartitionSample { values: sample().values.with(Metric::Cpu, value), ..sample() };
            assert_eq!(PartitionSample::read(&impossible.write()), None);
        }
        assert_eq!(PartitionSample::read(&[&[9], &bytes[1..]].concat()), None);
    }
}
