//! Several versions of a custom kind, each with a schema of its own; and one schema that changes under its objects.
//!
//! What is stored is the object in the storage version, as it was last written. What a client sees of it is decided
//! when it reads.

use serde_json::{Value, json};

use crate::answer::version;
use crate::widgets::{Widgets, definition, properties};
use crate::world::{JSON, MERGE, World};

promises!(
    each_version_shows_what_its_schema_knows,
    a_write_through_a_version_drops_what_it_does_not_know,
    only_what_the_stored_version_knows_is_stored,
    a_field_that_leaves_the_schema_and_returns_is_still_there,
    a_write_forgets_what_the_schema_does_not_know,
    a_new_default_shows_at_once,
);

/// `v1`, stored, knows `a` and `b`; `v2` knows `a`, and `c` with a default.
async fn two_schemas(world: &World) -> Widgets {
    let text = json!({"type": "string"});
    let mut both = definition(properties(json!({"a": text, "b": text})));
    let mut second = both["spec"]["versions"][0].clone();
    second["name"] = json!("v2");
    second["storage"] = json!(false);
    second["schema"]["openAPIV3Schema"]["properties"]["spec"] =
        properties(json!({"a": text, "c": {"type": "string", "default": "usual"}}));
    both["spec"]["versions"].as_array_mut().unwrap().push(second);
    world.install(both).await
}

fn in_v2(widgets: &Widgets, name: &str) -> String {
    format!("{}/{name}", widgets.path_in("v2"))
}

async fn each_version_shows_what_its_schema_knows(world: World) {
    let widgets = two_schemas(&world).await;
    let sent = widgets.widget("x", json!({"a": "1", "b": "2", "c": "3"}));
    let made = world.post(&widgets.path(), sent).await.code(201).ok();
    assert_eq!(made["spec"], json!({"a": "1", "b": "2"}));
    let new = world.get(&in_v2(&widgets, "x")).await.code(200).ok();
    // Defaults are those of the stored version: reading through another adds none.
    assert_eq!(new["spec"], json!({"a": "1"}));
    assert_eq!(version(&new), version(&made));
    let list = world.get(&widgets.path_in("v2")).await.ok();
    assert_eq!(list["items"][0]["spec"], json!({"a": "1"}));
    let mut watch = world.watch(&widgets.path_in("v2"), "resourceVersion=0").await;
    assert_eq!(watch.next().await["object"]["spec"], json!({"a": "1"}));
    assert_eq!(world.get(&widgets.one("x")).await.ok()["spec"], json!({"a": "1", "b": "2"}));
}

async fn a_write_through_a_version_drops_what_it_does_not_know(world: World) {
    let widgets = two_schemas(&world).await;
    world.post(&widgets.path(), widgets.widget("x", json!({"a": "1", "b": "2"}))).await.ok();
    let patched = world.patch(MERGE, &in_v2(&widgets, "x"), json!({"spec": {"a": "9"}})).await.code(200).ok();
    assert_eq!(patched["spec"], json!({"a": "9"}));
    let seen = world.get(&widgets.one("x")).await.ok();
    assert_eq!((&seen["spec"], &seen["metadata"]["generation"]), (&json!({"a": "9"}), &json!(2)));
}

async fn only_what_the_stored_version_knows_is_stored(world: World) {
    let widgets = two_schemas(&world).await;
    let mut sent = widgets.widget("x", json!({"a": "1", "c": "mine"}));
    sent["apiVersion"] = json!(format!("{}/v2", widgets.group));
    let made = world.post(&widgets.path_in("v2"), sent).await.code(201).ok();
    assert_eq!(made["spec"], json!({"a": "1"}));
    let patched = world.patch(MERGE, &in_v2(&widgets, "x"), json!({"spec": {"c": "mine"}})).await.code(200).ok();
    assert_eq!(patched["spec"], json!({"a": "1"}));
    assert_eq!(world.get(&widgets.one("x")).await.ok()["spec"], json!({"a": "1"}));
}

/// A kind whose one version knows `a` and `b`, with a widget `x` that has both.
async fn one_schema(world: &World) -> (Widgets, Value) {
    let text = json!({"type": "string"});
    let widgets = world.install(definition(properties(json!({"a": text, "b": text})))).await;
    let made = world.post(&widgets.path(), widgets.widget("x", json!({"a": "1", "b": "2"}))).await.code(201).ok();
    (widgets, made)
}

/// Replaces the fields that the schema knows.
async fn learn(world: &World, widgets: &Widgets, fields: Value) {
    let path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
    let patch = json!([{"op": "replace", "path": path, "value": fields}]);
    world.patch(JSON, &widgets.definition, patch).await.code(200);
}

/// Waits until the widget `x` reads as wanted. The schema is in force a moment after it was written.
async fn reads(world: &World, widgets: &Widgets, spec: Value) -> Value {
    world.until(&widgets.one("x"), |answer| answer.body["spec"] == spec).await.ok()
}

async fn a_field_that_leaves_the_schema_and_returns_is_still_there(world: World) {
    let (widgets, made) = one_schema(&world).await;
    let text = json!({"type": "string"});
    learn(&world, &widgets, json!({"a": text})).await;
    assert_eq!(version(&reads(&world, &widgets, json!({"a": "1"})).await), version(&made));
    learn(&world, &widgets, json!({"a": text, "b": text})).await;
    assert_eq!(version(&reads(&world, &widgets, json!({"a": "1", "b": "2"})).await), version(&made));
}

async fn a_write_forgets_what_the_schema_does_not_know(world: World) {
    let (widgets, _) = one_schema(&world).await;
    let text = json!({"type": "string"});
    learn(&world, &widgets, json!({"a": text})).await;
    reads(&world, &widgets, json!({"a": "1"})).await;
    world.patch(MERGE, &widgets.one("x"), json!({"metadata": {"labels": {"l": "1"}}})).await.code(200);
    // With a default, so that one sees when the schema is in force.
    learn(&world, &widgets, json!({"a": text, "b": text, "d": {"type": "string", "default": "usual"}})).await;
    reads(&world, &widgets, json!({"a": "1", "d": "usual"})).await;
}

async fn a_new_default_shows_at_once(world: World) {
    let (widgets, made) = one_schema(&world).await;
    let text = json!({"type": "string"});
    learn(&world, &widgets, json!({"a": text, "b": text, "d": {"type": "string", "default": "usual"}})).await;
    let seen = reads(&world, &widgets, json!({"a": "1", "b": "2", "d": "usual"})).await;
    assert_eq!(version(&seen), version(&made), "nothing was written");
    let list = world.get(&widgets.path()).await.ok();
    assert_eq!(list["items"][0]["spec"]["d"], "usual");
}
