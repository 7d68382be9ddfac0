//! What time it is.

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// A wall clock.
#[derive(Clone, Copy, Debug, Default)]
pub enum Clock {
    /// The machine's.
    #[default]
    Machine,
    /// One that follows tokio's, so that it stands still and jumps under paused time.
    Simulated {
        /// What it showed in the beginning.
        start: Timestamp,
        /// When that was.
        origin: Instant,
    },
}

impl Clock {
    /// Starts now, at `start`. Must be called inside a tokio runtime.
    pub fn simulated(start: Timestamp) -> Self {
        Self::Simulated { start, origin: Instant::now() }
    }

    /// The present moment.
    pub fn now(&self) -> Timestamp {
        match self {
            Self::Machine => Timestamp::now(),
            Self::Simulated { start, origin } => {
                let passed = SignedDuration::try_from(origin.elapsed()).unwrap_or(SignedDuration::MAX);
                start.checked_add(passed).unwrap_or(Timestamp::MAX)
            }
        }
    }
}
