//! Reads all partitions of a topic, from a place on, to the end that was there at the start or for
//! ever.

use std::{collections::BTreeMap, time::Duration};

use tokio::time::{Instant, sleep_until};

use super::visible::visible;
use crate::{
    calls::{
        fetch::{FetchLimits, Fetched},
        offsets::{Isolation, Place},
        topics::Which,
    },
    client::Client,
    error::{Error, ErrorCode, Refusal},
    records::{RecordsError, StoredRecord, decode_batches},
    types::TopicPartition,
};

/// A batch that does not fit is asked for with twice the room, up to this.
const LARGEST_ROOM: i32 = 64 * 1024 * 1024;

/// By then every broker has heard of a topic that was just made.
const HEARD_WITHIN: Duration = Duration::from_secs(5);

/// Where to begin in every partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Start {
    /// At the first record there is.
    Earliest,
    /// At the first of this time (milliseconds since 1970) or later.
    AtOrAfter(i64),
    /// Behind all there is.
    Latest,
    /// At these offsets, by partition; at the first record in partitions that are not named.
    Offsets(BTreeMap<i32, i64>),
}

/// Where to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// At the end that was there when reading began.
    End,
    /// Never: what comes later is read as it comes.
    Forever,
}

/// A record and where it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicRecord {
    /// Its partition.
    pub partition: i32,
    /// The record, with its offset.
    pub stored: StoredRecord,
}

/// A topic being read.
#[derive(Debug)]
pub struct TopicReader {
    client: Client,
    topic: String,
    isolation: Isolation,
    limits: FetchLimits,
    /// Where each partition goes on.
    positions: BTreeMap<TopicPartition, i64>,
    /// Where each partition is to end; nothing when reading for ever.
    ends: BTreeMap<TopicPartition, i64>,
    until: Until,
}

impl TopicReader {
    /// Finds out where to begin and to end. Whoever is asked may not have heard yet of a topic that was just made, so
    /// one that is not there is asked for again for a moment.
    pub async fn open(
        client: Client,
        topic: &str,
        start: &Start,
        until: Until,
        isolation: Isolation,
    ) -> Result<Self, Error> {
        let heard = Instant::now() + HEARD_WITHIN;
        let mut failures = 0;
        loop {
            let opened = Self::open_now(client.clone(), topic, start, until, isolation).await;
            failures += 1;
            let again = Instant::now() + client.pause(failures);
            match opened {
                Err(error) if is_unknown(&error) && again < heard => sleep_until(again).await,
                opened => return opened,
            }
        }
    }

    async fn open_now(
        client: Client,
        topic: &str,
        start: &Start,
        until: Until,
        isolation: Isolation,
    ) -> Result<Self, Error> {
        let operation = "read a topic";
        let mut found = client.topics(Which::Named(&[topic.to_owned()])).await?;
        let missing = || Err(Refusal { code: ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, message: None });
        let found = found.remove(topic).unwrap_or_else(missing);
        let found = found.map_err(|refusal| Error::Refused { operation, refusal })?;
        let partitions: Vec<TopicPartition> =
            found.partitions.iter().map(|partition| TopicPartition::new(topic, partition.index)).collect();

        let places = |place: &dyn Fn(&TopicPartition) -> Place| -> BTreeMap<TopicPartition, Place> {
            partitions.iter().map(|partition| (partition.clone(), place(partition))).collect()
        };
        let ends = offsets(&client, &places(&|_| Place::Latest), isolation).await?;
        let begin = match start {
            Start::Earliest | Start::Offsets(_) => places(&|_| Place::Earliest),
            Start::AtOrAfter(timestamp) => places(&|_| Place::AtOrAfter(*timestamp)),
            Start::Latest => places(&|_| Place::Latest),
        };
        let begin = offsets(&client, &begin, isolation).await?;
        let mut positions = BTreeMap::new();
        for partition in partitions {
            let end = ends.get(&partition).copied().flatten().unwrap_or(0);
            // Nothing of that time or later: begin at the end.
            let earliest = begin.get(&partition).copied().flatten().unwrap_or(end);
            let named = match start {
                Start::Offsets(named) => named.get(&partition.partition).copied(),
                _ => None,
            };
            positions.insert(partition, named.map_or(earliest, |named| named.max(earliest)));
        }
        let ends = ends.into_iter().map(|(partition, end)| (partition, end.unwrap_or(0))).collect();
        let limits = FetchLimits::default();
        let reader = Self { client, topic: topic.to_owned(), isolation, limits, positions, ends, until };
        let beyond = |(partition, offset): &(&TopicPartition, &i64)| reader.ends.get(partition) < Some(offset);
        for (partition, _) in reader.positions.iter().filter(beyond) {
            reader.check_end(partition, 0).await?;
        }
        Ok(reader)
    }

    /// Where each partition goes on.
    pub fn positions(&self) -> BTreeMap<i32, i64> {
        self.positions.iter().map(|(partition, offset)| (partition.partition, *offset)).collect()
    }

    /// The next records, in order within each partition; `None` at the end. A reader that reads for
    /// ever returns nothing now and then, when nothing has come.
    pub async fn next(&mut self) -> Result<Option<Vec<TopicRecord>>, Error> {
        loop {
            let open = self.open_partitions();
            if open.is_empty() && self.until == Until::End {
                return Ok(None);
            }
            let fetched = self.client.fetch(&open, self.isolation, self.limits).await?;
            let mut records = Vec::new();
            for (partition, answer) in fetched {
                match answer {
                    Ok(fetched) => {
                        let (end, nothing) = (fetched.high_watermark, fetched.batches.is_empty());
                        // A log that has become shorter would never come to the end that it had.
                        if nothing && self.until == Until::End && Some(&end) < self.ends.get(&partition) {
                            self.check_end(&partition, self.ends.get(&partition).copied().unwrap_or(0)).await?;
                        }
                        self.take(partition, fetched, &mut records)?;
                    }
                    Err(refusal) if refusal.code == ErrorCode::OFFSET_OUT_OF_RANGE => self.go_on(&partition).await?,
                    Err(refusal) => return Err(Error::Refused { operation: "read a topic", refusal }),
                }
            }
            if !records.is_empty() || self.until == Until::Forever {
                return Ok(Some(records));
            }
        }
    }

    fn open_partitions(&self) -> BTreeMap<TopicPartition, i64> {
        let is_open = |partition: &TopicPartition, offset: i64| match self.until {
            Until::Forever => true,
            Until::End => offset < self.ends.get(partition).copied().unwrap_or(0),
        };
        let positions = self.positions.iter();
        positions
            .filter(|(partition, offset)| is_open(partition, **offset))
            .map(|(partition, offset)| (partition.clone(), *offset))
            .collect()
    }

    fn take(
        &mut self,
        partition: TopicPartition,
        fetched: Fetched,
        records: &mut Vec<TopicRecord>,
    ) -> Result<(), Error> {
        let from = self.positions.get(&partition).copied().unwrap_or(0);
        let something = !fetched.batches.is_empty();
        let batches: Vec<_> = decode_batches(fetched.batches).collect::<Result<_, _>>().map_err(|source| {
            let operation = "read the records";
            Error::Records { operation, topic: self.topic.clone(), partition: partition.partition, source }
        })?;
        if something && batches.is_empty() {
            self.make_room(&partition)?;
        }
        let aborted: &[_] = if self.isolation == Isolation::Committed { &fetched.aborted } else { &[] };
        let (seen, next) = visible(batches, aborted, from);
        // What came after the end that was there at the start is not asked for.
        let end = match self.until {
            Until::End => self.ends.get(&partition).copied().unwrap_or(0),
            Until::Forever => i64::MAX,
        };
        let index = partition.partition;
        let seen = seen.into_iter().filter(|stored| stored.offset < end);
        records.extend(seen.map(|stored| TopicRecord { partition: index, stored }));
        self.positions.insert(partition, next);
        Ok(())
    }

    /// Asks for more at once, since not even one batch came whole.
    fn make_room(&mut self, partition: &TopicPartition) -> Result<(), Error> {
        let room = self.limits.partition_bytes;
        if room >= LARGEST_ROOM {
            let (operation, source) = ("read the records", RecordsError::TooLarge(LARGEST_ROOM as usize));
            return Err(Error::Records {
                operation,
                topic: self.topic.clone(),
                partition: partition.partition,
                source,
            });
        }
        self.limits.partition_bytes = room.saturating_mul(2).min(LARGEST_ROOM);
        self.limits.total_bytes = self.limits.total_bytes.max(self.limits.partition_bytes);
        Ok(())
    }

    /// What was to be read next is not there. If retention has removed it, goes on with what there is; a log that has
    /// lost its end is an error.
    async fn go_on(&mut self, partition: &TopicPartition) -> Result<(), Error> {
        self.check_end(partition, 0).await?;
        let earliest = BTreeMap::from([(partition.clone(), Place::Earliest)]);
        let found = offsets(&self.client, &earliest, self.isolation).await?;
        let position = self.positions.get(partition).copied().unwrap_or(0);
        if let Some(Some(earliest)) = found.get(partition)
            && *earliest > position
        {
            tracing::warn!(%partition, position, earliest, "what was to be read next has been removed");
            self.positions.insert(partition.clone(), *earliest);
        }
        Ok(())
    }

    /// An error if the log ends before what is to be read of it, or before `least`. The leader does not answer this
    /// before it knows, so that an end which only lags behind is none.
    async fn check_end(&self, partition: &TopicPartition, least: i64) -> Result<(), Error> {
        let latest = BTreeMap::from([(partition.clone(), Place::Latest)]);
        let end = offsets(&self.client, &latest, Isolation::Uncommitted).await?.remove(partition).flatten();
        let position = self.positions.get(partition).copied().unwrap_or(0).max(least);
        match end {
            Some(end) if end < position => {
                Err(Error::Shortened { topic: self.topic.clone(), partition: partition.partition, position, end })
            }
            _ => Ok(()),
        }
    }
}

fn is_unknown(error: &Error) -> bool {
    error.refusal().is_some_and(|refusal| refusal.code == ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)
}

async fn offsets(
    client: &Client,
    places: &BTreeMap<TopicPartition, Place>,
    isolation: Isolation,
) -> Result<BTreeMap<TopicPartition, Option<i64>>, Error> {
    let found = client.list_offsets(places, isolation).await?;
    let operation = "find where a topic begins and ends";
    let unwrap = |(partition, answer): (TopicPartition, Result<_, Refusal>)| {
        answer.map(|offset| (partition, offset)).map_err(|refusal| Error::Refused { operation, refusal })
    };
    found.into_iter().map(unwrap).collect()
}
