//! Records: written, found, read; in every compression; written once though sent twice.

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use evenkeel_kafka::{
    ErrorCode, Refusal, TopicPartition,
    calls::{
        fetch::{FetchLimits, Fetched},
        offsets::{Isolation, Place},
        produce::Writing,
    },
    records::{self, BatchOptions, Compression, Producer, Record, StoredRecord},
};

use crate::world::{World, plain};

promises!(
    records_come_back_as_they_were_written,
    offsets_are_found_by_place_and_by_time,
    a_batch_sent_twice_is_written_once,
    a_gap_in_the_sequence_is_refused,
    a_fetch_waits_for_what_is_to_come,
    bad_places_are_refused,
    a_batch_over_the_limit_is_refused,
);

/// Records of promises carry times of long ago.
const KEPT: [(&str, &str); 1] = [("retention.ms", "-1")];

async fn records_come_back_as_they_were_written(world: &World) {
    let topic = world.topic_with("kept", &[&[1, 2]], &KEPT).await;
    let partition = TopicPartition::new(&topic, 0);
    let records = vec![
        Record {
            key: Some(Bytes::from_static(b"key")),
            value: Some(Bytes::from(vec![b'v'; 2000])),
            headers: vec![(Bytes::from_static(b"header"), Some(Bytes::new())), (Bytes::from_static(b"none"), None)],
            timestamp: 1_700_000_000_000,
        },
        Record {
            key: Some(Bytes::from_static(b"removed")),
            value: None,
            timestamp: 1_700_000_000_001,
            ..Record::default()
        },
    ];
    let compressions = [Compression::None, Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd];
    for (nth, compression) in (0..).zip(compressions) {
        let batch = records::encode_batch(&records, &BatchOptions { compression, ..plain() }).expect("a batch");
        assert_eq!(produce(world, &partition, batch, Writing::Plain).await, Ok(nth * 2));
    }
    let fetched = fetch(world, &partition, 0).await.expect("records");
    assert_eq!((fetched.high_watermark, fetched.last_stable_offset, fetched.log_start), (10, 10, 0));
    let batches: Vec<_> = records::decode_batches(fetched.batches).map(|batch| batch.expect("a batch")).collect();
    assert_eq!(batches.len(), 5);
    for ((nth, compression), batch) in (0..).zip(compressions).zip(batches) {
        assert_eq!(batch.head.compression, compression);
        let expected =
            (nth * 2..).zip(&records).map(|(offset, record)| StoredRecord { offset, record: record.clone() });
        assert_eq!(batch.records, expected.collect::<Vec<_>>());
    }
}

async fn offsets_are_found_by_place_and_by_time(world: &World) {
    let topic = world.topic_with("kept", &[&[2, 3]], &KEPT).await;
    let partition = TopicPartition::new(&topic, 0);
    assert_eq!(offset(world, &partition, Place::Earliest).await, Ok(Some(0)));
    assert_eq!(offset(world, &partition, Place::AtOrAfter(0)).await, Ok(None));
    for timestamp in [1_700_000_000_000, 1_700_000_001_000, 1_700_000_002_000] {
        let record = Record { value: Some(Bytes::from_static(b"v")), timestamp, ..Record::default() };
        let batch = records::encode_batch(&[record], &plain()).expect("a batch");
        produce(world, &partition, batch, Writing::Plain).await.expect("an offset");
    }
    assert_eq!(offset(world, &partition, Place::Latest).await, Ok(Some(3)));
    assert_eq!(offset(world, &partition, Place::AtOrAfter(1_700_000_000_500)).await, Ok(Some(1)));
    assert_eq!(offset(world, &partition, Place::AtOrAfter(1_700_000_002_000)).await, Ok(Some(2)));
    assert_eq!(offset(world, &partition, Place::AtOrAfter(1_700_000_002_001)).await, Ok(None));
    let nowhere = TopicPartition::new(&topic, 9);
    assert!(offset(world, &nowhere, Place::Latest).await.is_err());
}

async fn a_batch_sent_twice_is_written_once(world: &World) {
    let topic = world.topic(&[&[0, 1]]).await;
    let partition = TopicPartition::new(&topic, 0);
    let producer = world.client.init_idempotent().await.expect("a producer id");
    let batch = |sequence| numbered(producer.id, producer.epoch, sequence, 3);
    assert_eq!(produce(world, &partition, batch(0), Writing::Idempotent).await, Ok(0));
    assert_eq!(produce(world, &partition, batch(3), Writing::Idempotent).await, Ok(3));
    assert_eq!(produce(world, &partition, batch(0), Writing::Idempotent).await, Ok(0), "where it was written");
    assert_eq!(offset(world, &partition, Place::Latest).await, Ok(Some(6)));
}

async fn a_gap_in_the_sequence_is_refused(world: &World) {
    let topic = world.topic(&[&[0, 1]]).await;
    let partition = TopicPartition::new(&topic, 0);
    let producer = world.client.init_idempotent().await.expect("a producer id");
    let batch = |sequence| numbered(producer.id, producer.epoch, sequence, 1);
    assert_eq!(produce(world, &partition, batch(0), Writing::Idempotent).await, Ok(0));
    let refused = produce(world, &partition, batch(7), Writing::Idempotent).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode(45));
    let another = world.client.init_idempotent().await.expect("a producer id");
    assert_ne!(another.id, producer.id);
}

async fn a_fetch_waits_for_what_is_to_come(world: &World) {
    let topic = world.topic(&[&[3, 0]]).await;
    let partition = TopicPartition::new(&topic, 0);
    let empty = fetch(world, &partition, 0).await.expect("an answer");
    assert!(empty.batches.is_empty());
    let waiting = async {
        loop {
            let fetched = fetch(world, &partition, 0).await.expect("an answer");
            if !fetched.batches.is_empty() {
                break fetched;
            }
        }
    };
    let late = [Bytes::from_static(b"late")];
    let (fetched, _) = tokio::join!(waiting, world.write(&partition, &late));
    let batch = records::decode_batches(fetched.batches).next().expect("a batch").expect("a good one");
    assert_eq!(batch.records[0].record.value.as_deref(), Some(&b"late"[..]));
}

async fn bad_places_are_refused(world: &World) {
    let topic = world.topic(&[&[1, 0]]).await;
    let partition = TopicPartition::new(&topic, 0);
    let refused = fetch(world, &partition, 5).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::OFFSET_OUT_OF_RANGE);
}

async fn a_batch_over_the_limit_is_refused(world: &World) {
    let topic = world.topic_with("narrow", &[&[1, 0]], &[("max.message.bytes", "1000")]).await;
    let partition = TopicPartition::new(&topic, 0);
    let record = Record { value: Some(Bytes::from(vec![0; 2000])), ..Record::default() };
    let batch = records::encode_batch(&[record], &plain()).expect("a batch");
    assert_eq!(produce(world, &partition, batch, Writing::Plain).await.unwrap_err().code, ErrorCode(10));
}

/// A batch of a producer's, whose first record has this number.
pub(crate) fn numbered(id: i64, epoch: i16, sequence: i32, count: usize) -> Bytes {
    let records: Vec<_> = vec![Record { value: Some(Bytes::from_static(b"v")), ..Record::default() }; count];
    let options = BatchOptions { producer: Producer { id, epoch, sequence }, ..plain() };
    records::encode_batch(&records, &options).expect("a batch")
}

pub(crate) async fn produce(
    world: &World,
    partition: &TopicPartition,
    batch: Bytes,
    writing: Writing<'_>,
) -> Result<i64, Refusal> {
    let batches = BTreeMap::from([(partition.clone(), batch)]);
    world.client.produce(&batches, writing).await.expect("an answer").remove(partition).expect("the partition's")
}

pub(crate) async fn fetch_as(
    world: &World,
    partition: &TopicPartition,
    from: i64,
    isolation: Isolation,
) -> Result<Fetched, Refusal> {
    let offsets = BTreeMap::from([(partition.clone(), from)]);
    let limits = FetchLimits { wait: Duration::from_millis(100), ..FetchLimits::default() };
    let mut answers = world.client.fetch(&offsets, isolation, limits).await.expect("an answer");
    answers.remove(partition).expect("the partition's")
}

async fn fetch(world: &World, partition: &TopicPartition, from: i64) -> Result<Fetched, Refusal> {
    fetch_as(world, partition, from, Isolation::Uncommitted).await
}

async fn offset(world: &World, partition: &TopicPartition, place: Place) -> Result<Option<i64>, Refusal> {
    let places = BTreeMap::from([(partition.clone(), place)]);
    let mut answers = world.client.list_offsets(&places, Isolation::Uncommitted).await.expect("an answer");
    answers.remove(partition).expect("the partition's")
}
