//! What Kafka promises its clients, as one suite with two arms.
#![cfg(feature = "real-kafka")]

use std::{
    io::{Read, Write},
    net::TcpStream,
};

use evenkeel_testkit::real_kafka::{BrokerSpec, Cluster, Kit, Listener};

mod real_arm {
    use super::*;

    #[tokio::test]
    async fn brokers_say_which_versions_they_speak() {
        let cluster = Cluster::start(Kit::from_env().unwrap(), &BrokerSpec::several(2)).await.unwrap();
        for id in [0, 1] {
            assert_eq!(api_versions(&cluster.address(id, Listener::Plaintext).await.unwrap()), 0);
        }
        cluster.add_broker(&BrokerSpec::new(5, "c")).await.unwrap();
        cluster.stop_broker(0).await.unwrap();
        cluster.kill_broker(1).await.unwrap();
        cluster.start_broker(0).await.unwrap();
        cluster.start_broker(1).await.unwrap();
        for id in [0, 1, 5] {
            assert_eq!(api_versions(&cluster.address(id, Listener::Plaintext).await.unwrap()), 0);
        }
        cluster.remove_broker(5).await.unwrap();
    }
}

/// Asks in version 0 and returns the error code of the answer.
fn api_versions(address: &str) -> i16 {
    let mut stream = TcpStream::connect(address).unwrap();
    // Length, key 18, version 0, correlation id 7, no client id.
    stream.write_all(&[0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 7, 0xff, 0xff]).unwrap();
    let mut answer = [0; 10];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(answer[4..8], [0, 0, 0, 7]);
    i16::from_be_bytes([answer[8], answer[9]])
}
