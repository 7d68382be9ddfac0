//! Protobuf request bodies: what `kubectl create` and typed Go clients send for built-in kinds.
//!
//! Only reading, and only requests: answers are JSON, which all of these clients take. The table of messages says
//! what a field number means; what it does not know is skipped, as protobuf has it. Every length is checked against
//! what is left, and nothing is reserved on a sender's word.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::api::Body;
use crate::decode;
use crate::refusal::Refusal;
use crate::resource::builtin::{shape, wire};
use wire::{Kind, Message, Presence, Shape};

/// The first bytes of every Kubernetes protobuf body.
const MAGIC: &[u8] = b"k8s\0";
/// What to send instead of a kind that is not understood here.
const ACCEPTED: &str = "application/json, application/yaml";
/// Deeper than any message goes that is read: a fence, not a limit that is met.
const DEEPEST: usize = 24;

/// Reads a body of the media type `application/vnd.kubernetes.protobuf`, which may be JSON in an envelope.
pub fn decode(bytes: &[u8]) -> Result<Body, Refusal> {
    let envelope = bytes.strip_prefix(MAGIC).ok_or_else(|| {
        malformed("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
    })?;
    let envelope = Envelope::read(envelope)?;
    if envelope.content_type == "application/json" {
        // The same reader as for bare JSON, with all its limits.
        return decode::object(envelope.raw, &envelope.kind);
    }
    let message = message_of(&envelope).ok_or_else(|| Refusal::unsupported_media_type(ACCEPTED))?;
    let mut map = Map::new();
    read_message(message, envelope.raw, &mut map, 0)?;
    map.insert("apiVersion".into(), Value::String(envelope.api_version));
    map.insert("kind".into(), Value::String(envelope.kind));
    let mut object = Value::Object(map);
    shape(&mut object);
    Ok(Body { value: object, duplicates: Vec::new() })
}

fn message_of(envelope: &Envelope<'_>) -> Option<&'static Message> {
    // Every group has the same delete options.
    if envelope.kind == "DeleteOptions" {
        return wire::find("meta.v1.DeleteOptions");
    }
    // The schemas inside definitions are messages of their own that nobody we know sends this way.
    if envelope.kind == "CustomResourceDefinition" {
        return None;
    }
    wire::of_kind(&envelope.api_version, &envelope.kind)
}

fn malformed(why: &str) -> Refusal {
    Refusal::bad_request(format!("the object provided is unrecognized (must be of type protobuf): {why}"))
}

fn truncated() -> Refusal {
    malformed("unexpected EOF")
}

/// `runtime.Unknown`: what the object is, and its bytes.
#[derive(Default)]
struct Envelope<'a> {
    api_version: String,
    kind: String,
    raw: &'a [u8],
    content_type: String,
}

impl<'a> Envelope<'a> {
    fn read(bytes: &'a [u8]) -> Result<Self, Refusal> {
        let mut envelope = Self::default();
        let mut reader = Reader { bytes };
        while let Some((number, wire)) = reader.next()? {
            match (number, wire) {
                (1, Wire::Bytes(meta)) => {
                    let mut reader = Reader { bytes: meta };
                    while let Some(field) = reader.next()? {
                        match field {
                            (1, Wire::Bytes(text)) => envelope.api_version = utf8(text)?,
                            (2, Wire::Bytes(text)) => envelope.kind = utf8(text)?,
                            _ => {}
                        }
                    }
                }
                (2, Wire::Bytes(raw)) => envelope.raw = raw,
                (4, Wire::Bytes(text)) => envelope.content_type = utf8(text)?,
                _ => {}
            }
        }
        Ok(envelope)
    }
}

/// One field's value on the wire.
#[derive(Clone, Copy)]
enum Wire<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    /// Eight or four bytes: no message of ours has such fields.
    Fixed,
}

struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    /// The next field, or `None` at the end.
    fn next(&mut self) -> Result<Option<(u32, Wire<'a>)>, Refusal> {
        if self.bytes.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let number = u32::try_from(tag >> 3).map_err(|_| malformed("illegal tag"))?;
        let value = match tag & 7 {
            0 => Wire::Number(self.varint()?),
            1 => self.take(8).map(|_| Wire::Fixed)?,
            2 => {
                let length = usize::try_from(self.varint()?).map_err(|_| truncated())?;
                Wire::Bytes(self.take(length)?)
            }
            5 => self.take(4).map(|_| Wire::Fixed)?,
            other => return Err(malformed(&format!("illegal wireType {other}"))),
        };
        if number == 0 {
            return Err(malformed("illegal tag 0"));
        }
        Ok(Some((number, value)))
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Refusal> {
        let (head, tail) = self.bytes.split_at_checked(length).ok_or_else(truncated)?;
        self.bytes = tail;
        Ok(head)
    }

    fn varint(&mut self) -> Result<u64, Refusal> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (&byte, tail) = self.bytes.split_first().ok_or_else(truncated)?;
            self.bytes = tail;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(malformed("integer overflow"))
    }
}

fn read_message(message: &Message, bytes: &[u8], map: &mut Map<String, Value>, depth: usize) -> Result<(), Refusal> {
    if depth > DEEPEST {
        return Err(malformed("nested too deeply"));
    }
    let mut reader = Reader { bytes };
    while let Some((number, wire)) = reader.next()? {
        let Some(field) = message.fields.iter().find(|f| f.number == number) else { continue };
        if field.presence == Presence::Embedded {
            if let (Shape::One(Kind::Message(name)), Wire::Bytes(inner)) = (field.shape, wire)
                && let Some(embedded) = wire::find(name)
            {
                read_message(embedded, inner, map, depth + 1)?;
            }
            continue;
        }
        match field.shape {
            Shape::One(kind) => {
                map.insert(field.name.to_owned(), read_one(kind, wire, depth)?);
            }
            Shape::List(kind) => {
                let list = map.entry(field.name).or_insert_with(|| json!([]));
                if let Value::Array(items) = list {
                    read_items(kind, wire, depth, items)?;
                }
            }
            Shape::Map(kind) => {
                let (key, value) = read_entry(kind, wire, depth)?;
                if let Value::Object(entries) = map.entry(field.name).or_insert_with(|| json!({})) {
                    entries.insert(key, value);
                }
            }
        }
    }
    Ok(())
}

fn read_items(kind: Kind, wire: Wire<'_>, depth: usize, items: &mut Vec<Value>) -> Result<(), Refusal> {
    let Wire::Bytes(packed) = wire else {
        items.push(read_one(kind, wire, depth)?);
        return Ok(());
    };
    if !matches!(kind, Kind::Int32 | Kind::Int64 | Kind::Bool) {
        items.push(read_one(kind, wire, depth)?);
        return Ok(());
    }
    let mut reader = Reader { bytes: packed };
    while !reader.bytes.is_empty() {
        items.push(read_one(kind, Wire::Number(reader.varint()?), depth)?);
    }
    Ok(())
}

fn read_entry(kind: Kind, wire: Wire<'_>, depth: usize) -> Result<(String, Value), Refusal> {
    let mut reader = Reader { bytes: as_bytes(wire)? };
    // An entry without a value is one with an empty value.
    let (mut key, mut value) = (String::new(), read_one(kind, empty(kind), depth)?);
    while let Some(field) = reader.next()? {
        match field {
            (1, Wire::Bytes(text)) => key = utf8(text)?,
            (2, wire) => value = read_one(kind, wire, depth)?,
            _ => {}
        }
    }
    Ok((key, value))
}

fn empty(kind: Kind) -> Wire<'static> {
    match kind {
        Kind::Bool | Kind::Int32 | Kind::Int64 => Wire::Number(0),
        _ => Wire::Bytes(&[]),
    }
}

fn read_one(kind: Kind, wire: Wire<'_>, depth: usize) -> Result<Value, Refusal> {
    Ok(match kind {
        Kind::String(_) => Value::String(utf8(as_bytes(wire)?)?),
        Kind::Bool => Value::Bool(as_number(wire)? != 0),
        // Negative numbers are written as 64 bits; an int32 is what is left of the lower half.
        Kind::Int32 => Value::from(as_number(wire)? as i32),
        Kind::Int64 => Value::from(as_number(wire)? as i64),
        Kind::Bytes => Value::String(STANDARD.encode(as_bytes(wire)?)),
        Kind::Time => time(as_bytes(wire)?, "%Y-%m-%dT%H:%M:%SZ")?,
        Kind::MicroTime => time(as_bytes(wire)?, "%Y-%m-%dT%H:%M:%S%.6fZ")?,
        Kind::Quantity => quantity(as_bytes(wire)?)?,
        Kind::IntOrString => int_or_string(as_bytes(wire)?)?,
        Kind::Raw => raw(as_bytes(wire)?)?,
        // Only in definitions, which are not read this way.
        Kind::Float | Kind::SchemaOrList | Kind::SchemaOrBool | Kind::SchemaOrStrings => Value::Null,
        Kind::Message(name) => {
            let mut map = Map::new();
            if let Some(message) = wire::find(name) {
                read_message(message, as_bytes(wire)?, &mut map, depth + 1)?;
            }
            Value::Object(map)
        }
    })
}

fn time(bytes: &[u8], format: &str) -> Result<Value, Refusal> {
    let mut reader = Reader { bytes };
    let (mut seconds, mut nanos) = (0, 0);
    while let Some(field) = reader.next()? {
        match field {
            (1, Wire::Number(n)) => seconds = n as i64,
            (2, Wire::Number(n)) => nanos = n as i32,
            _ => {}
        }
    }
    if (seconds, nanos) == (0, 0) {
        return Ok(Value::Null);
    }
    let at = Timestamp::new(seconds, nanos).map_err(|error| malformed(&error.to_string()))?;
    Ok(Value::String(at.strftime(format).to_string()))
}

fn quantity(bytes: &[u8]) -> Result<Value, Refusal> {
    let mut reader = Reader { bytes };
    let mut text = "0".to_owned();
    while let Some(field) = reader.next()? {
        if let (1, Wire::Bytes(given)) = field {
            text = utf8(given)?;
        }
    }
    Ok(Value::String(text))
}

fn int_or_string(bytes: &[u8]) -> Result<Value, Refusal> {
    let mut reader = Reader { bytes };
    let (mut is_text, mut number, mut text) = (false, 0, String::new());
    while let Some(field) = reader.next()? {
        match field {
            (1, Wire::Number(n)) => is_text = n == 1,
            (2, Wire::Number(n)) => number = n as i32,
            (3, Wire::Bytes(given)) => text = utf8(given)?,
            _ => {}
        }
    }
    Ok(if is_text { Value::String(text) } else { Value::from(number) })
}

fn raw(bytes: &[u8]) -> Result<Value, Refusal> {
    let mut reader = Reader { bytes };
    let mut value = Value::Null;
    while let Some(field) = reader.next()? {
        if let (1, Wire::Bytes(json)) = field {
            value = serde_json::from_slice(json).map_err(|error| malformed(&error.to_string()))?;
        }
    }
    Ok(value)
}

fn utf8(bytes: &[u8]) -> Result<String, Refusal> {
    String::from_utf8(bytes.to_vec()).map_err(|_| malformed("string field contains invalid UTF-8"))
}

fn as_bytes(wire: Wire<'_>) -> Result<&[u8], Refusal> {
    match wire {
        Wire::Bytes(bytes) => Ok(bytes),
        _ => Err(malformed("wrong wireType")),
    }
}

fn as_number(wire: Wire<'_>) -> Result<u64, Refusal> {
    match wire {
        Wire::Number(number) => Ok(number),
        _ => Err(malformed("wrong wireType")),
    }
}

#[cfg(test)]
mod tests;
