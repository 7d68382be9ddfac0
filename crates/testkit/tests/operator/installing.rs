//! The operator is put on a cluster and taken off again, in every way in which somebody might be hurt by it.

use std::time::{Duration, Instant};

use evenkeel_api::{Kafka, KafkaNodePool, KafkaRebalance, StrimziPodSet, annotations, labels};
use evenkeel_operator::installation::{self, DEFAULT_NAMESPACE, Done, Extent, Manifests, Outcome, definitions};
use evenkeel_operator::seams::NAME;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};

/// The image of the operator: no pod runs it here.
const IMAGE: &str = "registry.example/evenkeel:1";
/// How long kinds may take until they are served.
const PATIENCE: Duration = Duration::from_secs(120);

mod embedded_arm {
    use super::*;

    #[tokio::test]
    async fn nothing_hangs_and_what_others_installed_stays() {
        super::nothing_hangs_and_what_others_installed_stays(evenkeel_testkit::embedded().await, async || {}).await;
    }

    #[tokio::test(start_paused = true)]
    async fn an_operator_that_does_not_end_ends_the_removal() {
        let client = evenkeel_testkit::embedded().await;
        put(&client).await;
        hold(&client, "default", json!({})).await;
        let pods = Api::<Pod>::namespaced(client.clone(), DEFAULT_NAMESPACE);
        let labels = json!({"app.kubernetes.io/name": NAME});
        let pod = json!({"metadata": {"name": "operator-0", "labels": labels}, "spec": {"containers": [{"name": "x", "image": "x"}]}});
        pods.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.expect("a pod");
        let refused = installation::remove(&client, &manifests(), Extent::Operator, false).await;
        let refused = refused.expect_err("it runs").to_string();
        assert_eq!(refused, "pod/operator-0 in evenkeel does not end");
        // It was told to, and nothing was taken from it.
        let deployments = Api::<Deployment>::namespaced(client.clone(), DEFAULT_NAMESPACE);
        let deployment = deployments.get(NAME).await.expect("it is on record what it looked after");
        assert_eq!(deployment.spec.and_then(|spec| spec.replicas), Some(0));
        assert!(is_held(&client, "default").await);
        // Somebody says that it runs no more.
        installation::remove(&client, &manifests(), Extent::Operator, true).await.expect("a removal");
        assert!(!is_held(&client, "default").await);
    }

    #[tokio::test(start_paused = true)]
    async fn an_operator_that_others_installed_is_not_ended() {
        let client = evenkeel_testkit::embedded().await;
        put(&client).await;
        hold(&client, "default", json!({})).await;
        let deployments = Api::<Deployment>::namespaced(client.clone(), DEFAULT_NAMESPACE);
        let theirs = Patch::Merge(json!({"metadata": {"labels": {labels::APP_PART_OF: "somebody"}}}));
        deployments.patch(NAME, &PatchParams::default(), &theirs).await.expect("another mark");
        let refused = installation::remove(&client, &manifests(), Extent::Operator, false).await;
        let refused = refused.expect_err("it is not ours").to_string();
        assert_eq!(refused, "deployment/evenkeel-operator in evenkeel was not installed by this program");
        assert_eq!(deployments.get(NAME).await.unwrap().spec.and_then(|spec| spec.replicas), Some(1));
        assert!(is_held(&client, "default").await);
    }

    #[tokio::test(start_paused = true)]
    async fn only_what_the_operator_looked_after_is_released() {
        let client = evenkeel_testkit::embedded().await;
        put(&client).await;
        let deployments = Api::<Deployment>::namespaced(client.clone(), DEFAULT_NAMESPACE);
        let mut deployment = deployments.get(NAME).await.unwrap();
        let pod = deployment.spec.as_mut().and_then(|spec| spec.template.spec.as_mut()).unwrap();
        let variables = pod.containers[0].env.as_mut().unwrap();
        variables.iter_mut().find(|it| it.name == "STRIMZI_NAMESPACE").unwrap().value = Some("ours,shared".to_owned());
        deployments.replace(NAME, &PostParams::default(), &deployment).await.expect("other namespaces");
        for namespace in ["ours", "shared", "theirs"] {
            let made = serde_json::from_value(json!({"metadata": {"name": namespace}})).unwrap();
            Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &made).await.unwrap();
            hold(&client, namespace, json!({labels::CLUSTER: "lagoon"})).await;
        }
        // In a namespace that both look after, its cluster is Strimzi's.
        let set = json!({"metadata": {"name": "lagoon-quay", "labels": {labels::CLUSTER: "lagoon"}},
            "spec": {"selector": {"matchLabels": {}}, "pods": []}});
        let sets = Api::<StrimziPodSet>::namespaced(client.clone(), "shared");
        sets.create(&PostParams::default(), &serde_json::from_value(set).unwrap()).await.expect("a pod set");
        let done = remove(&client, Extent::Operator).await;
        for (namespace, held) in [("ours", false), ("shared", true), ("theirs", true)] {
            assert_eq!(is_held(&client, namespace).await, held, "{namespace}: {done:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_operator_that_lives_elsewhere_keeps_its_rights() {
        let client = evenkeel_testkit::embedded().await;
        let elsewhere = Manifests::new(Some("ops"), Some(IMAGE)).unwrap();
        installation::put(&client, &elsewhere).await.expect("the manifests are taken");
        hold(&client, "default", json!({})).await;
        let removed = installation::remove(&client, &manifests(), Extent::Operator, true).await;
        let put = installation::put(&client, &manifests()).await;
        for refused in [removed, put] {
            assert_eq!(refused.expect_err("it lives in ops").to_string(), "the operator lives in the namespace ops");
        }
        assert!(is_held(&client, "default").await);
        let binding = Api::<ClusterRoleBinding>::all(client.clone()).get(NAME).await.expect("its rights");
        assert_eq!(binding.subjects.unwrap()[0].namespace.as_deref(), Some("ops"));
        installation::put(&client, &elsewhere).await.expect("again where it is");
        installation::remove(&client, &elsewhere, Extent::Operator, false).await.expect("a removal");
        assert!(!is_held(&client, "default").await);
        // Where there was no operator it has looked after nothing.
        hold_again(&client, "default").await;
        remove(&client, Extent::Operator).await;
        assert!(is_held(&client, "default").await);
    }

    /// What the operator's Deployment says: its image, the one that it gives to engines, the namespaces and the labels.
    async fn told(client: &Client) -> [String; 4] {
        let deployments = Api::<Deployment>::namespaced(client.clone(), DEFAULT_NAMESPACE);
        let pod = deployments.get(NAME).await.unwrap().spec.and_then(|spec| spec.template.spec).unwrap();
        let container = &pod.containers[0];
        let variable = |name: &str| {
            let found = container.env.iter().flatten().find(|variable| variable.name == name);
            found.and_then(|found| found.value.clone()).unwrap_or_default()
        };
        let labels = variable("STRIMZI_CUSTOM_RESOURCE_SELECTOR");
        [container.image.clone().unwrap(), variable("EVENKEEL_IMAGE"), variable("STRIMZI_NAMESPACE"), labels]
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_installs_again_keeps_what_is_not_named() {
        let client = evenkeel_testkit::embedded().await;
        let nothing_named = Manifests::default();
        let refused = installation::put(&client, &nothing_named).await.expect_err("there is no image");
        assert_eq!(refused.to_string(), "no image is named, and none is published");
        let deployments = Api::<Deployment>::all(client.clone());
        assert!(deployments.list(&Default::default()).await.unwrap().items.is_empty(), "nothing was put");

        let narrow = manifests().watching(&["kafka".to_owned()]).unwrap().selecting(Some("team=a")).unwrap();
        installation::put(&client, &narrow).await.expect("the manifests are taken");
        assert_eq!(told(&client).await, [IMAGE, IMAGE, "kafka", "team=a"]);
        let done = installation::put(&client, &nothing_named).await.expect("the manifests are taken");
        assert_eq!(told(&client).await, [IMAGE, IMAGE, "kafka", "team=a"]);
        let line = format!("deployment/{NAME} applied; it keeps the image {IMAGE}: --image names no other");
        assert_eq!(done.last().map(ToString::to_string), Some(line));

        let newer = "registry.example/evenkeel:2";
        installation::put(&client, &Manifests::new(None, Some(newer)).unwrap()).await.expect("an upgrade");
        assert_eq!(told(&client).await, [newer, newer, "kafka", "team=a"]);
        let other = nothing_named.clone().selecting(Some("team=b")).unwrap();
        installation::put(&client, &other).await.expect("the manifests are taken");
        assert_eq!(told(&client).await, [newer, newer, "kafka", "team=b"]);
        let wide = nothing_named.watching(&["*".to_owned()]).unwrap().selecting(Some("")).unwrap();
        installation::put(&client, &wide).await.expect("the manifests are taken");
        assert_eq!(told(&client).await, [newer, newer, "*", ""]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_operator_that_would_look_after_clusters_of_another_one_is_not_installed() {
        let client = evenkeel_testkit::embedded().await;
        for definition in evenkeel_api::crds() {
            let definitions = Api::<CustomResourceDefinition>::all(client.clone());
            let theirs = CustomResourceDefinition {
                metadata: kube::core::ObjectMeta { labels: None, ..definition.metadata },
                ..definition
            };
            definitions.create(&PostParams::default(), &theirs).await.expect("a definition");
        }
        let kafka = json!({"metadata": {"name": "lagoon"}, "spec": {}});
        let kafkas = Api::<Kafka>::namespaced(client.clone(), "default");
        kafkas.create(&PostParams::default(), &serde_json::from_value(kafka).unwrap()).await.expect("a Kafka");
        let labels = json!({labels::CLUSTER: "lagoon", labels::KIND: "Kafka"});
        let set = json!({"metadata": {"name": "lagoon-quay", "labels": labels},
            "spec": {"selector": {"matchLabels": {}}, "pods": []}});
        let sets = Api::<StrimziPodSet>::namespaced(client.clone(), "default");
        sets.create(&PostParams::default(), &serde_json::from_value(set).unwrap()).await.expect("a pod set");

        for watched in [vec![], vec!["*".to_owned()], vec!["default".to_owned()]] {
            let wide = manifests().watching(&watched).unwrap();
            let refused = installation::put(&client, &wide).await.expect_err("it is another operator's").to_string();
            assert!(refused.starts_with("the Kafkas default/lagoon belong to another operator"), "{refused}");
            assert!(Api::<ClusterRoleBinding>::all(client.clone()).get_opt(NAME).await.unwrap().is_none());
        }
        let elsewhere = manifests().watching(&["kafka".to_owned()]).unwrap();
        installation::put(&client, &elsewhere).await.expect("its namespace is not looked after");
        // An upgrade does not widen it.
        put(&client).await;
        assert_eq!(told(&client).await[2], "kafka");
        // Nor is it looked after under other labels, which stay when they are not named again.
        let everywhere = manifests().watching(&["*".to_owned()]).unwrap();
        installation::put(&client, &everywhere).await.expect_err("whatever its labels are");
        let by_label = everywhere.clone().selecting(Some("by=us")).unwrap();
        installation::put(&client, &by_label).await.expect("it is selected by label");
        installation::put(&client, &everywhere).await.expect("it still is");
        assert_eq!(told(&client).await[2..], ["*", "by=us"]);
    }

    #[tokio::test(start_paused = true)]
    async fn clusters_of_others_do_not_go_with_definitions_of_ours() {
        let client = evenkeel_testkit::embedded().await;
        put(&client).await;
        let kafkas = Api::<Kafka>::namespaced(client.clone(), "default");
        for name in ["ours", "theirs"] {
            let kafka = json!({"metadata": {"name": name}, "spec": {}});
            kafkas.create(&PostParams::default(), &serde_json::from_value(kafka).unwrap()).await.expect("a Kafka");
        }
        let set = json!({"metadata": {"name": "theirs-quay", "labels": {labels::CLUSTER: "theirs"}},
            "spec": {"selector": {"matchLabels": {}}, "pods": []}});
        let sets = Api::<StrimziPodSet>::namespaced(client.clone(), "default");
        sets.create(&PostParams::default(), &serde_json::from_value(set).unwrap()).await.expect("a pod set");
        let refused = installation::remove(&client, &manifests(), Extent::Clusters, false).await;
        let refused = refused.expect_err("they are somebody else's").to_string();
        let theirs = "the Kafka default/theirs, the StrimziPodSet default/theirs-quay would go with the CRDs";
        assert!(refused.starts_with(theirs), "{refused}");
        assert!(kafkas.get_opt("theirs").await.unwrap().is_some() && kafkas.get_opt("ours").await.unwrap().is_some());
        let deployments = Api::<Deployment>::namespaced(client.clone(), DEFAULT_NAMESPACE);
        assert_eq!(deployments.get(NAME).await.unwrap().spec.and_then(|spec| spec.replicas), Some(1), "it runs on");
        sets.delete("theirs-quay", &DeleteParams::default()).await.unwrap();
        kafkas.delete("theirs", &DeleteParams::default()).await.unwrap();
        remove(&client, Extent::Clusters).await;
        assert!(kafkas.list(&Default::default()).await.is_err(), "the kind is gone");
    }

    #[tokio::test(start_paused = true)]
    async fn brokers_with_racks_keep_the_role_that_they_need() {
        let client = evenkeel_testkit::embedded().await;
        put(&client).await;
        let bindings = Api::<ClusterRoleBinding>::all(client.clone());
        let binding = json!({
            "metadata": {"name": "strimzi-default-lagoon-kafka-init", "labels": {labels::CLUSTER: "lagoon"}},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "strimzi-kafka-broker"},
            "subjects": [{"kind": "ServiceAccount", "name": "lagoon-kafka", "namespace": "default"}],
        });
        bindings.create(&PostParams::default(), &serde_json::from_value(binding).unwrap()).await.expect("a binding");
        let roles = Api::<ClusterRole>::all(client.clone());
        let done = remove(&client, Extent::Operator).await;
        assert!(roles.get_opt("strimzi-kafka-broker").await.unwrap().is_some(), "{done:?}");
        put(&client).await;
        let done = remove(&client, Extent::Clusters).await;
        assert!(bindings.list(&Default::default()).await.unwrap().items.is_empty(), "{done:?}");
        assert!(roles.get_opt("strimzi-kafka-broker").await.unwrap().is_none(), "{done:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn where_only_another_version_is_served_nothing_hangs_either() {
        let client = evenkeel_testkit::embedded().await;
        let definitions = Api::<CustomResourceDefinition>::all(client.clone());
        for mut old in evenkeel_api::crds() {
            old.metadata.labels = None;
            old.spec.versions.retain(|version| version.name == "v1beta2");
            old.spec.versions.iter_mut().for_each(|version| version.storage = true);
            definitions.create(&PostParams::default(), &old).await.expect("a definition");
        }
        let done = put(&client).await;
        let told = done.iter().filter(|it| it.to_string().contains("it serves no v1,")).count();
        assert_eq!(told, 4, "{done:?}");
        let kind = kube::api::ApiResource {
            version: "v1beta2".to_owned(),
            api_version: "kafka.strimzi.io/v1beta2".to_owned(),
            ..kube::api::ApiResource::erase::<KafkaRebalance>(&())
        };
        let rebalances = Api::<kube::api::DynamicObject>::namespaced_with(client.clone(), "default", &kind);
        let held = serde_json::from_value(json!({
            "apiVersion": kind.api_version, "kind": kind.kind,
            "metadata": {"name": "held", "finalizers": [annotations::REBALANCE_FINALIZER]}, "spec": {},
        }));
        rebalances.create(&PostParams::default(), &held.unwrap()).await.expect("a rebalance");
        remove(&client, Extent::Operator).await;
        assert!(rebalances.get("held").await.expect("it is there").finalizers().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn node_pools_do_not_go_with_their_definition() {
        let client = evenkeel_testkit::embedded().await;
        put(&client).await;
        let pool = json!({"metadata": {"name": "quay"}, "spec": {"replicas": 1, "roles": ["broker"], "storage": {"type": "ephemeral"}}});
        let pools = Api::<KafkaNodePool>::namespaced(client.clone(), "default");
        pools.create(&PostParams::default(), &serde_json::from_value(pool).unwrap()).await.expect("a pool");
        let refused = installation::remove(&client, &manifests(), Extent::Crds, false).await;
        let refused = refused.expect_err("it holds data").to_string();
        assert_eq!(refused, "the KafkaNodePool default/quay would go with the CRDs");
        assert!(pools.get_opt("quay").await.unwrap().is_some());
    }
}

/// A rebalance that an operator holds.
async fn hold(client: &Client, namespace: &str, labels: Value) {
    let held = json!({"metadata": {"name": "held", "labels": labels, "finalizers": FINALIZERS}, "spec": {}});
    let api = Api::<KafkaRebalance>::namespaced(client.clone(), namespace);
    api.create(&PostParams::default(), &serde_json::from_value(held).unwrap()).await.expect("a rebalance");
}

/// The same once more, after it was released.
async fn hold_again(client: &Client, namespace: &str) {
    let api = Api::<KafkaRebalance>::namespaced(client.clone(), namespace);
    let held = Patch::Merge(json!({"metadata": {"finalizers": FINALIZERS}}));
    api.patch("held", &PatchParams::default(), &held).await.expect("it is held again");
}

async fn is_held(client: &Client, namespace: &str) -> bool {
    let api = Api::<KafkaRebalance>::namespaced(client.clone(), namespace);
    !api.get("held").await.expect("it is there").finalizers().is_empty()
}

const FINALIZERS: [&str; 2] = [annotations::REBALANCE_FINALIZER, annotations::AUTO_REBALANCING_FINALIZER];

#[cfg(feature = "real-kube")]
mod real_arm {
    use evenkeel_testkit::real_kube::{ControlPlane, KUBETEST};

    /// On a control plane of its own: it removes everything.
    #[tokio::test]
    async fn nothing_hangs_and_what_others_installed_stays() {
        let kubetest = std::env::var_os(KUBETEST).expect("`cargo xtask real kube` says where kubetest is");
        let control_plane = ControlPlane::start(kubetest.as_ref()).await.expect("a control plane");
        let client = control_plane.client().await.expect("a client");
        let controllers = async || control_plane.start_controller_manager().await.expect("the real controllers");
        super::nothing_hangs_and_what_others_installed_stays(client, controllers).await;
    }
}

fn manifests() -> Manifests {
    Manifests::new(None, Some(IMAGE)).expect("an image")
}

async fn put(client: &Client) -> Vec<Done> {
    installation::put(client, &manifests()).await.expect("the manifests are taken")
}

async fn remove(client: &Client, extent: Extent) -> Vec<Done> {
    installation::remove(client, &manifests(), extent, false).await.expect("a removal")
}

/// `controllers` starts those that every cluster has: the real ones want to know our kinds from the beginning.
async fn nothing_hangs_and_what_others_installed_stays(client: Client, controllers: impl AsyncFn()) {
    let all_applied = |done: &[Done]| assert!(done.iter().all(|it| it.outcome == Outcome::Applied), "{done:?}");
    all_applied(&put(&client).await);
    all_applied(&put(&client).await);
    controllers().await;
    let kafkas = Api::<Kafka>::namespaced(client.clone(), "default");
    let rebalances = Api::<KafkaRebalance>::namespaced(client.clone(), "default");
    let begun = Instant::now();
    while kafkas.list(&Default::default()).await.is_err() || rebalances.list(&Default::default()).await.is_err() {
        assert!(begun.elapsed() < PATIENCE, "our kinds are not served");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let kafka = json!({"metadata": {"name": "lagoon"}, "spec": {}});
    kafkas.create(&PostParams::default(), &serde_json::from_value(kafka).unwrap()).await.expect("a Kafka");
    // As an operator leaves it that was killed in the midst of a run.
    hold(&client, "default", json!({})).await;
    rebalances.delete("held", &DeleteParams::default()).await.expect("a deletion that waits");
    assert!(rebalances.get_opt("held").await.expect("an answer").is_some());

    // Clusters do not go by the way.
    let refused = installation::remove(&client, &manifests(), Extent::Crds, false).await.expect_err("a Kafka is there");
    assert!(refused.to_string().contains("default/lagoon"), "{refused}");
    let done = remove(&client, Extent::Operator).await;
    assert!(!done.iter().any(|it| it.outcome == Outcome::Going), "{done:?}");
    assert!(rebalances.get_opt("held").await.expect("an answer").is_none(), "its finalizers are off: {done:?}");
    assert!(kafkas.get_opt("lagoon").await.expect("an answer").is_some(), "clusters stay");
    let namespaces = Api::<Namespace>::all(client.clone());
    assert!(namespaces.get_opt(DEFAULT_NAMESPACE).await.expect("an answer").is_none());

    // If it is said that they may, everything goes.
    all_applied(&put(&client).await);
    let done = remove(&client, Extent::Clusters).await;
    assert!(done.iter().all(|it| it.outcome == Outcome::Removed), "{done:?}");
    let definitions = Api::<CustomResourceDefinition>::all(client.clone());
    let left = definitions.list_metadata(&Default::default()).await.expect("a list").items;
    assert!(left.is_empty(), "{left:?}");

    // And where there is none, the definitions go without being asked twice.
    all_applied(&put(&client).await);
    let done = remove(&client, Extent::Crds).await;
    assert!(done.iter().all(|it| it.outcome == Outcome::Removed), "{done:?}");

    // Somebody else's definition is neither overwritten nor removed, and what it does not know is said.
    let mut foreign = serde_json::to_value(&evenkeel_api::crds()[0]).unwrap();
    foreign["metadata"]["labels"] = json!({"app": "strimzi"});
    for version in foreign["spec"]["versions"].as_array_mut().unwrap() {
        let modes = "/schema/openAPIV3Schema/properties/spec/properties/cruiseControl/properties/autoRebalance/items";
        version.pointer_mut(modes).unwrap()["properties"]["mode"]["enum"] = json!(["add-brokers", "remove-brokers"]);
    }
    let foreign: CustomResourceDefinition = serde_json::from_value(foreign).unwrap();
    definitions.create(&PostParams::default(), &foreign).await.expect("a definition");
    let name = foreign.metadata.name.unwrap_or_default();
    let lack = "the API server refuses `imbalance` as `spec.cruiseControl.autoRebalance[].mode`";
    let done = put(&client).await;
    assert!(done.iter().any(|it| it.to_string().ends_with(lack)), "{done:?}");
    let looked = definitions::look(&client).await.expect("an answer");
    let looked: Vec<(&str, String)> = looked.iter().map(|(name, lack)| (name.as_str(), lack.to_string())).collect();
    assert_eq!(looked, [(name.as_str(), lack.to_owned())]);
    for done in [done, remove(&client, Extent::Clusters).await] {
        let left: Vec<_> = done.iter().filter(|it| matches!(it.outcome, Outcome::Left(_))).collect();
        assert_eq!(left.len(), 1, "{done:?}");
        assert!(left[0].what.ends_with(&name), "{left:?}");
    }
    let found = definitions.get(&name).await.expect("it is still there").metadata;
    assert_eq!((found.labels, found.generation), (foreign.metadata.labels, Some(1)));
}
