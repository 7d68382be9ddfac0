//! Recorded bodies, and bodies that nobody should send.

use super::*;

/// Bodies as kubectl 1.33 sent them, and what they mean.
#[test]
fn bodies_of_kubectl_create_are_understood() {
    let recorded: &[(&[u8], Value)] = &[
        (
            include_bytes!("../../../tests/fixtures/protobuf/configmap.bin"),
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"},
                "data": {"color": "blue", "empty": ""}}),
        ),
        (
            include_bytes!("../../../tests/fixtures/protobuf/namespace.bin"),
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a"},
                "spec": {}, "status": {}}),
        ),
        (
            include_bytes!("../../../tests/fixtures/protobuf/secret.bin"),
            json!({"apiVersion": "v1", "kind": "Secret",
                "metadata": {"name": "credentials"},
                "data": {"password": "aHVudGVyMg=="}}),
        ),
        (
            include_bytes!("../../../tests/fixtures/protobuf/serviceaccount.bin"),
            json!({"apiVersion": "v1", "kind": "ServiceAccount",
                "metadata": {"name": "robot"}}),
        ),
        (
            include_bytes!("../../../tests/fixtures/protobuf/service-clusterip.bin"),
            json!({"apiVersion": "v1", "kind": "Service",
                "metadata": {"name": "web", "labels": {"app": "web"}},
                "spec": {"ports": [{"name": "80-8080", "protocol": "TCP", "port": 80, "targetPort": 8080}],
                    "selector": {"app": "web"}, "type": "ClusterIP"},
                "status": {"loadBalancer": {}}}),
        ),
        (
            include_bytes!("../../../tests/fixtures/protobuf/service-nodeport.bin"),
            json!({"apiVersion": "v1", "kind": "Service",
                "metadata": {"name": "web-np", "labels": {"app": "web-np"}},
                "spec": {"ports": [{"name": "80-http", "protocol": "TCP", "port": 80, "targetPort": "http",
                        "nodePort": 30080}],
                    "selector": {"app": "web-np"}, "type": "NodePort"},
                "status": {"loadBalancer": {}}}),
        ),
        (
            include_bytes!("../../../tests/fixtures/protobuf/service-externalname.bin"),
            json!({"apiVersion": "v1", "kind": "Service",
                "metadata": {"name": "ext", "labels": {"app": "ext"}},
                "spec": {"selector": {"app": "ext"}, "type": "ExternalName", "externalName": "example.com"},
                "status": {"loadBalancer": {}}}),
        ),
        (
            include_bytes!("../../../tests/fixtures/protobuf/deployment.bin"),
            json!({"apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": {"name": "web", "labels": {"app": "web"}},
                "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "strategy": {},
                    "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [
                        {"name": "nginx", "image": "nginx", "resources": {}, "ports": [{"containerPort": 8080}]}]}}},
                "status": {}}),
        ),
        (
            include_bytes!("../../../tests/fixtures/protobuf/poddisruptionbudget-min.bin"),
            json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
                "metadata": {"name": "web"},
                "spec": {"minAvailable": "50%", "selector": {"matchLabels": {"app": "web"}}},
                "status": {"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0}}),
        ),
        (
            include_bytes!("../../../tests/fixtures/protobuf/poddisruptionbudget-max.bin"),
            json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
                "metadata": {"name": "web2"},
                "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}},
                "status": {"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0}}),
        ),
    ];
    for (bytes, meaning) in recorded {
        assert_eq!(&decode(bytes).unwrap().value, meaning);
    }
}

#[test]
fn bodies_about_rights_are_understood() {
    const RBAC: &str = "rbac.authorization.k8s.io/v1";
    let recorded: &[(&[u8], Value)] = &[
        (
            include_bytes!("../../../tests/fixtures/protobuf/role.bin"),
            json!({"apiVersion": RBAC, "kind": "Role", "metadata": {"name": "reader"},
                "rules": [{"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"],
                    "resourceNames": ["a"]}]}),
        ),
        (
            include_bytes!("../../../tests/fixtures/protobuf/clusterrole-nonresource.bin"),
            json!({"apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": "metrics"},
                "rules": [{"verbs": ["get"], "nonResourceURLs": ["/metrics"]}]}),
        ),
        (
            include_bytes!("../../../tests/fixtures/protobuf/clusterrole-aggregation.bin"),
            json!({"apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": "agg"}, "rules": null,
                "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"app": "x", "y": "z"}}]}}),
        ),
        (
            include_bytes!("../../../tests/fixtures/protobuf/rolebinding.bin"),
            json!({"apiVersion": RBAC, "kind": "RoleBinding",
                "metadata": {"name": "readers"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
                "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "alice"},
                    {"kind": "ServiceAccount", "name": "robot", "namespace": "default"}]}),
        ),
        (
            include_bytes!("../../../tests/fixtures/protobuf/clusterrolebinding.bin"),
            json!({"apiVersion": RBAC, "kind": "ClusterRoleBinding", "metadata": {"name": "admins"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                    "name": "cluster-admin"},
                "subjects": [{"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "ops"}]}),
        ),
        (
            include_bytes!("../../../tests/fixtures/protobuf/selfsubjectaccessreview.bin"),
            json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "metadata": {},
                "spec": {"resourceAttributes": {"namespace": "default", "verb": "create", "resource": "pods"}},
                "status": {"allowed": false}}),
        ),
        (
            include_bytes!("../../../tests/fixtures/protobuf/selfsubjectaccessreview-path.bin"),
            json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "metadata": {},
                "spec": {"nonResourceAttributes": {"path": "/healthz", "verb": "get"}},
                "status": {"allowed": false}}),
        ),
        (
            include_bytes!("../../../tests/fixtures/protobuf/selfsubjectrulesreview.bin"),
            json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "metadata": {},
                "spec": {"namespace": "default"},
                "status": {"resourceRules": null, "nonResourceRules": null, "incomplete": false}}),
        ),
    ];
    for (bytes, meaning) in recorded {
        assert_eq!(&decode(bytes).unwrap().value, meaning);
    }
}

#[test]
fn kinds_without_a_message_are_asked_for_in_another_form() {
    let quota = include_bytes!("../../../tests/fixtures/protobuf/unknown-kind.bin");
    assert_eq!(decode(quota).unwrap_err().code, 415);
}

/// A small encoder, for what no recorded body holds.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len()).expect("short");
    // Two bytes are always right, if not always shortest.
    let [low, high] = [(length & 0x7f) as u8 | 0x80, u8::try_from(length >> 7).expect("short")];
    [&[number << 3 | 2, low, high], content].concat()
}

fn body(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let meta = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
    [MAGIC, &field(1, &meta), &field(2, raw)].concat()
}

#[test]
fn leases_carry_microseconds_and_delete_options_any_group() {
    // renewTime = 1 s and 2,000 ns after the epoch.
    let spec = [field(1, b"me"), field(4, &[8, 1, 16, 0xd0, 0x0f])].concat();
    let lease = decode(&body("coordination.k8s.io/v1", "Lease", &field(2, &spec))).unwrap().value;
    assert_eq!(lease["spec"], json!({"holderIdentity": "me", "renewTime": "1970-01-01T00:00:01.000002Z"}));
    let orphan = body("apps/v1", "DeleteOptions", &[&[8, 5][..], &field(4, b"Orphan")].concat());
    let options = decode(&orphan).unwrap().value;
    let wanted = json!({"apiVersion": "apps/v1", "kind": "DeleteOptions", "gracePeriodSeconds": 5,
        "propagationPolicy": "Orphan"});
    assert_eq!(options, wanted);
}

#[test]
fn negative_numbers_and_unknown_fields_are_read() {
    let minus_one = [0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
    let options = decode(&body("v1", "DeleteOptions", &[&minus_one[..], &field(15, b"new")].concat())).unwrap().value;
    assert_eq!(options["gracePeriodSeconds"], -1);
}

#[test]
fn cut_and_garbled_bodies_are_refused_and_nothing_else_happens() {
    let whole = include_bytes!("../../../tests/fixtures/protobuf/deployment.bin");
    for length in 0..whole.len() {
        let _ = decode(&whole[..length]);
        let mut garbled = whole.to_vec();
        for byte in [0x00, 0x7f, 0x80, 0xff] {
            garbled[length] = byte;
            let _ = decode(&garbled);
        }
    }
    assert_eq!(decode(b"").unwrap_err().code, 400);
    assert_eq!(decode(b"{}").unwrap_err().code, 400);
    // A length far beyond the body.
    assert_eq!(decode(b"k8s\0\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f").unwrap_err().code, 400);
    assert_eq!(decode(b"k8s\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff").unwrap_err().code, 400);
}

#[test]
fn json_in_an_envelope_is_read_as_strictly_as_without_one() {
    let enveloped = |json: &str| [body("v1", "ConfigMap", json.as_bytes()), field(4, b"application/json")].concat();
    let twice = decode(&enveloped(r#"{"kind":"ConfigMap","data":{"k":"a","k":"b"}}"#)).unwrap();
    assert_eq!((&twice.value["data"]["k"], twice.duplicates.as_slice()), (&json!("b"), &["data.k".to_owned()][..]));
    let nested = |depth: usize| format!(r#"{{"a":{}{}}}"#, "[".repeat(depth - 1), "]".repeat(depth - 1));
    assert!(decode(&enveloped(&nested(decode::MAX_DEPTH))).is_ok());
    assert_eq!(decode(&enveloped(&nested(decode::MAX_DEPTH + 1))).unwrap_err().code, 400);
    assert_eq!(decode(&enveloped("[]")).unwrap_err().code, 400, "no object");
}
