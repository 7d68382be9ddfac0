//! Optimistic locking, generations, and writes that change nothing.

use serde_json::{Value, json};

use crate::answer::{revision, version};
use crate::widgets::{Widgets, anything, definition};
use crate::world::{JSON, MERGE, World};

promises!(
    a_stale_update_conflicts,
    a_stale_patch_conflicts,
    a_patch_without_a_version_is_never_stale,
    an_update_of_a_builtin_needs_no_version,
    an_update_of_a_custom_object_needs_a_version,
    of_concurrent_updates_one_wins,
    the_generation_counts_changes_of_the_spec_only,
    the_generation_grows_when_deletion_is_asked_for,
    a_deployment_counts_changes_of_annotations_too,
    an_endpoint_slice_counts_changes_of_labels_too,
    a_write_that_changes_nothing_keeps_the_version,
    a_write_that_changes_nothing_is_not_seen_by_watchers,
    every_write_takes_a_larger_version,
);

const STALE: &str = "the object has been modified; please apply your changes to the latest version and try again";

async fn widget(world: &World) -> (Widgets, Value) {
    let widgets = world.install(definition(anything())).await;
    let made = world.post(&widgets.path(), widgets.widget("a", json!({"x": 1}))).await.ok();
    (widgets, made)
}

async fn a_stale_update_conflicts(world: World) {
    let (widgets, mut made) = widget(&world).await;
    world.patch(MERGE, &widgets.one("a"), json!({"spec": {"x": 2}})).await.ok();
    made["spec"]["x"] = json!(3);
    let answer = world.put(&widgets.one("a"), &made).await.refused(409, "Conflict");
    let resource = widgets.resource();
    answer
        .about(&widgets.group, "widgets", "a")
        .says(&format!("Operation cannot be fulfilled on {resource} \"a\": {STALE}"));

    let mut map = world.map("a", json!({})).await;
    let one = format!("{}/a", world.maps());
    world.patch(MERGE, &one, json!({"data": {"k": "1"}})).await.ok();
    map["data"] = json!({"k": "2"});
    let answer = world.put(&one, &map).await.refused(409, "Conflict").about("", "configmaps", "a");
    answer.says(&format!("Operation cannot be fulfilled on configmaps \"a\": {STALE}"));
}

async fn a_stale_patch_conflicts(world: World) {
    let (widgets, made) = widget(&world).await;
    world.patch(MERGE, &widgets.one("a"), json!({"spec": {"x": 2}})).await.ok();
    let stale = json!({"metadata": {"resourceVersion": version(&made)}, "spec": {"x": 3}});
    world.patch(MERGE, &widgets.one("a"), stale).await.refused(409, "Conflict").mentions(STALE);
    let test = json!([{"op": "test", "path": "/metadata/resourceVersion", "value": version(&made)}]);
    world.patch(JSON, &widgets.one("a"), test).await.refused(422, "Invalid");
    let replace = json!([{"op": "replace", "path": "/metadata/resourceVersion", "value": version(&made)}, {"op": "replace", "path": "/spec/x", "value": 3}]);
    world.patch(JSON, &widgets.one("a"), replace).await.refused(409, "Conflict").mentions(STALE);
}

async fn a_patch_without_a_version_is_never_stale(world: World) {
    let (widgets, _) = widget(&world).await;
    let one = widgets.one("a");
    let patches = (0..20).map(|n| world.patch(MERGE, &one, json!({"spec": {format!("key-{n}"): n}})));
    for answer in futures::future::join_all(patches).await {
        answer.code(200);
    }
    let spec = world.get(&widgets.one("a")).await.ok()["spec"].take();
    assert_eq!(spec.as_object().unwrap().len(), 21);
}

async fn an_update_of_a_builtin_needs_no_version(world: World) {
    world.map("a", json!({})).await;
    let update = json!({"metadata": {"name": "a"}, "data": {"k": "v"}});
    let updated = world.put(&format!("{}/a", world.maps()), &update).await.code(200).ok();
    assert_eq!(updated["data"], json!({"k": "v"}));
}

async fn an_update_of_a_custom_object_needs_a_version(world: World) {
    let (widgets, _) = widget(&world).await;
    let answer = world.put(&widgets.one("a"), &widgets.widget("a", json!({"x": 2}))).await;
    let answer = answer.refused(422, "Invalid").causes(&[("FieldValueInvalid", "metadata.resourceVersion")]);
    answer.mentions("metadata.resourceVersion: Invalid value: 0: must be specified for an update");
}

async fn of_concurrent_updates_one_wins(world: World) {
    let (widgets, made) = widget(&world).await;
    let one = widgets.one("a");
    let updates: Vec<Value> = (0..10)
        .map(|n| {
            let mut update = made.clone();
            update["spec"]["x"] = json!(100 + n);
            update
        })
        .collect();
    let answers = futures::future::join_all(updates.iter().map(|update| world.put(&one, update))).await;
    let won = answers.iter().filter(|answer| answer.code == 200).count();
    let lost = answers.iter().filter(|answer| answer.code == 409).count();
    assert_eq!((won, lost), (1, 9));
}

async fn the_generation_counts_changes_of_the_spec_only(world: World) {
    let (widgets, made) = widget(&world).await;
    assert_eq!(made["metadata"]["generation"], 1);
    let one = widgets.one("a");
    for (path, patch, expected) in [
        (one.clone(), json!({"metadata": {"labels": {"l": "1"}}}), 1),
        (one.clone(), json!({"metadata": {"annotations": {"l": "1"}}}), 1),
        (format!("{one}/status"), json!({"status": {"seen": true}}), 1),
        (one.clone(), json!({"spec": {"x": 2}}), 2),
        (one.clone(), json!({"spec": {"x": 2}}), 2),
        (one.clone(), json!({"metadata": {"generation": 40}, "spec": {"x": 3}}), 3),
        (one.clone(), json!({"metadata": {"finalizers": ["example.com/hold"]}}), 3),
    ] {
        let patched = world.patch(MERGE, &path, patch.clone()).await.ok();
        assert_eq!(patched["metadata"]["generation"], expected, "after {patch}");
    }
    world.patch(MERGE, &one, json!({"metadata": {"finalizers": null}})).await.ok();
}

async fn the_generation_grows_when_deletion_is_asked_for(world: World) {
    let (widgets, _) = widget(&world).await;
    world.patch(MERGE, &widgets.one("a"), json!({"metadata": {"finalizers": ["example.com/hold"]}})).await.ok();
    let marked = world.delete(&widgets.one("a"), json!(null)).await.code(200).ok();
    assert_eq!(marked["metadata"]["generation"], 2);
    let again = world.delete(&widgets.one("a"), json!(null)).await.code(200).ok();
    assert_eq!(again["metadata"]["generation"], 2);
}

async fn a_deployment_counts_changes_of_annotations_too(world: World) {
    let path = world.of_group("apps/v1", "deployments");
    let pod = json!({"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let deployment =
        json!({"metadata": {"name": "a"}, "spec": {"selector": {"matchLabels": {"app": "a"}}, "template": pod}});
    assert_eq!(world.post(&path, deployment).await.ok()["metadata"]["generation"], 1);
    let one = format!("{path}/a");
    generations(
        &world,
        &one,
        &[
            (json!({"metadata": {"labels": {"l": "1"}}}), 1),
            (json!({"spec": {"replicas": 3}}), 2),
            (json!({"metadata": {"annotations": {"a": "1"}}}), 3),
            (json!({"metadata": {"annotations": {"a": "1"}}}), 3),
            (json!({"metadata": {"annotations": {"a": null}}}), 4),
            (json!({"metadata": {"annotations": {}}}), 4),
        ],
    )
    .await;
    let status = json!({"metadata": {"annotations": {"b": "1"}}});
    let patched = world.patch(MERGE, &format!("{one}/status"), status).await.ok();
    assert_eq!(patched["metadata"]["generation"], 4, "but not if they come with a status");
}

async fn an_endpoint_slice_counts_changes_of_labels_too(world: World) {
    let path = world.of_group("discovery.k8s.io/v1", "endpointslices");
    let slice = json!({"metadata": {"name": "a"}, "addressType": "IPv4", "endpoints": [], "ports": []});
    assert_eq!(world.post(&path, slice).await.ok()["metadata"]["generation"], 1);
    let one = format!("{path}/a");
    generations(
        &world,
        &one,
        &[
            (json!({"metadata": {"annotations": {"a": "1"}}}), 1),
            (json!({"metadata": {"labels": {"l": "1"}}}), 2),
            (json!({"metadata": {"labels": {"l": "1"}}}), 2),
            (json!({"endpoints": [{"addresses": ["10.0.0.1"]}]}), 3),
        ],
    )
    .await;
}

/// What the generation is after each of these patches.
async fn generations(world: &World, one: &str, patches: &[(Value, u64)]) {
    for (patch, expected) in patches {
        let patched = world.patch(MERGE, one, patch.clone()).await.ok();
        assert_eq!(patched["metadata"]["generation"], *expected, "after {patch}");
    }
}

async fn a_write_that_changes_nothing_keeps_the_version(world: World) {
    let (widgets, made) = widget(&world).await;
    let one = widgets.one("a");
    let unchanged = [
        world.put(&one, &made).await,
        world.patch(MERGE, &one, json!({"spec": {"x": 1}})).await,
        world.patch(MERGE, &one, json!({})).await,
        world.patch(JSON, &one, json!([])).await,
        world.patch(JSON, &one, json!([{"op": "replace", "path": "/spec/x", "value": 1}])).await,
    ];
    for answer in unchanged {
        assert_eq!(version(&answer.ok()), version(&made));
    }
    let map = world.map("a", json!({"l": "1"})).await;
    let same = world.put(&format!("{}/a", world.maps()), &map).await.ok();
    assert_eq!(version(&same), version(&map));
}

async fn a_write_that_changes_nothing_is_not_seen_by_watchers(world: World) {
    let (widgets, made) = widget(&world).await;
    let mut watch = world.watch(&widgets.path(), &format!("resourceVersion={}", version(&made))).await;
    world.patch(MERGE, &widgets.one("a"), json!({"spec": {"x": 1}})).await.ok();
    world.put(&widgets.one("a"), &made).await.ok();
    world.patch(MERGE, &widgets.one("a"), json!({"spec": {"x": 2}})).await.ok();
    let first = watch.next().await;
    assert_eq!((&first["type"], &first["object"]["spec"]["x"]), (&json!("MODIFIED"), &json!(2)));
}

async fn every_write_takes_a_larger_version(world: World) {
    let (widgets, made) = widget(&world).await;
    let mut last = revision(&made);
    for x in 2..6 {
        let map = revision(&world.map(&format!("m{x}"), json!({})).await);
        let widget = revision(&world.patch(MERGE, &widgets.one("a"), json!({"spec": {"x": x}})).await.ok());
        assert!(last < map && map < widget, "one order over all kinds: {last}, {map}, {widget}");
        last = widget;
    }
    assert!(revision(&world.get(&widgets.path()).await.ok()) >= last);
}
