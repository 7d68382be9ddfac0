//! The engine of a cluster as its Deployment asks for it: it lives and dies with its pod, reads the properties and the
//! capacities that the operator wrote, and looks after the simulated brokers.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use evenkeel_engine::clock::WallClock;
use evenkeel_engine::config::capacity::Capacities;
use evenkeel_engine::config::properties::Properties;
use evenkeel_engine::config::settings::Settings;
use evenkeel_engine::engine::{Engine, Parts, Running};
use evenkeel_engine::files::courier;
use evenkeel_engine::journal::topic::TOPIC;
use evenkeel_engine::serve::router;
use evenkeel_operator::seams::{BoxFuture, ClusterRef, EngineError, EngineService, Engines, Trust, Unreachable};
use evenkeel_testkit::mortal::{Death, Fate, Mortal};
use http::Response;
use http_body_util::BodyExt;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};
use tokio::time::sleep;
use tower::{BoxError, ServiceExt, service_fn};

use crate::machines::{Machines, News};
use crate::seams;
use crate::stage::{CLUSTER, NAMESPACE};

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

#[derive(Clone)]
pub(crate) struct EngineRoom {
    machines: Machines,
    kubernetes: Client,
    now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    working: Arc<Mutex<Option<Working>>>,
    /// What becomes of the engine that is at work, by its calls to Kafka.
    fate: Arc<Mutex<Arc<Fate>>>,
    /// The same by what it writes to Kubernetes.
    at_kubernetes: Arc<Mutex<seams::Fate>>,
}

struct Working {
    /// Uid of the pod that it is in.
    pod: String,
    router: Router,
    _running: Running,
}

impl fmt::Debug for EngineRoom {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("EngineRoom")
    }
}

impl EngineRoom {
    pub(crate) fn new(
        machines: Machines,
        kubernetes: Client,
        now: impl Fn() -> Timestamp + Send + Sync + 'static,
    ) -> Self {
        let fate = Arc::new(Mutex::new(Fate::of(Death::Never)));
        let now = Arc::new(now);
        Self { machines, kubernetes, now, working: Arc::default(), fate, at_kubernetes: Arc::default() }
    }

    /// Runs the engine of the pod that is there, until dropped.
    pub(crate) async fn run(self) {
        let pods = Api::<Pod>::namespaced(self.kubernetes.clone(), NAMESPACE);
        let of_engine = ListParams::default().labels(&format!("strimzi.io/name={CLUSTER}-cruise-control"));
        let (news, mut pod) = (News::of::<Pod>(&self.kubernetes, NAMESPACE), None);
        loop {
            if news.is_any() {
                let there = pods.list(&of_engine).await.unwrap().items;
                let started = |pod: &&Pod| {
                    pod.metadata.deletion_timestamp.is_none()
                        && pod.status.as_ref().is_some_and(|status| status.conditions.is_some())
                };
                pod = there.iter().find(started).and_then(|pod| pod.uid());
            }
            let working = self.working.lock().unwrap().as_ref().map(|it| it.pod.clone());
            if working != pod {
                *self.working.lock().unwrap() = None;
                if let Some(pod) = pod.clone() {
                    let engine = self.start(pod).await;
                    *self.working.lock().unwrap() = engine;
                }
            }
            sleep(Duration::from_millis(250)).await;
        }
    }

    async fn start(&self, pod: String) -> Option<Working> {
        let maps = Api::<ConfigMap>::namespaced(self.kubernetes.clone(), NAMESPACE);
        let data = maps.get_opt(&format!("{CLUSTER}-cruise-control-config")).await.unwrap()?.data?;
        let own: Vec<&str> = PROPERTIES.lines().filter_map(|line| line.split('=').next()).collect();
        let is_kept = |line: &&str| {
            let key = line.split('=').next().unwrap_or_default();
            !own.contains(&key) && !LEFT_OUT.iter().any(|prefix| key.starts_with(prefix))
        };
        let text = data["cruisecontrol.properties"].lines().filter(is_kept).collect::<Vec<_>>().join("\n");
        let text = format!("{text}\n{PROPERTIES}");
        let settings = Settings::read(&Properties::read(&text, |_| None).unwrap()).unwrap().settings;
        let at_kubernetes = seams::Fate::default();
        let kubernetes = at_kubernetes.kube(seams::Server::Elsewhere(self.kubernetes.clone()));
        let courier = courier(&settings.detectors, || std::future::ready(Ok(kubernetes))).await.unwrap();
        let fate = Fate::of(Death::Never);
        let mortal = Mortal { memory: self.machines.connector(), fate: Arc::clone(&fate) };
        // Nobody is up yet: it is tried again.
        let client = self.machines.client_over(Arc::new(mortal))?;
        let parts = Parts {
            client,
            settings: Arc::new(settings),
            capacities: Arc::new(Capacities::read(&data["capacity.json"]).unwrap()),
            courier,
            clock: WallClock::starting_at((self.now)().as_millisecond()),
        };
        let running = Engine::start(parts).unwrap();
        *self.fate.lock().unwrap() = Arc::clone(&fate);
        *self.at_kubernetes.lock().unwrap() = at_kubernetes.clone();
        let room = self.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = fate.died() => {}
                () = at_kubernetes.died.notified() => {}
            }
            if Arc::ptr_eq(&fate, &room.fate()) {
                room.kill();
            }
        });
        Some(Working { pod, router: router(running.door()), _running: running })
    }

    /// What becomes of the engine that is at work.
    pub(crate) fn fate(&self) -> Arc<Fate> {
        Arc::clone(&self.fate.lock().unwrap())
    }

    /// The same at what it writes to Kubernetes.
    pub(crate) fn at_kubernetes(&self) -> seams::Fate {
        self.at_kubernetes.lock().unwrap().clone()
    }

    /// Its process dies; its pod is started again.
    pub(crate) fn kill(&self) {
        *self.working.lock().unwrap() = None;
    }

    /// The same, and what it would have known afterwards is lost: an engine that keeps no journal.
    pub(crate) fn kill_without_memory(&self) {
        self.kill();
        self.machines.world.with(|cluster| cluster.delete_topic(TOPIC)).unwrap();
    }
}

impl Engines for EngineRoom {
    fn service<'a>(&'a self, _: &'a ClusterRef, _: &'a Trust) -> BoxFuture<'a, Result<EngineService, Unreachable>> {
        let working = Arc::clone(&self.working);
        let service = service_fn(move |request: http::Request<http_body_util::Full<bytes::Bytes>>| {
            let router = working.lock().unwrap().as_ref().map(|it| it.router.clone());
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
