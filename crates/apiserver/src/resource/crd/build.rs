//! From an admitted definition to what is served.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{Examined, flag, name_of, newest_first, schema_of, text, version_list};
use crate::object::Object;
use crate::resource::{Column, Origin, Resource, ScalePaths, Version};
use crate::schema::Schema;

const OBJECT_META: &str = "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

const CONVENTIONS: &str = "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md";

/// The resource of a definition that was admitted, and examined for that; nothing if it was not.
///
/// It is served under the names that were accepted, which are not always those that it asks for.
pub fn resource_of(crd: &Value, examined: &Examined) -> Option<Resource> {
    let accepted = !text(crd, &["status", "acceptedNames", "plural"]).is_empty();
    let at = |key| if accepted { ["status", "acceptedNames", key] } else { ["spec", "names", key] };
    let names = |key| text(crd, &at(key)).to_owned();
    let list = |key| {
        let values = crd.at(&at(key)).and_then(Value::as_array).into_iter().flatten();
        values.filter_map(|value| value.as_str().map(str::to_owned)).collect()
    };
    let mut resource = Resource {
        group: text(crd, &["spec", "group"]).to_owned(),
        plural: names("plural"),
        singular: names("singular"),
        kind: names("kind"),
        list_kind: names("listKind"),
        short_names: list("shortNames"),
        categories: list("categories"),
        namespaced: text(crd, &["spec", "scope"]) == "Namespaced",
        versions: Vec::new(),
        origin: Origin::Custom,
    };
    for (index, version) in version_list(crd).into_iter().enumerate() {
        let schema = examined.schema(index)?;
        let version = version_of(&resource, version, schema, recommended(crd, name_of(version)))?;
        resource.versions.push(version);
    }
    resource.versions.sort_by(|a, b| newest_first(&a.name, &b.name));
    let stored = resource.versions.iter().filter(|version| version.storage).count();
    (stored == 1).then_some(resource)
}

/// What to use instead of a version: the newest one that is served and not itself deprecated, if it is newer.
fn recommended<'a>(crd: &'a Value, name: &str) -> Option<&'a str> {
    let versions = version_list(crd).into_iter().filter(|v| flag(v, "served") && !flag(v, "deprecated")).map(name_of);
    versions.min_by(|a, b| newest_first(a, b)).filter(|newest| newest_first(newest, name).is_lt())
}

fn deprecation(resource: &Resource, name: &str, newer: Option<&str>) -> String {
    let Resource { group, kind, .. } = resource;
    let instead = newer.map(|newer| format!("; use {group}/{newer} {kind}")).unwrap_or_default();
    format!("{group}/{name} {kind} is deprecated{instead}")
}

fn version_of(resource: &Resource, version: &Value, schema: &Arc<Schema>, newer: Option<&str>) -> Option<Version> {
    let raw = schema_of(version)?;
    let name = name_of(version).to_owned();
    let warning = version.get("deprecationWarning").and_then(Value::as_str).map(str::to_owned);
    let default_warning = || deprecation(resource, &name, newer);
    let subresource = |key: &str| version.at(&["subresources", key]).filter(|value| !value.is_null());
    Some(Version {
        served: flag(version, "served"),
        storage: flag(version, "storage"),
        deprecation: flag(version, "deprecated").then(|| warning.unwrap_or_else(default_warning)),
        openapi: Arc::new(openapi(resource, &name, raw)),
        schema: schema.clone(),
        columns: columns(version),
        selectable: selectable(version),
        status: subresource("status").is_some(),
        scale: subresource("scale").map(scale_paths),
        name,
    })
}

fn scale_paths(scale: &Value) -> ScalePaths {
    let path = |key: &str| scale.get(key).and_then(Value::as_str).filter(|path| !path.is_empty()).map(str::to_owned);
    ScalePaths {
        spec_replicas: path("specReplicasPath").unwrap_or_default(),
        status_replicas: path("statusReplicasPath").unwrap_or_default(),
        label_selector: path("labelSelectorPath"),
    }
}

fn selectable(version: &Value) -> Vec<String> {
    let fields = version.get("selectableFields").and_then(Value::as_array).into_iter().flatten();
    fields.filter_map(|field| field.get("jsonPath")?.as_str().map(str::to_owned)).collect()
}

fn columns(version: &Value) -> Vec<Column> {
    let column = |column: &Value| {
        let text = |key: &str| column.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let priority = column.get("priority").and_then(Value::as_i64).unwrap_or_default();
        Column {
            name: text("name"),
            ty: text("type"),
            format: text("format"),
            description: match text("description") {
                empty if empty.is_empty() => {
                    format!("Custom resource definition column (in JSONPath format): {}", text("jsonPath"))
                }
                given => given,
            },
            priority: i32::try_from(priority).unwrap_or(i32::MAX),
            json_path: text("jsonPath"),
        }
    };
    let told = version.get("additionalPrinterColumns").and_then(Value::as_array).into_iter().flatten();
    let columns: Vec<Column> = told.map(column).collect();
    if columns.is_empty() { vec![age()] } else { columns }
}

/// The column that a definition without columns gets.
fn age() -> Column {
    Column {
        name: "Age".into(),
        ty: "date".into(),
        format: String::new(),
        description: format!(
            "CreationTimestamp is a timestamp representing the server time when this object was created. It is not \
             guaranteed to be set in happens-before order across separate operations. Clients may not set this value. \
             It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. \
             More info: {CONVENTIONS}#metadata"
        ),
        priority: 0,
        json_path: ".metadata.creationTimestamp".into(),
    }
}

/// The schema as clients read it: with the parts that every object has, and with unions spelt out.
fn openapi(resource: &Resource, version: &str, raw: &Value) -> Value {
    let mut schema = published(raw);
    let Value::Object(root) = &mut schema else { return schema };
    let preserves_only = root.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true));
    let properties = root.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(properties) = properties {
        let text = |description: String| json!({"description": description, "type": "string"});
        properties.insert(
            "apiVersion".into(),
            text(format!(
                "APIVersion defines the versioned schema of this representation of an object. Servers should convert \
                 recognized schemas to the latest internal value, and may reject unrecognized values. More info: \
                 {CONVENTIONS}#resources"
            )),
        );
        properties.insert(
            "kind".into(),
            text(format!(
                "Kind is a string value representing the REST resource this object represents. Servers may infer this \
                 from the endpoint the client submits requests to. Cannot be updated. In CamelCase. More info: \
                 {CONVENTIONS}#types-kinds"
            )),
        );
        properties.insert(
            "metadata".into(),
            json!({
                "description": format!("Standard object's metadata. More info: {CONVENTIONS}#metadata"),
                "allOf": [{"$ref": OBJECT_META}],
            }),
        );
    }
    if !preserves_only {
        root.entry("type").or_insert_with(|| "object".into());
    }
    root.insert(
        "x-kubernetes-group-version-kind".into(),
        json!([{"group": resource.group, "kind": resource.kind, "version": version}]),
    );
    schema
}

/// `x-kubernetes-int-or-string` as a union that every OpenAPI reader understands.
fn published(raw: &Value) -> Value {
    match raw {
        Value::Object(map) => {
            let mut map: Map<String, Value> = map
                .iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(key, value)| {
                    // Values are data, whatever they look like.
                    let data = matches!(key.as_str(), "default" | "enum" | "example");
                    (key.clone(), if data { value.clone() } else { published(value) })
                })
                .collect();
            if map.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)) && !map.contains_key("anyOf") {
                map.insert("anyOf".into(), json!([{"type": "integer"}, {"type": "string"}]));
                map.remove("type");
            }
            Value::Object(map)
        }
        Value::Array(items) => Value::Array(items.iter().map(published).collect()),
        other => other.clone(),
    }
}
