//! An operator that may not look at something: whoever has forgotten the right finds it in the Kafka.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::{Request, Response, StatusCode};
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::client::Body;
use kube::{Api, Client};
use serde_json::json;
use tokio::time::sleep;
use tower::service_fn;

use crate::scene::{begun_by, events, is_ready, pool, status, warning};
use crate::stage::{Stage, until};

const SAID: &str = "KubernetesClientException";

/// A client for an operator that has no right to this resource, for as long as that is set.
fn forbidding(inner: Client, resource: &'static str, forbids: Arc<AtomicBool>) -> Client {
    let service = service_fn(move |request: Request<Body>| {
        let (inner, forbids) = (inner.clone(), Arc::clone(&forbids));
        async move {
            if forbids.load(Ordering::SeqCst) && request.uri().path().split('/').any(|part| part == resource) {
                let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden",
                    "message": format!("{resource} is forbidden"), "code": 403});
                let body = Body::from(status.to_string().into_bytes());
                return Ok(Response::builder().status(StatusCode::FORBIDDEN).body(body).unwrap());
            }
            inner.send(request).await
        }
    });
    Client::new(service, "default")
}

/// A cluster that is looked after without this right.
async fn without(stage: &Stage, resource: &'static str, spec: serde_json::Value) -> Arc<AtomicBool> {
    let forbids = Arc::new(AtomicBool::new(true));
    let mut context = stage.context.clone();
    context.client = forbidding(context.client, resource, Arc::clone(&forbids));
    let pools = vec![
        pool("controllers", 1, &["controller"], json!({"strimzi.io/next-node-ids": "[100-199]"})),
        pool("brokers", 3, &["broker"], json!({})),
    ];
    begun_by(stage, context, spec, pools).await;
    forbids
}

#[tokio::test(start_paused = true)]
async fn what_may_not_be_read_is_said_by_the_kafka() {
    let stage = Stage::new().await;
    let forbids = without(&stage, "networkpolicies", json!({"kafka": {}})).await;
    until("it is said", || async { warning(&stage, SAID).await.is_some() }).await;
    let found = status(&stage).await.conditions;
    assert_eq!((found.len(), found[0].type_.as_str()), (1, "NotReady"), "{found:?}");
    let said = found[0].message.as_deref().unwrap();
    assert!(said.contains("could not read networkpolicies") && said.contains("forbidden"), "{said}");
    sleep(Duration::from_secs(300)).await;
    assert_eq!(events(&stage, SAID).await.len(), 1, "once");

    forbids.store(false, Ordering::SeqCst);
    until("it is made", || is_ready(&stage)).await;
    assert_eq!(warning(&stage, SAID).await, None);

    // A cluster that runs goes on, and says that nobody looks after it.
    forbids.store(true, Ordering::SeqCst);
    until("it is said again", || async { warning(&stage, SAID).await.is_some() }).await;
    let found = status(&stage).await.conditions;
    assert_eq!(found.iter().map(|it| it.type_.as_str()).collect::<Vec<_>>(), ["Ready", "Warning"], "{found:?}");
}

#[tokio::test(start_paused = true)]
async fn without_the_right_for_racks_all_but_the_racks_is_made() {
    let stage = Stage::new().await;
    let rack = json!({"kafka": {"rack": {"topologyKey": "topology.kubernetes.io/zone"}}});
    let forbids = without(&stage, "clusterrolebindings", rack).await;
    until("all but that is made", || is_ready(&stage)).await;
    until("it is said", || async { warning(&stage, SAID).await.is_some() }).await;
    let said = warning(&stage, SAID).await.unwrap();
    assert!(said.contains("ClusterRoleBinding"), "{said}");
    let bindings = Api::<ClusterRoleBinding>::all(stage.client.clone());
    assert_eq!(bindings.list(&Default::default()).await.unwrap().items.len(), 0);

    forbids.store(false, Ordering::SeqCst);
    until("it is made", || async { bindings.list(&Default::default()).await.unwrap().items.len() == 1 }).await;
    until("nothing more is said", || async { warning(&stage, SAID).await.is_none() }).await;
}
