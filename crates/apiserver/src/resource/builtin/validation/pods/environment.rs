//! Environment variables of a container, and what of its pod they may tell.

use serde_json::{Value, json};

use super::super::{Errors, below, items, names, text};
use crate::resource::builtin::quantity;

/// What of a pod its own environment may tell.
const IN_VARIABLES: &[&str] = &[
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
/// Fields of a pod that anything may refer to at all.
const FIELDS: &[&str] = &[
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.host",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.phase",
    "status.podIP",
    "status.podIPs",
];
const RESOURCES: &[&str] = &[
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];
const SOURCES: [&str; 5] = ["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"];

pub(super) fn check_environment(errors: &mut Errors, container: &Value, path: &str) {
    for (at, variable) in items(container.get("env")) {
        let path = format!("{path}.env[{at}]");
        let name = text(variable, "name");
        if name.is_empty() {
            errors.required(&below(&path, "name"), "");
        } else if let Some(why) = names::environment(name) {
            errors.invalid(&below(&path, "name"), &json!(name), why);
        }
        if let Some(source) = variable.get("valueFrom") {
            check_value_from(errors, source, &below(&path, "valueFrom"), text(variable, "value"));
        }
    }
    check_environment_from(errors, container, &below(path, "envFrom"));
}

fn check_value_from(errors: &mut Errors, source: &Value, path: &str, value: &str) {
    let mut count = 0;
    for kind in SOURCES {
        let Some(reference) = source.get(kind) else { continue };
        count += 1;
        let path = below(path, kind);
        match kind {
            "fieldRef" => check_field(errors, reference, &path, IN_VARIABLES),
            "resourceFieldRef" => check_resource_field(errors, reference, &path, false),
            "configMapKeyRef" | "secretKeyRef" => {
                let (name, key) = (text(reference, "name"), text(reference, "key"));
                errors.named(&below(&path, "name"), name, names::subdomain(name));
                if key.is_empty() {
                    errors.required(&below(&path, "key"), "");
                } else {
                    errors.named(&below(&path, "key"), key, names::config_key(key));
                }
            }
            _ => {}
        }
    }
    let why = match count {
        0 => "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
        _ if !value.is_empty() => "may not be specified when `value` is not empty",
        1 => return,
        _ => "may not have more than one field specified at a time",
    };
    errors.invalid(path, &json!(""), why);
}

fn check_environment_from(errors: &mut Errors, container: &Value, path: &str) {
    for (at, from) in items(container.get("envFrom")) {
        let here = format!("{path}[{at}]");
        let prefix = text(from, "prefix");
        if let Some(why) = names::environment(prefix).filter(|_| !prefix.is_empty()) {
            errors.invalid(&below(&here, "prefix"), &json!(prefix), why);
        }
        let mut count = 0;
        for kind in ["configMapRef", "secretRef"] {
            let Some(reference) = from.get(kind) else { continue };
            count += 1;
            let (name, field) = (text(reference, "name"), format!("{here}.{kind}.name"));
            if name.is_empty() {
                errors.required(&field, "");
            } else {
                errors.named(&field, name, names::subdomain(name));
            }
        }
        // The original tells of these at the list, not at its item.
        match count {
            0 => errors.invalid(path, &json!(""), "must specify one of: `configMapRef` or `secretRef`"),
            1 => {}
            _ => errors.invalid(path, &json!(""), "may not have more than one field specified at a time"),
        }
    }
}

/// A reference to a field of the pod.
pub(super) fn check_field(errors: &mut Errors, reference: &Value, path: &str, supported: &[&str]) {
    let (version, field) = (text(reference, "apiVersion"), text(reference, "fieldPath"));
    let at = below(path, "fieldPath");
    if version.is_empty() {
        return errors.required(&below(path, "apiVersion"), "");
    }
    if field.is_empty() {
        return errors.required(&at, "");
    }
    let subscripted =
        field.strip_suffix("']").and_then(|field| field.split_once("['")).filter(|(of, _)| !of.is_empty());
    let unknown = match subscripted {
        _ if version != "v1" => Some(format!("unsupported pod version: {version}")),
        Some((of, _)) if !matches!(of, "metadata.annotations" | "metadata.labels") => {
            Some(format!("field label does not support subscript: {field}"))
        }
        None if !FIELDS.contains(&field) => Some(format!("field label not supported: {field}")),
        _ => None,
    };
    if let Some(why) = unknown {
        return errors.invalid(&at, &json!(field), &format!("error converting fieldPath: {why}"));
    }
    match subscripted {
        Some((of, key)) => {
            let key = if of == "metadata.annotations" { key.to_lowercase() } else { key.to_owned() };
            errors.named(path, &key, names::qualified(&key));
        }
        None => {
            let field = if field == "spec.host" { "spec.nodeName" } else { field };
            if !supported.contains(&field) {
                errors.unsupported(&at, &json!(field), supported);
            }
        }
    }
}

/// A reference to what a container asks for or is limited to; from a file it names the container.
pub(super) fn check_resource_field(errors: &mut Errors, reference: &Value, path: &str, from_file: bool) {
    let resource = text(reference, "resource");
    let huge = ["limits.hugepages-", "requests.hugepages-"].iter().any(|prefix| resource.starts_with(prefix));
    if from_file && text(reference, "containerName").is_empty() {
        errors.required(&below(path, "containerName"), "");
    } else if resource.is_empty() {
        errors.required(&below(path, "resource"), "");
    } else if !RESOURCES.contains(&resource) && !huge {
        errors.unsupported(&below(path, "resource"), &json!(resource), RESOURCES);
    }
    check_divisor(errors, resource, huge, reference.get("divisor"), &below(path, "divisor"));
}

fn check_divisor(errors: &mut Errors, resource: &str, huge: bool, divisor: Option<&Value>, path: &str) {
    const OF_SIZES: &[&str] = &["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];
    let Some(divisor) = divisor.and_then(quantity::canonical).filter(|divisor| divisor != "0") else { return };
    let (values, what): (&[&str], _) = match resource.split_once('.').map(|(_, name)| name) {
        Some("cpu") => (&["1m", "1"], "cpu"),
        Some("memory") => (OF_SIZES, "memory"),
        Some("ephemeral-storage") => (OF_SIZES, "local ephemeral storage"),
        _ if huge => (OF_SIZES, "hugepages"),
        _ => return,
    };
    if !values.contains(&divisor.as_str()) {
        let values = if what == "cpu" { "1m and 1".to_owned() } else { values.join(", ") };
        let why = format!("only divisor's values {values} are supported with the {what} resource");
        errors.invalid(path, &json!(resource), &why);
    }
}
