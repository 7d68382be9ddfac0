//! How long to wait before the next try.

use std::time::Duration;

use kube::runtime::utils::{Backoff, ResetTimerBackoff};
use tokio::time::Instant;

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

/// When to look again although nothing was heard: after a write that failed, or at a time that was agreed on.
#[derive(Debug, Default)]
pub(crate) struct Again {
    waits: Doubling,
    at: Option<Instant>,
}

impl Again {
    /// A round of work has ended like this; all being well, the next one is due at `next` at the latest.
    pub(crate) fn after(&mut self, controller: &str, round: kube::Result<Option<Instant>>) {
        self.at = match round {
            Ok(next) => {
                self.waits.reset();
                next
            }
            Err(error) => {
                // Somebody else was faster, which the watch is about to tell; or the server is not well.
                tracing::debug!(controller, %error, "could not finish a round; trying again");
                self.waits.next().map(|wait| Instant::now() + wait)
            }
        };
    }

    /// Waits until the next round is due; for ever if none is.
    pub(crate) async fn due(&self) {
        match self.at {
            Some(at) => tokio::time::sleep_until(at).await,
            None => std::future::pending().await,
        }
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
