//! Compacted topics after the cleaner has been there: offsets with holes, read by whoever wants the last of each key.

use std::collections::BTreeMap;

use bytes::Bytes;
use evenkeel_kafka::{
    TopicPartition,
    calls::offsets::Isolation,
    records::{Compression, Record},
    topic::{Start, TopicReader, TopicWriter, Until},
};

use crate::world::{World, eventually};

promises!(a_compacted_topic_is_read_without_what_was_replaced);

const KEYS: usize = 10;
/// A segment ends when a record comes that is so much younger than its first, and the last is never cleaned.
const SEGMENT_MS: i64 = 1_000;

async fn a_compacted_topic_is_read_without_what_was_replaced(world: &World) {
    let configs = [
        ("cleanup.policy", "compact"),
        ("segment.ms", &SEGMENT_MS.to_string()),
        ("min.cleanable.dirty.ratio", "0.01"),
        ("delete.retention.ms", "0"),
    ];
    let partition = TopicPartition::new(world.topic_with("compacted", &[&[0, 1]], &configs).await, 0);
    let mut writer = TopicWriter::idempotent(world.client.clone(), Compression::Lz4).await.expect("a writer");
    let rounds: [(&str, &[usize]); 3] =
        [("old", &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]), ("new", &[1, 3, 5, 7, 9]), ("end", &[0])];
    for (round, (value, keys)) in (0..).zip(rounds) {
        let timestamp = 1_700_000_000_000 + 10 * SEGMENT_MS * round;
        let records = keys.iter().map(|key| Record {
            key: Some(Bytes::from(format!("key-{key}"))),
            value: Some(Bytes::copy_from_slice(value.as_bytes())),
            headers: Vec::new(),
            timestamp,
        });
        writer.write(&BTreeMap::from([(partition.clone(), records.collect())])).await.expect("offsets");
    }
    let expected: Vec<(i64, String, &str)> = (0..KEYS as i64)
        .step_by(2)
        .map(|n| (n, format!("key-{n}"), "old"))
        .chain((10..15).zip([1, 3, 5, 7, 9]).map(|(offset, n)| (offset, format!("key-{n}"), "new")))
        .chain([(15, "key-0".to_owned(), "end")])
        .collect();
    eventually("the cleaner has been there", async || {
        let seen = read(world, &partition).await;
        // Whenever it comes, nothing is lost and nothing comes twice or out of order.
        assert!(seen.is_sorted() && expected.iter().all(|one| contains(&seen, one)), "{seen:?}");
        (seen.len() == expected.len()).then_some(())
    })
    .await;
}

fn contains(seen: &[(i64, String, String)], (offset, key, value): &(i64, String, &str)) -> bool {
    seen.iter().any(|one| (one.0, &one.1, one.2.as_str()) == (*offset, key, *value))
}

/// Offset, key and value of all there is.
async fn read(world: &World, partition: &TopicPartition) -> Vec<(i64, String, String)> {
    let reader =
        TopicReader::open(world.client.clone(), &partition.topic, &Start::Earliest, Until::End, Isolation::Committed);
    let mut reader = reader.await.expect("a reader");
    let text = |bytes: Option<Bytes>| String::from_utf8(bytes.expect("something").to_vec()).expect("UTF-8");
    let mut seen = Vec::new();
    while let Some(records) = reader.next().await.expect("records") {
        for one in records {
            let record = one.stored.record;
            seen.push((one.stored.offset, text(record.key), text(record.value)));
        }
    }
    seen
}
