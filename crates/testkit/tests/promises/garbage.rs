//! What happens to dependants when their owner goes.

use serde_json::{Value, json};

use crate::widgets::{anything, definition};
use crate::world::{MERGE, World};

promises_of_controllers!(
    in_the_background_dependants_follow_their_owner,
    in_the_foreground_the_owner_waits_for_its_dependants,
    in_the_foreground_only_blocking_dependants_are_waited_for,
    orphans_stay_and_lose_their_owner,
    a_dependant_with_another_living_owner_stays,
    a_dependant_of_an_absent_owner_is_collected,
    a_dependant_of_an_owner_with_another_uid_is_collected,
    a_chain_of_owners_is_collected_to_its_end,
    a_held_dependant_is_marked_and_waits,
    an_owner_in_another_namespace_does_not_exist,
    custom_objects_own_and_are_owned,
    an_owner_reference_must_be_complete,
    only_one_owner_may_be_the_controller,
    an_owner_that_is_listed_twice_is_one_owner,
);

/// A reference to an owner.
fn owner(of: &Value) -> Value {
    let meta = &of["metadata"];
    let (version, kind) = (&of["apiVersion"], &of["kind"]);
    json!({"apiVersion": version, "kind": kind, "name": meta["name"], "uid": meta["uid"]})
}

fn blocking(of: &Value) -> Value {
    let mut reference = owner(of);
    reference["blockOwnerDeletion"] = json!(true);
    reference
}

async fn owned(world: &World, name: &str, owners: &[Value]) -> Value {
    let body = json!({"metadata": {"name": name, "ownerReferences": owners}});
    world.post(&world.maps(), body).await.ok()
}

fn one(world: &World, name: &str) -> String {
    format!("{}/{name}", world.maps())
}

async fn in_the_background_dependants_follow_their_owner(world: World) {
    let parent = world.map("parent", json!({})).await;
    owned(&world, "child", &[owner(&parent)]).await;
    world.delete(&one(&world, "parent"), json!({"propagationPolicy": "Background"})).await.code(200);
    world.get(&one(&world, "parent")).await.refused(404, "NotFound");
    world.gone(&one(&world, "child")).await;
}

async fn in_the_foreground_the_owner_waits_for_its_dependants(world: World) {
    let parent = world.map("parent", json!({})).await;
    owned(&world, "child", &[blocking(&parent)]).await;
    let hold = json!({"metadata": {"finalizers": ["example.com/hold"]}});
    world.patch(MERGE, &one(&world, "child"), hold).await.ok();
    let marked = world.delete(&one(&world, "parent"), json!({"propagationPolicy": "Foreground"})).await.code(200).ok();
    assert_eq!(marked["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    assert!(marked["metadata"]["deletionTimestamp"].is_string());

    world.until(&one(&world, "child"), |child| child.body["metadata"]["deletionTimestamp"].is_string()).await;
    world.get(&one(&world, "parent")).await.code(200);
    world.patch(MERGE, &one(&world, "child"), json!({"metadata": {"finalizers": null}})).await.ok();
    world.gone(&one(&world, "child")).await;
    world.gone(&one(&world, "parent")).await;
}

async fn in_the_foreground_only_blocking_dependants_are_waited_for(world: World) {
    let parent = world.map("parent", json!({})).await;
    let held =
        json!({"metadata": {"name": "child", "ownerReferences": [owner(&parent)], "finalizers": ["example.com/hold"]}});
    world.post(&world.maps(), held).await.ok();
    world.delete(&one(&world, "parent"), json!({"propagationPolicy": "Foreground"})).await.code(200);
    world.gone(&one(&world, "parent")).await;
    world.until(&one(&world, "child"), |child| child.body["metadata"]["deletionTimestamp"].is_string()).await;
    world.patch(MERGE, &one(&world, "child"), json!({"metadata": {"finalizers": null}})).await.ok();
    world.gone(&one(&world, "child")).await;
}

async fn orphans_stay_and_lose_their_owner(world: World) {
    let parent = world.map("parent", json!({})).await;
    let other = world.map("other", json!({})).await;
    owned(&world, "child", &[owner(&parent), owner(&other)]).await;
    owned(&world, "only", &[owner(&parent)]).await;
    world.delete(&one(&world, "parent"), json!({"propagationPolicy": "Orphan"})).await.code(200);
    world.gone(&one(&world, "parent")).await;
    let child = world.get(&one(&world, "child")).await.code(200).ok();
    assert_eq!(child["metadata"]["ownerReferences"], json!([owner(&other)]));
    let only = world.get(&one(&world, "only")).await.code(200).ok();
    assert!(only["metadata"].get("ownerReferences").is_none());
}

async fn a_dependant_with_another_living_owner_stays(world: World) {
    let (first, second) = (world.map("first", json!({})).await, world.map("second", json!({})).await);
    owned(&world, "child", &[owner(&first), owner(&second)]).await;
    world.delete(&one(&world, "first"), json!({"propagationPolicy": "Background"})).await.code(200);
    // The reference to the owner that is gone is taken away, which shows that the collector looked and let it live.
    let wanted = json!([owner(&second)]);
    world.until(&one(&world, "child"), |child| child.body["metadata"]["ownerReferences"] == wanted).await;
    world.delete(&one(&world, "second"), json!({"propagationPolicy": "Background"})).await.code(200);
    world.gone(&one(&world, "child")).await;
}

async fn a_dependant_of_an_absent_owner_is_collected(world: World) {
    let absent = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "never", "uid": "6b1b9a5c-0000-4000-8000-000000000001"});
    owned(&world, "child", &[absent]).await;
    world.gone(&one(&world, "child")).await;
}

async fn a_dependant_of_an_owner_with_another_uid_is_collected(world: World) {
    let mut parent = world.map("parent", json!({})).await;
    parent["metadata"]["uid"] = json!("6b1b9a5c-0000-4000-8000-000000000002");
    owned(&world, "child", &[owner(&parent)]).await;
    world.gone(&one(&world, "child")).await;
    world.get(&one(&world, "parent")).await.code(200);
}

async fn a_chain_of_owners_is_collected_to_its_end(world: World) {
    let mut last = world.map("link-0", json!({})).await;
    for link in 1..5 {
        last = owned(&world, &format!("link-{link}"), &[blocking(&last)]).await;
    }
    world.delete(&one(&world, "link-0"), json!({"propagationPolicy": "Foreground"})).await.code(200);
    for link in 0..5 {
        world.gone(&one(&world, &format!("link-{link}"))).await;
    }
}

async fn a_held_dependant_is_marked_and_waits(world: World) {
    let parent = world.map("parent", json!({})).await;
    let held =
        json!({"metadata": {"name": "child", "ownerReferences": [owner(&parent)], "finalizers": ["example.com/hold"]}});
    world.post(&world.maps(), held).await.ok();
    world.delete(&one(&world, "parent"), json!({"propagationPolicy": "Background"})).await.code(200);
    world.until(&one(&world, "child"), |child| child.body["metadata"]["deletionTimestamp"].is_string()).await;
    world.patch(MERGE, &one(&world, "child"), json!({"metadata": {"finalizers": null}})).await.code(200);
    world.gone(&one(&world, "child")).await;
}

async fn an_owner_in_another_namespace_does_not_exist(world: World) {
    let elsewhere = crate::world::unique("elsewhere");
    world.post("/api/v1/namespaces", json!({"metadata": {"name": elsewhere}})).await.ok();
    let maps = format!("/api/v1/namespaces/{elsewhere}/configmaps");
    let parent = world.post(&maps, json!({"metadata": {"name": "parent"}})).await.ok();
    owned(&world, "child", &[owner(&parent)]).await;
    world.gone(&one(&world, "child")).await;
    world.get(&format!("{maps}/parent")).await.code(200);
}

async fn custom_objects_own_and_are_owned(world: World) {
    let widgets = world.install(definition(anything())).await;
    let parent = world.post(&widgets.path(), widgets.widget("parent", json!({}))).await.ok();
    let mut child = widgets.widget("child", json!({}));
    child["metadata"]["ownerReferences"] = json!([owner(&parent)]);
    world.post(&widgets.path(), child).await.ok();
    owned(&world, "child", &[owner(&parent)]).await;
    world.delete(&widgets.one("parent"), json!({"propagationPolicy": "Background"})).await.code(200);
    world.gone(&one(&world, "child")).await;
    world.gone(&widgets.one("child")).await;
}

async fn an_owner_reference_must_be_complete(world: World) {
    let body = json!({"metadata": {"name": "a", "ownerReferences": [{}]}});
    world.post(&world.maps(), body).await.refused(422, "Invalid").causes(&[
        ("FieldValueInvalid", "metadata.ownerReferences.apiVersion"),
        ("FieldValueInvalid", "metadata.ownerReferences.kind"),
        ("FieldValueInvalid", "metadata.ownerReferences.name"),
        ("FieldValueInvalid", "metadata.ownerReferences.uid"),
    ]);
}

async fn only_one_owner_may_be_the_controller(world: World) {
    let (first, second) = (world.map("first", json!({})).await, world.map("second", json!({})).await);
    let mut references = [owner(&first), owner(&second)];
    for reference in &mut references {
        reference["controller"] = json!(true);
    }
    let body = json!({"metadata": {"name": "a", "ownerReferences": references}});
    let answer = world.post(&world.maps(), body).await.refused(422, "Invalid");
    answer.mentions("Only one reference can have Controller set to true");
}

async fn an_owner_that_is_listed_twice_is_one_owner(world: World) {
    let parent = world.map("parent", json!({})).await;
    let mut reference = owner(&parent);
    reference["controller"] = json!(true);
    let body = json!({"metadata": {"name": "child", "ownerReferences": [reference, reference]}});
    let made = world.post(&world.maps(), body).await.code(201);
    assert!(made.warnings().iter().any(|text| text.contains("contains duplicate entries")), "{:?}", made.warnings());
    assert_eq!(made.ok()["metadata"]["ownerReferences"], json!([reference]));
}
