//! Label and field selectors.

use serde_json::json;

use crate::answer::names;
use crate::widgets::{definition, properties};
use crate::world::{World, with_query};

promises!(
    labels_are_selected_with_every_operator,
    a_malformed_label_selector_is_a_bad_request,
    fields_select_by_name_and_namespace,
    an_unsupported_field_is_a_bad_request,
    custom_kinds_select_by_their_selectable_fields,
    pods_select_by_phase_and_node,
    flags_that_are_absent_are_false,
    secrets_select_by_type,
    selectors_combine,
);

async fn labels_are_selected_with_every_operator(world: World) {
    world.map("a", json!({"mine": "y", "tier": "web", "env": "prod"})).await;
    world.map("b", json!({"mine": "y", "tier": "db", "env": "prod"})).await;
    world.map("c", json!({"mine": "y", "tier": "web"})).await;
    world.map("d", json!({"mine": "y", "size": "10"})).await;
    for (selector, expected) in [
        ("mine", "a b c d"),
        ("tier=web,mine", "a c"),
        ("tier==web,mine", "a c"),
        ("tier!=web,mine", "b d"),
        ("tier in (web,db),mine", "a b c"),
        ("tier in (),mine", ""),
        ("tier notin (web),mine", "b d"),
        ("tier,mine", "a b c"),
        ("!tier,mine", "d"),
        ("tier=web,env=prod", "a"),
        ("size>5", "d"),
        ("size<5", ""),
        ("size>10", ""),
        (" tier = web , env = prod ", "a"),
        ("tier=,mine", ""),
        ("nosuch", ""),
    ] {
        let list =
            world.get(&with_query(&world.maps(), &format!("labelSelector={}", escaped(selector)))).await.code(200).ok();
        assert_eq!(names(&list).join(" "), expected, "{selector}");
    }
}

async fn a_malformed_label_selector_is_a_bad_request(world: World) {
    for selector in
        ["a=b=c", "a in web", "a in (b", "=x", "a>b,", "!", "a,,b", "a b", "bad key=1", "a=bad value", "a>x"]
    {
        let answer = world.get(&with_query(&world.maps(), &format!("labelSelector={}", escaped(selector)))).await;
        assert_eq!(answer.code, 400, "{selector}: {}", answer.text);
        answer.refused(400, "BadRequest");
    }
}

async fn fields_select_by_name_and_namespace(world: World) {
    for name in ["a", "b"] {
        world.map(name, json!({})).await;
    }
    let namespace = &world.namespace;
    let everywhere = "/api/v1/configmaps";
    for (path, selector, expected) in [
        (world.maps(), "metadata.name=a".to_owned(), "a"),
        (world.maps(), "metadata.name==a".to_owned(), "a"),
        (world.maps(), "metadata.name=a,metadata.name=b".to_owned(), ""),
        (world.maps(), format!("metadata.name=a,metadata.namespace={namespace}"), "a"),
        (world.maps(), "metadata.namespace=other".to_owned(), ""),
        (everywhere.to_owned(), format!("metadata.name=b,metadata.namespace={namespace}"), "b"),
        (
            everywhere.to_owned(),
            format!("metadata.namespace={namespace},metadata.name!=a,metadata.name!=kube-root-ca.crt"),
            "b",
        ),
    ] {
        let list = world.get(&with_query(&path, &format!("fieldSelector={}", escaped(&selector)))).await.code(200).ok();
        assert_eq!(names(&list).join(" "), expected, "{path} {selector}");
    }
}

async fn an_unsupported_field_is_a_bad_request(world: World) {
    let answer = world.get(&with_query(&world.maps(), "fieldSelector=data.k=v")).await.refused(400, "BadRequest");
    answer.says("\"data.k\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"");
    let widgets = world.install(definition(properties(json!({"size": {"type": "string"}})))).await;
    let answer = world.get(&with_query(&widgets.path(), "fieldSelector=spec.size=l")).await.refused(400, "BadRequest");
    answer.mentions("field label not supported: spec.size");
    let answer = world.get(&with_query(&world.maps(), "fieldSelector=metadata.name")).await;
    answer.refused(400, "BadRequest").mentions("invalid selector");
}

async fn custom_kinds_select_by_their_selectable_fields(world: World) {
    let mut definition = definition(properties(json!({
        "size": {"type": "string"}, "count": {"type": "integer"}, "on": {"type": "boolean"},
    })));
    definition["spec"]["versions"][0]["selectableFields"] =
        json!([{"jsonPath": ".spec.size"}, {"jsonPath": ".spec.count"}, {"jsonPath": ".spec.on"}]);
    let widgets = world.install(definition).await;
    for (name, spec) in
        [("a", json!({"size": "s", "count": 1, "on": true})), ("b", json!({"size": "l", "count": 2})), ("c", json!({}))]
    {
        world.post(&widgets.path(), widgets.widget(name, spec)).await.ok();
    }
    for (selector, expected) in [
        ("spec.size=l", "b"),
        ("spec.size!=l", "a c"),
        ("spec.size=", "c"),
        ("spec.count=1", "a"),
        ("spec.on=true", "a"),
        ("spec.size=s,spec.count=2", ""),
        ("spec.size=l,metadata.name=b", "b"),
    ] {
        let list = world
            .get(&with_query(&widgets.path(), &format!("fieldSelector={}", escaped(selector))))
            .await
            .code(200)
            .ok();
        assert_eq!(names(&list).join(" "), expected, "{selector}");
    }
}

async fn pods_select_by_phase_and_node(world: World) {
    for (name, node) in [("a", json!(null)), ("b", json!("n1"))] {
        let mut spec = json!({"containers": [{"name": "c", "image": "i"}], "automountServiceAccountToken": false});
        if node.is_string() {
            spec["nodeName"] = node;
        }
        world.post(&world.core("pods"), json!({"metadata": {"name": name}, "spec": spec})).await.ok();
    }
    let running = json!({"status": {"phase": "Running"}});
    world.patch(crate::world::MERGE, &format!("{}/a/status", world.core("pods")), running).await.ok();
    for (selector, expected) in [
        ("status.phase=Running", "a"),
        ("status.phase!=Running", "b"),
        ("spec.nodeName=n1", "b"),
        ("spec.nodeName=", "a"),
    ] {
        let path = with_query(&world.core("pods"), &format!("fieldSelector={}", escaped(selector)));
        assert_eq!(names(&world.get(&path).await.code(200).ok()).join(" "), expected, "{selector}");
    }
}

async fn flags_that_are_absent_are_false(world: World) {
    let (open, closed) = (format!("{}-open", world.namespace), format!("{}-closed", world.namespace));
    for (name, unschedulable) in [(&open, json!(null)), (&closed, json!(true))] {
        let node = json!({"metadata": {"name": name, "labels": {"of": world.namespace}}, "spec": {"unschedulable": unschedulable}});
        world.post("/api/v1/nodes", node).await.code(201);
    }
    for (selector, expected) in [
        ("spec.unschedulable=false", vec![open.as_str()]),
        ("spec.unschedulable=true", vec![closed.as_str()]),
        ("spec.unschedulable!=true", vec![open.as_str()]),
    ] {
        let query = format!("labelSelector=of={}&fieldSelector={}", world.namespace, escaped(selector));
        let list = world.get(&with_query("/api/v1/nodes", &query)).await.ok();
        assert_eq!(names(&list), expected, "{selector}");
    }
    for name in [open, closed] {
        world.delete(&format!("/api/v1/nodes/{name}"), json!(null)).await.code(200);
    }
    let pod = json!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    world.post(&world.core("pods"), pod).await.code(201);
    let list = world.get(&with_query(&world.core("pods"), "fieldSelector=spec.hostNetwork=false")).await.ok();
    assert_eq!(names(&list), ["a"]);
}

async fn secrets_select_by_type(world: World) {
    for (name, kind) in [("a", "Opaque"), ("b", "example.com/token")] {
        world.post(&world.core("secrets"), json!({"metadata": {"name": name}, "type": kind})).await.ok();
    }
    let list = world.get(&with_query(&world.core("secrets"), "fieldSelector=type=example.com/token")).await.ok();
    assert_eq!(names(&list), ["b"]);
}

async fn selectors_combine(world: World) {
    world.map("a", json!({"mine": "y"})).await;
    world.map("b", json!({"mine": "y"})).await;
    let list = world.get(&with_query(&world.maps(), "labelSelector=mine=y&fieldSelector=metadata.name!=a")).await.ok();
    assert_eq!(names(&list), ["b"]);
}

/// A selector as part of a query string.
fn escaped(selector: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' | b'_' | b'/' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    selector.bytes().map(byte).collect()
}
