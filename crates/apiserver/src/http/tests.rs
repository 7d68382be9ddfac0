//! The whole way from a request to an answer, without a socket.

use std::time::Duration;

use axum::body::BodyDataStream;
use futures::{StreamExt, TryStreamExt};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH, LOCATION};
use http::{HeaderMap, StatusCode};
use http_body_util::BodyExt;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::runtime::{WatchStreamExt, watcher};
use serde_json::{Value, json};
use tower::ServiceExt;

use super::moment::Simulated;
use super::*;

mod watches;

pub(super) const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

pub(super) fn server() -> Arc<Shared> {
    let start: Timestamp = "2026-01-01T00:00:00Z".parse().expect("a time");
    Shared::new(Options { moments: Box::new(Simulated::new(start, 1)), ..Options::default() })
}

pub(super) async fn send(
    shared: &Arc<Shared>,
    request: http::request::Builder,
    body: impl Into<Body>,
) -> Response<Body> {
    let request = request.body(body.into()).expect("a request");
    router(Arc::clone(shared)).oneshot(request).await.expect("the router answers everything")
}

pub(super) async fn taken(response: Response<Body>) -> (StatusCode, HeaderMap, String) {
    let (head, body) = response.into_parts();
    let bytes = body.collect().await.expect("a body").to_bytes();
    (head.status, head.headers, String::from_utf8(bytes.to_vec()).expect("text"))
}

pub(super) async fn get(shared: &Arc<Shared>, path: &str) -> (StatusCode, Value) {
    let (status, _, body) = taken(send(shared, Request::get(path), "").await).await;
    (status, serde_json::from_str(&body).unwrap_or(Value::String(body)))
}

pub(super) async fn create(shared: &Arc<Shared>, name: &str) -> Value {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"k": "v"}});
    let (status, _, body) = taken(send(shared, Request::post(CONFIG_MAPS), object.to_string()).await).await;
    assert_eq!(status, 201, "{body}");
    serde_json::from_str(&body).expect("JSON")
}

/// The lines of a watch, one event each.
pub(super) struct Lines {
    pub(super) chunks: BodyDataStream,
    rest: Vec<u8>,
}

impl Lines {
    pub(super) async fn open(shared: &Arc<Shared>, query: &str) -> Self {
        Self::open_as(shared, query, "application/json").await
    }

    pub(super) async fn open_as(shared: &Arc<Shared>, query: &str, accept: &str) -> Self {
        let request = Request::get(format!("{CONFIG_MAPS}?watch=true{query}")).header(ACCEPT, accept);
        let response = send(shared, request, "").await;
        assert_eq!(response.status(), 200);
        Self { chunks: response.into_body().into_data_stream(), rest: Vec::new() }
    }

    pub(super) async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).expect("each line is JSON"));
            }
            self.rest.extend(self.chunks.next().await?.expect("a chunk"));
        }
    }

    pub(super) async fn types(&mut self, count: usize) -> Vec<String> {
        let mut types = Vec::new();
        for _ in 0..count {
            let event = self.next().await.expect("an event");
            types.push(event["type"].as_str().expect("a type").to_owned());
        }
        types
    }
}

#[tokio::test]
async fn a_large_collection_is_deleted_in_pieces_and_to_the_last() {
    let shared = server();
    for n in 0..600 {
        create(&shared, &format!("m{n}")).await;
    }
    let (status, _, body) = taken(send(&shared, Request::delete(CONFIG_MAPS), "").await).await;
    assert_eq!(status, 200, "{body}");
    let deleted: Value = serde_json::from_str(&body).expect("JSON");
    assert_eq!(deleted["items"].as_array().map(Vec::len), Some(600));
    assert_eq!(get(&shared, CONFIG_MAPS).await.1["items"], json!([]));
}

/// Defines widgets and makes so many of them; the first two are held by a finalizer.
async fn widgets(shared: &Arc<Shared>, count: usize) {
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": schema});
    let spec = json!({"group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
                      "versions": [version]});
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                            "metadata": {"name": "widgets.example.com"}, "spec": spec});
    let (status, _, body) = taken(send(shared, Request::post(DEFINITIONS), definition.to_string()).await).await;
    assert_eq!(status, 201, "{body}");
    for n in 0..count {
        let finalizers = if n < 2 { json!(["example.com/hold"]) } else { json!([]) };
        let metadata = json!({"name": format!("w{n:05}"), "finalizers": finalizers});
        let widget = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata});
        let (status, _, body) = taken(send(shared, Request::post(WIDGETS), widget.to_string()).await).await;
        assert_eq!(status, 201, "{body}");
    }
}

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";

#[tokio::test]
async fn the_instances_of_a_definition_are_deleted_in_pieces_and_to_the_last() {
    for path in [DEFINITIONS.to_owned(), format!("{DEFINITIONS}/widgets.example.com")] {
        let shared = server();
        widgets(&shared, 600).await;
        let (status, _, body) = taken(send(&shared, Request::delete(&path), "").await).await;
        assert_eq!(status, 200, "{body}");
        // When it is answered, only what is held is left.
        let (_, left) = get(&shared, WIDGETS).await;
        let names: Vec<_> = left["items"].as_array().into_iter().flatten().map(|w| &w["metadata"]["name"]).collect();
        assert_eq!(names, ["w00000", "w00001"]);
        for name in ["w00000", "w00001"] {
            let free = Request::patch(format!("{WIDGETS}/{name}")).header(CONTENT_TYPE, "application/merge-patch+json");
            let (status, ..) = taken(send(&shared, free, r#"{"metadata":{"finalizers":null}}"#).await).await;
            assert_eq!(status, 200);
        }
        assert_eq!(get(&shared, &format!("{DEFINITIONS}/widgets.example.com")).await.0, 404, "gone with the last");
    }
}

#[tokio::test(start_paused = true)]
async fn a_kube_client_works_over_the_router() {
    let client = kube::Client::new(router(server()), "default");
    let maps: kube::Api<ConfigMap> = kube::Api::default_namespaced(client);
    let made: ConfigMap =
        serde_json::from_value(json!({"metadata": {"name": "a"}, "data": {"k": "v"}})).expect("a map");
    maps.create(&PostParams::default(), &made).await.expect("created");
    let patch = Patch::Merge(json!({"data": {"k": "w"}}));
    let patched = maps.patch("a", &PatchParams::default(), &patch).await.expect("patched");
    assert_eq!(patched.data.expect("data")["k"], "w");
    let applied = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}, "data": {"x": "y"}});
    maps.patch("b", &PatchParams::apply("me"), &Patch::Apply(applied)).await.expect("applied");
    assert_eq!(maps.list(&ListParams::default()).await.expect("listed").items.len(), 2);
    assert!(maps.delete("a", &DeleteParams::default()).await.expect("deleted").is_right(), "gone at once");
    let missing = maps.get("a").await.expect_err("it is gone");
    assert!(matches!(missing, kube::Error::Api(status) if status.is_not_found()));
}

#[tokio::test(start_paused = true)]
async fn openapi_v2_is_served_and_tells_of_no_kinds() {
    let shared = server();
    let (status, document) = get(&shared, "/openapi/v2").await;
    assert_eq!((status, &document["swagger"]), (StatusCode::OK, &json!("2.0")));
    assert_eq!(document["definitions"], json!({}));
    // The name that kubectl asks by is none that it can read in an answer.
    let asked = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
    let response = send(&shared, Request::get("/openapi/v2").header("accept", asked), "").await;
    assert_eq!(response.status(), StatusCode::OK);
    let answered = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
    assert_eq!(response.headers()["content-type"], answered);
    let body = axum::body::to_bytes(response.into_body(), 1000).await.unwrap();
    let version = shared.version().as_str();
    // swagger: "2.0", info: {title: "Kubernetes", version}
    let head =
        [&b"\x0a\x032.0\x12"[..], &[14 + version.len() as u8], b"\x0a\x0aKubernetes\x12", &[version.len() as u8]];
    assert_eq!(body, [&head.concat()[..], version.as_bytes()].concat());
}

#[tokio::test(start_paused = true)]
async fn paths_behind_which_nothing_is() {
    let shared = server();
    let page = Value::String("404 page not found\n".into());
    for path in ["/nothing", "/openapi/v1", "/apis/nobody.io/v1", "/apis/nobody.io/v1/things", "/apis/nobody.io"] {
        assert_eq!(get(&shared, path).await, (StatusCode::NOT_FOUND, page.clone()), "{path}");
    }
    for path in [
        "/api/v1/nothings",
        "/api/v1/pods/a",
        "/api/v1/namespaces/default/nodes/a",
        "/api/v1/namespaces/default/pods/a/exec",
        "/apis/apps/v1/namespaces/default/deployments/a/nothing",
    ] {
        let (status, body) = get(&shared, path).await;
        assert_eq!((status, &body["kind"]), (StatusCode::NOT_FOUND, &json!("Status")), "{path}");
        assert_eq!(body["message"], "the server could not find the requested resource");
    }
}

#[tokio::test(start_paused = true)]
async fn methods_that_do_not_fit_the_path() {
    let shared = server();
    let requests = [
        Request::post("/api/v1/configmaps"),
        Request::delete("/api/v1/configmaps"),
        Request::delete("/api/v1/namespaces"),
        Request::post(format!("{CONFIG_MAPS}/a")),
        Request::get("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"),
        Request::post("/version"),
        Request::get("/api/v1/namespaces/default/finalize"),
    ];
    for request in requests {
        let (status, _, body) = taken(send(&shared, request, "{}").await).await;
        assert_eq!(status, 405, "{body}");
    }
}

#[tokio::test(start_paused = true)]
async fn bodies_of_the_wrong_type_or_size_are_refused() {
    let shared = server();
    let request = |content_type: &str| Request::post(CONFIG_MAPS).header(CONTENT_TYPE, content_type);
    assert_eq!(send(&shared, Request::builder().method("CONNECT").uri("a:1"), "").await.status(), 404);
    for wrong in ["text/plain", ";;;", " ; charset=utf-8"] {
        assert_eq!(send(&shared, request(wrong), "x").await.status(), 415, "{wrong}");
    }
    assert_eq!(send(&shared, request("application/json"), vec![b' '; 3 * 1024 * 1024 + 1]).await.status(), 413);
    assert_eq!(send(&shared, request("application/json"), "{").await.status(), 400);
    let yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: written}\n";
    assert_eq!(send(&shared, request("application/yaml"), yaml).await.status(), 201);
}

#[tokio::test(start_paused = true)]
async fn answers_come_as_yaml_or_indented_and_not_as_html() {
    let shared = server();
    create(&shared, "a").await;
    let one = || Request::get(format!("{CONFIG_MAPS}/a"));
    let (_, headers, body) = taken(send(&shared, one().header(ACCEPT, "application/yaml"), "").await).await;
    assert_eq!(headers[CONTENT_TYPE], "application/yaml");
    assert!(body.contains("kind: ConfigMap\n"), "{body}");
    let (_, _, body) = taken(send(&shared, one().header(USER_AGENT, "curl/8"), "").await).await;
    assert!(body.starts_with("{\n  "), "{body}");
    let (status, _, body) = taken(send(&shared, one().header(ACCEPT, "text/html"), "").await).await;
    assert_eq!(status, 406, "{body}");
}

#[tokio::test(start_paused = true)]
async fn every_answer_has_its_headers_and_unknown_fields_warn() {
    let shared = server();
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "w"}, "oops": 1});
    let (status, headers, body) = taken(send(&shared, Request::post(CONFIG_MAPS), object.to_string()).await).await;
    assert_eq!(status, 201, "{body}");
    assert_eq!(headers["warning"], r#"299 - "unknown field \"oops\"""#);
    assert_eq!(headers[CACHE_CONTROL], "no-cache, private");
    assert_eq!(headers["audit-id"].len(), 36);
}

#[tokio::test(start_paused = true)]
async fn deletes_answer_with_what_is_gone_or_what_waits() {
    let shared = server();
    let object = create(&shared, "a").await;
    let path = format!("{CONFIG_MAPS}/a");
    let wrong = json!({"preconditions": {"uid": "other"}}).to_string();
    assert_eq!(send(&shared, Request::delete(&path), wrong).await.status(), 409);
    let (_, _, body) = taken(send(&shared, Request::delete(&path), "").await).await;
    let status: Value = serde_json::from_str(&body).expect("JSON");
    assert_eq!(status["status"], "Success");
    assert_eq!(status["details"], json!({"name": "a", "kind": "configmaps", "uid": object["metadata"]["uid"]}));

    let held = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "finalizers": ["x.io/y"]}});
    send(&shared, Request::post(CONFIG_MAPS), held.to_string()).await;
    let (_, _, body) = taken(send(&shared, Request::delete(&path), "").await).await;
    let pending: Value = serde_json::from_str(&body).expect("JSON");
    assert_eq!(pending["kind"], "ConfigMap");
    assert!(pending["metadata"]["deletionTimestamp"].is_string());
}

#[tokio::test(start_paused = true)]
async fn discovery_and_openapi_can_be_kept_by_clients() {
    let shared = server();
    let accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let (_, headers, _) = taken(send(&shared, Request::get("/apis").header(ACCEPT, accept), "").await).await;
    assert_eq!(headers[CONTENT_TYPE], accept, "compared letter by letter");
    let again = Request::get("/apis").header(ACCEPT, accept).header(IF_NONE_MATCH, &headers[ETAG]);
    assert_eq!(send(&shared, again, "").await.status(), 304);

    let (_, index) = get(&shared, "/openapi/v3").await;
    let address = index["paths"]["apis/apps/v1"]["serverRelativeURL"].as_str().expect("an address");
    let (status, headers, _) = taken(send(&shared, Request::get(address), "").await).await;
    assert_eq!((status, &headers[CACHE_CONTROL]), (StatusCode::OK, &"public, immutable".parse().expect("a header")));
    let stale = send(&shared, Request::get("/openapi/v3/apis/apps/v1?hash=OLD"), "").await;
    assert_eq!(
        (stale.status(), stale.headers()[LOCATION].as_bytes()),
        (StatusCode::MOVED_PERMANENTLY, address.as_bytes())
    );
}

#[tokio::test(start_paused = true)]
async fn every_documented_kind_can_be_explained() {
    let shared = server();
    let (_, index) = get(&shared, "/openapi/v3").await;
    let paths = index["paths"].as_object().expect("paths");
    assert!(paths.contains_key("api/v1"));
    for path in paths.keys() {
        let (_, document) = get(&shared, &format!("/openapi/v3/{path}")).await;
        let text = document.to_string();
        let schemas = document["components"]["schemas"].as_object().expect("schemas");
        for reference in text.split("#/components/schemas/").skip(1) {
            let name = reference.split('"').next().unwrap_or_default();
            assert!(schemas.contains_key(name), "{path}: {name}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn health_version_and_index() {
    let shared = server();
    assert_eq!(get(&shared, "/readyz").await.1, "ok");
    assert!(get(&shared, "/livez?verbose").await.1.as_str().expect("text").ends_with("livez check passed\n"));
    assert_eq!(get(&shared, "/version").await.1["minor"], "35");
    let (_, index) = get(&shared, "/").await;
    assert!(index["paths"].as_array().expect("paths").contains(&json!("/apis/apps/v1")));
}

#[tokio::test]
async fn a_panic_under_the_lock_harms_only_its_request() {
    let shared = server();
    let broken = Arc::clone(&shared);
    let outcome = tokio::task::spawn_blocking(move || broken.write(|_, _| panic!("on purpose"))).await;
    assert!(outcome.is_err());
    create(&shared, "a").await;
    assert_eq!(get(&shared, CONFIG_MAPS).await.0, 200);
}
