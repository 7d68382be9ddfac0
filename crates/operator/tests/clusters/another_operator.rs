//! A cluster that another operator runs, in a namespace that ours looks after as well: not a byte of it is written.

use std::time::Duration;

use evenkeel_api::{Kafka, KafkaRebalance, StrimziPodSet};
use k8s_openapi::api::core::v1::Pod;
use kube::api::DeleteParams;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::play::{Play, operator, scaling};
use crate::scene::{events, names};
use crate::stage::{CLUSTER, NAMESPACE, create, patch};

/// A whole cluster whose pod sets do not say that we applied them, and wishes that our operator would hurry to fulfil: a new
/// version, another broker, a pod that is gone, and a rebalance.
async fn theirs(annotations: Value) -> Play {
    let mut play = Play::with(3, scaling()).await;
    play.operator.abort();
    let _ = (&mut play.operator).await;
    let sets = play.stage.api::<StrimziPodSet>();
    for set in sets.list(&Default::default()).await.unwrap() {
        let unmarked = json!({"metadata": {"annotations": {"evenkeel.io/applied": null}}});
        patch(&sets, set.metadata.name.as_deref().unwrap(), unmarked).await;
    }
    play.scale(4).await;
    let wish = json!({"metadata": {"annotations": annotations}, "spec": {"kafka": {"config": {"num.io.threads": 3}}}});
    patch(&play.stage.api::<Kafka>(), CLUSTER, wish).await;
    play.stage.api::<Pod>().delete("my-cluster-brokers-2", &DeleteParams::default()).await.unwrap();
    let rebalance = json!({"metadata": {"name": "even-out", "labels": {"strimzi.io/cluster": CLUSTER}}, "spec": {}});
    create(&play.stage.api::<KafkaRebalance>(), rebalance).await;
    play.stage.writes();
    play
}

#[tokio::test(start_paused = true)]
async fn what_another_operator_made_is_not_touched_and_that_is_said_once() {
    for annotations in [json!({}), json!({"strimzi.io/pause-reconciliation": "true"})] {
        let play = theirs(annotations).await;
        let stage = &play.stage;
        let _operator = tokio::spawn(operator(stage.context.clone(), play.machines.clone(), play.room.clone()));
        // Every controller has looked more than once by then.
        sleep(Duration::from_secs(900)).await;
        assert_eq!(stage.writes(), [format!("POST /apis/events.k8s.io/v1/namespaces/{NAMESPACE}/events")]);
        let told = events(stage, "AnotherOperator").await;
        assert!(told[0].contains("StrimziPodSet my-cluster-brokers, my-cluster-controllers without"), "{told:?}");
        assert!(!names::<Pod>(stage).await.contains(&"Pod my-cluster-brokers-2".to_owned()));
    }
}
