//! Users who lay hands on what automatic rebalancing makes, and on the names that it needs: whoever does is told, and
//! nothing hangs.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use evenkeel_api::kafka::AutoRebalanceState;
use evenkeel_api::{Kafka, KafkaRebalance};
use http::{Method, Request, Response, StatusCode};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::DeleteParams;
use kube::client::Body;
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::time::sleep;
use tower::service_fn;

use crate::play::{ADD, Play, REMOVE, operator, scaling};
use crate::stage::{CLUSTER, NAMESPACE, a_while, create, patch, until};

/// A drain that moves data.
async fn draining() -> Play {
    let play = Play::placed(4, scaling(), &[0, 1, 2, 3]).await;
    play.scale(3).await;
    play.until("data moves", async |play| play.is_moving(REMOVE).await).await;
    play
}

async fn meddle(play: &Play, name: &str, change: Value) {
    patch(&play.stage.api::<KafkaRebalance>(), name, change).await;
}

#[tokio::test(start_paused = true)]
async fn a_mark_makes_no_template_of_what_is_waited_for() {
    for mark in [json!({"strimzi.io/rebalance-template": "true"}), json!({"strimzi.io/rebalance": "template"})] {
        let play = draining().await;
        meddle(&play, REMOVE, json!({"metadata": {"annotations": mark}})).await;
        play.until("it is said", async |play| {
            play.warning("InvalidAnnotation").await.is_some_and(|it| it.contains(REMOVE))
        })
        .await;
        play.until("it goes all the same", async |play| play.brokers().await.len() == 3).await;
        play.until_settled().await;
        assert_eq!(play.holders(), BTreeSet::from([0, 1, 2]));
        assert_eq!(play.warning("InvalidAnnotation").await, None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_namespace_goes_although_the_label_or_the_mark_of_a_drain_was_changed() {
    let changes = [
        json!({"metadata": {"labels": {"strimzi.io/cluster": null}}}),
        json!({"metadata": {"labels": {"strimzi.io/cluster": "other"}}}),
        json!({"metadata": {"annotations": {"strimzi.io/rebalance": "template"}}}),
    ];
    for change in changes {
        let play = draining().await;
        meddle(&play, REMOVE, change).await;
        let namespaces = Api::<Namespace>::all(play.stage.client.clone());
        namespaces.delete(NAMESPACE, &DeleteParams::default()).await.unwrap();
        until("nothing is left", || async { namespaces.get_opt(NAMESPACE).await.unwrap().is_none() }).await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_has_lost_its_label_goes_with_its_kafka() {
    let play = draining().await;
    // Nobody finishes it.
    play.operator.abort();
    let _only = tokio::spawn(crate::scene::only_kafkas(play.stage.context.clone(), play.machines.clone()));
    meddle(
        &play,
        REMOVE,
        json!({"metadata": {"labels": {"strimzi.io/cluster": null}, "finalizers": ["strimzi.io/auto-rebalancing"]}}),
    )
    .await;
    play.stage.api::<Kafka>().delete(CLUSTER, &DeleteParams::default()).await.unwrap();
    play.until("it is gone", async |play| play.rebalance(REMOVE).await.is_none()).await;
}

/// A user's template, and a user's rebalance, under the name of ours.
#[tokio::test(start_paused = true)]
async fn a_name_that_is_taken_is_said_and_what_is_there_is_left_alone() {
    let template = json!({"annotations": {"strimzi.io/rebalance-template": "true"}});
    let rebalance = json!({"labels": {"strimzi.io/cluster": CLUSTER}});
    for metadata in [template, rebalance] {
        let play = Play::with(3, scaling()).await;
        let rebalances = play.stage.api::<KafkaRebalance>();
        let mut theirs = json!({"metadata": metadata, "spec": {}});
        theirs["metadata"]["name"] = json!(ADD);
        let made = create(&rebalances, theirs).await;
        play.until("it is said", async |play| {
            play.warning("InvalidResourceException").await.is_some_and(|it| it.contains(ADD))
        })
        .await;
        play.scale(4).await;
        play.until("the new one is there", async |play| play.brokers().await.len() == 4).await;
        sleep(Duration::from_secs(60)).await;
        let auto = play.status().await.auto_rebalance.unwrap();
        assert_eq!((auto.state, auto.modes[0].brokers.clone()), (AutoRebalanceState::Idle, vec![3]), "it waits");
        let still = rebalances.get(ADD).await.unwrap();
        assert_eq!((still.metadata.uid, still.metadata.deletion_timestamp), (made.metadata.uid, None));

        rebalances.delete(ADD, &DeleteParams::default()).await.unwrap();
        play.until("it gets its data", async |play| play.holders().contains(&3)).await;
        play.until_settled().await;
        assert_eq!(play.warning("InvalidResourceException").await, None);
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_deletes_a_drain_mid_run_is_told_and_it_begins_again() {
    let play = draining().await;
    let first = play.rebalance(REMOVE).await.unwrap().metadata.uid;
    meddle(&play, REMOVE, json!({"metadata": {"finalizers": null}})).await;
    let _ = play.stage.api::<KafkaRebalance>().delete(REMOVE, &DeleteParams::default()).await;
    play.until("it is said", async |play| {
        play.warning("AutoRebalanceFailed").await.is_some_and(|it| it.contains("somebody removed"))
            || play.brokers().await.len() == 3
    })
    .await;
    play.until("another one, or none, is needed", async |play| {
        let now = play.rebalance(REMOVE).await;
        now.is_some_and(|it| it.metadata.uid != first) || play.brokers().await.len() == 3
    })
    .await;
    play.until("it goes", async |play| play.brokers().await.len() == 3).await;
    play.until_settled().await;
    assert_eq!(play.holders(), BTreeSet::from([0, 1, 2]));
    assert_eq!(play.warning("AutoRebalanceFailed").await, None, "it is over");
}

/// A plain `kubectl delete`: what moves data comes to its end, and counts as what it is.
#[tokio::test(start_paused = true)]
async fn a_scale_up_that_is_deleted_mid_run_ends_well_and_is_not_repeated() {
    let play = Play::with(3, scaling()).await;
    play.scale(4).await;
    play.until("data moves", async |play| play.is_moving(ADD).await).await;
    let first = play.rebalance(ADD).await.unwrap().metadata.uid;
    play.stage.api::<KafkaRebalance>().delete(ADD, &DeleteParams::default()).await.unwrap();
    play.until("it is over, or made anew", async |play| {
        play.rebalance(ADD).await.is_none_or(|now| now.metadata.uid != first)
    })
    .await;
    a_while().await;
    assert!(play.is_settled().await, "{:?}", play.told().await);
    assert_eq!(play.holders(), BTreeSet::from([0, 1, 2, 3]));
    assert_eq!(play.warning("AutoRebalanceStopped").await, None);
}

#[tokio::test(start_paused = true)]
async fn whoever_edits_a_drain_mid_run_does_not_change_who_goes() {
    let play = draining().await;
    meddle(&play, REMOVE, json!({"spec": {"brokers": [0]}})).await;
    play.until("it goes", async |play| play.brokers().await.len() == 3).await;
    play.until_settled().await;
    assert_eq!(play.holders(), BTreeSet::from([0, 1, 2]));
}

/// A client for an operator whose new rebalances the API server refuses, for as long as that is set: a quota, a webhook.
fn refused(inner: Client, refuses: Arc<AtomicBool>) -> Client {
    let service = service_fn(move |request: Request<Body>| {
        let (inner, refuses) = (inner.clone(), Arc::clone(&refuses));
        async move {
            let is_new = request.method() == Method::POST && request.uri().path().ends_with("/kafkarebalances");
            if is_new && refuses.load(Ordering::SeqCst) {
                let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden",
                    "message": "exceeded quota: rebalances", "code": 403});
                let body = Body::from(status.to_string().into_bytes());
                return Ok(Response::builder().status(StatusCode::FORBIDDEN).body(body).unwrap());
            }
            inner.send(request).await
        }
    });
    Client::new(service, "default")
}

#[tokio::test(start_paused = true)]
async fn what_the_api_server_refuses_is_said_once_and_done_when_it_may() {
    let play = Play::with(3, scaling()).await;
    play.operator.abort();
    let refuses = Arc::new(AtomicBool::new(true));
    let mut context = play.stage.context.clone();
    context.client = refused(context.client, Arc::clone(&refuses));
    let _next = tokio::spawn(operator(context, play.machines.clone(), play.room.clone()));
    play.scale(4).await;
    play.until("it is said", async |play| play.warning("KubernetesClientException").await.is_some()).await;
    let said = play.warning("KubernetesClientException").await.unwrap();
    assert!(said.contains(ADD) && said.contains("exceeded quota"), "{said}");
    a_while().await;
    play.stage.writes();
    let before = play.stage.looks();
    sleep(Duration::from_secs(300)).await;
    let looks = play.stage.looks() - before;
    assert!(looks < 30, "{looks} looks in five minutes");
    let statuses = play.stage.writes().into_iter().filter(|it| it.ends_with("/kafkas/my-cluster/status")).count();
    assert_eq!(statuses, 0, "nothing new is known");
    assert!(play.warning("KubernetesClientException").await.is_some());
    let told = crate::scene::events(&play.stage, "KubernetesClientException").await;
    assert_eq!(told.len(), 1, "{told:?}");

    refuses.store(false, Ordering::SeqCst);
    play.until("it gets its data", async |play| play.holders().contains(&3)).await;
    play.until_settled().await;
    assert_eq!(play.warning("KubernetesClientException").await, None);
}
