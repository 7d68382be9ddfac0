//! Defaults of services, and the addresses and ports that the server hands out.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use serde_json::{Value, json};

use super::{child, each, fill};
use crate::object::Object;

/// Cluster IPs come from 10.0.0.0/16. The first addresses are left for those that are chosen by hand.
const FIRST_ADDRESS: u32 = u32::from_be_bytes([10, 0, 1, 0]);
const LAST_ADDRESS: u32 = u32::from_be_bytes([10, 0, 255, 254]);
/// The range of node ports.
const NODE_PORTS: std::ops::RangeInclusive<u16> = 30_000..=32_767;

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
    if text(spec, "type") == "ExternalName" {
        release(spec);
        return;
    }
    let was = old.and_then(|o| o.at(&["spec"]));
    let inherited = was.map(|w| text(w, "clusterIP")).filter(|ip| !ip.is_empty());
    // `clusterIP` is the first of `clusterIPs`; either may be given.
    let listed = spec.get("clusterIPs").and_then(|ips| ips.get(0)).and_then(Value::as_str);
    let given = Some(text(spec, "clusterIP")).filter(|ip| !ip.is_empty());
    let changed = given.filter(|ip| Some(*ip) != inherited);
    let ip = changed.or(listed.filter(|_| given.is_some() || inherited.is_none())).or(given).or(inherited);
    let ip = ip.map(str::to_owned).or_else(|| free_address(cluster_ips)).unwrap_or_default();
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

/// A name for something outside has no address of its own.
fn release(spec: &mut Value) {
    if let Value::Object(map) = spec {
        for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"] {
            map.remove(field);
        }
    }
}

fn free_address(taken: &BTreeSet<Ipv4Addr>) -> Option<String> {
    let free = (FIRST_ADDRESS..=LAST_ADDRESS).map(Ipv4Addr::from).find(|ip| !taken.contains(ip));
    free.map(|ip| ip.to_string())
}

fn allocate_node_ports(spec: &mut Value, was: Option<&Value>, taken: &BTreeSet<u16>) {
    let wants = match text(spec, "type") {
        "NodePort" => true,
        "LoadBalancer" => spec.get("allocateLoadBalancerNodePorts") != Some(&Value::Bool(false)),
        _ => false,
    };
    if !wants {
        return;
    }
    let same = |a: &Value, b: &Value| a.get("port") == b.get("port") && a.get("protocol") == b.get("protocol");
    let before: Vec<Value> = was.and_then(|w| w.get("ports")?.as_array().cloned()).unwrap_or_default();
    let mut taken = taken.clone();
    each(spec, "ports", |port| {
        if port.get("nodePort").is_some() {
            return;
        }
        let kept = before.iter().find(|old| same(old, port)).and_then(|old| old.get("nodePort")?.as_u64());
        let kept = kept.and_then(|number| u16::try_from(number).ok());
        if let Some(number) = kept.or_else(|| NODE_PORTS.into_iter().find(|number| !taken.contains(number))) {
            taken.insert(number);
            fill(port, "nodePort", number);
        }
    });
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}
