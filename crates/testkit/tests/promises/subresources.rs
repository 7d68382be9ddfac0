//! `status` and `scale`: what they show, and what they keep apart.

use serde_json::{Value, json};

use crate::answer::Answer;
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
    a_scale_is_read_like_any_object,
    an_object_without_replicas_has_no_scale_until_it_is_given_some,
    an_object_must_be_readable_as_a_scale,
    a_deployment_is_scaled_the_same_way,
    a_scale_is_applied_to_the_replicas,
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

async fn an_object_must_be_readable_as_a_scale(world: World) {
    let mut definition = scalable();
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] = anything();
    let widgets = world.install(definition).await;
    let says =
        |path: &str, why: &str| format!("Widget.{} \"a\" is invalid: {path}: Invalid value: {why}", widgets.group);
    let refused = async |replicas: Value, why: &str| {
        let answer = world.post(&widgets.path(), widgets.widget("a", json!({"replicas": replicas}))).await;
        let answer = answer.refused(422, "Invalid").causes(&[("FieldValueInvalid", ".spec.replicas")]);
        answer.says(&says(".spec.replicas", why));
    };
    refused(json!(-1), "-1: should be a non-negative integer").await;
    refused(json!(3_000_000_000_u64), "3000000000: should be less than or equal to 2147483647").await;
    refused(json!("x"), "0: .spec.replicas accessor error: x is of the type string, expected int64").await;
    refused(json!(null), "0: .spec.replicas accessor error: <nil> is of the type <nil>, expected int64").await;
    let list = "0: .spec.replicas accessor error: [1 map[a:b]] is of the type []interface {}, expected int64";
    refused(json!([1, {"a": "b"}]), list).await;

    world.post(&widgets.path(), widgets.widget("a", json!({}))).await.code(201);
    let status = format!("{}/status", widgets.one("a"));
    let answer = world.patch(MERGE, &status, json!({"status": {"replicas": -1}})).await.refused(422, "Invalid");
    answer.says(&says(".status.replicas", "-1: should be a non-negative integer"));
    let answer = world.patch(MERGE, &status, json!({"status": {"selector": 5}})).await.refused(422, "Invalid");
    let why = "\"\": .status.selector accessor error: 5 is of the type int64, expected string";
    answer.says(&says(".status.selector", why));
    world.patch(MERGE, &status, json!({"status": {"replicas": 1, "selector": "a=b"}})).await.code(200);
}

async fn a_deployment_is_scaled_the_same_way(world: World) {
    let one = deployment(&world).await;
    let scale = world.patch(MERGE, &format!("{one}/scale"), json!({"spec": {"replicas": 4}})).await.ok();
    assert_eq!((&scale["apiVersion"], &scale["kind"]), (&json!("autoscaling/v1"), &json!("Scale")));
    assert_eq!(scale["status"]["selector"], "app=a");
    assert_eq!(world.get(&one).await.ok()["spec"]["replicas"], 4);
}

/// A Scale, as it is applied.
fn scale(replicas: i32) -> Value {
    json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "a"}, "spec": {"replicas": replicas}})
}

/// Who owns the replicas of an object, how, and through which subresource.
fn owners_of_replicas(object: &Value) -> Vec<(&str, &str, &str)> {
    let entries = object["metadata"]["managedFields"].as_array().into_iter().flatten();
    let owning = entries.filter(|entry| entry.pointer("/fieldsV1/f:spec/f:replicas").is_some());
    owning.map(|entry| (text(&entry["manager"]), text(&entry["operation"]), text(&entry["subresource"]))).collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Of a Deployment. To custom resources the original cannot apply one: it answers with an error of its own (500).
async fn a_scale_is_applied_to_the_replicas(world: World) {
    let one = deployment(&world).await;
    world.patch(MERGE, &one, json!({"spec": {"replicas": 3}})).await.ok();
    let path = format!("{one}/scale");
    let answer = world.apply("scaler", &path, scale(5)).await.refused(409, "Conflict");
    answer.causes(&[("FieldManagerConflict", ".spec.replicas")]);
    assert_eq!(world.get(&one).await.ok()["spec"]["replicas"], 3);

    let scaled = world.force("scaler", &path, scale(5)).await.code(200).ok();
    assert_eq!((&scaled["kind"], &scaled["spec"]), (&json!("Scale"), &json!({"replicas": 5})));
    let whole = world.get(&one).await.ok();
    assert_eq!(whole["spec"]["replicas"], 5);
    assert_eq!(owners_of_replicas(&whole), [("scaler", "Apply", "scale")]);
    let entries = whole["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let own = entries.iter().find(|entry| entry["manager"] == "scaler").expect("an entry");
    assert_eq!(own["apiVersion"], whole["apiVersion"], "it speaks of the object, not of the Scale");
    assert_eq!(own["fieldsV1"], json!({"f:spec": {"f:replicas": {}}}));

    // What is one's own changes freely.
    world.apply("scaler", &path, scale(6)).await.code(200);
    let again = world.get(&one).await.ok();
    assert_eq!(again["spec"]["replicas"], 6);
    assert_eq!(owners_of_replicas(&again), [("scaler", "Apply", "scale")]);
    let answer = world.apply("other", &path, scale(7)).await.refused(409, "Conflict");
    answer.mentions("conflict with \"scaler\" with subresource \"scale\"");
    let mut other = scale(1);
    other["metadata"]["name"] = json!("nope");
    let nowhere = format!("{}/nope/scale", one.rsplit_once('/').expect("a path").0);
    world.apply("scaler", &nowhere, other).await.refused(404, "NotFound");
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
pub(crate) async fn deployment(world: &World) -> String {
    let path = world.of_group("apps/v1", "deployments");
    let pod = json!({"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let spec = json!({"selector": {"matchLabels": {"app": "a"}}, "template": pod});
    world.post(&path, json!({"metadata": {"name": "a"}, "spec": spec})).await.ok();
    format!("{path}/a")
}

/// What a Scale says of itself, changed in one place.
fn scale_with(path: &str, value: Value) -> Value {
    let mut scale = scale(2);
    *scale.pointer_mut(path).unwrap_or_else(|| panic!("a scale has {path}")) = value;
    scale
}

async fn a_scale_is_read_like_any_object(world: World) {
    let widgets = world.install(scalable()).await;
    world.post(&widgets.path(), widgets.widget("a", json!({"replicas": 1}))).await.ok();
    let (widget, deployment) = (widgets.one("a"), deployment(&world).await);
    let before = [world.get(&widget).await.ok(), world.get(&deployment).await.ok()];
    let mut unknown = scale(2);
    unknown["spec"]["nope"] = json!(1);
    for (one, says_why) in [(&widget, false), (&deployment, true)] {
        let path = format!("{one}/scale");
        let strict = format!("{path}?fieldValidation=Strict");
        let head = "Scale in version \"v1\" cannot be handled as a Scale: ";
        // Of custom resources the original has forgotten by then what it was reading.
        let said = |answer: Answer, why: &str| if says_why { answer.says(&format!("{head}{why}")) } else { answer };
        let types = "json: cannot unmarshal string into Go struct field ScaleSpec.spec.replicas of type int32";
        let wrong = scale_with("/spec/replicas", json!("x"));
        said(world.put(&path, &wrong).await.refused(400, "BadRequest"), types);
        said(
            world.put(&strict, &unknown).await.refused(400, "BadRequest"),
            "strict decoding error: unknown field \"spec.nope\"",
        );
        for other in [scale_with("/kind", json!("Deployment")), scale_with("/apiVersion", json!("v1"))] {
            world.put(&path, &other).await.refused(400, "BadRequest");
        }
        let mut unnamed = scale(2);
        unnamed["metadata"] = json!({});
        let answer = world.put(&path, &unnamed).await.refused(400, "BadRequest");
        answer.says("the name of the object (a based on URL) was undeterminable: name must be provided");
        let elsewhere = scale_with("/metadata", json!({"name": "a", "namespace": "elsewhere"}));
        world.put(&path, &elsewhere).await.refused(400, "BadRequest").mentions("does not match the namespace sent");
        let another = scale_with("/metadata", json!({"name": "a", "uid": "another"}));
        world.put(&path, &another).await.refused(409, "Conflict").mentions("UID in precondition: another");
        let unreadable = scale_with("/metadata", json!({"name": "a", "resourceVersion": "abc"}));
        let answer = world.put(&path, &unreadable).await.code(500);
        answer.says("strconv.ParseUint: parsing \"abc\": invalid syntax");

        let answer = world.patch(MERGE, &path, json!({"spec": {"replicas": "x"}})).await.refused(422, "Invalid");
        answer.causes(&[("FieldValueInvalid", "patch")]).mentions(types);
        let answer = world.patch(MERGE, &strict, json!({"spec": {"nope": 1}})).await.refused(422, "Invalid");
        answer.causes(&[("FieldValueInvalid", "patch")]).mentions("strict decoding error: unknown field \"spec.nope\"");
    }
    let after = [world.get(&widget).await.ok(), world.get(&deployment).await.ok()];
    assert_eq!(after, before);
    for one in [&widget, &deployment] {
        let warned = world.put(&format!("{one}/scale"), &unknown).await.code(200);
        assert_eq!(warned.warnings(), ["unknown field \"spec.nope\""]);
        assert_eq!(world.get(one).await.ok()["spec"]["replicas"], 2);
    }
    let answer = world.put(&format!("{deployment}/scale"), &scale(-1)).await.refused(422, "Invalid");
    answer.says(
        "Scale.autoscaling \"a\" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0",
    );
}

async fn an_object_without_replicas_has_no_scale_until_it_is_given_some(world: World) {
    let widgets = world.install(scalable()).await;
    world.post(&widgets.path(), widgets.widget("a", json!({}))).await.ok();
    let path = format!("{}/scale", widgets.one("a"));
    let missing = "the spec replicas field \".spec.replicas\"";
    let answer = world.get(&path).await.refused(500, "InternalError");
    answer.says(&format!("Internal error occurred: {missing} does not exist"));
    let answer = world.patch(MERGE, &path, json!({"metadata": {"name": "a"}})).await.refused(400, "BadRequest");
    answer.says(&format!("{missing} cannot be empty"));
    let scaled = world.patch(JSON, &path, json!([{"op": "add", "path": "/spec/replicas", "value": 3}])).await.ok();
    assert_eq!(scaled["spec"], json!({"replicas": 3}));
    let none = json!([{"op": "remove", "path": "/spec/replicas"}]);
    let scaled = world.patch(JSON, &path, none).await.code(200).ok();
    assert_eq!((&scaled["spec"], &scaled["status"]), (&json!({}), &json!({"replicas": 0})));
    assert_eq!(world.get(&path).await.ok()["spec"], json!({}));
}
