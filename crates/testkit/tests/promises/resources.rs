//! Our own resources on an API server: the definitions and `examples/` as a newcomer applies them, and what their
//! kinds can do. What is refused, and in which words, is in `resource_rules`.

use std::path::Path;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};

use crate::answer::version;
use crate::widgets::DEFINITIONS;
use crate::world::{MERGE, World};

promises!(
    the_definitions_are_accepted_and_established,
    every_example_is_applied_and_applied_again,
    every_example_is_admitted_in_both_versions,
    what_one_version_wrote_the_other_reads_and_writes,
    a_node_pool_is_scaled,
    a_rebalance_gets_its_mode,
    unknown_fields_are_kept,
    a_field_left_blank_counts_as_left_out,
    status_is_apart,
);

/// Who applies the definitions, in every promise: with one owner, applying them again changes nothing.
const MANAGER: &str = "promises";

/// One of our kinds, installed.
pub(crate) struct Kind {
    group: String,
    plural: String,
    kind: String,
}

impl Kind {
    /// Path of the objects in the world's namespace.
    pub(crate) fn path(&self, world: &World, version: &str) -> String {
        world.of_group(&format!("{}/{version}", self.group), &self.plural)
    }

    /// An object to send.
    pub(crate) fn object(&self, version: &str, name: &str, spec: Value) -> Value {
        let api_version = format!("{}/{version}", self.group);
        json!({"apiVersion": api_version, "kind": self.kind, "metadata": {"name": name}, "spec": spec})
    }
}

/// All of them.
pub(crate) struct Kinds(Vec<Kind>);

impl Kinds {
    pub(crate) fn get(&self, kind: &str) -> &Kind {
        self.0.iter().find(|known| known.kind == kind).unwrap_or_else(|| panic!("what is a {kind}?"))
    }
}

/// Applies our definitions and waits until they serve. The real server is shared by all promises: whoever is first
/// makes them, nobody removes them.
pub(crate) async fn install(world: &World) -> Kinds {
    // Two that create the same object at once would get in each other's way.
    static ONE_AT_A_TIME: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
    let _turn = ONE_AT_A_TIME.lock().await;

    let mut kinds = Vec::new();
    for crd in evenkeel_api::crds() {
        world.force(MANAGER, &definition(&crd), serde_json::to_value(&crd).unwrap()).await.ok();
        let kind = Kind { group: crd.spec.group, plural: crd.spec.names.plural, kind: crd.spec.names.kind };
        for version in &crd.spec.versions {
            world.until(&kind.path(world, &version.name), |answer| answer.code == 200).await;
        }
        kinds.push(kind);
    }
    Kinds(kinds)
}

fn definition(crd: &CustomResourceDefinition) -> String {
    format!("{DEFINITIONS}/{}", crd.metadata.name.as_deref().expect("a definition has a name"))
}

/// All documents of `examples/`, each with the name of its file.
fn examples() -> Vec<(String, Value)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let read = |path: &std::path::PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let documents: Vec<Value> = serde_saphyr::from_multiple(&std::fs::read_to_string(path).unwrap()).unwrap();
        documents.into_iter().map(move |document| (name.clone(), document))
    };
    files.iter().flat_map(read).collect()
}

/// Where a document goes in this world.
fn place(world: &World, kinds: &Kinds, document: &Value) -> String {
    let (_, version) = document["apiVersion"].as_str().unwrap().split_once('/').expect("a group and a version");
    let path = kinds.get(document["kind"].as_str().unwrap()).path(world, version);
    format!("{path}/{}", document["metadata"]["name"].as_str().unwrap())
}

async fn the_definitions_are_accepted_and_established(world: World) {
    install(&world).await;
    for crd in evenkeel_api::crds() {
        let body = serde_json::to_value(&crd).unwrap();
        let first = world.get(&definition(&crd)).await.ok();
        let conditions = first["status"]["conditions"].as_array().unwrap();
        for kind in ["NamesAccepted", "Established"] {
            assert!(conditions.iter().any(|c| c["type"] == kind && c["status"] == "True"), "{kind}: {conditions:?}");
        }
        assert!(!conditions.iter().any(|c| c["type"] == "NonStructuralSchema"), "{conditions:?}");
        assert_eq!(first["status"]["storedVersions"], json!(["v1"]));
        let strict = format!("{}?fieldValidation=Strict", definition(&crd));
        let again = world.force(MANAGER, &strict, body).await;
        assert_eq!(again.warnings(), [""; 0]);
        assert_eq!(version(&again.code(200).ok()), version(&first), "applying it again changes nothing");
    }
}

async fn every_example_is_applied_and_applied_again(world: World) {
    let kinds = install(&world).await;
    let examples = examples();
    assert!(examples.len() > 20, "looked in the wrong place");
    for (file, document) in &examples {
        let path = format!("{}?fieldValidation=Strict", place(&world, &kinds, document));
        let made = world.apply("newcomer", &path, document.clone()).await;
        assert_eq!((made.code, made.warnings()), (201, vec![]), "{file}: {}", made.text);
        let again = world.apply("newcomer", &path, document.clone()).await.code(200).ok();
        assert_eq!(version(&again), version(&made.body), "{file}: applying it again changes nothing");
    }
    for (file, document) in &examples {
        let seen = world.get(&place(&world, &kinds, document)).await.code(200).ok();
        assert_eq!(seen["apiVersion"], document["apiVersion"], "{file}");
        assert_eq!(seen["metadata"]["generation"], 1, "{file}");
    }
}

async fn every_example_is_admitted_in_both_versions(world: World) {
    let kinds = install(&world).await;
    for (file, mut document) in examples() {
        for version in ["kafka.strimzi.io/v1", "kafka.strimzi.io/v1beta2"] {
            document["apiVersion"] = json!(version);
            let path = format!("{}?dryRun=All&fieldValidation=Strict", place(&world, &kinds, &document));
            let answer = world.apply("newcomer", &path, document.clone()).await;
            assert_eq!(answer.code, 201, "{file}: {}", answer.text);
        }
    }
}

async fn what_one_version_wrote_the_other_reads_and_writes(world: World) {
    let kinds = install(&world).await;
    let kind = kinds.get("KafkaRebalance");
    let spec = json!({"mode": "add-brokers", "brokers": [3, 4], "skipHardGoalCheck": true});
    let made = world.post(&kind.path(&world, "v1"), kind.object("v1", "a", spec.clone())).await.code(201).ok();
    let old = format!("{}/a", kind.path(&world, "v1beta2"));
    let mut seen = world.get(&old).await.code(200).ok();
    assert_eq!((&seen["apiVersion"], &seen["spec"]), (&json!("kafka.strimzi.io/v1beta2"), &spec));
    for field in ["uid", "resourceVersion", "generation"] {
        assert_eq!(seen["metadata"][field], made["metadata"][field], "{field}");
    }
    seen["spec"]["brokers"] = json!([5]);
    world.put(&old, &seen).await.code(200);
    let new = world.get(&format!("{}/a", kind.path(&world, "v1"))).await.code(200).ok();
    assert_eq!((&new["apiVersion"], &new["spec"]["brokers"]), (&json!("kafka.strimzi.io/v1"), &json!([5])));
}

/// What a pool cannot do without.
pub(crate) fn pool(storage: Value) -> Value {
    json!({"replicas": 1, "roles": ["broker"], "storage": storage})
}

async fn a_node_pool_is_scaled(world: World) {
    let kinds = install(&world).await;
    let kind = kinds.get("KafkaNodePool");
    for served in ["v1", "v1beta2"] {
        let path = kind.path(&world, served);
        let name = format!("pool-{served}");
        world.post(&path, kind.object(served, &name, pool(json!({"type": "ephemeral"})))).await.code(201);
        let one = format!("{path}/{name}");
        let status = json!({"status": {"replicas": 1, "labelSelector": "strimzi.io/pool-name=brokers"}});
        world.patch(MERGE, &format!("{one}/status"), status).await.code(200);
        let scale = world.patch(MERGE, &format!("{one}/scale"), json!({"spec": {"replicas": 5}})).await.code(200).ok();
        assert_eq!((&scale["apiVersion"], &scale["kind"]), (&json!("autoscaling/v1"), &json!("Scale")));
        assert_eq!(scale["spec"], json!({"replicas": 5}));
        assert_eq!(scale["status"], json!({"replicas": 1, "selector": "strimzi.io/pool-name=brokers"}));
        let pool = world.get(&one).await.ok();
        assert_eq!((&pool["spec"]["replicas"], &pool["metadata"]["generation"]), (&json!(5), &json!(2)));
    }
    let kafkas = kinds.get("Kafka");
    world.post(&kafkas.path(&world, "v1"), kafkas.object("v1", "a", json!({"kafka": {}}))).await.code(201);
    world.get(&format!("{}/a/scale", kafkas.path(&world, "v1"))).await.code(404);
}

async fn a_rebalance_gets_its_mode(world: World) {
    let kinds = install(&world).await;
    let kind = kinds.get("KafkaRebalance");
    let made = world.post(&kind.path(&world, "v1"), kind.object("v1", "a", json!({}))).await.code(201).ok();
    assert_eq!(made["spec"], json!({"mode": "full"}));
}

async fn unknown_fields_are_kept(world: World) {
    let kinds = install(&world).await;
    let listener = json!({"name": "plain", "port": 9092, "type": "internal", "tls": false, "colour": "red"});
    for (kind, spec) in [
        ("Kafka", json!({"entityOperator": {"x": [1]}, "kafka": {"logging": {"a": 1}, "listeners": [listener]}})),
        ("KafkaNodePool", json!({"replicas": 1, "roles": [], "storage": {"type": "jbod", "x": {"y": 1}}, "new": null})),
        ("KafkaRebalance", json!({"mode": "full", "tomorrow": {"deep": ["a"]}})),
        ("StrimziPodSet", json!({"selector": {}, "pods": [{"kind": "Pod", "spec": {"x": 1}}]})),
    ] {
        let kind = kinds.get(kind);
        let path = format!("{}?fieldValidation=Strict", kind.path(&world, "v1"));
        world.post(&path, kind.object("v1", "a", spec.clone())).await.code(201);
        let seen = world.get(&format!("{}/a", kind.path(&world, "v1beta2"))).await.ok();
        assert_eq!(seen["spec"], spec, "{}", kind.kind);
    }
}

async fn a_field_left_blank_counts_as_left_out(world: World) {
    let kinds = install(&world).await;
    for (kind, spec) in [
        (
            "KafkaRebalance",
            json!({"mode": "full", "goals": null, "brokers": null, "moveReplicasOffVolumes": null, "template": null}),
        ),
        ("Kafka", json!({"kafka": null, "cruiseControl": {"autoRebalance": null}})),
    ] {
        let kind = kinds.get(kind);
        let made = world.post(&kind.path(&world, "v1"), kind.object("v1", "a", spec.clone())).await.code(201).ok();
        assert_eq!(made["spec"], spec);
    }
}

async fn status_is_apart(world: World) {
    let kinds = install(&world).await;
    for (kind, spec) in [
        ("Kafka", json!({"kafka": {}})),
        ("KafkaNodePool", pool(json!({"type": "ephemeral"}))),
        ("KafkaRebalance", json!({})),
        ("StrimziPodSet", json!({"selector": {}, "pods": []})),
    ] {
        let kind = kinds.get(kind);
        let mut object = kind.object("v1", "a", spec);
        object["status"] = json!({"observedGeneration": 7});
        let made = world.post(&kind.path(&world, "v1"), object).await.code(201).ok();
        assert!(made.get("status").is_none(), "{made}");
        let path = format!("{}/a/status", kind.path(&world, "v1"));
        let status = json!({"status": {"observedGeneration": 1}, "spec": {"ignored": true}});
        let written = world.patch(MERGE, &path, status).await.code(200).ok();
        assert_eq!((&written["status"]["observedGeneration"], &written["spec"]), (&json!(1), &made["spec"]));
        assert_eq!(written["metadata"]["generation"], 1);
    }
}
