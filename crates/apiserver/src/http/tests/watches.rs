//! Watches, as clients follow them.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_kube_watcher_follows_and_survives_the_end_of_its_stream() {
    let shared = server();
    let client = kube::Client::new(router(Arc::clone(&shared)), "default");
    let maps: kube::Api<ConfigMap> = kube::Api::default_namespaced(client);
    create(&shared, "a").await;
    let writing = tokio::spawn(async move {
        for name in ["b", "c"] {
            // Longer than a watch of kube's lasts.
            tokio::time::sleep(Duration::from_secs(400)).await;
            create(&shared, name).await;
        }
    });
    let seen: Vec<String> = watcher(maps, watcher::Config::default())
        .applied_objects()
        .map_ok(|map| map.metadata.name.unwrap_or_default())
        .take(3)
        .try_collect()
        .await
        .expect("no errors");
    assert_eq!(seen, ["a", "b", "c"]);
    writing.await.expect("written");
}

#[tokio::test(start_paused = true)]
async fn a_watch_tells_changes_then_a_bookmark_each_minute_and_ends_in_time() {
    let shared = server();
    let mut lines = Lines::open(&shared, "&allowWatchBookmarks=true&timeoutSeconds=150").await;
    let before = tokio::time::Instant::now();
    create(&shared, "a").await;
    let mut types = lines.types(1).await;
    let deleted = send(&shared, Request::delete(format!("{CONFIG_MAPS}/a")), "").await;
    assert_eq!(deleted.status(), 200);
    while let Some(event) = lines.next().await {
        types.push(event["type"].as_str().expect("a type").to_owned());
    }
    // Two on the way, and one with which the stream says goodbye; a fresh stream may open with one of its own.
    let bookmarks = types.iter().filter(|t| *t == "BOOKMARK").count();
    let changes: Vec<&String> = types.iter().filter(|t| *t != "BOOKMARK").collect();
    assert_eq!(changes, ["ADDED", "DELETED"]);
    assert!((3..=4).contains(&bookmarks), "{types:?}");
    assert_eq!(before.elapsed().as_secs(), 150);
}

#[tokio::test(start_paused = true)]
async fn a_watcher_that_reads_too_late_is_told_to_list_again() {
    let shared = server();
    let object = create(&shared, "a").await;
    let revision = object["metadata"]["resourceVersion"].as_str().expect("a revision");
    let mut lines = Lines::open(&shared, &format!("&resourceVersion={revision}")).await;
    for n in 0..20_000 {
        let patch = json!({"data": {"n": n.to_string()}}).to_string();
        let request = Request::patch(format!("{CONFIG_MAPS}/a")).header(CONTENT_TYPE, "application/merge-patch+json");
        assert_eq!(send(&shared, request, patch).await.status(), 200);
    }
    let event = lines.next().await.expect("an event");
    assert_eq!((&event["type"], &event["object"]["code"]), (&json!("ERROR"), &json!(410)), "{event}");
    assert_eq!(event["object"]["reason"], "Expired");
    assert_eq!(lines.next().await, None, "the stream has ended");
}

#[tokio::test(start_paused = true)]
async fn watch_events_come_in_the_form_asked_for() {
    let shared = server();
    let accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    let mut partial = Lines::open_as(&shared, "", accept).await;
    let accept = "application/json;as=Table;g=meta.k8s.io;v=v1";
    let mut tables = Lines::open_as(&shared, "", accept).await;
    create(&shared, "a").await;
    create(&shared, "b").await;
    let event = partial.next().await.expect("an event");
    assert_eq!(event["object"]["kind"], "PartialObjectMetadata");
    assert_eq!(event["object"]["metadata"]["name"], "a");
    assert_eq!(event["object"].get("data"), None);
    let (first, second) = (tables.next().await.expect("an event"), tables.next().await.expect("an event"));
    assert_eq!(first["object"]["kind"], "Table");
    assert!(first["object"]["columnDefinitions"].is_array(), "{first}");
    assert_eq!(second["object"]["columnDefinitions"], json!(null), "told once");
}

#[tokio::test(start_paused = true)]
async fn stopping_ends_running_watches_and_new_ones() {
    let shared = server();
    let mut lines = Lines::open(&shared, "").await;
    create(&shared, "a").await;
    assert_eq!(lines.types(1).await, ["ADDED"]);
    shared.stop();
    assert_eq!(lines.next().await, None);
    assert_eq!(Lines::open(&shared, "").await.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn both_groups_of_events_wake_on_a_write_to_either() {
    let shared = server();
    let request = Request::get("/apis/events.k8s.io/v1/namespaces/default/events?watch=true");
    let response = send(&shared, request, "").await;
    let mut lines = Lines { chunks: response.into_body().into_data_stream(), rest: Vec::new() };
    let event = json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "reason": "Testing", "message": "hello", "type": "Normal",
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "p"}, "source": {"component": "test"},
    });
    let path = "/api/v1/namespaces/default/events";
    let (status, _, body) = taken(send(&shared, Request::post(path), event.to_string()).await).await;
    assert_eq!(status, 201, "{body}");
    let seen = tokio::time::timeout(Duration::from_secs(1), lines.next()).await.expect("woken").expect("an event");
    assert_eq!(seen["object"]["note"], "hello");
}

#[tokio::test]
async fn a_thousand_watchers_see_one_write() {
    let shared = server();
    let mut watchers = Vec::new();
    for _ in 0..1000 {
        watchers.push(Lines::open(&shared, "").await);
    }
    create(&shared, "a").await;
    for lines in &mut watchers {
        assert_eq!(lines.types(1).await, ["ADDED"]);
    }
    assert_eq!(shared.frames.count(), 1, "the line was made once");
}
