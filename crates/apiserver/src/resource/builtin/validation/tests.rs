//! Our refusals beside those recorded from kube-apiserver 1.35.4.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::super::{admission, resources};
use super::validate;
use crate::object::Object;
use crate::refusal::Refusal;
use crate::resource::Resource;

/// What a client would be told: nothing, or the message of the 422.
fn verdict(given: &Value, old: Option<&Value>) -> Option<String> {
    let resource = resource_of(given);
    let ctx =
        admission::Context { now: Timestamp::UNIX_EPOCH, cluster_ips: &BTreeSet::new(), node_ports: &BTreeSet::new() };
    let mut object = given.clone();
    match old {
        None => {
            admission::complete(&resource, &mut object);
            admission::decide(&resource, &mut object, &ctx);
        }
        Some(old) => admission::prepare_update(&resource, &mut object, old, &ctx),
    }
    let errors = validate(&resource, &object, old);
    let refusal = Refusal::invalid(&resource.group, &resource.kind, object.name(), &errors);
    (!errors.is_empty()).then_some(refusal.message)
}

fn resource_of(object: &Value) -> Resource {
    let is_it = |r: &Resource| r.kind == object.kind() && r.api_version("v1") == object.api_version();
    resources().into_iter().find(is_it).expect("a built-in kind")
}

#[test]
fn refusals_are_worded_as_the_original_words_them() {
    let recorded: Vec<Value> =
        serde_json::from_str(include_str!("../../../../tests/fixtures/builtin/refusals.json")).unwrap();
    assert!(recorded.len() > 100, "looked in the wrong place");
    let mut different = Vec::new();
    for row in &recorded {
        let ours = verdict(&row["given"], row.get("old"));
        let theirs = row["message"].as_str().map(str::to_owned);
        if ours != theirs {
            different.push(format!("theirs {theirs:?}\n  ours {ours:?}\n"));
        }
    }
    assert!(different.is_empty(), "{} of {}:\n{}", different.len(), recorded.len(), different.join("\n"));
}

#[test]
fn a_mebibyte_is_the_most_that_a_config_map_or_secret_holds() {
    let large = "x".repeat((1 << 20) - 1);
    let map = |rest: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "bad"}, "data": {"a": large, "b": rest}});
    assert_eq!(verdict(&map("y"), None), None);
    let wanted = "ConfigMap \"bad\" is invalid: []: Too long: may not be more than 1048576 bytes";
    assert_eq!(verdict(&map("yz"), None).as_deref(), Some(wanted));
    let secret = |rest: &str| {
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "bad"},
            "stringData": {"a": large, "b": rest}})
    };
    assert_eq!(verdict(&secret("y"), None), None);
    let wanted = "Secret \"bad\" is invalid: data: Too long: may not be more than 1048576 bytes";
    assert_eq!(verdict(&secret("yz"), None).as_deref(), Some(wanted));
}

#[test]
fn objects_without_any_content_are_refused_and_nothing_else_happens() {
    for resource in resources() {
        for spec in [Value::Null, json!({}), json!({"spec": {}}), json!({"spec": {"template": {}, "ports": [{}]}})] {
            let mut object = json!({"apiVersion": resource.api_version("v1"), "kind": resource.kind});
            if let (Value::Object(object), Value::Object(spec)) = (&mut object, spec) {
                object.extend(spec);
            }
            let _ = verdict(&object, None);
            let _ = verdict(&object, Some(&object));
        }
    }
}

fn pod(spec: Value) -> Value {
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "i"}]}});
    if let (Some(all), Value::Object(spec)) = (pod["spec"].as_object_mut(), spec) {
        all.extend(spec);
    }
    admission::complete(&resource_of(&pod), &mut pod);
    pod
}

#[test]
fn of_two_that_are_alike_the_one_is_told_that_the_original_tells() {
    let gates = pod(json!({"schedulingGates": [{"name": "a"}, {"name": "b"}, {"name": "a"}]}));
    let wanted = "Pod \"p\" is invalid: spec.schedulingGates[2]: Duplicate value: \"a\"";
    assert_eq!(verdict(&gates, None).as_deref(), Some(wanted));
    let spread = |key: &str| json!({"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule"});
    let spread = pod(json!({"topologySpreadConstraints": [spread("a"), spread("b"), spread("a")]}));
    let field = "spec.topologySpreadConstraints[0].{topologyKey, whenUnsatisfiable}";
    let wanted = format!("Pod \"p\" is invalid: {field}: Duplicate value: \"{{a, DoNotSchedule}}\"");
    assert_eq!(verdict(&spread, None), Some(wanted));
}

#[test]
fn a_toleration_keeps_everything_but_its_time() {
    let with = |seconds: u64, value: &str| {
        pod(json!({"tolerations": [{"key": "a", "value": "b", "effect": "NoExecute"},
            {"key": "k", "value": value, "effect": "NoExecute", "tolerationSeconds": seconds}]}))
    };
    assert_eq!(verdict(&with(2, "v"), Some(&with(1, "v"))), None);
    let wanted = "existing toleration can not be modified except its tolerationSeconds";
    assert!(verdict(&with(1, "w"), Some(&with(1, "v"))).is_some_and(|why| why.contains(wanted)));
}
