//! The metadata of custom objects, and of objects embedded in them: read into the structure that all kinds share, and
//! written out again, as the original does before it looks at anything else.

use serde_json::{Map, Value};

use super::builtin::{decode::check_metadata, shape_metadata};
use crate::refusal::{Fault, FieldError};
use crate::schema::Schema;
use crate::schema::path::Path;

/// Says what does not fit that structure.
pub(crate) fn check(schema: &Schema, object: &Value) -> Result<(), String> {
    check_metadata(object.get("metadata").unwrap_or(&Value::Null))?;
    check_embedded(schema, object, &Path::root(""))
}

fn check_embedded(schema: &Schema, value: &Value, path: &Path<'_>) -> Result<(), String> {
    let wrong = |name: &str, value: &Value, why: String| {
        Err(FieldError::with_value(path.field(name).bracketed(), Fault::Invalid, value, why).to_string())
    };
    match value {
        Value::Object(map) => map.iter().try_for_each(|(name, value)| {
            match name.as_str() {
                "apiVersion" | "kind" if schema.embedded_resource && !value.is_string() => {
                    return wrong(name, value, "must be a string".to_owned());
                }
                "metadata" if schema.embedded_resource => {
                    check_metadata(value).or_else(|why| wrong(name, value, why))?;
                }
                _ => {}
            }
            match (schema.properties.get(name), &schema.additional) {
                (Some(property), _) => check_embedded(property, value, &path.field(name)),
                (None, Some(additional)) => check_embedded(additional, value, &path.key(name)),
                (None, None) => Ok(()),
            }
        }),
        Value::Array(items) => schema.items.iter().try_for_each(|schema| {
            items.iter().enumerate().try_for_each(|(n, item)| check_embedded(schema, item, &path.index(n)))
        }),
        _ => Ok(()),
    }
}

/// Brings all metadata into its canonical form.
pub(crate) fn canonical(schema: &Schema, object: &mut Value) {
    shape(schema, object, true);
}

fn shape(schema: &Schema, value: &mut Value, is_resource: bool) {
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                if is_resource && name == "metadata" {
                    if value.is_null() {
                        *value = Value::Object(Map::new());
                    }
                    shape_metadata(value);
                }
                if let Some(child) = schema.properties.get(name).or(schema.additional.as_ref()) {
                    shape(child, value, child.embedded_resource);
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = &schema.items {
                items.iter_mut().for_each(|item| shape(schema, item, schema.embedded_resource));
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Schema {
        let pod = json!({"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true});
        let schema = json!({"type": "object", "properties": {
            "pod": pod, "pods": {"type": "array", "items": pod}, "more": {"type": "object", "additionalProperties": pod}}});
        Schema::parse(&schema, "s").expect("a sound schema")
    }

    #[test]
    fn embedded_objects_are_read_as_objects() {
        let number = "json: cannot unmarshal number into Go struct field ObjectMeta";
        for (object, why) in [
            (json!({"metadata": {"name": 5}}), format!("{number}.name of type string")),
            (json!({"pod": {"kind": 5}}), "pod.kind: Invalid value: 5: must be a string".to_owned()),
            (
                json!({"pods": [{}, {"metadata": {"labels": {"a": 1}}}]}),
                format!("pods[1].metadata: Invalid value: {{\"labels\":{{\"a\":1}}}}: {number}.labels of type string"),
            ),
            (
                json!({"more": {"x": {"metadata": 5}}}),
                "more[x].metadata: Invalid value: 5: json: cannot unmarshal number into Go value of type v1.ObjectMeta"
                    .to_owned(),
            ),
        ] {
            assert_eq!(check(&schema(), &object), Err(why), "{object}");
        }
        let fine =
            json!({"metadata": null, "pod": {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"a": null}}}});
        assert_eq!(check(&schema(), &fine), Ok(()));
    }

    #[test]
    fn metadata_have_one_form_wherever_they_are() {
        let meta = json!({"labels": {"a": null}, "annotations": {}, "creationTimestamp": null});
        let mut object = json!({"metadata": meta, "pods": [{"metadata": meta}], "other": {"metadata": meta}});
        canonical(&schema(), &mut object);
        let shaped = json!({"labels": {"a": ""}});
        assert_eq!(object, json!({"metadata": shaped, "pods": [{"metadata": shaped}], "other": {"metadata": meta}}));
        let mut object = json!({"pod": {"metadata": null}, "other": {"metadata": null}});
        canonical(&schema(), &mut object);
        assert_eq!(object, json!({"pod": {"metadata": {}}, "other": {"metadata": null}}));
    }
}
