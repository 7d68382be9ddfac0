//! Logs that lose their beginning or their end while they are read, and topics that are very new.

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
    logs.lock().unwrap().cramped = true;
    let mut reader = open(client(&memory, 1), Start::Earliest, Until::End).await.unwrap();
    let error = reader.next().await.unwrap_err();
    assert!(matches!(error, Error::Records { source: RecordsError::TooLarge(_), .. }), "{error:?}");
}
