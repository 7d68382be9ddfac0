//! Who may reach the nodes, and how many of them may be away.

use std::collections::BTreeMap;

use evenkeel_api::labels;
use k8s_openapi::{
    api::{
        networking::v1::{
            NetworkPolicy, NetworkPolicyIngressRule, NetworkPolicyPeer, NetworkPolicyPort, NetworkPolicySpec,
        },
        policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec},
    },
    apimachinery::pkg::{apis::meta::v1::LabelSelector, util::intstr::IntOrString},
};

use super::{Component, marked, selector};
use crate::kafka::{
    listeners::{CONTROL_PLANE, REPLICATION},
    model::Model,
};

/// Drains of Kubernetes nodes wait until enough of the cluster is there.
pub fn disruption_budget(model: &Model) -> PodDisruptionBudget {
    let wish = &model.template.pod_disruption_budget;
    let mut metadata = marked(model, &model.names.kafka(), Component::Kafka, model.owner.clone());
    wish.metadata.add_to(&mut metadata);
    let nodes = i32::try_from(model.nodes.len()).unwrap_or(i32::MAX);
    let away = wish.max_unavailable.unwrap_or(1).max(0);
    PodDisruptionBudget {
        metadata,
        spec: Some(PodDisruptionBudgetSpec {
            min_available: Some(IntOrString::Int(nodes.saturating_sub(away).max(0))),
            selector: Some(matching(selector(&model.names, Component::Kafka))),
            ..PodDisruptionBudgetSpec::default()
        }),
        status: None,
    }
}

/// Only nodes reach controllers; only nodes, the engine and the operator reach the brokers' own port.
pub fn network_policy(model: &Model) -> NetworkPolicy {
    let nodes = pods_of(model, Component::Kafka);
    let inner = vec![nodes.clone(), pods_of(model, Component::Engine), from_operator(model)];
    let mut ingress = vec![rule(CONTROL_PLANE, Some(vec![nodes])), rule(REPLICATION, Some(inner))];
    for listener in &model.listeners {
        // A peer that is none lets nobody in: better than everybody.
        let peers = listener.peers.as_ref().map(|peers| {
            peers.iter().map(|peer| serde_json::from_value(peer.clone()).unwrap_or_else(|_| nobody())).collect()
        });
        ingress.push(rule(listener.port, peers));
    }
    NetworkPolicy {
        metadata: marked(model, &model.names.kafka_network_policy(), Component::Kafka, model.owner.clone()),
        spec: Some(NetworkPolicySpec {
            pod_selector: Some(matching(selector(&model.names, Component::Kafka))),
            ingress: Some(ingress),
            policy_types: Some(vec!["Ingress".to_owned()]),
            ..NetworkPolicySpec::default()
        }),
    }
}

fn rule(to: u16, from: Option<Vec<NetworkPolicyPeer>>) -> NetworkPolicyIngressRule {
    NetworkPolicyIngressRule { ports: Some(vec![port(to)]), from }
}

/// A port that may be reached.
pub(in crate::kafka) fn port(number: u16) -> NetworkPolicyPort {
    NetworkPolicyPort {
        port: Some(IntOrString::Int(i32::from(number))),
        protocol: Some("TCP".to_owned()),
        ..NetworkPolicyPort::default()
    }
}

/// The pods of a component.
fn pods_of(model: &Model, component: Component) -> NetworkPolicyPeer {
    NetworkPolicyPeer {
        pod_selector: Some(matching(selector(&model.names, component))),
        ..NetworkPolicyPeer::default()
    }
}

/// The operator's pods, wherever it runs.
pub(in crate::kafka) fn from_operator(model: &Model) -> NetworkPolicyPeer {
    let operator = one(labels::KIND, "cluster-operator");
    let elsewhere = model.settings.operator_namespace.as_ref().filter(|other| **other != model.names.namespace);
    let namespace = elsewhere.map(|name| matching(one("kubernetes.io/metadata.name", name)));
    NetworkPolicyPeer {
        pod_selector: Some(matching(operator)),
        namespace_selector: namespace,
        ..NetworkPolicyPeer::default()
    }
}

fn nobody() -> NetworkPolicyPeer {
    let impossible = one("evenkeel.io/nobody", "true");
    NetworkPolicyPeer { pod_selector: Some(matching(impossible)), ..NetworkPolicyPeer::default() }
}

fn one(key: &str, value: &str) -> BTreeMap<String, String> {
    BTreeMap::from([(key.to_owned(), value.to_owned())])
}

/// A selector of labels.
pub(in crate::kafka) fn matching(labels: BTreeMap<String, String>) -> LabelSelector {
    LabelSelector { match_labels: Some(labels), match_expressions: None }
}
