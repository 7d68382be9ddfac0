//! Guards: what keeps automatic rebalances from coming too often, too big, too fast or at the wrong
//! hour.
//!
//! All of them look only at what they are given, and say when they will open.

use std::collections::BTreeSet;

use evenkeel_api::kafka::BrokerCapacity;
use jiff::{SignedDuration, Timestamp};

use super::{tracker::History, windows};

/// How many rebalances on imbalance may begin in an hour.
pub(super) const STARTS_PER_HOUR: usize = 2;
/// The pause after a rebalance on imbalance. It doubles each time the same goals come back.
const PAUSE: SignedDuration = SignedDuration::from_mins(10);
/// The longest such pause.
const LONGEST_PAUSE: SignedDuration = SignedDuration::from_hours(6);
/// After this long, a violated goal is news again: four times the longest pause, so that one that
/// comes back after each pause is not.
pub(super) const GOALS_REMEMBERED_FOR: SignedDuration = SignedDuration::from_hours(24);
/// The pause after a first failed attempt to empty brokers.
const BACKOFF: SignedDuration = SignedDuration::from_secs(30);
/// The longest such pause.
pub(super) const LONGEST_BACKOFF: SignedDuration = SignedDuration::from_mins(10);

/// A guard that does not let a rebalance begin now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closed {
    /// Why.
    pub why: String,
    /// When it opens. None: never, as things are.
    pub opens: Option<Timestamp>,
}

/// The guards that do not let a rebalance on imbalance for these goals begin now.
pub(super) fn closed(
    history: &History,
    goals: &BTreeSet<String>,
    maintenance: &[String],
    now: Timestamp,
) -> Vec<Closed> {
    [rate(history, now), pause(history, goals, now), window(maintenance, now)].into_iter().flatten().collect()
}

pub(super) fn rate(history: &History, now: Timestamp) -> Option<Closed> {
    let hour = SignedDuration::from_hours(1);
    let mut recent: Vec<Timestamp> =
        history.starts.iter().copied().filter(|start| now.duration_since(*start) < hour).collect();
    recent.sort();
    let decisive = recent.len().checked_sub(STARTS_PER_HOUR)?;
    let why = format!("{} rebalances on imbalance have begun within an hour", recent.len());
    Some(Closed { why, opens: later(*recent.get(decisive)?, hour) })
}

pub(super) fn pause(history: &History, goals: &BTreeSet<String>, now: Timestamp) -> Option<Closed> {
    let ended = history.ended?;
    let again = !history.goals.is_disjoint(goals) && history.remembers(now);
    let pause = if again { doubled(PAUSE, LONGEST_PAUSE, history.repeats) } else { PAUSE };
    let opens = later(ended, pause);
    let why = if again && history.repeats > 1 {
        format!("goals that were mended {} times in a row are violated again", history.repeats)
    } else {
        "the last rebalance on imbalance has just ended".to_owned()
    };
    opens.is_none_or(|opens| opens > now).then_some(Closed { why, opens })
}

pub(super) fn window(maintenance: &[String], now: Timestamp) -> Option<Closed> {
    match windows::verdict(maintenance, now) {
        windows::Verdict::Open => None,
        windows::Verdict::Closed { opens } => {
            Some(Closed { why: "it is outside of spec.maintenanceTimeWindows".to_owned(), opens })
        }
    }
}

/// The pause after this many failed attempts in a row.
pub(super) fn backoff(failed: u32) -> SignedDuration {
    doubled(BACKOFF, LONGEST_BACKOFF, failed)
}

/// `first`, doubled for each further time, but never longer than `longest`.
fn doubled(first: SignedDuration, longest: SignedDuration, times: u32) -> SignedDuration {
    let factor = 1_i32.checked_shl(times.saturating_sub(1).min(30)).unwrap_or(i32::MAX);
    first.checked_mul(factor).unwrap_or(longest).min(longest)
}

fn later(time: Timestamp, by: SignedDuration) -> Option<Timestamp> {
    time.checked_add(by).ok()
}

/// Bytes per second for automatic rebalances that name no throttle: half of the slowest network that
/// the user has stated for any broker. None if none is stated.
pub(super) fn default_throttle(capacity: &BrokerCapacity) -> Option<i64> {
    let overrides = capacity.overrides.iter().flatten();
    let stated = overrides
        .flat_map(|broker| [&broker.inbound_network, &broker.outbound_network])
        .chain([&capacity.inbound_network, &capacity.outbound_network])
        .flatten()
        .filter_map(|text| bytes_per_second(text));
    // A throttle of 0 would be none at all.
    stated.min().map(|slowest| (slowest / 2).max(1))
}

/// A rate such as `10000KiB/s`.
pub(crate) fn bytes_per_second(text: &str) -> Option<i64> {
    let number = text.trim().strip_suffix("B/s")?;
    let digits = number.trim_end_matches(|c: char| !c.is_ascii_digit());
    let factor: i64 = match &number[digits.len()..] {
        "" => 1,
        "K" => 1_000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        "Ki" => 1 << 10,
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        _ => return None,
    };
    digits.parse::<i64>().ok().filter(|rate| *rate >= 0)?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const MINUTE: i64 = 60;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    fn goals(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn two_may_begin_in_an_hour() {
        let opens = |starts: &[i64], now: i64| {
            let starts = starts.iter().map(|start| at(*start)).collect();
            rate(&History { starts, ..History::default() }, at(now)).map(|closed| closed.opens.unwrap().as_second())
        };
        assert_eq!(opens(&[], 0), None);
        assert_eq!(opens(&[0], 1), None);
        assert_eq!(opens(&[0, 600], 700), Some(3600));
        assert_eq!(opens(&[0, 600], 3599), Some(3600));
        assert_eq!(opens(&[0, 600], 3600), None);
        assert_eq!(opens(&[0, 600, 700], 800), Some(4200), "one more than allowed is waited out as well");
    }

    #[test]
    fn pauses_grow_while_the_same_goals_come_back() {
        for (repeats, names, minutes) in [
            (1, &["A"][..], 10),
            (2, &["A"], 20),
            (3, &["A", "Z"], 40),
            (6, &["A"], 320),
            (7, &["A"], 360),
            (4_000_000_000, &["A"], 360),
            (5, &["Z"], 10),
        ] {
            let history = History { repeats, goals: goals(&["A", "B"]), ended: Some(at(0)), ..History::default() };
            let found = pause(&history, &goals(names), at(1)).and_then(|closed| closed.opens);
            assert_eq!(found, Some(at(minutes * MINUTE)), "{repeats} {names:?}");
            assert_eq!(pause(&history, &goals(names), at(minutes * MINUTE)), None);
        }
        assert_eq!(pause(&History::default(), &goals(&["A"]), at(0)), None);
    }

    #[test]
    fn failed_drains_are_tried_again_ever_more_patiently() {
        let seconds: Vec<i64> = (1..=7).map(|failed| backoff(failed).as_secs()).collect();
        assert_eq!(seconds, [30, 60, 120, 240, 480, 600, 600]);
        assert_eq!(backoff(u32::MAX).as_secs(), 600);
    }

    #[test]
    fn every_guard_says_when_it_opens() {
        let history = History {
            starts: vec![at(0), at(1)],
            ended: Some(at(2)),
            goals: goals(&["A"]),
            repeats: 1,
            ..History::default()
        };
        let found = closed(&history, &goals(&["A"]), &["0 0 3 ? * * *".to_owned()], at(10));
        let opens: Vec<_> = found.iter().map(|closed| closed.opens.unwrap().as_second()).collect();
        assert_eq!(opens, [3600, 602, 3 * 3600]);
        assert_eq!(closed(&History::default(), &goals(&["A"]), &[], at(10)), []);
    }

    #[test]
    fn the_slowest_network_that_was_stated_is_shared() {
        for (capacity, expected) in [
            (json!({}), None),
            (json!({"cpu": "1"}), None),
            (json!({"inboundNetwork": "10000KiB/s"}), Some(5_120_000)),
            (json!({"inboundNetwork": "1MB/s", "outboundNetwork": "100KB/s"}), Some(50_000)),
            (
                json!({"outboundNetwork": "1GiB/s", "overrides": [{"brokers": [1], "inboundNetwork": "80B/s"}]}),
                Some(40),
            ),
            (json!({"inboundNetwork": "0B/s"}), Some(1)),
            (json!({"inboundNetwork": "fast", "outboundNetwork": "99999999999GB/s"}), None),
        ] {
            let found = default_throttle(&serde_json::from_value(capacity.clone()).unwrap());
            assert_eq!(found, expected, "{capacity}");
        }
    }
}
