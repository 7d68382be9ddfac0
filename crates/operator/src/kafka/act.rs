//! Carries out what was decided about a cluster, in its order. Nothing is chosen here. What fails keeps back only what rests
//! on it, and what will not go away by itself becomes a condition.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use evenkeel_api::{
    Kafka, KafkaNodePool, KafkaRebalance, KafkaStatus,
    annotations::{ASKED_OF, AUTO_REBALANCING_FINALIZER, REBALANCE, STOPPED_FOR},
    labels,
};
use evenkeel_kafka::{
    self as kafka, BrokerId, ErrorCode,
    calls::configs::{Change, Resource as ConfigResource},
};
use futures::future::join_all;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams, Preconditions},
    core::ApiResource,
};
use serde_json::{Value, json};

use super::{
    config::DynamicChange,
    decide::{Decision, Deed, Step, confess, standing_still},
    desired::Desired,
    hash,
    names::Names,
    pools::owner,
    seen::{Refusals, Seen},
};
use crate::{
    auto_rebalance::{
        Act, TrackerWrite,
        imbalance::{emptied, map_name},
        tracker::tracker_name,
    },
    error::{Error, told},
    seams::{ClusterRef, Context, Happening, NAME, Trust},
};

/// A look that is older is no reason any more to take a broker or its disks away, or to restart it: what was empty may have got
/// something since, and who was in sync may not be.
const OLDEST: Duration = Duration::from_secs(5);

/// So many objects of one cluster are written side by side.
const AT_ONCE: usize = 8;

/// What was applied to which version of an object, by its hash. An API server may write a value in other words than it
/// was given (`0.5` as `500m`), and the object then never looks as it should; once is enough.
#[derive(Debug, Default)]
pub(super) struct Memory(Mutex<BTreeMap<ClusterRef, Applied>>);

/// By kind and name: the hash of what was applied, and the version that came of it.
type Applied = BTreeMap<(String, String), (String, Option<String>)>;

impl Memory {
    /// Nobody will ask for this cluster again soon.
    pub(super) fn forget(&self, cluster: &ClusterRef) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(cluster);
    }
}

/// Does what was decided about one cluster.
pub(super) struct Hands<'a> {
    pub(super) context: &'a Context,
    pub(super) memory: &'a Memory,
    pub(super) seen: &'a Seen,
    pub(super) names: Names,
    /// How often it failed in a row.
    pub(super) failures: u32,
    /// What automatic rebalancing could not do the last time, in words.
    pub(super) unacted: Option<String>,
}

impl Hands<'_> {
    /// Does all of it, or as much as is possible.
    pub(super) async fn carry_out(&self, decision: &Decision) -> Result<(), Error> {
        let mut kafka = self.seen.kafka.clone();
        if let Some(first) = &decision.first {
            self.record(&mut kafka, first).await?;
        }
        let mut failed: Vec<(&Deed, Error)> = Vec::new();
        for together in decision.deeds.chunk_by(|one, next| one.deed.goes_beside(&next.deed)) {
            for some in together.chunks(AT_ONCE) {
                self.perform_all(some, &kafka, &mut failed).await?;
            }
        }
        let remembered = self.remember(&decision.tracker).await.map_err(|error| Error::Memory(Box::new(error)));
        let forgetful = match remembered {
            Err(error) if error.lets_others_pass(self.failures) => Some(error),
            other => other.map(|()| None)?,
        };
        let to_tell = failed.iter().map(|(_, error)| error).chain(&forgetful);
        let mut to_tell: Vec<String> =
            to_tell.filter(|it| it.is_to_be_told(self.failures)).map(|it| told(it)).collect();
        let others = to_tell.clone();
        // What could not be done before is not taken back until it was tried again, or it would come and go for ever.
        to_tell.extend(self.unacted.clone().filter(|_| !decision.acts.is_empty()));
        if let Some(error) = forgetful {
            // What cannot be remembered is not done. All else is said all the same.
            let (status, news) = confess(&standing_still(&decision.status, kafka.status.as_ref()), &to_tell, self.seen);
            self.record(&mut kafka, &status).await?;
            self.tell_all(&kafka, &[&decision.told, &news]).await;
            return Err(error);
        }
        let (status, news) = confess(&decision.status, &to_tell, self.seen);
        self.record(&mut kafka, &status).await?;
        self.tell_all(&kafka, &[&decision.told, &decision.told_of_rebalancing, &news]).await;
        let acted = self.rebalance_all(&decision.acts).await;
        let refused = acted.as_ref().err().filter(|error| error.is_to_be_told(self.failures)).map(|error| told(error));
        if refused != self.unacted && !decision.acts.is_empty() {
            let to_tell: Vec<String> = others.into_iter().chain(refused).collect();
            let (status, news) = confess(&decision.status, &to_tell, self.seen);
            self.record(&mut kafka, &status).await?;
            self.tell_all(&kafka, &[&news]).await;
        }
        acted.map_err(|error| Error::Act(Box::new(error)))?;
        failed.into_iter().next().map_or(Ok(()), |(_, error)| Err(error))
    }

    /// Does these side by side, but for those that rest on what has failed.
    async fn perform_all<'a>(
        &self,
        steps: &'a [Step],
        kafka: &Kafka,
        failed: &mut Vec<(&'a Deed, Error)>,
    ) -> Result<(), Error> {
        let due = steps.iter().filter(|step| !failed.iter().any(|(other, _)| step.deed.rests_on(other)));
        let due: Vec<&Step> = due.collect();
        let outcomes = join_all(due.iter().map(|step| self.perform(&step.deed))).await;
        let mut ends = Ok(());
        for (Step { deed, told }, outcome) in due.into_iter().zip(outcomes) {
            match outcome {
                Ok(()) => self.tell_all(kafka, &[told]).await,
                Err(error) if error.lets_others_pass(self.failures) => failed.push((deed, error)),
                Err(error) => ends = ends.and(Err(error)),
            }
        }
        ends
    }

    async fn tell_all(&self, kafka: &Kafka, events: &[&[Happening]]) {
        for some in events {
            for event in *some {
                self.context.tell(kafka, event).await;
            }
        }
    }

    fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
    {
        Api::namespaced(self.context.client.clone(), &self.names.namespace)
    }

    /// Writes the status if it says something new. It rests on what was seen: should that have changed, all is looked
    /// at anew.
    async fn record(&self, kafka: &mut Kafka, status: &KafkaStatus) -> Result<(), Error> {
        if kafka.status.as_ref() == Some(status) {
            return Ok(());
        }
        kafka.status = Some(status.clone());
        kafka.metadata.managed_fields = None;
        let written = self.api::<Kafka>().replace_status(&self.names.cluster, &PostParams::default(), kafka).await;
        *kafka = written.map_err(Error::writing(format!("the status of Kafka {}", self.names.cluster)))?;
        Ok(())
    }

    async fn perform(&self, deed: &Deed) -> Result<(), Error> {
        match deed {
            Deed::Apply(desired) => self.apply(desired).await,
            Deed::Create(desired) => self.create(desired).await,
            Deed::Delete { resource, name, uid } => {
                let what = format!("the end of {} {name}", resource.kind);
                if resource.kind == "PersistentVolumeClaim" {
                    self.check_age(&what)?;
                }
                unless_gone(self.dynamic(resource).delete(name, &exactly(uid.clone())).await.map(drop), what)
            }
            Deed::Annotate { resource, name, uid, key, value } => {
                let patch = json!({"metadata": {"uid": uid, "annotations": {*key: value}}});
                let patched = self.dynamic(resource).patch(name, &PatchParams::default(), &Patch::Merge(patch)).await;
                unless_gone(patched.map(drop), format!("an annotation of {} {name}", resource.kind))
            }
            Deed::PoolStatus { pool, status } => {
                let pools = self.api::<KafkaNodePool>();
                let found = self.seen.node_pools.iter().find(|known| known.name_any() == *pool);
                let Some(mut written) = found.cloned() else { return Ok(()) };
                written.status = Some(status.as_ref().clone());
                written.metadata.managed_fields = None;
                let written = pools.replace_status(pool, &PostParams::default(), &written).await;
                written.map(drop).map_err(Error::writing(format!("the status of KafkaNodePool {pool}")))
            }
            Deed::Reconfigure(changes) => self.reconfigure(changes).await,
            Deed::Restart { pod, uid } => {
                let what = format!("the restart of pod {pod}");
                self.check_age(&what)?;
                unless_gone(self.api::<Pod>().delete(pod, &exactly(Some(uid.clone()))).await.map(drop), what)
            }
            Deed::Unregister(id) => {
                self.check_age(&format!("the end of broker {id} on Kafka's list"))?;
                let Some(client) = self.kafka().await? else { return Ok(()) };
                match client.unregister_broker(BrokerId(*id)).await {
                    // Somebody else did it.
                    Err(kafka::Error::Refused { refusal, .. })
                        if refusal.code == ErrorCode::BROKER_ID_NOT_REGISTERED =>
                    {
                        Ok(())
                    }
                    other => other.map_err(|source| Error::Unregister { broker: *id, source }),
                }
            }
        }
    }

    fn dynamic(&self, resource: &ApiResource) -> Api<DynamicObject> {
        if resource.kind == "ClusterRoleBinding" {
            return Api::all_with(self.context.client.clone(), resource);
        }
        Api::namespaced_with(self.context.client.clone(), &self.names.namespace, resource)
    }

    async fn apply(&self, desired: &Desired) -> Result<(), Error> {
        let kind = &desired.resource.kind;
        let (cluster, key) = (self.cluster(), (kind.clone(), desired.name.clone()));
        let live = self.seen.live.value(kind, &desired.name);
        let version = live.and_then(|live| Some(live.pointer("/metadata/resourceVersion")?.as_str()?.to_owned()));
        let lock = || self.memory.0.lock().unwrap_or_else(PoisonError::into_inner);
        let hash = hash::of_value(&desired.value);
        let applied = (hash.clone(), version.clone());
        if version.is_some() && lock().get(&cluster).is_some_and(|known| known.get(&key) == Some(&applied)) {
            return Ok(());
        }
        if version.is_none() {
            self.refuse_strangers(desired).await?;
        }
        let mut value = Cow::Borrowed(&desired.value);
        if let (Some(live), Some(version)) = (live, &version)
            && loses_pods(live, &desired.value)
        {
            self.check_age(&format!("the end of pods of {}", desired.name))?;
            // Nobody has changed it since: another operator may be at it by now.
            value.to_mut()["metadata"]["resourceVersion"] = json!(version);
        }
        let api = self.dynamic(&desired.resource);
        let params = PatchParams::apply(NAME).force();
        let applied = api.patch(&desired.name, &params, &Patch::Apply(value.as_ref())).await;
        let applied = applied.map_err(Error::writing(format!("{kind} {}", desired.name)))?;
        lock().entry(cluster).or_default().insert(key, (hash, applied.metadata.resource_version));
        Ok(())
    }

    /// Whether what was seen is young enough for a deed that cannot be taken back: whoever was held up, or frozen, looks again.
    /// What counts is when the reading ended: one that takes longer than this would never be young enough.
    fn check_age(&self, what: &str) -> Result<(), Error> {
        let age = self.context.clock.now().duration_since(self.seen.read_at).unsigned_abs();
        if age > OLDEST { Err(Error::Outlived { what: what.to_owned(), age }) } else { Ok(()) }
    }

    async fn create(&self, desired: &Desired) -> Result<(), Error> {
        let what = format!("{} {}", desired.resource.kind, desired.name);
        let object = serde_json::from_value(desired.value.clone())
            .map_err(|error| Error::writing(what.clone())(kube::Error::SerdeError(error)))?;
        let created = self.dynamic(&desired.resource).create(&PostParams::default(), &object).await;
        if let Err(kube::Error::Api(status)) = &created
            && status.is_already_exists()
        {
            self.refuse_strangers(desired).await?;
        }
        created.map(drop).map_err(Error::writing(what))
    }

    /// Objects are found by their label, so what seems to be missing may be somebody else's. It is not taken over.
    async fn refuse_strangers(&self, desired: &Desired) -> Result<(), Error> {
        let what = format!("{} {}", desired.resource.kind, desired.name);
        let found = self.dynamic(&desired.resource).get_opt(&desired.name).await;
        let found = found.map_err(Error::reading(what.clone()))?;
        match found {
            Some(found) if found.labels().get(labels::CLUSTER) != Some(&self.names.cluster) => {
                Err(Error::Foreign { what, cluster: self.names.cluster.clone() })
            }
            _ => Ok(()),
        }
    }

    fn cluster(&self) -> ClusterRef {
        ClusterRef::new(&self.names.namespace, &self.names.cluster)
    }

    async fn kafka(&self) -> Result<Option<kafka::Client>, Error> {
        let secret = |name: String| self.seen.live.read::<Secret>("Secret", &name);
        let (authority, identity) = (secret(self.names.cluster_ca_cert()), secret(self.names.operator_certs()));
        let Some(trust) = Trust::of_secrets(authority.as_ref(), identity.as_ref()) else { return Ok(None) };
        Ok(Some(self.context.kafkas.client(&self.cluster(), &trust).await?))
    }

    /// Changes settings of running brokers. The files that remember them are written next, so all of it has to succeed.
    async fn reconfigure(&self, changes: &[(Option<i32>, DynamicChange)]) -> Result<(), Error> {
        let Some(client) = self.kafka().await? else { return Ok(()) };
        let mut refused = alter(&client, changes).await?;
        // Of several for the same broker Kafka takes all or none. Which it is that it does not like is found one by one.
        let in_company = changes.iter().filter(|(whom, _)| refused.keys().filter(|(of, _)| of == whom).count() > 1);
        let in_company: Vec<_> = in_company.cloned().collect();
        for one in in_company {
            refused.remove(&one);
            refused.extend(alter(&client, &[one]).await?);
        }
        if refused.is_empty() { Ok(()) } else { Err(Error::Refused(refused)) }
    }

    async fn remember(&self, write: &TrackerWrite) -> Result<(), Error> {
        let maps = self.api::<ConfigMap>();
        let name = tracker_name(&self.names.cluster);
        match write {
            TrackerWrite::Keep => Ok(()),
            TrackerWrite::Write(data) => {
                let mut map = json!({
                    "apiVersion": "v1", "kind": "ConfigMap",
                    "metadata": {
                        "name": name,
                        "labels": {labels::CLUSTER: self.names.cluster, labels::KIND: "Kafka"},
                        "ownerReferences": [owner(&self.seen.kafka)],
                    },
                    "data": data,
                });
                // It was made from what was seen: an old memory does not take the place of a newer one.
                let seen = self.seen.live.value("ConfigMap", &name);
                let written = match seen.and_then(|seen| seen.pointer("/metadata/resourceVersion")) {
                    Some(version) => {
                        map["metadata"]["resourceVersion"] = version.clone();
                        maps.patch(&name, &PatchParams::apply(NAME).force(), &Patch::Apply(&map)).await
                    }
                    None => {
                        let map = serde_json::from_value::<ConfigMap>(map).map_err(kube::Error::SerdeError);
                        let map = map.map_err(Error::writing(format!("ConfigMap {name}")))?;
                        return self.create(&Desired::once(&map)).await;
                    }
                };
                written.map(drop).map_err(Error::writing(format!("ConfigMap {name}")))
            }
            TrackerWrite::Delete => {
                let deleted = maps.delete(&name, &DeleteParams::background()).await;
                unless_gone(deleted.map(drop), format!("the end of ConfigMap {name}"))
            }
        }
    }

    /// One after another; whoever fails at one leaves out the rest.
    async fn rebalance_all(&self, acts: &[Act]) -> Result<(), Error> {
        for act in acts {
            self.rebalance(act).await?;
        }
        Ok(())
    }

    fn rebalance_seen(&self, name: &str) -> Option<&KafkaRebalance> {
        self.seen.rebalances.iter().find(|seen| seen.metadata.name.as_deref() == Some(name))
    }

    /// What a user has asked of it meanwhile is not overwritten: then all is looked at anew.
    async fn annotate(&self, name: &str, mut patch: Value) -> Result<(), Error> {
        let version = self.rebalance_seen(name).and_then(|seen| seen.metadata.resource_version.clone());
        patch["metadata"]["resourceVersion"] = json!(version);
        let patched = self.api::<KafkaRebalance>().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await;
        unless_gone(patched.map(drop), format!("KafkaRebalance {name}"))
    }

    async fn rebalance(&self, act: &Act) -> Result<(), Error> {
        let api = self.api::<KafkaRebalance>();
        let stop = |why: &str| json!({"metadata": {"annotations": {REBALANCE: "stop", STOPPED_FOR: why}}});
        match act {
            Act::Create(rebalance) => match api.create(&PostParams::default(), rebalance).await {
                Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
                other => other.map(drop).map_err(Error::writing(format!("KafkaRebalance {}", rebalance.name_any()))),
            },
            Act::Update { name, brokers, engine } => {
                let patch = json!({
                    "metadata": {"annotations": {REBALANCE: "refresh", ASKED_OF: engine}},
                    "spec": {"brokers": brokers},
                });
                self.annotate(name, patch).await
            }
            Act::Refresh { name, engine } => {
                self.annotate(name, json!({"metadata": {"annotations": {REBALANCE: "refresh", ASKED_OF: engine}}}))
                    .await
            }
            Act::Stop { name, why } => self.annotate(name, stop(why.as_str())).await,
            Act::Withdraw { name, why } => {
                self.annotate(name, stop(why.as_str())).await?;
                let only_it = exactly(self.rebalance_seen(name).and_then(|seen| seen.metadata.uid.clone()));
                let deleted = api.delete(name, &only_it).await;
                unless_gone(deleted.map(drop), format!("the end of KafkaRebalance {name}"))
            }
            Act::Remove { name, uid } => release(&api, name, uid).await,
            Act::NoteViolations(data) => self.note_violations(data).await,
            Act::EmptyViolations { unfixable_too } => self.empty_violations(*unfixable_too).await,
            Act::DeleteViolations => {
                let name = map_name(&self.names.cluster);
                let deleted = self.api::<ConfigMap>().delete(&name, &DeleteParams::background()).await;
                unless_gone(deleted.map(drop), format!("the end of ConfigMap {name}"))
            }
        }
    }

    /// Where there is no map yet, one is just being made, and this is decided again.
    async fn note_violations(&self, data: &BTreeMap<String, String>) -> Result<(), Error> {
        let name = map_name(&self.names.cluster);
        let Some(mut map) = self.seen.live.read::<ConfigMap>("ConfigMap", &name) else { return Ok(()) };
        map.data = Some(data.clone());
        let written = self.api::<ConfigMap>().replace(&name, &PostParams::default(), &map).await;
        written.map(drop).map_err(Error::writing(format!("ConfigMap {name}")))
    }

    async fn empty_violations(&self, unfixable_too: bool) -> Result<(), Error> {
        let name = map_name(&self.names.cluster);
        let maps = self.api::<ConfigMap>();
        let found = maps.get_opt(&name).await.map_err(Error::reading(format!("ConfigMap {name}")))?;
        let Some(mut map) = found else { return Ok(()) };
        let Some(data) = emptied(&map.data.clone().unwrap_or_default(), unfixable_too) else { return Ok(()) };
        map.data = Some(data);
        let written = maps.replace(&name, &PostParams::default(), &map).await;
        written.map(drop).map_err(Error::writing(format!("ConfigMap {name}")))
    }
}

/// Whether a pod set loses a pod.
fn loses_pods(live: &Value, desired: &Value) -> bool {
    let names = |set: &Value| -> BTreeSet<String> {
        let pods = set.pointer("/spec/pods").and_then(Value::as_array).into_iter().flatten();
        pods.filter_map(|pod| Some(pod.pointer("/metadata/name")?.as_str()?.to_owned())).collect()
    };
    !names(live).is_subset(&names(desired))
}

/// Asks Kafka for these changes; what of them it refused.
async fn alter(client: &kafka::Client, changes: &[(Option<i32>, DynamicChange)]) -> Result<Refusals, Error> {
    let resource =
        |whom: Option<i32>| whom.map_or(ConfigResource::AllBrokers, |id| ConfigResource::Broker(BrokerId(id)));
    let mut wanted: BTreeMap<ConfigResource, BTreeMap<String, Change>> = BTreeMap::new();
    for (whom, DynamicChange { key, value, .. }) in changes {
        let change = value.clone().map_or(Change::Delete, Change::Set);
        wanted.entry(resource(*whom)).or_default().insert(key.clone(), change);
    }
    let answers = client.alter_configs(&wanted, false).await.whole().map_err(Error::Reconfigure)?;
    let refusal = |whom: Option<i32>| answers.get(&resource(whom))?.as_ref().err().map(ToString::to_string);
    Ok(changes.iter().filter_map(|change| Some((change.clone(), refusal(change.0)?))).collect())
}

/// Deletes only what has this uid: whoever was held up, or frozen, may find the next one under the same name.
pub(super) fn exactly(uid: Option<String>) -> DeleteParams {
    DeleteParams::background().preconditions(Preconditions { uid, resource_version: None })
}

/// Takes our finalizer off exactly this one, and only ours, and deletes it.
pub(super) async fn release(api: &Api<KafkaRebalance>, name: &str, uid: &str) -> Result<(), Error> {
    let what = || format!("the end of KafkaRebalance {name}");
    let found = api.get_opt(name).await.map_err(Error::reading(format!("KafkaRebalance {name}")))?;
    let Some(found) = found.filter(|found| found.metadata.uid.as_deref() == Some(uid)) else { return Ok(()) };
    let held = found.finalizers();
    if held.iter().any(|finalizer| finalizer == AUTO_REBALANCING_FINALIZER) {
        let others: Vec<&String> = held.iter().filter(|finalizer| *finalizer != AUTO_REBALANCING_FINALIZER).collect();
        let version = &found.metadata.resource_version;
        let patch = json!({"metadata": {"resourceVersion": version, "finalizers": others}});
        let patched = api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await;
        unless_gone(patched.map(drop), what())?;
    }
    unless_gone(api.delete(name, &exactly(Some(uid.to_owned()))).await.map(drop), what())
}

/// What is no longer there needs no end.
pub(super) fn unless_gone(outcome: Result<(), kube::Error>, what: String) -> Result<(), Error> {
    match outcome {
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        other => other.map_err(Error::writing(what)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_loses_pods_if_one_is_not_listed_any_more() {
        let set = |names: &[&str]| {
            let pods: Vec<Value> = names.iter().map(|name| json!({"metadata": {"name": name}})).collect();
            json!({"kind": "StrimziPodSet", "spec": {"pods": pods}})
        };
        assert!(loses_pods(&set(&["a", "b"]), &set(&["a"])) && loses_pods(&set(&["a"]), &set(&["b"])));
        assert!(!loses_pods(&set(&["a"]), &set(&["a", "b"])) && !loses_pods(&set(&[]), &set(&[])));
        assert!(!loses_pods(&json!({"kind": "Secret"}), &json!({"kind": "Secret"})), "others have none");
    }
}
