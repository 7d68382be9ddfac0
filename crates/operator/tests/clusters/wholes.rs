//! Parts that come and go as a whole: the nodes of a Kafka without node pools, and the engine.

use std::collections::BTreeSet;

use evenkeel_api::{KafkaRebalance, StrimziPodSet};
use evenkeel_sim::cluster::NewTopic;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service, ServiceAccount};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use serde_json::json;

use crate::play::{ADD, Play, mode};
use crate::scene::{change, cluster, cluster_of, is_ready, is_registered, names, rebalance, status, usual, warning};
use crate::stage::{Stage, a_while, create, patch, until};

/// What there is for an engine, and what it and automatic rebalancing leave.
async fn of_engine(stage: &Stage) -> BTreeSet<String> {
    let all = [
        names::<Deployment>(stage).await,
        names::<Service>(stage).await,
        names::<ServiceAccount>(stage).await,
        names::<Secret>(stage).await,
        names::<ConfigMap>(stage).await,
        names::<PodDisruptionBudget>(stage).await,
        names::<NetworkPolicy>(stage).await,
        names::<Role>(stage).await,
        names::<RoleBinding>(stage).await,
        names::<KafkaRebalance>(stage).await,
    ];
    let marks = ["cruise-control", "goal-violation", "rebalancing"];
    all.concat().into_iter().filter(|it| marks.iter().any(|mark| it.contains(mark))).collect()
}

#[tokio::test(start_paused = true)]
async fn without_an_engine_nothing_is_left_of_it() {
    let stage = Stage::new().await;
    let mut spec = usual();
    spec["cruiseControl"]["autoRebalance"] = json!([{"mode": "add-brokers"}, {"mode": "imbalance"}]);
    cluster(&stage, spec).await;
    until("it is ready", || is_ready(&stage)).await;
    crate::scene::scale(&stage, 4).await;
    until("a rebalance was made", || async { rebalance(&stage, ADD).await.is_some() }).await;
    let before = of_engine(&stage).await;
    assert!(before.len() >= 12, "{before:?}");
    change(&stage, json!({"spec": {"cruiseControl": null}})).await;
    until("all of it is gone", || async { of_engine(&stage).await.is_empty() }).await;
    assert_eq!(status(&stage).await.auto_rebalance, None);
    a_while().await;
    assert!(of_engine(&stage).await.is_empty() && is_ready(&stage).await);
    assert_eq!(stage.pods().await.len(), 7, "three controllers and four brokers");
}

/// A Kafka with `replicas` and no node pools has nodes all the same.
#[tokio::test(start_paused = true)]
async fn a_kafka_without_node_pools_is_made_grows_and_shrinks() {
    let stage = Stage::new().await;
    let machines = {
        let spec = json!({"kafka": {"replicas": 3, "storage": {"type": "ephemeral"}}});
        cluster_of(&stage, spec, Vec::new()).await
    };
    until("it is ready", || is_ready(&stage)).await;
    let ids = async || -> Vec<i32> {
        let set = stage.api::<StrimziPodSet>().get("my-cluster-kafka").await.unwrap();
        let names = set.spec.pods.iter().map(|pod| pod["metadata"]["name"].as_str().unwrap().to_owned());
        names.map(|name| name.rsplit('-').next().unwrap().parse().unwrap()).collect()
    };
    let resize = async |replicas: i32| change(&stage, json!({"spec": {"kafka": {"replicas": replicas}}})).await;
    let first = ids().await;
    assert_eq!(first.len(), 3);
    resize(4).await;
    until("it grows", || async { ids().await.len() == 4 && is_ready(&stage).await }).await;
    let new = ids().await.into_iter().find(|id| !first.contains(id)).unwrap();
    until("it is counted on", || async { is_registered(&machines, new) }).await;
    machines
        .world()
        .with(|cluster| cluster.create_topic(&NewTopic::manual("orders", &[&[new, first[0]]]), false).unwrap());
    a_while().await;
    resize(3).await;
    until("it is kept", || async {
        warning(&stage, "ScaleDownPreventionCheck")
            .await
            .is_some_and(|it| it.starts_with("spec.kafka.replicas: 4 nodes"))
    })
    .await;
    a_while().await;
    assert_eq!(ids().await.len(), 4);
    machines.world().with(|cluster| cluster.delete_topic("orders").unwrap());
    until("it goes", || async { ids().await == first }).await;
    until("it is forgotten", || async { !is_registered(&machines, new) }).await;
    until("nothing more is said", || async { warning(&stage, "ScaleDownPreventionCheck").await.is_none() }).await;
}

/// A goal that does not exist is told by the engine, and ends as a Warning where its author looks.
#[tokio::test(start_paused = true)]
async fn a_template_with_a_goal_that_does_not_exist_is_told_with_its_name() {
    let engine =
        json!({"autoRebalance": [{"mode": "add-brokers", "template": {"name": "odd"}}, mode("remove-brokers")]});
    let play = Play::with(3, engine).await;
    let notes = json!({"strimzi.io/rebalance-template": "true"});
    let odd = json!({"metadata": {"name": "odd", "annotations": notes},
        "spec": {"goals": ["NoSuchGoal"], "skipHardGoalCheck": true}});
    create(&play.stage.api::<KafkaRebalance>(), odd).await;
    a_while().await;
    play.scale(4).await;
    play.until("it is said", async |play| {
        play.warning("AutoRebalanceFailed").await.is_some_and(|it| it.contains("NoSuchGoal"))
    })
    .await;
    play.until_settled().await;
    assert_eq!(play.holders(), BTreeSet::from([0, 1, 2]));
    // Mended, it works for the next one.
    patch(&play.stage.api::<KafkaRebalance>(), "odd", json!({"spec": {"goals": ["ReplicaDistributionGoal"]}})).await;
    play.scale(5).await;
    play.until("it gets its data", async |play| play.holders().contains(&4)).await;
}
