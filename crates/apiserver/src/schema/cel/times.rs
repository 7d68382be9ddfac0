//! Durations and timestamps within the bounds of the original: 64 bits of nanoseconds, and the years 1 to 9999.

use chrono::{DateTime, Duration, FixedOffset};
use kube_cel::cel::objects::Value;
use kube_cel::cel::{Context, ExecutionError, ResolveResult};

use super::functions::failed;

/// The first and the last second that there is.
const SECONDS: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;

/// What is said of a duration that 64 bits do not hold: the original counts with integers.
const TOO_LONG: &str = "integer overflow";
const OUT_OF_RANGE: &str = "timestamp overflow";

/// Half of all numbers of 64 bits: the longest that a duration can be, if it is negative.
const MOST_NANOS: u64 = 1 << 63;

/// Puts the functions that make times in the place of the interpreter's own.
pub(super) fn add(context: &mut Context<'_>) {
    context.add_function("timestamp", |of: Value| to_timestamp(&of));
    context.add_function("duration", |of: Value| to_duration(&of));
}

/// A number counts seconds since 1970.
fn to_timestamp(of: &Value) -> ResolveResult {
    let at = match of {
        Value::Timestamp(at) => *at,
        Value::Int(seconds) => match DateTime::from_timestamp(*seconds, 0) {
            Some(at) => at.fixed_offset(),
            None => return Err(failed("timestamp", OUT_OF_RANGE)),
        },
        Value::String(text) => read_timestamp(text).ok_or_else(|| unreadable("string", "Timestamp"))?,
        _ => return Err(ExecutionError::NoSuchOverload),
    };
    within_range(Some(at))
}

fn to_duration(of: &Value) -> ResolveResult {
    match of {
        Value::Duration(_) => Ok(of.clone()),
        Value::String(text) => read_duration(text).map(Value::Duration).ok_or_else(|| unreadable("string", "Duration")),
        // The compiler admits it, but nobody says what the number counts.
        Value::Int(_) => Err(unreadable("int", "Duration")),
        _ => Err(ExecutionError::NoSuchOverload),
    }
}

fn unreadable(from: &str, to: &str) -> ExecutionError {
    failed(to, format!("type conversion error from '{from}' to 'google.protobuf.{to}'"))
}

/// A time as RFC 3339 writes it, with capital letters, and without leap seconds.
pub(super) fn read_timestamp(text: &str) -> Option<DateTime<FixedOffset>> {
    let plain = text.as_bytes().get(10) == Some(&b'T') && !text.ends_with('z');
    let at = DateTime::parse_from_rfc3339(text).ok().filter(|_| plain)?;
    Some(at).filter(|at| at.timestamp_subsec_nanos() < 1_000_000_000)
}

/// A duration as Go writes it: `1h30m`, `-1.5s`, `0`.
pub(super) fn read_duration(text: &str) -> Option<Duration> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(Duration::zero());
    }
    let mut nanos: u64 = 0;
    loop {
        let (part, after) = leading_part(rest)?;
        nanos = nanos.checked_add(part).filter(|nanos| *nanos <= MOST_NANOS)?;
        rest = after;
        if rest.is_empty() {
            break;
        }
    }
    let nanos = i128::from(nanos);
    i64::try_from(if negative { -nanos } else { nanos }).ok().map(Duration::nanoseconds)
}

/// The nanoseconds of one number with its unit, and what follows it.
fn leading_part(text: &str) -> Option<(u64, &str)> {
    let digits = |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (whole, rest) = text.split_at(digits(text));
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(rest) => rest.split_at(digits(rest)),
        None => ("", rest),
    };
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let (unit, rest) = rest.split_at(rest.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(rest.len()));
    let unit: u64 = match unit {
        "ns" => 1,
        // Both letters that look like it are understood.
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    };
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let nanos = whole.checked_mul(unit)?.checked_add(nanos_of_fraction(fraction, unit))?;
    Some((nanos, rest)).filter(|_| nanos <= MOST_NANOS)
}

/// With as much of the fraction as 63 bits hold, and as a float: that is what the original cuts off by.
fn nanos_of_fraction(fraction: &str, unit: u64) -> u64 {
    let (mut number, mut scale) = (0_u64, 1.0);
    for digit in fraction.bytes() {
        let longer = number.checked_mul(10).and_then(|number| number.checked_add(u64::from(digit - b'0')));
        let Some(longer) = longer.filter(|longer| *longer < MOST_NANOS) else { break };
        number = longer;
        scale *= 10.0;
    }
    (number as f64 * (unit as f64 / scale)) as u64
}

/// `+` where a time may be part of it.
pub(super) fn sum(a: Value, b: Value) -> ResolveResult {
    match (a, b) {
        (Value::Duration(a), Value::Duration(b)) => counted(a.num_nanoseconds(), b.num_nanoseconds(), i64::checked_add),
        (Value::Timestamp(at), Value::Duration(long)) | (Value::Duration(long), Value::Timestamp(at)) => {
            within_range(at.checked_add_signed(long))
        }
        (a, b) => a + b,
    }
}

/// `-` where a time may be part of it.
pub(super) fn difference(a: Value, b: Value) -> ResolveResult {
    match (a, b) {
        (Value::Duration(a), Value::Duration(b)) => counted(a.num_nanoseconds(), b.num_nanoseconds(), i64::checked_sub),
        (Value::Timestamp(a), Value::Timestamp(b)) => {
            counted(a.signed_duration_since(b).num_nanoseconds(), Some(0), i64::checked_add)
        }
        (Value::Timestamp(at), Value::Duration(long)) => {
            // Its opposite is added.
            let opposite = long.num_nanoseconds().and_then(i64::checked_neg).map(Duration::nanoseconds);
            within_range(at.checked_add_signed(opposite.ok_or_else(|| failed("-", TOO_LONG))?))
        }
        (a, b) => a - b,
    }
}

fn counted(a: Option<i64>, b: Option<i64>, with: fn(i64, i64) -> Option<i64>) -> ResolveResult {
    let nanos = a.zip(b).and_then(|(a, b)| with(a, b));
    nanos.map(|nanos| Value::Duration(Duration::nanoseconds(nanos))).ok_or_else(|| failed("duration", TOO_LONG))
}

fn within_range(at: Option<DateTime<FixedOffset>>) -> ResolveResult {
    let at = at.filter(|at| SECONDS.contains(&at.timestamp()));
    at.map(Value::Timestamp).ok_or_else(|| failed("timestamp", OUT_OF_RANGE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_to_the_nanosecond_and_no_further_than_64_bits() {
        for (text, nanos) in [
            ("0", Some(0)),
            ("-0", Some(0)),
            ("1h30m", Some(5_400_000_000_000)),
            ("+.5s", Some(500_000_000)),
            ("1.s", Some(1_000_000_000)),
            ("1us2µs3μs", Some(6_000)),
            ("0.3333333333333333333h", Some(1_200_000_000_000)),
            ("0.100000000000000000000h", Some(360_000_000_000)),
            ("2562047h47m16.854775807s", Some(i64::MAX)),
            ("-2562047h47m16.854775808s", Some(i64::MIN)),
            ("2562047h47m16.854775808s", None),
            ("9223372036854775808ns", None),
            ("99999999999999999999h", None),
            ("2562048h", None),
            ("", None),
            ("-", None),
            ("1", None),
            ("h", None),
            (".s", None),
            ("1h2", None),
            ("1x", None),
            ("1e5s", None),
            ("1hfoo", None),
            ("infs", None),
        ] {
            let read = read_duration(text).map(|long| long.num_nanoseconds().expect("64 bits of it"));
            assert_eq!(read, nanos, "{text:?}");
        }
    }

    #[test]
    fn timestamps_are_of_the_years_that_have_four_digits() {
        for text in ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999Z", "2026-01-01T00:00:00.25+02:00"] {
            assert!(to_timestamp(&Value::String(text.to_owned().into())).is_ok(), "{text}");
        }
        for text in ["2026-01-01t00:00:00Z", "2026-01-01T00:00:00z", "2026-01-01 00:00:00Z", "2016-12-31T23:59:60Z"] {
            assert_eq!(read_timestamp(text), None, "{text}");
        }
        for of in [
            Value::String("0000-12-31T23:59:59Z".to_owned().into()),
            Value::String("0001-01-01T00:00:00+01:00".to_owned().into()),
            Value::Int(i64::MIN),
            Value::Int(*SECONDS.end() + 1),
        ] {
            assert_eq!(to_timestamp(&of), Err(failed("timestamp", OUT_OF_RANGE)), "{of:?}");
        }
    }
}
