//! On definitions that somebody else has installed the operator works, and says what they do not know.

use std::collections::BTreeSet;

use evenkeel_api::crds;
use evenkeel_operator::installation::definitions;
use k8s_openapi::api::rbac::v1::ClusterRole;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};

use crate::play::{Play, mode, scaling};
use crate::rights::Call;
use crate::scene::pool;
use crate::stage::Stage;

const ROLE: &str = include_str!("../../../../deploy/operator/definition-role.yaml");
const DROPPED: [(&str, &str); 4] = [
    ("Kafka", "/spec/properties/kafka/properties/replicas"),
    ("Kafka", "/spec/properties/cruiseControl/properties/autoRebalance/items/properties/config"),
    ("KafkaRebalance", "/spec/properties/template"),
    ("KafkaNodePool", "/status/properties/labelSelector"),
];

/// Ours with one version, nothing kept that is not known, and without some fields and values.
fn narrow() -> Vec<CustomResourceDefinition> {
    let narrowed = |definition: CustomResourceDefinition| {
        let mut value = serde_json::to_value(definition).unwrap();
        value["metadata"]["labels"] = json!({"app": "strimzi"});
        let versions = value["spec"]["versions"].as_array_mut().unwrap();
        versions.retain(|version| version["name"] == "v1");
        // `kubectl scale` has no part in it.
        versions[0]["subresources"] = json!({"status": {}});
        let kind = value["spec"]["names"]["kind"].as_str().unwrap().to_owned();
        let schema = &mut value["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        close(schema);
        for (_, path) in DROPPED.iter().filter(|(of, _)| *of == kind) {
            let (folder, name) = path.rsplit_once('/').unwrap();
            let fields = schema["properties"].pointer_mut(folder).unwrap().as_object_mut().unwrap();
            fields.remove(name).unwrap_or_else(|| panic!("{kind} has no {path}"));
        }
        if kind == "Kafka" {
            let modes = "/spec/properties/cruiseControl/properties/autoRebalance/items/properties/mode";
            let mode = schema["properties"].pointer_mut(modes).unwrap();
            mode["enum"] = json!(["add-brokers", "remove-brokers"]);
        }
        serde_json::from_value(value).unwrap()
    };
    crds().into_iter().map(narrowed).collect()
}

/// The same without rules: Strimzi's have none about lists.
fn lenient() -> Vec<CustomResourceDefinition> {
    let unruled = |definition: CustomResourceDefinition| {
        let mut value = serde_json::to_value(definition).unwrap();
        lift_rules(&mut value);
        serde_json::from_value(value).unwrap()
    };
    narrow().into_iter().map(unruled).collect()
}

fn lift_rules(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            fields.remove("x-kubernetes-validations");
            fields.values_mut().for_each(lift_rules);
        }
        Value::Array(items) => items.iter_mut().for_each(lift_rules),
        _ => {}
    }
}

/// Cuts out what a schema does not name.
fn close(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if fields.contains_key("properties") {
                fields.remove("x-kubernetes-preserve-unknown-fields");
            }
            fields.values_mut().for_each(close);
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        _ => {}
    }
}

#[tokio::test(start_paused = true)]
async fn clusters_are_made_and_rebalanced_and_what_is_missing_is_said() {
    let stage = Stage::defined(narrow()).await;
    let looked = definitions::look(&stage.context.client).await.unwrap();
    let told: Vec<String> = looked.iter().map(|(name, lack)| format!("{name}: {lack}")).collect();
    assert_eq!(
        told,
        [
            "kafkas.kafka.strimzi.io: the API server drops `spec.cruiseControl.autoRebalance[].config`, \
             `spec.kafka.replicas`",
            "kafkas.kafka.strimzi.io: the API server refuses `imbalance` as \
             `spec.cruiseControl.autoRebalance[].mode`",
            "kafkanodepools.kafka.strimzi.io: the API server drops `status.labelSelector`",
            "kafkarebalances.kafka.strimzi.io: the API server drops `spec.template`",
        ]
    );
    let call = Call { verb: "get", group: "apiextensions.k8s.io".into(), resource: "customresourcedefinitions".into() };
    assert_eq!(stage.calls(), BTreeSet::from([call]), "and nothing else was asked for that");

    stage.settle();
    let play = Play::staged(stage, pool("brokers", 3, &["broker"], json!({})), scaling(), &[0, 1, 2]).await;
    play.scale(4).await;
    play.until("a new broker has data", async |play| play.holders().contains(&3)).await;
    play.until_settled().await;
}

#[tokio::test(start_paused = true)]
async fn of_a_mode_that_nobody_refuses_twice_the_first_entry_counts_and_it_is_said() {
    let stage = Stage::defined(lenient()).await;
    stage.settle();
    let missing = |name: &str| json!({"mode": name, "template": {"name": "missing"}});
    let modes = [mode("add-brokers"), mode("remove-brokers"), missing("add-brokers"), missing("remove-brokers")];
    let engine = json!({"autoRebalance": modes});
    let play = Play::staged(stage, pool("brokers", 3, &["broker"], json!({})), engine, &[0, 1, 2]).await;
    play.until("it is said", async |play| {
        let conditions = play.status().await.conditions;
        let said = |mode: &str| {
            let text = format!("autoRebalance lists mode {mode} twice: the first entry counts");
            conditions.iter().any(|it| it.is_warning() && it.message.as_ref().is_some_and(|it| it.contains(&text)))
        };
        said("add-brokers") && said("remove-brokers")
    })
    .await;
    // With the template of the other entry nobody would get data, and nobody would be emptied.
    play.scale(4).await;
    play.until("a new broker has data", async |play| play.holders().contains(&3)).await;
    play.until_settled().await;
    play.scale(3).await;
    play.until("it was emptied and is gone", async |play| play.brokers().await.len() == 3).await;
    assert_eq!(play.holders(), BTreeSet::from([0, 1, 2]));
    play.until_settled().await;
}

#[test]
fn the_right_to_look_at_definitions_is_for_ours_alone() {
    let role: ClusterRole = serde_saphyr::from_str(ROLE.split("---\n").next().unwrap()).unwrap();
    let rules = role.rules.unwrap();
    let names = rules[0].resource_names.clone().unwrap_or_default();
    let ours: Vec<String> = crds().into_iter().filter_map(|definition| definition.metadata.name).collect();
    assert_eq!((rules.len(), names, &rules[0].verbs[..]), (1, ours, &["get".to_owned()][..]));
}
