use super::*;
use crate::monitor::sample::METRICS;

const LAYOUT: Layout = Layout { length: 1_000, kept: 5, enough: 4, may_be_stretched: 2, early: false };
const ALL: Requirement = Requirement { windows: 1, ratio: 1.0 };

fn partition(number: i32) -> TopicPartition {
    TopicPartition::new("t", number)
}

/// Windows of partition 0, oldest first, with so many samples each; the one being filled comes after.
fn filled(samples: &[u32]) -> Windows {
    let mut windows = Windows::new(LAYOUT);
    for (window, count) in samples.iter().enumerate() {
        add(&mut windows, 0, window as i64, *count, 10.0 * (window + 1) as f64);
    }
    add(&mut windows, 0, samples.len() as i64, 1, 1e9);
    windows
}

fn add(windows: &mut Windows, number: i32, window: i64, count: u32, value: f64) {
    for sample in 0..count {
        let time = window * LAYOUT.length + i64::from(sample);
        let values = Values([value; METRICS]).with(Metric::Disk, value + f64::from(sample));
        windows.add(&PartitionSample { partition: partition(number), leader: 0, time, values });
    }
}

fn aggregate(windows: &Windows, requirement: Requirement) -> Result<Aggregate, NotEnough> {
    windows.aggregate(&[partition(0)], requirement, 9_999)
}

fn cpu(windows: &Windows) -> f64 {
    aggregate(windows, ALL).unwrap().loads[&partition(0)].get(Metric::Cpu).unwrap()
}

#[test]
fn the_window_being_filled_says_nothing() {
    let windows = filled(&[]);
    let error = aggregate(&windows, ALL).unwrap_err();
    assert_eq!(
        error.to_string(),
        "There is no window available in range [-1, 9999] (index [1, 1]). Window index (current: 1, oldest: 1)."
    );
    assert_eq!(cpu(&filled(&[4])), 10.0);
}

#[test]
fn the_very_first_window_counts_at_once_if_so_wanted() {
    let mut windows = Windows::new(Layout { early: true, enough: 1, ..LAYOUT });
    assert!(aggregate(&windows, ALL).is_err());
    add(&mut windows, 0, 7, 1, 5.0);
    assert_eq!(cpu(&windows), 5.0);
    let before = windows.generation();
    add(&mut windows, 0, 7, 1, 7.0);
    assert_ne!(windows.generation(), before);
    // From the second on, only complete ones do.
    add(&mut windows, 0, 8, 1, 100.0);
    assert_eq!(cpu(&windows), 6.0);
}

#[test]
fn rates_are_averaged_over_windows_and_of_the_disk_the_latest_counts() {
    let windows = filled(&[4, 4, 4]);
    let aggregate = aggregate(&windows, ALL).unwrap();
    let load = aggregate.loads[&partition(0)];
    assert_eq!(load.get(Metric::Cpu), Some(20.0));
    assert_eq!(load.get(Metric::Disk), Some(33.0));
    let peaks = windows.peaks(&[partition(0)], &aggregate.windows);
    assert_eq!(peaks[&partition(0)].get(Metric::LeaderBytesIn), Some(30.0));
    assert_eq!((aggregate.windows, aggregate.stretched), (vec![3_000, 2_000, 1_000], 0));
}

#[test]
fn half_the_samples_are_stretched() {
    let aggregate = aggregate(&filled(&[2]), ALL).unwrap();
    assert_eq!((aggregate.stretched, aggregate.coverage), (1, 1.0));
}

#[test]
fn neighbours_stand_in_for_a_hole_before_a_single_sample_does() {
    // 10 and 30 stand in with 20 for the window between, whether it is empty or has one sample of 99.
    let mut windows = filled(&[4, 0, 4]);
    assert_eq!(cpu(&windows), 20.0);
    add(&mut windows, 0, 1, 1, 99.0);
    assert_eq!(cpu(&windows), 20.0);
    // Without a neighbour the single sample is all there is.
    assert_eq!(cpu(&filled(&[1])), 10.0);
}

#[test]
fn a_hole_that_nothing_fills_ends_what_can_be_used() {
    let windows = filled(&[4, 4, 0, 0, 4]);
    let used = aggregate(&windows, ALL).unwrap();
    assert_eq!(used.windows, [5_000]);
    let error = aggregate(&windows, Requirement { windows: 2, ratio: 1.0 }).unwrap_err();
    assert_eq!(error, NotEnough::TooFew { valid: 1, wanted: 2, ratio: 1.0, now: 9_999 });
}

#[test]
fn too_much_stretched_is_not_valid() {
    assert!(aggregate(&filled(&[2, 2]), Requirement { windows: 2, ratio: 1.0 }).is_ok());
    assert!(aggregate(&filled(&[2, 2, 2]), Requirement { windows: 3, ratio: 1.0 }).is_err());
}

#[test]
fn a_window_counts_while_enough_partitions_are_valid_in_it_and_in_all_newer() {
    let mut windows = filled(&[4, 4, 4]);
    for number in 1..4 {
        add(&mut windows, number, 2, 4, 1.0);
    }
    add(&mut windows, 1, 1, 4, 1.0);
    let all: Vec<TopicPartition> = (0..4).map(partition).collect();
    let at = |ratio| windows.aggregate(&all, Requirement { windows: 1, ratio }, 0).unwrap();
    assert_eq!((at(1.0).windows.len(), at(1.0).coverage), (1, 1.0));
    assert_eq!((at(0.5).windows.len(), at(0.5).coverage), (2, 0.5));
    assert_eq!((at(0.25).windows.len(), at(0.25).coverage), (3, 0.25));
    assert_eq!(at(0.25).loads.len(), 1);
}

#[test]
fn old_windows_go_and_late_samples_with_them() {
    let mut windows = filled(&[4; 9]);
    assert_eq!(aggregate(&windows, ALL).unwrap().windows.len(), 5);
    let late = PartitionSample { partition: partition(0), leader: 0, time: 100, values: Values::UNKNOWN };
    assert!(!windows.add(&late));
}

#[test]
fn what_was_never_known_is_unknown_and_a_blind_moment_hides_nothing() {
    let blind = |windows: &mut Windows, window: i64, count| {
        for sample in 0..count {
            let values = Values([50.0; METRICS]).with(Metric::Cpu, f64::NAN);
            let time = window * LAYOUT.length + sample;
            windows.add(&PartitionSample { partition: partition(0), leader: 0, time, values });
        }
    };
    let mut windows = filled(&[4, 4]);
    blind(&mut windows, 1, 1);
    assert_eq!(cpu(&windows), 15.0);

    let mut windows = Windows::new(LAYOUT);
    (0..3).for_each(|window| blind(&mut windows, window, 4));
    let load = aggregate(&windows, ALL).unwrap().loads[&partition(0)];
    assert_eq!((load.get(Metric::Cpu), load.get(Metric::LeaderBytesIn)), (None, Some(50.0)));
}

#[test]
fn the_generation_tells_when_to_ask_again() {
    let mut windows = filled(&[4, 4]);
    let before = windows.generation();
    add(&mut windows, 0, 2, 1, 1.0);
    assert_eq!(windows.generation(), before, "the window being filled says nothing");
    add(&mut windows, 0, 3, 1, 1.0);
    assert_ne!(windows.generation(), before);
    let before = windows.generation();
    windows.retain(|_| true);
    assert_eq!(windows.generation(), before);
    windows.retain(|_| false);
    assert_ne!(windows.generation(), before);
}
