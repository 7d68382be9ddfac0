//! Users of the engine's API that a Secret of the user names.

use evenkeel_api::Kafka;
use k8s_openapi::api::core::v1::Secret;
use kube::api::DeleteParams;
use serde_json::{Value, json};

use crate::scene::{cluster, is_ready, usual, warning};
use crate::stage::{CLUSTER, Stage, a_while, create, patch, until};

/// Who may log in.
async fn users(stage: &Stage) -> Vec<String> {
    let secret = stage.api::<Secret>().get("my-cluster-cruise-control-api").await.unwrap();
    let file = String::from_utf8(secret.data.unwrap().remove("cruise-control.authFile").unwrap().0).unwrap();
    file.lines().filter_map(|line| Some(line.split_once(':')?.0.to_owned())).collect()
}

async fn name(stage: &Stage, users: Value) {
    patch(&stage.api::<Kafka>(), CLUSTER, json!({"spec": {"cruiseControl": {"apiUsers": users}}})).await;
}

#[tokio::test(start_paused = true)]
async fn users_come_with_their_secret_stay_while_it_is_replaced_and_go_when_nobody_names_it() {
    let stage = Stage::new().await;
    cluster(&stage, usual()).await;
    until("it is ready", || is_ready(&stage)).await;
    let source = json!({"secretKeyRef": {"name": "people", "key": "list"}});
    name(&stage, json!({"type": "hashLoginService", "valueFrom": source})).await;
    let said = async || warning(&stage, "InvalidResourceException").await.unwrap_or_default();
    until("it is said", || async { said().await.contains("there is no Secret people with the key list") }).await;
    assert!(is_ready(&stage).await);
    assert_eq!(users(&stage).await, ["rebalance-operator", "healthcheck"]);

    let secrets = stage.api::<Secret>();
    let people = json!({"metadata": {"name": "people"}, "data": {"list": "YWxpY2U6IHNlY3JldCwgVklFV0VS"}});
    create(&secrets, people).await;
    let all = ["rebalance-operator", "healthcheck", "alice"];
    until("she is a user", || async { users(&stage).await == all && said().await.is_empty() }).await;
    secrets.delete("people", &DeleteParams::default()).await.unwrap();
    until("it is missed", || async { !said().await.is_empty() }).await;
    a_while().await;
    assert_eq!(users(&stage).await, all, "it may be made again");

    name(&stage, json!({"type": "plain"})).await;
    until("it is refused", || async { said().await.contains("spec.cruiseControl.apiUsers.type: `plain`") }).await;
    assert!(!is_ready(&stage).await);
    name(&stage, Value::Null).await;
    until("it is ready", || is_ready(&stage)).await;
    until("she is none any more", || async { users(&stage).await == all[..2] }).await;
}
