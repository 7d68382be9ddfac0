//! The memory of automatic rebalancing, ConfigMap `<cluster>-rebalancing-tracker`, and those who keep it from being written.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use evenkeel_api::Kafka;
use evenkeel_api::kafka::AutoRebalanceState;
use http::{Method, Request, Response};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::DeleteParams;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::time::sleep;
use tower::service_fn;

use crate::play::{ADD, Play, operator, scaling};
use crate::stage::{CLUSTER, a_while, create, patch};

const TRACKER: &str = "my-cluster-rebalancing-tracker";

/// A client for an operator that may not write its memory, for as long as that is set.
fn forgetful(inner: Client, code: u16, reason: &'static str, refuses: Arc<AtomicBool>) -> Client {
    let service = service_fn(move |request: Request<Body>| {
        let (inner, refuses) = (inner.clone(), Arc::clone(&refuses));
        async move {
            let (head, body) = request.into_parts();
            let body = body.collect_bytes().await.unwrap();
            let named = |bytes: &[u8]| String::from_utf8_lossy(bytes).contains(&format!("\"name\":\"{TRACKER}\""));
            let is_write = head.method == Method::PATCH || head.method == Method::POST;
            let is_it = is_write && head.uri.path().contains("/configmaps") && named(&body);
            let request = Request::from_parts(head, Body::from(body));
            if is_it && refuses.load(Ordering::SeqCst) {
                let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason,
                    "message": "it is not to be changed", "code": code});
                let body = Body::from(status.to_string().into_bytes());
                return Ok(Response::builder().status(code).body(body).unwrap());
            }
            inner.send(request).await
        }
    });
    Client::new(service, "default")
}

/// Made immutable, over a quota, refused by a webhook: nothing is done that could not be remembered, and all else is said.
#[tokio::test(start_paused = true)]
async fn a_memory_that_cannot_be_written_is_said_and_holds_up_nothing_else() {
    for (code, reason) in [(403, "Forbidden"), (422, "Invalid")] {
        let mut play = Play::with(3, scaling()).await;
        play.operator.abort();
        let _ = (&mut play.operator).await;
        let refuses = Arc::new(AtomicBool::new(true));
        let mut context = play.stage.context.clone();
        context.client = forgetful(context.client, code, reason, Arc::clone(&refuses));
        play.operator = tokio::spawn(operator(context, play.machines.clone(), play.room.clone()));
        play.scale(4).await;
        play.until("it is said", async |play| {
            play.warning("KubernetesClientException").await.is_some_and(|it| it.contains(TRACKER))
        })
        .await;
        let said = play.warning("KubernetesClientException").await.unwrap();
        assert!(said.contains("it is not to be changed") && said.contains("delete it"), "{said}");

        // Whatever else there is to say is said, once.
        patch(&play.stage.api::<Kafka>(), CLUSTER, json!({"spec": {"jmxTrans": {}}})).await;
        play.until("the new spec is looked at", async |play| {
            let kafka = play.stage.api::<Kafka>().get(CLUSTER).await.unwrap();
            kafka.status.unwrap().observed_generation == kafka.metadata.generation
        })
        .await;
        a_while().await;
        play.stage.writes();
        let before = play.stage.looks();
        sleep(Duration::from_secs(300)).await;
        let looks = play.stage.looks() - before;
        assert!(looks < 30, "{looks} looks in five minutes");
        let statuses = play.stage.writes().into_iter().filter(|it| it.ends_with("/kafkas/my-cluster/status")).count();
        assert_eq!(statuses, 0, "nothing new is known");
        let made = play.rebalance(ADD).await.unwrap();
        assert_eq!(play.state().await, Some(AutoRebalanceState::RebalanceOnScaleUp), "it stands still: {made:?}");

        refuses.store(false, Ordering::SeqCst);
        play.until_settled().await;
        assert_eq!(play.holders(), BTreeSet::from([0, 1, 2, 3]));
        assert_eq!(play.warning("KubernetesClientException").await, None);
    }
}

async fn tracker(play: &Play) -> ConfigMap {
    play.stage.api::<ConfigMap>().get(TRACKER).await.unwrap()
}

/// Somebody else, an operator that was not frozen for example, has written it between the look and the write.
#[tokio::test(start_paused = true)]
async fn an_old_memory_does_not_take_the_place_of_a_newer_one() {
    let mut play = Play::with(3, scaling()).await;
    play.scale(4).await;
    play.until("the new one has data", async |play| play.holders().contains(&3)).await;
    play.until_settled().await;
    play.operator.abort();
    let _ = (&mut play.operator).await;
    let (others, answers) = (play.stage.api::<ConfigMap>(), Arc::new(Mutex::new(Vec::new())));
    let (inner, told) = (play.stage.context.client.clone(), Arc::clone(&answers));
    let service = service_fn(move |request: Request<Body>| {
        let (inner, others, told) = (inner.clone(), others.clone(), Arc::clone(&told));
        async move {
            let is_it = request.method() == Method::PATCH && request.uri().path().ends_with(TRACKER);
            if is_it && told.lock().unwrap().is_empty() {
                patch(&others, TRACKER, json!({"metadata": {"annotations": {"touched": "true"}}})).await;
            }
            let answer = inner.send(request).await;
            if is_it {
                told.lock().unwrap().extend(answer.iter().map(|answer| answer.status().as_u16()));
            }
            answer
        }
    });
    let mut context = play.stage.context.clone();
    context.client = Client::new(service, "default");
    play.operator = tokio::spawn(operator(context, play.machines.clone(), play.room.clone()));
    play.scale(5).await;
    play.until("the new one has data", async |play| play.holders().contains(&4)).await;
    play.until_settled().await;
    assert_eq!(answers.lock().unwrap()[..2], [409, 200]);
}

#[tokio::test(start_paused = true)]
async fn a_memory_that_has_lost_its_label_is_remembered() {
    let play = Play::with(3, scaling()).await;
    play.scale(4).await;
    play.until("the new one has data", async |play| play.holders().contains(&3)).await;
    play.until_settled().await;
    let text = tracker(&play).await.data.unwrap().remove("memory.json").unwrap();
    let mut memory: Value = serde_json::from_str(&text).unwrap();
    memory["imbalance"]["repeats"] = json!(5);
    let change = json!({
        "metadata": {"labels": {"strimzi.io/cluster": null}},
        "data": {"memory.json": memory.to_string()},
    });
    patch(&play.stage.api::<ConfigMap>(), TRACKER, change).await;
    play.scale(5).await;
    play.until("the new one has data", async |play| play.holders().contains(&4)).await;
    play.until_settled().await;
    let after = tracker(&play).await;
    let memory: Value = serde_json::from_str(&after.data.unwrap()["memory.json"]).unwrap();
    assert_eq!(memory["imbalance"]["repeats"], 5);
    assert_eq!(after.metadata.labels.unwrap()["strimzi.io/cluster"], CLUSTER, "it is written with its label");
}

#[tokio::test(start_paused = true)]
async fn somebody_else_s_config_map_is_not_taken_over() {
    let play = Play::with(3, scaling()).await;
    let maps = play.stage.api::<ConfigMap>();
    let theirs = create(&maps, json!({"metadata": {"name": TRACKER}, "data": {"mine": "yes"}})).await;
    play.scale(4).await;
    play.until("it is said", async |play| {
        play.warning("KubernetesClientException").await.is_some_and(|it| it.contains(TRACKER))
    })
    .await;
    sleep(Duration::from_secs(120)).await;
    let still = tracker(&play).await;
    assert_eq!((still.data, still.metadata.owner_references), (theirs.data, None));
    maps.delete(TRACKER, &DeleteParams::default()).await.unwrap();
    play.until_settled().await;
    assert_eq!(play.holders(), BTreeSet::from([0, 1, 2, 3]));
    assert_eq!(play.warning("KubernetesClientException").await, None);
}
