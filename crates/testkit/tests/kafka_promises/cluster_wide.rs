//! What touches more than one thing: settings for all brokers, elections that lose records, transactions that nobody
//! ends.

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use evenkeel_kafka::{
    BrokerId, Error, ErrorCode, Refusal, TopicPartition,
    calls::{
        configs::{Change, Resource, Source},
        elections::Election,
        offsets::Isolation,
        produce::Writing,
        transactions::End,
    },
    records::{self, Record},
};

use crate::{
    configs::{alter, until},
    records::produce,
    transactions::{batch, end_of},
    world::{World, eventually, ids, plain},
};

promises_on_own_brokers!(
    3: what_is_set_for_all_brokers_holds_for_topics,
    an_unclean_election_is_made_where_nobody_leads_and_loses_records,
    a_transaction_that_nobody_ends_is_aborted_and_its_producer_fenced,
);

const LEAST_IN_SYNC: &str = "min.insync.replicas";

async fn what_is_set_for_all_brokers_holds_for_topics(world: &World) {
    let own = world.topic_with("own", &[&[0, 1]], &[(LEAST_IN_SYNC, "1")]).await;
    let other = world.topic_with("other", &[&[0, 1]], &[]).await;
    assert_eq!(alter(world, &Resource::AllBrokers, LEAST_IN_SYNC, Change::Set("2".to_owned())).await, Ok(()));
    let told = |source| {
        move |seen: Option<&evenkeel_kafka::calls::configs::Setting>| seen.is_some_and(|one| one.source == source)
    };
    until(world, &Resource::Topic(other.clone()), LEAST_IN_SYNC, |seen| {
        told(Source::AllBrokers)(seen) && seen.and_then(|one| one.value.as_deref()) == Some("2")
    })
    .await;
    until(world, &Resource::Topic(own.clone()), LEAST_IN_SYNC, told(Source::Topic)).await;

    world.brokers.stop(1).await;
    for topic in [&own, &other] {
        world.until(topic, 0, "one is left in sync", |one| one.in_sync == ids(&[0])).await;
    }
    let write = async |topic: &str| {
        let record = Record { value: Some(Bytes::from_static(b"v")), ..Record::default() };
        let records = records::encode_batch(&[record], &plain()).expect("a batch");
        let partition = TopicPartition::new(topic, 0);
        // Too few in sync may be enough in a moment, so a client asks again for as long as it may.
        let client = world.client.with_patience(Duration::from_secs(3));
        let written = client.produce(&BTreeMap::from([(partition.clone(), records)]), Writing::Plain).await;
        written.expect("an answer").remove(&partition).expect("the partition's")
    };
    assert_eq!(write(&own).await, Ok(0));
    let refused: Refusal = write(&other).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode(19), "{refused}");
}

async fn an_unclean_election_is_made_where_nobody_leads_and_loses_records(world: &World) {
    let topic = world.topic(&[&[0, 1], &[2, 1]]).await;
    let [lost, led] = [0, 1].map(|index| TopicPartition::new(&topic, index));
    world.write(&lost, &[Bytes::from_static(b"kept")]).await;
    world.brokers.stop(1).await;
    world.until(&topic, 0, "one is left in sync", |one| one.in_sync == ids(&[0])).await;
    world.write(&lost, &[Bytes::from_static(b"lost")]).await;
    world.brokers.kill(0).await;
    world.until(&topic, 0, "nobody leads", |one| one.leader.is_none()).await;
    world.brokers.start(1).await;
    eventually("it is back", async || world.alive().await.contains(&1).then_some(())).await;
    let seen = world.look(&topic).await.expect("the topic").partitions.remove(0);
    assert_eq!(seen.leader, None, "who has not all of it does not lead");

    let asked = [lost.clone(), led.clone()];
    let changes = world.client.elect_leaders(Election::Unclean, &asked).await;
    assert!(changes.interrupted.is_none(), "{changes:?}");
    assert_eq!(changes.answers[&lost], Ok(()));
    assert_eq!(changes.answers[&led].as_ref().unwrap_err().code, ErrorCode::ELECTION_NOT_NEEDED);
    world.until(&topic, 0, "somebody leads", |one| one.leader == Some(BrokerId(1))).await;
    assert_eq!(end_of(world, &lost, Isolation::Uncommitted).await, Some(1), "the second record is lost");
    // The old leader follows the new one, and gives up what it had.
    world.brokers.start(0).await;
    world.until(&topic, 0, "it is back", |one| one.in_sync.len() == 2).await;
    assert_eq!(end_of(world, &lost, Isolation::Uncommitted).await, Some(1));
}

async fn a_transaction_that_nobody_ends_is_aborted_and_its_producer_fenced(world: &World) {
    let (id, partition) = (world.name("id"), TopicPartition::new(world.topic(&[&[0, 1]]).await, 0));
    let producer = world.client.init_transactional(&id, Duration::from_secs(1)).await.expect("a producer id");
    world.client.add_to_transaction(&id, producer, std::slice::from_ref(&partition)).await.expect("a transaction");
    assert_eq!(produce(world, &partition, batch(producer, 0), Writing::Transactional(&id)).await, Ok(0));
    eventually("it was aborted", async || {
        (end_of(world, &partition, Isolation::Committed).await == Some(2)).then_some(())
    })
    .await;
    let fenced = world.client.end_transaction(&id, producer, End::Commit).await.unwrap_err();
    assert!(matches!(fenced, Error::Fenced { .. }), "{fenced:?}");
}
