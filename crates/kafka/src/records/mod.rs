//! Records on the wire: batches of format 2, from and to bytes.
//!
//! Written here rather than taken from the codec, whose reader sets memory aside for as many
//! headers as a record announces, decompresses without an end, and keeps one of several headers of
//! the same name. Keys and values are slices of the batch: nothing is copied but what was compressed.

mod compression;
mod head;
#[cfg(test)]
mod tests;

use bytes::{Buf, BufMut, Bytes, BytesMut};
pub use compression::Compression;
use compression::MOST;
pub use head::{BatchHead, NO_PRODUCER, Producer, place};

use crate::varint::{NoNumber, read_signed, write_signed};

/// What is wrong with records.
#[derive(Debug, thiserror::Error)]
pub enum RecordsError {
    /// Lengths that do not add up.
    #[error("a batch is cut off or malformed")]
    Malformed,
    /// Not the bytes that were written.
    #[error("the checksum of a batch is wrong")]
    Checksum,
    /// A format from before Kafka 0.11, which Kafka 4 does not write either.
    #[error("format {0} of batches is not supported")]
    Format(i8),
    /// A codec that Kafka does not have.
    #[error("compression {0} is unknown")]
    UnknownCompression(i16),
    /// More than a batch may hold, or its records may take in memory.
    #[error("a batch holds more than {0} bytes")]
    TooLarge(usize),
    /// Bytes that do not decompress.
    #[error("a batch could not be {0}")]
    Compression(&'static str, #[source] std::io::Error),
    /// More records or longer ones than fit one batch.
    #[error("the records do not fit one batch")]
    DoNotFit,
}

impl From<NoNumber> for RecordsError {
    fn from(_: NoNumber) -> Self {
        Self::Malformed
    }
}

/// A record to be written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Record {
    /// What it is about; in a compacted topic, what it replaces.
    pub key: Option<Bytes>,
    /// What it says; `None` removes the key from a compacted topic.
    pub value: Option<Bytes>,
    /// What goes along with it, in order.
    pub headers: Vec<(Bytes, Option<Bytes>)>,
    /// Milliseconds since 1970.
    pub timestamp: i64,
}

/// A record that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRecord {
    /// Its place in the log.
    pub offset: i64,
    /// The record itself.
    pub record: Record,
}

/// A batch that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// What is said of it as a whole.
    pub head: BatchHead,
    /// Its records, in order of their offsets.
    pub records: Vec<StoredRecord>,
}

/// How a batch is to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchOptions {
    /// How to compress it.
    pub compression: Compression,
    /// Who writes it.
    pub producer: Producer,
    /// Whether it is part of a transaction.
    pub transactional: bool,
}

/// The batches in what a fetch brought. The last may be cut off by the fetch's own limit; it is
/// left out, and comes whole with the next fetch.
pub fn decode_batches(bytes: Bytes) -> impl Iterator<Item = Result<Batch, RecordsError>> {
    open_batches(bytes).map(|open| open.and_then(OpenBatch::read))
}

/// The same, for whoever looks at one record after the other: no batch is in memory as a whole, save its bytes.
pub fn open_batches(mut bytes: Bytes) -> impl Iterator<Item = Result<OpenBatch, RecordsError>> {
    let mut failed = false;
    std::iter::from_fn(move || {
        if failed {
            return None;
        }
        let batch = next_batch(&mut bytes).transpose()?;
        failed = batch.is_err();
        Some(batch)
    })
}

/// Opens the batch that the bytes begin with, and takes it off them; `None` if its end is not there.
pub(crate) fn next_batch(bytes: &mut Bytes) -> Result<Option<OpenBatch>, RecordsError> {
    let Some((head, length)) = BatchHead::read(bytes)? else { return Ok(None) };
    let mut batch = bytes.split_to(length);
    batch.advance(head::LENGTH);
    let count = usize::try_from(head.count).map_err(|_| RecordsError::Malformed)?;
    let body = head.compression.decompress(batch)?;
    Ok(Some(OpenBatch { head, records: Records { head, body, left: count, failed: false } }))
}

/// A batch with its records still to be read.
#[derive(Debug)]
pub struct OpenBatch {
    /// What is said of it as a whole.
    pub head: BatchHead,
    /// Its records, in order of their offsets.
    pub records: Records,
}

impl OpenBatch {
    /// How many bytes it is when decompressed.
    pub(crate) fn bytes(&self) -> usize {
        self.records.body.len()
    }

    /// All records at once, if that is not too much.
    pub(crate) fn read(mut self) -> Result<Batch, RecordsError> {
        let announced = self.records.left;
        // The least that so many records take is refused before anything is set aside for them.
        let mut held = self.records.body.len().saturating_add(announced.saturating_mul(size_of::<StoredRecord>()));
        if held > MOST {
            return Err(RecordsError::TooLarge(MOST));
        }
        // What is announced is believed no further than what has arrived could hold.
        let mut records = Vec::with_capacity(announced.min(self.records.body.len() / SMALLEST_RECORD));
        for stored in &mut self.records {
            let stored = stored?;
            held += stored.record.headers.len() * size_of::<(Bytes, Option<Bytes>)>();
            if held > MOST {
                return Err(RecordsError::TooLarge(MOST));
            }
            records.push(stored);
        }
        Ok(Batch { head: self.head, records })
    }
}

/// The records of a batch, one after the other; nothing comes after an error.
#[derive(Debug)]
pub struct Records {
    head: BatchHead,
    body: Bytes,
    left: usize,
    failed: bool,
}

impl Iterator for Records {
    type Item = Result<StoredRecord, RecordsError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let record = match self.left.checked_sub(1) {
            Some(left) => {
                self.left = left;
                decode_record(&mut self.body, &self.head)
            }
            None if self.body.has_remaining() => Err(RecordsError::Malformed),
            None => return None,
        };
        self.failed = record.is_err();
        Some(record)
    }
}

/// Length, attributes, two deltas, two lengths of null, no headers: a byte each.
const SMALLEST_RECORD: usize = 7;
/// An empty name and a value of null: a byte each.
const SMALLEST_HEADER: usize = 2;

fn decode_record(body: &mut Bytes, head: &BatchHead) -> Result<StoredRecord, RecordsError> {
    let length = usize::try_from(read_signed(body)?).map_err(|_| RecordsError::Malformed)?;
    if length > body.len() {
        return Err(RecordsError::Malformed);
    }
    let mut record = body.split_to(length);
    let _attributes = record.try_get_i8().map_err(|_| RecordsError::Malformed)?;
    let timestamp = head.base_timestamp.wrapping_add(read_signed(&mut record)?);
    let offset = head.base_offset.wrapping_add(read_signed(&mut record)?);
    let key = nullable(&mut record)?;
    let value = nullable(&mut record)?;
    let headers = decode_headers(&mut record)?;
    if record.has_remaining() {
        return Err(RecordsError::Malformed);
    }
    let timestamp = if head.stamped_on_append { head.max_timestamp } else { timestamp };
    Ok(StoredRecord { offset, record: Record { key, value, headers, timestamp } })
}

fn decode_headers(record: &mut Bytes) -> Result<Vec<(Bytes, Option<Bytes>)>, RecordsError> {
    let count = usize::try_from(read_signed(record)?).map_err(|_| RecordsError::Malformed)?;
    if count > record.len() / SMALLEST_HEADER {
        return Err(RecordsError::Malformed);
    }
    if count.saturating_mul(size_of::<(Bytes, Option<Bytes>)>()) > MOST {
        return Err(RecordsError::TooLarge(MOST));
    }
    let mut headers = Vec::with_capacity(count);
    for _ in 0..count {
        let name = nullable(record)?.ok_or(RecordsError::Malformed)?;
        headers.push((name, nullable(record)?));
    }
    Ok(headers)
}

fn nullable(record: &mut Bytes) -> Result<Option<Bytes>, RecordsError> {
    match read_signed(record)? {
        -1 => Ok(None),
        length => match usize::try_from(length) {
            Ok(length) if length <= record.len() => Ok(Some(record.split_to(length))),
            _ => Err(RecordsError::Malformed),
        },
    }
}

/// One batch with these records, as a producer sends it: offsets from 0, the broker sets them.
pub fn encode_batch(records: &[Record], options: &BatchOptions) -> Result<Bytes, RecordsError> {
    let count = i32::try_from(records.len()).map_err(|_| RecordsError::DoNotFit)?;
    let base_timestamp = records.first().map_or(0, |record| record.timestamp);
    let max_timestamp = records.iter().map(|record| record.timestamp).max().unwrap_or(base_timestamp);
    let body = options.compression.compress(encode_body(records, base_timestamp))?;
    let head = BatchHead {
        base_offset: 0,
        last_offset: i64::from((count - 1).max(0)),
        leader_epoch: -1,
        producer: options.producer,
        transactional: options.transactional,
        control: false,
        compression: options.compression,
        stamped_on_append: false,
        base_timestamp,
        max_timestamp,
        count,
    };
    head.seal(&body)
}

/// The mark that ends a producer's transaction in one partition, as a coordinator of this epoch has it written.
pub fn encode_marker(
    producer: Producer,
    commit: bool,
    coordinator_epoch: i32,
    timestamp: i64,
) -> Result<Bytes, RecordsError> {
    // Version and kind; version and epoch of the coordinator.
    let key = [0, 0, 0, u8::from(commit)];
    let value = [&[0, 0][..], &coordinator_epoch.to_be_bytes()].concat();
    let mark = Record {
        key: Some(Bytes::copy_from_slice(&key)),
        value: Some(Bytes::copy_from_slice(&value)),
        headers: Vec::new(),
        timestamp,
    };
    let head = BatchHead {
        base_offset: 0,
        last_offset: 0,
        leader_epoch: -1,
        producer: Producer { sequence: -1, ..producer },
        transactional: true,
        control: true,
        compression: Compression::None,
        stamped_on_append: false,
        base_timestamp: timestamp,
        max_timestamp: timestamp,
        count: 1,
    };
    head.seal(&encode_body(&[mark], timestamp))
}

fn encode_body(records: &[Record], base_timestamp: i64) -> Bytes {
    let mut body = BytesMut::new();
    let mut scratch = BytesMut::new();
    for (offset, record) in records.iter().enumerate() {
        scratch.clear();
        encode_record(&mut scratch, record, record.timestamp.wrapping_sub(base_timestamp), offset as i64);
        write_signed(&mut body, scratch.len() as i64);
        body.extend_from_slice(&scratch);
    }
    body.freeze()
}

fn encode_record(out: &mut BytesMut, record: &Record, timestamp_delta: i64, offset_delta: i64) {
    out.put_i8(0);
    write_signed(out, timestamp_delta);
    write_signed(out, offset_delta);
    put_nullable(out, record.key.as_ref());
    put_nullable(out, record.value.as_ref());
    write_signed(out, record.headers.len() as i64);
    for (name, value) in &record.headers {
        put_nullable(out, Some(name));
        put_nullable(out, value.as_ref());
    }
}

fn put_nullable(out: &mut BytesMut, bytes: Option<&Bytes>) {
    match bytes {
        None => write_signed(out, -1),
        Some(bytes) => {
            write_signed(out, bytes.len() as i64);
            out.extend_from_slice(bytes);
        }
    }
}
