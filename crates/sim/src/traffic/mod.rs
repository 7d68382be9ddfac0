//! Simulated load: how many bytes a topic takes in at a moment, and what that adds up to.
//!
//! Nothing is counted tick by tick. The daily curve has a closed integral, so the size of any log at
//! any moment is a formula, and a terabyte costs as little as a byte. Only `+`, `*` and rounding are
//! used: the same numbers come out on every machine.

use crate::ids::Millis;

const DAY: f64 = 86_400_000.0;

/// What is written to and read from a topic.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    /// Bytes per second into the whole topic, averaged over a day.
    pub bytes_in: f64,
    /// How far the day's peak and trough lie from the average: 0 is flat, 1 falls to nothing at night.
    pub swing: f64,
    /// When in the day the rising half begins.
    pub rises_at: Millis,
    /// Bytes that consumers read for each byte written.
    pub fan_out: f64,
    /// Bytes per record.
    pub record_bytes: f64,
    /// Records per produce request.
    pub records_per_request: f64,
    /// Partitions that get more than their share: number and weight, where 1 is an equal share.
    pub hot: Vec<(i32, f64)>,
    /// For compacted topics: bytes of all distinct keys of the topic.
    pub distinct_bytes: f64,
}

impl Default for Load {
    fn default() -> Self {
        Self {
            bytes_in: 0.0,
            swing: 0.0,
            rises_at: 0,
            fan_out: 1.0,
            record_bytes: 1_000.0,
            records_per_request: 10.0,
            hot: Vec::new(),
            distinct_bytes: 0.0,
        }
    }
}

impl Load {
    /// Even load of so many bytes per second.
    pub fn steady(bytes_in: f64) -> Self {
        Self { bytes_in, ..Self::default() }
    }

    /// The share of the topic's load that `partition` of `count` has.
    pub fn share(&self, partition: i32, count: i32) -> f64 {
        let weight = |p: i32| self.hot.iter().find(|(hot, _)| *hot == p).map_or(1.0, |(_, weight)| weight.max(0.0));
        let listed = self.hot.iter().filter(|(hot, _)| (0..count).contains(hot));
        let extra: f64 = listed.map(|(_, weight)| weight.max(0.0) - 1.0).sum();
        let total = f64::from(count) + extra;
        if total > 0.0 { weight(partition) / total } else { 0.0 }
    }

    /// Bytes per second into the topic at `now`.
    pub fn rate(&self, now: Millis) -> f64 {
        self.bytes_in * (1.0 + self.swing * wave(self.day_fraction(now)))
    }

    /// Bytes into the topic from the beginning of time 0 until `now`; negative before it.
    fn integral(&self, now: Millis) -> f64 {
        let at = |moment: Millis| self.swing * wave_integral(self.day_fraction(moment)) * DAY / 1_000.0;
        self.bytes_in * (now as f64 / 1_000.0 + at(now) - at(0))
    }

    fn day_fraction(&self, now: Millis) -> f64 {
        (now - self.rises_at).rem_euclid(DAY as Millis) as f64 / DAY
    }
}

/// Two parabolas that pass for a sine: up in the first half of the day, down in the second.
fn wave(x: f64) -> f64 {
    let bow = |y: f64| 4.0 * y * (1.0 - y);
    if x < 0.5 { bow(2.0 * x) } else { -bow(2.0 * x - 1.0) }
}

/// The integral of [`wave`] from 0 to `x`; zero again after a whole day.
fn wave_integral(x: f64) -> f64 {
    let bow = |y: f64| (2.0 * y * y - 4.0 / 3.0 * y * y * y) / 2.0;
    if x < 0.5 { bow(2.0 * x) } else { bow(1.0) - bow(2.0 * x - 1.0) }
}

/// A topic's load over time: it may be changed, and the past stays as it was.
#[derive(Clone, Debug)]
pub(crate) struct History {
    /// Since when, what, and how much had come in by then.
    eras: Vec<(Millis, Load, f64)>,
}

impl History {
    pub(crate) fn new(since: Millis, load: Load) -> Self {
        Self { eras: vec![(since, load, 0.0)] }
    }

    pub(crate) fn present(&self) -> &Load {
        // There is always an era; the list is made with one and only grows.
        &self.eras[self.eras.len() - 1].1
    }

    fn record_bytes(&self) -> f64 {
        self.present().record_bytes.max(1.0)
    }

    pub(crate) fn change(&mut self, now: Millis, load: Load) {
        let total = self.total(now);
        self.eras.push((now, load, total));
    }

    /// Bytes that came into the topic until `now`.
    pub(crate) fn total(&self, now: Millis) -> f64 {
        let after = self.eras.partition_point(|(since, _, _)| *since <= now);
        let Some((since, load, before)) = after.checked_sub(1).and_then(|n| self.eras.get(n)) else { return 0.0 };
        before + load.integral(now) - load.integral(*since)
    }
}

/// What a topic's configuration lets a log keep.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Keep {
    pub(crate) millis: Option<Millis>,
    pub(crate) bytes: Option<f64>,
    pub(crate) compact: bool,
}

/// The simulated bytes of one partition's log, as positions on one endless tape.
///
/// An era says where the tape was when it began, and which share of the topic runs onto it since.
/// A change of share, bytes put there at once, or a loss begins a new one; the past stays as it was.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tape {
    eras: Vec<Era>,
    /// The share it has while somebody leads.
    share: f64,
    silent: bool,
    /// Retention never gives back what it took.
    floor: f64,
    /// Where it was when the oldest era that is remembered began: what lies before is gone and never comes back.
    forgotten: f64,
}

#[derive(Clone, Copy, Debug)]
struct Era {
    since: Millis,
    share: f64,
    end: f64,
    /// Records on the tape when the era began, and the size of those that come in it.
    records: f64,
    record_bytes: f64,
}

/// More eras than this are not remembered. A log that changes hands more often within its retention keeps less than
/// that, and never more.
const ERAS: usize = 512;

impl Tape {
    pub(crate) fn begin(since: Millis, share: f64, history: &History) -> Self {
        let record_bytes = history.record_bytes();
        let era = Era { since, share, end: 0.0, records: 0.0, record_bytes };
        Self { eras: vec![era], share, silent: false, floor: 0.0, forgotten: 0.0 }
    }

    /// Where the tape ends at `now`.
    pub(crate) fn end(&self, history: &History, now: Millis) -> f64 {
        let after = self.eras.partition_point(|era| era.since <= now);
        let Some(era) = after.checked_sub(1).and_then(|n| self.eras.get(n)) else {
            return self.forgotten;
        };
        if era.share == 0.0 {
            return era.end;
        }
        era.end + era.share * (history.total(now) - history.total(era.since))
    }

    /// How many records have come onto it until `now`.
    pub(crate) fn records(&self, history: &History, now: Millis) -> i64 {
        self.records_below(self.end(history, now), |era| era.since <= now)
    }

    /// How many records lie before what retention has left.
    pub(crate) fn deleted_records(&self, history: &History, keep: Keep, now: Millis) -> i64 {
        if keep.millis.is_none() && keep.bytes.is_none() {
            // A compacted log gets holes; it begins where it always began.
            return 0;
        }
        let start = self.start(history, Keep { compact: false, ..keep }, now);
        self.records_below(start, |era| era.end <= start).min(self.records(history, now))
    }

    /// The records below `position`, which lies in the last era that `fits`.
    fn records_below(&self, position: f64, fits: impl Fn(&Era) -> bool) -> i64 {
        let era = self.eras.iter().rev().find(|era| fits(era)).or(self.eras.first());
        let records = era.map_or(0.0, |era| era.records + (position - era.end) / era.record_bytes);
        records.max(0.0) as i64
    }

    /// Where it begins: what lies before is deleted or compacted away.
    pub(crate) fn start(&self, history: &History, keep: Keep, now: Millis) -> f64 {
        let end = self.end(history, now);
        let mut start = self.floor;
        if keep.compact {
            start = start.max(end - compacted(end, self.share * history.present().distinct_bytes));
        }
        if let Some(millis) = keep.millis {
            start = start.max(self.end(history, now.saturating_sub(millis)));
        }
        if let Some(bytes) = keep.bytes {
            start = start.max(end - bytes);
        }
        start.min(end)
    }

    /// Somebody leads again, or nobody does.
    pub(crate) fn set_silent(&mut self, silent: bool, history: &History, now: Millis) {
        if self.silent != silent {
            self.silent = silent;
            self.turn(history, now, 0.0);
        }
    }

    /// From now on it has this share of the topic; what retention has taken by now stays taken.
    pub(crate) fn set_share(&mut self, share: f64, history: &History, now: Millis, start: f64) {
        self.share = share;
        self.floor = self.floor.max(start);
        self.turn(history, now, 0.0);
    }

    /// Puts bytes there at once.
    pub(crate) fn add(&mut self, bytes: f64, history: &History, now: Millis) {
        self.turn(history, now, bytes);
    }

    /// Takes bytes from its end, so that so many records are left.
    pub(crate) fn cut(&mut self, bytes: f64, records_left: i64, history: &History, now: Millis) {
        self.turn(history, now, -bytes);
        if let Some(era) = self.eras.last_mut() {
            era.records = records_left.max(0) as f64;
        }
    }

    fn turn(&mut self, history: &History, now: Millis, more: f64) {
        let before = self.end(history, now);
        let end = (before + more).max(0.0);
        let share = if self.silent { 0.0 } else { self.share };
        let record_bytes = history.record_bytes();
        let records = self.eras.last().map_or(0.0, |era| era.records + (before - era.end) / era.record_bytes);
        let records = (records + (end - before) / record_bytes).max(0.0);
        if self.eras.last().is_some_and(|era| era.since == now) {
            self.eras.pop();
        }
        self.eras.push(Era { since: now, share, end, records, record_bytes });
        if self.eras.len() > ERAS {
            self.eras.remove(0);
            self.forgotten = self.eras.first().map_or(0.0, |oldest| oldest.end);
        }
    }
}

/// The size of a compacted log: the distinct keys, and as much again until the cleaner comes.
fn compacted(written: f64, distinct: f64) -> f64 {
    if written <= distinct || distinct <= 0.0 {
        return written;
    }
    let dirty = written - distinct;
    distinct + (dirty - (dirty / distinct).floor() * distinct)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Millis = 3_600_000;

    #[test]
    fn the_integral_is_what_the_rate_adds_up_to() {
        let load = Load { swing: 0.8, rises_at: 6 * HOUR, ..Load::steady(1_000.0) };
        let history = History::new(0, load.clone());
        let mut sum = 0.0;
        for minute in 0..3 * 24 * 60 {
            sum += 60.0 * load.rate(minute * 60_000 + 30_000);
        }
        let total = history.total(3 * 24 * HOUR);
        assert!((sum - total).abs() < total * 1e-4, "{sum} against {total}");
        assert!((total - 3.0 * 86_400.0 * 1_000.0).abs() < 1.0, "a whole day is the average");
    }

    #[test]
    fn a_changed_load_leaves_the_past_alone() {
        let mut history = History::new(0, Load::steady(10.0));
        history.change(10_000, Load::steady(1_000.0));
        assert_eq!([history.total(10_000), history.total(11_000)], [100.0, 1_100.0]);
    }

    #[test]
    fn shares_add_up_to_one_with_a_hot_spot() {
        let load = Load { hot: vec![(2, 7.0)], ..Load::default() };
        let shares: Vec<f64> = (0..4).map(|p| load.share(p, 4)).collect();
        assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        assert_eq!(shares[2], 0.7);
    }

    #[test]
    fn retention_by_time_and_by_size_bounds_the_log() {
        let history = History::new(0, Load::steady(100.0));
        let tape = Tape::begin(0, 1.0, &history);
        let size = |keep, now| tape.end(&history, now) - tape.start(&history, keep, now);
        let by_time = Keep { millis: Some(HOUR), bytes: None, compact: false };
        assert_eq!([size(by_time, HOUR / 2), size(by_time, 5 * HOUR)], [180_000.0, 360_000.0]);
        let by_size = Keep { millis: None, bytes: Some(50_000.0), compact: false };
        assert_eq!(size(by_size, 5 * HOUR), 50_000.0);
    }

    #[test]
    fn retention_never_gives_back_however_often_the_leader_changes() {
        const DAYS: Millis = 24 * HOUR;
        let history = History::new(0, Load::steady(100.0));
        let keep = Keep { millis: Some(7 * DAYS), bytes: None, compact: false };
        for (turns, apart) in [(70, HOUR), (2_000, 10_000)] {
            let mut tape = Tape::begin(0, 1.0, &history);
            let (mut start, mut deleted) = (0.0, 0);
            for turn in 0..turns {
                let now = 30 * DAYS + turn * apart;
                // Silent for a moment only, so that what comes in is a week's worth all the same.
                tape.set_silent(true, &history, now);
                tape.set_silent(false, &history, now + 1);
                let seen = (tape.start(&history, keep, now + 1), tape.deleted_records(&history, keep, now + 1));
                assert!(seen.0 >= start && seen.1 >= deleted, "turn {turn}: {seen:?} after {start} and {deleted}");
                (start, deleted) = seen;
                let size = tape.end(&history, now + 1) - start;
                let week = 7.0 * 86_400.0 * 100.0;
                assert!(size <= week + 1.0, "turn {turn}: {size}");
                assert!(turns > 100 || size > week * 0.999, "turn {turn}: {size}");
            }
        }
    }

    #[test]
    fn a_compacted_log_stays_between_its_keys_and_twice_that() {
        for written in 0..200 {
            let size = compacted(f64::from(written), 30.0);
            assert!(size <= 60.0 && size >= 30.0_f64.min(f64::from(written)), "{written}: {size}");
        }
    }

    #[test]
    fn nothing_comes_in_while_nobody_leads() {
        let history = History::new(0, Load::steady(100.0));
        let mut tape = Tape::begin(0, 1.0, &history);
        tape.set_silent(true, &history, 10_000);
        assert_eq!(tape.end(&history, 60_000), 1_000.0);
        tape.set_silent(false, &history, 60_000);
        assert_eq!(tape.end(&history, 61_000), 1_100.0);
    }

    #[test]
    fn bytes_put_there_at_once_go_when_their_time_has_come() {
        let history = History::new(0, Load::default());
        let mut tape = Tape::begin(0, 1.0, &history);
        tape.add(500.0, &history, 1_000);
        let keep = Keep { millis: Some(HOUR), bytes: None, compact: false };
        let size = |now| tape.end(&history, now) - tape.start(&history, keep, now);
        assert_eq!([size(1_000), size(HOUR), size(HOUR + 1_000)], [500.0, 500.0, 0.0]);
    }

    #[test]
    fn records_are_counted_by_their_size_and_go_with_the_bytes() {
        let mut history = History::new(0, Load::steady(1_000.0));
        let mut tape = Tape::begin(0, 1.0, &history);
        assert_eq!(tape.records(&history, 10_500), 10);
        history.change(10_000, Load { record_bytes: 100.0, ..Load::steady(1_000.0) });
        tape.set_share(1.0, &history, 10_000, 0.0);
        assert_eq!([tape.records(&history, 10_000), tape.records(&history, 11_000)], [10, 20], "smaller ones since");
        let keep = Keep { millis: Some(5_000), bytes: None, compact: false };
        let deleted = |now| tape.deleted_records(&history, keep, now);
        assert_eq!([deleted(4_000), deleted(10_000), deleted(16_000)], [0, 5, 20]);
        let compacted = Keep { millis: None, bytes: None, compact: true };
        assert_eq!(tape.deleted_records(&history, compacted, 60_000), 0);
    }
}
