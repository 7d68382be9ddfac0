//! A namespace of one story, and what a user does and sees there.

use std::fmt::Debug;
use std::sync::Arc;

use evenkeel_api::kafka::{AutoRebalanceState, KafkaStatus};
use evenkeel_api::rebalance::RebalanceState;
use evenkeel_api::{Kafka, KafkaNodePool, KafkaRebalance, annotations, labels};
use evenkeel_kafka::Address;
use evenkeel_kafka::connect::Tcp;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::node::REAL;
use crate::world::{World, until};

pub(crate) const CLUSTER: &str = "lagoon";
/// Who applies manifests, in the words of server-side apply.
const USER: &str = "somebody";

pub(crate) struct Scene {
    pub(crate) world: &'static World,
    pub(crate) client: Client,
    pub(crate) namespace: String,
}

impl Scene {
    pub(crate) async fn new(namespace: &str) -> Self {
        Self::of(World::shared().await, namespace).await
    }

    pub(crate) async fn of(world: &'static World, namespace: &str) -> Self {
        let client = world.control_plane.client().await.expect("a client");
        let namespaces = Api::<Namespace>::all(client.clone());
        let made: Namespace = serde_json::from_value(json!({"metadata": {"name": namespace}})).unwrap();
        namespaces.create(&Default::default(), &made).await.expect("a namespace of our own");
        Self { world, client, namespace: namespace.to_owned() }
    }

    pub(crate) fn api<K: Resource<DynamicType = (), Scope = NamespaceResourceScope>>(&self) -> Api<K> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Applies an object, strictly: a field that is not known would be refused.
    pub(crate) async fn apply<K>(&self, object: Value)
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Serialize + Debug,
    {
        let name = object["metadata"]["name"].as_str().expect("a name").to_owned();
        let strict = PatchParams::apply(USER).validation_strict();
        self.api::<K>().patch(&name, &strict, &Patch::Apply(&object)).await.expect("an object as it should be");
    }

    /// One controller, and three brokers in three zones with claims that go with them; an engine with short windows.
    pub(crate) async fn cluster(&self, automatic: Option<Value>) {
        let reporter = json!({
            "evenkeel.metrics.reporter": true,
            "cruise.control.metrics.reporter.metrics.reporting.interval.ms": 1000,
        });
        self.cluster_with(json!({}), reporter, automatic).await;
    }

    /// The same where brokers are real. They have no reporter, so the engine knows them from outside; and few partitions
    /// besides those of the story, so that its own weigh the most.
    pub(crate) async fn real_cluster(&self, automatic: Option<Value>) {
        assert!(self.namespace.starts_with(REAL), "brokers are simulated here");
        let few = json!({
            "partition.sample.store.topic.partition.count": 2,
            "broker.sample.store.topic.partition.count": 2,
            "num.concurrent.partition.movements.per.broker": 40,
        });
        self.cluster_with(json!({"transaction.state.log.num.partitions": 4}), few, automatic).await;
    }

    async fn cluster_with(&self, settings: Value, engine: Value, automatic: Option<Value>) {
        let hundreds = json!({annotations::NEXT_NODE_IDS: "[100-199]"});
        let claim = json!({"type": "persistent-claim", "size": "100Gi", "deleteClaim": true});
        self.pool("pilots", &["controller"], 1, hundreds, json!({"type": "ephemeral"})).await;
        self.pool("quay", &["broker"], 3, json!({}), claim).await;
        let mut config = json!({
            "metric.sampling.interval.ms": 1000,
            "partition.metrics.window.ms": 2000,
            "num.partition.metrics.windows": 3,
            "broker.metrics.window.ms": 2000,
            "num.broker.metrics.windows": 20,
            "anomaly.detection.interval.ms": 3000,
        });
        if let (Some(config), Value::Object(engine)) = (config.as_object_mut(), engine) {
            config.extend(engine);
        }
        let mut kafka = json!({
            "apiVersion": "kafka.strimzi.io/v1", "kind": "Kafka", "metadata": {"name": CLUSTER},
            "spec": {
                "kafka": {
                    "listeners": [
                        {"name": "plain", "port": 9092, "type": "internal", "tls": false},
                        {"name": "tls", "port": 9093, "type": "internal", "tls": true},
                    ],
                    "rack": {"topologyKey": "topology.kubernetes.io/zone"},
                    "config": settings,
                },
                "cruiseControl": {
                    "brokerCapacity": {"inboundNetwork": "100MiB/s", "outboundNetwork": "100MiB/s"},
                    "config": config,
                },
            },
        });
        if let Some(modes) = automatic {
            kafka["spec"]["cruiseControl"]["autoRebalance"] = modes;
        }
        self.apply::<Kafka>(kafka).await;
        self.until_ready().await;
    }

    pub(crate) async fn pool(&self, name: &str, roles: &[&str], replicas: u32, ids: Value, storage: Value) {
        self.apply::<KafkaNodePool>(json!({
            "apiVersion": "kafka.strimzi.io/v1", "kind": "KafkaNodePool",
            "metadata": {"name": name, "labels": {labels::CLUSTER: CLUSTER}, "annotations": ids},
            "spec": {"replicas": replicas, "roles": roles, "storage": storage},
        }))
        .await;
    }

    /// Kafka as clients of this machine reach it: through its plain listener.
    pub(crate) async fn client_of_kafka(&self) -> evenkeel_kafka::Client {
        let host = format!("{CLUSTER}-kafka-bootstrap.{}.svc", self.namespace);
        let table = &self.world.node.table;
        self.until("somebody listens", async || !table.find(&host, 9092).is_empty()).await;
        let at =
            table.find(&host, 9092).iter().map(|it| Address { host: it.ip().to_string(), port: it.port() }).collect();
        evenkeel_kafka::Client::new(Arc::new(Tcp), evenkeel_kafka::Settings::new(at))
    }

    pub(crate) async fn kafka(&self) -> KafkaStatus {
        self.api::<Kafka>().get(CLUSTER).await.expect("the Kafka").status.unwrap_or_default()
    }

    pub(crate) async fn until_ready(&self) {
        self.until("the Kafka is ready", async || {
            self.kafka().await.conditions.first().is_some_and(|first| first.type_ == "Ready" && first.status == "True")
        })
        .await;
    }

    /// Scales the brokers, as `kubectl scale` does.
    pub(crate) async fn scale(&self, replicas: i32) {
        let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
        self.api::<KafkaNodePool>().patch_scale("quay", &PatchParams::default(), &patch).await.expect("a scaled pool");
    }

    pub(crate) async fn brokers(&self) -> Vec<i32> {
        self.api::<KafkaNodePool>().get("quay").await.expect("the pool").status.unwrap_or_default().node_ids
    }

    /// Whether automatic rebalancing has nothing to do.
    pub(crate) async fn rests(&self) -> bool {
        let auto = self.kafka().await.auto_rebalance;
        auto.is_some_and(|auto| auto.state == AutoRebalanceState::Idle && auto.modes.is_empty())
    }

    pub(crate) async fn warning(&self, reason: &str) -> Option<String> {
        let conditions = self.kafka().await.conditions;
        conditions.into_iter().find(|it| it.reason.as_deref() == Some(reason)).and_then(|it| it.message)
    }

    pub(crate) async fn rebalance(&self, name: &str, spec: Value) {
        self.marked_rebalance(name, json!({}), spec).await;
    }

    /// A template of rebalances.
    pub(crate) async fn template(&self, name: &str, spec: Value) {
        self.marked_rebalance(name, json!({annotations::REBALANCE_TEMPLATE: "true"}), spec).await;
    }

    async fn marked_rebalance(&self, name: &str, marks: Value, spec: Value) {
        self.apply::<KafkaRebalance>(json!({
            "apiVersion": "kafka.strimzi.io/v1", "kind": "KafkaRebalance",
            "metadata": {"name": name, "labels": {labels::CLUSTER: CLUSTER}, "annotations": marks},
            "spec": spec,
        }))
        .await;
    }

    pub(crate) async fn annotate(&self, name: &str, ask: &str) {
        let patch = Patch::Merge(json!({"metadata": {"annotations": {annotations::REBALANCE: ask}}}));
        self.api::<KafkaRebalance>().patch(name, &PatchParams::default(), &patch).await.expect("an annotation");
    }

    pub(crate) async fn until_state(&self, name: &str, state: RebalanceState) {
        let what = format!("{name} is {state}");
        self.until(&what, async || {
            let found = self.api::<KafkaRebalance>().get_opt(name).await.expect("an answer");
            found.is_some_and(|found| found.state() == state)
        })
        .await;
    }

    /// Data moves, and some of it has moved.
    pub(crate) async fn until_moving(&self, name: &str) {
        self.until_state(name, RebalanceState::Rebalancing).await;
        self.until("data moves", async || {
            let progress = self.api::<ConfigMap>().get_opt(name).await.expect("an answer").and_then(|it| it.data);
            let percent = progress.and_then(|mut data| data.remove("completedByteMovementPercentage"));
            percent.and_then(|it| it.parse::<u32>().ok()).is_some_and(|it| it > 0)
        })
        .await;
    }

    pub(crate) async fn is_gone<K>(&self, name: &str) -> bool
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
    {
        self.api::<K>().get_opt(name).await.expect("an answer").is_none()
    }

    /// Waits until something is so; whatever goes wrong, what was refused tells the most.
    pub(crate) async fn until(&self, what: &str, is_so: impl AsyncFn() -> bool) {
        let waiting = until(what, is_so);
        let refused = async {
            loop {
                if !self.world.refusals.all().is_empty() {
                    return;
                }
                tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            }
        };
        tokio::select! {
            () = waiting => {}
            () = refused => {}
        }
        self.nothing_was_refused();
    }

    /// The operator has the rights that it needs, and writes nothing that the server does not want.
    pub(crate) fn nothing_was_refused(&self) {
        let all = self.world.refusals.all();
        assert!(all.is_empty(), "the operator was refused:\n{}", all.join("\n"));
    }
}
