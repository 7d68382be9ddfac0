//! What stands in the way of automatic rebalancing, and how far it may: a Kafka that is not ready, somebody's finalizer, a map
//! that has lost its label, and a user who stops what is about to be changed.

use std::collections::BTreeSet;
use std::time::Duration;

use evenkeel_api::kafka::{AutoRebalanceMode, AutoRebalanceState};
use evenkeel_api::{Kafka, KafkaNodePool, KafkaRebalance, annotations};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::play::{ADD, MAP, Play, REMOVE, mode, scaling};
use crate::scene::{auto, brokers, cluster, is_idle, is_ready, rebalance, scale, tell_of, usual, warning};
use crate::stage::{CLUSTER, Stage, a_while, patch, until};

/// The brokers that are queued, or run, for a mode.
async fn queued(play: &Play, mode: AutoRebalanceMode) -> Vec<i32> {
    let modes = play.status().await.auto_rebalance.unwrap_or_default().modes;
    modes.into_iter().filter(|it| it.mode == mode).flat_map(|it| it.brokers).collect()
}

async fn says(play: &Play, reason: &str, words: &[&str]) -> bool {
    play.warning(reason).await.is_some_and(|text| words.iter().all(|word| text.contains(word)))
}

/// Somebody adds a broker because another one is gone for long: just then the Kafka is not ready.
#[tokio::test(start_paused = true)]
async fn brokers_that_come_while_the_kafka_is_not_ready_get_their_data_when_it_is() {
    let play = Play::with(3, scaling()).await;
    play.machines.hold("my-cluster-brokers-2");
    play.until("the Kafka is not ready", async |play| !is_ready(&play.stage).await).await;
    play.scale(4).await;
    play.until("it is said what it waits for", async |play| {
        says(play, "AutoRebalanceWaiting", &["[3]", "Kafka cluster is not Ready"]).await
    })
    .await;
    sleep(Duration::from_secs(600)).await;
    assert_eq!(queued(&play, AutoRebalanceMode::AddBrokers).await, [3], "it is not given up");
    assert_eq!(play.warning("AutoRebalanceFailed").await, None, "nothing failed");

    play.machines.release("my-cluster-brokers-2");
    play.until("it gets its data", async |play| play.holders().contains(&3)).await;
    play.until_settled().await;
    assert_eq!(play.warning("AutoRebalanceWaiting").await, None);
}

/// These finalizers, whatever else is on it.
async fn set_finalizers(play: &Play, name: &str, change: impl Fn(&mut Vec<String>)) {
    let mut finalizers = play.rebalance(name).await.unwrap().metadata.finalizers.unwrap_or_default();
    change(&mut finalizers);
    patch(&play.stage.api::<KafkaRebalance>(), name, json!({"metadata": {"finalizers": finalizers}})).await;
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_of_others_is_named_and_holds_up_none_but_its_own_name() {
    const KEEP: &str = "example.com/keep";
    let play = Play::with(3, scaling()).await;
    play.scale(4).await;
    play.until("data moves", async |play| play.is_moving(ADD).await).await;
    set_finalizers(&play, ADD, |all| all.push(KEEP.to_owned())).await;
    play.until("it is said", async |play| says(play, "AutoRebalanceWaiting", &[ADD, KEEP]).await).await;
    assert!(play.holders().contains(&3), "it has done what it was for");

    play.scale(3).await;
    play.until("a drain is another one", async |play| play.brokers().await.len() == 3).await;
    assert_eq!(play.holders(), BTreeSet::from([0, 1, 2]));
    assert!(play.rebalance(REMOVE).await.is_none(), "and goes when it is over");

    play.scale(4).await;
    play.until("it comes again", async |play| play.brokers().await.len() == 4).await;
    sleep(Duration::from_secs(120)).await;
    assert_eq!(play.state().await, Some(AutoRebalanceState::Idle));
    assert_eq!(queued(&play, AutoRebalanceMode::AddBrokers).await, [3], "its name is taken");
    assert!(says(&play, "AutoRebalanceWaiting", &[ADD, KEEP]).await);

    set_finalizers(&play, ADD, |all| all.retain(|name| name != KEEP)).await;
    play.until("it gets its data", async |play| play.holders().contains(&3)).await;
    play.until_settled().await;
    assert_eq!(play.warning("AutoRebalanceWaiting").await, None);
}

#[tokio::test(start_paused = true)]
async fn a_scale_up_that_a_user_stops_is_given_up_although_brokers_are_to_go() {
    let play = Play::with(3, scaling()).await;
    play.scale(4).await;
    play.until("data moves", async |play| play.is_moving(ADD).await).await;
    let stop = json!({"metadata": {"annotations": {annotations::REBALANCE: "stop"}}});
    patch(&play.stage.api::<KafkaRebalance>(), ADD, stop).await;
    // Broker 1 is to go, not the one that came.
    let wish = json!({"metadata": {"annotations": {"strimzi.io/remove-node-ids": "[1]"}}, "spec": {"replicas": 3}});
    patch(&play.stage.api::<KafkaNodePool>(), "brokers", wish).await;
    play.until("it is said", async |play| says(play, "AutoRebalanceStopped", &["[3]"]).await).await;
    play.until("the other one goes", async |play| play.brokers().await.len() == 3).await;
    play.until_settled().await;
    let told = play.told().await;
    let begun = told.iter().filter(|it| it.contains("to RebalanceOnScaleUp")).count();
    assert_eq!(begun, 1, "{told:?}");
}

async fn notes(stage: &Stage, name: &str) -> Value {
    json!(rebalance(stage, name).await.unwrap().metadata.annotations)
}

/// Another Cruise Control may take minutes to stop.
#[tokio::test(start_paused = true)]
async fn a_stop_that_takes_long_is_not_taken_back_by_a_broker_that_comes() {
    let stage = Stage::new().await;
    cluster(&stage, usual()).await;
    until("it is ready", || is_ready(&stage)).await;
    scale(&stage, 4).await;
    until("it begins", || async { rebalance(&stage, ADD).await.is_some() }).await;
    tell_of(&stage, ADD, "Rebalancing", None).await;
    let stop = json!({"metadata": {"annotations": {annotations::REBALANCE: "stop"}}});
    patch(&stage.api::<KafkaRebalance>(), ADD, stop).await;
    scale(&stage, 5).await;
    until("it is there", || async { brokers(&stage).await.len() == 5 }).await;
    sleep(Duration::from_secs(120)).await;
    let asked = notes(&stage, ADD).await;
    assert_eq!((&asked[annotations::REBALANCE], &asked[annotations::STOPPED_FOR]), (&json!("stop"), &Value::Null));
    assert_eq!(rebalance(&stage, ADD).await.unwrap().spec.brokers, Some(vec![3]));
    assert!(warning(&stage, "AutoRebalanceWaiting").await.is_some_and(|it| it.contains("was told to stop")));

    tell_of(&stage, ADD, "Stopped", None).await;
    until("the other one gets its data", || async {
        rebalance(&stage, ADD).await.is_some_and(|it| it.spec.brokers == Some(vec![4]))
    })
    .await;
    assert!(warning(&stage, "AutoRebalanceStopped").await.is_some_and(|it| it.contains("[3]")));
    tell_of(&stage, ADD, "Ready", None).await;
    until("that is over", || is_idle(&stage)).await;
    a_while().await;
    assert_eq!(auto(&stage).await.state, AutoRebalanceState::Idle);
}

/// A cluster whose violated goals are written down, and the map of them.
async fn with_a_map() -> (Play, Api<ConfigMap>) {
    let watched = json!({"anomaly.detection.goals": "ReplicaDistributionGoal"});
    let modes = json!([mode("imbalance"), mode("add-brokers")]);
    let play = Play::with(3, json!({"autoRebalance": modes, "config": watched})).await;
    let maps = play.stage.api::<ConfigMap>();
    play.until("there is a map", async |_| maps.get_opt(MAP).await.unwrap().is_some()).await;
    (play, maps)
}

#[tokio::test(start_paused = true)]
async fn a_map_that_seems_to_be_a_stranger_s_holds_up_imbalance_alone() {
    let (play, maps) = with_a_map().await;
    let strange = json!({"metadata": {"labels": {"strimzi.io/cluster": null}, "ownerReferences": null}});
    patch(&maps, MAP, strange).await;
    play.until("it is said", async |play| says(play, "KubernetesClientException", &[MAP]).await).await;
    play.scale(4).await;
    play.until("the new one gets its data", async |play| play.holders().contains(&3)).await;
    play.until_settled().await;
    assert!(says(&play, "KubernetesClientException", &[MAP]).await);
    patch(&maps, MAP, json!({"metadata": {"labels": {"strimzi.io/cluster": "my-cluster"}}})).await;
    play.until("all is well", async |play| play.warning("KubernetesClientException").await.is_none()).await;
}

#[tokio::test(start_paused = true)]
async fn a_map_that_has_lost_its_label_is_known_by_its_owner_and_goes_with_its_mode() {
    let (play, maps) = with_a_map().await;
    let unlabelled = json!({"metadata": {"labels": {"strimzi.io/cluster": null}}});
    patch(&maps, MAP, unlabelled.clone()).await;
    a_while().await;
    assert_eq!(play.warning("KubernetesClientException").await, None, "it is nobody else's");
    // Both at once, as far as anybody can see.
    let kafkas = play.stage.api::<Kafka>();
    let pause = |value: Value| json!({"metadata": {"annotations": {annotations::PAUSE_RECONCILIATION: value}}});
    patch(&kafkas, CLUSTER, pause(json!("true"))).await;
    a_while().await;
    patch(&maps, MAP, unlabelled).await;
    patch(&kafkas, CLUSTER, json!({"spec": {"cruiseControl": {"autoRebalance": [mode("add-brokers")]}}})).await;
    patch(&kafkas, CLUSTER, pause(Value::Null)).await;
    play.until("it is gone", async |_| maps.get_opt(MAP).await.unwrap().is_none()).await;
}
