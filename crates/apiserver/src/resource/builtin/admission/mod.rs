//! What happens to an object of a built-in kind on its way in, beyond its schema: canonical form, defaults, and what
//! the server decides itself (addresses, phases).
//!
//! Everything is a function of the object, the stored object and the [`Context`]; nothing is looked up.

mod pods;
mod services;
mod storage;
mod workloads;

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Value, json};

pub(crate) use self::services::NODE_PORTS;
use super::shape::shape;
use crate::object::{Object, child_map};
use crate::resource::{Origin, Resource};

/// What the rest of the server knows and a new object needs.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// Wall-clock time.
    pub now: Timestamp,
    /// Cluster IPs of the services that exist.
    pub cluster_ips: &'a BTreeSet<Ipv4Addr>,
    /// Node ports of the services that exist.
    pub node_ports: &'a BTreeSet<u16>,
}

/// Whether there is something that the server decides about new objects of a kind, beyond what they report: nobody who
/// creates one comes to own that.
pub fn decides(resource: &Resource) -> bool {
    const KINDS: [&str; 6] = ["Namespace", "Node", "PersistentVolume", "PersistentVolumeClaim", "Pod", "Service"];
    resource.origin == Origin::Builtin && KINDS.contains(&resource.kind.as_str())
}

/// What the server decides about a new object that is complete. Custom resources are left alone.
pub fn decide(resource: &Resource, object: &mut Value, ctx: &Context<'_>) {
    if resource.origin == Origin::Custom {
        return;
    }
    match resource.kind.as_str() {
        "Namespace" => {
            object["status"] = json!({"phase": "Active"});
            add_finalizer(child_map(object, "spec"), "kubernetes");
        }
        "Pod" => pods::create(object),
        "Node" => taint_new_node(object),
        "Service" => {
            object["status"] = json!({"loadBalancer": {}});
            services::allocate(object, None, ctx.cluster_ips, ctx.node_ports);
        }
        "PersistentVolumeClaim" => {
            object["status"] = json!({"phase": "Pending"});
            add_finalizer(object.metadata_mut(), "kubernetes.io/pvc-protection");
        }
        "PersistentVolume" => {
            let now = ctx.now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
            object["status"] = json!({"phase": "Pending", "lastPhaseTransitionTime": now});
            add_finalizer(object.metadata_mut(), "kubernetes.io/pv-protection");
        }
        "Deployment" | "ReplicaSet" | "PodDisruptionBudget" => {
            // The status of a new object is nobody's to choose.
            object["status"] = json!({});
            shape(object);
        }
        "SelfSubjectAccessReview" => {
            object["status"] =
                json!({"allowed": true, "reason": "there is one identity here, and it may do everything"});
        }
        "SelfSubjectRulesReview" => {
            object["status"] = json!({
                "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
                "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
                "incomplete": false,
            });
        }
        _ => {}
    }
}

/// Completes the new state of an object that exists.
pub fn prepare_update(resource: &Resource, object: &mut Value, old: &Value, ctx: &Context<'_>) {
    if resource.origin == Origin::Custom {
        return;
    }
    complete(resource, object);
    match resource.kind.as_str() {
        "Namespace" => keep_finalizers(object, old),
        "Pod" => pods::tolerate_absent_nodes(child(object, "spec")),
        "Service" => services::allocate(object, Some(old), ctx.cluster_ips, ctx.node_ports),
        _ => {}
    }
}

/// Canonical form and defaults: the same for every write. Custom resources are left alone.
pub fn complete(resource: &Resource, object: &mut Value) {
    if resource.origin == Origin::Custom {
        return;
    }
    shape(object);
    match resource.kind.as_str() {
        "Namespace" => label_namespace(object),
        "Pod" => pods::defaults(child(object, "spec"), true),
        "Service" => services::defaults(child(object, "spec")),
        "Deployment" => workloads::deployment_defaults(object),
        "ReplicaSet" => workloads::replica_set_defaults(object),
        "PersistentVolumeClaim" => storage::claim_defaults(child(object, "spec")),
        "PersistentVolume" => storage::volume_defaults(child(object, "spec")),
        "StorageClass" => {
            fill(object, "reclaimPolicy", "Delete");
            fill(object, "volumeBindingMode", "Immediate");
        }
        "Secret" => secret_defaults(object),
        "RoleBinding" | "ClusterRoleBinding" => binding_defaults(object),
        "NetworkPolicy" => network_policy_defaults(child(object, "spec")),
        "EndpointSlice" => each(object, "ports", |port| {
            fill(port, "name", "");
            fill(port, "protocol", "TCP");
        }),
        _ => {}
    }
}

/// `stringData` is a way of writing `data`, and only that.
fn secret_defaults(secret: &mut Value) {
    fill(secret, "type", "Opaque");
    let Some(Value::Object(texts)) = secret.as_object_mut().and_then(|map| map.remove("stringData")) else { return };
    let data = child_map(secret, "data");
    for (key, text) in texts {
        if let Value::String(text) = text {
            data.insert(key, Value::String(STANDARD.encode(text)));
        }
    }
}

fn binding_defaults(binding: &mut Value) {
    const RBAC: &str = "rbac.authorization.k8s.io";
    each(binding, "subjects", |subject| {
        // Service accounts are of the core group, whose name is empty.
        if matches!(subject.get("kind").and_then(Value::as_str), Some("User" | "Group")) {
            fill(subject, "apiGroup", RBAC);
        }
    });
    let reference = child(binding, "roleRef");
    if reference.get("apiGroup").is_none_or(|group| group == "") {
        reference["apiGroup"] = RBAC.into();
    }
}

fn network_policy_defaults(spec: &mut Value) {
    for rules in ["ingress", "egress"] {
        each(spec, rules, |rule| each(rule, "ports", |port| fill(port, "protocol", "TCP")));
    }
    if spec.get("policyTypes").is_none() {
        // A policy is about what comes in, and about what goes out if it says anything of that.
        let types = if spec.get("egress").is_some() { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
        fill(spec, "policyTypes", types);
    }
}

/// Nothing runs on a node before somebody has seen it ready.
fn taint_new_node(node: &mut Value) {
    const NOT_READY: &str = "node.kubernetes.io/not-ready";
    let taints = child_map(node, "spec").entry("taints").or_insert_with(|| json!([]));
    let is_it = |taint: &Value| taint.get("key").is_some_and(|key| key == NOT_READY);
    if let Value::Array(taints) = taints
        && !taints.iter().any(is_it)
    {
        taints.push(json!({"key": NOT_READY, "effect": "NoSchedule"}));
    }
}

fn label_namespace(namespace: &mut Value) {
    let name = namespace.name().to_owned();
    if !name.is_empty() {
        let metadata = namespace.metadata_mut().entry("labels").or_insert_with(|| json!({}));
        if let Value::Object(labels) = metadata {
            labels.insert("kubernetes.io/metadata.name".into(), Value::String(name));
        }
    }
}

/// What holds a namespace until it is empty is changed by `/finalize` only: whoever leaves it out means something else.
fn keep_finalizers(namespace: &mut Value, old: &Value) {
    let spec = child_map(namespace, "spec");
    match old.at(&["spec", "finalizers"]) {
        Some(finalizers) => drop(spec.insert("finalizers".into(), finalizers.clone())),
        None => drop(spec.remove("finalizers")),
    }
}

fn add_finalizer(owner: &mut serde_json::Map<String, Value>, finalizer: &str) {
    let list = owner.entry("finalizers").or_insert_with(|| json!([]));
    if let Value::Array(finalizers) = list
        && !finalizers.iter().any(|f| f == finalizer)
    {
        finalizers.push(finalizer.into());
    }
}

/// Sets a field that is not there. A target that is no object stays as it is; validation or decoding has its say.
fn fill(target: &mut Value, field: &str, value: impl Into<Value>) {
    if let Value::Object(map) = target {
        map.entry(field).or_insert_with(|| value.into());
    }
}

/// The object under a field, made if it is not there.
fn child<'a>(parent: &'a mut Value, field: &str) -> &'a mut Value {
    child_map(parent, field);
    &mut parent[field]
}

/// Every item of a list, if there is one.
fn each(parent: &mut Value, field: &str, change: impl FnMut(&mut Value)) {
    if let Some(Value::Array(items)) = parent.get_mut(field) {
        items.iter_mut().for_each(change);
    }
}

#[cfg(test)]
mod tests;
