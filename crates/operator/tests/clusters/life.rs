//! The life of a cluster: it is made, grows, does not shrink while that would lose data, and shrinks.

use std::time::Duration;

use evenkeel_api::{Kafka, KafkaNodePool, KafkaRebalance};
use evenkeel_sim::cluster::{NewTopic, Reassignment};
use evenkeel_sim::{BrokerId, TopicPartition};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret, Service};
use kube::ResourceExt;
use serde_json::json;
use tokio::time::sleep;

use crate::rights;
use crate::scene::{
    begun, brokers, cluster, events, is_ready, is_registered, node_ids, operator, pool, scale, status, usual, warning,
};
use crate::stage::{CLUSTER, Death, Stage, a_while, create, patch, until};

#[tokio::test(start_paused = true)]
async fn a_cluster_is_made_and_then_left_alone() {
    let stage = Stage::new().await;
    cluster(&stage, usual()).await;
    until("it says that it is being made", || async { !status(&stage).await.conditions.is_empty() }).await;
    until("it is ready", || is_ready(&stage)).await;

    let found = status(&stage).await;
    assert_eq!(found.listeners[0].bootstrap_servers.as_deref(), Some("my-cluster-kafka-bootstrap.kafka.svc:9092"));
    let pools: Vec<_> = found.kafka_node_pools.iter().map(|pool| pool.name.as_str()).collect();
    assert_eq!(pools, ["brokers", "controllers"]);
    assert_eq!(found.cluster_id.as_ref().map(String::len), Some(22));
    assert_eq!(
        (node_ids(&stage, "brokers").await, node_ids(&stage, "controllers").await),
        (vec![0, 1, 2], vec![100, 101, 102])
    );
    let pool = stage.api::<KafkaNodePool>().get("brokers").await.unwrap().status.unwrap();
    assert_eq!((pool.replicas, pool.cluster_id), (Some(3), found.cluster_id));
    for service in ["my-cluster-kafka-bootstrap", "my-cluster-kafka-brokers", "my-cluster-cruise-control"] {
        stage.api::<Service>().get(service).await.unwrap();
    }
    until("there is an engine", || async { stage.pods().await.iter().any(|pod| pod.contains("cruise-control")) }).await;

    sleep(Duration::from_secs(30)).await;
    stage.writes();
    sleep(Duration::from_secs(300)).await;
    assert_eq!(stage.writes(), [""; 0], "nothing has happened, so nothing is written");
    let found = status(&stage).await;
    assert!(is_ready(&stage).await, "{found:?}");
    let auto = found.auto_rebalance.unwrap();
    assert!(auto.modes.is_empty(), "a new cluster is no scale-up: {auto:?}");
}

#[tokio::test(start_paused = true)]
async fn it_grows_and_shrinks_only_when_nothing_is_lost() {
    let stage = Stage::new().await;
    let machines = cluster(&stage, usual()).await;
    until("it is ready", || is_ready(&stage)).await;
    a_while().await;

    scale(&stage, 4).await;
    until("the fourth is there", || async { brokers(&stage).await.len() == 4 && is_ready(&stage).await }).await;
    assert_eq!(node_ids(&stage, "brokers").await, [0, 1, 2, 3]);
    let auto = status(&stage).await.auto_rebalance.unwrap();
    assert_eq!(auto.modes[0].brokers, [3], "what was added is remembered");
    until("it gets its data once the engine knows it", || async {
        let made = stage.api::<KafkaRebalance>().get_opt("my-cluster-auto-rebalancing-add-brokers").await.unwrap();
        made.is_some_and(|rebalance| rebalance.spec.brokers == Some(vec![3]))
    })
    .await;
    let capacity = stage.api::<ConfigMap>().get("my-cluster-cruise-control-config").await.unwrap().data.unwrap();
    assert!(capacity["capacity.json"].contains("Capacity for Broker 3"), "{}", capacity["capacity.json"]);

    // Broker 3 holds a partition, and all brokers have heard of it; so it stays, and everyone is told why.
    machines
        .world()
        .with(|cluster| cluster.create_topic(&NewTopic::manual("orders", &[&[3, 0], &[0, 1]]), false).unwrap());
    a_while().await;
    scale(&stage, 3).await;
    until("it is said", || async { warning(&stage, "ScaleDownPreventionCheck").await.is_some() }).await;
    let said = warning(&stage, "ScaleDownPreventionCheck").await.unwrap();
    assert!(said.contains("brokers") && said.contains("broker 3 holds data of 1 partition"), "{said}");
    assert_eq!(events(&stage, "ScaleDownPreventionCheck").await.len(), 1);
    a_while().await;
    assert!(is_ready(&stage).await && brokers(&stage).await.len() == 4);
    assert_eq!(node_ids(&stage, "brokers").await, [0, 1, 2, 3]);

    // Asked back, nothing of it remains.
    scale(&stage, 4).await;
    until("the warning is gone", || async { warning(&stage, "ScaleDownPreventionCheck").await.is_none() }).await;

    // Empty, it goes, and Kafka forgets it.
    machines.world().with(|cluster| cluster.delete_topic("orders").unwrap());
    patch(&stage.api::<Kafka>(), CLUSTER, json!({"metadata": {"annotations": {"evenkeel.io/auto-rebalance": "off"}}}))
        .await;
    scale(&stage, 3).await;
    until("it goes", || async { brokers(&stage).await.len() == 3 }).await;
    assert_eq!(node_ids(&stage, "brokers").await, [0, 1, 2]);
    until("it is unregistered", || async { !is_registered(&machines, 3) }).await;
    a_while().await;
    assert_eq!(events(&stage, "BrokerUnregistered").await.len(), 1, "once, though brokers hear of it late");
    until("its files go", || async {
        stage.api::<ConfigMap>().get_opt("my-cluster-brokers-3").await.unwrap().is_none()
    })
    .await;
    assert!(stage.api::<Secret>().get_opt("my-cluster-brokers-3").await.unwrap().is_none());
    assert!(is_ready(&stage).await);
    rights::check(&stage.calls());
}

/// A person empties the fourth broker by hand: while its data is at both ends it has more replicas than anybody asked for, and
/// nobody is told to give it fewer.
#[tokio::test(start_paused = true)]
async fn what_moves_away_from_a_broker_is_not_counted_twice() {
    let stage = Stage::new().await;
    let machines = cluster(&stage, json!({"kafka": {}})).await;
    until("it is ready", || is_ready(&stage)).await;
    scale(&stage, 4).await;
    until("the fourth is there", || async { brokers(&stage).await.len() == 4 }).await;
    until("and counted on", || async { is_registered(&machines, 3) }).await;
    a_while().await;
    let partition = TopicPartition::new("orders", 0);
    let target = Some([0, 1, 2].map(BrokerId).to_vec());
    machines.world().with(|cluster| {
        cluster.create_topic(&NewTopic::manual("orders", &[&[0, 1, 3]]), false).unwrap();
        cluster.fill(&partition, 10_000_000_000);
        let line = Reassignment { partition: partition.clone(), target };
        cluster.alter_reassignments(&[line], false).into_iter().for_each(Result::unwrap);
    });
    a_while().await;
    scale(&stage, 3).await;
    let held = || warning(&stage, "ScaleDownPreventionCheck");
    until("it is held", || async { held().await.is_some() }).await;
    let moves = || machines.world().look(|cluster| !cluster.list_reassignments(None).is_empty());
    let mut looks = 0;
    while moves() {
        let said = held().await.unwrap_or_default();
        assert!(said.contains("broker 3 holds data of 1 partition (orders-0)"), "{said}");
        looks += 1;
        sleep(Duration::from_secs(1)).await;
    }
    assert!(looks > 10, "it moved while somebody looked: {looks}");
    until("it goes", || async { brokers(&stage).await.len() == 3 }).await;
}

#[tokio::test(start_paused = true)]
async fn a_changed_configuration_restarts_one_after_another() {
    let stage = Stage::new().await;
    let machines = cluster(&stage, json!({"kafka": {}})).await;
    until("it is ready", || is_ready(&stage)).await;
    machines.world().with(|cluster| {
        cluster
            .create_topic(&NewTopic::manual("orders", &[&[0, 1, 2]]).config("min.insync.replicas", "2"), false)
            .unwrap()
    });
    let uids = async || -> Vec<String> {
        let pods = stage.api::<Pod>().list(&Default::default()).await.unwrap().items;
        pods.iter().filter_map(ResourceExt::uid).collect()
    };
    let before = uids().await;
    let revisions = async || -> Vec<String> {
        let pods = stage.api::<Pod>().list(&Default::default()).await.unwrap().items;
        pods.iter().map(|pod| pod.annotations()["strimzi.io/revision"].clone()).collect()
    };
    let old = revisions().await;
    // What Kafka can change while it runs costs no restart.
    patch(&stage.api::<Kafka>(), CLUSTER, json!({"spec": {"kafka": {"config": {"log.retention.ms": 1000}}}})).await;
    // A cluster that has been up for longer than a node may be away.
    sleep(Duration::from_secs(600)).await;
    assert_eq!(uids().await, before);

    patch(
        &stage.api::<Kafka>(),
        CLUSTER,
        json!({"spec": {"kafka": {"config": {"log.retention.ms": 1000, "num.partitions": 5}}}}),
    )
    .await;
    until("all are new", || async {
        let pods = brokers(&stage).await;
        assert!(pods.len() >= 2, "one at a time: {pods:?}");
        assert!(is_ready(&stage).await, "nobody has been away for long");
        let now = revisions().await;
        now.len() == 6 && now.iter().all(|revision| !old.contains(revision))
    })
    .await;
    assert!(is_ready(&stage).await);
    assert_eq!(events(&stage, "PodRestarted").await.len(), 6);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_is_refused_and_what_is_paused_rests() {
    let stage = Stage::new().await;
    cluster(&stage, json!({"kafka": {}})).await;
    until("it is ready", || is_ready(&stage)).await;
    patch(&stage.api::<Kafka>(), CLUSTER, json!({"spec": {"kafka": {"config": {"default.replication.factor": 5}}}}))
        .await;
    until("it is refused", || async { warning(&stage, "InvalidResourceException").await.is_some() }).await;
    assert!(!is_ready(&stage).await);
    assert_eq!(stage.pods().await.len(), 6);
    patch(&stage.api::<Kafka>(), CLUSTER, json!({"spec": {"kafka": {"config": null}}})).await;
    until("it is ready again", || is_ready(&stage)).await;

    // A Kafka that is paused is left alone.
    let rest = json!({"metadata": {"annotations": {"strimzi.io/pause-reconciliation": "true"}}});
    patch(&stage.api::<Kafka>(), CLUSTER, rest).await;
    until("it rests", || async { status(&stage).await.conditions[0].type_ == "ReconciliationPaused" }).await;
    scale(&stage, 4).await;
    a_while().await;
    assert_eq!(stage.pods().await.len(), 6);
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_is_added_is_a_scale_up_and_another_may_shrink_meanwhile() {
    let stage = Stage::new().await;
    let machines = cluster(&stage, usual()).await;
    until("it is ready", || is_ready(&stage)).await;
    create(&stage.api::<KafkaNodePool>(), pool("more", 2, &["broker"], json!({}))).await;
    until("they are there", || async { stage.pods().await.iter().filter(|pod| pod.contains("-more-")).count() == 2 })
        .await;
    let auto = status(&stage).await.auto_rebalance.unwrap();
    assert_eq!(auto.modes[0].brokers, [3, 4]);
    a_while().await;

    machines.world().with(|cluster| cluster.create_topic(&NewTopic::manual("orders", &[&[3, 0]]), false).unwrap());
    scale(&stage, 2).await;
    until("the empty one goes", || async { brokers(&stage).await.len() == 2 }).await;
}

/// The operator dies before one of its writes while the cluster grows, which is the same as after the one before, and the
/// next one brings it to the same end: the new broker is there once, and what was added is not forgotten. Whether the death
/// came at all.
///
/// The cluster is as small as can be: of every story that a decision tells, all deaths are tried in
/// `kafka::decide::tests`; here it is about what the shell makes of them.
async fn grows_although(death: Death) -> bool {
    let stage = Stage::new().await;
    let controller = pool("controllers", 1, &["controller"], json!({"strimzi.io/next-node-ids": "[100-199]"}));
    let pools = vec![controller, pool("brokers", 2, &["broker"], json!({}))];
    let (machines, first) = begun(&stage, usual(), pools).await;
    until("it is ready", || is_ready(&stage)).await;
    a_while().await;
    first.abort();
    let (client, died) = stage.mortal(death);
    let mut context = stage.context.clone();
    context.client = client;
    let mortal = tokio::spawn(operator(context, machines.clone()));
    scale(&stage, 3).await;
    let has_died = tokio::time::timeout(Duration::from_secs(20), died.notified()).await.is_ok();
    mortal.abort();
    let _next = tokio::spawn(operator(stage.context.clone(), machines));
    until("the data of the new one is asked for", || async {
        let made = stage.api::<KafkaRebalance>().get_opt("my-cluster-auto-rebalancing-add-brokers").await.unwrap();
        made.is_some_and(|rebalance| rebalance.spec.brokers == Some(vec![2])) && is_ready(&stage).await
    })
    .await;
    assert_eq!((brokers(&stage).await.len(), node_ids(&stage, "brokers").await), (3, vec![0, 1, 2]), "{death:?}");
    let auto = status(&stage).await.auto_rebalance.unwrap();
    assert_eq!(auto.modes[0].brokers, [2], "{death:?}");
    has_died
}

#[tokio::test(start_paused = true)]
async fn a_scale_up_is_never_lost() {
    let mut number = 0;
    while grows_although(Death(number)).await {
        number += 1;
    }
    assert!(number > 5, "it writes more than {number} times");
}
