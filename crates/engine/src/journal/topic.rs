//! The journal's topic in the managed Kafka itself.
//!
//! Opening it takes the transactional id over first and reads then: whoever had it before can write
//! no more, and all it had decided is seen.

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use evenkeel_kafka::{
    Client, Error, ErrorCode, TopicPartition,
    calls::{
        offsets::Isolation,
        topics::{Layout, NewTopic},
    },
    records::{Compression, Record},
    topic::{Start, TopicReader, TopicWriter, Until},
};

use super::{Entry, Recovered, recover};

/// Its name. One partition: the order of records is the order of deeds.
pub const TOPIC: &str = "__EvenkeelJournal";
/// The transactional id that whoever acts has taken.
pub const TRANSACTIONAL_ID: &str = "evenkeel-engine";
/// A transaction is one step of an execution: it is over in no time, or its process is gone.
const TRANSACTION_TIMEOUT: Duration = Duration::from_secs(60);

/// The journal, open for writing.
#[derive(Debug)]
pub struct JournalTopic {
    writer: TopicWriter,
}

impl JournalTopic {
    /// Opens it, shutting out whoever had it open, and tells what it holds. It is made if it is not
    /// there, with up to three replicas.
    pub async fn open(client: Client) -> Result<(JournalTopic, Recovered), Error> {
        make(&client).await?;
        let writer =
            TopicWriter::transactional(client.clone(), TRANSACTIONAL_ID, TRANSACTION_TIMEOUT, Compression::None)
                .await?;
        let mut reader = TopicReader::open(client, TOPIC, &Start::Earliest, Until::End, Isolation::Committed).await?;
        let mut entries = Vec::new();
        while let Some(records) = reader.next().await? {
            entries.extend(records.into_iter().filter_map(|record| {
                let record = record.stored.record;
                let key = String::from_utf8(record.key?.to_vec()).ok()?;
                Some(Entry { key, value: record.value.map(|value| value.to_vec()) })
            }));
        }
        Ok((JournalTopic { writer }, recover(entries)))
    }

    /// Writes entries, all or none. When this returns they will be found by whoever comes next.
    pub async fn append(&mut self, entries: Vec<Entry>) -> Result<(), Error> {
        let records = entries
            .into_iter()
            .map(|entry| Record {
                key: Some(Bytes::from(entry.key)),
                value: entry.value.map(Bytes::from),
                ..Record::default()
            })
            .collect();
        let written = self.writer.write(&BTreeMap::from([(TopicPartition::new(TOPIC, 0), records)])).await;
        let done = match written {
            Ok(_) => self.writer.commit().await,
            Err(error) => Err(error),
        };
        if done.is_err() {
            // Nobody knows how much is there: none of it must be seen, unless all of it was decided already.
            self.writer.abort().await?;
        }
        done
    }
}

async fn make(client: &Client) -> Result<(), Error> {
    let brokers = client.describe_cluster().await?.brokers.iter().filter(|broker| !broker.fenced).count();
    let replicas = i16::try_from(brokers.clamp(1, 3)).unwrap_or(1);
    let configs = [
        ("cleanup.policy", "compact".to_owned()),
        ("min.insync.replicas", (replicas - 1).max(1).to_string()),
        // Small segments are compacted soon, so that little is read at a start.
        ("segment.bytes", (16 * 1024 * 1024).to_string()),
        ("max.message.bytes", (2 * 1024 * 1024).to_string()),
    ];
    let topic = NewTopic {
        name: TOPIC.to_owned(),
        layout: Layout::Automatic { partitions: Some(1), replication_factor: Some(replicas) },
        configs: configs.map(|(name, value)| (name.to_owned(), value)).into(),
    };
    match client.create_topics(&[topic], false).await.whole()?.remove(TOPIC) {
        Some(Err(refusal)) if refusal.code != ErrorCode::TOPIC_ALREADY_EXISTS => {
            Err(Error::Refused { operation: "make the journal's topic", refusal })
        }
        _ => Ok(()),
    }
}
