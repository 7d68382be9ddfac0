//! Reading batches of records.

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use kafka_protocol::messages::{
    self, FetchRequest,
    fetch_request::{FetchPartition, FetchTopic},
};

use super::offsets::Isolation;
use crate::{
    client::{Client, Effect},
    error::{Error, Refusal},
    name::TopicName,
    types::{Answers, TopicPartition, by_topic, topic_name},
};

/// How much a fetch brings, and how long it waits for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetchLimits {
    /// At most this much of one partition, and at least one batch.
    pub partition_bytes: i32,
    /// At most this much from one broker, and at least one batch.
    pub total_bytes: i32,
    /// At most this much from all brokers together, and at least one batch from each: a topic may have hundreds of
    /// leaders.
    pub together_bytes: i32,
    /// How long a broker may wait for something to come.
    pub wait: Duration,
}

impl Default for FetchLimits {
    fn default() -> Self {
        const MIB: i32 = 1024 * 1024;
        let wait = Duration::from_millis(500);
        Self { partition_bytes: MIB, total_bytes: 16 * MIB, together_bytes: 64 * MIB, wait }
    }
}

/// What a fetch brought of one partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// Batches, for [`crate::records::decode_batches`]. The first may begin before the offset asked
    /// for.
    pub batches: Bytes,
    /// Behind the last record that the replicas agree on.
    pub high_watermark: i64,
    /// Behind the last record that no open transaction holds back.
    pub last_stable_offset: i64,
    /// The first record there is.
    pub log_start: i64,
    /// Transactions among these batches that were aborted: producer, and first offset.
    pub aborted: Vec<(i64, i64)>,
}

impl Fetched {
    /// Behind the last record that a reader of this kind may see.
    pub fn readable_to(&self, isolation: Isolation) -> i64 {
        match isolation {
            Isolation::Committed => self.last_stable_offset,
            Isolation::Uncommitted => self.high_watermark,
        }
    }
}

impl Client {
    /// Reads from these offsets on.
    pub async fn fetch(
        &self,
        offsets: &BTreeMap<TopicPartition, i64>,
        isolation: Isolation,
        limits: FetchLimits,
    ) -> Result<Answers<Fetched>, Error> {
        // A broker that waits as long as we do would always seem silent.
        let wait = limits.wait.min(self.settings().request_patience / 2);
        let wait = i32::try_from(wait.as_millis()).unwrap_or(i32::MAX);
        let request = |_, some: &[(&TopicPartition, &i64)], sharing: usize| {
            let share = limits.together_bytes / i32::try_from(sharing).unwrap_or(i32::MAX).max(1);
            let topics = by_topic(some.iter().map(|(partition, offset)| {
                let asked = FetchPartition::default()
                    .with_partition(partition.partition)
                    .with_fetch_offset(**offset)
                    .with_partition_max_bytes(limits.partition_bytes);
                (partition.topic.as_str(), asked)
            }));
            let topics = topics.into_iter().map(|(name, partitions)| {
                FetchTopic::default().with_topic(topic_name(name)).with_partitions(partitions)
            });
            FetchRequest::default()
                .with_replica_id(messages::BrokerId(-1))
                .with_max_wait_ms(wait)
                .with_min_bytes(1)
                .with_max_bytes(limits.total_bytes.min(share).max(1))
                .with_isolation_level(isolation.to_wire())
                .with_topics(topics.collect())
        };
        let split = |answer: messages::FetchResponse| {
            let mut answers = Answers::new();
            for topic in answer.responses {
                let name = TopicName::from(&*topic.topic.0);
                for partition in topic.partitions {
                    let place = TopicPartition::new(&name, partition.partition_index);
                    let refused = Refusal::check(partition.error_code, None);
                    let aborted = partition.aborted_transactions.unwrap_or_default();
                    let fetched = Fetched {
                        batches: partition.records.unwrap_or_default(),
                        high_watermark: partition.high_watermark,
                        last_stable_offset: partition.last_stable_offset,
                        log_start: partition.log_start_offset,
                        aborted: aborted.iter().map(|one| (one.producer_id.0, one.first_offset)).collect(),
                    };
                    answers.insert(place, refused.map(|()| fetched));
                }
            }
            answers
        };
        self.ask_leaders("read records", Effect::Repeatable, offsets, request, split).await
    }
}
