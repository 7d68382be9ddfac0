//! Watches: where they start, what they show, and how they end.

use serde_json::{Value, json};

use crate::answer::{revision, version};
use crate::widgets::{Widgets, anything, definition, properties};
use crate::world::{JSON, MERGE, World, unique, with_query};

promises!(
    a_watch_shows_every_change_after_its_version,
    a_watch_resumes_where_it_stopped,
    a_watch_from_zero_starts_with_what_is_there,
    a_watch_without_a_version_starts_with_what_is_there,
    a_deletion_shows_the_last_state_with_a_new_version,
    a_watch_sees_only_its_namespace,
    a_watch_by_label_shows_objects_entering_and_leaving,
    a_watch_by_field_shows_objects_entering_and_leaving,
    a_watch_of_one_name_sees_only_that,
    a_watch_ends_after_its_timeout,
    bookmarks_come_when_asked_for,
    bookmarks_pass_by_what_is_not_selected,
    watches_end_with_their_definition,
    watches_end_when_their_definition_changes,
    a_version_that_is_forgotten_is_gone,
    nothing_is_seen_before_a_version_from_the_future,
    a_version_that_is_no_number_is_an_error,
    a_streaming_list_ends_with_a_marked_bookmark,
    a_streaming_list_by_selector_shows_only_its_own,
    a_streaming_list_needs_its_options,
    metadata_is_watched_without_the_rest,
    tables_are_watched_row_by_row,
    many_watchers_see_the_same_order,
    two_versions_watch_each_in_their_own,
);

async fn widgets(world: &World) -> (Widgets, String) {
    let widgets = world.install(definition(anything())).await;
    let since = version(&world.get(&widgets.path()).await.ok());
    (widgets, since)
}

async fn create(world: &World, widgets: &Widgets, name: &str) -> Value {
    world.post(&widgets.path(), widgets.widget(name, json!({"x": 1}))).await.ok()
}

fn step(kind: &str, name: &str) -> (String, String) {
    (kind.into(), name.into())
}

async fn a_watch_shows_every_change_after_its_version(world: World) {
    let (widgets, since) = widgets(&world).await;
    let made = create(&world, &widgets, "a").await;
    let patched = world.patch(MERGE, &widgets.one("a"), json!({"spec": {"x": 2}})).await.ok();
    world.delete(&widgets.one("a"), json!(null)).await.ok();
    let mut watch = world.watch(&widgets.path(), &format!("resourceVersion={since}")).await;
    assert_eq!(watch.next().await, json!({"type": "ADDED", "object": made}));
    assert_eq!(watch.next().await, json!({"type": "MODIFIED", "object": patched}));
    assert_eq!(watch.step().await, step("DELETED", "a"));
    create(&world, &widgets, "b").await;
    assert_eq!(watch.step().await, step("ADDED", "b"));
}

async fn a_watch_resumes_where_it_stopped(world: World) {
    let (widgets, since) = widgets(&world).await;
    let mut watch = world.watch(&widgets.path(), &format!("resourceVersion={since}")).await;
    create(&world, &widgets, "a").await;
    let seen = version(&watch.next().await["object"]);
    drop(watch);
    create(&world, &widgets, "b").await;
    world.delete(&widgets.one("a"), json!(null)).await.ok();
    let mut watch = world.watch(&widgets.path(), &format!("resourceVersion={seen}")).await;
    assert_eq!(watch.step().await, step("ADDED", "b"));
    assert_eq!(watch.step().await, step("DELETED", "a"));
}

async fn a_watch_from_zero_starts_with_what_is_there(world: World) {
    let (widgets, _) = widgets(&world).await;
    for name in ["b", "a"] {
        create(&world, &widgets, name).await;
    }
    // Whatever the server has at hand may be a little behind, but never less than this after a while.
    world
        .until(&with_query(&widgets.path(), "resourceVersion=0"), |list| crate::answer::names(&list.body).len() == 2)
        .await;
    let mut watch = world.watch(&widgets.path(), "resourceVersion=0").await;
    assert_eq!(watch.step().await, step("ADDED", "a"));
    assert_eq!(watch.step().await, step("ADDED", "b"));
    world.delete(&widgets.one("b"), json!(null)).await.ok();
    assert_eq!(watch.step().await, step("DELETED", "b"));
}

async fn a_watch_without_a_version_starts_with_what_is_there(world: World) {
    let (widgets, _) = widgets(&world).await;
    create(&world, &widgets, "a").await;
    let mut watch = world.watch(&widgets.path(), "").await;
    assert_eq!(watch.step().await, step("ADDED", "a"));
    create(&world, &widgets, "b").await;
    assert_eq!(watch.step().await, step("ADDED", "b"));
}

async fn a_deletion_shows_the_last_state_with_a_new_version(world: World) {
    let (widgets, since) = widgets(&world).await;
    let made = create(&world, &widgets, "a").await;
    world.delete(&widgets.one("a"), json!(null)).await.ok();
    let mut watch = world.watch(&widgets.path(), &format!("resourceVersion={since}")).await;
    watch.next().await;
    let mut last = watch.next().await["object"].take();
    assert!(revision(&last) > revision(&made));
    last["metadata"]["resourceVersion"] = made["metadata"]["resourceVersion"].clone();
    assert_eq!(last, made);
}

async fn a_watch_sees_only_its_namespace(world: World) {
    let (widgets, since) = widgets(&world).await;
    let elsewhere = unique("elsewhere");
    world.post("/api/v1/namespaces", json!({"metadata": {"name": elsewhere}})).await.ok();
    let path = format!("/apis/{}/v1/namespaces/{elsewhere}/widgets", widgets.group);
    world.post(&path, widgets.widget("other", json!({}))).await.ok();
    create(&world, &widgets, "mine").await;
    let mut watch = world.watch(&widgets.path(), &format!("resourceVersion={since}")).await;
    assert_eq!(watch.step().await, step("ADDED", "mine"));
    let mut all =
        world.watch(&format!("/apis/{}/v1/widgets", widgets.group), &format!("resourceVersion={since}")).await;
    assert_eq!(all.step().await, step("ADDED", "other"));
    assert_eq!(all.step().await, step("ADDED", "mine"));
}

async fn a_watch_by_label_shows_objects_entering_and_leaving(world: World) {
    let (widgets, since) = widgets(&world).await;
    let query = format!("labelSelector=tier=web&resourceVersion={since}");
    let mut watch = world.watch(&widgets.path(), &query).await;
    create(&world, &widgets, "a").await;
    create(&world, &widgets, "noise").await;
    let label = |tier: Value| json!({"metadata": {"labels": {"tier": tier}}});
    world.patch(MERGE, &widgets.one("a"), label(json!("web"))).await.ok();
    assert_eq!(watch.step().await, step("ADDED", "a"), "it enters");
    world.patch(MERGE, &widgets.one("a"), json!({"spec": {"x": 2}})).await.ok();
    assert_eq!(watch.step().await, step("MODIFIED", "a"));
    let left = world.patch(MERGE, &widgets.one("a"), label(json!("db"))).await.ok();
    let event = watch.next().await;
    assert_eq!((&event["type"], &event["object"]["metadata"]["name"]), (&json!("DELETED"), &json!("a")), "it leaves");
    assert_eq!(version(&event["object"]), version(&left));
    assert_eq!(event["object"]["metadata"]["labels"]["tier"], "web", "as it was when it was last selected");
    world.delete(&widgets.one("a"), json!(null)).await.ok();
    world.patch(MERGE, &widgets.one("noise"), label(json!("web"))).await.ok();
    assert_eq!(watch.step().await, step("ADDED", "noise"), "what happened outside is not seen");
    world.delete(&widgets.one("noise"), json!(null)).await.ok();
    assert_eq!(watch.step().await, step("DELETED", "noise"));
}

async fn a_watch_by_field_shows_objects_entering_and_leaving(world: World) {
    let mut definition = definition(properties(json!({"mode": {"type": "string"}})));
    definition["spec"]["versions"][0]["selectableFields"] = json!([{"jsonPath": ".spec.mode"}]);
    let widgets = world.install(definition).await;
    let made = world.post(&widgets.path(), widgets.widget("a", json!({"mode": "off"}))).await.ok();
    let query = format!("fieldSelector=spec.mode=on&resourceVersion={}", version(&made));
    let mut watch = world.watch(&widgets.path(), &query).await;
    for (mode, seen) in [("on", "ADDED"), ("off", "DELETED"), ("on", "ADDED")] {
        world.patch(MERGE, &widgets.one("a"), json!({"spec": {"mode": mode}})).await.ok();
        assert_eq!(watch.step().await, step(seen, "a"));
    }
}

async fn a_watch_of_one_name_sees_only_that(world: World) {
    let (widgets, since) = widgets(&world).await;
    let mut watch =
        world.watch(&widgets.path(), &format!("fieldSelector=metadata.name=b&resourceVersion={since}")).await;
    for name in ["a", "b"] {
        create(&world, &widgets, name).await;
    }
    assert_eq!(watch.step().await, step("ADDED", "b"));
}

async fn a_watch_ends_after_its_timeout(world: World) {
    let (widgets, since) = widgets(&world).await;
    create(&world, &widgets, "a").await;
    let mut watch = world.watch(&widgets.path(), &format!("resourceVersion={since}&timeoutSeconds=1")).await;
    let seen = watch.rest().await;
    assert_eq!(seen.len(), 1, "{seen:?}");
}

async fn bookmarks_come_when_asked_for(world: World) {
    let (widgets, since) = widgets(&world).await;
    // The original sends one shortly before a watch ends; so does a list that streams.
    let query = format!("resourceVersion={since}&allowWatchBookmarks=true&timeoutSeconds=6");
    let mut watch = world.watch(&widgets.path(), &query).await;
    let made = create(&world, &widgets, "a").await;
    let seen = watch.rest().await;
    let bookmark = seen.iter().find(|event| event["type"] == "BOOKMARK").expect("a bookmark");
    assert_eq!((&bookmark["object"]["kind"], &bookmark["object"]["apiVersion"]), (&made["kind"], &made["apiVersion"]));
    assert!(revision(&bookmark["object"]) >= since.parse().unwrap());
    let mut plain = world.watch(&widgets.path(), &format!("resourceVersion={since}&timeoutSeconds=6")).await;
    assert!(plain.rest().await.iter().all(|event| event["type"] != "BOOKMARK"));
}

async fn bookmarks_pass_by_what_is_not_selected(world: World) {
    let (widgets, since) = widgets(&world).await;
    let query = format!("labelSelector=l=chosen&resourceVersion={since}&allowWatchBookmarks=true&timeoutSeconds=6");
    let mut watch = world.watch(&widgets.path(), &query).await;
    let last = revision(&create(&world, &widgets, "a").await);
    // Without them a client that selects little starts again from a version long forgotten.
    let bookmark = watch.bookmark().await;
    assert!(revision(&bookmark["object"]) >= last, "{bookmark} is not after {last}");
    assert!(watch.rest().await.iter().all(|event| event["type"] == "BOOKMARK"));
}

async fn watches_end_with_their_definition(world: World) {
    let (widgets, _) = widgets(&world).await;
    create(&world, &widgets, "a").await;
    let since = version(&create(&world, &widgets, "b").await);
    let query = |more: &str| format!("resourceVersion={since}{more}");
    let mut all = world.watch(&widgets.path(), &query("")).await;
    let mut none = world.watch(&widgets.path(), &query("&labelSelector=l=none")).await;
    world.delete(&widgets.definition, json!(null)).await.code(200);
    let seen = all.rest().await;
    let deleted = |name: &str| seen.iter().any(|e| e["type"] == "DELETED" && e["object"]["metadata"]["name"] == name);
    assert!(seen.len() == 2 && deleted("a") && deleted("b"), "{seen:?}");
    assert_eq!(none.rest().await, [json!(null); 0]);
}

async fn watches_end_when_their_definition_changes(world: World) {
    let text = json!({"type": "string"});
    let mut both = definition(properties(json!({"a": text})));
    let mut older = both["spec"]["versions"][0].clone();
    older["name"] = json!("v1beta1");
    older["storage"] = json!(false);
    both["spec"]["versions"].as_array_mut().unwrap().push(older);
    let widgets = world.install(both).await;
    let schema = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
    for (n, (path, value)) in
        [(schema, json!({"a": text, "b": text})), ("/spec/versions/1/served", json!(false))].into_iter().enumerate()
    {
        let since = version(&world.get(&widgets.path()).await.ok());
        let mut watch = world.watch(&widgets.path(), &format!("resourceVersion={since}")).await;
        // What does not concern the widgets does not end it.
        let label = json!({"metadata": {"labels": {"n": n.to_string()}}});
        world.patch(MERGE, &widgets.definition, label).await.code(200);
        let name = format!("w{n}");
        create(&world, &widgets, &name).await;
        assert_eq!(watch.step().await, step("ADDED", &name));
        let change = json!([{"op": "replace", "path": path, "value": value}]);
        world.patch(JSON, &widgets.definition, change).await.code(200);
        // A plain end, not an error: the client asks again.
        assert_eq!(watch.rest().await, [json!(null); 0], "{path}");
    }
}

async fn a_version_that_is_forgotten_is_gone(world: World) {
    let (widgets, _) = widgets(&world).await;
    create(&world, &widgets, "a").await;
    let mut watch = world.watch(&widgets.path(), "resourceVersion=1").await;
    let event = watch.next().await;
    assert_eq!(event["type"], "ERROR");
    let status = &event["object"];
    assert_eq!(
        (&status["kind"], &status["code"], &status["reason"]),
        (&json!("Status"), &json!(410), &json!("Expired"))
    );
    assert!(status["message"].as_str().unwrap().starts_with("too old resource version: 1 ("), "{status}");
    assert!(watch.rest().await.is_empty());
}

async fn nothing_is_seen_before_a_version_from_the_future(world: World) {
    let (widgets, since) = widgets(&world).await;
    let future = since.parse::<u64>().unwrap() + 1_000_000;
    let query = format!("watch=true&timeoutSeconds=2&resourceVersion={future}");
    let path = with_query(&widgets.path(), &query);
    let waiting = world.get(&path);
    let (answer, _) = futures::join!(waiting, create(&world, &widgets, "a"));
    // Not refused: it waits for what comes after that version until its time is over.
    assert_eq!((answer.code, answer.text.as_str()), (200, ""));
}

async fn a_version_that_is_no_number_is_an_error(world: World) {
    let (widgets, _) = widgets(&world).await;
    world.get(&with_query(&widgets.path(), "watch=true&resourceVersion=abc")).await.code(500).mentions("abc");
}

const STREAM: &str = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";

async fn a_streaming_list_ends_with_a_marked_bookmark(world: World) {
    let (widgets, _) = widgets(&world).await;
    for name in ["a", "b"] {
        create(&world, &widgets, name).await;
    }
    let mut watch = world.watch(&widgets.path(), STREAM).await;
    let mut initial = vec![watch.step().await, watch.step().await];
    initial.sort();
    assert_eq!(initial, [step("ADDED", "a"), step("ADDED", "b")]);
    let end = watch.bookmark().await;
    assert_eq!(end["object"]["metadata"]["annotations"], json!({"k8s.io/initial-events-end": "true"}));
    assert!(revision(&end["object"]) > 0);
    create(&world, &widgets, "c").await;
    assert_eq!(watch.step().await, step("ADDED", "c"));
}

async fn a_streaming_list_by_selector_shows_only_its_own(world: World) {
    world.map("a", json!({"mine": "y"})).await;
    world.map("b", json!({})).await;
    let mut watch = world.watch(&world.maps(), &format!("labelSelector=mine=y&{STREAM}")).await;
    assert_eq!(watch.step().await, step("ADDED", "a"));
    let end = watch.bookmark().await;
    assert_eq!((&end["object"]["kind"], &end["object"]["apiVersion"]), (&json!("ConfigMap"), &json!("v1")));
}

async fn a_streaming_list_needs_its_options(world: World) {
    let (widgets, _) = widgets(&world).await;
    for query in
        ["watch=true&sendInitialEvents=true", "sendInitialEvents=true", "watch=true&resourceVersionMatch=NotOlderThan"]
    {
        world.get(&with_query(&widgets.path(), query)).await.refused(422, "Invalid");
    }
    let forbidden = ("FieldValueForbidden", "resourceVersionMatch");
    let unsupported = ("FieldValueNotSupported", "resourceVersionMatch");
    for (query, causes) in [
        ("sendInitialEvents=true", &[forbidden][..]),
        ("sendInitialEvents=true&resourceVersionMatch=Exact", &[forbidden, unsupported]),
        ("resourceVersionMatch=Exact", &[forbidden, unsupported]),
        ("continue=x", &[forbidden]),
        ("continue=x&resourceVersion=0", &[forbidden]),
    ] {
        let answer = world.get(&with_query(&widgets.path(), &format!("watch=true&{query}"))).await;
        answer.refused(422, "Invalid").causes(causes);
    }
}

async fn metadata_is_watched_without_the_rest(world: World) {
    let (widgets, since) = widgets(&world).await;
    let made = create(&world, &widgets, "a").await;
    let accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    let mut watch = world.watch_as(accept, &widgets.path(), &format!("resourceVersion={since}")).await;
    let object = watch.next().await["object"].take();
    assert_eq!((&object["kind"], &object["apiVersion"]), (&json!("PartialObjectMetadata"), &json!("meta.k8s.io/v1")));
    assert_eq!(object["metadata"], made["metadata"]);
    assert!(object.get("spec").is_none());
}

async fn tables_are_watched_row_by_row(world: World) {
    let (widgets, since) = widgets(&world).await;
    create(&world, &widgets, "a").await;
    create(&world, &widgets, "b").await;
    let accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
    let mut watch = world.watch_as(accept, &widgets.path(), &format!("resourceVersion={since}")).await;
    let first = watch.next().await;
    assert_eq!((&first["type"], &first["object"]["kind"]), (&json!("ADDED"), &json!("Table")));
    assert_eq!(first["object"]["rows"][0]["cells"][0], "a");
    assert_eq!(first["object"]["columnDefinitions"][0]["name"], "Name");
    let second = watch.next().await;
    assert_eq!(second["object"]["rows"][0]["cells"][0], "b");
    assert!(second["object"]["columnDefinitions"].is_null(), "columns are described once: {second}");
}

async fn many_watchers_see_the_same_order(world: World) {
    let (widgets, since) = widgets(&world).await;
    let mut watches = Vec::new();
    for _ in 0..5 {
        watches.push(world.watch(&widgets.path(), &format!("resourceVersion={since}")).await);
    }
    let names: Vec<_> = (0..10).map(|n| format!("w{n}")).collect();
    futures::future::join_all(names.iter().map(|name| create(&world, &widgets, name))).await;
    let mut orders = Vec::new();
    for watch in &mut watches {
        let mut order = Vec::new();
        for _ in 0..10 {
            order.push(watch.step().await.1);
        }
        orders.push(order);
    }
    orders.dedup();
    assert_eq!(orders.len(), 1, "{orders:?}");
}

async fn two_versions_watch_each_in_their_own(world: World) {
    let mut definition = definition(anything());
    let mut older = definition["spec"]["versions"][0].clone();
    older["name"] = json!("v1beta1");
    older["storage"] = json!(false);
    definition["spec"]["versions"].as_array_mut().unwrap().push(older);
    let widgets = world.install(definition).await;
    let made = create(&world, &widgets, "a").await;
    for version in ["v1", "v1beta1"] {
        let mut watch = world.watch(&widgets.path_in(version), "").await;
        let event = watch.next().await;
        assert_eq!(event["object"]["apiVersion"], format!("{}/{version}", widgets.group));
        assert_eq!(event["object"]["metadata"]["uid"], made["metadata"]["uid"]);
    }
}
