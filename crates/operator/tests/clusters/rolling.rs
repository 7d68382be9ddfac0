//! Restarts for a change: nobody who writes or reads notices them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use evenkeel_api::{Kafka, StrimziPodSet};
use evenkeel_kafka as kafka;
use evenkeel_kafka::calls::configs::{Resource, Setting, Source};
use evenkeel_sim::BrokerId;
use evenkeel_sim::cluster::NewTopic;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::machines::Machines;
use crate::rights;
use crate::scene::{cluster, events, is_ready, status, usual};
use crate::stage::{CLUSTER, Stage, a_while, patch, until};

async fn configure(stage: &Stage, config: Value) {
    patch(&stage.api::<Kafka>(), CLUSTER, json!({"spec": {"kafka": {"config": config}}})).await;
}

async fn uids(stage: &Stage) -> BTreeSet<String> {
    let pods = stage.api::<Pod>().list(&Default::default()).await.unwrap().items;
    pods.iter().filter_map(ResourceExt::uid).collect()
}

async fn with_topic(topic: &NewTopic) -> (Stage, Machines) {
    let stage = Stage::new().await;
    let machines = cluster(&stage, json!({"kafka": usual()["kafka"]})).await;
    until("it is ready", || is_ready(&stage)).await;
    machines.world().with(|cluster| cluster.create_topic(topic, false).unwrap());
    a_while().await;
    (stage, machines)
}

/// All are restarted; `holds` is asked the whole time.
async fn roll(stage: &Stage, holds: impl Fn()) {
    let before = uids(stage).await;
    configure(stage, json!({"num.partitions": 5})).await;
    until("all are new", || async {
        holds();
        let now = uids(stage).await;
        now.len() == before.len() && now.is_disjoint(&before)
    })
    .await;
    until("it is ready", || is_ready(stage)).await;
}

#[tokio::test(start_paused = true)]
async fn while_all_are_restarted_as_many_are_in_sync_as_writers_ask_for() {
    let topic = NewTopic::manual("orders", &[&[0, 1, 2], &[1, 2, 0], &[2, 0, 1]]).config("min.insync.replicas", "2");
    let (stage, machines) = with_topic(&topic).await;
    roll(&stage, || {
        machines.world().look(|cluster| {
            for partition in 0..3 {
                let now = cluster.registration("orders", partition).unwrap();
                assert!(now.isr.len() >= 2, "writers are refused: {now:?}");
            }
        });
    })
    .await;
}

/// Writers have to wait while one of two is away, if both are asked for. Readers need not.
#[tokio::test(start_paused = true)]
async fn with_as_many_replicas_as_must_be_in_sync_somebody_leads_all_the_same() {
    for replicas in [&[&[0, 1][..], &[1, 2], &[2, 0]][..], &[&[0, 1, 2][..]]] {
        let topic = NewTopic::manual("orders", replicas).config("min.insync.replicas", &replicas[0].len().to_string());
        let (stage, machines) = with_topic(&topic).await;
        roll(&stage, || {
            machines.world().look(|cluster| {
                for partition in 0..replicas.len() {
                    let now = cluster.registration("orders", i32::try_from(partition).unwrap()).unwrap();
                    assert!(now.leader.is_some() && now.isr.len() + 1 >= replicas[0].len(), "two are away: {now:?}");
                }
            });
        })
        .await;
    }
}

/// A probe that fails for a moment, or a broker that is back in sync before its pod is ready: it holds what is needed.
#[tokio::test(start_paused = true)]
async fn a_broker_that_is_not_ready_is_not_restarted_while_it_would_be_missed() {
    let topic = NewTopic::manual("orders", &[&[0, 1, 2]]).config("min.insync.replicas", "2");
    let (stage, machines) = with_topic(&topic).await;
    machines.world().with(|cluster| cluster.isolate_broker(BrokerId(2)));
    until("it is missed", || async {
        machines.world().look(|cluster| cluster.registration("orders", 0).unwrap().isr.len() == 2)
    })
    .await;
    // All brokers have heard of it.
    a_while().await;
    machines.hold("my-cluster-brokers-0");
    configure(&stage, json!({"num.partitions": 5})).await;
    sleep(Duration::from_secs(60)).await;
    assert_eq!(events(&stage, "PodRestarted").await, [""; 0]);

    machines.world().with(|cluster| cluster.reconnect_broker(BrokerId(2)));
    until("it goes first", || async { !events(&stage, "PodRestarted").await.is_empty() }).await;
    let told = events(&stage, "PodRestarted").await;
    assert!(told[0].starts_with("my-cluster-brokers-0 is restarted"), "{told:?}");
}

/// Its port is open long before a controller knows what the others know.
#[tokio::test(start_paused = true)]
async fn a_controller_is_not_restarted_before_the_others_have_caught_up_and_the_one_that_leads_goes_last() {
    let (stage, machines) = with_topic(&NewTopic::manual("orders", &[&[0, 1, 2]])).await;
    machines.world().with(|cluster| {
        cluster.set_voters([100, 101, 102]);
        cluster.hold_voter(102);
    });
    configure(&stage, json!({"num.partitions": 5})).await;
    let waits = async || status(&stage).await.conditions.first().and_then(|state| state.message.clone());
    let said =
        "the restart of my-cluster-controllers-101 waits until controllers have caught up with the one that leads: 102";
    until("it is said", || async { waits().await.as_deref() == Some(said) }).await;
    sleep(Duration::from_secs(120)).await;
    assert_eq!(events(&stage, "PodRestarted").await.len(), 3, "only brokers");
    assert!(is_ready(&stage).await);

    machines.world().with(|cluster| cluster.catch_up_voter(102));
    let restarted = async |id: i32| {
        let begin = format!("my-cluster-controllers-{id} is restarted");
        events(&stage, "PodRestarted").await.iter().any(|told| told.starts_with(&begin))
    };
    for id in [101, 102, 100] {
        assert!(!restarted(100).await || id == 100, "it leads");
        until("it goes", || restarted(id)).await;
    }
    until("it is ready", || is_ready(&stage)).await;
}

#[tokio::test(start_paused = true)]
async fn whoever_asks_a_pod_or_a_pod_set_gets_its_restarts_and_no_others() {
    let (stage, _machines) = with_topic(&NewTopic::manual("orders", &[&[0, 1, 2]])).await;
    let ask = json!({"metadata": {"annotations": {"strimzi.io/manual-rolling-update": "true"}}});
    let before = uids(&stage).await;
    patch(&stage.api::<Pod>(), "my-cluster-brokers-1", ask.clone()).await;
    until("it is new", || async { before.difference(&uids(&stage).await).count() == 1 }).await;
    until("all are there", || async { uids(&stage).await.len() == before.len() && is_ready(&stage).await }).await;
    a_while().await;
    let told = "my-cluster-brokers-1 is restarted: it was asked for";
    assert_eq!(events(&stage, "PodRestarted").await, [told]);

    let before = uids(&stage).await;
    patch(&stage.api::<StrimziPodSet>(), "my-cluster-controllers", ask).await;
    until("they are new", || async { before.difference(&uids(&stage).await).count() == 3 }).await;
    sleep(Duration::from_secs(300)).await;
    assert_eq!(events(&stage, "PodRestarted").await.len(), 4, "each once");
    let set = stage.api::<StrimziPodSet>().get("my-cluster-controllers").await.unwrap();
    assert!(!set.annotations().contains_key("strimzi.io/manual-rolling-update"));
    rights::check(&stage.calls());
}

/// A setting as broker 0 has it.
async fn setting(machines: &Machines, name: &str) -> Option<Setting> {
    let client: kafka::Client = machines.client_over(Arc::new(machines.connector())).unwrap();
    let broker = Resource::Broker(kafka::BrokerId(0));
    let asked = client.describe_configs(std::slice::from_ref(&broker), Some(&[name])).await.whole().unwrap();
    asked[&broker].as_ref().unwrap().get(name).cloned()
}

#[tokio::test(start_paused = true)]
async fn what_kafka_can_change_while_it_runs_is_told_to_it_and_taken_back() {
    let (stage, machines) = with_topic(&NewTopic::manual("orders", &[&[0, 1, 2]])).await;
    let before = uids(&stage).await;
    configure(&stage, json!({"log.retention.ms": 1000, "min.insync.replicas": 2})).await;
    until("it is told", || async {
        let told = setting(&machines, "log.retention.ms").await;
        told.is_some_and(|it| it.source == Source::AllBrokers && it.value.as_deref() == Some("1000"))
    })
    .await;
    let least = setting(&machines, "min.insync.replicas").await.unwrap();
    assert_eq!((least.source, least.value.as_deref()), (Source::AllBrokers, Some("2")));
    a_while().await;
    assert_eq!(uids(&stage).await, before, "nobody was restarted for it");

    configure(&stage, json!({"log.retention.ms": null, "min.insync.replicas": null})).await;
    until("it is taken back", || async {
        let told = setting(&machines, "log.retention.ms").await;
        told.is_none_or(|it| it.source != Source::AllBrokers && it.value.as_deref() != Some("1000"))
    })
    .await;
    let least = setting(&machines, "min.insync.replicas").await.unwrap();
    assert_eq!(least.value.as_deref(), Some("1"), "it cannot be taken back: {least:?}");
    // What a process was started with it does not forget: each is started once more.
    until("all are new", || async {
        let now = uids(&stage).await;
        now.len() == before.len() && now.is_disjoint(&before)
    })
    .await;
    a_while().await;
    assert_eq!(events(&stage, "PodRestarted").await.len(), before.len());
}
