//! A cluster to look at: three brokers with two disks each in racks, three controllers, and an engine.

use evenkeel_api::{Kafka, KafkaNodePool, StrimziPodSet};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    certificates::{self, Authority, Which},
    config::ServerConfig,
    engine::{self, EngineObjects},
    model::Model,
    nodes::assign,
    objects::{Facts, NodeFacts},
    pools::{Pools, Voters},
    problem::Problem,
    seen::FurtherUsers,
    settings::Settings,
};

/// The resources of a cluster, as JSON so that tests can change them at will.
#[derive(Clone)]
pub(super) struct Written {
    pub(super) kafka: Value,
    pub(super) brokers: Value,
    pub(super) controllers: Value,
    pub(super) settings: Settings,
}

pub(super) fn harbour() -> Written {
    let pool = |name: &str, spec: Value, ids: Value| {
        json!({"apiVersion": "kafka.strimzi.io/v1", "kind": "KafkaNodePool",
            "metadata": {"name": name, "namespace": "sea", "uid": name, "labels": {"strimzi.io/cluster": "harbour"}},
            "spec": spec, "status": {"nodeIds": ids, "roles": spec["roles"]}})
    };
    let volume = |id: i32| json!({"id": id, "type": "persistent-claim", "size": "500Gi", "class": "fast"});
    Written {
        kafka: json!({"apiVersion": "kafka.strimzi.io/v1", "kind": "Kafka",
            "metadata": {"name": "harbour", "namespace": "sea", "uid": "u-1"},
            "spec": {
                "kafka": {
                    "version": "4.1.0",
                    "listeners": [
                        {"name": "plain", "port": 9092, "type": "internal", "tls": false},
                        {"name": "tls", "port": 9093, "type": "internal", "tls": true, "authentication": {"type": "tls"}}],
                    "config": {"default.replication.factor": 3, "min.insync.replicas": 2, "num.io.threads": 8},
                    "rack": {"topologyKey": "topology.kubernetes.io/zone"}},
                "cruiseControl": {
                    "brokerCapacity": {"inboundNetwork": "100MiB/s", "outboundNetwork": "100MiB/s",
                        "overrides": [{"brokers": [0], "cpu": "4", "inboundNetwork": "200MiB/s"}]},
                    "config": {"num.partition.metrics.windows": 5, "evenkeel.auto.rebalance.preempt": true}}}}),
        brokers: pool(
            "brokers",
            json!({"replicas": 3, "roles": ["broker"],
                "storage": {"type": "jbod", "volumes": [volume(0), volume(1)]},
                "resources": {"requests": {"cpu": "1500m", "memory": "8Gi"}, "limits": {"memory": "8Gi"}}}),
            json!([0, 1, 2]),
        ),
        controllers: pool(
            "controllers",
            json!({"replicas": 3, "roles": ["controller"], "storage": {"type": "persistent-claim", "size": "20Gi", "deleteClaim": true}}),
            json!([100, 101, 102]),
        ),
        settings: Settings {
            own_image: "evenkeel:1".to_owned(),
            engine_image: "evenkeel:1".to_owned(),
            ..Settings::default()
        },
    }
}

impl Written {
    /// The same with a value put at a JSON pointer of the Kafka.
    pub(super) fn with(mut self, path: &str, value: Value) -> Self {
        put(&mut self.kafka, path, value);
        self
    }

    /// The same with a value put at a JSON pointer of the pool of brokers.
    pub(super) fn with_brokers(mut self, path: &str, value: Value) -> Self {
        put(&mut self.brokers, path, value);
        self
    }

    pub(super) fn try_model(&self) -> Result<Model, Vec<Problem>> {
        let kafka: Kafka = serde_json::from_value(self.kafka.clone()).unwrap();
        let pools: Vec<KafkaNodePool> =
            [&self.brokers, &self.controllers].map(|pool| serde_json::from_value(pool.clone()).unwrap()).into();
        let no_sets: [StrimziPodSet; 0] = [];
        let read = Pools::read(&kafka, &pools, &no_sets, &Voters::default())?;
        Model::build(&kafka, &pools, &read, &assign(&read), &self.settings)
    }

    pub(super) fn model(&self) -> Model {
        self.try_model().unwrap()
    }

    /// What is wrong with it, in words.
    pub(super) fn said(&self) -> Vec<String> {
        self.try_model().unwrap_err().iter().map(ToString::to_string).collect()
    }

    /// What is warned about, in words.
    pub(super) fn warned(&self) -> Vec<String> {
        self.model().remarks.into_iter().filter_map(|remark| remark.condition.message).collect()
    }
}

/// Puts a value where a pointer leads, making objects on the way.
fn put(root: &mut Value, path: &str, value: Value) {
    let mut at = root;
    for part in path.split('/').skip(1) {
        let part = part.replace("~1", "/");
        at = match at {
            Value::Array(items) => &mut items[part.parse::<usize>().unwrap()],
            other => &mut other[part.as_str()],
        };
    }
    *at = value;
}

pub(super) fn now() -> Timestamp {
    "2026-11-16T12:00:00Z".parse().unwrap()
}

pub(super) fn authority(model: &Model) -> Authority {
    certificates::authority(model, Which::Cluster, None, None, now()).unwrap().0
}

/// The facts of pods, with certificates that never change.
pub(super) fn pod_facts(model: &Model) -> Facts {
    let fact = |node: &super::model::Node| NodeFacts {
        configuration: ServerConfig::of(model, node, false).hash(),
        certificate: format!("certificate-{}", node.id),
    };
    let nodes = model.nodes.values().map(|node| (node.id, fact(node))).collect();
    Facts { nodes, cluster_ca: ("0".to_owned(), "0".to_owned()), clients_ca: "0".to_owned() }
}

pub(super) fn engine_facts(model: &Model) -> engine::Facts {
    let wanted = model.engine.as_ref().unwrap();
    engine::Facts {
        capacities: engine::capacities(model, wanted).unwrap(),
        api: engine::api_secret(None, &FurtherUsers::Unasked, || [7; 16]).unwrap(),
        certificate: "certificate".to_owned(),
        cluster_ca: ("0".to_owned(), "0".to_owned()),
    }
}

pub(super) fn engine_objects(model: &Model) -> EngineObjects {
    engine::objects(model, model.engine.as_ref().unwrap(), &engine_facts(model))
}

/// What namespaces of the Pod Security level `restricted` want of a pod.
pub(super) fn is_restricted(pod: &Value) -> bool {
    let of_pod = &pod["securityContext"];
    let mut containers =
        ["initContainers", "containers"].into_iter().flat_map(|list| pod[list].as_array().into_iter().flatten());
    let confined = |container: &Value| {
        let own = &container["securityContext"];
        own["allowPrivilegeEscalation"] == false && own["capabilities"] == json!({"drop": ["ALL"]})
    };
    of_pod["runAsNonRoot"] == true && of_pod["seccompProfile"]["type"] == "RuntimeDefault" && containers.all(confined)
}
