//! One pod, from the moment that the node takes it until nothing is left of it.
//!
//! The worker hears of the pod and of what it needs ([`Inputs`]), and of its containers' runs; has [`decide`] say what
//! to do; does it; and writes the status when it is not what it should be. Nothing it waits for keeps it from stopping
//! its containers in time.

use std::collections::BTreeMap;
use std::future::pending;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::{Pod, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::decide::{Act, Ending, Policy, Seen, State, decide};
use super::layout;
use super::logs::Log;
use super::materials::{Found, Left, Material, resolve};
use super::program::{Launch, LaunchError, Stop};
use super::status::{Standing, status};
use super::supervise::{Happened, supervise};
use super::tree::Tree;
use super::writing::Desk;
use super::{Shared, rack};
use crate::patience::Doubling;
use crate::pods;
use crate::watched::version;

/// What a worker is told.
#[derive(Debug, Clone)]
pub(super) struct Inputs {
    /// The pod as the API has it; nothing if it is gone.
    pub(super) pod: Option<Arc<Pod>>,
    /// What it needs.
    pub(super) found: Found,
}

/// A run of a container.
struct Run {
    stop: mpsc::UnboundedSender<Stop>,
    files: watch::Sender<Tree>,
    root: Option<PathBuf>,
    log: Log,
    ports: BTreeMap<u16, u16>,
}

/// The containers that were resolved, or what is missing.
type Resolved = Result<BTreeMap<String, Material>, String>;

pub(super) struct Worker {
    shared: Arc<Shared>,
    inputs: watch::Receiver<Inputs>,
    /// When the node stops, and how long pods may take then.
    stopping: watch::Receiver<Option<Duration>>,
    /// The newest that is known of it.
    pod: Arc<Pod>,
    gone: bool,
    found: Found,
    started: Time,
    containers: BTreeMap<String, State>,
    runs: BTreeMap<String, Run>,
    tasks: JoinSet<()>,
    tell: mpsc::Sender<(String, Happened)>,
    hear: mpsc::Receiver<(String, Happened)>,
    /// What init containers have left in volumes.
    left: Left,
    ending: Option<Ending>,
    /// The status that was written last, and the version that came of it: not written again while that is the newest,
    /// even if the server has made something else of it.
    written: Option<(PodStatus, u64)>,
    writing: Option<(PodStatus, BoxFuture<'static, kube::Result<Option<Pod>>>)>,
    waits: Doubling,
    /// When to write again after a write that failed.
    write_at: Option<Instant>,
}

impl Worker {
    pub(super) fn new(
        shared: Arc<Shared>,
        pod: Arc<Pod>,
        inputs: watch::Receiver<Inputs>,
        stopping: watch::Receiver<Option<Duration>>,
    ) -> Self {
        let now = Instant::now();
        let found = inputs.borrow().found.clone();
        let (tell, hear) = mpsc::channel(64);
        let started = shared.clock.stamp();
        let containers = initial(&pod, now);
        Self {
            shared,
            inputs,
            stopping,
            pod,
            gone: false,
            found,
            started,
            containers,
            runs: BTreeMap::new(),
            tasks: JoinSet::new(),
            tell,
            hear,
            left: Left::new(),
            ending: None,
            written: None,
            writing: None,
            waits: Doubling::default(),
            write_at: None,
        }
    }

    /// To the end of the pod.
    pub(super) async fn run(mut self) {
        loop {
            self.take_in();
            let resolved = resolve(&self.pod, &self.found, &self.left);
            if let Ok(materials) = &resolved {
                self.renew_files(materials);
            }
            let seen = Seen {
                pod: &self.pod,
                containers: &self.containers,
                // What has ended for good, in an earlier life of the node perhaps, is not begun again.
                resolved: resolved.is_ok() && !pods::has_ended(&self.pod),
                ending: self.ending,
                now: Instant::now(),
            };
            let (acts, wake) = decide(&seen);
            if acts.contains(&Act::Remove) || acts.contains(&Act::Done) {
                return self.finish().await;
            }
            let none = acts.is_empty();
            acts.into_iter().for_each(|act| self.perform(act, &resolved));
            if !none {
                continue;
            }
            self.start_writing(&resolved);
            self.wait(wake).await;
        }
    }

    /// Takes in what is new about the pod.
    fn take_in(&mut self) {
        let now = Instant::now();
        let inputs = self.inputs.borrow_and_update().clone();
        self.found = inputs.found;
        match inputs.pod {
            Some(pod) if version(pod.as_ref()) >= version(self.pod.as_ref()) => self.pod = pod,
            Some(_) => (),
            None => self.gone = true,
        }
        let deleted = self.pod.metadata.deletion_timestamp.is_some();
        let grace = |seconds: Option<i64>| Duration::from_secs(u64::try_from(seconds.unwrap_or(30)).unwrap_or(0));
        let own = self.pod.spec.as_ref().and_then(|spec| spec.termination_grace_period_seconds);
        let stopping = *self.stopping.borrow_and_update();
        let allowed = [
            self.gone.then_some(Duration::ZERO),
            deleted.then(|| grace(self.pod.metadata.deletion_grace_period_seconds.or(own))),
            stopping.map(|limit| limit.min(grace(own))),
        ];
        let remove = deleted && !self.gone;
        for allowed in allowed.into_iter().flatten() {
            // From when the first reason is heard of: a later one can only shorten it.
            let deadline = self.ending.map_or(now + allowed, |ending| ending.deadline.min(now + allowed));
            self.ending = Some(Ending { deadline, remove });
        }
    }

    /// A changed ConfigMap or Secret reaches containers that run.
    fn renew_files(&mut self, materials: &BTreeMap<String, Material>) {
        for (name, run) in &self.runs {
            let Some(material) = materials.get(name) else { continue };
            let old = run.files.borrow().clone();
            if old == material.files {
                continue;
            }
            if let Some(Err(error)) = run.root.as_ref().map(|root| layout::replace(root, &old, &material.files)) {
                tracing::warn!(pod = self.pod.name_any(), container = name, %error, "could not renew a container's files");
            }
            run.files.send_replace(material.files.clone());
        }
    }

    fn perform(&mut self, act: Act, resolved: &Resolved) {
        let now = Instant::now();
        match act {
            Act::Launch(name) => {
                let Some(material) = resolved.as_ref().ok().and_then(|materials| materials.get(&name)) else { return };
                let launched = self.launch(&name, material);
                let Some(state) = self.containers.get_mut(&name) else { return };
                match launched {
                    Ok(()) => state.starts(now),
                    Err(error) => state.failed(&error, now),
                }
            }
            Act::Deed(name) => self.do_deed(&name, resolved),
            Act::Stop(name, how) => {
                if let (Some(state), Some(run)) = (self.containers.get_mut(&name), self.runs.get(&name)) {
                    state.asked(how);
                    // A run that does not listen has just ended, which is heard next.
                    run.stop.send(how).ok();
                }
            }
            Act::Remove | Act::Done => (),
        }
    }

    fn launch(&mut self, name: &str, material: &Material) -> Result<(), LaunchError> {
        let uid = self.pod.uid().unwrap_or_default();
        let laid_out = self.shared.layout.prepare(&uid, name, &material.files, &material.volumes);
        let (root, volumes) = laid_out.map_err(|error| LaunchError::Start(error.into()))?;
        let log = Log::new(self.shared.clock.clone());
        let (namespace, pod) = (self.pod.namespace().unwrap_or_default(), self.pod.name_any());
        self.shared.logs.begin(&namespace, &pod, name, log.clone());
        let (files, updates) = watch::channel(material.files.clone());
        let spec = self.pod.spec.as_ref();
        let containers = spec.iter().flat_map(|spec| spec.init_containers.iter().flatten().chain(&spec.containers));
        let mut images = containers.filter(|container| container.name == name);
        let restarts = self.containers.get(name).map_or(0, |state| state.restarts_then());
        let what = Launch {
            pod: self.pod.clone(),
            container: name.to_owned(),
            image: images.next().and_then(|container| container.image.clone()).unwrap_or_default(),
            command: material.command.clone(),
            env: material.env.clone(),
            files: material.files.clone(),
            updates,
            root: root.clone(),
            volumes,
            node_labels: self.found.node_labels.clone(),
            restarts,
            log: log.clone(),
            addresses: self.shared.addresses.clone(),
        };
        let (stop, stopped) = mpsc::unbounded_channel();
        let programs = self.shared.programs.clone();
        let launch = async move { programs.launch(what).await };
        self.tasks.spawn(supervise(name.to_owned(), launch, stopped, self.tell.clone()));
        self.runs.insert(name.to_owned(), Run { stop, files, root, log, ports: BTreeMap::new() });
        Ok(())
    }

    fn do_deed(&mut self, name: &str, resolved: &Resolved) {
        let spec = self.pod.spec.as_ref();
        let containers = spec.and_then(|spec| spec.init_containers.as_deref()).unwrap_or_default();
        let container = containers.iter().find(|container| container.name == name);
        let material = resolved.as_ref().ok().and_then(|materials| materials.get(name));
        let (Some(container), Some(material)) = (container, material) else { return };
        let done = rack::perform(container, &material.command, &self.found.node_labels);
        let Some(state) = self.containers.get_mut(name) else { return };
        match done {
            Ok(left) => {
                self.left.extend(left);
                state.done(self.shared.clock.stamp());
            }
            Err(why) => state.failed(&LaunchError::Configuration(why), Instant::now()),
        }
    }

    fn happened(&mut self, name: String, what: Happened) {
        let Some(state) = self.containers.get_mut(&name) else { return };
        let (now, at) = (Instant::now(), self.shared.clock.stamp());
        match what {
            Happened::Started(ports) => {
                state.runs(at);
                if let Some(run) = self.runs.get_mut(&name) {
                    run.ports = ports;
                }
            }
            Happened::Serves(serves) => return state.serves(serves),
            Happened::Failed(error) => {
                tracing::debug!(pod = self.pod.name_any(), container = name, %error, "a container did not start");
                if let Some(run) = self.runs.remove(&name) {
                    run.log.close();
                }
                state.failed(&error, now);
            }
            Happened::Ended(exit) => {
                if let Some(run) = self.runs.remove(&name) {
                    run.log.close();
                }
                let pod = &self.pod;
                let full = format!(
                    "{}_{}({})",
                    pod.name_any(),
                    pod.namespace().unwrap_or_default(),
                    pod.uid().unwrap_or_default()
                );
                let inits = pod.spec.iter().flat_map(|spec| spec.init_containers.iter().flatten());
                let init = inits.into_iter().any(|container| container.name == name);
                state.ended(exit, Policy::of(pod, init), &full, &name, at, now);
            }
        }
        self.publish_ports();
    }

    /// The real ports of all that runs.
    fn ports(&self) -> BTreeMap<u16, u16> {
        self.runs.values().flat_map(|run| &run.ports).map(|(port, real)| (*port, *real)).collect()
    }

    fn publish_ports(&self) {
        let namespace = self.pod.namespace().unwrap_or_default();
        let spec = self.pod.spec.as_ref();
        let hostname = spec.and_then(|spec| spec.hostname.clone()).unwrap_or_else(|| self.pod.name_any());
        let subdomain = spec.and_then(|spec| spec.subdomain.as_deref());
        self.shared.addresses.pod_runs(&namespace, &hostname, subdomain, self.ports());
    }

    fn status(&self, resolved: &Resolved) -> PodStatus {
        let missing = resolved.as_ref().err().map(String::as_str);
        let (pod, now) = (&self.pod, &self.shared.clock.stamp());
        status(&Standing { pod, containers: &self.containers, missing, started: &self.started, now })
    }

    /// Has the status and the ports written if they are not what they should be, unless a write is under way.
    fn start_writing(&mut self, resolved: &Resolved) {
        let waits = self.write_at.is_some_and(|at| at > Instant::now());
        if self.writing.is_some() || waits || self.gone || pods::has_ended(&self.pod) {
            return;
        }
        let status = self.status(resolved);
        let newest = version(self.pod.as_ref());
        let said = self.written.as_ref().is_some_and(|(written, came)| *written == status && *came == newest);
        let stale = self.pod.status.as_ref() != Some(&status) && !said;
        let desk = Desk::of(&self.shared.client, &self.pod);
        let ports = desk.ports_to_write(&self.pod, &self.ports());
        self.write_at = None;
        if !stale && ports.is_none() {
            return;
        }
        let writing = desk.write(ports, stale.then(|| status.clone())).boxed();
        self.writing = Some((status, writing));
    }

    fn wrote(&mut self, status: PodStatus, outcome: kube::Result<Option<Pod>>) {
        match outcome {
            Ok(Some(pod)) => {
                self.waits = Doubling::default();
                self.write_at = None;
                self.written = Some((status, version(&pod)));
                if version(&pod) >= version(self.pod.as_ref()) {
                    self.pod = Arc::new(pod);
                }
                return;
            }
            // It is gone, which is heard next.
            Ok(None) => {}
            Err(error) => {
                tracing::debug!(pod = self.pod.name_any(), %error, "could not write a pod's status; trying again");
            }
        }
        self.write_at = self.waits.next().map(|wait| Instant::now() + wait);
    }

    /// Until there is something new, or it is time.
    async fn wait(&mut self, wake: Option<Instant>) {
        let write_at = self.write_at.filter(|_| self.writing.is_none());
        let wake = wake.into_iter().chain(write_at).min();
        tokio::select! {
            Some((name, what)) = self.hear.recv() => {
                self.happened(name, what);
                // As many as there are, so that a status is written once for all of them.
                while let Ok((name, what)) = self.hear.try_recv() {
                    self.happened(name, what);
                }
            }
            Ok(()) = self.inputs.changed() => (),
            Ok(()) = self.stopping.changed() => (),
            Some(_) = self.tasks.join_next() => (),
            outcome = async { match &mut self.writing { Some((_, writing)) => writing.await, None => pending().await } } => {
                if let Some((status, _)) = self.writing.take() {
                    self.wrote(status, outcome);
                }
            }
            () = async { match wake { Some(at) => tokio::time::sleep_until(at).await, None => pending().await } } => (),
        }
    }

    /// Everything has ended: the API is told, and all traces are removed.
    async fn finish(mut self) {
        let namespace = self.pod.namespace().unwrap_or_default();
        let name = self.pod.name_any();
        if let Some((status, writing)) = self.writing.take()
            && let Ok(outcome) = tokio::time::timeout(Desk::LAST_WORD, writing).await
        {
            self.wrote(status, outcome);
        }
        let desk = Desk::of(&self.shared.client, &self.pod);
        if !self.gone && !pods::has_ended(&self.pod) {
            let ports = desk.ports_to_write(&self.pod, &BTreeMap::new());
            desk.last_word(ports, self.status(&Ok(BTreeMap::new()))).await;
        }
        let spec = self.pod.spec.as_ref();
        let hostname = spec.and_then(|spec| spec.hostname.clone()).unwrap_or_else(|| name.clone());
        self.shared.addresses.pod_ended(&namespace, &hostname);
        self.shared.logs.forget(&namespace, &name);
        if let Err(error) = self.shared.layout.forget(&self.pod.uid().unwrap_or_default()).await {
            tracing::warn!(pod = name, %error, "could not remove the files of a pod");
        }
        let remove = self.ending.is_some_and(|ending| ending.remove);
        if remove && self.stopping.borrow().is_none() {
            desk.remove(&mut self.inputs).await;
        } else if remove {
            // The node stops: one try, nobody waits for more.
            desk.remove_once().await.ok();
        }
        if remove || self.gone {
            self.shared.programs.forget(&self.pod);
        }
    }
}

/// All containers before their first run, with the restarts of an earlier life of the node.
fn initial(pod: &Pod, now: Instant) -> BTreeMap<String, State> {
    let status = pod.status.as_ref();
    let before = |name: &str| {
        let mains = status.iter().flat_map(|status| status.container_statuses.iter().flatten());
        let inits = status.iter().flat_map(|status| status.init_container_statuses.iter().flatten());
        let found = mains.chain(inits).find(|status| status.name == name);
        // One that has run and runs no more was restarted when it runs again.
        found.map_or(0, |status| {
            u32::try_from(status.restart_count).unwrap_or(0) + u32::from(status.container_id.is_some())
        })
    };
    let spec = pod.spec.as_ref();
    let containers = spec.iter().flat_map(|spec| spec.init_containers.iter().flatten().chain(&spec.containers));
    containers.map(|container| (container.name.clone(), State::new(before(&container.name), now))).collect()
}
