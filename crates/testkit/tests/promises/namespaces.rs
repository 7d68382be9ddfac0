//! Namespaces: what they are born with, and how they go.

use serde_json::json;

use crate::widgets::{anything, definition};
use crate::world::{JSON, MERGE, STRATEGIC, World};

promises_of_controllers!(
    a_namespace_is_born_active_with_its_name_as_a_label,
    a_deleted_namespace_takes_its_content_along,
    nothing_new_enters_a_namespace_that_terminates,
    a_namespace_waits_for_finalizers_of_its_content_and_says_so,
    a_namespace_name_is_a_dns_label,
    only_finalize_lets_a_namespace_go,
);

fn path(world: &World) -> String {
    format!("/api/v1/namespaces/{}", world.namespace)
}

async fn a_namespace_is_born_active_with_its_name_as_a_label(world: World) {
    let namespace = world.get(&path(&world)).await.ok();
    assert_eq!(namespace["status"], json!({"phase": "Active"}));
    assert_eq!(namespace["spec"], json!({"finalizers": ["kubernetes"]}));
    assert_eq!(namespace["metadata"]["labels"], json!({"kubernetes.io/metadata.name": world.namespace}));
}

async fn a_deleted_namespace_takes_its_content_along(world: World) {
    let widgets = world.install(definition(anything())).await;
    world.map("a", json!({})).await;
    world.post(&widgets.path(), widgets.widget("a", json!({}))).await.ok();
    let about = json!({"kind": "ConfigMap", "namespace": world.namespace, "name": "a"});
    let event = json!({"metadata": {"name": "a"}, "involvedObject": about, "reason": "Testing", "type": "Normal"});
    world.post(&world.core("events"), event).await.ok();
    let uid = world.get(&path(&world)).await.ok()["metadata"]["uid"].take();
    let other = world.delete(&path(&world), json!({"preconditions": {"uid": "other"}})).await.refused(409, "Conflict");
    let why = format!("Precondition failed: UID in precondition: other, UID in object meta: {}", uid.as_str().unwrap());
    other.says(&format!("Operation cannot be fulfilled on namespaces {:?}: {why}", world.namespace));
    let marked = world.delete(&path(&world), json!({"preconditions": {"uid": uid}})).await.code(200).ok();
    assert_eq!(marked["kind"], "Namespace");
    assert!(marked["metadata"].get("deletionGracePeriodSeconds").is_none(), "{marked}");
    assert_eq!(marked["status"]["phase"], "Terminating");
    assert!(marked["metadata"]["deletionTimestamp"].is_string());
    world.gone(&path(&world)).await;
    for path in [world.maps(), widgets.path(), world.core("serviceaccounts"), world.core("events")] {
        assert_eq!(world.get(&path).await.ok()["items"], json!([]), "{path}");
    }
}

async fn nothing_new_enters_a_namespace_that_terminates(world: World) {
    let held = json!({"metadata": {"name": "a", "finalizers": ["example.com/hold"]}});
    world.post(&world.maps(), held).await.ok();
    world.delete(&path(&world), json!(null)).await.code(200);
    let namespace = &world.namespace;
    world.until(&path(&world), |namespace| namespace.body["status"]["phase"] == "Terminating").await;
    let answer = world.post(&world.maps(), json!({"metadata": {"name": "b"}})).await.refused(403, "Forbidden");
    let answer = answer.says(&format!(
        "configmaps \"b\" is forbidden: unable to create new content in namespace {namespace} because it is being terminated"
    ));
    answer.about("", "configmaps", "b").causes(&[("NamespaceTerminating", "metadata.namespace")]);
    // What is there can still be changed: whoever holds it must be able to let go.
    let one = format!("{}/a", world.maps());
    world.patch(MERGE, &one, json!({"metadata": {"finalizers": null}})).await.code(200);
    world.gone(&path(&world)).await;
}

async fn a_namespace_waits_for_finalizers_of_its_content_and_says_so(world: World) {
    let held = json!({"metadata": {"name": "a", "finalizers": ["example.com/hold"]}});
    world.post(&world.maps(), held).await.ok();
    world.delete(&path(&world), json!(null)).await.code(200);
    let remaining = |answer: &crate::answer::Answer| {
        let conditions = answer.body["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.into_iter().find(|c| c["type"] == "NamespaceFinalizersRemaining" && c["status"] == "True")
    };
    let waiting = world.until(&path(&world), |answer| remaining(answer).is_some()).await;
    let condition = remaining(&waiting).unwrap();
    assert_eq!(condition["reason"], "SomeFinalizersRemain");
    assert_eq!(
        condition["message"],
        "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances"
    );
    world.get(&format!("{}/a", world.maps())).await.code(200);
    let release = json!({"metadata": {"finalizers": null}});
    world.patch(MERGE, &format!("{}/a", world.maps()), release).await.code(200);
    world.gone(&path(&world)).await;
}

async fn a_namespace_name_is_a_dns_label(world: World) {
    for name in ["Upper", "dot.ted", "-dash", "x".repeat(64).as_str()] {
        let answer = world.post("/api/v1/namespaces", json!({"metadata": {"name": name}})).await;
        let answer = answer.refused(422, "Invalid").about("", "Namespace", name);
        answer.mentions("metadata.name: Invalid value");
    }
}

async fn only_finalize_lets_a_namespace_go(world: World) {
    let (one, held) = (path(&world), json!({"finalizers": ["kubernetes"]}));
    let name = &world.namespace;
    for without in
        [json!({"metadata": {"name": name}}), json!({"metadata": {"name": name}, "spec": {"finalizers": []}})]
    {
        assert_eq!(world.put(&one, &without).await.code(200).ok()["spec"], held, "{without}");
    }
    for (kind, patch) in [
        (MERGE, json!({"spec": null})),
        (MERGE, json!({"spec": {"finalizers": ["example.com/other"]}})),
        (STRATEGIC, json!({"spec": {"finalizers": null}})),
        (JSON, json!([{"op": "remove", "path": "/spec/finalizers"}])),
    ] {
        assert_eq!(world.patch(kind, &one, patch.clone()).await.code(200).ok()["spec"], held, "{patch}");
    }
    let config = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}, "spec": {}});
    assert_eq!(world.force("somebody", &one, config).await.code(200).ok()["spec"], held);
    // Nor does one go that waits for what is in it.
    let map = json!({"metadata": {"name": "a", "finalizers": ["example.com/hold"]}});
    world.post(&world.maps(), map).await.ok();
    world.delete(&one, json!(null)).await.code(200);
    assert_eq!(world.patch(MERGE, &one, json!({"spec": null})).await.code(200).ok()["spec"], held);
    world.get(&one).await.code(200);
    world.patch(MERGE, &format!("{}/a", world.maps()), json!({"metadata": {"finalizers": null}})).await.code(200);
    world.gone(&one).await;
    assert_eq!(world.get(&world.maps()).await.ok()["items"], json!([]));
}
