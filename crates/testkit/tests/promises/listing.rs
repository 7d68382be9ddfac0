//! Lists: their order, their pages, and which moment they show.

use serde_json::{Value, json};

use crate::answer::{names, revision, version};
use crate::widgets::{Widgets, anything, definition};
use crate::world::{World, unique, with_query};

promises!(
    a_list_has_kind_version_and_items,
    a_list_is_ordered_by_name,
    a_list_over_all_namespaces_is_ordered_by_namespace_and_name,
    pages_show_one_snapshot,
    a_page_says_how_many_are_left,
    with_a_selector_nobody_says_how_many_are_left,
    a_limit_that_nothing_exceeds_gives_no_token,
    a_broken_token_is_a_bad_request,
    a_token_and_a_version_do_not_go_together,
    an_exact_version_shows_the_past,
    a_version_from_the_future_is_refused,
    a_version_match_needs_a_version,
    version_zero_is_answered_with_anything_known,
);

async fn widgets(world: &World, count: usize) -> Widgets {
    let widgets = world.install(definition(anything())).await;
    for n in 0..count {
        world.post(&widgets.path(), widgets.widget(&format!("w{n}"), json!({}))).await.ok();
    }
    widgets
}

async fn a_list_has_kind_version_and_items(world: World) {
    let widgets = widgets(&world, 1).await;
    let list = world.get(&widgets.path()).await.code(200).ok();
    assert_eq!((&list["kind"], &list["apiVersion"]), (&json!("WidgetList"), &json!(format!("{}/v1", widgets.group))));
    assert!(revision(&list) > 0);
    // Items of custom kinds say what they are; items of built-in kinds leave it out.
    assert_eq!(list["items"][0]["kind"], "Widget");
    world.map("a", json!({})).await;
    let maps = world.get(&world.maps()).await.ok();
    assert_eq!(maps["kind"], "ConfigMapList");
    assert!(maps["items"][0].get("kind").is_none());
}

async fn a_list_is_ordered_by_name(world: World) {
    let widgets = widgets(&world, 0).await;
    for name in ["b", "a-b", "a", "c.d", "a0", "c-d"] {
        world.post(&widgets.path(), widgets.widget(name, json!({}))).await.ok();
    }
    assert_eq!(names(&world.get(&widgets.path()).await.ok()), ["a", "a-b", "a0", "b", "c-d", "c.d"]);
}

async fn a_list_over_all_namespaces_is_ordered_by_namespace_and_name(world: World) {
    let widgets = widgets(&world, 0).await;
    let first = unique("order");
    let second = format!("{first}-b");
    for namespace in [&first, &second] {
        world.post("/api/v1/namespaces", json!({"metadata": {"name": namespace}})).await.ok();
        let path = format!("/apis/{}/v1/namespaces/{namespace}/widgets", widgets.group);
        world.post(&path, widgets.widget("w", json!({}))).await.ok();
    }
    let list = world.get(&format!("/apis/{}/v1/widgets", widgets.group)).await.ok();
    let seen: Vec<_> =
        list["items"].as_array().unwrap().iter().map(|item| item["metadata"]["namespace"].clone()).collect();
    // Order of the text `namespace/name`, in which `-` comes before `/`.
    assert_eq!(seen, [json!(second), json!(first)]);
}

async fn pages_show_one_snapshot(world: World) {
    let widgets = widgets(&world, 5).await;
    let first = world.get(&with_query(&widgets.path(), "limit=2")).await.ok();
    assert_eq!(names(&first), ["w0", "w1"]);
    world.delete(&widgets.one("w3"), json!(null)).await.ok();
    world.post(&widgets.path(), widgets.widget("w2a", json!({}))).await.ok();
    let second = page(&world, &widgets, &first).await.ok();
    assert_eq!(names(&second), ["w2", "w3"]);
    let third = page(&world, &widgets, &second).await.ok();
    assert_eq!(names(&third), ["w4"]);
    assert!(token(&third).is_empty());
    assert!(version(&first) == version(&second) && version(&second) == version(&third));
}

async fn a_page_says_how_many_are_left(world: World) {
    let widgets = widgets(&world, 5).await;
    let first = world.get(&with_query(&widgets.path(), "limit=2")).await.ok();
    assert_eq!(first["metadata"]["remainingItemCount"], 3);
    let second = page(&world, &widgets, &first).await.ok();
    assert_eq!(second["metadata"]["remainingItemCount"], 1);
    let third = page(&world, &widgets, &second).await.ok();
    assert!(third["metadata"].get("remainingItemCount").is_none());
}

async fn with_a_selector_nobody_says_how_many_are_left(world: World) {
    for n in 0..4 {
        world.map(&format!("m{n}"), json!({"mine": "y"})).await;
    }
    let first = world.get(&with_query(&world.maps(), "labelSelector=mine=y&limit=2")).await.ok();
    assert_eq!(names(&first), ["m0", "m1"]);
    assert!(!token(&first).is_empty());
    assert!(first["metadata"].get("remainingItemCount").is_none());
}

async fn a_limit_that_nothing_exceeds_gives_no_token(world: World) {
    let widgets = widgets(&world, 2).await;
    for limit in [2, 3, 0] {
        let list = world.get(&with_query(&widgets.path(), &format!("limit={limit}"))).await.ok();
        assert_eq!(names(&list).len(), 2);
        assert!(token(&list).is_empty());
    }
}

async fn a_broken_token_is_a_bad_request(world: World) {
    let widgets = widgets(&world, 1).await;
    for token in ["garbage", "e30K", "eyJ2IjoiOTkifQ"] {
        let answer = world.get(&with_query(&widgets.path(), &format!("limit=1&continue={token}"))).await;
        answer.refused(400, "BadRequest").mentions("continue key is not valid");
    }
}

async fn a_token_and_a_version_do_not_go_together(world: World) {
    let widgets = widgets(&world, 3).await;
    let first = world.get(&with_query(&widgets.path(), "limit=2")).await.ok();
    let query = format!("limit=2&resourceVersion={}&continue={}", version(&first), token(&first));
    let answer = world.get(&with_query(&widgets.path(), &query)).await;
    answer.refused(400, "BadRequest").says("specifying resource version is not allowed when using continue");
}

async fn an_exact_version_shows_the_past(world: World) {
    let widgets = widgets(&world, 2).await;
    let then = version(&world.get(&widgets.path()).await.ok());
    world.delete(&widgets.one("w0"), json!(null)).await.ok();
    let query = format!("resourceVersion={then}&resourceVersionMatch=Exact");
    let past = world.get(&with_query(&widgets.path(), &query)).await.ok();
    assert_eq!((names(&past), version(&past)), (vec!["w0", "w1"], then.clone()));
    let query = format!("resourceVersion={then}&resourceVersionMatch=NotOlderThan");
    assert_eq!(names(&world.get(&with_query(&widgets.path(), &query)).await.ok()), ["w1"]);
}

async fn a_version_from_the_future_is_refused(world: World) {
    let widgets = widgets(&world, 1).await;
    let future = revision(&world.get(&widgets.path()).await.ok()) + 1_000_000;
    for query in
        [format!("resourceVersion={future}"), format!("resourceVersion={future}&resourceVersionMatch=NotOlderThan")]
    {
        let answer = world.get(&with_query(&widgets.path(), &query)).await.refused(504, "Timeout");
        let answer = answer.mentions("Too large resource version");
        assert_eq!(answer.body["details"]["causes"][0]["reason"], "ResourceVersionTooLarge");
    }
    let answer = world.get(&with_query(&widgets.path(), "resourceVersion=abc")).await;
    answer.refused(400, "BadRequest").mentions("Invalid value");
}

async fn a_version_match_needs_a_version(world: World) {
    let widgets = widgets(&world, 1).await;
    for (query, field) in [
        ("resourceVersionMatch=Exact", "resourceVersionMatch"),
        ("resourceVersionMatch=NotOlderThan", "resourceVersionMatch"),
        ("resourceVersion=0&resourceVersionMatch=Exact", "resourceVersionMatch"),
        ("resourceVersion=5&resourceVersionMatch=Sometimes", "resourceVersionMatch"),
    ] {
        let answer = world.get(&with_query(&widgets.path(), query)).await;
        answer.refused(422, "Invalid").mentions(field);
    }
}

async fn version_zero_is_answered_with_anything_known(world: World) {
    let widgets = widgets(&world, 2).await;
    world.until(&with_query(&widgets.path(), "resourceVersion=0"), |list| names(&list.body) == ["w0", "w1"]).await;
    // With a limit, too: answers from memory are not cut into pages by the original, so only the items count.
    let list = world.get(&with_query(&widgets.path(), "resourceVersion=0&limit=500")).await.ok();
    assert_eq!(names(&list), ["w0", "w1"]);
}

fn token(list: &Value) -> &str {
    list["metadata"]["continue"].as_str().unwrap_or_default()
}

async fn page(world: &World, widgets: &Widgets, last: &Value) -> crate::answer::Answer {
    world.get(&with_query(&widgets.path(), &format!("limit=2&continue={}", token(last)))).await
}
