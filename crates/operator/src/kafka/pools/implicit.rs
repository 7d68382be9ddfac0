//! The pools of a Kafka that has none: brokers, as many as `spec.kafka.replicas` says, and three controllers.

use evenkeel_api::{Kafka, NodeIdRanges, StrimziPodSet};
use kube::ResourceExt;

use super::{Origin, Pool, Reading, Roles, ids_of_pod_set, owner};
use crate::kafka::{names::Names, problem::Problem, storage::Disks};

/// The pool of brokers.
pub const BROKERS: &str = "kafka";
/// The pool of controllers.
pub const CONTROLLERS: &str = "controllers";
/// Ids of the controllers: brokers grow from 0 for a long time before they come here.
const CONTROLLER_IDS: &str = "[100-102]";
const CONTROLLER_COUNT: usize = 3;

impl Reading {
    pub(super) fn implicit(&mut self, kafka: &Kafka, names: &Names, pod_sets: &[&StrimziPodSet]) -> Vec<Pool> {
        let spec = kafka.spec.kafka.clone().unwrap_or_default();
        let Some(replicas) = spec.replicas else {
            let text = format!(
                "no KafkaNodePool carries the label strimzi.io/cluster: {}, and spec.kafka.replicas is not set: write one \
                 or the other",
                names.cluster
            );
            self.problems.push(Problem::of_kafka("spec.kafka", text));
            return Vec::new();
        };
        let Some(storage) = spec.storage else {
            let text = "is required in a Kafka without node pools, such as `type: persistent-claim` and `size: 100Gi`";
            self.problems.push(Problem::of_kafka("spec.kafka.storage", text));
            return Vec::new();
        };
        let at_kafka = |field, text| Problem::of_kafka(format!("spec.kafka.{field}"), text);
        let Some(disks) = self.disks(&storage, at_kafka) else { return Vec::new() };
        let pool = |name: &str, roles: Roles, replicas: usize, disks: Disks, next_ids: NodeIdRanges| {
            let set = pod_sets.iter().find(|set| set.name_any() == names.pod_set(name));
            let current = set.map(|set| ids_of_pod_set(set)).unwrap_or_default();
            Pool {
                name: name.to_owned(),
                origin: Origin::Kafka,
                replicas,
                roles,
                roles_before: (!current.is_empty()).then_some(roles),
                disks,
                storage: storage.clone(),
                resources: spec.resources.clone(),
                jvm_options: spec.jvm_options.clone(),
                template: spec.template.clone(),
                current,
                next_ids,
                remove_ids: NodeIdRanges::default(),
                owner: owner(kafka),
            }
        };
        let controller_ids = CONTROLLER_IDS.parse().unwrap_or_default();
        let metadata_disk = disks.for_metadata();
        vec![
            pool(BROKERS, Roles::BROKER, usize::try_from(replicas).unwrap_or_default(), disks, NodeIdRanges::default()),
            pool(CONTROLLERS, Roles::CONTROLLER, CONTROLLER_COUNT, metadata_disk, controller_ids),
        ]
    }
}
