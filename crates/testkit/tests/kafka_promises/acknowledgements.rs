//! What is told to producers and shown to readers while too few replicas are in sync.

use bytes::Bytes;
use evenkeel_kafka::{
    ErrorCode, TopicPartition,
    calls::{offsets::Isolation, produce::Writing},
    records::{self, Record},
};
use kafka_protocol::messages::{
    ProduceRequest, TopicName,
    produce_request::{PartitionProduceData, TopicProduceData},
};

use crate::{
    records::{fetch_as, produce},
    transactions::end_of,
    wire::Wire,
    world::{World, eventually, ids, plain},
};

promises_on_own_brokers!(2: too_few_in_sync_hold_back_what_was_written);

/// By the leader alone.
const ONE: i16 = 1;
const VERSION: i16 = 9;

async fn too_few_in_sync_hold_back_what_was_written(world: &World) {
    // More than there are replicas: then all of them are enough.
    let wide = world.topic_with("wide", &[&[0]], &[("min.insync.replicas", "3")]).await;
    assert_eq!(world.write(&TopicPartition::new(&wide, 0), &[Bytes::from_static(b"v")]).await, 0);

    let topic = world.topic_with("two", &[&[0, 1]], &[("min.insync.replicas", "2")]).await;
    let partition = TopicPartition::new(&topic, 0);
    assert_eq!(world.write(&partition, &[Bytes::from_static(b"everywhere")]).await, 0);
    world.brokers.stop(1).await;
    world.until(&topic, 0, "one is left in sync", |one| one.in_sync == ids(&[0])).await;

    let record = Record { value: Some(Bytes::from_static(b"here")), ..Record::default() };
    let batch = records::encode_batch(&[record], &plain()).expect("a batch");
    let data = PartitionProduceData::default().with_records(Some(batch.clone()));
    let data = TopicProduceData::default().with_name(TopicName(topic.clone().into())).with_partition_data(vec![data]);
    let request = ProduceRequest::default().with_acks(ONE).with_timeout_ms(10_000).with_topic_data(vec![data]);
    // Not one of the answers that are kept.
    let answer = Wire::over(world.open(0).await, false).once(&request, VERSION).await;
    let written = &answer.responses[0].partition_responses[0];
    assert_eq!((written.error_code, written.base_offset), (0, 1), "the leader takes it");
    let refused = produce(world, &partition, batch, Writing::Plain).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode(19), "and says that it cannot answer for the others");

    // Who is out of sync may lead again, and does not have it; so nobody is shown what may be gone tomorrow.
    assert_eq!(end_of(world, &partition, Isolation::Uncommitted).await, Some(1));
    let fetched = fetch_as(world, &partition, 0, Isolation::Uncommitted).await.expect("records");
    let seen = records::decode_batches(fetched.batches).map(|batch| batch.expect("a batch").records.len());
    assert_eq!((fetched.high_watermark, seen.sum::<usize>()), (1, 1));

    world.brokers.start(1).await;
    eventually("it is everywhere", async || {
        (end_of(world, &partition, Isolation::Uncommitted).await == Some(2)).then_some(())
    })
    .await;
}
