//! The right to see racks stands in no namespace and has no owner. It goes with its Kafka all the same, whatever goes first.

use std::future::ready;

use evenkeel_api::{Kafka, KafkaNodePool, StrimziPodSet};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::api::DeleteParams;
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use crate::scene::{begun, is_ready, operator, pool};
use crate::stage::{CLUSTER, NAMESPACE, Stage, a_while, create, until};

const OURS: &str = "strimzi-kafka-my-cluster-kafka-init";
const THEIRS: &str = "strimzi-kafka-theirs-kafka-init";

fn with_racks() -> Value {
    json!({"kafka": {"rack": {"topologyKey": "topology.kubernetes.io/zone"}}})
}

fn pools() -> Vec<Value> {
    let controllers = pool("controllers", 3, &["controller"], json!({"strimzi.io/next-node-ids": "[100-199]"}));
    vec![controllers, pool("brokers", 3, &["broker"], json!({}))]
}

async fn bindings(stage: &Stage) -> Vec<String> {
    let all = Api::<ClusterRoleBinding>::all(stage.client.clone());
    all.list(&Default::default()).await.unwrap().items.iter().map(ResourceExt::name_any).collect()
}

/// Another operator's, of a Kafka that is gone: what becomes of it is not our affair.
async fn another_one(stage: &Stage) {
    let binding = json!({
        "metadata": {"name": THEIRS, "labels": {"strimzi.io/cluster": "theirs"}},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "strimzi-kafka-broker"},
        "subjects": [{"kind": "ServiceAccount", "name": "theirs-kafka", "namespace": NAMESPACE}],
    });
    create(&Api::<ClusterRoleBinding>::all(stage.client.clone()), binding).await;
}

async fn delete_kafka(stage: &Stage) {
    stage.api::<Kafka>().delete(CLUSTER, &DeleteParams::default()).await.unwrap();
}

async fn delete_pools(stage: &Stage) {
    for name in ["brokers", "controllers"] {
        stage.api::<KafkaNodePool>().delete(name, &DeleteParams::default()).await.unwrap();
    }
    let sets = stage.api::<StrimziPodSet>();
    until("their pod sets are gone", || async { sets.list(&Default::default()).await.unwrap().items.is_empty() }).await;
}

#[tokio::test(start_paused = true)]
async fn it_goes_with_a_kafka_without_node_pools() {
    let stage = Stage::new().await;
    another_one(&stage).await;
    let mut spec = with_racks();
    spec["kafka"]["replicas"] = json!(3);
    spec["kafka"]["storage"] = json!({"type": "ephemeral"});
    begun(&stage, spec, Vec::new()).await;
    until("it is ready", || is_ready(&stage)).await;
    assert_eq!(bindings(&stage).await, [OURS, THEIRS]);
    delete_kafka(&stage).await;
    until("it is gone", || async { bindings(&stage).await == [THEIRS] }).await;
}

#[tokio::test(start_paused = true)]
async fn it_goes_with_a_kafka_whose_pools_went_before() {
    let stage = Stage::new().await;
    begun(&stage, with_racks(), pools()).await;
    until("it is ready", || is_ready(&stage)).await;
    delete_pools(&stage).await;
    a_while().await;
    assert_eq!(bindings(&stage).await, [OURS], "the Kafka is still there");
    delete_kafka(&stage).await;
    until("it is gone", || async { bindings(&stage).await.is_empty() }).await;
}

#[tokio::test(start_paused = true)]
async fn it_goes_with_its_namespace() {
    let stage = Stage::new().await;
    begun(&stage, with_racks(), pools()).await;
    until("it is ready", || is_ready(&stage)).await;
    let namespaces = Api::<Namespace>::all(stage.client.clone());
    namespaces.delete(NAMESPACE, &DeleteParams::default()).await.unwrap();
    until("nothing is left", || async { namespaces.get_opt(NAMESPACE).await.unwrap().is_none() }).await;
    until("it is gone", || async { bindings(&stage).await.is_empty() }).await;
}

#[tokio::test(start_paused = true)]
async fn it_goes_when_the_operator_is_back_that_was_away_when_its_kafka_went() {
    let stage = Stage::new().await;
    another_one(&stage).await;
    let (machines, first) = begun(&stage, with_racks(), pools()).await;
    until("it is ready", || is_ready(&stage)).await;
    first.abort();
    until("it has ended", || ready(first.is_finished())).await;
    delete_pools(&stage).await;
    delete_kafka(&stage).await;
    a_while().await;
    assert_eq!(bindings(&stage).await, [OURS, THEIRS], "nobody was there to see it");
    let _next = tokio::spawn(operator(stage.context.clone(), machines));
    until("it is gone", || async { bindings(&stage).await == [THEIRS] }).await;
}

/// A round that was under way when its Kafka went binds once more.
#[tokio::test(start_paused = true)]
async fn it_goes_although_it_was_made_once_more_by_late_hands() {
    let stage = Stage::new().await;
    begun(&stage, with_racks(), pools()).await;
    until("it is ready", || is_ready(&stage)).await;
    let all = Api::<ClusterRoleBinding>::all(stage.client.clone());
    let made = serde_json::to_value(all.get(OURS).await.unwrap()).unwrap();
    delete_kafka(&stage).await;
    until("it is gone", || async { bindings(&stage).await.is_empty() }).await;
    let (old, role, subjects) = (&made["metadata"], &made["roleRef"], &made["subjects"]);
    let metadata = json!({"name": OURS, "labels": old["labels"], "annotations": old["annotations"]});
    create(&all, json!({"metadata": metadata, "roleRef": role, "subjects": subjects})).await;
    until("it is gone again", || async { bindings(&stage).await.is_empty() }).await;
}
