//! Values as text, as the original writes them.

use chrono::{DateTime, FixedOffset};
use kube_cel::cel::objects::Value;

/// A value converted to text; nothing for those that are left to the interpreter, or why it cannot be.
pub(super) fn of(value: &Value) -> Option<Result<String, &'static str>> {
    Some(Ok(match value {
        Value::Bool(flag) => flag.to_string(),
        Value::Float(number) => double(*number),
        Value::Duration(long) => duration(long),
        Value::Timestamp(at) => timestamp(at),
        Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => return Some(Err("invalid UTF-8 in bytes, cannot convert to string")),
        },
        _ => return None,
    }))
}

/// Seconds, with as many digits as it takes.
fn duration(long: &chrono::Duration) -> String {
    let nanos = long.num_nanoseconds().unwrap_or(i64::MAX);
    // As a number, and not digit by digit: that is what the original rounds by.
    let seconds = (nanos / 1_000_000_000) as f64 + (nanos % 1_000_000_000) as f64 / 1e9;
    format!("{seconds}s")
}

fn timestamp(at: &DateTime<FixedOffset>) -> String {
    let fraction = format!("{:09}", at.timestamp_subsec_nanos());
    let fraction = fraction.trim_end_matches('0');
    let point = if fraction.is_empty() { "" } else { "." };
    let zone = if at.offset().local_minus_utc() == 0 { "Z".to_owned() } else { at.format("%:z").to_string() };
    format!("{}{point}{fraction}{zone}", at.format("%Y-%m-%dT%H:%M:%S"))
}

/// The shortest digits that mean this number, with an exponent where it is small, or a million and more.
fn double(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let scientific = format!("{number:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..6).contains(&exponent) {
        return number.to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}
