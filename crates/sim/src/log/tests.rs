use super::*;

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
    assert_eq!([log.append(batch(3), 0)?, log.append(batch(2), 0)?, log.append(batch(1), 1)?], [0, 3, 5]);
    let read = Batch::read_all(log.read(4, i64::MAX, usize::MAX))?;
    assert_eq!(read.iter().map(|batch| batch.base_offset).collect::<Vec<_>>(), [3, 5]);
    let read = Batch::read_all(log.read(0, i64::MAX, 1))?;
    assert_eq!(read.len(), 1, "one batch even if it is larger than asked for");
    assert!(log.read(5, 5, usize::MAX).is_empty(), "nothing beyond the limit");
    Ok(())
}

#[test]
fn a_batch_sent_twice_is_stored_once() -> Result<(), Refusal> {
    let mut log = Log::default();
    log.append(from_producer(7, 0, 0, false, 2), 0)?;
    log.append(from_producer(7, 0, 2, false, 1), 0)?;
    assert_eq!(log.append(from_producer(7, 0, 0, false, 2), 0)?, 0);
    assert_eq!(log.end_offset(), 3);
    let gap = log.append(from_producer(7, 0, 9, false, 1), 0).expect_err("a gap");
    assert_eq!(gap.code, Code::OutOfOrderSequenceNumber);
    Ok(())
}

#[test]
fn an_older_epoch_is_refused() -> Result<(), Refusal> {
    let mut log = Log::default();
    log.append(from_producer(7, 1, 0, false, 1), 0)?;
    let old = log.append(from_producer(7, 0, 1, false, 1), 0).expect_err("an older epoch");
    assert_eq!(old.code, Code::InvalidProducerEpoch);
    Ok(())
}

#[test]
fn an_open_transaction_holds_back_the_stable_offset_and_an_aborted_one_is_told() -> Result<(), Refusal> {
    let mut log = Log::default();
    log.append(batch(1), 0)?;
    log.append(from_producer(7, 0, 0, true, 2), 0)?;
    log.append(batch(1), 0)?;
    assert_eq!(log.last_stable_offset(4), 1);
    log.end_transaction((7, 0), false, 2_000, 0)?;
    assert_eq!(log.last_stable_offset(5), 5);
    assert_eq!(log.aborted(0, 5), [Aborted { producer_id: 7, first_offset: 1, last_offset: 4 }]);
    log.append(from_producer(7, 0, 2, true, 1), 0)?;
    log.end_transaction((7, 0), true, 2_000, 0)?;
    assert_eq!(log.aborted(0, 9).len(), 1, "a committed one is not told");
    Ok(())
}

#[test]
fn a_record_is_found_by_its_time() -> Result<(), Refusal> {
    let mut log = Log::default();
    log.append(batch(2), 0)?;
    assert_eq!(log.find_time(1_000), Some((1_000, 0)));
    assert_eq!(log.find_time(1_001), None);
    assert_eq!(log.find_youngest(), Some((1_000, 0)));
    Ok(())
}

#[test]
fn retention_moves_the_start_and_truncation_the_end() -> Result<(), Refusal> {
    let mut log = Log::default();
    for _ in 0..4 {
        log.append(batch(2), 0)?;
    }
    log.truncate(5);
    assert_eq!(log.end_offset(), 4, "batches go whole");
    let one = log.appended_bytes() / 2;
    log.trim(0, one);
    assert_eq!((log.start_offset(), log.trimmed_bytes()), (2, one));
    log.trim(5_000, u64::MAX);
    assert_eq!(log.start_offset(), 4);
    Ok(())
}
