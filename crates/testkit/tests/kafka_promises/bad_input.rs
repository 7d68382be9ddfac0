//! What a broker does with bytes that no client sends: it hangs up, and nobody else notices.

use std::collections::BTreeMap;

use bytes::Bytes;
use evenkeel_kafka::{
    BrokerId, Error, ErrorCode, Remedy, TopicPartition,
    calls::{configs::Resource, produce::Writing},
    message,
    records::{self, Record},
};
use kafka_protocol::{
    messages::{ApiVersionsRequest, ApiVersionsResponse},
    protocol::Decodable,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time::timeout,
};

use crate::{
    records::produce,
    world::{PATIENCE, World, plain},
};

promises!(
    nonsense_ends_a_connection_and_nothing_else,
    a_request_that_is_cut_off_ends_its_connection_and_nothing_else,
    an_unknown_version_of_the_first_question_is_answered,
    a_broker_that_is_not_there_is_named,
    hostile_batches_are_refused_and_nothing_is_written,
);

async fn nonsense_ends_a_connection_and_nothing_else(world: &World) {
    let unknown_key = frame(&[0x7f, 0xff, 0, 0, 0, 0, 0, 7, 0xff, 0xff]);
    // Metadata in version 99.
    let unknown_version = frame(&[0, 3, 0, 99, 0, 0, 0, 7, 0xff, 0xff]);
    // Metadata in version 0, which announces two thousand million topics and names none.
    let hostile_array = frame(&[0, 3, 0, 0, 0, 0, 0, 7, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff]);
    let cut_off_header = frame(&[0, 3]);
    let negative = vec![0xff, 0xff, 0xff, 0xfe];
    let oversized = vec![0x7f, 0xff, 0xff, 0xff];
    let browser = b"GET / HTTP/1.1\r\nHost: broker\r\n\r\n".to_vec();
    for nonsense in [unknown_key, unknown_version, hostile_array, cut_off_header, negative, oversized, browser] {
        let mut stream = world.open(0).await;
        stream.write_all(&nonsense).await.expect("a broker that listens");
        let mut answer = Vec::new();
        // However it hangs up: with a word of farewell to TCP or without.
        let _ = timeout(PATIENCE, stream.read_to_end(&mut answer)).await.expect("an end");
        assert!(answer.is_empty(), "{nonsense:?} was answered: {answer:?}");
    }
    assert_eq!(world.client.describe_cluster().await.expect("an answer").brokers.len(), 4);
}

async fn a_request_that_is_cut_off_ends_its_connection_and_nothing_else(world: &World) {
    let whole = message::encode_request(&ApiVersionsRequest::default(), 4, 7, "cut").expect("a request");
    for length in [0, 1, 3, 4, 5, whole.len() - 1] {
        let mut stream = world.open(0).await;
        stream.write_all(&whole[..length]).await.expect("a broker that listens");
        stream.shutdown().await.expect("an end");
        let mut answer = Vec::new();
        let _ = timeout(PATIENCE, stream.read_to_end(&mut answer)).await.expect("an end");
        assert!(answer.is_empty(), "{length} bytes were answered: {answer:?}");
    }
    assert_eq!(world.client.describe_cluster().await.expect("an answer").brokers.len(), 4);
}

async fn a_broker_that_is_not_there_is_named(world: &World) {
    let client = &world.client;
    let nobody = BrokerId(4711);
    let failures = [
        client.describe_log_dirs(nobody, None).await.unwrap_err(),
        client.describe_configs(&[Resource::Broker(nobody)], None).await.whole().unwrap_err(),
        client
            .alter_replica_log_dirs(nobody, &BTreeMap::from([(TopicPartition::new("t", 0), "/d".to_owned())]))
            .await
            .interrupted
            .expect("a failure"),
    ];
    for failure in failures {
        assert!(matches!(failure, Error::UnknownBroker { broker: 4711 }), "{failure:?}");
        assert_eq!(failure.remedy(), Remedy::RefreshMetadata);
    }
}

async fn hostile_batches_are_refused_and_nothing_is_written(world: &World) {
    let partition = TopicPartition::new(world.topic(&[&[0, 1]]).await, 0);
    let record = Record { value: Some(Bytes::from_static(b"value")), ..Record::default() };
    let good = records::encode_batch(std::slice::from_ref(&record), &plain()).expect("a batch");
    // Lengths before the checksum, the format, what is checked, and the end.
    let wounded = |place: usize, byte: u8| {
        let mut bad = good.to_vec();
        bad[place] = byte;
        bad
    };
    let lying_count = {
        let mut bad = wounded(60, 200);
        let checksum = crc32c::crc32c(&bad[21..]);
        bad[17..21].copy_from_slice(&checksum.to_be_bytes());
        bad
    };
    for bad in [wounded(8, 0x7f), wounded(11, 0), wounded(40, 1), good[..good.len() - 1].to_vec(), lying_count] {
        let answer = produce(world, &partition, Bytes::from(bad.clone()), Writing::Plain).await;
        assert!(answer.is_err(), "{bad:?} was written: {answer:?}");
    }
    // Where a batch goes is not for its producer to say.
    let two = records::encode_batch(&[record.clone(), record], &plain()).expect("a batch");
    for base in [i64::MAX, 7, -1] {
        let placed = [&base.to_be_bytes()[..], &two[8..]].concat();
        let answer = produce(world, &partition, Bytes::from(placed), Writing::Plain).await;
        assert_eq!(answer.map_err(|refusal| refusal.code), Err(ErrorCode(87)), "at {base}");
    }
    assert_eq!(produce(world, &partition, good, Writing::Plain).await, Ok(0), "nothing is there");
}

async fn an_unknown_version_of_the_first_question_is_answered(world: &World) {
    // It will look like the newest that we know, as each has so far.
    let asked = message::encode_request(&ApiVersionsRequest::default(), 4, 7, "future").expect("a request");
    let mut asked = asked.to_vec();
    asked[7] = 99;
    let mut stream = world.open(0).await;
    stream.write_all(&asked).await.expect("a broker that listens");
    let length = timeout(PATIENCE, stream.read_i32()).await.expect("an answer in time").expect("an answer");
    let mut answer = vec![0; usize::try_from(length).expect("a length")];
    stream.read_exact(&mut answer).await.expect("all of it");
    assert_eq!(answer[..4], [0, 0, 0, 7]);
    // In version 0, whatever was asked for, and with what it does speak.
    let answer = ApiVersionsResponse::decode(&mut &answer[4..], 0).expect("version 0");
    assert_eq!(answer.error_code, 35);
    assert!(answer.api_keys.iter().any(|key| key.api_key == 18 && key.max_version >= 3), "{answer:?}");
}

fn frame(message: &[u8]) -> Vec<u8> {
    let length = i32::try_from(message.len()).expect("a short message");
    [&length.to_be_bytes(), message].concat()
}
