//! Nothing simulated: the real kube-apiserver, Apache Kafka from the files that the operator wrote, and records of which
//! every one is known. Brokers come, data follows them; they go, and it has left before; load lies unevenly, and is evened
//! out. What a broker's container runs is run as it is written.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use evenkeel_api::rebalance::RebalanceState;
use evenkeel_api::{Kafka, KafkaRebalance};
use evenkeel_kafka::{BrokerId, Client};
use evenkeel_testkit::freight::{Freight, held_by, is_settled, throttles};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::container::Container;
use crate::scene::{CLUSTER, Scene};

/// The topic that is there from the beginning, evenly; two replicas of everything.
const FREIGHT: [&[i32]; 24] = {
    let (a, b, c): (&[i32], &[i32], &[i32]) = (&[0, 1], &[1, 2], &[2, 0]);
    [a, b, c, a, b, c, a, b, c, a, b, c, a, b, c, a, b, c, a, b, c, a, b, c]
};
/// The one that makes broker 2 the emptiest.
const BALLAST: [&[i32]; 12] = {
    let (a, b): (&[i32], &[i32]) = (&[0, 1], &[1, 0]);
    [a, b, a, b, a, b, a, b, a, b, a, b]
};
/// Records in each partition at first, and bytes in each: 5 MB of freight and 24 MB of ballast, each of them twice.
const RECORDS: usize = 20;
const FREIGHT_BYTES: usize = 10_000;
const BALLAST_BYTES: usize = 100_000;
const MB: u64 = 1_000_000;
/// Broker 2 lacks at least this of its share when all of the ballast lies on the others.
const TO_MOVE_MB: u64 = 10;
/// What is watched, and mended.
const GOALS: [&str; 4] = ["RackAwareGoal", "ReplicaCapacityGoal", "DiskCapacityGoal", "DiskUsageDistributionGoal"];

mod real_arm {
    #[tokio::test]
    async fn data_follows_real_brokers_that_come_and_go_and_load_is_evened_out() {
        super::data_follows().await;
    }

    #[tokio::test]
    async fn a_node_of_both_roles_with_two_disks_starts_and_so_does_its_container() {
        super::one_node_is_a_cluster().await;
    }
}

async fn data_follows() {
    let scene = Scene::new("real-brokers").await;
    scene.template("even-out", json!({})).await;
    let scaling = [("add-brokers", "even-out"), ("remove-brokers", "even-out")];
    scene.real_cluster(Some(modes(&scaling))).await;
    let kafka = scene.client_of_kafka().await;
    scene.until("three brokers are in the cluster", async || registered(&kafka).await == [0, 1, 2]).await;
    let freight = Freight::new(&kafka, "freight", &FREIGHT, FREIGHT_BYTES).await.unwrap();
    freight.write(RECORDS).await.unwrap();

    // One comes, and gets its share, while somebody goes on writing.
    scene.scale(4).await;
    scene
        .until("broker 3 has its share", async || {
            go_on_writing(&freight, 9 * MB).await;
            bytes_on(&freight, 3).await > 0 && scene.rests().await
        })
        .await;
    at_rest(&scene, &kafka, &[0, 1, 2, 3]).await;
    let held = held_by(&kafka, |topic| topic == "freight").await.unwrap();
    let whole = freight.bytes().await / FREIGHT.len() as u64 * held[&3] as u64;
    assert!(bytes_on(&freight, 3).await >= whole, "it holds {held:?}, and not all of that: {whole} bytes");
    freight.is_whole().await.unwrap();

    // It goes, and is empty before.
    scene.scale(3).await;
    scene
        .until("broker 3 is gone", async || {
            go_on_writing(&freight, 13 * MB).await;
            let gone = scene.is_gone::<Pod>("lagoon-quay-3").await;
            // Asked after the pod: what it held when it was gone is held now.
            let held = held_by(&kafka, |_| true).await.unwrap();
            assert!(!gone || !held.contains_key(&3), "it is gone with what was on it: {held:?}");
            gone && scene.brokers().await == [0, 1, 2]
        })
        .await;
    scene
        .until("Kafka forgets it, and its claim goes", async || {
            registered(&kafka).await == [0, 1, 2]
                && scene.is_gone::<PersistentVolumeClaim>("data-lagoon-quay-3").await
                && scene.rests().await
        })
        .await;
    at_rest(&scene, &kafka, &[0, 1, 2]).await;
    freight.is_whole().await.unwrap();

    // Load lies on two of three. Whoever looks after that is told to when all of it is known: what is seen first counts.
    let ballast = Freight::new(&kafka, "ballast", &BALLAST, BALLAST_BYTES).await.unwrap();
    ballast.write(RECORDS).await.unwrap();
    assert_eq!(bytes_on(&ballast, 2).await, 0);
    until_known(&scene).await;
    scene.template("steady", json!({"goals": GOALS, "skipHardGoalCheck": true})).await;
    let all = [scaling[0], scaling[1], ("imbalance", "steady")];
    let watched = json!({"anomaly.detection.goals": GOALS.join(",")});
    let patch = json!({"spec": {"cruiseControl": {"config": watched, "autoRebalance": modes(&all)}}});
    let kafkas = scene.api::<Kafka>();
    kafkas.patch(CLUSTER, &PatchParams::default(), &Patch::Merge(patch)).await.expect("a changed Kafka");
    scene
        .until("the imbalance is seen", async || {
            let made = generated(&scene).await;
            made.iter().any(|name| name.starts_with("lagoon-auto-rebalancing-imbalance-"))
        })
        .await;
    scene.until("it is mended", async || bytes_on(&ballast, 2).await > 0 && scene.rests().await).await;
    at_rest(&scene, &kafka, &[0, 1, 2]).await;
    assert!(bytes_on(&ballast, 2).await > 0);
    let mut held = Vec::new();
    for id in [0, 1, 2] {
        held.push(bytes_on(&freight, id).await + bytes_on(&ballast, id).await);
    }
    held.sort_unstable();
    // A tenth less or more than the mean is what the goal is content with, and there are some bytes of others.
    assert!(held[0] * 4 > held[2] * 3, "they are still uneven: {held:?}");
    freight.is_whole().await.unwrap();
    ballast.is_whole().await.unwrap();
}

/// Some records more, but on a slow machine no end of them: the ballast is to be what weighs.
async fn go_on_writing(freight: &Freight, most: u64) {
    if freight.bytes().await < most {
        freight.write(1).await.unwrap();
    }
}

/// Nothing moves, nothing is held back, and all is well.
async fn at_rest(scene: &Scene, kafka: &Client, brokers: &[i32]) {
    scene.until("everybody is in sync", async || is_settled(kafka).await.unwrap()).await;
    // A broker hears a moment later of what was lifted.
    scene.until("nothing is held back", async || throttles(kafka, brokers).await.unwrap().is_empty()).await;
    scene.until("nothing is left of what was made for it", async || generated(scene).await.is_empty()).await;
    scene.until_ready().await;
    assert_eq!(scene.warning("AutoRebalanceFailed").await, None);
    assert_eq!(scene.brokers().await, brokers);
}

fn modes(all: &[(&str, &str)]) -> Value {
    all.iter().map(|(mode, template)| json!({"mode": mode, "template": {"name": template}})).collect()
}

/// Asks, as anybody may, what would be moved, until that is as much as there is to be moved. Nothing is.
async fn until_known(scene: &Scene) {
    const NAME: &str = "what-if";
    scene.rebalance(NAME, json!({"goals": GOALS, "skipHardGoalCheck": true})).await;
    scene
        .until("the engine knows what lies where", async || {
            let found = scene.api::<KafkaRebalance>().get(NAME).await.expect("what was made");
            let ready = found.state() == RebalanceState::ProposalReady;
            let result = found.status.and_then(|status| status.optimization_result).filter(|_| ready);
            let Some(result) = result else { return false };
            let result = serde_json::to_value(result).expect("numbers and texts");
            let known = result["dataToMoveMB"].as_u64() >= Some(TO_MOVE_MB);
            if !known {
                scene.annotate(NAME, "refresh").await;
            }
            known
        })
        .await;
    scene.api::<KafkaRebalance>().delete(NAME, &DeleteParams::default()).await.expect("what was made");
}

/// The rebalances that the operator has made.
async fn generated(scene: &Scene) -> Vec<String> {
    let all = scene.api::<KafkaRebalance>().list(&ListParams::default()).await.expect("a list");
    let names = all.items.into_iter().filter_map(|it| it.metadata.name);
    names.filter(|name| name.contains("-auto-rebalancing-")).collect()
}

/// Brokers that Kafka knows and lets in; nobody if it does not say.
async fn registered(kafka: &Client) -> Vec<i32> {
    let Ok(cluster) = kafka.describe_cluster().await else { return Vec::new() };
    if cluster.brokers.iter().any(|it| it.fenced) {
        return Vec::new();
    }
    cluster.brokers.iter().map(|it| it.id.0).collect()
}

/// How much of it a broker has; nothing if there is no such broker yet.
async fn bytes_on(freight: &Freight, broker: i32) -> u64 {
    freight.bytes_on(broker).await.unwrap_or(0)
}

/// One node of both roles, with two disks of which the second has the metadata.
async fn one_node_is_a_cluster() {
    let scene = Scene::new("real-node").await;
    let claim = |id: u32| json!({"id": id, "type": "persistent-claim", "size": "10Gi", "deleteClaim": true});
    let mut second = claim(1);
    second["kraftMetadata"] = json!("shared");
    let disks = json!({"type": "jbod", "volumes": [claim(0), second]});
    scene.pool("all", &["controller", "broker"], 1, json!({}), disks).await;
    scene
        .apply::<Kafka>(json!({
            "apiVersion": "kafka.strimzi.io/v1", "kind": "Kafka", "metadata": {"name": CLUSTER},
            "spec": {"kafka": {
                "listeners": [
                    {"name": "plain", "port": 9092, "type": "internal", "tls": false},
                    {"name": "tls", "port": 9093, "type": "internal", "tls": true, "authentication": {"type": "tls"}},
                ],
                "config": {"default.replication.factor": 1, "min.insync.replicas": 1},
                "jvmOptions": {"-Xmx": "512m"},
            }},
        }))
        .await;
    scene.until_ready().await;
    let kafka = scene.client_of_kafka().await;
    scene.until("the broker is in the cluster", async || registered(&kafka).await == [0]).await;
    let freight = Freight::new(&kafka, "freight", &[[0].as_slice(); 8], FREIGHT_BYTES).await.unwrap();
    freight.write(2).await.unwrap();
    freight.is_whole().await.unwrap();
    let dirs = kafka.describe_log_dirs(BrokerId(0), None).await.unwrap().dirs;
    let used = dirs.iter().filter(|(_, dir)| dir.as_ref().is_ok_and(|dir| !dir.replicas.is_empty()));
    let used: BTreeSet<&str> = used.filter_map(|(path, _)| path.rsplit('/').nth(1)).collect();
    assert_eq!(used.len(), 2, "Kafka uses both disks: {dirs:?}");

    // The same pod once more, as a kubelet would start it: nothing of its files and its script is another.
    let pod = scene.api::<Pod>().get("lagoon-all-0").await.expect("the pod");
    if let Some(mut container) = Container::lay_out(&scene, pod).await.unwrap() {
        container_starts(&mut container).await.unwrap();
    }
}

async fn container_starts(container: &mut Container) -> Result<()> {
    for life in ["on empty disks", "on disks that are formatted"] {
        container.start().with_context(|| format!("it does not start {life}"))?;
        container.until_ready().await.with_context(|| format!("it is never ready {life}"))?;
        container.stop().await.with_context(|| format!("it does not end as it was asked to, {life}"))?;
    }
    let disks = [0, 1].map(|id| format!("var/lib/kafka/data-{id}/kafka-log0"));
    let [first, second] = disks.map(|disk| container.root().join(disk));
    for disk in [&first, &second] {
        assert!(disk.join("meta.properties").is_file(), "{} was not formatted", disk.display());
        // What Kafka leaves there when it was asked to end, and had the time.
        assert!(disk.join(".kafka_cleanshutdown").is_file(), "{} was not closed", disk.display());
    }
    assert!(second.join("__cluster_metadata-0").is_dir() && !first.join("__cluster_metadata-0").exists());
    Ok(())
}
