//! Who has written to a partition under an id: what they may write next, and what they have left open.

use std::collections::VecDeque;

use super::{Aborted, Batch, End, Log, Place};
use crate::code::{Code, Refusal};

/// How many batches of a producer are remembered to recognise one sent again.
const REMEMBERED: usize = 5;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Producer {
    epoch: i16,
    /// First sequence, last sequence and offset of the latest batches.
    recent: VecDeque<(i32, i32, i64)>,
    /// Where its open transaction began.
    pub(super) open_since: Option<i64>,
    /// When it last wrote, or a marker was written for it.
    last_timestamp: i64,
    /// That of the last marker; before the first there was none.
    coordinator_epoch: i32,
}

impl Default for Producer {
    fn default() -> Self {
        Self { epoch: 0, recent: VecDeque::new(), open_since: None, last_timestamp: -1, coordinator_epoch: -1 }
    }
}

/// A producer as its partition knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProducerView {
    /// Its id.
    pub id: i64,
    /// Its epoch.
    pub epoch: i16,
    /// The last sequence number, if it has written under this epoch.
    pub last_sequence: Option<i32>,
    /// When it last wrote, or a marker was written for it.
    pub last_timestamp: i64,
    /// That of the coordinator which wrote the last marker, or -1.
    pub coordinator_epoch: i32,
    /// Where its open transaction began.
    pub open_since: Option<i64>,
}

impl Log {
    /// The offset of an earlier copy of the same batch, nothing for a new one.
    pub(super) fn check_producer(&self, batch: &Batch) -> Result<Option<i64>, Refusal> {
        let Some(known) = self.producers.get(&batch.producer_id).filter(|_| batch.producer_id >= 0) else {
            return Ok(None);
        };
        if batch.producer_epoch < known.epoch {
            return Err(Code::InvalidProducerEpoch.because(format!(
                "Epoch of producer {} is {}, which is smaller than the last seen epoch {}",
                batch.producer_id, batch.producer_epoch, known.epoch
            )));
        }
        if batch.is_control() {
            return Ok(None);
        }
        let sequences = (batch.base_sequence, batch.last_sequence());
        if batch.producer_epoch == known.epoch
            && let Some((_, _, offset)) = known.recent.iter().find(|(first, last, _)| (*first, *last) == sequences)
        {
            return Ok(Some(*offset));
        }
        let expected = match known.recent.back() {
            Some((_, last, _)) if batch.producer_epoch == known.epoch => last.checked_add(1).unwrap_or(0),
            _ if batch.producer_epoch > known.epoch => 0,
            _ => return Ok(None),
        };
        if batch.base_sequence == expected {
            return Ok(None);
        }
        Err(Code::OutOfOrderSequenceNumber.because(format!(
            "Out of order sequence number for producer {} at offset {}: {} (incoming seq. number), {} (expected)",
            batch.producer_id, self.end_offset, batch.base_sequence, expected
        )))
    }

    pub(super) fn note_producer(&mut self, batch: &Batch) {
        if batch.producer_id < 0 {
            return;
        }
        let producer = self.producers.entry(batch.producer_id).or_default();
        if batch.producer_epoch != producer.epoch {
            producer.epoch = batch.producer_epoch;
            producer.recent.clear();
        }
        producer.last_timestamp = batch.max_timestamp;
        if let Some(end) = batch.end() {
            producer.coordinator_epoch = end.coordinator_epoch;
            if let Some(first_offset) = producer.open_since.take()
                && !end.commit
            {
                let (producer_id, last_offset) = (batch.producer_id, batch.last_offset);
                self.aborted.push(Aborted { producer_id, first_offset, last_offset });
            }
            return;
        }
        producer.recent.push_back((batch.base_sequence, batch.last_sequence(), batch.base_offset));
        if producer.recent.len() > REMEMBERED {
            producer.recent.pop_front();
        }
        if batch.is_transactional() {
            producer.open_since.get_or_insert(batch.base_offset);
        }
    }

    /// Ends a producer's transaction here. From now on `epoch` is the least that may write.
    pub(crate) fn end_transaction(
        &mut self,
        producer: (i64, i16),
        end: End,
        timestamp: i64,
        place: Place,
    ) -> Result<(), Refusal> {
        let known = self.producers.get(&producer.0).map_or(-1, |known| known.coordinator_epoch);
        if end.coordinator_epoch < known {
            return Err(Code::TransactionCoordinatorFenced.because(format!(
                "Invalid coordinator epoch for producerId {}: {} (zombie), {known} (current)",
                producer.0, end.coordinator_epoch
            )));
        }
        let marker = Batch::marker(timestamp, producer, end)?;
        self.append(marker, place).map(drop)
    }

    /// Everybody who has written here under an id, by id.
    pub(crate) fn producers(&self) -> Vec<ProducerView> {
        let view = |(id, producer): (&i64, &Producer)| ProducerView {
            id: *id,
            epoch: producer.epoch,
            last_sequence: producer.recent.back().map(|(_, last, _)| *last),
            last_timestamp: producer.last_timestamp,
            coordinator_epoch: producer.coordinator_epoch,
            open_since: producer.open_since,
        };
        self.producers.iter().map(view).collect()
    }
}
