//! Offsets without records, as a batch that says so: what the cleaner leaves of a producer's last
//! batch, and how readers get past simulated records. Clients skip it and go on behind its end.

use bytes::Bytes;
use evenkeel_kafka::records::{BatchHead, Compression, NO_PRODUCER, Producer};

use super::Batch;

/// The offsets from `base` up to and including `last`, or as many of them as one batch can hold.
pub(super) fn gap(base: i64, last: i64, leader_epoch: i32) -> Bytes {
    empty(base, last, leader_epoch, -1, NO_PRODUCER, false)
}

/// A batch of which nothing is left but who wrote it last, so that a copy sent again is recognised.
pub(super) fn emptied(batch: &Batch, leader_epoch: i32) -> Batch {
    let producer = Producer { id: batch.producer_id, epoch: batch.producer_epoch, sequence: batch.base_sequence };
    let transactional = batch.is_transactional();
    let bytes = empty(batch.base_offset, batch.last_offset, leader_epoch, batch.max_timestamp, producer, transactional);
    Batch { bytes, ..batch.clone() }
}

fn empty(base: i64, last: i64, leader_epoch: i32, timestamp: i64, producer: Producer, transactional: bool) -> Bytes {
    let delta = i32::try_from(last - base).unwrap_or(i32::MAX);
    let head = BatchHead {
        base_offset: base,
        last_offset: base + i64::from(delta),
        leader_epoch,
        producer,
        transactional,
        control: false,
        compression: Compression::None,
        stamped_on_append: false,
        base_timestamp: timestamp,
        max_timestamp: timestamp,
        count: 0,
    };
    // Without a body there is nothing that could be too long.
    head.seal(&[]).unwrap_or_default()
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
