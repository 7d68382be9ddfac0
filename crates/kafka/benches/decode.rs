//! What reading costs: the metadata of 200,000 partitions (the guard's walk, then the codec), and
//! record batches as a consumer of a metrics topic sees them.
//!
//! `cargo bench -p evenkeel-kafka`. Each row is the best of several rounds, which other work on the
//! machine disturbs least.
#![allow(clippy::print_stdout, reason = "a bench talks to the terminal it was started from")]

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use bytes::Bytes;
use evenkeel_kafka::{
    guard::{self, Limits},
    message,
    records::{BatchOptions, Compression, NO_PRODUCER, Record, decode_batches, encode_batch},
};
use kafka_protocol::{
    messages::{
        BrokerId, MetadataRequest, MetadataResponse, TopicName,
        metadata_response::{MetadataResponsePartition, MetadataResponseTopic},
    },
    protocol::StrBytes,
};

const TOPICS: i32 = 2_000;
const PARTITIONS: i32 = 100;
const VERSION: i16 = 12;
const ROUNDS: usize = 10;
const RECORDS: usize = 1_000;
const BATCHES: usize = 200;

fn main() {
    metadata();
    for compression in [Compression::None, Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd]
    {
        records(compression);
    }
}

fn metadata() {
    let frame = message::encode_response(&cluster(), VERSION, 1).expect("it fits").slice(4..);
    println!("metadata of {} partitions: {:.1} MB", TOPICS * PARTITIONS, frame.len() as f64 / 1e6);
    // Correlation and no tagged fields come before the body.
    let walked = best(|| guard::check_response(3, VERSION, &frame[5..], Limits::KNOWN_PEER).expect("well formed"));
    println!("  guard      {walked:?}");
    let read = || {
        message::decode_response::<MetadataRequest>(frame.clone(), VERSION, Limits::KNOWN_PEER).expect("well formed")
    };
    println!("  both       {:?}", best(read));
}

fn cluster() -> MetadataResponse {
    let partition = |index| {
        let replicas: Vec<_> = (0..3).map(|n| BrokerId(index + n)).collect();
        MetadataResponsePartition::default()
            .with_partition_index(index)
            .with_leader_id(replicas[0])
            .with_replica_nodes(replicas.clone())
            .with_isr_nodes(replicas)
    };
    let topic = |n| {
        let name = TopicName(StrBytes::from_string(format!("some-topic-with-a-name-{n}")));
        MetadataResponseTopic::default().with_name(Some(name)).with_partitions((0..PARTITIONS).map(partition).collect())
    };
    MetadataResponse::default().with_topics((0..TOPICS).map(topic).collect())
}

fn records(compression: Compression) {
    let record = |n: usize| Record {
        key: Some(format!("broker-{}", n % 30).into()),
        // As long as a metric of a partition with its names is.
        value: Some(format!("{n:08}-bytes-in-per-second-of-some-topic-with-a-name").into()),
        headers: Vec::new(),
        timestamp: 1_700_000_000_000 + n as i64,
    };
    let batch: Vec<Record> = (0..RECORDS).map(record).collect();
    let options = BatchOptions { compression, producer: NO_PRODUCER, transactional: false };
    let batch = encode_batch(&batch, &options).expect("it fits");
    let fetched = Bytes::from(batch.repeat(BATCHES));
    let took = best(|| {
        let read: usize = decode_batches(fetched.clone()).map(|batch| batch.expect("well formed").records.len()).sum();
        assert_eq!(read, RECORDS * BATCHES);
    });
    let rate = (RECORDS * BATCHES) as f64 / took.as_secs_f64();
    println!("records, {compression:?}: {rate:.0}/s");
}

fn best<T>(work: impl Fn() -> T) -> Duration {
    let round = |_| {
        let began = Instant::now();
        black_box(work());
        began.elapsed()
    };
    (0..ROUNDS).map(round).min().expect("there are rounds")
}
