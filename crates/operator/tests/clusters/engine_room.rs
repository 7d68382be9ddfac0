//! The engine of a cluster as its Deployment asks for it: a program of the node, started from the properties and the capacities
//! that the operator wrote, which looks after the simulated brokers. It speaks with them in the clear, over connections on which
//! it dies when that was asked for, and is asked over its router.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use evenkeel_engine::clock::WallClock;
use evenkeel_engine::config::capacity::Capacities;
use evenkeel_engine::config::properties::Properties;
use evenkeel_engine::config::settings::Settings;
use evenkeel_engine::engine::{Engine, Parts, Running, WORK};
use evenkeel_engine::files::courier;
use evenkeel_engine::journal::topic::TOPIC;
use evenkeel_engine::serve::router;
use evenkeel_node::kubelet::program::{Exit, Launch, LaunchError, Process, Programs};
use evenkeel_operator::kafka::engine::{CAPACITY, CONFIG_PATH, PROPERTIES as FILE};
use evenkeel_operator::seams::{Clock, ClusterRef, EngineError, EngineService, Engines, Trust, Unreachable};
use evenkeel_testkit::mortal::{Death, Fate, Mortal};
use futures::future::BoxFuture;
use http::Response;
use http_body_util::BodyExt;
use kube::Client;
use tokio::sync::watch;
use tokio::time::sleep;
use tower::{BoxError, ServiceExt, service_fn};

use crate::machines::Machines;
use crate::seams;

/// Settings of every engine here: it learns quickly, and copies slowly enough to be watched.
const PROPERTIES: &str = "bootstrap.servers=sim:9000\n\
    security.protocol=PLAINTEXT\n\
    webserver.security.enable=false\n\
    webserver.ssl.enable=false\n\
    metric.sampler.class=ZeroTouchSampler\n\
    metric.sampling.interval.ms=5000\n\
    partition.metrics.window.ms=10000\n\
    min.samples.per.partition.metrics.window=1\n\
    partition.sample.store.topic.partition.count=2\n\
    broker.sample.store.topic.partition.count=2\n\
    default.replication.throttle=5000000\n\
    anomaly.detection.interval.ms=10000\n";
/// What names a file, or cannot be said twice.
const LEFT_OUT: [&str; 5] = ["ssl.", "webserver.", "capacity.config.file", "security.protocol", "bootstrap.servers"];

/// How often an engine is asked whether it is ready.
const ASK: Duration = Duration::from_millis(200);

#[derive(Clone)]
pub(crate) struct EngineRoom {
    machines: Machines,
    kubernetes: Client,
    clock: Clock,
    /// While one takes the place of another there may be two; the last to come is asked.
    working: Arc<Mutex<Vec<Working>>>,
    /// What becomes of the engine that came last, by its calls to Kafka.
    fate: Arc<Mutex<Arc<Fate>>>,
    /// The same by what it writes to Kubernetes.
    at_kubernetes: Arc<Mutex<seams::Fate>>,
}

struct Working {
    /// Whose this is: no other engine has it.
    fate: Arc<Fate>,
    router: Router,
    told: watch::Sender<Option<Exit>>,
    _running: Running,
}

impl fmt::Debug for EngineRoom {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("EngineRoom")
    }
}

impl Programs for EngineRoom {
    fn launch(&self, what: Launch) -> BoxFuture<'static, Result<Process, LaunchError>> {
        Box::pin(self.clone().start(what))
    }
}

impl EngineRoom {
    pub(crate) fn new(machines: Machines, kubernetes: Client, clock: Clock) -> Self {
        let fate = Arc::new(Mutex::new(Fate::of(Death::Never)));
        Self { machines, kubernetes, clock, working: Arc::default(), fate, at_kubernetes: Arc::default() }
    }

    async fn start(self, what: Launch) -> Result<Process, LaunchError> {
        let file = |name: &str| what.files.text(&format!("{CONFIG_PATH}/{name}")).unwrap();
        let own: Vec<&str> = PROPERTIES.lines().filter_map(|line| line.split('=').next()).collect();
        let is_kept = |line: &&str| {
            let key = line.split('=').next().unwrap_or_default();
            !own.contains(&key) && !LEFT_OUT.iter().any(|prefix| key.starts_with(prefix))
        };
        let text = file(FILE).lines().filter(is_kept).collect::<Vec<_>>().join("\n");
        let text = format!("{text}\n{PROPERTIES}");
        let settings = Settings::read(&Properties::read(&text, |_| None).unwrap()).unwrap().settings;
        let at_kubernetes = seams::Fate::default();
        let kubernetes = at_kubernetes.kube(seams::Server::Elsewhere(self.kubernetes.clone()));
        let courier = courier(&settings.detectors, || std::future::ready(Ok(kubernetes))).await.unwrap();
        let fate = Fate::of(Death::Never);
        let connector = Mortal { memory: self.machines.connector(), fate: Arc::clone(&fate) };
        let parts = Parts {
            client: self.machines.client_once_over(Arc::new(connector)).await,
            settings: Arc::new(settings),
            capacities: Arc::new(Capacities::read(file(CAPACITY)).unwrap()),
            courier,
            clock: WallClock::starting_at(self.clock.now().as_millisecond()),
        };
        // From here on nothing is waited for: whoever drops this future has nothing, or gets a process.
        let running = Engine::start(parts).unwrap();
        Ok(self.process(running, fate, at_kubernetes))
    }

    fn process(self, running: Running, fate: Arc<Fate>, at_kubernetes: seams::Fate) -> Process {
        *self.fate.lock().unwrap() = Arc::clone(&fate);
        *self.at_kubernetes.lock().unwrap() = at_kubernetes.clone();
        let door = Arc::clone(running.door());
        let (told, mut end) = watch::channel(None);
        let (readiness, ready) = watch::channel(false);
        let working = Working { fate: Arc::clone(&fate), router: router(&door), told, _running: running };
        self.working.lock().unwrap().push(working);
        let (stopping, held) = ((self.clone(), Arc::clone(&fate)), Dropped(self, Arc::clone(&fate)));
        let broken = async move {
            while door.readiness().of(WORK).is_none() {
                let is_ready = door.readiness().troubles().is_none();
                readiness.send_if_modified(|known| std::mem::replace(known, is_ready) != is_ready);
                sleep(ASK).await;
            }
        };
        Process {
            // It is asked over its router.
            ports: BTreeMap::new(),
            ready,
            ended: Box::pin(async move {
                let _held = held;
                tokio::select! {
                    exit = end.wait_for(Option::is_some) => exit.ok().and_then(|exit| exit.clone()).unwrap_or_else(Exit::killed),
                    () = fate.died() => Exit::killed(),
                    () = at_kubernetes.died.notified() => Exit::killed(),
                    () = broken => Exit::failure("a part of the engine has failed"),
                }
            }),
            stop: Box::new(move |_| stopping.0.end(&stopping.1, Exit::success())),
        }
    }

    /// Ends an engine, if it is still there.
    fn end(&self, whose: &Arc<Fate>, exit: Exit) {
        let ended = self.working.lock().unwrap().extract_if(.., |it| Arc::ptr_eq(&it.fate, whose)).collect::<Vec<_>>();
        for working in ended {
            working.told.send_replace(Some(exit.clone()));
        }
    }

    /// What becomes of the engine that is at work.
    pub(crate) fn fate(&self) -> Arc<Fate> {
        Arc::clone(&self.fate.lock().unwrap())
    }

    /// The same at what it writes to Kubernetes.
    pub(crate) fn at_kubernetes(&self) -> seams::Fate {
        self.at_kubernetes.lock().unwrap().clone()
    }

    /// Its process dies; its container is started again.
    pub(crate) fn kill(&self) {
        self.end(&self.fate(), Exit::killed());
    }

    /// The same, and what it would have known afterwards is lost: an engine that keeps no journal.
    pub(crate) fn kill_without_memory(&self) {
        self.kill();
        self.machines.world().with(|cluster| cluster.delete_topic(TOPIC)).unwrap();
    }
}

/// A process that is dropped ends.
struct Dropped(EngineRoom, Arc<Fate>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.end(&self.1, Exit::killed());
    }
}

impl Engines for EngineRoom {
    fn service<'a>(&'a self, _: &'a ClusterRef, _: &'a Trust) -> BoxFuture<'a, Result<EngineService, Unreachable>> {
        let working = Arc::clone(&self.working);
        let service = service_fn(move |request: http::Request<http_body_util::Full<bytes::Bytes>>| {
            let router = working.lock().unwrap().last().map(|it| it.router.clone());
            async move {
                let Some(router) = router else {
                    return Err(EngineError::from(BoxError::from("connection refused")));
                };
                match router.oneshot(request.map(Body::new)).await {
                    Ok(response) => Ok(response),
                    Err(never) => match never {},
                }
            }
        })
        .map_response(|response: Response<Body>| {
            response.map(|body| body.map_err(|error| EngineError::from(BoxError::from(error))).boxed_unsync())
        });
        Box::pin(async move { Ok(EngineService::new(service)) })
    }

    fn forget(&self, _: &ClusterRef) {}
}
