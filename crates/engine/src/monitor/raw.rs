//! One record of the reporter plug-in: big-endian, of three classes.

use thiserror::Error;

/// A measurement as a broker told it.
#[derive(Debug, Clone, PartialEq)]
pub struct RawMetric {
    /// What was measured: [`kind`]s are the reporter's numbers.
    pub kind: u8,
    /// When, in milliseconds since 1970.
    pub time: i64,
    /// By which broker.
    pub broker: i32,
    /// Of what.
    pub scope: Scope,
    /// How much: bytes per second, bytes, milliseconds, or a fraction of 1.
    pub value: f64,
}

/// What a measurement is of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// The broker as a whole.
    Broker,
    /// All partitions of a topic that the broker leads. Names come with `.` written as `_`.
    Topic(String),
    /// One partition that the broker leads.
    Partition(String, i32),
}

/// The reporter's numbers, as far as somebody asks for them by name.
pub mod kind {
    /// Bytes in from producers.
    pub const ALL_BYTES_IN: u8 = 0;
    /// Bytes out to consumers.
    pub const ALL_BYTES_OUT: u8 = 1;
    /// Bytes in from producers, of a topic.
    pub const TOPIC_BYTES_IN: u8 = 2;
    /// Bytes out to consumers, of a topic.
    pub const TOPIC_BYTES_OUT: u8 = 3;
    /// Size of a partition.
    pub const PARTITION_SIZE: u8 = 4;
    /// Processor time, as a fraction of all cores.
    pub const BROKER_CPU_UTIL: u8 = 5;
    /// Bytes in from leaders elsewhere.
    pub const ALL_REPLICATION_BYTES_IN: u8 = 6;
    /// Bytes out to followers.
    pub const ALL_REPLICATION_BYTES_OUT: u8 = 7;
    /// Those of a broker as a whole that are bytes per second.
    pub const IN_BYTES: [u8; 4] = [ALL_BYTES_IN, ALL_BYTES_OUT, ALL_REPLICATION_BYTES_IN, ALL_REPLICATION_BYTES_OUT];
    /// Produce requests.
    pub const ALL_PRODUCE_REQUESTS: u8 = 8;
    /// Fetch requests.
    pub const ALL_FETCH_REQUESTS: u8 = 9;
    /// Records in.
    pub const ALL_MESSAGES_IN: u8 = 10;
    /// Bytes in from leaders elsewhere, of a topic.
    pub const TOPIC_REPLICATION_BYTES_IN: u8 = 11;
    /// Bytes out to followers, of a topic.
    pub const TOPIC_REPLICATION_BYTES_OUT: u8 = 12;
    /// Produce requests, of a topic.
    pub const TOPIC_PRODUCE_REQUESTS: u8 = 13;
    /// Fetch requests, of a topic.
    pub const TOPIC_FETCH_REQUESTS: u8 = 14;
    /// Records in, of a topic.
    pub const TOPIC_MESSAGES_IN: u8 = 15;
    /// The last there is.
    pub const LAST: u8 = 62;
}

/// Why a record says nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Unreadable {
    /// It ends too early, or goes on where it should end.
    #[error("a metric record of {0} bytes is not what its class says")]
    Length(usize),
    /// A class or version of a time to come.
    #[error("metric records of class {class}, version {version}, are not known")]
    Kind {
        /// The class.
        class: u8,
        /// The version.
        version: u8,
    },
    /// A number that is none.
    #[error("a metric record's value is not a number")]
    Value,
    /// A topic's name that is no text.
    #[error("a metric record's topic is not UTF-8")]
    Topic,
}

impl RawMetric {
    /// Reads one.
    pub fn read(bytes: &[u8]) -> Result<RawMetric, Unreadable> {
        let mut rest = Rest { bytes, whole: bytes.len() };
        let [class, version, kind] = rest.take()?;
        if class > 2 || version != 0 {
            return Err(Unreadable::Kind { class, version });
        }
        let time = i64::from_be_bytes(rest.take()?);
        let broker = i32::from_be_bytes(rest.take()?);
        let scope = match class {
            0 => Scope::Broker,
            1 => Scope::Topic(rest.topic()?),
            _ => Scope::Partition(rest.topic()?, i32::from_be_bytes(rest.take()?)),
        };
        let value = f64::from_be_bytes(rest.take()?);
        if !rest.bytes.is_empty() {
            return Err(Unreadable::Length(bytes.len()));
        }
        if !value.is_finite() {
            return Err(Unreadable::Value);
        }
        Ok(RawMetric { kind, time, broker, scope, value })
    }
}

struct Rest<'a> {
    bytes: &'a [u8],
    whole: usize,
}

impl Rest<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Unreadable> {
        let (taken, rest) = self.bytes.split_first_chunk().ok_or(Unreadable::Length(self.whole))?;
        self.bytes = rest;
        Ok(*taken)
    }

    fn topic(&mut self) -> Result<String, Unreadable> {
        let length = usize::try_from(i32::from_be_bytes(self.take()?)).map_err(|_| Unreadable::Length(self.whole))?;
        let (name, rest) = self.bytes.split_at_checked(length).ok_or(Unreadable::Length(self.whole))?;
        self.bytes = rest;
        String::from_utf8(name.to_vec()).map_err(|_| Unreadable::Topic)
    }
}

#[cfg(test)]
mod tests {
    use evenkeel_sim::{
        BrokerId, Cluster, Options,
        cluster::{BrokerSpec, NewTopic},
        traffic::Load,
    };

    use super::*;

    fn told() -> Vec<Vec<u8>> {
        let mut cluster = Cluster::new(Options::default(), (0..2).map(BrokerSpec::new));
        let topic = NewTopic::manual("orders", &[&[0, 1], &[1, 0]]).loaded(Load::steady(2e6), 60_000);
        cluster.create_topic(&topic, false).unwrap();
        cluster.tick(60_000);
        cluster.metrics(BrokerId(0)).into_iter().map(|record| record.value.to_vec()).collect()
    }

    #[test]
    fn what_a_reporter_tells_is_understood() {
        let metrics: Vec<RawMetric> = told().iter().map(|bytes| RawMetric::read(bytes).unwrap()).collect();
        assert!(metrics.iter().all(|metric| metric.broker == 0));
        let bytes_in = metrics.iter().find(|metric| metric.kind == kind::TOPIC_BYTES_IN).unwrap();
        assert_eq!((&bytes_in.scope, bytes_in.value), (&Scope::Topic("orders".to_owned()), 1e6));
        let size = metrics.iter().find(|metric| metric.kind == kind::PARTITION_SIZE).unwrap();
        assert_eq!(size.scope, Scope::Partition("orders".to_owned(), 0));
        assert!(metrics.iter().any(|metric| metric.kind == kind::LAST && metric.scope == Scope::Broker));
    }

    #[test]
    fn anything_cut_off_or_grown_is_refused_and_nothing_panics() {
        for bytes in told() {
            for length in 0..bytes.len() {
                assert!(RawMetric::read(&bytes[..length]).is_err());
            }
            let longer = [&bytes[..], &[0]].concat();
            assert_eq!(RawMetric::read(&longer), Err(Unreadable::Length(longer.len())));
        }
        assert_eq!(RawMetric::read(&[3, 0, 1]), Err(Unreadable::Kind { class: 3, version: 0 }));
        // A topic of 2 GB in a record of 30 bytes.
        let mut hostile = told()[0].clone();
        hostile[15..19].copy_from_slice(&i32::MAX.to_be_bytes());
        assert!(matches!(RawMetric::read(&hostile), Err(Unreadable::Length(_))));
    }
}
