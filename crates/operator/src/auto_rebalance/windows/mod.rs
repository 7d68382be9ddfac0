//! `Kafka.spec.maintenanceTimeWindows`: Quartz cron expressions in UTC, as Strimzi reads them. It is
//! maintenance time in every second that any of them matches.
//!
//! Written here because Quartz has its own dialect (seconds, `?`, `L`, `W`, `#`, days of the week
//! from 1 = Sunday, ranges that wrap around), which the crates for cron do not speak.

mod expression;
mod field;

use evenkeel_api::{Condition, Reason};
use jiff::{SignedDuration, Timestamp};

pub use expression::{Expression, Malformed};

/// Whether it is maintenance time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is, or no windows are named.
    Open,
    /// It is not.
    Closed {
        /// When it will be. None: not in the next years, or no expression can be read.
        opens: Option<Timestamp>,
    },
}

/// Whether it is maintenance time now. Expressions that cannot be read match never.
pub fn verdict(windows: &[String], now: Timestamp) -> Verdict {
    if windows.is_empty() {
        return Verdict::Open;
    }
    let readable: Vec<Expression> = windows.iter().filter_map(|text| text.parse().ok()).collect();
    let opens = readable.iter().filter_map(|window| window.next_from(now)).min();
    match opens {
        // The same second counts as now.
        Some(opens) if opens <= now => Verdict::Open,
        _ => Verdict::Closed { opens },
    }
}

/// What to tell about expressions that cannot be read.
pub(super) fn warnings(windows: &[String]) -> Vec<Condition> {
    let wrong = windows.iter().filter_map(|text| Some((text, text.parse::<Expression>().err()?)));
    wrong
        .map(|(text, error)| {
            let text = format!("spec.maintenanceTimeWindows: `{text}` is no cron expression: {error}. It never opens");
            Condition::warning(Reason::InvalidResourceException, text)
        })
        .collect()
}

/// A moment without its fraction of a second, which is how finely cron counts.
fn whole_second(time: Timestamp) -> Timestamp {
    let fraction = SignedDuration::from_nanos(i64::from(time.subsec_nanosecond()).rem_euclid(1_000_000_000));
    time.saturating_sub(fraction).unwrap_or(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn windows(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn without_windows_it_is_always_time() {
        assert_eq!(verdict(&[], at("2026-03-01T12:00:00Z")), Verdict::Open);
    }

    #[test]
    fn the_documented_example_opens_at_night_on_school_days() {
        // 2026-03-01 is a Sunday.
        let night = windows(&["* * 0-1 ? * SUN,MON,TUE,WED,THU *"]);
        for open in ["2026-03-01T00:00:00Z", "2026-03-01T01:59:59.9Z", "2026-03-05T00:30:00Z"] {
            assert_eq!(verdict(&night, at(open)), Verdict::Open, "{open}");
        }
        for (closed, opens) in [
            ("2026-03-01T02:00:00Z", "2026-03-02T00:00:00Z"),
            ("2026-03-05T02:00:00Z", "2026-03-08T00:00:00Z"),
            ("2026-03-06T00:30:00Z", "2026-03-08T00:00:00Z"),
        ] {
            assert_eq!(verdict(&night, at(closed)), Verdict::Closed { opens: Some(at(opens)) }, "{closed}");
        }
    }

    #[test]
    fn any_window_will_do_and_unreadable_ones_never_open() {
        let two = windows(&["nonsense", "* * 8-10 * * ?", "* * 14-15 * * ?"]);
        assert_eq!(verdict(&two, at("2026-03-01T15:00:00Z")), Verdict::Open);
        let noon = at("2026-03-01T12:00:00Z");
        assert_eq!(verdict(&two, noon), Verdict::Closed { opens: Some(at("2026-03-01T14:00:00Z")) });
        assert_eq!(verdict(&windows(&["nonsense"]), noon), Verdict::Closed { opens: None });
        assert_eq!(warnings(&two).len(), 1);
    }

    #[test]
    fn fractions_of_seconds_do_not_close_a_window() {
        let second = windows(&["7 0 12 * * ?"]);
        assert_eq!(verdict(&second, at("2026-03-01T12:00:07.999Z")), Verdict::Open);
        let next = Verdict::Closed { opens: Some(at("2026-03-02T12:00:07Z")) };
        assert_eq!(verdict(&second, at("2026-03-01T12:00:08Z")), next);
    }
}
