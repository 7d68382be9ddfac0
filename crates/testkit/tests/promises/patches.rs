//! JSON patch and merge patch, and the content types that are not understood.

use serde_json::{Value, json};

use crate::widgets::{Widgets, anything, definition};
use crate::world::{APPLY, JSON, MERGE, STRATEGIC, World};

promises!(
    json_patch_carries_out_every_operation,
    json_patch_takes_a_missing_path_as_null_in_a_test,
    json_patch_that_cannot_be_carried_out_is_invalid,
    json_patch_replaces_even_what_is_missing,
    a_malformed_json_patch_is_a_bad_request,
    json_patch_is_all_or_nothing,
    merge_patch_merges_objects_and_replaces_the_rest,
    merge_patch_removes_with_null,
    a_malformed_merge_patch_is_a_bad_request,
    a_patch_cannot_rename_or_move_an_object,
    a_patch_cannot_change_what_the_system_sets,
    a_patch_cannot_make_something_else_of_an_object,
    odd_fields_of_operations_are_told,
    strategic_merge_is_not_for_custom_objects,
    an_unknown_patch_type_is_refused,
    a_patch_is_validated_like_an_update,
);

async fn widget(world: &World, spec: Value) -> Widgets {
    let widgets = world.install(definition(anything())).await;
    world.post(&widgets.path(), widgets.widget("a", spec)).await.ok();
    widgets
}

async fn json_patch_carries_out_every_operation(world: World) {
    let widgets = widget(&world, json!({"list": [1, 2, 3], "map": {"k": "v"}, "a/b": 1, "m~n": 2})).await;
    let patch = json!([
        {"op": "test", "path": "/spec/map/k", "value": "v"},
        {"op": "add", "path": "/spec/new", "value": {"deep": true}},
        {"op": "add", "path": "/spec/list/1", "value": 9},
        {"op": "add", "path": "/spec/list/-", "value": 4},
        {"op": "remove", "path": "/spec/list/0"},
        {"op": "replace", "path": "/spec/map/k", "value": "w"},
        {"op": "copy", "from": "/spec/map", "path": "/spec/copied"},
        {"op": "move", "from": "/spec/map/k", "path": "/spec/moved"},
        {"op": "replace", "path": "/spec/a~1b", "value": 10},
        {"op": "remove", "path": "/spec/m~0n"},
    ]);
    let patched = world.patch(JSON, &widgets.one("a"), patch).await.code(200).ok();
    assert_eq!(
        patched["spec"],
        json!({"list": [9, 2, 3, 4], "map": {}, "new": {"deep": true}, "copied": {"k": "w"}, "moved": "w", "a/b": 10})
    );
}

async fn json_patch_takes_a_missing_path_as_null_in_a_test(world: World) {
    let widgets = widget(&world, json!({})).await;
    // How clients add the first finalizer without treading on anybody's.
    let patch = json!([
        {"op": "test", "path": "/metadata/finalizers", "value": null},
        {"op": "add", "path": "/metadata/finalizers", "value": ["example.com/hold"]},
    ]);
    let patched = world.patch(JSON, &widgets.one("a"), patch.clone()).await.code(200).ok();
    assert_eq!(patched["metadata"]["finalizers"], json!(["example.com/hold"]));
    world.patch(JSON, &widgets.one("a"), patch).await.refused(422, "Invalid");
    let release = json!([
        {"op": "test", "path": "/metadata/finalizers/0", "value": "example.com/hold"},
        {"op": "remove", "path": "/metadata/finalizers/0"},
    ]);
    let patched = world.patch(JSON, &widgets.one("a"), release).await.code(200).ok();
    assert!(patched["metadata"].get("finalizers").is_none(), "{patched}");
}

async fn json_patch_that_cannot_be_carried_out_is_invalid(world: World) {
    let widgets = widget(&world, json!({"x": 1, "list": [1]})).await;
    for operation in [
        json!({"op": "test", "path": "/spec/x", "value": 2}),
        json!({"op": "test", "path": "/spec/nope", "value": 1}),
        json!({"op": "remove", "path": "/spec/nope"}),
        json!({"op": "remove", "path": "/spec/nope/deeper"}),
        json!({"op": "add", "path": "/spec/nope/deeper", "value": 1}),
        json!({"op": "remove", "path": "/spec/list/5"}),
        json!({"op": "add", "path": "/spec/list/5", "value": 1}),
        json!({"op": "move", "from": "/spec/nope", "path": "/spec/y"}),
    ] {
        let answer = world.patch(JSON, &widgets.one("a"), json!([operation.clone()])).await;
        assert_eq!(answer.code, 422, "{operation}: {}", answer.text);
        answer.refused(422, "Invalid").mentions("the server rejected our request due to an error in our request");
    }
}

async fn json_patch_replaces_even_what_is_missing(world: World) {
    let widgets = widget(&world, json!({})).await;
    let patch = json!([{"op": "replace", "path": "/spec/x", "value": 1}]);
    assert_eq!(world.patch(JSON, &widgets.one("a"), patch).await.code(200).ok()["spec"], json!({"x": 1}));
}

async fn a_malformed_json_patch_is_a_bad_request(world: World) {
    let widgets = widget(&world, json!({})).await;
    for patch in [json!({"op": "add"}), json!("text"), json!(7)] {
        let answer = world.patch(JSON, &widgets.one("a"), patch).await.refused(400, "BadRequest");
        answer.mentions("error decoding patch");
    }
}

async fn json_patch_is_all_or_nothing(world: World) {
    let widgets = widget(&world, json!({"x": 1})).await;
    let patch = json!([
        {"op": "replace", "path": "/spec/x", "value": 2},
        {"op": "remove", "path": "/spec/nope"},
    ]);
    world.patch(JSON, &widgets.one("a"), patch).await.refused(422, "Invalid");
    assert_eq!(world.get(&widgets.one("a")).await.ok()["spec"], json!({"x": 1}));
}

async fn merge_patch_merges_objects_and_replaces_the_rest(world: World) {
    let widgets = widget(&world, json!({"map": {"a": 1, "b": 2}, "list": [1, 2], "text": "t"})).await;
    let patch = json!({"spec": {"map": {"b": 3, "c": {"d": 4}}, "list": [9], "text": {"now": "a map"}}});
    let patched = world.patch(MERGE, &widgets.one("a"), patch).await.code(200).ok();
    assert_eq!(patched["spec"], json!({"map": {"a": 1, "b": 3, "c": {"d": 4}}, "list": [9], "text": {"now": "a map"}}));
}

async fn merge_patch_removes_with_null(world: World) {
    let widgets = widget(&world, json!({"map": {"a": 1, "b": 2}, "x": 1})).await;
    let patch = json!({"spec": {"map": {"a": null}, "x": null, "nope": null}});
    assert_eq!(world.patch(MERGE, &widgets.one("a"), patch).await.ok()["spec"], json!({"map": {"b": 2}}));
}

async fn a_malformed_merge_patch_is_a_bad_request(world: World) {
    let widgets = widget(&world, json!({})).await;
    let headers = [("content-type", MERGE)];
    for body in ["{", "", "[1]", "\"text\""] {
        let answer = world.send(http::Method::PATCH, &widgets.one("a"), &headers, body.as_bytes().to_vec()).await;
        assert_eq!(answer.code, 400, "{body:?}: {}", answer.text);
        answer.refused(400, "BadRequest");
    }
}

async fn a_patch_cannot_rename_or_move_an_object(world: World) {
    let widgets = widget(&world, json!({})).await;
    let renamed = json!({"metadata": {"name": "b"}});
    world
        .patch(MERGE, &widgets.one("a"), renamed)
        .await
        .refused(400, "BadRequest")
        .mentions("does not match the name on the URL");
    let moved = json!({"metadata": {"namespace": "elsewhere"}});
    world.patch(MERGE, &widgets.one("a"), moved).await.refused(400, "BadRequest");
    let turned = json!({"kind": "Gadget"});
    let answer = world.patch(MERGE, &widgets.one("a"), turned).await;
    answer.refused(422, "Invalid").causes(&[("FieldValueInvalid", "kind")]);
}

async fn a_patch_cannot_change_what_the_system_sets(world: World) {
    let widgets = widget(&world, json!({})).await;
    let before = world.get(&widgets.one("a")).await.ok();
    let patch = json!({"metadata": {"creationTimestamp": "2001-01-01T00:00:00Z", "generation": 9}});
    let after = world.patch(MERGE, &widgets.one("a"), patch).await.code(200).ok();
    assert_eq!(after["metadata"], before["metadata"]);
    let mark = json!({"metadata": {"deletionTimestamp": "2001-01-01T00:00:00Z"}});
    let answer = world.patch(MERGE, &widgets.one("a"), mark).await.refused(422, "Invalid");
    let answer = answer.causes(&[("FieldValueInvalid", "metadata.deletionTimestamp")]);
    answer.mentions("field is immutable");
    let answer = world.patch(MERGE, &widgets.one("a"), json!({"metadata": {"uid": "other"}})).await;
    answer.refused(422, "Invalid").causes(&[("FieldValueInvalid", "metadata.uid")]);
}

async fn strategic_merge_is_not_for_custom_objects(world: World) {
    let widgets = widget(&world, json!({})).await;
    let answer = world.patch(STRATEGIC, &widgets.one("a"), json!({"spec": {}})).await;
    answer.refused(415, "UnsupportedMediaType").says(&format!(
        "the body of the request was in an unknown format - accepted media types include: {JSON}, {MERGE}, {APPLY}"
    ));
}

async fn an_unknown_patch_type_is_refused(world: World) {
    world.map("a", json!({})).await;
    let one = format!("{}/a", world.maps());
    for content_type in ["application/json", "text/plain"] {
        let answer = world.patch(content_type, &one, json!({})).await.refused(415, "UnsupportedMediaType");
        answer.says("415: Unsupported Media Type");
    }
}

async fn a_patch_is_validated_like_an_update(world: World) {
    world.map("a", json!({})).await;
    let one = format!("{}/a", world.maps());
    let answer = world.patch(MERGE, &one, json!({"metadata": {"labels": {"bad key!": "v"}}})).await;
    answer.refused(422, "Invalid").causes(&[("FieldValueInvalid", "metadata.labels")]);
    let answer = world.patch(MERGE, &one, json!({"data": {"k": 5}})).await;
    assert!(matches!(answer.code, 400 | 422), "{}", answer.text);
}

async fn a_patch_cannot_make_something_else_of_an_object(world: World) {
    let map = world.map("a", json!({})).await;
    let one = format!("{}/a", world.maps());
    for patch in [json!({"kind": "Secret"}), json!({"apiVersion": "v2"})] {
        let answer = world.patch(MERGE, &one, patch.clone()).await.refused(422, "Invalid");
        answer.causes(&[("FieldValueInvalid", "patch")]);
        // This kind of patch is read into what the object is.
        assert_eq!(world.patch(STRATEGIC, &one, patch).await.code(200).ok(), map);
    }
    let widgets = widget(&world, json!({})).await;
    let before = world.get(&widgets.one("a")).await.ok();
    for (patch, field) in [
        (json!({"kind": "Gadget"}), "kind"),
        (json!({"apiVersion": "v2"}), "apiVersion"),
        (json!({"kind": null}), "patch"),
    ] {
        let answer = world.patch(MERGE, &widgets.one("a"), patch).await.refused(422, "Invalid");
        answer.causes(&[("FieldValueInvalid", field)]);
    }
    for patch in [json!({"kind": "Gadget"}), json!({"apiVersion": "v2"})] {
        let shown = world.patch(MERGE, &format!("{}/status", widgets.one("a")), patch).await.code(200).ok();
        for field in ["apiVersion", "kind", "spec", "status"] {
            assert_eq!(shown.get(field), before.get(field), "of a status nothing else is taken over");
        }
    }
}

async fn odd_fields_of_operations_are_told(world: World) {
    let widgets = widget(&world, json!({"x": 1})).await;
    let patch = json!([{"op": "replace", "path": "/spec/x", "value": 2, "valu": 3}]);
    let strict = format!("{}?fieldValidation=Strict", widgets.one("a"));
    let answer = world.patch(JSON, &strict, patch.clone()).await.refused(422, "Invalid");
    answer.mentions("strict decoding error: json patch unknown field \"[0].valu\"");
    let answer = world.patch(JSON, &widgets.one("a"), patch).await.code(200);
    assert_eq!(answer.warnings(), ["json patch unknown field \"[0].valu\""]);
    assert_eq!(answer.ok()["spec"]["x"], 2);
}
