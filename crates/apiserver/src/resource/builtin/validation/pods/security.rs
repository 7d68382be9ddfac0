//! Security contexts: of a container, and of a whole pod.

use serde_json::{Value, json};

use super::super::{Errors, below, items, text};
use super::volumes::descending;

const IDS: &str = "must be between 0 and 2147483647, inclusive";

fn check_id(errors: &mut Errors, id: Option<&Value>, field: &str) {
    if let Some(id) = id.filter(|id| !id.as_i64().is_some_and(|id| (0..=i64::from(i32::MAX)).contains(&id))) {
        errors.invalid(field, id, IDS);
    }
}

/// What a container and a pod have in common.
fn check_common(errors: &mut Errors, context: &Value, path: &str) {
    for field in ["runAsUser", "runAsGroup"] {
        check_id(errors, context.get(field), &below(path, field));
    }
    let Some(profile) = context.get("seccompProfile") else { return };
    let path = below(path, "seccompProfile");
    let local = profile.get("localhostProfile");
    match text(profile, "type") {
        "" => errors.required(&below(&path, "type"), "type is required when seccompProfile is set"),
        _ => errors.one_of(profile, &path, "type", &["Localhost", "RuntimeDefault", "Unconfined"]),
    }
    let field = below(&path, "localhostProfile");
    match (text(profile, "type"), local) {
        ("Localhost", None) => errors.required(&field, "must be set when seccomp type is Localhost"),
        ("Localhost", Some(file)) => descending(errors, file.as_str().unwrap_or_default(), &field),
        (_, Some(_)) => errors.invalid(&field, profile, "can only be set when seccomp type is Localhost"),
        (_, None) => {}
    }
}

/// Of a container.
pub(super) fn check_security(errors: &mut Errors, context: &Value, path: &str) {
    errors.one_of(context, path, "procMount", &["Default", "Unmasked"]);
    check_common(errors, context, path);
    if context.get("allowPrivilegeEscalation") != Some(&Value::Bool(false)) {
        return;
    }
    let cannot = |what: &str| format!("cannot set `allowPrivilegeEscalation` to false and {what}");
    if context.get("privileged") == Some(&Value::Bool(true)) {
        errors.invalid(path, context, &cannot("`privileged` to true"));
    }
    let added = context.get("capabilities").and_then(|capabilities| capabilities.get("add"));
    for _ in items(added).filter(|(_, name)| *name == "CAP_SYS_ADMIN") {
        errors.invalid(path, context, &cannot("`capabilities.Add` CAP_SYS_ADMIN"));
    }
}

/// Of a pod.
pub(super) fn check_pod_security(errors: &mut Errors, spec: &Value, path: &str) {
    let Some(context) = spec.get("securityContext") else { return };
    let path = below(path, "securityContext");
    check_id(errors, context.get("fsGroup"), &below(&path, "fsGroup"));
    for (at, group) in items(context.get("supplementalGroups")) {
        check_id(errors, Some(group), &format!("{path}.supplementalGroups[{at}]"));
    }
    if spec.get("shareProcessNamespace") == Some(&json!(true)) && spec.get("hostPID") == Some(&json!(true)) {
        let why = "ShareProcessNamespace and HostPID cannot both be enabled";
        errors.invalid(&below(&path, "shareProcessNamespace"), &json!(true), why);
    }
    errors.one_of(context, &path, "fsGroupChangePolicy", &["Always", "OnRootMismatch"]);
    check_common(errors, context, &path);
}
