use crate::*;
use bytes::Bytes;
use evenkeel_kafka::records::decode_batches;
use evenkeel_sim::cluster::{FetchRequest, Isolation, OffsetQuery};
use evenkeel_sim::log::Batch;
use evenkeel_sim::traffic::Load;

/// Young enough for any retention.
const STAMP: i64 = 1_767_225_600_000;

/// Topic `t` of one partition with these replicas, and nothing in it.
fn empty_partition(count: i32, replicas: &[i32]) -> Cluster {
    let mut cluster = cluster(count);
    create(&mut cluster, &NewTopic::manual("t", &[replicas]));
    cluster.tick(1_000);
    cluster
}

fn plain(value: &'static str) -> Bytes {
    Batch::of_records(STAMP, &[(None, Some(Bytes::from_static(value.as_bytes())))])
}

fn produce(cluster: &mut Cluster, to: i32, records: Bytes) -> Result<i64, Refusal> {
    cluster.produce(BrokerId(to), &t0(), records, true, None).map(|appended| appended.base_offset)
}

fn read(cluster: &Cluster, from: i32, offset: i64, isolation: Isolation) -> Result<Vec<i64>, Refusal> {
    let request = FetchRequest { partition: t0(), offset, max_bytes: usize::MAX, isolation, leader_epoch: None };
    let fetched = cluster.fetch(BrokerId(from), &request)?;
    Ok(Batch::read_all(fetched.records)?.iter().map(|batch| batch.base_offset).collect())
}

#[test]
fn records_are_written_to_and_read_from_the_leader() -> Result<(), Refusal> {
    let mut cluster = empty_partition(3, &[0, 1]);
    assert_eq!([produce(&mut cluster, 0, plain("a"))?, produce(&mut cluster, 0, plain("b"))?], [0, 1]);
    assert_eq!(read(&cluster, 0, 0, Isolation::ReadUncommitted)?, [0, 1]);
    assert_eq!(produce(&mut cluster, 1, plain("c")).map_err(|it| it.code), Err(Code::NotLeaderOrFollower));
    assert_eq!(read(&cluster, 0, 9, Isolation::ReadUncommitted).map_err(|it| it.code), Err(Code::OffsetOutOfRange));
    let offset = |query| cluster.list_offset(BrokerId(0), &t0(), query, Isolation::ReadUncommitted, None);
    assert_eq!(offset(OffsetQuery::Latest)?.1, 2);
    assert_eq!(offset(OffsetQuery::Earliest)?.1, 0);
    assert_eq!(offset(OffsetQuery::At(STAMP))?, (STAMP, 0, 0));
    assert_eq!(offset(OffsetQuery::At(STAMP + 1))?, (-1, -1, -1));
    Ok(())
}

#[test]
fn records_are_deleted_up_to_an_offset_and_no_further() -> Result<(), Refusal> {
    let mut cluster = empty_partition(3, &[0, 1]);
    for value in ["a", "b", "c"] {
        produce(&mut cluster, 0, plain(value))?;
    }
    cluster.tick(1_000);
    let delete = |cluster: &mut Cluster, asked, before| {
        cluster.delete_records(BrokerId(asked), &t0(), before).map_err(|refusal| refusal.code)
    };
    assert_eq!(delete(&mut cluster, 1, 2), Err(Code::NotLeaderOrFollower));
    assert_eq!(delete(&mut cluster, 0, 4), Err(Code::OffsetOutOfRange));
    assert_eq!(delete(&mut cluster, 0, -2), Err(Code::OffsetOutOfRange));
    assert_eq!([delete(&mut cluster, 0, 2), delete(&mut cluster, 0, 1)], [Ok(2), Ok(2)], "what is gone stays so");
    assert_eq!(read(&cluster, 0, 1, Isolation::ReadUncommitted).map_err(|it| it.code), Err(Code::OffsetOutOfRange));
    assert_eq!(read(&cluster, 0, 2, Isolation::ReadUncommitted)?, [2]);
    let find = |cluster: &Cluster, query| {
        cluster.list_offset(BrokerId(0), &t0(), query, Isolation::ReadUncommitted, None).map(|found| found.1)
    };
    assert_eq!((find(&cluster, OffsetQuery::Earliest)?, find(&cluster, OffsetQuery::At(STAMP))?), (2, 2));
    assert_eq!(delete(&mut cluster, 0, -1), Ok(3), "all of them");
    // Whole segments go at the next look, and offsets go on where they were.
    cluster.tick(3_600_000);
    assert_eq!(produce(&mut cluster, 0, plain("d"))?, 3);
    assert_eq!(read(&cluster, 0, 3, Isolation::ReadUncommitted)?, [3]);
    let compact = [configs::set("cleanup.policy", "compact")];
    configs::alter(&mut cluster, &evenkeel_sim::cluster::Resource::Topic("t".to_owned()), &compact)?;
    assert_eq!(delete(&mut cluster, 0, 4), Err(Code::PolicyViolation));
    Ok(())
}

#[test]
fn a_leader_epoch_from_the_future_or_the_past_is_refused() {
    let mut cluster = empty_partition(3, &[0, 1]);
    reassign(&mut cluster, &[0]).expect("accepted");
    let ask = |epoch| {
        let query = OffsetQuery::Latest;
        code(cluster.list_offset(BrokerId(0), &t0(), query, Isolation::ReadUncommitted, Some(epoch)).map(drop))
    };
    assert_eq!([ask(0), ask(1), ask(2)], [74, 0, 75]);
}

#[test]
fn nothing_acknowledged_is_lost_when_the_leader_dies_or_the_partition_moves() -> Result<(), Refusal> {
    let mut cluster = empty_partition(5, &[0, 1]);
    produce(&mut cluster, 0, plain("a"))?;
    cluster.crash_broker(BrokerId(0));
    cluster.tick(10_000);
    produce(&mut cluster, 1, plain("b"))?;
    reassign(&mut cluster, &[3, 4])?;
    assert!(settle(&mut cluster));
    produce(&mut cluster, 3, plain("c"))?;
    assert_eq!(read(&cluster, 3, 0, Isolation::ReadUncommitted)?, [0, 1, 2]);
    Ok(())
}

#[test]
fn a_dead_follower_holds_back_the_high_watermark_until_it_is_fenced() -> Result<(), Refusal> {
    let mut cluster = empty_partition(3, &[0, 1]);
    produce(&mut cluster, 0, plain("a"))?;
    cluster.crash_broker(BrokerId(1));
    produce(&mut cluster, 0, plain("b"))?;
    assert_eq!(cluster.high_watermark(&t0()), Some(1));
    cluster.tick(10_000);
    assert_eq!(cluster.high_watermark(&t0()), Some(2));
    Ok(())
}

#[test]
fn too_few_in_sync_are_refused_for_all_acks_only() -> Result<(), Refusal> {
    let mut cluster = cluster(3);
    create(&mut cluster, &NewTopic::manual("t", &[&[0, 1]]).config("min.insync.replicas", "2"));
    cluster.stop_broker(BrokerId(1));
    assert_eq!(produce(&mut cluster, 0, plain("a")).map_err(|it| it.code), Err(Code::NotEnoughReplicas));
    cluster.produce(BrokerId(0), &t0(), plain("a"), false, None)?;
    Ok(())
}

#[test]
fn an_unclean_leader_loses_what_it_never_had() -> Result<(), Refusal> {
    let mut cluster = cluster(3);
    create(&mut cluster, &NewTopic::manual("t", &[&[0, 1]]).config("unclean.leader.election.enable", "true"));
    produce(&mut cluster, 0, plain("a"))?;
    cluster.crash_broker(BrokerId(1));
    cluster.tick(10_000);
    produce(&mut cluster, 0, plain("b"))?;
    cluster.crash_broker(BrokerId(0));
    cluster.start_broker(BrokerId(1));
    cluster.tick(20_000);
    assert_eq!(now(&cluster).leader, Some(BrokerId(1)));
    assert_eq!(read(&cluster, 1, 0, Isolation::ReadUncommitted)?, [0]);
    Ok(())
}

#[test]
fn a_transaction_is_seen_when_committed_and_never_when_aborted() -> Result<(), Refusal> {
    let mut cluster = empty_partition(3, &[0, 1]);
    let producer = cluster.init_producer_id(Some("tx"), 60_000, None)?;
    let write = |cluster: &mut Cluster, producer: (i64, i16), sequence| {
        let batch = Batch::of_producer(STAMP, (producer.0, producer.1, sequence), true, &[(None, None)]);
        cluster.produce(BrokerId(0), &t0(), batch, true, Some("tx")).map(drop)
    };
    assert_eq!(code(write(&mut cluster, producer, 0)), 48, "the partition is not in the transaction");
    assert_eq!(cluster.add_partitions_to_txn("tx", producer, &[t0()]), [(t0(), Ok(()))]);
    write(&mut cluster, producer, 0)?;
    assert_eq!(read(&cluster, 0, 0, Isolation::ReadCommitted)?, [] as [i64; 0]);
    assert_eq!(read(&cluster, 0, 0, Isolation::ReadUncommitted)?, [0]);
    cluster.end_txn("tx", producer, true)?;
    assert_eq!(read(&cluster, 0, 0, Isolation::ReadCommitted)?, [0, 1]);
    cluster.end_txn("tx", producer, true)?;
    assert_eq!(code(cluster.end_txn("tx", producer, false)), 48, "it was committed");

    // A second instance takes over: what the first left open is aborted, and the first is fenced.
    cluster.add_partitions_to_txn("tx", producer, &[t0()]);
    write(&mut cluster, producer, 1)?;
    let second = cluster.init_producer_id(Some("tx"), 60_000, None)?;
    assert_eq!(second, (producer.0, producer.1 + 1));
    assert_eq!(code(write(&mut cluster, producer, 2)), 47);
    assert_eq!(code(cluster.end_txn("tx", producer, true)), 90);
    assert_eq!(code(cluster.add_partitions_to_txn("tx", producer, &[t0()]).remove(0).1), 90);
    let request = FetchRequest {
        partition: t0(),
        offset: 0,
        max_bytes: usize::MAX,
        isolation: Isolation::ReadCommitted,
        leader_epoch: None,
    };
    let fetched = cluster.fetch(BrokerId(0), &request)?;
    assert_eq!(fetched.aborted.iter().map(|it| (it.first_offset, it.last_offset)).collect::<Vec<_>>(), [(2, 3)]);
    Ok(())
}

#[test]
fn a_transaction_left_open_is_aborted_after_its_time() -> Result<(), Refusal> {
    let mut cluster = empty_partition(3, &[0, 1]);
    let producer = cluster.init_producer_id(Some("tx"), 60_000, None)?;
    cluster.add_partitions_to_txn("tx", producer, &[t0()]);
    let batch = Batch::of_producer(STAMP, (producer.0, producer.1, 0), true, &[(None, None)]);
    cluster.produce(BrokerId(0), &t0(), batch, true, Some("tx"))?;
    cluster.tick(80_000);
    assert_eq!(code(cluster.end_txn("tx", producer, true)), 90);
    Ok(())
}

#[test]
fn a_producer_that_missed_the_answer_to_its_new_epoch_gets_it_again() -> Result<(), Refusal> {
    let mut cluster = empty_partition(3, &[0, 1]);
    let first = cluster.init_producer_id(Some("tx"), 60_000, None)?;
    let second = cluster.init_producer_id(Some("tx"), 60_000, Some(first))?;
    assert_eq!(second, (first.0, first.1 + 1));
    assert_eq!(
        cluster.init_producer_id(Some("tx"), 60_000, Some(first))?,
        second,
        "the same question, the same answer"
    );
    let third = cluster.init_producer_id(Some("tx"), 60_000, Some(second))?;
    let old = |cluster: &mut Cluster, known| code(cluster.init_producer_id(Some("tx"), 60_000, Some(known)).map(drop));
    assert_eq!(old(&mut cluster, first), 90, "that was two epochs ago");
    // Somebody else takes over, and knows nobody before it.
    cluster.init_producer_id(Some("tx"), 60_000, None)?;
    assert_eq!([old(&mut cluster, second), old(&mut cluster, third)], [90, 90]);
    Ok(())
}

#[test]
fn beside_an_unknown_partition_nothing_is_attempted() -> Result<(), Refusal> {
    let mut cluster = empty_partition(3, &[0, 1]);
    let producer = cluster.init_producer_id(Some("tx"), 60_000, None)?;
    let unknown = TopicPartition::new("t", 9);
    let answers = cluster.add_partitions_to_txn("tx", producer, &[t0(), unknown]);
    assert_eq!(answers.into_iter().map(|(_, result)| code(result)).collect::<Vec<_>>(), [55, 3]);
    Ok(())
}

#[test]
fn a_producer_sends_one_batch_for_a_partition() -> Result<(), Refusal> {
    let mut cluster = empty_partition(3, &[0, 1]);
    let two = Bytes::from([plain("a"), plain("b")].concat());
    for records in [two, Bytes::new()] {
        assert_eq!(produce(&mut cluster, 0, records).map_err(|it| it.code), Err(Code::InvalidRecord));
    }
    assert_eq!(produce(&mut cluster, 0, plain("a"))?, 0, "nothing was written before");
    Ok(())
}

fn offset(cluster: &Cluster, query: OffsetQuery) -> Result<(i64, i64), Refusal> {
    let found = cluster.list_offset(BrokerId(0), &t0(), query, Isolation::ReadUncommitted, None)?;
    Ok((found.0, found.1))
}

/// First and last offset of each batch from `from` on, and how many records are in it.
fn batches(cluster: &Cluster, from: i64) -> Result<Vec<(i64, i64, usize)>, Refusal> {
    let request = FetchRequest {
        partition: t0(),
        offset: from,
        max_bytes: usize::MAX,
        isolation: Isolation::ReadCommitted,
        leader_epoch: None,
    };
    let read = decode_batches(cluster.fetch(BrokerId(0), &request)?.records);
    Ok(read
        .map(|it| it.expect("well formed"))
        .map(|it| (it.head.base_offset, it.head.last_offset, it.records.len()))
        .collect())
}

/// A thousand records a second, of a thousand bytes.
fn loaded(settings: &[(&str, &str)]) -> Cluster {
    let mut cluster = cluster(3);
    let topic = NewTopic::manual("t", &[&[0, 1]]).loaded(Load::steady(1e6), 10_000);
    create(&mut cluster, &settings.iter().fold(topic, |topic, (key, value)| topic.config(key, value)));
    cluster
}

#[test]
fn offsets_move_on_with_simulated_load_and_real_records_lie_between() -> Result<(), Refusal> {
    let mut cluster = loaded(&[]);
    assert_eq!(offset(&cluster, OffsetQuery::Latest)?.1, 10_000);
    cluster.tick(5_000);
    assert_eq!((offset(&cluster, OffsetQuery::Latest)?.1, cluster.high_watermark(&t0())), (15_000, Some(15_000)));
    assert_eq!(produce(&mut cluster, 0, plain("a"))?, 15_000);
    cluster.tick(1_000);
    assert_eq!(produce(&mut cluster, 0, plain("b"))?, 16_001);
    assert_eq!(batches(&cluster, 0)?, [(15_000, 15_000, 1), (16_001, 16_001, 1)], "readers find what is real");
    cluster.tick(1_000);
    assert_eq!(batches(&cluster, 16_002)?, [(16_002, 17_001, 0)], "and get past what is not");
    assert_eq!(batches(&cluster, 17_002)?, []);
    assert_eq!(offset(&cluster, OffsetQuery::Youngest)?.1, 17_001);
    Ok(())
}

#[test]
fn simulated_records_are_found_by_their_time_and_go_with_retention() -> Result<(), Refusal> {
    let mut cluster = loaded(&[("retention.ms", "60000")]);
    cluster.tick(100_000);
    assert_eq!(offset(&cluster, OffsetQuery::Earliest)?.1, 50_000);
    assert_eq!(offset(&cluster, OffsetQuery::At(STAMP + 90_000))?, (STAMP + 90_000, 100_000));
    assert_eq!(offset(&cluster, OffsetQuery::At(STAMP + 200_000))?, (-1, -1));
    assert_eq!(batches(&cluster, 49_999).map_err(|it| it.code), Err(Code::OffsetOutOfRange));
    let mut by_size = loaded(&[("retention.bytes", "4000000")]);
    by_size.tick(100_000);
    assert_eq!(offset(&by_size, OffsetQuery::Earliest)?.1, 106_000);
    Ok(())
}

#[test]
fn an_open_transaction_holds_back_readers_of_committed_records_though_the_load_goes_on() -> Result<(), Refusal> {
    let mut cluster = loaded(&[]);
    let producer = cluster.init_producer_id(Some("tx"), 60_000, None)?;
    cluster.add_partitions_to_txn("tx", producer, &[t0()]);
    let batch = Batch::of_producer(STAMP, (producer.0, producer.1, 0), true, &[(None, None)]);
    cluster.produce(BrokerId(0), &t0(), batch, true, Some("tx"))?;
    cluster.tick(1_000);
    assert_eq!(batches(&cluster, 0)?, [(0, 9_999, 0)]);
    assert_eq!(batches(&cluster, 10_000)?, []);
    cluster.end_txn("tx", producer, true)?;
    assert_eq!(batches(&cluster, 10_000)?, [(10_000, 10_000, 1), (11_001, 11_001, 1)], "the record and the mark");
    Ok(())
}

/// A record with a key, so many milliseconds after the first.
fn pair(after: i64, key: &'static str, value: Option<&'static str>) -> Bytes {
    let bytes = |text: &'static str| Bytes::from_static(text.as_bytes());
    Batch::of_records(STAMP + after, &[(Some(bytes(key)), value.map(bytes))])
}

#[test]
fn a_compacted_topic_keeps_the_last_record_of_each_key() -> Result<(), Refusal> {
    let mut cluster = cluster(3);
    let settings = [("cleanup.policy", "compact"), ("segment.ms", "1"), ("delete.retention.ms", "100000")];
    let topic = settings.iter().fold(NewTopic::manual("t", &[&[0, 1]]), |topic, (key, value)| topic.config(key, value));
    create(&mut cluster, &topic);
    let records = [("a", Some("1")), ("b", Some("1")), ("a", Some("2")), ("b", None), ("x", Some("."))];
    for (after, (key, value)) in (0..).step_by(10).zip(records) {
        produce(&mut cluster, 0, pair(after, key, value))?;
    }
    let refused = produce(&mut cluster, 0, plain("no key")).expect_err("a compacted topic wants keys");
    assert_eq!(refused.code, Code::InvalidRecord);
    cluster.tick(60_000);
    let there = |cluster: &Cluster| Ok::<_, Refusal>(batches(cluster, 0)?.iter().map(|it| it.0).collect::<Vec<_>>());
    assert_eq!(there(&cluster)?, [2, 3, 4], "the tombstone stays for a while");
    produce(&mut cluster, 0, pair(50, "x", Some(".")))?;
    cluster.tick(120_000);
    produce(&mut cluster, 0, pair(60, "x", Some(".")))?;
    produce(&mut cluster, 0, pair(70, "x", Some(".")))?;
    cluster.tick(60_000);
    let left = there(&cluster)?;
    assert!(left.starts_with(&[2]) && !left.contains(&3), "{left:?}");
    assert_eq!(offset(&cluster, OffsetQuery::Earliest)?.1, 0, "a compacted log begins where it began");
    assert_eq!(read(&cluster, 0, 3, Isolation::ReadUncommitted)?.first().copied(), left.get(1).copied());
    Ok(())
}

#[test]
fn retention_deletes_real_records_by_segments() -> Result<(), Refusal> {
    let mut cluster = cluster(3);
    let topic = NewTopic::manual("t", &[&[0, 1]]).config("retention.ms", "90000").config("segment.ms", "1");
    create(&mut cluster, &topic);
    produce(&mut cluster, 0, plain("old"))?;
    cluster.tick(60_000);
    let young = Batch::of_records(STAMP + 60_000, &[(None, None)]);
    produce(&mut cluster, 0, young)?;
    assert_eq!(read(&cluster, 0, 0, Isolation::ReadUncommitted)?, [0, 1]);
    cluster.tick(60_000);
    assert_eq!(
        (offset(&cluster, OffsetQuery::Earliest)?.1, read(&cluster, 0, 1, Isolation::ReadUncommitted)?),
        (1, vec![1])
    );
    cluster.tick(60_000);
    assert_eq!((offset(&cluster, OffsetQuery::Earliest)?.1, offset(&cluster, OffsetQuery::Latest)?.1), (2, 2));
    Ok(())
}

#[test]
fn a_producer_at_the_end_of_its_epochs_gets_another_id() -> Result<(), Refusal> {
    let mut cluster = empty_partition(3, &[0, 1]);
    let mut producer = cluster.init_producer_id(Some("id"), 1_000, None)?;
    let first = producer.0;
    // Each time-out takes an epoch, and each beginning another.
    for _ in 0..=i32::from(i16::MAX) / 2 {
        assert!(cluster.add_partitions_to_txn("id", producer, &[t0()]).iter().all(|(_, answer)| answer.is_ok()));
        cluster.tick(11_000);
        producer = cluster.init_producer_id(Some("id"), 1_000, None)?;
    }
    assert_ne!(producer.0, first);
    Ok(())
}

#[test]
fn no_more_is_kept_than_memory_is_given_for() -> Result<(), Refusal> {
    let batch = plain("a");
    let options = Options { memory: 3 * batch.len() as u64, ..Options::default() };
    let mut cluster = Cluster::new(options, (0..2).map(BrokerSpec::new));
    create(
        &mut cluster,
        &NewTopic::manual("t", &[&[0, 1]]).config("retention.ms", "60000").config("segment.ms", "1000"),
    );
    cluster.tick(1_000);
    for offset in 0..3 {
        assert_eq!(produce(&mut cluster, 0, batch.clone())?, offset);
    }
    let refused = produce(&mut cluster, 0, batch.clone()).unwrap_err();
    assert_eq!(refused.code, Code::KafkaStorageError);
    // The disk has not failed: what is there can be read, and once it has gone there is room again.
    assert_eq!(read(&cluster, 0, 0, Isolation::ReadUncommitted)?, [0, 1, 2]);
    cluster.tick(180_000);
    assert_eq!(produce(&mut cluster, 0, batch)?, 3);
    Ok(())
}
