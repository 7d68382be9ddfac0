//! The few words that all calls share.

use std::{collections::BTreeMap, fmt};

use kafka_protocol::{messages, protocol::StrBytes};
use serde::{Deserialize, Serialize};

use crate::{
    error::{Error, Refusal},
    name::TopicName,
};

/// A broker's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct BrokerId(pub i32);

impl fmt::Display for BrokerId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

impl BrokerId {
    /// The wire says -1 for nobody.
    pub(crate) fn of(wire: messages::BrokerId) -> Option<Self> {
        (wire.0 >= 0).then_some(Self(wire.0))
    }

    pub(crate) fn list(wire: &[messages::BrokerId]) -> Vec<Self> {
        wire.iter().map(|id| Self(id.0)).collect()
    }

    pub(crate) fn to_wire(ids: &[Self]) -> Vec<messages::BrokerId> {
        ids.iter().map(|id| messages::BrokerId(id.0)).collect()
    }
}

/// One partition of one topic.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TopicPartition {
    /// The topic's name.
    pub topic: TopicName,
    /// The partition's index.
    pub partition: i32,
}

impl TopicPartition {
    /// One partition of `topic`.
    pub fn new(topic: impl Into<TopicName>, partition: i32) -> Self {
        Self { topic: topic.into(), partition }
    }
}

impl fmt::Display for TopicPartition {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}-{}", self.topic, self.partition)
    }
}

/// What a broker said about each partition of a call.
pub type Answers<T = ()> = BTreeMap<TopicPartition, Result<T, Refusal>>;

/// What came of a call that goes out in several requests, for each thing that it is about. What has
/// no answer may or may not have been changed if its request was interrupted: look at the cluster.
#[derive(Debug)]
#[must_use]
pub struct Changes<Thing: Ord = TopicPartition, T = ()> {
    /// What the brokers answered.
    pub answers: BTreeMap<Thing, Result<T, Refusal>>,
    /// Why the rest was not asked for, or has no answer.
    pub interrupted: Option<Error>,
}

impl<Thing: Ord, T> Changes<Thing, T> {
    /// The answers if nothing is missing, for callers to whom some are as good as none.
    pub fn whole(self) -> Result<BTreeMap<Thing, Result<T, Refusal>>, Error> {
        self.interrupted.map_or(Ok(self.answers), Err)
    }
}

pub(crate) fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

pub(crate) fn topic_name(name: &str) -> messages::TopicName {
    messages::TopicName(text(name))
}

pub(crate) fn message(wire: Option<StrBytes>) -> Option<String> {
    wire.map(|text| text.to_string()).filter(|text| !text.is_empty())
}

/// Things by topic, in the order of topics and, inside, as they came.
pub(crate) fn by_topic<'a, T>(things: impl IntoIterator<Item = (&'a str, T)>) -> BTreeMap<&'a str, Vec<T>> {
    let mut topics: BTreeMap<&str, Vec<T>> = BTreeMap::new();
    for (topic, thing) in things {
        topics.entry(topic).or_default().push(thing);
    }
    topics
}
