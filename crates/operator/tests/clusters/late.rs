//! Deeds that cannot be taken back, and an operator that comes to them late: it was frozen, or the API server was slow.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use evenkeel_api::{Kafka, KafkaNodePool};
use evenkeel_sim::BrokerId;
use evenkeel_sim::cluster::NewTopic;
use http::{Method, Request};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Service};
use kube::api::DeleteParams;
use kube::client::Body;
use kube::{Api, Client, ResourceExt};
use serde_json::json;
use tokio::sync::Notify;
use tokio::time::sleep;
use tower::service_fn;

use crate::scene::{cluster_with, events, is_ready, is_registered, operator, pool};
use crate::stage::{CLUSTER, NAMESPACE, Stage, a_while, create, patch, until};

/// A client whose first call of this kind is held up: it says so, and goes on when it is told to.
fn held(inner: Client, method: Method, path: &'static str) -> (Client, Arc<Notify>, Arc<Notify>) {
    let (came, goes, first) = (Arc::new(Notify::new()), Arc::new(Notify::new()), Arc::new(AtomicBool::new(true)));
    let (tell, wait) = (Arc::clone(&came), Arc::clone(&goes));
    let service = service_fn(move |request: Request<Body>| {
        let (inner, method, first) = (inner.clone(), method.clone(), Arc::clone(&first));
        let (tell, wait) = (Arc::clone(&tell), Arc::clone(&wait));
        async move {
            let is_it = *request.method() == method && request.uri().path().ends_with(path);
            if is_it && first.swap(false, Ordering::SeqCst) {
                tell.notify_one();
                wait.notified().await;
            }
            inner.send(request).await
        }
    });
    (Client::new(service, "default"), came, goes)
}

#[tokio::test(start_paused = true)]
async fn a_broker_is_not_restarted_by_an_old_look() {
    let stage = Stage::new().await;
    let (machines, first) = cluster_with(&stage, json!({"kafka": {}})).await;
    until("it is ready", || is_ready(&stage)).await;
    let topic = NewTopic::manual("orders", &[&[0, 1, 2]]).config("min.insync.replicas", "2");
    machines.world().with(|cluster| cluster.create_topic(&topic, false).unwrap());
    let in_sync =
        |many: usize| machines.world().look(|cluster| cluster.registration("orders", 0).unwrap().isr.len() == many);
    machines.world().with(|cluster| cluster.isolate_broker(BrokerId(2)));
    until("it is missed", || async { in_sync(2) }).await;
    // All brokers have heard of it.
    a_while().await;
    patch(&stage.api::<Kafka>(), CLUSTER, json!({"spec": {"kafka": {"config": {"num.partitions": 5}}}})).await;
    until("a restart waits", || async { !events(&stage, "RestartWaits").await.is_empty() }).await;
    first.abort();
    machines.world().with(|cluster| cluster.reconnect_broker(BrokerId(2)));
    until("all are in sync", || async { in_sync(3) }).await;
    stage.api::<Service>().delete("my-cluster-kafka-brokers", &DeleteParams::default()).await.unwrap();

    // The next one sees all well; but before it comes to the restart it is held up at the Service.
    let (client, came, goes) = held(stage.context.client.clone(), Method::PATCH, "/services/my-cluster-kafka-brokers");
    let mut context = stage.context.clone();
    context.client = client;
    let _next = tokio::spawn(operator(context, machines.clone()));
    came.notified().await;
    machines.world().with(|cluster| cluster.isolate_broker(BrokerId(2)));
    until("it is missed again", || async { in_sync(2) }).await;
    sleep(Duration::from_secs(20)).await;
    goes.notify_one();
    sleep(Duration::from_secs(60)).await;
    assert_eq!(events(&stage, "PodRestarted").await, [""; 0]);
    machines.world().with(|cluster| cluster.reconnect_broker(BrokerId(2)));
    until("it goes when it may", || async { !events(&stage, "PodRestarted").await.is_empty() }).await;
}

#[tokio::test(start_paused = true)]
async fn only_the_claim_that_was_seen_is_deleted() {
    const CLAIM: &str = "data-my-cluster-more-3";
    let stage = Stage::new().await;
    let (machines, first) = cluster_with(&stage, json!({"kafka": {}})).await;
    until("it is ready", || is_ready(&stage)).await;
    let mut more = pool("more", 1, &["broker"], json!({}));
    more["spec"]["storage"] = json!({"type": "persistent-claim", "size": "1Gi", "deleteClaim": true});
    create(&stage.api::<KafkaNodePool>(), more).await;
    until("it is there", || async { is_registered(&machines, 3) && is_ready(&stage).await }).await;
    a_while().await;
    first.abort();
    let (client, came, goes) =
        held(stage.context.client.clone(), Method::DELETE, "/persistentvolumeclaims/data-my-cluster-more-3");
    let mut context = stage.context.clone();
    context.client = client;
    let _next = tokio::spawn(operator(context, machines.clone()));
    patch(&stage.api::<KafkaNodePool>(), "more", json!({"spec": {"replicas": 0}})).await;
    came.notified().await;
    // Somebody else was faster, and made another one for what comes next.
    let claims = Api::<PersistentVolumeClaim>::namespaced(stage.client.clone(), NAMESPACE);
    claims.delete(CLAIM, &DeleteParams::default()).await.unwrap();
    until("it is gone", || async { claims.get_opt(CLAIM).await.unwrap().is_none() }).await;
    let spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
    let made = create(&claims, json!({"metadata": {"name": CLAIM}, "spec": spec})).await;
    goes.notify_one();
    sleep(Duration::from_secs(60)).await;
    let there = claims.get(CLAIM).await.unwrap();
    assert_eq!((there.uid(), there.metadata.deletion_timestamp), (made.uid(), None));
}
