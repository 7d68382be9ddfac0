//! Whether the fields of `metadata` have the types that every kind gives them.
//!
//! The original finds out while it decodes a body into a struct, so its complaints speak of Go.

use serde_json::{Map, Value};

use crate::object::Object;

/// The type of one field.
enum Shape {
    /// Text, or a named type made of text.
    Text(&'static str),
    Integer,
    Boolean,
    Time,
    /// Texts by key.
    Texts,
    TextList,
    /// A list of structs: the name of the struct, and its fields.
    Structs(&'static str, &'static [(&'static str, Shape)]),
}

const METADATA: &[(&str, Shape)] = &[
    ("name", Shape::Text("string")),
    ("generateName", Shape::Text("string")),
    ("namespace", Shape::Text("string")),
    ("selfLink", Shape::Text("string")),
    ("uid", Shape::Text("types.UID")),
    ("resourceVersion", Shape::Text("string")),
    ("generation", Shape::Integer),
    ("creationTimestamp", Shape::Time),
    ("deletionTimestamp", Shape::Time),
    ("deletionGracePeriodSeconds", Shape::Integer),
    ("labels", Shape::Texts),
    ("annotations", Shape::Texts),
    ("ownerReferences", Shape::Structs("OwnerReference", OWNER)),
    ("finalizers", Shape::TextList),
    ("managedFields", Shape::Structs("ManagedFieldsEntry", MANAGED)),
];

const OWNER: &[(&str, Shape)] = &[
    ("apiVersion", Shape::Text("string")),
    ("kind", Shape::Text("string")),
    ("name", Shape::Text("string")),
    ("uid", Shape::Text("types.UID")),
    ("controller", Shape::Boolean),
    ("blockOwnerDeletion", Shape::Boolean),
];

/// `fieldsV1` is read by field management itself.
const MANAGED: &[(&str, Shape)] = &[
    ("manager", Shape::Text("string")),
    ("operation", Shape::Text("v1.ManagedFieldsOperationType")),
    ("apiVersion", Shape::Text("string")),
    ("time", Shape::Time),
    ("fieldsType", Shape::Text("string")),
    ("subresource", Shape::Text("string")),
];

/// Complains about the first field of an object's `metadata` that has the wrong type. `null` is fine everywhere: it
/// means absent. For built-in kinds.
pub fn metadata_types(object: &Value) -> Result<(), String> {
    match object.get("metadata") {
        None | Some(Value::Null) => Ok(()),
        Some(Value::Object(metadata)) => fields(metadata, METADATA, "ObjectMeta", "metadata."),
        Some(other) => Err(mismatch(other, object.kind(), "metadata", "v1.ObjectMeta")),
    }
}

/// The same for custom resources, whose `metadata` the original decodes by itself: its paths begin inside.
pub fn custom_metadata_types(object: &Value) -> Result<(), String> {
    match object.get("metadata") {
        None | Some(Value::Null) => Ok(()),
        Some(Value::Object(metadata)) => fields(metadata, METADATA, "ObjectMeta", ""),
        Some(other) => {
            let found = json_type(other);
            Err(format!("json: cannot unmarshal {found} into Go value of type v1.ObjectMeta"))
        }
    }
}

/// Checks the fields of a struct called `owner`, which lies at the path `prefix`.
fn fields(map: &Map<String, Value>, shapes: &[(&str, Shape)], owner: &str, prefix: &str) -> Result<(), String> {
    shapes.iter().try_for_each(|(key, shape)| match map.get(*key) {
        None | Some(Value::Null) => Ok(()),
        Some(field) => check(field, shape, owner, &format!("{prefix}{key}")),
    })
}

fn check(value: &Value, shape: &Shape, owner: &str, path: &str) -> Result<(), String> {
    let wrong = |value: &Value, ty: &str| Err(mismatch(value, owner, path, ty));
    match (shape, value) {
        (Shape::Text(_), Value::String(_)) | (Shape::Boolean, Value::Bool(_)) => Ok(()),
        (Shape::Text(ty), other) => wrong(other, ty),
        (Shape::Boolean, other) => wrong(other, "bool"),
        (Shape::Integer, Value::Number(number)) if number.is_i64() => Ok(()),
        (Shape::Integer, other) => wrong(other, "int64"),
        (Shape::Time, Value::String(text)) => time(text),
        (Shape::Time, other) => wrong(other, "string"),
        (Shape::Texts, Value::Object(map)) => map.values().try_for_each(|value| match value {
            Value::String(_) | Value::Null => Ok(()),
            other => wrong(other, "string"),
        }),
        (Shape::Texts, other) => wrong(other, "map[string]string"),
        (Shape::TextList, Value::Array(items)) => items.iter().try_for_each(|item| match item {
            Value::String(_) | Value::Null => Ok(()),
            other => wrong(other, "string"),
        }),
        (Shape::TextList, other) => wrong(other, "[]string"),
        (Shape::Structs(name, shapes), Value::Array(items)) => items.iter().try_for_each(|item| match item {
            Value::Null => Ok(()),
            Value::Object(map) => fields(map, shapes, name, &format!("{path}.")),
            other => wrong(other, &format!("v1.{name}")),
        }),
        (Shape::Structs(name, _), other) => wrong(other, &format!("[]v1.{name}")),
    }
}

fn mismatch(value: &Value, owner: &str, path: &str, ty: &str) -> String {
    let found = match value {
        // Only where a number is wanted does the number itself matter.
        Value::Number(number) if ty == "int64" => format!("number {number}"),
        other => json_type(other).to_owned(),
    };
    format!("json: cannot unmarshal {found} into Go struct field {owner}.{path} of type {ty}")
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

/// RFC 3339, element by element, because the original says at which one it stopped.
fn time(text: &str) -> Result<(), String> {
    let wrong = |why: String| Err(format!("parsing time {text:?} as \"2006-01-02T15:04:05Z07:00\": {why}"));
    let mut rest = text;
    for (element, digits) in [
        ("2006", 4),
        ("-", 0),
        ("01", 2),
        ("-", 0),
        ("02", 2),
        ("T", 0),
        ("15", 2),
        (":", 0),
        ("04", 2),
        (":", 0),
        ("05", 2),
    ] {
        let after = if digits == 0 {
            rest.strip_prefix(element)
        } else {
            let number = rest.get(..digits).filter(|n| n.bytes().all(|b| b.is_ascii_digit()));
            number.and_then(|_| rest.get(digits..))
        };
        match after {
            Some(after) => rest = after,
            None => return wrong(format!("cannot parse {rest:?} as {element:?}")),
        }
    }
    if let Some(fraction) = rest.strip_prefix(['.', ',']) {
        let zone = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
        if zone.len() < fraction.len() {
            rest = zone;
        }
    }
    let offset = |text: &str| {
        let bytes = text.as_bytes();
        let digit = |n: usize| bytes.get(n).is_some_and(u8::is_ascii_digit);
        bytes.len() == 6 && matches!(bytes[0], b'+' | b'-') && bytes[3] == b':' && [1, 2, 4, 5].into_iter().all(digit)
    };
    match rest.strip_prefix('Z') {
        Some("") => {}
        Some(extra) => return wrong(format!("extra text: {extra:?}")),
        None if offset(rest) => {}
        None => return wrong(format!("cannot parse {rest:?} as \"Z07:00\"")),
    }
    // A leap second reads as the last one before it in jiff, and not at all in the original.
    if text.parse::<jiff::Timestamp>().is_err() || text.get(17..19) == Some("60") {
        return wrong("day out of range".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn complaint(metadata: Value) -> String {
        metadata_types(&json!({"kind": "ConfigMap", "metadata": metadata})).unwrap_err()
    }

    #[test]
    fn wrong_types_are_named_as_the_original_names_them() {
        for (metadata, expected) in [
            (json!("x"), "string into Go struct field ConfigMap.metadata of type v1.ObjectMeta"),
            (json!({"name": 5}), "number into Go struct field ObjectMeta.metadata.name of type string"),
            (json!({"uid": {}}), "object into Go struct field ObjectMeta.metadata.uid of type types.UID"),
            (json!({"labels": {"a": 1}}), "number into Go struct field ObjectMeta.metadata.labels of type string"),
            (
                json!({"labels": ["a"]}),
                "array into Go struct field ObjectMeta.metadata.labels of type map[string]string",
            ),
            (json!({"finalizers": "x"}), "string into Go struct field ObjectMeta.metadata.finalizers of type []string"),
            (json!({"finalizers": [1]}), "number into Go struct field ObjectMeta.metadata.finalizers of type string"),
            (
                json!({"generation": 1.5}),
                "number 1.5 into Go struct field ObjectMeta.metadata.generation of type int64",
            ),
            (json!({"generation": "x"}), "string into Go struct field ObjectMeta.metadata.generation of type int64"),
            (
                json!({"creationTimestamp": 5}),
                "number into Go struct field ObjectMeta.metadata.creationTimestamp of type string",
            ),
            (
                json!({"ownerReferences": [{"kind": 1}]}),
                "number into Go struct field OwnerReference.metadata.ownerReferences.kind of type string",
            ),
            (
                json!({"managedFields": {}}),
                "object into Go struct field ObjectMeta.metadata.managedFields of type []v1.ManagedFieldsEntry",
            ),
            (
                json!({"managedFields": [{"time": 5}]}),
                "number into Go struct field ManagedFieldsEntry.metadata.managedFields.time of type string",
            ),
        ] {
            assert_eq!(complaint(metadata), format!("json: cannot unmarshal {expected}"));
        }
    }

    #[test]
    fn paths_of_custom_resources_begin_inside_the_metadata() {
        let complaint = |metadata| custom_metadata_types(&json!({"metadata": metadata})).unwrap_err();
        for (metadata, expected) in [
            (json!("x"), "string into Go value of type v1.ObjectMeta"),
            (json!({"labels": {"a": 1}}), "number into Go struct field ObjectMeta.labels of type string"),
            (
                json!({"ownerReferences": [{"kind": 1}]}),
                "number into Go struct field OwnerReference.ownerReferences.kind of type string",
            ),
        ] {
            assert_eq!(complaint(metadata), format!("json: cannot unmarshal {expected}"));
        }
        assert_eq!(custom_metadata_types(&json!({"metadata": {"name": "a"}})), Ok(()));
    }

    #[test]
    fn absent_and_null_fields_are_fine() {
        assert_eq!(metadata_types(&json!({})), Ok(()));
        assert_eq!(metadata_types(&json!({"metadata": null})), Ok(()));
        let nulls = json!({"metadata": {"name": null, "labels": {"a": null}, "ownerReferences": [null], "other": 1}});
        assert_eq!(metadata_types(&nulls), Ok(()));
    }

    #[test]
    fn times_are_rfc_3339() {
        for fine in ["2020-02-29T23:59:59Z", "2020-01-01T00:00:00.123Z", "2020-01-01T00:00:00+01:30"] {
            assert_eq!(metadata_types(&json!({"metadata": {"creationTimestamp": fine}})), Ok(()), "{fine}");
        }
        let layout = "\"2006-01-02T15:04:05Z07:00\"";
        for (wrong, why) in [
            ("x", "cannot parse \"x\" as \"2006\""),
            ("2020-1-1", "cannot parse \"1-1\" as \"01\""),
            ("2020-01-01 10:00:00Z", "cannot parse \" 10:00:00Z\" as \"T\""),
            ("2020-01-01T10:00:00", "cannot parse \"\" as \"Z07:00\""),
            ("2020-02-30T10:00:00Z", "day out of range"),
        ] {
            let text = complaint(json!({"creationTimestamp": wrong}));
            assert_eq!(text, format!("parsing time {wrong:?} as {layout}: {why}"));
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_time_reader_panic(text in any::<String>(), almost in "[0-9T:Z.,+é-]{0,30}") {
            let _ = time(&text);
            let _ = time(&almost);
        }
    }
}
