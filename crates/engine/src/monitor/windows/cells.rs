//! What each window has of each partition: one flat list for each window, in which every partition has its row. Of a
//! hundred thousand partitions that is six lists and not a hundred thousand, and a window that is forgotten leaves no holes.

use std::collections::BTreeMap;

use evenkeel_kafka::{TopicName, TopicPartition};

use crate::monitor::sample::{METRICS, Metric, Values};

/// All of them.
#[derive(Debug, Clone, Default)]
pub(super) struct Cells {
    /// The row of each partition, by topic and then in order of numbers.
    rows: BTreeMap<TopicName, Vec<(i32, u32)>>,
    /// How many rows were ever needed at once.
    made: u32,
    /// Those of them that are nobody's now.
    free: Vec<u32>,
    /// What each window has, row by row. A list may end early: there is nothing in the rows after it.
    windows: BTreeMap<i64, Vec<Cell>>,
}

/// What one window has of one partition; without samples, nothing.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cell {
    pub(super) samples: u16,
    /// Sums of what was known, but of the disk the latest.
    sums: [f32; METRICS],
    /// In how many samples each was known.
    known: [u16; METRICS],
}

/// The cells of one partition.
#[derive(Clone, Copy)]
pub(super) struct Row<'c> {
    cells: &'c Cells,
    number: Option<u32>,
}

impl<'c> Row<'c> {
    /// What a window has, if it has anything.
    pub(super) fn at(&self, window: i64) -> Option<&'c Cell> {
        self.cells.windows.get(&window)?.get(self.number? as usize).filter(|cell| cell.samples > 0)
    }
}

impl Cells {
    /// The cells of a partition.
    pub(super) fn of(&self, partition: &TopicPartition) -> Row<'_> {
        let numbers = self.rows.get(&partition.topic);
        let row = numbers.and_then(|numbers| {
            let at = numbers.binary_search_by_key(&partition.partition, |(number, _)| *number).ok()?;
            Some(numbers[at].1)
        });
        Row { cells: self, number: row }
    }

    /// Takes what was measured into a window.
    pub(super) fn add(&mut self, partition: &TopicPartition, window: i64, values: &Values) {
        let row = self.row(partition) as usize;
        let cells = self.windows.entry(window).or_default();
        if cells.is_empty() {
            // As long as the others: a list that grows takes twice what it holds.
            cells.reserve_exact(self.made as usize);
        }
        if cells.len() <= row {
            cells.resize(row + 1, Cell::NOTHING);
        }
        cells[row].add(values);
    }

    /// Whether any cell has something known.
    pub(super) fn know(&self, metric: Metric) -> bool {
        self.windows.values().flatten().any(|cell| cell.known[metric as usize] > 0)
    }

    /// Forgets the windows before this one, and partitions that nothing is left of then.
    pub(super) fn forget_before(&mut self, oldest: i64) {
        self.windows = self.windows.split_off(&oldest);
        // What is complete grows no more.
        self.windows.values_mut().for_each(Vec::shrink_to_fit);
        let windows = &self.windows;
        let is_left =
            |row: u32| windows.values().any(|cells| cells.get(row as usize).is_some_and(|cell| cell.samples > 0));
        let free = &mut self.free;
        self.rows.retain(|_, numbers| {
            numbers.retain(|(_, row)| is_left(*row) || give_back(free, *row));
            !numbers.is_empty()
        });
    }

    /// Forgets partitions; tells whether there were any to forget.
    pub(super) fn retain(&mut self, is_there: impl Fn(&TopicPartition) -> bool) -> bool {
        let mut gone = Vec::new();
        self.rows.retain(|topic, numbers| {
            numbers
                .retain(|(number, row)| is_there(&TopicPartition::new(topic, *number)) || give_back(&mut gone, *row));
            !numbers.is_empty()
        });
        for cells in self.windows.values_mut() {
            for row in &gone {
                if let Some(cell) = cells.get_mut(*row as usize) {
                    *cell = Cell::NOTHING;
                }
            }
        }
        let any = !gone.is_empty();
        self.free.append(&mut gone);
        any
    }

    /// The row of a partition, a new one if it has none.
    fn row(&mut self, partition: &TopicPartition) -> u32 {
        if !self.rows.contains_key(&partition.topic) {
            self.rows.insert(partition.topic.clone(), Vec::new());
        }
        let numbers = self.rows.get_mut(&partition.topic).expect("it is there");
        match numbers.binary_search_by_key(&partition.partition, |(number, _)| *number) {
            Ok(at) => numbers[at].1,
            Err(at) => {
                let row = self.free.pop().unwrap_or_else(|| {
                    self.made += 1;
                    self.made - 1
                });
                numbers.insert(at, (partition.partition, row));
                row
            }
        }
    }
}

/// Gives a row back, which is to be kept no longer.
fn give_back(to: &mut Vec<u32>, row: u32) -> bool {
    to.push(row);
    false
}

impl Cell {
    const NOTHING: Cell = Cell { samples: 0, sums: [0.0; METRICS], known: [0; METRICS] };

    fn add(&mut self, values: &Values) {
        self.samples = self.samples.saturating_add(1);
        for (metric, value) in values.0.into_iter().enumerate().filter(|(_, value)| !value.is_nan()) {
            let sum = if metric == Metric::Disk as usize { 0.0 } else { self.sums[metric] };
            self.sums[metric] = sum + value as f32;
            self.known[metric] = self.known[metric].saturating_add(1);
        }
    }

    pub(super) fn mean(&self) -> Values {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn t(number: i32) -> TopicPartition {
        TopicPartition::new("t", number)
    }

    fn disk(cells: &Cells, number: i32, window: i64) -> Option<f64> {
        cells.of(&t(number)).at(window).and_then(|cell| cell.mean().get(Metric::Disk))
    }

    #[test]
    fn whoever_gets_the_row_of_another_finds_nothing_in_it() {
        let mut cells = Cells::default();
        let add = |cells: &mut Cells, number, window, value| {
            cells.add(&t(number), window, &Values::UNKNOWN.with(Metric::Disk, value));
        };
        for number in [7, 3, 5] {
            add(&mut cells, number, 1, f64::from(number));
        }
        add(&mut cells, 5, 2, 50.0);
        assert!(!cells.retain(|_| true));
        assert!(cells.retain(|partition| partition.partition != 3));
        assert_eq!((disk(&cells, 3, 1), disk(&cells, 5, 1), disk(&cells, 7, 1)), (None, Some(5.0), Some(7.0)));
        add(&mut cells, 4, 2, 40.0);
        assert_eq!((disk(&cells, 4, 1), disk(&cells, 4, 2), cells.made), (None, Some(40.0), 3));
        // 7 was only in the first window.
        cells.forget_before(2);
        assert_eq!((disk(&cells, 7, 1), disk(&cells, 5, 2), disk(&cells, 4, 2)), (None, Some(50.0), Some(40.0)));
        add(&mut cells, 9, 2, 90.0);
        assert_eq!((disk(&cells, 7, 2), disk(&cells, 9, 2), cells.made), (None, Some(90.0), 3));
        assert!(cells.know(Metric::Disk) && !cells.know(Metric::Cpu));
    }
}
