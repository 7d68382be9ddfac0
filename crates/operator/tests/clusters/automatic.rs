//! Automatic rebalancing from beginning to end: all controllers, the real engine and simulated brokers, in paused time.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use evenkeel_api::kafka::{AutoRebalanceState, KafkaStatus};
use evenkeel_api::rebalance::RebalanceState;
use evenkeel_api::{Kafka, KafkaNodePool, KafkaRebalance};
use evenkeel_operator::seams::Context;
use evenkeel_sim::cluster::NewTopic;
use evenkeel_sim::{BrokerId, Cluster, TopicPartition};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use k8s_openapi::api::events::v1::Event;
use kube::api::DeleteParams;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::engine_room::EngineRoom;
use crate::machines::Machines;
use crate::rights;
use crate::scene::pool;
use crate::stage::{CLUSTER, Death, NAMESPACE, Stage, a_while, create, patch, until};

pub(crate) const ADD: &str = "my-cluster-auto-rebalancing-add-brokers";
pub(crate) const REMOVE: &str = "my-cluster-auto-rebalancing-remove-brokers";
const MAP: &str = "my-cluster-goal-violation-map";
const PARTITIONS: i32 = 12;

pub(crate) struct Play {
    pub(crate) stage: Stage,
    pub(crate) machines: Machines,
    pub(crate) room: EngineRoom,
    pub(crate) operator: JoinHandle<()>,
}

/// All controllers, until dropped.
pub(crate) async fn operator(mut context: Context, machines: Machines, room: EngineRoom) {
    context.kafkas = Arc::new(machines);
    context.engines = Arc::new(room);
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
        Self::stored(pool("brokers", replicas, &["broker"], json!({})), engine, on).await
    }

    async fn stored(brokers: Value, engine: Value, on: &[i32]) -> Self {
        Self::staged(Stage::new().await, brokers, engine, on).await
    }

    pub(crate) async fn staged(stage: Stage, brokers: Value, engine: Value, on: &[i32]) -> Self {
        let machines = Machines::new();
        let clock = stage.context.clock;
        let room = EngineRoom::new(machines.clone(), stage.client.clone(), move || clock.now());
        let (running, client) = (machines.clone(), stage.client.clone());
        tokio::spawn(async move { running.run(client, NAMESPACE, move || clock.now()).await });
        tokio::spawn(room.clone().run());
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
        create(&stage.api::<Kafka>(), json!({"metadata": {"name": CLUSTER}, "spec": spec})).await;
        let play = Self { stage, machines, room, operator };
        play.until("it is ready", async |play| play.status().await.conditions.iter().any(|it| it.type_ == "Ready"))
            .await;
        play.machines.world.with(|cluster| {
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

    async fn state(&self) -> Option<AutoRebalanceState> {
        self.status().await.auto_rebalance.map(|auto| auto.state)
    }

    async fn warning(&self, reason: &str) -> Option<String> {
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
        self.machines.world.look(|cluster| {
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
    async fn is_settled(&self) -> bool {
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

#[tokio::test(start_paused = true)]
async fn brokers_that_come_get_data() {
    let play = Play::with(3, scaling()).await;
    assert!(play.is_settled().await, "a new cluster is no scale-up");
    play.scale(5).await;
    play.until("data moves", async |play| play.is_moving(ADD).await).await;
    let made = play.rebalance(ADD).await.unwrap();
    assert_eq!((made.spec.mode.as_str(), made.spec.brokers.clone()), ("add-brokers", Some(vec![3, 4])));
    let notes = made.metadata.annotations.unwrap();
    assert_eq!(notes["strimzi.io/rebalance-auto-approval"], "true");
    let finalizers = made.metadata.finalizers.unwrap();
    assert!(finalizers.contains(&"strimzi.io/auto-rebalancing".to_owned()), "{finalizers:?}");
    assert_eq!(play.state().await, Some(AutoRebalanceState::RebalanceOnScaleUp));
    play.until_settled().await;
    assert_eq!(play.holders(), BTreeSet::from([0, 1, 2, 3, 4]));
    let told = play.told().await;
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].starts_with("from Idle to RebalanceOnScaleUp to brokers [3, 4]"), "{told:?}");
    rights::check(&play.stage.calls());
}

#[tokio::test(start_paused = true)]
async fn brokers_that_go_are_emptied_first_and_stay_until_then() {
    let play = Play::placed(4, scaling(), &[0, 1, 2, 3]).await;
    play.scale(3).await;
    play.until("data moves", async |play| play.is_moving(REMOVE).await).await;
    assert_eq!(play.brokers().await.len(), 4);
    let looks = play.stage.looks();
    sleep(Duration::from_secs(10)).await;
    assert!(play.is_moving(REMOVE).await, "it is watched while it moves");
    let looks = play.stage.looks() - looks;
    assert!(looks <= 3, "progress is no reason to look at all of a cluster: {looks} looks in ten seconds");
    play.until("the drained one goes", async |play| {
        let gone = play.brokers().await.len() == 3;
        assert!(!gone || !play.holders().contains(&3), "it went with its data");
        gone
    })
    .await;
    play.until_settled().await;
    assert_eq!(play.holders(), BTreeSet::from([0, 1, 2]));
    let is_known = || {
        let listed = |cluster: &mut Cluster| cluster.describe_brokers(BrokerId(0), true).iter().any(|it| it.id.0 == 3);
        play.machines.world.look(listed)
    };
    play.until("it is struck off Kafka's list", async |_| !is_known()).await;
    let told = play.told().await;
    assert!(told[0].starts_with("from Idle to RebalanceOnScaleDown of brokers [3]"), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn what_comes_waits_for_what_goes() {
    let play = Play::placed(4, scaling(), &[0, 1, 2, 3]).await;
    create(&play.stage.api::<KafkaNodePool>(), pool("more", 1, &["broker"], json!({}))).await;
    play.scale(3).await;
    play.until("the drain runs", async |play| play.is_moving(REMOVE).await).await;
    let auto = play.status().await.auto_rebalance.unwrap();
    let queued: Vec<(String, Vec<i32>)> = auto.modes.into_iter().map(|it| (it.mode.to_string(), it.brokers)).collect();
    assert_eq!(queued, [("remove-brokers".to_owned(), vec![3]), ("add-brokers".to_owned(), vec![4])]);
    play.until_settled().await;
    assert_eq!(play.holders(), BTreeSet::from([0, 1, 2, 4]));
    let told = play.told().await.join("; ");
    let (down, up) = (told.find("to RebalanceOnScaleDown"), told.find("to RebalanceOnScaleUp"));
    assert!(down.is_some() && down < up, "{told}");
}

#[tokio::test(start_paused = true)]
async fn what_was_refused_is_not_looked_at_again_and_again() {
    let play = Play::with(3, scaling()).await;
    patch(
        &play.stage.api::<Kafka>(),
        CLUSTER,
        json!({"spec": {"kafka": {"config": {"default.replication.factor": 5}}}}),
    )
    .await;
    play.until("it is refused", async |play| play.status().await.conditions.iter().any(|it| it.type_ == "NotReady"))
        .await;
    a_while().await;
    let looks = play.stage.looks();
    sleep(Duration::from_secs(600)).await;
    let looks = play.stage.looks() - looks;
    assert!(looks <= 10, "{looks} looks in ten minutes");
}

/// Goals that drifting load violates, watched and mended.
async fn watching(image: Option<&str>, config: Value) -> Play {
    let mut config = config;
    config["anomaly.detection.goals"] = json!("ReplicaDistributionGoal");
    let mut engine = json!({"autoRebalance": [mode("imbalance"), mode("add-brokers")]});
    if let Some(image) = image {
        engine["image"] = json!(image);
    }
    engine["config"] = config;
    Play::placed(3, engine, &[0, 1]).await
}

async fn violations(play: &Play) -> String {
    let map = play.stage.api::<ConfigMap>().get_opt(MAP).await.unwrap();
    map.and_then(|map| map.data?.remove("fixableAnomalies")).unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn load_that_has_drifted_is_mended() {
    let play = watching(None, json!({})).await;
    play.until("it is even", async |play| play.holders().len() == 3).await;
    play.until_settled().await;
    assert_eq!(violations(&play).await, "", "what was mended is forgotten");
    let told = play.told().await;
    assert!(told[0].starts_with("from Idle to RebalanceOnImbalance"), "{told:?}");
    assert_eq!(told.len(), 2, "once is enough: {told:?}");
}

#[tokio::test(start_paused = true)]
async fn an_engine_of_others_is_asked_what_it_found() {
    let play = watching(Some("quay.io/strimzi/kafka:latest"), json!({})).await;
    play.until("it is even", async |play| play.holders().len() == 3).await;
    play.until_settled().await;
    assert!(play.told().await[0].starts_with("from Idle to RebalanceOnImbalance"));
}

#[tokio::test(start_paused = true)]
async fn what_would_move_too_much_holds_up_nobody() {
    let config = json!({"evenkeel.auto.rebalance.max.data.mb": 1});
    let play = watching(Some("quay.io/strimzi/kafka:latest"), config).await;
    play.until("it is said", async |play| {
        play.warning("AutoRebalanceFailed").await.is_some_and(|it| it.contains("more than the 1 MB"))
    })
    .await;
    assert_eq!(play.holders(), BTreeSet::from([0, 1]), "nothing was moved");
    play.until("it is over", async |play| play.state().await == Some(AutoRebalanceState::Idle)).await;
    play.scale(4).await;
    play.until("a new broker gets data", async |play| play.holders().contains(&3)).await;
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_dies_goes_on_with_the_drain() {
    let play = Play::placed(4, scaling(), &[0, 1, 2, 3]).await;
    play.scale(3).await;
    play.until("data moves", async |play| play.is_moving(REMOVE).await).await;
    let first = play.rebalance(REMOVE).await.unwrap().metadata.uid;
    play.room.kill();
    play.until("it is gone", async |play| {
        let now = play.rebalance(REMOVE).await;
        assert!(now.as_ref().is_none_or(|it| it.metadata.uid == first), "one drain suffices");
        play.brokers().await.len() == 3
    })
    .await;
    play.until_settled().await;
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_forgets_is_asked_again_once_it_is_idle() {
    let play = Play::placed(4, scaling(), &[0, 1, 2, 3]).await;
    play.scale(3).await;
    play.until("data moves", async |play| play.is_moving(REMOVE).await).await;
    let first = play.rebalance(REMOVE).await.unwrap().metadata.uid;
    play.room.kill_without_memory();
    play.until("a second one is made, or none is needed any more", async |play| {
        let now = play.rebalance(REMOVE).await;
        now.is_some_and(|it| it.metadata.uid != first) || play.brokers().await.len() == 3
    })
    .await;
    play.until("it is gone", async |play| play.brokers().await.len() == 3).await;
    play.until_settled().await;
    assert_eq!(play.holders(), BTreeSet::from([0, 1, 2]));
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_goes_mid_run_takes_everything_with_it() {
    let play = Play::placed(4, scaling(), &[0, 1, 2, 3]).await;
    play.scale(3).await;
    play.until("data moves", async |play| play.is_moving(REMOVE).await).await;
    let namespaces = kube::Api::<k8s_openapi::api::core::v1::Namespace>::all(play.stage.client.clone());
    namespaces.delete(NAMESPACE, &DeleteParams::default()).await.unwrap();
    until("nothing is left", || async { namespaces.get_opt(NAMESPACE).await.unwrap().is_none() }).await;
}

/// A life in which everything happens that the operator has rights for.
#[tokio::test(start_paused = true)]
async fn the_role_lists_what_is_used_and_nothing_else() {
    let engine = json!({"autoRebalance": [mode("add-brokers"), mode("remove-brokers"), {"mode": "imbalance"}]});
    let mut storage = pool("brokers", 4, &["broker"], json!({}));
    storage["spec"]["storage"] = json!({"type": "persistent-claim", "size": "1Gi", "deleteClaim": true});
    let play = Play::stored(storage, engine, &[0, 1]).await;
    // An empty one goes, with its claim; one that lost its owner gets it back.
    play.scale(3).await;
    play.until("it is gone", async |play| play.brokers().await.len() == 3).await;
    let pods = play.stage.api::<Pod>();
    patch(&pods, "my-cluster-brokers-0", json!({"metadata": {"ownerReferences": null}})).await;
    let is_owned = async |_: &Play| pods.get("my-cluster-brokers-0").await.unwrap().metadata.owner_references.is_some();
    play.until("it is owned again", is_owned).await;
    // A user's rebalance is deleted while it moves data.
    let mine = json!({
        "metadata": {
            "name": "mine", "labels": {"strimzi.io/cluster": CLUSTER},
            "annotations": {"strimzi.io/rebalance-auto-approval": "true"},
        },
        "spec": {"template": {"name": "even"}},
    });
    create(&play.stage.api::<KafkaRebalance>(), mine).await;
    play.until("data moves", async |play| play.is_moving("mine").await).await;
    play.stage.api::<KafkaRebalance>().delete("mine", &DeleteParams::default()).await.unwrap();
    play.until("it is gone", async |play| play.rebalance("mine").await.is_none()).await;
    // Something was found; the user scales up, which forgets it.
    let found = json!({"data": {"fixableAnomalies": "- a1: [RackAwareGoal]"}});
    patch(&play.stage.api::<ConfigMap>(), "my-cluster-goal-violation-map", found).await;
    play.scale(4).await;
    play.until("the new one has data", async |play| play.holders().contains(&3)).await;
    play.until("all is done", async |play| play.state().await == Some(AutoRebalanceState::Idle)).await;
    // The engine goes, and what was there for it.
    patch(&play.stage.api::<Kafka>(), CLUSTER, json!({"spec": {"cruiseControl": null}})).await;
    play.until("it is gone", async |play| !play.stage.pods().await.iter().any(|pod| pod.contains("cruise"))).await;
    // The cluster goes, and its node pools stay.
    play.stage.api::<Kafka>().delete(CLUSTER, &DeleteParams::default()).await.unwrap();
    play.until("its nodes are gone", async |play| play.stage.pods().await.is_empty()).await;
    a_while().await;
    rights::check(&play.stage.calls());
    rights::check_all_are_used(&play.stage.calls());
}

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
fn stride() -> usize {
    if std::env::var_os("EVENKEEL_SEEDS").is_some() { 1 } else { 11 }
}

async fn dies_everywhere(story: Story) {
    let mut number = 0;
    while although(story, Death(number)).await {
        number += stride();
    }
    assert!(number > stride(), "it writes more often than {number} times");
}

#[tokio::test(start_paused = true)]
#[ignore = "takes minutes: `cargo xtask soak` runs it"]
async fn a_scale_up_comes_to_the_same_end_whenever_the_operator_dies() {
    dies_everywhere(Story::Grow).await;
}

#[tokio::test(start_paused = true)]
#[ignore = "takes minutes: `cargo xtask soak` runs it"]
async fn a_drain_comes_to_the_same_end_whenever_the_operator_dies() {
    dies_everywhere(Story::Shrink).await;
}
