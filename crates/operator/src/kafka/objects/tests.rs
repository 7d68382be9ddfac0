use evenkeel_api::annotations;
use expect_test::expect_file;
use kube::ResourceExt;
use serde_json::{Value, json};

use super::*;
use crate::kafka::{
    config::ServerConfig,
    testing::{Written, harbour, is_restricted, pod_facts},
};

fn sets(written: &Written) -> Vec<evenkeel_api::StrimziPodSet> {
    let model = written.model();
    pod_sets(&model, &pod_facts(&model))
}

fn pretty(value: &impl serde::Serialize) -> String {
    let value = serde_json::to_value(value).unwrap();
    serde_json::to_string_pretty(&value).unwrap() + "\n"
}

#[test]
fn a_broker_s_pod_is_complete() {
    let set = &sets(&harbour())[0];
    expect_file!["../../../tests/golden/broker-pod.json"].assert_eq(&pretty(&set.spec.pods[1]));
    assert_eq!((set.name_any().as_str(), set.spec.pods.len()), ("harbour-brokers", 3));
    assert_eq!(set.owner_references()[0].kind, "KafkaNodePool");
    assert_eq!(
        set.spec.selector.match_labels.as_ref().unwrap().get(labels::POOL_NAME).map(String::as_str),
        Some("brokers")
    );
}

#[test]
fn a_controller_s_pod_answers_on_its_own_port_and_has_no_rack() {
    let pod = serde_json::to_value(&sets(&harbour())[1].spec.pods[0]).unwrap();
    let container = &pod["spec"]["containers"][0];
    assert_eq!(container["ports"], json!([{"containerPort": 9090, "name": "tcp-ctrlplane", "protocol": "TCP"}]));
    assert_eq!(container["readinessProbe"]["tcpSocket"]["port"], 9090);
    assert_eq!((&pod["spec"]["initContainers"], &pod["spec"]["affinity"]), (&Value::Null, &Value::Null));
    assert_eq!(pod["metadata"]["labels"]["strimzi.io/controller-role"], "true");
}

#[test]
fn brokers_in_racks_run_where_there_is_one_and_apart_unless_the_user_says_where() {
    let affinity =
        |written: &Written| serde_json::to_value(&sets(written)[0].spec.pods[0]).unwrap()["spec"]["affinity"].clone();
    let own = affinity(&harbour());
    let (nodes, pods) = (&own["nodeAffinity"], &own["podAntiAffinity"]);
    let term = &nodes["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"][0]["matchExpressions"];
    assert_eq!(term, &json!([{"key": "topology.kubernetes.io/zone", "operator": "Exists"}]));
    let preferred = &pods["preferredDuringSchedulingIgnoredDuringExecution"][0]["podAffinityTerm"];
    assert_eq!(preferred["topologyKey"], "topology.kubernetes.io/zone");
    assert_eq!(preferred["labelSelector"]["matchLabels"][labels::NAME], "harbour-kafka");
    assert_eq!(pods["requiredDuringSchedulingIgnoredDuringExecution"], Value::Null, "two may have to share a place");
    assert_eq!(affinity(&harbour().with("/spec/kafka/rack", json!(null))), Value::Null);
    let theirs = json!({"podAffinity": {}});
    let written = harbour().with_brokers("/spec/template", json!({"pod": {"affinity": theirs}}));
    assert_eq!(affinity(&written), theirs);
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    let text = |written: &Written| serde_json::to_string(&sets(written)).unwrap();
    assert_eq!(text(&harbour()), text(&harbour()));
}

/// Annotation by annotation, which of a broker's hashes differ between two clusters.
fn changed(before: &Written, after: &Written) -> Vec<String> {
    let hashes = |written: &Written| -> BTreeMap<String, String> {
        let pod = &sets(written)[0].spec.pods[0];
        serde_json::from_value(pod["metadata"]["annotations"].clone()).unwrap()
    };
    let (before, after) = (hashes(before), hashes(after));
    before.into_iter().filter(|(key, value)| after.get(key) != Some(value)).map(|(key, _)| key).collect()
}

#[test]
fn a_change_changes_exactly_its_hashes() {
    let base = harbour();
    let both = [annotations::CONFIGURATION_HASH, annotations::REVISION];
    let only = [annotations::REVISION];
    for (what, after, expected) in [
        ("static setting", base.clone().with("/spec/kafka/config/num.io.threads", json!(9)), &both[..]),
        ("dynamic setting", base.clone().with("/spec/kafka/config/min.insync.replicas", json!(1)), &[]),
        ("image", base.clone().with("/spec/kafka/image", json!("other:1")), &only),
        ("memory", base.clone().with_brokers("/spec/resources/limits/memory", json!("9Gi")), &only),
        ("template", base.clone().with_brokers("/spec/template", json!({"pod": {"priorityClassName": "p"}})), &only),
        ("more brokers", base.clone().with_brokers("/spec/replicas", json!(4)), &[]),
        ("larger disks", base.clone().with_brokers("/spec/storage/volumes/0/size", json!("600Gi")), &[]),
        ("rack", base.clone().with("/spec/kafka/rack", json!(null)), &both),
        ("plain listener", base.clone().with("/spec/kafka/listeners/0/port", json!(9099)), &both),
        ("engine", base.clone().with("/spec/cruiseControl/config/num.partition.metrics.windows", json!(9)), &[]),
    ] {
        assert_eq!(changed(&base, &after), expected, "{what}");
    }
}

#[test]
fn claims_go_with_the_pool_only_if_asked_to() {
    let all = claims(&harbour().model());
    let names: Vec<String> = all.iter().map(ResourceExt::name_any).collect();
    assert_eq!(names.len(), 9);
    assert_eq!(names[..2], ["data-0-harbour-brokers-0", "data-1-harbour-brokers-0"]);
    assert_eq!(names[6], "data-harbour-controllers-100");
    assert_eq!((all[0].owner_references().len(), all[6].owner_references().len()), (0, 1));
    assert_eq!(
        (&all[0].annotations()[annotations::DELETE_CLAIM], &all[6].annotations()[annotations::DELETE_CLAIM]),
        (&"false".to_owned(), &"true".to_owned())
    );
    let spec = all[0].spec.as_ref().unwrap();
    assert_eq!(spec.storage_class_name.as_deref(), Some("fast"));
    let ephemeral = harbour().with_brokers("/spec/storage", json!({"type": "ephemeral", "sizeLimit": "1Gi"}));
    assert_eq!(claims(&ephemeral.model()).len(), 3);
}

#[test]
fn services_have_the_ports_of_the_listeners() {
    let model = harbour().model();
    let ports = |service: k8s_openapi::api::core::v1::Service| -> Vec<(String, i32)> {
        let ports = service.spec.unwrap().ports.unwrap();
        ports.into_iter().map(|port| (port.name.unwrap(), port.port)).collect()
    };
    let named =
        |all: &[(&str, i32)]| -> Vec<(String, i32)> { all.iter().map(|(n, p)| ((*n).to_owned(), *p)).collect() };
    let listeners = [("tcp-replication", 9091), ("tcp-plain", 9092), ("tcp-tls", 9093)];
    assert_eq!(ports(bootstrap_service(&model)), named(&listeners));
    let headless = brokers_service(&model);
    assert_eq!(headless.spec.as_ref().unwrap().cluster_ip.as_deref(), Some("None"));
    assert_eq!(ports(headless)[0], ("tcp-ctrlplane".to_owned(), 9090));
}

#[test]
fn policies_fit_the_cluster() {
    let model = harbour().model();
    let budget = disruption_budget(&model).spec.unwrap();
    assert_eq!(serde_json::to_value(budget.min_available).unwrap(), 5);
    let policy = serde_json::to_value(network_policy(&model)).unwrap();
    assert_eq!(policy["spec"]["ingress"].as_array().unwrap().len(), 4);
    assert_eq!(policy["spec"]["ingress"][2]["from"], Value::Null, "everybody may use a listener without peers");
    let peers = harbour()
        .with("/spec/kafka/listeners/0/networkPolicyPeers", json!([{"podSelector": {"matchLabels": {"a": "b"}}}]));
    let policy = serde_json::to_value(network_policy(&peers.model())).unwrap();
    assert_eq!(policy["spec"]["ingress"][2]["from"][0]["podSelector"]["matchLabels"]["a"], "b");

    assert!(rack_binding(&model).is_some());
    assert!(rack_binding(&harbour().with("/spec/kafka/rack", json!(null)).model()).is_none());
    assert_eq!(service_account(&model).automount_service_account_token, Some(false));
}

#[test]
fn a_node_s_config_map_holds_all_that_its_script_reads() {
    let model = harbour().with("/spec/kafka/metadataVersion", json!("4.1-IV1")).model();
    let node = &model.nodes[&0];
    let map = config_map(&model, node, &ServerConfig::of(&model, node, false), "abc");
    let data = map.data.as_ref().unwrap();
    let keys: Vec<&str> = data.keys().map(String::as_str).collect();
    assert_eq!(keys, ["cluster.id", "log4j2.properties", "metadata.version", "server.config"]);
    assert_eq!((data["cluster.id"].as_str(), data["metadata.version"].as_str()), ("abc", "4.1-IV1"));
    assert_eq!(map.name_any(), "harbour-brokers-0");
}

#[test]
fn pods_of_the_official_image_are_restricted_and_those_of_others_keep_their_user() {
    let pod = |written: &Written| serde_json::to_value(&sets(written)[0].spec.pods[0]["spec"]).unwrap();
    let official = pod(&harbour());
    assert!(is_restricted(&official), "{official}");
    assert_eq!(official["securityContext"]["runAsUser"], 1000, "the image names its user by a word");
    let other = pod(&harbour().with("/spec/kafka/image", json!("registry.example/kafka:1")));
    assert_eq!(
        (&other["securityContext"]["runAsUser"], &other["securityContext"]["fsGroup"]),
        (&Value::Null, &json!(1000))
    );
    assert!(!is_restricted(&other), "it may be root");
    let own = json!({"pod": {"securityContext": {"runAsUser": 7}}, "kafkaContainer": {"securityContext": {"privileged": true}}});
    let own = pod(&harbour().with("/spec/kafka/template", own));
    assert_eq!(own["securityContext"], json!({"runAsUser": 7}));
    assert_eq!(own["containers"][0]["securityContext"], json!({"privileged": true}));
}

#[test]
fn heaps_follow_the_user_or_the_memory() {
    let options = |value: Value| serde_json::from_value(value).unwrap();
    assert_eq!(container_heap(&options(json!({"-Xmx": "4g"})), Some(1)), Some("-Xmx4g".to_owned()));
    assert_eq!(container_heap(&options(json!({})), Some(2 << 30)), Some("-Xms1073741824 -Xmx1073741824".to_owned()));
    assert_eq!(container_heap(&options(json!({})), Some(64 << 30)), Some("-Xms5368709120 -Xmx5368709120".to_owned()));
    assert_eq!(container_heap(&options(json!({})), None), None);
}
