//! The shell of clusters: is called by watches, looks once, has it decided, and carries it out. It waits for nothing:
//! what has to come first calls it again.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use evenkeel_api::{Condition, Kafka, KafkaNodePool, KafkaRebalance, KafkaStatus, StrimziPodSet, conditions, labels};
use futures::{StreamExt, future::join_all};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, PersistentVolumeClaim, Pod, Secret, Service, ServiceAccount},
    networking::v1::NetworkPolicy,
    policy::v1::PodDisruptionBudget,
    rbac::v1::{Role, RoleBinding},
};
use kube::{
    Api, ResourceExt,
    api::PostParams,
    core::PartialObjectMeta,
    runtime::{
        controller::{self, Action},
        reflector::ObjectRef,
        watcher,
    },
};
use tokio::{sync::Semaphore, time::Instant};

use super::{
    act::{Hands, Memory, release},
    at_rest::Resting,
    bereft,
    decide::{self, Decision, Given},
    hearing::{Ears, hearing},
    model,
    names::Names,
    observe,
    seen::{Metadata, Missing, Refusals, Seen},
};
use crate::{
    alarms::Alarms,
    another,
    auto_rebalance::{
        held_for,
        imbalance::{Violations, map_name},
        poll::Polled,
    },
    error::{Error, told},
    figures::Reconciled,
    kept,
    namespaces::is_terminating,
    seams::{ClusterRef, Context, Happening},
};

/// Clusters that are looked at side by side. Whoever looks holds all of a cluster's objects meanwhile.
const AT_ONCE: u16 = 16;
/// Those of them that read these objects at the same time. It is soon done, and needs twice the memory; what takes long, Kafka
/// and the engine, is waited for afterwards.
const READING_AT_ONCE: usize = 4;
/// Many objects change at once; they are looked at together.
const DEBOUNCE: Duration = Duration::from_millis(50);
/// What takes longer does not come to an end at all.
const LONGEST: Duration = Duration::from_secs(180);
/// When Kafka is asked once more for what it refused.
const ASKS_AGAIN: SignedDuration = SignedDuration::from_mins(5);
/// The state of a Kafka that is to be left alone.
const PAUSED: &str = "ReconciliationPaused";

/// What the controller has at hand.
struct Shell {
    context: Context,
    memory: Memory,
    alarms: Alarms,
    kept: Mutex<BTreeMap<ClusterRef, Kept>>,
    ears: Arc<Ears>,
    readers: Semaphore,
}

/// What is kept of a cluster from one look to the next. It may be lost: who forgets it looks twice, or asks again.
#[derive(Clone, Debug, Default)]
struct Kept {
    /// How often it failed in a row.
    failures: u32,
    /// Brokers that were seen to be empty, as the last decision left it.
    empty_since: BTreeMap<i32, Timestamp>,
    /// What was seen to be missing, as the last decision left it.
    missing_since: BTreeMap<Missing, Timestamp>,
    /// Since when there was nothing to do, as the last decision left it.
    quiet_since: Option<Timestamp>,
    /// What Kafka would not take, and when it was asked.
    refused: Refusals,
    refused_at: Option<Timestamp>,
    /// Brokers that were struck off Kafka's list, as the last decision left it.
    struck_off: BTreeMap<i32, Timestamp>,
    /// What automatic rebalancing could not do, in words, if a person was told.
    unacted: Option<String>,
    /// What the engine told when it was last asked for what it found.
    polled: Option<Polled>,
    /// Why it was left alone, as a person was told.
    left_alone: Option<String>,
}

impl Kept {
    /// What Kafka would not take, unless that was long ago: it may have changed its mind.
    fn refused(&self, now: Timestamp) -> Refusals {
        let lately = self.refused_at.is_some_and(|at| now.duration_since(at) < ASKS_AGAIN);
        if lately { self.refused.clone() } else { Refusals::new() }
    }

    /// Remembers what Kafka would not take, beside what it would not take lately.
    fn remember_refused(&mut self, refused: Refusals, now: Timestamp) {
        self.refused = self.refused(now);
        self.refused.extend(refused);
        self.refused_at = Some(now);
    }
}

impl Shell {
    fn new(context: Context) -> Self {
        let readers = Semaphore::new(READING_AT_ONCE);
        Self {
            context,
            memory: Memory::default(),
            alarms: Alarms::default(),
            kept: Mutex::default(),
            ears: Arc::default(),
            readers,
        }
    }

    fn kept(&self, of: &ClusterRef) -> Kept {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).get(of).cloned().unwrap_or_default()
    }

    fn keep<T>(&self, of: &ClusterRef, change: impl FnOnce(&mut Kept) -> T) -> T {
        change(self.kept.lock().unwrap_or_else(PoisonError::into_inner).entry(of.clone()).or_default())
    }

    /// Whether a cluster that was at rest still is, as Kafka says, which is all that is asked.
    async fn is_still_at_rest(&self, known: &Kafka, cluster: &ClusterRef) -> bool {
        let Some(resting) = self.ears.rests.known(cluster) else { return false };
        if !resting.lasts(known.metadata.resource_version.as_ref(), self.context.settings.reconciliation_interval) {
            return false;
        }
        let said = observe::ask_little(&self.context, cluster, &resting.trust).await;
        // It is not asked again soon, and each connection has its buffers.
        self.context.kafkas.forget(cluster);
        match said {
            Metadata::Known(said) => resting.is_confirmed(said),
            Metadata::Nobody | Metadata::Unreachable(_) | Metadata::Mistrusted(_) => false,
        }
    }

    /// The cluster is not there, or not for us.
    fn forget(&self, of: &ClusterRef) {
        self.ears.forget(of);
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).remove(of);
        self.memory.forget(of);
        self.context.kafkas.forget(of);
        self.context.engines.forget(of);
        self.context.figures.forget(of);
    }
}

/// Looks after the Kafkas of the operator's namespaces, until dropped.
pub async fn run(context: Context) {
    let clusters = context.scopes().into_iter().map(|scope| look_after(context.clone(), scope));
    let orphans = context.scopes().into_iter().map(|scope| release_orphans(context.clone(), scope));
    let bereft = context.scopes().into_iter().map(|scope| bereft::look_after(context.clone(), scope));
    futures::future::join3(join_all(clusters), join_all(orphans), join_all(bereft)).await;
}

async fn look_after(context: Context, namespace: Option<String>) {
    let namespace = namespace.as_deref();
    let all = watcher::Config::default;
    let of_clusters = || watcher::Config::default().labels(labels::CLUSTER);
    let clusters = kept::readable::<Kafka>(context.api(namespace), all());
    let controller = kept::controller(clusters, kept::little_of_a_kafka);
    let kafkas = controller.store();
    context.figures.show_kafkas(kafkas.clone());
    let shell = Arc::new(Shell::new(context.clone()));
    let ears = &shell.ears;
    let [of_pools, of_config_maps, of_rebalances] = [(); 3].map(|()| Arc::clone(ears));
    controller
        .with_config(controller::Config::default().concurrency(AT_ONCE).debounce(DEBOUNCE))
        .watches(context.api::<PartialObjectMeta<KafkaNodePool>>(namespace), of_clusters(), move |it| {
            of_pools.heard_of_pool(&it.metadata)
        })
        .watches(context.api::<PartialObjectMeta<StrimziPodSet>>(namespace), of_clusters(), hearing(ears))
        .watches(context.api::<PartialObjectMeta<Pod>>(namespace), of_clusters(), hearing(ears))
        .watches(context.api::<PartialObjectMeta<Deployment>>(namespace), of_clusters(), hearing(ears))
        .watches(context.api::<PartialObjectMeta<ConfigMap>>(namespace), of_clusters(), move |it| {
            of_config_maps.heard_of_config_map(&it.metadata)
        })
        .watches(context.api::<PartialObjectMeta<Secret>>(namespace), of_clusters(), hearing(ears))
        .watches(context.api::<PartialObjectMeta<Service>>(namespace), of_clusters(), hearing(ears))
        .watches(context.api::<PartialObjectMeta<ServiceAccount>>(namespace), of_clusters(), hearing(ears))
        .watches(context.api::<PartialObjectMeta<PersistentVolumeClaim>>(namespace), of_clusters(), hearing(ears))
        .watches(context.api::<PartialObjectMeta<PodDisruptionBudget>>(namespace), of_clusters(), hearing(ears))
        .watches(context.api::<PartialObjectMeta<NetworkPolicy>>(namespace), of_clusters(), hearing(ears))
        .watches(context.api::<PartialObjectMeta<Role>>(namespace), of_clusters(), hearing(ears))
        .watches(context.api::<PartialObjectMeta<RoleBinding>>(namespace), of_clusters(), hearing(ears))
        .watches(context.api::<PartialObjectMeta<KafkaRebalance>>(namespace), all(), move |it| {
            of_rebalances.heard_of_rebalance(&kafkas, &it.metadata)
        })
        .run(counted, pause, Arc::clone(&shell))
        .for_each(|ended| {
            match ended {
                Ok(_) => {}
                Err(controller::Error::ObjectNotFound(gone)) => {
                    shell.alarms.forget(gone.namespace.as_deref(), &gone.name);
                    shell.forget(&ClusterRef::new(gone.namespace.as_deref().unwrap_or_default(), &gone.name));
                }
                Err(error) => tracing::debug!(error = told(&error), "a reconciliation of a Kafka failed"),
            }
            std::future::ready(())
        })
        .await;
}

async fn counted(known: Arc<Kafka>, shell: Arc<Shell>) -> Result<Action, Error> {
    let began = Instant::now();
    let periodical = shell.alarms.has_rung(&known.metadata);
    let ended = in_time(Arc::clone(&known), Arc::clone(&shell)).await;
    shell.alarms.set(&known.metadata, ended.as_ref().ok().copied().flatten());
    let what = Reconciled { periodical, succeeded: ended.is_ok(), took: began.elapsed() };
    shell.context.figures.reconciled(known.as_ref(), what);
    ended.map(|pause| pause.map_or_else(Action::await_change, Action::requeue))
}

/// A call that nobody answers must not keep a cluster waiting for good.
async fn in_time(known: Arc<Kafka>, shell: Arc<Shell>) -> Result<Option<Duration>, Error> {
    tokio::time::timeout(LONGEST, reconcile(known, shell)).await.unwrap_or(Err(Error::Late(LONGEST)))
}

/// When to look again even if nobody calls.
async fn reconcile(known: Arc<Kafka>, shell: Arc<Shell>) -> Result<Option<Duration>, Error> {
    let context = &shell.context;
    let names = Names::of(&known);
    let cluster = ClusterRef::new(&names.namespace, &names.cluster);
    if shell.is_still_at_rest(&known, &cluster).await {
        return Ok(Some(context.settings.reconciliation_interval));
    }
    shell.ears.rests.begin(&cluster);
    let kafkas = Api::<Kafka>::namespaced(context.client.clone(), &names.namespace);
    // What the watch has told may be older than what was written last.
    let found = kafkas.get_opt(&names.cluster).await.map_err(Error::reading(format!("Kafka {cluster}")))?;
    let Some(kafka) = found.filter(|kafka| context.settings.selects(kafka)) else {
        shell.forget(&cluster);
        return Ok(None);
    };
    if kafka.metadata.deletion_timestamp.is_some() {
        // Everything goes with its owner, and generated rebalances are released below.
        return Ok(None);
    }
    if let Some(wrong) = model::of_name(&names) {
        let (status, news) = decide::unnameable(&kafka, wrong, context.clock.now());
        record(&kafkas, kafka.clone(), status).await?;
        tell(context, &kafka, &news).await;
        return Ok(None);
    }
    if decide::is_paused(&kafka) {
        if is_terminating(context, &names.namespace).await? {
            return Ok(None);
        }
        if let Some(why) = another::look(context, &names.namespace, &names.cluster).await? {
            return leave_alone(&shell, &kafka, &why).await;
        }
        say_that_it_rests(context, &kafkas, kafka).await?;
        return Ok(Some(context.settings.reconciliation_interval));
    }
    let kept = shell.kept(&cluster);
    let kafka = Arc::new(kafka);
    let (terminating, looked) =
        futures::join!(is_terminating(context, &names.namespace), look(&shell, Arc::clone(&kafka), &kept));
    if terminating? {
        // The Kafka will be gone, too.
        return Ok(None);
    }
    let (seen, decision) = match looked {
        Ok(seen) => seen,
        Err(error) => {
            if error.is_to_be_told(kept.failures) {
                say_that_it_is_not_seen(context, &kafkas, &kafka, &error).await;
            }
            return Err(error);
        }
    };
    if let Some(why) = &decision.left_alone {
        return leave_alone(&shell, &seen.kafka, why).await;
    }
    shell.keep(&cluster, |kept| {
        kept.left_alone = None;
        kept.empty_since = decision.found_empty.clone();
        kept.missing_since = decision.found_missing.clone();
        kept.polled = seen.engine.violated.clone();
        kept.quiet_since = decision.found_quiet;
    });
    let violations = seen.live.data(&map_name(&names.cluster));
    context.figures.told_of(&cluster, &violations.as_ref().map(Violations::read).unwrap_or_default());
    let unacted = kept.unacted.clone();
    let hands = Hands { context, memory: &shell.memory, seen: &seen, names, failures: kept.failures, unacted };
    match hands.carry_out(&decision).await {
        // Now that it is known, the rest is decided without it.
        Err(Error::Refused(refused)) => {
            shell.keep(&cluster, |kept| kept.remember_refused(refused, seen.now));
            Ok(Some(DEBOUNCE))
        }
        Err(error) => {
            if let Error::Act(act) = &error {
                shell.keep(&cluster, |of| of.unacted = act.is_to_be_told(kept.failures).then(|| told(act)));
            }
            Err(error)
        }
        Ok(()) => {
            shell.keep(&cluster, |kept| {
                kept.failures = 0;
                kept.unacted = None;
                kept.struck_off = decision.struck_off.clone();
            });
            if decision.is_at_rest
                && let Some(resting) = Resting::of(&seen)
            {
                shell.ears.rests.settle(&cluster, resting);
                context.kafkas.forget(&cluster);
            }
            Ok(Some(back(context, &seen, &decision)))
        }
    }
}

/// Looks, and decides; a second time and closer, where the first look did not suffice.
async fn look(shell: &Shell, kafka: Arc<Kafka>, kept: &Kept) -> Result<(Seen, Decision), Error> {
    let Shell { context, readers, .. } = shell;
    let given = Given {
        settings: &context.settings.clusters,
        operation_timeout: context.settings.operation_timeout,
        random: context.settings.random,
    };
    let remembering = |seen: Seen| {
        let refused = kept.refused(seen.now);
        let (empty_since, missing_since) = (kept.empty_since.clone(), kept.missing_since.clone());
        let (struck_off, quiet_since) = (kept.struck_off.clone(), kept.quiet_since);
        Seen { empty_since, missing_since, quiet_since, struck_off, refused, ..seen }
    };
    let seen = remembering(observe::observe(context, readers, &kafka, kept.polled.as_ref(), false).await?);
    let decision = decide::decide(&seen, given);
    if !decision.look_closer {
        return Ok((seen, decision));
    }
    let polled = seen.engine.violated;
    let seen = remembering(observe::observe(context, readers, &kafka, polled.as_ref(), true).await?);
    let decision = decide::decide(&seen, given);
    Ok((seen, decision))
}

/// When to look again even if nobody calls.
fn back(context: &Context, seen: &Seen, decision: &Decision) -> Duration {
    let wished = decision.look_again.map(|moment| {
        Duration::try_from(moment.duration_since(seen.now)).unwrap_or_default().max(Duration::from_millis(100))
    });
    let usual = context.settings.reconciliation_interval;
    wished.map_or(usual, |wished| wished.min(usual))
}

/// Another operator runs it. That is said once, in an Event: its status, too, is the other one's.
async fn leave_alone(shell: &Shell, kafka: &Kafka, why: &Happening) -> Result<Option<Duration>, Error> {
    let names = Names::of(kafka);
    let cluster = ClusterRef::new(&names.namespace, &names.cluster);
    if shell.kept(&cluster).left_alone.as_ref() != Some(&why.note) {
        tracing::warn!(%cluster, "left alone: {}", why.note);
        shell.context.tell(kafka, why).await;
    }
    shell.forget(&cluster);
    shell.keep(&cluster, |kept| kept.left_alone = Some(why.note.clone()));
    Ok(Some(shell.context.settings.reconciliation_interval))
}

/// Says why nothing is done: whoever has forgotten a right would otherwise find it in the log alone. That this cannot be written
/// either is no news.
async fn say_that_it_is_not_seen(context: &Context, kafkas: &Api<Kafka>, kafka: &Kafka, error: &Error) {
    let (status, news) = decide::unseen(kafka, &told(error), context.clock.now());
    if record(kafkas, kafka.clone(), status).await.is_ok() {
        tell(context, kafka, &news).await;
    }
}

async fn tell(context: &Context, kafka: &Kafka, news: &[Happening]) {
    for event in news {
        context.tell(kafka, event).await;
    }
}

async fn say_that_it_rests(context: &Context, kafkas: &Api<Kafka>, kafka: Kafka) -> Result<(), Error> {
    let before = kafka.status.clone().unwrap_or_default();
    let conditions = conditions::settle([Condition::state(PAUSED)], &before.conditions, context.clock.now());
    let status = KafkaStatus { conditions, observed_generation: kafka.metadata.generation, ..before };
    record(kafkas, kafka, status).await
}

/// Writes a status if it says something new.
async fn record(kafkas: &Api<Kafka>, mut kafka: Kafka, status: KafkaStatus) -> Result<(), Error> {
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
    let pause = shell.keep(&cluster, |kept| {
        kept.failures += 1;
        error.pause(kept.failures - 1)
    });
    tracing::warn!(error = told(error), %cluster, ?pause, "a Kafka could not be reconciled");
    Action::requeue(pause)
}

/// Generated rebalances whose Kafka is gone: nobody else takes our finalizer off them. Whatever their labels say: a user may
/// have taken them off.
async fn release_orphans(context: Context, namespace: Option<String>) {
    let namespace = namespace.as_deref();
    let rebalances = context.api::<PartialObjectMeta<KafkaRebalance>>(namespace);
    let is_held = |it: &PartialObjectMeta<KafkaRebalance>| held_for(&it.metadata).is_some();
    let all = watcher(rebalances, watcher::Config::default());
    let controller = kept::controller_of(all, is_held, kept::name_and_finalizers);
    let rebalances = controller.store();
    let kafkas = context.api::<PartialObjectMeta<Kafka>>(namespace);
    let going = |kafka: &PartialObjectMeta<Kafka>| kafka.metadata.deletion_timestamp.is_some();
    controller
        .watches_stream(kept::changes(watcher(kafkas, watcher::Config::default()), going), move |kafka| {
            let waiting = rebalances.state().into_iter().filter(|it| {
                it.metadata.namespace == kafka.metadata.namespace
                    && held_for(&it.metadata) == kafka.metadata.name.as_deref()
            });
            waiting.map(|it| ObjectRef::from_obj(it.as_ref())).collect::<Vec<_>>()
        })
        .run(
            |rebalance, context| async move { release_orphan(&rebalance, &context).await },
            |_, error, _| Action::requeue(error.pause(1)),
            Arc::new(context),
        )
        .for_each(|_| async {})
        .await;
}

async fn release_orphan(rebalance: &PartialObjectMeta<KafkaRebalance>, context: &Context) -> Result<Action, Error> {
    let (Some(cluster), Some(namespace)) = (held_for(&rebalance.metadata), rebalance.namespace()) else {
        return Ok(Action::await_change());
    };
    let kafkas = Api::<Kafka>::namespaced(context.client.clone(), &namespace);
    let there = kafkas.get_opt(cluster).await.map_err(Error::reading(format!("Kafka {cluster}")))?;
    // Going is as good as gone.
    if there.is_none_or(|kafka| kafka.metadata.deletion_timestamp.is_some()) {
        let uid = rebalance.uid().unwrap_or_default();
        release(&Api::namespaced(context.client.clone(), &namespace), &rebalance.name_any(), &uid).await?;
    }
    Ok(Action::await_change())
}
