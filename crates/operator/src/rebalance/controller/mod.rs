//! The shell around the machine: it looks, carries out what was decided, asks the engine, and comes back in time. It
//! decides nothing.
//!
//! | file | what |
//! |---|---|
//! | `observe` | from the API server to an observation, and to a way to the engine |
//! | `round` | one reconciliation |
//! | `carry` | the writes of a decision |
//! | `ask` | the calls of a decision |
//!
//! It may be dropped at any moment: whatever was begun is found again by the next one.

mod ask;
mod carry;
mod observe;
mod round;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use evenkeel_api::{Kafka, KafkaRebalance, labels};
use futures::StreamExt;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::core::PartialObjectMeta;
use kube::runtime::controller::{self, Action};
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::watcher;
use tokio::time::Instant;

use crate::error::{Error, told};
use crate::figures::Reconciled;
use crate::kafka::names::Names;
use crate::kept;
use crate::seams::Context;
use round::{Back, Left};

/// How many resources are looked at side by side: enough that a slow engine holds up nobody else's.
const AT_ONCE: u16 = 64;
/// Before something that failed is tried again, at first and at most.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// What takes longer does not come to an end at all.
const LONGEST: Duration = Duration::from_secs(180);

/// What the controller has at hand.
struct Shell {
    context: Context,
    rebalances: Store<KafkaRebalance>,
    memory: Mutex<BTreeMap<(String, String), Memory>>,
}

/// What is remembered of a resource. All of it may be lost.
#[derive(Clone, Debug, Default)]
struct Memory {
    left: Option<Left>,
    failures: u32,
}

/// Looks after all KafkaRebalances of the operator's namespaces, until dropped.
pub async fn run(context: Context) {
    let all = context.scopes().into_iter().map(|scope| look_after(context.clone(), scope));
    futures::future::join_all(all).await;
}

async fn look_after(context: Context, namespace: Option<String>) {
    let namespace = namespace.as_deref();
    let watched = watcher::Config::default();
    let of_clusters = watcher::Config::default().labels(labels::CLUSTER);
    let all = kept::readable::<KafkaRebalance>(context.api(namespace), watched.clone());
    let controller = kept::controller(all, kept::little_of_a_rebalance);
    let rebalances = controller.store();
    context.figures.show_rebalances(rebalances.clone());
    let kafkas = kept::changes(kept::readable::<Kafka>(context.api(namespace), watched), observe::used_of);
    let (by_kafka, by_secret) = (rebalances.clone(), rebalances.clone());
    let controller = controller
        .with_config(controller::Config::default().concurrency(AT_ONCE))
        // Of these only the fact matters that something has happened to them.
        .owns(context.api::<PartialObjectMeta<ConfigMap>>(namespace), of_clusters.clone())
        .watches_stream(kafkas, move |kafka| of_cluster(&by_kafka, kafka.metadata.namespace, kafka.metadata.name))
        .watches(context.api::<PartialObjectMeta<Secret>>(namespace), of_clusters, move |secret| {
            let cluster = secret.metadata.labels.and_then(|mut labels| labels.remove(labels::CLUSTER));
            let is_ours = cluster.as_deref().zip(secret.metadata.name.as_deref()).is_some_and(|(cluster, name)| {
                let names = Names { cluster: cluster.to_owned(), namespace: String::new() };
                name == names.engine_api() || name == names.cluster_ca_cert()
            });
            of_cluster(&by_secret, secret.metadata.namespace, cluster.filter(|_| is_ours))
        });
    let shell = Arc::new(Shell { context, rebalances, memory: Mutex::default() });
    controller
        .run(reconcile, pause, Arc::clone(&shell))
        .for_each(|ended| {
            match ended {
                Ok(_) => {}
                // Whoever is remembered is to be looked at again, so nobody who is gone is remembered for long.
                Err(controller::Error::ObjectNotFound(gone)) => {
                    shell.forget(&(gone.namespace.unwrap_or_default(), gone.name));
                }
                // As long as they cannot be watched nobody is looked after.
                Err(error @ controller::Error::QueueError(_)) => {
                    tracing::warn!(error = told(&error), "KafkaRebalances, or what is around them, cannot be watched");
                }
                Err(error) => tracing::debug!(error = told(&error), "a reconciliation of a KafkaRebalance failed"),
            }
            std::future::ready(())
        })
        .await;
}

/// The KafkaRebalances of a cluster.
fn of_cluster(
    rebalances: &Store<KafkaRebalance>,
    namespace: Option<String>,
    cluster: Option<String>,
) -> Vec<ObjectRef<KafkaRebalance>> {
    let Some(cluster) = cluster else { return Vec::new() };
    let belongs = |it: &Arc<KafkaRebalance>| {
        let label = it.metadata.labels.as_ref().and_then(|labels| labels.get(labels::CLUSTER));
        it.metadata.namespace == namespace && label == Some(&cluster)
    };
    rebalances.state().iter().filter(|it| belongs(it)).map(|it| ObjectRef::from_obj(it.as_ref())).collect()
}

async fn reconcile(resource: Arc<KafkaRebalance>, shell: Arc<Shell>) -> Result<Action, Error> {
    let began = Instant::now();
    let key = key(&resource);
    let before = shell.recall(&key).left;
    let periodical = before.as_ref().is_some_and(Left::is_due);
    // A call that nobody answers must not keep a resource waiting for good.
    let ended = tokio::time::timeout(LONGEST, round::reconcile(&shell, &key.0, &key.1, before.as_ref())).await;
    let ended = ended.unwrap_or(Err(Error::Late(LONGEST)));
    let succeeded = ended.is_ok();
    shell.context.figures.reconciled_rebalance(&resource, Reconciled { periodical, succeeded, took: began.elapsed() });
    let (back, left) = ended?;
    match back {
        Back::After(pause) => {
            shell.remember(key, Memory { left, failures: 0 });
            Ok(Action::requeue(pause))
        }
        Back::Never => {
            shell.forget(&key);
            Ok(Action::await_change())
        }
    }
}

/// When to try again what failed: later each time.
fn pause(resource: Arc<KafkaRebalance>, error: &Error, shell: Arc<Shell>) -> Action {
    let key = key(&resource);
    let failures = shell.recall(&key).failures;
    shell.remember(key.clone(), Memory { left: None, failures: failures.saturating_add(1) });
    let pause = FIRST_PAUSE.saturating_mul(1 << failures.min(10)).min(LONGEST_PAUSE);
    tracing::warn!(
        error = told(error),
        namespace = key.0,
        name = key.1,
        ?pause,
        "a KafkaRebalance could not be reconciled"
    );
    Action::requeue(pause)
}

fn key(resource: &KafkaRebalance) -> (String, String) {
    let metadata = &resource.metadata;
    (metadata.namespace.clone().unwrap_or_default(), metadata.name.clone().unwrap_or_default())
}

impl Shell {
    fn recall(&self, key: &(String, String)) -> Memory {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned().unwrap_or_default()
    }

    fn remember(&self, key: (String, String), memory: Memory) {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner).insert(key, memory);
    }

    fn forget(&self, key: &(String, String)) {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}
