//! Clusters of which nothing is wanted: little is asked for them, and whatever happens to them is noticed all the same.

use std::time::Duration;

use evenkeel_api::{Kafka, KafkaNodePool};
use evenkeel_sim::BrokerId;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::ResourceExt;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::scene::{change, cluster, events, is_ready, usual, warning};
use crate::stage::{Stage, create, patch, until};

const MINUTE: Duration = Duration::from_secs(60);
/// As the operator has it unless it is told otherwise.
const INTERVAL: Duration = Duration::from_secs(120);

/// A cluster that has been ready for long.
async fn rested(stage: &Stage, spec: Value) -> crate::machines::Machines {
    let machines = cluster(stage, spec).await;
    until("it is ready", || is_ready(stage)).await;
    sleep(10 * MINUTE).await;
    stage.writes();
    machines
}

/// How often all of the cluster is looked at in this time.
async fn looks_in(stage: &Stage, time: Duration) -> usize {
    let before = stage.looks();
    sleep(time).await;
    stage.looks() - before
}

#[tokio::test(start_paused = true)]
async fn everything_is_looked_at_in_every_fifth_interval_only() {
    let stage = Stage::new().await;
    let _machines = rested(&stage, usual()).await;
    let looks = looks_in(&stage, 20 * INTERVAL).await;
    assert!((3..=5).contains(&looks), "{looks} looks in twenty intervals");
    assert_eq!(stage.writes(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn what_somebody_changes_is_put_right_at_once() {
    let stage = Stage::new().await;
    let _machines = rested(&stage, usual()).await;
    let maps = stage.api::<ConfigMap>();
    let file = || async { maps.get("my-cluster-brokers-1").await.unwrap().data.unwrap() };
    let before = file().await;
    for key in before.keys() {
        let began = Instant::now();
        patch(&maps, "my-cluster-brokers-1", json!({"data": {key.as_str(): "x"}})).await;
        until("it is as it was", || async { file().await == before }).await;
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
        sleep(10 * MINUTE).await;
    }
    let began = Instant::now();
    change(&stage, json!({"metadata": {"annotations": {"strimzi.io/pause-reconciliation": "true"}}})).await;
    let paused = || async { crate::scene::status(&stage).await.conditions[0].type_ == "ReconciliationPaused" };
    until("it is paused", paused).await;
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

/// Nobody watches Kafka: that it misses a broker is only heard from itself.
#[tokio::test(start_paused = true)]
async fn a_broker_that_kafka_misses_is_noticed_in_the_next_interval() {
    let stage = Stage::new().await;
    let machines = rested(&stage, json!({"kafka": {}})).await;
    machines.world().with(|cluster| cluster.isolate_broker(BrokerId(2)));
    assert!(looks_in(&stage, INTERVAL + MINUTE).await >= 1);
    sleep(6 * MINUTE).await;
    assert!(!is_ready(&stage).await, "it is missed");
    machines.world().with(|cluster| cluster.reconnect_broker(BrokerId(2)));
    until("it is ready again", || is_ready(&stage)).await;
    sleep(10 * MINUTE).await;
    let looks = looks_in(&stage, 10 * INTERVAL).await;
    assert!(looks <= 3, "it is at rest again: {looks} looks in ten intervals");
}

/// It loses its label, or another cluster gets it: its brokers run on, the Kafka says so at once, and all is well again when it
/// is back.
#[tokio::test(start_paused = true)]
async fn a_pool_that_loses_its_label_is_spoken_of_at_once_and_its_brokers_stay() {
    let stage = Stage::new().await;
    let _machines = rested(&stage, json!({"kafka": {}, "cruiseControl": {}})).await;
    let pools = stage.api::<KafkaNodePool>();
    let more = crate::scene::pool("more", 1, &["broker"], json!({}));
    create(&pools, more).await;
    sleep(10 * MINUTE).await;
    assert!(is_ready(&stage).await);
    let uids = || async {
        let pods = stage.api::<Pod>().list(&Default::default()).await.unwrap().items;
        let nodes = pods.iter().filter(|pod| !pod.name_any().contains("cruise-control"));
        nodes.map(ResourceExt::uid).collect::<Vec<_>>()
    };
    let before = uids().await;
    for label in [Value::Null, json!("other")] {
        let began = Instant::now();
        let labelled = |label: Value| json!({"metadata": {"labels": {"strimzi.io/cluster": label}}});
        patch(&pools, "brokers", labelled(label)).await;
        let said =
            "KafkaNodePool brokers has lost its label strimzi.io/cluster: my-cluster. Its brokers (0, 1, 2) run on";
        let warned = || warning(&stage, "InvalidResourceException");
        until("it is said", || async { warned().await.is_some_and(|text| text.starts_with(said)) }).await;
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
        sleep(10 * MINUTE).await;
        assert!(is_ready(&stage).await);
        patch(&pools, "brokers", labelled(json!("my-cluster"))).await;
        until("nothing more is said", || async { warned().await.is_none() }).await;
        assert_eq!(uids().await, before);
    }
    assert!(!events(&stage, "InvalidResourceException").await.is_empty());
}

/// Such a name cannot even be looked for.
#[tokio::test(start_paused = true)]
async fn a_kafka_whose_name_is_too_long_for_a_label_says_so() {
    let stage = Stage::new().await;
    let _machines = rested(&stage, json!({"kafka": {}})).await;
    let name = "k".repeat(64);
    let spec = json!({"kafka": {"replicas": 3, "storage": {"type": "ephemeral"}}});
    let kafkas = stage.api::<Kafka>();
    create(&kafkas, json!({"metadata": {"name": name}, "spec": spec})).await;
    let conditions = || async { kafkas.get(&name).await.unwrap().status.unwrap_or_default().conditions };
    until("it is refused", || async { !conditions().await.is_empty() }).await;
    let state = conditions().await.remove(0);
    assert_eq!((state.type_.as_str(), state.reason.as_deref()), ("NotReady", Some("InvalidResourceException")));
    assert!(state.message.unwrap().starts_with("metadata.name: is too long: `kkk"));
    sleep(MINUTE).await;
    assert_eq!(stage.pods().await.len(), 6, "and nothing is made for it");
    assert_eq!(events(&stage, "NotReady").await.len(), 1);
}
