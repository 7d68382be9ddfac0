//! What all of them are painted with: headings, bars, times.

use std::fmt::Write;

use evenkeel_api::Condition;
use jiff::{SignedDuration, Timestamp};

use crate::columns::columns;
use crate::printable;

const WIDTH: u64 = 30;

/// A heading and a table below it; nothing if the table has no rows but its head.
pub(super) fn table(heading: &str, head: &[&str], rows: Vec<Vec<String>>) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let head: Vec<String> = head.iter().map(|cell| (*cell).to_owned()).collect();
    let head = if head.is_empty() { vec![] } else { vec![head] };
    let table = columns(&head.into_iter().chain(rows).collect::<Vec<_>>());
    format!("\n{heading}\n{table}")
}

/// How much of something is done.
pub(super) fn bar(done: u64, of: u64) -> String {
    let filled = if of == 0 { 0 } else { (u128::from(done.min(of)) * u128::from(WIDTH) / u128::from(of)) as usize };
    format!("[{:.<width$}]", "#".repeat(filled), width = WIDTH as usize)
}

/// The state of a resource, since when, and what else its conditions say.
pub(super) fn conditions(conditions: &[Condition], now: Timestamp) -> String {
    let mut text = String::new();
    let state = conditions.iter().find(|condition| !condition.is_warning());
    if let Some(state) = state {
        let since = state.since().map(|since| format!(" since {}", moment(since, now))).unwrap_or_default();
        let _ = writeln!(text, "{}{since}", printable::line(&state.type_));
        for word in [&state.reason, &state.message].into_iter().flatten() {
            let _ = writeln!(text, "  {}", printable::line(word));
        }
    }
    for warning in conditions.iter().filter(|condition| condition.is_warning()) {
        let reason = warning.reason.as_deref().unwrap_or("Warning");
        let message = warning.message.as_deref().unwrap_or_default();
        let _ = writeln!(text, "! {}: {}", printable::line(reason), printable::line(message));
    }
    text
}

/// A moment, and how far it is away.
pub(super) fn moment(time: Timestamp, now: Timestamp) -> String {
    let away = now.duration_since(time);
    let words = if away.is_negative() { format!("in {}", span(-away)) } else { format!("{} ago", span(away)) };
    format!("{} ({words})", time.strftime("%Y-%m-%d %H:%M:%S UTC"))
}

/// A span of time, as finely as people care.
pub(super) fn span(time: SignedDuration) -> String {
    match time.as_secs() {
        seconds @ ..120 => format!("{seconds} s"),
        seconds @ ..7_200 => format!("{} min", seconds / 60),
        seconds @ ..172_800 => format!("{} h", seconds / 3_600),
        seconds => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_long_as_they_should_be_whatever_is_said() {
        assert_eq!(bar(1, 2), "[###############...............]");
        assert_eq!(bar(0, 0), "[..............................]");
        assert_eq!(bar(9, 3), "[##############################]");
        assert_eq!(bar(u64::MAX - 1, u64::MAX).len(), 32);
    }

    #[test]
    fn times_are_told_for_people() {
        let now: Timestamp = "2026-01-02T12:00:00Z".parse().unwrap();
        let at = |seconds: i64| moment(now - SignedDuration::from_secs(seconds), now);
        assert_eq!(at(5), "2026-01-02 11:59:55 UTC (5 s ago)");
        assert_eq!(at(-600), "2026-01-02 12:10:00 UTC (in 10 min)");
        assert_eq!(at(10_000), "2026-01-02 09:13:20 UTC (2 h ago)");
        assert_eq!(at(259_200), "2025-12-30 12:00:00 UTC (3 days ago)");
    }
}
