//! What controllers keep of the objects that they watch. Of a hundred clusters and a thousand rebalances that is most of
//! what the operator holds at rest, so it is as little as will do: whoever decides about an object reads it anew.

use evenkeel_api::{Kafka, KafkaRebalance, KafkaRebalanceSpec};
use kube::{
    Api, Resource,
    core::{ObjectMeta, PartialObjectMeta},
    runtime::{Controller, WatchStreamExt, reflector, watcher},
};
use serde::de::DeserializeOwned;

/// All of an object as it was last applied: nobody here reads it.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// What figures tell of a proposal.
pub(crate) const BALANCEDNESS: [(&str, &str); 2] =
    [("before", "onDemandBalancednessScoreBefore"), ("after", "onDemandBalancednessScoreAfter")];

/// A controller that keeps of each object what `leave_out` leaves.
pub(crate) fn controller<K>(api: Api<K>, config: watcher::Config, leave_out: fn(&mut K)) -> Controller<K>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug + Send + Sync + 'static,
{
    let (reader, writer) = reflector::store();
    let watched = watcher(api, config).modify(move |object| {
        without_its_history(object.meta_mut());
        leave_out(object);
    });
    Controller::for_stream(watched.reflect(writer).applied_objects(), reader)
}

/// Who wrote which field is often more than the fields themselves.
fn without_its_history(metadata: &mut ObjectMeta) {
    metadata.managed_fields = None;
    if let Some(annotations) = &mut metadata.annotations {
        annotations.remove(LAST_APPLIED);
    }
}

/// What matters of a Kafka that is not the one in question: how its rebalances come about, and how far they are.
pub(crate) fn little_of_a_kafka(kafka: &mut Kafka) {
    kafka.spec.kafka = None;
    kafka.spec.unknown = Default::default();
    if let Some(engine) = &mut kafka.spec.cruise_control {
        let auto_rebalance = engine.auto_rebalance.take();
        *engine = evenkeel_api::kafka::CruiseControlSpec { auto_rebalance, ..Default::default() };
    }
    if let Some(status) = &mut kafka.status {
        let auto_rebalance = status.auto_rebalance.take();
        *status = evenkeel_api::KafkaStatus { auto_rebalance, ..Default::default() };
    }
}

/// What matters of a rebalance that is not the one in question: what it is for, whether it runs, and its figures.
pub(crate) fn little_of_a_rebalance(rebalance: &mut KafkaRebalance) {
    rebalance.spec = KafkaRebalanceSpec { mode: rebalance.spec.mode, ..Default::default() };
    if let Some(result) = rebalance.status.as_mut().and_then(|status| status.optimization_result.as_mut()) {
        result.retain(|key, _| BALANCEDNESS.iter().any(|(_, kept)| kept == key));
    }
}

/// What matters of what may have to be released.
pub(crate) fn name_and_finalizers<K>(object: &mut PartialObjectMeta<K>) {
    object.metadata.labels = None;
    object.metadata.annotations = None;
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read<K: DeserializeOwned>(value: serde_json::Value) -> K {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn who_wrote_what_is_not_kept() {
        let mut metadata: ObjectMeta = read(json!({
            "name": "a",
            "annotations": {LAST_APPLIED: "{}", "strimzi.io/rebalance": "approve"},
            "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:spec": {}}}],
        }));
        without_its_history(&mut metadata);
        let left = json!({"name": "a", "annotations": {"strimzi.io/rebalance": "approve"}});
        assert_eq!(serde_json::to_value(metadata).unwrap(), left);
    }

    #[test]
    fn of_a_kafka_its_automatic_rebalancing_is_kept() {
        let mut kafka: Kafka = read(json!({
            "metadata": {"name": "c"},
            "spec": {
                "kafka": {"config": {"a": 1}}, "entityOperator": {},
                "cruiseControl": {"config": {"b": 2}, "autoRebalance": [{"mode": "imbalance"}]},
            },
            "status": {"clusterId": "x", "autoRebalance": {"state": "Idle"}},
        }));
        little_of_a_kafka(&mut kafka);
        assert_eq!(kafka.spec.auto_rebalances().len(), 1);
        let left = serde_json::to_value(&kafka).unwrap();
        assert_eq!(left["spec"], json!({"cruiseControl": {"autoRebalance": [{"mode": "imbalance"}]}}));
        assert_eq!(left["status"]["autoRebalance"]["state"], "Idle");
        assert_eq!(left["status"].get("clusterId"), None);
    }

    #[test]
    fn of_a_proposal_its_scores_are_kept() {
        let mut rebalance: KafkaRebalance = read(json!({
            "metadata": {"name": "r"}, "spec": {"mode": "add-brokers", "brokers": [1]},
            "status": {"conditions": [{"type": "ProposalReady", "status": "True"}], "optimizationResult": {
                "onDemandBalancednessScoreBefore": 1.0, "onDemandBalancednessScoreAfter": 2.0, "afterBeforeLoadConfigMap": "r",
            }},
        }));
        little_of_a_rebalance(&mut rebalance);
        let status = rebalance.status.unwrap();
        let kept: Vec<String> = status.optimization_result.unwrap().into_keys().collect();
        assert_eq!(kept, ["onDemandBalancednessScoreAfter", "onDemandBalancednessScoreBefore"]);
        assert_eq!(status.conditions.len(), 1);
        assert_eq!(serde_json::to_value(rebalance.spec).unwrap(), json!({"mode": "add-brokers"}));
    }
}
