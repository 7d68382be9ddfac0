//! Automatic rebalancing from beginning to end: all controllers, the real engine and simulated brokers, in paused time.

use std::collections::BTreeSet;
use std::time::Duration;

use evenkeel_api::kafka::AutoRebalanceState;
use evenkeel_api::{Kafka, KafkaNodePool, KafkaRebalance};
use evenkeel_sim::{BrokerId, Cluster};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{DeleteParams, ListParams};
use serde_json::json;
use tokio::time::sleep;

use crate::chaos::unrest_of;
use crate::play::{ADD, Play, REMOVE, mode, scaling, violations, watching};
use crate::rights;
use crate::scene::{is_registered, pool};
use crate::stage::{CLUSTER, NAMESPACE, a_while, create, patch, until};

#[tokio::test(start_paused = true)]
async fn brokers_that_come_get_data() {
    let play = Play::with(3, scaling()).await;
    assert!(play.is_settled().await, "a new cluster is no scale-up");
    play.scale(5).await;
    play.until("data moves", async |play| play.is_moving(ADD).await).await;
    let made = play.rebalance(ADD).await.unwrap();
    assert_eq!((made.spec.mode.as_str(), made.spec.brokers.clone()), ("add-brokers", Some(vec![3, 4])));
    let notes = made.metadata.annotations.unwrap();
    assert_eq!(notes["strimzi.io/rebalance-auto-approval"], "true");
    let finalizers = made.metadata.finalizers.unwrap();
    assert!(finalizers.contains(&"strimzi.io/auto-rebalancing".to_owned()), "{finalizers:?}");
    assert_eq!(play.state().await, Some(AutoRebalanceState::RebalanceOnScaleUp));
    play.until_settled().await;
    assert_eq!(play.holders(), BTreeSet::from([0, 1, 2, 3, 4]));
    let told = play.told().await;
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].starts_with("from Idle to RebalanceOnScaleUp to brokers [3, 4]"), "{told:?}");
    rights::check(&play.stage.calls());
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_was_evicted_keeps_nobody_waiting() {
    let play = Play::with(3, scaling()).await;
    let pods = play.stage.api::<Pod>();
    let engine = pods.list(&ListParams::default().labels("strimzi.io/name=my-cluster-cruise-control")).await.unwrap();
    let engine = engine.items.into_iter().next().expect("an engine");
    // Kubernetes keeps it until somebody deletes it; its Deployment has made another, on another node.
    let name = "my-cluster-cruise-control-evicted";
    let mut evicted = json!({"metadata": {"name": name, "labels": engine.metadata.labels}, "spec": engine.spec});
    evicted["spec"]["nodeName"] = json!("crowded");
    create(&pods, evicted).await;
    play.stage.tell_of(name, "Failed", false).await;
    play.scale(4).await;
    play.until("the new one has data", async |play| play.holders().contains(&3)).await;
    play.until_settled().await;
}

#[tokio::test(start_paused = true)]
async fn brokers_that_go_are_emptied_first_and_stay_until_then() {
    let play = Play::placed(4, scaling(), &[0, 1, 2, 3]).await;
    play.scale(3).await;
    play.until("data moves", async |play| play.is_moving(REMOVE).await).await;
    assert_eq!(play.brokers().await.len(), 4);
    let looks = play.stage.looks();
    sleep(Duration::from_secs(10)).await;
    assert!(play.is_moving(REMOVE).await, "it is watched while it moves");
    let looks = play.stage.looks() - looks;
    assert!(looks <= 3, "progress is no reason to look at all of a cluster: {looks} looks in ten seconds");
    play.until("the drained one goes", async |play| {
        let gone = play.brokers().await.len() == 3;
        assert!(!gone || !play.holders().contains(&3), "it went with its data");
        gone
    })
    .await;
    play.until_settled().await;
    assert_eq!(play.holders(), BTreeSet::from([0, 1, 2]));
    let is_known = || {
        let listed = |cluster: &mut Cluster| cluster.describe_brokers(BrokerId(0), true).iter().any(|it| it.id.0 == 3);
        play.machines.world().look(listed)
    };
    play.until("it is struck off Kafka's list", async |_| !is_known()).await;
    let told = play.told().await;
    assert!(told[0].starts_with("from Idle to RebalanceOnScaleDown of brokers [3]"), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn what_comes_waits_for_what_goes() {
    let play = Play::placed(4, scaling(), &[0, 1, 2, 3]).await;
    create(&play.stage.api::<KafkaNodePool>(), pool("more", 1, &["broker"], json!({}))).await;
    play.scale(3).await;
    play.until("the drain runs", async |play| play.is_moving(REMOVE).await).await;
    let auto = play.status().await.auto_rebalance.unwrap();
    let queued: Vec<(String, Vec<i32>)> = auto.modes.into_iter().map(|it| (it.mode.to_string(), it.brokers)).collect();
    assert_eq!(queued, [("remove-brokers".to_owned(), vec![3]), ("add-brokers".to_owned(), vec![4])]);
    play.until_settled().await;
    assert_eq!(play.holders(), BTreeSet::from([0, 1, 2, 4]));
    let told = play.told().await.join("; ");
    let (down, up) = (told.find("to RebalanceOnScaleDown"), told.find("to RebalanceOnScaleUp"));
    assert!(down.is_some() && down < up, "{told}");
}

#[tokio::test(start_paused = true)]
async fn what_was_refused_is_not_looked_at_again_and_again() {
    let play = Play::with(3, scaling()).await;
    patch(
        &play.stage.api::<Kafka>(),
        CLUSTER,
        json!({"spec": {"kafka": {"config": {"default.replication.factor": 5}}}}),
    )
    .await;
    play.until("it is refused", async |play| play.status().await.conditions.iter().any(|it| it.type_ == "NotReady"))
        .await;
    a_while().await;
    let looks = play.stage.looks();
    sleep(Duration::from_secs(600)).await;
    let looks = play.stage.looks() - looks;
    assert!(looks <= 10, "{looks} looks in ten minutes");
}

#[tokio::test(start_paused = true)]
async fn load_that_has_drifted_is_mended() {
    let play = watching(None, json!({})).await;
    play.until("it is even", async |play| play.holders().len() == 3).await;
    play.until_settled().await;
    assert_eq!(violations(&play).await, "", "what was mended is forgotten");
    let told = play.told().await;
    assert!(told[0].starts_with("from Idle to RebalanceOnImbalance"), "{told:?}");
    assert_eq!(told.len(), 2, "once is enough: {told:?}");
}

#[tokio::test(start_paused = true)]
async fn an_engine_of_others_is_asked_what_it_found() {
    let play = watching(Some("quay.io/strimzi/kafka:latest"), json!({})).await;
    play.until("it is even", async |play| play.holders().len() == 3).await;
    play.until_settled().await;
    assert!(play.told().await[0].starts_with("from Idle to RebalanceOnImbalance"));
}

#[tokio::test(start_paused = true)]
async fn what_would_move_too_much_holds_up_nobody() {
    let config = json!({"evenkeel.auto.rebalance.max.data.mb": 1});
    let play = watching(Some("quay.io/strimzi/kafka:latest"), config).await;
    play.until("it is said", async |play| {
        play.warning("AutoRebalanceFailed").await.is_some_and(|it| it.contains("more than the 1 MB"))
    })
    .await;
    assert_eq!(play.holders(), BTreeSet::from([0, 1]), "nothing was moved");
    play.until("it is over", async |play| play.state().await == Some(AutoRebalanceState::Idle)).await;
    play.scale(4).await;
    play.until("a new broker gets data", async |play| play.holders().contains(&3)).await;
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_dies_goes_on_with_the_drain() {
    let play = Play::placed(4, scaling(), &[0, 1, 2, 3]).await;
    play.scale(3).await;
    play.until("data moves", async |play| play.is_moving(REMOVE).await).await;
    let first = play.rebalance(REMOVE).await.unwrap().metadata.uid;
    play.room.kill();
    play.until("it is gone", async |play| {
        let now = play.rebalance(REMOVE).await;
        assert!(now.as_ref().is_none_or(|it| it.metadata.uid == first), "one drain suffices");
        play.brokers().await.len() == 3
    })
    .await;
    play.until_settled().await;
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_forgets_is_asked_again_once_it_is_idle() {
    let play = Play::placed(4, scaling(), &[0, 1, 2, 3]).await;
    play.scale(3).await;
    play.until("data moves", async |play| play.is_moving(REMOVE).await).await;
    let first = play.rebalance(REMOVE).await.unwrap().metadata.uid;
    play.room.kill_without_memory();
    play.until("a second one is made, or none is needed any more", async |play| {
        let now = play.rebalance(REMOVE).await;
        now.is_some_and(|it| it.metadata.uid != first) || play.brokers().await.len() == 3
    })
    .await;
    play.until("it is gone", async |play| play.brokers().await.len() == 3).await;
    play.until_settled().await;
    assert_eq!(play.holders(), BTreeSet::from([0, 1, 2]));
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_goes_mid_run_takes_everything_with_it() {
    let play = Play::placed(4, scaling(), &[0, 1, 2, 3]).await;
    play.scale(3).await;
    play.until("data moves", async |play| play.is_moving(REMOVE).await).await;
    let namespaces = kube::Api::<k8s_openapi::api::core::v1::Namespace>::all(play.stage.client.clone());
    namespaces.delete(NAMESPACE, &DeleteParams::default()).await.unwrap();
    until("nothing is left", || async { namespaces.get_opt(NAMESPACE).await.unwrap().is_none() }).await;
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_is_taken_away_in_the_midst_leaves_nothing_behind() {
    let mut engine = scaling();
    engine["brokerCapacity"] = json!({"inboundNetwork": "10MiB/s", "outboundNetwork": "10MiB/s"});
    let play = Play::placed(4, engine.clone(), &[0, 1, 2, 3]).await;
    play.scale(3).await;
    play.until("data moves", async |play| play.is_moving(REMOVE).await).await;
    patch(&play.stage.api::<Kafka>(), CLUSTER, json!({"spec": {"cruiseControl": null}})).await;
    play.until("it is gone", async |play| !play.stage.pods().await.iter().any(|pod| pod.contains("cruise"))).await;
    assert!(play.rebalance(REMOVE).await.is_none());
    let holders = play.holders();
    assert!(holders.contains(&3), "it was stopped");
    let left = |cluster: &mut Cluster| unrest_of(cluster, &BTreeSet::from([0, 1, 2, 3]));
    play.until("nothing is left in Kafka", async |play| play.machines.world().look(left).is_none()).await;
    // Nobody remembers that there was something to be done, but the wish stands: it is asked for anew.
    play.scale(4).await;
    patch(&play.stage.api::<Kafka>(), CLUSTER, json!({"spec": {"cruiseControl": engine}})).await;
    play.until("it is back", async |play| play.state().await == Some(AutoRebalanceState::Idle)).await;
    sleep(Duration::from_secs(300)).await;
    assert_eq!(play.holders(), holders, "an old plan is not carried on");
}

/// A life in which everything happens that the operator has rights for.
#[tokio::test(start_paused = true)]
async fn the_role_lists_what_is_used_and_nothing_else() {
    let engine = json!({"autoRebalance": [mode("add-brokers"), mode("remove-brokers"), {"mode": "imbalance"}]});
    let mut storage = pool("brokers", 4, &["broker"], json!({}));
    storage["spec"]["storage"] = json!({"type": "persistent-claim", "size": "1Gi", "deleteClaim": true});
    let play = Play::stored(storage, engine, &[0, 1]).await;
    // An empty one goes, with its claim; one that lost its owner gets it back.
    play.scale(3).await;
    play.until("it is gone", async |play| play.brokers().await.len() == 3).await;
    // The next engine knows its capacity no more, and plans nothing while Kafka still lists it.
    play.until("it is forgotten", async |play| !is_registered(&play.machines, 3)).await;
    let pods = play.stage.api::<Pod>();
    patch(&pods, "my-cluster-brokers-0", json!({"metadata": {"ownerReferences": null}})).await;
    let is_owned = async |_: &Play| pods.get("my-cluster-brokers-0").await.unwrap().metadata.owner_references.is_some();
    play.until("it is owned again", is_owned).await;
    // A user's rebalance is deleted while it moves data.
    let mine = json!({
        "metadata": {
            "name": "mine", "labels": {"strimzi.io/cluster": CLUSTER},
            "annotations": {"strimzi.io/rebalance-auto-approval": "true"},
        },
        "spec": {"template": {"name": "even"}},
    });
    create(&play.stage.api::<KafkaRebalance>(), mine).await;
    play.until("data moves", async |play| play.is_moving("mine").await).await;
    play.stage.api::<KafkaRebalance>().delete("mine", &DeleteParams::default()).await.unwrap();
    play.until("it is gone", async |play| play.rebalance("mine").await.is_none()).await;
    // Something was found; the user scales up, which forgets it.
    let found = json!({"data": {"fixableAnomalies": "- a1: [RackAwareGoal]"}});
    patch(&play.stage.api::<ConfigMap>(), "my-cluster-goal-violation-map", found).await;
    play.scale(4).await;
    play.until("the new one has data", async |play| play.holders().contains(&3)).await;
    play.until("all is done", async |play| play.state().await == Some(AutoRebalanceState::Idle)).await;
    // The engine goes, and what was there for it.
    patch(&play.stage.api::<Kafka>(), CLUSTER, json!({"spec": {"cruiseControl": null}})).await;
    play.until("it is gone", async |play| !play.stage.pods().await.iter().any(|pod| pod.contains("cruise"))).await;
    // The cluster goes, and its node pools stay.
    play.stage.api::<Kafka>().delete(CLUSTER, &DeleteParams::default()).await.unwrap();
    play.until("its nodes are gone", async |play| play.stage.pods().await.is_empty()).await;
    a_while().await;
    rights::check(&play.stage.calls());
    rights::check_all_are_used(&play.stage.calls());
}
