//! Kafka looked at: who is there, what lies where, who is in sync.
//!
//! [`Watcher`] asks and remembers what need not be asked each time; `assemble` makes a [`Sighting`] of
//! the answers and asks nobody. A broker that says nothing about its directories spoils nothing: what
//! it said last still stands, and it is named in [`Sighting::silent`].

pub(crate) mod assemble;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use evenkeel_kafka::{
    BrokerId, Client, Error, TopicPartition,
    calls::{
        configs::Resource,
        log_dirs::LogDirs,
        topics::{Topic, TopicAnswers, Which},
    },
};
use futures::{StreamExt, stream};
use tokio::time::{Instant, timeout};

use crate::{
    clock::WallClock,
    config::capacity::{Capacities, Disk},
    model::{PartitionView, View},
};

/// The setting that says how many replicas must be in sync.
pub(crate) const MIN_IN_SYNC: &str = "min.insync.replicas";
/// How often all topics are asked what their minimum is; new ones are asked at once.
const ASK_MINIMUMS_EVERY: i64 = 300_000;
/// How long a broker may take to tell of its directories, for sizes and while a plan waits for it.
const SIZES_PATIENCE: Duration = Duration::from_secs(5);
const DIRS_PATIENCE: Duration = Duration::from_secs(2);
/// Brokers asked at the same time: an answer about some ten thousand replicas is large.
const AT_ONCE: usize = 8;

/// The cluster as it was seen at one moment, or close to it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sighting {
    /// Who is there and what lies where.
    pub view: View,
    /// The cluster's own id.
    pub cluster: String,
    /// Who passes changes on to the controller.
    pub controller: Option<i32>,
    /// Whether brokers that are registered and away are in the view, too: whoever is not there has left.
    pub names_fenced: bool,
    /// Replicas, and those to be, that are not in sync, of partitions that have such.
    pub lagging: BTreeMap<TopicPartition, Vec<i32>>,
    /// How many replicas must be in sync, by topic.
    pub min_in_sync: BTreeMap<String, usize>,
    /// Topics that are Kafka's own.
    pub internal: BTreeSet<String>,
    /// Log directories that can be read, by broker and path.
    pub dirs: BTreeMap<i32, BTreeMap<String, Room>>,
    /// Brokers that are up and did not tell of their directories when they were last asked.
    pub silent: BTreeSet<i32>,
    /// Moves under way, or over so lately that brokers may still show them.
    pub moving: BTreeMap<TopicPartition, Moving>,
    /// When, in milliseconds since 1970.
    pub at: i64,
}

/// A move under way.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Moving {
    /// Everybody who has it or is to have it: what metadata shows as its replicas meanwhile.
    pub everybody: BTreeSet<i32>,
    /// Who is getting a copy.
    pub adding: BTreeSet<i32>,
    /// Whether somebody is to give its own up.
    pub removes: bool,
    /// When it was listed last, in milliseconds since 1970.
    pub listed: i64,
}

/// The room in a log directory, in bytes, where its broker tells.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Room {
    /// Of its file system.
    pub total: Option<u64>,
    /// What is free of it.
    pub usable: Option<u64>,
}

impl Sighting {
    /// Who is in sync, in the order of the replicas; of those who are getting a copy, too.
    pub fn in_sync(&self, partition: &TopicPartition) -> Vec<i32> {
        let Some(seen) = self.view.partitions.get(partition) else { return Vec::new() };
        let lagging = self.lagging.get(partition).map_or(&[][..], Vec::as_slice);
        seen.replicas.iter().chain(&seen.adding).copied().filter(|id| !lagging.contains(id)).collect()
    }

    /// How many of a topic's replicas must be in sync.
    pub fn min_in_sync(&self, topic: &str) -> usize {
        self.min_in_sync.get(topic).copied().unwrap_or(1)
    }

    /// Partitions that fall short of what must be in sync.
    pub fn short(&self) -> impl Iterator<Item = &TopicPartition> {
        self.lagging.keys().filter(|partition| {
            let replicas = self.view.partitions.get(*partition).map_or(0, |seen| seen.replicas.len());
            self.in_sync(partition).len() < self.min_in_sync(&partition.topic).min(replicas)
        })
    }

    /// Whether brokers still show a move that is over: where its partition lies now is not to be seen yet.
    pub fn trails(&self) -> bool {
        let shown = |partition| self.view.partitions.get(partition).is_some_and(|seen| !seen.adding.is_empty());
        self.moving.iter().any(|(partition, it)| it.listed < self.at && shown(partition))
    }

    /// A partition of which one of these brokers is getting a copy.
    pub fn coming_to(&self, brokers: &BTreeSet<i32>) -> Option<(&TopicPartition, i32)> {
        let coming = |seen: &PartitionView| seen.adding.iter().copied().find(|id| brokers.contains(id));
        self.view.partitions.iter().find_map(|(partition, seen)| Some((partition, coming(seen)?)))
    }

    /// Whether a broker is no part of the cluster any more: it is not registered, and nothing lies on it.
    pub fn has_left(&self, broker: i32) -> bool {
        self.names_fenced && !self.view.brokers.contains_key(&broker)
    }

    /// Brokers that are up.
    pub fn up(&self) -> impl Iterator<Item = i32> {
        self.view.brokers.iter().filter(|(_, broker)| broker.up).map(|(id, _)| *id)
    }
}

/// Sizes of partitions at their leaders.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sizes {
    /// In bytes; of leaders that did not tell, nothing.
    pub of: BTreeMap<TopicPartition, u64>,
    /// When they were asked for.
    pub at: i64,
}

/// Whose directories to ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dirs {
    /// Everybody's: sizes are wanted.
    All,
    /// Only where plans tell directories apart; of others what was seen last will do.
    WhereTheyMatter,
}

/// One look that remembers nothing.
pub async fn look(client: &Client, clock: &WallClock) -> Result<Sighting, Error> {
    let mut watcher = Watcher::new(client.clone(), *clock, Arc::default());
    watcher.look(Dirs::All, None).await.map(|(sighting, _)| sighting)
}

/// Looks again and again.
#[derive(Debug)]
pub struct Watcher {
    client: Client,
    clock: WallClock,
    capacities: Arc<Capacities>,
    /// What topics want in sync, and when all of them were asked.
    minimums: (Option<i64>, BTreeMap<String, usize>),
}

impl Watcher {
    /// Directories matter on brokers whose capacity is given by directory.
    pub fn new(client: Client, clock: WallClock, capacities: Arc<Capacities>) -> Self {
        Watcher { client, clock, capacities, minimums: (None, BTreeMap::new()) }
    }

    /// What is to be seen now, and the sizes that were told on the way; `before` is what was seen last.
    pub async fn look(&mut self, dirs: Dirs, before: Option<&Sighting>) -> Result<(Sighting, Sizes), Error> {
        let (at, began) = (self.clock.now(), Instant::now());
        let cluster = self.client.describe_cluster().await?;
        // Both before the metadata and after: what has ended in between, and what has begun, is not taken for settled.
        let first = self.client.list_reassignments(None).await?;
        let topics = self.client.topics(Which::All).await?;
        let listed = assemble::Listed { before: first, after: self.client.list_reassignments(None).await? };
        let told = began.elapsed();
        self.learn_minimums(&topics, at).await;
        let moving = assemble::moving(at, listed, before);
        let mut sighting = assemble::sighting(at, cluster, topics, &self.minimums.1, moving);
        let mut sizes = Sizes { of: BTreeMap::new(), at: self.clock.now() };
        let asked: Vec<i32> =
            sighting.up().filter(|id| dirs == Dirs::All || matter_on(&self.capacities, *id)).collect();
        let client = &self.client;
        let patience = if dirs == Dirs::All { SIZES_PATIENCE } else { DIRS_PATIENCE };
        let questions: Vec<_> = asked.iter().map(|id| ask(client, *id, patience)).collect();
        let mut answers = stream::iter(questions).buffer_unordered(AT_ONCE);
        while let Some((id, answer)) = answers.next().await {
            match answer {
                Some(told) => {
                    assemble::take_dirs(&mut sighting, id, told, matter_on(&self.capacities, id), &mut sizes.of)
                }
                None => drop(sighting.silent.insert(id)),
            }
        }
        drop(answers);
        if let Some(before) = before {
            assemble::remember_dirs(&mut sighting, before, &asked);
        }
        let (partitions, ms) = (sighting.view.partitions.len(), began.elapsed().as_millis());
        tracing::debug!(
            partitions,
            asked_dirs = asked.len(),
            topics_ms = told.as_millis(),
            ms,
            "looked at the cluster"
        );
        Ok((sighting, sizes))
    }

    /// Asks topics what they want in sync. Without an answer, what is known has to do.
    async fn learn_minimums(&mut self, topics: &TopicAnswers<Topic>, now: i64) {
        let (asked, known) = &mut self.minimums;
        let all = asked.is_none_or(|asked| now - asked >= ASK_MINIMUMS_EVERY);
        let wanted = topics.keys().filter(|topic| all || !known.contains_key(*topic));
        let wanted: Vec<Resource> = wanted.cloned().map(Resource::Topic).collect();
        known.retain(|topic, _| topics.contains_key(topic));
        if wanted.is_empty() {
            return;
        }
        let told = self.client.describe_configs(&wanted, Some(&[MIN_IN_SYNC])).await;
        if let Some(error) = &told.interrupted {
            tracing::debug!(%error, "not all topics told how many replicas must be in sync");
        } else if all {
            *asked = Some(now);
        }
        known.extend(assemble::minimums(told.answers));
    }
}

/// Whether plans may tell a broker's directories apart.
fn matter_on(capacities: &Capacities, broker: i32) -> bool {
    capacities.of(broker).is_some_and(|(capacity, _)| matches!(capacity.disk, Disk::Dirs(_)))
}

/// One broker's directories, unless it takes too long or cannot.
async fn ask(client: &Client, broker: i32, patience: Duration) -> (i32, Option<LogDirs>) {
    let told = match timeout(patience, client.describe_log_dirs(BrokerId(broker), None)).await {
        Ok(Ok(told)) => Some(told),
        Ok(Err(error)) => {
            tracing::debug!(broker, %error, "a broker did not tell of its log directories");
            None
        }
        Err(_) => {
            tracing::debug!(broker, "a broker took too long to tell of its log directories");
            None
        }
    };
    (broker, told)
}
