//! Templates of generated rebalances: missing, unmarked, marked in the old way, deleted and changed mid-way; and what a user
//! makes beside them.

use std::time::Duration;

use evenkeel_api::KafkaRebalance;
use evenkeel_api::kafka::AutoRebalanceState;
use kube::api::DeleteParams;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::play::ADD;
use crate::scene::{auto, brokers, change, cluster, is_idle, is_ready, rebalance, scale, tell_of, usual, warning};
use crate::stage::{CLUSTER, Stage, a_while, create, patch, until};

/// A cluster whose scale-ups are made from the template `mine`.
async fn with_template(there: Option<Value>) -> Stage {
    let stage = Stage::new().await;
    if let Some(template) = there {
        create(&stage.api::<KafkaRebalance>(), template).await;
    }
    let mut spec = usual();
    spec["cruiseControl"]["autoRebalance"] = json!([{"mode": "add-brokers", "template": {"name": "mine"}}]);
    cluster(&stage, spec).await;
    until("it is ready", || is_ready(&stage)).await;
    stage
}

fn template(notes: Value) -> Value {
    json!({"metadata": {"name": "mine", "annotations": notes}, "spec": {"goals": ["DiskCapacityGoal"]}})
}

#[tokio::test(start_paused = true)]
async fn without_its_template_a_mode_does_nothing_and_says_so() {
    let unmarked = json!({"metadata": {"name": "mine", "labels": {"strimzi.io/cluster": "elsewhere"}}, "spec": {}});
    for (there, word) in [(None, "there is no KafkaRebalance mine"), (Some(unmarked), "mine is no template")] {
        let stage = with_template(there).await;
        until("it is said", || async {
            warning(&stage, "InvalidRebalanceTemplate").await.is_some_and(|it| it.contains(word))
        })
        .await;
        scale(&stage, 4).await;
        until("the scale-up is complete without it", || async {
            brokers(&stage).await.len() == 4 && is_ready(&stage).await && is_idle(&stage).await
        })
        .await;
        sleep(Duration::from_secs(120)).await;
        assert!(rebalance(&stage, ADD).await.is_none() && is_idle(&stage).await);
    }
}

/// Clusters may share one, whichever its label names; whoever waits for it hears of it, and not only when its time comes.
#[tokio::test(start_paused = true)]
async fn a_template_with_the_label_of_another_cluster_is_heard_of() {
    let stage = with_template(None).await;
    let is_missing = || async { warning(&stage, "InvalidRebalanceTemplate").await.is_some() };
    until("it is said", &is_missing).await;
    a_while().await;
    let mut shared = template(json!({"strimzi.io/rebalance-template": "true"}));
    shared["metadata"]["labels"] = json!({"strimzi.io/cluster": "elsewhere"});
    create(&stage.api::<KafkaRebalance>(), shared).await;
    a_while().await;
    assert!(!is_missing().await);
}

#[tokio::test(start_paused = true)]
async fn both_marks_make_a_template_and_what_runs_is_not_changed_by_its_end() {
    for mark in [json!({"strimzi.io/rebalance": "template"}), json!({"strimzi.io/rebalance-template": "true"})] {
        let stage = with_template(Some(template(mark))).await;
        assert_eq!(warning(&stage, "InvalidRebalanceTemplate").await, None);
        scale(&stage, 4).await;
        until("it begins", || async { rebalance(&stage, ADD).await.is_some() }).await;
        tell_of(&stage, ADD, "Rebalancing", None).await;
        let goals = async || rebalance(&stage, ADD).await.unwrap().spec.goals;
        assert_eq!(goals().await, Some(vec!["DiskCapacityGoal".to_owned()]));
        let templates = stage.api::<KafkaRebalance>();
        patch(&templates, "mine", json!({"spec": {"goals": ["RackAwareGoal"]}})).await;
        a_while().await;
        assert_eq!(goals().await, Some(vec!["DiskCapacityGoal".to_owned()]), "it is what was begun");
        templates.delete("mine", &DeleteParams::default()).await.unwrap();
        until("it is said", || async { warning(&stage, "InvalidRebalanceTemplate").await.is_some() }).await;
        assert_eq!(auto(&stage).await.state, AutoRebalanceState::RebalanceOnScaleUp, "what runs goes on");
        tell_of(&stage, ADD, "Ready", None).await;
        until("it is over", || async { is_idle(&stage).await && rebalance(&stage, ADD).await.is_none() }).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_mode_that_is_not_listed_does_nothing() {
    let stage = Stage::new().await;
    let mut spec = usual();
    spec["cruiseControl"]["autoRebalance"] = json!([{"mode": "remove-brokers"}]);
    cluster(&stage, spec).await;
    until("it is ready", || is_ready(&stage)).await;
    scale(&stage, 4).await;
    until("it is there", || async { brokers(&stage).await.len() == 4 && is_ready(&stage).await }).await;
    sleep(Duration::from_secs(120)).await;
    assert!(is_idle(&stage).await && rebalance(&stage, ADD).await.is_none());
}

/// A user's rebalance that moves data: automatic rebalancing waits for its end, and does not touch it.
#[tokio::test(start_paused = true)]
async fn a_user_s_rebalance_is_waited_for_and_never_stopped() {
    let stage = Stage::new().await;
    cluster(&stage, usual()).await;
    until("it is ready", || is_ready(&stage)).await;
    let mine = json!({"metadata": {"name": "mine", "labels": {"strimzi.io/cluster": CLUSTER}}, "spec": {}});
    create(&stage.api::<KafkaRebalance>(), mine).await;
    tell_of(&stage, "mine", "Rebalancing", None).await;
    scale(&stage, 4).await;
    until("it is said", || async {
        warning(&stage, "AutoRebalanceWaiting").await.is_some_and(|it| it.contains("end of KafkaRebalance mine"))
    })
    .await;
    // The brake stops what is ours.
    for brake in [json!("off"), Value::Null] {
        change(&stage, json!({"metadata": {"annotations": {"evenkeel.io/auto-rebalance": brake}}})).await;
        sleep(Duration::from_secs(60)).await;
        let theirs = rebalance(&stage, "mine").await.unwrap().metadata;
        assert!(
            !theirs.annotations.unwrap_or_default().contains_key("strimzi.io/rebalance"),
            "nobody asked it to stop"
        );
        assert!(rebalance(&stage, ADD).await.is_none());
        assert_eq!(auto(&stage).await.modes[0].brokers, [3], "what was added is not forgotten");
    }
    tell_of(&stage, "mine", "Ready", None).await;
    until("it is its turn", || async { rebalance(&stage, ADD).await.is_some() }).await;
}
