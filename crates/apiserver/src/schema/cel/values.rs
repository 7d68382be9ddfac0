//! JSON values as CEL sees them: typed by their schema, with only the fields that the schema tells.

use std::collections::HashMap;
use std::sync::Arc;

use base64::Engine as _;
use kube_cel::cel::Value as Cel;
use kube_cel::cel::objects::{Key, Map};
use serde_json::Value;

use super::decl::escaped;
use super::times;
use crate::schema::{Schema, Type};

/// Converts a value of a schema. Fields that CEL cannot see (not told, or with names it cannot write) are left out.
pub(crate) fn convert(schema: &Schema, is_resource: bool, value: &Value) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(flag) => Cel::Bool(*flag),
        Value::Number(number) => match (schema.ty, number.as_i64(), number.as_f64()) {
            (Type::Number, _, Some(float)) => Cel::Float(float),
            (_, Some(whole), _) => Cel::Int(whole),
            (Type::Integer, _, Some(float)) => Cel::Int(float as i64),
            (_, _, float) => Cel::Float(float.unwrap_or_default()),
        },
        Value::String(text) => convert_text(schema, text),
        Value::Array(items) => match &schema.items {
            Some(item) => {
                Cel::List(Arc::new(items.iter().map(|value| convert(item, item.embedded_resource, value)).collect()))
            }
            None => Cel::List(Arc::default()),
        },
        Value::Object(map) => convert_object(schema, is_resource, map),
    }
}

fn convert_object(schema: &Schema, is_resource: bool, object: &serde_json::Map<String, Value>) -> Cel {
    // CEL's own map type is a hash map. Nothing is ordered by it here: a rule that iterates over a map sees its keys
    // in no particular order, with the original too.
    let mut map = HashMap::with_capacity(object.len());
    for (name, value) in object {
        if let Some(property) = schema.properties.get(name).filter(|property| property.ty != Type::Any) {
            if let Some(name) = escaped(name) {
                let value = match name.as_ref() {
                    "metadata" if is_resource => names(value),
                    _ => convert(property, property.embedded_resource, value),
                };
                map.insert(Key::from(name.as_ref()), value);
            }
        } else if let Some(values) = schema.additional.as_ref().filter(|values| values.ty != Type::Any) {
            map.insert(Key::from(name.as_str()), convert(values, values.embedded_resource, value));
        } else if is_resource && !schema.properties.contains_key(name) {
            match (name.as_str(), value) {
                ("apiVersion" | "kind", Value::String(text)) => {
                    map.insert(Key::from(name.as_str()), Cel::String(Arc::new(text.clone())));
                }
                ("metadata", metadata) => _ = map.insert(Key::from("metadata"), names(metadata)),
                _ => {}
            }
        }
    }
    Cel::Map(Map { map: Arc::new(map) })
}

/// Of metadata, rules see the names only.
fn names(metadata: &Value) -> Cel {
    let mut map = HashMap::new();
    for name in ["name", "generateName"] {
        if let Some(text) = metadata.get(name).and_then(Value::as_str) {
            map.insert(Key::from(name), Cel::String(Arc::new(text.to_owned())));
        }
    }
    Cel::Map(Map { map: Arc::new(map) })
}

fn convert_text(schema: &Schema, text: &str) -> Cel {
    let typed = match schema.checks.format.as_deref().filter(|_| schema.ty == Type::String) {
        Some("date-time") => times::read_timestamp(text).map(Cel::Timestamp),
        Some("date") => times::read_timestamp(&format!("{text}T00:00:00Z")).map(Cel::Timestamp),
        Some("duration") => times::read_duration(text).or_else(|| worded_duration(text)).map(Cel::Duration),
        Some("byte") => {
            base64::engine::general_purpose::STANDARD.decode(text).ok().map(|bytes| Cel::Bytes(Arc::new(bytes)))
        }
        _ => None,
    };
    typed.unwrap_or_else(|| Cel::String(Arc::new(text.to_owned())))
}

/// In the words that the format also takes (`3 days`).
fn worded_duration(text: &str) -> Option<chrono::Duration> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let mut nanos = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let amount: f64 = rest[..digits].parse().ok()?;
        rest = rest[digits..].trim_start();
        let letters = rest.find(|c: char| !c.is_alphabetic()).unwrap_or(rest.len());
        nanos += amount * unit(&rest[..letters].to_lowercase(), amount)?;
        rest = rest[letters..].trim_start();
    }
    let nanos = if negative { -nanos } else { nanos };
    (nanos.abs() < i64::MAX as f64).then(|| chrono::Duration::nanoseconds(nanos as i64))
}

fn unit(word: &str, amount: f64) -> Option<f64> {
    Some(match word {
        "" if amount == 0.0 => 0.0,
        "ns" => 1.0,
        "us" | "µs" | "μs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "m" => 60e9,
        "h" | "hr" => 3600e9,
        "d" => 86_400e9,
        "w" | "wk" => 604_800e9,
        _ if word.starts_with("nano") => 1.0,
        _ if word.starts_with("micro") => 1e3,
        _ if word.starts_with("milli") => 1e6,
        _ if word.starts_with("sec") => 1e9,
        _ if word.starts_with("min") => 60e9,
        _ if word.starts_with("hour") => 3600e9,
        _ if word.starts_with("day") => 86_400e9,
        _ if word.starts_with("week") => 604_800e9,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_the_format_allows() {
        let seconds = |text| worded_duration(text).map(|d| d.num_seconds());
        assert_eq!(seconds("1h30m"), Some(5400));
        assert_eq!(seconds("3 days"), Some(259_200));
        assert_eq!(seconds("-1.5s"), Some(-1));
        assert_eq!(seconds("0"), Some(0));
        assert_eq!(seconds("1"), None);
        assert_eq!(seconds("1x"), None);
        assert_eq!(seconds("99999999999999999999h"), None);
    }
}
