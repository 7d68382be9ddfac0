//! The versions of a definition.
//!
//! What all versions have in common (often: everything, because there is one) the original treats as if it stood
//! once at `spec`, and that is where its errors point. So do ours.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Examined, flag, name_of, names, schema_of, version_list};
use crate::object::Object;
use crate::refusal::{Fault, FieldError};
use crate::schema::gotext::is_printable;
use crate::schema::{Type, resolve_path};

const MAX_SELECTABLE: usize = 8;
const COLUMN_TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const COLUMN_FORMATS: [&str; 8] = ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];

/// What may stand at the root of a schema whose status is written separately.
const ROOT_FIELDS: [&str; 22] = [
    "description",
    "type",
    "format",
    "title",
    "maximum",
    "exclusiveMaximum",
    "minimum",
    "exclusiveMinimum",
    "maxLength",
    "minLength",
    "pattern",
    "maxItems",
    "minItems",
    "uniqueItems",
    "multipleOf",
    "required",
    "items",
    "properties",
    "externalDocs",
    "example",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
];

/// Checks each version by itself.
pub(super) fn check(crd: &Value, examined: &Examined, errors: &mut Vec<FieldError>) {
    let versions = version_list(crd);
    for (index, version) in versions.iter().enumerate() {
        if schema_of(version).is_none() {
            let at = format!("spec.versions[{index}].schema.openAPIV3Schema");
            errors.push(FieldError::new(at, Fault::Required, ""));
        }
    }
    let shared = Shared::of(&versions);
    for (index, version) in versions.iter().enumerate() {
        let path = format!("spec.versions[{index}]");
        let why = names::label(name_of(version)).join(",");
        if !why.is_empty() {
            let at = format!("{path}.name");
            errors.push(FieldError::with_value(at, Fault::Invalid, &name_of(version).into(), why));
        }
        deprecation(version, &path, errors);
        if !shared.schema {
            schema(version, &schema_path(shared.schema, index), examined.faults(index), errors);
        }
        if !shared.subresources {
            subresources(version, &format!("{path}.subresources"), errors);
        }
        if !shared.columns {
            columns(version, &format!("{path}.additionalPrinterColumns"), errors);
        }
        if !shared.selectable {
            selectable(version, index, examined, &format!("{path}.selectableFields"), errors);
        }
    }
    let shown = shown(&versions, &shared);
    let mut wrong = |detail: &str| {
        let mut error = FieldError::new("spec.versions", Fault::Invalid, detail);
        error.value.clone_from(&shown);
        errors.push(error);
    };
    let unique: BTreeSet<&str> = versions.iter().map(|v| name_of(v)).collect();
    if unique.len() != versions.len() {
        wrong("must contain unique version names");
    }
    if versions.iter().filter(|v| flag(v, "storage")).count() != 1 {
        wrong("must have exactly one version marked as storage version");
    }
}

/// Checks what all versions have in common.
pub(super) fn check_shared(crd: &Value, examined: &Examined, errors: &mut Vec<FieldError>) {
    let versions = version_list(crd);
    let shared = Shared::of(&versions);
    let Some(version) = versions.first() else { return };
    if shared.schema {
        schema(version, &schema_path(shared.schema, 0), examined.faults(0), errors);
    }
    if shared.subresources {
        subresources(version, "spec.subresources", errors);
    }
    if shared.columns {
        columns(version, "spec.additionalPrinterColumns", errors);
    }
    if shared.selectable {
        selectable(version, 0, examined, "spec.selectableFields", errors);
    }
}

/// Where the original's errors say that the schema of a version stands.
pub(super) fn schema_path(is_shared: bool, index: usize) -> String {
    if is_shared {
        "spec.validation.openAPIV3Schema".to_owned()
    } else {
        format!("spec.versions[{index}].schema.openAPIV3Schema")
    }
}

/// Whether all versions have one schema.
pub(super) fn share_schema(versions: &[&Value]) -> bool {
    are_same(versions, "schema")
}

fn are_same(versions: &[&Value], key: &str) -> bool {
    versions.windows(2).all(|pair| pair[0].get(key) == pair[1].get(key))
}

/// Which parts are the same in all versions.
struct Shared {
    schema: bool,
    subresources: bool,
    columns: bool,
    selectable: bool,
}

impl Shared {
    fn of(versions: &[&Value]) -> Self {
        let same = |key| are_same(versions, key);
        Self {
            schema: share_schema(versions),
            subresources: same("subresources"),
            columns: same("additionalPrinterColumns"),
            selectable: same("selectableFields"),
        }
    }
}

/// Versions as the original's messages show them: without what they have in common.
fn shown(versions: &[&Value], shared: &Shared) -> String {
    let part = |version: &Value, key: &str, shared: bool| match version.get(key) {
        Some(value) if !shared => value.to_string(),
        _ => "null".into(),
    };
    let one = |version: &&Value| {
        format!(
            "{{\"Name\":{},\"Served\":{},\"Storage\":{},\"Deprecated\":{},\"DeprecationWarning\":{},\"Schema\":{},\
             \"Subresources\":{},\"AdditionalPrinterColumns\":{},\"SelectableFields\":{}}}",
            Value::from(name_of(version)),
            flag(version, "served"),
            flag(version, "storage"),
            flag(version, "deprecated"),
            version.get("deprecationWarning").unwrap_or(&Value::Null),
            part(version, "schema", shared.schema),
            part(version, "subresources", shared.subresources),
            part(version, "additionalPrinterColumns", shared.columns),
            part(version, "selectableFields", shared.selectable),
        )
    };
    format!("[{}]", versions.iter().map(one).collect::<Vec<_>>().join(","))
}

fn deprecation(version: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let Some(warning) = version.get("deprecationWarning").and_then(Value::as_str) else { return };
    let mut why = Vec::new();
    if flag(version, "deprecated") {
        if warning.len() > 256 {
            why.push("must be <= 256 characters long".to_owned());
        }
        if warning.is_empty() {
            why.push("must not be an empty string".into());
        }
        if let Some((index, _)) = warning.char_indices().find(|(_, c)| !is_printable(*c)) {
            why.push(format!(
                "must only contain printable UTF-8 characters; non-printable character found at index {index}"
            ));
        }
    } else {
        why.push("can only be set for deprecated versions".into());
    }
    let at = format!("{path}.deprecationWarning");
    errors.extend(why.into_iter().map(|why| FieldError::with_value(&at, Fault::Invalid, &warning.into(), why)));
}

fn has_status(version: &Value) -> bool {
    version.at(&["subresources", "status"]).is_some_and(|status| !status.is_null())
}

fn schema(version: &Value, path: &str, faults: &[FieldError], errors: &mut Vec<FieldError>) {
    let Some(schema) = schema_of(version) else { return };
    if has_status(version)
        && let Some(root) = schema.as_object()
    {
        let set = |value: &Value| !(value.is_null() || value == &json!(false) || value == &json!([]));
        let ty = root.get("type").and_then(Value::as_str).unwrap_or_default();
        if !ty.is_empty() && ty != "object" {
            let detail =
                "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled";
            errors.push(FieldError::with_value(format!("{path}.type"), Fault::Invalid, &ty.into(), detail));
        } else if root.iter().any(|(key, value)| !ROOT_FIELDS.contains(&key.as_str()) && set(value)) {
            let detail = format!(
                "only [{}] fields are allowed at the root of the schema if the status subresource is enabled",
                ROOT_FIELDS.map(go_name).join(" ")
            );
            errors.push(FieldError::with_value(path, Fault::Invalid, schema, detail));
        }
    }
    if flag(schema, "nullable") {
        errors.push(FieldError::new(
            format!("{path}.nullable"),
            Fault::Forbidden,
            "nullable cannot be true at the root",
        ));
    }
    errors.extend_from_slice(faults);
}

/// `maxLength` as the original's type calls it: `MaxLength`; extensions lose their prefix.
fn go_name(key: &str) -> String {
    let parts: Vec<&str> = match key.strip_prefix("x-kubernetes-") {
        Some(rest) => std::iter::once("x").chain(rest.split('-')).collect(),
        None => vec![key],
    };
    let capital = |part: &str| {
        let mut chars = part.chars();
        chars.next().map(|first| first.to_uppercase().chain(chars).collect::<String>()).unwrap_or_default()
    };
    parts.into_iter().map(capital).collect()
}

fn subresources(version: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let Some(scale) = version.at(&["subresources", "scale"]).filter(|scale| !scale.is_null()) else { return };
    let mut check = |key: &str, required: bool, roots: &[&str], detail: &str| {
        let value = scale.get(key).and_then(Value::as_str).unwrap_or_default();
        let at = format!("{path}.scale.{key}");
        if value.is_empty() {
            if required {
                errors.push(FieldError::new(at, Fault::Required, ""));
            }
        } else if !value.starts_with('.') {
            let detail = "must be a simple json path starting with .";
            errors.push(FieldError::with_value(at, Fault::Invalid, &value.into(), detail));
        } else if !roots.iter().any(|root| value.starts_with(root)) {
            errors.push(FieldError::with_value(at, Fault::Invalid, &value.into(), detail));
        }
    };
    check("specReplicasPath", true, &[".spec."], "should be a json path under .spec");
    check("statusReplicasPath", true, &[".status."], "should be a json path under .status");
    let detail = "should be a json path under either .spec or .status";
    check("labelSelectorPath", false, &[".spec.", ".status."], detail);
}

fn columns(version: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let columns = version.get("additionalPrinterColumns").and_then(Value::as_array).into_iter().flatten();
    for (index, column) in columns.enumerate() {
        let at = |key: &str| format!("{path}[{index}].{key}");
        let text = |key: &str| column.get(key).and_then(Value::as_str).unwrap_or_default();
        if text("name").is_empty() {
            errors.push(FieldError::new(at("name"), Fault::Required, ""));
        }
        let detail = format!("must be one of {}", COLUMN_TYPES.join(","));
        if text("type").is_empty() {
            errors.push(FieldError::new(at("type"), Fault::Required, detail));
        } else if !COLUMN_TYPES.contains(&text("type")) {
            errors.push(FieldError::with_value(at("type"), Fault::Invalid, &text("type").into(), detail));
        }
        if !text("format").is_empty() && !COLUMN_FORMATS.contains(&text("format")) {
            let detail = format!("must be one of {}", COLUMN_FORMATS.join(","));
            errors.push(FieldError::with_value(at("format"), Fault::Invalid, &text("format").into(), detail));
        }
        if text("jsonPath").is_empty() {
            errors.push(FieldError::new(at("JSONPath"), Fault::Required, ""));
        } else if !text("jsonPath").starts_with('.') {
            let detail = "must be a simple json path starting with .";
            errors.push(FieldError::with_value(at("JSONPath"), Fault::Invalid, &text("jsonPath").into(), detail));
        }
    }
}

fn selectable(version: &Value, index: usize, examined: &Examined, path: &str, errors: &mut Vec<FieldError>) {
    let Some(fields) = version.get("selectableFields").and_then(Value::as_array).filter(|f| !f.is_empty()) else {
        return;
    };
    let Some(schema) = examined.schema(index) else { return };
    let mut seen = BTreeSet::new();
    for (index, field) in fields.iter().enumerate() {
        let at = format!("{path}[{index}].jsonPath");
        let field = field.get("jsonPath").and_then(Value::as_str).unwrap_or_default();
        if field.is_empty() {
            errors.push(FieldError::new(at, Fault::Required, ""));
            continue;
        }
        let mut invalid = |detail: String| {
            errors.push(FieldError::with_value(&at, Fault::Invalid, &field.into(), detail));
        };
        let (found, written) = match resolve_path(schema, field, false) {
            Ok(found) => found,
            Err(why) => {
                invalid(format!("is an invalid path: {why}"));
                continue;
            }
        };
        if written == "metadata" || written.starts_with("metadata.") {
            invalid("must not point to fields in metadata".into());
        }
        if !matches!(found.ty, Type::String | Type::Boolean | Type::Integer) {
            invalid(
                "must point to a field of type string, boolean or integer. Enum string fields and strings with \
                 formats are allowed."
                    .into(),
            );
        }
        if !seen.insert(written) {
            errors.push(FieldError::with_value(at, Fault::Duplicate, &field.into(), ""));
        }
    }
    if seen.len() > MAX_SELECTABLE {
        let detail = format!("must have at most {MAX_SELECTABLE} items");
        errors.push(FieldError::with_value(path, Fault::TooMany, &seen.len().into(), detail));
    }
}

/// Kubernetes' order of version names: stable before beta before alpha, higher numbers first, and names that follow no
/// pattern last, in the order of the alphabet.
pub fn newest_first(a: &str, b: &str) -> Ordering {
    match (parts(a), parts(b)) {
        (Some(a), Some(b)) => Reverse(a).cmp(&Reverse(b)),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => a.cmp(b),
    }
}

/// (stability, major, minor): `v2beta1` is (1, 2, 1).
fn parts(name: &str) -> Option<(u8, u64, u64)> {
    let rest = name.strip_prefix('v')?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let number = |text: &str| text.parse().ok().filter(|_| !text.starts_with('0'));
    let major = number(&rest[..digits])?;
    let (stability, minor) = match &rest[digits..] {
        "" => return Some((2, major, 0)),
        rest => match (rest.strip_prefix("beta"), rest.strip_prefix("alpha")) {
            (Some(minor), _) => (1, minor),
            (_, Some(minor)) => (0, minor),
            _ => return None,
        },
    };
    Some((stability, major, number(minor)?))
}
