//! Between the heart's words and the codec's.

use std::collections::BTreeMap;
use std::sync::Arc;

use kafka_protocol::messages::{BrokerId as WireBroker, TopicName};
use kafka_protocol::protocol::StrBytes;
use uuid::Uuid;

use crate::code::Refusal;
use crate::ids::{BrokerId, TopicId, TopicPartition};

pub(super) fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

pub(super) fn topic(name: &str) -> TopicName {
    TopicName(text(name))
}

pub(super) fn broker(id: Option<BrokerId>) -> WireBroker {
    WireBroker(id.map_or(-1, |id| id.0))
}

pub(super) fn brokers(ids: &[BrokerId]) -> Vec<WireBroker> {
    ids.iter().map(|id| WireBroker(id.0)).collect()
}

pub(super) fn ids(wire: &[WireBroker]) -> Vec<BrokerId> {
    wire.iter().map(|id| BrokerId(id.0)).collect()
}

pub(super) fn uuid(id: TopicId) -> Uuid {
    Uuid::from_u128(id.0)
}

pub(super) fn topic_id(uuid: &Uuid) -> TopicId {
    TopicId(uuid.as_u128())
}

pub(super) fn partition(name: &TopicName, partition: i32) -> TopicPartition {
    TopicPartition::new(name.as_str(), partition)
}

/// Code and message of a result.
pub(super) fn outcome<T>(result: &Result<T, Refusal>) -> (i16, Option<StrBytes>) {
    match result {
        Ok(_) => (0, None),
        Err(refusal) => (refusal.code.number(), Some(text(&refusal.message))),
    }
}

/// Answers about partitions, gathered by topic in their order.
pub(super) fn by_topic<T>(items: impl IntoIterator<Item = (TopicPartition, T)>) -> BTreeMap<Arc<str>, Vec<(i32, T)>> {
    let mut topics: BTreeMap<Arc<str>, Vec<(i32, T)>> = BTreeMap::new();
    for (tp, item) in items {
        topics.entry(tp.topic).or_default().push((tp.partition, item));
    }
    topics
}
