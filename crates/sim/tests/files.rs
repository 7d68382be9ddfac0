//! Brokers started with files that differ from the last ones, and listeners with address books of their own.

use evenkeel_kafka::connect::Memory;
use evenkeel_kafka::{Address, Client, Settings};
use evenkeel_sim::cluster::{Alteration, BrokerSpec, ConfigSource, DirSpec, NewTopic, Operation, Reporter, Resource};
use evenkeel_sim::serve::tls::{ClientAuth, TlsError, acceptor};
use evenkeel_sim::serve::{Listener, World};
use evenkeel_sim::{BrokerId, Cluster, Options, TopicPartition};

const B0: BrokerId = BrokerId(0);

fn spec(id: i32, dirs: &[&str]) -> BrokerSpec {
    BrokerSpec::new(id).with_dirs(dirs.iter().copied())
}

fn with_file(mut spec: BrokerSpec, key: &str, value: &str) -> BrokerSpec {
    spec.file.insert(key.to_owned(), value.to_owned());
    spec
}

/// Two brokers with a partition on both.
fn cluster() -> Cluster {
    let mut cluster = Cluster::new(Options::default(), [spec(0, &["/a"]), spec(1, &["/a"])]);
    cluster.create_topic(&NewTopic::manual("t", &[&[0, 1]]), false).expect("a topic that can be made");
    cluster.fill(&TopicPartition::new("t", 0), 1_000_000_000);
    cluster.tick(1_000);
    cluster
}

fn restart(cluster: &mut Cluster, spec: BrokerSpec) {
    cluster.stop_broker(spec.id);
    cluster.boot_broker(spec);
    cluster.tick(1_000);
}

fn in_sync(cluster: &Cluster) -> usize {
    cluster.registration("t", 0).expect("it is there").isr.len()
}

fn min_isr(cluster: &Cluster) -> (Option<String>, ConfigSource) {
    let entries = cluster.describe_configs(B0, &Resource::Topic("t".to_owned())).expect("a topic");
    let entry = entries.into_iter().find(|entry| entry.name == "min.insync.replicas").expect("always shown");
    (entry.value, entry.source)
}

#[test]
fn a_restart_takes_rack_sizes_and_directories_from_the_file() {
    let mut cluster = cluster();
    let mut grown = spec(0, &["/a", "/b"]).in_rack("r");
    grown.dirs[0] = DirSpec { capacity: 5_000_000_000, ..DirSpec::new("/a") };
    restart(&mut cluster, grown);
    assert_eq!(cluster.describe_brokers(B0, false)[0].rack.as_deref(), Some("r"));
    let dirs = cluster.describe_log_dirs(B0, None);
    assert_eq!(dirs.iter().map(|dir| dir.path.as_str()).collect::<Vec<_>>(), ["/a", "/b"]);
    assert_eq!((dirs[0].total_bytes, dirs[0].replicas.len(), in_sync(&cluster)), (5_000_000_000, 1, 2));
    // A directory that the file no longer names is gone, with what was in it.
    restart(&mut cluster, spec(0, &["/b"]));
    let dirs = cluster.describe_log_dirs(B0, None);
    assert_eq!(dirs.iter().map(|dir| dir.path.as_str()).collect::<Vec<_>>(), ["/b"]);
    assert_eq!(in_sync(&cluster), 1);
    restart(&mut cluster, spec(0, &["/a", "/b"]));
    cluster.tick(60_000);
    assert_eq!((cluster.describe_log_dirs(B0, None).len(), in_sync(&cluster)), (2, 2), "and back with it");
}

#[test]
fn a_replaced_disk_is_filled_anew() {
    let mut cluster = cluster();
    let bytes = |cluster: &Cluster| cluster.describe_log_dirs(B0, None)[0].replicas[0].size;
    cluster.stop_broker(B0);
    cluster.wipe_dir(B0, "/a");
    cluster.boot_broker(spec(0, &["/a"]));
    cluster.tick(500);
    assert!(bytes(&cluster) < 1_000_000_000 && in_sync(&cluster) == 1);
    cluster.tick(60_000);
    assert_eq!((bytes(&cluster), in_sync(&cluster)), (1_000_000_000, 2));
}

#[test]
fn topics_take_what_brokers_say_unless_they_say_otherwise() {
    let mut cluster = cluster();
    assert_eq!(min_isr(&cluster), (Some("1".to_owned()), ConfigSource::Default));
    restart(&mut cluster, with_file(spec(0, &["/a"]), "min.insync.replicas", "2"));
    assert_eq!(min_isr(&cluster), (Some("2".to_owned()), ConfigSource::File));
    let operation = Operation::Set;
    let one =
        |value: &str| Alteration { name: "min.insync.replicas".to_owned(), operation, value: Some(value.to_owned()) };
    cluster.incremental_alter_configs(&Resource::EveryBroker, &[one("3")], false).expect("accepted");
    assert_eq!(min_isr(&cluster), (Some("3".to_owned()), ConfigSource::EveryBroker));
    cluster.incremental_alter_configs(&Resource::Topic("t".to_owned()), &[one("1")], false).expect("accepted");
    assert_eq!(min_isr(&cluster), (Some("1".to_owned()), ConfigSource::Topic));
    restart(&mut cluster, with_file(spec(0, &["/a"]), "default.replication.factor", "2"));
    let made = cluster.create_topic(&NewTopic::new("u", -1, -1), false).expect("a topic that can be made");
    assert_eq!(made.factor, 2);
}

#[test]
fn a_reporter_comes_and_goes_with_the_file() {
    let mut cluster = cluster();
    let topic = Reporter::default().topic;
    cluster.tick(120_000);
    assert!(cluster.registration(&topic, 0).is_none());
    restart(&mut cluster, BrokerSpec { reporter: Some(Reporter::default()), ..spec(0, &["/a"]) });
    cluster.tick(61_000);
    assert!(cluster.registration(&topic, 0).is_some());
}

#[tokio::test(start_paused = true)]
async fn each_listener_tells_its_own_addresses_until_its_port_is_dropped() {
    let world = World::new(cluster());
    let memory = Memory::default();
    let at = |host: &str, port: u16| Address { host: host.to_owned(), port };
    let mut ports = Vec::new();
    for (host, number) in [("inside", 9091), ("outside", 9092)] {
        let listener = Listener::plain(world.clone());
        ports.push(listener.bind_pipe(B0, &memory, at(host, number)));
        listener.announce(B0, host, number);
    }
    let asked = async |host: &str, port: u16| {
        let settings = Settings { seed: 1, ..Settings::new(vec![at(host, port)]) };
        let cluster = Client::new(std::sync::Arc::new(memory.clone()), settings).describe_cluster().await;
        cluster.map(|cluster| cluster.brokers.into_iter().map(|it| (it.host, it.port)).collect::<Vec<_>>())
    };
    assert_eq!(asked("inside", 9091).await.expect("an answer"), [("inside".to_owned(), 9091)]);
    assert_eq!(asked("outside", 9092).await.expect("an answer"), [("outside".to_owned(), 9092)]);
    assert_eq!(ports.pop().map(|port| port.number()), Some(9092));
    tokio::task::yield_now().await;
    assert!(asked("outside", 9092).await.is_err());
}

#[test]
fn stores_that_are_none_are_told_apart() {
    assert!(matches!(acceptor(b"", ClientAuth::None), Err(TlsError::Certificate("the key store"))));
    let broken = b"-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n";
    assert!(matches!(acceptor(broken, ClientAuth::None), Err(TlsError::Certificate("the key store"))));
}
