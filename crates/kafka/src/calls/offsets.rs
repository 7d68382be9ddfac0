//! Where logs begin and end, and what was written when.

use std::collections::BTreeMap;

use kafka_protocol::messages::{
    self, ListOffsetsRequest,
    list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic},
};

use crate::{
    client::{Client, Effect},
    error::{Error, Refusal},
    name::TopicName,
    types::{Answers, TopicPartition, by_topic, topic_name},
};

/// A place in a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The first record there is.
    Earliest,
    /// Behind the last record that readers may see.
    Latest,
    /// The first record of this time (milliseconds since 1970) or later.
    AtOrAfter(i64),
}

/// Which records a reader sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// All that the replicas agree on.
    Uncommitted,
    /// No transaction that is open or was aborted.
    Committed,
}

impl Isolation {
    pub(crate) fn to_wire(self) -> i8 {
        match self {
            Self::Uncommitted => 0,
            Self::Committed => 1,
        }
    }
}

impl Client {
    /// The offsets of places. `None`: nothing was written at that time or later.
    pub async fn list_offsets(
        &self,
        places: &BTreeMap<TopicPartition, Place>,
        isolation: Isolation,
    ) -> Result<Answers<Option<i64>>, Error> {
        let request = |_, some: &[(&TopicPartition, &Place)], _| {
            let topics = by_topic(some.iter().map(|(partition, place)| {
                let timestamp = match place {
                    Place::Latest => -1,
                    Place::Earliest => -2,
                    Place::AtOrAfter(timestamp) => (*timestamp).max(0),
                };
                let asked =
                    ListOffsetsPartition::default().with_partition_index(partition.partition).with_timestamp(timestamp);
                (partition.topic.as_str(), asked)
            }));
            let topics = topics.into_iter().map(|(name, partitions)| {
                ListOffsetsTopic::default().with_name(topic_name(name)).with_partitions(partitions)
            });
            ListOffsetsRequest::default()
                .with_replica_id(messages::BrokerId(-1))
                .with_isolation_level(isolation.to_wire())
                .with_topics(topics.collect())
        };
        let split = |answer: messages::ListOffsetsResponse| {
            let mut answers = Answers::new();
            for topic in answer.topics {
                let name = TopicName::from(&*topic.name.0);
                for partition in topic.partitions {
                    answers.insert(
                        TopicPartition::new(&name, partition.partition_index),
                        Refusal::check(partition.error_code, None)
                            .map(|()| Some(partition.offset).filter(|offset| *offset >= 0)),
                    );
                }
            }
            answers
        };
        self.ask_leaders("list offsets", Effect::Repeatable, places, request, split).await
    }
}
