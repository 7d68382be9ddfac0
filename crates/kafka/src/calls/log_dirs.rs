//! The log directories of a broker: what they hold, and moving replicas between them.

mod v5;

use std::collections::BTreeMap;

use bytes::Bytes;
use kafka_protocol::messages::{
    AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse, DescribeLogDirsRequest, DescribeLogDirsResponse,
    alter_replica_log_dirs_request::{AlterReplicaLogDir, AlterReplicaLogDirTopic},
    describe_log_dirs_request::DescribableLogDirTopic,
    describe_log_dirs_response::DescribeLogDirsResult,
};
pub use v5::encode_response;

use super::{in_pieces, questions};
use crate::{
    client::{Call, Client, Effect, To},
    connection::{CallError, Connection},
    error::{Error, Refusal},
    guard::Limits,
    message::{self, MessageError},
    name::TopicName,
    types::{Answers, BrokerId, Changes, TopicPartition, by_topic, text, topic_name},
};

/// What a broker said of its directories.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogDirs {
    /// Whether it can tell of cordons at all (Kafka 4.3 and later).
    pub knows_cordons: bool,
    /// The directories by path; one that failed is refused.
    pub dirs: BTreeMap<String, Result<LogDir, Refusal>>,
}

/// One log directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogDir {
    /// The size of its file system, where the broker tells (Kafka 3.3 and later).
    pub total_bytes: Option<u64>,
    /// What is free of it.
    pub usable_bytes: Option<u64>,
    /// Whether new replicas are kept from it.
    pub cordoned: bool,
    /// What it holds. A replica moving to another directory of the same broker is in both.
    pub replicas: BTreeMap<TopicPartition, Replica>,
}

/// One replica in one directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replica {
    /// Its size.
    pub bytes: i64,
    /// For a future replica, how many records it lacks; else 0.
    pub lag: i64,
    /// Whether it is still being copied here from another directory of this broker.
    pub future: bool,
}

/// The answer of a broker in any version up to 5, from a frame, with whether each directory is cordoned (nothing before
/// version 5). The counterpart of [`encode_response`].
pub fn decode_response(
    frame: Bytes,
    version: i16,
    limits: Limits,
) -> Result<(DescribeLogDirsResponse, Vec<bool>), MessageError> {
    v5::decode(message::response_body::<DescribeLogDirsRequest>(frame, version, limits)?, version)
}

impl Client {
    /// The directories of one broker with what they hold: of these partitions, or all.
    pub async fn describe_log_dirs(
        &self,
        broker: BrokerId,
        partitions: Option<&[TopicPartition]>,
    ) -> Result<LogDirs, Error> {
        // Without any, the directories are told all the same.
        let first = partitions.map(|_| &[][..]);
        let mut pieces = questions(partitions, self.settings().partitions_at_once).into_iter();
        let mut told = self.describe_some(broker, pieces.next().unwrap_or(first)).await?;
        for piece in pieces {
            for (path, dir) in self.describe_some(broker, piece).await?.dirs {
                match (told.dirs.get_mut(&path), dir) {
                    (Some(Ok(known)), Ok(more)) => known.replicas.extend(more.replicas),
                    // It has failed, or was mended, meanwhile.
                    (_, dir) => drop(told.dirs.insert(path, dir)),
                }
            }
        }
        Ok(told)
    }

    async fn describe_some(&self, broker: BrokerId, partitions: Option<&[TopicPartition]>) -> Result<LogDirs, Error> {
        let call = Call { operation: "describe log directories", to: To::Broker(broker), effect: Effect::Repeatable };
        let topics = partitions.map(|partitions| {
            let topics = by_topic(partitions.iter().map(|one| (one.topic.as_str(), one.partition)));
            let asked = |(name, indexes): (&str, Vec<i32>)| {
                DescribableLogDirTopic::default().with_topic(topic_name(name)).with_partitions(indexes)
            };
            topics.into_iter().map(asked).collect::<Vec<_>>()
        });
        let request = DescribeLogDirsRequest::default().with_topics(topics);
        let request = &request;
        let make = |connection: Connection, patience| async move {
            let version = connection.version_of::<DescribeLogDirsRequest>()?;
            let body = connection.call_for_body(request, version, patience).await?;
            let (answer, cordoned) = v5::decode(body, version).map_err(CallError::Answer)?;
            Ok((version, answer, cordoned))
        };
        let verdict = |(_, answer, _): &(i16, DescribeLogDirsResponse, _)| Refusal::check(answer.error_code, None);
        let (version, answer, cordoned) = self.ask_with(call, make, verdict).await?;
        let cordoned = cordoned.into_iter().chain(std::iter::repeat(false));
        let dirs = answer.results.into_iter().zip(cordoned).map(|(dir, cordoned)| {
            let path = dir.log_dir.to_string();
            (path, Refusal::check(dir.error_code, None).map(|()| log_dir(dir, cordoned)))
        });
        Ok(LogDirs { knows_cordons: version >= v5::CORDONS, dirs: dirs.collect() })
    }

    /// Chooses the directory of replicas on one broker. A replica that the broker holds is moved; for
    /// one that it does not hold it answers [`crate::ErrorCode::REPLICA_NOT_AVAILABLE`] and remembers
    /// the choice for when it comes.
    pub async fn alter_replica_log_dirs(&self, broker: BrokerId, wanted: &BTreeMap<TopicPartition, String>) -> Changes {
        let wanted: Vec<(TopicPartition, String)> = wanted.clone().into_iter().collect();
        in_pieces(&wanted, self.settings().partitions_at_once, |some: Vec<(TopicPartition, String)>| async move {
            let operation = "alter the log directories of replicas";
            let call = Call { operation, to: To::Broker(broker), effect: Effect::Repeatable };
            let request = |_| {
                let by_dir = by_topic(some.iter().map(|(partition, dir)| (dir.as_str(), partition)));
                let dirs = by_dir.into_iter().map(|(path, partitions)| {
                    let topics = by_topic(partitions.iter().map(|one| (one.topic.as_str(), one.partition)));
                    let topics = topics.into_iter().map(|(name, indexes)| {
                        AlterReplicaLogDirTopic::default().with_name(topic_name(name)).with_partitions(indexes)
                    });
                    AlterReplicaLogDir::default().with_path(text(path)).with_topics(topics.collect())
                });
                AlterReplicaLogDirsRequest::default().with_dirs(dirs.collect())
            };
            let answer: AlterReplicaLogDirsResponse = self.ask(call, request, |_| Ok(())).await?;
            let mut answers = Answers::new();
            for topic in answer.results {
                let name = TopicName::from(&*topic.topic_name.0);
                for partition in topic.partitions {
                    answers.insert(
                        TopicPartition::new(&name, partition.partition_index),
                        Refusal::check(partition.error_code, None),
                    );
                }
            }
            Ok(answers)
        })
        .await
    }
}

fn log_dir(dir: DescribeLogDirsResult, cordoned: bool) -> LogDir {
    let mut replicas = BTreeMap::new();
    for topic in dir.topics {
        let name = TopicName::from(&*topic.name.0);
        for partition in topic.partitions {
            replicas.insert(
                TopicPartition::new(&name, partition.partition_index),
                Replica { bytes: partition.partition_size, lag: partition.offset_lag, future: partition.is_future_key },
            );
        }
    }
    LogDir {
        total_bytes: u64::try_from(dir.total_bytes).ok(),
        usable_bytes: u64::try_from(dir.usable_bytes).ok(),
        cordoned,
        replicas,
    }
}
