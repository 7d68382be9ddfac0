//! Strategic merge patch: lists that merge by key, and the directives that say otherwise.

use serde_json::{Value, json};

use crate::world::{STRATEGIC, World};

promises!(
    containers_merge_by_name,
    environment_and_mounts_merge_by_their_own_keys,
    an_entry_is_deleted_by_directive,
    a_list_is_replaced_by_directive,
    an_object_is_replaced_by_directive,
    the_order_of_a_list_is_set_by_directive,
    only_named_keys_are_retained,
    items_leave_a_plain_list_by_directive,
    service_ports_merge_by_port,
    finalizers_merge_as_a_set,
    conditions_merge_by_type,
    plain_lists_are_replaced,
    an_unknown_directive_is_refused,
    null_removes_a_field,
);

async fn deployment(world: &World, containers: Value) -> String {
    let path = world.of_group("apps/v1", "deployments");
    let template = json!({"metadata": {"labels": {"app": "a"}}, "spec": {
        "containers": containers,
        "volumes": [{"name": "v", "emptyDir": {}}, {"name": "w", "emptyDir": {}}],
        "tolerations": [{"key": "t", "operator": "Exists"}],
    }});
    let spec = json!({"selector": {"matchLabels": {"app": "a"}}, "template": template});
    world.post(&path, json!({"metadata": {"name": "a"}, "spec": spec})).await.ok();
    format!("{path}/a")
}

/// Patches the pod template's spec and returns it as it is afterwards.
async fn patched(world: &World, one: &str, spec: Value) -> Value {
    let patch = json!({"spec": {"template": {"spec": spec}}});
    world.patch(STRATEGIC, one, patch).await.code(200).ok()["spec"]["template"]["spec"].take()
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap()).collect()
}

fn two() -> Value {
    json!([{"name": "a", "image": "i:1"}, {"name": "b", "image": "i:1"}])
}

async fn containers_merge_by_name(world: World) {
    let one = deployment(&world, two()).await;
    let spec =
        patched(&world, &one, json!({"containers": [{"name": "b", "image": "i:2"}, {"name": "c", "image": "i:3"}]}))
            .await;
    let mut seen: Vec<_> = spec["containers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| (c["name"].as_str().unwrap(), c["image"].as_str().unwrap()))
        .collect();
    seen.sort_unstable();
    assert_eq!(seen, [("a", "i:1"), ("b", "i:2"), ("c", "i:3")]);
}

async fn environment_and_mounts_merge_by_their_own_keys(world: World) {
    let container = json!([{"name": "a", "image": "i", "env": [{"name": "X", "value": "1"}, {"name": "Y", "value": "1"}],
        "volumeMounts": [{"name": "v", "mountPath": "/v"}], "ports": [{"containerPort": 80}, {"containerPort": 81}]}]);
    let one = deployment(&world, container).await;
    let patch = json!({"containers": [{"name": "a", "env": [{"name": "Y", "value": "2"}],
        "volumeMounts": [{"name": "w", "mountPath": "/v"}, {"name": "w", "mountPath": "/w"}],
        "ports": [{"containerPort": 81, "name": "http"}]}]});
    let container = patched(&world, &one, patch).await["containers"][0].take();
    assert_eq!(container["env"], json!([{"name": "X", "value": "1"}, {"name": "Y", "value": "2"}]));
    let mounts = container["volumeMounts"].as_array().unwrap();
    assert_eq!(mounts.len(), 2);
    assert!(mounts.iter().all(|mount| mount["name"] == "w"), "merged by mountPath: {mounts:?}");
    let ports = container["ports"].as_array().unwrap();
    assert_eq!(ports.len(), 2, "{ports:?}");
    assert!(ports.iter().any(|port| port["containerPort"] == 81 && port["name"] == "http"), "{ports:?}");
}

async fn an_entry_is_deleted_by_directive(world: World) {
    let one = deployment(&world, two()).await;
    let spec = patched(&world, &one, json!({"containers": [{"name": "a", "$patch": "delete"}]})).await;
    assert_eq!(names(&spec["containers"]), ["b"]);
}

async fn a_list_is_replaced_by_directive(world: World) {
    let one = deployment(&world, two()).await;
    let spec =
        patched(&world, &one, json!({"containers": [{"$patch": "replace"}, {"name": "z", "image": "i:9"}]})).await;
    assert_eq!(names(&spec["containers"]), ["z"]);
}

async fn an_object_is_replaced_by_directive(world: World) {
    let one = deployment(&world, two()).await;
    let patch = json!({"metadata": {"annotations": {"a": "1", "b": "2"}}});
    world.patch(STRATEGIC, &one, patch).await.ok();
    let patch = json!({"metadata": {"annotations": {"$patch": "replace", "c": "3"}}});
    let after = world.patch(STRATEGIC, &one, patch).await.ok();
    assert_eq!(after["metadata"]["annotations"], json!({"c": "3"}));
    let patch = json!({"metadata": {"annotations": {"$patch": "delete"}}});
    let after = world.patch(STRATEGIC, &one, patch).await.ok();
    assert!(after["metadata"]["annotations"].is_null(), "{after}");
}

async fn the_order_of_a_list_is_set_by_directive(world: World) {
    let one = deployment(&world, two()).await;
    let patch = json!({"$setElementOrder/containers": [{"name": "c"}, {"name": "b"}, {"name": "a"}], "containers": [{"name": "c", "image": "i"}]});
    assert_eq!(names(&patched(&world, &one, patch).await["containers"]), ["c", "b", "a"]);
}

async fn only_named_keys_are_retained(world: World) {
    let one = deployment(&world, two()).await;
    // A volume has one source; the patch says which keys are left when another source comes in.
    let patch = json!({"volumes": [{"$retainKeys": ["name", "configMap"], "name": "v", "configMap": {"name": "m"}}]});
    let volumes = patched(&world, &one, patch).await["volumes"].take();
    let changed = volumes.as_array().unwrap().iter().find(|volume| volume["name"] == "v").unwrap().clone();
    assert!(changed.get("emptyDir").is_none() && changed["configMap"]["name"] == "m", "{changed}");
    assert_eq!(volumes.as_array().unwrap().len(), 2);
    let strategy = json!({"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}});
    let after = world.patch(STRATEGIC, &one, strategy).await.code(200).ok();
    assert_eq!(after["spec"]["strategy"], json!({"type": "Recreate"}));
}

async fn items_leave_a_plain_list_by_directive(world: World) {
    let held = json!({"metadata": {"name": "a", "finalizers": ["example.com/a", "example.com/b"]}});
    world.post(&world.maps(), held).await.ok();
    let one = format!("{}/a", world.maps());
    let patch = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/a"]}});
    let after = world.patch(STRATEGIC, &one, patch).await.code(200).ok();
    assert_eq!(after["metadata"]["finalizers"], json!(["example.com/b"]));
}

async fn service_ports_merge_by_port(world: World) {
    let spec = json!({"selector": {"app": "a"}, "ports": [{"name": "x", "port": 80}, {"name": "y", "port": 81}]});
    let path = world.core("services");
    world.post(&path, json!({"metadata": {"name": "a"}, "spec": spec})).await.ok();
    let patch = json!({"spec": {"ports": [{"port": 81, "targetPort": 8081}]}});
    let ports = world.patch(STRATEGIC, &format!("{path}/a"), patch).await.code(200).ok()["spec"]["ports"].take();
    let mut seen: Vec<_> =
        ports.as_array().unwrap().iter().map(|p| (p["name"].clone(), p["targetPort"].clone())).collect();
    seen.sort_by_key(|(name, _)| name.to_string());
    assert_eq!(seen, [(json!("x"), json!(80)), (json!("y"), json!(8081))]);
}

async fn finalizers_merge_as_a_set(world: World) {
    let held = json!({"metadata": {"name": "a", "finalizers": ["example.com/a"]}});
    world.post(&world.maps(), held).await.ok();
    let patch = json!({"metadata": {"finalizers": ["example.com/b", "example.com/a"]}});
    let after = world.patch(STRATEGIC, &format!("{}/a", world.maps()), patch).await.code(200).ok();
    let mut seen: Vec<_> = after["metadata"]["finalizers"].as_array().unwrap().clone();
    seen.sort_by_key(Value::to_string);
    assert_eq!(seen, [json!("example.com/a"), json!("example.com/b")]);
}

async fn conditions_merge_by_type(world: World) {
    let spec = json!({"containers": [{"name": "c", "image": "i"}], "automountServiceAccountToken": false});
    world.post(&world.core("pods"), json!({"metadata": {"name": "a"}, "spec": spec})).await.ok();
    let path = format!("{}/a/status", world.core("pods"));
    let condition = |kind: &str, status: &str| json!({"status": {"conditions": [{"type": kind, "status": status}]}});
    for (kind, status) in [("Ready", "False"), ("Initialized", "True"), ("Ready", "True")] {
        world.patch(STRATEGIC, &path, condition(kind, status)).await.code(200);
    }
    let conditions = world.get(&path).await.ok()["status"]["conditions"].take();
    let mut seen: Vec<_> = conditions
        .as_array()
        .unwrap()
        .iter()
        .map(|c| (c["type"].as_str().unwrap(), c["status"].as_str().unwrap()))
        .collect();
    seen.sort_unstable();
    assert_eq!(seen, [("Initialized", "True"), ("Ready", "True")]);
}

async fn plain_lists_are_replaced(world: World) {
    let one = deployment(&world, json!([{"name": "a", "image": "i", "args": ["1", "2"]}])).await;
    let patch =
        json!({"containers": [{"name": "a", "args": ["3"]}], "tolerations": [{"key": "u", "operator": "Exists"}]});
    let spec = patched(&world, &one, patch).await;
    assert_eq!(spec["containers"][0]["args"], json!(["3"]));
    assert_eq!(spec["tolerations"], json!([{"key": "u", "operator": "Exists"}]));
}

async fn an_unknown_directive_is_refused(world: World) {
    let one = deployment(&world, two()).await;
    let patch = json!({"spec": {"template": {"spec": {"containers": [{"name": "a", "$patch": "sideways"}]}}}});
    let answer = world.patch(STRATEGIC, &one, patch).await;
    assert!(matches!(answer.code, 400 | 500), "{}", answer.text);
    assert!(answer.message().contains("sideways"), "{}", answer.text);
    let patch = json!({"spec": {"template": {"spec": {"containers": [{"image": "i:2"}]}}}});
    let answer = world.patch(STRATEGIC, &one, patch).await;
    assert!(answer.message().contains("does not contain declared merge key: name"), "{}", answer.text);
}

async fn null_removes_a_field(world: World) {
    let one = deployment(&world, two()).await;
    let spec = patched(&world, &one, json!({"tolerations": null})).await;
    assert!(spec.get("tolerations").is_none());
}
