//! Schemas of the built-in kinds: k8s-openapi's types, plus the overlay of what they do not say.
//!
//! Built once. Two forms come out of it: [`Schema`] trees for the server's own use, in which every definition is one
//! shared node, and OpenAPI definitions for clients, in which references stay references.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::kinds::{KINDS, Kind, SCALE};
use super::overlay;
use crate::schema::{Checks, ListKind, PatchStrategy, Schema, Type};

const INT_OR_STRING: &str = "io.k8s.apimachinery.pkg.util.intstr.IntOrString";
const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";
const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";
const REFERENCE: &str = "#/components/schemas/";

/// Free-form objects, which k8s-openapi describes as objects without fields.
const FREE_FORM: &[&str] = &[
    "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1",
    "io.k8s.apimachinery.pkg.runtime.RawExtension",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrArray",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrBool",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrStringArray",
];

static DEFINITIONS: LazyLock<BTreeMap<String, Value>> = LazyLock::new(definitions);
static SCHEMAS: LazyLock<BTreeMap<&'static str, Arc<Schema>>> = LazyLock::new(|| {
    let mut reading = Reading { definitions: &DEFINITIONS, done: BTreeMap::new(), open: Vec::new() };
    described().map(|kind| (kind.definition, reading.definition(kind.definition))).collect()
});

/// `components.schemas` of the built-in kinds for OpenAPI v3: kinds, lists of them, and all they refer to.
pub fn openapi_definitions() -> BTreeMap<String, Value> {
    DEFINITIONS.clone()
}

/// One of [`openapi_definitions`].
pub(crate) fn openapi(definition: &str) -> Value {
    DEFINITIONS.get(definition).cloned().unwrap_or_default()
}

/// The schema of a kind.
pub(crate) fn schema(definition: &str) -> Arc<Schema> {
    SCHEMAS.get(definition).cloned().unwrap_or_default()
}

/// All kinds that have a schema: those that are served, and the one that they are scaled by.
fn described() -> impl Iterator<Item = &'static Kind> {
    KINDS.iter().chain([&SCALE])
}

fn definitions() -> BTreeMap<String, Value> {
    let mut settings = SchemaSettings::openapi3();
    settings.transforms.clear();
    let mut generator = settings.into_generator();
    for kind in described() {
        (kind.describe)(&mut generator);
    }
    let _ = generator.subschema_for::<k8s_openapi::apimachinery::pkg::apis::meta::v1::ListMeta>();
    let mut all: BTreeMap<String, Value> = generator.take_definitions(false).into_iter().collect();
    for (name, definition) in &mut all {
        decorate(name, definition);
    }
    for kind in described() {
        if let Some(definition) = all.get_mut(kind.definition) {
            // k8s-openapi cannot build an object without metadata, the API takes one without.
            drop_required(definition, "metadata");
            definition["x-kubernetes-group-version-kind"] = gvk(kind.group, kind.kind);
        }
        if kind.verbs.contains(&"list") {
            all.insert(format!("{}List", kind.definition), list_definition(kind.group, kind.kind, kind.definition));
        }
    }
    all
}

fn gvk(group: &str, kind: &str) -> Value {
    json!([{"group": group, "kind": kind, "version": "v1"}])
}

fn drop_required(definition: &mut Value, field: &str) {
    let Some(required) = definition.get_mut("required").and_then(Value::as_array_mut) else { return };
    required.retain(|name| name != field);
    if required.is_empty()
        && let Some(map) = definition.as_object_mut()
    {
        map.remove("required");
    }
}

fn list_definition(group: &str, kind: &str, definition: &str) -> Value {
    let reference = |name: &str| json!([{"$ref": format!("{REFERENCE}{name}")}]);
    json!({
        "description": format!("{kind}List is a list of {kind} objects."),
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string", "description": "APIVersion defines the versioned schema of this representation of an object."},
            "kind": {"type": "string", "description": "Kind is a string value representing the REST resource this object represents."},
            "metadata": {"description": "Standard list metadata.", "default": {}, "allOf": reference(LIST_META)},
            "items": {"description": "The objects.", "type": "array", "items": {"default": {}, "allOf": reference(definition)}},
        },
        "x-kubernetes-group-version-kind": gvk(group, &format!("{kind}List")),
    })
}

/// Adds to one definition what the overlay knows about it.
fn decorate(name: &str, definition: &mut Value) {
    // These two are told apart by clients (`kubectl explain`, client-side validation) by their shape.
    match name {
        INT_OR_STRING => reshape(definition, "int-or-string", &["integer", "string"]),
        QUANTITY => reshape(definition, "", &["string", "number"]),
        _ => {}
    }
    if overlay::is_atomic_type(name) {
        definition["x-kubernetes-map-type"] = "atomic".into();
    }
    let Some(properties) = definition.get_mut("properties").and_then(Value::as_object_mut) else { return };
    for (field, property) in properties {
        if let Some(property) = property.as_object_mut() {
            wrap_reference(property);
            extend(property, overlay::row(name, field));
        }
    }
}

fn reshape(definition: &mut Value, format: &str, types: &[&str]) {
    let Some(map) = definition.as_object_mut() else { return };
    map.remove("x-kubernetes-int-or-string");
    map.insert("oneOf".into(), types.iter().map(|ty| json!({"type": ty})).collect());
    if !format.is_empty() {
        map.insert("format".into(), format.into());
    }
}

/// OpenAPI 3.0 ignores everything beside a `$ref`; so the reference goes into an `allOf`.
fn wrap_reference(property: &mut Map<String, Value>) {
    if property.len() > 1
        && let Some(reference) = property.remove("$ref")
    {
        property.insert("allOf".into(), json!([{"$ref": reference}]));
    }
}

fn extend(property: &mut Map<String, Value>, row: Option<&overlay::Row>) {
    let is_list = property.get("type").is_some_and(|ty| ty == "array");
    if is_list {
        let kind = match row {
            Some(row) if row.set => "set",
            Some(row) if !row.keys.is_empty() => "map",
            _ => "atomic",
        };
        property.insert("x-kubernetes-list-type".into(), kind.into());
    }
    let Some(row) = row else { return };
    if !row.keys.is_empty() {
        property.insert("x-kubernetes-list-map-keys".into(), json!(row.keys));
    }
    if row.atomic_map || row.granular {
        let kind = if row.granular { "granular" } else { "atomic" };
        property.insert("x-kubernetes-map-type".into(), kind.into());
    }
    for (extension, text) in
        [("x-kubernetes-patch-strategy", row.patch), ("x-kubernetes-patch-merge-key", row.patch_key)]
    {
        if !text.is_empty() {
            property.insert(extension.into(), text.into());
        }
    }
    if let Some(default) = row.default {
        property.insert("default".into(), default.into());
    }
}

/// Turns decorated definitions into shared schema nodes.
struct Reading<'a> {
    definitions: &'a BTreeMap<String, Value>,
    done: BTreeMap<String, Arc<Schema>>,
    /// Definitions being read, outermost first: meeting one of them again is recursion.
    open: Vec<String>,
}

impl Reading<'_> {
    fn definition(&mut self, name: &str) -> Arc<Schema> {
        if let Some(done) = self.done.get(name) {
            return Arc::clone(done);
        }
        // A type inside itself (only JSON schemas in custom resource definitions): anything goes from there on.
        if self.open.iter().any(|open| open == name) || FREE_FORM.contains(&name) {
            return Arc::new(Schema { preserve_unknown: true, ..Schema::default() });
        }
        self.open.push(name.to_owned());
        let mut schema = self.node(self.definitions.get(name).unwrap_or(&Value::Null));
        if name == INT_OR_STRING || name == QUANTITY {
            schema = Schema { ty: Type::IntOrString, ..Schema::default() };
        }
        schema.atomic_map = overlay::is_atomic_type(name);
        self.open.pop();
        let shared = Arc::new(schema);
        self.done.insert(name.to_owned(), Arc::clone(&shared));
        shared
    }

    /// A value's schema, which may be a reference with or without something beside it.
    fn value(&mut self, value: &Value) -> Arc<Schema> {
        let inner = value.get("allOf").and_then(|all| all.get(0)).unwrap_or(value);
        let Some(name) = inner.get("$ref").and_then(Value::as_str).and_then(|r| r.strip_prefix(REFERENCE)) else {
            return Arc::new(self.node(value));
        };
        let shared = self.definition(name);
        let mut own = Schema::clone(&shared);
        merge_extensions(&mut own, value);
        // Nodes that differ in nothing stay one node.
        if own == *shared { shared } else { Arc::new(own) }
    }

    fn node(&mut self, value: &Value) -> Schema {
        let mut schema = Schema {
            ty: match value.get("type").and_then(Value::as_str) {
                Some("object") => Type::Object,
                Some("array") => Type::Array,
                Some("string") => Type::String,
                Some("integer") => Type::Integer,
                Some("number") => Type::Number,
                Some("boolean") => Type::Boolean,
                _ => Type::Any,
            },
            checks: Checks {
                format: value.get("format").and_then(Value::as_str).map(str::to_owned),
                ..Checks::default()
            },
            ..Schema::default()
        };
        if let Some(properties) = value.get("properties").and_then(Value::as_object) {
            schema.properties = properties.iter().map(|(name, field)| (name.clone(), self.value(field))).collect();
        }
        schema.additional = value.get("additionalProperties").map(|field| self.value(field));
        schema.items = value.get("items").map(|field| self.value(field));
        schema.preserve_unknown = schema.ty == Type::Any;
        merge_extensions(&mut schema, value);
        schema
    }
}

/// An item without its key has the key that a fresh structure has: it is for validation to say that this is none.
fn give_keys_their_zero(item: &mut Schema, keys: &[String]) {
    for key in keys {
        let Some(property) = item.properties.get_mut(key).map(Arc::make_mut) else { continue };
        let zero = match property.ty {
            Type::String => Value::from(""),
            Type::Integer => Value::from(0),
            _ => continue,
        };
        property.default.get_or_insert(zero);
    }
}

fn merge_extensions(schema: &mut Schema, value: &Value) {
    let text = |extension: &str| value.get(extension).and_then(Value::as_str);
    match text("x-kubernetes-list-type") {
        Some("set") => schema.list = ListKind::Set,
        Some("map") => {
            let keys = value.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
            let keys = keys.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
            schema.list = ListKind::Map(keys);
        }
        _ => {}
    }
    if let (ListKind::Map(keys), Some(items)) = (&schema.list, &mut schema.items) {
        give_keys_their_zero(Arc::make_mut(items), keys);
    }
    match text("x-kubernetes-map-type") {
        Some("atomic") => schema.atomic_map = true,
        Some("granular") => schema.atomic_map = false,
        _ => {}
    }
    let strategies = text("x-kubernetes-patch-strategy").unwrap_or_default();
    schema.patch = PatchStrategy {
        merge: strategies.split(',').any(|s| s == "merge"),
        key: text("x-kubernetes-patch-merge-key").map(str::to_owned),
        retain_keys: strategies.split(',').any(|s| s == "retainKeys"),
    };
    if schema.default.is_none() {
        schema.default = value.get("default").cloned();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(definition: &str, path: &[&str]) -> Arc<Schema> {
        path.iter().fold(schema(definition), |node, step| match *step {
            "[]" => Arc::clone(node.items.as_ref().expect("a list")),
            "{}" => Arc::clone(node.additional.as_ref().expect("a map")),
            field => Arc::clone(node.properties.get(field).unwrap_or_else(|| panic!("no field {field}"))),
        })
    }

    #[test]
    fn every_kind_has_a_schema_with_metadata() {
        for kind in KINDS {
            let schema = schema(kind.definition);
            assert_eq!(schema.ty, Type::Object, "{}", kind.definition);
            assert!(schema.properties.contains_key("metadata"), "{}", kind.definition);
        }
    }

    #[test]
    fn every_overlay_row_is_about_a_field_that_exists() {
        for row in overlay::ROWS {
            let field = openapi(&format!("io.k8s.{}", row.ty));
            assert!(field["properties"].get(row.field).is_some(), "{}.{}", row.ty, row.field);
        }
        for ty in overlay::ATOMIC_TYPES {
            assert!(openapi(&format!("io.k8s.{ty}")).is_object(), "{ty}");
        }
    }

    #[test]
    fn container_ports_are_told_apart_by_two_keys_but_patched_by_one() {
        let ports = at("io.k8s.api.core.v1.Pod", &["spec", "containers", "[]", "ports"]);
        assert_eq!(ports.list, ListKind::Map(vec!["containerPort".into(), "protocol".into()]));
        assert_eq!(ports.patch.key.as_deref(), Some("containerPort"));
        assert!(ports.patch.merge && !ports.patch.retain_keys);
        let protocol = at("io.k8s.api.core.v1.Pod", &["spec", "containers", "[]", "ports", "[]", "protocol"]);
        assert_eq!(protocol.default, Some("TCP".into()));
    }

    #[test]
    fn unions_retain_keys_and_selectors_are_one_value() {
        assert!(at("io.k8s.api.core.v1.Pod", &["spec", "volumes"]).patch.retain_keys);
        assert!(at("io.k8s.api.apps.v1.Deployment", &["spec", "strategy"]).patch.retain_keys);
        assert!(at("io.k8s.api.apps.v1.Deployment", &["spec", "selector"]).atomic_map);
        // The type is atomic, this one field of it is not.
        assert!(!at("io.k8s.api.core.v1.PersistentVolume", &["spec", "claimRef"]).atomic_map);
    }

    #[test]
    fn a_schema_inside_itself_takes_anything() {
        let version = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition";
        let inner = ["spec", "versions", "[]", "schema", "openAPIV3Schema", "properties", "{}"];
        assert!(at(version, &inner).preserve_unknown);
        assert!(!at(version, &inner[..5]).preserve_unknown);
    }

    #[test]
    fn quantities_and_ports_take_numbers_and_text() {
        let limits = at("io.k8s.api.core.v1.Pod", &["spec", "containers", "[]", "resources", "limits", "{}"]);
        assert_eq!(limits.ty, Type::IntOrString);
        assert_eq!(openapi(QUANTITY)["oneOf"], json!([{"type": "string"}, {"type": "number"}]));
    }

    #[test]
    fn all_references_lead_somewhere() {
        fn check(value: &Value, all: &BTreeMap<String, Value>) {
            match value {
                Value::Object(map) => {
                    if let Some(Value::String(reference)) = map.get("$ref") {
                        let name = reference.strip_prefix(REFERENCE).expect("a local reference");
                        assert!(all.contains_key(name), "{name}");
                        assert_eq!(map.len(), 1, "nothing stands beside a reference");
                    }
                    map.values().for_each(|v| check(v, all));
                }
                Value::Array(items) => items.iter().for_each(|v| check(v, all)),
                _ => {}
            }
        }
        let all = openapi_definitions();
        all.values().for_each(|v| check(v, &all));
        assert!(all.contains_key("io.k8s.api.core.v1.PodList"));
    }
}
