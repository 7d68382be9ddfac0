//! What the API server does with an object that someone applies: defaults, structure, CEL.
//!
//! Only as much of the structural rules as the CRDs use; a keyword that is not known here is a
//! failure, so that a schema cannot outgrow its tests unnoticed.

use std::{fs, path::PathBuf};

use evenkeel_api::crds;
use serde_json::{Map, Value};

/// Keywords of a schema that say nothing about what is allowed.
const WITHOUT_EFFECT: [&str; 6] = ["default", "description", "format", "title", "x-kubernetes-list-type", "nullable"];

/// The schema of a kind in a version, as JSON.
pub(crate) fn schema(kind: &str, version: &str) -> Value {
    let crd = crds().into_iter().find(|crd| crd.spec.names.kind == kind).unwrap_or_else(|| panic!("no CRD for {kind}"));
    let version = crd.spec.versions.into_iter().find(|served| served.name == version);
    serde_json::to_value(version.expect("a served version").schema.unwrap().open_api_v3_schema.unwrap()).unwrap()
}

/// Everything that is wrong with an object. Its own `apiVersion` and `kind` choose the schema.
pub(crate) fn complaints(object: &Value) -> Vec<String> {
    let (_, version) = object["apiVersion"].as_str().unwrap().split_once('/').expect("a group and a version");
    let mut schema = schema(object["kind"].as_str().unwrap(), version);
    // The API server knows these without being told.
    for name in ["apiVersion", "kind", "metadata"] {
        schema["properties"][name] = serde_json::json!({"x-kubernetes-preserve-unknown-fields": true});
    }
    let object = kube_cel::apply_defaults(&schema, object);
    let mut found = Vec::new();
    structure(&schema, &object, "", &mut found);
    if found.is_empty()
        && let Err(errors) = kube_cel::Validator::new().validate(&schema, &without_nulls(&object), None)
    {
        found.extend(errors.iter().map(ToString::to_string));
    }
    found
}

/// All documents of all files in `examples/`, with the name of their file.
pub(crate) fn examples() -> Vec<(String, String, Vec<Value>)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty(), "looked in the wrong place");
    files
        .into_iter()
        .map(|path| {
            let text = fs::read_to_string(&path).unwrap();
            let documents = serde_saphyr::from_multiple(&text).unwrap_or_else(|error| panic!("{path:?}: {error}"));
            (path.file_name().unwrap().to_string_lossy().into_owned(), text, documents)
        })
        .collect()
}

/// The API server runs no rule on a field that is null.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let present = fields.iter().filter(|(_, value)| !value.is_null());
            present.map(|(name, value)| (name.clone(), without_nulls(value))).collect()
        }
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        other => other.clone(),
    }
}

fn structure(schema: &Value, value: &Value, path: &str, found: &mut Vec<String>) {
    let keywords = schema.as_object().expect("a schema is an object");
    if value.is_null() && keywords.get("nullable") == Some(&Value::Bool(true)) {
        return;
    }
    for (keyword, wanted) in keywords {
        let holds = match keyword.as_str() {
            "type" => has_type(value, wanted.as_str().unwrap()),
            "x-kubernetes-int-or-string" => value.is_i64() || value.is_string(),
            "enum" => wanted.as_array().unwrap().contains(value),
            "minimum" => value.as_f64().is_none_or(|number| number >= wanted.as_f64().unwrap()),
            "maxItems" => value.as_array().is_none_or(|items| items.len() as u64 <= wanted.as_u64().unwrap()),
            "pattern" => matches(value, wanted),
            "required" => has_all(value, wanted.as_array().unwrap()),
            "properties" | "additionalProperties" | "items" => {
                children(keywords, value, path, keyword, found);
                true
            }
            "x-kubernetes-preserve-unknown-fields" | "x-kubernetes-validations" => true,
            other if WITHOUT_EFFECT.contains(&other) => true,
            other => panic!("teach this test the keyword {other}"),
        };
        if !holds {
            found.push(format!("{}: {keyword} must be {wanted}", path.trim_start_matches('.')));
        }
    }
}

fn children(keywords: &Map<String, Value>, value: &Value, path: &str, keyword: &str, found: &mut Vec<String>) {
    match (keyword, value) {
        ("properties", Value::Object(fields)) => {
            let preserves = keywords.contains_key("x-kubernetes-preserve-unknown-fields");
            for (name, value) in fields {
                match keywords["properties"].get(name) {
                    Some(schema) => structure(schema, value, &format!("{path}.{name}"), found),
                    None if preserves => {}
                    None => found.push(format!("{}.{name}: unknown field", path.trim_start_matches('.'))),
                }
            }
        }
        ("additionalProperties", Value::Object(fields)) => {
            for (name, value) in fields {
                structure(&keywords["additionalProperties"], value, &format!("{path}.{name}"), found);
            }
        }
        ("items", Value::Array(items)) => {
            for (n, item) in items.iter().enumerate() {
                structure(&keywords["items"], item, &format!("{path}[{n}]"), found);
            }
        }
        _ => {}
    }
}

fn has_type(value: &Value, wanted: &str) -> bool {
    match wanted {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        other => panic!("teach this test the type {other}"),
    }
}

fn has_all(value: &Value, names: &[Value]) -> bool {
    value.as_object().is_none_or(|fields| names.iter().all(|name| fields.contains_key(name.as_str().unwrap())))
}

/// CEL's `matches` is the regular expression engine at hand.
fn matches(value: &Value, pattern: &Value) -> bool {
    let schema = serde_json::json!({
        "type": "string",
        "x-kubernetes-validations": [{"rule": format!("self.matches(r'{}')", pattern.as_str().unwrap())}],
    });
    kube_cel::Validator::new().validate(&schema, value, None).is_ok()
}
