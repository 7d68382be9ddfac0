//! What a broker does with bytes that no client sends: it hangs up, and nobody else notices.

use evenkeel_kafka::message;
use kafka_protocol::{
    messages::{ApiVersionsRequest, ApiVersionsResponse},
    protocol::Decodable,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time::timeout,
};

use crate::world::{PATIENCE, World};

promises!(nonsense_ends_a_connection_and_nothing_else, an_unknown_version_of_the_first_question_is_answered);

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
