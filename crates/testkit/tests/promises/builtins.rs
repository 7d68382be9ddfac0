//! Built-in kinds: their defaults, their own rules, and events in both groups.

use serde_json::{Value, json};

use crate::answer::names;
use crate::world::{MERGE, World, with_query};

promises!(
    a_service_gets_an_address_and_defaults,
    a_headless_service_has_no_address,
    an_address_is_not_given_twice,
    a_list_of_addresses_begins_with_the_address,
    a_node_port_is_of_its_range_and_not_given_twice,
    a_service_leaves_behind_what_its_type_gave_it,
    a_deployment_gets_its_defaults,
    a_deployment_must_select_its_own_pods,
    a_pod_gets_its_defaults,
    a_pod_spec_hardly_changes,
    secrets_take_plain_text,
    secrets_hold_base64,
    a_config_map_may_be_immutable,
    a_config_map_key_is_a_file_name,
    a_lease_lasts_longer_than_nothing,
    events_are_one_store_with_two_faces,
    events_select_by_what_they_are_about,
    events_of_the_new_group_are_checked,
    an_access_review_says_yes_to_the_administrator,
    protobuf_bodies_are_read,
);

async fn a_service_gets_an_address_and_defaults(world: World) {
    let body = json!({"metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}]}});
    let spec = world.post(&world.core("services"), body).await.ok()["spec"].take();
    let address: std::net::Ipv4Addr = spec["clusterIP"].as_str().unwrap().parse().expect("an address");
    assert_eq!(address.octets()[0], 10);
    assert_eq!(spec["clusterIPs"], json!([spec["clusterIP"]]));
    assert_eq!(spec["ports"], json!([{"protocol": "TCP", "port": 80, "targetPort": 80}]));
    for (field, value) in [
        ("type", json!("ClusterIP")),
        ("sessionAffinity", json!("None")),
        ("ipFamilies", json!(["IPv4"])),
        ("ipFamilyPolicy", json!("SingleStack")),
        ("internalTrafficPolicy", json!("Cluster")),
    ] {
        assert_eq!(spec[field], value, "{field}");
    }
    let answer = world
        .patch(MERGE, &format!("{}/a", world.core("services")), json!({"spec": {"clusterIP": "10.0.0.250"}}))
        .await;
    answer.refused(422, "Invalid").mentions("may not change once set");
}

async fn a_headless_service_has_no_address(world: World) {
    let body = json!({"metadata": {"name": "a"}, "spec": {"clusterIP": "None", "selector": {"app": "a"}, "ports": [{"port": 9092}]}});
    let spec = world.post(&world.core("services"), body).await.ok()["spec"].take();
    assert_eq!((&spec["clusterIP"], &spec["clusterIPs"]), (&json!("None"), &json!(["None"])));
}

async fn an_address_is_not_given_twice(world: World) {
    let service = |name: &str| json!({"metadata": {"name": name}, "spec": {"ports": [{"port": 80}]}});
    let first = world.post(&world.core("services"), service("a")).await.ok()["spec"]["clusterIP"].take();
    let second = world.post(&world.core("services"), service("b")).await.ok()["spec"]["clusterIP"].take();
    assert_ne!(first, second);
    let mut third = service("c");
    third["spec"]["clusterIP"] = first;
    let answer = world.post(&world.core("services"), third).await.refused(422, "Invalid");
    answer.mentions("provided IP is already allocated");
}

async fn a_list_of_addresses_begins_with_the_address(world: World) {
    let service = |name: &str, ip: Value, ips: Value| json!({"metadata": {"name": name}, "spec": {"clusterIP": ip, "clusterIPs": ips, "ports": [{"port": 80}]}});
    let services = world.core("services");
    let first = world.post(&services, service("a", json!(null), json!(null))).await.ok()["spec"]["clusterIP"].take();
    for (ip, ips, why) in [
        // Whether somebody has it or not: a list alone asks for nothing.
        (json!(null), json!([first]), "must be empty when `clusterIP` is not specified"),
        (json!("10.0.0.77"), json!([first]), "first value must match `clusterIP`"),
        (json!("10.0.0.77"), json!(["10.0.0.77", "10.0.0.78"]), "may specify no more than one IP for each IP family"),
    ] {
        let answer = world.post(&services, service("b", ip, ips.clone())).await.refused(422, "Invalid");
        answer.says(&format!("Service \"b\" is invalid: spec.clusterIPs: Invalid value: {ips}: {why}"));
    }
    let both = service("b", json!("10.0.0.77"), json!(["10.0.0.77"]));
    let spec = world.post(&services, both).await.ok()["spec"].take();
    assert_eq!((&spec["clusterIP"], &spec["clusterIPs"]), (&json!("10.0.0.77"), &json!(["10.0.0.77"])));
    // Later, who leaves out one of the two means what was there.
    let one = format!("{services}/b");
    let answer = world.patch(MERGE, &one, json!({"spec": {"clusterIPs": [first]}})).await.refused(422, "Invalid");
    answer.mentions("first value must match `clusterIP`");
    let kept = world.patch(MERGE, &one, json!({"spec": {"clusterIP": null, "clusterIPs": null}})).await.ok();
    assert_eq!(kept["spec"]["clusterIP"], "10.0.0.77");
}

async fn a_node_port_is_of_its_range_and_not_given_twice(world: World) {
    let service =
        |name: &str, ports: Value| json!({"metadata": {"name": name}, "spec": {"type": "NodePort", "ports": ports}});
    let made = world.post(&world.core("services"), service("a", json!([{"port": 80}]))).await.ok();
    let given = made["spec"]["ports"][0]["nodePort"].clone();
    let free = json!({"name": "free", "port": 79});
    for (wanted, why) in [
        (given.clone(), "provided port is already allocated"),
        (json!(80), "provided port is not in the valid range. The range of valid ports is 30000-32767"),
    ] {
        let ports = json!([free, {"name": "wanted", "port": 80, "nodePort": wanted}]);
        let answer = world.post(&world.core("services"), service("b", ports)).await.refused(422, "Invalid");
        answer.says(&format!("Service \"b\" is invalid: spec.ports[1].nodePort: Invalid value: {wanted}: {why}"));
    }
    // One number in two protocols is one port of the nodes.
    let dns =
        json!([{"name": "t", "port": 53}, {"name": "u", "port": 53, "protocol": "UDP"}, {"name": "x", "port": 54}]);
    let ports = world.post(&world.core("services"), service("dns", dns)).await.ok()["spec"]["ports"].take();
    assert_eq!(ports[0]["nodePort"], ports[1]["nodePort"]);
    assert_ne!(ports[0]["nodePort"], ports[2]["nodePort"]);
    // Its own it may keep, whatever else changes.
    let one = format!("{}/a", world.core("services"));
    let changed = world.patch(MERGE, &one, json!({"spec": {"ports": [{"port": 81, "nodePort": given}]}})).await.ok();
    assert_eq!(changed["spec"]["ports"][0]["nodePort"], given);
    world.delete(&one, json!(null)).await.code(200);
    world.post(&world.core("services"), service("b", json!([{"port": 80, "nodePort": given}]))).await.code(201);
}

async fn a_service_leaves_behind_what_its_type_gave_it(world: World) {
    let service = json!({"metadata": {"name": "a"}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}});
    let made = world.post(&world.core("services"), service).await.ok();
    assert_eq!(made["spec"]["externalTrafficPolicy"], "Cluster");
    let one = format!("{}/a", world.core("services"));
    let changed_to = async |spec: Value| world.patch(MERGE, &one, json!({"spec": spec})).await.ok()["spec"].take();

    let inside = changed_to(json!({"type": "ClusterIP"})).await;
    assert_eq!(inside["ports"], json!([{"protocol": "TCP", "port": 80, "targetPort": 80}]));
    assert_eq!(inside["clusterIP"], made["spec"]["clusterIP"]);
    assert!(inside.get("externalTrafficPolicy").is_none(), "{inside}");

    let balanced = changed_to(json!({"type": "LoadBalancer"})).await;
    assert!(
        balanced["ports"][0]["nodePort"].is_u64() && balanced["allocateLoadBalancerNodePorts"] == true,
        "{balanced}"
    );

    let outside = changed_to(json!({"type": "ExternalName", "externalName": "a.example.com"})).await;
    for field in ["clusterIP", "clusterIPs", "externalTrafficPolicy", "allocateLoadBalancerNodePorts"] {
        assert!(outside.get(field).is_none(), "{field} in {outside}");
    }
    assert!(outside["ports"][0].get("nodePort").is_none(), "{outside}");
    let back = changed_to(json!({"type": "ClusterIP", "externalName": null})).await;
    assert!(back["clusterIP"].as_str().is_some_and(|ip| ip.starts_with("10.")), "{back}");
}

fn deployment(labels: Value) -> Value {
    let pod = json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    json!({"metadata": {"name": "a"}, "spec": {"selector": {"matchLabels": {"app": "a"}}, "template": pod}})
}

async fn a_deployment_gets_its_defaults(world: World) {
    let path = world.of_group("apps/v1", "deployments");
    let spec = world.post(&path, deployment(json!({"app": "a"}))).await.ok()["spec"].take();
    assert_eq!((&spec["replicas"], &spec["revisionHistoryLimit"]), (&json!(1), &json!(10)));
    assert_eq!(spec["progressDeadlineSeconds"], 600);
    let rolling = json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}});
    assert_eq!(spec["strategy"], rolling);
    let pod = &spec["template"]["spec"];
    for (field, value) in [
        ("restartPolicy", json!("Always")),
        ("terminationGracePeriodSeconds", json!(30)),
        ("dnsPolicy", json!("ClusterFirst")),
        ("securityContext", json!({})),
        ("schedulerName", json!("default-scheduler")),
    ] {
        assert_eq!(pod[field], value, "{field}");
    }
    assert_eq!(pod["containers"][0], container("i"));
}

fn container(image: &str) -> Value {
    json!({"name": "c", "image": image, "resources": {}, "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File", "imagePullPolicy": "Always"})
}

async fn a_deployment_must_select_its_own_pods(world: World) {
    let path = world.of_group("apps/v1", "deployments");
    let answer = world.post(&path, deployment(json!({"app": "b"}))).await.refused(422, "Invalid");
    let answer = answer.causes(&[("FieldValueInvalid", "spec.template.metadata.labels")]);
    answer.mentions("`selector` does not match template `labels`");
    let mut nameless = deployment(json!({"app": "a"}));
    nameless["spec"]["template"]["spec"]["containers"] = json!([]);
    let answer = world.post(&path, nameless).await.refused(422, "Invalid");
    answer.causes(&[("FieldValueRequired", "spec.template.spec.containers")]);
    world.post(&path, deployment(json!({"app": "a"}))).await.ok();
    let other = json!({"spec": {"selector": {"matchLabels": {"app": "b"}}, "template": {"metadata": {"labels": {"app": "b"}}}}});
    let answer = world.patch(MERGE, &format!("{path}/a"), other).await.refused(422, "Invalid");
    answer.mentions("field is immutable");
}

async fn pod(world: &World) -> Value {
    let spec = json!({"containers": [{"name": "c", "image": "i:1"}], "automountServiceAccountToken": false});
    world.post(&world.core("pods"), json!({"metadata": {"name": "a"}, "spec": spec})).await.code(201).ok()
}

async fn a_pod_gets_its_defaults(world: World) {
    let pod = pod(&world).await;
    for (field, value) in [
        ("restartPolicy", json!("Always")),
        ("terminationGracePeriodSeconds", json!(30)),
        ("dnsPolicy", json!("ClusterFirst")),
        ("serviceAccountName", json!("default")),
        ("schedulerName", json!("default-scheduler")),
        ("enableServiceLinks", json!(true)),
        ("securityContext", json!({})),
    ] {
        assert_eq!(pod["spec"][field], value, "{field}");
    }
    let mut expected = container("i:1");
    expected["imagePullPolicy"] = json!("IfNotPresent");
    assert_eq!(pod["spec"]["containers"][0], expected);
    assert_eq!(pod["status"], json!({"phase": "Pending", "qosClass": "BestEffort"}));
}

async fn a_pod_spec_hardly_changes(world: World) {
    pod(&world).await;
    let one = format!("{}/a", world.core("pods"));
    let answer = world.patch(MERGE, &one, json!({"spec": {"restartPolicy": "Never"}})).await.refused(422, "Invalid");
    answer.mentions("spec: Forbidden: pod updates may not change fields other than");
    let image = json!({"spec": {"containers": [{"name": "c", "image": "i:2"}]}});
    let changed = world.patch(crate::world::STRATEGIC, &one, image).await.code(200).ok();
    assert_eq!(changed["spec"]["containers"][0]["image"], "i:2");
}

async fn secrets_take_plain_text(world: World) {
    let body = json!({"metadata": {"name": "a"}, "data": {"k": "b2xk", "other": "eA=="}, "stringData": {"k": "new"}});
    let secret = world.post(&world.core("secrets"), body).await.ok();
    assert_eq!((&secret["data"], &secret["type"]), (&json!({"k": "bmV3", "other": "eA=="}), &json!("Opaque")));
    assert!(secret.get("stringData").is_none());
}

async fn secrets_hold_base64(world: World) {
    let body = json!({"metadata": {"name": "a"}, "data": {"k": "not base64!"}});
    world.post(&world.core("secrets"), body).await.refused(400, "BadRequest").mentions("illegal base64 data");
    let body = json!({"metadata": {"name": "a"}, "type": "kubernetes.io/tls"});
    let answer = world.post(&world.core("secrets"), body).await.refused(422, "Invalid");
    answer.causes(&[("FieldValueRequired", "data[tls.crt]"), ("FieldValueRequired", "data[tls.key]")]);
}

async fn a_config_map_may_be_immutable(world: World) {
    world.post(&world.maps(), json!({"metadata": {"name": "a"}, "data": {"k": "v"}, "immutable": true})).await.ok();
    let one = format!("{}/a", world.maps());
    for (patch, field) in [
        (json!({"data": {"k": "w"}}), "data"),
        (json!({"immutable": false}), "immutable"),
        (json!({"immutable": null}), "immutable"),
    ] {
        let answer = world.patch(MERGE, &one, patch).await.refused(422, "Invalid");
        let answer = answer.causes(&[("FieldValueForbidden", field)]);
        answer.mentions("Forbidden: field is immutable when `immutable` is set");
    }
    world.patch(MERGE, &one, json!({"metadata": {"labels": {"l": "1"}}})).await.code(200);
}

async fn a_config_map_key_is_a_file_name(world: World) {
    let body = json!({"metadata": {"name": "a"}, "data": {"no/slash": "v"}});
    world.post(&world.maps(), body).await.refused(422, "Invalid").causes(&[("FieldValueInvalid", "data[no/slash]")]);
    let body = json!({"metadata": {"name": "a"}, "data": {"k": 5}});
    world
        .post(&world.maps(), body)
        .await
        .refused(400, "BadRequest")
        .mentions("ConfigMap in version \"v1\" cannot be handled as a ConfigMap");
}

async fn a_lease_lasts_longer_than_nothing(world: World) {
    let path = world.of_group("coordination.k8s.io/v1", "leases");
    let body = json!({"metadata": {"name": "a"}, "spec": {"holderIdentity": "x", "leaseDurationSeconds": 0}});
    let answer = world.post(&path, body).await.refused(422, "Invalid");
    answer.mentions("spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0");
    let time = "2024-01-02T03:04:05.678901Z";
    let body = json!({"metadata": {"name": "a"}, "spec": {"holderIdentity": "x", "leaseDurationSeconds": 15, "renewTime": time}});
    assert_eq!(world.post(&path, body).await.ok()["spec"]["renewTime"], time, "microseconds are kept");
}

async fn events_are_one_store_with_two_faces(world: World) {
    let (old, new) = (world.core("events"), world.of_group("events.k8s.io/v1", "events"));
    let namespace = &world.namespace;
    let about = json!({"kind": "Pod", "namespace": namespace, "name": "p", "uid": "u"});
    let body = json!({"metadata": {"name": "e"}, "involvedObject": about, "reason": "R", "message": "M", "type": "Normal",
        "source": {"component": "c"}, "count": 3, "firstTimestamp": "2024-01-01T00:00:00Z", "lastTimestamp": "2024-01-01T00:00:09Z"});
    world.post(&old, body).await.code(201);
    let seen = world.get(&format!("{new}/e")).await.code(200).ok();
    assert_eq!(
        (&seen["apiVersion"], &seen["regarding"], &seen["note"]),
        (&json!("events.k8s.io/v1"), &about, &json!("M"))
    );
    assert_eq!((&seen["deprecatedCount"], &seen["deprecatedSource"]), (&json!(3), &json!({"component": "c"})));
    assert_eq!(seen["deprecatedFirstTimestamp"], "2024-01-01T00:00:00Z");

    let body = json!({"metadata": {"name": "f"}, "eventTime": "2024-01-01T00:00:00.123456Z", "reportingController": "c",
        "reportingInstance": "i", "action": "A", "reason": "R", "regarding": about, "note": "M", "type": "Warning"});
    world.post(&new, body).await.code(201);
    let seen = world.get(&format!("{old}/f")).await.code(200).ok();
    assert_eq!((&seen["apiVersion"], &seen["involvedObject"], &seen["message"]), (&json!("v1"), &about, &json!("M")));
    assert_eq!((&seen["reportingComponent"], &seen["reportingInstance"]), (&json!("c"), &json!("i")));
    assert_eq!(seen["eventTime"], "2024-01-01T00:00:00.123456Z");
    let series = json!({"series": {"count": 2, "lastObservedTime": "2024-01-01T00:00:05.000000Z"}});
    world.patch(MERGE, &format!("{new}/f"), series.clone()).await.code(200);
    assert_eq!(world.get(&format!("{old}/f")).await.ok()["series"], series["series"]);
}

async fn events_select_by_what_they_are_about(world: World) {
    let namespace = &world.namespace;
    for (name, kind, about) in [("e", "Pod", "p"), ("f", "Widget", "p"), ("g", "Pod", "q")] {
        let object = json!({"kind": kind, "namespace": namespace, "name": about, "uid": format!("uid-{name}")});
        let body = json!({"metadata": {"name": name}, "involvedObject": object, "reason": "R", "type": "Normal"});
        world.post(&world.core("events"), body).await.ok();
    }
    for (selector, expected) in [
        ("involvedObject.name=p".to_owned(), "e f"),
        ("involvedObject.name=p,involvedObject.kind=Pod".to_owned(), "e"),
        ("involvedObject.uid=uid-g".to_owned(), "g"),
        (format!("involvedObject.namespace={namespace},involvedObject.name=q"), "g"),
        ("reason=R,type=Normal,involvedObject.kind=Widget".to_owned(), "f"),
    ] {
        let list =
            world.get(&with_query(&world.core("events"), &format!("fieldSelector={selector}"))).await.code(200).ok();
        assert_eq!(names(&list).join(" "), expected, "{selector}");
    }
}

async fn events_of_the_new_group_are_checked(world: World) {
    let path = world.of_group("events.k8s.io/v1", "events");
    let answer = world.post(&path, json!({"metadata": {"name": "e"}, "reason": "R", "type": "Odd"})).await;
    answer.refused(422, "Invalid").causes(&[
        ("FieldValueInvalid", "involvedObject.namespace"),
        ("FieldValueRequired", "eventTime"),
        ("FieldValueInvalid", "type"),
    ]);
    let elsewhere =
        json!({"metadata": {"name": "e"}, "involvedObject": {"kind": "Pod", "namespace": "other", "name": "p"}});
    let answer = world.post(&world.core("events"), elsewhere).await.refused(422, "Invalid");
    answer.causes(&[("FieldValueInvalid", "involvedObject.namespace")]).mentions("does not match event.namespace");
}

async fn an_access_review_says_yes_to_the_administrator(world: World) {
    let body =
        json!({"spec": {"resourceAttributes": {"verb": "delete", "resource": "pods", "namespace": world.namespace}}});
    let answer = world.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body).await.code(201).ok();
    assert_eq!((&answer["kind"], &answer["status"]["allowed"]), (&json!("SelfSubjectAccessReview"), &json!(true)));
}

async fn protobuf_bodies_are_read(world: World) {
    // What `kubectl create configmap` sends: an envelope with the type, and the object inside.
    fn field(number: u8, content: &[u8]) -> Vec<u8> {
        let length = u8::try_from(content.len()).expect("short fields only");
        assert!(length < 128, "one byte of length");
        [&[number << 3 | 2, length], content].concat()
    }
    let meta = field(1, &field(1, b"from-protobuf"));
    let data = field(2, &[field(1, b"key"), field(2, b"value")].concat());
    let types = field(1, &[field(1, b"v1"), field(2, b"ConfigMap")].concat());
    let body = [b"k8s\0".to_vec(), types, field(2, &[meta, data].concat())].concat();
    let headers = [("content-type", "application/vnd.kubernetes.protobuf"), ("accept", "application/json")];
    let made = world.send(http::Method::POST, &world.maps(), &headers, body).await.code(201).ok();
    assert_eq!((&made["metadata"]["name"], &made["data"]), (&json!("from-protobuf"), &json!({"key": "value"})));
}
