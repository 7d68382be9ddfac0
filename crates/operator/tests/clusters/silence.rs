//! Brokers that nobody hears of though their pods are ready: that is said, and nobody asks all the time.

use std::sync::Arc;
use std::time::Duration;

use evenkeel_sim::BrokerId;
use serde_json::json;
use tokio::time::sleep;

use crate::scene::{cluster, cluster_with, events, is_ready, operator, status, warning};
use crate::stage::{Stage, a_while, until};
use crate::trouble::NoWay;

const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test(start_paused = true)]
async fn a_broker_that_kafka_does_not_count_on_is_missed_after_a_while() {
    let stage = Stage::new().await;
    let machines = cluster(&stage, json!({"kafka": {}})).await;
    until("it is ready", || is_ready(&stage)).await;
    machines.world().with(|cluster| cluster.isolate_broker(BrokerId(2)));
    sleep(4 * MINUTE).await;
    assert!(is_ready(&stage).await, "it may yet come back");
    // That it is missed is seen when the operator looks by itself, two minutes later at most.
    sleep(5 * MINUTE).await;
    let state = status(&stage).await.conditions[0].clone();
    assert_eq!((state.type_.as_str(), state.reason.as_deref()), ("NotReady", Some("TimeoutException")));
    let said = "ready, and not counted on by Kafka for more than 5 minutes: my-cluster-brokers-2";
    assert_eq!(state.message.as_deref(), Some(said));
    assert_eq!(events(&stage, "NotReady").await, [said], "once");

    machines.world().with(|cluster| cluster.reconnect_broker(BrokerId(2)));
    until("it is ready again", || is_ready(&stage)).await;
}

#[tokio::test(start_paused = true)]
async fn a_kafka_that_does_not_answer_is_said_and_asked_ever_more_rarely() {
    let stage = Stage::new().await;
    let (machines, first) = cluster_with(&stage, json!({"kafka": {}})).await;
    until("it is ready", || is_ready(&stage)).await;
    a_while().await;
    first.abort();
    let mut context = stage.context.clone();
    context.kafkas = Arc::new(NoWay);
    let deaf = tokio::spawn(async move {
        tokio::join!(evenkeel_operator::pod_set::run(context.clone()), evenkeel_operator::kafka::run(context));
    });
    sleep(4 * MINUTE).await;
    assert_eq!(warning(&stage, "TimeoutException").await, None, "it may yet answer");
    sleep(3 * MINUTE).await;
    let said = warning(&stage, "TimeoutException").await.expect("it is said");
    assert!(said.starts_with("Kafka has not answered the operator for more than 5 minutes: "), "{said}");
    assert!(is_ready(&stage).await, "whoever uses it may well reach it");
    let (before, _) = (stage.looks(), stage.writes());
    sleep(10 * MINUTE).await;
    let looks = stage.looks() - before;
    assert!((5..=25).contains(&looks), "{looks} looks in ten minutes");
    assert_eq!(stage.writes(), [""; 0]);

    // The next operator has forgotten since when, and finds it on record.
    deaf.abort();
    let mut context = stage.context.clone();
    context.kafkas = Arc::new(NoWay);
    let deaf = tokio::spawn(evenkeel_operator::kafka::run(context));
    sleep(MINUTE).await;
    assert_eq!(warning(&stage, "TimeoutException").await, Some(said));
    deaf.abort();
    let _next = tokio::spawn(operator(stage.context.clone(), machines));
    until("nothing more is said", || async { warning(&stage, "TimeoutException").await.is_none() }).await;
}
