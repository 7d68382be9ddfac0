//! What people do with clusters and rebalances, and what the real server says to everything that follows from it.

use evenkeel_api::rebalance::RebalanceState;
use evenkeel_api::{Kafka, KafkaNodePool, KafkaRebalance, StrimziPodSet, labels};
use evenkeel_sim::cluster::NewTopic;
use evenkeel_sim::serve::World as Simulated;
use evenkeel_sim::{BrokerId, TopicPartition};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Pod, Secret, Service, ServiceAccount};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::rbac::v1::{ClusterRoleBinding, Role, RoleBinding};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Resource};
use serde_json::{Value, json};

use crate::scene::{CLUSTER, Scene};

const MB: u64 = 1_000_000;
const PARTITIONS: i32 = 12;

mod real_arm {
    #[tokio::test]
    async fn a_cluster_grows_shrinks_when_nothing_is_lost_and_goes_without_a_trace() {
        super::life_of_a_cluster().await;
    }

    #[tokio::test]
    async fn rebalances_are_asked_for_or_automatic_and_the_engine_may_write_one_map() {
        super::life_of_rebalances().await;
    }
}

fn simulated(scene: &Scene) -> Simulated {
    scene.world.node.brokers.worlds().get(&scene.namespace, CLUSTER).expect("brokers that have started")
}

async fn life_of_a_cluster() {
    let scene = Scene::new("life-of-a-cluster").await;
    scene.cluster(None).await;
    assert_eq!(scene.brokers().await, [0, 1, 2]);
    let leases = Api::<Lease>::namespaced(scene.client.clone(), "evenkeel");
    let lease = leases.get("strimzi-cluster-operator").await.expect("the operator's Lease").spec.expect("a holder");
    assert_eq!(lease.holder_identity.as_deref(), Some("evenkeel-operator-0"));

    scene.scale(4).await;
    scene.until("the fourth is there", async || scene.brokers().await == [0, 1, 2, 3]).await;
    scene.until_ready().await;

    // What broker 3 holds keeps it.
    let brokers = simulated(&scene);
    scene
        .until("broker 3 is registered", async || {
            let topic = NewTopic::manual("orders", &[&[3, 0], &[0, 1]]);
            brokers.with(|cluster| cluster.create_topic(&topic, false)).is_ok()
        })
        .await;
    scene.scale(3).await;
    // What one broker says of another lags, so at first it may be taken for empty; but nothing goes on one look.
    scene
        .until("it is said why it stays", async || {
            scene.warning("ScaleDownPreventionCheck").await.is_some_and(|said| said.contains("broker 3"))
        })
        .await;
    assert_eq!(scene.brokers().await, [0, 1, 2, 3]);

    // Empty, it goes with all that was its own, and Kafka forgets it.
    brokers.with(|cluster| cluster.delete_topic("orders")).expect("a topic that was there");
    scene.until("it goes", async || scene.brokers().await == [0, 1, 2]).await;
    scene
        .until("its pod, claim and files go", async || {
            scene.is_gone::<Pod>("lagoon-quay-3").await
                && scene.is_gone::<PersistentVolumeClaim>("data-lagoon-quay-3").await
                && scene.is_gone::<ConfigMap>("lagoon-quay-3").await
                && scene.is_gone::<Secret>("lagoon-quay-3").await
        })
        .await;
    scene
        .until("Kafka forgets it", async || {
            let known = brokers.look(|cluster| cluster.describe_brokers(BrokerId(0), true));
            known.iter().all(|broker| broker.id != BrokerId(3))
        })
        .await;

    // What changes restarts pods one by one.
    let uid = scene.api::<Pod>().get("lagoon-quay-0").await.expect("a broker").metadata.uid;
    let more = json!({"spec": {"kafka": {"config": {"num.partitions": 5}}}});
    scene.api::<Kafka>().patch(CLUSTER, &PatchParams::default(), &Patch::Merge(more)).await.expect("a changed Kafka");
    scene
        .until("broker 0 is new", async || {
            let pod = scene.api::<Pod>().get_opt("lagoon-quay-0").await.expect("an answer");
            pod.is_some_and(|pod| pod.metadata.uid != uid)
        })
        .await;

    assert!(left(&scene).await.iter().any(|it| it.starts_with("ClusterRoleBinding ")), "it has racks");
    // The pools first: then nothing of the cluster is left that would remember its racks.
    for pool in ["quay", "pilots"] {
        scene.api::<KafkaNodePool>().delete(pool, &DeleteParams::default()).await.expect("a pool that goes");
    }
    scene.until("its pod sets go", async || of::<StrimziPodSet>(&scene).await.is_empty()).await;
    scene.api::<Kafka>().delete(CLUSTER, &DeleteParams::default()).await.expect("a Kafka that goes");
    scene
        .until("nothing is left", async || {
            let left = left(&scene).await;
            left.is_empty()
        })
        .await;
}

/// Everything of the cluster that is still there.
async fn left(scene: &Scene) -> Vec<String> {
    let mut all = of::<Pod>(scene).await;
    all.extend(of::<StrimziPodSet>(scene).await);
    all.extend(of::<Deployment>(scene).await);
    all.extend(of::<ReplicaSet>(scene).await);
    all.extend(of::<Service>(scene).await);
    all.extend(of::<ServiceAccount>(scene).await);
    all.extend(of::<Secret>(scene).await);
    all.extend(of::<ConfigMap>(scene).await);
    all.extend(of::<PersistentVolumeClaim>(scene).await);
    all.extend(of::<PodDisruptionBudget>(scene).await);
    all.extend(of::<NetworkPolicy>(scene).await);
    all.extend(of::<Role>(scene).await);
    all.extend(of::<RoleBinding>(scene).await);
    all.extend(of::<KafkaRebalance>(scene).await);
    // In no namespace; the name of its own is in its name.
    let binding = format!("strimzi-{}-{CLUSTER}-kafka-init", scene.namespace);
    let bindings = Api::<ClusterRoleBinding>::all(scene.client.clone());
    let binding = bindings.get_metadata_opt(&binding).await.expect("an answer");
    all.extend(binding.and_then(|it| Some(format!("ClusterRoleBinding {}", it.metadata.name?))));
    all
}

async fn of<K>(scene: &Scene) -> Vec<String>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + serde::de::DeserializeOwned
        + std::fmt::Debug,
{
    let of_cluster = ListParams::default().labels(&format!("{}={CLUSTER}", labels::CLUSTER));
    let found = scene.api::<K>().list_metadata(&of_cluster).await.expect("a list").items;
    found.into_iter().filter_map(|it| Some(format!("{} {}", K::kind(&()), it.metadata.name?))).collect()
}

async fn life_of_rebalances() {
    let scene = Scene::new("life-of-rebalances").await;
    let automatic = json!([{"mode": "add-brokers"}, {"mode": "remove-brokers"}]);
    scene.cluster(Some(automatic)).await;
    let brokers = simulated(&scene);
    let lists: Vec<[i32; 2]> = (0..PARTITIONS).map(|number| if number % 2 == 0 { [0, 1] } else { [1, 0] }).collect();
    let lists: Vec<&[i32]> = lists.iter().map(<[i32; 2]>::as_slice).collect();
    brokers.with(|cluster| {
        cluster.create_topic(&NewTopic::manual("orders", &lists), false).expect("a new topic");
        (0..PARTITIONS).for_each(|number| cluster.fill(&TopicPartition::new("orders", number), 20 * MB));
    });
    let holds = |id: i32| brokers.look(|cluster| cluster.replicas_on(BrokerId(id)).len());

    // Asked for, looked at, approved, followed.
    let even = json!({"goals": ["ReplicaDistributionGoal"], "skipHardGoalCheck": true, "excludedTopics": "__.*"});
    scene.rebalance("even", even).await;
    // Brokers tell of a new topic a little later, and until then there is nothing to move.
    scene
        .until("there is something to move", async || {
            let found = scene.api::<KafkaRebalance>().get("even").await.expect("an answer");
            let result = found.status.as_ref().and_then(|status| status.optimization_result.as_ref());
            let moves = result.and_then(|result| result.get("numReplicaMovements")?.as_u64());
            if found.state() == RebalanceState::ProposalReady && moves == Some(0) {
                scene.annotate("even", "refresh").await;
            }
            found.state() == RebalanceState::ProposalReady && moves > Some(0)
        })
        .await;
    let before = holds(2);
    scene.annotate("even", "approve").await;
    scene.until_moving("even").await;
    scene.until_state("even", RebalanceState::Ready).await;
    assert!(holds(2) > before, "it held {before}, and holds {}", holds(2));

    // By itself, when brokers come and go.
    scene.scale(4).await;
    scene.until("broker 3 has its share", async || holds(3) > 0 && scene.rests().await).await;
    scene.scale(3).await;
    scene.until("broker 3 was emptied and is gone", async || scene.brokers().await == [0, 1, 2]).await;
    assert_eq!(holds(3), 0);
    scene.until("the operator rests", async || scene.rests().await).await;

    // On imbalance: the engine may write one ConfigMap, and nothing else.
    let modes = json!([{"mode": "add-brokers"}, {"mode": "remove-brokers"}, {"mode": "imbalance"}]);
    let patch = Patch::Merge(json!({"spec": {"cruiseControl": {"autoRebalance": modes}}}));
    scene.api::<Kafka>().patch(CLUSTER, &PatchParams::default(), &patch).await.expect("a changed Kafka");
    let map = format!("{CLUSTER}-goal-violation-map");
    scene.until("the engine may write its map", async || may(&scene, "update", "configmaps", &map).await).await;
    assert!(!scene.is_gone::<ConfigMap>(&map).await);
    for (verb, resource, name) in
        [("update", "configmaps", "lagoon-quay-0"), ("get", "secrets", "lagoon-quay-0"), ("delete", "configmaps", &map)]
    {
        assert!(!may(&scene, verb, resource, name).await, "{verb} {resource} {name}");
    }
    let patch = Patch::Merge(json!({"spec": {"cruiseControl": {"autoRebalance": null}}}));
    scene.api::<Kafka>().patch(CLUSTER, &PatchParams::default(), &patch).await.expect("a changed Kafka");
    scene.until("it may no longer", async || !may(&scene, "update", "configmaps", &map).await).await;
    scene.until_ready().await;
}

/// Whether the engine's account may do something in its namespace.
async fn may(scene: &Scene, verb: &str, resource: &str, name: &str) -> bool {
    let account = format!("system:serviceaccount:{}:{CLUSTER}-cruise-control", scene.namespace);
    let attributes: Value = json!({"namespace": scene.namespace, "verb": verb, "resource": resource, "name": name});
    let asked = json!({"metadata": {}, "spec": {"user": account, "resourceAttributes": attributes}});
    let asked: SubjectAccessReview = serde_json::from_value(asked).expect("a question");
    let reviews = Api::<SubjectAccessReview>::all(scene.client.clone());
    let answer = reviews.create(&PostParams::default(), &asked).await.expect("an answer");
    answer.status.is_some_and(|status| status.allowed)
}
