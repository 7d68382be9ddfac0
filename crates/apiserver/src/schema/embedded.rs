//! Resources inside of resources: they must say what they are.

use serde_json::{Value, json};

use crate::names::{NameRule, validate_metadata};
use crate::object::Object;
use crate::refusal::{Fault, FieldError, Findings};
use crate::resource::builtin::decode::check_metadata;
use crate::schema::Schema;
use crate::schema::path::Path;

/// What is wrong with the embedded resources in a value. The value itself counts as one only if its schema says so.
pub(crate) fn check(schema: &Schema, value: &Value, path: &Path<'_>, errors: &mut Findings<FieldError>) {
    match value {
        Value::Object(map) => {
            if schema.embedded_resource {
                identity(value, path, errors);
            }
            for (name, value) in map {
                if let Some(property) = schema.properties.get(name) {
                    check(property, value, &path.field(name), errors);
                } else if let Some(additional) = &schema.additional {
                    check(additional, value, &path.key(name), errors);
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = &schema.items {
                for (index, item) in items.iter().enumerate() {
                    check(schema, item, &path.index(index), errors);
                }
            }
        }
        _ => {}
    }
}

fn identity(resource: &Value, path: &Path<'_>, errors: &mut Findings<FieldError>) {
    for name in ["apiVersion", "kind"] {
        let at = || path.field(name).bracketed();
        match resource.get(name) {
            None => errors.tell(|| FieldError::new(at(), Fault::Required, "")),
            Some(Value::String(text)) => {
                let shown = Value::from(text.as_str());
                if text.is_empty() {
                    errors.tell(|| FieldError::with_value(at(), Fault::Invalid, &shown, "must not be empty"));
                } else if name == "apiVersion" && text.matches('/').count() > 1 {
                    let why = format!("unexpected GroupVersion string: {text}");
                    errors.tell(|| FieldError::with_value(at(), Fault::Invalid, &shown, why));
                } else if name == "kind" {
                    let complaints = NameRule::Label1035.complaints(&text.to_lowercase());
                    if !complaints.is_empty() {
                        let why = format!("may have mixed case, but should otherwise match: {}", complaints.join(","));
                        errors.tell(|| FieldError::with_value(at(), Fault::Invalid, &shown, why));
                    }
                }
            }
            Some(other) => errors.tell(|| FieldError::with_value(at(), Fault::Invalid, other, "must be a string")),
        }
    }
    match resource.get("metadata") {
        None | Some(Value::Null) => {}
        Some(Value::Object(metadata)) => {
            // A body with such metadata was refused when it was read; what was applied is only looked at here.
            let given = Value::Object(metadata.clone());
            if let Err(why) = check_metadata(&given) {
                let at = || path.field("metadata").bracketed();
                errors.tell(|| FieldError::with_value(at(), Fault::Invalid, &given, why));
                return;
            }
            let mut metadata = metadata.clone();
            // It need not have a name, only a good one.
            metadata.entry("name").or_insert_with(|| "fakename".into());
            let object = json!({ "metadata": metadata });
            let namespaced = !object.namespace().is_empty();
            let found = validate_metadata(&object, namespaced, NameRule::PathSegment, None);
            for error in found {
                let field = path.field(&error.field).bracketed();
                errors.tell(|| FieldError { field, ..error });
            }
        }
        Some(metadata) => {
            let at = || path.field("metadata").bracketed();
            errors.tell(|| FieldError::with_value(at(), Fault::Invalid, metadata, "must be an object"));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn embedded_resources_say_what_they_are() {
        let schema = Schema::parse(
            &json!({"type": "object", "properties": {"t": {"type": "object",
                "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}}}),
            "s",
        )
        .expect("valid");
        let mut errors = Findings::default();
        check(&schema, &json!({"t": {"apiVersion": "a/b/c"}}), &Path::root(""), &mut errors);
        let texts: Vec<String> = errors.told().iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            ["t.apiVersion: Invalid value: \"a/b/c\": unexpected GroupVersion string: a/b/c", "t.kind: Required value"]
        );
        let mut errors = Findings::default();
        let pod = json!({"t": {"apiVersion": "v1", "kind": "Po_d", "metadata": {"labels": {"a b": "c"}}}});
        check(&schema, &pod, &Path::root(""), &mut errors);
        let fields: Vec<&str> = errors.told().iter().map(|error| error.field.as_str()).collect();
        assert_eq!(fields, ["t.kind", "t.metadata.labels"]);
        let mut errors = Findings::default();
        let pod = json!({"t": {"apiVersion": "v1", "kind": "Pod", "metadata": {"generation": 1.5}}});
        check(&schema, &pod, &Path::root(""), &mut errors);
        assert_eq!(
            errors.told()[0].to_string(),
            "t.metadata: Invalid value: {\"generation\":1.5}: json: cannot unmarshal number 1.5 into Go struct field \
             ObjectMeta.generation of type int64"
        );
    }
}
