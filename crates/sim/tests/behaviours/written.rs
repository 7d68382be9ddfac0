//! What was acknowledged by all replicas in sync is there, whatever happens to brokers: no unclean election was allowed.

use std::collections::BTreeMap;

use crate::properties::{Step, live_and, step};
use crate::*;
use bytes::Bytes;
use evenkeel_kafka::records::decode_batches;
use evenkeel_sim::cluster::{FetchRequest, Isolation};
use evenkeel_sim::log::Batch;
use proptest::prelude::*;

const TOPIC: &str = "kept";
const PARTITIONS: i32 = 2;

/// A record somebody waits for, or was told of.
#[derive(Clone, Debug)]
struct Written {
    partition: i32,
    offset: i64,
    end: i64,
    value: Bytes,
    /// Under this leadership; under another the producer is told that it failed.
    leader_epoch: i32,
}

#[derive(Default)]
struct Book {
    count: usize,
    waiting: Vec<Written>,
    acknowledged: Vec<Written>,
}

impl Book {
    fn turn(&mut self, cluster: &mut Cluster, step: &Step) {
        if let Step::Reassign(partition, target) = step {
            let partition = TopicPartition::new(TOPIC, partition % PARTITIONS);
            drop(cluster.alter_reassignments(&[Reassignment { partition, target: Some(ids(target)) }], true));
        }
        self.hear(cluster);
        (0..PARTITIONS).for_each(|partition| self.write(cluster, partition));
        self.read(cluster);
    }

    /// A record to whoever leads, with acks=all.
    fn write(&mut self, cluster: &mut Cluster, partition: i32) {
        let Some(registration) = cluster.registration(TOPIC, partition) else { return };
        let (leader, leader_epoch) = (registration.leader, registration.leader_epoch);
        let Some(leader) = leader.filter(|leader| !cluster.is_down(*leader)) else { return };
        self.count += 1;
        let value = Bytes::from(format!("record {}", self.count));
        let records = Batch::of_records(cluster.wall_clock(), &[(None, Some(value.clone()))]);
        let tp = TopicPartition::new(TOPIC, partition);
        if let Ok(appended) = cluster.produce(leader, &tp, records, true, None) {
            let (offset, end) = (appended.base_offset, appended.end_offset);
            self.waiting.push(Written { partition, offset, end, value, leader_epoch });
        }
    }

    /// Who waits is told.
    fn hear(&mut self, cluster: &Cluster) {
        for it in std::mem::take(&mut self.waiting) {
            let epoch = cluster.registration(TOPIC, it.partition).map(|registration| registration.leader_epoch);
            if epoch != Some(it.leader_epoch) {
                continue;
            }
            let mark = cluster.high_watermark(&TopicPartition::new(TOPIC, it.partition));
            let told = if mark >= Some(it.end) { &mut self.acknowledged } else { &mut self.waiting };
            told.push(it);
        }
    }

    fn read(&self, cluster: &Cluster) {
        for partition in 0..PARTITIONS {
            let tp = TopicPartition::new(TOPIC, partition);
            let Some(leader) = cluster.registration(TOPIC, partition).and_then(|it| it.leader) else { continue };
            let request = FetchRequest {
                partition: tp,
                offset: 0,
                max_bytes: usize::MAX,
                isolation: Isolation::ReadUncommitted,
                leader_epoch: None,
            };
            let fetched = cluster.fetch(leader, &request).expect("its first offset");
            let batches = decode_batches(fetched.records).map(|batch| batch.expect("a whole batch"));
            let there: BTreeMap<i64, Option<Bytes>> =
                batches.flat_map(|batch| batch.records).map(|it| (it.offset, it.record.value)).collect();
            for it in self.acknowledged.iter().filter(|it| it.partition == partition) {
                assert_eq!(there.get(&it.offset), Some(&Some(it.value.clone())), "lost: {it:?}");
            }
        }
    }
}

/// The book after these steps.
fn live(steps: &[Step], seed: u64) -> Book {
    let mut book = Book::default();
    live_and(steps, seed, |cluster, step| {
        if cluster.registration(TOPIC, 0).is_none() {
            // Not while too many brokers are away.
            drop(cluster.create_topic(&NewTopic::new(TOPIC, PARTITIONS, 3), false));
        }
        book.turn(cluster, step);
    });
    book
}

#[test]
fn in_peace_everything_is_acknowledged() {
    let book = live(&vec![Step::Tick(1_000); 10], 7);
    // What came with the last step is still on its way.
    let last = usize::try_from(PARTITIONS).expect("two");
    assert_eq!((book.acknowledged.len(), book.waiting.len()), (book.count - last, last));
    assert_eq!(book.count, 10 * last);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn nothing_acknowledged_is_lost(steps in prop::collection::vec(step(), 1..60), seed in any::<u64>()) {
        live(&steps, seed);
    }
}
