//! Bodies as text, which is what comes without `json=true`: methods of the bodies, in the original's layout where people
//! and scripts read it. Tables are as wide as what stands in them.

mod cluster;
mod control;
mod load;
mod optimization;
mod state;
mod tasks;

pub use optimization::load_heading;

use std::fmt::Display;

/// `[a, b]`, as Java prints lists.
fn list<T: Display>(items: impl IntoIterator<Item = T>) -> String {
    let items: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    format!("[{}]", items.join(", "))
}

/// `{a=1, b=2}`, as Java prints maps.
fn map<K: Display, V: Display>(entries: impl IntoIterator<Item = (K, V)>) -> String {
    let entries: Vec<String> = entries.into_iter().map(|(key, value)| format!("{key}={value}")).collect();
    format!("{{{}}}", entries.join(", "))
}

/// What somebody wrote, on one line: what would end it, or move the cursor of a terminal, is a blank.
fn line(written: &str) -> String {
    written.replace(char::is_control, " ")
}

/// A duration in the largest unit of which there is at least one.
fn duration(ms: f64) -> String {
    const UNITS: [(f64, &str); 4] =
        [(86_400_000.0, "days"), (3_600_000.0, "hours"), (60_000.0, "minutes"), (1000.0, "seconds")];
    match UNITS.iter().find(|(size, _)| ms >= *size) {
        Some((size, name)) => format!("{:.2} {name}", ms / size),
        None => format!("{ms:.2} milliseconds"),
    }
}

/// A moment in the form that all texts have.
fn date(ms: i64) -> String {
    jiff::Timestamp::from_millisecond(ms).map_or_else(|_| ms.to_string(), crate::reason::date)
}

/// The length of the longest text, or `least`.
fn longest<'t>(texts: impl Iterator<Item = &'t str>, least: usize) -> usize {
    texts.map(|text| text.chars().count()).max().unwrap_or(0).max(least)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_in_the_largest_unit() {
        for (ms, text) in [
            (0.0, "0.00 milliseconds"),
            (941.0, "941.00 milliseconds"),
            (1500.0, "1.50 seconds"),
            (72_000.0, "1.20 minutes"),
            (7_200_000.0, "2.00 hours"),
            (86_400_000.0, "1.00 days"),
        ] {
            assert_eq!(duration(ms), text);
        }
    }
}
