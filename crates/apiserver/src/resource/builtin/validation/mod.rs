//! What an object of a built-in kind must satisfy beyond its structure: the rules that people run into.
//!
//! Checked after defaults. The words are the original's, because people search for them; where the original adds a
//! diff of its internal structures to a message, that diff is left out.

mod access;
mod config;
mod names;
mod pods;
mod services;
mod storage;
mod workloads;

use serde_json::{Value, json};

pub(crate) use self::services::listed_addresses;
use crate::object::Object;
use crate::refusal::{Fault, FieldError};
use crate::resource::{Origin, Resource};

const IMMUTABLE: &str = "field is immutable";
const NOT_NEGATIVE: &str = "must be greater than or equal to 0";
const PORT_RANGE: &str = "must be between 1 and 65535, inclusive";

/// Says what is wrong with an object; `old` is the stored state on an update. Custom resources have no such rules.
pub fn validate(resource: &Resource, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Errors::default();
    if resource.origin == Origin::Custom {
        return errors.0;
    }
    match resource.kind.as_str() {
        "Pod" => pods::pod(&mut errors, object, old),
        "Service" => services::service(&mut errors, object, old),
        "EndpointSlice" => services::endpoint_slice(&mut errors, object, old),
        "ConfigMap" => config::config_map(&mut errors, object, old),
        "Secret" => config::secret(&mut errors, object, old),
        "Deployment" => workloads::deployment(&mut errors, object, old),
        "ReplicaSet" => workloads::replica_set(&mut errors, object, old),
        "PodDisruptionBudget" => workloads::disruption_budget(&mut errors, object),
        "PersistentVolumeClaim" => storage::claim(&mut errors, object, old),
        "PersistentVolume" => storage::volume(&mut errors, object, old),
        "StorageClass" => storage::class(&mut errors, object, old),
        "Role" | "ClusterRole" => access::role(&mut errors, object, resource.namespaced),
        "RoleBinding" | "ClusterRoleBinding" => access::binding(&mut errors, object, old, resource.namespaced),
        "SelfSubjectAccessReview" => access::review(&mut errors, object),
        "NetworkPolicy" => access::network_policy(&mut errors, object),
        "Lease" => lease(&mut errors, object),
        "Event" => event(&mut errors, object, &resource.group),
        "Node" => node(&mut errors, object),
        _ => {}
    }
    errors.0
}

fn lease(errors: &mut Errors, lease: &Value) {
    let spec = lease.get("spec").unwrap_or(&Value::Null);
    if let Some(seconds) = spec.get("leaseDurationSeconds").filter(|s| s.as_i64().is_some_and(|s| s <= 0)) {
        errors.invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0");
    }
    errors.not_negative(spec, "spec", "leaseTransitions");
}

fn node(errors: &mut Errors, node: &Value) {
    const EFFECTS: &[&str] = &["NoSchedule", "PreferNoSchedule", "NoExecute"];
    for (at, taint) in items(node.at(&["spec", "taints"])) {
        let path = format!("metadata.taints[{at}]");
        errors.one_of(taint, &path, "effect", EFFECTS);
    }
}

/// Events through the core group may be of the old style, without `eventTime`; those must only be in the right place.
fn event(errors: &mut Errors, event: &Value, group: &str) {
    const LONGEST: usize = 128;
    let core = group.is_empty();
    let (object, reporter) =
        if core { ("involvedObject", "reportingComponent") } else { ("regarding", "reportingController") };
    let about = event.at(&[object, "namespace"]).and_then(Value::as_str).unwrap_or_default();
    let namespace = event.namespace();
    let old_style = event.get("eventTime").is_none_or(Value::is_null);
    let misplaced = match (old_style, about) {
        (true, "") => !matches!(namespace, "" | "default"),
        (true, about) => about != namespace,
        (false, "") => !matches!(namespace, "default" | "kube-system"),
        (false, _) => false,
    };
    if misplaced {
        errors.invalid("involvedObject.namespace", &json!(about), "does not match event.namespace");
    }
    if old_style && core {
        return;
    }
    let ty = text(event, "type");
    if old_style {
        errors.required("eventTime", "");
        if !matches!(ty, "Normal" | "Warning") {
            errors.invalid("type", &json!(""), &format!("has invalid value: {ty}"));
        }
        return;
    }
    let controller = text(event, reporter);
    if controller.is_empty() {
        errors.required(reporter, "");
    }
    for why in names::qualified(controller) {
        errors.invalid(reporter, &json!(controller), &why);
    }
    if let Some(series) = event.get("series").filter(|_| !core) {
        if series.get("count").and_then(Value::as_i64).unwrap_or(0) < 2 {
            errors.invalid("series.count", &json!(""), "should be at least 2");
        }
        if series.get("lastObservedTime").is_none_or(Value::is_null) {
            errors.required("series.lastObservedTime", "");
        }
    }
    for field in ["reportingInstance", "action", "reason"] {
        match text(event, field).len() {
            0 => errors.required(field, ""),
            length if length > LONGEST => errors.invalid(field, &json!(""), "can have at most 128 characters"),
            _ => {}
        }
    }
    if text(event, if core { "message" } else { "note" }).len() > 1024 {
        errors.invalid("message", &json!(""), "can have at most 1024 characters");
    }
    let ty = text(event, "type");
    if !core && !matches!(ty, "Normal" | "Warning") {
        errors.invalid("type", &json!(""), &format!("has invalid value: {ty}"));
    }
}

/// The errors found so far, with a short way to say each kind of them.
#[derive(Default)]
struct Errors(Vec<FieldError>);

impl Errors {
    fn add(&mut self, field: &str, fault: Fault, detail: &str) {
        self.0.push(FieldError::new(field, fault, detail));
    }

    fn required(&mut self, field: &str, detail: &str) {
        self.add(field, Fault::Required, detail);
    }

    fn forbidden(&mut self, field: &str, detail: &str) {
        self.add(field, Fault::Forbidden, detail);
    }

    fn invalid(&mut self, field: &str, value: &Value, detail: &str) {
        self.0.push(FieldError::with_value(field, Fault::Invalid, value, detail));
    }

    fn duplicate(&mut self, field: &str, value: &Value) {
        self.0.push(FieldError::with_value(field, Fault::Duplicate, value, ""));
    }

    fn not_found(&mut self, field: &str, value: &Value) {
        self.0.push(FieldError::with_value(field, Fault::NotFound, value, ""));
    }

    fn unsupported(&mut self, field: &str, value: &Value, supported: &[&str]) {
        let listed: Vec<String> = supported.iter().map(|s| format!("{s:?}")).collect();
        let detail = format!("supported values: {}", listed.join(", "));
        self.0.push(FieldError::with_value(field, Fault::NotSupported, value, detail));
    }

    /// A text field, if it is there and not empty, has one of these values.
    fn one_of(&mut self, parent: &Value, path: &str, field: &str, supported: &[&str]) {
        let value = text(parent, field);
        if !value.is_empty() && !supported.contains(&value) {
            self.unsupported(&below(path, field), &json!(value), supported);
        }
    }

    /// A number, if it is there, is not negative.
    fn not_negative(&mut self, parent: &Value, path: &str, field: &str) {
        if let Some(value) = parent.get(field).filter(|v| v.as_i64().is_some_and(|n| n < 0)) {
            self.invalid(&below(path, field), value, NOT_NEGATIVE);
        }
    }

    /// A text that is no such name, and why not.
    fn named(&mut self, field: &str, name: &str, why: Vec<String>) {
        for why in why {
            self.invalid(field, &json!(name), &why);
        }
    }

    /// Keys and values of labels, which are all told of at the one field.
    fn labels(&mut self, field: &str, labels: Option<&Value>) {
        for (key, value) in entries(labels) {
            let value = value.as_str().unwrap_or_default();
            self.named(field, key, names::qualified(key));
            self.named(field, value, names::label_value(value));
        }
    }

    /// A field has not changed.
    fn unchanged(&mut self, new: &Value, old: &Value, field: &str) {
        if new.get(field) != old.get(field) {
            self.invalid(field, new.get(field).unwrap_or(&Value::Null), IMMUTABLE);
        }
    }
}

fn below(path: &str, field: &str) -> String {
    if path.is_empty() { field.to_owned() } else { format!("{path}.{field}") }
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn items(list: Option<&Value>) -> impl Iterator<Item = (usize, &Value)> {
    list.and_then(Value::as_array).into_iter().flatten().enumerate()
}

fn entries(map: Option<&Value>) -> impl Iterator<Item = (&String, &Value)> {
    map.and_then(Value::as_object).into_iter().flatten()
}

#[cfg(test)]
mod tests;
