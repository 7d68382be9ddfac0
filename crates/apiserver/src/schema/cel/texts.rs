//! Values as text, as the original writes them.

use std::sync::Arc;

use chrono::{DateTime, FixedOffset};
use kube_cel::cel::objects::{Key, Value};

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

/// The values of a format, with those that it shows as text (`%s`) written out.
pub(super) fn written_out(format: &str, values: &[Value]) -> Vec<Value> {
    let mut verbs = verbs(format);
    let shown = |value: &Value| match value {
        Value::List(_) | Value::Map(_) => Some(nested(value)),
        other => of(other).and_then(Result::ok),
    };
    let one = |value: &Value| match verbs.next() {
        Some('s') => shown(value).map_or_else(|| value.clone(), |text| Value::String(Arc::new(text))),
        _ => value.clone(),
    };
    values.iter().map(one).collect()
}

/// The letters of a format that stand for a value, in order.
fn verbs(format: &str) -> impl Iterator<Item = char> + '_ {
    let mut chars = format.chars();
    std::iter::from_fn(move || {
        loop {
            chars.by_ref().find(|c| *c == '%')?;
            match chars.by_ref().find(|c| !(c.is_ascii_digit() || *c == '.'))? {
                '%' => {}
                verb => return Some(verb),
            }
        }
    })
}

/// A value in a list or a map: as it is written in CEL.
fn nested(value: &Value) -> String {
    let all = |items: Vec<String>| items.join(", ");
    match value {
        Value::String(text) => format!("{text:?}"),
        Value::Bytes(bytes) => format!("b{:?}", String::from_utf8_lossy(bytes)),
        Value::Int(number) => number.to_string(),
        Value::UInt(number) => number.to_string(),
        Value::Float(number) => format!("{number:.6}"),
        Value::Null => "null".to_owned(),
        Value::Duration(long) => format!("duration({:?})", duration(long)),
        Value::Timestamp(at) => format!("timestamp({:?})", timestamp(at)),
        Value::List(items) => format!("[{}]", all(items.iter().map(nested).collect())),
        Value::Map(map) => {
            let entry = |(key, value): (&Key, &Value)| {
                let key = match key {
                    Key::String(text) => format!("{text:?}"),
                    Key::Int(number) => number.to_string(),
                    Key::Uint(number) => number.to_string(),
                    Key::Bool(flag) => flag.to_string(),
                };
                format!("{key}:{}", nested(value))
            };
            let mut entries: Vec<String> = map.map.iter().map(entry).collect();
            entries.sort();
            format!("{{{}}}", all(entries))
        }
        other => of(other).and_then(Result::ok).unwrap_or_else(|| format!("{other:?}")),
    }
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
