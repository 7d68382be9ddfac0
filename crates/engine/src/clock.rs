//! The time of day, on top of tokio's clock: under paused time both stand still and jump together.

use std::time::{SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

/// Tells the time of day. Clones tell the same.
#[derive(Debug, Clone, Copy)]
pub struct WallClock {
    start: Instant,
    began: i64,
}

impl WallClock {
    /// The machine's.
    pub fn system() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self::starting_at(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }

    /// One that shows `millis` since 1970 at this moment.
    pub fn starting_at(millis: i64) -> Self {
        Self { start: Instant::now(), began: millis }
    }

    /// Milliseconds since 1970.
    pub fn now(&self) -> i64 {
        self.began.saturating_add(i64::try_from(self.start.elapsed().as_millis()).unwrap_or(i64::MAX))
    }
}
