//! Reads all partitions of a topic, from a place on, to the end that was there at the start or for
//! ever.
//!
//! What a fetch brought is kept closed and opened batch by batch, so that a position moves only with the records that
//! are handed out, and so that what is open takes no more memory than one batch beyond [`HELD_AT_ONCE`]. What is closed
//! comes on top of that: up to [`FetchLimits::together_bytes`] from all leaders, or a single batch from each if that is
//! more. Partitions for which nothing was left are asked for alone next time, so that none waits for the end of another.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};

use tokio::time::{Instant, sleep_until};

use super::unread::{Trouble, Unread};
use crate::{
    calls::{
        fetch::{FetchLimits, Fetched},
        offsets::{Isolation, Place},
        topics::Which,
    },
    client::Client,
    error::{Error, ErrorCode, Refusal, Remedy},
    records::{RecordsError, StoredRecord},
    types::{Answers, TopicPartition},
};

/// A batch that does not fit is asked for with twice the room, up to this.
const LARGEST_ROOM: i32 = 64 * 1024 * 1024;

/// Once this much is in memory, records are handed out: more at once makes nobody faster.
const HELD_AT_ONCE: usize = 8 * 1024 * 1024;

/// How often a reader that reads for ever looks for partitions that were added, when nothing else comes.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// How long partitions that may be left out are waited for: longer than an election takes.
const PATIENCE_WITH_GAPS: Duration = Duration::from_secs(5);

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
    /// Never: what comes later is read as it comes, in partitions that are added as well.
    Forever,
}

/// What to do about partitions that cannot be read now: nobody leads them, or their leader does not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gaps {
    /// Nothing is read without them.
    Refuse,
    /// Those that can be read are, and [`TopicReader::gaps`] names the others.
    Tell,
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
    /// The partition whose next batch did not fit, if one did not.
    made_room_for: Option<i32>,
    /// Where each partition goes on.
    positions: BTreeMap<TopicPartition, i64>,
    /// Where each partition is to end.
    ends: BTreeMap<TopicPartition, i64>,
    until: Until,
    treatment: Gaps,
    /// Partitions that could not be read, and why.
    gaps: BTreeMap<i32, Error>,
    /// When it last looked which partitions there are.
    looked: Instant,
    /// What was fetched and not handed out yet. Positions do not count it.
    unread: VecDeque<Unread>,
    /// Partitions that have something to read, and got nothing of the last fetch.
    passed_over: BTreeSet<TopicPartition>,
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
        Self::open_with(client, topic, start, until, isolation, Gaps::Refuse).await
    }

    /// The same, and what to do about partitions that cannot be read.
    pub async fn open_with(
        client: Client,
        topic: &str,
        start: &Start,
        until: Until,
        isolation: Isolation,
        gaps: Gaps,
    ) -> Result<Self, Error> {
        let client = match gaps {
            Gaps::Refuse => client,
            Gaps::Tell => client.with_patience(PATIENCE_WITH_GAPS),
        };
        let heard = Instant::now() + HEARD_WITHIN;
        let mut failures = 0;
        let mut reader = Self {
            client,
            topic: topic.to_owned(),
            isolation,
            limits: FetchLimits::default(),
            made_room_for: None,
            positions: BTreeMap::new(),
            ends: BTreeMap::new(),
            until,
            treatment: gaps,
            gaps: BTreeMap::new(),
            looked: Instant::now(),
            unread: VecDeque::new(),
            passed_over: BTreeSet::new(),
        };
        loop {
            let found = reader.find_partitions(start).await;
            failures += 1;
            let again = Instant::now() + reader.client.pause(failures);
            match found {
                Ok(()) => return Ok(reader),
                Err(error) if is_unknown(&error) && again < heard => sleep_until(again).await,
                Err(error) => return Err(error),
            }
        }
    }

    /// Where to begin and to end in partitions that have no place yet.
    async fn find_partitions(&mut self, start: &Start) -> Result<(), Error> {
        let operation = "read a topic";
        self.looked = Instant::now();
        let mut found = self.client.topics(Which::Named(std::slice::from_ref(&self.topic))).await?;
        let missing = || Err(Refusal { code: ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, message: None });
        let found = found.remove(&self.topic).unwrap_or_else(missing);
        let found = found.map_err(|refusal| Error::Refused { operation, refusal })?;
        let found = found.partitions.iter().map(|partition| TopicPartition::new(&self.topic, partition.index));
        let partitions: Vec<TopicPartition> = found.filter(|one| !self.positions.contains_key(one)).collect();

        let ends = self.offsets(&partitions, Place::Latest).await?;
        let place = match start {
            Start::Earliest | Start::Offsets(_) => Place::Earliest,
            Start::AtOrAfter(timestamp) => Place::AtOrAfter(*timestamp),
            Start::Latest => Place::Latest,
        };
        let reachable: Vec<TopicPartition> = ends.keys().cloned().collect();
        let begin = self.offsets(&reachable, place).await?;
        for partition in partitions {
            let named = match start {
                Start::Offsets(named) => named.get(&partition.partition).copied(),
                _ => None,
            };
            let end = ends.get(&partition).copied().flatten();
            let position = match begin.get(&partition) {
                // Nothing of that time or later: begin at the end.
                Some(earliest) => {
                    let earliest = earliest.or(end).unwrap_or(0);
                    Some(named.map_or(earliest, |named| named.max(earliest)))
                }
                // Left out: its place is as good as it was, if it had one.
                None => named,
            };
            if let Some(position) = position {
                self.positions.insert(partition.clone(), position);
            }
            self.ends.insert(partition, end.unwrap_or(0));
        }
        let beyond = |(partition, offset): &(&TopicPartition, &i64)| self.ends.get(partition) < Some(offset);
        let readable = |(partition, _): &(&TopicPartition, &i64)| !self.gaps.contains_key(&partition.partition);
        let beyond: Vec<_> =
            self.positions.iter().filter(beyond).filter(readable).map(|(one, _)| one.clone()).collect();
        for partition in beyond {
            let checked = self.check_end(&partition, 0).await;
            self.allow_gap(&partition, checked)?;
        }
        Ok(())
    }

    /// Where each partition goes on. One that was left out and had no place to begin at has none.
    pub fn positions(&self) -> BTreeMap<i32, i64> {
        self.positions.iter().map(|(partition, offset)| (partition.partition, *offset)).collect()
    }

    /// Partitions that are left out, and why; none unless [`Gaps::Tell`] is wanted.
    pub fn gaps(&self) -> &BTreeMap<i32, Error> {
        &self.gaps
    }

    /// Why there is nothing to read at all, if every partition is left out.
    pub fn nothing_read(self) -> Option<Error> {
        let all_left_out = self.ends.keys().all(|partition| self.gaps.contains_key(&partition.partition));
        self.gaps.into_values().next().filter(|_| all_left_out)
    }

    /// The next records, in order within each partition; `None` at the end. A reader that reads for
    /// ever returns nothing now and then, when nothing has come.
    ///
    /// Nothing is lost by an error or by dropping the future: positions move only with records that were handed out.
    pub async fn next(&mut self) -> Result<Option<Vec<TopicRecord>>, Error> {
        let mut has_fetched = false;
        loop {
            let records = self.take_unread();
            if !records.is_empty() {
                return Ok(Some(records));
            }
            // What can be taken was, so the first of the others is in trouble.
            if let Some(unread) = self.unread.pop_front() {
                let heeded = self.heed(&unread.partition, unread.trouble).await;
                self.allow_gap(&unread.partition, heeded)?;
                continue;
            }
            if has_fetched && self.until == Until::Forever {
                if self.looked.elapsed() >= LOOK_AGAIN {
                    // What was added since begins with its first record.
                    self.find_partitions(&Start::Earliest).await?;
                }
                return Ok(Some(Vec::new()));
            }
            let open = self.open_partitions();
            if open.is_empty() && self.until == Until::End {
                return Ok(None);
            }
            let answers = self.client.fetch(&open, self.isolation, self.limits).await?;
            self.passed_over.clear();
            for (partition, answer) in answers {
                let (from, end) = (open.get(&partition).copied().unwrap_or(0), self.end_of(&partition));
                self.gaps.remove(&partition.partition);
                let has_more =
                    |fetched: &Fetched| fetched.batches.is_empty() && from < fetched.readable_to(self.isolation);
                if answer.as_ref().is_ok_and(has_more) {
                    self.passed_over.insert(partition.clone());
                }
                self.unread.push_back(match answer {
                    Ok(fetched) => Unread::new(partition, fetched, self.isolation, from, end),
                    Err(refusal) => Unread::refused(partition, refusal),
                });
            }
            if self.passed_over.len() == open.len() {
                // Nobody got anything, so it is not for others that they had to wait.
                self.passed_over.clear();
            }
            has_fetched = true;
        }
    }

    /// Where reading of a partition is to stop.
    fn end_of(&self, partition: &TopicPartition) -> i64 {
        match self.until {
            Until::End => self.ends.get(partition).copied().unwrap_or(0),
            Until::Forever => i64::MAX,
        }
    }

    /// What to ask for next: those that were passed over, else all that are not at their end.
    fn open_partitions(&self) -> BTreeMap<TopicPartition, i64> {
        let is_open = |partition: &TopicPartition, offset: i64| match self.until {
            Until::Forever => true,
            // What was left out once is left out to the end, so that there is one.
            Until::End => offset < self.end_of(partition) && !self.gaps.contains_key(&partition.partition),
        };
        let open = self.positions.iter().filter(|(partition, offset)| is_open(partition, **offset));
        let open = open.map(|(partition, offset)| (partition.clone(), *offset));
        let (passed_over, others): (BTreeMap<_, _>, BTreeMap<_, _>) =
            open.partition(|(partition, _)| self.passed_over.contains(partition));
        if passed_over.is_empty() { others } else { passed_over }
    }

    /// Opens what was fetched until enough is in memory or something needs to be done about a partition.
    fn take_unread(&mut self) -> Vec<TopicRecord> {
        let mut records = Vec::new();
        let mut held = 0;
        while let Some(unread) = self.unread.front_mut() {
            match unread.next_batch() {
                Some(taken) => {
                    held += taken.bytes;
                    let index = unread.partition.partition;
                    records.extend(taken.records.into_iter().map(|stored| TopicRecord { partition: index, stored }));
                    self.positions.insert(unread.partition.clone(), taken.next);
                    if self.made_room_for == Some(index) {
                        // All partitions have had it meanwhile, and the next batch is likely a usual one.
                        (self.limits, self.made_room_for) = (FetchLimits::default(), None);
                    }
                }
                None if matches!(unread.trouble, Trouble::None) => {
                    self.unread.pop_front();
                }
                None => break,
            }
            if held >= HELD_AT_ONCE && !records.is_empty() {
                break;
            }
        }
        records
    }

    /// What is to be done about a partition before it can be read on.
    async fn heed(&mut self, partition: &TopicPartition, trouble: Trouble) -> Result<(), Error> {
        match trouble {
            Trouble::None => Ok(()),
            Trouble::Refused(refusal) if refusal.code == ErrorCode::OFFSET_OUT_OF_RANGE => self.go_on(partition).await,
            Trouble::Refused(refusal) => Err(Error::Refused { operation: "read a topic", refusal }),
            Trouble::Records(source) => Err(self.unreadable(partition, source)),
            Trouble::NothingWhole => self.make_room(partition),
            // A log that has become shorter would never come to the end that it had.
            Trouble::EndsEarly => self.check_end(partition, self.end_of(partition)).await,
        }
    }

    /// Leaves the partition out, if that is wanted and time may mend it; else the error.
    fn allow_gap(&mut self, partition: &TopicPartition, result: Result<(), Error>) -> Result<(), Error> {
        match result {
            Err(error) if self.treatment == Gaps::Tell && error.remedy() != Remedy::AskUser => {
                tracing::warn!(%partition, %error, "left out");
                self.gaps.insert(partition.partition, error);
                Ok(())
            }
            result => result,
        }
    }

    fn unreadable(&self, partition: &TopicPartition, source: RecordsError) -> Error {
        let operation = "read the records";
        Error::Records { operation, topic: self.topic.clone(), partition: partition.partition, source }
    }

    /// Asks for more at once, since not even one batch came whole.
    fn make_room(&mut self, partition: &TopicPartition) -> Result<(), Error> {
        let room = self.limits.partition_bytes;
        if room >= LARGEST_ROOM {
            return Err(self.unreadable(partition, RecordsError::TooLarge(LARGEST_ROOM as usize)));
        }
        self.limits.partition_bytes = room.saturating_mul(2).min(LARGEST_ROOM);
        self.limits.total_bytes = self.limits.total_bytes.max(self.limits.partition_bytes);
        self.made_room_for = Some(partition.partition);
        Ok(())
    }

    /// Where these partitions are to be read from or to; those that cannot be asked are left out, if that is wanted.
    async fn offsets(
        &mut self,
        partitions: &[TopicPartition],
        place: Place,
    ) -> Result<BTreeMap<TopicPartition, Option<i64>>, Error> {
        let places = partitions.iter().map(|partition| (partition.clone(), place)).collect();
        let mut found = BTreeMap::new();
        for (partition, answer) in self.client.list_offsets(&places, self.isolation).await? {
            match answer {
                Ok(offset) => {
                    found.insert(partition, offset);
                }
                Err(refusal) => {
                    self.allow_gap(&partition, Err(Error::Refused { operation: FIND_OFFSETS, refusal }))?;
                }
            }
        }
        Ok(found)
    }

    /// What was to be read next is not there. If retention has removed it, goes on with what there is; a log that has
    /// lost its end is an error.
    async fn go_on(&mut self, partition: &TopicPartition) -> Result<(), Error> {
        self.check_end(partition, 0).await?;
        let earliest = BTreeMap::from([(partition.clone(), Place::Earliest)]);
        let found = all(self.client.list_offsets(&earliest, self.isolation).await?)?;
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
        let found = self.client.list_offsets(&latest, Isolation::Uncommitted).await?;
        let end = all(found)?.remove(partition).flatten();
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

const FIND_OFFSETS: &str = "find where a topic begins and ends";

fn all(answers: Answers<Option<i64>>) -> Result<BTreeMap<TopicPartition, Option<i64>>, Error> {
    let unwrap = |(partition, answer): (TopicPartition, Result<_, Refusal>)| {
        let refused = |refusal| Error::Refused { operation: FIND_OFFSETS, refusal };
        answer.map(|offset| (partition, offset)).map_err(refused)
    };
    answers.into_iter().map(unwrap).collect()
}
