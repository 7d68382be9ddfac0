//! Record batches (magic 2) as the broker sees them: a header, and bytes that it keeps as they are.
//!
//! Only the base offset and the leader epoch are rewritten on append; both lie outside of the
//! checksum, so compressed batches are stored without ever being opened.

use bytes::{BufMut, Bytes, BytesMut};

use crate::code::{Code, Refusal};

/// Bytes before the first record.
const HEADER: usize = 61;
/// Where the checksummed part begins.
const CHECKED: usize = 21;
const TRANSACTIONAL: i16 = 1 << 4;
const CONTROL: i16 = 1 << 5;
const COMPRESSION: i16 = 0b111;

/// One stored batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The offset of the first record.
    pub base_offset: i64,
    /// The offset of the last record.
    pub last_offset: i64,
    /// The timestamp that record deltas count from.
    pub base_timestamp: i64,
    /// The greatest timestamp in the batch.
    pub max_timestamp: i64,
    /// The producer's id, or -1.
    pub producer_id: i64,
    /// The producer's epoch, or -1.
    pub producer_epoch: i16,
    /// The sequence number of the first record, or -1.
    pub base_sequence: i32,
    /// The attribute bits.
    pub attributes: i16,
    /// The batch as it travels.
    pub bytes: Bytes,
}

impl Batch {
    /// Whether it belongs to a transaction.
    pub fn is_transactional(&self) -> bool {
        self.attributes & TRANSACTIONAL != 0
    }

    /// Whether it is a marker of the coordinator's, not data.
    pub fn is_control(&self) -> bool {
        self.attributes & CONTROL != 0
    }

    /// The sequence number of the last record; numbers start again after `i32::MAX`.
    pub(crate) fn last_sequence(&self) -> i32 {
        let records = (self.last_offset - self.base_offset) as i32;
        self.base_sequence.checked_add(records).unwrap_or_else(|| records - (i32::MAX - self.base_sequence) - 1)
    }

    /// Reads the batches that a producer sent for one partition.
    pub fn read_all(mut bytes: Bytes) -> Result<Vec<Self>, Refusal> {
        let mut batches = Vec::new();
        while !bytes.is_empty() {
            batches.push(Self::read(&mut bytes)?);
        }
        Ok(batches)
    }

    fn read(bytes: &mut Bytes) -> Result<Self, Refusal> {
        let field = |at: usize| bytes.get(at..).unwrap_or_default();
        if bytes.len() < HEADER {
            return Err(Code::CorruptMessage.because("A record batch is shorter than its header."));
        }
        let length = i32_at(field(8)) as usize;
        let whole = length.checked_add(12).filter(|whole| (HEADER..=bytes.len()).contains(whole));
        let Some(whole) = whole else {
            return Err(Code::CorruptMessage.because("A record batch announces another length than it has."));
        };
        if bytes[16] != 2 {
            return Err(Code::InvalidRecord.because(format!(
                "Produce requests with version 3 or higher are only allowed to contain record batches with magic version 2, not {}",
                bytes[16]
            )));
        }
        if crc32c::crc32c(&bytes[CHECKED..whole]) != i32_at(field(17)) as u32 {
            return Err(Code::CorruptMessage.plain());
        }
        let last_delta = i32_at(field(23));
        let records = i32_at(field(57));
        if last_delta < 0 || records != last_delta.wrapping_add(1) {
            return Err(Code::InvalidRecord.because("The count of records does not fit the last offset delta."));
        }
        let base_offset = i64_at(bytes);
        Ok(Self {
            base_offset,
            last_offset: base_offset.saturating_add(i64::from(last_delta)),
            base_timestamp: i64_at(field(27)),
            max_timestamp: i64_at(field(35)),
            producer_id: i64_at(field(43)),
            producer_epoch: i16_at(field(51)),
            base_sequence: i32_at(field(53)),
            attributes: i16_at(field(21)),
            bytes: bytes.split_to(whole),
        })
    }

    /// The same batch at its place in the log.
    pub(crate) fn placed(mut self, offset: i64, leader_epoch: i32) -> Self {
        let mut bytes = BytesMut::from(&self.bytes[..]);
        bytes[0..8].copy_from_slice(&offset.to_be_bytes());
        bytes[12..16].copy_from_slice(&leader_epoch.to_be_bytes());
        self.last_offset = offset + (self.last_offset - self.base_offset);
        self.base_offset = offset;
        self.bytes = bytes.freeze();
        self
    }

    /// A batch of plain records, as a producer without compression would send it.
    pub fn of_records(timestamp: i64, records: &[(Option<Bytes>, Option<Bytes>)]) -> Bytes {
        let producer = Producer { id: -1, epoch: -1, sequence: -1 };
        encode(timestamp, producer, 0, records)
    }

    /// The same for an idempotent or transactional producer.
    pub fn of_producer(
        timestamp: i64,
        producer: (i64, i16, i32),
        transactional: bool,
        records: &[(Option<Bytes>, Option<Bytes>)],
    ) -> Bytes {
        let (id, epoch, sequence) = producer;
        let attributes = if transactional { TRANSACTIONAL } else { 0 };
        encode(timestamp, Producer { id, epoch, sequence }, attributes, records)
    }

    /// The marker that ends a producer's transaction in one partition.
    pub(crate) fn marker(timestamp: i64, id: i64, epoch: i16, commit: bool) -> Result<Self, Refusal> {
        let key = [0, 0, 0, u8::from(commit)];
        let value = [0; 6];
        let record = (Some(Bytes::copy_from_slice(&key)), Some(Bytes::copy_from_slice(&value)));
        let producer = Producer { id, epoch, sequence: -1 };
        Self::read(&mut encode(timestamp, producer, TRANSACTIONAL | CONTROL, &[record]))
    }

    /// Timestamp and offset of the first record at or after `timestamp`. A compressed batch is not
    /// opened: its first record stands for it, so that a reader starts early and misses nothing.
    pub(crate) fn find(&self, timestamp: i64) -> (i64, i64) {
        let mut rest = &self.bytes[HEADER..];
        if self.attributes & COMPRESSION == 0 {
            while let Some(length) = varint(&mut rest) {
                let Some((mut record, tail)) = usize::try_from(length).ok().and_then(|n| rest.split_at_checked(n))
                else {
                    break;
                };
                rest = tail;
                record = record.get(1..).unwrap_or_default();
                let (Some(time), Some(offset)) = (varint(&mut record), varint(&mut record)) else { break };
                let time = self.base_timestamp.saturating_add(time);
                if time >= timestamp {
                    return (time, self.base_offset.saturating_add(offset));
                }
            }
        }
        (self.max_timestamp, self.base_offset)
    }
}

struct Producer {
    id: i64,
    epoch: i16,
    sequence: i32,
}

fn encode(timestamp: i64, producer: Producer, attributes: i16, records: &[(Option<Bytes>, Option<Bytes>)]) -> Bytes {
    let mut body = BytesMut::new();
    for (n, (key, value)) in records.iter().enumerate() {
        let mut record = BytesMut::new();
        record.put_i8(0);
        put_varint(&mut record, 0);
        put_varint(&mut record, n as i64);
        for part in [key, value] {
            match part {
                Some(part) => {
                    put_varint(&mut record, part.len() as i64);
                    record.put_slice(part);
                }
                None => put_varint(&mut record, -1),
            }
        }
        put_varint(&mut record, 0);
        put_varint(&mut body, record.len() as i64);
        body.put_slice(&record);
    }
    let mut batch = BytesMut::with_capacity(HEADER + body.len());
    batch.put_i64(0);
    batch.put_i32((HEADER - 12 + body.len()) as i32);
    batch.put_i32(-1);
    batch.put_i8(2);
    batch.put_u32(0);
    batch.put_i16(attributes);
    batch.put_i32(records.len() as i32 - 1);
    batch.put_i64(timestamp);
    batch.put_i64(timestamp);
    batch.put_i64(producer.id);
    batch.put_i16(producer.epoch);
    batch.put_i32(producer.sequence);
    batch.put_i32(records.len() as i32);
    batch.put_slice(&body);
    let checksum = crc32c::crc32c(&batch[CHECKED..]);
    batch[17..21].copy_from_slice(&checksum.to_be_bytes());
    batch.freeze()
}

fn put_varint(out: &mut BytesMut, value: i64) {
    let mut rest = ((value << 1) ^ (value >> 63)) as u64;
    while rest >= 0x80 {
        out.put_u8(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.put_u8(rest as u8);
}

fn varint(from: &mut &[u8]) -> Option<i64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = from.split_first()?;
        *from = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some((value >> 1) as i64 ^ -((value & 1) as i64));
        }
    }
    None
}

// The callers have seen to it that the header is there.
fn i64_at(bytes: &[u8]) -> i64 {
    bytes.first_chunk().map_or(0, |chunk| i64::from_be_bytes(*chunk))
}

fn i32_at(bytes: &[u8]) -> i32 {
    bytes.first_chunk().map_or(0, |chunk| i32::from_be_bytes(*chunk))
}

fn i16_at(bytes: &[u8]) -> i16 {
    bytes.first_chunk().map_or(0, |chunk| i16::from_be_bytes(*chunk))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &'static str) -> Option<Bytes> {
        Some(Bytes::from_static(text.as_bytes()))
    }

    #[test]
    fn a_batch_written_here_is_read_here() -> Result<(), Refusal> {
        let bytes = Batch::of_producer(7, (5, 1, 10), true, &[(text("k"), text("v")), (None, None)]);
        let [batch] = &Batch::read_all(bytes)?[..] else { panic!("one batch") };
        assert_eq!((batch.base_offset, batch.last_offset, batch.last_sequence()), (0, 1, 11));
        assert!(batch.is_transactional() && !batch.is_control());
        let placed = batch.clone().placed(40, 3);
        assert_eq!(Batch::read_all(placed.bytes.clone())?, [placed]);
        Ok(())
    }

    #[test]
    fn a_flipped_bit_a_cut_batch_and_a_wrong_length_are_refused() {
        let good = Batch::of_records(7, &[(text("k"), text("v"))]);
        for at in CHECKED..good.len() {
            let mut bad = BytesMut::from(&good[..]);
            bad[at] ^= 1;
            assert!(Batch::read_all(bad.freeze()).is_err(), "bit flipped in byte {at}");
        }
        for end in 1..good.len() {
            assert!(Batch::read_all(good.slice(..end)).is_err(), "cut at {end}");
        }
        for length in [-1, 0, i32::MAX, i32::MIN] {
            let mut bad = BytesMut::from(&good[..]);
            bad[8..12].copy_from_slice(&length.to_be_bytes());
            assert!(Batch::read_all(bad.freeze()).is_err(), "length {length}");
        }
    }

    #[test]
    fn sequence_numbers_wrap_to_zero() -> Result<(), Refusal> {
        let bytes = Batch::of_producer(7, (5, 1, i32::MAX), false, &[(None, None), (None, None)]);
        assert_eq!(Batch::read_all(bytes)?[0].last_sequence(), 0);
        Ok(())
    }
}
