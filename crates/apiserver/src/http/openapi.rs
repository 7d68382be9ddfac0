//! OpenAPI v3: what `kubectl explain`, `kubectl apply` and client generators read.
//!
//! One document per group version. A document is made when it is first asked for, and again when a resource of its
//! group version was replaced; everything else is answered from memory.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::path::GroupVersion;
use crate::resource::builtin::{self, openapi_definitions};
use crate::resource::{Origin, Resource, Version};

const REF: &str = "#/components/schemas/";
const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

/// The documents made so far.
#[derive(Debug, Default)]
pub(super) struct Documents(Mutex<BTreeMap<GroupVersion, Made>>);

#[derive(Debug)]
struct Made {
    /// What the document was made from; held, so that comparing addresses is sound.
    resources: Vec<Arc<Resource>>,
    document: Document,
}

/// One document.
#[derive(Debug, Clone)]
pub(super) struct Document {
    /// JSON text.
    pub(super) text: Bytes,
    /// Changes with the text.
    pub(super) hash: String,
}

/// A group version and its resources.
pub(super) type Served = (GroupVersion, Vec<Arc<Resource>>);

impl Documents {
    /// The document of one group version, if it is among those that are served.
    pub(super) fn get(&self, at: &GroupVersion, served: &[Served], git_version: &str) -> Option<Document> {
        let (_, resources) = served.iter().find(|(known, _)| known == at)?;
        let mut made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = made.get(at)
            && known.resources.len() == resources.len()
            && known.resources.iter().zip(resources).all(|(a, b)| Arc::ptr_eq(a, b))
        {
            return Some(known.document.clone());
        }
        // Those whose definitions have gone are let go: nobody will ask for them again.
        let still: BTreeSet<&GroupVersion> = served.iter().map(|(at, _)| at).collect();
        made.retain(|at, _| still.contains(at));
        let text = Bytes::from(document(at, resources, git_version).to_string());
        let document = Document { hash: hash(&text), text };
        made.insert(at.clone(), Made { resources: resources.clone(), document: document.clone() });
        Some(document)
    }

    /// `GET /openapi/v3`: where each document is. The hash in the address lets clients keep what has not changed.
    pub(super) fn index(&self, served: &[Served], git_version: &str) -> Value {
        let paths: Map<String, Value> = served
            .iter()
            .filter_map(|(at, _)| {
                let path = at.path();
                let hash = self.get(at, served, git_version)?.hash;
                let address = format!("/openapi/v3{path}?hash={hash}");
                Some((path.trim_start_matches('/').to_owned(), json!({"serverRelativeURL": address})))
            })
            .collect();
        json!({"paths": paths})
    }
}

/// A short name for a text, the same in every run of one build.
pub(super) fn hash(text: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    format!("{:016X}", hasher.finish())
}

/// What OpenAPI v2 in protobuf is called.
pub(super) const V2_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// What clients ask for it by. Nothing may be answered under this name: it is none that they could read.
pub(super) const V2_PROTOBUF_ASKED: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";

/// A document of OpenAPI v2 that tells of no kinds.
pub(super) fn empty_v2(git_version: &str) -> Value {
    json!({
        "swagger": "2.0", "info": {"title": "Kubernetes", "version": git_version}, "paths": {}, "definitions": {},
    })
}

/// The same in protobuf: fields 1 (`swagger`) and 2 (`info`, of title and version) of a document.
pub(super) fn empty_v2_protobuf(git_version: &str) -> Vec<u8> {
    let info = [text_field(1, b"Kubernetes"), text_field(2, git_version.as_bytes())].concat();
    [text_field(1, b"2.0"), text_field(2, &info)].concat()
}

/// A field of protobuf that has a length, which is written seven bits at a time, the lowest first.
fn text_field(number: u8, content: &[u8]) -> Vec<u8> {
    let mut field = vec![(number << 3) | 2];
    let mut length = content.len();
    while length > 0x7f {
        field.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    field.push(length as u8);
    field.extend(content);
    field
}

fn document(at: &GroupVersion, resources: &[Arc<Resource>], git_version: &str) -> Value {
    let mut paths = Map::new();
    let mut schemas = Map::new();
    let mut wanted = BTreeSet::new();
    for resource in resources {
        let Some(version) = resource.served(&at.version) else { continue };
        let name = component_name(resource, version);
        let schema = root_schema(at, resource, version);
        collect_refs(&schema, &mut wanted);
        schemas.insert(name.clone(), schema);
        let list = list_schema(at, resource, &name);
        collect_refs(&list, &mut wanted);
        schemas.insert(format!("{name}List"), list);
        add_paths(&mut paths, at, resource, version, &name);
    }
    add_definitions(&mut schemas, wanted);
    json!({
        "openapi": "3.0.0", "info": {"title": "Kubernetes", "version": git_version},
        "paths": paths, "components": {"schemas": schemas},
    })
}

/// Adds the definitions that are referred to, and those that they refer to, and so on.
fn add_definitions(schemas: &mut Map<String, Value>, mut wanted: BTreeSet<String>) {
    let definitions = openapi_definitions();
    while let Some(name) = wanted.pop_first() {
        if schemas.contains_key(&name) {
            continue;
        }
        // A reference that leads nowhere would make clients fail on the whole document.
        let schema = definitions.get(&name).cloned().unwrap_or_else(|| json!({"type": "object"}));
        collect_refs(&schema, &mut wanted);
        schemas.insert(name, schema);
    }
}

fn collect_refs(schema: &Value, wanted: &mut BTreeSet<String>) {
    match schema {
        Value::Object(map) => {
            if let Some(name) = map.get("$ref").and_then(Value::as_str).and_then(|r| r.strip_prefix(REF)) {
                wanted.insert(name.to_owned());
            }
            map.values().for_each(|value| collect_refs(value, wanted));
        }
        Value::Array(list) => list.iter().for_each(|value| collect_refs(value, wanted)),
        _ => {}
    }
}

/// `io.strimzi.kafka.v1.Kafka`; built-in kinds have the names that the original gives them.
fn component_name(resource: &Resource, version: &Version) -> String {
    if let Some(name) = builtin::definition_name(resource) {
        return name.to_owned();
    }
    let reversed: Vec<&str> = resource.group.rsplit('.').collect();
    format!("{}.{}.{}", reversed.join("."), version.name, resource.kind)
}

fn group_version_kind(at: &GroupVersion, kind: &str) -> Value {
    json!({"group": at.group, "version": at.version, "kind": kind})
}

fn root_schema(at: &GroupVersion, resource: &Resource, version: &Version) -> Value {
    let mut schema = Value::clone(&version.openapi);
    if !schema.is_object() {
        schema = json!({"type": "object"});
    }
    if resource.origin == Origin::Custom {
        describe_type(&mut schema);
        schema["properties"]["metadata"] = json!({
            "description": "Standard object's metadata. More info: \
                https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata",
            "allOf": [{"$ref": format!("{REF}{META}.ObjectMeta")}],
        });
    }
    schema["x-kubernetes-group-version-kind"] = json!([group_version_kind(at, &resource.kind)]);
    schema
}

/// `apiVersion` and `kind`, which every object has and definitions seldom describe.
fn describe_type(schema: &mut Value) {
    if !schema.get("properties").is_some_and(Value::is_object) {
        schema["properties"] = json!({});
    }
    schema["properties"]["apiVersion"] = json!({
        "type": "string",
        "description": "APIVersion defines the versioned schema of this representation of an object. Servers should \
            convert recognized schemas to the latest internal value, and may reject unrecognized values. More info: \
            https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources",
    });
    schema["properties"]["kind"] = json!({
        "type": "string",
        "description": "Kind is a string value representing the REST resource this object represents. Servers may \
            infer this from the endpoint the client submits requests to. Cannot be updated. In CamelCase. More info: \
            https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds",
    });
}

fn list_schema(at: &GroupVersion, resource: &Resource, item: &str) -> Value {
    let mut schema = json!({
        "type": "object", "required": ["items"],
        "description": format!("{} is a list of {}", resource.list_kind, resource.kind),
        "properties": {
            "items": {"type": "array", "items": {"$ref": format!("{REF}{item}")}},
            "metadata": {"allOf": [{"$ref": format!("{REF}{META}.ListMeta")}]},
        },
    });
    describe_type(&mut schema);
    schema["x-kubernetes-group-version-kind"] = json!([group_version_kind(at, &resource.list_kind)]);
    schema
}

fn add_paths(paths: &mut Map<String, Value>, at: &GroupVersion, resource: &Resource, version: &Version, name: &str) {
    let verbs = builtin::verbs(resource);
    let gvk = group_version_kind(at, &resource.kind);
    let operation = |action: &str, schema: &str, parameters: &[&str]| operation(action, schema, &gvk, parameters);
    let scope = if resource.namespaced { "/namespaces/{namespace}" } else { "" };
    let collection = format!("{}{scope}/{}", at.path(), resource.plural);

    let write: &[&str] = &["dryRun", "fieldManager", "fieldValidation"];
    let list: &[&str] = &["continue", "fieldSelector", "labelSelector", "limit", "resourceVersion", "watch"];
    let mut on_all = json!({"post": operation("post", name, write)});
    if verbs.contains(&"list") {
        on_all["get"] = operation("list", &format!("{name}List"), list);
        on_all["delete"] = operation("deletecollection", &format!("{META}.Status"), list);
    }
    paths.insert(collection.clone(), on_all);
    if !verbs.contains(&"get") {
        return;
    }
    let patch: &[&str] = &["dryRun", "fieldManager", "fieldValidation", "force"];
    let on_one = json!({
        "get": operation("get", name, &[]),
        "put": operation("put", name, write),
        "patch": operation("patch", name, patch),
        "delete": operation("delete", &format!("{META}.Status"), &["dryRun", "gracePeriodSeconds", "propagationPolicy"]),
    });
    paths.insert(format!("{collection}/{{name}}"), on_one);
    if version.status {
        let on_status = json!({
            "get": operation("get", name, &[]),
            "put": operation("put", name, write),
            "patch": operation("patch", name, patch),
        });
        paths.insert(format!("{collection}/{{name}}/status"), on_status);
    }
}

fn operation(action: &str, schema: &str, gvk: &Value, parameters: &[&str]) -> Value {
    let parameters: Vec<Value> = parameters
        .iter()
        .map(|name| json!({"name": name, "in": "query", "schema": {"type": parameter_type(name), "uniqueItems": true}}))
        .collect();
    // Only what an object operation answers is spelt out; `Status` is known to every client.
    let answer = if schema.ends_with(".Status") {
        json!({"description": "OK"})
    } else {
        json!({"description": "OK", "content": {"application/json": {"schema": {"$ref": format!("{REF}{schema}")}}}})
    };
    json!({
        "parameters": parameters, "responses": {"200": answer},
        "x-kubernetes-action": action, "x-kubernetes-group-version-kind": gvk,
    })
}

fn parameter_type(name: &str) -> &'static str {
    match name {
        "limit" | "gracePeriodSeconds" => "integer",
        "force" | "watch" => "boolean",
        _ => "string",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::fixture::thing;

    fn made() -> Value {
        document(&GroupVersion::new("example.io", "v1"), &[Arc::new(thing())], "v1.35.0")
    }

    #[test]
    fn kubectl_finds_the_kind_the_patch_parameter_and_the_fields() {
        let document = made();
        let path = &document["paths"]["/apis/example.io/v1/namespaces/{namespace}/things/{name}"];
        let gvk = json!({"group": "example.io", "version": "v1", "kind": "Thing"});
        assert_eq!(path["patch"]["x-kubernetes-group-version-kind"], gvk);
        let parameters = path["patch"]["parameters"].as_array().expect("parameters");
        assert!(parameters.iter().any(|p| p["name"] == "fieldValidation" && p["in"] == "query"));
        let schema = &document["components"]["schemas"]["io.example.v1.Thing"];
        assert_eq!(schema["x-kubernetes-group-version-kind"], json!([gvk]));
        assert_eq!(schema["properties"]["spec"]["properties"]["mode"]["type"], "string");
        assert!(schema["properties"]["apiVersion"].is_object(), "every kind has one");
    }

    #[test]
    fn no_reference_leads_nowhere() {
        let document = made();
        let mut wanted = BTreeSet::new();
        collect_refs(&document, &mut wanted);
        assert!(!wanted.is_empty());
        for name in wanted {
            assert!(document["components"]["schemas"].get(&name).is_some(), "{name}");
        }
    }

    #[test]
    fn a_document_is_made_again_only_for_a_replaced_resource() {
        let documents = Documents::default();
        let at = GroupVersion::new("example.io", "v1");
        let get = |resource: &Arc<Resource>| {
            let served = [(at.clone(), vec![Arc::clone(resource)])];
            documents.get(&at, &served, "v1.35.0").expect("it is served")
        };
        let resource = Arc::new(thing());
        let (first, again) = (get(&resource), get(&resource));
        assert_eq!(first.text.as_ptr(), again.text.as_ptr(), "the same memory");
        let mut changed = thing();
        changed.kind = "Other".into();
        assert_ne!(get(&Arc::new(changed)).hash, first.hash);
    }

    #[test]
    fn documents_of_what_is_no_longer_served_are_forgotten() {
        let documents = Documents::default();
        let resource = Arc::new(thing());
        let group = |n: usize| (GroupVersion::new(&format!("g{n}.io"), "v1"), vec![Arc::clone(&resource)]);
        for n in 0..100 {
            let served = [group(n), group(n + 1)];
            assert!(documents.get(&served[0].0, &served, "v1.35.0").is_some());
            assert!(documents.get(&group(n + 2).0, &served, "v1.35.0").is_none());
            assert!(documents.0.lock().expect("a lock").len() <= served.len());
        }
        assert_eq!(Arc::strong_count(&resource), 1 + documents.0.lock().expect("a lock").len());
    }
}
