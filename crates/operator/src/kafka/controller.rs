//! The shell of clusters: is called by watches, looks once, has it decided, and carries it out. It waits for nothing:
//! what has to come first calls it again.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use evenkeel_api::{Condition, Kafka, KafkaNodePool, KafkaRebalance, KafkaStatus, StrimziPodSet, conditions, labels};
use futures::{StreamExt, future::join_all};
use jiff::Timestamp;
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Pod, Secret},
};
use kube::{
    Api, ResourceExt,
    api::PostParams,
    core::{ObjectMeta, PartialObjectMeta},
    runtime::{
        Controller,
        controller::{self, Action},
        reflector::{ObjectRef, Store},
        watcher,
    },
};

use super::{
    act::{Hands, Memory, release},
    decide::{self, Decision, Given},
    names::Names,
    observe,
    seen::{Metadata, Seen},
};
use tokio::time::Instant;

use crate::{
    auto_rebalance::{
        imbalance::{Violations, map_name},
        is_orphaned,
        tracker::tracker_name,
    },
    error::{Error, told},
    figures::Reconciled,
    seams::{ClusterRef, Context},
};

const AT_ONCE: u16 = 16;
/// Many objects change at once; they are looked at together.
const DEBOUNCE: Duration = Duration::from_millis(50);
/// Nothing calls when a broker registers, or is missed by the others.
const SOON: Duration = Duration::from_secs(2);
/// The state of a Kafka that is to be left alone.
const PAUSED: &str = "ReconciliationPaused";

/// What the controller has at hand.
struct Shell {
    context: Context,
    memory: Memory,
    failures: Mutex<BTreeMap<ClusterRef, u32>>,
    /// Brokers that were seen to be empty, as the last decision left it. Who forgets it looks twice again.
    empty: Mutex<BTreeMap<ClusterRef, BTreeMap<i32, Timestamp>>>,
}

impl Shell {
    fn new(context: Context) -> Self {
        Self { context, memory: Memory::default(), failures: Mutex::default(), empty: Mutex::default() }
    }

    fn empty_since(&self, of: &ClusterRef) -> BTreeMap<i32, Timestamp> {
        self.empty.lock().unwrap_or_else(PoisonError::into_inner).get(of).cloned().unwrap_or_default()
    }

    fn remember_empty(&self, of: &ClusterRef, found: BTreeMap<i32, Timestamp>) {
        let mut empty = self.empty.lock().unwrap_or_else(PoisonError::into_inner);
        if found.is_empty() {
            empty.remove(of);
        } else {
            empty.insert(of.clone(), found);
        }
    }
}

/// Looks after the Kafkas of the operator's namespaces, until dropped.
pub async fn run(context: Context) {
    let clusters = context.scopes().into_iter().map(|scope| look_after(context.clone(), scope));
    let orphans = context.scopes().into_iter().map(|scope| release_orphans(context.clone(), scope));
    futures::future::join(join_all(clusters), join_all(orphans)).await;
}

async fn look_after(context: Context, namespace: Option<String>) {
    let namespace = namespace.as_deref();
    let all = watcher::Config::default;
    let of_clusters = || watcher::Config::default().labels(labels::CLUSTER);
    let controller = Controller::new(context.api::<Kafka>(namespace), all());
    let kafkas = controller.store();
    context.figures.show_kafkas(kafkas.clone());
    controller
        .with_config(controller::Config::default().concurrency(AT_ONCE).debounce(DEBOUNCE))
        .watches(context.api::<PartialObjectMeta<KafkaNodePool>>(namespace), of_clusters(), |it| of(&it.metadata))
        .watches(context.api::<PartialObjectMeta<StrimziPodSet>>(namespace), of_clusters(), |it| of(&it.metadata))
        .watches(context.api::<PartialObjectMeta<Pod>>(namespace), of_clusters(), |it| of(&it.metadata))
        .watches(context.api::<PartialObjectMeta<Deployment>>(namespace), of_clusters(), |it| of(&it.metadata))
        .watches(context.api::<PartialObjectMeta<ConfigMap>>(namespace), of_clusters(), |it| {
            of_config_map(&it.metadata)
        })
        .watches(context.api::<PartialObjectMeta<Secret>>(namespace), of_clusters(), |it| of(&it.metadata))
        .watches(context.api::<PartialObjectMeta<KafkaRebalance>>(namespace), all(), move |it| {
            of_rebalance(&kafkas, &it.metadata)
        })
        .run(counted, pause, Arc::new(Shell::new(context)))
        .for_each(|ended| async move {
            if let Err(error) = ended {
                tracing::debug!(error = told(&error), "a reconciliation of a Kafka failed");
            }
        })
        .await;
}

/// The Kafka that an object belongs to.
fn of(metadata: &ObjectMeta) -> Option<ObjectRef<Kafka>> {
    let cluster = metadata.labels.as_ref()?.get(labels::CLUSTER)?;
    Some(ObjectRef::new(cluster).within(metadata.namespace.as_deref()?))
}

/// The Kafka that a ConfigMap matters to. One of a rebalance changes with every bit of progress, and matters to none.
fn of_config_map(metadata: &ObjectMeta) -> Option<ObjectRef<Kafka>> {
    let labels = metadata.labels.as_ref()?;
    let cluster = labels.get(labels::CLUSTER)?;
    let is_shared = [map_name(cluster), tracker_name(cluster)].iter().any(|name| metadata.name.as_ref() == Some(name));
    let is_ours = labels.get(labels::KIND).is_some_and(|kind| kind == "Kafka");
    of(metadata).filter(|_| is_shared || is_ours)
}

/// The Kafkas that a rebalance matters to: its own, or, for a template, all that may name it.
fn of_rebalance(kafkas: &Store<Kafka>, metadata: &ObjectMeta) -> Vec<ObjectRef<Kafka>> {
    if let Some(own) = of(metadata) {
        return vec![own];
    }
    let neighbours = kafkas.state().into_iter().filter(|kafka| kafka.metadata.namespace == metadata.namespace);
    neighbours.map(|kafka| ObjectRef::from_obj(kafka.as_ref())).collect()
}

async fn counted(known: Arc<Kafka>, shell: Arc<Shell>) -> Result<Action, Error> {
    let began = Instant::now();
    let ended = reconcile(Arc::clone(&known), Arc::clone(&shell)).await;
    let what = Reconciled { periodical: false, succeeded: ended.is_ok(), took: began.elapsed() };
    shell.context.figures.reconciled(known.as_ref(), what);
    ended
}

async fn reconcile(known: Arc<Kafka>, shell: Arc<Shell>) -> Result<Action, Error> {
    let context = &shell.context;
    let names = Names::of(&known);
    let cluster = ClusterRef::new(&names.namespace, &names.cluster);
    let kafkas = Api::<Kafka>::namespaced(context.client.clone(), &names.namespace);
    // What the watch has told may be older than what was written last.
    let found = kafkas.get_opt(&names.cluster).await.map_err(Error::reading(format!("Kafka {cluster}")))?;
    let Some(kafka) = found.filter(|kafka| context.settings.selects(kafka)) else {
        context.kafkas.forget(&cluster);
        context.engines.forget(&cluster);
        context.figures.forget(&cluster);
        return Ok(Action::await_change());
    };
    if kafka.metadata.deletion_timestamp.is_some() {
        // Everything goes with its owner, and generated rebalances are released below.
        return Ok(Action::await_change());
    }
    if decide::is_paused(&kafka) {
        say_that_it_rests(context, &kafkas, kafka).await?;
        return Ok(Action::requeue(context.settings.reconciliation_interval));
    }
    let (seen, decision) = look(context, Arc::new(kafka), shell.empty_since(&cluster)).await?;
    shell.remember_empty(&cluster, decision.found_empty.clone());
    let violations = seen.live.data(&map_name(&names.cluster));
    context.figures.told_of(&cluster, &violations.as_ref().map(Violations::read).unwrap_or_default());
    let hands = Hands { context, memory: &shell.memory, seen: &seen, names };
    hands.carry_out(&decision).await?;
    shell.failures.lock().unwrap_or_else(PoisonError::into_inner).remove(&cluster);
    Ok(Action::requeue(back(context, &seen, &decision)))
}

/// Looks, and decides; a second time and closer, where the first look did not suffice.
async fn look(
    context: &Context,
    kafka: Arc<Kafka>,
    empty_since: BTreeMap<i32, Timestamp>,
) -> Result<(Seen, Decision), Error> {
    let given = Given {
        settings: &context.settings.clusters,
        operation_timeout: context.settings.operation_timeout,
        random: context.settings.random,
    };
    let seen = Seen { empty_since: empty_since.clone(), ..observe::observe(context, &kafka, false).await? };
    let decision = decide::decide(&seen, given);
    if !decision.look_closer {
        return Ok((seen, decision));
    }
    let seen = Seen { empty_since, ..observe::observe(context, &kafka, true).await? };
    let decision = decide::decide(&seen, given);
    Ok((seen, decision))
}

/// When to look again even if nobody calls.
fn back(context: &Context, seen: &Seen, decision: &Decision) -> Duration {
    let usual = context.settings.reconciliation_interval;
    let wished = decision.look_again.map(|moment| {
        Duration::try_from(moment.duration_since(seen.now)).unwrap_or_default().max(Duration::from_millis(100))
    });
    let is_ready = decision.status.conditions.first().is_some_and(|state| state.type_ == conditions::READY);
    let brokers = seen.pods.iter().filter(|pod| {
        pod.labels().get(labels::BROKER_ROLE).is_some_and(|role| role == "true")
            && crate::pod_set::decide::is_ready(pod)
    });
    let is_settled = match &seen.metadata {
        Metadata::Nobody => brokers.count() == 0,
        Metadata::Unreachable(_) => false,
        // A broker registers after its pod is ready, and is missed a while after it has gone.
        Metadata::Known(known) => known.registered.len() == brokers.count() && known.registered.values().all(|f| !f),
    };
    // What was refused is refused until it is written differently, and then a watch calls.
    let unsettled = (!decision.is_refused && (!is_settled || !is_ready)).then_some(SOON);
    [wished, unsettled].into_iter().flatten().fold(usual, Duration::min)
}

async fn say_that_it_rests(context: &Context, kafkas: &Api<Kafka>, mut kafka: Kafka) -> Result<(), Error> {
    let before = kafka.status.clone().unwrap_or_default();
    let conditions = conditions::settle([Condition::state(PAUSED)], &before.conditions, context.clock.now());
    let status = KafkaStatus { conditions, observed_generation: kafka.metadata.generation, ..before };
    if kafka.status.as_ref() == Some(&status) {
        return Ok(());
    }
    kafka.status = Some(status);
    kafka.metadata.managed_fields = None;
    let name = kafka.name_any();
    let written = kafkas.replace_status(&name, &PostParams::default(), &kafka).await;
    written.map(drop).map_err(Error::writing(format!("the status of Kafka {name}")))
}

/// When to try again what failed: later each time.
fn pause(kafka: Arc<Kafka>, error: &Error, shell: Arc<Shell>) -> Action {
    let names = Names::of(&kafka);
    let cluster = ClusterRef::new(&names.namespace, &names.cluster);
    let mut failures = shell.failures.lock().unwrap_or_else(PoisonError::into_inner);
    let count = failures.entry(cluster.clone()).or_default();
    let pause = error.pause(*count);
    *count += 1;
    tracing::warn!(error = told(error), %cluster, ?pause, "a Kafka could not be reconciled");
    Action::requeue(pause)
}

/// Generated rebalances whose Kafka is gone: nobody else takes our finalizer off them.
async fn release_orphans(context: Context, namespace: Option<String>) {
    let namespace = namespace.as_deref();
    let of_clusters = watcher::Config::default().labels(labels::CLUSTER);
    let controller = Controller::new(context.api::<KafkaRebalance>(namespace), of_clusters);
    let rebalances = controller.store();
    controller
        .watches(context.api::<PartialObjectMeta<Kafka>>(namespace), watcher::Config::default(), move |kafka| {
            let belongs = |it: &Arc<KafkaRebalance>| {
                it.metadata.namespace == kafka.metadata.namespace
                    && it.labels().get(labels::CLUSTER) == kafka.metadata.name.as_ref()
            };
            let found: Vec<_> = rebalances.state().into_iter().filter(belongs).collect();
            found.iter().map(|it| ObjectRef::from_obj(it.as_ref())).collect::<Vec<_>>()
        })
        .run(
            |rebalance, context| async move { release_orphan(&rebalance, &context).await },
            |_, error, _| Action::requeue(error.pause(1)),
            Arc::new(context),
        )
        .for_each(|_| async {})
        .await;
}

async fn release_orphan(rebalance: &KafkaRebalance, context: &Context) -> Result<Action, Error> {
    let (Some(cluster), Some(namespace)) = (rebalance.labels().get(labels::CLUSTER), rebalance.namespace()) else {
        return Ok(Action::await_change());
    };
    let kafkas = Api::<Kafka>::namespaced(context.client.clone(), &namespace);
    let there = kafkas.get_opt(cluster).await.map_err(Error::reading(format!("Kafka {cluster}")))?;
    if is_orphaned(rebalance, cluster, there.as_ref()) {
        release(&Api::namespaced(context.client.clone(), &namespace), &rebalance.name_any()).await?;
    }
    Ok(Action::await_change())
}
