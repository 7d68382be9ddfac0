//! How long to wait before trying again: twice as long each time, give or take a fifth, so that
//! clients which lost the same broker do not come back in step.

use std::time::Duration;

/// The first pause, and the longest.
const FIRST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(2);

/// A stream of pauses from a seed: same seed, same pauses.
#[derive(Debug)]
pub(crate) struct Backoff {
    state: u64,
}

impl Backoff {
    pub(crate) fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The pause after so many failures in a row (at least one).
    pub(crate) fn pause(&mut self, failures: u32) -> Duration {
        let doubled = FIRST.saturating_mul(1 << failures.saturating_sub(1).min(16)).min(LONGEST);
        let share = self.next() % 401;
        doubled.mul_f64(0.8 + share as f64 / 1000.0)
    }

    /// SplitMix64: small, and good enough to keep clients apart.
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_limit_and_differ_by_seed() {
        let pauses = |seed| {
            let mut backoff = Backoff::new(seed);
            (1..12).map(|failures| backoff.pause(failures)).collect::<Vec<_>>()
        };
        assert_eq!(pauses(1), pauses(1));
        assert_ne!(pauses(1), pauses(2));
        for (failures, pause) in (1..).zip(pauses(3)) {
            let middle = FIRST.saturating_mul(1 << (failures - 1)).min(LONGEST);
            assert!(pause >= middle.mul_f64(0.79) && pause <= middle.mul_f64(1.21), "{failures}: {pause:?}");
        }
    }
}
