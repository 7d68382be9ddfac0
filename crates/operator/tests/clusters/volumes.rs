//! A volume that is taken away from nodes that stay.

use evenkeel_api::KafkaNodePool;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::ResourceExt;
use serde_json::{Value, json};

use crate::scene::{change, cluster_of, is_ready, pool};
use crate::stage::{Stage, a_while, patch, until};

fn volume(id: i32, goes: bool) -> Value {
    json!({"id": id, "type": "persistent-claim", "size": "1Gi", "deleteClaim": goes})
}

async fn claims(stage: &Stage) -> Vec<String> {
    let found = stage.api::<PersistentVolumeClaim>().list(&Default::default()).await.unwrap().items;
    found.iter().map(ResourceExt::name_any).collect()
}

/// Names of claims that a pod mounts.
fn mounted(pod: &Pod) -> Vec<String> {
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    volumes.filter_map(|volume| Some(volume.persistent_volume_claim.as_ref()?.claim_name.clone())).collect()
}

#[tokio::test(start_paused = true)]
async fn its_claims_go_if_they_are_to_and_once_nobody_mounts_them() {
    let stage = Stage::new().await;
    let mut brokers = pool("brokers", 3, &["broker"], json!({}));
    let storage = |volumes: Value| json!({"storage": {"type": "jbod", "volumes": volumes}});
    brokers["spec"]["storage"] =
        storage(json!([volume(0, true), volume(1, true), volume(2, false)]))["storage"].clone();
    let controllers = pool("controllers", 3, &["controller"], json!({"strimzi.io/next-node-ids": "[100-199]"}));
    cluster_of(&stage, json!({"kafka": {}}), vec![controllers, brokers]).await;
    until("it is ready", || is_ready(&stage)).await;
    assert_eq!(claims(&stage).await.len(), 9);
    a_while().await;

    let unchecked = json!({"metadata": {"annotations": {"strimzi.io/skip-broker-scaledown-check": "true"}}});
    change(&stage, unchecked).await;
    patch(&stage.api::<KafkaNodePool>(), "brokers", json!({"spec": storage(json!([volume(0, true)]))})).await;
    let expected: Vec<String> = [0, 2]
        .into_iter()
        .flat_map(|volume| (0..3).map(move |id| format!("data-{volume}-my-cluster-brokers-{id}")))
        .collect();
    // No pod is ever seen that mounts a claim which is gone.
    until("they are gone", || async {
        let there = claims(&stage).await;
        let pods = stage.api::<Pod>().list(&Default::default()).await.unwrap().items;
        let missed: Vec<String> = pods.iter().flat_map(mounted).filter(|name| !there.contains(name)).collect();
        assert_eq!(missed, [""; 0]);
        there == expected
    })
    .await;
    until("it is ready", || is_ready(&stage)).await;
    a_while().await;
    assert_eq!(claims(&stage).await, expected);
}
