//! One step of a path into an object, and how it is written: in `fieldsV1` and in messages.

use std::cmp::Ordering;
use std::fmt::{self, Write};

use serde_json::{Number, Value};

/// Selects one child of a map or list. The order of the variants is the order in which `fieldsV1` lists them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum PathElement {
    /// A field of a struct or an entry of a map.
    Field(String),
    /// The item of a list whose key fields have these values, ordered by name.
    Key(Vec<(String, Literal)>),
    /// The item of a set that equals this value.
    Value(Literal),
    /// The item of a list at this position. Known for the sake of old data; the server itself never makes one.
    Index(i64),
}

/// Why text is not a path element.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ElementError {
    /// A kind of element from the future. To be skipped, not refused.
    #[error("unknown path element type")]
    UnknownKind,
    /// Not a path element at all.
    #[error("{0}")]
    Malformed(String),
}

impl PathElement {
    /// Selects a field.
    pub fn field(name: impl Into<String>) -> Self {
        Self::Field(name.into())
    }

    /// Reads the form used as a key in `fieldsV1`: `f:name`, `k:{…}`, `v:…`, `i:3`.
    pub fn parse(text: &str) -> Result<Self, ElementError> {
        let malformed = |what: &dyn fmt::Display| ElementError::Malformed(format!("{what}: {text:?}"));
        let (kind, rest) = text.split_once(':').ok_or_else(|| malformed(&"missing colon"))?;
        match kind {
            "f" => Ok(Self::field(rest)),
            "v" => serde_json::from_str(rest).map(|v| Self::Value(Literal(v))).map_err(|e| malformed(&e)),
            "i" => rest.parse().map(Self::Index).map_err(|e| malformed(&e)),
            "k" => match serde_json::from_str(rest).map_err(|e| malformed(&e))? {
                // The map hands out its keys ordered by name, as the element wants them.
                Value::Object(map) => Ok(Self::Key(map.into_iter().map(|(k, v)| (k, Literal(v))).collect())),
                _ => Err(malformed(&"a key must be an object")),
            },
            _ if kind.chars().count() == 1 => Err(ElementError::UnknownKind),
            _ => Err(malformed(&"missing colon")),
        }
    }

    /// Writes the form used as a key in `fieldsV1`.
    pub fn to_text(&self) -> String {
        match self {
            Self::Field(name) => format!("f:{name}"),
            Self::Value(value) => format!("v:{}", value.to_json()),
            Self::Index(index) => format!("i:{index}"),
            Self::Key(fields) => {
                let mut text = "k:{".to_owned();
                for (n, (name, value)) in fields.iter().enumerate() {
                    let comma = if n == 0 { "" } else { "," };
                    let _ = write!(text, "{comma}{}:{}", Value::from(name.as_str()), value.to_json());
                }
                text.push('}');
                text
            }
        }
    }
}

/// As messages show it: `.image`, `[name="x"]`, `[="y"]`, `[3]`.
impl fmt::Display for PathElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Value(value) => write!(f, "[={value}]"),
            Self::Index(index) => write!(f, "[{index}]"),
            Self::Key(fields) => {
                f.write_char('[')?;
                for (n, (name, value)) in fields.iter().enumerate() {
                    let comma = if n == 0 { "" } else { "," };
                    write!(f, "{comma}{name}={value}")?;
                }
                f.write_char(']')
            }
        }
    }
}

/// A path from the root of an object.
pub type Path = Vec<PathElement>;

/// A path as messages show it, e.g. `.spec.containers[name="x"].image`.
pub fn show<'p>(path: impl IntoIterator<Item = &'p PathElement>) -> String {
    path.into_iter().map(ToString::to_string).collect()
}

/// A JSON value with the order that path elements need. Numbers are compared as numbers, so `1` equals `1.0`.
#[derive(Debug, Clone)]
pub struct Literal(pub Value);

impl Literal {
    /// JSON as the original writes it inside of path elements: whole numbers without a fraction, and the characters
    /// that are dangerous in HTML escaped.
    fn to_json(&self) -> String {
        match &self.0 {
            Value::Number(number) => match number.as_f64() {
                Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 1e21 => format!("{float:.0}"),
                _ => number.to_string(),
            },
            other => html_safe(&other.to_string()),
        }
    }
}

/// JSON text as Go's encoder writes it by default.
pub(super) fn html_safe(json: &str) -> String {
    let mut safe = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                let _ = write!(safe, "\\u{:04x}", u32::from(c));
            }
            c => safe.push(c),
        }
    }
    safe
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Value::String(text) => write!(f, "{text:?}"),
            other => write!(f, "{other}"),
        }
    }
}

impl PartialEq for Literal {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Literal {}

impl PartialOrd for Literal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Literal {
    fn cmp(&self, other: &Self) -> Ordering {
        compare(&self.0, &other.0)
    }
}

/// Total order of JSON values: numbers, texts, booleans, lists, maps, null.
pub(super) fn compare(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => compare_numbers(a, b),
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Array(a), Value::Array(b)) => {
            let unequal = a.iter().zip(b).map(|(a, b)| compare(a, b)).find(|o| o.is_ne());
            unequal.unwrap_or_else(|| a.len().cmp(&b.len()))
        }
        (Value::Object(a), Value::Object(b)) => {
            let pairs = a.iter().zip(b).map(|((k, v), (l, w))| k.cmp(l).then_with(|| compare(v, w)));
            pairs.into_iter().find(|o| o.is_ne()).unwrap_or_else(|| a.len().cmp(&b.len()))
        }
        _ => rank(a).cmp(&rank(b)),
    }
}

/// Whether two values are the same to server-side apply.
pub(super) fn same(a: &Value, b: &Value) -> bool {
    a == b || compare(a, b).is_eq()
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}

/// Exact, also between a float and a large integer: rounding both to floats would not be a total order.
fn compare_numbers(a: &Number, b: &Number) -> Ordering {
    match (whole(a), whole(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        _ => {
            let (a, b) = (a.as_f64().unwrap_or(0.0), b.as_f64().unwrap_or(0.0));
            a.total_cmp(&b)
        }
    }
}

/// The number as an integer, if it is one that any JSON integer could equal.
fn whole(number: &Number) -> Option<i128> {
    if let Some(signed) = number.as_i64() {
        return Some(signed.into());
    }
    if let Some(unsigned) = number.as_u64() {
        return Some(unsigned.into());
    }
    // Within these bounds the conversion is exact; beyond them no integer of JSON lies.
    number.as_f64().filter(|f| f.fract() == 0.0 && f.abs() < 1e30).map(|f| f as i128)
}
