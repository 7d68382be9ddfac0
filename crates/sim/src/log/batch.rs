//! Record batches as the broker sees them: a head, and bytes that it keeps as they are.
//!
//! The layout is that of [`evenkeel_kafka::records`]; here is what a broker decides by it. A batch is
//! stored closed, and opened only to find a record by its time.

use bytes::Bytes;
use evenkeel_kafka::records::{
    self, BatchHead, BatchOptions, Compression, NO_PRODUCER, Producer, Record, RecordsError, encode_batch,
    encode_marker, open_batches,
};

use crate::code::{Code, Refusal};

/// One stored batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The offset of the first record.
    pub base_offset: i64,
    /// The offset of the last record.
    pub last_offset: i64,
    /// The greatest timestamp in the batch.
    pub max_timestamp: i64,
    /// The producer's id, or -1.
    pub producer_id: i64,
    /// The producer's epoch, or -1.
    pub producer_epoch: i16,
    /// The sequence number of the first record, or -1.
    pub base_sequence: i32,
    /// The batch as it travels.
    pub bytes: Bytes,
    pub(super) transactional: bool,
    pub(super) control: bool,
}

/// How a transaction ends in one partition, and on the word of which coordinator: each that comes after another has a
/// greater epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// Whether what was written counts.
    pub commit: bool,
    /// Of the coordinator.
    pub coordinator_epoch: i32,
}

impl Batch {
    /// Whether it belongs to a transaction.
    pub fn is_transactional(&self) -> bool {
        self.transactional
    }

    /// Whether it is a marker of the coordinator's, not data.
    pub fn is_control(&self) -> bool {
        self.control
    }

    /// The sequence number of the last record; numbers start again after `i32::MAX`.
    pub(crate) fn last_sequence(&self) -> i32 {
        let records = self.last_delta() as i32;
        self.base_sequence.checked_add(records).unwrap_or_else(|| records - (i32::MAX - self.base_sequence) - 1)
    }

    /// How far the last offset is behind the first. Wrapping, because until it is [`placed`](Self::placed) a batch has
    /// the offsets that its producer chose, which no checksum covers and nobody has looked at.
    fn last_delta(&self) -> i64 {
        self.last_offset.wrapping_sub(self.base_offset)
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
        let read = BatchHead::read(bytes).map_err(|error| refusal(&error))?;
        let Some((head, length)) = read else {
            return Err(Code::CorruptMessage.because("A record batch announces another length than it has."));
        };
        let last_delta = head.last_offset.wrapping_sub(head.base_offset);
        if last_delta < 0 || i64::from(head.count) != last_delta + 1 {
            return Err(Code::InvalidRecord.because("The count of records does not fit the last offset delta."));
        }
        Ok(Self {
            base_offset: head.base_offset,
            last_offset: head.last_offset,
            max_timestamp: head.max_timestamp,
            producer_id: head.producer.id,
            producer_epoch: head.producer.epoch,
            base_sequence: head.producer.sequence,
            bytes: bytes.split_to(length),
            transactional: head.transactional,
            control: head.control,
        })
    }

    /// The same batch at its place in the log.
    pub(crate) fn placed(mut self, offset: i64, leader_epoch: i32) -> Self {
        self.last_offset = offset + self.last_delta();
        self.base_offset = offset;
        self.bytes = records::place(&self.bytes, offset, leader_epoch);
        self
    }

    /// A batch of plain records, as a producer without compression would send it.
    pub fn of_records(timestamp: i64, records: &[(Option<Bytes>, Option<Bytes>)]) -> Bytes {
        encode(timestamp, NO_PRODUCER, false, records)
    }

    /// The same for an idempotent or transactional producer.
    pub fn of_producer(
        timestamp: i64,
        producer: (i64, i16, i32),
        transactional: bool,
        records: &[(Option<Bytes>, Option<Bytes>)],
    ) -> Bytes {
        let (id, epoch, sequence) = producer;
        encode(timestamp, Producer { id, epoch, sequence }, transactional, records)
    }

    /// The marker that ends a producer's transaction in one partition.
    pub(crate) fn marker(timestamp: i64, producer: (i64, i16), end: End) -> Result<Self, Refusal> {
        let (id, epoch) = producer;
        let marker = encode_marker(Producer { id, epoch, sequence: -1 }, end.commit, end.coordinator_epoch, timestamp);
        Self::read(&mut marker.map_err(|error| refusal(&error))?)
    }

    /// What a marker says.
    pub(super) fn end(&self) -> Option<End> {
        // Key (version, kind), length of the value, value (version, epoch), count of headers.
        let tail = self.bytes.last_chunk::<12>().filter(|_| self.control)?;
        let coordinator_epoch = i32::from_be_bytes(*tail[7..11].first_chunk()?);
        Some(End { commit: tail[3] != 0, coordinator_epoch })
    }

    /// Refuses a batch whose records are not what its head says of them, as a broker does before it keeps them: whoever
    /// read it later could read nothing behind it either. Tells whether all have a key, as compaction demands.
    ///
    /// Stricter than Kafka in one thing: a record has to be at the offset of its place. Kafka writes a compressed batch
    /// anew where that is not so and keeps a plain one as it is; here the cleaner and readers rely on it.
    pub(crate) fn check_records(&self) -> Result<bool, Refusal> {
        let announced = self.last_delta() + 1;
        let mut found = 0;
        let mut all_have_keys = true;
        for opened in open_batches(self.bytes.clone()) {
            // What cannot be decompressed is an error that Kafka has no code for.
            let opened = opened.map_err(|error| Code::UnknownServerError.because(error.to_string()))?;
            for stored in opened.records {
                let stored = stored.map_err(|error| Code::InvalidRecord.because(error.to_string()))?;
                if stored.offset != self.base_offset.wrapping_add(found) {
                    return Err(Code::InvalidRecord.because("A record is not at the offset of its place in the batch."));
                }
                all_have_keys &= stored.record.key.is_some();
                found += 1;
            }
        }
        if found != announced {
            let text = "A record batch has another number of records than it announces.";
            return Err(Code::InvalidRecord.because(text));
        }
        Ok(all_have_keys)
    }

    /// Timestamp and offset of the first record at or after `timestamp`, of those from the offset `start` on. What
    /// cannot be opened is taken from its beginning, so that a reader starts early and misses nothing.
    pub(crate) fn find(&self, timestamp: i64, start: i64) -> Option<(i64, i64)> {
        let Some(Ok(opened)) = open_batches(self.bytes.clone()).next() else {
            return Some((self.max_timestamp, self.base_offset.max(start)));
        };
        let mut kept = opened.records.flatten().filter(|stored| stored.offset >= start);
        let found = kept.find(|stored| stored.record.timestamp >= timestamp)?;
        Some((found.record.timestamp, found.offset))
    }
}

fn refusal(error: &RecordsError) -> Refusal {
    match error {
        RecordsError::Format(format) => Code::InvalidRecord.because(format!(
            "Produce requests with version 3 or higher are only allowed to contain record batches with magic version 2, not {format}"
        )),
        RecordsError::Checksum => Code::CorruptMessage.plain(),
        error => Code::CorruptMessage.because(error.to_string()),
    }
}

fn encode(
    timestamp: i64,
    producer: Producer,
    transactional: bool,
    records: &[(Option<Bytes>, Option<Bytes>)],
) -> Bytes {
    let of = |(key, value): &(Option<Bytes>, Option<Bytes>)| Record {
        key: key.clone(),
        value: value.clone(),
        headers: Vec::new(),
        timestamp,
    };
    let records: Vec<Record> = records.iter().map(of).collect();
    let options = BatchOptions { compression: Compression::None, producer, transactional };
    encode_batch(&records, &options).expect("fewer records than two thousand million, and no compression to fail")
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;

    use super::*;

    /// Where the checksummed part of a batch begins.
    const CHECKED: usize = 21;

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
    fn records_that_are_not_what_the_head_says_are_refused() -> Result<(), Refusal> {
        let records = [(text("k"), text("v")), (text("k"), text("v"))];
        let good = Batch::of_records(7, &records);
        Batch::read_all(good.clone())?[0].check_records()?;
        let with = |change: &dyn Fn(&mut BytesMut)| {
            let mut bad = BytesMut::from(&good[..]);
            change(&mut bad);
            let sum = crc32c::crc32c(&bad[CHECKED..]);
            bad[CHECKED - 4..CHECKED].copy_from_slice(&sum.to_be_bytes());
            Batch::read_all(bad.freeze()).and_then(|batches| batches[0].check_records())
        };
        let promising = |bytes: &mut BytesMut| {
            bytes[23..27].copy_from_slice(&(i32::MAX - 1).to_be_bytes());
            bytes[57..61].copy_from_slice(&i32::MAX.to_be_bytes());
        };
        assert!(with(&promising).is_err(), "more records announced than there are");
        assert!(with(&|bytes| bytes[61..].fill(0xff)).is_err(), "no records at all");
        for compression in 1..=4 {
            assert!(with(&|bytes| bytes[22] = compression).is_err(), "not compressed by {compression}");
        }
        // A record here is nine bytes, and its offset is the fourth of them, after length, attributes and time.
        for (second, right) in [(2, true), (0, false), (4, false), (1, false), (127, false)] {
            let moved = with(&|bytes| bytes[61 + 9 + 3] = second);
            assert_eq!(moved.is_ok(), right, "the second record at {second}: {moved:?}");
        }
        Ok(())
    }

    #[test]
    fn the_offset_that_a_producer_chose_means_nothing() -> Result<(), Refusal> {
        let good = Batch::of_producer(7, (5, 1, 10), false, &[(text("k"), text("v")), (text("k"), text("v"))]);
        for chosen in [i64::MAX, i64::MAX - 1, -1, i64::MIN, 4_711] {
            let mut bytes = BytesMut::from(&good[..]);
            bytes[..8].copy_from_slice(&chosen.to_be_bytes());
            let [batch] = &Batch::read_all(bytes.freeze())?[..] else { panic!("one batch") };
            assert!(batch.check_records()?);
            assert_eq!(batch.last_sequence(), 11);
            let placed = batch.clone().placed(40, 0);
            assert_eq!((placed.base_offset, placed.last_offset), (40, 41));
        }
        Ok(())
    }

    #[test]
    fn sequence_numbers_wrap_to_zero() -> Result<(), Refusal> {
        let bytes = Batch::of_producer(7, (5, 1, i32::MAX), false, &[(None, None), (None, None)]);
        assert_eq!(Batch::read_all(bytes)?[0].last_sequence(), 0);
        Ok(())
    }

    #[test]
    fn a_record_is_found_by_its_time_even_where_it_is_compressed() -> Result<(), Refusal> {
        let of = |timestamp| Record { timestamp, ..Record::default() };
        for compression in [Compression::None, Compression::Zstd] {
            let options = BatchOptions { compression, producer: NO_PRODUCER, transactional: false };
            let bytes = encode_batch(&[of(10), of(30), of(20)], &options).expect("a batch");
            let batch = Batch::read_all(bytes)?.remove(0).placed(40, 0);
            assert_eq!([5, 11, 30].map(|time| batch.find(time, 0)), [Some((10, 40)), Some((30, 41)), Some((30, 41))]);
            // What was deleted is found no more, and has lent its time to nobody.
            assert_eq!([41, 42].map(|start| batch.find(5, start)), [Some((30, 41)), Some((20, 42))]);
            assert_eq!(batch.find(30, 42), None);
        }
        Ok(())
    }
}
