//! A log in segments: retention takes whole ones, and the cleaner leaves the youngest alone.

use super::{Batch, Log};

/// When a new segment begins: segment.bytes and segment.ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Roll {
    pub(crate) bytes: u64,
    pub(crate) millis: i64,
}

impl Default for Roll {
    fn default() -> Self {
        Self { bytes: 1 << 30, millis: 604_800_000 }
    }
}

/// Batches that go together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    /// No batch before this offset is in it.
    pub(super) base: i64,
    pub(super) bytes: u64,
    first_time: i64,
    pub(super) max_time: i64,
}

impl Log {
    /// Counts a new batch into the youngest segment, or into one that begins with it.
    pub(super) fn enter_segment(&mut self, batch: &Batch, roll: Roll) {
        let (size, time) = (batch.bytes.len() as u64, batch.max_timestamp);
        let full = |segment: &Segment| {
            segment.bytes + size > roll.bytes || time.saturating_sub(segment.first_time) > roll.millis
        };
        match self.segments.back_mut().filter(|segment| !full(segment)) {
            Some(segment) => {
                segment.bytes += size;
                segment.max_time = segment.max_time.max(time);
            }
            None => self.segments.push_back(Segment {
                base: batch.base_offset,
                bytes: size,
                first_time: time,
                max_time: time,
            }),
        }
    }

    /// From now on the log begins here at the earliest. The bytes go with the next look at whole segments.
    pub(crate) fn begin_at(&mut self, offset: i64) {
        self.deleted_to = self.deleted_to.max(offset);
    }

    /// Takes away the oldest segments: those before the log's beginning, those with nothing younger than `before`, and
    /// those without which `keep_bytes` are still there. What readers cannot see yet stays.
    pub(crate) fn trim(&mut self, before: i64, keep_bytes: u64, high_watermark: i64) {
        while let Some(first) = self.segments.front() {
            let kept: u64 = self.segments.iter().map(|segment| segment.bytes).sum();
            let end = self.segments.get(1).map_or(self.end_offset, |next| next.base);
            let too_old = first.max_time < before;
            let too_much = kept.saturating_sub(first.bytes) >= keep_bytes;
            let is_unreadable = end <= self.deleted_to;
            if end > high_watermark || !(too_old || too_much || is_unreadable) {
                break;
            }
            self.segments.pop_front();
            while let Some(batch) = self.batches.pop_front_if(|batch| batch.base_offset < end) {
                self.trimmed_bytes += batch.bytes.len() as u64;
                self.deleted_records += super::length(&batch);
            }
            self.deleted_to = self.deleted_to.max(end);
        }
        let start = self.deleted_to;
        self.aborted.retain(|txn| txn.last_offset >= start);
        self.horizons.retain(|offset, _| *offset >= start);
        self.cleaned_to = self.cleaned_to.max(start);
    }

    /// Counts again after batches have gone from its middle or its end.
    pub(super) fn recount_segments(&mut self) {
        let end = self.end_offset;
        while self.segments.pop_back_if(|segment| segment.base >= end).is_some() {}
        let ends: Vec<i64> = self.segments.iter().skip(1).map(|next| next.base).chain([i64::MAX]).collect();
        for (segment, end) in self.segments.iter_mut().zip(ends) {
            let first = self.batches.partition_point(|batch| batch.base_offset < segment.base);
            let here = self.batches.range(first..).take_while(|batch| batch.base_offset < end);
            segment.bytes = here.map(|batch| batch.bytes.len() as u64).sum();
        }
    }
}
