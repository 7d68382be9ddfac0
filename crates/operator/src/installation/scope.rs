//! Whose clusters, and so whose KafkaRebalances, are ours. Another operator may work on the same cluster, with finalizers of the same names.

use std::collections::BTreeSet;

use evenkeel_api::{Kafka, labels};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::EnvVar};
use kube::{ResourceExt, api::DynamicObject, core::PartialObjectMeta};

use super::Error;
use crate::{another, settings::Settings};

/// The variables that say what the operator looks after.
const SCOPE: [&str; 2] = ["STRIMZI_NAMESPACE", "STRIMZI_CUSTOM_RESOURCE_SELECTOR"];

/// What the operator was told to look after, and what says that somebody else does.
#[derive(Clone, Debug, Default)]
pub(super) struct Scope {
    /// None: nothing at all.
    settings: Option<Settings>,
    /// Namespaces and names of clusters that another operator has made.
    foreign: BTreeSet<(String, String)>,
}

impl Scope {
    /// Everything: nobody says otherwise.
    pub(super) fn all() -> Self {
        Self { settings: Some(Settings::default()), foreign: BTreeSet::new() }
    }

    /// Nothing: there was no operator.
    pub(super) fn nothing() -> Self {
        Self::default()
    }

    /// As the operator's Deployment says.
    pub(super) fn of(deployment: &Deployment) -> Result<Self, Error> {
        let variables: Vec<_> = variables(deployment).collect();
        for name in SCOPE {
            let variable = variables.iter().find(|it| it.name == name);
            if variable.is_some_and(|it| it.value_from.is_some() && value(it, deployment).is_none()) {
                return Err(Error::Unclear(format!("the variable {name} of the operator's Deployment")));
            }
        }
        let variable = |name: &str| variables.iter().find(|it| it.name == name).and_then(|it| value(it, deployment));
        // One that cannot be read has kept the operator from starting: it has put no finalizer on anything.
        let settings = Settings::read(variable, None).unwrap_or_default();
        Ok(Self { settings: Some(settings), foreign: BTreeSet::new() })
    }

    /// Notes whose pods they are: what our operator applies carries its mark.
    pub(super) fn note_pod_sets(&mut self, sets: &[PartialObjectMeta<DynamicObject>]) {
        let theirs = sets.iter().filter(|set| another::made(&set.metadata));
        self.foreign
            .extend(theirs.filter_map(|set| Some((set.namespace()?, set.labels().get(labels::CLUSTER)?.clone()))));
    }

    /// Whether a cluster is ours, given its Kafka. One whose Kafka is gone is: our operator would have released it.
    pub(super) fn is_ours(&self, namespace: &str, cluster: &str, kafka: Option<&Kafka>) -> bool {
        let Some(settings) = &self.settings else { return false };
        let watched = &settings.namespaces;
        (watched.is_empty() || watched.iter().any(|it| it == namespace))
            && kafka.is_none_or(|kafka| settings.selects(kafka))
            && !self.foreign.contains(&(namespace.to_owned(), cluster.to_owned()))
    }
}

/// The variables of the operator's pod.
pub(super) fn variables(deployment: &Deployment) -> impl Iterator<Item = &EnvVar> {
    let pod = deployment.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
    pod.into_iter().flat_map(|pod| &pod.containers).flat_map(|container| container.env.iter().flatten())
}

/// What a variable of the operator's pod is, as far as its Deployment tells.
fn value(variable: &EnvVar, deployment: &Deployment) -> Option<String> {
    let field = variable.value_from.as_ref().and_then(|from| from.field_ref.as_ref());
    match field {
        Some(field) if field.field_path == "metadata.namespace" => deployment.namespace(),
        _ => variable.value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::kafka::desired::APPLIED;

    fn object(namespace: &str, cluster: &str, annotations: Value) -> PartialObjectMeta<DynamicObject> {
        let metadata = json!({"name": "x", "namespace": namespace, "labels": {labels::CLUSTER: cluster}, "annotations": annotations});
        serde_json::from_value(json!({"apiVersion": "v1", "kind": "x", "metadata": metadata})).unwrap()
    }

    fn deployment(variables: Value) -> Deployment {
        let pod = json!({"spec": {"containers": [{"name": "operator", "env": variables}]}});
        serde_json::from_value(json!({"metadata": {"namespace": "ops"}, "spec": {"selector": {}, "template": pod}}))
            .unwrap()
    }

    fn watching(variables: Value) -> Scope {
        Scope::of(&deployment(variables)).unwrap()
    }

    #[test]
    fn what_the_operator_did_not_watch_is_not_its_own() {
        let some = watching(json!([{"name": "STRIMZI_NAMESPACE", "value": "a,b"}]));
        let all = watching(json!([{"name": "STRIMZI_NAMESPACE", "value": "*"}]));
        let own = json!({"fieldRef": {"fieldPath": "metadata.namespace"}});
        let own = watching(json!([{"name": "STRIMZI_NAMESPACE", "valueFrom": own}]));
        for (namespace, is_watched, is_own) in [("a", true, false), ("b", true, false), ("ops", false, true)] {
            assert_eq!(some.is_ours(namespace, "lagoon", None), is_watched, "{namespace}");
            assert_eq!(own.is_ours(namespace, "lagoon", None), is_own, "{namespace}");
            assert!(all.is_ours(namespace, "lagoon", None) && Scope::all().is_ours(namespace, "lagoon", None));
            assert!(!Scope::nothing().is_ours(namespace, "lagoon", None));
        }
    }

    #[test]
    fn what_only_the_pod_can_read_is_not_guessed() {
        let elsewhere = json!({"configMapKeyRef": {"name": "settings", "key": "namespaces"}});
        let unclear = Scope::of(&deployment(json!([{"name": "STRIMZI_NAMESPACE", "valueFrom": elsewhere}])));
        assert!(unclear.unwrap_err().to_string().contains("the variable STRIMZI_NAMESPACE"));
    }

    #[test]
    fn nor_is_what_it_did_not_select() {
        let scope = watching(json!([{"name": "STRIMZI_CUSTOM_RESOURCE_SELECTOR", "value": "by=us"}]));
        let mut kafka = Kafka::new("lagoon", Default::default());
        assert!(!scope.is_ours("a", "lagoon", Some(&kafka)));
        kafka.metadata.labels = Some([("by".to_owned(), "us".to_owned())].into());
        assert!(scope.is_ours("a", "lagoon", Some(&kafka)));
    }

    #[test]
    fn nor_what_belongs_to_a_cluster_that_somebody_else_has_made() {
        let mut scope = Scope::all();
        scope.note_pod_sets(&[object("a", "lagoon", json!({APPLIED: "1"})), object("b", "lagoon", json!({}))]);
        assert!(scope.is_ours("a", "lagoon", None));
        assert!(!scope.is_ours("b", "lagoon", None));
    }
}
