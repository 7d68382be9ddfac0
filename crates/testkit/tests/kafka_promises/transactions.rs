//! Transactions: all or nothing for readers, and an older producer that is fenced off.

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use evenkeel_kafka::{
    Error, TopicPartition,
    calls::{
        offsets::{Isolation, Place},
        produce::Writing,
        transactions::{End, ProducerIdentity},
    },
    records::{self, BatchOptions, Producer, Record},
};

use crate::{
    records::{fetch_as, produce},
    world::{World, eventually, plain},
};

promises!(
    a_committed_transaction_is_seen_as_a_whole,
    an_aborted_transaction_is_told_to_readers,
    a_newer_producer_fences_the_older_one,
    a_newer_producer_ends_what_the_older_one_left_open,
    a_producer_that_did_not_hear_its_new_epoch_may_ask_again,
);

const A_MINUTE: Duration = Duration::from_secs(60);

async fn a_committed_transaction_is_seen_as_a_whole(world: &World) {
    let (id, partition) = (world.name("id"), TopicPartition::new(world.topic(&[&[0, 1]]).await, 0));
    let producer = begin(world, &id, &partition).await;
    assert_eq!(produce(world, &partition, batch(producer, 0), Writing::Transactional(&id)).await, Ok(0));

    let open = fetch_as(world, &partition, 0, Isolation::Committed).await.expect("an answer");
    assert!(open.batches.is_empty(), "nothing yet");
    assert_eq!((open.high_watermark, open.last_stable_offset), (1, 0));
    assert_eq!(end_of(world, &partition, Isolation::Committed).await, Some(0));
    assert_eq!(end_of(world, &partition, Isolation::Uncommitted).await, Some(1));
    let uncommitted = fetch_as(world, &partition, 0, Isolation::Uncommitted).await.expect("an answer");
    assert_eq!(values(uncommitted.batches), ["v"]);

    world.client.end_transaction(&id, producer, End::Commit).await.expect("a commit");
    let closed = eventually("the commit", async || {
        let seen = fetch_as(world, &partition, 0, Isolation::Committed).await.expect("an answer");
        (seen.last_stable_offset == 2).then_some(seen)
    })
    .await;
    assert_eq!((closed.aborted.clone(), values(closed.batches)), (vec![], vec!["v".to_owned()]));
}

async fn an_aborted_transaction_is_told_to_readers(world: &World) {
    let (id, partition) = (world.name("id"), TopicPartition::new(world.topic(&[&[0, 1]]).await, 0));
    let producer = begin(world, &id, &partition).await;
    produce(world, &partition, batch(producer, 0), Writing::Transactional(&id)).await.expect("an offset");
    world.client.end_transaction(&id, producer, End::Abort).await.expect("an abort");
    let seen = eventually("the abort", async || {
        let seen = fetch_as(world, &partition, 0, Isolation::Committed).await.expect("an answer");
        (seen.last_stable_offset == 2).then_some(seen)
    })
    .await;
    // The records still come: it is for the reader to leave them out.
    assert_eq!(seen.aborted, [(producer.id, 0)]);
    assert_eq!(values(seen.batches), ["v"]);
}

async fn a_newer_producer_fences_the_older_one(world: &World) {
    let (id, partition) = (world.name("id"), TopicPartition::new(world.topic(&[&[0, 1]]).await, 0));
    let older = begin(world, &id, &partition).await;
    produce(world, &partition, batch(older, 0), Writing::Transactional(&id)).await.expect("an offset");
    let newer = world.client.init_transactional(&id, A_MINUTE).await.expect("a producer id");
    assert!(newer.id == older.id && newer.epoch > older.epoch, "{newer:?} after {older:?}");

    let fenced = world.client.end_transaction(&id, older, End::Commit).await.unwrap_err();
    assert!(matches!(fenced, Error::Fenced { .. }), "{fenced}");
    let fenced = world.client.add_to_transaction(&id, older, std::slice::from_ref(&partition)).await.unwrap_err();
    assert!(matches!(fenced, Error::Fenced { .. }), "{fenced}");
    let refused = produce(world, &partition, batch(older, 1), Writing::Transactional(&id)).await.unwrap_err();
    assert!(refused.code.is_fenced(), "{refused}");

    world.client.add_to_transaction(&id, newer, std::slice::from_ref(&partition)).await.expect("the newer one may");
    produce(world, &partition, batch(newer, 0), Writing::Transactional(&id)).await.expect("an offset");
    world.client.end_transaction(&id, newer, End::Commit).await.expect("a commit");
}

async fn a_newer_producer_ends_what_the_older_one_left_open(world: &World) {
    let (id, partition) = (world.name("id"), TopicPartition::new(world.topic(&[&[0, 1]]).await, 0));
    let older = begin(world, &id, &partition).await;
    produce(world, &partition, batch(older, 0), Writing::Transactional(&id)).await.expect("an offset");
    assert_eq!(end_of(world, &partition, Isolation::Committed).await, Some(0));
    world.client.init_transactional(&id, A_MINUTE).await.expect("a producer id");
    eventually("it was aborted", async || {
        (end_of(world, &partition, Isolation::Committed).await == Some(2)).then_some(())
    })
    .await;
}

async fn a_producer_that_did_not_hear_its_new_epoch_may_ask_again(world: &World) {
    let id = world.name("id");
    let first = world.client.init_transactional(&id, A_MINUTE).await.expect("a producer id");
    let renewed = world.client.renew_transactional(&id, A_MINUTE, first).await.expect("a new epoch");
    assert!(renewed.id == first.id && renewed.epoch > first.epoch, "{renewed:?} after {first:?}");
    // The answer was lost on its way: whoever asks knows no more than before.
    assert_eq!(world.client.renew_transactional(&id, A_MINUTE, first).await.expect("the same epoch"), renewed);
    let newest = world.client.renew_transactional(&id, A_MINUTE, renewed).await.expect("a newer epoch");
    assert!(newest.epoch > renewed.epoch, "{newest:?} after {renewed:?}");
    let fenced = world.client.renew_transactional(&id, A_MINUTE, first).await.unwrap_err();
    assert!(matches!(fenced, Error::Fenced { .. }), "{fenced}");
}

/// A producer with an open transaction over one partition.
async fn begin(world: &World, id: &str, partition: &TopicPartition) -> ProducerIdentity {
    let producer = world.client.init_transactional(id, A_MINUTE).await.expect("a producer id");
    world.client.add_to_transaction(id, producer, std::slice::from_ref(partition)).await.expect("a transaction");
    producer
}

pub(crate) fn batch(ProducerIdentity { id, epoch }: ProducerIdentity, sequence: i32) -> Bytes {
    let record = Record { value: Some(Bytes::from_static(b"v")), ..Record::default() };
    let options = BatchOptions { producer: Producer { id, epoch, sequence }, transactional: true, ..plain() };
    records::encode_batch(&[record], &options).expect("a batch")
}

pub(crate) async fn end_of(world: &World, partition: &TopicPartition, isolation: Isolation) -> Option<i64> {
    let places = BTreeMap::from([(partition.clone(), Place::Latest)]);
    let mut answers = world.client.list_offsets(&places, isolation).await.expect("an answer");
    answers.remove(partition).expect("the partition's").expect("an offset")
}

/// What the data records say; marks of transactions are left out.
fn values(batches: Bytes) -> Vec<String> {
    let batches = records::decode_batches(batches).map(|batch| batch.expect("a batch"));
    let data = batches.filter(|batch| !batch.head.control).flat_map(|batch| batch.records);
    data.map(|stored| String::from_utf8(stored.record.value.expect("a value").to_vec()).expect("UTF-8")).collect()
}
