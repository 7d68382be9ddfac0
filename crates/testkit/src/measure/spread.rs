//! Many times of the same thing, told by a few of them.

use std::time::Duration;

/// Times in order of length.
#[derive(Clone, Debug)]
pub struct Spread(Vec<Duration>);

impl Spread {
    /// Nothing when there are no times to tell of.
    pub fn of(mut times: Vec<Duration>) -> Option<Self> {
        times.sort_unstable();
        (!times.is_empty()).then_some(Self(times))
    }

    /// The time that half of them stayed within.
    pub fn median(&self) -> Duration {
        self.percentile(50)
    }

    /// The time that `percent` of 100 stayed within: always one that was measured, never one in between.
    pub fn percentile(&self, percent: usize) -> Duration {
        let rank = (self.0.len() * percent).div_ceil(100);
        self.0[rank.saturating_sub(1).min(self.0.len() - 1)]
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn milliseconds(times: impl IntoIterator<Item = u64>) -> Option<Spread> {
        Spread::of(times.into_iter().map(Duration::from_millis).collect())
    }

    #[test]
    fn percentiles_are_times_that_were_measured() {
        let spread = milliseconds((1..=200).rev()).unwrap();
        assert_eq!(spread.median(), Duration::from_millis(100));
        assert_eq!(spread.percentile(99), Duration::from_millis(198));
        assert_eq!(spread.percentile(100), Duration::from_millis(200));
        assert_eq!(spread.percentile(0), Duration::from_millis(1));
        assert_eq!(spread.count(), 200);
    }

    #[test]
    fn one_time_is_every_percentile_and_none_has_none() {
        let spread = milliseconds([7]).unwrap();
        assert_eq!((spread.median(), spread.percentile(99)), (Duration::from_millis(7), Duration::from_millis(7)));
        assert!(milliseconds([]).is_none());
    }
}
