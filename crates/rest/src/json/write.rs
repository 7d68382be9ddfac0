//! Writing as Gson writes.

use std::io;

use serde::Serialize;
use serde_json::Value;
use serde_json::ser::Formatter;

use super::number::{INFINITE, NEGATIVE_INFINITE, NOT_A_NUMBER, java_double};
use super::read::from_slice;

/// A body as text.
///
/// # Panics
///
/// Never for the bodies of this crate: they have no maps whose keys are not text.
pub fn to_string<T: Serialize + ?Sized>(body: &T) -> String {
    let mut bytes = Vec::with_capacity(256);
    body.serialize(&mut serde_json::Serializer::with_formatter(&mut bytes, Gson)).expect("bodies can be written");
    String::from_utf8(bytes).expect("serde_json writes UTF-8")
}

/// The shape of a JSON text, as the header `Cruise-Control-JSON-Schema` describes it: lists by their first item.
pub fn schema(json: &str) -> String {
    from_slice::<Value>(json.as_bytes()).map_or_else(|_| String::new(), |value| schema_of(&value))
}

fn schema_of(value: &Value) -> String {
    let scalar = |name: &str| format!("{{ \"type\": \"{name}\" }}");
    match value {
        Value::Null => scalar("null"),
        Value::Bool(_) => scalar("boolean"),
        Value::Number(_) => scalar("number"),
        Value::String(_) => scalar("string"),
        Value::Array(items) => {
            let first = items.first().map(schema_of).unwrap_or_default();
            format!("{{ \"type\": \"array\", \"items\": [{first}]}}")
        }
        Value::Object(fields) => {
            let fields: Vec<String> =
                fields.iter().map(|(name, value)| format!("{}: {}", to_string(name), schema_of(value))).collect();
            format!("{{ \"type\": \"object\", \"properties\": {{{}}}}}", fields.join(","))
        }
    }
}

/// How Gson differs from serde_json.
struct Gson;

impl Formatter for Gson {
    fn write_f64<W: ?Sized + io::Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        writer.write_all(java_double(value).as_bytes())
    }

    fn write_i128<W: ?Sized + io::Write>(&mut self, writer: &mut W, value: i128) -> io::Result<()> {
        match value {
            NOT_A_NUMBER => writer.write_all(b"NaN"),
            INFINITE => writer.write_all(b"Infinity"),
            NEGATIVE_INFINITE => writer.write_all(b"-Infinity"),
            other => write!(writer, "{other}"),
        }
    }

    fn write_string_fragment<W: ?Sized + io::Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        let escaped = |c: char| matches!(c, '<' | '>' | '&' | '=' | '\'' | '\u{2028}' | '\u{2029}');
        let mut rest = fragment;
        while let Some(at) = rest.find(escaped) {
            writer.write_all(&rest.as_bytes()[..at])?;
            let c = rest[at..].chars().next().unwrap_or_default();
            write!(writer, "\\u{:04x}", u32::from(c))?;
            rest = &rest[at + c.len_utf8()..];
        }
        writer.write_all(rest.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Double;

    #[test]
    fn html_is_escaped_and_numbers_are_javas() {
        assert_eq!(to_string(&["a=b&'<c>'", "ä\n"]), r#"["a\u003db\u0026\u0027\u003cc\u003e\u0027","ä\n"]"#);
        assert_eq!(to_string(&[Double(1.0), Double(f64::NAN), Double(1e-9)]), "[1.0,NaN,1.0E-9]");
        assert_eq!(to_string(&[Double(f64::INFINITY), Double(f64::NEG_INFINITY)]), "[Infinity,-Infinity]");
    }

    #[test]
    fn a_schema_describes_the_shape() {
        assert_eq!(
            schema(r#"{"ExecutorState":{"state":"NO_TASK_IN_PROGRESS"},"version":1}"#),
            "{ \"type\": \"object\", \"properties\": {\"ExecutorState\": { \"type\": \"object\", \"properties\": \
             {\"state\": { \"type\": \"string\" }}},\"version\": { \"type\": \"number\" }}}"
        );
    }
}
