//! Our defaults beside those recorded from kube-apiserver 1.35.4.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::*;
use crate::resource::builtin::resources;

fn resource_of(object: &Value) -> Resource {
    let is_it = |r: &Resource| r.kind == object.kind() && r.api_version("v1") == object.api_version();
    resources().into_iter().find(is_it).expect("a built-in kind")
}

fn created(given: &Value, cluster_ips: &BTreeSet<Ipv4Addr>) -> Value {
    let mut object = given.clone();
    let ctx = Context { now: Timestamp::UNIX_EPOCH, cluster_ips, node_ports: &BTreeSet::new() };
    let resource = resource_of(given);
    complete(&resource, &mut object);
    decide(&resource, &mut object, &ctx);
    object
}

/// What each server chooses for itself.
fn without_choices(mut object: Value, given: &Value) -> Value {
    if object.kind() == "Service"
        && let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut)
    {
        if given.at(&["spec", "clusterIP"]).is_none() {
            spec.remove("clusterIP");
            spec.remove("clusterIPs");
        }
        for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
            port.as_object_mut().map(|port| port.remove("nodePort"));
        }
    }
    if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) {
        status.remove("lastPhaseTransitionTime");
    }
    object
}

#[test]
fn new_objects_are_completed_as_the_original_completes_them() {
    let recorded: Vec<Value> =
        serde_json::from_str(include_str!("../../../../tests/fixtures/builtin/defaults.json")).unwrap();
    assert!(recorded.len() > 25, "looked in the wrong place");
    for row in &recorded {
        let ours = without_choices(created(&row["given"], &BTreeSet::new()), &row["given"]);
        let theirs = without_choices(row["kept"].clone(), &row["given"]);
        let pretty = |value: &Value| serde_json::to_string_pretty(value).unwrap();
        assert_eq!(ours, theirs, "ours {}\ntheirs {}", pretty(&ours), pretty(&theirs));
    }
}

fn service(spec: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": spec})
}

#[test]
fn addresses_are_the_first_free_ones() {
    let mut taken = BTreeSet::new();
    for last in 0..3 {
        let ip = created(&service(json!({"ports": [{"port": 80}]})), &taken)["spec"]["clusterIP"].clone();
        assert_eq!(ip, format!("10.0.1.{last}"));
        taken.insert(ip.as_str().unwrap().parse().unwrap());
    }
}

#[test]
fn an_update_keeps_what_was_handed_out() {
    let old = created(&service(json!({"type": "NodePort", "ports": [{"port": 80}]})), &BTreeSet::new());
    assert_eq!(old["spec"]["ports"][0]["nodePort"], 30_000);
    let taken = BTreeSet::from([Ipv4Addr::new(10, 0, 1, 0)]);
    let ports = BTreeSet::from([30_000]);
    let ctx = Context { now: Timestamp::UNIX_EPOCH, cluster_ips: &taken, node_ports: &ports };
    let mut new = service(json!({"type": "NodePort", "ports": [{"port": 80}, {"port": 81, "name": "b"}]}));
    prepare_update(&resource_of(&new), &mut new, &old, &ctx);
    assert_eq!(new["spec"]["clusterIP"], "10.0.1.0");
    assert_eq!(new["spec"]["ports"][0]["nodePort"], 30_000);
    assert_eq!(new["spec"]["ports"][1]["nodePort"], 30_001);
}

#[test]
fn reviews_are_answered_with_yes() {
    let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"verb": "create", "resource": "pods"}}});
    assert_eq!(created(&review, &BTreeSet::new())["status"]["allowed"], true);
}
