//! Volumes and environment from what the API holds, and what is said when something is not there.

use serde_json::{Value, json};

use super::*;

fn pod(spec: Value) -> Pod {
    serde_json::from_value(json!({
        "metadata": {"name": "pod-0", "namespace": "ns", "uid": "u1", "labels": {"app": "x", "zone": "a"}}, "spec": spec,
    }))
    .unwrap()
}

fn one(container: Value, volumes: Value) -> Pod {
    let mut container = container;
    container["name"] = json!("main");
    pod(json!({"containers": [container], "volumes": volumes, "nodeName": "evenkeel-1"}))
}

fn found() -> Found {
    let map = json!({"metadata": {"name": "map"}, "data": {"a": "1", "b": "two"}, "binaryData": {"raw": "AAE="}});
    let secret = json!({"metadata": {"name": "secret"}, "data": {"key": "aHVzaA=="}});
    let claim = json!({"metadata": {"name": "claim", "uid": "c1"},
        "status": {"phase": "Bound", "capacity": {"storage": "10Gi"}}});
    let pending = json!({"metadata": {"name": "pending", "uid": "c2"}, "status": {"phase": "Pending"}});
    Found {
        config_maps: [("map".to_owned(), Arc::new(serde_json::from_value(map).unwrap()))].into(),
        secrets: [("secret".to_owned(), Arc::new(serde_json::from_value(secret).unwrap()))].into(),
        claims: [("claim", claim), ("pending", pending)]
            .map(|(name, claim)| (name.to_owned(), Arc::new(serde_json::from_value(claim).unwrap())))
            .into(),
        ..Found::default()
    }
}

fn material_of(pod: &Pod, found: &Found) -> Result<Material, String> {
    resolve(pod, found, &Left::new()).map(|mut all| all.remove("main").unwrap_or_default())
}

fn files(material: &Material) -> Vec<String> {
    let shown = |(path, file): (&str, &File)| format!("{path} {:o} {}", file.mode, file.bytes.escape_ascii());
    material.files.iter().map(shown).collect()
}

#[test]
fn config_maps_and_secrets_become_files() {
    let mounts = json!([{"name": "m", "mountPath": "/config"}, {"name": "s", "mountPath": "/certs/"}]);
    let volumes = json!([{"name": "m", "configMap": {"name": "map"}},
        {"name": "s", "secret": {"secretName": "secret", "defaultMode": 420}}]);
    let pod = one(json!({"volumeMounts": mounts}), volumes);
    let material = material_of(&pod, &found()).unwrap();
    let expected = ["/certs/key 600 hush", "/config/a 644 1", "/config/b 644 two", r"/config/raw 644 \x00\x01"];
    assert_eq!(files(&material), expected);
    let wanted = wanted(&pod);
    assert_eq!((wanted.config_maps, wanted.secrets), (["map".to_owned()].into(), ["secret".to_owned()].into()));
}

#[test]
fn items_and_sub_paths_pick_files() {
    let mounts = json!([{"name": "m", "mountPath": "/etc/one", "subPath": "dir/x"},
        {"name": "m", "mountPath": "/etc/dir", "subPath": "dir"}]);
    let items = json!([{"key": "a", "path": "dir/x", "mode": 256}, {"key": "b", "path": "y"}]);
    let volumes = json!([{"name": "m", "configMap": {"name": "map", "items": items}}]);
    let material = material_of(&one(json!({"volumeMounts": mounts}), volumes), &found()).unwrap();
    assert_eq!(files(&material), ["/etc/dir/x 400 1", "/etc/one 400 1"]);
}

#[test]
fn projected_volumes_join_their_sources() {
    let sources = json!([
        {"serviceAccountToken": {"path": "token"}}, {"configMap": {"name": "kube-root-ca.crt"}},
        {"configMap": {"name": "map", "items": [{"key": "a", "path": "a"}]}}, {"secret": {"name": "secret"}},
        {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}},
            {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
    ]);
    let volumes = json!([{"name": "p", "projected": {"sources": sources}}]);
    let pod = one(json!({"volumeMounts": [{"name": "p", "mountPath": "/p"}]}), volumes);
    assert_eq!(material_of(&pod, &found()).unwrap_err(), "no service account tokens are given out by this node");
    let account = Account { token: "t".into(), authority: "pem".into(), host: "127.0.0.1".into(), port: 6443 };
    let material = material_of(&pod, &Found { account: Some(account), ..found() }).unwrap();
    let labels = r#"/p/labels 644 app=\"x\"\nzone=\"a\""#;
    let expected =
        ["/p/a 644 1", "/p/ca.crt 644 pem", "/p/key 600 hush", labels, "/p/namespace 644 ns", "/p/token 600 t"];
    assert_eq!(files(&material), expected);
    assert_eq!(material.env["KUBERNETES_SERVICE_PORT"], "6443");
}

#[test]
fn a_token_is_given_to_pods_that_ask_for_it() {
    let account = Account { token: "t".into(), authority: "pem".into(), host: "127.0.0.1".into(), port: 6443 };
    let found = Found { account: Some(account), ..Found::default() };
    let asking = |asks: Value| pod(json!({"containers": [{"name": "main"}], "automountServiceAccountToken": asks}));
    assert_eq!(files(&material_of(&asking(json!(null)), &found).unwrap()), [""; 0]);
    let names = material_of(&asking(json!(true)), &found).unwrap();
    let names: Vec<_> = names.files.below(ACCOUNT_DIRECTORY).map(|(name, _)| name.to_owned()).collect();
    assert_eq!(names, ["ca.crt", "namespace", "token"]);
}

#[test]
fn claims_and_empty_directories_are_places_for_data() {
    let mounts = json!([{"name": "d", "mountPath": "/data"}, {"name": "e", "mountPath": "/tmp/e"},
        {"name": "d", "mountPath": "/part", "subPath": "part"}]);
    let volumes = json!([{"name": "d", "persistentVolumeClaim": {"claimName": "claim"}},
        {"name": "e", "emptyDir": {"sizeLimit": "1Gi"}}]);
    let material = material_of(&one(json!({"volumeMounts": mounts}), volumes), &found()).unwrap();
    let shown = |(path, volume): (&String, &Volume)| {
        format!("{path} {} {:?} {}", volume.id, volume.capacity.map(|bytes| bytes >> 30), volume.persistent)
    };
    let shown: Vec<_> = material.volumes.iter().map(shown).collect();
    assert_eq!(shown, ["/data c1 Some(10) true", "/part c1/part Some(10) true", "/tmp/e u1-e Some(1) false"]);
}

#[test]
fn what_an_init_container_left_is_where_the_volume_is_mounted() {
    let pod = one(
        json!({"volumeMounts": [{"name": "init", "mountPath": "/opt/kafka/init"}]}),
        json!([{"name": "init", "emptyDir": {}}]),
    );
    let file = File { bytes: b"zone-1".to_vec(), mode: 0o644 };
    let left: Left = [(("init".to_owned(), "rack.id".to_owned()), file)].into();
    let material = resolve(&pod, &Found::default(), &left).unwrap().remove("main").unwrap();
    assert_eq!(material.files.text("/opt/kafka/init/rack.id"), Some("zone-1"));
}

#[test]
fn variables_come_from_everywhere_and_refer_to_those_before_them() {
    let env = json!([
        {"name": "PLAIN", "value": "p"}, {"name": "TWICE", "value": "$(PLAIN)$(PLAIN) $$(PLAIN) $(NONE) $x"},
        {"name": "MAP", "valueFrom": {"configMapKeyRef": {"name": "map", "key": "b"}}},
        {"name": "SECRET", "valueFrom": {"secretKeyRef": {"name": "secret", "key": "key"}}},
        {"name": "ABSENT", "valueFrom": {"secretKeyRef": {"name": "no", "key": "no", "optional": true}}},
        {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        {"name": "LABEL", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['zone']"}}},
    ]);
    let container = json!({"command": ["run", "$(PLAIN)"], "args": ["--node", "$(NODE)"], "env": env,
        "envFrom": [{"prefix": "ALL_", "configMapRef": {"name": "map"}}, {"secretRef": {"name": "secret"}}]});
    let material = material_of(&one(container, json!([])), &found()).unwrap();
    assert_eq!(material.command, ["run", "p", "--node", "evenkeel-1"]);
    let env: Vec<_> = material.env.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let expected = [
        "ALL_a=1",
        "ALL_b=two",
        "HOSTNAME=pod-0",
        "LABEL=a",
        "MAP=two",
        "NODE=evenkeel-1",
        "PLAIN=p",
        "SECRET=hush",
        "TWICE=pp $(PLAIN) $(NONE) $x",
        "key=hush",
    ];
    assert_eq!(env, expected);
}

#[test]
fn what_is_missing_is_named() {
    let volume = |volume: Value| {
        let mut volume = volume;
        volume["name"] = json!("v");
        one(json!({}), json!([volume]))
    };
    let variable = |from: Value| one(json!({"env": [{"name": "V", "valueFrom": from}]}), json!([]));
    for (pod, expected) in [
        (volume(json!({"configMap": {"name": "no"}})), r#"configmap "no" not found"#),
        (volume(json!({"secret": {"secretName": "no"}})), r#"secret "no" not found"#),
        (
            volume(json!({"configMap": {"name": "map", "items": [{"key": "no", "path": "x"}]}})),
            r#"configmap "map" references non-existent key: no"#,
        ),
        (volume(json!({"persistentVolumeClaim": {"claimName": "no"}})), r#"persistentvolumeclaim "no" not found"#),
        (
            volume(json!({"persistentVolumeClaim": {"claimName": "pending"}})),
            r#"persistentvolumeclaim "pending" is not bound"#,
        ),
        (volume(json!({"hostPath": {"path": "/"}})), r#"volume "v" is of a kind that the local node does not have"#),
        (variable(json!({"configMapKeyRef": {"name": "no", "key": "a"}})), r#"configmap "no" not found"#),
        (
            variable(json!({"configMapKeyRef": {"name": "map", "key": "no"}})),
            "couldn't find key no in ConfigMap ns/map",
        ),
        (
            variable(json!({"secretKeyRef": {"name": "secret", "key": "no"}})),
            "couldn't find key no in Secret ns/secret",
        ),
        (variable(json!({"fieldRef": {"fieldPath": "spec.no"}})), "unsupported fieldPath: spec.no"),
        (one(json!({"volumeMounts": [{"name": "v", "mountPath": "/v"}]}), json!([])), r#"volume "v" is not defined"#),
    ] {
        assert_eq!(material_of(&pod, &found()).unwrap_err(), expected);
    }
    for optional in [
        json!({"configMap": {"name": "no", "optional": true}}),
        json!({"secret": {"secretName": "no", "optional": true}}),
        json!({"configMap": {"name": "map", "optional": true, "items": [{"key": "no", "path": "x"}]}}),
    ] {
        assert_eq!(files(&material_of(&volume(optional), &found()).unwrap()), [""; 0]);
    }
}
