//! The cleaner of compacted topics: of each key only the last record stays, and the last word "gone"
//! stays for delete.retention.ms after the cleaner first saw it.
//!
//! It keeps away from the youngest segment and from everything an open transaction could still
//! change. Records of aborted transactions go; the mark of a transaction goes after its records, and
//! never before, or readers would leave out what came later. Kafka rewrites a batch with holes in
//! it; here it becomes several without, which reads the same.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use evenkeel_kafka::records::{self, BatchOptions, Record, StoredRecord, decode_batches, encode_batch};

use super::gap::emptied;
use super::{Batch, Log};

/// When the cleaner comes, and what it leaves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cleaning {
    /// min.cleanable.dirty.ratio
    pub(crate) dirty_ratio: f64,
    /// delete.retention.ms
    pub(crate) delete_retention: i64,
    /// min.compaction.lag.ms
    pub(crate) least_lag: i64,
    /// max.compaction.lag.ms
    pub(crate) most_lag: i64,
}

impl Log {
    /// Cleans what lies below `stable`, if there is enough to clean.
    pub(crate) fn clean(&mut self, how: &Cleaning, wall_clock: i64, stable: i64) {
        let bound = self.cleanable_to(how, wall_clock, stable);
        let bytes = |batches: &mut dyn Iterator<Item = &Batch>| batches.map(|it| it.bytes.len() as f64).sum::<f64>();
        let below = |offset: i64| self.batches.partition_point(|batch| batch.last_offset < offset);
        let (clean, end) = (below(self.cleaned_to), below(bound));
        if clean >= end {
            return;
        }
        let dirty = bytes(&mut self.batches.range(clean..end));
        let ratio = dirty / (dirty + bytes(&mut self.batches.range(..clean)));
        let oldest = self.batches.get(clean).map_or(i64::MAX, |batch| batch.max_timestamp);
        if ratio <= how.dirty_ratio && wall_clock.saturating_sub(oldest) <= how.most_lag {
            return;
        }
        let last = self.last_offsets(clean, end);
        self.sweep(end, &last, how, wall_clock);
        self.cleaned_to = bound;
        self.recount_segments();
    }

    /// The youngest segment, and what is younger than the least lag, are not for the cleaner.
    fn cleanable_to(&self, how: &Cleaning, wall_clock: i64, stable: i64) -> i64 {
        let young = |time: i64| how.least_lag > 0 && time > wall_clock.saturating_sub(how.least_lag);
        let first_young = self.segments.iter().find(|segment| young(segment.max_time)).map(|segment| segment.base);
        let active = self.segments.back().map(|segment| segment.base);
        [active, first_young].into_iter().flatten().fold(stable, i64::min)
    }

    /// Where each key was last written among the dirty batches.
    fn last_offsets(&self, clean: usize, end: usize) -> BTreeMap<Bytes, i64> {
        let mut last = BTreeMap::new();
        for batch in self.batches.range(clean..end).filter(|batch| !batch.is_control()) {
            for stored in records_of(batch).into_iter().flatten() {
                if let Some(key) = stored.record.key.filter(|_| !self.is_aborted(batch.producer_id, stored.offset)) {
                    last.insert(key, stored.offset);
                }
            }
        }
        last
    }

    fn is_aborted(&self, producer_id: i64, offset: i64) -> bool {
        let within = |txn: &super::Aborted| (txn.first_offset..=txn.last_offset).contains(&offset);
        self.aborted.iter().any(|txn| txn.producer_id == producer_id && within(txn))
    }

    fn sweep(&mut self, end: usize, last: &BTreeMap<Bytes, i64>, how: &Cleaning, wall_clock: i64) {
        let data = self.batches.iter().filter(|batch| batch.producer_id >= 0 && !batch.is_control());
        let last_of_producer: BTreeMap<i64, i64> = data.map(|batch| (batch.producer_id, batch.base_offset)).collect();
        let young = self.batches.split_off(end);
        let old = std::mem::replace(&mut self.batches, young);
        let mut kept: VecDeque<Batch> = VecDeque::with_capacity(old.len());
        // Producers whose present transaction still has a batch here.
        let mut with_batches: BTreeSet<i64> = BTreeSet::new();
        for batch in old {
            let horizon = self.horizons.remove(&batch.last_offset);
            let due = horizon.is_some_and(|horizon| horizon <= wall_clock);
            let left = if batch.is_control() {
                self.left_of_mark(&batch, with_batches.remove(&batch.producer_id), due)
            } else {
                let is_last = last_of_producer.get(&batch.producer_id) == Some(&batch.base_offset);
                let left = self.left_of_data(&batch, last, is_last, due);
                if batch.is_transactional() && !left.batches.is_empty() {
                    with_batches.insert(batch.producer_id);
                }
                left
            };
            if left.waits && !due {
                let horizon = horizon.unwrap_or_else(|| wall_clock.saturating_add(how.delete_retention));
                self.horizons.extend(left.batches.iter().map(|batch| (batch.last_offset, horizon)));
            }
            let (before, after) = (batch.bytes.len() as u64, left.batches.iter().map(|it| it.bytes.len() as u64).sum());
            self.trimmed_bytes += before.saturating_sub(after);
            // Several heads may be more than the hole between them.
            self.appended_bytes += after.saturating_sub(before);
            kept.extend(left.batches);
        }
        kept.append(&mut self.batches);
        self.batches = kept;
    }

    /// The mark of a transaction stays while a batch of it does, and then until it is `due`.
    fn left_of_mark(&mut self, mark: &Batch, has_batches: bool, due: bool) -> Left {
        if has_batches || !due {
            return Left { batches: vec![mark.clone()], waits: !has_batches };
        }
        self.aborted.retain(|txn| txn.producer_id != mark.producer_id || txn.last_offset != mark.last_offset);
        Left { batches: Vec::new(), waits: false }
    }

    fn left_of_data(&self, batch: &Batch, last: &BTreeMap<Bytes, i64>, is_last: bool, due: bool) -> Left {
        let Some(mut records) = records_of(batch) else {
            // What cannot be read is left as it is.
            return Left { batches: vec![batch.clone()], waits: false };
        };
        let count = records.len();
        records.retain(|stored| {
            let Some(key) = &stored.record.key else { return false };
            let superseded = last.get(key).is_some_and(|offset| *offset > stored.offset);
            !superseded && !self.is_aborted(batch.producer_id, stored.offset)
        });
        let waits = records.iter().any(|stored| stored.record.value.is_none());
        records.retain(|stored| !due || stored.record.value.is_some());
        let batches = match records.len() {
            left if left == count => vec![batch.clone()],
            0 if is_last => vec![emptied(batch, epoch_of(batch))],
            _ => runs(batch, &records),
        };
        Left { batches, waits }
    }
}

/// What the cleaner leaves of a batch, and whether there is something in it that goes with time.
struct Left {
    batches: Vec<Batch>,
    waits: bool,
}

/// A batch's records; nothing if they cannot be read.
fn records_of(batch: &Batch) -> Option<Vec<StoredRecord>> {
    decode_batches(batch.bytes.clone()).next()?.ok().map(|read| read.records)
}

fn epoch_of(batch: &Batch) -> i32 {
    let epoch = batch.bytes.get(12..16).and_then(|bytes| bytes.first_chunk());
    epoch.map_or(-1, |bytes| i32::from_be_bytes(*bytes))
}

/// What is left of a batch: one batch for each run of offsets without a hole.
fn runs(batch: &Batch, left: &[StoredRecord]) -> Vec<Batch> {
    let head = decode_batches(batch.bytes.clone()).next().and_then(Result::ok).map(|read| read.head);
    let chunks = left.chunk_by(|one, next| one.offset + 1 == next.offset);
    let mut made = Vec::new();
    for (head, run) in chunks.filter_map(|run| Some((head?, run))) {
        let Some(first) = run.first() else { continue };
        let skipped = (first.offset - batch.base_offset) as i32;
        let sequence = match batch.base_sequence {
            none if none < 0 => none,
            // Numbers start again after the greatest.
            base => base.checked_add(skipped).unwrap_or_else(|| skipped - (i32::MAX - base) - 1),
        };
        let producer = records::Producer { sequence, ..head.producer };
        let options = BatchOptions { compression: head.compression, producer, transactional: head.transactional };
        let records: Vec<Record> = run.iter().map(|stored| stored.record.clone()).collect();
        let encoded = encode_batch(&records, &options).ok().and_then(|bytes| Batch::read_all(bytes).ok());
        made.extend(encoded.into_iter().flatten().map(|run| run.placed(first.offset, head.leader_epoch)));
    }
    made
}
