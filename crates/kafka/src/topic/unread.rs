//! What a fetch brought of one partition, opened batch by batch as it is wanted.

use bytes::Bytes;

use super::visible::Visible;
use crate::{
    calls::{fetch::Fetched, offsets::Isolation},
    error::Refusal,
    records::{RecordsError, StoredRecord, next_batch},
    types::TopicPartition,
};

/// A partition's share of a fetch.
#[derive(Debug)]
pub(super) struct Unread {
    pub(super) partition: TopicPartition,
    batches: Bytes,
    visible: Visible,
    /// What comes from here on is not asked for.
    end: i64,
    /// What is to be done about the partition once all that could be read was.
    pub(super) trouble: Trouble,
}

/// Why a partition cannot simply be read on.
#[derive(Debug)]
pub(super) enum Trouble {
    None,
    /// The broker gave nothing.
    Refused(Refusal),
    /// The next batch cannot be read.
    Records(RecordsError),
    /// Not even one batch came whole.
    NothingWhole,
    /// Nothing came, and the log ends before where reading is to end.
    EndsEarly,
}

/// What was read of one batch.
pub(super) struct Taken {
    pub(super) records: Vec<StoredRecord>,
    /// The offset to go on from.
    pub(super) next: i64,
    /// What it takes in memory.
    pub(super) bytes: usize,
}

impl Unread {
    pub(super) fn new(partition: TopicPartition, fetched: Fetched, isolation: Isolation, from: i64, end: i64) -> Self {
        let aborted = if isolation == Isolation::Committed { fetched.aborted } else { Vec::new() };
        let trouble = match fetched.batches.is_empty() {
            true if end < i64::MAX && fetched.high_watermark < end => Trouble::EndsEarly,
            true => Trouble::None,
            // Until the first was read.
            false => Trouble::NothingWhole,
        };
        Self { partition, batches: fetched.batches, visible: Visible::new(aborted, from), end, trouble }
    }

    pub(super) fn refused(partition: TopicPartition, refusal: Refusal) -> Self {
        let (batches, visible) = (Bytes::new(), Visible::new(Vec::new(), 0));
        Self { partition, batches, visible, end: 0, trouble: Trouble::Refused(refusal) }
    }

    /// Opens the next batch; `None` when there is none that could be.
    pub(super) fn next_batch(&mut self) -> Option<Taken> {
        if matches!(self.trouble, Trouble::Records(_)) {
            return None;
        }
        let opened = next_batch(&mut self.batches).and_then(|open| {
            let Some(open) = open else { return Ok(None) };
            let bytes = open.bytes();
            Ok(Some((bytes, open.read()?)))
        });
        match opened {
            Ok(Some((bytes, batch))) => {
                self.trouble = Trouble::None;
                let mut records = self.visible.of(batch);
                records.retain(|stored| stored.offset < self.end);
                let bytes = bytes + records.len() * size_of::<StoredRecord>();
                Some(Taken { records, next: self.visible.next, bytes })
            }
            Ok(None) => None,
            Err(error) => {
                self.trouble = Trouble::Records(error);
                None
            }
        }
    }
}
