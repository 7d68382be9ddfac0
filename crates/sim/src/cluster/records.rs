//! Producing, fetching and finding offsets: real records in real batches.

use bytes::Bytes;

use super::Cluster;
use super::topic::{Partition, Topic};
use crate::code::{Code, Refusal};
use crate::ids::{BrokerId, Millis, TopicId, TopicPartition};
use crate::log::{Aborted, Batch, Log};

/// How soon it is looked again whether retention has made room in memory.
const COUNT_AGAIN_AFTER: Millis = 1_000;

/// Bytes of real records, at least as many as there are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    bytes: u64,
    /// When they were counted.
    counted: Millis,
}

impl Held {
    /// Before anything was produced.
    pub(super) const NOTHING: Held = Held { bytes: 0, counted: Millis::MIN / 2 };
}

/// What became of a produced batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// The offset of the first record.
    pub base_offset: i64,
    /// Once the high watermark is here, every replica in sync has it.
    pub end_offset: i64,
    /// The first offset of the log.
    pub log_start_offset: i64,
    /// Under whom it was written.
    pub term: Term,
}

/// The time during which one broker leads a partition without a break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Term {
    /// One that was deleted and made again is another.
    topic: TopicId,
    leader: Option<BrokerId>,
    since: i32,
}

/// What a reader may see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// Everything below the high watermark.
    ReadUncommitted,
    /// Only what lies below the first open transaction.
    ReadCommitted,
}

/// A request for the records of one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchRequest {
    /// Which partition.
    pub partition: TopicPartition,
    /// From where.
    pub offset: i64,
    /// At most so much, beyond the first batch.
    pub max_bytes: usize,
    /// What may be seen.
    pub isolation: Isolation,
    /// The leader epoch the reader knows, if it does.
    pub leader_epoch: Option<i32>,
}

/// The records of one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// Below this, every replica in sync has the records.
    pub high_watermark: i64,
    /// Below this, no transaction is open.
    pub last_stable_offset: i64,
    /// The first offset there is.
    pub log_start_offset: i64,
    /// Transactions to be left out by a reader of committed records.
    pub aborted: Vec<Aborted>,
    /// Whole batches.
    pub records: Bytes,
}

/// Which offset is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffsetQuery {
    /// The next to be written, as far as readers may see (-1).
    Latest,
    /// The first there is (-2).
    Earliest,
    /// That of the youngest record (-3).
    Youngest,
    /// The first at or after this wall-clock time.
    At(i64),
}

impl Cluster {
    /// Appends a batch to a partition that `asked` must lead. With `all_acks` the ISR must be large
    /// enough; the caller waits until the high watermark has reached the end offset.
    pub fn produce(
        &mut self,
        asked: BrokerId,
        tp: &TopicPartition,
        records: Bytes,
        all_acks: bool,
        transactional_id: Option<&str>,
    ) -> Result<Appended, Refusal> {
        let (batch, compacted) = self.admitted(asked, tp, records, all_acks)?;
        if batch.is_control() {
            return Err(Code::InvalidRecord.because("Clients must not write control batches."));
        }
        if batch.base_offset != 0 {
            return Err(Code::InvalidRecord.because(format!(
                "The baseOffset of the record batch in the append to {tp} should be 0, but it is {}",
                batch.base_offset
            )));
        }
        if !batch.check_records()? && compacted {
            return Err(Code::InvalidRecord
                .because(format!("Compacted topic cannot accept message without key in topic partition {tp}.")));
        }
        if batch.is_transactional() {
            self.transactions.check_write(transactional_id, (batch.producer_id, batch.producer_epoch), tp)?;
        }
        self.append(tp, batch)
    }

    /// The same for a batch of the simulation's own making: what is in it needs no look.
    pub(super) fn produce_own(&mut self, asked: BrokerId, tp: &TopicPartition, records: Bytes) -> Result<(), Refusal> {
        let (batch, _) = self.admitted(asked, tp, records, true)?;
        self.append(tp, batch).map(drop)
    }

    /// The one batch that was sent, if the partition takes one of its size now; and whether its topic is compacted.
    fn admitted(
        &self,
        asked: BrokerId,
        tp: &TopicPartition,
        records: Bytes,
        all_acks: bool,
    ) -> Result<(Batch, bool), Refusal> {
        let (topic, partition) = self.led_by(asked, tp)?;
        let (rules, in_sync, least) = (&topic.rules, partition.registration.isr.len(), topic.least_in_sync(partition));
        if all_acks && in_sync < least {
            return Err(Code::NotEnoughReplicas.because(format!(
                "The size of the current ISR : {in_sync} is insufficient to satisfy the min.isr requirement of {least} for partition {tp}"
            )));
        }
        let batch = only_batch(records)?;
        let size = batch.bytes.len();
        if size > rules.max_message {
            return Err(Code::MessageTooLarge.because(format!(
                "The record batch size in the append to {tp} is {size} bytes which exceeds the maximum configured value of {}.",
                rules.max_message
            )));
        }
        Ok((batch, rules.keep.compact))
    }

    fn append(&mut self, tp: &TopicPartition, batch: Batch) -> Result<Appended, Refusal> {
        let size = batch.bytes.len();
        self.make_room(size)?;
        let now = self.now;
        let unknown = || Code::UnknownTopicOrPartition.plain();
        let topic = self.topics.get_mut(&tp.topic).ok_or_else(unknown)?;
        let place = topic.next_place(tp.partition, now);
        let base_offset = topic.partition_mut(tp.partition).ok_or_else(unknown)?.log.append(batch, place)?;
        let end_offset = topic.end_offset(tp.partition, now);
        let term = topic.term(tp.partition).ok_or_else(unknown)?;
        let log_start_offset = topic.start_offset(tp.partition, now);
        let appended = Appended { base_offset, end_offset, log_start_offset, term };
        self.count_written(tp, size);
        self.look_at_disks_before(size);
        Ok(appended)
    }

    /// Refuses what does not fit into memory any more. What is held is only counted when it may be too much, and then not
    /// again at once: until that time it is counted as if nothing ever went.
    fn make_room(&mut self, size: usize) -> Result<(), Refusal> {
        let size = size as u64;
        if self.held.bytes + size > self.options.memory && self.held.counted + COUNT_AGAIN_AFTER <= self.now {
            self.count_held();
        }
        if self.held.bytes + size > self.options.memory {
            return Err(Code::KafkaStorageError.because(format!(
                "The simulation keeps {} bytes of records in memory, and may keep no more than {}",
                self.held.bytes, self.options.memory
            )));
        }
        self.held.bytes += size;
        Ok(())
    }

    pub(super) fn count_held(&mut self) {
        let logs = self.topics.values().flat_map(|topic| &topic.partitions).map(|partition| &partition.log);
        self.held = Held { bytes: logs.map(Log::held_bytes).sum(), counted: self.now };
    }

    /// How far all replicas in sync are.
    pub fn high_watermark(&self, tp: &TopicPartition) -> Option<i64> {
        self.lookup(tp).map(|(topic, _)| topic.high_watermark(tp.partition, self.now))
    }

    /// Who leads a partition, and since when.
    pub fn term(&self, tp: &TopicPartition) -> Option<Term> {
        self.topics.get(&tp.topic)?.term(tp.partition)
    }

    /// Reads from a partition that `asked` must lead.
    pub fn fetch(&self, asked: BrokerId, request: &FetchRequest) -> Result<Fetched, Refusal> {
        let (topic, partition) = self.led_by(asked, &request.partition)?;
        check_epoch(partition, request.leader_epoch)?;
        let (log, number) = (&partition.log, request.partition.partition);
        let high_watermark = topic.high_watermark(number, self.now);
        let last_stable_offset = log.last_stable_offset(high_watermark);
        let log_start_offset = topic.start_offset(number, self.now);
        if request.offset < log_start_offset || request.offset > topic.end_offset(number, self.now) {
            return Err(Code::OffsetOutOfRange.plain());
        }
        let (limit, aborted) = match request.isolation {
            Isolation::ReadUncommitted => (high_watermark, Vec::new()),
            Isolation::ReadCommitted => (last_stable_offset, log.aborted(request.offset, last_stable_offset)),
        };
        Ok(Fetched {
            high_watermark,
            last_stable_offset,
            log_start_offset,
            aborted,
            records: log.read(request.offset, limit, request.max_bytes, partition.registration.leader_epoch),
        })
    }

    /// Takes away what lies before an offset, or all that readers see (-1), of a partition that `asked` must lead. Returns
    /// where the log begins then.
    pub fn delete_records(&mut self, asked: BrokerId, tp: &TopicPartition, before: i64) -> Result<i64, Refusal> {
        let (topic, _) = self.led_by(asked, tp)?;
        if topic.rules.only_compacted {
            return Err(Code::PolicyViolation
                .because(format!("Records of partition {tp} can not be deleted due to the configured policy")));
        }
        let high_watermark = topic.high_watermark(tp.partition, self.now);
        let before = if before == -1 { high_watermark } else { before };
        if !(0..=high_watermark).contains(&before) {
            return Err(Code::OffsetOutOfRange.plain());
        }
        let (unknown, now) = (|| Code::UnknownTopicOrPartition.plain(), self.now);
        let topic = self.topics.get_mut(&tp.topic).ok_or_else(unknown)?;
        topic.partition_mut(tp.partition).ok_or_else(unknown)?.log.begin_at(before);
        Ok(topic.start_offset(tp.partition, now))
    }

    /// Timestamp, offset and leader epoch of what is asked for; -1 where there is nothing.
    pub fn list_offset(
        &self,
        asked: BrokerId,
        tp: &TopicPartition,
        query: OffsetQuery,
        isolation: Isolation,
        leader_epoch: Option<i32>,
    ) -> Result<(i64, i64, i32), Refusal> {
        let (topic, partition) = self.led_by(asked, tp)?;
        check_epoch(partition, leader_epoch)?;
        let (log, number) = (&partition.log, tp.partition);
        let high_watermark = topic.high_watermark(number, self.now);
        let limit = match isolation {
            Isolation::ReadUncommitted => high_watermark,
            Isolation::ReadCommitted => log.last_stable_offset(high_watermark),
        };
        let found = match query {
            OffsetQuery::Latest => Some((-1, limit)),
            OffsetQuery::Earliest => Some((-1, topic.start_offset(number, self.now))),
            OffsetQuery::Youngest => topic.find_youngest(number, self.wall_clock(), self.now),
            OffsetQuery::At(timestamp) => {
                let then = timestamp.saturating_sub(self.options.wall_start);
                topic.find_time(number, timestamp, then, self.now).filter(|(_, offset)| *offset < limit)
            }
        };
        let epoch = partition.registration.leader_epoch;
        Ok(found.map_or((-1, -1, -1), |(timestamp, offset)| (timestamp, offset, epoch)))
    }

    pub(super) fn led_by(&self, asked: BrokerId, tp: &TopicPartition) -> Result<(&Topic, &Partition), Refusal> {
        let (topic, partition) = self.lookup(tp).ok_or_else(|| Code::UnknownTopicOrPartition.plain())?;
        if partition.registration.leader != Some(asked) {
            return Err(Code::NotLeaderOrFollower.plain());
        }
        Ok((topic, partition))
    }
}

impl Topic {
    fn term(&self, number: i32) -> Option<Term> {
        let it = self.partition(number)?;
        Some(Term { topic: self.id, leader: it.registration.leader, since: it.led_since })
    }
}

/// The one batch that a producer may send for a partition at a time.
fn only_batch(records: Bytes) -> Result<Batch, Refusal> {
    let mut batches = Batch::read_all(records)?;
    match (batches.pop(), batches.is_empty()) {
        (Some(batch), true) => Ok(batch),
        (None, _) => Err(Code::InvalidRecord
            .because("Produce requests with version 3 or higher must have at least one record batch")),
        _ => Err(Code::InvalidRecord.because(
            "Produce requests with version 3 or higher are only allowed to contain exactly one record batch per partition",
        )),
    }
}

fn check_epoch(partition: &Partition, known: Option<i32>) -> Result<(), Refusal> {
    let present = partition.registration.leader_epoch;
    match known {
        Some(known) if known < present => Err(Code::FencedLeaderEpoch.plain()),
        Some(known) if known > present => Err(Code::UnknownLeaderEpoch.plain()),
        _ => Ok(()),
    }
}
