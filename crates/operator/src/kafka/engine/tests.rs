use std::collections::BTreeMap;

use evenkeel_api::annotations;
use expect_test::expect_file;
use serde_json::{Value, json};

use super::*;
use crate::kafka::{
    properties::{self as files, Properties},
    seen::FurtherUsers,
    testing::{Written, engine_facts, engine_objects, harbour, is_restricted},
};

fn settings(written: &Written) -> Properties {
    let model = written.model();
    properties(&model, model.engine.as_ref().unwrap(), &engine_facts(&model).capacities)
}

fn names<'a>(settings: &'a Properties, key: &str) -> Vec<&'a str> {
    settings[key].split(',').map(|goal| goal.rsplit('.').next().unwrap()).collect()
}

fn imbalanced(written: Written) -> Written {
    written.with("/spec/cruiseControl/autoRebalance", json!([{"mode": "imbalance"}]))
}

#[test]
fn the_files_of_our_engine_are_complete() {
    let written = harbour();
    expect_file!["../../../tests/golden/cruisecontrol.properties"].assert_eq(&files::text(&settings(&written)));
    let capacities = engine_facts(&written.model()).capacities;
    expect_file!["../../../tests/golden/capacity.json"].assert_eq(&capacities.json());
    let imbalance = imbalanced(written);
    expect_file!["../../../tests/golden/cruisecontrol-imbalance.properties"]
        .assert_eq(&files::text(&settings(&imbalance)));
}

#[test]
fn another_image_finishes_its_settings_itself() {
    let foreign = imbalanced(harbour().with("/spec/cruiseControl/image", json!("strimzi/kafka:1")));
    let settings = settings(&foreign);
    for key in [
        "bootstrap.servers",
        "security.protocol",
        "webserver.ssl.enable",
        "capacity.config.file",
        "metric.sampler.class",
    ] {
        assert!(!settings.contains_key(key), "{key}");
    }
    assert!(!settings.contains_key("anomaly.notifier.class"), "its notifier is not there: the operator asks instead");
    let objects = engine_objects(&foreign.model());
    assert!(objects.role.is_none() && objects.violation_map.is_some());
    let deployment = serde_json::to_value(objects.deployment).unwrap();
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["command"], json!(["/opt/cruise-control/cruise_control_run.sh"]));
    assert_eq!(container["env"][1]["value"], "harbour-kafka-bootstrap:9091");
    assert_eq!(deployment["spec"]["strategy"]["type"], "RollingUpdate");
    assert_eq!(deployment["spec"]["template"]["spec"]["automountServiceAccountToken"], false);
    // Unless it says that it is ours after all.
    let ours = foreign.with("/spec/cruiseControl/config/evenkeel.engine", json!("true"));
    assert!(ours.model().engine.unwrap().ours);
}

#[test]
fn our_deployment_is_recreated_and_reads_its_files() {
    let objects = engine_objects(&harbour().model());
    let deployment = serde_json::to_value(objects.deployment).unwrap();
    expect_file!["../../../tests/golden/engine-deployment.json"]
        .assert_eq(&(serde_json::to_string_pretty(&deployment).unwrap() + "\n"));
    assert!(objects.role.is_none() && objects.violation_map.is_none());
    let pod = &deployment["spec"]["template"]["spec"];
    assert!(is_restricted(pod), "{pod}");
    assert_eq!(pod["containers"][0]["securityContext"]["readOnlyRootFilesystem"], true);
}

#[test]
fn imbalance_brings_a_map_a_narrow_role_and_a_token() {
    let objects = engine_objects(&imbalanced(harbour()).model());
    let map = objects.violation_map.unwrap();
    assert_eq!(map.metadata.name.as_deref(), Some("harbour-goal-violation-map"));
    assert_eq!(map.metadata.owner_references.unwrap()[0].kind, "Kafka");
    let (role, _) = objects.role.unwrap();
    let rule = &role.rules.unwrap()[0];
    assert_eq!(rule.resource_names.as_deref(), Some(&["harbour-goal-violation-map".to_owned()][..]));
    assert_eq!(rule.verbs, ["get", "update"]);
    let deployment = serde_json::to_value(objects.deployment).unwrap();
    assert_eq!(deployment["spec"]["template"]["spec"]["automountServiceAccountToken"], true);
    let overridden =
        imbalanced(harbour()).with("/spec/cruiseControl/config/anomaly.notifier.class", json!("my.Notifier"));
    assert!(settings(&overridden)["anomaly.notifier.class"].ends_with(".StrimziCruiseControlNotifier"));
}

#[test]
fn goals_about_the_network_need_to_know_the_network() {
    // Differing inbound capacities of the brokers: one goal cannot be.
    let found = settings(&harbour());
    assert!(!names(&found, "default.goals").contains(&"LeaderBytesInDistributionGoal"));
    assert!(names(&found, "default.goals").contains(&"NetworkInboundCapacityGoal"));
    assert_eq!((names(&found, "goals").len(), names(&found, "hard.goals").len()), (17, 6));
    // Stated for one broker only.
    let some = harbour().with("/spec/cruiseControl/brokerCapacity/inboundNetwork", json!(null));
    let found = settings(&some);
    assert!(!names(&found, "default.goals").contains(&"NetworkInboundCapacityGoal"));
    assert!(!names(&found, "hard.goals").contains(&"NetworkInboundCapacityGoal"));
    assert!(names(&found, "hard.goals").contains(&"NetworkOutboundCapacityGoal"));
    // Not at all.
    let none = harbour().with("/spec/cruiseControl/brokerCapacity", json!(null));
    assert_eq!(names(&settings(&none), "default.goals").len(), 17 - 6);
}

#[test]
fn goals_that_a_user_names_hold_together() {
    let few = harbour().with("/spec/cruiseControl/config/default.goals", json!("a.RackAwareGoal,ReplicaCapacityGoal"));
    let found = settings(&few);
    assert_eq!(names(&found, "hard.goals"), ["RackAwareGoal", "ReplicaCapacityGoal"]);
    assert_eq!(found["anomaly.detection.goals"], "a.RackAwareGoal,ReplicaCapacityGoal");
    assert!(!settings(&harbour()).contains_key("anomaly.detection.goals"), "the engine's own are fine");
}

#[test]
fn settings_of_the_operator_never_reach_the_engine() {
    let written =
        imbalanced(harbour()).with("/spec/cruiseControl/config/evenkeel.notifier.webhook", json!("https://x"));
    let settings = settings(&written);
    let own: Vec<&String> = settings.keys().filter(|key| key.starts_with("evenkeel.")).collect();
    assert_eq!(own, ["evenkeel.cluster.name", "evenkeel.cluster.namespace"], "these say whose map it is");
    assert!(written.warned().iter().any(|text| text.contains("evenkeel.notifier.webhook")));
    // So changing one rolls nothing.
    let other = harbour().with("/spec/cruiseControl/config/evenkeel.auto.rebalance.preempt", json!(false));
    assert_eq!(changed(&harbour(), &other), [""; 0]);
}

fn changed(before: &Written, after: &Written) -> Vec<String> {
    let hashes = |written: &Written| -> BTreeMap<String, String> {
        let deployment = engine_objects(&written.model()).deployment;
        deployment.spec.unwrap().template.metadata.unwrap().annotations.unwrap()
    };
    let (before, after) = (hashes(before), hashes(after));
    before.into_iter().filter(|(key, value)| after.get(key) != Some(value)).map(|(key, _)| key).collect()
}

#[test]
fn the_engine_rolls_exactly_when_it_should() {
    let base = harbour();
    let (configuration, capacity) = (annotations::CONFIGURATION_HASH, annotations::CAPACITY_CONFIGURATION_HASH);
    for (what, after, expected) in [
        ("brokers", base.clone().with_brokers("/spec/replicas", json!(4)), &[capacity][..]),
        ("disks", base.clone().with_brokers("/spec/storage/volumes/0/size", json!("600Gi")), &[capacity]),
        ("cores", base.clone().with_brokers("/spec/resources/requests/cpu", json!("2")), &[capacity]),
        ("override", base.clone().with("/spec/cruiseControl/brokerCapacity/overrides/0/cpu", json!("3")), &[capacity]),
        (
            "network no longer known",
            base.clone().with("/spec/cruiseControl/brokerCapacity/inboundNetwork", json!(null)),
            &[capacity, configuration],
        ),
        (
            "setting",
            base.clone().with("/spec/cruiseControl/config/num.partition.metrics.windows", json!(6)),
            &[configuration],
        ),
        ("imbalance", imbalanced(base.clone()), &[configuration]),
        ("Kafka's settings", base.clone().with("/spec/kafka/config/num.io.threads", json!(9)), &[]),
        (
            "copies of samples",
            base.clone().with("/spec/kafka/config/default.replication.factor", json!(2)),
            &[configuration],
        ),
    ] {
        assert_eq!(changed(&base, &after), expected, "{what}");
    }
    // Users and certificates are facts.
    let model = base.model();
    let wanted = model.engine.as_ref().unwrap();
    let annotations_of = |facts: &Facts| {
        objects(&model, wanted, facts).deployment.spec.unwrap().template.metadata.unwrap().annotations.unwrap()
    };
    let facts = engine_facts(&model);
    let other = Facts {
        api: api_secret(None, &FurtherUsers::Listed("a: b, USER".to_owned()), || [7; 16]).unwrap(),
        ..facts.clone()
    };
    let (before, after) = (annotations_of(&facts), annotations_of(&other));
    let differing: Vec<&String> = before.keys().filter(|key| before[*key] != after[*key]).collect();
    assert_eq!(differing, [annotations::AUTH_HASH]);
}

#[test]
fn capacities_have_their_order_of_precedence() {
    let cpu = |written: &Written, broker: i32| engine_facts(&written.model()).capacities.brokers[&broker].cpu;
    let base = harbour();
    assert_eq!((cpu(&base, 0), cpu(&base, 1)), (4_000, 1_500));
    let general = base.clone().with("/spec/cruiseControl/brokerCapacity/cpu", json!("2.5"));
    assert_eq!((cpu(&general, 0), cpu(&general, 1)), (4_000, 2_500));
    let limits = base.clone().with_brokers("/spec/resources", json!({"limits": {"cpu": "750m"}}));
    assert_eq!(cpu(&limits, 1), 750);
    assert_eq!(cpu(&base.clone().with_brokers("/spec/resources", json!(null)), 1), 1_000);

    let single = base.clone().with_brokers("/spec/storage", json!({"type": "persistent-claim", "size": "100Gi"}));
    assert_eq!(engine_facts(&single.model()).capacities.brokers[&1].disk, json!("102400"));
    let ephemeral = base.with_brokers("/spec/storage", json!({"type": "ephemeral"}));
    assert_eq!(engine_facts(&ephemeral.model()).capacities.brokers[&1].disk, json!("100000"));
}

#[test]
fn what_is_wrong_with_capacities_is_said_or_warned_of() {
    let of = |capacity: Value| {
        let model = harbour().with("/spec/cruiseControl/brokerCapacity", capacity).model();
        capacities(&model, model.engine.as_ref().unwrap())
    };
    let problems =
        of(json!({"cpu": "lots", "overrides": [{"brokers": [0], "outboundNetwork": "10Mbit"}]})).unwrap_err();
    let said: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        said,
        [
            "spec.cruiseControl.brokerCapacity.cpu: `lots` is no capacity: write cores such as `1.5` or `1500m`",
            "spec.cruiseControl.brokerCapacity.overrides[0].outboundNetwork: `10Mbit` is no capacity: write a rate such as \
         `10000KiB/s`",
        ]
    );
    let found = of(json!({"overrides": [{"brokers": [0, 100], "cpu": "2"}, {"brokers": [0], "cpu": "3"}]})).unwrap();
    assert_eq!((found.remarks.len(), found.brokers[&0].cpu), (2, 2_000));
}
