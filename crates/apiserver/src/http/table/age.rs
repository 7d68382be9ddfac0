//! Ages as people read them.

use jiff::Timestamp;

/// The time from `then` to `now`, as `kubectl` writes it: `5s`, `3m20s`, `2d4h`, `3y45d`.
///
/// The older, the coarser: two digits say enough.
pub fn human_age(now: Timestamp, then: Timestamp) -> String {
    let seconds = now.as_second() - then.as_second();
    match seconds {
        // Clocks of two machines differ a little.
        ..-1 => return "<invalid>".into(),
        -1..0 => return "0s".into(),
        0..120 => return format!("{seconds}s"),
        _ => {}
    }
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let (days, years) = (hours / 24, hours / 24 / 365);
    match (minutes, hours, days, years) {
        (..10, ..) => both(minutes, "m", seconds % 60, "s"),
        (..180, ..) => format!("{minutes}m"),
        (_, ..8, ..) => both(hours, "h", minutes % 60, "m"),
        (_, ..48, ..) => format!("{hours}h"),
        (_, _, ..8, _) => both(days, "d", hours % 24, "h"),
        (_, _, ..730, _) => format!("{days}d"),
        (.., ..8) => both(years, "y", days % 365, "d"),
        _ => format!("{years}y"),
    }
}

fn both(large: i64, large_unit: &str, small: i64, small_unit: &str) -> String {
    if small == 0 { format!("{large}{large_unit}") } else { format!("{large}{large_unit}{small}{small_unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_get_coarser() {
        let (minute, hour, day, year) = (60, 3600, 86_400, 86_400 * 365);
        for (seconds, shown) in [
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (5, "5s"),
            (119, "119s"),
            (120, "2m"),
            (3 * minute + 20, "3m20s"),
            (10 * minute + 5, "10m"),
            (179 * minute, "179m"),
            (3 * hour, "3h"),
            (7 * hour + 5 * minute, "7h5m"),
            (8 * hour + 5 * minute, "8h"),
            (47 * hour, "47h"),
            (2 * day + 4 * hour, "2d4h"),
            (8 * day + 4 * hour, "8d"),
            (729 * day, "729d"),
            (2 * year, "2y"),
            (3 * year + 45 * day, "3y45d"),
            (8 * year + 45 * day, "8y"),
        ] {
            let then = Timestamp::UNIX_EPOCH;
            let now = Timestamp::new(seconds, 0).expect("in range");
            assert_eq!(human_age(now, then), shown, "{seconds}");
        }
    }
}
