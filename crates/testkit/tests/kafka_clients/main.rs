//! Kafka clients that share no code with ours find what they expect, on real brokers and on simulated ones.
//!
//! They are programs in `real/clients`; here the brokers are disturbed meanwhile. Both arms need the clients, which
//! `cargo xtask real kafka` installs.
#![cfg(feature = "real-kafka")]

use std::{
    path::Path,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use evenkeel_sim::{
    BrokerId, Options,
    broker::login::Users,
    cluster::BrokerSpec as SimulatedSpec,
    serve::{Listener as SimulatedListener, World},
};
use evenkeel_testkit::{
    certificates::Certificates,
    kafka_client::{self, Running},
    real_kafka::{BrokerSpec, Cluster, Kit, Listener},
};
use serde_json::Value;
use tempfile::TempDir;
use tokio_rustls::{TlsAcceptor, rustls::server::WebPkiClientVerifier};

mod real_arm {
    use super::*;

    #[tokio::test]
    async fn kafka_python_finds_all_as_expected_and_both_clients_enter_with_a_password() {
        let cluster = Cluster::shared().await.unwrap();
        administer(&Door::open(cluster.bootstrap(Listener::Plaintext)), "kafka-python").await;
        // One after the other: both change the settings of the same broker.
        let (password, authority) = (cluster.password(USER).unwrap(), cluster.certificates().authority());
        enter_with_a_password(&Door::guarded(cluster.bootstrap(Listener::SaslSsl), password, &authority)).await;
    }

    #[tokio::test]
    async fn librdkafka_loses_nothing_through_a_restart_a_crash_and_a_move() {
        // Its own, for it is about to be hurt.
        let cluster = Cluster::start(Kit::from_env().unwrap(), &BrokerSpec::several(4)).await.unwrap();
        lose_nothing(&Door::open(cluster.bootstrap(Listener::Plaintext)), async |disturbance| match disturbance {
            Disturbance::Stop(broker) => cluster.stop_broker(broker).await.unwrap(),
            Disturbance::Kill(broker) => cluster.kill_broker(broker).await.unwrap(),
            Disturbance::Start(broker) => cluster.start_broker(broker).await.unwrap(),
        })
        .await;
    }
}

mod sim_with_clients_arm {
    use super::*;

    #[tokio::test]
    async fn kafka_python_finds_all_as_expected_and_both_clients_enter_with_a_password() {
        let brokers = simulated().await;
        administer(&brokers.door, "kafka-python").await;
        enter_with_a_password(&brokers.guarded_door).await;
    }

    #[tokio::test]
    async fn librdkafka_loses_nothing_through_a_restart_a_crash_and_a_move() {
        let Simulated { world, door, .. } = simulated().await;
        lose_nothing(&door, async |disturbance| {
            world.with(|cluster| match disturbance {
                Disturbance::Stop(broker) => cluster.stop_broker(BrokerId(broker)),
                Disturbance::Kill(broker) => cluster.crash_broker(BrokerId(broker)),
                Disturbance::Start(broker) => cluster.start_broker(BrokerId(broker)),
            });
        })
        .await;
    }
}

/// What happens to brokers while clients are busy.
#[derive(Clone, Copy)]
enum Disturbance {
    Stop(i32),
    Kill(i32),
    Start(i32),
}

/// A way in: where the brokers are, and what clients say there.
struct Door {
    bootstrap: String,
    security: Vec<String>,
}

const USER: &str = "admin";

impl Door {
    fn open(bootstrap: String) -> Self {
        Self { bootstrap, security: Vec::new() }
    }

    /// With TLS, and a password by SCRAM.
    fn guarded(bootstrap: String, password: &str, authority: &Path) -> Self {
        let authority = authority.to_str().expect("a path of letters");
        Self { bootstrap, security: ["--user", USER, password, authority].map(str::to_owned).to_vec() }
    }

    /// What a program is called with.
    fn arguments<'a>(&'a self, others: &[&'a str]) -> Vec<&'a str> {
        let security = self.security.iter().map(String::as_str);
        [self.bootstrap.as_str()].into_iter().chain(others.iter().copied()).chain(security).collect()
    }
}

async fn administer(door: &Door, topic: &str) {
    kafka_client::run("admin.py", &door.arguments(&[topic])).await.unwrap();
}

/// Both clients, at a door where they are asked who they are.
async fn enter_with_a_password(door: &Door) {
    administer(door, "kafka-python-with-a-password").await;
    let topic = "traffic-with-a-password";
    kafka_client::run("topic.py", &door.arguments(&["create", topic, "0,1 1,2"])).await.unwrap();
    let mut traffic = Running::start("traffic.py", &door.arguments(&[topic, "2"])).unwrap();
    assert_eq!(traffic.line().await.unwrap(), "under way");
    nothing_lost(traffic).await;
}

async fn lose_nothing(door: &Door, disturb: impl AsyncFn(Disturbance)) {
    let topic = async |arguments: &[&str]| {
        kafka_client::run("topic.py", &door.arguments(arguments)).await.unwrap();
    };
    topic(&["create", "traffic", "0,1 1,2 2,0"]).await;
    let mut traffic = Running::start("traffic.py", &door.arguments(&["traffic", "3"])).unwrap();
    assert_eq!(traffic.line().await.unwrap(), "under way");

    for gone in [Disturbance::Stop(1), Disturbance::Kill(2)] {
        let (Disturbance::Stop(broker) | Disturbance::Kill(broker) | Disturbance::Start(broker)) = gone;
        disturb(gone).await;
        // Until it is missed: back at once, nobody would have had to lead in its place.
        topic(&["missed", "traffic", &broker.to_string()]).await;
        disturb(Disturbance::Start(broker)).await;
        topic(&["in-sync", "traffic"]).await;
    }
    topic(&["move", "traffic", "2,3 3,0 0,1"]).await;

    let outcome = nothing_lost(traffic).await;
    assert!(outcome["acknowledged"].as_u64().unwrap() > 100, "{outcome}");
}

/// Ends the traffic: what was acknowledged arrived, once and in order.
async fn nothing_lost(traffic: Running) -> Value {
    let outcome: Value = serde_json::from_str(&traffic.finish().await.unwrap()).unwrap();
    assert!(outcome["acknowledged"].as_u64().unwrap() > 0, "{outcome}");
    assert_eq!(outcome["acknowledged"], outcome["sent"], "{outcome}");
    assert_eq!(outcome["lost"], Value::Array(vec![]), "{outcome}");
    assert_eq!(outcome["repeated"], 0, "{outcome}");
    assert_eq!(outcome["in_order"], true, "{outcome}");
    outcome
}

/// Four simulated brokers on loopback, and two ways in.
struct Simulated {
    world: World,
    door: Door,
    guarded_door: Door,
    _certificates: TempDir,
}

async fn simulated() -> Simulated {
    const PASSWORD: &str = "admin-of-the-simulation";
    let brokers = (0..4)
        .zip(["a", "b", "c", "a"])
        .map(|(id, rack)| SimulatedSpec::new(id).in_rack(rack).with_dirs(["/simulated/d0", "/simulated/d1"]));
    // The clients have clocks of their own, and tell by them how old a transaction is.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
    let wall_start = i64::try_from(now).unwrap();
    let options = Options { session_timeout: 2_000, wall_start, ..Options::default() };
    let world = World::new(evenkeel_sim::Cluster::new(options, brokers));
    let folder = tempfile::tempdir().unwrap();
    let certificates = Certificates::make(folder.path()).unwrap();
    let tls = certificates.server(WebPkiClientVerifier::no_client_auth()).unwrap();
    let plain = SimulatedListener::plain(world.clone());
    let guarded = SimulatedListener::plain(world.clone())
        .with_tls(TlsAcceptor::from(Arc::new(tls)))
        .with_users(Users::default().with(USER, PASSWORD));
    for listener in [&plain, &guarded] {
        for id in 0..4 {
            listener.open_tcp(BrokerId(id), 0).await.unwrap();
        }
    }
    Simulated {
        world,
        door: Door::open(plain.bootstrap()),
        guarded_door: Door::guarded(guarded.bootstrap(), PASSWORD, &certificates.authority()),
        _certificates: folder,
    }
}
