//! Samples in topics of the managed Kafka, in the original's layout: what was measured outlives us, and
//! either of us reads the other's.

use std::collections::BTreeMap;

use bytes::Bytes;
use evenkeel_kafka::{
    Client, Error, ErrorCode, Refusal, TopicPartition,
    calls::{
        offsets::Isolation,
        topics::{Layout, NewTopic, Which},
    },
    records::{Compression, Record},
    topic::{Gaps, Start, TopicReader, TopicWriter, Until},
};

use super::{broker_sample::BrokerSample, sample::PartitionSample};
use crate::config::{
    settings::Monitor,
    store::{Keeping, SampleStore},
};

/// Samples written at once: a hundred thousand at a time would be in memory several times over.
const AT_ONCE: usize = 20_000;

/// The topics of partitions' and brokers' samples.
#[derive(Debug)]
pub(super) struct Store {
    client: Client,
    topics: [String; 2],
    settings: SampleStore,
    writer: Option<Writing>,
}

/// What is needed to write.
#[derive(Debug)]
struct Writing {
    writer: TopicWriter,
    /// How many partitions the topics have; they may have been made by somebody else.
    partitions: [i32; 2],
}

impl Store {
    pub(super) fn new(client: Client, settings: &Monitor) -> Self {
        Store { client, topics: settings.stores.clone(), settings: settings.store.clone(), writer: None }
    }

    /// Hands over what was kept of partitions of `since` and later, where there are no gaps or some are allowed. Topics that
    /// are not there are made. What brokers did is kept for the original: here nobody asks what they did before.
    pub(super) async fn load(
        &self,
        since: i64,
        gaps: Gaps,
        mut take: impl FnMut(PartitionSample),
    ) -> Result<(), Error> {
        if self.settings.keeping == Keeping::No {
            return Ok(());
        }
        self.make().await?;
        let [topic, _] = &self.topics;
        let (start, client, isolation) = (Start::AtOrAfter(since), self.client.clone(), Isolation::Uncommitted);
        let mut reader = match TopicReader::open_with(client, topic, &start, Until::End, isolation, gaps).await {
            Err(error) if is_missing(&error) => return Ok(()),
            opened => opened?,
        };
        let mut unreadable = 0_u64;
        while let Some(records) = reader.next().await? {
            for value in records.into_iter().filter_map(|record| record.stored.record.value) {
                match PartitionSample::read(&value) {
                    Some(sample) => take(sample),
                    None => unreadable += 1,
                }
            }
        }
        if unreadable > 0 {
            tracing::warn!(topic, unreadable, "some stored samples cannot be read");
        }
        if !reader.gaps().is_empty() {
            let partitions: Vec<i32> = reader.gaps().keys().copied().collect();
            tracing::warn!(?partitions, topic, "nobody can be asked for these partitions of stored samples");
        }
        reader.nothing_read().map_or(Ok(()), Err)
    }

    /// Keeps samples. One that fails is begun anew the next time; what it was to keep is not kept.
    pub(super) async fn write(
        &mut self,
        partitions: &[PartitionSample],
        brokers: &[BrokerSample],
    ) -> Result<(), Error> {
        if self.settings.keeping != Keeping::ReadAndWritten || partitions.is_empty() && brokers.is_empty() {
            return Ok(());
        }
        let mut writing = match self.writer.take() {
            Some(writing) => writing,
            None => self.open().await?,
        };
        for some in partitions.chunks(AT_ONCE) {
            let records = some.iter().map(|sample| (place(&sample.partition), record(sample.write(), sample.time)));
            let spread = spread(&self.topics[0], writing.partitions[0], records);
            writing.writer.write(&spread).await?;
        }
        let records = brokers.iter().map(|sample| (i64::from(sample.broker), record(sample.write(), sample.time)));
        let spread = spread(&self.topics[1], writing.partitions[1], records);
        if !spread.is_empty() {
            writing.writer.write(&spread).await?;
        }
        self.writer = Some(writing);
        Ok(())
    }

    async fn open(&self) -> Result<Writing, Error> {
        self.make().await?;
        let found = self.client.topics(Which::Named(&self.topics)).await?;
        let mut partitions = [0; 2];
        for (topic, count) in self.topics.iter().zip(&mut partitions) {
            let missing = Err(Refusal { code: ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, message: None });
            let operation = "find the topic of samples";
            match found.get(topic).cloned().unwrap_or(missing) {
                Ok(topic) => *count = i32::try_from(topic.partitions.len()).unwrap_or(i32::MAX),
                Err(refusal) => return Err(Error::Refused { operation, refusal }),
            }
        }
        let writer = TopicWriter::idempotent(self.client.clone(), Compression::Gzip).await?;
        Ok(Writing { writer, partitions })
    }

    /// Makes the topics that are not there.
    async fn make(&self) -> Result<(), Error> {
        if self.settings.keeping != Keeping::ReadAndWritten {
            return Ok(());
        }
        let found = self.client.topics(Which::Named(&self.topics)).await?;
        let missing = |topic: &&String| !matches!(found.get(*topic), Some(Ok(_)));
        if self.topics.iter().filter(missing).count() == 0 {
            return Ok(());
        }
        let brokers = self.client.describe_cluster().await?.brokers.iter().filter(|broker| !broker.fenced).count();
        let wanted: Vec<NewTopic> = new_topics(&self.topics, &self.settings, brokers)
            .into_iter()
            .filter(|topic| missing(&&topic.name))
            .collect();
        for (_, made) in self.client.create_topics(&wanted, false).await.whole()? {
            match made {
                Err(refusal) if refusal.code != ErrorCode::TOPIC_ALREADY_EXISTS => {
                    return Err(Error::Refused { operation: "make the topics of samples", refusal });
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Both topics, as the original makes them, with no more replicas than there are brokers.
fn new_topics(names: &[String; 2], settings: &SampleStore, brokers: usize) -> [NewTopic; 2] {
    let replicas = settings.replicas.min(i16::try_from(brokers).unwrap_or(i16::MAX)).max(1);
    std::array::from_fn(|at| NewTopic {
        name: names[at].clone(),
        layout: Layout::Automatic { partitions: Some(settings.partitions[at]), replication_factor: Some(replicas) },
        configs: [
            ("cleanup.policy".to_owned(), "delete".to_owned()),
            // Made while brokers are still coming up they may have a single replica; what the brokers' own default asks
            // of others, these topics would never have. And samples are no loss.
            ("min.insync.replicas".to_owned(), "1".to_owned()),
            ("retention.ms".to_owned(), settings.retention[at].to_string()),
        ]
        .into(),
    })
}

fn record(value: Vec<u8>, timestamp: i64) -> Record {
    Record { value: Some(Bytes::from(value)), timestamp, ..Record::default() }
}

/// A number that spreads partitions evenly: neighbours go to different places.
fn place(partition: &TopicPartition) -> i64 {
    let name = partition.topic.bytes().fold(0_i64, |sum, byte| sum.wrapping_mul(31).wrapping_add(i64::from(byte)));
    name.wrapping_add(i64::from(partition.partition))
}

/// Records by the partition of `topic` that they go to.
fn spread(
    topic: &str,
    partitions: i32,
    records: impl Iterator<Item = (i64, Record)>,
) -> BTreeMap<TopicPartition, Vec<Record>> {
    let mut spread: BTreeMap<TopicPartition, Vec<Record>> = BTreeMap::new();
    for (place, record) in records {
        let partition = place.rem_euclid(i64::from(partitions.max(1))) as i32;
        spread.entry(TopicPartition::new(topic, partition)).or_default().push(record);
    }
    spread
}

fn is_missing(error: &Error) -> bool {
    error.refusal().is_some_and(|refusal| refusal.code == ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> SampleStore {
        SampleStore { keeping: Keeping::ReadAndWritten, partitions: [32, 8], replicas: 2, retention: [7, 9] }
    }

    #[test]
    fn topics_are_made_as_the_original_makes_them_and_fit_small_clusters() {
        let names = ["p".to_owned(), "b".to_owned()];
        let made = new_topics(&names, &settings(), 3);
        assert_eq!(made[0].layout, Layout::Automatic { partitions: Some(32), replication_factor: Some(2) });
        assert_eq!(made[0].configs["retention.ms"], "7");
        assert_eq!(made[1].layout, Layout::Automatic { partitions: Some(8), replication_factor: Some(2) });
        let lonely = new_topics(&names, &settings(), 1);
        assert_eq!(lonely[1].layout, Layout::Automatic { partitions: Some(8), replication_factor: Some(1) });
        assert_eq!(lonely[1].configs["min.insync.replicas"], "1", "one replica is all that it will ever have");
    }

    #[test]
    fn samples_are_spread_evenly_and_a_partition_stays_where_it_is() {
        let places = (0..64).map(|number| place(&TopicPartition::new("orders", number)));
        let spread = spread("s", 32, places.map(|place| (place, record(vec![1], 5))));
        assert_eq!(spread.len(), 32);
        assert!(spread.values().all(|records| records.len() == 2));
        assert_eq!(place(&TopicPartition::new("a", 1)), place(&TopicPartition::new("a", 1)));
    }
}
