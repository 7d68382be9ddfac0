//! Pods, and the pod templates of workloads.

mod containers;
mod environment;
mod handlers;
mod scheduling;
mod security;
mod volumes;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use self::containers::{check_containers, check_images};
use self::scheduling::{check_affinity, check_spread, check_tolerations};
use self::security::check_pod_security;
use self::volumes::check_volumes;
use super::{Errors, below, entries, items, names, text};

const CHANGEABLE: &str = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

pub(super) fn pod(errors: &mut Errors, pod: &Value, old: Option<&Value>) {
    let empty = Value::Null;
    let new_spec = pod.get("spec").unwrap_or(&empty);
    spec(errors, new_spec, "spec", true);
    check_images(errors, new_spec, "spec");
    match old.and_then(|old| old.get("spec")) {
        Some(old_spec) => update(errors, new_spec, old_spec),
        None => creation(errors, new_spec),
    }
}

/// The template of a workload.
pub(super) fn template(errors: &mut Errors, template: &Value, path: &str) {
    let labels = template.get("metadata").and_then(|metadata| metadata.get("labels"));
    errors.labels(&below(path, "labels"), labels);
    let (pod, path) = (template.get("spec").unwrap_or(&Value::Null), below(path, "spec"));
    spec(errors, pod, &path, false);
    if items(pod.get("ephemeralContainers")).next().is_some() {
        let why = "ephemeral containers not allowed in pod template";
        errors.forbidden(&below(&path, "ephemeralContainers"), why);
    }
}

fn creation(errors: &mut Errors, spec: &Value) {
    if items(spec.get("ephemeralContainers")).next().is_some() {
        errors.forbidden("spec.ephemeralContainers", "cannot be set on create");
    }
    if !text(spec, "nodeName").is_empty() && items(spec.get("schedulingGates")).next().is_some() {
        errors.forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared");
    }
}

/// A pod is made once; only a few things about it can be changed.
fn update(errors: &mut Errors, new: &Value, old: &Value) {
    for containers in ["containers", "initContainers"] {
        if items(new.get(containers)).count() != items(old.get(containers)).count() {
            errors.forbidden(&format!("spec.{containers}"), "pod updates may not add or remove containers");
            return;
        }
        for (at, container) in items(new.get(containers)) {
            // Told a second time, as by the original.
            let (image, field) = (text(container, "image"), format!("spec.{containers}[{at}].image"));
            if image.is_empty() {
                errors.required(&field, "");
            }
            if image.trim() != image {
                errors.invalid(&field, &json!(image), "must not have leading or trailing whitespace");
            }
        }
    }
    if !deadline_may_change(errors, new, old) {
        return;
    }
    // They are told apart by all that they have but their time.
    let tolerations = |spec| -> BTreeSet<[&str; 4]> {
        let told_apart = |toleration| ["key", "operator", "value", "effect"].map(|field| text(toleration, field));
        items(Value::get(spec, "tolerations")).map(|(_, toleration)| told_apart(toleration)).collect()
    };
    if tolerations(old).is_subset(&tolerations(new)) {
        check_tolerations(errors, new.get("tolerations"), "spec.tolerations");
    } else {
        let why = "existing toleration can not be modified except its tolerationSeconds";
        errors.forbidden("spec.tolerations", why);
    }
    let before: BTreeSet<&str> = items(old.get("schedulingGates")).map(|(_, gate)| text(gate, "name")).collect();
    for (at, gate) in items(new.get("schedulingGates")).filter(|(_, gate)| !before.contains(text(gate, "name"))) {
        let why = format!("only deletion is allowed, but found new scheduling gate '{}'", text(gate, "name"));
        errors.forbidden(&format!("spec.schedulingGates[{at}].name"), &why);
    }
    if as_before(errors, new, old) != *old {
        errors.forbidden("spec", CHANGEABLE);
    }
}

/// Less time may be given, or some where there was no end; not more.
fn deadline_may_change(errors: &mut Errors, new: &Value, old: &Value) -> bool {
    const FIELD: &str = "spec.activeDeadlineSeconds";
    let seconds = |spec: &Value| spec.get("activeDeadlineSeconds").and_then(Value::as_i64);
    match (seconds(new), seconds(old)) {
        (Some(new), _) if !(0..=i64::from(i32::MAX)).contains(&new) => {
            errors.invalid(FIELD, &json!(new), "must be between 0 and 2147483647, inclusive");
            false
        }
        (Some(new), Some(old)) if new > old => {
            errors.invalid(FIELD, &json!(new), "must be less than or equal to previous value");
            false
        }
        (None, Some(_)) => {
            errors.invalid(FIELD, &Value::Null, "must not update from a positive integer to nil value");
            true
        }
        _ => true,
    }
}

/// The new spec with everything put back that may change. What differs then may not.
fn as_before(errors: &mut Errors, new: &Value, old: &Value) -> Value {
    let mut spec = new.clone();
    let Value::Object(fields) = &mut spec else { return spec };
    let mut put_back = |field: &str| match old.get(field) {
        Some(value) => _ = fields.insert(field.to_owned(), value.clone()),
        None => _ = fields.remove(field),
    };
    ["activeDeadlineSeconds", "schedulingGates", "tolerations"].into_iter().for_each(&mut put_back);
    let grace = |spec: &Value| spec.get("terminationGracePeriodSeconds").and_then(Value::as_i64);
    if grace(old).is_some_and(|seconds| seconds < 0) && grace(new) == Some(1) {
        put_back("terminationGracePeriodSeconds");
    }
    // Nobody has chosen a node yet for a pod behind a gate, so it may still become choosier.
    let gated = items(old.get("schedulingGates")).next().is_some();
    if gated && new.get("nodeSelector") != old.get("nodeSelector") {
        let wanted = |key: &str| new.get("nodeSelector").and_then(|selector| selector.get(key));
        if entries(old.get("nodeSelector")).any(|(key, value)| wanted(key) != Some(value)) {
            let why = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
            errors.invalid("spec.nodeSelector", new.get("nodeSelector").unwrap_or(&Value::Null), why);
        }
        put_back("nodeSelector");
    }
    for containers in ["containers", "initContainers"] {
        for (at, container) in items(old.get(containers)) {
            if let Some(image) = container.get("image") {
                fields[containers][at]["image"] = image.clone();
            }
        }
    }
    spec
}

/// The spec of a pod or of a template, in the order in which the original looks at it.
fn spec(errors: &mut Errors, spec: &Value, path: &str, is_pod: bool) {
    let volumes = check_volumes(errors, spec, path);
    check_containers(errors, spec, path, &volumes);
    if spec.get("hostNetwork") == Some(&Value::Bool(true)) {
        check_host_network(errors, spec, path, is_pod);
    }
    errors.one_of(spec, path, "restartPolicy", &["Always", "OnFailure", "Never"]);
    errors.one_of(spec, path, "dnsPolicy", &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"]);
    errors.labels(&below(path, "nodeSelector"), spec.get("nodeSelector"));
    check_pod_security(errors, spec, path);
    check_affinity(errors, spec.get("affinity").unwrap_or(&Value::Null), &below(path, "affinity"));
    check_dns(errors, spec, &below(path, "dnsConfig"));
    for (at, gate) in items(spec.get("readinessGates")) {
        let condition = text(gate, "conditionType");
        let field = format!("{path}.readinessGates[{at}].conditionType");
        errors.named(&field, condition, names::qualified(condition));
    }
    let mut gates = BTreeSet::new();
    for (at, gate) in items(spec.get("schedulingGates")) {
        let (name, field) = (text(gate, "name"), format!("{path}.schedulingGates[{at}]"));
        errors.named(&field, name, names::qualified(name));
        if !gates.insert(name) {
            errors.duplicate(&field, &json!(name));
        }
    }
    let spread = below(path, "topologySpreadConstraints");
    check_spread(errors, spec.get("topologySpreadConstraints"), &spread);
    check_names(errors, spec, path, &["serviceAccountName", "nodeName"], names::subdomain);
    if let Some(seconds) = spec.get("activeDeadlineSeconds")
        && !seconds.as_i64().is_some_and(|s| (1..=i64::from(i32::MAX)).contains(&s))
    {
        let why = "must be between 1 and 2147483647, inclusive";
        errors.invalid(&below(path, "activeDeadlineSeconds"), seconds, why);
    }
    check_names(errors, spec, path, &["hostname", "subdomain"], names::label);
    check_tolerations(errors, spec.get("tolerations"), &below(path, "tolerations"));
    for (at, alias) in items(spec.get("hostAliases")) {
        let path = format!("{path}.hostAliases[{at}]");
        if let Some(why) = names::legacy_ip(text(alias, "ip")) {
            errors.invalid(&below(&path, "ip"), &json!(text(alias, "ip")), why);
        }
        for (at, name) in items(alias.get("hostnames")) {
            let name = name.as_str().unwrap_or_default();
            errors.named(&format!("{path}.hostnames[{at}]"), name, names::subdomain(name));
        }
    }
    check_names(errors, spec, path, &["priorityClassName", "runtimeClassName"], names::subdomain);
    errors.one_of(spec, path, "preemptionPolicy", &["PreemptLowerPriority", "Never"]);
    if let Some(system) = spec.get("os") {
        match text(system, "name") {
            "" => errors.required(&format!("{path}.os.name"), ""),
            "linux" | "windows" => {}
            other => errors.unsupported(&below(path, "os"), &json!(other), &["linux", "windows"]),
        }
    }
}

fn check_names(errors: &mut Errors, spec: &Value, path: &str, fields: &[&str], rule: fn(&str) -> Vec<String>) {
    for field in fields {
        let name = text(spec, field);
        if !name.is_empty() {
            errors.named(&below(path, field), name, rule(name));
        }
    }
}

/// In the network of its node a port is what it is. A template may leave it to the pod to say so.
fn check_host_network(errors: &mut Errors, spec: &Value, path: &str, is_pod: bool) {
    for (at, container) in items(spec.get("containers")) {
        for (port_at, port) in items(container.get("ports")) {
            let number = |field: &str| port.get(field).and_then(Value::as_i64).unwrap_or_default();
            if (is_pod || number("hostPort") != 0) && number("hostPort") != number("containerPort") {
                let field = format!("{path}.containers[{at}].ports[{port_at}].hostPort");
                let why = "must match `containerPort` when `hostNetwork` is true";
                errors.invalid(&field, &json!(number("hostPort")), why);
            }
        }
    }
}

fn check_dns(errors: &mut Errors, spec: &Value, path: &str) {
    const MOST_SERVERS: usize = 3;
    let config = spec.get("dnsConfig");
    let servers: Vec<_> = config.into_iter().flat_map(|config| items(config.get("nameservers"))).collect();
    if text(spec, "dnsPolicy") == "None" {
        if config.is_none() {
            return errors.required(path, "must provide `dnsConfig` when `dnsPolicy` is None");
        }
        if servers.is_empty() {
            let why = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            return errors.required(&below(path, "nameservers"), why);
        }
    }
    let Some(config) = config else { return };
    if servers.len() > MOST_SERVERS {
        let why = format!("must not have more than {MOST_SERVERS} nameservers");
        errors.invalid(&below(path, "nameservers"), &config["nameservers"], &why);
    }
    for (at, server) in servers {
        let server = server.as_str().unwrap_or_default();
        if let Some(why) = names::legacy_ip(server) {
            errors.invalid(&format!("{path}.nameservers[{at}]"), &json!(server), why);
        }
    }
    for (at, option) in items(config.get("options")) {
        if text(option, "name").is_empty() {
            errors.required(&format!("{path}.options[{at}]"), "must not be empty");
        }
    }
}
