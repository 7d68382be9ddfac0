use expect_test::expect_file;
use serde_json::{Value, json};

use super::*;
use crate::kafka::testing::{Written, harbour};

fn config(written: &Written, id: i32) -> ServerConfig {
    let model = written.model();
    ServerConfig::of(&model, &model.nodes[&id], false)
}

fn setting<'a>(config: &'a ServerConfig, key: &str) -> &'a str {
    config.entries.get(key).map_or("", String::as_str)
}

#[test]
fn a_broker_has_a_complete_configuration() {
    let config = config(&harbour(), 1);
    expect_file!["../../../tests/golden/broker-server.config"].assert_eq(&config.text());
    assert_eq!(ServerConfig::read(&config.text()), config);
}

#[test]
fn a_controller_has_a_complete_configuration() {
    expect_file!["../../../tests/golden/controller-server.config"].assert_eq(&config(&harbour(), 101).text());
}

#[test]
fn a_node_that_is_both_listens_for_both() {
    let mut both = harbour().with_brokers("/spec/roles", json!(["controller", "broker"]));
    both.brokers["status"]["roles"] = json!(["controller", "broker"]);
    let config = config(&both, 0);
    assert_eq!(setting(&config, "process.roles"), "broker,controller");
    let listeners = setting(&config, "listeners");
    assert!(listeners.starts_with("CONTROLPLANE-9090://0.0.0.0:9090,REPLICATION-9091://"), "{listeners}");
    assert_eq!(setting(&config, "controller.quorum.voters").split(',').count(), 6);
}

#[test]
fn the_chosen_disk_gets_the_metadata() {
    let chosen = harbour().with_brokers("/spec/storage/volumes/1/kraftMetadata", json!("shared"));
    assert_eq!(setting(&config(&chosen, 0), "metadata.log.dir"), "/var/lib/kafka/data-1/kafka-log0");
}

#[test]
fn the_reporter_is_there_only_if_the_image_has_it() {
    let without = config(&harbour(), 0);
    assert!(without.entries.keys().all(|key| !key.starts_with("cruise.control.") && key != "metric.reporters"));
    let with = harbour()
        .with("/spec/cruiseControl/config/evenkeel.metrics.reporter", json!(true))
        .with("/spec/kafka/config/metric.reporters", json!("a.B"))
        .with("/spec/kafka/config/cruise.control.metrics.topic.num.partitions", json!(7));
    let with = config(&with, 0);
    assert!(setting(&with, "metric.reporters").starts_with("a.B,com.linkedin."));
    assert_eq!(setting(&with, "cruise.control.metrics.topic"), "strimzi.cruisecontrol.metrics");
    assert_eq!(setting(&with, "cruise.control.metrics.topic.num.partitions"), "7");
    assert_eq!(setting(&with, "cruise.control.metrics.topic.replication.factor"), "3");
    assert_eq!(
        setting(&with, "cruise.control.metrics.reporter.bootstrap.servers"),
        "harbour-kafka-brokers.sea.svc:9091"
    );
}

#[test]
fn brokers_are_cordoned_where_kafka_knows_how() {
    let model = harbour().model();
    assert!(!ServerConfig::of(&model, &model.nodes[&0], true).entries.contains_key(CORDONED));
    let model = harbour().with("/spec/kafka/version", json!("4.3.0")).model();
    let (open, cordoned) =
        (ServerConfig::of(&model, &model.nodes[&0], false), ServerConfig::of(&model, &model.nodes[&0], true));
    assert_eq!(open.hash(), cordoned.hash(), "a cordon restarts nobody");
    let change = |value: &str| Changes {
        dynamic: vec![DynamicChange { scope: Scope::Broker, key: CORDONED.to_owned(), value: Some(value.to_owned()) }],
        restart: Vec::new(),
    };
    assert_eq!(changes(&open, &cordoned), change("*"));
    // A broker that was started with the cordon must be told too.
    assert_eq!(changes(&cordoned, &open), change(""));
    assert_eq!(open.clone().following(Some(&cordoned)), open);
    assert!(!ServerConfig::of(&model, &model.nodes[&100], true).entries.contains_key(CORDONED));
}

#[test]
fn a_new_broker_is_told_once_that_it_is_not_cordoned() {
    let model = harbour().with("/spec/kafka/version", json!("4.3.0")).model();
    let of = |id: i32, cordoned: bool| ServerConfig::of(&model, &model.nodes[&id], cordoned);
    assert!(may_inherit_a_cordon(&model, &model.nodes[&0]) && !may_inherit_a_cordon(&model, &model.nodes[&100]));
    let old = harbour().model();
    assert!(!may_inherit_a_cordon(&old, &old.nodes[&0]));

    let newcomer = ServerConfig { unsettled: true, ..of(0, false) };
    assert_eq!(ServerConfig::read(&newcomer.text()), newcomer);
    assert_eq!(newcomer.hash(), of(0, false).hash(), "that restarts nobody");
    let told = |to: &ServerConfig| changes(&newcomer, to).dynamic.into_iter().map(|it| it.value).collect::<Vec<_>>();
    assert_eq!(told(&of(0, false)), [None], "taken back");
    assert_eq!(told(&of(0, true)), [Some("*".to_owned())], "it is to go already");
}

#[test]
fn only_what_kafka_cannot_change_while_it_runs_changes_the_hash() {
    let before = config(&harbour(), 0);
    let changed = config(&harbour().with("/spec/kafka/config/min.insync.replicas", json!(1)), 0);
    assert_eq!(before.hash(), changed.hash());
    let found = changes(&before, &changed);
    assert_eq!((found.dynamic[0].scope, found.dynamic[0].value.as_deref()), (Scope::Cluster, Some("1")));
    assert!(found.restart.is_empty() && found.dynamic.len() == 1);

    let changed = config(&harbour().with("/spec/kafka/config/num.io.threads", json!(9)), 0);
    assert_ne!(before.hash(), changed.hash());
    let found = changes(&before, &changed);
    assert_eq!((found.dynamic.len(), found.restart), (0, vec!["num.io.threads".to_owned()]));
    assert!(changes(&before, &before).is_empty());
}

#[test]
fn a_setting_that_was_removed_restarts_the_node_once() {
    let with = |value: Value| config(&harbour().with("/spec/kafka/config/log.retention.ms", value), 0);
    let (before, without) = (with(json!(1000)), with(json!(null)));
    let after = without.clone().following(Some(&before));
    assert_ne!(after.hash(), before.hash());
    let found = changes(&before, &after);
    let taken_back = DynamicChange { scope: Scope::Cluster, key: "log.retention.ms".to_owned(), value: None };
    assert_eq!((found.dynamic, found.restart), (vec![taken_back], vec!["log.retention.ms".to_owned()]));
    // It is remembered from then on, so that the next reconciliation does not restart it again.
    let read = ServerConfig::read(&after.text());
    assert_eq!(read, after);
    assert_eq!(without.following(Some(&read)), after);
    assert!(changes(&read, &after).is_empty());
}

#[test]
fn what_kafka_does_not_take_back_is_set_to_its_default() {
    let before = config(&harbour(), 0);
    let without = config(&harbour().with("/spec/kafka/config/min.insync.replicas", json!(null)), 0);
    let after = without.clone().following(Some(&before));
    assert_eq!((&after, after.hash()), (&without, before.hash()));
    let one = Some("1".to_owned());
    let change = DynamicChange { scope: Scope::Cluster, key: "min.insync.replicas".to_owned(), value: one };
    assert_eq!(changes(&before, &after), Changes { dynamic: vec![change], restart: Vec::new() });
}

#[test]
fn what_cannot_be_is_refused() {
    let few = harbour().with("/spec/kafka/config/offsets.topic.replication.factor", json!(5));
    assert_eq!(
        few.said(),
        [
            "spec.kafka.config: offsets.topic.replication.factor is 5, and there would be 3 brokers: lower it, or ask for more \
         brokers"
        ]
    );
    assert!(harbour().with("/spec/kafka/version", json!("3.9.0")).said()[0].starts_with("spec.kafka.version: `3.9.0`"));
    let long = harbour().with("/metadata/name", json!("h".repeat(60)));
    let relabelled = |mut written: Written| {
        for pool in [&mut written.brokers, &mut written.controllers] {
            pool["metadata"]["labels"]["strimzi.io/cluster"] = written.kafka["metadata"]["name"].clone();
        }
        written
    };
    let long = relabelled(long).said();
    assert!(long.len() == 1 && long[0].starts_with("metadata.name: is too long"), "{long:?}");
    assert!(relabelled(harbour().with("/metadata/name", json!("7seas"))).said()[0].contains("begin with a letter"));
    let lots = harbour()
        .with_brokers("/spec/resources/requests/cpu", json!("lots"))
        .with("/spec/cruiseControl/resources", json!({"limits": {"memory": "-1"}}));
    assert_eq!(
        lots.said(),
        [
            "spec.cruiseControl.resources.limits.memory: `-1` is no amount: write one such as `500m` or `8Gi`",
            "node pool brokers, spec.resources.requests.cpu: `lots` is no amount: write one such as `500m` or `8Gi`",
        ]
    );
    let more = harbour().with_brokers("/spec/resources/limits/memory", json!("7.5Gi"));
    assert_eq!(
        more.said(),
        ["node pool brokers, spec.resources.requests.memory: `8Gi` is more than the limit, which is `7.5Gi`"]
    );
    for (path, value, said) in [
        ("/spec/kafka/rack/topologyKey", json!(""), "spec.kafka.rack.topologyKey: `` is no label of Kubernetes nodes"),
        ("/spec/kafka/rack/topologyKey", json!("a zone"), "spec.kafka.rack.topologyKey: `a zone` is no label"),
        ("/spec/kafka/rack/topologyKey", json!("a/b/c"), "spec.kafka.rack.topologyKey: `a/b/c` is no label"),
        ("/spec/kafka/image", json!(" "), "spec.kafka.image: is empty"),
        ("/spec/cruiseControl/image", json!(""), "spec.cruiseControl.image: is empty"),
        ("/spec/kafka/metadataVersion", json!("newest"), "spec.kafka.metadataVersion: `newest` is no metadata version"),
        ("/spec/kafka/metadataVersion", json!("4.3"), "spec.kafka.metadataVersion: `4.3` is newer than Kafka 4.1.0"),
    ] {
        let refused = harbour().with(path, value).said();
        assert!(refused.len() == 1 && refused[0].starts_with(said), "{refused:?}");
    }
    assert!(harbour().with("/spec/kafka/metadataVersion", json!("4.1-IV0")).try_model().is_ok());
    let open = harbour().with("/spec/kafka/authorization", json!({"type": "simple"}));
    assert!(open.said()[0].starts_with("spec.kafka.authorization: is not built"), "{:?}", open.said());
    let broken = harbour().with_brokers("/spec/template", json!({"pod": {"tolerations": "x"}}));
    assert!(broken.said()[0].starts_with("node pool brokers, spec.template: invalid type"), "{:?}", broken.said());
}

/// Where nobody has raised the metadata version there is a way back, and elsewhere there is none.
#[test]
fn an_older_kafka_is_refused_if_it_cannot_read_what_is_there() {
    let made = |metadata: &str, before: &str| {
        let status = json!({"clusterId": "x", "kafkaVersion": before, "kafkaMetadataVersion": metadata});
        harbour().with("/status", status)
    };
    assert_eq!(
        made("4.3-IV0", "4.3.1").said(),
        [
            "spec.kafka.version: `4.1.0` is older than 4.3.1, and than the metadata version 4.3-IV0 of the cluster: its nodes \
             would not start"
        ]
    );
    assert!(made("4.1-IV1", "4.3.1").try_model().is_ok());
    assert!(made("4.3-IV0", "4.1.0").try_model().is_ok(), "it is what runs");
    assert!(made("4.0-IV3", "4.0.0").try_model().is_ok(), "it is newer");
}

/// Kubernetes would refuse the pods one by one, after all else was made.
#[test]
fn a_pool_whose_pods_could_not_be_named_is_refused() {
    let named = |name: &str| {
        let mut written = harbour();
        written.brokers["metadata"]["name"] = json!(name);
        written
    };
    let fits = "p".repeat(63 - "harbour--0".len());
    assert!(named(&fits).try_model().is_ok());
    let long = format!("{fits}p");
    assert_eq!(
        named(&long).said(),
        [format!(
            "node pool {long}, metadata.name: is too long: `harbour-{long}-2` would have more than 63 letters: take a shorter \
             name for the pool, or for the Kafka"
        )]
    );
    let dotted = named("a.b").said();
    assert_eq!(dotted, ["node pool a.b, metadata.name: `a.b` must have no dots: hosts are named after it"]);
}

#[test]
fn what_is_not_honoured_is_named_once_for_each_resource() {
    let written = harbour()
        .with("/spec/entityOperator", json!({"topicOperator": {}}))
        .with("/spec/kafka/replicas", json!(3))
        .with("/spec/clusterCa", json!({"renewalDays": 30, "colour": "red"}))
        .with(
            "/spec/kafka/template",
            json!({"pod": {"dnsPolicy": "None"}, "podDisruptionBudget": {"maxUnavailable": 2}}),
        )
        .with("/spec/cruiseControl/jvmOptions", json!({"-Xmx": "1g"}))
        .with_brokers("/spec/tempo", json!("allegro"))
        .with_brokers(
            "/spec/template",
            json!({"pod": {"hostNetwork": true}, "podDisruptionBudget": {"maxUnavailable": 2}}),
        );
    assert_eq!(
        written.warned(),
        [
            "spec.clusterCa.colour, spec.clusterCa.renewalDays, spec.entityOperator, spec.kafka.replicas, \
         spec.kafka.template.pod.dnsPolicy are not honoured",
            "node pool brokers, spec.template.pod.hostNetwork, spec.template.podDisruptionBudget, spec.tempo are not honoured",
            "spec.cruiseControl.jvmOptions is not honoured: this engine has no virtual machine",
        ]
    );
    assert_eq!(harbour().warned(), [""; 0]);
    let rack = harbour().with("/spec/kafka/rack", json!({})).warned();
    assert!(rack.len() == 1 && rack[0].starts_with("spec.kafka.rack is not honoured"), "{rack:?}");
}
