//! Deployments and their replica sets.

use std::time::Duration;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{DeleteParams, ListParams};
use serde_json::{Value, json};

use crate::world::{World, until};

fn deployment(replicas: u32, image: &str, strategy: Value) -> Value {
    let ports = json!([{"name": "rest-api", "containerPort": 9090}]);
    let template = json!({"metadata": {"labels": {"app": "engine"}},
        "spec": {"containers": [{"name": "main", "image": image, "ports": ports}]}});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "engine"},
        "spec": {"replicas": replicas, "strategy": strategy, "selector": {"matchLabels": {"app": "engine"}},
            "template": template},
    })
}

fn with_image(image: &str) -> Value {
    json!({"spec": {"template": {"spec": {"containers": [{"name": "main", "image": image}]}}}})
}

/// A deployment in a few words, as `kubectl rollout status` would judge it.
async fn shown(world: &World) -> String {
    let deployment = world.api::<Deployment>().get("engine").await.unwrap();
    let status = deployment.status.unwrap_or_default();
    let condition = |kind: &str| {
        let found = status.conditions.iter().flatten().find(|it| it.type_ == kind);
        found.map_or_else(String::new, |it| format!("{}={}", it.type_, it.reason.clone().unwrap_or_default()))
    };
    let seen = status.observed_generation == deployment.metadata.generation;
    let count = |count: Option<i32>| count.unwrap_or(0);
    format!(
        "{} of {} updated, {} ready, {} available {} {}{}",
        count(status.updated_replicas),
        count(status.replicas),
        count(status.ready_replicas),
        count(status.available_replicas),
        condition("Available"),
        condition("Progressing"),
        if seen { "" } else { " stale" },
    )
}

async fn until_shown(world: &World, expected: &str) {
    let begun = tokio::time::Instant::now();
    loop {
        let shown = shown(world).await;
        if shown == expected {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(700), "it is {shown}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

const ALL_WELL: &str =
    "2 of 2 updated, 2 ready, 2 available Available=MinimumReplicasAvailable Progressing=NewReplicaSetAvailable";

#[tokio::test(start_paused = true)]
async fn a_deployment_makes_a_set_that_makes_pods() {
    let world = World::new();
    world.create::<Deployment>(deployment(2, "slow:5", json!(null))).await;
    until_shown(&world, ALL_WELL).await;
    let sets = world.api::<ReplicaSet>().list(&ListParams::default()).await.unwrap();
    let [set] = sets.items.as_slice() else { panic!("{sets:?}") };
    let hash = &set.labels()["pod-template-hash"];
    assert_eq!(set.name_any(), format!("engine-{hash}"));
    let pods = world.api::<Pod>().list(&ListParams::default()).await.unwrap();
    for pod in &pods {
        assert!(pod.name_any().starts_with(&format!("engine-{hash}-")));
        assert_eq!(pod.owner_references()[0].name, set.name_any());
    }
    let nodes: std::collections::BTreeSet<_> = pods.iter().map(|pod| pod.spec.clone().unwrap().node_name).collect();
    assert_eq!(nodes.len(), 2, "pods of one owner are spread");
    // Where they are counts for nothing when one dies.
    world.api::<Pod>().delete(&pods.items[0].name_any(), &DeleteParams::default()).await.unwrap();
    until("another pod takes its place", || async { shown(&world).await != ALL_WELL }).await;
    until_shown(&world, ALL_WELL).await;
    world.api::<Deployment>().delete("engine", &DeleteParams::default()).await.unwrap();
    let gone = || async { world.api::<Pod>().list(&ListParams::default()).await.unwrap().items.is_empty() };
    until("everything goes with the deployment", gone).await;
    assert_eq!(world.running(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_recreated_deployment_never_runs_two_states_at_once() {
    let world = World::new();
    world.create::<Deployment>(deployment(2, "linger:5", json!({"type": "Recreate"}))).await;
    until_shown(&world, ALL_WELL).await;
    let before = world.running();
    world.patch::<Deployment>("engine", with_image("serve")).await;
    loop {
        let running = world.running();
        let (old, new): (Vec<_>, Vec<_>) = running.iter().partition(|name| before.contains(name));
        assert!(old.is_empty() || new.is_empty(), "{running:?}");
        if shown(&world).await == ALL_WELL && old.is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let deployment = world.api::<Deployment>().get("engine").await.unwrap();
    assert_eq!(deployment.annotations()["deployment.kubernetes.io/revision"], "2");
}

#[tokio::test(start_paused = true)]
async fn a_rolling_deployment_keeps_serving() {
    let world = World::new();
    world.create::<Deployment>(deployment(2, "slow:5", json!(null))).await;
    until_shown(&world, ALL_WELL).await;
    world.patch::<Deployment>("engine", with_image("slow:7")).await;
    until("it begins", || async { shown(&world).await != ALL_WELL }).await;
    loop {
        let pods = world.api::<Pod>().list(&ListParams::default()).await.unwrap();
        let ready = pods.iter().filter(|pod| crate::world::shown(pod) == "Running ready").count();
        assert!((2..=3).contains(&ready), "{ready} serve");
        if shown(&world).await == ALL_WELL {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let images: Vec<_> = world.script.launches.lock().unwrap().iter().map(|launch| launch.image.clone()).collect();
    assert_eq!(images, ["slow:5", "slow:5", "slow:7", "slow:7"]);
}

#[tokio::test(start_paused = true)]
async fn a_rollout_that_hangs_says_so_and_a_scale_is_followed() {
    let world = World::new();
    world.create::<Deployment>(deployment(2, "serve", json!(null))).await;
    until_shown(&world, ALL_WELL).await;
    world.patch::<Deployment>("engine", with_image("broken")).await;
    let hangs = "1 of 3 updated, 2 ready, 2 available Available=MinimumReplicasAvailable \
                 Progressing=ProgressDeadlineExceeded";
    until_shown(&world, hangs).await;
    world.patch::<Deployment>("engine", with_image("serve")).await;
    until_shown(&world, ALL_WELL).await;
    world.patch::<Deployment>("engine", json!({"spec": {"replicas": 0}})).await;
    let none = "0 of 0 updated, 0 ready, 0 available Available=MinimumReplicasAvailable \
                Progressing=NewReplicaSetAvailable";
    until_shown(&world, none).await;
    until("the pods go", || async { world.running().is_empty() }).await;
}
