//! The shell of pod sets: looks, makes and deletes pods, and counts them.

use std::{sync::Arc, time::Duration};

use evenkeel_api::{Kafka, StrimziPodSet, StrimziPodSetStatus, labels};
use futures::{StreamExt, future::join_all};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Resource, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions},
    core::PartialObjectMeta,
    runtime::{
        controller::{self, Action},
        reflector::{ObjectRef, Store},
        watcher,
    },
};
use serde_json::json;
use tokio::time::Instant;

use super::decide::{self, Adoption, Decision, Observation};
use crate::{
    alarms::Alarms,
    another,
    error::{Error, told},
    figures::Reconciled,
    kept,
    namespaces::is_terminating,
    seams::Context,
};

/// A stuck watch must not mean that pods never come back.
const SAFETY_NET: Duration = Duration::from_secs(300);
const AT_ONCE: u16 = 16;
/// What takes longer does not come to an end at all.
const LONGEST: Duration = Duration::from_secs(60);

/// What is kept of sets: their pods are most of them, and are read anew whenever it matters.
type Known = PartialObjectMeta<StrimziPodSet>;

/// What the controller has at hand.
struct Shell {
    context: Context,
    alarms: Alarms,
}

/// Looks after the pod sets of the operator's namespaces, until dropped.
pub async fn run(context: Context) {
    join_all(context.scopes().into_iter().map(|scope| look_after(context.clone(), scope))).await;
}

async fn look_after(context: Context, namespace: Option<String>) {
    let namespace = namespace.as_deref();
    let labelled = watcher::Config::default().labels(labels::KIND);
    let controller = kept::controller(watcher(context.api::<Known>(namespace), labelled.clone()), |_| {});
    let sets = controller.store();
    context.figures.show_pod_sets(sets.clone());
    // By its labels a Kafka is ours or not; all else of it matters to nobody here.
    let kafkas = context.api::<PartialObjectMeta<Kafka>>(namespace);
    let kafkas = watcher(kafkas, watcher::Config::default());
    let kafkas = kept::changes(kafkas, |kafka| kafka.metadata.labels.clone());
    let shell = Arc::new(Shell { context: context.clone(), alarms: Alarms::default() });
    controller
        .with_config(controller::Config::default().concurrency(AT_ONCE))
        .watches(context.api::<PartialObjectMeta<Pod>>(namespace), labelled, |pod| set_of(&pod))
        .watches_stream(kafkas, move |kafka| sets_of(&sets, &kafka))
        .run(counted, pause, Arc::clone(&shell))
        .for_each(|ended| {
            match ended {
                Ok(_) => {}
                Err(controller::Error::ObjectNotFound(gone)) => {
                    shell.alarms.forget(gone.namespace.as_deref(), &gone.name);
                }
                Err(error) => tracing::debug!(error = told(&error), "a reconciliation of a StrimziPodSet failed"),
            }
            std::future::ready(())
        })
        .await;
}

/// The set that a pod belongs to: the owner, or the one that its label names.
fn set_of(pod: &PartialObjectMeta<Pod>) -> Option<ObjectRef<Known>> {
    let namespace = pod.metadata.namespace.as_deref()?;
    let owners = pod.metadata.owner_references.iter().flatten();
    let owner = owners.into_iter().find(|owner| owner.kind == StrimziPodSet::kind(&())).map(|owner| &owner.name);
    let named = || pod.metadata.labels.as_ref()?.get(labels::CONTROLLER_NAME);
    Some(ObjectRef::new(owner.or_else(named)?).within(namespace))
}

/// The sets of a Kafka, which matter only while it is there.
fn sets_of(sets: &Store<Known>, kafka: &PartialObjectMeta<Kafka>) -> Vec<ObjectRef<Known>> {
    let belongs = |set: &Arc<Known>| {
        set.metadata.namespace == kafka.metadata.namespace
            && decide::concerns(&set.metadata).is_some_and(|name| Some(name) == kafka.metadata.name.as_deref())
    };
    sets.state().iter().filter(|set| belongs(set)).map(|set| ObjectRef::from_obj(set.as_ref())).collect()
}

fn pause(_: Arc<Known>, error: &Error, _: Arc<Shell>) -> Action {
    tracing::warn!(error = told(error), "a StrimziPodSet could not be reconciled");
    Action::requeue(error.pause(2))
}

async fn counted(known: Arc<Known>, shell: Arc<Shell>) -> Result<Action, Error> {
    let began = Instant::now();
    let periodical = shell.alarms.has_rung(&known.metadata);
    let ended = in_time(&known, &shell.context).await;
    shell.alarms.set(&known.metadata, ended.as_ref().ok().copied().flatten());
    let what = Reconciled { periodical, succeeded: ended.is_ok(), took: began.elapsed() };
    shell.context.figures.reconciled(known.as_ref(), what);
    ended.map(|pause| pause.map_or_else(Action::await_change, Action::requeue))
}

/// A call that nobody answers must not keep a set waiting for good.
async fn in_time(known: &Known, context: &Context) -> Result<Option<Duration>, Error> {
    tokio::time::timeout(LONGEST, reconcile(known, context)).await.unwrap_or(Err(Error::Late(LONGEST)))
}

/// When to look again even if nobody calls.
async fn reconcile(known: &Known, context: &Context) -> Result<Option<Duration>, Error> {
    let (namespace, name) = (known.namespace().unwrap_or_default(), known.name_any());
    let sets = Api::<StrimziPodSet>::namespaced(context.client.clone(), &namespace);
    // Pods are deleted by this list: what a watch has told of it may be old.
    let found = sets.get_opt(&name).await.map_err(Error::reading(format!("StrimziPodSet {name}")))?;
    let Some(set) = found.filter(|set| set.metadata.uid == known.metadata.uid) else {
        return Ok(None);
    };
    let Some(cluster) = decide::concerns(&set.metadata) else { return Ok(None) };
    if another::made(&set.metadata) {
        // Its pods are the other operator's work, and so is its status.
        return Ok(Some(SAFETY_NET));
    }
    let kafkas = Api::<Kafka>::namespaced(context.client.clone(), &namespace);
    let hands = Hands { pods: Api::namespaced(context.client.clone(), &namespace), sets };
    // Side by side: somebody may wait for a pod.
    let (parent, decided, terminating) = futures::join!(
        kafkas.get_opt(cluster),
        hands.look_and_decide(&set, context),
        is_terminating(context, &namespace)
    );
    let parent = parent.map_err(Error::reading(format!("Kafka {cluster}")))?;
    if !parent.is_some_and(|kafka| context.settings.selects(&kafka)) {
        return Ok(Some(SAFETY_NET));
    }
    let (decided, terminating) = (decided?, terminating?);
    let outcome = match decided {
        // Pods are the first to go.
        Ok(decision) if !decision.create.is_empty() && terminating => return Ok(None),
        Ok(decision) => match hands.carry_out(&decision).await {
            Ok(()) => Ok(decision.status),
            Err(error) => Err(error),
        },
        Err(unusable) => {
            hands.record(&set, &decide::failed(&set, &unusable.to_string(), context.clock.now())).await?;
            return Ok(None);
        }
    };
    match outcome {
        Ok(status) => {
            hands.record(&set, &status).await?;
            Ok(Some(SAFETY_NET))
        }
        Err(error) => {
            hands.record(&set, &decide::failed(&set, &told(&error), context.clock.now())).await?;
            Err(error)
        }
    }
}

struct Hands {
    pods: Api<Pod>,
    sets: Api<StrimziPodSet>,
}

impl Hands {
    /// Asks the API server itself: what a watch has told may be old, and would have pods made twice.
    async fn look_and_decide(
        &self,
        set: &StrimziPodSet,
        context: &Context,
    ) -> Result<Result<Decision, decide::Unusable>, Error> {
        let selector = match decide::selector(set) {
            Ok(selector) => selector,
            Err(unusable) => return Ok(Err(unusable)),
        };
        let pods = self.pods.list(&ListParams::default().labels(&selector)).await.map_err(Error::reading("pods"))?;
        Ok(decide::decide(Observation { set, pods: &pods.items, now: context.clock.now() }))
    }

    /// Does all of it, and tells of the first failure in the end: one pod that cannot be made holds up nobody else. Who goes
    /// goes first: where there is a quota, that makes room.
    async fn carry_out(&self, decision: &Decision) -> Result<(), Error> {
        let mut outcome = Ok(());
        for (pod, uid) in &decision.delete {
            outcome = outcome.and(self.delete(pod, uid).await);
        }
        for adoption in &decision.adopt {
            outcome = outcome.and(self.adopt(adoption).await);
        }
        for pod in &decision.create {
            outcome = outcome.and(self.create(pod).await);
        }
        outcome
    }

    async fn delete(&self, pod: &str, uid: &str) -> Result<(), Error> {
        let exactly = Preconditions { uid: Some(uid.to_owned()), resource_version: None };
        match self.pods.delete(pod, &DeleteParams::background().preconditions(exactly)).await {
            Err(kube::Error::Api(status)) if status.is_not_found() || status.is_conflict() => Ok(()),
            other => other.map(drop).map_err(Error::writing(format!("the end of pod {pod}"))),
        }
    }

    async fn adopt(&self, Adoption { pod, version, owners }: &Adoption) -> Result<(), Error> {
        let patch = json!({"metadata": {"resourceVersion": version, "ownerReferences": owners}});
        let patched = self.pods.patch_metadata(pod, &PatchParams::default(), &Patch::Merge(patch)).await;
        patched.map(drop).map_err(Error::writing(format!("the owner of pod {pod}")))
    }

    async fn create(&self, pod: &Pod) -> Result<(), Error> {
        match self.pods.create(&PostParams::default(), pod).await {
            Err(kube::Error::Api(status)) if status.is_already_exists() || status.is_conflict() => Ok(()),
            other => other.map(drop).map_err(Error::writing(format!("pod {}", pod.name_any()))),
        }
    }

    /// Writes the status if it says something new. A set that is gone or has changed meanwhile is seen again anyway.
    async fn record(&self, set: &StrimziPodSet, status: &StrimziPodSetStatus) -> Result<(), Error> {
        if set.status.as_ref() == Some(status) {
            return Ok(());
        }
        let name = set.metadata.name.as_deref().unwrap_or_default();
        let mut written = set.clone();
        written.status = Some(status.clone());
        written.metadata.managed_fields = None;
        match self.sets.replace_status(name, &PostParams::default(), &written).await {
            Err(kube::Error::Api(refused)) if refused.is_conflict() || refused.is_not_found() => Ok(()),
            other => other.map(drop).map_err(Error::writing(format!("the status of StrimziPodSet {name}"))),
        }
    }
}
