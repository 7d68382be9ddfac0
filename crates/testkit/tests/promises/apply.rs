//! Server-side apply: fields, their owners, and conflicts between them.

use serde_json::{Value, json};

use crate::answer::version;
use crate::widgets::{Widgets, anything, definition, properties};
use crate::world::{APPLY, MERGE, World, with_query};

promises!(
    apply_creates_what_is_missing,
    apply_changes_what_is_mine,
    a_field_of_another_manager_conflicts,
    several_conflicts_are_all_named,
    a_conflict_names_the_version_of_an_updater,
    force_takes_the_field_over,
    agreeing_managers_share_a_field,
    a_field_that_is_no_longer_applied_goes,
    a_shared_field_stays_until_its_last_owner_lets_go,
    a_field_of_an_updater_stays_when_an_applier_lets_go,
    applying_the_same_again_changes_nothing,
    apply_needs_a_manager,
    force_is_for_apply_only,
    apply_needs_kind_and_version,
    apply_must_name_its_object,
    apply_must_not_bring_managed_fields,
    apply_with_a_stale_version_conflicts,
    apply_with_a_wrong_uid_conflicts,
    apply_reads_yaml,
    apply_of_a_field_outside_the_schema_is_refused,
    status_is_applied_on_its_own,
    apply_to_status_needs_an_existing_object,
    apply_is_validated,
);

fn map(data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data})
}

fn one(world: &World) -> String {
    format!("{}/a", world.maps())
}

async fn data(world: &World) -> Value {
    world.get(&one(world)).await.ok()["data"].take()
}

async fn apply_creates_what_is_missing(world: World) {
    let made = world.apply("alice", &one(&world), map(json!({"k": "1"}))).await.code(201).ok();
    assert_eq!(made["data"], json!({"k": "1"}));
    world.apply("alice", &one(&world), map(json!({"k": "1"}))).await.code(200);
    let widgets = world.install(definition(anything())).await;
    let made = world.apply("alice", &widgets.one("a"), widgets.widget("a", json!({"x": 1}))).await.code(201).ok();
    assert_eq!(made["metadata"]["generation"], 1);
}

async fn apply_changes_what_is_mine(world: World) {
    world.apply("alice", &one(&world), map(json!({"k": "1"}))).await.code(201);
    let after = world.apply("alice", &one(&world), map(json!({"k": "2", "j": "1"}))).await.code(200).ok();
    assert_eq!(after["data"], json!({"k": "2", "j": "1"}));
}

async fn a_field_of_another_manager_conflicts(world: World) {
    world.apply("alice", &one(&world), map(json!({"k": "1"}))).await.code(201);
    let answer = world.apply("bob", &one(&world), map(json!({"k": "2"}))).await.refused(409, "Conflict");
    let answer = answer.says("Apply failed with 1 conflict: conflict with \"alice\": .data.k");
    assert_eq!(
        answer.body["details"],
        json!({"causes": [{"reason": "FieldManagerConflict", "message": "conflict with \"alice\"", "field": ".data.k"}]})
    );
    assert_eq!(data(&world).await, json!({"k": "1"}));
}

async fn several_conflicts_are_all_named(world: World) {
    world.apply("alice", &one(&world), map(json!({"k": "1", "j": "1"}))).await.code(201);
    let answer = world.apply("bob", &one(&world), map(json!({"k": "2", "j": "2"}))).await.refused(409, "Conflict");
    let answer = answer.says("Apply failed with 2 conflicts: conflicts with \"alice\":\n- .data.j\n- .data.k");
    answer.causes(&[("FieldManagerConflict", ".data.j"), ("FieldManagerConflict", ".data.k")]);
    // With several managers each gets its own paragraph.
    world.apply("carol", &one(&world), map(json!({"c": "1"}))).await.code(200);
    let answer = world.apply("bob", &one(&world), map(json!({"k": "2", "c": "2"}))).await.refused(409, "Conflict");
    answer.says(
        "Apply failed with 2 conflicts: conflicts with \"alice\":\n- .data.k\nconflicts with \"carol\":\n- .data.c",
    );
}

async fn a_conflict_names_the_version_of_an_updater(world: World) {
    let widgets = world.install(definition(anything())).await;
    world.post(&with_query(&widgets.path(), "fieldManager=updater"), widgets.widget("a", json!({"x": 1}))).await.ok();
    let answer = world.apply("bob", &widgets.one("a"), widgets.widget("a", json!({"x": 2}))).await;
    let group = &widgets.group;
    answer
        .refused(409, "Conflict")
        .says(&format!("Apply failed with 1 conflict: conflict with \"updater\" using {group}/v1: .spec.x"));
}

async fn force_takes_the_field_over(world: World) {
    world.apply("alice", &one(&world), map(json!({"k": "1"}))).await.code(201);
    let after = world.force("bob", &one(&world), map(json!({"k": "2"}))).await.code(200).ok();
    assert_eq!(after["data"], json!({"k": "2"}));
    world.apply("alice", &one(&world), map(json!({"k": "3"}))).await.refused(409, "Conflict").mentions("\"bob\"");
    world.apply("bob", &one(&world), map(json!({"k": "4"}))).await.code(200);
}

async fn agreeing_managers_share_a_field(world: World) {
    world.apply("alice", &one(&world), map(json!({"k": "1"}))).await.code(201);
    world.apply("bob", &one(&world), map(json!({"k": "1"}))).await.code(200);
    world.apply("alice", &one(&world), map(json!({"k": "2"}))).await.refused(409, "Conflict").mentions("\"bob\"");
}

async fn a_field_that_is_no_longer_applied_goes(world: World) {
    world.apply("alice", &one(&world), map(json!({"k": "1", "j": "1"}))).await.code(201);
    let after = world.apply("alice", &one(&world), map(json!({"k": "1"}))).await.code(200).ok();
    assert_eq!(after["data"], json!({"k": "1"}));
    let mut nothing = map(json!({}));
    nothing.as_object_mut().unwrap().remove("data");
    let after = world.apply("alice", &one(&world), nothing).await.code(200).ok();
    assert!(after.get("data").is_none(), "{after}");
}

async fn a_shared_field_stays_until_its_last_owner_lets_go(world: World) {
    world.apply("alice", &one(&world), map(json!({"k": "1"}))).await.code(201);
    world.apply("bob", &one(&world), map(json!({"k": "1"}))).await.code(200);
    world.apply("alice", &one(&world), map(json!({}))).await.code(200);
    assert_eq!(data(&world).await, json!({"k": "1"}));
    let after = world.apply("bob", &one(&world), map(json!({}))).await.code(200).ok();
    assert!(after["data"]["k"].is_null(), "{after}");
}

async fn a_field_of_an_updater_stays_when_an_applier_lets_go(world: World) {
    world.post(&with_query(&world.maps(), "fieldManager=updater"), map(json!({"k": "1"}))).await.ok();
    world.apply("alice", &one(&world), map(json!({"k": "1", "j": "1"}))).await.code(200);
    world.apply("alice", &one(&world), map(json!({}))).await.code(200);
    assert_eq!(data(&world).await, json!({"k": "1"}));
}

async fn applying_the_same_again_changes_nothing(world: World) {
    let first = world.apply("alice", &one(&world), map(json!({"k": "1"}))).await.code(201).ok();
    for _ in 0..2 {
        let again = world.apply("alice", &one(&world), map(json!({"k": "1"}))).await.code(200).ok();
        assert_eq!(again, first);
    }
}

async fn apply_needs_a_manager(world: World) {
    let answer = world.patch(APPLY, &one(&world), map(json!({}))).await.refused(422, "Invalid");
    let answer = answer.causes(&[("FieldValueRequired", "fieldManager")]).about("meta.k8s.io", "PatchOptions", "");
    answer.says("PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch");
    let answer = world.apply(&"m".repeat(129), &one(&world), map(json!({}))).await.refused(422, "Invalid");
    answer.mentions("fieldManager: Too long: may not be more than 128 bytes");
}

async fn force_is_for_apply_only(world: World) {
    world.map("a", json!({})).await;
    let answer = world.patch(MERGE, &with_query(&one(&world), "force=true"), json!({})).await.refused(422, "Invalid");
    answer.says("PatchOptions.meta.k8s.io \"\" is invalid: force: Forbidden: may not be specified for non-apply patch");
}

async fn apply_needs_kind_and_version(world: World) {
    let answer = world.apply("alice", &one(&world), json!({"metadata": {"name": "a"}})).await;
    answer.refused(400, "BadRequest").says("invalid object type: /, Kind=");
    let other = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}});
    world
        .apply("alice", &one(&world), other)
        .await
        .refused(400, "BadRequest")
        .says("invalid object type: /v1, Kind=Secret");
}

async fn apply_must_name_its_object(world: World) {
    let mut other = map(json!({}));
    other["metadata"]["name"] = json!("b");
    let answer = world.apply("alice", &one(&world), other).await.refused(400, "BadRequest");
    answer.says("the name of the object (b) does not match the name on the URL (a)");
    let unnamed = json!({"apiVersion": "v1", "kind": "ConfigMap"});
    let answer = world.apply("alice", &one(&world), unnamed).await.refused(400, "BadRequest");
    answer.says("the name of the object (a based on URL) was undeterminable: name must be provided");
    // What is there has a name.
    world.map("a", json!({})).await;
    let unnamed = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"k": "v"}});
    assert_eq!(world.apply("alice", &one(&world), unnamed).await.code(200).ok()["data"], json!({"k": "v"}));
}

async fn apply_must_not_bring_managed_fields(world: World) {
    let mut body = map(json!({}));
    body["metadata"]["managedFields"] = json!([{"manager": "alice"}]);
    let answer = world.apply("alice", &one(&world), body).await;
    answer.refused(400, "BadRequest").says("metadata.managedFields must be nil");
}

async fn apply_with_a_stale_version_conflicts(world: World) {
    let first = world.apply("alice", &one(&world), map(json!({"k": "1"}))).await.code(201).ok();
    let second = world.apply("alice", &one(&world), map(json!({"k": "2"}))).await.code(200).ok();
    let mut body = map(json!({"k": "3"}));
    body["metadata"]["resourceVersion"] = json!(version(&first));
    world
        .apply("alice", &one(&world), body.clone())
        .await
        .refused(409, "Conflict")
        .mentions("the object has been modified");
    body["metadata"]["resourceVersion"] = json!(version(&second));
    world.apply("alice", &one(&world), body).await.code(200);
}

async fn apply_with_a_wrong_uid_conflicts(world: World) {
    let mut body = map(json!({"k": "1"}));
    body["metadata"]["uid"] = json!("6b1b9a5c-0000-4000-8000-000000000003");
    // Nothing is created for somebody who believes that it exists.
    let answer = world.apply("alice", &one(&world), body).await.refused(409, "Conflict");
    answer.mentions("uid mismatch");
}

async fn apply_reads_yaml(world: World) {
    let yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  k: |\n    two\n    lines\n";
    let path = with_query(&one(&world), "fieldManager=alice");
    let answer = world.send(http::Method::PATCH, &path, &[("content-type", APPLY)], yaml.into()).await.code(201);
    assert_eq!(answer.ok()["data"], json!({"k": "two\nlines\n"}));
}

async fn apply_of_a_field_outside_the_schema_is_refused(world: World) {
    let mut body = map(json!({}));
    body["nope"] = json!({"k": 1});
    let answer = world.apply("alice", &one(&world), body).await.code(500);
    // The original fails here without a reason, and names the object as the body does: without a namespace.
    answer.says("failed to create typed patch object (/a; /v1, Kind=ConfigMap): .nope: field not declared in schema");
}

async fn widget_with_status(world: &World) -> Widgets {
    let widgets = world.install(definition(anything())).await;
    world.apply("alice", &widgets.one("a"), widgets.widget("a", json!({"x": 1}))).await.code(201);
    widgets
}

async fn status_is_applied_on_its_own(world: World) {
    let widgets = widget_with_status(&world).await;
    let mut body = widgets.widget("a", json!({"x": 9}));
    body["status"] = json!({"phase": "Ready"});
    let path = format!("{}/status", widgets.one("a"));
    let after = world.apply("controller", &path, body.clone()).await.code(200).ok();
    assert_eq!((&after["spec"], &after["status"]), (&json!({"x": 1}), &json!({"phase": "Ready"})));
    body.as_object_mut().unwrap().remove("spec");
    body["status"] = json!({"phase": "Failed"});
    let answer = world.apply("other", &path, body).await.refused(409, "Conflict");
    answer
        .says("Apply failed with 1 conflict: conflict with \"controller\" with subresource \"status\": .status.phase");
    // Applying the object again does not take the status away.
    world.apply("alice", &widgets.one("a"), widgets.widget("a", json!({"x": 2}))).await.code(200);
    assert_eq!(world.get(&widgets.one("a")).await.ok()["status"], json!({"phase": "Ready"}));
}

async fn apply_to_status_needs_an_existing_object(world: World) {
    let widgets = world.install(definition(anything())).await;
    let mut body = widgets.widget("a", json!({}));
    body["status"] = json!({"phase": "Ready"});
    let answer = world.apply("controller", &format!("{}/status", widgets.one("a")), body).await;
    answer.refused(404, "NotFound").about(&widgets.group, "widgets", "a");
}

async fn apply_is_validated(world: World) {
    let schema = properties(json!({"count": {"type": "integer", "maximum": 5}}));
    let widgets = world.install(definition(schema)).await;
    let answer = world.apply("alice", &widgets.one("a"), widgets.widget("a", json!({"count": 6}))).await;
    answer.refused(422, "Invalid").causes(&[("FieldValueInvalid", "spec.count")]);
    world.apply("alice", &widgets.one("a"), widgets.widget("a", json!({"count": 5}))).await.code(201);
}
