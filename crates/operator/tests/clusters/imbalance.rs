//! Violated goals, told by hand as an engine would: what sets off a rebalance, what does not, and who is told.

use std::time::Duration;

use evenkeel_api::kafka::AutoRebalanceState;
use evenkeel_api::{Kafka, KafkaRebalance};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::play::{ADD, MAP};
use crate::scene::{
    auto, brokers, change, cluster, is_idle, is_ready, operator, rebalance, scale, tell_of, usual, warning,
};
use crate::stage::{CLUSTER, Stage, a_while, create, patch, until};

const A1: &str = "my-cluster-auto-rebalancing-imbalance-a1";
const A2: &str = "my-cluster-auto-rebalancing-imbalance-a2";
const SOME: &str = "- a1:\n    - RackAwareGoal\n";

/// A cluster that watches its goals, with these further settings of its engine.
async fn watching(further: Value) -> Stage {
    let stage = Stage::new().await;
    let mut spec = usual();
    spec["cruiseControl"]["autoRebalance"] = json!([{"mode": "imbalance"}, {"mode": "add-brokers"}]);
    for (key, value) in further.as_object().unwrap() {
        spec["cruiseControl"][key] = value.clone();
    }
    cluster(&stage, spec).await;
    until("it is ready", || is_ready(&stage)).await;
    until("its engine is, too", || async { warning(&stage, "AutoRebalanceWaiting").await.is_none() }).await;
    sleep(Duration::from_secs(10)).await;
    stage
}

/// What an engine would write; what is not named is not there.
async fn found(stage: &Stage, fixable: &str, unfixable: Option<&str>) {
    let data = json!({"data": {"fixableAnomalies": fixable, "unfixableAnomalies": unfixable}});
    patch(&stage.api::<ConfigMap>(), MAP, data).await;
}

async fn fixable(stage: &Stage) -> String {
    let map = stage.api::<ConfigMap>().get(MAP).await.unwrap();
    map.data.and_then(|mut data| data.remove("fixableAnomalies")).unwrap_or_default()
}

async fn begins(stage: &Stage, name: &str) {
    until("it begins", || async { rebalance(stage, name).await.is_some() }).await;
}

async fn ends(stage: &Stage, name: &str, state: &str) {
    tell_of(stage, name, state, None).await;
    until("it is over", || async { is_idle(stage).await && rebalance(stage, name).await.is_none() }).await;
}

#[tokio::test(start_paused = true)]
async fn what_was_found_is_mended_within_two_seconds_once_and_forgotten() {
    let stage = watching(json!({})).await;
    let told = Instant::now();
    found(&stage, "- a1: [RackAwareGoal]\n- a2: [DiskCapacityGoal]\n", None).await;
    begins(&stage, A1).await;
    assert!(told.elapsed() < Duration::from_secs(2), "{:?}", told.elapsed());
    assert_eq!(auto(&stage).await.state, AutoRebalanceState::RebalanceOnImbalance);
    until("it is forgotten", || async { fixable(&stage).await.is_empty() }).await;
    tell_of(&stage, A1, "Rebalancing", None).await;
    // What is found while it is being mended is about that.
    found(&stage, "- a3: [DiskCapacityGoal]\n", None).await;
    until("it is forgotten, too", || async { fixable(&stage).await.is_empty() }).await;
    ends(&stage, A1, "Ready").await;
    sleep(Duration::from_secs(60)).await;
    assert!(is_idle(&stage).await && rebalance(&stage, A2).await.is_none(), "one is enough for all of it");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_mended_or_not_wholly_is_said_and_left_alone() {
    for (mendable, not) in [("", "- a1: [DiskCapacityGoal]"), (SOME, "- a1: [DiskCapacityGoal]"), (SOME, "- a2: [X]")] {
        let stage = watching(json!({})).await;
        found(&stage, mendable, Some(not)).await;
        until("it is said", || async { warning(&stage, "UnfixableViolatedGoal").await.is_some() }).await;
        sleep(Duration::from_secs(120)).await;
        assert!(rebalance(&stage, A1).await.is_none());
        assert_eq!(auto(&stage).await.state, AutoRebalanceState::Idle);
        found(&stage, SOME, None).await;
        begins(&stage, A1).await;
        assert_eq!(warning(&stage, "UnfixableViolatedGoal").await, None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_map_that_nobody_can_read_is_said_and_counts_as_empty() {
    let stage = watching(json!({})).await;
    let long = "x".repeat(900 * 1024);
    for nonsense in ["{", "just words", "- [a, b]", long.as_str()] {
        found(&stage, nonsense, None).await;
        until("it is said", || async {
            warning(&stage, "InvalidResourceException").await.is_some_and(|it| it.contains(MAP))
        })
        .await;
        let said = warning(&stage, "InvalidResourceException").await.unwrap();
        assert!(said.len() < 1_000, "it is for people: {} letters", said.len());
        a_while().await;
        assert!(is_idle(&stage).await && is_ready(&stage).await);
        found(&stage, "", None).await;
        until("it is mended", || async { warning(&stage, "InvalidResourceException").await.is_none() }).await;
    }
    found(&stage, SOME, None).await;
    begins(&stage, A1).await;
}

#[tokio::test(start_paused = true)]
async fn the_map_goes_with_the_mode_and_comes_with_it() {
    let stage = watching(json!({})).await;
    let modes = |all: Value| json!({"spec": {"cruiseControl": {"autoRebalance": all}}});
    change(&stage, modes(json!([{"mode": "add-brokers"}]))).await;
    let maps = stage.api::<ConfigMap>();
    until("it is gone", || async { maps.get_opt(MAP).await.unwrap().is_none() }).await;
    change(&stage, modes(json!([{"mode": "imbalance"}]))).await;
    until("it is there", || async { maps.get_opt(MAP).await.unwrap().is_some() }).await;
}

#[tokio::test(start_paused = true)]
async fn another_notifier_is_refused_in_words() {
    let stage = watching(json!({"config": {"anomaly.notifier.class": "com.example.Mine"}})).await;
    let said = warning(&stage, "UnsupportedOperationException").await.unwrap();
    assert!(said.contains("Notifier cannot be overridden"), "{said}");
    let file = stage.api::<ConfigMap>().get("my-cluster-cruise-control-config").await.unwrap().data.unwrap();
    assert!(!file["cruisecontrol.properties"].contains("com.example.Mine"));
}

/// What the engine watches is compared with the template, and not what the user wrote: without capacities of the network it
/// does not watch the network.
#[tokio::test(start_paused = true)]
async fn goals_of_a_template_are_compared_with_what_is_really_watched() {
    const POLICY: &str = "evenkeel.auto.rebalance.template.goals";
    let modes = json!([{"mode": "imbalance", "template": {"name": "mine"}}]);
    let disk = "RackAwareGoal,ReplicaCapacityGoal,DiskCapacityGoal,DiskUsageDistributionGoal";
    let network = "NetworkInboundUsageDistributionGoal";
    for (goals, config, is_right) in [
        // The defaults hold no goal that could not be found.
        (json!(["RackAwareGoal"]), json!({}), true),
        (json!(["DiskUsageDistributionGoal"]), json!({}), false),
        (json!(["DiskUsageDistributionGoal"]), json!({"anomaly.detection.goals": "DiskUsageDistributionGoal"}), true),
        // What is watched are the default goals, because the watched ones are none of them.
        (json!(["DiskUsageDistributionGoal"]), json!({"default.goals": disk}), true),
        (json!([network]), json!({"anomaly.detection.goals": network}), false),
        // Nobody measures it without a reporter.
        (json!(["CpuUsageDistributionGoal"]), json!({"anomaly.detection.goals": "CpuUsageDistributionGoal"}), false),
        (json!(["RackAwareGoal"]), json!({POLICY: "superset"}), false),
        (
            json!(["RackAwareGoal", "MinTopicLeadersPerBrokerGoal", "ReplicaCapacityGoal", "DiskCapacityGoal", "X"]),
            json!({POLICY: "superset"}),
            true,
        ),
    ] {
        let stage = Stage::new().await;
        let notes = json!({"strimzi.io/rebalance-template": "true"});
        let template = json!({"metadata": {"name": "mine", "annotations": notes}, "spec": {"goals": goals}});
        create(&stage.api::<KafkaRebalance>(), template).await;
        let mut spec = usual();
        spec["cruiseControl"] = json!({"autoRebalance": modes, "config": config});
        cluster(&stage, spec).await;
        until("it is ready", || is_ready(&stage)).await;
        sleep(Duration::from_secs(10)).await;
        found(&stage, SOME, None).await;
        a_while().await;
        let said = warning(&stage, "InvalidRebalanceTemplateGoals").await;
        assert_eq!(said.is_none(), is_right, "{goals} {config}: {said:?}");
        assert_eq!(rebalance(&stage, A1).await.is_some(), is_right, "{goals} {config}");
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_is_stopped_is_followed_by_another_when_it_is_found_again_and_the_pause_is_over() {
    let stage = watching(json!({})).await;
    found(&stage, SOME, None).await;
    begins(&stage, A1).await;
    tell_of(&stage, A1, "Rebalancing", None).await;
    a_while().await;
    ends(&stage, A1, "Stopped").await;
    assert!(warning(&stage, "AutoRebalanceStopped").await.is_some());
    let again = "- a2: [RackAwareGoal]";
    found(&stage, again, None).await;
    until("it is held", || async { warning(&stage, "AutoRebalanceHeld").await.is_some() }).await;
    sleep(Duration::from_secs(300)).await;
    assert!(rebalance(&stage, A2).await.is_none(), "not so soon");
    until("it begins when the pause is over", || async { rebalance(&stage, A2).await.is_some() }).await;
}

#[tokio::test(start_paused = true)]
async fn the_pause_outlives_the_operator() {
    let stage = Stage::new().await;
    let mut spec = usual();
    spec["cruiseControl"]["autoRebalance"] = json!([{"mode": "imbalance"}]);
    let (machines, first) = crate::scene::cluster_with(&stage, spec).await;
    until("it is ready", || is_ready(&stage)).await;
    sleep(Duration::from_secs(10)).await;
    found(&stage, SOME, None).await;
    begins(&stage, A1).await;
    tell_of(&stage, A1, "Rebalancing", None).await;
    a_while().await;
    ends(&stage, A1, "Ready").await;
    first.abort();
    let _next = tokio::spawn(operator(stage.context.clone(), machines));
    a_while().await;
    found(&stage, "- a2: [RackAwareGoal]", None).await;
    until("it is held", || async { warning(&stage, "AutoRebalanceHeld").await.is_some() }).await;
    sleep(Duration::from_secs(120)).await;
    assert!(rebalance(&stage, A2).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn brokers_that_come_wait_for_it_or_stop_it_as_the_user_wants() {
    for (preempts, state) in [(false, "Ready"), (true, "Stopped")] {
        let stage = watching(json!({"config": {"evenkeel.auto.rebalance.preempt": preempts}})).await;
        found(&stage, SOME, None).await;
        begins(&stage, A1).await;
        tell_of(&stage, A1, "Rebalancing", None).await;
        scale(&stage, 4).await;
        until("it is there", || async { brokers(&stage).await.len() == 4 }).await;
        sleep(Duration::from_secs(30)).await;
        let asked = rebalance(&stage, A1).await.unwrap().metadata.annotations.unwrap_or_default();
        assert_eq!(asked.get("strimzi.io/rebalance").map(String::as_str), preempts.then_some("stop"));
        assert!(rebalance(&stage, ADD).await.is_none(), "never two at once");
        tell_of(&stage, A1, state, None).await;
        begins(&stage, ADD).await;
        assert!(rebalance(&stage, A1).await.is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn it_begins_only_in_the_hours_that_are_meant_for_it() {
    // The clock begins at midnight.
    let stage = watching(json!({})).await;
    change(&stage, json!({"spec": {"maintenanceTimeWindows": ["* * 2 * * ?"]}})).await;
    a_while().await;
    found(&stage, SOME, None).await;
    until("it is held", || async {
        warning(&stage, "AutoRebalanceHeld").await.is_some_and(|it| it.contains("2026-01-01T02:00:00"))
    })
    .await;
    sleep(Duration::from_secs(3_600)).await;
    assert!(rebalance(&stage, A1).await.is_none());
    sleep(Duration::from_secs(3_600)).await;
    begins(&stage, A1).await;
    let kafka = stage.api::<Kafka>().get(CLUSTER).await.unwrap();
    assert!(kafka.status.unwrap().conditions.iter().all(|it| it.reason.as_deref() != Some("AutoRebalanceHeld")));
}

/// A user's rebalance mends it as well: what was found is forgotten when it is asked for.
#[tokio::test(start_paused = true)]
async fn a_user_s_rebalance_makes_old_news_of_what_was_found() {
    let stage = watching(json!({})).await;
    change(&stage, json!({"metadata": {"annotations": {"evenkeel.io/auto-rebalance": "off"}}})).await;
    a_while().await;
    found(&stage, SOME, None).await;
    a_while().await;
    assert_eq!(fixable(&stage).await, SOME, "it is held, not forgotten");
    let mine = json!({"metadata": {"name": "mine", "labels": {"strimzi.io/cluster": CLUSTER}}, "spec": {}});
    create(&stage.api::<KafkaRebalance>(), mine).await;
    until("it is forgotten", || async { fixable(&stage).await.is_empty() }).await;
    tell_of(&stage, "mine", "Ready", None).await;
    change(&stage, json!({"metadata": {"annotations": {"evenkeel.io/auto-rebalance": null}}})).await;
    sleep(Duration::from_secs(60)).await;
    assert!(is_idle(&stage).await && rebalance(&stage, A1).await.is_none());
}
