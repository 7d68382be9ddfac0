//! A place where pods are launched: what the operator would write, and what a kubelet would make of it.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use evenkeel_kafka::calls::topics::{Layout, NewTopic};
use evenkeel_kafka::connect::{Connector, Tls, TlsPem};
use evenkeel_kafka::{Address, BrokerId, Client, Settings};
use evenkeel_node::addresses::AddressTable;
use evenkeel_node::clock::Clock;
use evenkeel_node::kubelet::logs::Log;
use evenkeel_node::kubelet::program::{Launch, LaunchError, Process, Programs, Volume};
use evenkeel_node::kubelet::tree::{File, Tree};
use evenkeel_node::programs::engine::Engines;
use evenkeel_node::programs::kafka::{Brokers, Simulation};
use evenkeel_node::programs::wires::Wires;
use evenkeel_node::programs::{AnyBrokers, LocalPrograms};
use evenkeel_sim::Options;
use evenkeel_sim::serve::World;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tokio::sync::watch;

pub(crate) const NAMESPACE: &str = "ns";
pub(crate) const CLUSTER_ID: &str = "Zm9vYmFyYmF6cXV4MTIzNA";

/// Vouches for others.
pub(crate) struct Authority {
    pub(crate) pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).unwrap().pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    /// Certificate and key for these names.
    pub(crate) fn issue(&self, names: &[&str]) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(names.iter().map(ToString::to_string).collect::<Vec<_>>()).unwrap();
        (params.signed_by(&key, &self.issuer).unwrap().pem(), key.serialize_pem())
    }
}

/// Everything that pods need.
pub(crate) struct Yard {
    pub(crate) wires: Wires,
    pub(crate) table: AddressTable,
    pub(crate) programs: LocalPrograms,
    pub(crate) authority: Authority,
    brokers: Brokers,
    clock: Clock,
}

impl Yard {
    pub(crate) fn new(wires: Wires) -> Self {
        let clock = Clock::simulated("2026-01-01T00:00:00Z".parse::<Timestamp>().unwrap());
        let simulation = Simulation { clock: clock.clone(), speed: 1.0, options: Options::default() };
        let brokers = Brokers::new(wires.clone(), simulation);
        let programs = LocalPrograms {
            brokers: AnyBrokers::Simulated(brokers.clone()),
            engines: Engines::new(wires.clone(), clock.clone(), None),
        };
        Self { wires, table: AddressTable::default(), programs, authority: Authority::new(), brokers, clock }
    }

    pub(crate) fn world(&self) -> Option<World> {
        self.brokers.worlds().get(NAMESPACE, "c")
    }

    /// A container about to be launched.
    pub(crate) fn launch(&self, pod: Pod, container: &str, files: &[(&str, &str)]) -> Launch {
        let file = |text: &str| File { bytes: text.into(), mode: 0o644 };
        let files: Tree = files.iter().map(|(path, text)| ((*path).to_owned(), file(text))).collect();
        Launch {
            pod: Arc::new(pod),
            container: container.to_owned(),
            image: "local".to_owned(),
            command: Vec::new(),
            env: BTreeMap::new(),
            updates: watch::channel(files.clone()).1,
            files,
            root: None,
            volumes: BTreeMap::new(),
            node_labels: BTreeMap::new(),
            restarts: 0,
            log: Log::new(self.clock.clone()),
            addresses: self.table.clone(),
        }
    }

    /// A broker's pod, as the operator writes it.
    pub(crate) fn broker(&self, id: i32, volume: Volume) -> Launch {
        let name = format!("c-brokers-{id}");
        let host = format!("{name}.c-kafka-brokers.{NAMESPACE}.svc");
        let (chain, key) = self.authority.issue(&[&host, &format!("c-kafka-bootstrap.{NAMESPACE}.svc")]);
        let files = [
            ("/opt/kafka/custom-config/server.config", server_config(id, &host)),
            ("/opt/kafka/custom-config/cluster.id", CLUSTER_ID.to_owned()),
            ("/opt/kafka/init/rack.id", format!("zone-{}", id % 3)),
            ("/opt/kafka/certs/node/keystore.pem", format!("{key}{chain}")),
            ("/opt/kafka/certs/cluster-ca/ca.crt", self.authority.pem.clone()),
        ];
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
        let mut launch = self.launch(pod(&name), "kafka", &files);
        launch.volumes.insert("/var/lib/kafka/data".to_owned(), volume);
        launch
    }

    /// Launches it, and says where it is, as a kubelet and an endpoints controller do.
    pub(crate) async fn run(&self, launch: Launch) -> Result<Process, LaunchError> {
        let name = launch.pod.metadata.name.clone().unwrap();
        let process = self.programs.launch(launch).await?;
        self.table.pod_runs(NAMESPACE, &name, Some("c-kafka-brokers"), process.ports.clone());
        Ok(process)
    }

    pub(crate) fn serves(&self, service: &str, port: u16, processes: &[&Process]) {
        let real = processes.iter().map(|it| SocketAddr::from((Ipv4Addr::LOCALHOST, it.ports[&port]))).collect();
        self.table.service_is(NAMESPACE, service, Some([(port, real)].into()));
    }

    /// TLS that shows a certificate of ours, or none.
    pub(crate) fn tls(&self, shows: Option<(String, String)>) -> Tls {
        let identity = shows.map(|(chain, key)| (chain.into_bytes(), key.into_bytes()));
        let pem = TlsPem { authorities: self.authority.pem.clone().into_bytes(), identity };
        Tls::of_pem(pem).unwrap().over(self.wires.connector(self.table.clone()))
    }

    /// A client of the listener between brokers.
    pub(crate) fn client(&self) -> Client {
        let bootstrap = Address { host: format!("c-kafka-bootstrap.{NAMESPACE}.svc"), port: 9091 };
        self.client_by(Arc::new(self.tls(Some(self.authority.issue(&["operator"])))), bootstrap)
    }

    pub(crate) fn client_by(&self, connector: Arc<dyn Connector>, bootstrap: Address) -> Client {
        Client::new(connector, Settings { seed: 7, ..Settings::new(vec![bootstrap]) })
    }
}

pub(crate) fn pod(name: &str) -> Pod {
    let pod = serde_json::json!({
        "metadata": {
            "name": name, "namespace": NAMESPACE, "uid": format!("uid-{name}"), "labels": {"strimzi.io/cluster": "c"},
        },
    });
    serde_json::from_value(pod).unwrap()
}

/// A claim's volume.
pub(crate) fn claim(id: &str) -> Volume {
    Volume { id: id.to_owned(), capacity: Some(100_000_000_000), persistent: true, directory: None }
}

pub(crate) fn topic(name: &str, replicas: &[i32]) -> NewTopic {
    let replicas = replicas.iter().copied().map(BrokerId).collect();
    NewTopic { name: name.to_owned(), layout: Layout::Manual(vec![replicas]), configs: BTreeMap::new() }
}

pub(crate) async fn ready(process: &mut Process) {
    process.ready.wait_for(|ready| *ready).await.unwrap();
}

fn server_config(id: i32, host: &str) -> String {
    let store = "ssl.keystore.type=PEM\nlistener.name.NAME.ssl.keystore.location=/opt/kafka/certs/node/keystore.pem";
    let internal = format!("listener.name.NAME.{store}").replace("NAME", "replication-9091");
    let tls = format!("listener.name.NAME.{store}").replace("NAME", "tls-9093");
    format!(
        "node.id={id}\nprocess.roles=broker\n\
         controller.quorum.voters=9@c-controllers-9.c-kafka-brokers.{NAMESPACE}.svc:9090\n\
         controller.listener.names=CONTROLPLANE-9090\n\
         listeners=REPLICATION-9091://0.0.0.0:9091,PLAIN-9092://0.0.0.0:9092,TLS-9093://0.0.0.0:9093\n\
         advertised.listeners=REPLICATION-9091://{host}:9091,PLAIN-9092://{host}:9092,TLS-9093://{host}:9093\n\
         listener.security.protocol.map=CONTROLPLANE-9090:SSL,REPLICATION-9091:SSL,PLAIN-9092:PLAINTEXT,TLS-9093:SSL\n\
         inter.broker.listener.name=REPLICATION-9091\n{internal}\n{tls}\n\
         listener.name.replication-9091.ssl.truststore.type=PEM\n\
         listener.name.replication-9091.ssl.truststore.location=/opt/kafka/certs/cluster-ca/ca.crt\n\
         listener.name.replication-9091.ssl.client.auth=required\n\
         log.dirs=/var/lib/kafka/data/kafka-log{id}\nbroker.rack=${{dir:/opt/kafka/init:rack.id}}\n\
         default.replication.factor=3\nmin.insync.replicas=2\n"
    )
}
