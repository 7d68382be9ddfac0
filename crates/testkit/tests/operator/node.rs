//! Our node beside the real controllers: it runs pods, and leaves garbage, namespaces and accounts to them.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use evenkeel_kafka::Address;
use evenkeel_node::addresses::AddressTable;
use evenkeel_node::clock::Clock;
use evenkeel_node::kubelet::Settings;
use evenkeel_node::kubelet::logs::Logs;
use evenkeel_node::kubelet::materials::Account;
use evenkeel_node::kubelet::program::{Launch, LaunchError, Process, Programs};
use evenkeel_node::nodes::Nodes;
use evenkeel_node::programs::engine::Engines;
use evenkeel_node::programs::jvm::{Jvm, RealBrokers};
use evenkeel_node::programs::kafka::{Brokers, Simulation};
use evenkeel_node::programs::wires::Wires;
use evenkeel_node::programs::{AnyBrokers, LocalPrograms};
use evenkeel_node::{claims, deployments, endpoints, kubelet, nodes, protection, replica_sets, scheduler};
use evenkeel_operator::seams::Services;
use evenkeel_sim::Options;
use evenkeel_testkit::real_kafka::Kit;
use evenkeel_testkit::real_kube::ControlPlane;
use futures::future::BoxFuture;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;

/// Namespaces whose names begin so have real brokers.
pub(crate) const REAL: &str = "real-";

/// A node whose brokers are simulated, but in some namespaces.
#[derive(Clone)]
pub(crate) struct Node {
    pub(crate) brokers: Brokers,
    pub(crate) table: AddressTable,
}

impl Node {
    pub(crate) fn new() -> Self {
        let options = Options { session_timeout: 2_000, ..Options::default() };
        let simulation = Simulation { clock: Clock::new(Timestamp::now), speed: 1.0, options };
        Self { brokers: Brokers::new(Wires::Loopback, simulation), table: AddressTable::default() }
    }

    /// Runs pods, until dropped.
    pub(crate) async fn run(self, control_plane: &ControlPlane, dir: PathBuf) {
        let client = control_plane.client().await.expect("a client");
        let clock = Clock::new(Timestamp::now);
        let engines = Engines::new(Wires::Loopback, clock.clone(), Some(client.clone()));
        let settings = Settings {
            nodes: Nodes::default(),
            programs: Arc::new(Either {
                simulated: LocalPrograms {
                    brokers: AnyBrokers::Simulated(self.brokers.clone()),
                    engines: engines.clone(),
                },
                real: LocalPrograms { brokers: AnyBrokers::Real(RealBrokers { jvm: jvm() }), engines },
            }),
            clock: clock.clone(),
            addresses: self.table.clone(),
            logs: Logs::default(),
            dir: Some(dir),
            account: Some(account(control_plane)),
            stop_within: Duration::ZERO,
        };
        tokio::join!(
            nodes::run(client.clone(), settings.nodes.clone(), clock.clone()),
            scheduler::run(client.clone(), settings.nodes.clone(), clock.clone()),
            claims::run(client.clone()),
            protection::run(client.clone()),
            replica_sets::run(client.clone(), clock.clone()),
            deployments::run(client.clone(), clock),
            // The table is all that is wanted of it: the real server takes no slices with addresses of loopback.
            endpoints::run(client.clone(), self.table.clone()),
            async { kubelet::run(client.clone(), settings, std::future::pending()).await.expect("a folder for pods") },
        );
    }
}

/// Kafka as `cargo xtask real kafka` fetched it. Later options win: as `evenkeel local` has it, the heap holds what a log
/// cleaner asks for when nobody tells it to ask for less.
fn jvm() -> Jvm {
    let kit = Kit::from_env().expect("real brokers");
    let options = kit.java_options().into_iter().chain([OsString::from("-Xmx512m")]);
    Jvm { java: "java".into(), options: options.collect() }
}

/// Brokers of one kind or the other, by namespace.
#[derive(Debug)]
struct Either {
    simulated: LocalPrograms,
    real: LocalPrograms,
}

impl Either {
    fn of(&self, pod: &Pod) -> &LocalPrograms {
        let is_real = pod.metadata.namespace.as_ref().is_some_and(|namespace| namespace.starts_with(REAL));
        if is_real { &self.real } else { &self.simulated }
    }
}

impl Programs for Either {
    fn launch(&self, what: Launch) -> BoxFuture<'static, Result<Process, LaunchError>> {
        self.of(&what.pod).launch(what)
    }

    fn forget(&self, pod: &Pod) {
        self.of(pod).forget(pod);
    }

    fn discard(&self, volume: &str) {
        // Volumes have ids that nobody else has.
        self.simulated.discard(volume);
        self.real.discard(volume);
    }
}

/// What pods reach the API with. Theirs would be tokens of their own; what those may do is asked of the server itself.
fn account(control_plane: &ControlPlane) -> Account {
    let (_, at) = control_plane.url().split_once("://").expect("a URL");
    let (host, port) = at.split_once(':').expect("a host and a port");
    Account {
        token: control_plane.token().to_owned(),
        authority: std::fs::read_to_string(control_plane.certificate_authority()).expect("certificates"),
        host: host.to_owned(),
        port: port.parse().expect("a port"),
    }
}

/// Finds services as DNS would, where pods share the address of this machine.
#[derive(Clone, Debug)]
pub(crate) struct ByTable(pub(crate) AddressTable);

impl ByTable {
    fn look(&self, host: &str, port: u16) -> Result<Vec<Address>, kube::Error> {
        let found = self.0.find(host, port);
        Ok(found.iter().map(|real| Address { host: real.ip().to_string(), port: real.port() }).collect())
    }
}

impl Services for ByTable {
    fn find<'a>(
        &'a self,
        namespace: &'a str,
        service: &'a str,
        port: u16,
    ) -> BoxFuture<'a, Result<Vec<Address>, kube::Error>> {
        Box::pin(async move { self.look(&format!("{service}.{namespace}.svc"), port) })
    }

    fn find_pod<'a>(
        &'a self,
        namespace: &'a str,
        service: &'a str,
        pod: &'a str,
        port: u16,
    ) -> BoxFuture<'a, Result<Vec<Address>, kube::Error>> {
        Box::pin(async move { self.look(&format!("{pod}.{service}.{namespace}.svc"), port) })
    }
}
