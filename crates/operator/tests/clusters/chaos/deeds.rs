//! Makes deeds of a story happen, to a cluster that has all its controllers, its engine and simulated brokers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use evenkeel_api::{Kafka, KafkaNodePool, KafkaRebalance, annotations};
use evenkeel_sim::cluster::NewTopic;
use evenkeel_sim::{BrokerId, TopicPartition};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, sleep_until};

use super::Kept;
use super::eyes::{History, watch};
use super::lives::Lives;
use super::story::{Deed, Edit, Modes, Pool, Template, Whose};
use crate::play::{MAP, Play, mode};
use crate::scene::claimed;
use crate::stage::CLUSTER;

const TENTH: Duration = Duration::from_millis(100);
const TRACKER: &str = "my-cluster-rebalancing-tracker";
/// Somebody else's finalizer.
const THEIRS: &str = "example.com/keep";
/// Bytes a second, so that moves take their time.
const SLOW: u64 = 2_000_000;
/// What a topic of a story weighs, in each of its partitions.
const BYTES: u64 = 5_000_000;

/// How a story begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Beginning {
    pub(crate) brokers: i32,
    pub(crate) modes: Modes,
}

/// A cluster to which things happen.
pub(crate) struct Chaos {
    pub(crate) play: Arc<Play>,
    pub(crate) history: Arc<Mutex<History>>,
    pub(crate) wanted: BTreeMap<Pool, i32>,
    pub(crate) modes: Modes,
    pub(crate) lives: Lives,
    seed: u64,
    /// When everybody is back who was to be away for a while.
    all_back: Instant,
    /// How many topics and rebalances users have made.
    made: usize,
}

impl Chaos {
    /// Brokers with a topic on them, and an engine that knows its load. Whoever is to know what was seen finds it in `keep`,
    /// whatever becomes of this.
    pub(crate) async fn begin(beginning: Beginning, seed: u64, keep: &Kept) -> Self {
        let there: BTreeSet<i32> = (0..beginning.brokers).collect();
        let mut play = Play::placed(beginning.brokers, engine(beginning.modes), &Vec::from_iter(there.clone())).await;
        play.operator.abort();
        let _ = (&mut play.operator).await;
        let history = Arc::new(Mutex::new(History::new(play.machines.world(), there)));
        *keep.lock().unwrap() = Some(Arc::clone(&history));
        tokio::spawn(watch(play.stage.client.clone(), Arc::clone(&history)));
        let (play, lives) = (Arc::new(play), Lives::default());
        tokio::spawn(operators(lives.clone(), Arc::clone(&play), Arc::clone(&history)));
        let wanted = BTreeMap::from([(Pool::Brokers, beginning.brokers), (Pool::More, 0)]);
        Self { play, history, wanted, modes: beginning.modes, lives, seed, all_back: Instant::now(), made: 0 }
    }

    /// Everything happens.
    pub(crate) async fn play(&mut self, deeds: &[Deed]) {
        for deed in deeds {
            if self.history.lock().unwrap().wrong.is_some() {
                return;
            }
            if !matches!(deed, Deed::Wait(_)) {
                self.note(format!("--- {deed:?}"));
            }
            self.happen(*deed).await;
        }
    }

    fn note(&self, text: impl AsRef<str>) {
        self.history.lock().unwrap().note(text);
    }

    async fn happen(&mut self, deed: Deed) {
        match deed {
            Deed::Wait(tenths) => sleep(TENTH * tenths as u32).await,
            Deed::Scale(which, replicas) => self.scale(which, replicas).await,
            Deed::Modes(which) => {
                self.modes = which;
                self.change_kafka(json!({"spec": {"cruiseControl": {"autoRebalance": modes(which)}}})).await;
            }
            Deed::Brake(on) => self.annotate_kafka(annotations::AUTO_REBALANCE, on.then_some("off")).await,
            Deed::Pause(on) => self.annotate_kafka(annotations::PAUSE_RECONCILIATION, on.then_some("true")).await,
            Deed::PauseRun(on) => {
                for name in self.named(Whose::Generated).await {
                    self.annotate(&name, annotations::PAUSE_RECONCILIATION, on.then_some("true")).await;
                }
            }
            Deed::Template(what) => self.template(what).await,
            Deed::Say(whose, word) => {
                for name in self.named(whose).await {
                    self.annotate(&name, annotations::REBALANCE, Some(word.text())).await;
                }
            }
            Deed::Delete(whose) => {
                for name in self.named(whose).await {
                    delete(&self.play.stage.api::<KafkaRebalance>(), &name).await;
                }
            }
            Deed::Tear => {
                let api = self.play.stage.api::<KafkaRebalance>();
                for name in self.named(Whose::Generated).await {
                    try_patch(&api, &name, json!({"metadata": {"finalizers": null}})).await;
                    delete(&api, &name).await;
                }
            }
            Deed::Edit(what) => self.edit(what).await,
            Deed::Engine(wanted) => self.want_engine(wanted).await,
            Deed::Manual { approved } => self.ask_for_one(approved).await,
            Deed::Topic => self.make_topic(),
            Deed::Crash { broker, seconds } => {
                if let Some((id, pod)) = self.broker(broker).await {
                    let away = self.away_for(seconds);
                    let machines = self.play.machines.clone();
                    machines.hold(&pod);
                    machines.world().with(|cluster| cluster.crash_broker(id));
                    tokio::spawn(async move {
                        sleep(away).await;
                        machines.release(&pod);
                    });
                }
            }
            Deed::CutOff { broker, seconds } => {
                if let Some((id, _)) = self.broker(broker).await {
                    let away = self.away_for(seconds);
                    self.play.machines.world().with(|cluster| cluster.isolate_broker(id));
                    let world = self.play.machines.world();
                    tokio::spawn(async move {
                        sleep(away).await;
                        world.with(|cluster| cluster.reconnect_broker(id));
                    });
                }
            }
            Deed::DeletePod(which) => {
                if let Some((_, pod)) = self.broker(which).await {
                    delete(&self.play.stage.api::<Pod>(), &pod).await;
                }
            }
            Deed::OperatorAway { seconds } => {
                let life = self.lives.present();
                *life.then_nobody.lock().unwrap() = self.away_for(seconds);
                life.fate.died.notify_one();
            }
            Deed::OperatorDies { calls, after } => self.lives.present().fate.doom(Some(calls), after),
            Deed::OperatorDiesAtKafka { calls, after } => self.lives.present().at_kafka.doom(calls, after),
            Deed::EngineDies { calls, after } => self.play.room.fate().doom(calls, after),
            Deed::Weather(bad) => self.lives.present().fate.change_weather(bad.then_some(self.seed)),
        }
    }

    /// Nobody dies any more, everybody is back, and the settings are as they were. Brokers stay as many as were last
    /// wanted.
    pub(crate) async fn clear(&mut self) {
        self.note("--- the weather clears");
        let life = self.lives.present();
        life.fate.change_weather(None);
        life.fate.doom(None, false);
        life.at_kafka.spare();
        self.play.room.fate().spare();
        // Whoever was to be back by then is, and has had the time for what it was at.
        sleep_until(self.all_back).await;
        sleep(Duration::from_secs(45)).await;
        // One that has died meanwhile is followed by one in the same weather.
        self.lives.present().fate.change_weather(None);
        self.template(Template::Usual).await;
        for whose in [Whose::Generated, Whose::Manual] {
            for name in self.named(whose).await {
                self.annotate(&name, annotations::PAUSE_RECONCILIATION, None).await;
            }
        }
        for name in self.named(Whose::Generated).await {
            self.annotate(&name, annotations::REBALANCE_AUTO_APPROVAL, Some("true")).await;
            self.label(&name, Some(CLUSTER)).await;
            self.let_go(&name).await;
        }
        for name in self.named(Whose::Manual).await {
            delete(&self.play.stage.api::<KafkaRebalance>(), &name).await;
        }
        self.annotate_kafka(annotations::AUTO_REBALANCE, None).await;
        self.annotate_kafka(annotations::PAUSE_RECONCILIATION, None).await;
        self.modes = Modes::Scaling;
        self.want_engine(true).await;
    }

    async fn edit(&self, what: Edit) {
        let rebalances = self.play.stage.api::<KafkaRebalance>();
        let maps = self.play.stage.api::<ConfigMap>();
        for name in self.named(Whose::Generated).await {
            match what {
                Edit::Approval => self.annotate(&name, annotations::REBALANCE_AUTO_APPROVAL, None).await,
                Edit::Label => self.label(&name, None).await,
                Edit::Goals => {
                    let others = ["ReplicaDistributionGoal", "LeaderReplicaDistributionGoal"];
                    try_patch(&rebalances, &name, json!({"spec": {"goals": others}})).await;
                }
                Edit::Hold => {
                    let hold = json!([{"op": "add", "path": "/metadata/finalizers/-", "value": THEIRS}]);
                    try_change(&rebalances, &name, hold).await;
                }
                Edit::Damage | Edit::Unlabel | Edit::Forget | Edit::UnlabelMap => {}
            }
        }
        match what {
            Edit::Damage => {
                try_patch(&maps, TRACKER, json!({"data": {"memory.json": "{"}})).await;
            }
            Edit::Unlabel | Edit::UnlabelMap => {
                let which = if what == Edit::Unlabel { TRACKER } else { MAP };
                let nobodys = json!({"metadata": {"labels": {"strimzi.io/cluster": null}}});
                try_patch(&maps, which, nobodys).await;
            }
            Edit::Forget => delete(&maps, TRACKER).await,
            Edit::Approval | Edit::Label | Edit::Goals | Edit::Hold => {}
        }
    }

    /// Somebody else's finalizer goes, wherever it stands by now.
    async fn let_go(&self, rebalance: &str) {
        let api = self.play.stage.api::<KafkaRebalance>();
        while let Some(found) = api.get_opt(rebalance).await.unwrap() {
            let Some(place) = found.finalizers().iter().position(|it| it == THEIRS) else { return };
            let path = format!("/metadata/finalizers/{place}");
            let change = json!([{"op": "test", "path": path, "value": THEIRS}, {"op": "remove", "path": path}]);
            try_change(&api, rebalance, change).await;
        }
    }

    /// Somebody is away for so long.
    fn away_for(&mut self, seconds: u64) -> Duration {
        let away = Duration::from_secs(seconds);
        self.all_back = self.all_back.max(Instant::now() + away);
        away
    }

    /// With the modes that were switched on last.
    async fn want_engine(&self, wanted: bool) {
        self.change_kafka(json!({"spec": {"cruiseControl": wanted.then(|| engine(self.modes))}})).await;
    }

    async fn label(&self, rebalance: &str, cluster: Option<&str>) {
        let change = json!({"metadata": {"labels": {"strimzi.io/cluster": cluster}}});
        try_patch(&self.play.stage.api::<KafkaRebalance>(), rebalance, change).await;
    }

    async fn scale(&mut self, which: Pool, replicas: i32) {
        self.wanted.insert(which, replicas);
        let pools = self.play.stage.api::<KafkaNodePool>();
        if !try_patch(&pools, which.name(), json!({"spec": {"replicas": replicas}})).await {
            try_create(&pools, claimed(which.name(), replicas, &["broker"], json!({}))).await;
        }
    }

    async fn template(&mut self, what: Template) {
        let api = self.play.stage.api::<KafkaRebalance>();
        let mark = |value: Option<&str>| json!({"metadata": {"annotations": {annotations::REBALANCE_TEMPLATE: value}}});
        let with = |names: &[&str], throttle: Option<u64>| json!({"spec": {"goals": names, "skipHardGoalCheck": true, "replicationThrottle": throttle}});
        let usual = || with(&["ReplicaDistributionGoal"], None);
        match what {
            Template::Gone => delete(&api, "even").await,
            Template::Unmarked => {
                try_patch(&api, "even", mark(None)).await;
            }
            Template::OtherGoals => {
                let others = with(&["ReplicaDistributionGoal", "LeaderReplicaDistributionGoal"], None);
                try_patch(&api, "even", others).await;
            }
            Template::NoGoals => {
                try_patch(&api, "even", with(&["NoSuchGoal"], None)).await;
            }
            Template::Throttled => {
                try_patch(&api, "even", with(&["ReplicaDistributionGoal"], Some(SLOW))).await;
            }
            Template::Usual => {
                if !(try_patch(&api, "even", mark(Some("true"))).await && try_patch(&api, "even", usual()).await) {
                    let mut made = usual();
                    made["metadata"] = mark(Some("true"))["metadata"].clone();
                    made["metadata"]["name"] = json!("even");
                    try_create(&api, made).await;
                }
            }
        }
    }

    async fn ask_for_one(&mut self, approved: bool) {
        self.made += 1;
        let notes = if approved { json!({annotations::REBALANCE_AUTO_APPROVAL: "true"}) } else { json!({}) };
        let mine = json!({
            "metadata": {
                "name": format!("mine-{}", self.made), "labels": {"strimzi.io/cluster": CLUSTER}, "annotations": notes,
            },
            "spec": {"goals": ["ReplicaDistributionGoal"], "skipHardGoalCheck": true},
        });
        try_create(&self.play.stage.api::<KafkaRebalance>(), mine).await;
    }

    /// On brokers that nobody ever wants to go.
    fn make_topic(&mut self) {
        self.made += 1;
        let name = format!("t-{}", self.made);
        self.play.machines.world().with(|cluster| {
            // One of them may be away.
            if cluster.create_topic(&NewTopic::manual(&name, &[&[0, 1], &[1, 0], &[0, 1], &[1, 0]]), false).is_ok() {
                (0..4).for_each(|number| cluster.fill(&TopicPartition::new(name.as_str(), number), BYTES));
            }
        });
    }

    /// Rebalances of this kind that are there.
    async fn named(&self, whose: Whose) -> Vec<String> {
        let all = self.play.stage.api::<KafkaRebalance>().list(&Default::default()).await.unwrap().items;
        let is_meant = |name: &String| match whose {
            Whose::Generated => name.contains("-auto-rebalancing-"),
            // What is no template any more is a user's like any other.
            Whose::Manual => name.starts_with("mine-"),
        };
        all.iter().map(ResourceExt::name_any).filter(is_meant).collect()
    }

    /// One of the brokers that are there, to which something happens, and its pod.
    async fn broker(&self, number: usize) -> Option<(BrokerId, String)> {
        let pods: Vec<String> = self.play.brokers().await.into_iter().collect();
        let pod = pods.get(number.checked_rem(pods.len())?)?;
        let id = pod.rsplit('-').next()?.parse().ok()?;
        self.history.lock().unwrap().shaken.insert(id);
        Some((BrokerId(id), pod.clone()))
    }

    async fn change_kafka(&self, change: Value) {
        try_patch(&self.play.stage.api::<Kafka>(), CLUSTER, change).await;
    }

    async fn annotate_kafka(&self, name: &str, value: Option<&str>) {
        self.change_kafka(json!({"metadata": {"annotations": {name: value}}})).await;
    }

    async fn annotate(&self, rebalance: &str, name: &str, value: Option<&str>) {
        let change = json!({"metadata": {"annotations": {name: value}}});
        try_patch(&self.play.stage.api::<KafkaRebalance>(), rebalance, change).await;
    }
}

/// Operators, until dropped.
async fn operators(lives: Lives, play: Arc<Play>, history: Arc<Mutex<History>>) {
    let tell = |end: Result<(), String>| match end {
        Ok(()) => history.lock().unwrap().note("--- the operator has died"),
        Err(broken) => history.lock().unwrap().object(broken),
    };
    lives.run(|life| life.context(&play), tell).await;
}

/// The engine of a story.
fn engine(which: Modes) -> Value {
    json!({
        "autoRebalance": modes(which),
        "config": {"anomaly.detection.goals": "ReplicaDistributionGoal"},
    })
}

/// None of them is no list at all.
fn modes(which: Modes) -> Option<Vec<Value>> {
    let entry = |name: &&str| if which == Modes::Bare { json!({"mode": name}) } else { mode(name) };
    Some(which.names().iter().map(entry).collect()).filter(|modes: &Vec<Value>| !modes.is_empty())
}

/// Whether it was there.
async fn try_patch<K>(api: &Api<K>, name: &str, change: Value) -> bool
where
    K: Resource + DeserializeOwned + Clone + std::fmt::Debug,
{
    api.patch(name, &PatchParams::default(), &Patch::Merge(change)).await.is_ok()
}

/// Operation by operation, all or none of them.
async fn try_change<K>(api: &Api<K>, name: &str, operations: Value)
where
    K: Resource + DeserializeOwned + Clone + std::fmt::Debug,
{
    let operations: Patch<Value> = Patch::Json(serde_json::from_value(operations).unwrap());
    let _ = api.patch(name, &PatchParams::default(), &operations).await;
}

async fn try_create<K>(api: &Api<K>, value: Value)
where
    K: Resource + Serialize + DeserializeOwned + Clone + std::fmt::Debug,
{
    let _ = api.create(&PostParams::default(), &serde_json::from_value(value).unwrap()).await;
}

/// What is not there need not go.
async fn delete<K>(api: &Api<K>, name: &str)
where
    K: Resource + DeserializeOwned + Clone + std::fmt::Debug,
{
    let _ = api.delete(name, &DeleteParams::default()).await;
}
