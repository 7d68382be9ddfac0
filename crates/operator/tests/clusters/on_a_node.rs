//! Clusters whose pods are run by a node, as in a local run, but over pipes in memory and in paused time: brokers and the
//! engine start from the very ConfigMaps, Secrets and volumes that the operator has written, find each other by name, and
//! speak TLS. The operator reaches them as it does in production; only what is dialled below is a pipe.
//!
//! The other suites have `machines`, which is the same node with an engine that stories can kill, or without one.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use evenkeel_api::{Kafka, KafkaNodePool, KafkaRebalance};
use evenkeel_node::addresses::AddressTable;
use evenkeel_node::clock::Clock;
use evenkeel_node::kubelet::Settings;
use evenkeel_node::kubelet::logs::Logs;
use evenkeel_node::nodes::Nodes;
use evenkeel_node::programs::engine::Engines;
use evenkeel_node::programs::kafka::{Brokers, Simulation};
use evenkeel_node::programs::wires::Wires;
use evenkeel_node::programs::{AnyBrokers, LocalPrograms};
use evenkeel_sim::cluster::NewTopic;
use evenkeel_sim::serve::World;
use evenkeel_sim::{BrokerId, Options, TopicPartition};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::DeleteParams;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::play::mode;
use crate::scene::{brokers, claimed, is_idle, is_ready, lasting, pool, scale};
use crate::stage::{CLUSTER, NAMESPACE, Stage, create, until};

const PARTITIONS: i32 = 12;

/// A Kubernetes with a node and an operator in it.
struct Place {
    stage: Stage,
    simulated: Brokers,
}

impl Place {
    /// With a controller, three brokers whose data outlives their pods, and an engine that learns quickly.
    async fn with_a_cluster() -> Self {
        let stage = Stage::deserted().await;
        let now = stage.context.clock;
        let (wires, table, clock) = (Wires::pipes(), AddressTable::default(), Clock::new(move || now.now()));
        let options = Options { session_timeout: 2_000, ..Options::default() };
        let simulated = Brokers::new(wires.clone(), Simulation { clock: clock.clone(), speed: 1.0, options });
        let engines = Engines::new(wires.clone(), clock.clone(), Some(stage.client.clone()));
        let programs = LocalPrograms { brokers: AnyBrokers::Simulated(simulated.clone()), engines };
        let node = Settings {
            nodes: Nodes::default(),
            programs: Arc::new(programs),
            clock,
            addresses: table.clone(),
            logs: Logs::default(),
            dir: None,
            account: None,
            stop_within: Duration::from_secs(3),
        };
        tokio::spawn(evenkeel_node::run_pods(stage.client.clone(), node, std::future::pending()));
        let context = stage.context.clone().dialling(&wires.connector(table));
        tokio::spawn(async move {
            tokio::join!(
                evenkeel_operator::pod_set::run(context.clone()),
                evenkeel_operator::kafka::run(context.clone()),
                evenkeel_operator::rebalance::controller::run(context),
            )
        });
        let pools = stage.api::<KafkaNodePool>();
        create(&pools, pool("controllers", 1, &["controller"], json!({"strimzi.io/next-node-ids": "[100-199]"}))).await;
        create(&pools, claimed("brokers", 3, &["broker"], json!({}))).await;
        let template = json!({
            "metadata": {"name": "even", "annotations": {"strimzi.io/rebalance-template": "true"}},
            "spec": {"goals": ["ReplicaDistributionGoal"], "skipHardGoalCheck": true},
        });
        create(&stage.api::<KafkaRebalance>(), template).await;
        create(&stage.api::<Kafka>(), json!({"metadata": {"name": CLUSTER}, "spec": lasting(spec())})).await;
        until("it is ready", || is_ready(&stage)).await;
        Self { stage, simulated }
    }

    fn world(&self) -> World {
        self.simulated.worlds().get(NAMESPACE, CLUSTER).expect("its first broker has begun it")
    }

    /// A topic on the first three brokers, which the engine has seen.
    async fn fill(&self) {
        self.world().with(|cluster| {
            let lists: Vec<[i32; 2]> = (0..PARTITIONS).map(|number| [number % 3, (number + 1) % 3]).collect();
            let lists: Vec<&[i32]> = lists.iter().map(<[i32; 2]>::as_slice).collect();
            cluster.create_topic(&NewTopic::manual("orders", &lists), false).unwrap();
            for number in 0..PARTITIONS {
                cluster.fill(&TopicPartition::new("orders", number), 20_000_000);
            }
        });
        sleep(Duration::from_secs(60)).await;
    }

    /// Brokers that hold anything. Of which topic is the plan's choice: what weighs least goes first, and that is what the
    /// engine itself has written.
    fn holders(&self) -> BTreeSet<i32> {
        self.world().look(|cluster| {
            cluster.broker_status().iter().filter(|broker| broker.replicas > 0).map(|broker| broker.id.0).collect()
        })
    }

    fn is_registered(&self, id: i32) -> bool {
        self.world().look(|cluster| cluster.describe_brokers(BrokerId(0), true).iter().any(|it| it.id == BrokerId(id)))
    }

    /// What a program has printed is behind `kubectl logs`; that it runs stands in the pod's status.
    async fn restarts(&self, pod: &str) -> Option<i32> {
        let status = self.stage.api::<Pod>().get(pod).await.unwrap().status?;
        status.container_statuses?.into_iter().find(|it| it.ready).map(|it| it.restart_count)
    }
}

fn spec() -> Value {
    json!({
        "kafka": {"listeners": [{"name": "plain", "port": 9092, "type": "internal", "tls": false}]},
        "cruiseControl": {
            "autoRebalance": [mode("add-brokers"), mode("remove-brokers")],
            "config": {
                "metric.sampling.interval.ms": 5_000,
                "partition.metrics.window.ms": 10_000,
                "min.samples.per.partition.metrics.window": 1,
                "default.replication.throttle": 5_000_000,
            },
        },
    })
}

#[tokio::test(start_paused = true)]
async fn a_cluster_grows_gets_its_data_and_shrinks_when_its_brokers_are_empty() {
    let place = Place::with_a_cluster().await;
    let stage = &place.stage;
    until("the engine serves", || async {
        let engine = stage.api::<Deployment>().get("my-cluster-cruise-control").await.unwrap();
        engine.status.and_then(|status| status.available_replicas) == Some(1)
    })
    .await;
    assert_eq!(place.restarts("my-cluster-brokers-0").await, Some(0));
    place.fill().await;

    scale(stage, 4).await;
    until("the fourth has its data", || async { place.holders().contains(&3) && is_idle(stage).await }).await;
    assert_eq!(place.holders(), BTreeSet::from([0, 1, 2, 3]));
    assert!(is_ready(stage).await);

    scale(stage, 3).await;
    until("it is empty, and gone", || async { brokers(stage).await.len() == 3 && is_idle(stage).await }).await;
    until("it is forgotten", || async { !place.is_registered(3) }).await;
    assert_eq!(place.holders(), BTreeSet::from([0, 1, 2]));
}

/// Its data is in its claim, so it is there again with the next pod.
#[tokio::test(start_paused = true)]
async fn a_broker_whose_pod_is_deleted_comes_back_with_its_data() {
    let place = Place::with_a_cluster().await;
    place.fill().await;
    let pods = place.stage.api::<Pod>();
    let before = pods.get("my-cluster-brokers-1").await.unwrap().uid();
    pods.delete("my-cluster-brokers-1", &DeleteParams::default()).await.unwrap();
    until("there is another", || async {
        let now = pods.get_opt("my-cluster-brokers-1").await.unwrap();
        now.is_some_and(|pod| pod.uid() != before) && is_ready(&place.stage).await
    })
    .await;
    until("all are in sync", || async {
        place.world().look(|cluster| {
            (0..PARTITIONS).all(|number| cluster.registration("orders", number).unwrap().isr.len() == 2)
        })
    })
    .await;
    assert_eq!(place.holders(), BTreeSet::from([0, 1, 2]));
}
