//! Where a template and the operator say something else in the same place, the operator's holds: pods are found by its labels,
//! and started by its variables. What a user has written there is named, so that nobody waits for its effect.

use std::collections::BTreeSet;

use evenkeel_api::{KafkaNodePool, Reason, labels};
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::ResourceExt;

use super::{Facts, bootstrap_service, brokers_service, claims, disruption_budget, pod, pod_sets, service_account};
use crate::kafka::{
    engine,
    model::Model,
    pools::{Origin, Pool},
    problem::Remark,
    template::{ObjectTemplate, PoolTemplate},
};

/// One warning for each resource whose template says such things.
pub(in crate::kafka) fn passed_over(model: &Model, node_pools: &[KafkaNodePool]) -> Vec<Remark> {
    let (mut of_kafka, mut remarks) = (BTreeSet::new(), Vec::new());
    let template = &model.template;
    for (name, wish, made) in [
        ("serviceAccount", &template.service_account.metadata, service_account(model).metadata),
        ("bootstrapService", &template.bootstrap_service.metadata, bootstrap_service(model).metadata),
        ("brokersService", &template.brokers_service.metadata, brokers_service(model).metadata),
        ("podDisruptionBudget", &template.pod_disruption_budget.metadata, disruption_budget(model).metadata),
    ] {
        of_kafka.extend(wish.passed_over(&made).map(|field| format!("spec.kafka.template.{name}.{field}")));
    }
    for pool in model.pools.values() {
        let fields = of_pool(model, pool, &model.templates[&pool.name]);
        let has_own = |it: &KafkaNodePool| it.name_any() == pool.name && it.spec.template.is_some();
        if pool.origin == Origin::NodePool && node_pools.iter().any(has_own) {
            let fields: Vec<String> = fields.into_iter().map(|field| format!("spec.template.{field}")).collect();
            remarks.extend(said(&fields).map(|text| Remark::of_pool(&pool.name, Reason::FieldNotHonoured, text)));
        } else {
            of_kafka.extend(fields.into_iter().map(|field| format!("spec.kafka.template.{field}")));
        }
    }
    let of_engine = model.engine.as_ref().map(|wanted| engine::passed_over(model, wanted)).unwrap_or_default();
    of_kafka.extend(of_engine.into_iter().map(|field| format!("spec.cruiseControl.template.{field}")));
    let of_kafka: Vec<String> = of_kafka.into_iter().collect();
    remarks.extend(said(&of_kafka).map(|text| Remark::of_kafka(Reason::FieldNotHonoured, text)));
    remarks
}

fn said(fields: &[String]) -> Option<String> {
    let are = if fields.len() == 1 { "is" } else { "are" };
    (!fields.is_empty()).then(|| format!("{} {are} not honoured: the operator sets that itself", fields.join(", ")))
}

/// Fields below the template of a pool.
fn of_pool(model: &Model, pool: &Pool, template: &PoolTemplate) -> Vec<String> {
    let mut fields = BTreeSet::new();
    if *template == PoolTemplate::default() {
        return Vec::new();
    }
    // All of its nodes are alike.
    if let Some(node) = model.nodes_of(&pool.name).next() {
        let made = pod::pod(model, node, &Facts::default());
        fields.extend(template.pod.metadata.passed_over(&made.metadata).map(|field| format!("pod.{field}")));
        let spec = made.spec.unwrap_or_default();
        let inits =
            spec.init_containers.into_iter().flatten().map(|it| ("initContainer", &template.init_container, it));
        let containers = spec.containers.into_iter().map(|it| ("kafkaContainer", &template.kafka_container, it));
        for (name, wish, container) in inits.chain(containers) {
            let passed = wish.passed_over(container.env.as_deref().unwrap_or_default());
            fields.extend(passed.map(|field| format!("{name}.{field}")));
        }
    }
    if template.pod_set != ObjectTemplate::default() {
        let name = model.names.pod_set(&pool.name);
        let sets = pod_sets(model, &Facts::default());
        for set in sets.iter().filter(|set| set.name_any() == name) {
            let passed = template.pod_set.metadata.passed_over(&set.metadata);
            fields.extend(passed.map(|field| format!("podSet.{field}")));
        }
    }
    let own = |claim: &&PersistentVolumeClaim| claim.labels().get(labels::POOL_NAME) == Some(&pool.name);
    for claim in claims(model).iter().filter(own) {
        let passed = template.persistent_volume_claim.metadata.passed_over(&claim.metadata);
        fields.extend(passed.map(|field| format!("persistentVolumeClaim.{field}")));
    }
    fields.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::kafka::testing::{Written, harbour};

    /// What is warned of because the operator has its own.
    fn warned(written: &Written) -> Vec<String> {
        written.warned().into_iter().filter(|text| text.ends_with("the operator sets that itself")).collect()
    }

    #[test]
    fn variables_that_are_ours_are_named_and_others_are_set() {
        let env = json!([{"name": "KAFKA_LOG4J_OPTS", "value": "-Dmine"}, {"name": "MINE", "value": "1"}]);
        let written = harbour()
            .with("/spec/kafka/template/kafkaContainer/env", env.clone())
            .with("/spec/kafka/template/initContainer/env", json!([{"name": "NODE_NAME", "value": "x"}]));
        assert_eq!(
            warned(&written),
            [
                "spec.kafka.template.initContainer.env.NODE_NAME, spec.kafka.template.kafkaContainer.env.KAFKA_LOG4J_OPTS are \
              not honoured: the operator sets that itself"
            ]
        );
        // A template of its own makes it the pool's affair. The heap is ours because the memory is stated.
        let heap = json!([{"name": "KAFKA_HEAP_OPTS", "value": "-Xmx1g"}]);
        let written = harbour()
            .with("/spec/kafka/template/kafkaContainer/env", env)
            .with_brokers("/spec/template/kafkaContainer/env", heap);
        assert_eq!(
            warned(&written),
            [
                "node pool brokers, spec.template.kafkaContainer.env.KAFKA_HEAP_OPTS is not honoured: the operator sets that \
                 itself",
                "spec.kafka.template.kafkaContainer.env.KAFKA_LOG4J_OPTS is not honoured: the operator sets that itself"
            ]
        );
    }

    #[test]
    fn labels_and_annotations_that_are_ours_are_named() {
        let marks = json!({"metadata": {
            "labels": {"strimzi.io/cluster": "other", "team": "x"},
            "annotations": {"strimzi.io/storage": "mine", "strimzi.io/delete-claim": "mine", "note": "x"}}});
        let template =
            json!({"pod": marks, "podSet": marks, "persistentVolumeClaim": marks, "bootstrapService": marks});
        let cluster = "metadata.labels.strimzi.io/cluster";
        let all = [
            format!("bootstrapService.{cluster}"),
            "persistentVolumeClaim.metadata.annotations.strimzi.io/delete-claim".to_owned(),
            format!("persistentVolumeClaim.{cluster}"),
            format!("pod.{cluster}"),
            "podSet.metadata.annotations.strimzi.io/storage".to_owned(),
            format!("podSet.{cluster}"),
        ];
        let all: Vec<String> = all.into_iter().map(|field| format!("spec.kafka.template.{field}")).collect();
        let expected = format!("{} are not honoured: the operator sets that itself", all.join(", "));
        assert_eq!(warned(&harbour().with("/spec/kafka/template", template)), [expected]);
        // The same as ours is no contradiction.
        let same = json!({"pod": {"metadata": {"labels": {"strimzi.io/cluster": "harbour"}}}});
        assert_eq!(warned(&harbour().with("/spec/kafka/template", same)), [""; 0]);
    }

    #[test]
    fn the_engine_s_too() {
        let marks =
            json!({"metadata": {"labels": {"strimzi.io/kind": "x"}, "annotations": {"strimzi.io/auth-hash": "x"}}});
        let env = json!([{"name": "API_PORT", "value": "1"}]);
        let template = json!({"pod": marks, "apiService": marks, "cruiseControlContainer": {"env": env},
            "deployment": {"deploymentStrategy": "RollingUpdate"}});
        let ours = harbour().with("/spec/cruiseControl/template", template);
        let text = |fields: &[&str]| {
            let fields: Vec<String> =
                fields.iter().map(|field| format!("spec.cruiseControl.template.{field}")).collect();
            format!("{} are not honoured: the operator sets that itself", fields.join(", "))
        };
        let label = "metadata.labels.strimzi.io/kind";
        let (service, pod) = (format!("apiService.{label}"), format!("pod.{label}"));
        let hash = "pod.metadata.annotations.strimzi.io/auth-hash";
        assert_eq!(warned(&ours), [text(&[&service, "deployment.deploymentStrategy", hash, &pod])]);
        // Another image has variables, and is rolled as it is asked for.
        let theirs = ours.with("/spec/cruiseControl/image", json!("cruise-control:1"));
        assert_eq!(warned(&theirs), [text(&[&service, "cruiseControlContainer.env.API_PORT", hash, &pod])]);
    }
}
