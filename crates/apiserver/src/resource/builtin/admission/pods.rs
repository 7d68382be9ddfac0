//! Defaults of pods and of the pod templates in workloads.

use serde_json::{Value, json};

use super::{child, each, fill};
use crate::object::child_map;
use crate::resource::builtin::quantity;

/// How long a pod stays on a node that is gone, in seconds.
const PATIENCE: i64 = 300;

/// Defaults of a pod's spec. `is_pod`: it is a pod and not a template; some defaults wait for the pod.
pub(super) fn defaults(spec: &mut Value, is_pod: bool) {
    fill(spec, "restartPolicy", "Always");
    fill(spec, "dnsPolicy", "ClusterFirst");
    fill(spec, "terminationGracePeriodSeconds", 30);
    fill(spec, "schedulerName", "default-scheduler");
    fill(spec, "securityContext", json!({}));
    if is_pod {
        fill(spec, "enableServiceLinks", true);
    }
    // The account has two names for the sake of old clients.
    if let Some(account) = spec.get("serviceAccountName").or_else(|| spec.get("serviceAccount")).cloned() {
        spec["serviceAccountName"] = account.clone();
        spec["serviceAccount"] = account;
    }
    let host_network = spec.get("hostNetwork") == Some(&Value::Bool(true));
    for containers in ["initContainers", "containers", "ephemeralContainers"] {
        each(spec, containers, |container| container_defaults(container, host_network, is_pod));
    }
    each(spec, "volumes", volume_defaults);
}

/// What the server decides about a new pod.
pub(super) fn create(pod: &mut Value) {
    let spec = child(pod, "spec");
    fill(spec, "serviceAccountName", "default");
    fill(spec, "serviceAccount", "default");
    fill(spec, "priority", 0);
    fill(spec, "preemptionPolicy", "PreemptLowerPriority");
    if spec.get("terminationGracePeriodSeconds").and_then(Value::as_i64).is_some_and(|seconds| seconds < 0) {
        spec["terminationGracePeriodSeconds"] = json!(1);
    }
    tolerate_absent_nodes(spec);
    let class = quality_of_service(spec);
    pod["status"] = json!({"phase": "Pending", "qosClass": class});
}

/// A pod outlives a short absence of its node unless it says otherwise.
pub(super) fn tolerate_absent_nodes(spec: &mut Value) {
    tolerate(spec, "node.kubernetes.io/not-ready");
    tolerate(spec, "node.kubernetes.io/unreachable");
}

fn tolerate(spec: &mut Value, key: &str) {
    let Value::Object(map) = spec else { return };
    let Value::Array(list) = map.entry("tolerations").or_insert_with(|| json!([])) else { return };
    let covers = |toleration: &Value| {
        let text = |field: &str| toleration.get(field).and_then(Value::as_str).unwrap_or_default();
        (text("key") == key || text("key").is_empty()) && matches!(text("effect"), "NoExecute" | "")
    };
    if !list.iter().any(covers) {
        list.push(json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": PATIENCE}));
    }
}

fn container_defaults(container: &mut Value, host_network: bool, is_pod: bool) {
    let image = container.get("image").and_then(Value::as_str).unwrap_or_default();
    let policy = if image_is_latest(image) { "Always" } else { "IfNotPresent" };
    fill(container, "imagePullPolicy", policy);
    fill(container, "terminationMessagePath", "/dev/termination-log");
    fill(container, "terminationMessagePolicy", "File");
    each(container, "ports", |port| {
        fill(port, "protocol", "TCP");
        if host_network && let Some(number) = port.get("containerPort").cloned() {
            fill(port, "hostPort", number);
        }
    });
    each(container, "env", |variable| {
        if let Some(reference) = variable.get_mut("valueFrom").and_then(|from| from.get_mut("fieldRef")) {
            fill(reference, "apiVersion", "v1");
        }
    });
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = container.get_mut(probe) {
            probe_defaults(probe);
        }
    }
    for hook in ["postStart", "preStop"] {
        let handler = container.get_mut("lifecycle").and_then(|l| l.get_mut(hook));
        if let Some(http) = handler.and_then(|h| h.get_mut("httpGet")) {
            http_defaults(http);
        }
    }
    if is_pod {
        request_what_is_limited(child(container, "resources"));
    }
}

/// An image without a tag, or with the tag `latest`, is another image every time.
fn image_is_latest(image: &str) -> bool {
    if image.contains('@') {
        return false;
    }
    let name = image.rsplit('/').next().unwrap_or(image);
    match name.split_once(':') {
        Some((_, tag)) => tag == "latest",
        None => !image.is_empty(),
    }
}

fn probe_defaults(probe: &mut Value) {
    fill(probe, "timeoutSeconds", 1);
    fill(probe, "periodSeconds", 10);
    fill(probe, "successThreshold", 1);
    fill(probe, "failureThreshold", 3);
    if let Some(http) = probe.get_mut("httpGet") {
        http_defaults(http);
    }
    if let Some(grpc) = probe.get_mut("grpc") {
        fill(grpc, "service", "");
    }
}

fn http_defaults(http: &mut Value) {
    fill(http, "path", "/");
    fill(http, "scheme", "HTTP");
}

/// What a container is limited to is what it asks for, unless it asks for something else.
fn request_what_is_limited(resources: &mut Value) {
    let Some(Value::Object(limits)) = resources.get("limits").cloned() else { return };
    let requests = child_map(resources, "requests");
    for (name, amount) in limits {
        requests.entry(name).or_insert(amount);
    }
}

fn volume_defaults(volume: &mut Value) {
    if volume.as_object().is_some_and(|map| map.keys().all(|field| field == "name")) {
        fill(volume, "emptyDir", json!({}));
    }
    for (source, field, value) in [
        ("configMap", "defaultMode", json!(0o644)),
        ("secret", "defaultMode", json!(0o644)),
        ("projected", "defaultMode", json!(0o644)),
        ("downwardAPI", "defaultMode", json!(0o644)),
        ("hostPath", "type", json!("")),
    ] {
        if let Some(source) = volume.get_mut(source) {
            fill(source, field, value);
        }
    }
    if let Some(downward) = volume.get_mut("downwardAPI") {
        each(downward, "items", downward_item_defaults);
    }
    if let Some(projected) = volume.get_mut("projected") {
        each(projected, "sources", |source| {
            if let Some(token) = source.get_mut("serviceAccountToken") {
                fill(token, "expirationSeconds", 3600);
            }
            if let Some(downward) = source.get_mut("downwardAPI") {
                each(downward, "items", downward_item_defaults);
            }
        });
    }
    let template = volume.get_mut("ephemeral").and_then(|e| e.get_mut("volumeClaimTemplate"));
    if let Some(spec) = template.and_then(|t| t.get_mut("spec")) {
        super::storage::claim_defaults(spec);
    }
}

fn downward_item_defaults(item: &mut Value) {
    if let Some(reference) = item.get_mut("fieldRef") {
        fill(reference, "apiVersion", "v1");
    }
}

/// How a pod fares when memory runs short: by what its containers ask for and are limited to.
fn quality_of_service(spec: &Value) -> &'static str {
    let lists = ["containers", "initContainers"].into_iter().filter_map(|field| spec.get(field)?.as_array());
    let containers: Vec<&Value> = lists.flatten().collect();
    let amount = |container: &Value, kind: &str, resource: &str| {
        let text = container.get("resources")?.get(kind)?.get(resource)?.as_str()?;
        quantity::parse(text).ok().filter(|&nanos| nanos > 0)
    };
    let asks = |container: &&Value, resource| {
        let request = amount(container, "requests", resource);
        (request, amount(container, "limits", resource))
    };
    let all = |test: fn((Option<i128>, Option<i128>)) -> bool| {
        containers.iter().all(|container| ["cpu", "memory"].into_iter().all(|resource| test(asks(container, resource))))
    };
    if all(|asked| asked == (None, None)) {
        "BestEffort"
    } else if all(|(request, limit)| limit.is_some() && request == limit) {
        "Guaranteed"
    } else {
        "Burstable"
    }
}
