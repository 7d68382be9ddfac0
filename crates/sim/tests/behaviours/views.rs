use crate::*;
use evenkeel_sim::cluster::Fault;
use evenkeel_sim::traffic::Load;

fn seen_replicas(cluster: &Cluster, asked: i32) -> Vec<BrokerId> {
    cluster.describe_topic(BrokerId(asked), "t").expect("the topic").partitions[0].registration.replicas.clone()
}

#[test]
fn metadata_trails_at_the_start_and_at_the_end_of_a_move() {
    let mut cluster = with_partition(4, &[0, 1]);
    reassign(&mut cluster, &[2, 3]).expect("accepted");
    assert!(moving(&cluster).is_some());
    for asked in 0..4 {
        assert_eq!(seen_replicas(&cluster, asked), ids(&[0, 1]), "listed, and not in the metadata yet");
    }
    cluster.tick(300);
    assert_eq!(seen_replicas(&cluster, 0), ids(&[2, 3, 0, 1]));
    while moving(&cluster).is_some() {
        cluster.tick(1);
    }
    assert_eq!(seen_replicas(&cluster, 0), ids(&[2, 3, 0, 1]), "no longer listed, and still in the metadata");
    cluster.tick(300);
    assert_eq!(seen_replicas(&cluster, 0), ids(&[2, 3]));
}

#[test]
fn topics_appear_and_vanish_with_a_delay() {
    let mut cluster = cluster(2);
    create(&mut cluster, &NewTopic::new("t", 1, 1));
    assert_eq!(
        cluster.describe_topic(BrokerId(0), "t").map(drop).map_err(|it| it.code),
        Err(Code::UnknownTopicOrPartition)
    );
    cluster.tick(300);
    assert_eq!(cluster.describe_topics(BrokerId(0)).len(), 1);
    cluster.delete_topic("t").expect("it is there");
    assert_eq!(cluster.describe_topics(BrokerId(0)).len(), 1);
    cluster.tick(300);
    assert_eq!(cluster.describe_topics(BrokerId(0)).len(), 0);
}

#[test]
fn no_broker_goes_back_in_time_and_all_trail_within_bounds() {
    let mut cluster = cluster(5);
    let mut last = [i64::MIN; 5];
    for _ in 0..20_000 {
        cluster.tick(3);
        for (id, last) in (0..).zip(&mut last) {
            let seen = cluster.view_time(BrokerId(id));
            assert!(seen >= *last && (20..=300).contains(&(cluster.now() - seen)));
            *last = seen;
        }
    }
}

#[test]
fn stale_metadata_stands_still_and_then_catches_up() {
    let mut cluster = with_partition(4, &[0, 1]);
    cluster.suffer(&Fault::StaleMetadata(BrokerId(0), 60_000));
    reassign(&mut cluster, &[2, 3]).expect("accepted");
    assert!(settle(&mut cluster));
    cluster.tick(30_000);
    assert_eq!((seen_replicas(&cluster, 0), seen_replicas(&cluster, 1)), (ids(&[0, 1]), ids(&[2, 3])));
    cluster.tick(30_000);
    assert_eq!(seen_replicas(&cluster, 0), ids(&[2, 3]));
}

#[test]
fn load_shows_in_sizes_and_metrics() {
    let mut cluster = cluster(3);
    let load = Load { fan_out: 2.0, hot: vec![(0, 3.0)], ..Load::steady(4_000.0) };
    create(&mut cluster, &NewTopic::manual("t", &[&[0, 1], &[1, 2]]).loaded(load, 100_000));
    assert_eq!([cluster.partition_size("t", 0), cluster.partition_size("t", 1)], [300_000, 100_000]);
    cluster.tick(100_000);
    assert_eq!([cluster.partition_size("t", 0), cluster.partition_size("t", 1)], [600_000, 200_000]);
    let records = cluster.metrics(BrokerId(0));
    let value = |class: u8, kind: u8| {
        let record = records.iter().find(|record| record.value[0] == class && record.value[2] == kind).expect("told");
        let tail = record.value.last_chunk::<8>().expect("a value");
        f64::from_be_bytes(*tail)
    };
    assert_eq!([value(1, 2), value(1, 3), value(2, 4), value(0, 7)], [3_000.0, 6_000.0, 600_000.0, 3_000.0]);
    let size = records.iter().find(|record| record.value[0] == 2).expect("a partition's size");
    assert_eq!((size.key.as_str(), size.value.len()), ("t", 3 + 8 + 4 + 4 + 1 + 4 + 8));
    cluster.crash_broker(BrokerId(0));
    assert_eq!(cluster.metrics(BrokerId(0)), [], "a dead broker tells nothing");
}

#[test]
fn more_partitions_and_another_load_leave_written_bytes_alone() {
    let mut cluster = cluster(3);
    create(&mut cluster, &NewTopic::manual("t", &[&[0, 1], &[1, 2]]).loaded(Load::steady(2_000.0), 100_000));
    cluster.create_partitions("t", 4, None, false).expect("two more");
    let sizes = |cluster: &Cluster| (0..4).map(|n| cluster.partition_size("t", n)).collect::<Vec<_>>();
    assert_eq!(sizes(&cluster), [100_000, 100_000, 0, 0]);
    cluster.tick(10_000);
    assert_eq!(sizes(&cluster), [105_000, 105_000, 5_000, 5_000]);
    cluster.set_load("t", Load::steady(0.0));
    cluster.tick(10_000);
    assert_eq!(sizes(&cluster), [105_000, 105_000, 5_000, 5_000]);
}
