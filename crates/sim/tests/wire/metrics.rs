//! The metrics topic as any consumer reads it.

use crate::*;
use bytes::Buf;
use evenkeel_kafka::records::{Compression, decode_batches};
use evenkeel_sim::traffic::Load;

const TOPIC: &str = "__CruiseControlMetrics";

/// One record, decoded by the published layout and nothing of ours.
#[derive(Debug, PartialEq)]
struct Metric {
    class: u8,
    kind: u8,
    time: i64,
    broker: i32,
    topic: Option<String>,
    partition: Option<i32>,
    value: f64,
}

fn decode(mut bytes: Bytes) -> Metric {
    let (class, version, kind) = (bytes.get_u8(), bytes.get_u8(), bytes.get_u8());
    assert_eq!(version, 0);
    let (time, broker) = (bytes.get_i64(), bytes.get_i32());
    let topic = (class > 0).then(|| {
        let length = bytes.get_i32() as usize;
        String::from_utf8(bytes.split_to(length).to_vec()).expect("a name")
    });
    let partition = (class == 2).then(|| bytes.get_i32());
    let value = bytes.get_f64();
    assert!(!bytes.has_remaining());
    Metric { class, kind, time, broker, topic, partition, value }
}

/// Everything in the metrics topic from `offset` on: the key, the record's time, and what it says.
async fn read(world: &World, offset: i64) -> Vec<(String, i64, Metric)> {
    let leader = world.look(|cluster| cluster.registration(TOPIC, 0).and_then(|it| it.leader)).expect("a leader");
    let mut peer = Peer::of(world, leader);
    let mut metrics = Vec::new();
    let mut next = offset;
    loop {
        let answer = peer.call(&fetch_of(TOPIC, next, 0), 12).await.expect("an answer");
        let partition = &answer.responses[0].partitions[0];
        assert_eq!(partition.error_code, 0);
        if next >= partition.high_watermark {
            return metrics;
        }
        for batch in decode_batches(partition.records.clone().expect("records")) {
            let batch = batch.expect("well formed");
            assert_eq!(batch.head.compression, Compression::Gzip);
            next = batch.head.last_offset + 1;
            for it in batch.records {
                let key = String::from_utf8(it.record.key.expect("a key").to_vec()).expect("text");
                metrics.push((key, it.record.timestamp, decode(it.record.value.expect("a value"))));
            }
        }
    }
}

fn world() -> World {
    let options = Options { reporter: Some(Reporter::default()), ..Options::default() };
    let mut cluster = Cluster::new(options, (0..3).map(BrokerSpec::new));
    let load = Load { fan_out: 2.0, ..Load::steady(3_000.0) };
    cluster.create_topic(&NewTopic::manual("a.b", &[&[0, 1], &[1, 2]]).loaded(load, 0), false).expect("made");
    World::new(cluster)
}

#[tokio::test(start_paused = true)]
async fn brokers_report_their_load_once_an_interval() {
    let world = world();
    tokio::time::sleep(Duration::from_secs(59)).await;
    assert!(world.look(|cluster| cluster.topic_id(TOPIC).is_none()), "not before the first interval is over");
    tokio::time::sleep(Duration::from_secs(2)).await;
    let metrics = read(&world, 0).await;
    let stamp = Options::default().wall_start + 60_000;
    assert!(metrics.iter().all(|(_, time, metric)| *time == stamp && metric.time == stamp));
    let value = |broker: i32, kind: u8, topic: Option<&str>, partition: Option<i32>| {
        let found = metrics.iter().find(|(key, _, it)| {
            let expected_key = topic.map_or_else(|| broker.to_string(), str::to_owned);
            (it.broker, it.kind, it.topic.as_deref(), it.partition, key)
                == (broker, kind, topic, partition, &expected_key)
        });
        found.map(|(_, _, it)| it.value)
    };
    // Names come from JMX tags, where dots are underscores.
    assert_eq!([value(0, 2, Some("a_b"), None), value(1, 2, Some("a_b"), None)], [Some(1_500.0); 2]);
    assert_eq!(value(0, 3, Some("a_b"), None), Some(3_000.0));
    assert_eq!([value(0, 0, None, None), value(1, 6, None, None)], [Some(1_500.0); 2]);
    assert_eq!(value(0, 4, Some("a_b"), Some(0)), Some(90_000.0));
    assert_eq!(value(1, 4, Some("a_b"), Some(0)), Some(90_000.0), "followers tell their sizes too");
    assert_eq!(value(0, 4, Some("a_b"), Some(1)), None, "of what they have");
    let cpu = value(0, 5, None, None).expect("told");
    assert!(cpu > 0.0 && cpu < 1.0);
    let mut kinds: Vec<u8> = metrics.iter().filter(|(_, _, it)| it.broker == 0).map(|(_, _, it)| it.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    // What is replicated (11, 12) is counted for all topics together only.
    assert_eq!(kinds, (0..=62).filter(|kind| ![11, 12].contains(kind)).collect::<Vec<u8>>());
}

#[tokio::test(start_paused = true)]
async fn the_topic_is_made_with_the_reporters_settings_and_a_dead_broker_reports_nothing() {
    let world = world();
    tokio::time::sleep(Duration::from_secs(61)).await;
    let first = read(&world, 0).await.len() as i64;
    let settings = world.look(|cluster| {
        let shown = cluster.describe_configs(B0, &Resource::Topic(TOPIC.to_owned())).expect("a topic");
        let value = |name: &str| shown.iter().find(|it| it.name == name).and_then(|it| it.value.clone());
        (value("retention.ms"), value("cleanup.policy"), cluster.registration(TOPIC, 1).is_none())
    });
    assert_eq!(settings, (Some("18000000".to_owned()), Some("delete".to_owned()), true));
    let leader = world.look(|cluster| cluster.registration(TOPIC, 0).and_then(|it| it.leader)).expect("a leader");
    let dead = BrokerId((leader.0 + 1) % 3);
    world.with(|cluster| cluster.suffer(&Fault::Crash(dead)));
    tokio::time::sleep(Duration::from_secs(60)).await;
    let second = read(&world, first).await;
    assert!(!second.is_empty() && second.iter().all(|(_, _, metric)| metric.broker != dead.0));
    world.with(|cluster| cluster.suffer(&Fault::Return(dead)));
    let before = first + second.len() as i64;
    tokio::time::sleep(Duration::from_secs(61)).await;
    assert!(
        read(&world, before).await.iter().any(|(_, _, metric)| metric.broker == dead.0),
        "and again when it is back"
    );
}
