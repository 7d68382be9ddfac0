//! The quorum is fixed when a cluster is made, whatever becomes of the pools of its controllers: nodes with two lists of voters
//! could elect two leaders.

use std::collections::BTreeSet;

use evenkeel_api::KafkaNodePool;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::ResourceExt;
use kube::api::DeleteParams;
use serde_json::{Value, json};

use crate::scene::{claimed, cluster_of, events, is_ready, node_ids, scale, status, warning};
use crate::stage::{Stage, a_while, create, patch, until};

fn of_zone(zone: &str, replicas: i32, ids: &str) -> Value {
    claimed(&format!("controllers-{zone}"), replicas, &["controller"], json!({"strimzi.io/next-node-ids": ids}))
}

/// A cluster with a pool of controllers for each of two zones.
async fn in_two_zones() -> Stage {
    let stage = Stage::new().await;
    let pools =
        vec![of_zone("a", 3, "[100-109]"), of_zone("b", 2, "[110-119]"), claimed("brokers", 3, &["broker"], json!({}))];
    cluster_of(&stage, json!({"kafka": {}}), pools).await;
    until("it is ready", || is_ready(&stage)).await;
    a_while().await;
    stage
}

/// All lists of voters that nodes have.
async fn voters(stage: &Stage) -> BTreeSet<Vec<i32>> {
    let maps = stage.api::<ConfigMap>().list(&Default::default()).await.unwrap().items;
    let files = maps.into_iter().filter_map(|map| map.data?.remove("server.config"));
    let list = |file: String| -> Vec<i32> {
        let list = file.lines().find_map(|line| line.strip_prefix("controller.quorum.voters=")).unwrap().to_owned();
        list.split(',').map(|voter| voter.split_once('@').unwrap().0.parse().unwrap()).collect()
    };
    files.map(list).collect()
}

async fn pods(stage: &Stage) -> BTreeSet<(String, Option<String>)> {
    let pods = stage.api::<Pod>().list(&Default::default()).await.unwrap().items;
    pods.iter().map(|pod| (pod.name_any(), pod.uid())).collect()
}

fn all_five() -> BTreeSet<Vec<i32>> {
    [vec![100, 101, 102, 110, 111]].into()
}

#[tokio::test(start_paused = true)]
async fn a_pool_of_controllers_that_loses_its_label_is_missed_and_nothing_changes() {
    let stage = in_two_zones().await;
    let (pools, before) = (stage.api::<KafkaNodePool>(), pods(&stage).await);
    assert_eq!(voters(&stage).await, all_five());
    stage.writes();
    patch(&pools, "controllers-b", json!({"metadata": {"labels": {"strimzi.io/cluster": null}}})).await;
    until("it is said", || async { !is_ready(&stage).await }).await;
    let said = status(&stage).await.conditions[0].message.clone().unwrap();
    assert!(said.contains("my-cluster-controllers-b is still there with controllers (110, 111)"), "{said}");
    a_while().await;
    let is_told = |it: &String| it.ends_with("/status") || it.contains("/events");
    let writes: Vec<String> = stage.writes().into_iter().filter(|it| !is_told(it)).collect();
    assert_eq!(writes, [""; 0]);

    patch(&pools, "controllers-b", json!({"metadata": {"labels": {"strimzi.io/cluster": "my-cluster"}}})).await;
    until("it is ready again", || is_ready(&stage)).await;
    a_while().await;
    assert_eq!((pods(&stage).await, voters(&stage).await), (before, all_five()));
}

#[tokio::test(start_paused = true)]
async fn controllers_that_are_gone_with_their_pool_still_vote_and_can_come_back() {
    let stage = in_two_zones().await;
    let (pools, before) = (stage.api::<KafkaNodePool>(), pods(&stage).await);
    pools.delete("controllers-b", &DeleteParams::default()).await.unwrap();
    let gone = "controllers are gone with their node pool controllers-b (110, 111)";
    let is_said = async || warning(&stage, "InvalidResourceException").await.is_some_and(|it| it.contains(gone));
    until("it is said", is_said).await;
    until("the others are ready", || is_ready(&stage)).await;
    // All that is not the quorum goes on.
    scale(&stage, 4).await;
    until("it grows", || async { node_ids(&stage, "brokers").await == [0, 1, 2, 3] && is_ready(&stage).await }).await;
    a_while().await;
    let is_other = |(name, _): &&(String, Option<String>)| !name.contains("controllers-b");
    let now = pods(&stage).await;
    assert!(before.iter().filter(is_other).all(|pod| now.contains(pod)), "{now:?}");
    assert_eq!((now.len(), voters(&stage).await), (7, all_five()));
    assert_eq!(events(&stage, "PodRestarted").await, [""; 0]);

    // Made again it is the same, whatever ids were chosen for it.
    create(&pools, of_zone("b", 2, "[120-129]")).await;
    until("they are back", || async { pods(&stage).await.len() == 9 && is_ready(&stage).await }).await;
    until("nothing more is said", || async { warning(&stage, "InvalidResourceException").await.is_none() }).await;
    assert_eq!((node_ids(&stage, "controllers-b").await, voters(&stage).await), (vec![110, 111], all_five()));
    assert_eq!(events(&stage, "PodRestarted").await, [""; 0]);
}
