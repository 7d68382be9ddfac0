//! Choosing leaders anew.

use kafka_protocol::messages::{self, ElectLeadersRequest, elect_leaders_request::TopicPartitions};

use super::in_pieces;
use crate::{
    client::{Call, Client, Effect, To},
    error::Refusal,
    name::TopicName,
    types::{Answers, Changes, TopicPartition, by_topic, message, topic_name},
};

/// Who may be elected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Election {
    /// The first replica, if it is in sync.
    Preferred,
    /// Anybody alive if nobody in sync is: data may be lost.
    Unclean,
}

impl Client {
    /// Elects leaders. A partition that is led as it should be answers
    /// [`crate::ErrorCode::ELECTION_NOT_NEEDED`].
    pub async fn elect_leaders(&self, election: Election, partitions: &[TopicPartition]) -> Changes {
        in_pieces(partitions, self.settings().partitions_at_once, |some: Vec<TopicPartition>| async move {
            let call = Call { operation: "elect leaders", to: To::Controller, effect: Effect::Repeatable };
            let request = |_| {
                let topics = by_topic(some.iter().map(|one| (one.topic.as_str(), one.partition)));
                let topics = topics.into_iter().map(|(name, indexes)| {
                    TopicPartitions::default().with_topic(topic_name(name)).with_partitions(indexes)
                });
                ElectLeadersRequest::default()
                    .with_election_type(match election {
                        Election::Preferred => 0,
                        Election::Unclean => 1,
                    })
                    .with_topic_partitions(Some(topics.collect()))
                    .with_timeout_ms(self.broker_patience_ms())
            };
            let answer = self
                .ask(call, request, |answer: &messages::ElectLeadersResponse| Refusal::check(answer.error_code, None))
                .await?;
            let mut answers = Answers::new();
            for topic in answer.replica_election_results {
                let name = TopicName::from(&*topic.topic.0);
                for partition in topic.partition_result {
                    answers.insert(
                        TopicPartition::new(&name, partition.partition_id),
                        Refusal::check(partition.error_code, message(partition.error_message)),
                    );
                }
            }
            Ok(answers)
        })
        .await
    }
}
