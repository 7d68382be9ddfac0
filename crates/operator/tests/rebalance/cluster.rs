//! A small simulated Kafka with an engine beside it, which may be away and come back.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Router;
use evenkeel_engine::clock::WallClock;
use evenkeel_engine::config::capacity::Capacities;
use evenkeel_engine::config::properties::Properties;
use evenkeel_engine::config::settings::Settings;
use evenkeel_engine::engine::{Engine, Parts, Running};
use evenkeel_engine::notify::Courier;
use evenkeel_engine::serve::router;
use evenkeel_kafka::Client;
use evenkeel_sim::cluster::{BrokerSpec, NewTopic};
use evenkeel_sim::serve::{Pipes, World};
use evenkeel_sim::{BrokerId, Cluster, Options, TopicPartition};

const MB: u64 = 1_000_000;
const PARTITIONS: i32 = 12;

/// Four brokers; twelve partitions of 20 MB, all of them on brokers 0 and 1.
pub struct Brokers {
    pub world: World,
    pipes: Pipes,
}

impl Brokers {
    pub fn new() -> Self {
        let options = Options { session_timeout: 2_000, ..Options::default() };
        let mut cluster = Cluster::new(options, (0..4).map(BrokerSpec::new));
        let lists: Vec<[i32; 2]> =
            (0..PARTITIONS).map(|number| if number % 2 == 0 { [0, 1] } else { [1, 0] }).collect();
        let lists: Vec<&[i32]> = lists.iter().map(<[i32; 2]>::as_slice).collect();
        cluster.create_topic(&NewTopic::manual("orders", &lists), false).unwrap();
        for number in 0..PARTITIONS {
            cluster.fill(&TopicPartition::new("orders", number), 20 * MB);
        }
        cluster.tick(1_000);
        let world = World::new(cluster);
        Self { pipes: Pipes::new(world.clone()), world }
    }

    /// Milliseconds since 1970, as the brokers see it.
    pub fn wall_clock(&self) -> i64 {
        self.world.look(|cluster| cluster.wall_clock())
    }

    /// Brokers that hold something of `orders`.
    pub fn holders(&self) -> BTreeSet<i32> {
        self.world.look(|cluster| {
            let records = (0..PARTITIONS).map(|number| cluster.registration("orders", number).unwrap());
            records.flat_map(|record| record.replicas.iter().map(|id| id.0)).collect()
        })
    }

    fn client(&self) -> Client {
        let bootstrap = (0..4).map(|id| self.pipes.address(BrokerId(id))).collect();
        Client::new(Arc::new(self.pipes.connector()), evenkeel_kafka::Settings::new(bootstrap))
    }

    /// An engine for them; dropped, it does nothing more.
    pub fn engine(&self) -> (Router, Running) {
        let text = "bootstrap.servers=sim:9000\n\
                    metric.sampling.interval.ms=5000\n\
                    partition.metrics.window.ms=10000\n\
                    min.samples.per.partition.metrics.window=1\n\
                    partition.sample.store.topic.partition.count=2\n\
                    broker.sample.store.topic.partition.count=2\n\
                    default.replication.throttle=5000000\n";
        let settings = Settings::read(&Properties::read(text, |_| None).unwrap()).unwrap().settings;
        let capacity = r#"{"DISK": "100000", "CPU": {"num.cores": "8"}, "NW_IN": "100000", "NW_OUT": "100000"}"#;
        let capacities = format!(r#"{{"brokerCapacities": [{{"brokerId": "-1", "capacity": {capacity}}}]}}"#);
        let parts = Parts {
            client: self.client(),
            settings: Arc::new(settings),
            capacities: Arc::new(Capacities::read(&capacities).unwrap()),
            courier: Courier::silent(),
            clock: WallClock::starting_at(self.wall_clock()),
        };
        let running = Engine::start(parts).unwrap();
        (router(running.door()), running)
    }
}
