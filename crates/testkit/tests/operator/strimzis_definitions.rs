//! On a cluster that has Strimzi's own definitions: they stay, the operator works with them, and what they drop or refuse
//! is said.

use std::path::{Path, PathBuf};

use evenkeel_api::rebalance::RebalanceState;
use evenkeel_operator::installation::{Outcome, definitions};
use evenkeel_sim::cluster::NewTopic;
use evenkeel_sim::{BrokerId, TopicPartition};
use evenkeel_testkit::real_kube::{ControlPlane, KUBETEST};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use serde_json::json;

use crate::refusals::Refusals;
use crate::scene::{CLUSTER, Scene};
use crate::world::{World, install, until};

/// A folder with a file for each kind; `cargo xtask real kube` sets it.
const DEFINITIONS: &str = "EVENKEEL_STRIMZI_DEFINITIONS";
/// What they do not know of ours.
const LACKS: [&str; 5] = [
    "kafkas.kafka.strimzi.io: the API server drops `spec.cruiseControl.autoRebalance[].config`, `spec.kafka.replicas`, \
     `spec.kafka.resources`, `spec.kafka.storage`, `status.clusterSecurity`",
    "kafkas.kafka.strimzi.io: the API server refuses `imbalance` as `spec.cruiseControl.autoRebalance[].mode`",
    "kafkas.kafka.strimzi.io: the API server refuses `imbalance` as `status.autoRebalance.modes[].mode`",
    "kafkas.kafka.strimzi.io: the API server refuses `RebalanceOnImbalance` as `status.autoRebalance.state`",
    "kafkarebalances.kafka.strimzi.io: the API server drops `spec.template`",
];
const MB: u64 = 1_000_000;

mod real_arm {
    #[tokio::test]
    async fn the_operator_works_on_strimzis_own_definitions_and_says_what_they_lack() {
        super::works_on_strimzis_definitions().await;
    }
}

async fn works_on_strimzis_definitions() {
    // Our own server takes them as well, and sees the same in them.
    let embedded = evenkeel_testkit::embedded().await;
    define(&embedded).await;
    assert_eq!(lacks(&embedded).await, LACKS);

    let kubetest = std::env::var_os(KUBETEST).expect("the path of the real control plane");
    let control_plane = ControlPlane::start(Path::new(&kubetest)).await.expect("a control plane of its own");
    let control_plane: &'static ControlPlane = Box::leak(Box::new(control_plane));
    let admin = control_plane.client().await.expect("a client");
    let before = define(&admin).await;
    for done in install(&admin).await {
        let is_definition = done.what.starts_with("customresourcedefinition/");
        assert_eq!(matches!(done.outcome, Outcome::Left(_)), is_definition, "{done}");
    }
    assert_eq!(lacks(&admin).await, LACKS);
    let world: &'static World = Box::leak(Box::new(World::begin(control_plane, Refusals::lenient()).await));

    let scene = Scene::of(world, "beside-strimzi").await;
    // Ours refuse a mode that is listed twice; these do not. The first entry counts: with the other nothing would be made.
    let other = json!({"mode": "add-brokers", "template": {"name": "missing"}});
    let automatic = json!([{"mode": "add-brokers"}, {"mode": "remove-brokers"}, other]);
    scene.cluster(Some(automatic)).await;
    scene
        .until("it is said that a mode is listed twice", async || {
            let said = scene.warning("InvalidResourceException").await;
            said.is_some_and(|text| text.contains("lists mode add-brokers twice"))
        })
        .await;
    let brokers = world.node.brokers.worlds().get(&scene.namespace, CLUSTER).expect("brokers that have started");
    brokers.with(|cluster| {
        let lists: [&[i32]; 6] = [&[0, 1], &[1, 0], &[0, 1], &[1, 0], &[0, 1], &[1, 0]];
        cluster.create_topic(&NewTopic::manual("orders", &lists), false).expect("a new topic");
        (0..6).for_each(|number| cluster.fill(&TopicPartition::new("orders", number), 20 * MB));
    });
    let holds = |id: i32| brokers.look(|cluster| cluster.replicas_on(BrokerId(id)).len());
    let even = json!({"goals": ["ReplicaDistributionGoal"], "skipHardGoalCheck": true, "excludedTopics": "__.*"});
    scene.rebalance("even", even).await;
    scene.until_state("even", RebalanceState::ProposalReady).await;
    scene.annotate("even", "approve").await;
    scene.until_state("even", RebalanceState::Ready).await;
    scene.scale(4).await;
    scene.until("broker 3 has its share", async || holds(3) > 0 && scene.rests().await).await;
    scene.scale(3).await;
    scene.until("broker 3 was emptied and is gone", async || scene.brokers().await == [0, 1, 2]).await;

    for definition in before {
        let now = api(&admin).get(&definition.name_any()).await.expect("it stays");
        assert_eq!(now.spec, definition.spec, "{}", definition.name_any());
    }
}

fn api(client: &Client) -> Api<CustomResourceDefinition> {
    Api::all(client.clone())
}

/// Installs the definitions as Strimzi's users do.
async fn define(client: &Client) -> Vec<CustomResourceDefinition> {
    let folder = PathBuf::from(std::env::var_os(DEFINITIONS).expect("where Strimzi's definitions are"));
    let mut all = Vec::new();
    for file in std::fs::read_dir(folder).expect("a folder of definitions") {
        let text = std::fs::read_to_string(file.expect("a file").path()).expect("a definition");
        let definition: CustomResourceDefinition = serde_saphyr::from_str(&text).expect("a definition");
        let (name, params) = (definition.name_any(), PatchParams::apply("strimzi").force());
        all.push(api(client).patch(&name, &params, &Patch::Apply(&definition)).await.expect("it is taken"));
    }
    assert_eq!(all.len(), 4);
    for definition in &all {
        until("it is served", async || {
            let found = api(client).get(&definition.name_any()).await.expect("it is there");
            let conditions = found.status.and_then(|status| status.conditions).unwrap_or_default();
            conditions.iter().any(|it| it.type_ == "Established" && it.status == "True")
        })
        .await;
    }
    all
}

async fn lacks(client: &Client) -> Vec<String> {
    let found = definitions::look(client).await.expect("the definitions");
    found.iter().map(|(name, lack)| format!("{name}: {lack}")).collect()
}
