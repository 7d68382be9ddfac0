//! What a Kafka that is gone has left. Most of it goes with its owner; but the nodes' objects belong to the node pools,
//! which a user may keep, and one object stands in no namespace and belongs to nobody (`bindings`).
//!
//! The pod sets are the memory of the nodes' objects, so they go last. Claims stay unless `deleteClaim` says otherwise, and
//! the node pools remember the cluster's id: a Kafka that is made again finds its data.
//!
//! Only what we wrote ourselves is cleared up. Another operator beside ours keeps pod sets of the same form, and what it
//! does with them when a Kafka is gone is its own affair; the Kafka could not be asked any more whose it was.

mod bindings;

use std::{collections::BTreeSet, sync::Arc};

use evenkeel_api::{Kafka, StrimziPodSet, labels};
use futures::StreamExt;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Secret};
use kube::{
    Api, Resource, ResourceExt,
    api::{DynamicObject, ListParams},
    core::{ApiResource, ObjectMeta, PartialObjectMeta},
    runtime::{
        WatchStreamExt,
        controller::Action,
        reflector::{ObjectRef, Store},
        watcher,
    },
};
use serde_json::Value;
use tokio::sync::mpsc;

use super::{
    act::{exactly, unless_gone},
    desired::{APPLIED, goes_with_its_node},
    pools::pods_of_pod_set,
    seen::Live,
};
use crate::{
    error::{Error, told},
    kept,
    seams::Context,
};

/// Looks after pod sets and bindings whose Kafka is gone, until dropped.
pub(super) async fn look_after(context: Context, namespace: Option<String>) {
    let namespace = namespace.as_deref();
    let of_clusters = watcher::Config::default().labels(labels::CLUSTER);
    let sets = context.api::<PartialObjectMeta<StrimziPodSet>>(namespace);
    let controller = kept::controller(watcher(sets, of_clusters), |_| {});
    let sets = controller.store();
    let (news, heard) = mpsc::unbounded_channel();
    let mut hearing = bindings::Hearing::default();
    let kafkas = watcher(context.api::<PartialObjectMeta<Kafka>>(namespace), watcher::Config::default());
    let kafkas = kafkas.inspect(move |event| {
        // Nobody listens any more only when all of this ends.
        let _ = event.as_ref().ok().and_then(|event| hearing.hear(event)).map(|it| news.send(it));
    });
    let sets_go = controller
        .watches_stream(kafkas.touched_objects(), move |kafka| labelled_for(&kafka, &sets))
        .run(
            |set, context| async move { clear_up(&set, &context).await },
            |_, error, _| {
                tracing::warn!(error = told(error), "what a Kafka has left could not be cleared up");
                Action::requeue(error.pause(2))
            },
            Arc::new(context.clone()),
        )
        .for_each(|_| async {});
    tokio::join!(sets_go, bindings::look_after(&context, namespace, heard));
}

/// What carries the label of this Kafka, be it still there or not.
pub(super) fn labelled_for<K>(kafka: &PartialObjectMeta<Kafka>, known: &Store<K>) -> Vec<ObjectRef<K>>
where
    K: Resource<DynamicType = ()> + Clone + 'static,
{
    let belongs = |it: &Arc<K>| {
        it.meta().namespace == kafka.metadata.namespace
            && it.labels().get(labels::CLUSTER) == kafka.metadata.name.as_ref()
    };
    known.state().iter().filter(|it| belongs(it)).map(|it| ObjectRef::from_obj(it.as_ref())).collect()
}

async fn clear_up(known: &PartialObjectMeta<StrimziPodSet>, context: &Context) -> Result<Action, Error> {
    let (Some(cluster), Some(namespace)) = (known.labels().get(labels::CLUSTER), known.namespace()) else {
        return Ok(Action::await_change());
    };
    if !is_ours(&known.metadata) {
        return Ok(Action::await_change());
    }
    let kafkas = Api::<Kafka>::namespaced(context.client.clone(), &namespace);
    let there = kafkas.get_opt(cluster).await.map_err(Error::reading(format!("Kafka {cluster}")))?;
    if there.is_some() {
        return Ok(Action::await_change());
    }
    let sets = Api::<StrimziPodSet>::namespaced(context.client.clone(), &namespace);
    let name = known.name_any();
    let found = sets.get_opt(&name).await.map_err(Error::reading(format!("StrimziPodSet {name}")))?;
    let Some(set) = found.filter(|set| set.metadata.uid == known.metadata.uid) else {
        return Ok(Action::await_change());
    };
    let of_cluster = ListParams::default().labels(&format!("{}={cluster}", labels::CLUSTER));
    let mut live = Live::default();
    for resource in [erased::<ConfigMap>(), erased::<Secret>(), erased::<PersistentVolumeClaim>()] {
        let api = Api::<DynamicObject>::namespaced_with(context.client.clone(), &namespace, &resource);
        let found = api.list(&of_cluster).await.map_err(Error::reading(resource.plural.clone()))?;
        let types = kube::core::TypeMeta { api_version: resource.api_version.clone(), kind: resource.kind.clone() };
        found.items.into_iter().for_each(|it| live.take(DynamicObject { types: Some(types.clone()), ..it }));
    }
    for (resource, name, uid) in left(&set, &live) {
        let api = Api::<DynamicObject>::namespaced_with(context.client.clone(), &namespace, &resource);
        let deleted = api.delete(&name, &exactly(uid)).await;
        unless_gone(deleted.map(drop), format!("the end of {} {name}", resource.kind))?;
    }
    Ok(Action::await_change())
}

/// Whether the operator made this set for a node pool. A set of the user's own has no pool behind it, and one of another
/// operator does not say that we applied it.
fn is_ours(set: &ObjectMeta) -> bool {
    let of_pool = set.owner_references.iter().flatten().any(|owner| owner.kind == "KafkaNodePool");
    of_pool && set.annotations.as_ref().is_some_and(|notes| notes.contains_key(APPLIED))
}

fn erased<K: Resource<DynamicType = ()>>() -> ApiResource {
    ApiResource::erase::<K>(&())
}

/// What goes with a pod set whose Kafka is gone, the set itself last: of what kind, its name, and exactly which.
fn left(set: &StrimziPodSet, live: &Live) -> Vec<(ApiResource, String, Option<String>)> {
    let uid = |it: &Value| it.pointer("/metadata/uid").and_then(|uid| Some(uid.as_str()?.to_owned()));
    let pods: BTreeSet<&str> = pods_of_pod_set(set).collect();
    let mut all = Vec::new();
    let claims = live.of_kind("PersistentVolumeClaim").filter(|(_, claim)| {
        let of = claim.pointer("/metadata/labels").and_then(|labels| labels.get(labels::POD_NAME)?.as_str());
        of.is_some_and(|pod| pods.contains(pod)) && goes_with_its_node(claim)
    });
    all.extend(claims.map(|(name, claim)| (erased::<PersistentVolumeClaim>(), name.to_owned(), uid(claim))));
    for resource in [erased::<Secret>(), erased::<ConfigMap>()] {
        let own = pods.iter().filter_map(|pod| Some((*pod, live.value(&resource.kind, pod)?)));
        all.extend(own.map(|(pod, it)| (resource.clone(), pod.to_owned(), uid(it))));
    }
    all.push((erased::<StrimziPodSet>(), set.name_any(), set.uid()));
    all
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(kind: &str, name: &str, metadata: Value) -> DynamicObject {
        let mut all = json!({"apiVersion": "v1", "kind": kind, "metadata": metadata});
        all["metadata"]["name"] = json!(name);
        serde_json::from_value(all).unwrap()
    }

    #[test]
    fn only_sets_that_were_applied_for_a_pool_are_ours() {
        let set = |owner: &str, notes: Value| -> ObjectMeta {
            let owner = json!({"apiVersion": "kafka.strimzi.io/v1", "kind": owner, "name": "b", "uid": "u"});
            let metadata = json!({"name": "c-b", "namespace": "ns", "ownerReferences": [owner], "annotations": notes});
            serde_json::from_value(metadata).unwrap()
        };
        assert!(is_ours(&set("KafkaNodePool", json!({APPLIED: "hash"}))));
        assert!(!is_ours(&set("Kafka", json!({APPLIED: "hash"}))), "it goes with its owner");
        assert!(!is_ours(&set("KafkaNodePool", json!({}))), "another operator's");
    }

    #[test]
    fn what_belongs_to_its_nodes_goes_and_claims_only_if_they_may() {
        let set: StrimziPodSet =
            serde_json::from_value(json!({"apiVersion": "core.strimzi.io/v1", "kind": "StrimziPodSet",
                "metadata": {"name": "c-b", "namespace": "ns"},
                "spec": {"selector": {}, "pods": [{"metadata": {"name": "c-b-0"}}]}}))
            .unwrap();
        let mut live = Live::default();
        let claim = |goes: bool| json!({"uid": "u", "labels": {"strimzi.io/pod-name": "c-b-0"}, "annotations": {"strimzi.io/delete-claim": goes.to_string()}});
        live.take(object("PersistentVolumeClaim", "stays", claim(false)));
        live.take(object("PersistentVolumeClaim", "goes", claim(true)));
        for kind in ["ConfigMap", "Secret"] {
            live.take(object(kind, "c-b-0", json!({})));
            live.take(object(kind, "c-other", json!({})));
        }
        let told = left(&set, &live).into_iter().map(|(kind, name, exactly)| {
            let uid = exactly.map(|uid| format!(" {uid}")).unwrap_or_default();
            format!("{} {name}{uid}", kind.kind)
        });
        let usual = ["PersistentVolumeClaim goes u", "Secret c-b-0", "ConfigMap c-b-0", "StrimziPodSet c-b"];
        assert!(told.eq(usual));
    }
}
