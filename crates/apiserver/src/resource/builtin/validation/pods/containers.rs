//! Containers: names, images, ports, resources.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::super::{Errors, NOT_NEGATIVE, PORT_RANGE, below, entries, items, names, text};
use super::environment::check_environment;
use super::handlers::check_handlers;
use super::security::check_security;
use super::volumes::{check_devices, check_mounts};
use crate::resource::builtin::quantity;

const FOR_SIDECARS_ONLY: &str = "may not be set for init containers without restartPolicy=Always";
const RESTARTS: &[&str] = &["Always", "Never", "OnFailure"];

/// All containers of a pod or of a template.
pub(super) fn check_containers(errors: &mut Errors, spec: &Value, path: &str, volumes: &BTreeMap<&str, &Value>) {
    let grace = spec.get("terminationGracePeriodSeconds").and_then(Value::as_i64).unwrap_or_default();
    if items(spec.get("containers")).next().is_none() {
        errors.required(&below(path, "containers"), "");
    }
    let mut seen = BTreeSet::new();
    let mut host_ports = BTreeSet::new();
    for (at, container) in items(spec.get("containers")) {
        let path = format!("{path}.containers[{at}]");
        check_container(errors, container, &path, volumes, spec);
        check_unique(errors, &mut seen, container, &path);
        check_handlers(errors, container, &path, grace);
        errors.one_of(container, &path, "restartPolicy", RESTARTS);
    }
    for (at, container) in items(spec.get("containers")) {
        check_host_ports(errors, &mut host_ports, container, &format!("{path}.containers[{at}]"));
    }
    for (at, container) in items(spec.get("initContainers")) {
        let here = format!("{path}.initContainers[{at}]");
        check_container(errors, container, &here, volumes, spec);
        errors.one_of(container, &here, "restartPolicy", RESTARTS);
        check_unique(errors, &mut seen, container, &here);
        // They run one after the other; the original tells of them as if each were the first.
        check_host_ports(errors, &mut BTreeSet::new(), container, &format!("{path}.initContainers[0]"));
        if text(container, "restartPolicy") == "Always" {
            check_handlers(errors, container, &here, grace);
            continue;
        }
        for field in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
            if container.get(field).is_some() {
                errors.forbidden(&below(&here, field), FOR_SIDECARS_ONLY);
            }
        }
    }
}

/// What holds for the images of a pod, and not for those of a template.
pub(super) fn check_images(errors: &mut Errors, spec: &Value, path: &str) {
    for containers in ["containers", "initContainers"] {
        for (at, container) in items(spec.get(containers)) {
            let image = text(container, "image");
            if image.trim() != image {
                let why = "must not have leading or trailing whitespace";
                errors.invalid(&format!("{path}.{containers}[{at}].image"), &json!(image), why);
            }
        }
    }
}

fn check_unique<'a>(errors: &mut Errors, seen: &mut BTreeSet<&'a str>, container: &'a Value, path: &str) {
    let name = text(container, "name");
    if !name.is_empty() && !seen.insert(name) {
        errors.duplicate(&below(path, "name"), &json!(name));
    }
}

fn check_container(errors: &mut Errors, container: &Value, path: &str, volumes: &BTreeMap<&str, &Value>, spec: &Value) {
    let name = text(container, "name");
    if name.is_empty() {
        errors.required(&below(path, "name"), "");
    } else {
        errors.named(&below(path, "name"), name, names::label(name));
    }
    if text(container, "image").is_empty() {
        errors.required(&below(path, "image"), "");
    }
    errors.one_of(container, path, "terminationMessagePolicy", &["File", "FallbackToLogsOnError"]);
    check_ports(errors, container, path);
    check_environment(errors, container, path);
    check_mounts(errors, container, path, volumes);
    check_devices(errors, container, path, volumes);
    errors.one_of(container, path, "imagePullPolicy", &["Always", "IfNotPresent", "Never"]);
    check_resources(errors, container.get("resources").unwrap_or(&Value::Null), &below(path, "resources"));
    check_resize(errors, container, &below(path, "resizePolicy"), text(spec, "restartPolicy"));
    if let Some(context) = container.get("securityContext") {
        check_security(errors, context, &below(path, "securityContext"));
    }
}

fn check_ports(errors: &mut Errors, container: &Value, path: &str) {
    let mut seen = BTreeSet::new();
    for (at, port) in items(container.get("ports")) {
        let path = format!("{path}.ports[{at}]");
        let name = text(port, "name");
        if !name.is_empty() {
            let reasons = names::port(name);
            if reasons.is_empty() && !seen.insert(name) {
                errors.duplicate(&below(&path, "name"), &json!(name));
            }
            errors.named(&below(&path, "name"), name, reasons);
        }
        let number = |field: &str| port.get(field).and_then(Value::as_i64).unwrap_or_default();
        if number("containerPort") == 0 {
            errors.required(&below(&path, "containerPort"), "");
        }
        for field in ["containerPort", "hostPort"] {
            if !(0..=65_535).contains(&number(field)) {
                errors.invalid(&below(&path, field), &json!(number(field)), PORT_RANGE);
            }
        }
        errors.one_of(port, &path, "protocol", &["SCTP", "TCP", "UDP"]);
    }
}

/// No two ports of a pod are one port of its node.
fn check_host_ports(errors: &mut Errors, taken: &mut BTreeSet<String>, container: &Value, path: &str) {
    for (at, port) in items(container.get("ports")) {
        let number = port.get("hostPort").and_then(Value::as_i64).unwrap_or_default();
        let place = format!("{}/{}/{number}", text(port, "protocol"), text(port, "hostIP"));
        if number != 0 && !taken.insert(place.clone()) {
            errors.duplicate(&format!("{path}.ports[{at}].hostPort"), &json!(place));
        }
    }
}

fn check_resize(errors: &mut Errors, container: &Value, path: &str, restarts: &str) {
    let mut seen = BTreeSet::new();
    for (at, rule) in items(container.get("resizePolicy")) {
        let (resource, policy) = (text(rule, "resourceName"), text(rule, "restartPolicy"));
        if !seen.insert(resource) {
            errors.duplicate(&format!("{path}[{at}]"), &json!(resource));
        }
        // The original tells of these at the list, not at its item.
        for (value, supported) in [(resource, ["cpu", "memory"]), (policy, ["NotRequired", "RestartContainer"])] {
            match value {
                "" => errors.required(path, ""),
                value if supported.contains(&value) => {}
                value => errors.unsupported(path, &json!(value), &supported),
            }
        }
        if restarts == "Never" && policy != "NotRequired" {
            errors.invalid(path, &json!(policy), "must be 'NotRequired' when `restartPolicy` is 'Never'");
        }
    }
}

pub(super) fn check_resources(errors: &mut Errors, resources: &Value, path: &str) {
    for kind in ["limits", "requests"] {
        for (name, amount) in entries(resources.get(kind)) {
            let field = format!("{path}.{kind}[{name}]");
            check_resource_name(errors, name, &field);
            if nanos(amount) < 0 {
                errors.invalid(&field, amount, NOT_NEGATIVE);
            }
            if is_extended(name) && nanos(amount) % 1_000_000_000 != 0 {
                errors.invalid(&field, amount, "must be an integer");
            }
        }
    }
    for (name, request) in entries(resources.get("requests")) {
        let Some(limit) = resources.get("limits").and_then(|limits| limits.get(name)) else {
            if !may_overcommit(name) {
                errors.required(&below(path, "limits"), "Limit must be set for non overcommitable resources");
            }
            continue;
        };
        let relation = match nanos(request).cmp(&nanos(limit)) {
            std::cmp::Ordering::Equal => continue,
            _ if !may_overcommit(name) => "equal to",
            std::cmp::Ordering::Greater => "less than or equal to",
            std::cmp::Ordering::Less => continue,
        };
        let why = format!("must be {relation} {name} limit of {}", limit.as_str().unwrap_or_default());
        errors.invalid(&below(path, "requests"), request, &why);
    }
    let named = |wanted: fn(&str) -> bool| {
        let kinds = ["limits", "requests"].into_iter();
        kinds.flat_map(|kind| entries(resources.get(kind))).any(|(name, _)| wanted(name))
    };
    if named(is_huge_page) && !named(|name| matches!(name, "cpu" | "memory")) {
        errors.forbidden(path, "HugePages require cpu or memory");
    }
}

fn check_resource_name(errors: &mut Errors, name: &str, field: &str) {
    const STANDARD: &[&str] = &["cpu", "memory", "ephemeral-storage"];
    let wrong = names::qualified(name);
    let is_sound = wrong.is_empty();
    errors.named(field, name, wrong);
    if name.contains('/') {
        if !is_native(name) && !is_extended(name) {
            errors.invalid(field, &json!(name), "doesn't follow extended resource name standard");
        }
    } else if !STANDARD.contains(&name) && !is_huge_page(name) {
        if is_sound && !matches!(name, "storage" | "pods" | "services" | "secrets" | "configmaps") {
            errors.invalid(field, &json!(name), "must be a standard resource type or fully qualified");
        }
        errors.invalid(field, &json!(name), "must be a standard resource for containers");
    }
}

fn is_huge_page(name: &str) -> bool {
    name.starts_with("hugepages-")
}

/// A resource of Kubernetes itself.
fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// A resource of somebody else's, such as a graphics card: whole ones only, and none shared.
fn is_extended(name: &str) -> bool {
    !is_native(name) && !name.starts_with("requests.") && names::qualified(&format!("requests.{name}")).is_empty()
}

fn may_overcommit(name: &str) -> bool {
    is_native(name) && !is_huge_page(name)
}

fn nanos(amount: &Value) -> i128 {
    amount.as_str().and_then(|text| quantity::parse(text).ok()).unwrap_or_default()
}
