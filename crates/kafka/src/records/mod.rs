//! Records on the wire: batches of format 2, from and to bytes.
//!
//! Written here rather than taken from the codec, whose reader sets memory aside for as many
//! headers as a record announces, decompresses without an end, and keeps one of several headers of
//! the same name. Keys and values are slices of the batch: nothing is copied but what was compressed.

mod compression;
#[cfg(test)]
mod tests;
mod varint;

use bytes::{Buf, BufMut, Bytes, BytesMut};
pub use compression::Compression;

/// No producer id, epoch or sequence: the batch is not idempotent.
pub const NO_PRODUCER: Producer = Producer { id: -1, epoch: -1, sequence: -1 };

/// Bytes before the records, and the part of them that the length does not count.
const HEAD: usize = 61;
const BEFORE_LENGTH_ENDS: usize = 12;
/// Where the checksum's subject begins: at the attributes.
const CHECKED_FROM: usize = 21;

const LOG_APPEND_TIME: i16 = 1 << 3;
const TRANSACTIONAL: i16 = 1 << 4;
const CONTROL: i16 = 1 << 5;

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
    /// More than a batch may hold.
    #[error("a batch holds more than {0} bytes when decompressed")]
    TooLarge(usize),
    /// Bytes that do not decompress.
    #[error("a batch could not be {0}")]
    Compression(&'static str, #[source] std::io::Error),
    /// More records or longer ones than fit one batch.
    #[error("the records do not fit one batch")]
    DoNotFit,
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

/// Who wrote a batch, and as which of its batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Producer {
    /// The producer's id.
    pub id: i64,
    /// Its epoch: the higher one is the living one.
    pub epoch: i16,
    /// The number of the first record among all it wrote to this partition.
    pub sequence: i32,
}

/// What is said of a batch as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchHead {
    /// The offset of the first record that was ever in it.
    pub base_offset: i64,
    /// The offset of the last; compaction may have removed that record.
    pub last_offset: i64,
    /// The epoch of the leader that appended it.
    pub leader_epoch: i32,
    /// Who wrote it.
    pub producer: Producer,
    /// Whether it is part of a transaction.
    pub transactional: bool,
    /// Whether it is a mark of the broker's and no data.
    pub control: bool,
    /// How it is compressed.
    pub compression: Compression,
    /// The newest timestamp in it.
    pub max_timestamp: i64,
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
pub fn decode_batches(mut bytes: Bytes) -> impl Iterator<Item = Result<Batch, RecordsError>> {
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

fn next_batch(bytes: &mut Bytes) -> Result<Option<Batch>, RecordsError> {
    let Some(length) = bytes.get(8..BEFORE_LENGTH_ENDS).and_then(|length| length.first_chunk()) else {
        return Ok(None);
    };
    let length = usize::try_from(i32::from_be_bytes(*length)).map_err(|_| RecordsError::Malformed)?;
    let end = BEFORE_LENGTH_ENDS + length;
    if let Some(&format) = bytes.get(16)
        && format != 2
    {
        return Err(RecordsError::Format(format as i8));
    }
    if end < HEAD {
        return Err(RecordsError::Malformed);
    }
    if bytes.len() < end {
        return Ok(None);
    }
    decode_batch(bytes.split_to(end)).map(Some)
}

/// `batch` is at least as long as a head, and of format 2.
fn decode_batch(mut batch: Bytes) -> Result<Batch, RecordsError> {
    let checksum = crc32c::crc32c(&batch[CHECKED_FROM..]);
    let base_offset = batch.get_i64();
    let _length = batch.get_i32();
    let leader_epoch = batch.get_i32();
    let _format = batch.get_i8();
    if batch.get_u32() != checksum {
        return Err(RecordsError::Checksum);
    }
    let attributes = batch.get_i16();
    let last_offset = base_offset.wrapping_add(batch.get_i32().into());
    let base_timestamp = batch.get_i64();
    let max_timestamp = batch.get_i64();
    let producer = Producer { id: batch.get_i64(), epoch: batch.get_i16(), sequence: batch.get_i32() };
    let count = batch.get_i32();
    let head = BatchHead {
        base_offset,
        last_offset,
        leader_epoch,
        producer,
        transactional: attributes & TRANSACTIONAL != 0,
        control: attributes & CONTROL != 0,
        compression: Compression::of(attributes)?,
        max_timestamp,
    };
    let appended_at = (attributes & LOG_APPEND_TIME != 0).then_some(max_timestamp);
    let mut body = head.compression.decompress(batch)?;
    // What is announced is believed no further than what has arrived could hold.
    let count = usize::try_from(count).map_err(|_| RecordsError::Malformed)?;
    let mut records = Vec::with_capacity(count.min(body.len() / SMALLEST_RECORD));
    for _ in 0..count {
        records.push(decode_record(&mut body, base_offset, base_timestamp, appended_at)?);
    }
    if body.has_remaining() {
        return Err(RecordsError::Malformed);
    }
    Ok(Batch { head, records })
}

/// Length, attributes, two deltas, two lengths of null, no headers: a byte each.
const SMALLEST_RECORD: usize = 7;

fn decode_record(
    body: &mut Bytes,
    base_offset: i64,
    base_timestamp: i64,
    appended_at: Option<i64>,
) -> Result<StoredRecord, RecordsError> {
    let length = usize::try_from(varint::read(body)?).map_err(|_| RecordsError::Malformed)?;
    if length > body.len() {
        return Err(RecordsError::Malformed);
    }
    let mut record = body.split_to(length);
    let _attributes = record.try_get_i8().map_err(|_| RecordsError::Malformed)?;
    let timestamp = base_timestamp.wrapping_add(varint::read(&mut record)?);
    let offset = base_offset.wrapping_add(varint::read(&mut record)?);
    let key = nullable(&mut record)?;
    let value = nullable(&mut record)?;
    let mut headers = Vec::new();
    for _ in 0..varint::read(&mut record)? {
        let name = nullable(&mut record)?.ok_or(RecordsError::Malformed)?;
        headers.push((name, nullable(&mut record)?));
    }
    if record.has_remaining() {
        return Err(RecordsError::Malformed);
    }
    let timestamp = appended_at.unwrap_or(timestamp);
    Ok(StoredRecord { offset, record: Record { key, value, headers, timestamp } })
}

fn nullable(record: &mut Bytes) -> Result<Option<Bytes>, RecordsError> {
    match varint::read(record)? {
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

    let mut body = BytesMut::new();
    let mut scratch = BytesMut::new();
    for (offset, record) in records.iter().enumerate() {
        scratch.clear();
        encode_record(&mut scratch, record, record.timestamp.wrapping_sub(base_timestamp), offset as i64);
        varint::write(&mut body, scratch.len() as i64);
        body.extend_from_slice(&scratch);
    }
    let body = options.compression.compress(body.freeze())?;

    let length = i32::try_from(HEAD - BEFORE_LENGTH_ENDS + body.len()).map_err(|_| RecordsError::DoNotFit)?;
    let transactional = if options.transactional { TRANSACTIONAL } else { 0 };
    let mut batch = BytesMut::with_capacity(HEAD + body.len());
    batch.put_i64(0);
    batch.put_i32(length);
    batch.put_i32(-1);
    batch.put_i8(2);
    batch.put_u32(0);
    batch.put_i16(options.compression.bits() | transactional);
    batch.put_i32((count - 1).max(0));
    batch.put_i64(base_timestamp);
    batch.put_i64(max_timestamp);
    batch.put_i64(options.producer.id);
    batch.put_i16(options.producer.epoch);
    batch.put_i32(options.producer.sequence);
    batch.put_i32(count);
    batch.extend_from_slice(&body);
    let checksum = crc32c::crc32c(&batch[CHECKED_FROM..]);
    batch[CHECKED_FROM - size_of::<u32>()..CHECKED_FROM].copy_from_slice(&checksum.to_be_bytes());
    Ok(batch.freeze())
}

fn encode_record(out: &mut BytesMut, record: &Record, timestamp_delta: i64, offset_delta: i64) {
    out.put_i8(0);
    varint::write(out, timestamp_delta);
    varint::write(out, offset_delta);
    put_nullable(out, record.key.as_ref());
    put_nullable(out, record.value.as_ref());
    varint::write(out, record.headers.len() as i64);
    for (name, value) in &record.headers {
        put_nullable(out, Some(name));
        put_nullable(out, value.as_ref());
    }
}

fn put_nullable(out: &mut BytesMut, bytes: Option<&Bytes>) {
    match bytes {
        None => varint::write(out, -1),
        Some(bytes) => {
            varint::write(out, bytes.len() as i64);
            out.extend_from_slice(bytes);
        }
    }
}
