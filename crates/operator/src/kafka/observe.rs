//! Reads everything about a cluster once: first Kubernetes, then the engine, and Kafka last: on what it says rests what cannot
//! be taken back.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use evenkeel_api::{Kafka, KafkaNodePool, KafkaRebalance, StrimziPodSet, labels};
use evenkeel_kafka::{
    self as kafka, TopicPartition,
    calls::{
        configs::{Resource as ConfigResource, Settings},
        reassignments::Reassignment,
        topics::{Topic, TopicAnswers, Which},
    },
};
use futures::future::try_join_all;
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, PersistentVolumeClaim, Pod, Secret, Service, ServiceAccount},
    networking::v1::NetworkPolicy,
    policy::v1::PodDisruptionBudget,
    rbac::v1::{ClusterRoleBinding, Role, RoleBinding},
};
use kube::{
    Api, Resource, ResourceExt,
    api::{DynamicObject, ListParams},
    core::{ApiResource, DeserializeGuard},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::{
    ask_engine::ask_engine,
    decide,
    engine::named_users,
    metadata_versions,
    names::Names,
    pools::finds_racks,
    seen::{EngineSaid, FurtherUsers, Known, Live, Metadata, Partition, Seen},
};
use crate::{
    auto_rebalance::{imbalance::map_name, poll::Polled, remembers, spoken_of, tracker::tracker_name},
    error::{Error, told},
    seams::{ClusterRef, Context, Trust, Unreachable},
};

const LEAST_IN_SYNC: &str = "min.insync.replicas";

/// How long it may take to hear of the controllers: where nobody leads them, nobody answers.
const QUORUM_PATIENCE: Duration = Duration::from_secs(3);

/// How much Kafka is asked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Depth {
    /// Who is there.
    Little,
    /// Also who has what.
    Partitions,
    /// Also how many replicas of it must be in sync, and how the controllers are.
    Close,
}

/// Everything about a cluster. `closer`: also all that a restart depends on. `polled`: what its engine told when it was last asked
/// for what it found. `readers`: turns of those who read.
pub(super) async fn observe(
    context: &Context,
    readers: &Semaphore,
    kafka: &Arc<Kafka>,
    polled: Option<&Polled>,
    closer: bool,
) -> Result<Seen, Error> {
    let mut seen = {
        // While it is read, all of a cluster is there twice, as text and as values. Nobody closes this.
        let _turn = readers.acquire().await.ok();
        kubernetes(context, kafka).await?
    };
    let depth = match closer {
        true => Depth::Close,
        false if decide::questioned(&seen).is_empty() => Depth::Little,
        false => Depth::Partitions,
    };
    // Not both at once: an engine that hangs would make what Kafka has said too old for what cannot be taken back.
    seen.engine = ask_engine(context, &seen, polled).await;
    seen.metadata = ask_kafka(context, &seen, depth).await;
    seen.read_at = context.clock.now();
    Ok(seen)
}

async fn kubernetes(context: &Context, kafka: &Kafka) -> Result<Seen, Error> {
    let names = Names::of(kafka);
    let eyes = Eyes { context, namespace: &names.namespace, cluster: &names.cluster };
    let lists = try_join_all([
        eyes.list::<ConfigMap>(),
        eyes.list::<Secret>(),
        eyes.list::<Service>(),
        eyes.list::<ServiceAccount>(),
        eyes.list::<PersistentVolumeClaim>(),
        eyes.list::<PodDisruptionBudget>(),
        eyes.list::<NetworkPolicy>(),
        eyes.list::<Deployment>(),
        eyes.list::<Role>(),
        eyes.list::<RoleBinding>(),
        eyes.list::<StrimziPodSet>(),
    ]);
    let asks_for_racks = kafka.spec.kafka.as_ref().is_some_and(|spec| spec.rack.is_some());
    let (lists, pods, mut node_pools, further_users, binding, mut rebalances) = futures::try_join!(
        lists,
        eyes.typed::<Pod>(),
        eyes.typed::<KafkaNodePool>(),
        eyes.further_users(kafka),
        eyes.rack_binding(&names, asks_for_racks),
        eyes.rebalances(),
    )?;
    let mut live = Live::default();
    lists.into_iter().flatten().chain(binding).for_each(|object| live.take(object));
    eyes.unlabelled_maps(kafka, &mut live).await?;
    eyes.named_rebalances(kafka, &live, &mut rebalances).await?;
    let pod_sets: Vec<StrimziPodSet> = live.of_kind("StrimziPodSet").filter_map(|(_, set)| outline(set)).collect();
    let unlabelled = eyes.unlabelled_pools(&pod_sets, &node_pools).await?;
    node_pools.extend(unlabelled);
    // They still have what is not wanted any more.
    let had_racks = !asks_for_racks && pod_sets.iter().any(finds_racks);
    eyes.rack_binding(&names, had_racks).await?.into_iter().for_each(|binding| live.take(binding));
    let now = context.clock.now();
    Ok(Seen {
        now,
        read_at: now,
        kafka: kafka.clone(),
        pod_sets,
        node_pools,
        pods,
        live,
        rebalances: rebalances.into_values().collect(),
        further_users,
        metadata: Metadata::Nobody,
        engine: EngineSaid::default(),
        empty_since: Default::default(),
        missing_since: Default::default(),
        quiet_since: None,
        refused: Default::default(),
        struck_off: Default::default(),
    })
}

struct Eyes<'a> {
    context: &'a Context,
    namespace: &'a str,
    cluster: &'a str,
}

impl Eyes<'_> {
    fn of_cluster(&self) -> ListParams {
        ListParams::default().labels(&format!("{}={}", labels::CLUSTER, self.cluster))
    }

    /// Objects of one kind, of whatever form.
    fn list<K: Resource<DynamicType = ()>>(
        &self,
    ) -> std::pin::Pin<Box<dyn Future<Output = Result<Vec<DynamicObject>, Error>> + Send + '_>> {
        Box::pin(async move {
            let resource = ApiResource::erase::<K>(&());
            let api: Api<DynamicObject> = Api::namespaced_with(self.context.client.clone(), self.namespace, &resource);
            let found = api.list(&self.of_cluster()).await.map_err(Error::reading(resource.plural.clone()))?;
            let types = kube::core::TypeMeta { api_version: resource.api_version, kind: resource.kind };
            // Lists leave out what every item of them is.
            Ok(found.items.into_iter().map(|item| DynamicObject { types: Some(types.clone()), ..item }).collect())
        })
    }

    async fn typed<K>(&self) -> Result<Vec<K>, Error>
    where
        K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
            + Clone
            + DeserializeOwned
            + std::fmt::Debug,
    {
        let api = Api::<K>::namespaced(self.context.client.clone(), self.namespace);
        Ok(api.list(&self.of_cluster()).await.map_err(Error::reading(K::plural(&()).into_owned()))?.items)
    }

    /// The KafkaRebalances that may matter to it, by their names. Not simply all of its namespace: of a hundred clusters with
    /// ten each, every one of which calls whenever it changes, that would be a thousand each time.
    async fn rebalances(&self) -> Result<BTreeMap<String, KafkaRebalance>, Error> {
        // One that cannot be read is left alone, and hides no other.
        let api = Api::<DeserializeGuard<KafkaRebalance>>::namespaced(self.context.client.clone(), self.namespace);
        let mut found = BTreeMap::new();
        // Templates need no label, and from what was generated somebody may have taken it off. In this order: one from which it
        // is taken off between the two is seen.
        let unlabelled = ListParams::default().labels(&format!("!{}", labels::CLUSTER));
        for which in [self.of_cluster(), unlabelled] {
            let some = api.list(&which).await.map_err(Error::reading("KafkaRebalances"))?;
            found.extend(some.items.into_iter().filter_map(|it| it.0.ok()).map(|it| (it.name_any(), it)));
        }
        Ok(found)
    }

    /// Those that something else speaks of, whatever their labels say.
    async fn named_rebalances(
        &self,
        kafka: &Kafka,
        live: &Live,
        found: &mut BTreeMap<String, KafkaRebalance>,
    ) -> Result<(), Error> {
        let api = Api::<DeserializeGuard<KafkaRebalance>>::namespaced(self.context.client.clone(), self.namespace);
        let (tracker, map) = (live.data(&tracker_name(self.cluster)), live.data(&map_name(self.cluster)));
        let mut named = spoken_of(kafka, tracker.as_ref(), map.as_ref());
        // Whose label was changed while it moves data of this Kafka: its ConfigMap tells of it.
        named
            .extend(live.of_kind("ConfigMap").filter(|(_, it)| is_of_a_rebalance(it)).map(|(name, _)| name.to_owned()));
        for name in named {
            if !found.contains_key(&name)
                && let Some(DeserializeGuard(Ok(it))) =
                    api.get_opt(&name).await.map_err(Error::reading(format!("KafkaRebalance {name}")))?
            {
                found.insert(name, it);
            }
        }
        Ok(())
    }

    /// Pools of pod sets that are not among those that carry the cluster's label. Such a set may also be about to go with its
    /// pool: then there is none.
    async fn unlabelled_pools(
        &self,
        pod_sets: &[StrimziPodSet],
        labelled: &[KafkaNodePool],
    ) -> Result<Vec<KafkaNodePool>, Error> {
        let api = Api::<KafkaNodePool>::namespaced(self.context.client.clone(), self.namespace);
        let owners =
            pod_sets.iter().flat_map(|set| set.owner_references()).filter(|owner| owner.kind == "KafkaNodePool");
        let missed = owners.filter(|owner| !labelled.iter().any(|pool| pool.metadata.uid.as_ref() == Some(&owner.uid)));
        let mut found = Vec::new();
        for owner in missed {
            // As a list of one: no other right to pools is needed.
            let by_name = ListParams::default().fields(&format!("metadata.name={}", owner.name));
            let pools = api.list(&by_name).await.map_err(Error::reading(format!("KafkaNodePool {}", owner.name)))?;
            found.extend(pools.items.into_iter().filter(|pool| pool.metadata.uid.as_ref() == Some(&owner.uid)));
        }
        Ok(found)
    }

    /// The memory of automatic rebalancing and the map of violated goals, where their labels do not tell of them: somebody may
    /// have taken these off.
    async fn unlabelled_maps(&self, kafka: &Kafka, live: &mut Live) -> Result<(), Error> {
        for name in [tracker_name(self.cluster), map_name(self.cluster)] {
            if remembers(kafka) && live.value("ConfigMap", &name).is_none() {
                self.map_of_its_own(kafka, &name).await?.into_iter().for_each(|map| live.take(map));
            }
        }
        Ok(())
    }

    /// A ConfigMap of this name. Its owner tells whose it is; what has neither owner nor label is somebody else's.
    async fn map_of_its_own(&self, kafka: &Kafka, name: &str) -> Result<Option<DynamicObject>, Error> {
        let resource = ApiResource::erase::<ConfigMap>(&());
        let api: Api<DynamicObject> = Api::namespaced_with(self.context.client.clone(), self.namespace, &resource);
        let found = api.get_opt(name).await.map_err(Error::reading(format!("ConfigMap {name}")))?;
        let is_ours = |it: &DynamicObject| {
            it.labels().get(labels::CLUSTER).is_some_and(|cluster| cluster == self.cluster)
                || it.owner_references().iter().any(|owner| Some(&owner.uid) == kafka.metadata.uid.as_ref())
        };
        Ok(found.filter(is_ours))
    }

    /// The one object outside of the namespace. Only clusters with racks have it, and only for those the operator has a
    /// right to look. Without that right it is not there: everything works but racks, and whoever makes it is told.
    async fn rack_binding(&self, names: &Names, matters: bool) -> Result<Option<DynamicObject>, Error> {
        if !matters {
            return Ok(None);
        }
        let resource = ApiResource::erase::<ClusterRoleBinding>(&());
        let api: Api<DynamicObject> = Api::all_with(self.context.client.clone(), &resource);
        match api.get_opt(&names.rack_binding()).await {
            Err(kube::Error::Api(status)) if status.is_forbidden() => Ok(None),
            found => found.map_err(Error::reading("ClusterRoleBinding")),
        }
    }

    /// The list of users that `spec.cruiseControl.apiUsers` points at.
    async fn further_users(&self, kafka: &Kafka) -> Result<FurtherUsers, Error> {
        let Some((secret, key)) = kafka.spec.cruise_control.as_ref().and_then(named_users) else {
            return Ok(FurtherUsers::Unasked);
        };
        let secrets = Api::<Secret>::namespaced(self.context.client.clone(), self.namespace);
        let found = secrets.get_opt(&secret).await.map_err(Error::reading(format!("Secret {secret}")))?;
        Ok(match found.and_then(|found| found.data?.remove(&key)) {
            Some(bytes) => FurtherUsers::Listed(String::from_utf8_lossy(&bytes.0).into_owned()),
            None => FurtherUsers::Missing { secret, key },
        })
    }
}

/// A pod set with as much of its pods as is ever asked of it: who they are, and whether they look for their rack. All of them
/// are in [`Live`], and of a cluster they are the largest part.
fn outline(set: &Value) -> Option<StrimziPodSet> {
    let pods = set["spec"]["pods"].as_array().into_iter().flatten().map(|pod| {
        let metadata = json!({"name": pod["metadata"]["name"], "labels": pod["metadata"]["labels"]});
        let inits = pod["spec"]["initContainers"].as_array().into_iter().flatten();
        let inits: Vec<Value> = inits.map(|container| json!({"name": container["name"]})).collect();
        json!({"metadata": metadata, "spec": {"initContainers": inits}})
    });
    let pods: Vec<Value> = pods.collect();
    let spec = json!({"selector": set["spec"]["selector"], "pods": pods});
    serde_json::from_value(
        json!({"apiVersion": set["apiVersion"], "kind": set["kind"], "metadata": set["metadata"], "spec": spec}),
    )
    .ok()
}

fn is_of_a_rebalance(config_map: &Value) -> bool {
    config_map["metadata"]["labels"][labels::KIND] == "KafkaRebalance"
}

async fn ask_kafka(context: &Context, seen: &Seen, depth: Depth) -> Metadata {
    let is_broker = |pod: &&Pod| pod.labels().get(labels::BROKER_ROLE).is_some_and(|role| role == "true");
    if !seen.pods.iter().filter(is_broker).any(crate::pod_set::decide::is_ready) {
        return Metadata::Nobody;
    }
    let Some(trust) = trust(seen) else { return Metadata::Nobody };
    let names = Names::of(&seen.kafka);
    ask(context, &ClusterRef::new(&names.namespace, &names.cluster), &trust, depth).await
}

/// With what Kafka is asked.
pub(super) fn trust(seen: &Seen) -> Option<Trust> {
    let names = Names::of(&seen.kafka);
    let secret = |name: String| seen.live.read::<Secret>("Secret", &name);
    let (authority, identity) = (secret(names.cluster_ca_cert()), secret(names.operator_certs()));
    Trust::of_secrets(authority.as_ref(), identity.as_ref())
}

/// What Kafka says to whoever asks only who is there.
pub(super) async fn ask_little(context: &Context, cluster: &ClusterRef, trust: &Trust) -> Metadata {
    ask(context, cluster, trust, Depth::Little).await
}

/// Who cannot be asked is no reason to leave everything else undone.
async fn ask(context: &Context, cluster: &ClusterRef, trust: &Trust, depth: Depth) -> Metadata {
    match context.kafkas.client(cluster, trust).await {
        Err(error @ Unreachable::NoWay(_)) => Metadata::Unreachable(told(&error)),
        Err(error) => Metadata::Mistrusted(told(&error)),
        Ok(client) => match known(&client, depth).await {
            Ok(known) => Metadata::Known(known),
            Err(error) if error.is_of_tls() => Metadata::Mistrusted(told(&error)),
            Err(error) => Metadata::Unreachable(told(&error)),
        },
    }
}

async fn known(client: &kafka::Client, depth: Depth) -> Result<Known, kafka::Error> {
    let (cluster, features) = futures::join!(client.describe_cluster(), client.finalized_features());
    let cluster = cluster?;
    let level = features.ok().and_then(|features| features.get("metadata.version").copied());
    let metadata_version = level.and_then(metadata_versions::name).map(str::to_owned);
    let registered = cluster.brokers.iter().map(|broker| (broker.id.0, broker.fenced)).collect();
    let closely = depth >= Depth::Close;
    let (partitions, unread) = match depth {
        Depth::Little => (None, None),
        Depth::Partitions | Depth::Close => match partitions(client, closely).await? {
            Ok(partitions) => (Some(partitions), None),
            Err(why) => (None, Some(why)),
        },
    };
    let quorum = match closely {
        true => Some(client.with_patience(QUORUM_PATIENCE).describe_quorum().await.map_err(|error| told(&error))),
        false => None,
    };
    Ok(Known { cluster_id: cluster.id, registered, partitions, unread, closely, quorum, metadata_version })
}

/// All partitions of all topics, Kafka's own too; or why some could not be read. What could not be read is not empty.
/// `closely`: also how many must be in sync, which is one more question for each of the topics.
async fn partitions(client: &kafka::Client, closely: bool) -> Result<Result<Vec<Partition>, String>, kafka::Error> {
    // Before and after: a move that begins or ends meanwhile would look like replicas that somebody asked for.
    let before = moves(client).await;
    let topics = client.topics(Which::All).await?;
    let after = if before.is_some() { moves(client).await } else { None };
    let moves: BTreeMap<_, _> = before.into_iter().chain(after).flatten().collect();
    let settings = if closely {
        let resources: Vec<ConfigResource> = topics.keys().cloned().map(ConfigResource::Topic).collect();
        client.describe_configs(&resources, Some(&[LEAST_IN_SYNC])).await.whole()?
    } else {
        BTreeMap::new()
    };
    Ok(read(&topics, &moves, &settings))
}

/// What moves. Only the controllers know, and where nobody leads them nobody answers: that is no reason to know nothing at all.
async fn moves(client: &kafka::Client) -> Option<BTreeMap<TopicPartition, Reassignment>> {
    client.with_patience(QUORUM_PATIENCE).list_reassignments(None).await.ok()
}

/// Puts together what was told of topics, of what moves and of their settings.
fn read(
    topics: &TopicAnswers<Topic>,
    moves: &BTreeMap<TopicPartition, Reassignment>,
    settings: &BTreeMap<ConfigResource, Result<Settings, kafka::Refusal>>,
) -> Result<Vec<Partition>, String> {
    let least = |name: &str| -> Option<usize> {
        let told = settings.get(&ConfigResource::Topic(name.to_owned()))?.as_ref().ok()?;
        told.get(LEAST_IN_SYNC)?.value.as_ref()?.parse().ok()
    };
    let mut found = Vec::new();
    let ids = |ids: &[kafka::BrokerId]| -> BTreeSet<i32> { ids.iter().map(|id| id.0).collect() };
    for (name, topic) in topics {
        let topic = topic.as_ref().map_err(|refusal| format!("topic {name} could not be read: {refusal}"))?;
        let least_in_sync = least(name);
        found.extend(topic.partitions.iter().map(|partition| {
            let moves = moves.get(&TopicPartition::new(name.as_str(), partition.index));
            Partition {
                name: format!("{name}-{}", partition.index),
                replicas: ids(&partition.replicas),
                going: moves.map(|moves| ids(&moves.removing)).unwrap_or_default(),
                in_sync: ids(&partition.in_sync),
                least_in_sync,
            }
        }));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use evenkeel_kafka::{BrokerId, ErrorCode, Refusal, calls::topics::Partition as Told};

    use super::*;
    use crate::kafka::{objects::RACK_CONTAINER, pools::pods_of_pod_set};

    #[test]
    fn of_a_pod_set_all_is_known_that_is_asked_of_it() {
        let mut pod: Value = serde_json::from_str(include_str!("../../tests/golden/broker-pod.json")).unwrap();
        pod["spec"]["initContainers"] = json!([{"name": RACK_CONTAINER, "image": "x"}]);
        let set = json!({
            "apiVersion": "core.strimzi.io/v1", "kind": "StrimziPodSet",
            "metadata": {"name": "c-b", "annotations": {"a": "b"}},
            "spec": {"selector": {"matchLabels": {"a": "b"}}, "pods": [pod]}, "status": {"pods": 1},
        });
        let whole: StrimziPodSet = serde_json::from_value(set.clone()).unwrap();
        let known = outline(&set).unwrap();
        assert_eq!((&known.metadata, &known.spec.selector), (&whole.metadata, &whole.spec.selector));
        assert_eq!(pods_of_pod_set(&known).collect::<Vec<_>>(), pods_of_pod_set(&whole).collect::<Vec<_>>());
        assert!(finds_racks(&known) && finds_racks(&whole));
        let labels = |set: &StrimziPodSet| set.spec.pods[0]["metadata"]["labels"].clone();
        assert_eq!(labels(&known), labels(&whole));
        let size = |set: &StrimziPodSet| serde_json::to_string(set).unwrap().len();
        assert!(size(&known) * 3 < size(&whole), "{} of {}", size(&known), size(&whole));
        let odd = json!({"metadata": {"name": "x"}, "spec": {"selector": {}, "pods": [{}]}});
        assert!(outline(&odd).is_some_and(|set| pods_of_pod_set(&set).count() == 0));
    }

    #[test]
    fn what_cannot_be_read_is_not_empty() {
        let three = vec![BrokerId(3)];
        let told =
            Told { index: 0, leader: None, leader_epoch: 0, replicas: three.clone(), in_sync: three, offline: vec![] };
        let topic = Topic { name: "a".into(), id: 1, internal: false, partitions: vec![told] };
        let mut topics = TopicAnswers::from([("a".to_owned(), Ok(topic))]);
        let refused = || Refusal { code: ErrorCode(29), message: None };
        let nothing = BTreeMap::from([(ConfigResource::Topic("a".into()), Err(refused()))]);
        let still = BTreeMap::new();
        let found = read(&topics, &still, &nothing).unwrap();
        assert_eq!((found[0].name.as_str(), found[0].least_in_sync), ("a-0", None), "nobody knows its minimum");
        topics.insert("b".to_owned(), Err(refused()));
        assert!(read(&topics, &still, &nothing).unwrap_err().starts_with("topic b could not be read: "));
    }
}
