//! What a broker shows of the cluster: the controller's record as it was a moment ago.
//!
//! Each broker trails by a lag of its own that wanders between the bounds of the options. Its slope
//! is below one, so no broker ever goes back in time.

use std::sync::Arc;

use super::Cluster;
use super::broker::Standing;
use super::names;
use super::registration::Registration;
use super::topic::{Partition, Topic};
use crate::code::{Code, Refusal};
use crate::dice::mix;
use crate::ids::{BrokerId, Millis, TopicId, TopicPartition};

/// A broker as others show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokerView {
    /// Its id.
    pub id: BrokerId,
    /// Its rack.
    pub rack: Option<String>,
    /// Whether the controller has fenced it.
    pub fenced: bool,
}

/// A topic as a broker shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicView {
    /// Its name.
    pub name: Arc<str>,
    /// Its id.
    pub id: TopicId,
    /// Whether it is one of Kafka's own.
    pub internal: bool,
    /// Its partitions in order.
    pub partitions: Vec<PartitionView>,
}

/// A partition as a broker shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionView {
    /// Its number.
    pub partition: i32,
    /// Its record.
    pub registration: Registration,
    /// Replicas whose broker or directory is gone.
    pub offline: Vec<BrokerId>,
}

/// How long one lag is on its way to the next.
const WANDER: Millis = 1_000;

impl Cluster {
    /// The moment that `broker` believes is now.
    pub fn view_time(&self, broker: BrokerId) -> Millis {
        if let Some((frozen_at, until)) = self.brokers.get(&broker).and_then(|it| it.stale)
            && self.now < until
        {
            return frozen_at;
        }
        let (least, most) = self.options.metadata_lag;
        let lag_of = |second: Millis| {
            let draw = mix(self.options.seed ^ mix(second as u64 ^ ((broker.0 as u64) << 40)));
            least + (draw % ((most - least).max(0) as u64 + 1)) as Millis
        };
        let (second, part) = (self.now.div_euclid(WANDER), self.now.rem_euclid(WANDER));
        let (from, to) = (lag_of(second), lag_of(second + 1));
        self.now - (from + (to - from) * part / WANDER)
    }

    /// No broker looks further back than this.
    pub(super) fn oldest_view(&self) -> Millis {
        let stale = self.brokers.values().filter_map(|it| it.stale).filter(|(_, until)| self.now < *until);
        let stale = stale.map(|(frozen_at, _)| frozen_at).min();
        let usual = self.now - self.options.metadata_lag.1 - 1;
        stale.map_or(usual, |frozen_at| frozen_at.min(usual))
    }

    /// The brokers that `asked` knows; fenced ones are hidden unless wanted.
    pub fn describe_brokers(&self, asked: BrokerId, include_fenced: bool) -> Vec<BrokerView> {
        let when = self.view_time(asked);
        let seen = self.brokers.values().map(|broker| (broker, at(&broker.past, broker.standing(), when)));
        seen.filter(|(_, standing)| standing.registered && (include_fenced || !standing.fenced))
            .map(|(broker, standing)| BrokerView {
                id: broker.spec.id,
                rack: broker.spec.rack.clone(),
                fenced: standing.fenced,
            })
            .collect()
    }

    /// The cluster's id: 22 characters, from the seed.
    pub fn cluster_id(&self) -> &str {
        &self.cluster_id
    }

    /// The end of the metadata log.
    pub fn metadata_offset(&self) -> i64 {
        self.metadata_offset
    }

    /// The broker that passes for the controller: always a live one, never the controller itself.
    pub fn shown_controller(&self) -> Option<BrokerId> {
        self.shown_controller
    }

    /// All topics that `asked` knows.
    pub fn describe_topics(&self, asked: BrokerId) -> Vec<TopicView> {
        let when = self.view_time(asked);
        self.seen_at(when).into_iter().map(|topic| self.show(topic, when)).collect()
    }

    /// The names of all topics that `asked` knows, in order.
    pub fn topic_names(&self, asked: BrokerId) -> Vec<Arc<str>> {
        self.seen_at(self.view_time(asked)).into_iter().map(|topic| topic.name.clone()).collect()
    }

    fn seen_at(&self, when: Millis) -> Vec<&Topic> {
        let mut seen: Vec<&Topic> = self.topics.values().filter(|topic| topic.created_at <= when).collect();
        let gone = self.gone.iter().filter(|(deleted_at, topic)| *deleted_at > when && topic.created_at <= when);
        seen.extend(gone.map(|(_, topic)| topic));
        seen.sort_by(|a, b| a.name.cmp(&b.name));
        seen
    }

    /// One topic as `asked` knows it. What no topic could be called is told from what is not there.
    pub fn describe_topic(&self, asked: BrokerId, name: &str) -> Result<TopicView, Refusal> {
        let when = self.view_time(asked);
        let seen = self.topics.get(name).filter(|topic| topic.created_at <= when).or_else(|| {
            let gone = self.gone.iter().filter(|(deleted_at, topic)| *deleted_at > when && topic.created_at <= when);
            gone.map(|(_, topic)| topic).find(|topic| *topic.name == *name)
        });
        seen.map(|topic| self.show(topic, when))
            .ok_or_else(|| names::check(name).err().unwrap_or_else(|| Code::UnknownTopicOrPartition.plain()))
    }

    /// Whether `asked` has heard of a topic yet.
    pub fn knows_topic(&self, asked: BrokerId, name: &str) -> Result<(), Refusal> {
        let known = self.topics.get(name).is_some_and(|topic| topic.created_at <= self.view_time(asked));
        if known { Ok(()) } else { Err(Code::UnknownTopicOrPartition.plain()) }
    }

    /// Whether `asked` has heard yet that it leads a partition. One that does not lead it any more is told elsewhere:
    /// it can no longer write what others would keep.
    pub fn knows_it_leads(&self, asked: BrokerId, tp: &TopicPartition) -> Result<(), Refusal> {
        self.knows_topic(asked, &tp.topic)?;
        let when = self.view_time(asked);
        let known = self.lookup(tp).filter(|(_, partition)| partition.created_at <= when);
        let Some((_, partition)) = known else { return Err(Code::UnknownTopicOrPartition.plain()) };
        let leads = partition.seen_at(when).leader == Some(asked);
        if leads { Ok(()) } else { Err(Code::NotLeaderOrFollower.plain()) }
    }

    fn show(&self, topic: &Topic, when: Millis) -> TopicView {
        let born = (0..).zip(&topic.partitions).filter(|(_, partition)| partition.created_at <= when);
        TopicView {
            name: topic.name.clone(),
            id: topic.id,
            internal: matches!(&*topic.name, "__consumer_offsets" | "__transaction_state" | "__share_group_state"),
            partitions: born.map(|(number, partition)| self.show_partition(number, partition, when)).collect(),
        }
    }

    fn show_partition(&self, number: i32, partition: &Partition, when: Millis) -> PartitionView {
        let registration = partition.seen_at(when).clone();
        let gone = |id: &BrokerId| {
            let standing: Option<Standing> =
                self.brokers.get(id).map(|broker| at(&broker.past, broker.standing(), when));
            !standing.is_some_and(|it| it.registered && !it.fenced) || partition.is_offline(*id, &self.brokers)
        };
        let offline = registration.replicas.iter().copied().filter(gone).collect();
        PartitionView { partition: number, registration, offline }
    }

    /// The partitions that have a replica on a broker, straight from the controller.
    pub fn replicas_on(&self, broker: BrokerId) -> Vec<TopicPartition> {
        self.partitions_on(broker)
    }
}

impl Partition {
    /// What the controller had on record at `when`.
    fn seen_at(&self, when: Millis) -> &Registration {
        let before = self.past.iter().find(|(until, _)| *until > when);
        before.map_or(&self.registration, |(_, before)| before)
    }
}

/// What held at `when`, given what held until which moments, and what holds now.
fn at<T: Copy>(past: &[(Millis, T)], present: T, when: Millis) -> T {
    past.iter().find(|(until, _)| *until > when).map_or(present, |(_, before)| *before)
}

#[cfg(test)]
mod tests {
    use super::super::{BrokerSpec, Fault, NewTopic, Options};
    use super::*;

    #[test]
    fn what_nobody_looks_back_to_is_forgotten_though_somebody_once_stood_still() {
        let mut cluster = Cluster::new(Options::default(), (0..2).map(BrokerSpec::new));
        cluster.suffer(&Fault::StaleMetadata(BrokerId(0), 1_000));
        for round in 0..20 {
            let name = format!("t-{round}");
            cluster.create_topic(&NewTopic::new(&name, 1, 1), false).expect("made");
            cluster.stop_broker(BrokerId(1));
            cluster.tick(1_000);
            cluster.start_broker(BrokerId(1));
            cluster.tick(1_000);
            cluster.delete_topic(&name).expect("it is there");
        }
        assert_eq!(cluster.gone.len(), 1);
        let past = cluster.brokers.values().map(|broker| broker.past.len()).max();
        assert!(past <= Some(2), "{past:?}");
    }
}
