//! Which records of fetched batches a reader sees. Brokers hand out aborted transactions too, with
//! a list of them; leaving them out is the reader's work.

use std::collections::BTreeSet;

use crate::records::{Batch, StoredRecord};

/// What is known of one partition's transactions while its batches are gone through.
#[derive(Debug)]
pub(super) struct Visible {
    /// Where reading began.
    from: i64,
    /// Aborted transactions (producer, first offset) that have not begun yet, the last one first.
    coming: Vec<(i64, i64)>,
    /// Producers whose present transaction was aborted.
    aborting: BTreeSet<i64>,
    /// The offset to go on from.
    pub(super) next: i64,
}

impl Visible {
    /// Before the first batch. The list of aborted transactions is empty for who wants to see theirs too.
    pub(super) fn new(mut aborted: Vec<(i64, i64)>, from: i64) -> Self {
        aborted.sort_by_key(|(_, first)| std::cmp::Reverse(*first));
        Self { from, coming: aborted, aborting: BTreeSet::new(), next: from }
    }

    /// The records of the next batch from the beginning on, without marks and what was aborted.
    pub(super) fn of(&mut self, batch: Batch) -> Vec<StoredRecord> {
        let head = batch.head;
        while let Some((producer, _)) = self.coming.pop_if(|(_, first)| *first <= head.last_offset) {
            self.aborting.insert(producer);
        }
        self.next = self.next.max(head.last_offset.saturating_add(1));
        if head.control {
            // Whatever it says, the producer's transaction is over; its next may be another matter.
            self.aborting.remove(&head.producer.id);
            return Vec::new();
        }
        if head.transactional && self.aborting.contains(&head.producer.id) {
            return Vec::new();
        }
        let mut records = batch.records;
        records.retain(|record| record.offset >= self.from);
        records
    }
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
        let mut visible = Visible::new(aborted.to_vec(), from);
        let seen = batches.into_iter().flat_map(|batch| visible.of(batch)).map(|record| record.offset).collect();
        (seen, visible.next)
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
