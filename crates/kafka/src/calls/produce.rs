//! Writing batches of records.

use std::collections::BTreeMap;

use bytes::Bytes;
use kafka_protocol::messages::{
    self, ProduceRequest, TransactionalId,
    produce_request::{PartitionProduceData, TopicProduceData},
};

use crate::{
    client::{Client, Effect},
    error::{Error, Refusal},
    name::TopicName,
    types::{Answers, TopicPartition, by_topic, message, text, topic_name},
};

/// Every replica in sync has it before it is acknowledged.
const ALL_IN_SYNC: i16 = -1;

/// Who writes, as far as repeating matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writing<'a> {
    /// Without a producer id: a lost answer is an error, since a repetition could write twice.
    Plain,
    /// With producer id and sequence in each batch: brokers know a repetition.
    Idempotent,
    /// The same, as part of the transaction of this id.
    Transactional(&'a str),
}

impl Client {
    /// Writes one batch ([`crate::records::encode_batch`]) to each partition; tells the offset of its
    /// first record.
    pub async fn produce(
        &self,
        batches: &BTreeMap<TopicPartition, Bytes>,
        writing: Writing<'_>,
    ) -> Result<Answers<i64>, Error> {
        let effect = if writing == Writing::Plain { Effect::Once } else { Effect::Repeatable };
        let transactional_id = match writing {
            Writing::Transactional(id) => Some(TransactionalId(text(id))),
            _ => None,
        };
        let request = |_, some: &[(&TopicPartition, &Bytes)], _| {
            let topics = by_topic(some.iter().map(|(partition, batch)| {
                let index = partition.partition;
                let data = PartitionProduceData::default().with_index(index).with_records(Some((*batch).clone()));
                (partition.topic.as_str(), data)
            }));
            let topics = topics.into_iter().map(|(name, partitions)| {
                TopicProduceData::default().with_name(topic_name(name)).with_partition_data(partitions)
            });
            ProduceRequest::default()
                .with_transactional_id(transactional_id.clone())
                .with_acks(ALL_IN_SYNC)
                .with_timeout_ms(self.broker_patience_ms())
                .with_topic_data(topics.collect())
        };
        let split = |answer: messages::ProduceResponse| {
            let mut answers = Answers::new();
            for topic in answer.responses {
                let name = TopicName::from(&*topic.name.0);
                for partition in topic.partition_responses {
                    let refused = Refusal::check(partition.error_code, message(partition.error_message));
                    answers
                        .insert(TopicPartition::new(&name, partition.index), refused.map(|()| partition.base_offset));
                }
            }
            answers
        };
        self.ask_leaders("write records", effect, batches, request, split).await
    }
}
