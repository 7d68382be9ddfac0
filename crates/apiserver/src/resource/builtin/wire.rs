//! The messages of the built-in kinds as they cross the wire: field numbers for protobuf, and when a field is left
//! out of the JSON form.
//!
//! The table is a text file, one message per line:
//!
//! ```text
//! core.v1.Container = 1 name:string, 2 image:?string, 10 livenessProbe:*core.v1.Probe, ...
//! ```
//!
//! A field is its protobuf number, its JSON name and its type; `[T]` is a list, `{T}` a map with text keys, `'T` text of
//! a named type. The mark before the type says when the field is written: `?` unless it is zero, `*` whenever it was given, no mark always.
//! `^T` embeds the fields of another message, which is a message of its own in protobuf only.
//!
//! Only the schema of a definition contains itself: whoever walks along messages is bounded by the depth of the object.

use std::collections::BTreeMap;
use std::sync::LazyLock;

/// One message: its fields in the order of the table.
#[derive(Debug)]
pub(crate) struct Message {
    /// Name as in the table, e.g. `core.v1.Container`.
    pub(crate) name: &'static str,
    /// Its fields.
    pub(crate) fields: Vec<Field>,
}

/// One field of a message.
#[derive(Debug)]
pub(crate) struct Field {
    /// Protobuf number.
    pub(crate) number: u32,
    /// JSON name; empty for an embedded message.
    pub(crate) name: &'static str,
    /// What it holds.
    pub(crate) shape: Shape,
    /// When it is written.
    pub(crate) presence: Presence,
}

/// When a field is written as JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presence {
    /// Always; its zero stands in for a missing one.
    Always,
    /// Unless it is zero or empty.
    UnlessZero,
    /// Exactly if it was given.
    IfGiven,
    /// Its fields are written in its place.
    Embedded,
}

/// One value, several, or a map of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// One.
    One(Kind),
    /// `[T]`.
    List(Kind),
    /// `{T}`.
    Map(Kind),
}

/// What a single value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Text; the name is that of its type, for messages.
    String(&'static str),
    /// `true` or `false`.
    Bool,
    /// 32-bit whole number.
    Int32,
    /// 64-bit whole number.
    Int64,
    /// Bytes, base64 in JSON.
    Bytes,
    /// Point in time, to the second.
    Time,
    /// Point in time, to the microsecond.
    MicroTime,
    /// Amount with a suffix.
    Quantity,
    /// Number or text.
    IntOrString,
    /// Number with a fraction.
    Float,
    /// JSON text.
    Raw,
    /// One schema of a definition, or a list of them.
    SchemaOrList,
    /// A schema of a definition, or whether there may be anything.
    SchemaOrBool,
    /// A schema of a definition, or a list of texts.
    SchemaOrStrings,
    /// Another message of the table.
    Message(&'static str),
}

static TABLE: LazyLock<BTreeMap<&'static str, Message>> =
    LazyLock::new(|| include_str!("wire.txt").lines().filter_map(message).map(|m| (m.name, m)).collect());

/// The message that the schemas in definitions are.
pub(crate) const SCHEMA: &str = "apiextensions.v1.JSONSchemaProps";

/// The message of that name.
pub(crate) fn find(name: &str) -> Option<&'static Message> {
    TABLE.get(name)
}

/// The message of a kind, e.g. `apps/v1` and `Deployment`.
pub(crate) fn of_kind(api_version: &str, kind: &str) -> Option<&'static Message> {
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("core", api_version));
    // Tables go by the package, which is the first word of the group.
    let package = group.split('.').next().unwrap_or(group);
    find(&format!("{package}.{version}.{kind}"))
}

fn message(line: &'static str) -> Option<Message> {
    let (name, fields) = line.split_once(" = ")?;
    let fields = fields.split(", ").filter(|field| !field.is_empty()).map(field).collect::<Option<Vec<_>>>()?;
    Some(Message { name, fields })
}

fn field(text: &'static str) -> Option<Field> {
    let (number, rest) = text.split_once(' ')?;
    let number = number.parse().ok()?;
    if let Some(message) = rest.strip_prefix('^') {
        let shape = Shape::One(Kind::Message(message));
        return Some(Field { number, name: "", shape, presence: Presence::Embedded });
    }
    let (name, ty) = rest.split_once(':')?;
    let (presence, ty) = match ty.as_bytes().first()? {
        b'?' => (Presence::UnlessZero, &ty[1..]),
        b'*' => (Presence::IfGiven, &ty[1..]),
        _ => (Presence::Always, ty),
    };
    let shape = if let Some(item) = ty.strip_prefix('[').and_then(|t| t.strip_suffix(']')) {
        Shape::List(kind(item)?)
    } else if let Some(item) = ty.strip_prefix('{').and_then(|t| t.strip_suffix('}')) {
        Shape::Map(kind(item)?)
    } else {
        Shape::One(kind(ty)?)
    };
    Some(Field { number, name, shape, presence })
}

fn kind(ty: &'static str) -> Option<Kind> {
    Some(match ty {
        "string" => Kind::String("string"),
        "bool" => Kind::Bool,
        "int32" => Kind::Int32,
        "int64" => Kind::Int64,
        "bytes" => Kind::Bytes,
        "time" => Kind::Time,
        "microtime" => Kind::MicroTime,
        "quantity" => Kind::Quantity,
        "intstr" => Kind::IntOrString,
        "float" => Kind::Float,
        "raw" | "fields" => Kind::Raw,
        "schemaOrList" => Kind::SchemaOrList,
        "schemaOrBool" => Kind::SchemaOrBool,
        "schemaOrStrings" => Kind::SchemaOrStrings,
        named if named.starts_with('\'') => Kind::String(&named[1..]),
        message if message.contains('.') => Kind::Message(message),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::kinds::KINDS;
    use super::*;

    #[test]
    fn every_line_of_the_table_is_understood_and_leads_somewhere() {
        let lines = include_str!("wire.txt").lines().count();
        assert_eq!(TABLE.len(), lines);
        for message in TABLE.values() {
            for field in &message.fields {
                let (Shape::One(kind) | Shape::List(kind) | Shape::Map(kind)) = field.shape;
                if let Kind::Message(inner) = kind {
                    assert!(find(inner).is_some(), "{}.{} is a {inner}", message.name, field.name);
                }
            }
        }
    }

    #[test]
    fn every_kind_has_a_message_that_agrees_with_its_schema() {
        for kind in KINDS {
            let api_version = if kind.group.is_empty() { "v1".into() } else { format!("{}/v1", kind.group) };
            let message = of_kind(&api_version, kind.kind).unwrap_or_else(|| panic!("{api_version} {}", kind.kind));
            let schema = super::super::schemas::schema(kind.definition);
            for field in &message.fields {
                assert!(schema.properties.contains_key(field.name), "{}.{}", message.name, field.name);
            }
            assert_eq!(schema.properties.len(), message.fields.len() + 2, "{}", message.name);
        }
    }
}
