//! Topics and records made through Kafka's own API, as any client makes them.

use std::collections::BTreeMap;

use anyhow::Context;
use evenkeel_kafka::calls::produce::Writing;
use evenkeel_kafka::calls::topics::{Layout, NewTopic};
use evenkeel_kafka::records::{BatchOptions, Compression, NO_PRODUCER, Record, encode_batch};
use evenkeel_kafka::{BrokerId, Client, ErrorCode, TopicPartition};
use jiff::Timestamp;

/// How many replicas each partition has.
const REPLICAS: i16 = 3;

/// Makes a topic, unless it is there.
pub(super) async fn make_topic(kafka: &Client, name: &str, partitions: i32) -> anyhow::Result<()> {
    make(kafka, name, Layout::Automatic { partitions: Some(partitions), replication_factor: Some(REPLICAS) }).await
}

/// Makes a topic whose replicas lie exactly so, unless it is there.
pub(super) async fn make_placed_topic<const N: usize>(
    kafka: &Client,
    name: &str,
    lists: &[[i32; N]],
) -> anyhow::Result<()> {
    make(kafka, name, Layout::Manual(lists.iter().map(|list| list.map(BrokerId).to_vec()).collect())).await
}

async fn make(kafka: &Client, name: &str, layout: Layout) -> anyhow::Result<()> {
    let topic = NewTopic { name: name.to_owned(), layout, configs: BTreeMap::new() };
    for (name, made) in kafka.create_topics(&[topic], false).await.whole()? {
        match made {
            Err(refusal) if refusal.code == ErrorCode::TOPIC_ALREADY_EXISTS => {}
            made => made.with_context(|| format!("could not make the topic {name}"))?,
        }
    }
    Ok(())
}

/// Writes so many bytes to each partition of a topic.
pub(super) async fn write(kafka: &Client, name: &str, partitions: i32, bytes: usize) -> anyhow::Result<()> {
    let record = Record {
        value: Some(vec![b'.'; bytes].into()),
        timestamp: Timestamp::now().as_millisecond(),
        ..Record::default()
    };
    let options = BatchOptions { compression: Compression::None, producer: NO_PRODUCER, transactional: false };
    let batch = encode_batch(&[record], &options)?;
    let batches = (0..partitions).map(|index| (TopicPartition::new(name, index), batch.clone())).collect();
    for (partition, written) in kafka.produce(&batches, Writing::Plain).await? {
        written.with_context(|| format!("could not write to {partition}"))?;
    }
    Ok(())
}
