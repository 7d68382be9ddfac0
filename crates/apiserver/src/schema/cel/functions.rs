//! Functions of the standard library whose answers the interpreter gives otherwise than the original.

use std::sync::Arc;

use chrono::{DateTime, Datelike, FixedOffset, Offset, Timelike};
use kube_cel::cel::extractors::{Arguments, This};
use kube_cel::cel::objects::Value;
use kube_cel::cel::{Context, ExecutionError, ResolveResult};

use crate::schema::pattern;

/// Puts them in the place of the interpreter's own.
pub(super) fn add(context: &mut Context<'_>) {
    context.add_function("size", |This(of): This<Value>| size(&of));
    context.add_function("bool", |of: Value| to_bool(&of));
    context.add_function(
        "matches",
        |This(text): This<Arc<String>>, source: Arc<String>| -> Result<bool, ExecutionError> {
            Ok(compiled("matches", &source)?.is_match(&text))
        },
    );
    for (name, part) in PARTS {
        let (name, part) = (*name, *part);
        context.add_function(name, move |This(of): This<Value>, Arguments(args): Arguments| {
            part_of_time(name, part, &of, &args)
        });
    }
}

fn failed(function: &str, message: impl ToString) -> ExecutionError {
    ExecutionError::function_error(function, message.to_string())
}

/// Texts have as many characters as they have, whatever these take in bytes.
fn size(of: &Value) -> Result<i64, ExecutionError> {
    let size = match of {
        Value::String(text) => text.chars().count(),
        Value::Bytes(bytes) => bytes.len(),
        Value::List(items) => items.len(),
        Value::Map(map) => map.map.len(),
        _ => return Err(ExecutionError::NoSuchOverload),
    };
    Ok(size as i64)
}

fn to_bool(of: &Value) -> Result<bool, ExecutionError> {
    match of {
        Value::Bool(flag) => Ok(*flag),
        Value::String(text) => match text.as_str() {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
            _ => Err(failed("bool", "type conversion error from 'string' to 'bool'")),
        },
        _ => Err(ExecutionError::NoSuchOverload),
    }
}

fn compiled(function: &str, source: &str) -> Result<regex::Regex, ExecutionError> {
    pattern::compile(source).map_err(|why| failed(function, format!("error parsing regexp: {why}")))
}

/// A part of a time of day or of a date.
type Part = fn(&DateTime<FixedOffset>) -> i64;

const PARTS: &[(&str, Part)] = &[
    ("getFullYear", |at| at.year().into()),
    ("getMonth", |at| at.month0().into()),
    ("getDayOfYear", |at| at.ordinal0().into()),
    ("getDayOfMonth", |at| at.day0().into()),
    ("getDate", |at| at.day().into()),
    ("getDayOfWeek", |at| at.weekday().num_days_from_sunday().into()),
    ("getHours", |at| at.hour().into()),
    ("getMinutes", |at| at.minute().into()),
    ("getSeconds", |at| at.second().into()),
    ("getMilliseconds", |at| at.timestamp_subsec_millis().into()),
];

fn part_of_time(name: &str, part: Part, of: &Value, args: &[Value]) -> ResolveResult {
    match (of, args) {
        (Value::Timestamp(at), []) => Ok(Value::Int(part(at))),
        (Value::Timestamp(at), [Value::String(zone)]) => {
            let offset = offset(zone, at).ok_or_else(|| failed(name, format!("unknown time zone {zone}")))?;
            Ok(Value::Int(part(&at.with_timezone(&offset))))
        }
        // Of a duration, the whole of it in that unit.
        (Value::Duration(long), []) => match name {
            "getHours" => Ok(Value::Int(long.num_hours())),
            "getMinutes" => Ok(Value::Int(long.num_minutes())),
            "getSeconds" => Ok(Value::Int(long.num_seconds())),
            "getMilliseconds" => Ok(Value::Int(long.num_milliseconds())),
            _ => Err(ExecutionError::NoSuchOverload),
        },
        _ => Err(ExecutionError::NoSuchOverload),
    }
}

/// How far a zone is from UTC at a time: `-05:00`, `05:30`, or a name such as `America/New_York`.
fn offset(zone: &str, at: &DateTime<FixedOffset>) -> Option<FixedOffset> {
    let Some((hours, minutes)) = zone.split_once(':') else {
        if matches!(zone, "" | "UTC") {
            return Some(chrono::Utc.fix());
        }
        let zone = jiff::tz::TimeZone::get(zone).ok()?;
        let at = jiff::Timestamp::from_second(at.timestamp()).ok()?;
        return FixedOffset::east_opt(zone.to_offset(at).seconds());
    };
    let (hours_east, minutes_east): (i32, i32) = (hours.parse().ok()?, minutes.parse().ok()?);
    let minutes_east = if hours.starts_with('-') { -minutes_east } else { minutes_east };
    let east = hours_east.checked_mul(60)?.checked_add(minutes_east)?.checked_mul(60)?;
    FixedOffset::east_opt(east)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::cel::{Expression, scope};

    #[track_caller]
    fn holds(expression: &str) {
        let parsed = Expression::parse(expression).expect("an expression");
        assert_eq!(parsed.run(&scope(Value::Null, None, false)), Ok(Value::Bool(true)), "{expression}");
    }

    #[test]
    fn texts_are_as_long_as_they_have_characters() {
        for expression in ["'äöü'.size() == 3", "size('日本語') == 3", "'\\U0001F600'.size() == 1", "[1].size() == 1"]
        {
            holds(expression);
        }
    }

    #[test]
    fn patterns_know_only_ascii_classes() {
        for expression in [
            "!'٣'.matches('^\\\\d$')",
            "!'é'.matches('^\\\\w$')",
            "'é'.matches('^.$')",
            "matches('a1', '^\\\\w\\\\d$')",
        ] {
            holds(expression);
        }
    }

    #[test]
    fn times_are_told_in_the_zone_that_is_asked_for() {
        let midnight = "timestamp('2026-01-01T00:30:00Z')";
        for (call, expected) in [
            ("getHours()", 0),
            ("getHours('-05:00')", 19),
            ("getHours('America/New_York')", 19),
            ("getHours('05:30')", 6),
            ("getMinutes('+05:45')", 15),
            ("getMinutes('-03:30')", 0),
            ("getFullYear('-05:00')", 2025),
            ("getDayOfYear('-05:00')", 364),
            ("getDate('-05:00')", 31),
            ("getDayOfWeek('UTC')", 4),
        ] {
            holds(&format!("{midnight}.{call} == {expected}"));
        }
        holds("duration('90m').getHours() == 1 && duration('90m').getMinutes() == 90");
        let nowhere = Expression::parse(&format!("{midnight}.getHours('Nowhere/Land') == 0")).expect("an expression");
        assert_eq!(nowhere.run(&scope(Value::Null, None, false)), Err("unknown time zone Nowhere/Land".into()));
    }

    #[test]
    fn texts_become_truths() {
        holds("bool('true') && !bool('F') && bool(true)");
        let odd = Expression::parse("bool('maybe')").expect("an expression");
        let refused = Err("type conversion error from 'string' to 'bool'".into());
        assert_eq!(odd.run(&scope(Value::Null, None, false)), refused);
    }
}
