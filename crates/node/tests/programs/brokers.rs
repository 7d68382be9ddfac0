//! Brokers come, restart, go, and keep what their volumes keep.

use std::sync::Arc;

use evenkeel_kafka::calls::configs::{Resource, Source};
use evenkeel_kafka::{Address, BrokerId, Remedy};
use evenkeel_node::kubelet::program::{Exit, Programs, Stop, Volume};
use evenkeel_node::programs::wires::Wires;
use evenkeel_sim::TopicPartition;
use evenkeel_sim::cluster::Fault;

use crate::yard::{CLUSTER_ID, NAMESPACE, Yard, claim, pod, ready, topic};

/// How many bytes a broker has of the first partition of a topic; nothing if it has none.
fn bytes_on(yard: &Yard, broker: i32, topic: &str) -> Option<u64> {
    let dirs = yard.world()?.look(|cluster| cluster.describe_log_dirs(evenkeel_sim::BrokerId(broker), None));
    let mut replicas = dirs.into_iter().flat_map(|dir| dir.replicas);
    replicas.find(|replica| *replica.partition.topic == *topic).map(|replica| replica.size)
}

fn isr(yard: &Yard, topic: &str) -> Vec<i32> {
    let registration = yard.world().unwrap().look(|cluster| cluster.registration(topic, 0).cloned());
    let mut isr: Vec<i32> = registration.unwrap().isr.iter().map(|id| id.0).collect();
    isr.sort_unstable();
    isr
}

async fn in_sync(yard: &Yard, topic: &str, wanted: &[i32]) {
    let wanted: Vec<_> = wanted.iter().copied().map(evenkeel_sim::BrokerId).collect();
    let world = yard.world().unwrap();
    world
        .until(|cluster| {
            let isr = cluster.registration(topic, 0).map(|it| it.isr.clone()).unwrap_or_default();
            wanted.iter().all(|id| isr.contains(id))
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn brokers_of_pods_make_a_cluster_that_grows_restarts_and_shrinks() {
    let yard = Yard::new(Wires::pipes());
    assert!(yard.world().is_none(), "no cluster before its first broker");
    let mut running = Vec::new();
    for id in 0..3 {
        running.push(yard.run(yard.broker(id, claim(&format!("claim-{id}")))).await.unwrap());
    }
    for process in &mut running {
        ready(process).await;
    }
    yard.serves("c-kafka-bootstrap", 9091, &running.iter().collect::<Vec<_>>());
    let client = yard.client();
    let cluster = client.describe_cluster().await.unwrap();
    assert_eq!(cluster.id, CLUSTER_ID);
    let seen: Vec<_> = cluster.brokers.iter().map(|it| (it.host.as_str(), it.port, it.rack.as_deref())).collect();
    let expected = [0, 1, 2].map(|id| (format!("c-brokers-{id}.c-kafka-brokers.ns.svc"), format!("zone-{id}")));
    assert_eq!(seen, expected.each_ref().map(|(host, rack)| (host.as_str(), 9091, Some(rack.as_str()))));

    client.create_topics(&[topic("orders", &[0, 1, 2])], false).await.whole().unwrap()["orders"].as_ref().unwrap();
    let partition = TopicPartition::new("orders", 0);
    yard.world().unwrap().with(|cluster| cluster.fill(&partition, 5_000_000));

    // Restarted: stopped politely, back at the same port, with its data.
    let mut first = running.remove(0);
    let ports = first.ports.clone();
    (first.stop)(Stop::Politely);
    assert_eq!(first.ended.await, Exit::success());
    assert_eq!(isr(&yard, "orders"), [1, 2]);
    let mut first = yard.run(yard.broker(0, claim("claim-0"))).await.unwrap();
    assert_eq!(first.ports, ports);
    ready(&mut first).await;
    in_sync(&yard, "orders", &[0, 1, 2]).await;
    assert_eq!(bytes_on(&yard, 0, "orders"), Some(5_000_000));

    // A fourth comes and goes.
    let mut fourth = yard.run(yard.broker(3, claim("claim-3"))).await.unwrap();
    ready(&mut fourth).await;
    yard.world().unwrap().until(|cluster| cluster.describe_brokers(evenkeel_sim::BrokerId(1), false).len() == 4).await;
    (fourth.stop)(Stop::Politely);
    fourth.ended.await;
    client.unregister_broker(BrokerId(3)).await.unwrap();
    yard.programs.forget(&pod("c-brokers-3"));
    yard.programs.discard("claim-3");
    yard.world().unwrap().until(|cluster| cluster.describe_brokers(evenkeel_sim::BrokerId(1), true).len() == 3).await;

    // The Kafka is deleted: pods first, then their claims.
    drop((first, running));
    (0..3).for_each(|id| yard.programs.forget(&pod(&format!("c-brokers-{id}"))));
    assert!(yard.world().is_some(), "its data is still there");
    (0..3).for_each(|id| yard.programs.discard(&format!("claim-{id}")));
    assert!(yard.world().is_none());
}

#[tokio::test(start_paused = true)]
async fn each_listener_tells_its_own_addresses_and_wants_its_own_certificates() {
    let yard = Yard::new(Wires::pipes());
    let mut broker = yard.run(yard.broker(0, claim("claim-0"))).await.unwrap();
    ready(&mut broker).await;
    let host = format!("c-brokers-0.c-kafka-brokers.{NAMESPACE}.svc");
    let at = |port: u16| Address { host: host.clone(), port };
    let plain = yard.wires.connector(yard.table.clone());
    let told = async |client: evenkeel_kafka::Client| {
        let cluster = client.describe_cluster().await.unwrap();
        (cluster.brokers[0].host.clone(), cluster.brokers[0].port)
    };
    let people = told(yard.client_by(plain.clone(), at(9092))).await;
    assert_eq!(people, ("127.0.0.1".to_owned(), i32::from(broker.ports[&9092])), "no DNS of a laptop knows pods");
    let ours = Arc::new(yard.tls(Some(yard.authority.issue(&["operator"]))));
    assert_eq!(told(yard.client_by(ours, at(9091))).await, (host.clone(), 9091), "the name in the certificate");
    // Without a certificate: welcome where none is wanted, refused where one is.
    let strangers = Arc::new(yard.tls(None));
    assert_eq!(told(yard.client_by(strangers.clone(), at(9093))).await.1, i32::from(broker.ports[&9093]));
    let refused = yard.client_by(strangers, at(9091)).describe_cluster().await.unwrap_err();
    assert_eq!(refused.remedy(), Remedy::AskUser, "{refused:?}");
    let forged = Arc::new(yard.tls(Some(crate::yard::Authority::new().issue(&["operator"]))));
    assert!(yard.client_by(forged, at(9091)).describe_cluster().await.is_err(), "vouched for by somebody else");
}

#[tokio::test(start_paused = true)]
async fn a_broker_s_file_is_shown_and_heeded() {
    let yard = Yard::new(Wires::pipes());
    let mut running = Vec::new();
    for id in 0..3 {
        let mut process = yard.run(yard.broker(id, claim(&format!("claim-{id}")))).await.unwrap();
        ready(&mut process).await;
        running.push(process);
    }
    yard.serves("c-kafka-bootstrap", 9091, &running.iter().collect::<Vec<_>>());
    let client = yard.client();
    let usual = evenkeel_kafka::calls::topics::NewTopic {
        layout: evenkeel_kafka::calls::topics::Layout::Automatic { partitions: None, replication_factor: None },
        ..topic("usual", &[])
    };
    client.create_topics(&[usual], false).await.whole().unwrap()["usual"].as_ref().unwrap();
    let everybody_knows = |cluster: &mut evenkeel_sim::Cluster| {
        (0..3).all(|id| cluster.describe_topic(evenkeel_sim::BrokerId(id), "usual").is_ok())
    };
    yard.world().unwrap().until(everybody_knows).await;
    assert_eq!(isr(&yard, "usual"), [0, 1, 2], "default.replication.factor is 3");
    let asked = [Resource::Topic("usual".to_owned()), Resource::Broker(BrokerId(1))];
    let answers = client.describe_configs(&asked, None).await.whole().unwrap();
    let setting = |of: &Resource, name: &str| {
        let found = answers[of].as_ref().unwrap().get(name).unwrap();
        (found.value.clone().unwrap_or_default(), found.source)
    };
    assert_eq!(setting(&asked[0], "min.insync.replicas"), ("2".to_owned(), Source::File));
    assert_eq!(setting(&asked[1], "inter.broker.listener.name"), ("REPLICATION-9091".to_owned(), Source::File));
    assert_eq!(setting(&asked[1], "log.dirs"), ("/var/lib/kafka/data/kafka-log1".to_owned(), Source::File));
    assert_eq!(setting(&asked[1], "broker.rack"), ("zone-1".to_owned(), Source::File));
}

#[tokio::test(start_paused = true)]
async fn an_empty_directory_is_empty_in_the_next_pod_and_full_in_the_next_container() {
    let yard = Yard::new(Wires::pipes());
    let own = |id: i32, pod: &str| Volume {
        id: format!("{pod}/data-{id}"),
        capacity: None,
        persistent: false,
        directory: None,
    };
    let mut zero = yard.run(yard.broker(0, own(0, "first"))).await.unwrap();
    let mut one = yard.run(yard.broker(1, own(1, "first"))).await.unwrap();
    ready(&mut zero).await;
    ready(&mut one).await;
    let world = yard.world().unwrap();
    world.with(|cluster| {
        cluster.create_topic(&evenkeel_sim::cluster::NewTopic::manual("both", &[&[0, 1]]), false).unwrap();
        cluster.fill(&TopicPartition::new("both", 0), 9_000_000_000);
    });
    // The container is restarted in its pod.
    drop(zero);
    let mut zero = yard.run(yard.broker(0, own(0, "first"))).await.unwrap();
    ready(&mut zero).await;
    assert_eq!(bytes_on(&yard, 0, "both"), Some(9_000_000_000));
    in_sync(&yard, "both", &[0, 1]).await;
    // Another pod of the same name.
    (zero.stop)(Stop::Politely);
    zero.ended.await;
    let mut zero = yard.run(yard.broker(0, own(0, "second"))).await.unwrap();
    ready(&mut zero).await;
    assert!(bytes_on(&yard, 0, "both").unwrap() < 9_000_000_000, "it is copied anew");
    in_sync(&yard, "both", &[0, 1]).await;
    assert_eq!(bytes_on(&yard, 0, "both"), Some(9_000_000_000));
}

#[tokio::test(start_paused = true)]
async fn a_broker_that_dies_ends_its_container_and_one_that_is_dropped_dies() {
    let yard = Yard::new(Wires::pipes());
    let mut broker = yard.run(yard.broker(0, claim("claim-0"))).await.unwrap();
    ready(&mut broker).await;
    let world = yard.world().unwrap();
    world.with(|cluster| cluster.suffer(&Fault::Crash(evenkeel_sim::BrokerId(0))));
    assert_eq!(broker.ended.await.code, 1);
    broker.ready.wait_for(|ready| !ready).await.unwrap();
    let again = yard.run(yard.broker(0, claim("claim-0"))).await.unwrap();
    assert!(!world.look(|cluster| cluster.is_down(evenkeel_sim::BrokerId(0))));
    drop(again);
    assert!(world.look(|cluster| cluster.is_down(evenkeel_sim::BrokerId(0))));
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_run_is_said_in_one_line() {
    let yard = Yard::new(Wires::pipes());
    let said = async |launch| yard.run(launch).await.unwrap_err().to_string();
    let other = yard.launch(pod("c-x"), "kafka-exporter", &[]);
    let line = said(other).await;
    assert!(line.contains("`kafka`") && line.contains("`kafka-exporter`") && !line.contains('\n'), "{line}");
    let nothing = yard.launch(pod("c-brokers-0"), "kafka", &[]);
    let line = said(nothing).await;
    assert!(line.ends_with("there is no file /opt/kafka/custom-config/server.config"), "{line}");
    let bad = yard.launch(pod("c-brokers-0"), "kafka", &[("/opt/kafka/custom-config/server.config", "node.id=x")]);
    let line = said(bad).await;
    assert!(line.ends_with("server.config: `process.roles` is missing"), "{line}");
    // A claim of another cluster of the same name.
    let _broker = yard.run(yard.broker(0, claim("claim-0"))).await.unwrap();
    let mut foreign = yard.broker(1, claim("claim-1"));
    let id = evenkeel_node::kubelet::tree::File { bytes: b"another".to_vec(), mode: 0o644 };
    foreign.files.insert("/opt/kafka/custom-config/cluster.id", id);
    let line = said(foreign).await;
    assert!(line.contains("another") && line.contains(CLUSTER_ID), "{line}");
}

#[tokio::test(start_paused = true)]
async fn a_controller_is_ready_at_once_and_ends_when_it_is_told() {
    let yard = Yard::new(Wires::pipes());
    let config = "node.id=9\nprocess.roles=controller\ncontroller.listener.names=C\nlisteners=C://:9090\n\
                  listener.security.protocol.map=C:PLAINTEXT";
    let launch = yard.launch(pod("c-controllers-9"), "kafka", &[("/opt/kafka/custom-config/server.config", config)]);
    let mut process = yard.run(launch).await.unwrap();
    ready(&mut process).await;
    assert!(process.ports.is_empty() && yard.world().is_none());
    (process.stop)(Stop::Politely);
    assert_eq!(process.ended.await, Exit::success());
}

#[tokio::test]
async fn the_same_over_sockets() {
    let yard = Yard::new(Wires::Loopback);
    let mut broker = yard.run(yard.broker(0, claim("claim-0"))).await.unwrap();
    ready(&mut broker).await;
    yard.serves("c-kafka-bootstrap", 9091, &[&broker]);
    assert_eq!(yard.client().describe_cluster().await.unwrap().id, CLUSTER_ID);
    // As a person's client does: plain, and nothing but the address printed.
    let people = Address { host: "127.0.0.1".to_owned(), port: broker.ports[&9092] };
    let client = yard.client_by(Arc::new(evenkeel_kafka::connect::Tcp), people);
    client.create_topics(&[topic("t", &[0])], false).await.whole().unwrap()["t"].as_ref().unwrap();
    let ports = broker.ports.clone();
    (broker.stop)(Stop::Politely);
    broker.ended.await;
    assert!(tokio::net::TcpStream::connect(("127.0.0.1", ports[&9092])).await.is_err(), "the port is closed");
    let again = yard.run(yard.broker(0, claim("claim-0"))).await.unwrap();
    assert_eq!(again.ports, ports, "what clients remember stays true");
}
