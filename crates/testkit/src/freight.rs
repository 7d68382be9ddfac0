//! Records of which a test knows every one, so that it sees what was lost or doubled; and where data lies on brokers.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, UNIX_EPOCH},
};

use anyhow::{Context, Result, ensure};
use evenkeel_kafka::{
    BrokerId, Client, TopicPartition,
    calls::{
        configs::Resource,
        offsets::{Isolation, Place},
        topics::{Layout, NewTopic, Which},
    },
    records::{Compression, Record},
    topic::{Start, TopicReader, TopicWriter, Until},
};
use tokio::{
    sync::Mutex,
    time::{Instant, sleep},
};

/// How long leaders may take to hear of a new topic.
const HEARD_WITHIN: Duration = Duration::from_secs(60);

/// A topic with records that each have a key of their own, and all the same size.
#[derive(Debug)]
pub struct Freight {
    kafka: Client,
    topic: String,
    partitions: i32,
    record_bytes: usize,
    written: Mutex<Written>,
}

#[derive(Debug)]
struct Written {
    /// Repeats what was not answered without doubling it, so that whatever is there twice is somebody's fault.
    writer: TopicWriter,
    /// Records in each partition.
    rounds: usize,
}

impl Freight {
    /// Makes an empty topic whose replicas lie exactly so, the preferred leader of each partition first.
    ///
    /// # Errors
    ///
    /// When Kafka does not want it so, or does not answer.
    pub async fn new(kafka: &Client, topic: &str, replicas: &[&[i32]], record_bytes: usize) -> Result<Self> {
        let lists = replicas.iter().map(|list| list.iter().copied().map(BrokerId).collect()).collect();
        let wanted = NewTopic { name: topic.to_owned(), layout: Layout::Manual(lists), configs: BTreeMap::new() };
        for (name, made) in kafka.create_topics(&[wanted], false).await.whole()? {
            made.with_context(|| format!("could not make the topic {name}"))?;
        }
        // On a busy machine a leader may hear of its partition seconds later.
        let index = |index: usize| TopicPartition::new(topic, i32::try_from(index).unwrap_or_default());
        let places: BTreeMap<_, _> = (0..replicas.len()).map(|it| (index(it), Place::Latest)).collect();
        let begun = Instant::now();
        while !kafka.list_offsets(&places, Isolation::Uncommitted).await?.values().all(Result::is_ok) {
            ensure!(begun.elapsed() < HEARD_WITHIN, "the leaders of {topic} do not know it");
            sleep(HEARD_WITHIN / 100).await;
        }
        let writer = TopicWriter::idempotent(kafka.clone(), Compression::None).await?;
        Ok(Self {
            kafka: kafka.clone(),
            topic: topic.to_owned(),
            partitions: i32::try_from(replicas.len())?,
            record_bytes,
            written: Mutex::new(Written { writer, rounds: 0 }),
        })
    }

    /// Writes so many records more to each partition.
    ///
    /// # Errors
    ///
    /// When they may not be there.
    pub async fn write(&self, rounds: usize) -> Result<()> {
        let mut written = self.written.lock().await;
        for _ in 0..rounds {
            let round = written.rounds;
            // Of today: Kafka does not keep what is older than a week.
            let timestamp = i64::try_from(UNIX_EPOCH.elapsed()?.as_millis())?;
            let record = |index: i32| Record {
                key: Some(key(index, round).into()),
                value: Some(vec![b'.'; self.record_bytes].into()),
                timestamp,
                ..Record::default()
            };
            let of_partition = |index| (TopicPartition::new(self.topic.clone(), index), vec![record(index)]);
            written.writer.write(&(0..self.partitions).map(of_partition).collect()).await?;
            written.rounds += 1;
        }
        Ok(())
    }

    /// Reads everything back: each record is there, once.
    ///
    /// # Errors
    ///
    /// When something is missing, doubled or another, or cannot be read.
    pub async fn is_whole(&self) -> Result<()> {
        let rounds = self.written.lock().await.rounds;
        let (kafka, start, until) = (self.kafka.clone(), Start::Earliest, Until::End);
        let mut reader = TopicReader::open(kafka, &self.topic, &start, until, Isolation::Committed).await?;
        let mut found = BTreeSet::new();
        while let Some(records) = reader.next().await? {
            for record in records {
                let record = record.stored.record;
                let name = String::from_utf8(record.key.context("a record without a key")?.to_vec())?;
                let bytes = record.value.map_or(0, |value| value.len());
                ensure!(bytes == self.record_bytes, "{} {name} has {bytes} bytes", self.topic);
                ensure!(found.insert(name.clone()), "{} {name} is there twice", self.topic);
            }
        }
        let all = (0..self.partitions).flat_map(|index| (0..rounds).map(move |round| key(index, round)));
        let missing: Vec<String> = all.filter(|name| !found.remove(name)).collect();
        ensure!(missing.is_empty(), "{} has lost {}: {missing:?}", self.topic, missing.len());
        ensure!(found.is_empty(), "{} has more than was written: {found:?}", self.topic);
        Ok(())
    }

    /// What one replica of every partition has in values. A log has some bytes more, for keys and heads.
    pub async fn bytes(&self) -> u64 {
        let records = self.written.lock().await.rounds * self.record_bytes;
        u64::try_from(records).unwrap_or(u64::MAX) * u64::from(self.partitions.unsigned_abs())
    }

    /// How much of it lies in the directories of a broker.
    ///
    /// # Errors
    ///
    /// When the broker does not answer, or one of its directories has failed.
    pub async fn bytes_on(&self, broker: i32) -> Result<u64> {
        let mut bytes = 0;
        for (path, dir) in self.kafka.describe_log_dirs(BrokerId(broker), None).await?.dirs {
            let dir = dir.with_context(|| format!("{path} has failed"))?;
            let of_topic = dir.replicas.iter().filter(|(partition, _)| partition.topic == self.topic);
            bytes += of_topic.filter_map(|(_, replica)| u64::try_from(replica.bytes).ok()).sum::<u64>();
        }
        Ok(bytes)
    }
}

fn key(partition: i32, round: usize) -> String {
    format!("{partition}/{round}")
}

/// How many replicas each broker is to hold of topics that are meant.
///
/// # Errors
///
/// When Kafka does not answer.
pub async fn held_by(kafka: &Client, is_meant: impl Fn(&str) -> bool) -> Result<BTreeMap<i32, usize>> {
    let mut held = BTreeMap::new();
    for topic in kafka.topics(Which::All).await?.into_values().flatten().filter(|topic| is_meant(&topic.name)) {
        for id in topic.partitions.iter().flat_map(|partition| &partition.replicas) {
            *held.entry(id.0).or_default() += 1;
        }
    }
    Ok(held)
}

/// Whether nothing moves and everybody is in sync.
///
/// # Errors
///
/// When Kafka does not answer.
pub async fn is_settled(kafka: &Client) -> Result<bool> {
    let topics = kafka.topics(Which::All).await?;
    let mut partitions = topics.values().flatten().flat_map(|topic| &topic.partitions);
    let whole = partitions.all(|partition| partition.in_sync.len() == partition.replicas.len());
    Ok(whole && kafka.list_reassignments(None).await?.is_empty())
}

/// What still holds copying back, on these brokers and any topic.
///
/// # Errors
///
/// When Kafka does not answer.
pub async fn throttles(kafka: &Client, brokers: &[i32]) -> Result<Vec<String>> {
    let topics = kafka.topics(Which::All).await?.into_keys().map(Resource::Topic);
    let resources: Vec<Resource> = brokers.iter().map(|id| Resource::Broker(BrokerId(*id))).chain(topics).collect();
    let mut left = Vec::new();
    for (resource, settings) in kafka.describe_configs(&resources, None).await.whole()? {
        for (name, setting) in settings.with_context(|| format!("the settings of {resource:?} are refused"))? {
            let value = setting.value.unwrap_or_default();
            // What is not held back has no rate at all, or the highest there is.
            if name.contains(".replication.throttled.") && !value.is_empty() && value != i64::MAX.to_string() {
                left.push(format!("{resource:?} {name}={value}"));
            }
        }
    }
    Ok(left)
}
