use super::*;

fn capacities(disk: Disk) -> Capacities {
    let capacity = Capacity { disk, cores: 4.0, network_in: 10_000.0, network_out: 20_000.0 };
    Capacities { listed: (0..3).map(|id| (id, capacity.clone())).collect(), default: None }
}

/// Three brokers; `t-0` lies on 0 and 1 and is led by 1.
fn view() -> View {
    let broker = |id: i32| BrokerView { host: format!("h{id}"), up: true, ..BrokerView::default() };
    let partition =
        PartitionView { replicas: vec![0, 1], leader: Some(1), offline: BTreeSet::new(), adding: Vec::new() };
    View {
        brokers: (0..3).map(|id| (id, broker(id))).collect(),
        partitions: [(TopicPartition::new("t", 0), partition)].into(),
    }
}

fn loads(values: Values) -> Aggregate {
    Aggregate { windows: vec![1], loads: [(TopicPartition::new("t", 0), values)].into(), coverage: 1.0, stretched: 0 }
}

fn measured() -> Values {
    Values::UNKNOWN
        .with(Metric::Cpu, 8.5)
        .with(Metric::Disk, 100.0 * MB)
        .with(Metric::LeaderBytesIn, 1_000.0 * KB)
        .with(Metric::LeaderBytesOut, 500.0 * KB)
        // As reporters leave it: nobody tells what is replicated of a topic.
        .with(Metric::ReplicationBytesIn, 0.0)
        .with(Metric::ReplicationBytesOut, 0.0)
}

fn built(view: &View, values: Values, purpose: &Purpose) -> Cluster {
    build(view, &loads(values), &capacities(Disk::Whole(5_000.0)), CpuWeights::default(), purpose).unwrap()
}

#[test]
fn leaders_and_followers_carry_what_was_measured() {
    let cluster = built(&view(), measured(), &Purpose::default());
    let partition = cluster.partition(0);
    assert_eq!(partition.leader(), 1);
    let replicas: Vec<ReplicaSpec> = partition.replicas().collect();
    let leader = replicas[1].load;
    assert_eq!((leader.nw_in, leader.nw_out, leader.disk), (1_000.0, 1_500.0, 100.0));
    assert!((leader.cpu - 8.5).abs() < 1e-4, "{leader:?}");
    let follower = replicas[0].load;
    assert_eq!((follower.nw_in, follower.nw_out, follower.disk), (1_000.0, 0.0, 100.0));
    // 0.15 x 1000 of 0.7 x 1000 + 0.15 x 1500 weighed bytes.
    assert!((follower.cpu - 8.5 * 150.0 / 925.0).abs() < 1e-4, "{follower:?}");
    assert_eq!(cluster.broker(BrokerId(0)).unwrap().capacity, [400.0, 10_000.0, 20_000.0, 5_000.0]);
    assert_eq!(cluster.unknown().iter().count(), 0);
}

#[test]
fn what_nobody_measured_is_unknown() {
    let values = Values::UNKNOWN.with(Metric::Disk, MB).with(Metric::LeaderBytesIn, KB);
    let cluster = built(&view(), values, &Purpose::default());
    assert_eq!(cluster.unknown().iter().collect::<Vec<_>>(), [Resource::Cpu, Resource::NwOut]);
}

#[test]
fn brokers_are_in_the_state_that_is_seen_or_asked_for() {
    let mut view = view();
    view.brokers.get_mut(&0).unwrap().up = false;
    view.partitions.get_mut(&TopicPartition::new("t", 0)).unwrap().offline = [0, 1].into();
    let state = |purpose: &Purpose, id| built(&view, measured(), purpose).broker(BrokerId(id)).unwrap().state;
    let nothing = Purpose::default();
    assert_eq!([0, 1, 2].map(|id| state(&nothing, id)), [BrokerState::Dead, BrokerState::BadDisks, BrokerState::Alive]);
    assert_eq!(state(&Purpose { new: [2].into(), ..Purpose::default() }, 2), BrokerState::New);
    assert_eq!(state(&Purpose { demoted: [2].into(), ..Purpose::default() }, 2), BrokerState::Demoted);
    assert_eq!(state(&Purpose { removed: [2].into(), ..Purpose::default() }, 2), BrokerState::Dead);
}

#[test]
fn directories_are_told_apart_when_asked_for() {
    let mut view = view();
    let partition = TopicPartition::new("t", 0);
    view.brokers.get_mut(&1).unwrap().dirs = [(partition, "/b".into())].into();
    view.brokers.get_mut(&2).unwrap().failed_dirs = ["/a".to_owned()].into();
    let capacities = capacities(Disk::Dirs([("/a".to_owned(), 10.0), ("/b".to_owned(), 20.0)].into()));
    let purpose = Purpose { tells_dirs_apart: true, removed_dirs: [(1, "/a".to_owned())].into(), ..Purpose::default() };
    let cluster = build(&view, &loads(measured()), &capacities, CpuWeights::default(), &purpose).unwrap();
    let states =
        |id| -> Vec<DiskState> { cluster.broker(BrokerId(id)).unwrap().disks.iter().map(|disk| disk.state).collect() };
    assert_eq!(states(1), [DiskState::Removed, DiskState::Alive]);
    assert_eq!(states(2), [DiskState::Dead, DiskState::Alive]);
    assert_eq!(cluster.partition(0).replicas().nth(1).unwrap().disk, Some(1));
    // What failed or is to be removed is no room.
    let room = |id| cluster.broker(BrokerId(id)).unwrap().capacity[Resource::Disk as usize];
    assert_eq!([0, 1, 2].map(room), [30.0, 20.0, 20.0]);
}

#[test]
fn a_directory_that_failed_is_no_room_though_directories_are_not_told_apart() {
    let mut view = view();
    view.brokers.get_mut(&1).unwrap().failed_dirs = ["/a".to_owned()].into();
    view.brokers.get_mut(&2).unwrap().failed_dirs = ["/a".to_owned(), "/b".to_owned()].into();
    let dirs = Disk::Dirs([("/a".to_owned(), 10.0), ("/b".to_owned(), 20.0)].into());
    let cluster =
        build(&view, &loads(measured()), &capacities(dirs), CpuWeights::default(), &Purpose::default()).unwrap();
    let broker = |id| cluster.broker(BrokerId(id)).unwrap();
    assert_eq!([0, 1].map(|id| broker(id).capacity[Resource::Disk as usize]), [30.0, 20.0]);
    // Who has lost all of them can hold nothing.
    assert_eq!([0, 1, 2].map(|id| broker(id).state), [BrokerState::Alive, BrokerState::BadDisks, BrokerState::Dead]);
}

#[test]
fn a_capacity_that_nobody_gave_or_only_guessed_is_said() {
    let capacity = Capacity { disk: Disk::Whole(1.0), cores: 1.0, network_in: 1.0, network_out: 1.0 };
    let mut capacities = Capacities { listed: BTreeMap::new(), default: None };
    let try_with = |capacities: &Capacities, may_estimate| {
        let purpose = Purpose { may_estimate, ..Purpose::default() };
        build(&view(), &loads(measured()), capacities, CpuWeights::default(), &purpose).map(drop)
    };
    assert_eq!(try_with(&capacities, true), Err(NoModel::UnknownCapacity(0)));
    capacities.default = Some(capacity);
    assert_eq!(try_with(&capacities, false), Err(NoModel::EstimatedCapacity(0)));
    assert_eq!(try_with(&capacities, true), Ok(()));
}

#[test]
fn a_partition_without_a_leader_or_without_a_load_is_kept() {
    let mut view = view();
    let orphan = PartitionView { replicas: vec![2, 0], leader: None, offline: [2, 0].into(), adding: Vec::new() };
    view.partitions.insert(TopicPartition::new("u", 0), orphan);
    let cluster = built(&view, measured(), &Purpose::default());
    assert_eq!((cluster.partition_count(), cluster.replica_count()), (2, 4));
    assert_eq!(cluster.partition(1).replicas().map(|replica| replica.load.disk).sum::<f32>(), 0.0);
}

#[test]
fn a_broker_that_is_down_and_holds_nothing_is_there_only_if_it_is_named() {
    let mut view = view();
    view.brokers.get_mut(&2).unwrap().up = false;
    assert!(built(&view, measured(), &Purpose::default()).broker(BrokerId(2)).is_none());
    let named = Purpose { removed: [2].into(), ..Purpose::default() };
    assert_eq!(built(&view, measured(), &named).broker(BrokerId(2)).unwrap().state, BrokerState::Dead);
}

#[test]
fn a_name_that_brokers_in_different_racks_share_is_one_host_in_each() {
    let mut view = view();
    for (id, rack) in [(0, Some("a")), (1, Some("b")), (2, Some("b"))] {
        let broker = view.brokers.get_mut(&id).unwrap();
        (broker.host, broker.rack) = ("proxy".to_owned(), rack.map(str::to_owned));
    }
    let cluster = built(&view, measured(), &Purpose::default());
    assert_eq!(cluster.hosts(), ["proxy@a", "proxy@b"]);
    assert_eq!(cluster.racks(), ["a", "b"]);
    // In one rack it is one machine.
    view.brokers.get_mut(&0).unwrap().rack = Some("b".to_owned());
    assert_eq!(built(&view, measured(), &Purpose::default()).hosts(), ["proxy"]);
}

#[test]
fn without_racks_every_host_is_one() {
    let cluster = built(&view(), measured(), &Purpose::default());
    assert_eq!(cluster.racks(), ["h0", "h1", "h2"]);
}

#[test]
fn a_host_that_was_torn_is_shown_by_its_name() {
    assert_eq!(shown_host(&torn_name("10.0.0.1", "a"), "a"), "10.0.0.1");
    assert_eq!(shown_host("10.0.0.1", "a"), "10.0.0.1");
    assert_eq!(shown_host("ca", "a"), "ca");
}
