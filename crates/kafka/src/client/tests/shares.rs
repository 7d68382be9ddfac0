//! What many leaders may send at the same time.

use std::sync::Mutex;

use kafka_protocol::messages::{
    FetchRequest, FetchResponse,
    fetch_response::{FetchableTopicResponse, PartitionData},
};

use super::*;
use crate::calls::fetch::FetchLimits;

const LIMITS: FetchLimits = FetchLimits {
    partition_bytes: 1_000,
    total_bytes: 2_000,
    together_bytes: 6_000,
    wait: std::time::Duration::from_millis(500),
};

/// What each request may bring, when so many brokers lead a partition each and the first of them hangs up once.
async fn rooms(leaders: u16) -> Vec<i32> {
    let memory = Memory::default();
    let rooms = Arc::new(Mutex::new(Vec::new()));
    let brokers: Vec<(i32, u16)> = (1..=leaders).map(|port| (i32::from(port), port)).collect();
    let leading: Vec<i32> = brokers.iter().map(|(id, _)| *id).collect();
    for port in 1..=leaders {
        let (rooms, brokers, leading) = (Arc::clone(&rooms), brokers.clone(), leading.clone());
        let mut hangs_up = port == 1;
        play(&memory, port, move |request| match key(request) {
            ApiKey::Metadata => answer(request, metadata(&brokers, 1, &[("t", &leading)])),
            _ if std::mem::take(&mut hangs_up) => Reply::Hangup,
            _ => {
                let asked: FetchRequest = request.decode(Limits::KNOWN_PEER).unwrap();
                rooms.lock().unwrap().push(asked.max_bytes);
                let partitions = asked.topics[0].partitions.iter();
                let partitions =
                    partitions.map(|asked| PartitionData::default().with_partition_index(asked.partition)).collect();
                let topic = FetchableTopicResponse::default().with_topic(TopicName(text("t")));
                let topic = topic.with_partitions(partitions);
                answer(request, FetchResponse::default().with_responses(vec![topic]))
            }
        });
    }
    let offsets = (0..i32::from(leaders)).map(|index| (TopicPartition::new("t", index), 0)).collect();
    let fetched = client(&memory, 1).fetch(&offsets, Isolation::Uncommitted, LIMITS).await.unwrap();
    assert_eq!((fetched.len(), fetched.values().all(Result::is_ok)), (usize::from(leaders), true));
    rooms.lock().unwrap().clone()
}

#[tokio::test(start_paused = true)]
async fn what_many_leaders_send_together_is_bounded() {
    assert_eq!(rooms(1).await, [2_000]);
    assert_eq!(rooms(3).await, [2_000; 3]);
    assert_eq!(rooms(60).await, [100; 60], "also what is asked for a second time");
}
