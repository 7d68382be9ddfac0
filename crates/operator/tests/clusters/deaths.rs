//! The operator dies at one of its writes, and whoever follows comes to the same end. Here are clusters without an engine; the
//! others are in `chaos::chapters`.

use std::time::Duration;

use evenkeel_api::KafkaNodePool;
use evenkeel_sim::cluster::NewTopic;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use tokio::time::sleep;

use crate::scene::{self, begun, begun_by, is_ready, is_registered, node_ids, pool, warning};
use crate::stage::{Death, Stage, a_while, until};

/// How far apart the writes are at which the operator dies: all of them, if a soak asks for that.
fn stride(usual: usize) -> usize {
    if std::env::var_os("EVENKEEL_SEEDS").is_some() { 1 } else { usual }
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
            machines.world().with(|cluster| cluster.create_topic(&topic, false).unwrap());
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
