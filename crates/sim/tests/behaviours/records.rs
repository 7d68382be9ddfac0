use crate::*;
use bytes::Bytes;
use evenkeel_sim::cluster::{FetchRequest, Isolation, OffsetQuery};
use evenkeel_sim::log::Batch;

/// Young enough for any retention.
const STAMP: i64 = 1_767_225_600_000;

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
    let mut cluster = with_partition(3, &[0, 1]);
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
fn a_leader_epoch_from_the_future_or_the_past_is_refused() {
    let mut cluster = with_partition(3, &[0, 1]);
    reassign(&mut cluster, &[0]).expect("accepted");
    let ask = |epoch| {
        let query = OffsetQuery::Latest;
        code(cluster.list_offset(BrokerId(0), &t0(), query, Isolation::ReadUncommitted, Some(epoch)).map(drop))
    };
    assert_eq!([ask(0), ask(1), ask(2)], [74, 0, 75]);
}

#[test]
fn nothing_acknowledged_is_lost_when_the_leader_dies_or_the_partition_moves() -> Result<(), Refusal> {
    let mut cluster = with_partition(5, &[0, 1]);
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
    let mut cluster = with_partition(3, &[0, 1]);
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
    let mut cluster = with_partition(3, &[0, 1]);
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
    let mut cluster = with_partition(3, &[0, 1]);
    let producer = cluster.init_producer_id(Some("tx"), 60_000, None)?;
    cluster.add_partitions_to_txn("tx", producer, &[t0()]);
    let batch = Batch::of_producer(STAMP, (producer.0, producer.1, 0), true, &[(None, None)]);
    cluster.produce(BrokerId(0), &t0(), batch, true, Some("tx"))?;
    cluster.tick(80_000);
    assert_eq!(code(cluster.end_txn("tx", producer, true)), 90);
    Ok(())
}
