//! Brokers that come and go, and modes that come and go, while something else is under way. What the controller of rebalances
//! would say is said by hand, but where data has to move.

use std::time::Duration;

use evenkeel_api::kafka::AutoRebalanceState;
use evenkeel_api::{Kafka, KafkaNodePool};
use evenkeel_sim::cluster::NewTopic;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::DeleteParams;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::machines::Machines;
use crate::play::{ADD, MAP, Play, REMOVE, scaling};
use crate::scene::{
    auto, brokers, change, cluster, is_idle, is_ready, pool, rebalance, scale, tell_of, usual, warning,
};
use crate::stage::{CLUSTER, Stage, a_while, create, patch, until};

const A1: &str = "my-cluster-auto-rebalancing-imbalance-a1";

/// A cluster in these modes whose last broker holds data.
async fn uneven(modes: &[&str], config: Value) -> (Stage, Machines) {
    let stage = Stage::new().await;
    let mut spec = usual();
    spec["cruiseControl"]["autoRebalance"] = modes.iter().map(|mode| json!({"mode": mode})).collect();
    spec["cruiseControl"]["config"] = config;
    let machines = cluster(&stage, spec).await;
    until("it is ready", || is_ready(&stage)).await;
    until("its engine is, too", || async { warning(&stage, "AutoRebalanceWaiting").await.is_none() }).await;
    machines.world().with(|cluster| cluster.create_topic(&NewTopic::manual("orders", &[&[2, 0]]), false).unwrap());
    sleep(Duration::from_secs(10)).await;
    (stage, machines)
}

async fn found(stage: &Stage, fixable: &str, unfixable: Option<&str>) {
    let data = json!({"data": {"fixableAnomalies": fixable, "unfixableAnomalies": unfixable}});
    patch(&stage.api::<ConfigMap>(), MAP, data).await;
}

/// Something was found, and is being mended.
async fn mending(stage: &Stage) {
    found(stage, "- a1: [RackAwareGoal]", None).await;
    until("it begins", || async { rebalance(stage, A1).await.is_some() }).await;
    tell_of(stage, A1, "Rebalancing", None).await;
    a_while().await;
}

#[tokio::test(start_paused = true)]
async fn brokers_that_go_wait_until_an_imbalance_is_mended() {
    let (stage, _machines) = uneven(&["imbalance", "remove-brokers"], json!({})).await;
    mending(&stage).await;
    scale(&stage, 2).await;
    until("it is said", || async { warning(&stage, "AutoRebalanceWaiting").await.is_some_and(|it| it.contains(A1)) })
        .await;
    sleep(Duration::from_secs(120)).await;
    let now = auto(&stage).await;
    assert_eq!(now.state, AutoRebalanceState::RebalanceOnImbalance);
    let queued: Vec<_> = now.modes.iter().map(|it| (it.mode.to_string(), it.brokers.clone())).collect();
    assert_eq!(queued, [("remove-brokers".to_owned(), vec![2]), ("imbalance".to_owned(), vec![])]);
    assert!(rebalance(&stage, REMOVE).await.is_none() && brokers(&stage).await.len() == 3);
    tell_of(&stage, A1, "Ready", None).await;
    until("their turn comes", || async { rebalance(&stage, REMOVE).await.is_some() }).await;
    assert!(rebalance(&stage, A1).await.is_none(), "never two at once");
}

#[tokio::test(start_paused = true)]
async fn brokers_that_go_need_not_wait_if_so_asked() {
    let preempt = json!({"evenkeel.auto.rebalance.preempt": "true"});
    let (stage, _machines) = uneven(&["imbalance", "remove-brokers"], preempt).await;
    mending(&stage).await;
    scale(&stage, 2).await;
    until("it is told to stop", || async {
        let notes = rebalance(&stage, A1).await.unwrap().metadata.annotations.unwrap_or_default();
        notes.get("strimzi.io/rebalance").is_some_and(|ask| ask == "stop")
    })
    .await;
    assert!(rebalance(&stage, REMOVE).await.is_none(), "it has not stopped yet");
    tell_of(&stage, A1, "Stopped", None).await;
    until("their turn comes", || async { rebalance(&stage, REMOVE).await.is_some() }).await;
    assert_eq!(warning(&stage, "AutoRebalanceStopped").await, None, "no user has stopped it");
}

/// A blocked scale-down may stand for months.
#[tokio::test(start_paused = true)]
async fn brokers_that_nobody_empties_hold_up_no_imbalance() {
    let (stage, _machines) = uneven(&["imbalance", "add-brokers"], json!({})).await;
    scale(&stage, 2).await;
    until("they stay", || async { warning(&stage, "ScaleDownPreventionCheck").await.is_some() }).await;
    mending(&stage).await;
    assert_eq!(auto(&stage).await.state, AutoRebalanceState::RebalanceOnImbalance);
    assert_eq!(brokers(&stage).await.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_user_s_rebalance_that_gets_no_proposal_is_named() {
    let (stage, _machines) = uneven(&["imbalance"], json!({})).await;
    let mine = json!({"metadata": {"name": "mine", "labels": {"strimzi.io/cluster": CLUSTER}}, "spec": {}});
    create(&stage.api::<evenkeel_api::KafkaRebalance>(), mine).await;
    until("it is said", || async {
        warning(&stage, "AutoRebalanceWaiting").await.is_some_and(|it| it.contains("KafkaRebalance mine"))
    })
    .await;
    tell_of(&stage, "mine", "ProposalReady", None).await;
    until("it has one", || async { warning(&stage, "AutoRebalanceWaiting").await.is_none() }).await;
}

#[tokio::test(start_paused = true)]
async fn an_imbalance_that_cannot_be_mended_is_said_with_its_cause_and_all_is_forgotten() {
    let (stage, _machines) = uneven(&["imbalance"], json!({})).await;
    mending(&stage).await;
    found(&stage, "- a3: [RackAwareGoal]", Some("- a4: [DiskCapacityGoal]")).await;
    until("it is said", || async { warning(&stage, "UnfixableViolatedGoal").await.is_some() }).await;
    tell_of(&stage, A1, "NotReady", Some(("CruiseControlRestException", "no such goal: Nonsense"))).await;
    until("it is over", || async { is_idle(&stage).await && rebalance(&stage, A1).await.is_none() }).await;
    assert!(warning(&stage, "AutoRebalanceFailed").await.unwrap().contains("no such goal: Nonsense"));
    let map = stage.api::<ConfigMap>().get(MAP).await.unwrap().data.unwrap_or_default();
    assert!(map.values().all(String::is_empty), "{map:?}");
    assert_eq!(warning(&stage, "UnfixableViolatedGoal").await, None);
}

#[tokio::test(start_paused = true)]
async fn whoever_stops_it_and_removes_the_mode_hears_no_more_of_it() {
    let (stage, _machines) = uneven(&["imbalance", "add-brokers"], json!({})).await;
    mending(&stage).await;
    tell_of(&stage, A1, "Stopped", None).await;
    until("it is said", || async { warning(&stage, "AutoRebalanceStopped").await.is_some() }).await;
    change(&stage, json!({"spec": {"cruiseControl": {"autoRebalance": [{"mode": "add-brokers"}]}}})).await;
    let maps = stage.api::<ConfigMap>();
    until("the map is gone", || async { maps.get_opt(MAP).await.unwrap().is_none() }).await;
    until("it is quiet", || async { warning(&stage, "AutoRebalanceStopped").await.is_none() }).await;
    assert!(is_idle(&stage).await && rebalance(&stage, A1).await.is_none());
}

/// Told by hand in the midst of a drain that there is nothing to check: the broker goes with what it still holds.
#[tokio::test(start_paused = true)]
async fn whoever_wants_no_check_any_more_need_not_wait_for_the_drain() {
    let play = Play::placed(4, scaling(), &[0, 1, 2, 3]).await;
    play.scale(3).await;
    play.until("data moves", async |play| play.is_moving(REMOVE).await).await;
    let unchecked = json!({"metadata": {"annotations": {"strimzi.io/skip-broker-scaledown-check": "true"}}});
    patch(&play.stage.api::<Kafka>(), CLUSTER, unchecked).await;
    play.until("it goes", async |play| play.brokers().await.len() == 3).await;
    assert!(play.holders().contains(&3), "it went with its data");
    play.until("nothing is under way any more", async |play| {
        play.state().await == Some(AutoRebalanceState::Idle) && play.rebalance(REMOVE).await.is_none()
    })
    .await;
}

/// Nobody can guard that, and nothing hangs.
#[tokio::test(start_paused = true)]
async fn a_pool_that_is_deleted_takes_its_brokers_out_of_the_queue() {
    for name in [ADD, REMOVE] {
        let play = Play::with(3, scaling()).await;
        let pools = play.stage.api::<KafkaNodePool>();
        create(&pools, pool("more", 1, &["broker"], json!({}))).await;
        play.until("data moves", async |play| play.is_moving(ADD).await).await;
        if name == REMOVE {
            play.until_settled().await;
            patch(&pools, "more", json!({"spec": {"replicas": 0}})).await;
            play.until("data moves back", async |play| play.is_moving(REMOVE).await).await;
        }
        pools.delete("more", &DeleteParams::default()).await.unwrap();
        play.until("they are gone", async |play| play.brokers().await.len() == 3).await;
        // What only the broker had can neither be copied on nor be taken back: the engine waits half an hour for it to return.
        sleep(Duration::from_secs(1_800)).await;
        play.until("nothing is under way any more", async |play| {
            play.status()
                .await
                .auto_rebalance
                .is_some_and(|it| it.state == AutoRebalanceState::Idle && it.modes.is_empty())
                && play.rebalance(name).await.is_none()
        })
        .await;
    }
}
