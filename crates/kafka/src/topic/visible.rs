//! Which records of fetched batches a reader sees. Brokers hand out aborted transactions too, with
//! a list of them; leaving them out is the reader's work.

use std::collections::BTreeSet;

use crate::records::{Batch, StoredRecord};

/// The records of `batches` from `from` on, without marks and, given a list of aborted transactions
/// (producer, first offset), without theirs; and the offset to go on from.
pub(super) fn visible(batches: Vec<Batch>, aborted: &[(i64, i64)], from: i64) -> (Vec<StoredRecord>, i64) {
    let mut coming: Vec<_> = aborted.to_vec();
    coming.sort_by_key(|(_, first)| std::cmp::Reverse(*first));
    let mut aborting = BTreeSet::new();
    let mut seen = Vec::new();
    let mut next = from;
    for batch in batches {
        let head = batch.head;
        while let Some((producer, _)) = coming.pop_if(|(_, first)| *first <= head.last_offset) {
            aborting.insert(producer);
        }
        next = next.max(head.last_offset.saturating_add(1));
        if head.control {
            // Whatever it says, the producer's transaction is over; its next may be another matter.
            aborting.remove(&head.producer.id);
        } else if !(head.transactional && aborting.contains(&head.producer.id)) {
            seen.extend(batch.records.into_iter().filter(|record| record.offset >= from));
        }
    }
    (seen, next)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::{BatchHead, Compression, Producer, Record};

    fn batch(producer: i64, first: i64, count: i64, transactional: bool, control: bool) -> Batch {
        Batch {
            head: BatchHead {
                base_offset: first,
                last_offset: first + count - 1,
                leader_epoch: 0,
                producer: Producer { id: producer, epoch: 0, sequence: 0 },
                transactional,
                control,
                compression: Compression::None,
                stamped_on_append: false,
                base_timestamp: 0,
                max_timestamp: 0,
                count: count as i32,
            },
            records: (first..first + count).map(|offset| StoredRecord { offset, record: Record::default() }).collect(),
        }
    }

    fn offsets(batches: Vec<Batch>, aborted: &[(i64, i64)], from: i64) -> (Vec<i64>, i64) {
        let (seen, next) = visible(batches, aborted, from);
        (seen.iter().map(|record| record.offset).collect(), next)
    }

    #[test]
    fn records_before_the_offset_asked_for_are_left_out() {
        assert_eq!(offsets(vec![batch(-1, 0, 5, false, false)], &[], 3), (vec![3, 4], 5));
    }

    #[test]
    fn an_aborted_transaction_is_left_out_and_the_next_of_that_producer_is_not() {
        let batches = vec![
            batch(7, 0, 2, true, false),
            batch(8, 2, 1, true, false),
            batch(7, 3, 1, true, true),
            batch(7, 4, 1, true, false),
            batch(8, 5, 1, true, true),
            batch(7, 6, 1, true, true),
        ];
        assert_eq!(offsets(batches, &[(7, 0)], 0), (vec![2, 4], 7));
    }

    #[test]
    fn a_transaction_that_begins_to_be_aborted_later_hides_nothing_earlier() {
        let batches = vec![
            batch(7, 0, 1, true, false),
            batch(7, 1, 1, true, true),
            batch(7, 2, 1, true, false),
            batch(7, 3, 1, true, true),
        ];
        assert_eq!(offsets(batches, &[(7, 2)], 0), (vec![0], 4));
    }

    #[test]
    fn a_batch_that_compaction_emptied_still_moves_on() {
        let mut empty = batch(-1, 4, 3, false, false);
        empty.records.clear();
        assert_eq!(offsets(vec![empty], &[], 4), (vec![], 7));
    }
}
