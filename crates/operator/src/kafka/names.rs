//! What the objects of a cluster are called.

use evenkeel_api::Kafka;
use kube::ResourceExt;

/// The domain below which Kubernetes answers for services.
pub const CLUSTER_DOMAIN: &str = "cluster.local";

/// The names of one cluster's objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    /// Name of the Kafka.
    pub cluster: String,
    /// Its namespace.
    pub namespace: String,
}

macro_rules! suffixed {
    ($($(#[$doc:meta])* $name:ident = $suffix:literal;)+) => {
        impl Names {
            $($(#[$doc])* pub fn $name(&self) -> String {
                format!("{}{}", self.cluster, $suffix)
            })+
        }
    };
}

suffixed! {
    /// The component all nodes belong to, whatever their pool; also service account and disruption budget.
    kafka = "-kafka";
    /// The service clients begin with.
    bootstrap_service = "-kafka-bootstrap";
    /// The service without an address of its own, which gives each pod its name.
    brokers_service = "-kafka-brokers";
    /// The network policy of the nodes.
    kafka_network_policy = "-network-policy-kafka";
    /// The Secret with the cluster authority's certificate.
    cluster_ca_cert = "-cluster-ca-cert";
    /// The Secret with the cluster authority's key.
    cluster_ca_key = "-cluster-ca";
    /// The Secret with the clients authority's certificate.
    clients_ca_cert = "-clients-ca-cert";
    /// The Secret with the clients authority's key.
    clients_ca_key = "-clients-ca";
    /// The Secret with the operator's own certificate.
    operator_certs = "-cluster-operator-certs";
    /// The engine: deployment, service, service account, disruption budget, role.
    engine = "-cruise-control";
    /// The engine's ConfigMap.
    engine_config = "-cruise-control-config";
    /// The Secret with the users of the engine's API.
    engine_api = "-cruise-control-api";
    /// The Secret with the engine's certificate.
    engine_certs = "-cruise-control-certs";
    /// The network policy of the engine.
    engine_network_policy = "-network-policy-cruise-control";
}

impl Names {
    /// The names of this cluster's objects.
    pub fn of(kafka: &Kafka) -> Self {
        Self { cluster: kafka.name_any(), namespace: kafka.namespace().unwrap_or_default() }
    }

    /// A pool's StrimziPodSet.
    pub fn pod_set(&self, pool: &str) -> String {
        format!("{}-{pool}", self.cluster)
    }

    /// A node's pod, ConfigMap and Secret.
    pub fn pod(&self, pool: &str, id: i32) -> String {
        format!("{}-{pool}-{id}", self.cluster)
    }

    /// The name under which others reach a pod.
    pub fn pod_host(&self, pod: &str) -> String {
        format!("{pod}.{}.{}.svc", self.brokers_service(), self.namespace)
    }

    /// The name under which others reach a service.
    pub fn service_host(&self, service: &str) -> String {
        format!("{service}.{}.svc", self.namespace)
    }

    /// Binds the nodes' service account to the right to look at Kubernetes nodes. Not in a namespace, so the
    /// namespace is in its name.
    pub fn rack_binding(&self) -> String {
        format!("strimzi-{}-{}-kafka-init", self.namespace, self.cluster)
    }
}
