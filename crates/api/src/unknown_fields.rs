//! Names what a user wrote and no type of ours knows.
//!
//! The types keep such fields, so a resource written back says what it said before; the CRD's schema
//! tells which fields are known. Comparing the two needs no code of its own for any type.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use kube::Resource;
use serde::Serialize;
use serde_json::Value;

use crate::crd::definitions;

/// Paths of the fields under `spec` that are unknown, such as `spec.kafka.listeners[0].colour`, in
/// alphabetical order. Free-form fields hold nothing unknown.
///
/// An object of a kind that is not ours has none.
pub fn unknown_fields<K>(object: &K) -> Vec<String>
where
    K: Resource<DynamicType = ()> + Serialize,
{
    let mut found = Vec::new();
    let kind = K::kind(&());
    let crd = definitions().iter().find(|crd| crd.spec.names.kind == kind);
    let schema = crd.and_then(|crd| crd.spec.versions.first()?.schema.as_ref()?.open_api_v3_schema.as_ref());
    let spec_schema = schema.and_then(|schema| schema.properties.as_ref()?.get("spec"));
    // An object of ours always serializes: its keys are strings and its numbers finite.
    let written = serde_json::to_value(object).unwrap_or_default();
    if let (Some(schema), Some(spec)) = (spec_schema, written.get("spec")) {
        collect(schema, spec, "spec", &mut found);
    }
    found.sort();
    found
}

fn collect(schema: &JSONSchemaProps, value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let path = format!("{path}.{name}");
                match schema_of_field(schema, name) {
                    Field::Known(schema) => collect(schema, value, &path, found),
                    Field::FreeForm => {}
                    Field::Unknown => found.push(path),
                }
            }
        }
        Value::Array(items) => {
            if let Some(JSONSchemaPropsOrArray::Schema(schema)) = &schema.items {
                for (n, item) in items.iter().enumerate() {
                    collect(schema, item, &format!("{path}[{n}]"), found);
                }
            }
        }
        _ => {}
    }
}

enum Field<'a> {
    Known(&'a JSONSchemaProps),
    FreeForm,
    Unknown,
}

fn schema_of_field<'a>(schema: &'a JSONSchemaProps, name: &str) -> Field<'a> {
    if let Some(properties) = &schema.properties {
        return properties.get(name).map_or(Field::Unknown, Field::Known);
    }
    match &schema.additional_properties {
        Some(JSONSchemaPropsOrBool::Schema(schema)) => Field::Known(schema),
        _ => Field::FreeForm,
    }
}
