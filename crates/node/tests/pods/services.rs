//! Services: their slices, and the names that programs find them by.

use k8s_openapi::api::core::v1::{Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::ResourceExt;
use kube::api::{DeleteParams, ListParams};
use serde_json::{Value, json};

use crate::world::{World, pod, until};

fn service(name: &str, headless: bool) -> Value {
    let mut spec = json!({"selector": {"app": "kafka"}, "ports": [{"name": "tcp-replication", "port": 9091}]});
    if headless {
        spec["clusterIP"] = json!("None");
        spec["publishNotReadyAddresses"] = json!(true);
    }
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec})
}

fn broker(name: &str, image: &str) -> Value {
    let mut value = pod(name, image);
    value["spec"]["hostname"] = json!(name);
    value["spec"]["subdomain"] = json!("brokers");
    value
}

/// Each slice as its name, its port, and whether it is ready.
async fn slices(world: &World) -> Vec<String> {
    let slices = world.api::<EndpointSlice>().list(&ListParams::default()).await.unwrap();
    let shown = slices.iter().map(|slice| {
        let ready = slice.endpoints[0].conditions.as_ref().and_then(|it| it.ready).unwrap_or_default();
        let ports: Vec<_> =
            slice.ports.iter().flatten().filter_map(|port| port.port).map(|port| port.to_string()).collect();
        format!("{} {} {}", slice.name_any(), ports.join("+"), if ready { "ready" } else { "not ready" })
    });
    shown.collect()
}

async fn until_slices(world: &World, expected: &[&str]) {
    let begun = tokio::time::Instant::now();
    loop {
        let slices = slices(world).await;
        if slices == expected {
            return;
        }
        assert!(begun.elapsed().as_secs() < 700, "{slices:?}");
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn slices_follow_the_real_ports() {
    let world = World::new();
    world.create::<Service>(service("bootstrap", false)).await;
    world.create::<Service>(service("brokers", true)).await;
    world.create::<Pod>(broker("b-0", "slow:5")).await;
    let starting = ["bootstrap-b-0 40000 not ready", "brokers-b-0 40000 ready"];
    until_slices(&world, &starting).await;
    assert_eq!(world.addresses.find("bootstrap.default.svc", 9091), []);
    assert_eq!(world.addresses.find("b-0.brokers.default.svc", 9091)[0].port(), 40_000);
    until_slices(&world, &["bootstrap-b-0 40000 ready", "brokers-b-0 40000 ready"]).await;
    assert_eq!(world.addresses.wait_for("bootstrap.default.svc", 9091).await.port(), 40_000);
    let slice = world.api::<EndpointSlice>().get("brokers-b-0").await.unwrap();
    assert_eq!(slice.endpoints[0].hostname.as_deref(), Some("b-0"));
    assert!(slice.endpoints[0].zone.is_some());

    // Another run has other ports.
    world.create::<Pod>(broker("b-1", "crash:20")).await;
    let both = [
        "bootstrap-b-0 40000 ready",
        "bootstrap-b-1 40010 ready",
        "brokers-b-0 40000 ready",
        "brokers-b-1 40010 ready",
    ];
    until_slices(&world, &both).await;
    let again = [
        "bootstrap-b-0 40000 ready",
        "bootstrap-b-1 40020 ready",
        "brokers-b-0 40000 ready",
        "brokers-b-1 40020 ready",
    ];
    until_slices(&world, &again).await;
    assert_eq!(world.addresses.find("b-1.brokers.default.svc", 9091)[0].port(), 40_020);

    world.api::<Pod>().delete("b-1", &DeleteParams::default()).await.unwrap();
    until_slices(&world, &["bootstrap-b-0 40000 ready", "brokers-b-0 40000 ready"]).await;
    world.api::<Service>().delete("bootstrap", &DeleteParams::default()).await.unwrap();
    until_slices(&world, &["brokers-b-0 40000 ready"]).await;
    let gone = || async { world.addresses.find("bootstrap.default.svc", 9091).is_empty() };
    until("the name goes with the service", gone).await;
}
