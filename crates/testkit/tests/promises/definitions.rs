//! The life of a custom resource definition.

use serde_json::{Value, json};

use crate::widgets::{DEFINITIONS, anything, definition, properties};
use crate::world::{JSON, MERGE, World};

promises!(
    a_definition_becomes_established,
    a_status_that_came_along_is_dropped,
    an_unsound_definition_is_refused_with_causes,
    an_unstructural_schema_is_refused,
    a_schema_of_the_wrong_types_is_a_bad_request,
    fields_that_a_schema_cannot_have_are_told,
    a_definition_name_is_plural_and_group,
    exactly_one_version_is_stored,
    clashing_names_are_not_accepted,
    a_name_of_another_is_not_taken_over_before_it_is_given_up,
    scope_and_group_never_change,
    deleting_a_definition_removes_its_objects,
    a_definition_waits_for_held_objects,
    a_definition_can_come_back,
    versions_share_their_objects,
    a_version_that_is_not_served_is_not_found,
    a_deprecated_version_warns,
    a_refusal_in_a_deprecated_version_warns_too,
    a_kind_of_a_name_that_kubernetes_has_is_an_ordinary_kind,
    a_stored_version_cannot_be_dropped,
    a_version_can_be_dropped_once_its_owner_says_that_nothing_is_stored_in_it,
    a_changed_schema_is_in_force_soon,
    columns_and_scale_paths_are_checked,
);

fn condition<'a>(definition: &'a Value, kind: &str) -> &'a Value {
    let conditions = definition["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    conditions.iter().find(|condition| condition["type"] == kind).unwrap_or(&Value::Null)
}

async fn a_definition_becomes_established(world: World) {
    let widgets = world.install(definition(anything())).await;
    let seen = world.get(&widgets.definition).await.ok();
    let accepted = condition(&seen, "NamesAccepted");
    assert_eq!((&accepted["status"], &accepted["reason"]), (&json!("True"), &json!("NoConflicts")));
    assert_eq!(accepted["message"], "no conflicts found");
    let established = condition(&seen, "Established");
    assert_eq!((&established["status"], &established["reason"]), (&json!("True"), &json!("InitialNamesAccepted")));
    assert_eq!(established["message"], "the initial names have been accepted");
    assert!(established["lastTransitionTime"].is_string());
    assert_eq!(seen["status"]["acceptedNames"], seen["spec"]["names"]);
    assert_eq!(seen["status"]["storedVersions"], json!(["v1"]));
    assert_eq!(seen["spec"]["conversion"], json!({"strategy": "None"}));
    assert_eq!(seen["metadata"]["generation"], 1);
    assert!(seen["metadata"].get("finalizers").is_none(), "nothing holds it while nobody deletes it");
}

async fn a_status_that_came_along_is_dropped(world: World) {
    let mut sent = definition(anything());
    let mine = json!({"type": "Established", "status": "True", "reason": "Mine", "message": "m"});
    sent["status"] =
        json!({"conditions": [mine], "acceptedNames": {"plural": "p", "kind": "P"}, "storedVersions": ["v7"]});
    let made = world.post(DEFINITIONS, sent).await.code(201).ok();
    assert_eq!(made["status"]["storedVersions"], json!(["v1"]));
    assert_ne!(condition(&made, "Established")["reason"], "Mine");
    let path = format!("{DEFINITIONS}/{}", made["metadata"]["name"].as_str().unwrap());
    let mut seen = world.until(&path, |answer| condition(&answer.body, "Established")["status"] == "True").await.ok();
    assert_eq!(seen["status"]["acceptedNames"], seen["spec"]["names"]);
    let before = seen["status"].clone();
    seen["status"] = json!({"storedVersions": ["v9"]});
    assert_eq!(world.put(&path, &seen).await.code(200).ok()["status"], before);
}

async fn an_unsound_definition_is_refused_with_causes(world: World) {
    let minimal = json!({"metadata": {"name": "x"}, "spec": {}});
    let answer = world.post(DEFINITIONS, minimal).await.refused(422, "Invalid");
    let causes = answer.body["details"]["causes"].as_array().unwrap().clone();
    for field in ["spec.group", "spec.scope", "spec.names.plural", "spec.names.kind"] {
        assert!(causes.iter().any(|cause| cause["field"] == field), "{field}: {}", answer.text);
    }
    let mut without_schema = definition(anything());
    without_schema["spec"]["versions"][0].as_object_mut().unwrap().remove("schema");
    let answer = world.post(DEFINITIONS, without_schema).await.refused(422, "Invalid");
    answer.causes(&[("FieldValueRequired", "spec.versions[0].schema.openAPIV3Schema")]);
}

async fn an_unstructural_schema_is_refused(world: World) {
    for (schema, field) in [
        (json!({"properties": {"a": {"type": "string"}}}), "type"),
        (properties(json!({"a": {}})), "properties[a].type"),
        (properties(json!({"a": {"type": "array"}})), "properties[a].items"),
        (properties(json!({"a": {"type": "text"}})), "properties[a].type"),
        (properties(json!({"a": {"type": "string", "default": 5}})), "properties[a].default"),
        (
            properties(
                json!({"a": {"type": "object", "properties": {"b": {"type": "string"}}, "additionalProperties": {"type": "string"}}}),
            ),
            "properties[a].additionalProperties",
        ),
        (properties(json!({"a": {"type": "string", "pattern": "("}})), "properties[a].pattern"),
        (
            properties(json!({"a": {"type": "array", "items": {"type": "string"}, "uniqueItems": true}})),
            "properties[a].uniqueItems",
        ),
        (
            properties(json!({"a": {"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "map"}})),
            "properties[a].x-kubernetes-list-map-keys",
        ),
        (properties(json!({"a": {"type": "object", "x-kubernetes-list-type": "set"}})), "properties[a].type"),
        (
            properties(json!({"a": {"type": "string", "x-kubernetes-list-type": "weird"}})),
            "properties[a].x-kubernetes-list-type",
        ),
    ] {
        let answer = world.post(DEFINITIONS, definition(schema.clone())).await;
        assert_eq!(answer.code, 422, "{schema}: {}", answer.text);
        let causes = answer.body["details"]["causes"].as_array().unwrap();
        let fits = |cause: &Value| {
            let at = cause["field"].as_str().unwrap_or_default();
            at.contains("openAPIV3Schema.properties[spec]") && at.ends_with(field)
        };
        assert!(causes.iter().any(fits), "{field}: {}", answer.text);
    }
}

async fn a_definition_name_is_plural_and_group(world: World) {
    let mut definition = definition(anything());
    definition["metadata"]["name"] = json!("gadgets.example.com");
    let answer = world.post(DEFINITIONS, definition).await.refused(422, "Invalid");
    let answer = answer.causes(&[("FieldValueInvalid", "metadata.name")]);
    answer.mentions("must be spec.names.plural+\".\"+spec.group");
}

async fn exactly_one_version_is_stored(world: World) {
    for (stored, text) in [
        ((false, false), "must have exactly one version marked as storage version"),
        ((true, true), "must have exactly one version marked as storage version"),
    ] {
        let mut definition = two_versions();
        definition["spec"]["versions"][0]["storage"] = json!(stored.0);
        definition["spec"]["versions"][1]["storage"] = json!(stored.1);
        let answer = world.post(DEFINITIONS, definition).await.refused(422, "Invalid");
        answer.mentions(text);
    }
}

async fn clashing_names_are_not_accepted(world: World) {
    let first = definition(anything());
    let group = first["spec"]["group"].clone();
    world.install(first.clone()).await;
    let mut second = first;
    second["metadata"]["name"] = json!(format!("gadgets.{}", group.as_str().unwrap()));
    second["spec"]["names"] =
        json!({"plural": "gadgets", "singular": "gadget", "kind": "Widget", "listKind": "GadgetList"});
    let made = world.post(DEFINITIONS, second).await.code(201).ok();
    let path = format!("{DEFINITIONS}/{}", made["metadata"]["name"].as_str().unwrap());
    let seen = world.until(&path, |answer| condition(&answer.body, "NamesAccepted")["status"] == "False").await.ok();
    let refused = condition(&seen, "NamesAccepted");
    assert_eq!(refused["reason"], "KindConflict");
    assert_eq!(refused["message"], "\"Widget\" is already in use");
    assert_ne!(condition(&seen, "Established")["status"], "True");
}

async fn a_name_of_another_is_not_taken_over_before_it_is_given_up(world: World) {
    let mut first = definition(anything());
    first["spec"]["names"]["shortNames"] = json!(["wd"]);
    let mut second = first.clone();
    let widgets = world.install(first).await;
    second["metadata"]["name"] = json!(format!("gadgets.{}", widgets.group));
    second["spec"]["names"] = json!({"plural": "gadgets", "singular": "gadget", "kind": "Gadget",
        "listKind": "GadgetList", "shortNames": ["gd"]});
    world.post(DEFINITIONS, second).await.code(201);
    let path = format!("{DEFINITIONS}/gadgets.{}", widgets.group);
    world.until(&path, |answer| condition(&answer.body, "Established")["status"] == "True").await;
    let short_names = |list: &Value| {
        let gadgets = list["resources"].as_array().into_iter().flatten().find(|r| r["name"] == "gadgets").cloned();
        gadgets.unwrap_or_default()["shortNames"].clone()
    };
    let discovery = format!("/apis/{}/v1", widgets.group);
    world.until(&discovery, |answer| short_names(&answer.body) == json!(["gd"])).await;

    let wanted = json!({"spec": {"names": {"shortNames": ["gx", "wd"]}}});
    world.patch(MERGE, &path, wanted).await.code(200);
    let seen = world.until(&path, |answer| condition(&answer.body, "NamesAccepted")["status"] == "False").await.ok();
    let refused = condition(&seen, "NamesAccepted");
    assert_eq!(
        (&refused["reason"], &refused["message"]),
        (&json!("ShortNamesConflict"), &json!("\"wd\" is already in use"))
    );
    assert_eq!(condition(&seen, "Established")["status"], "True", "it goes on being served");
    assert_eq!(seen["status"]["acceptedNames"]["shortNames"], json!(["gd"]));
    assert_eq!(short_names(&world.get(&discovery).await.ok()), json!(["gd"]));

    world.patch(MERGE, &widgets.definition, json!({"spec": {"names": {"shortNames": null}}})).await.code(200);
    let seen = world.until(&path, |answer| condition(&answer.body, "NamesAccepted")["status"] == "True").await.ok();
    assert_eq!(seen["status"]["acceptedNames"]["shortNames"], json!(["gx", "wd"]));
    world.until(&discovery, |answer| short_names(&answer.body) == json!(["gx", "wd"])).await;
}

async fn scope_and_group_never_change(world: World) {
    let widgets = world.install(definition(anything())).await;
    for (path, value) in
        [("/spec/scope", "Cluster"), ("/spec/group", "other.example.com"), ("/spec/names/plural", "gadgets")]
    {
        let patch = json!([{"op": "replace", "path": path, "value": value}]);
        let answer = world.patch(JSON, &widgets.definition, patch).await;
        assert_eq!(answer.code, 422, "{path}: {}", answer.text);
    }
}

async fn deleting_a_definition_removes_its_objects(world: World) {
    let widgets = world.install(definition(anything())).await;
    let since = crate::answer::version(&world.post(&widgets.path(), widgets.widget("a", json!({}))).await.ok());
    let mut watch = world.watch(&widgets.path(), &format!("resourceVersion={since}")).await;
    let marked = world.delete(&widgets.definition, json!(null)).await.code(200).ok();
    assert_eq!(marked["metadata"]["finalizers"], json!(["customresourcecleanup.apiextensions.k8s.io"]));
    assert_eq!(watch.step().await, ("DELETED".into(), "a".into()));
    world.gone(&widgets.definition).await;
    world.gone(&widgets.path()).await;
}

async fn a_definition_waits_for_held_objects(world: World) {
    let widgets = world.install(definition(anything())).await;
    let mut widget = widgets.widget("a", json!({}));
    widget["metadata"]["finalizers"] = json!(["example.com/hold"]);
    world.post(&widgets.path(), widget).await.ok();
    world.delete(&widgets.definition, json!(null)).await.code(200);
    world.until(&widgets.one("a"), |answer| answer.body["metadata"]["deletionTimestamp"].is_string()).await;
    let seen = world.get(&widgets.definition).await.code(200).ok();
    assert_eq!(condition(&seen, "Terminating")["status"], "True");
    assert_eq!(seen["metadata"]["generation"], 1);
    assert!(seen["metadata"].get("deletionGracePeriodSeconds").is_none(), "{}", seen["metadata"]);
    let answer = world.post(&widgets.path(), widgets.widget("b", json!({}))).await;
    let answer = answer.refused(403, "Forbidden");
    answer.mentions("\"b\" is forbidden: create not allowed while custom resource definition is terminating");
    world.patch(MERGE, &widgets.one("a"), json!({"metadata": {"finalizers": null}})).await.code(200);
    world.gone(&widgets.definition).await;
}

async fn a_definition_can_come_back(world: World) {
    let definition = definition(anything());
    let widgets = world.install(definition.clone()).await;
    world.post(&widgets.path(), widgets.widget("a", json!({}))).await.ok();
    world.delete(&widgets.definition, json!(null)).await.code(200);
    world.gone(&widgets.definition).await;
    let again = world.install(definition).await;
    assert_eq!(world.get(&again.path()).await.ok()["items"], json!([]));
    world.post(&again.path(), again.widget("a", json!({}))).await.code(201);
}

fn two_versions() -> Value {
    let mut definition = definition(anything());
    let mut older = definition["spec"]["versions"][0].clone();
    older["name"] = json!("v1beta2");
    older["storage"] = json!(false);
    definition["spec"]["versions"].as_array_mut().unwrap().push(older);
    definition
}

async fn versions_share_their_objects(world: World) {
    let widgets = world.install(two_versions()).await;
    let made = world.post(&widgets.path(), widgets.widget("a", json!({"x": 1}))).await.ok();
    let path = format!("{}/a", widgets.path_in("v1beta2"));
    let mut old = world.get(&path).await.code(200).ok();
    assert_eq!(old["apiVersion"], format!("{}/v1beta2", widgets.group));
    assert_eq!(old["metadata"]["uid"], made["metadata"]["uid"]);
    assert_eq!(old["metadata"]["resourceVersion"], made["metadata"]["resourceVersion"]);
    old["spec"]["x"] = json!(2);
    world.put(&path, &old).await.code(200);
    let new = world.get(&widgets.one("a")).await.ok();
    assert_eq!((&new["spec"]["x"], &new["apiVersion"]), (&json!(2), &json!(format!("{}/v1", widgets.group))));
    let list = world.get(&widgets.path_in("v1beta2")).await.ok();
    assert_eq!(list["items"][0]["apiVersion"], format!("{}/v1beta2", widgets.group));
}

async fn a_version_that_is_not_served_is_not_found(world: World) {
    let mut definition = two_versions();
    definition["spec"]["versions"][1]["served"] = json!(false);
    let widgets = world.install(definition).await;
    world.get(&widgets.path_in("v1beta2")).await.code(404);
    world.get(&widgets.path_in("v7")).await.code(404);
}

async fn a_deprecated_version_warns(world: World) {
    let mut definition = two_versions();
    definition["spec"]["versions"][1]["deprecated"] = json!(true);
    let widgets = world.install(definition.clone()).await;
    let group = &widgets.group;
    let answer = world.get(&widgets.path_in("v1beta2")).await;
    assert_eq!(answer.warnings(), [format!("{group}/v1beta2 Widget is deprecated; use {group}/v1 Widget")]);
    assert!(world.get(&widgets.path()).await.warnings().is_empty());

    let mut with_text = two_versions();
    with_text["spec"]["versions"][1]["deprecated"] = json!(true);
    with_text["spec"]["versions"][1]["deprecationWarning"] = json!("move on");
    let widgets = world.install(with_text).await;
    assert_eq!(world.get(&widgets.path_in("v1beta2")).await.warnings(), ["move on"]);
}

async fn a_refusal_in_a_deprecated_version_warns_too(world: World) {
    let mut definition = definition(properties(json!({"n": {"type": "integer"}})));
    definition["spec"]["versions"][0]["deprecated"] = json!(true);
    definition["spec"]["versions"][0]["deprecationWarning"] = json!("move on");
    let widgets = world.install(definition).await;
    world.post(&widgets.path(), widgets.widget("a", json!({}))).await.code(201);
    let one = widgets.one("a");
    for (answer, code) in [
        (world.get(&widgets.one("b")).await, 404),
        (world.delete(&widgets.one("b"), json!(null)).await, 404),
        (world.post(&widgets.path(), widgets.widget("a", json!({}))).await, 409),
        (world.post(&widgets.path(), json!({"kind": "Widget"})).await, 400),
        (world.patch(MERGE, &widgets.one("b"), json!({})).await, 404),
        (world.patch(MERGE, &one, json!({"spec": {"n": "x"}})).await, 422),
        (world.patch("application/unknown", &one, json!({})).await, 415),
        (world.apply("m", &one, json!({"kind": "Gadget"})).await, 400),
    ] {
        assert_eq!((answer.code, answer.warnings()), (code, vec!["move on".to_owned()]), "{}", answer.request);
    }
    // What is noticed on the way to a refusal is said beside it.
    let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "u"});
    let twice = json!({"metadata": {"ownerReferences": [owner, owner]}, "spec": {"n": "x"}});
    let warnings = world.patch(MERGE, &one, twice).await.refused(422, "Invalid").warnings();
    assert!(warnings.len() == 2 && warnings[1].contains("duplicate UID(s) observed: u"), "{warnings:?}");
}

async fn a_kind_of_a_name_that_kubernetes_has_is_an_ordinary_kind(world: World) {
    let mut definition = definition(anything());
    let group = definition["spec"]["group"].as_str().unwrap_or_default().to_owned();
    definition["metadata"]["name"] = json!(format!("events.{group}"));
    definition["spec"]["names"] = json!({"plural": "events", "kind": "Event"});
    world.post(DEFINITIONS, definition).await.code(201);
    let events = world.of_group(&format!("{group}/v1"), "events");
    world.until(&events, |answer| answer.code == 200).await;
    let event = |name: &str| json!({"apiVersion": format!("{group}/v1"), "kind": "Event", "metadata": {"name": name}});
    let answer = world.post(&events, event("A_b")).await.refused(422, "Invalid");
    answer.causes(&[("FieldValueInvalid", "metadata.name")]).mentions("a lowercase RFC 1123 subdomain");
    world.post(&events, event("a-b")).await.code(201);
}

async fn a_stored_version_cannot_be_dropped(world: World) {
    let widgets = world.install(two_versions()).await;
    let patch = json!([
        {"op": "replace", "path": "/spec/versions/1/storage", "value": true},
        {"op": "remove", "path": "/spec/versions/0"},
    ]);
    let answer = world.patch(JSON, &widgets.definition, patch).await.refused(422, "Invalid");
    let answer = answer.causes(&[("FieldValueInvalid", "status.storedVersions[0]")]);
    answer.mentions("missing from spec.versions; v1 was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in v1 and removes v1 from status.storedVersions");
}

async fn a_version_can_be_dropped_once_its_owner_says_that_nothing_is_stored_in_it(world: World) {
    let widgets = world.install(two_versions()).await;
    let storage = |index: usize, value: bool| json!({"op": "replace", "path": format!("/spec/versions/{index}/storage"), "value": value});
    let moved =
        world.patch(JSON, &widgets.definition, json!([storage(0, false), storage(1, true)])).await.code(200).ok();
    assert_eq!(moved["status"]["storedVersions"], json!(["v1", "v1beta2"]));
    let refused = async |place: &str, version: &str| {
        let answer =
            world.patch(JSON, &widgets.definition, json!([{"op": "remove", "path": "/spec/versions/0"}])).await;
        let answer = answer.refused(422, "Invalid").causes(&[("FieldValueInvalid", place)]);
        answer.mentions(&format!("missing from spec.versions; {version} was previously a storage version"));
    };
    refused("status.storedVersions[0]", "v1").await;
    // Nobody looks at what is said there, until the definition changes.
    let status = format!("{}/status", widgets.definition);
    let stored = |versions: Value| world.patch(MERGE, &status, json!({"status": {"storedVersions": versions}}));
    stored(json!(["v1beta2", "v9"])).await.code(200);
    refused("status.storedVersions[1]", "v9").await;
    let said = stored(json!(["v1beta2"])).await.code(200).ok();
    assert_eq!(said["status"]["storedVersions"], json!(["v1beta2"]));
    let dropped = json!([{"op": "remove", "path": "/spec/versions/0"}]);
    let left = world.patch(JSON, &widgets.definition, dropped).await.code(200).ok();
    assert_eq!(
        (left["spec"]["versions"].as_array().map(Vec::len), &left["status"]["storedVersions"]),
        (Some(1), &json!(["v1beta2"]))
    );
}

async fn a_changed_schema_is_in_force_soon(world: World) {
    let widgets = world.install(definition(properties(json!({"a": {"type": "string"}})))).await;
    let path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/b";
    let patch = json!([{"op": "add", "path": path, "value": {"type": "string"}}]);
    let patched = world.patch(JSON, &widgets.definition, patch).await.ok();
    assert_eq!(patched["metadata"]["generation"], 2);
    world.post(&widgets.path(), widgets.widget("a", json!({"a": "1"}))).await.ok();
    let kept = async {
        while world.patch(MERGE, &widgets.one("a"), json!({"spec": {"b": "1"}})).await.ok()["spec"]["b"] != "1" {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(crate::world::PATIENCE, kept).await.expect("the new schema never came into force");
}

async fn columns_and_scale_paths_are_checked(world: World) {
    let mut bad_column = definition(anything());
    bad_column["spec"]["versions"][0]["additionalPrinterColumns"] =
        json!([{"name": "X", "type": "weird", "jsonPath": "spec.x"}]);
    let answer = world.post(DEFINITIONS, bad_column).await.refused(422, "Invalid");
    answer.mentions("additionalPrinterColumns[0].type");
    let mut bad_scale = definition(anything());
    bad_scale["spec"]["versions"][0]["subresources"]["scale"] =
        json!({"specReplicasPath": ".status.replicas", "statusReplicasPath": ".status.replicas"});
    let answer = world.post(DEFINITIONS, bad_scale).await.refused(422, "Invalid");
    answer.mentions("specReplicasPath");
    let mut bad_field = definition(anything());
    bad_field["spec"]["versions"][0]["selectableFields"] = json!([{"jsonPath": ".spec.nope"}]);
    world.post(DEFINITIONS, bad_field).await.refused(422, "Invalid").mentions("selectableFields[0].jsonPath");
}

async fn a_schema_of_the_wrong_types_is_a_bad_request(world: World) {
    let at = "JSONSchemaProps.spec.versions.schema.openAPIV3Schema.properties.properties";
    for (schema, why) in [
        (json!(5), format!("json: cannot unmarshal number into Go struct field {at} of type v1.JSONSchemaProps")),
        (json!({"type": 5}), format!("json: cannot unmarshal number into Go struct field {at}.type of type string")),
        (
            json!({"type": "array", "items": {"type": "string", "maxLength": 1.5}}),
            format!("json: cannot unmarshal number 1.5 into Go struct field {at}.items.maxLength of type int64"),
        ),
        (
            json!({"type": "integer", "minimum": "1"}),
            format!("json: cannot unmarshal string into Go struct field {at}.minimum of type float64"),
        ),
        (json!({"type": "object", "additionalProperties": 5}), "boolean or JSON schema expected".to_owned()),
    ] {
        let answer = world.post(DEFINITIONS, definition(properties(json!({"a": schema})))).await;
        let head = "CustomResourceDefinition in version \"v1\" cannot be handled as a CustomResourceDefinition";
        answer.refused(400, "BadRequest").says(&format!("{head}: {why}"));
    }
}

async fn fields_that_a_schema_cannot_have_are_told(world: World) {
    let misspelt = json!({"a": {"type": "string", "maxLenght": 5, "default": "x"}});
    let unknown = "unknown field \"spec.versions[0].schema.openAPIV3Schema.properties.spec.properties.a.maxLenght\"";
    let strict = format!("{DEFINITIONS}?fieldValidation=Strict");
    let answer = world.post(&strict, definition(properties(misspelt.clone()))).await.refused(400, "BadRequest");
    answer.mentions(&format!("strict decoding error: {unknown}"));
    let answer = world.post(DEFINITIONS, definition(properties(misspelt.clone()))).await.code(201);
    assert_eq!(answer.warnings(), [unknown]);
    let schema = &answer.body["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    assert_eq!(schema["properties"]["a"], json!({"type": "string", "default": "x"}));
    let applied = definition(properties(misspelt));
    let path = format!("{DEFINITIONS}/{}", applied["metadata"]["name"].as_str().unwrap());
    let answer = world.apply("alice", &path, applied).await.code(500);
    answer.mentions("failed to create typed patch object").mentions("a.maxLenght: field not declared in schema");
}
