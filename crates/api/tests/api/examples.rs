//! Every manifest in `examples/` is one that we understand to the last field. That API servers take it is promised in
//! the testkit.

use std::collections::{BTreeMap, BTreeSet};

use evenkeel_api::kafka::AutoRebalanceMode;
use evenkeel_api::node_pool::ProcessRole;
use evenkeel_api::{Kafka, KafkaNodePool, KafkaRebalance, annotations, labels, unknown_fields};
use kube::{Resource, ResourceExt};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::support;

#[test]
fn every_example_opens_with_what_it_shows() {
    for (file, text, _) in support::examples() {
        assert!(text.starts_with("# "), "{file} opens with a comment that says what it shows");
    }
}

#[test]
fn every_example_is_understood_to_the_last_field() {
    for (file, _, documents) in support::examples() {
        for document in documents {
            match document["kind"].as_str().unwrap() {
                "Kafka" => understand::<Kafka>(&file, &document),
                "KafkaNodePool" => understand::<KafkaNodePool>(&file, &document),
                "KafkaRebalance" => understand::<KafkaRebalance>(&file, &document),
                other => panic!("{file}: what is a {other}?"),
            }
        }
    }
}

fn understand<K>(file: &str, document: &Value)
where
    K: Resource<DynamicType = ()> + Serialize + DeserializeOwned,
{
    let object: K = serde_json::from_value(document.clone()).unwrap_or_else(|error| panic!("{file}: {error}"));
    let mut written = serde_json::to_value(&object).unwrap();
    written["apiVersion"] = document["apiVersion"].clone();
    assert_holds(document, &written, file);
    assert_eq!(unknown_fields(&object), [""; 0], "{file}");
}

/// Everything in `left` is also in `right`. What `right` has beyond that are defaults.
fn assert_holds(left: &Value, right: &Value, place: &str) {
    match (left, right) {
        (Value::Object(left), Value::Object(right)) => {
            for (name, value) in left {
                let place = format!("{place}.{name}");
                assert_holds(value, right.get(name).unwrap_or_else(|| panic!("{place} is lost")), &place);
            }
        }
        _ => assert_eq!(left, right, "{place}"),
    }
}

#[test]
fn every_name_is_used_once_so_that_the_folder_can_be_applied_as_a_whole() {
    let mut seen = BTreeSet::new();
    for (file, _, documents) in support::examples() {
        for document in documents {
            let name = (document["kind"].to_string(), document["metadata"]["name"].to_string());
            assert!(seen.insert(name.clone()), "{file}: {name:?} is in another example too");
        }
    }
}

/// All objects of a kind.
fn all<K: DeserializeOwned>(kind: &str) -> Vec<K> {
    let documents = support::examples().into_iter().flat_map(|(_, _, documents)| documents);
    let of_kind = documents.filter(|document| document["kind"] == kind);
    of_kind.map(|document| serde_json::from_value(document).unwrap()).collect()
}

/// Otherwise a newer operator would restart its brokers with the Kafka that is new then.
#[test]
fn every_kafka_names_its_version() {
    for kafka in all::<Kafka>("Kafka") {
        assert!(kafka.spec.kafka.as_ref().is_some_and(|it| it.version.is_some()), "{}", kafka.name_any());
    }
}

#[test]
fn a_broker_whose_disks_are_emptied_keeps_one() {
    let pools = all::<KafkaNodePool>("KafkaNodePool");
    let mut fewest: BTreeMap<&str, usize> = BTreeMap::new();
    for pool in &pools {
        let cluster = pool.labels().get(labels::CLUSTER).map(String::as_str).unwrap_or_default();
        let Some(volumes) = pool.spec.storage.volumes.as_ref().map(Vec::len) else { continue };
        fewest.entry(cluster).and_modify(|fewest| *fewest = (*fewest).min(volumes)).or_insert(volumes);
    }
    let mut emptied = 0;
    for rebalance in all::<KafkaRebalance>("KafkaRebalance") {
        for broker in rebalance.spec.move_replicas_off_volumes.iter().flatten() {
            let cluster = rebalance.labels().get(labels::CLUSTER).map(String::as_str).unwrap_or_default();
            let taken = broker.volume_ids.len();
            assert!(
                taken < fewest[cluster],
                "{}: nothing is left of broker {}",
                rebalance.name_any(),
                broker.broker_id
            );
            emptied += 1;
        }
    }
    assert!(emptied > 0, "an example empties disks");
}

/// Whoever goes on and takes the disk away would lose what is on it otherwise.
#[test]
fn a_disk_that_is_emptied_is_emptied_on_every_broker_of_its_pool() {
    let pools = all::<KafkaNodePool>("KafkaNodePool");
    for rebalance in all::<KafkaRebalance>("KafkaRebalance") {
        let emptied: Vec<i32> =
            rebalance.spec.move_replicas_off_volumes.iter().flatten().map(|broker| broker.broker_id).collect();
        if emptied.is_empty() {
            continue;
        }
        let cluster = rebalance.labels().get(labels::CLUSTER);
        let of_cluster = pools.iter().filter(|pool| pool.labels().get(labels::CLUSTER) == cluster);
        let with_disks =
            of_cluster.filter(|pool| pool.spec.storage.volumes.as_ref().is_some_and(|disks| disks.len() > 1));
        let brokers: i32 = with_disks.map(|pool| pool.spec.replicas).sum();
        assert_eq!(emptied, (0..brokers).collect::<Vec<i32>>(), "{}", rebalance.name_any());
    }
}

/// A pool with controllers is a fixed quorum.
#[test]
fn a_cluster_that_is_rebalanced_when_it_is_scaled_can_be_scaled() {
    let pools = all::<KafkaNodePool>("KafkaNodePool");
    let mut scaled = 0;
    for kafka in all::<Kafka>("Kafka") {
        let on_scaling = kafka.spec.auto_rebalances().iter().any(|it| it.mode != AutoRebalanceMode::Imbalance);
        if on_scaling && kafka.spec.kafka.as_ref().is_some_and(|it| it.replicas.is_none()) {
            let of_kafka = |it: &&KafkaNodePool| it.labels().get(labels::CLUSTER) == Some(&kafka.name_any());
            let mut own = pools.iter().filter(of_kafka);
            assert!(own.any(|it| !it.spec.roles.contains(&ProcessRole::Controller)), "{}", kafka.name_any());
            scaled += 1;
        }
    }
    assert!(scaled > 0, "an example is scaled");
}

/// Otherwise Cruise Control refuses it: "Missing hard goals".
#[test]
fn goals_that_are_named_are_all_hard_ones_or_the_check_is_skipped() {
    const HARD: [&str; 6] = [
        "RackAwareGoal",
        "ReplicaCapacityGoal",
        "DiskCapacityGoal",
        "NetworkInboundCapacityGoal",
        "NetworkOutboundCapacityGoal",
        "CpuCapacityGoal",
    ];
    let mut named = 0;
    for KafkaRebalance { metadata, spec, .. } in all("KafkaRebalance") {
        let Some(goals) = &spec.goals else { continue };
        let complete = HARD.iter().all(|hard| goals.iter().any(|goal| goal == hard));
        assert!(complete || spec.skip_hard_goal_check == Some(true), "{:?}", metadata.name);
        named += 1;
    }
    assert!(named > 0, "an example names goals");
}

#[test]
fn every_form_is_shown() {
    let mut shown = BTreeSet::new();
    for document in support::examples().into_iter().flat_map(|(_, _, documents)| documents) {
        shown.insert(format!("{} {}", document["apiVersion"].as_str().unwrap(), document["kind"].as_str().unwrap()));
        match document["kind"].as_str().unwrap() {
            "Kafka" => {
                let kafka: Kafka = serde_json::from_value(document).unwrap();
                if kafka.spec.kafka.iter().any(|kafka| kafka.replicas.is_some()) {
                    shown.insert("replicas in the Kafka".into());
                }
                for entry in kafka.spec.auto_rebalances() {
                    let form = match (&entry.template, &entry.config) {
                        (Some(_), _) => "template",
                        (None, Some(_)) => "config",
                        (None, None) => "defaults",
                    };
                    shown.insert(format!("auto {}", entry.mode));
                    shown.insert(format!("auto {form}"));
                }
            }
            "KafkaRebalance" => {
                let rebalance: KafkaRebalance = serde_json::from_value(document).unwrap();
                if annotations::is_template(rebalance.annotations()) {
                    let old = rebalance.annotations().contains_key(annotations::REBALANCE);
                    shown.insert(format!("{} mark of a template", if old { "old" } else { "new" }));
                } else {
                    shown.insert(format!("mode {}", rebalance.spec.mode));
                }
                if rebalance.spec.template.is_some() {
                    shown.insert("rebalance from a template".into());
                }
            }
            _ => {}
        }
    }
    for form in [
        "kafka.strimzi.io/v1 Kafka",
        "kafka.strimzi.io/v1 KafkaNodePool",
        "kafka.strimzi.io/v1 KafkaRebalance",
        "kafka.strimzi.io/v1beta2 Kafka",
        "kafka.strimzi.io/v1beta2 KafkaRebalance",
        "replicas in the Kafka",
        "auto add-brokers",
        "auto remove-brokers",
        "auto imbalance",
        "auto template",
        "auto config",
        "auto defaults",
        "old mark of a template",
        "new mark of a template",
        "mode full",
        "mode add-brokers",
        "mode remove-brokers",
        "mode remove-disks",
        "rebalance from a template",
    ] {
        assert!(shown.contains(form), "no example shows: {form}");
    }
}
