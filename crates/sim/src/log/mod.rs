//! The records of one partition that somebody really produced: batches, offsets, producers'
//! states, open and aborted transactions, retention and compaction.
//!
//! One log serves all replicas: a replica is a position in it, so a thousand followers cost nothing.
//! Simulated records ([`crate::traffic`]) take offsets too and hold nothing: the caller says at which
//! offset a batch goes, and a reader who finds only simulated ones gets a batch without records.

mod batch;
mod clean;
mod gap;
mod producers;
mod segments;

use std::collections::{BTreeMap, VecDeque};

use bytes::{Bytes, BytesMut};

pub use batch::{Batch, End};
pub(crate) use clean::Cleaning;
use producers::Producer;
pub use producers::ProducerView;
pub(crate) use segments::Roll;
use segments::Segment;

use crate::code::Refusal;

/// A transaction that was aborted, as readers are told of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aborted {
    /// Whose.
    pub producer_id: i64,
    /// Its first record.
    pub first_offset: i64,
    /// Its marker.
    pub last_offset: i64,
}

/// The records of one partition.
#[derive(Clone, Debug, Default)]
pub struct Log {
    batches: VecDeque<Batch>,
    segments: VecDeque<Segment>,
    /// Behind the last record.
    end_offset: i64,
    /// Retention, or somebody who asked for it, has taken everything below this.
    deleted_to: i64,
    /// So many records went with the segments that retention took.
    deleted_records: i64,
    /// All records ever appended.
    records: i64,
    /// Below this the cleaner has been, and since when it waits to take what it marked: by the last
    /// offset of each batch.
    cleaned_to: i64,
    horizons: BTreeMap<i64, i64>,
    appended_bytes: u64,
    trimmed_bytes: u64,
    producers: BTreeMap<i64, Producer>,
    aborted: Vec<Aborted>,
}

impl Log {
    /// Behind the last record that is there.
    pub fn end_offset(&self) -> i64 {
        self.end_offset
    }

    /// All records ever appended.
    pub(crate) fn records(&self) -> i64 {
        self.records
    }

    /// Records that retention took away, and the offset below which it took everything.
    pub(crate) fn deleted(&self) -> (i64, i64) {
        (self.deleted_records, self.deleted_to)
    }

    /// The offset of the first record that is there.
    pub(crate) fn first_offset(&self) -> Option<i64> {
        self.batches.front().map(|batch| batch.base_offset)
    }

    /// Records that retention left, in batches with nothing as young as `timestamp`.
    pub(crate) fn records_before(&self, timestamp: i64) -> i64 {
        let older = self.batches.iter().take_while(|batch| batch.max_timestamp < timestamp);
        self.deleted_records + older.map(length).sum::<i64>()
    }

    /// All bytes ever appended.
    pub(crate) fn appended_bytes(&self) -> u64 {
        self.appended_bytes
    }

    /// Those of them that retention took away again.
    pub(crate) fn trimmed_bytes(&self) -> u64 {
        self.trimmed_bytes
    }

    /// Those that are there.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.appended_bytes.saturating_sub(self.trimmed_bytes)
    }

    /// Appends a batch; answers its offset. A batch sent twice is answered as the first time.
    pub(crate) fn append(&mut self, batch: Batch, place: Place) -> Result<i64, Refusal> {
        if let Some(offset) = self.check_producer(&batch)? {
            return Ok(offset);
        }
        let batch = batch.placed(place.offset.max(self.end_offset), place.leader_epoch);
        let offset = batch.base_offset;
        self.note_producer(&batch);
        self.enter_segment(&batch, place.roll);
        self.end_offset = batch.last_offset + 1;
        self.records += length(&batch);
        self.appended_bytes += batch.bytes.len() as u64;
        self.batches.push_back(batch);
        Ok(offset)
    }

    /// Below this offset no transaction is open.
    pub(crate) fn last_stable_offset(&self, high_watermark: i64) -> i64 {
        self.producers.values().filter_map(|producer| producer.open_since).fold(high_watermark, i64::min)
    }

    /// The aborted transactions that readers from `from` up to `to` must leave out.
    pub(crate) fn aborted(&self, from: i64, to: i64) -> Vec<Aborted> {
        self.aborted.iter().copied().filter(|txn| txn.last_offset >= from && txn.first_offset < to).collect()
    }

    /// Batches from `offset` on that end before `limit`: at least one if there is any, and no more
    /// than `max_bytes` beyond that. Where there are only offsets, a batch without records.
    pub(crate) fn read(&self, offset: i64, limit: i64, max_bytes: usize, leader_epoch: i32) -> Bytes {
        let first = self.batches.partition_point(|batch| batch.last_offset < offset);
        let mut found: Vec<&Bytes> = Vec::new();
        let mut size = 0;
        for batch in self.batches.range(first..).take_while(|batch| batch.last_offset < limit) {
            if !found.is_empty() && size + batch.bytes.len() > max_bytes {
                break;
            }
            size += batch.bytes.len();
            found.push(&batch.bytes);
        }
        match found[..] {
            [] if offset < limit => {
                // A batch that ends beyond the limit is not touched.
                let next = self.batches.get(first).map_or(limit, |batch| batch.base_offset.min(limit));
                if offset < next { gap::gap(offset, next - 1, leader_epoch) } else { Bytes::new() }
            }
            [] => Bytes::new(),
            [one] => one.clone(),
            _ => found
                .into_iter()
                .fold(BytesMut::with_capacity(size), |mut all, batch| {
                    all.extend_from_slice(batch);
                    all
                })
                .freeze(),
        }
    }

    /// Timestamp and offset of the first record at or after `timestamp`.
    pub(crate) fn find_time(&self, timestamp: i64) -> Option<(i64, i64)> {
        let start = self.deleted_to;
        let mut young =
            self.batches.iter().filter(|batch| batch.last_offset >= start && batch.max_timestamp >= timestamp);
        young.find_map(|batch| batch.find(timestamp, start))
    }

    /// Timestamp and offset of the youngest record.
    pub(crate) fn find_youngest(&self) -> Option<(i64, i64)> {
        // The first of equals, as a broker answers.
        let youngest = self.batches.iter().rev().max_by_key(|batch| batch.max_timestamp)?;
        let found = youngest.find(youngest.max_timestamp, 0).map_or(youngest.base_offset, |(_, offset)| offset);
        Some((youngest.max_timestamp, found))
    }

    /// Forgets everything from `offset` on: a new leader never had it.
    pub(crate) fn truncate(&mut self, offset: i64) {
        if offset >= self.end_offset {
            return;
        }
        let kept = self.batches.partition_point(|batch| batch.last_offset < offset);
        for lost in self.batches.drain(kept..) {
            self.appended_bytes -= lost.bytes.len() as u64;
            self.records -= length(&lost);
        }
        self.end_offset = self.batches.back().map_or(self.deleted_to, |last| last.last_offset + 1);
        self.cleaned_to = self.cleaned_to.min(self.end_offset);
        self.recount_segments();
        self.producers.clear();
        self.aborted.clear();
        for batch in self.batches.clone() {
            self.note_producer(&batch);
        }
    }
}

/// Where a batch goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// The next free offset, simulated records counted.
    pub(crate) offset: i64,
    pub(crate) leader_epoch: i32,
    pub(crate) roll: Roll,
}

/// How many records a batch had when it came.
fn length(batch: &Batch) -> i64 {
    batch.last_offset - batch.base_offset + 1
}

#[cfg(test)]
mod tests;
