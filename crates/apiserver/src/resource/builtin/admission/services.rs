//! Defaults of services, and the addresses and ports that the server hands out.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use serde_json::{Value, json};

use super::{child, each, fill};
use crate::object::Object;

/// Cluster IPs come from 10.0.0.0/16. The first addresses are left for those that are chosen by hand.
const FIRST_ADDRESS: u32 = u32::from_be_bytes([10, 0, 1, 0]);
const LAST_ADDRESS: u32 = u32::from_be_bytes([10, 0, 255, 254]);
/// The range of node ports.
pub(crate) const NODE_PORTS: std::ops::RangeInclusive<u16> = 30_000..=32_767;

/// Defaults of a service's spec.
pub(super) fn defaults(spec: &mut Value) {
    fill(spec, "sessionAffinity", "None");
    fill(spec, "type", "ClusterIP");
    if spec["sessionAffinity"] == "ClientIP" {
        let affinity = child(spec, "sessionAffinityConfig");
        fill(child(affinity, "clientIP"), "timeoutSeconds", 10_800);
    }
    each(spec, "ports", |port| {
        fill(port, "protocol", "TCP");
        if port.get("targetPort").is_none_or(|target| target == 0 || target == "") {
            port["targetPort"] = port.get("port").cloned().unwrap_or_default();
        }
    });
    let ty = text(spec, "type").to_owned();
    if ty != "ExternalName" {
        fill(spec, "internalTrafficPolicy", "Cluster");
    }
    if matches!(ty.as_str(), "NodePort" | "LoadBalancer") {
        fill(spec, "externalTrafficPolicy", "Cluster");
    }
    if ty == "LoadBalancer" {
        fill(spec, "allocateLoadBalancerNodePorts", true);
    }
}

/// Gives a service the addresses and ports that its type has and it did not choose; on an update those of the old
/// state stay. Free ones are taken from the lower end, so the same requests give the same answers.
pub(super) fn allocate(
    service: &mut Value,
    old: Option<&Value>,
    cluster_ips: &BTreeSet<Ipv4Addr>,
    node_ports: &BTreeSet<u16>,
) {
    let spec = child(service, "spec");
    let was = old.and_then(|o| o.at(&["spec"]));
    if let Some(was) = was {
        leave_type(spec, was);
    }
    if text(spec, "type") == "ExternalName" {
        release(spec);
        return;
    }
    let inherited = was.map(|w| text(w, "clusterIP")).filter(|ip| !ip.is_empty());
    // `clusterIP` is the first of `clusterIPs`. A list that says anything else is refused.
    let given = Some(text(spec, "clusterIP")).filter(|ip| !ip.is_empty());
    let ip = given.or(inherited).map(str::to_owned).or_else(|| free_address(cluster_ips)).unwrap_or_default();
    spec["clusterIP"] = Value::String(ip.clone());
    spec["clusterIPs"] = json!([ip]);
    let headless_without_selector = ip == "None" && spec.get("selector").is_none();
    if headless_without_selector {
        // Its endpoints are somebody else's, so they may be of either family.
        fill(spec, "ipFamilies", json!(["IPv4", "IPv6"]));
        fill(spec, "ipFamilyPolicy", "RequireDualStack");
    }
    fill(spec, "ipFamilies", json!(["IPv4"]));
    fill(spec, "ipFamilyPolicy", "SingleStack");
    allocate_node_ports(spec, was, node_ports);
}

/// What a service had because of its type goes with the type, unless something new is said of it.
fn leave_type(spec: &mut Value, was: &Value) {
    let node_ports = |spec: &Value| -> BTreeSet<u64> {
        let ports = spec.get("ports").and_then(Value::as_array).into_iter().flatten();
        ports.filter_map(|port| port.get("nodePort")?.as_u64()).collect()
    };
    if has_node_ports(was) && !has_node_ports(spec) && node_ports(spec) == node_ports(was) {
        each(spec, "ports", |port| remove(port, "nodePort"));
    }
    let is_external = |spec: &Value| matches!(text(spec, "type"), "NodePort" | "LoadBalancer");
    let is_balanced = |spec: &Value| text(spec, "type") == "LoadBalancer";
    for (field, left) in [
        ("externalTrafficPolicy", is_external(was) && !is_external(spec)),
        ("allocateLoadBalancerNodePorts", is_balanced(was) && !is_balanced(spec)),
        ("loadBalancerClass", is_balanced(was) && !is_balanced(spec)),
    ] {
        if left && spec.get(field) == was.get(field) {
            remove(spec, field);
        }
    }
}

fn remove(value: &mut Value, field: &str) {
    if let Value::Object(map) = value {
        map.remove(field);
    }
}

/// A name for something outside has no address of its own.
fn release(spec: &mut Value) {
    for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"] {
        remove(spec, field);
    }
}

fn has_node_ports(spec: &Value) -> bool {
    match text(spec, "type") {
        "NodePort" => true,
        "LoadBalancer" => spec.get("allocateLoadBalancerNodePorts") != Some(&Value::Bool(false)),
        _ => false,
    }
}

fn free_address(taken: &BTreeSet<Ipv4Addr>) -> Option<String> {
    let free = (FIRST_ADDRESS..=LAST_ADDRESS).map(Ipv4Addr::from).find(|ip| !taken.contains(ip));
    free.map(|ip| ip.to_string())
}

fn allocate_node_ports(spec: &mut Value, was: Option<&Value>, taken: &BTreeSet<u16>) {
    if !has_node_ports(spec) {
        return;
    }
    let own = |port: &Value| u16::try_from(port.get("nodePort")?.as_u64()?).ok();
    let number = |port: &Value| port.get("port").and_then(Value::as_i64);
    let name = |port: &Value| (number(port), text(port, "protocol").to_owned());
    let ports = |spec: Option<&Value>| spec.and_then(|spec| spec.get("ports")?.as_array().cloned()).unwrap_or_default();
    let before: BTreeMap<_, u16> = ports(was).iter().filter_map(|port| Some((name(port), own(port)?))).collect();
    let given = ports(Some(&*spec));
    let mut by_number: BTreeMap<_, u16> = given.iter().filter_map(|port| Some((number(port), own(port)?))).collect();
    let given: BTreeSet<u16> = given.iter().filter_map(own).collect();
    let mut free = NODE_PORTS.filter(|number| !taken.contains(number) && !given.contains(number));
    each(spec, "ports", |port| {
        if port.get("nodePort").is_some() {
            return;
        }
        // In a new service, one number in two protocols is one port of the nodes.
        let shared = by_number.get(&number(port)).filter(|_| was.is_none());
        let found = before.get(&name(port)).or(shared).copied().or_else(|| free.next());
        if let Some(found) = found {
            by_number.insert(number(port), found);
            fill(port, "nodePort", found);
        }
    });
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}
