//! A small simulated cluster, what is to be done on it, and how it must be afterwards.
#![allow(unreachable_pub, reason = "a test binary has no outside")]

use std::{collections::BTreeMap, sync::Arc};

use evenkeel_engine::{
    clock::WallClock,
    config::{properties::Properties, settings as engine_settings, webserver::Webserver},
    executor::{DirMove, Executor, Limits, Move, Order},
    journal::Run,
    tasks::UserTask,
};
use evenkeel_kafka::{BrokerId, Client, Settings, TopicPartition};
use evenkeel_sim::{
    Cluster, Options,
    cluster::{BrokerSpec, Fault, NewTopic, Registration, Resource},
    serve::{Pipes, World},
};
use uuid::Uuid;

pub const MB: u64 = 1_000_000;

/// The directories of each broker.
pub const DIRS: [&str; 2] = ["/d0", "/d1"];

/// A partition of `orders` of so many bytes, and where it is to go; the first of each lead.
pub fn mv<const N: usize>(number: i32, old: [i32; N], new: [i32; N], bytes: u64) -> Move {
    Move {
        partition: TopicPartition::new("orders", number),
        old: old.map(BrokerId).to_vec(),
        new: new.map(BrokerId).to_vec(),
        old_leader: BrokerId(old[0]),
        dirs: Vec::new(),
        bytes,
    }
}

/// Twelve partitions of 20 MB on brokers 0 and 1; each gives a replica or its lead to 2 or 3, and of some the replica
/// that stays goes to another directory, or the one that comes is to lie in a certain one.
pub fn moves() -> Vec<Move> {
    let lists = |number: i32| match number % 4 {
        0 => ([0, 1], [2, 3], vec![comes(2, DIRS[1])]),
        1 => ([1, 0], [3, 0], vec![changes(0)]),
        2 => ([0, 1], [1, 0], Vec::new()),
        _ => ([1, 0], [1, 2], vec![changes(1), comes(2, DIRS[0])]),
    };
    (0..12)
        .map(|number| {
            let (old, new, dirs) = lists(number);
            Move { dirs, ..mv(number, old, new, 20 * MB) }
        })
        .collect()
}

/// A replica that comes to a broker is to lie in this directory.
pub fn comes(broker: i32, to: &str) -> DirMove {
    DirMove { broker: BrokerId(broker), from: None, to: to.to_owned() }
}

/// A replica that stays on its broker goes to the other directory.
pub fn changes(broker: i32) -> DirMove {
    let [from, to] = DIRS.map(str::to_owned);
    DirMove { broker: BrokerId(broker), from: Some(from), to }
}

/// All of them, a few at a time.
pub fn run() -> Run {
    let mut run = run_of(moves());
    run.order.limits = Limits { per_broker: 3, in_cluster: 4, ..Limits::default() };
    run
}

/// These, held back to 20 MB/s.
pub fn run_of(moves: Vec<Move>) -> Run {
    let order = Order { throttle: Some(20 * MB), ..Order::of(moves, (0..4).map(BrokerId).collect()) };
    Run { id: Uuid::from_u128(1), task: None, reason: "a test".to_owned(), proposal: "p".to_owned(), order }
}

/// The settings of an engine, with these further lines of its file.
pub fn settings(more: &str) -> engine_settings::Settings {
    let properties = Properties::read(&format!("bootstrap.servers=sim:9000\n{more}"), |_| None).unwrap();
    engine_settings::Settings::read(&properties).unwrap().settings
}

/// Where requests are taken: any free port of this machine.
pub fn local() -> Webserver {
    settings("webserver.http.port=0\nwebserver.accesslog.enabled=false\n").webserver
}

/// Waits until nothing is under way.
pub async fn idle(executor: &Executor) {
    executor.is_running().wait_for(|running| !running).await.expect("the executor lives");
}

pub struct Stage {
    pub world: World,
    pub pipes: Pipes,
    moves: Vec<Move>,
}

impl Stage {
    pub fn new() -> Stage {
        Stage::with_session_timeout(2_000)
    }

    /// Who is not heard of for so long is down.
    pub fn with_session_timeout(session_timeout: i64) -> Stage {
        Stage::of(moves(), session_timeout)
    }

    /// Before these moves of partitions of `orders`, in their order.
    pub fn of(moves: Vec<Move>, session_timeout: i64) -> Stage {
        Stage::on((0..4).map(|id| BrokerSpec::new(id).with_dirs(DIRS)), moves, session_timeout)
    }

    pub fn on(brokers: impl IntoIterator<Item = BrokerSpec>, moves: Vec<Move>, session_timeout: i64) -> Stage {
        Stage::with(Options { session_timeout, ..Options::default() }, brokers, moves)
    }

    pub fn with(options: Options, brokers: impl IntoIterator<Item = BrokerSpec>, moves: Vec<Move>) -> Stage {
        let mut cluster = Cluster::new(options, brokers);
        let lists: Vec<Vec<i32>> = moves.iter().map(|mv| mv.old.iter().map(|id| id.0).collect()).collect();
        let lists: Vec<&[i32]> = lists.iter().map(Vec::as_slice).collect();
        cluster.create_topic(&NewTopic::manual("orders", &lists), false).unwrap();
        // Where a replica is that changes its directory must be known; as long as it is empty it goes there at once.
        for (mv, dir) in moves.iter().flat_map(|mv| mv.dirs.iter().map(move |dir| (mv, dir))) {
            if let Some(from) = &dir.from {
                let partition = evenkeel_sim::TopicPartition::new("orders", mv.partition.partition);
                // Brokers of a test's own may have other directories, and then these mean nothing to it.
                let _ = cluster.alter_replica_log_dir(evenkeel_sim::BrokerId(dir.broker.0), &partition, from);
            }
        }
        cluster.tick(1_000);
        for mv in &moves {
            cluster.fill(&evenkeel_sim::TopicPartition::new("orders", mv.partition.partition), mv.bytes);
        }
        cluster.tick(1_000);
        let world = World::new(cluster);
        Stage { pipes: Pipes::new(world.clone()), world, moves }
    }

    pub fn client(&self) -> Client {
        let bootstrap = (0..4).map(|id| self.pipes.address(evenkeel_sim::BrokerId(id))).collect();
        Client::new(Arc::new(self.pipes.connector()), Settings::new(bootstrap))
    }

    /// Cuts the network to all brokers, or mends it.
    pub fn cut(&self, cut: bool) {
        let all = (0..4).map(evenkeel_sim::BrokerId);
        let fault = |id| if cut { Fault::CutLink(id) } else { Fault::MendedLink(id) };
        self.world.with(|cluster| all.for_each(|id| cluster.suffer(&fault(id))));
    }

    pub fn clock(&self) -> WallClock {
        WallClock::starting_at(self.world.look(|cluster| cluster.wall_clock()))
    }

    /// One life of an executor that reaches the brokers through this client.
    pub async fn executor_over(&self, client: Client) -> (Executor, BTreeMap<Uuid, UserTask>) {
        Executor::open(client, &settings("").executor, self.clock(), |_| {}).await
    }

    pub async fn executor(&self) -> Executor {
        self.executor_over(self.client()).await.0
    }

    pub fn registrations(&self) -> Vec<Registration> {
        let numbers = 0..self.moves.len() as i32;
        self.world
            .look(|cluster| numbers.map(|number| cluster.registration("orders", number).unwrap().clone()).collect())
    }

    /// Everything is as planned, nothing moves, and nothing is held back.
    pub fn assert_done(&self, what: &str) {
        for (mv, record) in self.moves.iter().zip(self.registrations()) {
            let replicas: Vec<BrokerId> = record.replicas.iter().map(|id| BrokerId(id.0)).collect();
            assert_eq!(replicas, mv.new, "{what}: {}", mv.partition);
            assert_eq!(record.leader.map(|id| BrokerId(id.0)), mv.new.first().copied(), "{what}: {}", mv.partition);
        }
        let dirs = self.dirs();
        for (mv, dir) in self.moves.iter().flat_map(|mv| mv.dirs.iter().map(move |dir| (mv, dir))) {
            let lies = dirs.get(&(dir.broker.0, mv.partition.partition));
            assert_eq!(lies, Some(&dir.to), "{what}: {} on broker {}", mv.partition, dir.broker);
        }
        self.assert_at_rest(what);
    }

    /// In which directory each replica of `orders` lies, by broker and partition. None is on its way to another.
    pub fn dirs(&self) -> BTreeMap<(i32, i32), String> {
        let mut dirs = BTreeMap::new();
        for id in 0..4 {
            let seen = self.world.look(|cluster| cluster.describe_log_dirs(evenkeel_sim::BrokerId(id), None));
            for (path, replica) in
                seen.into_iter().flat_map(|dir| dir.replicas.into_iter().map(move |it| (dir.path.clone(), it)))
            {
                if &*replica.partition.topic == "orders" {
                    assert!(!replica.is_future, "{} is still being copied to {path} of {id}", replica.partition);
                    dirs.insert((id, replica.partition.partition), path);
                }
            }
        }
        dirs
    }

    pub fn assert_at_rest(&self, what: &str) {
        self.world.look(|cluster| {
            assert_eq!(cluster.list_reassignments(None), [], "{what}");
            let ids = || (0..4).map(evenkeel_sim::BrokerId);
            let brokers = ids().map(|id| (id, Resource::Broker(id)));
            let topic = (evenkeel_sim::BrokerId(0), Resource::Topic("orders".to_owned()));
            for (asked, resource) in brokers.chain([topic]) {
                let settings = cluster.describe_configs(asked, &resource).unwrap();
                let left: Vec<_> = settings.iter().filter(|it| it.name.contains("throttled.")).collect();
                let set =
                    |it: &&&evenkeel_sim::cluster::ConfigEntry| it.value.as_deref().is_some_and(|it| !it.is_empty());
                assert_eq!(left.iter().filter(set).count(), 0, "{what}: {left:?}");
            }
        });
    }
}
