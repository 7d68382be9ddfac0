//! Offsets of a partition: real records and simulated ones take them from one row.
//!
//! An offset is the count of all records before it. Simulated records hold nothing, so what is
//! known of them is a formula of time; real ones keep the offset they got.

use super::topic::{Partition, Progress, Topic};
use crate::ids::Millis;
use crate::log::Place;

impl Topic {
    /// The next free offset.
    pub(crate) fn end_offset(&self, number: i32, now: Millis) -> i64 {
        let Some(it) = self.partition(number) else { return 0 };
        (it.tape.records(&self.history, now) + it.log.records()).max(it.log.end_offset())
    }

    /// Where the next batch goes.
    pub(crate) fn next_place(&self, number: i32, now: Millis) -> Place {
        let leader_epoch = self.partition(number).map_or(0, |it| it.registration.leader_epoch);
        Place { offset: self.end_offset(number, now), leader_epoch, roll: self.rules.roll }
    }

    /// The first offset that can be read.
    pub(crate) fn start_offset(&self, number: i32, now: Millis) -> i64 {
        let Some(it) = self.partition(number) else { return 0 };
        let (deleted, deleted_to) = it.log.deleted();
        let simulated = it.tape.deleted_records(&self.history, self.rules.keep, now);
        let first = it.log.first_offset().unwrap_or(i64::MAX);
        (simulated + deleted).min(first).max(deleted_to).min(self.end_offset(number, now))
    }

    /// Records below this offset are on every replica in sync, and were so while enough of them were.
    pub(crate) fn high_watermark(&self, number: i32, now: Millis) -> i64 {
        let Some(it) = self.partition(number) else { return 0 };
        let mark = it.held_mark.unwrap_or_else(|| lowest_in_sync(it, self.end_offset(number, now)));
        mark.max(self.start_offset(number, now))
    }

    /// How many replicas must be in sync: never more than there are.
    pub(crate) fn least_in_sync(&self, partition: &Partition) -> usize {
        self.rules.min_isr.min(partition.registration.replicas.len())
    }

    /// To be called when it has changed who is in sync, or how many must be; the high watermark was at `mark` before. It
    /// stands still while too few are: whoever left may lead again, and does not have what was written since.
    pub(crate) fn hold_mark(&mut self, number: i32, mark: i64, now: Millis) {
        let Some(it) = self.partition(number) else { return };
        let too_few = it.registration.isr.len() < self.least_in_sync(it);
        let mark = mark.min(self.end_offset(number, now));
        if let Some(it) = self.partition_mut(number) {
            it.held_mark = too_few.then_some(mark);
        }
    }

    /// Timestamp and offset of the first record at or after a wall-clock time that was `then`.
    pub(crate) fn find_time(&self, number: i32, timestamp: i64, then: Millis, now: Millis) -> Option<(i64, i64)> {
        let it = self.partition(number)?;
        let real = it.log.find_time(timestamp);
        let before = it.tape.records(&self.history, then.min(now));
        let any_since = it.tape.records(&self.history, now) > before;
        let simulated = any_since.then(|| (timestamp, before + it.log.records_before(timestamp)));
        let start = self.start_offset(number, now);
        let simulated = simulated.map(|(timestamp, offset)| (timestamp, offset.max(start)));
        real.into_iter().chain(simulated).min_by_key(|(_, offset)| *offset)
    }

    /// Timestamp and offset of the youngest record: of a simulated one, if any came after the real ones.
    pub(crate) fn find_youngest(&self, number: i32, wall_clock: i64, now: Millis) -> Option<(i64, i64)> {
        let it = self.partition(number)?;
        let last = self.end_offset(number, now) - 1;
        let simulated = last >= it.log.end_offset().max(self.start_offset(number, now));
        if simulated { Some((wall_clock, last)) } else { it.log.find_youngest() }
    }
}

fn lowest_in_sync(partition: &Partition, end: i64) -> i64 {
    let in_sync = partition.registration.isr.iter().filter_map(|broker| partition.replica(*broker));
    let behind = in_sync.filter_map(|replica| match replica.progress {
        Progress::Following => None,
        Progress::Behind(lag) => Some(lag.offset),
    });
    behind.fold(end, i64::min)
}
