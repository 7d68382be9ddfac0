//! Our node beside the real controllers: it runs pods, and leaves garbage, namespaces and accounts to them.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use evenkeel_kafka::Address;
use evenkeel_node::addresses::AddressTable;
use evenkeel_node::clock::Clock;
use evenkeel_node::kubelet::Settings;
use evenkeel_node::kubelet::logs::Logs;
use evenkeel_node::kubelet::materials::Account;
use evenkeel_node::nodes::Nodes;
use evenkeel_node::programs::engine::Engines;
use evenkeel_node::programs::kafka::{Brokers, Simulation};
use evenkeel_node::programs::wires::Wires;
use evenkeel_node::programs::{AnyBrokers, LocalPrograms};
use evenkeel_node::{claims, deployments, endpoints, kubelet, nodes, replica_sets, scheduler};
use evenkeel_operator::seams::{BoxFuture, Services};
use evenkeel_sim::Options;
use evenkeel_testkit::real_kube::ControlPlane;
use jiff::Timestamp;

/// A node whose brokers are simulated.
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
            programs: Arc::new(LocalPrograms { brokers: AnyBrokers::Simulated(self.brokers.clone()), engines }),
            clock: clock.clone(),
            addresses: self.table.clone(),
            logs: Logs::default(),
            dir: Some(dir),
            account: Some(account(control_plane)),
            stop_within: Duration::ZERO,
        };
        tokio::join!(
            nodes::run(client.clone(), settings.nodes.clone(), clock.clone()),
            scheduler::run(client.clone(), clock.clone()),
            claims::run(client.clone()),
            replica_sets::run(client.clone(), clock.clone()),
            deployments::run(client.clone(), clock),
            // The table is all that is wanted of it: the real server takes no slices with addresses of loopback.
            endpoints::run(client.clone(), self.table.clone()),
            async { kubelet::run(client.clone(), settings, std::future::pending()).await.expect("a folder for pods") },
        );
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
