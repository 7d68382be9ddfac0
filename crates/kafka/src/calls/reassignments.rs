//! Moving partitions between brokers.

use std::collections::BTreeMap;

use kafka_protocol::messages::{
    self, AlterPartitionReassignmentsRequest, ListPartitionReassignmentsRequest,
    alter_partition_reassignments_request::{ReassignablePartition, ReassignableTopic},
    list_partition_reassignments_request::ListPartitionReassignmentsTopics,
};

use super::{in_pieces, questions};
use crate::{
    client::{Call, Client, Effect, To},
    error::{Error, Refusal},
    name::TopicName,
    types::{Answers, BrokerId, Changes, TopicPartition, by_topic, message, topic_name},
};

/// What is to become of a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// These replicas, the preferred leader first.
    Replicas(Vec<BrokerId>),
    /// The move under way is taken back. The order that the replicas had is lost with it: send the
    /// wanted order afterwards.
    Cancel,
}

/// A move under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reassignment {
    /// The target, then what will be removed.
    pub replicas: Vec<BrokerId>,
    /// What is being added.
    pub adding: Vec<BrokerId>,
    /// What will be removed.
    pub removing: Vec<BrokerId>,
}

impl Client {
    /// Starts or cancels moves. The answer to each is given at once; the data follows. Unless
    /// `may_change_factor`, a target with another number of replicas is refused (by brokers of Kafka
    /// 4.1 and later; earlier ones do not look).
    pub async fn alter_reassignments(
        &self,
        targets: &BTreeMap<TopicPartition, Target>,
        may_change_factor: bool,
    ) -> Changes {
        let targets: Vec<(TopicPartition, Target)> = targets.clone().into_iter().collect();
        in_pieces(&targets, self.settings().partitions_at_once, |some: Vec<(TopicPartition, Target)>| async move {
            // The same target again changes nothing. The same cancel again would be refused for having worked, or
            // cancel what somebody else has begun since.
            let cancels = some.iter().any(|(_, target)| matches!(target, Target::Cancel));
            let effect = if cancels { Effect::Once } else { Effect::Repeatable };
            let call = Call { operation: "alter reassignments", to: To::Controller, effect };
            let request = |version| {
                let topics = by_topic(some.iter().map(|(partition, target)| {
                    let replicas = match target {
                        Target::Replicas(ids) => Some(BrokerId::to_wire(ids)),
                        Target::Cancel => None,
                    };
                    let index = partition.partition;
                    let wanted = ReassignablePartition::default().with_partition_index(index).with_replicas(replicas);
                    (partition.topic.as_str(), wanted)
                }));
                let topics = topics.into_iter().map(|(name, partitions)| {
                    ReassignableTopic::default().with_name(topic_name(name)).with_partitions(partitions)
                });
                let request = AlterPartitionReassignmentsRequest::default()
                    .with_timeout_ms(self.broker_patience_ms())
                    .with_topics(topics.collect());
                if version >= 1 { request.with_allow_replication_factor_change(may_change_factor) } else { request }
            };
            let answer = self
                .ask(call, request, |answer: &messages::AlterPartitionReassignmentsResponse| {
                    Refusal::check(answer.error_code, message(answer.error_message.clone()))
                })
                .await?;
            let mut answers = Answers::new();
            for topic in answer.responses {
                let name = TopicName::from(&*topic.name.0);
                for partition in topic.partitions {
                    answers.insert(
                        TopicPartition::new(&name, partition.partition_index),
                        Refusal::check(partition.error_code, message(partition.error_message)),
                    );
                }
            }
            Ok(answers)
        })
        .await
    }

    /// Moves under way: of these partitions, or all. All of them come in one answer, however many:
    /// Kafka knows no other way, so whoever has moved very many names them.
    pub async fn list_reassignments(
        &self,
        partitions: Option<&[TopicPartition]>,
    ) -> Result<BTreeMap<TopicPartition, Reassignment>, Error> {
        let mut moves = BTreeMap::new();
        for some in questions(partitions, self.settings().partitions_at_once) {
            self.list_some(some, &mut moves).await?;
        }
        Ok(moves)
    }

    async fn list_some(
        &self,
        partitions: Option<&[TopicPartition]>,
        moves: &mut BTreeMap<TopicPartition, Reassignment>,
    ) -> Result<(), Error> {
        let call = Call { operation: "list reassignments", to: To::Controller, effect: Effect::Repeatable };
        let request = |_| {
            let topics = partitions.map(|partitions| {
                let topics = by_topic(partitions.iter().map(|one| (one.topic.as_str(), one.partition)));
                let asked = |(name, indexes): (&str, Vec<i32>)| {
                    ListPartitionReassignmentsTopics::default()
                        .with_name(topic_name(name))
                        .with_partition_indexes(indexes)
                };
                topics.into_iter().map(asked).collect()
            });
            ListPartitionReassignmentsRequest::default().with_timeout_ms(self.broker_patience_ms()).with_topics(topics)
        };
        let answer = self
            .ask(call, request, |answer: &messages::ListPartitionReassignmentsResponse| {
                Refusal::check(answer.error_code, message(answer.error_message.clone()))
            })
            .await?;
        for topic in answer.topics {
            let name = TopicName::from(&*topic.name.0);
            for partition in topic.partitions {
                moves.insert(
                    TopicPartition::new(&name, partition.partition_index),
                    Reassignment {
                        replicas: BrokerId::list(&partition.replicas),
                        adding: BrokerId::list(&partition.adding_replicas),
                        removing: BrokerId::list(&partition.removing_replicas),
                    },
                );
            }
        }
        Ok(())
    }
}
