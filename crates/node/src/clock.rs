//! The wall clock, handed in by whoever starts the node. Waits go by tokio's clock; this one only stamps.

use std::fmt;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use tokio::time::Instant;

/// Says what time it is.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Clock {
    /// A clock that asks `now`.
    pub fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// A clock that follows tokio's, so that it stands still and jumps under paused time. Must be made inside a runtime.
    pub fn simulated(start: Timestamp) -> Self {
        let origin = Instant::now();
        Self::new(move || {
            let passed = SignedDuration::try_from(origin.elapsed()).unwrap_or(SignedDuration::MAX);
            start.checked_add(passed).unwrap_or(Timestamp::MAX)
        })
    }

    /// The time.
    pub fn now(&self) -> Timestamp {
        (self.0)()
    }

    /// The time as the API writes it: in whole seconds.
    pub fn stamp(&self) -> Time {
        let now = self.now();
        Time(Timestamp::from_second(now.as_second()).unwrap_or(now))
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Clock")
    }
}
