use super::*;
use evenkeel_kafka::records::decode_batches;

use crate::code::Code;

/// At the end, in a segment that never ends.
const NEXT: Place = Place { offset: 0, leader_epoch: 0, roll: Roll { bytes: u64::MAX, millis: i64::MAX } };
/// At the end, in a segment of its own.
const ALONE: Place = Place { roll: Roll { bytes: 0, millis: 0 }, ..NEXT };

const COMMIT: End = End { commit: true, coordinator_epoch: 0 };
const ABORT: End = End { commit: false, coordinator_epoch: 0 };

fn batch(records: usize) -> Batch {
    from_producer(-1, -1, -1, false, records)
}

fn from_producer(id: i64, epoch: i16, sequence: i32, transactional: bool, records: usize) -> Batch {
    let record = (Some(Bytes::from_static(b"key")), Some(Bytes::from_static(b"value")));
    let bytes = Batch::of_producer(1_000, (id, epoch, sequence), transactional, &vec![record; records]);
    Batch::read_all(bytes).expect("a batch made here").remove(0)
}

#[test]
fn offsets_go_on_and_reading_starts_at_the_batch_that_holds_the_offset() -> Result<(), Refusal> {
    let mut log = Log::default();
    assert_eq!([log.append(batch(3), NEXT)?, log.append(batch(2), NEXT)?, log.append(batch(1), NEXT)?], [0, 3, 5]);
    let read = Batch::read_all(log.read(4, i64::MAX, usize::MAX, 0))?;
    assert_eq!(read.iter().map(|batch| batch.base_offset).collect::<Vec<_>>(), [3, 5]);
    let read = Batch::read_all(log.read(0, i64::MAX, 1, 0))?;
    assert_eq!(read.len(), 1, "one batch even if it is larger than asked for");
    assert!(log.read(5, 5, usize::MAX, 0).is_empty(), "nothing beyond the limit");
    Ok(())
}

#[test]
fn a_batch_sent_twice_is_stored_once() -> Result<(), Refusal> {
    let mut log = Log::default();
    log.append(from_producer(7, 0, 0, false, 2), NEXT)?;
    log.append(from_producer(7, 0, 2, false, 1), NEXT)?;
    assert_eq!(log.append(from_producer(7, 0, 0, false, 2), NEXT)?, 0);
    assert_eq!(log.end_offset(), 3);
    let gap = log.append(from_producer(7, 0, 9, false, 1), NEXT).expect_err("a gap");
    assert_eq!(gap.code, Code::OutOfOrderSequenceNumber);
    Ok(())
}

#[test]
fn an_older_epoch_is_refused() -> Result<(), Refusal> {
    let mut log = Log::default();
    log.append(from_producer(7, 1, 0, false, 1), NEXT)?;
    let old = log.append(from_producer(7, 0, 1, false, 1), NEXT).expect_err("an older epoch");
    assert_eq!(old.code, Code::InvalidProducerEpoch);
    Ok(())
}

#[test]
fn an_open_transaction_holds_back_the_stable_offset_and_an_aborted_one_is_told() -> Result<(), Refusal> {
    let mut log = Log::default();
    log.append(batch(1), NEXT)?;
    log.append(from_producer(7, 0, 0, true, 2), NEXT)?;
    log.append(batch(1), NEXT)?;
    assert_eq!(log.last_stable_offset(4), 1);
    log.end_transaction((7, 0), ABORT, 2_000, NEXT)?;
    assert_eq!(log.last_stable_offset(5), 5);
    assert_eq!(log.aborted(0, 5), [Aborted { producer_id: 7, first_offset: 1, last_offset: 4 }]);
    log.append(from_producer(7, 0, 2, true, 1), NEXT)?;
    log.end_transaction((7, 0), COMMIT, 2_000, NEXT)?;
    assert_eq!(log.aborted(0, 9).len(), 1, "a committed one is not told");
    Ok(())
}

#[test]
fn producers_are_shown_and_an_older_coordinator_is_refused() -> Result<(), Refusal> {
    let mut log = Log::default();
    log.append(from_producer(7, 2, 5, true, 2), NEXT)?;
    let begun = ProducerView {
        id: 7,
        epoch: 2,
        last_sequence: Some(6),
        last_timestamp: 1_000,
        coordinator_epoch: -1,
        open_since: Some(0),
    };
    assert_eq!(log.producers(), [begun]);
    log.end_transaction((7, 2), End { commit: false, coordinator_epoch: 3 }, 2_000, NEXT)?;
    let ended = ProducerView { last_timestamp: 2_000, coordinator_epoch: 3, open_since: None, ..begun };
    assert_eq!(log.producers(), [ended]);
    let zombie = log.end_transaction((7, 2), End { commit: true, coordinator_epoch: 2 }, 3_000, NEXT);
    assert_eq!(zombie.map_err(|refusal| refusal.code), Err(Code::TransactionCoordinatorFenced));
    assert_eq!(log.producers(), [ended]);
    Ok(())
}

#[test]
fn a_record_is_found_by_its_time() -> Result<(), Refusal> {
    let mut log = Log::default();
    log.append(batch(2), NEXT)?;
    assert_eq!(log.find_time(1_000), Some((1_000, 0)));
    assert_eq!(log.find_time(1_001), None);
    assert_eq!(log.find_youngest(), Some((1_000, 0)));
    Ok(())
}

#[test]
fn retention_moves_the_start_and_truncation_the_end() -> Result<(), Refusal> {
    let mut log = Log::default();
    for _ in 0..4 {
        log.append(batch(2), ALONE)?;
    }
    log.truncate(5);
    assert_eq!((log.end_offset(), log.records()), (4, 4), "batches go whole");
    let one = log.appended_bytes() / 2;
    log.trim(0, one, 1);
    assert_eq!(log.deleted(), (0, 0), "what readers cannot see stays");
    log.trim(0, one, 4);
    assert_eq!((log.deleted(), log.trimmed_bytes(), log.first_offset()), ((2, 2), one, Some(2)));
    log.trim(5_000, u64::MAX, 4);
    assert_eq!((log.deleted(), log.first_offset()), ((4, 4), None));
    Ok(())
}

#[test]
fn retention_takes_whole_segments() -> Result<(), Refusal> {
    let mut log = Log::default();
    for _ in 0..4 {
        log.append(batch(2), NEXT)?;
    }
    log.trim(0, 1, i64::MAX);
    assert_eq!(log.deleted(), (0, 0), "one segment is not cut");
    log.trim(1_001, u64::MAX, i64::MAX);
    assert_eq!(log.deleted(), (8, 8), "even the youngest goes when all of it is too old");
    Ok(())
}

#[test]
fn offsets_without_records_are_read_as_a_batch_without_records() -> Result<(), Refusal> {
    let mut log = Log::default();
    log.append(batch(1), Place { offset: 10, ..NEXT })?;
    let read = |from, limit| {
        let read = decode_batches(log.read(from, limit, usize::MAX, 0)).collect::<Result<Vec<_>, _>>();
        let read = read.expect("well formed");
        read.iter().map(|it| (it.head.base_offset, it.head.last_offset, it.records.len())).collect::<Vec<_>>()
    };
    assert_eq!(read(0, 20), [(10, 10, 1)], "a reader skips what comes before");
    assert_eq!(read(11, 20), [(11, 19, 0)]);
    assert_eq!(read(0, 10), [(0, 9, 0)], "and the same up to a limit before the record");
    assert_eq!(read(11, 11), []);
    Ok(())
}

const EAGER: Cleaning = Cleaning { dirty_ratio: 0.0, delete_retention: 1_000, least_lag: 0, most_lag: i64::MAX };

type Pair<'a> = (&'a str, Option<&'a str>);

fn pairs(producer: (i64, i16, i32), transactional: bool, pairs: &[Pair<'_>]) -> Batch {
    let bytes = |text: &str| Bytes::copy_from_slice(text.as_bytes());
    let records: Vec<_> = pairs.iter().map(|(key, value)| (Some(bytes(key)), value.map(bytes))).collect();
    Batch::read_all(Batch::of_producer(1_000, producer, transactional, &records)).expect("a batch").remove(0)
}

fn plain(of: &[Pair<'_>]) -> Batch {
    pairs((-1, -1, -1), false, of)
}

/// What a reader sees: offset, key and value of all data.
fn seen(log: &Log) -> Vec<(i64, String, Option<String>)> {
    let text = |bytes: Bytes| String::from_utf8_lossy(&bytes).into_owned();
    decode_batches(log.read(0, log.end_offset(), usize::MAX, 0))
        .map(|batch| batch.expect("well formed"))
        .filter(|batch| !batch.head.control)
        .flat_map(|batch| batch.records)
        .map(|it| (it.offset, text(it.record.key.unwrap_or_default()), it.record.value.map(text)))
        .collect()
}

fn row(offset: i64, key: &str, value: &str) -> (i64, String, Option<String>) {
    (offset, key.to_owned(), Some(value.to_owned()))
}

#[test]
fn the_cleaner_leaves_the_last_record_of_each_key_at_its_offset() -> Result<(), Refusal> {
    let mut log = Log::default();
    log.append(plain(&[("a", Some("1")), ("b", Some("1")), ("c", Some("1")), ("a", Some("2"))]), ALONE)?;
    log.append(plain(&[("c", Some("2"))]), ALONE)?;
    log.append(plain(&[("a", Some("3"))]), ALONE)?;
    log.clean(&EAGER, 2_000, log.end_offset());
    assert_eq!(seen(&log), [row(1, "b", "1"), row(3, "a", "2"), row(4, "c", "2"), row(5, "a", "3")], "not the active");
    let stored: u64 = log.batches.iter().map(|batch| batch.bytes.len() as u64).sum();
    assert_eq!(log.appended_bytes() - log.trimmed_bytes(), stored);
    assert_eq!(log.segments.iter().map(|segment| segment.bytes).sum::<u64>(), stored);
    assert_eq!((log.end_offset(), log.deleted()), (6, (0, 0)), "offsets stay what they are");
    log.append(plain(&[("b", Some("2"))]), ALONE)?;
    log.clean(&EAGER, 2_000, 4);
    assert_eq!(seen(&log).len(), 5, "nothing beyond what is stable");
    log.clean(&EAGER, 2_000, log.end_offset());
    assert_eq!(seen(&log), [row(1, "b", "1"), row(4, "c", "2"), row(5, "a", "3"), row(6, "b", "2")]);
    Ok(())
}

#[test]
fn a_log_that_is_clean_enough_or_too_young_is_left_alone() -> Result<(), Refusal> {
    let mut log = Log::default();
    for value in ["1", "2", "3"] {
        log.append(plain(&[("a", Some(value))]), ALONE)?;
    }
    log.clean(&Cleaning { least_lag: 5_000, ..EAGER }, 2_000, log.end_offset());
    log.clean(&Cleaning { dirty_ratio: 1.0, ..EAGER }, 2_000, log.end_offset());
    assert_eq!(seen(&log).len(), 3);
    log.clean(&Cleaning { dirty_ratio: 1.0, most_lag: 500, ..EAGER }, 2_000, log.end_offset());
    assert_eq!(seen(&log).len(), 2, "too old to wait for more");
    Ok(())
}

#[test]
fn a_tombstone_stays_until_readers_had_time_to_see_it() -> Result<(), Refusal> {
    let mut log = Log::default();
    log.append(plain(&[("a", Some("1"))]), ALONE)?;
    log.append(plain(&[("a", None), ("b", Some("1"))]), ALONE)?;
    let more = |log: &mut Log, wall_clock| {
        log.append(plain(&[("x", Some("."))]), ALONE)?;
        log.clean(&EAGER, wall_clock, log.end_offset());
        Ok::<_, Refusal>(seen(log).iter().any(|(_, key, _)| key == "a"))
    };
    assert!(more(&mut log, 2_000)?, "marked");
    assert!(more(&mut log, 2_999)?, "its time is not up");
    assert!(!more(&mut log, 3_000)?);
    assert!(seen(&log).contains(&row(2, "b", "1")));
    Ok(())
}

#[test]
fn the_cleaner_takes_aborted_records_and_then_their_mark_and_never_disturbs_readers() -> Result<(), Refusal> {
    let mut log = Log::default();
    log.append(plain(&[("a", Some("kept"))]), ALONE)?;
    log.append(pairs((7, 0, 0), true, &[("a", Some("aborted")), ("b", Some("aborted"))]), ALONE)?;
    log.end_transaction((7, 0), ABORT, 1_000, ALONE)?;
    log.append(pairs((7, 0, 2), true, &[("b", Some("committed"))]), ALONE)?;
    log.end_transaction((7, 0), COMMIT, 1_000, ALONE)?;
    log.append(pairs((9, 0, 0), true, &[("a", Some("open"))]), ALONE)?;
    log.append(plain(&[("x", Some("."))]), ALONE)?;
    let stable = log.last_stable_offset(log.end_offset());
    assert_eq!(stable, 6);
    for wall_clock in [2_000, 9_000] {
        log.append(plain(&[("x", Some("."))]), ALONE)?;
        log.clean(&EAGER, wall_clock, log.last_stable_offset(log.end_offset()));
        assert_eq!(seen(&log)[..3], [row(0, "a", "kept"), row(4, "b", "committed"), row(6, "a", "open")]);
        assert_eq!(log.last_stable_offset(log.end_offset()), stable);
    }
    // What is dirty lies behind the open transaction; when it ends, the cleaner comes again.
    log.end_transaction((9, 0), COMMIT, 1_000, ALONE)?;
    log.append(plain(&[("x", Some("."))]), ALONE)?;
    log.clean(&EAGER, 9_000, log.end_offset());
    assert_eq!(log.aborted(0, i64::MAX), [], "the mark is gone, and with it what readers were told");
    assert_eq!(seen(&log)[..2], [row(4, "b", "committed"), row(6, "a", "open")]);
    assert_eq!(
        log.append(pairs((7, 0, 2), true, &[("b", Some("committed"))]), ALONE)?,
        4,
        "known, and not written again"
    );
    Ok(())
}

#[test]
fn a_producers_last_batch_leaves_its_number_behind() -> Result<(), Refusal> {
    let mut log = Log::default();
    log.append(pairs((7, 0, 0), false, &[("a", Some("1"))]), ALONE)?;
    log.append(plain(&[("a", Some("2"))]), ALONE)?;
    log.append(plain(&[("x", Some("."))]), ALONE)?;
    log.clean(&EAGER, 2_000, log.end_offset());
    assert_eq!(seen(&log), [row(1, "a", "2"), row(2, "x", ".")]);
    // As after a restart: what is known of producers is read from the log.
    log.truncate(2);
    assert_eq!(log.append(pairs((7, 0, 0), false, &[("a", Some("1"))]), ALONE)?, 0);
    Ok(())
}
