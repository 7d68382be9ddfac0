//! Which pods serve a Service, where, and how that is said.

use serde_json::{Value, json};

use super::*;

fn service(spec: Value) -> Service {
    let mut all = json!({"selector": {"app": "kafka"}, "ports": [{"name": "tcp-replication", "port": 9091}]});
    all.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    let metadata = json!({"name": "c-kafka-brokers", "namespace": "ns", "uid": "s1", "labels": {"team": "a"}});
    serde_json::from_value(json!({"metadata": metadata, "spec": all})).unwrap()
}

fn pod(name: &str, ports: &str, ready: bool) -> Pod {
    serde_json::from_value(json!({
        "metadata": {"name": name, "namespace": "ns", "uid": format!("uid-{name}"), "labels": {"app": "kafka"},
            "annotations": {pods::PORTS: ports}},
        "spec": {"hostname": name, "subdomain": "c-kafka-brokers", "nodeName": "evenkeel-1",
            "containers": [{"name": "kafka", "ports": [{"name": "tcp-plain", "containerPort": 9092}]}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": if ready { "True" } else { "False" }}]},
    }))
    .unwrap()
}

fn shown(service: &Service, pods: &[Pod]) -> Vec<String> {
    let zones = [("evenkeel-1".to_owned(), "zone-1".to_owned())].into();
    let slices = slices(service, pods.iter(), &zones);
    let shown = slices.iter().map(|slice| {
        let ports: Vec<_> = slice.ports.iter().flatten().map(|port| format!("{:?}", port.port.unwrap())).collect();
        let conditions = slice.endpoints[0].conditions.clone().unwrap();
        let said =
            [(conditions.ready, "ready"), (conditions.serving, "serving"), (conditions.terminating, "terminating")];
        let said: Vec<_> = said.iter().filter(|(holds, _)| holds.unwrap()).map(|(_, name)| *name).collect();
        let host = slice.endpoints[0].hostname.clone().unwrap_or_default();
        format!("{} {host} {} {}", slice.name_any(), ports.join("+"), said.join("+"))
    });
    shown.collect()
}

#[test]
fn every_pod_has_its_own_slice_with_its_real_ports() {
    let pods = [pod("b-0", r#"{"9091":40001,"9092":40002}"#, true), pod("b-1", r#"{"9091":40003}"#, false)];
    let ports =
        json!([{"name": "tcp-replication", "port": 9091}, {"name": "p", "port": 80, "targetPort": "tcp-plain"}]);
    let service = service(json!({"ports": ports}));
    assert_eq!(
        shown(&service, &pods),
        ["c-kafka-brokers-b-0 b-0 40001+40002 ready+serving", "c-kafka-brokers-b-1 b-1 40003 "]
    );
    let slices = slices(&service, pods.iter(), &BTreeMap::new());
    let found = addresses(&service, &slices);
    let local = |port| vec![SocketAddr::from((Ipv4Addr::LOCALHOST, port))];
    assert_eq!(found, [(9091, local(40001)), (80, local(40002))].into());
    assert_eq!(slices[0].endpoints[0].target_ref.as_ref().unwrap().uid.as_deref(), Some("uid-b-0"));
    assert_eq!(slices[0].labels()[SERVICE], "c-kafka-brokers");
    assert_eq!(slices[0].labels()["team"], "a");
}

#[test]
fn who_is_not_ready_is_published_where_that_is_asked_for() {
    let mut going = pod("b-1", r#"{"9091":2}"#, true);
    going.metadata.deletion_timestamp = serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
    let pods = [pod("b-0", r#"{"9091":1}"#, false), going];
    assert_eq!(
        shown(&service(json!({})), &pods),
        ["c-kafka-brokers-b-0 b-0 1 ", "c-kafka-brokers-b-1 b-1 2 serving+terminating"]
    );
    let all = service(json!({"publishNotReadyAddresses": true, "clusterIP": "None"}));
    assert_eq!(
        shown(&all, &pods),
        ["c-kafka-brokers-b-0 b-0 1 ready", "c-kafka-brokers-b-1 b-1 2 ready+serving+terminating"]
    );
    let slices = slices(&all, pods.iter(), &BTreeMap::new());
    assert!(slices[0].labels().contains_key("service.kubernetes.io/headless"));
    assert_eq!(addresses(&all, &slices)[&9091].len(), 2);
}

#[test]
fn pods_without_the_port_without_ports_or_ended_are_left_out() {
    let mut ended = pod("b-0", r#"{"9091":1}"#, false);
    ended.status.as_mut().unwrap().phase = Some("Failed".into());
    let mut other = pod("b-1", r#"{"9091":1}"#, true);
    other.labels_mut().clear();
    let pods = [ended, other, pod("b-2", r#"{"9090":1}"#, true), pod("b-3", "{}", true), pod("b-4", "", true)];
    assert_eq!(shown(&service(json!({})), &pods), [""; 0]);
    let portless = service(json!({"ports": null, "clusterIP": "None"}));
    let names: Vec<_> = slices(&portless, pods.iter(), &BTreeMap::new()).iter().map(|slice| slice.name_any()).collect();
    assert_eq!(names, ["c-kafka-brokers-b-2", "c-kafka-brokers-b-3"]);
}

#[test]
fn a_service_without_a_selector_is_somebody_elses() {
    let pods = [pod("b-0", r#"{"9091":1}"#, true)];
    for selector in [json!(null), json!({})] {
        assert_eq!(shown(&service(json!({"selector": selector})), &pods), [""; 0]);
    }
}

#[test]
fn a_host_name_is_told_to_its_own_subdomain_only_and_names_are_not_too_long() {
    let mut elsewhere = pod("b-0", r#"{"9091":1}"#, true);
    elsewhere.spec.as_mut().unwrap().subdomain = Some("other".into());
    assert_eq!(shown(&service(json!({})), &[elsewhere]), ["c-kafka-brokers-b-0  1 ready+serving"]);
    let mut long = pod(&"x".repeat(250), r#"{"9091":1}"#, true);
    long.metadata.uid = Some("u9".into());
    assert!(shown(&service(json!({})), &[long])[0].starts_with("c-kafka-brokers-u9 "));
}

#[test]
fn a_service_looks_only_at_pods_that_it_may_mean() {
    let labelled = |name: &str, namespace: &str, cluster: &str| {
        let mut pod = pod(name, "{}", true);
        pod.metadata.namespace = Some(namespace.to_owned());
        pod.metadata.labels.get_or_insert_default().insert("cluster".to_owned(), cluster.to_owned());
        pod
    };
    let pods = [
        labelled("a-0", "ns", "a"),
        labelled("a-1", "ns", "a"),
        labelled("b-0", "ns", "b"),
        labelled("c", "other", "a"),
    ];
    let by_label = ByLabel::of(pods.iter());
    let looked_at = |selector: Value| {
        let service = service(json!({ "selector": selector }));
        by_label.perhaps_meant_by(&service).iter().map(|pod| pod.name_any()).collect::<Vec<_>>()
    };
    assert_eq!(looked_at(json!({"app": "kafka", "cluster": "a"})), ["a-0", "a-1"]);
    assert_eq!(looked_at(json!({"app": "kafka"})), ["a-0", "a-1", "b-0"]);
    assert_eq!(looked_at(json!({"app": "kafka", "cluster": "z"})), [""; 0]);
    assert_eq!(looked_at(Value::Null), [""; 0], "it has no selector");
}
