//! Columns and cells of the built-in kinds.
//!
//! The original prints these kinds by code and not by paths, so that a pod can say `CrashLoopBackOff`; so do we.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::age::human_age;
use super::pods;
use crate::object::Object;
use crate::resource::Column;
use crate::resource::builtin::{events, selector_text};

const NONE: &str = "<none>";
const UNKNOWN: &str = "<unknown>";
const UNSET: &str = "<unset>";
/// How many ports or addresses of an endpoint slice are shown.
const SHOWN: usize = 3;

/// Columns of the kinds: shown always, and shown in wide output only (after a `+`). `#` marks a number, `@` a date.
const COLUMNS: &[(&str, &[&str])] = &[
    ("Pod", &["Name", "Ready", "Status", "Restarts", "Age", "+IP", "+Node", "+Nominated Node", "+Readiness Gates"]),
    ("Service", &["Name", "Type", "Cluster-IP", "External-IP", "Port(s)", "Age", "+Selector"]),
    ("Deployment", &["Name", "Ready", "Up-to-date", "Available", "Age", "+Containers", "+Images", "+Selector"]),
    ("ReplicaSet", &["Name", "#Desired", "#Current", "#Ready", "Age", "+Containers", "+Images", "+Selector"]),
    ("ConfigMap", &["Name", "Data", "Age"]),
    ("Secret", &["Name", "Type", "Data", "Age"]),
    ("Namespace", &["Name", "Status", "Age"]),
    (
        "Node",
        &[
            "Name",
            "Status",
            "Roles",
            "Age",
            "Version",
            "+Internal-IP",
            "+External-IP",
            "+OS-Image",
            "+Kernel-Version",
            "+Container-Runtime",
        ],
    ),
    (
        "PersistentVolume",
        &[
            "Name",
            "Capacity",
            "Access Modes",
            "Reclaim Policy",
            "Status",
            "Claim",
            "StorageClass",
            "VolumeAttributesClass",
            "Reason",
            "Age",
            "+VolumeMode",
        ],
    ),
    (
        "PersistentVolumeClaim",
        &[
            "Name",
            "Status",
            "Volume",
            "Capacity",
            "Access Modes",
            "StorageClass",
            "VolumeAttributesClass",
            "Age",
            "+VolumeMode",
        ],
    ),
    ("StorageClass", &["Name", "Provisioner", "ReclaimPolicy", "VolumeBindingMode", "AllowVolumeExpansion", "Age"]),
    ("ServiceAccount", &["Name", "Age"]),
    (
        "Event",
        &[
            "Last Seen",
            "Type",
            "Reason",
            "Object",
            "+Subobject",
            "+Source",
            "Message",
            "+First Seen",
            "+Count",
            "+Name",
        ],
    ),
    ("Lease", &["Name", "Holder", "Age"]),
    ("EndpointSlice", &["Name", "AddressType", "Ports", "Endpoints", "Age"]),
    ("NetworkPolicy", &["Name", "Pod-Selector", "Age"]),
    ("PodDisruptionBudget", &["Name", "Min Available", "Max Unavailable", "#Allowed Disruptions", "Age"]),
    ("Role", &["Name", "@Created At"]),
    ("ClusterRole", &["Name", "@Created At"]),
    ("RoleBinding", &["Name", "Role", "Age", "+Users", "+Groups", "+ServiceAccounts"]),
    ("ClusterRoleBinding", &["Name", "Role", "Age", "+Users", "+Groups", "+ServiceAccounts"]),
    ("CustomResourceDefinition", &["Name", "@Created At"]),
];

/// The columns of a built-in kind, `Name` among them; none for kinds that have none of their own. The cells come from
/// [`builtin_cells`], so the columns have no paths.
pub fn builtin_columns(group: &str, kind: &str) -> Option<Vec<Column>> {
    // Kinds are unique among the built-in groups, but a custom resource may have the name of one.
    let is_builtin = group.is_empty() || group.ends_with(".k8s.io") || matches!(group, "apps" | "policy");
    let (_, columns) = COLUMNS.iter().find(|(name, _)| is_builtin && *name == kind)?;
    Some(columns.iter().map(|column| parse_column(column)).collect())
}

fn parse_column(column: &str) -> Column {
    let (priority, rest) = column.strip_prefix('+').map_or((0, column), |rest| (1, rest));
    let (ty, name) = match rest.as_bytes().first() {
        Some(b'#') => ("integer", &rest[1..]),
        Some(b'@') => ("date", &rest[1..]),
        _ => ("string", rest),
    };
    Column {
        name: name.into(),
        ty: ty.into(),
        format: if name == "Name" { "name".into() } else { String::new() },
        description: String::new(),
        priority,
        json_path: String::new(),
    }
}

/// The cells of one object, one for each of its kind's [`builtin_columns`]. An unknown kind has none.
pub fn builtin_cells(kind: &str, object: &Value, now: Timestamp) -> Vec<Value> {
    let name = json!(object.name());
    let age = json!(since(now, object.meta("creationTimestamp")));
    let at = |path: &[&str]| text(object, path);
    match kind {
        "Pod" => pods::cells(object, now),
        "Service" => service(object, name, age),
        "Deployment" => {
            let ready =
                format!("{}/{}", number(object, &["status", "readyReplicas"]), number(object, &["spec", "replicas"]));
            let updated = number(object, &["status", "updatedReplicas"]);
            let available = number(object, &["status", "availableReplicas"]);
            let mut cells = vec![name, json!(ready), json!(updated), json!(available), age];
            cells.extend(workload(object));
            cells
        }
        "ReplicaSet" => {
            let count = |path: &[&str]| json!(number(object, path));
            let desired = count(&["spec", "replicas"]);
            let mut cells =
                vec![name, desired, count(&["status", "replicas"]), count(&["status", "readyReplicas"]), age];
            cells.extend(workload(object));
            cells
        }
        "ConfigMap" => vec![name, json!(size(object, "data") + size(object, "binaryData")), age],
        "Secret" => vec![name, json!(at(&["type"])), json!(size(object, "data")), age],
        "Namespace" => vec![name, json!(at(&["status", "phase"])), age],
        "Node" => node(object, name, age),
        "PersistentVolume" => volume(object, name, age),
        "PersistentVolumeClaim" => claim(object, name, age),
        "StorageClass" => {
            let default = at(&["metadata", "annotations", "storageclass.kubernetes.io/is-default-class"]) == "true";
            let name = if default { format!("{} (default)", object.name()) } else { object.name().to_owned() };
            let expands = object.get("allowVolumeExpansion") == Some(&Value::Bool(true));
            let (policy, mode) = (at(&["reclaimPolicy"]), at(&["volumeBindingMode"]));
            vec![json!(name), json!(at(&["provisioner"])), json!(policy), json!(mode), json!(expands), age]
        }
        "ServiceAccount" => vec![name, age],
        "Event" => event(object, name, now),
        "Lease" => vec![name, json!(at(&["spec", "holderIdentity"])), age],
        "EndpointSlice" => {
            let ports = shown(object, "ports", endpoint_port);
            let endpoints = shown(object, "endpoints", |endpoint| {
                endpoint.at(&["addresses"]).and_then(|a| a.get(0)).map(plain).unwrap_or_default()
            });
            vec![name, json!(at(&["addressType"])), json!(ports), json!(endpoints), age]
        }
        "NetworkPolicy" => vec![name, json!(selector(object.at(&["spec", "podSelector"]))), age],
        "PodDisruptionBudget" => {
            let limit = |field: &str| json!(object.at(&["spec", field]).map_or("N/A".to_owned(), plain));
            let allowed = number(object, &["status", "disruptionsAllowed"]);
            vec![name, limit("minAvailable"), limit("maxUnavailable"), json!(allowed), age]
        }
        "Role" | "ClusterRole" | "CustomResourceDefinition" => vec![name, json!(object.meta("creationTimestamp"))],
        "RoleBinding" | "ClusterRoleBinding" => {
            let role = format!("{}/{}", at(&["roleRef", "kind"]), at(&["roleRef", "name"]));
            let (users, groups, accounts) =
                (subjects(object, "User"), subjects(object, "Group"), subjects(object, "ServiceAccount"));
            vec![name, json!(role), age, json!(users), json!(groups), json!(accounts)]
        }
        _ => Vec::new(),
    }
}

/// The age of something that happened at a time given as text; unknown if none is given.
pub(super) fn since(now: Timestamp, then: &str) -> String {
    then.parse().map_or_else(|_| UNKNOWN.to_owned(), |then| human_age(now, then))
}

pub(super) fn text<'a>(object: &'a Value, path: &[&str]) -> &'a str {
    object.at(path).and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn number(object: &Value, path: &[&str]) -> i64 {
    object.at(path).and_then(Value::as_i64).unwrap_or_default()
}

pub(super) fn list<'a>(object: &'a Value, path: &[&str]) -> impl DoubleEndedIterator<Item = &'a Value> {
    object.at(path).and_then(Value::as_array).into_iter().flatten()
}

/// The text itself, or the placeholder where there is none.
pub(super) fn or<'a>(text: &'a str, placeholder: &'a str) -> &'a str {
    if text.is_empty() { placeholder } else { text }
}

/// Text without quotes, numbers as they are.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn size(object: &Value, field: &str) -> usize {
    object.get(field).and_then(Value::as_object).map_or(0, serde_json::Map::len)
}

fn selector(selector: Option<&Value>) -> String {
    or(&selector.map(selector_text).unwrap_or_default(), NONE).to_owned()
}

/// Containers, images and selector of a workload.
fn workload(object: &Value) -> [Value; 3] {
    let containers = |field: &str| {
        let all = list(object, &["spec", "template", "spec", "containers"]);
        all.map(|c| c.get(field).map(plain).unwrap_or_default()).collect::<Vec<_>>().join(",")
    };
    [json!(containers("name")), json!(containers("image")), json!(selector(object.at(&["spec", "selector"])))]
}

fn service(service: &Value, name: Value, age: Value) -> Vec<Value> {
    let ty = text(service, &["spec", "type"]);
    let cluster_ip = list(service, &["spec", "clusterIPs"]).next().and_then(Value::as_str).unwrap_or(NONE);
    let mut outside: Vec<&str> = list(service, &["spec", "externalIPs"]).filter_map(Value::as_str).collect();
    let external = match ty {
        "ExternalName" => text(service, &["spec", "externalName"]).to_owned(),
        "LoadBalancer" => {
            let ingress = list(service, &["status", "loadBalancer", "ingress"]);
            let mut addresses: Vec<&str> =
                ingress.map(|i| or(text(i, &["ip"]), text(i, &["hostname"]))).filter(|a| !a.is_empty()).collect();
            addresses.sort_unstable();
            addresses.dedup();
            addresses.append(&mut outside);
            or(&addresses.join(","), "<pending>").to_owned()
        }
        _ => or(&outside.join(","), NONE).to_owned(),
    };
    let ports = list(service, &["spec", "ports"]).map(|port| {
        let (number, protocol) = (number(port, &["port"]), text(port, &["protocol"]));
        match port.get("nodePort").and_then(Value::as_i64) {
            Some(node) if node > 0 => format!("{number}:{node}/{protocol}"),
            _ => format!("{number}/{protocol}"),
        }
    });
    let ports = ports.collect::<Vec<_>>().join(",");
    let labels = service.at(&["spec", "selector"]).and_then(Value::as_object).into_iter().flatten();
    let mut labels: Vec<String> = labels.map(|(key, value)| format!("{key}={}", plain(value))).collect();
    labels.sort();
    let labels = labels.join(",");
    let (ports, labels) = (or(&ports, NONE), or(&labels, NONE));
    vec![name, json!(ty), json!(cluster_ip), json!(external), json!(ports), age, json!(labels)]
}

fn node(node: &Value, name: Value, age: Value) -> Vec<Value> {
    let ready = list(node, &["status", "conditions"]).find(|c| text(c, &["type"]) == "Ready");
    let mut status = match ready {
        Some(condition) if text(condition, &["status"]) == "True" => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    }
    .to_owned();
    if node.at(&["spec", "unschedulable"]) == Some(&Value::Bool(true)) {
        status.push_str(",SchedulingDisabled");
    }
    let mut roles: Vec<String> = Vec::new();
    for (key, value) in node.labels() {
        match key.strip_prefix("node-role.kubernetes.io/") {
            Some(role) if !role.is_empty() => roles.push(role.to_owned()),
            _ if key == "kubernetes.io/role" && !value.is_empty() => roles.push(value),
            _ => {}
        }
    }
    roles.sort();
    roles.dedup();
    let address = |ty: &str| {
        let found = list(node, &["status", "addresses"]).find(|a| text(a, &["type"]) == ty);
        json!(found.map_or(NONE, |a| text(a, &["address"])))
    };
    let info = |field: &str| text(node, &["status", "nodeInfo", field]);
    vec![
        name,
        json!(status),
        json!(or(&roles.join(","), NONE)),
        age,
        json!(info("kubeletVersion")),
        address("InternalIP"),
        address("ExternalIP"),
        json!(or(info("osImage"), UNKNOWN)),
        json!(or(info("kernelVersion"), UNKNOWN)),
        json!(or(info("containerRuntimeVersion"), UNKNOWN)),
    ]
}

fn phase(object: &Value) -> &str {
    if object.is_terminating() { "Terminating" } else { text(object, &["status", "phase"]) }
}

/// Access modes by their initials, in a fixed order.
fn access_modes(object: &Value, path: &[&str]) -> String {
    const INITIALS: &[(&str, &str)] =
        &[("ReadWriteOnce", "RWO"), ("ReadOnlyMany", "ROX"), ("ReadWriteMany", "RWX"), ("ReadWriteOncePod", "RWOP")];
    let has = |mode: &str| list(object, path).any(|m| m == mode);
    INITIALS.iter().filter(|(mode, _)| has(mode)).map(|(_, short)| *short).collect::<Vec<_>>().join(",")
}

fn volume(volume: &Value, name: Value, age: Value) -> Vec<Value> {
    let at = |path: &[&str]| json!(text(volume, path));
    let claim = volume.at(&["spec", "claimRef"]);
    let claim = claim.map(|c| format!("{}/{}", text(c, &["namespace"]), text(c, &["name"]))).unwrap_or_default();
    let unset = |field: &str| json!(volume.at(&["spec", field]).and_then(Value::as_str).unwrap_or(UNSET));
    vec![
        name,
        at(&["spec", "capacity", "storage"]),
        json!(access_modes(volume, &["spec", "accessModes"])),
        at(&["spec", "persistentVolumeReclaimPolicy"]),
        json!(phase(volume)),
        json!(claim),
        at(&["spec", "storageClassName"]),
        unset("volumeAttributesClassName"),
        at(&["status", "reason"]),
        age,
        unset("volumeMode"),
    ]
}

fn claim(claim: &Value, name: Value, age: Value) -> Vec<Value> {
    let at = |path: &[&str]| text(claim, path);
    let volume = at(&["spec", "volumeName"]);
    // What a claim has got is only told once it has got something.
    let (capacity, modes) = if volume.is_empty() {
        (String::new(), String::new())
    } else {
        (or(at(&["status", "capacity", "storage"]), "0").to_owned(), access_modes(claim, &["status", "accessModes"]))
    };
    let unset = |field: &str| json!(claim.at(&["spec", field]).and_then(Value::as_str).unwrap_or(UNSET));
    vec![
        name,
        json!(phase(claim)),
        json!(volume),
        json!(capacity),
        json!(modes),
        json!(at(&["spec", "storageClassName"])),
        unset("volumeAttributesClassName"),
        age,
        unset("volumeMode"),
    ]
}

fn event(event: &Value, name: Value, now: Timestamp) -> Vec<Value> {
    // Both forms show the same cells.
    let core = events::to_core(event);
    let at = |path: &[&str]| text(&core, path);
    let mut first = since(now, at(&["firstTimestamp"]));
    if at(&["firstTimestamp"]).is_empty() {
        first = since(now, at(&["eventTime"]));
    }
    let mut last = since(now, at(&["lastTimestamp"]));
    if at(&["lastTimestamp"]).is_empty() {
        last.clone_from(&first);
    }
    let mut count = number(&core, &["count"]).max(1);
    if let Some(series) = core.get("series").filter(|series| series.is_object()) {
        last = since(now, text(series, &["lastObservedTime"]));
        count = number(series, &["count"]);
    }
    let kind = at(&["involvedObject", "kind"]).to_lowercase();
    let target = match at(&["involvedObject", "name"]) {
        "" => kind,
        object => format!("{kind}/{object}"),
    };
    let component = or(at(&["source", "component"]), at(&["reportingComponent"]));
    let source = match or(at(&["source", "host"]), at(&["reportingInstance"])) {
        "" => component.to_owned(),
        instance => format!("{component}, {instance}"),
    };
    vec![
        json!(last),
        json!(at(&["type"])),
        json!(at(&["reason"])),
        json!(target),
        json!(at(&["involvedObject", "fieldPath"])),
        json!(source),
        json!(at(&["message"]).trim()),
        json!(first),
        json!(count),
        name,
    ]
}

fn endpoint_port(port: &Value) -> String {
    match (port.get("port"), port.get("name")) {
        (Some(number), _) => plain(number),
        (None, Some(name)) => plain(name),
        (None, None) => "*".to_owned(),
    }
}

/// The first few of a list, and how many there are beyond.
fn shown(object: &Value, field: &str, show: impl Fn(&Value) -> String) -> String {
    let all: Vec<&Value> = list(object, &[field]).collect();
    let first = all.iter().take(SHOWN).map(|item| show(item)).collect::<Vec<_>>().join(",");
    match all.len() {
        0 => UNSET.to_owned(),
        count if count > SHOWN => format!("{first} + {} more...", count - SHOWN),
        _ => first,
    }
}

fn subjects(binding: &Value, kind: &str) -> String {
    let of_kind = list(binding, &["subjects"]).filter(|s| text(s, &["kind"]) == kind);
    let names = of_kind.map(|subject| match kind {
        "ServiceAccount" => format!("{}/{}", text(subject, &["namespace"]), text(subject, &["name"])),
        _ => text(subject, &["name"]).to_owned(),
    });
    names.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_show_what_the_original_shows() {
        let recorded: Vec<Value> =
            serde_json::from_str(include_str!("../../../tests/fixtures/builtin/tables.json")).unwrap();
        assert!(recorded.len() > 20, "looked in the wrong place");
        for table in &recorded {
            let (group, kind) = (text(table, &["group"]), text(table, &["kind"]));
            let now: Timestamp = text(table, &["now"]).parse().unwrap();
            let columns = builtin_columns(group, kind).unwrap_or_else(|| panic!("no columns for {kind}"));
            let ours: Value = columns.iter().map(|c| json!([c.name, c.ty, c.format, c.priority])).collect();
            assert_eq!(ours, table["columns"], "{kind}");
            for row in list(table, &["rows"]) {
                let ours = builtin_cells(kind, &row["object"], now);
                assert_eq!(Value::Array(ours), row["cells"], "{kind} {}", row["object"].name());
            }
        }
    }

    #[test]
    fn every_kind_has_as_many_cells_as_columns_even_for_an_empty_object() {
        for (kind, columns) in COLUMNS {
            for object in [json!({}), json!({"spec": 5, "status": [], "metadata": null}), Value::Null] {
                assert_eq!(builtin_cells(kind, &object, Timestamp::UNIX_EPOCH).len(), columns.len(), "{kind}");
            }
        }
    }

    #[test]
    fn a_custom_resource_with_the_name_of_a_built_in_kind_is_not_taken_for_it() {
        assert_eq!(builtin_columns("serving.knative.dev", "Service"), None);
        assert_eq!(builtin_columns("authorization.k8s.io", "SelfSubjectAccessReview"), None);
    }
}
