//! Pods, and the pod templates of workloads.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Errors, NOT_NEGATIVE, PORT_RANGE, below, entries, items, names, text};
use crate::resource::builtin::{quantity, wire};

const CHANGEABLE: &str = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

pub(super) fn pod(errors: &mut Errors, pod: &Value, old: Option<&Value>) {
    let empty = Value::Null;
    let new_spec = pod.get("spec").unwrap_or(&empty);
    spec(errors, new_spec, "spec");
    if let Some(old_spec) = old.and_then(|old| old.get("spec")) {
        update(errors, new_spec, old_spec);
    }
}

/// A pod is made once; only a few things about it can be changed.
fn update(errors: &mut Errors, new: &Value, old: &Value) {
    for containers in ["containers", "initContainers"] {
        if items(new.get(containers)).count() != items(old.get(containers)).count() {
            errors.forbidden(&format!("spec.{containers}"), "pod updates may not add or remove containers");
            return;
        }
    }
    let mut expected = old.clone();
    for containers in ["containers", "initContainers"] {
        for (at, container) in items(new.get(containers)) {
            match container.get("image") {
                Some(image) => expected[containers][at]["image"] = image.clone(),
                None => drop(expected[containers][at].as_object_mut().and_then(|map| map.remove("image"))),
            }
        }
    }
    let mut allow = |field: &str| {
        if let Some(value) = new.get(field) {
            expected[field] = value.clone();
        }
    };
    allow("activeDeadlineSeconds");
    let kept = items(old.get("tolerations")).all(|(_, old)| items(new.get("tolerations")).any(|(_, t)| t == old));
    if kept {
        allow("tolerations");
    }
    let was_negative = old.get("terminationGracePeriodSeconds").and_then(Value::as_i64).is_some_and(|s| s < 0);
    if was_negative && new.get("terminationGracePeriodSeconds") == Some(&json!(1)) {
        allow("terminationGracePeriodSeconds");
    }
    let is_old = |gate: &Value| items(old.get("schedulingGates")).any(|(_, old)| old == gate);
    if items(new.get("schedulingGates")).all(|(_, gate)| is_old(gate)) {
        match new.get("schedulingGates") {
            Some(left) => expected["schedulingGates"] = left.clone(),
            None => drop(expected.as_object_mut().and_then(|spec| spec.remove("schedulingGates"))),
        }
    }
    if *new != expected {
        errors.forbidden("spec", CHANGEABLE);
    }
}

/// The spec of a pod or of a template, in the order in which the original looks at it.
pub(super) fn spec(errors: &mut Errors, spec: &Value, path: &str) {
    let volumes = check_volumes(errors, spec, path);
    if items(spec.get("containers")).next().is_none() {
        errors.required(&below(path, "containers"), "");
    }
    let mut seen = BTreeSet::new();
    for containers in ["containers", "initContainers"] {
        for (at, container) in items(spec.get(containers)) {
            let path = format!("{path}.{containers}[{at}]");
            check_container(errors, container, &path, &volumes);
            let name = text(container, "name");
            if !name.is_empty() && !seen.insert(name) {
                errors.duplicate(&below(&path, "name"), &json!(name));
            }
        }
    }
    errors.one_of(spec, path, "restartPolicy", &["Always", "OnFailure", "Never"]);
    errors.one_of(spec, path, "dnsPolicy", &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"]);
    for (key, value) in entries(spec.get("nodeSelector")) {
        let value = value.as_str().unwrap_or_default();
        for (text, reasons) in [(key.as_str(), names::qualified(key)), (value, names::label_value(value))] {
            for why in reasons {
                errors.invalid(&below(path, "nodeSelector"), &json!(text), &why);
            }
        }
    }
    for field in ["serviceAccountName", "nodeName"] {
        let name = text(spec, field);
        if !name.is_empty() {
            for why in names::subdomain(name) {
                errors.invalid(&below(path, field), &json!(name), &why);
            }
        }
    }
    if let Some(seconds) = spec.get("activeDeadlineSeconds")
        && !seconds.as_i64().is_some_and(|s| (1..=i64::from(i32::MAX)).contains(&s))
    {
        let why = "must be between 1 and 2147483647, inclusive";
        errors.invalid(&below(path, "activeDeadlineSeconds"), seconds, why);
    }
    for (at, toleration) in items(spec.get("tolerations")) {
        check_toleration(errors, toleration, &format!("{path}.tolerations[{at}]"));
    }
    for (at, alias) in items(spec.get("hostAliases")) {
        if let Some(why) = names::ip(text(alias, "ip")) {
            errors.invalid(&format!("{path}.hostAliases[{at}].ip"), &json!(text(alias, "ip")), why);
        }
    }
}

fn check_toleration(errors: &mut Errors, toleration: &Value, path: &str) {
    let (key, operator) = (text(toleration, "key"), text(toleration, "operator"));
    let field = below(path, "operator");
    if key.is_empty() && operator != "Exists" {
        let why = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
        errors.invalid(&field, &json!(operator), why);
    }
    if operator == "Exists" && !text(toleration, "value").is_empty() {
        errors.invalid(&field, &json!(text(toleration, "value")), "value must be empty when `operator` is 'Exists'");
    }
    errors.one_of(toleration, path, "operator", &["Equal", "Exists"]);
    errors.one_of(toleration, path, "effect", &["NoSchedule", "PreferNoSchedule", "NoExecute"]);
}

/// The names of the volumes, for the mounts to refer to.
fn check_volumes<'a>(errors: &mut Errors, spec: &'a Value, path: &str) -> BTreeSet<&'a str> {
    /// Fields that name what a volume shows.
    const NAMES: &[(&str, &str)] = &[
        ("configMap", "name"),
        ("secret", "secretName"),
        ("persistentVolumeClaim", "claimName"),
        ("hostPath", "path"),
    ];
    let mut seen = BTreeSet::new();
    for (at, volume) in items(spec.get("volumes")) {
        let path = format!("{path}.volumes[{at}]");
        let mut sources = source_fields().filter(|field| volume.get(field).is_some());
        let _first = sources.next();
        for source in sources {
            errors.forbidden(&below(&path, source), "may not specify more than 1 volume type");
        }
        for (source, field) in NAMES {
            if volume.get(source).is_some_and(|source| text(source, field).is_empty()) {
                errors.required(&format!("{path}.{source}.{field}"), "");
            }
        }
        let (name, field) = (text(volume, "name"), below(&path, "name"));
        if name.is_empty() {
            errors.required(&field, "");
            continue;
        }
        for why in names::label(name) {
            errors.invalid(&field, &json!(name), &why);
        }
        if !seen.insert(name) {
            errors.duplicate(&field, &json!(name));
        }
    }
    seen
}

/// The kinds of volume there are, one field each.
fn source_fields() -> impl Iterator<Item = &'static str> {
    // The original looks at the directory on the node last, or so its messages say.
    let message = wire::find("core.v1.VolumeSource");
    let fields = message.into_iter().flat_map(|m| m.fields.iter().map(|field| field.name));
    ["emptyDir", "hostPath"].into_iter().chain(fields.filter(|field| !matches!(*field, "emptyDir" | "hostPath")))
}

fn check_container(errors: &mut Errors, container: &Value, path: &str, volumes: &BTreeSet<&str>) {
    let name = text(container, "name");
    if name.is_empty() {
        errors.required(&below(path, "name"), "");
    } else {
        for why in names::label(name) {
            errors.invalid(&below(path, "name"), &json!(name), &why);
        }
    }
    let image = text(container, "image");
    if image.is_empty() {
        errors.required(&below(path, "image"), "");
    } else if image.trim() != image {
        errors.invalid(&below(path, "image"), &json!(image), "must not have leading or trailing whitespace");
    }
    check_ports(errors, container, path);
    check_environment(errors, container, path);
    check_mounts(errors, container, path, volumes);
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(value) = container.get(probe) {
            check_probe(errors, value, &below(path, probe), probe != "readinessProbe");
        }
    }
    errors.one_of(container, path, "imagePullPolicy", &["Always", "IfNotPresent", "Never"]);
    check_resources(errors, container.get("resources").unwrap_or(&Value::Null), &below(path, "resources"));
}

fn check_ports(errors: &mut Errors, container: &Value, path: &str) {
    let mut seen = BTreeSet::new();
    for (at, port) in items(container.get("ports")) {
        let path = format!("{path}.ports[{at}]");
        let name = text(port, "name");
        if !name.is_empty() {
            let reasons = names::port(name);
            if let Some(why) = reasons.first() {
                errors.invalid(&below(&path, "name"), &json!(name), why);
            } else if !seen.insert(name) {
                errors.duplicate(&below(&path, "name"), &json!(name));
            }
        }
        match port.get("containerPort").and_then(Value::as_i64).unwrap_or_default() {
            0 => errors.required(&below(&path, "containerPort"), ""),
            1..=65_535 => {}
            number => errors.invalid(&below(&path, "containerPort"), &json!(number), PORT_RANGE),
        }
        errors.one_of(port, &path, "protocol", &["SCTP", "TCP", "UDP"]);
    }
}

fn check_environment(errors: &mut Errors, container: &Value, path: &str) {
    for (at, variable) in items(container.get("env")) {
        let path = format!("{path}.env[{at}]");
        let name = text(variable, "name");
        if name.is_empty() {
            errors.required(&below(&path, "name"), "");
        } else if let Some(why) = names::environment(name) {
            errors.invalid(&below(&path, "name"), &json!(name), why);
        }
        let Some(source) = variable.get("valueFrom") else { continue };
        let why = match entries(Some(source)).count() {
            0 => {
                "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
            }
            _ if !text(variable, "value").is_empty() => "may not be specified when `value` is not empty",
            1 => continue,
            _ => "may not have more than one field specified at a time",
        };
        errors.invalid(&below(&path, "valueFrom"), &json!(""), why);
    }
}

fn check_mounts(errors: &mut Errors, container: &Value, path: &str, volumes: &BTreeSet<&str>) {
    let mut seen = BTreeSet::new();
    for (at, mount) in items(container.get("volumeMounts")) {
        let path = format!("{path}.volumeMounts[{at}]");
        let (name, place) = (text(mount, "name"), text(mount, "mountPath"));
        if name.is_empty() {
            errors.required(&below(&path, "name"), "");
        }
        if !volumes.contains(name) {
            errors.not_found(&below(&path, "name"), &json!(name));
        }
        if place.is_empty() {
            errors.required(&below(&path, "mountPath"), "");
        } else if !seen.insert(place) {
            errors.invalid(&below(&path, "mountPath"), &json!(place), "must be unique");
        }
    }
}

/// `once`: one success must be enough, because the probe decides about life and death.
fn check_probe(errors: &mut Errors, probe: &Value, path: &str, once: bool) {
    let mut handlers = ["exec", "httpGet", "tcpSocket", "grpc"].into_iter().filter(|h| probe.get(h).is_some());
    match handlers.next() {
        None => errors.required(path, "must specify a handler type"),
        Some(first) => check_handler(errors, &probe[first], &below(path, first), first),
    }
    for other in handlers {
        errors.forbidden(&below(path, other), "may not specify more than 1 handler type");
    }
    for field in ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"] {
        errors.not_negative(probe, path, field);
    }
    if once && let Some(count) = probe.get("successThreshold").filter(|count| **count != json!(1)) {
        errors.invalid(&below(path, "successThreshold"), count, "must be 1");
    }
}

fn check_handler(errors: &mut Errors, handler: &Value, path: &str, kind: &str) {
    if kind == "exec" {
        if items(handler.get("command")).next().is_none() {
            errors.required(&below(path, "command"), "");
        }
        return;
    }
    match handler.get("port") {
        Some(Value::String(name)) => {
            for why in names::port(name) {
                errors.invalid(&below(path, "port"), &json!(name), &why);
            }
        }
        port => {
            let number = port.and_then(Value::as_i64).unwrap_or_default();
            if !(1..=65_535).contains(&number) {
                errors.invalid(&below(path, "port"), &json!(number), PORT_RANGE);
            }
        }
    }
}

fn check_resources(errors: &mut Errors, resources: &Value, path: &str) {
    const STANDARD: &[&str] = &["cpu", "memory", "ephemeral-storage"];
    let nanos = |amount: &Value| amount.as_str().and_then(|text| quantity::parse(text).ok()).unwrap_or_default();
    for kind in ["limits", "requests"] {
        for (name, amount) in entries(resources.get(kind)) {
            let field = format!("{path}.{kind}[{name}]");
            let known = STANDARD.contains(&name.as_str()) || name.starts_with("hugepages-");
            if !known && !name.contains('/') {
                errors.invalid(&field, &json!(name), "must be a standard resource type or fully qualified");
                errors.invalid(&field, &json!(name), "must be a standard resource for containers");
            }
            if nanos(amount) < 0 {
                errors.invalid(&field, amount, NOT_NEGATIVE);
            }
        }
    }
    for (name, request) in entries(resources.get("requests")) {
        if let Some(limit) = resources.get("limits").and_then(|limits| limits.get(name))
            && nanos(request) > nanos(limit)
        {
            let why = format!("must be less than or equal to {name} limit of {}", limit.as_str().unwrap_or_default());
            errors.invalid(&below(path, "requests"), request, &why);
        }
    }
}
