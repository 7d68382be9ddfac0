//! To whom it matters what is heard: from an object that a watch tells of to the Kafkas that are looked at for it. Whatever is
//! heard of a cluster ends its rest.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use evenkeel_api::{Kafka, labels};
use kube::{
    ResourceExt,
    core::{ObjectMeta, PartialObjectMeta},
    runtime::reflector::{ObjectRef, Store},
};

use super::at_rest::Rests;
use crate::{
    auto_rebalance::{Configured, imbalance::map_name, is_named_like_ours, tracker::tracker_name},
    seams::ClusterRef,
};

/// What remembers what was heard.
#[derive(Debug, Default)]
pub(super) struct Ears {
    /// Which clusters are at rest.
    pub(super) rests: Rests,
    /// The cluster that each node pool was last heard to belong to, by namespace and name.
    pools: Mutex<BTreeMap<(String, String), ClusterRef>>,
}

/// Whoever hears of objects of a kind: the Kafka that each belongs to.
pub(super) fn hearing<K: 'static>(
    ears: &Arc<Ears>,
) -> impl Fn(PartialObjectMeta<K>) -> Option<ObjectRef<Kafka>> + Send + Sync + 'static + use<K> {
    let ears = Arc::clone(ears);
    move |it| ears.heard(&it.metadata)
}

impl Ears {
    fn heard(&self, metadata: &ObjectMeta) -> Option<ObjectRef<Kafka>> {
        self.wakes(of(metadata)?)
    }

    fn wakes(&self, kafka: ObjectRef<Kafka>) -> Option<ObjectRef<Kafka>> {
        self.rests.disturb(&ClusterRef::new(kafka.namespace.as_deref()?, &kafka.name));
        Some(kafka)
    }

    /// The Kafka whose a node pool is, and the one whose it was until now.
    pub(super) fn heard_of_pool(&self, metadata: &ObjectMeta) -> Vec<ObjectRef<Kafka>> {
        let (Some(namespace), Some(name), Some(now)) = (&metadata.namespace, &metadata.name, self.heard(metadata))
        else {
            return Vec::new();
        };
        let cluster = ClusterRef::new(namespace, &now.name);
        let before = self.pools().insert((namespace.clone(), name.clone()), cluster.clone());
        let before = before.filter(|before| *before != cluster);
        let before = before.and_then(|it| self.wakes(ObjectRef::new(&it.name).within(&it.namespace)));
        std::iter::once(now).chain(before).collect()
    }

    /// The Kafka that a ConfigMap matters to. One of a rebalance changes with every bit of progress, and is looked at for that
    /// by none.
    pub(super) fn heard_of_config_map(&self, metadata: &ObjectMeta) -> Option<ObjectRef<Kafka>> {
        let kafka = self.heard(metadata)?;
        let is_shared = [map_name(&kafka.name), tracker_name(&kafka.name)].contains(metadata.name.as_ref()?);
        let is_ours = || metadata.labels.as_ref()?.get(labels::KIND);
        Some(kafka).filter(|_| is_shared || is_ours().is_some_and(|kind| kind == "Kafka"))
    }

    /// The Kafkas that a rebalance matters to: its own, by label or by name, and those that name it as a template, whose label
    /// may be another cluster's; without a label, all of them.
    pub(super) fn heard_of_rebalance(&self, kafkas: &Store<Kafka>, metadata: &ObjectMeta) -> Vec<ObjectRef<Kafka>> {
        let own = of(metadata);
        let name = metadata.name.as_deref().unwrap_or_default();
        let neighbours = kafkas.state().into_iter().filter(|kafka| kafka.metadata.namespace == metadata.namespace);
        let concerned = neighbours.filter(|kafka| match &own {
            None => true,
            Some(own) => {
                let templates = || Configured::of(&kafka.spec).modes.into_values().flatten();
                let is_template = || templates().any(|template| template == name);
                own.name == kafka.name_any() || is_named_like_ours(name, &kafka.name_any()) || is_template()
            }
        });
        concerned.filter_map(|kafka| self.wakes(ObjectRef::from_obj(kafka.as_ref()))).collect()
    }

    /// A cluster is not there, or not for us.
    pub(super) fn forget(&self, of: &ClusterRef) {
        self.rests.disturb(of);
        self.pools().retain(|_, cluster| cluster != of);
    }

    fn pools(&self) -> MutexGuard<'_, BTreeMap<(String, String), ClusterRef>> {
        self.pools.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The Kafka that an object belongs to.
fn of(metadata: &ObjectMeta) -> Option<ObjectRef<Kafka>> {
    let cluster = metadata.labels.as_ref()?.get(labels::CLUSTER)?;
    Some(ObjectRef::new(cluster).within(metadata.namespace.as_deref()?))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn metadata(name: &str, labels: Value) -> ObjectMeta {
        serde_json::from_value(json!({"name": name, "namespace": "ns", "labels": labels})).unwrap()
    }

    fn names(heard: impl IntoIterator<Item = ObjectRef<Kafka>>) -> Vec<String> {
        heard.into_iter().map(|kafka| kafka.name).collect()
    }

    #[test]
    fn a_pool_that_changes_hands_matters_to_both() {
        let ears = Ears::default();
        let heard = |cluster: &str| names(ears.heard_of_pool(&metadata("b", json!({labels::CLUSTER: cluster}))));
        assert_eq!([heard("c"), heard("c")], [["c"], ["c"]]);
        assert_eq!(heard("d"), ["d", "c"]);
        assert_eq!(heard("d"), ["d"]);
        ears.forget(&ClusterRef::new("ns", "d"));
        assert_eq!(heard("e"), ["e"], "nobody is there who would miss it");
        assert_eq!(names(ears.heard_of_pool(&metadata("b", json!({})))), [""; 0]);
    }

    #[test]
    fn a_config_map_of_a_rebalance_is_no_reason_to_look() {
        let ears = Ears::default();
        let heard = |name: &str, kind: &str| {
            names(ears.heard_of_config_map(&metadata(name, json!({labels::CLUSTER: "c", labels::KIND: kind}))))
        };
        assert_eq!(heard("anything", "Kafka"), ["c"]);
        assert_eq!(heard(&tracker_name("c"), "KafkaRebalance"), ["c"], "somebody has changed its label");
        assert_eq!(heard("my-rebalance", "KafkaRebalance"), [""; 0]);
    }
}
