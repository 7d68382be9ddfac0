//! A pod that cannot be made, because a quota or a webhook refuses it: those beside it come and go all the same.

use evenkeel_api::{Kafka, StrimziPodSet};
use evenkeel_operator::pod_set;
use http::{Method, Request, Response, StatusCode};
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::DeleteParams;
use kube::client::Body;
use serde_json::{Value, json};
use tower::service_fn;

use crate::stage::{CLUSTER, NAMESPACE, Stage, create, patch, until};

/// How many pods the quota allows.
const QUOTA: usize = 2;

/// A client for an operator in a namespace with room for so many pods, where one name is never let in.
fn crowded(stage: &Stage, unwanted: &'static str) -> Client {
    let (inner, pods) = (stage.context.client.clone(), stage.api::<Pod>());
    let service = service_fn(move |request: Request<Body>| {
        let (inner, pods) = (inner.clone(), pods.clone());
        async move {
            if request.method() != Method::POST || !request.uri().path().ends_with(&format!("{NAMESPACE}/pods")) {
                return inner.send(request).await;
            }
            let (head, body) = request.into_parts();
            let body = body.collect_bytes().await.unwrap();
            let name = serde_json::from_slice::<Value>(&body).unwrap()["metadata"]["name"].clone();
            let there = pods.list(&Default::default()).await.unwrap().items.len();
            if name == unwanted || there >= QUOTA {
                let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden",
                    "message": format!("pods {name} is forbidden: exceeded quota"), "code": 403});
                let body = Body::from(status.to_string().into_bytes());
                return Ok(Response::builder().status(StatusCode::FORBIDDEN).body(body).unwrap());
            }
            inner.send(Request::from_parts(head, Body::from(body))).await
        }
    });
    Client::new(service, "default")
}

fn pod(name: &str) -> Value {
    json!({
        "metadata": {"name": name, "labels": {"strimzi.io/kind": "Kafka", "strimzi.io/cluster": CLUSTER,
            "strimzi.io/controller-name": "set"}},
        "spec": {"containers": [{"name": "kafka", "image": "kafka"}]},
    })
}

#[tokio::test(start_paused = true)]
async fn one_pod_that_cannot_be_made_holds_up_nobody_else() {
    let stage = Stage::new().await;
    create(&stage.api::<Kafka>(), json!({"metadata": {"name": CLUSTER}, "spec": {}})).await;
    let mut context = stage.context.clone();
    context.client = crowded(&stage, "a-0");
    tokio::spawn(pod_set::run(context));
    let metadata = json!({"name": "set", "labels": {"strimzi.io/kind": "Kafka", "strimzi.io/cluster": CLUSTER},
        "annotations": {"evenkeel.io/applied": "by us"}});
    let selector = json!({"matchLabels": {"strimzi.io/cluster": CLUSTER, "strimzi.io/kind": "Kafka"}});
    let spec = json!({"selector": selector, "pods": [pod("a-0"), pod("a-1"), pod("a-2")]});
    create(&stage.api::<StrimziPodSet>(), json!({"metadata": metadata, "spec": spec})).await;
    until("those that can be made are there", || async { stage.pods().await == ["a-1", "a-2"] }).await;
    let said = async || -> String {
        let status = stage.api::<StrimziPodSet>().get("set").await.unwrap().status.unwrap_or_default();
        status.conditions.into_iter().filter(|it| it.type_ == "Error").filter_map(|it| it.message).collect()
    };
    until("it is said which is not", || async { said().await.contains("could not write pod a-0") }).await;

    // There is no room for a-3 before a-2 is gone, which has to make room for it.
    let pods = json!([pod("a-0"), pod("a-1"), pod("a-3")]);
    patch(&stage.api::<StrimziPodSet>(), "set", json!({"spec": {"pods": pods}})).await;
    until("it goes, and makes room", || async { stage.pods().await == ["a-1", "a-3"] }).await;

    // Nor does one that is refused keep others from coming back.
    let uid = async || stage.api::<Pod>().get_opt("a-1").await.unwrap().and_then(|pod| pod.metadata.uid);
    let before = uid().await;
    stage.api::<Pod>().delete("a-1", &DeleteParams::default()).await.unwrap();
    until("it comes back", || async { uid().await.is_some_and(|now| Some(now) != before) }).await;
}
