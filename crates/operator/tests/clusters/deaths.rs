//! The operator dies at one of its writes, and whoever follows comes to the same end.

use std::collections::BTreeSet;
use std::time::Duration;

use evenkeel_api::KafkaNodePool;
use evenkeel_sim::cluster::NewTopic;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use tokio::time::sleep;

use crate::play::{Play, operator, scaling};
use crate::scene::{self, begun, begun_by, is_ready, is_registered, node_ids, pool, warning};
use crate::stage::{Death, Stage, a_while, until};

/// What a user asks for while the operator dies.
#[derive(Clone, Copy, Debug)]
enum Story {
    Grow,
    Shrink,
}

/// Plays a story in which the operator dies at one of its writes, and the next one takes over. Whether it died.
async fn although(story: Story, death: Death) -> bool {
    let mut play = match story {
        Story::Grow => Play::with(3, scaling()).await,
        Story::Shrink => Play::placed(4, scaling(), &[0, 1, 2, 3]).await,
    };
    play.operator.abort();
    let (client, died) = play.stage.mortal(death);
    let mut context = play.stage.context.clone();
    context.client = client;
    let mortal = tokio::spawn(operator(context, play.machines.clone(), play.room.clone()));
    let (replicas, holders) = match story {
        Story::Grow => (4, BTreeSet::from([0, 1, 2, 3])),
        Story::Shrink => (3, BTreeSet::from([0, 1, 2])),
    };
    play.scale(replicas).await;
    let has_died = tokio::time::timeout(Duration::from_secs(300), died.notified()).await.is_ok();
    mortal.abort();
    let _ = mortal.await;
    play.operator = tokio::spawn(operator(play.stage.context.clone(), play.machines.clone(), play.room.clone()));
    play.until("its end", async |play| {
        play.brokers().await.len() == replicas as usize && play.holders() == holders && play.is_settled().await
    })
    .await;
    a_while().await;
    assert!(play.is_settled().await, "{story:?} {death:?}");
    has_died
}

/// How far apart the writes are at which the operator dies: all of them, if a soak asks for that.
fn stride(usual: usize) -> usize {
    if std::env::var_os("EVENKEEL_SEEDS").is_some() { 1 } else { usual }
}

async fn dies_everywhere(story: Story, stride: usize) {
    let mut number = 0;
    while although(story, Death(number)).await {
        number += stride;
    }
    assert!(number > stride, "it writes more often than {number} times");
}

#[tokio::test(start_paused = true)]
async fn a_scale_up_comes_to_the_same_end_whenever_the_operator_dies() {
    dies_everywhere(Story::Grow, stride(17)).await;
}

#[tokio::test(start_paused = true)]
async fn a_drain_comes_to_the_same_end_whenever_the_operator_dies() {
    dies_everywhere(Story::Shrink, stride(17)).await;
}

/// What a small cluster without an engine lives through while the operator dies.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Small {
    /// It is made.
    Creation,
    /// A broker is to go that holds data.
    Blocked,
    /// A broker is to go that holds none.
    Removal,
}

/// Plays one of them. Whether the operator died.
async fn small(story: Small, death: Death) -> bool {
    let stage = Stage::new().await;
    let (client, died) = stage.mortal(death);
    let mut context = stage.context.clone();
    context.client = client;
    let controller = pool("controllers", 1, &["controller"], json!({"strimzi.io/next-node-ids": "[100-199]"}));
    let pools = vec![controller, pool("brokers", 3, &["broker"], json!({}))];
    let spec = json!({"kafka": {}});
    let (machines, mortal) = if story == Small::Creation {
        begun_by(&stage, context, spec, pools).await
    } else {
        let (machines, first) = begun(&stage, spec, pools).await;
        until("it is ready", || is_ready(&stage)).await;
        if story == Small::Blocked {
            let topic = NewTopic::manual("orders", &[&[2, 0]]);
            machines.world.with(|cluster| cluster.create_topic(&topic, false).unwrap());
        }
        a_while().await;
        first.abort();
        let _ = first.await;
        let mortal = tokio::spawn(scene::operator(context, machines.clone()));
        scene::scale(&stage, 2).await;
        (machines, mortal)
    };
    let has_died = tokio::time::timeout(Duration::from_secs(60), died.notified()).await.is_ok();
    mortal.abort();
    let _ = mortal.await;
    let _next = tokio::spawn(scene::operator(stage.context.clone(), machines.clone()));
    let left = if story == Small::Removal { vec![0, 1] } else { vec![0, 1, 2] };
    until(&format!("{story:?} {death:?}: its end"), || async {
        let listed = node_ids(&stage, "brokers").await;
        let warned = warning(&stage, "ScaleDownPreventionCheck").await.is_some();
        is_ready(&stage).await && listed == left && warned == (story == Small::Blocked)
    })
    .await;
    sleep(Duration::from_secs(20)).await;
    assert_eq!(node_ids(&stage, "brokers").await, left, "{story:?} {death:?}");
    let pods: Vec<String> = left.iter().map(|id| format!("my-cluster-brokers-{id}")).collect();
    assert_eq!(scene::brokers(&stage).await, pods, "{story:?} {death:?}");
    let listed: Vec<i32> = (0..3).filter(|id| is_registered(&machines, *id)).collect();
    assert_eq!(listed, left, "{story:?} {death:?}: on Kafka's list");
    let file = stage.api::<ConfigMap>().get_opt("my-cluster-brokers-2").await.unwrap();
    assert_eq!(file.is_some(), left.contains(&2), "{story:?} {death:?}: its file");
    let (kafka, pool) = (scene::status(&stage).await, stage.api::<KafkaNodePool>().get("brokers").await.unwrap());
    assert_eq!(kafka.cluster_id, pool.status.unwrap().cluster_id, "{story:?} {death:?}: one id");
    has_died
}

async fn small_everywhere(story: Small, stride: usize) {
    let mut number = 0;
    while small(story, Death(number)).await {
        number += stride;
    }
    assert!(number > stride, "{story:?} writes more often than {number} times");
}

#[tokio::test(start_paused = true)]
async fn a_cluster_is_made_once_whenever_the_operator_dies() {
    small_everywhere(Small::Creation, stride(2)).await;
}

#[tokio::test(start_paused = true)]
async fn a_broker_with_data_stays_whenever_the_operator_dies() {
    small_everywhere(Small::Blocked, 1).await;
}

#[tokio::test(start_paused = true)]
async fn a_broker_without_data_goes_and_is_forgotten_whenever_the_operator_dies() {
    small_everywhere(Small::Removal, 1).await;
}
