//! Numbers within their bounds: what would wrap is an error, as with the original.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube_cel::cel::common::ast::{Expr, IdedExpr, operators};
use kube_cel::cel::extractors::This;
use kube_cel::cel::objects::Value;
use kube_cel::cel::{Context, ExecutionError, ResolveResult};

use super::decl::Kind;
use super::functions::failed;
use super::{parts, times};

const OVERFLOW: &str = "integer overflow";
const UNSIGNED_OVERFLOW: &str = "unsigned integer overflow";

/// Names that no rule can write.
const NEGATIVE: &str = "@negative";
const SUM: &str = "@sum";
const DIFFERENCE: &str = "@difference";
const SUM_OF_UINTS: &str = "@sum_of_uints";
const SUM_OF_DOUBLES: &str = "@sum_of_doubles";
const SUM_OF_DURATIONS: &str = "@sum_of_durations";

/// Which calls of an expression, by their numbers in its tree, are answered by which function instead.
pub(super) type Replacements = BTreeMap<u64, &'static str>;

/// The function that does right what the interpreter does not: its operators cannot be replaced, only avoided. Where it
/// is known to do right they are not, because a function has its arguments copied.
pub(super) fn in_place_of(function: &str, yields: Kind) -> Option<&'static str> {
    use Kind::{Double, Duration, Dyn, Int, Timestamp, Uint};
    Some(match (function, yields) {
        (operators::NEGATE, Int | Dyn) => NEGATIVE,
        (operators::ADD, Duration | Timestamp | Dyn) => SUM,
        (operators::SUBSTRACT, Duration | Timestamp | Dyn) => DIFFERENCE,
        // Nothing added up is a nothing of the right type.
        ("sum", Uint) => SUM_OF_UINTS,
        ("sum", Double) => SUM_OF_DOUBLES,
        ("sum", Duration) => SUM_OF_DURATIONS,
        _ => return None,
    })
}

/// Has the calls answered by the functions that take their place.
pub(super) fn replace(node: &mut IdedExpr, replacements: &Replacements) {
    if let (Expr::Call(call), Some(function)) = (&mut node.expr, replacements.get(&node.id)) {
        call.func_name = (*function).to_owned();
    }
    parts(&mut node.expr).into_iter().for_each(|part| replace(part, replacements));
}

/// Puts the functions of numbers in the place of the interpreter's own.
pub(super) fn add(context: &mut Context<'_>) {
    context.add_function("int", |This(of): This<Value>| to_int(&of));
    context.add_function("uint", |This(of): This<Value>| to_uint(&of));
    context.add_function("double", |This(of): This<Value>| to_double(&of));
    context.add_function(NEGATIVE, |of: Value| negative(&of));
    context.add_function(SUM, times::sum);
    context.add_function(DIFFERENCE, times::difference);
    for (name, nothing) in [
        ("sum", Value::Int(0)),
        (SUM_OF_UINTS, Value::UInt(0)),
        (SUM_OF_DOUBLES, Value::Float(0.0)),
        (SUM_OF_DURATIONS, Value::Duration(chrono::Duration::zero())),
    ] {
        context.add_function(name, move |This(items): This<Arc<Vec<Value>>>| sum(&items, &nothing));
    }
}

fn unreadable(to: &str) -> ExecutionError {
    failed(to, format!("type conversion error from 'string' to '{to}'"))
}

fn to_int(of: &Value) -> ResolveResult {
    let number = match of {
        Value::Int(number) => Some(*number),
        Value::UInt(number) => i64::try_from(*number).ok(),
        Value::Float(number) => {
            // The least is not among them, though it would fit.
            let bound = i64::MAX as f64;
            (-bound < *number && *number < bound).then_some(*number as i64)
        }
        Value::String(text) => Some(text.parse().map_err(|_| unreadable("int"))?),
        Value::Timestamp(at) => Some(at.timestamp()),
        Value::Duration(long) => long.num_nanoseconds(),
        _ => return Err(ExecutionError::NoSuchOverload),
    };
    number.map(Value::Int).ok_or_else(|| failed("int", OVERFLOW))
}

fn to_uint(of: &Value) -> ResolveResult {
    let number = match of {
        Value::Int(number) => u64::try_from(*number).ok(),
        Value::UInt(number) => Some(*number),
        Value::Float(number) => (0.0 <= *number && *number < u64::MAX as f64).then_some(*number as u64),
        Value::String(text) => {
            let unsigned = Some(text).filter(|text| !text.starts_with('+'));
            Some(unsigned.and_then(|text| text.parse().ok()).ok_or_else(|| unreadable("uint"))?)
        }
        _ => return Err(ExecutionError::NoSuchOverload),
    };
    number.map(Value::UInt).ok_or_else(|| failed("uint", UNSIGNED_OVERFLOW))
}

fn to_double(of: &Value) -> ResolveResult {
    Ok(Value::Float(match of {
        Value::Int(number) => *number as f64,
        Value::UInt(number) => *number as f64,
        Value::Float(number) => *number,
        Value::String(text) => {
            let number: f64 = text.parse().map_err(|_| unreadable("double"))?;
            // One that is written with digits and too large is not one.
            if number.is_infinite() && text.contains(|c: char| c.is_ascii_digit()) {
                return Err(unreadable("double"));
            }
            number
        }
        _ => return Err(ExecutionError::NoSuchOverload),
    }))
}

fn negative(of: &Value) -> ResolveResult {
    match of {
        Value::Int(number) => number.checked_neg().map(Value::Int).ok_or_else(|| failed("-", OVERFLOW)),
        Value::Float(number) => Ok(Value::Float(-number)),
        _ => Err(ExecutionError::NoSuchOverload),
    }
}

fn sum(items: &[Value], nothing: &Value) -> ResolveResult {
    let Some((first, rest)) = items.split_first() else { return Ok(nothing.clone()) };
    if !matches!(first, Value::Int(_) | Value::UInt(_) | Value::Float(_) | Value::Duration(_)) {
        return Err(ExecutionError::NoSuchOverload);
    }
    rest.iter().cloned().try_fold(first.clone(), times::sum)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::schema::Schema;
    use crate::schema::cel::{Decl, Expression, scope, values};

    /// What an expression comes to, run as a rule is.
    fn outcome(expression: &str) -> Result<Value, String> {
        let schema = json!({"type": "object", "properties": {
            "least": {"type": "integer"}, "any": {"x-kubernetes-int-or-string": true},
            "long": {"type": "string", "format": "duration"}, "at": {"type": "string", "format": "date-time"},
            "numbers": {"type": "array", "items": {"type": "number"}},
            "longs": {"type": "array", "items": {"type": "string", "format": "duration"}},
        }});
        let schema = Schema::parse(&schema, "").expect("a schema");
        let value = json!({
            "least": i64::MIN, "any": i64::MIN, "long": "2562047h47m16.854775807s", "at": "9999-12-31T23:59:59Z",
            "numbers": [], "longs": [],
        });
        let types = Decl::of_schema(&schema, false).expect("a type");
        let mut parsed = Expression::parse(expression).expect("an expression");
        assert_eq!(parsed.estimate(&types, false).errors.to_string(), "", "{expression}");
        parsed.settle(&types, false, u64::MAX);
        parsed.run(&scope(values::convert(&schema, false, &value), None, false))
    }

    #[test]
    fn what_does_not_fit_is_an_error_and_not_another_number() {
        for (expression, why) in [
            ("-self.least == 0", OVERFLOW),
            ("-self.any == 0", OVERFLOW),
            ("self.least - 1 == 0", OVERFLOW),
            ("[self.least, -1].sum() == 0", OVERFLOW),
            ("[18446744073709551615u, 1u].sum() == 0u", UNSIGNED_OVERFLOW),
            ("18446744073709551615u + 1u == 0u", UNSIGNED_OVERFLOW),
            ("self.long + duration('1ns') == self.long", OVERFLOW),
            ("[self.long, self.long].sum() == self.long", OVERFLOW),
            ("duration('-1ns') - self.long - duration('1ns') == self.long", OVERFLOW),
            ("self.at - timestamp('0001-01-01T00:00:00Z') == self.long", OVERFLOW),
            ("self.at - duration('-2562047h47m16.854775808s') == self.at", OVERFLOW),
            ("self.at + duration('1s') == self.at", "timestamp overflow"),
            ("duration('1s') + self.at == self.at", "timestamp overflow"),
            ("timestamp('0001-01-01T00:00:00Z') - self.long == self.at", "timestamp overflow"),
            ("timestamp(self.least) == self.at", "timestamp overflow"),
            ("duration(self.least) == self.long", "type conversion error from 'int' to 'google.protobuf.Duration'"),
            ("int(9223372036854775807.0) == 0", OVERFLOW),
            ("int(double('NaN')) == 0", OVERFLOW),
            ("int(18446744073709551615u) == 0", OVERFLOW),
            ("uint(-0.5) == 0u", UNSIGNED_OVERFLOW),
            ("uint(1.8446744073709552e19) == 0u", UNSIGNED_OVERFLOW),
            ("uint('+1') == 1u", "type conversion error from 'string' to 'uint'"),
            ("double('1e400') > 0.0", "type conversion error from 'string' to 'double'"),
        ] {
            assert_eq!(outcome(expression), Err(why.to_owned()), "{expression}");
        }
    }

    #[test]
    fn what_fits_is_counted() {
        for expression in [
            "-(self.least + 1) == 9223372036854775807 && -1.5 == 0.0 - 1.5",
            "duration('1h') + duration('30m') == duration('90m') && duration('1h') - duration('2h') < duration('0')",
            "duration('1s') + timestamp('2026-01-01T00:00:00Z') == timestamp('2026-01-01T00:00:01Z')",
            "self.at - duration('1s') < self.at && self.at - self.at == duration('0s')",
            "self.long - duration('1ns') < self.long && [duration('1s'), duration('2s')].sum() == duration('3s')",
            "[1, 2].sum() == 3 && [].sum() == 0 && [1.5, 2.0].sum() == 3.5 && [1u, 2u].sum() == 3u",
            "self.numbers.sum() == 0.0 && self.longs.sum() == duration('0s')",
            "int(duration('1s')) == 1000000000 && int(timestamp('1970-01-01T00:01:00Z')) == 60 && int(-1.9) == -1",
            "uint(3.9) == 3u && uint('7') == 7u && double('1e3') == 1000.0 && double('-Inf') < 0.0",
            "'a' + 'b' == 'ab' && [1] + [2] == [1, 2] && 1 + 2 == 3 && 2u - 1u == 1u && 1.5 - 0.5 == 1.0",
            "string(dyn('a') + dyn('b')) == 'ab' && dyn(3) - dyn(1) == 2",
        ] {
            assert_eq!(outcome(expression), Ok(Value::Bool(true)), "{expression}");
        }
    }
}
