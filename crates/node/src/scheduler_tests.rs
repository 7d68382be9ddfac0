//! Every rule of the choice, on nodes of a few words.

use super::*;

fn node(name: &str, labels: Value, spec: Value, ready: bool) -> Node {
    let ready = if ready { "True" } else { "False" };
    serde_json::from_value(json!({
        "metadata": {"name": name, "labels": labels}, "spec": spec,
        "status": {"conditions": [{"type": "Ready", "status": ready}]},
    }))
    .unwrap()
}

fn zones() -> Vec<Node> {
    (0..3)
        .map(|zone| {
            node(&format!("n{zone}"), json!({"zone": format!("z{zone}"), "size": zone.to_string()}), json!({}), true)
        })
        .collect()
}

fn pod(name: &str, spec: Value, owner: Option<&str>, on: Option<&str>) -> Pod {
    let owners: Vec<_> = owner
        .map(|uid| json!({"apiVersion": "v1", "kind": "X", "name": "x", "uid": uid, "controller": true}))
        .into_iter()
        .collect();
    let mut spec = spec;
    spec["containers"] = json!([]);
    spec["nodeName"] = json!(on);
    serde_json::from_value(json!({"metadata": {"name": name, "ownerReferences": owners}, "spec": spec})).unwrap()
}

fn chosen(pod: &Pod, nodes: &[Node], others: &[Pod]) -> Result<String, String> {
    choose(pod, &nodes.iter().collect::<Vec<_>>(), others.iter())
}

#[test]
fn brokers_go_round_the_nodes_by_their_numbers() {
    let on = |name: &str, nodes: &[Node]| {
        let mut pod = pod(name, json!({}), None, None);
        pod.labels_mut().insert(POD_NAME.into(), name.into());
        chosen(&pod, nodes, &[]).unwrap()
    };
    let nodes = zones();
    let all: Vec<_> = [0, 1, 2, 3, 100].map(|number| on(&format!("c-pool-{number}"), &nodes)).into();
    assert_eq!(all, ["n0", "n1", "n2", "n0", "n1"]);
    assert_eq!(on("c-pool-1", &nodes[1..]), "n2", "of those that fit");
}

#[test]
fn others_go_where_the_fewest_of_their_owner_are() {
    let nodes = zones();
    let others = [
        pod("a", json!({}), Some("u1"), Some("n0")),
        pod("b", json!({}), Some("u2"), Some("n1")),
        pod("c", json!({}), Some("u2"), Some("n1")),
        pod("d", json!({}), None, Some("n2")),
    ];
    let of = |owner| chosen(&pod("new", json!({}), owner, None), &nodes, &others).unwrap();
    assert_eq!(of(Some("u1")), "n2", "one of its own is worse than many of others");
    assert_eq!(of(Some("u2")), "n0");
    assert_eq!(of(None), "n0");
    assert_eq!(chosen(&pod("new", json!({}), None, None), &nodes, &[]).unwrap(), "n0");
}

#[test]
fn selectors_and_affinity_are_kept_to() {
    let nodes = zones();
    let required = |terms: Value| {
        let selector = json!({"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}});
        json!({"affinity": {"nodeAffinity": selector}})
    };
    let label = |key: &str, operator: &str, values: Value| json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]});
    let refused = "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector.";
    for (spec, expected) in [
        (json!({"nodeSelector": {"zone": "z1"}}), Ok("n1")),
        (json!({"nodeSelector": {"zone": "z9"}}), Err(refused)),
        (required(json!([label("zone", "In", json!(["z2", "z9"]))])), Ok("n2")),
        (required(json!([label("zone", "NotIn", json!(["z0"]))])), Ok("n1")),
        (required(json!([label("size", "Gt", json!(["1"]))])), Ok("n2")),
        (required(json!([label("size", "Lt", json!(["1"]))])), Ok("n0")),
        (required(json!([label("other", "Exists", json!(null))])), Err(refused)),
        (required(json!([label("other", "DoesNotExist", json!(null))])), Ok("n0")),
        (required(json!([label("other", "Exists", json!(null)), label("zone", "In", json!(["z1"]))])), Ok("n1")),
        (required(json!([{}])), Err(refused)),
        (required(json!([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]}])), Ok("n2")),
    ] {
        let chosen = chosen(&pod("p", spec.clone(), None, None), &nodes, &[]);
        assert_eq!(chosen.as_deref().map_err(String::as_str), expected, "{spec}");
    }
}

#[test]
fn why_no_node_fits_is_said_node_by_node() {
    let nodes = [
        node("a", json!({}), json!({"unschedulable": true}), true),
        node("b", json!({}), json!({}), false),
        node("c", json!({}), json!({}), true),
    ];
    let picky = pod("p", json!({"nodeSelector": {"x": "y"}}), None, None);
    assert_eq!(
        chosen(&picky, &nodes, &[]).unwrap_err(),
        "0/3 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, 1 node(s) were not ready, \
         1 node(s) were unschedulable."
    );
    let none = "0/0 nodes are available: no nodes available to schedule pods.";
    assert_eq!(chosen(&picky, &[], &[]).unwrap_err(), none);
}

#[test]
fn only_pods_that_ask_for_it_are_scheduled() {
    let waiting = pod("p", json!({}), None, None);
    assert!(waits_for_us(&waiting));
    assert!(!waits_for_us(&pod("p", json!({}), None, Some("n0"))));
    assert!(!waits_for_us(&pod("p", json!({"schedulerName": "other"}), None, None)));
}
