//! Clusters with very many partitions: read and altered in many small requests, never in a giant one.

use std::{
    collections::BTreeMap,
    io,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use evenkeel_kafka::{
    Address, BrokerId, Client, Settings, TopicPartition,
    calls::{
        elections::Election,
        reassignments::Target,
        topics::{Layout, NewTopic, Partition, Which},
    },
    connect::{Connector, Opening, Stream},
};
use evenkeel_testkit::real_kafka::Listener;
use kafka_protocol::messages::ApiKey;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::world::{PATIENCE, World, eventually, ids};

promises_on_own_brokers!(3: a_large_cluster_is_read_and_altered_in_small_requests);

/// Partitions of one topic, and topics. Real brokers share a small machine, and each partition is a folder with files.
const PARTITIONS: usize = 2_000;
const TOPICS: usize = 100;
const REAL_PARTITIONS: usize = 100;
const REAL_TOPICS: usize = 2;
/// The longest frame either side may send. All of it at once would be ten times as much.
const CAP: usize = 512 * 1024;

async fn a_large_cluster_is_read_and_altered_in_small_requests(world: &World) {
    let (topics, partitions) =
        if world.brokers.are_real() { (REAL_TOPICS, REAL_PARTITIONS) } else { (TOPICS, PARTITIONS) };
    let sent = Arc::new(Sent::default());
    let metered = Arc::new(Metered { connector: world.brokers.connector(), sent: Arc::clone(&sent) });
    let bootstrap = world.brokers.bootstrap(Listener::Plaintext);
    // Few enough at once that there are several pages and pieces in either arm.
    let partitions_at_once = if world.brokers.are_real() { 25 } else { 1000 };
    let settings = Settings { patience: PATIENCE, frame_cap: CAP, partitions_at_once, ..Settings::new(bootstrap) };
    let client = Client::new(metered, settings);

    for nth in 0..topics {
        let name = world.name(&format!("topic-{nth:03}"));
        let layout = Layout::Manual(vec![ids(&[0, 1]); partitions]);
        let topic = NewTopic { name: name.clone(), layout, configs: BTreeMap::new() };
        let made = client.create_topics(&[topic], false).await.whole().expect("an answer");
        assert_eq!(made, BTreeMap::from([(name, Ok(()))]));
    }
    // One that will stand still among all those that move on at once.
    let stalled = TopicPartition::new(world.stalled_topic(&[&[0, 1]]).await, 0);
    let all = everywhere(&client, topics * partitions + 1, |_| true).await;

    // To other replicas, in another order.
    let targets = all.iter().map(|one| (one.clone(), Target::Replicas(ids(&[2, 0])))).collect();
    let changes = client.alter_reassignments(&targets, false).await;
    assert!(changes.interrupted.is_none(), "{:?}", changes.interrupted);
    assert!(changes.answers.len() == all.len() && changes.answers.values().all(Result::is_ok));
    eventually("one is under way", async || {
        let under_way = client.list_reassignments(Some(&all)).await.expect("an answer");
        assert!(under_way.contains_key(&stalled) && under_way.values().all(|one| one.adding == ids(&[2])));
        (under_way.len() == 1).then_some(())
    })
    .await;
    world.release(&stalled.topic).await;
    let moved = everywhere(&client, all.len(), |one| one.replicas == ids(&[2, 0]) && one.in_sync.len() == 2).await;

    // The leader has stayed, and is not the first any more.
    let elected = client.elect_leaders(Election::Preferred, &moved).await;
    assert!(elected.interrupted.is_none(), "{:?}", elected.interrupted);
    assert!(elected.answers.len() == all.len() && elected.answers.values().all(Result::is_ok));
    everywhere(&client, all.len(), |one| one.leader == Some(BrokerId(2))).await;
    let dirs = client.describe_log_dirs(BrokerId(2), Some(&all)).await.expect("an answer");
    let held: usize = dirs.dirs.values().flatten().map(|dir| dir.replicas.len()).sum();
    assert_eq!(held, all.len());

    let longest = sent.longest.load(Ordering::Relaxed);
    assert!(longest <= CAP, "a request of {longest} bytes");
    for call in [
        ApiKey::DescribeTopicPartitions,
        ApiKey::AlterPartitionReassignments,
        ApiKey::ListPartitionReassignments,
        ApiKey::ElectLeaders,
        ApiKey::DescribeLogDirs,
    ] {
        let requests = sent.requests.lock().unwrap().get(&(call as i16)).copied().unwrap_or(0);
        assert!(requests >= 4, "{call:?} in {requests} pieces");
    }
}

/// All partitions, once they are all there and as they should be in the eyes of whoever is asked.
async fn everywhere(client: &Client, count: usize, holds: impl Fn(&Partition) -> bool) -> Vec<TopicPartition> {
    eventually("all partitions are as they should be", async || {
        let topics = client.topics(Which::All).await.expect("an answer");
        let topics = topics.values().flatten();
        let found = topics.flat_map(|topic| topic.partitions.iter().map(move |one| (&topic.name, one)));
        let as_wished = found.filter(|(_, one)| holds(one)).map(|(name, one)| TopicPartition::new(name, one.index));
        Some(as_wished.collect::<Vec<_>>()).filter(|found| found.len() == count)
    })
    .await
}

/// The longest frame that was sent, and how many requests of each kind: the client writes each with one call.
#[derive(Debug, Default)]
struct Sent {
    longest: AtomicUsize,
    requests: Mutex<BTreeMap<i16, usize>>,
}

impl Sent {
    fn count(&self, frame: &[u8]) {
        self.longest.fetch_max(frame.len(), Ordering::Relaxed);
        // Behind the length.
        if let Some(key) = frame.get(4..6).and_then(|bytes| bytes.first_chunk()) {
            *self.requests.lock().unwrap().entry(i16::from_be_bytes(*key)).or_default() += 1;
        }
    }
}

#[derive(Debug)]
struct Metered {
    connector: Arc<dyn Connector>,
    sent: Arc<Sent>,
}

impl Connector for Metered {
    fn open<'a>(&'a self, address: &'a Address) -> Opening<'a> {
        Box::pin(async move {
            let stream = self.connector.open(address).await?;
            Ok(Box::new(MeteredStream { stream, sent: Arc::clone(&self.sent) }) as Stream)
        })
    }
}

struct MeteredStream {
    stream: Stream,
    sent: Arc<Sent>,
}

impl AsyncRead for MeteredStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, into)
    }
}

impl AsyncWrite for MeteredStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.sent.count(bytes);
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
