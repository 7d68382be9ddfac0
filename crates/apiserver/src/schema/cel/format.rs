//! `format`: a text with values in it, letter by letter as the original writes it.

use kube_cel::cel::objects::{Key, Value};

use super::decl::Kind;
use super::{texts, type_name};
use crate::schema::gotext;

/// Fractions are shown to this many places unless it is said otherwise.
const PLACES: u64 = 6;

/// No fraction of a double has more places than this.
const LONGEST_FRACTION: usize = 1100;

/// Wider than this nothing is made, whatever is asked for: the original fills up to 65,535 places with blanks.
const WIDEST: usize = 1000;

/// Larger figures the original's library does not read, and then says so in place of the value.
const LARGEST_FIGURE: u64 = 10_000_009;
const UNREAD: &str = "%!(NOVERB)";

/// The text with its clauses (`%s`, `%.2f`) replaced by the values, in order.
pub(super) fn formatted(format: &str, values: &[Value]) -> Result<String, String> {
    walk(format, values, Clause::written).map(|(text, _)| text)
}

/// Says what the original's compiler says against a format for values of these types.
pub(super) fn check(format: &str, types: &[Kind]) -> Result<(), String> {
    let (_, used) = walk(format, types, |clause, kind| clause.check(*kind).map(|()| String::new()))?;
    if used < types.len() {
        let given = types.len();
        return Err(format!("too many arguments supplied to string.format (expected {used}, got {given})"));
    }
    Ok(())
}

/// Has each clause written with what it is for. Answers with the text and with how many clauses there were.
fn walk<T>(
    format: &str,
    values: &[T],
    write: impl Fn(&Clause, &T) -> Result<String, String>,
) -> Result<(String, usize), String> {
    let (mut text, mut rest, mut used) = (String::new(), format, 0);
    while let Some((before, after)) = rest.split_once('%') {
        text.push_str(before);
        if let Some(after) = after.strip_prefix('%') {
            text.push('%');
            rest = after;
            continue;
        }
        let value = values.get(used).ok_or_else(|| format!("index {used} out of range"))?;
        used += 1;
        if after.is_empty() {
            return Err("unexpected end of string".to_owned());
        }
        let (clause, after) = Clause::read(after).map_err(|why| format!("could not parse formatting clause: {why}"))?;
        text.push_str(&write(&clause, value).map_err(|why| format!("error during formatting: {why}"))?);
        rest = after;
    }
    text.push_str(rest);
    Ok((text, used))
}

/// How one value is written.
struct Clause {
    verb: u8,
    figure: u64,
}

impl Clause {
    /// The clause at the beginning of a text, and what follows it.
    fn read(text: &str) -> Result<(Self, &str), String> {
        let (figure, rest) = match text.strip_prefix('.') {
            None => (PLACES, text),
            Some(rest) => {
                let wrong = |why: String| format!("error while parsing precision: {why}");
                let end = rest.find(|c: char| !c.is_ascii_digit());
                let end = end.ok_or_else(|| wrong("could not find end of precision specifier".to_owned()))?;
                let (digits, rest) = rest.split_at(end);
                let figure = digits.parse::<i64>().ok().and_then(|figure| u64::try_from(figure).ok());
                let figure = figure.ok_or_else(|| {
                    let why = if digits.is_empty() { "invalid syntax" } else { "value out of range" };
                    wrong(format!(
                        "error while converting precision to integer: strconv.Atoi: parsing {digits:?}: {why}"
                    ))
                })?;
                (figure, rest)
            }
        };
        match rest.as_bytes().first() {
            Some(verb @ (b's' | b'd' | b'f' | b'e' | b'b' | b'x' | b'X' | b'o')) => {
                Ok((Self { verb: *verb, figure }, &rest[1..]))
            }
            // Of a letter of several bytes, the first is named.
            Some(byte) => Err(format!("unrecognized formatting clause \"{}\"", char::from(*byte))),
            None => Err("unexpected end of string".to_owned()),
        }
    }

    /// What is said of a value that it is not for.
    fn refusal(&self, given: &str) -> String {
        let what = match self.verb {
            b's' => {
                "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and \
                 timestamps"
            }
            b'd' => "decimal clause can only be used on integers",
            b'f' => "fixed-point clause can only be used on doubles",
            b'e' => "scientific clause can only be used on doubles",
            b'b' => "only integers and bools can be formatted as binary",
            b'o' => "octal clause can only be used on integers",
            _ => "only integers, byte buffers, and strings can be formatted as hex",
        };
        format!("{what}, was given {given}")
    }

    fn check(&self, kind: Kind) -> Result<(), String> {
        use Kind::{Bool, Bytes, Double, Dyn, Int, Object, Opaque, Optional, String, Uint};
        let fits = match (self.verb, kind) {
            (_, Dyn) => true,
            (b's', kind) => !matches!(kind, Object | Opaque(_) | Optional),
            (b'd' | b'o', kind) => matches!(kind, Int | Uint),
            (b'f' | b'e', kind) => matches!(kind, Double | String),
            (b'b', kind) => matches!(kind, Int | Uint | Bool),
            (_, kind) => matches!(kind, Int | Uint | String | Bytes),
        };
        if fits { Ok(()) } else { Err(self.refusal(name_of(kind))) }
    }

    fn written(&self, value: &Value) -> Result<String, String> {
        let refused = || self.refusal(type_name(value));
        let hex = |bytes: &[u8], upper: bool| -> String {
            bytes.iter().map(|byte| if upper { format!("{byte:02X}") } else { format!("{byte:02x}") }).collect()
        };
        Ok(match (self.verb, value) {
            (b's', value) => text(value)?.ok_or_else(refused)?,
            (b'd', Value::Int(number)) => number.to_string(),
            (b'd', Value::UInt(number)) => number.to_string(),
            (b'f', value) => fixed(double(value).ok_or_else(refused)?, self.figure),
            (b'e', value) => scientific(double(value).ok_or_else(refused)?, self.figure),
            (b'b', Value::Int(number)) => format!("{}{:b}", sign(*number), number.unsigned_abs()),
            (b'b', Value::UInt(number)) => format!("{number:b}"),
            (b'b', Value::Bool(flag)) => u8::from(*flag).to_string(),
            (b'o', Value::Int(number)) => format!("{}{:o}", sign(*number), number.unsigned_abs()),
            (b'o', Value::UInt(number)) => format!("{number:o}"),
            (b'x', Value::Int(number)) => format!("{}{:x}", sign(*number), number.unsigned_abs()),
            (b'x', Value::UInt(number)) => format!("{number:x}"),
            (b'X', Value::Int(number)) => format!("{}{:X}", sign(*number), number.unsigned_abs()),
            (b'X', Value::UInt(number)) => format!("{number:X}"),
            (verb @ (b'x' | b'X'), Value::String(text)) => hex(text.as_bytes(), verb == b'X'),
            (verb @ (b'x' | b'X'), Value::Bytes(bytes)) => hex(bytes, verb == b'X'),
            _ => return Err(refused()),
        })
    }
}

/// A type as it is called when a value of it is not wanted.
fn name_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Dyn => "dyn",
        Kind::Null => "null_type",
        Kind::Bool => "bool",
        Kind::Int => "int",
        Kind::Uint => "uint",
        Kind::Double => "double",
        Kind::String => "string",
        Kind::Bytes => "bytes",
        Kind::Timestamp => "google.protobuf.Timestamp",
        Kind::Duration => "google.protobuf.Duration",
        Kind::List => "list",
        Kind::Map => "map",
        Kind::Object => "object",
        Kind::Optional => "optional_type",
        Kind::Opaque(name) => name,
    }
}

fn sign(number: i64) -> &'static str {
    if number < 0 { "-" } else { "" }
}

/// A double, or one of the three texts that are taken for one.
fn double(value: &Value) -> Option<f64> {
    match value {
        Value::Float(number) => Some(*number),
        Value::String(text) => match text.as_str() {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    }
}

/// A value as text: `%s`. Nothing for what has no text.
fn text(value: &Value) -> Result<Option<String>, String> {
    Ok(Some(match value {
        Value::List(_) | Value::Map(_) => nested(value)?,
        Value::Null => "null".to_owned(),
        Value::String(text) => text.as_str().to_owned(),
        Value::Int(number) => number.to_string(),
        Value::UInt(number) => number.to_string(),
        other => match texts::of(other) {
            Some(text) => text.map_err(|why| format!("could not convert argument {why:?} to string"))?,
            None => return Ok(None),
        },
    }))
}

/// A value in a list or a map: as it is written in CEL.
fn nested(value: &Value) -> Result<String, String> {
    let text = || text(value)?.ok_or_else(|| format!("no formatting function for {}", type_name(value)));
    Ok(match value {
        Value::String(text) => gotext::quoted(text),
        Value::Bytes(_) => format!("b{}", gotext::quoted(&text()?)),
        Value::Float(number) if number.is_finite() => format!("{number:.6}"),
        Value::Float(_) => gotext::quoted(&text()?),
        Value::Duration(_) => format!("duration({})", gotext::quoted(&text()?)),
        Value::Timestamp(_) => format!("timestamp({})", gotext::quoted(&text()?)),
        Value::List(items) => {
            let items: Result<Vec<String>, String> = items.iter().map(nested).collect();
            format!("[{}]", items?.join(", "))
        }
        Value::Map(map) => {
            let mut entries = Vec::with_capacity(map.map.len());
            for (key, value) in map.map.iter() {
                let key = match key {
                    Key::String(text) => gotext::quoted(text),
                    Key::Int(number) => number.to_string(),
                    Key::Uint(number) => number.to_string(),
                    Key::Bool(flag) => flag.to_string(),
                };
                entries.push((key, nested(value)?));
            }
            entries.sort();
            let entries: Vec<String> = entries.into_iter().map(|(key, value)| format!("{key}:{value}")).collect();
            format!("{{{}}}", entries.join(", "))
        }
        _ => text()?,
    })
}

/// What is no number is written the same way by all clauses.
fn special(number: f64) -> Option<&'static str> {
    match number {
        _ if number.is_nan() => Some("NaN"),
        _ if number.is_finite() => None,
        _ if number > 0.0 => Some("∞"),
        _ => Some("-∞"),
    }
}

/// With so many places after the point, and with commas between thousands, as in the United States.
fn fixed(number: f64, places: u64) -> String {
    if places > LARGEST_FIGURE {
        return UNREAD.to_owned();
    }
    if let Some(special) = special(number) {
        return special.to_owned();
    }
    // The original's library keeps 16 bits of the one figure for how many places there are at most, and 8 bits of it for
    // how many there are at least.
    let (at_least, at_most) = (usize::from(places as u8), usize::try_from(places as i16));
    let digits = match at_most {
        Ok(at_most) => format!("{:.*}", at_most.min(LONGEST_FRACTION), number.abs()),
        Err(_) => number.abs().to_string(),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((&digits, ""));
    let mut text = if number < 0.0 { "-".to_owned() } else { String::new() };
    for (index, digit) in whole.char_indices() {
        if index > 0 && (whole.len() - index) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    let fraction = fraction.trim_end_matches('0');
    if fraction.is_empty() && at_least == 0 { text } else { format!("{text}.{fraction:0<at_least$}") }
}

/// With a power of ten. What stands for the places after the point is the width for the original, and there are always six.
fn scientific(number: f64, width: u64) -> String {
    if width > LARGEST_FIGURE {
        return UNREAD.to_owned();
    }
    let text = special(number).map_or_else(
        || {
            let written = format!("{:.6e}", number.abs());
            let (digits, power) = written.split_once('e').unwrap_or((&written, "0"));
            let (below, power) = power.strip_prefix('-').map_or(("", power), |power| ("\u{207b}", power));
            let power: String = format!("{power:0>2}").bytes().map(|digit| raised(digit - b'0')).collect();
            let sign = if number < 0.0 { "-" } else { "" };
            format!("{sign}{digits}\u{202f}\u{d7}\u{202f}10{below}{power}")
        },
        str::to_owned,
    );
    let width = usize::from(width as u16).min(WIDEST);
    format!("{text:>width$}")
}

/// A digit above the line.
fn raised(digit: u8) -> char {
    ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'][usize::from(digit % 10)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::cel::{Expression, scope};

    fn outcome(expression: &str) -> Result<Value, String> {
        Expression::parse(expression).expect("an expression").run(&scope(Value::Null, None, false))
    }

    #[track_caller]
    fn writes(expression: &str, text: &str) {
        assert_eq!(outcome(expression), Ok(Value::String(text.to_owned().into())), "{expression}");
    }

    #[test]
    fn every_clause_writes_what_the_original_writes() {
        for (expression, text) in [
            ("'100%% of %s%%'.format(['it'])", "100% of it%"),
            ("'%d %d'.format([-5, 7u])", "-5 7"),
            ("'%b %b %b %b'.format([5, -5, 64u, true])", "101 -101 1000000 1"),
            ("'%o %o %o'.format([11, -11, 65535u])", "13 -13 177777"),
            ("'%x %X %x %X'.format([30, 30, -30, 6000u])", "1e 1E -1e 1770"),
            ("'%x %X %x'.format(['Hi!', 'Hi!', b'\\x00z'])", "486921 486921 007a"),
            ("'%d %x'.format([-9223372036854775808, -9223372036854775808])", "-9223372036854775808 -8000000000000000"),
            ("'%.3f %f %.0f'.format([1.2345, 2.71828, 2.5])", "1.234 2.718280 2"),
            ("'%.2f %f %.1f'.format([1234567.891, -1234.0, 999.96])", "1,234,567.89 -1,234.000000 1,000.0"),
            ("'%f %f %f'.format(['NaN', 'Infinity', '-Infinity'])", "NaN ∞ -∞"),
            ("'%.6e'.format([1052.032911275])", "1.052033\u{202f}×\u{202f}10⁰³"),
            ("'%e %e'.format([2.71828, -0.00025])", "2.718280\u{202f}×\u{202f}10⁰⁰ -2.500000\u{202f}×\u{202f}10⁻⁰⁴"),
            ("'%.20e|%.2e'.format([1.0, 1e100])", "     1.000000\u{202f}×\u{202f}10⁰⁰|1.000000\u{202f}×\u{202f}10¹⁰⁰"),
            ("'%s %s %s'.format([2.71, 0.000000002, double('NaN')])", "2.71 2e-09 NaN"),
            ("'%s %s %s %s'.format([null, true, 3u, type('a')])", "null true 3 string"),
            (
                "'%s'.format([[2.71, 'a\"', null, [9u], b'z', duration('2h')]])",
                "[2.710000, \"a\\\"\", null, [9], b\"z\", duration(\"7200s\")]",
            ),
            ("'%s'.format([[double('NaN'), double('Inf'), double('-Inf')]])", "[\"NaN\", \"+Inf\", \"-Inf\"]"),
            ("'%s'.format([{10: 'b', 1: 'a'}])", "{1:\"a\", 10:\"b\"}"),
        ] {
            writes(expression, text);
        }
    }

    #[test]
    fn what_cannot_be_written_is_said_in_the_originals_words() {
        for (expression, why) in [
            ("'%d %d'.format([1])", "index 1 out of range"),
            ("'%'.format([1])", "unexpected end of string"),
            ("'%a'.format([1])", "could not parse formatting clause: unrecognized formatting clause \"a\""),
            ("'%E'.format([0.5])", "could not parse formatting clause: unrecognized formatting clause \"E\""),
            ("'%5d'.format([1])", "could not parse formatting clause: unrecognized formatting clause \"5\""),
            (
                "'%.34'.format([0.5])",
                "could not parse formatting clause: error while parsing precision: could not find end of precision \
                 specifier",
            ),
            (
                "'%.99999999999999999999f'.format([0.5])",
                "could not parse formatting clause: error while parsing precision: error while converting precision to \
                 integer: strconv.Atoi: parsing \"99999999999999999999\": value out of range",
            ),
            (
                "'%d'.format([1.5])",
                "error during formatting: decimal clause can only be used on integers, was given double",
            ),
            (
                "'%f'.format([1])",
                "error during formatting: fixed-point clause can only be used on doubles, was given int",
            ),
            (
                "'%e'.format([null])",
                "error during formatting: scientific clause can only be used on doubles, was given null_type",
            ),
            (
                "'%b'.format(['a'])",
                "error during formatting: only integers and bools can be formatted as binary, was given string",
            ),
            (
                "'%o'.format([true])",
                "error during formatting: octal clause can only be used on integers, was given bool",
            ),
            (
                "'%x'.format([1.5])",
                "error during formatting: only integers, byte buffers, and strings can be formatted as hex, was given \
                 double",
            ),
            (
                "'%s'.format([[quantity('1')]])",
                "error during formatting: no formatting function for kubernetes.Quantity",
            ),
        ] {
            assert_eq!(outcome(expression), Err(why.to_owned()), "{expression}");
        }
        let quantity = outcome("'%s'.format([quantity('1')])").expect_err("no text");
        assert!(quantity.ends_with("and timestamps, was given kubernetes.Quantity"), "{quantity}");
    }

    #[test]
    fn a_format_that_can_never_be_filled_is_found_beforehand() {
        use Kind::{Bool, Dyn, Int, List, Object, Opaque, String};
        for (format, types) in [("%s %d", [String, Int]), ("%s %x", [List, String]), ("%f %e", [Dyn, String])] {
            assert_eq!(check(format, &types), Ok(()), "{format}");
        }
        for (format, types, why) in [
            ("%d", vec![], "index 0 out of range"),
            ("%d", vec![Int, Int], "too many arguments supplied to string.format (expected 1, got 2)"),
            ("%d", vec![Bool], "error during formatting: decimal clause can only be used on integers, was given bool"),
            ("%f", vec![Int], "error during formatting: fixed-point clause can only be used on doubles, was given int"),
            ("%q", vec![Int], "could not parse formatting clause: unrecognized formatting clause \"q\""),
        ] {
            assert_eq!(check(format, &types), Err(why.to_owned()), "{format}");
        }
        for kind in [Object, Opaque("kubernetes.Quantity"), Kind::Optional] {
            let why = check("%s", &[kind]).expect_err("no text");
            assert!(why.starts_with("error during formatting: string clause can only be used on strings"), "{why}");
        }
    }

    #[test]
    fn no_figure_makes_a_text_long() {
        writes("'%.300f'.format([1.5])", &format!("1.5{}", "0".repeat(43)));
        writes("'%.256f'.format([1.5])", "1.5");
        writes("'%.32768f'.format([0.1])", "0.1");
        writes("'%.10000010f %.10000010e'.format([1.5, 1.5])", "%!(NOVERB) %!(NOVERB)");
        let smallest = outcome("'%.32767f'.format([5e-324])").expect("a text");
        assert!(matches!(&smallest, Value::String(text) if text.len() < 1100 && text.ends_with("625")), "{smallest:?}");
        let wide = outcome("'%.60000e'.format([1.5])").expect("a text");
        assert!(matches!(&wide, Value::String(text) if text.chars().count() == WIDEST), "{wide:?}");
    }
}
