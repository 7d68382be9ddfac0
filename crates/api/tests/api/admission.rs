//! What the CRDs let in, and what they say about the rest.

use serde_json::{Value, json};

use crate::support;

fn rebalance(spec: Value) -> Value {
    json!({"apiVersion": "kafka.strimzi.io/v1", "kind": "KafkaRebalance", "metadata": {"name": "r"}, "spec": spec})
}

fn kafka(spec: Value) -> Value {
    json!({"apiVersion": "kafka.strimzi.io/v1beta2", "kind": "Kafka", "metadata": {"name": "k"}, "spec": spec})
}

fn pool(storage: Value) -> Value {
    json!({
        "apiVersion": "kafka.strimzi.io/v1", "kind": "KafkaNodePool", "metadata": {"name": "p"},
        "spec": {"replicas": 1, "roles": ["broker"], "storage": storage},
    })
}

fn auto_rebalance(entries: Value) -> Value {
    kafka(json!({"kafka": {}, "cruiseControl": {"autoRebalance": entries}}))
}

fn jbod(ids: &[i32]) -> Value {
    let volumes: Vec<_> = ids.iter().map(|id| json!({"id": id, "type": "persistent-claim", "size": "1Gi"})).collect();
    json!({"type": "jbod", "volumes": volumes})
}

#[track_caller]
fn admitted(object: Value) {
    assert_eq!(support::complaints(&object), [""; 0]);
}

#[track_caller]
fn refused(object: Value, complaint: &str) {
    assert_eq!(support::complaints(&object), [complaint]);
}

#[test]
fn an_empty_rebalance_is_fine() {
    admitted(rebalance(json!({})));
}

#[test]
fn fields_that_depend_on_the_mode_are_left_to_the_controller() {
    admitted(rebalance(json!({"mode": "add-brokers"})));
    admitted(rebalance(json!({"mode": "remove-disks", "brokers": []})));
    admitted(rebalance(json!({"rebalanceDisk": true, "goals": ["RackAwareGoal"]})));
}

#[test]
fn a_field_left_blank_counts_as_left_out() {
    admitted(rebalance(json!({"goals": null, "brokers": null, "moveReplicasOffVolumes": null, "template": null})));
    admitted(kafka(json!({"kafka": null, "cruiseControl": {"autoRebalance": null}})));
}

#[test]
fn an_unknown_mode_is_refused() {
    refused(
        rebalance(json!({"mode": "full-rebalance"})),
        r#"spec.mode: enum must be ["full","add-brokers","remove-brokers","remove-disks"]"#,
    );
    refused(
        auto_rebalance(json!([{"mode": "full"}])),
        r#"spec.cruiseControl.autoRebalance[0].mode: enum must be ["add-brokers","remove-brokers","imbalance"]"#,
    );
}

#[test]
fn broker_ids_are_neither_negative_nor_repeated() {
    admitted(rebalance(json!({"brokers": [0, 3, 2147483647]})));
    admitted(rebalance(json!({"brokers": (0..500).collect::<Vec<_>>()})));
    refused(
        rebalance(json!({"brokers": [1, -1]})),
        "spec.brokers: broker ids are 0 or greater: remove the negative ones",
    );
    refused(
        rebalance(json!({"brokers": [3, 4, 3]})),
        "spec.brokers: a broker id is listed twice: list each broker once",
    );
    refused(rebalance(json!({"brokers": (0..501).collect::<Vec<_>>()})), "spec.brokers: maxItems must be 500");
}

#[test]
fn volumes_to_empty_are_listed_once_and_not_nothing() {
    let volumes = |entries: Value| rebalance(json!({"mode": "remove-disks", "moveReplicasOffVolumes": entries}));
    admitted(volumes(json!([{"brokerId": 0, "volumeIds": [0, 1]}, {"brokerId": 1, "volumeIds": [0]}])));
    refused(
        volumes(json!([])),
        "spec.moveReplicasOffVolumes: list at least one broker with its volumes, or leave moveReplicasOffVolumes out",
    );
    refused(
        volumes(json!([{"brokerId": -1, "volumeIds": [0]}])),
        "spec.moveReplicasOffVolumes: broker ids are 0 or greater: remove the negative ones",
    );
    refused(
        volumes(json!([{"brokerId": 0, "volumeIds": []}])),
        "spec.moveReplicasOffVolumes[0].volumeIds: list at least one volume id, or leave this broker out of \
         moveReplicasOffVolumes",
    );
    refused(
        volumes(json!([{"brokerId": 0, "volumeIds": [0, -2]}])),
        "spec.moveReplicasOffVolumes[0].volumeIds: volume ids are 0 or greater: remove the negative ones",
    );
    refused(
        volumes(json!([{"brokerId": 0, "volumeIds": [0]}, {"brokerId": 1, "volumeIds": [1, 1]}])),
        "spec.moveReplicasOffVolumes[1].volumeIds: a volume id is listed twice: list each volume once",
    );
    refused(
        volumes(json!([{"volumeIds": [1]}])),
        r#"spec.moveReplicasOffVolumes[0]: required must be ["brokerId","volumeIds"]"#,
    );
}

#[test]
fn limits_of_a_rebalance_are_not_negative() {
    for field in [
        "concurrentPartitionMovementsPerBroker",
        "concurrentIntraBrokerPartitionMovements",
        "concurrentLeaderMovements",
        "replicationThrottle",
    ] {
        admitted(rebalance(json!({field: 0})));
        refused(rebalance(json!({field: -1})), &format!("spec.{field}: minimum must be 0.0"));
    }
}

#[test]
fn an_auto_rebalance_mode_is_listed_once() {
    admitted(auto_rebalance(json!([{"mode": "add-brokers"}, {"mode": "remove-brokers"}, {"mode": "imbalance"}])));
    refused(
        auto_rebalance(json!([{"mode": "imbalance"}, {"mode": "imbalance", "template": {"name": "t"}}])),
        "spec.cruiseControl.autoRebalance: a mode is listed twice: keep one entry for each of add-brokers, \
         remove-brokers and imbalance",
    );
    refused(
        auto_rebalance(json!([])),
        "spec.cruiseControl.autoRebalance: list at least one mode, or leave autoRebalance out to switch automatic \
         rebalancing off",
    );
}

#[test]
fn disks_have_ids_of_their_own() {
    let in_kafka = |storage: Value| kafka(json!({"kafka": {"replicas": 3, "storage": storage}}));
    admitted(pool(jbod(&[0, 1, 7])));
    admitted(in_kafka(jbod(&[0])));
    admitted(pool(json!({"type": "jbod", "volumes": [{"type": "ephemeral"}, {"type": "ephemeral"}]})));
    admitted(pool(json!({"type": "ephemeral"})));
    for (ids, complaint) in [
        (&[][..], "volumes: list at least one volume, or leave volumes out"),
        (&[0, -1], "volumes: volume ids are 0 or greater: give each volume such an id"),
        (&[1, 0, 1], "volumes: a volume id is used twice: give each volume an id of its own"),
    ] {
        refused(pool(jbod(ids)), &format!("spec.storage.{complaint}"));
        refused(in_kafka(jbod(ids)), &format!("spec.kafka.storage.{complaint}"));
    }
}

#[test]
fn quantities_may_be_numbers() {
    admitted(kafka(json!({"kafka": {"resources": {"requests": {"cpu": 2, "memory": 8589934592_i64}}}})));
    admitted(kafka(json!({"kafka": {"resources": {"limits": {"cpu": "1500m"}}}})));
}

#[test]
fn capacities_have_a_unit() {
    let capacity = |network: &str| kafka(json!({"cruiseControl": {"brokerCapacity": {"inboundNetwork": network}}}));
    admitted(capacity("10000KiB/s"));
    admitted(capacity("10B/s"));
    refused(
        capacity("10000"),
        r#"spec.cruiseControl.brokerCapacity.inboundNetwork: pattern must be "^[0-9]+([KMG]i?)?B/s$""#,
    );
}

#[test]
fn a_pool_says_how_many_nodes_of_which_kind() {
    let mut without = pool(jbod(&[0]));
    without["spec"].as_object_mut().unwrap().clear();
    refused(without, r#"spec: required must be ["replicas","roles","storage"]"#);
}

#[test]
fn unknown_fields_are_let_in() {
    admitted(kafka(json!({"entityOperator": {}, "kafka": {"logging": {}, "listeners": [
        {"name": "plain", "port": 9092, "type": "internal", "tls": false, "colour": "red"},
    ]}})));
}
