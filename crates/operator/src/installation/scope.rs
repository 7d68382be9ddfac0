//! Whose KafkaRebalances are ours. Another operator may work on the same cluster, with finalizers of the same names.

use std::collections::BTreeSet;

use evenkeel_api::{Kafka, labels};
use k8s_openapi::api::apps::v1::Deployment;
use kube::{ResourceExt, api::DynamicObject, core::PartialObjectMeta};

use crate::{kafka::desired::APPLIED, settings::Settings};

/// What the operator was told to look after, and what says that somebody else does.
#[derive(Clone, Debug, Default)]
pub(super) struct Scope {
    settings: Settings,
    /// Namespaces and names of clusters that another operator has made.
    foreign: BTreeSet<(String, String)>,
}

impl Scope {
    /// As the operator's Deployment says; without one anything may have been its own.
    pub(super) fn of(deployment: Option<&Deployment>) -> Self {
        let pod = deployment.and_then(|it| it.spec.as_ref()).and_then(|spec| spec.template.spec.as_ref());
        let variables: Vec<_> = pod
            .into_iter()
            .flat_map(|pod| &pod.containers)
            .flat_map(|container| container.env.iter().flatten())
            .collect();
        let variable = |name: &str| variables.iter().find(|it| it.name == name).and_then(|it| it.value.clone());
        // One that cannot be read has kept the operator from starting: it has put no finalizer on anything.
        Self { settings: Settings::read(variable, None).unwrap_or_default(), foreign: BTreeSet::new() }
    }

    /// Notes whose pods they are: what our operator applies carries its mark.
    pub(super) fn note_pod_sets(&mut self, sets: &[PartialObjectMeta<DynamicObject>]) {
        let theirs = sets.iter().filter(|set| !set.annotations().contains_key(APPLIED));
        self.foreign
            .extend(theirs.filter_map(|set| Some((set.namespace()?, set.labels().get(labels::CLUSTER)?.clone()))));
    }

    /// Whether a rebalance is ours, given its Kafka. One whose Kafka is gone is: our operator would have released it.
    pub(super) fn is_ours(&self, rebalance: &PartialObjectMeta<DynamicObject>, kafka: Option<&Kafka>) -> bool {
        let namespace = rebalance.namespace().unwrap_or_default();
        let watched = &self.settings.namespaces;
        let cluster = rebalance.labels().get(labels::CLUSTER).cloned().unwrap_or_default();
        (watched.is_empty() || watched.contains(&namespace))
            && kafka.is_none_or(|kafka| self.settings.selects(kafka))
            && !self.foreign.contains(&(namespace, cluster))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn object(namespace: &str, cluster: &str, annotations: Value) -> PartialObjectMeta<DynamicObject> {
        let metadata = json!({"name": "x", "namespace": namespace, "labels": {labels::CLUSTER: cluster}, "annotations": annotations});
        serde_json::from_value(json!({"apiVersion": "v1", "kind": "x", "metadata": metadata})).unwrap()
    }

    fn deployment(variables: Value) -> Deployment {
        let pod = json!({"spec": {"containers": [{"name": "operator", "env": variables}]}});
        serde_json::from_value(json!({"spec": {"selector": {}, "template": pod}})).unwrap()
    }

    #[test]
    fn what_the_operator_did_not_watch_is_not_its_own() {
        let watching = Scope::of(Some(&deployment(json!([{"name": "STRIMZI_NAMESPACE", "value": "a,b"}]))));
        let all = Scope::of(Some(&deployment(json!([{"name": "STRIMZI_NAMESPACE", "value": "*"}]))));
        for (namespace, is_watched) in [("a", true), ("b", true), ("c", false)] {
            let rebalance = object(namespace, "lagoon", json!({}));
            assert_eq!(watching.is_ours(&rebalance, None), is_watched, "{namespace}");
            assert!(all.is_ours(&rebalance, None) && Scope::of(None).is_ours(&rebalance, None));
        }
    }

    #[test]
    fn nor_is_what_it_did_not_select() {
        let scope =
            Scope::of(Some(&deployment(json!([{"name": "STRIMZI_CUSTOM_RESOURCE_SELECTOR", "value": "by=us"}]))));
        let mut kafka = Kafka::new("lagoon", Default::default());
        let rebalance = object("a", "lagoon", json!({}));
        assert!(!scope.is_ours(&rebalance, Some(&kafka)));
        kafka.metadata.labels = Some([("by".to_owned(), "us".to_owned())].into());
        assert!(scope.is_ours(&rebalance, Some(&kafka)));
    }

    #[test]
    fn nor_what_belongs_to_a_cluster_that_somebody_else_has_made() {
        let mut scope = Scope::of(None);
        scope.note_pod_sets(&[object("a", "lagoon", json!({APPLIED: "1"})), object("b", "lagoon", json!({}))]);
        assert!(scope.is_ours(&object("a", "lagoon", json!({})), None));
        assert!(!scope.is_ours(&object("b", "lagoon", json!({})), None));
    }
}
