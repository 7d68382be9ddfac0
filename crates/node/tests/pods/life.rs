//! The life of a pod: bound, started, restarted, and ended.

use std::sync::Arc;
use std::time::Duration;

use evenkeel_node::kubelet::program::Launch;
use futures::FutureExt;
use http::Method;
use k8s_openapi::api::core::v1::{ConfigMap, Node, PersistentVolume, PersistentVolumeClaim, Pod, Secret};
use kube::api::{DeleteParams, ListParams, LogParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::world::{World, pod, until};

#[tokio::test(start_paused = true)]
async fn a_pod_is_bound_started_and_says_so() {
    let world = World::new();
    world.create::<Pod>(pod("a", "slow:5")).await;
    world.until_shown("a", "Running").await;
    let took = world.until_shown("a", "Running ready").await;
    assert!(took >= Duration::from_secs(4), "it is ready when its program says so: {took:?}");
    let pod = world.api::<Pod>().get("a").await.unwrap();
    let status = pod.status.clone().unwrap();
    assert_eq!((status.pod_ip.as_deref(), status.host_ip.as_deref()), (Some("127.0.0.1"), Some("127.0.0.1")));
    let mut conditions: Vec<_> =
        status.conditions.iter().flatten().map(|it| format!("{}={}", it.type_, it.status)).collect();
    conditions.sort();
    assert_eq!(conditions, ["ContainersReady=True", "Initialized=True", "PodScheduled=True", "Ready=True"]);
    assert!(status.start_time.is_some());
    assert_eq!(pod.annotations()["evenkeel.io/ports"], r#"{"9091":40000}"#);
    let nodes = Api::<Node>::all(world.client.clone()).list(&ListParams::default()).await.unwrap();
    let zones: Vec<_> = nodes.iter().map(|node| node.labels()["topology.kubernetes.io/zone"].clone()).collect();
    assert_eq!(zones, ["zone-0", "zone-1", "zone-2"]);
}

#[tokio::test(start_paused = true)]
async fn a_pod_waits_for_what_it_needs_and_hears_of_changes() {
    let world = World::new();
    let mut value = pod("a", "serve");
    value["spec"]["volumes"] = json!([{"name": "config", "configMap": {"name": "settings"}}]);
    value["spec"]["containers"][0]["volumeMounts"] = json!([{"name": "config", "mountPath": "/etc/app"}]);
    value["spec"]["containers"][0]["env"] =
        json!([{"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "secret", "key": "key"}}}]);
    world.create::<Pod>(value).await;
    world.until_shown("a", "Pending CreateContainerConfigError").await;
    let message = || async {
        let status = world.api::<Pod>().get("a").await.unwrap().status.unwrap();
        let state = status.container_statuses.unwrap().remove(0).state.unwrap();
        state.waiting.and_then(|waiting| waiting.message).unwrap_or_default()
    };
    assert_eq!(message().await, r#"configmap "settings" not found"#);
    world.create::<ConfigMap>(json!({"metadata": {"name": "settings"}, "data": {"level": "1"}})).await;
    until("the next thing is missed", || async { message().await == r#"secret "secret" not found"# }).await;
    let secret = json!({"metadata": {"name": "secret"}, "stringData": {"key": "hush"}});
    world.create::<Secret>(secret).await;
    world.until_shown("a", "Running ready").await;
    let launch: Launch = world.script.launches.lock().unwrap()[0].clone();
    assert_eq!(launch.files.text("/etc/app/level"), Some("1"));
    assert_eq!(launch.env["KEY"], "hush");

    world.patch::<ConfigMap>("settings", json!({"data": {"level": "2", "more": "x"}})).await;
    let mut updates = launch.updates;
    updates.wait_for(|files| files.text("/etc/app/level") == Some("2")).await.unwrap();
    assert_eq!(updates.borrow().text("/etc/app/more"), Some("x"));
    assert_eq!(world.script.launches.lock().unwrap().len(), 1, "a file that changed is no reason to start again");
}

#[tokio::test(start_paused = true)]
async fn a_container_that_crashes_is_restarted_ever_more_slowly() {
    let world = World::new();
    world.create::<Pod>(pod("a", "crash:5")).await;
    let mut spans = Vec::new();
    for restarts in 1..=8 {
        let waiting = match restarts {
            1 => "Running CrashLoopBackOff".to_owned(),
            more => format!("Running x{} CrashLoopBackOff", more - 1),
        };
        if restarts > 1 {
            world.until_shown("a", &waiting).await;
        }
        spans.push(world.until_shown("a", &format!("Running ready x{restarts}")).await.as_secs_f64().round());
    }
    // The first restart is immediate, so its wait is the five seconds of the run before and no back-off.
    assert_eq!(spans[1..], [10.0, 20.0, 40.0, 80.0, 160.0, 300.0, 300.0]);
    let status = world.api::<Pod>().get("a").await.unwrap().status.unwrap();
    let last = status.container_statuses.unwrap().remove(0).last_state.unwrap().terminated.unwrap();
    assert_eq!((last.exit_code, last.message.as_deref()), (3, Some("it crashed")));
}

#[tokio::test(start_paused = true)]
async fn a_program_that_does_not_start_is_tried_again() {
    let world = World::new();
    world.create::<Pod>(pod("a", "broken")).await;
    world.until_shown("a", "Pending RunContainerError").await;
    sleep(Duration::from_secs(16)).await;
    assert_eq!(world.script.launches.lock().unwrap().len(), 5, "after 1, 2, 4 and 8 seconds");
    world.api::<Pod>().delete("a", &DeleteParams::default()).await.unwrap();
    world.until_shown("a", "gone").await;
}

#[tokio::test(start_paused = true)]
async fn a_deleted_pod_has_its_grace_and_no_more() {
    let world = World::new();
    let mut slow = pod("slow", "linger:7");
    slow["spec"]["terminationGracePeriodSeconds"] = json!(20);
    let mut deaf = pod("deaf", "deaf");
    deaf["spec"]["terminationGracePeriodSeconds"] = json!(20);
    world.create::<Pod>(slow).await;
    world.create::<Pod>(deaf).await;
    world.until_shown("slow", "Running ready").await;
    world.until_shown("deaf", "Running ready").await;
    for name in ["slow", "deaf"] {
        world.api::<Pod>().delete(name, &DeleteParams::default()).await.unwrap();
    }
    world.until_shown("slow", "Running ready terminating").await;
    let took = world.until_shown("slow", "gone").await.as_secs_f64();
    assert!((6.9..8.0).contains(&took), "as long as it takes: {took}");
    let took = took + world.until_shown("deaf", "gone").await.as_secs_f64();
    assert!((19.9..22.0).contains(&took), "as long as it may: {took}");
    assert_eq!(world.running(), [""; 0]);
    // Programs hear of it just after the API, and once.
    sleep(Duration::from_secs(60)).await;
    assert_eq!(*world.script.forgotten.lock().unwrap(), ["slow", "deaf"]);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_deleted_by_force_leaves_nothing_and_makes_room_for_the_next() {
    let world = World::new();
    world.create::<Pod>(pod("a", "deaf")).await;
    world.until_shown("a", "Running ready").await;
    world.api::<Pod>().delete("a", &DeleteParams::default().grace_period(0)).await.unwrap();
    world.create::<Pod>(pod("a", "serve")).await;
    world.until_shown("a", "Running ready").await;
    assert_eq!(world.running(), ["a/main"]);
    let launches: Vec<_> = world.script.launches.lock().unwrap().iter().map(|launch| launch.image.clone()).collect();
    assert_eq!(launches, ["deaf", "serve"]);
}

#[tokio::test(start_paused = true)]
async fn a_grace_that_is_shortened_is_kept_to() {
    let world = World::new();
    world.create::<Pod>(pod("a", "deaf")).await;
    world.until_shown("a", "Running ready").await;
    world.api::<Pod>().delete("a", &DeleteParams::default().grace_period(3600)).await.unwrap();
    sleep(Duration::from_secs(5)).await;
    world.api::<Pod>().delete("a", &DeleteParams::default().grace_period(2)).await.unwrap();
    let took = world.until_shown("a", "gone").await;
    assert!(took < Duration::from_secs(5), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn pods_that_may_end_do() {
    let world = World::new();
    for (name, image) in [("well", "done:3"), ("badly", "crash:3")] {
        let mut value = pod(name, image);
        value["spec"]["restartPolicy"] = json!("Never");
        world.create::<Pod>(value).await;
    }
    world.until_shown("well", "Succeeded exit 0").await;
    world.until_shown("badly", "Failed exit 3").await;
    sleep(Duration::from_secs(3600)).await;
    assert_eq!(world.script.launches.lock().unwrap().len(), 2);
    world.api::<Pod>().delete("well", &DeleteParams::default()).await.unwrap();
    world.until_shown("well", "gone").await;
}

fn kafka(name: &str) -> Value {
    let mut value = pod(name, "serve");
    value["metadata"]["labels"]["strimzi.io/pod-name"] = json!(name);
    let command = [
        "evenkeel",
        "rack",
        "--node",
        "$(NODE_NAME)",
        "--label",
        "topology.kubernetes.io/zone",
        "--to",
        "/opt/kafka/init/rack.id",
    ];
    let mount = json!([{"name": "init", "mountPath": "/opt/kafka/init"}]);
    value["spec"]["initContainers"] = json!([{"name": "rack", "image": "evenkeel", "command": command, "volumeMounts": mount,
            "env": [{"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}]}]);
    value["spec"]["containers"][0]["volumeMounts"] =
        json!([{"name": "init", "mountPath": "/opt/kafka/init"}, {"name": "data", "mountPath": "/data"}]);
    value["spec"]["volumes"] = json!([{"name": "init", "emptyDir": {}},
        {"name": "data", "persistentVolumeClaim": {"claimName": format!("data-{name}")}}]);
    value
}

#[tokio::test(start_paused = true)]
async fn brokers_get_racks_by_their_numbers_and_keep_their_volumes() {
    let world = World::new();
    for number in [3, 0, 1, 2] {
        let name = format!("c-brokers-{number}");
        let spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "10Gi"}}});
        world.create::<Pod>(kafka(&name)).await;
        world
            .create::<PersistentVolumeClaim>(json!({"metadata": {"name": format!("data-{name}")}, "spec": spec}))
            .await;
    }
    for number in 0..4 {
        world.until_shown(&format!("c-brokers-{number}"), "Running ready").await;
    }
    let launches = world.script.launches.lock().unwrap().clone();
    assert_eq!(launches.len(), 4, "the init container's deed is done by the node");
    for launch in &launches {
        let number: usize = launch.pod.name_any().rsplit_once('-').unwrap().1.parse().unwrap();
        let rack = format!("zone-{}", number % 3);
        assert_eq!(launch.files.text("/opt/kafka/init/rack.id"), Some(rack.as_str()));
        assert_eq!(launch.node_labels["topology.kubernetes.io/zone"], rack);
    }
    let data = |launch: &Launch| launch.volumes["/data"].clone();
    let of = |name: &str| {
        let launches = world.script.launches.lock().unwrap();
        launches.iter().rev().find(|launch| launch.pod.name_any() == name).map(data).unwrap()
    };
    let before = of("c-brokers-1");
    assert_eq!((before.capacity, before.persistent), (Some(10 << 30), true));
    let claim = world.api::<PersistentVolumeClaim>().get("data-c-brokers-1").await.unwrap();
    assert_eq!(claim.status.unwrap().phase.as_deref(), Some("Bound"));
    let volumes = Api::<PersistentVolume>::all(world.client.clone());
    assert_eq!(volumes.list(&ListParams::default()).await.unwrap().items.len(), 4);

    world.api::<Pod>().delete("c-brokers-1", &DeleteParams::default()).await.unwrap();
    world.until_shown("c-brokers-1", "gone").await;
    world.create::<Pod>(kafka("c-brokers-1")).await;
    world.until_shown("c-brokers-1", "Running ready").await;
    assert_eq!(of("c-brokers-1").id, before.id, "the data is the claim's");

    // A claim that goes while it is used is held until nobody uses it, and then takes its data along.
    world.api::<PersistentVolumeClaim>().delete("data-c-brokers-1", &DeleteParams::default()).await.unwrap();
    sleep(Duration::from_secs(60)).await;
    assert_eq!(volumes.list(&ListParams::default()).await.unwrap().items.len(), 4);
    world.api::<Pod>().delete("c-brokers-1", &DeleteParams::default()).await.unwrap();
    let gone = || async { volumes.list(&ListParams::default()).await.unwrap().items.len() == 3 };
    until("the volume goes with its claim", gone).await;
    until("its data goes", || async { *world.script.discarded.lock().unwrap() == [before.id.clone()] }).await;
}

#[tokio::test(start_paused = true)]
async fn nobody_is_bound_before_the_last_node_is_there() {
    let slow = |_: &Method, path: &str| {
        let late = path == "/api/v1/nodes/evenkeel-2/status";
        async move {
            if late {
                sleep(Duration::from_secs(30)).await;
            }
            None
        }
        .boxed()
    };
    let world = World::behind(|_| Arc::new(slow));
    for number in 0..4 {
        let name = format!("c-brokers-{number}");
        let mut value = pod(&name, "serve");
        value["metadata"]["labels"] = json!({"strimzi.io/pod-name": name});
        world.create::<Pod>(value).await;
    }
    for number in 0..4 {
        let name = format!("c-brokers-{number}");
        world.until_shown(&name, "Running ready").await;
        let bound = world.api::<Pod>().get(&name).await.unwrap();
        assert_eq!(bound.spec.unwrap().node_name, Some(format!("evenkeel-{}", number % 3)), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_fits_nowhere_says_why_until_it_does() {
    let world = World::new();
    let mut value = pod("a", "serve");
    value["spec"]["nodeSelector"] = json!({"disk": "fast"});
    world.create::<Pod>(value).await;
    let message = || async {
        let status = world.api::<Pod>().get("a").await.unwrap().status.unwrap_or_default();
        let conditions = status.conditions.unwrap_or_default();
        conditions.into_iter().find(|it| it.type_ == "PodScheduled").and_then(|it| it.message).unwrap_or_default()
    };
    let expected = "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector.";
    until("it says why", || async { message().await == expected }).await;
    assert_eq!(world.shown("a").await, "Pending");
    let nodes = Api::<Node>::all(world.client.clone());
    let patch = kube::api::Patch::Merge(json!({"metadata": {"labels": {"disk": "fast"}}}));
    nodes.patch("evenkeel-1", &Default::default(), &patch).await.unwrap();
    world.until_shown("a", "Running ready").await;
    let pod = world.api::<Pod>().get("a").await.unwrap();
    assert_eq!(pod.spec.unwrap().node_name.as_deref(), Some("evenkeel-1"));
}

#[tokio::test(start_paused = true)]
async fn logs_are_read_and_followed() {
    let world = World::new();
    world.create::<Pod>(pod("a", "crash:5")).await;
    world.until_shown("a", "Running ready x1").await;
    let logs = |params: LogParams| {
        let api = world.api::<Pod>();
        async move { api.logs("a", &params).await }
    };
    assert_eq!(logs(LogParams::default()).await.unwrap(), "run 1\n");
    assert_eq!(logs(LogParams { previous: true, ..LogParams::default() }).await.unwrap(), "run 0\n");
    // To the end of the run.
    assert_eq!(logs(LogParams { follow: true, ..LogParams::default() }).await.unwrap(), "run 1\n");
    let wrong = logs(LogParams { container: Some("other".into()), ..LogParams::default() }).await.unwrap_err();
    assert!(wrong.to_string().contains("container other is not valid for pod a"), "{wrong}");
    world.create::<Pod>(pod("b", "broken")).await;
    world.until_shown("b", "Pending RunContainerError").await;
    let none = world.api::<Pod>().logs("b", &LogParams { previous: true, ..LogParams::default() }).await;
    assert!(none.unwrap_err().to_string().contains("not found"));
}

#[tokio::test(start_paused = true)]
async fn a_node_that_stops_ends_every_pod_and_goes() {
    let mut world = World::new();
    for (name, image) in [("a", "serve"), ("b", "deaf"), ("c", "linger:3"), ("d", "broken"), ("e", "crash:1")] {
        world.create::<Pod>(pod(name, image)).await;
    }
    world.until_shown("b", "Running ready").await;
    world.until_shown("c", "Running ready").await;
    let begun = tokio::time::Instant::now();
    world.shut_down().await;
    let took = begun.elapsed();
    assert!((10..16).contains(&took.as_secs()), "the deaf one has ten seconds: {took:?}");
    assert_eq!(world.running(), [""; 0]);
    let nodes = Api::<Node>::all(world.client.clone()).list(&ListParams::default()).await.unwrap();
    assert!(nodes.items.is_empty(), "{:?}", nodes.items);
    assert_eq!(world.shown("a").await, "Running exit 0");
}
