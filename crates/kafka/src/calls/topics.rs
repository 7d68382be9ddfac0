//! Topics: what there is, and making, growing and removing them.
//!
//! Reading all of a large cluster goes page by page where the broker can (Kafka 3.8 and later), so
//! that no answer is larger than some thousands of partitions. Pages are read one after the other,
//! so the whole is no picture of one moment.

use std::collections::BTreeMap;

use kafka_protocol::messages::{
    self, CreatePartitionsRequest, CreateTopicsRequest, DeleteTopicsRequest, DescribeTopicPartitionsRequest,
    MetadataRequest,
    create_partitions_request::{CreatePartitionsAssignment, CreatePartitionsTopic},
    create_topics_request::{CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig},
    describe_topic_partitions_request::{Cursor, TopicRequest},
    metadata_request::MetadataRequestTopic,
};

use super::in_pieces;
use crate::{
    client::{Call, Client, Effect, To},
    connection::CallError,
    error::{Error, ErrorCode, Refusal},
    types::{BrokerId, Changes, message, text, topic_name},
};

/// Partitions on one page at most: as many as brokers give by default.
const LARGEST_PAGE: usize = 2000;
/// Topics in one question, where there are no pages.
const TOPICS_AT_ONCE: usize = 500;
/// Topics made or removed by one request: a controller takes some ten thousand records of one, and a
/// topic has one for each partition and each setting.
const CHANGED_AT_ONCE: usize = 100;

/// One topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topic {
    /// Its name.
    pub name: String,
    /// Its id, which a topic of the same name made later does not share. Zero before Kafka 2.8.
    pub id: u128,
    /// Whether it is Kafka's own.
    pub internal: bool,
    /// Its partitions, by index.
    pub partitions: Vec<Partition>,
}

/// One partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    /// Its index.
    pub index: i32,
    /// Who leads it, if anybody.
    pub leader: Option<BrokerId>,
    /// How often the leader was chosen anew.
    pub leader_epoch: i32,
    /// Who holds it, the preferred leader first. During a move: the target, then what it will lose.
    pub replicas: Vec<BrokerId>,
    /// Who has all of it.
    pub in_sync: Vec<BrokerId>,
    /// Who should have it and cannot: broker or directory is gone.
    pub offline: Vec<BrokerId>,
}

/// Which topics to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which<'a> {
    /// All there are.
    All,
    /// These.
    Named(&'a [String]),
}

/// A topic to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTopic {
    /// Its name.
    pub name: String,
    /// Where its partitions go.
    pub layout: Layout,
    /// Its settings, where they differ from the brokers'.
    pub configs: BTreeMap<String, String>,
}

/// Where the partitions of a new topic go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Layout {
    /// The cluster chooses.
    Automatic {
        /// How many partitions; `None` for the brokers' default.
        partitions: Option<i32>,
        /// How many replicas of each; `None` for the brokers' default.
        replication_factor: Option<i16>,
    },
    /// Exactly so: the replicas of each partition, the preferred leader first.
    Manual(Vec<Vec<BrokerId>>),
}

/// What came of each topic.
pub type TopicAnswers<T = ()> = BTreeMap<String, Result<T, Refusal>>;

/// Whether a topic is refused for no other reason than that it is not there.
fn is_gone(refusal: &Refusal) -> bool {
    refusal.code == ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
}

impl Client {
    /// Topics with their partitions. Of named ones those that are not there are refused each; of
    /// all, a topic that vanishes meanwhile is left out, and one that cannot be read is not.
    pub async fn topics(&self, which: Which<'_>) -> Result<TopicAnswers<Topic>, Error> {
        match self.topics_by_page(which).await {
            Err(Error::Call { source: CallError::Unsupported { .. }, .. }) => self.topics_by_metadata(which).await,
            paged => paged,
        }
    }

    async fn topics_by_page(&self, which: Which<'_>) -> Result<TopicAnswers<Topic>, Error> {
        let mut found = TopicAnswers::new();
        let questions: Vec<&[String]> = match which {
            Which::All => vec![&[]],
            Which::Named(names) => names.chunks(TOPICS_AT_ONCE).collect(),
        };
        for names in questions {
            let mut cursor: Option<Cursor> = None;
            loop {
                let mut answer = self.page(names, cursor.clone()).await?;
                let next = answer.next_cursor.take();
                for topic in answer.topics {
                    let Some(name) = topic.name.map(|name| name.0.to_string()) else { continue };
                    if let Err(refusal) = Refusal::check(topic.error_code, None) {
                        if matches!(which, Which::Named(_)) || !is_gone(&refusal) {
                            found.insert(name, Err(refusal));
                        }
                        continue;
                    }
                    let partitions = topic.partitions.into_iter().map(|one| {
                        let nodes = [&one.replica_nodes, &one.isr_nodes, &one.offline_replicas];
                        partition(one.partition_index, one.leader_id, one.leader_epoch, nodes)
                    });
                    let fresh = || Topic {
                        name: name.clone(),
                        id: topic.topic_id.as_u128(),
                        internal: topic.is_internal,
                        partitions: Vec::new(),
                    };
                    // A topic may go over the end of a page.
                    let entry = found.entry(name.clone()).or_insert_with(|| Ok(fresh()));
                    match entry {
                        // Removed and made again between two pages: only the new one is there.
                        Ok(known) if known.id == topic.topic_id.as_u128() => known.partitions.extend(partitions),
                        entry => *entry = Ok(Topic { partitions: partitions.collect(), ..fresh() }),
                    }
                }
                let Some(next) = next else { break };
                let next =
                    Cursor::default().with_topic_name(next.topic_name).with_partition_index(next.partition_index);
                if cursor.as_ref().is_some_and(|last| place(last) >= place(&next)) {
                    return Err(going_round());
                }
                cursor = Some(next);
            }
        }
        sort(&mut found);
        Ok(found)
    }

    async fn page(
        &self,
        names: &[String],
        cursor: Option<Cursor>,
    ) -> Result<messages::DescribeTopicPartitionsResponse, Error> {
        let call = Call { operation: "describe topics", to: To::Any, effect: Effect::Repeatable };
        let topics: Vec<_> = names.iter().map(|name| TopicRequest::default().with_name(topic_name(name))).collect();
        // What is said of a partition is short.
        let page = self.settings().partitions_at_once.saturating_mul(2).clamp(1, LARGEST_PAGE) as i32;
        let request = |_| {
            DescribeTopicPartitionsRequest::default()
                .with_topics(topics.clone())
                .with_response_partition_limit(page)
                .with_cursor(cursor.clone())
        };
        self.ask(call, request, |_| Ok(())).await
    }

    /// For brokers without pages. All topics come in one answer then: there is no other way to learn
    /// their names.
    async fn topics_by_metadata(&self, which: Which<'_>) -> Result<TopicAnswers<Topic>, Error> {
        let mut found = TopicAnswers::new();
        let questions: Vec<Option<&[String]>> = match which {
            Which::All => vec![None],
            Which::Named(names) => names.chunks(TOPICS_AT_ONCE).map(Some).collect(),
        };
        for names in questions {
            let call = Call { operation: "describe topics", to: To::Any, effect: Effect::Repeatable };
            let asked = |name: &String| MetadataRequestTopic::default().with_name(Some(topic_name(name)));
            let request = |_| {
                MetadataRequest::default()
                    .with_topics(names.map(|names| names.iter().map(asked).collect()))
                    .with_allow_auto_topic_creation(false)
            };
            let answer = self
                .ask(call, request, |answer: &messages::MetadataResponse| Refusal::check(answer.error_code, None))
                .await?;
            for topic in answer.topics {
                let Some(name) = topic.name.map(|name| name.0.to_string()) else { continue };
                if let Err(refusal) = Refusal::check(topic.error_code, None) {
                    if names.is_some() || !is_gone(&refusal) {
                        found.insert(name, Err(refusal));
                    }
                    continue;
                }
                let partitions = topic.partitions.into_iter().map(|one| {
                    let nodes = [&one.replica_nodes, &one.isr_nodes, &one.offline_replicas];
                    partition(one.partition_index, one.leader_id, one.leader_epoch, nodes)
                });
                let (id, internal) = (topic.topic_id.as_u128(), topic.is_internal);
                found.insert(name.clone(), Ok(Topic { name, id, internal, partitions: partitions.collect() }));
            }
        }
        sort(&mut found);
        Ok(found)
    }

    /// Makes topics; `dry_run` only asks whether it could be done.
    pub async fn create_topics(&self, topics: &[NewTopic], dry_run: bool) -> Changes<String> {
        in_pieces(topics, CHANGED_AT_ONCE, |some: Vec<NewTopic>| async move {
            let call = Call { operation: "create topics", to: To::Controller, effect: Effect::Once };
            let request = |_| {
                CreateTopicsRequest::default()
                    .with_topics(some.iter().map(creatable).collect())
                    .with_timeout_ms(self.broker_patience_ms())
                    .with_validate_only(dry_run)
            };
            let verdict = |answer: &messages::CreateTopicsResponse| {
                wrong_controller(answer.topics.iter().map(|topic| topic.error_code))
            };
            let answer = self.ask(call, request, verdict).await?;
            let told = answer.topics.into_iter().map(|topic| {
                (topic.name.0.to_string(), Refusal::check(topic.error_code, message(topic.error_message)))
            });
            Ok(told.collect())
        })
        .await
    }

    /// Removes topics and all that is in them.
    pub async fn delete_topics(&self, names: &[String]) -> Changes<String> {
        in_pieces(names, CHANGED_AT_ONCE, |some: Vec<String>| async move {
            let call = Call { operation: "delete topics", to: To::Controller, effect: Effect::Once };
            let request = |_| {
                DeleteTopicsRequest::default()
                    .with_topic_names(some.iter().map(|name| topic_name(name)).collect())
                    .with_timeout_ms(self.broker_patience_ms())
            };
            let verdict = |answer: &messages::DeleteTopicsResponse| {
                wrong_controller(answer.responses.iter().map(|topic| topic.error_code))
            };
            let answer = self.ask(call, request, verdict).await?;
            let told = answer.responses.into_iter().filter_map(|topic| {
                let name = topic.name?.0.to_string();
                Some((name, Refusal::check(topic.error_code, message(topic.error_message))))
            });
            Ok(told.collect())
        })
        .await
    }

    /// Grows a topic to `total` partitions; `replicas` are those of the new ones, if they are not
    /// left to the cluster.
    pub async fn create_partitions(
        &self,
        topic: &str,
        total: i32,
        replicas: Option<&[Vec<BrokerId>]>,
    ) -> Result<(), Error> {
        let operation = "create partitions";
        let call = Call { operation, to: To::Controller, effect: Effect::Once };
        let assignments: Option<Vec<_>> = replicas.map(|replicas| {
            let assignment =
                |ids: &Vec<BrokerId>| CreatePartitionsAssignment::default().with_broker_ids(BrokerId::to_wire(ids));
            replicas.iter().map(assignment).collect()
        });
        let request = |_| {
            let grown = CreatePartitionsTopic::default()
                .with_name(topic_name(topic))
                .with_count(total)
                .with_assignments(assignments.clone());
            CreatePartitionsRequest::default()
                .with_topics(vec![grown])
                .with_timeout_ms(self.broker_patience_ms())
                .with_validate_only(false)
        };
        self.ask(call, request, |answer: &messages::CreatePartitionsResponse| {
            let mut results = answer.results.iter();
            results.try_for_each(|topic| Refusal::check(topic.error_code, message(topic.error_message.clone())))
        })
        .await?;
        Ok(())
    }
}

/// Pages come in the order of names and partitions.
fn place(cursor: &Cursor) -> (&str, i32) {
    (&cursor.topic_name.0, cursor.partition_index)
}

/// Pages that do not go on would never come to an end, and what there is so far is not all.
fn going_round() -> Error {
    let message = Some("the broker's pages go round in a circle".to_owned());
    Error::Refused { operation: "describe topics", refusal: Refusal { code: ErrorCode(-1), message } }
}

/// A partition as both ways of reading topics tell it: replicas, those in sync, those offline.
fn partition(
    index: i32,
    leader: messages::BrokerId,
    leader_epoch: i32,
    [replicas, in_sync, offline]: [&Vec<messages::BrokerId>; 3],
) -> Partition {
    Partition {
        index,
        leader: BrokerId::of(leader),
        leader_epoch,
        replicas: BrokerId::list(replicas),
        in_sync: BrokerId::list(in_sync),
        offline: BrokerId::list(offline),
    }
}

/// A broker that is not the controller says so for every topic, and has done nothing.
fn wrong_controller(mut codes: impl Iterator<Item = i16>) -> Result<(), Refusal> {
    match codes.find(|code| *code == ErrorCode::NOT_CONTROLLER.0) {
        Some(code) => Refusal::check(code, None),
        None => Ok(()),
    }
}

fn creatable(topic: &NewTopic) -> CreatableTopic {
    let configs = topic
        .configs
        .iter()
        .map(|(name, value)| CreatableTopicConfig::default().with_name(text(name)).with_value(Some(text(value))));
    let wanted = CreatableTopic::default().with_name(topic_name(&topic.name)).with_configs(configs.collect());
    match &topic.layout {
        // -1 leaves it to the brokers, and is what manual assignments want to see.
        Layout::Automatic { partitions, replication_factor } => wanted
            .with_num_partitions(partitions.unwrap_or(-1))
            .with_replication_factor(replication_factor.unwrap_or(-1)),
        Layout::Manual(partitions) => {
            let assignments = (0..).zip(partitions).map(|(index, replicas)| {
                CreatableReplicaAssignment::default()
                    .with_partition_index(index)
                    .with_broker_ids(BrokerId::to_wire(replicas))
            });
            wanted.with_num_partitions(-1).with_replication_factor(-1).with_assignments(assignments.collect())
        }
    }
}

fn sort(found: &mut TopicAnswers<Topic>) {
    for topic in found.values_mut().flatten() {
        topic.partitions.sort_by_key(|partition| partition.index);
    }
}
