//! The head of a batch: all that a broker needs to know of it, without opening it.

use bytes::{Buf, BufMut, Bytes, BytesMut};

use super::{Compression, RecordsError};

/// No producer id, epoch or sequence: the batch is not idempotent.
pub const NO_PRODUCER: Producer = Producer { id: -1, epoch: -1, sequence: -1 };

/// Bytes before the records, and the part of them that the length does not count.
pub(super) const LENGTH: usize = 61;
const BEFORE_LENGTH_ENDS: usize = 12;
/// Where the leader's epoch is; with the offset before it, it is no part of the checksum.
const EPOCH_FROM: usize = 12;
const FORMAT_AT: usize = 16;
/// Where the checksum's subject begins: at the attributes.
pub(super) const CHECKED_FROM: usize = 21;

const STAMPED_ON_APPEND: i16 = 1 << 3;
const TRANSACTIONAL: i16 = 1 << 4;
const CONTROL: i16 = 1 << 5;

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
    /// Whether the newest timestamp stands for all: that of the moment when the broker appended it.
    pub stamped_on_append: bool,
    /// What the timestamps of its records count from.
    pub base_timestamp: i64,
    /// The newest timestamp in it.
    pub max_timestamp: i64,
    /// How many records it holds, by its own account.
    pub count: i32,
}

impl BatchHead {
    /// The head that these bytes begin with, and how long the whole batch is; `None` if its end is
    /// not there.
    pub fn read(bytes: &[u8]) -> Result<Option<(Self, usize)>, RecordsError> {
        let Some(length) = bytes.get(8..BEFORE_LENGTH_ENDS).and_then(|length| length.first_chunk()) else {
            return Ok(None);
        };
        let length = usize::try_from(i32::from_be_bytes(*length)).map_err(|_| RecordsError::Malformed)?;
        let length = BEFORE_LENGTH_ENDS + length;
        if let Some(&format) = bytes.get(FORMAT_AT)
            && format != 2
        {
            return Err(RecordsError::Format(format as i8));
        }
        if length < LENGTH {
            return Err(RecordsError::Malformed);
        }
        let Some(mut batch) = bytes.get(..length) else { return Ok(None) };
        let checksum = crc32c::crc32c(&batch[CHECKED_FROM..]);
        let base_offset = batch.get_i64();
        let _length = batch.get_i32();
        let leader_epoch = batch.get_i32();
        let _format = batch.get_i8();
        if batch.get_u32() != checksum {
            return Err(RecordsError::Checksum);
        }
        let attributes = batch.get_i16();
        let head = Self {
            base_offset,
            last_offset: base_offset.wrapping_add(batch.get_i32().into()),
            leader_epoch,
            base_timestamp: batch.get_i64(),
            max_timestamp: batch.get_i64(),
            producer: Producer { id: batch.get_i64(), epoch: batch.get_i16(), sequence: batch.get_i32() },
            count: batch.get_i32(),
            transactional: attributes & TRANSACTIONAL != 0,
            control: attributes & CONTROL != 0,
            compression: Compression::of(attributes)?,
            stamped_on_append: attributes & STAMPED_ON_APPEND != 0,
        };
        Ok(Some((head, length)))
    }

    /// The whole batch: this head, and a body that is compressed as it says. Without a body it is a batch of which
    /// compaction has left nothing but its offsets, if the head counts no records.
    pub fn seal(&self, body: &[u8]) -> Result<Bytes, RecordsError> {
        let length = i32::try_from(LENGTH - BEFORE_LENGTH_ENDS + body.len()).map_err(|_| RecordsError::DoNotFit)?;
        let last = self.last_offset.wrapping_sub(self.base_offset);
        let bit = |is_set, bit: i16| if is_set { bit } else { 0 };
        let attributes = self.compression.bits()
            | bit(self.stamped_on_append, STAMPED_ON_APPEND)
            | bit(self.transactional, TRANSACTIONAL)
            | bit(self.control, CONTROL);
        let mut batch = BytesMut::with_capacity(LENGTH + body.len());
        batch.put_i64(self.base_offset);
        batch.put_i32(length);
        batch.put_i32(self.leader_epoch);
        batch.put_i8(2);
        batch.put_u32(0);
        batch.put_i16(attributes);
        batch.put_i32(i32::try_from(last).map_err(|_| RecordsError::DoNotFit)?);
        batch.put_i64(self.base_timestamp);
        batch.put_i64(self.max_timestamp);
        batch.put_i64(self.producer.id);
        batch.put_i16(self.producer.epoch);
        batch.put_i32(self.producer.sequence);
        batch.put_i32(self.count);
        batch.extend_from_slice(body);
        let checksum = crc32c::crc32c(&batch[CHECKED_FROM..]);
        batch[CHECKED_FROM - size_of::<u32>()..CHECKED_FROM].copy_from_slice(&checksum.to_be_bytes());
        Ok(batch.freeze())
    }
}

/// A whole batch at its place in a log, as a leader stores it. Neither number is part of the checksum,
/// so what is compressed stays closed.
pub fn place(batch: &[u8], offset: i64, leader_epoch: i32) -> Bytes {
    let mut placed = BytesMut::from(batch);
    for (at, number) in [(0, &offset.to_be_bytes()[..]), (EPOCH_FROM, &leader_epoch.to_be_bytes()[..])] {
        if let Some(field) = placed.get_mut(at..at + number.len()) {
            field.copy_from_slice(number);
        }
    }
    placed.freeze()
}
