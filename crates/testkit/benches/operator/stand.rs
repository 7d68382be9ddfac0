//! A Kubernetes API, a node with simulated brokers and engines, and an operator beside them.

use std::{
    collections::BTreeSet,
    fmt::Debug,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use evenkeel_api::{Kafka, KafkaNodePool, KafkaRebalance};
use evenkeel_apiserver::{
    http,
    serve::{Server, Settings as ServerSettings},
};
use evenkeel_node::{
    addresses::AddressTable,
    clock::Clock,
    kubelet::{Settings as KubeletSettings, logs::Logs, materials::Account},
    nodes::Nodes,
    programs::{
        AnyBrokers, LocalPrograms,
        engine::Engines,
        kafka::{Brokers, Simulation},
        wires::Wires,
    },
};
use evenkeel_sim::{Options, cluster::BrokerState, serve::World};
use futures::{StreamExt, TryStreamExt, stream};
use jiff::Timestamp;
use kube::{
    Api, Client, Resource,
    api::{ListParams, Patch, PatchParams, PostParams},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::sleep;

use crate::{
    manifests::{self, TEMPLATE, Watched, pool_name},
    operator::{Operator, outside},
};

const NAMESPACE: &str = "default";
const ZONES: [&str; 3] = ["zone-0", "zone-1", "zone-2"];
/// Anything that takes longer will not come.
const PATIENCE: Duration = Duration::from_secs(300);
/// How closely is looked.
const GLANCE: Duration = Duration::from_millis(2);
const LONG_GLANCE: Duration = Duration::from_millis(500);
/// So much is asked for at once.
const AT_ONCE: usize = 16;

pub(crate) struct Stand {
    // In this order: the operator goes before what it works with.
    pub(crate) operator: Operator,
    _server: Server,
    client: Client,
    brokers: Brokers,
    folder: TempDir,
}

impl Stand {
    pub(crate) async fn start() -> Result<Self> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let folder = tempfile::Builder::new().prefix("evenkeel-operator-").tempdir()?;
        let listen = "127.0.0.1:0".parse()?;
        let server = Server::start(ServerSettings { listen, ..ServerSettings::default() }).await?;
        let kubeconfig = folder.path().join("kubeconfig");
        server.write_kubeconfig(&kubeconfig)?;
        let inside = Client::new(http::router(Arc::clone(server.shared())), NAMESPACE);
        let definitions = Api::all(inside.clone());
        for crd in evenkeel_api::crds() {
            definitions.create(&PostParams::default(), &crd).await.context("could not install the CRDs")?;
        }
        let (wires, clock) = (Wires::Loopback, Clock::new(Timestamp::now));
        let simulation = Simulation { clock: clock.clone(), speed: 1.0, options: Options::default() };
        let brokers = Brokers::new(wires.clone(), simulation);
        let engines = Engines::new(wires, clock.clone(), None);
        let programs = LocalPrograms { brokers: AnyBrokers::Simulated(brokers.clone()), engines };
        let account = Account {
            token: server.token().to_owned(),
            authority: server.certificates().authority.clone(),
            host: server.address().ip().to_string(),
            port: server.address().port(),
        };
        let kubelet = KubeletSettings {
            nodes: Nodes::in_zones(ZONES),
            programs: Arc::new(programs),
            clock,
            addresses: AddressTable::default(),
            logs: Logs::default(),
            dir: Some(folder.path().join("node")),
            account: Some(account),
            stop_within: Duration::from_secs(3),
        };
        // It lives as long as the bench.
        tokio::spawn(evenkeel_node::run_pods(inside, kubelet, std::future::pending()));
        let client = outside(&kubeconfig).await?;
        let operator = Operator::start(&kubeconfig, &folder.path().join("operator.log"))?;
        let stand = Self { operator, _server: server, client, brokers, folder };
        stand.create::<KafkaRebalance>(manifests::rebalance(TEMPLATE, None)).await?;
        Ok(stand)
    }

    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = k8s_openapi::NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    pub(crate) async fn create<K>(&self, manifest: Value) -> Result<()>
    where
        K: Resource<Scope = k8s_openapi::NamespaceResourceScope> + Clone + DeserializeOwned + serde::Serialize + Debug,
        K::DynamicType: Default,
    {
        self.api::<K>().create(&PostParams::default(), &serde_json::from_value(manifest)?).await?;
        Ok(())
    }

    pub(crate) async fn patch<K>(&self, name: &str, patch: Value) -> Result<()>
    where
        K: Resource<Scope = k8s_openapi::NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
        K::DynamicType: Default,
    {
        self.api::<K>().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(())
    }

    /// A cluster of three controllers and three brokers.
    pub(crate) async fn make(&self, cluster: &str, watched: Watched) -> Result<()> {
        self.create::<KafkaNodePool>(manifests::pool(cluster, "controller", 3, "[100-199]")).await?;
        self.create::<KafkaNodePool>(manifests::pool(cluster, "broker", 3, "[0-99]")).await?;
        self.create::<Kafka>(manifests::kafka(cluster, watched)).await
    }

    /// Does something about each of these, some at a time.
    pub(crate) async fn each<T>(
        &self,
        all: impl IntoIterator<Item = T>,
        deed: impl AsyncFn(T) -> Result<()>,
    ) -> Result<()> {
        stream::iter(all).map(Ok).try_for_each_concurrent(AT_ONCE, |one| deed(one)).await
    }

    /// Waits until all of these are ready with so many brokers.
    pub(crate) async fn all_up(&self, names: &[String], brokers: usize) -> Result<Duration> {
        self.until_at_last("every cluster is up", async || {
            let ready: BTreeSet<String> = self
                .api::<Kafka>()
                .list(&ListParams::default())
                .await?
                .into_iter()
                .filter(|kafka| {
                    let state = kafka.status.as_ref().and_then(|status| status.conditions.first());
                    state.is_some_and(|state| state.type_ == "Ready")
                })
                .filter_map(|kafka| kafka.metadata.name)
                .collect();
            Ok(names.iter().all(|name| ready.contains(name) && self.running(name) == brokers))
        })
        .await
    }

    /// As `kubectl scale` does.
    pub(crate) async fn scale(&self, cluster: &str, replicas: i32) -> Result<()> {
        self.patch::<KafkaNodePool>(&pool_name(cluster, "broker"), json!({"spec": {"replicas": replicas}})).await
    }

    /// Whether the Kafka is ready, all its brokers are in, and its engine has what it needs.
    pub(crate) async fn is_up(&self, cluster: &str, brokers: usize) -> Result<bool> {
        let kafka = self.api::<Kafka>().get(cluster).await?;
        let ready = kafka.status.is_some_and(|it| it.conditions.first().is_some_and(|state| state.type_ == "Ready"));
        Ok(ready && self.running(cluster) == brokers)
    }

    /// Brokers that Kafka has let in.
    pub(crate) fn running(&self, cluster: &str) -> usize {
        let running = |world: World| {
            world.look(|cluster| {
                let all = cluster.broker_status();
                all.iter().filter(|broker| broker.state == BrokerState::Running).count()
            })
        };
        self.world(cluster).map_or(0, running)
    }

    pub(crate) fn world(&self, cluster: &str) -> Option<World> {
        self.brokers.worlds().get(NAMESPACE, cluster)
    }

    /// Waits for something, and tells how long that took from this moment on.
    pub(crate) async fn until(&self, what: &str, holds: impl AsyncFn() -> Result<bool>) -> Result<Duration> {
        self.until_seen(GLANCE, what, holds).await
    }

    /// The same for what takes long and is work to look at: a bench that looks all the time measures itself.
    pub(crate) async fn until_at_last(&self, what: &str, holds: impl AsyncFn() -> Result<bool>) -> Result<Duration> {
        self.until_seen(LONG_GLANCE, what, holds).await
    }

    async fn until_seen(
        &self,
        glance: Duration,
        what: &str,
        holds: impl AsyncFn() -> Result<bool>,
    ) -> Result<Duration> {
        let began = Instant::now();
        while !holds().await? {
            if began.elapsed() > PATIENCE {
                bail!("never: {what}; the end of the operator's log:\n{}", self.log_tail());
            }
            sleep(glance).await;
        }
        Ok(began.elapsed())
    }

    /// The state of a KafkaRebalance, if it is there and has one.
    pub(crate) async fn state_of(&self, rebalance: &str) -> Result<Option<String>> {
        let found = self.api::<KafkaRebalance>().get_opt(rebalance).await?;
        Ok(found.and_then(|it| it.status).and_then(|it| it.conditions.first().map(|state| state.type_.clone())))
    }

    /// The version of everything that is stored: who writes, changes it.
    pub(crate) async fn version(&self) -> Result<u64> {
        let list = self.api::<Kafka>().list_metadata(&Default::default()).await?;
        let version = list.metadata.resource_version.unwrap_or_default();
        ensure!(!version.is_empty(), "a list has no version");
        Ok(version.parse()?)
    }

    fn log_tail(&self) -> String {
        let path: PathBuf = self.folder.path().join("operator.log");
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let lines: Vec<&str> = text.lines().rev().take(20).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n")
    }
}
