//! The rules that make a schema *structural*: every value has one type, told outside of any junctor, so that pruning
//! and defaulting never have to guess.

use crate::refusal::{Fault, FieldError, MAX_FOUND};
use crate::schema::pattern;
use crate::schema::raw::{Additional, Raw};

#[derive(Clone, Copy, PartialEq)]
enum Level {
    Root,
    Item,
    Field,
}

/// Everything that keeps a schema from being structural, ordered by text as the original orders it.
pub(crate) fn violations(schema: Raw<'_>, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    invariants(schema, Level::Root, path, &mut errors);
    complete(schema, Some(schema), path, path, &mut errors);
    errors.sort_by_cached_key(ToString::to_string);
    errors
}

fn invariants(s: Raw<'_>, level: Level, path: &str, errors: &mut Vec<FieldError>) {
    if errors.len() >= MAX_FOUND {
        return;
    }
    if s.text("type") == "array" && s.get("items").is_none() {
        errors.push(required(format!("{path}.items"), "must be specified"));
    }
    if let Some(items) = s.items() {
        invariants(items, Level::Item, &format!("{path}.items"), errors);
    }
    for (name, property) in s.schemas("properties") {
        invariants(property, Level::Field, &format!("{path}.properties[{name}]"), errors);
    }
    if let Some(additional) = s.additional() {
        let path = format!("{path}.additionalProperties");
        if level == Level::Root {
            errors.push(forbidden(&path, "must not be used at the root"));
        }
        if let Additional::Schema(schema) = additional {
            invariants(schema, Level::Field, &path, errors);
        }
    }
    extensions(s, path, errors);
    value_checks(
        s,
        is_int_or_string(s),
        s.list("allOf").next().is_some_and(|(_, n)| is_int_or_string(n)),
        path,
        errors,
    );
    type_told(s, level, path, errors);
    resource_parts(s, level, path, errors);
}

fn extensions(s: Raw<'_>, path: &str, errors: &mut Vec<FieldError>) {
    if !s.flag("x-kubernetes-int-or-string") {
        return;
    }
    for extension in ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"] {
        if s.flag(extension) {
            let detail = "must be false if x-kubernetes-int-or-string is true";
            errors.push(FieldError::with_value(format!("{path}.{extension}"), Fault::Invalid, &true.into(), detail));
        }
    }
}

fn type_told(s: Raw<'_>, level: Level, path: &str, errors: &mut Vec<FieldError>) {
    let (ty, embedded) = (s.text("type"), s.flag("x-kubernetes-embedded-resource"));
    let at = format!("{path}.type");
    if embedded && ty != "object" {
        let detail = "must be object if x-kubernetes-embedded-resource is true";
        errors.push(if ty.is_empty() { required(at.clone(), detail) } else { invalid(at.clone(), ty, detail) });
    } else if ty.is_empty() && !s.flag("x-kubernetes-int-or-string") && !s.flag("x-kubernetes-preserve-unknown-fields")
    {
        errors.push(required(
            at.clone(),
            match level {
                Level::Root => "must not be empty at the root",
                Level::Item => "must not be empty for specified array items",
                Level::Field => "must not be empty for specified object fields",
            },
        ));
    }
    if embedded && s.additional().is_some() {
        let detail = "must not be used if x-kubernetes-embedded-resource is set";
        errors.push(forbidden(format!("{path}.additionalProperties"), detail));
    }
    if level == Level::Root && !ty.is_empty() && ty != "object" {
        errors.push(invalid(at, ty, "must be object at the root"));
    }
}

/// `apiVersion`, `kind` and `metadata` of a resource, the root's or an embedded one's.
fn resource_parts(s: Raw<'_>, level: Level, path: &str, errors: &mut Vec<FieldError>) {
    let embedded = s.flag("x-kubernetes-embedded-resource");
    let is_resource = level == Level::Root || embedded;
    if is_resource {
        for name in ["kind", "apiVersion"] {
            if let Some(ty) = s.property(name).map(|p| p.text("type")).filter(|ty| *ty != "string") {
                errors.push(invalid(format!("{path}.properties[{name}].type"), ty, "must be string"));
            }
        }
    }
    if let Some(metadata) = s.property("metadata") {
        let path = format!("{path}.properties[metadata]");
        if is_resource && metadata.text("type") != "object" {
            errors.push(invalid(format!("{path}.type"), metadata.text("type"), "must be object"));
        }
        if level == Level::Root && !restricts_names_only(metadata) {
            let detail =
                "must not specify anything other than name and generateName, but metadata is implicitly specified";
            errors.push(forbidden(path, detail));
        }
    }
    if embedded && !s.flag("x-kubernetes-preserve-unknown-fields") && !s.has_entries("properties") {
        let detail = "must not be empty if x-kubernetes-embedded-resource is true without \
                      x-kubernetes-preserve-unknown-fields";
        errors.push(required(format!("{path}.properties"), detail));
    }
}

fn restricts_names_only(metadata: Raw<'_>) -> bool {
    let only_names = metadata.schemas("properties").all(|(name, _)| name == "name" || name == "generateName");
    let nothing_else = metadata.0.iter().all(|(key, value)| {
        matches!(key.as_str(), "type" | "properties" | "default")
            || value.is_null()
            || value == &serde_json::Value::Bool(false)
    });
    only_names && nothing_else
}

/// `anyOf: [{type: integer}, {type: string}]`: the one place where a junctor may tell types.
fn is_int_or_string(s: Raw<'_>) -> bool {
    let branches: Vec<Raw<'_>> = s.list("anyOf").map(|(_, node)| node).collect();
    let tells = |node: &Raw<'_>, ty: &str| node.0.len() == 1 && node.text("type") == ty;
    matches!(branches.as_slice(), [first, second] if tells(first, "integer") && tells(second, "string"))
}

fn value_checks(s: Raw<'_>, skip_any_of: bool, skip_first_all_of: bool, path: &str, errors: &mut Vec<FieldError>) {
    if !skip_any_of {
        for (index, node) in s.list("anyOf") {
            nested(node, false, &format!("{path}.anyOf[{index}]"), errors);
        }
    }
    for (index, node) in s.list("allOf") {
        nested(node, skip_first_all_of && index == 0, &format!("{path}.allOf[{index}]"), errors);
    }
    for (index, node) in s.list("oneOf") {
        nested(node, false, &format!("{path}.oneOf[{index}]"), errors);
    }
    if let Some(node) = s.schema("not") {
        nested(node, false, &format!("{path}.not"), errors);
    }
    let source = s.text("pattern");
    if let Some(why) = (!source.is_empty()).then(|| pattern::compile(source).err()).flatten() {
        let detail = format!("must be a valid regular expression, but isn't: error parsing regexp: {why}");
        errors.push(invalid(format!("{path}.pattern"), source, detail));
    }
}

/// Inside a junctor only value checks are allowed, nothing that tells the structure.
fn nested(s: Raw<'_>, skip_any_of: bool, path: &str, errors: &mut Vec<FieldError>) {
    if errors.len() >= MAX_FOUND {
        return;
    }
    value_checks(s, skip_any_of, false, path, errors);
    if let Some(items) = s.items() {
        nested(items, false, &format!("{path}.items"), errors);
    }
    for (name, property) in s.schemas("properties") {
        nested(property, false, &format!("{path}.properties[{name}]"), errors);
    }
    let mut forbid = |key: &str, found: bool, why: &str| {
        if found {
            errors.push(forbidden(format!("{path}.{key}"), format!("must be {why} to be structural")));
        }
    };
    forbid("type", !s.text("type").is_empty(), "empty");
    let has_additional = s.additional().is_some_and(|a| !matches!(a, Additional::Allowed(false)));
    forbid("additionalProperties", has_additional, "undefined");
    forbid("default", s.get("default").is_some(), "undefined");
    forbid("title", !s.text("title").is_empty(), "empty");
    forbid("description", !s.text("description").is_empty(), "empty");
    for flag in [
        "nullable",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-int-or-string",
    ] {
        forbid(flag, s.flag(flag), "false");
    }
    forbid("x-kubernetes-list-map-keys", s.has_entries("x-kubernetes-list-map-keys"), "empty");
    forbid("x-kubernetes-list-type", s.get("x-kubernetes-list-type").is_some(), "undefined");
    forbid("x-kubernetes-map-type", s.get("x-kubernetes-map-type").is_some(), "undefined");
    forbid("x-kubernetes-validations", s.has_entries("x-kubernetes-validations"), "empty");
    // Rules about metadata in a junctor could restrict it in ways that nobody can tell from the outside.
    if s.property("metadata").is_some() {
        errors.push(forbidden(format!("{path}.properties[metadata]"), "must not be specified in a nested context"));
    }
}

/// Every field that a junctor speaks of must be told in the structure too.
fn complete(v: Raw<'_>, s: Option<Raw<'_>>, s_path: &str, v_path: &str, errors: &mut Vec<FieldError>) {
    let mut branch = |node: Raw<'_>, at: String| complete_nested(node, s, s_path, &at, errors);
    if let Some(not) = v.schema("not") {
        branch(not, format!("{v_path}.not"));
    }
    for junctor in ["allOf", "anyOf", "oneOf"] {
        for (index, node) in v.list(junctor) {
            branch(node, format!("{v_path}.{junctor}[{index}]"));
        }
    }
}

fn complete_nested(v: Raw<'_>, s: Option<Raw<'_>>, s_path: &str, v_path: &str, errors: &mut Vec<FieldError>) {
    if errors.len() >= MAX_FOUND {
        return;
    }
    let Some(s) = s else {
        errors.push(required(s_path.to_owned(), format!("because it is defined in {v_path}")));
        return;
    };
    complete(v, Some(s), s_path, v_path, errors);
    if let Some(items) = v.items() {
        complete_nested(items, s.items(), &format!("{s_path}.items"), &format!("{v_path}.items"), errors);
    }
    for (name, property) in v.schemas("properties") {
        let (s_path, v_path) = (format!("{s_path}.properties[{name}]"), format!("{v_path}.properties[{name}]"));
        complete_nested(property, s.property(name), &s_path, &v_path, errors);
    }
}

fn required(path: String, detail: impl Into<String>) -> FieldError {
    FieldError::new(path, Fault::Required, detail)
}

fn forbidden(path: impl Into<String>, detail: impl Into<String>) -> FieldError {
    FieldError::new(path, Fault::Forbidden, detail)
}

fn invalid(path: String, value: &str, detail: impl Into<String>) -> FieldError {
    FieldError::with_value(path, Fault::Invalid, &value.into(), detail)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[track_caller]
    fn check(schema: Value, expected: &[&str]) {
        let raw = Raw(schema.as_object().expect("an object"));
        let found: Vec<String> = violations(raw, "s").iter().map(ToString::to_string).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn types_must_be_told() {
        check(json!({}), &["s.type: Required value: must not be empty at the root"]);
        check(
            json!({"type": "object", "properties": {"a": {}, "l": {"type": "array", "items": {}}}}),
            &[
                "s.properties[a].type: Required value: must not be empty for specified object fields",
                "s.properties[l].items.type: Required value: must not be empty for specified array items",
            ],
        );
        check(
            json!({"type": "object", "properties": {"l": {"type": "array"}}}),
            &["s.properties[l].items: Required value: must be specified"],
        );
    }

    #[test]
    fn junctors_tell_no_types_except_for_int_or_string() {
        let any_of = json!([{"type": "integer"}, {"type": "string"}]);
        check(
            json!({"type": "object", "properties": {"p": {"x-kubernetes-int-or-string": true, "anyOf": any_of}}}),
            &[],
        );
        check(
            json!({"type": "object", "properties": {"p": {"x-kubernetes-int-or-string": true,
                "allOf": [{"anyOf": any_of}, {"pattern": "^a"}]}}}),
            &[],
        );
        check(
            json!({"type": "object", "properties": {"p": {"type": "string", "oneOf": [{"type": "string"}]}}}),
            &["s.properties[p].oneOf[0].type: Forbidden: must be empty to be structural"],
        );
    }

    #[test]
    fn junctors_speak_only_of_fields_that_are_told() {
        check(
            json!({"type": "object", "anyOf": [{"properties": {"a": {"minimum": 1}}}]}),
            &["s.properties[a]: Required value: because it is defined in s.anyOf[0].properties[a]"],
        );
    }

    #[test]
    fn root_metadata_restricts_names_only() {
        let names = json!({"type": "object", "properties": {"name": {"type": "string", "maxLength": 5}}});
        check(json!({"type": "object", "properties": {"metadata": names}}), &[]);
        check(
            json!({"type": "object", "properties": {"metadata": {"type": "object", "properties":
                {"labels": {"type": "object"}}}}}),
            &["s.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but \
               metadata is implicitly specified"],
        );
    }
}
