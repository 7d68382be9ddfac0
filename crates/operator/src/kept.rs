//! What controllers keep of the objects that they watch. Of a hundred clusters and a thousand rebalances that is most of
//! what the operator holds at rest, so it is as little as will do: whoever decides about an object reads it anew.
//!
//! And of which changes they hear: of a Kafka whose status is written all that watch it would look again, and find nothing.
//!
//! And that an object that cannot be read hides no other: definitions that are not ours may admit what our types do not know.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash, Hasher},
};

use evenkeel_api::{Kafka, KafkaRebalance, KafkaRebalanceSpec, KafkaRebalanceStatus, Reason, annotations, labels};
use futures::{Stream, TryStreamExt, future::ready};
use kube::{
    Api, Resource,
    core::{DeserializeGuard, ObjectMeta, PartialObjectMeta},
    runtime::{
        Controller, WatchStreamExt, reflector,
        watcher::{self, Event, watcher},
    },
};
use serde::de::DeserializeOwned;
use serde_json::json;

/// All of an object as it was last applied: nobody here reads it.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// What figures tell of a proposal.
pub(crate) const BALANCEDNESS: [(&str, &str); 2] =
    [("before", "onDemandBalancednessScoreBefore"), ("after", "onDemandBalancednessScoreAfter")];

/// What happens to the objects of a kind of which all is read. One that cannot be read is as good as gone: a list with it in it
/// could not be read at all. Of those of which only the metadata are asked for there is none.
pub(crate) fn readable<K>(
    api: Api<DeserializeGuard<K>>,
    config: watcher::Config,
) -> impl Stream<Item = watcher::Result<Event<K>>> + Send
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug + Send + 'static,
{
    watcher(api, config).try_filter_map(|event| ready(Ok(read(event))))
}

fn read<K: Resource<DynamicType = ()> + DeserializeOwned>(event: Event<DeserializeGuard<K>>) -> Option<Event<K>> {
    let (unreadable, is_listed) = match event {
        Event::Init => return Some(Event::Init),
        Event::InitDone => return Some(Event::InitDone),
        Event::InitApply(DeserializeGuard(Ok(object))) => return Some(Event::InitApply(object)),
        Event::Apply(DeserializeGuard(Ok(object))) => return Some(Event::Apply(object)),
        Event::Delete(DeserializeGuard(Ok(object))) => return Some(Event::Delete(object)),
        Event::InitApply(DeserializeGuard(Err(unreadable))) => (unreadable, true),
        Event::Apply(DeserializeGuard(Err(unreadable))) | Event::Delete(DeserializeGuard(Err(unreadable))) => {
            (unreadable, false)
        }
    };
    let kind = K::kind(&());
    tracing::warn!(
        error = %unreadable,
        namespace = unreadable.metadata.namespace.as_deref(),
        name = unreadable.metadata.name.as_deref(),
        "a {kind} cannot be read, and is left alone until it is mended"
    );
    // It may have been readable before; whatever else was listed before is forgotten with the list.
    let bare = json!({"apiVersion": K::api_version(&()), "kind": kind, "metadata": unreadable.metadata});
    if is_listed { None } else { serde_json::from_value(bare).ok().map(Event::Delete) }
}

/// A controller that keeps of each object what `leave_out` leaves.
pub(crate) fn controller<K>(
    events: impl Stream<Item = watcher::Result<Event<K>>> + Send + 'static,
    leave_out: fn(&mut K),
) -> Controller<K>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug + Send + Sync + 'static,
{
    controller_of(events, |_| true, leave_out)
}

/// The same that looks after, and keeps, only those that are `meant`.
pub(crate) fn controller_of<K>(
    events: impl Stream<Item = watcher::Result<Event<K>>> + Send + 'static,
    meant: fn(&K) -> bool,
    leave_out: fn(&mut K),
) -> Controller<K>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug + Send + Sync + 'static,
{
    let (reader, writer) = reflector::store();
    let watched = events.try_filter_map(move |event| {
        ready(Ok(match event {
            Event::InitApply(object) if !meant(&object) => None,
            // It may have been one of them.
            Event::Apply(object) if !meant(&object) => Some(Event::Delete(object)),
            other => Some(other),
        }))
    });
    let watched = watched.modify(move |object| {
        without_its_history(object.meta_mut());
        leave_out(object);
    });
    Controller::for_stream(watched.reflect(writer).applied_objects(), reader)
}

/// Objects to which something happens that matters: they come, they go, or what `matters` of them changes.
pub(crate) fn changes<K, T>(
    events: impl Stream<Item = watcher::Result<Event<K>>> + Send,
    matters: fn(&K) -> T,
) -> impl Stream<Item = watcher::Result<K>> + Send
where
    K: Resource<DynamicType = ()> + Send,
    T: Hash,
{
    let mut known = BTreeMap::new();
    events.try_filter_map(move |event| {
        ready(Ok(match event {
            Event::Init | Event::InitDone => None,
            Event::Apply(object) | Event::InitApply(object) => {
                let metadata = object.meta();
                let now = hash(&(&metadata.uid, matters(&object)));
                (known.insert(key(metadata), now) != Some(now)).then_some(object)
            }
            Event::Delete(object) => {
                known.remove(&key(object.meta()));
                Some(object)
            }
        }))
    })
}

fn key(of: &ObjectMeta) -> (Option<String>, Option<String>) {
    (of.namespace.clone(), of.name.clone())
}

/// Something in eight bytes, to be told from what it was before.
pub(crate) fn hash(of: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

/// Who wrote which field is often more than the fields themselves.
fn without_its_history(metadata: &mut ObjectMeta) {
    metadata.managed_fields = None;
    if let Some(annotations) = &mut metadata.annotations {
        annotations.remove(LAST_APPLIED);
    }
}

/// What matters of a Kafka that is not the one in question: how its rebalances come about, and how far they are.
pub(crate) fn little_of_a_kafka(kafka: &mut Kafka) {
    kafka.spec.kafka = None;
    kafka.spec.unknown = Default::default();
    if let Some(engine) = &mut kafka.spec.cruise_control {
        let auto_rebalance = engine.auto_rebalance.take();
        *engine = evenkeel_api::kafka::CruiseControlSpec { auto_rebalance, ..Default::default() };
    }
    if let Some(status) = &mut kafka.status {
        let auto_rebalance = status.auto_rebalance.take();
        *status = evenkeel_api::KafkaStatus { auto_rebalance, ..Default::default() };
    }
}

/// What matters of a rebalance that is not the one in question: what it is for, whether it runs or waits, and its figures.
pub(crate) fn little_of_a_rebalance(rebalance: &mut KafkaRebalance) {
    let KafkaRebalance { metadata, spec, status } = rebalance;
    *spec = KafkaRebalanceSpec { mode: spec.mode, ..Default::default() };
    keep(&mut metadata.labels, &[labels::CLUSTER]);
    keep(
        &mut metadata.annotations,
        &[
            annotations::REBALANCE,
            annotations::REBALANCE_AUTO_APPROVAL,
            annotations::REBALANCE_TEMPLATE,
            annotations::PAUSE_RECONCILIATION,
        ],
    );
    let Some(found) = status.take() else { return };
    let mut conditions = found.conditions;
    conditions.retain(|it| !it.is_warning() || it.has_reason(Reason::WaitingForOtherRebalance));
    conditions.iter_mut().for_each(|it| it.message = None);
    conditions.shrink_to_fit();
    let mut result = found.optimization_result;
    if let Some(result) = &mut result {
        result.retain(|key, _| BALANCEDNESS.iter().any(|(_, kept)| kept == key));
    }
    *status = Some(KafkaRebalanceStatus { conditions, optimization_result: result, ..Default::default() });
}

/// Keeps these alone; of none not even a map.
fn keep(all: &mut Option<BTreeMap<String, String>>, kept: &[&str]) {
    if let Some(all) = all {
        all.retain(|key, _| kept.contains(&key.as_str()));
    }
    *all = all.take().filter(|all| !all.is_empty());
}

/// What matters of what may have to be released.
pub(crate) fn name_and_finalizers<K>(object: &mut PartialObjectMeta<K>) {
    object.metadata.labels = None;
    object.metadata.annotations = None;
}

#[cfg(test)]
mod tests {
    use std::{
        collections::BTreeSet,
        convert::Infallible,
        sync::{Arc, Mutex},
        time::Duration,
    };

    use http::{Request, Response, header::ACCEPT};
    use kube::{Client, client::Body};
    use serde_json::json;
    use tower::service_fn;

    use super::*;
    use crate::{seams::Context, settings::Settings};

    fn read<K: DeserializeOwned>(value: serde_json::Value) -> K {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn who_wrote_what_is_not_kept() {
        let mut metadata: ObjectMeta = read(json!({
            "name": "a",
            "annotations": {LAST_APPLIED: "{}", "strimzi.io/rebalance": "approve"},
            "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:spec": {}}}],
        }));
        without_its_history(&mut metadata);
        let left = json!({"name": "a", "annotations": {"strimzi.io/rebalance": "approve"}});
        assert_eq!(serde_json::to_value(metadata).unwrap(), left);
    }

    #[test]
    fn of_a_kafka_its_automatic_rebalancing_is_kept() {
        let mut kafka: Kafka = read(json!({
            "metadata": {"name": "c"},
            "spec": {
                "kafka": {"config": {"a": 1}}, "entityOperator": {},
                "cruiseControl": {"config": {"b": 2}, "autoRebalance": [{"mode": "imbalance"}]},
            },
            "status": {"clusterId": "x", "autoRebalance": {"state": "Idle"}},
        }));
        little_of_a_kafka(&mut kafka);
        assert_eq!(kafka.spec.auto_rebalances().len(), 1);
        let left = serde_json::to_value(&kafka).unwrap();
        assert_eq!(left["spec"], json!({"cruiseControl": {"autoRebalance": [{"mode": "imbalance"}]}}));
        assert_eq!(left["status"]["autoRebalance"]["state"], "Idle");
        assert_eq!(left["status"].get("clusterId"), None);
    }

    #[test]
    fn of_a_rebalance_its_scores_and_its_place_in_the_queue_are_kept() {
        let mut rebalance: KafkaRebalance = read(json!({
            "metadata": {
                "name": "r", "labels": {"strimzi.io/cluster": "c", "team": "a"},
                "annotations": {"strimzi.io/rebalance": "approve", "note": "of a user"},
            },
            "spec": {"mode": "add-brokers", "brokers": [1]},
            "status": {
                "sessionId": "s", "observedGeneration": 1,
                "conditions": [
                    {"type": "ProposalReady", "status": "True", "message": "long"},
                    {"type": "Warning", "status": "True", "reason": "UnknownFields", "message": "long"},
                    {"type": "Warning", "status": "True", "reason": "WaitingForOtherRebalance",
                        "lastTransitionTime": "2026-01-01T00:00:00Z", "message": "long"},
                ],
                "optimizationResult": {
                    "onDemandBalancednessScoreBefore": 1.0, "onDemandBalancednessScoreAfter": 2.0,
                    "afterBeforeLoadConfigMap": "r",
                },
            },
        }));
        little_of_a_rebalance(&mut rebalance);
        let left = serde_json::to_value(&rebalance).unwrap();
        let metadata = json!({
            "name": "r", "labels": {"strimzi.io/cluster": "c"}, "annotations": {"strimzi.io/rebalance": "approve"},
        });
        assert_eq!(left["metadata"], metadata);
        assert_eq!(left["spec"], json!({"mode": "add-brokers"}));
        let conditions = json!([
            {"type": "ProposalReady", "status": "True"},
            {"type": "Warning", "status": "True", "reason": "WaitingForOtherRebalance",
                "lastTransitionTime": "2026-01-01T00:00:00Z"},
        ]);
        let scores = json!({"onDemandBalancednessScoreBefore": 1.0, "onDemandBalancednessScoreAfter": 2.0});
        assert_eq!(left["status"], json!({"conditions": conditions, "optimizationResult": scores}));
        let mut bare: KafkaRebalance = read(json!({"metadata": {"name": "r", "labels": {"team": "a"}}, "spec": {}}));
        little_of_a_rebalance(&mut bare);
        assert_eq!((bare.metadata.labels, bare.status), (None, None));
    }

    fn kafka(uid: &str, labels: serde_json::Value, cluster_id: &str) -> Kafka {
        let metadata = json!({"name": "c", "namespace": "ns", "uid": uid, "labels": labels});
        read(json!({"metadata": metadata, "spec": {}, "status": {"clusterId": cluster_id}}))
    }

    #[tokio::test]
    async fn only_what_matters_is_heard_and_that_somebody_is_gone_always() {
        let (none, team) = (|| json!({}), || json!({"team": "a"}));
        let events = [
            Event::Init,
            Event::InitApply(kafka("u", none(), "first")),
            Event::InitDone,
            Event::Apply(kafka("u", none(), "its status was written")),
            Event::Apply(kafka("u", team(), "a label came")),
            Event::InitApply(kafka("u", team(), "all was listed anew")),
            Event::Apply(kafka("v", team(), "another one has its name")),
            Event::Delete(kafka("v", team(), "it is gone")),
            Event::Apply(kafka("v", team(), "it is back")),
        ];
        let events = futures::stream::iter(events.map(Ok));
        let heard = changes(events, |kafka: &Kafka| kafka.metadata.labels.clone());
        let heard = heard.map_ok(|kafka| kafka.status.unwrap().cluster_id.unwrap());
        let heard: Vec<String> = heard.try_collect().await.unwrap();
        assert_eq!(heard, ["first", "a label came", "another one has its name", "it is gone", "it is back"]);
    }

    #[test]
    fn what_cannot_be_read_is_as_good_as_gone_and_hides_nobody() {
        fn guarded<K: Resource + DeserializeOwned>(name: &str, spec: serde_json::Value) -> DeserializeGuard<K> {
            read_from(json!({"metadata": {"name": name, "namespace": "ns", "uid": "u"}, "spec": spec}))
        }
        fn read_from<T: DeserializeOwned>(value: serde_json::Value) -> T {
            // As it comes over the wire.
            serde_json::from_str(&value.to_string()).unwrap()
        }
        fn heard<K>(events: Vec<Event<DeserializeGuard<K>>>) -> Vec<String>
        where
            K: Resource<DynamicType = ()> + DeserializeOwned,
        {
            let name = |it: &K| it.meta().name.clone().unwrap();
            let told = |event| match event {
                Event::Init => "begins".to_owned(),
                Event::InitDone => "ends".to_owned(),
                Event::InitApply(it) => format!("listed {}", name(&it)),
                Event::Apply(it) => format!("there {}", name(&it)),
                Event::Delete(it) => format!("gone {}", name(&it)),
            };
            events.into_iter().filter_map(super::read).map(told).collect()
        }
        let (well, odd) = (|| json!({"mode": "full"}), || json!({"mode": "sideways"}));
        let rebalances: Vec<Event<DeserializeGuard<KafkaRebalance>>> = vec![
            Event::Init,
            Event::InitApply(guarded("a", well())),
            Event::InitApply(guarded("b", odd())),
            Event::InitDone,
            Event::Apply(guarded("a", odd())),
            Event::Apply(guarded("a", well())),
            Event::Delete(guarded("b", odd())),
        ];
        assert_eq!(heard(rebalances), ["begins", "listed a", "ends", "gone a", "there a", "gone b"]);
        let modes = |mode: &str| json!({"cruiseControl": {"autoRebalance": [{"mode": mode}]}});
        let kafkas: Vec<Event<DeserializeGuard<Kafka>>> =
            vec![Event::Apply(guarded("a", modes("imbalance"))), Event::Apply(guarded("b", modes("balance")))];
        assert_eq!(heard(kafkas), ["there a", "gone b"]);
    }

    /// A Secret would come with its keys, a pod set with all of its pods, again with every change of its status.
    #[tokio::test(start_paused = true)]
    async fn only_kafkas_and_rebalances_are_watched_as_a_whole() {
        let forms = Arc::new(Mutex::new(BTreeMap::<String, BTreeSet<&str>>::new()));
        let told = Arc::clone(&forms);
        let nothing_there = service_fn(move |request: Request<Body>| {
            let accepts = request.headers().get(ACCEPT).and_then(|it| it.to_str().ok()).unwrap_or_default();
            let form = if accepts.contains("as=PartialObjectMetadata") { "metadata" } else { "whole" };
            let kind = request.uri().path().rsplit('/').next().unwrap_or_default().to_owned();
            let query = request.uri().query().unwrap_or_default();
            let watches = query.contains("watch=true");
            // A watch begins with a list in pages; other lists are asked for where all of an object matters.
            if watches || query.contains("limit=") {
                told.lock().unwrap().entry(kind).or_default().insert(form);
            }
            async move {
                if watches {
                    std::future::pending::<()>().await;
                }
                let list =
                    json!({"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": "1"}, "items": []});
                Ok::<_, Infallible>(Response::new(Body::from(list.to_string().into_bytes())))
            }
        });
        let context = Context::new(Client::new(nothing_there, "default"), Settings::default());
        let controllers = async {
            tokio::join!(
                crate::kafka::run(context.clone()),
                crate::pod_set::run(context.clone()),
                crate::rebalance::controller::run(context.clone()),
            )
        };
        assert!(tokio::time::timeout(Duration::from_secs(5), controllers).await.is_err(), "they go on for ever");
        let forms = forms.lock().unwrap();
        let wholes: Vec<&str> =
            forms.iter().filter(|(_, forms)| forms.contains("whole")).map(|(kind, _)| kind.as_str()).collect();
        assert_eq!(wholes, ["kafkarebalances", "kafkas"]);
        for kind in ["configmaps", "pods", "secrets", "strimzipodsets"] {
            assert!(forms.contains_key(kind), "{forms:?}");
        }
    }
}
