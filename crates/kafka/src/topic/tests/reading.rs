//! Logs that lose their beginning or their end while they are read, partitions that cannot be, batches that grow, and
//! topics that are very new.

use super::*;
use crate::{client::Client, records::RecordsError};

async fn open(client: Client, start: Start, until: Until) -> Result<TopicReader, Error> {
    TopicReader::open(client, "t", &start, until, Isolation::Committed).await
}

/// Three batches of one record each in partition 0.
async fn three(memory: &Memory) {
    let mut writer = TopicWriter::idempotent(client(memory, 1), Compression::None).await.unwrap();
    for key in ["a", "b", "c"] {
        writer.write(&one(key)).await.unwrap();
    }
}

async fn offsets(reader: &mut TopicReader) -> Vec<i64> {
    reader.next().await.unwrap().unwrap().iter().map(|record| record.stored.offset).collect()
}

#[tokio::test(start_paused = true)]
async fn what_retention_removed_is_passed_over() {
    let (memory, logs) = scene();
    three(&memory).await;
    let mut reader = open(client(&memory, 1), Start::Earliest, Until::Forever).await.unwrap();
    assert_eq!(offsets(&mut reader).await, [0]);
    logs.lock().unwrap().start[0] = 2;
    assert!(offsets(&mut reader).await.is_empty());
    assert_eq!(offsets(&mut reader).await, [2]);
}

#[tokio::test(start_paused = true)]
async fn a_log_that_lost_its_end_is_an_error_and_not_read_again() {
    let (memory, logs) = scene();
    three(&memory).await;
    let mut reader = open(client(&memory, 1), Start::Latest, Until::Forever).await.unwrap();
    logs.lock().unwrap().batches[0].truncate(1);
    let error = reader.next().await.unwrap_err();
    assert!(matches!(error, Error::Shortened { position: 3, end: 1, .. }), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn a_reader_to_the_end_hears_that_the_end_is_lost() {
    let (memory, logs) = scene();
    three(&memory).await;
    let mut reader = open(client(&memory, 1), Start::Earliest, Until::End).await.unwrap();
    assert_eq!(offsets(&mut reader).await, [0]);
    // It stands where the log ends now, and is to read to where it ended.
    logs.lock().unwrap().batches[0].truncate(1);
    let error = reader.next().await.unwrap_err();
    assert!(matches!(error, Error::Shortened { position: 3, end: 1, .. }), "{error:?}");

    let beyond = Start::Offsets(BTreeMap::from([(0, 2)]));
    let error = open(client(&memory, 1), beyond, Until::End).await.unwrap_err();
    assert!(matches!(error, Error::Shortened { position: 2, end: 1, .. }), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn a_topic_that_was_just_made_is_waited_for() {
    let (memory, logs) = scene();
    three(&memory).await;
    logs.lock().unwrap().unheard = 3;
    let mut reader = open(client(&memory, 1), Start::Earliest, Until::End).await.unwrap();
    assert_eq!(offsets(&mut reader).await, [0]);
    logs.lock().unwrap().unheard = usize::MAX;
    let error = open(client(&memory, 1), Start::Earliest, Until::End).await.unwrap_err();
    assert_eq!(error.refusal().unwrap().code, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_fits_no_answer_is_an_error() {
    let (memory, logs) = scene();
    three(&memory).await;
    logs.lock().unwrap().cramped = i32::MAX;
    let mut reader = open(client(&memory, 1), Start::Earliest, Until::End).await.unwrap();
    let error = reader.next().await.unwrap_err();
    assert!(matches!(error, Error::Records { source: RecordsError::TooLarge(_), .. }), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn room_for_a_large_batch_is_given_back_when_it_was_read() {
    let (memory, logs) = scene();
    three(&memory).await;
    const MIB: i32 = 1024 * 1024;
    logs.lock().unwrap().cramped = 4 * MIB;
    let mut reader = open(client(&memory, 1), Start::Earliest, Until::End).await.unwrap();
    let mut seen = 0;
    while let Some(records) = reader.next().await.unwrap() {
        seen += records.len();
    }
    let batches = logs.lock().unwrap().batches.iter().map(Vec::len).sum::<usize>();
    let rooms = logs.lock().unwrap().rooms.clone();
    assert!(seen > 0 && batches > 1, "{seen} records in {batches} batches");
    assert_eq!(rooms.iter().copied().max(), Some(4 * MIB));
    let widest = rooms.iter().filter(|room| **room == 4 * MIB).count();
    assert!(widest <= batches, "one wide fetch for each batch: {rooms:?}");
    assert!(rooms.windows(2).any(|two| two[0] == 4 * MIB && two[1] == MIB), "{rooms:?}");
}

/// One record in each partition.
async fn one_each(memory: &Memory) {
    let mut writer = TopicWriter::idempotent(client(memory, 1), Compression::None).await.unwrap();
    let one = |partition, key| (TopicPartition::new("t", partition), vec![record(key, Some("v"))]);
    writer.write(&BTreeMap::from([one(0, "a"), one(1, "b")])).await.unwrap();
}

fn places(records: &[TopicRecord]) -> Vec<(i32, i64)> {
    records.iter().map(|record| (record.partition, record.stored.offset)).collect()
}

#[tokio::test(start_paused = true)]
async fn records_come_once_though_a_later_partition_fails() {
    let (memory, logs) = scene();
    one_each(&memory).await;
    let mut reader = open(client(&memory, 1), Start::Earliest, Until::End).await.unwrap();
    // Not permitted: nothing that the client would repeat by itself.
    logs.lock().unwrap().unreadable = (29, 1);
    let first = reader.next().await.unwrap().unwrap();
    assert_eq!((places(&first), reader.positions()), (vec![(0, 0)], BTreeMap::from([(0, 1), (1, 0)])));
    assert_eq!(reader.next().await.unwrap_err().refusal().unwrap().code, ErrorCode(29));
    let second = reader.next().await.unwrap().unwrap();
    assert_eq!(places(&second), [(1, 0)]);
    assert!(reader.next().await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn records_come_once_though_the_wait_for_them_was_given_up() {
    let (memory, logs) = scene();
    one_each(&memory).await;
    let mut reader = open(client(&memory, 1), Start::Earliest, Until::End).await.unwrap();
    {
        let mut logs = logs.lock().unwrap();
        // What it asks next about the second partition gets no answer.
        logs.unreadable = (ErrorCode::OFFSET_OUT_OF_RANGE.0, 1);
        logs.mute = Some(ApiKey::ListOffsets);
    }
    let mut read = Vec::new();
    for _ in 0..3 {
        if let Ok(next) = tokio::time::timeout(Duration::from_secs(1), reader.next()).await {
            read.extend(places(&next.unwrap().unwrap_or_default()));
        }
    }
    logs.lock().unwrap().mute = None;
    while let Some(next) = reader.next().await.unwrap() {
        read.extend(places(&next));
    }
    assert_eq!(read, [(0, 0), (1, 0)]);
}

#[tokio::test(start_paused = true)]
async fn a_partition_that_cannot_be_read_is_left_out_where_that_is_wanted() {
    let (memory, logs) = scene();
    one_each(&memory).await;
    for gaps in [Gaps::Refuse, Gaps::Tell] {
        logs.lock().unwrap().unreadable = (0, 0);
        let (client, isolation) = (client(&memory, 1), Isolation::Committed);
        let opened = TopicReader::open_with(client, "t", &Start::Earliest, Until::End, isolation, gaps).await;
        let mut reader = opened.unwrap();
        logs.lock().unwrap().unreadable = (ErrorCode::NOT_LEADER_OR_FOLLOWER.0, usize::MAX);
        assert_eq!(places(&reader.next().await.unwrap().unwrap()), [(0, 0)]);
        let end = reader.next().await;
        match gaps {
            Gaps::Refuse => assert_eq!(end.unwrap_err().refusal().unwrap().code, ErrorCode::NOT_LEADER_OR_FOLLOWER),
            Gaps::Tell => {
                assert!(end.unwrap().is_none());
                assert_eq!(reader.gaps().keys().collect::<Vec<_>>(), [&1]);
                assert_eq!(reader.positions(), BTreeMap::from([(0, 1), (1, 0)]), "it goes on from there later");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn batches_that_grow_are_not_all_in_memory_at_once() {
    // Two of these are more than is held at once, and one is not.
    const GROWN: usize = 5 * 1024 * 1024;
    let (memory, logs) = scene();
    let mut writer = TopicWriter::idempotent(client(&memory, 1), Compression::Zstd).await.unwrap();
    let value = Some(Bytes::from(vec![0; GROWN]));
    let large = Record { value, ..record("large", None) };
    for _ in 0..6 {
        let records = BTreeMap::from([(TopicPartition::new("t", 0), vec![large.clone()])]);
        writer.write(&records).await.unwrap();
    }
    logs.lock().unwrap().roomy = true;
    let mut reader = open(client(&memory, 1), Start::Earliest, Until::End).await.unwrap();
    for round in 0..3 {
        let read = reader.next().await.unwrap().unwrap();
        assert_eq!(places(&read), [(0, 2 * round), (0, 2 * round + 1)]);
        assert_eq!(reader.positions()[&0], 2 * round + 2);
    }
    assert!(reader.next().await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_partition_does_not_wait_for_the_end_of_another() {
    let (memory, logs) = scene();
    for _ in 0..5 {
        three(&memory).await;
    }
    one_each(&memory).await;
    logs.lock().unwrap().scarce = true;
    let mut reader = open(client(&memory, 1), Start::Earliest, Until::End).await.unwrap();
    let mut read = Vec::new();
    while let Some(records) = reader.next().await.unwrap() {
        read.extend(places(&records));
    }
    assert_eq!(read.len(), 17);
    assert_eq!(read.iter().position(|place| *place == (1, 0)), Some(1), "{read:?}");
    assert!(read.iter().filter(|(partition, _)| *partition == 0).map(|(_, offset)| *offset).eq(0..16), "{read:?}");
}
