//! The status of built-in kinds, which is not kept apart as that of custom resources is.

use serde_json::{Value, json};

use crate::subresources::deployment;
use crate::widgets::{anything, definition};
use crate::world::{MERGE, World, unique};

promises!(
    a_write_to_the_status_of_a_built_in_kind_also_writes_metadata,
    a_definition_is_labelled_through_its_status_too,
    a_node_is_born_with_its_status,
);

/// What a write to `status` sends along, and what comes of it: labels, annotations, finalizers, owners.
async fn metadata_after(world: &World, one: &str) -> [bool; 4] {
    let owner = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": world.owner().await}]);
    let metadata = json!({"labels": {"l": "1"}, "annotations": {"a": "1"}, "finalizers": ["example.com/hold"],
        "ownerReferences": owner});
    let patch = json!({"metadata": metadata});
    let patched = world.patch(MERGE, &format!("{one}/status"), patch).await.code(200).ok();
    assert_eq!(world.get(one).await.ok()["metadata"], patched["metadata"]);
    world.patch(MERGE, one, json!({"metadata": {"finalizers": null}})).await.code(200);
    let part = |path: &str| patched["metadata"].pointer(path).is_some();
    [part("/labels/l"), part("/annotations/a"), part("/finalizers"), part("/ownerReferences")]
}

impl World {
    /// The uid of something that may own.
    async fn owner(&self) -> Value {
        let answer = self.post(&self.maps(), json!({"metadata": {"name": "owner"}})).await;
        match answer.code {
            409 => self.get(&format!("{}/owner", self.maps())).await.ok()["metadata"]["uid"].take(),
            _ => answer.ok()["metadata"]["uid"].take(),
        }
    }
}

async fn a_write_to_the_status_of_a_built_in_kind_also_writes_metadata(world: World) {
    const ALL: [bool; 4] = [true; 4];
    let pod = json!({"containers": [{"name": "c", "image": "i"}], "automountServiceAccountToken": false});
    world.post(&world.core("pods"), json!({"metadata": {"name": "a"}, "spec": pod})).await.ok();
    assert_eq!(metadata_after(&world, &format!("{}/a", world.core("pods"))).await, [true, true, true, false]);
    assert_eq!(metadata_after(&world, &deployment(&world).await).await, [false, true, true, true]);

    let service = json!({"metadata": {"name": "a"}, "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]}});
    world.post(&world.core("services"), service).await.ok();
    assert_eq!(metadata_after(&world, &format!("{}/a", world.core("services"))).await, ALL);

    let claim = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
    let claims = world.core("persistentvolumeclaims");
    world.post(&claims, json!({"metadata": {"name": "a"}, "spec": claim})).await.ok();
    assert_eq!(metadata_after(&world, &format!("{claims}/a")).await, ALL);

    let budgets = world.of_group("policy/v1", "poddisruptionbudgets");
    let budget =
        json!({"metadata": {"name": "a"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "b"}}}});
    world.post(&budgets, budget).await.ok();
    assert_eq!(metadata_after(&world, &format!("{budgets}/a")).await, ALL);

    // By PUT it is the same, and the status is written besides.
    let one = format!("{}/a", world.core("services"));
    let mut service = world.get(&one).await.ok();
    service["metadata"]["labels"] = json!({"l": "2"});
    service["metadata"]["annotations"] = json!(null);
    service["spec"]["ports"][0]["port"] = json!(81);
    service["status"] = json!({"loadBalancer": {"ingress": [{"ip": "10.1.2.3", "ipMode": "VIP"}]}});
    let written = world.put(&format!("{one}/status"), &service).await.code(200).ok();
    assert_eq!(written["metadata"]["labels"], json!({"l": "2"}));
    assert!(written["metadata"].get("annotations").is_none(), "{written}");
    assert_eq!((&written["status"], &written["spec"]["ports"][0]["port"]), (&service["status"], &json!(80)));
}

async fn a_definition_is_labelled_through_its_status_too(world: World) {
    let widgets = world.install(definition(anything())).await;
    let patch = json!({"metadata": {"labels": {"l": "1"}, "annotations": {"a": "1"}}});
    let patched = world.patch(MERGE, &format!("{}/status", widgets.definition), patch).await.code(200).ok();
    assert_eq!(patched["metadata"]["labels"], json!({"l": "1"}));
    assert_eq!(patched["metadata"]["annotations"], json!({"a": "1"}));
    assert_eq!(patched["metadata"]["generation"], 1);
}

async fn a_node_is_born_with_its_status(world: World) {
    let name = unique("node");
    let capacity = json!({"cpu": "4", "memory": "8Gi"});
    let node = json!({"metadata": {"name": name}, "status": {"capacity": capacity, "phase": "Running"}});
    let made = world.post("/api/v1/nodes", node).await.code(201).ok();
    assert_eq!((&made["status"]["capacity"], &made["status"]["phase"]), (&capacity, &json!("Running")));
    let one = format!("/api/v1/nodes/{name}");
    // From then on it is kept apart.
    let patched = world.patch(MERGE, &one, json!({"status": {"capacity": {"cpu": "5"}}})).await.code(200).ok();
    assert_eq!(patched["status"], made["status"]);
    let metadata = json!({"metadata": {"annotations": {"a": "1"}}, "status": {"capacity": {"cpu": "5"}}});
    let patched = world.patch(MERGE, &format!("{one}/status"), metadata).await.code(200).ok();
    assert_eq!(patched["metadata"]["annotations"]["a"], "1");
    assert_eq!(patched["status"]["capacity"], json!({"cpu": "5", "memory": "8Gi"}));
    world.delete(&one, json!(null)).await.code(200);
}
