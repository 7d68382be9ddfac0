//! What one broker did during one interval, and its stored form, version 5.
//!
//! Stored: version, broker, host, thirteen numbers, time, two queue lengths, then the request times
//! in the reporter's order (22 to 39), three of the log's flushes, and, since version 5, the
//! request times of 43 to 60 and the flushes' two. The original's records are two bytes longer
//! than what is in them; ours are as long as its. They are written for the original, and nobody here reads them.
//! Units are the original's: shares of 1, KB per second, MB, milliseconds.

use std::collections::BTreeMap;

use super::raw::kind;

/// Numbers before the time.
const LEADING: usize = 13;
/// Numbers after the queue lengths, up to version 4.
const TIMES: usize = 18 + 3;
/// Numbers that came with version 5.
const SINCE_5: usize = 18 + 2;
/// What the original leaves empty at the end.
const PADDING: [u8; 2] = [0; 2];

/// What one broker did.
#[derive(Debug, Clone, PartialEq)]
pub struct BrokerSample {
    /// Which.
    pub broker: i32,
    /// Its host.
    pub host: String,
    /// When, in milliseconds since 1970.
    pub time: i64,
    /// Processor, bytes in and out, replication in and out, records in, produce, consumer fetch and
    /// follower fetch requests, idle share of the request handlers, disk, produce and fetch rates.
    pub leading: [f64; LEADING],
    /// Requests waiting, answers waiting.
    pub queues: [i32; 2],
    /// Request times in milliseconds, then flush rate, maximum and mean.
    pub times: [f64; TIMES],
    /// Request times by permille, then the flushes'.
    pub permilles: [f64; SINCE_5],
}

/// The reporter's numbers of what comes before the time; the disk is none of them.
const LEADING_KINDS: [Option<u8>; LEADING] = [
    Some(kind::BROKER_CPU_UTIL),
    Some(kind::ALL_BYTES_IN),
    Some(kind::ALL_BYTES_OUT),
    Some(kind::ALL_REPLICATION_BYTES_IN),
    Some(kind::ALL_REPLICATION_BYTES_OUT),
    Some(kind::ALL_MESSAGES_IN),
    Some(16),
    Some(17),
    Some(18),
    Some(19),
    None,
    Some(kind::ALL_PRODUCE_REQUESTS),
    Some(kind::ALL_FETCH_REQUESTS),
];
/// Requests waiting, answers waiting.
const QUEUE_KINDS: [u8; 2] = [20, 21];
/// The first of the request times; flushes follow them without a gap.
const FIRST_TIME: u8 = 22;
/// The first of those since version 5; flushes follow them without a gap.
const FIRST_PERMILLE: u8 = 43;

impl BrokerSample {
    /// Out of what a broker told, by the reporter's numbers, and the bytes that it holds. `None` if it did
    /// not even tell of its processor.
    pub fn of(broker: i32, host: &str, time: i64, told: &BTreeMap<u8, f64>, bytes: f64) -> Option<BrokerSample> {
        told.get(&kind::BROKER_CPU_UTIL)?;
        let value = |kind: u8| {
            let unit = if kind::IN_BYTES.contains(&kind) { 1024.0 } else { 1.0 };
            told.get(&kind).map_or(0.0, |value| value / unit)
        };
        Some(BrokerSample {
            broker,
            host: host.to_owned(),
            time,
            leading: LEADING_KINDS.map(|kind| kind.map_or(bytes / (1024.0 * 1024.0), value)),
            queues: QUEUE_KINDS.map(|kind| value(kind) as i32),
            times: std::array::from_fn(|at| value(FIRST_TIME + at as u8)),
            permilles: std::array::from_fn(|at| value(FIRST_PERMILLE + at as u8)),
        })
    }

    /// The stored form. A host's name beyond 32 KiB is cut.
    pub fn write(&self) -> Vec<u8> {
        let host = &self.host.as_bytes()[..self.host.len().min(i16::MAX as usize)];
        let mut bytes = Vec::with_capacity(457 + host.len());
        bytes.push(5);
        bytes.extend(self.broker.to_be_bytes());
        bytes.extend((host.len() as i16).to_be_bytes());
        bytes.extend(host);
        bytes.extend(self.leading.iter().flat_map(|value| value.to_be_bytes()));
        bytes.extend(self.time.to_be_bytes());
        bytes.extend(self.queues.iter().flat_map(|length| length.to_be_bytes()));
        bytes.extend(self.times.iter().chain(&self.permilles).flat_map(|value| value.to_be_bytes()));
        bytes.extend(PADDING);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> BrokerSample {
        let count = |from: usize| move |index: usize| (from + index) as f64;
        BrokerSample {
            broker: 2,
            host: "kafka-2.local".to_owned(),
            time: 1_767_225_600_000,
            leading: std::array::from_fn(count(1)),
            queues: [3, 4],
            times: std::array::from_fn(count(100)),
            permilles: std::array::from_fn(count(200)),
        }
    }

    #[test]
    fn the_layout_is_the_original_s() {
        let bytes = sample().write();
        assert_eq!(bytes.len(), 457 + 13);
        assert_eq!(bytes[..7], [5, 0, 0, 0, 2, 0, 13]);
        assert_eq!(&bytes[7..20], b"kafka-2.local");
        let double = |at: usize| f64::from_be_bytes(bytes[20 + at..28 + at].try_into().unwrap());
        let after = 8 * LEADING;
        assert_eq!((double(0), double(after - 8)), (1.0, 13.0));
        assert_eq!(bytes[20 + after..28 + after], sample().time.to_be_bytes());
        assert_eq!(bytes[28 + after..36 + after], [0, 0, 0, 3, 0, 0, 0, 4]);
        let times = after + 16;
        assert_eq!((double(times), double(times + 8 * TIMES - 8)), (100.0, 120.0));
        let permilles = times + 8 * TIMES;
        assert_eq!((double(permilles), double(permilles + 8 * SINCE_5 - 8)), (200.0, 219.0));
        assert_eq!(bytes[20 + permilles + 8 * SINCE_5..], PADDING);
    }

    #[test]
    fn what_a_broker_told_has_its_place_and_the_original_s_units() {
        let told: BTreeMap<u8, f64> = (0..=kind::LAST).map(|kind| (kind, f64::from(kind) * 1024.0)).collect();
        let sample = BrokerSample::of(2, "h", 9, &told, 3.0 * 1_048_576.0).unwrap();
        let rates = [5.0 * 1024.0, 0.0, 1.0, 6.0, 7.0, 10.0 * 1024.0];
        assert_eq!(sample.leading[..6], rates);
        assert_eq!(sample.leading[10], 3.0);
        assert_eq!(sample.queues, [20 * 1024, 21 * 1024]);
        assert_eq!((sample.times[0], sample.times[TIMES - 1]), (22.0 * 1024.0, 42.0 * 1024.0));
        assert_eq!((sample.permilles[0], sample.permilles[SINCE_5 - 1]), (43.0 * 1024.0, 62.0 * 1024.0));
        assert_eq!(BrokerSample::of(2, "h", 9, &BTreeMap::from([(0, 1.0)]), 0.0), None);
    }
}
