//! Whole topics, read and written as the engine does it: in every compression, compacted or not, by writers of which
//! only the newest may go on.

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use evenkeel_kafka::{
    Error, TopicPartition,
    calls::offsets::Isolation,
    records::{Compression, Record},
    topic::{Start, TopicReader, TopicWriter, Until},
};

use crate::world::{World, eventually};

promises!(
    a_topic_is_read_as_it_was_written_in_every_compression,
    a_reader_goes_on_with_what_comes_later,
    a_writer_whose_id_was_taken_is_fenced_for_good,
    a_reader_of_what_is_committed_sees_nothing_else,
);

const A_MINUTE: Duration = Duration::from_secs(60);
const COMPRESSIONS: [Compression; 5] =
    [Compression::None, Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd];

async fn a_topic_is_read_as_it_was_written_in_every_compression(world: &World) {
    for policy in ["compact", "delete", "compact,delete"] {
        // Kept whatever its age: the records carry times of long ago.
        let configs = [("cleanup.policy", policy), ("retention.ms", "-1")];
        let topic = world.topic_with(&policy.replace(',', "-"), &[&[0, 1], &[1, 2], &[2, 3]], &configs).await;
        let mut written: BTreeMap<i32, Vec<Record>> = BTreeMap::new();
        for (nth, compression) in (0..).zip(COMPRESSIONS) {
            let mut writer = TopicWriter::idempotent(world.client.clone(), compression).await.expect("a writer");
            let records: BTreeMap<_, _> = (0..3)
                .map(|partition| {
                    let records: Vec<_> =
                        (0..40).map(|n| record(&format!("{compression:?}-{n}"), 50 * nth + n)).collect();
                    written.entry(partition).or_default().extend(records.clone());
                    (TopicPartition::new(&topic, partition), records)
                })
                .collect();
            let offsets = writer.write(&records).await.expect("offsets");
            assert!(offsets.values().all(|offset| *offset == 40 * i64::from(nth)), "{offsets:?}");
        }
        // No key comes twice, so no compaction has anything to remove, whenever it comes.
        assert_eq!(read(world, &topic, Start::Earliest, Isolation::Uncommitted).await, written, "{policy}");
    }
}

async fn a_reader_goes_on_with_what_comes_later(world: &World) {
    let topic = world.topic(&[&[0, 1], &[1, 2]]).await;
    let mut writer = TopicWriter::idempotent(world.client.clone(), Compression::Lz4).await.expect("a writer");
    let mut reader =
        TopicReader::open(world.client.clone(), &topic, &Start::Earliest, Until::Forever, Isolation::Committed)
            .await
            .expect("a reader");
    for round in 0..3 {
        let one = |partition| (TopicPartition::new(&topic, partition), vec![record("k", round)]);
        writer.write(&BTreeMap::from([one(0), one(1)])).await.expect("offsets");
        let mut seen = Vec::new();
        while seen.len() < 2 {
            seen.extend(reader.next().await.expect("records").expect("no end"));
        }
        assert!(seen.iter().all(|one| one.stored.offset == i64::from(round)), "{seen:?}");
    }
    // A partition that is added is read from its beginning.
    world.client.create_partitions(&topic, 3, None).await.expect("one more");
    world.until(&topic, 2, "it is there", |one| one.leader.is_some()).await;
    writer.write(&BTreeMap::from([(TopicPartition::new(&topic, 2), vec![record("k", 0)])])).await.expect("offsets");
    let mut seen = Vec::new();
    while seen.is_empty() {
        seen.extend(reader.next().await.expect("records").expect("no end"));
    }
    assert_eq!((seen[0].partition, seen[0].stored.offset), (2, 0));
    let next = BTreeMap::from([(0, 3), (1, 3), (2, 1)]);
    assert_eq!(reader.positions(), next);
    assert_eq!(read(world, &topic, Start::Offsets(next), Isolation::Committed).await, BTreeMap::new());
}

async fn a_writer_whose_id_was_taken_is_fenced_for_good(world: &World) {
    let topic = world.topic(&[&[0, 1]]).await;
    let id = world.name("journal");
    let take_over = async || {
        let taken = TopicWriter::transactional(world.client.clone(), &id, A_MINUTE, Compression::Zstd).await;
        taken.expect("a writer")
    };
    let one = |key: &str| BTreeMap::from([(TopicPartition::new(&topic, 0), vec![record(key, 0)])]);
    let mut older = take_over().await;
    older.write(&one("committed")).await.expect("an offset");
    older.commit().await.expect("a commit");
    older.write(&one("left open")).await.expect("an offset");
    let mut newer = take_over().await;
    // However often it tries, and whatever.
    for _ in 0..2 {
        assert!(matches!(older.write(&one("too late")).await, Err(Error::Fenced { .. })));
        assert!(matches!(older.commit().await, Err(Error::Fenced { .. })));
        assert!(matches!(older.abort().await, Err(Error::Fenced { .. })));
    }
    newer.write(&one("newer")).await.expect("an offset");
    newer.commit().await.expect("a commit");
    let keys = eventually("the newer one's", async || {
        let keys = keys(&read(world, &topic, Start::Earliest, Isolation::Committed).await);
        (keys.len() > 1).then_some(keys)
    });
    assert_eq!(keys.await, ["committed", "newer"]);
}

async fn a_reader_of_what_is_committed_sees_nothing_else(world: &World) {
    let topic = world.topic_with("compacted", &[&[0, 1]], &[("cleanup.policy", "compact")]).await;
    let id = world.name("id");
    let writer = TopicWriter::transactional(world.client.clone(), &id, A_MINUTE, Compression::Snappy);
    let mut writer = writer.await.expect("a writer");
    for (key, commit) in [("a", true), ("b", false), ("c", true), ("d", false)] {
        writer.write(&BTreeMap::from([(TopicPartition::new(&topic, 0), vec![record(key, 0)])])).await.expect("offsets");
        let ended = if commit { writer.commit().await } else { writer.abort().await };
        ended.expect("an end");
    }
    eventually("all have ended", async || {
        let committed = keys(&read(world, &topic, Start::Earliest, Isolation::Committed).await);
        (committed == ["a", "c"]).then_some(())
    })
    .await;
    let all = keys(&read(world, &topic, Start::Earliest, Isolation::Uncommitted).await);
    assert_eq!(all, ["a", "b", "c", "d"]);
}

fn record(key: &str, timestamp: i32) -> Record {
    Record {
        key: Some(Bytes::copy_from_slice(key.as_bytes())),
        value: Some(Bytes::from(vec![b'v'; 100])),
        headers: vec![(Bytes::from_static(b"header"), None)],
        timestamp: 1_700_000_000_000 + i64::from(timestamp),
    }
}

/// Everything there is, by partition.
async fn read(world: &World, topic: &str, start: Start, isolation: Isolation) -> BTreeMap<i32, Vec<Record>> {
    let reader = TopicReader::open(world.client.clone(), topic, &start, Until::End, isolation).await;
    let mut reader = reader.expect("a reader");
    let mut seen: BTreeMap<i32, Vec<Record>> = BTreeMap::new();
    while let Some(records) = reader.next().await.expect("records") {
        for one in records {
            seen.entry(one.partition).or_default().push(one.stored.record);
        }
    }
    seen
}

/// The keys of the first partition.
fn keys(seen: &BTreeMap<i32, Vec<Record>>) -> Vec<String> {
    let records = seen.get(&0).into_iter().flatten();
    records.map(|record| String::from_utf8_lossy(record.key.as_deref().unwrap_or_default()).into_owned()).collect()
}
