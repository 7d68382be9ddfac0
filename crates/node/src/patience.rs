//! How long to wait before the next try.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::time::Duration;

use kube::runtime::utils::{Backoff, ResetTimerBackoff};
use tokio::time::Instant;

use crate::watched::Key;

/// A trouble that has not come back for so long is over, or what had it is gone.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(60);

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

    /// The round is over, and the next one is due then at the latest.
    pub(crate) fn at(&mut self, next: Option<Instant>) {
        self.at = next;
    }

    /// Waits until the next round is due; for ever if none is.
    pub(crate) async fn due(&self) {
        match self.at {
            Some(at) => tokio::time::sleep_until(at).await,
            None => std::future::pending().await,
        }
    }
}

/// When each of several objects may be tried again: one that fails waits for itself, and nobody else waits for it.
#[derive(Debug, Default)]
pub(crate) struct Troubles(BTreeMap<Key, Trouble>);

#[derive(Debug)]
struct Trouble {
    waits: Doubling,
    until: Instant,
}

impl Troubles {
    /// Whether this one failed so recently that it is left alone.
    pub(crate) fn hold(&self, of: &Key) -> bool {
        self.0.get(of).is_some_and(|trouble| trouble.until > Instant::now())
    }

    /// How it went with one of them: what came of it, if it went well.
    pub(crate) fn after<T, E: Display>(&mut self, controller: &str, of: &Key, outcome: Result<T, E>) -> Option<T> {
        let error = match outcome {
            Ok(well) => {
                self.0.remove(of);
                return Some(well);
            }
            Err(error) => error,
        };
        let (namespace, name) = of;
        // Somebody else was faster, which the watch is about to tell; or the server is not well, or will not have it.
        tracing::debug!(controller, namespace, name, %error, "could not do what is to be done; trying again");
        let trouble =
            self.0.entry(of.clone()).or_insert_with(|| Trouble { waits: Doubling::default(), until: Instant::now() });
        trouble.until = Instant::now() + trouble.waits.next().unwrap_or_default();
        None
    }

    /// When the first of them may be tried again. Those that nobody has tried for long are forgotten: they are gone.
    pub(crate) fn next(&mut self) -> Option<Instant> {
        let now = Instant::now();
        self.0.retain(|_, trouble| now < trouble.until + FORGOTTEN_AFTER);
        self.0.values().map(|trouble| trouble.until).filter(|until| *until > now).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_fails_waits_alone_and_longer_each_time() {
        let key = |name: &str| ("ns".to_owned(), name.to_owned());
        let failed = || Err::<(), _>(kube::Error::LinesCodecMaxLineLengthExceeded);
        let mut troubles = Troubles::default();
        let waits = |troubles: &mut Troubles| troubles.next().map(|at| (at - Instant::now()).as_millis());
        assert_eq!(troubles.after("tests", &key("a"), failed()), None);
        assert_eq!(troubles.after("tests", &key("b"), Ok::<_, kube::Error>(7)), Some(7));
        assert!(troubles.hold(&key("a")) && !troubles.hold(&key("b")));
        assert_eq!(waits(&mut troubles), Some(50));
        tokio::time::advance(Duration::from_millis(50)).await;
        assert!(!troubles.hold(&key("a")));
        troubles.after("tests", &key("a"), failed());
        assert_eq!(waits(&mut troubles), Some(100));
        tokio::time::advance(Duration::from_secs(70)).await;
        assert_eq!((waits(&mut troubles), troubles.0.len()), (None, 0), "it is gone");
        troubles.after("tests", &key("a"), failed());
        troubles.after("tests", &key("a"), Ok::<_, kube::Error>(()));
        assert_eq!(waits(&mut troubles), None);
    }

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
