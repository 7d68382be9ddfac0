//! Where a pod may run: affinities, tolerations, how pods are spread.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::super::workloads::label_selector;
use super::super::{Errors, below, items, names, text};

const POSITIVE: &str = "must be greater than zero";
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

pub(super) fn check_affinity(errors: &mut Errors, affinity: &Value, path: &str) {
    if let Some(node) = affinity.get("nodeAffinity") {
        check_node_affinity(errors, node, &below(path, "nodeAffinity"));
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        let Some(pods) = affinity.get(kind) else { continue };
        let path = below(path, kind);
        for (at, term) in items(pods.get(REQUIRED)) {
            check_pod_term(errors, term, &format!("{path}.{REQUIRED}[{at}]"));
        }
        for (at, weighted) in items(pods.get(PREFERRED)) {
            let path = format!("{path}.{PREFERRED}[{at}]");
            check_weight(errors, weighted, &path);
            let term = weighted.get("podAffinityTerm").unwrap_or(&Value::Null);
            check_pod_term(errors, term, &below(&path, "podAffinityTerm"));
        }
    }
}

fn check_weight(errors: &mut Errors, weighted: &Value, path: &str) {
    let weight = weighted.get("weight").and_then(Value::as_i64).unwrap_or_default();
    if !(1..=100).contains(&weight) {
        errors.invalid(&below(path, "weight"), &json!(weight), "must be in the range 1-100");
    }
}

fn check_node_affinity(errors: &mut Errors, affinity: &Value, path: &str) {
    if let Some(selector) = affinity.get(REQUIRED) {
        let path = format!("{path}.{REQUIRED}.nodeSelectorTerms");
        if items(selector.get("nodeSelectorTerms")).next().is_none() {
            errors.required(&path, "must have at least one node selector term");
        }
        for (at, term) in items(selector.get("nodeSelectorTerms")) {
            check_node_term(errors, term, &format!("{path}[{at}]"), true);
        }
    }
    for (at, weighted) in items(affinity.get(PREFERRED)) {
        let path = format!("{path}.{PREFERRED}[{at}]");
        check_weight(errors, weighted, &path);
        let term = weighted.get("preference").unwrap_or(&Value::Null);
        check_node_term(errors, term, &below(&path, "preference"), false);
    }
}

/// `values`: whether what labels are compared with must be a label's value.
fn check_node_term(errors: &mut Errors, term: &Value, path: &str, values: bool) {
    for (at, wanted) in items(term.get("matchExpressions")) {
        let path = format!("{path}.matchExpressions[{at}]");
        let (count, field) = (items(wanted.get("values")).count(), below(&path, "values"));
        match text(wanted, "operator") {
            "In" | "NotIn" if count == 0 => {
                errors.required(&field, "must be specified when `operator` is 'In' or 'NotIn'");
            }
            "Exists" | "DoesNotExist" if count > 0 => {
                errors.forbidden(&field, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
            }
            "Gt" | "Lt" if count != 1 => {
                errors.required(&field, "must be specified single value when `operator` is 'Lt' or 'Gt'");
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
            other => errors.invalid(&below(&path, "operator"), &json!(other), "not a valid selector operator"),
        }
        let key = text(wanted, "key");
        errors.named(&below(&path, "key"), key, names::qualified(key));
        for (at, value) in items(wanted.get("values")).filter(|_| values) {
            let value = value.as_str().unwrap_or_default();
            errors.named(&format!("{field}[{at}]"), value, names::label_value(value));
        }
    }
    for (at, wanted) in items(term.get("matchFields")) {
        let path = format!("{path}.matchFields[{at}]");
        match text(wanted, "operator") {
            "In" | "NotIn" if items(wanted.get("values")).count() == 1 => {}
            "In" | "NotIn" => {
                let why = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
                errors.required(&below(&path, "values"), why);
            }
            other => errors.invalid(&below(&path, "operator"), &json!(other), "not a valid selector operator"),
        }
        if text(wanted, "key") == "metadata.name" {
            for (at, value) in items(wanted.get("values")) {
                let value = value.as_str().unwrap_or_default();
                errors.named(&format!("{path}.values[{at}]"), value, names::subdomain(value));
            }
        } else {
            errors.invalid(&below(&path, "key"), &json!(text(wanted, "key")), "not a valid field selector key");
        }
    }
}

fn check_pod_term(errors: &mut Errors, term: &Value, path: &str) {
    for field in ["labelSelector", "namespaceSelector"] {
        if let Some(selector) = term.get(field) {
            label_selector(errors, selector, &below(path, field));
        }
    }
    for (_, namespace) in items(term.get("namespaces")) {
        let namespace = namespace.as_str().unwrap_or_default();
        errors.named(&below(path, "namespace"), namespace, names::label(namespace));
    }
    let (key, field) = (text(term, "topologyKey"), below(path, "topologyKey"));
    if key.is_empty() {
        errors.required(&field, "can not be empty");
    }
    errors.named(&field, key, names::qualified(key));
}

pub(super) fn check_spread(errors: &mut Errors, constraints: Option<&Value>, path: &str) {
    const ACTIONS: &[&str] = &["DoNotSchedule", "ScheduleAnyway"];
    const POLICIES: &[&str] = &["Honor", "Ignore"];
    let repeated = followed_by_their_like(constraints);
    for (at, constraint) in items(constraints) {
        let path = format!("{path}[{at}]");
        let number = |field: &str| constraint.get(field).and_then(Value::as_i64);
        let (key, action) = (text(constraint, "topologyKey"), text(constraint, "whenUnsatisfiable"));
        if number("maxSkew").unwrap_or_default() <= 0 {
            errors.invalid(&below(&path, "maxSkew"), &json!(number("maxSkew").unwrap_or_default()), POSITIVE);
        }
        if key.is_empty() {
            errors.required(&below(&path, "topologyKey"), "can not be empty");
        }
        if !ACTIONS.contains(&action) {
            errors.unsupported(&below(&path, "whenUnsatisfiable"), &json!(action), ACTIONS);
        }
        if repeated.contains(&at) {
            let field = below(&path, "{topologyKey, whenUnsatisfiable}");
            errors.duplicate(&field, &json!(format!("{{{key}, {action}}}")));
        }
        if let Some(domains) = number("minDomains") {
            let field = below(&path, "minDomains");
            if domains <= 0 {
                errors.invalid(&field, &json!(domains), POSITIVE);
            }
            if action != "DoNotSchedule" {
                let why = format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}");
                errors.invalid(&field, &json!(domains), &why);
            }
        }
        for field in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            errors.one_of(constraint, &path, field, POLICIES);
        }
        if let Some(selector) = constraint.get("labelSelector") {
            label_selector(errors, selector, &below(&path, "labelSelector"));
        }
    }
}

/// Which constraints have the topology and the action of a later one: of two that are alike, the first is told of.
fn followed_by_their_like(constraints: Option<&Value>) -> BTreeSet<usize> {
    let all: Vec<_> = items(constraints).collect();
    let mut seen = BTreeSet::new();
    let mut is_new = |it| seen.insert((text(it, "topologyKey"), text(it, "whenUnsatisfiable")));
    all.into_iter().rev().filter(|(_, constraint)| !is_new(constraint)).map(|(at, _)| at).collect()
}

pub(super) fn check_tolerations(errors: &mut Errors, tolerations: Option<&Value>, path: &str) {
    for (at, toleration) in items(tolerations) {
        check_toleration(errors, toleration, &format!("{path}[{at}]"));
    }
}

fn check_toleration(errors: &mut Errors, toleration: &Value, path: &str) {
    let (key, operator) = (text(toleration, "key"), text(toleration, "operator"));
    let (value, field) = (text(toleration, "value"), below(path, "operator"));
    if key.is_empty() {
        if operator != "Exists" {
            let why = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            errors.invalid(&field, &json!(operator), why);
        }
    } else {
        errors.named(&below(path, "key"), key, names::qualified(key));
    }
    if toleration.get("tolerationSeconds").is_some() && text(toleration, "effect") != "NoExecute" {
        let why = "effect must be 'NoExecute' when `tolerationSeconds` is set";
        errors.invalid(&below(path, "effect"), &json!(text(toleration, "effect")), why);
    }
    match operator {
        "" | "Equal" => {
            let why = names::label_value(value);
            if !why.is_empty() {
                errors.invalid(&field, &json!(value), &why.join(";"));
            }
        }
        "Exists" if !value.is_empty() => {
            errors.invalid(&field, &json!(value), "value must be empty when `operator` is 'Exists'");
        }
        "Exists" => {}
        // Known, and behind a gate that is closed.
        "Gt" | "Lt" => errors.unsupported(&field, &json!(operator), &["Equal", "Exists", "Lt", "Gt"]),
        _ => errors.unsupported(&field, &json!(operator), &["Equal", "Exists"]),
    }
    errors.one_of(toleration, path, "effect", &["NoSchedule", "PreferNoSchedule", "NoExecute"]);
}
