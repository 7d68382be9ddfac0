//! Writer and reader against a peer that keeps what it is given, under paused time.

mod reading;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::{
    AddPartitionsToTxnRequest, AddPartitionsToTxnResponse, ApiKey, DescribeTopicPartitionsResponse, EndTxnRequest,
    EndTxnResponse, FetchRequest, FetchResponse, FindCoordinatorResponse, InitProducerIdRequest,
    InitProducerIdResponse, ListOffsetsRequest, ListOffsetsResponse, ProduceRequest, ProduceResponse, ProducerId,
    TopicName, TransactionalId,
    describe_topic_partitions_response::{
        DescribeTopicPartitionsResponsePartition, DescribeTopicPartitionsResponseTopic,
    },
    fetch_response::{FetchableTopicResponse, PartitionData},
    find_coordinator_response::Coordinator,
    list_offsets_response::{ListOffsetsPartitionResponse, ListOffsetsTopicResponse},
    produce_response::{PartitionProduceResponse, TopicProduceResponse},
};

use super::*;
use crate::{
    ErrorCode,
    calls::offsets::Isolation,
    connect::Memory,
    error::Error,
    guard::Limits,
    message::RawRequest,
    records::{Compression, Record, decode_batches, place},
    testing::{Reply, answer, client, key, metadata, play},
    types::{TopicPartition, text},
};

const COMPRESSIONS: [Compression; 5] =
    [Compression::None, Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd];

/// The logs of two partitions of one topic, with a broker's idea of sequences.
#[derive(Default)]
struct Logs {
    batches: [Vec<(i64, Bytes)>; 2],
    /// By partition and producer.
    sequences: BTreeMap<(usize, i64), i32>,
    /// Answers to writes that get lost, after the deed.
    lose: usize,
    next_producer: i64,
    /// The code of answers to writes.
    refuse: i16,
    /// Answers to this call get lost, after the deed.
    mute: Option<ApiKey>,
    /// The partitions of the open transaction, if one is open.
    joined: BTreeSet<i32>,
    /// How transactions ended: whether committed.
    ended: Vec<bool>,
    /// What retention has left of each log.
    start: [i64; 2],
    /// Questions for the topic that come before the broker has heard of it.
    unheard: usize,
    /// No batch fits an answer with less room than this.
    cramped: i32,
    /// The room that fetches gave each partition.
    rooms: Vec<i32>,
    /// Whether all batches fit an answer.
    roomy: bool,
    /// Whether an answer has room for one partition only.
    scarce: bool,
    /// What fetches of the second partition are refused with, and how often.
    unreadable: (i16, usize),
}

impl Logs {
    fn end(&self, partition: usize) -> i64 {
        self.batches[partition].last().map_or(0, |(offset, batch)| offset + count(batch))
    }

    fn serve(&mut self, request: &RawRequest) -> Reply {
        let reply = self.obey(request);
        if self.mute == Some(key(request)) { Reply::Hangup } else { reply }
    }

    fn obey(&mut self, request: &RawRequest) -> Reply {
        let topic = || TopicName(text("t"));
        match key(request) {
            ApiKey::Metadata => answer(request, metadata(&[(1, 1)], 1, &[("t", &[1, 1])])),
            ApiKey::DescribeTopicPartitions => {
                let partitions =
                    (0..2).map(|index| DescribeTopicPartitionsResponsePartition::default().with_partition_index(index));
                let found = DescribeTopicPartitionsResponseTopic::default()
                    .with_name(Some(topic()))
                    .with_partitions(partitions.collect())
                    .with_error_code(if self.unheard > 0 { ErrorCode::UNKNOWN_TOPIC_OR_PARTITION.0 } else { 0 });
                self.unheard = self.unheard.saturating_sub(1);
                answer(request, DescribeTopicPartitionsResponse::default().with_topics(vec![found]))
            }
            ApiKey::FindCoordinator => {
                let here = Coordinator::default().with_host(text("peer")).with_port(1);
                answer(request, FindCoordinatorResponse::default().with_coordinators(vec![here]))
            }
            ApiKey::AddPartitionsToTxn => {
                let asked: AddPartitionsToTxnRequest = request.decode(Limits::KNOWN_PEER).unwrap();
                self.joined.extend(&asked.v3_and_below_topics[0].partitions);
                answer(request, AddPartitionsToTxnResponse::default())
            }
            ApiKey::EndTxn => {
                let asked: EndTxnRequest = request.decode(Limits::KNOWN_PEER).unwrap();
                // The same end again is one; another, or the end of nothing, is refused.
                let code = match std::mem::take(&mut self.joined).is_empty() {
                    true if self.ended.last() == Some(&asked.committed) => 0,
                    true => ErrorCode::INVALID_TXN_STATE.0,
                    false => {
                        self.ended.push(asked.committed);
                        0
                    }
                };
                answer(request, EndTxnResponse::default().with_error_code(code))
            }
            ApiKey::InitProducerId => {
                let asked: InitProducerIdRequest = request.decode(Limits::KNOWN_PEER).unwrap();
                // A real broker refuses an empty id.
                assert_ne!(asked.transactional_id, Some(TransactionalId(text(""))));
                self.next_producer += 1;
                let producer = ProducerId(self.next_producer);
                answer(request, InitProducerIdResponse::default().with_producer_id(producer).with_producer_epoch(0))
            }
            ApiKey::ListOffsets => {
                let asked: ListOffsetsRequest = request.decode(Limits::KNOWN_PEER).unwrap();
                let partitions = asked.topics[0].partitions.iter().map(|partition| {
                    let index = partition.partition_index;
                    let log = index as usize;
                    let offset = if partition.timestamp == -1 { self.end(log) } else { self.start[log] };
                    ListOffsetsPartitionResponse::default().with_partition_index(index).with_offset(offset)
                });
                let found =
                    ListOffsetsTopicResponse::default().with_name(topic()).with_partitions(partitions.collect());
                answer(request, ListOffsetsResponse::default().with_topics(vec![found]))
            }
            ApiKey::Produce => self.produce(request),
            ApiKey::Fetch => self.fetch(request),
            other => panic!("not in the script: {other:?}"),
        }
    }

    fn produce(&mut self, request: &RawRequest) -> Reply {
        let asked: ProduceRequest = request.decode(Limits::KNOWN_PEER).unwrap();
        let mut responses = Vec::new();
        if asked.transactional_id.is_some() {
            let mut written = asked.topic_data[0].partition_data.iter();
            assert!(written.all(|partition| self.joined.contains(&partition.index)), "outside of a transaction");
        }
        for partition in &asked.topic_data[0].partition_data {
            let index = partition.index as usize;
            let bytes = partition.records.clone().unwrap();
            let head = decode_batches(bytes.clone()).next().unwrap().unwrap().head;
            let offset = self.end(index);
            // A sequence from before is a repetition: it was written, and is not again.
            let expected = self.sequences.entry((index, head.producer.id)).or_default();
            if head.producer.sequence == *expected {
                let stored = place(&bytes, offset, 0);
                *expected += count(&stored) as i32;
                self.batches[index].push((offset, stored));
            }
            responses.push(
                PartitionProduceResponse::default()
                    .with_index(partition.index)
                    .with_base_offset(offset)
                    .with_error_code(self.refuse),
            );
        }
        if self.lose > 0 {
            self.lose -= 1;
            return Reply::Hangup;
        }
        let topic = TopicProduceResponse::default().with_name(TopicName(text("t"))).with_partition_responses(responses);
        answer(request, ProduceResponse::default().with_responses(vec![topic]))
    }

    fn fetch(&mut self, request: &RawRequest) -> Reply {
        let asked: FetchRequest = request.decode(Limits::KNOWN_PEER).unwrap();
        let mut is_full = false;
        let partitions = asked.topics[0].partitions.iter().map(|partition| {
            let index = partition.partition as usize;
            let cramped = partition.partition_max_bytes < self.cramped;
            self.rooms.push(partition.partition_max_bytes);
            let wanted = |(offset, batch): &&(i64, Bytes)| offset + count(batch) > partition.fetch_offset;
            // One batch at a time, and a piece of the next as real brokers do.
            let most = match (self.roomy, cramped) {
                (true, _) => usize::MAX,
                (_, true) => 1,
                _ => 2,
            };
            let mut bytes = BytesMut::new();
            for (position, (_, batch)) in self.batches[index].iter().filter(wanted).take(most).enumerate() {
                let whole = self.roomy || position == 0 && !cramped;
                bytes.extend_from_slice(if whole { batch } else { &batch[..batch.len() / 2] });
            }
            if is_full {
                bytes.clear();
            }
            is_full |= self.scarce && !bytes.is_empty();
            let there = self.start[index]..=self.end(index);
            let code = match &mut self.unreadable {
                (code, times) if index == 1 && *times > 0 => {
                    *times -= 1;
                    *code
                }
                _ if there.contains(&partition.fetch_offset) => 0,
                _ => ErrorCode::OFFSET_OUT_OF_RANGE.0,
            };
            PartitionData::default()
                .with_partition_index(partition.partition)
                .with_high_watermark(self.end(index))
                .with_last_stable_offset(self.end(index))
                .with_records(Some(if code == 0 { bytes.freeze() } else { Bytes::new() }))
                .with_error_code(code)
        });
        let topic =
            FetchableTopicResponse::default().with_topic(TopicName(text("t"))).with_partitions(partitions.collect());
        answer(request, FetchResponse::default().with_responses(vec![topic]))
    }
}

/// How many offsets a batch takes.
fn count(batch: &Bytes) -> i64 {
    let head = decode_batches(batch.clone()).next().unwrap().unwrap().head;
    head.last_offset - head.base_offset + 1
}

fn record(key: &str, value: Option<&str>) -> Record {
    let bytes = |text: &str| Bytes::copy_from_slice(text.as_bytes());
    Record { key: Some(bytes(key)), value: value.map(bytes), headers: vec![], timestamp: 5 }
}

fn scene() -> (Memory, Arc<Mutex<Logs>>) {
    let memory = Memory::default();
    let logs = Arc::new(Mutex::new(Logs::default()));
    let served = Arc::clone(&logs);
    play(&memory, 1, move |request| served.lock().unwrap().serve(request));
    (memory, logs)
}

async fn read_all(memory: &Memory, start: Start) -> BTreeMap<i32, Vec<(i64, String)>> {
    let client = client(memory, 1);
    let mut reader = TopicReader::open(client, "t", &start, Until::End, Isolation::Committed).await.unwrap();
    let mut read: BTreeMap<i32, Vec<(i64, String)>> = BTreeMap::new();
    while let Some(records) = reader.next().await.unwrap() {
        for TopicRecord { partition, stored } in records {
            let key = String::from_utf8(stored.record.key.unwrap().to_vec()).unwrap();
            read.entry(partition).or_default().push((stored.offset, key));
        }
    }
    read
}

#[tokio::test(start_paused = true)]
async fn what_was_written_is_read_in_every_compression() {
    let (memory, _) = scene();
    for compression in COMPRESSIONS {
        let name = format!("{compression:?}");
        let mut writer = TopicWriter::idempotent(client(&memory, 1), compression).await.unwrap();
        let records =
            BTreeMap::from([(TopicPartition::new("t", 0), vec![record(&name, Some("v")), record(&name, None)])]);
        writer.write(&records).await.unwrap();
    }
    let read = read_all(&memory, Start::Earliest).await;
    let keys: Vec<&str> = read[&0].iter().map(|(_, key)| key.as_str()).collect();
    assert_eq!(keys, ["None", "None", "Gzip", "Gzip", "Snappy", "Snappy", "Lz4", "Lz4", "Zstd", "Zstd"]);
    assert_eq!(read[&0].iter().map(|(offset, _)| *offset).collect::<Vec<_>>(), (0..10).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_does_not_write_twice() {
    let (memory, logs) = scene();
    let mut writer = TopicWriter::idempotent(client(&memory, 1), Compression::None).await.unwrap();
    logs.lock().unwrap().lose = 2;
    for key in ["a", "b"] {
        let one = |partition| (TopicPartition::new("t", partition), vec![record(key, Some("v"))]);
        writer.write(&BTreeMap::from([one(0), one(1)])).await.unwrap();
    }
    let read = read_all(&memory, Start::Earliest).await;
    let expected = vec![(0, "a".to_owned()), (1, "b".to_owned())];
    assert_eq!(read, BTreeMap::from([(0, expected.clone()), (1, expected)]));
}

#[tokio::test(start_paused = true)]
async fn reading_goes_on_from_offsets_and_ends_where_the_log_does() {
    let (memory, _) = scene();
    let mut writer = TopicWriter::idempotent(client(&memory, 1), Compression::None).await.unwrap();
    let records = ["a", "b", "c"].map(|key| record(key, Some("v"))).to_vec();
    writer.write(&BTreeMap::from([(TopicPartition::new("t", 0), records)])).await.unwrap();
    let from = |offset| Start::Offsets(BTreeMap::from([(0, offset)]));
    assert_eq!(read_all(&memory, from(2)).await, BTreeMap::from([(0, vec![(2, "c".to_owned())])]));
    assert!(read_all(&memory, from(3)).await.is_empty());
    assert!(read_all(&memory, Start::Latest).await.is_empty());
}

fn one(key: &str) -> BTreeMap<TopicPartition, Vec<Record>> {
    BTreeMap::from([(TopicPartition::new("t", 0), vec![record(key, Some("v"))])])
}

async fn journal(memory: &Memory) -> TopicWriter {
    let timeout = Duration::from_secs(30);
    TopicWriter::transactional(client(memory, 1), "journal", timeout, Compression::None).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_writer_that_was_fenced_off_stays_so() {
    let (memory, logs) = scene();
    let mut writer = journal(&memory).await;
    writer.write(&one("a")).await.unwrap();
    logs.lock().unwrap().refuse = ErrorCode::INVALID_PRODUCER_EPOCH.0;
    assert!(matches!(writer.write(&one("b")).await, Err(Error::Fenced { .. })));
    logs.lock().unwrap().refuse = 0;
    assert!(matches!(writer.write(&one("c")).await, Err(Error::Fenced { .. })));
    assert!(matches!(writer.commit().await, Err(Error::Fenced { .. })));
    assert!(matches!(writer.abort().await, Err(Error::Fenced { .. })));
}

#[tokio::test(start_paused = true)]
async fn after_an_uncertain_write_a_transaction_can_only_be_aborted() {
    let (memory, logs) = scene();
    let mut writer = journal(&memory).await;
    logs.lock().unwrap().refuse = ErrorCode::INVALID_REQUEST.0;
    assert!(writer.write(&one("a")).await.is_err());
    logs.lock().unwrap().refuse = 0;
    assert!(writer.commit().await.is_err());
    assert!(writer.write(&one("b")).await.is_err());
    let before = writer.producer();
    writer.abort().await.unwrap();
    assert_ne!(writer.producer(), before, "it goes on as somebody new, with fresh sequences");
    writer.write(&one("c")).await.unwrap();
    writer.commit().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn after_a_lost_commit_nothing_is_written_before_an_abort() {
    let (memory, logs) = scene();
    let mut writer = journal(&memory).await;
    writer.write(&one("a")).await.unwrap();
    logs.lock().unwrap().mute = Some(ApiKey::EndTxn);
    assert!(matches!(writer.commit().await, Err(Error::Call { .. })));
    logs.lock().unwrap().mute = None;
    // The transaction is over, so this would go nowhere.
    assert!(writer.write(&one("b")).await.is_err());
    assert!(writer.commit().await.is_err());
    let before = writer.producer();
    writer.abort().await.unwrap();
    assert_ne!(writer.producer(), before, "it goes on as somebody new, with fresh sequences");
    writer.write(&one("c")).await.unwrap();
    writer.commit().await.unwrap();
    assert_eq!(logs.lock().unwrap().ended, [true, true], "what was committed stayed so");
}

#[tokio::test(start_paused = true)]
async fn a_commit_that_was_given_up_is_uncertain_too() {
    let (memory, logs) = scene();
    let mut writer = journal(&memory).await;
    writer.write(&one("a")).await.unwrap();
    logs.lock().unwrap().mute = Some(ApiKey::EndTxn);
    assert!(tokio::time::timeout(Duration::from_millis(10), writer.commit()).await.is_err());
    logs.lock().unwrap().mute = None;
    assert!(writer.write(&one("b")).await.is_err());
    writer.abort().await.unwrap();
    writer.write(&one("c")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_transaction_that_may_have_been_opened_is_aborted() {
    let (memory, logs) = scene();
    let mut writer = journal(&memory).await;
    logs.lock().unwrap().mute = Some(ApiKey::AddPartitionsToTxn);
    assert!(matches!(writer.write(&one("a")).await, Err(Error::Call { .. })));
    logs.lock().unwrap().mute = None;
    assert!(writer.commit().await.is_err(), "nothing was written that could be committed");
    writer.abort().await.unwrap();
    assert_eq!(logs.lock().unwrap().ended, [false]);
    assert!(logs.lock().unwrap().joined.is_empty());
    writer.write(&one("b")).await.unwrap();
    writer.commit().await.unwrap();
}
