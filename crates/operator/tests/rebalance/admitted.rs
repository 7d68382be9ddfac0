//! Definitions that are not ours: they bound no number, require no spec and refuse hardly anything, and a cluster that had them
//! first keeps them.

use evenkeel_api::rebalance::RebalanceState;
use evenkeel_api::{KafkaRebalance, Reason};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, PostParams};
use serde_json::{Value, json};

use crate::stage::{CLUSTER, Stage, condition};

const NAME: &str = "my-rebalance";

/// What our definitions say of values is taken out of them, everywhere.
async fn loosen_definitions(stage: &Stage) {
    fn loosen(schema: &mut Value) {
        match schema {
            Value::Object(fields) => {
                let ours = ["maximum", "minimum", "maxItems", "required", "x-kubernetes-validations", "enum"];
                let lists = ["x-kubernetes-list-type", "x-kubernetes-list-map-keys"];
                fields.retain(|key, _| !ours.contains(&key.as_str()) && !lists.contains(&key.as_str()));
                fields.values_mut().for_each(loosen);
            }
            Value::Array(items) => items.iter_mut().for_each(loosen),
            _ => {}
        }
    }
    let api = Api::<CustomResourceDefinition>::all(stage.client.clone());
    for crd in api.list(&Default::default()).await.unwrap() {
        let mut value = serde_json::to_value(&crd).unwrap();
        for version in value["spec"]["versions"].as_array_mut().unwrap() {
            loosen(&mut version["schema"]["openAPIV3Schema"]);
        }
        let name = crd.metadata.name.unwrap();
        api.replace(&name, &PostParams::default(), &serde_json::from_value(value).unwrap()).await.unwrap();
    }
}

/// As it stands in a manifest: what our types would write is another matter.
async fn apply(stage: &Stage, name: &str, rest: Value) -> Result<(), kube::Error> {
    let resource = ApiResource::erase::<KafkaRebalance>(&());
    let api: Api<DynamicObject> = Api::namespaced_with(stage.client.clone(), &stage.namespace, &resource);
    let mut object = json!({
        "apiVersion": "kafka.strimzi.io/v1", "kind": "KafkaRebalance",
        "metadata": {"name": name, "labels": {"strimzi.io/cluster": CLUSTER}},
    });
    object.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
    api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.map(drop)
}

fn is_refused(answer: Result<(), kube::Error>) -> bool {
    matches!(answer, Err(kube::Error::Api(status)) if status.code == 422)
}

pub async fn what_only_others_definitions_admit_is_answered_and_hides_nobody(stage: Stage) {
    let beyond = 3_000_000_000_i64;
    let odd = [
        ("odd-brokers", json!({"mode": "remove-brokers", "brokers": [beyond]})),
        ("odd-pace", json!({"concurrentLeaderMovements": beyond})),
        ("odd-volumes", json!({"mode": "remove-disks", "moveReplicasOffVolumes": [{"brokerId": beyond}]})),
    ];
    let twice = json!({"mode": "remove-disks", "moveReplicasOffVolumes": [
        {"brokerId": 0, "volumeIds": [0]}, {"brokerId": 0, "volumeIds": [1]},
    ]});
    for spec in odd.iter().map(|(_, spec)| spec).chain([&twice]) {
        assert!(is_refused(apply(&stage, "refused", json!({ "spec": spec })).await), "ours refuse it: {spec}");
    }
    assert!(is_refused(apply(&stage, "refused", json!({})).await), "and no spec at all");
    loosen_definitions(&stage).await;
    let first = stage.operator();
    stage.create(NAME, |_| {}).await;
    for (name, spec) in &odd {
        apply(&stage, name, json!({ "spec": spec })).await.unwrap();
    }
    apply(&stage, "bare", json!({})).await.unwrap();
    stage.until_state(NAME, RebalanceState::ProposalReady).await;
    for (name, _) in &odd {
        let failed = stage.until_state(name, RebalanceState::NotReady).await;
        assert!(condition(&failed).has_reason(Reason::IllegalArgumentException), "{failed:?}");
    }
    stage.until("one without a spec is looked at", || async { stage.get("bare").await.status.is_some() }).await;
    // The next one lists them all before it hears of anything.
    first.end().await;
    let _next = stage.operator();
    stage.ask(NAME, "approve").await;
    stage.until_state(NAME, RebalanceState::Ready).await;
    for (name, _) in &odd {
        stage.delete(name).await;
        stage.until("it is gone", || stage.is_gone(name)).await;
    }
}
