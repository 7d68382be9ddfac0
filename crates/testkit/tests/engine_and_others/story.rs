//! Real data on real brokers: what was approved is carried out, though the engine dies half way; a broker is emptied,
//! stopped in the middle and emptied again. Nothing is lost, and nothing is left behind.
//!
//! The brokers have no metrics reporter, so the engine knows them from outside: by offsets and the sizes of directories.

use std::{collections::BTreeMap, time::Duration};

use evenkeel_kafka::Client;
use evenkeel_rest::{
    body::state::Phase,
    parameter::{TaskStatus, TopicPattern},
    request::{Rebalance, RemoveBroker, RemoveDisks, StopProposalExecution},
};
use evenkeel_testkit::{
    freight::{self, Freight},
    real_kafka::{BrokerSpec, Cluster, Kit, Listener},
};
use tokio::time::{Instant, sleep};

use crate::life::{Life, PATIENCE};

const TOPIC: &str = "freight";
const PARTITIONS: usize = 12;
/// Of each partition: 2 MB together.
const RECORDS: usize = 40;
const RECORD_BYTES: usize = 50_000;
/// Slow enough that the engine dies in the middle, for a replica of this takes a second.
const THROTTLE: &str = "default.replication.throttle=2000000\n";
const BROKERS: [i32; 4] = [0, 1, 2, 3];

pub(crate) async fn data_is_moved_as_approved() {
    let cluster = Cluster::start(Kit::from_env().unwrap(), &BrokerSpec::several(4)).await.unwrap();
    let bootstrap = cluster.bootstrap(Listener::Plaintext);
    let kafka = client(&bootstrap);
    let freight = load_freight(&kafka).await;
    let live = || Life::begin(&bootstrap, &BROKERS, THROTTLE);

    // Seen, approved, begun; then the engine is gone.
    let life = live().await;
    let (seen, _) = life.answers(&spread()).await;
    let moves = seen.summary.num_replica_movements;
    assert!(moves > 0, "{:?}", seen.summary);
    let mut approved = spread();
    approved.execution.run.dryrun = false;
    approved.execution.run.proposal_id = seen.summary.proposal_id;
    let (begun, task) = life.answers(&approved).await;
    assert_eq!(begun.summary.num_replica_movements, moves);
    let task = task.expect("a task has a name");
    until("something moves", async || !kafka.list_reassignments(None).await.unwrap().is_empty()).await;
    drop(life);

    let life = live().await;
    life.until("it is over", |phase| *phase == Phase::Idle).await;
    assert_eq!(life.status_of(task).await, Some(TaskStatus::Completed));
    let held = freight::held_by(&kafka, |topic| topic == TOPIC).await.unwrap();
    assert!(BROKERS.iter().all(|id| held.contains_key(id)), "{held:?}");
    at_rest(&kafka).await;

    // A broker is being emptied; somebody changes their mind, and changes it again.
    life.answers(&removal()).await;
    life.until("it runs", |phase| matches!(phase, Phase::InterBroker(_))).await;
    life.answers(&StopProposalExecution::default()).await;
    life.until("it is stopped", |phase| *phase == Phase::Idle).await;
    at_rest(&kafka).await;
    assert!(freight::held_by(&kafka, |_| true).await.unwrap().contains_key(&3), "a stop leaves what has not begun");
    life.answers(&removal()).await;
    life.until("it is over", |phase| *phase == Phase::Idle).await;
    at_rest(&kafka).await;
    let held = freight::held_by(&kafka, |_| true).await.unwrap();
    assert!(!held.contains_key(&3), "something is left on a broker that was emptied: {held:?}");
    freight.is_whole().await.unwrap();
    drop(life);
    directories_are_emptied_and_filled(&kafka, &bootstrap).await;
    freight.is_whole().await.unwrap();
}

/// One of broker 0's directories is emptied, and then both are evened out.
async fn directories_are_emptied_and_filled(kafka: &Client, bootstrap: &str) {
    let mut rooms = BTreeMap::new();
    for id in BROKERS {
        let room = |path: &String| format!(r#""{path}": "50000""#);
        let paths: Vec<String> = crowd(kafka, id).await.keys().map(room).collect();
        rooms.insert(id, format!("{{{}}}", paths.join(", ")));
    }
    let life = Life::begin_with(bootstrap, &rooms, "").await;
    let before = crowd(kafka, 0).await;
    let (full, _) = before.iter().max_by_key(|(_, replicas)| **replicas).expect("it has directories");
    assert!(before[full] > 0, "{before:?}");
    let mut emptied =
        RemoveDisks { brokerid_and_logdirs: [(0, [full.clone()].into())].into(), ..RemoveDisks::default() };
    emptied.run.dryrun = false;
    let (begun, task) = life.answers(&emptied).await;
    assert_eq!(begun.summary.num_intra_broker_replica_movements as usize, before[full]);
    life.until("it is over", |phase| *phase == Phase::Idle).await;
    assert_eq!(life.status_of(task.expect("a task has a name")).await, Some(TaskStatus::Completed));
    let after = crowd(kafka, 0).await;
    assert_eq!((after[full], after.values().sum::<usize>()), (0, before.values().sum()), "{after:?}");

    let mut evened = Rebalance::default();
    evened.scope.rebalance_disk = true;
    evened.execution.run.dryrun = false;
    let (begun, _) = life.answers(&evened).await;
    assert!(begun.summary.num_intra_broker_replica_movements > 0, "{:?}", begun.summary);
    life.until("it is over", |phase| *phase == Phase::Idle).await;
    assert!(crowd(kafka, 0).await[full] > 0);
    at_rest(kafka).await;
}

/// How many replicas each directory of a broker holds. None is on its way to another.
async fn crowd(kafka: &Client, broker: i32) -> BTreeMap<String, usize> {
    let dirs = kafka.describe_log_dirs(evenkeel_kafka::BrokerId(broker), None).await.unwrap().dirs;
    let count = |(path, dir): (String, Result<evenkeel_kafka::calls::log_dirs::LogDir, _>)| {
        let replicas = dir.expect("a directory that works").replicas;
        assert!(replicas.values().all(|replica| !replica.future), "{path}: {replicas:?}");
        (path, replicas.len())
    };
    dirs.into_iter().map(count).collect()
}

fn client(bootstrap: &str) -> Client {
    let addresses = bootstrap.split(',').map(|address| address.parse().expect("an address")).collect();
    Client::new(std::sync::Arc::new(evenkeel_kafka::connect::Tcp), evenkeel_kafka::Settings::new(addresses))
}

/// Two replicas of everything, on brokers 0 and 1.
async fn load_freight(kafka: &Client) -> Freight {
    let pairs: [&[i32]; 2] = [&[0, 1], &[1, 0]];
    let lists: Vec<&[i32]> = pairs.into_iter().cycle().take(PARTITIONS).collect();
    let freight = Freight::new(kafka, TOPIC, &lists, RECORD_BYTES).await.unwrap();
    freight.write(RECORDS).await.unwrap();
    freight
}

/// Nothing moves, nothing is held back, and everybody is in sync.
async fn at_rest(kafka: &Client) {
    assert!(kafka.list_reassignments(None).await.unwrap().is_empty());
    assert_eq!(freight::throttles(kafka, &BROKERS).await.unwrap(), [""; 0]);
    until("everybody is in sync", async || freight::is_settled(kafka).await.unwrap()).await;
}

async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds().await {
        assert!(Instant::now() < deadline, "never: {what}");
        sleep(Duration::from_millis(50)).await;
    }
}

/// Only counts matter here, so that every run is the same.
fn spread() -> Rebalance {
    let mut asked = Rebalance::default();
    asked.goal_options.goals = goals();
    // Where the engine's own topics lie is chance.
    asked.goal_options.excluded_topics = Some(TopicPattern::new("__.*").expect("a pattern"));
    asked.execution.skip_hard_goal_check = true;
    asked
}

fn removal() -> RemoveBroker {
    let mut asked = RemoveBroker { brokerid: [3].into(), ..RemoveBroker::default() };
    asked.goal_options.goals = goals();
    asked.execution.skip_hard_goal_check = true;
    asked.execution.run.dryrun = false;
    asked
}

fn goals() -> Vec<String> {
    ["ReplicaDistributionGoal", "LeaderReplicaDistributionGoal"].map(str::to_owned).to_vec()
}
