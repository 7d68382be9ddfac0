//! Samples by time: which windows are good enough to plan on, and what they say.
//!
//! A window's number is its start divided by its length, plus one. The newest is still being filled
//! and not used, except, if so wanted, until the first one is complete: then a plan is there within
//! a minute of first contact. Of each partition and window: enough samples make it valid; half of that is
//! stretched; failing that, both neighbours stand in; a single sample is stretched at last. A
//! partition with too much stretched, or with a window that nothing can be made of, is not valid.

use std::collections::BTreeMap;

use evenkeel_kafka::TopicPartition;

use self::cells::{Cell, Cells, Row};
use super::sample::{Metric, PartitionSample, Values};

mod cells;

/// How samples are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Length of a window, in milliseconds.
    pub length: i64,
    /// How many complete windows are kept.
    pub kept: usize,
    /// Samples that make a window valid.
    pub enough: u32,
    /// Windows that may be stretched in one partition.
    pub may_be_stretched: usize,
    /// Whether the very first window counts before it is complete.
    pub early: bool,
}

impl Layout {
    /// How far back the complete windows reach, in milliseconds.
    pub fn reach(&self) -> i64 {
        self.length.saturating_mul(i64::try_from(self.kept).unwrap_or(i64::MAX))
    }
}

/// What a plan asks of the windows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Requirement {
    /// At least so many.
    pub windows: usize,
    /// With at least this share of the partitions valid in all of them.
    pub ratio: f64,
}

impl Requirement {
    /// The least that can be known: one window, whatever is in it.
    pub const LEAST: Requirement = Requirement { windows: 1, ratio: 0.0 };
}

/// Why there is nothing to plan on yet.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum NotEnough {
    /// Not one window is complete.
    #[error(
        "There is no window available in range [-1, {now}] (index [1, {newest}]). Window index (current: {newest}, oldest: {oldest})."
    )]
    NoWindow {
        /// When it was asked.
        now: i64,
        /// The window being filled.
        newest: i64,
        /// The oldest kept.
        oldest: i64,
    },
    /// Too few have enough valid partitions.
    #[error(
        "There are only {valid} valid windows when aggregating in range [-1, {now}] for aggregation options (minValidEntityRatio={ratio:.2}, minValidWindows={wanted})"
    )]
    TooFew {
        /// How many are valid.
        valid: usize,
        /// How many are needed.
        wanted: usize,
        /// The share of partitions that makes one valid.
        ratio: f64,
        /// When it was asked.
        now: i64,
    },
}

/// What the windows say.
#[derive(Debug, Clone, PartialEq)]
pub struct Aggregate {
    /// The ends of the windows used, newest first, in milliseconds.
    pub windows: Vec<i64>,
    /// What each valid partition carries: the newest window's disk, the mean of everything else.
    pub loads: BTreeMap<TopicPartition, Values>,
    /// The share of partitions that is valid.
    pub coverage: f64,
    /// Partitions with something stretched.
    pub stretched: usize,
}

/// The samples of all partitions.
#[derive(Debug, Clone)]
pub struct Windows {
    layout: Layout,
    /// The window being filled; 0 before the first sample.
    newest: i64,
    /// The first window that ever had a sample: what lies before it is not missing.
    first: i64,
    cells: Cells,
    /// Grows whenever an answer might be another.
    generation: u64,
}

/// How good one window of one partition is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Enough samples.
    Valid,
    /// Stretched from few.
    Few,
    /// Stretched from the windows before and after.
    Neighbours,
    Nothing,
}

/// How well partitions are known, window by window, the newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Coverage {
    /// The ends of the complete windows, in milliseconds.
    pub ends: Vec<i64>,
    /// How many partitions there are.
    pub partitions: usize,
    /// How many are valid in this window and in all newer ones.
    valid: Vec<usize>,
    /// How many have something in this window.
    alone: Vec<usize>,
    /// How many of the valid ones have something stretched in this window or in a newer one.
    stretched: Vec<usize>,
    newest: i64,
    oldest: i64,
}

impl Coverage {
    /// How many windows can be used, if they are enough.
    pub fn accepted(&self, requirement: Requirement, now: i64) -> Result<usize, NotEnough> {
        if self.ends.is_empty() {
            return Err(NotEnough::NoWindow { now, newest: self.newest, oldest: self.oldest });
        }
        let valid = self.usable(requirement.ratio);
        if valid < requirement.windows.max(1) {
            let (wanted, ratio) = (requirement.windows, requirement.ratio);
            return Err(NotEnough::TooFew { valid, wanted, ratio, now });
        }
        Ok(valid)
    }

    /// Windows in which at least this share of the partitions is valid, as in all newer ones.
    pub fn usable(&self, ratio: f64) -> usize {
        self.valid.iter().take_while(|valid| share(**valid, self.partitions) >= ratio).count()
    }

    /// Partitions that are valid in the newest `windows`, and how many of them have something stretched.
    pub fn valid(&self, windows: usize) -> (usize, usize) {
        let Some(last) = windows.checked_sub(1).filter(|last| *last < self.valid.len()) else { return (0, 0) };
        (self.valid[last], self.stretched[last])
    }

    /// The share of partitions that each window has something of, by its end.
    pub fn by_window(&self) -> impl Iterator<Item = (i64, f64)> {
        self.ends.iter().zip(&self.alone).map(|(end, known)| (*end, share(*known, self.partitions)))
    }
}

impl Windows {
    /// No samples yet.
    pub fn new(layout: Layout) -> Windows {
        Windows { layout, newest: 0, first: 0, cells: Cells::default(), generation: 0 }
    }

    /// Changes whenever what is said changes.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Whether anybody measures it: some sample that is kept knows it, though perhaps not enough of them.
    pub fn is_measured(&self, metric: Metric) -> bool {
        self.cells.know(metric)
    }

    /// Takes a sample in; one that is older than everything kept is not.
    pub fn add(&mut self, sample: &PartitionSample) -> bool {
        let window = self.window_of(sample.time);
        if window > self.newest {
            self.newest = window;
            self.generation += 1;
            self.cells.forget_before(self.oldest());
        }
        if window < self.oldest() {
            return false;
        }
        self.first = if self.first == 0 { window } else { self.first.min(window) };
        if window < self.newest || self.layout.early && self.first == self.newest {
            // A window that was already counted says something else now.
            self.generation += 1;
        }
        self.cells.add(&sample.partition, window, &sample.values);
        true
    }

    /// Forgets partitions that are gone.
    pub fn retain(&mut self, is_there: impl Fn(&TopicPartition) -> bool) {
        self.generation += u64::from(self.cells.retain(is_there));
    }

    /// How well these partitions are known.
    pub fn coverage<'a>(&self, partitions: impl IntoIterator<Item = &'a TopicPartition>) -> Coverage {
        let numbers: Vec<i64> = self.complete_windows().collect();
        let mut coverage = Coverage {
            ends: numbers.iter().map(|window| window * self.layout.length).collect(),
            partitions: 0,
            valid: vec![0; numbers.len()],
            alone: vec![0; numbers.len()],
            stretched: vec![0; numbers.len()],
            newest: self.newest,
            oldest: self.oldest().max(1),
        };
        for partition in partitions {
            coverage.partitions += 1;
            let cells = self.cells.of(partition);
            let (mut stretched, mut valid) = (0, true);
            for (at, window) in numbers.iter().enumerate() {
                let kind = self.kind(cells, *window);
                coverage.alone[at] += usize::from(kind != Kind::Nothing);
                stretched += usize::from(kind.is_stretched());
                valid &= kind != Kind::Nothing && stretched <= self.layout.may_be_stretched;
                if valid {
                    coverage.valid[at] += 1;
                    coverage.stretched[at] += usize::from(stretched > 0);
                }
            }
        }
        coverage
    }

    /// What is known of these partitions, if it is enough.
    pub fn aggregate<'a>(
        &self,
        partitions: impl IntoIterator<Item = &'a TopicPartition, IntoIter: Clone>,
        requirement: Requirement,
        now: i64,
    ) -> Result<Aggregate, NotEnough> {
        let partitions = partitions.into_iter();
        let coverage = self.coverage(partitions.clone());
        let accepted = coverage.accepted(requirement, now)?;
        Ok(self.aggregate_over(partitions, &coverage, accepted))
    }

    /// What the newest `accepted` windows say of these partitions, which are those of `coverage`.
    pub fn aggregate_over<'a>(
        &self,
        partitions: impl IntoIterator<Item = &'a TopicPartition>,
        coverage: &Coverage,
        accepted: usize,
    ) -> Aggregate {
        let at = |counts: &[usize]| accepted.checked_sub(1).and_then(|last| counts.get(last)).copied().unwrap_or(0);
        let numbers: Vec<i64> = self.complete_windows().take(accepted).collect();
        Aggregate {
            windows: coverage.ends[..accepted].to_vec(),
            loads: self.filled(partitions, &numbers, expected),
            coverage: share(at(&coverage.valid), coverage.partitions),
            stretched: at(&coverage.stretched),
        }
    }

    /// The largest of each metric that any of these windows has, by their ends. Few ask for it, so it is not kept; windows
    /// that have gone since somebody saw them do not count.
    pub fn peaks<'a>(
        &self,
        partitions: impl IntoIterator<Item = &'a TopicPartition>,
        ends: &[i64],
    ) -> BTreeMap<TopicPartition, Values> {
        let oldest = self.oldest();
        let numbers = ends.iter().map(|end| end / self.layout.length).filter(|number| *number >= oldest);
        self.filled(partitions, &numbers.collect::<Vec<_>>(), largest)
    }

    /// What these windows come to, of each partition that is valid in all of them. Collected in one go: a map that is
    /// filled entry by entry, in order, is half empty.
    fn filled<'a>(
        &self,
        partitions: impl IntoIterator<Item = &'a TopicPartition>,
        numbers: &[i64],
        come_to: impl Fn(&[Values]) -> Values,
    ) -> BTreeMap<TopicPartition, Values> {
        let mut values = Vec::with_capacity(numbers.len());
        let mut filled = |partition: &'a TopicPartition| {
            let valid = self.fill(self.cells.of(partition), numbers, &mut values);
            valid.then(|| (partition.clone(), come_to(&values)))
        };
        partitions.into_iter().filter_map(&mut filled).collect()
    }

    /// What each window says, if the partition is valid in all of them.
    fn fill(&self, cells: Row<'_>, numbers: &[i64], values: &mut Vec<Values>) -> bool {
        values.clear();
        let mut stretched = 0;
        for window in numbers {
            let kind = self.kind(cells, *window);
            stretched += usize::from(kind.is_stretched());
            match self.values(cells, *window, kind) {
                Some(told) if stretched <= self.layout.may_be_stretched => values.push(told),
                _ => return false,
            }
        }
        true
    }

    fn window_of(&self, time: i64) -> i64 {
        time.div_euclid(self.layout.length) + 1
    }

    /// The oldest window that is kept.
    fn oldest(&self) -> i64 {
        self.newest - self.layout.kept as i64
    }

    /// Complete windows that something may be in, newest first.
    fn complete_windows(&self) -> impl Iterator<Item = i64> + use<> {
        let first = self.oldest().max(self.first).max(1);
        let early = self.layout.early && self.first == self.newest && self.newest > 0;
        let end = if early { self.newest + 1 } else { self.newest };
        (first..end).rev()
    }

    fn kind(&self, cells: Row<'_>, window: i64) -> Kind {
        let enough = |window: i64| cells.at(window).is_some_and(|cell| u32::from(cell.samples) >= self.layout.enough);
        match cells.at(window) {
            Some(cell) if u32::from(cell.samples) >= self.layout.enough => Kind::Valid,
            Some(cell) if u32::from(cell.samples) >= (self.layout.enough / 2).max(1) => Kind::Few,
            _ if enough(window - 1) && enough(window + 1) => Kind::Neighbours,
            Some(_) => Kind::Few,
            None => Kind::Nothing,
        }
    }

    fn values(&self, cells: Row<'_>, window: i64, kind: Kind) -> Option<Values> {
        let mean = |window: i64| cells.at(window).map(Cell::mean);
        match kind {
            Kind::Valid | Kind::Few => mean(window),
            Kind::Neighbours => Some(mean_of(&[mean(window - 1)?, mean(window + 1)?])),
            Kind::Nothing => None,
        }
    }
}

impl Kind {
    fn is_stretched(self) -> bool {
        matches!(self, Kind::Few | Kind::Neighbours)
    }
}

/// The newest window's disk, the mean of everything else.
fn expected(values: &[Values]) -> Values {
    let newest = values.iter().find_map(|values| values.get(Metric::Disk));
    mean_of(values).with(Metric::Disk, newest.unwrap_or(f64::NAN))
}

/// The mean of what is known; what none of them knows stays unknown.
fn mean_of(some: &[Values]) -> Values {
    Values(std::array::from_fn(|metric| {
        let known = || some.iter().map(|values| values.0[metric]).filter(|value| !value.is_nan());
        known().sum::<f64>() / known().count() as f64
    }))
}

fn largest(values: &[Values]) -> Values {
    values.iter().fold(Values::UNKNOWN, |largest, values| {
        Values(std::array::from_fn(|metric| largest.0[metric].max(values.0[metric])))
    })
}

/// A part of a whole; all of nothing.
fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 { 1.0 } else { part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests;
