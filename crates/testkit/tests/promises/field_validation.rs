//! Fields that nobody knows and fields that stand twice: refused, warned about, or passed over.

use http::Method;
use serde_json::json;

use crate::answer::Answer;
use crate::widgets::{definition, properties};
use crate::world::{MERGE, World, with_query};

promises!(
    strict_refuses_unknown_and_duplicate_fields_of_builtins,
    strict_refuses_unknown_and_duplicate_fields_of_custom_objects,
    warn_says_so_in_headers,
    ignore_says_nothing,
    warn_is_the_default,
    patches_are_validated_too,
    warnings_come_with_a_refusal_too,
    an_unknown_level_is_refused,
);

/// Sends text, because a JSON value cannot hold a field twice.
async fn send(world: &World, path: &str, level: &str, body: String) -> Answer {
    let path = with_query(path, &format!("dryRun=All{level}"));
    world.send(Method::POST, &path, &[("content-type", "application/json")], body.into_bytes()).await
}

const MAP: &str = r#"{"metadata":{"name":"a","bogus":1},"data":{"k":"1","k":"2"},"nope":1}"#;

async fn strict_refuses_unknown_and_duplicate_fields_of_builtins(world: World) {
    let answer = send(&world, &world.maps(), "&fieldValidation=Strict", MAP.into()).await.refused(400, "BadRequest");
    // The original lists them in the order of the text, the embedded server duplicates first.
    let answer =
        answer.mentions("ConfigMap in version \"v1\" cannot be handled as a ConfigMap: strict decoding error: ");
    let answer = answer.mentions("unknown field \"metadata.bogus\"").mentions("unknown field \"nope\"");
    answer.mentions("duplicate field \"data.k\"");
    send(&world, &world.maps(), "&fieldValidation=Strict", json!({"metadata": {"name": "a"}}).to_string())
        .await
        .code(201);
}

async fn strict_refuses_unknown_and_duplicate_fields_of_custom_objects(world: World) {
    let widgets = world.install(definition(properties(json!({"n": {"type": "integer"}})))).await;
    let body = |spec: &str| {
        let group = &widgets.group;
        format!(r#"{{"apiVersion":"{group}/v1","kind":"Widget","metadata":{{"name":"a"}},"spec":{spec}}}"#)
    };
    let path = widgets.path();
    let answer = send(&world, &path, "&fieldValidation=Strict", body(r#"{"nope":1,"n":2,"n":3}"#)).await;
    answer.refused(400, "BadRequest").says(
        "Widget in version \"v1\" cannot be handled as a Widget: strict decoding error: \
         duplicate field \"spec.n\", unknown field \"spec.nope\"",
    );
    let answer = send(&world, &path, "", body(r#"{"nope":1,"n":2,"n":3}"#)).await.code(201);
    assert_eq!(answer.warnings(), ["duplicate field \"spec.n\"", "unknown field \"spec.nope\""]);
    assert_eq!(answer.ok()["spec"], json!({"n": 3}), "the last one counts");
}

async fn warn_says_so_in_headers(world: World) {
    let answer = send(&world, &world.maps(), "&fieldValidation=Warn", MAP.into()).await.code(201);
    let mut warnings = answer.warnings();
    warnings.sort();
    let expected = ["duplicate field \"data.k\"", "unknown field \"metadata.bogus\"", "unknown field \"nope\""];
    assert_eq!(warnings, expected);
}

async fn ignore_says_nothing(world: World) {
    let answer = send(&world, &world.maps(), "&fieldValidation=Ignore", MAP.into()).await.code(201);
    assert!(answer.warnings().is_empty());
    assert_eq!(answer.ok()["data"], json!({"k": "2"}));
}

async fn warn_is_the_default(world: World) {
    let answer = send(&world, &world.maps(), "", MAP.into()).await.code(201);
    assert_eq!(answer.warnings().len(), 3);
}

async fn patches_are_validated_too(world: World) {
    let widgets = world.install(definition(properties(json!({"n": {"type": "integer"}})))).await;
    world.post(&widgets.path(), widgets.widget("a", json!({}))).await.ok();
    let patch = json!({"spec": {"nope": 1}});
    let answer = world.patch(MERGE, &with_query(&widgets.one("a"), "fieldValidation=Strict"), patch.clone()).await;
    answer.refused(422, "Invalid").mentions("unknown field \"spec.nope\"");
    let answer = world.patch(MERGE, &widgets.one("a"), patch).await.code(200);
    assert_eq!(answer.warnings(), ["unknown field \"spec.nope\""]);
    world.map("a", json!({})).await;
    let one = with_query(&format!("{}/a", world.maps()), "fieldValidation=Strict");
    let answer = world.patch(MERGE, &one, json!({"nope": 1})).await;
    assert!(answer.message().contains("unknown field \"nope\""), "{}", answer.text);
}

async fn an_unknown_level_is_refused(world: World) {
    let answer = send(&world, &world.maps(), "&fieldValidation=Sometimes", MAP.into()).await.refused(422, "Invalid");
    answer.says(
        "CreateOptions.meta.k8s.io \"\" is invalid: fieldValidation: Unsupported value: \"Sometimes\": \
         supported values: \"\", \"Ignore\", \"Strict\", \"Warn\"",
    );
}

async fn warnings_come_with_a_refusal_too(world: World) {
    let widgets = world.install(definition(properties(json!({"n": {"type": "integer"}})))).await;
    let answer = world.post(&widgets.path(), widgets.widget("a", json!({"n": "x", "nope": 1}))).await;
    assert_eq!(answer.refused(422, "Invalid").warnings(), ["unknown field \"spec.nope\""]);
    world.post(&widgets.path(), widgets.widget("a", json!({}))).await.ok();
    let answer = world.patch(MERGE, &widgets.one("a"), json!({"spec": {"n": "x", "nope": 1}})).await;
    assert_eq!(answer.refused(422, "Invalid").warnings(), ["unknown field \"spec.nope\""]);
    let answer = world.post(&world.maps(), json!({"metadata": {"name": "A"}, "nope": 1})).await;
    assert_eq!(answer.refused(422, "Invalid").warnings(), ["unknown field \"nope\""]);
}
