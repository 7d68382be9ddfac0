//! Times as the original reads and writes them.

use jiff::SignedDuration;
use jiff::civil::{DateTime, date};
use serde_json::Value;

/// The layout of times, as the original's errors show it.
pub(super) const SECONDS: &str = "2006-01-02T15:04:05Z07:00";
/// The same for times that are told to the microsecond.
pub(super) const MICROSECONDS: &str = "2006-01-02T15:04:05.000000Z07:00";

/// What times with microseconds have where others may have any fraction.
const FRACTION: &str = ".000000";

/// RFC 3339, element by element, because the original says at which one it stopped.
pub(super) fn check(text: &str, layout: &str) -> Result<(), String> {
    read(text, layout).map(drop)
}

/// The time as the original writes it: in UTC, and no finer than its kind. The zero of times reads as none. `None` for
/// what cannot be read, or is beyond all years that can be written.
pub(super) fn canonical(text: &str, layout: &str) -> Option<Value> {
    let time = read(text, layout).ok()??;
    if time == date(1, 1, 1).at(0, 0, 0, 0) {
        return Some(Value::Null);
    }
    let form = if layout == MICROSECONDS { "%Y-%m-%dT%H:%M:%S%.6fZ" } else { "%Y-%m-%dT%H:%M:%SZ" };
    Some(Value::String(time.strftime(form).to_string()))
}

/// The time in UTC; `None` if it is in a year that jiff does not know.
fn read(text: &str, layout: &str) -> Result<Option<DateTime>, String> {
    let stopped = |rest: &str, element: &str| {
        Err(format!("parsing time {text:?} as {layout:?}: cannot parse {rest:?} as {element:?}"))
    };
    let wrong = |why: String| Err(format!("parsing time {text:?}: {why}"));
    let mut rest = text;
    let mut numbers = [0_i16; 6];
    // What stands before each number, how it is written, and what it may be. How long the month is, is known last.
    for (n, (before, element, name, range)) in [
        ("", "2006", "year", 0..=9999),
        ("-", "01", "month", 1..=12),
        ("-", "02", "day", 0..=99),
        ("T", "15", "hour", 0..=23),
        (":", "04", "minute", 0..=59),
        (":", "05", "second", 0..=59),
    ]
    .into_iter()
    .enumerate()
    {
        let Some(after) = rest.strip_prefix(before) else { return stopped(rest, before) };
        let digits = after.get(..element.len()).filter(|digits| digits.bytes().all(|b| b.is_ascii_digit()));
        let Some(number) = digits.and_then(|digits| digits.parse::<i16>().ok()) else { return stopped(after, element) };
        if !range.contains(&number) {
            return wrong(format!("{name} out of range"));
        }
        numbers[n] = number;
        rest = &after[element.len()..];
    }
    let fraction = rest.strip_prefix(['.', ',']).unwrap_or_default();
    let digits = fraction.len() - fraction.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let digits = match layout {
        MICROSECONDS if digits < FRACTION.len() - 1 => return stopped(rest, FRACTION),
        MICROSECONDS => FRACTION.len() - 1,
        _ => digits,
    };
    let mut nanoseconds = 0;
    if digits > 0 {
        let digit = |n: usize| fraction.as_bytes().get(n).filter(|_| n < digits).map_or(0, |b| i32::from(b - b'0'));
        nanoseconds = (0..9).map(digit).fold(0, |sum, digit| sum * 10 + digit);
        rest = &fraction[digits..];
    }
    let offset = match rest.strip_prefix('Z') {
        Some("") => 0,
        Some(extra) => return wrong(format!("extra text: {extra:?}")),
        None => match zone(rest) {
            Some(offset) => offset,
            None => return stopped(rest, "Z07:00"),
        },
    };
    let [year, rest @ ..] = numbers;
    let [month, day, hour, minute, second] = rest.map(|number| i8::try_from(number).unwrap_or_default());
    match DateTime::new(year, month, day, hour, minute, second, nanoseconds) {
        Ok(time) => Ok(time.checked_sub(SignedDuration::from_secs(offset)).ok()),
        Err(_) => wrong("day out of range".to_owned()),
    }
}

/// Seconds by which a zone such as `+01:30` is ahead.
fn zone(text: &str) -> Option<i64> {
    let (sign, digits) = match text.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let (hours, minutes) = digits.split_once(':')?;
    let number = |text: &str, most: i64| {
        let number = (text.len() == 2).then(|| text.parse::<u8>().ok().filter(|_| !text.starts_with('+')))?;
        number.map(i64::from).filter(|number| *number <= most)
    };
    Some(sign * (number(hours, 24)? * 3600 + number(minutes, 60)? * 60))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn times_are_rfc_3339() {
        for fine in ["2020-02-29T23:59:59Z", "2020-01-01T00:00:00.123Z", "2020-01-01T00:00:00+01:30"] {
            assert_eq!(check(fine, SECONDS), Ok(()), "{fine}");
        }
        for (wrong, why) in [
            ("x", "cannot parse \"x\" as \"2006\""),
            ("2020-1-1", "cannot parse \"1-1\" as \"01\""),
            ("2020-01-01 10:00:00Z", "cannot parse \" 10:00:00Z\" as \"T\""),
            ("2020-01-01T10:00:00", "cannot parse \"\" as \"Z07:00\""),
            ("2020-01-01T10:00:00.Z", "cannot parse \".Z\" as \"Z07:00\""),
        ] {
            assert_eq!(check(wrong, SECONDS), Err(format!("parsing time {wrong:?} as {SECONDS:?}: {why}")));
        }
        for (wrong, why) in [
            ("2020-02-30T10:00:00Z", "day out of range"),
            ("2020-01-00T10:00:00Z", "day out of range"),
            ("2020-13-01T10:00:00Z", "month out of range"),
            ("2020-01-01T24:00:00Z", "hour out of range"),
            ("2020-01-01T10:00:60Z", "second out of range"),
            ("2020-01-01T10:00:00Zx", "extra text: \"x\""),
        ] {
            assert_eq!(check(wrong, SECONDS), Err(format!("parsing time {wrong:?}: {why}")));
        }
    }

    #[test]
    fn microseconds_are_six_digits() {
        assert_eq!(check("2026-01-01T00:00:00.123456Z", MICROSECONDS), Ok(()));
        for (wrong, why) in [
            ("2026-01-01T00:00:00Z", "cannot parse \"Z\" as \".000000\""),
            ("2026-01-01T00:00:00.5Z", "cannot parse \".5Z\" as \".000000\""),
            ("2026-01-01T00:00:00.1234567Z", "cannot parse \"7Z\" as \"Z07:00\""),
        ] {
            assert_eq!(check(wrong, MICROSECONDS), Err(format!("parsing time {wrong:?} as {MICROSECONDS:?}: {why}")));
        }
    }

    #[test]
    fn times_are_written_in_utc() {
        for (given, layout, written) in [
            ("2026-01-01T00:00:00.9Z", SECONDS, "2026-01-01T00:00:00Z"),
            ("2026-01-01T00:00:00,5+02:00", SECONDS, "2025-12-31T22:00:00Z"),
            ("2026-01-01T00:00:00+24:00", SECONDS, "2025-12-31T00:00:00Z"),
            ("0000-01-01T00:00:00Z", SECONDS, "0000-01-01T00:00:00Z"),
            ("9999-12-31T23:59:59Z", SECONDS, "9999-12-31T23:59:59Z"),
            ("2026-01-01T00:00:00,123456-01:30", MICROSECONDS, "2026-01-01T01:30:00.123456Z"),
            ("2026-01-01T00:00:00.000000Z", MICROSECONDS, "2026-01-01T00:00:00.000000Z"),
        ] {
            assert_eq!(canonical(given, layout), Some(Value::from(written)), "{given}");
        }
        assert_eq!(canonical("0001-01-01T00:00:00Z", SECONDS), Some(Value::Null));
        assert_eq!((canonical("x", SECONDS), canonical("9999-12-31T23:59:59-01:00", SECONDS)), (None, None));
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in any::<String>(), almost in "[0-9T:Z.,+é-]{0,30}") {
            for layout in [SECONDS, MICROSECONDS] {
                let _ = (canonical(&text, layout), canonical(&almost, layout));
            }
        }
    }
}
