//! Kafka clients that share no code with ours find what they expect, on real brokers and on simulated ones.
//!
//! They are programs in `real/clients`; here the brokers are disturbed meanwhile. Both arms need the clients, which
//! `cargo xtask real kafka` installs.
#![cfg(feature = "real-kafka")]

use evenkeel_sim::{
    BrokerId, Options,
    cluster::BrokerSpec as SimulatedSpec,
    serve::{Listener as SimulatedListener, World},
};
use evenkeel_testkit::{
    kafka_client::{self, Running},
    real_kafka::{BrokerSpec, Cluster, Kit, Listener},
};
use serde_json::Value;

mod real_arm {
    use super::*;

    #[tokio::test]
    async fn an_administrator_with_kafka_python_finds_all_as_expected() {
        administer(&Cluster::shared().await.unwrap().bootstrap(Listener::Plaintext)).await;
    }

    #[tokio::test]
    async fn librdkafka_loses_nothing_through_a_restart_a_crash_and_a_move() {
        // Its own, for it is about to be hurt.
        let cluster = Cluster::start(Kit::from_env().unwrap(), &BrokerSpec::several(4)).await.unwrap();
        lose_nothing(&cluster.bootstrap(Listener::Plaintext), async |disturbance| match disturbance {
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
    async fn an_administrator_with_kafka_python_finds_all_as_expected() {
        administer(&simulated().await.1).await;
    }

    #[tokio::test]
    async fn librdkafka_loses_nothing_through_a_restart_a_crash_and_a_move() {
        let (world, bootstrap) = simulated().await;
        lose_nothing(&bootstrap, async |disturbance| {
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

async fn administer(bootstrap: &str) {
    kafka_client::run("admin.py", &[bootstrap, "kafka-python"]).await.unwrap();
}

async fn lose_nothing(bootstrap: &str, disturb: impl AsyncFn(Disturbance)) {
    let topic = async |arguments: &[&str]| {
        let arguments = [&[bootstrap], arguments].concat();
        kafka_client::run("topic.py", &arguments).await.unwrap();
    };
    topic(&["create", "traffic", "0,1 1,2 2,0"]).await;
    let mut traffic = Running::start("traffic.py", &[bootstrap, "traffic", "3"]).unwrap();
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

    let outcome: Value = serde_json::from_str(&traffic.finish().await.unwrap()).unwrap();
    assert!(outcome["acknowledged"].as_u64().unwrap() > 100, "{outcome}");
    assert_eq!(outcome["acknowledged"], outcome["sent"], "{outcome}");
    assert_eq!(outcome["lost"], Value::Array(vec![]), "{outcome}");
    assert_eq!(outcome["repeated"], 0, "{outcome}");
    assert_eq!(outcome["in_order"], true, "{outcome}");
}

/// Four simulated brokers on loopback, and where they are.
async fn simulated() -> (World, String) {
    let brokers = (0..4)
        .zip(["a", "b", "c", "a"])
        .map(|(id, rack)| SimulatedSpec::new(id).in_rack(rack).with_dirs(["/simulated/d0", "/simulated/d1"]));
    let options = Options { session_timeout: 2_000, ..Options::default() };
    let world = World::new(evenkeel_sim::Cluster::new(options, brokers));
    let listener = SimulatedListener::plain(world.clone());
    for id in 0..4 {
        listener.open_tcp(BrokerId(id), 0).await.unwrap();
    }
    (world, listener.bootstrap())
}
