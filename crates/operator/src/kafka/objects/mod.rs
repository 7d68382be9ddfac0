//! The objects of a cluster in Kubernetes, without the engine's. Everything is made from a [`Model`] and comes out the
//! same each time.

mod claims;
mod config_maps;
pub(super) mod confined;
mod passed_over;
mod pod;
mod pod_sets;
mod policies;
mod services;

use std::collections::BTreeMap;

use evenkeel_api::labels;
use k8s_openapi::{
    api::{
        core::v1::ServiceAccount,
        rbac::v1::{ClusterRoleBinding, RoleRef, Subject},
    },
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
};

use super::{model::Model, names::Names};

pub use claims::claims;
pub use config_maps::{METADATA_VERSION, config_map};
pub(super) use passed_over::passed_over;
pub use pod::{CLUSTER_ID, RACK_CONTAINER, container_heap};
pub(super) use pod::{container_port, mount, requirements, secret, variable};
pub use pod_sets::{Facts, NodeFacts, pod_set_selector, pod_sets};
pub use policies::{disruption_budget, network_policy};
pub(super) use policies::{from_operator, matching, port};
pub(super) use services::service_port;
pub use services::{bootstrap_service, brokers_service};

/// What part of a cluster an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Component {
    /// Kafka itself.
    Kafka,
    /// The engine.
    Engine,
}

impl Component {
    fn type_name(self) -> &'static str {
        match self {
            Self::Kafka => "kafka",
            Self::Engine => "cruise-control",
        }
    }

    fn instance(self, names: &Names) -> String {
        match self {
            Self::Kafka => names.kafka(),
            Self::Engine => names.engine(),
        }
    }
}

/// Labels by which the pods of a component are found.
pub fn selector(names: &Names, component: Component) -> BTreeMap<String, String> {
    BTreeMap::from([
        (labels::CLUSTER.to_owned(), names.cluster.clone()),
        (labels::KIND.to_owned(), "Kafka".to_owned()),
        (labels::NAME.to_owned(), component.instance(names)),
    ])
}

/// Labels of every object of a component.
pub fn labels_of(names: &Names, component: Component) -> BTreeMap<String, String> {
    let mut all = selector(names, component);
    let type_name = component.type_name();
    let app = if component == Component::Kafka { "kafka" } else { type_name };
    all.extend(
        [
            (labels::COMPONENT_TYPE, type_name.to_owned()),
            (labels::APP_NAME, app.to_owned()),
            (labels::APP_INSTANCE, names.cluster.clone()),
            (labels::APP_PART_OF, format!("strimzi-{}", names.cluster)),
            (labels::APP_MANAGED_BY, labels::MANAGED_BY_OPERATOR.to_owned()),
        ]
        .map(|(key, value)| (key.to_owned(), value)),
    );
    all
}

/// Metadata of an object of a component that goes with `owner`.
pub(super) fn marked(model: &Model, name: &str, component: Component, owner: OwnerReference) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        namespace: Some(model.names.namespace.clone()),
        labels: Some(labels_of(&model.names, component)),
        owner_references: Some(vec![owner]),
        ..ObjectMeta::default()
    }
}

/// The nodes' service account. Its token is mounted nowhere but where the rack is found out.
pub fn service_account(model: &Model) -> ServiceAccount {
    let mut metadata = marked(model, &model.names.kafka(), Component::Kafka, model.owner.clone());
    model.template.service_account.metadata.add_to(&mut metadata);
    ServiceAccount { metadata, automount_service_account_token: Some(false), ..ServiceAccount::default() }
}

/// The ClusterRole, installed with the operator, that may look at Kubernetes nodes.
pub const RACK_ROLE: &str = "strimzi-kafka-broker";

/// Lets nodes look at their Kubernetes node for the rack. It is in no namespace, so nothing can own it: it is deleted
/// when racks are no longer asked for, and when the Kafka is gone. That it may be there is seen by the pod sets.
pub fn rack_binding(model: &Model) -> Option<ClusterRoleBinding> {
    model.rack.as_ref()?;
    Some(ClusterRoleBinding {
        metadata: ObjectMeta {
            name: Some(model.names.rack_binding()),
            labels: Some(labels_of(&model.names, Component::Kafka)),
            ..ObjectMeta::default()
        },
        role_ref: RoleRef {
            api_group: "rbac.authorization.k8s.io".to_owned(),
            kind: "ClusterRole".to_owned(),
            name: RACK_ROLE.to_owned(),
        },
        subjects: Some(vec![Subject {
            kind: "ServiceAccount".to_owned(),
            name: model.names.kafka(),
            namespace: Some(model.names.namespace.clone()),
            ..Subject::default()
        }]),
    })
}

#[cfg(test)]
mod tests;
