//! What the types make of resources that people and operators have written.

use evenkeel_api::{
    Condition, Kafka, KafkaNodePool, KafkaRebalance, Reason, StrimziPodSet, conditions,
    kafka::{AutoRebalanceMode, AutoRebalanceState},
    rebalance::{RebalanceMode, RebalanceState},
    unknown_fields,
};
use serde::de::DeserializeOwned;
use serde_json::json;

fn read<T: DeserializeOwned>(yaml: &str) -> T {
    serde_saphyr::from_str(yaml).unwrap()
}

#[test]
fn unknown_fields_are_named_by_their_path_and_survive() {
    let kafka: Kafka = read(
        "
        apiVersion: kafka.strimzi.io/v1
        kind: Kafka
        metadata: {name: k}
        spec:
          entityOperator: {topicOperator: {}}
          kafka:
            config: {any.setting: true}
            template: {pod: {anything: goes}}
            logging: {type: inline}
            resources: {request: {cpu: 1}}
            listeners:
              - {name: plain, port: 9092, type: internal, tls: false}
              - {name: tls, port: 9093, type: internal, tls: true, colour: red}
          cruiseControl:
            autoRebalance:
              - {mode: imbalance, template: {name: t, namespace: elsewhere}}
        ",
    );
    assert_eq!(
        unknown_fields(&kafka),
        [
            "spec.cruiseControl.autoRebalance[0].template.namespace",
            "spec.entityOperator",
            "spec.kafka.listeners[1].colour",
            "spec.kafka.logging",
            "spec.kafka.resources.request",
        ]
    );
    let written = serde_json::to_value(&kafka).unwrap();
    assert_eq!(written["spec"]["entityOperator"], json!({"topicOperator": {}}));
    assert_eq!(written["spec"]["kafka"]["listeners"][1]["colour"], "red");
}

#[test]
fn a_misspelt_field_of_a_rebalance_is_named() {
    let rebalance: KafkaRebalance = read(
        "
        apiVersion: kafka.strimzi.io/v1
        kind: KafkaRebalance
        metadata: {name: r}
        spec: {goal: [RackAwareGoal], moveReplicasOffVolumes: [{brokerId: 0, volumeIds: [1], volumeId: 2}]}
        ",
    );
    assert_eq!(unknown_fields(&rebalance), ["spec.goal", "spec.moveReplicasOffVolumes[0].volumeId"]);
}

#[test]
fn config_is_another_word_for_the_name_of_the_template() {
    let kafka: Kafka = read(
        "
        apiVersion: kafka.strimzi.io/v1beta2
        kind: Kafka
        metadata: {name: k}
        spec:
          kafka:
          cruiseControl:
            autoRebalance:
              - {mode: add-brokers, config: old}
              - {mode: remove-brokers, config: old, template: {name: new}}
        ",
    );
    let template = |mode| kafka.spec.auto_rebalance(mode).and_then(|entry| entry.template_name());
    assert_eq!(template(AutoRebalanceMode::AddBrokers), Some("old"));
    assert_eq!(template(AutoRebalanceMode::RemoveBrokers), Some("new"));
    assert_eq!(kafka.spec.auto_rebalance(AutoRebalanceMode::Imbalance), None);
    let deprecated: Vec<_> = kafka.spec.deprecated_fields();
    assert_eq!(
        deprecated,
        [
            ("spec.cruiseControl.autoRebalance[0].config".to_string(), "template.name"),
            ("spec.cruiseControl.autoRebalance[1].config".to_string(), "template.name"),
        ]
    );
}

#[test]
fn a_rebalance_without_a_mode_is_a_full_one() {
    let rebalance: KafkaRebalance =
        read("{apiVersion: kafka.strimzi.io/v1, kind: KafkaRebalance, metadata: {name: r}, spec: {}}");
    assert_eq!((rebalance.spec.mode, rebalance.state()), (RebalanceMode::Full, RebalanceState::New));
}

/// Others' definitions bound no number and require no spec. What they admit has to be readable: a list with one resource that
/// is not cannot be read at all.
#[test]
fn whatever_any_definition_admits_can_be_read() {
    let beyond = 3_000_000_000_i64;
    let object = |kind: &str, spec: serde_json::Value, status: serde_json::Value| {
        let metadata = json!({"name": "x"});
        json!({"apiVersion": "kafka.strimzi.io/v1", "kind": kind, "metadata": metadata, "spec": spec, "status": status})
    };
    let entries = json!([{"brokerId": beyond, "volumeIds": [beyond]}, {}]);
    let spec = json!({"brokers": [1, beyond, -beyond], "concurrentLeaderMovements": beyond,
        "concurrentPartitionMovementsPerBroker": beyond, "concurrentIntraBrokerPartitionMovements": beyond});
    let rebalance: KafkaRebalance =
        serde_json::from_value(object("KafkaRebalance", spec, json!({"progress": {}, "conditions": [{}]}))).unwrap();
    assert_eq!(rebalance.spec.brokers, Some(vec![1, -1, -1]), "what is no id is not taken for one");
    assert_eq!(rebalance.spec.concurrent_leader_movements, Some(-1), "nor for a number to be passed on");
    let disks: KafkaRebalance =
        serde_json::from_value(object("KafkaRebalance", json!({"moveReplicasOffVolumes": entries}), json!(null)))
            .unwrap();
    let entries = disks.spec.move_replicas_off_volumes.unwrap();
    assert_eq!((entries[0].broker_id, entries[0].volume_ids.as_slice(), entries[1].broker_id), (-1, &[-1][..], -1));

    let storage = json!({"type": "jbod", "volumes": [{"id": beyond, "type": "ephemeral"}]});
    let spec = json!({
        "kafka": {"replicas": beyond, "storage": storage,
            "listeners": [{"name": "a", "port": beyond, "type": "internal", "tls": false}]},
        "cruiseControl": {"brokerCapacity": {"overrides": [{"brokers": [beyond]}]}},
        "clusterCa": {"validityDays": beyond, "renewalDays": beyond},
    });
    let status = json!({
        "listeners": [{"addresses": [{"host": "h", "port": beyond}]}], "kafkaNodePools": [{}],
        "autoRebalance": {"modes": [{"mode": "add-brokers", "brokers": [3, beyond]}]},
    });
    let kafka: Kafka = serde_json::from_value(object("Kafka", spec, status)).unwrap();
    let cluster = kafka.spec.kafka.unwrap();
    assert_eq!(cluster.replicas, Some(i32::MAX), "too many are not few: none of the brokers there are goes for it");
    assert_eq!(cluster.storage.unwrap().volumes.unwrap()[0].id, Some(-1));
    assert_eq!(kafka.status.unwrap().auto_rebalance.unwrap().modes[0].brokers, [3]);

    let spec = json!({"replicas": beyond, "roles": ["broker"], "storage": {"type": "ephemeral"}});
    let status = json!({"replicas": beyond, "nodeIds": [0, beyond]});
    let pool: KafkaNodePool = serde_json::from_value(object("KafkaNodePool", spec, status)).unwrap();
    assert_eq!((pool.spec.replicas, pool.status.unwrap().node_ids), (i32::MAX, vec![0]));
    let status = json!({"pods": beyond, "readyPods": beyond, "currentPods": beyond});
    let set = object("StrimziPodSet", json!({"selector": {}, "pods": []}), status);
    assert_eq!(serde_json::from_value::<StrimziPodSet>(set).unwrap().status.unwrap().pods, i32::MAX);

    let bare = json!({"apiVersion": "kafka.strimzi.io/v1", "kind": "Kafka", "metadata": {"name": "x"}});
    assert_eq!(serde_json::from_value::<Kafka>(bare.clone()).unwrap().spec, Default::default());
    assert_eq!(serde_json::from_value::<KafkaRebalance>(bare).unwrap().spec, Default::default());
}

#[test]
fn modes_are_printed_as_they_are_written() {
    for mode in
        [RebalanceMode::Full, RebalanceMode::AddBrokers, RebalanceMode::RemoveBrokers, RebalanceMode::RemoveDisks]
    {
        assert_eq!(json!(mode), mode.to_string());
    }
    for mode in [AutoRebalanceMode::AddBrokers, AutoRebalanceMode::RemoveBrokers, AutoRebalanceMode::Imbalance] {
        assert_eq!(json!(mode), mode.to_string());
    }
}

#[test]
fn the_first_state_condition_is_the_state() {
    let mut rebalance = KafkaRebalance::new("r", Default::default());
    let status = rebalance.status.get_or_insert_default();
    status.conditions = vec![Condition::warning(Reason::UnknownFields, "spec.goal")];
    assert_eq!(rebalance.state(), RebalanceState::New);
    for state in RebalanceState::ALL {
        let status = rebalance.status.get_or_insert_default();
        status.conditions = vec![
            Condition::warning(Reason::UnknownFields, "spec.goal"),
            Condition::state(state.as_str()),
            Condition::state(conditions::READY),
        ];
        assert_eq!(rebalance.state(), state);
    }
}

#[test]
fn a_running_rebalance_is_read_with_its_progress_and_result() {
    let text = r#"
        apiVersion: kafka.strimzi.io/v1beta2
        kind: KafkaRebalance
        metadata: {name: r, finalizers: [strimzi.io/auto-rebalancing]}
        spec: {mode: add-brokers, brokers: [3, 4]}
        status:
          conditions:
            - {type: Rebalancing, status: "True", lastTransitionTime: "2025-03-01T10:00:00.123456789Z"}
            - {type: Warning, status: "True", reason: CruiseControlRestException, message: no answer}
          observedGeneration: 1
          sessionId: 5b4b-11
          progress: {rebalanceProgressConfigMap: r}
          optimizationResult: {dataToMoveMB: 12, onDemandBalancednessScoreBefore: 89.5, excludedTopics: []}
    "#;
    let rebalance: KafkaRebalance = read(text);
    assert_eq!(rebalance.state(), RebalanceState::Rebalancing);
    let written = serde_json::to_value(&rebalance).unwrap();
    let original: serde_json::Value = read(text);
    assert_eq!(written["status"], original["status"]);
}

#[test]
fn the_status_of_automatic_rebalancing_is_read_and_written_back() {
    let text = r#"
        apiVersion: kafka.strimzi.io/v1beta2
        kind: Kafka
        metadata: {name: k}
        spec: {}
        status:
          autoRebalance:
            state: RebalanceOnScaleDown
            lastTransitionTime: "2025-09-22T16:04:00Z"
            modes: [{mode: remove-brokers, brokers: [5]}, {mode: imbalance}]
          clusterId: abc
          kafkaNodePools: [{name: brokers}]
          listeners: [{name: plain, addresses: [{host: h, port: 9092}], bootstrapServers: "h:9092"}]
    "#;
    let kafka: Kafka = read(text);
    let auto_rebalance = kafka.status.as_ref().unwrap().auto_rebalance.as_ref().unwrap();
    assert_eq!(auto_rebalance.state, AutoRebalanceState::RebalanceOnScaleDown);
    let original: serde_json::Value = read(text);
    assert_eq!(serde_json::to_value(&kafka.status).unwrap(), original["status"]);
}

#[test]
fn the_pods_of_a_pod_set_are_kept_as_they_are() {
    let text = "
        apiVersion: core.strimzi.io/v1
        kind: StrimziPodSet
        metadata: {name: s}
        spec:
          selector: {matchLabels: {strimzi.io/cluster: k}}
          pods: [{metadata: {name: k-brokers-0}, spec: {containers: [], somethingNew: 1}}]
    ";
    let set: StrimziPodSet = read(text);
    let original: serde_json::Value = read(text);
    assert_eq!(serde_json::to_value(&set.spec).unwrap(), original["spec"]);
}

#[test]
fn quantities_become_kubernetes_own() {
    let kafka: Kafka = read(
        "
        apiVersion: kafka.strimzi.io/v1
        kind: Kafka
        metadata: {name: k}
        spec: {kafka: {resources: {requests: {cpu: 2, memory: 8589934592}, limits: {cpu: 1500m}, claims: [{name: gpu}]}}}
        ",
    );
    let requirements = kafka.spec.kafka.unwrap().resources.unwrap().to_requirements();
    assert_eq!(requirements.requests.unwrap()["memory"].0, "8589934592");
    assert_eq!(requirements.limits.unwrap()["cpu"].0, "1500m");
    assert_eq!(requirements.claims.unwrap()[0].name, "gpu");
}
