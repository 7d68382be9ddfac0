//! What a definition's schema does to custom objects: defaults, pruning, validation.

use serde_json::{Value, json};

use crate::widgets::{definition, properties};
use crate::world::{MERGE, World, with_query};

promises!(
    defaults_are_filled_in_on_create_and_on_read,
    defaults_fill_nested_objects_and_list_items,
    null_takes_a_default_unless_nullable,
    unknown_fields_are_pruned,
    unknown_fields_are_kept_where_the_schema_says_so,
    an_embedded_object_keeps_its_metadata,
    the_metadata_of_an_embedded_object_is_read,
    metadata_is_pruned_and_coerced_too,
    values_are_validated_with_the_originals_words,
    every_wrong_field_is_a_cause,
    int_or_string_takes_both,
    formats_are_checked,
    a_stored_value_that_became_wrong_may_stay,
);

async fn defaults_are_filled_in_on_create_and_on_read(world: World) {
    let schema = properties(json!({"mode": {"type": "string", "default": "full"}, "count": {"type": "integer"}}));
    let mut definition = definition(schema);
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["default"] = json!({});
    let widgets = world.install(definition).await;
    let mut widget = widgets.widget("a", json!({}));
    widget.as_object_mut().unwrap().remove("spec");
    assert_eq!(world.post(&widgets.path(), widget).await.ok()["spec"], json!({"mode": "full"}));
    let set = world.post(&widgets.path(), widgets.widget("b", json!({"mode": "less"}))).await.ok();
    assert_eq!(set["spec"], json!({"mode": "less"}));
    // A default that comes later shows in objects that were stored without it.
    let path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/count/default";
    let patch = json!([{"op": "add", "path": path, "value": 7}]);
    world.patch(crate::world::JSON, &widgets.definition, patch).await.ok();
    world.until(&widgets.one("a"), |answer| answer.body["spec"] == json!({"mode": "full", "count": 7})).await;
}

async fn defaults_fill_nested_objects_and_list_items(world: World) {
    let item = json!({"type": "object", "properties": {"port": {"type": "integer", "default": 80}, "name": {"type": "string"}}});
    let schema = properties(json!({
        "outer": {"type": "object", "properties": {"inner": {"type": "object", "default": {}, "properties": {"x": {"type": "integer", "default": 1}}}}},
        "list": {"type": "array", "items": item.clone()},
        "map": {"type": "object", "additionalProperties": item},
    }));
    let widgets = world.install(definition(schema)).await;
    let made =
        world.post(&widgets.path(), widgets.widget("a", json!({"list": [{"name": "n"}], "map": {"k": {}}}))).await.ok();
    assert_eq!(
        made["spec"],
        json!({"list": [{"name": "n", "port": 80}], "map": {"k": {"port": 80}}}),
        "no object is made up"
    );
    let made = world.post(&widgets.path(), widgets.widget("b", json!({"outer": {}}))).await.ok();
    assert_eq!(made["spec"], json!({"outer": {"inner": {"x": 1}}}));
}

async fn null_takes_a_default_unless_nullable(world: World) {
    let schema = properties(json!({
        "plain": {"type": "string", "default": "d"},
        "nullable": {"type": "string", "nullable": true, "default": "d"},
        "bare": {"type": "string"},
    }));
    let widgets = world.install(definition(schema)).await;
    let spec = json!({"plain": null, "nullable": null, "bare": null});
    let made = world.post(&widgets.path(), widgets.widget("a", spec)).await.ok();
    assert_eq!(made["spec"], json!({"plain": "d", "nullable": null}), "null without a meaning is pruned");
}

async fn unknown_fields_are_pruned(world: World) {
    let schema = properties(json!({"known": {"type": "object", "properties": {"x": {"type": "integer"}}}}));
    let widgets = world.install(definition(schema)).await;
    let mut widget = widgets.widget("a", json!({"known": {"x": 1, "y": 2}, "unknown": true}));
    widget["extra"] = json!({"at": "the root"});
    let made = world.post(&widgets.path(), widget).await.code(201).ok();
    assert_eq!(made["spec"], json!({"known": {"x": 1}}));
    assert!(made.get("extra").is_none());
    let patched = world.patch(MERGE, &widgets.one("a"), json!({"spec": {"later": 1}})).await.ok();
    assert_eq!(patched["spec"], json!({"known": {"x": 1}}));
}

async fn unknown_fields_are_kept_where_the_schema_says_so(world: World) {
    let schema = properties(json!({
        "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
            "properties": {"closed": {"type": "object", "properties": {"x": {"type": "integer"}}}}},
    }));
    let widgets = world.install(definition(schema)).await;
    let spec = json!({"open": {"any": {"thing": [1]}, "closed": {"x": 1, "y": 2}}});
    let made = world.post(&widgets.path(), widgets.widget("a", spec)).await.ok();
    assert_eq!(made["spec"], json!({"open": {"any": {"thing": [1]}, "closed": {"x": 1}}}));
}

async fn an_embedded_object_keeps_its_metadata(world: World) {
    let embedded =
        json!({"type": "object", "x-kubernetes-embedded-resource": true, "properties": {"spec": {"type": "object"}}});
    let widgets = world.install(definition(properties(json!({"template": embedded})))).await;
    let template = json!({"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "t", "labels": {"l": "1"}}, "spec": {"gone": 1}, "more": 1});
    let made = world.post(&widgets.path(), widgets.widget("a", json!({"template": template}))).await.ok();
    let kept =
        json!({"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "t", "labels": {"l": "1"}}, "spec": {}});
    assert_eq!(made["spec"]["template"], kept);
    let answer = world.post(&widgets.path(), widgets.widget("b", json!({"template": {}}))).await;
    answer
        .refused(422, "Invalid")
        .causes(&[("FieldValueRequired", "spec.template.apiVersion"), ("FieldValueRequired", "spec.template.kind")]);
}

async fn the_metadata_of_an_embedded_object_is_read(world: World) {
    let embedded = json!({"type": "object", "x-kubernetes-embedded-resource": true,
        "x-kubernetes-preserve-unknown-fields": true});
    let list = json!({"type": "array", "items": embedded});
    let widgets = world.install(definition(properties(json!({"things": list})))).await;
    let thing = |metadata: Value| json!({"things": [{"apiVersion": "v1", "kind": "Thing", "metadata": metadata}]});
    let made = world.post(&widgets.path(), widgets.widget("a", thing(json!(null)))).await.code(201).ok();
    assert_eq!(made["spec"], thing(json!({})));
    let applied = world.apply("m", &widgets.one("b"), widgets.widget("b", thing(json!(null)))).await.code(201).ok();
    assert_eq!(applied["spec"], thing(json!({})));
    let wrong = json!({"generation": 1.5});
    let why = "json: cannot unmarshal number 1.5 into Go struct field ObjectMeta.generation of type int64";
    let answer = world.post(&widgets.path(), widgets.widget("c", thing(wrong.clone()))).await;
    answer.refused(400, "BadRequest").mentions(&format!("spec.things[0].metadata: Invalid value: {wrong}: {why}"));
    let answer = world.apply("m", &widgets.one("c"), widgets.widget("c", thing(wrong))).await.refused(422, "Invalid");
    answer.causes(&[("FieldValueInvalid", "spec.things[0].metadata")]).mentions(why);
    let answer = world.apply("m", &widgets.one("c"), widgets.widget("c", thing(json!({"nope": 1})))).await.code(500);
    answer.mentions(".spec.things[0].metadata.nope: field not declared in schema");
    world.get(&widgets.one("c")).await.code(404);
}

async fn metadata_is_pruned_and_coerced_too(world: World) {
    let widgets = world.install(definition(properties(json!({})))).await;
    let mut widget = widgets.widget("a", json!({}));
    widget["metadata"]["nonsense"] = json!(1);
    let made = world.post(&widgets.path(), widget).await.code(201).ok();
    assert!(made["metadata"].get("nonsense").is_none());
    let mut widget = widgets.widget("b", json!({}));
    widget["metadata"]["labels"] = json!({"l": 5});
    world.post(&widgets.path(), widget).await.refused(400, "BadRequest").mentions("labels");
}

async fn values_are_validated_with_the_originals_words(world: World) {
    let schema = properties(json!({
        "n": {"type": "integer", "minimum": 1, "maximum": 5},
        "open": {"type": "number", "minimum": 0, "exclusiveMinimum": true, "maximum": 9, "exclusiveMaximum": true},
        "step": {"type": "number", "multipleOf": 0.5},
        "s": {"type": "string", "pattern": "^a", "maxLength": 3, "minLength": 2},
        "e": {"type": "string", "enum": ["x", "y"]},
        "l": {"type": "array", "items": {"type": "string"}, "maxItems": 2, "minItems": 1},
        "ios": {"x-kubernetes-int-or-string": true},
        "r": {"type": "object", "required": ["must"], "properties": {"must": {"type": "string"}}},
        "b": {"type": "boolean"},
        "m": {"type": "object", "additionalProperties": {"type": "integer"}, "maxProperties": 2, "minProperties": 1},
        "one": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
    }));
    let widgets = world.install(definition(schema)).await;
    for (spec, message) in [
        (json!({"n": 9}), "spec.n: Invalid value: 9: spec.n in body should be less than or equal to 5"),
        (json!({"n": 0}), "spec.n: Invalid value: 0: spec.n in body should be greater than or equal to 1"),
        (json!({"open": 0}), "spec.open: Invalid value: 0: spec.open in body should be greater than 0"),
        (json!({"open": 9}), "spec.open: Invalid value: 9: spec.open in body should be less than 9"),
        (json!({"step": 0.7}), "spec.step: Invalid value: 0.7: spec.step in body should be a multiple of 0.5"),
        (json!({"n": "x"}), "spec.n: Invalid value: \"string\": spec.n in body must be of type integer: \"string\""),
        (json!({"n": 1.5}), "spec.n: Invalid value: \"number\": spec.n in body must be of type integer: \"number\""),
        (json!({"s": "abcd"}), "spec.s: Too long: may not be more than 3 bytes"),
        (json!({"s": "a"}), "spec.s: Invalid value: \"a\": spec.s in body should be at least 2 chars long"),
        (json!({"s": "bc"}), "spec.s: Invalid value: \"bc\": spec.s in body should match '^a'"),
        (json!({"e": "z"}), "spec.e: Unsupported value: \"z\": supported values: \"x\", \"y\""),
        (json!({"l": []}), "spec.l: Invalid value: 0: spec.l in body should have at least 1 items"),
        (json!({"l": ["a", "b", "c"]}), "spec.l: Too many: 3: must have at most 2 items"),
        (
            json!({"l": [1]}),
            "spec.l[0]: Invalid value: \"integer\": spec.l[0] in body must be of type string: \"integer\"",
        ),
        (json!({"l": {}}), "spec.l: Invalid value: \"object\": spec.l in body must be of type array: \"object\""),
        (
            json!({"ios": true}),
            "spec.ios: Invalid value: \"boolean\": spec.ios in body must be of type integer,string: \"boolean\"",
        ),
        (json!({"r": {}}), "spec.r.must: Required value"),
        (json!({"b": "yes"}), "spec.b: Invalid value: \"string\": spec.b in body must be of type boolean: \"string\""),
        (
            json!({"m": {"a": "x"}}),
            "spec.m.a: Invalid value: \"string\": spec.m.a in body must be of type integer: \"string\"",
        ),
        (json!({"m": {"a": 1, "b": 1, "c": 1}}), "spec.m: Too many: 3: must have at most 2 items"),
        (json!({"m": {}}), "spec.m: Invalid value: 0: spec.m in body should have at least 1 properties"),
        (
            json!({"one": {"a": 1, "b": 1}}),
            "<nil>: Invalid value: \"\": \"spec.one\" must validate one and only one schema (oneOf). Found 2 valid alternatives",
        ),
        (json!([]), "spec: Invalid value: \"array\": spec in body must be of type object: \"array\""),
    ] {
        let answer = world.post(&widgets.path(), widgets.widget("a", spec)).await.refused(422, "Invalid");
        let answer = answer.about(&widgets.group, "Widget", "a");
        answer.says(&format!("Widget.{} \"a\" is invalid: {message}", widgets.group));
    }
}

async fn every_wrong_field_is_a_cause(world: World) {
    let schema = properties(
        json!({"n": {"type": "integer", "maximum": 5}, "b": {"type": "boolean"}, "e": {"type": "string", "enum": ["x"]}}),
    );
    let widgets = world.install(definition(schema)).await;
    let answer = world.post(&widgets.path(), widgets.widget("a", json!({"n": 6, "b": 1, "e": "y"}))).await;
    answer.refused(422, "Invalid").causes(&[
        ("FieldValueInvalid", "spec.n"),
        ("FieldValueTypeInvalid", "spec.b"),
        ("FieldValueNotSupported", "spec.e"),
    ]);
}

async fn int_or_string_takes_both(world: World) {
    let widgets = world.install(definition(properties(json!({"port": {"x-kubernetes-int-or-string": true}})))).await;
    for (name, port) in [("a", json!(80)), ("b", json!("http"))] {
        let made = world.post(&widgets.path(), widgets.widget(name, json!({"port": port}))).await.code(201).ok();
        assert_eq!(made["spec"]["port"], port);
    }
}

async fn formats_are_checked(world: World) {
    let text = |format: &str| json!({"type": "string", "format": format});
    let schema = properties(json!({
        "date-time": text("date-time"), "date": text("date"), "ipv4": text("ipv4"), "uri": text("uri"),
        "email": text("email"), "uuid": text("uuid"), "byte": text("byte"), "duration": text("duration"), "other": text("no-such-format"),
    }));
    let widgets = world.install(definition(schema)).await;
    for format in ["date-time", "date", "ipv4", "email", "uuid", "duration"] {
        let answer = world.post(&widgets.path(), widgets.widget("a", json!({format: "not it"}))).await;
        let field = format!("spec.{format}");
        let answer = answer.refused(422, "Invalid").causes(&[("FieldValueTypeInvalid", &field)]);
        answer.mentions(&format!(
            "{field}: Invalid value: \"not it\": {field} in body must be of type {format}: \"not it\""
        ));
    }
    let good = json!({
        "date-time": "2024-01-02T03:04:05Z", "date": "2024-01-02", "ipv4": "10.0.0.1", "uri": "http://x/y", "email": "a@b.example",
        "uuid": "6b1b9a5c-0000-4000-8000-000000000004", "byte": "aGk=", "duration": "3s", "other": "anything",
    });
    world.post(&widgets.path(), widgets.widget("a", good)).await.code(201);
}

async fn a_stored_value_that_became_wrong_may_stay(world: World) {
    let schema = properties(json!({"n": {"type": "integer"}, "m": {"type": "integer"}}));
    let widgets = world.install(definition(schema)).await;
    world.post(&widgets.path(), widgets.widget("a", json!({"n": 50, "m": 1}))).await.ok();
    let path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/n/maximum";
    let patch = json!([{"op": "add", "path": path, "value": 10}]);
    world.patch(crate::world::JSON, &widgets.definition, patch).await.ok();
    let probe = with_query(&widgets.path(), "dryRun=All");
    wait_until_refused(&world, &probe, widgets.widget("probe", json!({"n": 11}))).await;
    // Untouched, the old value is let be; touched, it must be right.
    world.patch(MERGE, &widgets.one("a"), json!({"spec": {"m": 2}})).await.code(200);
    let answer = world.patch(MERGE, &widgets.one("a"), json!({"spec": {"n": 51}})).await;
    answer.refused(422, "Invalid").causes(&[("FieldValueInvalid", "spec.n")]);
}

/// Until the new schema is in force everywhere, which takes the original a moment.
async fn wait_until_refused(world: &World, path: &str, body: Value) {
    let refused = async {
        while world.post(path, body.clone()).await.code != 422 {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(crate::world::PATIENCE, refused).await.expect("the new schema never came into force");
}
