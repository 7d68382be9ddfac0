//! A user takes off a generated rebalance the annotation by which it is approved: that is said, and nothing hangs in silence.

use std::collections::BTreeSet;
use std::time::Duration;

use evenkeel_api::KafkaRebalance;
use evenkeel_api::kafka::AutoRebalanceState;
use evenkeel_api::rebalance::RebalanceState;
use evenkeel_sim::cluster::NewTopic;
use http::{Method, Request};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::time::sleep;
use tower::service_fn;

use crate::play::{ADD, Play, REMOVE, mode, operator, scaling};
use crate::stage::patch;

/// A client for an operator whose rebalances somebody disapproves of as soon as they are made.
fn disapproved(inner: Client) -> Client {
    let service = service_fn(move |request: Request<Body>| {
        let inner = inner.clone();
        async move {
            let is_new = request.method() == Method::POST && request.uri().path().ends_with("/kafkarebalances");
            if !is_new {
                return inner.send(request).await;
            }
            let (head, body) = request.into_parts();
            let text = String::from_utf8(body.collect_bytes().await.unwrap().to_vec()).unwrap();
            let text = text.replace("\"strimzi.io/rebalance-auto-approval\":\"true\"", "\"taken\":\"off\"");
            inner.send(Request::from_parts(head, Body::from(text.into_bytes()))).await
        }
    });
    Client::new(service, "default")
}

/// The operator is followed by one whose rebalances nobody approves.
async fn disapprove(play: &mut Play) {
    play.operator.abort();
    let _ = (&mut play.operator).await;
    let mut context = play.stage.context.clone();
    context.client = disapproved(context.client);
    play.operator = tokio::spawn(operator(context, play.machines.clone(), play.room.clone()));
}

async fn approve(play: &Play, name: &str, notes: Value) {
    patch(&play.stage.api::<KafkaRebalance>(), name, json!({"metadata": {"annotations": notes}})).await;
}

#[tokio::test(start_paused = true)]
async fn a_drain_that_nobody_approves_says_so_and_goes_on_when_somebody_does() {
    let by_hand = json!({"strimzi.io/rebalance": "approve"});
    for approval in [by_hand, json!({"strimzi.io/rebalance-auto-approval": "true"})] {
        let mut play = Play::placed(4, scaling(), &[0, 1, 2, 3]).await;
        disapprove(&mut play).await;
        play.scale(3).await;
        play.until("it is said", async |play| {
            play.warning("AutoRebalanceWaiting").await.is_some_and(|it| it.contains("rebalance-auto-approval"))
        })
        .await;
        sleep(Duration::from_secs(300)).await;
        assert_eq!(play.rebalance(REMOVE).await.unwrap().state(), RebalanceState::ProposalReady, "as was asked for");
        approve(&play, REMOVE, approval).await;
        play.until("it goes", async |play| play.brokers().await.len() == 3).await;
        play.until_settled().await;
        assert_eq!(play.holders(), BTreeSet::from([0, 1, 2]));
        assert_eq!(play.warning("AutoRebalanceWaiting").await, None);
    }
}

#[tokio::test(start_paused = true)]
async fn an_imbalance_that_nobody_approves_holds_up_nobody() {
    let engine = json!({
        "autoRebalance": [mode("imbalance"), mode("add-brokers")],
        "config": {"anomaly.detection.goals": "ReplicaDistributionGoal"},
    });
    let mut play = Play::with(3, engine).await;
    disapprove(&mut play).await;
    let on_two = [&[0, 1][..]; 12];
    play.machines.world().with(|cluster| cluster.create_topic(&NewTopic::manual("drift", &on_two), false).unwrap());
    play.until("it is said", async |play| {
        play.warning("AutoRebalanceFailed").await.is_some_and(|it| it.contains("rebalance-auto-approval"))
    })
    .await;
    play.until("it is over", async |play| play.state().await == Some(AutoRebalanceState::Idle)).await;
    play.scale(4).await;
    play.until("a new broker's turn comes", async |play| play.rebalance(ADD).await.is_some()).await;
    approve(&play, ADD, json!({"strimzi.io/rebalance-auto-approval": "true"})).await;
    let is_on_it = |play: &Play| {
        play.machines.world().look(|cluster| {
            let records = (0..12).map(|number| cluster.registration("drift", number).unwrap());
            records.flat_map(|record| &record.replicas).any(|id| id.0 == 3)
        })
    };
    play.until("it gets data", async |play| is_on_it(play)).await;
}
