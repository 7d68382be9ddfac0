//! Loads measured from outside, with nothing installed on brokers: from how sizes and offsets change
//! between two looks.
//!
//! What comes in is known: where a log only grew, by how much; where its beginning moved on meanwhile
//! (retention, compaction), by the records that came and what a record weighs. What goes out to
//! consumers and the processor's time cannot be seen from outside: they stay unknown.

use std::collections::BTreeMap;

use evenkeel_kafka::TopicPartition;

use super::sample::{Metric, PartitionSample, Values};

/// The cluster at one moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Look {
    /// When, in milliseconds since 1970.
    pub time: i64,
    /// What was seen of each partition that has a leader.
    pub partitions: BTreeMap<TopicPartition, Seen>,
}

/// A partition at its leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// Who leads it.
    pub leader: i32,
    /// How many replicas it has besides.
    pub followers: usize,
    /// Its size there, in bytes.
    pub bytes: u64,
    /// Its first offset.
    pub begins: i64,
    /// The offset that the next record gets.
    pub ends: i64,
}

/// What every partition carried between two looks. Of one that was not there before, or whose leader
/// has changed since, the size alone is known: its rates would be a guess.
pub fn between(before: &Look, after: &Look) -> Vec<PartitionSample> {
    let seconds = (after.time - before.time) as f64 / 1000.0;
    let sample = |(partition, now): (&TopicPartition, &Seen)| {
        let mut values = Values::UNKNOWN.with(Metric::Disk, now.bytes as f64);
        let then = before.partitions.get(partition).filter(|then| then.leader == now.leader && seconds > 0.0);
        if let Some(then) = then {
            // A log that was cut back at its end has had its leader changed, or its topic made anew.
            let records = (now.ends - then.ends).max(0) as f64;
            let bytes_in = came_in(then, now, records) / seconds;
            values = values
                .with(Metric::LeaderBytesIn, bytes_in)
                .with(Metric::MessagesIn, records / seconds)
                .with(Metric::ReplicationBytesIn, 0.0)
                .with(Metric::ReplicationBytesOut, bytes_in * now.followers as f64);
        }
        PartitionSample { partition: partition.clone(), leader: now.leader, time: after.time, values }
    };
    after.partitions.iter().map(sample).collect()
}

/// Bytes that came in between two looks.
fn came_in(then: &Seen, now: &Seen, records: f64) -> f64 {
    if now.begins == then.begins && now.bytes >= then.bytes {
        return (now.bytes - then.bytes) as f64;
    }
    let held = (now.ends - now.begins) as f64;
    if held <= 0.0 { 0.0 } else { records * now.bytes as f64 / held }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(time: i64, seen: &[(i32, Seen)]) -> Look {
        let partitions = seen.iter().map(|(number, seen)| (TopicPartition::new("t", *number), *seen)).collect();
        Look { time, partitions }
    }

    fn seen(leader: i32, bytes: u64, begins: i64, ends: i64) -> Seen {
        Seen { leader, followers: 2, bytes, begins, ends }
    }

    #[test]
    fn a_log_that_only_grew_tells_by_how_much() {
        let before = look(0, &[(0, seen(1, 10_000, 0, 100))]);
        let after = look(10_000, &[(0, seen(1, 30_000, 0, 250))]);
        let samples = between(&before, &after);
        assert_eq!((samples[0].leader, samples[0].time), (1, 10_000));
        let values = samples[0].values;
        assert_eq!(values.get(Metric::Disk), Some(30_000.0));
        assert_eq!(values.get(Metric::LeaderBytesIn), Some(2_000.0));
        assert_eq!(values.get(Metric::MessagesIn), Some(15.0));
        assert_eq!(values.get(Metric::ReplicationBytesOut), Some(4_000.0));
        assert_eq!((values.get(Metric::Cpu), values.get(Metric::LeaderBytesOut)), (None, None));
    }

    #[test]
    fn a_log_that_lost_its_beginning_tells_by_its_records() {
        let before = look(0, &[(0, seen(1, 50_000, 0, 500))]);
        let after = look(10_000, &[(0, seen(1, 40_000, 300, 700))]);
        // 200 records of 100 bytes each.
        assert_eq!(between(&before, &after)[0].values.get(Metric::LeaderBytesIn), Some(2_000.0));
        let emptied = look(10_000, &[(0, seen(1, 0, 700, 700))]);
        assert_eq!(between(&before, &emptied)[0].values.get(Metric::LeaderBytesIn), Some(0.0));
    }

    #[test]
    fn rates_across_a_change_of_leader_or_of_a_new_partition_are_unknown() {
        let before = look(0, &[(0, seen(1, 10_000, 0, 100))]);
        let after = look(10_000, &[(0, seen(2, 10_000, 0, 100)), (1, seen(1, 5, 0, 1))]);
        for sample in between(&before, &after) {
            assert_eq!(sample.values.get(Metric::LeaderBytesIn), None, "{}", sample.partition);
            assert!(sample.values.get(Metric::Disk).is_some());
        }
    }

    #[test]
    fn a_topic_that_was_made_anew_takes_nothing_in_backwards() {
        let before = look(0, &[(0, seen(1, 10_000, 50, 100))]);
        let after = look(10_000, &[(0, seen(1, 1_000, 0, 10))]);
        assert_eq!(between(&before, &after)[0].values.get(Metric::LeaderBytesIn), Some(0.0));
    }
}
