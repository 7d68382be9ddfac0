//! The machines of a cluster: `evenkeel-node`, as in a local run, but over pipes in memory and in paused time. Pods are bound to
//! nodes, started from the very ConfigMaps, Secrets and claims that the operator has written, restarted after a back-off, and
//! ended; brokers are simulated, and the operator reaches them by name and over TLS, as in production.
//!
//! Who lives in every cluster besides (the garbage collector, whoever empties namespaces) is the stage's. What the container of
//! an engine runs is for each suite to say: nobody, where a story tells by hand what an engine would, or an engine that dies at
//! a call that was chosen before (`engine_room`). The node's own engine is in `on_a_node`: who counts an engine's calls has to
//! see them before TLS hides them, and would be no part of a node.

use std::collections::{BTreeMap, BTreeSet};
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use evenkeel_kafka as kafka;
use evenkeel_kafka::connect::{Address, Connector, Memory};
use evenkeel_node::addresses::AddressTable;
use evenkeel_node::clock::Clock;
use evenkeel_node::kubelet::logs::Logs;
use evenkeel_node::kubelet::materials::Account;
use evenkeel_node::kubelet::program::{Exit, Launch, LaunchError, Process, Programs};
use evenkeel_node::kubelet::{self, Settings};
use evenkeel_node::nodes::{self, Nodes};
use evenkeel_node::programs::kafka::{Brokers, Simulation};
use evenkeel_node::programs::wires::Wires;
use evenkeel_node::{claims, deployments, endpoints, replica_sets, scheduler};
use evenkeel_operator::seams;
use evenkeel_sim::Options;
use evenkeel_sim::serve::World;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Pod;
use kube::{Client, ResourceExt};
use tokio::sync::watch;

use crate::stage::{CLUSTER, NAMESPACE};

/// The port of the listener that speaks in the clear, where a Kafka has one.
const PLAIN: u16 = 9092;

/// The nodes that everything runs on. Clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct Machines {
    wires: Wires,
    table: AddressTable,
    clock: Clock,
    brokers: Brokers,
    held: Held,
}

/// Pods that are kept from being ready, by name.
type Held = Arc<watch::Sender<BTreeSet<String>>>;

impl Machines {
    pub(crate) fn new(clock: seams::Clock) -> Self {
        let (wires, clock) = (Wires::pipes(), Clock::new(move || clock.now()));
        let options = Options { session_timeout: 2_000, ..Options::default() };
        let brokers = Brokers::new(wires.clone(), Simulation { clock: clock.clone(), speed: 1.0, options });
        Self { wires, table: AddressTable::default(), clock, brokers, held: Arc::default() }
    }

    /// Runs all pods, until dropped. Containers that are no brokers run `others`.
    pub(crate) async fn run(self, client: Client, others: Arc<dyn Programs>) {
        let (nodes, clock) = (Nodes::default(), self.clock.clone());
        let account = Account { token: "t".into(), authority: "a".into(), host: "127.0.0.1".into(), port: 6443 };
        let settings = Settings {
            nodes: nodes.clone(),
            programs: Arc::new(Containers { brokers: self.brokers, others, held: self.held }),
            clock: clock.clone(),
            addresses: self.table.clone(),
            logs: Logs::default(),
            dir: None,
            account: Some(account),
            stop_within: Duration::ZERO,
        };
        let around = async {
            tokio::join!(
                nodes::run(client.clone(), nodes.clone(), clock.clone()),
                scheduler::run(client.clone(), nodes, clock.clone()),
                claims::run(client.clone()),
                replica_sets::run(client.clone(), clock.clone()),
                deployments::run(client.clone(), clock),
                endpoints::run(client.clone(), self.table),
            );
        };
        tokio::select! {
            ended = kubelet::run(client.clone(), settings, pending()) => ended.unwrap(),
            () = around => {}
        }
    }

    /// The simulated cluster. There is one from its first broker on.
    pub(crate) fn world(&self) -> World {
        self.brokers.worlds().get(NAMESPACE, CLUSTER).expect("a broker was started")
    }

    /// A pod is not ready from now on: if it runs, it says so; if it does not, it is not started.
    pub(crate) fn hold(&self, pod: &str) {
        self.held.send_if_modified(|held| held.insert(pod.to_owned()));
    }

    /// It may be ready again.
    pub(crate) fn release(&self, pod: &str) {
        self.held.send_if_modified(|held| held.remove(pod));
    }

    /// What dials by name, as pods do.
    pub(crate) fn way(&self) -> Arc<dyn Connector> {
        self.wires.connector(self.table.clone())
    }

    /// What dials the real addresses that names stand for.
    pub(crate) fn connector(&self) -> Memory {
        self.wires.memory().expect("there are no sockets here").clone()
    }

    /// A client in the clear that dials real addresses with this; none if nobody is ready.
    pub(crate) fn client_over(&self, connector: Arc<dyn Connector>) -> Option<kafka::Client> {
        let served = self.table.find(&bootstrap(), PLAIN);
        let address = |real: std::net::SocketAddr| Address { host: real.ip().to_string(), port: real.port() };
        let mut settings = kafka::Settings::new(served.into_iter().map(address).collect());
        settings.patience = Duration::from_secs(10);
        (!settings.bootstrap.is_empty()).then(|| kafka::Client::new(connector, settings))
    }

    /// The same as soon as somebody is.
    pub(crate) async fn client_once_over(&self, connector: Arc<dyn Connector>) -> kafka::Client {
        loop {
            self.table.wait_for(&bootstrap(), PLAIN).await;
            if let Some(client) = self.client_over(Arc::clone(&connector)) {
                return client;
            }
        }
    }
}

/// Where brokers are asked for each other.
fn bootstrap() -> String {
    format!("{CLUSTER}-kafka-bootstrap.{NAMESPACE}.svc")
}

/// What containers run.
#[derive(Debug)]
struct Containers {
    brokers: Brokers,
    others: Arc<dyn Programs>,
    held: Held,
}

impl Programs for Containers {
    fn launch(&self, what: Launch) -> BoxFuture<'static, Result<Process, LaunchError>> {
        let (pod, mut held) = (what.pod.name_any(), self.held.subscribe());
        let launch = match what.container.as_str() {
            "kafka" => self.brokers.launch(what),
            _ => self.others.launch(what),
        };
        Box::pin(async move {
            // The sender lives as long as the node.
            let _ = held.wait_for(|held| !held.contains(&pod)).await;
            Ok(heedful(launch.await?, pod, held))
        })
    }

    fn forget(&self, pod: &Pod) {
        self.brokers.forget(pod);
    }

    fn discard(&self, volume: &str) {
        self.brokers.discard(volume);
    }
}

/// The same process, but that it is not ready while its pod is held.
fn heedful(process: Process, pod: String, mut held: watch::Receiver<BTreeSet<String>>) -> Process {
    let (tell, ready) = watch::channel(false);
    let mut own = process.ready;
    tokio::spawn(async move {
        let mut may_change = true;
        loop {
            let is_ready = *own.borrow_and_update() && !held.borrow_and_update().contains(&pod);
            tell.send_if_modified(|told| std::mem::replace(told, is_ready) != is_ready);
            tokio::select! {
                changed = own.changed(), if may_change => may_change = changed.is_ok(),
                Ok(()) = held.changed() => {}
                () = tell.closed() => return,
            }
        }
    });
    Process { ready, ..process }
}

/// Nobody is in the container, and it is ready all the same.
#[derive(Debug)]
pub(crate) struct Nobody;

impl Programs for Nobody {
    fn launch(&self, _: Launch) -> BoxFuture<'static, Result<Process, LaunchError>> {
        let (stop, mut stopped) = watch::channel(false);
        let process = Process {
            ports: BTreeMap::new(),
            ready: watch::channel(true).1,
            ended: Box::pin(async move {
                // A sender that is gone was dropped with the process.
                let _ = stopped.wait_for(|stopped| *stopped).await;
                Exit::success()
            }),
            stop: Box::new(move |_| {
                stop.send_replace(true);
            }),
        };
        Box::pin(std::future::ready(Ok(process)))
    }
}
