//! Roles, bindings, questions about them, and network policies.

use std::net::IpAddr;

use serde_json::{Value, json};

use super::{Errors, PORT_RANGE, entries, items, names, text};
use crate::refusal::{Fault, FieldError};

const GROUP: &str = "rbac.authorization.k8s.io";

/// A question whether somebody may do something, which has to be one thing.
pub(super) fn review(errors: &mut Errors, review: &Value) {
    let spec = review.get("spec").unwrap_or(&Value::Null);
    match (spec.get("resourceAttributes"), spec.get("nonResourceAttributes")) {
        (None, None) => errors.invalid(
            "spec.resourceAttributes",
            &Value::Null,
            "exactly one of nonResourceAttributes or resourceAttributes must be specified",
        ),
        (Some(_), Some(other)) => errors.invalid(
            "spec.nonResourceAttributes",
            other,
            "cannot be specified in combination with resourceAttributes",
        ),
        _ => {}
    }
}

pub(super) fn role(errors: &mut Errors, role: &Value, namespaced: bool) {
    let is_empty = |rule: &Value, field: &str| items(rule.get(field)).next().is_none();
    for (at, rule) in items(role.get("rules")) {
        let path = format!("rules[{at}]");
        if is_empty(rule, "verbs") {
            errors.required(&format!("{path}.verbs"), "verbs must contain at least one value");
        }
        if !is_empty(rule, "nonResourceURLs") {
            let (field, urls) = (format!("{path}.nonResourceURLs"), &rule["nonResourceURLs"]);
            if namespaced {
                errors.invalid(&field, urls, "namespaced rules cannot apply to non-resource URLs");
            }
            if !is_empty(rule, "apiGroups") || !is_empty(rule, "resources") || !is_empty(rule, "resourceNames") {
                errors.invalid(&field, urls, "rules cannot apply to both regular resources and non-resource URLs");
            }
            continue;
        }
        if is_empty(rule, "apiGroups") {
            errors.required(&format!("{path}.apiGroups"), "resource rules must supply at least one api group");
        }
        if is_empty(rule, "resources") {
            errors.required(&format!("{path}.resources"), "resource rules must supply at least one resource");
        }
    }
}

pub(super) fn binding(errors: &mut Errors, binding: &Value, old: Option<&Value>, namespaced: bool) {
    let empty = Value::Null;
    let reference = binding.get("roleRef").unwrap_or(&empty);
    let (group, kind, name) = (text(reference, "apiGroup"), text(reference, "kind"), text(reference, "name"));
    if group != GROUP {
        errors.unsupported("roleRef.apiGroup", &json!(group), &[GROUP]);
    }
    let kinds: &[&str] = if namespaced { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
    if !kinds.contains(&kind) {
        errors.unsupported("roleRef.kind", &json!(kind), kinds);
    }
    if name.is_empty() {
        errors.required("roleRef.name", "");
    }
    for (at, subject) in items(binding.get("subjects")) {
        check_subject(errors, subject, &format!("subjects[{at}]"), namespaced);
    }
    if old.is_some_and(|old| old.get("roleRef") != binding.get("roleRef")) {
        let value = format!("{{\"APIGroup\":{group:?},\"Kind\":{kind:?},\"Name\":{name:?}}}");
        let (field, detail) = ("roleRef".to_owned(), "cannot change roleRef".to_owned());
        errors.0.push(FieldError { field, fault: Fault::Invalid, value, detail });
    }
}

fn check_subject(errors: &mut Errors, subject: &Value, path: &str, namespaced: bool) {
    if text(subject, "name").is_empty() {
        errors.required(&format!("{path}.name"), "");
    }
    let (kind, group) = (text(subject, "kind"), text(subject, "apiGroup"));
    let expected = match kind {
        "ServiceAccount" => "",
        "User" | "Group" => GROUP,
        _ => {
            errors.unsupported(&format!("{path}.kind"), &json!(kind), &["ServiceAccount", "User", "Group"]);
            return;
        }
    };
    if group != expected {
        errors.unsupported(&format!("{path}.apiGroup"), &json!(group), &[expected]);
    }
    // In a namespace there is a namespace to assume.
    if kind == "ServiceAccount" && !namespaced && text(subject, "namespace").is_empty() {
        errors.required(&format!("{path}.namespace"), "");
    }
}

pub(super) fn network_policy(errors: &mut Errors, policy: &Value) {
    const TYPES: &[&str] = &["Ingress", "Egress"];
    let empty = Value::Null;
    let spec = policy.get("spec").unwrap_or(&empty);
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        for (at, rule) in items(spec.get(direction)) {
            let path = format!("spec.{direction}[{at}]");
            for (at, port) in items(rule.get("ports")) {
                check_port(errors, port, &format!("{path}.ports[{at}]"));
            }
            for (at, peer) in items(rule.get(peers)) {
                check_peer(errors, peer, &format!("{path}.{peers}[{at}]"));
            }
        }
    }
    for (at, ty) in items(spec.get("policyTypes")) {
        if !ty.as_str().is_some_and(|ty| TYPES.contains(&ty)) {
            errors.unsupported(&format!("spec.policyTypes[{at}]"), ty, TYPES);
        }
    }
}

fn check_port(errors: &mut Errors, port: &Value, path: &str) {
    let field = format!("{path}.port");
    match port.get("port") {
        Some(Value::String(name)) => {
            for why in names::port(name) {
                errors.invalid(&field, &json!(name), &why);
            }
        }
        Some(number) if !number.as_i64().is_some_and(|n| (1..=65_535).contains(&n)) => {
            errors.invalid(&field, number, PORT_RANGE);
        }
        _ => {}
    }
    errors.one_of(port, path, "protocol", &["TCP", "UDP", "SCTP"]);
}

fn check_peer(errors: &mut Errors, peer: &Value, path: &str) {
    if entries(Some(peer)).next().is_none() {
        errors.required(path, "must specify a peer");
    }
    let Some(block) = peer.get("ipBlock") else { return };
    if entries(Some(peer)).count() > 1 {
        errors.forbidden(path, "may not specify both ipBlock and another peer");
    }
    let cidr = text(block, "cidr");
    let field = format!("{path}.ipBlock.cidr");
    if cidr.is_empty() {
        errors.required(&field, "");
    } else if !is_cidr(cidr) {
        errors.invalid(&field, &json!(cidr), "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)");
    }
}

fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    match (address.parse::<IpAddr>(), bits.parse::<u8>()) {
        (Ok(IpAddr::V4(_)), Ok(bits)) => bits <= 32,
        (Ok(IpAddr::V6(_)), Ok(bits)) => bits <= 128,
        _ => false,
    }
}
