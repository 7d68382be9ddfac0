use crate::*;
use evenkeel_sim::cluster::Fault;
use evenkeel_sim::traffic::Load;

fn dir_of(cluster: &Cluster, broker: i32) -> String {
    sizes(cluster, broker)[0].0.clone()
}

fn other(dir: &str) -> &'static str {
    if dir == "/d0" { "/d1" } else { "/d0" }
}

#[test]
fn a_new_replica_is_an_ordinary_entry_whose_size_grows_and_whose_lag_stays_0() {
    let mut cluster = with_partition(4, &[0, 1]);
    reassign(&mut cluster, &[0, 2]).expect("accepted");
    assert_eq!(sizes(&cluster, 2), [], "not there in the first moments");
    cluster.tick(100);
    let mut last = 0;
    while moving(&cluster).is_some() {
        cluster.tick(100);
        let shown = cluster.describe_log_dirs(BrokerId(2), None);
        let entry = shown.iter().flat_map(|dir| &dir.replicas).next().expect("an entry");
        assert!(!entry.is_future && entry.offset_lag == 0 && entry.size >= last);
        last = entry.size;
    }
    assert_eq!(last, 100_000_000);
}

#[test]
fn a_move_between_directories_shows_a_future_replica_and_nothing_else() {
    let mut cluster = with_partition(3, &[0, 1]);
    let (before, from) = (now(&cluster).clone(), dir_of(&cluster, 0));
    cluster.alter_replica_log_dir(BrokerId(0), &t0(), other(&from)).expect("accepted");
    cluster.tick(200);
    let shown = cluster.describe_log_dirs(BrokerId(0), None);
    let future =
        shown.iter().flat_map(|dir| &dir.replicas).find(|replica| replica.is_future).expect("a future replica");
    assert!(future.size > 0 && future.size < 100_000_000 && future.offset_lag > 0);
    assert_eq!((sizes(&cluster, 0).len(), moving(&cluster)), (2, None));
    cluster.tick(10_000);
    assert_eq!(sizes(&cluster, 0), [(other(&from).to_owned(), 100_000_000, false)]);
    assert_eq!(*now(&cluster), before, "leader, ISR and epochs are untouched");
}

#[test]
fn a_move_between_directories_begins_once_however_often_it_is_asked_for() {
    let mut cluster = with_partition(3, &[0, 1]);
    let from = dir_of(&cluster, 0);
    for _ in 0..3 {
        cluster.alter_replica_log_dir(BrokerId(0), &t0(), other(&from)).expect("accepted");
        cluster.tick(100);
    }
    cluster.tick(10_000);
    cluster.alter_replica_log_dir(BrokerId(0), &t0(), other(&from)).expect("it is there");
    assert_eq!([0, 1].map(|id| cluster.dir_moves_begun(BrokerId(id))), [1, 0]);
    // Back again is another one.
    cluster.alter_replica_log_dir(BrokerId(0), &t0(), &from).expect("accepted");
    assert_eq!(cluster.dir_moves_begun(BrokerId(0)), 2);
}

#[test]
fn asking_for_the_present_directory_calls_a_move_off() {
    let mut cluster = with_partition(3, &[0, 1]);
    let from = dir_of(&cluster, 0);
    cluster.alter_replica_log_dir(BrokerId(0), &t0(), other(&from)).expect("accepted");
    assert_eq!(sizes(&cluster, 0).len(), 2);
    assert_eq!(cluster.alter_replica_log_dir(BrokerId(0), &t0(), &from), Ok(()));
    assert_eq!(sizes(&cluster, 0).len(), 1);
    assert_eq!(cluster.alter_replica_log_dir(BrokerId(0), &t0(), &from), Ok(()), "and again does nothing");
}

#[test]
fn unknown_directories_and_topics_are_refused() {
    let mut cluster = with_partition(3, &[0, 1]);
    for path in ["/nowhere", "d0"] {
        assert_eq!(code(cluster.alter_replica_log_dir(BrokerId(0), &t0(), path)), 57);
    }
    let nope = TopicPartition::new("nope", 0);
    assert_eq!(code(cluster.alter_replica_log_dir(BrokerId(0), &nope, "/d0")), 3);
}

#[test]
fn a_choice_for_a_replica_that_is_not_there_is_an_error_and_is_remembered() {
    for dir in ["/d0", "/d1"] {
        let mut cluster = with_partition(4, &[0, 1]);
        assert_eq!(code(cluster.alter_replica_log_dir(BrokerId(3), &t0(), dir)), 9);
        reassign(&mut cluster, &[0, 3]).expect("accepted");
        assert!(settle(&mut cluster));
        assert_eq!(dir_of(&cluster, 3), dir);
    }
}

#[test]
fn a_failed_directory_shows_nothing_and_the_broker_lives_on() {
    let mut cluster = cluster(3);
    create(&mut cluster, &NewTopic::manual("t", &[&[0, 1], &[0, 1]]));
    cluster.tick(1_000);
    let dirs = cluster.describe_log_dirs(BrokerId(1), None);
    let hit = dirs.iter().position(|dir| dir.replicas.iter().any(|it| it.partition == t0())).expect("a place");
    cluster.suffer(&Fault::FailedDir(BrokerId(1), hit));
    cluster.tick(1_000);
    let dir = &cluster.describe_log_dirs(BrokerId(1), None)[hit];
    assert_eq!((dir.error, dir.total_bytes, dir.usable_bytes), (Some(Code::KafkaStorageError), -1, -1));
    assert!(dir.replicas.is_empty());
    let topic = cluster.describe_topic(BrokerId(0), "t").expect("the topic");
    assert_eq!(topic.partitions[0].offline, ids(&[1]));
    assert_eq!(topic.partitions[0].registration.isr, ids(&[0]));
    assert_eq!(
        (topic.partitions[0].registration.leader, topic.partitions[0].registration.leader_epoch),
        (Some(BrokerId(0)), 0)
    );
    assert_eq!(topic.partitions[1].registration.isr, ids(&[0, 1]), "the other directory is well");
    create(&mut cluster, &NewTopic::manual("new", &[&[1], &[1]]));
    cluster.tick(1_000);
    let dirs = cluster.describe_log_dirs(BrokerId(1), None);
    assert_eq!(dirs[1 - hit].replicas.len(), 3, "new replicas go to the good one");
}

#[test]
fn total_and_usable_bytes_are_always_there() {
    let cluster = with_partition(3, &[0, 1]);
    let used: i64 =
        cluster.describe_log_dirs(BrokerId(0), None).iter().map(|dir| dir.total_bytes - dir.usable_bytes).sum();
    assert_eq!(used, 100_000_000);
}

#[test]
fn a_directory_that_fills_up_fails() {
    let mut spec = broker(0);
    spec.dirs[0].capacity = 1_000_000;
    let mut cluster = Cluster::new(Options::default(), [spec, broker(1)]);
    create(&mut cluster, &NewTopic::manual("t", &[&[0, 1]]));
    cluster.fill(&t0(), 2_000_000);
    cluster.tick(60_000);
    assert_eq!(cluster.describe_log_dirs(BrokerId(0), None)[0].error, Some(Code::KafkaStorageError));
    assert_eq!(now(&cluster).leader, Some(BrokerId(1)));
}

#[test]
fn a_directory_fails_when_it_is_full_and_not_a_minute_later() {
    let mut spec = broker(0);
    spec.dirs[0].capacity = 5_000_000;
    let mut cluster = Cluster::new(Options::default(), [spec, broker(1)]);
    let load = Load::steady(1_000_000.0);
    create(&mut cluster, &NewTopic::manual("t", &[&[0, 1]]).loaded(load, 0));
    let error = |cluster: &Cluster| cluster.describe_log_dirs(BrokerId(0), None)[0].error;
    cluster.tick(4_000);
    assert_eq!(error(&cluster), None);
    cluster.tick(2_000);
    assert_eq!(error(&cluster), Some(Code::KafkaStorageError));
}

#[test]
fn a_directory_that_clients_fill_fails_too() {
    let mut spec = broker(0);
    spec.dirs[0].capacity = 5_000;
    let mut cluster = Cluster::new(Options::default(), [spec, broker(1)]);
    create(&mut cluster, &NewTopic::manual("t", &[&[0, 1]]));
    cluster.tick(1_000);
    let error = |cluster: &Cluster| cluster.describe_log_dirs(BrokerId(0), None)[0].error;
    let value = Some(bytes::Bytes::from(vec![7; 1_000]));
    for _ in 0..6 {
        assert_eq!(error(&cluster), None);
        let records = evenkeel_sim::log::Batch::of_records(1, &[(None, value.clone())]);
        cluster.produce(BrokerId(0), &t0(), records, false, None).expect("there is room");
    }
    cluster.tick(2_000);
    assert_eq!(error(&cluster), Some(Code::KafkaStorageError));
}

#[test]
fn a_directory_that_had_room_is_watched_again_when_the_load_grows() {
    let mut spec = broker(0);
    spec.dirs[0].capacity = 1_000_000_000_000;
    let mut cluster = Cluster::new(Options::default(), [spec, broker(1)]);
    create(&mut cluster, &NewTopic::manual("t", &[&[0, 1]]).loaded(Load::steady(1.0), 0));
    cluster.tick(61_000);
    cluster.set_load("t", Load::steady(1e12));
    cluster.tick(3_000);
    assert_eq!(cluster.describe_log_dirs(BrokerId(0), None)[0].error, Some(Code::KafkaStorageError));
}

#[test]
fn nothing_is_on_its_way_into_a_directory_that_has_failed() {
    let mut cluster = with_partition(3, &[0, 1]);
    let dir = usize::from(dir_of(&cluster, 1) == "/d1");
    cluster.suffer(&Fault::FailedDir(BrokerId(1), dir));
    cluster.fill(&t0(), 1_000_000);
    cluster.tick(1_000);
    assert_eq!(cluster.copy_status(), []);
}
