//! Pod sets: pods come as listed, come back, go when they are no longer listed, and are otherwise left alone.

use evenkeel_api::{Kafka, StrimziPodSet};
use evenkeel_operator::pod_set;
use k8s_openapi::api::core::v1::Pod;
use kube::api::DeleteParams;
use serde_json::{Value, json};

use crate::stage::{CLUSTER, Stage, a_while, create, patch, until};

fn pod(name: &str, revision: &str) -> Value {
    json!({
        "metadata": {"name": name, "labels": {"strimzi.io/kind": "Kafka", "strimzi.io/cluster": CLUSTER,
            "strimzi.io/controller-name": "set"}, "annotations": {"strimzi.io/revision": revision}},
        "spec": {"containers": [{"name": "kafka", "image": "kafka"}]},
    })
}

async fn set(stage: &Stage, pods: Value) {
    create(
        &stage.api::<StrimziPodSet>(),
        json!({
            "metadata": {"name": "set", "labels": {"strimzi.io/kind": "Kafka", "strimzi.io/cluster": CLUSTER},
                "annotations": {"evenkeel.io/applied": "by us"}},
            "spec": {"selector": {"matchLabels": {"strimzi.io/cluster": CLUSTER, "strimzi.io/kind": "Kafka"}}, "pods": pods},
        }),
    )
    .await;
}

async fn started() -> Stage {
    let stage = Stage::new().await;
    create(&stage.api::<Kafka>(), json!({"metadata": {"name": CLUSTER}, "spec": {}})).await;
    tokio::spawn(pod_set::run(stage.context.clone()));
    stage
}

async fn counters(stage: &Stage) -> [i32; 3] {
    let status = stage.api::<StrimziPodSet>().get("set").await.unwrap().status.unwrap_or_default();
    [status.pods, status.ready_pods, status.current_pods]
}

#[tokio::test(start_paused = true)]
async fn pods_come_as_listed_and_are_counted() {
    let stage = started().await;
    set(&stage, json!([pod("a-0", "x"), pod("a-1", "x")])).await;
    until("both are there", || async { stage.pods().await == ["a-0", "a-1"] }).await;
    stage.tell_of("a-0", "Running", true).await;
    until("one is ready", || async { counters(&stage).await == [2, 1, 2] }).await;

    a_while().await;
    stage.writes();
    a_while().await;
    assert_eq!(stage.writes(), [""; 0], "nothing has happened, so nothing is written");

    // One that differs is not restarted: that is the roller's work.
    let changed = json!({"spec": {"pods": [pod("a-0", "y"), pod("a-1", "x")]}});
    patch(&stage.api::<StrimziPodSet>(), "set", changed).await;
    until("it counts as old", || async { counters(&stage).await == [2, 1, 1] }).await;
    let notes = stage.api::<Pod>().get("a-0").await.unwrap().metadata.annotations.unwrap();
    assert_eq!(notes["strimzi.io/revision"], "x");
}

#[tokio::test(start_paused = true)]
async fn pods_that_end_or_vanish_come_back_and_others_go() {
    let stage = started().await;
    set(&stage, json!([pod("a-0", "x"), pod("a-1", "x"), pod("a-2", "x")])).await;
    until("all are there", || async { stage.pods().await.len() == 3 }).await;
    let pods = stage.api::<Pod>();
    let uid = async |name: &str| pods.get_opt(name).await.unwrap().and_then(|pod| pod.metadata.uid);
    let before = [uid("a-0").await, uid("a-1").await, uid("a-2").await];
    stage.tell_of("a-0", "Failed", false).await;
    stage.tell_of("a-1", "Succeeded", false).await;
    pods.delete("a-2", &DeleteParams::default()).await.unwrap();
    until("all were made anew", || async {
        let now = [uid("a-0").await, uid("a-1").await, uid("a-2").await];
        now.iter().zip(&before).all(|(now, before)| now.is_some() && now != before)
    })
    .await;

    patch(&stage.api::<StrimziPodSet>(), "set", json!({"spec": {"pods": [pod("a-1", "x")]}})).await;
    until("only what is listed stays", || async { stage.pods().await == ["a-1"] }).await;
    until("and is counted", || async { counters(&stage).await[0] == 1 }).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_there_already_is_taken_over() {
    let stage = started().await;
    create(&stage.api::<Pod>(), pod("a-0", "x")).await;
    set(&stage, json!([pod("a-0", "x")])).await;
    until("it has an owner", || async {
        let owners = stage.api::<Pod>().get("a-0").await.unwrap().metadata.owner_references;
        owners.is_some_and(|owners| owners[0].name == "set" && owners[0].controller == Some(true))
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_set_that_goes_takes_its_pods_along_and_one_without_a_kafka_rests() {
    let stage = started().await;
    set(&stage, json!([pod("a-0", "x")])).await;
    until("it is there", || async { !stage.pods().await.is_empty() }).await;
    stage.api::<StrimziPodSet>().delete("set", &DeleteParams::default()).await.unwrap();
    until("the garbage collector has cleared up", || async { stage.pods().await.is_empty() }).await;

    stage.api::<Kafka>().delete(CLUSTER, &DeleteParams::default()).await.unwrap();
    set(&stage, json!([pod("a-0", "x")])).await;
    a_while().await;
    assert!(stage.pods().await.is_empty(), "nobody asked for this cluster");
    create(&stage.api::<Kafka>(), json!({"metadata": {"name": CLUSTER}, "spec": {}})).await;
    until("somebody did", || async { !stage.pods().await.is_empty() }).await;
}

#[tokio::test(start_paused = true)]
async fn a_list_that_cannot_be_read_is_an_error_in_the_status() {
    let stage = started().await;
    set(&stage, json!([{"metadata": {"name": "a-0"}, "spec": {"containers": 3}}])).await;
    until("it says so", || async {
        let status = stage.api::<StrimziPodSet>().get("set").await.unwrap().status.unwrap_or_default();
        status.conditions.first().is_some_and(|error| {
            error.type_ == "Error" && error.message.as_deref().unwrap_or_default().contains("spec.pods[0] is no pod")
        })
    })
    .await;
    patch(&stage.api::<StrimziPodSet>(), "set", json!({"spec": {"pods": [pod("a-0", "x")]}})).await;
    until("it is mended", || async { counters(&stage).await == [1, 0, 1] }).await;
}
