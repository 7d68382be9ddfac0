//! The time of day: the machine's, or for tests one on top of tokio's clock, so that under paused time both stand still
//! and jump together.

use std::time::{SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

/// Tells the time of day. Clones tell the same.
#[derive(Debug, Clone, Copy)]
pub struct WallClock(Kind);

#[derive(Debug, Clone, Copy)]
enum Kind {
    /// Asked each time: it goes on while the machine sleeps, and somebody may set it right.
    Machine,
    Since {
        start: Instant,
        began: i64,
    },
}

impl WallClock {
    /// The machine's.
    pub fn system() -> Self {
        Self(Kind::Machine)
    }

    /// One that shows `millis` since 1970 at this moment.
    pub fn starting_at(millis: i64) -> Self {
        Self(Kind::Since { start: Instant::now(), began: millis })
    }

    /// Milliseconds since 1970.
    pub fn now(&self) -> i64 {
        let millis = |passed: std::time::Duration| i64::try_from(passed.as_millis()).unwrap_or(i64::MAX);
        match self.0 {
            Kind::Machine => millis(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()),
            Kind::Since { start, began } => began.saturating_add(millis(start.elapsed())),
        }
    }
}
