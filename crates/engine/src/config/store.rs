//! Where samples are kept between two lives of the engine, with the original's keys and defaults.

use super::keys::Keys;

/// How samples are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampleStore {
    /// Whether they are read and written.
    pub keeping: Keeping,
    /// How many partitions the topics get: partitions' samples, brokers' samples.
    pub partitions: [i32; 2],
    /// How many replicas they get, where there are so many brokers.
    pub replicas: i16,
    /// How long samples are kept, in milliseconds.
    pub retention: [i64; 2],
}

/// Whether samples are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keeping {
    /// Read at the start, written after each sampling.
    ReadAndWritten,
    /// Read at the start.
    Read,
    /// Not at all.
    No,
}

const HOUR: i64 = 3_600_000;

impl SampleStore {
    /// `windows` is how far back windows of partitions reach, in milliseconds.
    pub(super) fn read(keys: &Keys<'_>, windows: i64) -> SampleStore {
        let class = keys.text("sample.store.class").map(|class| class.rsplit('.').next().unwrap_or(class));
        let count = |key| keys.number(key, 32, 1..=10_000);
        let broker_windows = keys.millis("broker.metrics.window.ms", HOUR).saturating_mul(keys.number(
            "num.broker.metrics.windows",
            5,
            1..=10_000,
        ));
        let retention = |key, windows: i64| keys.millis(key, HOUR).max(windows.saturating_mul(2));
        SampleStore {
            keeping: match class {
                Some("NoopSampleStore") => Keeping::No,
                Some("ReadOnlyKafkaSampleStore") => Keeping::Read,
                _ => Keeping::ReadAndWritten,
            },
            partitions: [
                count("partition.sample.store.topic.partition.count"),
                count("broker.sample.store.topic.partition.count"),
            ],
            replicas: keys.number("sample.store.topic.replication.factor", 2, 1..=100),
            retention: [
                retention("min.partition.sample.store.topic.retention.time.ms", windows),
                retention("min.broker.sample.store.topic.retention.time.ms", broker_windows),
            ],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::properties::Properties;

    fn read(text: &str) -> SampleStore {
        let properties = Properties::read(text, |_| None).unwrap();
        let keys = Keys::new(&properties);
        let store = SampleStore::read(&keys, 5 * HOUR);
        assert_eq!(keys.into_findings().1, []);
        store
    }

    #[test]
    fn defaults_are_the_original_s() {
        let store = read("");
        assert_eq!((store.partitions, store.replicas, store.retention), ([32, 32], 2, [10 * HOUR; 2]));
        assert_eq!(store.keeping, Keeping::ReadAndWritten);
    }

    #[test]
    fn samples_are_kept_as_long_as_both_the_key_and_the_windows_want() {
        let store = read(
            "min.partition.sample.store.topic.retention.time.ms=90000000\nnum.broker.metrics.windows=1\n\
             broker.metrics.window.ms=1000\nsample.store.class=a.b.NoopSampleStore",
        );
        assert_eq!(store.retention, [90_000_000, HOUR]);
        assert_eq!(store.keeping, Keeping::No);
    }
}
