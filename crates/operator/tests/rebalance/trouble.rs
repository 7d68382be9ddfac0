//! What is wrong with the resource or around it: said with a reason, and mended where it mends itself.

use std::collections::BTreeSet;

use evenkeel_api::rebalance::RebalanceState;
use evenkeel_api::{Kafka, KafkaRebalance, Reason, annotations};
use http::StatusCode;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;

use crate::cluster::Brokers;
use crate::stage::{CLUSTER, Stage, asked, condition, finalizers, warning};

const NAME: &str = "my-rebalance";

/// Waits until it has failed, with this reason.
async fn failed(stage: &Stage, reason: Reason) -> String {
    let failed = || async {
        let now = stage.get(NAME).await;
        now.state() == RebalanceState::NotReady && condition(&now).has_reason(reason)
    };
    stage.until(&format!("it has failed: {}", reason.as_str()), failed).await;
    let now = stage.get(NAME).await;
    assert!(finalizers(&now).is_empty());
    condition(&now).message.unwrap()
}

pub async fn a_bad_spec_is_refused_with_what_would_mend_it(stage: Stage) {
    let operator = stage.operator();
    stage.create(NAME, |it| it["spec"] = json!({"mode": "add-brokers"})).await;
    assert!(failed(&stage, Reason::IllegalArgumentException).await.contains("spec.brokers"));
    for (spec, word) in [
        (json!({"mode": "full", "excludedTopics": "("}), "excludedTopics"),
        (json!({"mode": "remove-disks", "excludedTopics": null}), "moveReplicasOffVolumes"),
        (json!({"mode": "full", "rebalanceDisk": true, "goals": ["RackAwareGoal"]}), "rebalanceDisk"),
    ] {
        stage.patch(NAME, json!({ "spec": spec })).await;
        let said = || async { condition(&stage.get(NAME).await).message.is_some_and(|it| it.contains(word)) };
        stage.until(word, said).await;
    }
    assert!(!operator.fate.made().iter().any(|call| call.starts_with("engine")), "nobody was asked for nonsense");
    let told = stage.events(NAME).await;
    assert_eq!(told[0], ("Warning".to_owned(), "NotReady".to_owned()));
    stage
        .patch(
            NAME,
            json!({"spec": {"rebalanceDisk": null, "goals": ["ReplicaDistributionGoal"], "skipHardGoalCheck": true}}),
        )
        .await;
    stage.until_state(NAME, RebalanceState::ProposalReady).await;
}

pub async fn a_wrong_word_is_warned_of_and_kept(stage: Stage) {
    let _operator = stage.operator();
    stage.create(NAME, |_| {}).await;
    stage.until_state(NAME, RebalanceState::ProposalReady).await;
    stage.ask(NAME, "aprove").await;
    let warned = stage.until_warned(NAME, Reason::InvalidAnnotation).await;
    assert!(warning(&warned, Reason::InvalidAnnotation).unwrap().contains("valid are: approve, refresh"));
    stage.linger(600).await;
    let now = stage.get(NAME).await;
    assert_eq!((now.state(), asked(&now).as_deref()), (RebalanceState::ProposalReady, Some("aprove")));
    stage.ask(NAME, "approve").await;
    let done = stage.until_state(NAME, RebalanceState::Ready).await;
    assert_eq!(warning(&done, Reason::InvalidAnnotation), None);
}

pub async fn what_cannot_begin_yet_begins_once_it_can(stage: Stage) {
    let _operator = stage.operator();
    // No label, no such Kafka, not ready, no engine, no Secret: one after the other.
    stage.create(NAME, |it| it["metadata"]["labels"] = json!({})).await;
    assert!(failed(&stage, Reason::InvalidResourceException).await.contains("strimzi.io/cluster"));
    stage.patch(NAME, json!({"metadata": {"labels": {"strimzi.io/cluster": "other"}}})).await;
    assert!(failed(&stage, Reason::NoSuchResourceException).await.contains("Kafka other"));
    stage.set_kafka("NotReady").await;
    stage.patch(NAME, json!({"metadata": {"labels": {"strimzi.io/cluster": CLUSTER}}})).await;
    assert!(failed(&stage, Reason::InvalidResourceException).await.contains("not Ready"));
    let kafkas = stage.api::<Kafka>();
    let declare = |engine| Patch::Merge(json!({"spec": {"cruiseControl": engine}}));
    kafkas.patch(CLUSTER, &PatchParams::default(), &declare(json!(null))).await.unwrap();
    stage.set_kafka("Ready").await;
    let lacks = || async { condition(&stage.get(NAME).await).message.is_some_and(|it| it.contains("cruiseControl")) };
    stage.until("the engine is missed", lacks).await;
    let secrets = stage.api::<Secret>();
    let name = format!("{CLUSTER}-cruise-control-api");
    let mut secret = secrets.get(&name).await.unwrap();
    secrets.delete(&name, &DeleteParams::default()).await.unwrap();
    kafkas.patch(CLUSTER, &PatchParams::default(), &declare(json!({}))).await.unwrap();
    assert!(failed(&stage, Reason::NoSuchResourceException).await.contains(&name));
    secret.metadata.resource_version = None;
    secret.metadata.uid = None;
    secrets.create(&PostParams::default(), &secret).await.unwrap();
    stage.until_state(NAME, RebalanceState::ProposalReady).await;
}

pub async fn an_engine_out_of_reach_mid_run_changes_nothing_but_a_warning(stage: Stage) {
    let _operator = stage.operator();
    stage.run(NAME).await;
    let before = stage.get(NAME).await;
    let engine = stage.cut_engine();
    let warned = stage.until_warned(NAME, Reason::CruiseControlRestException).await;
    assert!(warning(&warned, Reason::CruiseControlRestException).unwrap().contains("connection refused"));
    let same = |it: &KafkaRebalance| {
        let status = it.status.clone().unwrap();
        (it.state(), status.session_id, status.optimization_result, finalizers(it))
    };
    assert_eq!(same(&warned), same(&before));
    let told = || async { stage.api::<ConfigMap>().get(NAME).await.unwrap() };
    let before = told().await;
    stage.linger(30).await;
    assert_eq!(told().await, before, "what was last known stays");
    stage.mend_engine(engine);
    let done = stage.until_state(NAME, RebalanceState::Ready).await;
    assert_eq!(warning(&done, Reason::CruiseControlRestException), None);
    assert_eq!(stage.executions().await.len(), 1);
}

pub async fn an_engine_that_restarts_mid_run_is_followed_on(mut stage: Stage) {
    let _operator = stage.operator();
    stage.run(NAME).await;
    stage.restart_engine();
    stage.until_state(NAME, RebalanceState::Ready).await;
    assert_eq!(stage.brokers.holders(), BTreeSet::from([0, 1, 2, 3]));
    assert_eq!(stage.executions().await.len(), 1);
}

pub async fn a_kafka_that_is_not_ready_does_not_end_a_run(stage: Stage) {
    let _operator = stage.operator();
    stage.run(NAME).await;
    stage.set_kafka("NotReady").await;
    let warned = stage.until_warned(NAME, Reason::InvalidResourceException).await;
    assert_eq!(warned.state(), RebalanceState::Rebalancing);
    stage.until_state(NAME, RebalanceState::Ready).await;
}

pub async fn a_foreign_config_map_is_not_touched(stage: Stage) {
    let _operator = stage.operator();
    let foreign = json!({"metadata": {"name": NAME}, "data": {"mine": "yes"}});
    let config_maps = stage.api::<ConfigMap>();
    config_maps.create(&PostParams::default(), &serde_json::from_value(foreign).unwrap()).await.unwrap();
    let version = config_maps.get(NAME).await.unwrap().metadata.resource_version;
    stage
        .create(NAME, |it| it["metadata"]["annotations"] = json!({annotations::REBALANCE_AUTO_APPROVAL: "true"}))
        .await;
    let done = stage.until_state(NAME, RebalanceState::Ready).await;
    assert!(warning(&done, Reason::InvalidResourceException).unwrap().contains("does not belong"));
    assert_eq!(config_maps.get(NAME).await.unwrap().metadata.resource_version, version);
    assert_eq!(done.status.unwrap().progress, None);
}

/// As a ResourceQuota does it.
const QUOTA: (StatusCode, &str) = (
    StatusCode::FORBIDDEN,
    "configmaps \"my-rebalance\" is forbidden: exceeded quota: small, limited: count/configmaps=0",
);
/// As the server does it to one that is marked immutable.
const IMMUTABLE: (StatusCode, &str) =
    (StatusCode::UNPROCESSABLE_ENTITY, "ConfigMap \"my-rebalance\" is invalid: data: field is immutable");

pub async fn a_config_map_that_may_not_be_made_is_told_and_made_once_it_may(stage: Stage) {
    let operator = stage.operator();
    operator.fate.refuse_config_maps(Some(QUOTA));
    stage.create(NAME, |_| {}).await;
    let ready = stage.until_state(NAME, RebalanceState::ProposalReady).await;
    let why = warning(&ready, Reason::KubernetesClientException).unwrap();
    assert!(why.contains("exceeded quota") && why.contains("load and progress"), "{why}");
    stage.until("it is let go", || async { finalizers(&stage.get(NAME).await).is_empty() }).await;
    let asked = operator.fate.made().iter().filter(|call| call.starts_with("engine POST")).count();
    // What was refused is decided once more, and a plan that nothing has changed about costs the engine nothing.
    assert!(asked <= 3 && ready.status.unwrap().progress.is_none(), "{asked} proposals");
    operator.fate.refuse_config_maps(None);
    stage.ask(NAME, "approve").await;
    let done = stage.until_state(NAME, RebalanceState::Ready).await;
    assert_eq!(warning(&done, Reason::KubernetesClientException), None);
    assert_eq!(stage.data(NAME, "completedByteMovementPercentage").await.as_deref(), Some("100"));
    assert!(stage.data(NAME, "brokerLoad.json").await.is_some(), "with the loads");
}

/// An admission webhook that is just being rolled, for example.
pub async fn a_load_that_was_refused_is_written_later_and_not_left_to_be_that_of_before(stage: Stage) {
    const AWAY: (StatusCode, &str) =
        (StatusCode::INTERNAL_SERVER_ERROR, "Internal error occurred: failed calling webhook");
    let operator = stage.operator();
    stage.run(NAME).await;
    stage.until_state(NAME, RebalanceState::Ready).await;
    let before = stage.data(NAME, "brokerLoad.json").await.expect("loads");
    operator.fate.refuse_config_maps(Some(AWAY));
    stage.ask(NAME, "refresh").await;
    let ready = stage.until_state(NAME, RebalanceState::ProposalReady).await;
    assert!(warning(&ready, Reason::KubernetesClientException).unwrap().contains("failed calling webhook"));
    assert_eq!(stage.data(NAME, "brokerLoad.json").await.as_ref(), Some(&before), "nobody could write it");
    operator.fate.refuse_config_maps(None);
    // Somebody labels it: it is looked at again before its time.
    stage.patch(NAME, json!({"metadata": {"labels": {"looked": "at"}}})).await;
    let new = || async { stage.data(NAME, "brokerLoad.json").await.is_some_and(|now| now != before) };
    stage.until("the load is that of the new proposal", new).await;
    let mended = || async { warning(&stage.get(NAME).await, Reason::KubernetesClientException).is_none() };
    stage.until("nothing is wrong any more", mended).await;
}

/// A value that Helm left empty, and one that nobody can ask for.
pub async fn a_template_whose_name_is_none_is_told_and_holds_up_nothing(stage: Stage) {
    let _operator = stage.operator();
    for name in ["", "my template"] {
        stage.create(NAME, |it| it["spec"]["template"] = json!({"name": name})).await;
        let why = failed(&stage, Reason::NoSuchResourceException).await;
        assert!(why.contains("is no name"), "{why}");
        stage.delete(NAME).await;
        stage.until("it is gone", || stage.is_gone(NAME)).await;
    }
    stage.run(NAME).await;
    stage.patch(NAME, json!({"spec": {"template": {"name": ""}}})).await;
    let warned = stage.until_warned(NAME, Reason::NoSuchResourceException).await;
    assert_eq!(warned.state(), RebalanceState::Rebalancing, "the run goes on as it was approved");
    stage.delete(NAME).await;
    stage.until("it is gone", || stage.is_gone(NAME)).await;
    assert_eq!(stage.brokers.holders(), BTreeSet::from([0, 1, 2, 3]), "and is waited for");
}

pub async fn a_run_whose_config_map_is_refused_can_be_stopped(stage: Stage) {
    let operator = stage.operator();
    stage.run(NAME).await;
    operator.fate.refuse_config_maps(Some(IMMUTABLE));
    let warned = stage.until_warned(NAME, Reason::KubernetesClientException).await;
    assert_eq!(warned.state(), RebalanceState::Rebalancing);
    stage.ask(NAME, "stop").await;
    stage.until_state(NAME, RebalanceState::Stopped).await;
    stage.until("it is let go", || async { finalizers(&stage.get(NAME).await).is_empty() }).await;
    assert!(operator.fate.made().iter().any(|call| call.contains("stop_proposal_execution")));
}

pub async fn a_run_whose_config_map_is_refused_can_be_deleted(stage: Stage) {
    let operator = stage.operator();
    stage.run(NAME).await;
    operator.fate.refuse_config_maps(Some(IMMUTABLE));
    stage.delete(NAME).await;
    stage.until("it is gone", || stage.is_gone(NAME)).await;
    assert_eq!(stage.brokers.holders(), BTreeSet::from([0, 1, 2, 3]), "the run came to its end");
}

pub async fn a_config_map_that_somebody_removed_comes_back(stage: Stage) {
    let _operator = stage.operator();
    stage.create(NAME, |_| {}).await;
    stage.until_state(NAME, RebalanceState::ProposalReady).await;
    stage.api::<ConfigMap>().delete(NAME, &DeleteParams::default()).await.unwrap();
    let back = || async { stage.data(NAME, "completedByteMovementPercentage").await.as_deref() == Some("0") };
    stage.until("it is there again", back).await;
    let load = stage.data(NAME, "brokerLoad.json").await.expect("with the loads that the status points at");
    assert!(load.contains("replicas") && stage.data(NAME, "biggestMoves.json").await.is_some());
}

pub async fn who_comes_after_one_of_the_same_name_has_its_own_load(stage: Stage) {
    let _operator = stage.operator();
    stage.create(NAME, |_| {}).await;
    stage.until_state(NAME, RebalanceState::ProposalReady).await;
    stage.until("the finalizer is off", || async { finalizers(&stage.get(NAME).await).is_empty() }).await;
    let mine = Patch::Merge(json!({"data": {"brokerLoad.json": "of the one before"}}));
    stage.api::<ConfigMap>().patch(NAME, &PatchParams::default(), &mine).await.unwrap();
    // Nobody collects garbage here, so the ConfigMap stays.
    stage.delete(NAME).await;
    stage.until("it is gone", || stage.is_gone(NAME)).await;
    stage.create(NAME, |_| {}).await;
    let second = stage.until_state(NAME, RebalanceState::ProposalReady).await;
    assert_eq!(warning(&second, Reason::InvalidResourceException), None, "it is not somebody else's");
    assert!(stage.data(NAME, "brokerLoad.json").await.unwrap().contains("replicas"));
    let owners = stage.api::<ConfigMap>().get(NAME).await.unwrap().metadata.owner_references.unwrap();
    assert_eq!(owners.iter().map(|it| Some(it.uid.clone())).collect::<Vec<_>>(), [second.metadata.uid]);
}

/// A manifest that was copied from another cluster's is applied while data moves.
pub async fn a_run_is_followed_where_it_is_when_its_label_changes(stage: Stage) {
    let _operator = stage.operator_among_clusters();
    stage.create_kafka_of("other").await;
    stage.run(NAME).await;
    stage.patch(NAME, json!({"metadata": {"labels": {"strimzi.io/cluster": "other"}}})).await;
    let warned = stage.until_warned(NAME, Reason::InvalidResourceException).await;
    assert!(warning(&warned, Reason::InvalidResourceException).unwrap().contains("says other"));
    assert_eq!((warned.state(), finalizers(&warned).len()), (RebalanceState::Rebalancing, 1));
    let done = stage.until_state(NAME, RebalanceState::Ready).await;
    assert_eq!(stage.brokers.holders(), BTreeSet::from([0, 1, 2, 3]));
    assert_eq!(warning(&done, Reason::InvalidResourceException), None);
    let labelled = || async {
        let found = stage.api::<ConfigMap>().get(NAME).await.unwrap().metadata.labels.unwrap_or_default();
        found.get("strimzi.io/cluster").is_some_and(|cluster| cluster == "other")
    };
    stage.until("from now on it is about the other one", labelled).await;
}

pub async fn a_run_is_followed_where_it_is_when_its_label_is_taken_away(stage: Stage) {
    let _operator = stage.operator();
    stage.run(NAME).await;
    stage.patch(NAME, json!({"metadata": {"labels": {"strimzi.io/cluster": null}}})).await;
    let warned = stage.until_warned(NAME, Reason::InvalidResourceException).await;
    let why = warning(&warned, Reason::InvalidResourceException).unwrap();
    assert!(why.contains("is gone") && why.contains(CLUSTER), "{why}");
    // It is where data moves, so a deletion waits for the end of that.
    stage.delete(NAME).await;
    stage.until("it is gone", || stage.is_gone(NAME)).await;
    assert!(stage.brokers.are_at_rest(), "the run was waited for");
    assert_eq!(stage.brokers.holders(), BTreeSet::from([0, 1, 2, 3]));
}

/// Two copies of everything, and one rack for all of them.
pub async fn a_hard_goal_that_cannot_hold_is_named_with_what_would_help(stage: Stage) {
    let stage = stage.on_brokers(Brokers::in_one_rack());
    let _operator = stage.operator();
    stage.create(NAME, |it| it["spec"] = json!({"goals": ["RackAwareGoal"], "skipHardGoalCheck": true})).await;
    let why = failed(&stage, Reason::CruiseControlRestException).await;
    assert!(why.contains("[RackAwareGoal] Insufficient number of racks"), "the goal: {why}");
    assert!(why.contains("Add at least ") && why.contains(" rack"), "what would fix it: {why}");
    assert!(why.contains("Edit the spec") && why.contains("refresh"), "and how to go on: {why}");
    assert_eq!(stage.brokers.holders(), BTreeSet::from([0, 1]));
    // It says so at every turn, and goes once the goal is given up.
    stage.patch(NAME, json!({"spec": {"goals": ["ReplicaDistributionGoal"]}})).await;
    stage.until_state(NAME, RebalanceState::ProposalReady).await;
}

pub async fn a_kafka_of_another_operator_is_left_alone(mut stage: Stage) {
    stage.look_only_after("team=ours");
    let operator = stage.operator();
    stage.create(NAME, |it| it["metadata"]["finalizers"] = json!([annotations::REBALANCE_FINALIZER])).await;
    stage.linger(300).await;
    let untouched = stage.get(NAME).await;
    assert!(untouched.status.is_none() && finalizers(&untouched).len() == 1, "{untouched:?}");
    assert_eq!(operator.fate.made(), Vec::<String>::new(), "nothing was written, and no engine was asked");
    let ours = Patch::Merge(json!({"metadata": {"labels": {"team": "ours"}}}));
    stage.api::<Kafka>().patch(CLUSTER, &PatchParams::default(), &ours).await.unwrap();
    stage.until_state(NAME, RebalanceState::ProposalReady).await;
}

/// Taken on first, and refused when the engine had had a look: that is told as if it had been refused at once.
pub async fn disks_that_are_not_there_cannot_be_balanced(stage: Stage) {
    let _operator = stage.operator();
    stage.create(NAME, |it| it["spec"] = json!({"rebalanceDisk": true})).await;
    let why = failed(&stage, Reason::CruiseControlRestException).await;
    assert!(why.contains("JBOD") && why.contains("refresh"), "{why}");
}

pub async fn what_does_not_matter_of_a_kafka_wakes_nobody(stage: Stage) {
    let operator = stage.operator();
    stage.create(NAME, |_| {}).await;
    stage.until_state(NAME, RebalanceState::ProposalReady).await;
    // What was written last comes back as news.
    stage.linger(3).await;
    let looks = || {
        let page = operator.figures.render();
        let counted = page.lines().filter(|line| line.starts_with("strimzi_reconciliations_total{"));
        counted.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum::<u64>()
    };
    let before = looks();
    assert!(before > 0);
    for id in ["a", "b", "c"] {
        let status = json!({"status": {"clusterId": id}});
        let patched = stage.api::<Kafka>().patch_status(CLUSTER, &PatchParams::default(), &Patch::Merge(status)).await;
        patched.unwrap();
        stage.linger(1).await;
    }
    assert_eq!(looks(), before);
    stage.set_kafka("NotReady").await;
    stage.until("it is looked at again", || async { looks() > before }).await;
}
