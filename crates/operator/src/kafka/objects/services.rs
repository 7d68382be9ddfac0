//! The two Services of a cluster.

use evenkeel_api::labels;
use k8s_openapi::{
    api::core::v1::{Service, ServicePort, ServiceSpec},
    apimachinery::pkg::util::intstr::IntOrString,
};

use super::{Component, marked, selector};
use crate::kafka::{
    listeners::{CONTROL_PLANE, REPLICATION},
    model::Model,
};

/// The name of the controllers' port.
pub(super) const CONTROL_PLANE_PORT: &str = "tcp-ctrlplane";
/// The name of the port on which brokers speak with each other.
pub(super) const REPLICATION_PORT: &str = "tcp-replication";

/// Where clients, the engine and the operator begin.
pub fn bootstrap_service(model: &Model) -> Service {
    let mut metadata = marked(model, &model.names.bootstrap_service(), Component::Kafka, model.owner.clone());
    model.template.bootstrap_service.metadata.add_to(&mut metadata);
    let mut brokers = selector(&model.names, Component::Kafka);
    brokers.insert(labels::BROKER_ROLE.to_owned(), "true".to_owned());
    let spec = ServiceSpec {
        type_: Some("ClusterIP".to_owned()),
        selector: Some(brokers),
        ports: Some(broker_ports(model)),
        ..ServiceSpec::default()
    };
    Service { metadata, spec: Some(spec), status: None }
}

/// Gives each pod its name, whether or not it is ready: controllers find each other before any of them is.
pub fn brokers_service(model: &Model) -> Service {
    let mut metadata = marked(model, &model.names.brokers_service(), Component::Kafka, model.owner.clone());
    model.template.brokers_service.metadata.add_to(&mut metadata);
    let mut ports = vec![service_port(CONTROL_PLANE_PORT, CONTROL_PLANE)];
    ports.extend(broker_ports(model));
    let spec = ServiceSpec {
        type_: Some("ClusterIP".to_owned()),
        cluster_ip: Some("None".to_owned()),
        publish_not_ready_addresses: Some(true),
        selector: Some(selector(&model.names, Component::Kafka)),
        ports: Some(ports),
        ..ServiceSpec::default()
    };
    Service { metadata, spec: Some(spec), status: None }
}

fn broker_ports(model: &Model) -> Vec<ServicePort> {
    let mut ports = vec![service_port(REPLICATION_PORT, REPLICATION)];
    ports.extend(model.listeners.iter().map(|listener| service_port(&listener.port_name(), listener.port)));
    ports
}

/// A port of a service, found in pods by its name.
pub(in crate::kafka) fn service_port(name: &str, port: u16) -> ServicePort {
    ServicePort {
        name: Some(name.to_owned()),
        port: i32::from(port),
        target_port: Some(IntOrString::String(name.to_owned())),
        protocol: Some("TCP".to_owned()),
        ..ServicePort::default()
    }
}
