//! What the definitions of our own resources refuse, and in which words: a rule exists for what is wrong in any such
//! resource, and its message says what to write instead.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::resources::{Kinds, install, pool};
use crate::world::{World, with_query};

promises!(what_is_wrong_is_refused_in_plain_words, what_depends_on_the_rest_is_left_to_the_controllers,);

/// A `spec` of some kind, and what is said about it: the field and the message, without what follows from it.
struct Refusal(&'static str, Value, &'static [(&'static str, &'static str)]);

fn auto_rebalance(entries: Value) -> Value {
    json!({"kafka": {}, "cruiseControl": {"autoRebalance": entries}})
}

fn volumes(entries: Value) -> Value {
    json!({"mode": "remove-disks", "moveReplicasOffVolumes": entries})
}

fn jbod(ids: &[i32]) -> Value {
    let volumes: Vec<_> = ids.iter().map(|id| json!({"id": id, "type": "persistent-claim", "size": "1Gi"})).collect();
    json!({"type": "jbod", "volumes": volumes})
}

fn in_kafka(storage: Value) -> Value {
    json!({"kafka": {"replicas": 3, "storage": storage}})
}

fn capacity(network: &str) -> Value {
    json!({"cruiseControl": {"brokerCapacity": {"inboundNetwork": network}}})
}

fn refusals() -> Vec<Refusal> {
    let (kafka, pools, rebalance) = ("Kafka", "KafkaNodePool", "KafkaRebalance");
    let mut refusals = vec![
        Refusal(
            rebalance,
            json!({"mode": "full-rebalance"}),
            &[(
                "spec.mode",
                r#"Unsupported value: "full-rebalance": supported values: "full", "add-brokers", "remove-brokers", "remove-disks""#,
            )],
        ),
        Refusal(
            rebalance,
            json!({"brokers": [1, -1]}),
            &[("spec.brokers", "Invalid value: broker ids are 0 or greater: remove the negative ones")],
        ),
        Refusal(
            rebalance,
            json!({"brokers": [3, 4, 3]}),
            &[("spec.brokers", "Invalid value: a broker id is listed twice: list each broker once")],
        ),
        Refusal(
            rebalance,
            json!({"brokers": (0..501).collect::<Vec<_>>()}),
            &[("spec.brokers", "Too many: 501: must have at most 500 items")],
        ),
        Refusal(
            rebalance,
            volumes(json!([])),
            &[(
                "spec.moveReplicasOffVolumes",
                "Invalid value: list at least one broker with its volumes, or leave moveReplicasOffVolumes out",
            )],
        ),
        Refusal(
            rebalance,
            volumes(json!([{"brokerId": -1, "volumeIds": [0]}])),
            &[("spec.moveReplicasOffVolumes", "Invalid value: broker ids are 0 or greater: remove the negative ones")],
        ),
        Refusal(
            rebalance,
            volumes(json!([{"brokerId": 0, "volumeIds": []}])),
            &[(
                "spec.moveReplicasOffVolumes[0].volumeIds",
                "Invalid value: list at least one volume id, or leave this broker out of moveReplicasOffVolumes",
            )],
        ),
        Refusal(
            rebalance,
            volumes(json!([{"brokerId": 0, "volumeIds": [0, -2]}])),
            &[(
                "spec.moveReplicasOffVolumes[0].volumeIds",
                "Invalid value: volume ids are 0 or greater: remove the negative ones",
            )],
        ),
        Refusal(
            rebalance,
            volumes(json!([{"brokerId": 0, "volumeIds": [0]}, {"brokerId": 1, "volumeIds": [1, 1]}])),
            &[(
                "spec.moveReplicasOffVolumes[1].volumeIds",
                "Invalid value: a volume id is listed twice: list each volume once",
            )],
        ),
        Refusal(
            rebalance,
            volumes(json!([{"volumeIds": [1]}])),
            &[("spec.moveReplicasOffVolumes[0].brokerId", "Required value")],
        ),
        Refusal(
            rebalance,
            json!({"replicationThrottle": -1, "concurrentLeaderMovements": -1}),
            &[
                (
                    "spec.concurrentLeaderMovements",
                    "Invalid value: -1: spec.concurrentLeaderMovements in body should be greater than or equal to 0",
                ),
                (
                    "spec.replicationThrottle",
                    "Invalid value: -1: spec.replicationThrottle in body should be greater than or equal to 0",
                ),
            ],
        ),
        Refusal(
            kafka,
            auto_rebalance(json!([{"mode": "full"}])),
            &[(
                "spec.cruiseControl.autoRebalance[0].mode",
                r#"Unsupported value: "full": supported values: "add-brokers", "remove-brokers", "imbalance""#,
            )],
        ),
        Refusal(
            kafka,
            auto_rebalance(json!([{"mode": "imbalance"}, {"mode": "imbalance", "template": {"name": "t"}}])),
            &[(
                "spec.cruiseControl.autoRebalance",
                "Invalid value: a mode is listed twice: keep one entry for each of add-brokers, remove-brokers and imbalance",
            )],
        ),
        Refusal(
            kafka,
            auto_rebalance(json!([])),
            &[(
                "spec.cruiseControl.autoRebalance",
                "Invalid value: list at least one mode, or leave autoRebalance out to switch automatic rebalancing off",
            )],
        ),
        Refusal(
            kafka,
            capacity("10000"),
            &[(
                "spec.cruiseControl.brokerCapacity.inboundNetwork",
                r#"Invalid value: "10000": spec.cruiseControl.brokerCapacity.inboundNetwork in body should match '^[0-9]+([KMG]i?)?B/s$'"#,
            )],
        ),
        Refusal(
            pools,
            json!({}),
            &[
                ("spec.replicas", "Required value"),
                ("spec.roles", "Required value"),
                ("spec.storage", "Required value"),
            ],
        ),
        Refusal(
            pools,
            pool(json!({"type": "tape"})),
            &[(
                "spec.storage.type",
                r#"Unsupported value: "tape": supported values: "ephemeral", "persistent-claim", "jbod""#,
            )],
        ),
        Refusal("StrimziPodSet", json!({}), &[("spec.pods", "Required value"), ("spec.selector", "Required value")]),
    ];
    for (ids, in_pool, inside) in [
        (
            &[][..],
            &[("spec.storage.volumes", "Invalid value: list at least one volume, or leave volumes out")],
            &[("spec.kafka.storage.volumes", "Invalid value: list at least one volume, or leave volumes out")],
        ),
        (
            &[0, -1],
            &[("spec.storage.volumes", "Invalid value: volume ids are 0 or greater: give each volume such an id")],
            &[(
                "spec.kafka.storage.volumes",
                "Invalid value: volume ids are 0 or greater: give each volume such an id",
            )],
        ),
        (
            &[1, 0, 1],
            &[("spec.storage.volumes", "Invalid value: a volume id is used twice: give each volume an id of its own")],
            &[(
                "spec.kafka.storage.volumes",
                "Invalid value: a volume id is used twice: give each volume an id of its own",
            )],
        ),
    ] {
        refusals.push(Refusal(pools, pool(jbod(ids)), in_pool));
        refusals.push(Refusal(kafka, in_kafka(jbod(ids)), inside));
    }
    refusals
}

/// Sends a spec in both versions without keeping it.
async fn attempt(world: &World, kinds: &Kinds, kind: &str, spec: &Value) -> [crate::answer::Answer; 2] {
    let kind = kinds.get(kind);
    let path = |version: &str| with_query(&kind.path(world, version), "dryRun=All&fieldValidation=Strict");
    let sent = |version: &str| kind.object(version, "a", spec.clone());
    [world.post(&path("v1"), sent("v1")).await, world.post(&path("v1beta2"), sent("v1beta2")).await]
}

async fn what_is_wrong_is_refused_in_plain_words(world: World) {
    let kinds = install(&world).await;
    for Refusal(kind, spec, expected) in refusals() {
        for answer in attempt(&world, &kinds, kind, &spec).await {
            let answer = answer.refused(422, "Invalid");
            let causes = answer.body["details"]["causes"].as_array().unwrap();
            let text = |cause: &Value, key: &str| cause[key].as_str().unwrap_or_default().to_owned();
            // Beside a wrong shape the server remarks, about no field, that it has not tried the rules.
            let causes = causes.iter().filter(|cause| cause["field"] != "<nil>");
            let mut seen: Vec<_> = causes.map(|cause| (text(cause, "field"), text(cause, "message"))).collect();
            seen.sort();
            let expected: Vec<_> = expected.iter().map(|(f, m)| ((*f).to_owned(), (*m).to_owned())).collect();
            assert_eq!(seen, expected, "{kind} {spec}");
        }
    }
}

/// A rule that is never tried may never hold, or always.
#[test]
fn every_rule_is_tried() {
    fn collect(schema: &Value, found: &mut BTreeSet<String>) {
        match schema {
            Value::Object(fields) => {
                let rules = fields.get("x-kubernetes-validations").and_then(Value::as_array);
                for rule in rules.into_iter().flatten() {
                    found.insert(rule["message"].as_str().expect("a rule says what to write instead").to_owned());
                }
                fields.values().for_each(|value| collect(value, found));
            }
            Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
            _ => {}
        }
    }
    let mut rules = BTreeSet::new();
    collect(&serde_json::to_value(evenkeel_api::crds()).unwrap(), &mut rules);
    assert!(!rules.is_empty());
    let tried: String = refusals().iter().flat_map(|refusal| refusal.2).map(|(_, message)| *message).collect();
    for rule in rules {
        assert!(tried.contains(&rule), "no refusal shows the rule: {rule}");
    }
}

async fn what_depends_on_the_rest_is_left_to_the_controllers(world: World) {
    let kinds = install(&world).await;
    let every_mode = json!([{"mode": "add-brokers"}, {"mode": "remove-brokers"}, {"mode": "imbalance"}]);
    let ids = |count: i32| (0..count).collect::<Vec<_>>();
    // The longest lists there may be: their rules must not cost more than the server spends on one object.
    let all_volumes: Value = ids(500).iter().map(|id| json!({"brokerId": id, "volumeIds": ids(64)})).collect();
    for (kind, spec) in [
        ("KafkaRebalance", json!({"mode": "add-brokers"})),
        ("KafkaRebalance", json!({"mode": "remove-disks", "brokers": []})),
        ("KafkaRebalance", json!({"rebalanceDisk": true, "goals": ["RackAwareGoal"]})),
        ("KafkaRebalance", json!({"brokers": [0, 3, 2_147_483_647]})),
        ("KafkaRebalance", json!({"brokers": ids(500)})),
        ("KafkaRebalance", volumes(all_volumes)),
        ("KafkaRebalance", json!({"replicationThrottle": 0, "concurrentPartitionMovementsPerBroker": 0})),
        ("KafkaRebalance", volumes(json!([{"brokerId": 0, "volumeIds": [0, 1]}, {"brokerId": 1, "volumeIds": [0]}]))),
        ("Kafka", auto_rebalance(every_mode)),
        ("Kafka", in_kafka(jbod(&[0]))),
        ("Kafka", json!({"kafka": {"resources": {"requests": {"cpu": 2, "memory": 8_589_934_592_i64}}}})),
        ("Kafka", json!({"kafka": {"resources": {"limits": {"cpu": "1500m"}}}})),
        ("Kafka", capacity("10000KiB/s")),
        ("Kafka", capacity("10B/s")),
        ("Kafka", in_kafka(jbod(&ids(128)))),
        ("KafkaNodePool", pool(jbod(&[0, 1, 7]))),
        ("KafkaNodePool", pool(jbod(&ids(128)))),
        ("KafkaNodePool", pool(json!({"type": "jbod", "volumes": [{"type": "ephemeral"}, {"type": "ephemeral"}]}))),
        ("KafkaNodePool", pool(json!({"type": "ephemeral"}))),
    ] {
        for answer in attempt(&world, &kinds, kind, &spec).await {
            answer.code(201);
        }
    }
}
