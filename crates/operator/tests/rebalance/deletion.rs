//! A KafkaRebalance that is deleted while something of it runs waits for it, and nothing ever waits for ever.

use std::collections::BTreeSet;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use evenkeel_api::rebalance::RebalanceState;
use evenkeel_api::{Kafka, KafkaRebalance, Reason, annotations};
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;
use tower::ServiceExt;

use crate::stage::{CLUSTER, Stage, finalizers, warning};

const NAME: &str = "my-rebalance";

pub async fn a_deletion_waits_for_the_end_and_goes_on_reporting(stage: Stage) {
    let _operator = stage.operator();
    stage.run(NAME).await;
    stage.delete(NAME).await;
    let before = stage.data(NAME, "executorState").await;
    let reports = || async { stage.is_gone(NAME).await || stage.data(NAME, "executorState").await != before };
    stage.until("it goes on reporting", reports).await;
    assert_eq!(stage.get(NAME).await.state(), RebalanceState::Rebalancing);
    // Nothing new is begun once deletion was asked for, and it says so.
    stage.ask(NAME, "refresh").await;
    let warned = stage.until_warned(NAME, Reason::InvalidAnnotation).await;
    assert!(warning(&warned, Reason::InvalidAnnotation).unwrap().contains("being deleted"));
    stage.until("it is gone", || stage.is_gone(NAME)).await;
    assert_eq!(stage.executions().await.len(), 1);
    assert_eq!(stage.brokers.holders().len(), 4, "the run came to its end");
}

/// The engine takes its time over a question, and by the answer nobody wants any more what it was asked for.
pub async fn a_deletion_while_the_engine_is_asked_comes_before_what_it_was_asked_for(stage: Stage) {
    let operator = stage.operator();
    let (engine, rebalances) = (stage.cut_engine(), stage.api::<KafkaRebalance>());
    stage.mend_engine(Router::new().fallback(move |request: Request<Body>| {
        let (engine, rebalances) = (engine.clone(), rebalances.clone());
        async move {
            // What the executor does is asked right before it is given something to do.
            if request.uri().path().ends_with("/state") {
                rebalances.delete(NAME, &DeleteParams::default()).await.unwrap();
            }
            let Ok(answer) = engine.oneshot(request).await;
            answer
        }
    }));
    let notes = json!({annotations::REBALANCE_AUTO_APPROVAL: "true"});
    stage.create(NAME, |it| it["metadata"]["annotations"] = notes).await;
    stage.until("it is gone", || stage.is_gone(NAME)).await;
    stage.linger(60).await;
    let executes = operator.fate.made().iter().filter(|call| call.ends_with(" executes")).count();
    assert_eq!((executes, stage.executions().await.len()), (0, 0), "nothing new is begun");
    assert_eq!(stage.brokers.holders(), BTreeSet::from([0, 1]));
}

pub async fn a_paused_run_is_followed_to_its_end_though_its_engine_is_no_longer_wanted(stage: Stage) {
    let _operator = stage.operator();
    stage.run(NAME).await;
    stage.annotate(NAME, annotations::PAUSE_RECONCILIATION, "true").await;
    stage.until_state(NAME, RebalanceState::ReconciliationPaused).await;
    let unwanted = Patch::Merge(json!({"spec": {"cruiseControl": null}}));
    stage.api::<Kafka>().patch(CLUSTER, &PatchParams::default(), &unwanted).await.unwrap();
    stage.delete(NAME).await;
    stage.until("it is gone", || stage.is_gone(NAME)).await;
    assert!(stage.brokers.are_at_rest(), "the run was waited for");
    assert_eq!(stage.brokers.holders().len(), 4);
}

pub async fn a_deleted_run_can_still_be_stopped(stage: Stage) {
    let _operator = stage.operator();
    stage.run(NAME).await;
    stage.delete(NAME).await;
    stage.ask(NAME, "stop").await;
    stage.until("it is gone", || stage.is_gone(NAME)).await;
    // It is told after it was done.
    let told = |what: &'static str| {
        let events = stage.events(NAME);
        async move { events.await.iter().any(|(_, reason)| reason == what) }
    };
    stage.until("that it was stopped is told", || told("Stopped")).await;
    assert!(!told("Ready").await);
}

pub async fn a_proposal_holds_nothing(stage: Stage) {
    let _operator = stage.operator();
    stage.create(NAME, |_| {}).await;
    stage.until_state(NAME, RebalanceState::ProposalReady).await;
    stage.until("the finalizer is off", || async { finalizers(&stage.get(NAME).await).is_empty() }).await;
    stage.delete(NAME).await;
    assert!(stage.is_gone(NAME).await, "nothing holds it");
}

pub async fn a_deletion_does_not_wait_for_a_kafka_that_is_gone(mut stage: Stage) {
    let _operator = stage.operator();
    stage.run(NAME).await;
    stage.stop_engine();
    stage.api::<Kafka>().delete(CLUSTER, &DeleteParams::default()).await.unwrap();
    stage.delete(NAME).await;
    stage.until("it is gone", || stage.is_gone(NAME)).await;
}

pub async fn a_kafka_that_goes_after_the_deletion_lets_go_too(mut stage: Stage) {
    let _operator = stage.operator();
    stage.run(NAME).await;
    stage.delete(NAME).await;
    stage.stop_engine();
    let warned = stage.until_warned(NAME, Reason::CruiseControlRestException).await;
    assert!(warning(&warned, Reason::CruiseControlRestException).unwrap().contains("by hand"), "and what to do");
    stage.linger(600).await;
    assert!(!stage.is_gone(NAME).await, "an engine that is away may come back");
    stage.api::<Kafka>().delete(CLUSTER, &DeleteParams::default()).await.unwrap();
    stage.until("it is gone", || stage.is_gone(NAME)).await;
}

pub async fn a_namespace_that_goes_takes_it_along(mut stage: Stage) {
    let _operator = stage.operator();
    stage.run(NAME).await;
    stage.stop_engine();
    Api::<Namespace>::all(stage.client.clone()).delete(&stage.namespace, &DeleteParams::default()).await.unwrap();
    // What a cluster's own controller does.
    stage.delete(NAME).await;
    stage.until("it is gone", || stage.is_gone(NAME)).await;
}

pub async fn a_generated_one_that_has_not_begun_is_stopped_and_left_to_its_maker(stage: Stage) {
    stage.create(NAME, |it| it["metadata"]["finalizers"] = json!([annotations::AUTO_REBALANCING_FINALIZER])).await;
    let _operator = stage.operator();
    stage.until_state(NAME, RebalanceState::ProposalReady).await;
    stage.delete(NAME).await;
    stage.until_state(NAME, RebalanceState::Stopped).await;
    stage.linger(60).await;
    let left = stage.get(NAME).await;
    assert_eq!(finalizers(&left), [annotations::AUTO_REBALANCING_FINALIZER]);
}
