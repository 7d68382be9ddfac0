//! When an engine may act: for a while after the journal has shown that nobody has taken over.
//!
//! Records are fenced, deeds are not: Kafka moves partitions for whoever asks. An engine that stood still, because its
//! process or its machine was stopped, wakes up in the middle of what it was doing, and may have been replaced since. So
//! each deed needs leave. A record of ours that was committed gives it, for five seconds from the moment it was begun, and
//! whoever takes over does nothing for six:
//!
//! ```text
//!   older    --record--|======== leave, 5 s ========|
//!   newer              its name on record --|-------------- 6 s --------------|-- acts
//! ```
//!
//! The last record of the older one was begun before the name of the newer one was on record, so its leave is over when
//! the newer one begins. What this cannot see: a request that left in time and is late on the network, and a machine
//! whose clocks both stood still.

use std::time::Duration;

use tokio::time::Instant;

use crate::clock::WallClock;

/// How long a record gives leave.
const LASTS: Duration = Duration::from_secs(5);
/// What takes longer than this gets new leave in time.
const RENEWED_AFTER: Duration = Duration::from_secs(3);
/// How long an engine that has taken over does nothing: until nobody can have leave any more, and a moment.
pub(super) const SETTLES: Duration = Duration::from_secs(6);
const _: () = assert!(SETTLES.as_secs() > LASTS.as_secs() && LASTS.as_secs() > RENEWED_AFTER.as_secs());

/// A moment by both clocks of a machine: timers stand still while it is suspended, and the time of day may be set back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Moment {
    steady: Instant,
    /// In milliseconds since 1970.
    wall: i64,
}

impl Moment {
    pub(super) fn now(clock: &WallClock) -> Moment {
        Moment { steady: Instant::now(), wall: clock.now() }
    }

    /// What has passed since an earlier one, by the clock that shows more.
    fn since(self, earlier: Moment) -> Duration {
        let wall = u64::try_from(self.wall.saturating_sub(earlier.wall)).unwrap_or(0);
        self.steady.saturating_duration_since(earlier.steady).max(Duration::from_millis(wall))
    }
}

/// Leave to act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Leave {
    /// When the record was begun that gives it.
    given: Moment,
}

impl Leave {
    /// The leave of a record that was begun at this moment, and has been committed since.
    pub(super) fn of_record_begun(given: Moment) -> Leave {
        Leave { given }
    }

    /// Whether something may be done.
    pub(super) fn holds(self, now: Moment) -> bool {
        now.since(self.given) < LASTS
    }

    /// Whether something may begin that takes a moment.
    pub(super) fn is_fresh(self, now: Moment) -> bool {
        now.since(self.given) < RENEWED_AFTER
    }

    /// When it should be renewed.
    pub(super) fn renewal(self) -> Instant {
        self.given.steady + RENEWED_AFTER
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000;

    /// Moments counted from one of the tests' own, in milliseconds of timers and of the time of day.
    struct Clocks(Instant);

    impl Clocks {
        fn at(&self, steady: i64, wall: i64) -> Moment {
            Moment { steady: self.0 + Duration::from_millis(steady.unsigned_abs()), wall }
        }
    }

    /// Every moment at which a record is begun, another engine's name is on record, and this one wakes up: never do both
    /// act, whichever of the clocks of the one that stood still has gone on.
    #[test]
    fn whenever_an_engine_wakes_up_nobody_else_acts_yet() {
        let clocks = Clocks(Instant::now());
        let settles = i64::try_from(SETTLES.as_millis()).unwrap();
        let (mut acted, mut late) = (0, 0);
        for begun in (0..10 * SECOND).step_by(500) {
            // A record that is begun later than this is fenced.
            for replaced in (begun..20 * SECOND).step_by(500) {
                for wakes in (begun..40 * SECOND).step_by(250) {
                    let leave = Leave::of_record_begun(clocks.at(begun, begun));
                    let suspended = clocks.at(begun, wakes);
                    let set_back = clocks.at(wakes, begun - SECOND);
                    for now in [clocks.at(wakes, wakes), suspended, set_back] {
                        let acts = leave.holds(now);
                        let other_acts = wakes >= replaced + settles;
                        assert!(!(acts && other_acts), "begun {begun}, replaced {replaced}, woke {wakes}");
                        acted += i32::from(acts);
                        late += i32::from(other_acts);
                    }
                }
            }
        }
        assert!(acted > 1_000 && late > 1_000, "both happen: {acted}, {late}");
    }

    #[test]
    fn leave_is_renewed_before_it_is_over() {
        let clocks = Clocks(Instant::now());
        let leave = Leave::of_record_begun(clocks.at(0, 0));
        let holds = |millis: i64| (leave.is_fresh(clocks.at(millis, millis)), leave.holds(clocks.at(millis, millis)));
        assert_eq!(
            [holds(2_999), holds(3_000), holds(4_999), holds(5_000)].map(|it| it.0),
            [true, false, false, false]
        );
        assert_eq!([holds(2_999), holds(3_000), holds(4_999), holds(5_000)].map(|it| it.1), [true, true, true, false]);
        assert!(leave.renewal() < clocks.at(5_000, 0).steady);
    }
}
