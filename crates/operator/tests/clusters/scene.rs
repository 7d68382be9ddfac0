//! The usual cluster: three controllers and three brokers, looked after by the controllers that are tested here.

use std::sync::Arc;

use evenkeel_api::kafka::{AutoRebalanceState, AutoRebalanceStatus, KafkaStatus};
use evenkeel_api::{Kafka, KafkaNodePool, KafkaRebalance};
use evenkeel_operator::seams::Context;
use evenkeel_sim::BrokerId;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::events::v1::Event;
use kube::api::{Patch, PatchParams};
use kube::{Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::machines::{Machines, Nobody};
use crate::stage::{CLUSTER, Stage, create, patch};

pub(crate) fn pool(name: &str, replicas: i32, roles: &[&str], notes: Value) -> Value {
    json!({
        "metadata": {"name": name, "labels": {"strimzi.io/cluster": CLUSTER}, "annotations": notes},
        "spec": {"replicas": replicas, "roles": roles, "storage": {"type": "ephemeral"}},
    })
}

/// The same, with data that outlives its pods.
pub(crate) fn claimed(name: &str, replicas: i32, roles: &[&str], notes: Value) -> Value {
    let mut pool = pool(name, replicas, roles, notes);
    pool["spec"]["storage"] = json!({"type": "persistent-claim", "size": "100Gi"});
    pool
}

/// Three controllers, three brokers, and an engine that does nothing: what it would do is told by hand.
pub(crate) async fn cluster(stage: &Stage, spec: Value) -> Machines {
    cluster_with(stage, spec).await.0
}

/// The same with these pools.
pub(crate) async fn cluster_of(stage: &Stage, spec: Value, pools: Vec<Value>) -> Machines {
    let (machines, _) = begun(stage, spec, pools).await;
    machines
}

/// Looks after Kafkas, and not after their pods, until dropped.
pub(crate) async fn only_kafkas(context: Context, machines: Machines) {
    evenkeel_operator::kafka::run(context.dialling(&machines.way())).await;
}

/// The controllers that are tested here, until dropped.
pub(crate) async fn operator(context: Context, machines: Machines) {
    let context = context.dialling(&machines.way());
    tokio::join!(evenkeel_operator::pod_set::run(context.clone()), evenkeel_operator::kafka::run(context));
}

pub(crate) async fn cluster_with(stage: &Stage, spec: Value) -> (Machines, JoinHandle<()>) {
    let controllers = pool("controllers", 3, &["controller"], json!({"strimzi.io/next-node-ids": "[100-199]"}));
    begun(stage, spec, vec![controllers, pool("brokers", 3, &["broker"], json!({}))]).await
}

pub(crate) async fn begun(stage: &Stage, spec: Value, pools: Vec<Value>) -> (Machines, JoinHandle<()>) {
    begun_by(stage, stage.context.clone(), spec, pools).await
}

/// The same, by an operator that has this at hand.
pub(crate) async fn begun_by(
    stage: &Stage,
    context: Context,
    spec: Value,
    pools: Vec<Value>,
) -> (Machines, JoinHandle<()>) {
    let machines = Machines::new(stage.context.clock);
    tokio::spawn(machines.clone().run(stage.client.clone(), Arc::new(Nobody)));
    let operator = tokio::spawn(operator(context, machines.clone()));
    for pool in pools {
        create(&stage.api::<KafkaNodePool>(), pool).await;
    }
    create(&stage.api::<Kafka>(), json!({"metadata": {"name": CLUSTER}, "spec": lasting(spec)})).await;
    (machines, operator)
}

/// The same Kafka, with certificates that hold for as long as anybody runs this: who speaks TLS goes by the machine's clock, and
/// every story begins on the same day.
pub(crate) fn lasting(mut spec: Value) -> Value {
    spec["clusterCa"] = json!({"validityDays": 36_500});
    spec
}

pub(crate) fn usual() -> Value {
    json!({
        "kafka": {"listeners": [{"name": "plain", "port": 9092, "type": "internal", "tls": false}]},
        "cruiseControl": {"autoRebalance": [{"mode": "add-brokers"}, {"mode": "remove-brokers"}]},
    })
}

pub(crate) async fn status(stage: &Stage) -> KafkaStatus {
    stage.api::<Kafka>().get(CLUSTER).await.unwrap().status.unwrap_or_default()
}

pub(crate) async fn is_ready(stage: &Stage) -> bool {
    status(stage).await.conditions.first().is_some_and(|state| state.type_ == "Ready")
}

pub(crate) async fn warning(stage: &Stage, reason: &str) -> Option<String> {
    let found = status(stage).await.conditions.into_iter().find(|it| it.reason.as_deref() == Some(reason));
    found.and_then(|it| it.message)
}

pub(crate) async fn node_ids(stage: &Stage, pool: &str) -> Vec<i32> {
    stage.api::<KafkaNodePool>().get(pool).await.unwrap().status.unwrap_or_default().node_ids
}

pub(crate) async fn scale(stage: &Stage, replicas: i32) {
    patch(&stage.api::<KafkaNodePool>(), "brokers", json!({"spec": {"replicas": replicas}})).await;
}

pub(crate) async fn brokers(stage: &Stage) -> Vec<String> {
    stage.pods().await.into_iter().filter(|pod| pod.contains("-brokers-")).collect()
}

pub(crate) async fn events(stage: &Stage, reason: &str) -> Vec<String> {
    let found = stage.api::<Event>().list(&Default::default()).await.unwrap().items;
    found.into_iter().filter(|event| event.reason.as_deref() == Some(reason)).filter_map(|event| event.note).collect()
}

/// All objects of a kind, by kind and name.
pub(crate) async fn names<K>(stage: &Stage) -> Vec<String>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + DeserializeOwned + Clone + std::fmt::Debug,
{
    let found = stage.api::<K>().list(&Default::default()).await.unwrap().items;
    found.iter().map(|it| format!("{} {}", K::kind(&()), it.name_any())).collect()
}

/// Whether Kafka has a broker on its list.
pub(crate) fn is_registered(machines: &Machines, id: i32) -> bool {
    machines.world().look(|cluster| cluster.describe_brokers(BrokerId(0), true).iter().any(|it| it.id == BrokerId(id)))
}

/// Says of a rebalance what its controller would, where there is none: a state, and perhaps why.
pub(crate) async fn tell_of(stage: &Stage, rebalance: &str, state: &str, why: Option<(&str, &str)>) {
    let api = stage.api::<KafkaRebalance>();
    let now = stage.context.clock.now().to_string();
    let mut condition = json!({"type": state, "status": "True", "lastTransitionTime": now});
    if let Some((reason, message)) = why {
        condition["reason"] = json!(reason);
        condition["message"] = json!(message);
    }
    let generation = api.get(rebalance).await.unwrap().metadata.generation;
    let status = json!({"status": {"conditions": [condition], "observedGeneration": generation}});
    // What was asked of it is dealt with.
    patch(&api, rebalance, json!({"metadata": {"annotations": {"strimzi.io/rebalance": null}}})).await;
    api.patch_status(rebalance, &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
}

pub(crate) async fn rebalance(stage: &Stage, name: &str) -> Option<KafkaRebalance> {
    stage.api().get_opt(name).await.unwrap()
}

/// The state of automatic rebalancing.
pub(crate) async fn auto(stage: &Stage) -> AutoRebalanceStatus {
    status(stage).await.auto_rebalance.unwrap_or_default()
}

/// Whether nothing runs and nothing is queued.
pub(crate) async fn is_idle(stage: &Stage) -> bool {
    let auto = auto(stage).await;
    auto.state == AutoRebalanceState::Idle && auto.modes.is_empty()
}

pub(crate) async fn change(stage: &Stage, of_kafka: Value) {
    patch(&stage.api::<Kafka>(), CLUSTER, of_kafka).await;
}
