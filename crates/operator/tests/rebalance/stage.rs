//! A Kubernetes with one Kafka in it, an engine, and an operator that may die.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use evenkeel_api::rebalance::RebalanceState;
use evenkeel_api::{Condition, Kafka, KafkaRebalance, Reason, annotations, crds};
use evenkeel_apiserver::http::moment::Simulated;
use evenkeel_apiserver::http::{Options, Shared, router};
use evenkeel_engine::engine::Running;
use evenkeel_operator::figures::Figures;
use evenkeel_operator::rebalance::controller;
use evenkeel_operator::seams::{Clock, Context, Engines};
use evenkeel_operator::settings::Settings;
use evenkeel_rest::Answer;
use evenkeel_rest::body::UserTask;
use evenkeel_rest::client::Client as RestClient;
use evenkeel_rest::request::UserTasks;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::cluster::Brokers;
use crate::seams::{Fate, Routed, Server};

pub const CLUSTER: &str = "my-cluster";
const PATIENCE: Duration = Duration::from_secs(900);
/// As long as anybody waits in real time to see that nothing happens.
const LINGER: Duration = Duration::from_secs(10);

pub struct Stage {
    pub brokers: Brokers,
    /// A namespace of its own: a real server has only one life for all stories.
    pub namespace: String,
    server: Server,
    /// What the operator looks after: everything, unless it has to share the server.
    settings: Settings,
    /// A client that is not the operator's.
    pub client: Client,
    clock: Clock,
    engine: Arc<Mutex<Option<Router>>>,
    running: Option<Running>,
}

/// One life of the operator.
pub struct Operator {
    pub fate: Fate,
    pub figures: Arc<Figures>,
    task: JoinHandle<()>,
}

impl Drop for Operator {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Operator {
    /// Ends it, and waits until nothing of it is left.
    pub async fn end(mut self) {
        self.task.abort();
        let _ = (&mut self.task).await;
    }
}

impl Stage {
    /// Everything there, and the Kafka is ready: on an embedded API server, for paused time.
    pub async fn embedded() -> Self {
        let brokers = Brokers::new();
        let start = Timestamp::from_millisecond(brokers.wall_clock()).unwrap();
        let moments = Box::new(Simulated::new(start, 7));
        let server = router(Shared::new(Options { moments, ..Options::default() }));
        let client = Client::new(server.clone(), "default");
        for crd in crds() {
            let api = Api::<CustomResourceDefinition>::all(client.clone());
            api.create(&PostParams::default(), &crd).await.unwrap();
        }
        Self::on(brokers, Server::Embedded(server), client, "kafka", Settings::default()).await
    }

    /// The same on any server that knows our kinds, in a namespace that nobody else has. Time passes there.
    #[allow(dead_code, reason = "only where there is such a server")]
    pub async fn elsewhere(client: Client, namespace: &str) -> Self {
        let settings = Settings { namespaces: vec![namespace.to_owned()], ..Settings::default() };
        Self::on(Brokers::new(), Server::Elsewhere(client.clone()), client, namespace, settings).await
    }

    async fn on(brokers: Brokers, server: Server, client: Client, namespace: &str, settings: Settings) -> Self {
        let (engine, running) = brokers.engine();
        let start = Timestamp::from_millisecond(brokers.wall_clock()).unwrap();
        let stage = Self {
            clock: Clock::simulated(start),
            brokers,
            namespace: namespace.to_owned(),
            server,
            settings,
            client,
            engine: Arc::new(Mutex::new(Some(engine))),
            running: Some(running),
        };
        let namespaces = Api::<Namespace>::all(stage.client.clone());
        create(&namespaces, json!({"metadata": {"name": namespace}})).await;
        stage.create_kafka().await;
        stage
    }

    /// Whether time passes only as fast as something happens.
    pub fn is_paused(&self) -> bool {
        matches!(self.server, Server::Embedded(_))
    }

    /// Lets seconds pass in which nothing is to happen; where they really pass, fewer.
    pub async fn linger(&self, seconds: u64) {
        let asked = Duration::from_secs(seconds);
        tokio::time::sleep(if self.is_paused() { asked } else { asked.min(LINGER) }).await;
    }

    pub fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    pub async fn create_kafka(&self) {
        self.create_kafka_of(CLUSTER).await;
    }

    /// A Kafka of this name, which is ready.
    pub async fn create_kafka_of(&self, cluster: &str) {
        let labels = json!({"strimzi.io/cluster": cluster});
        let secret = |name: &str, data: Value| json!({"metadata": {"name": format!("{cluster}-{name}"), "labels": labels}, "stringData": data});
        let passwords = json!({"rebalance-operator.password": "secret"});
        create(&self.api::<Secret>(), secret("cruise-control-api", passwords)).await;
        create(&self.api::<Secret>(), secret("cluster-ca-cert", json!({"ca.crt": "none is needed in memory"}))).await;
        create(&self.api::<Kafka>(), json!({"metadata": {"name": cluster}, "spec": {"cruiseControl": {}}})).await;
        self.set_kafka_of(cluster, "Ready").await;
    }

    pub async fn set_kafka(&self, state: &str) {
        self.set_kafka_of(CLUSTER, state).await;
    }

    async fn set_kafka_of(&self, cluster: &str, state: &str) {
        let status = json!({"status": {"conditions": [Condition::state(state)]}});
        self.api::<Kafka>().patch_status(cluster, &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    }

    /// Operators that are started from now on look only after Kafkas with these labels.
    pub fn look_only_after(&mut self, selector: &str) {
        self.settings.selector = Some(selector.to_owned());
    }

    /// Starts an operator.
    pub fn operator(&self) -> Operator {
        self.operator_with(Fate::default())
    }

    pub fn operator_with(&self, fate: Fate) -> Operator {
        let engines = Arc::new(Routed::new(&self.engine, &fate));
        self.operator_over(fate, engines)
    }

    /// One that finds other clusters with engines that know nothing.
    pub fn operator_among_clusters(&self) -> Operator {
        let fate = Fate::default();
        let engines = Arc::new(Routed::new(&self.engine, &fate).only_of(CLUSTER));
        self.operator_over(fate, engines)
    }

    /// One that reaches engines in another way.
    pub fn operator_over(&self, fate: Fate, engines: Arc<dyn Engines>) -> Operator {
        let mut context = Context::new(fate.kube(self.server.clone()), self.settings.clone());
        context.engines = engines;
        context.clock = self.clock;
        let figures = Arc::clone(&context.figures);
        let task = tokio::spawn(controller::run(context));
        Operator { fate, figures, task }
    }

    /// The engine is gone.
    pub fn stop_engine(&mut self) {
        *self.engine.lock().unwrap() = None;
        self.running = None;
    }

    /// Something else answers in the engine's place, which goes on.
    pub fn replace_engine(&self, other: Router) -> Router {
        self.engine.lock().unwrap().replace(other).expect("it was there")
    }

    /// It is unreachable, and goes on.
    pub fn cut_engine(&self) -> Router {
        self.engine.lock().unwrap().take().expect("it was there")
    }

    pub fn mend_engine(&self, router: Router) {
        *self.engine.lock().unwrap() = Some(router);
    }

    /// The same with other brokers, before anybody has asked them anything.
    #[must_use]
    pub fn on_brokers(mut self, brokers: Brokers) -> Self {
        self.brokers = brokers;
        self.restart_engine();
        self
    }

    pub fn restart_engine(&mut self) {
        self.stop_engine();
        let (router, running) = self.brokers.engine();
        self.mend_engine(router);
        self.running = Some(running);
    }

    /// A KafkaRebalance; only counts matter to it, so that every run is the same.
    pub async fn create(&self, name: &str, change: impl FnOnce(&mut Value)) {
        let mut value = json!({
            "metadata": {"name": name, "labels": {"strimzi.io/cluster": CLUSTER}, "annotations": {}},
            "spec": {
                "goals": ["ReplicaDistributionGoal", "LeaderReplicaDistributionGoal"],
                "skipHardGoalCheck": true,
            },
        });
        change(&mut value);
        create(&self.api::<KafkaRebalance>(), value).await;
    }

    pub async fn get(&self, name: &str) -> KafkaRebalance {
        self.api::<KafkaRebalance>().get(name).await.unwrap()
    }

    pub async fn is_gone(&self, name: &str) -> bool {
        self.api::<KafkaRebalance>().get_opt(name).await.unwrap().is_none()
    }

    pub async fn patch(&self, name: &str, patch: Value) {
        let api = self.api::<KafkaRebalance>();
        api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    pub async fn annotate(&self, name: &str, annotation: &str, value: &str) {
        self.patch(name, json!({"metadata": {"annotations": {annotation: value}}})).await;
    }

    pub async fn ask(&self, name: &str, command: &str) {
        self.annotate(name, annotations::REBALANCE, command).await;
    }

    pub async fn delete(&self, name: &str) {
        self.api::<KafkaRebalance>().delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// Lets time pass until something is so.
    pub async fn until<F: Future<Output = bool>>(&self, what: &str, is_so: impl Fn() -> F) {
        let deadline = Instant::now() + PATIENCE;
        while !is_so().await {
            if Instant::now() > deadline {
                let all = self.api::<KafkaRebalance>().list(&Default::default()).await.unwrap();
                panic!("never: {what}\n{:#?}", all.items.iter().map(|it| &it.status).collect::<Vec<_>>());
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    pub async fn until_state(&self, name: &str, state: RebalanceState) -> KafkaRebalance {
        self.until(&format!("{name} is {state}"), || async { self.get(name).await.state() == state }).await;
        self.get(name).await
    }

    pub async fn until_warned(&self, name: &str, reason: Reason) -> KafkaRebalance {
        let warned = || async { warning(&self.get(name).await, reason).is_some() };
        self.until(&format!("{name} has a Warning {}", reason.as_str()), warned).await;
        self.get(name).await
    }

    pub async fn data(&self, name: &str, key: &str) -> Option<String> {
        let found = self.api::<ConfigMap>().get_opt(name).await.unwrap()?;
        found.data?.remove(key)
    }

    /// Data moves, and some of it has moved.
    pub async fn until_moving(&self, name: &str) {
        self.until_state(name, RebalanceState::Rebalancing).await;
        let moving = || async {
            let percent = self.data(name, "completedByteMovementPercentage").await;
            percent.and_then(|it| it.parse::<u32>().ok()).is_some_and(|it| it > 0)
        };
        self.until("data moves", moving).await;
    }

    /// Asks for a rebalance, approves it, and waits until data moves.
    pub async fn run(&self, name: &str) {
        self.create(name, |_| {}).await;
        self.until_state(name, RebalanceState::ProposalReady).await;
        self.ask(name, "approve").await;
        self.until_moving(name).await;
    }

    /// Executions that the engine was asked for and took on.
    pub async fn executions(&self) -> Vec<UserTask> {
        let router = self.engine.lock().unwrap().clone().expect("an engine");
        let client = RestClient::new(router, "http://engine:9090/kafkacruisecontrol".parse().unwrap());
        match client.ask(&UserTasks { fetch_completed_task: true, ..UserTasks::default() }).await.answer {
            Answer::Ready(body) => {
                let executes = |task: &UserTask| {
                    task.request_url.contains("dryrun=false")
                        && (task.optimization_result().is_some() || task.original_response.is_none())
                };
                body.user_tasks.into_iter().filter(executes).collect()
            }
            other => panic!("{other:?}"),
        }
    }

    /// What people were told about a resource, in order of time.
    pub async fn events(&self, name: &str) -> Vec<(String, String)> {
        let events = self.api::<Event>().list(&Default::default()).await.unwrap().items;
        let mut events: Vec<Event> = events
            .into_iter()
            .filter(|it| it.regarding.as_ref().and_then(|about| about.name.as_deref()) == Some(name))
            .collect();
        events.sort_by_key(|it| it.event_time.as_ref().map(|time| time.0));
        events.into_iter().map(|it| (it.type_.unwrap_or_default(), it.reason.unwrap_or_default())).collect()
    }
}

async fn create<K>(api: &Api<K>, value: Value)
where
    K: kube::Resource + Clone + std::fmt::Debug + DeserializeOwned + Serialize,
{
    api.create(&PostParams::default(), &serde_json::from_value(value).unwrap()).await.unwrap();
}

pub fn warning(resource: &KafkaRebalance, reason: Reason) -> Option<String> {
    let conditions = resource.status.iter().flat_map(|status| &status.conditions);
    let mut warnings = conditions.filter(|it| it.is_warning() && it.has_reason(reason));
    warnings.next().map(|it| it.message.clone().unwrap_or_default())
}

/// A figure of the proposal.
pub fn number(resource: &KafkaRebalance, key: &str) -> Option<u64> {
    resource.status.as_ref()?.optimization_result.as_ref()?.get(key)?.as_u64()
}

pub fn finalizers(resource: &KafkaRebalance) -> Vec<String> {
    resource.metadata.finalizers.clone().unwrap_or_default()
}

pub fn asked(resource: &KafkaRebalance) -> Option<String> {
    resource.metadata.annotations.as_ref()?.get(annotations::REBALANCE).cloned()
}

pub fn condition(resource: &KafkaRebalance) -> Condition {
    resource.status.as_ref().expect("a status").conditions[0].clone()
}
