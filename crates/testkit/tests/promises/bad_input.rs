//! Requests that make no sense: each is refused as the original refuses it, and the server goes on.

use http::Method;
use serde_json::json;

use crate::answer::Answer;
use crate::widgets::{anything, definition};
use crate::world::{APPLY, JSON, MERGE, World, with_query};

promises!(
    a_malformed_body_is_a_bad_request,
    a_body_in_an_unknown_form_is_refused,
    a_body_over_three_mebibytes_is_too_large,
    a_config_map_over_one_mebibyte_is_too_long,
    an_object_may_not_grow_beyond_what_is_stored,
    nesting_has_a_limit,
    a_yaml_bomb_does_not_go_off,
    names_must_be_names,
    labels_and_annotations_must_be_well_formed,
    annotations_have_a_total_size,
    unknown_paths_are_not_found,
    unknown_verbs_are_not_allowed,
    garbage_in_the_query_is_refused_or_passed_over,
    a_wrong_type_in_metadata_is_a_bad_request,
    nothing_is_stored_as_null_where_text_belongs,
    times_are_read_strictly_and_told_in_utc,
    bytes_are_stored_in_one_form,
    a_version_that_is_no_number_is_never_stale,
    numbers_keep_their_value,
);

async fn send(world: &World, content_type: &str, body: impl Into<Vec<u8>>) -> Answer {
    world.send(Method::POST, &world.maps(), &[("content-type", content_type)], body.into()).await
}

async fn a_malformed_body_is_a_bad_request(world: World) {
    for body in ["{", "", "[]", "5", "{\"metadata\":", "{'a': 1}", "{\"a\": 1} trailing", "\u{1}"] {
        let answer = send(&world, "application/json", body).await;
        assert_eq!((answer.code, &answer.body["reason"]), (400, &json!("BadRequest")), "{body:?}: {}", answer.text);
    }
    let answer = send(&world, "application/json", "").await;
    answer.says("the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error: unexpected end of JSON input (<empty>)");
    world.map("still-there", json!({})).await;
}

async fn a_body_in_an_unknown_form_is_refused(world: World) {
    let answer = send(&world, "text/plain", "a: b").await.refused(415, "UnsupportedMediaType");
    answer.says("the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf");
}

async fn a_body_over_three_mebibytes_is_too_large(world: World) {
    let body = json!({"metadata": {"name": "a"}, "data": {"k": "x".repeat(3 * 1024 * 1024)}});
    let answer = send(&world, "application/json", body.to_string()).await.refused(413, "RequestEntityTooLarge");
    answer.says("Request entity too large: limit is 3145728");
    world.map("still-there", json!({})).await;
}

async fn a_config_map_over_one_mebibyte_is_too_long(world: World) {
    let body = json!({"metadata": {"name": "a"}, "data": {"k": "x".repeat(1024 * 1024 + 1)}});
    let answer = send(&world, "application/json", body.to_string()).await.refused(422, "Invalid");
    answer.mentions("Too long: may not be more than 1048576 bytes");
}

async fn an_object_may_not_grow_beyond_what_is_stored(world: World) {
    let widgets = world.install(definition(anything())).await;
    let text = |bytes: usize| "x".repeat(bytes);
    let sent = widgets.widget("a", json!({"a": text(1_500_000)}));
    let made = world.post(&widgets.path(), sent).await.code(201).ok();
    let more = json!({"spec": {"b": text(200_000)}});
    let mut whole = made.clone();
    whole["spec"]["b"] = more["spec"]["b"].clone();
    let mut applied = widgets.widget("a", json!({}));
    applied["spec"] = more["spec"].clone();
    for answer in [
        world.patch(MERGE, &widgets.one("a"), more).await,
        world.put(&widgets.one("a"), &whole).await,
        world.apply("alice", &widgets.one("a"), applied).await,
        world.post(&widgets.path(), widgets.widget("b", json!({"a": text(1_600_000)}))).await,
    ] {
        // The limit and the words are etcd's; the server gives them no reason of its own.
        assert_eq!((answer.code, &answer.body["kind"]), (500, &json!("Status")), "{}", answer.request);
        assert_eq!((answer.message(), answer.body.get("reason")), ("etcdserver: request is too large", None));
    }
    let seen = world.get(&widgets.one("a")).await.ok();
    assert_eq!(seen["metadata"]["resourceVersion"], made["metadata"]["resourceVersion"]);
}

async fn nesting_has_a_limit(world: World) {
    let deep =
        |depth: usize| format!("{{\"metadata\":{{\"name\":\"a\"}},\"x\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
    let answer = send(&world, "application/json", deep(10_001)).await.refused(400, "BadRequest");
    answer.mentions("exceeded max depth");
    let widgets = world.install(definition(anything())).await;
    let group = &widgets.group;
    let spec = format!("{}1{}", "{\"a\":".repeat(10_001), "}".repeat(10_001));
    let body = format!(
        "{{\"apiVersion\":\"{group}/v1\",\"kind\":\"Widget\",\"metadata\":{{\"name\":\"a\"}},\"spec\":{spec}}}"
    );
    let headers = [("content-type", "application/json")];
    let answer = world.send(Method::POST, &widgets.path(), &headers, body.into_bytes()).await;
    answer.refused(400, "BadRequest").mentions("exceeded max depth");
}

async fn a_yaml_bomb_does_not_go_off(world: World) {
    let mut bomb = String::from("a: &a [x,x,x,x,x,x,x,x,x]\n");
    for pair in "abcdefghij".as_bytes().windows(2) {
        let (from, to) = (char::from(pair[0]), char::from(pair[1]));
        bomb.push_str(&format!("{to}: &{to} [{}]\n", vec![format!("*{from}"); 9].join(",")));
    }
    let path = with_query(&format!("{}/a", world.maps()), "fieldManager=m");
    let answer = world.send(Method::PATCH, &path, &[("content-type", APPLY)], bomb.clone().into_bytes()).await;
    answer.refused(400, "BadRequest").mentions("error decoding YAML");
    send(&world, "application/yaml", bomb).await.refused(400, "BadRequest");
    world.map("still-there", json!({})).await;
}

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

async fn names_must_be_names(world: World) {
    let widgets = world.install(definition(anything())).await;
    for name in ["Upper", "under_score", "-dash", "dash-", "a..b", "sp ace"] {
        let answer = world.post(&world.maps(), json!({"metadata": {"name": name}})).await.refused(422, "Invalid");
        let answer = answer.causes(&[("FieldValueInvalid", "metadata.name")]);
        answer.says(&format!("ConfigMap \"{name}\" is invalid: metadata.name: Invalid value: \"{name}\": {SUBDOMAIN}"));
        let answer = world.post(&widgets.path(), widgets.widget(name, json!({}))).await.refused(422, "Invalid");
        answer.causes(&[("FieldValueInvalid", "metadata.name")]);
    }
    let answer =
        world.post(&world.maps(), json!({"metadata": {"name": "x".repeat(254)}})).await.refused(422, "Invalid");
    answer.mentions("must be no more than 253 characters");
    // Services are stricter: their names are names in the DNS.
    let service = json!({"metadata": {"name": "1st"}, "spec": {"ports": [{"port": 80}]}});
    world.post(&world.core("services"), service).await.refused(422, "Invalid").mentions("metadata.name");
}

async fn labels_and_annotations_must_be_well_formed(world: World) {
    let with = |labels: serde_json::Value| json!({"metadata": {"name": "a", "labels": labels}});
    for labels in [
        json!({"a b": "c"}),
        json!({"k": "-bad-"}),
        json!({"k": "x".repeat(64)}),
        json!({"/k": "v"}),
        json!({"a/b/c": "v"}),
        json!({"UPPER.example/k": "v"}),
    ] {
        let answer = world.post(&world.maps(), with(labels.clone())).await;
        assert_eq!(answer.code, 422, "{labels}: {}", answer.text);
        answer.refused(422, "Invalid").causes(&[("FieldValueInvalid", "metadata.labels")]);
    }
    for labels in [json!({"example.com/k": "v"}), json!({"K_k.k": ""}), json!({"k": "A.b_c-1"})] {
        let path = with_query(&world.maps(), "dryRun=All");
        world.post(&path, with(labels)).await.code(201);
    }
    let body = json!({"metadata": {"name": "a", "annotations": {"bad key": "x"}}});
    world
        .post(&world.maps(), body)
        .await
        .refused(422, "Invalid")
        .causes(&[("FieldValueInvalid", "metadata.annotations")]);
}

async fn annotations_have_a_total_size(world: World) {
    let body = json!({"metadata": {"name": "a", "annotations": {"k": "x".repeat(256 * 1024)}}});
    let answer = world.post(&world.maps(), body).await.refused(422, "Invalid");
    answer.causes(&[("FieldValueTooLong", "metadata.annotations")]).mentions("may not be more than 262144 bytes");
}

async fn unknown_paths_are_not_found(world: World) {
    for path in ["/nope", "/apis/nope.example.com", "/apis/nope.example.com/v1", "/apis/apps/v9"] {
        world.get(path).await.code(404);
    }
    for path in ["/api/v1/nopes", "/apis/apps/v1/nopes"] {
        let answer = world.get(path).await.refused(404, "NotFound");
        answer.says("the server could not find the requested resource");
    }
    world.get(&format!("{}/a/b/c", world.maps())).await.code(404);
}

async fn unknown_verbs_are_not_allowed(world: World) {
    let json = [("content-type", "application/json")];
    let one = format!("{}/a", world.maps());
    for (method, path) in [
        (Method::PUT, world.maps()),
        (Method::POST, one.clone()),
        (Method::PATCH, world.maps()),
        (Method::PUT, "/api/v1/configmaps".into()),
    ] {
        let answer = world.send(method, &path, &json, b"{}".to_vec()).await.refused(405, "MethodNotAllowed");
        answer.says("the server does not allow this method on the requested resource");
    }
}

async fn garbage_in_the_query_is_refused_or_passed_over(world: World) {
    let answer = world.get(&with_query(&world.maps(), "limit=abc")).await.refused(400, "BadRequest");
    answer.says("strconv.ParseInt: parsing \"abc\": invalid syntax");
    world.get(&with_query(&world.maps(), "limit=")).await.refused(400, "BadRequest");
    world.get(&with_query(&world.maps(), "timeoutSeconds=soon")).await.refused(400, "BadRequest");
    world.get(&with_query(&world.maps(), "nonsense=1&&=")).await.code(200);
    world.get(&with_query(&world.maps(), "a=%zz&b=%ff&limit=1;c")).await.code(200);
    let answer = world.get(&with_query(&world.maps(), "resourceVersion=%2B5")).await.refused(400, "BadRequest");
    answer.mentions("strconv.ParseUint: parsing \"+5\": invalid syntax");
    world.get(&format!("{}?&limit=1", world.maps())).await.code(200);
}

async fn a_wrong_type_in_metadata_is_a_bad_request(world: World) {
    for metadata in [
        json!([]),
        json!("text"),
        json!({"name": 5}),
        json!({"name": "a", "labels": []}),
        json!({"name": "a", "finalizers": {"a": 1}}),
        json!({"name": "a", "creationTimestamp": "yesterday"}),
    ] {
        let answer = world.post(&world.maps(), json!({"metadata": metadata})).await;
        assert_eq!((answer.code, &answer.body["reason"]), (400, &json!("BadRequest")), "{metadata}: {}", answer.text);
    }
}

async fn numbers_keep_their_value(world: World) {
    let widgets = world.install(definition(anything())).await;
    let numbers =
        json!({"large": 9_007_199_254_740_993_i64, "small": -9_223_372_036_854_775_808_i64, "half": 0.5, "zero": 0});
    let made = world.post(&widgets.path(), widgets.widget("a", numbers.clone())).await.ok();
    assert_eq!(made["spec"], numbers);
}

async fn nothing_is_stored_as_null_where_text_belongs(world: World) {
    let widgets = world.install(definition(anything())).await;
    let mut widget = widgets.widget("a", json!({}));
    widget["metadata"]["labels"] = json!({"l": null});
    widget["metadata"]["annotations"] = json!({"a": null});
    let made = world.post(&widgets.path(), widget).await.code(201).ok();
    assert_eq!((&made["metadata"]["labels"], &made["metadata"]["annotations"]), (&json!({"l": ""}), &json!({"a": ""})));
    let applied = json!({"apiVersion": widgets.widget("a", json!({}))["apiVersion"], "kind": "Widget",
        "metadata": {"name": "b", "labels": {"l": null}}});
    let made = world.apply("alice", &widgets.one("b"), applied).await.code(201).ok();
    assert_eq!(made["metadata"]["labels"], json!({"l": ""}));

    let map = json!({"metadata": {"name": "a", "labels": {"l": null}}, "data": {"k": null}});
    let made = world.post(&world.maps(), map).await.code(201).ok();
    assert_eq!((&made["metadata"]["labels"], &made["data"]), (&json!({"l": ""}), &json!({"k": ""})));
    let map = json!({"metadata": {"name": "b", "finalizers": [null]}});
    world.post(&world.maps(), map).await.refused(422, "Invalid").mentions("metadata.finalizers");
    let patch = json!([{"op": "add", "path": "/data/x", "value": null}]);
    let patched = world.patch(JSON, &format!("{}/a", world.maps()), patch).await.code(200).ok();
    assert_eq!(patched["data"], json!({"k": "", "x": ""}));
    let map = json!({"metadata": {"name": "c"}, "binaryData": {"b": null}});
    assert_eq!(world.post(&world.maps(), map).await.code(201).ok()["binaryData"], json!({"b": ""}));
    let secret = json!({"metadata": {"name": "a"}, "data": {"d": null}, "stringData": {"s": null}});
    let made = world.post(&world.core("secrets"), secret).await.code(201).ok();
    assert_eq!(made["data"], json!({"d": "", "s": ""}));
    let service = json!({"metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}], "selector": {"s": null}}});
    let made = world.post(&world.core("services"), service).await.code(201).ok();
    assert_eq!(made["spec"]["selector"], json!({"s": ""}));
    let container = json!({"name": "c", "image": "i", "resources": {"limits": {"cpu": null}}});
    let pod = json!({"metadata": {"name": "a"}, "spec": {"containers": [container], "nodeSelector": {"n": null},
        "automountServiceAccountToken": false}});
    let spec = world.post(&world.core("pods"), pod).await.code(201).ok()["spec"].take();
    assert_eq!(spec["nodeSelector"], json!({"n": ""}));
    assert_eq!(spec["containers"][0]["resources"], json!({"limits": {"cpu": "0"}, "requests": {"cpu": "0"}}));
}

async fn times_are_read_strictly_and_told_in_utc(world: World) {
    let leases = world.of_group("coordination.k8s.io/v1", "leases");
    let lease = |name: &str, time: &str| json!({"metadata": {"name": name}, "spec": {"renewTime": time}});
    for (time, why) in [
        ("2026-01-01T00:00:00Z", "cannot parse \"Z\" as \".000000\""),
        ("2026-01-01T00:00:00.5Z", "cannot parse \".5Z\" as \".000000\""),
        ("2026-01-01T00:00:00.1234567Z", "cannot parse \"7Z\" as \"Z07:00\""),
    ] {
        let answer = world.post(&leases, lease("a", time)).await.refused(400, "BadRequest");
        answer.mentions(&format!("parsing time {time:?} as \"2006-01-02T15:04:05.000000Z07:00\": {why}"));
    }
    let answer = world.post(&leases, lease("a", "2026-01-01T25:00:00.123456Z")).await.refused(400, "BadRequest");
    answer.mentions("parsing time \"2026-01-01T25:00:00.123456Z\": hour out of range");
    let made = world.post(&leases, lease("a", "2026-01-01T00:00:00.123456+02:00")).await.code(201).ok();
    assert_eq!(made["spec"]["renewTime"], "2025-12-31T22:00:00.123456Z");
    let event = json!({"metadata": {"name": "a"}, "involvedObject": {"namespace": world.namespace},
        "firstTimestamp": "2026-01-01T00:00:00.9+02:00"});
    let made = world.post(&world.core("events"), event).await.code(201).ok();
    assert_eq!(made["firstTimestamp"], "2025-12-31T22:00:00Z");
}

async fn bytes_are_stored_in_one_form(world: World) {
    let map = json!({"metadata": {"name": "a"}, "binaryData": {"loose": "YR==", "broken": "YWFh\nYQ=="}});
    let made = world.post(&world.maps(), map).await.code(201).ok();
    assert_eq!(made["binaryData"], json!({"loose": "YQ==", "broken": "YWFhYQ=="}));
}

async fn a_version_that_is_no_number_is_never_stale(world: World) {
    let widgets = world.install(definition(anything())).await;
    let mut widget = world.post(&widgets.path(), widgets.widget("a", json!({}))).await.ok();
    widget["metadata"]["resourceVersion"] = json!("abc");
    for answer in [
        world.put(&widgets.one("a"), &widget).await,
        world.patch(MERGE, &widgets.one("a"), json!({"metadata": {"resourceVersion": "abc"}})).await,
    ] {
        assert_eq!((answer.code, answer.message()), (500, "strconv.ParseUint: parsing \"abc\": invalid syntax"));
    }
}
