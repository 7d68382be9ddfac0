//! A cluster in memory: the embedded server, the node, and programs that do what their image says.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use evenkeel_apiserver::http::logs::{LogLine, LogOf, LogSource};
use evenkeel_apiserver::http::moment::Simulated;
use evenkeel_apiserver::http::{Options, Shared, router};
use evenkeel_node::addresses::AddressTable;
use evenkeel_node::clock::Clock;
use evenkeel_node::kubelet::Settings;
use evenkeel_node::kubelet::logs::{Line, Logs};
use evenkeel_node::kubelet::program::{Exit, Launch, LaunchError, Process, Programs, Stop};
use evenkeel_node::nodes::Nodes;
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream};
use futures::{FutureExt, StreamExt};
use http::{Method, Request, Response};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Patch, PatchParams, PostParams};
use kube::client::Body;
use kube::{Api, Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tower::{ServiceExt, service_fn};

/// Programs that do what their image says: words with `:` before their seconds, e.g. `slow:5`.
///
/// | image | what it does |
/// |---|---|
/// | `serve` | is ready at once, and ends when asked |
/// | `slow:n` | is ready after n seconds |
/// | `crash:n` | is ready, and fails after n seconds |
/// | `done:n` | ends well after n seconds |
/// | `linger:n` | takes n seconds to end when asked |
/// | `deaf` | does not end when asked |
/// | `broken` | does not start |
#[derive(Debug, Default)]
pub(crate) struct Script {
    /// All launches so far.
    pub(crate) launches: Mutex<Vec<Launch>>,
    /// What runs: pod and container, to how it was asked to stop.
    running: Mutex<BTreeMap<String, Option<Stop>>>,
    pub(crate) forgotten: Mutex<Vec<String>>,
    pub(crate) discarded: Mutex<Vec<String>>,
}

/// Takes a program out of those that run, however it ends.
struct Running(Arc<Script>, String);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.lock().unwrap().remove(&self.1);
    }
}

#[derive(Debug)]
pub(crate) struct Programmed(pub(crate) Arc<Script>);

impl Programs for Programmed {
    fn launch(&self, what: Launch) -> BoxFuture<'static, Result<Process, LaunchError>> {
        let script = self.0.clone();
        async move {
            let number = script.launches.lock().unwrap().len();
            script.launches.lock().unwrap().push(what.clone());
            let (word, seconds) = what.image.split_once(':').unwrap_or((&what.image, "0"));
            let (word, span) = (word.to_owned(), Duration::from_secs(seconds.parse().unwrap()));
            if word == "broken" {
                return Err(LaunchError::Start("it does not start".into()));
            }
            let containers = &what.pod.spec.as_ref().unwrap().containers;
            let declared = containers.iter().filter(|container| container.name == what.container);
            let declared = declared.flat_map(|container| container.ports.iter().flatten());
            // Other ports at every launch, as an operating system gives them.
            let real = |at: usize| 40_000 + u16::try_from(number * 10 + at).unwrap();
            let ports = declared.enumerate().map(|(at, port)| (u16::try_from(port.container_port).unwrap(), real(at)));
            let ports = ports.collect();
            let (ready, is_ready) = watch::channel(!matches!(word.as_str(), "slow" | "done"));
            let (asked, mut stop) = watch::channel(None);
            let name = format!("{}/{}", what.pod.name_any(), what.container);
            script.running.lock().unwrap().insert(name.clone(), None);
            let running = Running(script.clone(), name.clone());
            what.log.line(&format!("run {}", what.restarts));
            let ended = async move {
                let _running = running;
                let work = async {
                    if word == "slow" {
                        sleep(span).await;
                        ready.send_replace(true);
                    }
                    match word.as_str() {
                        "crash" => sleep(span).map(|()| Exit { code: 3, message: "it crashed".into() }).await,
                        "done" => sleep(span).map(|()| Exit::success()).await,
                        _ => pending().await,
                    }
                };
                let ending = async {
                    stop.wait_for(Option::is_some).await.unwrap();
                    match word.as_str() {
                        "linger" => sleep(span).await,
                        "deaf" => pending().await,
                        _ => (),
                    }
                    Exit::success()
                };
                tokio::select! {
                    exit = work => exit,
                    exit = ending => exit,
                }
            };
            let stop = move |how| {
                if let Some(run) = script.running.lock().unwrap().get_mut(&name) {
                    *run = Some(how);
                }
                asked.send_replace(Some(how));
            };
            Ok(Process { ports, ready: is_ready, ended: ended.boxed(), stop: Box::new(stop) })
        }
        .boxed()
    }

    fn forget(&self, pod: &Pod) {
        self.0.forgotten.lock().unwrap().push(pod.name_any());
    }

    fn discard(&self, volume: &str) {
        self.0.discarded.lock().unwrap().push(volume.to_owned());
    }
}

/// The node's logs as the server wants them.
#[derive(Debug)]
struct Printed(Logs);

impl LogSource for Printed {
    fn open(&self, of: &LogOf<'_>) -> Option<BoxStream<'static, Vec<LogLine>>> {
        let log = self.0.find(of.namespace, of.pod, of.container, of.previous)?;
        let mut reader = log.reader();
        let lines = |lines: Vec<Line>| {
            let line = |line: Line| LogLine { at: line.at, text: line.text.into() };
            lines.into_iter().map(line).collect::<Vec<_>>()
        };
        let first = stream::iter([lines(reader.read())]);
        if !of.follow {
            return Some(first.boxed());
        }
        let more = stream::unfold(reader, move |mut reader| async move { Some((lines(reader.more().await?), reader)) });
        Some(first.chain(more).boxed())
    }
}

/// What a server answers instead of doing as it is told: a code, or nothing if it does. May wait, and may do something
/// else first.
pub(crate) type Door = Arc<dyn Fn(&Method, &str) -> BoxFuture<'static, Option<u16>> + Send + Sync>;

pub(crate) struct World {
    /// Past the door, if there is one.
    pub(crate) client: Client,
    pub(crate) script: Arc<Script>,
    pub(crate) addresses: AddressTable,
    stop: Option<oneshot::Sender<()>>,
    node: JoinHandle<std::io::Result<()>>,
}

impl World {
    /// Three nodes in three zones, and nothing on them.
    pub(crate) fn new() -> Self {
        Self::behind(|_| Arc::new(|_, _| async { None }.boxed()))
    }

    /// The same, where the node's requests come to a door. Whoever makes that may use the server itself.
    pub(crate) fn behind(door: impl FnOnce(Client) -> Door) -> Self {
        let logs = Logs::default();
        let moments = Box::new(Simulated::new(Timestamp::UNIX_EPOCH, 7));
        let source: Arc<dyn LogSource> = Arc::new(Printed(logs.clone()));
        let options = Options { moments, logs: Some(source), ..Options::default() };
        let server = router(Shared::new(options));
        let client = Client::new(server.clone(), "default");
        let door = door(client.clone());
        let guarded = service_fn(move |request: Request<Body>| {
            let (door, server) = (door.clone(), server.clone());
            async move {
                let Some(code) = door(request.method(), request.uri().path()).await else {
                    return server.oneshot(request).await;
                };
                let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
                    "reason": if code == 409 { "Conflict" } else { "Forbidden" }, "message": "not now"});
                Ok(Response::builder().status(code).body(axum::body::Body::from(status.to_string())).unwrap())
            }
        });
        let (script, addresses) = (Arc::new(Script::default()), AddressTable::default());
        let settings = Settings {
            nodes: Nodes::default(),
            programs: Arc::new(Programmed(script.clone())),
            clock: Clock::simulated(Timestamp::UNIX_EPOCH),
            addresses: addresses.clone(),
            logs,
            dir: None,
            account: None,
            stop_within: Duration::from_secs(10),
        };
        let (stop, stopped) = oneshot::channel::<()>();
        let node = tokio::spawn(evenkeel_node::run_pods(Client::new(guarded, "default"), settings, stopped.map(drop)));
        Self { client, script, addresses, stop: Some(stop), node }
    }

    /// Has the node stop, and waits until it has.
    pub(crate) async fn shut_down(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
        (&mut self.node).await.unwrap().unwrap();
    }

    pub(crate) fn api<K: Resource<DynamicType = (), Scope = k8s_openapi_scope::Namespaced>>(&self) -> Api<K> {
        Api::namespaced(self.client.clone(), "default")
    }

    pub(crate) async fn create<K>(&self, value: Value) -> K
    where
        K: Resource<DynamicType = (), Scope = k8s_openapi_scope::Namespaced>
            + Serialize
            + DeserializeOwned
            + Clone
            + Debug,
    {
        self.api::<K>().create(&PostParams::default(), &serde_json::from_value(value).unwrap()).await.unwrap()
    }

    pub(crate) async fn patch<K>(&self, name: &str, patch: Value) -> K
    where
        K: Resource<DynamicType = (), Scope = k8s_openapi_scope::Namespaced> + DeserializeOwned + Clone + Debug,
    {
        self.api::<K>().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap()
    }

    /// What runs, as pod and container.
    pub(crate) fn running(&self) -> Vec<String> {
        self.script.running.lock().unwrap().keys().cloned().collect()
    }

    /// A pod in a few words: phase, readiness, restarts, and what its container waits for.
    pub(crate) async fn shown(&self, pod: &str) -> String {
        match self.api::<Pod>().get_opt(pod).await.unwrap() {
            Some(pod) => shown(&pod),
            None => "gone".into(),
        }
    }

    pub(crate) async fn until_shown(&self, pod: &str, expected: &str) -> Duration {
        let begun = Instant::now();
        loop {
            let shown = self.shown(pod).await;
            if shown == expected {
                return begun.elapsed();
            }
            assert!(begun.elapsed() < Duration::from_secs(700), "{pod} is {shown} and never {expected}");
            sleep(Duration::from_millis(100)).await;
        }
    }
}

/// Where namespaced kinds are.
pub(crate) mod k8s_openapi_scope {
    pub(crate) use k8s_openapi::NamespaceResourceScope as Namespaced;
}

pub(crate) fn shown(pod: &Pod) -> String {
    let status = pod.status.clone().unwrap_or_default();
    let mut words = vec![status.phase.unwrap_or_default()];
    let ready = status.conditions.iter().flatten().any(|it| it.type_ == "Ready" && it.status == "True");
    words.extend(ready.then(|| "ready".to_owned()));
    words.extend(pod.metadata.deletion_timestamp.as_ref().map(|_| "terminating".to_owned()));
    for container in status.container_statuses.iter().flatten() {
        words.extend((container.restart_count > 0).then(|| format!("x{}", container.restart_count)));
        let state = container.state.clone().unwrap_or_default();
        words.extend(state.waiting.and_then(|waiting| waiting.reason));
        words.extend(state.terminated.map(|ended| format!("exit {}", ended.exit_code)));
    }
    words.join(" ")
}

/// Waits in simulated time; returns how much of it passed.
pub(crate) async fn until<F: Future<Output = bool>>(what: &str, holds: impl Fn() -> F) -> Duration {
    let begun = Instant::now();
    while !holds().await {
        assert!(begun.elapsed() < Duration::from_secs(700), "never: {what}");
        sleep(Duration::from_millis(100)).await;
    }
    begun.elapsed()
}

/// A pod with one container.
pub(crate) fn pod(name: &str, image: &str) -> Value {
    let ports = json!([{"name": "tcp-replication", "containerPort": 9091}]);
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": "kafka"}},
        "spec": {"containers": [{"name": "main", "image": image, "ports": ports}]},
    })
}
