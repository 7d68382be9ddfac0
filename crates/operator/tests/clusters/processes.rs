//! Whole operators: only one acts at a time, and the next takes over.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use evenkeel_api::{Kafka, KafkaNodePool};
use evenkeel_operator::process;
use evenkeel_operator::seams::Context;
use evenkeel_operator::settings::{LeaseName, Settings};
use k8s_openapi::api::coordination::v1::Lease;
use serde_json::json;
use tokio::sync::oneshot;
use tokio::time::sleep;

use crate::stage::{CLUSTER, NAMESPACE, Stage, create, until};

fn named(stage: &Stage, identity: &str) -> Context {
    let lease = Some(LeaseName { namespace: NAMESPACE.into(), name: "operators".into() });
    let settings = Settings { identity: identity.into(), lease, ..Settings::default() };
    let mut context = stage.context.clone();
    context.settings = Arc::new(settings);
    context
}

async fn holder(stage: &Stage) -> Option<String> {
    stage.api::<Lease>().get_opt("operators").await.unwrap()?.spec?.holder_identity
}

#[tokio::test(start_paused = true)]
async fn one_acts_and_the_next_takes_over() {
    let stage = Stage::new().await;
    let first = tokio::spawn(process::run(named(&stage, "a"), None, pending()));
    until("a has it", || async { holder(&stage).await.as_deref() == Some("a") }).await;
    let (stop, stopped) = oneshot::channel::<()>();
    let second = process::run(named(&stage, "b"), None, async {
        let _ = stopped.await;
    });
    let second = tokio::spawn(second);
    sleep(Duration::from_secs(60)).await;
    assert_eq!(holder(&stage).await.as_deref(), Some("a"), "it is renewed, whatever others want");

    first.abort();
    until("b has it", || async { holder(&stage).await.as_deref() == Some("b") }).await;
    create(
        &stage.api::<KafkaNodePool>(),
        json!({
            "metadata": {"name": "all", "labels": {"strimzi.io/cluster": CLUSTER}},
            "spec": {"replicas": 3, "roles": ["controller", "broker"], "storage": {"type": "ephemeral"}},
        }),
    )
    .await;
    create(&stage.api::<Kafka>(), json!({"metadata": {"name": CLUSTER}, "spec": {"kafka": {}}})).await;
    until("b acts", || async { stage.pods().await.len() == 3 }).await;

    stop.send(()).unwrap();
    second.await.unwrap().unwrap();
    assert_eq!(holder(&stage).await, None, "given up, so that the next need not wait");
}
