//! What Kubernetes asks of a CRD's schema beyond being structural: which keywords exist, how lists and maps declare
//! themselves, where defaults may stand, and what a rule must say.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::refusal::{Fault, FieldError, MAX_FOUND};
use crate::schema::gotext::supported;
use crate::schema::raw::{Additional, Raw};

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
const REASONS: [&str; 4] = ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

/// Everything in a schema that breaks a convention.
pub(crate) fn violations(schema: Raw<'_>, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    node(schema, path, &Place { root: true, ..Place::default() }, &mut errors);
    errors
}

/// What the surroundings of a node forbid.
#[derive(Clone, Default)]
struct Place {
    root: bool,
    /// Inside `apiVersion`, `kind` or `metadata` of a resource.
    inside_meta: bool,
    /// Why defaults are not allowed, if they are not.
    no_defaults: Option<String>,
}

fn node(s: Raw<'_>, path: &str, place: &Place, errors: &mut Vec<FieldError>) {
    if errors.len() >= MAX_FOUND {
        return;
    }
    keywords(s, path, place, errors);
    let inner = Place { root: false, ..place.clone() };
    if let Some(additional) = s.additional() {
        let at = format!("{path}.additionalProperties");
        if s.has_entries("properties") && !matches!(additional, Additional::Allowed(true)) {
            errors.push(forbidden(&at, "additionalProperties and properties are mutual exclusive"));
        }
        if let Additional::Schema(schema) = additional {
            let mut inner = inner.clone();
            if inner.inside_meta {
                inner.no_defaults = Some("inside additionalProperties applying to object metadata".into());
            }
            node(schema, &at, &inner, errors);
        }
    }
    for (name, property) in s.schemas("properties") {
        let mut inner = inner.clone();
        if (place.root || s.flag("x-kubernetes-embedded-resource"))
            && ["metadata", "kind", "apiVersion"].contains(&name)
        {
            inner.inside_meta = true;
            if place.root {
                inner.no_defaults = Some(format!("in top-level {name}"));
            }
        }
        node(property, &format!("{path}.properties[{name}]"), &inner, errors);
    }
    if let Some(not) = s.schema("not") {
        node(not, &format!("{path}.not"), &inner, errors);
    }
    for junctor in ["allOf", "oneOf", "anyOf"] {
        for (index, branch) in s.list(junctor) {
            node(branch, &format!("{path}.{junctor}[{index}]"), &inner, errors);
        }
    }
    if let Some(items) = s.items() {
        node(items, &format!("{path}.items"), &inner, errors);
    }
    if s.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
        let at = format!("{path}.x-kubernetes-preserve-unknown-fields");
        errors.push(FieldError::with_value(at, Fault::Invalid, &false.into(), "must be true or undefined"));
    }
    map_type(s, path, errors);
    list_type(s, path, errors);
    for (index, rule) in s.list("x-kubernetes-validations") {
        rule_fields(rule, &format!("{path}.x-kubernetes-validations[{index}]"), errors);
    }
}

fn keywords(s: Raw<'_>, path: &str, place: &Place, errors: &mut Vec<FieldError>) {
    let ty = s.text("type");
    if !ty.is_empty() && !TYPES.contains(&ty) {
        errors.push(FieldError::with_value(format!("{path}.type"), Fault::NotSupported, &ty.into(), supported(TYPES)));
    }
    if let Some(why) = place.no_defaults.as_ref().filter(|_| s.get("default").is_some()) {
        errors.push(forbidden(format!("{path}.default"), format!("must not be set {why}")));
    }
    for (key, found) in [
        ("id", !s.text("id").is_empty()),
        ("additionalItems", s.get("additionalItems").is_some()),
        ("patternProperties", s.has_entries("patternProperties")),
        ("definitions", s.has_entries("definitions")),
        ("dependencies", s.get("dependencies").is_some()),
        ("$ref", s.get("$ref").is_some()),
    ] {
        if found {
            errors.push(forbidden(format!("{path}.{key}"), format!("{key} is not supported")));
        }
    }
    if ty == "null" {
        let detail = "type cannot be set to null, use nullable as an alternative";
        errors.push(forbidden(format!("{path}.type"), detail));
    }
    if s.get("items").is_some_and(Value::is_array) {
        errors.push(forbidden(format!("{path}.items"), "items must be a schema object and not an array"));
    }
    if place.inside_meta && s.flag("x-kubernetes-embedded-resource") {
        let at = format!("{path}.x-kubernetes-embedded-resource");
        errors.push(forbidden(at, "must not be used inside of resource meta"));
    }
    if s.flag("uniqueItems") {
        let detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        errors.push(forbidden(format!("{path}.uniqueItems"), detail));
    }
}

/// The type that an extension goes with.
fn goes_with(s: Raw<'_>, extension: &str, wanted: &str, path: &str, errors: &mut Vec<FieldError>) -> bool {
    let ty = s.text("type");
    if s.get(extension).is_none() || ty == wanted {
        return true;
    }
    let detail = format!("must be {wanted} if {extension} is specified");
    let at = format!("{path}.type");
    errors.push(match ty {
        "" => FieldError::new(at, Fault::Required, detail),
        _ => FieldError::with_value(at, Fault::Invalid, &ty.into(), detail),
    });
    false
}

fn map_type(s: Raw<'_>, path: &str, errors: &mut Vec<FieldError>) {
    goes_with(s, "x-kubernetes-map-type", "object", path, errors);
    let kinds = ["atomic", "granular"];
    if let Some(kind) = s.text_option("x-kubernetes-map-type").filter(|kind| !kinds.contains(kind)) {
        let at = format!("{path}.x-kubernetes-map-type");
        errors.push(FieldError::with_value(at, Fault::NotSupported, &kind.into(), supported(kinds)));
    }
}

fn list_type(s: Raw<'_>, path: &str, errors: &mut Vec<FieldError>) {
    let kind = s.text_option("x-kubernetes-list-type");
    let at = format!("{path}.x-kubernetes-list-type");
    if goes_with(s, "x-kubernetes-list-type", "array", path, errors) && kind == Some("set") {
        set_items(s, path, errors);
    }
    let kinds = ["atomic", "set", "map"];
    if let Some(kind) = kind.filter(|kind| !kinds.contains(kind)) {
        errors.push(FieldError::with_value(&at, Fault::NotSupported, &kind.into(), supported(kinds)));
    }
    if s.has_entries("x-kubernetes-list-map-keys") && kind != Some("map") {
        let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
        errors.push(match kind {
            None => FieldError::new(&at, Fault::Required, detail),
            Some(kind) => FieldError::with_value(&at, Fault::Invalid, &kind.into(), detail),
        });
    }
    if kind == Some("map") {
        map_keys(s, path, errors);
    }
    if let Some(kind) = kind.filter(|kind| ["set", "map"].contains(kind)) {
        if s.items().is_some_and(|items| items.flag("nullable")) {
            let detail = format!("cannot be nullable when x-kubernetes-list-type is {kind}");
            errors.push(forbidden(format!("{path}.items.nullable"), detail));
        }
        if kind == "map" {
            keys_are_there(s, path, errors);
        }
    }
}

/// Items of a set are compared as a whole, so they must be owned as a whole.
fn set_items(s: Raw<'_>, path: &str, errors: &mut Vec<FieldError>) {
    let Some(items) = s.items() else { return };
    let (extension, fine) = match items.text("type") {
        "array" => {
            ("x-kubernetes-list-type", matches!(items.text_option("x-kubernetes-list-type"), None | Some("atomic")))
        }
        "object" => ("x-kubernetes-map-type", items.text("x-kubernetes-map-type") == "atomic"),
        _ => return,
    };
    if !fine {
        let value = items.get("x-kubernetes-list-type").cloned().unwrap_or(Value::Null);
        let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
        errors.push(FieldError::with_value(format!("{path}.items.{extension}"), Fault::Invalid, &value, detail));
    }
}

fn map_keys(s: Raw<'_>, path: &str, errors: &mut Vec<FieldError>) {
    let keys = s.texts("x-kubernetes-list-map-keys");
    let at = format!("{path}.x-kubernetes-list-map-keys");
    if keys.is_empty() {
        errors.push(FieldError::new(&at, Fault::Required, "must not be empty if x-kubernetes-list-type is map"));
    }
    let Some(items) = s.items() else {
        if s.get("items").is_none() {
            let detail = "must have a schema if x-kubernetes-list-type is map";
            errors.push(FieldError::new(format!("{path}.items"), Fault::Required, detail));
        }
        return;
    };
    let ty = items.text("type");
    if ty != "object" {
        let detail = "must be object if parent array's x-kubernetes-list-type is map";
        errors.push(FieldError::with_value(format!("{path}.items.type"), Fault::Invalid, &ty.into(), detail));
        return;
    }
    let listed = Value::from(keys.clone());
    let mut seen = BTreeSet::new();
    for key in keys {
        match items.property(key) {
            Some(property) if matches!(property.text("type"), "array" | "object") => {
                let at = format!("{path}.items.properties[{key}].type");
                let detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                errors.push(FieldError::with_value(at, Fault::Invalid, &ty.into(), detail));
            }
            Some(_) => {}
            None => {
                let detail = "entries must all be names of item properties";
                errors.push(FieldError::with_value(&at, Fault::Invalid, &listed, detail));
            }
        }
        if !seen.insert(key) {
            errors.push(FieldError::with_value(&at, Fault::Invalid, &listed, "must not contain duplicate entries"));
        }
    }
}

/// An item without its key could not be told from others.
fn keys_are_there(s: Raw<'_>, path: &str, errors: &mut Vec<FieldError>) {
    let Some(items) = s.items() else { return };
    let required = items.texts("required");
    for key in s.texts("x-kubernetes-list-map-keys") {
        let Some(property) = items.property(key) else { continue };
        let at = format!("{path}.items.properties[{key}]");
        if !required.contains(&key) && property.get("default").is_none() {
            let detail =
                "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
            errors.push(FieldError::new(format!("{at}.default"), Fault::Required, detail));
        }
        if property.flag("nullable") {
            let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            errors.push(forbidden(format!("{at}.nullable"), detail));
        }
    }
}

fn rule_fields(rule: Raw<'_>, path: &str, errors: &mut Vec<FieldError>) {
    let has_lines = |text: &str| text.contains(['\n', '\r']);
    let (source, message) = (rule.text("rule").trim(), rule.text("message"));
    let mut invalid = |key: &str, value: &str, detail: &str| {
        errors.push(FieldError::with_value(format!("{path}.{key}"), Fault::Invalid, &value.into(), detail));
    };
    if !source.is_empty() {
        if !message.is_empty() && message.trim().is_empty() {
            invalid("message", message, "must be non-empty if specified");
        } else if has_lines(message.trim()) {
            invalid("message", message, "must not contain line breaks");
        }
    }
    let field_path = rule.text("fieldPath");
    if !field_path.is_empty() && field_path.trim().is_empty() {
        invalid("fieldPath", field_path, "must be non-empty if specified");
    }
    if has_lines(field_path) {
        invalid("fieldPath", field_path, "must not contain line breaks");
    }
    let mut required = |key: &str, detail: &str| {
        errors.push(FieldError::new(format!("{path}.{key}"), Fault::Required, detail));
    };
    if source.is_empty() {
        required("rule", "rule is not specified");
    } else if has_lines(source) && message.is_empty() {
        required("message", "message must be specified if rule contains line breaks");
    }
    let expression = rule.text("messageExpression");
    if !expression.is_empty() && expression.trim().is_empty() {
        required("messageExpression", "messageExpression must be non-empty if specified");
    }
    if let Some(reason) = rule.text_option("reason").filter(|reason| !REASONS.contains(reason)) {
        let at = format!("{path}.reason");
        errors.push(FieldError::with_value(at, Fault::NotSupported, &reason.into(), supported(REASONS)));
    }
}

fn forbidden(path: impl Into<String>, detail: impl Into<String>) -> FieldError {
    FieldError::new(path, Fault::Forbidden, detail)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(property: Value, expected: &[&str]) {
        let schema = json!({"type": "object", "properties": {"p": property}});
        let found = violations(Raw(schema.as_object().expect("an object")), "s");
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn unsupported_keywords_are_forbidden() {
        check(
            json!({"type": "array", "uniqueItems": true, "items": {"$ref": "x"}}),
            &[
                "s.properties[p].uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime \
                 complexity becomes quadratic",
                "s.properties[p].items.$ref: Forbidden: $ref is not supported",
            ],
        );
        check(
            json!({"type": "text"}),
            &["s.properties[p].type: Unsupported value: \"text\": supported values: \"array\", \"boolean\", \
               \"integer\", \"number\", \"object\", \"string\""],
        );
        check(
            json!({"type": "object", "properties": {"a": {"type": "string"}},
                "additionalProperties": {"type": "string"}}),
            &["s.properties[p].additionalProperties: Forbidden: additionalProperties and properties are mutual \
               exclusive"],
        );
    }

    #[test]
    fn lists_that_are_maps_have_keys_that_are_there() {
        let list = |keys: Value, item: Value| {
            json!({"type": "array", "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": keys, "items": item})
        };
        let item = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]});
        check(list(json!(["a"]), item.clone()), &[]);
        check(
            list(json!(["b"]), item),
            &["s.properties[p].x-kubernetes-list-map-keys: Invalid value: [\"b\"]: entries must all be names of item \
               properties"],
        );
        check(
            list(json!(["a"]), json!({"type": "object", "properties": {"a": {"type": "string"}}})),
            &["s.properties[p].items.properties[a].default: Required value: this property is in \
               x-kubernetes-list-map-keys, so it must have a default or be a required property"],
        );
    }
}
