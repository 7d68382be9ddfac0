//! Real data on real brokers: what was approved is carried out, though the engine dies half way; a broker is emptied,
//! stopped in the middle and emptied again. Nothing is lost, and nothing is left behind.
//!
//! The brokers have no metrics reporter, so the engine knows them from outside: by offsets and the sizes of directories.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use bytes::Bytes;
use evenkeel_kafka::{
    Client, TopicPartition,
    calls::{
        configs::Resource,
        offsets::Isolation,
        produce::Writing,
        topics::{Layout, NewTopic, Which},
    },
    records::{self, BatchOptions, Compression, Producer, Record},
    topic::{Start, TopicReader, Until},
};
use evenkeel_rest::{
    body::state::Phase,
    parameter::{TaskStatus, TopicPattern},
    request::{Rebalance, RemoveBroker, RemoveDisks, StopProposalExecution},
};
use evenkeel_testkit::real_kafka::{BrokerSpec, Cluster, Kit, Listener};
use tokio::time::{Instant, sleep};

use crate::life::{Life, PATIENCE};

const TOPIC: &str = "freight";
const PARTITIONS: i32 = 12;
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
    load_freight(&kafka).await;
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
    let held = held_by(&kafka, |topic| topic == TOPIC).await;
    assert!(BROKERS.iter().all(|id| held.contains_key(id)), "{held:?}");
    at_rest(&kafka).await;

    // A broker is being emptied; somebody changes their mind, and changes it again.
    life.answers(&removal()).await;
    life.until("it runs", |phase| matches!(phase, Phase::InterBroker(_))).await;
    life.answers(&StopProposalExecution::default()).await;
    life.until("it is stopped", |phase| *phase == Phase::Idle).await;
    at_rest(&kafka).await;
    assert!(held_by(&kafka, |_| true).await.contains_key(&3), "a stop leaves what has not begun");
    life.answers(&removal()).await;
    life.until("it is over", |phase| *phase == Phase::Idle).await;
    at_rest(&kafka).await;
    let held = held_by(&kafka, |_| true).await;
    assert!(!held.contains_key(&3), "something is left on a broker that was emptied: {held:?}");
    all_freight_is_there(&kafka).await;
    drop(life);
    directories_are_emptied_and_filled(&kafka, &bootstrap).await;
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
    all_freight_is_there(kafka).await;
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
async fn load_freight(kafka: &Client) {
    let pair = |number: i32| [[0, 1], [1, 0]][number as usize % 2].map(evenkeel_kafka::BrokerId).to_vec();
    let layout = Layout::Manual((0..PARTITIONS).map(pair).collect());
    let topic = NewTopic { name: TOPIC.to_owned(), layout, configs: BTreeMap::new() };
    let made = kafka.create_topics(&[topic], false).await.whole().unwrap();
    assert!(made[TOPIC].is_ok(), "{made:?}");
    for number in 0..RECORDS {
        let batches = (0..PARTITIONS).map(|index| (TopicPartition::new(TOPIC, index), batch(index, number)));
        let batches: BTreeMap<TopicPartition, Bytes> = batches.collect();
        let written = kafka.produce(&batches, Writing::Plain).await.unwrap();
        assert!(written.values().all(Result::is_ok), "{written:?}");
    }
}

fn batch(partition: i32, number: usize) -> Bytes {
    let value = Bytes::from(vec![number as u8; RECORD_BYTES]);
    let key = Some(Bytes::from(format!("{partition}/{number}")));
    let record = Record { key, value: Some(value), ..Record::default() };
    let producer = Producer { id: -1, epoch: -1, sequence: -1 };
    let options = BatchOptions { compression: Compression::None, producer, transactional: false };
    records::encode_batch(&[record], &options).expect("a batch")
}

/// Every record that was written, once.
async fn all_freight_is_there(kafka: &Client) {
    let mut reader =
        TopicReader::open(kafka.clone(), TOPIC, &Start::Earliest, Until::End, Isolation::Committed).await.unwrap();
    let mut keys: Vec<String> = Vec::new();
    while let Some(records) = reader.next().await.unwrap() {
        for record in records {
            let record = record.stored.record;
            assert_eq!(record.value.map(|value| value.len()), Some(RECORD_BYTES));
            keys.push(String::from_utf8(record.key.expect("a key").to_vec()).expect("letters"));
        }
    }
    assert_eq!(keys.len(), RECORDS * PARTITIONS as usize);
    assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), keys.len());
}

/// How many replicas each broker holds of topics that are meant.
async fn held_by(kafka: &Client, is_meant: impl Fn(&str) -> bool) -> BTreeMap<i32, usize> {
    let mut held = BTreeMap::new();
    for topic in kafka.topics(Which::All).await.unwrap().into_values().flatten().filter(|topic| is_meant(&topic.name)) {
        for id in topic.partitions.iter().flat_map(|partition| &partition.replicas) {
            *held.entry(id.0).or_default() += 1;
        }
    }
    held
}

/// Nothing moves, nothing is held back, and everybody is in sync.
async fn at_rest(kafka: &Client) {
    assert!(kafka.list_reassignments(None).await.unwrap().is_empty());
    let brokers = BROKERS.map(|id| Resource::Broker(evenkeel_kafka::BrokerId(id)));
    let resources: Vec<Resource> = brokers.into_iter().chain([Resource::Topic(TOPIC.to_owned())]).collect();
    for (resource, settings) in kafka.describe_configs(&resources, None).await.whole().unwrap() {
        for (name, setting) in settings.unwrap() {
            let throttles = name.contains(".replication.throttled.");
            let is_default =
                setting.value.as_deref().is_none_or(|value| value.is_empty() || value == i64::MAX.to_string());
            assert!(!throttles || is_default, "{resource:?} has {name} {:?}", setting.value);
        }
    }
    until("everybody is in sync", async || {
        let topics = kafka.topics(Which::All).await.unwrap();
        let mut partitions = topics.values().flatten().flat_map(|topic| &topic.partitions);
        partitions.all(|partition| partition.in_sync.len() == partition.replicas.len())
    })
    .await;
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
