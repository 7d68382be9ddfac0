//! Clusters that another operator runs. Strimzi's resources are the same as ours, so a Kafka does not say whose it is; its pod
//! sets do: what we apply carries our mark. Whoever took such a cluster over would replace the image, the keys and the
//! settings of brokers that somebody else looks after.

use evenkeel_api::{StrimziPodSet, labels};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Api, api::ListParams};

use crate::{
    error::Error,
    kafka::desired::APPLIED,
    seams::{Context, Happening},
};

/// Whether another operator made this pod set for a Kafka. Those of Connect and MirrorMaker may have the name of a Kafka.
pub(crate) fn made(set: &ObjectMeta) -> bool {
    let kind = set.labels.as_ref().and_then(|labels| labels.get(labels::KIND));
    let is_marked = set.annotations.as_ref().is_some_and(|notes| notes.contains_key(APPLIED));
    kind.is_none_or(|kind| kind == "Kafka") && !is_marked
}

/// Why a Kafka with these pod sets is not touched. None: another operator has made none of them.
pub(crate) fn runs_it<'a>(sets: impl IntoIterator<Item = &'a ObjectMeta>) -> Option<Happening> {
    let theirs = sets.into_iter().filter(|set| made(set)).filter_map(|set| set.name.as_deref());
    let theirs: Vec<&str> = theirs.collect();
    let note = || {
        format!(
            "its pods were made by another operator, so nothing of it is touched: StrimziPodSet {} without the \
             annotation {APPLIED}",
            theirs.join(", ")
        )
    };
    (!theirs.is_empty()).then(|| Happening::warning("AnotherOperator", note()))
}

/// The same, asked for.
pub(crate) async fn look(context: &Context, namespace: &str, cluster: &str) -> Result<Option<Happening>, Error> {
    let api = Api::<StrimziPodSet>::namespaced(context.client.clone(), namespace);
    let of_cluster = ListParams::default().labels(&format!("{}={cluster}", labels::CLUSTER));
    let found = api.list_metadata(&of_cluster).await.map_err(Error::reading("strimzipodsets"))?;
    Ok(runs_it(found.items.iter().map(|set| &set.metadata)))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn set(labels: Value, annotations: Value) -> ObjectMeta {
        serde_json::from_value(json!({"name": "lagoon-quay", "labels": labels, "annotations": annotations})).unwrap()
    }

    #[test]
    fn a_pod_set_of_a_kafka_without_our_mark_is_another_operators() {
        let of_kafka = || json!({labels::KIND: "Kafka"});
        assert!(made(&set(of_kafka(), json!({}))));
        assert!(!made(&set(of_kafka(), json!({APPLIED: "hash"}))));
        assert!(!made(&set(json!({labels::KIND: "KafkaConnect"}), json!({}))), "it is no Kafka's");
    }

    #[test]
    fn one_of_them_is_enough() {
        let ours = set(json!({labels::KIND: "Kafka"}), json!({APPLIED: "hash"}));
        let theirs = set(json!({labels::KIND: "Kafka"}), json!({}));
        assert!(runs_it([&ours]).is_none());
        let why = runs_it([&ours, &theirs]).unwrap();
        assert!(why.note.contains("StrimziPodSet lagoon-quay without"), "{}", why.note);
    }
}
