//! Samples by time: which windows are good enough to plan on, and what they say.
//!
//! A window's number is its start divided by its length, plus one. The newest is still being filled
//! and not used, except, if so wanted, until the first one is complete: then a plan is there within
//! a minute of first contact. Of each partition and window: enough samples make it valid; half of that is
//! stretched; failing that, both neighbours stand in; a single sample is stretched at last. A
//! partition with too much stretched, or with a window that nothing can be made of, is not valid.

use std::collections::BTreeMap;

use evenkeel_kafka::TopicPartition;

use super::sample::{METRICS, Metric, PartitionSample, Values};

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

/// What a plan asks of the windows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Requirement {
    /// At least so many.
    pub windows: usize,
    /// With at least this share of the partitions valid in all of them.
    pub ratio: f64,
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
    /// The largest of each that any window has.
    pub peaks: BTreeMap<TopicPartition, Values>,
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
    cells: BTreeMap<TopicPartition, Vec<Cell>>,
    /// Grows whenever an answer might be another.
    generation: u64,
}

/// What one window has of one partition.
#[derive(Debug, Clone, Copy)]
struct Cell {
    window: i64,
    samples: u32,
    /// Sums of what was known, but of the disk the latest.
    sums: [f32; METRICS],
    /// In how many samples each was known.
    known: [u16; METRICS],
}

/// How good one window of one partition is.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Grade {
    Valid(Values),
    Stretched(Values),
    Nothing,
}

impl Windows {
    /// No samples yet.
    pub fn new(layout: Layout) -> Windows {
        Windows { layout, newest: 0, first: 0, cells: BTreeMap::new(), generation: 0 }
    }

    /// Changes whenever what is said changes.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// How many complete windows there may be something in.
    pub fn complete(&self) -> usize {
        self.complete_windows().count()
    }

    /// Takes a sample in; one that is older than everything kept is not.
    pub fn add(&mut self, sample: &PartitionSample) -> bool {
        let window = self.window_of(sample.time);
        if window > self.newest {
            self.newest = window;
            self.generation += 1;
            let oldest = self.oldest();
            for cells in self.cells.values_mut() {
                cells.retain(|cell| cell.window >= oldest);
            }
            self.cells.retain(|_, cells| !cells.is_empty());
        }
        if window < self.oldest() {
            return false;
        }
        self.first = if self.first == 0 { window } else { self.first.min(window) };
        if window < self.newest || self.layout.early && self.first == self.newest {
            // A window that was already counted says something else now.
            self.generation += 1;
        }
        let cells = self.cells.entry(sample.partition.clone()).or_default();
        match cells.iter_mut().find(|cell| cell.window == window) {
            Some(cell) => cell.add(&sample.values),
            None => {
                let mut cell = Cell { window, samples: 0, sums: [0.0; METRICS], known: [0; METRICS] };
                cell.add(&sample.values);
                cells.push(cell);
            }
        }
        true
    }

    /// Forgets partitions that are gone.
    pub fn retain(&mut self, is_there: impl Fn(&TopicPartition) -> bool) {
        let before = self.cells.len();
        self.cells.retain(|partition, _| is_there(partition));
        self.generation += u64::from(self.cells.len() != before);
    }

    /// What is known of these partitions, if it is enough.
    pub fn aggregate<'a>(
        &self,
        partitions: impl IntoIterator<Item = &'a TopicPartition>,
        requirement: Requirement,
        now: i64,
    ) -> Result<Aggregate, NotEnough> {
        let windows: Vec<i64> = self.complete_windows().collect();
        if windows.is_empty() {
            return Err(NotEnough::NoWindow { now, newest: self.newest, oldest: self.oldest().max(1) });
        }
        let graded: Vec<(&TopicPartition, Vec<Grade>)> = partitions
            .into_iter()
            .map(|partition| {
                let cells = self.cells.get(partition).map_or(&[][..], Vec::as_slice);
                (partition, windows.iter().map(|window| self.grade(cells, *window)).collect())
            })
            .collect();
        let total = graded.len().max(1) as f64;
        let valid_in = |count: usize| graded.iter().filter(move |(_, grades)| self.is_valid(&grades[..count]));
        let accepted = (1..=windows.len())
            .take_while(|count| graded.is_empty() || valid_in(*count).count() as f64 / total >= requirement.ratio)
            .last()
            .unwrap_or(0);
        if accepted < requirement.windows.max(1) {
            let (wanted, ratio) = (requirement.windows, requirement.ratio);
            return Err(NotEnough::TooFew { valid: accepted, wanted, ratio, now });
        }
        let mut aggregate = Aggregate {
            windows: windows[..accepted].iter().map(|window| window * self.layout.length).collect(),
            loads: BTreeMap::new(),
            peaks: BTreeMap::new(),
            coverage: if graded.is_empty() { 1.0 } else { valid_in(accepted).count() as f64 / total },
            stretched: 0,
        };
        for (partition, grades) in valid_in(accepted) {
            let grades = &grades[..accepted];
            aggregate.stretched += usize::from(grades.iter().any(|grade| matches!(grade, Grade::Stretched(_))));
            aggregate.loads.insert((*partition).clone(), expected(grades));
            aggregate.peaks.insert((*partition).clone(), largest(grades));
        }
        Ok(aggregate)
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

    fn is_valid(&self, grades: &[Grade]) -> bool {
        let stretched = grades.iter().filter(|grade| matches!(grade, Grade::Stretched(_))).count();
        stretched <= self.layout.may_be_stretched && !grades.contains(&Grade::Nothing)
    }

    fn grade(&self, cells: &[Cell], window: i64) -> Grade {
        let at = |window: i64| cells.iter().find(|cell| cell.window == window);
        let enough = |cell: &&Cell| cell.samples >= self.layout.enough;
        match at(window) {
            Some(cell) if enough(&cell) => Grade::Valid(cell.mean()),
            Some(cell) if cell.samples >= (self.layout.enough / 2).max(1) => Grade::Stretched(cell.mean()),
            lacking => match (at(window - 1).filter(enough), at(window + 1).filter(enough)) {
                (Some(before), Some(after)) => Grade::Stretched(between(before.mean(), after.mean())),
                _ => lacking.map_or(Grade::Nothing, |cell| Grade::Stretched(cell.mean())),
            },
        }
    }
}

impl Cell {
    fn add(&mut self, values: &Values) {
        self.samples += 1;
        for (metric, value) in values.0.into_iter().enumerate().filter(|(_, value)| !value.is_nan()) {
            let sum = if metric == Metric::Disk as usize { 0.0 } else { self.sums[metric] };
            self.sums[metric] = sum + value as f32;
            self.known[metric] = self.known[metric].saturating_add(1);
        }
    }

    fn mean(&self) -> Values {
        Values(std::array::from_fn(|metric| {
            let (sum, known) = (f64::from(self.sums[metric]), f64::from(self.known[metric]));
            match metric {
                _ if known == 0.0 => f64::NAN,
                disk if disk == Metric::Disk as usize => sum,
                _ => sum / known,
            }
        }))
    }
}

/// Of each the middle; of what only one of them knows, that.
fn between(one: Values, other: Values) -> Values {
    mean_of(&[one, other])
}

/// The newest window's disk, the mean of everything else.
fn expected(grades: &[Grade]) -> Values {
    let values: Vec<Values> = grades.iter().filter_map(Grade::values).collect();
    let newest = values.iter().find_map(|values| values.get(Metric::Disk));
    mean_of(&values).with(Metric::Disk, newest.unwrap_or(f64::NAN))
}

/// The mean of what is known; what none of them knows stays unknown.
fn mean_of(some: &[Values]) -> Values {
    Values(std::array::from_fn(|metric| {
        let known = || some.iter().map(|values| values.0[metric]).filter(|value| !value.is_nan());
        known().sum::<f64>() / known().count() as f64
    }))
}

fn largest(grades: &[Grade]) -> Values {
    grades.iter().filter_map(Grade::values).fold(Values::UNKNOWN, |largest, values| {
        Values(std::array::from_fn(|metric| largest.0[metric].max(values.0[metric])))
    })
}

impl Grade {
    fn values(&self) -> Option<Values> {
        match self {
            Grade::Valid(values) | Grade::Stretched(values) => Some(*values),
            Grade::Nothing => None,
        }
    }
}

#[cfg(test)]
mod tests;
