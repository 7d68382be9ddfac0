//! However a generated rebalance ends, the machine goes on. What its controller would say of it is said by hand.

use std::time::Duration;

use evenkeel_api::KafkaRebalance;
use evenkeel_api::kafka::AutoRebalanceState;
use evenkeel_sim::cluster::NewTopic;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;
use tokio::time::sleep;

use crate::machines::Machines;
use crate::play::{ADD, REMOVE};
use crate::scene::{
    auto, brokers, change, cluster, is_idle, is_ready, rebalance, scale, status, tell_of, usual, warning,
};
use crate::stage::{Stage, a_while, patch, until};

/// Four brokers, of which the last one holds data and is to go.
async fn draining() -> (Stage, Machines) {
    let stage = Stage::new().await;
    let machines = cluster(&stage, usual()).await;
    until("it is ready", || is_ready(&stage)).await;
    scale(&stage, 4).await;
    until("it gets data", || async { rebalance(&stage, ADD).await.is_some() }).await;
    tell_of(&stage, ADD, "Ready", None).await;
    until("that is over", || is_idle(&stage)).await;
    machines.world().with(|cluster| cluster.create_topic(&NewTopic::manual("orders", &[&[3, 0]]), false).unwrap());
    a_while().await;
    scale(&stage, 3).await;
    until("it is to be emptied", || async { rebalance(&stage, REMOVE).await.is_some() }).await;
    tell_of(&stage, REMOVE, "Rebalancing", None).await;
    (stage, machines)
}

async fn uid(stage: &Stage, name: &str) -> Option<String> {
    rebalance(stage, name).await.and_then(|it| it.metadata.uid)
}

/// The drain has done its work.
async fn drained(stage: &Stage, machines: &Machines) {
    machines.world().with(|cluster| cluster.delete_topic("orders").unwrap());
    tell_of(stage, REMOVE, "Ready", None).await;
    until("it goes", || async { brokers(stage).await.len() == 3 }).await;
    until("that is over", || is_idle(stage)).await;
    for reason in ["AutoRebalanceFailed", "AutoRebalanceStopped", "AutoRebalanceWaiting"] {
        assert_eq!(warning(stage, reason).await, None, "it is over");
    }
}

#[tokio::test(start_paused = true)]
async fn what_passes_by_itself_is_waited_for() {
    let (stage, machines) = draining().await;
    let first = uid(&stage, REMOVE).await;
    tell_of(&stage, REMOVE, "NotReady", Some(("NotEnoughData", "too few windows"))).await;
    until("it is said", || async {
        warning(&stage, "AutoRebalanceWaiting").await.is_some_and(|it| it.contains("too few windows"))
    })
    .await;
    sleep(Duration::from_secs(300)).await;
    assert_eq!(
        (uid(&stage, REMOVE).await, auto(&stage).await.state),
        (first, AutoRebalanceState::RebalanceOnScaleDown)
    );
    drained(&stage, &machines).await;
}

#[tokio::test(start_paused = true)]
async fn a_drain_that_fails_is_said_with_its_cause_and_made_again_later() {
    let (stage, machines) = draining().await;
    let first = uid(&stage, REMOVE).await;
    tell_of(&stage, REMOVE, "NotReady", Some(("CruiseControlRestException", "no such goal: Nonsense"))).await;
    until("it is said", || async {
        warning(&stage, "AutoRebalanceFailed").await.is_some_and(|it| it.contains("no such goal: Nonsense"))
    })
    .await;
    until("it is gone", || async { rebalance(&stage, REMOVE).await.is_none() }).await;
    sleep(Duration::from_secs(20)).await;
    assert!(rebalance(&stage, REMOVE).await.is_none(), "not at once");
    assert!(warning(&stage, "AutoRebalanceWaiting").await.unwrap().contains("the next one is at"));
    until("another one is made", || async { uid(&stage, REMOVE).await.is_some_and(|it| Some(it) != first) }).await;
    assert_eq!(brokers(&stage).await.len(), 4);
    drained(&stage, &machines).await;
}

#[tokio::test(start_paused = true)]
async fn a_drain_that_ends_with_data_left_says_what_is_left() {
    let (stage, machines) = draining().await;
    let first = uid(&stage, REMOVE).await;
    tell_of(&stage, REMOVE, "Ready", None).await;
    until("it is said", || async {
        warning(&stage, "AutoRebalanceFailed").await.is_some_and(|it| it.contains("data is left: broker 3 holds data"))
    })
    .await;
    assert_eq!(brokers(&stage).await.len(), 4);
    until("another one is made", || async { uid(&stage, REMOVE).await.is_some_and(|it| Some(it) != first) }).await;
    drained(&stage, &machines).await;
}

#[tokio::test(start_paused = true)]
async fn a_drain_that_is_stopped_begins_again_while_its_brokers_are_to_go() {
    let (stage, machines) = draining().await;
    let first = uid(&stage, REMOVE).await;
    tell_of(&stage, REMOVE, "Stopped", None).await;
    until("it is said", || async { warning(&stage, "AutoRebalanceStopped").await.is_some() }).await;
    until("another one is made", || async { uid(&stage, REMOVE).await.is_some_and(|it| Some(it) != first) }).await;
    drained(&stage, &machines).await;
}

#[tokio::test(start_paused = true)]
async fn a_drain_that_is_paused_is_left_alone() {
    let (stage, machines) = draining().await;
    tell_of(&stage, REMOVE, "ReconciliationPaused", None).await;
    until("it is said", || async {
        warning(&stage, "AutoRebalanceWaiting").await.is_some_and(|it| it.contains("is paused"))
    })
    .await;
    sleep(Duration::from_secs(300)).await;
    assert!(rebalance(&stage, REMOVE).await.unwrap().metadata.deletion_timestamp.is_none());
    tell_of(&stage, REMOVE, "Rebalancing", None).await;
    a_while().await;
    drained(&stage, &machines).await;
}

#[tokio::test(start_paused = true)]
async fn a_drain_that_was_removed_by_force_is_missed() {
    let (stage, machines) = draining().await;
    // Only what was seen can be missed: before that it passes for one that was never made.
    a_while().await;
    let rebalances = stage.api::<KafkaRebalance>();
    patch(&rebalances, REMOVE, json!({"metadata": {"finalizers": null}})).await;
    rebalances.delete(REMOVE, &DeleteParams::default()).await.unwrap();
    until("it is said", || async {
        warning(&stage, "AutoRebalanceFailed").await.is_some_and(|it| it.contains("somebody removed"))
    })
    .await;
    until("another one is made", || async { rebalance(&stage, REMOVE).await.is_some() }).await;
    drained(&stage, &machines).await;
}

/// Ours never have two; of somebody else's the first counts, and none at all is a new one.
#[tokio::test(start_paused = true)]
async fn of_two_states_the_first_counts_and_none_is_a_beginning() {
    let (stage, machines) = draining().await;
    let both = json!({"status": {"conditions": [
        {"type": "Rebalancing", "status": "True"}, {"type": "Ready", "status": "True"}]}});
    let rebalances = stage.api::<KafkaRebalance>();
    for said in [both, json!({"status": null})] {
        rebalances.patch_status(REMOVE, &PatchParams::default(), &Patch::Merge(said)).await.unwrap();
        sleep(Duration::from_secs(60)).await;
        assert_eq!(auto(&stage).await.state, AutoRebalanceState::RebalanceOnScaleDown);
        assert!(rebalance(&stage, REMOVE).await.is_some());
    }
    drained(&stage, &machines).await;
}

#[tokio::test(start_paused = true)]
async fn a_scale_up_that_is_stopped_or_fails_for_good_is_over() {
    let stage = Stage::new().await;
    cluster(&stage, usual()).await;
    until("it is ready", || is_ready(&stage)).await;
    let why = ("CruiseControlRestException", "no such goal: Nonsense");
    for (replicas, state, because, reason) in
        [(4, "Stopped", None, "AutoRebalanceStopped"), (5, "NotReady", Some(why), "AutoRebalanceFailed")]
    {
        scale(&stage, replicas).await;
        until("it begins", || async { rebalance(&stage, ADD).await.is_some() }).await;
        tell_of(&stage, ADD, state, because).await;
        until("it is said", || async { warning(&stage, reason).await.is_some() }).await;
        until("it is over", || async { is_idle(&stage).await && rebalance(&stage, ADD).await.is_none() }).await;
        sleep(Duration::from_secs(300)).await;
        assert!(is_idle(&stage).await && rebalance(&stage, ADD).await.is_none(), "and stays so");
    }
    assert!(warning(&stage, "AutoRebalanceFailed").await.unwrap().contains("no such goal: Nonsense"));
}

#[tokio::test(start_paused = true)]
async fn nothing_of_it_is_left_when_it_is_switched_off() {
    let (stage, machines) = draining().await;
    assert!(status(&stage).await.auto_rebalance.is_some());
    change(&stage, json!({"spec": {"cruiseControl": {"autoRebalance": null}}})).await;
    until("it is told to stop", || async {
        let notes = rebalance(&stage, REMOVE).await.unwrap().metadata.annotations.unwrap_or_default();
        notes.get("strimzi.io/rebalance").is_some_and(|ask| ask == "stop")
    })
    .await;
    tell_of(&stage, REMOVE, "Stopped", None).await;
    until("it is gone", || async { rebalance(&stage, REMOVE).await.is_none() }).await;
    until("the status says nothing of it", || async { status(&stage).await.auto_rebalance.is_none() }).await;
    let tracker = "my-cluster-rebalancing-tracker";
    until("the memory is gone", || async {
        stage.api::<k8s_openapi::api::core::v1::ConfigMap>().get_opt(tracker).await.unwrap().is_none()
    })
    .await;
    assert_eq!(brokers(&stage).await.len(), 4, "it still holds data");
    machines.world().with(|cluster| cluster.delete_topic("orders").unwrap());
    until("emptied by hand it goes", || async { brokers(&stage).await.len() == 3 }).await;
}
