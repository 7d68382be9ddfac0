//! A small simulated Kafka with an engine beside it, which may be away and come back.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use evenkeel_engine::clock::WallClock;
use evenkeel_engine::config::capacity::Capacities;
use evenkeel_engine::config::properties::Properties;
use evenkeel_engine::config::settings::Settings;
use evenkeel_engine::engine::{Engine, Parts, Running};
use evenkeel_engine::notify::Courier;
use evenkeel_engine::serve::router;
use evenkeel_kafka::connect::{Connector, Opening, Stream};
use evenkeel_kafka::{Address, Client};
use evenkeel_sim::cluster::{BrokerSpec, DirSpec, NewTopic, Reassignment};
use evenkeel_sim::serve::{Pipes, World};
use evenkeel_sim::{BrokerId, Cluster, Options, TopicPartition};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::sleep;

const MB: u64 = 1_000_000;
const PARTITIONS: i32 = 12;

/// Bytes per second of a disk that can be watched while it copies.
const SLOW_DISK: f64 = 2e6;
/// Bytes per second of a link over which a partition takes twenty seconds.
const SLOW_LINK: f64 = 1e6;

/// How long an answer is on its way to an engine that is far.
const DISTANCE: Duration = Duration::from_millis(20);
/// How such an engine answers whoever asks for a plan: with a task at first.
const AT_ONCE: &str = "webserver.request.maxBlockTimeMs=1\n";

/// Dials like another, and what comes back takes its time.
#[derive(Debug)]
struct Far(Arc<dyn Connector>);

impl Connector for Far {
    fn open<'a>(&'a self, address: &'a Address) -> Opening<'a> {
        Box::pin(async move {
            let (mut answers, mut questions) = tokio::io::split(self.0.open(address).await?);
            let (near, far) = tokio::io::duplex(1 << 16);
            let (mut asked, mut answered) = tokio::io::split(far);
            tokio::spawn(async move { tokio::io::copy(&mut asked, &mut questions).await });
            tokio::spawn(async move {
                let mut some = [0; 1 << 14];
                while let Ok(read @ 1..) = answers.read(&mut some).await {
                    sleep(DISTANCE).await;
                    if answered.write_all(&some[..read]).await.is_err() {
                        return;
                    }
                }
            });
            Ok(Box::new(near) as Stream)
        })
    }

    fn is_private(&self) -> bool {
        self.0.is_private()
    }
}

/// Four brokers, and twelve partitions of 20 MB.
pub struct Brokers {
    pub world: World,
    pipes: Pipes,
    disks: usize,
    /// Whether every answer to the engine takes its time, and the engine says at once that it is at something.
    far: bool,
}

/// A disk of a broker of ours, by the number of its volume.
pub fn disk(broker: i32, volume: usize) -> String {
    format!("/var/lib/kafka/data-{volume}/kafka-log{broker}")
}

impl Brokers {
    /// All of them on brokers 0 and 1.
    pub fn new() -> Self {
        Self::of(1, |number| if number % 2 == 0 { [0, 1] } else { [1, 0] })
    }

    /// The same, all of them in one rack.
    pub fn in_one_rack() -> Self {
        let spec = |id| BrokerSpec { rack: Some("a".to_owned()), ..BrokerSpec::new(id) };
        Self::made_of(1, spec, |number| if number % 2 == 0 { [0, 1] } else { [1, 0] })
    }

    /// The same, and whatever is copied takes its time.
    pub fn over_slow_links() -> Self {
        let slow = |id| BrokerSpec { link_bytes: SLOW_LINK, ..BrokerSpec::new(id) };
        Self::made_of(1, slow, |number| if number % 2 == 0 { [0, 1] } else { [1, 0] })
    }

    /// The same with an engine that is far away from them, and waits for nothing before it says that it is at it.
    #[must_use]
    pub fn whose_engine_is_far(self) -> Self {
        Self { far: true, ..self }
    }

    /// Each broker has two disks, and its share of the partitions, all of them on the first.
    pub fn with_disks() -> Self {
        Self::of(2, |number| [number % 4, (number + 1) % 4])
    }

    /// Everybody has as much as the others, but only two lead.
    pub fn led_by_two() -> Self {
        Self::of(1, |number| if number % 2 == 0 { [0, 1] } else { [2, 3] })
    }

    fn of(disks: usize, replicas: impl Fn(i32) -> [i32; 2]) -> Self {
        let spec = |id| match disks {
            1 => BrokerSpec::new(id),
            _ => {
                let slow = |volume| DirSpec { disk_bytes: SLOW_DISK, ..DirSpec::new(&disk(id, volume)) };
                BrokerSpec { dirs: (0..disks).map(slow).collect(), ..BrokerSpec::new(id) }
            }
        };
        Self::made_of(disks, spec, replicas)
    }

    fn made_of(disks: usize, spec: impl Fn(i32) -> BrokerSpec, replicas: impl Fn(i32) -> [i32; 2]) -> Self {
        let options = Options { session_timeout: 2_000, ..Options::default() };
        let mut cluster = Cluster::new(options, (0..4).map(spec));
        let lists: Vec<[i32; 2]> = (0..PARTITIONS).map(replicas).collect();
        let slices: Vec<&[i32]> = lists.iter().map(<[i32; 2]>::as_slice).collect();
        cluster.create_topic(&NewTopic::manual("orders", &slices), false).unwrap();
        if disks > 1 {
            // As long as a replica is empty it goes to another disk at once.
            for (number, brokers) in (0..).zip(&lists) {
                for id in brokers {
                    let partition = TopicPartition::new("orders", number);
                    cluster.alter_replica_log_dir(BrokerId(*id), &partition, &disk(*id, 0)).unwrap();
                }
            }
            cluster.tick(1_000);
        }
        for number in 0..PARTITIONS {
            cluster.fill(&TopicPartition::new("orders", number), 20 * MB);
        }
        cluster.tick(1_000);
        let world = World::new(cluster);
        Self { pipes: Pipes::new(world.clone()), world, disks, far: false }
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

    /// Somebody moves all partitions of `orders` to these brokers.
    pub fn reassign(&self, to: [i32; 2]) {
        self.reassign_first(PARTITIONS, to);
    }

    /// Somebody moves so many partitions of `orders` to these brokers.
    pub fn reassign_first(&self, partitions: i32, to: [i32; 2]) {
        let line = |number| Reassignment {
            partition: TopicPartition::new("orders", number),
            target: Some(to.map(BrokerId).to_vec()),
        };
        let lines: Vec<Reassignment> = (0..partitions).map(line).collect();
        self.world.with(|cluster| cluster.alter_reassignments(&lines, false)).into_iter().for_each(Result::unwrap);
    }

    /// Whether nothing is being moved, by anybody.
    pub fn are_at_rest(&self) -> bool {
        self.world.look(|cluster| cluster.list_reassignments(None).is_empty())
    }

    /// How many partitions of `orders` each broker leads.
    pub fn led(&self) -> BTreeMap<i32, usize> {
        let mut led = BTreeMap::new();
        self.world.look(|cluster| {
            for number in 0..PARTITIONS {
                let leader = cluster.registration("orders", number).unwrap().leader.expect("a leader");
                *led.entry(leader.0).or_default() += 1;
            }
        });
        led
    }

    /// How many replicas of `orders` lie on each disk of a broker.
    pub fn on_disks(&self, broker: i32) -> Vec<usize> {
        let dirs = self.world.look(|cluster| cluster.describe_log_dirs(BrokerId(broker), None));
        let count = |volume| {
            let dir = dirs.iter().find(|dir| dir.path == disk(broker, volume)).expect("a disk");
            dir.replicas.iter().filter(|it| &*it.partition.topic == "orders" && !it.is_future).count()
        };
        (0..self.disks).map(count).collect()
    }

    /// What the engine is told of the disks of a broker.
    fn room(&self, broker: i32) -> String {
        let of_each = |volume| format!(r#""{}": "50000""#, disk(broker, volume));
        match self.disks {
            1 => r#""100000""#.to_owned(),
            disks => format!("{{{}}}", (0..disks).map(of_each).collect::<Vec<_>>().join(", ")),
        }
    }

    fn client(&self) -> Client {
        let bootstrap = (0..4).map(|id| self.pipes.address(BrokerId(id))).collect();
        let pipes = Arc::new(self.pipes.connector());
        let way: Arc<dyn Connector> = if self.far { Arc::new(Far(pipes)) } else { pipes };
        Client::new(way, evenkeel_kafka::Settings::new(bootstrap))
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
        let text = if self.far { format!("{text}{AT_ONCE}") } else { text.to_owned() };
        let settings = Settings::read(&Properties::read(&text, |_| None).unwrap()).unwrap().settings;
        let rest = r#""CPU": {"num.cores": "8"}, "NW_IN": "100000", "NW_OUT": "100000""#;
        let capacity = |id| format!(r#"{{"brokerId": "{id}", "capacity": {{"DISK": {}, {rest}}}}}"#, self.room(id));
        let capacities = (0..4).map(capacity).collect::<Vec<_>>().join(", ");
        let capacities = format!(r#"{{"brokerCapacities": [{capacities}]}}"#);
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
