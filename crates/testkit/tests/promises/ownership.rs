//! `metadata.managedFields`: who is written down for what.

use serde_json::{Value, json};

use crate::widgets::{anything, definition};
use crate::world::{MERGE, World, with_query};

promises!(
    an_apply_is_written_down_as_such,
    an_update_is_written_down_with_what_it_changed,
    what_the_server_decides_is_nobodys,
    a_manager_has_one_entry_per_operation_and_subresource,
    the_manager_of_an_update_comes_from_the_user_agent,
    a_manager_is_named_in_characters_that_can_be_seen,
    an_update_takes_fields_from_appliers,
    the_time_moves_only_with_the_fields,
    an_owner_without_fields_is_forgotten,
    clearing_managed_fields_starts_afresh,
    after_clearing_an_apply_meets_before_first_apply,
    list_items_are_written_down_by_key,
    fields_without_a_schema_are_written_down_one_by_one,
    a_deletion_mark_is_nobodys_field,
);

fn map(data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data})
}

fn one(world: &World) -> String {
    format!("{}/a", world.maps())
}

/// The entries without their times, which are checked on the way.
fn entries(object: &Value) -> Vec<Value> {
    let mut entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    for entry in &mut entries {
        let time = entry.as_object_mut().unwrap().remove("time").expect("an entry has a time");
        assert_eq!(time.as_str().unwrap().len(), 20, "whole seconds in UTC");
        assert_eq!(entry.as_object_mut().unwrap().remove("fieldsType"), Some(json!("FieldsV1")));
    }
    entries
}

async fn an_apply_is_written_down_as_such(world: World) {
    let mut body = map(json!({"k": "1"}));
    body["metadata"]["labels"] = json!({"l": "1"});
    let made = world.apply("alice", &one(&world), body).await.ok();
    let fields = json!({"f:data": {"f:k": {}}, "f:metadata": {"f:labels": {"f:l": {}}}});
    let entry = json!({"manager": "alice", "operation": "Apply", "apiVersion": "v1", "fieldsV1": fields});
    assert_eq!(entries(&made), [entry]);
}

async fn an_update_is_written_down_with_what_it_changed(world: World) {
    let made = world.post(&with_query(&world.maps(), "fieldManager=maker"), map(json!({"k": "1"}))).await.ok();
    let fields = json!({"f:data": {".": {}, "f:k": {}}});
    let maker = json!({"manager": "maker", "operation": "Update", "apiVersion": "v1", "fieldsV1": fields});
    assert_eq!(entries(&made), std::slice::from_ref(&maker));
    let patched =
        world.patch(MERGE, &with_query(&one(&world), "fieldManager=patcher"), json!({"data": {"j": "1"}})).await.ok();
    let fields = json!({"f:data": {"f:j": {}}});
    let patcher = json!({"manager": "patcher", "operation": "Update", "apiVersion": "v1", "fieldsV1": fields});
    assert_eq!(entries(&patched), [maker, patcher]);
}

async fn what_the_server_decides_is_nobodys(world: World) {
    let claim = json!({"metadata": {"name": "a"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    let service = json!({"metadata": {"name": "a"}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}});
    let pod = json!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    for (resource, body, fields) in [
        (
            "persistentvolumeclaims",
            claim,
            json!({"f:accessModes": {}, "f:resources": {"f:requests": {".": {}, "f:storage": {}}}, "f:volumeMode": {}}),
        ),
        (
            "services",
            service,
            json!({
                "f:externalTrafficPolicy": {}, "f:internalTrafficPolicy": {}, "f:sessionAffinity": {}, "f:type": {},
                "f:ports": {".": {}, "k:{\"port\":80,\"protocol\":\"TCP\"}": {
                    ".": {}, "f:port": {}, "f:protocol": {}, "f:targetPort": {}}},
            }),
        ),
        (
            "pods",
            pod,
            json!({
                "f:containers": {"k:{\"name\":\"c\"}": {
                    ".": {}, "f:image": {}, "f:imagePullPolicy": {}, "f:name": {}, "f:resources": {},
                    "f:terminationMessagePath": {}, "f:terminationMessagePolicy": {}}},
                "f:dnsPolicy": {}, "f:enableServiceLinks": {}, "f:restartPolicy": {}, "f:schedulerName": {},
                "f:securityContext": {}, "f:terminationGracePeriodSeconds": {},
            }),
        ),
    ] {
        let made = world.post(&with_query(&world.core(resource), "fieldManager=maker"), body).await.ok();
        assert_eq!(entries(&made)[0]["fieldsV1"], json!({"f:spec": fields}), "{resource}");
        assert_eq!(entries(&made).len(), 1, "{resource}");
    }
}

async fn a_manager_has_one_entry_per_operation_and_subresource(world: World) {
    let widgets = world.install(definition(anything())).await;
    let path = with_query(&widgets.one("a"), "fieldManager=m");
    world.apply("m", &widgets.one("a"), widgets.widget("a", json!({"x": 1}))).await.ok();
    world.patch(MERGE, &path, json!({"spec": {"y": 1}})).await.ok();
    world.patch(MERGE, &path, json!({"spec": {"z": 1}})).await.ok();
    let status = with_query(&format!("{}/status", widgets.one("a")), "fieldManager=m");
    let after = world.patch(MERGE, &status, json!({"status": {"ok": true}})).await.ok();
    let mut seen: Vec<_> = entries(&after)
        .iter()
        .map(|e| (e["operation"].to_string(), e["subresource"].to_string(), e["fieldsV1"].to_string()))
        .collect();
    seen.sort();
    let text = str::to_owned;
    assert_eq!(
        seen,
        [
            (text("\"Apply\""), text("null"), json!({"f:spec": {"f:x": {}}}).to_string()),
            (text("\"Update\""), text("\"status\""), json!({"f:status": {".": {}, "f:ok": {}}}).to_string()),
            (text("\"Update\""), text("null"), json!({"f:spec": {"f:y": {}, "f:z": {}}}).to_string()),
        ]
    );
}

async fn the_manager_of_an_update_comes_from_the_user_agent(world: World) {
    let headers = [("content-type", "application/json"), ("user-agent", "tool/v1.2 (linux)")];
    let body = map(json!({"k": "1"})).to_string().into_bytes();
    let made = world.send(http::Method::POST, &world.maps(), &headers, body).await.ok();
    assert_eq!(entries(&made)[0]["manager"], "tool");
}

async fn a_manager_is_named_in_characters_that_can_be_seen(world: World) {
    let named = |manager: &str| with_query(&world.maps(), &format!("fieldManager={manager}"));
    for (manager, character, position) in
        [("a%C2%A0b", "U+00A0", 1), ("%E2%80%8Bb", "U+200B", 0), ("ab%0A", "U+000A", 2), ("a%CD%B8", "U+0378", 1)]
    {
        let answer = world.post(&named(manager), map(json!({}))).await.refused(422, "Invalid");
        let answer = answer.causes(&[("FieldValueInvalid", "fieldManager")]);
        answer.mentions(&format!("invalid character {character} (at position {position})"));
    }
    let made = world.post(&named("%C3%BC%CC%81%20b"), map(json!({"k": "1"}))).await.code(201).ok();
    assert_eq!(entries(&made)[0]["manager"], "ü\u{301} b");
}

async fn an_update_takes_fields_from_appliers(world: World) {
    world.apply("alice", &one(&world), map(json!({"k": "1", "j": "1"}))).await.ok();
    let after =
        world.patch(MERGE, &with_query(&one(&world), "fieldManager=bob"), json!({"data": {"k": "2"}})).await.ok();
    let owned: Vec<_> = entries(&after).into_iter().map(|e| (e["manager"].clone(), e["fieldsV1"].clone())).collect();
    let expected = [(json!("alice"), json!({"f:data": {"f:j": {}}})), (json!("bob"), json!({"f:data": {"f:k": {}}}))];
    assert_eq!(owned, expected);
    world
        .apply("alice", &one(&world), map(json!({"k": "1", "j": "1"})))
        .await
        .refused(409, "Conflict")
        .mentions("\"bob\" using v1");
}

/// Times are written down in whole seconds: waits until the server's clock shows another one.
async fn second_after(world: &World, time: &Value) {
    let path = with_query(&world.maps(), "dryRun=All");
    let now = || world.post(&path, json!({"metadata": {"name": "now"}}));
    while now().await.ok()["metadata"]["creationTimestamp"] == *time {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

async fn the_time_moves_only_with_the_fields(world: World) {
    let made = world.apply("alice", &one(&world), map(json!({"k": "1"}))).await.ok();
    let time = |object: &Value| object["metadata"]["managedFields"][0]["time"].clone();
    second_after(&world, &time(&made)).await;
    let same = world.apply("alice", &one(&world), map(json!({"k": "1"}))).await.ok();
    assert_eq!(time(&same), time(&made));
    let more = world.apply("alice", &one(&world), map(json!({"k": "1", "j": "1"}))).await.ok();
    assert_ne!(time(&more), time(&made));
}

async fn an_owner_without_fields_is_forgotten(world: World) {
    world.apply("alice", &one(&world), map(json!({"k": "1"}))).await.ok();
    let after = world.force("bob", &one(&world), map(json!({"k": "2"}))).await.ok();
    let managers: Vec<_> = entries(&after).into_iter().map(|e| e["manager"].clone()).collect();
    assert_eq!(managers, [json!("bob")]);
}

async fn clearing_managed_fields_starts_afresh(world: World) {
    world.apply("alice", &one(&world), map(json!({"k": "1"}))).await.ok();
    let after = world.patch(MERGE, &one(&world), json!({"metadata": {"managedFields": [{}]}})).await.code(200).ok();
    assert!(after["metadata"].get("managedFields").is_none(), "{after}");
}

async fn after_clearing_an_apply_meets_before_first_apply(world: World) {
    world.apply("alice", &one(&world), map(json!({"k": "1"}))).await.ok();
    world.patch(MERGE, &one(&world), json!({"metadata": {"managedFields": [{}]}})).await.ok();
    let answer = world.apply("bob", &one(&world), map(json!({"k": "2"}))).await.refused(409, "Conflict");
    answer.says("Apply failed with 1 conflict: conflict with \"before-first-apply\" using v1: .data.k");
}

async fn list_items_are_written_down_by_key(world: World) {
    let path = world.core("services");
    let spec = json!({"ports": [{"name": "x", "port": 80, "protocol": "TCP"}], "selector": {"app": "a"}});
    let body = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a", "finalizers": ["example.com/hold"]}, "spec": spec});
    let made = world.apply("alice", &format!("{path}/a"), body).await.ok();
    let fields = json!({
        "f:metadata": {"f:finalizers": {"v:\"example.com/hold\"": {}}},
        "f:spec": {
            "f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:name": {}, "f:port": {}, "f:protocol": {}}},
            "f:selector": {},
        },
    });
    assert_eq!(entries(&made)[0]["fieldsV1"], fields);
    world.patch(MERGE, &format!("{path}/a"), json!({"metadata": {"finalizers": null}})).await.ok();
}

async fn fields_without_a_schema_are_written_down_one_by_one(world: World) {
    let widgets = world.install(definition(anything())).await;
    let spec = json!({"map": {"b": {"deep": [1]}, "a": null}, "list": [{"x": 1}], "text": "t"});
    let made = world.apply("alice", &widgets.one("a"), widgets.widget("a", spec)).await.ok();
    let fields = &entries(&made)[0]["fieldsV1"];
    assert_eq!(fields["f:spec"]["f:list"], json!({}), "{fields}");
    assert_eq!(fields["f:spec"]["f:text"], json!({}), "{fields}");
    assert_eq!(fields["f:spec"]["f:map"]["f:b"], json!({".": {}, "f:deep": {}}), "{fields}");
}

async fn a_deletion_mark_is_nobodys_field(world: World) {
    let mut body = map(json!({}));
    body["metadata"]["finalizers"] = json!(["example.com/hold"]);
    let made = world.apply("alice", &one(&world), body).await.ok();
    let marked = world.delete(&one(&world), json!(null)).await.ok();
    assert_eq!(entries(&marked), entries(&made));
    world.patch(MERGE, &one(&world), json!({"metadata": {"finalizers": null}})).await.ok();
}
