//! `status` and `scale`: what they show, and what they keep apart.

use serde_json::json;

use crate::widgets::{anything, definition, scalable};
use crate::world::{JSON, MERGE, World};

promises!(
    status_is_ignored_on_create,
    a_write_to_the_object_leaves_status_alone,
    a_write_to_status_leaves_everything_else_alone,
    a_status_update_may_be_stale_too,
    without_the_subresource_status_is_an_ordinary_field,
    a_deployment_keeps_its_status_apart,
    scale_shows_replicas_and_selector,
    scale_writes_replicas_and_nothing_else,
    a_scale_update_may_be_stale_too,
    scale_of_a_missing_object_is_not_found,
    a_negative_scale_is_invalid,
    a_deployment_is_scaled_the_same_way,
    a_kind_without_subresources_does_not_serve_them,
);

async fn status_is_ignored_on_create(world: World) {
    let widgets = world.install(definition(anything())).await;
    let mut widget = widgets.widget("a", json!({}));
    widget["status"] = json!({"ready": true});
    let made = world.post(&widgets.path(), widget).await.ok();
    assert!(made.get("status").is_none(), "{made}");
}

async fn a_write_to_the_object_leaves_status_alone(world: World) {
    let widgets = world.install(definition(anything())).await;
    world.post(&widgets.path(), widgets.widget("a", json!({"x": 1}))).await.ok();
    let status = json!({"status": {"ready": true}});
    let mut made = world.patch(MERGE, &format!("{}/status", widgets.one("a")), status).await.ok();
    made["status"] = json!({"ready": false});
    made["spec"]["x"] = json!(2);
    let updated = world.put(&widgets.one("a"), &made).await.ok();
    assert_eq!((&updated["status"], &updated["spec"]), (&json!({"ready": true}), &json!({"x": 2})));
    let patched = world.patch(MERGE, &widgets.one("a"), json!({"status": null})).await.ok();
    assert_eq!(patched["status"], json!({"ready": true}));
    let removed = world.patch(JSON, &widgets.one("a"), json!([{"op": "remove", "path": "/status"}])).await.ok();
    assert_eq!(removed["status"], json!({"ready": true}));
}

async fn a_write_to_status_leaves_everything_else_alone(world: World) {
    let widgets = world.install(definition(anything())).await;
    let mut made = world.post(&widgets.path(), widgets.widget("a", json!({"x": 1}))).await.ok();
    made["spec"] = json!({"x": 2});
    made["status"] = json!({"ready": true});
    made["metadata"]["labels"] = json!({"l": "1"});
    made["metadata"]["annotations"] = json!({"a": "1"});
    made["metadata"]["finalizers"] = json!(["example.com/hold"]);
    let updated = world.put(&format!("{}/status", widgets.one("a")), &made).await.code(200).ok();
    assert_eq!((&updated["status"], &updated["spec"]), (&json!({"ready": true}), &json!({"x": 1})));
    for field in ["labels", "annotations", "finalizers"] {
        assert!(updated["metadata"].get(field).is_none(), "{field} of {updated}");
    }
    let patch = json!({"spec": {"x": 3}, "status": {"count": 1}, "metadata": {"labels": {"l": "2"}}});
    let patched = world.patch(MERGE, &format!("{}/status", widgets.one("a")), patch).await.ok();
    assert_eq!((&patched["status"], &patched["spec"]), (&json!({"ready": true, "count": 1}), &json!({"x": 1})));
    assert_eq!(patched["metadata"]["generation"], 1);
}

async fn a_status_update_may_be_stale_too(world: World) {
    let widgets = world.install(definition(anything())).await;
    let mut made = world.post(&widgets.path(), widgets.widget("a", json!({"x": 1}))).await.ok();
    world.patch(MERGE, &widgets.one("a"), json!({"spec": {"x": 2}})).await.ok();
    made["status"] = json!({"ready": true});
    world.put(&format!("{}/status", widgets.one("a")), &made).await.refused(409, "Conflict");
}

async fn without_the_subresource_status_is_an_ordinary_field(world: World) {
    let mut definition = definition(anything());
    definition["spec"]["versions"][0]["subresources"] = json!({});
    let widgets = world.install(definition).await;
    let mut widget = widgets.widget("a", json!({}));
    widget["status"] = json!({"ready": true});
    let made = world.post(&widgets.path(), widget).await.ok();
    assert_eq!(made["status"], json!({"ready": true}));
    let patched = world.patch(MERGE, &widgets.one("a"), json!({"status": {"ready": false}})).await.ok();
    assert_eq!((&patched["status"]["ready"], &patched["metadata"]["generation"]), (&json!(false), &json!(2)));
}

async fn a_deployment_keeps_its_status_apart(world: World) {
    let one = deployment(&world).await;
    let patched = world.patch(MERGE, &one, json!({"status": {"replicas": 9}})).await.ok();
    assert_ne!(patched["status"]["replicas"], 9);
    let status = json!({"status": {"replicas": 2, "updatedReplicas": 2}, "spec": {"replicas": 7}});
    let patched = world.patch(MERGE, &format!("{one}/status"), status).await.ok();
    assert_eq!((&patched["status"]["replicas"], &patched["spec"]["replicas"]), (&json!(2), &json!(1)));
}

async fn scale_shows_replicas_and_selector(world: World) {
    let widgets = world.install(scalable()).await;
    let made = world.post(&widgets.path(), widgets.widget("a", json!({"replicas": 3}))).await.ok();
    let status = json!({"status": {"replicas": 2, "selector": "app=a"}});
    let made =
        world.patch(MERGE, &format!("{}/status", widgets.one("a")), status).await.ok()["metadata"]["resourceVersion"]
            .take()
            .as_str()
            .map(|rv| (rv.to_owned(), made["metadata"]["uid"].clone()))
            .unwrap();
    let scale = world.get(&format!("{}/scale", widgets.one("a"))).await.code(200).ok();
    assert_eq!((&scale["apiVersion"], &scale["kind"]), (&json!("autoscaling/v1"), &json!("Scale")));
    assert_eq!(scale["spec"], json!({"replicas": 3}));
    assert_eq!(scale["status"], json!({"replicas": 2, "selector": "app=a"}));
    let meta = &scale["metadata"];
    assert_eq!((&meta["name"], &meta["namespace"]), (&json!("a"), &json!(world.namespace)));
    assert_eq!((&meta["resourceVersion"], &meta["uid"]), (&json!(made.0), &made.1));
}

async fn scale_writes_replicas_and_nothing_else(world: World) {
    let widgets = world.install(scalable()).await;
    world.post(&widgets.path(), widgets.widget("a", json!({"replicas": 1, "size": "s"}))).await.ok();
    let path = format!("{}/scale", widgets.one("a"));
    let scale = world.patch(MERGE, &path, json!({"spec": {"replicas": 5}})).await.code(200).ok();
    assert_eq!((&scale["kind"], &scale["spec"]["replicas"]), (&json!("Scale"), &json!(5)));
    let mut scale = world.get(&path).await.ok();
    scale["spec"]["replicas"] = json!(6);
    scale["metadata"]["labels"] = json!({"l": "1"});
    world.put(&path, &scale).await.code(200);
    let widget = world.get(&widgets.one("a")).await.ok();
    assert_eq!(widget["spec"], json!({"replicas": 6, "size": "s"}));
    assert_eq!(widget["metadata"]["generation"], 3);
    assert!(widget["metadata"].get("labels").is_none());
}

async fn a_scale_update_may_be_stale_too(world: World) {
    let widgets = world.install(scalable()).await;
    world.post(&widgets.path(), widgets.widget("a", json!({"replicas": 1}))).await.ok();
    let path = format!("{}/scale", widgets.one("a"));
    let mut scale = world.get(&path).await.ok();
    world.patch(MERGE, &widgets.one("a"), json!({"spec": {"size": "l"}})).await.ok();
    scale["spec"]["replicas"] = json!(2);
    world.put(&path, &scale).await.refused(409, "Conflict").about(&widgets.group, "widgets", "a");
}

async fn scale_of_a_missing_object_is_not_found(world: World) {
    let widgets = world.install(scalable()).await;
    let path = format!("{}/scale", widgets.one("nope"));
    world.get(&path).await.refused(404, "NotFound").about(&widgets.group, "widgets", "nope");
    world.patch(MERGE, &path, json!({"spec": {"replicas": 1}})).await.refused(404, "NotFound");
}

async fn a_negative_scale_is_invalid(world: World) {
    let widgets = world.install(scalable()).await;
    world.post(&widgets.path(), widgets.widget("a", json!({"replicas": 1}))).await.ok();
    let answer = world.patch(MERGE, &format!("{}/scale", widgets.one("a")), json!({"spec": {"replicas": -1}})).await;
    let answer = answer.refused(422, "Invalid").causes(&[("FieldValueInvalid", ".spec.replicas")]);
    answer.mentions(".spec.replicas: Invalid value: -1: should be a non-negative integer");
}

async fn a_deployment_is_scaled_the_same_way(world: World) {
    let one = deployment(&world).await;
    let scale = world.patch(MERGE, &format!("{one}/scale"), json!({"spec": {"replicas": 4}})).await.ok();
    assert_eq!((&scale["apiVersion"], &scale["kind"]), (&json!("autoscaling/v1"), &json!("Scale")));
    assert_eq!(scale["status"]["selector"], "app=a");
    assert_eq!(world.get(&one).await.ok()["spec"]["replicas"], 4);
}

async fn a_kind_without_subresources_does_not_serve_them(world: World) {
    let mut definition = definition(anything());
    definition["spec"]["versions"][0]["subresources"] = json!({});
    let widgets = world.install(definition).await;
    world.post(&widgets.path(), widgets.widget("a", json!({}))).await.ok();
    for subresource in ["status", "scale", "nonsense"] {
        world.get(&format!("{}/{subresource}", widgets.one("a"))).await.code(404);
    }
    world.map("a", json!({})).await;
    world.get(&format!("{}/a/status", world.maps())).await.refused(404, "NotFound");
}

/// A deployment `a`; its path.
async fn deployment(world: &World) -> String {
    let path = world.of_group("apps/v1", "deployments");
    let pod = json!({"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let spec = json!({"selector": {"matchLabels": {"app": "a"}}, "template": pod});
    world.post(&path, json!({"metadata": {"name": "a"}, "spec": spec})).await.ok();
    format!("{path}/a")
}
