//! Whatever is deleted takes along what was made for it, and nothing else.

use std::time::Duration;

use evenkeel_api::{Kafka, KafkaNodePool, KafkaRebalance, StrimziPodSet};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, PersistentVolumeClaim, Pod, Secret, Service, ServiceAccount};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::rbac::v1::{ClusterRoleBinding, Role, RoleBinding};
use kube::api::DeleteParams;
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::scene::{cluster, cluster_of, is_ready, lasting, names, pool, scale, usual};
use crate::stage::{CLUSTER, NAMESPACE, Stage, a_while, create, patch, until};

/// All that the operator makes in a namespace, and what becomes of it.
async fn everything(stage: &Stage) -> Vec<String> {
    [
        names::<StrimziPodSet>(stage).await,
        names::<Pod>(stage).await,
        names::<Deployment>(stage).await,
        names::<Service>(stage).await,
        names::<ServiceAccount>(stage).await,
        names::<Secret>(stage).await,
        names::<ConfigMap>(stage).await,
        names::<PodDisruptionBudget>(stage).await,
        names::<NetworkPolicy>(stage).await,
        names::<Role>(stage).await,
        names::<RoleBinding>(stage).await,
        names::<PersistentVolumeClaim>(stage).await,
        names::<KafkaRebalance>(stage).await,
    ]
    .concat()
}

async fn bindings(stage: &Stage) -> usize {
    let all = Api::<ClusterRoleBinding>::all(stage.client.clone());
    all.list(&Default::default()).await.unwrap().items.len()
}

fn claimed(name: &str, roles: &[&str], notes: Value, goes: bool) -> Value {
    let mut pool = pool(name, 3, roles, notes);
    pool["spec"]["storage"] = json!({"type": "persistent-claim", "size": "1Gi", "deleteClaim": goes});
    pool
}

#[tokio::test(start_paused = true)]
async fn everything_goes_with_the_kafka_but_pools_and_claims_that_are_to_stay() {
    let stage = Stage::new().await;
    let before = everything(&stage).await;
    let mut spec = usual();
    spec["cruiseControl"]["autoRebalance"] = json!([{"mode": "add-brokers"}, {"mode": "imbalance"}]);
    spec["kafka"]["rack"] = json!({"topologyKey": "topology.kubernetes.io/zone"});
    let pools = vec![
        claimed("controllers", &["controller"], json!({"strimzi.io/next-node-ids": "[100-199]"}), true),
        claimed("brokers", &["broker"], json!({}), false),
    ];
    cluster_of(&stage, spec, pools).await;
    until("it is ready", || is_ready(&stage)).await;
    scale(&stage, 4).await;
    until("a rebalance was made", || async {
        stage.api::<KafkaRebalance>().get_opt("my-cluster-auto-rebalancing-add-brokers").await.unwrap().is_some()
    })
    .await;
    assert_eq!(bindings(&stage).await, 1);
    stage.api::<Kafka>().delete(CLUSTER, &DeleteParams::default()).await.unwrap();
    let claims: Vec<String> = (0..4).map(|id| format!("PersistentVolumeClaim data-my-cluster-brokers-{id}")).collect();
    let expected: Vec<String> = before.into_iter().chain(claims).collect();
    until("only what is to stay is left", || async { everything(&stage).await == expected }).await;
    assert_eq!(bindings(&stage).await, 0);
    assert_eq!(stage.api::<KafkaNodePool>().list(&Default::default()).await.unwrap().items.len(), 2);

    // Made again, it finds its data: it is the same cluster.
    let known = stage.api::<KafkaNodePool>().get("brokers").await.unwrap().status.unwrap().cluster_id;
    create(&stage.api::<Kafka>(), json!({"metadata": {"name": CLUSTER}, "spec": lasting(json!({"kafka": {}}))})).await;
    until("it is ready", || is_ready(&stage)).await;
    assert_eq!(stage.api::<Kafka>().get(CLUSTER).await.unwrap().status.unwrap().cluster_id, known);
}

/// Another operator beside ours keeps its pod sets in the same form. Its Kafka is gone, its node pool is not.
#[tokio::test(start_paused = true)]
async fn what_another_operator_left_of_its_cluster_stays_as_it_is() {
    let stage = Stage::new().await;
    cluster(&stage, usual()).await;
    until("it is ready", || is_ready(&stage)).await;
    let labels =
        json!({"strimzi.io/cluster": "theirs", "strimzi.io/pool-name": "p", "strimzi.io/pod-name": "theirs-p-0"});
    let spec = json!({"replicas": 1, "roles": ["broker"], "storage": {"type": "ephemeral"}});
    let pool = json!({"metadata": {"name": "p", "labels": labels}, "spec": spec});
    let pool = create(&stage.api::<KafkaNodePool>(), pool).await;
    let owner = json!({
        "apiVersion": "kafka.strimzi.io/v1", "kind": "KafkaNodePool", "name": "p", "uid": pool.uid(), "controller": false,
    });
    let metadata = |name: &str| json!({"name": name, "labels": labels, "ownerReferences": [owner]});
    for kind in ["ConfigMap", "Secret"] {
        let object = json!({"metadata": metadata("theirs-p-0")});
        match kind {
            "ConfigMap" => drop(create(&stage.api::<ConfigMap>(), object).await),
            _ => drop(create(&stage.api::<Secret>(), object).await),
        }
    }
    let mut claim = json!({"metadata": metadata("data-theirs-p-0"), "spec": {"accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}}}});
    claim["metadata"]["annotations"] = json!({"strimzi.io/delete-claim": "true"});
    create(&stage.api::<PersistentVolumeClaim>(), claim).await;
    let container = json!({"name": "kafka", "image": "theirs"});
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "theirs-p-0", "labels": labels},
        "spec": {"containers": [container]}});
    let set = json!({"metadata": metadata("theirs-p"),
        "spec": {"selector": {"matchLabels": {"strimzi.io/pool-name": "p"}}, "pods": [pod]}});
    create(&stage.api::<StrimziPodSet>(), set).await;
    let theirs =
        async || -> Vec<String> { everything(&stage).await.into_iter().filter(|it| it.contains("theirs")).collect() };
    a_while().await;
    let before = theirs().await;
    assert!(before.len() >= 4, "{before:?}");
    // Ours goes, which is cleared up.
    stage.api::<Kafka>().delete(CLUSTER, &DeleteParams::default()).await.unwrap();
    until("ours is gone", || async { !stage.pods().await.iter().any(|pod| pod.starts_with(CLUSTER)) }).await;
    a_while().await;
    assert_eq!(theirs().await, before);
}

#[tokio::test(start_paused = true)]
async fn the_right_to_see_racks_goes_with_the_wish_for_them() {
    let stage = Stage::new().await;
    let mut spec = usual();
    spec["kafka"]["rack"] = json!({"topologyKey": "topology.kubernetes.io/zone"});
    cluster(&stage, spec).await;
    until("it is ready", || is_ready(&stage)).await;
    assert_eq!(bindings(&stage).await, 1);
    patch(&stage.api::<Kafka>(), CLUSTER, json!({"spec": {"kafka": {"rack": null}}})).await;
    until("it is gone", || async { bindings(&stage).await == 0 }).await;
}

#[tokio::test(start_paused = true)]
async fn in_a_namespace_that_goes_nothing_is_made_again_and_everything_goes() {
    // Who empties namespaces is late, and takes its time.
    let stage = Stage::deserted().await;
    let pools = vec![
        claimed("controllers", &["controller"], json!({"strimzi.io/next-node-ids": "[100-199]"}), true),
        claimed("brokers", &["broker"], json!({}), false),
    ];
    cluster_of(&stage, usual(), pools).await;
    until("it is ready", || is_ready(&stage)).await;
    scale(&stage, 4).await;
    until("a rebalance was made", || async {
        stage.api::<KafkaRebalance>().get_opt("my-cluster-auto-rebalancing-add-brokers").await.unwrap().is_some()
    })
    .await;
    let namespaces = Api::<Namespace>::all(stage.client.clone());
    namespaces.delete(NAMESPACE, &DeleteParams::default()).await.unwrap();
    a_while().await;
    stage.writes();
    // Pods are the first to go, and some of what they need.
    for pod in stage.pods().await {
        stage.api::<Pod>().delete(&pod, &DeleteParams::default()).await.unwrap();
    }
    stage.api::<Service>().delete("my-cluster-kafka-brokers", &DeleteParams::default()).await.unwrap();
    sleep(Duration::from_secs(600)).await;
    // What a pod set says of its pods does no harm; anything else would be refused.
    let written: Vec<String> = stage.writes().into_iter().filter(|it| !it.ends_with("/status")).collect();
    assert_eq!(written, [""; 0]);
    assert_eq!(stage.pods().await, [""; 0]);

    stage.settle();
    until("nothing is left", || async { namespaces.get_opt(NAMESPACE).await.unwrap().is_none() }).await;
}
