//! A whole cluster to play with: all controllers, the real engine and simulated brokers, in paused time.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use evenkeel_api::kafka::{AutoRebalanceState, KafkaStatus};
use evenkeel_api::rebalance::RebalanceState;
use evenkeel_api::{Kafka, KafkaNodePool, KafkaRebalance};
use evenkeel_operator::seams::Context;
use evenkeel_sim::TopicPartition;
use evenkeel_sim::cluster::NewTopic;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::events::v1::Event;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::engine_room::EngineRoom;
use crate::machines::Machines;
use crate::scene::{claimed, lasting, pool};
use crate::stage::{CLUSTER, Stage, create, patch};

pub(crate) const ADD: &str = "my-cluster-auto-rebalancing-add-brokers";
pub(crate) const REMOVE: &str = "my-cluster-auto-rebalancing-remove-brokers";
pub(crate) const MAP: &str = "my-cluster-goal-violation-map";
pub(crate) const PARTITIONS: i32 = 12;

pub(crate) struct Play {
    pub(crate) stage: Stage,
    pub(crate) machines: Machines,
    pub(crate) room: EngineRoom,
    pub(crate) operator: JoinHandle<()>,
}

/// All controllers, until dropped.
pub(crate) async fn operator(context: Context, machines: Machines, room: EngineRoom) {
    controllers(Context { engines: Arc::new(room), ..context.dialling(&machines.way()) }).await;
}

/// The same with these ways to Kafka and to the engine.
pub(crate) async fn controllers(context: Context) {
    tokio::join!(
        evenkeel_operator::pod_set::run(context.clone()),
        evenkeel_operator::kafka::run(context.clone()),
        evenkeel_operator::rebalance::controller::run(context),
    );
}

/// A mode that only counts replicas, so that every run is the same.
pub(crate) fn mode(name: &str) -> Value {
    json!({"mode": name, "template": {"name": "even"}})
}

/// Modes for brokers that come and go.
pub(crate) fn scaling() -> Value {
    json!({"autoRebalance": [mode("add-brokers"), mode("remove-brokers")]})
}

impl Play {
    /// A cluster with so many brokers, a topic spread over the first three of them, and an engine that knows its load.
    pub(crate) async fn with(replicas: i32, engine: Value) -> Self {
        Self::placed(replicas, engine, &[0, 1, 2]).await
    }

    pub(crate) async fn placed(replicas: i32, engine: Value, on: &[i32]) -> Self {
        Self::stored(claimed("brokers", replicas, &["broker"], json!({})), engine, on).await
    }

    pub(crate) async fn stored(brokers: Value, engine: Value, on: &[i32]) -> Self {
        Self::staged(Stage::new().await, brokers, engine, on).await
    }

    pub(crate) async fn staged(stage: Stage, brokers: Value, engine: Value, on: &[i32]) -> Self {
        let machines = Machines::new(stage.context.clock);
        let room = EngineRoom::new(machines.clone(), stage.client.clone(), stage.context.clock);
        tokio::spawn(machines.clone().run(stage.client.clone(), Arc::new(room.clone())));
        let operator = tokio::spawn(operator(stage.context.clone(), machines.clone(), room.clone()));
        let pools = stage.api::<KafkaNodePool>();
        create(&pools, pool("controllers", 1, &["controller"], json!({"strimzi.io/next-node-ids": "[100-199]"}))).await;
        create(&pools, brokers).await;
        let template = json!({
            "metadata": {"name": "even", "annotations": {"strimzi.io/rebalance-template": "true"}},
            "spec": {"goals": ["ReplicaDistributionGoal"], "skipHardGoalCheck": true},
        });
        create(&stage.api::<KafkaRebalance>(), template).await;
        let listeners = json!([{"name": "plain", "port": 9092, "type": "internal", "tls": false}]);
        let spec = json!({"kafka": {"listeners": listeners}, "cruiseControl": engine});
        create(&stage.api::<Kafka>(), json!({"metadata": {"name": CLUSTER}, "spec": lasting(spec)})).await;
        let play = Self { stage, machines, room, operator };
        play.until("it is ready", async |play| play.status().await.conditions.iter().any(|it| it.type_ == "Ready"))
            .await;
        play.machines.world().with(|cluster| {
            let lists: Vec<Vec<i32>> = (0..PARTITIONS as usize)
                .map(|number| (0..2).map(|further| on[(number + further) % on.len()]).collect())
                .collect();
            let lists: Vec<&[i32]> = lists.iter().map(Vec::as_slice).collect();
            cluster.create_topic(&NewTopic::manual("orders", &lists), false).unwrap();
            for number in 0..PARTITIONS {
                cluster.fill(&TopicPartition::new("orders", number), 20_000_000);
            }
        });
        // The engine has seen it.
        sleep(Duration::from_secs(40)).await;
        play
    }

    pub(crate) async fn until(&self, what: &str, holds: impl AsyncFn(&Self) -> bool) {
        let begun = tokio::time::Instant::now();
        while !holds(self).await {
            if begun.elapsed() > Duration::from_secs(1_200) {
                let all = self.stage.api::<KafkaRebalance>().list(&Default::default()).await.unwrap().items;
                let all: Vec<_> = all.iter().map(|it| (&it.metadata.name, &it.status)).collect();
                panic!("never: {what}\n{:#?}\n{all:#?}\n{:#?}", self.status().await, self.told().await);
            }
            sleep(Duration::from_millis(200)).await;
        }
    }

    pub(crate) async fn status(&self) -> KafkaStatus {
        self.stage.api::<Kafka>().get(CLUSTER).await.unwrap().status.unwrap_or_default()
    }

    pub(crate) async fn state(&self) -> Option<AutoRebalanceState> {
        self.status().await.auto_rebalance.map(|auto| auto.state)
    }

    pub(crate) async fn warning(&self, reason: &str) -> Option<String> {
        let found = self.status().await.conditions.into_iter().find(|it| it.reason.as_deref() == Some(reason));
        found.and_then(|it| it.message)
    }

    pub(crate) async fn rebalance(&self, name: &str) -> Option<KafkaRebalance> {
        self.stage.api().get_opt(name).await.unwrap()
    }

    pub(crate) async fn is_moving(&self, name: &str) -> bool {
        self.rebalance(name).await.is_some_and(|it| it.state() == RebalanceState::Rebalancing)
    }

    pub(crate) async fn scale(&self, replicas: i32) {
        patch(&self.stage.api::<KafkaNodePool>(), "brokers", json!({"spec": {"replicas": replicas}})).await;
    }

    /// Pods of brokers.
    pub(crate) async fn brokers(&self) -> BTreeSet<String> {
        self.stage.pods().await.into_iter().filter(|pod| !pod.contains("contro") && !pod.contains("cruise")).collect()
    }

    /// Brokers that hold something of `orders`.
    pub(crate) fn holders(&self) -> BTreeSet<i32> {
        self.machines.world().look(|cluster| {
            let records = (0..PARTITIONS).map(|number| cluster.registration("orders", number).unwrap());
            records.flat_map(|record| record.replicas.iter().map(|id| id.0)).collect()
        })
    }

    /// From which state to which it went, in order.
    pub(crate) async fn told(&self) -> Vec<String> {
        let found = self.stage.api::<Event>().list(&Default::default()).await.unwrap().items;
        let mut found: Vec<Event> =
            found.into_iter().filter(|event| event.reason.as_deref() == Some("AutoRebalance")).collect();
        found.sort_by_key(|event| event.event_time.as_ref().map(|time| time.0));
        found.into_iter().filter_map(|event| event.note).collect()
    }

    /// Nothing runs, nothing is queued, and nothing of it is left.
    pub(crate) async fn is_settled(&self) -> bool {
        let rebalances = self.stage.api::<KafkaRebalance>().list(&Default::default()).await.unwrap().items;
        let generated = rebalances.iter().any(|it| it.metadata.name.as_ref().is_some_and(|it| it.contains("-auto-")));
        let auto = self.status().await.auto_rebalance.unwrap();
        let maps = self.stage.api::<ConfigMap>();
        let left = futures::future::join(maps.get_opt(ADD), maps.get_opt(REMOVE)).await;
        auto.state == AutoRebalanceState::Idle
            && auto.modes.is_empty()
            && !generated
            && left.0.unwrap().is_none()
            && left.1.unwrap().is_none()
    }

    pub(crate) async fn until_settled(&self) {
        self.until("all is done, and nothing is left", async |play| play.is_settled().await).await;
    }
}

/// Goals that drifting load violates, watched and mended.
pub(crate) async fn watching(image: Option<&str>, config: Value) -> Play {
    let mut config = config;
    config["anomaly.detection.goals"] = json!("ReplicaDistributionGoal");
    let mut engine = json!({"autoRebalance": [mode("imbalance"), mode("add-brokers")]});
    if let Some(image) = image {
        engine["image"] = json!(image);
    }
    engine["config"] = config;
    Play::placed(3, engine, &[0, 1]).await
}

pub(crate) async fn violations(play: &Play) -> String {
    let map = play.stage.api::<ConfigMap>().get_opt(MAP).await.unwrap();
    map.and_then(|map| map.data?.remove("fixableAnomalies")).unwrap_or_default()
}
