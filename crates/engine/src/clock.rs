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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const HOUR: u64 = 3_600_000;

    #[tokio::test(start_paused = true)]
    async fn the_machines_time_is_asked_each_time_and_not_counted_on_from_the_start() {
        let machine = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64;
        let (clock, before) = (WallClock::system(), machine());
        // What timers count and what the machine's clock shows drift apart, as over a suspend.
        tokio::time::advance(Duration::from_millis(HOUR)).await;
        assert!((before..=machine()).contains(&clock.now()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_clock_for_tests_goes_with_timers() {
        let clock = WallClock::starting_at(5);
        tokio::time::advance(Duration::from_millis(HOUR)).await;
        assert_eq!(clock.now(), 5 + HOUR as i64);
    }
}
