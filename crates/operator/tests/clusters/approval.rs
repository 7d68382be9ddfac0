//! A user takes off a generated rebalance the annotation by which it is approved: that is said, and nothing hangs in silence.

use std::collections::BTreeSet;
use std::time::Duration;

use evenkeel_api::KafkaRebalance;
use evenkeel_api::kafka::AutoRebalanceState;
use evenkeel_api::rebalance::RebalanceState;
use evenkeel_sim::cluster::NewTopic;
use kube::ResourceExt;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::play::{Play, REMOVE, mode, scaling};
use crate::stage::patch;

/// Takes the approval off the first rebalance that is made, before it has a proposal.
async fn disapprove(play: &Play) -> String {
    let rebalances = play.stage.api::<KafkaRebalance>();
    loop {
        let all = rebalances.list(&Default::default()).await.unwrap().items;
        if let Some(made) = all.into_iter().find(|it| it.name_any().contains("-auto-rebalancing-")) {
            assert!(made.state() != RebalanceState::Rebalancing, "too late");
            approve(play, &made.name_any(), json!({"strimzi.io/rebalance-auto-approval": null})).await;
            return made.name_any();
        }
        sleep(Duration::from_millis(5)).await;
    }
}

async fn approve(play: &Play, name: &str, notes: Value) {
    patch(&play.stage.api::<KafkaRebalance>(), name, json!({"metadata": {"annotations": notes}})).await;
}

#[tokio::test(start_paused = true)]
async fn a_drain_that_nobody_approves_says_so_and_goes_on_when_somebody_does() {
    let by_hand = json!({"strimzi.io/rebalance": "approve"});
    for approval in [by_hand, json!({"strimzi.io/rebalance-auto-approval": "true"})] {
        let play = Play::placed(4, scaling(), &[0, 1, 2, 3]).await;
        play.scale(3).await;
        assert_eq!(disapprove(&play).await, REMOVE);
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
    let play = Play::with(3, engine).await;
    let on_two = [&[0, 1][..]; 12];
    play.machines.world.with(|cluster| cluster.create_topic(&NewTopic::manual("drift", &on_two), false).unwrap());
    let made = disapprove(&play).await;
    play.until("it is said", async |play| {
        play.warning("AutoRebalanceFailed").await.is_some_and(|it| it.contains("rebalance-auto-approval"))
    })
    .await;
    play.until("it is over", async |play| {
        play.rebalance(&made).await.is_none() && play.state().await == Some(AutoRebalanceState::Idle)
    })
    .await;
    play.scale(4).await;
    play.until("a new broker gets data", async |play| play.holders().contains(&3)).await;
}
