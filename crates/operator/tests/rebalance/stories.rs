//! What a user does with a KafkaRebalance, and what comes of it.

use std::collections::BTreeSet;

use evenkeel_api::rebalance::RebalanceState;
use evenkeel_api::{KafkaRebalance, Reason, annotations};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::rights;
use crate::stage::{Stage, asked, condition, finalizers, number, warning};

const NAME: &str = "my-rebalance";
const ALL: [i32; 4] = [0, 1, 2, 3];

pub async fn ask_look_approve_follow(stage: Stage) {
    let operator = stage.operator();
    stage.create(NAME, |_| {}).await;

    // Asked: the deletion would wait, and it says what it waits for.
    let pending = stage.until_state(NAME, RebalanceState::PendingProposal).await;
    assert_eq!(finalizers(&pending), [annotations::REBALANCE_FINALIZER]);

    // The proposal: numbers, loads, nothing moves, and nothing holds it.
    let ready = stage.until_state(NAME, RebalanceState::ProposalReady).await;
    stage.until("the finalizer is off", || async { finalizers(&stage.get(NAME).await).is_empty() }).await;
    assert!(number(&ready, "numReplicaMovements").unwrap() > 0);
    assert!(number(&ready, "dataToMoveMB").unwrap() > 0);
    let status = ready.status.clone().unwrap();
    let result = status.optimization_result.unwrap();
    assert_eq!(result["afterBeforeLoadConfigMap"], NAME);
    assert!(result["proposalId"].is_string() && result.contains_key("estimatedMinutes"), "{result:?}");
    assert_eq!(status.progress.unwrap().rebalance_progress_config_map, NAME);
    assert!(status.session_id.is_some());
    let config_map = stage.api::<ConfigMap>().get(NAME).await.unwrap();
    assert_eq!(config_map.metadata.owner_references.unwrap()[0].uid, ready.metadata.uid.clone().unwrap());
    let data = config_map.data.unwrap();
    assert_eq!(data["completedByteMovementPercentage"], "0");
    assert!(!data.contains_key("estimatedTimeToCompletionInMinutes") && !data.contains_key("executorState"));
    let load: Value = serde_json::from_str(&data["brokerLoad.json"]).unwrap();
    assert_eq!(load.as_object().unwrap().keys().collect::<Vec<_>>(), ["0", "1", "2", "3"]);
    assert!(load["2"]["replicas"]["diff"].as_i64().unwrap() > 0, "{load}");
    let moves: Value = serde_json::from_str(&data["biggestMoves.json"]).unwrap();
    let moves = moves.as_array().unwrap();
    assert!(!moves.is_empty() && moves.len() <= 20);
    assert!(moves[0]["bytes"].as_u64() >= moves[1]["bytes"].as_u64() && moves[0]["bytes"].as_u64() > Some(0));
    assert!(moves[0]["reason"].as_str().unwrap().contains("Goal"), "{}", moves[0]);
    stage.linger(300).await;
    assert_eq!(stage.brokers.holders(), BTreeSet::from([0, 1]), "nothing moves before it is approved");

    // Approved: data moves, and the ConfigMap says how far it is.
    stage.ask(NAME, "approve").await;
    stage.until_moving(NAME).await;
    let running = stage.get(NAME).await;
    assert_eq!((finalizers(&running).len(), asked(&running)), (1, None));
    let executor: Value = serde_json::from_str(&stage.data(NAME, "executorState").await.unwrap()).unwrap();
    assert_eq!(executor["state"], "INTER_BROKER_REPLICA_MOVEMENT_TASK_IN_PROGRESS");
    assert_eq!(executor["triggeredUserTaskId"].as_str(), running.status.as_ref().unwrap().session_id.as_deref());
    assert!(stage.data(NAME, "estimatedTimeToCompletionInMinutes").await.is_some());
    let brokers: Value = serde_json::from_str(&stage.data(NAME, "brokerProgress.json").await.unwrap()).unwrap();
    assert!(brokers["2"]["totalDataToMove"].as_u64() > Some(0), "{brokers}");
    let warnings = running.status.unwrap().conditions.len() - 1;
    assert_eq!(warnings, 0, "a run that goes well warns of nothing");

    // Done.
    let done = stage.until_state(NAME, RebalanceState::Ready).await;
    stage.until("the finalizer is off", || async { finalizers(&stage.get(NAME).await).is_empty() }).await;
    assert_eq!(done.status.unwrap().session_id, None);
    assert_eq!(stage.data(NAME, "completedByteMovementPercentage").await.as_deref(), Some("100"));
    assert_eq!(stage.data(NAME, "estimatedTimeToCompletionInMinutes").await.as_deref(), Some("0"));
    assert_eq!(stage.data(NAME, "executorState").await, None);
    assert_eq!(stage.brokers.holders(), BTreeSet::from(ALL));
    assert_eq!(stage.executions().await.len(), 1);
    let steps = ["PendingProposal", "ProposalReady", "Rebalancing", "Ready"];
    let told = || async { stage.events(NAME).await.iter().map(|(_, reason)| reason.as_str()).eq(steps) };
    stage.until("each step is told once", told).await;

    // It stays done, and nothing is written any more.
    let version = stage.get(NAME).await.metadata.resource_version;
    let calls = operator.fate.made().len();
    stage.linger(3600).await;
    assert_eq!(stage.get(NAME).await.metadata.resource_version, version);
    assert_eq!(operator.fate.made().len(), calls, "nobody asks or writes while nothing happens");
    rights::check(&operator.fate.rights());
    let page = operator.figures.render();
    let namespace = &stage.namespace;
    for line in [
        &format!(
            "strimzi_resources{{kind=\"KafkaRebalance\",mode=\"full\",namespace=\"{namespace}\",selector=\"\",\
             trigger=\"manual\"}} 1"
        ),
        &format!("evenkeel_rebalances{{namespace=\"{namespace}\",state=\"Ready\"}} 1"),
        "evenkeel_rebalance_seconds_count{mode=\"full\",outcome=\"Ready\",trigger=\"manual\"} 1",
        "evenkeel_engine_requests_total{answer=\"ready\",call=\"submit\"} 1",
    ] {
        assert!(page.contains(line), "{line}\nis not in\n{page}");
    }
}

pub async fn progress_is_never_older_than_five_seconds(stage: Stage) {
    let operator = stage.operator();
    stage
        .create(NAME, |it| {
            it["metadata"]["annotations"] = json!({annotations::REBALANCE_AUTO_APPROVAL: "true"});
            // Slow enough to be looked at several times.
            it["spec"]["replicationThrottle"] = json!(1_000_000);
        })
        .await;
    stage.until_moving(NAME).await;
    let looks = |made: &[String]| made.iter().filter(|call| call.ends_with("/state")).count();
    for _ in 0..3 {
        let before = (stage.data(NAME, "executorState").await, looks(&operator.fate.made()));
        tokio::time::sleep(std::time::Duration::from_secs(5)).await;
        assert_eq!(stage.get(NAME).await.state(), RebalanceState::Rebalancing, "it is slow");
        let now = stage.data(NAME, "executorState").await;
        assert!(now.is_some() && now != before.0, "five megabytes later the ConfigMap says the same: {now:?}");
        let new = looks(&operator.fate.made()) - before.1;
        // A young one is looked at twice a second, because it may end at any moment.
        assert!((1..=11).contains(&new), "{new} looks in five seconds");
    }
}

pub async fn auto_approval_goes_through_without_a_word(stage: Stage) {
    let _operator = stage.operator();
    stage
        .create(NAME, |it| it["metadata"]["annotations"] = json!({annotations::REBALANCE_AUTO_APPROVAL: "true"}))
        .await;
    stage.until_state(NAME, RebalanceState::Ready).await;
    assert_eq!(stage.brokers.holders(), BTreeSet::from(ALL));
    assert_eq!(stage.executions().await.len(), 1);
    // It approves what comes of a refresh too.
    stage.ask(NAME, "refresh").await;
    stage.until("it is heard", || async { asked(&stage.get(NAME).await).is_none() }).await;
    let again = stage.until_state(NAME, RebalanceState::Ready).await;
    assert_eq!(number(&again, "numReplicaMovements"), Some(0), "nothing is left to do");
}

pub async fn a_stop_ends_the_run_and_keeps_what_was_known(stage: Stage) {
    let _operator = stage.operator();
    stage.run(NAME).await;
    stage.ask(NAME, "stop").await;
    let stopped = stage.until_state(NAME, RebalanceState::Stopped).await;
    stage
        .until("all is let go", || async {
            let now = stage.get(NAME).await;
            finalizers(&now).is_empty() && asked(&now).is_none()
        })
        .await;
    assert!(number(&stopped, "numReplicaMovements").unwrap() > 0, "the result stays");
    assert!(stage.data(NAME, "completedByteMovementPercentage").await.is_some());
    assert!(stage.data(NAME, "executorState").await.is_some());
    assert_eq!(stage.data(NAME, "estimatedTimeToCompletionInMinutes").await, None);
    // Never by itself.
    stage.linger(3600).await;
    assert_eq!(stage.get(NAME).await.state(), RebalanceState::Stopped);
    // Asked again, it goes on from where it stands.
    stage.ask(NAME, "refresh").await;
    stage.until_state(NAME, RebalanceState::ProposalReady).await;
}

pub async fn a_refresh_brings_a_new_proposal_with_new_loads(stage: Stage) {
    let _operator = stage.operator();
    stage.create(NAME, |_| {}).await;
    let first = stage.until_state(NAME, RebalanceState::ProposalReady).await;
    stage.until("the finalizer is off", || async { finalizers(&stage.get(NAME).await).is_empty() }).await;
    let old = Patch::Merge(json!({"data": {"brokerLoad.json": "of another time"}}));
    stage.api::<ConfigMap>().patch(NAME, &PatchParams::default(), &old).await.unwrap();
    stage.ask(NAME, "refresh").await;
    let anew = || async {
        let now = stage.get(NAME).await;
        let session = |it: &KafkaRebalance| it.status.as_ref().and_then(|status| status.session_id.clone());
        now.state() == RebalanceState::ProposalReady && session(&now) != session(&first) && asked(&now).is_none()
    };
    stage.until("there is a new proposal", anew).await;
    let load = stage.data(NAME, "brokerLoad.json").await.expect("loads");
    let load: Value = serde_json::from_str(&load).expect("the loads of the new one");
    assert!(load["2"]["replicas"]["diff"].as_i64() > Some(0), "{load}");
}

pub async fn a_refresh_of_a_run_stops_it_first(stage: Stage) {
    let _operator = stage.operator();
    stage.run(NAME).await;
    stage.ask(NAME, "refresh").await;
    let ready = stage.until_state(NAME, RebalanceState::ProposalReady).await;
    assert_eq!(asked(&ready), None);
    assert_eq!(stage.data(NAME, "completedByteMovementPercentage").await.as_deref(), Some("0"));
    stage.ask(NAME, "approve").await;
    stage.until_state(NAME, RebalanceState::Ready).await;
    assert_eq!(stage.brokers.holders(), BTreeSet::from(ALL));
    assert_eq!(stage.executions().await.len(), 2, "one for each approval");
}

pub async fn an_edit_is_a_refresh(stage: Stage) {
    let _operator = stage.operator();
    stage.create(NAME, |_| {}).await;
    stage.until_state(NAME, RebalanceState::ProposalReady).await;
    stage.patch(NAME, json!({"spec": {"goals": ["NoSuchGoal"]}})).await;
    let failed = stage.until_state(NAME, RebalanceState::NotReady).await;
    let why = condition(&failed);
    assert!(why.has_reason(Reason::CruiseControlRestException), "{why:?}");
    assert!(why.message.unwrap().contains("NoSuchGoal"));
    stage.patch(NAME, json!({"spec": {"goals": ["ReplicaDistributionGoal"]}})).await;
    stage.until_state(NAME, RebalanceState::ProposalReady).await;
}

pub async fn two_at_once_run_one_after_the_other(stage: Stage) {
    let _operator = stage.operator();
    for name in ["first", "second"] {
        stage.create(name, |_| {}).await;
    }
    for name in ["first", "second"] {
        stage.until_state(name, RebalanceState::ProposalReady).await;
    }
    stage.ask("first", "approve").await;
    stage.until_moving("first").await;
    stage.ask("second", "approve").await;
    let waiting = stage.until_warned("second", Reason::WaitingForOtherRebalance).await;
    assert!(warning(&waiting, Reason::WaitingForOtherRebalance).unwrap().contains("first"));
    assert_eq!((waiting.state(), asked(&waiting).as_deref()), (RebalanceState::ProposalReady, Some("approve")));
    assert!(finalizers(&waiting).is_empty(), "whoever waits holds nothing");
    stage.until_state("first", RebalanceState::Ready).await;
    // Its proposal was for a cluster that has changed since: it is not carried out, and a new one wants a new approval.
    let outdated = stage.until_warned("second", Reason::ProposalOutdated).await;
    assert!(number(&outdated, "numReplicaMovements").is_none_or(|it| it == 0));
    let renewed = stage.until_state("second", RebalanceState::ProposalReady).await;
    assert_eq!(asked(&renewed), None);
    stage.ask("second", "approve").await;
    stage.until_state("second", RebalanceState::Ready).await;
}

/// Brokers hear of a change one after another. A proposal that is made from what one of them has not heard of yet would be
/// outdated as well.
pub async fn what_follows_an_outdated_proposal_is_not_outdated(stage: Stage) {
    let _operator = stage.operator();
    stage.create(NAME, |_| {}).await;
    stage.until_state(NAME, RebalanceState::ProposalReady).await;
    stage.brokers.reassign([0, 2]);
    stage.until("somebody has moved everything", || async { stage.brokers.are_at_rest() }).await;
    stage.ask(NAME, "approve").await;
    stage.until_warned(NAME, Reason::ProposalOutdated).await;
    stage.until_state(NAME, RebalanceState::ProposalReady).await;
    assert_eq!(stage.brokers.holders(), BTreeSet::from([0, 2]), "nobody has approved this one");
    stage.ask(NAME, "approve").await;
    stage.until_state(NAME, RebalanceState::Ready).await;
    assert_eq!(stage.brokers.holders(), BTreeSet::from(ALL));
    assert_eq!(stage.executions().await.len(), 1);
}

pub async fn a_pause_loses_nothing(stage: Stage) {
    let _operator = stage.operator();
    stage.run(NAME).await;
    let session = stage.get(NAME).await.status.unwrap().session_id;
    stage.annotate(NAME, annotations::PAUSE_RECONCILIATION, "true").await;
    let paused = stage.until_state(NAME, RebalanceState::ReconciliationPaused).await;
    assert_eq!(paused.status.unwrap().session_id, session);
    stage.linger(600).await;
    assert_eq!(stage.get(NAME).await.state(), RebalanceState::ReconciliationPaused);
    stage.annotate(NAME, annotations::PAUSE_RECONCILIATION, "false").await;
    stage.until_state(NAME, RebalanceState::Ready).await;
    assert_eq!(stage.executions().await.len(), 1);
}

pub async fn a_template_is_left_alone_and_lends_its_settings(stage: Stage) {
    let _operator = stage.operator();
    stage
        .create("template", |it| it["metadata"]["annotations"] = json!({annotations::REBALANCE_TEMPLATE: "true"}))
        .await;
    stage.create(NAME, |it| it["spec"] = json!({"template": {"name": "template"}})).await;
    stage.until_state(NAME, RebalanceState::ProposalReady).await;
    assert_eq!(stage.get("template").await.status, None);
    assert!(stage.api::<ConfigMap>().get_opt("template").await.unwrap().is_none());
}

pub async fn brokers_are_emptied_by_name(stage: Stage) {
    let _operator = stage.operator();
    stage
        .create(NAME, |it| {
            it["spec"]["mode"] = json!("remove-brokers");
            it["spec"]["brokers"] = json!([0]);
            it["metadata"]["annotations"] = json!({annotations::REBALANCE_AUTO_APPROVAL: "true"});
        })
        .await;
    stage.until_state(NAME, RebalanceState::Ready).await;
    assert!(!stage.brokers.holders().contains(&0));
}

pub async fn new_brokers_are_filled_by_name(stage: Stage) {
    let _operator = stage.operator();
    stage
        .create(NAME, |it| {
            it["spec"]["mode"] = json!("add-brokers");
            it["spec"]["brokers"] = json!([2]);
            it["metadata"]["annotations"] = json!({annotations::REBALANCE_AUTO_APPROVAL: "true"});
        })
        .await;
    let done = stage.until_state(NAME, RebalanceState::Ready).await;
    assert!(number(&done, "numReplicaMovements") > Some(0));
    assert_eq!(stage.brokers.holders(), BTreeSet::from([0, 1, 2]), "nothing goes to who was not named");
}

pub async fn no_more_is_moved_than_the_limit_says(stage: Stage) {
    let _operator = stage.operator();
    let notes = json!({annotations::REBALANCE_AUTO_APPROVAL: "true", annotations::MAX_DATA_MB: "45"});
    stage.create(NAME, |it| it["metadata"]["annotations"] = notes).await;
    let done = stage.until_state(NAME, RebalanceState::Ready).await;
    let moved = number(&done, "dataToMoveMB").unwrap();
    assert!((1..=45).contains(&moved), "{moved} MB");
    let result = done.status.unwrap().optimization_result.unwrap();
    assert!(result["leftUndone"]["dataToMoveMB"].as_u64() > Some(0), "{result:?}");
}

pub async fn a_limit_that_nobody_can_read_is_not_taken_for_none(stage: Stage) {
    let _operator = stage.operator();
    stage.create(NAME, |it| it["metadata"]["annotations"] = json!({annotations::MAX_DATA_MB: "5Gi"})).await;
    let warned = stage.until_warned(NAME, Reason::InvalidAnnotation).await;
    assert!(warning(&warned, Reason::InvalidAnnotation).unwrap().contains("whole number of megabytes"));
}
