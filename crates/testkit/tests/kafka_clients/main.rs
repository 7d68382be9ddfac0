//! Kafka clients that share no code with ours find what they expect, on real brokers.
//!
//! They are programs in `real/clients`; here the brokers are disturbed meanwhile.
#![cfg(feature = "real-kafka")]

use evenkeel_testkit::{
    kafka_client::{self, Running},
    real_kafka::{BrokerSpec, Cluster, Kit, Listener},
};
use serde_json::Value;

mod real_arm {
    use super::*;

    #[tokio::test]
    async fn an_administrator_with_kafka_python_finds_all_as_expected() {
        let cluster = Cluster::shared().await.unwrap();
        kafka_client::run("admin.py", &[&cluster.bootstrap(Listener::Plaintext), "kafka-python"]).await.unwrap();
    }

    #[tokio::test]
    async fn librdkafka_loses_nothing_through_a_restart_a_crash_and_a_move() {
        // Its own, for it is about to be hurt.
        let cluster = Cluster::start(Kit::from_env().unwrap(), &BrokerSpec::several(4)).await.unwrap();
        let bootstrap = cluster.bootstrap(Listener::Plaintext);
        kafka_client::run("topic.py", &[&bootstrap, "create", "traffic", "0,1 1,2 2,0"]).await.unwrap();
        let mut traffic = Running::start("traffic.py", &[&bootstrap, "traffic", "3"]).unwrap();
        assert_eq!(traffic.line().await.unwrap(), "under way");

        cluster.stop_broker(1).await.unwrap();
        cluster.start_broker(1).await.unwrap();
        kafka_client::run("topic.py", &[&bootstrap, "in-sync", "traffic"]).await.unwrap();
        cluster.kill_broker(2).await.unwrap();
        cluster.start_broker(2).await.unwrap();
        kafka_client::run("topic.py", &[&bootstrap, "in-sync", "traffic"]).await.unwrap();
        kafka_client::run("topic.py", &[&bootstrap, "move", "traffic", "2,3 3,0 0,1"]).await.unwrap();

        let outcome: Value = serde_json::from_str(&traffic.finish().await.unwrap()).unwrap();
        assert!(outcome["acknowledged"].as_u64().unwrap() > 100, "{outcome}");
        assert_eq!(outcome["acknowledged"], outcome["sent"], "{outcome}");
        assert_eq!(outcome["lost"], Value::Array(vec![]), "{outcome}");
        assert_eq!(outcome["repeated"], 0, "{outcome}");
        assert_eq!(outcome["in_order"], true, "{outcome}");
    }
}
