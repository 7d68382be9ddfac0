use std::collections::BTreeMap;

use crate::*;
use evenkeel_sim::cluster::{Alteration, ConfigSource, Operation, Placement, Resource};

pub(crate) fn set(name: &str, value: &str) -> Alteration {
    Alteration { name: name.to_owned(), operation: Operation::Set, value: Some(value.to_owned()) }
}

pub(crate) fn delete(name: &str) -> Alteration {
    Alteration { name: name.to_owned(), operation: Operation::Delete, value: None }
}

pub(crate) fn alter(cluster: &mut Cluster, resource: &Resource, with: &[Alteration]) -> Result<(), Refusal> {
    cluster.incremental_alter_configs(resource, with, false)
}

fn broker0() -> Resource {
    Resource::Broker(BrokerId(0))
}

fn topic() -> Resource {
    Resource::Topic("t".to_owned())
}

#[test]
fn throttle_rates_are_listed_once_they_are_set() {
    let mut cluster = with_partition(3, &[0, 1]);
    let key = "leader.replication.throttled.rate";
    let shown = |cluster: &Cluster| {
        let entries = cluster.describe_configs(BrokerId(0), &broker0()).expect("its own settings");
        entries.into_iter().find(|entry| entry.name == key).and_then(|entry| entry.value)
    };
    assert_eq!(shown(&cluster), None);
    alter(&mut cluster, &broker0(), &[set(key, "1000")]).expect("accepted");
    assert_eq!(shown(&cluster).as_deref(), Some("1000"));
    alter(&mut cluster, &broker0(), &[delete(key)]).expect("accepted");
    assert_eq!(shown(&cluster), None);
}

#[test]
fn a_brokers_unknown_key_is_accepted_and_shown_as_a_secret() {
    let mut cluster = cluster(1);
    alter(&mut cluster, &broker0(), &[set("nobody.knows", "x")]).expect("accepted");
    let entries = cluster.describe_configs(BrokerId(0), &broker0()).expect("its own settings");
    let entry = entries.iter().find(|entry| entry.name == "nobody.knows").expect("listed");
    assert_eq!((entry.sensitive, &entry.value), (true, &None));
}

#[test]
fn a_topics_unknown_key_and_bad_values_are_refused_and_nothing_is_altered() {
    let mut cluster = with_partition(3, &[0, 1]);
    for bad in [
        set("nobody.knows", "x"),
        set("retention.ms", "soon"),
        set("retention.ms", "-5"),
        set("segment.bytes", "10"),
        set("segment.ms", "0"),
        set("compression.type", "rar"),
        set("compression.gzip.level", "0"),
        set("compression.gzip.level", "10"),
        set("compression.lz4.level", "18"),
        set("compression.zstd.level", "23"),
        set("remote.storage.enable", "TRUE"),
        set("leader.replication.throttled.replicas", "none"),
        set("message.timestamp.type", "Foo"),
        set("max.message.bytes", "-1"),
        set("min.cleanable.dirty.ratio", "7"),
        set("min.insync.replicas", "0"),
        set("leader.replication.throttled.replicas", "0"),
    ] {
        let refusal = alter(&mut cluster, &topic(), &[set("retention.bytes", "5"), bad]).expect_err("refused");
        assert_eq!(refusal.code.number(), 40);
    }
    let entries = cluster.describe_configs(BrokerId(0), &topic()).expect("a topic");
    assert!(entries.iter().all(|entry| entry.source == ConfigSource::Default));
}

#[test]
fn lists_grow_and_shrink() {
    let mut cluster = with_partition(3, &[0, 1]);
    let change = |operation, value: &str| Alteration {
        name: "cleanup.policy".to_owned(),
        operation,
        value: Some(value.to_owned()),
    };
    let shown = |cluster: &Cluster| {
        let entries = cluster.describe_configs(BrokerId(0), &topic()).expect("a topic");
        entries.into_iter().find(|entry| entry.name == "cleanup.policy").and_then(|entry| entry.value)
    };
    alter(&mut cluster, &topic(), &[change(Operation::Append, "compact")]).expect("accepted");
    assert_eq!(shown(&cluster).as_deref(), Some("delete,compact"));
    alter(&mut cluster, &topic(), &[change(Operation::Subtract, "delete")]).expect("accepted");
    assert_eq!(shown(&cluster).as_deref(), Some("compact"));
    let unknown = alter(&mut cluster, &topic(), &[change(Operation::Unknown, "x")]);
    assert_eq!(code(unknown), -1);
    let twice = alter(&mut cluster, &topic(), &[set("retention.ms", "1"), set("retention.ms", "2")]);
    assert_eq!(code(twice), 42);
}

#[test]
fn a_cordoned_directory_gets_no_new_replicas() {
    let mut cluster = cluster(1);
    alter(&mut cluster, &broker0(), &[set("cordoned.log.dirs", "/d0")]).expect("accepted");
    create(&mut cluster, &NewTopic::new("t", 4, 1));
    let dirs = cluster.describe_log_dirs(BrokerId(0), None);
    assert_eq!(dirs.iter().map(|dir| (dir.cordoned, dir.replicas.len())).collect::<Vec<_>>(), [(true, 0), (false, 4)]);
    let refused = cluster.alter_replica_log_dir(BrokerId(0), &t0(), "/d0");
    assert_eq!(code(refused), 39);
    assert_eq!(code(alter(&mut cluster, &broker0(), &[set("cordoned.log.dirs", "/nowhere")])), 42);
}

#[test]
fn a_cordoned_broker_is_left_out_by_automatic_placement_and_obeys_explicit_calls() {
    let mut cluster = cluster(4);
    alter(&mut cluster, &Resource::Broker(BrokerId(3)), &[set("cordoned.log.dirs", "*")]).expect("accepted");
    let refusal = cluster.create_topic(&NewTopic::new("t", 1, 4), false).expect_err("only three are left");
    assert_eq!(refusal.code.number(), 38);
    assert!(refusal.message.contains("cordoned"), "{}", refusal.message);
    create(&mut cluster, &NewTopic::manual("t", &[&[3, 0]]));
    create(&mut cluster, &NewTopic::manual("u", &[&[0, 1]]));
    let u = TopicPartition::new("u", 0);
    cluster.fill(&u, 1_000_000);
    let line = Reassignment { partition: u.clone(), target: Some(ids(&[0, 3])) };
    assert_eq!(cluster.alter_reassignments(&[line], true), [Ok(())]);
    cluster.tick(5_000);
    assert_eq!(cluster.registration("u", 0).map(|it| it.isr.clone()), Some(ids(&[0, 3])));
}

#[test]
fn topics_are_refused_as_kafka_refuses_them() {
    let mut cluster = cluster(3);
    let mut refused = |topic: &NewTopic| code(cluster.create_topic(topic, false).map(drop));
    assert_eq!(refused(&NewTopic::new("t", 1, 4)), 38);
    assert_eq!(refused(&NewTopic::new("t", 0, 1)), 37);
    assert_eq!(refused(&NewTopic::new("a topic", 1, 1)), 17);
    assert_eq!(refused(&NewTopic::manual("t", &[&[0, 1], &[2]])), 39, "equal counts are needed");
    assert_eq!(refused(&NewTopic::manual("t", &[&[0, 7]])), 39);
    assert_eq!(refused(&NewTopic::new("t", 1, 1).config("nope", "1")), 40);
    let lags = NewTopic::new("t", 1, 1).config("min.compaction.lag.ms", "50").config("max.compaction.lag.ms", "10");
    assert_eq!(refused(&lags), 40, "nothing could ever be compacted");
    assert_eq!(refused(&NewTopic::new("t", 2, 3)), 0);
    assert_eq!(refused(&NewTopic::new("t", 2, 3)), 36);
    assert_eq!(code(cluster.create_partitions("t", 2, None, false)), 37);
    assert_eq!(code(cluster.create_partitions("t", 5, None, false)), 0);
    assert_eq!(code(cluster.create_partitions("nope", 5, None, false)), 3);
}

#[test]
fn no_two_topics_differ_in_a_full_stop_and_an_underscore_alone() {
    let mut cluster = cluster(1);
    let mut make = |name: &str| cluster.create_topic(&NewTopic::new(name, 1, 1), false).map(drop);
    assert_eq!(["a.b_c", "a.b", "a-b_c"].map(|name| code(make(name))), [0, 0, 0]);
    let refusal = make("a_b.c").expect_err("it looks like another");
    assert_eq!(refusal.message, "Topic 'a_b.c' collides with existing topic: a.b_c");
    assert_eq!((refusal.code, code(make("a.b_c"))), (Code::InvalidTopic, 36));
    assert!(cluster.delete_topic("a.b_c").is_ok());
    assert_eq!(code(cluster.create_topic(&NewTopic::new("a_b.c", 1, 1), false).map(drop)), 0);
}

#[test]
fn what_no_topic_could_be_called_is_told_from_what_is_not_there() {
    let cluster = cluster(1);
    let seen = |name: &str| code(cluster.describe_topic(BrokerId(0), name).map(drop));
    assert_eq!(["nope", "a/b", "..", "", &"x".repeat(250)].map(seen), [3, 17, 17, 17, 17]);
}

#[test]
fn automatic_placement_spreads_over_racks_and_never_leads_on_a_fenced_broker() {
    let mut cluster = cluster(6);
    cluster.stop_broker(BrokerId(5));
    create(&mut cluster, &NewTopic::new("t", 30, 3));
    let topic = (0..30).map(|n| cluster.registration("t", n).expect("a partition").clone());
    for partition in topic {
        let mut racks: Vec<i32> = partition.replicas.iter().map(|id| id.0 % 3).collect();
        racks.sort_unstable();
        assert_eq!(racks, [0, 1, 2]);
        assert_ne!(partition.leader, Some(BrokerId(5)));
        assert!(partition.leader.is_some());
    }
    let all = Placement::Automatic { partitions: 1, factor: 6 };
    create(&mut cluster, &NewTopic { placement: all, ..NewTopic::new("all", 1, 1) });
    let all = cluster.registration("all", 0).expect("a partition");
    assert_eq!((all.replicas.len(), all.isr.len()), (6, 5), "a follower may be on a fenced broker");
}

#[test]
fn what_is_set_for_all_brokers_holds_for_topics_that_do_not_say_otherwise() {
    let mut cluster = with_partition(3, &[0, 1]);
    create(
        &mut cluster,
        &NewTopic {
            configs: [("min.insync.replicas".to_owned(), "1".to_owned())].into(),
            ..NewTopic::manual("own", &[&[0, 1]])
        },
    );
    alter(&mut cluster, &Resource::EveryBroker, &[set("min.insync.replicas", "2"), set("log.retention.ms", "1000")])
        .expect("accepted");
    let shown = |name: &str, key: &str| {
        let entries = cluster.describe_configs(BrokerId(0), &Resource::Topic(name.to_owned())).expect("a topic");
        let found = entries.into_iter().find(|entry| entry.name == key).expect("a key of every topic");
        (found.value.unwrap_or_default(), found.source.number())
    };
    assert_eq!(shown("t", "min.insync.replicas"), ("2".to_owned(), 3));
    assert_eq!(shown("t", "retention.ms"), ("1000".to_owned(), 3));
    assert_eq!(shown("own", "min.insync.replicas"), ("1".to_owned(), 1));
    create(&mut cluster, &NewTopic::manual("later", &[&[0, 1]]));
    cluster.stop_broker(BrokerId(1));
    cluster.tick(5_000);
    for (name, expected) in [("t", 19), ("own", 0), ("later", 19)] {
        let written = cluster.produce(
            BrokerId(0),
            &TopicPartition::new(name, 0),
            evenkeel_sim::log::Batch::of_records(0, &[(None, None)]),
            true,
            None,
        );
        assert_eq!(code(written.map(|_| ())), expected, "{name}");
    }
}

#[test]
fn what_no_topic_could_have_is_no_default_and_spoils_none() {
    let mut cluster = with_partition(3, &[0, 1]);
    let all = Resource::EveryBroker;
    for (key, bad) in [("min.insync.replicas", "0"), ("log.segment.bytes", "1000"), ("log.cleanup.policy", "shred")] {
        for resource in [&all, &broker0()] {
            let refused = alter(&mut cluster, resource, &[set(key, bad)]).expect_err(key);
            assert_eq!(refused.code, Code::InvalidRequest, "{key}={bad}");
            assert!(refused.message.contains(&format!("for configuration {key}:")), "{}", refused.message);
        }
    }
    // Files are believed, and what is wrong in one is no default.
    cluster.stop_broker(BrokerId(2));
    let file = BTreeMap::from([("log.segment.bytes".to_owned(), "1000".to_owned())]);
    cluster.boot_broker(BrokerSpec { file, ..broker(2) });
    alter(&mut cluster, &all, &[set("log.retention.ms", "1000")]).expect("accepted");
    let shown = cluster.describe_configs(BrokerId(0), &topic()).expect("its settings");
    let value = |key: &str| shown.iter().find(|entry| entry.name == key).and_then(|entry| entry.value.as_deref());
    assert_eq!((value("retention.ms"), value("segment.bytes")), (Some("1000"), Some("1073741824")));
}

#[test]
fn settings_are_replaced_as_a_whole() {
    let mut cluster = with_partition(3, &[0, 1]);
    alter(&mut cluster, &topic(), &[set("retention.ms", "1000"), set("segment.ms", "1000")]).expect("accepted");
    let only = |value: Option<&str>| [("retention.ms".to_owned(), value.map(str::to_owned))].into_iter();
    let set_here = |cluster: &Cluster| {
        let shown = cluster.describe_configs(BrokerId(0), &topic()).expect("its settings");
        let here = shown.into_iter().filter(|entry| entry.source == ConfigSource::Topic);
        here.map(|entry| (entry.name, entry.value.unwrap_or_default())).collect::<Vec<_>>()
    };
    let before = set_here(&cluster);
    cluster.replace_configs(&topic(), only(Some("7")), true).expect("it could be");
    cluster.replace_configs(&topic(), only(None), false).expect_err("no value");
    cluster.replace_configs(&topic(), only(Some("soon")), false).expect_err("no number");
    assert_eq!(set_here(&cluster), before);
    cluster.replace_configs(&topic(), only(Some("7")), false).expect("accepted");
    assert_eq!(set_here(&cluster), [("retention.ms".to_owned(), "7".to_owned())]);
}
