//! Creating, reading, replacing and deleting single objects.

use serde_json::json;

use crate::answer::{revision, version};
use crate::widgets::{anything, definition};
use crate::world::{World, unique, with_query};

promises!(
    a_created_object_gets_uid_time_and_version,
    what_the_client_says_about_system_fields_is_ignored_on_create,
    generation_is_the_clients_where_nobody_counts,
    a_second_object_of_that_name_already_exists,
    a_missing_object_is_not_found_by_any_verb,
    a_generated_name_extends_its_prefix,
    an_object_without_a_name_is_refused,
    the_namespace_of_the_body_must_be_that_of_the_path,
    objects_need_an_existing_namespace,
    the_name_of_the_body_must_be_that_of_the_path,
    a_custom_body_of_another_kind_is_invalid,
    a_builtin_body_of_another_kind_is_a_bad_request,
    a_body_of_another_version_is_a_bad_request,
    kind_and_api_version_may_be_left_out_for_builtins,
    a_custom_body_must_say_what_it_is,
    an_update_does_not_move_creation_time_or_uid,
    an_update_of_a_missing_custom_object_is_not_found,
    a_plain_delete_answers_with_a_success_status,
    an_update_with_a_wrong_uid_conflicts,
    a_cluster_scoped_object_has_no_namespace,
    a_reader_of_one_object_may_ask_for_what_is_not_older,
);

async fn a_created_object_gets_uid_time_and_version(world: World) {
    let answer = world.post(&world.maps(), json!({"metadata": {"name": "a"}, "data": {"k": "v"}})).await.code(201);
    let created = answer.ok();
    assert_eq!(created["kind"], "ConfigMap");
    assert_eq!(created["apiVersion"], "v1");
    assert_eq!(created["data"], json!({"k": "v"}));
    let meta = &created["metadata"];
    assert_eq!(meta["namespace"], world.namespace.as_str());
    assert_eq!(meta["uid"].as_str().unwrap().len(), 36);
    assert!(revision(&created) > 0);
    let time = meta["creationTimestamp"].as_str().unwrap();
    assert!(time.len() == 20 && time.ends_with('Z'), "whole seconds in UTC, not {time}");
    assert!(meta.get("generation").is_none(), "config maps have no generation");
    assert_eq!(world.get(&format!("{}/a", world.maps())).await.code(200).ok(), created);
}

async fn what_the_client_says_about_system_fields_is_ignored_on_create(world: World) {
    let widgets = world.install(definition(anything())).await;
    let mut widget = widgets.widget("a", json!({}));
    widget["metadata"]["uid"] = json!("11111111-1111-1111-1111-111111111111");
    widget["metadata"]["creationTimestamp"] = json!("2001-01-01T00:00:00Z");
    widget["metadata"]["generation"] = json!(77);
    widget["metadata"]["deletionTimestamp"] = json!("2001-01-01T00:00:00Z");
    widget["metadata"]["deletionGracePeriodSeconds"] = json!(5);
    widget["metadata"]["selfLink"] = json!("/somewhere");
    let meta = world.post(&widgets.path(), widget.clone()).await.ok()["metadata"].take();
    assert_ne!(meta["uid"], widget["metadata"]["uid"]);
    assert_ne!(meta["creationTimestamp"], widget["metadata"]["creationTimestamp"]);
    assert_eq!(meta["generation"], 1);
    assert!(meta.get("deletionTimestamp").is_none() && meta.get("selfLink").is_none(), "{meta}");

    widget["metadata"]["name"] = json!("b");
    widget["metadata"]["resourceVersion"] = json!("5");
    // The original lets this one slip through as an error without a reason.
    let answer = world.post(&widgets.path(), widget).await.code(500);
    answer.says("resourceVersion should not be set on objects to be created");
}

async fn generation_is_the_clients_where_nobody_counts(world: World) {
    let map = |name: &str, generation: i64| json!({"metadata": {"name": name, "generation": generation}});
    let answer = world.post(&world.maps(), map("a", -1)).await.refused(422, "Invalid");
    answer.causes(&[("FieldValueInvalid", "metadata.generation")]).mentions("must be greater than or equal to 0");
    assert_eq!(world.post(&world.maps(), map("a", 5)).await.code(201).ok()["metadata"]["generation"], 5);
    assert!(world.post(&world.maps(), map("b", 0)).await.code(201).ok()["metadata"].get("generation").is_none());
    let widgets = world.install(definition(anything())).await;
    let mut widget = widgets.widget("a", json!({}));
    widget["metadata"]["generation"] = json!(-1);
    assert_eq!(world.post(&widgets.path(), widget).await.code(201).ok()["metadata"]["generation"], 1);
}

async fn a_second_object_of_that_name_already_exists(world: World) {
    world.map("a", json!({})).await;
    let again = world.post(&world.maps(), json!({"metadata": {"name": "a"}})).await;
    again.refused(409, "AlreadyExists").says("configmaps \"a\" already exists").about("", "configmaps", "a");

    let widgets = world.install(definition(anything())).await;
    world.post(&widgets.path(), widgets.widget("a", json!({}))).await.code(201);
    let again = world.post(&widgets.path(), widgets.widget("a", json!({}))).await;
    let again = again.refused(409, "AlreadyExists").about(&widgets.group, "widgets", "a");
    again.says(&format!("{} \"a\" already exists", widgets.resource()));
}

async fn a_missing_object_is_not_found_by_any_verb(world: World) {
    let widgets = world.install(definition(anything())).await;
    let message = format!("{} \"nope\" not found", widgets.resource());
    let one = widgets.one("nope");
    for answer in [
        world.get(&one).await,
        world.delete(&one, json!(null)).await,
        world.patch(crate::world::MERGE, &one, json!({"spec": {}})).await,
        world.patch(crate::world::JSON, &one, json!([])).await,
        world.get(&format!("{one}/status")).await,
        world.patch(crate::world::MERGE, &format!("{one}/status"), json!({"status": {}})).await,
    ] {
        answer.refused(404, "NotFound").says(&message).about(&widgets.group, "widgets", "nope");
    }
    let answer = world.get(&format!("{}/nope", world.maps())).await;
    answer.refused(404, "NotFound").says("configmaps \"nope\" not found").about("", "configmaps", "nope");
}

async fn a_generated_name_extends_its_prefix(world: World) {
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..5 {
        let made = world.post(&world.maps(), json!({"metadata": {"generateName": "run-"}})).await.code(201).ok();
        let name = made["metadata"]["name"].as_str().unwrap().to_owned();
        assert!(name.starts_with("run-") && name.len() == 9, "five characters after the prefix, not {name}");
        assert_eq!(made["metadata"]["generateName"], "run-");
        assert!(seen.insert(name));
    }
    // A name given beside a prefix wins.
    let both = json!({"metadata": {"name": "fixed", "generateName": "run-"}});
    assert_eq!(world.post(&world.maps(), both).await.ok()["metadata"]["name"], "fixed");
    // And is not replaced by a generated one where it is taken.
    let both = json!({"metadata": {"name": "fixed", "generateName": "run-"}});
    let again = world.post(&world.maps(), both).await.refused(409, "AlreadyExists").about("", "configmaps", "fixed");
    let again = again
        .says("configmaps \"fixed\" already exists, the server was not able to generate a unique name for the object");
    assert_eq!(again.body["details"]["retryAfterSeconds"], 1, "{}", again.text);
    // A long prefix is cut so that the whole name fits.
    let long = json!({"metadata": {"generateName": "x".repeat(80)}});
    let name = world.post(&world.maps(), long).await.ok()["metadata"]["name"].as_str().unwrap().to_owned();
    assert_eq!(name.len(), 63);
}

async fn an_object_without_a_name_is_refused(world: World) {
    let answer = world.post(&world.maps(), json!({"metadata": {}})).await;
    let answer = answer.refused(422, "Invalid").causes(&[("FieldValueRequired", "metadata.name")]);
    answer.says("ConfigMap \"\" is invalid: metadata.name: Required value: name or generateName is required");
}

async fn the_namespace_of_the_body_must_be_that_of_the_path(world: World) {
    let body = json!({"metadata": {"name": "a", "namespace": "elsewhere"}});
    let answer = world.post(&world.maps(), body).await;
    answer
        .refused(400, "BadRequest")
        .says("the namespace of the provided object does not match the namespace sent on the request");
}

async fn objects_need_an_existing_namespace(world: World) {
    let missing = unique("missing");
    let widgets = world.install(definition(anything())).await;
    let maps = format!("/api/v1/namespaces/{missing}/configmaps");
    let custom = format!("/apis/{}/v1/namespaces/{missing}/widgets", widgets.group);
    for (path, body) in [(maps, json!({"metadata": {"name": "a"}})), (custom, widgets.widget("a", json!({})))] {
        let answer = world.post(&path, body).await.refused(404, "NotFound").about("", "namespaces", &missing);
        answer.says(&format!("namespaces \"{missing}\" not found"));
        // Reading is not refused: there is just nothing there.
        assert_eq!(world.get(&path).await.code(200).ok()["items"], json!([]));
    }
}

async fn the_name_of_the_body_must_be_that_of_the_path(world: World) {
    let mut map = world.map("a", json!({})).await;
    map["metadata"]["name"] = json!("b");
    let answer = world.put(&format!("{}/a", world.maps()), &map).await;
    answer.refused(400, "BadRequest").says("the name of the object (b) does not match the name on the URL (a)");
}

async fn a_custom_body_of_another_kind_is_invalid(world: World) {
    let widgets = world.install(definition(anything())).await;
    let mut widget = widgets.widget("a", json!({}));
    widget["kind"] = json!("Gadget");
    let answer = world.post(&widgets.path(), widget).await;
    answer.refused(422, "Invalid").causes(&[("FieldValueInvalid", "kind")]).mentions("must be Widget");
}

async fn a_builtin_body_of_another_kind_is_a_bad_request(world: World) {
    let body = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}});
    let answer = world.post(&world.maps(), body).await;
    answer.refused(400, "BadRequest").mentions("Secret");
}

async fn a_body_of_another_version_is_a_bad_request(world: World) {
    let widgets = world.install(definition(anything())).await;
    let mut widget = widgets.widget("a", json!({}));
    widget["apiVersion"] = json!(format!("{}/v2", widgets.group));
    let answer = world.post(&widgets.path(), widget).await;
    answer.refused(400, "BadRequest").mentions("v2");
}

async fn kind_and_api_version_may_be_left_out_for_builtins(world: World) {
    let made = world.post(&world.maps(), json!({"metadata": {"name": "a"}})).await.code(201).ok();
    assert_eq!((&made["apiVersion"], &made["kind"]), (&json!("v1"), &json!("ConfigMap")));
}

async fn a_custom_body_must_say_what_it_is(world: World) {
    let widgets = world.install(definition(anything())).await;
    let answer = world.post(&widgets.path(), json!({"metadata": {"name": "a"}})).await;
    answer.refused(400, "BadRequest").mentions("Object 'Kind' is missing");
}

async fn an_update_does_not_move_creation_time_or_uid(world: World) {
    let widgets = world.install(definition(anything())).await;
    let made = world.post(&widgets.path(), widgets.widget("a", json!({"x": 1}))).await.ok();
    // All that an update needs is the name and the version it was made from; the rest stays as it was.
    let mut update = widgets.widget("a", json!({"x": 2}));
    update["metadata"]["resourceVersion"] = made["metadata"]["resourceVersion"].clone();
    let updated = world.put(&widgets.one("a"), &update).await.code(200).ok();
    for field in ["uid", "creationTimestamp", "namespace"] {
        assert_eq!(updated["metadata"][field], made["metadata"][field], "{field}");
    }
    assert_eq!(updated["spec"], json!({"x": 2}));
    assert_ne!(version(&updated), version(&made));
}

async fn an_update_of_a_missing_custom_object_is_not_found(world: World) {
    let widgets = world.install(definition(anything())).await;
    let mut widget = widgets.widget("a", json!({}));
    widget["metadata"]["resourceVersion"] = json!("1");
    world.put(&widgets.one("a"), &widget).await.refused(404, "NotFound");
}

async fn a_plain_delete_answers_with_a_success_status(world: World) {
    let map = world.map("a", json!({})).await;
    let gone = world.delete(&format!("{}/a", world.maps()), json!(null)).await.code(200).ok();
    assert_eq!((&gone["kind"], &gone["status"]), (&json!("Status"), &json!("Success")));
    assert_eq!(gone["details"], json!({"name": "a", "kind": "configmaps", "uid": map["metadata"]["uid"]}));
    world.get(&format!("{}/a", world.maps())).await.refused(404, "NotFound");
}

async fn an_update_with_a_wrong_uid_conflicts(world: World) {
    let mut map = world.map("a", json!({})).await;
    let before = map["metadata"]["uid"].as_str().unwrap().to_owned();
    map["metadata"]["uid"] = json!("other");
    let answer = world.put(&format!("{}/a", world.maps()), &map).await.refused(409, "Conflict");
    answer.mentions(&format!("Precondition failed: UID in precondition: other, UID in object meta: {before}"));
}

async fn a_cluster_scoped_object_has_no_namespace(world: World) {
    let mut definition = definition(anything());
    definition["spec"]["scope"] = json!("Cluster");
    let widgets = world.install(definition).await;
    let path = format!("/apis/{}/v1/widgets", widgets.group);
    let made = world.post(&path, widgets.widget("a", json!({}))).await.code(201).ok();
    assert!(made["metadata"].get("namespace").is_none());
    world.get(&widgets.path()).await.code(404);
    // A namespace in the body is dropped, not refused.
    let mut widget = widgets.widget("b", json!({}));
    widget["metadata"]["namespace"] = json!(world.namespace);
    assert!(world.post(&path, widget).await.code(201).ok()["metadata"].get("namespace").is_none());
}

async fn a_reader_of_one_object_may_ask_for_what_is_not_older(world: World) {
    let widgets = world.install(definition(anything())).await;
    let widget = world.post(&widgets.path(), widgets.widget("a", json!({}))).await.ok();
    let asked = |version: &str| with_query(&widgets.one("a"), &format!("resourceVersion={version}"));
    assert_eq!(world.get(&asked(&version(&widget))).await.ok(), widget);
    // Anything that is known will do, which in the original may be nothing yet.
    world.until(&asked("0"), |answer| answer.body == widget).await;
    let future = revision(&widget) + 1_000_000;
    for path in [asked(&future.to_string()), with_query(&widgets.one("b"), &format!("resourceVersion={future}"))] {
        let answer = world.get(&path).await.refused(504, "Timeout").mentions("Too large resource version");
        assert_eq!(answer.body["details"]["causes"][0]["reason"], "ResourceVersionTooLarge");
    }
    let answer = world.get(&asked("abc")).await.code(500);
    answer.says("resourceVersion: Invalid value: \"abc\": strconv.ParseUint: parsing \"abc\": invalid syntax");
}
