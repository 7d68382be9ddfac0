//! Finalizers, the mark of deletion, delete options, and deleting many at once.

use serde_json::{Value, json};

use crate::answer::{names, revision, version};
use crate::widgets::{Widgets, anything, definition};
use crate::world::{JSON, MERGE, World, with_query};

promises!(
    a_finalizer_holds_an_object_until_it_is_removed,
    the_mark_of_deletion_is_set_once_and_stays,
    no_finalizer_is_added_after_the_mark,
    a_finalizer_must_be_a_qualified_name,
    a_finalizer_without_a_domain_is_remarked_upon,
    an_object_with_a_mark_can_still_be_changed,
    a_delete_may_demand_a_uid,
    a_delete_may_demand_a_version,
    a_delete_may_demand_them_in_the_query,
    options_come_in_the_body_or_in_the_query,
    wrong_options_are_refused,
    options_that_cannot_be_read_delete_nothing,
    a_pod_goes_at_once_when_no_kubelet_runs_it,
    a_pod_that_runs_has_its_grace_and_never_less_than_none,
    a_pod_that_is_deleted_again_never_gets_more_time,
    a_collection_is_deleted_by_selector,
    a_collection_answers_with_what_it_deleted,
    a_collection_is_deleted_page_by_page_if_asked_for,
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
    assert!(revision(&last["object"]) > revision(&marked), "a deletion has a version of its own");
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

async fn a_delete_may_demand_them_in_the_query(world: World) {
    let map = world.map("a", json!({})).await;
    let one = |query: &str| with_query(&format!("{}/a", world.maps()), query);
    let uid = map["metadata"]["uid"].as_str().unwrap();
    let is = format!("does not match the UID in record ({uid}). The object might have been deleted and then recreated");
    let answer = world.delete(&one("uid=other"), json!(null)).await.refused(409, "Conflict");
    answer.says(&format!("Operation cannot be fulfilled on ConfigMap \"a\": the UID in the precondition (other) {is}"));
    world.delete(&one("resourceVersion=1"), json!(null)).await.refused(409, "Conflict").mentions("ResourceVersion");
    world.delete(&one(&format!("uid={uid}&resourceVersion=1")), json!(null)).await.refused(409, "Conflict");
    let namespace = format!("/api/v1/namespaces/{}?uid=other", world.namespace);
    world.delete(&namespace, json!(null)).await.refused(409, "Conflict").mentions("UID in precondition: other");
    // Of a collection each object must fulfil them.
    let all = |query: &str| with_query(&world.maps(), &format!("fieldSelector=metadata.name=a&{query}"));
    world.delete(&all("uid=other"), json!(null)).await.refused(409, "Conflict").mentions("(other)");
    world.delete(&all("resourceVersion=1"), json!(null)).await.refused(409, "Conflict").mentions("ResourceVersion");
    assert_eq!(world.get(&one("")).await.code(200).ok(), map);
    // What is empty demands nothing, and neither does the query beside a body.
    world.delete(&one("uid=&resourceVersion="), json!({"dryRun": ["All"]})).await.code(200);
    world.delete(&one("uid=other&dryRun=All"), json!({"dryRun": ["All"]})).await.code(200);
    world.delete(&one(&format!("uid={uid}&resourceVersion={}", version(&map))), json!(null)).await.code(200);
    world.get(&one("")).await.refused(404, "NotFound");
    world.map("a", json!({})).await;
    world.delete(&one("uid=&resourceVersion="), json!(null)).await.code(200);
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
    world.delete(&with_query(&one, "propagationPolicy="), json!(null)).await.refused(422, "Invalid");
}

async fn options_that_cannot_be_read_delete_nothing(world: World) {
    let map = world.map("a", json!({})).await;
    let one = format!("{}/a", world.maps());
    let field = |given: &str, field: &str| format!("json: cannot unmarshal {given} into Go struct field {field}");
    for (options, why) in [
        (json!({"dryRun": "All"}), field("string", "DeleteOptions.dryRun of type []string")),
        (json!({"dryRun": [5]}), field("number", "DeleteOptions.dryRun of type string")),
        (json!({"preconditions": {"uid": 5}}), field("number", "Preconditions.preconditions.uid of type types.UID")),
        (json!({"preconditions": "x"}), field("string", "DeleteOptions.preconditions of type v1.Preconditions")),
        (json!({"orphanDependents": "no"}), field("string", "DeleteOptions.orphanDependents of type bool")),
        (json!({"gracePeriodSeconds": "5"}), field("string", "DeleteOptions.gracePeriodSeconds of type int64")),
    ] {
        world.delete(&one, options.clone()).await.refused(400, "BadRequest").says(&why);
        world.delete(&world.maps(), options).await.refused(400, "BadRequest").says(&why);
    }
    assert_eq!(world.get(&one).await.code(200).ok(), map);
}

async fn a_pod_goes_at_once_when_no_kubelet_runs_it(world: World) {
    let spec = json!({"containers": [{"name": "c", "image": "i"}], "automountServiceAccountToken": false});
    let made = world.post(&world.core("pods"), json!({"metadata": {"name": "a"}, "spec": spec})).await.ok();
    let mut watch = world.watch(&world.core("pods"), &format!("resourceVersion={}", version(&made))).await;
    let one = format!("{}/a", world.core("pods"));
    let gone = world.delete(&one, json!(null)).await.code(200).ok();
    // The last that is seen of it says that it was deleted.
    let meta = &gone["metadata"];
    assert_eq!((&meta["deletionGracePeriodSeconds"], &meta["generation"]), (&json!(0), &json!(2)), "{meta}");
    assert!(meta["deletionTimestamp"].is_string());
    world.gone(&one).await;
    assert_eq!(watch.step().await, ("MODIFIED".into(), "a".into()));
    let last = watch.next().await;
    assert_eq!((&last["type"], &last["object"]["metadata"]["generation"]), (&json!("DELETED"), &json!(2)));
}

async fn a_pod_that_runs_has_its_grace_and_never_less_than_none(world: World) {
    let spec = json!({"containers": [{"name": "c", "image": "i"}], "automountServiceAccountToken": false,
        "nodeName": "nowhere", "terminationGracePeriodSeconds": 7});
    for (name, asked, granted) in [("a", json!(null), 7), ("b", json!(3), 3), ("c", json!(-5), 1)] {
        world.post(&world.core("pods"), json!({"metadata": {"name": name}, "spec": spec})).await.ok();
        let one = format!("{}/{name}", world.core("pods"));
        let marked = world.delete(&one, json!({"gracePeriodSeconds": asked})).await.code(200).ok();
        assert_eq!(marked["metadata"]["deletionGracePeriodSeconds"], granted);
        let now = world.delete(&one, json!({"gracePeriodSeconds": 0})).await.code(200).ok();
        assert_eq!(now["metadata"]["deletionGracePeriodSeconds"], 0);
        world.gone(&one).await;
    }
}

async fn a_pod_that_is_deleted_again_never_gets_more_time(world: World) {
    let spec = json!({"containers": [{"name": "c", "image": "i"}], "automountServiceAccountToken": false,
        "nodeName": "nowhere"});
    world.post(&world.core("pods"), json!({"metadata": {"name": "a"}, "spec": spec})).await.ok();
    let one = format!("{}/a", world.core("pods"));
    let mark = |pod: &Value| {
        let time: jiff::Timestamp = pod["metadata"]["deletionTimestamp"].as_str().unwrap_or_default().parse().unwrap();
        (time.as_second(), pod["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap())
    };
    let (first, grace) = mark(&world.delete(&one, json!({"gracePeriodSeconds": 6000})).await.code(200).ok());
    assert_eq!(grace, 6000);
    // Who says nothing leaves the time that was given, not the pod's own.
    let again = world.delete(&one, json!(null)).await.code(200).ok();
    assert_eq!(mark(&again), (first, 6000));
    world.patch(MERGE, &format!("{one}/status"), json!({"status": {"phase": "Failed"}})).await.code(200);
    for (asked, granted) in [(json!(null), 6000), (json!(7000), 6000), (json!(2000), 2000), (json!(3000), 2000)] {
        let again = world.delete(&one, json!({"gracePeriodSeconds": asked})).await.code(200).ok();
        // It counts from the first request.
        assert_eq!(mark(&again), (first - 6000 + granted, granted), "{asked}");
    }
    let last = world.delete(&one, json!({"gracePeriodSeconds": 0})).await.code(200).ok();
    assert!(mark(&last).0 >= first - 6000, "nothing ends before it began");
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

async fn a_collection_is_deleted_page_by_page_if_asked_for(world: World) {
    for name in ["a", "b", "c"] {
        world.map(name, json!({"mine": "yes"})).await;
    }
    let widgets = world.install(definition(anything())).await;
    for name in ["a", "b", "c"] {
        world.post(&widgets.path(), widgets.widget(name, json!({}))).await.ok();
    }
    let gone = world.delete(&with_query(&widgets.path(), "limit=2"), json!(null)).await.code(200).ok();
    assert_eq!((names(&gone), &gone["metadata"]["remainingItemCount"]), (vec!["a", "b"], &json!(1)));
    assert_eq!(names(&world.get(&widgets.path()).await.ok()), ["c"]);
    let left = world.get(&with_query(&world.maps(), "labelSelector=mine=yes")).await.ok();
    assert_eq!(names(&left).len(), 3);
}

async fn a_finalizer_without_a_domain_is_remarked_upon(world: World) {
    let widgets = world.install(definition(anything())).await;
    let mut widget = widgets.widget("a", json!({}));
    widget["metadata"]["finalizers"] = json!(["plain", HOLD]);
    let made = world.post(&widgets.path(), widget).await.code(201);
    let remark = "metadata.finalizers: \"plain\": prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers";
    assert_eq!(made.warnings(), [remark]);
    let patch = json!({"metadata": {"labels": {"l": "1"}}});
    assert_eq!(world.patch(MERGE, &widgets.one("a"), patch).await.code(200).warnings(), [""; 0], "said once");
}
