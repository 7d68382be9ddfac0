//! Finalizers, the mark of deletion, delete options, and deleting many at once.

use serde_json::{Value, json};

use crate::answer::{names, version};
use crate::widgets::{Widgets, anything, definition};
use crate::world::{JSON, MERGE, World, with_query};

promises!(
    a_finalizer_holds_an_object_until_it_is_removed,
    the_mark_of_deletion_is_set_once_and_stays,
    no_finalizer_is_added_after_the_mark,
    a_finalizer_must_be_a_qualified_name,
    an_object_with_a_mark_can_still_be_changed,
    a_delete_may_demand_a_uid,
    a_delete_may_demand_a_version,
    options_come_in_the_body_or_in_the_query,
    wrong_options_are_refused,
    a_pod_goes_at_once_when_no_kubelet_runs_it,
    a_collection_is_deleted_by_selector,
    a_collection_answers_with_what_it_deleted,
    deleting_a_collection_leaves_held_objects_marked,
    a_claim_that_no_pod_uses_goes_when_it_is_deleted,
    a_volume_that_no_claim_uses_goes_when_it_is_deleted,
);

const HOLD: &str = "example.com/hold";

/// A widget `a` that is held by a finalizer.
async fn held(world: &World) -> (Widgets, Value) {
    let widgets = world.install(definition(anything())).await;
    let mut widget = widgets.widget("a", json!({}));
    widget["metadata"]["finalizers"] = json!([HOLD]);
    let made = world.post(&widgets.path(), widget).await.ok();
    (widgets, made)
}

async fn a_finalizer_holds_an_object_until_it_is_removed(world: World) {
    let (widgets, made) = held(&world).await;
    let mut watch = world.watch(&widgets.path(), &format!("resourceVersion={}", version(&made))).await;
    let marked = world.delete(&widgets.one("a"), json!(null)).await.code(200).ok();
    assert_eq!(marked["kind"], "Widget", "a held object is answered itself, not a Status");
    assert!(marked["metadata"]["deletionTimestamp"].is_string());
    assert_eq!(marked["metadata"]["deletionGracePeriodSeconds"], 0);
    assert_eq!(watch.step().await, ("MODIFIED".into(), "a".into()));

    let remove = json!([{"op": "test", "path": "/metadata/finalizers/0", "value": HOLD}, {"op": "remove", "path": "/metadata/finalizers/0"}]);
    world.patch(JSON, &widgets.one("a"), remove).await.code(200);
    let last = watch.next().await;
    assert_eq!(last["type"], "DELETED");
    assert!(version(&last["object"]) > version(&marked), "a deletion has a version of its own");
    world.get(&widgets.one("a")).await.refused(404, "NotFound");
}

async fn the_mark_of_deletion_is_set_once_and_stays(world: World) {
    let (widgets, _) = held(&world).await;
    let first = world.delete(&widgets.one("a"), json!(null)).await.code(200).ok();
    let second = world.delete(&widgets.one("a"), json!(null)).await.code(200).ok();
    assert_eq!(first["metadata"]["deletionTimestamp"], second["metadata"]["deletionTimestamp"]);
    assert_eq!(version(&first), version(&second));
    let unmark = json!({"metadata": {"deletionTimestamp": null, "labels": {"l": "1"}}});
    let patched = world.patch(MERGE, &widgets.one("a"), unmark).await.ok();
    assert_eq!(patched["metadata"]["deletionTimestamp"], first["metadata"]["deletionTimestamp"]);
}

async fn no_finalizer_is_added_after_the_mark(world: World) {
    let (widgets, _) = held(&world).await;
    world.delete(&widgets.one("a"), json!(null)).await.code(200);
    let more = json!({"metadata": {"finalizers": [HOLD, "example.com/more"]}});
    let answer = world.patch(MERGE, &widgets.one("a"), more).await.refused(422, "Invalid");
    let answer = answer.causes(&[("FieldValueForbidden", "metadata.finalizers")]);
    answer.mentions("no new finalizers can be added if the object is being deleted, found new finalizers []string{\"example.com/more\"}");
}

async fn a_finalizer_must_be_a_qualified_name(world: World) {
    let plain = json!({"metadata": {"name": "a", "finalizers": ["plain"]}});
    let answer = world.post(&world.maps(), plain).await.refused(422, "Invalid");
    answer.mentions("metadata.finalizers[0]: Invalid value: \"plain\": name is neither a standard finalizer name nor is it fully qualified");
    let wrong = json!({"metadata": {"name": "a", "finalizers": ["example.com/not good"]}});
    world.post(&world.maps(), wrong).await.refused(422, "Invalid").mentions("metadata.finalizers");
}

async fn an_object_with_a_mark_can_still_be_changed(world: World) {
    let (widgets, _) = held(&world).await;
    world.delete(&widgets.one("a"), json!(null)).await.code(200);
    let changed = world.patch(MERGE, &widgets.one("a"), json!({"spec": {"x": 1}})).await.code(200).ok();
    assert_eq!(changed["spec"]["x"], 1);
    let status = json!({"status": {"phase": "Going"}});
    world.patch(MERGE, &format!("{}/status", widgets.one("a")), status).await.code(200);
    // Creating another of that name waits for the first to be gone.
    let again = world.post(&widgets.path(), widgets.widget("a", json!({}))).await.refused(409, "AlreadyExists");
    again.says(&format!("object is being deleted: {} \"a\" already exists", widgets.resource()));
}

async fn a_delete_may_demand_a_uid(world: World) {
    let map = world.map("a", json!({})).await;
    let one = format!("{}/a", world.maps());
    let answer = world.delete(&one, json!({"preconditions": {"uid": "other"}})).await.refused(409, "Conflict");
    let uid = map["metadata"]["uid"].as_str().unwrap();
    answer.says(&format!("Operation cannot be fulfilled on ConfigMap \"a\": the UID in the precondition (other) does not match the UID in record ({uid}). The object might have been deleted and then recreated"));
    world.delete(&one, json!({"preconditions": {"uid": uid}})).await.code(200);
}

async fn a_delete_may_demand_a_version(world: World) {
    let map = world.map("a", json!({})).await;
    let one = format!("{}/a", world.maps());
    world.patch(MERGE, &one, json!({"data": {"k": "v"}})).await.ok();
    let stale = json!({"preconditions": {"resourceVersion": version(&map)}});
    let now = version(&world.get(&one).await.ok());
    let answer = world.delete(&one, stale).await.refused(409, "Conflict");
    let was = version(&map);
    answer.says(&format!("Operation cannot be fulfilled on ConfigMap \"a\": the ResourceVersion in the precondition ({was}) does not match the ResourceVersion in record ({now}). The object might have been modified"));
    world.delete(&one, json!({"preconditions": {"resourceVersion": now}})).await.code(200);
}

async fn options_come_in_the_body_or_in_the_query(world: World) {
    for name in ["a", "b", "c"] {
        let held = json!({"metadata": {"name": name}});
        world.post(&world.maps(), held).await.ok();
    }
    let one = |name: &str| format!("{}/{name}", world.maps());
    let body = json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Orphan"});
    let marked = world.delete(&one("a"), body).await.code(200).ok();
    assert_eq!(marked["metadata"]["finalizers"], json!(["orphan"]));
    let marked = world.delete(&with_query(&one("b"), "propagationPolicy=Foreground"), json!(null)).await.code(200).ok();
    assert_eq!(marked["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    // The body wins over the query.
    let path = with_query(&one("c"), "propagationPolicy=Foreground");
    let gone = world.delete(&path, json!({"propagationPolicy": "Background"})).await.code(200).ok();
    assert_eq!(gone["kind"], "Status");
}

async fn wrong_options_are_refused(world: World) {
    world.map("a", json!({})).await;
    let one = format!("{}/a", world.maps());
    let answer = world.delete(&one, json!({"propagationPolicy": "Sideways"})).await.refused(422, "Invalid");
    answer.mentions("propagationPolicy: Unsupported value: \"Sideways\": supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\"");
    let both = json!({"propagationPolicy": "Orphan", "orphanDependents": true});
    let answer = world.delete(&one, both).await.refused(422, "Invalid");
    answer.mentions("orphanDependents and deletionPropagation cannot be both set");
    world.delete(&one, json!({"kind": "Pod", "apiVersion": "v1"})).await.refused(400, "BadRequest");
    world.delete(&one, json!({"dryRun": ["Some"]})).await.refused(422, "Invalid").mentions("dryRun");
}

async fn a_pod_goes_at_once_when_no_kubelet_runs_it(world: World) {
    let spec = json!({"containers": [{"name": "c", "image": "i"}], "automountServiceAccountToken": false});
    world.post(&world.core("pods"), json!({"metadata": {"name": "a"}, "spec": spec})).await.ok();
    let one = format!("{}/a", world.core("pods"));
    world.delete(&one, json!(null)).await.code(200);
    world.gone(&one).await;
}

async fn a_collection_is_deleted_by_selector(world: World) {
    for (name, tier) in [("a", "web"), ("b", "db"), ("c", "web")] {
        world.map(name, json!({"tier": tier})).await;
    }
    world.delete(&with_query(&world.maps(), "labelSelector=tier=web"), json!(null)).await.code(200);
    let left = world.get(&with_query(&world.maps(), "labelSelector=tier")).await.ok();
    assert_eq!(names(&left), ["b"]);
    world.delete(&with_query(&world.maps(), "fieldSelector=metadata.name=b"), json!(null)).await.code(200);
    let left = world.get(&with_query(&world.maps(), "labelSelector=tier")).await.ok();
    assert!(names(&left).is_empty());
}

async fn a_collection_answers_with_what_it_deleted(world: World) {
    for name in ["a", "b"] {
        world.map(name, json!({"mine": "yes"})).await;
    }
    let path = with_query(&world.maps(), "labelSelector=mine=yes");
    let gone = world.delete(&path, json!({"propagationPolicy": "Background"})).await.code(200).ok();
    assert_eq!(gone["kind"], "ConfigMapList");
    assert_eq!(names(&gone), ["a", "b"]);
    let none = world.delete(&path, json!(null)).await.code(200).ok();
    assert!(names(&none).is_empty());
}

async fn deleting_a_collection_leaves_held_objects_marked(world: World) {
    let (widgets, _) = held(&world).await;
    world.post(&widgets.path(), widgets.widget("b", json!({}))).await.ok();
    world.delete(&widgets.path(), json!(null)).await.code(200);
    let left = world.get(&widgets.path()).await.ok();
    assert_eq!(names(&left), ["a"]);
    assert!(left["items"][0]["metadata"]["deletionTimestamp"].is_string());
}

async fn a_claim_that_no_pod_uses_goes_when_it_is_deleted(world: World) {
    let claim = |name: &str| json!({"metadata": {"name": name}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    let claims = world.core("persistentvolumeclaims");
    for name in ["idle", "used"] {
        let made = world.post(&claims, claim(name)).await.ok();
        assert_eq!(made["metadata"]["finalizers"], json!(["kubernetes.io/pvc-protection"]));
    }
    let pod = json!({
        "metadata": {"name": "p"},
        "spec": {
            "nodeName": "nowhere", "containers": [{"name": "c", "image": "i"}],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "used"}}],
        },
    });
    world.post(&world.core("pods"), pod).await.ok();
    for name in ["used", "idle"] {
        world.delete(&format!("{claims}/{name}"), json!(null)).await.code(200);
    }
    world.until(&format!("{claims}/idle"), |answer| answer.code == 404).await;
    let held = world.get(&format!("{claims}/used")).await.ok();
    assert!(held["metadata"]["deletionTimestamp"].is_string(), "a pod uses it");
    world.delete(&format!("{}/p", world.core("pods")), json!({"gracePeriodSeconds": 0})).await.code(200);
    world.until(&format!("{claims}/used"), |answer| answer.code == 404).await;
}

async fn a_volume_that_no_claim_uses_goes_when_it_is_deleted(world: World) {
    let name = format!("{}-volume", world.namespace);
    let volume = json!({
        "metadata": {"name": name},
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "none", "hostPath": {"path": "/x"}},
    });
    let made = world.post("/api/v1/persistentvolumes", volume).await.ok();
    assert_eq!(made["metadata"]["finalizers"], json!(["kubernetes.io/pv-protection"]));
    let path = format!("/api/v1/persistentvolumes/{name}");
    world.delete(&path, json!(null)).await.code(200);
    world.until(&path, |answer| answer.code == 404).await;
}
