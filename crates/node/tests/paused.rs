//! The residents over the embedded server in paused time: nothing waits for the wall clock, and waits cost nothing.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::response::IntoResponse;
use evenkeel_apiserver::http::moment::Simulated;
use evenkeel_apiserver::http::{Options, Shared, router};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams, PropagationPolicy};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::Instant;

fn server() -> Client {
    let moments = Box::new(Simulated::new(Timestamp::UNIX_EPOCH, 7));
    Client::new(router(Shared::new(Options { moments, ..Options::default() })), "default")
}

/// A server that says nothing of some requests: each is put before `hides`, which says what becomes of it.
fn server_that(hides: impl Fn(&str) -> Hidden + Clone + Send + Sync + 'static) -> Client {
    let moments = Box::new(Simulated::new(Timestamp::UNIX_EPOCH, 7));
    let router = router(Shared::new(Options { moments, ..Options::default() }));
    let hiding = axum::middleware::from_fn(move |request: axum::extract::Request, next: axum::middleware::Next| {
        let hides = hides.clone();
        async move {
            let asked = request.uri().path_and_query().map(ToString::to_string).unwrap_or_default();
            match hides(&format!("{} {asked}", request.method())) {
                Hidden::Not => next.run(request).await,
                Hidden::NotFound => http::StatusCode::NOT_FOUND.into_response(),
                Hidden::Silent => pending().await,
            }
        }
    });
    Client::new(router.layer(hiding), "default")
}

enum Hidden {
    Not,
    NotFound,
    Silent,
}

/// Defines widgets; returns how to reach those in a namespace.
async fn define_widgets(client: &Client, namespace: &str) -> Api<DynamicObject> {
    let definitions = Api::<CustomResourceDefinition>::all(client.clone());
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": schema});
    let names = json!({"plural": "widgets", "kind": "Widget"});
    let spec = json!({"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]});
    create(&definitions, json!({"metadata": {"name": "widgets.example.com"}, "spec": spec})).await;
    let resource = ApiResource {
        group: "example.com".into(),
        version: "v1".into(),
        api_version: "example.com/v1".into(),
        kind: "Widget".into(),
        plural: "widgets".into(),
    };
    Api::namespaced_with(client.clone(), namespace, &resource)
}

fn widget(mut object: Value) -> DynamicObject {
    object["apiVersion"] = json!("example.com/v1");
    object["kind"] = json!("Widget");
    read(object)
}

fn orphaning() -> DeleteParams {
    DeleteParams { propagation_policy: Some(PropagationPolicy::Orphan), ..DeleteParams::default() }
}

/// Refuses the list of all widgets so many times, as a real server does that has just heard of them.
fn not_yet_listing(times: u32) -> impl Fn(&str) -> Hidden + Clone + Send + Sync + 'static {
    let left = Arc::new(AtomicU32::new(times));
    move |request: &str| {
        let is_list = request.starts_with("GET /apis/example.com/v1/widgets?");
        let refuses = is_list && left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)).is_ok();
        if refuses { Hidden::NotFound } else { Hidden::Not }
    }
}

#[tokio::test(start_paused = true)]
async fn an_owner_waits_for_dependants_of_a_kind_that_was_just_defined() {
    let client = server_that(not_yet_listing(4));
    start(&client);
    let maps = Api::<ConfigMap>::namespaced(client.clone(), "default");
    let owner = create(&maps, json!({"metadata": {"name": "owner"}})).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let widgets = define_widgets(&client, "default").await;
    // The definition is heard of, its widgets are not.
    tokio::time::sleep(Duration::from_millis(10)).await;
    widgets.create(&PostParams::default(), &widget(owned_by("widget", &owner))).await.unwrap();
    maps.delete("owner", &orphaning()).await.unwrap();
    until("the owner goes", || async { maps.get_opt("owner").await.unwrap().is_none() }).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let widget = widgets.get("widget").await.expect("it was to stay");
    assert_eq!(widget.metadata.owner_references.unwrap_or_default(), []);
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_cannot_be_listed_holds_nothing_up_for_long() {
    let client = server_that(not_yet_listing(u32::MAX));
    start(&client);
    let maps = Api::<ConfigMap>::namespaced(client.clone(), "default");
    let owner = create(&maps, json!({"metadata": {"name": "owner"}})).await;
    create(&maps, owned_by("dependant", &owner)).await;
    define_widgets(&client, "default").await;
    tokio::time::sleep(Duration::from_millis(10)).await;
    maps.delete("owner", &DeleteParams::background()).await.unwrap();
    until("the dependant goes", || async { maps.get_opt("dependant").await.unwrap().is_none() }).await;
}

#[tokio::test(start_paused = true)]
async fn a_namespace_is_emptied_of_what_was_defined_a_moment_ago() {
    // Nothing is ever heard of definitions that come after the start.
    let client = server_that(|request| match request {
        definitions if definitions.contains("/customresourcedefinitions?") && definitions.contains("watch=true") => {
            Hidden::Silent
        }
        _ => Hidden::Not,
    });
    start(&client);
    let namespaces = Api::<Namespace>::all(client.clone());
    create(&namespaces, json!({"metadata": {"name": "play"}})).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let widgets = define_widgets(&client, "play").await;
    widgets.create(&PostParams::default(), &widget(json!({"metadata": {"name": "widget"}}))).await.unwrap();
    namespaces.delete("play", &DeleteParams::default()).await.unwrap();
    until("the namespace ends", || async { namespaces.get_opt("play").await.unwrap().is_none() }).await;
    assert!(widgets.get_opt("widget").await.unwrap().is_none(), "nothing is left behind");
}

fn start(client: &Client) {
    tokio::spawn(evenkeel_node::run(client.clone(), pending()));
}

fn read<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

async fn create<K: Resource<DynamicType: Default> + serde::Serialize + DeserializeOwned + Clone + std::fmt::Debug>(
    api: &Api<K>,
    value: Value,
) -> K {
    api.create(&PostParams::default(), &read(value)).await.unwrap()
}

/// Waits in simulated time; returns how much of it passed.
async fn until<F: Future<Output = bool>>(what: &str, holds: impl Fn() -> F) -> Duration {
    let begun = Instant::now();
    while !holds().await {
        assert!(begun.elapsed() < Duration::from_secs(300), "never: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    begun.elapsed()
}

fn owned_by(name: &str, owner: &ConfigMap) -> Value {
    let uid = owner.metadata.uid.clone();
    let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": owner.metadata.name, "uid": uid,
        "blockOwnerDeletion": true});
    json!({"metadata": {"name": name, "ownerReferences": [owner]}})
}

#[tokio::test(start_paused = true)]
async fn dependants_follow_their_owner_and_a_namespace_ends() {
    let client = server();
    start(&client);
    let namespaces = Api::<Namespace>::all(client.clone());
    create(&namespaces, json!({"metadata": {"name": "play"}})).await;
    let maps = Api::<ConfigMap>::namespaced(client.clone(), "play");
    let owner = create(&maps, json!({"metadata": {"name": "owner"}})).await;
    for number in 0..150 {
        create(&maps, owned_by(&format!("dependant-{number}"), &owner)).await;
    }
    create(&maps, json!({"metadata": {"name": "held", "finalizers": ["example.com/hold"]}})).await;

    maps.delete("owner", &DeleteParams::foreground()).await.unwrap();
    let gone = || async { maps.list(&Default::default()).await.unwrap().items.len() == 1 };
    until("all dependants go before their owner", gone).await;

    namespaces.delete("play", &DeleteParams::default()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert!(namespaces.get_opt("play").await.unwrap().is_some(), "the namespace waits for what is held");
    let release = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    maps.patch("held", &PatchParams::default(), &release).await.unwrap();
    let ended = until("the namespace ends", || async { namespaces.get_opt("play").await.unwrap().is_none() }).await;
    assert!(ended < Duration::from_secs(1), "the watch speaks, not the safety net: {ended:?}");
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_terminated_before_the_start_does_not_wait_for_the_safety_net() {
    let client = server();
    let namespaces = Api::<Namespace>::all(client.clone());
    create(&namespaces, json!({"metadata": {"name": "play"}})).await;
    namespaces.delete("play", &DeleteParams::default()).await.unwrap();
    start(&client);
    let ended = until("the namespace ends", || async { namespaces.get_opt("play").await.unwrap().is_none() }).await;
    assert!(ended < Duration::from_secs(1), "{ended:?}");
}

/// Counts errors that were logged in this thread.
struct Errors(Arc<AtomicU32>);

impl tracing::Subscriber for Errors {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() == tracing::Level::ERROR
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, _: &tracing::Event<'_>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

#[tokio::test(start_paused = true)]
async fn a_definition_that_goes_is_no_error_and_its_objects_are_orphaned_first() {
    let errors = Arc::new(AtomicU32::new(0));
    let _listening = tracing::subscriber::set_default(Errors(errors.clone()));
    let client = server();
    let definitions = Api::<CustomResourceDefinition>::all(client.clone());
    let widgets = define_widgets(&client, "default").await;

    // The owner is let go as soon as the residents start, and must not go before its only dependant, of a custom kind.
    let maps = Api::<ConfigMap>::namespaced(client.clone(), "default");
    let owner = create(&maps, json!({"metadata": {"name": "owner"}})).await;
    widgets.create(&PostParams::default(), &widget(owned_by("widget", &owner))).await.unwrap();
    maps.delete("owner", &orphaning()).await.unwrap();
    start(&client);
    until("the owner goes", || async { maps.get_opt("owner").await.unwrap().is_none() }).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let widget = widgets.get("widget").await.unwrap();
    assert_eq!(widget.metadata.owner_references.unwrap_or_default(), []);

    definitions.delete("widgets.example.com", &DeleteParams::default()).await.unwrap();
    let gone = || async { definitions.get_opt("widgets.example.com").await.unwrap().is_none() };
    until("the definition goes", gone).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(errors.load(Ordering::Relaxed), 0);
}
