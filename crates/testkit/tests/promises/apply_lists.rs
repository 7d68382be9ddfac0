//! Server-side apply where the schema says how lists and maps merge.

use serde_json::{Value, json};

use crate::widgets::{Widgets, definition, properties};
use crate::world::{World, with_query};

promises!(
    a_list_without_a_type_belongs_to_one,
    items_of_a_set_belong_to_their_appliers,
    items_of_a_list_map_merge_by_key,
    an_item_goes_with_its_last_owner,
    a_list_map_may_have_several_keys_with_defaults,
    an_atomic_map_belongs_to_one,
    duplicates_in_a_set_or_list_map_are_refused,
    a_list_map_item_without_its_key_is_refused,
    containers_of_a_deployment_merge_by_name,
);

fn list(kind: &str, items: Value) -> Value {
    json!({"type": "array", "x-kubernetes-list-type": kind, "items": items})
}

async fn install(world: &World) -> Widgets {
    let item =
        properties(json!({"name": {"type": "string"}, "size": {"type": "integer"}, "extra": {"type": "string"}}));
    let mut by_name = list("map", item.clone());
    by_name["x-kubernetes-list-map-keys"] = json!(["name"]);
    by_name["items"]["required"] = json!(["name"]);
    let port = properties(json!({
        "port": {"type": "integer"}, "protocol": {"type": "string", "default": "TCP"}, "note": {"type": "string"},
    }));
    let mut by_port = list("map", port);
    by_port["x-kubernetes-list-map-keys"] = json!(["port", "protocol"]);
    by_port["items"]["required"] = json!(["port"]);
    world
        .install(definition(properties(json!({
            "plain": {"type": "array", "items": {"type": "string"}},
            "set": list("set", json!({"type": "string"})),
            "named": by_name,
            "ports": by_port,
            "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": {"type": "string"}},
        }))))
        .await
}

/// Applies a spec without force.
async fn apply(world: &World, widgets: &Widgets, manager: &str, spec: Value) -> crate::answer::Answer {
    world.apply(manager, &widgets.one("a"), widgets.widget("a", spec)).await
}

async fn a_list_without_a_type_belongs_to_one(world: World) {
    let widgets = install(&world).await;
    apply(&world, &widgets, "alice", json!({"plain": ["x"]})).await.code(201);
    let answer = apply(&world, &widgets, "bob", json!({"plain": ["y"]})).await.refused(409, "Conflict");
    answer.causes(&[("FieldManagerConflict", ".spec.plain")]);
    let path = widgets.one("a");
    let after = world.force("bob", &path, widgets.widget("a", json!({"plain": ["y"]}))).await.ok();
    assert_eq!(after["spec"]["plain"], json!(["y"]));
}

async fn items_of_a_set_belong_to_their_appliers(world: World) {
    let widgets = install(&world).await;
    apply(&world, &widgets, "alice", json!({"set": ["x", "y"]})).await.code(201);
    let after = apply(&world, &widgets, "bob", json!({"set": ["y", "z"]})).await.code(200).ok();
    assert_eq!(after["spec"]["set"], json!(["x", "y", "z"]));
    let after = apply(&world, &widgets, "alice", json!({"set": []})).await.code(200).ok();
    assert_eq!(after["spec"]["set"], json!(["y", "z"]), "y is bob's, too");
}

async fn items_of_a_list_map_merge_by_key(world: World) {
    let widgets = install(&world).await;
    apply(&world, &widgets, "alice", json!({"named": [{"name": "p", "size": 1}]})).await.code(201);
    let both = json!({"named": [{"name": "p", "extra": "e"}, {"name": "q", "size": 2}]});
    let after = apply(&world, &widgets, "bob", both).await.code(200).ok();
    assert_eq!(after["spec"]["named"], json!([{"name": "p", "size": 1, "extra": "e"}, {"name": "q", "size": 2}]));
    let answer = apply(&world, &widgets, "carol", json!({"named": [{"name": "p", "size": 9}]})).await;
    let answer = answer.refused(409, "Conflict").causes(&[("FieldManagerConflict", ".spec.named[name=\"p\"].size")]);
    answer.says("Apply failed with 1 conflict: conflict with \"alice\": .spec.named[name=\"p\"].size");
}

async fn an_item_goes_with_its_last_owner(world: World) {
    let widgets = install(&world).await;
    apply(&world, &widgets, "alice", json!({"named": [{"name": "p", "size": 1}, {"name": "q"}]})).await.code(201);
    apply(&world, &widgets, "bob", json!({"named": [{"name": "p", "extra": "e"}]})).await.code(200);
    let after = apply(&world, &widgets, "alice", json!({})).await.code(200).ok();
    assert_eq!(after["spec"]["named"], json!([{"name": "p", "extra": "e"}]));
}

async fn a_list_map_may_have_several_keys_with_defaults(world: World) {
    let widgets = install(&world).await;
    apply(&world, &widgets, "alice", json!({"ports": [{"port": 80}, {"port": 80, "protocol": "UDP"}]})).await.code(201);
    let after = apply(&world, &widgets, "bob", json!({"ports": [{"port": 80, "protocol": "TCP", "note": "n"}]}))
        .await
        .code(200)
        .ok();
    assert_eq!(
        after["spec"]["ports"],
        json!([{"port": 80, "protocol": "TCP", "note": "n"}, {"port": 80, "protocol": "UDP"}])
    );
}

async fn an_atomic_map_belongs_to_one(world: World) {
    let widgets = install(&world).await;
    apply(&world, &widgets, "alice", json!({"whole": {"a": "1"}})).await.code(201);
    let answer = apply(&world, &widgets, "bob", json!({"whole": {"b": "1"}})).await.refused(409, "Conflict");
    answer.causes(&[("FieldManagerConflict", ".spec.whole")]);
}

async fn duplicates_in_a_set_or_list_map_are_refused(world: World) {
    let widgets = install(&world).await;
    let answer = world.post(&widgets.path(), widgets.widget("a", json!({"set": ["x", "x"]}))).await;
    let answer = answer.refused(422, "Invalid").causes(&[("FieldValueDuplicate", "spec.set[1]")]);
    answer.mentions("spec.set[1]: Duplicate value: \"x\"");
    let twice = json!({"named": [{"name": "p"}, {"name": "p"}]});
    let answer = world.post(&widgets.path(), widgets.widget("a", twice.clone())).await;
    answer.refused(422, "Invalid").causes(&[("FieldValueDuplicate", "spec.named[1]")]);
    let answer = apply(&world, &widgets, "alice", twice).await;
    assert!(matches!(answer.code, 422 | 500), "{}", answer.text);
    assert!(answer.message().contains("duplicate") || answer.message().contains("Duplicate"), "{}", answer.text);
}

async fn a_list_map_item_without_its_key_is_refused(world: World) {
    let widgets = install(&world).await;
    let answer = apply(&world, &widgets, "alice", json!({"named": [{"size": 1}]})).await;
    assert!(matches!(answer.code, 422 | 500), "{}", answer.text);
    let answer = world.post(&widgets.path(), widgets.widget("a", json!({"named": [{"size": 1}]}))).await;
    answer.refused(422, "Invalid").causes(&[("FieldValueRequired", "spec.named[0].name")]);
}

async fn containers_of_a_deployment_merge_by_name(world: World) {
    let one = format!("{}/a", world.of_group("apps/v1", "deployments"));
    let deployment = |containers: Value, replicas: Value| {
        let template = json!({"metadata": {"labels": {"app": "a"}}, "spec": {"containers": containers}});
        let mut spec = json!({"selector": {"matchLabels": {"app": "a"}}, "template": template});
        if replicas.is_number() {
            spec["replicas"] = replicas;
        }
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": spec})
    };
    let main = json!([{"name": "main", "image": "i:1"}]);
    world.apply("alice", &one, deployment(main.clone(), json!(2))).await.code(201);
    let side = json!([{"name": "side", "image": "s:1"}]);
    let after = world.apply("bob", &one, deployment(side, json!(null))).await.code(200).ok();
    let names: Vec<_> =
        after["spec"]["template"]["spec"]["containers"].as_array().unwrap().iter().map(|c| c["name"].clone()).collect();
    assert_eq!(names, [json!("main"), json!("side")]);
    // Somebody scales; whoever still applies a number is told so, whoever leaves it out is not.
    world
        .patch(
            crate::world::MERGE,
            &with_query(&format!("{one}/scale"), "fieldManager=scaler"),
            json!({"spec": {"replicas": 5}}),
        )
        .await
        .ok();
    let answer = world.apply("alice", &one, deployment(main.clone(), json!(2))).await.refused(409, "Conflict");
    answer.causes(&[("FieldManagerConflict", ".spec.replicas")]);
    let after = world.apply("alice", &one, deployment(main, json!(null))).await.code(200).ok();
    assert_eq!(after["spec"]["replicas"], 5);
}
