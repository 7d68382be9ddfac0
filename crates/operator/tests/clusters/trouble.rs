//! What goes wrong keeps up nothing else, and whoever can mend it is told.

use std::time::Duration;

use evenkeel_api::{Kafka, KafkaNodePool, StrimziPodSet};
use evenkeel_kafka as kafka;
use evenkeel_operator::seams::{BoxFuture, ClusterRef, Kafkas, Trust, Unreachable};
use evenkeel_sim::BrokerId;
use evenkeel_sim::cluster::NewTopic;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Pod, Secret};
use kube::ResourceExt;
use kube::api::DeleteParams;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::machines::Machines;
use crate::scene::{
    brokers, cluster, cluster_of, cluster_with, events, is_ready, is_registered, node_ids, only_kafkas, operator, pool,
    scale, status, usual, warning,
};
use crate::stage::{CLUSTER, Stage, a_while, create, patch, until};

async fn configure(stage: &Stage, config: Value) {
    patch(&stage.api::<Kafka>(), CLUSTER, json!({"spec": {"kafka": {"config": config}}})).await;
}

/// The usual nodes, and broker 3 in a pool of its own.
async fn with_one_more() -> (Stage, Machines) {
    let stage = Stage::new().await;
    let machines = cluster(&stage, json!({"kafka": {}})).await;
    until("it is ready", || is_ready(&stage)).await;
    create(&stage.api::<KafkaNodePool>(), pool("more", 1, &["broker"], json!({}))).await;
    until("it is there", || async { is_registered(&machines, 3) && is_ready(&stage).await }).await;
    (stage, machines)
}

#[tokio::test(start_paused = true)]
async fn a_setting_that_kafka_refuses_is_said_and_the_rest_goes_on() {
    let stage = Stage::new().await;
    cluster(&stage, usual()).await;
    until("it is ready", || is_ready(&stage)).await;
    a_while().await;
    configure(&stage, json!({"log.retention.ms": "soon", "log.segment.bytes": 1_048_576})).await;
    scale(&stage, 4).await;
    until("it is said", || async { warning(&stage, "InvalidResourceException").await.is_some() }).await;
    let said = warning(&stage, "InvalidResourceException").await.unwrap();
    assert!(said.starts_with("spec.kafka.config.log.retention.ms: Kafka refuses it: "), "{said}");
    until("it grows all the same", || async { brokers(&stage).await.len() == 4 && is_ready(&stage).await }).await;
    let file = stage.api::<ConfigMap>().get("my-cluster-brokers-3").await.unwrap().data.unwrap();
    assert!(!file["server.config"].contains("soon"), "it would not start with it");
    assert!(file["server.config"].contains("log.segment.bytes=1048576"), "what it takes is set");
    sleep(Duration::from_secs(600)).await;
    assert_eq!(events(&stage, "InvalidResourceException").await.len(), 1, "once");

    configure(&stage, json!({"log.retention.ms": 60_000})).await;
    until("it is mended", || async { warning(&stage, "InvalidResourceException").await.is_none() }).await;
    assert!(is_ready(&stage).await);
}

#[tokio::test(start_paused = true)]
async fn what_is_somebody_else_s_is_not_taken_over() {
    let stage = Stage::new().await;
    cluster(&stage, usual()).await;
    until("it is ready", || is_ready(&stage)).await;
    let maps = stage.api::<ConfigMap>();
    create(&maps, json!({"metadata": {"name": "my-cluster-brokers-3"}, "data": {"mine": "x"}})).await;
    scale(&stage, 4).await;
    until("it is said", || async { warning(&stage, "KubernetesClientException").await.is_some() }).await;
    let said = warning(&stage, "KubernetesClientException").await.unwrap();
    assert!(said.contains("ConfigMap my-cluster-brokers-3"), "{said}");
    a_while().await;
    let mine = maps.get("my-cluster-brokers-3").await.unwrap();
    assert_eq!((mine.data.unwrap().len(), mine.metadata.labels), (1, None));
    assert_eq!(brokers(&stage).await.len(), 3, "it would have nothing to start with");
    assert!(is_ready(&stage).await);
    assert_eq!(events(&stage, "KubernetesClientException").await.len(), 1, "once");

    maps.delete("my-cluster-brokers-3", &DeleteParams::default()).await.unwrap();
    until("it grows", || async { brokers(&stage).await.len() == 4 }).await;
    until("the warning is gone", || async { warning(&stage, "KubernetesClientException").await.is_none() }).await;
}

#[tokio::test(start_paused = true)]
async fn a_cluster_whose_pools_are_away_gets_no_second_set_of_nodes() {
    let stage = Stage::new().await;
    let mut spec = usual();
    spec["kafka"]["replicas"] = json!(3);
    spec["kafka"]["storage"] = json!({"type": "ephemeral"});
    cluster(&stage, spec).await;
    until("it is ready", || is_ready(&stage)).await;
    let pools = stage.api::<KafkaNodePool>();
    for name in ["brokers", "controllers"] {
        pools.delete(name, &DeleteParams::default()).await.unwrap();
    }
    until("it is said", || async { warning(&stage, "InvalidResourceException").await.is_some() }).await;
    sleep(Duration::from_secs(300)).await;
    let sets = stage.api::<StrimziPodSet>().list(&Default::default()).await.unwrap().items;
    assert!(sets.iter().all(|set| set.owner_references()[0].kind == "KafkaNodePool"), "{sets:?}");
}

#[tokio::test(start_paused = true)]
async fn whoever_stands_in_a_pod_set_is_not_gone_although_its_pool_lost_its_label() {
    let stage = Stage::new().await;
    let (machines, operator) = cluster_with(&stage, usual()).await;
    until("it is ready", || is_ready(&stage)).await;
    let mut more = pool("more", 1, &["broker"], json!({}));
    more["spec"]["storage"] = json!({"type": "persistent-claim", "size": "1Gi", "deleteClaim": true});
    let pools = stage.api::<KafkaNodePool>();
    create(&pools, more).await;
    until("it is there", || async { is_registered(&machines, 3) && is_ready(&stage).await }).await;
    a_while().await;
    operator.abort();
    patch(&pools, "more", json!({"metadata": {"labels": {"strimzi.io/cluster": null}}})).await;
    // Nobody brings the pod back for a while: only the Kafkas are looked after.
    let _next = tokio::spawn(only_kafkas(stage.context.clone(), machines.clone()));
    stage.api::<Pod>().delete("my-cluster-more-3", &DeleteParams::default()).await.unwrap();
    sleep(Duration::from_secs(60)).await;
    assert!(is_registered(&machines, 3));
    stage.api::<PersistentVolumeClaim>().get("data-my-cluster-more-3").await.unwrap();
    stage.api::<Secret>().get("my-cluster-more-3").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_lost_authority_is_followed_by_new_certificates_for_all() {
    let stage = Stage::new().await;
    cluster(&stage, json!({"kafka": {}})).await;
    until("it is ready", || is_ready(&stage)).await;
    let secrets = stage.api::<Secret>();
    let chains = async || -> Vec<Vec<u8>> {
        let all = secrets.list(&Default::default()).await.unwrap().items;
        all.into_iter().filter_map(|secret| Some(secret.data?.remove("keystore.pem")?.0)).collect()
    };
    let uids = async || -> Vec<String> {
        let pods = stage.api::<Pod>().list(&Default::default()).await.unwrap().items;
        pods.iter().filter_map(ResourceExt::uid).collect()
    };
    let (old, pods) = (chains().await, uids().await);
    for name in ["my-cluster-cluster-ca", "my-cluster-cluster-ca-cert"] {
        secrets.delete(name, &DeleteParams::default()).await.unwrap();
    }
    until("all have new ones, and were restarted", || async {
        let (new, now) = (chains().await, uids().await);
        new.len() == old.len()
            && new.iter().all(|chain| !old.contains(chain))
            && now.iter().all(|uid| !pods.contains(uid))
    })
    .await;
    until("it is ready again", || is_ready(&stage)).await;
}

#[tokio::test(start_paused = true)]
async fn a_restart_waits_for_replicas_in_sync_says_so_and_goes_on_soon() {
    let stage = Stage::new().await;
    let machines = cluster(&stage, json!({"kafka": {}})).await;
    until("it is ready", || is_ready(&stage)).await;
    let topic = NewTopic::manual("orders", &[&[0, 1, 2]]).config("min.insync.replicas", "2");
    machines.world().with(|cluster| cluster.create_topic(&topic, false).unwrap());
    machines.world().with(|cluster| cluster.isolate_broker(BrokerId(2)));
    sleep(Duration::from_secs(60)).await;
    configure(&stage, json!({"num.partitions": 5})).await;
    let waits = async || status(&stage).await.conditions.first().and_then(|state| state.message.clone());
    until("it is said", || async { waits().await.is_some() }).await;
    let said = waits().await.unwrap();
    assert!(said.contains("my-cluster-brokers-0 waits until orders-0 has more replicas in sync"), "{said}");
    assert_eq!(events(&stage, "PodRestarted").await.len(), 0);
    machines.world().with(|cluster| cluster.reconnect_broker(BrokerId(2)));
    let begun = Instant::now();
    until("it goes on", || async { !events(&stage, "PodRestarted").await.is_empty() }).await;
    assert!(begun.elapsed() < Duration::from_secs(30), "in simulated time: {:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_goes_with_its_data_leaves_a_warning_until_that_is_elsewhere() {
    let (stage, machines) = with_one_more().await;
    let pools = stage.api::<KafkaNodePool>();
    machines.world().with(|cluster| cluster.create_topic(&NewTopic::manual("orders", &[&[3, 0]]), false).unwrap());
    a_while().await;
    pools.delete("more", &DeleteParams::default()).await.unwrap();
    until("it is said", || async { warning(&stage, "ScaleDownPreventionCheck").await.is_some() }).await;
    let said = warning(&stage, "ScaleDownPreventionCheck").await.unwrap();
    assert!(said.contains("broker 3 holds data of 1 partition (orders-0)"), "{said}");
    a_while().await;
    assert!(is_registered(&machines, 3));
    machines.world().with(|cluster| cluster.delete_topic("orders").unwrap());
    until("it is forgotten", || async { !is_registered(&machines, 3) }).await;
    until("the warning is gone", || async { warning(&stage, "ScaleDownPreventionCheck").await.is_none() }).await;
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_loses_its_role_keeps_it_while_it_holds_data() {
    let stage = Stage::new().await;
    let both = pool("controllers", 3, &["controller", "broker"], json!({"strimzi.io/next-node-ids": "[100-199]"}));
    let pools = vec![both, pool("brokers", 3, &["broker"], json!({}))];
    let machines = cluster_of(&stage, json!({"kafka": {}}), pools).await;
    until("it is ready", || is_ready(&stage)).await;
    machines.world().with(|cluster| cluster.create_topic(&NewTopic::manual("orders", &[&[101, 0]]), false).unwrap());
    a_while().await;
    patch(&stage.api::<KafkaNodePool>(), "controllers", json!({"spec": {"roles": ["controller"]}})).await;
    until("it is said", || async { warning(&stage, "ScaleDownPreventionCheck").await.is_some() }).await;
    let said = warning(&stage, "ScaleDownPreventionCheck").await.unwrap();
    assert!(said.contains("the roles broker,controller are kept") && said.contains("broker 101 holds data"), "{said}");
    sleep(Duration::from_secs(60)).await;
    assert!(is_registered(&machines, 101) && is_ready(&stage).await);
    assert_eq!(events(&stage, "PodRestarted").await.len(), 0);

    machines.world().with(|cluster| cluster.delete_topic("orders").unwrap());
    until("they are brokers no more", || async { (100..103).all(|id| !is_registered(&machines, id)) }).await;
    until("nothing more is said", || async { warning(&stage, "ScaleDownPreventionCheck").await.is_none() }).await;
    assert_eq!(stage.pods().await.len(), 6);
}

#[tokio::test(start_paused = true)]
async fn whoever_cannot_be_asked_about_its_data_stays() {
    let stage = Stage::new().await;
    let (machines, first) = cluster_with(&stage, json!({"kafka": {}})).await;
    until("it is ready", || is_ready(&stage)).await;
    scale(&stage, 4).await;
    until("the fourth is there", || async { is_registered(&machines, 3) && is_ready(&stage).await }).await;
    first.abort();
    // Nobody reaches Kafka, though all brokers are well.
    let mut blind = stage.context.clone();
    blind.kafkas = std::sync::Arc::new(NoWay);
    let blind = tokio::spawn(async move {
        tokio::join!(evenkeel_operator::pod_set::run(blind.clone()), evenkeel_operator::kafka::run(blind));
    });
    scale(&stage, 3).await;
    until("it is said", || async { warning(&stage, "ScaleDownPreventionCheck").await.is_some() }).await;
    let said = warning(&stage, "ScaleDownPreventionCheck").await.unwrap();
    assert!(said.contains("nobody knows whether they hold data"), "{said}");
    sleep(Duration::from_secs(60)).await;
    assert_eq!(brokers(&stage).await.len(), 4);
    blind.abort();
    let _next = tokio::spawn(operator(stage.context.clone(), machines));
    until("it goes once it can be asked", || async { brokers(&stage).await.len() == 3 }).await;
}

#[tokio::test(start_paused = true)]
async fn an_id_is_given_to_no_other_pool_while_its_pod_ends() {
    let (stage, _machines) = with_one_more().await;
    let pools = stage.api::<KafkaNodePool>();
    let old = "my-cluster-more-3".to_owned();
    // It takes its time to end.
    patch(&stage.api::<Pod>(), &old, json!({"metadata": {"finalizers": ["example.com/lingers"]}})).await;
    patch(&pools, "more", json!({"spec": {"replicas": 0}})).await;
    until("it is listed no more", || async {
        stage.api::<StrimziPodSet>().get("my-cluster-more").await.unwrap().spec.pods.is_empty()
    })
    .await;
    scale(&stage, 4).await;
    until("another one comes", || async { brokers(&stage).await.len() == 4 }).await;
    assert_eq!(node_ids(&stage, "brokers").await, [0, 1, 2, 4], "the pod of the other 3 still runs");
    assert!(stage.pods().await.contains(&old));
    pools.delete("more", &DeleteParams::default()).await.unwrap();
    a_while().await;
    scale(&stage, 5).await;
    until("yet another comes", || async { brokers(&stage).await.len() == 5 }).await;
    assert_eq!(node_ids(&stage, "brokers").await, [0, 1, 2, 4, 5]);
    patch(&stage.api::<Pod>(), &old, json!({"metadata": {"finalizers": null}})).await;
    until("it has ended", || async { !stage.pods().await.contains(&old) }).await;
    scale(&stage, 6).await;
    until("now it is free", || async { node_ids(&stage, "brokers").await == [0, 1, 2, 3, 4, 5] }).await;
}

#[tokio::test(start_paused = true)]
async fn a_new_broker_that_does_not_come_up_is_no_reason_to_call_the_others_not_ready() {
    let stage = Stage::new().await;
    let machines = cluster(&stage, json!({"kafka": {}})).await;
    until("it is ready", || is_ready(&stage)).await;
    machines.hold("my-cluster-brokers-3");
    scale(&stage, 4).await;
    until("its pod is there", || async { brokers(&stage).await.len() == 4 }).await;
    sleep(Duration::from_secs(600)).await;
    assert!(is_ready(&stage).await);
    let told = warning(&stage, "TimeoutException").await.expect("it is said");
    assert!(told.contains("have not come up for more than 5 minutes: my-cluster-brokers-3"), "{told}");
    // Nor is it one to leave the others as they are.
    let old = stage.api::<Pod>().get("my-cluster-brokers-0").await.unwrap().uid();
    configure(&stage, json!({"num.partitions": 5})).await;
    until("they are restarted", || async {
        stage.api::<Pod>().get_opt("my-cluster-brokers-0").await.unwrap().is_some_and(|pod| pod.uid() != old)
    })
    .await;
    sleep(Duration::from_secs(120)).await;
    assert!(is_ready(&stage).await);

    machines.hold("my-cluster-brokers-0");
    stage.api::<Pod>().delete("my-cluster-brokers-0", &DeleteParams::default()).await.unwrap();
    sleep(Duration::from_secs(240)).await;
    assert!(is_ready(&stage).await, "it may yet come back");
    until("one that was there before is missed", || async { !is_ready(&stage).await }).await;
    let said = status(&stage).await.conditions[0].message.clone().unwrap();
    assert!(said.contains("my-cluster-brokers-0") && !said.contains("my-cluster-brokers-3"), "{said}");
}

/// No way to any cluster.
#[derive(Debug)]
pub(crate) struct NoWay;

impl Kafkas for NoWay {
    fn client<'a>(&'a self, of: &'a ClusterRef, _: &'a Trust) -> BoxFuture<'a, Result<kafka::Client, Unreachable>> {
        Box::pin(async move { Err(Unreachable::NoWay(of.clone())) })
    }

    fn forget(&self, _: &ClusterRef) {}
}
