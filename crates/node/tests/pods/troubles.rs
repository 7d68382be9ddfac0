//! A server that refuses, loses races, or holds on to what should go.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::FutureExt;
use http::Method;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::api::{DeleteParams, ListParams, LogParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::world::{Door, World, pod, until};

/// Refuses the first request of a kind that `is_meant`, and counts all of them.
fn refuses_once(code: u16, is_meant: fn(&Method, &str) -> bool) -> (Arc<AtomicUsize>, impl FnOnce(Client) -> Door) {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    let door: Door = Arc::new(move |method, path| {
        let first = is_meant(method, path) && counted.fetch_add(1, Ordering::Relaxed) == 0;
        async move { first.then_some(code) }.boxed()
    });
    (count, move |_| door)
}

fn deployment(name: &str, image: &str, strategy: Value) -> Deployment {
    let template =
        json!({"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "main", "image": image}]}});
    let value = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {"strategy": strategy, "selector": {"matchLabels": {"app": name}}, "template": template},
    });
    serde_json::from_value(value).unwrap()
}

async fn is_available(api: &Api<Deployment>, name: &str) -> bool {
    let status = api.get(name).await.unwrap().status.unwrap_or_default();
    status.available_replicas == Some(1) && status.updated_replicas == Some(1)
}

#[tokio::test(start_paused = true)]
async fn what_is_refused_in_one_namespace_keeps_nobody_else_waiting() {
    for refused in ["/apis/apps/v1/namespaces/a/replicasets", "/api/v1/namespaces/a/pods"] {
        let door: Door = Arc::new(move |method, path| {
            let meant = *method == Method::POST && path == refused;
            async move { meant.then_some(403) }.boxed()
        });
        let world = World::behind(|_| door);
        let a: Namespace = serde_json::from_value(json!({"metadata": {"name": "a"}})).unwrap();
        Api::<Namespace>::all(world.client.clone()).create(&PostParams::default(), &a).await.unwrap();
        let in_a = Api::<Deployment>::namespaced(world.client.clone(), "a");
        in_a.create(&PostParams::default(), &deployment("stuck", "serve", json!(null))).await.unwrap();
        // Long enough to be tried many times.
        sleep(Duration::from_secs(60)).await;
        let here = world.api::<Deployment>();
        here.create(&PostParams::default(), &deployment("engine", "serve", json!(null))).await.unwrap();
        let took = until("the other is available", || is_available(&here, "engine")).await;
        assert!(took < Duration::from_secs(1), "{took:?}");
        assert!(!is_available(&in_a, "stuck").await);
        let sets = Api::<ReplicaSet>::namespaced(world.client.clone(), "a").list(&ListParams::default()).await.unwrap();
        let said = sets.iter().flat_map(|set| set.status.iter().flat_map(|it| it.conditions.iter().flatten()));
        let said: Vec<_> = said.map(|it| format!("{} {}", it.type_, it.status)).collect();
        let expected: &[&str] = if refused.ends_with("pods") { &["ReplicaFailure True"] } else { &[] };
        assert_eq!(said, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_race_that_was_lost_is_run_again() {
    let (count, door) = refuses_once(409, |method, path| *method == Method::PATCH && path.ends_with("/pods/a/status"));
    let world = World::behind(door);
    world.create::<Pod>(pod("a", "serve")).await;
    world.until_shown("a", "Running ready").await;
    assert!(count.load(Ordering::Relaxed) > 1);

    let (count, door) = refuses_once(409, |method, path| *method == Method::DELETE && path.ends_with("/pods/a"));
    let world = World::behind(door);
    world.create::<Pod>(pod("a", "serve")).await;
    world.until_shown("a", "Running ready").await;
    world.api::<Pod>().delete("a", &DeleteParams::default()).await.unwrap();
    world.until_shown("a", "gone").await;
    assert_eq!(count.load(Ordering::Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn a_readiness_gate_that_opens_while_the_status_is_written_is_not_shut_again() {
    let world = World::behind(|server| {
        let written = AtomicUsize::new(0);
        Arc::new(move |method, path| {
            let meant = *method == Method::PATCH && path.ends_with("/pods/a/status");
            // Somebody else is faster than the very first one.
            let first = meant && written.fetch_add(1, Ordering::Relaxed) == 0;
            let pods = Api::<Pod>::namespaced(server.clone(), "default");
            async move {
                if first {
                    let conditions = json!([{"type": "example.com/warm", "status": "True"}]);
                    let patch = Patch::Strategic(json!({"status": {"conditions": conditions}}));
                    pods.patch_status("a", &PatchParams::default(), &patch).await.unwrap();
                }
                None
            }
            .boxed()
        })
    });
    let mut value = pod("a", "slow:5");
    value["spec"]["readinessGates"] = json!([{"conditionType": "example.com/warm"}]);
    world.create::<Pod>(value).await;
    world.until_shown("a", "Running ready").await;
    let pod = world.api::<Pod>().get("a").await.unwrap();
    let ready = pod.status.unwrap().conditions.unwrap().into_iter().find(|it| it.type_ == "Ready").unwrap();
    assert_eq!((ready.reason, ready.message), (None, None), "what was said when it was not is taken back");
}

#[tokio::test(start_paused = true)]
async fn a_status_that_somebody_overwrites_is_put_right() {
    let world = World::new();
    world.create::<Pod>(pod("a", "serve")).await;
    world.until_shown("a", "Running ready").await;
    let patch = Patch::Merge(json!({"status": {"phase": "Pending"}}));
    world.api::<Pod>().patch_status("a", &PatchParams::default(), &patch).await.unwrap();
    world.until_shown("a", "Running ready").await;
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_a_finalizer_holds_has_ended_and_costs_nothing() {
    let (count, door) = refuses_once(200, |method, path| *method != Method::GET && path.contains("/pods/held"));
    // Nothing is refused: it is only counted.
    count.store(1, Ordering::Relaxed);
    let world = World::behind(door);
    let api = world.api::<Deployment>();
    let mut wanted = deployment("held", "linger:1", json!({"type": "Recreate"}));
    let template = &mut wanted.spec.as_mut().unwrap().template;
    template.metadata.as_mut().unwrap().finalizers = Some(vec!["example.com/hold".into()]);
    api.create(&PostParams::default(), &wanted).await.unwrap();
    until("it runs", || is_available(&api, "held")).await;
    let pods = world.api::<Pod>();
    let old = pods.list(&ListParams::default()).await.unwrap().items.remove(0).name_any();
    let patch = json!({"spec": {"template": {"metadata": {"finalizers": null},
        "spec": {"containers": [{"name": "main", "image": "serve"}]}}}});
    world.patch::<Deployment>("held", patch).await;
    until("the next one runs although the old one is still there", || is_available(&api, "held")).await;
    assert_eq!(world.shown(&old).await, "Succeeded terminating exit 0");
    let before = count.load(Ordering::Relaxed);
    sleep(Duration::from_secs(60)).await;
    assert_eq!(count.load(Ordering::Relaxed), before, "nobody touches it");
    world.patch::<Pod>(&old, json!({"metadata": {"finalizers": null}})).await;
    world.until_shown(&old, "gone").await;
}

#[tokio::test(start_paused = true)]
async fn what_a_crashed_run_printed_outlasts_starts_that_fail() {
    let world = World::new();
    world.create::<Pod>(pod("a", "crash:5")).await;
    world.until_shown("a", "Running ready x1").await;
    let image = json!({"spec": {"containers": [{"name": "main", "image": "broken"}]}});
    let api = world.api::<Pod>();
    api.patch("a", &PatchParams::default(), &Patch::Strategic(image)).await.unwrap();
    // The run that goes on ends by itself; then the new image is tried, several times.
    until("it was tried again", || async { world.script.launches.lock().unwrap().len() > 4 }).await;
    let params = LogParams { previous: true, ..LogParams::default() };
    assert_eq!(api.logs("a", &params).await.unwrap(), "run 1\n");
}

#[tokio::test(start_paused = true)]
async fn a_pod_with_a_scheduling_gate_waits_for_it() {
    let world = World::new();
    let mut value = pod("a", "serve");
    value["spec"]["schedulingGates"] = json!([{"name": "example.com/later"}]);
    world.create::<Pod>(value).await;
    sleep(Duration::from_secs(60)).await;
    let node = || async { world.api::<Pod>().get("a").await.unwrap().spec.unwrap().node_name };
    assert_eq!(node().await, None);
    world.patch::<Pod>("a", json!({"spec": {"schedulingGates": null}})).await;
    world.until_shown("a", "Running ready").await;
}

#[tokio::test(start_paused = true)]
async fn how_long_a_pod_must_be_ready_is_changed_without_a_rollout() {
    let world = World::new();
    let api = world.api::<Deployment>();
    api.create(&PostParams::default(), &deployment("engine", "serve", json!(null))).await.unwrap();
    until("it is available", || is_available(&api, "engine")).await;
    world.patch::<Deployment>("engine", json!({"spec": {"minReadySeconds": 7}})).await;
    let seconds = || async {
        let sets = world.api::<ReplicaSet>().list(&ListParams::default()).await.unwrap();
        sets.iter().map(|set| set.spec.clone().unwrap().min_ready_seconds).collect::<Vec<_>>()
    };
    until("its set knows", || async { seconds().await == [Some(7)] }).await;
    let revision = api.get("engine").await.unwrap().annotations()["deployment.kubernetes.io/revision"].clone();
    assert_eq!(revision, "1");
}
