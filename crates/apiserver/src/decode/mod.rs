//! From the bytes of a request to a value.
//!
//! Bodies are hostile until proven otherwise: reading them takes memory in proportion to their length, never
//! recurses over their nesting, and ends in a [`Refusal`] worded as the original words it.

mod reader;
#[cfg(test)]
pub(crate) mod tests;
mod yaml;

use serde_json::Value;

use crate::api::Body;
use crate::refusal::Refusal;

/// How deep values may be nested: `{}` is one deep, `{"a":[]}` two.
///
/// The original takes 10,000 levels. Here everything behind the decoder (validation, merging, printing, even freeing
/// a value) may recurse, on stacks of 2 MiB, and clients with a `serde_json` of their own read no more than 128
/// levels; so what is kept stays below that with room for the lists and events around an object. The deepest
/// built-in kinds have some thirty levels. Deeper bodies get the answer that the original gives beyond its limit.
pub const MAX_DEPTH: usize = 100;

/// How many doubled fields are reported.
const MAX_DUPLICATES: usize = 100;

/// Reads JSON. The refusal carries the bare complaint, as strategic merge patches get it; [`object`] and [`patch`]
/// add what the original says around it elsewhere.
pub fn json(bytes: &[u8]) -> Result<Body, Refusal> {
    reader::read(bytes).map_err(Refusal::bad_request)
}

/// Reads YAML, which most of the time is JSON. The refusal carries the bare complaint.
pub fn yaml(bytes: &[u8]) -> Result<Body, Refusal> {
    read_yaml(bytes).map_err(Refusal::bad_request)
}

/// Reads the JSON body of a create or update of an object of that kind.
pub fn object(bytes: &[u8], kind: &str) -> Result<Body, Refusal> {
    read_object(bytes).map_err(|why| unrecognized(bytes, kind, &why))
}

/// Reads the YAML body of a create or update of an object of that kind.
pub fn yaml_object(bytes: &[u8], kind: &str) -> Result<Body, Refusal> {
    read_yaml(bytes).and_then(identified).map_err(|why| unrecognized(bytes, kind, &why))
}

/// Reads the JSON body of a delete. The original refuses these options with the bare complaint.
pub fn delete_options(bytes: &[u8]) -> Result<Body, Refusal> {
    read_object(bytes).map_err(Refusal::bad_request)
}

/// Reads the YAML body of a delete.
pub fn yaml_delete_options(bytes: &[u8]) -> Result<Body, Refusal> {
    read_yaml(bytes).and_then(identified).map_err(Refusal::bad_request)
}

/// Reads the body of a JSON patch or a merge patch.
pub fn patch(bytes: &[u8]) -> Result<Body, Refusal> {
    reader::read(bytes).map_err(|why| Refusal::bad_request(format!("error decoding patch: {why}")))
}

/// Reads the body of a server-side apply: an object in YAML, which kubectl sends as JSON. Nothing at all reads as an
/// empty object.
pub fn apply(bytes: &[u8]) -> Result<Body, Refusal> {
    let wrong = |why| Refusal::bad_request(format!("error decoding YAML: error {why}"));
    let mut body = read_yaml(bytes).map_err(|why| wrong(format!("converting YAML to JSON: {why}")))?;
    match &body.value {
        Value::Object(_) => {}
        Value::Null => body.value = Value::Object(serde_json::Map::new()),
        other => {
            return Err(wrong(format!(
                "unmarshaling JSON: while decoding JSON: json: cannot unmarshal {} into Go value of type \
                 map[string]interface {{}}",
                json_type(other)
            )));
        }
    }
    Ok(body)
}

/// How deep a value is nested, and of how many values it is made.
pub fn depth(value: &Value) -> (usize, usize) {
    let mut deepest = 0;
    let mut size = 0;
    let mut pending = vec![(value, 1)];
    while let Some((value, level)) = pending.pop() {
        size += 1;
        match value {
            Value::Object(map) => {
                deepest = deepest.max(level);
                pending.extend(map.values().map(|field| (field, level + 1)));
            }
            Value::Array(items) => {
                deepest = deepest.max(level);
                pending.extend(items.iter().map(|item| (item, level + 1)));
            }
            _ => {}
        }
    }
    (deepest, size)
}

/// What the original calls the type of a JSON value.
pub(crate) fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// JSON is YAML, but a JSON reader is faster and keeps the numbers of JSON. What only looks like JSON goes on to the
/// YAML reader, as flow style may do without quotes.
fn read_yaml(bytes: &[u8]) -> Result<Body, String> {
    let looks_like_json = bytes.trim_ascii_start().starts_with(b"{");
    match looks_like_json.then(|| reader::read(bytes)) {
        Some(Ok(body)) => Ok(body),
        _ => yaml::read(bytes),
    }
}

fn read_object(bytes: &[u8]) -> Result<Body, String> {
    let read = reader::read(bytes).map_err(|why| format!("couldn't get version/kind; json parse error: {why}"));
    read.and_then(identified)
}

/// Before anything else the original looks for version and kind, so their types are complained about first. Nothing
/// (`null`) is read as an empty object.
fn identified(mut body: Body) -> Result<Body, String> {
    let wrong = |value: &Value, target: &str| {
        let found = json_type(value);
        Err(format!("couldn't get version/kind; json parse error: json: cannot unmarshal {found} into Go {target}"))
    };
    match &body.value {
        Value::Object(map) => {
            for field in ["apiVersion", "kind"] {
                match map.get(field) {
                    None | Some(Value::Null | Value::String(_)) => {}
                    Some(other) => return wrong(other, &format!("struct field .{field} of type string")),
                }
            }
        }
        Value::Null => body.value = Value::Object(serde_json::Map::new()),
        other => {
            let target = r#"value of type struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;
            return wrong(other, target);
        }
    }
    Ok(body)
}

fn unrecognized(bytes: &[u8], kind: &str, why: &str) -> Refusal {
    let shown = &bytes[..bytes.len().min(30)];
    let more = if shown.len() < bytes.len() { " ..." } else { "" };
    let summary = match shown.first() {
        None => "<empty>".to_owned(),
        Some(b'{') => String::from_utf8_lossy(shown).into_owned(),
        Some(_) => shown.iter().map(|byte| format!("{byte:02x}")).collect(),
    };
    Refusal::bad_request(format!(
        "the object provided is unrecognized (must be of type {kind}): {why} ({summary}{more})"
    ))
}
