//! Offsets without records, as a batch that says so: what the cleaner leaves of a producer's last
//! batch, and how readers get past simulated records. Clients skip it and go on behind its end.

use bytes::{Bytes, BytesMut};
use evenkeel_kafka::records::{BatchOptions, Compression, Producer, encode_batch};

use super::Batch;

/// Where the checksum, the checksummed part, the last offset's delta and the timestamps lie.
const CHECKSUM: usize = 17;
const CHECKED: usize = 21;
const LAST_DELTA: usize = 23;
const MAX_TIMESTAMP: usize = 35;

/// Nobody wrote it.
const NOBODY: Producer = Producer { id: -1, epoch: -1, sequence: -1 };

/// The offsets from `base` up to and including `last`, or as many of them as one batch can hold.
pub(super) fn gap(base: i64, last: i64, leader_epoch: i32) -> Bytes {
    empty(base, last, leader_epoch, -1, NOBODY, false)
}

/// A batch of which nothing is left but who wrote it last, so that a copy sent again is recognised.
pub(super) fn emptied(batch: &Batch, leader_epoch: i32) -> Batch {
    let producer = Producer { id: batch.producer_id, epoch: batch.producer_epoch, sequence: batch.base_sequence };
    let transactional = batch.is_transactional();
    let bytes = empty(batch.base_offset, batch.last_offset, leader_epoch, batch.max_timestamp, producer, transactional);
    let compression = 0b111;
    Batch { bytes, attributes: batch.attributes & !compression, ..batch.clone() }
}

fn empty(base: i64, last: i64, leader_epoch: i32, timestamp: i64, producer: Producer, transactional: bool) -> Bytes {
    let options = BatchOptions { compression: Compression::None, producer, transactional };
    // Without records there is nothing that could not be written.
    let mut bytes = BytesMut::from(&encode_batch(&[], &options).unwrap_or_default()[..]);
    let delta = i32::try_from(last - base).unwrap_or(i32::MAX);
    let mut put = |at: usize, value: &[u8]| {
        if let Some(place) = bytes.get_mut(at..at + value.len()) {
            place.copy_from_slice(value);
        }
    };
    put(0, &base.to_be_bytes());
    put(12, &leader_epoch.to_be_bytes());
    put(LAST_DELTA, &delta.to_be_bytes());
    put(MAX_TIMESTAMP, &timestamp.to_be_bytes());
    let checksum = crc32c::crc32c(bytes.get(CHECKED..).unwrap_or_default());
    bytes[CHECKSUM..CHECKED].copy_from_slice(&checksum.to_be_bytes());
    bytes.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenkeel_kafka::records::decode_batches;

    #[test]
    fn a_gap_is_a_batch_without_records_that_ends_where_it_says() {
        for (last, shown) in [(7, 7), (i64::MAX, 5 + i64::from(i32::MAX))] {
            let read: Vec<_> = decode_batches(gap(5, last, 3)).collect::<Result<_, _>>().expect("well formed");
            let [batch] = &read[..] else { panic!("one batch") };
            assert_eq!((batch.head.base_offset, batch.head.last_offset, batch.head.leader_epoch), (5, shown, 3));
            assert_eq!(batch.records, []);
        }
    }
}
