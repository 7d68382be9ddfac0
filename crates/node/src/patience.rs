//! How long to wait before the next try.

use std::time::Duration;

use kube::runtime::utils::{Backoff, ResetTimerBackoff};

/// Soon after the first trouble, seldom after much of it, and as at first after a quiet minute.
pub(crate) fn patience() -> ResetTimerBackoff<Doubling> {
    ResetTimerBackoff::new(Doubling::default(), Duration::from_secs(60))
}

/// Waits that double from 50 ms up to 10 s. A kind that was just installed is often not served for a moment, so the
/// first wait is short; a server that is down is asked six times a minute.
#[derive(Debug, Default)]
pub(crate) struct Doubling {
    tries: u32,
}

impl Iterator for Doubling {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let wait = Duration::from_millis(50) * 2u32.pow(self.tries);
        // Eight doublings are past the limit.
        self.tries = (self.tries + 1).min(8);
        Some(wait.min(Duration::from_secs(10)))
    }
}

impl Backoff for Doubling {
    fn reset(&mut self) {
        self.tries = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_limit_and_start_over() {
        let mut waits = Doubling::default();
        let millis = |waits: &mut Doubling| waits.next().unwrap().as_millis();
        assert_eq!([millis(&mut waits), millis(&mut waits), millis(&mut waits)], [50, 100, 200]);
        assert_eq!(waits.by_ref().take(20).last(), Some(Duration::from_secs(10)));
        waits.reset();
        assert_eq!(millis(&mut waits), 50);
    }
}
