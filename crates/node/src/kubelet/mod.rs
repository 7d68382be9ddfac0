//! What a kubelet does, for pods that run as tasks or child processes on loopback.
//!
//! Every pod that was bound to one of our nodes has a worker, which lives until the pod is gone and its containers with
//! it. This file watches, hands each worker what concerns it, and ends them all when the node stops. Whether a
//! container is ready is what its program says: probes are not evaluated.

mod decide;
mod environment;
mod layout;
pub mod logs;
pub mod materials;
pub mod program;
mod rack;
mod status;
mod supervise;
pub mod tree;
mod volumes;
mod worker;
mod writing;

use std::collections::{BTreeMap, BTreeSet};
use std::future::pending;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Node, PersistentVolumeClaim, Pod, Secret};
use kube::{Client, ResourceExt};
use tokio::sync::watch;
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::sleep_until;

use crate::addresses::AddressTable;
use crate::clock::Clock;
use crate::nodes::Nodes;
use crate::patience::Troubles;
use crate::watched::{Key, Watchable, Watched, key};
use layout::Layout;
use logs::Logs;
use materials::{Account, Found, wanted};
use program::Programs;
use worker::{Inputs, Worker};

/// How the kubelet runs pods.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Its nodes.
    pub nodes: Nodes,
    /// What runs containers.
    pub programs: Arc<dyn Programs>,
    /// The wall clock.
    pub clock: Clock,
    /// Where names are found.
    pub addresses: AddressTable,
    /// Where logs are found.
    pub logs: Logs,
    /// Where files and data are laid out; nowhere under paused time.
    pub dir: Option<PathBuf>,
    /// What pods reach the API with.
    pub account: Option<Account>,
    /// How long pods may take to end when the node stops: this, or their own grace if that is shorter.
    pub stop_within: Duration,
}

/// What all workers share.
struct Shared {
    client: Client,
    programs: Arc<dyn Programs>,
    clock: Clock,
    addresses: AddressTable,
    logs: Logs,
    layout: Layout,
}

/// Runs pods until `shutdown` is done, and then ends them all.
pub async fn run(client: Client, settings: Settings, shutdown: impl Future<Output = ()>) -> io::Result<()> {
    let layout = Layout::below(settings.dir)?;
    let shared = Shared {
        client: client.clone(),
        programs: settings.programs,
        clock: settings.clock,
        addresses: settings.addresses,
        logs: settings.logs,
        layout,
    };
    let kubelet = Kubelet {
        shared: Arc::new(shared),
        nodes: settings.nodes,
        account: settings.account,
        pods: Watched::all(&client),
        config_maps: Watched::all(&client),
        secrets: Watched::all(&client),
        claims: Watched::all(&client),
        registered: Watched::all(&client),
        workers: BTreeMap::new(),
        at_work: JoinSet::new(),
        finished: BTreeSet::new(),
        stopping: watch::Sender::new(None),
        volumes: BTreeSet::new(),
        clearing: JoinSet::new(),
        troubles: Troubles::default(),
    };
    kubelet.run(shutdown, settings.stop_within).await;
    Ok(())
}

struct Kubelet {
    shared: Arc<Shared>,
    nodes: Nodes,
    account: Option<Account>,
    pods: Watched<Pod>,
    config_maps: Watched<ConfigMap>,
    secrets: Watched<Secret>,
    claims: Watched<PersistentVolumeClaim>,
    registered: Watched<Node>,
    workers: BTreeMap<Key, Assigned>,
    /// Each returns the uid of its pod.
    at_work: JoinSet<String>,
    /// Uids of pods that have ended, and that the watch has not told to be gone: they get no second worker.
    finished: BTreeSet<String>,
    stopping: watch::Sender<Option<Duration>>,
    /// Uids of claims that were seen and not yet discarded.
    volumes: BTreeSet<String>,
    /// Data of claims that is being removed.
    clearing: JoinSet<()>,
    /// Pods whose workers broke off.
    troubles: Troubles,
}

/// A pod that has a worker.
struct Assigned {
    uid: String,
    task: Id,
    inputs: watch::Sender<Inputs>,
    /// Uids of the claims it was given.
    claims: BTreeSet<String>,
}

impl Kubelet {
    async fn run(mut self, shutdown: impl Future<Output = ()>, stop_within: Duration) {
        tokio::pin!(shutdown);
        let mut again = None;
        loop {
            tokio::select! {
                () = &mut shutdown => break,
                () = self.pods.news() => (),
                () = self.config_maps.news() => (),
                () = self.secrets.news() => (),
                () = self.claims.news() => (),
                () = self.registered.news() => (),
                ended = next_ended(&mut self.at_work) => {
                    if let Err(broken) = &ended {
                        let of = self.workers.iter().find(|(_, worker)| worker.task == broken.id());
                        if let Some((of, _)) = of {
                            self.troubles.after("kubelet", of, Err::<(), _>(broken));
                        }
                    }
                    self.workers.retain(|_, worker| !worker.inputs.is_closed());
                    self.finished.extend(ended);
                }
                Some(_) = self.clearing.join_next() => (),
                () = async { match again { Some(at) => sleep_until(at).await, None => pending().await } } => (),
            }
            self.assign();
            again = self.troubles.next();
        }
        self.stopping.send_replace(Some(stop_within));
        // Workers end within the grace by themselves; the rest is for their last words.
        let end = tokio::time::timeout(stop_within + Duration::from_secs(15), async {
            while self.at_work.join_next().await.is_some() {}
            while self.clearing.join_next().await.is_some() {}
        });
        if end.await.is_err() {
            tracing::warn!("some pods did not end in time; they are dropped");
        }
    }

    /// Tells every worker what is new, and gives workers to pods that have none.
    fn assign(&mut self) {
        let complete = self.pods.is_complete()
            && self.config_maps.is_complete()
            && self.secrets.is_complete()
            && self.claims.is_complete()
            && self.registered.is_complete();
        if !complete {
            return;
        }
        let ours = |pod: &&Arc<Pod>| self.nodes.contains(node_of(pod));
        let pods: Vec<Arc<Pod>> = self.pods.iter().filter(ours).cloned().collect();
        let there: BTreeSet<String> = pods.iter().filter_map(|pod| pod.uid()).collect();
        self.finished.retain(|uid| there.contains(uid));
        let unfinished = |pod: &&Arc<Pod>| pod.uid().is_none_or(|uid| !self.finished.contains(&uid));
        let pods: Vec<Arc<Pod>> = pods.iter().filter(unfinished).cloned().collect();
        for pod in &pods {
            let found = self.found(pod);
            let claims = found.claims.values().filter_map(|claim| claim.uid());
            match self.workers.get_mut(&key(pod.as_ref())) {
                Some(worker) if worker.uid == pod.uid().unwrap_or_default() => {
                    worker.claims.extend(claims);
                    tell(&worker.inputs, Some(pod.clone()), found);
                }
                // The one before it of that name has not ended yet. Both would use the same names and volumes.
                Some(worker) => tell(&worker.inputs, None, found),
                None if self.troubles.hold(&key(pod.as_ref())) => (),
                None => {
                    let (uid, claims) = (pod.uid().unwrap_or_default(), claims.collect());
                    let (inputs, receive) = watch::channel(Inputs { pod: Some(pod.clone()), found });
                    let worker = Worker::new(self.shared.clone(), pod.clone(), receive, self.stopping.subscribe());
                    let ended = uid.clone();
                    let task = self.at_work.spawn(async move {
                        worker.run().await;
                        ended
                    });
                    self.workers.insert(key(pod.as_ref()), Assigned { uid, task: task.id(), inputs, claims });
                }
            }
        }
        for (at, worker) in &self.workers {
            if self.pods.get(&at.0, &at.1).is_none() {
                worker.inputs.send_if_modified(|inputs| inputs.pod.take().is_some());
            }
        }
        self.discard();
    }

    /// Data of claims that are gone goes too, once nobody uses it.
    fn discard(&mut self) {
        let there: BTreeSet<String> = self.claims.iter().filter_map(|claim| claim.uid()).collect();
        let used: BTreeSet<&String> = self.workers.values().flat_map(|worker| &worker.claims).collect();
        let gone = self.volumes.iter().filter(|uid| !there.contains(*uid) && !used.contains(uid));
        let gone: Vec<String> = gone.cloned().collect();
        for uid in gone {
            self.shared.programs.discard(&uid);
            self.volumes.remove(&uid);
            let layout = self.shared.layout.clone();
            self.clearing.spawn(async move {
                if let Err(error) = layout.discard(&uid).await {
                    tracing::warn!(volume = uid, %error, "could not remove the data of a claim");
                }
            });
        }
        self.volumes.extend(there);
    }

    fn found(&self, pod: &Pod) -> Found {
        let wanted = wanted(pod);
        let namespace = pod.namespace().unwrap_or_default();
        let node = self.registered.get("", node_of(pod));
        Found {
            config_maps: those(&self.config_maps, &namespace, wanted.config_maps),
            secrets: those(&self.secrets, &namespace, wanted.secrets),
            claims: those(&self.claims, &namespace, wanted.claims),
            node_labels: node.map(|node| node.labels().clone()).unwrap_or_default(),
            account: self.account.clone(),
        }
    }
}

fn those<K: Watchable>(all: &Watched<K>, namespace: &str, names: BTreeSet<String>) -> BTreeMap<String, Arc<K>> {
    names.into_iter().filter_map(|name| Some((name.clone(), all.get(namespace, &name)?.clone()))).collect()
}

fn node_of(pod: &Pod) -> &str {
    pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default()
}

/// Wakes the worker only if something is new to it.
fn tell(inputs: &watch::Sender<Inputs>, pod: Option<Arc<Pod>>, found: Found) {
    inputs.send_if_modified(|known| {
        let same_pod = match (&known.pod, &pod) {
            (Some(known), Some(pod)) => Arc::ptr_eq(known, pod),
            (known, pod) => known.is_none() && pod.is_none(),
        };
        let changed = !same_pod || !known.found.is_same(&found);
        *known = Inputs { pod, found };
        changed
    });
}

/// Until a worker has ended: the uid of its pod. One that panicked is an error; its pod gets another one after a while.
async fn next_ended(at_work: &mut JoinSet<String>) -> Result<String, JoinError> {
    match at_work.join_next().await {
        Some(ended) => ended.inspect_err(|error| tracing::error!(%error, "the worker of a pod broke off")),
        None => pending().await,
    }
}
