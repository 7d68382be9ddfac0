//! The parts of a local run, started and stopped together: the Kubernetes API, the node with its programs, the operator.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use evenkeel_apiserver::http::Options as ApiOptions;
use evenkeel_apiserver::serve::{self, Server, Settings as ServerSettings};
use evenkeel_kafka::connect::Connector;
use evenkeel_kafka::{Address, Client as Kafka, Settings as KafkaSettings};
use evenkeel_node::addresses::AddressTable;
use evenkeel_node::clock::Clock;
use evenkeel_node::kubelet::logs::Logs;
use evenkeel_node::kubelet::{Settings as KubeletSettings, materials::Account};
use evenkeel_node::nodes::Nodes;
use evenkeel_node::programs::engine::Engines;
use evenkeel_node::programs::jvm::{Jvm, RealBrokers};
use evenkeel_node::programs::kafka::{Brokers, Simulation};
use evenkeel_node::programs::wires::Wires;
use evenkeel_node::programs::{AnyBrokers, LocalPrograms};
use evenkeel_sim::Options;
use evenkeel_sim::serve::World;
use jiff::Timestamp;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::example;
use super::logs::NodeLogs;
use super::operator::Operator;
use super::patience::until_seen;
use crate::kube::{client, install_crds};
use crate::misuse::Misuse;

/// The zones that pods are spread over.
const ZONES: [&str; 3] = ["zone-0", "zone-1", "zone-2"];
/// How often it is looked whether all parts still run.
const GLANCE: Duration = Duration::from_millis(500);
/// Nobody waits longer than this for pods at the end.
const STOP_WITHIN: Duration = Duration::from_secs(3);

/// What brokers are.
#[derive(Debug)]
pub(super) enum Kind {
    /// Simulated, in this process.
    Simulated,
    /// Apache Kafka, in JVMs that are started like this.
    Jvm(Jvm),
}

/// All parts, running.
pub(super) struct Stack {
    server: Server,
    client: Client,
    kubeconfig: PathBuf,
    /// Where files and data of pods are.
    pods: PathBuf,
    brokers: AnyBrokers,
    wires: Wires,
    table: AddressTable,
    stop: watch::Sender<bool>,
    operator: Operator,
    node: JoinHandle<std::io::Result<()>>,
}

impl Stack {
    pub(super) async fn start(listen: SocketAddr, dir: &Path, kind: Kind) -> anyhow::Result<Self> {
        let pods = dir.join("node");
        // Of a run that could not clean up after itself.
        remove(&pods).with_context(|| format!("could not clear {}", pods.display()))?;
        let logs = Logs::default();
        let options = ApiOptions { logs: Some(Arc::new(NodeLogs(logs.clone()))), ..ApiOptions::default() };
        let settings = ServerSettings { listen, options, ..ServerSettings::default() };
        let server = Server::start(settings).await.map_err(refused)?;
        let kubeconfig = dir.join("kubeconfig");
        server.write_kubeconfig(&kubeconfig).map_err(refused)?;
        install_crds(server.shared()).await?;
        // The node is part of what a cluster is made of; all others come in by the door, with what the kubeconfig says.
        let (inside, client) = (client(server.shared()), outside(&kubeconfig).await?);
        let (stop, stopped) = watch::channel(false);

        let (wires, table) = (Wires::Loopback, AddressTable::default());
        let clock = Clock::new(Timestamp::now);
        let simulation = Simulation { clock: clock.clone(), speed: 1.0, options: Options::default() };
        let brokers = match kind {
            Kind::Simulated => AnyBrokers::Simulated(Brokers::new(wires.clone(), simulation)),
            Kind::Jvm(jvm) => AnyBrokers::Real(RealBrokers { jvm }),
        };
        let engines = Engines::new(wires.clone(), clock.clone(), None);
        let programs = LocalPrograms { brokers: brokers.clone(), engines };
        let kubelet = KubeletSettings {
            nodes: Nodes::in_zones(ZONES),
            programs: Arc::new(programs),
            clock,
            addresses: table.clone(),
            logs,
            dir: Some(pods.clone()),
            account: Some(account(&server)),
            stop_within: STOP_WITHIN,
        };
        let node = tokio::spawn(evenkeel_node::run_pods(inside, kubelet, until(stopped)));
        let operator = Operator::start(&kubeconfig).context("could not start the operator")?;
        Ok(Self { server, client, kubeconfig, pods, brokers, wires, table, stop, operator, node })
    }

    /// The operator, to be killed.
    pub(super) fn operator(&self) -> Operator {
        self.operator.clone()
    }

    /// The Kubernetes API.
    pub(super) fn client(&self) -> Client {
        self.client.clone()
    }

    pub(super) fn url(&self) -> String {
        self.server.url()
    }

    pub(super) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// The simulated cluster behind a Kafka, once one of its brokers has started.
    pub(super) fn world(&self, namespace: &str, cluster: &str) -> Option<World> {
        match &self.brokers {
            AnyBrokers::Simulated(brokers) => brokers.worlds().get(namespace, cluster),
            AnyBrokers::Real(_) => None,
        }
    }

    /// Whether brokers are simulated.
    pub(super) fn is_simulated(&self) -> bool {
        matches!(self.brokers, AnyBrokers::Simulated(_))
    }

    /// The example's Kafka, as a client of its plain listener. It connects when it is first asked something.
    pub(super) fn kafka(&self) -> Kafka {
        let host = format!("{}-kafka-bootstrap.{}.svc", example::CLUSTER, example::NAMESPACE);
        let connector: Arc<dyn Connector> = self.wires.connector(self.table.clone());
        Kafka::new(connector, KafkaSettings::new(vec![Address { host, port: 9092 }]))
    }

    /// Where people point their own clients: the plain listeners, as they are on this machine. Waits until there is one.
    pub(super) async fn bootstrap(&self) -> anyhow::Result<Vec<Address>> {
        let host = format!("{}-kafka-bootstrap.{}.svc", example::CLUSTER, example::NAMESPACE);
        let found = until_seen("brokers have addresses", || {
            let found = self.table.find(&host, 9092);
            (!found.is_empty()).then_some(found)
        });
        Ok(found.await?.iter().map(|it| Address { host: it.ip().to_string(), port: it.port() }).collect())
    }

    /// Comes back only if a part has ended that should not have.
    pub(super) async fn ended(&self) -> anyhow::Result<()> {
        loop {
            for (part, ended) in [("operator", self.operator.has_ended()), ("node", self.node.is_finished())] {
                anyhow::ensure!(!ended, "the {part} has ended by itself; RUST_LOG=info tells more of it");
            }
            tokio::time::sleep(GLANCE).await;
        }
    }

    /// Ends everything; nothing is left behind.
    pub(super) async fn stop(self) {
        // The operator first: it would take pods that end for pods that failed.
        self.operator.kill().await;
        self.stop.send_replace(true);
        match self.node.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "the node ended badly"),
            Err(error) => tracing::warn!(%error, "the node ended badly"),
        }
        self.server.stop().await;
        // In a directory that others may look into nothing should stay that leads nowhere.
        let _ = std::fs::remove_file(&self.kubeconfig);
        if let Err(error) = remove(&self.pods) {
            tracing::warn!(%error, "could not remove the files of pods");
        }
    }
}

/// The API as whoever has the kubeconfig reaches it.
pub(super) async fn outside(kubeconfig: &Path) -> anyhow::Result<Client> {
    let read = Kubeconfig::read_from(kubeconfig)?;
    let mut config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await?;
    // It is this machine, whatever stands between it and the rest.
    config.proxy_url = None;
    Ok(Client::try_from(config)?)
}

fn remove(dir: &Path) -> std::io::Result<()> {
    match std::fs::remove_dir_all(dir) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Says in the words of this command what the server refuses because of how it was started.
fn refused(error: serve::Error) -> anyhow::Error {
    match error {
        serve::Error::NotLoopback { address } => {
            let (what, port) =
                ("is reachable from other machines, and everything here is for this one", address.port());
            Misuse::Local { what: format!("--listen {address} {what}; listen on 127.0.0.1:{port}") }.into()
        }
        serve::Error::ForeignKubeconfig { foreign } => {
            Misuse::Local { what: format!("{foreign}; name another --dir") }.into()
        }
        other => other.into(),
    }
}

/// What pods reach the API with. There is one identity with all rights, so it is everybody's.
fn account(server: &Server) -> Account {
    Account {
        token: server.token().to_owned(),
        authority: server.certificates().authority.clone(),
        host: server.address().ip().to_string(),
        port: server.address().port(),
    }
}

async fn until(mut stopped: watch::Receiver<bool>) {
    // A sender that is gone is as good as a word.
    let _ = stopped.wait_for(|stopped| *stopped).await;
}
